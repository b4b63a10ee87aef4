//! Checks `docs/wire.md` against the code, which generates the page's worked example here.

use crate::{codes, digests, hex, share, stream};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Oti, Sbn};
use fontana_wire::{
    BlockHasher, Cci, CongestionControl, ContentKind, Entry, FdtExtension, FileEntry, FileRun,
    FreshFrame, FreshIndex, FreshRequest, FreshShare, FreshStart, Hash, HeadRecords, HeaderFields,
    HeldIndex, HeldRun, InstanceId, Manifest, ManifestObject, Metadata, ObjectRef, RelativePath,
    RunHasher, SecretKey, SessionHead, ShelfIndex, ShelfNumber, Ticket, Toi, Tsi, emit_payload_id,
    manifest_hash, object_hash, stream_index_hash,
};
use std::num::NonZeroU64;

const PAGE: &str = include_str!("../../../../docs/wire.md");
const CONTENT: &[u8] = b"hello, world\n";
const TSI: Tsi = Tsi(5);

fn key() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

fn content_oti() -> Oti {
    Oti {
        transfer_length: CONTENT.len() as u64,
        symbol_size: 1404,
        scheme: FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 }),
    }
}

fn manifest() -> Manifest {
    let mut hasher = BlockHasher::new();
    hasher.update(CONTENT);
    let object =
        ManifestObject { toi: 1, oti: content_oti(), block_hashes: vec![hasher.finalize()] };
    let path = RelativePath::new("hello.txt").unwrap();
    let metadata = Metadata { mode: 0o644, mtime_seconds: 1_767_225_600, ..Metadata::default() };
    let file = FileEntry::whole_object(path, metadata, 1, CONTENT.len() as u64);
    Manifest::new(1, "hello.txt", vec![object], vec![Entry::File(file)]).unwrap()
}

/// The manifest with the run that its object is.
fn manifest_with_run() -> Manifest {
    let mut hasher = RunHasher::new();
    hasher.update(CONTENT);
    let run = FileRun { length: CONTENT.len() as u64, hash: hasher.finalize() };
    manifest().with_runs([(1, vec![run])].into()).unwrap()
}

fn control_oti(transfer_length: usize) -> Oti {
    Oti {
        transfer_length: transfer_length as u64,
        symbol_size: 1388,
        scheme: FecScheme::NoCode(NoCode { max_source_block_length: 1 }),
    }
}

fn session_head() -> SessionHead {
    let manifest = manifest().emit();
    SessionHead {
        instance: InstanceId(std::array::from_fn(|i| i as u8)),
        manifest_version: 1,
        kind: ContentKind::Manifest,
        manifest: ObjectRef {
            toi: Toi::MANIFEST.0 as u32,
            oti: control_oti(manifest.len()),
            hash: manifest_hash(&manifest),
        },
        expires_unix_seconds: None,
        rate_bytes_per_second: NonZeroU64::new(12_500_000),
        congestion_control: CongestionControl::FixedRate,
        records: HeadRecords::default(),
    }
}

/// The index of section 16.
pub(crate) fn shelf_index() -> ShelfIndex {
    ShelfIndex {
        manifest: Hash(std::array::from_fn(|byte| byte as u8)),
        number: ShelfNumber::new(3).unwrap(),
        stretch_permille: 400,
    }
}

/// The index of section 17.
pub(crate) fn fresh_index() -> FreshIndex {
    FreshIndex {
        manifest: Hash(std::array::from_fn(|byte| byte as u8)),
        start: FreshStart::new(Esi(0x92_3456)).unwrap(),
    }
}

/// The index of a mirror that is still receiving, of section 17.
pub(crate) fn held_index() -> HeldIndex {
    let run = |toi, first, count| HeldRun { toi, first: Sbn(first), count };
    HeldIndex {
        manifest: Hash(std::array::from_fn(|byte| byte as u8)),
        runs: vec![run(1, 0, 12), run(1, 14, 1), run(2, 0, 3)],
    }
}

/// The request of section 17.
pub(crate) fn fresh_request() -> FreshRequest {
    let share = |sbn, count, start| FreshShare { sbn: Sbn(sbn), count, start };
    FreshRequest { start: 0, blocks: vec![share(0, 500, 0), share(3, 17, 512)] }
}

fn records() -> HeadRecords {
    // The cumulative schedule, and a record that no receiver knows.
    HeadRecords::new([(1, vec![1]), (127, Vec::new())]).unwrap()
}

/// Header and payload id of a packet of Fontana.
fn packet(toi: Toi, sequence: u32, oti: Oti, control: bool, esi: u32) -> Vec<u8> {
    let encoding_id = oti.scheme.profile().encoding_id;
    let fields = HeaderFields {
        cci: Cci::from_u32(sequence),
        codepoint: encoding_id.0,
        fdt: (toi == Toi::FDT).then_some(FdtExtension { version: 2, instance_id: 1 }),
        fti: control.then_some(oti),
        ..HeaderFields::new(TSI, Some(toi))
    };
    let mut out = Vec::new();
    fields.emit(&mut out);
    emit_payload_id(encoding_id, Sbn(0), Esi(esi), &mut out);
    out
}

