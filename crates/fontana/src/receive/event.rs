//! What a receiver reports while it runs.

use crate::error::Error;
use fontana_proto::{Offer, ReceiverStats, Rejection, SessionKey, Verified};
use fontana_wire::{Hash, Manifest, PublicKey, StreamIndex, Toi};
use std::time::Duration;

/// What a receiver reports while it runs.
#[derive(Debug)]
pub enum ReceiveEvent<'a> {
    /// A session is on offer. [`ReceiveHandle::accept`](crate::ReceiveHandle::accept) accepts it,
    /// unless the receiver accepts sessions by itself.
    Offered(&'a Offer),
    /// A session on the same group was refused. Reported once for each session and reason.
    Rejected {
        /// The session.
        session: SessionKey,
        /// Why.
        reason: Rejection,
    },
    /// Reception of a manifest's content has begun.
    Accepted {
        /// The session that announced it first.
        session: SessionKey,
        /// What is received.
        manifest: &'a Manifest,
        /// Its hash.
        hash: Hash,
        /// How the files are verified.
        verified: Verified,
    },
    /// A stream is on offer. [`ReceiveHandle::accept`](crate::ReceiveHandle::accept) accepts it,
    /// unless the receiver accepts sessions by itself.
    StreamOffered {
        /// The session.
        session: SessionKey,
        /// What is known of it.
        index: &'a StreamIndex,
    },
    /// Reception of a stream has begun.
    StreamAccepted {
        /// The session that announced it first.
        session: SessionKey,
        /// What is known of it.
        index: &'a StreamIndex,
        /// The key that signs it. Without a ticket, that of the first stream that was received:
        /// compare it with what the sender printed.
        key: PublicKey,
        /// How its bytes are verified.
        verified: Verified,
    },
    /// Only a part of what was accepted is received: what was asked for
    /// ([`ReceiveOptions::only`](crate::ReceiveOptions::only)).
    Selected(ReceivedPart),
    /// What is there already is being compared with the manifest
    /// ([`ReceiveOptions::skip_existing`](crate::ReceiveOptions::skip_existing)).
    Compared {
        /// Bytes that were compared.
        bytes: u64,
        /// How many there are.
        of: u64,
    },
    /// Symbols that an earlier run left, or that existing files hold, are not received again.
    Resumed {
        /// Source symbols that are not received again.
        symbols: u64,
        /// Source symbols of the whole content.
        source_symbols: u64,
    },
    /// An FCAST session was found. All of its objects are received.
    CarouselFound {
        /// The session.
        session: SessionKey,
    },
    /// A file of a plain FLUTE session was found, or, in an FCAST session, the first slice of one,
    /// or all of it, has arrived.
    FileFound {
        /// Its object, or that of the slice.
        toi: Toi,
        /// Its name, as the sender writes it: any bytes.
        name: &'a str,
        /// Bytes: of the object with plain FLUTE, of the file with FCAST.
        bytes: u64,
    },
    /// A block was corrupt, and is received again: an attacker forges packets, or a host is broken.
    Poisoned {
        /// The object.
        toi: Toi,
        /// How often this block was corrupt.
        times: u32,
    },
    /// Nothing has arrived for a while. The group was joined again.
    Silence {
        /// For how long nothing has arrived.
        duration: Duration,
        /// True if nothing of a session has ever arrived.
        ever_since_start: bool,
    },
    /// In a session of several channels: some were joined or left.
    Level {
        /// How many are joined now.
        channels: u16,
        /// Bytes of UDP payload that arrived per second since the level changed last.
        received_bytes_per_second: u64,
    },
    /// A channel of the session could not be joined: the session continues without it. Reported
    /// once for each channel.
    ChannelRefused {
        /// The channel.
        channel: u8,
        /// Why.
        error: &'a Error,
    },
    /// Reception is complete: the group was left.
    HeardEnough,
    /// An object's files are on disk and verified.
    ObjectDone(&'a ObjectReport),
    /// An object was given up.
    ObjectFailed {
        /// The object.
        toi: Toi,
        /// Its files.
        names: &'a [String],
        /// Why; `None` if the disk was not the reason.
        error: Option<&'a Error>,
    },
    /// The progress, a few times a second.
    Progress(&'a ReceiveProgress),
}

/// A part of a session's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedPart {
    /// Its files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that hold bytes of them.
    pub objects: u64,
}

/// An object that was received.
#[derive(Clone, Debug)]
pub struct ObjectReport {
    /// The object.
    pub toi: Toi,
    /// The files that it holds bytes of.
    pub names: Vec<String>,
    /// How they were verified.
    pub verified: Verified,
    /// Bytes, as transported.
    pub bytes: u64,
    /// Packets of the object that were received until its reception was complete, over its source
    /// symbols.
    pub reception_inefficiency: f64,
    /// Share of the session's packets that the network lost until now; `None` where packets are
    /// not numbered (plain FLUTE and FCAST).
    pub loss: Option<f64>,
    /// Time since the start.
    pub elapsed: Duration,
}

/// The progress of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiveProgress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: ReceiverStats,
    /// Source symbols of everything accepted; 0 before.
    pub source_symbols: u64,
    /// Symbols still missing.
    pub symbols_wanted: u64,
    /// Channels that are joined.
    pub channels: u8,
    /// Most channels that were joined at a time.
    pub most_channels: u8,
    /// Packets that the kernel dropped because the receive buffer was full.
    pub kernel_drops: u64,
    /// Datagrams that were dropped because the workers were behind.
    pub queue_drops: u64,
}

impl ReceiveProgress {
    /// Packets of the session that were received until its reception was complete, over the source
    /// symbols; `None` before anything was accepted.
    pub fn reception_inefficiency(&self) -> Option<f64> {
        (self.source_symbols > 0)
            .then(|| self.stats.session_packets as f64 / self.source_symbols as f64)
    }

    /// Share of the session's packets that the network lost; `None` where they are not numbered.
    pub fn loss(&self) -> Option<f64> {
        (self.stats.expected > 0).then(|| self.stats.lost as f64 / self.stats.expected as f64)
    }
}
