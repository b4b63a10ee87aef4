//! The events of `--json`, one per line. JSON exists only here and in the audit log.
//!
//! `docs/events.md` describes every event and field; a test compares the two. Names of files and
//! sessions are untrusted, so they have the form of [`fontana::wire::Printable`].

mod lab;
mod relay;

pub(crate) use lab::LabEvent;
pub(crate) use relay::RelayEvent;

use crate::exit;
use crate::failure::Failure;
use fontana::wire::{Manifest, Printable, PublicKey, StreamIndex, Toi};
use fontana::{
    Interrupted, MirrorReport, Offer, Outcome, ReceiveProgress, ReceiveReport, Rejection,
    SendProgress, SenderStats, SessionKey, Verified, net::doctor,
};
use serde::Serialize;
use std::time::Duration;

/// The line of an event, with its line feed.
pub(crate) fn line(event: &impl Serialize) -> String {
    // Events have no maps and no fallible parts: their serialization does not fail.
    serde_json::to_string(event).map_or_else(|_| String::new(), |json| json + "\n")
}

/// Events of every command.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Notice {
    Warning { message: String, way_out: String },
    Error { message: String, way_out: String, code: u8 },
}

/// Events of `fontana send`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum SendEvent {
    Session {
        ticket: String,
        tickets: Vec<String>,
        to: Vec<String>,
        interface: String,
        tsi: u64,
        manifest: Option<String>,
        version: u64,
        files: u64,
        directories: u64,
        links: u64,
        bytes: u64,
        objects: u64,
        source_symbols: u64,
        symbol_size: u16,
        rate_bits_per_second: u64,
        dry_run: bool,
    },
    Stream {
        ticket: String,
        tickets: Vec<String>,
        to: Vec<String>,
        interface: String,
        tsi: u64,
        key: Option<String>,
        name: String,
        rate_bits_per_second: u64,
        wait_seconds: f64,
    },
    Report(ReportedReceiver),
    RollCall(RollCallCounts),
    Missing {
        label: String,
        state: String,
        code: Option<u8>,
    },
    Entry(Named),
    Progress {
        seconds: f64,
        passes: f64,
        #[serde(flatten)]
        sent: Sent,
    },
    Summary {
        verdict: String,
        code: u8,
        seconds: f64,
        passes: f64,
        solved_bytes: u64,
        scratch_bytes: u64,
        #[serde(flatten)]
        sent: Sent,
    },
}

/// An entry of the tree that is sent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Named {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) bytes: Option<u64>,
    pub(crate) target: Option<String>,
}

/// A receiver's report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct ReportedReceiver {
    pub(crate) receiver: String,
    pub(crate) label: String,
    pub(crate) state: String,
    pub(crate) code: Option<u8>,
    pub(crate) percent: f64,
    pub(crate) symbols_wanted: u64,
    pub(crate) loss: f64,
    pub(crate) kernel_drops: u64,
    pub(crate) channels: u8,
    pub(crate) seconds: f64,
    pub(crate) signed: bool,
    pub(crate) contradictory: bool,
}

/// All receivers that report, together.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct RollCallCounts {
    pub(crate) known: u64,
    pub(crate) complete: u64,
    pub(crate) failed: u64,
    pub(crate) estimate: u64,
    pub(crate) expected: Option<u64>,
    pub(crate) ignored: u64,
    pub(crate) authenticated: bool,
}

/// The file of `--status-file`.
#[derive(Debug, Serialize)]
pub(crate) struct StatusFile {
    #[serde(flatten)]
    pub(crate) counts: RollCallCounts,
    pub(crate) missing: Vec<String>,
    pub(crate) receivers: Vec<ReportedReceiver>,
}

impl StatusFile {
    /// The content, with its line feed.
    pub(crate) fn to_text(&self) -> String {
        line(self)
    }
}

/// Counters of a sender.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Sent {
    pub(crate) payload_bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) packets: u64,
    pub(crate) control_packets: u64,
    pub(crate) source_symbols: u64,
    pub(crate) repair_symbols: u64,
    pub(crate) underruns: u64,
    pub(crate) lost: u64,
}

impl Sent {
    /// `copies`: number of hosts that each packet was sent to.
    pub(crate) fn new(stats: &SenderStats, lost: u64, copies: u64) -> Self {
        Self {
            payload_bytes: stats.payload_bytes * copies,
            wire_bytes: stats.wire_bytes * copies,
            packets: stats.packets * copies,
            control_packets: stats.control_packets * copies,
            source_symbols: stats.source_symbols,
            repair_symbols: stats.repair_symbols,
            underruns: stats.underruns,
            lost,
        }
    }
}

