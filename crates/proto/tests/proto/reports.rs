//! Simulated receivers that report: how many reports arrive in a second, how long it takes until
//! all are known, and what attackers can make receivers send.

use crate::support::answers::{collection, report};
use crate::support::plain::{CLOCK, Plain};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{EncodingId, FecScheme, Oti};
use fontana_proto::report::{
    Answer, CollectorConfig, Expected, ExpectedReceiver, ExpectedState, IgnoredReport,
    PacketCounts, ReceiverStatus, ReportCollector, ReportFacts, Reporter, ReporterConfig,
    RollCallGate, RollCallRefusal,
};
use fontana_proto::{
    Endpoint, Instant, Lacking, Output, RepairBy, SendDone, SendJob, SendObject, Sender,
    SenderConfig, SplitMix64,
};
use fontana_wire::{
    Feedback, FeedbackDatagram, Fingerprint, Hash, InstanceId, OpenedFeedback, Packet, RateCall,
    ReceiverId, ReceiverLabel, ReceiverReport, ReceiverState, RepairCall, RollCall, RollCallError,
    RollCallList, SealId, SecretKey, Toi, Tsi,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

const BUDGET: u32 = 200;
const MANIFEST: Hash = Hash([3; 32]);

fn instance() -> InstanceId {
    InstanceId([5; 16])
}

fn collector_address() -> SocketAddr {
    "10.0.0.7:40007".parse().unwrap()
}

fn config(expected: Expected, seed: u64) -> CollectorConfig {
    CollectorConfig {
        instance: instance(),
        tsi: Tsi(5),
        manifest: MANIFEST,
        collector: collector_address(),
        expected,
        budget_per_second: BUDGET,
        // That of a packet of 1 500 bytes.
        list_capacity: RollCall::capacity(1388, None).unwrap(),
        max_receivers: 1 << 20,
        trusts_unauthenticated: false,
        is_near: false,
        seed,
    }
}

fn receiver_id(number: u64) -> ReceiverId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id[8..].copy_from_slice(&number.to_be_bytes());
    ReceiverId(id)
}

/// What receivers lack that request nothing.
fn nothing(_: usize) -> Lacking {
    Lacking::default()
}

const NO_PACKETS: PacketCounts =
    PacketCounts { received: 0, lost: 0, latest: Instant::ZERO, is_control_alone: false };
const COMPLETE: ReceiverState = ReceiverState::Complete { manifest: MANIFEST };

fn opened(report: &ReceiverReport, counter: u64, key: Option<&SecretKey>) -> OpenedFeedback {
    let feedback = Feedback::Report(report.clone());
    let bytes = feedback.emit(SealId::from(instance()), counter, key, None::<&Plain>);
    FeedbackDatagram::parse(&bytes).unwrap().open(None::<&Plain>).unwrap()
}

/// Handles a report that arrives from an address of its receiver's own.
fn take(
    collector: &mut ReportCollector,
    now: Instant,
    opened: &OpenedFeedback,
) -> Result<Option<ReceiverStatus>, IgnoredReport> {
    let Feedback::Report(report) = &opened.feedback else { panic!("no report") };
    let [.., a, b, c, d] = report.receiver.0;
    take_from(collector, now, opened, [a, b, c, d].into())
}

fn take_from(
    collector: &mut ReportCollector,
    now: Instant,
    opened: &OpenedFeedback,
    from: IpAddr,
) -> Result<Option<ReceiverStatus>, IgnoredReport> {
    let by = collector.authority(opened, from);
    collector.handle_report(now, opened, by)
}

/// What happened in a simulated session.
struct Run {
    /// Reports sent in each second.
    per_second: Vec<u32>,
    /// When the first report arrived.
    first_at: Option<Duration>,
    /// Time from which all receivers are known.
    all_known_at: Option<Duration>,
    roll_calls: u32,
    roll_call_bytes: usize,
}

enum Event {
    Poll(usize),
    Call(Rc<RollCall>),
    Report(Box<OpenedFeedback>),
}

/// `crowd` receivers that finish within a second. Roll calls and reports take 10 ms, or on one
/// network 1 ms, and each is lost with probability `loss` at each receiver.
fn simulate(crowd: usize, loss: f64, seed: u64, limit: Duration) -> Run {
    simulate_in(crowd, loss, seed, limit, false)
}

