//! The manifest: one encoding, rules for emitter and parser, limits for receivers.

use crate::{flips, truncations};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use fontana_wire::{
    BlockHasher, DirectoryEntry, Entry, FileEntry, FileRun, Hash, Manifest, ManifestError,
    ManifestLimits, ManifestObject, Metadata, PathError, RelativePath, Segment, SymlinkEntry,
    manifest_hash, object_hash, tree_hash,
};
use proptest::prelude::*;

pub(crate) fn object(toi: u32, transfer_length: u64, source_blocks: u8) -> ManifestObject {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks, sub_blocks: 1, alignment: 4 });
    let oti = Oti { transfer_length, symbol_size: 4, scheme };
    let count = oti.layout().unwrap().block_count() as u8;
    ManifestObject { toi, oti, block_hashes: (0..count).map(|i| Hash([i; 32])).collect() }
}

pub(crate) fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

const METADATA: Metadata =
    Metadata { mode: 0o644, mtime_seconds: 1_767_225_600, mtime_nanoseconds: 5 };

pub(crate) fn file(name: &str, segments: &[Segment]) -> Entry {
    Entry::File(FileEntry { path: path(name), metadata: METADATA, segments: segments.to_vec() })
}

fn directory(name: &str) -> Entry {
    Entry::Directory(DirectoryEntry { path: path(name), metadata: METADATA })
}

fn symlink(name: &str, target: &[u8]) -> Entry {
    Entry::Symlink(SymlinkEntry { path: path(name), target: target.to_vec() })
}

pub(crate) const fn extent(toi: u32, object_offset: u64, length: u64) -> Segment {
    Segment::Extent { toi, object_offset, length }
}

pub(crate) const fn hole(length: u64) -> Segment {
    Segment::Hole { length }
}

/// A tree with small files bundled in object 1, and a large file in objects 2 and 3 with a hole
/// between.
pub(crate) fn sample() -> Manifest {
    Manifest::new(
        9,
        "a tree",
        vec![object(3, 50, 2), object(1, 100, 1), object(2, 1000, 7)],
        vec![
            file("tree/small-2", &[extent(1, 40, 60)]),
            file("tree/small-1", &[extent(1, 0, 40)]),
            directory("tree"),
            symlink("tree/link", b"../small-1"),
            file("tree/large", &[extent(2, 0, 1000), hole(4096), extent(3, 0, 50)]),
            file("tree/empty", &[]),
            file("tree-like", &[hole(1)]),
        ],
    )
    .unwrap()
}

fn position(bytes: &[u8], name: &[u8]) -> usize {
    bytes.windows(name.len()).position(|window| window == name).unwrap()
}

fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    Manifest::parse(bytes, &ManifestLimits::default())
}

fn with_entries(entries: Vec<Entry>) -> Result<Manifest, ManifestError> {
    Manifest::new(1, "", vec![object(1, 100, 1)], entries)
}

#[test]
fn a_tree_is_read_back_in_the_order_of_its_paths() {
    let manifest = sample();
    assert_eq!(parse(&manifest.emit()).as_ref(), Ok(&manifest));
    let names: Vec<_> = manifest.entries().iter().map(|entry| entry.path().to_string()).collect();
    // The order is by components; by bytes, `tree-like` would come between.
    let expected = [
        "tree",
        "tree/empty",
        "tree/large",
        "tree/link",
        "tree/small-1",
        "tree/small-2",
        "tree-like",
    ];
    assert_eq!(names, expected);
    assert_eq!(manifest.object(2).unwrap().oti.transfer_length, 1000);
    assert_eq!(manifest.object(4), None);
    assert_eq!(manifest.transfer_length(), 1150);
    assert_eq!(manifest.content_length(), 40 + 60 + 1000 + 4096 + 50 + 1);
    let large = manifest.files().nth(1).unwrap();
    assert_eq!(large.length(), 5146);
    assert_eq!(large.holes().next(), Some(1000..5096));
    assert_eq!(large.holes().count(), 1);
    let ranges: Vec<_> = large.placed_segments().map(|placed| placed.range).collect();
    assert_eq!(ranges, [0..1000, 1000..5096, 5096..5146]);
}

