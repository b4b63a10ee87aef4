//! What goes wrong with hosts and links in a run.

use super::Simulation;
use crate::host::{Host, NEVER};
use crate::observe::Observer;
use crate::topology::{LinkId, NodeId};
use crate::trace::Note;
use std::time::Duration;

/// Something goes wrong, or is put right. A host that crashed is started again with
/// [`Simulation::attach`]; what wires do to single packets is a matter of
/// [`WireFaults`](crate::WireFaults).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The host receives and sends nothing any more; its network notices that it wants nothing any
    /// more.
    Crash(NodeId),
    /// The link passes nothing.
    Cut(LinkId),
    /// It does again.
    Mend(LinkId),
    /// The host's clock jumps forward: it was suspended. A monotonic clock does not jump back.
    ClockJump(NodeId, Duration),
}

impl<H: Host, O: Observer<H::Event>> Simulation<H, O> {
    /// Has it happen now.
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

    /// Takes a node's host off it, as a crash does: what the next run may begin with.
    pub fn detach(&mut self, node: NodeId) -> Option<H> {
        self.inflict(Fault::Crash(node));
        Some(self.hosts.get_mut(node.index())?.take()?.host)
    }
}
