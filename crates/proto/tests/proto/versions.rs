//! A publisher that sends one version after the other, and its receivers, in virtual time.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, receiver_config, run, sender, source,
};
use fontana_proto::{Instant, ReceiverEvent};
use fontana_wire::{SecretKey, Toi};
use std::time::Duration;

fn key() -> SecretKey {
    SecretKey::from_seed(&[3; 32])
}

/// Objects of 900 kB, of which a sender of the tests sends a pass in 1.7 s, and one of 10 kB for
/// each version above the first.
fn version(number: usize) -> Content {
    let mut shapes = vec![(600_000, 3), (200_000, 1), (100_000, 1)];
    shapes.extend(vec![(10_000, 1); number - 1]);
    Content::versioned(&shapes, 11, number as u64)
}

fn publisher(content: &Content) -> SenderDriver {
    SenderDriver::new(sender(content, &Setup::default(), Some(&key())), content)
}

/// Receives what the publisher signs, above a version.
fn receiver(newer_than: Option<u64>, loss: f64) -> ReceiverDriver {
    let mut config = receiver_config();
    config.expectation.publisher = Some(key().public_key());
    config.expectation.newer_than = newer_than;
    ReceiverDriver::new(config, loss, 6)
}

fn superseded_by(receiver: &ReceiverDriver) -> Vec<u64> {
    let superseded = |event: &ReceiverEvent| match event {
        ReceiverEvent::Superseded { version, .. } => Some(*version),
        _ => None,
    };
    receiver.events.iter().filter_map(superseded).collect()
}

fn corrupt_blocks(receiver: &ReceiverDriver) -> usize {
    let is_corrupt = |event: &&ReceiverEvent| matches!(event, ReceiverEvent::BlockCorrupt { .. });
    receiver.events.iter().filter(is_corrupt).count()
}

/// A version that a receiver has completed.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    version: u64,
    at: Duration,
    /// The manifest of the next version was complete by then.
    knows_next: bool,
}

/// Sends each version for `every`, from one address and with one TSI, to a receiver that joins at
/// `joins_at` and takes one version after the other.
fn follow(versions: &[Content], every: Duration, joins_at: Duration, loss: f64) -> Vec<Taken> {
    let mut senders: Vec<_> = versions.iter().map(publisher).collect();
    let (mut receiver, mut taken) = (receiver(None, loss), Vec::new());
    let end = every * versions.len() as u32;
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + end {
        let elapsed = now.saturating_since(Instant::ZERO);
        let index = (elapsed.as_nanos() / every.as_nanos()) as usize;
        for datagram in senders[index].poll(now) {
            if elapsed >= joins_at {
                receiver.maybe_hear(now, source(1), &datagram);
            }
        }
        now = now + Duration::from_millis(1);
        receiver.timeout(now);
        if receiver.complete_at.is_some() {
            assert_eq!((superseded_by(&receiver), corrupt_blocks(&receiver)), (vec![], 0));
            let objects = receiver.committed().iter().chain(&receiver.left_out);
            let objects: Vec<Toi> = objects.copied().collect();
            let next = receiver.endpoint.newer_manifest();
            let version = receiver.events.iter().find_map(|event| match event {
                ReceiverEvent::Accepted { manifest, .. } => Some(manifest.version()),
                _ => None,
            });
            let version = version.unwrap();
            taken.push(Taken { version, at: elapsed, knows_next: next.is_some() });
            let mut config = receiver_config();
            config.expectation.publisher = Some(key().public_key());
            config.expectation.newer_than = Some(version);
            config.known_manifest = next;
            receiver = ReceiverDriver::new(config, loss, version);
            receiver.left_out = objects;
            receiver.timeout(now);
        }
    }
    taken
}

