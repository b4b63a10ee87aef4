//! A sender that collects reports and repairs on demand, receivers that are killed and started
//! again at any step, and strangers who report and request what they like, from any address, with
//! any id, and send again what receivers have sent.

use crate::support::answers::{facts, report};
use crate::support::plain::{CLOCK, Plain};
use fontana_fec::Sbn;
use fontana_proto::report::{
    Answer, Authority, CollectorConfig, Expected, ExpectedReceiver, ExpectedState, IgnoredReport,
    Network, PacketCounts, ReceiverStatus, RepairConfig, RepairRounds, ReportCollector,
    ReportFacts, Reporter, ReporterConfig,
};
use fontana_proto::{BlockId, Instant, Lacking, SplitMix64};
use fontana_wire::{
    BlockNeed, Feedback, FeedbackDatagram, Hash, InstanceId, OpenedFeedback, ReceiverId,
    ReceiverReport, ReceiverState, RepairRequest, RollCall, RollCallEcho, SealId, SecretKey, Toi,
    Tsi,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const INSTANCE: InstanceId = InstanceId([5; 16]);
const MANIFEST: Hash = Hash([3; 32]);
const COMPLETE: ReceiverState = ReceiverState::Complete { manifest: MANIFEST };
/// As in the product.
const MOST: usize = 1 << 16;

fn config(expected: Expected) -> CollectorConfig {
    CollectorConfig {
        expected,
        list_capacity: RollCall::capacity(1388, None).unwrap(),
        ..CollectorConfig::new(INSTANCE, Tsi(5), MANIFEST, "10.0.0.7:40007".parse().unwrap(), 1)
    }
}

fn signed(label: &str, key: &SecretKey) -> ExpectedReceiver {
    ExpectedReceiver { label: label.parse().unwrap(), key: Some(key.public_key()) }
}

fn id(number: u64) -> ReceiverId {
    // Ids are random.
    let mut random = SplitMix64::new(number, 9);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random.next_u64().to_be_bytes());
    id[8..].copy_from_slice(&random.next_u64().to_be_bytes());
    ReceiverId(id)
}

fn opened(feedback: &Feedback, counter: u64, key: Option<&SecretKey>) -> OpenedFeedback {
    let bytes = feedback.emit(SealId::from(INSTANCE), counter, key, None::<&Plain>);
    FeedbackDatagram::parse(&bytes).unwrap().open(None::<&Plain>).unwrap()
}

/// Handles a report as the product does.
fn take(
    collector: &mut ReportCollector,
    now: Instant,
    report: ReceiverReport,
    counter: u64,
    key: Option<&SecretKey>,
    from: impl Into<IpAddr>,
) -> Result<Option<ReceiverStatus>, IgnoredReport> {
    let opened = opened(&Feedback::Report(report), counter, key);
    let by = collector.authority(&opened, from.into());
    collector.handle_report(now, &opened, by)
}

fn address(number: u32) -> IpAddr {
    Ipv4Addr::from(0x0A00_0000 + number).into()
}

fn state(collector: &ReportCollector, label: &str) -> Option<ExpectedState> {
    let missing = collector.summary().missing.into_iter();
    missing.into_iter().find(|it| it.label.as_str() == label).map(|it| it.state)
}

