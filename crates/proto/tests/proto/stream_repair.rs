//! Repair of streams by what receivers report: real senders and reporters on ids, in virtual time,
//! and real receivers on bytes in `stream.rs`.

use crate::support::answers::{INSTANCE, collection, facts, opened};
use fontana_proto::report::{Answer, Authority, Expected, PacketCounts, Reporter, ReporterConfig};
use fontana_proto::{
    Endpoint, Instant, Lacking, Output, Pacer, RepairBy, SendDone, SendJob, SenderEvent,
    SplitMix64, StreamRedundancy, StreamSender, StreamSenderConfig, StreamStart, repair_symbols,
};
use fontana_wire::{
    BlockNeed, Feedback, Hash, ReceiverId, ReceiverLabel, RelativePath, RepairRequest, RollCall,
    SecretKey, StreamIndex, Tsi,
};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(5);
const SYMBOL_SIZE: u16 = 64;
/// One in so many receivers of repair symbols needs one more than the source symbols, as RaptorQ.
const SURPLUS_ONCE_IN: u64 = 100;

/// What a receiver has of a fragment.
#[derive(Clone, Copy)]
struct Has {
    symbols: u32,
    /// With how many it is complete if a source symbol is lost.
    enough: u32,
    lost_source: bool,
    /// Repair symbols that had been sent when it was complete.
    complete_after: Option<u32>,
}

struct Receiver {
    reporter: Reporter,
    fragments: BTreeMap<u32, Has>,
    /// It claims to lack everything, always.
    lies: bool,
    /// It hears roll calls from then on, and until then.
    reports: (Instant, Instant),
}

struct Conditions {
    receivers: u32,
    liars: u32,
    fragments: u32,
    source_symbols: u32,
    per_second: u32,
    /// Loss at each second.
    loss: fn(u64) -> f64,
    redundancy: StreamRedundancy,
    requested_permille: u32,
    reports: (Instant, Instant),
    seed: u64,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            receivers: 3,
            liars: 0,
            fragments: 1_000,
            source_symbols: 100,
            per_second: 20,
            loss: |_| 0.01,
            redundancy: AUTO,
            requested_permille: *StreamRedundancy::REQUESTED_PERMILLE.end(),
            reports: (Instant::ZERO, FOREVER),
            seed: 1,
        }
    }
}

const AUTO: StreamRedundancy = StreamRedundancy::Reported { permille: 100 };
/// Fragments of the first second, in which receivers report for the first time.
const FIRST: usize = 20;
const FOREVER: Instant = Instant::from_nanos(u64::MAX);

/// A fragment that the sender sends.
#[derive(Clone, Copy, Default)]
struct Sent {
    repair: u32,
}

/// What a run has taken.
#[derive(Debug, Default)]
struct Run {
    /// Fragments that a receiver did not complete.
    missing: u32,
    /// Repair symbols sent, and the fewest that would have been enough.
    repair: u64,
    needed: u64,
    /// The same of each fragment.
    of: Vec<(u32, u32)>,
    most_on_air: u32,
    seconds: f64,
}

impl Run {
    fn ratio(&self) -> f64 {
        self.repair as f64 / self.needed.max(1) as f64
    }
}

struct Session<'c> {
    conditions: &'c Conditions,
    now: Instant,
    random: SplitMix64,
    sender: StreamSender,
    /// Roll calls that are to be heard.
    calls: Vec<RollCall>,
    crowd: Vec<Receiver>,
    sent: BTreeMap<u32, Sent>,
    next: u32,
    /// Answers on their way.
    up: VecDeque<(Instant, Feedback, u64)>,
    run: Run,
    is_finished: bool,
}

