//! FCAST (RFC 6968) between two Fontanas, and handmade sessions: valid ones of other programs, and
//! hostile ones.

use super::fontana_side::{
    Files, FontanaReceiver, FontanaSender, MIB, Received, addressing, air, assert_same, files_of,
    noise, text, write,
};
use super::handmade::Session;
use fontana::wire::{
    CarouselInstance, CompoundHeader, CompoundMetadata, ContentEncoding, Equivalence,
    FdtContentEncoding, InternetChecksum, Slice, Toi,
};
use fontana::{
    Code, ErrorKind, FcastFormat, FluteFormat, Format, Outcome, ReceiveFormat, ReceiverBuilder,
    SenderBuilder, SimulatedLoss, Verified,
};
use sha1::Digest;
use std::time::Duration;

/// The format, with slices of so many bytes.
fn fcast(slice_bytes: Option<u64>) -> Format {
    let mut format = FcastFormat::default();
    format.slice_bytes = slice_bytes;
    Format::Fcast(format)
}

fn transfer(
    files: &Files,
    loss: f64,
    change: impl FnOnce(SenderBuilder) -> SenderBuilder,
) -> Received {
    let _air = air();
    let directory = tempfile::tempdir().unwrap();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| {
        options
            .format(ReceiveFormat::Fcast)
            .simulated_loss(Some(SimulatedLoss { probability: loss, seed: 1 }))
    });
    let _sender = FontanaSender::start(&addressing, write(files, directory.path()), |options| {
        change(options.format(fcast(None)))
    });
    receiver.run()
}

#[track_caller]
fn assert_complete(received: &Received, files: &Files) {
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    assert_same(&received.files, files);
    assert_eq!(received.summary.verified, Some(Verified::None), "nobody vouches for them");
}

#[test]
fn a_lossy_receiver_completes_with_any_code_whole_and_in_slices() {
    let files = files_of(&[0, 1, 3 * MIB]);
    for code in [Code::None, Code::ReedSolomon, Code::RaptorQ] {
        for slice_bytes in [None, Some(64 << 10)] {
            let received =
                transfer(&files, 0.1, |options| options.code(code).format(fcast(slice_bytes)));
            assert_complete(&received, &files);
        }
    }
}

#[test]
fn a_tree_arrives_with_its_directories_and_empty_files() {
    let names = ["tree/a/b/c", "tree/a/d", "tree/e", "beside"];
    let mut files: Files =
        names.map(|name| (name.to_owned(), name.repeat(500).into_bytes())).into();
    files.insert("tree/empty".to_owned(), Vec::new());
    files.extend((0..200).map(|n| (format!("tree/many/{n}"), vec![n as u8; n % 3])));
    assert_complete(&transfer(&files, 0.1, |options| options), &files);
}

#[test]
fn every_slice_of_a_file_is_an_object_of_its_own() {
    let files = Files::from([("file".to_owned(), noise(100_001, 1))]);
    let received = transfer(&files, 0.0, |options| options.format(fcast(Some(10_000))));
    assert_complete(&received, &files);
    let names: Vec<_> = received.summary.objects.iter().map(|object| &object.names).collect();
    assert_eq!(names, vec![&vec!["file".to_owned()]; 11]);
}

const PATIENCE: Duration = Duration::from_secs(2);

fn receive(session: Session, change: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder) -> Received {
    let _air = air();
    let addressing = addressing();
    let receiver =
        FontanaReceiver::join(&addressing, |options| change(options.format(ReceiveFormat::Fcast)));
    let _sender = session.repeat(&addressing);
    receiver.run()
}

fn named(location: &str) -> CompoundMetadata {
    CompoundMetadata { content_location: Some(location.to_owned()), ..CompoundMetadata::default() }
}

fn object(metadata: CompoundMetadata, data: &[u8]) -> Vec<u8> {
    CompoundHeader::Object(metadata).with_data(data)
}

/// A descriptor that declares objects 1 to `last` to be complete.
fn all_up_to(last: u128) -> CarouselInstance {
    let objects = vec![Toi(1)..=Toi(last)];
    CarouselInstance { is_complete: true, objects, ..CarouselInstance::default() }
}

fn honest() -> Vec<u8> {
    noise(5_500, 100)
}

fn honest_files() -> Files {
    Files::from([("honest".to_owned(), honest())])
}

