//! Following a publisher: a receiver that takes one version after the other.
//!
//! ```no_run
//! use fontana::{ReceiveOptions, ReceiveWatch, Stop, WatchEvent, watch};
//!
//! let ticket = "fontana://10.0.0.7@239.255.77.1:7701/5?key=...".parse().unwrap();
//! let options = ReceiveWatch::new(ReceiveOptions::from_ticket(&ticket, "downloads"));
//! let summary = watch(&options, &Stop::new(), &mut |event| {
//!     if let WatchEvent::Taken(summary) = event {
//!         println!("version {:?} is there", summary.manifest);
//!     }
//! })?;
//! # Ok::<(), fontana::Error>(())
//! ```
//!
//! Versions count upwards. A directory has a high-water mark (`watch/mark.rs`), which outlives
//! restarts: a version that is not above it is not taken, whichever sender sends it.
//!
//! While an old version is being sent, the group is left and looked at again every few seconds, so
//! that a watcher with nothing new to take costs the network and this host a tenth of a stream.
//! While nothing is sent at all, the group stays joined: content that is sent once is not missed.

mod folder;
pub(crate) mod kept_mark;
mod mark;

pub use folder::{FolderEvent, FolderSummary, SendFolder, lasting_ticket, send_folder};

use crate::error::Error;
use crate::outcome::Outcome;
use crate::receive::{Ended, ReceiveEvent, ReceiveOptions, ReceiveSession, ReceiveSummary};
use crate::stop::Stop;
use crate::versions::Versions;
use fontana_proto::{Rejection, SessionKey};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How versions are followed.
#[derive(Clone, Debug)]
pub struct ReceiveWatch {
    /// What to receive, and where to. [`ReceiveOptions::timeout`] ends the watch;
    /// [`ReceiveOptions::versions`] and [`ReceiveOptions::skip_existing`] are set by it.
    pub receive: ReceiveOptions,
    /// How long the group is left alone while only old versions are being sent.
    pub look_every: Duration,
    /// End after so many versions.
    pub count: Option<u64>,
}

impl ReceiveWatch {
    /// Follows until it is stopped, also through silence.
    pub fn new(receive: ReceiveOptions) -> Self {
        let receive = ReceiveOptions { give_up_after_silence: None, ..receive };
        // A look takes a second: a tenth of the time. Who waits for news waits so long at most.
        Self { receive, look_every: Duration::from_secs(10), count: None }
    }
}

/// What a watch tells.
pub enum WatchEvent<'a> {
    /// The group was joined, for the first time or to look again.
    Joined(&'a ReceiveSession),
    /// From a reception. What would be told again at every look is told once.
    Receiving(ReceiveEvent<'a>),
    /// A version is complete.
    Taken(&'a ReceiveSummary),
    /// A version was given up: a newer one is being sent, or it failed. One that failed is passed
    /// over until the watch is started again.
    GivenUp(&'a ReceiveSummary),
    /// Nothing newer is being sent; the group was left for a while. Told when that begins.
    Waiting,
}

/// How a watch ended.
#[derive(Debug)]
pub struct WatchSummary {
    /// The outcome: that of the last version that was taken or failed, if nothing is under way.
    pub outcome: Outcome,
    /// Versions that were completed.
    pub taken: u64,
    /// The last reception.
    pub last: ReceiveSummary,
}

/// Takes every newer version of the publisher until [`ReceiveWatch::count`] of them are there, the
/// time is up, or `stop` says so.
///
/// # Errors
/// [`SetupError::NoPublisher`](crate::SetupError::NoPublisher) without a key,
/// [`SetupError::Mark`](crate::SetupError::Mark), and those of [`ReceiveSession`].
pub fn watch(
    options: &ReceiveWatch,
    stop: &Stop,
    observe: &mut dyn FnMut(WatchEvent<'_>),
) -> Result<WatchSummary, Error> {
    let started = Instant::now();
    let mut receive = ReceiveOptions {
        versions: Versions::Newer,
        skip_existing: true,
        ..options.receive.clone()
    };
    let mut told = Told::default();
    let mut taken = 0;
    // The outcome while nothing is under way.
    let mut outcome: Option<Outcome> = None;
    loop {
        let left = options.receive.timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
        receive.timeout = left;
        let session = ReceiveSession::open(receive.clone())?;
        observe(WatchEvent::Joined(&session));
        let summary = session.run(stop, &mut |event| {
            if told.is_worth_telling(&event) {
                observe(WatchEvent::Receiving(event));
            }
        })?;
        match (summary.ended, summary.manifest) {
            (Ended::Done, Some(_)) if summary.outcome == Outcome::Complete => {
                taken += 1;
                outcome = Some(Outcome::Complete);
                observe(WatchEvent::Taken(&summary));
                if options.count.is_some_and(|count| taken >= count) {
                    return Ok(WatchSummary { outcome: Outcome::Complete, taken, last: summary });
                }
            }
            (Ended::Done, accepted) => {
                outcome = Some(summary.outcome);
                observe(WatchEvent::GivenUp(&summary));
                let newer_than = &mut receive.expectation.newer_than;
                *newer_than = (*newer_than).max(accepted.map(|(_, version)| version));
            }
            (Ended::Superseded, accepted) => {
                observe(WatchEvent::GivenUp(&summary));
                if let Some((hash, _)) = accepted {
                    // Nobody sends it any more; if it is in use after all, it stays.
                    let _ = crate::resume::discard(&receive.directory, &hash.to_string());
                }
            }
            (Ended::NothingNew, _) => {
                if told.waits() {
                    observe(WatchEvent::Waiting);
                }
                // What is there is the newest that is sent.
                outcome.get_or_insert(Outcome::Complete);
                let (since, pause) = (Instant::now(), options.look_every);
                let pause = left.map_or(pause, |left| left.min(pause));
                while since.elapsed() < pause && !stop.is_set() {
                    std::thread::sleep(STOP_LATENCY);
                }
            }
            (Ended::TimeUp | Ended::Stopped, accepted) => {
                let outcome = match (accepted, outcome) {
                    (None, Some(outcome)) => outcome,
                    _ => summary.outcome,
                };
                return Ok(WatchSummary { outcome, taken, last: summary });
            }
        }
    }
}

/// How long a stop request may go unnoticed.
const STOP_LATENCY: Duration = Duration::from_millis(50);

/// Rejections that are remembered, so that each is told once.
const MAX_REJECTIONS: usize = 256;

/// What was told, and would be again at every look for days.
#[derive(Default)]
struct Told {
    rejections: BTreeSet<(SessionKey, u8)>,
    silence: bool,
    waiting: bool,
    receiving: bool,
}

impl Told {
    fn is_worth_telling(&mut self, event: &ReceiveEvent<'_>) -> bool {
        match event {
            ReceiveEvent::Rejected { session, reason } => {
                let is_common = *reason == Rejection::OtherManifest;
                !is_common
                    && self.rejections.len() < MAX_REJECTIONS
                    && self.rejections.insert((*session, *reason as u8))
            }
            ReceiveEvent::Silence { .. } => !std::mem::replace(&mut self.silence, true),
            ReceiveEvent::Accepted { .. } => {
                (self.silence, self.waiting, self.receiving) = (false, false, true);
                true
            }
            ReceiveEvent::Progress(progress) => {
                self.receiving &= progress.source_symbols > 0;
                self.receiving
            }
            _ => true,
        }
    }

    /// Notes that it is waiting. True if that is news.
    fn waits(&mut self) -> bool {
        !std::mem::replace(&mut self.waiting, true)
    }
}
