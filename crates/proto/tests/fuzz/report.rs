//! Reporters and collectors that are asked, and told, anything at any time.

#[path = "../support/plain.rs"]
mod plain;

use crate::{SEQUENCES, advance};
use bolero::check;
use fontana_proto::Instant;
use fontana_proto::report::{CollectorConfig, Expected, ReportCollector, Reporter, RollCallGate};
use fontana_testing::Script;
use fontana_wire::{
    Fingerprint, Hash, InstanceId, ReceiverId, ReceiverLabel, ReceiverReport, ReceiverState,
    ReportDatagram, RollCall, RollCallList, SealId, SecretKey, Tsi,
};
use plain::{CLOCK, Plain};
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
    }
}

/// The destination is that of the last roll call that was obeyed, counters grow, and no two reports
/// are closer than the rate allows.
#[test]
fn any_roll_calls() {
    let key = SecretKey::from_seed(&[7; 32]);
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| {
        let mut script = Script::new(bytes);
        let receiver = ReceiverId([1; 16]);
        let mut gate = RollCallGate::new(key.public_key(), Tsi(5));
        let mut reporter = Reporter::new(receiver, label(&mut script), 4, script.u64());
        let (mut now, mut to, mut last) = (Instant::ZERO, None, None::<(Instant, u64)>);
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            let unix_ms = CLOCK + now.as_nanos() / 1_000_000;
            match script.below(8) {
                0 => reporter.set_final(),
                1..=3 => {
                    let mut symbol = roll_call(&mut script, receiver).emit(&key);
                    let is_changed = script.once_in(4);
                    if is_changed {
                        let at = usize::from(script.u16()) % symbol.len();
                        symbol[at] ^= script.u8().max(1);
                    }
                    if let Ok(call) = gate.check(now, unix_ms, &symbol) {
                        assert!(!is_changed && call.collector.port() != 0);
                        reporter.handle_roll_call(now, &call);
                        to = Some(call.collector);
                    }
                }
                _ => {}
            }
            if let Some(due) = reporter.poll(now) {
                assert_eq!(Some(due.to), to);
                if let Some((at, counter)) = last {
                    assert!(due.counter > counter && now >= at + Duration::from_millis(250));
                }
                last = Some((now, due.counter));
                assert_eq!(reporter.poll(now), None);
            }
            assert!(reporter.poll_timeout().is_none_or(|due| due > now), "it was polled");
        }
    });
}

/// Limits hold, roll calls fit into their packets, and what is known of the receivers adds up.
#[test]
fn any_reports() {
    let key = SecretKey::from_seed(&[9; 32]);
    check!().with_iterations(SEQUENCES).for_each(|bytes: &[u8]| {
        let mut script = Script::new(bytes);
        let expected = match script.below(2) {
            0 => Expected::Anyone,
            _ => Expected::Count(script.magnitude() as u32),
        };
        let config = CollectorConfig {
            instance: InstanceId([5; 16]),
            tsi: Tsi(5),
            manifest: Hash([3; 32]),
            collector: ([10, 0, 0, 7], 9).into(),
            expected,
            budget_per_second: 1 + u32::from(script.below(8)),
            list_capacity: script.below(6).into(),
            max_receivers: 1 + usize::from(script.below(8)),
            seed: script.u64(),
        };
        let mut collector = ReportCollector::new(config.clone(), Instant::ZERO);
        let (mut now, mut serial) = (Instant::ZERO, 0);
        for counter in 0..Script::STEPS as u64 {
            now = advance(&mut script, now);
            let report = ReceiverReport {
                receiver: ReceiverId([script.below(12); 16]),
                label: label(&mut script),
                started_unix_ms: script.u64(),
                round: script.below(4).into(),
                state: match script.below(4) {
                    0 => ReceiverState::Receiving,
                    1 => ReceiverState::Failed { exit_code: script.u8() },
                    other => ReceiverState::Complete { manifest: Hash([other + 1; 32]) },
                },
                permille: 0,
                symbols_lacking: script.magnitude(),
                loss_ppm: 0,
                kernel_drops: script.magnitude(),
                channels: 1,
                seconds: 0,
            };
            let signer = script.once_in(2).then_some(&key);
            let counter = if script.once_in(8) { script.magnitude() } else { counter };
            let bytes = report.emit(SealId([5; 8]), counter, signer, None::<&Plain>);
            let opened = ReportDatagram::parse(&bytes).unwrap().open(None::<&Plain>).unwrap();
            let _ = collector.handle_report(now, &opened);
            if let Some(call) = collector.poll_roll_call(now, CLOCK) {
                assert!(call.serial > serial && call.window_ms >= 1000);
                serial = call.serial;
                let (RollCallList::Known(list) | RollCallList::Missing(list)) = &call.list;
                assert!(list.len() <= config.list_capacity);
            }
            assert!(collector.poll_timeout() > now);
            let summary = collector.summary();
            assert!(summary.known <= config.max_receivers as u64);
            assert!(summary.complete + summary.failed <= summary.known);
            assert!(summary.estimate >= summary.known);
        }
    });
}
