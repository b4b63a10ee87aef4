//! Locks that threads share. A lock that a panicking thread held is taken all the same: no method
//! leaves a change half done, and the session of the thread ends.
//!
//! In tests each thread counts the locks that it takes: what is done for each batch of symbols
//! takes few of them.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A value that one thread uses at a time.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// A value that several threads read, or one changes.
#[derive(Debug, Default)]
pub(crate) struct ReadLock<T>(RwLock<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        count();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> ReadLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        count();
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        count();
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(not(test))]
const fn count() {}

#[cfg(test)]
use counter::count;

#[cfg(test)]
pub(crate) mod counter {
    use std::cell::Cell;

    thread_local! {
        static TAKEN: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        TAKEN.set(TAKEN.get() + 1);
    }

    /// Locks that this thread takes while `work` runs.
    pub(crate) fn locks_taken(work: impl FnOnce()) -> u64 {
        let before = TAKEN.get();
        work();
        TAKEN.get() - before
    }
}

#[cfg(test)]
mod tests {
    use super::counter::locks_taken;
    use crate::attributes::FileAttributes;
    use crate::encode::ObjectEncoder;
    use crate::extents::Extents;
    use crate::object_source::ObjectSource;
    use crate::solved::SolvedStore;
    use crate::source::SourceFiles;
    use crate::staged_object::StagedObject;
    use crate::staging::{Staging, StagingOptions};
    use crate::target::{TargetDirectory, TargetName};
    use fontana_fec::codes::raptorq::RaptorQ;
    use fontana_fec::{Esi, FecScheme, ObjectLayout, Oti, PlanCache, Sbn};
    use std::sync::Arc;

    const SYMBOL_SIZE: u16 = 1280;
    const SYMBOLS: u32 = 6400;
    /// Symbols that a GSO batch has, and that are read or computed by one call.
    const BATCH: usize = 48;

    fn layout() -> ObjectLayout {
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        let transfer_length = u64::from(SYMBOLS) * u64::from(SYMBOL_SIZE);
        Oti { transfer_length, symbol_size: SYMBOL_SIZE, scheme }.layout().unwrap()
    }

    fn per_gigabyte(locks: u64) -> u64 {
        locks * 1_000_000_000 / layout().oti().transfer_length
    }

    /// What a receiver does for each run of symbols that arrive together.
    #[test]
    fn received_symbols_take_few_locks() {
        let directory = tempfile::tempdir().unwrap();
        let target = Arc::new(TargetDirectory::open(directory.path()).unwrap());
        let staging = Staging::create(target, "test", StagingOptions::default()).unwrap().0;
        let length = layout().oti().transfer_length;
        let name = TargetName::new(&["file"]).unwrap();
        let file = staging.add_file(name, length, FileAttributes::default()).unwrap();
        let extents = Extents::whole_file(file, length);
        let object = StagedObject::new(Arc::new(staging), layout(), extents, 100).unwrap();
        let run = [7; BATCH * SYMBOL_SIZE as usize];
        let locks = locks_taken(|| {
            for first in (0..SYMBOLS - BATCH as u32).step_by(BATCH) {
                object.write_source_run(Sbn(0), Esi(first), &run).unwrap();
            }
        });
        // 16 300 runs in a gigabyte; 780 000 packets.
        assert!(per_gigabyte(locks) <= 4 * 16_300, "{} locks per GB", per_gigabyte(locks));
    }

    /// What a sender does for each batch, of source symbols and of repair symbols.
    #[test]
    fn encoded_symbols_take_few_locks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let length = layout().oti().transfer_length;
        std::fs::write(&path, vec![7; length as usize]).unwrap();
        let mut files = SourceFiles::default();
        let index = files.add(&path).unwrap();
        let extents = Extents::whole_file(index, length);
        let source = Arc::new(ObjectSource::new(Arc::new(files), layout(), extents).unwrap());
        let store = SolvedStore::new(64 << 20);
        let encoder = ObjectEncoder::new(source, Arc::new(PlanCache::new(1)), store);
        let mut batch = [0; BATCH * SYMBOL_SIZE as usize];
        for start in [0, SYMBOLS] {
            let locks = locks_taken(|| {
                for first in (start..start + SYMBOLS).step_by(BATCH) {
                    let end = (first + BATCH as u32).min(start + SYMBOLS);
                    let esis: Vec<Esi> = (first..end).map(Esi).collect();
                    let bytes = &mut batch[..esis.len() * usize::from(SYMBOL_SIZE)];
                    encoder.encode(Sbn(0), &esis, 64 << 20, bytes).unwrap();
                }
            });
            assert!(per_gigabyte(locks) <= 4 * 16_300, "{} locks per GB", per_gigabyte(locks));
        }
    }
}
