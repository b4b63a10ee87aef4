//! One direction of a link: a queue, a transmitter, a wire.
//!
//! A link is a value without a clock. [`Link::offer`] takes the time and returns the fate of a
//! packet. A simulation schedules the arrival; an emulator between real hosts waits for it.
//!
//! ```
//! use fontana_proto::{Instant, SplitMix64};
//! use fontana_sim::{Fate, Link, LinkConfig, QueueLength};
//! use std::time::Duration;
//!
//! let config = LinkConfig {
//!     rate_bytes_per_second: Some(1_000_000),
//!     delay: Duration::from_millis(10),
//!     queue: QueueLength::Packets(2),
//!     ..LinkConfig::default()
//! };
//! let (mut link, mut random) = (Link::new(config), SplitMix64::new(1, 1));
//! let mut offer = || match link.offer(Instant::ZERO, 1_000, &mut random) {
//!     Fate::Arrives(arrival) => Some(arrival.at.as_nanos() / 1_000_000),
//!     Fate::Dropped(_) => None,
//! };
//! // A millisecond on the transmitter and ten on the wire. The third packet finds the queue full.
//! assert_eq!([offer(), offer(), offer()], [Some(11), Some(12), None]);
//! ```

use crate::chance::Probability;
use crate::loss::{Loss, LossModel};
use fontana_proto::{Instant, SplitMix64};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Configuration of a link. The default link delivers all packets immediately.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Rate of the transmitter; `None` for an infinite one, which has no queue.
    pub rate_bytes_per_second: Option<u64>,
    /// How long the transmitter takes for a packet at that rate.
    pub service: ServiceTime,
    /// Limit of the queue, the packet on the transmitter included. Packets that find it full are
    /// dropped (drop-tail).
    pub queue: QueueLength,
    /// Packets that find this much in the queue are marked with congestion experienced (RFC 3168).
    pub mark_from: Option<QueueLength>,
    /// Delay of the wire, the same for all packets.
    pub delay: Duration,
    /// Mean of an additional, exponentially distributed delay. It does not reorder packets.
    pub jitter: Duration,
    /// Losses on the wire, or before the queue.
    pub loss: LossModel,
    /// Where these losses are.
    pub loss_position: LossPosition,
    /// Other faults of the wire.
    pub faults: WireFaults,
    /// Delay from the far end's join of a multicast group until packets are forwarded.
    /// [`Duration::MAX`]: joins are ignored.
    pub graft: Duration,
    /// Delay from the far end's leave until packets are no longer forwarded. [`Duration::MAX`]:
    /// leaves are ignored.
    pub prune: Duration,
}

/// Time that a transmitter takes for a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceTime {
    /// The packet's length over the rate.
    #[default]
    ByLength,
    /// Exponentially distributed with that mean, so that equal links do not drop the same packets.
    Exponential,
}

/// Length of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLength {
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(u64),
}

/// Where a link loses packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPosition {
    /// On the wire: a lost packet has used the queue and the transmitter.
    #[default]
    Wire,
    /// On the way into the queue: a lost packet takes no room in it and no time of the transmitter.
    Ingress,
}

/// Rare faults of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireFaults {
    /// A packet arrives twice.
    pub duplicate: Probability,
    /// A packet is delayed by [`held`](Self::held), so that others overtake it.
    pub reorder: Probability,
    /// Additional delay of such a packet.
    pub held: Duration,
    /// A bit of the packet is inverted, and no checksum detects it.
    pub corrupt: Probability,
}

/// Fate of a packet that was offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at the far end.
    Arrives(Arrival),
    /// It is lost.
    Dropped(DropCause),
}

/// Arrival of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its time, not before the packet was offered.
    pub at: Instant,
    /// The queue had reached [`LinkConfig::mark_from`]. Callers ignore it for packets that do not
    /// support ECN.
    pub marked: bool,
    /// A copy arrives at the same time.
    pub duplicated: bool,
    /// Number of the inverted bit, modulo the length in bits; `None` if the packet is intact.
    pub damage: Option<u64>,
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The queue was full: congestion.
    Queue,
    /// The wire lost it, on it or before the queue.
    Wire,
    /// The link is down.
    Down,
}

