//! What `recv --flute` says of the sessions of other senders, which are made packet by packet.

use crate::support::{Running, arguments, fontana, peak_memory, place, run};
use std::fs::File;
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The first byte of an LCT header: version 1, and a CCI of one word.
const LCT: u8 = 0x10;
/// The Source Packet Indicator, which ROUTE sets.
const SOURCE_PACKET: u8 = 0x02;
/// Flag A.
const CLOSE_SESSION: u8 = 0x02;

/// A packet of TSI 7; without a TOI it has no payload.
fn packet(bits: [u8; 2], codepoint: u8, toi: Option<u32>, rest: [&[u8]; 2]) -> Vec<u8> {
    let [extensions, payload] = rest;
    let words = 3 + toi.map_or(0, |_| 1) + extensions.len() / 4;
    let widths = if toi.is_some() { 0xA0 } else { 0x80 };
    let mut packet = vec![LCT | bits[0], widths | bits[1], words as u8, codepoint];
    packet.extend([0, 0, 0, 0, 0, 0, 0, 7]);
    packet.extend(toi.into_iter().flat_map(u32::to_be_bytes));
    packet.extend_from_slice(extensions);
    packet.extend_from_slice(payload);
    packet
}

/// A table of one symbol: the instance with this number.
fn table(instance: u8, xml: &str) -> Vec<u8> {
    table_in_symbols(instance, xml, xml.len()).remove(0)
}

/// A table in one block of symbols of this length.
fn table_in_symbols(instance: u8, xml: &str, symbol_size: usize) -> Vec<Vec<u8>> {
    let mut extensions = vec![192, 0x20, 0, instance, 64, 4];
    extensions.extend(&(xml.len() as u64).to_be_bytes()[2..]);
    extensions.extend([0, 0]);
    extensions.extend((symbol_size as u16).to_be_bytes());
    extensions.extend(60_000_u32.to_be_bytes());
    let symbols = xml.as_bytes().chunks(symbol_size).zip(0_u32..);
    let payload = |(symbol, id): (&[u8], u32)| [&id.to_be_bytes(), symbol].concat();
    let payloads = symbols.map(payload);
    payloads.map(|payload| packet([0, 0], 0, Some(0), [&extensions, &payload])).collect()
}

