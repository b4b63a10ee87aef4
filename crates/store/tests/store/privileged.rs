//! Tests that mount a file system, and therefore need root: a full disk, a read-only one.

use crate::fixtures::{Mount, name, names_in, no_code, staging_with, whole_file};
use fontana_fec::{Esi, Sbn};
use fontana_proto::Category;
use fontana_store::{
    Errno, FileAttributes, SpillFile, StagedObject, StagingError, StagingOptions, TargetDirectory,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const RESERVE: StagingOptions = StagingOptions { overwrite: false, reserve: true, open_files: 4 };

#[test]
fn a_file_that_does_not_fit_is_refused_before_receiving() {
    let Some(disk) = Mount::tmpfs("size=1m") else { return };
    let staging = staging_with(&disk.path, RESERVE).unwrap();
    let add = |file: &str, length| staging.add_file(name(file), length, FileAttributes::default());
    let error = add("large", 2 * MIB).unwrap_err();
    let StagingError::DiskFull { path, room } = &error else { panic!("{error}") };
    assert_eq!((path, room.wanted), (&disk.path.join("large"), 2 * MIB));
    assert!(room.available.is_some_and(|bytes| bytes <= MIB));
    assert_eq!(error.category(), Category::DiskFull);
    // A reservation that failed halfway is released.
    assert!(add("small", MIB / 2).is_ok());
    assert!(add("large", MIB).is_err());
    assert!(add("large", MIB / 4).is_ok(), "a name that was refused is not taken");
    assert_eq!(names_in(&disk.path), [".fontana-test"]);
}

#[test]
fn a_full_disk_keeps_staged_files_and_the_reception_continues_when_there_is_room() {
    let Some(disk) = Mount::tmpfs("size=1m") else { return };
    let ballast = disk.path.join("ballast");
    fs::write(&ballast, vec![1; (MIB / 2) as usize]).unwrap();
    let options = StagingOptions { reserve: false, ..RESERVE };
    let staging = staging_with(&disk.path, options).unwrap();
    let length = MIB * 3 / 4;
    let file = staging.add_file(name("file"), length, FileAttributes::default()).unwrap();
    let layout = no_code(length, 1024, 1024);
    let object = StagedObject::new(staging.clone(), layout, whole_file(length), 0).unwrap();

    let symbols = length / 1024;
    let write = |esi: u64| object.write_source(Sbn(0), Esi(esi as u32), &[esi as u8; 1024]);
    let full = (0..symbols).find_map(|esi| write(esi).err().map(|error| (esi, error)));
    let (stopped_at, error) = full.unwrap();
    assert_eq!(error.category(), Category::DiskFull, "{error}");
    assert_eq!(names_in(&disk.path), [".fontana-test", "ballast"]);
    assert_eq!(names_in(&staging.path()), ["0", "journal", "lock"]);

    fs::remove_file(&ballast).unwrap();
    for esi in stopped_at..symbols {
        write(esi).unwrap();
    }
    staging.commit(&[file]).unwrap();
    staging.remove().unwrap();
    let expected: Vec<u8> = (0..symbols).flat_map(|esi| [esi as u8; 1024]).collect();
    assert!(fs::read(disk.path.join("file")).unwrap() == expected);
    assert_eq!(names_in(&disk.path), ["file"]);
}

#[test]
fn a_full_spool_is_a_full_disk_and_freeing_a_block_makes_room() {
    let Some(disk) = Mount::tmpfs("size=1m") else { return };
    let staging = staging_with(&disk.path, RESERVE).unwrap();
    let length = MIB / 4;
    staging.add_file(name("file"), length, FileAttributes::default()).unwrap();
    let layout = crate::fixtures::raptorq(length, 4096, 2, 1);
    let object = StagedObject::new(staging, layout, whole_file(length), 1000).unwrap();
    let write = |sbn, slot| object.write_repair_run(Sbn(sbn), slot, &[7; 4096]);
    let error = (0..1000).find_map(|slot| write(0, slot).err()).unwrap();
    assert_eq!(error.category(), Category::DiskFull, "{error}");
    assert!(write(1, 0).is_err());
    object.free_repair(Sbn(0)).unwrap();
    write(1, 0).unwrap();
}

#[test]
fn a_read_only_file_system_is_refused() {
    let Some(disk) = Mount::tmpfs("size=1m") else { return };
    fs::write(disk.path.join("f"), "").unwrap();
    disk.make_read_only();
    let error = staging_with(&disk.path, RESERVE).unwrap_err();
    assert!(matches!(error, StagingError::System { errno: Errno::ROFS, .. }), "{error}");
    assert_eq!(error.category(), Category::Refused);
    let error = staging_with(&disk.path.join("new"), RESERVE).unwrap_err();
    assert_eq!(error.category(), Category::Refused);
}

/// In a directory that all users may write to, another user has taken the name, and closed it.
#[test]
fn a_name_that_another_user_occupies_is_said_to_be_that() {
    let Some(disk) = Mount::tmpfs("size=1m,mode=1777") else { return };
    let path = disk.path.join(".fontana-test");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(disk.path.join(".fontana-mark"), "mark").unwrap();
    fs::set_permissions(disk.path.join(".fontana-mark"), fs::Permissions::from_mode(0o600))
        .unwrap();
    let root = disk.path.clone();
    // The user of one thread only.
    let (entered, read) = std::thread::spawn(move || {
        let user = Some(rustix::process::Uid::from_raw(12_345));
        rustix::thread::set_thread_res_uid(None, user, None).unwrap();
        let target = TargetDirectory::open(&root).unwrap();
        (staging_with(&root, RESERVE).map(|_| ()), target.read_memo("mark", 8).map(|_| ()))
    })
    .join()
    .unwrap();
    assert_eq!(entered, Err(StagingError::NotOurs { path }));
    assert!(matches!(read, Err(StagingError::NotOurs { .. })), "{read:?}");
}

#[test]
fn a_staging_directory_of_another_user_is_not_used() {
    let Some(disk) = Mount::tmpfs("size=1m") else { return };
    let path = disk.path.join(".fontana-test");
    fs::create_dir(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
    let error = staging_with(&disk.path, RESERVE).unwrap_err();
    assert_eq!(error, StagingError::NotOurs { path });
}

#[test]
fn files_below_a_mount_point_are_copied_to_its_file_system() {
    let Some(other) = Mount::tmpfs("size=8m") else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("mounted")).unwrap();
    let at = dir.path().join("mounted");
    rustix::mount::mount_bind(&other.path, &at).unwrap();
    let staging = staging_with(dir.path(), RESERVE).unwrap();
    let attributes = FileAttributes { mode: 0o640, ..FileAttributes::default() };
    let name = |file: &str| fontana_store::TargetName::new(&["mounted", file]).unwrap();
    let bytes = [vec![7; 1 << 20], vec![0; 2 << 20], vec![9; 5]].concat();
    let file = staging.add_file(name("file"), bytes.len() as u64, attributes).unwrap();
    staging.write_file(file, 0, &bytes).unwrap();
    let link = staging.add_link(name("link"), b"file".to_vec()).unwrap();
    let large = staging.add_file(name("large"), 9 << 20, attributes).unwrap();
    staging.write_file(large, 0, &vec![1; 9 << 20]).unwrap();
    let files = [file, link, large];
    let failed = staging.settle_each(&files).unwrap();
    assert_eq!(failed, []);
    let failed = staging.publish_each(&files).unwrap();
    let received = fs::read(at.join("file")).unwrap() == bytes;
    let mode = fs::metadata(at.join("file")).unwrap().permissions().mode();
    let leads_to = fs::read_link(at.join("link")).unwrap();
    let names = names_in(&at);
    rustix::mount::unmount(&at, rustix::mount::UnmountFlags::DETACH).unwrap();
    assert!(received, "other bytes");
    assert_eq!((mode & 0o777, leads_to.to_str()), (0o640, Some("file")));
    // What does not fit there fails alone, and leaves nothing.
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].0, failed[0].1.category()), (large, Category::DiskFull));
    assert_eq!(names, ["file", "link"]);
    assert_eq!(
        fs::read_dir(staging.path())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name() == "0" })
            .count(),
        0,
        "the staged file is gone"
    );
}

