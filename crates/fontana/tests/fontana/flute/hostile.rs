//! Hostile sessions, from a handmade sender. An honest file arrives beside each of them.

use super::fontana_side::{Files, FontanaReceiver, Received, addressing, air, assert_same, noise};
use super::handmade::{Session, described, oti, table, without_oti};
use fontana::wire::{ContentEncoding, FdtContentEncoding, FdtFile, Toi};
use fontana::{Outcome, ReceiverBuilder, RejectedSession, Rejection};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const HONEST: u128 = 100;

fn honest() -> Vec<u8> {
    noise(5_500, 100)
}

fn honest_files() -> Files {
    Files::from([("honest".to_owned(), honest())])
}

/// A session with an honest file and another one.
fn beside_an_honest_file(file: FdtFile, bytes: &[u8]) -> Session {
    let toi = file.toi.0;
    let honest_file = described(HONEST, "honest", &honest());
    Session::default().table([file, honest_file]).file(toi, bytes).file(HONEST, &honest())
}

fn receive(session: Session, change: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder) -> Received {
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, change);
    let _sender = session.repeat(&addressing);
    receiver.run()
}

/// Checks that the other file is refused for this reason, and that the honest one is complete.
#[track_caller]
fn assert_refused(received: &Received, outcome: Outcome, reason: &str) {
    assert_eq!(received.summary.outcome, outcome, "{:?}", received.summary);
    assert_eq!(received.summary.failures.len(), 1, "{:?}", received.summary);
    let failure = &received.summary.failures[0];
    assert!(failure.to_string().contains(reason), "{failure}");
    assert_same(&received.files, &honest_files());
}

#[test]
fn an_honest_session_made_by_hand_arrives() {
    let bytes = noise(3_000, 1);
    let session = beside_an_honest_file(described(1, "other", &bytes), &bytes);
    let received = receive(session, |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete);
    let mut files = honest_files();
    files.insert("other".to_owned(), bytes);
    assert_same(&received.files, &files);
}

