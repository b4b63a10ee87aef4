//! The receiver of WEBRC (RFC 3738, section 3.2). It computes a target rate from the loss rate and
//! the time that joins take, and reaches it by joining one wave at a time. The lowest wave ends
//! with every slot, so that a receiver that joins none reduces its rate.
//!
//! The RFC's names stand in backticks. Where the RFC leaves a choice, the receiver follows its
//! recommendation. Comments mark deviations with "Not in the RFC".

use super::control::{FirstChannel, Level, Membership, PacketSeen, SubscriptionControl};
use super::slots::SlotClock;
use super::waves::Waves;
use crate::channel::ChannelId;
use crate::sequence::{Losses, SequenceTracker};
use crate::time::Instant;
use estimate::{LossEstimate, RoundTrip, loss_at, rate_at};
use fontana_wire::{Webrc, WebrcCci};
use std::collections::VecDeque;
use std::time::Duration;

mod estimate;

/// Number of epochs in a slot (`TSD / EL`).
const EPOCHS_PER_SLOT: u32 = 20;
/// Time without any packet after which the waves are left, or a slot if that is longer (section
/// 3.2.3.8).
const SILENCE: Duration = Duration::from_secs(10);
/// Least number of packet intervals of a wave after which a join of it has failed. Not in the RFC:
/// on a path of one millisecond, ten round trips are shorter than the space between two packets of
/// a low wave.
const JOIN_PACKETS: f64 = 4.0;
/// Length of the stretches in which the receiver checks whether the arrivals decay; or one epoch if
/// that is longer, but at most a quarter of a slot. Not in the RFC: in an epoch of 50 ms, one
/// packet more or less, or a host that wakes late, has as much effect as the decay.
const STRETCH: Duration = Duration::from_millis(200);
/// Least window in packets for which the equation is used. Not in the RFC: with a smaller window
/// TCP itself loses several per cent. Without this limit, a receiver behind 1 Mbit/s, with slots of
/// 10 s and joins of 30 ms, had three packets in flight and lost 7 %.
const LEAST_WINDOW: f64 = 8.0;
/// Longest round trip in seconds that [`LEAST_WINDOW`] can cause: the delay of a queue. Without
/// this limit, a receiver with a very low rate would count as one with a very long round trip, and
/// its rate would stay low.
const LONGEST_WINDOW: f64 = 0.1;
/// Number of loss events whose beginnings are remembered. Every loss shows within half a second, in
/// which there are 32 events with a round trip of 16 ms. With a shorter round trip, a loss that
/// shows late may count as a new event.
const LOSS_EVENTS: usize = 32;
/// Longest pause after joins that brought no packet. Not in the RFC.
const MAX_JOIN_PAUSE: Duration = Duration::from_secs(30);

/// Subscription control of WEBRC.
#[derive(Clone, Debug)]
pub(super) struct WebrcControl {
    waves: Waves,
    packet_bytes: u64,
    /// `MRR_P`: largest rate.
    max_rate: f64,
    max_waves: usize,
    /// The sender's slot, `CTSI`.
    slots: SlotClock,
    /// When it was entered.
    slot_since: Instant,
    /// Joined waves, beginning with the one that ends with this slot. `NWC` is their number.
    joined: VecDeque<Wave>,
    /// Time of the last join; `None` after the first packet of the wave.
    joining: Option<Instant>,
    failed_joins: u32,
    no_join_before: Instant,
    outputs: VecDeque<Membership>,
    loss: LossEstimate,
    round_trip: RoundTrip,
    /// Beginnings of loss events of which losses may still show.
    loss_events: VecDeque<Instant>,
    /// Time at which the last of them ends.
    loss_event_until: Instant,
    /// `SSR_P`; `None` is infinity, in start-up.
    slow_start: Option<f64>,
    /// `ARR_P` and `TRR_P`; `None` before the first packet of the base channel.
    rates: Option<Rates>,
    /// Packets of this epoch.
    received: u32,
    lost: u32,
    /// `RR_P`, since the first packet of the highest wave.
    arrivals: Arrivals,
    /// Number of epochs since the first packet of the highest wave.
    epochs_of_wave: u32,
    /// Time that the last join took.
    last_delay: Option<Duration>,
    epoch_began: Instant,
    next_epoch: Instant,
    last_received: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Wave {
    channel: u8,
    /// True after the first packet of the wave.
    is_received: bool,
}

/// Rates in packets per second.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// `ARR_P`: average of the packets that arrive or are lost.
    average: f64,
    /// `TRR_P`: average of the packets that arrive.
    received: f64,
}