/// Sends packets to a group of the loopback interface until it is stopped, and then the last one.
struct Foreign {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Foreign {
    fn start(place: &str, packets: Vec<Vec<u8>>, last: Option<Vec<u8>>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (is_stopped, place) = (Arc::clone(&stop), place.to_owned());
        let thread = thread::spawn(move || {
            // The kernel takes the interface of the source address.
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !is_stopped.load(Ordering::Relaxed) {
                for packet in &packets {
                    socket.send_to(packet, &place).unwrap();
                }
                thread::sleep(Duration::from_millis(50));
            }
            if let Some(packet) = last {
                socket.send_to(&packet, &place).unwrap();
            }
        });
        Self { stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

#[test]
fn packets_of_route_are_named_as_such() {
    let (directory, place) = (tempfile::tempdir().unwrap(), place());
    let fragment = packet([SOURCE_PACKET, 0], 8, Some(1), [&[], &[0; 100]]);
    let sender = Foreign::start(&place, vec![fragment], None);
    let words = format!("recv --flute -y -i lo --json --timeout 1 --group {place} -o");
    let received = run(&arguments(&words, &[directory.path()])).expect(75);
    let message = received.event("error")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("is ROUTE (ATSC A/331), not FLUTE"), "{message}");
    sender.stop();
}

#[test]
fn a_table_with_defects_is_read_and_its_session_ends_when_the_sender_closes_it() {
    let (directory, place) = (tempfile::tempdir().unwrap(), place());
    let xml = r#"<FDT-Instance Expires="3786825600" FEC-OTI-FEC-Encoding-ID="0"
        FEC-OTI-Maximum-Source-Block-Length="9" FEC-OTI-Encoding-Symbol-Length="9">
        <File TOI="1" Content-Location="urn:a:1" Content-Length="5" Content-MD5="none"/>
        </FDT-Instance>"#;
    let file = packet([0, 0], 0, Some(1), [&[], b"\0\0\0\0hello"]);
    let close = packet([0, CLOSE_SESSION], 0, None, [&[], &[]]);
    let sender = Foreign::start(&place, vec![table(1, xml), file], Some(close));
    let words = format!("recv --flute -y -i lo --json --timeout 60 --group {place} -o");
    let mut receiver = Running::start(&arguments(&words, &[directory.path()]));
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("all_announced_received")) {
        lines.push(receiver.line());
    }
    sender.stop();
    let ended = receiver.wait().expect(0);
    let warned = |what| lines.iter().any(|l| l.contains(r#""warning""#) && l.contains(what));
    assert!(warned("expired") && warned("urn:a:1 is no MD5"), "{lines:?}");
    assert!(ended.stdout.contains(r#"{"event":"session_closed"}"#), "{}", ended.stdout);
    assert_eq!(std::fs::read(directory.path().join("urn%3Aa%3A1")).unwrap(), b"hello");
}

#[test]
fn a_watched_session_is_received_until_it_is_stopped() {
    let (directory, place) = (tempfile::tempdir().unwrap(), place());
    let xml = |files: &str| {
        let head = r#"<FDT-Instance Expires="4086825600" FEC-OTI-FEC-Encoding-ID="0"
            FEC-OTI-Maximum-Source-Block-Length="9" FEC-OTI-Encoding-Symbol-Length="9">"#;
        format!("{head}{files}</FDT-Instance>")
    };
    let file = |toi: u32| packet([0, 0], 0, Some(toi), [&[], b"\0\0\0\0hello"]);
    let [one, two] = [1, 2].map(|toi| {
        format!(r#"<File TOI="{toi}" Content-Location="file{toi}" Content-Length="5"/>"#)
    });
    let words = format!("recv --flute --watch -y -i lo --json --group {place} -o");
    let mut receiver = Running::start(&arguments(&words, &[directory.path()]));
    for (toi, files) in [(1, one.clone()), (2, format!("{one}{two}"))] {
        let packets = vec![table(toi as u8, &xml(&files)), file(toi)];
        let sender = Foreign::start(&place, packets, None);
        while !receiver.line().contains("all_announced_received") {}
        sender.stop();
    }
    receiver.stop().expect(0);
    for name in ["file1", "file2"] {
        assert_eq!(std::fs::read(directory.path().join(name)).unwrap(), b"hello");
    }
}

#[test]
fn tables_of_many_files_take_no_more_memory_than_was_given() {
    let (directory, place) = (tempfile::tempdir().unwrap(), place());
    let tables = |instances: std::ops::Range<u32>, count: u32| {
        let file = move |toi| {
            format!(r#"<File TOI="{toi}" Content-Location="f/{toi}" Content-Length="9"/>"#)
        };
        let table = move |instance: u32| {
            let files: String =
                (1..=count).map(|number| file(instance * 10_000 + number)).collect();
            let head = r#"<FDT-Instance Expires="4086825600" FEC-OTI-FEC-Encoding-ID="0"
                FEC-OTI-Maximum-Source-Block-Length="9" FEC-OTI-Encoding-Symbol-Length="9">"#;
            let xml = format!("{head}{files}</FDT-Instance>");
            table_in_symbols(instance as u8, &xml, 1_400)
        };
        instances.flat_map(table)
    };
    // The first ones can be read, the others are too long.
    let packets = tables(1..5, 1_000).chain(tables(5..12, 9_000)).collect();
    let sender = Foreign::start(&place, packets, None);
    let words = format!("recv --flute -y -i lo --json --memory 32M --timeout 5 --group {place} -o");
    let events = directory.path().join("events");
    let mut receiver = fontana()
        .args(arguments(&words, &[&directory.path().join("into")]))
        .stdout(File::create(&events).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    let ended = loop {
        peak = peak_memory(receiver.id()).max(peak);
        if let Some(ended) = receiver.try_wait().unwrap() {
            break ended;
        }
        thread::sleep(Duration::from_millis(50));
    };
    sender.stop();
    let events = std::fs::read_to_string(events).unwrap();
    let found = events.matches(r#""event":"file_found""#).count();
    println!("{} MiB, {found} files, {} bytes of events", peak >> 20, events.len());
    assert_eq!(ended.code(), Some(6), "files beyond the limit are refused");
    assert!((500..2_000).contains(&found), "{found} files");
    assert!(peak < 48 << 20, "{peak} bytes");
    assert!(events.len() < 1 << 20, "{} bytes of events", events.len());
}
