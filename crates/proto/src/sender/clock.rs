//! When a packet may leave, on which channel, and what its congestion control information says.

use crate::{ChannelId, Instant, Pacer};
use fontana_wire::Cci;
use std::time::Duration;

/// The next packet of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Not before then.
    pub at: Instant,
    /// On this channel.
    pub channel: ChannelId,
    /// With this congestion control information.
    pub cci: Cci,
}

/// The order in which a session's channels take turns. All packets have the same size on the wire.
#[derive(Clone, Debug)]
pub enum ChannelClock {
    /// Every channel at a constant rate, its packets numbered in the CCI.
    Fixed(FixedClock),
}

impl ChannelClock {
    /// The next packet.
    pub fn peek(&self) -> Emission {
        let Self::Fixed(clock) = self;
        clock.peek()
    }

    /// Channels that take turns.
    pub fn channel_count(&self) -> usize {
        let Self::Fixed(clock) = self;
        clock.channels.len()
    }

    /// The next packet was sent.
    pub fn advance(&mut self) {
        let Self::Fixed(clock) = self;
        clock.advance();
    }

    /// A sender that woke late does not catch up on more than a burst.
    pub fn skip_to(&mut self, now: Instant) {
        let Self::Fixed(clock) = self;
        clock.skip_to(now);
    }
}

/// Channels of constant rates.
#[derive(Clone, Debug)]
pub struct FixedClock {
    channels: Vec<Channel>,
    next: usize,
}

#[derive(Clone, Debug)]
struct Channel {
    /// Nanoseconds from one packet to the next, in 2^-16.
    interval: u64,
    /// When the next packet leaves, in the same unit.
    due: u128,
    sequence: u32,
}

impl FixedClock {
    /// Channels of these rates, packets of this size on the wire.
    pub fn new(rates_bytes_per_second: &[u64], packet_bytes: u32) -> Self {
        let interval = |rate: u64| {
            let nanos = (u128::from(packet_bytes) * 1_000_000_000) << 16;
            u64::try_from(nanos.div_ceil(u128::from(rate.max(1)))).unwrap_or(u64::MAX)
        };
        let channels = rates_bytes_per_second.iter().map(|&rate| Channel {
            interval: interval(rate).max(1),
            due: 0,
            sequence: 0,
        });
        Self { channels: channels.collect(), next: 0 }
    }

    fn peek(&self) -> Emission {
        let channel = ChannelId(self.next as u8);
        let Some(next) = self.channels.get(self.next) else {
            return Emission { at: Instant::ZERO, channel, cci: Cci::default() };
        };
        let nanos = u64::try_from(next.due >> 16).unwrap_or(u64::MAX);
        Emission { at: Instant::from_nanos(nanos), channel, cci: Cci::from_u32(next.sequence) }
    }

    fn advance(&mut self) {
        if let Some(channel) = self.channels.get_mut(self.next) {
            channel.due += u128::from(channel.interval);
            channel.sequence = channel.sequence.wrapping_add(1);
        }
        let due = self.channels.iter().enumerate().min_by_key(|(_, channel)| channel.due);
        self.next = due.map_or(0, |(index, _)| index);
    }

    fn skip_to(&mut self, now: Instant) {
        let late = now.saturating_since(self.peek().at).saturating_sub(Pacer::BURST_WINDOW);
        if late > Duration::ZERO {
            for channel in &mut self.channels {
                channel.due += late.as_nanos() << 16;
            }
        }
    }
}
