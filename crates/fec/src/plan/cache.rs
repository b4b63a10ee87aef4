//! A cache of what blocks of one length share.

use crate::sync::{Lock, OnceLock};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::any::{Any, TypeId};

/// A cache of what blocks of equal length share, mainly plans of full blocks for encoders. The
/// blocks of an object have at most two lengths, and planning costs as much as some hundred symbols
/// at least.
///
/// The number of entries is limited; the one used least recently is evicted. Threads that request
/// the same missing entry wait for one of them to make it.
pub struct PlanCache {
    limit: usize,
    cached: Lock<Cached>,
}

/// The key of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The code's name.
    pub(crate) code: &'static str,
    /// Its parameters, and the length of the block.
    pub(crate) numbers: [u64; 3],
}

#[derive(Default)]
struct Cached {
    clock: u64,
    entries: BTreeMap<(Key, TypeId), Entry>,
}

struct Entry {
    last_used: u64,
    /// An `OnceLock<Arc<T>>` of the key's type.
    slot: Arc<dyn Any + Send + Sync>,
}

impl PlanCache {
    /// An empty cache for `limit` different block lengths, at least one. A plan takes about 80
    /// bytes per source symbol; with Tornado codes 100 for each unit of the stretch factor. For the
    /// longest blocks of RaptorQ this is 4.5 MB, and a megabyte more after use.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), cached: Lock::default() }
    }

    /// The entry of `key`, made outside the lock if it does not exist.
    pub(crate) fn shared<T: Send + Sync + 'static>(
        &self,
        key: Key,
        make: impl FnOnce() -> Arc<T>,
    ) -> Arc<T> {
        match self.slot::<T>(key).downcast::<OnceLock<Arc<T>>>() {
            Ok(slot) => Arc::clone(slot.get_or_init(make)),
            Err(_) => unreachable!("the type is part of the key"),
        }
    }

    /// The slot of `key`, which may be empty.
    fn slot<T: Send + Sync + 'static>(&self, key: Key) -> Arc<dyn Any + Send + Sync> {
        let mut cached = self.cached.lock();
        cached.clock += 1;
        let (now, key) = (cached.clock, (key, TypeId::of::<T>()));
        if cached.entries.len() >= self.limit && !cached.entries.contains_key(&key) {
            let oldest = cached.entries.iter().min_by_key(|(_, entry)| entry.last_used);
            if let Some(oldest) = oldest.map(|(&key, _)| key) {
                cached.entries.remove(&oldest);
            }
        }
        let new = || Entry { last_used: now, slot: Arc::new(OnceLock::<Arc<T>>::new()) };
        let entry = cached.entries.entry(key).or_insert_with(new);
        entry.last_used = now;
        Arc::clone(&entry.slot)
    }
}

impl core::fmt::Debug for PlanCache {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PlanCache").field("limit", &self.limit).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_used_least_recently_is_forgotten() {
        let cache = PlanCache::new(2);
        let ask = |number| {
            let key = Key { code: "test", numbers: [number, 0, 0] };
            cache.shared(key, || Arc::new(number))
        };
        let (first, second) = (ask(1), ask(2));
        assert_eq!((*first, *second), (1, 2));
        assert!(Arc::ptr_eq(&first, &ask(1)));
        ask(3);
        assert!(Arc::ptr_eq(&first, &ask(1)), "used since");
        assert!(!Arc::ptr_eq(&second, &ask(2)), "made again");
    }

    #[test]
    fn entries_of_different_types_are_separate() {
        let cache = PlanCache::new(2);
        let key = Key { code: "test", numbers: [0; 3] };
        assert_eq!(*cache.shared(key, || Arc::new(1_u8)), 1);
        assert_eq!(*cache.shared(key, || Arc::new("two")), "two");
        assert_eq!(*cache.shared(key, || Arc::new(3_u8)), 1);
    }
}
