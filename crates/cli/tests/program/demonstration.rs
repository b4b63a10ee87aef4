//! `fontana demo`: five receivers, five verified files, on each network path.

use crate::support::{Run, Running, documented, fields, run};
use rustix::process::Signal;
use std::time::Duration;

const NAMES: [&str; 5] = ["clean", "lossy", "very lossy", "late", "stopped"];

fn assert_five_verified(run: &Run) {
    let documented = documented("fontana demo");
    let events = run.events();
    for event in &events {
        assert_eq!(&fields(event), &documented[event["event"].as_str().unwrap()]);
    }
    let (summary, receivers) = events.split_last().unwrap();
    assert_eq!(receivers.len(), NAMES.len());
    for (event, name) in receivers.iter().zip(NAMES) {
        assert_eq!(event["name"], name);
        assert_eq!(event["verified"], "digest", "{event}");
        assert!(event["reception_inefficiency"].as_f64().unwrap() >= 1.0, "{event}");
    }
    assert_eq!(summary["verified_receivers"], 5);
    assert_eq!(summary["verdict"], "complete");
    let loss = |index: usize| receivers[index]["loss"].as_f64().unwrap();
    // A loaded host drops packets as well.
    assert!(loss(1) > 0.02 && loss(2) > 0.35, "{}", run.stdout);
    assert_eq!(receivers[0]["joined_at"], 0.0);
    assert!(receivers[3]["joined_at"].as_f64().unwrap() > 0.1, "it came late");
}

#[test]
fn the_demonstration_ends_with_five_verified_receivers() {
    let run = run(&["demo", "--json"]).expect(0);
    assert_five_verified(&run);
    let summary = run.event("summary");
    let wire = |field: &str| summary[field].as_u64().unwrap();
    if summary["path"] != "unicast" {
        // The README has the ratio of a quiet host, 0.3: on a busy one the slowest receiver takes
        // longer, and the sender goes on for it.
        assert!(wire("wire_bytes") < wire("separate_copies_wire_bytes"), "{summary}");
    }
}

#[test]
fn the_demonstration_falls_back_to_broadcast_and_to_copies() {
    for path in ["broadcast", "unicast"] {
        let run = run(&["demo", "--json", "--path", path, "--size", "4M"]).expect(0);
        assert_five_verified(&run);
        assert_eq!(run.event("summary")["path"], path);
    }
}

#[test]
fn the_table_is_for_people() {
    let run = run(&["demo", "--size", "2M"]).expect(0);
    for name in NAMES {
        assert!(run.stdout.lines().any(|line| line.starts_with(name)), "{}", run.stdout);
    }
    assert!(run.stdout.contains("five separate copies"), "{}", run.stdout);
    assert!(!run.stdout.contains('\x1b'), "{}", run.stdout);
    assert_eq!(run.stderr.lines().count(), 1, "the start: {}", run.stderr);
}

#[test]
fn an_interrupted_demonstration_ends_without_errors_and_without_a_table() {
    for json in ["--quiet", "--json"] {
        let demo = Running::start(&["demo", json]);
        // The demonstration takes five seconds.
        std::thread::sleep(Duration::from_millis(1500));
        demo.signal(Signal::INT);
        let ended = demo.wait().expect(130);
        assert!(!ended.stderr.contains("error"), "{}", ended.stderr);
        if json == "--json" {
            assert_eq!(ended.event("summary")["verdict"], "interrupted");
        } else {
            assert_eq!(ended.stdout, "");
        }
    }
}
