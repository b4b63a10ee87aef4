//! Reporters and collectors that are asked, and told, anything at any time.

use crate::fuzz::{SEQUENCES, advance};
use crate::support::answers::report;
use crate::support::plain::{CLOCK, Plain};
use bolero::check;
use fontana_proto::report::{
    Authority, CollectorConfig, Expected, ExpectedReceiver, ExpectedState, MissingReceiver,
    Network, PacketCounts, RateConfig, RateControl, ReceiverStatus, RepairConfig, RepairRounds,
    ReportCollector, ReportFacts, Reporter, ReporterConfig, RollCallGate,
};
use fontana_proto::{BlockId, Instant, Lacking};
use fontana_testing::Script;
use fontana_wire::{
    BlockNeed, Feedback, FeedbackDatagram, Fingerprint, Hash, InstanceId, RateCall, RateReport,
    ReceiverId, ReceiverLabel, ReceiverReport, ReceiverState, RepairCall, RepairRequest, RollCall,
    RollCallEcho, RollCallList, SealId, SecretKey, SymbolMap, Toi, Tsi,
};
use std::collections::BTreeMap;
use std::time::Duration;

fn label(script: &mut Script<'_>) -> ReceiverLabel {
    script.pick(&["", "a", "b"]).parse().unwrap()
}

fn roll_call(script: &mut Script<'_>, receiver: ReceiverId) -> RollCall {
    let salt = u64::from(script.below(3));
    let mut list: Vec<_> = (0..script.below(3)).map(|_| Fingerprint(script.u32())).collect();
    if script.once_in(3) {
        list.push(Fingerprint::of_receiver(salt, &receiver));
    }
    let kind = if script.once_in(4) { RollCallList::Missing } else { RollCallList::Known };
    RollCall {
        instance: InstanceId([script.below(2); 16]),
        tsi: Tsi(5),
        serial: script.magnitude(),
        issued_unix_ms: CLOCK + u64::from(script.u16()),
        collector: ([10, 0, 0, script.u8()], script.u16()).into(),
        round: script.below(3).into(),
        position: script.magnitude() as u32,
        window_ms: (script.magnitude() as u32).max(1),
        head_count: script.magnitude() as u32,
        known: script.u32(),
        salt,
        list: kind(list),
        repair: script.once_in(2).then(|| RepairCall {
            round: script.below(3).into(),
            window_us: script.magnitude() as u32,
            receivers: script.magnitude() as u32,
            is_closed: script.once_in(4),
            pending: blocks(script),
            last: script.once_in(2).then(|| script.below(3).into()),
        }),
        rate: script.once_in(2).then(|| RateCall {
            round: script.below(4).into(),
            since: script.below(4).into(),
            window_ms: (script.magnitude() as u32).max(1),
            divisor: (script.magnitude() as u32).max(1),
        }),
    }
}

/// Up to three blocks, in ascending order.
fn blocks(script: &mut Script<'_>) -> Vec<BlockNeed> {
    let mut sbn = 0;
    let mut block = |script: &mut Script<'_>| {
        sbn += 1 + u32::from(script.below(2));
        BlockNeed { toi: 1, sbn, symbols: 1 + (script.magnitude() as u32 >> 1) }
    };
    (0..script.below(4)).map(|_| block(script)).collect()
}

/// A map of the first block or another one, with up to three symbols.
fn map(script: &mut Script<'_>) -> SymbolMap {
    let first = script.magnitude() as u32;
    let mut map = SymbolMap::new(1, 1 + u32::from(script.below(2)), first);
    for _ in 0..script.below(3) {
        map.add(first.saturating_add(script.below(60).into()));
    }
    map
}