fn simulate_in(crowd: usize, loss: f64, seed: u64, limit: Duration, is_near: bool) -> Run {
    let mut random = SplitMix64::new(seed, 1);
    let mut unit = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let start = Instant::ZERO;
    let config = CollectorConfig { is_near, ..config(Expected::Anyone, seed) };
    let mut collector = ReportCollector::new(config, start);
    let mut reporters: Vec<_> = (0..crowd as u64)
        .map(|number| {
            let (id, label) = (receiver_id(number), ReceiverLabel::default());
            Reporter::new(ReporterConfig::new(id, label, seed << 32 | number))
        })
        .collect();
    let finished: Vec<_> = (0..crowd).map(|_| start + Duration::from_secs_f64(unit())).collect();
    let delay = Duration::from_millis(if is_near { 1 } else { 10 });
    let (mut queue, mut events, mut serial) = (BinaryHeap::new(), BTreeMap::new(), 0_u64);
    let mut push = |queue: &mut BinaryHeap<_>, events: &mut BTreeMap<u64, Event>, at, event| {
        serial += 1;
        queue.push(Reverse((at, serial)));
        events.insert(serial, event);
    };
    let mut run = Run {
        per_second: Vec::new(),
        first_at: None,
        all_known_at: None,
        roll_calls: 0,
        roll_call_bytes: 0,
    };
    let key = SecretKey::from_seed(&[7; 32]);
    let mut finals = 0;
    loop {
        let next_event: Option<Instant> = queue.peek().map(|Reverse((at, _))| *at);
        let next_call = collector.poll_timeout();
        let now = next_event.map_or(next_call, |at| at.min(next_call));
        if now > start + limit {
            return run;
        }
        if now == next_call {
            let unix_ms = CLOCK + now.as_nanos() / 1_000_000;
            if let Some(call) = collector.poll_roll_call(now, unix_ms) {
                run.roll_calls += 1;
                run.roll_call_bytes += call.emit(&key).len();
                push(&mut queue, &mut events, now + delay, Event::Call(Rc::new(call)));
            }
            continue;
        }
        let Some(Reverse((_, serial))) = queue.pop() else { continue };
        match events.remove(&serial).unwrap() {
            Event::Call(call) => {
                for (number, reporter) in reporters.iter_mut().enumerate() {
                    if reporter.is_known() || unit() < loss {
                        continue;
                    }
                    reporter.handle_roll_call(now, &call, NO_PACKETS, nothing);
                    if let Some(due) = reporter.poll_timeout() {
                        push(&mut queue, &mut events, due.max(now), Event::Poll(number));
                    }
                }
            }
            Event::Poll(number) => {
                let reporter = &mut reporters[number];
                let is_finished = finished[number] <= now;
                if is_finished {
                    reporter.end(now, COMPLETE);
                }
                let Some(due) = reporter.poll(now, |_| ReportFacts::default()) else { continue };
                assert_eq!(due.to, collector_address());
                let second = (now.as_nanos() / 1_000_000_000) as usize;
                run.per_second.resize(run.per_second.len().max(second + 1), 0);
                run.per_second[second] += 1;
                let Feedback::Report(report) = due.feedback else { panic!("{due:?}") };
                if unit() >= loss {
                    let opened = Box::new(opened(&report, due.counter, None));
                    push(&mut queue, &mut events, now + delay, Event::Report(opened));
                }
            }
            Event::Report(report) => {
                run.first_at.get_or_insert(Duration::from_nanos(now.as_nanos()));
                let news = take(&mut collector, now, &report).unwrap();
                finals += usize::from(news.is_some_and(|status| status.report.state.is_final()));
                // The summary looks at all receivers.
                if run.all_known_at.is_none()
                    && finals == crowd
                    && collector.summary().complete == crowd as u64
                {
                    run.all_known_at = Some(Duration::from_nanos(now.as_nanos()));
                }
            }
        }
    }
}

/// Checks the bounds of the claim for one seed.
fn check_crowd(crowd: usize, loss: f64, seed: u64) {
    let budget = f64::from(BUDGET);
    // 1.3 N / R and four intervals of half a second.
    let allowed = Duration::from_secs_f64(1.3 * crowd as f64 / budget + 2.0);
    let run = simulate(crowd, loss, seed, allowed + Duration::from_secs(5));
    for (second, &count) in run.per_second.iter().enumerate() {
        let most = budget + 4.0 * budget.sqrt();
        assert!(f64::from(count) <= most, "seed {seed}: {count} reports in second {second}");
    }
    for (start, five) in run.per_second.windows(5).enumerate() {
        let sum: u32 = five.iter().sum();
        assert!(f64::from(sum) <= 5.5 * budget, "seed {seed}: {sum} in 5 s from {start}");
    }
    let at = run.all_known_at.unwrap_or_else(|| panic!("seed {seed}: not all known"));
    assert!(at <= allowed, "seed {seed}: all of {crowd} known after {at:?}, allowed {allowed:?}");
    // A session of 1 000 packets a second has 1 % for them.
    let seconds = (allowed + Duration::from_secs(5)).as_secs_f64();
    let packets = f64::from(run.roll_calls);
    assert!(packets / seconds <= 10.0, "seed {seed}: {packets} roll calls in {seconds} s");
    assert!(run.roll_call_bytes <= 1388 * run.roll_calls as usize);
}

#[test]
fn ten_thousand_receivers_are_known_within_the_time_and_the_budget() {
    for seed in 1..=2 {
        check_crowd(10_000, 0.05, seed);
    }
}

/// The same, for all seeds of the claim.
#[test]
#[ignore = "half a minute"]
fn ten_thousand_receivers_are_known_for_every_seed() {
    for seed in 1..=20 {
        check_crowd(10_000, 0.05, seed);
    }
}

#[test]
fn few_receivers_are_known_in_seconds() {
    for crowd in [1, 4, 50] {
        for seed in 1..=20 {
            let run = simulate(crowd, 0.05, seed, Duration::from_secs(30));
            let at = run.all_known_at.unwrap_or_else(|| panic!("{crowd}, seed {seed}"));
            assert!(at < Duration::from_secs(20), "{crowd}, seed {seed}: {at:?}");
            // Then they are silent.
            let last = run.per_second.len();
            assert!(last <= 25, "{crowd}, seed {seed}: a report in second {last}");
        }
    }
}

/// Receivers that lose one of the roll calls that confirm their end need no fourth one.
#[test]
fn three_roll_calls_confirm_a_final_state() {
    let mut collector = ReportCollector::new(config(Expected::Anyone, 1), Instant::ZERO);
    let complete = report(receiver_id(1), "", COMPLETE, 1);
    take(&mut collector, Instant::ZERO, &opened(&complete, 0, None)).unwrap();
    let listed = (0..20).map(|second| {
        let now = Instant::ZERO + Duration::from_secs(second);
        let call = collector.poll_roll_call(now, CLOCK).unwrap();
        matches!(call.list, RollCallList::Known(list) if !list.is_empty())
    });
    assert_eq!(listed.filter(|&is_listed| is_listed).count(), 3);
}

