//! An automatic rate beside other traffic: it yields.

use crate::support::cubic::Cubic;
use crate::support::paths::{FIVE, MOST, PACKET_BYTES, Path, Session, TWENTY, automatic, path};
use fontana_proto::Instant;
use fontana_proto::report::RateConfig;
use std::time::Duration;

/// A bottleneck that a session shares with one CUBIC flow.
#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    megabits: u32,
    queue_ms: u32,
    delay_ms: u64,
    /// Seconds without the session, and without the flow, at the beginning.
    session_after: u64,
    rival_after: u64,
    seed: u64,
}

impl Bottleneck {
    fn packets_per_second(&self) -> f64 {
        f64::from(self.megabits) * 1e6 / 8.0 / f64::from(PACKET_BYTES)
    }

    /// The parts of the session and of the flow in each second, when both send.
    fn run(&self, seconds: u64) -> Vec<[f64; 2]> {
        self.run_until(u64::MAX, seconds)
    }

    /// The same, if the flow ends after so many of them.
    fn run_until(&self, rival_for: u64, seconds: u64) -> Vec<[f64; 2]> {
        let packets_per_second = self.packets_per_second();
        let queue = (packets_per_second * f64::from(self.queue_ms) / 1e3) as usize;
        let most = 5 * u64::from(self.megabits) * 1_000_000 / 8;
        let config = RateConfig { most, blind: Some(most), ..automatic() };
        let path = path(packets_per_second, queue, 0.0);
        let delay = Duration::from_millis(self.delay_ms);
        let mut session = Session::with(config, &[path], delay, self.seed);
        let rival_at = Instant::ZERO + Duration::from_secs(self.rival_after);
        session.receivers[0].rival = Some(Cubic::new(rival_at, 2 * delay));
        session.supply = 0.0;
        session.run(self.session_after);
        session.supply = f64::INFINITY;
        session.run(self.rival_after);
        let delivered = |session: &Session| {
            let receiver = &session.receivers[0];
            let rival = receiver.rival.as_ref().map_or(0, |rival| rival.delivered);
            [receiver.counts.received, rival].map(|packets| packets as f64)
        };
        let mut before = delivered(&session);
        let second = |second| {
            if second == rival_for {
                session.receivers[0].rival = None;
                before[1] = 0.0;
            }
            session.run(1);
            let after = delivered(&session);
            let part = |number: usize| (after[number] - before[number]) / packets_per_second;
            let parts = [part(0), part(1)];
            before = after;
            parts
        };
        (0..seconds).map(second).collect()
    }
}

fn mean(parts: &[[f64; 2]]) -> [f64; 2] {
    let sum = |number: usize| parts.iter().map(|parts| parts[number]).sum::<f64>();
    [0, 1].map(|number| sum(number) / parts.len() as f64)
}

/// A CUBIC flow keeps half of a bottleneck with a queue of 200 ms and a fifth, mostly a third or
/// more, where it has 20 ms. The session keeps a tenth.
#[test]
fn a_tcp_flow_keeps_half() {
    let mut kept = Vec::new();
    for megabits in [20, 200] {
        for (queue_ms, delay_ms) in [(20, 2), (20, 30), (200, 2), (200, 30)] {
            for (session_after, rival_after) in [(10, 0), (0, 0), (0, 20)] {
                for seed in 1..=2 {
                    let case = Bottleneck {
                        megabits,
                        queue_ms,
                        delay_ms,
                        session_after,
                        rival_after,
                        seed,
                    };
                    let [session, rival] = mean(&case.run(120));
                    println!("{case:?}: session {session:.3}, CUBIC {rival:.3}");
                    assert!(session >= 0.1, "{case:?}: {session}");
                    let least = if queue_ms == 20 { 0.2 } else { 0.43 };
                    assert!(rival >= least, "{case:?}: {rival}");
                    kept.push(rival);
                }
            }
        }
    }
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    println!("{mean:.3} in the mean");
    assert!(mean >= 0.45, "{mean}");
}

