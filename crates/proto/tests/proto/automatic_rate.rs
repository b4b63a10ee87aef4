//! An automatic rate: from a low one to what the slowest path carries, or to the highest one.

use crate::support::paths::{FIVE, MOST, PACKET_BYTES, START, Session, TWENTY, automatic, path};
use fontana_proto::Instant;
use fontana_proto::report::RateControl;
use fontana_wire::{RateReport, ReceiverId, RollCallEcho};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

/// From 2 to 100 Mbit/s, whatever the lines lose, and however far the receivers are.
#[test]
fn a_free_path_has_the_highest_rate_soon() {
    for (errors, delay_ms, most_s) in
        [(0.0, 1, 1.6), (0.0, 40, 2.5), (0.01, 1, 1.6), (0.1, 1, 2.5), (0.3, 1, 6.0)]
    {
        for receivers in [1, 3, 10, 40] {
            for seed in 1..=5 {
                let paths = vec![path(20_000.0, 1_000, errors); receivers];
                let mut session = Session::new(&paths, delay_ms * MILLISECOND, seed);
                session.run(10);
                let at = session.reaches(f64::from(MOST) - 1.0);
                let case = format!("{errors}, {delay_ms} ms, {receivers}, seed {seed}");
                // Of a crowd, few answer each round.
                let most_s = if receivers > 20 { 2.0 * most_s } else { most_s };
                assert!(at <= most_s, "{case}: {at} s");
                let mean = session.mean(5, 10) / f64::from(MOST);
                assert!(mean >= 0.9, "{case}: {mean}");
            }
        }
    }
}

/// Links of 20, 20, 20 and 5 Mbit/s with queues of 50 packets, and longer ones.
#[test]
fn the_rate_stops_at_the_slowest_link_before_much_is_dropped() {
    for queue in [13, 50, 400, 2_700] {
        for seed in 1..=5 {
            let links = [TWENTY, TWENTY, TWENTY, FIVE].map(|rate| path(rate, queue, 0.0));
            let mut session = Session::new(&links, MILLISECOND, seed);
            session.run(30);
            let case = format!("queues of {queue}, seed {seed}");
            let dropped = session.dropped_before.unwrap_or(0);
            assert!(dropped <= 200, "{case}: {dropped}");
            let mean = session.mean(3, 30) / FIVE;
            assert!((0.85..1.05).contains(&mean), "{case}: {mean}");
            let share = session.dropped as f64 / session.sent as f64;
            assert!(share <= 0.04, "{case}: {share}");
        }
    }
}

/// Without a report the rate is that for receivers that cannot report. A receiver that comes later,
/// behind a slow link, has what its link carries at once.
#[test]
fn a_sender_that_hears_no_receiver_sends_at_the_highest_rate() {
    let mut session = Session::new(&[path(FIVE, 50, 0.0)], MILLISECOND, 1);
    session.receivers[0].joins_at = Instant::ZERO + Duration::from_secs(10);
    session.run(20);
    assert!(session.mean(0, 2) <= f64::from(START), "{:?}", session.rates);
    assert!(session.reaches(f64::from(MOST) - 1.0) <= 3.2);
    assert!(session.mean(4, 10) >= f64::from(MOST) - 1.0);
    let mean = session.mean(13, 20) / FIVE;
    assert!((0.85..1.1).contains(&mean), "{mean}");
}

/// A receiver that reports and says nothing is not waited for while the rate doubles.
#[test]
fn a_receiver_that_counts_nothing_does_not_hold_the_rate() {
    let mut session = Session::new(&[path(1e9, 50, 0.0), path(1e9, 50, 0.0)], MILLISECOND, 1);
    session.receivers[0].counts_nothing = true;
    session.run(10);
    assert!(session.reaches(f64::from(MOST) - 1.0) <= 5.0, "{:?}", session.mean(9, 10));
}

/// While the rate doubles few receivers send at most 24 datagrams a second, for three seconds, and
/// at most four after that.
#[test]
fn receivers_send_little() {
    for delay_ms in [1, 20] {
        let links = [path(20_000.0, 100, 0.0), path(FIVE, 50, 0.0)];
        let mut session = Session::new(&links, delay_ms * MILLISECOND, 1);
        session.run(12);
        for receiver in &session.receivers {
            let in_second = |at: Instant| {
                let second = at..at + Duration::from_secs(1);
                receiver.answers.iter().filter(|at| second.contains(at)).count()
            };
            let most = receiver.answers.iter().map(|&at| in_second(at)).max();
            assert!(most <= Some(24), "{most:?}");
            let late =
                receiver.answers.iter().filter(|it| **it >= Instant::ZERO + Duration::from_secs(5));
            let most = late.map(|&at| in_second(at)).max();
            assert!(most <= Some(4), "{most:?}");
        }
    }
}

