//! Real hosts, real loss: a sender and receivers in namespaces on a bridge with IGMP snooping.
//!
//! One test after the other: they share two cores and compare rates. As root:
//! `cargo test -p fontana-cli --test namespaces -- --test-threads=1 --nocapture`.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/bench.rs"]
mod bench;

use bench::{Bench, noise_file, same_file};
use std::sync::Mutex;
use std::time::Duration;

/// The tests take turns whatever the number of test threads.
static TURN: Mutex<()> = Mutex::new(());

const GROUP: &str = "239.255.77.1:7701";

/// Issue: 256 MiB to four receivers at 0, 1, 10 and 30 % loss, one of them late.
#[test]
fn four_receivers_get_256_mib_for_little_more_than_its_bytes() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    let bench = Bench::new(6);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.raw");
    let size = 256 << 20;
    noise_file(&file, size, 1);
    // What two cores carry with room to spare: one sender and four receivers share them here.
    let rate = "250M";
    let losses = [0, 10, 100, 300];
    for (index, &permille) in losses.iter().enumerate() {
        bench.count_sent(index + 1);
        if permille > 0 {
            bench.lose(index + 1, permille);
        }
    }
    let file_name = file.to_str().unwrap();
    let mut sender = bench.start(0, &["send", file_name, "--to", GROUP, "--rate", rate, "--json"]);
    let session = sender.wait_for("session", Duration::from_secs(60));
    let ticket = session["ticket"].as_str().unwrap().to_owned();
    let mut receivers = Vec::new();
    for (index, _) in losses.iter().enumerate() {
        // The second one is late: it comes when about half has been sent.
        if index == 1 {
            continue;
        }
        let into = directory.path().join(format!("r{index}"));
        let arguments =
            ["recv", &ticket, "-o", into.to_str().unwrap(), "--json", "--timeout", "120"];
        receivers.push((index, into.clone(), bench.start(index + 1, &arguments)));
    }
    std::thread::sleep(Duration::from_millis(4300));
    let into = directory.path().join("r1");
    let arguments = ["recv", &ticket, "-o", into.to_str().unwrap(), "--json", "--timeout", "120"];
    receivers.push((1, into.clone(), bench.start(2, &arguments)));

    let (mut worst, mut sum, mut most_expected) = (0_f64, 0_f64, 0_f64);
    for (index, into, receiver) in &mut receivers {
        let index = *index;
        let (code, errors) = receiver.finish(Duration::from_secs(150));
        let summary = receiver.last("summary").cloned().unwrap_or_default();
        println!("receiver {index}: {summary}");
        assert_eq!(code, Some(0), "{errors}");
        assert!(same_file(&file, &into.join("image.raw")), "receiver {index}");
        let inefficiency = summary["reception_inefficiency"].as_f64().unwrap();
        worst = worst.max(inefficiency);
        sum += inefficiency;
        if losses[index] > 0 {
            let (came, dropped) = bench.losses(index + 1);
            let measured = dropped as f64 / came as f64;
            let wanted = f64::from(losses[index]) / 1000.0;
            println!("receiver {index}: {came} datagrams came, {dropped} dropped, {measured:.4}");
            assert!((measured - wanted).abs() < 0.01, "the rule did not see single datagrams");
        }
        if losses[index] == 300 {
            // What had been sent, by the packets' own numbers, when the slowest had enough.
            let packets = summary["expected"].as_f64().unwrap();
            let payload =
                summary["payload_bytes"].as_f64().unwrap() / summary["packets"].as_f64().unwrap();
            most_expected = packets * payload;
        }
        let (igmp, other) = bench.sent(index + 1);
        println!("receiver {index}: sent {igmp} IGMP packets and {other} others");
        assert!(igmp > 0 && other == 0, "receivers send nothing but membership reports");
    }
    let mean = sum / receivers.len() as f64;
    let sent = most_expected / (size as f64 / 0.7);
    println!("inefficiency: worst {worst:.4}, mean {mean:.4}; sent {sent:.4} of size / 0.7");
    assert!(worst <= 1.03, "{worst}");
    assert!(mean <= 1.015, "{mean}");
    assert!(sent <= 1.04, "{sent}");

    // The fifth host has joined nothing: the switch must not have sent it the session.
    let (joined, stranger) = (bench.forwarded(1), bench.forwarded(5));
    println!("switch sent {joined} bytes to a receiver and {stranger} to a host that did not join");
    assert!(joined > size && stranger < 1 << 20);
    sender.interrupt();
    let (code, _) = sender.finish(Duration::from_secs(10));
    assert_eq!(code, Some(130));
    let summary = sender.last("summary").unwrap();
    println!("sender: {summary}");
}

/// Issue: a 1 GiB file with `--memory 128M` on both sides stays under 192 MiB.
#[test]
fn a_file_larger_than_memory_stays_within_memory() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    let bench = Bench::new(2);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.raw");
    noise_file(&file, 1 << 30, 2);
    bench.lose(1, 20);
    let mut sender = bench.start(
        0,
        &[
            "send",
            file.to_str().unwrap(),
            "--to",
            GROUP,
            "--rate",
            "400M",
            "--memory",
            "128M",
            "--json",
        ],
    );
    let session = sender.wait_for("session", Duration::from_secs(60));
    let ticket = session["ticket"].as_str().unwrap().to_owned();
    let into = directory.path().join("r");
    let mut receiver = bench.start(
        1,
        &[
            "recv",
            &ticket,
            "-o",
            into.to_str().unwrap(),
            "--memory",
            "128M",
            "--json",
            "--timeout",
            "150",
        ],
    );
    let (code, errors) = receiver.finish(Duration::from_secs(180));
    let summary = receiver.last("summary").cloned().unwrap_or_default();
    println!("{summary}");
    assert_eq!(code, Some(0), "{errors}");
    assert!(same_file(&file, &into.join("image.raw")));
    let (sending, receiving) = (sender.peak_memory() >> 20, receiver.peak_memory() >> 20);
    println!("peak memory: sender {sending} MiB, receiver {receiving} MiB");
    assert!(sending < 192 && receiving < 192);
    sender.interrupt();
    sender.finish(Duration::from_secs(10));
    println!("sender: {}", sender.last("summary").unwrap());
}