/// Rate of arrivals, in stretches of several epochs.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// The last epochs, at most as many as a stretch has.
    epochs: VecDeque<Epoch>,
    /// `None` until the first stretch is complete.
    stretches: Option<Stretches>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    packets: f64,
    seconds: f64,
}

/// Rates of stretches in packets per second.
#[derive(Clone, Copy, Debug)]
struct Stretches {
    latest: f64,
    fastest: f64,
}

impl Arrivals {
    fn on_epoch(&mut self, packets: f64, seconds: f64, epochs_per_stretch: usize) {
        self.epochs.push_back(Epoch { packets, seconds });
        if self.epochs.len() > epochs_per_stretch {
            self.epochs.pop_front();
        }
        if self.epochs.len() == epochs_per_stretch {
            let sum = |of: fn(&Epoch) -> f64| self.epochs.iter().map(of).sum::<f64>();
            let latest = sum(|epoch| epoch.packets) / sum(|epoch| epoch.seconds);
            let fastest = self.stretches.map_or(latest, |before| latest.max(before.fastest));
            self.stretches = Some(Stretches { latest, fastest });
        }
    }
}

impl WebrcControl {
    /// A control that has joined the base channel. `max_rate` is in packets per second.
    pub(super) fn new(webrc: &Webrc, max_rate: f64, max_waves: usize, first: FirstChannel) -> Self {
        let waves = Waves::new(webrc);
        // The next base packet is at most one packet interval away.
        let delay = first.first_packet_after.unwrap_or(Duration::from_millis(100));
        let epoch = waves.slot / EPOCHS_PER_SLOT;
        Self {
            packet_bytes: webrc.packet_bytes.into(),
            max_rate,
            max_waves: max_waves.min(waves.count),
            slots: SlotClock::new(waves.slot, waves.channels),
            slot_since: first.now,
            joined: VecDeque::new(),
            joining: None,
            failed_joins: 0,
            no_join_before: first.now,
            outputs: VecDeque::new(),
            loss: LossEstimate::default(),
            round_trip: RoundTrip::new(delay, waves.decay),
            loss_events: VecDeque::new(),
            loss_event_until: first.now,
            slow_start: None,
            rates: None,
            received: 0,
            lost: 0,
            arrivals: Arrivals::default(),
            epochs_of_wave: 0,
            last_delay: None,
            epoch_began: first.now,
            next_epoch: first.now + epoch,
            last_received: first.now,
            waves,
        }
    }

    fn epoch(&self) -> Duration {
        self.waves.slot / EPOCHS_PER_SLOT
    }

    fn epochs_per_stretch(&self) -> usize {
        let epochs = STRETCH.as_nanos() / self.epoch().as_nanos().max(1);
        epochs.clamp(1, u128::from(EPOCHS_PER_SLOT / 4)) as usize
    }

