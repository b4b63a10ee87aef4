//! File delivery tables of a session: when they are all, what a receiver does until then, and which
//! defects it bears with.

use super::fontana_side::{Files, FontanaReceiver, addressing, air, assert_same, noise};
use super::handmade::{SYMBOL, Session, described, open_table};
use super::peer::TSI;
use fontana::wire::{
    ContentEncoding, Fdt, FdtContentEncoding, FdtExtension, FdtFile, FdtMd5, FluteVersion,
    HeaderFields, NtpSeconds, Toi, Tsi,
};
use fontana::{Ended, Outcome, TableStatus, TableWarning};
use md5::{Digest, Md5};
use std::time::Duration;

#[test]
fn a_session_whose_tables_lack_complete_ends_with_all_announced_files_when_the_time_is_up() {
    let files = |count| -> Files {
        (1..=count).map(|toi| (format!("file{toi}"), noise(2_500, toi))).collect()
    };
    let session = |announced: u64| {
        let mut session = Session::default();
        for table in 1..=announced {
            let bytes = noise(2_500, table);
            let file = described(table.into(), &format!("file{table}"), &bytes);
            session = session.table_instance(table as u32, &open_table([file]), None);
            session = session.file(table.into(), &bytes).wait(Duration::from_millis(200));
        }
        session
    };
    for (session, outcome, count) in [
        (session(1), Outcome::Complete, 1),
        (session(3), Outcome::Complete, 3),
        // A file that is announced and does not come.
        (
            session(2).table_instance(9, &open_table([described(9, "missing", &[7; 9])]), None),
            Outcome::Incomplete,
            2,
        ),
    ] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| {
            options.timeout(Some(Duration::from_secs(2)))
        });
        let _sender = session.repeat(&addressing);
        let received = receiver.run();
        assert_eq!(received.summary.outcome, outcome, "{:?}", received.summary);
        assert_same(&received.files, &files(count));
    }
}

/// Receives a session of one file.
fn receive_one(expires: NtpSeconds, file: FdtFile, object: &[u8]) -> super::fontana_side::Received {
    let table = Fdt { expires, complete: true, files: vec![file] }.emit(FluteVersion::V2);
    let session = Session::default().table_instance(1, &table, None).file(1, object);
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    let _sender = session.repeat(&addressing);
    receiver.run()
}

fn one(bytes: &[u8]) -> Files {
    Files::from([("file".to_owned(), bytes.to_vec())])
}

#[test]
fn a_table_with_a_wrong_time_or_an_md5_that_is_none_is_read_with_a_warning() {
    let bytes = noise(2_500, 1);
    let later = NtpSeconds::from_unix_seconds(3_500_000_000);
    let invalid = FdtMd5::Invalid("no MD5".to_owned());
    let junk = FdtFile { content_md5: Some(invalid), ..described(1, "file", &bytes) };
    let content_location = "file".to_owned();
    for (expires, file, warnings) in [
        (later, described(1, "file", &bytes), vec![]),
        (later, junk, vec![TableWarning::InvalidMd5 { content_location }]),
        (
            NtpSeconds::from_unix_seconds(1_500_000_000),
            described(1, "file", &bytes),
            vec![TableWarning::Expired { unix_seconds: 1_500_000_000 }],
        ),
    ] {
        let received = receive_one(expires, file, &bytes);
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        assert_eq!(received.warnings, warnings);
        assert_same(&received.files, &one(&bytes));
    }
}

#[test]
fn of_an_encoded_file_length_and_md5_may_be_those_of_the_object() {
    let bytes = super::fontana_side::text(50_000);
    let cenc = flute::core::lct::Cenc::Gzip;
    let object = flute::sender::compress::compress_buffer(&bytes, cenc).unwrap();
    let md5 = |bytes: &[u8]| Some(FdtMd5::Digest(Md5::digest(bytes).into()));
    let gzip = || Some(FdtContentEncoding::Known(ContentEncoding::Gzip));
    let of = |length: usize, content_md5| FdtFile {
        content_length: Some(length as u64),
        content_encoding: gzip(),
        content_md5,
        ..described(1, "file", &object)
    };
    let later = NtpSeconds::from_unix_seconds(3_500_000_000);
    for (length, digest, outcome) in [
        (bytes.len(), md5(&bytes), Outcome::Complete),
        (bytes.len(), md5(&object), Outcome::Complete),
        (object.len(), md5(&object), Outcome::Complete),
        (object.len(), md5(&bytes), Outcome::Complete),
        (object.len(), md5(b"other"), Outcome::VerificationFailed),
        (object.len() + 1, md5(&bytes), Outcome::VerificationFailed),
    ] {
        let received = receive_one(later, of(length, digest), &object);
        assert_eq!(received.summary.outcome, outcome, "{:?}", received.summary);
        let expected = if outcome == Outcome::Complete { one(&bytes) } else { Files::new() };
        assert_same(&received.files, &expected);
    }
}