/// 70 000 reports that nothing authenticates, each of another id: from one host, and from as many
/// as there are reports.
#[test]
fn strangers_take_no_place_of_a_receiver_that_signs_and_do_not_delay_its_round() {
    for hosts in [1, 70_000] {
        let key = SecretKey::from_seed(&[1; 32]);
        let expected = Expected::Named(vec![signed("a", &key)]);
        let mut collector = ReportCollector::new(config(expected), Instant::ZERO);
        let mut now = Instant::ZERO;
        let mut call = collector.poll_roll_call(now, CLOCK).unwrap();
        for number in 0..70_000 {
            now = now + Duration::from_micros(100);
            let strange = report(id(number), "", ReceiverState::Receiving, call.round);
            let from = address(number as u32 % hosts);
            let _ = take(&mut collector, now, strange, 0, None, from);
            call = collector.poll_roll_call(now, CLOCK).unwrap_or(call);
            assert!(call.window_ms <= 3_000, "{} ms for {}", call.window_ms, call.head_count);
        }
        let known = collector.summary().known;
        assert!(known <= MOST as u64 / 4, "{known} strangers");
        assert!(hosts > 1 || known <= 1 << 10, "{known} strangers of one host");
        let honest = report(id(1 << 40), "a", ReceiverState::Receiving, call.round);
        take(&mut collector, now, honest, 0, Some(&key), address(1 << 20)).unwrap();
        let receiving = Some(ExpectedState::Reported(ReceiverState::Receiving));
        assert_eq!(state(&collector, "a"), receiving);
        assert!(collector.head_count() <= 10, "repair is for {}", collector.head_count());
    }
}

