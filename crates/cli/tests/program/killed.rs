//! Receivers that are killed at random moments, on the disk of this host.

use crate::serve::event;
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

/// What a receiver has beside the session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// Two mirrors, a site with a complete receiver, and a log of its files.
    MirrorsAndSite,
}

/// Kills a receiver so many times at random moments of a reception, which goes on each time.
fn kill(times: u32, beside: Beside) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (tree, into) = (path("tree"), path("into"));
    let files = make_tree(&tree);
    let has_more = beside == Beside::MirrorsAndSite;
    let manifest = format!("--manifest {}", path("manifest").display());
    let more = if has_more { &*manifest } else { "" };
    let sender = Sender::start(&format!("--to {} --rate 60M {more}", place()), &[&tree]);
    let (mut words, mut others) = (String::new(), Vec::new());
    if has_more {
        for _ in 0..2 {
            let serve = format!("serve --json --listen 127.0.0.1:0 {manifest}");
            let mut server = Running::start(&arguments(&serve, &[&tree]));
            let serving = event(&mut server, "serving");
            words = format!("{words} http://{}/", serving["listen"].as_str().unwrap());
            others.push(server);
        }
        let member = format!("recv {} -i lo --json --share -o", sender.ticket);
        others.push(Running::start(&arguments(&member, &[&path("other")])));
        words = format!("{words} -i lo --share --audit {}", path("log").display());
    }
    let receive =
        |words: &str| arguments(&format!("recv {} --json {words} -o", sender.ticket), &[&into]);
    let mut seed = u64::from(std::process::id());
    println!("seed {seed}");
    let (mut absent, mut partial, mut complete) = (0, 0, 0);
    for _ in 0..times {
        let receiver = Running::start(&receive(&words));
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
    others.into_iter().for_each(|other| drop(other.stop()));
}

#[test]
fn a_receiver_that_is_killed_leaves_files_that_are_absent_or_perfect() {
    kill(10, Beside::Nothing);
    kill(5, Beside::MirrorsAndSite);
}

#[test]
#[ignore = "a minute: .ci/long hostile"]
fn two_hundred_kills_leave_files_that_are_absent_or_perfect() {
    kill(200, Beside::Nothing);
    kill(100, Beside::MirrorsAndSite);
}
