//! Trees: scanning them, and creating them without leaving the target directory.

use crate::fixtures::{Random, make_pipe, name, names_in, no_code, staging, staging_with};
use fontana_fec::{Esi, Sbn};
use fontana_proto::Category;
use fontana_store::{
    Extents, FileAttributes, FileIndex, Filter, Found, Kept, NameError, Note, ScanError,
    SourceError, StagedObject, Staging, StagingError, StagingOptions, TargetDirectory, TargetName,
    Timestamp, Tree,
};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OVERWRITE: StagingOptions = StagingOptions { overwrite: true, reserve: true, open_files: 4 };

fn path(components: &[&str]) -> TargetName {
    TargetName::new(components).unwrap()
}

fn stage(staging: &Arc<Staging>, name: TargetName, bytes: &[u8]) -> FileIndex {
    let length = bytes.len() as u64;
    let index = staging.add_file(name, length, FileAttributes::default()).unwrap();
    let (layout, extents) = (no_code(length, 1, 60_000), Extents::whole_file(index, length));
    let object = StagedObject::new(staging.clone(), layout, extents, 0).unwrap();
    object.write_source_run(Sbn(0), Esi(0), bytes).unwrap();
    index
}

fn scan(paths: &[PathBuf], include: &[&str], exclude: &[&str]) -> Result<Tree, ScanError> {
    let owned = |patterns: &[&str]| patterns.iter().map(|&p| p.to_owned()).collect();
    Tree::scan(paths, &Filter { include: owned(include), exclude: owned(exclude) })
}

fn names(tree: &Tree) -> Vec<String> {
    tree.entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()).collect()
}

/// A tree with every kind of entry.
fn plant(root: &Path) -> PathBuf {
    let photos = root.join("photos");
    fs::create_dir_all(photos.join("2026/raw")).unwrap();
    fs::create_dir(photos.join("empty")).unwrap();
    fs::write(photos.join("2026/a.jpg"), "a").unwrap();
    fs::write(photos.join("2026/raw/a.raw"), "raw").unwrap();
    fs::write(photos.join(".hidden"), "h").unwrap();
    fs::write(photos.join("b.tmp"), "").unwrap();
    symlink("2026/a.jpg", photos.join("latest")).unwrap();
    symlink("/nowhere/at/all", photos.join("broken")).unwrap();
    symlink("..", photos.join("up")).unwrap();
    photos
}

#[test]
fn a_scan_lists_everything_in_order_and_follows_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let photos = plant(dir.path());
    let tree = scan(std::slice::from_ref(&photos), &[], &[]).unwrap();
    let expected = [
        "photos",
        "photos/.hidden",
        "photos/2026",
        "photos/2026/a.jpg",
        "photos/2026/raw",
        "photos/2026/raw/a.raw",
        "photos/b.tmp",
        "photos/broken",
        "photos/empty",
        "photos/latest",
        "photos/up",
    ];
    assert_eq!(names(&tree), expected);
    let found = |name: &str| {
        let index = expected.iter().position(|other| *other == name).unwrap();
        tree.entries[index].found.clone()
    };
    assert_eq!(found("photos/latest"), Found::Link { leads_to: b"2026/a.jpg".to_vec() });
    assert_eq!(found("photos/broken"), Found::Link { leads_to: b"/nowhere/at/all".to_vec() });
    let Found::Directory { mode, modified } = found("photos/empty") else { panic!("a directory") };
    let metadata = fs::metadata(photos.join("empty")).unwrap();
    assert_eq!((mode, modified.seconds), (metadata.mode() & 0o7777, metadata.mtime()));
    assert_eq!(tree.files.as_slice().len(), 4);
    // The directory's own name, in any spelling of its path.
    for way in ["photos/", "photos/.", "photos/empty/.."] {
        let tree = scan(&[dir.path().join(way)], &[], &[]).unwrap();
        assert_eq!(names(&tree), expected, "{way}");
        assert_eq!(tree.roots, [b"photos"]);
    }
    // A link that was named is followed, and keeps its own name.
    symlink("photos/2026", dir.path().join("link")).unwrap();
    let tree = scan(&[dir.path().join("link")], &[], &["raw"]).unwrap();
    assert_eq!(names(&tree), ["link", "link/a.jpg"]);
}