/// An honest file as object 1.
fn honest_session() -> Session {
    Session::default().file_with_fti(1, &object(named("honest"), &honest()))
}

/// A session with an honest file, another object, and a descriptor of both.
fn beside_an_honest_file(bytes: &[u8]) -> Session {
    honest_session().file_with_fti(2, bytes).file_with_fti(9, &all_up_to(2).emit())
}

/// The failure of an object beside an honest file.
#[track_caller]
fn assert_arrives(bytes: &[u8], name: &str, content: &[u8]) {
    let received = receive(beside_an_honest_file(bytes), |options| options);
    let mut files = honest_files();
    files.insert(name.to_owned(), content.to_vec());
    assert_complete(&received, &files);
}

/// Checks that the object is refused for this reason, and that the honest file is complete.
#[track_caller]
fn assert_refused(bytes: &[u8], outcome: Outcome, reason: &str) {
    let received = receive(beside_an_honest_file(bytes), |options| options);
    assert_only_honest(&received, outcome, reason);
}

#[track_caller]
fn assert_only_honest(received: &Received, outcome: Outcome, reason: &str) {
    assert_eq!(received.summary.outcome, outcome, "{:?}", received.summary);
    let failures: Vec<_> = received.summary.failures.iter().map(ToString::to_string).collect();
    assert!(failures.iter().any(|failure| failure.contains(reason)), "{failures:?}");
    assert_same(&received.files, &honest_files());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    flute::sender::compress::compress_buffer(bytes, flute::core::lct::Cenc::Gzip).unwrap()
}

fn gzipped() -> Option<FdtContentEncoding> {
    Some(FdtContentEncoding::Known(ContentEncoding::Gzip))
}

#[test]
fn what_the_rfc_allows_is_received() {
    let bytes = text(50_000);
    let sha1 = Some(sha1::Sha1::digest(&bytes).into());
    let sha256 = Some(sha2::Sha256::digest(&bytes).into());
    let content_length = Some(50_000);
    let content_encoding = gzipped();
    for metadata in [
        named("other"),
        CompoundMetadata { sha1, ..named("other") },
        CompoundMetadata { sha1, sha256, content_length, ..named("other") },
    ] {
        assert_arrives(&object(metadata.clone(), &bytes), "other", &bytes);
        let encoded = CompoundMetadata { content_encoding: content_encoding.clone(), ..metadata };
        assert_arrives(&object(encoded, &gzip(&bytes)), "other", &bytes);
    }
}