impl SendEvent {
    pub(crate) fn progress(progress: &SendProgress, copies: u64) -> Self {
        Self::Progress {
            seconds: seconds(progress.elapsed),
            passes: passes(&progress.stats, progress.source_symbols),
            sent: Sent::new(&progress.stats, progress.lost, copies),
        }
    }
}

/// Encoding symbols sent over source symbols.
pub(crate) fn passes(stats: &SenderStats, source_symbols: u64) -> f64 {
    rounded((stats.source_symbols + stats.repair_symbols) as f64 / source_symbols.max(1) as f64)
}

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
    CarouselFound {
        source: String,
        tsi: u64,
    },
    FileFound {
        object: u64,
        name: String,
        bytes: u64,
    },
    Progress {
        seconds: f64,
        loss: Option<f64>,
        #[serde(flatten)]
        received: Received,
    },
    Poisoned {
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
    Mirror {
        mirror: String,
        bytes: u64,
        useless_bytes: u64,
        seconds: f64,
        wrong_blocks: u32,
        dropped: Option<String>,
    },
    MirrorWrong {
        mirror: String,
        object: u64,
        block: u32,
    },
    MirrorDropped {
        mirror: String,
        reason: String,
    },
    AllAnnouncedReceived {},
    SessionClosed {},
    HeardEnough {},
    ObjectDone {
        object: u64,
        names: Vec<String>,
        verified: String,
        bytes: u64,
        reception_inefficiency: f64,
        loss: Option<f64>,
        seconds: f64,
    },
    ObjectFailed {
        object: u64,
        names: Vec<String>,
        message: String,
        way_out: String,
        code: u8,
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
    pub(crate) left_out: u64,
    pub(crate) control_packets: u64,
    pub(crate) fresh: u64,
    pub(crate) duplicates: u64,
    pub(crate) late: u64,
    pub(crate) invalid: u64,
    pub(crate) unspooled: u64,
    pub(crate) foreign: u64,
    pub(crate) malformed: u64,
    pub(crate) expected: u64,
    pub(crate) lost: u64,
    pub(crate) kernel_drops: u64,
    pub(crate) queue_drops: u64,
    pub(crate) channels: u8,
    pub(crate) most_channels: u8,
    pub(crate) poisoned_blocks: u64,
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
            left_out: stats.deselected,
            control_packets: stats.control_packets,
            fresh: stats.fresh,
            duplicates: stats.duplicates,
            late: stats.late,
            invalid: stats.invalid,
            unspooled: stats.without_room,
            foreign: stats.foreign,
            malformed: stats.malformed,
            expected: stats.expected,
            lost: stats.lost,
            kernel_drops: progress.kernel_drops,
            queue_drops: progress.queue_drops,
            channels: progress.channels,
            most_channels: progress.most_channels,
            poisoned_blocks: stats.corrupt_blocks,
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

    pub(crate) fn object_failed(toi: Toi, names: &[String], failure: &Failure) -> Self {
        Self::ObjectFailed {
            object: object(toi),
            names: names.to_vec(),
            message: failure.message.clone(),
            way_out: failure.hint.clone(),
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
        Self::Mirror {
            mirror: report.mirror.to_string(),
            bytes: report.bytes,
            useless_bytes: report.useless_bytes,
            seconds: seconds(report.active),
            wrong_blocks: report.wrong_blocks,
            dropped: report.dropped.as_ref().map(ToString::to_string),
        }
    }

    pub(crate) fn summary(summary: &ReceiveReport) -> Self {
        Self::Summary {
            verdict: verdict(summary.outcome).into(),
            code: exit::code(summary.outcome),
            verified: summary.verified.map(|v| verified(v).into()),
            seconds: seconds(summary.progress.elapsed),
            bytes: summary.bytes,
            objects: summary.objects.len() as u64,
            reception_inefficiency: summary.progress.reception_inefficiency().map(rounded),
            decoding_inefficiency: summary.progress.decoding_inefficiency().map(rounded),
            distinctness_inefficiency: summary.progress.distinctness_inefficiency().map(rounded),
            loss: summary.progress.loss().map(rounded),
            received: Received::new(&summary.progress),
        }
    }
}

/// Events of `fontana publish`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum PublishEvent {
    Published {
        ticket: String,
        manifest: String,
        path: String,
        files: u64,
        bytes: u64,
        blocks: u64,
    },
}

/// Events of `fontana resume`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum ResumeEvent {
    Interrupted {
        tag: String,
        label: Option<String>,
        files: Option<u64>,
        bytes: Option<u64>,
        symbols: u64,
        source_symbols: u64,
        bytes_on_disk: u64,
        idle_seconds: f64,
        in_use: bool,
    },
    Discarded {
        tag: String,
        bytes_on_disk: u64,
    },
}