impl<'c> Session<'c> {
    fn new(conditions: &'c Conditions) -> Self {
        let Conditions { receivers, liars, source_symbols, per_second, seed, .. } = *conditions;
        // A quarter more than the symbols and their headers take.
        let packet = u64::from(SYMBOL_SIZE) + 60;
        let rate = u64::from(source_symbols * per_second) * packet * 3 / 2 + 200_000;
        let sender = StreamSender::new(StreamSenderConfig {
            expiry: None,
            seal: None,
            tsi: Tsi(5),
            instance: INSTANCE,
            signer: SecretKey::from_seed(&[1; 32]),
            first_version: 1000,
            name: RelativePath::new("dump").unwrap(),
            symbol_size: SYMBOL_SIZE,
            // One packet has the index: no code is planned for each version.
            control_symbol_size: 4_000,
            max_symbols: source_symbols,
            redundancy: conditions.redundancy,
            requested_permille: conditions.requested_permille,
            rate_bytes_per_second: rate,
            packet_overhead: 28,
            peak_window: Pacer::PEAK_WINDOW,
            start: StreamStart::After(Duration::ZERO),
            seed,
        });
        let repair = RepairBy::Stream { waits_for: 0, on_request: true };
        let config = collection(repair, Expected::Count(receivers), seed);
        let receiver = |number: u32| {
            let mut id = [9; 16];
            id[..4].copy_from_slice(&number.to_be_bytes());
            let (id, label) = (ReceiverId(id), ReceiverLabel::default());
            let seed = seed << 32 | u64::from(number);
            let reporter = Reporter::new(ReporterConfig::new(id, label, seed));
            let (fragments, lies) = (BTreeMap::new(), number < liars);
            Receiver { reporter, fragments, lies, reports: conditions.reports }
        };
        Self {
            conditions,
            now: Instant::ZERO,
            random: SplitMix64::new(seed, 77),
            sender: sender.unwrap().with_collection(config, Instant::ZERO),
            calls: Vec::new(),
            crowd: (0..receivers).map(receiver).collect(),
            sent: BTreeMap::new(),
            next: 0,
            up: VecDeque::new(),
            run: Run::default(),
            is_finished: false,
        }
    }

    fn loss(&self) -> f64 {
        (self.conditions.loss)(self.now.as_nanos() / 1_000_000_000)
    }

    fn is_lost(&mut self) -> bool {
        let loss = self.loss();
        self.random.unit() < loss
    }

    /// The producer makes a fragment when it is due, and waits while there is no room.
    fn produce(&mut self) {
        let Conditions { fragments, source_symbols, per_second, .. } = *self.conditions;
        let due = u64::from(self.next) * 1_000_000_000 / u64::from(per_second);
        if self.next == fragments {
            self.sender.finish(true);
        } else if self.now >= Instant::from_nanos(due) && self.sender.wants_fragment() {
            let length = source_symbols * u32::from(SYMBOL_SIZE);
            let number = self.sender.push_fragment(length, Hash([1; 32])).unwrap();
            self.sent.insert(number, Sent::default());
            for receiver in &mut self.crowd {
                let surplus = self.random.next_u64().is_multiple_of(SURPLUS_ONCE_IN);
                let enough = source_symbols + u32::from(surplus);
                let has = Has { symbols: 0, enough, lost_source: false, complete_after: None };
                receiver.fragments.insert(number, has);
            }
            self.next += 1;
        }
    }

    /// The sender sends what is due, and receivers take what is not lost.
    fn send(&mut self) {
        let mut header = Vec::new();
        while let Some(output) = self.sender.poll_output(self.now, &mut header) {
            header.clear();
            match output {
                Output::Transmit { symbol: Some(symbol), .. } => {
                    let number = StreamIndex::number(symbol.block.toi).unwrap();
                    self.deliver(number, symbol.esi.0 >= self.conditions.source_symbols);
                }
                Output::Job(SendJob::Release { batch }) if batch.0 % 2 == 1 => {
                    self.forget((batch.0 / 2) as u32);
                }
                Output::Job(SendJob::Sign(call)) => {
                    self.calls.push(*call);
                    self.sender.handle_done(self.now, SendDone::Signed(Vec::new()));
                }
                Output::Event(SenderEvent::Finished) => self.is_finished = true,
                _ => {}
            }
        }
        let on_air = self.sent.len() as u32;
        // At first there are fragments with the fixed share, which is spread.
        if self.now >= Instant::ZERO + Duration::from_secs(5) {
            self.run.most_on_air = self.run.most_on_air.max(on_air);
        }
    }

    fn deliver(&mut self, number: u32, is_repair: bool) {
        let k = self.conditions.source_symbols;
        let loss = self.loss();
        let sent = self.sent.get_mut(&number).expect("a symbol of a fragment that is sent");
        sent.repair += u32::from(is_repair);
        let repair = sent.repair;
        for receiver in &mut self.crowd {
            let has = receiver.fragments.get_mut(&number).unwrap();
            if self.random.unit() < loss {
                has.lost_source |= !is_repair;
                continue;
            }
            has.symbols += 1;
            let enough = if has.lost_source { has.enough } else { k };
            if has.symbols >= enough {
                has.complete_after.get_or_insert(repair);
            }
        }
    }

