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
//! A thread waits for changes (inotify, or polling where that is not available). When a file that
//! has changed is unchanged for [`PublisherBuilder::settle`], it prepares a new version. Files that
//! still change then are in it as they were in the version before, if they only grow, or not at
//! all. The old version is sent until the new one replaces it.
//!
//! Versions are milliseconds since 1970, or one more than the last. They increase over restarts
//! without stored state, unless the clock is set back.

use crate::cancellation::CancellationToken;
use crate::error::{Error, IoError, SetupError};
use crate::event::{SendEvent, SendProgress};
use crate::format::Format;
use crate::outcome::Outcome;
use crate::report::SendReport;
use crate::send::{PreparedSender, SendOptions, SessionDescription};
use crate::sender::SenderBuilder;
use crate::session::{Events, Running};
use crate::system::random_u64;
use changes::{Changes, POLL_EVERY};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, unbounded};
use folder::{Folder, Note};
use fontana_net::thread::{catch, spawn_scoped};
use fontana_store::Tree;
use fontana_wire::Tsi;
use handover::{Handover, STOP_LATENCY};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod changes;
mod folder;
mod handover;
mod settle;

/// The options of a publisher.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct PublisherBuilder {
    sender: SenderBuilder,
    settle: Duration,
    poll: Option<Duration>,
    duration: Option<Duration>,
    at_least_permille: u32,
}

impl PublisherBuilder {
    /// A file that has changed is in the next version after this long without a change of it. By
    /// default two seconds: programs that save a file write again within less.
    pub fn settle(mut self, time: Duration) -> Self {
        self.settle = time;
        self
    }

    /// Polls for changes at this interval instead of waiting for the system to report them.
    pub fn poll(mut self, every: Option<Duration>) -> Self {
        self.poll = every;
        self
    }

    /// Replaces a version not before it was sent this many times, in thousandths of its source
    /// symbols. By default 0. What receivers of the version before lack is sent first, and always
    /// before the version is replaced.
    pub fn at_least_permille(mut self, passes: u32) -> Self {
        self.at_least_permille = passes;
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
        let number = match &send.format {
            // All states have one number.
            Format::Flute(_) => Tsi(u64::from(random_u64()? as u32).max(1)),
            format => {
                let signer = format.fontana().and_then(|format| format.signer.as_ref());
                Tsi::of_publisher(&signer.ok_or(SetupError::NoSigner)?.public_key())
            }
        };
        send.tsi = Some(send.tsi.unwrap_or(number));
        let first = Tree::scan(&send.files, &send.filter)?;
        let end = self.duration.and_then(|limit| Instant::now().checked_add(limit));
        let Self { settle, poll, at_least_permille, .. } = self;
        let publish = Publish { send, settle, poll, end, at_least_permille };
        let work = move |token: &CancellationToken, emit: &mut dyn FnMut(PublishEvent)| {
            publish.run(first, token, emit)
        };
        let running = Running::spawn("publisher", token, PublishEvent::replaces, work)?;
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
    /// [`Format::Fontana`](crate::Format::Fontana) with a signer, or
    /// [`Format::Flute`](crate::Format::Flute): then a changed file is another object in the next
    /// table, no table says that it is complete, and files are not compressed. The publisher sets
    /// the version. The session number, if it is not given, follows from the key, and is random for
    /// plain FLUTE.
    pub fn builder(sender: SenderBuilder) -> PublisherBuilder {
        PublisherBuilder {
            sender,
            settle: Duration::from_secs(2),
            poll: None,
            duration: None,
            at_least_permille: 0,
        }
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
    /// A file or link changes again and again, and is not in the versions in its present state.
    /// Emitted once for each, at most for 16.
    Restless {
        /// Its name at receivers.
        name: String,
        /// The time since it was last unchanged for as long as a version needs.
        since: Duration,
    },
    /// This version replaces the previous one.
    Version(Arc<SessionDescription>),
    /// An event of the sender of the current version.
    Sending(SendEvent),
    /// A version is no longer sent.
    Ended(SendReport),
    /// A file or directory cannot be sent, and is left out. Emitted once for each reason.
    LeftOut(Arc<Error>),
    /// The directory cannot be sent in its current state. The previous version is still sent.
    /// Emitted once for each reason.
    Failed(Arc<Error>),
}

impl PublishEvent {
    fn replaces(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Sending(event), Self::Sending(other)) if event.replaces(other))
    }
}

/// The result of a publisher.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PublishReport {
    /// `Complete` after [`PublisherBuilder::duration`], `Interrupted` if it was stopped before,
    /// `SourceChanged` if a file of the last version changed, or the outcome of what it is without.
    pub outcome: Outcome,
    /// Number of versions that were sent.
    pub versions: u64,
}

/// The state of the publisher's thread.
struct Publish {
    send: SendOptions,
    settle: Duration,
    poll: Option<Duration>,
    end: Option<Instant>,
    at_least_permille: u32,
}

