//! Sending what a directory holds, as it changes: a new version whenever the directory has not
//! changed for a while, under one session number and one key, so that one ticket stays valid.
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
//! A thread waits for changes (inotify, or a look every few seconds where that is not available),
//! until nothing has changed for [`PublisherBuilder::settle`], and prepares the new version.
//! Meanwhile the old one is being sent; then the new one takes its place.
//!
//! Versions are milliseconds since 1970, or one more than the last: they increase over restarts
//! without anything being stored, as long as the clock is not set back.

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
use notify::{RecursiveMode, Watcher};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How a directory is followed.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct PublisherBuilder {
    sender: SenderBuilder,
    settle: Duration,
    poll: Option<Duration>,
}

impl PublisherBuilder {
    /// How long nothing may have changed before a version is made. By default two seconds: programs
    /// that save a file, and those that copy many, write again within less.
    pub fn settle(mut self, time: Duration) -> Self {
        self.settle = time;
        self
    }

    /// Look for changes every so often instead of waiting for the system to report them.
    pub fn poll(mut self, every: Option<Duration>) -> Self {
        self.poll = every;
        self
    }

    /// Sends on threads of its own.
    ///
    /// # Errors
    /// [`SetupError::NoSigner`]; that the files cannot be looked at; or that the system starts no
    /// thread.
    pub fn start(self) -> Result<Publisher, Error> {
        let (mut send, token) = self.sender.into_parts();
        let signer = send.format.fontana().and_then(|format| format.signer.as_ref());
        let key = signer.map(SecretKey::public_key).ok_or(SetupError::NoSigner)?;
        send.tsi = Some(send.tsi.unwrap_or_else(|| Tsi::of_publisher(&key)));
        let first = Snapshot::take(&send)?;
        let publish = Publish { send, settle: self.settle, poll: self.poll };
        let work = move |token: &CancellationToken, tell: &mut dyn FnMut(PublishEvent)| {
            publish.run(first, token, tell)
        };
        let running = Running::spawn("publisher", token, PublishEvent::is_progress, work)?;
        Ok(Publisher { running })
    }
}

/// A sender of a directory as it changes. Dropping it stops it.
#[derive(Debug)]
pub struct Publisher {
    running: Running<PublishEvent, PublishReport>,
}

impl Publisher {
    /// Sends what `sender` sends, in versions. Its format is ours, with a key to sign with; the
    /// version is set by the publisher, and the session number follows from the key if it is not
    /// given.
    pub fn builder(sender: SenderBuilder) -> PublisherBuilder {
        PublisherBuilder { sender, settle: Duration::from_secs(2), poll: None }
    }

    /// What happens, until it ends.
    pub fn events(&self) -> Events<PublishEvent> {
        self.running.events()
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until it was stopped.
    ///
    /// # Errors
    /// What [`SenderBuilder::prepare`] fails with if it is for another reason than the state of a
    /// file, and at the beginning for any.
    pub fn join(self) -> Result<PublishReport, Error> {
        self.running.join()
    }
}

/// What a publisher tells.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PublishEvent {
    /// The system does not report changes: the publisher looks for them now and then.
    Polling {
        /// Why.
        reason: String,
        /// How often.
        every: Duration,
    },
    /// A version is about to be sent, in the place of the one before.
    Version(Arc<SessionDescription>),
    /// From the sending of a version.
    Sending(SendEvent),
    /// A version is not sent any more.
    Ended(SendReport),
    /// The directory cannot be sent as it is; what was sent before goes on. Emitted once for each
    /// reason.
    Failed(Arc<Error>),
}

