//! Rate control by reports: how fast the rate follows the slowest receiver, how much is lost, and
//! what lying receivers cause.

use fontana_proto::report::{
    Answer, CollectorConfig, PacketCounts, RateConfig, RateControl, ReportCollector, ReportFacts,
    Reporter, ReporterConfig,
};
use fontana_proto::{Instant, Lacking, SplitMix64};
use fontana_wire::{
    Feedback, Hash, InstanceId, RateReport, ReceiverId, ReceiverLabel, ReceiverState, RollCall, Tsi,
};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

const PACKET_BYTES: u32 = 1_000;
/// Packets that a queue holds.
const QUEUE: u32 = 50;
/// Rate reports that are wanted per second.
const BUDGET: u32 = 100;
/// Four standard deviations more than that.
const MOST_REPORTS: u32 = 140;
const STEP: Duration = Duration::from_millis(1);

/// The path to a receiver: line errors, then a queue that is served at this rate.
#[derive(Clone, Copy)]
struct Path {
    packets_per_second: f64,
    errors: f64,
}

const FAILED: ReceiverState = ReceiverState::Failed { exit_code: 1 };

struct Receiver {
    id: ReceiverId,
    path: Path,
    reporter: Reporter,
    counts: PacketCounts,
    /// Packets in its queue, with their numbers or roll calls.
    queue: VecDeque<Packet>,
    /// Packets that the path may pass on now.
    allowance: f64,
    /// The number that is expected next.
    next: u64,
    /// It claims that almost everything is lost.
    lies: bool,
}

#[derive(Clone)]
enum Packet {
    Data(u64),
    Call(Rc<RollCall>),
}

#[derive(Debug)]
struct Second {
    /// Packets per second.
    rate: f64,
    sent: u64,
    /// Packets that the slowest receiver has lost.
    lost: u64,
    reports: u32,
}

struct Conditions {
    /// Packets per second.
    start: u32,
    most: u32,
    least: u32,
    paths: Vec<Path>,
    liars: usize,
    delay: Duration,
    known: bool,
    seed: u64,
}

impl Conditions {
    /// One receiver of `slow` packets per second, and others of 100.
    fn like_figure_3(start: u32, receivers: usize, errors: f64) -> Self {
        let path =
            |number| Path { packets_per_second: if number == 0 { 40.0 } else { 100.0 }, errors };
        Self {
            start,
            most: 1_000,
            least: 1,
            paths: (0..receivers).map(path).collect(),
            liars: 0,
            delay: Duration::from_millis(50),
            known: false,
            seed: 1,
        }
    }
}

struct Session {
    conditions: Conditions,
    now: Instant,
    random: SplitMix64,
    collector: ReportCollector,
    control: RateControl,
    crowd: Vec<Receiver>,
    allowance: f64,
    sent: u64,
    reports: u32,
    down: VecDeque<(Instant, Packet)>,
    up: VecDeque<(Instant, RateReport, u64)>,
    /// The state at the end of each second.
    seconds: Vec<Second>,
    slow: Vec<ReceiverId>,
}

