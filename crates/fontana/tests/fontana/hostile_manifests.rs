//! Manifests of a hostile publisher whose key is trusted: they lead out of the target directory, or
//! are too large. Their hash is the ticket's, so only the checks of names and numbers refuse them.

use fontana::wire::{
    CongestionControl, ContentKind, DirectoryEntry, Entry, FileEntry, Hash, HeadRecords,
    HeaderFields, InstanceId, Manifest, Metadata, ObjectRef, RelativePath, SessionHead,
    SymlinkEntry, Ticket, Toi, Tsi, emit_payload_id, manifest_hash,
};
use fontana::{CancellationToken, Outcome, ReceiveReport, Receiver, Rejection};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{Esi, FecScheme, Oti, Sbn};
use std::ffi::OsStr;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

mod names;
mod raw;

use raw::Raw;

const TSI: Tsi = Tsi(77);
/// No port that systems give to sockets that ask for any.
const PORT: u16 = 20_077;
/// Room for a head, as senders have it.
const SYMBOL_SIZE: u16 = 1328;

fn file(path: impl AsRef<[u8]>) -> Entry {
    let path = RelativePath::new(path).unwrap();
    Entry::File(FileEntry { path, metadata: Metadata::default(), segments: Vec::new() })
}

fn directory(path: &str) -> Entry {
    let path = RelativePath::new(path).unwrap();
    Entry::Directory(DirectoryEntry {
        path,
        metadata: Metadata { mode: 0o755, ..Metadata::default() },
    })
}

fn link(path: &str, target: &str) -> Entry {
    let path = RelativePath::new(path).unwrap();
    Entry::Symlink(SymlinkEntry { path, target: target.into() })
}

fn manifest(entries: Vec<Entry>) -> Vec<u8> {
    Manifest::new(1, "gift", Vec::new(), entries).unwrap().emit()
}

fn packet(tsi: Tsi, toi: Toi, oti: Oti, sbn: u32, bytes: &[u8]) -> Vec<u8> {
    let encoding_id = oti.scheme.profile().encoding_id;
    let mut packet = Vec::new();
    let fields = HeaderFields::new(tsi, Some(toi));
    HeaderFields { codepoint: encoding_id.0, fti: Some(oti), ..fields }.emit(&mut packet);
    emit_payload_id(encoding_id, Sbn(sbn), Esi(0), &mut packet);
    packet.extend(bytes);
    packet
}

/// The packets of a session that has this manifest, and nothing else.
fn packets(tsi: Tsi, manifest: &[u8]) -> Vec<Vec<u8>> {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
    let oti =
        |length: usize| Oti { transfer_length: length as u64, symbol_size: SYMBOL_SIZE, scheme };
    let toi = Toi::MANIFEST.0 as u32;
    let head = SessionHead {
        instance: InstanceId([7; 16]),
        manifest_version: 1,
        kind: ContentKind::Manifest,
        manifest: ObjectRef { toi, oti: oti(manifest.len()), hash: manifest_hash(manifest) },
        expires_unix_seconds: None,
        rate_bytes_per_second: NonZeroU64::new(1_000_000),
        congestion_control: CongestionControl::FixedRate,
        records: HeadRecords::default(),
    };
    let mut head = head.emit(None);
    head.resize(usize::from(SYMBOL_SIZE), 0);
    let mut packets = vec![packet(tsi, Toi::HEAD, oti(head.len()), 0, &head)];
    for (sbn, symbol) in (0..).zip(manifest.chunks(usize::from(SYMBOL_SIZE))) {
        packets.push(packet(tsi, Toi::MANIFEST, oti(manifest.len()), sbn, symbol));
    }
    packets
}

/// Receives what is described by `manifest`, which is all that is sent.
fn receive(manifest: &[u8], into: &Path) -> ReceiveReport {
    receive_packets(packets(TSI, manifest), Some(manifest_hash(manifest)), into)
}

