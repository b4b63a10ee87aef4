//! Events of `fontana send`, and its status file.

use super::Named;
use fontana::{SendProgress, SenderStats};
use fontana_console::json::{line, rounded, seconds};
use serde::Serialize;

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
        wait_receivers: u32,
    },
    Awaited {
        receivers: u32,
        known: u32,
        missing: Vec<String>,
    },
    Report(ReportedReceiver),
    RollCall(RollCallCounts),
    Rate {
        rate_bits_per_second: u64,
    },
    Resting {
        rests: bool,
    },
    Slow {
        receiver: String,
        label: String,
        received_bits_per_second: u64,
    },
    Missing {
        label: String,
        state: String,
        code: Option<u8>,
    },
    Entry(Named),
    Progress {
        interface: String,
        seconds: f64,
        passes: f64,
        #[serde(flatten)]
        sent: Sent,
    },
    Summary {
        interface: String,
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
    /// `missing` and `receivers` have all of them.
    pub(crate) whole: bool,
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
    pub(crate) fn progress(progress: &SendProgress, interface: &str, copies: u64) -> Self {
        Self::Progress {
            interface: interface.to_owned(),
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
