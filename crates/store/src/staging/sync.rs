//! Syncing of staged files during the reception, so that a power failure costs only recent symbols.
//!
//! Writers do not wait for the disk: a writer only marks its file as dirty, once per sync era. The
//! order of three steps makes a mark of the journal true: bytes are written, then the file is
//! marked as dirty, then the note is written. A sync first reads the journal's length, then takes
//! the list of dirty files.

use super::spool::{RetiredRange, Spool};
use super::{Key, StagedFile, State};
use crate::failure::StagingError;
use crate::failure::failed;
use crate::geometry::GeometryError;
use crate::journal::JOURNAL;
use crate::lock::Lock;
use crate::open_files::DEFAULT_OPEN_FILES;
use crate::staging::Staging;
use fontana_fec::Sbn;
use rustix::fd::AsFd;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

/// More dirty files than this are synced with all others on their file system. Each sync of a
/// single file is a journal commit of the file system (milliseconds), and no more descriptors are
/// available.
const MANY: usize = DEFAULT_OPEN_FILES;

/// Files and ranges that were written since the last sync.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// Bytes written.
    bytes: AtomicU64,
    /// The number of syncs so far, from 1. A file stores the era in which it was last marked as
    /// dirty.
    era: AtomicU64,
    list: Lock<List>,
    /// Held while syncing. True if a sync has ever failed: then no later sync can guarantee
    /// anything.
    turn: Lock<bool>,
}

#[derive(Debug, Default)]
struct List {
    /// Files written to.
    dirty: BTreeMap<Key, Arc<StagedFile>>,
    /// True if any file may be dirty: an earlier receiver has written in the same boot.
    anything: bool,
    /// True if files were created: the directory has to be synced.
    created: bool,
    /// Ranges of spools that are free once the notes about them are synced.
    retired: Vec<RetiredRange>,
}

impl Unsynced {
    pub(super) fn new(resumed: bool) -> Self {
        // The staging directory itself may be new.
        let list = List { anything: resumed, created: true, ..List::default() };
        Self {
            bytes: AtomicU64::new(0),
            era: AtomicU64::new(1),
            list: Lock::new(list),
            turn: Lock::new(false),
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock()
    }

    /// Records that `bytes` were written to a file. Call it before the journal describes them.
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

    /// Removes a file from the list.
    pub(super) fn forget(&self, file: &StagedFile) {
        self.list().dirty.remove(&file.key);
    }

    /// Everything was removed: there is nothing to sync.
    pub(super) fn clear(&self) {
        *self.list() = List::default();
        self.bytes.store(0, Ordering::Relaxed);
    }
}

impl Staging {
    /// Bytes that were written since the last sync.
    pub fn unsynced_bytes(&self) -> u64 {
        self.unsynced.bytes.load(Ordering::Relaxed)
    }

    /// Waits until everything that was noted before is on the disk, and records that in the
    /// journal: it survives a power failure from then on. May take seconds; writers do not wait.
    ///
    /// # Errors
    /// [`StagingError::System`] if a sync failed. It is not repeated: the reception may continue,
    /// but later symbols survive only a kill, not a power failure.
    pub fn sync(&self) -> Result<(), StagingError> {
        // A second sync must not mark files as synced for which the first one is still waiting.
        let mut broken = self.unsynced.turn.lock();
        if *broken {
            return Ok(());
        }
        let result = self.sync_in_turn();
        *broken = result.is_err();
        result
    }

    fn sync_in_turn(&self) -> Result<(), StagingError> {
        let journal = || self.path().join(JOURNAL);
        // Ranges that are free by notes that end before `end`.
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
            self.sync_file_system(dirty.values())?;
            dirty.values().try_for_each(|file| self.check_trusted(file, *file.read()))?;
        } else {
            dirty.values().try_for_each(|file| self.sync_file(file))?;
        }
        if created {
            self.sync_directories()?;
        }
        self.journal.append_synced(end).map_err(failed(&journal(), "sync"))?;
        retired.into_iter().try_for_each(|range| range.free(self))
    }

    /// Syncs the file system, and with it all `files`, which are no longer written to.
    pub(crate) fn sync_together<'a>(
        &self,
        files: impl Iterator<Item = &'a Arc<StagedFile>>,
    ) -> Result<(), StagingError> {
        // An error that a sync of another thread receives is recorded before this one starts.
        let _turn = self.unsynced.turn.lock();
        self.sync_file_system(files)
    }

    /// Syncs the file system. The kernel reports a lost write once to the descriptor of the staging
    /// directory, so an error is recorded for all `files`.
    fn sync_file_system<'a>(
        &self,
        files: impl Iterator<Item = &'a Arc<StagedFile>>,
    ) -> Result<(), StagingError> {
        let synced = self.disk().sync_file_system(self.directory().as_fd());
        synced.map_err(|errno| {
            files.for_each(|file| file.refused.store(true, Ordering::SeqCst));
            failed(&self.path(), "sync")(errno)
        })
    }

    /// Returns the range of a block to the file system when the notes that were written before this
    /// call are synced, unless the block is written to before. Until then a power failure may undo
    /// the note that the range is free.
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
        self.check_trusted(file, *state)?;
        if !matches!(*state, State::Staged | State::Closed) {
            return Ok(()); // already synced by a commit, or removed
        }
        let open = self.open(file)?;
        self.disk().sync_data(open.as_fd()).map_err(|errno| {
            // The kernel reports the error once. The commit needs it, and cannot run while the
            // file's state is held here.
            file.refused.store(true, Ordering::SeqCst);
            self.failed(file, "sync", 0)(errno)
        })
    }

    /// Rejects a file of which a commit could not sync all: the kernel reports the error once, so a
    /// later success shows nothing.
    fn check_trusted(&self, file: &StagedFile, state: State) -> Result<(), StagingError> {
        let is_doubtful = state == State::Doubtful || file.refused.load(Ordering::SeqCst);
        if is_doubtful { Err(self.doubtful(file)) } else { Ok(()) }
    }

    fn sync_directories(&self) -> Result<(), StagingError> {
        let synced = self.disk().sync_directory(self.directory().as_fd());
        synced.map_err(failed(&self.path(), "sync"))?;
        self.target().sync(None)
    }
}
