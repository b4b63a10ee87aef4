//! Who watches a run.

use crate::link::DropCause;
use crate::packet::Packet;
use crate::topology::{LinkId, NodeId};
use fontana_proto::{Event, Instant};

/// Sees what happens in a run, in its order. Watches only what it overrides.
pub trait Observer {
    /// A host has sent a datagram.
    fn on_transmit(&mut self, _now: Instant, _node: NodeId, _packet: &Packet) {}
    /// A host is going to hear a datagram.
    fn on_deliver(&mut self, _now: Instant, _node: NodeId, _packet: &Packet) {}
    /// A link has not passed a datagram.
    fn on_drop(&mut self, _now: Instant, _link: LinkId, _packet: &Packet, _cause: DropCause) {}
    /// An endpoint has told its application something.
    fn on_event(&mut self, _now: Instant, _node: NodeId, _event: &Event) {}
}

/// Nobody watches.
impl Observer for () {}
