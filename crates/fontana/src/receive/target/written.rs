//! The files that a reception has written, or earlier runs of a watched one: it may replace them by
//! newer versions, and no others.

use fontana_store::{Identity, TargetName};
use std::collections::BTreeMap;

/// Files that are remembered, those that were written last. An older one is not replaced any more.
const MAX_FILES: usize = 16_384;

/// The files that were written.
#[derive(Default)]
pub(super) struct WrittenFiles {
    files: BTreeMap<TargetName, WrittenFile>,
    /// Their names, in the order in which they were written.
    order: BTreeMap<u64, TargetName>,
    /// Files that were written so far.
    count: u64,
}

/// A file that was written.
struct WrittenFile {
    state: Identity,
    /// The number of its version: a higher one is newer. 0: an earlier run has written it.
    version: u64,
    /// When the table expires that named it then, in Unix seconds.
    expires: u64,
    /// A table of this run names it.
    is_named: bool,
    /// Its key in [`WrittenFiles::order`].
    number: u64,
}

impl WrittenFiles {
    /// The state of a file when it was written.
    pub(super) fn state_of(&self, name: &TargetName) -> Option<Identity> {
        self.files.get(name).map(|file| file.state)
    }

    /// Whether this run has written a file.
    pub(super) fn is_of_this_run(&self, name: &TargetName) -> bool {
        self.files.get(name).is_some_and(|file| file.version > 0)
    }

    /// Recalls a file that an earlier run has written.
    pub(super) fn recall(&mut self, name: TargetName, state: Identity, expires: u64) {
        self.note(name.clone(), 0, state, expires);
        if let Some(file) = self.files.get_mut(&name) {
            file.is_named = false;
        }
    }

    /// All files, their states, and when the tables expire that named them.
    pub(super) fn all(&self) -> impl Iterator<Item = (&TargetName, &Identity, u64)> {
        self.files.iter().map(|(name, file)| (name, &file.state, file.expires))
    }

    /// A table of this run names a file.
    pub(super) fn name(&mut self, name: &TargetName) {
        if let Some(file) = self.files.get_mut(name) {
            file.is_named = true;
        }
    }

    /// The files of earlier runs that no table of this run names, and whose tables have expired.
    pub(super) fn unnamed(&self, unix_seconds: u64) -> Vec<TargetName> {
        let is_out = |file: &WrittenFile| !file.is_named && file.expires < unix_seconds;
        let unnamed = self.files.iter().filter(|(_, file)| is_out(file));
        unnamed.map(|(name, _)| name.clone()).collect()
    }

    /// Forgets a file. Its state when it was written; `None` if it is not known.
    pub(super) fn forget(&mut self, name: &TargetName) -> Option<Identity> {
        let file = self.files.remove(name)?;
        self.order.remove(&file.number);
        Some(file.state)
    }

    /// Whether a newer version of a file was written.
    pub(super) fn has_newer(&self, name: &TargetName, version: u64) -> bool {
        self.files.get(name).is_some_and(|file| file.version > version)
    }

    /// Notes that a version of a file was written. Whether it has replaced another one.
    pub(super) fn note(
        &mut self,
        name: TargetName,
        version: u64,
        state: Identity,
        expires: u64,
    ) -> bool {
        self.count += 1;
        let number = self.count;
        self.order.insert(number, name.clone());
        let file = WrittenFile { state, version, expires, is_named: true, number };
        let before = self.files.insert(name, file);
        if let Some(before) = &before {
            self.order.remove(&before.number);
        }
        if self.order.len() > MAX_FILES
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.files.remove(&oldest);
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_store::Timestamp;

    fn name(number: usize) -> TargetName {
        TargetName::new(&[&number.to_string()]).unwrap()
    }

    fn state(size: u64) -> Identity {
        let time = Timestamp { seconds: 0, nanoseconds: 0 };
        Identity { inode: (0, 0), size, modified: time, changed: time }
    }

    #[test]
    fn the_last_files_are_remembered_each_in_its_newest_version() {
        let mut written = WrittenFiles::default();
        assert!(!written.note(name(0), 5, state(1), 9) && written.note(name(0), 7, state(2), 9));
        assert_eq!(written.state_of(&name(0)), Some(state(2)));
        assert!(written.has_newer(&name(0), 6) && !written.has_newer(&name(0), 7));
        for number in 1..=MAX_FILES {
            written.note(name(number), 1, state(1), 9);
        }
        assert_eq!((written.files.len(), written.order.len()), (MAX_FILES, MAX_FILES));
        assert_eq!(written.state_of(&name(0)), None);
    }

    #[test]
    fn files_of_earlier_runs_are_unnamed_until_a_table_names_them() {
        let mut written = WrittenFiles::default();
        (0..3).for_each(|number| written.recall(name(number), state(1), 10));
        written.recall(name(3), state(1), 20);
        written.note(name(4), 1, state(1), 10);
        written.name(&name(1));
        assert_eq!(written.unnamed(10), []);
        assert_eq!(written.unnamed(11), [name(0), name(2)]);
        assert_eq!((written.forget(&name(0)), written.forget(&name(0))), (Some(state(1)), None));
        assert_eq!(written.unnamed(11), [name(2)]);
        assert_eq!(written.files.len(), written.order.len());
    }
}
