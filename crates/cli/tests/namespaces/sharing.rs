//! Receivers of one site that complete each other when the sender is gone.

use crate::reports::keygen;
use crate::scene::{GROUP, Reception, Scene, same_file};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// What receivers with `--share` have done, after a session that has sent every source symbol once.
struct Site {
    scene: Scene,
    file: PathBuf,
    name: &'static str,
    options: String,
    /// Where the session is sent.
    group: &'static str,
}

impl Site {
    fn new(scene: Scene, bytes: u64, options: &str) -> Self {
        let (name, options) = ("image.raw", options.to_owned());
        let file = scene.noise(name, bytes);
        Self { scene, file, name, options, group: GROUP }
    }

    fn receive(&self, host: usize, ticket: &str, options: &str) -> Reception {
        let options = format!("{options} --share --timeout 200 --memory 64M -i eth0");
        let mut reception = self.scene.receive(host, ticket, &options);
        reception.receiver.wait_for("sandbox", PATIENCE);
        reception
    }

    fn ticket(&self) -> String {
        let options = format!("{} --dry-run", self.options);
        self.scene.send_to(self.group, 0, &options, &self.file).ticket
    }

    /// Sends, and ends.
    fn send(&self) {
        std::thread::sleep(Duration::from_millis(500));
        let session = self.scene.send_to(self.group, 0, &self.options, &self.file);
        let mut sender = session.sender;
        let (code, said) = sender.finish(PATIENCE);
        assert_eq!(code, Some(0), "{said}");
    }

    /// Waits for a receiver that completes. Returns its event `shared`.
    fn complete(&self, host: usize, mut reception: Reception) -> Value {
        reception.complete();
        let received = self.scene.received(host).join(self.name);
        assert!(same_file(&self.file, &received), "receiver {host}");
        let shared = reception.receiver.last("shared").cloned().unwrap();
        println!("receiver {host}: {shared}");
        shared
    }
}

fn sum(reports: &[Value], field: &str) -> u64 {
    reports.iter().map(|report| report[field].as_u64().unwrap()).sum()
}

/// Receivers that each lose a tenth of the source symbols, the first `complete` ones nothing.
/// `most`: symbols that they send each other, over the largest need of one of them.
fn check(receivers: usize, complete: usize, bytes: u64, options: &str, most: f64) {
    let Some(scene) = Scene::alone(receivers + 1) else { return };
    let site = Site::new(scene, bytes, options);
    let ticket = site.ticket();
    site.scene.bench.count_hops(receivers, "239.255.77.250");
    let receptions: Vec<_> = (1..=receivers)
        .map(|host| {
            let loss = format!("FONTANA_SIMULATE_LOSS=10%,{host}");
            (host, site.receive(host, &ticket, if host > complete { &loss } else { "" }))
        })
        .collect();
    site.send();
    let reports: Vec<_> =
        receptions.into_iter().map(|(host, reception)| site.complete(host, reception)).collect();
    // Each counts what it used, which is what it lacked.
    let need = reports.iter().map(|report| report["symbols_used"].as_u64().unwrap()).max().unwrap();
    let sent = sum(&reports, "symbols_sent");
    let ratio = sent as f64 / need as f64;
    println!("{sent} symbols sent for a largest need of {need}: {ratio:.3}");
    assert!(ratio <= most, "{ratio}: {reports:?}");
    // A request has at most 1 348 bytes, and a symbol about as many.
    let requests = sum(&reports, "requests_sent");
    println!("{requests} requests");
    let (one_hop, more) = site.scene.bench.hops(receivers);
    assert!(one_hop > 0 && more == 0, "{one_hop} packets of one hop, {more} of more");
}

#[test]
fn receivers_complete_each_other_when_the_sender_is_gone() {
    check(5, 0, 8 << 20, "--rate 100M --push 0 --block-symbols 1500", 3.5);
}

#[test]
fn a_complete_receiver_completes_the_others() {
    // 1.0 to 1.1 on an idle host. On a busy one answers come late, and others ask meanwhile;
    // without the complete receiver it is 2 and more there.
    check(5, 1, 8 << 20, "--rate 100M --push 0 --block-symbols 1500", 2.0);
}