impl Session {
    fn new(conditions: Conditions) -> Self {
        let seed = conditions.seed;
        let collector = CollectorConfig::new(
            InstanceId([5; 16]),
            Tsi(5),
            Hash([3; 32]),
            "10.0.0.7:40007".parse().unwrap(),
            seed,
        );
        let bytes = |packets: u32| u64::from(packets) * u64::from(PACKET_BYTES);
        let known = conditions.known.then_some(conditions.paths.len() as u32);
        let rate = RateConfig {
            start: bytes(conditions.start),
            most: bytes(conditions.most),
            least: bytes(conditions.least),
            least_to_finish: bytes(1),
            packet_bytes: PACKET_BYTES,
            budget_per_second: BUDGET,
            known,
            blind: None,
            max_receivers: 1 << 16,
        };
        let receiver = |(number, &path): (usize, &Path)| {
            let mut id = [9; 16];
            id[..8].copy_from_slice(&number.to_be_bytes());
            let (id, label) = (ReceiverId(id), ReceiverLabel::default());
            let config = ReporterConfig::new(id, label, seed << 32 | number as u64);
            Receiver {
                id,
                path,
                reporter: Reporter::new(ReporterConfig { reports_rate: true, ..config }),
                counts: PacketCounts::default(),
                queue: VecDeque::new(),
                allowance: 0.0,
                next: 0,
                lies: number >= conditions.paths.len() - conditions.liars,
            }
        };
        Self {
            now: Instant::ZERO,
            random: SplitMix64::new(seed, 77),
            collector: ReportCollector::new(collector, Instant::ZERO),
            control: RateControl::new(rate, Instant::ZERO),
            crowd: conditions.paths.iter().enumerate().map(receiver).collect(),
            allowance: 0.0,
            sent: 0,
            reports: 0,
            down: VecDeque::new(),
            up: VecDeque::new(),
            seconds: Vec::new(),
            slow: Vec::new(),
            conditions,
        }
    }

    fn rate(&self) -> f64 {
        self.control.rate() as f64 / f64::from(PACKET_BYTES)
    }

    fn send(&mut self) {
        let (now, at) = (self.now, self.now + self.conditions.delay);
        self.control.note_sent(self.sent * u64::from(PACKET_BYTES));
        self.control.handle_timeout(now);
        if self.control.wants_call() {
            self.collector.want_call();
        }
        if let Some(mut call) = self.collector.poll_roll_call(now, 0) {
            call.rate = Some(self.control.call(
                now,
                self.collector.long_round_trip(),
                Some(self.collector.head_count()),
            ));
            self.down.push_back((at, Packet::Call(Rc::new(call))));
        }
        self.allowance += self.rate() * STEP.as_secs_f64();
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
            for receiver in &mut self.crowd {
                let is_lost = self.random.unit() < receiver.path.errors;
                if !is_lost && receiver.queue.len() < QUEUE as usize {
                    receiver.queue.push_back(packet.clone());
                }
            }
        }
        for receiver in &mut self.crowd {
            // Without jitter, the same packets would find a full queue in each cycle.
            let jitter = 2.0 * self.random.unit();
            receiver.serve(now, jitter);
            let packets = receiver.counts;
            let facts = |_| ReportFacts { packets, ..ReportFacts::default() };
            while let Some(due) = receiver.reporter.poll(now, facts) {
                if let Some((report, counter)) = receiver.report(due)
                    && self.random.unit() >= receiver.path.errors
                {
                    self.up.push_back((now + self.conditions.delay, report, counter));
                }
            }
        }
    }

    fn collect(&mut self) {
        while self.up.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, report, counter)) = self.up.pop_front() else { break };
            self.reports += 1;
            self.collector.measure(self.now, &Feedback::Rate(report));
            let taken = self.control.handle_report(self.now, &report, None, counter);
            if let Ok(Some(slow)) = taken {
                self.slow.push(slow.receiver);
            }
        }
    }

    fn run_until(&mut self, seconds: u64) {
        let end = Instant::ZERO + Duration::from_secs(seconds);
        while self.now < end {
            self.send();
            self.receive();
            self.collect();
            self.now = self.now + STEP;
            if self.now.as_nanos().is_multiple_of(1_000_000_000) {
                self.seconds.push(Second {
                    rate: self.rate(),
                    sent: self.sent,
                    lost: self.crowd[0].counts.lost,
                    reports: self.reports,
                });
            }
        }
    }

    /// Packets per second between these seconds.
    fn mean(&self, from: usize, to: usize) -> f64 {
        (self.seconds[to - 1].sent - self.seconds[from - 1].sent) as f64 / (to - from) as f64
    }
}

