//! Forged symbols, from another process on the loopback interface: they delay a reception and do
//! not end it.

use crate::support::{Running, Sender, arguments, noise, place, run};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const TSI: u8 = 9;
const SYMBOL_SIZE: usize = 1_000;

fn file(directory: &Path, size: usize) -> PathBuf {
    let path = directory.join("file");
    std::fs::write(&path, noise(size, 1)).unwrap();
    path
}

/// A RaptorQ symbol of object 1 with bytes that the sender has never sent.
fn forged(block: u8, number: u32) -> Vec<u8> {
    // LCT: version 1, TSI and TOI of 32 bits, four words, FEC Encoding ID 6; no CCI.
    let mut packet = vec![0x10, 0xA0, 4, 6, 0, 0, 0, 0, 0, 0, 0, TSI, 0, 0, 0, 1];
    // Block and ESI; far from those that a sender sends first.
    packet.extend(((u32::from(block) << 24) + (1 << 22) + number).to_be_bytes());
    packet.extend(noise(SYMBOL_SIZE, u64::from(number)));
    packet
}

/// The address of the session's sender. The kernel takes the interface of the source address.
fn socket() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

/// Sends a forged symbol of each block in turn until it is stopped.
struct Forger {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Forger {
    fn start(place: &str, blocks: u8, interval: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (is_stopped, place) = (Arc::clone(&stop), place.to_owned());
        let thread = thread::spawn(move || {
            let socket = socket();
            let mut sent = 0;
            while !is_stopped.load(Ordering::Relaxed) {
                let block = (sent % u32::from(blocks)) as u8;
                socket.send_to(&forged(block, sent), &place).unwrap();
                sent += 1;
                thread::sleep(interval);
            }
            sent
        });
        Self { stop, thread }
    }

    /// Returns how many symbols it has sent.
    fn stop(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[test]
fn a_forger_does_not_end_a_reception() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 16 << 20);
    let place = place();
    let words = format!(
        "--open --to {place}/{TSI} --rate 50M --symbol-size {SYMBOL_SIZE} --block-symbols 4200"
    );
    let sender = Sender::start(&words, &[&path]);
    let forger = Forger::start(&place, 4, Duration::from_millis(20));
    let into = directory.path().join("into");
    let words = format!("recv {} --json --timeout 60 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(0);
    let sent = forger.stop();
    assert!(sent > 30, "{sent}");
    let summary = received.event("summary");
    let events = received.events();
    let named = |name| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    let corrupt = named("corrupt").len();
    assert!(corrupt > 0 && summary["corrupt_blocks"] == corrupt, "{corrupt}: {summary}");
    let dropped: u64 =
        named("wrong_symbols").iter().map(|event| event["symbols"].as_u64().unwrap()).sum();
    assert!(dropped > 0 && dropped <= sent.into(), "{dropped} of {sent}");
    assert!(summary["reception_inefficiency"].as_f64().unwrap() < 1.1, "{summary}");
    assert_eq!(std::fs::read(into.join("file")).unwrap(), noise(16 << 20, 1));
    sender.finish();
}

/// The symbols of a file that is sent once, and five forged ones: the result, and its standard
/// output.
fn sent_once(push: u32, code: i32) -> (crate::support::Run, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), 500_000);
    let (place, into) = (place(), directory.path().join("into"));
    let words = format!("recv -y --stay -i lo --group {place} --json --timeout 6 -o");
    let mut receiver = Running::start(&arguments(&words, &[&into]));
    assert!(receiver.line().contains("\"session\""), "it has joined");
    let words = format!(
        "send --open -i lo --to {place}/{TSI} --push {push} --rate 5M --symbol-size {SYMBOL_SIZE}"
    );
    let sender = Running::start(&arguments(&words, &[&path]));
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("\"accepted\"")) {
        lines.push(receiver.line());
    }
    let socket = socket();
    for number in 0..5 {
        socket.send_to(&forged(0, number), &place).unwrap();
    }
    sender.wait().expect(0);
    (receiver.wait().expect(code), directory)
}

