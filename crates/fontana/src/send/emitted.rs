//! The events of a sender, each emitted once.

use super::train::Trains;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use std::sync::Arc;

/// Records which events were emitted.
#[derive(Default)]
pub(super) struct Told {
    failures: usize,
    mtu_drops: u64,
}

impl Told {
    /// Emits new failures, a new drop of the MTU, and the progress.
    pub(super) fn tell(
        &mut self,
        failures: &[Arc<Error>],
        trains: &Trains,
        progress: SendProgress,
        observe: &mut dyn FnMut(SendEvent),
    ) {
        for failure in failures.iter().skip(self.failures) {
            observe(SendEvent::Failed(Arc::clone(failure)));
        }
        self.failures = failures.len();
        if let Some(drop) = trains.mtu_drop().filter(|drop| drop.number > self.mtu_drops) {
            self.mtu_drops = drop.number;
            observe(SendEvent::MtuDropped(drop.clone()));
        }
        observe(SendEvent::Progress(progress));
    }
}
