//! The file delivery table: which objects a FLUTE session carries (RFC 6726, section 3.4; RFC 3926,
//! section 3.4).
//!
//! ```
//! use fontana_wire::Fdt;
//!
//! let fdt = Fdt::parse(
//!     br#"<FDT-Instance xmlns="urn:ietf:params:xml:ns:fdt" Expires="3976218000">
//!             <File TOI="1" Content-Location="a/b.bin" Content-Length="500"/>
//!         </FDT-Instance>"#,
//! )?;
//! assert_eq!(fdt.files[0].transfer_length, Some(500));
//! assert_eq!(Fdt::parse(&fdt.emit())?, fdt);
//! # Ok::<(), fontana_wire::FdtError>(())
//! ```

mod emit;
mod parse;

use crate::content::ContentEncoding;
use crate::id::Toi;
use crate::ntp::NtpSeconds;
use crate::printable::Printable;
use fontana_fec::Oti;
use std::fmt;

/// One FDT instance: what was sent under [`Toi::FDT`], decoded. Its instance id is in EXT_FDT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fdt {
    /// Until when it describes packets that arrive.
    pub expires: NtpSeconds,
    /// No later instance of the session will describe another file.
    pub complete: bool,
    /// The files. No two have the same TOI.
    pub files: Vec<FdtFile>,
}

/// One file of an FDT, with what the instance says for all of them filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FdtFile {
    /// The object that is this file. Not [`Toi::FDT`].
    pub toi: Toi,
    /// What the file is called: an identifier, a URI, and anybody's.
    /// [`parse_content_location`](crate::parse_content_location) makes a path of it.
    pub content_location: String,
    /// Bytes of the file before content encoding.
    pub content_length: Option<u64>,
    /// Bytes of the object; those of the file if there is no content encoding.
    pub transfer_length: Option<u64>,
    /// Media type.
    pub content_type: Option<String>,
    /// How the file was compressed to make the object.
    pub content_encoding: Option<FdtContentEncoding>,
    /// MD5 of the file before content encoding: against accidents only.
    pub content_md5: Option<[u8; 16]>,
    /// The code, if it was named at all: also one that is not ours.
    pub fec_encoding_id: Option<u8>,
    /// The object's transmission information, if everything was given and the code is ours.
    /// Otherwise EXT_FTI has it, or nobody.
    pub oti: Option<Oti>,
}

/// The value of Content-Encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FdtContentEncoding {
    /// One that [`decode_bounded`](crate::decode_bounded) decodes.
    Known(ContentEncoding),
    /// Another one; such a file cannot be received.
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

/// Most files that a receiver takes from a session: a table of so many takes a few tens of megabytes
/// of memory.
pub(crate) const MAX_FILES: usize = 100_000;

/// How large a table may be. Anyone who can send to the group can send one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdtLimits {
    /// Most bytes of the object that carries it: for the one who collects its symbols.
    pub encoded_bytes: u64,
    /// Most bytes of XML, after content decoding.
    pub decoded_bytes: usize,
    /// Most bytes of XML for a byte that was sent, see [`DecodeLimits::ratio`](crate::DecodeLimits).
    pub decoded_ratio: u64,
    /// Most files.
    pub files: usize,
    /// Most attributes of an element. The schema knows 15; products add about as many.
    pub attributes: usize,
    /// Deepest nesting of elements. The schema knows 2.
    pub depth: usize,
}

impl Default for FdtLimits {
    /// Tables of a hundred thousand files, in a few tens of megabytes of memory.
    fn default() -> Self {
        Self {
            encoded_bytes: 1 << 20,
            decoded_bytes: 8 << 20,
            // Tables in which every line resembles the one before reach about 35 with zlib.
            decoded_ratio: 200,
            files: MAX_FILES,
            attributes: 64,
            depth: 16,
        }
    }
}

/// Why bytes are not an FDT instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FdtError {
    /// One of [`FdtLimits`] is exceeded.
    #[error("the FDT has more than {limit} {what}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: usize,
    },
    /// The content encoding that EXT_CENC names could not be undone.
    #[error("the FDT cannot be decoded: {0}")]
    ContentEncoding(String),
    /// Not UTF-8.
    #[error("the FDT is not UTF-8")]
    Encoding,
    /// Not well-formed XML.
    #[error("the FDT is not well-formed, near byte {position}: {}", Printable(.reason))]
    Xml {
        /// Bytes read so far.
        position: u64,
        /// The XML parser's words, which may quote the document.
        reason: String,
    },
    /// Document types and the entities they define are ways to attack a parser.
    #[error("the FDT has a document type declaration")]
    DocumentType,
    /// The outermost element is not `FDT-Instance`, or not the only one.
    #[error("the FDT's root element is not FDT-Instance")]
    Root,
    /// An attribute that must be there is not.
    #[error("the FDT lacks the attribute {attribute} of an element {element}")]
    Missing {
        /// The element.
        element: &'static str,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute's value is not of its type.
    #[error("the FDT's attribute {attribute} has the value {value:?}")]
    Value {
        /// The attribute.
        attribute: &'static str,
        /// Its value, cut to a length that can be shown.
        value: String,
    },
    /// Two files with one TOI.
    #[error("the FDT describes TOI {0} twice")]
    RepeatedToi(Toi),
}
