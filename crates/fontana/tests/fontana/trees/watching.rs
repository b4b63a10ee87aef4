//! Receivers that follow a publisher: newer versions, and never an old one.

use super::*;
use fontana::wire::{PublicKey, SecretKey, Tsi};
use fontana::{
    Ended, FollowEvent, FollowReport, Follower, FontanaFormat, Format, Rejection, Versions,
};

fn key() -> SecretKey {
    SecretKey::from_seed(&[9; 32])
}

/// Sends a tree as a version of the publisher, under one session number.
fn publish(root: &Path, addressing: &Addressing, version: u64) -> Sending {
    let mut format = FontanaFormat::default();
    (format.signer, format.version) = (Some(key()), version);
    let options = send_options(vec![root.to_owned()], addressing)
        .block_symbols(500)
        .format(Format::Fontana(format))
        .tsi(Some(Tsi(77)));
    Sending::start(options)
}

/// Receives what the publisher has signed, of these versions.
fn of_publisher(versions: Versions) -> ReceiveFormat {
    let mut reception = FontanaReception::default();
    (reception.publisher, reception.versions) = (Some(key().public_key()), versions);
    ReceiveFormat::Fontana(reception)
}

fn follow_options(sending: &Sending, addressing: &Addressing, into: &Path) -> ReceiverBuilder {
    receive_options(&sending.ticket, addressing, into).format(of_publisher(Versions::default()))
}

fn follow(receive: ReceiverBuilder, count: u64) -> (FollowReport, Vec<String>) {
    follow_until(receive, count, |_| false)
}

/// Follows until `count` versions are taken, or until `stops` says so of what happened last.
fn follow_until(
    receive: ReceiverBuilder,
    count: u64,
    stops: impl Fn(&str) -> bool,
) -> (FollowReport, Vec<String>) {
    let follower = Follower::builder(receive)
        .look_every(Duration::from_millis(100))
        .count(Some(count))
        .start()
        .unwrap();
    let mut told = Vec::new();
    for event in follower.events() {
        told.push(match event {
            FollowEvent::Taken(summary) => format!("taken {}", summary.manifest.unwrap().version),
            FollowEvent::GivenUp(summary) => format!("given up {:?}", summary.ended),
            FollowEvent::Waiting => "waiting".into(),
            FollowEvent::Receiving(ReceiveEvent::Rejected {
                reason: Rejection::OldVersion { version, newer_than },
                ..
            }) => format!("rejected {version}, not above {newer_than}"),
            FollowEvent::Receiving(ReceiveEvent::Resumed { symbols, source_symbols }) => {
                format!("missing {}", source_symbols - symbols)
            }
            _ => continue,
        });
        if told.last().is_some_and(|last| stops(last)) {
            follower.stop();
        }
    }
    (follower.join().unwrap(), told)
}

fn mark_path(into: &Path, key: &PublicKey) -> PathBuf {
    into.join(format!(".fontana-mark-{key}"))
}

