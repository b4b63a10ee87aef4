//! FCAST (RFC 6968): objects that carry their own metadata.
//!
//! A *compound object* consists of a header with the metadata of a file, or of a slice of a file,
//! and of its bytes, which may be compressed. A *carousel instance descriptor* is a compound object
//! whose bytes list the objects that are being sent. FCAST has no other table: EXT_FTI carries the
//! transmission information of the objects.
//!
//! ```text
//! +-----+-----+-+-+-------+-------+---------------+
//! |  0  |  0  |G|C| MDFmt | MDEnc |   checksum    |    G: of the whole object, or of the header
//! +-----+-----+-+-+-------+-------+---------------+    C: the object is a descriptor
//! |  length of the header without its padding     |
//! +-----------------------------------------------+
//! |  metadata: "Name: value" CRLF ...   | padding |    padding to whole words if data follows
//! +-------------------------------------+---------+
//! |  data ...                                     |
//! ```
//!
//! ```
//! use fontana_wire::{Compound, CompoundHeader, CompoundMetadata};
//!
//! let metadata = CompoundMetadata {
//!     content_location: Some("example_1.txt".to_owned()),
//!     ..CompoundMetadata::default()
//! };
//! let object = CompoundHeader::Object(metadata).with_data(b"hello world\n");
//! let compound = Compound::parse(&object)?;
//! assert_eq!(compound.header.metadata().content_location.as_deref(), Some("example_1.txt"));
//! assert_eq!(&object[compound.data_offset..], b"hello world\n");
//! # Ok::<(), fontana_wire::FcastError>(())
//! ```

mod carousel;
mod checksum;
mod compound;
mod error;
mod metadata;

pub use carousel::{CarouselInstance, Equivalence};
pub use checksum::InternetChecksum;
pub use compound::{Compound, CompoundHeader};
pub use error::FcastError;
pub use metadata::{CompoundMetadata, Slice};
