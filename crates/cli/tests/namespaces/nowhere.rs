//! Packets that do not leave a host, or that no receiver gets: what the program says, and when.

use crate::program::Program;
use crate::scene::{Scene, same_file};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Time limit for a short run.
const PATIENCE: Duration = Duration::from_secs(30);

fn start(scene: &Scene, host: usize, words: &str, path: &Path) -> Program {
    let words = words.split_whitespace().map(OsString::from);
    scene.bench.start(host, &words.chain([path.into()]).collect::<Vec<_>>())
}

/// Runs a command in the namespace of a host.
fn run(scene: &Scene, host: usize, command: &str) {
    let status = scene.bench.command(host, "sh").args(["-ec", command]).status().unwrap();
    assert!(status.success(), "{command}");
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap()
}

#[test]
fn a_unicast_host_that_does_not_answer_is_an_error_with_the_command_that_helps() {
    let Some(scene) = Scene::new(1) else { return };
    let file = scene.noise("file", 100_000);
    for (host, end) in
        [("10.77.0.99", "--for 3"), ("10.77.0.98", "--push 0"), ("[fd77::99]", "--for 1500ms")]
    {
        let words = format!("send --json --to {host}:7701 --rate 1M {end}");
        let bare = host.trim_matches(['[', ']']);
        let mut sender = start(&scene, 0, &words, &file);
        if end != "--push 0" {
            let warning = sender.wait_for("warning", Duration::from_secs(3));
            let what = format!("{bare} does not answer on eth0");
            assert!(text(&warning, "message").contains(&what), "{warning}");
            let command = format!("ip neigh replace {bare} lladdr MAC dev eth0 nud permanent");
            assert!(text(&warning, "hint").contains(&command), "{warning}");
        }
        let (code, errors) = sender.finish(PATIENCE);
        assert_eq!(code, Some(5), "{errors}");
        assert!(errors.contains("no packet left this host"), "{errors}");
        assert!(!errors.contains("the other files"), "{errors}");
        assert_eq!(sender.last("summary").unwrap()["verdict"], "io");
        let words = format!("send --to {host}:7701 --rate 1M --for 1500ms");
        let (code, said) = start(&scene, 0, &words, &file).finish(PATIENCE);
        assert_eq!(code, Some(5), "{said}");
        assert!(said.contains("sent nothing in") && !said.contains("on the wire"), "{said}");

        let lladdr = "lladdr 02:00:00:00:00:99 dev eth0 nud permanent";
        run(&scene, 0, &format!("ip neigh replace {bare} {lladdr}"));
        let words = format!("send --json --to {host}:7701 --rate 1M --for 1500ms");
        let mut sender = start(&scene, 0, &words, &file);
        assert_eq!(sender.finish(PATIENCE).0, Some(0));
        assert!(sender.last("warning").is_none(), "{:?}", sender.seen);
    }
}

#[test]
fn a_packet_filter_that_forbids_sending_is_named_at_once() {
    let Some(scene) = Scene::new(1) else { return };
    let file = scene.noise("file", 100_000);
    run(
        &scene,
        0,
        "nft add table inet no
         nft 'add chain inet no output { type filter hook output priority 0; }'
         nft add rule inet no output udp dport 7701 drop",
    );
    for to in ["239.255.77.1:7701", "10.77.0.254:7701"] {
        let words = format!("send --json --to {to} --rate 1M --for 2");
        let mut sender = start(&scene, 0, &words, &file);
        let warning = sender.wait_for("warning", PATIENCE);
        assert!(text(&warning, "message").contains("Operation not permitted"), "{warning}");
        assert!(text(&warning, "hint").contains("nft list ruleset"), "{warning}");
        let (code, errors) = sender.finish(PATIENCE);
        assert_eq!(code, Some(5), "{errors}");
        assert!(errors.contains("no packet left this host"), "{errors}");
        let summary = sender.last("summary").unwrap();
        assert_eq!((&summary["verdict"], &summary["lost"]), (&"io".into(), &summary["packets"]));
    }
}

#[test]
fn a_sender_that_misses_its_rate_says_what_limits_it() {
    let Some(scene) = Scene::new(1) else { return };
    let file = scene.noise("file", 1 << 20);
    // The queue is longer than the socket's buffer, which therefore blocks.
    run(&scene, 0, "tc qdisc add dev eth0 root tbf rate 5mbit burst 20k limit 20M");
    for (rate, is_missed) in [("20M", true), ("4M", false)] {
        let words = format!("send --json --rate {rate} --for 7");
        let mut sender = start(&scene, 0, &words, &file);
        assert_eq!(sender.finish(PATIENCE).0, Some(0));
        // What the full queue costs is another warning.
        let warnings = || sender.all("warning").map(|warning| text(warning, "message"));
        let misses = warnings().find(|message| message.contains("Mbit/s in the last 5 s"));
        assert_eq!(misses.is_some(), is_missed, "{rate}: {:?}", warnings().collect::<Vec<_>>());
        assert!(misses.is_none_or(|message| message.contains("of 20 Mbit/s")), "{misses:?}");
    }
}

