//! Receivers that are killed at random moments, on the disk of this host.

use crate::support::{Running, Sender, arguments, noise, place, run};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A tree of files of every size. Returns its files with their bytes.
fn make_tree(at: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::create_dir_all(at.join("small")).unwrap();
    let mut files = BTreeMap::from([
        ("large".to_owned(), noise(3_000_000, 1)),
        ("medium".to_owned(), noise(300_000, 2)),
        ("empty".to_owned(), Vec::new()),
    ]);
    files.extend((0..40).map(|n| (format!("small/{n}"), noise(100 * n as usize + 1, 3 + n))));
    for (name, bytes) in &files {
        fs::write(at.join(name), bytes).unwrap();
    }
    files
}

/// Files that have their names; each must have every byte.
fn named(into: &Path, files: &BTreeMap<String, Vec<u8>>) -> usize {
    let is_there = |name: &str, bytes: &[u8]| {
        let received = fs::read(into.join("tree").join(name)).ok();
        assert!(received.as_ref().is_none_or(|received| received == bytes), "{name} is wrong");
        received.is_some()
    };
    files.iter().filter(|(name, bytes)| is_there(name, bytes)).count()
}

/// Kills a receiver so many times at random moments of a reception, which goes on each time.
fn kill(times: u32) {
    let directory = tempfile::tempdir().unwrap();
    let (tree, into) = (directory.path().join("tree"), directory.path().join("into"));
    let files = make_tree(&tree);
    let sender = Sender::start(&format!("--to {} --rate 60M", place()), &[&tree]);
    let receive =
        |options: &str| arguments(&format!("recv {} --json {options} -o", sender.ticket), &[&into]);
    let mut seed = u64::from(std::process::id());
    println!("seed {seed}");
    let (mut absent, mut partial, mut complete) = (0, 0, 0);
    for _ in 0..times {
        let receiver = Running::start(&receive(""));
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((seed >> 33) % 450));
        receiver.signal(Signal::KILL);
        let code = receiver.wait().code;
        assert!(code.is_none() || code == Some(0), "{code:?}");
        match named(&into, &files) {
            0 => absent += 1,
            some if some < files.len() => partial += 1,
            _ => {
                complete += 1;
                fs::remove_dir_all(&into).unwrap();
            }
        }
    }
    run(&receive("--timeout 30")).expect(0);
    assert_eq!(named(&into, &files), files.len());
    let left = fs::read_dir(&into).unwrap().count();
    assert_eq!(left, 1, "nothing but the tree is left");
    println!("{times} kills: {absent} times no file, {partial} times some, {complete} times all");
    sender.finish();
}

#[test]
fn a_receiver_that_is_killed_leaves_files_that_are_absent_or_perfect() {
    kill(10);
}

#[test]
#[ignore = "a minute: .ci/long hostile"]
fn two_hundred_kills_leave_files_that_are_absent_or_perfect() {
    kill(200);
}
