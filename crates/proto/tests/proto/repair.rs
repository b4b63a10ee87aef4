//! Repair on demand: what a sender sends for receivers that lose packets, how many of them request,
//! and what those cause that lie.

use crate::support::answers::{INSTANCE, authentic, collection, facts, opened, report};
use crate::support::plain::CLOCK;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, ObjectLayout, Oti, Sbn};
use fontana_proto::report::{
    Answer, Authority, Expected, IgnoredRequest, Network, PacketCounts, RepairConfig, RepairRounds,
    Reporter, ReporterConfig,
};
use fontana_proto::{
    BlockId, Collection, CollectionConfig, Demand, Endpoint, Instant, Lacking, Output, RepairBy,
    SendDone, SendJob, SendMode, SendObject, Sender, SenderConfig, SenderEvent, SenderProgress,
    SplitMix64,
};
use fontana_wire::{
    BlockNeed, Feedback, Hash, RateReport, ReceiverId, ReceiverLabel, ReceiverReport,
    ReceiverState, RepairRequest, RollCall, RollCallEcho, RollCallList, SecretKey, SymbolMap, Toi,
    Tsi,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

const BLOCKS: u32 = 5;
/// Source symbols of a block: five are 64 MiB of 1 400 bytes.
const SOURCE_SYMBOLS: u32 = 9_587;
const SOURCE: u32 = BLOCKS * SOURCE_SYMBOLS;
/// With so many more than source symbols, RaptorQ recovers a block.
const SURPLUS: u32 = 3;

/// A receiver: the symbols that it has of each block.
struct Receiver {
    reporter: Reporter,
    has: [u32; BLOCKS as usize],
    /// It claims to lack everything, always.
    lies: bool,
    loss: f64,
    complete_at: Option<Instant>,
}

impl Receiver {
    /// With every source symbol a block needs no surplus.
    fn lacking(&self) -> Lacking {
        let need = |(sbn, &has): (u32, &u32)| {
            let symbols = if self.lies {
                SOURCE_SYMBOLS
            } else if has == SOURCE_SYMBOLS && self.loss == 0.0 {
                0
            } else {
                (SOURCE_SYMBOLS + SURPLUS).saturating_sub(has)
            };
            (symbols > 0).then_some(BlockNeed { toi: 1, sbn, symbols })
        };
        let blocks = (0..).zip(&self.has).filter_map(need).collect();
        Lacking { blocks, ..Lacking::default() }
    }

    fn take(&mut self, now: Instant, packet: &Packet) {
        match packet {
            Packet::Symbol(block) => {
                self.has[*block as usize] += 1;
                if self.complete_at.is_none() && self.lacking().is_nothing() {
                    self.complete_at = Some(now);
                }
            }
            Packet::Call(call) => {
                let lacking = self.lacking();
                self.reporter.handle_roll_call(now, call, PacketCounts::default(), |_| lacking);
            }
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Answer> {
        let loss = if self.lies { 0.5 } else { self.loss };
        self.reporter.poll(now, |_| facts(loss))
    }
}

/// A member of the group, or a host of an address of its own that nothing authenticates.
fn authority(receiver: ReceiverId, is_authenticated: bool) -> Authority {
    let [a, b, c, d, ..] = receiver.0;
    match is_authenticated {
        true => Authority::Group,
        false => Authority::Unauthenticated(Network::of([a, b, c, d].into())),
    }
}

enum Packet {
    Symbol(u32),
    Call(Rc<RollCall>),
}

/// What a run has taken.
#[derive(Debug)]
struct Run {
    /// Symbols sent, over the source symbols.
    sent_per_file: f64,
    requests: u32,
    /// From the time at which the last honest receiver had enough until the sender knew.
    farewell: Duration,
    /// When the last honest receiver had enough, over the time of the source symbols.
    complete: f64,
}

struct Conditions {
    receivers: u32,
    liars: u32,
    loss: f64,
    symbols_per_second: u32,
    delay: Duration,
    is_authenticated: bool,
    seed: u64,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            receivers: 4,
            liars: 0,
            loss: 0.01,
            symbols_per_second: 9_000,
            delay: Duration::from_micros(200),
            is_authenticated: true,
            seed: 1,
        }
    }
}

/// A session in steps of 100 us. Packets and answers take `delay`; both are lost with the
/// probability `loss`.
struct Session<'c> {
    conditions: &'c Conditions,
    now: Instant,
    random: SplitMix64,
    collection: Collection,
    crowd: Vec<Receiver>,
    /// The blocks of the source symbols that are left to send.
    to_send: VecDeque<u32>,
    /// Symbols on demand that are left to send of each block.
    given: BTreeMap<u32, u32>,
    sent: u32,
    requests: u32,
    /// Symbols that the rate permits now.
    allowance: f64,
    down: VecDeque<(Instant, Packet)>,
    up: VecDeque<(Instant, Feedback, u64)>,
}

const STEP: Duration = Duration::from_micros(100);

