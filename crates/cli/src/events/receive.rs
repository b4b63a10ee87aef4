//! Events of `fontana recv`.

use super::{Named, object, verified};
use fontana::wire::{Manifest, Printable, PublicKey, ShelfNumber, StreamIndex, Toi};
use fontana::{
    MirrorKind, MirrorReport, Offer, Outcome, ReceiveProgress, ReceiveReport, SessionKey,
    ShareReport, Verified,
};
use fontana_console::exit;
use fontana_console::failure::Failure;
use fontana_console::json::{rounded, seconds, verdict};
use serde::Serialize;

/// Events of `fontana recv`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum ReceiveEvent {
    Session {
        group: String,
        interface: String,
        directory: String,
        ticket: Option<String>,
    },
    Entry(Named),
    Offered {
        source: String,
        tsi: u64,
        schedule: Option<String>,
        #[serde(flatten)]
        content: Content,
    },
    Rejected {
        source: String,
        tsi: u64,
        reason: String,
        number: Option<u8>,
    },
    Accepted {
        source: String,
        tsi: u64,
        verified: String,
        #[serde(flatten)]
        content: Content,
    },
    Compared {
        bytes: u64,
        of_bytes: u64,
    },
    Hashed {
        bytes: u64,
        of_bytes: u64,
    },
    Selected {
        files: u64,
        bytes: u64,
        objects: u64,
    },
    StreamOffered {
        source: String,
        tsi: u64,
        name: String,
        version: u64,
        bytes: u64,
    },
    StreamAccepted {
        source: String,
        tsi: u64,
        verified: String,
        key: String,
        name: String,
        version: u64,
        bytes: u64,
    },
    Resumed {
        symbols: u64,
        source_symbols: u64,
    },
    Taken {
        version: u64,
        manifest: String,
        bytes: u64,
        seconds: f64,
        reception_inefficiency: Option<f64>,
    },
    GivenUp {
        version: Option<u64>,
        superseded: bool,
        code: u8,
    },
    Waiting {},
    Sandbox {
        files: String,
        network: String,
    },
    RollCall {
        collector: String,
    },
    Sharing {
        seconds: f64,
    },
    SharingFailed {
        reason: String,
    },
    SiteLacks {
        blocks: u32,
        symbols: u64,
    },
    Shared {
        members: u32,
        requests_sent: u64,
        symbols_sent: u64,
        bytes_sent: u64,
        requests_received: u64,
        symbols_received: u64,
        symbols_used: u64,
    },
    CarouselFound {
        source: String,
        tsi: u64,
    },
    FluteFound {
        source: String,
        tsi: u64,
        files: u64,
    },
    FileFound {
        object: u64,
        name: String,
        bytes: u64,
    },
    Kept {
        object: u64,
        name: String,
        compared: bool,
    },
    Progress {
        seconds: f64,
        loss: Option<f64>,
        #[serde(flatten)]
        received: Received,
    },
    Corrupt {
        object: u64,
        block: u32,
        times: u32,
    },
    WrongSymbols {
        object: u64,
        block: u32,
        symbols: u32,
    },
    Silence {
        seconds: f64,
        ever_since_start: bool,
    },
    Level {
        channels: u16,
        received_bits_per_second: u64,
    },
    ChannelRefused {
        channel: u8,
        reason: String,
    },
    Published {
        mirrors: Vec<String>,
        manifest: String,
        version: u64,
        publisher: Option<String>,
        label: String,
        files: u64,
        bytes: u64,
    },
    Mirror {
        mirror: String,
        bytes: u64,
        useless_bytes: u64,
        seconds: f64,
        wrong_blocks: u32,
        shelf: Option<u8>,
        fresh: bool,
        dropped: Option<String>,
        failing: Option<String>,
    },
    MirrorWrong {
        mirror: String,
        object: u64,
        block: u32,
    },
    MirrorFailed {
        mirror: String,
        reason: String,
        again_seconds: f64,
    },
    MirrorDropped {
        mirror: String,
        reason: String,
    },
    AllAnnouncedReceived {},
    SessionClosed {},
    ReceptionComplete {},
    ObjectDone {
        object: u64,
        names: Vec<String>,
        verified: String,
        bytes: u64,
        reception_inefficiency: f64,
        loss: Option<f64>,
        seconds: f64,
    },
    Updated {
        object: u64,
        name: String,
    },
    Deleted {
        name: String,
    },
    ObjectDropped {
        object: u64,
        names: Vec<String>,
        message: String,
    },
    ObjectFailed {
        object: u64,
        names: Vec<String>,
        message: String,
        hint: String,
        code: u8,
    },
    Lacking {
        name: String,
        only: Option<String>,
    },
    Summary {
        verdict: String,
        code: u8,
        verified: Option<String>,
        seconds: f64,
        bytes: u64,
        objects: u64,
        reception_inefficiency: Option<f64>,
        decoding_inefficiency: Option<f64>,
        distinctness_inefficiency: Option<f64>,
        loss: Option<f64>,
        #[serde(flatten)]
        received: Received,
    },
}

