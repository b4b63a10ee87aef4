//! Interfaces that are removed and made again while a session runs.

use crate::bench::Bench;
use crate::scene::{Scene, same_file};
use serde_json::Value;
use std::time::Duration;

/// The first warning with these words.
fn warned(program: &mut crate::program::Program, words: &str) -> Value {
    loop {
        let warning = program.wait_for("warning", Duration::from_secs(30));
        if warning["message"].as_str().unwrap().contains(words) {
            return warning;
        }
    }
}

#[test]
fn a_receiver_joins_again_on_an_interface_that_is_back() {
    // In its sandbox, and where netlink is refused.
    for options in ["--timeout 60", "--timeout 60 --one-way"] {
        let Some(scene) = Scene::new(2) else { return };
        let file = scene.noise("image.raw", 8 << 20);
        let session = scene.send(0, "--rate 16M", &file);
        let mut reception = scene.receive(1, &session.ticket, options);
        reception.receiver.wait_for("accepted", Duration::from_secs(30));
        scene.bench.unplug(1);
        warned(&mut reception.receiver, "eth0 is gone");
        scene.bench.plug(1, &Bench::address(1));
        warned(&mut reception.receiver, "eth0 is back");
        reception.complete();
        assert!(same_file(&file, &scene.received(1).join("image.raw")));
        session.end();
    }
}

#[test]
fn a_sender_sends_again_on_an_interface_that_is_back() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 8 << 20);
    let mut session = scene.send(0, "--rate 16M", &file);
    let mut reception = scene.receive(1, &session.ticket, "--timeout 60");
    reception.receiver.wait_for("accepted", Duration::from_secs(30));
    scene.bench.unplug(0);
    warned(&mut session.sender, "eth0 is gone");
    scene.bench.plug(0, &Bench::address(0));
    warned(&mut session.sender, "eth0 is back");
    reception.complete();
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    assert!(session.end().number("lost") > 0.0);
}

#[test]
fn a_sender_whose_address_changes_goes_on_and_says_so() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 8 << 20);
    let mut session = scene.send(0, "--rate 16M", &file);
    scene.bench.unplug(0);
    scene.bench.plug(0, "10.77.0.99");
    let warning = warned(&mut session.sender, "10.77.0.99");
    assert!(warning["way_out"].as_str().unwrap().contains("ticket"), "{warning}");
    // Without its source, the ticket is right.
    let (_, rest) = session.ticket.split_once('@').unwrap();
    let mut reception = scene.receive(1, &format!("fontana://{rest}"), "--timeout 60");
    reception.complete();
    session.end();
}
