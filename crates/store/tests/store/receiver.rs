//! Staging, names and commit.

use crate::fixtures::{Random, descriptors_below, name, names_in, no_code, raptorq};
use crate::fixtures::{staging, staging_with, whole_file};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, PlanCache, Sbn};
use fontana_proto::{Category, SymbolPlace};
use fontana_store::{
    Errno, Extent, Extents, FileAttributes, FileIndex, GeometryError, Kept, KeptBlock, NameError,
    Note, ObjectEncoder, ObjectSource, RecoveryMemory, RecoverySteps, SolvedStore, SourceFiles,
    StagedObject, Staging, StagingError, StagingOptions, TargetDirectory, Timestamp,
};
use std::fs;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

const OVERWRITE: StagingOptions = StagingOptions { overwrite: true, reserve: true, open_files: 4 };

fn add(staging: &Staging, file: &str, length: u64) -> Result<FileIndex, StagingError> {
    staging.add_file(name(file), length, FileAttributes::default())
}

/// Adds a file and writes all of it.
fn stage(staging: &Arc<Staging>, file: &str, bytes: &[u8]) -> FileIndex {
    let index = add(staging, file, bytes.len() as u64).unwrap();
    fill(staging, index, bytes);
    index
}

fn fill(staging: &Arc<Staging>, file: FileIndex, bytes: &[u8]) {
    write(staging, file, bytes).unwrap();
}

fn write(staging: &Arc<Staging>, file: FileIndex, bytes: &[u8]) -> Result<(), StagingError> {
    let layout = no_code(bytes.len() as u64, 1, 60_000);
    let extents = Extents::whole_file(file, bytes.len() as u64);
    let object = StagedObject::new(staging.clone(), layout, extents, 0)?;
    object.write_source_run(Sbn(0), Esi(0), bytes)
}

#[test]
fn nothing_is_under_a_final_name_before_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let file = stage(&staging, "a", b"bytes");
    assert_eq!(names_in(dir.path()), [".fontana-test"]);
    assert_eq!(names_in(&staging.path()), ["0", "journal", "lock"]);
    assert_eq!(fs::metadata(staging.path()).unwrap().mode() & 0o7777, 0o700);
    staging.commit(&[file]).unwrap();
    assert_eq!(names_in(dir.path()), [".fontana-test", "a"]);
    staging.remove().unwrap();
    assert_eq!(names_in(dir.path()), ["a"]);
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"bytes");
}

/// A block of small files that is solved from repair symbols is read before anything of it is
/// written.
#[test]
fn a_file_that_nothing_was_written_to_reads_as_zeros_and_is_not_created() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let file = add(&staging, "small", 5).unwrap();
    let object =
        StagedObject::new(staging.clone(), no_code(5, 1, 60_000), Extents::whole_file(file, 5), 0);
    let object = object.unwrap();
    let mut bytes = [7; 5];
    object.read_at(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 5]);
    assert_eq!(names_in(&staging.path()), ["journal", "lock"]);
    object.write_source_run(Sbn(0), Esi(0), b"bytes").unwrap();
    object.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"bytes");
}

#[test]
fn empty_files_are_committed_too() {
    let dir = tempfile::tempdir().unwrap();
    for options in [OVERWRITE, StagingOptions { reserve: false, ..OVERWRITE }] {
        let staging = staging_with(dir.path(), options).unwrap();
        let file = add(&staging, "empty", 0).unwrap();
        let object =
            StagedObject::new(staging.clone(), raptorq(0, 64, 1, 1), whole_file(0), 9).unwrap();
        object.remove_spool().unwrap();
        staging.commit(&[file]).unwrap();
        staging.remove().unwrap();
        assert_eq!(fs::read(dir.path().join("empty")).unwrap(), b"");
    }
}

#[test]
fn missing_directories_of_the_target_are_created() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b/c");
    TargetDirectory::open(&deep).unwrap();
    assert!(deep.is_dir());
}

#[test]
fn a_target_that_cannot_be_a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below"), file.join("below/it")] {
        let error = TargetDirectory::open(path).unwrap_err();
        assert!(matches!(error, StagingError::System { errno: Errno::NOTDIR, .. }), "{error}");
        assert_eq!(error.category(), Category::Refused);
    }
}