#[test]
fn patterns_choose_and_exclusion_wins() {
    let dir = tempfile::tempdir().unwrap();
    let photos = plant(dir.path());
    let chosen = |include: &[&str], exclude: &[&str]| {
        names(&scan(std::slice::from_ref(&photos), include, exclude).unwrap())
    };
    assert_eq!(
        chosen(&["*.jpg", "*.raw"], &[]),
        ["photos", "photos/2026", "photos/2026/a.jpg", "photos/2026/raw", "photos/2026/raw/a.raw"]
    );
    assert_eq!(
        chosen(&["*.jpg", "*.raw"], &["raw/"]),
        ["photos", "photos/2026", "photos/2026/a.jpg"]
    );
    assert_eq!(chosen(&["/*.tmp"], &[]), ["photos", "photos/b.tmp"]);
    let without = chosen(&[], &["2026", "up", "broken", "latest", ".*"]);
    assert_eq!(without, ["photos", "photos/b.tmp", "photos/empty"]);
    // A file that was named is sent regardless of the patterns.
    let file = photos.join("b.tmp");
    assert_eq!(names(&scan(&[file], &["*.jpg"], &["*.tmp"]).unwrap()), ["b.tmp"]);
    for pattern in ["!x", "#x", "", "[", "{a"] {
        for (include, exclude) in [(vec![pattern], vec![]), (vec![], vec![pattern])] {
            let error = scan(std::slice::from_ref(&photos), &include, &exclude).unwrap_err();
            assert!(matches!(error, ScanError::Pattern { .. }), "{pattern:?}: {error}");
            assert_eq!(error.category(), None);
        }
    }
}

#[test]
fn what_cannot_be_sent_is_left_out_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let photos = plant(dir.path());
    let all = names(&scan(std::slice::from_ref(&photos), &[], &[]).unwrap());
    let _socket = std::os::unix::net::UnixListener::bind(photos.join("socket")).unwrap();
    make_pipe(&photos.join("2026/pipe"));
    let tree = scan(std::slice::from_ref(&photos), &[], &[]).unwrap();
    assert_eq!(names(&tree), all, "the others");
    let left_out: Vec<_> = tree.left_out.iter().map(|item| &item.name[..]).collect();
    assert_eq!(left_out, [&b"photos/2026/pipe"[..], b"photos/socket"]);
    let error = &tree.left_out[1].error;
    assert!(error.to_string().contains("photos/socket\" is a socket"), "{error}");
    assert_eq!(error.category(), Category::Refused);
    let chosen = scan(std::slice::from_ref(&photos), &[], &["socket", "pipe"]).unwrap();
    assert_eq!(chosen.left_out, []);
    // A path that was named, beside others and alone.
    let missing = dir.path().join("missing");
    let tree = scan(&[missing.clone(), photos.join("b.tmp")], &[], &[]).unwrap();
    assert_eq!((names(&tree), tree.left_out.len()), (vec!["b.tmp".to_owned()], 1));
    let error = scan(&[missing], &[], &[]).unwrap_err();
    assert!(matches!(error, ScanError::Source(SourceError::System { .. })), "{error}");
    let root = scan(&["/".into()], &[], &[]).unwrap_err();
    assert!(matches!(root, ScanError::Nameless { .. }), "{root}");
}

#[test]
fn names_of_our_own_are_skipped_and_counted_unless_they_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let photos = plant(dir.path());
    let all = names(&scan(std::slice::from_ref(&photos), &[], &[]).unwrap());
    let hash = "0123456789abcdef".repeat(4);
    let staging = photos.join(format!("2026/.fontana-{hash}"));
    fs::create_dir(&staging).unwrap();
    fs::write(staging.join("0"), "staged").unwrap();
    fs::write(photos.join(format!(".fontana-mark-{hash}")), "mark").unwrap();
    let tree = scan(std::slice::from_ref(&photos), &[], &[]).unwrap();
    assert_eq!((names(&tree), tree.skipped), (all.clone(), 2));
    assert_eq!(names(&scan(&[staging], &[], &[]).unwrap()).len(), 2);
    fs::write(photos.join(".fontana-notes"), "a user's").unwrap();
    let tree = scan(std::slice::from_ref(&photos), &[], &[]).unwrap();
    assert_eq!((tree.entries.len(), tree.skipped), (all.len() + 1, 2));
}

