//! What the protocols decide: how a member requests what it lacks, and how it repairs.

use super::member::{Member, Timer};
use super::packet::Path;
use fontana_proto::Instant;
use fontana_sim::NodeId;
use std::fmt::Debug;

use super::packet::Message;

/// A protocol, from a member's point of view.
pub(super) trait Scheme: Debug + Send {
    /// The member joins.
    fn begin(&mut self, member: &mut Member, now: Instant);
    /// The source has sent all of a group, which is incomplete.
    fn lack(&mut self, member: &mut Member, now: Instant, group: u32);
    /// A request arrives.
    fn request(&mut self, member: &mut Member, now: Instant, request: Request);
    /// A repair arrives, and is counted already.
    fn repair(&mut self, member: &mut Member, now: Instant, repair: Repair);
    /// A group is complete: as received, or as sent by the source.
    fn complete(&mut self, member: &mut Member, now: Instant, group: u32);
    /// One of the other messages arrives.
    fn message(&mut self, member: &mut Member, now: Instant, from: NodeId, message: Message);
    /// A timer of the protocol is due.
    fn due(&mut self, member: &mut Member, now: Instant, timer: Timer);
    /// A heartbeat is due.
    fn heartbeat(&mut self, member: &mut Member, now: Instant);
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) from: NodeId,
    pub(super) group: u32,
    pub(super) need: u32,
    pub(super) below: Option<NodeId>,
}

/// A repair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    pub(super) from: NodeId,
    pub(super) group: u32,
    pub(super) path: Path,
    /// The group was complete before it arrived.
    pub(super) was_complete: bool,
}