    /// Enters the slot of a packet: the waves of the slots before have ended.
    fn follow_slot(&mut self, now: Instant, slot: u8) {
        let channels = self.waves.channels;
        let before = self.slots.current();
        let ahead = self.slots.on_packet(now, slot);
        let Some(current) = before else {
            self.slot_since = now;
            return;
        };
        if ahead == 0 {
            return;
        }
        let (p, base_rate) = (self.waves.decay, self.waves.base_rate);
        for passed in 0..ahead {
            let ended = ((u16::from(current) + u16::from(passed)) % u16::from(channels)) as u8;
            // The base channel's rate returns from P BCR_P to BCR_P.
            let mut change = (1.0 - p) * base_rate;
            if self.joined.front().is_some_and(|wave| wave.channel == ended) {
                let is_received = self.joined.pop_front().is_some_and(|wave| wave.is_received);
                self.leave(ended);
                if !is_received {
                    self.pause_joins(now, self.waves.slot);
                }
                // The wave ends at a rate of BCR_P.
                change -= base_rate;
            }
            if let Some(rates) = &mut self.rates {
                rates.average = (rates.average + change).max(p * base_rate);
            }
        }
        if self.joined.is_empty() {
            self.joining = None;
        }
        self.slot_since = now;
    }

    fn leave(&mut self, channel: u8) {
        self.outputs.push_back(Membership::Leave(ChannelId(channel + 1)));
    }

    /// Leaves all waves and forgets what was measured.
    fn start_again(&mut self, now: Instant) {
        while let Some(wave) = self.joined.pop_back() {
            self.leave(wave.channel);
        }
        (self.joining, self.rates, self.slow_start) = (None, None, None);
        self.slots.reset();
        self.arrivals = Arrivals::default();
        self.loss = LossEstimate::default();
        self.last_received = now;
    }

    /// Handles the first packet of the wave that was joined at `since` (section 3.2.3.2).
    fn on_first_packet(&mut self, now: Instant, since: Instant) {
        let delay = now.saturating_since(since);
        let count = self.joined.len() as i32;
        let p = self.waves.decay;
        let wait = (1.0 / p).ln() / 2.0 / (1.0 - p) / self.waves.base_rate * p.powi(count);
        self.round_trip.on_join(delay, wait);
        (self.joining, self.failed_joins, self.epochs_of_wave) = (None, 0, 0);
        self.arrivals = Arrivals::default();
        let previous = self.last_delay.replace(delay);
        let (Some(rates), Some(previous)) = (self.rates, previous) else { return };
        let large = (p.powi(count + 1) - 1.0) / (p * p.ln()) / rates.average;
        if self.slow_start.is_none() && delay.as_secs_f64() - previous.as_secs_f64() > large {
            self.end_start_up(p * rates.received);
        }
    }

    /// Ends start-up. From now on the equation limits the rate, beginning with the received rate.
    fn end_start_up(&mut self, rate: f64) {
        self.slow_start = Some(rate.max(self.least_slow_start()));
        let received = self.rates.map_or(self.waves.base_rate, |rates| rates.received);
        self.loss = LossEstimate::starting_at(loss_at(received, self.round_trip_at(received)));
    }

    /// Round trip in seconds that the equation uses at this rate.
    fn round_trip_at(&self, received: f64) -> f64 {
        let window = LEAST_WINDOW / received.max(self.waves.base_rate);
        self.round_trip.average().max(window.min(LONGEST_WINDOW))
    }

    /// `SSMINR_P`: least value of `SSR_P`.
    fn least_slow_start(&self) -> f64 {
        let growth = 1.0 / self.waves.decay;
        self.waves.base_rate * (1.0 + growth + growth * growth)
    }