#[test]
fn an_interface_without_multicast_is_refused_or_warned_of_and_never_replaced_by_loopback() {
    let Some(scene) = Scene::new(1) else { return };
    let file = scene.noise("file", 1000);
    run(&scene, 0, "ip link set eth0 multicast off");
    for words in ["send --json --for 1", "recv --json -y --silence 1 -o"] {
        let path = if words.starts_with("recv") { &scene.path("into") } else { &file };
        let mut refused = start(&scene, 0, words, path);
        let (code, errors) = refused.finish(PATIENCE);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("ip link set eth0 multicast on"), "{errors}");
        assert!(refused.last("session").is_none(), "{:?}", refused.seen);
    }
    for words in ["send -i eth0 --json --for 1", "send -i lo --json --for 1"] {
        let mut asked = start(&scene, 0, words, &file);
        assert_eq!(asked.finish(PATIENCE).0, Some(0));
        let warning = asked.last("warning").map(|warning| text(warning, "hint"));
        assert_eq!(warning, words.contains("eth0").then_some("ip link set eth0 multicast on"));
    }
    // A host needs no multicast.
    run(&scene, 0, "ip neigh replace 10.77.0.99 lladdr 02:00:00:00:00:99 dev eth0 nud permanent");
    let mut unicast = start(&scene, 0, "send --json --to 10.77.0.99 --for 1", &file);
    let (code, errors) = unicast.finish(PATIENCE);
    assert_eq!((code, &*errors), (Some(0), ""));
    assert_eq!(unicast.last("session").unwrap()["interface"], "eth0");
}

#[test]
fn a_receiver_takes_the_network_of_the_source_and_tells_why_nothing_comes() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("file", 1 << 20);
    run(
        &scene,
        1,
        "ip link add eth1 type veth peer name far; ip link set far up; ip addr add 10.88.0.1/24 dev eth1
         ip link set eth1 up multicast on; ip route replace default dev eth1",
    );
    // It does not rest when the receiver is complete.
    let session = scene.send(0, "--one-way --rate 20M", &file);
    let mut reception = scene.receive(1, &session.ticket, "--timeout 20");
    let begin = reception.receiver.wait_for("session", PATIENCE);
    assert_eq!(begin["interface"], "eth0");
    reception.complete();
    assert!(same_file(&file, &scene.received(1).join("file")));

    let doctor = |ticket: &str| {
        let words = ["doctor", "--json", ticket].map(OsString::from);
        let mut doctor = scene.bench.start(1, &words);
        doctor.finish(PATIENCE);
        let of_session = |event: &&Value| {
            event["subject"].as_str().is_some_and(|subject| subject.starts_with("session "))
        };
        let finding = doctor.seen.first().filter(of_session).unwrap();
        let remedy = finding["remedy"].as_str().unwrap_or_default();
        (finding["verdict"].clone(), format!("{}\n{remedy}", text(finding, "text")))
    };
    let (verdict, told) = doctor(&session.ticket);
    assert_eq!(verdict, "good", "{told}");
    assert!(told.contains("arrived on eth0 in 3 s"), "{told}");
    let other = "fontana://10.77.0.1@239.255.77.1:7701/4";
    let (verdict, told) = doctor(other);
    assert_eq!(verdict, "bad", "{told}");
    assert!(told.contains("0 packets of it") && told.contains("1 other session"), "{told}");
    assert!(told.contains("likeliest: the sender has been started again"), "{told}");
    // Short packets pass, and those with symbols do not.
    run(
        &scene,
        1,
        "nft -f - <<END
table inet filter {
  chain input {
    type filter hook input priority 0;
    udp length > 1300 counter drop
  }
}
END",
    );
    let (verdict, told) = doctor(&session.ticket);
    assert_eq!(verdict, "warning", "{told}");
    assert!(told.contains("none with a symbol") && told.contains("--symbol-size"), "{told}");
    run(&scene, 1, "nft insert rule inet filter input ip daddr 239.255.0.0/16 counter drop");
    let (verdict, told) = doctor(&session.ticket);
    assert_eq!(verdict, "bad", "{told}");
    assert!(
        told.contains("likeliest: firewall, a rule drops packets to 239.255.77.1:7701"),
        "{told}"
    );
    assert!(told.contains("ip daddr 239.255.0.0/16"), "{told}");
    run(&scene, 1, "nft delete table inet filter");
    let (_, told) = doctor("fontana://10.77.0.1@239.255.77.3:7701/4");
    assert!(told.contains("likeliest: the sender does not run"), "{told}");

    let mut deaf = start(&scene, 1, "recv --json -y --timeout 7 -o", &scene.path("elsewhere"));
    let warning = deaf.wait_for("warning", PATIENCE);
    assert!(text(&warning, "message").contains("7701 (eth1) for 5 s"), "{warning}");
    for told in [
        "eth1 was taken because the routing table sends this group there",
        "other interfaces carry multicast: eth0 (10.77.0.2",
        "the group is joined, 0 packets arrived",
    ] {
        assert!(text(&warning, "hint").contains(told), "{told}: {warning}");
    }
    assert_eq!(deaf.finish(PATIENCE).0, Some(75));
    session.end();

    // The sender is asked: it runs, and the switch passes nothing on; it does not run; its host is
    // off.
    let asking = scene.send(0, "--rate 20M", &file);
    let ticket = asking.ticket.clone();
    scene.bench.pass_no_multicast();
    let (_, told) = doctor(&ticket);
    assert!(told.contains("likeliest: the sender runs, and the network does not pass"), "{told}");
    asking.kill();
    let (_, told) = doctor(&ticket);
    assert!(told.contains("likeliest: the sender does not run: start it"), "{told}");
    scene.bench.unplug(0);
    // Its address would count as known for up to a minute.
    run(&scene, 1, "ip neigh flush dev eth0");
    let (_, told) = doctor(&ticket);
    assert!(told.contains("likeliest: that host is off"), "{told}");
}

