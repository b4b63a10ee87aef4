//! The prefix of joined layers, and the control of sessions at constant rate.

use super::control::{Level, Membership, PacketSeen, SubscriptionControl};
use crate::channel::ChannelId;
use crate::sequence::SequenceTracker;
use crate::time::Instant;

/// A cumulative prefix of the channels: the wanted one and the joined one.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    pub(super) wanted: u8,
    joined: u8,
}

impl Prefix {
    pub(super) const fn new(wanted: u8, joined: u8) -> Self {
        Self { wanted, joined }
    }

    /// The next join or leave from the joined prefix towards the wanted one.
    pub(super) fn poll_membership(&mut self) -> Option<Membership> {
        if self.joined < self.wanted {
            self.joined += 1;
            Some(Membership::Join(ChannelId(self.joined - 1)))
        } else if self.joined > self.wanted {
            self.joined -= 1;
            Some(Membership::Leave(ChannelId(self.joined)))
        } else {
            None
        }
    }
}

/// Control of constant rate: joins the first `channel_count` channels and stays.
#[derive(Clone, Debug)]
pub struct FixedChannels {
    prefix: Prefix,
    rate_bytes_per_second: Option<u64>,
}

impl FixedChannels {
    /// A control that joins channels `0..channel_count` and has joined none yet.
    pub fn new(channel_count: u8) -> Self {
        Self { prefix: Prefix::new(channel_count, 0), rate_bytes_per_second: None }
    }

    /// A control of `channel_count` channels with this rate, of which the first is joined.
    pub(super) fn from_first(channel_count: u8, rate_bytes_per_second: Option<u64>) -> Self {
        Self { prefix: Prefix::new(channel_count, 1), rate_bytes_per_second }
    }
}

impl SubscriptionControl for FixedChannels {
    fn on_packet(&mut self, _now: Instant, _packet: &PacketSeen) {}
    fn on_timeout(&mut self, _now: Instant, _sequence: &mut SequenceTracker) {}
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn poll_membership(&mut self) -> Option<Membership> {
        self.prefix.poll_membership()
    }
    fn level(&self) -> Level {
        let rate_bytes_per_second = self.rate_bytes_per_second;
        Level { channels: self.prefix.wanted, rate_bytes_per_second }
    }
}