/// More than twenty receivers are drawn: all paths of a crowd are full at once, and they keep to
/// the budget of a hundred rate reports a second.
#[test]
fn a_crowd_keeps_to_the_budget() {
    for seed in 1..=3 {
        let mut session = Session::new(&[path(FIVE, 50, 0.0); 200], 5 * MILLISECOND, seed);
        session.run(20);
        let most = session.rate_reports.iter().copied().max().unwrap_or(0);
        assert!(most <= 240, "seed {seed}: {:?}", session.rate_reports);
        let late: u32 = session.rate_reports[10..].iter().sum();
        assert!(late <= 10 * 140, "seed {seed}: {:?}", session.rate_reports);
        let mean = session.mean(5, 20) / FIVE;
        assert!((0.8..1.1).contains(&mean), "seed {seed}: {mean}");
    }
}

/// What lines lose at the start says nothing of a receiver that joins later: a path that carries
/// 70 % of the rate loses as much.
#[test]
fn what_lines_lose_at_the_start_is_forgotten() {
    let narrow = 0.7 * f64::from(MOST);
    let mut paths = vec![path(20_000.0, 1_000, 0.3); 10];
    paths.push(path(narrow, 50, 0.0));
    let mut session = Session::new(&paths, MILLISECOND, 1);
    session.receivers[10].joins_at = Instant::ZERO + Duration::from_secs(20);
    session.run(30);
    assert!(session.mean(10, 20) >= 0.9 * f64::from(MOST));
    let mean = session.mean(25, 30) / narrow;
    assert!((0.8..1.1).contains(&mean), "{mean}");
}

/// A line that has lost 20 % and loses nothing any more is as any other: when its path then carries
/// 80 % of the rate, the rate falls to that.
#[test]
fn what_a_line_loses_is_forgotten_when_it_loses_less_than_half_of_it() {
    let narrow = 0.8 * f64::from(MOST);
    for seed in 1..=3 {
        let mut session = Session::new(&[path(20_000.0, 1_000, 0.2)], MILLISECOND, seed);
        session.run(10);
        assert!(session.mean(5, 10) >= 0.9 * f64::from(MOST), "seed {seed}: it is a line error");
        session.receivers[0].path.errors = 0.0;
        session.run(10);
        session.receivers[0].path = path(narrow, 50, 0.0);
        session.run(20);
        let mean = session.mean(30, 40) / narrow;
        assert!((0.8..1.1).contains(&mean), "seed {seed}: {mean}");
    }
}

/// A path that carried a third and carries everything now: when another's line begins to lose, and
/// the rate of before is set again, the third of then does not count.
#[test]
fn what_a_path_carried_is_forgotten_when_it_carries_more() {
    for seed in 1..=5 {
        let wide = path(20_000.0, 1_000, 0.0);
        let mut session = Session::new(&[wide, path(FIVE, 50, 0.0)], MILLISECOND, seed);
        session.run(10);
        session.receivers[1].path = wide;
        session.run(60);
        let mean = session.mean(65, 70) / f64::from(MOST);
        assert!(mean >= 0.9, "seed {seed}: {mean}");
        session.receivers[0].path.errors = 0.15;
        session.run(6);
        let mean = session.mean(72, 76) / f64::from(MOST);
        assert!(mean >= 0.65, "seed {seed}: {mean}");
    }
}

/// Receivers that are gone at once: within five seconds the rate is far below the highest one, and
/// it is that again soon after they are back.
#[test]
fn a_rate_without_reports_falls_and_rises_again() {
    for seed in 1..=3 {
        let paths = [path(20_000.0, 1_000, 0.0); 3];
        let mut session = Session::new(&paths, MILLISECOND, seed);
        session.run(4);
        assert!(session.rate > f64::from(MOST) - 1.0, "{}, seed {seed}", session.rate);
        session.receivers.iter_mut().for_each(|it| it.path.errors = 1.0);
        session.run(5);
        assert!(session.rate <= 0.3 * f64::from(MOST), "{}, seed {seed}", session.rate);
        session.run(30);
        assert!(session.rate >= 0.05 * f64::from(MOST), "{}, seed {seed}", session.rate);
        session.receivers.iter_mut().for_each(|it| it.path.errors = 0.0);
        session.run(3);
        assert!(session.rate > f64::from(MOST) - 1.0, "{}, seed {seed}", session.rate);
    }
}

/// A producer that is slow, or pauses, is no path that is full: when it has more, all of it is sent
/// at the rate that the paths carry.
#[test]
fn a_sender_with_little_to_send_keeps_its_rate() {
    for (slow_at_first, seed) in [(true, 1), (true, 2), (false, 3), (false, 4)] {
        let paths = [path(2_000.0, 50, 0.0), path(2_000.0, 50, 0.01)];
        let mut session = Session::new(&paths, 5 * MILLISECOND, seed);
        if slow_at_first {
            session.supply = 20.0;
            session.run(10);
            assert!(session.rate >= f64::from(START), "{}, seed {seed}", session.rate);
            session.supply = f64::INFINITY;
        }
        session.run(10);
        let before = session.rate;
        assert!((1_800.0..=2_100.0).contains(&before), "{before}, seed {seed}");
        for supply in [0.0, 100.0, 1_000.0, 5.0] {
            for _ in 0..4 {
                session.supply = supply;
                session.run(2);
                session.supply = f64::INFINITY;
                session.run(1);
                let rate = session.rate;
                assert!(rate >= 0.8 * before, "{before} to {rate}, supply {supply}, seed {seed}");
            }
        }
    }
}