impl Receiver {
    /// Passes on what its path carries.
    fn serve(&mut self, now: Instant, jitter: f64) {
        let served = self.path.packets_per_second * STEP.as_secs_f64() * jitter;
        self.allowance = (self.allowance + served).min(1.5);
        while self.allowance >= 1.0
            && let Some(packet) = self.queue.pop_front()
        {
            match packet {
                Packet::Data(number) => {
                    self.allowance -= 1.0;
                    self.counts.received += 1;
                    self.counts.lost += number - self.next;
                    self.next = number + 1;
                }
                // Small packets.
                Packet::Call(call) => {
                    let nothing = |_| Lacking::default();
                    self.reporter.handle_roll_call(now, &call, self.counts, nothing);
                }
            }
        }
    }

    fn report(&self, answer: Answer) -> Option<(RateReport, u64)> {
        let Feedback::Rate(mut report) = answer.feedback else { return None };
        if self.lies {
            (report.received, report.lost) = (report.received / 20, report.received + report.lost);
        }
        Some((report, answer.counter))
    }
}

/// The share of the packets that the slowest receiver loses between these seconds.
fn lost_share(session: &Session, from: usize, to: usize) -> f64 {
    let (from, to) = (&session.seconds[from - 1], &session.seconds[to - 1]);
    (to.lost - from.lost) as f64 / (to.sent - from.sent) as f64
}

#[test]
fn a_rate_five_times_too_high_falls_within_three_seconds() {
    for (receivers, known) in [(100, false), (4, true), (1_000, false)] {
        for seed in 1..=3 {
            let figure = Conditions::like_figure_3(200, receivers, 0.0);
            let mut session = Session::new(Conditions { seed, known, ..figure });
            session.run_until(20);
            let rates: Vec<_> = session.seconds.iter().map(|second| second.rate).collect();
            assert!(rates[2] <= 110.0, "{receivers}, seed {seed}: {rates:?}");
            // Of a thousand receivers, the slowest one may report some rounds later.
            assert!(receivers > 100 || rates[11] <= 45.0, "{receivers}, seed {seed}: {rates:?}");
        }
    }
}

#[test]
fn a_rate_a_fifth_of_the_slowest_path_rises_within_half_a_minute() {
    for receivers in [1, 4, 100] {
        for seed in 1..=3 {
            let figure = Conditions::like_figure_3(8, receivers, 0.0);
            let mut session = Session::new(Conditions { seed, ..figure });
            session.run_until(60);
            let mean = session.mean(30, 60);
            assert!((38.0..=46.0).contains(&mean), "{receivers}, seed {seed}: {mean}");
        }
    }
}