impl<'c> Session<'c> {
    fn new(conditions: &'c Conditions) -> Self {
        let Conditions { receivers, liars, loss, symbols_per_second, seed, .. } = *conditions;
        let block = |sbn| (BlockId { toi: Toi(1), sbn: Sbn(sbn) }, SOURCE_SYMBOLS);
        let repair = RepairConfig {
            blocks: (0..BLOCKS).map(block).collect(),
            symbols_per_second: symbols_per_second.into(),
            pending_capacity: 64,
            max_receivers: 1 << 16,
            max_age: None,
            trusts_unauthenticated: false,
            has_signers: false,
        };
        let repair = RepairBy::Rounds(Box::new(repair));
        let config = collection(repair, Expected::Count(receivers), seed);
        let receiver = |number: u32| {
            let mut id = [9; 16];
            id[..4].copy_from_slice(&number.to_be_bytes());
            let (id, label) = (ReceiverId(id), ReceiverLabel::default());
            let seed = seed << 32 | u64::from(number);
            let reporter = Reporter::new(ReporterConfig::new(id, label, seed));
            let lies = number < liars;
            Receiver { reporter, has: [0; BLOCKS as usize], lies, loss, complete_at: None }
        };
        Self {
            conditions,
            now: Instant::ZERO,
            random: SplitMix64::new(seed, 77),
            collection: Collection::new(config, Instant::ZERO),
            crowd: (0..receivers).map(receiver).collect(),
            to_send: (0..SOURCE).map(|i| i % BLOCKS).collect(),
            given: BTreeMap::new(),
            sent: 0,
            requests: 0,
            allowance: 0.0,
            down: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    /// The block of the next symbol. On demand, blocks alternate, as in the sender.
    fn next_block(&mut self) -> Option<u32> {
        self.to_send.pop_front().or_else(|| {
            let after = self.given.range(1 + self.sent % BLOCKS..).next();
            let (&block, _) = after.or_else(|| self.given.first_key_value())?;
            let left = self.given.get_mut(&block)?;
            *left -= 1;
            if *left == 0 {
                self.given.remove(&block);
            }
            Some(block)
        })
    }

    /// The sender sends what the rate permits, and a roll call if one is due.
    fn send(&mut self) {
        self.allowance += f64::from(self.conditions.symbols_per_second) * STEP.as_secs_f64();
        let at = self.now + self.conditions.delay;
        while self.allowance >= 1.0 {
            let Some(block) = self.next_block() else {
                self.allowance = 0.0;
                break;
            };
            self.allowance -= 1.0;
            self.sent += 1;
            self.down.push_back((at, Packet::Symbol(block)));
        }
        self.follow();
    }

    /// The sender does what its receivers demand.
    fn follow(&mut self) {
        let at = self.now + self.conditions.delay;
        loop {
            let is_sent = self.to_send.is_empty() && self.given.is_empty();
            let progress = SenderProgress { is_sent, is_announcing: false, is_enough: false };
            match self.collection.poll(self.now, progress) {
                None => return,
                Some(Demand::Call { call, .. }) => {
                    self.down.push_back((at, Packet::Call(call.into())));
                    self.collection.handle_signed(self.now, &[]);
                }
                Some(Demand::Fresh(symbols)) => {
                    for (block, count) in symbols {
                        *self.given.entry(block.sbn.0).or_insert(0) += count;
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Receivers get what has arrived, and answer.
    fn receive(&mut self) {
        let now = self.now;
        while self.down.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, packet)) = self.down.pop_front() else { break };
            for receiver in &mut self.crowd {
                if !is_lost(&mut self.random, receiver.loss) {
                    receiver.take(now, &packet);
                }
            }
        }
        for receiver in &mut self.crowd {
            while let Some(Answer { counter, feedback, .. }) = receiver.poll(now) {
                self.requests += u32::from(matches!(feedback, Feedback::Request(_)));
                if !is_lost(&mut self.random, self.conditions.loss) {
                    self.up.push_back((now + self.conditions.delay, feedback, counter));
                }
            }
        }
    }

    /// The sender handles the answers that have arrived.
    fn collect(&mut self) {
        let now = self.now;
        while self.up.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, feedback, counter)) = self.up.pop_front() else { break };
            let (Feedback::Report(ReceiverReport { receiver, .. })
            | Feedback::Rate(RateReport { receiver, .. })
            | Feedback::Request(RepairRequest { receiver, .. })) = feedback;
            let by = authority(receiver, self.conditions.is_authenticated);
            self.collection.handle_opened(now, Some(&authentic(&feedback, counter, by)));
        }
    }

    /// When the last honest receiver had enough; `None` if one still lacks something.
    fn complete_at(&self) -> Option<Instant> {
        let honest = self.crowd.iter().filter(|receiver| !receiver.lies);
        let times = honest.map(|receiver| receiver.complete_at);
        times.collect::<Option<BTreeSet<_>>>()?.pop_last()
    }
}

fn is_lost(random: &mut SplitMix64, loss: f64) -> bool {
    ((random.next_u64() >> 11) as f64) / 2_f64.powi(53) < loss
}

/// Runs a session until the sender knows that nothing is lacking; beside liars, until the others
/// have enough.
fn run(conditions: &Conditions) -> Run {
    let seed = conditions.seed;
    let mut session = Session::new(conditions);
    loop {
        session.now = session.now + STEP;
        let seconds = session.now.as_nanos() as f64 / 1e9;
        assert!(seconds < 120.0, "seed {seed}: it does not end");
        session.send();
        session.receive();
        session.collect();
        let last = session.complete_at();
        if session.collection.is_silent() || (conditions.liars > 0 && last.is_some()) {
            let last =
                last.unwrap_or_else(|| panic!("seed {seed}: it ended before all had enough"));
            let passed = last.saturating_since(Instant::ZERO).as_secs_f64();
            return Run {
                sent_per_file: f64::from(session.sent) / f64::from(SOURCE),
                requests: session.requests,
                farewell: session.now.saturating_since(last),
                complete: passed * f64::from(conditions.symbols_per_second) / f64::from(SOURCE),
            };
        }
    }
}

#[test]
fn little_more_is_sent_than_the_receiver_needs_that_lost_most() {
    for (loss, most) in [(0.0, 1.0), (0.01, 1.015), (0.1, 1.125), (0.3, 1.46)] {
        for seed in 1..=3 {
            let run = run(&Conditions { loss, seed, ..Conditions::default() });
            assert!(run.sent_per_file <= most, "{loss}, seed {seed}: {run:?}");
        }
    }
}

/// By satellite, or behind a queue that is full: a round is over before its requests arrive.
#[test]
fn receivers_that_are_farther_than_a_round_are_repaired() {
    for (delay, is_authenticated) in [(300, true), (300, false), (900, true)] {
        let delay = Duration::from_millis(delay);
        let run = run(&Conditions { delay, is_authenticated, ..Conditions::default() });
        assert!(run.sent_per_file <= 1.03, "{delay:?}, {is_authenticated}: {run:?}");
        assert!(run.complete <= 1.0 + 10.0 * delay.as_secs_f64(), "{delay:?}: {run:?}");
    }
}

#[test]
fn the_session_ends_soon_after_the_last_receiver_has_enough() {
    for seed in 1..=5 {
        let run = run(&Conditions { loss: 0.0, seed, ..Conditions::default() });
        assert!(run.farewell <= Duration::from_millis(50), "seed {seed}: {run:?}");
    }
}

#[test]
fn few_of_many_receivers_request() {
    for seed in 1..=2 {
        let run = run(&Conditions { receivers: 300, seed, ..Conditions::default() });
        assert!(run.sent_per_file <= 1.02, "seed {seed}: {run:?}");
        // Without suppression, each would request about twice.
        assert!(run.requests <= 200, "seed {seed}: {run:?}");
    }
}

/// A tenth of the receivers claims to lack everything, in every round, and to lose half.
#[test]
fn receivers_that_lie_delay_the_others_by_less_than_a_third() {
    for (loss, is_authenticated) in [(0.01, true), (0.1, true), (0.01, false)] {
        let with = |liars| {
            run(&Conditions {
                receivers: 20,
                liars,
                loss,
                is_authenticated,
                ..Conditions::default()
            })
        };
        let (alone, beside) = (with(0), with(2));
        assert!(beside.complete <= 1.3 * alone.complete, "{loss}: {alone:?}, {beside:?}");
    }
}

/// Symbols that are sent for receivers that request everything in each of many rounds of 100 ms.
/// `receiver`: who requests in a round.
fn given_to_liars(receiver: impl Fn(u32) -> u32, is_authenticated: bool) -> (u64, Instant) {
    given_in_rounds(200, Duration::from_millis(100), 1_000.0, receiver, is_authenticated)
}

fn given_in_rounds(
    count: u32,
    interval: Duration,
    symbols_per_second: f64,
    receiver: impl Fn(u32) -> u32,
    is_authenticated: bool,
) -> (u64, Instant) {
    let block = |sbn| (BlockId { toi: Toi(1), sbn: Sbn(sbn) }, 1_000);
    let config = RepairConfig {
        blocks: (0..10).map(block).collect(),
        symbols_per_second,
        pending_capacity: 48,
        max_receivers: 1 << 16,
        max_age: None,
        trusts_unauthenticated: false,
        has_signers: false,
    };
    let mut rounds = RepairRounds::new(config, Instant::ZERO);
    let (mut now, mut given) = (Instant::ZERO, 0);
    for counter in 0..count {
        now = now + interval;
        rounds.handle_sent(now);
        rounds.handle_timeout(now);
        let Some(call) = rounds.call(now, 4, Duration::from_millis(1)) else { continue };
        let mut id = [0; 16];
        id[..4].copy_from_slice(&receiver(counter).to_be_bytes());
        let need = |sbn| BlockNeed { toi: 1, sbn, symbols: u32::MAX };
        let request = RepairRequest {
            receiver: ReceiverId(id),
            round: call.round,
            echo: RollCallEcho::default(),
            loss_ppm: 0,
            mute_us: 0,
            may_lack_more: false,
            blocks: (0..10).map(need).collect(),
            maps: Vec::new(),
        };
        let by = authority(request.receiver, is_authenticated);
        let _ = rounds.handle_request(now, &request, counter.into(), by);
        given +=
            rounds.poll_symbols().into_iter().flatten().map(|(_, n)| u64::from(n)).sum::<u64>();
    }
    (given, now)
}

#[test]
fn one_receiver_causes_the_content_once_and_a_third_of_it_later() {
    let (given, until) = given_to_liars(|_| 1, true);
    // And the content once more in ten minutes.
    let later = 10_000 * until.as_nanos() / 600_000_000_000 * 4 / 3;
    let most = 13_340 + later;
    assert!((13_000..=most).contains(&given), "{given} symbols for a content of 10 000");
}

/// One that loses what is sent for it needs more than the content.
#[test]
fn what_a_receiver_may_cause_comes_back() {
    let given_at = |symbols_per_second| {
        given_in_rounds(1_000, Duration::from_secs(2), symbols_per_second, |_| 1, true).0
    };
    // A content of 10 000 in ten minutes, which may be caused 4/3 times.
    let slow = given_at(1_000.0);
    assert!((55_000..=60_000).contains(&slow), "{slow}");
    // A hundredth of the rate.
    let fast = given_at(10_000.0);
    assert!((270_000..=280_000).contains(&fast), "{fast}");
}

/// Each request is in the name of another receiver.
#[test]
fn receivers_that_nothing_authenticates_get_a_quarter_of_the_rate() {
    let (given, until) = given_to_liars(|round| round, false);
    let quarter = until.as_nanos() as f64 / 1e9 * 1_000.0 / 4.0;
    assert!((0.9 * quarter..=quarter).contains(&(given as f64)), "{given} of {quarter}");
}

/// One host asks for everything, with another id each time: at last it gets what time returns.
#[test]
fn a_network_that_nothing_authenticates_causes_the_content_four_times() {
    let block = |sbn| (BlockId { toi: Toi(1), sbn: Sbn(sbn) }, 100);
    let config = RepairConfig {
        blocks: (0..10).map(block).collect(),
        symbols_per_second: 1e6,
        pending_capacity: 48,
        max_receivers: 1 << 16,
        max_age: None,
        trusts_unauthenticated: false,
        has_signers: false,
    };
    let mut rounds = RepairRounds::new(config, Instant::ZERO);
    let (mut now, mut given) = (Instant::ZERO, [0, 0]);
    for counter in 0..24_000_u32 {
        now = now + Duration::from_millis(100);
        rounds.handle_sent(now);
        rounds.handle_timeout(now);
        let Some(call) = rounds.call(now, 4, Duration::from_millis(1)) else { continue };
        let mut id = [0; 16];
        id[..4].copy_from_slice(&counter.to_be_bytes());
        let need = |sbn| BlockNeed { toi: 1, sbn, symbols: u32::MAX };
        let request = RepairRequest {
            receiver: ReceiverId(id),
            round: call.round,
            echo: RollCallEcho::default(),
            loss_ppm: 0,
            mute_us: 0,
            may_lack_more: false,
            blocks: (0..10).map(need).collect(),
            maps: Vec::new(),
        };
        let by = authority(ReceiverId([1; 16]), false);
        let _ = rounds.handle_request(now, &request, 0, by);
        let symbols = rounds.poll_symbols().into_iter().flatten();
        given[usize::from(counter >= 12_000)] += symbols.map(|(_, n)| u64::from(n)).sum::<u64>();
    }
    // Twenty minutes each.
    assert!((5_900..=6_100).contains(&given[0]), "{given:?}");
    assert!((1_900..=2_100).contains(&given[1]), "{given:?}");
}

/// A host invents receivers that request one symbol each: more requests than close a round.
#[test]
fn requests_of_one_network_close_no_round() {
    let closed = |networks: u8, is_authenticated| {
        let config = RepairConfig {
            blocks: BTreeMap::from([(BlockId { toi: Toi(1), sbn: Sbn(0) }, 100)]),
            symbols_per_second: 1e3,
            pending_capacity: 48,
            max_receivers: 100,
            max_age: None,
            trusts_unauthenticated: false,
            has_signers: false,
        };
        let mut rounds = RepairRounds::new(config, Instant::ZERO);
        rounds.handle_sent(Instant::ZERO);
        let call = rounds.call(Instant::ZERO, 40, Duration::ZERO).unwrap();
        for number in 0..15 {
            let request = RepairRequest {
                receiver: ReceiverId([number; 16]),
                round: call.round,
                echo: RollCallEcho::default(),
                loss_ppm: 0,
                mute_us: 0,
                may_lack_more: false,
                blocks: vec![BlockNeed { toi: 1, sbn: 0, symbols: 1 }],
                maps: Vec::new(),
            };
            let by = authority(ReceiverId([number % networks; 16]), is_authenticated);
            rounds.handle_request(Instant::ZERO, &request, 0, by).unwrap();
        }
        rounds.call(Instant::ZERO, 40, Duration::ZERO).unwrap().is_closed
    };
    assert_eq!([closed(1, false), closed(3, false)], [false, false]);
    assert_eq!([closed(15, false), closed(1, true)], [true, true]);
}

/// A short session has sent its source symbols before the sender knows how few receivers there are.
#[test]
fn a_round_that_was_called_for_many_receivers_does_not_wait_when_there_are_few() {
    let block = BlockId { toi: Toi(1), sbn: Sbn(0) };
    let config = RepairConfig {
        blocks: BTreeMap::from([(block, 100)]),
        symbols_per_second: 1e3,
        pending_capacity: 48,
        max_receivers: 8,
        max_age: None,
        trusts_unauthenticated: false,
        has_signers: false,
    };
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    for seed in 0..100 {
        let mut rounds = RepairRounds::new(config.clone(), Instant::ZERO);
        let (id, label) = (ReceiverId([1; 16]), ReceiverLabel::default());
        let mut reporter = Reporter::new(ReporterConfig::new(id, label, seed));
        rounds.handle_sent(at(0));
        let mut hear = |ms, receivers, round_trip_ms| {
            let round_trip = Duration::from_millis(round_trip_ms);
            let repair = rounds.call(at(ms), receivers, round_trip);
            let window = repair.as_ref().unwrap().window_us;
            let call = RollCall { repair, ..roll_call(ms) };
            let lacking = |_| Lacking {
                blocks: vec![BlockNeed { toi: 1, sbn: 0, symbols: 7 }],
                ..Lacking::default()
            };
            reporter.handle_roll_call(at(ms), &call, PacketCounts::default(), lacking);
            Duration::from_micros(window.into())
        };
        let (many, few) = (hear(0, 2_048, 25), hear(200, 3, 1));
        assert!(
            many > Duration::from_millis(250) && few < Duration::from_millis(10),
            "{many:?} {few:?}"
        );
        let due = reporter.poll_timeout().unwrap();
        assert!(due <= at(200) + few, "{due:?} with seed {seed}");
        // And the sender does not wait for others: the next round is due.
        rounds.handle_timeout(at(300));
        assert!(rounds.wants_call(at(300)));
    }
}

/// A forged loss makes a session wait for silent rounds, until it is forgotten.
#[test]
fn the_largest_loss_is_forgotten() {
    let config = RepairConfig {
        blocks: BTreeMap::from([(BlockId { toi: Toi(1), sbn: Sbn(0) }, 100)]),
        symbols_per_second: 1e3,
        pending_capacity: 48,
        max_receivers: 8,
        max_age: None,
        trusts_unauthenticated: false,
        has_signers: false,
    };
    let mut rounds = RepairRounds::new(config, Instant::ZERO);
    let mut now = Instant::ZERO;
    let step = |rounds: &mut RepairRounds, now: &mut Instant| {
        *now = *now + Duration::from_millis(20);
        rounds.handle_sent(*now);
        rounds.handle_timeout(*now);
        let _ = rounds.call(*now, 1, Duration::from_millis(1));
    };
    (0..50).for_each(|_| step(&mut rounds, &mut now));
    assert!(rounds.is_silent());
    rounds.note_loss(now, 1_000_000);
    assert!(!rounds.is_silent());
    now = now + Duration::from_secs(61);
    step(&mut rounds, &mut now);
    assert!(!rounds.is_silent(), "for a minute at least");
    now = now + Duration::from_secs(61);
    step(&mut rounds, &mut now);
    assert!(rounds.is_silent());
}

/// Of a code whose symbols repeat, receivers name the symbols that they lack. Each is sent once for
/// all, and only if it exists.
#[test]
fn symbols_that_are_named_are_given_out_once_in_a_round() {
    let block = |sbn| BlockId { toi: Toi(1), sbn: Sbn(sbn) };
    let config = RepairConfig {
        blocks: (0..2).map(|sbn| (block(sbn), 300)).collect(),
        symbols_per_second: 1_000.0,
        pending_capacity: 48,
        max_receivers: 8,
        max_age: None,
        trusts_unauthenticated: false,
        has_signers: false,
    };
    let mut rounds = RepairRounds::new(config, Instant::ZERO);
    rounds.handle_sent(Instant::ZERO);
    let call = rounds.call(Instant::ZERO, 2, Duration::ZERO).unwrap();
    let mut map = SymbolMap::new(1, 0, 290);
    assert!([291, 299, 300, 545].into_iter().all(|esi| map.add(esi)) && !map.add(546));
    let request = |id, maps| RepairRequest {
        receiver: ReceiverId([id; 16]),
        round: call.round,
        echo: RollCallEcho::default(),
        loss_ppm: 0,
        mute_us: 0,
        may_lack_more: false,
        blocks: Vec::new(),
        maps,
    };
    let unknown = SymbolMap::new(9, 0, 0);
    for (id, maps) in [(1, vec![map, unknown]), (2, vec![map, SymbolMap::new(1, 1, 7)])] {
        rounds.handle_request(Instant::ZERO, &request(id, maps), 0, Authority::Group).unwrap();
    }
    let named = rounds.poll_named().unwrap();
    let esis: Vec<_> = named.iter().map(|(block, esi)| (block.sbn.0, esi.0)).collect();
    assert_eq!(esis, [(0, 290), (0, 291), (0, 299), (1, 7)]);
    assert_eq!((rounds.poll_named(), rounds.poll_symbols()), (None, None));
}

/// The age counts from the end of the source symbols, whenever that is.
#[test]
fn what_is_older_than_the_maximum_age_is_not_repaired() {
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let block = BlockId { toi: Toi(1), sbn: Sbn(0) };
    let config = RepairConfig {
        blocks: BTreeMap::from([(block, 100)]),
        symbols_per_second: 1_000.0,
        pending_capacity: 48,
        max_receivers: 8,
        max_age: Some(Duration::from_secs(10)),
        trusts_unauthenticated: false,
        has_signers: false,
    };
    let mut rounds = RepairRounds::new(config, Instant::ZERO);
    assert!(!rounds.is_too_old(at(100)), "the source symbols are still being sent");
    rounds.handle_sent(at(100));
    let request = |call: &fontana_wire::RepairCall| RepairRequest {
        receiver: ReceiverId([1; 16]),
        round: call.round,
        echo: RollCallEcho::default(),
        loss_ppm: 0,
        mute_us: 0,
        may_lack_more: false,
        blocks: vec![BlockNeed { toi: 1, sbn: 0, symbols: 5 }],
        maps: Vec::new(),
    };
    let call = rounds.call(at(100), 1, Duration::ZERO).unwrap();
    rounds.handle_request(at(101), &request(&call), 0, Authority::Group).unwrap();
    assert_eq!(rounds.poll_symbols(), Some(vec![(block, 5)]));
    rounds.handle_sent(at(102));
    rounds.handle_timeout(at(102));
    let call = rounds.call(at(102), 1, Duration::ZERO).unwrap();
    assert!(!rounds.is_too_old(at(110) - Duration::from_nanos(1)));
    assert!(rounds.is_too_old(at(110)));
    let late = rounds.handle_request(at(110), &request(&call), 1, Authority::Group);
    assert_eq!(late, Err(IgnoredRequest::TooOld));
    // In the name of another, with a counter that it will not reach.
    let forged = rounds.handle_request(at(103), &request(&call), u64::MAX, Authority::Group);
    let own = rounds.handle_request(at(103), &request(&call), 2, Authority::Group);
    assert_eq!((forged, own), (Ok(()), Err(IgnoredRequest::Replayed)));
    let echo = RollCallEcho { serial: 1, ..RollCallEcho::default() };
    let later = RepairRequest { echo, blocks: Vec::new(), ..request(&call) };
    assert_eq!(rounds.handle_request(at(104), &later, 3, Authority::Group), Ok(()));
    rounds.poll_symbols();
    assert_eq!(rounds.poll_symbols(), None);
}

/// The sender on ids: symbols that are named follow the source symbols, each once.
#[test]
fn a_sender_without_a_code_sends_again_what_is_named() {
    let layout = Oti { transfer_length: 300_000, symbol_size: 1000, scheme: NO_CODE };
    let layout = layout.layout().unwrap();
    let mut sender = repairing(layout, true);
    let block = |sbn| BlockId { toi: Toi(1), sbn: Sbn(sbn) };
    let named = [(block(0), Esi(5)), (block(0), Esi(99)), (block(2), Esi(0))];
    let mut maps = [SymbolMap::new(1, 0, 5), SymbolMap::new(1, 2, 0), SymbolMap::new(9, 0, 0)];
    assert!(maps[0].add(99));
    let symbols = sent(&mut sender, &[], &maps);
    assert_eq!(symbols.len(), 303);
    let again: Vec<_> = symbols[300..].iter().map(|&(_, block, esi)| (block, esi)).collect();
    assert_eq!(again, named);
}

/// The sender on ids: symbols that are requested follow the source symbols, are fresh, and blocks
/// alternate. Then nothing but control packets is sent.
#[test]
fn a_sender_sends_fresh_symbols_of_what_is_requested_and_then_rests() {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 3, sub_blocks: 1, alignment: 4 });
    let layout = Oti { transfer_length: 300_000, symbol_size: 1000, scheme }.layout().unwrap();
    for source_pass in [true, false] {
        let mut sender = repairing(layout, source_pass);
        let block = |sbn| BlockId { toi: Toi(1), sbn: Sbn(sbn) };
        let need = |(toi, sbn, symbols)| BlockNeed { toi, sbn, symbols };
        let needs = [(1, 0, 30), (1, 2, 10), (9, 0, 5)].map(need);
        let symbols = sent(&mut sender, &needs, &[]);
        let source = symbols.iter().filter(|(ms, ..)| *ms < 600).count();
        assert_eq!(source, if source_pass { 300 } else { 0 });
        let repair = &symbols[source..];
        let of = |sbn| repair.iter().filter(|(_, id, _)| *id == block(sbn)).count();
        assert_eq!((of(0), of(1), of(2)), (30, 0, 10));
        assert!(repair.iter().all(|(_, _, esi)| esi.0 >= 100), "fresh symbols");
        let distinct: BTreeSet<_> = symbols.iter().map(|&(_, id, esi)| (id, esi)).collect();
        assert_eq!(distinct.len(), symbols.len());
        // The block of which little is lacking is ready after twice as many symbols.
        let last = repair.iter().rposition(|(_, id, _)| *id == block(2)).unwrap();
        assert!(last <= 22, "{last}");
    }
}

