//! Bringing what was staged to the medium while it is received, so that a power failure costs no
//! more than what came since.
//!
//! Who writes must not wait for the medium: a writer only notes which file it has written to, and
//! that once for each time of syncing. The order of three things makes a mark of the journal true:
//! bytes are written, then the file is counted as dirty, then the note is written; syncing first
//! looks where the journal ends, then takes the dirty files.

use super::spool::{RetiredRange, Spool};
use super::{Key, StagedFile, State};
use crate::failure::StagingError;
use crate::failure::failed;
use crate::geometry::GeometryError;
use crate::journal::JOURNAL;
use crate::open_files::DEFAULT_OPEN_FILES;
use crate::staging::Staging;
use crate::sys;
use fontana_fec::Sbn;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More dirty files than this are synced with everything else on their file system: each one alone
/// is a journal commit of the file system (milliseconds), and there are no more descriptors at
/// hand.
const MANY: usize = DEFAULT_OPEN_FILES;

/// What was written since it was last synced.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// Bytes written.
    bytes: AtomicU64,
    /// Counts the times of syncing; files remember in which one they were last called dirty.
    era: AtomicU64,
    list: Mutex<List>,
    /// Held while syncing; whether it has ever failed: then nothing can be vouched for any more.
    turn: Mutex<bool>,
}

#[derive(Debug, Default)]
struct List {
    /// Files written to.
    dirty: BTreeMap<Key, Arc<StagedFile>>,
    /// Anything may be dirty: an earlier receiver has written in the same run of the machine.
    anything: bool,
    /// Files were created: the directory has to be synced.
    created: bool,
    /// Ranges of spools that nothing needs once the notes that say so are synced.
    retired: Vec<RetiredRange>,
}

impl Unsynced {
    pub(super) fn new(resumed: bool) -> Self {
        // The staging directory itself may be new.
        let list = List { anything: resumed, created: true, ..List::default() };
        Self {
            bytes: AtomicU64::new(0),
            era: AtomicU64::new(1),
            list: Mutex::new(list),
            turn: Mutex::new(false),
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // Every change of the list is complete in itself.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `bytes` were written to a file: before they are spoken of in the journal.
    pub(super) fn written(&self, file: &Arc<StagedFile>, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if file.dirty_in.load(Ordering::SeqCst) != self.era.load(Ordering::SeqCst) {
            let mut list = self.list();
            list.dirty.insert(file.key, Arc::clone(file));
            file.dirty_in.store(self.era.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    }

    pub(super) fn created(&self) {
        self.list().created = true;
    }

    /// A file was removed.
    pub(super) fn forget(&self, file: &StagedFile) {
        self.list().dirty.remove(&file.key);
    }

    /// Everything was removed: nothing is left to sync.
    pub(super) fn clear(&self) {
        *self.list() = List::default();
        self.bytes.store(0, Ordering::Relaxed);
    }
}

impl Staging {
    /// Bytes that were written since they were last synced.
    pub fn unsynced_bytes(&self) -> u64 {
        self.unsynced.bytes.load(Ordering::Relaxed)
    }

    /// Waits until everything that was noted before is on the medium, and writes down that it is:
    /// no power failure from now on takes it away. May take seconds; writers do not wait meanwhile.
    ///
    /// # Errors
    /// [`StagingError::System`] if the medium did not take something. It is not asked again: who
    /// goes on receiving has what a kill leaves, but nothing more that a power failure does.
    pub fn sync(&self) -> Result<(), StagingError> {
        // A second one must not speak for files that the first one is still waiting for.
        let mut broken = self.unsynced.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if *broken {
            return Ok(());
        }
        let result = self.sync_in_turn();
        *broken = result.is_err();
        result
    }

    fn sync_in_turn(&self) -> Result<(), StagingError> {
        let journal = || self.path().join(JOURNAL);
        // What is not needed any more by notes that end before `end`.
        let retired = std::mem::take(&mut self.unsynced.list().retired);
        let end = self.journal.end().map_err(failed(&journal(), "examine"))?;
        let List { dirty, anything, created, .. } = {
            let mut list = self.unsynced.list();
            self.unsynced.era.fetch_add(1, Ordering::SeqCst);
            self.unsynced.bytes.store(0, Ordering::Relaxed);
            let retired = std::mem::take(&mut list.retired);
            std::mem::replace(&mut *list, List { retired, ..List::default() })
        };
        if anything || dirty.len() > MANY {
            rustix::fs::syncfs(self.directory()).map_err(failed(&self.path(), "sync"))?;
        } else {
            dirty.values().try_for_each(|file| self.sync_file(file))?;
        }
        if created {
            self.sync_directories()?;
        }
        self.journal.append_synced(end).map_err(failed(&journal(), "sync"))?;
        retired.into_iter().try_for_each(|range| range.free(self))
    }

    /// Returns the range of a block to the file system when the notes that were written before this
    /// call are synced, unless the block is written to before. Until then a power failure may undo
    /// the note that the range is not needed.
    pub(crate) fn free_when_synced(
        &self,
        spool: &Arc<Spool>,
        sbn: Sbn,
    ) -> Result<(), GeometryError> {
        let retired = spool.retire(sbn)?;
        self.unsynced.list().retired.push(retired);
        Ok(())
    }

    fn sync_file(&self, file: &Arc<StagedFile>) -> Result<(), StagingError> {
        let state = file.read();
        if !matches!(*state, State::Staged | State::Closed) {
            return Ok(()); // it has been synced under another lock, or is not there any more
        }
        let open = self.open(file)?;
        sys::retry(|| rustix::fs::fdatasync(&open)).map_err(|errno| {
            // The kernel says so once: it must be known when the file is to be committed, which it
            // cannot be while its state is held.
            file.refused.store(true, Ordering::SeqCst);
            self.failed(file, "sync", 0)(errno)
        })
    }

    fn sync_directories(&self) -> Result<(), StagingError> {
        sys::retry(|| rustix::fs::fsync(self.directory())).map_err(failed(&self.path(), "sync"))?;
        self.target().sync(None)
    }
}
