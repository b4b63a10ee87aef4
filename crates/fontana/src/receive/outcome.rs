//! How a reception ends: what was received, what failed, and the outcome that follows.

use crate::error::{Error, TransferError};
use crate::event::{AcceptedManifest, ObjectReport, ReceiveProgress};
use crate::outcome::Outcome;
use crate::report::{Delivery, Ended, ReceiveReport, RejectedSession, SuspectBlock};
use crate::sharing::ShareReport;
use fontana_proto::{Rejection, Scope, StreamBreak, TableStatus, Verified};
use fontana_wire::Toi;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Why the main loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Complete,
    GivenUp,
    /// The only acceptable manifest cannot be received.
    Hopeless,
    TimeUp,
    /// The sender has closed the session.
    Closed,
    Interrupted,
    NothingNew,
    Superseded,
    /// No mirror is left, and there is no group.
    NoMirrors,
    /// The consumer has closed its end.
    ConsumerGone,
}

impl Over {
    /// Whether files that are complete get their names although others do not: nothing more is
    /// expected, and no newer version follows.
    pub(super) const fn gives(self) -> bool {
        match self {
            Self::GivenUp | Self::Hopeless | Self::TimeUp | Self::Closed | Self::NoMirrors => true,
            Self::Complete
            | Self::Interrupted
            | Self::NothingNew
            | Self::Superseded
            | Self::ConsumerGone => false,
        }
    }
}

/// What was received and what failed so far.
#[derive(Default)]
pub(super) struct Results {
    pub(super) over: Option<Over>,
    pub(super) accepted: Option<Verified>,
    pub(super) manifest: Option<AcceptedManifest>,
    /// The last [`MAX_OBJECTS`], without a manifest.
    pub(super) objects: VecDeque<ObjectReport>,
    /// All of them.
    pub(super) object_count: u64,
    pub(super) bytes: u64,
    pub(super) is_corrupt: bool,
    /// Where a stream broke off.
    pub(super) broken: Option<(u64, StreamBreak)>,
    /// One reason for each object: after the first, the others follow from it.
    pub(super) failures: BTreeMap<Scope, Arc<Error>>,
    /// The errors of files that could not get their names, and of others that were not deleted.
    pub(super) items: Vec<Arc<Error>>,
    /// The worst outcome of failures that were forgotten.
    forgotten: Option<Outcome>,
    pub(super) rejections: Vec<RejectedSession>,
    pub(super) table: TableStatus,
    /// [`ReceiveReport::suspect`].
    pub(super) suspect: Option<SuspectBlock>,
    /// [`ReceiveReport::shared`].
    pub(super) shared: Option<ShareReport>,
    /// [`ReceiveReport::is_known_to_sender`].
    pub(super) is_known_to_sender: Option<bool>,
}

/// Objects of a session without a manifest, and failures, that are remembered: it may have no end.
const MAX_OBJECTS: usize = 16_384;

impl Results {
    /// Notes an object that is complete. `may_forget`: its session may have no end.
    pub(super) fn add_object(&mut self, report: ObjectReport, may_forget: bool) {
        self.bytes += report.bytes;
        self.object_count += 1;
        if may_forget && self.objects.len() >= MAX_OBJECTS {
            self.objects.pop_front();
        }
        self.objects.push_back(report);
    }

    /// Notes a failure, unless there is one of its scope. `may_forget`: its session may have no
    /// end.
    pub(super) fn add_failure(&mut self, scope: Scope, error: Arc<Error>, may_forget: bool) {
        if may_forget
            && self.failures.len() >= MAX_OBJECTS
            && !self.failures.contains_key(&scope)
            && let Some((_, oldest)) = self.failures.pop_first()
        {
            let outcome = oldest.outcome();
            self.forgotten = Some(self.forgotten.map_or(outcome, |before| before.worst(outcome)));
        }
        self.failures.entry(scope).or_insert(error);
    }

    /// Why an object failed: its own failure, or the session's.
    pub(super) fn failure(&self, toi: Toi) -> Option<Arc<Error>> {
        let of = |scope| self.failures.get(&scope);
        of(Scope::Object(toi)).or_else(|| of(Scope::Session)).cloned()
    }

    /// Where a stream broke off, if that is a failure of its own.
    fn broken(&self) -> Option<(u64, StreamBreak)> {
        self.broken.filter(|(_, reason)| *reason != StreamBreak::Failed)
    }