#[test]
fn versions_are_followed_and_an_old_one_is_never_taken_again() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("1/tree"), directory.path().join("2/tree"));
    for root in [&old, &new] {
        fs::create_dir_all(root).unwrap();
        fs::write(root.join("image"), noise(2_000_000, 1)).unwrap();
    }
    fs::write(old.join("gone"), "gone").unwrap();
    fs::write(new.join("added"), "added").unwrap();
    let file = fs::OpenOptions::new().write(true).open(new.join("image")).unwrap();
    file.write_all_at(b"changed", 1_000_000).unwrap();
    let (addressing, into) = (addressing(40), directory.path().join("into"));

    let sending = publish(&old, &addressing, 1);
    let options = follow_options(&sending, &addressing, &into);
    // While it waits for the third version, the second takes over; then the first comes back.
    let (tell, happened) = std::sync::mpsc::channel();
    let follower = std::thread::spawn({
        let options = options.clone();
        move || follow_until(options, 2, |last| tell.send(last.to_owned()).is_err())
    });
    assert!(happened.iter().any(|last| last == "waiting"));
    sending.end();
    let sending = publish(&new, &addressing, 2);
    let (summary, told) = follower.join().unwrap();
    sending.end();
    assert_eq!((summary.outcome, summary.taken), (Outcome::Complete, 2), "{told:?}");
    let expected = ["taken 1", "rejected 1, not above 1", "waiting", "missing 497", "taken 2"];
    assert_eq!(told, expected, "each once; one block of 496, and a file of one");
    assert!(fs::read(into.join("tree/image")).unwrap() == fs::read(new.join("image")).unwrap());
    assert_eq!(fs::read(into.join("tree/added")).unwrap(), b"added");
    assert_eq!(fs::read(into.join("tree/gone")).unwrap(), b"gone", "what vanished stays");
    assert_eq!(fs::read_dir(&into).unwrap().count(), 2, "the tree and the mark");

    // The publisher sends the first version again.
    let sending = publish(&old, &addressing, 1);
    let (summary, told) = follow_until(options.clone(), 1, |last| last == "waiting");
    assert_eq!((summary.outcome, summary.taken), (Outcome::Complete, 0), "nothing newer is there");
    assert_eq!(told, ["rejected 1, not above 2", "waiting"]);
    // Long enough to receive a head on a busy host.
    let timed = options.clone().timeout(Some(Duration::from_secs(4)));
    let refused = receive(timed.clone());
    assert_eq!(refused.outcome, Outcome::Authentication);
    let old = Rejection::OldVersion { version: 1, newer_than: 1 };
    assert!(refused.rejections.iter().all(|one| one.reason == old));
    assert_eq!(fs::read(into.join("tree/added")).unwrap(), b"added");
    let any = options.overwrite(true).format(of_publisher(Versions::Any));
    assert_eq!(receive(any).outcome, Outcome::Complete, "whoever insists");
    // That does not lower the mark, and a torn mark is an error.
    assert_eq!(receive(timed.clone()).outcome, Outcome::Authentication);
    let mark = mark_path(&into, &key().public_key());
    let bytes = fs::read(&mark).unwrap();
    fs::write(&mark, &bytes[..bytes.len() - 1]).unwrap();
    for versions in [Versions::NotOlder, Versions::Newer] {
        let error = timed.clone().format(of_publisher(versions)).prepare().err().unwrap();
        assert_eq!(error.outcome(), Outcome::Authentication, "{error}");
        assert!(error.to_string().contains("which versions are old is not known"), "{error}");
    }
    sending.end();
}

#[test]
fn what_others_have_written_is_not_replaced_and_a_failed_version_is_passed_over() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("mine"), "theirs").unwrap();
    let (addressing, into) = (addressing(41), directory.path().join("into"));
    fs::create_dir_all(into.join("tree")).unwrap();
    fs::write(into.join("tree/mine"), "mine").unwrap();
    let sending = publish(&root, &addressing, 5);
    let options = follow_options(&sending, &addressing, &into);
    let until_waiting = || follow_until(options.clone(), 1, |last| last == "waiting");
    let (summary, told) = until_waiting();
    assert_eq!((summary.outcome, summary.taken), (Outcome::Refused, 0), "{told:?}");
    assert_eq!(
        told,
        ["given up Done", "rejected 5, not above 5", "waiting"],
        "not again and again"
    );
    assert_eq!(fs::read(into.join("tree/mine")).unwrap(), b"mine");
    // A version that cannot be recorded is not received.
    fs::remove_file(into.join("tree/mine")).unwrap();
    let mark = mark_path(&into, &key().public_key());
    fs::create_dir(mark.with_extension("new")).unwrap();
    let (summary, told) = until_waiting();
    assert_eq!((summary.outcome, summary.taken), (Outcome::Refused, 0), "{told:?}");
    assert!(!into.join("tree/mine").exists());
    fs::remove_dir(mark.with_extension("new")).unwrap();
    assert_eq!(follow(options.clone(), 1).0.taken, 1);
    let mut no_key = FontanaReception::default();
    no_key.versions = Versions::Newer;
    let error = options.format(ReceiveFormat::Fontana(no_key)).prepare().err().unwrap();
    assert_eq!(error.outcome(), Outcome::Usage);
    sending.end();
}