/// The number is quartered every 50 ms until a report arrives, whether one receiver is there or
/// a hundred thousand.
#[test]
fn on_one_network_the_first_report_arrives_within_six_tenths_of_a_second() {
    for (crowd, seeds) in [(1, 50), (3, 50), (20, 20), (1_000, 5), (10_000, 3), (100_000, 1)] {
        for seed in 1..=seeds {
            let run = simulate_in(crowd, 0.0, seed, Duration::from_secs(3), true);
            let first = run.first_at.unwrap();
            assert!(first <= Duration::from_millis(600), "{crowd}, seed {seed}: {first:?}");
            let most = run.per_second.iter().max().unwrap();
            assert!(*most <= 4 * BUDGET, "{crowd}, seed {seed}: {most} in a second");
        }
    }
}

/// A receiver on two networks says to the sender on each of them what arrives of its packets.
#[test]
fn what_arrives_is_reported_to_each_sender_by_itself() {
    let config = ReporterConfig::new(receiver_id(1), ReceiverLabel::default(), 1);
    let mut reporter = Reporter::new(ReporterConfig { reports_rate: true, ..config });
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let counts = |number: u8, ms: u64| PacketCounts {
        received: u64::from(number) * ms,
        lost: ms / 10,
        ..PacketCounts::default()
    };
    let mut reported = BTreeMap::<u8, Vec<f64>>::new();
    for ms in 0..10_000 {
        if ms % 500 == 0 {
            for number in [1, 2] {
                let (round, window_ms) = (1 + (ms / 500) as u32, 400);
                let rate = Some(RateCall { round, since: round, window_ms, divisor: 1 });
                let instance = InstanceId([number; 16]);
                let call = RollCall { instance, head_count: 2, rate, ..call(1 + ms / 500, CLOCK) };
                reporter.handle_roll_call(at(ms), &call, counts(number, ms), nothing);
            }
        }
        let facts = |instance: InstanceId| ReportFacts {
            packets: counts(instance.0[0], ms),
            ..ReportFacts::default()
        };
        if let Some(Answer { instance, feedback: Feedback::Rate(report), .. }) =
            reporter.poll(at(ms), facts)
        {
            let per_ms = f64::from(report.received) / f64::from(report.window_us) * 1e3;
            reported.entry(instance.0[0]).or_default().push(per_ms);
        }
    }
    for number in [1_u8, 2] {
        let rates = &reported[&number];
        assert!(rates.len() >= 5, "{reported:?}");
        assert!(rates.iter().all(|rate| (rate / f64::from(number) - 1.0).abs() < 0.05));
    }
}

/// What a receiver on two networks requests until a time, in milliseconds, and of which sender. The
/// second one is ten times as fast for five seconds, sends nothing then, and asks no longer from
/// `asks_until` on.
fn requested_of_two(asks_until: u64, until: u64) -> Vec<(u64, u8)> {
    let config = ReporterConfig::new(receiver_id(1), ReceiverLabel::default(), 1);
    let mut reporter = Reporter::new(config);
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let lacking = |_| Lacking { may_lack_more: true, ..Lacking::default() };
    let mut requested = Vec::new();
    for ms in 0..until {
        if ms % 500 == 0 {
            let all = [(1, ms), (2, 10 * ms.min(5_000))];
            for (number, received) in all.into_iter().take(if ms < asks_until { 2 } else { 1 }) {
                let repair = RepairCall {
                    round: 1 + (ms / 500) as u32,
                    window_us: 100_000,
                    receivers: 1,
                    is_closed: false,
                    pending: Vec::new(),
                    last: None,
                };
                let call = RollCall {
                    instance: InstanceId([number; 16]),
                    head_count: 2,
                    repair: Some(repair),
                    ..call(1 + ms / 500, CLOCK)
                };
                let counts = PacketCounts { received, ..PacketCounts::default() };
                reporter.handle_roll_call(at(ms), &call, counts, lacking);
            }
        }
        if let Some(Answer { instance, feedback: Feedback::Request(_), .. }) =
            reporter.poll(at(ms), |_| ReportFacts::default())
        {
            requested.push((ms, instance.0[0]));
        }
    }
    requested
}

/// A receiver requests of the sender that was faster, also when this one has sent everything, and
/// of the other one two seconds after it has asked last, or when what it has sent is forgotten.
#[test]
fn symbols_are_requested_of_the_faster_sender() {
    for (asks_until, ranges) in [
        (10_000, [(2_000..10_000, 2), (12_000..20_000, 1)]),
        (70_000, [(2_000..45_000, 2), (52_000..70_000, 1)]),
    ] {
        let requested = requested_of_two(asks_until, 70_000);
        for (range, sender) in ranges {
            let of: Vec<u8> =
                requested.iter().filter(|(ms, _)| range.contains(ms)).map(|&(_, of)| of).collect();
            assert!(of.iter().all(|&of| of == sender), "{sender}: {requested:?}");
            assert!(of.len() as u64 + 2 >= (range.end - range.start) / 500, "{requested:?}");
        }
    }
}

/// Where few report, no receiver waits for a turn to say that it has ended, or for a second roll
/// call.
#[test]
fn of_few_receivers_one_that_ends_says_so_at_once_and_one_roll_call_tells_it_that_this_is_known() {
    for (head_count, is_at_once) in [(3, true), (1_000, false)] {
        let id = receiver_id(1);
        let mut reporter = Reporter::new(ReporterConfig::new(id, ReceiverLabel::default(), 1));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let late = RollCall { position: u32::MAX, head_count, round: 1, ..call(1, CLOCK) };
        reporter.handle_roll_call(at(0), &late, NO_PACKETS, nothing);
        reporter.end(at(100), COMPLETE);
        assert_eq!(reporter.poll_timeout(), is_at_once.then_some(at(100)));
        let report = reporter.poll(at(100), |_| ReportFacts::default());
        assert_eq!(report.is_some(), is_at_once);
        assert_eq!(reporter.poll(at(100), |_| ReportFacts::default()), None, "once");
        let list = RollCallList::Known(vec![Fingerprint::of_receiver(2, &id)]);
        let listing = RollCall { serial: 2, salt: 2, list, ..late.clone() };
        reporter.handle_roll_call(at(120), &listing, NO_PACKETS, nothing);
        assert_eq!(reporter.is_known(), is_at_once);
        // One that has ended before it is asked.
        let mut reporter = Reporter::new(ReporterConfig::new(id, ReceiverLabel::default(), 1));
        reporter.end(at(0), COMPLETE);
        reporter.handle_roll_call(at(10), &late, NO_PACKETS, nothing);
        assert_eq!(reporter.poll(at(10), |_| ReportFacts::default()).is_some(), is_at_once);
    }
}

