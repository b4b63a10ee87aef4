//! The staging directory after a power failure.
//!
//! The disk after a power failure: files as they were when they were last synced, any prefix of the
//! journal, and another boot of the host.

use crate::fixtures::{name, names_in, raptorq, whole_file};
use fontana_fec::{Esi, ObjectLayout, Sbn};
use fontana_store::{
    FileAttributes, FileIndex, Kept, Note, StagedObject, Staging, StagingOptions, TargetDirectory,
};
use fontana_testing::written_before_a_restart;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const T: usize = 64;
pub(crate) const SLOTS: u32 = 8;

/// Four blocks of 16 symbols.
fn layout() -> ObjectLayout {
    raptorq(64 * T as u64, T as u16, 4, 1)
}

pub(crate) fn open(directory: &Path) -> (Arc<Staging>, Kept) {
    let target = Arc::new(TargetDirectory::open(directory).unwrap());
    let (staging, kept) = Staging::create(target, "test", StagingOptions::default()).unwrap();
    (Arc::new(staging), kept)
}

pub(crate) fn add_object(staging: &Arc<Staging>) -> StagedObject {
    let length = layout().oti().transfer_length;
    staging.add_file(name("a"), length, FileAttributes::default()).unwrap();
    StagedObject::new(Arc::clone(staging), layout(), whole_file(length), SLOTS).unwrap()
}

pub(crate) fn symbol(sbn: u32, esi: u32) -> Vec<u8> {
    (0..T as u32).map(|at| (at * 7 + sbn * 61 + esi * 13 + 1) as u8).collect()
}

/// Writes a symbol and its note, in this order.
pub(crate) fn receive(staging: &Staging, object: &StagedObject, sbn: u32, esi: u32) {
    let (sbn_id, bytes) = (Sbn(sbn), symbol(sbn, esi));
    let note = if esi < 16 {
        object.write_source(sbn_id, Esi(esi), &bytes).unwrap();
        Note::InPlace { toi: 1, sbn: sbn_id, esi: Esi(esi), count: 1 }
    } else {
        let slot = esi - 16;
        object.write_repair_run(sbn_id, slot, &bytes).unwrap();
        Note::Spooled { toi: 1, sbn: sbn_id, esi: Esi(esi), slot, count: 1 }
    };
    staging.note(&[note]).unwrap();
}

/// Copies the files of a staging directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in names_in(from) {
        fs::copy(from.join(&file), to.join(&file)).unwrap();
    }
}

/// The number of believed source and repair symbols, after comparing the bytes of each.
pub(crate) fn believed(directory: &Path, kept: &Kept) -> usize {
    let file = fs::read(directory.join(".fontana-test/0")).unwrap_or_default();
    let spool = fs::read(directory.join(".fontana-test/0.repair")).unwrap_or_default();
    let mut count = 0;
    for (&(_, sbn), block) in &kept.blocks {
        for esi in &block.in_place {
            let at = (sbn.0 as usize * 16 + esi.0 as usize) * T;
            assert_eq!(file[at..at + T], symbol(sbn.0, esi.0), "{sbn:?} {esi:?}");
        }
        for (esi, slot) in &block.spooled {
            let at = (sbn.0 * SLOTS + slot) as usize * T;
            assert_eq!(spool[at..at + T], symbol(sbn.0, esi.0), "{sbn:?} {esi:?}");
        }
        count += block.in_place.len() + block.spooled.len();
    }
    count
}

/// A receiver that is left nothing begins with new files. Its journal must not have the notes about
/// the old ones, which were synced, while the note that withdraws them was not.
#[test]
fn notes_about_files_that_were_removed_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (staging, _) = open(dir.path());
    receive(&staging, &add_object(&staging), 0, 11);
    staging.sync().unwrap();
    staging.note(&[Note::Void { toi: 1, sbn: Sbn(0) }]).unwrap();
    drop(staging);
    assert_eq!(open(dir.path()).1, Kept::default());
    let path = dir.path().join(".fontana-test/journal");
    let journal = fs::read(&path).unwrap();
    for length in 0..=journal.len() {
        fs::write(&path, &journal[..length]).unwrap();
        assert_eq!(open(dir.path()).1, Kept::default(), "{length} bytes");
    }
}

#[test]
fn what_was_synced_is_believed_after_a_power_failure_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let live = dir.path().join(".fontana-test");
    let (staging, _) = open(dir.path());
    let object = add_object(&staging);
    for esi in [0, 1, 5, 16] {
        receive(&staging, &object, 0, esi);
    }
    receive(&staging, &object, 3, 2);
    assert_eq!(staging.unsynced_bytes(), 5 * T as u64);
    staging.sync().unwrap();
    assert_eq!(staging.unsynced_bytes(), 0);
    let medium = dir.path().join("medium");
    copy(&live, &medium);
    let durable = fs::read(live.join("journal")).unwrap().len();

    for esi in [6, 7, 17] {
        receive(&staging, &object, 0, esi);
    }
    receive(&staging, &object, 1, 0);
    staging.note(&[Note::Packets { count: 77 }, Note::Whole { toi: 1, sbn: Sbn(2) }]).unwrap();
    drop((staging, object));
    let journal = fs::read(live.join("journal")).unwrap();

    for length in durable..=journal.len() {
        let after = tempfile::tempdir().unwrap();
        copy(&medium, &after.path().join(".fontana-test"));
        let mut on_medium = journal[..length].to_vec();
        written_before_a_restart(&mut on_medium);
        fs::write(after.path().join(".fontana-test/journal"), on_medium).unwrap();
        let (staging, kept) = open(after.path());
        assert_eq!(believed(after.path(), &kept), 5, "{length} bytes of the journal");
        assert!(!kept.blocks.contains_key(&(1, Sbn(2))));
        // The next run in this boot is believed as a whole, and so is what was synced before.
        let object = add_object(&staging);
        receive(&staging, &object, 0, 9);
        drop((staging, object));
        let (_, kept) = open(after.path());
        assert_eq!(believed(after.path(), &kept), 6, "{length} bytes of the journal");
    }

    // The process was killed, not the host: everything is available.
    let (_, kept) = open(dir.path());
    assert_eq!(believed(dir.path(), &kept), 9);
    assert!(kept.blocks[&(1, Sbn(2))].whole);
    assert_eq!(kept.packets, 77);
}

