//! Real hosts, real loss: a sender and receivers in namespaces on a bridge with IGMP snooping.
//!
//! One test after the other: they share two cores and compare rates. As root:
//! `cargo test -p fontana-cli --test namespaces -- --test-threads=1 --nocapture`.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/bench.rs"]
mod bench;

use bench::{Bench, Mounted, noise_file, same_file};
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
    // One sender and four receivers share two cores here. The time from the last symbol that was
    // needed to leaving the group is theirs, and at a higher rate more packets fall into it.
    let rate = "150M";
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
    std::thread::sleep(Duration::from_millis(7200));
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

/// A stranger on the group floods it with datagrams of every broken kind while a file is received.
#[test]
fn a_flood_of_broken_datagrams_costs_the_honest_transfer_nothing() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    let bench = Bench::new(3);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.raw");
    noise_file(&file, 32 << 20, 3);
    let send = ["send", file.to_str().unwrap(), "--to", GROUP, "--rate", "50M", "--json"];
    let mut sender = bench.start(0, &send);
    let session = sender.wait_for("session", Duration::from_secs(30));
    // Without the source in it, so that strangers are heard at all.
    let ticket =
        session["ticket"].as_str().unwrap().replace(&format!("{}@", Bench::address(0)), "");
    let mut stranger = bench
        .command(2, std::env::current_exe().unwrap().to_str().unwrap())
        .args(["--exact", "stranger", "--ignored", "--nocapture"])
        .env("FONTANA_TEST_TSI", ticket.split(['/', '?']).nth(3).unwrap())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let into = directory.path().join("r");
    let receive = ["recv", &ticket, "-o", into.to_str().unwrap(), "--json", "--timeout", "60"];
    let mut receiver = bench.start(1, &receive);
    let (code, errors) = receiver.finish(Duration::from_secs(90));
    let _ = stranger.kill();
    let _ = stranger.wait();
    let summary = receiver.last("summary").cloned().unwrap_or_default();
    println!("{summary}\nstderr: {} bytes", errors.len());
    assert_eq!(code, Some(0), "{errors}");
    assert!(same_file(&file, &into.join("image.raw")));
    assert!(summary["malformed"].as_u64().unwrap() > 10_000, "the stranger was heard");
    assert_eq!(summary["poisoned_blocks"], 0);
    assert!(errors.len() < 10_000, "{errors}");
    let inefficiency = summary["reception_inefficiency"].as_f64().unwrap();
    assert!(inefficiency < 1.02, "{inefficiency}");
    let peak = receiver.peak_memory() >> 20;
    println!("peak memory: {peak} MiB");
    assert!(peak < 256);
    sender.interrupt();
    sender.finish(Duration::from_secs(10));
}