#[test]
fn a_name_that_is_taken_is_refused_before_receiving() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "old").unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    symlink("nowhere", dir.path().join("link")).unwrap();
    let taken = staging(dir.path());
    for name in ["file", "link"] {
        let exists = StagingError::Exists { path: dir.path().join(name) };
        assert_eq!(add(&taken, name, 1), Err(exists.clone()));
        assert_eq!(exists.category(), Category::Refused);
    }
    let is_directory = Err(StagingError::IsDirectory { path: dir.path().join("directory") });
    assert_eq!(add(&taken, "directory", 1), is_directory);
    drop(taken);
    let overwriting = staging_with(dir.path(), OVERWRITE).unwrap();
    assert!(add(&overwriting, "file", 1).is_ok());
    assert!(add(&overwriting, "link", 1).is_ok());
    assert_eq!(add(&overwriting, "directory", 1), is_directory);
}

#[test]
fn a_name_taken_while_receiving_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let files = [stage(&staging, "free", b"new"), stage(&staging, "taken", b"new")];
    fs::write(dir.path().join("taken"), "old").unwrap();
    let exists = StagingError::Exists { path: dir.path().join("taken") };
    assert_eq!(staging.commit(&files), Err(exists));
    assert_eq!(fs::read(dir.path().join("taken")).unwrap(), b"old");
    assert!(!dir.path().join("free").exists(), "one conflict stops the whole batch");
    fs::remove_file(dir.path().join("taken")).unwrap();
    staging.commit(&files).unwrap();
    assert_eq!(fs::read(dir.path().join("taken")).unwrap(), b"new");
}

#[test]
fn of_two_commits_to_one_name_exactly_one_succeeds() {
    for round in 0..50 {
        let dir = tempfile::tempdir().unwrap();
        let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
        let barrier = std::sync::Barrier::new(2);
        let commit = |tag: &str| {
            let (staging, _) =
                Staging::create(target.clone(), tag, StagingOptions::default()).unwrap();
            let staging = Arc::new(staging);
            let file = stage(&staging, "name", tag.as_bytes());
            barrier.wait();
            staging.commit(&[file])
        };
        let (one, two) = std::thread::scope(|scope| {
            let one = scope.spawn(|| commit("one"));
            let two = scope.spawn(|| commit("two"));
            (one.join().unwrap(), two.join().unwrap())
        });
        assert_ne!(one.is_ok(), two.is_ok(), "round {round}: {one:?}, {two:?}");
        let content = fs::read(dir.path().join("name")).unwrap();
        assert_eq!(content, if one.is_ok() { b"one" } else { b"two" });
    }
}

#[test]
fn overwriting_replaces_a_planted_link_and_not_what_it_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let (victim, target) = (dir.path().join("victim"), dir.path().join("target"));
    fs::write(&victim, "untouched").unwrap();
    let staging = staging_with(&target, OVERWRITE).unwrap();
    let file = stage(&staging, "link", b"new");
    symlink(&victim, target.join("link")).unwrap();
    staging.commit(&[file]).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    assert!(fs::symlink_metadata(target.join("link")).unwrap().is_file());
    assert_eq!(fs::read(target.join("link")).unwrap(), b"new");
}

#[test]
fn a_link_or_file_in_the_place_of_the_staging_directory_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let staging_path = dir.path().join(".fontana-test");
    symlink(&elsewhere, &staging_path).unwrap();
    let not_ours = StagingError::NotOurs { path: staging_path.clone() };
    let create = || staging_with(dir.path(), OVERWRITE).map(drop);
    assert_eq!(create(), Err(not_ours.clone()));
    assert_eq!(not_ours.category(), Category::Refused);
    assert!(names_in(&elsewhere).is_empty());
    fs::remove_file(&staging_path).unwrap();
    fs::write(&staging_path, "").unwrap();
    assert_eq!(create(), Err(not_ours));
    fs::remove_file(&staging_path).unwrap();
    assert_eq!(create(), Ok(()));
}

