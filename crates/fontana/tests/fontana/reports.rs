//! Real sessions with reports over loopback: a sender that knows which receivers are complete.

use fontana::net::{FeedbackSocket, IpVersion};
use fontana::reports::{Expected, ExpectedReceiver, ExpectedState};
use fontana::seal::{GroupKey, GroupSeal};
use fontana::wire::{ReceiverState, SealMode, SecretKey};
use fontana::{
    Addressing, Code, ErrorKind, FontanaFormat, FontanaReception, Format, Outcome, Rate,
    ReceiveEvent, ReceiveFormat, Receiver, ReceiverBuilder, ReportCollection, Reporting, SendEvent,
    SendMode, Sender, SenderBuilder, TornadoCode,
};
use fontana_testing::noise;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// A group and port that no other test of this process uses.
fn addressing(test: u8) -> Addressing {
    let group = Ipv4Addr::new(239, 255, 92, test);
    let port = 20_000 + (std::process::id() % 20_000) as u16;
    let mut addressing = Addressing::to(SocketAddr::from((group, port)));
    addressing.interfaces = vec!["127.0.0.1".parse().unwrap()];
    addressing
}

fn named(labels: &[&str], key: Option<&SecretKey>) -> Expected {
    let receiver = |label: &&str| ExpectedReceiver {
        label: label.parse().unwrap(),
        key: key.map(SecretKey::public_key),
    };
    Expected::Named(labels.iter().map(receiver).collect())
}

fn collection(expected: Expected) -> ReportCollection {
    let mut reports = ReportCollection::default();
    (reports.expected, reports.until_complete) = (expected, true);
    reports
}

/// A signed session of this file that asks for reports.
fn sender(
    test: u8,
    file: &Path,
    group_key: Option<&GroupKey>,
    reports: ReportCollection,
) -> SenderBuilder {
    let mut format = FontanaFormat::default();
    format.signer = Some(SecretKey::from_seed(&[7; 32]));
    format.group_seal =
        group_key.map(|key| GroupSeal { key: key.clone(), mode: SealMode::Authenticated });
    format.reports = Some(reports);
    Sender::builder([file])
        .addressing(addressing(test))
        .rate(Rate::mbit(20))
        .format(Format::Fontana(format))
}

/// A receiver that reports under this label.
fn receiver(
    test: u8,
    sender: &Sender,
    into: &Path,
    label: &str,
    group_key: Option<&GroupKey>,
    identity: Option<&SecretKey>,
) -> ReceiverBuilder {
    let ticket = &sender.description().ticket;
    let socket = FeedbackSocket::open(IpVersion::V4).unwrap();
    let mut reporting = Reporting::new(socket, |outcome| match outcome {
        Outcome::Complete => 0,
        _ => 77,
    });
    reporting.label = label.parse().unwrap();
    reporting.identity = identity.cloned();
    let mut reception = FontanaReception::from_ticket(ticket);
    reception.group_key = group_key.cloned();
    reception.reporting = Some(Box::new(reporting));
    Receiver::from_ticket(ticket)
        .addressing(addressing(test))
        .format(ReceiveFormat::Fontana(reception))
        .into_dir(into)
        .timeout(Some(Duration::from_secs(100)))
}

#[test]
fn a_sender_ends_when_all_expected_receivers_are_complete() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(300_000, 1)).unwrap();
    let key = GroupKey::generate().unwrap();
    let reports = collection(named(&["a", "b"], None));
    let sender = sender(1, &file, Some(&key), reports).start().unwrap();
    let receivers = ["a", "b"].map(|label| {
        let into = directory.path().join(label);
        receiver(1, &sender, &into, label, Some(&key), None).start().unwrap()
    });
    for receiver in receivers {
        let asked = receiver.events().any(|it| matches!(it, ReceiveEvent::Reporting { .. }));
        assert!(asked);
        let report = receiver.join().unwrap();
        assert_eq!((report.outcome, report.is_known_to_sender), (Outcome::Complete, Some(true)));
    }
    let states: Vec<_> = sender
        .events()
        .filter_map(|event| match event {
            SendEvent::Report(status) => Some(status.report.state),
            _ => None,
        })
        .collect();
    let complete = |state: &&ReceiverState| matches!(state, ReceiverState::Complete { .. });
    assert_eq!(states.iter().filter(complete).count(), 2, "{states:?}");
    let report = sender.join().unwrap();
    assert_eq!(report.outcome, Outcome::Complete);
    let crowd = report.crowd.unwrap();
    assert!(crowd.is_authenticated && crowd.summary.is_as_expected());
    assert_eq!(crowd.summary.ignored, 0);
}