    /// The outcome of a reception that ends now.
    pub(super) fn outcome(&self, over: Over) -> Outcome {
        let broken = self.broken().map(|(missing, reason)| broken_off(0, missing, reason));
        let start = self.start(over, broken.is_some());
        let failures = self.failures.values().chain(&self.items).map(|error| error.outcome());
        let failures = failures.chain(self.forgotten);
        failures.chain(broken.map(|error| error.outcome())).fold(start, Outcome::worst)
    }

    /// The outcome before the failures are considered. `broke_off`: a stream did.
    fn start(&self, over: Over, broke_off: bool) -> Outcome {
        let has_failures = !self.failures.is_empty() || self.forgotten.is_some() || broke_off;
        match over {
            Over::Complete | Over::NothingNew => Outcome::Complete,
            Over::Superseded | Over::Closed => Outcome::Incomplete,
            Over::Interrupted | Over::ConsumerGone => Outcome::Interrupted,
            Over::TimeUp | Over::NoMirrors if self.accepted.is_some() => Outcome::Incomplete,
            Over::TimeUp | Over::NoMirrors | Over::Hopeless => outcome_of_silence(&self.rejections),
            // An object was given up: the failures give the reason, or a block was corrupt.
            Over::GivenUp if !has_failures || self.is_corrupt => Outcome::VerificationFailed,
            Over::GivenUp => Outcome::Complete,
        }
    }

    /// The report.
    pub(super) fn summary(
        self,
        over: Over,
        progress: ReceiveProgress,
        delivered: Option<u64>,
    ) -> ReceiveReport {
        let broken = self.broken();
        let start = self.start(over, broken.is_some());
        let closed_by_consumer = over == Over::ConsumerGone;
        let delivery = delivered.map(|bytes| Delivery { bytes, closed_by_consumer });
        let Results {
            accepted,
            manifest,
            objects,
            object_count,
            bytes,
            failures,
            items,
            forgotten,
            rejections,
            table,
            suspect,
            shared,
            is_known_to_sender,
            ..
        } = self;
        let mut failures: Vec<_> = failures.into_values().chain(items).collect();
        let delivered = delivery.map_or(0, |delivery| delivery.bytes);
        failures.extend(
            broken.map(|(missing, reason)| Arc::new(broken_off(delivered, missing, reason))),
        );
        let outcomes = failures.iter().map(|error| error.outcome()).chain(forgotten);
        let outcome = outcomes.fold(start, Outcome::worst);
        let ended = match over {
            Over::Complete | Over::GivenUp => Ended::Done,
            Over::TimeUp | Over::Hopeless => Ended::TimeUp,
            Over::NoMirrors => Ended::NoMirrors,
            Over::Interrupted | Over::ConsumerGone => Ended::Stopped,
            Over::Closed => Ended::Closed,
            Over::NothingNew => Ended::NothingNew,
            Over::Superseded => Ended::Superseded,
        };
        ReceiveReport {
            outcome,
            ended,
            manifest,
            progress,
            objects: objects.into(),
            object_count,
            bytes,
            verified: accepted,
            failures,
            rejections,
            table,
            suspect,
            #[cfg(feature = "web")]
            mirrors: Vec::new(),
            shared,
            is_known_to_sender,
            incomplete: None,
            delivery,
        }
    }
}

/// A stream has broken off.
fn broken_off(delivered: u64, missing: u64, reason: StreamBreak) -> Error {
    TransferError::StreamBroken { delivered, missing, reason }.into()
}

/// The outcome when the time is up and nothing was accepted.
fn outcome_of_silence(rejections: &[RejectedSession]) -> Outcome {
    rejections.iter().fold(Outcome::NothingReceived, |outcome, rejected| {
        outcome.worst(match rejected.reason {
            Rejection::WrongKey
            | Rejection::Expired { .. }
            | Rejection::OldVersion { .. }
            | Rejection::NewerFormat(_)
            | Rejection::UnknownRecord(_) => Outcome::Authentication,
            Rejection::BadManifest => Outcome::VerificationFailed,
            Rejection::TooLarge | Rejection::TooFast => Outcome::Refused,
            Rejection::OtherSession | Rejection::OtherManifest => Outcome::NothingReceived,
        })
    })
}
