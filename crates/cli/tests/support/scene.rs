//! Sessions and receptions on the bench: a test states what is sent, how, and what must hold.
//!
//! ```ignore
//! let Some(scene) = Scene::new(2) else { return };
//! scene.bench.lose(1, 100);
//! let file = scene.noise("image.raw", 32 << 20);
//! let session = scene.send(0, "--rate 50M", &file);
//! let summary = scene.receive(1, &session.ticket, "--timeout 60").complete();
//! assert!(same_file(&file, &scene.received(1).join("image.raw")));
//! session.end();
//! ```
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use super::bench::{self, Bench};
use super::program::Program;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tempfile::TempDir;

/// The default group of all senders.
pub const GROUP: &str = "239.255.77.1:7701";

/// Time limit for a sender to read its files, and for its end: far longer than either takes, so
/// that only a hanging process is stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for a whole reception; its own `--timeout` ends it earlier.
const RECEPTION: Duration = Duration::from_secs(240);

/// Held for reading by scenes that run side by side, for writing by one that runs alone.
static TURN: RwLock<()> = RwLock::new(());

/// Keeps a scene's share of [`TURN`].
enum Turn {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

/// Hosts on a bridge, and a directory that they share; both are removed on drop.
pub struct Scene {
    pub bench: Bench,
    directory: TempDir,
    _turn: Turn,
}

impl Scene {
    /// A scene that other scenes of this process run beside. `None` if the bench is not available;
    /// the reason has been printed.
    pub fn new(hosts: usize) -> Option<Self> {
        // A failed test poisons the lock; the next test may still run.
        let guard = TURN.read().unwrap_or_else(PoisonError::into_inner);
        Self::with_turn(hosts, Turn::Shared { _guard: guard })
    }

    /// A scene without others beside it: for tests that count what arrives at more than 100 Mbit/s,
    /// or compare times.
    pub fn alone(hosts: usize) -> Option<Self> {
        let guard = TURN.write().unwrap_or_else(PoisonError::into_inner);
        Self::with_turn(hosts, Turn::Alone { _guard: guard })
    }

    fn with_turn(hosts: usize, turn: Turn) -> Option<Self> {
        bench::available().then(|| Self {
            bench: Bench::new(hosts),
            directory: tempfile::tempdir().unwrap(),
            _turn: turn,
        })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A new file of noise.
    pub fn noise(&self, name: &str, length: u64) -> PathBuf {
        let path = self.path(name);
        fontana_testing::noise_file(&path, length, length).unwrap();
        path
    }

    /// `fontana send` to [`GROUP`] on a host; returns after its first event.
    pub fn send(&self, host: usize, options: &str, what: &Path) -> Session {
        self.send_to(GROUP, host, options, what)
    }

    /// The same to another group.
    pub fn send_to(&self, group: &str, host: usize, options: &str, what: &Path) -> Session {
        let words = format!("send --json --to {group} {options}");
        let mut sender = self.start(host, &words, what);
        let event = sender.wait_for("session", PATIENCE);
        println!("{event}");
        Session { ticket: event["ticket"].as_str().unwrap().to_owned(), sender }
    }

    /// `fontana recv` on a host, into [`Scene::received`].
    pub fn receive(&self, host: usize, ticket: &str, options: &str) -> Reception {
        self.receive_into(&self.received(host), host, ticket, options)
    }

    /// The same into another directory.
    pub fn receive_into(&self, into: &Path, host: usize, ticket: &str, options: &str) -> Reception {
        let words = format!("recv --json {ticket} {options} -o");
        Reception { receiver: self.start(host, &words, into), host }
    }

    /// The default directory of a receiver.
    pub fn received(&self, host: usize) -> PathBuf {
        self.path(&format!("received by {host}"))
    }

    /// `fontana` with these words and a path, on a host.
    pub fn start(&self, host: usize, words: &str, path: &Path) -> Program {
        let words = words.split_whitespace().map(OsString::from);
        let arguments: Vec<OsString> = words.chain([path.into()]).collect();
        self.bench.start(host, &arguments)
    }
}

/// A sender, and the ticket that it gave.
pub struct Session {
    pub ticket: String,
    pub sender: Program,
}

impl Session {
    pub fn kill(self) {
        self.sender.kill();
    }

    /// Interrupts it. Returns its summary.
    pub fn end(mut self) -> Summary {
        self.sender.interrupt();
        let (code, errors) = self.sender.finish(PATIENCE);
        assert_eq!(code, Some(130), "{errors}");
        self.sender.last("summary").cloned().map(Summary).unwrap()
    }
}

/// A receiver.
pub struct Reception {
    pub receiver: Program,
    host: usize,
}

impl Reception {
    /// Waits for its end, which must have this exit code. Returns what it wrote to standard error.
    pub fn finish(&mut self, expected: i32) -> String {
        let (code, errors) = self.receiver.finish(RECEPTION);
        let summary = self.receiver.last("summary");
        println!("receiver {}: {}", self.host, summary.unwrap_or(&Value::Null));
        assert_eq!(code, Some(expected), "{errors}");
        errors
    }

    /// Waits until everything is verified and on disk.
    pub fn complete(&mut self) -> Summary {
        self.finish(0);
        self.summary()
    }

    /// The event at its end.
    pub fn summary(&self) -> Summary {
        self.receiver.last("summary").cloned().map(Summary).unwrap()
    }
}

/// The numbers of a run.
pub struct Summary(Value);

impl Summary {
    pub fn number(&self, field: &str) -> f64 {
        self.0[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {}", self.0))
    }

    pub fn reception_inefficiency(&self) -> f64 {
        self.number("reception_inefficiency")
    }
}

/// Whether two files have the same bytes.
pub fn same_file(a: &Path, b: &Path) -> bool {
    Command::new("cmp").arg("-s").args([a, b]).status().unwrap().success()
}
