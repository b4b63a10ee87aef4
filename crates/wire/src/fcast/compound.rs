//! Compound objects: the header, its checksum and its metadata.

use super::checksum::InternetChecksum;
use super::error::FcastError;
use super::metadata::CompoundMetadata;
use crate::bytes::Reader;
use crate::content::{ContentEncoding, DecodeError, DecodeLimits, decode_bounded};

/// Kind of a compound object, with its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompoundHeader {
    /// A file, or a slice of one.
    Object(CompoundMetadata),
    /// The list of a [`CarouselInstance`](crate::CarouselInstance), whose other fields are in the
    /// header.
    Descriptor(CompoundMetadata),
}

/// The parsed header of a compound object.
///
/// A *compound object* consists of a header with the metadata of a file, or of a slice of a file,
/// and of its bytes, which may be compressed. A *carousel instance descriptor* is a compound object
/// whose bytes list the objects that are being sent. FCAST has no other table: EXT_FTI carries the
/// transmission information of the objects.
///
/// ```text
/// +-----+-----+-+-+-------+-------+---------------+
/// |  0  |  0  |G|C| MDFmt | MDEnc |   checksum    |    G: of the whole object, or of the header
/// +-----+-----+-+-+-------+-------+---------------+    C: the object is a descriptor
/// |  length of the header without its padding     |
/// +-----------------------------------------------+
/// |  metadata: "Name: value" CRLF ...   | padding |    padding to whole words if data follows
/// +-------------------------------------+---------+
/// |  data ...                                     |
/// ```
///
/// ```
/// use fontana_wire::{Compound, CompoundHeader, CompoundMetadata};
///
/// let metadata = CompoundMetadata {
///     content_location: Some("example_1.txt".to_owned()),
///     ..CompoundMetadata::default()
/// };
/// let object = CompoundHeader::Object(metadata).with_data(b"hello world\n");
/// let compound = Compound::parse(&object)?;
/// assert_eq!(compound.header.metadata().content_location.as_deref(), Some("example_1.txt"));
/// assert_eq!(&object[compound.data_offset..], b"hello world\n");
/// # Ok::<(), fontana_wire::FcastError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compound {
    /// Kind and metadata.
    pub header: CompoundHeader,
    /// Offset of the data, after the header and its padding.
    pub data_offset: usize,
    /// Sum of the header, if the checksum covers the whole object. The caller adds the data and
    /// calls [`is_right`](InternetChecksum::is_right). `None`: the checksum covers the header alone
    /// and was right.
    pub sum: Option<InternetChecksum>,
}

/// Size in bytes of the fields before the metadata.
const FIXED_SIZE: usize = 8;
const GLOBAL_CHECKSUM: u8 = 0x02;
const DESCRIPTOR: u8 = 0x01;

impl Compound {
    /// Size in bytes of the shortest header, and of the input that [`Compound::header_size`] needs.
    pub const FIXED_SIZE: usize = FIXED_SIZE;
    /// Longest header in bytes that is accepted. The metadata that the RFC defines take 300 bytes
    /// plus a name.
    pub const MAX_HEADER_SIZE: usize = 64 << 10;
    /// Longest list of a descriptor in bytes that is accepted, and longest descriptor without its
    /// header.
    pub const MAX_LIST_SIZE: usize = 1 << 20;

    /// Size in bytes of the header of an object that begins with `start`, padding included: at most
    /// [`Compound::MAX_HEADER_SIZE`] and at most `object_size`, the size of the object.
    ///
    /// # Errors
    /// [`FcastError`] if `start` is not a header, or if the header is too long.
    pub fn header_size(start: &[u8], object_size: u64) -> Result<usize, FcastError> {
        Fixed::parse(start, object_size).map(|fixed| fixed.padded_size)
    }

    /// Parses the header in the first [`Compound::header_size`] bytes of an object of `object_size`
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
        // The padding, normally zeros, counts only in the checksum over the whole object.
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

    /// Parses the header of a whole object, and checks its checksum.
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
    /// Metadata of the object or descriptor.
    pub fn metadata(&self) -> &CompoundMetadata {
        match self {
            Self::Object(metadata) | Self::Descriptor(metadata) => metadata,
        }
    }

    /// Header with padding of an object with `data_size` bytes of data. Its checksum covers the
    /// whole object; `data` is the sum of the data.
    pub fn emit(&self, data: InternetChecksum, data_size: u64) -> Vec<u8> {
        let text = self.metadata().emit();
        let flags = match self {
            Self::Object(_) => GLOBAL_CHECKSUM,
            Self::Descriptor(_) => GLOBAL_CHECKSUM | DESCRIPTOR,
        };
        let mut header = vec![flags, 0, 0, 0];
        header.extend((FIXED_SIZE.saturating_add(text.len()) as u32).to_be_bytes());
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

    /// The whole object: header, padding and data.
    pub fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut sum = InternetChecksum::default();
        sum.add(data);
        let mut object = self.emit(sum, data.len() as u64);
        object.extend_from_slice(data);
        object
    }
}

/// The parsed fields before the metadata.
struct Fixed {
    is_global: bool,
    is_descriptor: bool,
    /// Compression of the metadata.
    encoding: ContentEncoding,
    /// Size of the header in bytes, without and with padding.
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

    /// The metadata as text, decompressed.
    fn decode(&self, metadata: &[u8]) -> Result<String, FcastError> {
        let text = match (self.encoding, metadata) {
            (ContentEncoding::Null, metadata) => metadata.to_vec(),
            // Empty metadata are not compressed.
            (_, []) => Vec::new(),
            (encoding, metadata) => {
                decode(encoding, metadata, Compound::MAX_HEADER_SIZE, "the FCAST metadata")?
            }
        };
        String::from_utf8(text).map_err(|_| FcastError::Utf8)
    }
}

/// Decompresses metadata or a list: at most `limit` bytes.
pub(super) fn decode(
    encoding: ContentEncoding,
    bytes: &[u8],
    limit: usize,
    what: &'static str,
) -> Result<Vec<u8>, FcastError> {
    let mut decoded = Vec::new();
    // The limit on the output is what bounds memory; the ratio only ends an attack earlier.
    let limits = DecodeLimits { output_bytes: limit as u64, ratio: MAX_RATIO };
    decode_bounded(encoding, bytes, &mut decoded, &limits).map_err(|error: DecodeError| {
        FcastError::ContentEncoding { what, reason: error.to_string() }
    })?;
    Ok(decoded)
}

/// Largest output per byte of compressed metadata or lists, beyond the first 64 KiB. Lists of
/// consecutive numbers reach about 20.
const MAX_RATIO: u64 = 200;
