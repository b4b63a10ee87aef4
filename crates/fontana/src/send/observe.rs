//! What a sender tells the application, each thing once.

use super::train::Trains;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use std::sync::Arc;

/// What was told already.
#[derive(Default)]
pub(super) struct Told {
    failures: usize,
    mtu_drops: u64,
}

impl Told {
    /// Tells of new failures, of a new drop of the MTU, and how far it is.
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
