//! What a receiver does not want of a session, in virtual time.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, receiver_config, run, sender,
};
use fontana_proto::report::{Reporter, ReporterConfig};
use fontana_proto::{
    ChannelId, Ending, Endpoint, Instant, Output, ReceiveDone, ReceiveJob, ReceiverEvent,
    ReceiverPhase, Rejection,
};
use fontana_wire::{
    Feedback, InstanceId, ReceiverId, ReceiverLabel, ReceiverState, RollCall, RollCallList,
    SecretKey, Toi, Tsi,
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const STAYS: ReceiverPhase = ReceiverPhase::Staying { shares: false };

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

/// What a receiver reports if this run of a sender asks now.
fn reported(receiver: &mut ReceiverDriver, now: Instant, instance: u8) -> Option<ReceiverState> {
    let call = RollCall {
        instance: InstanceId([instance; 16]),
        tsi: Tsi(5),
        serial: 1,
        issued_unix_ms: 0,
        collector: "10.0.0.1:9".parse().unwrap(),
        round: 1,
        position: 0,
        window_ms: 0,
        head_count: 1,
        known: 0,
        salt: 1,
        list: RollCallList::Known(Vec::new()),
        repair: None,
        rate: None,
    };
    receiver.endpoint.handle_done(now, ReceiveDone::Called(Ok(Box::new(call))));
    let mut header = Vec::new();
    let outputs = std::iter::from_fn(|| receiver.endpoint.poll_output(now, &mut header));
    outputs.into_iter().find_map(|output| match output {
        Output::Job(ReceiveJob::Seal(answer)) => match answer.feedback {
            Feedback::Report(report) => Some(report.state),
            _ => None,
        },
        _ => None,
    })
}

/// A follower of versions learns from the heads what the run sends that asks.
#[test]
fn a_follower_reports_of_the_version_that_the_asking_run_sends() {
    let (content, key) = (content(), SecretKey::from_seed(&[3; 32]));
    let setup = Setup { seed: 9, ..Setup::default() };
    let mut senders = [SenderDriver::new(sender(&content, &setup, Some(&key)), &content)];
    let reports = |newer_than| {
        let config = ReporterConfig::new(ReceiverId([7; 16]), ReceiverLabel::default(), 1);
        let config = ReporterConfig { follows: true, ..config };
        follower(&key, newer_than).with_reports(Reporter::new(config))
    };
    let mut receivers = [reports(None), reports(Some(1)), reports(Some(2))];
    assert_eq!(reported(&mut reports(None), Instant::ZERO, 9), None, "no head has arrived");
    let after = Duration::from_millis(300);
    run(&mut senders, &mut receivers, after);
    let now = Instant::ZERO + after;
    let manifest = content.hash();
    let [lacks, has, is_ahead] = &mut receivers;
    assert_eq!(reported(lacks, now, 9), Some(ReceiverState::Receiving));
    assert_eq!(reported(has, now, 9), Some(ReceiverState::Complete { manifest }));
    assert_eq!(reported(is_ahead, now, 9), None, "an old run, which has nothing for it");
    assert_eq!(reported(lacks, now, 8), None, "a run that has sent no head");

    // That version has failed here.
    let mut config = receiver_config();
    config.expectation.publisher = Some(key.public_key());
    config.expectation.newer_than = Some(1);
    config.expectation.given_up = Some(1);
    let reporter = ReporterConfig::new(ReceiverId([7; 16]), ReceiverLabel::default(), 1);
    let reporter = Reporter::new(ReporterConfig { follows: true, ..reporter });
    let mut failed = [ReceiverDriver::new(config, 0.0, 6).with_reports(reporter)];
    let setup = Setup { seed: 9, ..Setup::default() };
    let mut senders = [SenderDriver::new(sender(&content, &setup, Some(&key)), &content)];
    run(&mut senders, &mut failed, after);
    assert_eq!(reported(&mut failed[0], now, 9), Some(ReceiverState::Receiving));

    // The next reception of the same follower goes on with what its sender knows.
    let reporter = has.endpoint.take_reporter().unwrap();
    assert_eq!(reported(has, now, 9), None);
    let mut next = follower(&key, Some(1)).with_reports(reporter);
    assert_eq!(reported(&mut next, Instant::ZERO, 9), None, "it has not seen a head yet");
}

/// Roll calls are on channel 0, which a receiver leaves that has enough and reports nothing.
#[test]
fn a_receiver_that_reports_stays_on_the_channel_of_roll_calls() {
    let (content, key) = (content(), SecretKey::from_seed(&[3; 32]));
    let signed = sender(&content, &Setup::default(), Some(&key));
    let mut senders = [SenderDriver::new(signed, &content)];
    let config = ReporterConfig::new(ReceiverId([7; 16]), ReceiverLabel::default(), 1);
    let reports = follower(&key, None).with_reports(Reporter::new(config));
    let mut receivers = [follower(&key, None), reports];
    run(&mut senders, &mut receivers, LIMIT);
    assert!(receivers.iter().all(|receiver| receiver.has(&content)));
    let stays = receivers.map(|receiver| receiver.joined.contains(&ChannelId::BASE));
    assert_eq!(stays, [false, true]);
}

/// One that has heard a sender waits for its roll call, to tell it.
#[test]
fn a_failed_reception_that_has_heard_nothing_waits_for_nobody() {
    let (content, key) = (content(), SecretKey::from_seed(&[3; 32]));
    let signed = sender(&content, &Setup::default(), Some(&key));
    let mut senders = [SenderDriver::new(signed, &content)];
    for (heard, expected) in [(0, ReceiverPhase::Over), (300, STAYS)] {
        let config = ReporterConfig::new(ReceiverId([7; 16]), ReceiverLabel::default(), 1);
        let mut receivers = [follower(&key, None).with_reports(Reporter::new(config))];
        let after = Duration::from_millis(heard);
        run(&mut senders, &mut receivers, after);
        let now = Instant::ZERO + after;
        let state = ReceiverState::Failed { exit_code: 75 };
        let endpoint = &mut receivers[0].endpoint;
        endpoint.end(now, Ending { state, shares: false, latest: None });
        assert_eq!(endpoint.phase(now), expected, "heard for {heard} ms");
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