#[test]
fn links_planted_in_the_staging_directory_are_removed_and_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    drop(staging(dir.path()));
    let planted = dir.path().join(".fontana-test/0");
    symlink(&victim, &planted).unwrap();
    let staging = staging(dir.path());
    symlink(&victim, &planted).unwrap();
    let file = add(&staging, "a", 3).unwrap();
    let refused = write(&staging, file, b"abc");
    assert!(matches!(refused, Err(StagingError::System { errno: Errno::EXIST, .. })));
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
}

#[test]
fn two_receivers_do_not_share_a_staging_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = staging(dir.path());
    let path = first.path();
    let busy = StagingError::Busy { path: path.clone() };
    assert_eq!(staging_with(dir.path(), OVERWRITE).map(drop), Err(busy.clone()));
    assert_eq!(busy.category(), Category::Refused);
    let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
    assert!(Staging::create(target, "other", OVERWRITE).is_ok(), "another tag is no conflict");
    drop(first);
    assert!(staging_with(dir.path(), OVERWRITE).is_ok());
}

#[test]
fn concurrent_receivers_never_share_a_staging_directory() {
    let dir = tempfile::tempdir().unwrap();
    let inside = std::sync::atomic::AtomicU32::new(0);
    let visit = || {
        let mut entered = 0;
        for _ in 0..300 {
            match staging_with(dir.path(), OVERWRITE) {
                Ok(staging) => {
                    use std::sync::atomic::Ordering::SeqCst;
                    assert_eq!(inside.fetch_add(1, SeqCst), 0);
                    entered += 1;
                    stage(&staging, "a", b"bytes");
                    assert_eq!(inside.fetch_sub(1, SeqCst), 1);
                    staging.remove().unwrap();
                }
                Err(StagingError::Busy { .. }) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        entered
    };
    let entered: u32 = std::thread::scope(|scope| {
        let visits: Vec<_> = (0..4).map(|_| scope.spawn(visit)).collect();
        visits.into_iter().map(|visit| visit.join().unwrap()).sum()
    });
    assert!(entered > 0);
}

#[test]
fn removed_files_take_no_space() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    stage(&staging, "a", b"bytes");
    assert_eq!(descriptors_below(dir.path()), 5);
    staging.remove().unwrap();
    assert!(names_in(dir.path()).is_empty());
    // The target, the staging directory, its lock and its journal: none that would keep a file's
    // blocks allocated.
    assert_eq!(descriptors_below(dir.path()), 4);
}

#[test]
fn files_of_a_failed_receiver_without_notes_stay_until_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    stage(&staging(dir.path()), "a", b"bytes");
    let left = dir.path().join(".fontana-test");
    assert_eq!(fs::read(left.join("0")).unwrap(), b"bytes");
    fs::write(left.join("7.repair"), "old").unwrap();
    fs::write(left.join("mine"), "foreign").unwrap();
    let staging = staging(dir.path());
    assert_eq!(names_in(&left), ["journal", "lock", "mine"]);
    staging.remove().unwrap();
    assert_eq!(names_in(&left), ["mine"], "what is not ours stays");
}

#[test]
fn modes_are_given_within_the_umask_and_never_set_an_id() {
    let dir = tempfile::tempdir().unwrap();
    let probe = dir.path().join("probe");
    fs::File::options().create_new(true).write(true).mode(0o777).open(&probe).unwrap();
    let allowed = fs::metadata(&probe).unwrap().mode() & 0o777;
    let staging = staging(&dir.path().join("target"));
    let modes = [0o644, 0o755, 0o400, 0o7755, 0o100_666, 0o000, 0o070];
    for (i, mode) in modes.into_iter().enumerate() {
        let (file, attributes) = (i.to_string(), FileAttributes { mode, modified: None });
        let index = staging.add_file(name(&file), 5, attributes).unwrap();
        fill(&staging, index, b"bytes");
        staging.commit(&[index]).unwrap();
        let meta = fs::metadata(dir.path().join("target").join(file)).unwrap();
        assert_eq!(meta.mode() & 0o7777, mode & allowed, "{mode:o}");
    }
}