#[test]
fn a_checksum_over_the_header_alone_leaves_the_data_to_the_digest() {
    let bytes = noise(2_000, 1);
    let with_header_checksum = |metadata: CompoundMetadata, data: &[u8]| {
        let mut object = object(metadata, data);
        let header = object.len() - data.len();
        object[..4].fill(0);
        let mut sum = InternetChecksum::default();
        sum.add(&object[..header]);
        object[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
        object
    };
    let sha256 = Some(sha2::Sha256::digest(&bytes).into());
    let metadata = CompoundMetadata { sha256, ..named("other") };
    assert_arrives(&with_header_checksum(metadata.clone(), &bytes), "other", &bytes);
    let mut damaged = bytes.clone();
    damaged[1_000] ^= 1;
    assert_refused(
        &with_header_checksum(metadata, &damaged),
        Outcome::VerificationFailed,
        "SHA-256",
    );
    assert_arrives(&with_header_checksum(named("other"), &damaged), "other", &damaged);
}

#[test]
fn an_object_that_contradicts_itself_is_refused() {
    let bytes = noise(2_000, 1);
    let mut damaged = object(named("other"), &bytes);
    *damaged.last_mut().unwrap() ^= 1;
    assert_refused(&damaged, Outcome::VerificationFailed, "checksum");
    let is = |metadata| object(metadata, &bytes);
    let other = || named("other");
    assert_refused(
        &is(CompoundMetadata { sha1: Some([0; 20]), ..other() }),
        Outcome::VerificationFailed,
        "SHA-1",
    );
    assert_refused(
        &is(CompoundMetadata { sha256: Some([0; 32]), ..other() }),
        Outcome::VerificationFailed,
        "SHA-256",
    );
    for (content_length, reason) in [(1_999, "bytes"), (2_001, "more than its object can hold")] {
        let metadata = CompoundMetadata { content_length: Some(content_length), ..other() };
        assert_refused(&is(metadata), Outcome::VerificationFailed, reason);
    }
    assert_refused(
        &is(CompoundMetadata { content_encoding: gzipped(), ..other() }),
        Outcome::VerificationFailed,
        "gzip",
    );
    let unknown = Some(FdtContentEncoding::Unknown("br".to_owned()));
    assert_refused(
        &is(CompoundMetadata { content_encoding: unknown, ..other() }),
        Outcome::Refused,
        "\"br\"",
    );
    assert_refused(b"something else", Outcome::VerificationFailed, "version");
    assert_refused(&[0, 0], Outcome::VerificationFailed, "FCAST header");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in ["../x", "..%2Fx", "a%00b", "C:\\x", ".fontana-fcast-127-0-0-1-4660/0", ""] {
        assert_refused(&object(named(name), b"bytes"), Outcome::Refused, "");
    }
    assert_refused(&object(CompoundMetadata::default(), b"bytes"), Outcome::Refused, "");
}

#[test]
fn of_two_objects_of_the_same_name_the_first_that_is_whole_has_it() {
    let received =
        receive(beside_an_honest_file(&object(named("honest"), b"bytes")), |options| options);
    assert_eq!(received.summary.outcome, Outcome::Refused, "{:?}", received.summary);
    assert_eq!(received.summary.failures.len(), 1, "{:?}", received.summary);
    // Which one depends on when the receiver joined.
    let either = [honest(), b"bytes".to_vec()];
    let of_that_name = |bytes: &Vec<u8>| Files::from([("honest".to_owned(), bytes.clone())]);
    assert!(either.iter().any(|bytes| received.files == of_that_name(bytes)), "mixed up");
}

#[test]
fn a_file_that_exists_is_left_alone() {
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |o| o.format(ReceiveFormat::Fcast));
    std::fs::write(receiver.target().join("mine"), "precious").unwrap();
    let session = beside_an_honest_file(&object(named("mine"), b"bytes"));
    let _sender = session.repeat(&addressing);
    let received = receiver.run();
    assert_eq!(received.summary.outcome, Outcome::Refused);
    assert_eq!(received.files["mine"], b"precious");
}

/// Slice `index` of a file of 3 000 bytes, three of them.
fn slice(index: u32, offset: u64, data: &[u8]) -> Vec<u8> {
    let slice = Some(Slice { count: 3, index, offset });
    object(CompoundMetadata { content_length: Some(3_000), slice, ..named("sliced") }, data)
}

/// A session with an honest file and slices, as objects from 2 on.
fn slices(all: &[Vec<u8>]) -> Session {
    let last = all.len() as u128 + 1;
    let session = (2..).zip(all).fold(honest_session(), |s, (toi, o)| s.file_with_fti(toi, o));
    session.file_with_fti(99, &all_up_to(last).emit())
}

#[test]
fn slices_of_any_length_come_in_any_order() {
    let bytes = noise(3_000, 1);
    let session = slices(&[
        slice(2, 2_500, &bytes[2_500..]),
        slice(0, 0, &bytes[..1]),
        slice(1, 1, &bytes[1..2_500]),
    ]);
    let received = receive(session, |options| options);
    let mut files = honest_files();
    files.insert("sliced".to_owned(), bytes);
    assert_complete(&received, &files);
}

#[test]
fn a_file_without_all_its_slices_is_reported_with_what_is_missing() {
    let bytes = noise(3_000, 1);
    let session = slices(&[slice(1, 1_000, &bytes[1_000..2_000])]);
    let received = receive(session, |options| options);
    assert_only_honest(&received, Outcome::Incomplete, "\"sliced\" lacks 2 of its 3 slices: 0, 2");
}