/// Two commands without options, and losses of each receiver's own. Returns the packets of the
/// sender for each source symbol, and the symbols that receivers got of each other.
fn beside_sender(is_far: bool) -> Option<(f64, u64)> {
    let scene = Scene::alone(5)?;
    if is_far {
        scene.bench.move_away(0, "10.78.0.1");
    }
    (1..5).for_each(|host| scene.bench.lose(host, 30));
    let file = scene.noise("image.raw", 16 << 20);
    let options = "--rate 50M --receivers 4";
    let ticket = scene.send(0, &format!("{options} --dry-run"), &file).ticket;
    let mut receivers: Vec<_> = (1..5).map(|host| scene.receive(host, &ticket, "")).collect();
    receivers.iter_mut().for_each(|it| drop(it.receiver.wait_for("sandbox", PATIENCE)));
    std::thread::sleep(Duration::from_secs(1));
    let mut sender = scene.send(0, options, &file).sender;
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    let summary = sender.last("summary").unwrap().clone();
    let mut used = 0;
    for (host, mut reception) in (1..).zip(receivers) {
        reception.complete();
        assert!(same_file(&file, &scene.received(host).join("image.raw")), "receiver {host}");
        let shared = reception.receiver.last("shared");
        used += shared.map_or(0, |shared| shared["symbols_used"].as_u64().unwrap());
    }
    let packets = |field: &str| summary[field].as_f64().unwrap();
    let sent = packets("packets") / packets("source_symbols");
    println!("far: {is_far}; {sent:.4} packets for each source symbol, {used} symbols of others");
    Some((sent, used))
}

/// On an idle host the sender sends 1.008 packets for each source symbol, and 1.039 if it is in
/// their network. On a busy one agents are late, and the sender is asked after a second.
#[test]
fn receivers_ask_each_other_before_a_sender_in_another_network() {
    let Some((_, used)) = beside_sender(true) else { return };
    assert!(used > 20, "{used}");
    let Some((sent, used)) = beside_sender(false) else { return };
    assert!(used == 0 && sent > 1.03, "{sent}, {used}");
}

/// Two commands without options, and a sender that is killed soon after its last source symbol.
/// Each of four receivers loses 30 %, and all of them the same symbol with a chance of 0.8 %: a few
/// repair symbols make up for that.
fn check_after_a_kill(group: &str) {
    let Some(scene) = Scene::alone(5) else { return };
    (1..5).for_each(|host| scene.bench.lose(host, 300));
    let file = scene.noise("image.raw", 4 << 20);
    let mut sending = scene.send_to(group, 0, "--rate 10M", &file);
    let mut receivers: Vec<_> =
        (1..5).map(|host| scene.receive(host, &sending.ticket, "")).collect();
    receivers.iter_mut().for_each(|it| drop(it.receiver.wait_for("accepted", PATIENCE)));
    loop {
        let progress = sending.sender.wait_for("progress", PATIENCE);
        if progress["repair_symbols"].as_u64().unwrap() > 200 {
            break;
        }
    }
    sending.sender.kill();
    let mut used = 0;
    for (host, mut reception) in (1..).zip(receivers) {
        reception.complete();
        assert!(same_file(&file, &scene.received(host).join("image.raw")), "receiver {host}");
        let sandbox = reception.receiver.last("sandbox").cloned().unwrap();
        assert_eq!(sandbox["network"], "reports_only", "{sandbox}");
        let shared = reception.receiver.last("shared").cloned().unwrap();
        println!("receiver {host}: {shared}");
        used += shared["symbols_used"].as_u64().unwrap();
    }
    assert!(used > 100, "{used}");
}

#[test]
fn receivers_complete_each_other_when_their_sender_is_killed() {
    check_after_a_kill("239.255.77.1:7701");
}

#[test]
fn so_they_do_over_ipv6() {
    check_after_a_kill("[ff15::77:3]:7701");
}

/// Receivers of a group complete each other. One without the key receives nothing, neither of the
/// session nor of them.
#[test]
fn receivers_with_a_group_key_complete_each_other_only() {
    let Some(scene) = Scene::new(4) else { return };
    let key = keygen(&scene, "keygen --group", "group.key");
    let with_key = format!("--group-key {}", key.display());
    let site = Site::new(scene, 2 << 20, &format!("--rate 40M --push 0 {with_key}"));
    let ticket = site.ticket();
    let whole = site.receive(1, &ticket, &with_key);
    let lossy = site.receive(2, &ticket, &format!("{with_key} FONTANA_SIMULATE_LOSS=10%"));
    let mut stranger = site.receive(3, &ticket, "FONTANA_SIMULATE_LOSS=10% --silence 8");
    site.send();
    let shared = site.complete(2, lossy);
    assert!(shared["symbols_used"].as_u64().unwrap() > 50, "{shared}");
    site.complete(1, whole);
    stranger.finish(75);
}

