//! `fontana doctor --send` on one host, and `fontana doctor` on another: what is between them.

use crate::program::Program;
use crate::scene::Scene;
use serde_json::Value;
use std::ffi::OsString;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn start(scene: &Scene, host: usize, words: &str) -> Program {
    let words: Vec<OsString> = words.split(' ').map(Into::into).collect();
    scene.bench.start(host, &words)
}

/// The findings of `fontana doctor` on a host, and its last line.
struct Told {
    findings: Vec<Value>,
    likely: String,
    code: Option<i32>,
}

impl Told {
    /// What the doctor on host 1 says: a cause with this text. Other load on the computer may be
    /// the cause once.
    fn with(scene: &Scene, likely: &str) -> Self {
        let mut tries = (0..3).map(|_| Self::by(scene, 1));
        let told = tries.find(|told| told.likely.contains(likely));
        told.unwrap_or_else(|| panic!("not what is most likely: {likely}"))
    }

    fn by(scene: &Scene, host: usize) -> Self {
        let mut doctor = start(scene, host, "doctor --json");
        let (code, errors) = doctor.finish(PATIENCE);
        let likely = doctor.last("summary").map(|summary| summary["most_likely"].clone());
        let likely = likely.as_ref().and_then(Value::as_str).unwrap_or(&errors).to_owned();
        println!("{likely}");
        Self { findings: doctor.all("finding").cloned().collect(), likely, code }
    }

    /// Verdict and text of a finding.
    fn finding(&self, subject: &str) -> (&str, &str) {
        let mut findings = self.findings.iter();
        let found = findings.find(|found| found["subject"] == subject);
        let found = found.unwrap_or_else(|| panic!("no {subject} in {:?}", self.findings));
        (found["verdict"].as_str().unwrap(), found["text"].as_str().unwrap())
    }

    /// The share that was lost at a rate, in per cent.
    fn lost(&self, rate: &str) -> f64 {
        let (_, text) = self.finding(&format!("probes of 10.77.0.1 at {rate}"));
        text.split(' ').next().unwrap().parse().unwrap()
    }
}

#[test]
fn a_doctor_tells_what_the_network_does_with_the_packets_of_another() {
    let Some(scene) = Scene::alone(2) else { return };
    scene.bench.query_every(Duration::from_secs(2));
    let mut sender = start(&scene, 0, "doctor --json --send --for 3m");

    let works = "10.77.0.1: multicast passes to this host, at 100 Mbit/s and with packets of 1472";
    let told = Told::with(&scene, works);
    assert_eq!(told.finding("IGMP querier"), ("good", "heard, IGMPv3"));
    assert_eq!((told.lost("2 Mbit/s"), told.code), (0.0, Some(0)));
    let (verdict, text) = told.finding("sizes of probes of 10.77.0.1");
    assert!(verdict == "good" && text.starts_with("up to 1472 bytes arrive on eth0"), "{text}");

    scene.bench.lose(1, 100);
    let told = Told::with(&scene, "are lost at any rate");
    for rate in ["20 Mbit/s", "100 Mbit/s"] {
        assert!((7.0..13.0).contains(&told.lost(rate)), "{:?}", told.findings);
    }
    scene.bench.run(1, "nft delete table inet loss");

    scene.bench.set_mtu(1, 1300);
    let too_large = "packets of 1300 bytes exceed the MTU of a link on the path: fontana send \
                     --symbol-size 1088";
    Told::with(&scene, too_large);
    scene.bench.set_mtu(1, 1500);

    scene.bench.shape(1, 40.0);
    Told::with(&scene, "the path carries 20 Mbit/s, and not 100 Mbit/s");

    scene.bench.run(
        1,
        "nft add table inet closed
         nft add chain inet closed input '{ type filter hook input priority 0; }'
         nft add rule inet closed input ip daddr 239.255.76.1 drop",
    );
    Told::with(&scene, "firewall: a rule drops packets to 239.255.76.1:7701");
    scene.bench.run(1, "nft delete table inet closed");

    scene.bench.pass_no_multicast();
    let told = Told::with(&scene, "the network passes no multicast on");
    assert_eq!((told.finding("probes").0, told.code), ("unknown", Some(0)));

    sender.interrupt();
    assert_eq!(sender.finish(PATIENCE).0, Some(130));
    let likely = sender.last("summary").unwrap()["most_likely"].as_str().unwrap();
    // A busy host sends more slowly, and says so.
    let is_told =
        likely.starts_with("this host sends as it should") || likely.contains("times slower");
    assert!(is_told, "{likely}");
}

/// Nothing but probes to the group, and none beyond the network.
#[test]
fn a_doctor_that_sends_sends_to_its_group_alone() {
    let Some(scene) = Scene::new(2) else { return };
    scene.bench.count_hops(1, "239.255.76.1");
    scene.bench.count_sent(0);
    // A member, which has the switch forward the group, sends reports of its membership alone.
    scene.bench.count_sent(1);
    let mut member = start(&scene, 1, "doctor --json --for 6s");
    std::thread::sleep(Duration::from_secs(1));
    let mut sender = start(&scene, 0, "doctor --json --send --for 2s");
    assert_eq!(sender.finish(PATIENCE).0, Some(0));
    // Before the switch asks the group whether it has other members.
    let ((near, far), (_, sent)) = (scene.bench.hops(1), scene.bench.sent(0));
    member.finish(PATIENCE);
    assert!(near > 100 && far == 0, "{near} {far}");
    // Those to the host itself are counted, and leave it not.
    let to_itself = 2;
    assert!((near..=near + to_itself).contains(&sent), "{near} of {sent}");
    assert!(scene.bench.sent(1).1 <= to_itself, "{:?}", scene.bench.sent(1));
    let refused = start(&scene, 0, "doctor --send fontana://239.255.77.1:7701/5").finish(PATIENCE);
    assert_eq!(refused.0, Some(2), "{}", refused.1);
    assert!(refused.1.contains("--send with a ticket"), "{}", refused.1);
}