impl Publish {
    fn run(
        self,
        first: Tree,
        token: &CancellationToken,
        emit: &mut dyn FnMut(PublishEvent),
    ) -> Result<PublishReport, Error> {
        let Self { send, settle, poll, end, at_least_permille } = self;
        let (words, news) = bounded(1);
        let handover = Arc::new(Handover::new(words.clone()));
        let changes = match poll {
            Some(every) => Changes { every, watcher: None },
            None => Changes::watch(&send.files, words).unwrap_or_else(|error| {
                let (reason, every) = (error.to_string(), POLL_EVERY);
                emit(PublishEvent::Polling { reason, every });
                Changes { every, watcher: None }
            }),
        };
        let (ready, prepared) = bounded(1);
        let (note, notes) = unbounded();
        let inbox = Inbox { prepared, notes, handover: Arc::clone(&handover), at_least_permille };
        std::thread::scope(|scope| {
            let ended = CancellationToken::new();
            let version = send.format.fontana().map_or(0, |format| format.version);
            let folder = Folder::new(send, version, settle, changes, ended.clone());
            let outbox = folder::Outbox { ready, note, handover, news };
            spawn_scoped(scope, "folder", move || {
                if let Err(panic) = catch(|| folder.run(first, &outbox)) {
                    let _ = outbox.note.send(Note::Failed(panic.into()));
                }
            })?;
            let result = send_versions(&inbox, &End { token, at: end }, emit);
            ended.cancel();
            drop(inbox);
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

/// What the sending thread receives from the thread that prepares versions.
struct Inbox {
    prepared: Receiver<Box<PreparedSender>>,
    notes: Receiver<Note>,
    handover: Arc<Handover>,
    at_least_permille: u32,
}

impl Inbox {
    /// Emits what was noted. An error of the first version, or one that no change of the files can
    /// mend, ends the publisher.
    fn emit_notes(
        &self,
        has_version: bool,
        emit: &mut dyn FnMut(PublishEvent),
    ) -> Result<(), Error> {
        for note in self.notes.try_iter() {
            match note {
                Note::Failed(error) if has_version && is_passing(&error) => {
                    emit(PublishEvent::Failed(Arc::new(error)));
                }
                Note::Failed(error) => return Err(error),
                Note::LeftOut(error) => emit(PublishEvent::LeftOut(Arc::new(error))),
                Note::Restless { name, since } => emit(PublishEvent::Restless { name, since }),
            }
        }
        Ok(())
    }

    /// Whether a version may be replaced.
    fn is_sent(&self, progress: &SendProgress) -> bool {
        let sent = progress.stats.source_symbols + progress.stats.repair_symbols;
        let passes = sent.saturating_mul(1000) / progress.source_symbols.max(1);
        progress.first_sent && passes >= self.at_least_permille.into()
    }
}

/// Sends each prepared version until the next one. A version that ends by itself is followed by
/// silence until the next one.
fn send_versions(
    inbox: &Inbox,
    end: &End<'_>,
    emit: &mut dyn FnMut(PublishEvent),
) -> Result<PublishReport, Error> {
    let mut report = PublishReport { outcome: Outcome::Interrupted, versions: 0 };
    let mut receivers: Option<Box<fontana_proto::EarlierReceivers>> = None;
    while !end.has_come() {
        inbox.emit_notes(report.versions > 0, emit)?;
        let mut session = match inbox.prepared.recv_timeout(STOP_LATENCY) {
            Ok(session) => session,
            Err(RecvTimeoutError::Timeout) => continue,
            // The other thread has panicked.
            Err(RecvTimeoutError::Disconnected) => {
                inbox.emit_notes(report.versions > 0, emit)?;
                break;
            }
        };
        emit(PublishEvent::Version(Arc::clone(session.shared_description())));
        report.versions += 1;
        let over = inbox.handover.begin(end.token);
        if let Some(receivers) = receivers.take() {
            session.follow_from(*receivers);
        }
        let mut failure = None;
        let mut sent = session.run(&over, &mut |event| {
            let is_sent = match &event {
                SendEvent::Progress(progress) => inbox.is_sent(progress),
                // All receivers have it.
                SendEvent::Resting(rests) => *rests,
                _ => false,
            };
            if is_sent {
                inbox.handover.allow();
            }
            emit(PublishEvent::Sending(event));
            failure = failure.take().or(inbox.emit_notes(true, emit).err());
            if failure.is_some() || end.is_due() {
                over.cancel();
            }
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        if !over.is_cancelled() {
            // It has ended by itself.
            inbox.handover.allow();
        }
        receivers = sent.receivers.take();
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
        Error::Panic(_)
            | Error::Io(IoError::Send(_) | IoError::Thread(_) | IoError::System { .. })
            | Error::Setup(SetupError::Send(_) | SetupError::Interface(_) | SetupError::Mtu(_))
    )
}
