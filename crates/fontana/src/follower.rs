//! The follower of a publisher: receives one version after the other.
//!
//! ```no_run
//! use fontana::{FollowEvent, Follower, Receiver};
//!
//! let ticket = "fontana://10.0.0.7@239.255.77.1:7701/5?key=...".parse().unwrap();
//! let receiver = Receiver::from_ticket(&ticket).into_dir("downloads");
//! let follower = Follower::builder(receiver).start()?;
//! for event in follower.events() {
//!     if let FollowEvent::Taken(report) = event {
//!         println!("received {:?}", report.manifest);
//!     }
//! }
//! # Ok::<(), fontana::Error>(())
//! ```
//!
//! Version numbers increase. A directory has a high-water mark: versions that are not above it are
//! not received, whichever host sends them, also after a restart.
//!
//! After a version, and at the start, the follower stays joined for a while: a directory that
//! changes often is followed without gaps. While only an old version is sent for longer, it leaves
//! the group, and joins it again for a second every few seconds. If there is nothing new, it costs
//! the network and this host a tenth of the stream. While nothing is sent, the group stays joined,
//! so that content that is sent once is not missed.

use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::{AcceptedManifest, ReceiveEvent};
use crate::outcome::Outcome;
use crate::receive::{Carried, EarlySockets, PreparedReceiver, ReceiveOptions};
use crate::receiver::ReceiverBuilder;
use crate::report::{Ended, ReceiveReport, RejectedSession};
use crate::session::{Events, Running};
use crate::versions::Versions;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use fontana_net::BufferShortfall;
use fontana_proto::{Expectation, Rejection};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The options of a follower.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct FollowerBuilder {
    receiver: ReceiverBuilder,
    stay_joined: Duration,
    look_every: Duration,
    count: Option<u64>,
    waits: bool,
}

impl FollowerBuilder {
    /// Stays joined for this long after a version, and at the start, while only old versions are
    /// sent. By default a minute, at least a second.
    pub fn stay_joined(mut self, time: Duration) -> Self {
        self.stay_joined = time;
        self
    }

    /// After that, leaves the group for this long before each look. By default ten seconds; a look
    /// takes one.
    pub fn look_every(mut self, pause: Duration) -> Self {
        self.look_every = pause;
        self
    }

    /// Ends after this many versions. By default never.
    pub fn count(mut self, count: Option<u64>) -> Self {
        self.count = count;
        self
    }

    /// Ends if no packet of a session has arrived for this long. By default never.
    pub fn give_up_after_silence(mut self, silence: Option<Duration>) -> Self {
        self.receiver = self.receiver.give_up_after_silence(silence);
        self
    }

    /// Sets whether it waits for [`Follower::proceed`] after each version, so that the files do not
    /// change while the application uses them. By default it does not.
    pub fn wait_after_version(mut self, waits: bool) -> Self {
        self.waits = waits;
        self
    }

    /// Follows on its own threads.
    ///
    /// # Errors
    /// [`SetupError::NoPublisher`](crate::SetupError::NoPublisher) without a key; what
    /// [`ReceiverBuilder::prepare`] fails with; or that the system starts no thread.
    pub fn start(self) -> Result<Follower, Error> {
        let Self { receiver, stay_joined, look_every, count, waits } = self;
        let stay_joined = stay_joined.max(LOOK);
        let (proceed, proceeds) = unbounded();
        let (receive, token) = receiver.into_parts();
        let follow = Follow {
            timeout: receive.timeout,
            receive: ReceiveOptions {
                versions: Versions::Newer,
                listen_after_old: stay_joined,
                skip_existing: true,
                ..receive
            },
            stay_joined,
            look_every,
            count,
            proceeds: waits.then_some(proceeds),
        };
        // Setup errors are returned before the thread starts.
        let first = PreparedReceiver::open(follow.receive.clone(), token.clone())?;
        let work = move |token: &CancellationToken, emit: &mut dyn FnMut(FollowEvent)| {
            follow.run(first, token, emit)
        };
        let running = Running::spawn("follower", token, FollowEvent::replaces, work)?;
        Ok(Follower { running, proceed })
    }
}

/// A running follower. Dropping it stops it.
#[derive(Debug)]
pub struct Follower {
    running: Running<FollowEvent, FollowReport>,
    proceed: Sender<()>,
}