/// A sender of few receivers while its rate doubles, by the reports alone.
struct Doubling {
    now: Instant,
    control: RateControl,
    counter: u64,
}

impl Doubling {
    /// Receivers 0 and 1 have confirmed the first rate.
    fn new() -> Self {
        let control = RateControl::new(automatic(), Instant::ZERO);
        let mut sender = Self { now: Instant::ZERO, control, counter: 0 };
        assert!(sender.raises(&[(0, 1.0), (1, 1.0)]));
        sender
    }

    /// A round in which these receivers get this part of the rate, without losses. Returns whether
    /// the rate is higher after it.
    fn raises(&mut self, reports: &[(u8, f64)]) -> bool {
        let rate = self.control.rate();
        let call = self.control.call(self.now, MILLISECOND, Some(2));
        let window = Duration::from_millis(200);
        self.now = self.now + Duration::from_millis(40);
        for &(receiver, part) in reports {
            let packets = part * rate as f64 / f64::from(PACKET_BYTES) * window.as_secs_f64();
            self.counter += 1;
            let report = RateReport {
                receiver: ReceiverId([receiver; 16]),
                round: call.round,
                window_us: window.as_micros() as u32,
                received: packets.round() as u32,
                lost: 0,
                echo: RollCallEcho::default(),
                weight: 1,
            };
            self.control.handle_report(self.now, &report, None, self.counter).unwrap();
        }
        self.now = self.control.poll_timeout().unwrap_or(self.now).max(self.now);
        self.control.handle_timeout(self.now);
        self.control.rate() > rate
    }
}

/// A receiver that has finished a version, or has not reported for 60 rounds, and does not come for
/// the next one, is not waited for when the others have finished that.
#[test]
fn a_receiver_that_leaves_between_versions_does_not_slow_the_next_one_down() {
    for silent_rounds in [0, 70] {
        let mut sender = Doubling::new();
        for _ in 0..10 {
            sender.raises(&[(0, 1.0), (1, 1.0)]);
        }
        for _ in 0..silent_rounds {
            sender.raises(&[(0, 1.0)]);
        }
        sender.control.has_finished(&ReceiverId([0; 16]));
        if silent_rounds == 0 {
            sender.control.has_finished(&ReceiverId([1; 16]));
        }
        let mut next = Doubling { control: sender.control.into_next(sender.now), ..sender };
        next.raises(&[(0, 1.0)]);
        next.control.has_finished(&ReceiverId([0; 16]));
        let rate = next.control.rate();
        for _ in 0..30 {
            next.now = next.now + Duration::from_secs(1);
            next.control.handle_timeout(next.now);
        }
        assert_eq!(next.control.rate(), rate, "{silent_rounds} silent rounds");
    }
}

/// A receiver that comes for the next version is waited for from its first report on.
#[test]
fn a_receiver_that_comes_for_the_next_version_confirms_a_higher_rate_again() {
    let mut sender = Doubling::new();
    [0, 1].into_iter().for_each(|id| sender.control.has_finished(&ReceiverId([id; 16])));
    let mut next = Doubling { control: sender.control.into_next(sender.now), ..sender };
    assert!(next.raises(&[(0, 1.0)]), "the other one has not come");
    assert!(!next.raises(&[(0, 1.0), (1, 0.5)]), "it is waited for");
    assert!(next.raises(&[(0, 1.0), (1, 1.0)]));
}

/// A receiver that is silent for half a second need not confirm a higher rate, until it reports
/// again: its path may be full.
#[test]
fn a_silent_receiver_is_waited_for_again_when_it_reports() {
    let mut sender = Doubling::new();
    let silent_at = sender.now;
    while !sender.raises(&[(0, 1.0)]) {
        assert!(sender.now < silent_at + Duration::from_secs(1), "it is waited for too long");
    }
    assert!(sender.now >= silent_at + Duration::from_millis(450), "{:?}", sender.now);
    assert!(sender.raises(&[(0, 1.0)]), "it is not waited for");
    // Less arrives than is sent, which is no proof yet.
    assert!(!sender.raises(&[(0, 1.0), (1, 0.5)]), "it is waited for");
    assert!(!sender.raises(&[(0, 1.0)]));
    assert!(sender.raises(&[(0, 1.0), (1, 1.0)]));
}

/// A sender that rests asks as often as before the first report, and not as often as while the rate
/// doubles.
#[test]
fn a_sender_with_nothing_to_send_asks_twice_a_second() {
    let mut session = Session::new(&[path(20_000.0, 1_000, 0.0); 3], MILLISECOND, 1);
    session.run_ms(300);
    session.supply = 0.0;
    session.run(20);
    let reports: u32 = session.rate_reports[3..].iter().sum();
    assert!(reports <= 17 * 3 * 2, "{reports} of three receivers in 17 s");
}
