//! Congestion control: when a sender's packets leave on which channel ([`ChannelClock`]), and which
//! channels a receiver is subscribed to ([`SubscriptionControl`]).
//!
//! Nothing flows back: a sender does the same whoever listens, and each receiver finds its own rate
//! by joining and leaving. What a session does is in its head ([`CongestionControl`]); [`subscribe`]
//! makes the control that follows from it, and [`presets`] are good values for it.
//! `docs/congestion.md` says when to use which.

use crate::endpoint::ChannelId;
use crate::time::Instant;
use fixed::FixedChannels as Fixed;
use flid::FlidControl;
use fontana_wire::{Cci, CongestionControl, LayerRates};
use rlc::RlcControl;
use std::time::Duration;
use webrc::WebrcControl;

mod breaker;
mod clock;
mod fixed;
mod flid;
pub mod presets;
mod rlc;
mod sequence;
mod steps;
mod waves;
mod webrc;

pub use breaker::BreakerLimits;
pub use clock::{ChannelClock, Emission};
pub use fixed::FixedChannels;

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
    pub rate_bytes_per_second: u64,
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
    pub heard_after: Option<Duration>,
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

/// The control that follows from a session's head. It takes over a subscription to channel 0, which
/// it does not ask for again, and to no other.
///
/// # Errors
/// [`SubscriptionError`] if the limits are below the lowest level of the session.
pub fn subscribe(
    control: &CongestionControl,
    limits: &SubscriptionLimits,
    first: FirstChannel,
) -> Result<Box<dyn SubscriptionControl>, SubscriptionError> {
    let inner = build(control, limits, first)?;
    // At a constant rate on one channel there is nothing to come down to; the operator answers for it
    // on a network of his own, and receivers are to bear any loss there.
    let answered_for = *control == CongestionControl::FixedRate;
    let Some(breaker) = limits.breaker.filter(|_| !answered_for) else { return Ok(inner) };
    let scheme = control.clone();
    Ok(Box::new(breaker::CircuitBreaker::new(scheme, *limits, breaker, inner, first.now)))
}

/// The same without a circuit breaker.
fn build(
    control: &CongestionControl,
    limits: &SubscriptionLimits,
    first: FirstChannel,
) -> Result<Box<dyn SubscriptionControl>, SubscriptionError> {
    if limits.max_channels == 0 {
        return Err(SubscriptionError::NoChannels);
    }
    Ok(match control {
        CongestionControl::FixedRate => Box::new(Fixed::from_first(1, 0)),
        CongestionControl::FixedLayers(layers) => {
            let rates = levels(layers, limits)?;
            let highest = rates.last().copied().unwrap_or(0);
            Box::new(Fixed::from_first(rates.len() as u8, highest))
        }
        CongestionControl::Rlc(rlc) => {
            Box::new(RlcControl::new(rlc, levels(&rlc.layers, limits)?, first.now))
        }
        CongestionControl::FlidSl(flid) => {
            Box::new(FlidControl::new(flid, levels(&flid.layers, limits)?, first.now))
        }
        CongestionControl::Webrc(webrc) => {
            let packet = u64::from(webrc.packet_bytes.max(1));
            let (least, limit) =
                (packet * u64::from(webrc.base_packets_per_second), limits.max_bytes_per_second);
            if limit < least {
                return Err(SubscriptionError::TooSlow { least, limit });
            }
            let max_rate = limit as f64 / packet as f64;
            let max_waves = usize::from(limits.max_channels - 1);
            Box::new(WebrcControl::new(webrc, max_rate, max_waves, first))
        }
    })
}

/// Bytes per second of the levels that are within the limits: at least one.
fn levels(layers: &LayerRates, limits: &SubscriptionLimits) -> Result<Vec<u64>, SubscriptionError> {
    let limit = limits.max_bytes_per_second;
    let most = usize::from(limits.max_channels);
    let rates: Vec<u64> =
        layers.cumulative().take_while(|&rate| rate <= limit).take(most).collect();
    if rates.is_empty() {
        let least = layers.cumulative().next().unwrap_or(0);
        return Err(SubscriptionError::TooSlow { least, limit });
    }
    Ok(rates)
}