/// The next version is received, and the directory is that of it.
#[test]
fn a_version_that_fails_does_not_keep_the_next_one_out() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("tree"), directory.path().join("into"));
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("mine"), "theirs").unwrap();
    fs::create_dir_all(into.join("tree")).unwrap();
    fs::write(into.join("tree/mine"), "mine").unwrap();
    let addressing = addressing(59);
    let sending = publish(&root, &addressing, 5);
    let options = follow_options(&sending, &addressing, &into);
    let (tell, happened) = std::sync::mpsc::channel();
    let follower = std::thread::spawn(move || {
        follow_until(options, 1, |last| tell.send(last.to_owned()).is_err())
    });
    assert!(happened.iter().any(|last| last == "waiting"));
    sending.end();
    fs::remove_file(root.join("mine")).unwrap();
    fs::write(root.join("other"), "other").unwrap();
    let sending = publish(&root, &addressing, 6);
    let (summary, told) = follower.join().unwrap();
    sending.end();
    assert_eq!((summary.outcome, summary.taken), (Outcome::Complete, 1), "{told:?}");
    assert!(told[0] == "given up Done" && told.last().unwrap() == "taken 6", "{told:?}");
    assert_eq!(fs::read(into.join("tree/other")).unwrap(), b"other");
    assert_eq!(fs::read(into.join("tree/mine")).unwrap(), b"mine");
}

/// What versions created gives way to another kind of entry under its name, and nothing else does.
#[test]
fn what_versions_created_gives_way_to_another_kind_of_entry() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("tree"), directory.path().join("into"));
    let write = |name: &str, content: &str| {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), content).unwrap();
    };
    write("releases/1/image", "first");
    write("a/b/file", "file");
    write("file", "file");
    std::os::unix::fs::symlink("releases/1", root.join("current")).unwrap();
    let addressing = addressing(74);
    let sending = publish(&root, &addressing, 1);
    let options = follow_options(&sending, &addressing, &into);
    assert_eq!(follow(options.clone(), 1).0.taken, 1);
    sending.end();

    fs::remove_file(root.join("current")).unwrap();
    fs::remove_file(root.join("file")).unwrap();
    fs::remove_dir_all(root.join("a")).unwrap();
    write("current/image", "second");
    write("file/below/it", "third");
    write("a", "a file now");
    let sending = publish(&root, &addressing, 2);
    // A file of the user's is in one of the directories.
    fs::write(into.join("tree/a/b/mine"), "mine").unwrap();
    let (summary, told) = follow_until(options.clone(), 1, |last| last == "waiting");
    assert_eq!((summary.outcome, summary.taken), (Outcome::Refused, 0), "{told:?}");
    assert_eq!(fs::read(into.join("tree/a/b/mine")).unwrap(), b"mine");
    fs::remove_file(into.join("tree/a/b/mine")).unwrap();
    let (summary, told) = follow(options, 1);
    sending.end();
    assert_eq!((summary.outcome, summary.taken), (Outcome::Complete, 1), "{told:?}");
    let expected = [("current/image", "second"), ("file/below/it", "third"), ("a", "a file now")];
    for (name, content) in expected {
        assert_eq!(fs::read_to_string(into.join("tree").join(name)).unwrap(), content, "{name}");
    }
    assert_eq!(fs::read(into.join("tree/releases/1/image")).unwrap(), b"first", "nothing else");
}