#[test]
fn a_late_receiver_completes_the_version_it_has_begun_and_then_the_newest() {
    let versions: Vec<_> = (1..=8).map(version).collect();
    let every = Duration::from_secs(2);
    for loss in [0.0, 0.1] {
        let taken = follow(&versions, every, Duration::from_secs(1), loss);
        let [first, second, ..] = &taken[..] else { panic!("{taken:?}") };
        // It lacks a whole pass when version 2 is announced.
        assert_eq!(first.version, 1, "{taken:?}");
        assert!(first.at > every && first.knows_next, "{taken:?}");
        assert!(first.at < Duration::from_millis(1_000 + 2 * 1_700), "two passes: {taken:?}");
        assert!(second.version > 1 && second.at < first.at + every, "{taken:?}");
        assert!(taken.last().unwrap().version >= 7, "{taken:?}");
        assert!(taken.len() >= 5, "{taken:?}");
    }
}

/// Runs a receiver with a sender of `old` for half a pass, then with one of `new`.
fn interrupted(old: &Content, new: &Content) -> ReceiverDriver {
    let mut senders = [publisher(old)];
    let mut receivers = [receiver(None, 0.0)];
    run(&mut senders, &mut receivers, Duration::from_millis(900));
    let mut sender = publisher(new);
    let [mut receiver] = receivers;
    let mut now = Instant::ZERO + Duration::from_millis(900);
    while receiver.complete_at.is_none() && superseded_by(&receiver).is_empty() {
        assert!(now < Instant::ZERO + Duration::from_secs(60), "{:?}", receiver.events);
        for datagram in sender.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        now = now + Duration::from_millis(1);
        receiver.timeout(now);
    }
    receiver
}

#[test]
fn a_version_is_superseded_when_its_symbols_have_ceased() {
    let mut new = version(2);
    new.objects.remove(&Toi(1));
    let receiver = interrupted(&version(1), &new);
    assert_eq!(superseded_by(&receiver), [2]);
    assert_eq!(receiver.committed().len(), 2, "what both versions have is complete");
    assert_eq!(corrupt_blocks(&receiver), 0);
}

#[test]
fn a_newer_version_that_uses_a_toi_for_another_object_supersedes_at_the_first_corrupt_block() {
    let new = Content::versioned(&[(600_000, 3), (200_000, 1), (100_000, 1)], 77, 2);
    let receiver = interrupted(&version(1), &new);
    assert_eq!(superseded_by(&receiver), [2]);
    assert!(corrupt_blocks(&receiver) <= 1);
    let given_up = |event: &ReceiverEvent| {
        matches!(event, ReceiverEvent::GivenUp { .. } | ReceiverEvent::ObjectFailed { .. })
    };
    assert!(!receiver.events.iter().any(given_up), "{:?}", receiver.events);
}

#[test]
fn a_version_that_is_still_sent_elsewhere_is_completed() {
    // Two senders: both are received before anything is accepted, then the newer one only later.
    for milliseconds in [0, 200] {
        let mut senders = [publisher(&version(1)), publisher(&version(2))];
        senders[1].starts_at = Instant::ZERO + Duration::from_millis(milliseconds);
        let mut receivers = [receiver(None, 0.0)];
        run(&mut senders, &mut receivers, Duration::from_secs(60));
        let [receiver] = &receivers;
        assert!(receiver.complete_at.is_some() && superseded_by(receiver).is_empty());
    }
}

#[test]
fn packets_of_an_old_version_are_neither_lost_nor_counted() {
    let mut receiver = receiver(Some(1), 0.0);
    let mut now = Instant::ZERO;
    // The old version is sent for six passes, and then the new one, from the same address.
    for content in [version(1), version(2)] {
        let mut sender = publisher(&content);
        let end = now + Duration::from_secs(10);
        while now < end && receiver.complete_at.is_none() {
            for datagram in sender.poll(now) {
                receiver.maybe_hear(now, source(1), &datagram);
            }
            now = now + Duration::from_millis(1);
            receiver.timeout(now);
        }
    }
    assert!(receiver.complete_at.is_some(), "{:?}", receiver.events);
    let stats = receiver.endpoint.stats();
    assert_eq!(stats.lost, 0, "{stats:?}");
    let inefficiency = receiver.inefficiency();
    assert!(inefficiency < 1.2, "{inefficiency}: {stats:?}");
}