/// A roll call that asks for no report.
fn roll_call(serial: u64) -> RollCall {
    RollCall {
        instance: INSTANCE,
        tsi: Tsi(5),
        serial,
        issued_unix_ms: CLOCK,
        collector: "10.0.0.1:9".parse().unwrap(),
        round: 1,
        position: u32::MAX,
        window_ms: 1_000_000,
        head_count: 3,
        known: 0,
        salt: serial,
        list: RollCallList::Known(Vec::new()),
        repair: None,
        rate: None,
    }
}

/// The last roll call tells the last receivers that they are known.
#[test]
fn a_session_is_over_when_its_last_roll_call_is_sent() {
    let layout = Oti { transfer_length: 3_000, symbol_size: 1000, scheme: NO_CODE };
    let config = collection(RepairBy::Nothing, Expected::Anyone, 1);
    let deadline = Some(Duration::from_millis(700));
    let config = CollectionConfig { deadline, ..config };
    let mut sender = sender(layout.layout().unwrap(), true).with_collection(config, Instant::ZERO);
    let (mut header, mut said) = (Vec::new(), Vec::new());
    for ms in 0..2000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        sender.handle_timeout(now);
        while let Some(output) = sender.poll_output(now, &mut header) {
            match output {
                Output::Job(SendJob::Prepare { batch, .. }) => {
                    sender.handle_done(now, SendDone::Prepared { batch });
                }
                Output::Job(SendJob::Sign(call)) => {
                    let call = call.emit(&SecretKey::from_seed(&[7; 32]));
                    sender.handle_done(now, SendDone::Signed(call));
                    said.push((ms, "signed"));
                }
                Output::Transmit { symbol: None, .. } => said.push((ms, "sent")),
                Output::Event(SenderEvent::Over) => said.push((ms, "over")),
                _ => {}
            }
            header.clear();
        }
    }
    assert_eq!(said.last(), Some(&(700, "over")), "{said:?}");
    let each = said.chunks_exact(2).all(|pair| (pair[0].1, pair[1].1) == ("signed", "sent"));
    assert!(each && said.len() >= 5, "{said:?}");
}

