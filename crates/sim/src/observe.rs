//! Observers of a run.

use crate::link::DropCause;
use crate::packet::Packet;
use crate::topology::{LinkId, NodeId};
use fontana_proto::Instant;

/// An observer of a run, called in the run's order. `Event` is the type of the hosts' events. All
/// methods do nothing by default.
pub trait Observer<Event> {
    /// A host has sent a datagram.
    fn on_transmit(&mut self, _now: Instant, _node: NodeId, _packet: &Packet) {}
    /// A node has forwarded a datagram to a link, which passes it or drops it: one packet-hop. For
    /// a multicast hop of constant passage, `now` is the end of the passage.
    fn on_forward(&mut self, _now: Instant, _link: LinkId, _packet: &Packet) {}
    /// A datagram is about to be delivered to a host.
    fn on_deliver(&mut self, _now: Instant, _node: NodeId, _packet: &Packet) {}
    /// A link has dropped a datagram.
    fn on_drop(&mut self, _now: Instant, _link: LinkId, _packet: &Packet, _cause: DropCause) {}
    /// A host has reported an event.
    fn on_event(&mut self, _now: Instant, _node: NodeId, _event: &Event) {}
}

/// No observer.
impl<Event> Observer<Event> for () {}
