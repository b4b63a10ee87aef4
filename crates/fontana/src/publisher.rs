//! The publisher of a directory: sends a new version whenever the directory has not changed for a
//! while. All versions have one session number and one key, so that one ticket stays valid.
//!
//! ```no_run
//! use fontana::{FontanaFormat, Format, PublishEvent, Publisher, Sender};
//!
//! let mut format = FontanaFormat::default();
//! format.signer = Some(fontana::generate_key()?);
//! let sender = Sender::builder(["photos"]).format(Format::Fontana(format));
//! let publisher = Publisher::builder(sender).start()?;
//! for event in publisher.events() {
//!     if let PublishEvent::Version(session) = event {
//!         println!("version {}: {}", session.manifest.version(), session.lasting_ticket());
//!     }
//! }
//! # Ok::<(), fontana::Error>(())
//! ```
//!
//! A thread waits for changes (inotify, or polling where that is not available). When nothing has
//! changed for [`PublisherBuilder::settle`], it prepares the new version. The old one is sent until
//! the new one replaces it.
//!
//! Versions are milliseconds since 1970, or one more than the last. They increase over restarts
//! without stored state, unless the clock is set back.

use crate::cancellation::CancellationToken;
use crate::error::{Error, IoError, SetupError};
use crate::event::SendEvent;
use crate::format::Format;
use crate::outcome::Outcome;
use crate::report::SendReport;
use crate::send::{PreparedSender, SendOptions, SessionDescription};
use crate::sender::SenderBuilder;
use crate::session::{Events, Running};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use fontana_net::thread::spawn_scoped;
use fontana_store::{Found, Identity, Timestamp, Tree};
use fontana_wire::{SecretKey, Tsi};
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The options of a publisher.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct PublisherBuilder {
    sender: SenderBuilder,
    settle: Duration,
    poll: Option<Duration>,
    duration: Option<Duration>,
}

impl PublisherBuilder {
    /// Makes a version after this long without a change. By default two seconds: programs that save
    /// a file or copy many write again within less.
    pub fn settle(mut self, time: Duration) -> Self {
        self.settle = time;
        self
    }

    /// Polls for changes at this interval instead of waiting for the system to report them.
    pub fn poll(mut self, every: Option<Duration>) -> Self {
        self.poll = every;
        self
    }

    /// Ends the publisher after this time; without a limit if `None`.
    pub fn duration(mut self, limit: Option<Duration>) -> Self {
        self.duration = limit;
        self
    }

    /// Sends on its own threads.
    ///
    /// # Errors
    /// [`SetupError::NoSigner`]; that the files cannot be examined; or that the system starts no
    /// thread.
    pub fn start(self) -> Result<Publisher, Error> {
        let (mut send, token) = self.sender.into_parts();
        let signer = send.format.fontana().and_then(|format| format.signer.as_ref());
        let key = signer.map(SecretKey::public_key).ok_or(SetupError::NoSigner)?;
        send.tsi = Some(send.tsi.unwrap_or_else(|| Tsi::of_publisher(&key)));
        let first = Snapshot::take(&send)?;
        let end = self.duration.and_then(|limit| Instant::now().checked_add(limit));
        let publish = Publish { send, settle: self.settle, poll: self.poll, end };
        let work = move |token: &CancellationToken, emit: &mut dyn FnMut(PublishEvent)| {
            publish.run(first, token, emit)
        };
        let running = Running::spawn("publisher", token, PublishEvent::is_progress, work)?;
        Ok(Publisher { running })
    }
}

/// A running publisher of a directory. Dropping it stops it.
#[derive(Debug)]
pub struct Publisher {
    running: Running<PublishEvent, PublishReport>,
}

impl Publisher {
    /// The options for sending the files of `sender` in versions. Its format must be
    /// [`Format::Fontana`](crate::Format::Fontana) with a signer. The publisher sets the version.
    /// The session number follows from the key if it is not given.
    pub fn builder(sender: SenderBuilder) -> PublisherBuilder {
        PublisherBuilder { sender, settle: Duration::from_secs(2), poll: None, duration: None }
    }

    /// The events of the publisher.
    pub fn events(&self) -> Events<PublishEvent> {
        self.running.events()
    }

    /// Requests its end.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until it was stopped.
    ///
    /// # Errors
    /// The errors of [`SenderBuilder::prepare`], except those that the state of a file causes after
    /// the first version.
    pub fn join(self) -> Result<PublishReport, Error> {
        self.running.join()
    }
}

/// An event of a publisher.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PublishEvent {
    /// The system does not report changes: the publisher polls.
    Polling {
        /// The system's error.
        reason: String,
        /// The interval.
        every: Duration,
    },
    /// This version replaces the previous one.
    Version(Arc<SessionDescription>),
    /// An event of the sender of the current version.
    Sending(SendEvent),
    /// A version is no longer sent.
    Ended(SendReport),
    /// The directory cannot be sent in its current state. The previous version is still sent.
    /// Emitted once for each reason.
    Failed(Arc<Error>),
}