#[test]
fn a_crowd_that_appears_at_once_raises_the_number_at_once() {
    let mut collector = ReportCollector::new(config(Expected::Count(4), 1), Instant::ZERO);
    let first = collector.poll_roll_call(Instant::ZERO, CLOCK).unwrap();
    assert_eq!(first.head_count, 4);
    // 10 000 receivers a second, each once.
    let mut now = Instant::ZERO;
    let mut called_after = None;
    for number in 0..2 * u64::from(BUDGET) + 1 {
        now = Instant::ZERO + Duration::from_micros(100 * number);
        let report = report(receiver_id(number), "", ReceiverState::Receiving, first.round);
        take(&mut collector, now, &opened(&report, 0, None)).unwrap();
        if collector.poll_timeout() <= now {
            called_after = Some(number);
            break;
        }
    }
    assert_eq!(called_after, Some(2 * u64::from(BUDGET)), "as soon as it is twice the budget");
    let call = collector.poll_roll_call(now, CLOCK).unwrap();
    // 401 in the first 40 ms of a window of a second.
    assert!((8_000..14_000).contains(&call.head_count), "{}", call.head_count);
    assert!(call.window_ms > 40_000, "{}", call.window_ms);
}

/// A signed roll call of the publisher, for tests of what receivers obey.
fn call(serial: u64, issued_unix_ms: u64) -> RollCall {
    RollCall {
        instance: instance(),
        tsi: Tsi(5),
        serial,
        issued_unix_ms,
        collector: collector_address(),
        round: serial as u32,
        position: 0,
        window_ms: 1000,
        head_count: 1000,
        known: 0,
        salt: serial,
        list: RollCallList::Known(Vec::new()),
        repair: None,
        rate: None,
    }
}

/// What receivers send, by destination.
type Sent = BTreeMap<SocketAddr, u32>;

/// Delivers symbols at their times to 1 000 receivers. `times` are milliseconds since [`CLOCK`].
fn deliver(publisher: &SecretKey, symbols: &[(u64, Vec<u8>)], seconds: u64) -> Sent {
    let mut receivers: Vec<_> = (0..1000)
        .map(|number| {
            let gate = RollCallGate::new(publisher.public_key(), Tsi(5));
            let id = receiver_id(number);
            (gate, Reporter::new(ReporterConfig::new(id, ReceiverLabel::default(), number)))
        })
        .collect();
    let mut sent = Sent::new();
    for ms in 0..seconds * 1000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        for (_, symbol) in symbols.iter().filter(|(at, _)| *at == ms) {
            for (gate, reporter) in &mut receivers {
                if let Ok(call) = gate.check(now, Some(CLOCK + ms), symbol) {
                    reporter.handle_roll_call(now, &call, NO_PACKETS, nothing);
                }
            }
        }
        for (_, reporter) in &mut receivers {
            while let Some(due) = reporter.poll(now, |_| ReportFacts::default()) {
                *sent.entry(due.to).or_default() += 1;
            }
        }
    }
    sent
}

#[test]
fn forged_and_replayed_roll_calls_make_receivers_send_nothing() {
    let (publisher, attacker) = (SecretKey::from_seed(&[7; 32]), SecretKey::from_seed(&[8; 32]));
    let victim: SocketAddr = "192.0.2.66:53".parse().unwrap();
    let honest = call(1, CLOCK).emit(&publisher);
    // The victim's address in an honest roll call; a window for one receiver; another key.
    let mut moved = call(2, CLOCK + 100);
    moved.collector = victim;
    let mut forged = moved.emit(&publisher);
    let length = forged.len();
    forged[length - 64..].copy_from_slice(&honest[honest.len() - 64..]);
    let mut at_once = honest.clone();
    at_once[79..83].copy_from_slice(&1_u32.to_be_bytes());
    at_once[75..79].copy_from_slice(&1_u32.to_be_bytes());
    let of_attacker = moved.emit(&attacker);
    let old = call(9, CLOCK - 61_000).emit(&publisher);
    let early = call(9, CLOCK + 90_000).emit(&publisher);
    let symbols: Vec<_> = (0..20)
        .flat_map(|at| {
            [&forged, &at_once, &of_attacker, &old, &early].map(|s| (at * 50, s.clone()))
        })
        .collect();
    assert_eq!(deliver(&publisher, &symbols, 2), Sent::new());
    // With honest roll calls beside them, and each of these repeated ten times: one report in each
    // round of each receiver, to the collector.
    let rounds: Vec<_> = (0..3)
        .flat_map(|round| {
            let bytes = call(10 + round, CLOCK + 1100 * round).emit(&publisher);
            (0..10).map(move |again| (1100 * round + 20 * again, bytes.clone()))
        })
        .collect();
    let sent = deliver(&publisher, &[symbols, rounds].concat(), 4);
    assert_eq!(sent.keys().collect::<Vec<_>>(), [&collector_address()]);
    assert!((2990..=3000).contains(&sent[&collector_address()]), "{sent:?}");
}