#[test]
fn an_empty_manifest_and_a_file_that_is_an_object_are_possible() {
    let empty = Manifest::new(0, "", Vec::new(), Vec::new()).unwrap();
    assert_eq!(parse(&empty.emit()), Ok(empty));
    let entry = FileEntry::whole_object(path("f"), METADATA, 1, 100);
    assert_eq!(entry.segments, [extent(1, 0, 100)]);
    assert!(with_entries(vec![Entry::File(entry)]).is_ok());
    assert_eq!(FileEntry::whole_object(path("f"), METADATA, 1, 0).segments, []);
}

#[test]
fn no_truncated_or_flipped_manifest_passes_for_another_encoding_of_the_same() {
    let manifest = sample();
    let bytes = manifest.emit();
    for cut in truncations(&bytes) {
        assert!(parse(cut).is_err());
    }
    for flipped in flips(&bytes) {
        assert_ne!(manifest_hash(&flipped), manifest_hash(&bytes));
        if let Ok(other) = parse(&flipped) {
            assert_ne!(other, manifest);
            assert_eq!(other.emit(), flipped);
        }
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(parse(&longer), Err(ManifestError::TrailingBytes { count: 1 }));
}

/// The sample with runs of its bundle, which has one block, and of an object of two.
pub(crate) fn with_runs() -> Manifest {
    let run = |length, byte| FileRun { length, hash: Hash([byte; 32]) };
    let runs = [(1, vec![run(40, 1), run(60, 2)]), (3, vec![run(28, 3), run(22, 4)])];
    sample().with_runs(runs.into()).unwrap()
}

#[test]
fn a_manifest_with_runs_is_of_format_2() {
    let (plain, manifest) = (sample(), with_runs());
    assert_eq!(plain.runs(1), []);
    assert_eq!(manifest.runs(1).iter().map(|run| run.length).collect::<Vec<_>>(), [40, 60]);
    assert_eq!(manifest.runs(2), []);
    let bytes = manifest.emit();
    assert_eq!((plain.emit()[7], bytes[7]), (1, 2));
    assert_eq!(parse(&bytes), Ok(manifest.clone()));
    let unsettled = manifest.clone().with_unsettled(vec![path("zebra")]).unwrap();
    assert_eq!(parse(&unsettled.emit()), Ok(unsettled));
    // The names of objects, lengths and hashes follow the entries.
    let end = &bytes[plain.emit().len()..];
    let hash = |byte| [byte; 32];
    let expected =
        [&[2, 1, 2, 40][..], &hash(1), &[60], &hash(2), &[2, 2, 28], &hash(3), &[22], &hash(4)];
    assert_eq!(end, expected.concat());
    // Without the runs that its format says.
    let mut empty = plain.emit();
    empty[7] = 2;
    assert!(matches!(parse(&empty), Err(ManifestError::Malformed { .. })));
    empty.push(0);
    assert_eq!(parse(&empty), Err(ManifestError::TrailingBytes { count: 1 }));
    assert_eq!(plain.tree_hash(), manifest.tree_hash());
    assert_ne!(manifest_hash(&plain.emit()), manifest_hash(&bytes));
}

#[test]
fn runs_are_all_of_an_object_and_none_lies_in_two_blocks() {
    let with = |toi: u32, lengths: &[u64]| {
        let run = |&length: &u64| FileRun { length, hash: Hash([0; 32]) };
        let runs = [(toi, lengths.iter().map(run).collect())];
        sample().with_runs(runs.into()).map(drop)
    };
    assert_eq!(with(1, &[100]), Ok(()));
    // Blocks of 28 and 22 bytes.
    assert_eq!(with(3, &[28, 22]), Ok(()));
    let cases: [(u32, &[u64]); 9] = [
        (1, &[]),
        (1, &[99]),
        (1, &[101]),
        (1, &[100, 1]),
        (1, &[0, 100]),
        (1, &[u64::MAX, 101]),
        (3, &[50]),
        (3, &[27, 23]),
        (4, &[1]),
    ];
    for (toi, lengths) in cases {
        let error = ManifestError::Runs { toi: toi.into() };
        assert_eq!(with(toi, lengths), Err(error), "{toi} {lengths:?}");
    }
    let bytes = with_runs().emit();
    for step in [0, 3] {
        let mut wrong = bytes.clone();
        // The first object of the list: 0 is none, and 3 comes later again.
        wrong[sample().emit().len() + 1] = step;
        assert!(matches!(parse(&wrong), Err(ManifestError::Runs { .. })), "{step}");
    }
}

#[test]
fn unsettled_names_follow_the_entries_if_there_are_any() {
    let path = |name: &str| RelativePath::new(name.as_bytes()).unwrap();
    let manifest = sample();
    assert_eq!(manifest.unsettled(), []);
    assert_eq!(manifest.clone().with_unsettled(Vec::new()), Ok(manifest.clone()));
    let names = vec![path("zebra/log"), path("zebra"), path("ant")];
    let unsettled = manifest.clone().with_unsettled(names).unwrap();
    assert_eq!(unsettled.unsettled(), [path("ant"), path("zebra"), path("zebra/log")]);
    let bytes = unsettled.emit();
    assert_eq!(parse(&bytes), Ok(unsettled.clone()));
    assert_eq!(bytes[..manifest.emit().len()], manifest.emit());
    for flipped in flips(&bytes) {
        if let Ok(other) = parse(&flipped) {
            assert_eq!(other.emit(), flipped);
        }
    }
    for end in manifest.emit().len() + 1..bytes.len() {
        assert!(parse(&bytes[..end]).is_err(), "{end}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(parse(&longer), Err(ManifestError::TrailingBytes { count: 1 }));
    let entry = manifest.entries()[0].path().clone();
    for names in [vec![path("a"), path("a")], vec![entry]] {
        let error = ManifestError::Order { path: names[0].clone() };
        assert_eq!(manifest.clone().with_unsettled(names), Err(error));
    }
}

#[test]
fn invalid_manifests_are_refused_with_the_reason() {
    let mut bytes = sample().emit();
    assert_eq!(parse(b""), Err(ManifestError::Magic));
    assert_eq!(parse(b"FONTAN"), Err(ManifestError::Magic));
    assert_eq!(parse(b"FONTANA\x01"), Err(ManifestError::Magic));
    bytes[7] = 3;
    assert_eq!(parse(&bytes), Err(ManifestError::FormatVersion(3)));
}

#[test]
fn nothing_lies_below_a_file_or_a_link_and_no_name_appears_twice() {
    let refused = |parent: Entry, child: Entry| {
        let expected = Err(ManifestError::NotADirectory {
            path: child.path().clone(),
            parent: parent.path().clone(),
        });
        assert_eq!(with_entries(vec![child, parent]), expected);
    };
    refused(symlink("a", b"/etc"), file("a/passwd", &[]));
    refused(symlink("a", b"/etc"), file("a/b/c/passwd", &[]));
    refused(file("a/b", &[]), directory("a/b/c"));
    assert!(with_entries(vec![symlink("a", b"/etc"), file("ab", &[]), file("a-/b", &[])]).is_ok());
    assert!(with_entries(vec![directory("a"), file("a/b", &[])]).is_ok());
    let twice = with_entries(vec![file("a", &[]), symlink("a", b"b")]);
    assert_eq!(twice, Err(ManifestError::Order { path: path("a") }));
}

#[test]
fn entries_and_objects_out_of_order_are_not_read() {
    // Names of equal length, swapped; then a step of 0 between TOIs.
    let entries = vec![file("aaaa", &[]), file("bbbb", &[])];
    let mut bytes = Manifest::new(1, "", Vec::new(), entries).unwrap().emit();
    for at in [position(&bytes, b"aaaa"), position(&bytes, b"bbbb")] {
        bytes[at..at + 4].iter_mut().for_each(|byte| *byte ^= b'a' ^ b'b');
    }
    assert_eq!(parse(&bytes), Err(ManifestError::Order { path: path("aaaa") }));

    let objects = vec![object(1, 4, 1), object(2, 4, 1)];
    let mut bytes = Manifest::new(1, "", objects, Vec::new()).unwrap().emit();
    let second = bytes.len() - 1 - 32 - 1 - 15 - 1;
    assert_eq!(bytes[second], 1);
    bytes[second] = 0;
    assert_eq!(parse(&bytes), Err(ManifestError::Toi(1)));
}

#[test]
fn objects_have_numbers_of_content_and_a_hash_for_each_block() {
    let new = |objects| Manifest::new(1, "", objects, Vec::new()).map(|_| ());
    assert_eq!(new(vec![object(1, 4, 1), object(0xFFFF_FFEF, 4, 1)]), Ok(()));
    for toi in [0, 0xFFFF_FFF0, 0xFFFF_FFFD, 0xFFFF_FFFE, 0xFFFF_FFFF] {
        assert_eq!(new(vec![object(toi, 4, 1)]), Err(ManifestError::Toi(toi.into())));
    }
    let twice = new(vec![object(5, 4, 1), object(5, 8, 1)]);
    assert_eq!(twice, Err(ManifestError::Toi(5)));
    let mut object = object(1, 100, 3);
    object.block_hashes.pop();
    let expected = ManifestError::BlockHashes { toi: 1, expected: 3, actual: 2 };
    assert_eq!(new(vec![object.clone()]), Err(expected));
    object.oti.symbol_size = 0;
    assert!(matches!(new(vec![object]), Err(ManifestError::Oti { toi: 1, .. })));
}

#[test]
fn a_huge_block_count_costs_nothing() {
    // The object claims 65 535 blocks, and no hash follows.
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
    let oti = Oti { transfer_length: 65_535, symbol_size: 1, scheme };
    let object = ManifestObject { toi: 1, oti, block_hashes: vec![Hash([0; 32]); 65_535] };
    let bytes = Manifest::new(1, "", vec![object], Vec::new()).unwrap().emit();
    assert!(matches!(parse(&bytes[..40]), Err(ManifestError::Malformed { .. })));
}

#[test]
fn segments_are_inside_their_objects_and_in_one_form() {
    let reason = |segments: &[Segment]| match with_entries(vec![file("f", segments)]) {
        Err(ManifestError::Segment { segment, reason, .. }) => Err((segment, reason)),
        other => {
            assert!(other.is_ok());
            Ok(())
        }
    };
    assert_eq!(reason(&[extent(1, 0, 100)]), Ok(()));
    assert_eq!(reason(&[extent(1, 99, 1)]), Ok(()));
    assert_eq!(reason(&[extent(1, 0, 101)]), Err((0, "reaches beyond its object")));
    assert_eq!(reason(&[extent(1, 100, 1)]), Err((0, "reaches beyond its object")));
    assert_eq!(reason(&[extent(1, u64::MAX, 2)]), Err((0, "reaches beyond its object")));
    let unlisted = Err((0, "is of an object that the manifest does not list"));
    assert_eq!(reason(&[extent(2, 0, 1)]), unlisted);
    assert_eq!(reason(&[extent(1, 0, 1), hole(0)]), Err((1, "is empty")));
    assert_eq!(reason(&[extent(1, 5, 0)]), Err((0, "is empty")));
    let joined = Err((1, "continues the one before it"));
    assert_eq!(reason(&[hole(1), hole(1)]), joined);
    assert_eq!(reason(&[extent(1, 0, 10), extent(1, 10, 1)]), joined);
    assert_eq!(reason(&[extent(1, 0, 10), extent(1, 11, 1)]), Ok(()));
    assert_eq!(reason(&[extent(1, 0, 10), extent(1, 0, 10)]), Ok(()), "the same bytes again");
    assert_eq!(reason(&[hole(i64::MAX as u64)]), Ok(()));
    let long = Err((1, "makes the file too long"));
    assert_eq!(reason(&[hole(i64::MAX as u64), extent(1, 0, 1)]), long);
    assert_eq!(reason(&[hole(5), extent(1, 0, u64::MAX)]), long);
}

#[test]
fn modes_times_targets_and_labels_have_their_bounds() {
    let metadata = |mode, nanoseconds| {
        let metadata = Metadata { mode, mtime_seconds: i64::MIN, mtime_nanoseconds: nanoseconds };
        with_entries(vec![Entry::Directory(DirectoryEntry { path: path("d"), metadata })])
    };
    assert!(metadata(0o777, 999_999_999).is_ok());
    for (mode, nanoseconds) in [(0o1000, 0), (0o2755, 0), (0o4755, 0), (0o644, 1_000_000_000)] {
        assert!(matches!(metadata(mode, nanoseconds), Err(ManifestError::Metadata { .. })));
    }
    let target = |target: &[u8]| with_entries(vec![symlink("l", target)]);
    assert!(target(&[b'x'; 4095]).is_ok());
    for wrong in [&b""[..], &[b'x'; 4096], b"a\0b"] {
        assert_eq!(target(wrong), Err(ManifestError::Target { path: path("l") }));
    }
    let label = |size| Manifest::new(1, "x".repeat(size), Vec::new(), Vec::new());
    assert!(label(255).is_ok());
    assert_eq!(label(256), Err(ManifestError::Label));
}

#[test]
fn every_limit_holds_at_its_edge() {
    let manifest = sample();
    let bytes = manifest.emit();
    let exact = ManifestLimits {
        bytes: bytes.len(),
        objects: 3,
        entries: 7,
        segments: 6,
        content_length: manifest.content_length(),
    };
    assert_eq!(Manifest::parse(&bytes, &exact), Ok(manifest));
    let tighter = [
        ("bytes", bytes.len() as u64 - 1, ManifestLimits { bytes: bytes.len() - 1, ..exact }),
        ("objects", 2, ManifestLimits { objects: 2, ..exact }),
        ("entries", 6, ManifestLimits { entries: 6, ..exact }),
        ("segments", 5, ManifestLimits { segments: 5, ..exact }),
        (
            "bytes of content",
            exact.content_length - 1,
            ManifestLimits { content_length: exact.content_length - 1, ..exact },
        ),
    ];
    for (what, limit, limits) in tighter {
        assert_eq!(Manifest::parse(&bytes, &limits), Err(ManifestError::Limit { what, limit }));
    }
}

#[test]
fn implied_directories_count_as_entries() {
    let names = ["a/b/c", "a/b/d", "e/f"];
    let entries = names.iter().map(|name| file(name, &[])).collect();
    let bytes = with_entries(entries).unwrap().emit();
    // a, a/b, a/b/c, a/b/d, e, e/f.
    let parse = |entries| {
        let limits = ManifestLimits { entries, ..ManifestLimits::default() };
        Manifest::parse(&bytes, &limits).map(|_| ())
    };
    assert_eq!(parse(6), Ok(()));
    assert_eq!(parse(5), Err(ManifestError::Limit { what: "entries", limit: 5 }));
}

#[test]
fn large_claimed_counts_are_refused_before_memory_is_allocated() {
    // "FONTMAN" 1, version 0, no label, no objects, then 999 999 entries in two bytes.
    let bytes = [b"FONTMAN\x01\0\0\0" as &[u8], &[0xBF, 0x84, 0x3D], &[0, 0]].concat();
    assert_eq!(parse(&bytes), Err(ManifestError::Malformed { position: 14 }));
}

#[test]
fn hostile_paths_do_not_get_through_the_parser() {
    let bytes = with_entries(vec![file("abcdefgh", &[])]).unwrap().emit();
    let at = position(&bytes, b"abcdefgh");
    let cases: [(&[u8; 8], PathError); 7] = [
        (b"/bcdefgh", PathError::Absolute),
        (b"../defgh", PathError::DotDot),
        (b"abcde/..", PathError::DotDot),
        (b"./cdefgh", PathError::Dot),
        (b"abc//fgh", PathError::EmptyComponent),
        (b"abcdefg/", PathError::EmptyComponent),
        (b"abc\0efgh", PathError::Nul),
    ];
    for (name, error) in cases {
        let mut hostile = bytes.clone();
        hostile[at..at + 8].copy_from_slice(name);
        assert_eq!(parse(&hostile), Err(ManifestError::Path { index: 0, error }));
    }
}

#[test]
fn names_that_differ_in_case_only_are_found_in_every_component() {
    let clash = |names: &[&str]| {
        let entries = names.iter().map(|name| file(name, &[])).collect();
        let clash = with_entries(entries).unwrap().case_clash();
        clash.map(|clash| (clash.first.to_string(), clash.second.to_string()))
    };
    let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
    assert_eq!(clash(&["a", "b", "c/a", "c/b"]), None);
    assert_eq!(clash(&["README", "readme"]), pair("README", "readme"));
    assert_eq!(clash(&["Src/a", "src/b"]), pair("Src", "src"));
    assert_eq!(clash(&["x/Src/a", "x/src/a"]), pair("x/Src", "x/src"));
    assert_eq!(clash(&["É", "é"]), pair("É", "é"));
}

#[test]
fn the_hashes_are_made_from_each_other() {
    let mut hasher = BlockHasher::new();
    hasher.update(b"some bytes");
    let block = hasher.finalize();
    let object = object_hash(10, [&block]);
    assert_ne!(object, object_hash(11, [&block]));
    assert_ne!(object, object_hash(10, [&block, &block]));
    let tree = tree_hash([(1, object)]);
    assert_ne!(tree, tree_hash([(2, object)]));
    // The same bytes have different hashes as different kinds.
    let mut hasher = BlockHasher::new();
    hasher.update(b"manifest");
    assert_ne!(hasher.finalize(), manifest_hash(b"manifest"));
    let manifest = sample();
    let objects = manifest.objects().iter().map(|object| (object.toi, object.hash()));
    assert_eq!(manifest.tree_hash(), tree_hash(objects));
}

fn manifests() -> impl Strategy<Value = Manifest> {
    let name = prop::collection::vec(prop::collection::vec(1..=255_u8, 1..4), 1..4);
    let segment = (0..4_u32, 0..200_u64, 1..200_u64);
    let entry = (name, 0..3_u8, any::<(i64, u32)>(), prop::collection::vec(segment, 0..4));
    (
        any::<u64>(),
        ".{0,20}",
        prop::collection::btree_set(1..4_u32, 0..4),
        prop::collection::vec(entry, 0..12),
    )
        .prop_filter_map("breaks a rule", |(version, label, tois, entries)| {
            let objects = tois.into_iter().map(|toi| object(toi, 400, toi as u8)).collect();
            let mut unique = std::collections::BTreeMap::new();
            for (components, kind, (mtime_seconds, random), segments) in entries {
                let Ok(path) = RelativePath::from_components(components) else { continue };
                let metadata = Metadata {
                    mode: random % 0o1000,
                    mtime_seconds,
                    mtime_nanoseconds: random % 1_000_000_000,
                };
                let segments = segments.into_iter().map(|(toi, offset, length)| match toi {
                    0 => hole(length),
                    toi => extent(toi, offset, length),
                });
                let entry = match kind {
                    0 => Entry::Directory(DirectoryEntry { path: path.clone(), metadata }),
                    1 => Entry::Symlink(SymlinkEntry { path: path.clone(), target: b"t".to_vec() }),
                    _ => {
                        let segments = segments.collect();
                        Entry::File(FileEntry { path: path.clone(), metadata, segments })
                    }
                };
                unique.insert(path, entry);
            }
            Manifest::new(version, label, objects, unique.into_values().collect()).ok()
        })
}

proptest! {
    #[test]
    fn every_manifest_is_read_back_and_has_one_encoding(manifest in manifests()) {
        let bytes = manifest.emit();
        prop_assert_eq!(parse(&bytes), Ok(manifest));
        for flipped in flips(&bytes) {
            if let Ok(other) = parse(&flipped) {
                prop_assert_eq!(other.emit(), flipped);
            }
        }
    }
}