fn receive_packets(packets: Vec<Vec<u8>>, hash: Option<Hash>, into: &Path) -> ReceiveReport {
    // An address of this reception alone: a port that is free at this moment can be taken at the
    // next one.
    static RECEPTIONS: AtomicU16 = AtomicU16::new(1);
    let [high, low] = RECEPTIONS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let here = SocketAddr::from(([127, 9, high, low], PORT));
    let ticket = Ticket { manifest: hash, ..Ticket::new(here, TSI) };
    let receiver = Receiver::from_ticket(&ticket)
        .into_dir(into)
        .interfaces(vec!["127.0.0.1".parse().unwrap()])
        // Without a hash, the first valid session is accepted.
        .tsi(hash.map(|_| TSI))
        .timeout(Some(Duration::from_secs(20)))
        .start()
        .unwrap();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let sending = std::thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        while !stopped.is_cancelled() {
            for batch in packets.chunks(32) {
                for packet in batch {
                    // Refused while no socket listens.
                    let _ = socket.send_to(packet, here);
                }
                std::thread::sleep(Duration::from_millis(1));
                if stopped.is_cancelled() {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let summary = receiver.join().unwrap();
    stop.cancel();
    sending.join().unwrap();
    summary
}

fn names_in(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_honest_manifest_of_this_kind_is_received() {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("into");
    let entries =
        vec![directory("a"), file("a/b"), file("a/c"), link("a/l", "../../outside"), file("A")];
    let summary = receive(&manifest(entries), &into);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    assert_eq!(names_in(&into), ["A", "a"]);
    assert_eq!(names_in(&into.join("a")), ["b", "c", "l"]);
    assert_eq!(names_in(root.path()), ["into"]);
}

#[test]
fn an_honest_session_beside_hostile_ones_is_received() {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("into");
    let hostile = [
        Raw::of([raw::file(b"../x")]).emit(),
        Raw::of([raw::link(b"a", b"/tmp"), raw::file(b"a/b")]).emit(),
        raw::contradictions().remove(0).1,
    ];
    let honest = manifest(vec![file("a/b"), link("c", "a")]);
    let all = hostile.iter().chain([&honest]);
    let packets = (TSI.0..).zip(all).flat_map(|(tsi, manifest)| packets(Tsi(tsi), manifest));
    let summary = receive_packets(packets.collect(), None, &into);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    let bad = summary.rejections.iter().filter(|one| one.reason == Rejection::BadManifest);
    assert_eq!(bad.count(), hostile.len(), "{:?}", summary.rejections);
    assert_eq!(names_in(&into), ["a", "c"]);
    assert_eq!(names_in(root.path()), ["into"]);
}

/// Receives each of the manifests, several at a time, because most of the time is waiting. None of
/// them may leave a file anywhere.
#[track_caller]
fn assert_all(cases: Vec<(String, Vec<u8>)>, outcome: Outcome) {
    let cases = std::sync::Mutex::new(cases.into_iter());
    let next = || cases.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while let Some((what, manifest)) = next() {
                    let root = tempfile::tempdir().unwrap();
                    let into = root.path().join("into");
                    let summary = receive(&manifest, &into);
                    assert_eq!(summary.outcome, outcome, "{what}: {:?}", summary.failures);
                    assert!(names_in(&into).is_empty(), "{what}");
                    assert_eq!(names_in(root.path()), ["into"], "{what}");
                }
            });
        }
    });
}

#[test]
fn a_manifest_with_a_name_that_leads_elsewhere_is_no_manifest() {
    let names = names::that_are_none();
    assert!(names.len() >= 40);
    let cases = names.into_iter().flat_map(|name| {
        let shown = || String::from_utf8_lossy(&name[..name.len().min(80)]).into_owned();
        let kinds = [
            ("file", raw::file(&name)),
            ("directory", raw::directory(&name)),
            ("link", raw::link(&name, b"elsewhere")),
        ];
        kinds.map(|(kind, entry)| (format!("{kind} {:?}", shown()), Raw::of([entry]).emit()))
    });
    assert_all(cases.collect(), Outcome::VerificationFailed);
}