/// The destination is that of a run's last roll call that was obeyed, within two seconds of it;
/// counters grow, and no two reports are closer than the rate allows.
#[test]
fn any_roll_calls() {
    let key = SecretKey::from_seed(&[7; 32]);
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| {
        let mut script = Script::new(bytes);
        let receiver = ReceiverId([1; 16]);
        let mut gate = RollCallGate::new(key.public_key(), Tsi(5));
        let config = ReporterConfig::new(receiver, label(&mut script), script.u64());
        let mut reporter = Reporter::new(ReporterConfig { reports_rate: true, ..config });
        let mut counts = PacketCounts::default();
        let (mut now, mut sent) = (Instant::ZERO, Vec::<(Instant, u64)>::new());
        let mut obeyed = BTreeMap::new();
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            let unix_ms = CLOCK + now.as_nanos() / 1_000_000;
            match script.below(8) {
                0 => reporter.end(now, ReceiverState::Failed { exit_code: 1 }),
                1..=3 => {
                    let mut symbol = roll_call(&mut script, receiver).emit(&key);
                    let is_changed = script.once_in(4);
                    if is_changed {
                        let at = usize::from(script.u16()) % symbol.len();
                        symbol[at] ^= script.u8().max(1);
                    }
                    if let Ok(call) = gate.check(now, Some(unix_ms), &symbol) {
                        assert!(!is_changed && call.collector.port() != 0);
                        let may_lack_more = script.once_in(4);
                        let lacking = |most: usize| {
                            let mut blocks = blocks(&mut script);
                            blocks.truncate(most);
                            Lacking { blocks, may_lack_more, ..Lacking::default() }
                        };
                        let (received, lost) = (now.as_nanos(), now.as_nanos() / 7);
                        counts = PacketCounts { received, lost, ..PacketCounts::default() };
                        reporter.handle_roll_call(now, &call, counts, lacking);
                        obeyed.insert(SealId::from(call.instance).0, (call.collector, now));
                    }
                }
                _ => {}
            }
            let facts = |_| ReportFacts { packets: counts, ..ReportFacts::default() };
            while let Some(due) = reporter.poll(now, facts) {
                let (to, at) = obeyed[&due.instance.0];
                assert!(due.to == to && now <= at + Duration::from_secs(2));
                assert!(sent.last().is_none_or(|&(_, counter)| due.counter > counter));
                sent.push((now, due.counter));
                let fifth_last = sent.len().checked_sub(5).and_then(|at| sent.get(at));
                assert!(fifth_last.is_none_or(|&(at, _)| now >= at + Duration::from_secs(1)));
                match due.feedback {
                    Feedback::Request(request) => {
                        assert!(request.blocks.len() <= RepairRequest::MAX_BLOCKS);
                    }
                    Feedback::Rate(report) => {
                        assert!(report.window_us > 0);
                        assert!((1..=RateReport::MAX_WEIGHT).contains(&report.weight));
                    }
                    Feedback::Report(_) => {}
                }
            }
            assert!(reporter.poll_timeout().is_none_or(|due| due > now), "it was polled");
        }
    });
}

/// Names of which reports may have some.
fn named(script: &mut Script<'_>, key: &SecretKey) -> Vec<ExpectedReceiver> {
    let mut labels: Vec<_> = (0..script.below(5)).map(|_| label(script)).collect();
    labels.retain(|label| !label.is_empty());
    labels.sort_unstable();
    labels.dedup();
    let expected = |label| {
        let key = script.once_in(2).then(|| key.public_key());
        ExpectedReceiver { label, key }
    };
    labels.into_iter().map(expected).collect()
}

/// Time after which a receiver is not waited for, if its rounds are over, too.
const GONE_AFTER: Duration = Duration::from_secs(2);

