//! The events of `--json`, one per line.
//!
//! `docs/events.md` describes every event and field; a test compares the two. Names of files and
//! sessions are untrusted, so they have the form of [`fontana::wire::Printable`].

mod receive;
mod send;
mod serve;

pub(crate) use fontana_console::json::{rejection, verified};
pub(crate) use receive::{Content, ReceiveEvent};
pub(crate) use send::{ReportedReceiver, RollCallCounts, SendEvent, Sent, StatusFile, passes};
pub(crate) use serve::ServeEvent;

use fontana::wire::{Manifest, Printable, Toi};
use fontana::{Interrupted, Rejection, net::doctor};
use fontana_console::json::seconds;
use serde::Serialize;
use std::time::Duration;

/// An entry of the tree that is sent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(crate) struct Named {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) bytes: Option<u64>,
    pub(crate) target: Option<String>,
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
    Shelf {
        path: String,
        number: u8,
        symbols: u64,
        bytes: u64,
        written: u64,
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
}

/// Events of `fontana doctor`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum DoctorEvent {
    Finding { subject: String, verdict: String, text: String, remedy: Option<String> },
    Summary { good: u64, unknown: u64, warning: u64, bad: u64, most_likely: String, code: u8 },
}

/// A TOI as a JSON number. Known senders count from 1; the wire format allows 112 bits.
pub(crate) fn object(toi: Toi) -> u64 {
    u64::try_from(toi.0).unwrap_or(u64::MAX)
}

/// The number that belongs to a rejection: of the format or of the record.
pub(crate) fn rejected_number(reason: Rejection) -> Option<u8> {
    match reason {
        Rejection::NewerFormat(number) | Rejection::UnknownRecord(number) => Some(number),
        _ => None,
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
