//! Several senders of one manifest.

use crate::scene::{Scene, Summary, same_file};
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

    reception.receiver.wait_for("heard_enough", Duration::from_secs(60));
    let enough = Instant::now();
    let summary = reception.complete();
    let heard_for = summary.number("seconds") - enough.elapsed().as_secs_f64();
    assert!(same_file(&file, &scene.received(2).join("image.raw")));
    let (first, second) = (first.end(), second.end());
    assert!(first.number("source_symbols") > 0.0);
    assert_eq!(second.number("source_symbols"), 0.0);
    let distinctness =
        (summary.number("fresh") + summary.number("duplicates")) / summary.number("fresh");
    println!("distinctness inefficiency {distinctness:.4}");
    assert!(distinctness < 1.0005, "{distinctness}");
    assert!(summary.reception_inefficiency() < 1.03);

    // One sender with the sum of the rates would have to send what the file takes at this loss; one
    // half of it was away for a moment. A sender that wakes up late on a busy machine does not catch
    // up, whoever else there is: what it really sent in a second counts.
    let rate = |sender: &Summary| sender.number("wire_bytes") / sender.number("seconds");
    let (came, dropped) = scene.bench.losses(2);
    let packet_bytes = summary.number("payload_bytes") / summary.number("datagrams") + 28.0;
    let wire_bytes =
        summary.number("source_symbols") * packet_bytes * came as f64 / (came - dropped) as f64;
    let ideal = (wire_bytes + away * rate(&second)) / (rate(&first) + rate(&second));
    let ratio = heard_for / ideal;
    let rates = [&first, &second].map(|sender| rate(sender) * 8e-6);
    println!("{rates:.2?} Mbit/s; heard for {heard_for:.2} s, {ratio:.3} of one sender's time");
    assert!(ratio < 1.05, "{ratio}");
}
