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
    assert!(warning["hint"].as_str().unwrap().contains("ticket"), "{warning}");
    // Without its source, the ticket is right.
    let (_, rest) = session.ticket.split_once('@').unwrap();
    let mut reception = scene.receive(1, &format!("fontana://{rest}"), "--timeout 60");
    reception.complete();
    session.end();
}

#[test]
fn a_key_is_listened_for_on_all_networks_and_a_sender_names_those_it_leaves_out() {
    let Some(scene) = Scene::new(2) else { return };
    for host in 0..2 {
        // A second network, which the routing table prefers for groups at the receiver.
        let command = format!(
            "ip link add spare0 type veth peer name other0 && ip link set other0 up && \
             ip addr add 10.99.0.{}/24 dev spare0 && \
             ip link set spare0 multicast on up && {}",
            host + 1,
            if host == 1 { "ip route add 239.0.0.0/8 dev spare0" } else { "true" },
        );
        let done = scene.bench.command(host, "sh").args(["-ec", &command]).status().unwrap();
        assert!(done.success(), "{command}");
    }
    let file = scene.noise("image.raw", 1 << 20);
    let key = scene.path("key");
    let mut keygen = scene.bench.command(0, env!("CARGO_BIN_EXE_fontana"));
    let made = keygen.arg("keygen").arg(&key).output().unwrap();
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    let is_key = |word: &&str| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let public = text.split_whitespace().find(is_key).unwrap_or_else(|| panic!("{text}"));
    let output = std::fs::File::create(scene.path("said")).unwrap();
    let mut sender = scene.bench.command(0, env!("CARGO_BIN_EXE_fontana"));
    let sender = sender.args(["send", "--open", "--rate", "16M", "--sign"]).arg(&key).arg(&file);
    let mut sender = sender.stderr(output).stdout(std::process::Stdio::null()).spawn().unwrap();
    let into = scene.path("into");
    let mut receiver = scene.bench.command(1, env!("CARGO_BIN_EXE_fontana"));
    let receiver = receiver.args(["recv", "--timeout", "30", "--key", public, "-o"]).arg(&into);
    let received = receiver.output().unwrap();
    sender.kill().unwrap();
    sender.wait().unwrap();
    assert!(received.status.success(), "{}", String::from_utf8_lossy(&received.stderr));
    assert!(same_file(&file, &into.join("image.raw")));
    let said = std::fs::read_to_string(scene.path("said")).unwrap();
    assert!(said.contains("sent on eth0 only, not on spare0"), "{said}");
}
