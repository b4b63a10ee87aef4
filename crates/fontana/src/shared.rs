//! What the threads of a session share while symbols pass: channels and locks.
//!
//! In tests each thread counts the messages that it sends and the locks that it takes. What is done
//! for each batch of symbols takes few of both. A message takes a lock at most at each end, and
//! only if a thread waits for it.

use crossbeam_channel::{Receiver, SendError};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The sending end of a channel.
#[derive(Debug)]
pub(crate) struct Sender<T>(crossbeam_channel::Sender<T>);

/// A channel that holds any number of messages.
pub(crate) fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = crossbeam_channel::unbounded();
    (Sender(sender), receiver)
}

/// A channel that holds at most `most` messages.
pub(crate) fn bounded<T>(most: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = crossbeam_channel::bounded(most);
    (Sender(sender), receiver)
}

impl<T> Sender<T> {
    /// Sends a message. Waits while the channel is full.
    pub(crate) fn send(&self, message: T) -> Result<(), SendError<T>> {
        count();
        self.0.send(message)
    }

    /// The number of messages that wait.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A value that one thread uses at a time. A lock that a panicking thread held is taken all the
/// same: users leave no change half done.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> From<T> for Lock<T> {
    fn from(value: T) -> Self {
        Self(Mutex::from(value))
    }
}

impl<T> Lock<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        count();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(not(test))]
const fn count() {}

#[cfg(test)]
use counter::count;

#[cfg(test)]
pub(crate) mod counter {
    use std::cell::Cell;

    /// Symbols that a GSO batch has.
    pub(crate) const BATCH: usize = 48;

    /// So many of this many bytes, for each gigabyte.
    pub(crate) fn per_gigabyte(count: u64, bytes: u64) -> u64 {
        count * 1_000_000_000 / bytes
    }

    thread_local! {
        static USES: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        USES.set(USES.get() + 1);
    }

    /// Messages that this thread sends and locks that it takes while `work` runs.
    pub(crate) fn uses_during(work: impl FnOnce()) -> u64 {
        let before = USES.get();
        work();
        USES.get() - before
    }
}