impl ResumeEvent {
    pub(crate) fn interrupted(interrupted: &Interrupted, idle: Duration) -> Self {
        let manifest = interrupted.manifest.as_ref();
        Self::Interrupted {
            tag: interrupted.tag.clone(),
            label: manifest.map(|manifest| Printable(manifest.label()).to_string()),
            files: manifest.map(|manifest| manifest.files().count() as u64),
            bytes: manifest.map(Manifest::content_length),
            symbols: interrupted.symbols,
            source_symbols: interrupted.source_symbols,
            bytes_on_disk: interrupted.bytes_on_disk,
            idle_seconds: seconds(idle),
            in_use: interrupted.in_use,
        }
    }
}

/// Events of `fontana demo`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum DemoEvent {
    Receiver {
        name: String,
        loss: Option<f64>,
        joined_at: f64,
        verified: String,
        reception_inefficiency: Option<f64>,
        seconds: f64,
    },
    Summary {
        verdict: String,
        code: u8,
        path: String,
        receivers: u64,
        verified_receivers: u64,
        bytes: u64,
        wire_bytes: u64,
        separate_copies_wire_bytes: u64,
        resumed: bool,
        seconds: f64,
    },
    /// Of `--hostile`.
    Class {
        id: String,
        what: String,
        packets: u64,
        alive: bool,
        memory: u64,
        memory_max: Option<u64>,
        log_bytes: u64,
        honest_verified: bool,
        honest_packets: u64,
        extra_packets: i64,
        forges: bool,
        broken: Vec<String>,
    },
    /// Of `--hostile --sockets`.
    ClassOnSockets {
        id: String,
        what: String,
        packets: u64,
        alive: bool,
        memory: u64,
        memory_max: Option<u64>,
        log_bytes: u64,
        honest_verified: bool,
        extra_symbols: i64,
        forges: bool,
        kernel_drops: u64,
        seconds: f64,
        seconds_alone: f64,
        broken: Vec<String>,
    },
}

/// Events of `fontana doctor`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum DoctorEvent {
    Finding { subject: String, verdict: String, text: String, remedy: Option<String> },
    Summary { good: u64, unknown: u64, warning: u64, bad: u64, code: u8 },
}

/// Seconds, rounded to microseconds.
pub(crate) fn seconds(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64())
}

/// Rounds to six digits after the point, which is more than the accuracy of any field.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// A TOI as a JSON number. Known senders count from 1; the wire format allows 112 bits.
pub(crate) fn object(toi: Toi) -> u64 {
    u64::try_from(toi.0).unwrap_or(u64::MAX)
}

pub(crate) fn verified(verified: Verified) -> &'static str {
    match verified {
        Verified::None => "none",
        Verified::Digest => "digest",
        Verified::Signed => "signed",
    }
}

pub(crate) fn rejection(reason: Rejection) -> &'static str {
    match reason {
        Rejection::OtherSession => "other_session",
        Rejection::OtherManifest => "other_manifest",
        Rejection::WrongKey => "wrong_key",
        Rejection::Expired { .. } => "expired",
        Rejection::OldVersion => "old_version",
        Rejection::BadManifest => "bad_manifest",
        Rejection::TooLarge => "too_large",
        Rejection::TooFast => "too_fast",
        Rejection::NewerFormat(_) => "newer_format",
        Rejection::UnknownRecord(_) => "unknown_record",
    }
}

/// The number that belongs to a rejection: of the format or of the record.
pub(crate) fn rejected_number(reason: Rejection) -> Option<u8> {
    match reason {
        Rejection::NewerFormat(number) | Rejection::UnknownRecord(number) => Some(number),
        _ => None,
    }
}

pub(crate) fn verdict(verdict: Outcome) -> &'static str {
    match verdict {
        Outcome::Complete => "complete",
        Outcome::Usage => "usage",
        Outcome::Incomplete => "incomplete",
        Outcome::VerificationFailed => "verification_failed",
        Outcome::Io => "io",
        Outcome::Refused => "refused",
        Outcome::Authentication => "authentication",
        Outcome::SourceChanged => "source_changed",
        Outcome::ReceiversIncomplete => "receivers_incomplete",
        Outcome::InternalError => "internal_error",
        Outcome::NothingReceived => "nothing_heard",
        Outcome::Interrupted => "interrupted",
    }
}

pub(crate) fn finding(verdict: doctor::Verdict) -> &'static str {
    match verdict {
        doctor::Verdict::Good => "good",
        doctor::Verdict::Unknown => "unknown",
        doctor::Verdict::Warning => "warning",
        doctor::Verdict::Bad => "bad",
    }
}

#[cfg(test)]
mod frozen;
#[cfg(test)]
mod tests;
