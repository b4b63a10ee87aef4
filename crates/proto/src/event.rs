//! What an endpoint tells the application.

use crate::endpoint::BlockId;
use crate::receiver::{FileRefusal, SessionKey};
use fontana_wire::{Hash, Manifest, PublicKey, SessionHead, StreamIndex, Toi};
use std::ops::Range;
use std::sync::Arc;

/// How far a receiver may trust what it received (DESIGN, section 5). Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verified {
    /// Lengths and checksums agree, nothing more: plain FLUTE and FCAST.
    None,
    /// Every byte matches a manifest whose hash was known or accepted beforehand.
    Digest,
    /// Every byte matches a manifest that the expected publisher has signed.
    Signed,
}

/// Why a session on the joined channels is not the one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Its TSI is not the ticket's.
    OtherSession,
    /// Its manifest is not the ticket's.
    OtherManifest,
    /// The publisher's key was expected, and the head is not signed with it.
    WrongKey,
    /// The head's expiry has passed.
    Expired,
    /// Its version is not above the one that was asked for.
    OldVersion,
    /// Its manifest, or its file delivery table, does not parse or asks for more than the limits
    /// allow.
    BadManifest,
    /// The least that it brings is more than this receiver takes.
    TooFast,
    /// Its objects have more bytes, or blocks that take more memory to decode, than the limits allow.
    TooLarge,
}

/// Why no more of a stream can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamBreak {
    /// Its beginning had left the air when it was first heard of.
    Late,
    /// More of a fragment was lost than its repair symbols made good.
    Lost,
    /// As many fragments wait to be handed over as there is room for: the consumer, or this host, is
    /// slower than the sender.
    Behind,
    /// It has more bytes than the limits allow.
    TooLarge,
    /// A fragment was given up: its storage failed, or it was forged again and again.
    Failed,
    /// Its sender broke it off.
    BySender,
}

/// A session that was heard and could be received.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Names the session.
    pub session: SessionKey,
    /// Its head.
    pub head: Arc<SessionHead>,
    /// What it carries.
    pub manifest: Arc<Manifest>,
}

/// What an endpoint tells the application.
#[derive(Clone, Debug)]
pub enum Event {
    /// Sender: everything that was to be sent has been sent.
    Finished,
    /// Sender: an object's source failed; it is not sent any more.
    Withdrawn {
        /// The object.
        toi: Toi,
    },
    /// Receiver: a session is on offer; it is received at once if the configuration says so,
    /// or else when the application accepts it.
    Offered(Offer),
    /// Receiver: a session on the same channels was refused. Told once per session and reason.
    Rejected {
        /// The session.
        session: SessionKey,
        /// Why.
        reason: Rejection,
    },
    /// Receiver: the expected publisher has signed a newer version than the one that is being
    /// received, and sends it. Told once for each version; reception goes on as before, though perhaps
    /// nobody sends the older version any more.
    Superseded {
        /// The session that carries the newer one.
        session: SessionKey,
        /// Its version.
        version: u64,
    },
    /// Receiver: a manifest was accepted; reception has begun.
    Accepted {
        /// The session it came from; others that carry the same manifest add to it.
        session: SessionKey,
        /// The manifest.
        manifest: Arc<Manifest>,
        /// Its hash.
        hash: Hash,
        /// What its objects will be worth.
        verified: Verified,
    },
    /// Receiver: a stream is on offer, as [`Event::Offered`]. Told once.
    StreamOffered {
        /// The session.
        session: SessionKey,
        /// Its index at that moment.
        index: Arc<StreamIndex>,
    },
    /// Receiver: a stream was accepted; reception has begun.
    StreamAccepted {
        /// The session it came from.
        session: SessionKey,
        /// Its index at that moment.
        index: Arc<StreamIndex>,
        /// Who signs it. Without a ticket: whoever was heard first.
        key: PublicKey,
        /// What its bytes will be worth.
        verified: Verified,
    },
    /// Receiver: a fragment was handed over.
    FragmentDone {
        /// Its number.
        number: u32,
        /// Its place in the stream.
        range: Range<u64>,
    },
    /// Receiver: no more of the stream can be received; what was handed over is right.
    StreamBroken {
        /// The first byte that is missing.
        at: u64,
        /// Why.
        reason: StreamBreak,
    },
    /// Receiver: an earlier life had left something of what was accepted.
    Resumed {
        /// Source symbols that need not be received any more.
        symbols: u64,
    },
    /// Receiver, FCAST: the first object of a session was heard of, and is received with all others.
    CarouselFound {
        /// The session.
        session: SessionKey,
    },
    /// Receiver, plain FLUTE: a file was found in the file delivery table.
    FileFound {
        /// The object.
        toi: Toi,
        /// Its name, as the sender wrote it.
        content_location: String,
        /// Bytes of the object, as transported.
        transfer_length: u64,
    },
    /// Receiver, plain FLUTE or FCAST: a file of the table, or an object, is not received. The others
    /// are, and in the end there is [`Event::GivenUp`].
    FileRefused {
        /// The object.
        toi: Toi,
        /// Its name, as the sender wrote it.
        content_location: String,
        /// Why.
        reason: FileRefusal,
    },
    /// Receiver: enough symbols have arrived for the block.
    BlockSolved {
        /// The block.
        block: BlockId,
    },
    /// Receiver: the block's bytes are those of the manifest.
    BlockVerified {
        /// The block.
        block: BlockId,
    },
    /// Receiver: the block's bytes are wrong: a symbol was forged or damaged. It is received anew.
    BlockPoisoned {
        /// The block.
        block: BlockId,
        /// How often this has happened to the block.
        times: u32,
    },
    /// Receiver: enough has been heard of everything; the channels were left.
    HeardEnough,
    /// Receiver: an object is on disk under its final name.
    ObjectDone {
        /// The object.
        toi: Toi,
        /// What it is worth.
        verified: Verified,
    },
    /// Receiver: an object is given up: it was poisoned too often, or its storage failed.
    ObjectFailed {
        /// The object.
        toi: Toi,
        /// True if verification failed, false if the driver reported the failure.
        poisoned: bool,
    },
    /// Receiver: everything is on disk and verified as far as it can be.
    Complete,
    /// Receiver: every object is done or given up, and at least one is given up.
    GivenUp,
    /// Receiver: the congestion control of the session has joined or left channels.
    Level {
        /// Channels that are joined now.
        channels: u16,
        /// Bytes per second that they bring if nothing is lost, as far as is known; 0 = not known.
        rate_bytes_per_second: u64,
        /// Bytes of UDP payload of wanted sessions that arrived, per second, since the level changed
        /// last.
        received_bytes_per_second: u64,
    },
    /// Receiver: nothing of a session has arrived for a while; the channels were joined anew.
    Silence {
        /// True if nothing has ever arrived.
        ever_since_start: bool,
    },
}
