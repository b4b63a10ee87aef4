//! Sending what a directory holds, as it changes: every state of it that has come to rest becomes a
//! version, under one session number and one key, so that one ticket stays valid.
//!
//! ```no_run
//! use fontana::{FolderEvent, SendFolder, SendOptions, Stop, send_folder};
//!
//! let mut send = SendOptions::new(vec!["photos".into()]);
//! send.signer = Some(fontana::generate_key()?);
//! send_folder(&SendFolder::new(send), &Stop::new(), &mut |event| {
//!     if let FolderEvent::Version(session) = event {
//!         println!("version {}", session.manifest().version());
//!     }
//! })?;
//! # Ok::<(), fontana::Error>(())
//! ```
//!
//! A thread waits for news (inotify, or a look every few seconds where that is not to be had),
//! until nothing has changed for [`SendFolder::settle`], and prepares the new version. Meanwhile
//! the old one is being sent; then the new one takes its place.
//!
//! Versions are milliseconds since 1970, or one more than the last: they increase over restarts
//! without anything being stored, as long as the clock is not set back.

use crate::error::{Error, IoError, SetupError};
use crate::outcome::Outcome;
use crate::send::{SendOptions, SendProgress, SendSession, SendSummary};
use crate::stop::Stop;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use fontana_net::thread::spawn_scoped;
use fontana_store::{Found, Identity, Timestamp, Tree};
use fontana_wire::{SecretKey, Ticket, Tsi};
use notify::{RecursiveMode, Watcher};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How a directory is followed.
#[derive(Clone, Debug)]
pub struct SendFolder {
    /// What to send, and how. [`SendOptions::signer`] must be there;
    /// [`SendOptions::manifest_version`] is set for every version, and
    /// [`SendOptions::tsi`] follows from the key if it is not given.
    pub send: SendOptions,
    /// How long nothing may have changed before a state is sent.
    pub settle: Duration,
    /// Look every so often instead of waiting for the system's word.
    pub poll: Option<Duration>,
}

impl SendFolder {
    /// With two seconds to settle: programs that save a file, and those that copy many, write again
    /// within less.
    pub fn new(send: SendOptions) -> Self {
        Self { send, settle: Duration::from_secs(2), poll: None }
    }
}

/// What the sender of a directory tells.
pub enum FolderEvent<'a> {
    /// The system does not tell of changes: it is looked for them now and then.
    Polling {
        /// Why.
        reason: String,
        /// How often.
        every: Duration,
    },
    /// A version is about to be sent, in the place of the one before.
    Version(&'a SendSession),
    /// How the sending of a version stands.
    Progress(&'a SendProgress<'a>),
    /// A version is not sent any more.
    Ended(&'a SendSummary),
    /// The directory cannot be sent as it is; what was sent before goes on. Told once for each
    /// reason.
    Failed(&'a Error),
}

/// How it ended.
#[derive(Debug)]
pub struct FolderSummary {
    /// Interrupted, or that a file of the last version changed.
    pub outcome: Outcome,
    /// Versions that were sent.
    pub versions: u64,
}

/// The ticket of a publisher that outlives every version.
pub fn lasting_ticket(session: &SendSession) -> Ticket {
    Ticket { manifest: None, ..session.ticket().clone() }
}

/// Where there is no word of changes: often enough for people, seldom enough for the disk.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// Also where there is: a word may get lost (a network file system, a queue that was full).
const LOOK_ANYWAY: Duration = Duration::from_secs(60);
/// How long a stop request may go unnoticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);

/// Sends every state of the directory that has come to rest until `stop` says so.
///
/// # Errors
/// [`SetupError::NoSigner`]; what [`SendSession::prepare`] fails with if it is for another reason
/// than the state of a file, and at the beginning for any.
pub fn send_folder(
    options: &SendFolder,
    stop: &Stop,
    observe: &mut dyn FnMut(FolderEvent<'_>),
) -> Result<FolderSummary, Error> {
    let key =
        options.send.signer.as_ref().map(SecretKey::public_key).ok_or(SetupError::NoSigner)?;
    let send = SendOptions {
        tsi: Some(options.send.tsi.unwrap_or_else(|| Tsi::of_publisher(&key))),
        ..options.send.clone()
    };
    let first = Snapshot::take(&send)?;
    let (words, news) = bounded(1);
    let (poll, _watcher) = match options.poll {
        Some(every) => (every, None),
        None => match listen(&send, words, &news) {
            Ok(watcher) => (LOOK_ANYWAY, Some(watcher)),
            Err(error) => {
                let (reason, every) = (error.to_string(), POLL_EVERY);
                observe(FolderEvent::Polling { reason, every });
                (every, None)
            }
        },
    };
    let (ready, prepared) = bounded(1);
    let settle = options.settle;
    std::thread::scope(|scope| {
        let ended = Stop::new();
        let folder = Folder { send, settle, poll, news, ready, ended: ended.clone() };
        spawn_scoped(scope, "folder", move || folder.run(first))?;
        let result = send_versions(&prepared, stop, observe);
        ended.set();
        drop(prepared);
        result
    })
}

/// Sends what is prepared until the next is.
fn send_versions(
    prepared: &Receiver<Result<Box<SendSession>, Error>>,
    stop: &Stop,
    observe: &mut dyn FnMut(FolderEvent<'_>),
) -> Result<FolderSummary, Error> {
    let mut summary = FolderSummary { outcome: Outcome::Interrupted, versions: 0 };
    while !stop.is_set() {
        let session = match prepared.recv_timeout(STOP_LATENCY) {
            Ok(Ok(session)) => session,
            Ok(Err(error)) if summary.versions > 0 && is_passing(&error) => {
                observe(FolderEvent::Failed(&error));
                continue;
            }
            Ok(Err(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) => continue,
            // The other thread has panicked, and that is told already.
            Err(RecvTimeoutError::Disconnected) => break,
        };
        observe(FolderEvent::Version(&session));
        summary.versions += 1;
        let over = Stop::new();
        let sent = session.run(&over, &mut |progress| {
            observe(FolderEvent::Progress(progress));
            if stop.is_set() || !prepared.is_empty() {
                over.set();
            }
        })?;
        observe(FolderEvent::Ended(&sent));
        summary.outcome = match sent.outcome {
            Outcome::Complete => Outcome::Interrupted,
            other => other,
        };
    }
    Ok(summary)
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
    settle: Duration,
    poll: Duration,
    news: Receiver<()>,
    ready: Sender<Result<Box<SendSession>, Error>>,
    ended: Stop,
}

impl Folder {
    fn run(mut self, first: Snapshot) {
        let mut rests = first.rests_for().min(self.settle);
        let (mut candidate, mut since) = (first, Instant::now());
        let mut sent: Option<Snapshot> = None;
        let mut told = String::new();
        while !self.ended.is_set() {
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
        let version = (now.as_millis() as u64).max(self.send.manifest_version.saturating_add(1));
        let options = SendOptions { manifest_version: version, ..self.send.clone() };
        match SendSession::prepare(options) {
            Ok(session) => {
                if Snapshot::take(&self.send).is_ok_and(|now| now == *snapshot) {
                    self.send.manifest_version = version;
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
        while since.elapsed() < limit && !self.ended.is_set() {
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
