//! The two commands that most people type: `fontana send FILE`, and the line that it prints.

use crate::scene::{GROUP, Scene, same_file};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// Three hosts under one name: `--receivers 3` counts processes.
#[test]
fn a_sender_knows_when_three_receivers_have_the_file_and_ends() {
    let Some(scene) = Scene::new(4) else { return };
    (1..4).for_each(|host| scene.bench.lose(host, 50));
    let file = scene.noise("image.raw", 4 << 20);
    let mut session = scene.send(0, "--receivers 3 --for 100 --rate 20M", &file);
    let receivers: Vec<_> =
        (1..4).map(|host| (host, scene.receive(host, &session.ticket, ""))).collect();
    for (host, mut receiver) in receivers {
        receiver.complete();
        assert!(same_file(&file, &scene.received(host).join("image.raw")));
    }
    let (code, said) = session.sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    let last = session.sender.last("roll_call").unwrap();
    assert_eq!((&last["complete"], &last["authenticated"]), (&3.into(), &true.into()), "{last}");
}

#[test]
fn one_that_is_missing_is_counted_and_the_sender_ends_with_9() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 1 << 20);
    let mut session = scene.send(0, "--receivers 2 --for 6 --rate 20M", &file);
    scene.receive(1, &session.ticket, "").complete();
    let (code, said) = session.sender.finish(PATIENCE);
    assert_eq!(code, Some(9), "{said}");
    let last = session.sender.last("roll_call").unwrap();
    assert_eq!((&last["complete"], &last["expected"]), (&1.into(), &2.into()), "{last}");
}

/// Bytes on the wire at a sender's next progress, and its time.
fn progress(sender: &mut crate::program::Program) -> (f64, f64) {
    let event = sender.wait_for("progress", PATIENCE);
    (event["wire_bytes"].as_f64().unwrap(), event["seconds"].as_f64().unwrap())
}

#[test]
fn while_all_are_complete_a_sender_rests_and_a_later_receiver_is_served() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 4 << 20);
    let mut session = scene.send(0, "--rate 40M", &file);
    let rests = |event: &Value| event["rests"].as_bool().unwrap();
    scene.receive(1, &session.ticket, "").complete();
    assert!(rests(&session.sender.wait_for("resting", PATIENCE)));
    let (bytes, from) = progress(&mut session.sender);
    progress(&mut session.sender);
    let (more, to) = progress(&mut session.sender);
    let rate = 8.0 * (more - bytes) / (to - from);
    println!("{rate:.0} bit/s while it rests");
    assert!(rate < 50_000.0, "{rate} bit/s");

    scene.receive(2, &session.ticket, "").complete();
    assert!(same_file(&file, &scene.received(2).join("image.raw")));
    assert!(!rests(&session.sender.wait_for("resting", PATIENCE)), "for the second receiver");
    assert!(rests(&session.sender.wait_for("resting", PATIENCE)), "and again");
    session.end();
}

/// Its packets do not arrive at the sender, which sends on, as no receiver has reported.
#[test]
fn a_receiver_that_cannot_answer_completes_and_does_not_wait_for_long() {
    let Some(scene) = Scene::new(2) else { return };
    let dropped = "nft add table inet mute && \
                   nft add chain inet mute output '{ type filter hook output priority 0; }' && \
                   nft add rule inet mute output oifname eth0 meta l4proto udp counter drop";
    let done = scene.bench.command(1, "sh").args(["-ec", dropped]).status().unwrap();
    assert!(done.success());
    scene.bench.lose(1, 100);
    let file = scene.noise("image.raw", 4 << 20);
    let mut session = scene.send(0, "--rate 40M", &file);
    let started = Instant::now();
    scene.receive(1, &session.ticket, "").complete();
    // Unlike the time of a transfer, this is a limit that the program sets itself: 10 s.
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let last = session.sender.wait_for("roll_call", PATIENCE);
    assert_eq!(last["known"], 0, "{last}");
    session.end();
}

