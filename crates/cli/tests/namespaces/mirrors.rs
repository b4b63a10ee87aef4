//! Several senders of one manifest.

use crate::scene::{Scene, same_file};
use std::time::{Duration, Instant};

/// Issue: two senders of one manifest, one killed and started again, a receiver at 20 % loss.
#[test]
fn mirrors_add_up_whoever_of_them_is_started_again() {
    let Some(scene) = Scene::new(3) else { return };
    scene.bench.lose(2, 200);
    let file = scene.noise("image.raw", 32 << 20);
    let manifest = scene.path("manifest");
    let send = |host, more: &str| {
        scene.send(host, &format!("--rate 20M --manifest {} {more}", manifest.display()), &file)
    };
    let first = send(0, "");
    let second = send(1, "--mirror");
    assert_eq!(first.ticket, second.ticket, "one ticket for all");
    let mut reception = scene.receive(2, &first.ticket, "--timeout 60");
    std::thread::sleep(Duration::from_secs(3));
    let killed = Instant::now();
    second.kill();
    let second = send(1, "");
    let away = killed.elapsed().as_secs_f64();
    assert_eq!(first.ticket, second.ticket, "in every life");

    let summary = reception.complete();
    assert!(same_file(&file, &scene.received(2).join("image.raw")));
    let distinctness =
        (summary.number("fresh") + summary.number("duplicates")) / summary.number("fresh");
    // One sender with the sum of the rates, 80 % of whose packets arrive; half of it was away for a
    // moment.
    let packet_bytes = summary.number("payload_bytes") / summary.number("datagrams") + 28.0;
    let ideal = summary.number("packets") * packet_bytes * 8.0 / (0.8 * 40e6) + away / 2.0;
    let ratio = summary.number("seconds") / ideal;
    println!("distinctness inefficiency {distinctness:.4}, time {ratio:.3} of one sender's");
    assert!(distinctness < 1.0005, "{distinctness}");
    assert!(summary.reception_inefficiency() < 1.03);
    // Until the file is on the disk, and on two cores for all.
    assert!(ratio < 1.1, "{ratio}");
    assert!(first.end().number("source_symbols") > 0.0);
    assert_eq!(second.end().number("source_symbols"), 0.0);
}
