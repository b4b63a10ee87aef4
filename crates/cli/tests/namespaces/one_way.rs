//! `fontana recv --one-way`: what the host of a receiver sends.

use crate::scene::{GROUP, Scene, same_file};
use serde_json::Value;
use std::time::Duration;

/// Packets that the interface of a host has sent since it exists: of every kind, ARP included.
fn transmitted(scene: &Scene, host: usize) -> u64 {
    let shown = scene.bench.command(host, "ip").args("-j -s link show eth0".split(' ')).output();
    let list: Value = serde_json::from_slice(&shown.unwrap().stdout).unwrap();
    list[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
}

fn run(scene: &Scene, host: usize, command: &str) {
    let status = scene.bench.command(host, "sh").args(["-ec", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

/// A sender and a receiver behind a diode: nothing answers address requests, and the kernel has no
/// IPv6, with which it would look for routers.
fn diode() -> Option<Scene> {
    let scene = Scene::new(2)?;
    run(&scene, 1, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
    let shown = scene.bench.command(1, "cat").arg("/sys/class/net/eth0/address").output().unwrap();
    let address = String::from_utf8(shown.stdout).unwrap();
    let to = format!("10.77.0.2 lladdr {} dev eth0 nud permanent", address.trim());
    run(&scene, 0, &format!("ip neigh replace {to}"));
    Some(scene)
}

/// Begins to count packets, and returns the number that the interface has sent: none in between.
fn begin_counting(scene: &Scene) -> u64 {
    loop {
        let before = transmitted(scene, 1);
        scene.bench.count_sent(1);
        if transmitted(scene, 1) == before {
            return before;
        }
        run(scene, 1, "nft delete table inet sent");
    }
}

/// Receives for longer than `duration`, while the receiver's interface gets another address and
/// loses it again. Returns what the interface has sent in `duration`, and how many of these were
/// membership reports. Before and after it, no socket has the port, and the kernel answers packets
/// to the address of the host with errors (ICMP).
fn receive(scene: &Scene, to: &str, duration: Duration) -> (u64, u64) {
    let file = scene.noise("image.raw", 4 << 20);
    let rate = file.metadata().unwrap().len() * 8 * 3 / 4 / duration.as_secs();
    let session = scene.send_to(to, 0, &format!("--rate {rate}"), &file);
    let mut before = begin_counting(scene);
    let mut reception = scene.receive(1, &session.ticket, "--one-way --timeout 240");
    let joined = reception.receiver.wait_for("sandbox", Duration::from_secs(10));
    assert_eq!(joined["network"], "receive_only");
    if to != GROUP {
        run(scene, 1, "nft delete table inet sent");
        before = begin_counting(scene);
    }
    for change in ["add", "del"] {
        std::thread::sleep(duration / 2);
        run(scene, 1, &format!("ip addr {change} 10.77.0.77/24 dev eth0"));
    }
    let sent = transmitted(scene, 1) - before;
    let (reports, others) = scene.bench.sent(1);
    assert!(reception.receiver.last("summary").is_none(), "it still receives");
    assert_eq!(others, 0, "packets of UDP, TCP or the like");
    reception.complete();
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    session.end();
    (sent, reports)
}

fn no_packet_in(duration: Duration) {
    let Some(scene) = diode() else { return };
    let (sent, reports) = receive(&scene, "10.77.0.2:7701", duration);
    assert_eq!((sent, reports), (0, 0), "a receiver of unicast joins nothing");

    let Some(scene) = diode() else { return };
    let (sent, reports) = receive(&scene, GROUP, duration);
    println!("{reports} membership reports");
    assert!(reports > 0);
    assert_eq!(sent, reports, "nothing but membership reports");
}

#[test]
fn the_host_of_a_one_way_receiver_sends_nothing_but_membership_reports() {
    no_packet_in(Duration::from_secs(6));
}

/// The same for a minute: `cargo test -p fontana-cli --test namespaces -- --ignored --nocapture
/// for_a_minute`.
#[test]
#[ignore = "takes two minutes"]
fn a_one_way_receiver_sends_nothing_for_a_minute() {
    no_packet_in(Duration::from_secs(60));
}