/// When the flow ends, the session has the path again.
#[test]
fn what_is_learned_of_other_traffic_expires() {
    for queue_ms in [20, 200] {
        let case = Bottleneck {
            megabits: 20,
            queue_ms,
            delay_ms: 2,
            session_after: 0,
            rival_after: 5,
            seed: 1,
        };
        let parts = case.run_until(60, 180);
        let [session, rival] = mean(&parts[30..60]);
        assert!(rival >= 0.4, "{queue_ms} ms: {session} and {rival}");
        let [session, _] = mean(&parts[120..]);
        assert!(session >= 0.85, "{queue_ms} ms: {session}");
    }
}

/// A receiver whose path passes control packets alone says nothing of the rate that the others get.
#[test]
fn a_path_with_a_small_mtu_costs_the_others_nothing() {
    for short_every in [3, 20, 100] {
        for seed in 1..=6 {
            let good = path(20_000.0, 1_000, 0.0);
            let paths = [Path { short_every, ..good }, good, good];
            let mut session = Session::new(&paths, Duration::from_millis(2), seed);
            session.run(20);
            let mean = session.mean(2, 20) / f64::from(MOST);
            assert!(mean >= 0.95, "1 of {short_every}, seed {seed}: {mean}");
        }
    }
}

/// The rate is that of a slow receiver until it has gone.
#[test]
fn a_slow_receiver_that_leaves_does_not_keep_the_rate_low() {
    for (packets_per_second, queue) in [(TWENTY, 50), (TWENTY, 2_000), (FIVE, 50), (167.0, 500)] {
        for seed in 1..=8 {
            let fast = path(20_000.0, 2_000, 0.0);
            let slow = path(packets_per_second, queue, 0.0);
            let mut session = Session::new(&[slow, fast, fast], Duration::from_millis(2), seed);
            session.run(12);
            let before = session.mean(8, 12);
            session.receivers.remove(0);
            session.run(20);
            let after = session.mean(22, 32) / f64::from(MOST);
            assert!(before < 1.2 * packets_per_second, "{before}");
            assert!(after >= 0.9, "{packets_per_second}, seed {seed}: {after}");
        }
    }
}

/// The same at once, if it says that it ends.
#[test]
fn a_slow_receiver_that_ends_does_not_keep_the_rate_low() {
    for seed in 1..=8 {
        let (fast, slow) = (path(20_000.0, 2_000, 0.0), path(FIVE, 50, 0.0));
        let mut session = Session::new(&[slow, fast, fast], Duration::from_millis(2), seed);
        session.run(12);
        assert!(session.rate < 1.2 * FIVE, "{}", session.rate);
        session.end_one();
        // Silence would be an end after three seconds.
        session.run_ms(2_500);
        assert!(session.rate >= 4.0 * FIVE, "seed {seed}: {}", session.rate);
    }
}

/// A process is stopped: when it goes on it has lost packets that no path has lost, and what has
/// arrived is old.
#[test]
fn a_receiver_that_was_stopped_does_not_keep_the_rate_low() {
    for stopped_ms in [300, 1_000, 2_000, 5_000, 20_000] {
        for seed in 1..=16 {
            let fast = path(50_000.0, 2_000, 0.0);
            let mut session = Session::new(&[fast; 3], Duration::from_millis(2), seed);
            session.run_ms(5_000 + 37 * seed);
            session.stop_one(stopped_ms);
            let at = session.rates.len() / 100;
            session.run(10);
            let mean = session.mean(at, at + 10) / f64::from(MOST);
            assert!(mean >= 0.95, "{stopped_ms} ms, seed {seed}: {mean}");
        }
    }
}

