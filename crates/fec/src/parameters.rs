//! The parameters of a FEC scheme as protocols carry them, whatever the code.

use crate::ids::EncodingId;

/// The FEC Object Transmission Information that belongs to the code (RFC 5052, section 5): what a
/// FEC Encoding ID's formats have fields for. It is plain data that may have come from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeParameters {
    /// The FEC Encoding ID, which says what else there is.
    pub encoding_id: EncodingId,
    /// The FEC Instance ID, of the FEC Encoding IDs from 128 on.
    pub instance_id: Option<u16>,
    /// `B`: most source symbols of a block.
    pub max_source_block_length: Option<u32>,
    /// `max_n`: most encoding symbols of a block.
    pub max_encoding_symbols: Option<u16>,
    /// Scheme-specific information.
    pub information: Information,
}

impl SchemeParameters {
    /// Those of a FEC scheme without parameters.
    pub const fn new(encoding_id: EncodingId, instance_id: Option<u16>) -> Self {
        Self {
            encoding_id,
            instance_id,
            max_source_block_length: None,
            max_encoding_symbols: None,
            information: Information::EMPTY,
        }
    }

    /// `B`, in the type that the code has for it.
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

    /// The scheme-specific information, of `N` bytes.
    pub(crate) fn information<const N: usize>(&self) -> Result<&[u8; N], CodeError> {
        let name = "the scheme-specific information";
        self.information.bytes().try_into().map_err(|_| CodeError::Parameter(name))
    }
}

/// Most bytes of scheme-specific information: LT has 21.
const MAX_INFORMATION_SIZE: usize = 24;

/// Scheme-specific information: bytes that only the code understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
    bytes: [u8; MAX_INFORMATION_SIZE],
    size: u8,
}

impl Information {
    /// None.
    pub const EMPTY: Self = Self { bytes: [0; MAX_INFORMATION_SIZE], size: 0 };

    /// A copy of `bytes`; `None` if they are more than any code has.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut this = Self::EMPTY;
        this.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        this.size = bytes.len() as u8;
        Some(this)
    }

    /// Appends bytes, which have room.
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

/// Under which FEC Encoding ID and FEC Instance IDs parameters of one form travel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) encoding_id: EncodingId,
    /// `None` if the FEC Encoding ID has none.
    pub(crate) instance_ids: Option<&'static [u16]>,
    /// Bytes of scheme-specific information.
    pub(crate) information_size: usize,
}

impl Format {
    /// Whether these ids name it.
    pub(crate) fn is_of(&self, encoding_id: EncodingId, instance_id: Option<u16>) -> bool {
        self.encoding_id == encoding_id
            && match (self.instance_ids, instance_id) {
                (None, _) => true,
                (Some(ids), Some(id)) => ids.contains(&id),
                (Some(_), None) => false,
            }
    }
}

/// A FEC scheme that is none of this crate's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// No scheme has this FEC Encoding ID.
    #[error("FEC Encoding ID {0} is not supported")]
    EncodingId(u8),
    /// No code has this FEC Instance ID under this FEC Encoding ID.
    #[error("FEC Instance ID {instance_id} of FEC Encoding ID {encoding_id} is not supported")]
    InstanceId {
        /// 128 or 129.
        encoding_id: u8,
        /// What was asked for.
        instance_id: u16,
    },
    /// No Tornado code has this stretch factor.
    #[error(transparent)]
    Stretch(#[from] StretchError),
    /// The profile of an LT code is neither fast nor strict.
    #[error("an LT code of profile {0}, only 0 and 1 are known")]
    Profile(u8),
    /// A parameter of the code is missing or too large.
    #[error("{0} is missing or too large for the code")]
    Parameter(&'static str),
}

/// A stretch factor that the rule for Tornado's graphs does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a Tornado code that stretches a block by {actual}, it is 2 to 10")]
pub struct StretchError {
    /// What was asked for.
    pub actual: u8,
}