#[test]
fn a_gate_says_why_it_refuses() {
    let publisher = SecretKey::from_seed(&[7; 32]);
    let mut gate = RollCallGate::new(publisher.public_key(), Tsi(5));
    let mut check = |after_ms: u64, call: &RollCall| {
        let now = Instant::ZERO + Duration::from_millis(after_ms);
        gate.check(now, Some(CLOCK + after_ms), &call.emit(&publisher)).map(|_| ())
    };
    let other = RollCall { tsi: Tsi(6), ..call(1, CLOCK) };
    assert_eq!(check(0, &other), Err(RollCallRefusal::OtherSession(Tsi(6))));
    for address in [
        "239.1.2.3:9",
        "255.255.255.255:9",
        "0.0.0.0:9",
        "10.0.0.7:0",
        "[ff02::1]:9",
        "[::ffff:10.0.0.7]:9",
    ] {
        let collector = address.parse().unwrap();
        let bad = RollCall { collector, ..call(1, CLOCK) };
        assert_eq!(check(0, &bad), Err(RollCallRefusal::Collector(collector)));
    }
    assert_eq!(check(0, &call(3, CLOCK)), Ok(()));
    assert_eq!(check(10, &call(3, CLOCK)), Err(RollCallRefusal::Replayed));
    assert_eq!(check(10, &call(2, CLOCK)), Err(RollCallRefusal::Replayed));
    assert_eq!(check(10, &call(4, CLOCK - 60_000)), Err(RollCallRefusal::NotNow { seconds: 60 }));
    assert_eq!(check(10, &call(4, CLOCK)), Ok(()));
    // Four runs at the same time, and in the place of one that is silent never an earlier one.
    let run = |own: u8, issued| RollCall { instance: InstanceId([own; 16]), ..call(1, issued) };
    for own in 6..9 {
        assert_eq!(check(200, &run(own, CLOCK - 100)), Ok(()), "mirrors have clocks of their own");
    }
    assert_eq!(check(200, &run(9, CLOCK + 200)), Err(RollCallRefusal::OtherSenders));
    assert_eq!(check(5100, &run(9, CLOCK - 1)), Err(RollCallRefusal::Replayed));
    assert_eq!(check(5100, &run(9, CLOCK + 100)), Ok(()));
    assert_eq!(check(11_000, &call(5, CLOCK + 50)), Err(RollCallRefusal::Replayed));
    let later = |serial| call(serial, CLOCK + 11_000);
    let checked = (100..300).filter(|&serial| check(11_000, &later(serial)).is_ok()).count();
    assert_eq!(checked, 60, "signatures in one second");
    let attacker = SecretKey::from_seed(&[8; 32]);
    let bytes = call(900, CLOCK + 13_000).emit(&attacker);
    let now = Instant::ZERO + Duration::from_secs(13);
    let refused = gate.check(now, Some(CLOCK + 13_000), &bytes);
    assert_eq!(refused, Err(RollCallRefusal::Invalid(RollCallError::OtherSigner)));
}

/// A host that has no key repeats roll calls of four runs that have ended.
#[test]
fn old_runs_that_are_repeated_keep_no_new_one_from_being_heard() {
    let publisher = SecretKey::from_seed(&[7; 32]);
    let mut gate = RollCallGate::new(publisher.public_key(), Tsi(5));
    let mut check = |ms: u64, own: u8, serial, issued| {
        let call = RollCall { instance: InstanceId([own; 16]), ..call(serial, issued) };
        let now = Instant::ZERO + Duration::from_millis(ms);
        gate.check(now, Some(CLOCK + ms), &call.emit(&publisher)).map(|_| ())
    };
    let old = |own: u8| CLOCK - 10_000 - 1_000 * u64::from(own);
    for own in 1..5 {
        assert_eq!(check(0, own, 1, old(own)), Ok(()));
    }
    for own in 1..5 {
        assert_eq!(check(900, own, 2, old(own) + 500), Ok(()));
    }
    assert_eq!(check(1_000, 9, 1, CLOCK + 1_000), Ok(()));
    for own in 1..5 {
        let is_displaced = own == 4;
        let expected = if is_displaced { Err(RollCallRefusal::OtherSenders) } else { Ok(()) };
        assert_eq!(check(1_800, own, 3, old(own) + 900), expected, "{own}");
    }
    assert_eq!(check(2_000, 9, 2, CLOCK + 2_000), Ok(()));
}

#[test]
fn a_gate_says_once_that_the_publishers_clock_differs() {
    let publisher = SecretKey::from_seed(&[7; 32]);
    let mut gate = RollCallGate::new(publisher.public_key(), Tsi(5));
    let mut check = |unix_ms: Option<u64>, serial, key: &SecretKey| {
        gate.check(Instant::ZERO, unix_ms, &call(serial, CLOCK).emit(key)).map(|_| ())
    };
    let day = 86_400_000;
    let attacker = SecretKey::from_seed(&[8; 32]);
    let forged = Err(RollCallRefusal::Invalid(RollCallError::OtherSigner));
    assert_eq!(check(Some(CLOCK + day), 1, &attacker), forged);
    let differs = Err(RollCallRefusal::ClocksDiffer { seconds: 86_400 });
    assert_eq!(check(Some(CLOCK + day), 1, &publisher), differs);
    let not_now = Err(RollCallRefusal::NotNow { seconds: 86_400 });
    assert_eq!(check(Some(CLOCK + day), 2, &publisher), not_now);
    // Those for a collector of the ticket are obeyed from then on, in their order.
    let mut knowing = RollCallGate::new(publisher.public_key(), Tsi(5))
        .with_collectors(vec![call(1, CLOCK).collector]);
    let mut knows = |serial, key: &SecretKey| {
        let symbol = call(serial, CLOCK).emit(key);
        knowing.check(Instant::ZERO, Some(CLOCK + day), &symbol).map(|_| ())
    };
    assert_eq!(knows(1, &attacker), forged);
    assert_eq!(knows(1, &publisher), differs);
    assert_eq!((knows(2, &publisher), knows(3, &publisher)), (Ok(()), Ok(())));
    assert_eq!(knows(2, &publisher), Err(RollCallRefusal::Replayed));
    assert_eq!(knows(4, &attacker), forged);
    // A clock that is known to be wrong refuses nothing; what was sent before is still old.
    assert_eq!(check(None, 3, &attacker), forged);
    assert_eq!(check(None, 3, &publisher), Ok(()));
    assert_eq!(check(None, 3, &publisher), Err(RollCallRefusal::Replayed));
    assert_eq!(check(None, 2, &publisher), Err(RollCallRefusal::Replayed));
}

