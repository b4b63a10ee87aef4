//! Receivers that serve each other what they are receiving, behind links of 20 Mbit/s each way.

use crate::bench::Bench;
use crate::scene::{Scene, same_file};
use std::time::{Duration, Instant};

/// Mbit/s of each host, in both directions.
const RATE: u32 = 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// The times until receivers complete that take `size` bytes from these hosts, in those that one
/// link takes: receiver number `n` is host `n + 1`, and host 0 has the content.
fn times(size: u64, mirrors: &[&[usize]]) -> Option<Vec<f64>> {
    let scene = Scene::alone(1 + mirrors.len())?;
    let file = scene.noise("image.raw", size);
    for host in 0..=mirrors.len() {
        scene.bench.shape_sending(host, RATE);
        scene.bench.shape(host, RATE.into());
    }
    let at = |host: usize| format!("{}:7780", Bench::address(host));
    let mut origin = scene.start(0, &format!("serve --json --listen {}", at(0)), &file);
    let serving = origin.wait_for("serving", PATIENCE);
    let manifest = serving["manifest"].as_str().unwrap();
    let begun = Instant::now();
    let receptions = (1..).zip(mirrors).map(|(host, mirrors)| {
        let web: String =
            mirrors.iter().map(|&host| format!("&web=http://{}/", at(host))).collect();
        let ticket = format!("fontana://web/?manifest={manifest}{web}");
        scene.receive(host, &ticket, &format!("--timeout 120 --then-serve {}", at(host)))
    });
    let mut receptions: Vec<_> = receptions.collect();
    let times = receptions.iter_mut().map(|reception| {
        let summary = reception.receiver.wait_for("summary", PATIENCE);
        assert_eq!(summary["verdict"], "complete", "{summary}");
        begun.elapsed().as_secs_f64()
    });
    let times: Vec<f64> = times.collect();
    for host in 1..=mirrors.len() {
        assert!(same_file(&file, &scene.received(host).join("image.raw")));
    }
    receptions.into_iter().for_each(|reception| reception.receiver.kill());
    origin.kill();
    let ideal = size as f64 * 8e-6 / f64::from(RATE);
    println!("{times:.1?} s; the content takes {ideal:.1} s on one link");
    Some(times.iter().map(|time| time / ideal).collect())
}

/// A has the content, B takes it from A, and C from B alone.
#[test]
fn the_end_of_a_chain_completes_soon_after_what_is_before_it() {
    let Some(times) = times(24 << 20, &[&[0], &[1]]) else { return };
    assert!(times[1] <= 1.2 * times[0], "{times:?}");
}

/// Each takes the content from the one before it, and the first one from the origin as well. What
/// each adds is a block and two round trips, however long the content is.
#[test]
#[ignore = "40 s: .ci/long holders"]
fn a_ring_of_eight_completes_in_one_and_a_half_of_the_time_of_one() {
    let ring: [&[usize]; 8] = [&[0, 8], &[1], &[2], &[3], &[4], &[5], &[6], &[7]];
    let Some(times) = times(64 << 20, &ring) else { return };
    assert!(times.iter().all(|time| *time <= 1.5), "{times:?}");
}
