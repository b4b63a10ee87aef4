//! Congestion control: when a sender's packets leave on which channel ([`ChannelClock`]), and which
//! channels a receiver is subscribed to ([`SubscriptionControl`]).

use crate::{ChannelId, Instant};
use fontana_wire::Cci;

mod clock;

pub use clock::{ChannelClock, Emission};

/// A change of subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// Join the channel.
    Join(ChannelId),
    /// Leave the channel.
    Leave(ChannelId),
}

/// What a subscription control sees of a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketSeen {
    /// Channel it arrived on.
    pub channel: ChannelId,
    /// Congestion control information of its header (RFC 5651, section 5.1).
    pub cci: Cci,
    /// Marked by a router (RFC 3168).
    pub congestion_experienced: bool,
    /// Datagrams lost inside this host just before it.
    pub dropped_before: u64,
}

/// Receiver-driven congestion control: which channels of a session to be joined to.
pub trait SubscriptionControl: Send + std::fmt::Debug {
    /// A packet of the session arrived.
    fn on_packet(&mut self, now: Instant, packet: &PacketSeen);
    /// [`poll_timeout`](Self::poll_timeout) is due.
    fn on_timeout(&mut self, now: Instant);
    /// When to be called again.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next change of subscription, if one is due.
    fn poll_membership(&mut self) -> Option<Membership>;
}

/// Constant rate: the first `channel_count` channels, from the beginning.
#[derive(Clone, Debug)]
pub struct FixedChannels {
    channel_count: u8,
    joined: u8,
}

impl FixedChannels {
    /// Wants channels `0..channel_count`.
    pub fn new(channel_count: u8) -> Self {
        Self { channel_count, joined: 0 }
    }
}

impl SubscriptionControl for FixedChannels {
    fn on_packet(&mut self, _now: Instant, _packet: &PacketSeen) {}
    fn on_timeout(&mut self, _now: Instant) {}
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn poll_membership(&mut self) -> Option<Membership> {
        (self.joined < self.channel_count).then(|| {
            self.joined += 1;
            Membership::Join(ChannelId(self.joined - 1))
        })
    }
}
