//! Compound objects: the header, its checksum and its metadata.

use super::checksum::InternetChecksum;
use super::error::FcastError;
use super::metadata::CompoundMetadata;
use crate::bytes::Reader;
use crate::content::{ContentEncoding, DecodeError, DecodeLimits, decode_bounded};

/// What the data of a compound object are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompoundHeader {
    /// A file, or a slice of one.
    Object(CompoundMetadata),
    /// The list of a [`CarouselInstance`], of which the header knows all but the list.
    Descriptor(CompoundMetadata),
}

/// The head of a compound object, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compound {
    /// What it says.
    pub header: CompoundHeader,
    /// Where the data begin: after the header and its padding.
    pub data_offset: usize,
    /// If the checksum is over the whole object, the sum of the header: the data are to be added
    /// before it can be [judged](InternetChecksum::is_right). A checksum over the header alone was
    /// right.
    pub sum: Option<InternetChecksum>,
}

/// Bytes of the fields before the metadata.
const FIXED_SIZE: usize = 8;
const GLOBAL_CHECKSUM: u8 = 0x02;
const DESCRIPTOR: u8 = 0x01;

impl Compound {
    /// Bytes of every header: as many must be known for [`Compound::header_size`].
    pub const FIXED_SIZE: usize = FIXED_SIZE;
    /// Longest header that is read. The metadata that the RFC defines take 300 bytes and a name.
    pub const MAX_HEADER_SIZE: usize = 64 << 10;
    /// Longest list of a descriptor that is read, and longest descriptor without its header.
    pub const MAX_LIST_SIZE: usize = 1 << 20;

    /// Bytes of the header of an object of `object_size` bytes, padding included, that begins with
    /// `start`: at most [`Compound::MAX_HEADER_SIZE`], and no more than the object has.
    ///
    /// # Errors
    /// [`FcastError`] if that is no header, or one that is too long.
    pub fn header_size(start: &[u8], object_size: u64) -> Result<usize, FcastError> {
        Fixed::parse(start, object_size).map(|fixed| fixed.padded_size)
    }

    /// Reads the header in the first [`Compound::header_size`] bytes of an object of `object_size`
    /// bytes.
    ///
    /// # Errors
    /// [`FcastError`].
    pub fn parse_header(start: &[u8], object_size: u64) -> Result<Self, FcastError> {
        let fixed = Fixed::parse(start, object_size)?;
        let Fixed { size, padded_size, .. } = fixed;
        let truncated =
            FcastError::Truncated { expected: padded_size as u64, actual: start.len() as u64 };
        let header = start.get(..size).ok_or(truncated.clone())?;
        let padded = start.get(..padded_size).ok_or(truncated)?;
        // What is summed up decides whether the padding, which should be zeros, counts.
        let mut sum = InternetChecksum::default();
        sum.add(if fixed.is_global { padded } else { header });
        if !fixed.is_global && !sum.is_right() {
            return Err(FcastError::Checksum);
        }
        let text = fixed.decode(header.get(FIXED_SIZE..).unwrap_or_default())?;
        let metadata = CompoundMetadata::parse(&text)?;
        Ok(Self {
            header: match fixed.is_descriptor {
                true => CompoundHeader::Descriptor(metadata),
                false => CompoundHeader::Object(metadata),
            },
            data_offset: padded_size,
            sum: fixed.is_global.then_some(sum),
        })
    }

    /// Reads the header of a whole object, and checks its checksum.
    ///
    /// # Errors
    /// [`FcastError`].
    pub fn parse(object: &[u8]) -> Result<Self, FcastError> {
        let compound = Self::parse_header(object, object.len() as u64)?;
        if let Some(mut sum) = compound.sum {
            sum.add(object.get(compound.data_offset..).unwrap_or_default());
            if !sum.is_right() {
                return Err(FcastError::Checksum);
            }
        }
        Ok(compound)
    }
}

impl CompoundHeader {
    /// What is said of the data.
    pub fn metadata(&self) -> &CompoundMetadata {
        match self {
            Self::Object(metadata) | Self::Descriptor(metadata) => metadata,
        }
    }