/// The content of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Content {
    pub(crate) label: String,
    pub(crate) version: u64,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) manifest: String,
}

impl Content {
    pub(crate) fn new(manifest: &Manifest, hash: String) -> Self {
        Self {
            label: Printable(manifest.label()).to_string(),
            version: manifest.version(),
            files: manifest.files().count() as u64,
            bytes: manifest.content_length(),
            manifest: hash,
        }
    }

    pub(crate) fn offered(offer: &Offer) -> Self {
        Self::new(&offer.manifest, offer.head.manifest.hash.to_string())
    }
}

/// Counters of a receiver.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Received {
    pub(crate) source_symbols: u64,
    pub(crate) symbols_wanted: u64,
    pub(crate) datagrams: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) packets: u64,
    pub(crate) deselected: u64,
    pub(crate) control_packets: u64,
    pub(crate) fresh: u64,
    pub(crate) duplicates: u64,
    pub(crate) late: u64,
    pub(crate) invalid: u64,
    pub(crate) spilled: u64,
    pub(crate) without_room: u64,
    pub(crate) foreign: u64,
    pub(crate) malformed: u64,
    pub(crate) expected: u64,
    pub(crate) lost: u64,
    pub(crate) kernel_drops: u64,
    pub(crate) queue_drops: u64,
    pub(crate) channels: u8,
    pub(crate) most_channels: u8,
    pub(crate) corrupt_blocks: u64,
    pub(crate) encrypted: u64,
    pub(crate) unauthenticated: u64,
    pub(crate) unannounced: u64,
}

impl Received {
    pub(crate) fn new(progress: &ReceiveProgress) -> Self {
        let stats = &progress.stats;
        Self {
            source_symbols: progress.source_symbols,
            symbols_wanted: progress.symbols_wanted,
            datagrams: stats.datagrams,
            payload_bytes: stats.payload_bytes,
            packets: stats.session_packets,
            deselected: stats.deselected,
            control_packets: stats.control_packets,
            fresh: stats.fresh,
            duplicates: stats.duplicates,
            late: stats.late,
            invalid: stats.invalid,
            spilled: stats.spilled,
            without_room: stats.without_room,
            foreign: stats.foreign,
            malformed: stats.malformed,
            expected: stats.expected,
            lost: stats.lost,
            kernel_drops: progress.kernel_drops,
            queue_drops: progress.queue_drops,
            channels: progress.channels,
            most_channels: progress.most_channels,
            corrupt_blocks: stats.corrupt_blocks,
            encrypted: stats.encrypted,
            unauthenticated: progress.rejected.total(),
            unannounced: stats.unannounced,
        }
    }
}

