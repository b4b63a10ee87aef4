//! The events of a sender, each emitted once.

use super::queue::SendQueue;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use std::sync::Arc;

/// The number of failures, and of drops of the MTU, that were emitted.
#[derive(Default)]
pub(super) struct Emitted {
    failures: usize,
    mtu_drops: u64,
}

impl Emitted {
    /// Emits new failures, a new drop of the MTU, and the progress.
    pub(super) fn update(
        &mut self,
        failures: &[Arc<Error>],
        queue: &SendQueue,
        progress: SendProgress,
        emit: &mut dyn FnMut(SendEvent),
    ) {
        for failure in failures.iter().skip(self.failures) {
            emit(SendEvent::Failed(Arc::clone(failure)));
        }
        self.failures = failures.len();
        if let Some(drop) = queue.mtu_drop().filter(|drop| drop.number > self.mtu_drops) {
            self.mtu_drops = drop.number;
            emit(SendEvent::MtuDropped(drop.clone()));
        }
        emit(SendEvent::Progress(progress));
    }
}
