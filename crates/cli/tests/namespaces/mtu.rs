//! The MTU of a sender's interface, lowered while the session runs or too low from the start.

use crate::scene::{Scene, same_file};
use std::ffi::OsString;
use std::time::Duration;

/// Smaller than the session's packets on a link of 1500 bytes; large enough for IPv6.
const LOW_MTU: u32 = 1300;

#[test]
fn a_sender_outlives_an_mtu_drop_and_warns_once() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 16 << 20);
    let mut session = scene.send(0, "--rate 50M", &file);
    let mut reception = scene.receive(1, &session.ticket, "--timeout 60");
    reception.receiver.wait_for("accepted", Duration::from_secs(30));

    scene.bench.set_mtu(0, LOW_MTU);
    let warning = session.sender.wait_for("warning", Duration::from_secs(10));
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains("MTU of eth0"), "{message}");
    std::thread::sleep(Duration::from_secs(1));
    assert!(reception.receiver.last("summary").is_none());
    scene.bench.set_mtu(0, 1500);

    reception.complete();
    assert!(same_file(&file, &scene.received(1).join("image.raw")));
    // The next progress report shows that the sender runs. After it, the only warning is the sum of
    // all losses.
    session.sender.wait_for("progress", Duration::from_secs(10));
    let warnings = session.sender.seen.iter().filter(|event| event["event"] == "warning").count();
    assert_eq!(warnings, 1);
    assert!(session.end().number("lost") > 0.0);
}

/// As behind a tunnel: packets of the content never arrive at one of two receivers.
#[test]
fn a_receiver_behind_a_small_mtu_does_not_slow_the_other() {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 24 << 20);
    scene.bench.set_mtu(1, LOW_MTU);
    let mut session = scene.send(0, "", &file);
    let mut slow = scene.receive(1, &session.ticket, "--timeout 60");
    let mut reception = scene.receive(2, &session.ticket, "--timeout 60");
    reception.complete();
    let warning = session.sender.wait_for("warning", Duration::from_secs(40));
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains("no packet with content"), "{warning}");
    slow.receiver.interrupt();
    slow.finish(130);
    session.sender.interrupt();
    session.sender.finish(Duration::from_secs(10));
    let rates = session.sender.all("rate").map(|event| event["rate_bits_per_second"].as_f64());
    let highest = rates.flatten().fold(0.0, f64::max);
    assert!(highest >= 16e6, "{highest}");
}

#[test]
fn packets_that_never_fit_end_the_sender_before_anything_was_sent() {
    let Some(scene) = Scene::new(1) else { return };
    let file = scene.noise("image.raw", 1 << 20);
    let mut words: Vec<OsString> =
        "send --json --symbol-size 1456".split(' ').map(Into::into).collect();
    words.push(file.into());
    let mut sender = scene.bench.start(0, &words);
    let (code, errors) = sender.finish(Duration::from_secs(10));
    assert_eq!(code, Some(2), "{errors}");
    assert!(sender.last("session").is_none(), "there is no ticket");
    assert!(errors.contains("does not fit the MTU of eth0 (1500 bytes)"), "{errors}");
}