impl Follower {
    /// Follows what `receiver` receives, until it is stopped, whatever silence there is.
    /// [`ReceiverBuilder::timeout`] ends the follower. Versions and existing files are treated as
    /// [`Versions::Newer`] and
    /// [`FontanaReception::skip_existing`](crate::FontanaReception::skip_existing) say.
    pub fn builder(receiver: ReceiverBuilder) -> FollowerBuilder {
        let receiver = receiver.give_up_after_silence(None);
        FollowerBuilder {
            receiver,
            stay_joined: Duration::from_secs(60),
            look_every: Duration::from_secs(10),
            count: None,
            waits: false,
        }
    }

    /// The events of the follower.
    pub fn events(&self) -> Events<FollowEvent> {
        self.running.events()
    }

    /// Continues with the next version, with [`FollowerBuilder::wait_after_version`].
    pub fn proceed(&self) {
        // Sending fails only if the follower has ended.
        let _ = self.proceed.send(());
    }

    /// Requests its end. What was received is saved.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until all requested versions are received, the time is up, or it was stopped.
    ///
    /// # Errors
    /// [`Error`] if the network or the system fails.
    pub fn join(self) -> Result<FollowReport, Error> {
        self.running.join()
    }
}

/// An event of a follower.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FollowEvent {
    /// The group was joined, for the first time or to look again.
    Joined {
        /// Names of the interfaces.
        interfaces: Vec<String>,
        /// Set if the kernel gave less receive buffer than asked for.
        buffer_shortfall: Option<BufferShortfall>,
    },
    /// An event of a reception. Events that every look would repeat are emitted once.
    Receiving(ReceiveEvent),
    /// A version is complete.
    Taken(ReceiveReport),
    /// A version was given up: a newer one is being sent, or it failed. A failed version is skipped
    /// until the follower is started again.
    GivenUp(ReceiveReport),
    /// Nothing newer is being sent: only old versions were received for a second. Emitted when that
    /// begins.
    Waiting,
}

impl FollowEvent {
    fn replaces(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Receiving(event), Self::Receiving(other)) if event.replaces(other))
    }
}

/// The result of a follower.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FollowReport {
    /// The outcome of the last version that was completed or failed, if none is being received.
    pub outcome: Outcome,
    /// Versions that were completed.
    pub taken: u64,
    /// The last reception.
    pub last: ReceiveReport,
}

/// The state of the follower's thread.
struct Follow {
    receive: ReceiveOptions,
    /// For all receptions together.
    timeout: Option<Duration>,
    stay_joined: Duration,
    look_every: Duration,
    count: Option<u64>,
    /// Present if it waits after each version.
    proceeds: Option<Receiver<()>>,
}

