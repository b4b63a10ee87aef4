//! Repair on demand: the source symbols once, and then what receivers request.

use crate::reports::keygen;
use crate::scene::{Scene, same_file};
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);
const FAST: &str = "--rate 100M";

/// A session that repairs on demand, with a group key.
struct Repaired {
    scene: Scene,
    file: PathBuf,
    send: String,
    receive: String,
}

impl Repaired {
    /// `options`: of the sender, beside those of the keys.
    fn new(receivers: usize, bytes: u64, options: &str) -> Option<Self> {
        let scene = Scene::new(receivers + 1)?;
        let file = scene.noise("image.raw", bytes);
        let sign = keygen(&scene, "keygen", "publisher.key");
        let group = keygen(&scene, "keygen --group", "group.key");
        let send = format!("--sign {} --group-key {} {options}", sign.display(), group.display());
        let receive = format!("--group-key {} --timeout 100", group.display());
        Some(Self { scene, file, send, receive })
    }

    /// Four receivers that each lose this many of a thousand packets. Returns the packets that were
    /// sent, of every kind, over the source symbols.
    fn sent_per_file(&self, permille: u32) -> f64 {
        let receivers = 1..5;
        if permille > 0 {
            receivers.clone().for_each(|host| self.scene.bench.lose(host, permille));
        }
        let options = format!("{} --receivers 4", self.send);
        // All listen before the first packet: what is sent before would be lacking as well.
        let ticket = self.scene.send(0, &format!("{options} --dry-run"), &self.file).ticket;
        let mut receptions: Vec<_> = receivers
            .map(|host| {
                let into = self.scene.path(&format!("{permille} {host}"));
                let label = format!("{} --label host-{host}", self.receive);
                let mut reception = self.scene.receive_into(&into, host, &ticket, &label);
                reception.receiver.wait_for("sandbox", PATIENCE);
                (reception, into)
            })
            .collect();
        std::thread::sleep(Duration::from_secs(1));
        let started = std::time::Instant::now();
        let mut sender = self.scene.send(0, &options, &self.file).sender;
        let (code, said) = sender.finish(PATIENCE);
        assert_eq!(code, Some(0), "{said}");
        let ended = started.elapsed();
        let mut lost = 0.0;
        for (reception, into) in &mut receptions {
            lost += reception.complete().number("lost");
            assert!(same_file(&self.file, &into.join("image.raw")));
        }
        let summary = sender.last("summary").unwrap();
        // No block is solved before a receiver has lost something.
        assert!(lost > 0.0 || summary["solved_bytes"] == 0, "{summary}");
        println!("{permille} of 1000 lost, {ended:?}: {summary}");
        let packets = |field: &str| summary[field].as_f64().unwrap();
        packets("packets") / packets("source_symbols")
    }
}

/// `most`: packets for each source symbol without losses, and at a loss of 1 and of 10 %.
fn check(bytes: u64, most: [f64; 3]) {
    let Some(session) = Repaired::new(4, bytes, FAST) else { return };
    for (permille, most) in [0, 10, 100].into_iter().zip(most) {
        let sent = session.sent_per_file(permille);
        println!("{permille} of 1000 lost: {sent:.4} packets for each source symbol");
        assert!(sent <= most, "{permille} of 1000 lost: {sent}");
    }
}

#[test]
fn little_more_is_sent_than_what_the_receivers_lack() {
    // The loss of one block of 12 500 symbols has a standard deviation of 0.3 % of them, and a busy
    // host drops some packets.
    check(16 << 20, [1.02, 1.03, 1.16]);
}

/// Dispersal as in BMTP, section 7: any five symbols of a block of Reed-Solomon recover it. Of five
/// symbols, of which each receiver loses one in twenty, the worst of four receivers lacks 0.73.
#[test]
fn blocks_of_five_symbols_are_repaired_with_symbols_of_reed_solomon() {
    // All blocks advance until a receiver reports. A pass takes 0.9 seconds, longer than most
    // receivers wait for a processor.
    let options = "--rate 20M --fec rs --block-symbols 5";
    let Some(session) = Repaired::new(4, 2 << 20, options) else { return };
    let sent = session.sent_per_file(50);
    println!("{sent:.4} packets for each source symbol");
    // 1.2 alone.
    assert!((1.1..=4.0).contains(&sent), "{sent}");
}

