//! Codes whose shards are those of other programs, byte for byte.
//!
//! A *shard* is an encoding symbol. Shards 0 to `data - 1` are the data, the others are parity. All
//! shards of a group have the same size, which is not limited: the work is done column by column,
//! with memory for a part of the shards.
//!
//! ```
//! use fontana_fec::presets::{Preset, ShardCode};
//!
//! // `ReedSolomon::new(4, 2)` of the crate `reed-solomon-erasure`.
//! let code = ShardCode::new(Preset::Backblaze, 4, 2)?;
//! let data = [b"fair wat", b"er flows", b" to ever", b"yone now"];
//! let parity = code.encode(&data)?;
//!
//! let shards = data.iter().map(|shard| shard.to_vec()).chain(parity);
//! let mut shards: Vec<Option<Vec<u8>>> = shards.map(Some).collect();
//! (shards[0], shards[3]) = (None, None);
//! code.reconstruct(&mut shards)?;
//! assert_eq!(shards[0].as_deref(), Some(&b"fair wat"[..]));
//! assert_eq!(shards[3].as_deref(), Some(&b"yone now"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Preset`] lists the codes and their originals. The crate `raptorq` is a code without a limit of
//! its shards: [`object`](crate::object) has its packets.
//!
//! | | |
//! |---|---|
//! | tests against the originals | `crates/fec/tests/fec/presets.rs` |

mod leopard;
mod plan;
mod program;
mod vandermonde;

use crate::bytes::kernel::Shards;
use crate::bytes::line::LINE;
use crate::sync::Lock;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use program::ShardPlan;

/// A code of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// The systematic Vandermonde code of Backblaze's JavaReedSolomon. The crate
    /// `reed-solomon-erasure` (`galois_8`; Solana's shreds are 32 + 32), and klauspost/reedsolomon
    /// without options up to 256 shards.
    Backblaze,
    /// zfec, which is Rizzo's code. Its `m` is the number of all shards.
    Zfec,
    /// ISA-L with `gf_gen_cauchy1_matrix`. Its `m` is the number of all shards.
    IsaLCauchy,
    /// ISA-L with `gf_gen_rs_matrix`. With four parity shards or more, some sets of as many shards
    /// as data shards do not recover the data.
    IsaLVandermonde,
    /// Leopard over GF(2^8): klauspost/reedsolomon with `WithLeopardGF(true)` up to 256 shards.
    Leopard8,
    /// Leopard over GF(2^16): klauspost/reedsolomon without options above 256 shards, and with
    /// `WithLeopardGF16(true)`. The size of a shard is a multiple of 64 bytes.
    Leopard16,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Backblaze,
        Self::Zfec,
        Self::IsaLCauchy,
        Self::IsaLVandermonde,
        Self::Leopard8,
        Self::Leopard16,
    ];

    /// Most shards of a group, parity included. The codes of Leopard round the number of parity
    /// shards up to a power of two before they count.
    pub const fn max_shards(self) -> usize {
        match self {
            Self::Leopard16 => 1 << 16,
            _ => MAX_SHARDS,
        }
    }

    /// The number of bytes of a shard is a multiple of this.
    const fn alignment(self) -> usize {
        match self {
            Self::Leopard16 => LINE,
            _ => 1,
        }
    }

    /// The numbers of shards, if the code has them.
    fn counts(self, data: usize, parity: usize) -> Option<Counts> {
        if data == 0 || parity == 0 || parity > self.max_shards() {
            return None;
        }
        let counted = match self {
            Self::Leopard8 | Self::Leopard16 => parity.next_power_of_two(),
            _ => parity,
        };
        let all = data.checked_add(counted)?;
        let counts = Counts { data: data as u32, all: (data + parity) as u32 };
        (all <= self.max_shards()).then_some(counts)
    }
}

/// The numbers of shards of a group.
#[derive(Clone, Copy, Debug)]
struct Counts {
    data: u32,
    /// Parity shards included.
    all: u32,
}

impl Counts {
    fn parity(self) -> u32 {
        self.all - self.data
    }
}

/// Most shards of a group over GF(256), parity included: the points of the field.
pub const MAX_SHARDS: usize = 256;

