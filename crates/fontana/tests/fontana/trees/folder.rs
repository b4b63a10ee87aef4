//! A directory that is sent as it changes, and a receiver that follows it.

use super::*;
use fontana::wire::SecretKey;
use fontana::{FollowEvent, Follower, FontanaFormat, Format, PublishEvent, Publisher};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// Sends a directory as it changes.
fn publish(root: &Path, addressing: &Addressing, settle: u64, poll: Option<Duration>) -> Publisher {
    let mut format = FontanaFormat::default();
    format.signer = Some(SecretKey::from_seed(&[4; 32]));
    let send = send_options(vec![root.to_owned()], addressing).format(Format::Fontana(format));
    let settle = Duration::from_millis(settle);
    Publisher::builder(send).settle(settle).poll(poll).start().unwrap()
}

/// Writes files while a receiver follows, each when the previous version is complete there.
fn follow(poll: Option<Duration>, test: u8) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("first"), noise(100_000, 1)).unwrap();
    let addressing = addressing(test);
    let publisher = publish(&root, &addressing, 300, poll);
    let mut versions = publisher.events().filter_map(|event| match event {
        PublishEvent::Version(session) => {
            Some((session.lasting_ticket(), session.manifest.version()))
        }
        PublishEvent::Failed(error) => panic!("{error}"),
        _ => None,
    });
    let (ticket, version) = versions.next().unwrap();
    assert_eq!(ticket.manifest, None);
    let into = directory.path().join("into");
    let follower = Follower::builder(receive_options(&ticket, &addressing, &into))
        .look_every(Duration::from_millis(50))
        .count(Some(3))
        .start()
        .unwrap();
    let mut taken = Vec::new();
    for event in follower.events() {
        let FollowEvent::Taken(summary) = event else { continue };
        taken.push(summary.manifest.unwrap().version);
        match taken.len() {
            1 => {
                fs::create_dir(root.join("new")).unwrap();
                fs::write(root.join("new/second"), noise(50_000, 2)).unwrap();
            }
            2 => fs::write(root.join("first"), noise(100_000, 3)).unwrap(),
            _ => {}
        }
    }
    let summary = follower.join().unwrap();
    assert_eq!((summary.outcome, summary.taken), (Outcome::Complete, 3));
    publisher.stop();
    let told: Vec<_> = versions.collect();
    let sent = publisher.join().unwrap();
    assert!(told.iter().all(|(again, _)| *again == ticket), "the ticket stays valid");
    assert_eq!(sent.versions, 1 + told.len() as u64);
    let mut newest = [version].into_iter().chain(told.into_iter().map(|(_, version)| version));
    assert!(newest.clone().is_sorted_by(|a, b| a < b), "they increase");
    assert!(taken.iter().all(|taken| newest.any(|version| version == *taken)), "{taken:?}");
    assert!(fs::read(into.join("folder/first")).unwrap() == noise(100_000, 3));
    assert!(fs::read(into.join("folder/new/second")).unwrap() == noise(50_000, 2));
}

#[test]
fn what_appears_in_a_folder_appears_at_its_followers() {
    let _turn = TURN.lock();
    follow(None, 50);
}

#[test]
fn where_nobody_tells_of_changes_they_are_looked_for() {
    let _turn = TURN.lock();
    follow(Some(Duration::from_millis(100)), 51);
}

