//! Listing of the staging directories that receivers leave.

use crate::fixtures::{name, names_in};
use fontana_fec::{Esi, Sbn};
use fontana_store::{
    FileAttributes, Leftover, Note, Staging, StagingError, StagingOptions, TargetDirectory,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

fn target(path: &Path) -> Arc<TargetDirectory> {
    Arc::new(TargetDirectory::open(path).unwrap())
}

fn create(path: &Path, tag: &str) -> Staging {
    Staging::create(target(path), tag, StagingOptions::default()).unwrap().0
}

fn leftovers(path: &Path) -> Vec<Leftover> {
    target(path).leftovers().unwrap()
}

#[test]
fn leftovers_are_listed_with_their_contents_and_lock_state() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(leftovers(dir.path()), []);
    let staging = create(dir.path(), "b");
    let file = staging.add_file(name("a"), 100_000, FileAttributes::default()).unwrap();
    staging.write_file(file, 0, &[1; 100_000]).unwrap();
    staging.describe(b"a description that is long").unwrap();
    staging.describe(b"another").unwrap();
    let kept = Note::InPlace { toi: 1, sbn: Sbn(0), esi: Esi(7), count: 1 };
    staging.note(&[kept]).unwrap();
    create(dir.path(), "a");

    let found = leftovers(dir.path());
    let tags: Vec<_> = found.iter().map(|left| (left.tag.as_str(), left.in_use)).collect();
    assert_eq!(tags, [("a", false), ("b", true)]);
    let (empty, left) = (&found[0], &found[1]);
    assert_eq!((&empty.description, empty.kept.blocks.len()), (&None, 0));
    assert_eq!(left.description.as_deref(), Some(&b"another"[..]));
    assert_eq!(left.kept.blocks[&(1, Sbn(0))].in_place, [Esi(7)]);
    assert!((100_000..200_000).contains(&left.bytes_on_disk), "{}", left.bytes_on_disk);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!((now.as_secs() as i64 - left.modified.seconds).abs() < 60);
    assert_eq!(target(dir.path()).description("b", 7).as_deref(), Some(&b"another"[..]));
    assert_eq!(target(dir.path()).description("b", 6), None, "more than the limit");
    for none in ["a", "c", "", "../b", "b/"] {
        assert_eq!(target(dir.path()).description(none, 100), None, "{none:?}");
    }

    let again = Staging::create(target(dir.path()), "b", StagingOptions::default());
    assert!(matches!(again, Err(StagingError::Busy { .. })));
    drop(staging);
    assert!(!leftovers(dir.path())[1].in_use);
    for tag in ["a", "b"] {
        create(dir.path(), tag).remove().unwrap();
    }
    assert_eq!(names_in(dir.path()), [""; 0]);
}

#[test]
fn directories_that_are_no_leftovers_are_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".fontana-file"), "").unwrap();
    symlink(elsewhere.path(), dir.path().join(".fontana-link")).unwrap();
    for other in [".fontana-", ".fontana-with space", ".fontan-a", "fontana-a"] {
        fs::create_dir(dir.path().join(other)).unwrap();
    }
    assert_eq!(leftovers(dir.path()), []);
}

#[test]
fn listing_does_not_block_a_receiver() {
    let dir = tempfile::tempdir().unwrap();
    drop(create(dir.path(), "a"));
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| (0..300).for_each(|_| drop(leftovers(dir.path()))));
        while !looking.is_finished() {
            drop(create(dir.path(), "a"));
        }
    });
}
