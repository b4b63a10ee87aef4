//! Receivers that are killed and started again.

use crate::scene::{Scene, same_file};
use std::time::Duration;

/// Issue: killed with SIGKILL at 20 random moments of one 256 MiB reception at 10 % loss.
#[test]
fn a_receiver_killed_again_and_again_hears_little_more_than_the_file() {
    let Some(scene) = Scene::new(2) else { return };
    scene.bench.lose(1, 100);
    let file = scene.noise("image.raw", 256 << 20);
    let session = scene.send(0, "--rate 150M", &file);
    let receive = || scene.receive(1, &session.ticket, "--timeout 60");
    let mut seed = u64::from(std::process::id());
    println!("seed {seed}");
    for _ in 0..20 {
        let reception = receive();
        // From before it has joined to well into the transfer; all 20 together hear half of it.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((seed >> 33) % 1000));
        reception.receiver.kill();
    }
    let mut reception = receive();
    let summary = reception.complete();
    println!("{:?}", reception.receiver.last("resumed"));
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    assert_eq!(summary.number("poisoned_blocks"), 0.0);
    assert!(summary.reception_inefficiency() <= 1.05);
    session.end();
}
