//! A directory that is sent as it changes, and a receiver that follows it.

use super::*;
use fontana::wire::SecretKey;
use fontana::{FollowEvent, Follower, FontanaFormat, Format, PublishEvent, Publisher};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

#[test]
fn a_file_that_always_changes_does_not_hold_up_the_others() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("log"), "settled\n").unwrap();
    fs::write(root.join("table"), noise(1_000, 1)).unwrap();
    let publisher = publish(&root, &addressing(52), 300, None);
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
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (stop, root) = (Arc::clone(&stop), root.clone());
        move || {
            for step in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let mut log = fs::OpenOptions::new().append(true).open(root.join("log")).unwrap();
                log.write_all(b"more\n").unwrap();
                fs::write(root.join("table"), noise(1_000, step)).unwrap();
                fs::write(root.join("restless"), noise(500, step)).unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    });
    std::thread::sleep(Duration::from_millis(1_000));
    fs::write(root.join("new"), noise(2_000, 3)).unwrap();
    let session = version("folder/new");
    let lengths: BTreeMap<_, _> =
        session.manifest.files().map(|file| (file.path.to_string(), file.length())).collect();
    assert_eq!(lengths, [("folder/log".into(), 8), ("folder/new".into(), 2_000)].into());
    let unsettled: Vec<_> = session.manifest.unsettled().iter().map(|n| n.to_string()).collect();
    assert_eq!(unsettled, ["folder/restless", "folder/table"]);
    // A receiver gets this version while the log goes on to grow.
    let into = directory.path().join("into");
    let follower =
        Follower::builder(receive_options(&session.lasting_ticket(), &addressing(52), &into));
    assert_eq!(follower.count(Some(1)).start().unwrap().join().unwrap().taken, 1);
    assert_eq!(fs::read(into.join("folder/log")).unwrap(), b"settled\n");
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let session = version("folder/restless");
    assert_eq!(session.manifest.unsettled(), []);
    assert_eq!(session.manifest.files().count(), 4);
    publisher.stop();
    publisher.join().unwrap();
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
        .rate(Rate::mbit(4))
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
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    let publisher = publish(&root, &addressing(52), 500, None);
    // It grows for longer than the settling time.
    let path = root.join("growing");
    for step in 1..=15_usize {
        fs::write(&path, noise(step * 1_000, 5)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let sizes = publisher.events().filter_map(|event| match event {
        PublishEvent::Version(session) => Some(session.manifest.content_length()),
        _ => None,
    });
    let seen: Vec<u64> = sizes.take_while(|&size| size < 15_000).collect();
    // At most the empty folder, if the machine was too loaded to see the first write in time.
    assert!(seen.iter().all(|&size| size == 0), "{seen:?}");
    publisher.stop();
    assert_eq!(publisher.join().unwrap().outcome, Outcome::Interrupted);
}