#[test]
fn a_file_with_other_bytes_than_its_size_says_is_left_out() {
    for (path, is_longer) in [("/proc/cpuinfo", true), ("/sys/kernel/mm/ksm/run", false)] {
        if !Path::new(path).exists() {
            eprintln!("SKIPPED: there is no {path}");
            continue;
        }
        match scan(&[path.into()], &[], &[]).unwrap_err() {
            ScanError::Source(SourceError::WrongSize { is_longer: actual, .. }) => {
                assert_eq!(actual, is_longer, "{path}");
            }
            error => panic!("{path}: {error}"),
        }
    }
}

#[test]
fn names_are_raw_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("t");
    fs::create_dir(&root).unwrap();
    let longest = vec![b'x'; 255];
    let all: [&[u8]; 5] = [b"\n", b"a b", &longest, "\u{fc}".as_bytes(), b"\xff\xfe"];
    for name in all {
        fs::write(root.join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let tree = scan(&[root], &[], &[]).unwrap();
    let found: Vec<_> = tree.entries.iter().skip(1).map(|entry| &entry.name[2..]).collect();
    assert_eq!(found, all);
}

#[test]
fn holes_of_64_kib_are_told_from_data() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sparse");
    let data = |ranges: &[(u64, u64)], size: u64| {
        let open = fs::File::create(&file).unwrap();
        open.set_len(size).unwrap();
        for &(start, end) in ranges {
            let bytes = Random::new(start).bytes((end - start) as usize);
            std::os::unix::fs::FileExt::write_all_at(&open, &bytes, start).unwrap();
        }
        drop(open);
        let tree = scan(std::slice::from_ref(&file), &[], &[]).unwrap();
        tree.files.as_slice()[0].data().iter().map(|r| (r.start, r.end)).collect::<Vec<_>>()
    };
    const K: u64 = 1024;
    assert_eq!(data(&[(0, 100)], 100), [(0, 100)]);
    assert_eq!(data(&[], 0), []);
    assert_eq!(data(&[], 1 << 30), []);
    assert_eq!(data(&[], 10), [(0, 10)], "a short hole is not worth its line");
    assert_eq!(data(&[(256 * K, 260 * K)], 1 << 20), [(256 * K, 260 * K)]);
    assert_eq!(data(&[(0, 4 * K), (128 * K, 132 * K)], 140 * K), [(0, 4 * K), (128 * K, 140 * K)]);
    assert_eq!(data(&[(4 * K, 8 * K), (40 * K, 44 * K)], 1 << 20), [(0, 44 * K)]);
}

#[test]
fn a_tree_is_created_with_modes_and_times() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    let staging = staging(&target);
    let time = |seconds| Some(Timestamp { seconds, nanoseconds: 123_456_789 });
    let attributes = |mode, seconds| FileAttributes { mode, modified: time(seconds) };
    staging.add_directory(path(&["d"]), attributes(0o750, 1_000)).unwrap();
    let file = stage(&staging, path(&["d", "implied", "file"]), b"bytes");
    staging.add_directory(path(&["d", "sealed"]), attributes(0o500, 2_000)).unwrap();
    let sealed = stage(&staging, path(&["d", "sealed", "file"]), b"sealed");
    let link = staging.add_link(path(&["d", "link"]), b"../../outside".to_vec()).unwrap();
    assert_eq!(names_in(&target), [".fontana-test"], "nothing before the commit");
    staging.commit(&[file, sealed]).unwrap();
    let mode = |name: &str| fs::metadata(target.join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("d"), mode("d/implied")), (0o700, 0o700), "private while in progress");
    assert_eq!(fs::read(target.join("d/implied/file")).unwrap(), b"bytes");
    staging.commit(&[link]).unwrap();
    staging.commit_directories().unwrap();
    staging.remove().unwrap();
    assert_eq!(names_in(&target), ["d"]);
    assert_eq!(names_in(&target.join("d")), ["implied", "link", "sealed"]);
    let leads_to = fs::read_link(target.join("d/link")).unwrap();
    assert_eq!(leads_to, Path::new("../../outside"));
    fs::create_dir(dir.path().join("probe")).unwrap();
    let default = fs::metadata(dir.path().join("probe")).unwrap().mode() & 0o777;
    assert_eq!(mode("d/implied"), default);
    assert_eq!((mode("d"), mode("d/sealed")), (0o750 & default, 0o500 & default));
    for (name, seconds) in [("d", 1_000), ("d/sealed", 2_000)] {
        let metadata = fs::metadata(target.join(name)).unwrap();
        assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (seconds, 123_456_789), "{name}");
    }
}

