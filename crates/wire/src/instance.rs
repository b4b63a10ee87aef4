//! The codes of FEC Encoding ID 128, which RFC 5445 (section 5) leaves to be told apart by a FEC
//! Instance ID, and what has to be known of them besides.
//!
//! ```text
//! instance 1, Tornado, 9 bytes: u8 stretch factor, u64 seed
//! instance 2, LT, 21 bytes:     u8 profile (0 fast, 1 strict), u64 seed, u32 M, u32 R, u32 spike
//! ```
//! `M`, `R` and the spike are those of [`Lt`]. The same bytes stand in EXT_FTI, in the file delivery
//! table and in our own records. Other parameters need another instance id: there is no version here.

use crate::bytes::Reader;
use fontana_fec::FecScheme;
use fontana_fec::lt::{Lt, Profile};
use fontana_fec::tornado::{StretchError, Tornado};

/// "Small Block, Large Block and Expandable FEC Codes" (RFC 5445, section 5).
pub(crate) const EXPANDABLE: u8 = 128;
/// "Small Block Systematic FEC Codes" (RFC 5445, section 5).
pub(crate) const SMALL_BLOCK: u8 = 129;

pub(crate) const TORNADO: u16 = 1;
pub(crate) const LT: u16 = 2;

/// A code that we do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// No scheme of ours.
    #[error("FEC Encoding ID {0} is not supported")]
    EncodingId(u8),
    /// No code of ours under this FEC Encoding ID.
    #[error("FEC Instance ID {instance_id} of FEC Encoding ID {encoding_id} is not supported")]
    InstanceId {
        /// 128 or 129.
        encoding_id: u8,
        /// What was asked for.
        instance_id: u16,
    },
    /// No Tornado code.
    #[error(transparent)]
    Stretch(#[from] StretchError),
    /// Neither fast nor strict.
    #[error("an LT code of profile {0}, only 0 and 1 are known")]
    Profile(u8),
}

impl CodeError {
    pub(crate) const fn instance(encoding_id: u8, instance_id: u16) -> Self {
        Self::InstanceId { encoding_id, instance_id }
    }
}

/// Bytes of the information on a code of FEC Encoding ID 128; `None` if it is not ours.
pub(crate) const fn size(instance_id: u16) -> Option<usize> {
    match instance_id {
        TORNADO => Some(9),
        LT => Some(21),
        _ => None,
    }
}

/// Reads the information on a code of FEC Encoding ID 128; `None` if it ends too early.
pub(crate) fn parse(
    instance_id: u16,
    max_source_block_length: u32,
    reader: &mut Reader<'_>,
) -> Option<Result<FecScheme, CodeError>> {
    Some(match instance_id {
        TORNADO => {
            let (stretch_factor, seed) = (reader.u8()?, reader.u64()?);
            Tornado::new(stretch_factor, seed)
                .map(|code| FecScheme::Tornado { max_source_block_length, code })
                .map_err(CodeError::from)
        }
        LT => {
            let profile = match reader.u8()? {
                0 => Ok(Profile::Fast),
                1 => Ok(Profile::Strict),
                other => Err(CodeError::Profile(other)),
            };
            let seed = reader.u64()?;
            let (spike, ripple, spike_weight) = (reader.u32()?, reader.u32()?, reader.u32()?);
            profile.map(|profile| FecScheme::Lt {
                max_source_block_length,
                code: Lt { profile, seed, spike, ripple, spike_weight },
            })
        }
        other => Err(CodeError::instance(EXPANDABLE, other)),
    })
}

/// The FEC Instance ID of a code of FEC Encoding ID 128 or 129.
pub(crate) const fn id_of(scheme: FecScheme) -> Option<u16> {
    match scheme {
        FecScheme::Tornado { .. } => Some(TORNADO),
        FecScheme::Lt { .. } => Some(LT),
        FecScheme::ReedSolomon { code, .. } => code.instance_id(),
        FecScheme::NoCode { .. } | FecScheme::RaptorQ { .. } => None,
    }
}

/// Appends the information on a code of FEC Encoding ID 128; nothing for others.
pub(crate) fn emit(scheme: FecScheme, out: &mut Vec<u8>) {
    match scheme {
        FecScheme::Tornado { code, .. } => {
            out.push(code.stretch_factor());
            out.extend(code.seed().to_be_bytes());
        }
        FecScheme::Lt { code, .. } => {
            let Lt { profile, seed, spike, ripple, spike_weight } = code;
            out.push(match profile {
                Profile::Fast => 0,
                Profile::Strict => 1,
            });
            out.extend(seed.to_be_bytes());
            out.extend([spike, ripple, spike_weight].iter().flat_map(|n| n.to_be_bytes()));
        }
        FecScheme::NoCode { .. } | FecScheme::RaptorQ { .. } | FecScheme::ReedSolomon { .. } => {}
    }
}