/// What a collector counts as reports come is what a look at all receivers finds. `began`: when its
/// rounds began, from the first one, whose number is 1. A round counts while it is one of the last
/// three, or the one after it began less than two seconds before the present one.
fn check_counts(collector: &ReportCollector, began: &[Instant], trusts_unauthenticated: bool) {
    let is_outstanding = |status: &&ReceiverStatus| {
        let round = status.report.round as usize;
        let is_new = round + 2 >= began.len() || began[began.len() - 1] < began[round] + GONE_AFTER;
        !status.report.state.is_final() && round > 0 && is_new
    };
    let outstanding = || collector.receivers().filter(is_outstanding);
    let is_known = collector.receivers().next().is_some();
    assert_eq!(collector.has_only_final(), is_known && outstanding().next().is_none());
    let counts = |status: &ReceiverStatus| status.by.is_authentic() || trusts_unauthenticated;
    assert_eq!(collector.is_followed(), outstanding().any(counts));
    let needs = |status: &&ReceiverStatus| status.needs_symbols() && counts(status);
    let needs_nothing = collector.receivers().any(counts) && !outstanding().any(|it| needs(&it));
    assert_eq!(collector.needs_nothing(), needs_nothing);
    let is_behind = |status: &&ReceiverStatus| status.is_behind() && counts(status);
    for after in [0, began.len().saturating_sub(2) as u32] {
        let is_later = |status: &&ReceiverStatus| status.report.round > after;
        let is_any = outstanding().filter(is_later).any(|it| is_behind(&it));
        assert_eq!(collector.is_any_behind(after), is_any);
    }
    let counted = collector.receivers().filter(|status| counts(status)).count();
    assert_eq!(collector.counted(), counted);
    assert_eq!(collector.is_as_expected(), collector.summary().is_as_expected());
}

/// So is what a roll call says.
fn check_call(collector: &ReportCollector, call: &RollCall) {
    let is_final = |status: &&ReceiverStatus| status.report.state.is_final();
    assert_eq!(call.known as usize, collector.receivers().filter(is_final).count());
    let RollCallList::Missing(list) = &call.list else { return };
    let is_known = |missing: &&MissingReceiver| matches!(missing.state, ExpectedState::Reported(state) if state.is_final());
    let summary = collector.summary();
    let missing = summary.missing.iter().filter(|missing| !is_known(missing));
    let fingerprint = |missing: &MissingReceiver| Fingerprint::of_label(call.salt, &missing.label);
    assert_eq!(*list, missing.map(fingerprint).collect::<Vec<_>>());
}

/// Limits hold, roll calls fit into their packets, and what is known of the receivers adds up.
#[test]
fn any_reports() {
    let key = SecretKey::from_seed(&[9; 32]);
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| {
        let mut script = Script::new(bytes);
        let expected = match script.below(4) {
            0 => Expected::Anyone,
            1 => Expected::Count(script.below(4).into()),
            2 => Expected::Count(script.magnitude() as u32),
            _ => Expected::Named(named(&mut script, &key)),
        };
        let config = CollectorConfig {
            expected,
            budget_per_second: 1 + u32::from(script.below(8)),
            list_capacity: script.below(6).into(),
            max_receivers: 1 + usize::from(script.below(8)),
            trusts_unauthenticated: script.once_in(2),
            ..CollectorConfig::new(
                InstanceId([5; 16]),
                Tsi(5),
                Hash([3; 32]),
                ([10, 0, 0, 7], 9).into(),
                script.u64(),
            )
        };
        let mut collector = ReportCollector::new(config.clone(), Instant::ZERO);
        let (mut now, mut serial) = (Instant::ZERO, 0);
        let mut began = vec![now];
        for counter in 0..Script::STEPS as u64 {
            now = advance(&mut script, now);
            let report = ReceiverReport {
                receiver: ReceiverId([script.below(12); 16]),
                label: label(&mut script),
                started_unix_ms: script.u64(),
                round: script.below(4).into(),
                echo: RollCallEcho { serial: script.magnitude(), held_us: script.u32() },
                state: match script.below(4) {
                    0 => ReceiverState::Receiving,
                    1 => ReceiverState::Failed { exit_code: script.u8() },
                    other => ReceiverState::Complete { manifest: Hash([other + 1; 32]) },
                },
                permille: [0, 999, 1_000, 1_000][usize::from(script.below(4))],
                symbols_lacking: script.magnitude() * script.below(2) as u64,
                loss_ppm: 0,
                kernel_drops: script.magnitude(),
                channels: 1,
                seconds: 0,
            };
            let signer = script.once_in(2).then_some(&key);
            let counter = if script.once_in(8) { script.magnitude() } else { counter };
            let feedback = Feedback::Report(report);
            let bytes = feedback.emit(SealId([5; 8]), counter, signer, None::<&Plain>);
            let opened = FeedbackDatagram::parse(&bytes).unwrap().open(None::<&Plain>).unwrap();
            collector.measure(now, &opened.feedback);
            match script.below(16) {
                0 => collector.want_call(),
                1 => collector.want_round(),
                _ => {}
            }
            let by = collector.authority(&opened, [10, 0, 0, script.below(4)].into());
            let _ = collector.handle_report(now, &opened, by);
            if let Some(call) = collector.poll_roll_call(now, CLOCK) {
                assert!(call.serial > serial && call.window_ms >= 10);
                serial = call.serial;
                began.resize(call.round as usize, now);
                let (RollCallList::Known(list) | RollCallList::Missing(list)) = &call.list;
                assert!(list.len() <= config.list_capacity);
                check_call(&collector, &call);
            }
            check_counts(&collector, &began, config.trusts_unauthenticated);
            assert!(collector.poll_timeout() > now);
            let summary = collector.summary();
            assert!(summary.known <= config.max_receivers as u64);
            assert!(summary.complete + summary.failed <= summary.known);
            assert!(summary.estimate >= summary.known);
        }
    });
}