    /// The header, and its padding, of an object with `data_size` bytes of data whose checksum is
    /// `data`: a checksum over the whole object.
    pub fn emit(&self, data: InternetChecksum, data_size: u64) -> Vec<u8> {
        let text = self.metadata().emit();
        let flags = match self {
            Self::Object(_) => GLOBAL_CHECKSUM,
            Self::Descriptor(_) => GLOBAL_CHECKSUM | DESCRIPTOR,
        };
        let mut header = vec![flags, 0, 0, 0];
        header.extend(((FIXED_SIZE + text.len()) as u32).to_be_bytes());
        header.extend_from_slice(text.as_bytes());
        if data_size > 0 {
            header.resize(header.len().next_multiple_of(4), 0);
        }
        let mut sum = InternetChecksum::default();
        sum.add(&header);
        let [high, low] = sum.followed_by(data).checksum().to_be_bytes();
        for (byte, value) in header.iter_mut().skip(2).zip([high, low]) {
            *byte = value;
        }
        header
    }

    /// The whole object.
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut sum = InternetChecksum::default();
        sum.add(data);
        let mut object = self.emit(sum, data.len() as u64);
        object.extend_from_slice(data);
        object
    }
}

/// The fields before the metadata.
struct Fixed {
    is_global: bool,
    is_descriptor: bool,
    /// How the metadata are compressed.
    encoding: ContentEncoding,
    /// Bytes of the header without padding, and with it.
    size: usize,
    padded_size: usize,
}

impl Fixed {
    fn parse(start: &[u8], object_size: u64) -> Result<Self, FcastError> {
        let mut reader = Reader::new(start);
        let truncated =
            FcastError::Truncated { expected: FIXED_SIZE as u64, actual: start.len() as u64 };
        let fields = reader.array::<4>().zip(reader.u32()).ok_or(truncated)?;
        let ([flags, format_and_encoding, _, _], length) = fields;
        if flags >> 5 != 0 {
            return Err(FcastError::Version(flags >> 5));
        }
        // The three bits after the version are reserved and ignored.
        let (format, encoding) = (format_and_encoding >> 4, format_and_encoding & 0xF);
        if format != 0 {
            return Err(FcastError::Format(format));
        }
        let encoding = match encoding {
            0 => ContentEncoding::Null,
            1 => ContentEncoding::Gzip,
            other => return Err(FcastError::Encoding(other)),
        };
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        if size < FIXED_SIZE {
            return Err(FcastError::HeaderLength(length));
        }
        if size > Compound::MAX_HEADER_SIZE {
            let limit = Compound::MAX_HEADER_SIZE;
            return Err(FcastError::Limit { what: "bytes of FCAST header", limit });
        }
        // Without data there is no padding.
        let has_data = object_size > u64::from(length);
        let padded_size = if has_data { size.next_multiple_of(4) } else { size };
        if padded_size as u64 > object_size {
            let expected = padded_size as u64;
            return Err(FcastError::Truncated { expected, actual: object_size });
        }
        Ok(Self {
            is_global: flags & GLOBAL_CHECKSUM != 0,
            is_descriptor: flags & DESCRIPTOR != 0,
            encoding,
            size,
            padded_size,
        })
    }

    /// The metadata as text.
    fn decode(&self, metadata: &[u8]) -> Result<String, FcastError> {
        let text = match (self.encoding, metadata) {
            (ContentEncoding::Null, metadata) => metadata.to_vec(),
            // Nothing is not compressed.
            (_, []) => Vec::new(),
            (encoding, metadata) => {
                decode(encoding, metadata, Compound::MAX_HEADER_SIZE, "the FCAST metadata")?
            }
        };
        String::from_utf8(text).map_err(|_| FcastError::Utf8)
    }
}

/// Decompresses something small.
pub(super) fn decode(
    encoding: ContentEncoding,
    bytes: &[u8],
    limit: usize,
    what: &'static str,
) -> Result<Vec<u8>, FcastError> {
    let mut decoded = Vec::new();
    // The limit on the output bounds what little that deflate could make of it.
    let limits = DecodeLimits { output_bytes: limit as u64, ratio: MAX_RATIO };
    decode_bounded(encoding, bytes, &mut decoded, &limits).map_err(|error: DecodeError| {
        FcastError::ContentEncoding { what, reason: error.to_string() }
    })?;
    Ok(decoded)
}

/// Most output for a byte of compressed metadata or lists, beyond the first 64 KiB: lists of numbers
/// that count up reach about 20.
const MAX_RATIO: u64 = 200;
