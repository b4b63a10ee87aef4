//! Cancellation of sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cancellation token, shared with sessions. A session ends within a tenth of a second.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    is_cancelled: AtomicBool,
    parent: Option<CancellationToken>,
}

impl CancellationToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is cancelled by itself or with this one.
    #[must_use]
    pub fn child_token(&self) -> Self {
        Self(Arc::new(Inner { is_cancelled: AtomicBool::new(false), parent: Some(self.clone()) }))
    }

    /// Cancels the token. Safe to call from a signal handler.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether this token, or one that it is a child of, was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Relaxed)
            || self.0.parent.as_ref().is_some_and(Self::is_cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::CancellationToken;

    #[test]
    fn a_child_is_cancelled_with_its_parent_or_alone() {
        let parent = CancellationToken::new();
        let (one, other) = (parent.child_token(), parent.child_token());
        one.cancel();
        assert!(one.is_cancelled() && !other.is_cancelled() && !parent.is_cancelled());
        parent.cancel();
        assert!(other.is_cancelled());
    }
}