/// A recorded ticket is for the sender of today, too, and its packets are for no other host.
#[test]
fn a_ticket_is_the_same_after_a_restart_and_needed() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 1 << 20);
    let first = scene.send(0, "--rate 20M", &file);
    let ticket = first.ticket.clone();
    first.end();
    let second = scene.send(0, "--rate 20M", &file);
    assert_eq!(second.ticket, ticket);
    assert!(ticket.contains("&secret=") && ticket.contains("&ask="), "{ticket}");
    let (public, _) = ticket.split_once("&secret=").unwrap();
    let said = scene.receive(1, public, "--timeout 4").finish(75);
    assert!(said.contains("is encrypted") && said.contains("the ticket"), "{said}");
    let path = scene.path("ticket");
    std::fs::write(&path, format!("{ticket}\n")).unwrap();
    scene.receive(1, path.to_str().unwrap(), "").complete();
    second.end();
}

/// Waits until a sender counts so many complete receivers.
fn until_complete(sender: &mut crate::program::Program, count: u64) -> Value {
    loop {
        let counted = sender.wait_for("roll_call", PATIENCE);
        if counted["complete"] == count {
            return counted;
        }
    }
}

/// Versions of a directory have one ticket, one port for reports, and a key of their own. Who has
/// the newest one is known, also after a restart of its receiver, and nothing is sent then.
#[test]
fn a_directory_is_followed_by_receivers_that_report_each_version() {
    let Some(scene) = Scene::new(3) else { return };
    let folder = scene.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let write = |name: &str, seed| {
        fontana_testing::noise_file(&folder.join(name), 1 << 20, seed).unwrap();
    };
    write("first", 1);
    let names = scene.path("names");
    std::fs::write(&names, "one\ntwo\n").unwrap();
    let options = format!("--watch=0.3 --rate 40M --receivers {}", names.display());
    let mut session = scene.send(0, &options, &folder);
    assert!(session.ticket.contains("&ask="), "{}", session.ticket);
    let ticket = session.ticket.clone();
    let follow =
        |host: usize, name| scene.receive(host, &ticket, &format!("--watch --label {name}"));
    let (mut one, mut two) = (follow(1, "one"), follow(2, "two"));
    let rests = |session: &mut crate::scene::Session, expected: bool| {
        let event = session.sender.wait_for("resting", PATIENCE);
        assert_eq!(event["rests"], expected, "{event}");
    };
    rests(&mut session, true);
    assert_eq!(until_complete(&mut session.sender, 2)["known"], 2);

    // Another version begins with receivers that have not reported of it.
    write("second", 2);
    for receiver in [&mut one, &mut two] {
        receiver.receiver.wait_for("taken", PATIENCE);
        receiver.receiver.wait_for("taken", PATIENCE);
    }
    rests(&mut session, true);
    until_complete(&mut session.sender, 2);
    for host in [1, 2] {
        assert!(same_file(&folder.join("second"), &scene.received(host).join("folder/second")));
    }

    // The new process has the version, says so, and needs nothing.
    two.receiver.kill();
    let seen = session.sender.seen.len();
    let mut two = follow(2, "two");
    loop {
        let report = session.sender.wait_for("report", PATIENCE);
        if report["label"] == "two" {
            assert_eq!(report["state"], "complete", "{report}");
            break;
        }
    }
    let counted = until_complete(&mut session.sender, 3);
    assert_eq!(counted["known"], 3, "the processes before and after the restart: {counted}");
    (0..4).for_each(|_| _ = session.sender.wait_for("roll_call", PATIENCE));
    assert!(session.sender.seen[seen..].iter().all(|event| event["event"] != "resting"));
    write("third", 3);
    two.receiver.wait_for("taken", PATIENCE);
    rests(&mut session, true);
    assert_eq!(until_complete(&mut session.sender, 2)["known"], 2);
    session.end();
}