const NO_CODE: FecScheme = FecScheme::NoCode(NoCode { max_source_block_length: 100 });

/// A sender that repairs on demand.
fn repairing(layout: ObjectLayout, source_pass: bool) -> Sender {
    sender(layout, source_pass).with_collection(rounds(layout), Instant::ZERO)
}

/// Its receivers: anyone.
fn rounds(layout: ObjectLayout) -> CollectionConfig {
    let block = |sbn| {
        let k = layout.source_symbols(sbn).unwrap();
        (BlockId { toi: Toi(1), sbn }, k)
    };
    let repair = RepairConfig {
        blocks: (0..layout.block_count()).map(Sbn).map(block).collect(),
        symbols_per_second: 1_000.0,
        pending_capacity: 64,
        max_receivers: 16,
        max_age: None,
        trusts_unauthenticated: false,
        has_signers: false,
    };
    collection(RepairBy::Rounds(Box::new(repair)), Expected::Anyone, 1)
}

fn sender(layout: ObjectLayout, source_pass: bool) -> Sender {
    Sender::new(SenderConfig {
        mode: SendMode::RepairOnDemand,
        peak_window: Duration::ZERO,
        opening_permille: 100,
        ..SenderConfig::new(
            Tsi(5),
            vec![SendObject { toi: Toi(1), layout, source_pass }],
            1_000_000,
            1,
        )
    })
}

