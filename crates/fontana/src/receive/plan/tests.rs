use super::*;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use fontana_store::Selection;
use fontana_wire::{Hash, Manifest, ManifestObject, Metadata, RelativePath, Segment, SymlinkEntry};
use std::sync::Arc;

fn path(name: &str) -> RelativePath {
    RelativePath::new(name).unwrap()
}

fn file(name: &str, segments: Vec<Segment>) -> Entry {
    let metadata = Metadata { mode: 0o644, ..Metadata::default() };
    Entry::File(FileEntry { path: path(name), metadata, segments })
}

fn extent(toi: u32, object_offset: u64, length: u64) -> Segment {
    Segment::Extent { toi, object_offset, length }
}

/// Object 1 holds `bundle/a` and `bundle/b`; objects 2 and 3 hold `large`; `zeros` has no bytes.
fn manifest() -> Manifest {
    let object = |toi| {
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });
        let oti = Oti { transfer_length: 100, symbol_size: 10, scheme };
        ManifestObject { toi, oti, block_hashes: vec![Hash([0; 32])] }
    };
    let metadata = Metadata { mode: 0o755, ..Metadata::default() };
    let entries = vec![
        Entry::Directory(DirectoryEntry { path: path("bundle"), metadata }),
        file("bundle/a", vec![extent(1, 0, 40)]),
        file("bundle/b", vec![extent(1, 40, 60)]),
        file("large", vec![extent(2, 0, 100), extent(3, 0, 100)]),
        Entry::Symlink(SymlinkEntry { path: path("link"), target: b"large".to_vec() }),
        file("zeros", vec![Segment::Hole { length: 7 }]),
    ];
    Manifest::new(1, "", vec![object(1), object(2), object(3)], entries).unwrap()
}

/// The plan for a selection, what exists and what was saved.
fn plan(patterns: &[&str], existing: &Existing, saved: SavedTree) -> TreePlan {
    let manifest = Arc::new(manifest());
    let patterns: Vec<_> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    let selection = Selection::new(&patterns).unwrap();
    let tree = ManifestTree::new(&manifest).unwrap();
    let wanted = Wanted::new(&manifest, &selection).unwrap();
    TreePlan::compute(&tree, &wanted, existing, saved).unwrap()
}

/// One word for what becomes of each entry.
fn actions(plan: &TreePlan) -> Vec<&'static str> {
    let word = |planned: &PlannedEntry| match planned.action {
        EntryAction::MakeDirectory(_) => "make",
        EntryAction::SkipDirectory(_) => "skip directory",
        EntryAction::Skip => "skip",
        EntryAction::Spare(_) => "spare",
        EntryAction::Keep { .. } => "keep",
        EntryAction::Verified { .. } => "verified",
        EntryAction::Link { .. } => "link",
        EntryAction::Receive(_) => "receive",
    };
    plan.entries.iter().map(word).collect()
}

fn objects(plan: &TreePlan) -> Vec<u32> {
    plan.objects.iter().map(|object| object.toi).collect()
}

#[test]
fn everything_is_received_and_files_that_share_objects_get_their_names_together() {
    let plan = plan(&[], &Existing::default(), SavedTree::default());
    assert_eq!(actions(&plan), ["make", "receive", "receive", "receive", "link", "receive"]);
    assert_eq!(objects(&plan), [1, 2, 3]);
    let groups: Vec<_> = plan.groups.into_values().collect();
    let group = |files: &[u32], objects: &[u32]| Group {
        files: files.iter().copied().map(FileIndex).collect(),
        objects: objects.iter().copied().collect(),
    };
    // The directory has no index: the files of the bundle are 0 and 1.
    assert_eq!(groups, [group(&[0, 1], &[1]), group(&[2], &[2, 3])]);
    assert_eq!(plan.without_objects, [FileIndex(3), FileIndex(4)], "the link and the zeros");
    assert_eq!((plan.part, plan.deselected), (None, Vec::new()));
}

#[test]
fn a_deselected_file_arrives_with_the_selected_one_of_its_object() {
    let plan = plan(&["/bundle/b"], &Existing::default(), SavedTree::default());
    assert_eq!(actions(&plan), ["skip directory", "spare", "receive", "skip", "skip", "skip"],);
    assert_eq!(objects(&plan), [1]);
    assert_eq!(plan.objects[0].files.names, ["bundle/b"]);
    assert_eq!(plan.deselected, [Toi(2), Toi(3)]);
    assert_eq!(plan.part, Some(ReceivedPart { files: 1, bytes: 60, objects: 1 }));
}

#[test]
fn an_existing_file_is_kept_and_one_with_a_missing_neighbor_is_spare() {
    let existing = Existing::of_entries([1, 3, 4]);
    let plan = plan(&[], &existing, SavedTree::default());
    assert_eq!(actions(&plan), ["make", "spare", "receive", "keep", "keep", "receive"]);
    assert_eq!(plan.complete, BTreeSet::from([2, 3]));
    let corrected: Vec<_> = plan.corrections.iter().map(|c| c.name.as_bytes()).collect();
    assert_eq!(corrected, [&b"bundle/a"[..], b"large"]);
    let copied = plan.objects.iter().filter(|o| o.source == BlockSource::ExistingFiles);
    assert_eq!(copied.map(|object| object.toi).collect::<Vec<_>>(), [1]);
}

#[test]
fn what_an_earlier_run_verified_is_not_received() {
    let journal = Kept { committed: BTreeSet::from([1]), ..Kept::default() };
    let saved = SavedTree::of_parts(journal, [4, 5]);
    let plan = plan(&[], &Existing::default(), saved);
    assert_eq!(actions(&plan), ["make", "verified", "verified", "receive", "verified", "verified"],);
    assert_eq!(plan.verified, [FileIndex(0), FileIndex(1), FileIndex(4)]);
    assert_eq!(plan.without_objects, []);
    assert_eq!(plan.saved.committed, BTreeSet::from([1]));
}
