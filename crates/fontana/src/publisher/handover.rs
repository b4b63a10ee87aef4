//! The moment at which a version replaces another.

use crate::cancellation::CancellationToken;
use crossbeam_channel::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest time until a thread notices the end of the publisher.
pub(super) const STOP_LATENCY: Duration = Duration::from_millis(100);

/// What the thread that sends a version and the one that prepares the next agree on.
pub(super) struct Handover {
    current: Mutex<Current>,
    /// Wakes the preparing thread.
    words: Sender<()>,
}

/// The version that is being sent.
struct Current {
    /// Ends it.
    token: CancellationToken,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It must be sent further.
    Needed,
    /// It may be replaced. No version is prepared before, so that the next one is as new as
    /// possible.
    Replaceable,
    /// The next one is ready, and begins when this one has ended.
    Replaced,
}

impl Handover {
    pub(super) fn new(words: Sender<()>) -> Self {
        // Before the first version, nothing is sent that could be needed.
        let none = Current { token: CancellationToken::new(), state: State::Replaceable };
        Self { current: Mutex::new(none), words }
    }

    /// The token of the version that begins to be sent, which also ends with `parent`.
    pub(super) fn begin(&self, parent: &CancellationToken) -> CancellationToken {
        let token = parent.child_token();
        *self.current() = Current { token: token.clone(), state: State::Needed };
        token
    }

    /// Allows to replace the version that is being sent.
    pub(super) fn allow(&self) {
        let mut current = self.current();
        if current.state == State::Needed {
            current.state = State::Replaceable;
            // One pending message is enough.
            let _ = self.words.try_send(());
        }
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.current().state == State::Replaceable
    }

    /// Replaces the version that is being sent by what `send` passes to the sending thread.
    pub(super) fn replace(&self, send: impl FnOnce()) {
        let token = {
            let mut current = self.current();
            current.state = State::Replaced;
            current.token.clone()
        };
        send();
        token.cancel();
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        // Each change is a single assignment.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::bounded;

    #[test]
    fn a_version_that_is_replaced_and_has_not_ended_allows_nothing() {
        let (words, woken) = bounded(1);
        let (handover, parent) = (Handover::new(words), CancellationToken::new());
        assert!(handover.is_allowed());
        handover.replace(|| ());
        assert!(!handover.is_allowed(), "a version is waiting to begin");
        let first = handover.begin(&parent);
        assert!(!handover.is_allowed() && woken.is_empty());
        handover.allow();
        assert!(handover.is_allowed() && woken.try_recv().is_ok());
        handover.replace(|| assert!(!first.is_cancelled()));
        assert!(first.is_cancelled());
        // The sending thread reports progress until it notices that.
        handover.allow();
        assert!(!handover.is_allowed() && woken.is_empty());
        let second = handover.begin(&parent);
        handover.allow();
        assert!(handover.is_allowed() && !second.is_cancelled());
    }
}