    /// Handles losses or a mark. All packets that were due within a round trip of the beginning of
    /// a loss event belong to it, whenever their loss shows: the next packet of a slow wave may
    /// come much later.
    fn on_losses(&mut self, now: Instant, lost: Losses) {
        self.lost = self.lost.saturating_add(u32::try_from(lost.packets).unwrap_or(u32::MAX));
        self.loss.on_packets(lost.packets as f64);
        let round_trip = Duration::from_secs_f64(self.round_trip.average());
        // The time of a loss is as exact as its channel is fast. A loss that may belong to an event
        // does so, but no more than one further round trip away.
        let near = round_trip + lost.space.min(round_trip);
        let is_near = |&began: &Instant| {
            lost.at.saturating_since(began).max(began.saturating_since(lost.at)) < near
        };
        if self.loss_events.iter().any(is_near) {
            return;
        }
        if self.loss_events.len() >= LOSS_EVENTS {
            self.loss_events.pop_front();
        }
        self.loss_events.push_back(lost.at);
        self.loss_event_until = now + round_trip;
        self.loss.on_event();
        let received = self.rates.map_or(0.0, |rates| rates.received);
        let threshold = self.waves.decay * received;
        if self.slow_start.is_none() {
            self.end_start_up(threshold);
        } else {
            self.slow_start = Some(threshold.max(self.least_slow_start()));
        }
    }

    /// `TRATE`: the target rate (section 3.2.2.7).
    fn target(&self, rates: Rates) -> f64 {
        let target = match self.slow_start {
            None => 4.0 * rates.received,
            Some(least) => {
                // Not in the RFC: the equation gives a mean rate, and the rate with one more wave
                // is that at the beginning of a slot.
                let mean = rate_at(self.loss.probability(), self.round_trip_at(rates.received));
                (mean * self.waves.crest()).max(least)
            }
        };
        target.min(self.max_rate)
    }

    fn on_epoch(&mut self, now: Instant, sequence: &mut SequenceTracker) {
        // A late call ends several epochs at once.
        let epoch = self.epoch();
        let late = now.saturating_since(self.next_epoch).as_nanos() / epoch.as_nanos().max(1);
        let epochs = late.min(u128::from(EPOCHS_PER_SLOT)) as u32 + 1;
        self.next_epoch = now.max(self.next_epoch + epoch * (epochs - 1)) + epoch;
        let lost = sequence.expire(now);
        if lost.packets > 0 {
            self.on_losses(now, lost);
        }
        // The actual length of the epoch, not the nominal one.
        let seconds = now.saturating_since(self.epoch_began).max(epoch).as_secs_f64();
        let (received, lost) = (f64::from(self.received), f64::from(self.lost));
        (self.epoch_began, self.received, self.lost) = (now, 0, 0);
        self.arrivals.on_epoch(received, seconds, self.epochs_per_stretch());
        let (received, sent) = (received / seconds, (received + lost) / seconds);
        for _ in 0..epochs {
            self.average(received, sent);
            self.loss.on_epoch(EPOCHS_PER_SLOT);
        }
        self.epochs_of_wave = self.epochs_of_wave.saturating_add(epochs);
        let frozen = self.slots.current().is_some()
            && now.saturating_since(self.slot_since) > (SILENCE * 2).max(self.waves.slot * 2);
        if frozen || now.saturating_since(self.last_received) > SILENCE.max(self.waves.slot) {
            return self.start_again(now);
        }
        self.check_join(now);
        if let Some(rates) = self.rates {
            self.check_start_up(rates);
            if self.may_join(now, rates) {
                self.join_unless_full(now, rates);
            }
        }
    }

    /// Updates the averages (section 3.2.2.5).
    fn average(&mut self, received: f64, sent: f64) {
        let p = self.waves.decay;
        let per_epoch = 1.0 / f64::from(EPOCHS_PER_SLOT);
        let (beta, zeta) = if self.slow_start.is_none() {
            ((1.0 - p.powf(0.25)) / 2.0, start_up_weight(p))
        } else {
            let slot = self.waves.slot.as_secs_f64();
            (1.0 - (p / (1.0 + p)).powf(per_epoch), 2.0 * slot * per_epoch / (4.0 + slot))
        };
        let most = self.waves.rate_of(self.joined.len());
        let Some(rates) = &mut self.rates else { return };
        rates.received = (1.0 - zeta) * rates.received + zeta * received;
        rates.average = p.powf(per_epoch) * (1.0 - beta) * rates.average + beta * sent;
        rates.average = rates.average.min(most);
    }