impl Follow {
    fn run(
        self,
        first: PreparedReceiver,
        token: &CancellationToken,
        emit: &mut dyn FnMut(FollowEvent),
    ) -> Result<FollowReport, Error> {
        let Self { mut receive, timeout, stay_joined, look_every, count, proceeds } = self;
        let started = Instant::now();
        let mut first = Some(first);
        let mut carried = Carried::default();
        let mut repeats = RepeatFilter::default();
        let mut taken = 0;
        // The outcome if no version is being received.
        let mut outcome: Option<Outcome> = None;
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
            receive.timeout = left;
            let session = match first.take() {
                Some(session) => session,
                None => {
                    let carried = std::mem::take(&mut carried);
                    PreparedReceiver::open_next(receive.clone(), carried, token.clone())?
                }
            };
            receive.listen_after_old = stay_joined;
            repeats.begin();
            emit(FollowEvent::Joined {
                interfaces: session.interfaces().to_vec(),
                buffer_shortfall: session.buffer_shortfall().cloned(),
            });
            let result = session.run(token, &mut |event| {
                if matches!(event, ReceiveEvent::ReceptionComplete) {
                    // Packets of the next version may arrive while this one is committed. Without
                    // the sockets, the next reception opens its own.
                    carried.sockets = EarlySockets::open(&receive).ok();
                }
                if repeats.passes(&event) {
                    emit(FollowEvent::Receiving(event));
                }
                if repeats.starts_waiting(false) {
                    emit(FollowEvent::Waiting);
                }
            })?;
            let report = result.report;
            (receive.known_manifest, carried.reporter) = (result.newer_manifest, result.reporter);
            if repeats.is_waiting {
                // The version in the directory is the newest one that is sent.
                outcome.get_or_insert(Outcome::Complete);
            }
            match (report.ended, report.manifest) {
                (Ended::Done, Some(_)) if report.outcome == Outcome::Complete => {
                    taken += 1;
                    outcome = Some(Outcome::Complete);
                    emit(FollowEvent::Taken(report.clone()));
                    if count.is_some_and(|count| taken >= count) {
                        let outcome = Outcome::Complete;
                        return Ok(FollowReport { outcome, taken, last: report });
                    }
                    if let Some(proceeds) = &proceeds {
                        wait_for(proceeds, token);
                    }
                }
                (Ended::Done, accepted) => {
                    outcome = Some(report.outcome);
                    emit(FollowEvent::GivenUp(report));
                    let version = accepted.map(|manifest| manifest.version);
                    let Expectation { given_up, newer_than, .. } = &mut receive.expectation;
                    *given_up = (*given_up).max(version);
                    *newer_than = (*newer_than).max(version);
                }
                (Ended::Superseded, accepted) => {
                    emit(FollowEvent::GivenUp(report));
                    if let Some(AcceptedManifest { hash, .. }) = accepted {
                        // This version is not sent any more. If another receiver uses its state,
                        // the state stays.
                        let _ = crate::resume::discard(&receive.directory, &hash.to_string());
                    }
                }
                (Ended::NothingNew, _) => {
                    if repeats.starts_waiting(true) {
                        emit(FollowEvent::Waiting);
                    }
                    outcome.get_or_insert(Outcome::Complete);
                    receive.listen_after_old = LOOK;
                    let (since, pause) = (Instant::now(), look_every);
                    let pause = left.map_or(pause, |left| left.min(pause));
                    while since.elapsed() < pause && !token.is_cancelled() {
                        std::thread::sleep(STOP_LATENCY);
                    }
                }
                (Ended::TimeUp | Ended::Closed | Ended::Stopped | Ended::NoMirrors, accepted) => {
                    let outcome = match (accepted, outcome) {
                        // As many versions as were asked for have not come in time.
                        (None, Some(Outcome::Complete))
                            if count.is_some() && report.ended == Ended::TimeUp =>
                        {
                            report.outcome
                        }
                        (None, Some(outcome)) => outcome,
                        _ => report.outcome,
                    };
                    return Ok(FollowReport { outcome, taken, last: report });
                }
            }
        }
    }
}

/// Waits for [`Follower::proceed`], or the end.
fn wait_for(proceeds: &Receiver<()>, token: &CancellationToken) {
    while !token.is_cancelled() {
        match proceeds.recv_timeout(STOP_LATENCY) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// How long a look takes: a newer version may be sent beside an old one.
const LOOK: Duration = Duration::from_secs(1);

/// Longest time until a stop request is noticed.
const STOP_LATENCY: Duration = Duration::from_millis(50);

/// Largest number of rejections that are remembered so that each is emitted once.
const MAX_REJECTIONS: usize = 256;

/// The events that were emitted, and that every later look would repeat.
#[derive(Default)]
struct RepeatFilter {
    rejections: BTreeSet<RejectedSession>,
    silence: bool,
    is_waiting: bool,
    receiving: bool,
    /// Since when this reception has received old versions only.
    old_since: Option<Instant>,
}

impl RepeatFilter {
    /// A reception begins.
    fn begin(&mut self) {
        self.old_since = None;
    }

    /// Whether an event is emitted. Records it.
    fn passes(&mut self, event: &ReceiveEvent) -> bool {
        if matches!(event, ReceiveEvent::Rejected { reason: Rejection::OldVersion { .. }, .. }) {
            self.old_since.get_or_insert_with(Instant::now);
        }
        match event {
            ReceiveEvent::Rejected { session, reason } => {
                let is_common = *reason == Rejection::OtherManifest;
                !is_common
                    && self.rejections.len() < MAX_REJECTIONS
                    && self
                        .rejections
                        .insert(RejectedSession { session: *session, reason: *reason })
            }
            ReceiveEvent::Silence { .. } => !std::mem::replace(&mut self.silence, true),
            ReceiveEvent::Accepted { .. } => {
                (self.silence, self.is_waiting, self.receiving) = (false, false, true);
                self.old_since = None;
                true
            }
            ReceiveEvent::Progress(progress) => {
                self.receiving &= progress.source_symbols > 0;
                self.receiving
            }
            _ => true,
        }
    }

    /// Whether it begins to wait: after a look, or when only old versions were received for as
    /// long.
    fn starts_waiting(&mut self, has_looked: bool) -> bool {
        let waits = has_looked || self.old_since.is_some_and(|since| since.elapsed() >= LOOK);
        waits && !std::mem::replace(&mut self.is_waiting, true)
    }
}