/// A version was asked for, and none newer than what is there is sent.
#[test]
fn a_follower_that_receives_only_an_old_version_is_not_complete_if_it_was_to_take_one() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("tree"), directory.path().join("into"));
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("file"), "first").unwrap();
    let addressing = addressing(58);
    let sending = publish(&root, &addressing, 1);
    let options = follow_options(&sending, &addressing, &into);
    assert_eq!(follow(options.clone(), 1).0.taken, 1);
    let (report, told) = follow(options.timeout(Some(Duration::from_secs(4))), 1);
    assert_eq!(report.taken, 0, "{told:?}");
    assert!(told.contains(&"waiting".into()), "{told:?}");
    assert_ne!(report.outcome, Outcome::Complete);
    sending.end();
}

#[test]
fn a_version_that_follows_soon_is_taken_at_once() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("tree"), directory.path().join("into"));
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("file"), "first").unwrap();
    let addressing = addressing(49);
    let sending = publish(&root, &addressing, 1);
    let options = follow_options(&sending, &addressing, &into);
    let follower = Follower::builder(options.timeout(Some(Duration::from_secs(60))))
        .look_every(Duration::from_secs(600))
        .count(Some(2))
        .start()
        .unwrap();
    let mut sending = Some(sending);
    for event in follower.events() {
        // Only the first version was received for a second.
        if matches!(event, FollowEvent::Waiting)
            && let Some(first) = sending.take()
        {
            first.end();
            fs::write(root.join("file"), "second").unwrap();
            sending = Some(publish(&root, &addressing, 2));
        }
    }
    let report = follower.join().unwrap();
    assert_eq!((report.taken, report.last.manifest.unwrap().version), (2, 2));
    sending.unwrap().end();
}

#[test]
fn what_a_stopped_follower_left_of_an_older_version_is_removed() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("1/tree"), directory.path().join("2/tree"));
    for (root, bytes) in [(&old, 30_000_000), (&new, 300_000)] {
        fs::create_dir_all(root).unwrap();
        fs::write(root.join("image"), noise(bytes, 1)).unwrap();
    }
    let (addressing, into) = (addressing(50), directory.path().join("into"));
    let sending = publish(&old, &addressing, 1);
    let options = follow_options(&sending, &addressing, &into);
    let follower = Follower::builder(options.clone()).start().unwrap();
    for event in follower.events() {
        if matches!(&event, FollowEvent::Receiving(ReceiveEvent::Progress(progress))
            if progress.stats.fresh > 1_000)
        {
            follower.stop();
        }
    }
    assert_eq!(follower.join().unwrap().taken, 0);
    sending.end();
    let left = fontana::interrupted(&into).unwrap();
    assert_eq!(left.len(), 1);
    // What is not this publisher's stays.
    let other = into.join(format!(".fontana-{}", "0".repeat(64)));
    fs::create_dir(&other).unwrap();
    let sending = publish(&new, &addressing, 2);
    let (summary, _) = follow(options, 1);
    sending.end();
    assert_eq!(summary.taken, 1);
    assert!(!into.join(format!(".fontana-{}", left[0].tag)).exists() && other.exists());
}