    /// Ends start-up if it is over without a loss (section 3.2.2.6).
    fn check_start_up(&mut self, rates: Rates) {
        if self.slow_start.is_some() {
            return;
        }
        let next = self.rate_with_next(rates);
        let brought_little = self.joining.is_none()
            && !self.joined.is_empty()
            && self.epochs_of_wave == 2
            && rates.received
                < self.expected_in_start_up() * rates.average - 2.0 / self.epoch().as_secs_f64();
        if next > self.max_rate || next > self.waves.session_rate() || brought_little {
            self.end_start_up(rates.received);
        }
    }

    /// Ratio of `TRR_P` to `ARR_P` if no packet is lost.
    fn expected_in_start_up(&self) -> f64 {
        let (p, count) = (self.waves.decay, self.joined.len() as f64);
        let zeta = start_up_weight(p);
        let growth = self.waves.growth(1.0 / f64::from(EPOCHS_PER_SLOT));
        let step = (self.waves.growth(count + 1.0) - 1.0) / (self.waves.growth(count) - 1.0);
        zeta + (1.0 - zeta) * growth * (zeta + (1.0 - zeta) * p.sqrt() * growth) / step
    }

    /// True if the next wave may be joined (section 3.2.3.6).
    fn may_join(&self, now: Instant, rates: Rates) -> bool {
        let count = self.joined.len();
        let never = self.slots.current().is_none()
            || now < self.loss_event_until
            || self.joining.is_some()
            || count >= self.max_waves
            || now < self.no_join_before;
        // A full epoch must pass after the first packet of a wave.
        let too_soon = self.slow_start.is_none() && count > 0 && self.epochs_of_wave < 2;
        // The rate of the session is the limit.
        let needed = self.rate_with_next(rates).min(self.waves.session_rate());
        !never && !too_soon && self.target(rates) >= needed
    }

    /// Joins the next wave unless a queue on the path is full. Waves decay; if the arrivals do not,
    /// a queue is being emptied, and the next wave would lengthen it. Section 3.2.3.6 recommends
    /// this check. Not in the RFC: the equation does not start again if the check fails. Beside TCP
    /// the check fails in each of TCP's cycles, and each start would fix the session's share at its
    /// minimum.
    fn join_unless_full(&mut self, now: Instant, rates: Rates) {
        // The sum of all waves does not decay.
        let takes_all = self.rate_with_next(rates) >= self.waves.session_rate();
        if self.slow_start.is_none() || takes_all {
            return self.join(now);
        }
        let Some(Stretches { latest, fastest }) = self.arrivals.stretches else { return };
        let (p, epochs) = (self.waves.decay, self.epochs_per_stretch() as f64);
        let two_packets = 2.0 / (epochs * self.epoch().as_secs_f64());
        // Not in the RFC: the decay of the waves in a stretch, if it exceeds two packets.
        let stretch_loss = (1.0 - p.powf(epochs / f64::from(EPOCHS_PER_SLOT))) * fastest;
        let slot_loss = (1.0 - p) * fastest;
        if latest <= fastest - two_packets.max(stretch_loss).min(slot_loss) {
            self.join(now);
        }
    }

    fn rate_with_next(&self, rates: Rates) -> f64 {
        rates.average * self.waves.step(self.joined.len())
    }

    fn join(&mut self, now: Instant) {
        let Some(slot) = self.slots.current() else { return };
        let before = self.joined.len();
        let channel = ((u16::from(slot) + before as u16) % u16::from(self.waves.channels)) as u8;
        self.joined.push_back(Wave { channel, is_received: false });
        self.joining = Some(now);
        self.outputs.push_back(Membership::Join(ChannelId(channel + 1)));
        let growth = self.growth_with(before + 1);
        if let Some(rates) = &mut self.rates {
            rates.average *= growth;
        }
    }