/// Run by `.ci/long share`.
#[test]
#[ignore = "twenty receivers of 64 MiB"]
fn twenty_receivers_complete_each_other() {
    check(20, 0, 64 << 20, "--rate 100M --push 0 --block-symbols 10000", 2.3);
}

/// Run by `.ci/long share`.
#[test]
#[ignore = "twenty receivers of 64 MiB"]
fn a_complete_receiver_completes_nineteen_others() {
    check(20, 1, 64 << 20, "--rate 100M --push 0 --block-symbols 10000", 1.15);
}

/// Files of a tree get their names one after the other. Symbols of those that have are read from
/// there. All of it over IPv6.
#[test]
fn files_that_have_their_names_are_shared() {
    let Some(scene) = Scene::new(3) else { return };
    let tree = scene.path("tree");
    std::fs::create_dir(&tree).unwrap();
    for number in 0..6_u64 {
        let path = tree.join(format!("file {number}"));
        fontana_testing::noise_file(&path, 200_000 + number, number).unwrap();
    }
    let (name, options) = ("tree", "--rate 10M --push 0 --block-symbols 64".to_owned());
    let site = Site { scene, file: tree.clone(), name, options, group: "[ff15::77:3]:7701" };
    let ticket = site.ticket();
    let whole = site.receive(1, &ticket, "");
    let lossy = site.receive(2, &ticket, "FONTANA_SIMULATE_LOSS=30%");
    site.send();
    for (host, mut reception) in [(1, whole), (2, lossy)] {
        reception.complete();
        let shared = reception.receiver.last("shared").cloned().unwrap();
        println!("receiver {host}: {shared}");
        let used = shared["symbols_used"].as_u64().unwrap();
        assert!(if host == 1 { used == 0 } else { used > 100 }, "{shared}");
        for number in 0..6 {
            let name = format!("file {number}");
            let received = site.scene.received(host).join("tree").join(&name);
            assert!(same_file(&tree.join(&name), &received), "receiver {host}: {name}");
        }
    }
}

/// What all of them lack, no one can send: each ends, with the number of what is missing.
#[test]
fn receivers_that_lack_the_same_end_without_it() {
    let Some(scene) = Scene::new(3) else { return };
    let site = Site::new(scene, 400_000, "--rate 20M --push 0 --fec none");
    let ticket = site.ticket();
    let receptions: Vec<_> = (1..=2)
        .map(|host| site.receive(host, &ticket, "FONTANA_SIMULATE_LOSS=20%,7 --silence 8"))
        .collect();
    site.send();
    for mut reception in receptions {
        reception.finish(3);
        let shared = reception.receiver.last("shared").cloned().unwrap();
        assert_eq!(shared["symbols_used"], 0, "{shared}");
        let lacking = reception.receiver.last("site_lacks").cloned().unwrap();
        let wanted = &reception.receiver.last("summary").unwrap()["symbols_wanted"];
        assert_eq!((&lacking["blocks"], &lacking["symbols"]), (&1.into(), wanted));
    }
}

/// A receiver that was interrupted knows the manifest: others complete it when no session announces
/// the content any more.
#[test]
fn an_interrupted_receiver_is_completed_by_others() {
    let Some(scene) = Scene::new(3) else { return };
    let site = Site::new(scene, 2 << 20, "--rate 40M --push 0");
    let ticket = site.ticket();
    let whole = site.scene.receive(1, &ticket, "--share -i eth0");
    // With this seed the first packets, which announce the content, are not lost.
    let lossy = "FONTANA_SIMULATE_LOSS=10%,3 --silence 2 -i eth0";
    let mut interrupted = site.scene.receive(2, &ticket, lossy);
    site.send();
    interrupted.finish(3);
    let shared = site.complete(2, site.receive(2, &ticket, "--silence 20"));
    assert!(shared["symbols_used"].as_u64().unwrap() > 100, "{shared}");
    drop(whole);
}