#[test]
fn a_receiver_without_its_key_or_with_a_failure_is_missing_at_the_deadline() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(100_000, 2)).unwrap();
    let key = SecretKey::from_seed(&[9; 32]);
    let mut reports = collection(named(&["signs", "fails", "forges", "absent"], Some(&key)));
    reports.deadline = Some(Duration::from_secs(100));
    let sender = sender(2, &file, None, reports).start().unwrap();
    let start = |label: &str, identity| {
        let into = directory.path().join(label);
        receiver(2, &sender, &into, label, None, identity).start().unwrap()
    };
    // A file is in its way.
    let taken = directory.path().join("fails");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("file"), "other").unwrap();
    let (signs, fails) = (start("signs", Some(&key)), start("fails", Some(&key)));
    let forges = start("forges", Some(&SecretKey::from_seed(&[8; 32])));
    assert_eq!(signs.join().unwrap().outcome, Outcome::Complete);
    assert_ne!(fails.join().unwrap().outcome, Outcome::Complete);
    // Its reports are ignored, so that it is never told that it is known.
    let forged = forges.events().any(|event| matches!(event, ReceiveEvent::Reporting { .. }));
    assert!(forged);
    sender.stop();
    forges.stop();
    let _ = forges.join().unwrap();
    let report = sender.join().unwrap();
    assert_eq!(report.outcome, Outcome::ReceiversIncomplete);
    let crowd = report.crowd.unwrap();
    let missing: Vec<_> =
        crowd.summary.missing.iter().map(|it| (it.label.as_str(), it.state)).collect();
    let failed = ExpectedState::Reported(ReceiverState::Failed { exit_code: 77 });
    assert_eq!(
        missing,
        [
            ("fails", failed),
            ("forges", ExpectedState::NeverHeard),
            ("absent", ExpectedState::NeverHeard)
        ]
    );
    assert_eq!((crowd.summary.complete, crowd.summary.known), (1, 2));
    assert!(crowd.summary.ignored > 0);
}

#[test]
fn reports_need_a_signer_and_something_that_authenticates_expected_receivers() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "a file").unwrap();
    let refused = |reports: ReportCollection, trusted: bool| {
        let mut reports = reports;
        reports.trust_unauthenticated = trusted;
        sender(3, &file, None, reports).prepare().map(|_| ()).map_err(|error| error.to_string())
    };
    let error = refused(collection(Expected::Count(2)), false).unwrap_err();
    assert!(error.contains("a group key"), "{error}");
    assert_eq!(refused(collection(Expected::Count(2)), true), Ok(()));
    let mut format = FontanaFormat::default();
    format.reports = Some(ReportCollection::default());
    let unsigned = Sender::builder([&file])
        .addressing(addressing(3))
        .format(Format::Fontana(format))
        .prepare();
    let error = unsigned.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("a key that signs the session"), "{error}");
}

/// A sender that expects no receiver ends by itself, soon after the source symbols, when nothing is
/// lacking; it has told everyone by then.
#[test]
fn a_sender_that_repairs_on_demand_tells_each_receiver_that_it_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(2_000_000, 3)).unwrap();
    let mut reports = ReportCollection::default();
    reports.trust_unauthenticated = true;
    let sender = sender(10, &file, None, reports).mode(SendMode::RepairOnDemand).start().unwrap();
    let receivers = ["a", "b", "c"].map(|label| {
        let into = directory.path().join(label);
        receiver(10, &sender, &into, label, None, None).start().unwrap()
    });
    for receiver in receivers {
        let report = receiver.join().unwrap();
        assert_eq!((report.outcome, report.is_known_to_sender), (Outcome::Complete, Some(true)));
    }
    let crowd = sender.join().unwrap().crowd.unwrap();
    assert_eq!((crowd.summary.complete, crowd.summary.known), (3, 3));
}

#[test]
fn codes_whose_symbols_repeat_soon_are_not_repaired_on_demand() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, noise(3_000_000, 1)).unwrap();
    let start = |code, block_symbols| {
        let sender = sender(9, &file, None, ReportCollection::default());
        let sender = sender.code(code).block_symbols(block_symbols);
        sender.mode(SendMode::RepairOnDemand).start().map(|sender| sender.stop())
    };
    for (code, block_symbols, needs) in [
        (Code::Tornado(TornadoCode::Z), 1_000, "not Tornado"),
        (Code::ReedSolomon, 200, "at most 128 symbols"),
    ] {
        let error = start(code, block_symbols).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RepairOnDemand, "{error}");
        assert!(error.to_string().contains(needs), "{error}");
    }
    for (code, block_symbols) in [(Code::ReedSolomon, 128), (Code::None, 1_000)] {
        start(code, block_symbols).unwrap();
    }
}