#[test]
fn whatever_is_asked_a_receiver_sends_at_most_its_rate() {
    let mut reporter =
        Reporter::new(ReporterConfig::new(receiver_id(1), ReceiverLabel::default(), 1));
    let mut sent = Vec::new();
    for ms in 0..10_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        // A new round every 10 ms, with a window of 1 ms.
        if ms % 10 == 0 {
            reporter.handle_roll_call(
                now,
                &RollCall { window_ms: 1, ..call(ms, CLOCK) },
                NO_PACKETS,
                nothing,
            );
        }
        sent.extend(reporter.poll(now, |_| ReportFacts::default()).map(|_| ms));
    }
    assert!((35..=41).contains(&sent.len()), "{}", sent.len());
    assert!(sent.windows(5).all(|five| five[4] - five[0] >= 1000), "{sent:?}");
    // Without roll calls, nothing after two seconds.
    assert!(
        reporter.poll_timeout().is_none_or(|due| due < Instant::ZERO + Duration::from_secs(12))
    );
    assert_eq!(
        reporter.poll(Instant::ZERO + Duration::from_secs(13), |_| ReportFacts::default()),
        None
    );
}

/// The run of the version before has gone when a follower completes the next one.
#[test]
fn a_follower_does_not_wait_for_the_run_of_the_version_before() {
    let id = receiver_id(1);
    let config = ReporterConfig::new(id, ReceiverLabel::default(), 1);
    let mut reporter = Reporter::new(ReporterConfig { follows: true, ..config });
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let before = RollCall { head_count: 1, ..call(1, CLOCK) };
    reporter.end(at(0), COMPLETE);
    reporter.handle_roll_call(at(0), &before, NO_PACKETS, nothing);
    // Its roll calls are still valid, and it is told of the next version's end in vain.
    reporter.begin();
    let run = InstanceId([6; 16]);
    let next = RollCall { instance: run, head_count: 1, ..call(2, CLOCK) };
    reporter.handle_roll_call(at(500), &next, NO_PACKETS, nothing);
    reporter.end(at(600), COMPLETE);
    while reporter.poll(at(600), |_| ReportFacts::default()).is_some() {}
    let list = RollCallList::Known(vec![Fingerprint::of_receiver(3, &id)]);
    let listing = RollCall { serial: 3, salt: 3, list, ..next };
    reporter.handle_roll_call(at(700), &listing, NO_PACKETS, nothing);
    assert!(reporter.is_known() && reporter.waits_until().is_none());
}

#[test]
fn a_receiver_stops_when_two_roll_calls_list_it_after_its_final_report() {
    let id = receiver_id(1);
    let mut reporter = Reporter::new(ReporterConfig::new(id, ReceiverLabel::default(), 1));
    let listing = |serial: u64| {
        let list = RollCallList::Known(vec![Fingerprint::of_receiver(serial, &id)]);
        RollCall { round: 1, list, ..call(serial, CLOCK) }
    };
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    reporter.end(at(0), COMPLETE);
    reporter.handle_roll_call(at(0), &listing(1), NO_PACKETS, nothing);
    reporter.handle_roll_call(at(1), &listing(2), NO_PACKETS, nothing);
    assert!(!reporter.is_known(), "it has not reported");
    assert!(reporter.poll(at(1900), |_| ReportFacts::default()).is_some());
    reporter.handle_roll_call(at(1900), &listing(3), NO_PACKETS, nothing);
    reporter.handle_roll_call(at(1910), &listing(3), NO_PACKETS, nothing);
    assert!(!reporter.is_known(), "one salt");
    reporter.handle_roll_call(at(1920), &listing(4), NO_PACKETS, nothing);
    assert!(reporter.is_known());
    reporter.handle_roll_call(at(1930), &RollCall { round: 2, ..listing(5) }, NO_PACKETS, nothing);
    assert_eq!(
        (reporter.poll_timeout(), reporter.poll(at(3500), |_| ReportFacts::default())),
        (None, None)
    );
    // Another run of the sender knows nothing of it.
    let other = RollCall { instance: InstanceId([6; 16]), ..call(6, CLOCK) };
    reporter.handle_roll_call(at(3600), &other, NO_PACKETS, nothing);
    assert!(!reporter.is_known() && reporter.poll(at(5000), |_| ReportFacts::default()).is_some());
}

fn named(labels: &[(&str, Option<&SecretKey>)]) -> Expected {
    let receiver = |&(label, key): &(&str, Option<&SecretKey>)| ExpectedReceiver {
        label: label.parse().unwrap(),
        key: key.map(SecretKey::public_key),
    };
    Expected::Named(labels.iter().map(receiver).collect())
}

