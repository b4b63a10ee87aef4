//! What the two commands reach where no other file looks: late receivers, mixed ones, the end of a
//! session, receivers that are killed, many files, many versions. `docs/benchmarks.md` has the
//! figures that the tests print.

use crate::program::Program;
use crate::scene::{Scene, Session, same_file};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// Processor time of a process, also of one that has ended and that its parent has not asked for.
fn processor_time(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|it| it.parse::<u64>().unwrap()).sum();
    // USER_HZ of Linux.
    ticks as f64 / 100.0
}

/// Bytes on the wire per second, and the sender's processor time, in the seconds that follow.
fn load(sender: &mut Program, seconds: f64) -> (f64, f64) {
    let number = |event: &Value, field: &str| event[field].as_f64().unwrap();
    let first = sender.wait_for("progress", PATIENCE);
    let busy = processor_time(sender.id());
    loop {
        let last = sender.wait_for("progress", PATIENCE);
        let elapsed = number(&last, "seconds") - number(&first, "seconds");
        if elapsed >= seconds {
            let bytes = number(&last, "wire_bytes") - number(&first, "wire_bytes");
            return (bytes / elapsed, (processor_time(sender.id()) - busy) / elapsed);
        }
    }
}

fn until_rests(session: &mut Session) {
    while session.sender.wait_for("resting", PATIENCE)["rests"] != true {}
}

/// A receiver is there before the sender, and another one comes when half of the file was sent.
#[test]
fn receivers_that_come_early_and_late_are_complete() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 64 << 20);
    let known = scene.send(0, "--rate 100M", &scene.path("image.raw"));
    let ticket = known.ticket.clone();
    known.end();
    let mut early = scene.receive(1, &ticket, "");
    std::thread::sleep(Duration::from_secs(2));
    let mut session = scene.send(0, "--rate 100M", &file);
    assert_eq!(session.ticket, ticket);
    std::thread::sleep(Duration::from_secs(3));
    let mut late = scene.receive(2, &ticket, "");
    let times = [&mut early, &mut late].map(|reception| {
        reception.receiver.wait_for("summary", PATIENCE);
        let time = processor_time(reception.receiver.id());
        reception.complete();
        time
    });
    (1..3).for_each(|host| assert!(same_file(&file, &scene.received(host).join("image.raw"))));
    println!("early {:.2} s of processor, late {:.2} s", times[0], times[1]);
    assert!(times[1] <= 4.0 * times[0] + 0.5, "{times:?}");
    until_rests(&mut session);
    session.end();
}

/// It sends nothing, and gets what the sender adds for such receivers when the others have ended.
#[test]
fn one_that_may_not_send_completes_beside_two_that_may() {
    let Some(scene) = Scene::new(4) else { return };
    (1..4).for_each(|host| scene.bench.lose(host, 100));
    let file = scene.noise("image.raw", 8 << 20);
    let mut session = scene.send(0, "--rate 40M", &file);
    let options = ["--one-way", "", ""];
    let receive = |(host, options): (usize, &&str)| scene.receive(host, &session.ticket, options);
    let receptions: Vec<_> = (1..).zip(&options).map(receive).collect();
    for (host, mut reception) in (1..).zip(receptions) {
        reception.complete();
        assert!(same_file(&file, &scene.received(host).join("image.raw")));
    }
    until_rests(&mut session);
    assert_eq!(session.sender.last("roll_call").unwrap()["known"], 2);
    let (bytes, _) = load(&mut session.sender, 2.0);
    assert!(8.0 * bytes < 50_000.0, "{bytes} bytes a second");
    session.end();
}

/// From the last verified block to the end of `fontana recv`, and of `fontana send --receivers`.
#[test]
fn both_end_soon_after_the_last_block() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 8 << 20);
    let mut session = scene.send(0, "--receivers 1 --rate 40M", &file);
    let mut reception = scene.receive(1, &session.ticket, "");
    reception.receiver.wait_for("object_done", PATIENCE);
    let verified = Instant::now();
    reception.complete();
    let received = verified.elapsed();
    assert_eq!(session.sender.finish(PATIENCE).0, Some(0));
    println!("recv ends after {received:.2?}, send after {:.2?}", verified.elapsed());
    // A busy host is late; a limit decides nothing there.
    assert!(verified.elapsed() < Duration::from_secs(60), "{:?}", verified.elapsed());
}

