//! Faults of hosts and links.

use super::Simulation;
use crate::host::{Host, NEVER};
use crate::observe::Observer;
use crate::topology::{LinkId, NodeId};
use crate::trace::Note;
use std::time::Duration;

/// A fault of a host or a link, or its end. [`Simulation::attach`] restarts a host that crashed;
/// [`WireFaults`](crate::WireFaults) are the faults of single packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The host receives and sends nothing from now on, and its network prunes its groups.
    Crash(NodeId),
    /// The link loses all packets.
    Cut(LinkId),
    /// The link is up again.
    Mend(LinkId),
    /// The host's clock jumps forward, as after a suspension. Monotonic clocks never jump back.
    ClockJump(NodeId, Duration),
}

impl<H: Host, O: Observer<H::Event>> Simulation<H, O> {
    /// Inflicts a fault at the current time.
    pub fn inflict(&mut self, fault: Fault) {
        let now = self.now();
        let which = match fault {
            Fault::Crash(node) => [1, node.0],
            Fault::Cut(link) => [2, link.0],
            Fault::Mend(link) => [3, link.0],
            Fault::ClockJump(node, _) => [4, node.0],
        };
        self.trace.note(now, Note::Fault, which[1], [which[0].into(), 0]);
        match fault {
            Fault::Crash(node) => {
                self.leave_all(node);
                if let Some(host) = self.attached_mut(node) {
                    host.is_running = false;
                    host.run += 1;
                    host.armed = NEVER;
                }
            }
            Fault::Cut(link) => {
                if let Some(link) = self.links.get_mut(link.index()) {
                    link.cut();
                }
            }
            Fault::Mend(link) => {
                if let Some(link) = self.links.get_mut(link.index()) {
                    link.mend();
                }
            }
            Fault::ClockJump(node, by) => {
                if let Some(host) = self.attached_mut(node) {
                    host.clock_ahead = host.clock_ahead.saturating_add(by);
                }
                self.arm(now, node);
            }
        }
    }

    /// Crashes a node's host and returns it, so that the next run of it can start from its state.
    pub fn detach(&mut self, node: NodeId) -> Option<H> {
        self.inflict(Fault::Crash(node));
        Some(self.hosts.get_mut(node.index())?.take()?.host)
    }
}