#[test]
fn times_are_given_to_the_nanosecond() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let times = [(-1, 999_999_999), (0, 0), (1 << 31, 123_456_789)];
    for (i, (seconds, nanoseconds)) in times.into_iter().enumerate() {
        let modified = Some(Timestamp { seconds, nanoseconds });
        let attributes = FileAttributes { modified, ..FileAttributes::default() };
        let index = staging.add_file(name(&i.to_string()), 5, attributes).unwrap();
        fill(&staging, index, b"bytes");
        staging.commit(&[index]).unwrap();
        let meta = fs::metadata(dir.path().join(i.to_string())).unwrap();
        assert_eq!((meta.mtime(), meta.mtime_nsec()), (seconds, nanoseconds.into()));
    }
}

#[test]
fn a_committed_file_takes_no_more_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let file = stage(&staging, "a", b"bytes");
    staging.commit(&[file]).unwrap();
    let committed = StagingError::Committed { path: dir.path().join("a") };
    assert_eq!(write(&staging, file, b"wrong"), Err(committed));
    staging.commit(&[file]).unwrap();
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"bytes");
}

#[test]
fn invalid_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    add(&staging, "a", 1).unwrap();
    assert_eq!(add(&staging, "a", 1), Err(StagingError::Name(NameError::Twice("a".into()))));
    let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
    let longest = "x".repeat(64);
    for (tag, good) in [
        (longest.as_str(), true),
        ("A-z_9", true),
        ("", false),
        ("..", false),
        ("a/b", false),
        ("ä", false),
        (&format!("{longest}x"), false),
    ] {
        let staging = Staging::create(target.clone(), tag, OVERWRITE).map(|(staging, _)| staging);
        assert_eq!(staging.is_ok(), good, "{tag:?}");
        if let Ok(staging) = staging {
            staging.remove().unwrap();
        }
    }
}

#[test]
fn an_object_outside_its_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let file = add(&staging, "a", 10).unwrap();
    let new = |file, offset, length, transfer_length| {
        let extents = Extents::new([Extent { file, offset, length }]).unwrap();
        let layout = no_code(transfer_length, 4, 4);
        match StagedObject::new(staging.clone(), layout, extents, 0) {
            Ok(_) => None,
            Err(StagingError::Geometry(error)) => Some(error),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(new(file, 2, 8, 8), None);
    assert_eq!(new(file, 3, 8, 8), Some(GeometryError::BeyondFile { file, end: 11, length: 10 }));
    assert_eq!(new(file, 2, 8, 9), Some(GeometryError::Length { expected: 9, actual: 8 }));
    let missing = FileIndex(1);
    assert_eq!(new(missing, 0, 8, 8), Some(GeometryError::NoSuchFile(missing)));
}

#[test]
fn symbols_that_do_not_exist_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    add(&staging, "a", 100).unwrap();
    let layout = raptorq(100, 8, 2, 1); // blocks of 7 and 6 symbols
    let object = StagedObject::new(staging, layout, whole_file(100), 3).unwrap();
    let symbol = [1; 8];
    assert_eq!(object.write_source(Sbn(0), Esi(6), &symbol), Ok(()));
    assert_eq!(object.write_source(Sbn(1), Esi(5), &symbol), Ok(()));
    assert_eq!(object.write_source_run(Sbn(0), Esi(5), &[1; 16]), Ok(()));
    assert_eq!(object.write_source_run(Sbn(0), Esi(0), &[]), Ok(()));
    assert_eq!(object.write_repair_run(Sbn(1), 2, &symbol), Ok(()));
    assert_eq!(object.write_repair_run(Sbn(0), 0, &[1; 24]), Ok(()));
    for refused in [
        object.write_source(Sbn(0), Esi(7), &symbol),
        object.write_source(Sbn(1), Esi(6), &symbol),
        object.write_source(Sbn(2), Esi(0), &symbol),
        object.write_source(Sbn(0), Esi(0), &symbol[..7]),
        object.write_source_run(Sbn(0), Esi(6), &[1; 16]),
        object.write_source_run(Sbn(0), Esi(5), &[1; 15]),
        object.write_source_run(Sbn(0), Esi(u32::MAX), &[1; 16]),
        object.write_source_run(Sbn(u32::MAX), Esi(0), &[]),
        object.write_repair_run(Sbn(1), 3, &symbol),
        object.write_repair_run(Sbn(0), 1, &[1; 24]),
        object.write_repair_run(Sbn(0), u32::MAX, &[1; 16]),
        object.write_repair_run(Sbn(0), 0, &[1; 15]),
        object.write_repair_run(Sbn(2), 0, &symbol),
        object.write_repair_run(Sbn(0), 0, &[1; 9]),
        object.free_repair(Sbn(2)),
        object.for_each_chunk_of_block(Sbn(2), |_| {}),
    ] {
        assert!(matches!(refused, Err(StagingError::Geometry(_))), "{refused:?}");
    }
}

