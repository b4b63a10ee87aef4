//! What receivers recover from a staging directory that crashes, copies and defects have changed:
//! sequences of receptions, restarts and damage, as a fuzz target.

use crate::power::{SLOTS, add_object, believed, open, receive};
use fontana_fec::{Esi, Sbn};
use fontana_store::{Kept, Note, Staging};
use fontana_testing::{Script, written_before_a_restart};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// What is damaged in a sequence. A receiver notes which bytes are missing before it extends a
/// file, and syncs these notes: a disk that loses bytes of files and such notes loses bytes unseen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Damaged {
    Journal,
    Files,
}

/// Damage that a receiver has left, or that its files have suffered since.
fn damage(script: &mut Script<'_>, live: &Path, damaged: Damaged) {
    if damaged == Damaged::Files {
        return damage_files(script, live);
    }
    let journal = live.join("journal");
    let mut bytes = fs::read(&journal).unwrap_or_default();
    let at = usize::from(script.u16()) % (bytes.len() + 1);
    match script.below(8) {
        // A torn write, or one that went beyond the end.
        0 => bytes.truncate(at),
        1 => {
            bytes.truncate(at);
            bytes.resize(at + usize::from(script.u8()), 0);
        }
        2 => bytes.extend(script.take(40)),
        3 if at < bytes.len() => bytes[at] ^= script.u8(),
        4 if bytes.len() > 33 => written_before_a_restart(&mut bytes),
        5 => _ = fs::remove_file(&journal),
        _ => {}
    }
    if journal.exists() {
        fs::write(&journal, bytes).unwrap();
    }
}

fn damage_files(script: &mut Script<'_>, live: &Path) {
    let path = live.join(script.pick(&["0", "0.repair"]));
    match script.below(4) {
        0 => _ = fs::remove_file(path),
        1 => {
            if let Ok(file) = fs::File::options().write(true).open(path) {
                let length = file.metadata().unwrap().len();
                file.set_len(length * u64::from(script.below(6)) / 4).unwrap();
            }
        }
        _ => {}
    }
}

/// Any note, true or not.
fn note(script: &mut Script<'_>) -> Note {
    let number = |script: &mut Script<'_>| match script.once_in(4) {
        true => script.u32(),
        false => script.below(20).into(),
    };
    let (toi, sbn, esi) = (number(script), Sbn(number(script)), Esi(number(script)));
    let count = 1 + u32::from(script.u8());
    match script.below(7) {
        0 => Note::InPlace { toi, sbn, esi, count },
        1 => Note::Spooled { toi, sbn, esi, slot: number(script), count },
        2 => Note::Whole { toi, sbn },
        3 => Note::Void { toi, sbn },
        4 => Note::Committed { toi },
        5 => Note::Made { directory: toi },
        _ => Note::Packets { count: script.magnitude() },
    }
}

fn resume(directory: &Path) -> (Arc<Staging>, Kept) {
    let (staging, mut kept) = open(directory);
    let object = add_object(&staging);
    staging.reconcile([(1, &object)], &mut kept).unwrap();
    (staging, kept)
}

/// True notes and missing bytes: what is believed has the bytes that were received.
#[test]
fn damaged_staging_directories() {
    bolero::check!().with_iterations(24).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join(".fontana-test");
        let damaged = if script.once_in(2) { Damaged::Journal } else { Damaged::Files };
        for _ in 0..8 {
            let (staging, mut kept) = open(dir.path());
            let object = add_object(&staging);
            staging.reconcile([(1, &object)], &mut kept).unwrap();
            if live.join("0").exists() && fs::metadata(live.join("0")).unwrap().len() > 0 {
                believed(dir.path(), &kept);
            }
            for _ in 0..script.below(32) {
                match script.below(16) {
                    0 => staging.sync().unwrap(),
                    1 => {
                        let sbn = Sbn(script.below(4).into());
                        staging.note(&[Note::Void { toi: 1, sbn }]).unwrap();
                    }
                    _ => {
                        let (sbn, esi) = (script.below(4), script.below(24));
                        receive(&staging, &object, sbn.into(), esi.into());
                    }
                }
            }
            drop((staging, object));
            damage(&mut script, &live, damaged);
        }
    });
}

/// Notes that no receiver writes: a journal of another content, or of an attacker.
#[test]
fn any_notes() {
    bolero::check!().with_iterations(24).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join(".fontana-test");
        for _ in 0..4 {
            let (staging, kept) = resume(dir.path());
            for ((toi, _), block) in &kept.blocks {
                if kept.committed.contains(toi) {
                    continue;
                }
                let slots_exist = block.spooled.iter().all(|&(_, slot)| slot < SLOTS);
                assert!(*toi != 1 || slots_exist, "{block:?}");
            }
            for _ in 0..Script::STEPS / 4 {
                let notes: Vec<_> = (0..script.below(4)).map(|_| note(&mut script)).collect();
                staging.note(&notes).unwrap();
            }
            drop(staging);
            let damaged = if script.once_in(2) { Damaged::Journal } else { Damaged::Files };
            damage(&mut script, &live, damaged);
        }
    });
}
