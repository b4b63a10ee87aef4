//! What a collector knows of the receivers.

use super::authority::Authority;
use crate::time::Instant;
use fontana_wire::{PublicKey, ReceiverLabel, ReceiverReport, ReceiverState};

/// The receivers that the user of a sender expects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Any receivers.
    #[default]
    Anyone,
    /// This many, whichever they are.
    Count(u32),
    /// All of these.
    Named(Vec<ExpectedReceiver>),
}

/// A receiver that the user of a sender expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedReceiver {
    /// Its label; not empty.
    pub label: ReceiverLabel,
    /// The key with which it signs its reports; others under its label are ignored. `None`: reports
    /// need no signature.
    pub key: Option<PublicKey>,
}

/// The last report of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverStatus {
    /// The report.
    pub report: ReceiverReport,
    /// When it arrived.
    pub reported_at: Instant,
    /// What vouches for it: a key is the one that is expected of its label.
    pub by: Authority,
    /// It has reported a state that cannot follow an earlier one.
    pub is_contradictory: bool,
}

impl ReceiverStatus {
    /// True if its signature is that of the key that is expected of its label.
    pub const fn is_signed(&self) -> bool {
        matches!(self.by, Authority::Key(_))
    }

    /// Whether it receives, and lacks symbols, or does not know of what.
    pub const fn needs_symbols(&self) -> bool {
        let ReceiverReport { permille, symbols_lacking, .. } = self.report;
        !self.report.state.is_final() && (permille < 1_000 || symbols_lacking > 0)
    }

    /// Whether it lacks so much that all blocks may advance together for it: more than an eighth,
    /// or it does not know of what.
    pub const fn is_behind(&self) -> bool {
        !self.report.state.is_final() && self.report.permille < 875
    }
}

/// What is known of an expected receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedState {
    /// It has not reported.
    NeverHeard,
    /// It has reported this.
    Reported(ReceiverState),
    /// It is complete, with another manifest than that of the session.
    OtherContent,
    /// Several processes report under its label, or one has contradicted itself.
    Contradictory,
}

/// An expected receiver that does not count as complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingReceiver {
    /// Its label.
    pub label: ReceiverLabel,
    /// What is known of it.
    pub state: ExpectedState,
}

/// The receivers that a stream waits for before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedReceivers {
    /// How many it waits for.
    pub receivers: u32,
    /// How many have reported, and not failed. Only reports that are authentic, or trusted, count.
    pub known: u32,
    /// Expected names that have not reported.
    pub missing: Vec<ReceiverLabel>,
}

impl AwaitedReceivers {
    /// Whether all of them have reported: the stream begins.
    pub fn is_over(&self) -> bool {
        self.known >= self.receivers
    }
}

/// All receivers together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrowdSummary {
    /// Receivers that have reported.
    pub known: u64,
    /// Of these, the complete ones: verified, with the session's manifest, without contradiction.
    pub complete: u64,
    /// Of these, the failed ones.
    pub failed: u64,
    /// Estimated number of receivers that report, known or not.
    pub estimate: u64,
    /// Number of receivers that are expected; `None` if none are.
    pub expected: Option<u64>,
    /// The expected receivers that have a name and are not complete, in the user's order.
    pub missing: Vec<MissingReceiver>,
    /// Reports that were ignored: forged, replayed, of other sessions or malformed.
    pub ignored: u64,
}

impl CrowdSummary {
    /// True if all expected receivers are complete. False if none are expected.
    pub fn is_as_expected(&self) -> bool {
        self.missing.is_empty() && self.expected.is_some_and(|count| self.complete >= count)
    }

    /// Expected receivers that are not known. With names, those that have never reported.
    pub fn never_heard(&self) -> u64 {
        self.expected.map_or(0, |expected| expected.saturating_sub(self.known))
    }
}