/// The stranger of the test above: a process of its own, in its own namespace.
#[test]
#[ignore = "a process that another test starts"]
fn stranger() {
    let Ok(tsi) = std::env::var("FONTANA_TEST_TSI") else { return };
    let tsi: u32 = tsi.parse().unwrap();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for count in 0..2_000_000 {
        let mut datagram = match random(4) {
            0 => Vec::new(),
            1 => vec![0; random(1400)],
            _ => {
                // An LCT header of the session under attack (RFC 5651): V=1, S=1, O=1.
                let mut packet = vec![0x10, 0xA0, 4, 6, 0, 0, 0, 0];
                packet.extend(tsi.to_be_bytes());
                packet.extend((random(3) as u32).to_be_bytes());
                packet.resize(packet.len() + random(1400), 0);
                packet
            }
        };
        let length = datagram.len();
        let noise = if random(2) == 0 { 0 } else { 16.min(length) };
        for byte in datagram.iter_mut().skip(noise) {
            *byte = random(256) as u8;
        }
        let length = random(length + 1);
        datagram.truncate(length);
        let _ = socket.send_to(&datagram, GROUP);
        if count % 20 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A full disk is an error with the way out at one receiver and nothing to the other.
#[test]
fn a_full_disk_is_5_and_the_receiver_beside_it_finishes() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    let bench = Bench::new(3);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.raw");
    noise_file(&file, 8 << 20, 6);
    let (small, large) = (directory.path().join("small"), directory.path().join("large"));
    std::fs::create_dir(&small).unwrap();
    let mounted = Mounted::tmpfs(&small, "4m");
    let send = ["send", file.to_str().unwrap(), "--to", GROUP, "--rate", "50M", "--json"];
    let mut sender = bench.start(0, &send);
    let session = sender.wait_for("session", Duration::from_secs(30));
    let ticket = session["ticket"].as_str().unwrap().to_owned();
    let start = |host, into: &std::path::Path| {
        let into = into.to_str().unwrap();
        bench.start(host, &["recv", &ticket, "-o", into, "--json", "--timeout", "30"])
    };
    let (mut full, mut roomy) = (start(1, &small), start(2, &large));
    let (code, errors) = full.finish(Duration::from_secs(60));
    println!("{errors}");
    assert_eq!(code, Some(5), "{errors}");
    assert!(errors.contains("disk full") && errors.contains("free some space"), "{errors}");
    assert!(!small.join("image.raw").exists());
    let (code, errors) = roomy.finish(Duration::from_secs(60));
    assert_eq!(code, Some(0), "{errors}");
    assert!(same_file(&file, &large.join("image.raw")));
    drop(mounted);
    sender.interrupt();
    sender.finish(Duration::from_secs(10));
}

/// Both IP versions, any source and one source.
#[test]
fn groups_of_both_ip_versions_are_received_from_any_source_and_from_one() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    let bench = Bench::new(3);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.raw");
    noise_file(&file, 2 << 20, 5);
    let groups =
        ["239.255.77.9:7701", "232.77.1.9:7701", "[ff15::77:1]:7701", "[ff35::8000:4d4d]:7701"];
    for (number, group) in groups.into_iter().enumerate() {
        let send = ["send", file.to_str().unwrap(), "--to", group, "--rate", "40M", "--json"];
        let mut sender = bench.start(0, &send);
        let session = sender.wait_for("session", Duration::from_secs(30));
        let ticket = session["ticket"].as_str().unwrap().to_owned();
        let (source, from_any) = ticket.split_once('@').unwrap();
        let from_any = format!("fontana://{from_any}");
        let v6 = group.starts_with('[');
        let address = if v6 { Bench::address6(0) } else { Bench::address(0) };
        assert!(source.contains(&address), "{ticket}");
        // A source-specific group cannot be joined without a source (RFC 4607).
        let tickets = if number % 2 == 0 { vec![&ticket, &from_any] } else { vec![&ticket] };
        for (host, ticket) in tickets.into_iter().enumerate() {
            let into = directory.path().join(format!("{number}-{host}"));
            let into_name = into.to_str().unwrap();
            let receive = ["recv", ticket, "-o", into_name, "--json", "--timeout", "30"];
            let mut receiver = bench.start(host + 1, &receive);
            let (code, errors) = receiver.finish(Duration::from_secs(60));
            assert_eq!(code, Some(0), "{ticket}: {errors}");
            assert!(same_file(&file, &into.join("image.raw")), "{ticket}");
        }
        sender.interrupt();
        sender.finish(Duration::from_secs(10));
    }
}

/// Issue: killed with SIGKILL at 20 random moments of one 256 MiB reception at 10 % loss.
#[test]
fn a_receiver_killed_again_and_again_hears_little_more_than_the_file() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    let bench = Bench::new(2);
    bench.lose(1, 100);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("image.raw");
    noise_file(&file, 256 << 20, 4);
    let send = ["send", file.to_str().unwrap(), "--to", GROUP, "--rate", "150M", "--json"];
    let mut sender = bench.start(0, &send);
    let session = sender.wait_for("session", Duration::from_secs(30));
    let ticket = session["ticket"].as_str().unwrap().to_owned();
    let into = directory.path().join("r");
    let receive = ["recv", &ticket, "-o", into.to_str().unwrap(), "--json", "--timeout", "60"];
    let mut seed = u64::from(std::process::id());
    println!("seed {seed}");
    for _ in 0..20 {
        let receiver = bench.start(1, &receive);
        // From before it has joined to well into the transfer; all 20 together hear half of it.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((seed >> 33) % 1000));
        receiver.kill();
    }
    let mut receiver = bench.start(1, &receive);
    let (code, errors) = receiver.finish(Duration::from_secs(90));
    let summary = receiver.last("summary").cloned().unwrap_or_default();
    println!("{:?}\n{summary}", receiver.last("resumed"));
    assert_eq!(code, Some(0), "{errors}");
    assert!(same_file(&file, &into.join("image.raw")));
    assert_eq!(summary["poisoned_blocks"], 0);
    let inefficiency = summary["reception_inefficiency"].as_f64().unwrap();
    assert!(inefficiency <= 1.05, "{inefficiency}");
    sender.interrupt();
    sender.finish(Duration::from_secs(10));
}