#[test]
fn what_versions_created_and_the_newest_lacks_is_deleted_on_request() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("tree"), directory.path().join("into"));
    fs::create_dir_all(root.join("d/e/f")).unwrap();
    fs::create_dir_all(root.join("g")).unwrap();
    for file in ["stays", "goes", "d/goes", "d/e/f/goes"] {
        fs::write(root.join(file), file).unwrap();
    }
    // Large enough for an object of its own: small files are compared together.
    let found = noise(3_000_000, 2);
    fs::write(root.join("found"), &found).unwrap();
    symlink("stays", root.join("link")).unwrap();
    let there = into.join("tree");
    fs::create_dir_all(there.join("g")).unwrap();
    fs::write(there.join("found"), &found).unwrap();
    let addressing = addressing(51);
    let follow_with = |sending: Sending, delete| {
        let mut format = FontanaReception::default();
        format.publisher = Some(key().public_key());
        format.delete = delete;
        let options = receive_options(&sending.ticket, &addressing, &into);
        let report = follow(options.format(ReceiveFormat::Fontana(format)), 1).0;
        sending.end();
        assert_eq!(report.taken, 1, "{report:?}");
    };
    follow_with(publish(&root, &addressing, 1), true);
    fs::write(there.join("d/mine"), "mine").unwrap();
    fs::write(there.join("goes"), "changed since").unwrap();
    for file in ["goes", "found", "link"] {
        fs::remove_file(root.join(file)).unwrap();
    }
    fs::remove_dir_all(root.join("d")).unwrap();
    fs::remove_dir(root.join("g")).unwrap();
    follow_with(publish(&root, &addressing, 2), false);
    assert!(there.join("goes").exists(), "nothing is deleted without the option");
    follow_with(publish(&root, &addressing, 3), true);
    let left = look(&there);
    let left: Vec<_> = left.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(left, ["", "d", "d/mine", "found", "g", "stays"]);
}

#[test]
fn what_cannot_be_deleted_is_an_error_of_its_own() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (root, into) = (directory.path().join("tree"), directory.path().join("into"));
    for name in ["a", "b"] {
        fs::create_dir_all(root.join(name)).unwrap();
        fs::write(root.join(name).join("goes"), name).unwrap();
    }
    fs::write(root.join("stays"), "stays").unwrap();
    let addressing = addressing(73);
    let receive_next = |version| {
        let sending = publish(&root, &addressing, version);
        let mut format = FontanaReception::default();
        format.publisher = Some(key().public_key());
        (format.delete, format.versions) = (true, Versions::Newer);
        let options = receive_options(&sending.ticket, &addressing, &into);
        let report = receive(options.format(ReceiveFormat::Fontana(format)));
        sending.end();
        report
    };
    assert_eq!(receive_next(1).outcome, Outcome::Complete);
    // Through a link nothing is deleted.
    let outside = directory.path().join("outside");
    fs::rename(into.join("tree/a"), &outside).unwrap();
    symlink(&outside, into.join("tree/a")).unwrap();
    for name in ["a", "b"] {
        fs::remove_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("new"), "new").unwrap();
    let report = receive_next(2);
    assert_eq!(report.outcome, Outcome::Refused, "{report:?}");
    assert!(report.failures[0].to_string().contains("tree/a"), "{report:?}");
    assert!(outside.join("goes").exists() && !into.join("tree/b").exists());
    assert_eq!(fs::read(into.join("tree/new")).unwrap(), b"new");
}

#[test]
fn a_version_that_is_superseded_is_left_for_the_newer_one() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("1/tree"), directory.path().join("2/tree"));
    for (root, bytes) in [(&old, 30_000_000), (&new, 300_000)] {
        fs::create_dir_all(root).unwrap();
        fs::write(root.join("image"), noise(bytes, 1)).unwrap();
    }
    let (addressing, into) = (addressing(42), directory.path().join("into"));
    let sending = publish(&old, &addressing, 1);
    let options = follow_options(&sending, &addressing, &into);
    let follower = std::thread::spawn(move || follow(options, 1));
    // The follower records a version before it receives it.
    while !mark_path(&into, &key().public_key()).exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    sending.end();
    let sending = publish(&new, &addressing, 2);
    let (summary, told) = follower.join().unwrap();
    sending.end();
    assert_eq!(told, [format!("given up {:?}", Ended::Superseded), "taken 2".into()]);
    assert_eq!(summary.taken, 1);
    assert!(fs::read(into.join("tree/image")).unwrap() == noise(300_000, 1));
    assert_eq!(fs::read_dir(&into).unwrap().count(), 2, "nothing is left of the first");
}
