//! The codes of FEC Encoding ID 128 and their parameters. RFC 5445 (section 5) distinguishes them
//! by a FEC Instance ID.
//!
//! ```text
//! instance 1, Tornado, 9 bytes: u8 stretch factor, u64 seed
//! instance 2, LT, 21 bytes:     u8 profile (0 fast, 1 strict), u64 seed, u32 M, u32 R, u32 spike
//! ```
//! `M`, `R` and the spike are those of [`Lt`]. EXT_FTI, the file delivery table, session heads and
//! manifests use the same bytes. The format has no version: other parameters need another instance
//! id.

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

/// Reason why a code is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// An unknown FEC Encoding ID.
    #[error("FEC Encoding ID {0} is not supported")]
    EncodingId(u8),
    /// An unknown FEC Instance ID.
    #[error("FEC Instance ID {instance_id} of FEC Encoding ID {encoding_id} is not supported")]
    InstanceId {
        /// FEC Encoding ID: 128 or 129.
        encoding_id: u8,
        /// FEC Instance ID.
        instance_id: u16,
    },
    /// Invalid parameters of a Tornado code.
    #[error(transparent)]
    Stretch(#[from] StretchError),
    /// An LT profile other than fast and strict.
    #[error("an LT code of profile {0}, only 0 and 1 are known")]
    Profile(u8),
}

impl CodeError {
    pub(crate) const fn instance(encoding_id: u8, instance_id: u16) -> Self {
        Self::InstanceId { encoding_id, instance_id }
    }
}

/// Size in bytes of the parameters of a code of FEC Encoding ID 128; `None` if the code is unknown.
pub(crate) const fn size(instance_id: u16) -> Option<usize> {
    match instance_id {
        TORNADO => Some(9),
        LT => Some(21),
        _ => None,
    }
}

/// Parses the parameters of a code of FEC Encoding ID 128; `None` if the bytes end too early.
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

/// FEC Instance ID of a code of FEC Encoding ID 128 or 129; `None` for other codes.
pub(crate) const fn id_of(scheme: FecScheme) -> Option<u16> {
    match scheme {
        FecScheme::Tornado { .. } => Some(TORNADO),
        FecScheme::Lt { .. } => Some(LT),
        FecScheme::ReedSolomon { code, .. } => code.instance_id(),
        FecScheme::NoCode { .. } | FecScheme::RaptorQ { .. } => None,
    }
}

/// Appends the parameters of a code of FEC Encoding ID 128; nothing for other codes.
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