/// Issue: two senders of one manifest, one killed and started again, a receiver at 20 % loss.
#[test]
fn mirrors_add_up_whoever_of_them_is_started_again() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    let bench = Bench::new(3);
    bench.lose(2, 200);
    let directory = tempfile::tempdir().unwrap();
    let (file, manifest) = (directory.path().join("image.raw"), directory.path().join("manifest"));
    noise_file(&file, 32 << 20, 5);
    let send = |number: usize, more: &[&str]| {
        let (file, manifest) = (file.to_str().unwrap(), manifest.to_str().unwrap());
        let send = ["send", file, "--manifest", manifest, "--to", GROUP, "--rate", "20M", "--json"];
        let mut sender = bench.start(number, &[&send, more].concat());
        let session = sender.wait_for("session", Duration::from_secs(30));
        (sender, session["ticket"].as_str().unwrap().to_owned())
    };
    let (mut first, ticket) = send(0, &[]);
    let (second, ticket_of_second) = send(1, &["--mirror"]);
    assert_eq!(ticket, ticket_of_second, "one ticket for all");
    let into = directory.path().join("r");
    let receive = ["recv", &ticket, "-o", into.to_str().unwrap(), "--json", "--timeout", "60"];
    let mut receiver = bench.start(2, &receive);
    std::thread::sleep(Duration::from_secs(3));
    let killed = std::time::Instant::now();
    second.kill();
    let (mut second, ticket_of_second) = send(1, &[]);
    let away = killed.elapsed().as_secs_f64();
    assert_eq!(ticket, ticket_of_second, "in every life");

    receiver.wait_for("heard_enough", Duration::from_secs(60));
    let (code, errors) = receiver.finish(Duration::from_secs(10));
    let summary = receiver.last("summary").cloned().unwrap_or_default();
    println!("{summary}");
    assert_eq!(code, Some(0), "{errors}");
    assert!(same_file(&file, &into.join("image.raw")));
    let number = |field: &str| summary[field].as_f64().unwrap();
    let distinctness = (number("fresh") + number("duplicates")) / number("fresh");
    // One sender with the sum of the rates, 80 % of whose packets arrive; half of it was away for a
    // moment.
    let packet_bytes = number("payload_bytes") / number("datagrams") + 28.0;
    let ideal = number("packets") * packet_bytes * 8.0 / (0.8 * 40e6) + away / 2.0;
    let ratio = number("seconds") / ideal;
    println!("distinctness inefficiency {distinctness:.4}, time {ratio:.3} of one sender's");
    assert!(distinctness < 1.0005, "{distinctness}");
    assert!(number("reception_inefficiency") < 1.03, "{summary}");
    // Until the file is on the disk, and on two cores for all.
    assert!(ratio < 1.1, "{ratio}");
    for sender in [&mut first, &mut second] {
        sender.interrupt();
        sender.finish(Duration::from_secs(10));
    }
    assert!(first.last("summary").unwrap()["source_symbols"].as_u64().unwrap() > 0);
    assert_eq!(second.last("summary").unwrap()["source_symbols"], 0);
}

/// Issue: 2 000 small files and names of every kind at 10 % loss; reception inefficiency 1.05.
#[test]
fn a_tree_of_two_thousand_files_arrives_as_it_was() {
    let _turn = TURN.lock();
    if !bench::available() {
        return;
    }
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new(2);
    bench.lose(1, 100);
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    for number in 0..2000_u64 {
        let place = tree.join(format!("d{}/e{}", number % 11, number % 5));
        std::fs::create_dir_all(&place).unwrap();
        noise_file(&place.join(format!("file {number}")), number * 131 % 9_000, number);
    }
    let names: [&[u8]; 4] = [b"two\nlines", "\u{fc}".as_bytes(), b"\xff\xfe", &[b'x'; 255]];
    for name in names {
        std::fs::write(tree.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    std::fs::write(tree.join("empty"), "").unwrap();
    std::fs::create_dir(tree.join("nothing")).unwrap();
    std::os::unix::fs::symlink("../outside", tree.join("link")).unwrap();
    let send = ["send", tree.to_str().unwrap(), "--to", GROUP, "--json"];
    let mut sender = bench.start(0, &send);
    let session = sender.wait_for("session", Duration::from_secs(30));
    println!("{session}");
    let ticket = session["ticket"].as_str().unwrap().to_owned();
    let into = directory.path().join("r");
    let receive = ["recv", &ticket, "-o", into.to_str().unwrap(), "--json", "--timeout", "60"];
    let mut receiver = bench.start(1, &receive);
    let (code, errors) = receiver.finish(Duration::from_secs(90));
    let summary = receiver.last("summary").cloned().unwrap_or_default();
    println!("{summary}");
    assert_eq!(code, Some(0), "{errors}");
    let inefficiency = summary["reception_inefficiency"].as_f64().unwrap();
    assert!(inefficiency <= 1.05, "{inefficiency}");
    // Names, bytes, modes, times and what links lead to.
    let listing = |root: &std::path::Path| {
        let find = "find . ! -type l -printf '%P\\0%y %m %T@\\0' | sort -z | sha256sum; \
                    find . -type l -printf '%P\\0%l\\0' | sort -z | sha256sum; \
                    find . -type f -print0 | sort -z | xargs -0 sha256sum -z | sha256sum";
        let command =
            std::process::Command::new("sh").args(["-ec", find]).current_dir(root).output();
        String::from_utf8(command.unwrap().stdout).unwrap()
    };
    assert_eq!(listing(&tree), listing(&into.join("tree")));
    sender.interrupt();
    sender.finish(Duration::from_secs(10));
}