/// Any member can report in the name of another.
#[test]
fn a_counter_that_a_receiver_does_not_reach_does_not_silence_it() {
    let mut collector = ReportCollector::new(config(Expected::Count(1), 1), Instant::ZERO);
    let mut tell = |serial, state, counter| {
        let mut report = report(receiver_id(1), "a", state, 1);
        report.echo.serial = serial;
        take(&mut collector, Instant::ZERO, &opened(&report, counter, None)).map(|_| ())
    };
    tell(1, ReceiverState::Receiving, 5).unwrap();
    tell(1, ReceiverState::Receiving, u64::MAX - 1).unwrap();
    assert_eq!(tell(1, COMPLETE, 6), Err(IgnoredReport::Replayed));
    tell(2, COMPLETE, 7).unwrap();
    assert_eq!(tell(1, ReceiverState::Receiving, 5), Err(IgnoredReport::Replayed), "repeated");
    assert_eq!(tell(2, COMPLETE, 7), Err(IgnoredReport::Replayed), "repeated");
}

#[test]
fn only_one_process_without_contradiction_makes_a_name_complete() {
    let labels = [("a", None), ("b", None), ("c", None), ("d", None), ("e", None)];
    let mut collector = ReportCollector::new(config(named(&labels), 1), Instant::ZERO);
    let mut tell = |number, label: &str, state, counter| {
        let report = report(receiver_id(number), label, state, 1);
        take(&mut collector, Instant::ZERO, &opened(&report, counter, None)).map(|_| ())
    };
    tell(1, "a", ReceiverState::Receiving, 0).unwrap();
    tell(1, "a", COMPLETE, 1).unwrap();
    assert!(tell(1, "a", ReceiverState::Failed { exit_code: 5 }, 1).is_err(), "a replayed counter");
    tell(2, "b", COMPLETE, 0).unwrap();
    tell(3, "b", COMPLETE, 0).unwrap();
    tell(4, "c", COMPLETE, 0).unwrap();
    tell(4, "c", ReceiverState::Receiving, 1).unwrap();
    tell(5, "d", ReceiverState::Complete { manifest: Hash([9; 32]) }, 0).unwrap();
    tell(6, "stranger", COMPLETE, 0).unwrap();
    let summary = collector.summary();
    let missing: Vec<_> = summary.missing.iter().map(|it| (it.label.as_str(), it.state)).collect();
    let expected = [
        ("b", ExpectedState::Contradictory),
        ("c", ExpectedState::Contradictory),
        ("d", ExpectedState::OtherContent),
        ("e", ExpectedState::NeverHeard),
    ];
    assert_eq!(missing, expected);
    assert_eq!((summary.known, summary.complete, summary.ignored), (6, 2, 1));
    assert!(!summary.is_as_expected());
}

/// A host that was started again has another number, and its name.
#[test]
fn of_several_processes_of_a_name_the_one_that_still_reports_counts_and_then_the_last() {
    let mut collector = ReportCollector::new(config(named(&[("a", None)]), 1), Instant::ZERO);
    let failed = ReceiverState::Failed { exit_code: 130 };
    let mut state_after = |seconds, number, state, counter| {
        let report = report(receiver_id(number), "a", state, 1);
        let now = Instant::ZERO + Duration::from_secs(seconds);
        take(&mut collector, now, &opened(&report, counter, None)).unwrap();
        collector.summary().missing.first().map(|missing| missing.state)
    };
    assert_eq!(state_after(0, 1, failed, 0), Some(ExpectedState::Reported(failed)));
    let receiving = ReceiverState::Receiving;
    assert_eq!(state_after(4, 2, receiving, 0), Some(ExpectedState::Contradictory), "too early");
    assert_eq!(state_after(5, 2, receiving, 1), Some(ExpectedState::Reported(receiving)));
    assert_eq!(state_after(6, 2, COMPLETE, 2), None);
    let third = state_after(11, 3, receiving, 0);
    assert_eq!(third, Some(ExpectedState::Reported(receiving)), "the second has said its last");
}

/// At most eight processes of a name are remembered: those that have ended give way.
#[test]
fn a_receiver_that_is_started_again_and_again_is_known_each_time() {
    let mut collector = ReportCollector::new(config(named(&[("a", None)]), 1), Instant::ZERO);
    for start in 0..20 {
        let now = Instant::ZERO + Duration::from_secs(6 * start);
        for (counter, state) in [(0, ReceiverState::Receiving), (1, COMPLETE)] {
            let report = report(receiver_id(start), "a", state, 1);
            take(&mut collector, now, &opened(&report, counter, None)).unwrap();
        }
        let summary = collector.summary();
        assert!(summary.is_as_expected(), "start {start}");
        assert!(summary.known <= 8, "{summary:?}");
    }
}

#[test]
fn with_a_key_only_its_signature_counts_and_a_restarted_process_replaces_the_first() {
    let (key, other) = (SecretKey::from_seed(&[1; 32]), SecretKey::from_seed(&[2; 32]));
    let expected = named(&[("a", Some(&key))]);
    let mut collector = ReportCollector::new(config(expected, 1), Instant::ZERO);
    let forged = report(receiver_id(9), "a", COMPLETE, 1);
    for signer in [None, Some(&other)] {
        assert!(take(&mut collector, Instant::ZERO, &opened(&forged, 0, signer)).is_err());
    }
    let first = report(receiver_id(1), "a", ReceiverState::Failed { exit_code: 5 }, 1);
    take(&mut collector, Instant::ZERO, &opened(&first, 0, Some(&key))).unwrap();
    assert!(!collector.summary().is_as_expected());
    let again = ReceiverReport { state: ReceiverState::Receiving, ..first };
    take(&mut collector, Instant::ZERO, &opened(&again, 1, Some(&key))).unwrap();
    assert_eq!(collector.summary().missing[0].state, ExpectedState::Contradictory);
    let second =
        ReceiverReport { started_unix_ms: CLOCK + 1, ..report(receiver_id(2), "a", COMPLETE, 1) };
    take(&mut collector, Instant::ZERO, &opened(&second, 0, Some(&key))).unwrap();
    let summary = collector.summary();
    assert!(summary.is_as_expected());
    assert_eq!((summary.known, summary.complete, summary.ignored), (1, 1, 2));
}