impl PublishEvent {
    fn is_progress(&self) -> bool {
        matches!(self, Self::Sending(event) if event.is_progress())
    }
}

/// The result of a publisher.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PublishReport {
    /// `Complete` after [`PublisherBuilder::duration`], `Interrupted` if it was stopped before, or
    /// `SourceChanged` if a file of the last version changed.
    pub outcome: Outcome,
    /// Number of versions that were sent.
    pub versions: u64,
}

/// Interval without change reports: short enough for users, long enough for the disk.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// Interval with change reports, which can be lost (network file systems, a full queue).
const LOOK_ANYWAY: Duration = Duration::from_secs(60);
/// Longest time until a stop request is noticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);

/// The state of the publisher's thread.
struct Publish {
    send: SendOptions,
    settle: Duration,
    poll: Option<Duration>,
    end: Option<Instant>,
}

impl Publish {
    fn run(
        self,
        first: Snapshot,
        token: &CancellationToken,
        emit: &mut dyn FnMut(PublishEvent),
    ) -> Result<PublishReport, Error> {
        let Self { send, settle, poll, end } = self;
        let (words, news) = bounded(1);
        let (poll, _watcher) = match poll {
            Some(every) => (every, None),
            None => match listen(&send, words, &news) {
                Ok(watcher) => (LOOK_ANYWAY, Some(watcher)),
                Err(error) => {
                    let (reason, every) = (error.to_string(), POLL_EVERY);
                    emit(PublishEvent::Polling { reason, every });
                    (every, None)
                }
            },
        };
        let (ready, prepared) = bounded(1);
        std::thread::scope(|scope| {
            let ended = CancellationToken::new();
            let version = send.format.fontana().map_or(0, |format| format.version);
            let folder = Folder { send, version, settle, poll, news, ready, ended: ended.clone() };
            spawn_scoped(scope, "folder", move || folder.run(first))?;
            let result = send_versions(&prepared, &End { token, at: end }, emit);
            ended.cancel();
            drop(prepared);
            result
        })
    }
}

/// When a publisher ends.
struct End<'a> {
    token: &'a CancellationToken,
    at: Option<Instant>,
}

impl End<'_> {
    fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    fn has_come(&self) -> bool {
        self.token.is_cancelled() || self.is_due()
    }
}

/// Sends each prepared version until the next one. A version that ends by itself is followed by
/// silence until the next one.
fn send_versions(
    prepared: &Receiver<Result<Box<PreparedSender>, Error>>,
    end: &End<'_>,
    emit: &mut dyn FnMut(PublishEvent),
) -> Result<PublishReport, Error> {
    let mut report = PublishReport { outcome: Outcome::Interrupted, versions: 0 };
    while !end.has_come() {
        let session = match prepared.recv_timeout(STOP_LATENCY) {
            Ok(Ok(session)) => session,
            Ok(Err(error)) if report.versions > 0 && is_passing(&error) => {
                emit(PublishEvent::Failed(Arc::new(error)));
                continue;
            }
            Ok(Err(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) => continue,
            // The other thread has panicked, and the panic has been reported.
            Err(RecvTimeoutError::Disconnected) => break,
        };
        emit(PublishEvent::Version(Arc::clone(session.shared_description())));
        report.versions += 1;
        let over = end.token.child_token();
        let sent = session.run(&over, &mut |event| {
            emit(PublishEvent::Sending(event));
            if !prepared.is_empty() || end.is_due() {
                over.cancel();
            }
        })?;
        report.outcome = match sent.outcome {
            Outcome::Complete => Outcome::Interrupted,
            other => other,
        };
        emit(PublishEvent::Ended(sent));
    }
    if report.outcome == Outcome::Interrupted && !end.token.is_cancelled() {
        report.outcome = Outcome::Complete;
    }
    Ok(report)
}

/// Whether the error can disappear when the files change.
fn is_passing(error: &Error) -> bool {
    !matches!(
        error,
        Error::Io(IoError::Send(_) | IoError::Thread(_) | IoError::System { .. })
            | Error::Setup(SetupError::Send(_) | SetupError::Interface(_) | SetupError::Mtu(_))
    )
}

/// Watches the files with the system's change reports.
fn listen(
    send: &SendOptions,
    words: Sender<()>,
    news: &Receiver<()>,
) -> notify::Result<notify::RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| is_only_read(event.kind)) {
            return;
        }
        // One pending report is enough.
        let _ = words.try_send(());
    })?;
    if news.try_recv() == Err(TryRecvError::Disconnected) {
        // The watcher has dropped `words` because its thread could not be started, which it does
        // not return as an error. Without the thread all of its functions panic, its `drop` too.
        std::mem::forget(watcher);
        return Err(notify::Error::generic("its thread cannot be started"));
    }
    for path in &send.files {
        watcher.watch(path, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}

/// Whether an event reports a program that reads: the publisher itself does so.
fn is_only_read(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access != AccessKind::Close(AccessMode::Write),
        _ => false,
    }
}

