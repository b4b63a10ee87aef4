//! Receivers that are killed and started again.

use crate::scene::{Scene, same_file};
use std::ops::Range;
use std::time::Duration;

/// A receiver is killed with SIGKILL at 20 random moments of one 256 MiB reception at 10 % loss.
#[test]
fn a_receiver_killed_again_and_again_hears_little_more_than_the_file() {
    // From before it has joined to well into the transfer; all 20 together receive half of it.
    killed_receivers_go_on("--rate 150M", 256 << 20, 20, 0..1000, 1.05);
}

/// The same with less content: these codes take more symbols, and a random number
/// (`docs/codes.md`).
#[test]
fn so_does_one_of_a_tornado_or_lt_session() {
    for code in ["tornado", "lt"] {
        let options = format!("--rate 30M --fec {code}");
        killed_receivers_go_on(&options, 16 << 20, 2, 1000..1500, 1.25);
    }
}

/// Kills a receiver of `size` bytes so many times, after some of these milliseconds each time.
fn killed_receivers_go_on(
    options: &str,
    size: u64,
    kills: usize,
    milliseconds: Range<u64>,
    most_inefficiency: f64,
) {
    let Some(scene) = Scene::alone(2) else { return };
    scene.bench.lose(1, 100);
    let file = scene.noise("image.raw", size);
    let session = scene.send(0, options, &file);
    let receive = || scene.receive(1, &session.ticket, "--timeout 200");
    let mut seed = u64::from(std::process::id());
    println!("seed {seed}");
    for _ in 0..kills {
        let mut reception = receive();
        if milliseconds.start > 0 {
            // However loaded the machine is: each run leaves something for the next one.
            reception.receiver.wait_for("accepted", Duration::from_secs(30));
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let more = (seed >> 33) % (milliseconds.end - milliseconds.start);
        std::thread::sleep(Duration::from_millis(milliseconds.start + more));
        reception.receiver.kill();
    }
    let mut reception = receive();
    let summary = reception.complete();
    assert!(reception.receiver.last("resumed").is_some());
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    assert_eq!(summary.number("corrupt_blocks"), 0.0);
    assert!(summary.reception_inefficiency() <= most_inefficiency);
    session.end();
}
