//! The least network in which congestion control does something: one sender, drop-tail queues with
//! a rate and a delay, receivers behind them whose joins and leaves take time. Packets carry
//! nothing but their congestion control information.

use fontana_proto::{
    ChannelClock, ChannelId, FirstChannel, Instant, Losses, Membership, PacketSeen,
    SequenceTracker, SplitMix64, SubscriptionControl, SubscriptionLimits, subscribe,
};
use fontana_wire::{Cci, CongestionControl};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// A bottleneck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) bytes_per_second: u64,
    /// Longest time that a packet waits in the queue.
    pub(crate) queue: Duration,
    pub(crate) delay: Duration,
}

/// What a receiver's router does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Router {
    pub(crate) join_takes: Duration,
    pub(crate) leave_takes: Duration,
    /// Which channels can be joined.
    pub(crate) grafts: fn(u8) -> bool,
}

impl Default for Router {
    fn default() -> Self {
        let (join_takes, leave_takes) = (Duration::from_millis(10), Duration::from_millis(100));
        Self { join_takes, leave_takes, grafts: |_| true }
    }
}

pub(crate) struct Receiver {
    pub(crate) control: Box<dyn SubscriptionControl>,
    sequence: SequenceTracker,
    pub(crate) router: Router,
    link: usize,
    /// The channels that it wants.
    joined: BTreeSet<u8>,
    /// For each channel, from when and until when packets come.
    members: BTreeMap<u8, (Instant, Option<Instant>)>,
    pub(crate) bytes: u64,
    pub(crate) joins: u64,
    /// The number of channels that it wanted at the end of each second.
    pub(crate) levels: Vec<u8>,
}

struct Queue {
    link: Link,
    busy_until: Instant,
    underway: VecDeque<(Instant, Instant, ChannelId, Cci)>,
    pub(crate) offered: u64,
    pub(crate) dropped: u64,
}

pub(crate) struct Network {
    pub(crate) clock: ChannelClock,
    packet_bytes: u16,
    queues: Vec<Queue>,
    pub(crate) receivers: Vec<Receiver>,
    now: Instant,
    random: SplitMix64,
}

/// `Instant` of a second.
pub(crate) fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// Bytes per second.
pub(crate) const fn mbit(megabits: u64) -> u64 {
    megabits * 125_000
}

impl Network {
    pub(crate) fn new(control: &CongestionControl, packet_bytes: u16, links: &[Link]) -> Self {
        let clock = ChannelClock::new(control, 1, packet_bytes, Instant::ZERO, 7).unwrap();
        let queue = |&link: &Link| Queue {
            link,
            busy_until: Instant::ZERO,
            underway: VecDeque::new(),
            offered: 0,
            dropped: 0,
        };
        Self {
            clock,
            packet_bytes,
            queues: links.iter().map(queue).collect(),
            receivers: Vec::new(),
            now: Instant::ZERO,
            random: SplitMix64::new(1, 1),
        }
    }

    /// A receiver behind a link, joined to channel 0.
    pub(crate) fn receiver(
        &mut self,
        control: &CongestionControl,
        limits: &SubscriptionLimits,
        link: usize,
        router: Router,
    ) {
        let first = FirstChannel { now: self.now, first_packet_after: None };
        self.receivers.push(Receiver {
            control: subscribe(control, limits, first).unwrap(),
            sequence: SequenceTracker::new(control.numbering()),
            router,
            link,
            joined: BTreeSet::from([0]),
            members: BTreeMap::from([(0, (self.now, None))]),
            bytes: 0,
            joins: 0,
            levels: Vec::new(),
        });
    }

    pub(crate) fn set_rate(&mut self, link: usize, bytes_per_second: u64) {
        self.queues[link].link.bytes_per_second = bytes_per_second;
    }

    /// Forgets what was counted.
    pub(crate) fn reset_counters(&mut self) {
        for queue in &mut self.queues {
            (queue.offered, queue.dropped) = (0, 0);
        }
        for receiver in &mut self.receivers {
            receiver.bytes = 0;
            receiver.levels.clear();
        }
    }

    /// Share of the packets that a link dropped.
    pub(crate) fn loss(&self, link: usize) -> f64 {
        self.queues[link].dropped as f64 / self.queues[link].offered.max(1) as f64
    }

