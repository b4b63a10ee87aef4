//! Receivers of different speed share one layered session.

use crate::scene::{Reception, Scene, Session, same_file};
use fontana::net::clock::Wakefulness;
use serde_json::Value;
use std::time::Duration;

/// What the link of each receiver carries, in Mbit/s. Host 0 sends.
const BOTTLENECKS: [f64; 4] = [1.0, 4.0, 16.0, 64.0];

/// The lowest layer of the session, in Mbit/s. Each level is twice the one below it, so every
/// bottleneck has one that just fits, up to 60 Mbit/s.
const LOWEST_LAYER: f64 = 60.0 / 64.0;

/// Time limit until a receiver without losses joins the second layer: far more than it takes.
const JOINS: Duration = Duration::from_secs(120);

const FIXED: &str = "fixed --layers 7";
const WEBRC: &str = "webrc-fast";

/// Number of layers that fit a bottleneck.
fn layers(bottleneck: f64) -> usize {
    1 + (bottleneck / LOWEST_LAYER).log2() as usize
}

/// Four receivers behind their bottlenecks. Each gets the capacity of its network as an option,
/// unless it finds it by itself.
fn start(
    scene: &Scene,
    length: u64,
    scheme: &str,
    options: &str,
) -> (Session, Vec<(f64, usize, Reception)>) {
    let file = scene.noise("image.raw", length);
    let session = scene.send(0, &format!("--rate 60M --layered={scheme}"), &file);
    let (_, channels) = session.ticket.split_once("&channels=").expect("several channels");
    let groups: Vec<_> =
        (1..=channels.parse().unwrap()).map(|last: u8| format!("239.255.77.{last}")).collect();
    let receptions = (1..).zip(BOTTLENECKS).map(|(host, bottleneck)| {
        scene.bench.shape(host, bottleneck);
        scene.bench.count_groups(host, &groups);
        let limit = match (scheme, host % 2) {
            (WEBRC, _) => String::new(),
            (_, 0) => format!("--max-rate {}k", 938 << (layers(bottleneck) - 1)),
            _ => format!("--max-rate {bottleneck}M"),
        };
        let options = format!("{options} {limit}");
        (bottleneck, host, scene.receive(host, &session.ticket, &options))
    });
    let receptions = receptions.collect();
    (session, receptions)
}

/// Checks that no link carries layers that its receiver has not joined.
fn check_groups(scene: &Scene, host: usize, joined: usize) {
    let crossed = scene.bench.groups(host);
    println!("host {host}: packets of each channel {crossed:?}");
    let (heard, others) = crossed.split_at(joined);
    assert!(heard.iter().all(|&packets| packets > 0), "joined channels cross");
    assert!(others.iter().all(|&packets| packets == 0), "others do not");
}

/// Receivers behind bottlenecks of 1, 4, 16 and 64 Mbit/s get the same file bit-exact, each
/// at its own rate.
#[test]
fn four_receivers_of_one_session_get_the_file_each_at_its_own_rate() {
    each_at_its_own_rate(1 << 20);
}

/// The same with 4 MiB, as root:
/// `cargo test -p fontana-cli --test namespaces -- --ignored --nocapture four_mebibytes`.
#[test]
#[ignore = "takes most of a minute: 4 MiB at 1 Mbit/s"]
fn four_mebibytes_reach_four_receivers_each_at_its_own_rate() {
    each_at_its_own_rate(4 << 20);
}

fn each_at_its_own_rate(length: u64) {
    let Some(scene) = Scene::new(5) else { return };
    let (session, receptions) = start(&scene, length, FIXED, "--timeout 120");
    for (bottleneck, host, mut reception) in receptions.into_iter().rev() {
        let summary = reception.complete();
        assert!(same_file(&scene.path("image.raw"), &scene.received(host).join("image.raw")));
        assert_eq!(summary.number("most_channels") as usize, layers(bottleneck), "host {host}");
        assert_eq!(summary.number("duplicates"), 0.0, "layers do not repeat each other");
        check_groups(&scene, host, layers(bottleneck));
        // This loss includes what a loaded host drops: `endless` judges the loss.
        println!("host {host}: {bottleneck} Mbit/s, loss {:.4}", summary.number("loss"));
    }
    session.end();
}

/// Groups that follow each other and a list of them, from any source and from one, of both IP
/// versions.
#[test]
fn layers_are_on_any_kind_of_groups() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 1 << 20);
    let three = "--layered=fixed --layers 3";
    for (number, (groups, options)) in [
        ("232.77.1.9:7701", three),
        ("[ff15::77:1]:7701", three),
        ("[ff35::8000:4d4d]:7701", three),
        ("239.255.77.9:7701,239.255.78.1:7701,239.255.77.200:7701", ""),
        ("[ff15::77:9]:7701,[ff15::77:1]:7701,[ff15::1:2:3]:7701", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let session = scene.send_to(groups, 0, &format!("--rate 40M {options}"), &file);
        let into = scene.path(&format!("{number}"));
        let mut reception = scene.receive_into(&into, 1, &session.ticket, "--timeout 30");
        assert_eq!(reception.complete().number("most_channels"), 3.0, "{}", session.ticket);
        assert!(same_file(&file, &into.join("image.raw")), "{}", session.ticket);
        session.end();
    }
}