    /// Factor by which the rate grows with the last of `count` waves.
    fn growth_with(&self, count: usize) -> f64 {
        self.waves.step(count.saturating_sub(1))
    }

    /// Undoes a join that brought no packet for too long (section 3.2.3.7).
    fn check_join(&mut self, now: Instant) {
        let Some(since) = self.joining else { return };
        let count = self.joined.len();
        let rate = self.waves.base_rate * self.waves.growth(count.saturating_sub(1) as f64);
        let seconds = self.round_trip.join_timeout().max(JOIN_PACKETS / rate);
        let timeout = Duration::from_secs_f64(seconds.clamp(0.0, MAX_JOIN_PAUSE.as_secs_f64()));
        if now.saturating_since(since) < timeout {
            return;
        }
        self.joining = None;
        let growth = self.growth_with(count);
        if let Some(wave) = self.joined.pop_back() {
            self.leave(wave.channel);
            if let Some(rates) = &mut self.rates {
                rates.average /= growth;
            }
        }
        self.pause_joins(now, timeout);
    }

    /// Delays the next join after one that brought no packet in `time`. The first delay is as long
    /// as `time`, the following ones are longer.
    fn pause_joins(&mut self, now: Instant, time: Duration) {
        self.no_join_before = now + (time * (1 << self.failed_joins)).min(MAX_JOIN_PAUSE);
        self.failed_joins = (self.failed_joins + 1).min(8);
    }
}

/// `Zeta` in start-up.
fn start_up_weight(p: f64) -> f64 {
    p.sqrt() / (1.0 + p.sqrt())
}

impl SubscriptionControl for WebrcControl {
    fn on_packet(&mut self, now: Instant, packet: &PacketSeen) {
        let Some(cci) = WebrcCci::parse(packet.cci) else { return };
        let channels = self.waves.channels;
        let is_base = packet.channel.0 == 0 && cci.channel == channels;
        let is_wave = cci.channel < channels && packet.channel.0 == cci.channel + 1;
        if cci.slot >= channels || !(is_base || is_wave) {
            return;
        }
        self.last_received = now;
        self.follow_slot(now, cci.slot);
        if let Some(at) = self.joined.iter().position(|wave| wave.channel == cci.channel) {
            let wave = self.joined.get_mut(at);
            let first = wave.is_some_and(|wave| !std::mem::replace(&mut wave.is_received, true));
            if let Some(since) = self.joining.filter(|_| first && at + 1 == self.joined.len()) {
                self.on_first_packet(now, since);
            }
        } else if !is_base {
            // A packet of a wave that was left.
            return;
        }
        if is_base && self.rates.is_none() {
            let before = u64::from(cci.sequence) % self.waves.base_packets;
            let slot = self.waves.slot.as_secs_f64();
            let rate = self.waves.base_rate + before as f64 * self.waves.decay.ln() / slot;
            let rate = rate.max(self.waves.decay * self.waves.base_rate);
            self.rates = Some(Rates { average: rate, received: rate });
        }
        self.received = self.received.saturating_add(1);
        self.loss.on_packets(1.0);
        if packet.congestion_experienced {
            self.on_losses(now, Losses { at: now, space: Duration::ZERO, ..packet.lost });
        } else if packet.lost.packets > 0 {
            self.on_losses(now, packet.lost);
        }
    }

    fn on_timeout(&mut self, now: Instant, sequence: &mut SequenceTracker) {
        if now >= self.next_epoch {
            self.on_epoch(now, sequence);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_epoch)
    }

    fn poll_membership(&mut self) -> Option<Membership> {
        self.outputs.pop_front()
    }

    fn level(&self) -> Level {
        let bytes = |rates: Rates| (rates.average * self.packet_bytes as f64) as u64;
        let rate_bytes_per_second = self.rates.map(bytes);
        Level { channels: self.joined.len() as u8 + 1, rate_bytes_per_second }
    }
}

#[cfg(test)]
mod tests;