#[test]
fn a_directory_that_was_there_is_entered_and_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/mine"), "mine").unwrap();
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(dir.path().join("d"), private).unwrap();
    let attributes =
        FileAttributes { mode: 0o755, modified: Some(Timestamp { seconds: 5, nanoseconds: 0 }) };
    let receive = |options, file: &str| {
        let staging = staging_with(dir.path(), options).unwrap();
        staging.add_directory(path(&["d"]), attributes).unwrap();
        let index = stage(&staging, path(&["d", file]), b"new");
        staging.commit(&[index]).unwrap();
        staging.commit_directories().unwrap();
        staging.remove().unwrap();
        fs::metadata(dir.path().join("d")).unwrap()
    };
    let metadata = receive(StagingOptions::default(), "one");
    assert_eq!(metadata.mode() & 0o777, 0o700);
    assert_ne!(metadata.mtime(), 5);
    let metadata = receive(OVERWRITE, "two");
    assert_ne!(metadata.mode() & 0o777, 0o700, "who overwrites wants it as it was sent");
    assert_eq!(metadata.mtime(), 5);
    assert_eq!(names_in(&dir.path().join("d")), ["mine", "one", "two"]);
}

#[test]
fn a_file_in_place_of_a_directory_is_refused_before_receiving() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    symlink(outside.path(), dir.path().join("link")).unwrap();
    symlink(outside.path(), dir.path().join("d/link")).unwrap();
    let staging = staging_with(dir.path(), OVERWRITE).unwrap();
    let none = FileAttributes::default();
    for obstacle in ["file", "link", "d/link"] {
        let refused = StagingError::NotADirectory { path: dir.path().join(obstacle) };
        assert_eq!(refused.category(), Category::Refused);
        let components: Vec<_> = obstacle.split('/').collect();
        let below = |more: &[&'static str]| path(&[&components[..], more].concat());
        assert_eq!(staging.add_file(below(&["a"]), 1, none), Err(refused.clone()));
        assert_eq!(staging.add_file(below(&["a", "b"]), 1, none), Err(refused.clone()));
        assert_eq!(staging.add_link(below(&["a"]), b"x".to_vec()), Err(refused.clone()));
        assert_eq!(staging.add_directory(below(&[]), none), Err(refused.clone()));
        assert_eq!(staging.add_directory(below(&["a"]), none), Err(refused));
    }
    assert!(names_in(outside.path()).is_empty());
    assert_eq!(
        staging.add_file(name("d"), 1, none),
        Err(StagingError::IsDirectory { path: dir.path().join("d") })
    );
}

#[test]
fn a_directory_swapped_for_a_link_while_receiving_leads_nothing_outside() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    let staging = staging(dir.path());
    let file = stage(&staging, path(&["d", "e", "file"]), b"secret");
    staging.add_directory(path(&["d"]), FileAttributes::default()).unwrap();
    fs::rename(dir.path().join("d"), dir.path().join("away")).unwrap();
    symlink(outside.path(), dir.path().join("d")).unwrap();
    let refused = StagingError::NotADirectory { path: dir.path().join("d") };
    assert_eq!(staging.commit(&[file]), Err(refused.clone()));
    let both = vec![refused.clone(), refused];
    assert_eq!(staging.commit_directories(), Ok(both), "`d` and `d/e`");
    assert!(names_in(outside.path()).is_empty(), "nothing outside");
    // After the link is removed, the reception continues.
    fs::remove_file(dir.path().join("d")).unwrap();
    fs::rename(dir.path().join("away"), dir.path().join("d")).unwrap();
    staging.commit(&[file]).unwrap();
    assert_eq!(fs::read(dir.path().join("d/e/file")).unwrap(), b"secret");
}

