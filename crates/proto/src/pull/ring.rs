//! Receivers that pull from each other while they receive, in virtual time.

use super::*;
use crate::random::SplitMix64;

/// Symbols of 1400 bytes that 20 Mbit/s carry in a second.
const RATE: f64 = 20e6 / 8.0 / 1400.0;
/// 64 MiB.
const COUNT: u64 = 48_000;
/// Symbols of a block of 1 MiB: what others can have.
const BLOCK: u64 = 750;
/// Time from a request to its first symbol.
const LATENCY: Duration = Duration::from_millis(20);
/// Time after which a receiver asks again what another one holds.
const ASK_EVERY: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(10);

/// A receiver.
struct Node {
    pull: Pull,
    sources: Vec<Link>,
    /// Its complete blocks.
    held: RangeSet,
    done: Option<Duration>,
}

/// A source of a receiver.
struct Link {
    id: SourceId,
    /// The number of the receiver; `None`: the origin.
    from: Option<usize>,
    /// What its request has left, and when it begins.
    sends: Option<(Range<u64>, Duration)>,
    part: f64,
    asks_at: Duration,
}

fn at(now: Duration) -> Instant {
    Instant::from_nanos(now.as_nanos() as u64)
}

/// The times in which receivers complete that have these sources, and the symbols that the origin
/// sends. Every host sends and receives at most [`RATE`].
fn run(sources: &[Vec<Option<usize>>], seed: u64) -> (Vec<Duration>, u64) {
    let (mut nodes, mut random) = (Vec::<Node>::new(), SplitMix64::new(seed, 0));
    for own in sources {
        let mut pull = Pull::new();
        let link = |&from: &Option<usize>| {
            let (id, asks_at) = (pull.add_source(), Duration::ZERO);
            pull.set_held(id, from.map(|_| RangeSet::default()));
            Link { id, from, sends: None, part: 0.0, asks_at }
        };
        let links = own.iter().map(link).collect();
        pull.set_lacking(std::iter::once(0..COUNT).collect());
        pull.scatter(random.next_u64(), (0..COUNT / BLOCK).map(|block| block * BLOCK).collect());
        nodes.push(Node { pull, sources: links, held: RangeSet::default(), done: None });
    }
    let (mut now, mut from_origin) = (Duration::ZERO, 0);
    while nodes.iter().any(|node| node.done.is_none()) {
        assert!(now < Duration::from_secs(600), "after {now:?}");
        let held: Vec<RangeSet> = nodes.iter().map(|node| node.held.clone()).collect();
        let is_sending =
            |link: &Link| link.sends.as_ref().is_some_and(|(_, begins)| *begins <= now);
        // Each host divides its rate among those that it sends to.
        let mut busy: BTreeMap<Option<usize>, f64> = BTreeMap::new();
        for link in nodes.iter().flat_map(|node| &node.sources).filter(|link| is_sending(link)) {
            *busy.entry(link.from).or_default() += 1.0;
        }
        for node in &mut nodes {
            // What slow senders leave of its own rate is for the others.
            let offers = |link: &Link| RATE / busy.get(&link.from).copied().unwrap_or(1.0);
            node.sources.sort_by(|a, b| offers(a).total_cmp(&offers(b)));
            let mut arriving = node.sources.iter().filter(|link| is_sending(link)).count();
            let mut left = RATE;
            for link in &mut node.sources {
                let rate = offers(link).min(left / arriving.max(1) as f64);
                if is_sending(link) {
                    (arriving, left) = (arriving - 1, left - rate);
                }
                from_origin += step(&mut node.pull, link, now, rate, &held);
            }
            let blocks = (0..COUNT / BLOCK).map(|block| block * BLOCK..(block + 1) * BLOCK);
            let is_there =
                |block: &Range<u64>| node.pull.lacking().within(block.clone()).next().is_none();
            node.held = blocks.filter(is_there).collect();
            if node.done.is_none() && node.pull.is_complete() {
                node.done = Some(now);
            }
        }
        now += STEP;
    }
    (nodes.iter().filter_map(|node| node.done).collect(), from_origin)
}

/// Lets a source send for a step. Returns the symbols that came from the origin.
fn step(pull: &mut Pull, link: &mut Link, now: Duration, rate: f64, held: &[RangeSet]) -> u64 {
    if pull.expected(link.id).is_some_and(|rest| rest.is_empty()) {
        link.sends = None;
        pull.end_request(at(now), link.id);
    }
    if link.sends.is_none() {
        if let Some(from) = link.from.filter(|_| now >= link.asks_at) {
            pull.set_held(link.id, held.get(from).cloned());
            link.asks_at = now + ASK_EVERY;
        }
        let request = pull.next_request(at(now), link.id);
        link.sends = request.map(|request| (request.range, now + LATENCY));
        link.part = 0.0;
    }
    let Some((range, begins)) = &mut link.sends else { return 0 };
    if now < *begins {
        return 0;
    }
    link.part += rate * STEP.as_secs_f64();
    let count = (link.part as u64).min(range.end - range.start);
    link.part -= count as f64;
    let sent = range.start..range.start + count;
    range.start = sent.end;
    pull.on_arrival(at(now), link.id, sent);
    if link.from.is_none() { count } else { 0 }
}

/// How many times as long as the content takes at the rate of one host the last receiver takes, for
/// several seeds.
fn factors(sources: &[Vec<Option<usize>>]) -> Vec<f64> {
    let factor = |seed| {
        let (times, from_origin) = run(sources, seed);
        let last = times.iter().max().copied().unwrap_or_default().as_secs_f64();
        let factor = last / (COUNT as f64 / RATE);
        println!("{factor:.2}, and {:.2} from the origin", from_origin as f64 / COUNT as f64);
        factor
    };
    (0..3).map(factor).collect()
}

#[test]
fn a_chain_ends_soon_after_its_first_receiver() {
    let (times, _) = run(&[vec![None], vec![Some(0)]], 0);
    let ratio = times[1].as_secs_f64() / times[0].as_secs_f64();
    assert!(ratio < 1.1, "{ratio}");
}

#[test]
fn a_ring_of_eight_completes_in_one_and_a_half_of_the_time_of_one() {
    let before = |number: usize| Some((number + 7) % 8);
    let origin = |number: usize| (number == 0).then_some(None);
    let ring: Vec<_> =
        (0..8).map(|number| origin(number).into_iter().chain([before(number)]).collect()).collect();
    let factors = factors(&ring);
    assert!(factors.iter().all(|factor| *factor < 1.3), "{factors:?}");
}

/// They divide the origin's rate, and half of it brings what others have already: about twice the
/// time, with one neighbor or with both.
#[test]
fn a_ring_whose_receivers_all_know_the_origin_is_far_from_eight_times_as_long() {
    for both in [false, true] {
        let after = |number: usize| both.then_some(Some((number + 1) % 8));
        let ring = (0..8).map(|number| {
            [None, Some((number + 7) % 8)].into_iter().chain(after(number)).collect::<Vec<_>>()
        });
        let factors = factors(&ring.collect::<Vec<_>>());
        assert!(factors.iter().all(|factor| *factor < 2.5), "{factors:?}");
    }
}