/// What waits for a link's transmitter, the packet on it included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: usize,
    /// Their bytes, headers included.
    pub bytes: u64,
}

impl Backlog {
    /// Whether the queue is not longer than its limit.
    pub(crate) fn is_within(self, limit: QueueLength) -> bool {
        match limit {
            QueueLength::Packets(limit) => self.packets <= limit as usize,
            QueueLength::Bytes(limit) => self.bytes <= limit,
        }
    }
}

/// What a link has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that were offered.
    pub offered: u64,
    /// Bytes that were sent on the wire, lost there or not.
    pub carried_bytes: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets that the wire lost, on it or before the queue, or that were offered while the link
    /// was down.
    pub wire_drops: u64,
    /// Packets that were marked.
    pub marked: u64,
}

/// One direction of a link, with the packets in its queue.
#[derive(Clone, Debug)]
pub struct Link {
    config: Arc<LinkConfig>,
    loss: Loss,
    is_up: bool,
    waiting: VecDeque<Queued>,
    waiting_bytes: u64,
    /// When the transmitter has sent the last packet in the queue.
    free_at: Instant,
    /// Arrival of the last packet that was not held; later ones do not overtake it.
    last_arrival: Instant,
    stats: LinkStats,
}

/// A packet that waits for the transmitter, or is on it.
#[derive(Clone, Copy, Debug)]
struct Queued {
    /// When the transmitter has sent its last byte.
    sent_at: Instant,
    bytes: u32,
}

/// A packet that the queue took.
struct Transmission {
    /// When the transmitter has sent its last byte.
    sent_at: Instant,
    /// It found a queue of [`LinkConfig::mark_from`] or more.
    marked: bool,
}

impl LinkConfig {
    /// A transmitter and a wire; the full queue takes the transmitter `queue` to send.
    pub fn bottleneck(rate_bytes_per_second: u64, queue: Duration, delay: Duration) -> Self {
        let bytes = u128::from(rate_bytes_per_second) * queue.as_millis() / 1000;
        Self {
            rate_bytes_per_second: Some(rate_bytes_per_second),
            queue: QueueLength::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX)),
            delay,
            ..Self::default()
        }
    }

    /// A wire behind an infinitely fast transmitter.
    pub fn wire(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// The same link with these losses.
    pub fn with_loss(self, loss: LossModel) -> Self {
        Self { loss, ..self }
    }

    /// The time of passage if it is the same for all packets; `None` if it depends on other packets
    /// or on chance. If it is constant, the fate of a packet can be decided at its arrival.
    pub fn constant_passage(&self) -> Option<Duration> {
        let even = self.rate_bytes_per_second.is_none() && self.jitter.is_zero();
        (even && self.faults == WireFaults::default()).then_some(self.delay)
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate_bytes_per_second: None,
            service: ServiceTime::ByLength,
            // The default of Linux (`txqueuelen`).
            queue: QueueLength::Packets(1_000),
            mark_from: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: LossModel::None,
            loss_position: LossPosition::Wire,
            faults: WireFaults::default(),
            graft: Duration::ZERO,
            prune: Duration::ZERO,
        }
    }
}

impl Link {
    /// A link that is up, with an empty queue.
    pub fn new(config: impl Into<Arc<LinkConfig>>) -> Self {
        let config = config.into();
        Self {
            loss: Loss::new(config.loss.clone()),
            config,
            is_up: true,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            free_at: Instant::ZERO,
            last_arrival: Instant::ZERO,
            stats: LinkStats::default(),
        }
    }

    /// Its configuration.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Counters so far.
    pub fn stats(&self) -> LinkStats {
        self.stats
    }