/// The symbols of two seconds, with the millisecond of each. A receiver requests these in the first
/// round after 600 ms, when the source symbols are sent.
fn sent(sender: &mut Sender, blocks: &[BlockNeed], maps: &[SymbolMap]) -> Vec<(u64, BlockId, Esi)> {
    let (mut symbols, mut header, mut has_requested) = (Vec::new(), Vec::new(), false);
    for ms in 0..2000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        sender.handle_timeout(now);
        while let Some(output) = sender.poll_output(now, &mut header) {
            match output {
                Output::Job(SendJob::Prepare { batch, .. }) => {
                    sender.handle_done(now, SendDone::Prepared { batch });
                }
                Output::Job(SendJob::Sign(call)) => {
                    sender.handle_done(now, SendDone::Signed(Vec::new()));
                    let Some(round) = call.repair.filter(|_| ms >= 600 && !has_requested) else {
                        continue;
                    };
                    has_requested = true;
                    let request = Feedback::Request(RepairRequest {
                        receiver: ReceiverId([1; 16]),
                        round: round.round,
                        echo: RollCallEcho { serial: call.serial, held_us: 0 },
                        loss_ppm: 0,
                        mute_us: 0,
                        may_lack_more: false,
                        blocks: blocks.to_vec(),
                        maps: maps.to_vec(),
                    });
                    sender.handle_done(now, opened(&request, 1, Authority::Group));
                }
                Output::Transmit { symbol: Some(symbol), .. } => {
                    symbols.push((ms, symbol.block, symbol.esi));
                }
                Output::Event(event) => panic!("{event:?}"),
                _ => {}
            }
        }
    }
    assert!(has_requested);
    symbols
}

