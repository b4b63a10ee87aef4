//! The interface of a subscription control, its limits and its errors.

use crate::channel::ChannelId;
use crate::sequence::{Losses, SequenceTracker};
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

/// Input of a subscription control: the properties of a received packet that concern it.
#[derive(Clone, Copy, Debug)]
pub struct PacketSeen {
    /// Channel on which it arrived.
    pub channel: ChannelId,
    /// Congestion control information of its header (RFC 5651, section 5.1).
    pub cci: Cci,
    /// True if a router marked the packet (RFC 3168). It counts as a loss.
    pub congestion_experienced: bool,
    /// Packets of its channel that [`SequenceTracker`] detected to be lost with it.
    pub lost: Losses,
    /// True if a packet of a joined channel is missing and may still be late.
    pub has_gap: bool,
}

/// Subscription level of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Number of channels that the control joins; 0 while a circuit breaker is open.
    pub channels: u8,
    /// Rate of these channels in bytes per second if nothing is lost; `None`: not known.
    pub rate_bytes_per_second: Option<u64>,
}

/// Receiver-driven congestion control: decides which channels of a session a receiver joins.
pub trait SubscriptionControl: Send + std::fmt::Debug {
    /// Handles a packet of the session. Its losses are found already.
    fn on_packet(&mut self, now: Instant, packet: &PacketSeen);
    /// Handles the time of [`poll_timeout`](Self::poll_timeout). If it is time to look for losses
    /// that no packet shows, the control asks the session's tracker for them.
    fn on_timeout(&mut self, now: Instant, sequence: &mut SequenceTracker);
    /// Time of the next call of [`on_timeout`](Self::on_timeout).
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next change of subscription; `None` if there is none.
    fn poll_membership(&mut self) -> Option<Membership>;
    /// Current level, for display. Drivers do not need it.
    fn level(&self) -> Level;
}

/// Limits of a receiver on its subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionLimits {
    /// Largest number of channels that are joined at a time.
    pub max_channels: u8,
    /// Largest rate in bytes per second, IP and UDP headers included.
    pub max_bytes_per_second: u64,
    /// Limits of the circuit breaker; `None`: no breaker, for networks that one operator controls.
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

/// State of channel 0, which carries the session head. A receiver has joined it before it learns of
/// other channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstChannel {
    /// Current time.
    pub now: Instant,
    /// Time from the join to the first packet, as a first estimate of the round trip; `None` if it
    /// was not measured.
    pub first_packet_after: Option<Duration>,
}

/// Reason why a receiver cannot take part in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// A rate limit below the lowest level of the session.
    #[error("the session brings at least {least} bytes per second, the limit is {limit}")]
    TooSlow {
        /// Rate of the lowest level in bytes per second.
        least: u64,
        /// Limit in bytes per second.
        limit: u64,
    },
    /// A limit of 0 channels.
    #[error("the limit of 0 channels leaves nothing to receive")]
    NoChannels,
}

/// Limits of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Loss rate in percent above which the breaker opens.
    pub loss_percent: u8,
    /// Length of the window. The loss rate must be too high in each third of it.
    pub window: Duration,
    /// Length of the first pause. Each pause is twice as long as the one before.
    pub pause: Duration,
    /// Longest pause.
    pub max_pause: Duration,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        Self {
            // At this loss rate TCP has practically stopped. Codes are planned for higher rates
            // only in networks that one operator controls.
            loss_percent: 20,
            // Every scheme has taken several steps down in this time.
            window: Duration::from_secs(30),
            pause: Duration::from_secs(30),
            max_pause: Duration::from_secs(3600),
        }
    }
}