/// What a stranger reports or requests: in any name, with any id, from any address.
fn strange(script: &mut Script<'_>, ids: &[ReceiverId], round: u32) -> (Feedback, u64, bool) {
    let receiver = match script.once_in(2) {
        true => *script.pick(ids),
        false => ReceiverId([script.u8(); 16]),
    };
    let round = if script.once_in(4) { script.below(9).into() } else { round };
    let echo = RollCallEcho { serial: script.below(40).into(), held_us: script.u32() };
    let counter = if script.once_in(2) { u64::MAX } else { script.magnitude() };
    let feedback = if script.once_in(2) {
        Feedback::Request(RepairRequest {
            receiver,
            round,
            echo,
            loss_ppm: script.u32() % 1_000_001,
            mute_us: script.u32(),
            may_lack_more: script.once_in(4),
            blocks: blocks(script),
            maps: (0..script.below(3)).map(|_| map(script)).collect(),
        })
    } else {
        Feedback::Report(ReceiverReport {
            receiver,
            label: label(script),
            started_unix_ms: script.u64(),
            round,
            echo,
            state: match script.below(3) {
                0 => ReceiverState::Receiving,
                1 => ReceiverState::Failed { exit_code: script.u8() },
                _ => ReceiverState::Complete { manifest: Hash([3; 32]) },
            },
            permille: [0, 999, 1_000, 1_000][usize::from(script.below(4))],
            symbols_lacking: script.magnitude() * script.below(2) as u64,
            loss_ppm: script.u32() % 1_000_001,
            kernel_drops: 0,
            channels: 1,
            seconds: 0,
        })
    };
    (feedback, counter, script.once_in(4))
}

/// A collector, and two receivers that sign.
struct Signers {
    now: Instant,
    keys: [SecretKey; 2],
    collector: ReportCollector,
    rounds: RepairRounds,
    /// The present rounds.
    report_round: u32,
    repair_round: Option<u32>,
    /// What each receiver has reported, and the last round in which it has requested.
    states: [Option<ReceiverState>; 2],
    asked: [Option<u32>; 2],
}

impl Signers {
    const IDS: [ReceiverId; 2] = [ReceiverId([1; 16]), ReceiverId([2; 16])];
    const LABELS: [&str; 2] = ["a", "b"];

