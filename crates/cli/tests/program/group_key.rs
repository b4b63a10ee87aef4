//! `--group-key`: sessions whose packets have the tag of a key that the group shares.

use crate::support::{Run, Running, Sender, arguments, assert_says, noise, place, run};
use std::fs::File;
use std::io::Read;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A directory with a file, and a group key.
struct Group {
    directory: tempfile::TempDir,
    file: PathBuf,
    key: String,
}

impl Group {
    fn new(bytes: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, noise(bytes, 1)).unwrap();
        let key = keygen(directory.path(), "group.key");
        Self { directory, file, key }
    }

    fn into(&self) -> PathBuf {
        self.directory.path().join("into")
    }

    /// Receives with these options, and checks the exit code.
    fn receive(&self, ticket: &str, words: &str, code: i32) -> Run {
        let words = format!("recv {ticket} {words} -o");
        run(&arguments(&words, &[&self.into()])).expect(code)
    }

    fn assert_received(&self) {
        let received = std::fs::read(self.into().join("file")).unwrap();
        assert!(received == std::fs::read(&self.file).unwrap());
    }
}

fn keygen(directory: &Path, name: &str) -> String {
    let key = directory.join(name);
    run(&arguments("keygen --group", &[&key])).expect(0);
    key.to_str().unwrap().to_owned()
}

#[test]
fn a_group_receives_encrypted_files() {
    let group = Group::new(2_000_000);
    let words = format!("--to {} --rate 80M --group-key {}", place(), group.key);
    let sender = Sender::start(&words, &[&group.file]);
    let words = format!("--group-key {} FONTANA_SIMULATE_LOSS=5 --timeout 60 --json", group.key);
    let received = group.receive(&sender.ticket, &words, 0);
    let summary = received.event("summary");
    assert_eq!((&summary["unauthenticated"], &summary["encrypted"]), (&0.into(), &0.into()));
    assert_eq!(summary["invalid"], 0, "{summary}");
    group.assert_received();
    sender.finish();
}

#[test]
fn a_layered_session_has_a_count_on_each_channel() {
    let group = Group::new(2_000_000);
    let words = format!("--to {} --layers 4 --rate 40M --group-key", place());
    let sender = Sender::start(&format!("{words} {}", group.key), &[&group.file]);
    let words = format!("--group-key {} --timeout 60 --json", group.key);
    let summary = group.receive(&sender.ticket, &words, 0).event("summary");
    assert_eq!(summary["unauthenticated"], 0, "{summary}");
    assert_eq!(summary["most_channels"], 4, "{summary}");
    group.assert_received();
    sender.finish();
}

#[test]
fn mirrors_share_the_key_and_have_counts_of_their_own() {
    let group = Group::new(2_000_000);
    let (place, manifest) = (place(), group.directory.path().join("manifest"));
    let words = format!("--to {place} --rate 20M --group-key {}", group.key);
    let words = format!("{words} --manifest {}", manifest.display());
    let first = Sender::start(&words, &[&group.file]);
    let mirror = Sender::start(&words, &[&group.file]);
    let words = format!("--group-key {} --timeout 60 --json", group.key);
    let summary = group.receive(&first.ticket, &words, 0).event("summary");
    assert_eq!(summary["unauthenticated"], 0, "{summary}");
    group.assert_received();
    first.finish();
    mirror.finish();
}

#[test]
fn a_stream_is_encrypted_on_its_way_from_pipe_to_pipe() {
    let group = Group::new(3_000_000);
    let words = format!("--to {} --rate 40M --group-key {}", place(), group.key);
    let words = format!("{words} --wait 2 -");
    let sender = Sender::start_with(File::open(&group.file).unwrap().into(), &words, &[]);
    let words = format!("recv {} --to - --group-key {}", sender.ticket, group.key);
    let mut receiver = Running::start(&arguments(&words, &[]));
    let mut received = Vec::new();
    receiver.stdout().read_to_end(&mut received).unwrap();
    receiver.wait().expect(0);
    assert!(received == std::fs::read(&group.file).unwrap());
    sender.into_running().wait().expect(0);
}

#[test]
fn a_group_reports_although_no_key_is_named_that_signs() {
    let group = Group::new(300_000);
    let words = format!("--to {} --rate 20M --receivers 1 --for 30s", place());
    let sender = Sender::start(&format!("{words} --group-key {}", group.key), &[&group.file]);
    group.receive(&sender.ticket, &format!("--group-key {} --timeout 30", group.key), 0);
    group.assert_received();
    sender.into_running().wait().expect(0);
}

