//! Parsers and emitters of everything that Fontana puts on the wire.
//!
//! | subject | items | source |
//! |---|---|---|
//! | packets | [`Packet`], [`HeaderFields`], [`emit_payload_id`] | RFC 5651, RFC 5775 |
//! | object transmission information | [`fti`] | RFC 5445, RFC 6330 |
//! | file delivery table | [`Fdt`] | RFC 6726, RFC 3926 |
//! | compound objects, carousel instances | [`Compound`], [`CarouselInstance`] | RFC 6968 |
//! | content encodings | [`decode_bounded`] | RFC 1950 to 1952 |
//! | session head, manifest, stream index | [`SessionHead`], [`Manifest`], [`StreamIndex`] | `docs/wire.md` |
//! | congestion control | [`CongestionControl`], [`RlcCci`], [`FlidCci`], [`WebrcCci`] | RFC 3738; `docs/wire.md` |
//! | hashes, keys | [`BlockHasher`], [`SecretKey`] | BLAKE3, RFC 8032 |
//! | tickets | [`Ticket`] | `docs/wire.md` |
//!
//! Every parser is total. For any input it returns a value or an error that says what is wrong, in
//! time and memory proportional to the input. It copies no symbols.
//!
//! `parse` and `emit` are inverse to each other for the formats that this crate defines. For the
//! formats of RFCs, `parse` accepts the variants in use and `emit` writes one form.

mod alc;
mod bytes;
mod cci;
mod channels;
mod congestion;
mod content;
mod extension;
mod fcast;
mod fdt;
pub mod fti;
mod hash;
mod head;
mod id;
mod key;
mod lct;
mod location;
mod manifest;
mod ntp;
mod oti;
mod packet_error;
mod path;
mod printable;
mod stream;
mod ticket;
mod varint;

pub use alc::{Packet, Payload, emit_payload_id, emit_small_block_payload_id, payload_id_size};
pub use cci::{FlidCci, RlcCci, WebrcCci};
pub use channels::ChannelGroups;
pub use congestion::{
    CongestionControl, CongestionError, FlidSl, LayerRates, MAX_CHANNELS, Rlc, SyncSpacing, Webrc,
};
pub use content::{ContentEncoding, DecodeError, DecodeLimits, decode_bounded};
pub use extension::{
    AuthExtension, Extension, Extensions, ExtensionsIter, FdtExtension, TimeExtension,
};
pub use fcast::{
    CarouselInstance, Compound, CompoundHeader, CompoundMetadata, Equivalence, FcastError,
    InternetChecksum, Slice,
};
pub use fdt::{Fdt, FdtContentEncoding, FdtError, FdtFile, FdtLimits};
pub use hash::{
    BlockHasher, Hash, HexError, manifest_hash, object_hash, stream_index_hash, tree_hash,
};
pub use head::{
    ClaimedVersion, ContentKind, HeadError, InstanceId, ObjectRef, SessionHead, UnverifiedHead,
};
pub use id::{Cci, Toi, Tsi};
pub use key::{KeyError, PublicKey, SecretKey};
pub use lct::{Header, HeaderError, HeaderFields, IdWidths, ReservedBits};
pub use location::{emit_content_location, parse_content_location};
pub use manifest::{
    CaseClash, DirectoryEntry, Entry, FileEntry, Manifest, ManifestError, ManifestLimits,
    ManifestObject, Metadata, PlacedSegment, Segment, SymlinkEntry,
};
pub use ntp::NtpSeconds;
pub use packet_error::PacketError;
pub use path::{PathError, RelativePath};
pub use printable::Printable;
pub use stream::{Fragment, PlacedFragment, StreamError, StreamIndex, StreamState};
pub use ticket::{Ticket, TicketError};