/// A thread that changes files again and again.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Writer {
    fn start(mut step: impl FnMut(u64) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut longest, mut started) = (Duration::ZERO, Instant::now());
            for number in 0.. {
                let last = std::mem::replace(&mut started, Instant::now());
                step(number);
                longest = longest.max(last.elapsed());
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            longest
        });
        Self { stop, thread }
    }

    /// The longest time for which a file was not changed.
    fn end(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Runs a test whose writer has to change files more often than once per settling time, until the
/// system gave it the time to do so. The test returns what it observed and the longest pause.
fn with_a_restless_writer<T>(settle: u64, test: impl Fn() -> (T, Duration)) -> T {
    for _ in 0..10 {
        let (observed, pause) = test();
        if pause < Duration::from_millis(settle) {
            return observed;
        }
        println!("the writer paused for {pause:?}: again");
    }
    panic!("the writer never runs for long enough");
}

#[test]
fn a_file_that_always_changes_does_not_hold_up_the_others() {
    let _turn = TURN.lock();
    let observed = with_a_restless_writer(1_000, || beside_files_that_change(1_000));
    let lengths = [("folder/log".into(), 8), ("folder/new".into(), 2_000)].into();
    assert_eq!(observed.lengths, lengths);
    assert_eq!(observed.unsettled, ["folder/restless", "folder/table"]);
    assert_eq!(observed.received_log, b"settled\n");
    assert_eq!(observed.at_rest, 4);
}

/// The first version with a new file while others change.
struct BesideFilesThatChange {
    lengths: BTreeMap<String, u64>,
    unsettled: Vec<String>,
    /// What a receiver of this version has of the log, which goes on to grow.
    received_log: Vec<u8>,
    /// The number of files of the version after the changes.
    at_rest: usize,
}

/// Returns the longest pause of the changes, too.
fn beside_files_that_change(settle: u64) -> (BesideFilesThatChange, Duration) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("log"), "settled\n").unwrap();
    fs::write(root.join("table"), noise(1_000, 1)).unwrap();
    let publisher = publish(&root, &addressing(52), settle, None);
    let mut events = publisher.events();
    let mut version = |with: &str| loop {
        match events.next().unwrap() {
            PublishEvent::Version(session) => {
                let names: Vec<_> =
                    session.manifest.entries().iter().map(|e| e.path().to_string()).collect();
                if names.contains(&with.to_owned()) {
                    return Arc::clone(&session);
                }
            }
            PublishEvent::Failed(error) => panic!("{error}"),
            _ => {}
        }
    };
    version("folder/log");
    // One file grows, another is written in place, a third is new, all without a rest.
    let writer = Writer::start({
        let root = root.clone();
        move |step| {
            let mut log = fs::OpenOptions::new().append(true).open(root.join("log")).unwrap();
            log.write_all(b"more\n").unwrap();
            fs::write(root.join("table"), noise(1_000, step)).unwrap();
            fs::write(root.join("restless"), noise(500, step)).unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(2 * settle));
    fs::write(root.join("new"), noise(2_000, 3)).unwrap();
    let session = version("folder/new");
    let files = session.manifest.files();
    let lengths = files.map(|file| (file.path.to_string(), file.length())).collect();
    let unsettled = session.manifest.unsettled().iter().map(|n| n.to_string()).collect();
    let into = directory.path().join("into");
    let follower =
        Follower::builder(receive_options(&session.lasting_ticket(), &addressing(52), &into));
    assert_eq!(follower.count(Some(1)).start().unwrap().join().unwrap().taken, 1);
    let received_log = fs::read(into.join("folder/log")).unwrap();
    let pause = writer.end();
    // A version has all of them when they no longer change.
    let at_rest = loop {
        let session = version("folder/restless");
        if session.manifest.unsettled().is_empty() {
            break session.manifest.files().count();
        }
    };
    publisher.stop();
    publisher.join().unwrap();
    (BesideFilesThatChange { lengths, unsettled, received_log, at_rest }, pause)
}

#[test]
fn a_version_is_sent_as_often_as_wanted_before_the_next() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), noise(100_000, 1)).unwrap();
    let mut format = FontanaFormat::default();
    format.signer = Some(SecretKey::from_seed(&[4; 32]));
    let send = send_options(vec![root.clone()], &addressing(53))
        // More than two seconds for the changes.
        .rate(Rate::mbit(1))
        .format(Format::Fontana(format));
    let publisher = Publisher::builder(send)
        .settle(Duration::from_millis(50))
        .at_least_permille(2_500)
        .start()
        .unwrap();
    let (mut names, mut source_symbols) = (Vec::new(), 0);
    for event in publisher.events() {
        match event {
            PublishEvent::Version(session) => {
                source_symbols = session.source_symbols;
                names.push(session.manifest.files().count());
                fs::write(root.join("b"), "two changes").unwrap();
                std::thread::sleep(Duration::from_millis(200));
                fs::write(root.join("c"), "while a version is sent").unwrap();
            }
            PublishEvent::Ended(report) => {
                let sent = report.stats.source_symbols + report.stats.repair_symbols;
                assert!(2 * sent >= 5 * source_symbols, "{sent} of {source_symbols}");
            }
            _ => {}
        }
        if names.len() == 2 {
            break;
        }
    }
    assert_eq!(names, [1, 3], "the next version is the newest state");
    publisher.stop();
    publisher.join().unwrap();
}

