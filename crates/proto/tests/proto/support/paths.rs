//! A sender with an automatic rate, whose receivers are behind paths of their own.

use super::answers::{authentic, collection};
use super::cubic::Cubic;
use fontana_proto::report::{
    Authority, Expected, PacketCounts, RateConfig, ReportFacts, Reporter, ReporterConfig,
};
use fontana_proto::{
    Collection, CollectionConfig, Demand, Instant, Lacking, RepairBy, SenderProgress, SplitMix64,
};
use fontana_wire::{Feedback, ReceiverId, ReceiverLabel, ReceiverState, RollCall};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

pub(crate) const PACKET_BYTES: u32 = 1_500;
const STEP: Duration = Duration::from_millis(1);
/// Packets per second of 100 Mbit/s, of 20 and of 5.
pub(crate) const MOST: u32 = 8_333;
pub(crate) const TWENTY: f64 = 1_667.0;
pub(crate) const FIVE: f64 = 417.0;
/// Of the rate at the start.
pub(crate) const START: u32 = 167;

/// The path to a receiver: line errors, then a queue that is served at this rate.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) packets_per_second: f64,
    pub(crate) queue: usize,
    pub(crate) errors: f64,
    /// Packets take up to so long more, as over a radio link whose hosts sleep: they arrive in
    /// groups.
    pub(crate) wakes_every: Duration,
    /// A link on it has an MTU below packets of the content: one packet in so many is of control,
    /// and short. 0: all packets pass.
    pub(crate) short_every: u64,
}

#[derive(Clone)]
pub(crate) enum Packet {
    Data(u64),
    Call(Rc<RollCall>),
    /// Of the TCP flow.
    Rival,
}

pub(crate) struct Receiver {
    pub(crate) path: Path,
    reporter: Reporter,
    pub(crate) counts: PacketCounts,
    pub(crate) queue: VecDeque<Packet>,
    /// Packets that the path may pass on now.
    allowance: f64,
    /// The number that is expected next.
    next: u64,
    pub(crate) joins_at: Instant,
    /// It reports that no packet has arrived, and none was lost.
    pub(crate) counts_nothing: bool,
    pub(crate) answers: Vec<Instant>,
    /// A TCP flow through the same queue.
    pub(crate) rival: Option<Cubic>,
    /// Its process does not run. What has arrived waits in a buffer as long as its queue.
    pub(crate) is_stopped: bool,
    /// Its link is down.
    pub(crate) is_down: bool,
}

pub(crate) struct Session {
    now: Instant,
    delay: Duration,
    random: SplitMix64,
    collection: Collection,
    pub(crate) rate: f64,
    pub(crate) receivers: Vec<Receiver>,
    allowance: f64,
    /// Packets per second that there are to send, if the rate permits them.
    pub(crate) supply: f64,
    pub(crate) sent: u64,
    /// Packets that queues dropped, in all and before the rate first fell.
    pub(crate) dropped: u64,
    pub(crate) dropped_before: Option<u64>,
    down: VecDeque<(Instant, Packet)>,
    up: VecDeque<(Instant, Feedback, u64)>,
    /// Packets per second, every ten milliseconds.
    pub(crate) rates: Vec<f64>,
    /// Rate reports that have arrived in each second.
    pub(crate) rate_reports: Vec<u32>,
}

/// An automatic rate of 0.5 to 100 Mbit/s.
pub(crate) fn automatic() -> RateConfig {
    let bytes = |packets: u32| u64::from(packets) * u64::from(PACKET_BYTES);
    RateConfig {
        start: bytes(START),
        most: bytes(MOST),
        least: bytes(42),
        least_to_finish: bytes(42),
        packet_bytes: PACKET_BYTES,
        budget_per_second: 100,
        known: None,
        blind: Some(bytes(MOST)),
        max_receivers: 1 << 16,
    }
}

impl Session {
    pub(crate) fn new(paths: &[Path], delay: Duration, seed: u64) -> Self {
        Self::with(automatic(), paths, delay, seed)
    }