    /// Cuts the link: packets that are offered from now on are lost. Those on it arrive.
    pub fn cut(&mut self) {
        self.is_up = false;
    }

    /// Mends a link that was cut.
    pub fn mend(&mut self) {
        self.is_up = true;
    }

    /// What waits for the transmitter at `now`, the packet on it included.
    pub fn backlog(&mut self, now: Instant) -> Backlog {
        while let Some(&sent) = self.waiting.front().filter(|queued| queued.sent_at <= now) {
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(sent.bytes);
        }
        Backlog { packets: self.waiting.len(), bytes: self.waiting_bytes }
    }

    /// Offers a packet of `bytes` bytes, headers included. `now` must not decrease from one call to
    /// the next.
    pub fn offer(&mut self, now: Instant, bytes: u32, random: &mut SplitMix64) -> Fate {
        if let Err(cause) = self.enter(random) {
            return Fate::Dropped(cause);
        }
        let Some(Transmission { sent_at, marked }) = self.transmit(now, bytes, random) else {
            self.stats.queue_drops += 1;
            return Fate::Dropped(DropCause::Queue);
        };
        self.stats.marked += u64::from(marked);
        if let Err(cause) = self.cross(bytes, random) {
            return Fate::Dropped(cause);
        }
        let mut at = sent_at + self.config.delay;
        if !self.config.jitter.is_zero() {
            at = at + random.exponential(self.config.jitter);
        }
        at = at.max(self.last_arrival);
        let WireFaults { duplicate, reorder, held, corrupt } = self.config.faults;
        if reorder.draw(random) {
            at = at + held;
        } else {
            self.last_arrival = at;
        }
        Fate::Arrives(Arrival {
            at,
            marked,
            duplicated: duplicate.draw(random),
            damage: corrupt.draw(random).then(|| random.next_u64()),
        })
    }

    /// Decides whether a packet passes a link of
    /// [constant passage](LinkConfig::constant_passage).
    ///
    /// # Errors
    /// The cause of its loss.
    pub(crate) fn pass(&mut self, bytes: u32, random: &mut SplitMix64) -> Result<(), DropCause> {
        self.enter(random)?;
        self.cross(bytes, random)
    }

    fn enter(&mut self, random: &mut SplitMix64) -> Result<(), DropCause> {
        self.stats.offered += 1;
        if !self.is_up {
            self.stats.wire_drops += 1;
            return Err(DropCause::Down);
        }
        self.lose(LossPosition::Ingress, random)
    }

    fn cross(&mut self, bytes: u32, random: &mut SplitMix64) -> Result<(), DropCause> {
        self.stats.carried_bytes += u64::from(bytes);
        self.lose(LossPosition::Wire, random)
    }

    /// Draws whether a packet is lost, if losses are there.
    fn lose(&mut self, position: LossPosition, random: &mut SplitMix64) -> Result<(), DropCause> {
        if self.config.loss_position == position && self.loss.next(random) {
            self.stats.wire_drops += 1;
            return Err(DropCause::Wire);
        }
        Ok(())
    }

