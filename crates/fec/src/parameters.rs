//! The parameters of a FEC scheme in the form that protocols carry, independent of the code.

use crate::ids::EncodingId;

/// The part of the FEC Object Transmission Information that belongs to the code (RFC 5052, section
/// 5), with the fields of all FEC Encoding IDs. It may come from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeParameters {
    /// The FEC Encoding ID, which determines the other fields.
    pub encoding_id: EncodingId,
    /// The FEC Instance ID, for FEC Encoding IDs from 128 on.
    pub instance_id: Option<u16>,
    /// `B`: most source symbols of a block.
    pub max_source_block_length: Option<u32>,
    /// `max_n`: most encoding symbols of a block.
    pub max_encoding_symbols: Option<u16>,
    /// Scheme-specific information.
    pub information: Information,
}

impl SchemeParameters {
    /// Parameters of a FEC scheme that has none of its own.
    pub const fn new(encoding_id: EncodingId, instance_id: Option<u16>) -> Self {
        Self {
            encoding_id,
            instance_id,
            max_source_block_length: None,
            max_encoding_symbols: None,
            information: Information::EMPTY,
        }
    }

    /// `B`, in the integer type of the code.
    pub(crate) fn block_length<T: TryFrom<u32>>(&self) -> Result<T, CodeError> {
        let name = "the maximum source block length";
        let length = self.max_source_block_length.and_then(|length| length.try_into().ok());
        length.ok_or(CodeError::Parameter(name))
    }

    /// `max_n`.
    pub(crate) fn encoding_symbols(&self) -> Result<u16, CodeError> {
        let name = "the maximum number of encoding symbols";
        self.max_encoding_symbols.ok_or(CodeError::Parameter(name))
    }

    /// The scheme-specific information, which must be `N` bytes.
    pub(crate) fn information<const N: usize>(&self) -> Result<&[u8; N], CodeError> {
        let name = "the scheme-specific information";
        self.information.bytes().try_into().map_err(|_| CodeError::Parameter(name))
    }
}

/// Most bytes of scheme-specific information. LT, the longest, has 21.
const MAX_INFORMATION_SIZE: usize = 24;

/// Scheme-specific information: bytes that only the code interprets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
    bytes: [u8; MAX_INFORMATION_SIZE],
    size: u8,
}

impl Information {
    /// No bytes.
    pub const EMPTY: Self = Self { bytes: [0; MAX_INFORMATION_SIZE], size: 0 };

    /// A copy of `bytes`; `None` if they are longer than those of any code.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut this = Self::EMPTY;
        this.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        this.size = bytes.len() as u8;
        Some(this)
    }

    /// Appends bytes, which must fit.
    pub(crate) fn with<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        let at = usize::from(self.size);
        self.bytes[at..at + N].copy_from_slice(&bytes);
        self.size += N as u8;
        self
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size.into()]
    }
}

/// The FEC Encoding ID and the FEC Instance IDs under which parameters of one form are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) encoding_id: EncodingId,
    /// `None` if the FEC Encoding ID has no FEC Instance IDs.
    pub(crate) instance_ids: Option<&'static [u16]>,
    /// Bytes of scheme-specific information.
    pub(crate) information_size: usize,
}

impl Format {
    /// True if these ids have this format.
    pub(crate) fn is_of(&self, encoding_id: EncodingId, instance_id: Option<u16>) -> bool {
        self.encoding_id == encoding_id
            && match (self.instance_ids, instance_id) {
                (None, _) => true,
                (Some(ids), Some(id)) => ids.contains(&id),
                (Some(_), None) => false,
            }
    }
}

/// Why parameters match no code of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// No supported scheme has this FEC Encoding ID.
    #[error("FEC Encoding ID {0} is not supported")]
    EncodingId(u8),
    /// No supported code has this FEC Instance ID under this FEC Encoding ID.
    #[error("FEC Instance ID {instance_id} of FEC Encoding ID {encoding_id} is not supported")]
    InstanceId {
        /// 128 or 129.
        encoding_id: u8,
        /// The unsupported FEC Instance ID.
        instance_id: u16,
    },
    /// No Tornado code has this stretch factor.
    #[error(transparent)]
    Stretch(#[from] StretchError),
    /// The profile of an LT code is neither fast nor strict.
    #[error("LT profile {0} is not supported, must be 0 or 1")]
    Profile(u8),
    /// A parameter of the code is missing or too large.
    #[error("{0} is missing or too large for the code")]
    Parameter(&'static str),
}

/// A stretch factor outside the limits of Tornado codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Tornado stretch factor is {actual}, must be 2 to 10")]
pub struct StretchError {
    /// The requested stretch factor.
    pub actual: u8,
}
