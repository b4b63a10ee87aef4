//! What a session may cost: memory, disk, and the patience with strangers.

use crate::bench::{Bench, Mounted};
use crate::scene::{GROUP, Scene, same_file};
use std::process::Stdio;
use std::time::Duration;

/// Issue: a 1 GiB file with `--memory 128M` on both sides stays under 192 MiB.
#[test]
fn a_file_larger_than_memory_stays_within_memory() {
    let Some(scene) = Scene::new(2) else { return };
    scene.bench.lose(1, 20);
    let file = scene.noise("image.raw", 1 << 30);
    let mut session = scene.send(0, "--rate 400M --memory 128M", &file);
    let mut reception = scene.receive(1, &session.ticket, "--memory 128M --timeout 150");
    reception.complete();
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    let sending = session.sender.peak_memory() >> 20;
    let receiving = reception.receiver.peak_memory() >> 20;
    println!("peak memory: sender {sending} MiB, receiver {receiving} MiB");
    assert!(sending < 192 && receiving < 192);
    session.end();
}

/// A full disk is an error with the way out at one receiver and nothing to the other.
#[test]
fn a_full_disk_is_5_and_the_receiver_beside_it_finishes() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 8 << 20);
    let small = scene.path("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Mounted::tmpfs(&small, "4m");
    let session = scene.send(0, "--rate 50M", &file);
    let mut full = scene.receive_into(&small, 1, &session.ticket, "--timeout 30");
    let mut roomy = scene.receive(2, &session.ticket, "--timeout 30");
    let errors = full.finish(5);
    println!("{errors}");
    assert!(errors.contains("disk full") && errors.contains("free some space"), "{errors}");
    assert!(!small.join("image.raw").exists());
    roomy.complete();
    assert!(same_file(&file, &scene.received(2).join("image.raw")));
    drop(mounted);
    session.end();
}

/// A stranger on the group floods it with datagrams of every broken kind while a file is received.
#[test]
fn a_flood_of_broken_datagrams_costs_the_honest_transfer_nothing() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 32 << 20);
    let session = scene.send(0, "--rate 50M", &file);
    // Without the source in it, so that strangers are heard at all.
    let ticket = session.ticket.replace(&format!("{}@", Bench::address(0)), "");
    let mut stranger = scene
        .bench
        .command(2, std::env::current_exe().unwrap().to_str().unwrap())
        .args(["--exact", "bounds::stranger", "--ignored", "--nocapture"])
        .env("FONTANA_TEST_TSI", ticket.split(['/', '?']).nth(3).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut reception = scene.receive(1, &ticket, "--timeout 60");
    let errors = reception.finish(0);
    let _ = stranger.kill();
    let _ = stranger.wait();
    let summary = reception.summary();
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    assert!(summary.number("malformed") > 10_000.0, "the stranger was heard");
    assert_eq!(summary.number("poisoned_blocks"), 0.0);
    println!("stderr: {} bytes", errors.len());
    assert!(errors.len() < 10_000, "{errors}");
    assert!(summary.reception_inefficiency() < 1.02);
    let peak = reception.receiver.peak_memory() >> 20;
    println!("peak memory: {peak} MiB");
    assert!(peak < 256);
    session.end();
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
