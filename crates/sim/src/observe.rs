//! What observes a run.

use crate::link::DropCause;
use crate::packet::Packet;
use crate::topology::{LinkId, NodeId};
use fontana_proto::Instant;

/// Observes a run of hosts that report `Event`s, in the run's order. It overrides what it wants to
/// see.
pub trait Observer<Event> {
    /// A host has sent a datagram.
    fn on_transmit(&mut self, _now: Instant, _node: NodeId, _packet: &Packet) {}
    /// A datagram is about to be delivered to a host.
    fn on_deliver(&mut self, _now: Instant, _node: NodeId, _packet: &Packet) {}
    /// A link has not passed a datagram.
    fn on_drop(&mut self, _now: Instant, _link: LinkId, _packet: &Packet, _cause: DropCause) {}
    /// A host has reported something.
    fn on_event(&mut self, _now: Instant, _node: NodeId, _event: &Event) {}
}

/// No observer.
impl<Event> Observer<Event> for () {}
