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

mod vandermonde;

use crate::bytes::line::{LINE, MAX_STRIPE_LINES};
use crate::bytes::stripes::Scratch;
use crate::bytes::stripes::loading::Lent;
use crate::codes::reed_solomon::Points;
use crate::ids::Esi;
use crate::plan::Plan;
use crate::sync::Lock;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

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
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Backblaze, Self::Zfec, Self::IsaLCauchy, Self::IsaLVandermonde];

    /// The plan that replaces data shards `lost`, ascending, by `available` parity shards,
    /// ascending. `None` if these do not determine them.
    fn plan(self, counts: Counts, lost: Vec<u32>, available: &[u32]) -> Option<Plan> {
        let points = match self {
            Self::Backblaze => Points::Numbers,
            Self::Zfec => Points::Powers,
            Self::IsaLCauchy => Points::Cauchy,
            Self::IsaLVandermonde => return vandermonde::plan(counts, lost, available),
        };
        let repair = available.get(..lost.len())?;
        Some(points.plan(counts.data, counts.all, lost, repair))
    }
}

/// The numbers of shards of a group.
#[derive(Clone, Copy, Debug)]
struct Counts {
    data: u32,
    /// Parity shards included.
    all: u32,
}

/// Most shards of a group, parity included: the points of GF(256).
pub const MAX_SHARDS: usize = 256;

/// Numbers of shards for which there is no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{data} data and {parity} parity shards, must be at least 1 of each and at most {MAX_SHARDS}"
)]
pub struct ShardCountError {
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
    /// The plan of a group whose data shards are all available.
    encoder: Arc<Plan>,
    /// The plans that were used last, the newest at the end.
    plans: Lock<Vec<(Erasures, Arc<Plan>)>>,
}

/// What a plan to reconstruct data shards depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Erasures {
    /// Data shards that are missing, ascending.
    lost: Vec<u32>,
    /// Parity shards that are available, ascending.
    parity: Vec<u32>,
}

/// Plans that a code stores. Losses repeat: of a disk that failed, of a host that is away. A plan
/// has up to 16 KB, a product for each data shard and lost shard.
const STORED_PLANS: usize = 32;

impl ShardCode {
    /// A code of `data` and `parity` shards.
    ///
    /// # Errors
    /// [`ShardCountError`] unless there is at least one of each, and at most [`MAX_SHARDS`].
    pub fn new(preset: Preset, data: usize, parity: usize) -> Result<Self, ShardCountError> {
        let error = ShardCountError { data, parity };
        let all = data.checked_add(parity).filter(|&all| all <= MAX_SHARDS).ok_or(error)?;
        if data == 0 || parity == 0 {
            return Err(error);
        }
        let counts = Counts { data: data as u32, all: all as u32 };
        let encoder = preset.plan(counts, Vec::new(), &[]).ok_or(error)?;
        Ok(Self { preset, counts, encoder: Arc::new(encoder), plans: Lock::default() })
    }

    /// The number of data shards.
    pub fn data_shards(&self) -> usize {
        self.counts.data as usize
    }

    /// The number of parity shards.
    pub fn parity_shards(&self) -> usize {
        (self.counts.all - self.counts.data) as usize
    }

    /// The parity shards of a group of data shards.
    ///
    /// # Errors
    /// [`ShardError::Count`] or [`ShardError::Size`].
    pub fn encode(&self, data: &[impl AsRef<[u8]>]) -> Result<Vec<Vec<u8>>, ShardError> {
        check_count(self.data_shards(), data.len())?;
        let size = common_size(data.iter().map(AsRef::as_ref))?;
        let shard = |esi: Esi| data.get(esi.0 as usize).map_or(&[][..], AsRef::as_ref);
        let parity: Vec<Esi> = (self.counts.data..self.counts.all).map(Esi).collect();
        Ok(compute(&self.encoder, size, shard, &parity))
    }

