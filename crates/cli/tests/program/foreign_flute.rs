//! What `recv --flute` says of the sessions of other senders, which are made packet by packet.

use crate::support::{Run, Running, arguments, fontana, noise, peak_memory, place, run};
use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
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

/// Bytes of a symbol of [`LiveFile`].
const SYMBOL: usize = 1_000;

/// A file of a sender that lives: it changes files, and is started again.
struct LiveFile {
    toi: u32,
    name: &'static str,
    bytes: Vec<u8>,
    /// Further attributes.
    more: &'static str,
}

impl LiveFile {
    fn new(toi: u32, name: &'static str, seed: u64) -> Self {
        Self { toi, name, bytes: noise(5_120, seed), more: "" }
    }

    fn packets(&self) -> Vec<Vec<u8>> {
        let symbols = self.bytes.chunks(SYMBOL).zip(0_u32..);
        let payload = |(symbol, esi): (&[u8], u32)| [&esi.to_be_bytes(), symbol].concat();
        let payloads = symbols.map(payload);
        payloads.map(|payload| packet([0, 0], 0, Some(self.toi), [&[], &payload])).collect()
    }
}

fn live_table(instance: u8, files: &[&LiveFile], complete: bool) -> Vec<u8> {
    table_until(VALID, instance, files, complete)
}

/// Times at which tables expire: in 2029, and in 2020.
const VALID: u32 = 4_086_825_600;
const EXPIRED: u32 = 3_786_825_600;