#[test]
fn a_file_that_goes_on_growing_is_not_sent_before_it_rests() {
    let _turn = TURN.lock();
    let sizes = with_a_restless_writer(500, || sizes_of_a_growing_folder(500));
    // At most the empty folder, if its first file was late.
    assert!(sizes.iter().all(|&size| size == 0), "{sizes:?}");
}

/// The versions' sizes while a file grows, and the longest pause in which it does not.
fn sizes_of_a_growing_folder(settle: u64) -> (Vec<u64>, Duration) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    let publisher = publish(&root, &addressing(52), settle, None);
    let path = root.join("growing");
    let writer = Writer::start(move |step| {
        fs::write(&path, noise(1_000 * (step as usize + 1), 5)).unwrap();
    });
    // It grows for longer than the settling time.
    std::thread::sleep(Duration::from_millis(3 * settle));
    let pause = writer.end();
    let path = root.join("growing");
    let length = fs::metadata(path).unwrap().len();
    let sizes = publisher.events().filter_map(|event| match event {
        PublishEvent::Version(session) => Some(session.manifest.content_length()),
        _ => None,
    });
    let seen = sizes.take_while(|&size| size < length).collect();
    publisher.stop();
    assert_eq!(publisher.join().unwrap().outcome, Outcome::Interrupted);
    (seen, pause)
}

#[test]
fn versions_go_on_without_what_cannot_be_sent() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("first"), "first").unwrap();
    fs::write(root.join("sub/second"), "second").unwrap();
    let addressing = addressing(71);
    let publisher = publish(&root, &addressing, 100, None);
    let mut left_out = Vec::new();
    let mut versions = Vec::new();
    for event in publisher.events() {
        match event {
            PublishEvent::LeftOut(error) => left_out.push(error.to_string()),
            PublishEvent::Version(session) => versions.push(session),
            _ => continue,
        }
        match (versions.len(), left_out.len()) {
            (1, 0) => {
                let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
                // A file that was sent gives its place to what cannot be.
                fs::remove_dir_all(root.join("sub")).unwrap();
                let _other = std::os::unix::net::UnixListener::bind(root.join("sub")).unwrap();
                fs::write(root.join("third"), "third").unwrap();
            }
            (2.., 2..) => publisher.stop(),
            _ => {}
        }
    }
    let report = publisher.join().unwrap();
    assert_eq!(report.outcome, Outcome::Refused, "{report:?}");
    assert!(left_out.iter().all(|error| error.contains("is a socket")), "{left_out:?}");
    let last = &versions.last().unwrap().manifest;
    let names: Vec<_> = last.entries().iter().map(|entry| entry.path().to_string()).collect();
    assert_eq!(names, ["folder", "folder/first", "folder/third"]);
    // Receivers keep what they have of it.
    let kept: Vec<_> = last.unsettled().iter().map(ToString::to_string).collect();
    assert!(kept.contains(&"folder/sub/second".to_owned()), "{kept:?}");
}

#[test]
fn a_link_to_a_file_makes_no_version_and_other_bytes_do() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), noise(100_000, 1)).unwrap();
    let addressing = addressing(72);
    let publisher = publish(&root, &addressing, 100, None);
    let mut events = publisher.events();
    let mut next = || {
        let version = |event| match event {
            PublishEvent::Version(session) => Some(session),
            _ => None,
        };
        events.by_ref().find_map(version).unwrap()
    };
    let first = next();
    fs::hard_link(root.join("file"), directory.path().join("link")).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    fs::write(root.join("file"), noise(100_000, 2)).unwrap();
    let second = next();
    assert_ne!(first.manifest.objects(), second.manifest.objects(), "there is none between them");
    publisher.stop();
    publisher.join().unwrap();
}