/// Reports that the user does not trust do not change what a stream sends.
#[test]
fn receivers_are_followed_whose_reports_count_until_they_are_final_or_silent() {
    let key = SecretKey::from_seed(&[9; 32]);
    let mut collectors = [true, false].map(|trusts_unauthenticated| {
        let config = config(named(&[("a", Some(&key))]), 1);
        let config = CollectorConfig { trusts_unauthenticated, ..config };
        ReportCollector::new(config, Instant::ZERO)
    });
    let mut tell = |number, label, state, counter, key: Option<&SecretKey>| {
        let report = report(receiver_id(number), label, state, 1);
        collectors.each_mut().map(|collector| {
            take(collector, Instant::ZERO, &opened(&report, counter, key)).unwrap();
            collector.is_followed()
        })
    };
    assert_eq!(tell(1, "stranger", ReceiverState::Receiving, 0, None), [true, false]);
    assert_eq!(tell(2, "a", ReceiverState::Receiving, 0, Some(&key)), [true, true]);
    assert_eq!(tell(2, "a", COMPLETE, 1, Some(&key)), [true, false]);
    // Two more, which then say nothing.
    assert_eq!(tell(3, "stranger", ReceiverState::Receiving, 0, None), [true, false]);
    let restarted = ReceiverReport {
        started_unix_ms: CLOCK + 1,
        ..report(receiver_id(4), "a", ReceiverState::Receiving, 1)
    };
    for mut collector in collectors {
        take(&mut collector, Instant::ZERO, &opened(&restarted, 0, Some(&key))).unwrap();
        let is_silent = |ms: &u64| {
            let now = Instant::ZERO + Duration::from_millis(*ms);
            collector.poll_roll_call(now, CLOCK);
            !collector.is_followed()
        };
        let silent = (0..60_000).step_by(20).find(is_silent);
        assert!(silent.is_some_and(|ms| (2_000..30_000).contains(&ms)), "{silent:?}");
    }
}

/// A sender that asks for nothing more than that goes quiet while the files get their names.
#[test]
fn receivers_need_nothing_when_they_have_all_symbols() {
    let config = CollectorConfig { trusts_unauthenticated: true, ..config(Expected::Anyone, 1) };
    let mut collector = ReportCollector::new(config, Instant::ZERO);
    let mut tell = |number, counter, permille, symbols_lacking| {
        let report = report(receiver_id(number), "", ReceiverState::Receiving, 1);
        let report = ReceiverReport { permille, symbols_lacking, ..report };
        take(&mut collector, Instant::ZERO, &opened(&report, counter, None)).unwrap();
        collector.needs_nothing()
    };
    assert!(!tell(1, 0, 0, 0), "it does not know of what it lacks none");
    assert!(!tell(1, 1, 999, 1));
    assert!(tell(1, 2, 1_000, 0));
    assert!(!tell(2, 0, 500, 10), "another one");
    assert!(tell(2, 1, 1_000, 0));
    assert!(!tell(1, 3, 999, 1), "a block was corrupt");
}

#[test]
fn a_count_is_reached_by_that_many_complete_receivers() {
    let mut collector = ReportCollector::new(config(Expected::Count(2), 1), Instant::ZERO);
    for (number, is_enough) in [(1, false), (2, true)] {
        let report = report(receiver_id(number), "", COMPLETE, 1);
        take(&mut collector, Instant::ZERO, &opened(&report, 0, None)).unwrap();
        assert_eq!(collector.summary().is_as_expected(), is_enough);
    }
    let anyone = ReportCollector::new(config(Expected::Anyone, 1), Instant::ZERO);
    assert!(!anyone.summary().is_as_expected(), "no one is expected");
}

#[test]
fn a_roll_call_is_the_next_packet_of_channel_0_once() {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
    let layout = Oti { transfer_length: 50_000, symbol_size: 1000, scheme }.layout().unwrap();
    let sender = Sender::new(SenderConfig {
        peak_window: Duration::ZERO,
        ..SenderConfig::new(
            Tsi(5),
            vec![SendObject { toi: Toi(1), layout, source_pass: true }],
            1_000_000,
            1,
        )
    });
    let expected = Expected::Count(1);
    let mut sender =
        sender.with_collection(collection(RepairBy::Nothing, expected, 1), Instant::ZERO);
    let signer = SecretKey::from_seed(&[7; 32]);
    let (mut packets, mut header, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for ms in 0..700 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        sender.handle_timeout(now);
        while let Some(output) = sender.poll_output(now, &mut header) {
            match output {
                Output::Job(SendJob::Prepare { batch, .. }) => {
                    sender.handle_done(now, SendDone::Prepared { batch });
                }
                Output::Job(SendJob::Sign(call)) => {
                    let call = call.emit(&signer);
                    said.push((ms, call.clone()));
                    sender.handle_done(now, SendDone::Signed(call));
                }
                Output::Transmit { .. } => packets.push((ms, std::mem::take(&mut header))),
                _ => {}
            }
        }
    }
    assert!(packets.len() > 100, "{}", packets.len());
    let calls: Vec<_> = packets.iter().filter(|(_, bytes)| RollCall::may_be(bytes)).collect();
    assert_eq!((calls.len(), said.len()), (2, 2));
    for ((sent, datagram), (issued, bytes)) in calls.into_iter().zip(&said) {
        assert!((*issued..issued + 5).contains(sent), "{sent}");
        let packet = Packet::parse(datagram).unwrap();
        let payload = packet.payload(EncodingId::NO_CODE).unwrap().unwrap();
        assert_eq!(payload.symbol, *bytes);
    }
}
