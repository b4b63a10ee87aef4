//! The two commands that most people type: `fontana send FILE`, and the line that it prints.

use crate::scene::{Scene, same_file};
use serde_json::Value;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// Three hosts under one name: `--receivers 3` counts processes.
#[test]
fn a_sender_knows_when_three_receivers_have_the_file_and_ends() {
    let Some(scene) = Scene::new(4) else { return };
    (1..4).for_each(|host| scene.bench.lose(host, 50));
    let file = scene.noise("image.raw", 4 << 20);
    let mut session = scene.send(0, "--receivers 3 --deadline 100 --rate 20M", &file);
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
    let mut session = scene.send(0, "--receivers 2 --deadline 6 --rate 20M", &file);
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
