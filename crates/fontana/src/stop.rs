//! Asking a session to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, shared with the session that is to stop. Noticed within a tenth of a second.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// No request yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks to stop. Safe to call from a signal handler.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