#[test]
fn what_is_sent_once_is_complete_in_spite_of_forged_symbols() {
    let (received, directory) = sent_once(10, 0);
    assert_eq!(received.event("wrong_symbols")["symbols"], 5);
    assert_eq!(received.event("corrupt")["block"], 0);
    assert_eq!(std::fs::read(directory.path().join("into/file")).unwrap(), noise(500_000, 1));
}

#[test]
fn a_block_without_symbols_to_find_the_forged_ones_is_named() {
    let (received, directory) = sent_once(0, 3);
    assert_eq!(received.event("corrupt")["block"], 0);
    let message = received.event("error")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("block 0 of object 1 is corrupt"), "{message}");
    assert!(!directory.path().join("into/file").exists());
}

/// Sends three forged symbols for each symbol of content that `spy` receives, until the sender has
/// been silent for a while.
fn forge_beside(spy: &UdpSocket, port: u16) -> u32 {
    let socket = socket();
    spy.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let (mut buffer, mut sent) = ([0; 2_048], 0_u32);
    while let Ok(length) = spy.recv(&mut buffer) {
        let toi = u32::from_be_bytes(buffer[12..16].try_into().unwrap());
        if length < 1_000 || toi == 0 || toi >= 0xFFFF_FFF0 {
            continue;
        }
        for _ in 0..3 {
            let mut packet = buffer[..length].to_vec();
            packet[16..20].copy_from_slice(&((1 << 22) + sent).to_be_bytes());
            packet[20..].copy_from_slice(&noise(length - 20, sent.into()));
            // Refused while no socket listens.
            let _ = socket.send_to(&packet, (Ipv4Addr::LOCALHOST, port));
            sent += 1;
        }
    }
    sent
}

/// Three forged symbols for each of the sender's: the receiver takes hardly more than it needs.
#[test]
fn announced_symbols_are_told_from_forged_ones() {
    let directory = tempfile::tempdir().unwrap();
    let (path, key) = (file(directory.path(), 3_000_000), directory.path().join("key"));
    run(&arguments("keygen", &[&key])).expect(0);
    let spy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (port, spies_on) = (socket().local_addr().unwrap().port(), spy.local_addr().unwrap());
    let words =
        format!("--open --to 127.0.0.1:{port},{spies_on} --rate 40M --symbol-digests --sign");
    let sender = Sender::start(&words, &[&key, &path]);
    let forger = thread::spawn(move || forge_beside(&spy, port));
    let into = directory.path().join("into");
    let words = format!("recv {} --json --timeout 60 -o", sender.ticket);
    let received = run(&arguments(&words, &[&into])).expect(0);
    sender.finish();
    let (sent, summary) = (forger.join().unwrap(), received.event("summary"));
    assert!(std::fs::read(into.join("file")).unwrap() == noise(3_000_000, 1));
    let count = |field: &str| summary[field].as_u64().unwrap();
    assert!(count("unannounced") > count("source_symbols"), "{sent} were forged: {summary}");
    assert!(count("fresh") < count("source_symbols") * 6 / 5, "{summary}");
}

#[test]
fn digests_without_a_key_or_of_a_stream_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, key) = (file(directory.path(), 10), directory.path().join("key"));
    run(&arguments("keygen", &[&key])).expect(0);
    let unsigned = run(&arguments("send --symbol-digests", &[&path])).expect(2);
    assert!(unsigned.stderr.contains("--sign"), "{}", unsigned.stderr);
    let stream = run(&arguments("send - --symbol-digests --sign", &[&key])).expect(2);
    assert!(stream.stderr.contains("--symbol-digests with a stream"), "{}", stream.stderr);
    let short = "send --symbol-size 240 --symbol-digests --sign";
    let short = run(&arguments(short, &[&key, &path])).expect(2);
    assert!(short.stderr.contains("36 more with symbol digests"), "{}", short.stderr);
}
