//! What a receiver does not want of a session, in virtual time.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, receiver_config, run, sender,
};
use fontana_proto::{Endpoint, ReceiverEvent, Rejection};
use fontana_wire::{SecretKey, Toi};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);

/// Objects 1, 2 and 3 of 600, 200 and 100 kB.
fn content() -> Content {
    Content::new(&[(600_000, 3), (200_000, 1), (100_000, 1)], 11)
}

fn receiver(left_out: &[u128], loss: f64) -> ReceiverDriver {
    let mut receiver = ReceiverDriver::new(receiver_config(), loss, 5);
    receiver.left_out = left_out.iter().copied().map(Toi).collect();
    receiver
}

#[test]
fn of_objects_that_are_left_out_nothing_is_received_and_nothing_counts() {
    let content = content();
    let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
    let mut receivers = [receiver(&[1, 3], 0.0), receiver(&[1, 3], 0.3), receiver(&[], 0.0)];
    run(&mut senders, &mut receivers, LIMIT);
    let [clean, lossy, whole] = &receivers;
    for part in [clean, lossy] {
        assert!(part.complete_at.is_some(), "{}", part.loss);
        assert_eq!(part.committed(), [Toi(2)]);
        assert!(part.object(Toi(2)) == whole.object(Toi(2)));
        assert_eq!(part.endpoint.source_symbols(), 200_000_u64.div_ceil(64));
        // Control packets count whole, and they are for all objects.
        assert!(part.inefficiency() < 1.12, "{} {}", part.loss, part.inefficiency());
        let stats = part.endpoint.stats();
        assert!(stats.deselected > 3 * stats.session_packets, "{stats:?}");
        let known = stats.fresh + stats.control_packets + stats.late + stats.duplicates;
        assert!(stats.session_packets <= known + 64, "{stats:?}");
    }
    assert_eq!(whole.endpoint.stats().deselected, 0);
    assert!(whole.has(&content));
}

#[test]
fn a_receiver_that_wants_nothing_is_done_at_once() {
    let content = content();
    let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
    let mut receivers = [receiver(&[1, 2, 3], 0.0)];
    run(&mut senders, &mut receivers, LIMIT);
    let receiver = &receivers[0];
    assert!(receiver.complete_at.is_some() && receiver.committed().is_empty());
    assert_eq!(receiver.endpoint.source_symbols(), 0);
    assert!(receiver.events.iter().any(|event| matches!(event, ReceiverEvent::ReceptionComplete)));
    assert_eq!(receiver.endpoint.poll_timeout(), None);
}

#[test]
fn what_is_left_out_too_late_is_received() {
    let content = content();
    let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
    let mut receivers = [receiver(&[], 0.0)];
    run(&mut senders, &mut receivers, Duration::from_millis(50));
    receivers[0].endpoint.deselect([Toi(1)]);
    run(&mut senders, &mut receivers, LIMIT);
    assert!(receivers[0].has(&content));
    assert_eq!(receivers[0].endpoint.stats().deselected, 0);
}

/// Receives what `key` signs, above a version.
fn follower(key: &SecretKey, newer_than: Option<u64>) -> ReceiverDriver {
    let mut config = receiver_config();
    config.expectation.publisher = Some(key.public_key());
    config.expectation.newer_than = newer_than;
    ReceiverDriver::new(config, 0.0, 6)
}

fn rejections(receiver: &ReceiverDriver) -> Vec<Rejection> {
    let rejection = |event: &ReceiverEvent| match event {
        ReceiverEvent::Rejected { reason, .. } => Some(*reason),
        _ => None,
    };
    receiver.events.iter().filter_map(rejection).collect()
}

#[test]
fn a_version_that_is_not_newer_is_refused_once_and_costs_no_signature_again() {
    // The content of the tests has version 1.
    let (content, key) = (content(), SecretKey::from_seed(&[3; 32]));
    let signed = sender(&content, &Setup::default(), Some(&key));
    let mut senders = [SenderDriver::new(signed, &content)];
    let mut receivers = [
        follower(&key, None),
        follower(&key, Some(0)),
        follower(&key, Some(1)),
        follower(&key, Some(u64::MAX)),
    ];
    run(&mut senders, &mut receivers, Duration::from_secs(60));
    let [any, newer, same, older] = &receivers;
    assert!(any.has(&content) && newer.has(&content));
    for (refused, newer_than) in [(same, 1), (older, u64::MAX)] {
        assert_eq!(refused.complete_at, None);
        assert_eq!(
            rejections(refused),
            [Rejection::OldVersion { version: 1, newer_than }],
            "told once"
        );
        assert_eq!(refused.endpoint.source_symbols(), 0);
        assert_eq!(refused.endpoint.stats().session_packets, 0, "it is not what is wanted");
    }
}

#[test]
fn a_reception_that_cannot_be_finished_ends_and_is_no_success() {
    let content = content();
    let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
    let mut receivers = [receiver(&[], 0.0)];
    receivers[0].runner.cannot_finish = true;
    run(&mut senders, &mut receivers, Duration::from_secs(5));
    let [receiver] = &receivers;
    assert_eq!((receiver.complete_at, receiver.committed().len()), (None, 3));
    assert!(
        matches!(receiver.events.last(), Some(ReceiverEvent::GivenUp { .. })),
        "{:?}",
        receiver.events.last()
    );
}