/// Run by `.ci/long reports`.
#[test]
#[ignore = "64 MiB"]
fn little_more_of_a_larger_file_is_sent_than_what_the_receivers_lack() {
    check(64 << 20, [1.01, 1.02, 1.14]);
}

#[test]
fn a_late_receiver_and_a_restarted_sender_send_only_what_is_lacking() {
    let Some(session) = Repaired::new(2, 4 << 20, FAST) else { return };
    let Repaired { scene, file, send, receive } = &session;
    let manifest = scene.path("manifest");
    let options = format!("{send} --manifest {} --receivers 2", manifest.display());
    let sent = scene.send(0, &options, file);
    let mut first = scene.receive(1, &sent.ticket, &format!("{receive} --label first"));
    let mut sender = sent.sender;
    first.complete();
    // The second one joins when nothing is sent any more, and gets all of it.
    scene.receive(2, &sent.ticket, &format!("{receive} --label second")).complete();
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");

    // A sender that is started again sends no symbol before it is asked.
    let restarted = scene.send(0, &options, file);
    let mut sender = restarted.sender;
    let mut labels = Vec::new();
    for host in [1, 2] {
        let into = scene.path(&format!("again {host}"));
        let label = format!("{receive} --label again-{host}");
        labels.push((scene.receive_into(&into, host, &restarted.ticket, &label), into));
    }
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
    for (reception, into) in &mut labels {
        reception.complete();
        assert!(same_file(file, &into.join("image.raw")));
    }
    let summary = sender.last("summary").unwrap();
    assert_eq!(summary["source_symbols"], 0, "{summary}");
}

/// A receiver that comes after the largest age gets nothing, and the sender says that it lacks all.
#[test]
fn what_is_older_than_the_maximum_age_is_not_sent_again() {
    let Some(session) = Repaired::new(2, 1 << 20, FAST) else { return };
    let Repaired { scene, file, send, receive } = &session;
    let sent = scene.send(0, &format!("{send} --receivers 2 --max-age 3"), file);
    let mut first = scene.receive(1, &sent.ticket, &format!("{receive} --label first"));
    first.complete();
    let mut sender = sent.sender;
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(9), "{said}");
    assert_eq!(sender.last("roll_call").unwrap()["complete"], 1);
    let seconds = sender.last("summary").unwrap()["seconds"].as_f64().unwrap();
    assert!((3.0..=10.0).contains(&seconds), "{seconds}");
}

/// With `--one-way`, a receiver gets what others request, and sends nothing.
#[test]
fn a_receiver_that_may_not_request_sends_nothing() {
    let Some(session) = Repaired::new(2, 1 << 20, FAST) else { return };
    let Repaired { scene, file, send, receive } = &session;
    scene.bench.count_sent(1);
    let options = format!("{send} --receivers 1");
    // It listens before the first packet: the source symbols are sent once. What it loses
    // nevertheless, the other receiver requests, which comes after them.
    let ticket = scene.send(0, &format!("{options} --dry-run"), file).ticket;
    let mut silent = scene.receive(1, &ticket, &format!("{receive} --one-way"));
    silent.receiver.wait_for("sandbox", PATIENCE);
    std::thread::sleep(Duration::from_millis(500));
    let sent = scene.send(0, &options, file);
    let mut allowed = scene.receive(2, &sent.ticket, &format!("{receive} --label second"));
    silent.complete();
    allowed.complete();
    assert_eq!(scene.bench.sent(1).1, 0);
    let mut sender = sent.sender;
    let (code, said) = sender.finish(PATIENCE);
    assert_eq!(code, Some(0), "{said}");
}