#[test]
fn a_link_is_committed_over_a_link_without_following_either() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let target = dir.path().join("target");
    fs::create_dir(&target).unwrap();
    symlink(&victim, target.join("link")).unwrap();
    let attempt = |options| {
        let staging = staging_with(&target, options)?;
        let link = staging.add_link(name("link"), b"elsewhere".to_vec())?;
        staging.commit(&[link])?;
        staging.remove()
    };
    let exists = StagingError::Exists { path: target.join("link") };
    assert_eq!(attempt(StagingOptions::default()), Err(exists));
    assert_eq!(attempt(OVERWRITE), Ok(()));
    assert_eq!(fs::read_link(target.join("link")).unwrap(), Path::new("elsewhere"));
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
}

/// A run that ends between two renames: its notes suffice for the next run.
#[test]
fn an_interrupted_commit_is_completed_by_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
    let enter = || Staging::create(target.clone(), "test", StagingOptions::default()).unwrap();
    let names = ["a", "b", "c"].map(|file| path(&["d", file]));
    {
        let (staging, kept) = enter();
        assert_eq!(kept, Kept::default());
        let staging = Arc::new(staging);
        staging
            .add_directory(path(&["d"]), FileAttributes { mode: 0o711, modified: None })
            .unwrap();
        let files = names.clone().map(|name| stage(&staging, name, b"bytes"));
        staging.settle(&files).unwrap();
        staging.note(&[Note::Committed { toi: 7 }]).unwrap();
        staging.sync_notes().unwrap();
        staging.publish(&files[..1]).unwrap();
    }
    assert_eq!(names_in(&dir.path().join("d")), ["a"]);
    let (staging, kept) = enter();
    assert!(kept.committed.contains(&7) && kept.made.contains(&0), "{kept:?}");
    staging.add_directory(path(&["d"]), FileAttributes { mode: 0o711, modified: None }).unwrap();
    let mut files = Vec::new();
    for name in &names {
        let is_staged = staging.has_staged(staging.next_index(), 5).unwrap();
        assert_ne!(is_staged, target.has_file(name, 5).unwrap(), "one or the other");
        files.push(staging.add_verified(name.clone(), 5).unwrap());
    }
    staging.publish(&files).unwrap();
    staging.commit_directories().unwrap();
    staging.remove().unwrap();
    assert_eq!(names_in(dir.path()), ["d"]);
    assert_eq!(names_in(&dir.path().join("d")), ["a", "b", "c"]);
    for name in ["a", "b", "c"] {
        assert_eq!(fs::read(dir.path().join("d").join(name)).unwrap(), b"bytes");
    }
    // The first run created it, so its mode is set.
    assert_eq!(fs::metadata(dir.path().join("d")).unwrap().mode() & 0o777, 0o711);
}

#[test]
fn a_hole_takes_no_room_even_where_room_is_reserved() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let (length, hole) = (64 << 20, 4096..(64 << 20) - 4096);
    let none = FileAttributes::default();
    let sparse = staging.add_sparse_file(name("sparse"), length, vec![hole], none).unwrap();
    let empty = staging
        .add_sparse_file(name("empty"), length, std::iter::once(0..length).collect(), none)
        .unwrap();
    staging.commit(&[sparse, empty]).unwrap();
    let metadata = |name: &str| fs::metadata(dir.path().join(name)).unwrap();
    assert_eq!((metadata("sparse").len(), metadata("empty").len()), (length, length));
    let on_disk = metadata("sparse").blocks() * 512;
    assert!((8192..1 << 20).contains(&on_disk), "{on_disk}");
    assert_eq!(metadata("empty").blocks(), 0);
}

#[test]
fn names_that_differ_in_case_only_are_two_where_the_file_system_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    // File systems on which tests usually run do not ignore case.
    assert_eq!(staging.check_case_clash(|| Some(("A", "a"))), Ok(()));
    let clash = StagingError::Name(NameError::CaseClash { first: "A".into(), second: "a".into() });
    assert_eq!(clash.category(), Category::Refused);
}