    /// The sender has given up a fragment, or knows that it is complete.
    fn forget(&mut self, number: u32) {
        let sent = self.sent.remove(&number).unwrap();
        let mut needed = 0;
        for receiver in &mut self.crowd {
            let has = receiver.fragments.remove(&number).unwrap();
            self.run.missing += u32::from(has.complete_after.is_none());
            needed = needed.max(has.complete_after.unwrap_or(sent.repair));
        }
        self.run.of.push((sent.repair, needed));
        self.run.repair += u64::from(sent.repair);
        self.run.needed += u64::from(needed);
    }

    /// Receivers hear the roll calls, and answer.
    fn call(&mut self) {
        let now = self.now;
        for call in std::mem::take(&mut self.calls) {
            for at in 0..self.crowd.len() {
                let hears = !self.is_lost();
                let receiver = &mut self.crowd[at];
                if hears && (receiver.reports.0..receiver.reports.1).contains(&now) {
                    let lacking = receiver.lacking();
                    let none = PacketCounts::default();
                    receiver.reporter.handle_roll_call(now, &call, none, |_| lacking);
                }
            }
        }
        let (loss, delay) = (self.loss(), STEP);
        for receiver in &mut self.crowd {
            let said = if receiver.lies { 1.0 } else { loss };
            while let Some(due) = receiver.reporter.poll(now, |_| facts(said)) {
                let Answer { counter, feedback, .. } = due;
                if self.random.unit() >= loss {
                    self.up.push_back((now + delay, feedback, counter));
                }
            }
        }
    }

    /// The sender handles the answers that have arrived.
    fn collect(&mut self) {
        let now = self.now;
        while self.up.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, feedback, counter)) = self.up.pop_front() else { break };
            self.sender.handle_done(now, opened(&feedback, counter, Authority::Group));
        }
    }
}

impl Receiver {
    fn lacking(&self) -> Lacking {
        let need = |(&number, has): (&u32, &Has)| {
            let toi = StreamIndex::toi(number).0 as u32;
            let symbols = match (self.lies, has.complete_after) {
                (true, _) => u32::MAX,
                (false, Some(_)) => return None,
                (false, None) => has.enough.saturating_sub(has.symbols).max(1),
            };
            Some(BlockNeed { toi, sbn: 0, symbols })
        };
        let blocks = self.fragments.iter().filter_map(need).take(RepairRequest::MAX_BLOCKS);
        Lacking { blocks: blocks.collect(), ..Lacking::default() }
    }
}

/// Runs a stream to its end.
fn run(conditions: &Conditions) -> Run {
    let mut session = Session::new(conditions);
    let expected = f64::from(conditions.fragments) / f64::from(conditions.per_second);
    while !session.is_finished {
        session.now = session.now + STEP;
        session.run.seconds = session.now.as_nanos() as f64 / 1e9;
        assert!(session.run.seconds < 4.0 * expected + 60.0, "it does not end");
        session.produce();
        session.send();
        session.call();
        session.collect();
    }
    assert!(session.sent.is_empty(), "fragments are left");
    session.run
}

#[test]
fn at_a_loss_of_one_per_cent_no_fragment_is_missing_and_half_of_the_repair_is_needed() {
    for (source_symbols, receivers) in [(20, 3), (100, 1), (100, 4), (1_000, 4)] {
        for seed in 1..=3 {
            let fragments = 2_000;
            let run = run(&Conditions {
                source_symbols,
                receivers,
                fragments,
                // A faster producer waits for fragments that are listed.
                per_second: 15,
                seed,
                ..Conditions::default()
            });
            println!(
                "{source_symbols} symbols, {receivers} receivers, seed {seed}: {} missing, {:.3} of \
                 what was needed, {:.4} of the source symbols, {} on air, {:.0} s",
                run.missing,
                run.ratio(),
                run.repair as f64 / f64::from(fragments * source_symbols),
                run.most_on_air,
                run.seconds
            );
            assert_eq!(run.missing, 0, "{source_symbols} symbols, seed {seed}");
            assert!(run.ratio() <= 2.0, "{source_symbols} symbols, seed {seed}: {}", run.ratio());
        }
    }
}

/// The target of this feature, in full.
#[test]
fn no_fragment_of_a_hundred_thousand_is_missing() {
    let run = run(&Conditions {
        fragments: 100_000,
        source_symbols: 20,
        receivers: 4,
        ..Conditions::default()
    });
    println!(
        "{} missing, {:.3} of what was needed, {} on air, {:.0} s",
        run.missing,
        run.ratio(),
        run.most_on_air,
        run.seconds
    );
    assert_eq!(run.missing, 0);
    assert!(run.ratio() <= 2.0, "{}", run.ratio());
}