#[test]
fn a_plan_for_another_block_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    add(&staging, "a", 100).unwrap();
    let layout = raptorq(100, 8, 2, 1);
    let object = StagedObject::new(staging, layout, whole_file(100), 3).unwrap();
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 2, sub_blocks: 1, alignment: 4 });
    let plan = scheme.source_plan(7).unwrap();
    let recover = |sbn| {
        let memory = &mut RecoveryMemory::new(0);
        let steps = RecoverySteps::all_of(&plan);
        object.recover_block(sbn, steps, memory, |_| SymbolPlace::InPlace, 0, |_| ())
    };
    assert_eq!(recover(Sbn(0)), Ok(()));
    let error = GeometryError::Plan { expected: 6, actual: 7 };
    assert_eq!(recover(Sbn(1)), Err(StagingError::Geometry(error)));
    assert!(recover(Sbn(2)).is_err());
}

#[test]
fn the_padding_of_the_last_symbol_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let first = add(&staging, "first", 5).unwrap();
    let second = add(&staging, "second", 4).unwrap();
    let whole = |file, length| Extent { file, offset: 0, length };
    let extents = Extents::new([whole(first, 5), whole(second, 4)]).unwrap();
    let object = StagedObject::new(staging.clone(), no_code(9, 4, 4), extents, 0).unwrap();
    object.write_source_run(Sbn(0), Esi(1), b"4567899\xff").unwrap();
    object.write_source(Sbn(0), Esi(2), b"8\xff\xff\xff").unwrap();
    object.write_source(Sbn(0), Esi(0), b"0123").unwrap();
    staging.commit(&[first, second]).unwrap();
    assert_eq!(fs::read(dir.path().join("first")).unwrap(), b"01234");
    assert_eq!(fs::read(dir.path().join("second")).unwrap(), b"5678");
}

#[test]
fn freeing_the_repair_symbols_of_one_block_spares_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    add(&staging, "a", 1 << 20).unwrap();
    let layout = raptorq(1 << 20, 4096, 4, 1);
    let object = StagedObject::new(staging.clone(), layout, whole_file(1 << 20), 64).unwrap();
    let symbol = Random::new(1).bytes(4096);
    for sbn in (0..4).map(Sbn) {
        for slot in 0..64 {
            object.write_repair_run(sbn, slot, &symbol).unwrap();
        }
    }
    let spool = staging.path().join("0.repair");
    let before = fs::metadata(&spool).unwrap();
    assert_eq!(before.size(), 4 * 64 * 4096);
    object.free_repair(Sbn(1)).unwrap();
    let after = fs::metadata(&spool).unwrap();
    assert_eq!(after.size(), before.size());
    assert!(after.blocks() < before.blocks(), "{} of {}", after.blocks(), before.blocks());
    let bytes = fs::read(&spool).unwrap();
    for (i, slot) in bytes.chunks(4096).enumerate() {
        let expected: &[u8] = if (64..128).contains(&i) { &[0; 4096] } else { &symbol };
        assert!(slot == expected, "slot {i}");
    }
    object.remove_spool().unwrap();
    assert!(!spool.exists());
    let late = object.write_repair_run(Sbn(0), 0, &symbol);
    assert!(matches!(late, Err(StagingError::Committed { .. })));
    object.free_repair(Sbn(0)).unwrap();
}

