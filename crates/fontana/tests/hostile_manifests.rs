//! A publisher who is trusted by mistake: manifests that lead out of the target directory. Their hash
//! is what the ticket says, so nothing but the rules for names stands between them and the disk.
#![allow(clippy::unwrap_used, clippy::panic)]

use fontana::wire::{
    CongestionControl, ContentKind, DirectoryEntry, Entry, FileEntry, HeaderFields, InstanceId,
    Manifest, Metadata, ObjectRef, RelativePath, SessionHead, SymlinkEntry, Ticket, Toi, Tsi,
    emit_payload_id, manifest_hash,
};
use fontana::{Reach, ReceiveOptions, ReceiveSession, ReceiveSummary, Stop, Verdict};
use fontana_fec::{Esi, FecScheme, Oti, Sbn};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

const TSI: Tsi = Tsi(77);
/// Room for a head, as senders have it.
const SYMBOL_SIZE: u16 = 1328;

fn file(path: &str) -> Entry {
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

/// The same bytes, but with another name of the same length, as no honest writer would put it.
fn with(mut manifest: Vec<u8>, name: &str, other: &str) -> Vec<u8> {
    assert_eq!(name.len(), other.len());
    let at = manifest.windows(name.len()).position(|bytes| bytes == name.as_bytes()).unwrap();
    manifest[at..at + name.len()].copy_from_slice(other.as_bytes());
    manifest
}

fn packet(toi: Toi, oti: Oti, bytes: &[u8]) -> Vec<u8> {
    let encoding_id = oti.scheme.encoding_id();
    let mut packet = Vec::new();
    let fields = HeaderFields::new(TSI, Some(toi));
    HeaderFields { codepoint: encoding_id, fti: Some(oti), ..fields }.emit(&mut packet);
    emit_payload_id(encoding_id, Sbn(0), Esi(0), &mut packet);
    packet.extend(bytes);
    packet
}

/// Receives what is described by `manifest`, which is all that is sent.
fn receive(manifest: &[u8], into: &Path) -> ReceiveSummary {
    let scheme = FecScheme::NoCode { max_source_block_length: 1 };
    let oti =
        |length: usize| Oti { transfer_length: length as u64, symbol_size: SYMBOL_SIZE, scheme };
    let hash = manifest_hash(manifest);
    let toi = Toi::MANIFEST.0 as u32;
    let head = SessionHead {
        instance: InstanceId([7; 16]),
        manifest_version: 1,
        kind: ContentKind::Manifest,
        manifest: ObjectRef { toi, oti: oti(manifest.len()), hash },
        expires_unix_seconds: 0,
        rate_bytes_per_second: 1_000_000,
        congestion_control: CongestionControl::FIXED_RATE,
        channel_count: 1,
    };
    let mut head = head.emit(None);
    head.resize(usize::from(SYMBOL_SIZE), 0);
    let packets = [
        packet(Toi::HEAD, oti(head.len()), &head),
        packet(Toi::MANIFEST, oti(manifest.len()), manifest),
    ];
    // A port that is free for the moment.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let here = SocketAddr::from(([127, 0, 0, 1], port));
    let ticket = Ticket {
        sources: Vec::new(),
        group: here.ip(),
        port,
        tsi: TSI,
        key: None,
        manifest: Some(hash),
    };
    let mut options = ReceiveOptions::from_ticket(&ticket, into);
    options.reach = Reach::to(here);
    options.reach.interface = Some("127.0.0.1".parse().unwrap());
    options.timeout = Some(Duration::from_secs(20));
    let session = ReceiveSession::open(options).unwrap();
    let stop = Stop::new();
    let stopped = stop.clone();
    let sending = std::thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        while !stopped.is_set() {
            for packet in &packets {
                // Refused while nobody listens.
                let _ = socket.send_to(packet, here);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let summary = session.run(&Stop::new(), &mut |_| {}).unwrap();
    stop.set();
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
    assert_eq!(summary.verdict, Verdict::Complete, "{:?}", summary.failures);
    assert_eq!(names_in(&into), ["A", "a"]);
    assert_eq!(names_in(&into.join("a")), ["b", "c", "l"]);
    assert_eq!(names_in(root.path()), ["into"]);
}

#[test]
fn a_manifest_that_leads_out_of_the_target_is_no_manifest() {
    let one = || manifest(vec![file("aa/bb")]);
    let two = || manifest(vec![file("aa/bb"), file("aa/cc")]);
    let below_link = || manifest(vec![link("aa", "/tmp"), file("ab/b")]);
    let hostile = [
        ("upwards", with(one(), "aa/bb", "../bb")),
        ("upwards in the middle", with(one(), "aa/bb", "a/../")),
        ("absolute", with(one(), "aa/bb", "/a/bb")),
        ("the directory itself", with(one(), "aa/bb", "./a/b")),
        ("an empty component", with(one(), "aa/bb", "a//bb")),
        ("a zero byte", with(one(), "aa/bb", "aa/b\0")),
        ("twice the same", with(two(), "aa/cc", "aa/bb")),
        ("in no order", with(two(), "aa/bb", "aa/dd")),
        ("below a link", with(below_link(), "ab/b", "aa/b")),
        ("below a file", with(manifest(vec![file("aa"), file("ab/b")]), "ab/b", "aa/b")),
    ];
    for (what, manifest) in hostile {
        let root = tempfile::tempdir().unwrap();
        let summary = receive(&manifest, &root.path().join("into"));
        assert_eq!(summary.verdict, Verdict::VerificationFailed, "{what}");
        assert!(names_in(&root.path().join("into")).is_empty(), "{what}");
        assert_eq!(names_in(root.path()), ["into"], "{what}");
    }
}

#[test]
fn a_name_that_belongs_to_staging_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let into = root.path().join("into");
    for entry in [file(".fontana-1"), file(".fontana-1/0"), link(".fontana-1", "/tmp")] {
        let summary = receive(&manifest(vec![file("a"), entry]), &into);
        assert_eq!(summary.verdict, Verdict::Refused);
        assert!(summary.failures[0].to_string().contains("staging"), "{:?}", summary.failures);
        assert!(names_in(&into).is_empty());
    }
}
