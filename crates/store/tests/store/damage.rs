//! Files that are shorter than the journal says, and spools of another length: a receiver that
//! resumes uses only what is certain to exist.

use crate::power::{SLOTS, T, add_object, believed, copy, open, receive};
use fontana_fec::{Esi, Sbn};
use fontana_store::{Kept, Note};
use std::fs;
use std::path::Path;

/// Symbols of a block.
const K: usize = 16;
const WHOLE: u32 = 2;
const DATA: usize = 4 * K * T;
const SPOOL: usize = 4 * SLOTS as usize * T;

/// Receives some symbols of three blocks, and all of another.
fn interrupted_reception(directory: &Path) {
    let (staging, _) = open(directory);
    let object = add_object(&staging);
    for sbn in 0..4 {
        let esis: Vec<u32> =
            if sbn == WHOLE { (0..16).collect() } else { vec![0, 3, 15, 16, 17, 20] };
        esis.into_iter().for_each(|esi| receive(&staging, &object, sbn, esi));
    }
    staging.note(&[Note::Whole { toi: 1, sbn: Sbn(WHOLE) }]).unwrap();
}

/// The number of symbols that end within the file, and of those in a spool of the right length, by
/// a simple model.
fn expected(data: usize, spool: usize) -> usize {
    let mut count = 0;
    for sbn in [0, 1, 3] {
        count += [0, 3, 15].iter().filter(|&esi| (sbn * K + esi + 1) * T <= data).count();
        count += if spool == SPOOL { 3 } else { 0 };
    }
    let start = WHOLE as usize * K * T;
    let is_whole = start + K * T <= data;
    count + if is_whole { 0 } else { data.saturating_sub(start) / T }
}

/// The symbols of a resumed receiver, after it has compared the journal with the files.
fn resume(directory: &Path) -> Kept {
    let (staging, mut kept) = open(directory);
    let object = add_object(&staging);
    staging.reconcile([(1, &object)], &mut kept).unwrap();
    kept
}

#[test]
fn symbols_after_the_end_of_a_file_are_not_believed_in_any_run() {
    let dir = tempfile::tempdir().unwrap();
    interrupted_reception(dir.path());
    let cuts = |length: usize| {
        [0, 1, T - 1, T, 4 * T, length / 2, length / 2 + 9, length - 1, length, length + 5]
    };
    let data = cuts(DATA).map(|cut| (cut, SPOOL));
    let spool = cuts(SPOOL).map(|cut| (DATA, cut));
    for (data, spool) in data.into_iter().chain(spool).chain([(3 * K * T + 5, 2 * T + 1)]) {
        let damaged = tempfile::tempdir().unwrap();
        let live = damaged.path().join(".fontana-test");
        copy(&dir.path().join(".fontana-test"), &live);
        for (name, length) in [("0", data), ("0.repair", spool)] {
            let file = fs::File::options().write(true).open(live.join(name)).unwrap();
            file.set_len(length as u64).unwrap();
            if length == 0 {
                fs::remove_file(live.join(name)).unwrap(); // as short as a file can be
            }
        }
        let expected = expected(data, spool);
        let kept = resume(damaged.path());
        assert_eq!(believed(damaged.path(), &kept), expected, "{data} {spool}");
        let is_whole = (WHOLE as usize + 1) * K * T <= data;
        assert_eq!(kept.blocks.get(&(1, Sbn(WHOLE))).is_some_and(|b| b.whole), is_whole);

        // A killed receiver has written to the files: they have their full length again.
        let (staging, _) = open(damaged.path());
        let object = add_object(&staging);
        receive(&staging, &object, 0, 7);
        receive(&staging, &object, 0, 22);
        drop((staging, object));
        let lengths = ["0", "0.repair"].map(|name| fs::metadata(live.join(name)).unwrap().len());
        assert_eq!(lengths, [DATA as u64, SPOOL as u64]);
        let again = resume(damaged.path());
        assert_eq!(believed(damaged.path(), &again), expected + 2, "{data} {spool}");
        assert!(again.blocks[&(1, Sbn(0))].in_place.contains(&Esi(7)));
    }
}
