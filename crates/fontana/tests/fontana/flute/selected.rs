//! What a user wants of a plain FLUTE session: some files, those that are not here, or their names.

use super::fontana_side::{
    Files, FontanaReceiver, Received, addressing, air, assert_same, files_of, noise,
};
use super::handmade::{Session, described, open_table, table};
use fontana::wire::FdtFile;
use fontana::{FluteReception, Outcome, ReceiveEvent, ReceiveFormat, ReceiverBuilder};
use std::path::Path;
use std::time::Duration;

fn bytes(number: u64) -> Vec<u8> {
    noise(2_500, number)
}

/// A session of `a/1`, `a/2` and `b`.
fn session(complete: bool, change: impl Fn(FdtFile) -> FdtFile) -> Session {
    let names = ["a/1", "a/2", "b"];
    let files =
        (1..).zip(names).map(|(toi, name)| change(described(toi, name, &bytes(toi as u64))));
    let table = if complete { table(files) } else { open_table(files) };
    let session = Session::default().table_instance(1, &table, None);
    (1..=3).fold(session, |session, toi| session.file(toi, &bytes(toi as u64)))
}

/// Receives a session into a directory that `prepare` has filled. Also the names that were found
/// or kept, with a sign.
fn receive(
    session: Session,
    flute: FluteReception,
    prepare: impl FnOnce(&Path),
    change: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder,
) -> (Received, Vec<String>) {
    let _air = air();
    let addressing = addressing();
    let receiver = FontanaReceiver::join(&addressing, |options| {
        change(options.format(ReceiveFormat::Flute(flute)))
    });
    prepare(receiver.target());
    let _sender = session.repeat(&addressing);
    let mut seen = Vec::new();
    let received = receiver.run_with(|event| match event {
        ReceiveEvent::FileFound { name, .. } => seen.push(name.clone()),
        ReceiveEvent::FileKept { name, compared: true, .. } => seen.push(format!("={name}")),
        ReceiveEvent::FileKept { name, .. } => seen.push(format!("?{name}")),
        _ => {}
    });
    (received, seen)
}

fn files(numbers: &[u64]) -> Files {
    let name = |number| ["a/1", "a/2", "b"][number as usize - 1].to_owned();
    numbers.iter().map(|&number| (name(number), bytes(number))).collect()
}

#[test]
fn only_files_that_match_are_received() {
    for complete in [true, false] {
        let mut flute = FluteReception::default();
        flute.only = vec!["/a/".to_owned()];
        let silence = Some(Duration::from_secs(1));
        let (received, seen) = receive(
            session(complete, |file| file),
            flute,
            |_| (),
            |options| options.give_up_after_silence(silence),
        );
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        assert_same(&received.files, &files(&[1, 2]));
        assert_eq!(seen, ["a/1", "a/2"]);
    }
}

#[test]
fn files_that_are_here_are_not_received_again() {
    let mut flute = FluteReception::default();
    flute.skip_existing = true;
    let prepare = |directory: &Path| {
        std::fs::create_dir(directory.join("a")).unwrap();
        std::fs::write(directory.join("a/1"), bytes(1)).unwrap();
    };
    let (received, seen) =
        receive(session(true, |file| file), flute.clone(), prepare, |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    assert_same(&received.files, &files(&[1, 2, 3]));
    assert_eq!(received.summary.objects.len(), 2);
    assert_eq!(seen.iter().filter(|name| *name == "=a/1").count(), 1, "{seen:?}");
    // Other bytes are no reason to replace them.
    let other = |directory: &Path| std::fs::write(directory.join("b"), noise(2_500, 9)).unwrap();
    let (received, _) = receive(session(true, |file| file), flute.clone(), other, |o| o);
    assert_eq!(received.summary.outcome, Outcome::Refused, "{:?}", received.summary);
    assert!(received.files["b"] == noise(2_500, 9));
    // Without MD5, the name decides.
    let without = session(true, |file| FdtFile { content_md5: None, ..file });
    let (received, seen) = receive(without, flute, other, |options| options);
    assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
    assert!(received.files["b"] == noise(2_500, 9) && seen.contains(&"?b".to_owned()), "{seen:?}");
}

#[test]
fn a_list_ends_without_a_file() {
    for complete in [true, false] {
        let mut flute = FluteReception::default();
        flute.list = true;
        let (received, seen) =
            receive(session(complete, |file| file), flute, |_| (), |options| options);
        assert_eq!(received.summary.outcome, Outcome::Complete, "{:?}", received.summary);
        assert_same(&received.files, &files_of(&[]));
        assert_eq!(seen, ["a/1", "a/2", "b"]);
        let elapsed = received.summary.progress.elapsed;
        assert!(complete || elapsed >= Duration::from_secs(2), "{elapsed:?}");
    }
}
