//! A bounded cache of open descriptors: a bundle may have more files than a process may open.

use crate::lock::Lock;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Default size of a cache. It is small against the usual limit of 1 024 descriptors per process
/// (`RLIMIT_NOFILE`), which sockets and other sessions share. It is larger than the number of files
/// that concurrent blocks usually use.
pub(crate) const DEFAULT_OPEN_FILES: usize = 64;

/// Open descriptors by key. The one used least recently is closed first.
///
/// An evicted descriptor that is in use stays open until its user drops it, so there are at most as
/// many more as there are threads.
#[derive(Debug)]
pub(crate) struct OpenFiles<K> {
    limit: usize,
    cache: Lock<Cache<K>>,
}

#[derive(Debug)]
struct Cache<K> {
    files: BTreeMap<K, Entry>,
    /// The number of uses.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    file: Arc<OwnedFd>,
    last_use: u64,
}

impl<K: Ord + Copy> OpenFiles<K> {
    /// A cache of at most `limit` descriptors (at least one).
    pub(crate) fn new(limit: usize) -> Self {
        let cache = Lock::new(Cache { files: BTreeMap::new(), uses: 0 });
        Self { limit: limit.max(1), cache }
    }

    /// The descriptor of `key`, if it is in the cache.
    pub(crate) fn get(&self, key: K) -> Option<Arc<OwnedFd>> {
        self.cache.lock().find(key)
    }

    /// The descriptor of `key`, opened if it is not in the cache.
    pub(crate) fn get_or_open<E>(
        &self,
        key: K,
        open: impl FnOnce() -> Result<OwnedFd, E>,
    ) -> Result<Arc<OwnedFd>, E> {
        if let Some(file) = self.get(key) {
            return Ok(file);
        }
        // Not under the lock, on which other threads would wait: opening and closing may wait for a
        // disk.
        let file = Arc::new(open()?);
        let (file, displaced) = self.cache.lock().insert(key, file, self.limit);
        drop(displaced);
        Ok(file)
    }

    /// Removes `key`.
    pub(crate) fn close(&self, key: K) {
        let removed = self.cache.lock().files.remove(&key);
        drop(removed);
    }

    /// Removes all entries.
    pub(crate) fn close_all(&self) {
        self.cache.lock().files.clear();
    }
}

impl<K: Ord + Copy> Cache<K> {
    fn find(&mut self, key: K) -> Option<Arc<OwnedFd>> {
        self.uses += 1;
        let entry = self.files.get_mut(&key)?;
        entry.last_use = self.uses;
        Some(Arc::clone(&entry.file))
    }

    /// Two threads may have opened the same file: the first one's descriptor is kept. Returns what
    /// is to be dropped outside the lock, too.
    fn insert(
        &mut self,
        key: K,
        file: Arc<OwnedFd>,
        limit: usize,
    ) -> (Arc<OwnedFd>, Option<Arc<OwnedFd>>) {
        if let Some(first) = self.find(key) {
            return (first, Some(file));
        }
        let mut displaced = None;
        if self.files.len() >= limit {
            let oldest = self.files.iter().min_by_key(|(_, entry)| entry.last_use);
            let oldest = oldest.map(|(&key, _)| key);
            displaced = oldest.and_then(|oldest| self.files.remove(&oldest));
        }
        let entry = Entry { file: Arc::clone(&file), last_use: self.uses };
        self.files.insert(key, entry);
        (file, displaced.map(|entry| entry.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::convert::Infallible;

    #[test]
    fn the_file_used_longest_ago_is_closed_first() {
        let cache = OpenFiles::new(2);
        let opened = Cell::new(0);
        let get = |key: u32| {
            cache
                .get_or_open(key, || {
                    opened.set(opened.get() + 1);
                    Ok::<_, Infallible>(tempfile::tempfile().unwrap().into())
                })
                .unwrap();
            opened.get()
        };
        assert_eq!([get(1), get(2), get(1)], [1, 2, 2]);
        assert_eq!(get(3), 3); // displaces 2
        assert_eq!([get(1), get(3)], [3, 3]);
        assert_eq!(get(2), 4);
        cache.close(2);
        assert_eq!(get(2), 5);
    }
}