#[test]
fn transmission_information_in_packets_alone_is_enough_before_and_after_the_table() {
    let files = |numbers: std::ops::Range<u128>| numbers.map(|toi| (toi, noise(9_500, toi as u64)));
    let name = |toi: u128| format!("file{toi}");
    let described = |numbers| {
        let of = |(toi, bytes): (u128, Vec<u8>)| without_oti(toi, &name(toi), &bytes);
        files(numbers).map(of).collect::<Vec<_>>()
    };
    let mut session = Session::default();
    for (toi, bytes) in files(1..3) {
        session = session.file_with_fti(toi, &bytes);
    }
    session = session.table(described(1..5));
    for (toi, bytes) in files(3..5) {
        session = session.file_with_fti(toi, &bytes);
    }
    let received = receive(session, |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    assert_same(&received.files, &files(1..5).map(|(toi, bytes)| (name(toi), bytes)).collect());
}

#[test]
fn a_file_of_unknown_geometry_is_waited_for_when_all_others_are_there() {
    let bytes = noise(9_500, 1);
    let session = Session::default()
        .table([described(HONEST, "honest", &honest()), without_oti(1, "other", &bytes)])
        .file(HONEST, &honest())
        .wait(Duration::from_millis(300))
        .file_with_fti(1, &bytes);
    let received = receive(session, |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    let mut files = honest_files();
    files.insert("other".to_owned(), bytes);
    assert_same(&received.files, &files);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    let bytes = noise(2_000, 1);
    let up = "../".repeat(20);
    let into_outside = format!("{up}{}/x", outside.path().display());
    let deep = "d/".repeat(32) + "x";
    let long = format!("a/{}", "x".repeat(256));
    for location in [
        "../x",
        "a/../../x",
        "..%2Fx",
        "..\\x",
        "file:///../x",
        into_outside.as_str(),
        "C:\\x",
        "nul",
        "a%00b",
        "a%0Ab",
        "%1B[2Jx",
        "",
        "/",
        "http://example.org/",
        ".fontana-flute-127-0-0-1-4660",
        ".fontana-flute-127-0-0-1-4660/0",
        "a/b/../../../x",
        "a/nul.txt/x",
        "a /x",
        deep.as_str(),
        long.as_str(),
        "%ff",
    ] {
        let session = beside_an_honest_file(described(1, location, &bytes), &bytes);
        let received = receive(session, |options| options);
        assert_eq!(
            received.summary.outcome,
            Outcome::Refused,
            "{location:?}: {:?}",
            received.summary
        );
        assert_same(&received.files, &honest_files());
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn an_absolute_name_stays_in_the_target() {
    let outside = tempfile::tempdir().unwrap();
    let bytes = noise(2_000, 1);
    let absolute = format!("{}/x", outside.path().display());
    for location in [absolute.clone(), format!("file://{absolute}")] {
        let session = beside_an_honest_file(described(1, &location, &bytes), &bytes);
        let received = receive(session, |options| options);
        assert_eq!(
            received.summary.outcome,
            Outcome::Complete,
            "{location:?}: {:?}",
            received.summary
        );
        let mut files = honest_files();
        files.insert(absolute[1..].to_owned(), bytes.clone());
        assert_same(&received.files, &files);
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn a_link_in_the_target_is_never_a_way_out_of_it() {
    let outside = tempfile::tempdir().unwrap();
    let bytes = noise(2_000, 1);
    for overwrite in [false, true] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| options.overwrite(overwrite));
        std::os::unix::fs::symlink(outside.path(), receiver.target().join("way")).unwrap();
        let session = beside_an_honest_file(described(1, "way/out/x", &bytes), &bytes);
        let _sender = session.repeat(&addressing);
        let received = receiver.run();
        assert_eq!(received.summary.outcome, Outcome::Refused, "{:?}", received.summary);
        assert_same(&received.files, &honest_files());
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_there_keeps_its_mode_and_a_new_one_has_the_usual_one() {
    let bytes = noise(2_000, 1);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    // Complete, and with a file that never comes.
    for outcome in [Outcome::Complete, Outcome::Incomplete] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| {
            let seconds = if outcome == Outcome::Complete { 60 } else { 3 };
            options.overwrite(true).timeout(Some(Duration::from_secs(seconds)))
        });
        let target = receiver.target().to_owned();
        let (private, usual) = (target.join("private"), target.join("usual"));
        std::fs::create_dir(&usual).unwrap();
        std::fs::create_dir(&private).unwrap();
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700)).unwrap();
        let missing =
            (outcome == Outcome::Incomplete).then(|| described(7, "private/never/y", &bytes));
        let table = [described(1, "private/new/x", &bytes)].into_iter().chain(missing);
        let session = Session::default().table(table).file(1, &bytes);
        let _sender = session.repeat(&addressing);
        let received = receiver.run();
        assert_eq!(received.summary.outcome, outcome, "{:?}", received.summary);
        assert_eq!(received.files["private/new/x"], bytes);
        assert_eq!((mode(&private), mode(&private.join("new"))), (0o700, mode(&usual)));
        assert!(!private.join("never").exists());
    }
}

#[test]
fn of_two_files_with_one_name_the_later_entry_holds() {
    let (first, second) = (noise(2_000, 1), noise(2_000, 2));
    let session = Session::default()
        .table([described(1, "a/name", &first), described(2, "/a//./name", &second)])
        .file(1, &first)
        .file(2, &second);
    let received = receive(session, |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    assert_same(&received.files, &Files::from([("a/name".to_owned(), second)]));
}

#[test]
fn nothing_lies_below_a_file_and_no_file_takes_the_place_of_a_directory() {
    let (first, second) = (noise(2_000, 1), noise(2_000, 2));
    for [one, other] in [["a", "a/b"], ["a/b", "a"]] {
        let session = Session::default()
            .table([described(1, one, &first), described(2, other, &second)])
            .file(2, &second)
            .file(1, &first);
        let received = receive(session, |options| options);
        assert_eq!(received.summary.outcome, Outcome::Refused);
        assert_same(&received.files, &Files::from([(one.to_owned(), first.clone())]));
    }
}

#[test]
fn a_file_that_exists_is_left_alone() {
    let bytes = noise(2_000, 1);
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    std::fs::write(receiver.target().join("mine"), "precious").unwrap();
    let session = beside_an_honest_file(described(1, "mine", &bytes), &bytes);
    let _sender = session.repeat(&addressing);
    let received = receiver.run();
    assert_eq!(received.summary.outcome, Outcome::Refused);
    let mut files = honest_files();
    files.insert("mine".to_owned(), b"precious".to_vec());
    assert_same(&received.files, &files);
}

#[test]
fn a_content_encoding_that_is_not_known_is_refused_by_name() {
    let bytes = noise(2_000, 1);
    let encoding = FdtContentEncoding::Unknown("br".to_owned());
    let file = FdtFile { content_encoding: Some(encoding), ..described(1, "other", &bytes) };
    let received = receive(beside_an_honest_file(file, &bytes), |options| options);
    assert_refused(&received, Outcome::Refused, "content encoding \"br\"");
}

#[test]
fn data_that_cannot_be_decompressed_fails_verification() {
    let bytes = noise(2_000, 1);
    for (encoding, length) in [
        (ContentEncoding::Gzip, Some(4_000)),
        (ContentEncoding::Zlib, None),
        (ContentEncoding::Deflate, None),
    ] {
        let file = FdtFile {
            content_encoding: Some(FdtContentEncoding::Known(encoding)),
            content_length: length,
            ..described(1, "other", &bytes)
        };
        let received = receive(beside_an_honest_file(file, &bytes), |options| options);
        assert_refused(&received, Outcome::VerificationFailed, encoding.name());
    }
}

#[test]
fn a_length_that_no_object_could_hold_is_refused_before_room_is_made_for_it() {
    let bytes = noise(2_000, 1);
    for encoding in [ContentEncoding::Null, ContentEncoding::Gzip] {
        let file = FdtFile {
            content_encoding: Some(FdtContentEncoding::Known(encoding)),
            content_length: Some(1 << 60),
            ..described(1, "other", &bytes)
        };
        let received = receive(beside_an_honest_file(file, &bytes), |options| options);
        assert_refused(&received, Outcome::VerificationFailed, "more than its object can hold");
    }
}

#[test]
fn a_file_shorter_or_longer_than_the_table_says_fails_verification() {
    let bytes = noise(2_000, 1);
    let shorter = FdtFile { content_length: Some(1_999), ..described(1, "other", &bytes) };
    let received = receive(beside_an_honest_file(shorter, &bytes), |options| options);
    assert_refused(&received, Outcome::VerificationFailed, "length");
}

#[test]
fn object_numbers_that_fontana_keeps_for_itself_are_refused_aloud() {
    let bytes = noise(2_000, 1);
    for toi in [Toi::HEAD, Toi::MANIFEST] {
        let session = beside_an_honest_file(described(toi.0, "other", &bytes), &bytes);
        assert_refused(&receive(session, |options| options), Outcome::Refused, "TOI");
    }
}

#[test]
fn geometry_that_makes_no_sense_is_refused() {
    let bytes = noise(2_000, 1);
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 0 });
    let raptorq = FecScheme::RaptorQ(RaptorQ { source_blocks: 200, sub_blocks: 1, alignment: 4 });
    for nonsense in [
        Oti { symbol_size: 0, ..oti(2_000) },
        Oti { scheme, ..oti(2_000) },
        Oti { scheme: raptorq, ..oti(2_000) },
        Oti { transfer_length: 1 << 60, ..oti(2_000) },
    ] {
        let file = FdtFile { oti: Some(nonsense), ..described(1, "other", &bytes) };
        let received = receive(beside_an_honest_file(file, &bytes), |options| options);
        assert_refused(&received, Outcome::Refused, "makes no sense");
    }
}

#[test]
fn a_session_cannot_ask_for_more_than_is_accepted() {
    let bytes = noise(2_000, 1);
    let honest_file = described(HONEST, "honest", &honest());
    let most = honest().len() as u64 + 1_999;
    let session = |file| {
        let files = [honest_file.clone(), file];
        Session::default().table(files).file(HONEST, &honest()).file(1, &bytes)
    };
    let received =
        receive(session(described(1, "other", &bytes)), |options| options.max_bytes(most));
    assert_refused(&received, Outcome::Refused, "more bytes than are accepted");
    let received =
        receive(session(described(1, "other", &bytes)), |options| options.max_bytes(most + 1));
    assert_eq!(received.summary.outcome, Outcome::Complete);

    // The largest number of blocks, five times.
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
    let shredded = Oti { transfer_length: 1 << 16, symbol_size: 1, scheme };
    let file = |toi: u128| FdtFile {
        oti: Some(shredded),
        content_length: Some(1 << 16),
        ..described(toi, &format!("shreds{toi}"), &bytes)
    };
    let files = [honest_file.clone()].into_iter().chain((1..=4).map(file));
    let session = Session::default().table(files).file(HONEST, &honest());
    let received = receive(session, |options| options.timeout(Some(Duration::from_secs(2))));
    assert!(received.summary.failures[0].to_string().contains("more source blocks"));
    assert_same(&received.files, &honest_files());
}

#[test]
fn a_table_that_is_none_is_told_and_the_next_one_is_taken() {
    let session = |with_good_one: bool| {
        let session = Session::default().table_instance(1, b"<html>not found</html>", None);
        let files = [described(HONEST, "honest", &honest())];
        let session =
            if with_good_one { session.table_instance(2, &table(files), None) } else { session };
        session.file(HONEST, &honest())
    };
    let received = receive(session(true), |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete);
    assert_same(&received.files, &honest_files());
    let received = receive(session(false), |options| options.timeout(Some(Duration::from_secs(1))));
    assert_eq!(received.summary.outcome, Outcome::VerificationFailed);
    assert!(matches!(
        received.summary.rejections[..],
        [RejectedSession { reason: Rejection::BadManifest, .. }]
    ));
    assert_same(&received.files, &Files::new());
}

#[test]
fn a_table_compressed_beyond_reason_is_not_decompressed() {
    // 7 MB of blanks: within the limit of bytes, but above that of the ratio.
    let mut bomb = table([described(HONEST, "honest", &honest())]);
    bomb.extend(vec![b' '; 7 << 20]);
    let compressed = flute::sender::compress::compress_buffer(&bomb, flute::core::lct::Cenc::Gzip);
    let session = Session::default()
        .table_instance(1, &compressed.unwrap(), Some(ContentEncoding::Gzip))
        .file(HONEST, &honest());
    let received = receive(session, |options| options.timeout(Some(Duration::from_secs(1))));
    assert_eq!(received.summary.outcome, Outcome::VerificationFailed);
}

#[test]
fn a_sender_that_began_again_with_the_same_number_for_another_table_is_understood() {
    // The first packet of a longer table that never comes whole.
    let long = table((1..50).map(|toi| described(toi, "never", &[])));
    let mut session = Session::default().table_instance(1, &long, None);
    session = session.first_packet();
    let session = session.table([described(HONEST, "honest", &honest())]).file(HONEST, &honest());
    let received = receive(session, |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete);
    assert_same(&received.files, &honest_files());
}

#[test]
fn a_receiver_that_hears_only_the_table_says_that_it_is_incomplete() {
    let session = Session::default().table([described(HONEST, "honest", &honest())]);
    let received = receive(session, |options| options.timeout(Some(Duration::from_secs(1))));
    assert_eq!(received.summary.outcome, Outcome::Incomplete);
    assert_same(&received.files, &Files::new());
}