    /// Computes the shards that are `None`, parity included.
    ///
    /// # Errors
    /// [`ShardError`]; the shards are unchanged.
    pub fn reconstruct(&self, shards: &mut [Option<Vec<u8>>]) -> Result<(), ShardError> {
        check_count(self.counts.all as usize, shards.len())?;
        let size = common_size(shards.iter().flatten().map(Vec::as_slice))?;
        let (available, missing): (Vec<u32>, Vec<u32>) =
            (0..self.counts.all).partition(|&shard| shards[shard as usize].is_some());
        let needed = self.data_shards();
        if available.len() < needed {
            return Err(ShardError::TooFew { needed, available: available.len() });
        }
        let is_data = |shard: &u32| *shard < self.counts.data;
        let lost: Vec<u32> = missing.iter().copied().filter(is_data).collect();
        let plan = if lost.is_empty() {
            Arc::clone(&self.encoder)
        } else {
            let parity = available[available.partition_point(is_data)..].to_vec();
            let plan = self.plan(Erasures { lost, parity });
            plan.ok_or(ShardError::Undetermined { available: available.len() })?
        };
        let missing: Vec<Esi> = missing.into_iter().map(Esi).collect();
        let shard = |esi: Esi| shards[esi.0 as usize].as_deref().unwrap_or_default();
        let computed = compute(&plan, size, shard, &missing);
        for (esi, shard) in missing.into_iter().zip(computed) {
            shards[esi.0 as usize] = Some(shard);
        }
        Ok(())
    }
}

impl ShardCode {
    /// The plan to reconstruct data shards, if it is determined: a stored one, or a new one.
    fn plan(&self, erasures: Erasures) -> Option<Arc<Plan>> {
        let mut plans = self.plans.lock();
        if let Some(at) = plans.iter().position(|(stored, _)| *stored == erasures) {
            plans[at..].rotate_left(1);
            return plans.last().map(|(_, plan)| Arc::clone(plan));
        }
        // Others do not wait while it is made.
        drop(plans);
        let made = self.preset.plan(self.counts, erasures.lost.clone(), &erasures.parity)?;
        let made = Arc::new(made);
        let mut plans = self.plans.lock();
        if plans.len() == STORED_PLANS {
            plans.remove(0);
        }
        plans.push((erasures, Arc::clone(&made)));
        Some(made)
    }
}

fn check_count(expected: usize, actual: usize) -> Result<(), ShardError> {
    if actual == expected { Ok(()) } else { Err(ShardError::Count { expected, actual }) }
}

/// The size of all shards; 0 if there are none.
fn common_size<'s>(shards: impl Iterator<Item = &'s [u8]>) -> Result<usize, ShardError> {
    let mut sizes = shards.map(<[u8]>::len);
    let expected = sizes.next().unwrap_or(0);
    match sizes.find(|&size| size != expected) {
        Some(actual) => Err(ShardError::Size { expected, actual }),
        None => Ok(expected),
    }
}

/// Computes the `wanted` shards, some columns at a time: the inputs of a plan then stay in the
/// processor's caches.
fn compute<'s>(
    plan: &Arc<Plan>,
    size: usize,
    shard: impl Fn(Esi) -> &'s [u8],
    wanted: &[Esi],
) -> Vec<Vec<u8>> {
    /// Bytes of the inputs: half of a second-level cache (256 KB at least).
    const INPUTS: usize = 128 << 10;
    /// Bytes of a row of a stripe.
    const STRIPE: usize = MAX_STRIPE_LINES * LINE;
    let stripes = INPUTS / STRIPE / plan.source_symbols().max(1) as usize;
    let width = stripes.max(1) * STRIPE;
    let mut computed = vec![vec![0; size]; wanted.len()];
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    for start in (0..size).step_by(width) {
        let columns = start..size.min(start + width);
        let lent = Lent(|esi| shard(esi).get(columns.clone()).unwrap_or_default());
        let Ok(group) = plan.execute(columns.len(), lent, scratch);
        out.resize(wanted.len() * columns.len(), 0);
        group.write_symbols(wanted, &mut out);
        for (to, from) in computed.iter_mut().zip(out.chunks_exact(columns.len())) {
            to[columns.clone()].copy_from_slice(from);
        }
        scratch = group.into_scratch();
    }
    computed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_stored_by_what_is_lost_and_the_oldest_gives_way() {
        let code = ShardCode::new(Preset::Backblaze, 40, 2).unwrap();
        let plan =
            |lost: u32| code.plan(Erasures { lost: vec![lost], parity: vec![40, 41] }).unwrap();
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
        let other = code.plan(Erasures { lost: vec![0], parity: vec![41] }).unwrap();
        assert!(!Arc::ptr_eq(&first, &other), "by another parity shard");
    }
}