impl PublishEvent {
    fn is_progress(&self) -> bool {
        matches!(self, Self::Sending(event) if event.is_progress())
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PublishReport {
    /// Interrupted, or that a file of the last version changed.
    pub outcome: Outcome,
    /// Versions that were sent.
    pub versions: u64,
}

/// Where there is no word of changes: often enough for people, seldom enough for the disk.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// Also where there is: a word may get lost (a network file system, a queue that was full).
const LOOK_ANYWAY: Duration = Duration::from_secs(60);
/// How long a stop request may go unnoticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);

/// What the thread that sends does.
struct Publish {
    send: SendOptions,
    settle: Duration,
    poll: Option<Duration>,
}

impl Publish {
    fn run(
        self,
        first: Snapshot,
        token: &CancellationToken,
        tell: &mut dyn FnMut(PublishEvent),
    ) -> Result<PublishReport, Error> {
        let Self { send, settle, poll } = self;
        let (words, news) = bounded(1);
        let (poll, _watcher) = match poll {
            Some(every) => (every, None),
            None => match listen(&send, words, &news) {
                Ok(watcher) => (LOOK_ANYWAY, Some(watcher)),
                Err(error) => {
                    let (reason, every) = (error.to_string(), POLL_EVERY);
                    tell(PublishEvent::Polling { reason, every });
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
            let result = send_versions(&prepared, token, tell);
            ended.cancel();
            drop(prepared);
            result
        })
    }
}

/// Sends what is prepared until the next is.
fn send_versions(
    prepared: &Receiver<Result<Box<PreparedSender>, Error>>,
    token: &CancellationToken,
    tell: &mut dyn FnMut(PublishEvent),
) -> Result<PublishReport, Error> {
    let mut report = PublishReport { outcome: Outcome::Interrupted, versions: 0 };
    while !token.is_cancelled() {
        let session = match prepared.recv_timeout(STOP_LATENCY) {
            Ok(Ok(session)) => session,
            Ok(Err(error)) if report.versions > 0 && is_passing(&error) => {
                tell(PublishEvent::Failed(Arc::new(error)));
                continue;
            }
            Ok(Err(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) => continue,
            // The other thread has panicked, and that is told already.
            Err(RecvTimeoutError::Disconnected) => break,
        };
        tell(PublishEvent::Version(Arc::clone(session.shared_description())));
        report.versions += 1;
        let over = token.child_token();
        let sent = session.run(&over, &mut |event| {
            tell(PublishEvent::Sending(event));
            if !prepared.is_empty() {
                over.cancel();
            }
        })?;
        report.outcome = match sent.outcome {
            Outcome::Complete => Outcome::Interrupted,
            other => other,
        };
        tell(PublishEvent::Ended(sent));
    }
    Ok(report)
}

/// Whether an error is of the files as they are, and may be gone when they are others.
fn is_passing(error: &Error) -> bool {
    !matches!(
        error,
        Error::Io(IoError::Send(_) | IoError::Thread(_) | IoError::System { .. })
            | Error::Setup(SetupError::Send(_) | SetupError::Interface(_) | SetupError::Mtu(_))
    )
}

/// Has the system tell of changes.
fn listen(
    send: &SendOptions,
    words: Sender<()>,
    news: &Receiver<()>,
) -> notify::Result<notify::RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |_: notify::Result<notify::Event>| {
        // One word is as good as many.
        let _ = words.try_send(());
    })?;
    if news.try_recv() == Err(TryRecvError::Disconnected) {
        // The watcher has dropped `words` because its thread could not be started, which it does
        // not return. Without the thread all that can be called panics, its `drop` too.
        std::mem::forget(watcher);
        return Err(notify::Error::generic("its thread cannot be started"));
    }
    for path in &send.files {
        watcher.watch(path, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}

/// Everything by which a state of the files is told from another.
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

    /// For how long nothing in it has changed, by the clocks that wrote the times.
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
    /// Of the last version that was made.
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
        let mut told = String::new();
        while !self.ended.is_cancelled() {
            let now = match Snapshot::take(&self.send) {
                Ok(now) => now,
                Err(error) => {
                    self.tell(&mut told, error);
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
            } else if self.prepare(&now, &mut told) {
                sent = Some(now);
            } else {
                self.rest();
            }
        }
    }

    /// Prepares a version, if nothing changes meanwhile. True if that need not be tried again.
    fn prepare(&mut self, snapshot: &Snapshot, told: &mut String) -> bool {
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
                    told.clear();
                    // Nobody waits for it any more when it is over.
                    let _ = self.ready.send(Ok(Box::new(session)));
                    return true;
                }
                false
            }
            // What vanished while it was read is gone in the next snapshot.
            Err(Error::Io(IoError::Source(error)))
                if error.category() == fontana_proto::Category::SourceChanged =>
            {
                false
            }
            Err(error) => {
                self.tell(told, error);
                true
            }
        }
    }

    /// Tells of an error, unless it is the one that was told last.
    fn tell(&self, told: &mut String, error: Error) {
        let words = error.to_string();
        if *told != words {
            *told = words;
            let _ = self.ready.send(Err(error));
        }
    }

    /// Waits a part of the time to settle.
    fn rest(&self) {
        self.pause(self.settle / 4, false);
    }

    /// Waits until something may have changed.
    fn wait(&self, limit: Duration) {
        self.pause(limit, true);
    }

    fn pause(&self, limit: Duration, for_news: bool) {
        let since = Instant::now();
        while since.elapsed() < limit && !self.ended.is_cancelled() {
            let step = limit.saturating_sub(since.elapsed()).min(STOP_LATENCY);
            if for_news && self.news.recv_timeout(step) == Ok(()) {
                return;
            }
            // Without a watcher the channel has no other end, and does not wait.
            if !for_news || self.news.is_empty() {
                let left = limit.saturating_sub(since.elapsed()).min(step);
                std::thread::sleep(left);
            }
        }
    }
}
