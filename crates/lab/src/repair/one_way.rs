//! A fountain without a return path: after each group, a number of FEC packets that is the same for
//! all of them.

use super::member::{Member, Timer};
use super::packet::{Cause, Message, Path};
use super::scheme::{Repair, Request, Scheme};
use fontana_proto::Instant;
use fontana_sim::NodeId;

/// A member, or the source, of a session in which only the source sends.
#[derive(Debug)]
pub(super) struct OneWay {
    /// FEC packets of each group.
    pub(super) share: u32,
}

impl Scheme for OneWay {
    fn begin(&mut self, _: &mut Member, _: Instant) {}

    fn lack(&mut self, _: &mut Member, _: Instant, _group: u32) {}

    fn request(&mut self, _: &mut Member, _: Instant, _: Request) {}

    fn repair(&mut self, _: &mut Member, _: Instant, _: Repair) {}

    fn complete(&mut self, member: &mut Member, now: Instant, group: u32) {
        if member.is_source() {
            for _ in 0..self.share {
                let (cause, path) = (Cause::Estimated, Path::Direct);
                member.multicast(now, Message::Repair { group, cause, path });
            }
        }
    }

    fn message(&mut self, _: &mut Member, _: Instant, _from: NodeId, _: Message) {}

    fn due(&mut self, _: &mut Member, _: Instant, _: Timer) {}

    fn heartbeat(&mut self, _: &mut Member, _: Instant) {}
}
