//! Comparison of an earlier receiver's notes with the existing files.
//!
//! A staged file has its full length from its creation on. If it is shorter when a receiver resumes
//! (a damaged disk, an interrupted copy, or a user truncated it), the bytes after its end are lost,
//! although the journal has notes about them. Their symbols must be received again: a symbol that
//! is read as zeros makes its whole block wrong. The length of a spool follows from its number of
//! slots. In a spool of another length, a symbol may be in another place than its note says.

use crate::failure::StagingError;
use crate::ids::FileIndex;
use crate::journal::{Kept, KeptBlock, Note};
use crate::staged_object::StagedObject;
use crate::staging::Staging;
use fontana_fec::{Esi, Sbn};
use std::collections::BTreeMap;
use std::ops::Range;

/// The available part of an object's files.
struct Available {
    /// Present length of each file that is too short.
    short: BTreeMap<FileIndex, u64>,
    /// The spool has its length.
    has_spool: bool,
}

impl Staging {
    /// Removes from `kept` the symbols that lie after the end of a file of their object, or in a
    /// spool of another length, and records this in the journal. Then creates the large files, and
    /// gives existing ones their length. Call it after all files and `objects`, with their TOIs,
    /// were added, and before anything is written. Does nothing unless an earlier receiver left
    /// files.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn reconcile<'o>(
        &self,
        objects: impl IntoIterator<Item = (u32, &'o StagedObject)>,
        kept: &mut Kept,
    ) -> Result<(), StagingError> {
        if !self.is_resumed() {
            return Ok(());
        }
        let mut is_damaged = false;
        for (toi, object) in objects {
            if kept.committed.contains(&toi) {
                continue; // its files are complete, or have their names
            }
            let available = self.available_of(object)?;
            let blocks = (toi, Sbn(0))..=(toi, Sbn(u32::MAX));
            for (&(_, sbn), block) in kept.blocks.range_mut(blocks) {
                let remaining = available.of_block(object, sbn, block);
                if remaining != *block {
                    self.note(&notes_of(toi, sbn, &remaining))?;
                    *block = remaining;
                    is_damaged = true;
                }
            }
        }
        kept.blocks.retain(|_, block| *block != KeptBlock::default());
        if is_damaged {
            // Recorded before files are extended: the next receiver could not detect it any more.
            self.sync_notes()?;
        }
        self.create_large_files()
    }

    fn available_of(&self, object: &StagedObject) -> Result<Available, StagingError> {
        let mut short = BTreeMap::new();
        for (&index, file) in object.files() {
            let length = self.length_on_disk(file)?;
            if length < file.length {
                short.insert(index, length);
            }
        }
        let spool = &object.spool().file;
        Ok(Available { short, has_spool: self.length_on_disk(spool)? == spool.length })
    }
}

impl Available {
    /// The available symbols of a block.
    fn of_block(&self, object: &StagedObject, sbn: Sbn, block: &KeptBlock) -> KeptBlock {
        let mut remaining = block.clone();
        if !self.short.is_empty() {
            let range = object.placement().block_range(sbn);
            remaining.whole &= range.is_ok_and(|range| self.has(object, range));
            if block.whole && !remaining.whole {
                let source_symbols = object.placement().source_symbols(sbn).unwrap_or(0);
                remaining.in_place = (0..source_symbols).map(Esi).collect();
            }
            remaining.in_place.retain(|&esi| self.has_source(object, sbn, esi));
        }
        remaining
            .spooled
            .retain(|&(_, slot)| self.has_spool && object.spool().slot_range(sbn, slot).is_ok());
        remaining
    }

    fn has_source(&self, object: &StagedObject, sbn: Sbn, esi: Esi) -> bool {
        let columns = 0..object.placement().symbol_size();
        object.placement().column_pieces(sbn, esi, columns).is_ok_and(|mut pieces| {
            pieces.all(|piece| {
                let length = piece.in_columns.len() as u64;
                self.has(object, piece.in_object..piece.in_object + length)
            })
        })
    }

    /// True if a range of the object is available.
    fn has(&self, object: &StagedObject, range: Range<u64>) -> bool {
        let length = (range.end - range.start) as usize;
        object.extents().pieces(range.start, length).all(|piece| {
            let end = piece.offset + piece.within.len() as u64;
            self.short.get(&piece.file).is_none_or(|&length| end <= length)
        })
    }
}

/// The notes that replace those about a block.
fn notes_of(toi: u32, sbn: Sbn, block: &KeptBlock) -> Vec<Note> {
    let in_place = block.in_place.iter().map(|&esi| Note::InPlace { toi, sbn, esi, count: 1 });
    let spooled =
        block.spooled.iter().map(|&(esi, slot)| Note::Spooled { toi, sbn, esi, slot, count: 1 });
    let whole = block.whole.then_some(Note::Whole { toi, sbn });
    std::iter::once(Note::Void { toi, sbn }).chain(whole).chain(in_place).chain(spooled).collect()
}
