//! The circuit breaker (RFC 8085, section 4.1.1). A receiver that loses too many packets and cannot
//! reduce its rate any further leaves the session for a while. Each pause is longer than the one
//! before.

use super::build::build;
use super::control::{
    BreakerLimits, FirstChannel, Level, Membership, PacketSeen, SubscriptionControl,
    SubscriptionLimits,
};
use crate::channel::ChannelId;
use crate::sequence::SequenceTracker;
use crate::time::Instant;
use fontana_wire::CongestionControl;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Smallest number of packets of a window from which the loss rate is computed.
const LEAST_PACKETS: u64 = 20;

/// Number of parts of a window. Too much must be lost in each part, so that a loss that is over,
/// such as one while the receiver was finding its rate, has no effect.
const PARTS: u32 = 3;

/// A subscription control that leaves all channels if its inner control cannot end the losses.
#[derive(Debug)]
pub(super) struct CircuitBreaker {
    scheme: CongestionControl,
    limits: SubscriptionLimits,
    breaker: BreakerLimits,
    inner: Box<dyn SubscriptionControl>,
    joined: BTreeSet<u8>,
    /// Packets of the current part.
    received: u64,
    lost: u64,
    part_end: Instant,
    window: Window,
    pause: Duration,
    /// End of the pause; `None` while the session is joined.
    rejoin_at: Option<Instant>,
    outputs: VecDeque<Membership>,
}

/// Totals of the finished parts of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    parts: u32,
    heavy_parts: u32,
    packets: u64,
    channels_at_start: u8,
}

impl CircuitBreaker {
    pub(super) fn new(
        scheme: CongestionControl,
        limits: SubscriptionLimits,
        breaker: BreakerLimits,
        inner: Box<dyn SubscriptionControl>,
        now: Instant,
    ) -> Self {
        Self {
            window: Window { channels_at_start: inner.level().channels, ..Window::default() },
            scheme,
            limits,
            breaker,
            inner,
            joined: BTreeSet::from([0]),
            received: 0,
            lost: 0,
            part_end: now + breaker.window / PARTS,
            pause: breaker.pause,
            rejoin_at: None,
            outputs: VecDeque::new(),
        }
    }

    fn start_window(&mut self, now: Instant) {
        self.window =
            Window { channels_at_start: self.inner.level().channels, ..Window::default() };
        self.start_part(now);
    }

    fn start_part(&mut self, now: Instant) {
        (self.received, self.lost) = (0, 0);
        self.part_end = now + self.breaker.window / PARTS;
    }

    fn on_part_end(&mut self, now: Instant) {
        let sent = self.received.saturating_add(self.lost);
        let percent = self.lost.saturating_mul(100) / sent.max(1);
        self.window.parts += 1;
        self.window.heavy_parts += u32::from(percent > u64::from(self.breaker.loss_percent));
        self.window.packets = self.window.packets.saturating_add(sent);
        if self.window.parts < PARTS {
            return self.start_part(now);
        }
        let Window { heavy_parts, packets, channels_at_start, .. } = self.window;
        let channels = self.inner.level().channels;
        if heavy_parts < PARTS || packets < LEAST_PACKETS {
            // As much time without heavy loss as the last pause reduces the next one again.
            self.pause = (self.pause / 2).max(self.breaker.pause);
        } else if channels <= 1 || channels >= channels_at_start {
            return self.trip(now);
        }
        self.start_window(now);
    }

    fn trip(&mut self, now: Instant) {
        let leaves = self.joined.iter().rev().map(|&channel| Membership::Leave(ChannelId(channel)));
        self.outputs.extend(leaves);
        self.joined.clear();
        self.rejoin_at = Some(now + self.pause);
        self.pause = (self.pause * 2).min(self.breaker.max_pause);
    }