/// The table may come before the packets of the file or after them.
#[test]
fn a_file_whose_packets_alone_say_that_it_is_compressed_is_decompressed() {
    let bytes = super::fontana_side::text(50_000);
    let cenc = flute::core::lct::Cenc::Gzip;
    let object = flute::sender::compress::compress_buffer(&bytes, cenc).unwrap();
    let file = FdtFile {
        content_length: Some(bytes.len() as u64),
        content_md5: Some(FdtMd5::Digest(Md5::digest(&bytes).into())),
        ..described(1, "file", &object)
    };
    for table_first in [true, false] {
        let session = Session::default();
        let session = match table_first {
            true => session.table([file.clone()]).file_with_cenc(1, &object),
            false => session.file_with_cenc(1, &object).table([file.clone()]),
        };
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| options);
        let _sender = session.once(&addressing);
        let received = receiver.run();
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        assert_same(&received.files, &one(&bytes));
    }
}

#[test]
fn a_session_that_its_sender_closes_ends_early_complete_or_not() {
    let bytes = noise(2_500, 1);
    let announced = |with_missing: bool| {
        let missing = described(9, "missing", &[7; 9]);
        let files = [described(1, "file", &bytes)];
        open_table(files.into_iter().chain(with_missing.then_some(missing)))
    };
    for (with_missing, outcome, ended) in
        [(false, Outcome::Complete, Ended::Done), (true, Outcome::Incomplete, Ended::Closed)]
    {
        let session = Session::default()
            .table_instance(1, &announced(with_missing), None)
            .file(1, &bytes)
            .close();
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| options);
        let _sender = session.once(&addressing);
        let received = receiver.run();
        assert_eq!(received.summary.outcome, outcome, "{:?}", received.summary);
        assert_eq!(received.summary.ended, ended);
        assert!(received.summary.progress.elapsed < Duration::from_secs(20));
        assert_same(&received.files, &one(&bytes));
    }
}

#[test]
fn a_table_that_cannot_be_read_is_reported_with_the_reason() {
    let bytes = noise(2_500, 1);
    let files = || (1..40).map(|toi| described(toi, "file", &[7; 9]));
    let incomplete = Session::default().table_instance(1, &open_table(files()), None);
    let fields = |codepoint| HeaderFields {
        codepoint,
        fdt: Some(FdtExtension { version: 2, instance_id: 1 }),
        ..HeaderFields::new(Tsi(TSI), Some(Toi::FDT))
    };
    let raw = |fields: HeaderFields, psi: u8| {
        let mut packet = Vec::new();
        fields.emit(&mut packet);
        packet[0] |= psi;
        packet.extend_from_slice(&bytes[..100]);
        Session::default().raw(packet)
    };
    let source_symbols = open_table(files()).len().div_ceil(usize::from(SYMBOL)) as u64;
    for (session, status) in [
        (Session::default().file(1, &bytes), TableStatus::None),
        (raw(fields(8), 2), TableStatus::Route),
        (raw(HeaderFields { fdt: None, ..fields(0) }, 0), TableStatus::WithoutFdtExtension),
        (raw(HeaderFields { toi: Some(Toi(4)), fdt: None, ..fields(8) }, 2), TableStatus::Route),
        (raw(fields(0), 0), TableStatus::WithoutGeometry),
        (raw(fields(200), 0), TableStatus::UnknownCode(200)),
        (incomplete.first_packet(), TableStatus::Incomplete { received: 1, source_symbols }),
    ] {
        let _air = air();
        let addressing = addressing();
        let receiver = FontanaReceiver::join(&addressing, |options| {
            options.timeout(Some(Duration::from_secs(1)))
        });
        let _sender = session.once(&addressing);
        let summary = receiver.run().summary;
        assert_eq!((summary.outcome, summary.table), (Outcome::NothingReceived, status));
    }
}

#[test]
fn a_receiver_that_gets_nothing_but_route_does_not_wait() {
    let fields = HeaderFields { codepoint: 8, ..HeaderFields::new(Tsi(TSI), Some(Toi(4))) };
    let mut packet = Vec::new();
    fields.emit(&mut packet);
    packet[0] |= 2;
    packet.extend_from_slice(&[7; 100]);
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| options);
    let _sender = Session::default().raw(packet).repeat(&addressing);
    let summary = receiver.run().summary;
    assert_eq!((summary.outcome, summary.table), (Outcome::NothingReceived, TableStatus::Route));
    let elapsed = summary.progress.elapsed;
    assert!(elapsed >= Duration::from_secs(3) && elapsed < Duration::from_secs(20), "{elapsed:?}");
}