/// Numbers of shards for which there is no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{data} data and {parity} parity shards, must be at least 1 of each and at most {}{}",
    preset.max_shards(),
    match preset {
        Preset::Leopard8 | Preset::Leopard16 => ", with parity rounded up to a power of two",
        _ => "",
    }
)]
pub struct ShardCountError {
    /// The code.
    pub preset: Preset,
    /// The requested number of data shards.
    pub data: usize,
    /// The requested number of parity shards.
    pub parity: usize,
}

/// Why shards are not encoded or reconstructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The slice has not one element for each shard.
    #[error("{actual} shards, the code has {expected}")]
    Count {
        /// Shards of the code.
        expected: usize,
        /// Elements of the slice.
        actual: usize,
    },
    /// The shards differ in size.
    #[error("shard has {actual} bytes, the first one has {expected}")]
    Size {
        /// Bytes of the first available shard.
        expected: usize,
        /// Bytes of a later one.
        actual: usize,
    },
    /// The size of shards is not a multiple of what the code needs: of [`Preset::Leopard16`] only.
    #[error("shards have {size} bytes, must be a multiple of {multiple}")]
    Alignment {
        /// Bytes of each shard.
        size: usize,
        /// Bytes whose multiple it must be.
        multiple: usize,
    },
    /// Fewer shards are available than there are data shards.
    #[error("{available} shards are available, {needed} are needed")]
    TooFew {
        /// Data shards of the code.
        needed: usize,
        /// Available shards.
        available: usize,
    },
    /// The available shards do not determine the data: of [`Preset::IsaLVandermonde`] only.
    #[error("{available} shards are available, but do not determine the data")]
    Undetermined {
        /// Available shards.
        available: usize,
    },
}

/// A code for groups of shards.
#[derive(Debug)]
pub struct ShardCode {
    preset: Preset,
    counts: Counts,
    /// The plan of all parity shards.
    encoder: Arc<ShardPlan>,
    /// The plans that were used last, the newest at the end: missing shards, ascending, and how to
    /// compute them.
    plans: Lock<Vec<(Vec<u32>, Arc<ShardPlan>)>>,
}

/// Plans that a code stores. Losses repeat: of a disk that failed, of a host that is away. A plan
/// has up to 16 KB, a product for each data shard and missing shard.
const STORED_PLANS: usize = 32;

/// Plans that a code of more than [`MAX_SHARDS`] shards stores: of up to 768 KB each.
const STORED_LARGE_PLANS: usize = 4;

impl ShardCode {
    /// A code of `data` and `parity` shards.
    ///
    /// # Errors
    /// [`ShardCountError`] unless there is at least one of each, and at most
    /// [`Preset::max_shards`].
    pub fn new(preset: Preset, data: usize, parity: usize) -> Result<Self, ShardCountError> {
        let error = ShardCountError { preset, data, parity };
        let counts = preset.counts(data, parity).ok_or(error)?;
        let encoder = plan::encoder(preset, counts).ok_or(error)?;
        Ok(Self { preset, counts, encoder: Arc::new(encoder), plans: Lock::default() })
    }

    /// The number of data shards.
    pub fn data_shards(&self) -> usize {
        self.counts.data as usize
    }

    /// The number of parity shards.
    pub fn parity_shards(&self) -> usize {
        self.counts.parity() as usize
    }

    /// The parity shards of a group of data shards.
    ///
    /// # Errors
    /// [`ShardError::Count`], [`ShardError::Size`] or [`ShardError::Alignment`].
    pub fn encode(&self, data: &[impl AsRef<[u8]>]) -> Result<Vec<Vec<u8>>, ShardError> {
        let size = data.first().map_or(0, |shard| shard.as_ref().len());
        let mut parity: Vec<Vec<u8>> = (0..self.parity_shards()).map(|_| vec![0; size]).collect();
        self.encode_into(data, &mut parity)?;
        Ok(parity)
    }

    /// Writes the parity shards of a group of data shards into `parity`, which has their number and
    /// size.
    ///
    /// # Errors
    /// [`ShardError::Count`], [`ShardError::Size`] or [`ShardError::Alignment`]; `parity` is
    /// unchanged.
    pub fn encode_into(
        &self,
        data: &[impl AsRef<[u8]>],
        parity: &mut [impl AsMut<[u8]>],
    ) -> Result<(), ShardError> {
        check_count(self.data_shards(), data.len())?;
        check_count(self.parity_shards(), parity.len())?;
        let data: Vec<&[u8]> = data.iter().map(AsRef::as_ref).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(AsMut::as_mut).collect();
        let sizes = data.iter().map(|shard| shard.len());
        let size = self.common_size(sizes.chain(parity.iter().map(|shard| shard.len())))?;
        self.encoder.run(Shards { inputs: &data, outputs: &mut parity, size });
        Ok(())
    }