#[test]
fn the_spool_range_of_a_whole_block_is_freed_after_the_next_sync() {
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join(".fontana-test/0.repair");
    let (staging, _) = open(dir.path());
    let object = add_object(&staging);
    receive(&staging, &object, 1, 16);
    staging.note(&[Note::Whole { toi: 1, sbn: Sbn(1) }]).unwrap();
    object.free_repair_when_synced(Sbn(1)).unwrap();
    let slot = SLOTS as usize * T;
    assert_eq!(fs::read(&spool).unwrap()[slot..slot + T], symbol(1, 16));
    staging.sync().unwrap();
    assert_eq!(fs::read(&spool).unwrap()[slot..slot + T], [0; T]);
}

#[test]
fn repair_symbols_of_a_block_that_is_received_again_survive_the_next_sync() {
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join(".fontana-test/0.repair");
    let (staging, _) = open(dir.path());
    let object = add_object(&staging);
    let slot = |sbn: u32, slot: u32| {
        let at = (sbn * SLOTS + slot) as usize * T;
        fs::read(&spool).unwrap()[at..at + T].to_vec()
    };
    for sbn in [1, 2] {
        object.write_repair_run(Sbn(sbn), 0, &[0xBA; T]).unwrap();
        staging.note(&[Note::Void { toi: 1, sbn: Sbn(sbn) }]).unwrap();
        object.free_repair_when_synced(Sbn(sbn)).unwrap();
    }
    receive(&staging, &object, 1, 16);
    staging.sync().unwrap();
    assert_eq!(slot(1, 0), symbol(1, 16), "written since: the range is needed");
    assert_eq!(slot(2, 0), [0; T], "not written since: the range is free");

    // The block is whole, and the space of its repair symbols is freed.
    staging.note(&[Note::Whole { toi: 1, sbn: Sbn(1) }]).unwrap();
    object.free_repair_when_synced(Sbn(1)).unwrap();
    staging.sync().unwrap();
    assert_eq!(slot(1, 0), [0; T]);
}

/// One block is voided and received again repeatedly while another thread syncs.
#[test]
fn a_sync_at_any_moment_takes_no_symbol_that_was_written_before_it_ended() {
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join(".fontana-test/0.repair");
    let (staging, _) = open(dir.path());
    let object = add_object(&staging);
    object.write_repair_run(Sbn(0), 0, &symbol(0, 16)).unwrap();
    let spool = fs::File::open(spool).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                staging.sync().unwrap();
            }
        });
        for reception in 0..2_000_u32 {
            object.free_repair_when_synced(Sbn(0)).unwrap();
            for slot in 0..SLOTS {
                object.write_repair_run(Sbn(0), slot, &symbol(reception, 16 + slot)).unwrap();
            }
            let mut bytes = [0; T];
            for slot in 0..SLOTS {
                spool.read_exact_at(&mut bytes, u64::from(slot) * T as u64).unwrap();
                let expected = symbol(reception, 16 + slot);
                // A failing assertion must not leave the other thread running.
                over.fetch_or(bytes != *expected, Ordering::SeqCst);
            }
            assert!(!over.load(Ordering::SeqCst), "reception {reception}");
        }
        over.store(true, Ordering::SeqCst);
        syncing.join().unwrap();
    });
}

#[test]
fn a_run_that_resumes_in_the_same_boot_syncs_earlier_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (staging, _) = open(dir.path());
    let object = add_object(&staging);
    receive(&staging, &object, 2, 3);
    drop((staging, object));
    let (staging, _) = open(dir.path());
    staging.sync().unwrap();
    drop(staging);
    let journal = dir.path().join(".fontana-test/journal");
    let mut bytes = fs::read(&journal).unwrap();
    written_before_a_restart(&mut bytes);
    fs::write(&journal, bytes).unwrap();
    let (_, kept) = open(dir.path());
    assert_eq!(believed(dir.path(), &kept), 1);
}

#[test]
fn syncing_removed_or_committed_files_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let (staging, _) = open(dir.path());
    let object = add_object(&staging);
    receive(&staging, &object, 0, 0);
    receive(&staging, &object, 0, 16);
    object.remove_spool().unwrap();
    object.free_repair_when_synced(Sbn(0)).unwrap();
    staging.commit(&[FileIndex(0)]).unwrap();
    staging.sync().unwrap();
    staging.remove().unwrap();
    staging.sync().unwrap();
    assert_eq!(names_in(dir.path()), ["a"]);
}
