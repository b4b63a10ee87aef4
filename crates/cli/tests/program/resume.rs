//! `fontana resume`: what interrupted receptions leave.

use crate::support::{Running, Sender, arguments, noise, place, run};
use rustix::process::Signal;
use std::path::Path;
use std::time::Duration;

/// Receives until something is on the disk.
fn begin(ticket: &str, into: &Path) -> Running {
    let words = format!("recv {ticket} --json -o");
    let mut receiver = Running::start(&arguments(&words, &[into]));
    while !receiver.line().contains("accepted") {}
    std::thread::sleep(Duration::from_millis(300));
    receiver
}

#[test]
fn interrupted_receptions_are_listed_and_discarded() {
    let directory = tempfile::tempdir().unwrap();
    let files = [1, 2].map(|number| directory.path().join(format!("file {number}")));
    for (seed, file) in files.iter().enumerate() {
        std::fs::write(file, noise(8_000_000, seed as u64)).unwrap();
    }
    let senders = files
        .each_ref()
        .map(|file| Sender::start(&format!("--to {} --rate 20M", place()), &[file.as_path()]));
    let into = directory.path().join("into");
    let list = || run(&arguments("resume --json", &[&into])).expect(0).events();

    let receiver = begin(&senders[0].ticket, &into);
    let running = list();
    assert_eq!((running.len(), &running[0]["in_use"]), (1, &true.into()), "{running:?}");
    let refused = run(&arguments("resume --discard", &[&into])).expect(6);
    assert!(refused.stderr.contains("in use by another receiver"), "{}", refused.stderr);
    receiver.signal(Signal::KILL);
    receiver.wait();
    let killed = &list()[0];
    assert_eq!((&killed["in_use"], &killed["label"]), (&false.into(), &"file 1".into()));
    assert_eq!(killed["bytes"], 8_000_000);
    let symbols = killed["symbols"].as_u64().unwrap();
    assert!((1..killed["source_symbols"].as_u64().unwrap()).contains(&symbols), "{killed}");
    assert!(killed["bytes_on_disk"].as_u64().unwrap() >= symbols * 1000, "{killed}");

    begin(&senders[1].ticket, &into).stop().expect(130);
    assert_eq!(list().len(), 2);
    let text = run(&arguments("resume", &[&into])).expect(0).stdout;
    assert!(text.contains("file 2 (1 file, 8.0 MB), ") && text.contains(" ago"), "{text}");
    let unclear = run(&arguments("resume --discard", &[&into])).expect(2);
    assert!(unclear.stderr.contains("2 receptions"), "{}", unclear.stderr);
    run(&arguments("resume --discard", &[&into, Path::new("no-such-tag")])).expect(2);

    let tag = killed["tag"].as_str().unwrap();
    let discard = [&into, Path::new(&tag[..12])];
    let discarded = run(&arguments("resume --json --discard", &discard)).expect(0);
    assert_eq!(discarded.event("discarded")["tag"], tag);
    run(&arguments("resume --discard", &[&into])).expect(0);
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), 0, "nothing is left");
    let listed = run(&arguments("resume", &[&into])).expect(0).stdout;
    assert_eq!(listed, "nothing was interrupted here\n");
    for sender in senders {
        sender.finish();
    }
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let refused = run(&arguments("resume", &[&missing])).expect(6);
    assert!(refused.stderr.contains("missing"), "{}", refused.stderr);
    assert!(refused.stderr.contains("check the spelling"), "{}", refused.stderr);
    assert!(!missing.exists());
}