    fn new(script: &mut Script<'_>) -> Self {
        let keys = [1, 2].map(|seed| SecretKey::from_seed(&[seed; 32]));
        let expected = |(label, key): (&&str, &SecretKey)| ExpectedReceiver {
            label: label.parse().unwrap(),
            key: Some(key.public_key()),
        };
        let max_receivers = 2 + usize::from(script.below(12));
        let collector = CollectorConfig {
            expected: Expected::Named(Self::LABELS.iter().zip(&keys).map(expected).collect()),
            list_capacity: script.below(6).into(),
            max_receivers,
            ..CollectorConfig::new(
                InstanceId([5; 16]),
                Tsi(5),
                Hash([3; 32]),
                ([10, 0, 0, 7], 9).into(),
                script.u64(),
            )
        };
        let block = |sbn| (BlockId { toi: Toi(1), sbn: fontana_fec::Sbn(sbn) }, 1_000);
        let repair = RepairConfig {
            blocks: (1..=2).map(block).collect(),
            symbols_per_second: script.magnitude() as f64,
            pending_capacity: 2,
            max_receivers,
            max_age: None,
            trusts_unauthenticated: false,
            has_signers: true,
        };
        let mut collector = ReportCollector::new(collector, Instant::ZERO);
        let report_round = collector.poll_roll_call(Instant::ZERO, CLOCK).unwrap().round;
        Self {
            now: Instant::ZERO,
            keys,
            collector,
            rounds: RepairRounds::new(repair, Instant::ZERO),
            report_round,
            repair_round: None,
            states: [None; 2],
            asked: [None; 2],
        }
    }

    /// A datagram arrives. Returns whether it is taken.
    fn take(
        &mut self,
        feedback: &Feedback,
        counter: u64,
        by: Option<&SecretKey>,
        from: u8,
    ) -> bool {
        let bytes = feedback.emit(SealId([5; 8]), counter, by, None::<&Plain>);
        let datagram = FeedbackDatagram::parse(&bytes).unwrap();
        let Ok(opened) = datagram.open(None::<&Plain>) else { return false };
        let authority = self.collector.authority(&opened, [10, 0, 0, from].into());
        assert_eq!(authority.is_authentic(), by.is_some_and(|by| self.is_own(by)));
        match feedback {
            Feedback::Request(it) => {
                self.rounds.handle_request(self.now, it, counter, authority).is_ok()
            }
            _ => self.collector.handle_report(self.now, &opened, authority).is_ok(),
        }
    }

    fn is_own(&self, key: &SecretKey) -> bool {
        self.keys.iter().any(|own| own.public_key() == key.public_key())
    }

    fn report(&mut self, own: usize, counter: u64, script: &mut Script<'_>) {
        let is_final = self.states[own].is_some_and(ReceiverState::is_final);
        let state = match is_final || script.once_in(8) {
            true => ReceiverState::Complete { manifest: Hash([3; 32]) },
            false => ReceiverState::Receiving,
        };
        let (id, label) = (Self::IDS[own], Self::LABELS[own]);
        let report = Feedback::Report(report(id, label, state, self.report_round));
        let key = self.keys[own].clone();
        assert!(self.take(&report, counter, Some(&key), script.below(4)));
        self.states[own] = Some(state);
    }

    /// Requests once in each round. What is requested is sent.
    fn request(&mut self, own: usize, counter: u64, script: &mut Script<'_>) {
        if self.repair_round.is_none() || self.asked[own] == self.repair_round {
            return;
        }
        self.asked[own] = self.repair_round;
        let need = BlockNeed { toi: 1, sbn: 1 + u32::from(script.below(2)), symbols: 3 };
        let request = Feedback::Request(RepairRequest {
            receiver: Self::IDS[own],
            round: self.repair_round.unwrap(),
            echo: RollCallEcho::default(),
            loss_ppm: 0,
            mute_us: 0,
            may_lack_more: false,
            blocks: vec![need],
            maps: Vec::new(),
        });
        let key = self.keys[own].clone();
        assert!(self.take(&request, counter, Some(&key), script.below(4)));
        let (now, receivers) = (self.now, self.collector.head_count());
        let call = self.rounds.call(now, receivers, Duration::ZERO).unwrap();
        assert!(call.covers(&need), "{call:?} for {need:?}");
    }

