//! Names and numbers of the content encodings of FLUTE and FCAST.

use std::fmt;

/// Numbers of the encodings in EXT_CENC (RFC 6726, section 3.4.3).
const NULL: u8 = 0;
const ZLIB: u8 = 1;
const DEFLATE: u8 = 2;
const GZIP: u8 = 3;

/// Compression of an object or of an FDT instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentEncoding {
    /// No compression.
    #[default]
    Null,
    /// zlib (RFC 1950).
    Zlib,
    /// Deflate (RFC 1951) without a wrapper; see
    /// [`decode_bounded`](crate::decode_bounded) for senders that mean zlib.
    Deflate,
    /// gzip (RFC 1952).
    Gzip,
}

impl ContentEncoding {
    /// The encoding with this number in EXT_CENC; `None` if the number is not assigned.
    pub const fn from_cenc(cenc: u8) -> Option<Self> {
        match cenc {
            NULL => Some(Self::Null),
            ZLIB => Some(Self::Zlib),
            DEFLATE => Some(Self::Deflate),
            GZIP => Some(Self::Gzip),
            _ => None,
        }
    }

    /// Number of the encoding in EXT_CENC.
    pub const fn cenc(self) -> u8 {
        match self {
            Self::Null => NULL,
            Self::Zlib => ZLIB,
            Self::Deflate => DEFLATE,
            Self::Gzip => GZIP,
        }
    }

    /// The encoding with this name in the FDT, in any case; `None` if the name is not known.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Null, Self::Zlib, Self::Deflate, Self::Gzip]
            .into_iter()
            .find(|encoding| encoding.name().eq_ignore_ascii_case(name))
    }

    /// Name of the encoding in the FDT.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Zlib => "zlib",
            Self::Deflate => "deflate",
            Self::Gzip => "gzip",
        }
    }
}

impl fmt::Display for ContentEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