#[test]
fn many_files_need_few_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging_with(dir.path(), OVERWRITE).unwrap();
    let files: Vec<FileIndex> =
        (0..200).map(|i| stage(&staging, &format!("f{i}"), &[i as u8; 10])).collect();
    // The target, the staging directory, its lock, its journal and four files.
    assert!(descriptors_below(dir.path()) <= 8, "{}", descriptors_below(dir.path()));
    staging.commit(&files).unwrap();
    for i in 0..200 {
        assert_eq!(fs::read(dir.path().join(format!("f{i}"))).unwrap(), [i as u8; 10]);
    }
}

#[test]
fn a_truncated_staged_file_is_an_error_and_no_end_of_file() {
    let dir = tempfile::tempdir().unwrap();
    let staging = staging(dir.path());
    let file = stage(&staging, "a", b"bytes");
    let object =
        StagedObject::new(staging.clone(), no_code(5, 1, 5), Extents::whole_file(file, 5), 0)
            .unwrap();
    let staged = fs::File::options().write(true).open(staging.path().join("0")).unwrap();
    staged.set_len(4).unwrap();
    let error = object.for_each_chunk_of_block(Sbn(0), |_| {}).unwrap_err();
    assert_eq!(error.category(), Category::Io);
}

#[test]
fn an_unwritable_directory_is_refused() {
    if rustix::process::geteuid().is_root() {
        return; // root ignores permissions: see the read-only file system
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let error = staging_with(dir.path(), OVERWRITE).unwrap_err();
    assert_eq!(error.category(), Category::Refused);
}

#[test]
fn the_current_directory_is_a_target() {
    assert!(TargetDirectory::open(Path::new("")).is_ok());
    assert!(TargetDirectory::open(Path::new(".")).is_ok());
}

#[test]
fn notes_are_resumed_by_the_next_receiver() {
    let dir = tempfile::tempdir().unwrap();
    let create = || {
        let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
        Staging::create(target, "test", OVERWRITE).unwrap()
    };
    let (sbn, esi) = (Sbn(2), Esi(3));
    let (first, kept) = create();
    assert_eq!(kept, Kept::default());
    let index = first.add_file(name("a"), 5, FileAttributes::default()).unwrap();
    first.write_file(index, 0, b"bytes").unwrap();
    first
        .note(&[Note::InPlace { toi: 1, sbn, esi, count: 1 }, Note::Packets { count: 9 }])
        .unwrap();
    first.note(&[Note::Spooled { toi: 1, sbn, esi: Esi(70), slot: 0, count: 1 }]).unwrap();
    drop(first);

    // A torn note at the end is dropped, and new ones can follow.
    let journal = dir.path().join(".fontana-test/journal");
    let torn = [fs::read(&journal).unwrap(), vec![0, 0, 0, 17, 1, 2]].concat();
    fs::write(&journal, torn).unwrap();
    let (second, kept) = create();
    let block = KeptBlock { whole: false, in_place: vec![esi], spooled: vec![(Esi(70), 0)] };
    assert_eq!(kept.blocks.get(&(1, sbn)), Some(&block));
    assert_eq!((kept.blocks.len(), kept.packets), (1, 9));
    let index = second.add_file(name("a"), 5, FileAttributes::default()).unwrap();
    second.note(&[Note::Whole { toi: 1, sbn }, Note::Committed { toi: 7 }]).unwrap();
    drop(second);

    let (third, kept) = create();
    assert!(kept.blocks[&(1, sbn)].whole && kept.committed.contains(&7));
    let again = third.add_file(name("a"), 5, FileAttributes::default()).unwrap();
    assert_eq!(again, index);
    third.commit(&[again]).unwrap();
    assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"bytes");
    third.note(&[Note::Void { toi: 1, sbn }]).unwrap();
    drop(third);
    let (fourth, kept) = create();
    assert!(kept.blocks.is_empty());
    fourth.remove().unwrap();
    assert_eq!(names_in(dir.path()), ["a"]);
}

