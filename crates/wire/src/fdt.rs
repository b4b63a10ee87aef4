//! The file delivery table (FDT): the objects of a FLUTE session (RFC 6726, section 3.4; RFC 3926,
//! section 3.4).

mod emit;
mod parse;

use crate::content::ContentEncoding;
use crate::id::Toi;
use crate::ntp::NtpSeconds;
use crate::printable::Printable;
use fontana_fec::Oti;
use std::fmt;

/// One FDT instance: the decoded content of an object with [`Toi::FDT`]. Its instance id is in
/// EXT_FDT.
///
/// ```
/// use fontana_wire::{Fdt, FluteVersion};
///
/// let fdt = Fdt::parse(
///     br#"<FDT-Instance xmlns="urn:ietf:params:xml:ns:fdt" Expires="3976218000">
///             <File TOI="1" Content-Location="a/b.bin" Content-Length="500"/>
///         </FDT-Instance>"#,
/// )?;
/// assert_eq!(fdt.files[0].transfer_length, Some(500));
/// assert_eq!(Fdt::parse(&fdt.emit(FluteVersion::V2))?, fdt);
/// # Ok::<(), fontana_wire::FdtError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fdt {
    /// Time until which the instance describes packets that arrive.
    pub expires: NtpSeconds,
    /// True if no later instance of the session will describe another file.
    pub complete: bool,
    /// The files. No two have the same TOI.
    pub files: Vec<FdtFile>,
}

/// An FDT instance as it was read: its files, and the entries that describe none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdtReading {
    /// The instance, without the invalid entries.
    pub fdt: Fdt,
    /// The invalid entries, at most [`MAX`](InvalidEntry::MAX).
    pub invalid: Vec<InvalidEntry>,
}

/// An element `File` that describes no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidEntry {
    /// Its Content-Location, if it has one, truncated for display.
    pub content_location: Option<String>,
    /// What is wrong.
    pub error: FdtError,
}

impl InvalidEntry {
    /// Invalid entries of an instance that are reported: enough to see what the sender does.
    pub const MAX: usize = 16;
}

/// One file of an FDT. Attributes that it inherits from the instance are filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdtFile {
    /// Object that holds the file. Not [`Toi::FDT`].
    pub toi: Toi,
    /// Identifier of the file, a URI, not authenticated.
    /// [`parse_content_location`](crate::parse_content_location) makes a path of it.
    pub content_location: String,
    /// Length of the file in bytes before content encoding.
    pub content_length: Option<u64>,
    /// Length of the object in bytes; that of the file if there is no content encoding.
    pub transfer_length: Option<u64>,
    /// Media type.
    pub content_type: Option<String>,
    /// Compression that made the object from the file.
    pub content_encoding: Option<FdtContentEncoding>,
    /// MD5 of the file before content encoding; some senders give that of the object. It detects
    /// accidental damage only.
    pub content_md5: Option<FdtMd5>,
    /// FEC Encoding ID, if given; also one that Fontana does not support.
    pub fec_encoding_id: Option<u8>,
    /// Transmission information of the object, if it is complete and the code is supported.
    /// Otherwise the receiver needs EXT_FTI.
    pub oti: Option<Oti>,
}

impl FdtFile {
    /// Content type of an object of a Fontana session that is a part of a file, or a file without
    /// its holes: other programs cannot use it.
    pub const FRAGMENT_TYPE: &'static str = "application/vnd.fontana.fragment";
    /// Content type of an object of many files.
    pub const BUNDLE_TYPE: &'static str = "application/vnd.fontana.bundle";

    /// Whether only a receiver that knows the session's manifest can use the object.
    pub fn is_of_fontana(&self) -> bool {
        let of = self.content_type.as_deref();
        of.is_some_and(|of| matches!(of, Self::FRAGMENT_TYPE | Self::BUNDLE_TYPE))
    }
}

/// Value of Content-MD5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FdtMd5 {
    /// The digest.
    Digest([u8; 16]),
    /// Text that is no MD5 in base64, truncated for display. It says nothing of the file.
    Invalid(String),
}

/// Value of Content-Encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FdtContentEncoding {
    /// An encoding that [`decode_bounded`](crate::decode_bounded) decodes.
    Known(ContentEncoding),
    /// Another encoding. A receiver cannot receive the file.
    Unknown(String),
}

impl fmt::Display for FdtContentEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(encoding) => encoding.fmt(f),
            Self::Unknown(name) => f.write_str(name),
        }
    }
}

/// Largest number of files that a receiver takes from a session. A table of this size takes a few
/// tens of megabytes of memory.
pub(crate) const MAX_FILES: usize = 100_000;

/// Limits on the size of a table. Any host that can send to the group can send a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdtLimits {
    /// Largest object that carries a table, in bytes. The receiver that collects its symbols checks
    /// this limit.
    pub encoded_bytes: u64,
    /// Largest XML document in bytes, after content decoding.
    pub decoded_bytes: usize,
    /// Largest number of bytes of XML per byte received; see
    /// [`DecodeLimits::ratio`](crate::DecodeLimits).
    pub decoded_ratio: u64,
    /// Largest number of files.
    pub files: usize,
    /// Largest number of attributes of an element. The schema has 15; products add about as many.
    pub attributes: usize,
    /// Deepest nesting of elements. The schema has 2 levels.
    pub depth: usize,
}

impl Default for FdtLimits {
    /// Limits for tables of 100 000 files, in a few tens of megabytes of memory.
    fn default() -> Self {
        Self {
            encoded_bytes: 1 << 20,
            decoded_bytes: 8 << 20,
            // Tables in which every line resembles the previous one reach about 35 with zlib.
            decoded_ratio: 200,
            files: MAX_FILES,
            attributes: 64,
            depth: 16,
        }
    }
}

/// Reason why bytes are not an FDT instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FdtError {
    /// A size above one of [`FdtLimits`].
    #[error("the FDT has more than {limit} {what}")]
    Limit {
        /// Name of the limited quantity.
        what: &'static str,
        /// Largest value allowed.
        limit: usize,
    },
    /// Data that cannot be decoded with the content encoding of EXT_CENC.
    #[error("the FDT cannot be decoded: {0}")]
    ContentEncoding(String),
    /// A document that is not UTF-8.
    #[error("the FDT is not UTF-8")]
    Encoding,
    /// A document that is not well-formed XML.
    #[error("the FDT is not well-formed, near byte {position}: {}", Printable(.reason))]
    Xml {
        /// Bytes read so far.
        position: u64,
        /// Message of the XML parser, which may quote the document.
        reason: String,
    },
    /// A document type declaration. Document types and their entities are a way to attack a parser.
    #[error("the FDT has a document type declaration")]
    DocumentType,
    /// A root element other than `FDT-Instance`, or a second one.
    #[error("the FDT's root element is not FDT-Instance")]
    Root,
    /// A required attribute is missing.
    #[error("the FDT lacks the attribute {attribute} of an element {element}")]
    Missing {
        /// Name of the element.
        element: &'static str,
        /// Name of the attribute.
        attribute: &'static str,
    },
    /// An attribute's value does not have the attribute's type.
    #[error("the FDT's attribute {attribute} has the value {value:?}")]
    Value {
        /// Name of the attribute.
        attribute: &'static str,
        /// Its value, truncated for display.
        value: String,
    },
    /// Two files with one TOI.
    #[error("the FDT describes TOI {0} twice")]
    RepeatedToi(Toi),
}
