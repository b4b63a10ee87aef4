//! A directory that is sent as it changes, and a receiver that follows it.

use super::*;
use fontana::wire::SecretKey;
use fontana::{
    FolderEvent, ReceiveWatch, SendFolder, WatchEvent, lasting_ticket, send_folder, watch,
};
use std::sync::mpsc::channel;

/// Writes files while a receiver follows, each when the version before has arrived there.
fn follow(poll: Option<Duration>, test: u8) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("first"), noise(100_000, 1)).unwrap();
    let reach = reach(test);
    let mut send = send_options(vec![root.clone()], &reach);
    send.signer = Some(SecretKey::from_seed(&[4; 32]));
    let folder = SendFolder { settle: Duration::from_millis(300), poll, ..SendFolder::new(send) };
    let stop = Stop::new();
    let (tell, versions) = channel();
    let sender = std::thread::spawn({
        let stop = stop.clone();
        move || {
            send_folder(&folder, &stop, &mut |event| match event {
                FolderEvent::Version(session) => {
                    tell.send((lasting_ticket(session), session.manifest().version())).unwrap();
                }
                FolderEvent::Failed(error) => panic!("{error}"),
                _ => {}
            })
            .unwrap()
        }
    });
    let (ticket, version) = versions.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(ticket.manifest, None);
    let into = directory.path().join("into");
    let mut options = ReceiveWatch::new(receive_options(&ticket, &reach, &into));
    (options.look_every, options.count) = (Duration::from_millis(50), Some(3));
    let mut taken = Vec::new();
    let summary = watch(&options, &Stop::new(), &mut |event| {
        let WatchEvent::Taken(summary) = event else { return };
        taken.push(summary.manifest.unwrap().1);
        match taken.len() {
            1 => {
                fs::create_dir(root.join("new")).unwrap();
                fs::write(root.join("new/second"), noise(50_000, 2)).unwrap();
            }
            2 => fs::write(root.join("first"), noise(100_000, 3)).unwrap(),
            _ => {}
        }
    })
    .unwrap();
    assert_eq!((summary.outcome, summary.taken), (Outcome::Complete, 3));
    stop.set();
    let sent = sender.join().unwrap();
    let told: Vec<_> = versions.try_iter().collect();
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
fn a_file_that_goes_on_growing_is_not_sent_before_it_rests() {
    let _turn = TURN.lock();
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("folder");
    fs::create_dir(&root).unwrap();
    let mut send = send_options(vec![root.clone()], &reach(52));
    send.signer = Some(SecretKey::from_seed(&[4; 32]));
    let folder = SendFolder { settle: Duration::from_millis(500), ..SendFolder::new(send) };
    let stop = Stop::new();
    let (tell, sizes) = channel();
    let sender = std::thread::spawn({
        let stop = stop.clone();
        move || {
            send_folder(&folder, &stop, &mut |event| {
                if let FolderEvent::Version(session) = event {
                    tell.send(session.manifest().content_length()).unwrap();
                }
            })
            .unwrap()
        }
    });
    // It grows until well after it would have been sent, had it rested from the beginning.
    let path = root.join("growing");
    for step in 1..=15_usize {
        fs::write(&path, noise(step * 1_000, 5)).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let seen: Vec<u64> = std::iter::from_fn(|| sizes.recv_timeout(Duration::from_secs(20)).ok())
        .take_while(|&size| size < 15_000)
        .collect();
    // At most the empty folder, on a machine that was too busy to see the first write in time.
    assert!(seen.iter().all(|&size| size == 0), "{seen:?}");
    stop.set();
    assert_eq!(sender.join().unwrap().outcome, Outcome::Interrupted);
}