    /// The sender goes on. No round is long or closed.
    fn go_on(&mut self) {
        let _ = (self.rounds.poll_symbols(), self.rounds.poll_named());
        self.rounds.handle_sent(self.now);
        self.rounds.handle_timeout(self.now);
        let receivers = self.collector.head_count();
        if let Some(call) = self.rounds.call(self.now, receivers, Duration::ZERO) {
            assert!(!call.is_closed, "{call:?}");
            self.repair_round = Some(call.round);
        }
        if let Some(call) = self.collector.poll_roll_call(self.now, CLOCK) {
            self.report_round = call.round;
            assert!(call.window_ms <= 5_000, "{call:?}");
        }
    }

    /// Who has reported is known, with what it has reported.
    fn check(&self) {
        let summary = self.collector.summary();
        for (label, state) in Self::LABELS.iter().zip(self.states) {
            let missing = summary.missing.iter().find(|it| it.label.as_str() == *label);
            let expected = match state {
                None => Some(ExpectedState::NeverHeard),
                Some(state) => (!state.is_final()).then_some(ExpectedState::Reported(state)),
            };
            assert_eq!(missing.map(|it| it.state), expected, "{label}");
        }
    }
}

/// Beside strangers, receivers that sign are known as soon as they have reported, what they request
/// is sent, and no round is closed to them.
#[test]
fn any_strangers_beside_receivers_that_sign() {
    let stranger = SecretKey::from_seed(&[9; 32]);
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| {
        let mut script = Script::new(bytes);
        let mut signers = Signers::new(&mut script);
        for counter in 0..Script::STEPS as u64 {
            signers.now = advance(&mut script, signers.now);
            let own = usize::from(script.below(2));
            match script.below(8) {
                0 => signers.report(own, counter, &mut script),
                1 => signers.request(own, counter, &mut script),
                2 => signers.go_on(),
                _ => {
                    let round = match script.once_in(2) {
                        true => signers.repair_round.unwrap_or(1),
                        false => signers.report_round,
                    };
                    let (feedback, counter, signs) = strange(&mut script, &Signers::IDS, round);
                    let by = signs.then_some(&stranger);
                    signers.take(&feedback, counter, by, script.below(8));
                }
            }
            signers.check();
        }
    });
}

/// Whatever is reported, the rate stays within its bounds, and falls without reports.
#[test]
fn any_rate_reports() {
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| {
        let mut script = Script::new(bytes);
        let least = 1 + u64::from(script.u16());
        let most = least + (script.magnitude() >> 8);
        let least_to_finish = 1 + u64::from(script.u16());
        let config = RateConfig {
            start: script.magnitude(),
            most,
            least,
            least_to_finish,
            packet_bytes: 1 + u32::from(script.u16()),
            budget_per_second: script.below(9).into(),
            known: script.once_in(2).then(|| script.magnitude() as u32),
            blind: script.once_in(2).then(|| script.magnitude()),
            max_receivers: script.below(8).into(),
        };
        let is_automatic = config.blind.is_some();
        let mut control = RateControl::new(config, Instant::ZERO);
        let (mut now, mut round) = (Instant::ZERO, 1);
        for counter in 0..Script::STEPS as u64 {
            now = advance(&mut script, now);
            let report = RateReport {
                receiver: ReceiverId([script.below(6); 16]),
                round: if script.once_in(4) { script.magnitude() as u32 } else { round },
                echo: RollCallEcho::default(),
                window_us: (script.magnitude() as u32).max(1),
                received: script.magnitude() as u32,
                lost: script.magnitude() as u32,
                weight: 1 + script.below(100),
            };
            let counter = if script.once_in(8) { script.magnitude() } else { counter };
            let receiver = ReceiverId([script.below(6); 16]);
            match script.below(8) {
                0 => control.must_finish(receiver),
                1 => control.has_finished(&receiver),
                2 => control.note_sent(script.magnitude()),
                _ => {}
            }
            let _ = control.handle_report(now, &report, None, counter);
            if script.once_in(2) {
                let trip = Duration::from_micros(script.magnitude() >> 32);
                let call =
                    control.call(now, trip, script.once_in(2).then(|| script.magnitude() as u32));
                assert!(call.divisor >= 1 && call.window_ms >= 1 && call.since <= call.round);
                assert!(call.round >= round);
                round = call.round;
            }
            control.handle_timeout(now);
            let lowest = least.min(least_to_finish);
            assert!((lowest..=most).contains(&control.rate()), "{control:?}");
        }
        (0..=u8::MAX).for_each(|id| control.has_finished(&ReceiverId([id; 16])));
        for _ in 0..100 {
            now = now + Duration::from_secs(60);
            control.handle_timeout(now);
        }
        // An automatic rate does not fall for receivers that have finished.
        assert!(is_automatic || control.rate() == least);
    });
}

