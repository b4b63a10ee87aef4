//! The table of sessions: sources, identifiers, heads and versions in any order.

use crate::fuzz::{SEQUENCES, advance, settle, small_config};
use crate::support::world::{Content, ReceiverDriver, SenderDriver, Setup, sender, source};
use bolero::check;
use fontana_proto::{Acceptance, Expectation, Instant, ReceiverEvent, SessionKey};
use fontana_testing::Script;
use fontana_wire::{Packet, SecretKey, Toi, Tsi};
use std::time::Duration;

/// Packets of a sender's first milliseconds.
fn record(content: &Content, setup: &Setup, signer: Option<&SecretKey>) -> Vec<Vec<u8>> {
    let mut sender = SenderDriver::new(sender(content, setup, signer), content);
    (0..40).flat_map(|ms| sender.poll(Instant::ZERO + Duration::from_millis(ms))).collect()
}

/// What is sent: three versions of a publisher, as several runs of senders send them, and the
/// content of a stranger.
struct Air {
    key: SecretKey,
    versions: Vec<Content>,
    recorded: Vec<Vec<Vec<u8>>>,
}

impl Air {
    fn new() -> Self {
        let key = SecretKey::from_seed(&[7; 32]);
        let version = |version| Content::versioned(&[(1500, 2), (700, 1)], version, version);
        let versions: Vec<_> = (1..4).map(version).collect();
        let mut recorded = Vec::new();
        for (content, seed) in versions.iter().zip(1..) {
            let setup = Setup { seed, ..Setup::default() };
            recorded.push(record(content, &setup, Some(&key)));
            recorded.push(record(content, &Setup { seed: seed + 9, ..setup }, Some(&key)));
        }
        let stranger = Content::new(&[(900, 1)], 77);
        let other = SecretKey::from_seed(&[8; 32]);
        recorded.push(record(&stranger, &Setup::default(), Some(&other)));
        recorded.push(record(&stranger, &Setup { seed: 3, ..Setup::default() }, None));
        Self { key, versions, recorded }
    }
}

/// Asserts that each committed object has the bytes of some version.
fn check_bytes(receiver: &ReceiverDriver, versions: &[Content]) {
    for &toi in receiver.committed() {
        let is_of = |content: &&Content| {
            content.objects.get(&toi).is_some_and(|(_, data)| receiver.object(toi) == **data)
        };
        assert!(versions.iter().any(|content| is_of(&content)), "wrong bytes of {toi}");
    }
}

#[test]
fn any_sources_sessions_and_versions() {
    let air = Air::new();
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut config = small_config();
        config.expectation = match script.below(4) {
            0 => Expectation::default(),
            1 => Expectation { manifest: Some(air.versions[0].hash()), ..Expectation::default() },
            2 => Expectation {
                publisher: Some(air.key.public_key()),
                newer_than: Some(u64::from(script.below(3))),
                ..Expectation::default()
            },
            _ => Expectation {
                publisher: Some(air.key.public_key()),
                sources: vec![source(1), source(2)],
                ..Expectation::default()
            },
        };
        let is_pinned = config.expectation.manifest.is_some();
        let has_publisher = config.expectation.publisher.is_some();
        if script.once_in(4) {
            config.acceptance = Acceptance::Ask;
        }
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        let mut now = Instant::ZERO;
        settle(&mut receiver, now);
        // The place of each sender in what it sends.
        let mut places = vec![0; air.recorded.len()];
        let mut current = 0;
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            if script.once_in(6) {
                current = usize::from(script.u8()) % air.recorded.len();
            }
            let from = source(if script.once_in(8) { script.u8() } else { 1 + current as u8 });
            let recorded = &air.recorded[current];
            let count = 1 + usize::from(script.below(24));
            let change = script.below(32);
            for _ in 0..count {
                places[current] = (places[current] + 1) % recorded.len();
                let mut datagram = recorded[places[current]].clone();
                match change {
                    0 => {
                        let at = usize::from(script.u16()) % datagram.len();
                        datagram[at] ^= script.u8() | 1;
                    }
                    // Another session of the same content.
                    1 => datagram[11] = script.below(12),
                    2 => datagram.truncate(script.u8().into()),
                    _ => {}
                }
                receiver.hear(now, from, &datagram);
            }
            if script.once_in(8) {
                let tsi = Tsi(if script.once_in(2) { 7 } else { script.below(12).into() });
                receiver.endpoint.accept(SessionKey { source: from, tsi });
            }
            if script.once_in(16) {
                receiver.endpoint.deselect([Toi(script.below(4).into())]);
            }
            settle(&mut receiver, now);
        }
        let rejected = |event: &&ReceiverEvent| matches!(event, ReceiverEvent::Rejected { .. });
        assert!(receiver.events.iter().filter(rejected).count() <= 300, "a log has a limit");
        if is_pinned {
            check_bytes(&receiver, &air.versions[..1]);
        } else if has_publisher {
            check_bytes(&receiver, &air.versions);
        }
    });
}

/// Two mirrors of one content, of which one may be an attacker's: wrong symbols, right ids.
#[test]
fn two_sources_of_one_content() {
    let content = Content::new(&[(3000, 2), (400, 1)], 5);
    let recorded: Vec<_> =
        (1..3).map(|seed| record(&content, &Setup { seed, ..Setup::default() }, None)).collect();
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut config = small_config();
        config.expectation =
            Expectation { manifest: Some(content.hash()), ..Expectation::default() };
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        let mut now = Instant::ZERO;
        settle(&mut receiver, now);
        let mut at = [0, 0];
        let is_honest = script.once_in(2);
        for _ in 0..2 * Script::STEPS {
            now = advance(&mut script, now);
            let mirror = usize::from(script.below(2));
            at[mirror] += 1 + usize::from(script.once_in(8));
            let mut datagram = recorded[mirror][at[mirror] % recorded[mirror].len()].clone();
            let is_content = Packet::parse(&datagram).unwrap().header.toi.unwrap().is_content();
            if !is_honest && mirror == 1 && is_content && script.once_in(3) {
                *datagram.last_mut().unwrap() ^= 1 | script.u8();
            }
            receiver.hear(now, source(1 + mirror as u8), &datagram);
            settle(&mut receiver, now);
        }
        check_bytes(&receiver, std::slice::from_ref(&content));
        let stats = receiver.endpoint.stats();
        assert!(!is_honest || stats.corrupt_blocks == 0, "{stats:?}");
    });
}