    pub(crate) fn run_until(&mut self, end: Instant) {
        loop {
            let sent = self.clock.peek().at;
            let arrival = self.queues.iter().enumerate();
            let arrival = arrival.filter_map(|(i, q)| q.underway.front().map(|&(at, ..)| (at, i)));
            let arrival = arrival.min();
            let timer = self.receivers.iter().enumerate();
            let timer = timer.filter_map(|(i, r)| r.control.poll_timeout().map(|at| (at, i))).min();
            let earliest = [Some(sent), arrival.map(|a| a.0), timer.map(|t| t.0)];
            let next = earliest.into_iter().flatten().min().unwrap();
            self.sample_levels(next.min(end));
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            if let Some((at, link)) = arrival.filter(|&(at, _)| at <= next) {
                self.deliver(at, link);
            } else if let Some((_, receiver)) = timer.filter(|&(at, _)| at <= next) {
                let Receiver { control, sequence, .. } = &mut self.receivers[receiver];
                control.on_timeout(self.now, sequence);
                self.follow(receiver);
            } else {
                self.send();
            }
        }
    }

    fn sample_levels(&mut self, next: Instant) {
        let second = |instant: Instant| instant.as_nanos() / 1_000_000_000;
        for _ in second(self.now)..second(next) {
            for receiver in &mut self.receivers {
                receiver.levels.push(receiver.control.level().channels);
            }
        }
    }

    fn send(&mut self) {
        let emission = self.clock.peek();
        self.clock.advance();
        for (index, queue) in self.queues.iter_mut().enumerate() {
            let mut behind = self.receivers.iter().filter(|receiver| receiver.link == index);
            if !behind.any(|receiver| receiver.hears(emission.channel, emission.at)) {
                continue;
            }
            queue.offered += 1;
            let start = queue.busy_until.max(emission.at);
            // Up to a packet at random: a regular input would always lose the same one.
            let nanos = u64::from(self.packet_bytes) * 1_000_000_000 / queue.link.bytes_per_second;
            let jitter = Duration::from_nanos(u64::from(self.random.below(nanos as u32)));
            if start.saturating_since(emission.at) + jitter > queue.link.queue {
                queue.dropped += 1;
                continue;
            }
            let nanos = u64::from(self.packet_bytes) * 1_000_000_000 / queue.link.bytes_per_second;
            queue.busy_until = start + Duration::from_nanos(nanos);
            let arrival = queue.busy_until + queue.link.delay;
            queue.underway.push_back((arrival, emission.at, emission.channel, emission.cci));
        }
    }

    fn deliver(&mut self, now: Instant, link: usize) {
        let Some((_, sent, channel, cci)) = self.queues[link].underway.pop_front() else { return };
        for index in 0..self.receivers.len() {
            let receiver = &mut self.receivers[index];
            if receiver.link == link && receiver.hears(channel, sent) {
                receiver.bytes += u64::from(self.packet_bytes);
                receiver.on_packet(now, channel, cci);
                self.follow(index);
            }
        }
    }

    /// Joins and leaves what a receiver wants to.
    fn follow(&mut self, index: usize) {
        let (now, receiver) = (self.now, &mut self.receivers[index]);
        while let Some(change) = receiver.control.poll_membership() {
            match change {
                Membership::Join(ChannelId(channel)) => {
                    receiver.joined.insert(channel);
                    receiver.sequence.on_join(ChannelId(channel));
                    receiver.joins += 1;
                    let from = now + receiver.router.join_takes;
                    if !(receiver.router.grafts)(channel) {
                        continue;
                    }
                    let member = receiver.members.entry(channel).or_insert((from, None));
                    if member.1.is_some_and(|until| until > now) {
                        member.1 = None;
                    } else {
                        *member = (from, None);
                    }
                }
                Membership::Leave(ChannelId(channel)) => {
                    receiver.joined.remove(&channel);
                    receiver.sequence.on_leave(ChannelId(channel));
                    if let Some(member) = receiver.members.get_mut(&channel) {
                        member.1 = Some(now + receiver.router.leave_takes);
                    }
                }
            }
        }
    }
}

impl Receiver {
    /// Whether a packet that was sent then comes.
    fn hears(&self, channel: ChannelId, sent: Instant) -> bool {
        self.members
            .get(&channel.0)
            .is_some_and(|&(from, until)| from <= sent && until.is_none_or(|until| sent < until))
    }

    fn on_packet(&mut self, now: Instant, channel: ChannelId, cci: Cci) {
        let mut lost = Losses::default();
        if self.joined.contains(&channel.0) {
            lost = self.sequence.on_packet(now, channel, cci, 0);
        }
        let has_gap = self.sequence.has_gap();
        let packet = PacketSeen { channel, cci, congestion_experienced: false, lost, has_gap };
        self.control.on_packet(now, &packet);
    }

    /// Cuts the receiver off a channel without telling it.
    pub(crate) fn cut_off(&mut self, channel: u8) {
        self.members.remove(&channel);
    }

    /// Share of the seconds that were spent at levels that `is_right`.
    pub(crate) fn share_at(&self, is_right: impl Fn(u8) -> bool) -> f64 {
        let right = self.levels.iter().filter(|&&level| is_right(level)).count();
        right as f64 / self.levels.len().max(1) as f64
    }
}