impl ReceiveEvent {
    pub(crate) fn progress(progress: &ReceiveProgress) -> Self {
        Self::Progress {
            seconds: seconds(progress.elapsed),
            loss: progress.loss().map(rounded),
            received: Received::new(progress),
        }
    }

    pub(crate) fn stream_offered(session: SessionKey, index: &StreamIndex) -> Self {
        Self::StreamOffered {
            source: session.source.to_string(),
            tsi: session.tsi.0,
            name: Printable(index.name.as_bytes()).to_string(),
            version: index.version,
            bytes: index.length(),
        }
    }

    pub(crate) fn stream_accepted(
        session: SessionKey,
        index: &StreamIndex,
        key: &PublicKey,
        trust: Verified,
    ) -> Self {
        Self::StreamAccepted {
            source: session.source.to_string(),
            tsi: session.tsi.0,
            verified: verified(trust).into(),
            key: key.to_string(),
            name: Printable(index.name.as_bytes()).to_string(),
            version: index.version,
            bytes: index.length(),
        }
    }

    pub(crate) fn object_done(report: &fontana::ObjectReport) -> Self {
        Self::ObjectDone {
            object: object(report.toi),
            names: report.names.clone(),
            verified: verified(report.verified).into(),
            bytes: report.bytes,
            reception_inefficiency: rounded(report.reception_inefficiency),
            loss: report.loss.map(rounded),
            seconds: seconds(report.elapsed),
        }
    }

    pub(crate) fn object_dropped(toi: Toi, names: &[String], message: String) -> Self {
        Self::ObjectDropped { object: object(toi), names: names.to_vec(), message }
    }

    pub(crate) fn object_failed(toi: Toi, names: &[String], failure: &Failure) -> Self {
        Self::ObjectFailed {
            object: object(toi),
            names: names.to_vec(),
            message: failure.message.clone(),
            hint: failure.hint.clone(),
            code: exit::code(failure.outcome),
        }
    }

    /// Replaces the reception's outcome, if a hook failed or a watch continues.
    pub(crate) fn set_verdict(&mut self, outcome: Outcome) {
        if let Self::Summary { verdict: name, code, .. } = self {
            (*name, *code) = (verdict(outcome).into(), exit::code(outcome));
        }
    }

    pub(crate) fn mirror(report: &MirrorReport) -> Self {
        let shelf = match report.kind {
            MirrorKind::Shelf(number) => Some(number),
            _ => None,
        };
        Self::Mirror {
            mirror: report.mirror.to_string(),
            bytes: report.bytes,
            useless_bytes: report.useless_bytes,
            seconds: seconds(report.active),
            wrong_blocks: report.wrong_blocks,
            shelf: shelf.map(ShelfNumber::get),
            fresh: report.kind == MirrorKind::Fresh,
            dropped: report.dropped.as_ref().map(ToString::to_string),
            failing: report.failing.as_ref().map(ToString::to_string),
        }
    }

    pub(crate) fn shared(report: &ShareReport) -> Self {
        Self::Shared {
            members: report.members,
            requests_sent: report.requests_sent,
            symbols_sent: report.symbols_sent,
            bytes_sent: report.bytes_sent,
            requests_received: report.requests_heard,
            symbols_received: report.symbols_heard,
            symbols_used: report.symbols_used,
        }
    }

    pub(crate) fn summary(summary: &ReceiveReport) -> Self {
        Self::Summary {
            verdict: verdict(summary.outcome).into(),
            code: exit::code(summary.outcome),
            verified: summary.verified.map(|v| verified(v).into()),
            seconds: seconds(summary.progress.elapsed),
            bytes: summary.bytes,
            objects: summary.object_count,
            reception_inefficiency: summary.progress.reception_inefficiency().map(rounded),
            decoding_inefficiency: summary.progress.decoding_inefficiency().map(rounded),
            distinctness_inefficiency: summary.progress.distinctness_inefficiency().map(rounded),
            loss: summary.progress.loss().map(rounded),
            received: Received::new(&summary.progress),
        }
    }
}