/// Without an end of its own, a session sends no content while all receivers are complete or have
/// failed, and not before others have had one and a half times the source symbols.
#[test]
fn a_sender_rests_while_no_receiver_needs_the_content() {
    let mut config = collection(RepairBy::Nothing, Expected::Anyone, 1);
    config.rests = true;
    let mut collection = Collection::new(config, Instant::ZERO);
    let (mut now, mut counter) = (Instant::ZERO, 0);
    let complete = ReceiverState::Complete { manifest: Hash([3; 32]) };
    // What the collection demands until it has asked: whether the sender rests then.
    let mut ask = |collection: &mut Collection, by, is_enough, answers: &[(u8, ReceiverState)]| {
        let (mut rests, mut is_asked) = (None, false);
        while !is_asked {
            now = now + Duration::from_millis(100);
            let progress = SenderProgress { is_sent: false, is_announcing: false, is_enough };
            while let Some(demand) = collection.poll(now, progress) {
                match demand {
                    Demand::Rest(now_rests) => rests = Some(now_rests),
                    Demand::Call { call, .. } => {
                        collection.handle_signed(now, b"signed");
                        for &(receiver, state) in answers {
                            counter += 1;
                            let echo = RollCallEcho { serial: call.serial, held_us: 0 };
                            let report = report(ReceiverId([receiver; 16]), "", state, call.round);
                            let report = Feedback::Report(ReceiverReport { echo, ..report });
                            let authentic = authentic(&report, counter, by);
                            collection.handle_opened(now, Some(&authentic));
                        }
                        is_asked = true;
                    }
                    _ => {}
                }
            }
        }
        rests
    };
    let receiving = ReceiverState::Receiving;
    let any_host = Authority::Unauthenticated(Network::of([10, 0, 0, 9].into()));
    assert_eq!(ask(&mut collection, any_host, true, &[]), None, "no receiver is known");
    assert_eq!(ask(&mut collection, any_host, true, &[(9, complete)]), None, "it is any host");
    let member = Authority::Group;
    assert_eq!(ask(&mut collection, member, true, &[(1, receiving), (2, complete)]), None);
    assert_eq!(ask(&mut collection, member, false, &[(1, complete)]), None, "too little is sent");
    assert_eq!(ask(&mut collection, member, true, &[]), Some(true));
    assert_eq!(ask(&mut collection, any_host, true, &[(8, receiving)]), None, "it is any host");
    assert_eq!(ask(&mut collection, member, true, &[(3, receiving)]), Some(false), "another one");
    assert_eq!(ask(&mut collection, member, true, &[(3, complete)]), Some(true));
}

