//! Simulated sources with given rates, against the fluid bound: nothing finishes before the sum of
//! the rates over the time is what was lacking.

use super::*;
use proptest::prelude::*;

/// What a source does.
#[derive(Clone, Copy, Debug)]
struct Model {
    /// Positions per second.
    rate: f64,
    /// Time from a request to its first position.
    latency: Duration,
    /// From then on it sends nothing.
    ends: Option<Duration>,
    /// Requests fail from then on, instead of staying silent.
    fails: bool,
}

impl Model {
    fn steady(rate: f64) -> Self {
        Self { rate, latency: Duration::from_millis(2), ends: None, fails: false }
    }

    fn is_alive(&self, now: Duration) -> bool {
        self.ends.is_none_or(|ends| now < ends)
    }
}

/// The state of a simulated source.
struct Host {
    model: Model,
    id: SourceId,
    /// Positions that its request has left, and when it begins to send them.
    sends: Option<(Range<u64>, Duration)>,
    /// A fraction of a position that was sent.
    part: f64,
    removed: bool,
}

/// The result of a run.
struct Run {
    time: Duration,
    /// Positions that arrived.
    arrived: u64,
    /// Requests that were made.
    requests: usize,
}

const STEP: Duration = Duration::from_millis(2);

fn at(now: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos() as u64)
}

/// Pulls `lacking` until it is complete, or fails after an hour.
fn run(models: &[Model], lacking: RangeSet) -> Run {
    let mut pull = Pull::new();
    let mut hosts: Vec<Host> = models
        .iter()
        .map(|&model| Host { model, id: pull.add_source(), sends: None, part: 0.0, removed: false })
        .collect();
    pull.set_lacking(lacking);
    let (mut now, mut result) = (Duration::ZERO, (0, 0));
    while !pull.is_complete() {
        assert!(now < Duration::from_secs(3600), "{models:?} lack {}", pull.lacking().len());
        for host in &mut hosts {
            step(&mut pull, host, now, &mut result);
        }
        for id in pull.give_back(at(now)) {
            hosts.iter_mut().filter(|host| host.id == id).for_each(|host| host.sends = None);
        }
        now += STEP;
    }
    Run { time: now, arrived: result.0, requests: result.1 }
}

fn step(pull: &mut Pull, host: &mut Host, now: Duration, result: &mut (u64, usize)) {
    if host.removed {
        return;
    }
    let is_alive = host.model.is_alive(now);
    if !is_alive && host.model.fails {
        host.removed = true;
        return pull.remove_source(at(now), host.id);
    }
    let is_cut = pull.expected(host.id).is_some_and(|rest| rest.is_empty());
    if is_cut {
        host.sends = None;
        pull.end_request(at(now), host.id);
    }
    if host.sends.is_none()
        && let Some(request) = pull.next_request(at(now), host.id)
    {
        result.1 += 1;
        host.sends = Some((request.range, now + host.model.latency));
        host.part = 0.0;
    }
    let Some((range, begins)) = &mut host.sends else { return };
    if !is_alive || now < *begins {
        return;
    }
    host.part += host.model.rate * STEP.as_secs_f64();
    let count = (host.part as u64).min(range.end - range.start);
    host.part -= count as f64;
    if count > 0 {
        result.0 += count;
        let sent = range.start..range.start + count;
        range.start = sent.end;
        pull.on_arrival(at(now), host.id, sent);
    }
    if pull.expected(host.id).is_some_and(|rest| rest.is_empty()) {
        host.sends = None;
        pull.end_request(at(now), host.id);
    }
}

/// The fluid bound: the time at which the sum of the rates over the time is `count`.
fn bound(models: &[Model], count: u64) -> Duration {
    let (mut now, mut left) = (Duration::ZERO, count as f64);
    while left > 0.0 {
        let alive = models.iter().filter(|model| model.is_alive(now));
        left -= alive.map(|model| model.rate).sum::<f64>() * STEP.as_secs_f64();
        now += STEP;
    }
    now
}

/// Pulls from the sources, and compares the time with the fluid bound of sources that are slower by
/// `factor`: what a fast source does not bring before it ends, a slow one has to bring.
fn check(models: &[Model], count: u64, factor: f64, extra: Duration) -> Run {
    let run = run(models, std::iter::once(0..count).collect());
    let slower = |model: &Model| Model { rate: model.rate / factor, ..*model };
    let bound = bound(&models.iter().map(slower).collect::<Vec<_>>(), count);
    assert!(run.time <= bound + extra, "{models:?}: {:?}, the bound is {bound:?}", run.time);
    run
}

/// 64 MiB of symbols of 1400 bytes.
const COUNT: u64 = 48_000;

/// The rate of a shaper, in symbols of 1400 bytes.
fn mbit(rate: f64) -> Model {
    Model::steady(rate * 1e6 / 8.0 / 1400.0)
}