/// Without losses nothing is repaired, and fragments are listed for hardly longer than without
/// reports.
#[test]
fn without_loss_no_repair_symbol_is_sent() {
    let run = run(&Conditions { loss: |_| 0.0, ..Conditions::default() });
    assert_eq!(run.missing, 0);
    // Before the first report the share is fixed.
    assert!(run.of[FIRST..].iter().all(|&(repair, _)| repair == 0));
    assert!(run.most_on_air <= 24, "{}", run.most_on_air);
}

#[test]
fn at_a_loss_of_five_per_cent_no_fragment_is_missing() {
    for (source_symbols, seed) in [(20, 1), (100, 1), (100, 2), (1_000, 1)] {
        let run = run(&Conditions {
            source_symbols,
            per_second: 15,
            loss: |_| 0.05,
            seed,
            ..Conditions::default()
        });
        println!(
            "{source_symbols} symbols, seed {seed}: {:.3}, {} on air",
            run.ratio(),
            run.most_on_air
        );
        assert_eq!(run.missing, 0, "{source_symbols} symbols, seed {seed}");
        assert!(run.ratio() <= 2.0, "{source_symbols} symbols, seed {seed}: {}", run.ratio());
    }
}

/// As over a bad radio link, from the first fragment on.
#[test]
fn at_a_loss_of_thirty_per_cent_no_fragment_is_missing() {
    for (source_symbols, seed) in [(20, 1), (100, 1), (100, 2), (1_000, 1)] {
        let run = run(&Conditions {
            source_symbols,
            per_second: 5,
            fragments: 300,
            loss: |_| 0.3,
            seed,
            ..Conditions::default()
        });
        println!(
            "{source_symbols} symbols, seed {seed}: {} missing, {:.3}, {} on air, {:.0} s",
            run.missing,
            run.ratio(),
            run.most_on_air,
            run.seconds
        );
        assert_eq!(run.missing, 0, "{source_symbols} symbols, seed {seed}");
        assert!(run.ratio() <= 1.5, "{source_symbols} symbols, seed {seed}: {}", run.ratio());
    }
}

/// 5 % from the 20th to the 30th second. The first fragments of that time are repaired by requests
/// alone, and the share has decayed within a few rounds after it.
#[test]
fn the_share_follows_a_loss_that_begins_and_ends() {
    for seed in 1..=5 {
        let run = run(&Conditions {
            loss: |second| if (20..30).contains(&second) { 0.05 } else { 0.0 },
            per_second: 10,
            fragments: 500,
            seed,
            ..Conditions::default()
        });
        assert_eq!(run.missing, 0, "seed {seed}");
        let repair = |fragments: std::ops::Range<usize>| -> u32 {
            run.of[fragments].iter().map(|&(repair, _)| repair).sum()
        };
        let [during, soon_after] = [repair(200..300), repair(305..350)];
        println!("seed {seed}: {during} for 100 fragments, {soon_after} for 45 after them");
        assert_eq!(repair(FIRST..198), 0, "seed {seed}: before the loss");
        assert!((600..1_400).contains(&during), "seed {seed}: {during}");
        assert!(soon_after < 200, "seed {seed}: {soon_after}");
        assert_eq!(repair(350..500), 0, "seed {seed}: long after the loss");
    }
}

/// While no receiver reports, fragments have the fixed share: before the first report, and after
/// the last one.
#[test]
fn without_a_receiver_that_reports_the_share_is_fixed() {
    let second = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let run = run(&Conditions {
        reports: (second(10), second(30)),
        loss: |_| 0.0,
        ..Conditions::default()
    });
    assert_eq!(run.missing, 0);
    let share = repair_symbols(100, 100);
    let repair: Vec<u32> = run.of.iter().map(|&(repair, _)| repair).collect();
    assert!(repair[..200].iter().all(|&repair| repair == share), "before the first report");
    assert!(repair[300..590].iter().all(|&repair| repair == 0), "while receivers report");
    assert!(repair[760..].iter().all(|&repair| repair == share), "after the last report");
}

/// One of four claims to lack everything and to lose half. The others get the stream, and it costs
/// at most what is made of a fragment.
#[test]
fn a_receiver_that_lies_causes_no_more_than_the_symbols_that_are_made() {
    let conditions = Conditions {
        receivers: 4,
        liars: 1,
        per_second: 5,
        fragments: 300,
        ..Conditions::default()
    };
    let run = run(&conditions);
    let most = AUTO.prepared(100, conditions.requested_permille);
    assert!(run.of.iter().all(|&(repair, _)| repair <= most));
    assert_eq!(run.missing, 0);
}