/// A receiver that says that it is not complete keeps a session that expects no receiver from its
/// end, until it is silent for two seconds, as a busy host may be, and for thirty seconds at most.
#[test]
fn a_session_waits_for_receivers_that_are_about_to_be_complete() {
    let layout = Oti { transfer_length: 3_000, symbol_size: 1000, scheme: NO_CODE };
    let progress = SenderProgress { is_sent: true, is_announcing: false, is_enough: true };
    for (says_until, ends) in
        [(1_000, 2_900..4_100), (9_000, 10_900..12_100), (60_000, 30_000..31_000)]
    {
        let mut collection = Collection::new(rounds(layout.layout().unwrap()), Instant::ZERO);
        let (mut counter, mut ended_at) = (0, None);
        for ms in 0..40_000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            while let Some(demand) = collection.poll(now, progress) {
                if matches!(demand, Demand::Event(SenderEvent::Over)) {
                    ended_at = ended_at.or(Some(ms));
                }
                let Demand::Call { call, .. } = demand else { continue };
                collection.handle_signed(now, b"signed");
                if ms < says_until {
                    counter += 1;
                    let echo = RollCallEcho { serial: call.serial, held_us: 0 };
                    let state = ReceiverState::Receiving;
                    let report = report(ReceiverId([1; 16]), "", state, call.round);
                    let report = Feedback::Report(ReceiverReport { echo, ..report });
                    let authentic = authentic(&report, counter, Authority::Group);
                    collection.handle_opened(now, Some(&authentic));
                }
            }
        }
        assert!(ends.contains(&ended_at.unwrap()), "{says_until} ms: {ended_at:?}");
    }
}