    pub(crate) fn with(rate: RateConfig, paths: &[Path], delay: Duration, seed: u64) -> Self {
        let mut config: CollectionConfig = collection(RepairBy::Nothing, Expected::Anyone, seed);
        config.collector.is_near = true;
        config.rate = Some(rate);
        let receiver = |(number, &path): (usize, &Path)| {
            let id = ReceiverId([number as u8; 16]);
            let config =
                ReporterConfig::new(id, ReceiverLabel::default(), seed << 8 | number as u64);
            Receiver {
                path,
                reporter: Reporter::new(ReporterConfig { reports_rate: true, ..config }),
                counts: PacketCounts::default(),
                queue: VecDeque::new(),
                allowance: 0.0,
                next: 0,
                joins_at: Instant::ZERO,
                counts_nothing: false,
                answers: Vec::new(),
                rival: None,
                is_stopped: false,
                is_down: false,
            }
        };
        let collection = Collection::new(config, Instant::ZERO);
        Self {
            now: Instant::ZERO,
            delay,
            random: SplitMix64::new(seed, 77),
            rate: f64::from(START),
            collection,
            receivers: paths.iter().enumerate().map(receiver).collect(),
            allowance: 0.0,
            supply: f64::INFINITY,
            sent: 0,
            dropped: 0,
            dropped_before: None,
            down: VecDeque::new(),
            up: VecDeque::new(),
            rates: Vec::new(),
            rate_reports: Vec::new(),
        }
    }

    fn send(&mut self) {
        let (now, at) = (self.now, self.now + self.delay);
        let progress = SenderProgress { is_sent: false, is_announcing: false, is_enough: false };
        self.collection.note_sent(self.sent * u64::from(PACKET_BYTES));
        while let Some(demand) = self.collection.poll(now, progress) {
            match demand {
                Demand::Call { call, .. } => {
                    self.collection.handle_signed(now, b"signed");
                    self.down.push_back((at, Packet::Call(Rc::new(*call))));
                }
                Demand::Rate(rate) => {
                    let rate = rate as f64 / f64::from(PACKET_BYTES);
                    if rate < self.rate {
                        self.dropped_before.get_or_insert(self.dropped);
                    }
                    self.rate = rate;
                }
                _ => {}
            }
        }
        self.allowance += self.rate.min(self.supply) * STEP.as_secs_f64();
        while self.allowance >= 1.0 {
            self.allowance -= 1.0;
            self.down.push_back((at, Packet::Data(self.sent)));
            self.sent += 1;
        }
    }

