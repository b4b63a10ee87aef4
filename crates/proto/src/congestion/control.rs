//! The interface of a subscription control, its limits and its errors.

use crate::endpoint::ChannelId;
use crate::time::Instant;
use fontana_wire::Cci;
use std::time::Duration;

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
    /// Marked by a router (RFC 3168): counts as a loss.
    pub congestion_experienced: bool,
    /// Datagrams lost inside this host just before it: no sign of congestion.
    pub dropped_before: u64,
}

/// How much a receiver takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Channels that it wants to be joined to; 0 while a circuit breaker keeps it away.
    pub channels: u8,
    /// Bytes per second that these bring if nothing is lost, as far as is known; 0 = not known.
    pub rate_bytes_per_second: Option<u64>,
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
    /// How much is taken now: for people, not for drivers.
    fn level(&self) -> Level;
}

/// What a receiver is willing to take, and how much loss it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionLimits {
    /// Channels that it is joined to at a time.
    pub max_channels: u8,
    /// Bytes per second, IP and UDP headers included.
    pub max_bytes_per_second: u64,
    /// When to leave altogether; `None` = never, for networks that are somebody's own.
    pub breaker: Option<BreakerLimits>,
}

impl Default for SubscriptionLimits {
    fn default() -> Self {
        Self {
            max_channels: u8::MAX,
            max_bytes_per_second: u64::MAX,
            breaker: Some(BreakerLimits::default()),
        }
    }
}

/// What is known of channel 0, to which a receiver is joined before it can know of any other: the
/// session head comes on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstChannel {
    /// The time.
    pub now: Instant,
    /// How long after it was joined its first packet came, if that was seen: a first estimate of the
    /// round trip.
    pub first_packet_after: Option<Duration>,
}

/// Why a receiver cannot take part in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// Less than the least that the session has to give.
    #[error("the session brings at least {least} bytes per second, the limit is {limit}")]
    TooSlow {
        /// Bytes per second of its lowest level.
        least: u64,
        /// What is allowed.
        limit: u64,
    },
    /// No channel at all.
    #[error("the limit of 0 channels leaves nothing to receive")]
    NoChannels,
}

/// When to leave, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Losses in a hundred packets that are too many.
    pub loss_percent: u8,
    /// For how long: in every third of it.
    pub window: Duration,
    /// The first pause. It doubles each time.
    pub pause: Duration,
    /// The longest pause.
    pub max_pause: Duration,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self {
            // Where TCP has practically stopped; and below the loss that a code is planned for only
            // on networks that are somebody's own.
            loss_percent: 20,
            // Every scheme has taken several steps down by then.
            window: Duration::from_secs(30),
            pause: Duration::from_secs(30),
            max_pause: Duration::from_secs(3600),
        }
    }
}