/// Beside receivers that sign, others have a part of the answers of each round: those of earlier
/// rounds do not use it up.
#[test]
fn others_have_their_part_of_each_round() {
    const OTHERS: u32 = 40;
    let key = SecretKey::from_seed(&[1; 32]);
    let expected = Expected::Named(vec![signed("a", &key)]);
    let mut collector = ReportCollector::new(config(expected), Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut call = collector.poll_roll_call(now, CLOCK).unwrap();
    for counter in 0..20 {
        for number in 0..OTHERS {
            let other = report(id(number.into()), "", ReceiverState::Receiving, call.round);
            take(&mut collector, now, other, counter, None, address(number)).unwrap();
        }
        let round = call.round;
        while call.round == round {
            now = now + Duration::from_millis(10);
            call = collector.poll_roll_call(now, CLOCK).unwrap_or(call);
        }
        assert!(collector.head_count() >= OTHERS, "round {round}: {}", collector.head_count());
    }
}

/// A stranger reads the id of a receiver that signs, and uses it.
#[test]
fn a_report_that_nothing_authenticates_changes_nothing_of_a_receiver_that_signs() {
    let key = SecretKey::from_seed(&[1; 32]);
    let expected = Expected::Named(vec![signed("a", &key)]);
    let mut collector = ReportCollector::new(config(expected), Instant::ZERO);
    let now = Instant::ZERO;
    let tell = |collector: &mut ReportCollector, label, state, counter, key: Option<&_>| {
        take(collector, now, report(id(1), label, state, 1), counter, key, address(1))
    };
    tell(&mut collector, "", ReceiverState::Receiving, u64::MAX, None).unwrap();
    tell(&mut collector, "a", ReceiverState::Receiving, 0, Some(&key)).unwrap();
    tell(&mut collector, "", COMPLETE, u64::MAX, None).unwrap_err();
    tell(&mut collector, "b", COMPLETE, u64::MAX - 1, None).unwrap_err();
    tell(&mut collector, "a", COMPLETE, u64::MAX, None).unwrap_err();
    tell(&mut collector, "a", COMPLETE, 1, Some(&key)).unwrap();
    assert!(collector.summary().is_as_expected(), "{:?}", collector.summary());
}

/// The first places are those of one host; honest receivers are each on another.
#[test]
fn a_network_with_most_places_gives_way_to_others() {
    let mut collector = ReportCollector::new(
        CollectorConfig { max_receivers: 80, ..config(Expected::Anyone) },
        Instant::ZERO,
    );
    let now = Instant::ZERO;
    let mut tell = |number: u64, from| {
        let report = report(id(number), "", ReceiverState::Receiving, 1);
        take(&mut collector, now, report, 0, None, address(from)).map(|_| ())
    };
    (0..20).for_each(|number| tell(number, 1).unwrap());
    assert_eq!(tell(20, 1), Err(IgnoredReport::TooMany));
    (0..19).for_each(|number| tell(100 + u64::from(number), 100 + number).unwrap());
    assert_eq!(tell(200, 200), Err(IgnoredReport::TooMany), "all have one");
    let others = (0..19).filter(|&number| {
        let by = Authority::Unauthenticated(Network::of(address(100 + number)));
        collector.knows(by, &id(100 + u64::from(number)))
    });
    assert_eq!(others.count(), 19);
}

/// A member of the group invents receivers; one that is expected by its name has a place.
#[test]
fn an_expected_name_displaces_members_of_the_group_whose_names_are_not_expected() {
    let expected = ExpectedReceiver { label: "a".parse().unwrap(), key: None };
    let config = CollectorConfig { max_receivers: 50, ..config(Expected::Named(vec![expected])) };
    let mut collector = ReportCollector::new(config, Instant::ZERO);
    let mut tell = |number: u64, label: &str| {
        let report = report(id(number), label, ReceiverState::Receiving, 1);
        let opened = opened(&Feedback::Report(report), 0, None);
        collector.handle_report(Instant::ZERO, &opened, Authority::Group).map(|_| ())
    };
    (0..50).for_each(|number| tell(number, "").unwrap());
    assert_eq!(tell(50, "b"), Err(IgnoredReport::TooMany));
    tell(51, "a").unwrap();
    let receiving = ExpectedState::Reported(ReceiverState::Receiving);
    assert_eq!(state(&collector, "a"), Some(receiving));
}

/// The state of a receiver is told when it changes, not each time that it has.
#[test]
fn news_are_coalesced_by_receiver_and_few_in_a_second() {
    let mut collector = ReportCollector::new(config(Expected::Anyone), Instant::ZERO);
    let (mut now, mut told) = (Instant::ZERO, Vec::new());
    for counter in 0..20_000_u64 {
        now = now + Duration::from_micros(250);
        let exit_code = counter as u8 & 1;
        let state = ReceiverState::Failed { exit_code };
        let report = report(id(counter % 300), "", state, 1);
        take(&mut collector, now, report, counter, None, address(1)).unwrap();
        told.extend(std::iter::from_fn(|| collector.poll_news(now)).map(|status| (now, status)));
    }
    assert!(told.len() <= 6 * 200, "{} lines in 5 s", told.len());
    while let Some(at) = collector.news_at() {
        now = now.max(at);
        told.extend(collector.poll_news(now).map(|status| (now, status)));
    }
    let last: BTreeMap<_, _> =
        told.iter().map(|(_, status)| (status.report.receiver, status.report.state)).collect();
    assert_eq!(last.len(), 300);
    for status in collector.receivers() {
        assert_eq!(last[&status.report.receiver], status.report.state);
    }
}

/// What is listed once a second, whatever the number of receivers.
#[test]
fn a_snapshot_has_what_is_not_complete_or_has_changed() {
    let mut collector = ReportCollector::new(config(Expected::Anyone), Instant::ZERO);
    let tell = |collector: &mut ReportCollector, number, state, counter| {
        let report = report(id(number), "", state, 1);
        take(collector, Instant::ZERO, report, counter, None, address(number as u32)).unwrap();
    };
    for number in 0..30 {
        let state = if number < 10 { ReceiverState::Receiving } else { COMPLETE };
        tell(&mut collector, number, state, 0);
    }
    assert_eq!(collector.notable(100).len(), 30, "all are new");
    assert_eq!(collector.notable(100).len(), 10);
    tell(&mut collector, 0, COMPLETE, 1);
    let notable = collector.notable(4);
    assert_eq!((notable.len(), notable[0].report.receiver), (4, id(0)));
    assert_eq!(collector.notable(100).len(), 9);
}

/// A receiver that is killed and started again need not wait for the sender to be started again.
#[test]
fn a_name_is_that_of_the_process_that_still_reports() {
    let expected = ExpectedReceiver { label: "a".parse().unwrap(), key: None };
    let mut collector =
        ReportCollector::new(config(Expected::Named(vec![expected])), Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut counter = 0;
    let mut tell = |collector: &mut ReportCollector, now, number: u64, state, round| {
        counter += 1;
        let opened =
            opened(&Feedback::Report(report(id(number), "a", state, round)), counter, None);
        collector.handle_report(now, &opened, Authority::Group).unwrap();
    };
    let mut round = 1;
    tell(&mut collector, now, 1, ReceiverState::Receiving, round);
    tell(&mut collector, now, 2, COMPLETE, round);
    assert_eq!(state(&collector, "a"), Some(ExpectedState::Contradictory));
    for _ in 0..30 {
        now = now + Duration::from_secs(1);
        round = collector.poll_roll_call(now, CLOCK).map_or(round, |call| call.round);
        tell(&mut collector, now, 2, COMPLETE, round);
    }
    assert!(collector.summary().is_as_expected(), "{:?}", collector.summary());
    tell(&mut collector, now, 1, ReceiverState::Receiving, round);
    assert_eq!(state(&collector, "a"), Some(ExpectedState::Contradictory));
}

/// One key may be that of several receivers.
#[test]
fn receivers_with_one_key_are_known_by_their_labels() {
    let key = SecretKey::from_seed(&[1; 32]);
    let expected = Expected::Named(vec![signed("a", &key), signed("b", &key)]);
    let mut collector = ReportCollector::new(config(expected), Instant::ZERO);
    for (number, label) in [(1, "a"), (2, "b")] {
        let complete = report(id(number), label, COMPLETE, 1);
        take(&mut collector, Instant::ZERO, complete, 0, Some(&key), address(1)).unwrap();
    }
    assert!(collector.summary().is_as_expected(), "{:?}", collector.summary());
}

/// A clock that was set back between two processes of a receiver that signs.
#[test]
fn a_process_that_has_gone_gives_way_to_an_earlier_one_that_answers_later() {
    let key = SecretKey::from_seed(&[1; 32]);
    let expected = Expected::Named(vec![signed("a", &key)]);
    let mut collector = ReportCollector::new(config(expected), Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut call = collector.poll_roll_call(now, CLOCK).unwrap();
    let tell = |collector: &mut ReportCollector, now, number, started_ms, call: &RollCall| {
        let echo = RollCallEcho { serial: call.serial, held_us: 0 };
        let report = ReceiverReport {
            started_unix_ms: CLOCK + started_ms,
            echo,
            ..report(id(number), "a", COMPLETE, call.round)
        };
        let state = if number == 1 { ReceiverState::Receiving } else { COMPLETE };
        take(collector, now, ReceiverReport { state, ..report }, 0, Some(&key), address(1))
    };
    let first = call.clone();
    tell(&mut collector, now, 1, 1_000, &call).unwrap();
    assert_eq!(tell(&mut collector, now, 2, 0, &call), Err(IgnoredReport::Superseded));
    for _ in 0..30 {
        now = now + Duration::from_secs(1);
        call = collector.poll_roll_call(now, CLOCK).unwrap_or(call);
    }
    assert_eq!(tell(&mut collector, now, 2, 0, &first), Err(IgnoredReport::Superseded), "old");
    tell(&mut collector, now, 2, 0, &call).unwrap();
    assert!(collector.summary().is_as_expected());
}

/// Bytes of memory that this process has.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Run in a process of its own by the test below.
#[test]
#[ignore = "part of another test"]
fn memory_of_places() {
    let config = CollectorConfig { trusts_unauthenticated: true, ..config(Expected::Anyone) };
    let mut collector = ReportCollector::new(config, Instant::ZERO);
    let before = resident();
    for number in 0..MOST as u64 {
        // The longest label, and a network of its own.
        let label = format!("{number:063}");
        let complete = report(id(number), &label, COMPLETE, 1);
        take(&mut collector, Instant::ZERO, complete, 0, None, address(number as u32)).unwrap();
    }
    let after = resident();
    assert_eq!(collector.summary().known, MOST as u64);
    println!("bytes of a place: {}", (after - before) / MOST as u64);
}

#[test]
fn a_place_takes_at_most_512_bytes() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([
        "strangers::memory_of_places",
        "--exact",
        "--ignored",
        "--nocapture",
        "--test-threads",
        "1",
    ]);
    let out = child.output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let (_, rest) = text.split_once("bytes of a place: ").unwrap();
    let bytes: u64 = rest.lines().next().unwrap().trim().parse().unwrap();
    assert!((100..=512).contains(&bytes), "{bytes} bytes");
}

/// Blocks of the content, and source symbols of each.
const BLOCKS: u32 = 3;
const SOURCE_SYMBOLS: u32 = 60;
const SYMBOLS_PER_SECOND: f64 = 1_000.0;
const TICK: Duration = Duration::from_millis(5);
const LABELS: [&str; 4] = ["a", "b", "c", "d"];

/// A receiver: one process after the other, of which each lacks everything at first.
struct Member {
    number: u64,
    /// The processes so far.
    runs: u64,
    key: Option<SecretKey>,
    address: IpAddr,
    /// `None` while it is not started.
    process: Option<Process>,
}

struct Process {
    id: ReceiverId,
    reporter: Reporter,
    has: [u32; BLOCKS as usize],
    is_final: bool,
    /// A report of it has arrived.
    is_known: bool,
}

impl Process {
    fn lacking(&self) -> Lacking {
        let need = |(sbn, &has): (u32, &u32)| {
            let symbols = SOURCE_SYMBOLS.saturating_sub(has);
            (symbols > 0).then_some(BlockNeed { toi: 1, sbn, symbols })
        };
        Lacking { blocks: (0..).zip(&self.has).filter_map(need).collect(), ..Lacking::default() }
    }
}

/// A session in virtual time.
struct World {
    now: Instant,
    random: SplitMix64,
    loss: f64,
    signs: bool,
    collector: ReportCollector,
    rounds: RepairRounds,
    members: Vec<Member>,
    /// Symbols to be sent, of each block.
    owed: BTreeMap<u32, u32>,
    source_left: u32,
    credit: f64,
    last_call: Option<RollCall>,
    /// The ids that a stranger has seen.
    seen: Vec<ReceiverId>,
    /// What members have sent, whether it arrived or not: a stranger sends it again.
    recorded: Vec<OpenedFeedback>,
}

impl World {
    fn new(seed: u64, signs: bool) -> Self {
        let mut random = SplitMix64::new(seed, 3);
        let member = |number: u64| {
            let address = address(1 + number as u32);
            let key = signs.then(|| SecretKey::from_seed(&[1 + number as u8; 32]));
            Member { number, runs: 0, key, address, process: None }
        };
        let members: Vec<_> = (0..LABELS.len() as u64).map(member).collect();
        let labelled = |member: &Member| ExpectedReceiver {
            label: LABELS[member.number as usize].parse().unwrap(),
            key: member.key.as_ref().map(SecretKey::public_key),
        };
        let expected = match signs {
            true => Expected::Named(members.iter().map(labelled).collect()),
            false => Expected::Anyone,
        };
        let block = |sbn| (BlockId { toi: Toi(1), sbn: Sbn(sbn) }, SOURCE_SYMBOLS);
        let repair = RepairConfig {
            blocks: (0..BLOCKS).map(block).collect(),
            symbols_per_second: SYMBOLS_PER_SECOND,
            pending_capacity: 48,
            max_receivers: 64,
            max_age: None,
            trusts_unauthenticated: false,
            has_signers: signs,
        };
        let collector = CollectorConfig { max_receivers: 64, seed, ..config(expected) };
        let loss = f64::from(random.below(30)) / 100.0;
        let mut world = Self {
            now: Instant::ZERO,
            random,
            loss,
            signs,
            collector: ReportCollector::new(collector, Instant::ZERO),
            rounds: RepairRounds::new(repair, Instant::ZERO),
            members,
            owed: BTreeMap::new(),
            source_left: BLOCKS * SOURCE_SYMBOLS,
            credit: 0.0,
            last_call: None,
            seen: Vec::new(),
            recorded: Vec::new(),
        };
        (0..LABELS.len()).for_each(|number| world.start(number));
        world
    }

    fn is_lost(&mut self) -> bool {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 <= self.loss
    }

    fn start(&mut self, number: usize) {
        let now_ms = self.now.as_nanos() / 1_000_000;
        let seed = self.random.next_u64();
        let member = &mut self.members[number];
        member.runs += 1;
        let id = id(member.number << 32 | member.runs);
        let label = if member.key.is_some() { LABELS[number] } else { "" };
        let config = ReporterConfig::new(id, label.parse().unwrap(), seed);
        let config = ReporterConfig { started_unix_ms: CLOCK + now_ms, ..config };
        member.process = Some(Process {
            id,
            reporter: Reporter::new(config),
            has: [0; BLOCKS as usize],
            is_final: false,
            is_known: false,
        });
    }

    /// Kills a member or starts one. A network that nothing authenticates gets the content four
    /// times, which is what as many processes need that have nothing.
    fn disturb(&mut self) {
        let number = self.random.below(LABELS.len() as u32) as usize;
        if !self.signs && self.members[number].runs >= 3 {
            return;
        }
        match self.members[number].process.is_some() {
            true => self.members[number].process = None,
            false => self.start(number),
        }
    }

    /// The sender sends what is due.
    fn send(&mut self) {
        self.credit += SYMBOLS_PER_SECOND * TICK.as_secs_f64();
        while self.credit >= 1.0 {
            self.credit -= 1.0;
            let block = if let Some(left) = self.source_left.checked_sub(1) {
                self.source_left = left;
                left / SOURCE_SYMBOLS
            } else if let Some(mut owed) = self.owed.first_entry() {
                let block = *owed.key();
                *owed.get_mut() -= 1;
                if *owed.get() == 0 {
                    owed.remove();
                }
                block
            } else {
                break;
            };
            for number in 0..self.members.len() {
                if !self.is_lost()
                    && let Some(process) = &mut self.members[number].process
                {
                    process.has[block as usize] += 1;
                }
            }
        }
        for (block, count) in self.rounds.poll_symbols().into_iter().flatten() {
            *self.owed.entry(block.sbn.0).or_default() += count;
        }
        if self.source_left == 0 && self.owed.is_empty() {
            self.rounds.handle_sent(self.now);
        }
        self.rounds.handle_timeout(self.now);
        if self.rounds.wants_call(self.now) {
            self.collector.want_call();
        }
        let Some(mut call) = self.collector.poll_roll_call(self.now, CLOCK) else { return };
        let (receivers, trip) = (self.collector.head_count(), self.collector.round_trip());
        call.repair = self.rounds.call(self.now, receivers, trip);
        for number in 0..self.members.len() {
            if !self.is_lost()
                && let Some(process) = &mut self.members[number].process
            {
                let lacking = process.lacking();
                let none = PacketCounts::default();
                process.reporter.handle_roll_call(self.now, &call, none, |_| lacking);
            }
        }
        self.last_call = Some(call);
    }

    /// The members answer.
    fn answer(&mut self) {
        for number in 0..LABELS.len() {
            let is_lost = self.is_lost();
            let Member { key, address, process, .. } = &mut self.members[number];
            let Some(process) = process else { continue };
            if process.lacking().is_nothing() && !std::mem::replace(&mut process.is_final, true) {
                process.reporter.end(self.now, COMPLETE);
            }
            let loss = self.loss;
            let due = process.reporter.poll(self.now, |_| facts(loss));
            let Some(Answer { counter, feedback, .. }) = due else { continue };
            self.seen.push(process.id);
            let opened = opened(&feedback, counter, key.as_ref());
            self.recorded.push(opened.clone());
            if is_lost {
                continue;
            }
            let by = self.collector.authority(&opened, *address);
            match &feedback {
                Feedback::Report(_) => {
                    let taken = self.collector.handle_report(self.now, &opened, by);
                    // A network has some places.
                    assert!(taken.is_ok() || !self.signs, "{taken:?}");
                    self.collector.measure(self.now, &feedback);
                    process.is_known = true;
                }
                Feedback::Request(request) => {
                    let _ = self.rounds.handle_request(self.now, request, counter, by);
                }
                Feedback::Rate(_) => unreachable!(),
            }
        }
    }

    /// A stranger sends something from one of so many addresses. It has none of a member's.
    fn intrude(&mut self, addresses: u32) {
        let Some(call) = self.last_call.clone() else { return };
        let random = &mut self.random;
        let is_spoofed = self.signs && random.below(2) == 0;
        let from = if is_spoofed { random.below(8) } else { 1_000 + random.below(addresses) };
        if !self.recorded.is_empty() && random.below(4) == 0 {
            let again = random.below(self.recorded.len() as u32) as usize;
            let opened = self.recorded[again].clone();
            let by = self.collector.authority(&opened, address(from));
            assert_eq!(by.is_authentic(), self.signs);
            self.take(&opened, by);
            return;
        }
        let number = random.below(self.seen.len() as u32 + 1) as usize;
        let seen = self.seen.get(number).copied();
        let receiver = match seen.filter(|_| random.below(2) == 0) {
            Some(seen) => seen,
            None => id(u64::from(random.below(1 << 12)) << 40),
        };
        let counter = [0, random.next_u64(), u64::MAX][random.below(3) as usize];
        let loss_ppm = [0, 1_000_000][random.below(2) as usize];
        let echo = RollCallEcho { serial: call.serial, held_us: 0 };
        let blocks = || (0..BLOCKS).map(|sbn| BlockNeed { toi: 1, sbn, symbols: u32::MAX });
        let feedback = match (random.below(3), &call.repair) {
            (0 | 1, Some(repair)) => Feedback::Request(RepairRequest {
                receiver,
                round: repair.round,
                echo,
                loss_ppm,
                mute_us: random.next_u64() as u32,
                may_lack_more: true,
                blocks: match random.below(2) {
                    0 => vec![BlockNeed { toi: 1, sbn: random.below(BLOCKS), symbols: 1 }],
                    _ => blocks().collect(),
                },
                maps: Vec::new(),
            }),
            _ => {
                let label = ["", "a", "b", "x"][random.below(4) as usize];
                let exit_code = random.below(3) as u8;
                let state =
                    [ReceiverState::Receiving, COMPLETE, ReceiverState::Failed { exit_code }]
                        [random.below(3) as usize];
                let report = report(receiver, label, state, call.round);
                Feedback::Report(ReceiverReport { echo, loss_ppm, ..report })
            }
        };
        let signer = SecretKey::from_seed(&[99; 32]);
        let opened = opened(&feedback, counter, Some(&signer).filter(|_| random.below(8) == 0));
        let by = self.collector.authority(&opened, address(from));
        assert!(!by.is_authentic());
        self.take(&opened, by);
    }

    /// What a stranger has sent.
    fn take(&mut self, opened: &OpenedFeedback, by: Authority) {
        match &opened.feedback {
            Feedback::Report(report) => {
                if self.collector.handle_report(self.now, opened, by).is_ok()
                    && self.collector.counts(by)
                {
                    self.collector.measure(self.now, &opened.feedback);
                    self.rounds.note_loss(self.now, report.loss_ppm);
                }
            }
            Feedback::Request(request) => {
                let _ = self.rounds.handle_request(self.now, request, opened.counter, by);
            }
            Feedback::Rate(_) => unreachable!(),
        }
    }

    fn tick(&mut self, intrusions: u32, addresses: u32) {
        self.now = self.now + TICK;
        self.send();
        // It is faster than the members.
        (0..intrusions).for_each(|_| self.intrude(addresses));
        self.answer();
        self.check();
    }

    /// An expected receiver that reports is known.
    fn check(&self) {
        let is_due = self.now.as_nanos().is_multiple_of(100_000_000);
        if !self.signs || !is_due {
            return;
        }
        let summary = self.collector.summary();
        for member in &self.members {
            let label = LABELS[member.number as usize];
            let Some(process) = member.process.as_ref().filter(|it| it.is_known) else { continue };
            let missing = summary.missing.iter().find(|it| it.label.as_str() == label);
            let state = missing.map(|it| it.state);
            let receiving = ExpectedState::Reported(ReceiverState::Receiving);
            match state {
                None => assert!(process.is_final),
                Some(state) => assert_eq!(state, receiving, "{label}"),
            }
        }
    }

    fn are_complete(&self) -> bool {
        let is_final = |member: &Member| member.process.as_ref().is_some_and(|it| it.is_final);
        self.members.iter().all(is_final)
    }
}

/// One session. For some seconds, members are killed and started. A stranger sends from before that
/// until all are complete, and then stops.
fn check_session(seed: u64) {
    let mut random = SplitMix64::new(seed, 4);
    let mut world = World::new(seed, random.below(2) == 0);
    let (intrusions, addresses) = (random.below(8), 1 + random.below(3));
    for _ in 0..random.below(4_000) {
        if random.below(200) == 0 {
            world.disturb();
        }
        world.tick(intrusions, addresses);
    }
    for number in 0..LABELS.len() {
        if world.members[number].process.is_none() {
            world.start(number);
        }
    }
    let quiet_from = world.now;
    let until =
        |world: &mut World, what: &str, seconds, intrusions, is_done: &dyn Fn(&World) -> bool| {
            let limit = world.now + Duration::from_secs(seconds);
            while !is_done(world) {
                assert!(world.now < limit, "seed {seed}: {what} after {seconds} s");
                world.tick(intrusions, addresses);
            }
        };
    until(&mut world, "not all are complete", 60, intrusions, &World::are_complete);
    let took = world.now.saturating_since(quiet_from);
    assert!(took <= Duration::from_secs(60), "seed {seed}: {took:?}");
    if world.signs {
        let is_known = |world: &World| world.collector.summary().is_as_expected();
        until(&mut world, "not all are known", 30, intrusions, &is_known);
        // Those whom nothing authenticates keep it from ending where others sign not even then.
        until(&mut world, "the session does not end", 30, intrusions, &|it| it.rounds.is_silent());
    }
    until(&mut world, "the session does not end", 30, 0, &|it| it.rounds.is_silent());
}

#[test]
fn receivers_are_known_and_repaired_whatever_strangers_send() {
    (1..=40).for_each(check_session);
}

/// A stranger who is told that its final state is known would be told in a receiver's place.
#[test]
fn a_stranger_with_the_id_of_a_receiver_that_signs_is_not_told_that_it_is_known() {
    let key = SecretKey::from_seed(&[1; 32]);
    let expected = Expected::Named(vec![signed("a", &key)]);
    let mut collector = ReportCollector::new(config(expected), Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut call = collector.poll_roll_call(now, CLOCK).unwrap();
    let mut honest = Reporter::new(ReporterConfig::new(id(1), "a".parse().unwrap(), 1));
    honest.end(now, COMPLETE);
    for counter in 0..20 {
        honest.handle_roll_call(now, &call, PacketCounts::default(), |_| Lacking::default());
        now = now + Duration::from_secs(1);
        // Its reports are lost.
        let _ = honest.poll(now, |_| ReportFacts::default());
        let forged = report(id(1), "", COMPLETE, call.round);
        take(&mut collector, now, forged, counter, None, address(1)).unwrap();
        call = collector.poll_roll_call(now, CLOCK).unwrap();
    }
    assert!(!honest.is_known());
}

/// The same, for many seeds.
#[test]
#[ignore = "minutes"]
fn receivers_are_known_and_repaired_for_every_seed() {
    (1..=2_000).for_each(check_session);
}