/// The receivers find their rates by themselves, and leave all channels in the end: no packets of
/// the session cross their links any more, although it continues. How soon they leave depends on
/// the load of the host: [`endless`] judges that.
#[test]
fn with_webrc_receivers_find_their_rates_and_get_the_file() {
    let Some(scene) = Scene::new(5) else { return };
    let (session, receptions) = start(&scene, 1 << 20, WEBRC, "--timeout 120");
    for (bottleneck, host, mut reception) in receptions.into_iter().rev() {
        let summary = reception.complete();
        assert!(same_file(&scene.path("image.raw"), &scene.received(host).join("image.raw")));
        let crossed = scene.bench.groups(host);
        println!("host {host}: {bottleneck} Mbit/s, channels {crossed:?}");
        let waves = crossed.iter().skip(1).filter(|&&packets| packets > 0).count();
        assert!(waves > 1, "the base channel alone does not bring the file in time");
        println!("host {host}: {} datagrams received", summary.number("datagrams"));
        scene.bench.wait_until_quiet(host);
    }
    session.end();
}

/// An ECN mark has the effect of a loss. Another receiver, whose packets are not marked, joins more
/// layers.
#[test]
fn a_receiver_of_marked_packets_stays_on_the_lowest_layer() {
    let Some(scene) = Scene::new(3) else { return };
    scene.bench.mark(1);
    // At the lowest layer this takes minutes.
    let file = scene.noise("image.raw", 256 << 20);
    let options = "--rate 16M --layered=rlc --layers 4";
    let session = scene.send(0, options, &file);
    let [mut marked, mut other] = [1, 2].map(|host| scene.receive(host, &session.ticket, ""));
    while other.receiver.wait_for("level", JOINS)["channels"].as_u64() < Some(2) {}
    for reception in [&mut marked, &mut other] {
        reception.receiver.interrupt();
        reception.finish(130);
    }
    assert_eq!(marked.summary().number("most_channels"), 1.0);
    session.end();
}

/// In an endless session each receiver uses at least 75 % of its bottleneck from the 120th to the
/// 240th second and loses less than 5 %. As root:
/// `cargo test --release -p fontana-cli --test namespaces -- --ignored --nocapture endless`.
#[test]
#[ignore = "takes four minutes and 6 GB of temporary files"]
fn an_endless_session_of_fixed_layers_fills_every_bottleneck() {
    endless(FIXED);
}

/// The same with WEBRC.
#[test]
#[ignore = "takes four minutes and 6 GB of temporary files"]
fn an_endless_session_with_webrc_fills_every_bottleneck() {
    endless(WEBRC);
}

fn endless(scheme: &str) {
    let Some(scene) = Scene::alone(5) else { return };
    // Keeps the processors awake: the test measures the protocol, not the host's wake-up time.
    let _wakefulness = Wakefulness::request();
    // More than the fastest receiver can receive.
    let (session, receptions) = start(&scene, 2 << 30, scheme, "--timeout 280");
    let mut table = Vec::new();
    for (bottleneck, host, mut reception) in receptions.into_iter().rev() {
        let _ = reception.receiver.finish(Duration::from_secs(300));
        let at = |seconds: f64| {
            let mut progress = reception.receiver.seen.iter().filter(|e| e["event"] == "progress");
            let later = progress.find(|e| number(e, "seconds") >= seconds);
            later.expect("a moment later").clone()
        };
        let (from, to) = (at(120.0), at(240.0));
        let more = |field: &str| number(&to, field) - number(&from, field);
        // As the bottleneck counts it: Ethernet, IP and UDP headers included.
        let bits = 8.0 * (more("payload_bytes") + 42.0 * more("datagrams"));
        let used = bits * 1e-6 / more("seconds") / bottleneck;
        let loss = more("lost") / more("expected");
        let crossed = scene.bench.groups(host);
        println!("host {host}: packets of each channel {crossed:?}");
        let (crossed, received) =
            (crossed.iter().sum::<u64>() as f64, reception.summary().number("datagrams"));
        assert!(crossed <= 1.1 * received + 100.0, "{crossed} packets for {received}");
        println!("{bottleneck:2} Mbit/s: used {used:.3} of it, loss {loss:.4}");
        table.push((used, loss));
    }
    session.end();
    for (used, loss) in table {
        assert!(used >= 0.75 && loss < 0.05, "{used} {loss}");
    }
}

fn number(event: &Value, field: &str) -> f64 {
    event[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {event}"))
}