fn table_until(expires: u32, instance: u8, files: &[&LiveFile], complete: bool) -> Vec<u8> {
    let entries = files.iter().map(|file| {
        let LiveFile { toi, name, bytes, more } = file;
        let length = bytes.len();
        format!(r#"<File TOI="{toi}" Content-Location="{name}" Content-Length="{length}" {more}/>"#)
    });
    let complete = if complete { r#" Complete="true""# } else { "" };
    let head = format!(
        r#"<FDT-Instance xmlns="urn:ietf:params:xml:ns:fdt" Expires="{expires}"{complete}
        FEC-OTI-FEC-Encoding-ID="0" FEC-OTI-Maximum-Source-Block-Length="64"
        FEC-OTI-Encoding-Symbol-Length="{SYMBOL}">"#
    );
    table(instance, &format!("{head}{}</FDT-Instance>", entries.collect::<String>()))
}

/// Receives what a sender sends in each of its phases: until this event, and at last to the end.
/// `into`: a directory, or a file if the options end with `--to`.
fn live(phases: Vec<(Vec<Vec<u8>>, &str)>, options: &str, into: &Path) -> Run {
    let place = place();
    let output = if options.ends_with("--to") { "" } else { "-o" };
    let words = format!("recv -y -i lo --json --group {place} {options} {output}");
    let mut receiver = Running::start(&arguments(&words, &[into]));
    let mut lines = Vec::new();
    let mut senders = Vec::new();
    for (packets, until) in phases {
        senders.drain(..).for_each(Foreign::stop);
        senders.push(Foreign::start(&place, packets, None));
        while !until.is_empty() && !lines.last().is_some_and(|l: &String| l.contains(until)) {
            lines.push(receiver.line());
        }
    }
    let mut run = receiver.wait();
    senders.drain(..).for_each(Foreign::stop);
    let seen: String = lines.iter().map(|line| format!("{line}\n")).collect();
    run.stdout.insert_str(0, &seen);
    run
}

fn sent(instance: u8, files: &[&LiveFile], complete: bool) -> Vec<Vec<u8>> {
    let content = files.iter().flat_map(|file| file.packets());
    std::iter::once(live_table(instance, files, complete)).chain(content).collect()
}

fn has(into: &Path, file: &LiveFile) -> bool {
    std::fs::read(into.join(file.name)).is_ok_and(|bytes| bytes == file.bytes)
}

const DONE: &str = r#""event":"object_done""#;

#[test]
fn an_update_of_a_file_replaces_it() {
    let into = tempfile::tempdir().unwrap();
    let [old, new] = [1, 2].map(|toi| LiveFile::new(toi, "a.bin", toi.into()));
    let phases = vec![(sent(1, &[&old], false), DONE), (sent(2, &[&new], false), DONE)];
    let run = live(phases, "--flute --silence 2", into.path()).expect(0);
    assert!(has(into.path(), &new), "{}", run.stdout);
    assert!(run.stdout.contains(r#"{"event":"updated","object":2,"name":"a.bin"}"#));
    assert!(!run.stderr.contains("two files are named"), "{}", run.stderr);
}

#[test]
fn a_wrong_byte_in_one_packet_is_received_again() {
    let into = tempfile::tempdir().unwrap();
    let more = r#"Content-MD5="zfQqpA3V1StQTooGgTa5BQ==""#;
    let bytes: Vec<u8> = (0..20).flat_map(|_| 0..=u8::MAX).collect();
    let right = LiveFile { bytes: bytes.clone(), more, ..LiveFile::new(1, "a.bin", 1) };
    let mut wrong = LiveFile { bytes, more, ..LiveFile::new(1, "a.bin", 1) };
    wrong.bytes[0] ^= 1;
    let dropped = r#""event":"object_dropped""#;
    let phases = vec![(sent(1, &[&wrong], true), dropped), (sent(1, &[&right], true), "")];
    live(phases, "--flute --timeout 30", into.path()).expect(0);
    assert!(has(into.path(), &right));
}

#[test]
fn a_sender_that_starts_again_with_another_file_is_followed() {
    let into = tempfile::tempdir().unwrap();
    let (first, second) = (LiveFile::new(1, "a.bin", 1), LiveFile::new(1, "b.bin", 2));
    let part = sent(1, &[&first], false).into_iter().take(4).collect();
    let found = r#""event":"file_found""#;
    let phases = vec![(part, found), (sent(2, &[&second], false), DONE)];
    live(phases, "--flute --silence 2", into.path()).expect(0);
    assert!(has(into.path(), &second) && !into.path().join("a.bin").exists());
}

#[test]
fn a_table_without_files_is_said_and_an_invalid_entry_loses_no_other_file() {
    let into = tempfile::tempdir().unwrap();
    let run = live(vec![(sent(1, &[], true), "")], "--flute --timeout 1", into.path()).expect(75);
    let said = run.event("error")["message"].as_str().unwrap().to_owned();
    assert!(said.contains("lists no file") && !said.contains("no table"), "{said}");
    let (zero, good) = (LiveFile::new(0, "z.bin", 1), LiveFile::new(1, "a.bin", 2));
    let packets = [vec![live_table(1, &[&zero, &good], false)], good.packets()].concat();
    let run = live(vec![(packets, DONE)], "--flute --silence 2", into.path()).expect(0);
    assert!(has(into.path(), &good));
    assert!(!run.stdout.contains("another version of Fontana"), "{}", run.stdout);
    let warnings = run.events().into_iter().filter(|event| event["event"] == "warning");
    let named: Vec<_> = warnings.map(|event| event["message"].to_string()).collect();
    assert!(named.iter().any(|said| said.contains("z.bin is not received")), "{named:?}");
}

#[test]
fn plain_flute_is_recognised_without_a_ticket() {
    let into = tempfile::tempdir().unwrap();
    let file = LiveFile::new(1, "a.bin", 1);
    let run = live(vec![(sent(1, &[&file], true), "")], "--timeout 30", into.path()).expect(0);
    assert!(has(into.path(), &file));
    let found = run.event("flute_found");
    assert_eq!((found["tsi"].as_u64(), found["files"].as_u64()), (Some(7), Some(1)));
    assert_eq!(run.event("summary")["verified"], "none");
    // What these ask for takes a manifest.
    let audit = into.path().join("audit");
    let words = format!("--timeout 5 --audit {}", audit.display());
    live(vec![(sent(1, &[&file], true), "")], &words, into.path()).expect(75);
}

#[test]
fn the_names_of_plain_flute_are_listed() {
    let into = tempfile::tempdir().unwrap();
    let files = [LiveFile::new(1, "a.bin", 1), LiveFile::new(2, "b%20c.bin", 2)];
    let packets = sent(1, &[&files[0], &files[1]], false);
    let run = live(vec![(packets, "")], "--flute --list", into.path()).expect(0);
    let entries = run.events().into_iter().filter(|event| event["event"] == "entry");
    let names: Vec<_> = entries.map(|event| event["name"].clone()).collect();
    assert_eq!(names, ["a.bin", "b c.bin"], "as they are selected");
    assert_eq!(std::fs::read_dir(into.path()).unwrap().count(), 0);
}

/// The program runs when the first file is there, and once for all that come while it runs.
#[test]
fn a_program_runs_after_changes_of_a_watched_session() {
    let directory = tempfile::tempdir().unwrap();
    let (place, log) = (place(), directory.path().join("log"));
    let words = format!("recv --flute --watch -y -i lo --json --group {place} -o");
    let mut line = arguments(&words, &[&directory.path().join("into")]);
    let script = format!("echo $FONTANA_FILES >> {}; sleep 2", log.display());
    line.extend(["--exec", "sh", "-c", &script].map(str::to_owned));
    let mut receiver = Running::start(&line);
    for version in 1..=4_u8 {
        let file = LiveFile::new(version.into(), "a.bin", version.into());
        let sender = Foreign::start(&place, sent(version, &[&file], false), None);
        while !receiver.line().contains(DONE) {}
        sender.stop();
        // More than one version a second is refused.
        thread::sleep(Duration::from_millis(800));
    }
    receiver.stop().expect(0);
    let runs = std::fs::read_to_string(log).unwrap();
    let runs: Vec<_> = runs.lines().collect();
    assert!(runs.first() == Some(&"1") && runs.last() == Some(&"4"), "{runs:?}");
    assert!(runs.len() < 4, "{runs:?}");
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

/// A session of several tables: the first one has expired.
#[test]
fn a_file_whose_table_has_expired_is_deleted_when_a_valid_one_does_not_name_it() {
    let into = tempfile::tempdir().unwrap();
    let [a, b] = [LiveFile::new(1, "a.bin", 1), LiveFile::new(2, "d/b.bin", 2)];
    let tables = vec![table_until(EXPIRED, 1, &[&a, &b], false), live_table(2, &[&a], false)];
    let packets = [tables, a.packets(), b.packets()].concat();
    let deleted = r#"{"event":"deleted","name":"d/b.bin"}"#;
    for options in ["--flute --delete --silence 2", "--flute --silence 2"] {
        let deletes = options.contains("--delete");
        let until = if deletes { deleted } else { DONE };
        let options =
            if deletes { options.to_owned() } else { format!("{options} --existing replace") };
        let run = live(vec![(packets.clone(), until)], &options, into.path()).expect(0);
        assert!(has(into.path(), &a), "{}", run.stdout);
        assert_eq!(has(into.path(), &b), !deletes, "{}", run.stdout);
        assert_eq!(run.stdout.contains(deleted), deletes, "{}", run.stdout);
    }
}

/// What the user has changed, and what was there before, stays.
#[test]
fn files_of_earlier_runs_are_deleted_when_a_later_one_does_not_name_them() {
    let names = ["a.bin", "b.bin", "changed.bin", "valid.bin"];
    let [a, b, changed, valid] =
        [0, 1, 2, 3].map(|at| LiveFile::new(at as u32 + 1, names[at], at as u64 + 1));
    for options in ["--flute --delete --timeout 30", "--flute --delete --watch"] {
        let into = tempfile::tempdir().unwrap();
        std::fs::write(into.path().join("mine"), "mine").unwrap();
        let first = vec![
            table_until(EXPIRED, 1, &[&a, &b, &changed], false),
            live_table(2, &[&valid], true),
        ];
        let files = [&a, &b, &changed, &valid].map(LiveFile::packets).concat();
        let run = "--flute --delete --timeout 30";
        live(vec![([first, files].concat(), "")], run, into.path()).expect(0);
        assert!([&a, &b, &changed, &valid].iter().all(|file| has(into.path(), file)));
        std::fs::write(into.path().join("changed.bin"), "changed").unwrap();
        let (place, words) = (place(), format!("recv -y -i lo --json {options}"));
        let later = table_until(EXPIRED, 7, &[&a], false);
        let packets = [vec![later, live_table(8, &[&a], true)], a.packets()].concat();
        let sender = Foreign::start(&place, packets, None);
        let words = format!("{words} --group {place} -o");
        let mut receiver = Running::start(&arguments(&words, &[into.path()]));
        while !receiver.line().contains(r#"{"event":"deleted","name":"b.bin"}"#) {}
        let run = if options.contains("watch") { receiver.stop() } else { receiver.wait() };
        sender.stop();
        run.expect(0);
        assert!(has(into.path(), &a) && has(into.path(), &valid) && !has(into.path(), &b));
        assert!(into.path().join("mine").exists() && into.path().join("changed.bin").exists());
    }
}

#[test]
fn the_only_file_of_a_session_gets_the_name_that_the_user_gives_it() {
    let into = tempfile::tempdir().unwrap();
    let file = into.path().join("file");
    let [a, b] = [LiveFile::new(1, "x/a.bin", 1), LiveFile::new(2, "b.bin", 2)];
    let is = |sent: &LiveFile| std::fs::read(&file).is_ok_and(|bytes| bytes == sent.bytes);
    let one = || vec![(sent(1, &[&a], true), "")];
    let two = || vec![(sent(1, &[&a, &b], true), "")];
    live(one(), "--flute --timeout 30 --to", &file).expect(0);
    assert!(is(&a));
    live(one(), "--flute --timeout 30 --to", &file).expect(6);
    live(two(), "--flute --timeout 30 --existing replace --only b.bin --to", &file).expect(0);
    assert!(is(&b));
    let run = live(two(), "--flute --timeout 30 --existing replace --to", &file).expect(2);
    assert!(is(&a), "the first one");
    let said = run.event("object_failed")["message"].as_str().unwrap().to_owned();
    assert!(said.contains("a second file beside"), "{said}");
    let run = live(two(), "--flute --timeout 30 --only nosuch", into.path()).expect(2);
    assert!(run.stderr.contains("is what was asked for; it has x/a.bin, b.bin"), "{}", run.stderr);
    let others = std::fs::read_dir(into.path()).unwrap().count();
    assert_eq!(others, 1);
    for (options, to) in [
        ("--flute --to", Path::new("-")),
        ("--flute --to", into.path()),
        ("--flute --watch --to", &file),
        ("--only b.bin --to", &file),
    ] {
        live(vec![(Vec::new(), "")], options, to).expect(2);
    }
}

/// A head that is late: the session was recognised as plain FLUTE before.
#[test]
fn a_head_ends_a_session_that_was_taken_for_plain_flute() {
    let into = tempfile::tempdir().unwrap();
    let [whole, part] = [LiveFile::new(1, "a.bin", 1), LiveFile::new(2, "b.bin", 2)];
    let table = live_table(1, &[&whole, &part], true);
    let one = part.packets().remove(0);
    let content = [vec![table], whole.packets(), vec![one]].concat();
    let head = [&[0; 4][..], b"FONTANA\x01", &[0; 64]].concat();
    let head = packet([0, 0], 0, Some(u32::MAX), [&[], &head]);
    let phases = vec![(content.clone(), DONE), ([vec![head], content].concat(), "")];
    let run = live(phases, "--timeout 60", into.path()).expect(3);
    let said = run.event("error")["message"].as_str().unwrap().to_owned();
    assert!(said.contains("no plain FLUTE: a head of Fontana"), "{said}");
    assert!(run.stdout.contains(r#""event":"flute_found""#), "{}", run.stdout);
    assert!(has(into.path(), &whole), "what was complete stays");
    assert_eq!(std::fs::read_dir(into.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn other_sessions_of_the_group_are_named_with_their_tickets() {
    let into = tempfile::tempdir().unwrap();
    let place = place();
    let [a, b] = [LiveFile::new(1, "a.bin", 1), LiveFile::new(1, "b.bin", 2)];
    let mut other = sent(1, &[&b], true);
    for packet in &mut other {
        // The TSI, after the first word and the CCI.
        packet[11] = 8;
    }
    let [first, second] = [sent(1, &[&a], true), other];
    let (table, content) = first.split_at(1);
    let sender = Foreign::start(&place, [table, &second, content].concat(), None);
    let words = format!("recv --flute -y -i lo --timeout 30 --group {place} -o");
    let received = run(&arguments(&words, &[into.path()])).expect(0);
    let ticket = format!("fontana://127.0.0.1@{place}/8");
    let said = received.stdout + &received.stderr;
    let line = format!("another session is here: fontana recv '{ticket}?format=flute'");
    assert_eq!(said.matches(&line).count(), 1, "{said}");
    let words = format!("recv --flute -i lo --timeout 30 {ticket} -o");
    run(&arguments(&words, &[into.path()])).expect(0);
    sender.stop();
    assert!(has(into.path(), &a) && has(into.path(), &b));
}

#[test]
fn a_sender_says_what_other_programs_read() {
    let directory = tempfile::tempdir().unwrap();
    let [short, long] = ["short", "long"].map(|name| directory.path().join(name));
    std::fs::write(&short, "short").unwrap();
    File::create(&long).unwrap().set_len((10 << 20) + 1).unwrap();
    let said = |words: &str, file: &Path| {
        let sent = run(&arguments(&format!("send -i lo --dry-run {words}"), &[file])).expect(0);
        sent.stdout + &sent.stderr
    };
    for (words, file, says, beyond) in [
        ("--flute", &short, true, false),
        ("--flute", &long, true, true),
        ("--flute=2", &long, false, false),
        ("--flute --fec raptorq", &long, false, false),
    ] {
        let text = said(words, file);
        assert_eq!(text.contains("which most programs read"), says, "{text}");
        assert_eq!(text.contains("GPAC reads those of one block"), beyond, "{text}");
        assert!(!text.contains("RFC 5775"), "{text}");
    }
    assert!(
        said("--flute --to 239.255.77.1:7701/0", &short)
            .contains("0 is no session number of ALC (RFC 5775")
    );
}