/// A link is down for a while, once or again and again: the path carries as much as before.
#[test]
fn an_outage_does_not_lower_the_rate() {
    for (down_ms, every_ms) in [(200, 60_000), (1_000, 60_000), (2_500, 60_000), (200, 2_000)] {
        for are_all in [false, true] {
            for seed in 1..=12 {
                let fast = path(50_000.0, 2_000, 0.0);
                let mut session = Session::new(&[fast; 3], Duration::from_millis(2), seed);
                session.run_ms(5_000 + 37 * seed);
                let from = session.rates.len() / 100;
                for _ in 0..(10_000 / every_ms).max(1) {
                    session.take_down(down_ms, are_all);
                    session.run_ms(every_ms.min(10_000));
                }
                let mean = session.mean(from, session.rates.len() / 100) / f64::from(MOST);
                let which = if are_all { "all" } else { "one" };
                println!("{which} {down_ms} ms every {every_ms}, seed {seed}: {mean:.3}");
                assert!(mean >= 0.9, "{which} {down_ms} ms, seed {seed}: {mean}");
            }
        }
    }
}

/// A path that carries less for a while has its rate again soon after.
#[test]
fn a_path_that_recovers_is_used_again() {
    for queue in [50, 500, 2_000] {
        for receivers in [1, 3] {
            for seed in 1..=8 {
                let fast = path(20_000.0, queue, 0.0);
                let paths = vec![fast; receivers];
                let mut session = Session::new(&paths, Duration::from_millis(2), seed);
                session.run(6);
                session.receivers[0].path.packets_per_second = FIVE;
                session.run(10);
                let low = session.mean(12, 16);
                session.receivers[0].path.packets_per_second = 20_000.0;
                session.run(40);
                let at = (16..55).find(|&at| session.mean(at, at + 1) >= 0.9 * f64::from(MOST));
                let after = at.map_or(u64::MAX, |at| at as u64 - 16);
                let which = format!("queue {queue}, {receivers} receivers, seed {seed}");
                println!("{which}: {low:.0}, {after} s");
                assert!(after <= 20, "{which}: {after} s");
            }
        }
    }
}

/// Delays of up to 100 ms that vary at random, as over a radio link whose hosts sleep, and lost
/// packets are no other traffic.
#[test]
fn what_varies_at_random_is_no_queue() {
    let mut of_ten = Vec::new();
    for errors in [0.0, 0.003, 0.02, 0.05] {
        for receivers in [1, 3, 5, 10] {
            for seed in 1..=6 {
                let path = Path {
                    wakes_every: Duration::from_millis(100),
                    ..path(20_000.0, 10_000, errors)
                };
                let paths = vec![path; receivers];
                let mut session = Session::new(&paths, Duration::from_millis(2), seed);
                session.run(60);
                let mean = session.mean(10, 60) / f64::from(MOST);
                if receivers == 10 {
                    of_ten.push(mean);
                } else {
                    assert!(mean >= 0.9, "{errors}, {receivers} receivers, seed {seed}: {mean}");
                }
            }
        }
    }
    let mean = of_ten.iter().sum::<f64>() / of_ten.len() as f64;
    println!("ten receivers: {mean:.3} in the mean, {of_ten:.2?}");
    assert!(mean >= 0.8, "{of_ten:.2?}");
}

/// What fast receivers get says nothing of a slow link, where another flow keeps its part.
#[test]
fn a_tcp_flow_on_the_slowest_link_keeps_its_part() {
    for seed in 1..=3 {
        let paths = [20.0, 20.0, 5.0].map(|megabits| path(megabits * 1e6 / 12e3, 83, 0.0));
        let delay = Duration::from_millis(2);
        let mut session = Session::new(&paths, delay, seed);
        session.receivers[2].rival = Some(Cubic::new(Instant::ZERO, 2 * delay));
        session.run(90);
        let rival = session.receivers[2].rival.as_ref().map_or(0, |rival| rival.delivered);
        let kept = rival as f64 / 90.0 / (5e6 / 12e3);
        println!("seed {seed}: CUBIC {kept:.3}");
        assert!(kept >= 0.35, "seed {seed}: {kept}");
    }
}