    fn receive(&mut self) {
        let now = self.now;
        while self.down.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, packet)) = self.down.pop_front() else { break };
            for receiver in self.receivers.iter_mut().filter(|it| it.joins_at <= now) {
                let short_every = receiver.path.short_every;
                let is_too_long = matches!(packet, Packet::Data(number)
                    if short_every > 0 && number % short_every > 0);
                receiver.counts.is_control_alone = short_every > 0;
                if is_too_long || receiver.is_down || self.random.unit() < receiver.path.errors {
                    continue;
                }
                if receiver.queue.len() < receiver.path.queue {
                    receiver.queue.push_back(packet.clone());
                } else {
                    self.dropped += 1;
                }
            }
        }
        for receiver in self.receivers.iter_mut().filter(|receiver| !receiver.is_stopped) {
            receiver.compete(now);
            receiver.serve(now);
            let packets = match receiver.counts_nothing {
                true => PacketCounts::default(),
                false => receiver.counts,
            };
            let facts = |_| ReportFacts { packets, ..ReportFacts::default() };
            while let Some(answer) = receiver.reporter.poll(now, facts) {
                receiver.answers.push(now);
                if self.random.unit() >= receiver.path.errors {
                    self.up.push_back((now + self.delay, answer.feedback, answer.counter));
                }
            }
        }
        while self.up.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, feedback, counter)) = self.up.pop_front() else { break };
            let second = (now.as_nanos() / 1_000_000_000) as usize;
            self.rate_reports.resize(second + 1, 0);
            self.rate_reports[second] += u32::from(matches!(feedback, Feedback::Rate(_)));
            let authentic = authentic(&feedback, counter, Authority::Group);
            self.collection.handle_opened(now, Some(&authentic));
        }
    }

    /// The first receiver does not run for a while.
    pub(crate) fn stop_one(&mut self, milliseconds: u64) {
        self.receivers[0].is_stopped = true;
        self.run_ms(milliseconds);
        let receiver = &mut self.receivers[0];
        receiver.is_stopped = false;
        receiver.reporter.handle_stall(self.now);
    }

    /// The first receiver has failed, and says so.
    pub(crate) fn end_one(&mut self) {
        let failed = ReceiverState::Failed { exit_code: 5 };
        self.receivers[0].reporter.end(self.now, failed);
    }

    /// The link of the first receiver is down for a while, or those of all.
    pub(crate) fn take_down(&mut self, milliseconds: u64, are_all: bool) {
        let count = if are_all { self.receivers.len() } else { 1 };
        self.receivers.iter_mut().take(count).for_each(|receiver| receiver.is_down = true);
        self.run_ms(milliseconds);
        self.receivers.iter_mut().for_each(|receiver| receiver.is_down = false);
    }

    pub(crate) fn run(&mut self, seconds: u64) {
        self.run_ms(1_000 * seconds);
    }

    pub(crate) fn run_ms(&mut self, milliseconds: u64) {
        let end = self.now + Duration::from_millis(milliseconds);
        while self.now < end {
            self.send();
            self.receive();
            self.now = self.now + STEP;
            if self.now.as_nanos().is_multiple_of(10_000_000) {
                self.rates.push(self.rate);
            }
        }
    }

    /// When the rate was first this, in seconds.
    pub(crate) fn reaches(&self, rate: f64) -> f64 {
        let at = self.rates.iter().position(|&it| it >= rate);
        at.map_or(f64::INFINITY, |at| at as f64 / 100.0)
    }

    /// The mean rate between these seconds.
    pub(crate) fn mean(&self, from: usize, to: usize) -> f64 {
        let rates = &self.rates[100 * from..100 * to];
        rates.iter().sum::<f64>() / rates.len() as f64
    }
}

impl Receiver {
    /// The TCP flow sends what its window permits.
    fn compete(&mut self, now: Instant) {
        let Some(rival) = &mut self.rival else { return };
        let wait = |queue: &VecDeque<Packet>| {
            Duration::from_secs_f64(queue.len() as f64 / self.path.packets_per_second)
        };
        for _ in 0..rival.send(now, wait(&self.queue)) {
            match self.queue.len() < self.path.queue {
                true => self.queue.push_back(Packet::Rival),
                false => rival.drop(now, wait(&self.queue)),
            }
        }
    }

    /// Passes on what its path carries.
    fn serve(&mut self, now: Instant) {
        let every = self.path.wakes_every;
        if every > STEP && !now.as_nanos().is_multiple_of(every.as_nanos() as u64) {
            return;
        }
        let served = self.path.packets_per_second * every.max(STEP).as_secs_f64();
        self.allowance = (self.allowance + served).min(served + 1.0);
        while self.allowance >= 1.0
            && let Some(packet) = self.queue.pop_front()
        {
            match packet {
                Packet::Data(number) => {
                    self.allowance -= 1.0;
                    self.counts.received += 1;
                    self.counts.latest = now;
                    let lost = if self.counts.received > 1 { number - self.next } else { 0 };
                    self.counts.lost += lost;
                    self.next = number + 1;
                    self.reporter.handle_packet(now, lost);
                }
                Packet::Rival => {
                    self.allowance -= 1.0;
                    self.rival.iter_mut().for_each(|rival| rival.deliver(now));
                }
                // Small packets.
                Packet::Call(call) => {
                    let nothing = |_: usize| Lacking::default();
                    self.reporter.handle_roll_call(now, &call, self.counts, nothing);
                }
            }
        }
    }
}

pub(crate) fn path(packets_per_second: f64, queue: usize, errors: f64) -> Path {
    Path { packets_per_second, queue, errors, wakes_every: Duration::ZERO, short_every: 0 }
}