#[test]
fn slices_that_contradict_each_other_make_no_file() {
    let (all, third) = (noise(3_000, 1), noise(1_000, 2));
    let cases = [
        (vec![slice(0, 0, &third), slice(0, 0, &third)], "does not fit"),
        (vec![slice(1, 0, &third), slice(0, 1_000, &third)], "does not fit"),
        (vec![slice(0, 1, &all)], "more than 2999 bytes"),
        (vec![slice(0, 3_001, b"")], "does not fit"),
        (vec![slice(0, u64::MAX, &third)], "does not fit"),
        (
            vec![slice(0, 0, &third), slice(1, 1_001, &third[..999]), slice(2, 2_000, &third)],
            "gaps",
        ),
    ];
    for (objects, reason) in cases {
        let received = receive(slices(&objects), |options| options);
        assert_only_honest(&received, Outcome::VerificationFailed, reason);
    }
    // The one that is solved last is at fault: on a busy host, that may be either of the two.
    let overlapping = slices(&[slice(0, 0, &third), slice(1, 999, &third)]);
    let received = receive(overlapping, |options| options);
    let first_is_last = received.summary.failures.iter().any(|e| e.to_string().contains("999"));
    let reason = if first_is_last { "more than 999 bytes" } else { "does not fit" };
    assert_only_honest(&received, Outcome::VerificationFailed, reason);
    let lengthless = CompoundMetadata {
        slice: Some(Slice { count: 3, index: 1, offset: 0 }),
        ..named("sliced")
    };
    let longer = CompoundMetadata { content_length: Some(3_001), ..lengthless.clone() };
    for (metadata, reason) in [(lengthless, "how long"), (longer, "different things")] {
        let received =
            receive(slices(&[slice(0, 0, b""), object(metadata, b"")]), |options| options);
        assert_only_honest(&received, Outcome::VerificationFailed, reason);
    }
}

#[test]
fn a_session_cannot_promise_more_than_is_accepted() {
    let session = || slices(&[slice(0, 0, b"")]);
    let most = 5_500 + 3_000 + 500;
    let received = receive(session(), |options| options.max_bytes(2_999));
    assert!(received.summary.failures.iter().any(|e| e.to_string().contains("bytes")));
    assert_same(&received.files, &Files::new());
    let received = receive(session(), |options| options.max_bytes(most));
    assert_only_honest(&received, Outcome::Incomplete, "lacks 2 of its 3 slices: 1-2");
}

#[test]
fn without_a_complete_descriptor_a_receiver_cannot_know_that_it_has_everything() {
    let incomplete = CarouselInstance { is_complete: false, ..all_up_to(1) };
    let none = honest_session();
    let listing_more = honest_session().file_with_fti(9, &all_up_to(2).emit());
    for session in [none, honest_session().file_with_fti(9, &incomplete.emit()), listing_more] {
        let received = receive(session, |options| options.timeout(Some(PATIENCE)));
        assert_eq!(received.summary.outcome, Outcome::Incomplete, "{:?}", received.summary);
        // Files that have arrived have their names nevertheless.
        assert_same(&received.files, &honest_files());
    }
}

#[test]
fn an_object_that_a_complete_descriptor_does_not_list_is_not_waited_for() {
    // Only the first packet of it is ever sent.
    let stray = Session::default().file_with_fti(7, &noise(50_000, 7)).first_packet();
    let session = stray
        .file_with_fti(1, &object(named("honest"), &honest()))
        .file_with_fti(9, &all_up_to(1).emit());
    assert_complete(&receive(session, |options| options), &honest_files());
}

#[test]
fn a_newer_descriptor_counts_and_an_older_one_does_not() {
    let descriptor = |id, last| CarouselInstance { id: Some(id), ..all_up_to(last) }.emit();
    let open = |id, last| {
        let instance = CarouselInstance { id: Some(id), is_complete: false, ..all_up_to(last) };
        instance.emit()
    };
    let session = Session::default()
        .file_with_fti(20, &open(5, 3))
        .file_with_fti(21, &descriptor(4, 3))
        .file_with_fti(1, &object(named("honest"), &honest()))
        .wait(Duration::from_millis(200))
        .file_with_fti(22, &descriptor(6, 1));
    // Several workers read descriptors in any order. After a complete one, later ones are ignored.
    assert_complete(&receive(session, |options| options.workers(1)), &honest_files());
}

#[test]
fn an_object_with_a_new_number_goes_on_where_the_old_one_was() {
    let file = object(named("honest"), &honest());
    let equivalences = vec![Equivalence { toi: Toi(5), first_toi: Toi(1), first_instance: 0 }];
    let renumbered = CarouselInstance {
        is_complete: true,
        id: Some(1),
        objects: vec![Toi(5)..=Toi(5)],
        equivalences,
    };
    for heard_before in
        [Session::default().file_with_fti(1, &file).first_packet(), honest_session()]
    {
        let session = heard_before
            .wait(Duration::from_millis(200))
            .file_with_fti(9, &renumbered.emit())
            .wait(Duration::from_millis(200))
            .file_with_fti(5, &file);
        assert_complete(&receive(session, |options| options), &honest_files());
    }
}