#[test]
fn a_receiver_that_cannot_take_the_packets_says_which_key_is_missing() {
    let group = Group::new(500_000);
    let other = keygen(group.directory.path(), "other.key");
    let send = |words: &str| {
        Sender::start(&format!("--to {} --rate 10M {words}", place()), &[&group.file])
    };
    let sender = send(&format!("--group-key {}", group.key));
    let received = group.receive(&sender.ticket, "--timeout 2", 75);
    assert_says(&received, "is encrypted", "--group-key FILE");

    let wrong = format!("--timeout 2 --group-key {other}");
    let received = group.receive(&sender.ticket, &wrong, 75);
    assert_says(&received, "with a wrong one", "compare the key files");
    let received = group.receive(&sender.ticket, &format!("{wrong} --json"), 75);
    let summary = received.event("summary");
    assert!(summary["unauthenticated"].as_u64().unwrap() > 100, "{summary}");
    assert_eq!(summary["datagrams"], 0, "{summary}");
    sender.finish();

    let sender = send("--open");
    let received = group.receive(&sender.ticket, &wrong, 75);
    assert_says(&received, "without a tag", "fontana send --group-key FILE");
    sender.finish();
}

/// Repeats packets, each as it is, with a bit changed in its symbol, and with one changed in its
/// tag.
fn attack(packets: &[Vec<u8>], port: u16, is_over: &AtomicBool) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !is_over.load(Ordering::Relaxed) && Instant::now() < until {
        for packet in packets {
            let (mut symbol, mut tag) = (packet.clone(), packet.clone());
            *symbol.last_mut().unwrap() ^= 1;
            tag[usize::from(packet[2]) * 4 - 1] ^= 1;
            for bytes in [packet, &symbol, &tag] {
                // Refused while no socket listens.
                let _ = socket.send_to(bytes, ("127.0.0.1", port));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn forged_and_repeated_packets_are_dropped() {
    let group = Group::new(3_000_000);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (host, key) = (format!("127.0.0.1:{port}"), &group.key);
    let words = format!("--to {host} --rate 10M --group-key {key}");
    // Packets of the session that the receiver receives: another run would be another session.
    let relay = UdpSocket::bind(&host).unwrap();
    let sender = Sender::start(&words, &[&group.file]);
    let mut packet = [0; 2048];
    let mut recorded = || {
        let length = relay.recv(&mut packet).unwrap();
        packet[..length].to_vec()
    };
    let packets: Vec<_> = (0..500).map(|_| recorded()).collect();
    drop(relay);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| attack(&packets, port, &is_over));
        let words = format!("--group-key {key} --timeout 60 --json");
        let received = group.receive(&sender.ticket, &words, 0);
        is_over.store(true, Ordering::Relaxed);
        let summary = received.event("summary");
        assert!(summary["unauthenticated"].as_u64().unwrap() > 500, "{summary}");
        for counter in ["invalid", "malformed", "corrupt_blocks"] {
            assert_eq!(summary[counter], 0, "{counter} in {summary}");
        }
    });
    group.assert_received();
    sender.finish();
}

#[test]
fn group_keys_are_private_and_of_their_own_kind() {
    let group = Group::new(1_000);
    let send = |key: &str, words: &str, code| {
        let words = format!("send -i lo --dry-run {words} --group-key {key}");
        run(&arguments(&words, &[&group.file])).expect(code)
    };
    send(&group.key, "", 0);
    for format in ["--flute", "--fcast"] {
        let refused = send(&group.key, format, 2);
        assert_says(&refused, "programs know no group keys", "leave one of them out");
        let words = format!("recv -y {format} --group-key {}", group.key);
        let refused = run(&arguments(&words, &[])).expect(2);
        assert_says(&refused, "programs know no group keys", "leave one of them out");
    }
    let publisher = group.directory.path().join("publisher.key");
    run(&arguments("keygen", &[&publisher])).expect(0);
    let refused = send(publisher.to_str().unwrap(), "", 7);
    assert_says(&refused, "the file of such a key begins with", "fontana keygen --group FILE");
    let missing = send("/nowhere/key", "", 7);
    assert_says(&missing, "the key file", "fontana keygen --group FILE");
    assert_says(&run(&arguments("keygen --group", &[&publisher])).expect(6), "exists", "choose");

    std::fs::set_permissions(&group.key, PermissionsExt::from_mode(0o640)).unwrap();
    assert_says(&send(&group.key, "", 7), "other users may read", "chmod 600");
    let words = format!("recv -y --group-key {}", group.key);
    assert_says(&run(&arguments(&words, &[])).expect(7), "other users may read", "chmod 600");
}
