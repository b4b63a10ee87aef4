//! Parsers and emitters of everything that Fontana puts on the wire.
//!
//! Every parser is total. For any input it returns a value or an error that says what is wrong, in
//! time and memory proportional to the input. It copies no symbols. `parse` and `emit` are inverse
//! to each other for the formats that this crate defines. For the formats of RFCs, `parse` accepts
//! the variants in use and `emit` writes one form.
//!
//! ```
//! use fontana_fec::{EncodingId, Esi, Sbn};
//! use fontana_wire::{HeaderFields, Packet, Toi, Tsi, emit_payload_id};
//!
//! let mut datagram = Vec::new();
//! HeaderFields { codepoint: 6, ..HeaderFields::new(Tsi(7), Some(Toi(1))) }.emit(&mut datagram);
//! emit_payload_id(EncodingId::RAPTORQ, Sbn(0), Esi(3), &mut datagram);
//! datagram.extend_from_slice(b"symbol");
//!
//! let packet = Packet::parse(&datagram)?;
//! assert_eq!((packet.header.tsi, packet.header.toi), (Tsi(7), Some(Toi(1))));
//! let payload = packet.payload(EncodingId::RAPTORQ)?.ok_or("no payload")?;
//! assert_eq!((payload.sbn, payload.esi, payload.symbol), (Sbn(0), Esi(3), &b"symbol"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | items | source |
//! |---|---|---|
//! | `alc`, `lct`, `extension` | packets: [`Packet`], [`HeaderFields`], [`emit_payload_id`] | RFC 5651, RFC 5775 |
//! | `seal` | sealed packets: [`SealedDatagram`], [`PacketSeal`] | RFC 6584; `docs/wire.md` |
//! | [`fti`] | object transmission information in packets | RFC 5445, RFC 6330 |
//! | `fdt` | file delivery table: [`Fdt`] | RFC 6726, RFC 3926 |
//! | `fcast` | compound objects, carousel instances: [`Compound`], [`CarouselInstance`] | RFC 6968 |
//! | `content` | content encodings: [`decode_bounded`] | RFC 1950 to 1952 |
//! | `head`, `manifest`, `stream` | [`SessionHead`], [`Manifest`], [`StreamIndex`] | `docs/wire.md` |
//! | `digests` | signed digests of symbols: [`DigestGroup`], [`DigestList`] | Wong and Lam 1998; `docs/wire.md` |
//! | `congestion`, `cci`, `numbering` | congestion control: [`CongestionControl`], [`RlcCci`], [`FlidCci`], [`WebrcCci`], [`Numbering`] | RFC 3738; `docs/wire.md` |
//! | `hash`, `key` | [`BlockHasher`], [`SecretKey`] | BLAKE3, RFC 8032 |
//! | `path`, `location`, `printable` | received names: [`RelativePath`], [`parse_content_location`], [`Printable`] | RFC 3986 |
//! | [`feedback`], [`report`], [`repair_request`], [`rate_report`] | [`Feedback`], [`ReceiverReport`], [`RepairRequest`], [`RateReport`] | `docs/wire.md` |
//! | [`roll_call`] | [`RollCall`] | `docs/wire.md` |
//! | `share` | what receivers of one site send each other: [`ShareMessage`] | `docs/wire.md` |
//! | `shelf` | repair symbols in files: [`ShelfIndex`] | `docs/wire.md` |
//! | `fresh` | repair symbols on request: [`FreshIndex`], [`FreshRequest`] | `docs/wire.md` |
//! | `held` | blocks of a mirror that is still receiving: [`HeldIndex`] | `docs/wire.md` |
//! | `ticket`, `secret`, `channels` | [`Ticket`], [`TicketSecret`], [`ChannelGroups`] | `docs/wire.md` |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
// Any host can write the lengths and numbers that are parsed here: none of them is an index, and
// none overflows.
#![deny(clippy::indexing_slicing)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod alc;
mod bytes;
mod cci;
mod channels;
mod congestion;
mod content;
mod digests;
mod extension;
mod fcast;
mod fdt;
pub mod feedback;
mod fresh;
pub mod fti;
mod hash;
mod head;
mod held;
mod id;
mod key;
mod lct;
mod location;
mod manifest;
mod ntp;
mod numbering;
mod oti;
mod packet_error;
mod path;
mod printable;
pub mod rate_report;
mod receiver_id;
mod records;
pub mod repair_request;
pub mod report;
pub mod roll_call;
mod schedule;
mod seal;
mod secret;
mod share;
mod shelf;
mod stream;
mod ticket;
mod varint;
mod web;

