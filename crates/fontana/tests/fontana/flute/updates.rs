//! Newer versions of files, on the disk.

use super::fontana_side::{FontanaReceiver, addressing, air, noise};
use super::handmade::{Session, described, open_table};
use fontana::{Outcome, ReceiveEvent};
use std::time::Duration;

/// A file that changes: another TOI, in the next table. More than one version in a second is
/// refused, and on a busy host packets that were sent apart arrive together.
fn changing(versions: &[Vec<u8>]) -> Session {
    let mut session = Session::default();
    for (toi, bytes) in (1..).zip(versions) {
        let table = open_table([described(toi, "dir/news", bytes)]);
        session = session.table_instance(toi as u32, &table, None).file(toi, bytes);
        session = session.wait(Duration::from_millis(2_500));
    }
    session
}

#[test]
fn a_newer_version_replaces_what_the_reception_has_written() {
    let versions: Vec<_> = (1..=3).map(|seed| noise(2_500, seed)).collect();
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| {
        options.give_up_after_silence(Some(Duration::from_secs(4)))
    });
    let _sender = changing(&versions).once(&addressing);
    let received = receiver.run();
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    assert_eq!(received.files.keys().collect::<Vec<_>>(), ["dir/news"]);
    assert!(received.files["dir/news"] == versions[2]);
    assert_eq!(received.updates, ["dir/news", "dir/news"]);
}

#[test]
fn a_file_that_another_program_has_changed_is_not_replaced() {
    for is_changed in [true, false] {
        let versions: Vec<_> = (1..=2).map(|seed| noise(2_500, seed)).collect();
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| {
            options.give_up_after_silence(Some(Duration::from_secs(4)))
        });
        let path = receiver.target().join("dir/news");
        let _sender = changing(&versions).once(&addressing);
        let received = receiver.run_with(|event| {
            // Between the two versions.
            if is_changed && matches!(event, ReceiveEvent::ObjectDone(_)) {
                std::fs::write(&path, b"mine").unwrap();
            }
        });
        let (outcome, bytes) = match is_changed {
            true => (Outcome::Refused, &b"mine"[..]),
            false => (Outcome::Complete, &versions[1][..]),
        };
        assert_eq!(received.summary.outcome, outcome, "{:?}", received.summary);
        assert!(received.files["dir/news"] == bytes);
    }
}