    fn rejoin(&mut self, now: Instant) {
        let first = FirstChannel { now, first_packet_after: None };
        // It does not fail: the same arguments made the first control.
        let Ok(inner) = build(&self.scheme, &self.limits, first) else { return };
        self.inner = inner;
        self.rejoin_at = None;
        self.joined.insert(0);
        self.outputs.push_back(Membership::Join(ChannelId(0)));
        self.start_window(now);
    }
}

impl SubscriptionControl for CircuitBreaker {
    fn on_packet(&mut self, now: Instant, packet: &PacketSeen) {
        if self.rejoin_at.is_some() || !self.joined.contains(&packet.channel.0) {
            return;
        }
        let lost = packet.lost.packets.saturating_add(packet.congestion_experienced.into());
        self.received += 1;
        self.lost = self.lost.saturating_add(lost);
        self.inner.on_packet(now, packet);
    }

    fn on_timeout(&mut self, now: Instant, sequence: &mut SequenceTracker) {
        if let Some(at) = self.rejoin_at {
            if now >= at {
                self.rejoin(now);
            }
            return;
        }
        let before = sequence.detected();
        self.inner.on_timeout(now, sequence);
        self.lost = self.lost.saturating_add(sequence.detected() - before);
        if now >= self.part_end {
            self.on_part_end(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let inner = self.inner.poll_timeout();
        self.rejoin_at.or(Some(inner.map_or(self.part_end, |at| at.min(self.part_end))))
    }

    fn poll_membership(&mut self) -> Option<Membership> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.rejoin_at.is_some() {
            return None;
        }
        let output = self.inner.poll_membership()?;
        match output {
            Membership::Join(channel) => {
                self.joined.insert(channel.0);
            }
            Membership::Leave(channel) => {
                self.joined.remove(&channel.0);
            }
        }
        Some(output)
    }

    fn level(&self) -> Level {
        if self.rejoin_at.is_some() {
            return Level { channels: 0, rate_bytes_per_second: Some(0) };
        }
        self.inner.level()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_wire::Cci;

    const LIMITS: SubscriptionLimits = SubscriptionLimits {
        max_channels: 1,
        max_bytes_per_second: u64::MAX,
        breaker: Some(BreakerLimits {
            loss_percent: 20,
            window: Duration::from_secs(30),
            pause: Duration::from_secs(30),
            max_pause: Duration::from_secs(120),
        }),
    };

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Channels that a receiver has after a window of 100 packets per second, of which it loses
    /// these percentages in the three parts.
    fn channels_after(percents: [u32; 3]) -> u8 {
        let first = FirstChannel { now: Instant::ZERO, first_packet_after: None };
        let scheme = CongestionControl::FixedRate;
        let inner = build(&scheme, &LIMITS, first).unwrap();
        let breaker = LIMITS.breaker.unwrap();
        let mut sequence = SequenceTracker::new(scheme.numbering());
        let mut control = CircuitBreaker::new(scheme, LIMITS, breaker, inner, Instant::ZERO);
        for number in 0..3_000 {
            let now = Instant::ZERO + Duration::from_millis(10) * number;
            if control.poll_timeout().is_some_and(|at| at <= now) {
                control.on_timeout(now, &mut sequence);
            }
            if number % 100 >= percents[number as usize / 1_000] {
                let (channel, cci) = (ChannelId::BASE, Cci::from_u32(number));
                let lost = sequence.on_packet(now, channel, cci, 0);
                let (congestion_experienced, has_gap) = (false, sequence.has_gap());
                let seen = PacketSeen { channel, cci, congestion_experienced, lost, has_gap };
                control.on_packet(now, &seen);
            }
        }
        control.on_timeout(at(30), &mut sequence);
        control.level().channels
    }

    #[test]
    fn losses_of_a_whole_window_open_it_and_those_that_are_over_do_not() {
        assert_eq!(channels_after([30; 3]), 0);
        for percents in [[20; 3], [90, 90, 0], [0, 90, 90], [90, 0, 90]] {
            assert_eq!(channels_after(percents), 1, "{percents:?}");
        }
    }
}
