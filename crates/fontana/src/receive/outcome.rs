//! How a reception ends: what has happened, and the verdict on it.

use super::{Delivery, Ended, ObjectReport, ReceiveProgress, ReceiveSummary};
use crate::error::Error;
use crate::verdict::Verdict;
use fontana_proto::{Rejection, Scope, SessionKey, StreamBreak, Verified};
use fontana_wire::Hash;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Complete,
    GivenUp,
    /// The only manifest that would do cannot be received.
    Hopeless,
    TimeUp,
    Interrupted,
    NothingNew,
    Superseded,
    /// The consumer has closed its end.
    ConsumerGone,
}

/// What has happened so far.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) over: Option<Over>,
    pub(super) accepted: Option<Verified>,
    /// Hash and version of the manifest that was accepted.
    pub(super) manifest: Option<(Hash, u64)>,
    pub(super) objects: Vec<ObjectReport>,
    pub(super) bytes: u64,
    pub(super) poisoned: bool,
    /// Where a stream broke off.
    pub(super) broken: Option<(u64, StreamBreak)>,
    /// One reason for each object: after the first, the others follow from it.
    pub(super) failures: BTreeMap<Scope, Arc<Error>>,
    pub(super) rejections: Vec<(SessionKey, Rejection)>,
}

impl Outcome {
    /// What is told in the end.
    pub(super) fn summary(
        self,
        over: Over,
        progress: ReceiveProgress,
        delivered: Option<u64>,
    ) -> ReceiveSummary {
        let closed = over == Over::ConsumerGone;
        let delivery = delivered.map(|bytes| Delivery { bytes, closed });
        let Outcome {
            accepted,
            manifest,
            objects,
            bytes,
            poisoned,
            broken,
            failures,
            rejections,
            ..
        } = self;
        let mut failures: Vec<_> = failures.into_values().collect();
        let delivered = delivery.map_or(0, |delivery| delivery.bytes);
        failures.extend(
            broken
                .filter(|(_, reason)| *reason != StreamBreak::Failed)
                .map(|(missing, reason)| Error::StreamBroken { delivered, missing, reason })
                .map(Arc::new),
        );
        let start = match over {
            Over::Complete | Over::NothingNew => Verdict::Complete,
            Over::Superseded => Verdict::Incomplete,
            Over::Interrupted | Over::ConsumerGone => Verdict::Interrupted,
            Over::TimeUp if accepted.is_some() => Verdict::Incomplete,
            Over::TimeUp | Over::Hopeless => verdict_of_silence(&rejections),
            // An object was given up: the failures say why, or it was poisoned.
            Over::GivenUp if failures.is_empty() || poisoned => Verdict::VerificationFailed,
            Over::GivenUp => Verdict::Complete,
        };
        let verdict = failures.iter().fold(start, |verdict, e| verdict.worst(e.verdict()));
        let ended = match over {
            Over::Complete | Over::GivenUp => Ended::Done,
            Over::TimeUp | Over::Hopeless => Ended::TimeUp,
            Over::Interrupted | Over::ConsumerGone => Ended::Stopped,
            Over::NothingNew => Ended::NothingNew,
            Over::Superseded => Ended::Superseded,
        };
        ReceiveSummary {
            verdict,
            ended,
            manifest,
            progress,
            objects,
            bytes,
            verified: accepted,
            failures,
            rejections,
            delivery,
        }
    }
}

/// The verdict when the time is up and nothing was accepted.
fn verdict_of_silence(rejections: &[(SessionKey, Rejection)]) -> Verdict {
    rejections.iter().fold(Verdict::NothingHeard, |verdict, (_, reason)| {
        verdict.worst(match reason {
            Rejection::WrongKey | Rejection::Expired | Rejection::OldVersion => {
                Verdict::Authentication
            }
            Rejection::BadManifest => Verdict::VerificationFailed,
            Rejection::TooLarge | Rejection::TooFast => Verdict::Refused,
            Rejection::OtherSession | Rejection::OtherManifest => Verdict::NothingHeard,
        })
    })
}