    /// Queues a packet for the transmitter; `None` if the queue has no room for it.
    fn transmit(
        &mut self,
        now: Instant,
        bytes: u32,
        random: &mut SplitMix64,
    ) -> Option<Transmission> {
        let Some(rate) = self.config.rate_bytes_per_second else {
            return Some(Transmission { sent_at: now, marked: false });
        };
        let Backlog { packets, bytes: waiting } = self.backlog(now);
        let has_room = match self.config.queue {
            QueueLength::Packets(limit) => packets < limit as usize,
            QueueLength::Bytes(limit) => waiting + u64::from(bytes) <= limit,
        };
        if !has_room {
            return None;
        }
        let marked = self.config.mark_from.is_some_and(|from| match from {
            QueueLength::Packets(from) => packets >= from as usize,
            QueueLength::Bytes(from) => waiting >= from,
        });
        let nanos = (u64::from(bytes) * 1_000_000_000).div_ceil(rate.max(1));
        let by_length = Duration::from_nanos(nanos);
        let service = match self.config.service {
            ServiceTime::ByLength => by_length,
            ServiceTime::Exponential => random.exponential(by_length),
        };
        let sent_at = self.free_at.max(now) + service;
        self.free_at = sent_at;
        self.waiting.push_back(Queued { sent_at, bytes });
        self.waiting_bytes += u64::from(bytes);
        Some(Transmission { sent_at, marked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    struct Bench {
        link: Link,
        random: SplitMix64,
    }

    impl Bench {
        fn new(config: LinkConfig) -> Self {
            Self { link: Link::new(config), random: SplitMix64::new(3, 1) }
        }

        fn offer(&mut self, nanos: u64, bytes: u32) -> Fate {
            self.link.offer(Instant::from_nanos(nanos), bytes, &mut self.random)
        }

        fn arrival(&mut self, nanos: u64, bytes: u32) -> Arrival {
            match self.offer(nanos, bytes) {
                Fate::Arrives(arrival) => arrival,
                Fate::Dropped(why) => panic!("{why:?}"),
            }
        }
    }

    fn slow(queue: QueueLength) -> LinkConfig {
        LinkConfig { rate_bytes_per_second: Some(1_000_000), queue, ..LinkConfig::default() }
    }

    #[test]
    fn random_service_has_the_mean_and_the_deviation_of_its_distribution() {
        let service = ServiceTime::Exponential;
        let mut bench = Bench::new(LinkConfig { service, ..slow(QueueLength::Packets(1)) });
        // Each packet finds the transmitter free.
        let seconds = |second: u64| {
            let now = second * 1_000 * MS;
            (bench.arrival(now, 1_000).at.as_nanos() - now) as f64 / MS as f64
        };
        let times: Vec<f64> = (0..10_000).map(seconds).collect();
        let mean = times.iter().sum::<f64>() / 1e4;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 1e4;
        // Of both, a hundredth and a fiftieth are the standard errors.
        assert!((mean - 1.0).abs() < 0.04 && (variance.sqrt() - 1.0).abs() < 0.06, "{mean}");
    }

    #[test]
    fn a_queue_of_bytes_takes_the_byte_that_just_fits() {
        let mut bench = Bench::new(slow(QueueLength::Bytes(2_500)));
        assert_eq!(bench.arrival(0, 1_500).at.as_nanos(), 3 * MS / 2);
        assert_eq!(bench.arrival(0, 1_000).at.as_nanos(), 5 * MS / 2);
        assert_eq!(bench.offer(0, 1), Fate::Dropped(DropCause::Queue));
        assert_eq!(bench.offer(3 * MS / 2 - 1, 1), Fate::Dropped(DropCause::Queue));
        assert_eq!(bench.arrival(3 * MS / 2, 1_500).at.as_nanos(), 4 * MS);
        let backlog = bench.link.backlog(Instant::from_nanos(5 * MS / 2));
        assert_eq!(backlog, Backlog { packets: 1, bytes: 1_500 });
        assert_eq!(bench.link.stats().queue_drops, 2);
        assert_eq!(bench.link.stats().carried_bytes, 4_000);
    }

    #[test]
    fn an_idle_transmitter_saves_no_time_up() {
        let mut bench = Bench::new(slow(QueueLength::Packets(1)));
        assert_eq!(bench.arrival(0, 1_000).at.as_nanos(), MS);
        assert_eq!(bench.arrival(10 * MS, 1_000).at.as_nanos(), 11 * MS);
        assert_eq!(bench.offer(10 * MS, 1_000), Fate::Dropped(DropCause::Queue));
    }

    #[test]
    fn packets_that_find_a_long_queue_are_marked() {
        let mark_from = Some(QueueLength::Packets(2));
        let mut bench = Bench::new(LinkConfig { mark_from, ..slow(QueueLength::Packets(9)) });
        let marks = [(); 4].map(|()| bench.arrival(0, 100).marked);
        assert_eq!(marks, [false, false, true, true]);
    }

    #[test]
    fn jitter_has_its_mean_and_never_reorders() {
        let (delay, jitter) = (Duration::from_millis(10), Duration::from_millis(2));
        let mut bench = Bench::new(LinkConfig { delay, jitter, ..LinkConfig::default() });
        let (mut last, mut sum) = (0, 0);
        for i in 0..20_000 {
            // Far enough apart that they hardly ever meet.
            let sent = i * 100 * MS;
            let at = bench.arrival(sent, 100).at.as_nanos();
            assert!(at >= sent + 10 * MS);
            sum += at - sent - 10 * MS;
            last = at;
        }
        assert!((1_900_000..2_100_000).contains(&(sum / 20_000)), "{}", sum / 20_000);
        for i in 0..1_000 {
            let at = bench.arrival(20_000 * 100 * MS + i, 100).at.as_nanos();
            assert!(at >= last);
            last = at;
        }
    }

    #[test]
    fn a_held_packet_is_overtaken() {
        let held = Duration::from_millis(5);
        let faults = WireFaults { reorder: Probability::new(0.5), held, ..WireFaults::default() };
        let mut bench = Bench::new(LinkConfig { faults, ..LinkConfig::default() });
        let times: Vec<_> = (0..100).map(|i| bench.arrival(i * MS, 100).at).collect();
        let overtaken = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!((10..60).contains(&overtaken), "{overtaken}");
    }

    #[test]
    fn wires_lose_damage_and_repeat_as_often_as_they_are_told() {
        let half = Probability::new(0.5);
        let faults = WireFaults { duplicate: half, corrupt: half, ..WireFaults::default() };
        let loss = LossModel::Periodic { period: 2, first: 0 };
        let mut bench = Bench::new(LinkConfig { faults, loss, ..LinkConfig::default() });
        let fates: Vec<_> = (0..2_000).map(|i| bench.offer(i, 100)).collect();
        assert!(fates.iter().step_by(2).all(|&fate| fate == Fate::Dropped(DropCause::Wire)));
        let arrived = fates.iter().filter_map(|fate| match fate {
            Fate::Arrives(arrival) => Some(arrival),
            Fate::Dropped(_) => None,
        });
        let (twice, damaged) = arrived.fold((0, 0), |(twice, damaged), a| {
            (twice + u32::from(a.duplicated), damaged + u32::from(a.damage.is_some()))
        });
        assert!((430..570).contains(&twice) && (430..570).contains(&damaged));
    }

    #[test]
    fn a_packet_that_is_lost_before_the_queue_takes_no_room_in_it() {
        let loss = LossModel::Periodic { period: 2, first: 0 };
        let offer = |loss_position| {
            let queue = QueueLength::Packets(2);
            let config = LinkConfig { loss: loss.clone(), loss_position, ..slow(queue) };
            let mut bench = Bench::new(config);
            (0..4).map(|_| bench.offer(0, 1_000)).collect::<Vec<_>>()
        };
        let [wire, queue] = [DropCause::Wire, DropCause::Queue].map(Fate::Dropped);
        let at = |millis| {
            Fate::Arrives(Arrival {
                at: Instant::from_nanos(millis * MS),
                marked: false,
                duplicated: false,
                damage: None,
            })
        };
        assert_eq!(offer(LossPosition::Ingress), [wire, at(1), wire, at(2)]);
        assert_eq!(offer(LossPosition::Wire), [wire, at(2), queue, queue]);
    }

    #[test]
    fn a_cut_link_passes_nothing_until_it_is_mended() {
        let mut bench = Bench::new(LinkConfig::default());
        bench.link.cut();
        assert_eq!(bench.offer(0, 1), Fate::Dropped(DropCause::Down));
        bench.link.mend();
        assert_eq!(bench.arrival(1, 1).at.as_nanos(), 1);
    }
}