pub use alc::{Packet, Payload, emit_payload_id, emit_small_block_payload_id, payload_id_size};
pub use cci::{FlidCci, RlcCci, WebrcCci};
pub use channels::ChannelGroups;
pub use congestion::{
    CongestionControl, CongestionError, FlidSl, LayerRates, MAX_CHANNELS, Rlc, SyncSpacing, Webrc,
};
pub use content::{ContentEncoding, DecodeError, DecodeLimits, decode_bounded, encode};
pub use digests::{DigestGroup, DigestKey, DigestList, DigestListError, GroupNumber, SymbolDigest};
pub use extension::{
    AuthExtension, Extension, Extensions, ExtensionsIter, FdtExtension, FluteVersion, TimeExtension,
};
pub use fcast::{
    CarouselInstance, Compound, CompoundHeader, CompoundMetadata, Equivalence, FcastError,
    InternetChecksum, Slice,
};
pub use fdt::{
    Fdt, FdtContentEncoding, FdtError, FdtFile, FdtLimits, FdtMd5, FdtReading, InvalidEntry,
};
pub use feedback::echo::RollCallEcho;
pub use feedback::error::FeedbackError;
pub use feedback::{Feedback, FeedbackDatagram, FeedbackHeader, OpenedFeedback};
pub use fresh::{
    FreshFrame, FreshIndex, FreshIndexError, FreshRequest, FreshRequestError, FreshShare,
    FreshStart,
};
pub use hash::{
    BlockHasher, Hash, HexError, RunHasher, manifest_hash, object_hash, stream_index_hash,
    tree_hash,
};
pub use head::{
    ClaimedVersion, ContentKind, HeadError, InstanceId, ObjectRef, SessionHead, UnverifiedHead,
};
pub use held::{HeldIndex, HeldIndexError, HeldRun};
pub use id::{Cci, Toi, Tsi};
pub use key::{KeyError, PublicKey, SecretKey};
pub use lct::{Header, HeaderError, HeaderFields, IdWidths, ReservedBits};
pub use location::{emit_content_location, parse_content_location};
pub use manifest::{
    CaseClash, DirectoryEntry, Entry, FileEntry, FileRun, Manifest, ManifestError, ManifestLimits,
    ManifestObject, Metadata, PlacedSegment, Segment, SymlinkEntry,
};
pub use ntp::NtpSeconds;
pub use numbering::{Numbering, SequenceNumber};
pub use packet_error::PacketError;
pub use path::{PathError, RelativePath};
pub use printable::Printable;
pub use rate_report::RateReport;
pub use receiver_id::{LabelError, ReceiverId, ReceiverLabel};
pub use records::{HeadRecords, RecordError};
pub use repair_request::{BlockNeed, RepairRequest, SymbolMap};
pub use report::{ReceiverReport, ReceiverState};
pub use roll_call::{
    Fingerprint, RateCall, RepairCall, RollCall, RollCallError, RollCallList, UnverifiedRollCall,
};
pub use schedule::{AnnouncedSchedule, LayerSymbols};
pub use seal::{
    PacketSeal, SEAL_BYTES, SealField, SealId, SealMode, SealNonce, SealedDatagram, SessionSeal,
    TAG_BYTES,
};
pub use secret::{TicketSecret, TicketSecretError};
pub use share::sealed::{MemberId, SealedShare};
pub use share::{
    MissingSymbols, ShareBody, ShareContent, ShareError, ShareMessage, ShareRequest, ShareSymbol,
    SharedBlock,
};
pub use shelf::{ShelfIndex, ShelfIndexError, ShelfLayout, ShelfNumber, ShelfRun};
pub use stream::{Fragment, PlacedFragment, StreamError, StreamIndex, StreamState};
pub use ticket::{ForeignFormat, Ticket, TicketError};
pub use web::{WebAddress, WebAddressError, WebTicket, WebTicketError};
