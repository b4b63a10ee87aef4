//! A rate that follows the receivers: the slowest one's link is busy, and hardly overloaded.

use crate::bench::Bench;
use crate::reports::keygen;
use crate::scene::{Reception, Scene, same_file};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Time limit for what takes half a minute.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rates of the receivers' links in Mbit/s.
const LINKS: [u32; 4] = [20, 20, 20, 5];
const SLOWEST: f64 = 5e6;
/// Packets that wait for a link.
const QUEUE: u32 = 50;
/// Bytes of a symbol, and of its packet on a link of Ethernet: headers of Ethernet, IP, UDP and
/// ALC, and what a group key adds to each packet.
const SYMBOL: f64 = 1_344.0;
const FRAME: f64 = 1_442.0;
/// Times of the content alone that a transfer may take on a host that is busy with other tests. The
/// least rates here take five times and more.
const BUSY: f64 = 3.0;
/// Time in which the rate finds its place.
const SETTLED: f64 = 5.0;

/// Four receivers behind links of different rates.
///
/// `options`: of the sender. Checks how long the transfer takes, and what the sender offers the
/// slowest link after some seconds.
fn follows(bytes: u64, options: &str) {
    let Some(scene) = Scene::new(LINKS.len() + 1) else { return };
    let file = scene.noise("image.raw", bytes);
    let sign = keygen(&scene, "keygen", "publisher.key");
    let group = keygen(&scene, "keygen --group", "group.key");
    let (sign, group) = (sign.display(), group.display());
    let options =
        format!("--rate 500k..100M --sign {sign} --group-key {group} --receivers 4 {options}");
    for (host, &megabits) in (1..).zip(&LINKS) {
        scene.bench.shape_with_queue(host, megabits, QUEUE);
    }
    let ticket = scene.send(0, &format!("{options} --dry-run"), &file).ticket;
    let receive = format!("--group-key {group} --timeout 100");
    let mut receptions: Vec<_> = (1..=LINKS.len())
        .map(|host| {
            let into = scene.path(&format!("into {host}"));
            let name = format!("{receive} --label host-{host}");
            let mut reception = scene.receive_into(&into, host, &ticket, &name);
            let started = Instant::now();
            reception.receiver.wait_for("sandbox", PATIENCE);
            (reception, into, started)
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let started = Instant::now();
    let mut sender = scene.send(0, &options, &file).sender;
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    let mut seconds = 0.0_f64;
    for (reception, into, since) in &mut receptions {
        let arrived = arrived(reception);
        assert!(same_file(&file, &into.join("image.raw")));
        seconds = seconds.max(arrived - started.duration_since(*since).as_secs_f64());
    }
    let summary = sender.last("summary").unwrap();
    // The content with the headers of its packets, at the rate of the slowest link.
    let packets = bytes as f64 / SYMBOL;
    let ideal = packets * FRAME * 8.0 / SLOWEST;
    let rates = sender.all("rate").map(|rate| number(rate, "rate_bits_per_second") / 1e6);
    println!("rates {:.2?}", rates.collect::<Vec<_>>());
    println!("{summary}");
    println!("arrived after {seconds:.2} s, {:.3} of the content alone", seconds / ideal);
    let progress = |at: f64| {
        let mut seen = sender.all("progress");
        seen.find(|progress| number(progress, "seconds") >= at).unwrap_or(summary)
    };
    // Until about a second before the last receiver has everything.
    let (after, until) = (progress(SETTLED), progress((seconds - 2.0).max(SETTLED + 1.0)));
    let offered = number(until, "wire_bytes") - number(after, "wire_bytes");
    let passed = number(until, "seconds") - number(after, "seconds");
    let share = offered * 8.0 / passed / SLOWEST;
    println!("{share:.3} of the slowest link is offered after {SETTLED} s");
    // A host that is busy with other tests loses packets, and the rate falls for them. What the
    // rate does is measured in virtual time, in `fontana-proto`.
    assert!((0.3..=1.15).contains(&share), "{share}");
    assert!(seconds <= BUSY * ideal, "{seconds} s, and the content takes {ideal} s");
}

/// When a receiver had all that it needs, in seconds, up to one late. It completes then; a host
/// that is busy with other tests may take as long again to solve what was lost.
fn arrived(reception: &mut Reception) -> f64 {
    let complete = reception.complete().number("seconds");
    let wants_nothing =
        |it: &&Value| number(it, "source_symbols") > 0.0 && number(it, "symbols_wanted") == 0.0;
    let mut progress = reception.receiver.all("progress");
    progress.find(wants_nothing).map_or(complete, |it| number(it, "seconds"))
}

fn number(of: &Value, field: &str) -> f64 {
    of[field].as_f64().unwrap()
}

/// A receiver behind a link of 20 Mbit/s and one behind 2 Mbit/s, below `--rate 3M..4M`. It gets at
/// least half of what is sent: one that gets less may use up what one receiver may cause.
///
/// `must_finish`: the rate follows it all the same.
fn beside_a_link_below_the_least_rate(must_finish: bool) {
    let Some(scene) = Scene::new(3) else { return };
    let file = scene.noise("image.raw", 2 << 20);
    let sign = keygen(&scene, "keygen", "publisher.key");
    let group = keygen(&scene, "keygen --group", "group.key");
    let list = scene.path("expected");
    std::fs::write(&list, "host-1\nhost-2\n").unwrap();
    let options = format!(
        "--rate 3M..4M --sign {} --group-key {} --receivers {} {}",
        sign.display(),
        group.display(),
        list.display(),
        if must_finish { "--wait-for-all" } else { "" },
    );
    for (host, megabits) in [(1, 20), (2, 2)] {
        scene.bench.shape_with_queue(host, megabits, QUEUE);
    }
    let ticket = scene.send(0, &format!("{options} --dry-run"), &file).ticket;
    let receive = format!("--group-key {} --timeout 100", group.display());
    let mut receptions: Vec<_> = [1, 2]
        .map(|host| {
            let into = scene.path(&format!("into {host}"));
            let name = format!("{receive} --label host-{host}");
            let mut reception = scene.receive_into(&into, host, &ticket, &name);
            reception.receiver.wait_for("sandbox", PATIENCE);
            (reception, into)
        })
        .into();
    let mut sender = scene.send(0, &options, &file).sender;
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    for (reception, into) in &mut receptions {
        reception.complete();
        assert!(same_file(&file, &into.join("image.raw")));
    }
    let rates: Vec<_> =
        sender.all("rate").map(|rate| number(rate, "rate_bits_per_second") / 1e6).collect();
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    println!("rates {rates:.2?}");
    let slow: Vec<_> = sender.all("slow").collect();
    if must_finish {
        assert!(lowest < 2.5, "{rates:?}");
        assert!(slow.is_empty(), "{slow:?}");
    } else {
        assert!(lowest >= 3.0, "{rates:?}");
        let [slow] = slow[..] else { panic!("{slow:?}") };
        assert_eq!(slow["label"], "host-2", "{slow}");
        let gets = number(slow, "received_bits_per_second");
        assert!((1e6..=3e6).contains(&gets), "{slow}");
    }
}

#[test]
fn a_receiver_below_the_least_rate_is_named() {
    beside_a_link_below_the_least_rate(false);
}

#[test]
fn a_receiver_that_must_finish_is_not_left_behind() {
    beside_a_link_below_the_least_rate(true);
}

#[test]
fn a_rate_between_two_is_that_of_the_slowest_receiver() {
    follows(6 << 20, "");
}

/// The two commands without options: receivers behind these links, in Mbit/s, that lose this part
/// of the packets. Returns the rates of the sender in Mbit/s, and how long the last receiver took,
/// in seconds.
fn two_commands(bytes: u64, links: &[Option<u32>], permille: u32) -> Option<(Vec<f64>, f64)> {
    let scene = Scene::new(links.len() + 1)?;
    let file = scene.noise("image.raw", bytes);
    for (host, &megabits) in (1..).zip(links) {
        if let Some(megabits) = megabits {
            scene.bench.shape_with_queue(host, megabits, QUEUE);
        }
        if permille > 0 {
            scene.bench.lose(host, permille);
        }
    }
    let mut session = scene.send(0, "", &file);
    let receive = |host| scene.receive(host, &session.ticket, "--timeout 100");
    let receptions: Vec<_> = (1..=links.len()).map(receive).collect();
    let mut seconds = 0.0_f64;
    for (host, mut reception) in (1..).zip(receptions) {
        seconds = seconds.max(arrived(&mut reception));
        assert!(same_file(&file, &scene.received(host).join("image.raw")));
    }
    session.sender.wait_for("resting", PATIENCE);
    let rates = session.sender.all("rate").map(|it| number(it, "rate_bits_per_second") / 1e6);
    let rates: Vec<_> = rates.collect();
    println!("{seconds:.2} s, rates {rates:.2?}");
    session.end();
    Some((rates, seconds))
}

#[test]
fn without_options_the_rate_is_that_of_the_slowest_link() {
    let bytes = 6 << 20;
    let links = LINKS.map(Some);
    let Some((rates, seconds)) = two_commands(bytes, &links, 0) else { return };
    let ideal = bytes as f64 / SYMBOL * FRAME * 8.0 / SLOWEST;
    println!("{:.3} of the content alone", seconds / ideal);
    assert!(seconds <= BUSY * ideal + 4.0, "{seconds} s, and the content takes {ideal} s");
    // It has never been far above what the link carries.
    assert!(rates.iter().all(|&rate| rate <= 17.0), "{rates:?}");
}

#[test]
fn without_options_losses_that_do_not_depend_on_the_rate_do_not_lower_it() {
    let Some((rates, _)) = two_commands(24 << 20, &[None; 3], 100) else { return };
    let highest = rates.iter().copied().fold(0.0, f64::max);
    assert!(highest >= 90.0, "{rates:?}");
}

/// A port is down for a second. What was sent meanwhile is lost, and the path carries as much as
/// before.
#[test]
fn an_outage_of_a_second_does_not_lower_the_rate() {
    let Some(scene) = Scene::alone(3) else { return };
    let file = scene.noise("image.raw", 72 << 20);
    let mut session = scene.send(0, "", &file);
    let mut receptions = [1, 2].map(|host| scene.receive(host, &session.ticket, ""));
    let rate = |event: &Value| event["rate_bits_per_second"].as_f64().unwrap();
    while rate(&session.sender.wait_for("rate", PATIENCE)) < 99e6 {}
    std::thread::sleep(Duration::from_secs(1));
    let seen = session.sender.seen.len();
    let nft = |rules: &str| {
        let status = scene.bench.command(1, "nft").arg(rules).status().unwrap();
        assert!(status.success(), "{rules}");
    };
    nft(
        "table inet down { chain in { type filter hook input priority 0; meta l4proto udp drop; }; }",
    );
    std::thread::sleep(Duration::from_secs(1));
    nft("delete table inet down");
    receptions.iter_mut().for_each(|reception| _ = reception.complete());
    session.sender.interrupt();
    session.sender.finish(PATIENCE);
    let later = session.sender.seen[seen..].iter().filter(|event| event["event"] == "rate");
    let lowest = later.map(rate).fold(f64::INFINITY, f64::min);
    println!("the lowest rate since: {lowest}");
    assert!(lowest >= 80e6, "{lowest}");
}

/// Copies for two hosts: each gets half of the rate, which is that of the slower one.
#[test]
fn without_options_copies_to_two_hosts_have_the_rate_of_the_slower_one() {
    let Some(scene) = Scene::new(3) else { return };
    let bytes = 3 << 20;
    let file = scene.noise("image.raw", bytes);
    for (host, megabits) in [(1, 20), (2, 5)] {
        scene.bench.shape_with_queue(host, megabits, QUEUE);
    }
    let to = [1, 2].map(|host| format!("{}:7701", Bench::address(host))).join(",");
    let mut sender = scene.start(0, &format!("send --json --to {to}"), &file);
    let tickets = sender.wait_for("session", PATIENCE)["tickets"].clone();
    let receive =
        |host: usize| scene.receive(host, tickets[host - 1].as_str().unwrap(), "--timeout 60");
    let mut receptions = [1, 2].map(receive);
    let mut seconds = 0.0_f64;
    for (host, reception) in (1..).zip(&mut receptions) {
        seconds = seconds.max(arrived(reception));
        assert!(same_file(&file, &scene.received(host).join("image.raw")));
    }
    sender.wait_for("resting", PATIENCE);
    let ideal = bytes as f64 / SYMBOL * FRAME * 8.0 / SLOWEST;
    println!("{seconds:.2} s, {:.3} of the content alone", seconds / ideal);
    // A busy host starts receivers late.
    assert!(seconds <= BUSY * ideal + 4.0, "{seconds} s, and the content takes {ideal} s");
}

/// A version begins at the rate that the one before has found, and need not find it again.
#[test]
fn a_new_version_goes_on_at_the_rate_of_the_one_before() {
    let Some(scene) = Scene::new(3) else { return };
    [1, 2].into_iter().for_each(|host| scene.bench.shape_with_queue(host, 20, QUEUE));
    let folder = scene.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let copy = |name: &str| {
        // At once: a version has no part of it.
        std::fs::rename(scene.noise(name, 4 << 20), folder.join(name)).unwrap();
    };
    copy("first");
    let mut session = scene.send(0, "--watch=300ms", &folder);
    let receive = |host| scene.receive(host, &session.ticket, "--watch=2 --timeout 100");
    let mut receptions: Vec<_> = [1, 2].map(receive).into();
    session.sender.wait_for("resting", PATIENCE);
    copy("second");
    for (host, reception) in (1..).zip(&mut receptions) {
        let (code, said) = reception.receiver.finish(PATIENCE);
        assert_eq!(code, Some(0), "{said}");
        let name = "folder/second";
        assert!(same_file(&folder.join("second"), &scene.received(host).join(name)));
    }
    session.sender.wait_for("resting", PATIENCE);
    session.sender.interrupt();
    session.sender.finish(PATIENCE);
    let of = |event: &Value| event["event"].as_str().map(ToOwned::to_owned);
    let versions: Vec<_> = session
        .sender
        .seen
        .split(|it| of(it).as_deref() == Some("session"))
        .map(|events| {
            let rates = events.iter().filter(|it| of(it).as_deref() == Some("rate"));
            rates.map(|it| number(it, "rate_bits_per_second") / 1e6).collect::<Vec<_>>()
        })
        .collect();
    println!("{versions:.2?}");
    let [_, first, second] = &versions[..] else { panic!("{versions:?}") };
    assert!(first.iter().any(|rate| (15.0..=40.0).contains(rate)), "{versions:?}");
    assert!(second.iter().all(|rate| *rate >= 10.0), "{versions:?}");
}

/// Takes what a TCP flow sends, and prints its bytes between two seconds.
const TAKE: &str = "
import socket, sys, time
listening = socket.create_server(('', 9999))
flow = listening.accept()[0]
began, total = time.monotonic(), 0
while time.monotonic() < began + float(sys.argv[2]):
    taken = len(flow.recv(65536))
    if time.monotonic() >= began + float(sys.argv[1]):
        total += taken
print(total)
";
const GIVE: &str = "
import socket, sys
flow = socket.create_connection((sys.argv[1], 9999))
try:
    while True:
        flow.sendall(bytes(65536))
except OSError:
    pass
";

/// What one flow of the system's TCP has of a link of 20 Mbit/s with a queue of so many packets,
/// and what the two commands without options have, which begin three seconds later. In the seconds
/// 10 to 40.
fn beside_tcp(queue: u32) -> Option<[f64; 2]> {
    let scene = Scene::new(2)?;
    scene.bench.shape_with_queue(1, 20, queue);
    let python = |host, script: &str, words: &[&str]| {
        let mut command = scene.bench.command(host, "python3");
        command.args(["-c", script]).args(words).stdout(Stdio::piped()).spawn().unwrap()
    };
    let taking = python(1, TAKE, &["10", "40"]);
    std::thread::sleep(Duration::from_secs(1));
    let mut giving = python(0, GIVE, &[&Bench::address(1)]);
    std::thread::sleep(Duration::from_secs(3));
    let file = scene.noise("image.raw", 200 << 20);
    let session = scene.send(0, "", &file);
    let mut reception = scene.receive(1, &session.ticket, "--timeout 100");
    let taken = taking.wait_with_output().unwrap();
    giving.kill().unwrap();
    giving.wait().unwrap();
    reception.receiver.interrupt();
    reception.receiver.finish(PATIENCE);
    let arrived = |at: f64| {
        let mut seen = reception.receiver.all("progress");
        let progress = seen.find(|progress| number(progress, "seconds") >= at);
        progress.map(|it| [number(it, "seconds"), number(it, "datagrams")])
    };
    let [first, last] = [7.0, 35.0].map(|at| arrived(at).unwrap());
    let session_part = (last[1] - first[1]) * FRAME * 8.0 / (last[0] - first[0]) / 20e6;
    session.end();
    let taken: f64 = String::from_utf8(taken.stdout).unwrap().trim().parse().unwrap();
    // Headers of Ethernet, IP and TCP.
    let tcp = taken * 8.0 / 30.0 / 20e6 * 1_514.0 / 1_448.0;
    println!("queue of {queue}: TCP {tcp:.3}, session {session_part:.3}");
    Some([tcp, session_part])
}

/// Run by `.ci/long reports`.
#[test]
#[ignore = "80 s"]
fn without_options_a_tcp_flow_keeps_half_of_a_link() {
    // 20 and 200 ms.
    for queue in [33, 330] {
        let Some([tcp, session]) = beside_tcp(queue) else { return };
        assert!(tcp >= 0.45, "{queue}: {tcp} and {session}");
        assert!(session >= 0.05, "{queue}: {tcp} and {session}");
    }
}

/// Run by `.ci/long reports`.
#[test]
#[ignore = "16 MiB"]
fn a_larger_file_is_sent_at_the_rate_of_the_slowest_receiver() {
    follows(16 << 20, "");
}

/// Run by `.ci/long reports`.
#[test]
#[ignore = "16 MiB"]
fn a_larger_file_without_a_code_is_sent_at_the_rate_of_the_slowest_receiver() {
    follows(16 << 20, "--fec none");
}
