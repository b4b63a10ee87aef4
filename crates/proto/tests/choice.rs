//! What a receiver does not want of a session, in virtual time.
#![allow(clippy::unwrap_used)]

#[path = "support/world.rs"]
mod world;

use fontana_proto::{Endpoint, Event};
use fontana_wire::Toi;
use std::time::Duration;
use world::{Content, ReceiverDriver, SenderDriver, Setup, receiver_config, run, sender};

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
        assert_eq!(part.committed, [Toi(2)]);
        assert!(part.object(Toi(2)) == whole.object(Toi(2)));
        assert_eq!(part.receiver.source_symbols(), 200_000_u64.div_ceil(64));
        // Control packets count whole, and they are for all objects.
        assert!(part.inefficiency() < 1.12, "{} {}", part.loss, part.inefficiency());
        let stats = part.receiver.stats();
        assert!(stats.left_out > 3 * stats.session_packets, "{stats:?}");
        let known = stats.fresh + stats.control_packets + stats.late + stats.duplicates;
        assert!(stats.session_packets <= known + 64, "{stats:?}");
    }
    assert_eq!(whole.receiver.stats().left_out, 0);
    assert!(whole.has(&content));
}

#[test]
fn a_receiver_that_wants_nothing_is_done_at_once() {
    let content = content();
    let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
    let mut receivers = [receiver(&[1, 2, 3], 0.0)];
    run(&mut senders, &mut receivers, LIMIT);
    let receiver = &receivers[0];
    assert!(receiver.complete_at.is_some() && receiver.committed.is_empty());
    assert_eq!(receiver.receiver.source_symbols(), 0);
    assert!(receiver.events.iter().any(|event| matches!(event, Event::HeardEnough)));
    assert_eq!(receiver.receiver.poll_timeout(), None);
}

#[test]
fn what_is_left_out_too_late_is_received() {
    let content = content();
    let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
    let mut receivers = [receiver(&[], 0.0)];
    run(&mut senders, &mut receivers, Duration::from_millis(50));
    receivers[0].receiver.leave_out([Toi(1)]);
    run(&mut senders, &mut receivers, LIMIT);
    assert!(receivers[0].has(&content));
    assert_eq!(receivers[0].receiver.stats().left_out, 0);
}