#[test]
fn mirrors_of_any_rates_finish_together() {
    let run = check(&[40.0, 20.0, 10.0, 5.0].map(mbit), COUNT, 1.03, Duration::ZERO);
    assert!(run.arrived <= COUNT + COUNT / 200, "{} arrived", run.arrived);
    assert!(run.requests < 60, "{} requests", run.requests);
    check(&[1.0, 1000.0].map(mbit), COUNT, 1.03, Duration::from_millis(100));
    check(&[8.0; 8].map(mbit), COUNT, 1.03, Duration::ZERO);
    check(&[mbit(10.0)], COUNT, 1.03, Duration::ZERO);
}

#[test]
fn the_end_of_the_fastest_source_costs_little() {
    for fails in [true, false] {
        let mut models = [40.0, 20.0, 10.0, 5.0].map(mbit);
        models[0].ends = Some(Duration::from_millis(3600));
        models[0].fails = fails;
        check(&models, COUNT, 1.04, Duration::from_millis(600));
    }
}

#[test]
fn a_source_that_is_silent_from_the_start_is_passed_over() {
    let mut models = [20.0, 20.0, 20.0].map(mbit);
    models[1].ends = Some(Duration::ZERO);
    check(&models, COUNT, 1.04, Duration::from_millis(300));
}

#[test]
fn gaps_are_filled_without_what_lies_between() {
    let lacking: RangeSet = (0..400).map(|gap| gap * 1000..gap * 1000 + 10).collect();
    let models = [40.0, 10.0].map(mbit);
    let run = run(&models, lacking);
    assert!(run.arrived <= 4_000 + 50, "{} arrived", run.arrived);
}

/// At the end, a slow source would be waited for.
#[test]
fn a_whole_is_left_to_a_source_that_will_have_sent_it_sooner() {
    let mut pull = Pull::new();
    let (fast, slow) = (pull.add_source(), pull.add_source());
    pull.set_lacking(std::iter::once(0..10_000).collect());
    let ranges = [fast, slow].map(|id| pull.next_request(Instant::ZERO, id).unwrap().range);
    for step in 1..=10 {
        let now = at(Duration::from_millis(100 * step));
        for (id, range, each) in [(fast, &ranges[0], 20), (slow, &ranges[1], 1)] {
            pull.on_arrival(now, id, range.start + (step - 1) * each..range.start + step * each);
        }
    }
    let now = at(Duration::from_secs(1));
    pull.end_request(now, slow);
    pull.add_whole(9_000..9_500, Vec::new());
    let request = pull.next_request(now, slow).unwrap();
    assert!(!request.is_whole, "{request:?}");
    pull.end_request(now, fast);
    assert!(pull.next_request(now, fast).unwrap().is_whole);
    // If the fast one has tried it, the slow one sends it.
    pull.end_request(now, slow);
    pull.add_whole(9_000..9_500, vec![fast]);
    assert!(pull.next_request(now, slow).unwrap().is_whole);
}

#[test]
fn a_whole_comes_from_one_source_and_from_another_one_first() {
    let now = Instant::ZERO;
    let mut pull = Pull::new();
    let (a, b) = (pull.add_source(), pull.add_source());
    pull.set_lacking(std::iter::once(0..2_000).collect());
    pull.add_whole(500..700, vec![a]);
    assert_eq!(pull.lacking().len(), 1_800);
    let request = pull.next_request(now, a).unwrap();
    assert!(!request.is_whole && request.range.start == 0);
    let request = pull.next_request(now, b).unwrap();
    assert_eq!(request, Request { range: 500..700, is_whole: true });
    pull.on_arrival(now, b, 500..600);
    pull.end_request(now, b);
    pull.end_request(now, a);
    assert!(!pull.is_sent(&(500..700)));
    // Both have tried.
    let request = pull.next_request(now, a).unwrap();
    assert_eq!(request, Request { range: 500..700, is_whole: true });
    pull.on_arrival(now, a, 500..700);
    assert!(!pull.is_sent(&(500..700)), "its request has not ended");
    pull.end_request(now, a);
    assert!(pull.is_sent(&(500..700)));
    pull.remove_whole(&(500..700));
    assert_eq!(pull.lacking().len(), 1_800, "a whole does not lack positions");
}

#[test]
fn a_source_below_a_tenth_of_its_rate_gives_its_request_back() {
    let mut pull = Pull::new();
    let source = pull.add_source();
    pull.set_lacking(std::iter::once(0..100_000).collect());
    let seconds = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let first = pull.next_request(seconds(0), source).unwrap().range;
    pull.on_arrival(seconds(1), source, first);
    pull.end_request(seconds(1), source);
    let second = pull.next_request(seconds(1), source).unwrap().range;
    pull.on_arrival(seconds(10), source, second.start..second.start + 100);
    assert_eq!(pull.give_back(seconds(10)), []);
    assert_eq!(pull.give_back(seconds(12)), [source]);
    assert_eq!(pull.next_request(seconds(12), source), None);
    assert!(pull.next_request(seconds(43), source).is_some());
}