/// Whatever is requested, what is sent for it stays within the bounds of each receiver, and a round
/// never lasts for ever.
#[test]
fn any_requests() {
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| {
        let mut script = Script::new(bytes);
        let source_symbols = [1 + u32::from(script.below(50)), 1 + u32::from(script.below(50))];
        let block = |sbn: u32| BlockId { toi: Toi(1), sbn: fontana_fec::Sbn(sbn) };
        let config = RepairConfig {
            blocks: (1..).zip(source_symbols).map(|(sbn, k)| (block(sbn), k)).collect(),
            symbols_per_second: script.magnitude() as f64,
            pending_capacity: script.below(3).into(),
            max_receivers: 1 + usize::from(script.below(4)),
            max_age: script.once_in(3).then(|| Duration::from_micros(script.magnitude() >> 32)),
            trusts_unauthenticated: false,
            has_signers: false,
        };
        // A receiver that was forgotten begins again: as often as it has requested, at most.
        let receivers = Script::STEPS as u64;
        let mut rounds = RepairRounds::new(config.clone(), Instant::ZERO);
        let (mut now, mut given, mut last_round) = (Instant::ZERO, 0_u64, 0);
        for counter in 0..Script::STEPS as u64 {
            now = advance(&mut script, now);
            match script.below(4) {
                0 => rounds.handle_sent(now),
                1 => {
                    let trip = Duration::from_micros(script.magnitude() >> 32);
                    if let Some(call) = rounds.call(now, script.u16().into(), trip) {
                        assert!(
                            call.round >= last_round
                                && call.pending.len() <= config.pending_capacity
                        );
                        last_round = call.round;
                        assert!(!rounds.wants_call(now));
                    }
                }
                _ => {
                    let request = RepairRequest {
                        receiver: ReceiverId([script.below(6); 16]),
                        round: if script.once_in(4) { script.below(9).into() } else { last_round },
                        echo: RollCallEcho::default(),
                        loss_ppm: script.u32() % 1_000_001,
                        mute_us: script.u32(),
                        may_lack_more: script.once_in(4),
                        blocks: blocks(&mut script),
                        maps: (0..script.below(3)).map(|_| map(&mut script)).collect(),
                    };
                    let counter = if script.once_in(8) { script.magnitude() } else { counter };
                    let by = match script.below(6) {
                        0..=2 => Authority::Group,
                        other => Authority::Unauthenticated(Network::of([10, 0, 0, other].into())),
                    };
                    let _ = rounds.handle_request(now, &request, counter, by);
                }
            }
            given +=
                rounds.poll_symbols().into_iter().flatten().map(|(_, n)| u64::from(n)).sum::<u64>();
            given += rounds.poll_named().map_or(0, |named| named.len() as u64);
            // Twice, for a loss of at most a half, what each receiver may cause: the content, and a
            // third of it later; and a symbol of each block and request for rounding.
            let content: u64 = source_symbols.iter().map(|&k| u64::from(k)).sum();
            assert!(given <= 2 * receivers * (content * 4 / 3 + 1) + 2 * (counter + 1));
            rounds.handle_timeout(now);
            let _ = rounds.poll_timeout();
        }
        // Without further requests, the session is silent after a while.
        for _ in 0..400 {
            now = now + Duration::from_millis(500);
            let _ = (rounds.poll_symbols(), rounds.poll_named());
            rounds.handle_sent(now);
            rounds.handle_timeout(now);
            let _ = rounds.call(now, 1, Duration::from_millis(1));
        }
        assert!(rounds.is_silent(), "{rounds:?}");
    });
}