    /// Computes the shards that are `None`, parity included.
    ///
    /// # Errors
    /// [`ShardError`]; the shards are unchanged.
    pub fn reconstruct(&self, shards: &mut [Option<Vec<u8>>]) -> Result<(), ShardError> {
        check_count(self.counts.all as usize, shards.len())?;
        let size = self.common_size(shards.iter().flatten().map(Vec::len))?;
        let is_missing = |shard: &u32| shards[*shard as usize].is_none();
        let missing: Vec<u32> = (0..self.counts.all).filter(is_missing).collect();
        let (needed, available) = (self.data_shards(), shards.len() - missing.len());
        if available < needed {
            return Err(ShardError::TooFew { needed, available });
        }
        if missing.is_empty() {
            return Ok(());
        }
        let plan = self.plan(missing).ok_or(ShardError::Undetermined { available })?;
        let shard = |number: &u32| shards[*number as usize].as_deref().unwrap_or_default();
        let inputs: Vec<&[u8]> = plan.inputs.iter().map(shard).collect();
        let mut computed: Vec<Vec<u8>> = plan.outputs.iter().map(|_| vec![0; size]).collect();
        let mut outputs: Vec<&mut [u8]> = computed.iter_mut().map(Vec::as_mut_slice).collect();
        plan.run(Shards { inputs: &inputs, outputs: &mut outputs, size });
        for (&number, shard) in plan.outputs.iter().zip(computed) {
            shards[number as usize] = Some(shard);
        }
        Ok(())
    }
}

impl ShardCode {
    /// The plan to compute missing shards, if they are determined: a stored one, or a new one.
    fn plan(&self, missing: Vec<u32>) -> Option<Arc<ShardPlan>> {
        let mut plans = self.plans.lock();
        if let Some(at) = plans.iter().position(|(stored, _)| *stored == missing) {
            plans[at..].rotate_left(1);
            return plans.last().map(|(_, plan)| Arc::clone(plan));
        }
        // Others do not wait while it is made.
        drop(plans);
        let made = Arc::new(plan::recovery(self.preset, self.counts, &missing)?);
        let is_large = self.counts.all as usize > MAX_SHARDS;
        let most = if is_large { STORED_LARGE_PLANS } else { STORED_PLANS };
        let mut plans = self.plans.lock();
        if plans.len() == most {
            plans.remove(0);
        }
        plans.push((missing, Arc::clone(&made)));
        Some(made)
    }

    /// The size of all shards; 0 if there are none.
    fn common_size(&self, mut sizes: impl Iterator<Item = usize>) -> Result<usize, ShardError> {
        let expected = sizes.next().unwrap_or(0);
        if let Some(actual) = sizes.find(|&size| size != expected) {
            return Err(ShardError::Size { expected, actual });
        }
        let multiple = self.preset.alignment();
        if !expected.is_multiple_of(multiple) {
            return Err(ShardError::Alignment { size: expected, multiple });
        }
        Ok(expected)
    }
}

fn check_count(expected: usize, actual: usize) -> Result<(), ShardError> {
    if actual == expected { Ok(()) } else { Err(ShardError::Count { expected, actual }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_stored_by_what_is_lost_and_the_oldest_gives_way() {
        let code = ShardCode::new(Preset::Backblaze, 40, 2).unwrap();
        let plan = |lost: u32| code.plan(vec![lost]).unwrap();
        let first = plan(0);
        for lost in 1..STORED_PLANS as u32 {
            plan(lost);
        }
        assert!(Arc::ptr_eq(&first, &plan(0)), "stored, and used last from now on");
        let second = plan(1);
        for lost in STORED_PLANS as u32..40 {
            plan(lost);
        }
        assert!(Arc::ptr_eq(&first, &plan(0)) && Arc::ptr_eq(&second, &plan(1)));
        let third = plan(2);
        assert!(Arc::ptr_eq(&third, &plan(2)));
        assert_eq!(code.plans.lock().len(), STORED_PLANS);
        let other = code.plan(vec![0, 40]).unwrap();
        assert!(!Arc::ptr_eq(&first, &other), "by another parity shard");
    }
}