/// Everything that distinguishes two states of the files.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot(Vec<(Vec<u8>, State)>);

#[derive(Debug, PartialEq, Eq)]
enum State {
    File(Identity),
    Directory(u32, Timestamp),
    Link(Vec<u8>),
}

impl Snapshot {
    fn take(send: &SendOptions) -> Result<Self, Error> {
        let tree = Tree::scan(&send.files, &send.filter)?;
        let mut names = Vec::with_capacity(tree.entries.len());
        for entry in tree.entries {
            let state = match entry.found {
                Found::File(index) => match tree.files.as_slice().get(index.0 as usize) {
                    Some(file) => State::File(file.identity()),
                    None => continue,
                },
                Found::Directory { mode, modified } => State::Directory(mode, modified),
                Found::Link { leads_to } => State::Link(leads_to),
            };
            names.push((entry.name, state));
        }
        Ok(Self(names))
    }

    /// Time since the last change, by the clocks that wrote the modification times.
    fn rests_for(&self) -> Duration {
        let newest = self.0.iter().map(|(_, state)| match state {
            State::File(identity) => identity.changed,
            State::Directory(_, modified) => *modified,
            State::Link(_) => Timestamp { seconds: 0, nanoseconds: 0 },
        });
        let newest = newest.map(|time| (time.seconds, time.nanoseconds)).max().unwrap_or_default();
        let seconds = u64::try_from(newest.0).unwrap_or(0);
        let newest = UNIX_EPOCH.checked_add(Duration::new(seconds, newest.1));
        newest.and_then(|newest| newest.elapsed().ok()).unwrap_or_default()
    }
}

/// The thread that prepares versions.
struct Folder {
    send: SendOptions,
    /// The last version that was made.
    version: u64,
    settle: Duration,
    poll: Duration,
    news: Receiver<()>,
    ready: Sender<Result<Box<PreparedSender>, Error>>,
    ended: CancellationToken,
}

impl Folder {
    fn run(mut self, first: Snapshot) {
        let mut rests = first.rests_for().min(self.settle);
        let (mut candidate, mut since) = (first, Instant::now());
        let mut sent: Option<Snapshot> = None;
        let mut last_error = String::new();
        while !self.ended.is_cancelled() {
            let now = match Snapshot::take(&self.send) {
                Ok(now) => now,
                Err(error) => {
                    self.report(&mut last_error, error);
                    self.wait(self.settle);
                    continue;
                }
            };
            if sent.as_ref() == Some(&now) {
                self.wait(self.poll);
            } else if now != candidate {
                (candidate, since, rests) = (now, Instant::now(), Duration::ZERO);
                self.rest();
            } else if since.elapsed() + rests < self.settle {
                self.rest();
            } else if self.prepare(&now, &mut last_error) {
                sent = Some(now);
            } else {
                self.rest();
            }
        }
    }

    /// Prepares a version, if nothing changes meanwhile. Returns false if it must be tried again.
    fn prepare(&mut self, snapshot: &Snapshot, last_error: &mut String) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let version = (now.as_millis() as u64).max(self.version.saturating_add(1));
        let mut options = self.send.clone();
        if let Format::Fontana(format) = &mut options.format {
            format.version = version;
        }
        match PreparedSender::prepare(options, CancellationToken::new()) {
            Ok(session) => {
                if Snapshot::take(&self.send).is_ok_and(|now| now == *snapshot) {
                    self.version = version;
                    last_error.clear();
                    // Sending fails only after the session's end.
                    let _ = self.ready.send(Ok(Box::new(session)));
                    return true;
                }
                false
            }
            // A file that vanished while it was read is missing in the next snapshot.
            Err(Error::Io(IoError::Source(error)))
                if error.category() == fontana_proto::Category::SourceChanged =>
            {
                false
            }
            Err(error) => {
                self.report(last_error, error);
                true
            }
        }
    }

    /// Reports an error, unless its message is that of the last one.
    fn report(&self, last_error: &mut String, error: Error) {
        let message = error.to_string();
        if *last_error != message {
            *last_error = message;
            let _ = self.ready.send(Err(error));
        }
    }

    /// Sleeps for a part of the settling time.
    fn rest(&self) {
        let (since, limit) = (Instant::now(), self.settle / 4);
        while since.elapsed() < limit && !self.ended.is_cancelled() {
            std::thread::sleep(limit.saturating_sub(since.elapsed()).min(STOP_LATENCY));
        }
    }

    /// Waits until something may have changed.
    fn wait(&self, limit: Duration) {
        let since = Instant::now();
        while since.elapsed() < limit && !self.ended.is_cancelled() {
            let step = limit.saturating_sub(since.elapsed()).min(STOP_LATENCY);
            if self.news.recv_timeout(step) == Ok(()) {
                return;
            }
            // Without a watcher the channel is disconnected, and receiving from it does not wait.
            if self.news.is_empty() {
                std::thread::sleep(limit.saturating_sub(since.elapsed()).min(step));
            }
        }
    }
}