#[test]
fn early_symbols_take_at_most_half_of_the_free_space_and_give_it_back() {
    const CHUNK: u64 = 64 << 10;
    let Some(disk) = Mount::tmpfs("size=2m") else { return };
    fs::write(disk.path.join("ballast"), vec![1; MIB as usize]).unwrap();
    let target = Arc::new(TargetDirectory::open(&disk.path).unwrap());
    let spill = SpillFile::new(target);
    let free = || {
        let stat = rustix::fs::statvfs(&disk.path).unwrap();
        stat.f_bavail * stat.f_frsize
    };
    let before = free();
    let write = |chunk| spill.write(chunk * CHUNK, &[7; CHUNK as usize]);
    let (chunk, error) = (0..).find_map(|chunk| Some((chunk, write(chunk).err()?))).unwrap();
    assert_eq!((chunk, error.category()), (8, Category::DiskFull), "of {before} bytes");
    assert!(free() >= before / 2);
    assert_eq!(names_in(&disk.path), ["ballast"]);
    // What is there can be written again, and read.
    write(3).unwrap();
    assert_eq!(spill.read(3 * CHUNK, 2), Ok(vec![7, 7]));
    // Content that has room beside it, and content that has not.
    spill.make_room(before / 2);
    assert!(free() < before);
    spill.make_room(before / 2 + CHUNK);
    assert_eq!((free(), spill.read(0, 1)), (before, Ok(Vec::new())));
    assert!(write(0).is_err(), "it has given way");
}