/// Three sources of the same rate, of which one or another is silent.
#[test]
fn a_source_whose_request_was_in_vain_gives_way_until_it_brings_something() {
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let mut pull = Pull::new();
    let [vain, other, idle] = [(); 3].map(|()| pull.add_source());
    for source in pull.sources.values_mut() {
        source.rate.begin(at(0));
        source.rate.on_arrival(at(1), 100);
        source.rate.end(at(1));
    }
    let bring = |pull: &mut Pull, seconds, id, position| {
        pull.on_arrival(at(seconds), id, position..position + 1);
        pull.end_request(at(seconds), id);
    };
    pull.set_lacking(std::iter::once(0..1).collect());
    assert!(pull.next_request(at(2), vain).is_some());
    assert!(pull.next_request(at(4), other).is_some(), "it takes over");
    pull.end_request(at(4), vain);
    assert!(pull.next_request(at(6), vain).is_none(), "another one has nothing to do");
    bring(&mut pull, 6, other, 0);

    pull.add_lacking(1..2);
    assert!(pull.next_request(at(7), vain).is_some(), "it may ask for what is free");
    bring(&mut pull, 7, vain, 1);

    pull.add_lacking(2..3);
    assert!(pull.next_request(at(8), other).is_some());
    assert!(pull.next_request(at(10), vain).is_some(), "it is as any other");
    assert!(pull.has_source(idle));
}

#[test]
fn requests_end_where_nothing_is_lacking() {
    let now = Instant::ZERO;
    let mut pull = Pull::new();
    let source = pull.add_source();
    pull.set_lacking(std::iter::once(0..200).collect());
    assert_eq!(pull.next_request(now, source).unwrap().range, 0..200);
    pull.remove_lacking(100..200);
    assert_eq!(pull.expected(source), Some(0..100));
    pull.remove_lacking(0..100);
    assert_eq!(pull.expected(source), Some(0..0));
}

#[test]
fn what_a_source_lacks_is_left_to_the_others() {
    let now = Instant::ZERO;
    let mut pull = Pull::new();
    let (one, other) = (pull.add_source(), pull.add_source());
    pull.set_lacking(std::iter::once(0..300).collect());
    pull.set_aside(one, 0..200);
    assert_eq!(pull.next_request(now, one).unwrap().range, 200..300);
    pull.on_arrival(at(Duration::from_millis(100)), one, 200..300);
    pull.end_request(at(Duration::from_millis(100)), one);
    assert_eq!(pull.next_request(now, one), None, "nothing of what it has is lacking");
    // Nor does it take over a request for that.
    assert_eq!(pull.next_request(now, other).unwrap().range, 150..200);
    assert_eq!(pull.next_request(now, one), None);
    pull.add_whole(0..100, vec![other]);
    assert_eq!(pull.next_request(now, one), None);
    pull.on_arrival(now, other, 150..200);
    pull.end_request(now, other);
    let whole = pull.next_request(now, other).unwrap();
    assert_eq!(whole, Request { range: 0..100, is_whole: true }, "no other has it");
    pull.ask_again(one);
    assert_eq!(pull.next_request(now, one).unwrap().range.end, 150);
}

#[test]
fn what_every_source_has_sent_wrong_is_hopeless() {
    let mut pull = Pull::new();
    let (one, other) = (pull.add_source(), pull.add_source());
    pull.set_lacking(std::iter::once(0..100).collect());
    pull.forsake(one, 0..100);
    pull.forsake(other, 0..60);
    pull.ask_again(one);
    assert!(!pull.is_hopeless() && pull.next_request(Instant::ZERO, one).is_none());
    pull.remove_lacking(50..100);
    assert!(pull.is_hopeless());
    pull.remove_lacking(0..50);
    assert!(!pull.is_hopeless(), "nothing is lacking");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_sources_finish_near_the_fluid_bound(
        rates in prop::collection::vec(1.0_f64..60.0, 1..6),
        latency in 1_u64..60,
        count in 8_000_u64..60_000,
        end in prop::option::of((0_usize..6, 0_u64..5_000, any::<bool>())),
    ) {
        let mut models: Vec<Model> = rates.iter().map(|&rate| mbit(rate)).collect();
        for model in &mut models {
            model.latency = Duration::from_millis(latency);
        }
        if let Some((index, millis, fails)) = end
            && models.len() > 1
        {
            let index = index % models.len();
            models[index].ends = Some(Duration::from_millis(millis));
            models[index].fails = fails;
        }
        // A request of the shortest time costs one latency, and silence is noticed in a second.
        let factor = 1.05 + latency as f64 / 250.0;
        let is_silent = models.iter().any(|model| model.ends.is_some() && !model.fails);
        check(&models, count, factor, Duration::from_millis(if is_silent { 1_500 } else { 600 }));
    }
}