#[test]
fn a_file_of_wrong_length_is_corrected() {
    for (left, committed) in [("cut", b"cut\0\0"), ("longer", b"longe")] {
        let dir = tempfile::tempdir().unwrap();
        let create = || {
            let target = Arc::new(TargetDirectory::open(dir.path()).unwrap());
            Staging::create(target, "test", OVERWRITE).unwrap().0
        };
        let first = create();
        let index = first.add_file(name("a"), 5, FileAttributes::default()).unwrap();
        first.write_file(index, 0, b"bytes").unwrap();
        first.note(&[Note::Packets { count: 1 }]).unwrap();
        drop(first);
        fs::write(dir.path().join(".fontana-test/0"), left).unwrap();
        let second = create();
        let index = second.add_file(name("a"), 5, FileAttributes::default()).unwrap();
        second.commit(&[index]).unwrap();
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), committed);
    }
}

/// What a receiver reads for others is what the sender would send.
#[test]
fn symbols_for_other_receivers_are_those_of_the_sender() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = Random::new(1).bytes(40 * 64 - 7);
    let layout = raptorq(bytes.len() as u64, 64, 2, 1);
    let path = dir.path().join("sent");
    fs::write(&path, &bytes).unwrap();
    let mut files = SourceFiles::default();
    files.add(&path).unwrap();
    let extents = whole_file(bytes.len() as u64);
    let source = ObjectSource::new(Arc::new(files), layout, extents.clone()).unwrap();
    let plans = Arc::new(PlanCache::new(2));
    let encoder = ObjectEncoder::new(Arc::new(source), Arc::clone(&plans), SolvedStore::new(0));
    let sent = |sbn, esis: &[Esi]| {
        let mut out = vec![0; esis.len() * 64];
        encoder.encode(sbn, esis, usize::MAX, &mut out).unwrap();
        out
    };

    let staging = staging(dir.path());
    let file = add(&staging, "a", bytes.len() as u64).unwrap();
    let object = StagedObject::new(staging.clone(), layout, extents, 9).unwrap();
    // A part of the second block, the last symbol among them, and two repair symbols.
    let (sbn, repair) = (Sbn(1), [Esi(77), Esi(25)]);
    for esi in [Esi(3), Esi(19)] {
        object.write_source(sbn, esi, &sent(sbn, &[esi])).unwrap();
    }
    object.write_repair_run(sbn, 4, &sent(sbn, &repair)).unwrap();
    let place = |esi: Esi| match repair.iter().position(|&own| own == esi) {
        Some(at) => SymbolPlace::RepairSlot(4 + at as u32),
        None => SymbolPlace::InPlace,
    };
    let esis = [25, 19, 3, 77].map(Esi);
    let mut read = vec![9; 4 * 64];
    object.read_symbols(sbn, &esis, place, &mut read).unwrap();
    assert_eq!(read, sent(sbn, &esis));

    // All of it: new symbols, in one pass and in several.
    object.write_at(0, &bytes).unwrap();
    let plan = plans.source_plan(layout.oti().scheme, 20).unwrap();
    let esis = [20, 900, (1 << 23) + 5].map(Esi);
    for budget in [usize::MAX, 0] {
        let mut computed = vec![9; 3 * 64];
        object.compute_symbols(sbn, &esis, &plan, budget, &mut computed).unwrap();
        assert_eq!(computed, sent(sbn, &esis), "{budget}");
    }
    let short = object.read_symbols(sbn, &esis, place, &mut [0; 64]);
    assert!(matches!(short, Err(StagingError::Geometry(_))));
    let other = plans.source_plan(layout.oti().scheme, 19).unwrap();
    let refused = object.compute_symbols(sbn, &esis, &other, 0, &mut [0; 192]);
    assert!(matches!(refused, Err(StagingError::Geometry(GeometryError::Plan { .. }))));
    // While it waits for its name, it is read, and not written to.
    staging.settle(&[file]).unwrap();
    let mut settled = vec![0; bytes.len()];
    object.read_at(0, &mut settled).unwrap();
    assert!(settled == bytes);
    assert!(matches!(object.write_at(0, &bytes), Err(StagingError::Committed { .. })));
    // Its files have their names: they are read from there.
    staging.publish(&[file]).unwrap();
    let gone = object.read_symbols(sbn, &[Esi(3)], |_| SymbolPlace::InPlace, &mut [0; 64]);
    assert!(matches!(gone, Err(StagingError::Committed { .. })), "{gone:?}");
}