/// Its address is unique on its link alone: the sender says on which, and the receiver knows.
#[test]
fn a_host_is_reached_by_its_link_local_address() {
    let Some(scene) = Scene::new(2) else { return };
    for host in [0, 1] {
        run(&scene, host, &format!("ip addr add fe80::77:{host}/64 dev eth0 nodad"));
    }
    let address = "fe80::77:1";
    let file = scene.noise("image.raw", 100_000);
    let session = scene.send_to(&format!("[{address}%eth0]:7701"), 0, "--rate 20M", &file);
    assert!(!session.ticket.contains('%'), "zones are those of one host: {}", session.ticket);
    scene.receive(1, &session.ticket, "--timeout 30").complete();
    assert!(crate::scene::same_file(&file, &scene.received(1).join("image.raw")));
    session.end();
}

/// Also if no router has given them an address: those of the links are enough.
#[test]
fn hosts_without_ipv4_use_a_group_of_ipv6() {
    let Some(scene) = Scene::new(2) else { return };
    let file = scene.noise("image.raw", 1 << 20);
    for version in ["-4", "-6"] {
        for host in [0, 1] {
            run(&scene, host, &format!("ip {version} address flush dev eth0 scope global"));
        }
        let mut sender = scene.start(0, "send --json --receivers 1", &file);
        let ticket = sender.wait_for("session", PATIENCE)["ticket"].as_str().unwrap().to_owned();
        assert!(ticket.contains("@[ff15::7701]:7701/"), "{ticket}");
        let into = scene.path(version);
        scene.receive_into(&into, 1, &ticket, "").complete();
        assert!(same_file(&file, &into.join("image.raw")));
        let (code, said) = sender.finish(PATIENCE);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// A tenth of what an interface carries that does not say its speed, and of one that does. Short
/// content is sent twenty times a second.
#[test]
fn a_sender_that_hears_of_no_receiver_leaves_others_their_part() {
    let Some(scene) = Scene::new(1) else { return };
    run(&scene, 0, "ip link add slow type bridge; ip address add 10.9.0.1/24 dev slow");
    run(&scene, 0, "ip link set slow up");
    let [long, short] = [4 << 20, 3_000].map(|bytes| scene.noise(&bytes.to_string(), bytes));
    let cases =
        [("slow", &long, 8e6, 11e6), ("eth0", &long, 90e6, 105e6), ("eth0", &short, 1e6, 3e6)];
    for (interface, file, least, most) in cases {
        let mut sender = scene.start(0, &format!("send --json -i {interface}"), file);
        let mut counted: Vec<(f64, f64)> = Vec::new();
        while counted.last().is_none_or(|(seconds, _)| *seconds < 6.0) {
            let event = sender.wait_for("progress", PATIENCE);
            let value = |name: &str| event[name].as_f64().unwrap();
            counted.push((value("seconds"), value("wire_bytes")));
        }
        let from = counted.iter().find(|(seconds, _)| *seconds >= 4.0).unwrap();
        let to = counted.last().unwrap();
        let rate = 8.0 * (to.1 - from.1) / (to.0 - from.0);
        println!("{interface}: {rate:.0} bit/s");
        assert!((least..most).contains(&rate), "{interface}: {rate} bit/s");
        sender.interrupt();
        sender.finish(PATIENCE);
    }
}