/// Bytes of the page's block with this name: the hexadecimal digits before the bars.
pub(crate) fn block(name: &str) -> Vec<u8> {
    let start = format!("```text hex {name}\n");
    let (_, rest) = PAGE.split_once(&start).unwrap_or_else(|| panic!("no block {name}"));
    let (body, _) = rest.split_once("```").unwrap();
    let digits: Vec<_> = body.lines().map(|line| line.split('|').next().unwrap()).collect();
    hex(&digits.join(" "))
}

#[test]
fn the_worked_example_of_the_page_is_the_codes_output() {
    let head = session_head().emit(Some(&key()));
    let table = Oti { symbol_size: 1384, ..control_oti(300) };
    let examples = [
        ("manifest", manifest().emit()),
        ("manifest-2", manifest_with_run().emit()),
        ("head", head),
        ("head-2", SessionHead { records: records(), ..session_head() }.emit(None)),
        ("stream-index", stream::sample().emit()),
        ("shelf-index", shelf_index().emit()),
        ("fresh-index", fresh_index().emit()),
        ("held-index", held_index().emit()),
        ("fresh-frame-id", FreshFrame::id(Sbn(3), fresh_index().start.esi(512)).to_vec()),
        ("share-request", share::emitted(&share::messages()[1])),
        ("digest-list", digests::lists(5, 2).remove(2)),
        ("head-packet", packet(Toi::HEAD, 0, control_oti(1388), true, 0)),
        ("fdt-packet", packet(Toi::FDT, 2, table, true, 0)),
        ("source-packet", packet(Toi(1), 3, content_oti(), false, 0)),
        ("tornado-record", codes::record(codes::TORNADO)),
        ("lt-record", codes::record(codes::LT)),
        ("lt-extension", codes::extension(codes::LT)),
        ("lt-packet", packet(Toi(1), 5, codes::LT, false, 12_345)),
        ("repair-packet", packet(Toi(1), 4, content_oti(), false, 0x5E_C0DE)),
    ];
    for (name, bytes) in examples {
        assert_eq!(block(name), bytes, "{name}: {bytes:02x?}");
    }
}

#[test]
fn the_pages_hashes_keys_and_ticket_are_what_the_code_makes() {
    let manifest = manifest();
    let object = &manifest.objects()[0];
    let manifest_hash = manifest_hash(&manifest.emit());
    let ticket = Ticket {
        sources: vec!["10.0.0.7".parse().unwrap()],
        key: Some(key().public_key()),
        manifest: Some(manifest_hash),
        ..Ticket::new("232.1.2.3:7701".parse().unwrap(), TSI)
    };
    assert_eq!(object.hash(), object_hash(13, &object.block_hashes));
    let values = [
        ("block", object.block_hashes[0].to_string()),
        ("object", object.hash().to_string()),
        ("tree", manifest.tree_hash().to_string()),
        ("manifest", manifest_hash.to_string()),
        ("stream index", stream_index_hash(&stream::sample().emit()).to_string()),
        ("public key", key().public_key().to_string()),
        ("ticket", ticket.to_string()),
    ];
    for (what, value) in values {
        assert!(PAGE.contains(&value), "{what}: {value}");
    }
}

/// Probability that the ranges of two senders overlap, and expected number of common symbols of a
/// block.
#[test]
fn the_pages_collision_numbers_are_those_of_its_formulas() {
    let range = |k: f64| f64::from(1 << 24) - k;
    let overlap = |k: f64, m: f64| (2.0 * m - 1.0) / range(k);
    let duplicates = |k: f64, m: f64| m * m / range(k);
    let rows = [(1_000.0, 1_000.0), (10_000.0, 10_000.0), (56_403.0, 56_403.0)];
    for (k, m) in rows {
        let row =
            format!("| {k} | {m} | {:.4} % | {:.3} |", 100.0 * overlap(k, m), duplicates(k, m));
        assert!(PAGE.contains(&row), "{row}");
    }
}

#[test]
fn the_session_number_of_a_manifest_is_the_documented_one() {
    let tsi = Tsi::of_manifest(&manifest_hash(&manifest().emit()));
    assert!(PAGE.contains(&format!("session {tsi}.")), "{tsi}");
    let hash = |first: [u8; 4]| {
        let mut hash = fontana_wire::Hash([0xAA; 32]);
        hash.0[..4].copy_from_slice(&first);
        Tsi::of_manifest(&hash)
    };
    assert_eq!(
        [hash([0; 4]), hash([0, 0, 0, 1]), hash([255; 4])].map(|tsi| tsi.0),
        [1, 1, u32::MAX.into()]
    );
}

#[test]
fn the_request_of_the_page_is_what_a_receiver_asks_for() {
    let FreshIndex { manifest, .. } = fresh_index();
    let path = format!("GET /{}?{}", FreshIndex::symbols_path(manifest, 1), fresh_request());
    assert!(PAGE.lines().any(|line| line == path), "{path}");
    let query = path.split_once('?').unwrap().1;
    assert_eq!(FreshRequest::parse(query), Ok(fresh_request()));
}