/// The receivers of the version before are known, and lack little. Another one gets everything.
#[test]
fn a_version_costs_what_has_changed_and_a_later_receiver_gets_everything() {
    let Some(scene) = Scene::new(3) else { return };
    let folder = scene.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let write = |name: &str, bytes, seed| {
        fontana_testing::noise_file(&folder.join(name), bytes, seed).unwrap();
    };
    write("large", 16 << 20, 1);
    let mut session = scene.send(0, "--watch=0.3 --rate 40M", &folder);
    let ticket = session.ticket.clone();
    let mut follower = scene.receive(1, &ticket, "--watch");
    follower.receiver.wait_for("taken", PATIENCE);
    assert_eq!(session.sender.wait_for("resting", PATIENCE)["rests"], true);

    write("small", 10_000, 2);
    follower.receiver.wait_for("taken", PATIENCE);
    assert!(same_file(&folder.join("small"), &scene.received(1).join("folder/small")));
    assert_eq!(session.sender.wait_for("resting", PATIENCE)["rests"], true);
    let (bytes, _) = progress(&mut session.sender);
    println!("{bytes} bytes for a version with a new file of 10 000");
    // A busy host reports late. One and a half times everything are 25 MB.
    assert!(bytes < 16e6, "{bytes}");

    scene.receive(2, &ticket, "").complete();
    assert!(same_file(&folder.join("large"), &scene.received(2).join("folder/large")));
    session.end();
}

/// A receiver tells both senders of one ticket, and both serve one that comes later.
#[test]
fn senders_of_one_ticket_rest_when_all_are_complete_and_serve_a_later_receiver() {
    let Some(scene) = Scene::new(4) else { return };
    let file = scene.noise("image.raw", 4 << 20);
    let options = format!("--rate 20M --manifest {}", scene.path("manifest").display());
    let first = scene.send(0, &options, &file);
    let second = scene.send(1, &options, &file);
    let ticket = first.ticket.clone();
    let mut senders = [first, second];
    let mut all_rest = |expected: bool| {
        for session in &mut senders {
            let event = session.sender.wait_for("resting", PATIENCE);
            assert_eq!(event["rests"], expected, "{event}");
        }
    };
    scene.receive(2, &ticket, "").complete();
    all_rest(true);
    let mut later = scene.receive(3, &ticket, "");
    all_rest(false);
    later.complete();
    all_rest(true);
    assert!(same_file(&file, &scene.received(3).join("image.raw")));
    for mut session in senders {
        assert_eq!(until_complete(&mut session.sender, 2)["known"], 2);
        session.end();
    }
}

/// A program runs for each version that all have, and the last version's receivers decide.
#[test]
fn a_followed_directory_has_a_program_for_each_version_and_ends_with_9_if_one_is_missing() {
    let Some(scene) = Scene::new(2) else { return };
    let folder = scene.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let write = |name: &str, seed| {
        fontana_testing::noise_file(&folder.join(name), 1 << 20, seed).unwrap();
    };
    write("first", 1);
    let ran = scene.path("ran");
    let program = scene.path("program");
    std::fs::write(&program, format!("#!/bin/sh\necho run >> {}\n", ran.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let words = format!(
        "send --json --to {GROUP} --watch=0.3 --rate 40M --receivers 1 --for 30 {} \
         --exec",
        folder.display()
    );
    let mut sender = scene.start(0, &words, &program);
    let ticket = sender.wait_for("session", PATIENCE)["ticket"].as_str().unwrap().to_owned();
    let mut one = scene.receive(1, &ticket, "--watch=2");
    let runs = || std::fs::read_to_string(&ran).map_or(0, |text| text.lines().count());
    until_complete(&mut sender, 1);
    write("second", 2);
    one.complete();
    until_complete(&mut sender, 1);
    // It has left: no receiver has the third version.
    write("third", 3);
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!((code, runs()), (Some(9), 2), "{said}");
}