#[test]
fn a_descriptor_that_is_none_is_dropped_and_the_next_one_is_taken() {
    let metadata = CompoundMetadata { is_complete: true, ..CompoundMetadata::default() };
    let nonsense = CompoundHeader::Descriptor(metadata).with_data(b"1-");
    let session = honest_session()
        .file_with_fti(8, &nonsense)
        .wait(Duration::from_millis(200))
        .file_with_fti(9, &all_up_to(1).emit());
    assert_complete(&receive(session, |options| options), &honest_files());
}

#[test]
fn sessions_with_tables_are_not_taken_for_fcast() {
    let directory = tempfile::tempdir().unwrap();
    let paths = write(&honest_files(), directory.path());
    for format in [Format::default(), Format::Flute(FluteFormat::default())] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| {
            options.format(ReceiveFormat::Fcast).timeout(Some(Duration::from_secs(1)))
        });
        let paths = paths.clone();
        let _sender = FontanaSender::start(&addressing, paths, |o| o.format(format));
        let received = receiver.run();
        assert_eq!(received.summary.outcome, Outcome::NothingReceived, "{:?}", received.summary);
        assert_same(&received.files, &Files::new());
    }
}

#[test]
fn files_that_join_a_running_session_arrive_and_late_receivers_get_all_of_them() {
    let _air = air();
    let (directory, addressing) = (tempfile::tempdir().unwrap(), addressing());
    let files = files_of(&[MIB, 3 * MIB / 2, 20_000, 0]);
    let paths = write(&files, directory.path());
    let join = || {
        FontanaReceiver::join(&addressing, |options| {
            options
                .format(ReceiveFormat::Fcast)
                .simulated_loss(Some(SimulatedLoss { probability: 0.1, seed: 1 }))
        })
    };
    let growing = {
        let mut format = FcastFormat::default();
        (format.growing, format.slice_bytes) = (true, Some(300_000));
        Format::Fcast(format)
    };
    let early = join();
    let into = early.target().to_owned();
    let receiving = std::thread::spawn(move || early.run());
    let sender = FontanaSender::start(&addressing, vec![paths[1].clone()], |o| o.format(growing));
    // The first file is there, and its receiver waits for more.
    let first = into.join(paths[1].file_name().unwrap());
    while !first.exists() {
        assert!(!receiving.is_finished());
        std::thread::sleep(Duration::from_millis(20));
    }
    let handle = sender.handle();
    handle.go().unwrap();
    handle.add_all(&paths[2..]).unwrap();
    let missing = handle.add_all(&[paths[0].clone(), directory.path().join("x")]).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::SourceMissing, "nothing of it is added");
    assert_eq!(handle.add(&paths[1]).unwrap_err().kind(), ErrorKind::SameName);
    handle.go().unwrap();
    handle.add(&paths[0]).unwrap();
    assert!(!receiving.is_finished());
    handle.finish().unwrap();
    assert_eq!(handle.add(&paths[0]).unwrap_err().kind(), ErrorKind::NoFurtherFiles);
    assert_complete(&receiving.join().unwrap(), &files);
    assert_complete(&join().run(), &files);
}

#[test]
fn sessions_that_do_not_grow_take_no_files_and_those_that_do_have_no_end() {
    let _air = air();
    let (directory, addressing) = (tempfile::tempdir().unwrap(), addressing());
    let paths = write(&files_of(&[100]), directory.path());
    let sender = FontanaSender::start(&addressing, paths.clone(), |o| o.format(fcast(None)));
    assert_eq!(sender.handle().add(&paths[0]).unwrap_err().kind(), ErrorKind::NoFurtherFiles);
    let mut growing = FcastFormat::default();
    growing.growing = true;
    let push = fontana::Sender::builder(paths)
        .addressing(addressing)
        .format(Format::Fcast(growing))
        .mode(fontana::SendMode::Push { repair_permille: 0 });
    assert_eq!(push.prepare().map(drop).unwrap_err().kind(), ErrorKind::GrowingPush);
}