/// A receiver in each of two networks of the sender, without losses: it recovers nothing, because
/// each network gets all source symbols.
#[test]
fn each_of_two_networks_gets_the_source_symbols() {
    let Some(scene) = Scene::new(2) else { return };
    let other = scene.bench.second_network();
    let file = scene.noise("image.raw", 8 << 20);
    let mut sender = scene.start(0, "send --json -i eth0 -i eth1 --rate 40M --receivers 2", &file);
    let session = sender.wait_for("session", PATIENCE);
    let tickets = [0, 1].map(|network: usize| session["tickets"][network].as_str().unwrap());
    let mut near = scene.receive(1, tickets[0], "");
    let words = ["recv", "--json", tickets[1], "-o"].map(OsString::from);
    let mut far = other.start(1, &[&words[..], &[scene.path("other").into()]].concat());
    near.complete();
    assert_eq!(far.finish(PATIENCE).0, Some(0));
    assert_eq!(sender.finish(PATIENCE).0, Some(0));
    let summaries: Vec<_> = sender.all("summary").collect();
    assert_eq!(summaries.len(), 2);
    for summary in summaries {
        println!("{summary}");
        assert_eq!(summary["source_symbols"], session["source_symbols"]);
    }
}

/// What costs others something, and is received by no host any more.
#[test]
fn when_all_receivers_are_killed_the_rate_falls() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 128 << 20);
    let mut session = scene.send(0, "", &file);
    let receptions = [1, 2].map(|host| scene.receive(host, &session.ticket, ""));
    let rate = |event: &Value| event["rate_bits_per_second"].as_f64().unwrap();
    while rate(&session.sender.wait_for("rate", PATIENCE)) < 50e6 {}
    receptions.iter().for_each(|reception| reception.receiver.kill());
    let killed = Instant::now();
    while rate(&session.sender.wait_for("rate", PATIENCE)) > 20e6 {}
    println!("a fifth {:.1?} after the kill", killed.elapsed());
    assert!(killed.elapsed() < Duration::from_secs(60), "{:?}", killed.elapsed());
    session.end();
}

/// Head, roll calls and a long manifest: `cargo test --workspace --test namespaces goals:: --
/// --ignored --nocapture`.
#[test]
#[ignore = "100 000 files"]
fn a_sender_of_many_files_rests() {
    let Some(scene) = Scene::new(3) else { return };
    let folder = scene.path("folder");
    for directory in 0..100 {
        let directory = folder.join(directory.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        for file in 0..1_000 {
            std::fs::write(directory.join(file.to_string()), directory.display().to_string())
                .unwrap();
        }
    }
    let mut session = scene.send(0, "", &folder);
    let started = Instant::now();
    scene.receive(1, &session.ticket, "").complete();
    println!("a receiver has all after {:.1?}", started.elapsed());
    until_rests(&mut session);
    let (bytes, busy) = load(&mut session.sender, 10.0);
    println!("{:.0} bit/s, {:.2} % of a core", 8.0 * bytes, 100.0 * busy);
    assert!(8.0 * bytes < 50_000.0, "{bytes} bytes a second");
    let started = Instant::now();
    scene.receive(2, &session.ticket, "").complete();
    println!("a later receiver has all after {:.1?}", started.elapsed());
    session.end();
}

/// Versions that are at rest for two seconds and more; one receiver is killed and starts again.
#[test]
#[ignore = "a minute"]
fn twenty_versions_reach_named_receivers_one_of_which_is_restarted() {
    let Some(scene) = Scene::new(3) else { return };
    let (folder, names) = (scene.path("folder"), scene.path("names"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(&names, "one\ntwo\n").unwrap();
    let write = |number: u64| {
        fontana_testing::noise_file(&folder.join(number.to_string()), 1 << 20, number).unwrap();
    };
    write(0);
    let options = format!("--watch=0.3 --receivers {}", names.display());
    let mut session = scene.send(0, &options, &folder);
    let ticket = session.ticket.clone();
    let follow =
        |host: usize, name| scene.receive(host, &ticket, &format!("--watch --label {name}"));
    let (one, mut two) = (follow(1, "one"), follow(2, "two"));
    let has = |host: usize, number: u64| {
        let name = Path::new("folder").join(number.to_string());
        let path = scene.received(host).join(name);
        path.exists() && same_file(&folder.join(number.to_string()), &path)
    };
    let mut longest = Duration::ZERO;
    for number in 0..20 {
        if number > 0 {
            write(number);
        }
        if number == 10 {
            two.receiver.kill();
            two = follow(2, "two");
        }
        let written = Instant::now();
        while !(has(1, number) && has(2, number)) {
            assert!(written.elapsed() < Duration::from_secs(30), "version {number}");
            std::thread::sleep(Duration::from_millis(20));
        }
        longest = longest.max(written.elapsed());
        std::thread::sleep(Duration::from_secs(2).saturating_sub(written.elapsed()));
    }
    println!("the slowest version took {longest:.2?}");
    while session.sender.wait_for("roll_call", PATIENCE)["complete"] != 2 {}
    drop((one, two));
    session.end();
}