#[test]
fn trials_of_a_higher_rate_lose_little() {
    let mut all = Vec::new();
    for (receivers, start) in [(1, 42), (4, 200), (100, 200), (100, 8)] {
        for seed in 1..=3 {
            let figure = Conditions::like_figure_3(start, receivers, 0.0);
            let mut session = Session::new(Conditions { seed, known: true, ..figure });
            session.run_until(250);
            let (mean, lost) = (session.mean(50, 250), lost_share(&session, 50, 250));
            println!("{receivers} from {start}, seed {seed}: {mean:.1}, {lost:.3} lost");
            assert!((38.0..=42.0).contains(&mean), "{receivers}, seed {seed}: {mean}");
            assert!(lost <= 0.035, "{receivers}, seed {seed}: {lost}");
            all.push(lost);
        }
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(mean <= 0.02, "{mean}: {all:?}");
}

#[test]
fn line_errors_do_not_slow_the_session_down() {
    for (errors, receivers) in [(0.01, 100), (0.05, 1), (0.05, 4), (0.05, 100)] {
        for seed in 1..=3 {
            let figure = Conditions::like_figure_3(42, receivers, errors);
            let mut session = Session::new(Conditions { seed, known: true, ..figure });
            session.run_until(250);
            let mean = session.mean(200, 250);
            println!("{errors}, {receivers} receivers, seed {seed}: {mean:.1}");
            assert!(mean >= 0.9 * 42.0, "{errors}, {receivers}, seed {seed}: {mean}");
        }
    }
}

/// One receiver claims that almost everything is lost. The rate does not fall below the least one,
/// and the receiver is named, once.
#[test]
fn a_receiver_that_lies_lowers_the_rate_to_the_least_one_at_most() {
    let figure = Conditions::like_figure_3(42, 10, 0.0);
    let mut session = Session::new(Conditions { least: 30, liars: 1, known: true, ..figure });
    session.run_until(100);
    let (liar, mean) = (session.crowd.last().unwrap().id, session.mean(50, 100));
    assert!((30.0..=44.0).contains(&mean), "{mean}");
    assert_eq!(session.slow, [liar]);
}

/// A receiver that must finish, and that the least rate is too fast for. The rate follows it below
/// the least one until it has finished.
#[test]
fn the_rate_follows_a_receiver_that_must_finish_until_it_has() {
    for must_finish in [false, true] {
        let figure = Conditions::like_figure_3(42, 10, 0.0);
        let mut session = Session::new(Conditions { least: 60, known: true, ..figure });
        let slow = session.crowd[0].id;
        if must_finish {
            session.control.must_finish(slow);
        }
        session.run_until(100);
        let (mean, lost) = (session.mean(50, 100), lost_share(&session, 50, 100));
        if must_finish {
            assert!((38.0..=42.0).contains(&mean), "{mean}");
            assert!(lost <= 0.03, "{lost}");
            assert_eq!(session.slow, []);
        } else {
            assert!((60.0..=103.0).contains(&mean), "{mean}");
            assert!(lost >= 0.3, "{lost}");
            assert_eq!(session.slow, [slow]);
        }
        let now = session.now;
        session.crowd[0].reporter.end(now, FAILED);
        session.control.has_finished(&slow);
        session.run_until(130);
        let mean = session.mean(115, 130);
        assert!((90.0..=105.0).contains(&mean), "{must_finish}: {mean}");
    }
}

/// When all others have finished, a receiver below the least rate is sent to at that rate.
#[test]
fn the_rate_falls_to_the_least_one_when_only_slow_receivers_are_left() {
    let figure = Conditions::like_figure_3(42, 10, 0.0);
    let mut session = Session::new(Conditions { least: 60, known: true, ..figure });
    session.run_until(50);
    let before = session.mean(30, 50);
    assert!((90.0..=110.0).contains(&before), "{before}");
    let now = session.now;
    session.crowd[1..].iter_mut().for_each(|receiver| receiver.reporter.end(now, FAILED));
    session.run_until(80);
    let after = session.mean(70, 80);
    assert!((59.0..=61.0).contains(&after), "{after}");
}

/// The same share of packets is lost, by a full queue or by a line. The first depends on the rate.
#[test]
fn a_queue_that_drops_5_percent_lowers_the_rate_and_a_line_that_loses_5_percent_does_not() {
    for receivers in [1, 4, 100] {
        for seed in 1..=3 {
            let with = |start, errors, seconds| {
                let figure = Conditions::like_figure_3(start, receivers, errors);
                let mut session = Session::new(Conditions { seed, known: true, ..figure });
                session.run_until(seconds);
                session
            };
            // 42.1 packets a second, of which the queue passes on 40; and twice as many.
            for start in [42, 84] {
                let queue = with(start, 0.0, 200);
                let (mean, lost) = (queue.mean(60, 200), lost_share(&queue, 60, 200));
                println!("{receivers} from {start}, seed {seed}: {mean:.1}, {lost:.3} lost");
                assert!(mean <= 42.0, "{receivers} from {start}, seed {seed}: {mean}");
                assert!(lost <= 0.04, "{receivers} from {start}, seed {seed}: {lost}");
            }
            // Of these, the line loses 5 %, and the queue passes on the rest.
            let line = with(40, 0.05, 200);
            let mean = line.mean(120, 200);
            println!("{receivers} with line errors, seed {seed}: {mean:.1}");
            assert!(mean >= 38.0, "{receivers}, seed {seed}: {mean}");
            // Line errors do not hide a queue that drops half of what is left.
            let both = with(84, 0.05, 120);
            let mean = both.mean(60, 120);
            println!("{receivers} with both, seed {seed}: {mean:.1}");
            assert!(mean <= 45.0, "{receivers} with both, seed {seed}: {mean}");
        }
    }
}

/// All paths of a crowd are full at once, because the rate has doubled. Weights double at most, so
/// that one second has twice the reports that the budget allows.
#[test]
fn a_crowd_that_is_congested_at_once_keeps_to_the_budget() {
    for (start, known) in [(8, false), (8, true), (42, false), (200, true)] {
        for seed in 1..=2 {
            let figure = Conditions::like_figure_3(start, 2_000, 0.0);
            let mut session = Session::new(Conditions { seed, known, ..figure });
            session.run_until(40);
            let mut reports: Vec<_> = session.seconds.iter().map(|it| it.reports).collect();
            (1..reports.len()).rev().for_each(|second| reports[second] -= reports[second - 1]);
            println!("from {start}, seed {seed}: {reports:?}");
            reports.sort_unstable();
            let (most, others) = reports.split_last().unwrap();
            let others = others.last().unwrap();
            assert!(*most <= 2 * BUDGET, "from {start}, seed {seed}: {reports:?}");
            assert!(*others <= MOST_REPORTS, "from {start}, seed {seed}: {reports:?}");
        }
    }
}

#[test]
fn few_of_many_receivers_report() {
    for seed in 1..=3 {
        let figure = Conditions::like_figure_3(42, 2_000, 0.01);
        let mut session = Session::new(Conditions { seed, ..figure });
        session.run_until(40);
        let reports: Vec<_> = session.seconds.iter().map(|second| second.reports).collect();
        let last = reports[39] - reports[19];
        assert!(last <= 20 * 130, "seed {seed}: {last} in 20 s");
    }
}

/// Without a report, the rate is halved after a minute, and every 20 s from then on.
#[test]
fn without_reports_the_rate_is_halved() {
    let figure = Conditions::like_figure_3(42, 1, 1.0);
    let mut session = Session::new(Conditions { known: true, ..figure });
    session.run_until(103);
    let rates = [58, 62, 79, 82, 103].map(|second: usize| session.seconds[second - 1].rate);
    assert_eq!(rates, [42.0, 21.0, 21.0, 10.5, 5.25]);
}

/// Processes come and go for longer than a sender remembers them.
#[test]
fn receivers_that_have_gone_give_way_to_others() {
    let config = RateConfig {
        start: 100_000,
        most: 1_000_000,
        least: 10_000,
        least_to_finish: 10_000,
        packet_bytes: 1_000,
        budget_per_second: 100,
        known: Some(2),
        blind: None,
        max_receivers: 2,
    };
    let mut control = RateControl::new(config, Instant::ZERO);
    let mut now = Instant::ZERO;
    let tell = |control: &mut RateControl, now, number: u8| {
        let call = control.call(now, Duration::from_millis(1), Some(1));
        let report = RateReport {
            receiver: ReceiverId([number; 16]),
            round: call.round,
            echo: fontana_wire::RollCallEcho::default(),
            window_us: 100_000,
            received: 10,
            lost: 0,
            weight: 1,
        };
        control.handle_report(now, &report, None, call.round.into()).map(|_| ())
    };
    assert_eq!([1, 2, 3].map(|it| tell(&mut control, now, it).is_ok()), [true, true, false]);
    for _ in 0..200 {
        now = now + Duration::from_secs(1);
        let _ = control.call(now, Duration::from_millis(1), Some(1));
        control.handle_timeout(now);
        let _ = tell(&mut control, now, 2);
    }
    assert_eq!([3, 4].map(|it| tell(&mut control, now, it).is_ok()), [true, false]);
}