#[test]
fn a_name_that_only_looks_dangerous_is_received_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("into");
    let names = names::that_are_harmless_here();
    assert!(names.len() >= 60);
    let entries: Vec<Entry> = names.iter().map(file).collect();
    let summary = receive(&manifest(entries), &into);
    assert_eq!(summary.outcome, Outcome::Complete, "{:?}", summary.failures);
    for name in &names {
        let path = into.join(OsStr::from_bytes(name));
        assert!(path.symlink_metadata().is_ok_and(|found| found.is_file()), "{path:?}");
    }
    let top: std::collections::BTreeSet<_> =
        names.iter().map(|name| name.split(|&byte| byte == b'/').next().unwrap()).collect();
    assert_eq!(std::fs::read_dir(&into).unwrap().count(), top.len(), "and nothing else");
    assert_eq!(names_in(root.path()), ["into"]);
}

#[test]
fn a_manifest_that_contradicts_itself_is_no_manifest() {
    let cases = raw::contradictions();
    assert!(cases.len() >= 30);
    let cases = cases.into_iter().map(|(what, raw)| (what.to_owned(), raw));
    assert_all(cases.collect(), Outcome::VerificationFailed);
}

#[test]
fn a_name_that_belongs_to_staging_is_refused() {
    let staging = format!(".fontana-{}", "0a".repeat(32));
    let entries = [
        file(&staging),
        file(".fontana-flute-10-0-0-7-5"),
        file(format!("{staging}/0")),
        directory(".fontana-pipe-0123456789abcdef"),
        directory(".fontana-mark-flute-10-0-0-7-5/y"),
        link(&staging, "/tmp"),
        link(&format!("{staging}/journal"), "/dev/null"),
    ];
    let case = |entry: Entry| {
        let what = entry.path().to_string();
        (what, manifest(vec![file("a"), entry]))
    };
    assert_all(entries.map(case).into(), Outcome::Refused);
}

/// The outcome and the peak memory in MiB of a receiver in a process of its own.
fn receive_apart(kind: &str) -> (String, u64) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "hostile_manifests::receiver_of_a_huge_manifest",
            "--ignored",
            "--nocapture",
        ])
        .env("FONTANA_TEST_MANIFEST", kind)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.split_once("RESULT ")).unwrap_or_else(|| {
        panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    });
    let (outcome, peak) = line.1.split_once(' ').unwrap();
    println!("{kind}: {outcome}, {peak} MiB");
    (outcome.to_owned(), peak.parse().unwrap())
}

/// The receiver of the tests below: a process, because a process's peak is measured.
#[test]
#[ignore = "a process that another test starts"]
fn receiver_of_a_huge_manifest() {
    let Ok(kind) = std::env::var("FONTANA_TEST_MANIFEST") else { return };
    let (packets, hash) = {
        let manifest = raw::huge(&kind);
        (packets(TSI, &manifest), Some(manifest_hash(&manifest)))
    };
    // The sender is in this process too: only the additional memory counts.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let own = status("VmRSS");
    let root = tempfile::tempdir().unwrap();
    let summary = receive_packets(packets, hash, &root.path().join("into"));
    assert!(names_in(&root.path().join("into")).is_empty());
    println!("RESULT {:?} {}", summary.outcome, status("VmHWM") - own);
}

/// A line of the process's status, in MiB (proc(5); writing 5 to `clear_refs` forgets the peak).
fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn ten_million_entries_are_refused_and_cost_little_memory() {
    let cases = [
        // All of them, in 80 MB: the head says so. Any host could claim that, so that the receiver
        // only does not collect the manifest.
        ("ten million", "NothingReceived", 64),
        // A number that the bytes could contain, but above the limit.
        ("more than a million", "VerificationFailed", 64),
        // As many as the limit allows, and the last one is invalid.
        ("a million and a lie", "VerificationFailed", 384),
    ];
    for (kind, expected, limit) in cases {
        let (outcome, peak) = receive_apart(kind);
        assert_eq!(outcome, expected, "{kind}");
        assert!(peak < limit, "{kind}: {peak} MiB");
    }
}
