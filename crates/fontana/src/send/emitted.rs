//! The events of a sender, each emitted once.

use super::queue::SendQueue;
use super::reach::Reach;
use crate::error::{Error, IoError};
use crate::event::{SendEvent, SendProgress};
use fontana_net::LossCause;
use std::sync::Arc;
use std::time::Duration;

/// The number of failures, losses, and drops of the MTU that were emitted.
pub(super) struct Emitted {
    failures: usize,
    losses: usize,
    mtu_drops: u64,
    interface_changes: u64,
    /// What the system refused was emitted.
    has_told_refusals: bool,
    reach: Reach,
}

impl Emitted {
    pub(super) fn new(queue: &SendQueue) -> Self {
        let reach = Reach::new(queue.socket().unicast_hosts());
        Self {
            failures: 0,
            losses: 0,
            mtu_drops: 0,
            interface_changes: 0,
            has_told_refusals: false,
            reach,
        }
    }

    /// Emits new failures, losses of a new cause, hosts that are not reached, a new drop of the
    /// MTU, a change of the interface, what was refused, and the progress.
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
        let losses = queue.socket().first_losses();
        for loss in losses.iter().skip(self.losses) {
            // A drop of the MTU is an event of its own.
            if loss.cause != LossCause::TooLarge {
                emit(SendEvent::NotSent(*loss));
            }
        }
        self.losses = losses.len();
        for missing in self.reach.check(progress.elapsed) {
            emit(SendEvent::NoNeighbor(missing));
        }
        if let Some(drop) = queue.socket().mtu_drop().filter(|drop| drop.number > self.mtu_drops) {
            self.mtu_drops = drop.number;
            emit(SendEvent::MtuDropped(drop.clone()));
        }
        if let Some((number, change)) = queue.socket().interface_change()
            && number > self.interface_changes
        {
            self.interface_changes = number;
            emit(SendEvent::Interface(change.clone()));
        }
        if !std::mem::replace(&mut self.has_told_refusals, true) {
            let refused = queue.socket().ungranted().iter();
            refused.for_each(|refused| emit(SendEvent::Ungranted(*refused)));
        }
        emit(SendEvent::Progress(progress));
    }

    /// Emits and returns the error of a session that ends without a packet that left this host.
    pub(super) fn end(
        &mut self,
        queue: &SendQueue,
        elapsed: Duration,
        emit: &mut dyn FnMut(SendEvent),
    ) -> Option<Arc<Error>> {
        let socket = queue.socket();
        let error = match socket.first_losses().first() {
            Some(loss) if socket.sent().datagrams == 0 => {
                IoError::NothingSent { to: loss.to, error: loss.error() }
            }
            _ => IoError::NoNeighbor(self.reach.nothing_left(elapsed)?),
        };
        let error = Arc::new(Error::from(error));
        emit(SendEvent::Failed(Arc::clone(&error)));
        Some(error)
    }
}
