//! The moment at which a version replaces another.

use crate::cancellation::CancellationToken;
use crossbeam_channel::Sender;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longest time until a thread notices the end of the publisher.
pub(super) const STOP_LATENCY: Duration = Duration::from_millis(100);

/// What the thread that sends a version and the one that prepares the next agree on.
pub(super) struct Handover {
    /// Whether the version that is being sent may be replaced. No version is prepared before, so
    /// that the next one is as new as possible.
    allowed: AtomicBool,
    /// Ends the version that is being sent.
    current: Mutex<CancellationToken>,
    /// Wakes the preparing thread.
    words: Sender<()>,
}

impl Handover {
    pub(super) fn new(words: Sender<()>) -> Self {
        let (allowed, current) = (AtomicBool::new(true), Mutex::default());
        Self { allowed, current, words }
    }

    /// The token of the version that begins to be sent, which also ends with `parent`.
    pub(super) fn begin(&self, parent: &CancellationToken) -> CancellationToken {
        let token = parent.child_token();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }

    /// Allows to replace the version that is being sent.
    pub(super) fn allow(&self) {
        if !self.allowed.swap(true, Ordering::Relaxed) {
            // One pending message is enough.
            let _ = self.words.try_send(());
        }
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Replaces the version that is being sent by what `send` passes to the sending thread.
    pub(super) fn replace(&self, send: impl FnOnce()) {
        // The next version is allowed to be replaced only after it has begun.
        self.allowed.store(false, Ordering::Relaxed);
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        send();
        current.cancel();
    }
}
