//! A file without a name in the file system of a target directory: symbols that arrive before the
//! receiver knows where they go, and that memory has no room for. No later run needs it.

use crate::disk::Disk;
use crate::failure::{StagingError, failed};
use crate::lock::Lock;
use crate::target::TargetDirectory;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use std::sync::Arc;

/// Bytes beside the memory, by their place. The file is made by the first write.
///
/// It takes at most half of what is free: a write that would leave less free space than the file
/// has is refused.
#[derive(Debug)]
pub struct SpillFile {
    target: Arc<TargetDirectory>,
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<OwnedFd>,
    /// Bytes of the file.
    length: u64,
    /// Its space was needed: no file is made any more.
    has_given_way: bool,
}

impl SpillFile {
    /// A file in the file system of `target`. Nothing is made yet.
    pub fn new(target: Arc<TargetDirectory>) -> Self {
        Self { target, state: Lock::default() }
    }

    /// Writes bytes at a place.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`] if too little would be free, or the file has
    /// [given way](Self::make_room); [`StagingError::System`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> std::result::Result<(), StagingError> {
        let mut state = self.state.lock();
        self.write_to(&mut state, offset, bytes)
            .map_err(failed(self.target.path(), "store early symbols in"))
    }

    fn write_to(&self, state: &mut State, offset: u64, bytes: &[u8]) -> Result<()> {
        if state.has_given_way {
            return Err(Errno::NOSPC);
        }
        let disk = self.target.disk();
        let file = match &state.file {
            Some(file) => file,
            None => state.file.insert(create(disk, &self.target)?),
        };
        let end = offset.saturating_add(bytes.len() as u64);
        let more = end.saturating_sub(state.length);
        let leaves_half =
            |free: u64| free.checked_sub(more).is_some_and(|free| free >= state.length.max(end));
        if more > 0 && !disk.available(file.as_fd()).is_none_or(leaves_half) {
            return Err(Errno::NOSPC);
        }
        disk.write_all(file.as_fd(), bytes, offset)?;
        state.length = state.length.max(end);
        Ok(())
    }

    /// Reads so many bytes from a place. Fewer if the file ends before.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn read(&self, offset: u64, length: usize) -> std::result::Result<Vec<u8>, StagingError> {
        let state = self.state.lock();
        let Some(file) = &state.file else { return Ok(Vec::new()) };
        let mut bytes = vec![0; length];
        let read = self.target.disk().read_full(file.as_fd(), &mut bytes, offset);
        let count = read.map_err(failed(self.target.path(), "read early symbols in"))?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// Frees the space of the file. The next write makes another one.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        (state.file, state.length) = (None, 0);
    }

    /// Gives way, for good, to content of so many bytes, unless there is room for it beside the
    /// file.
    pub fn make_room(&self, wanted: u64) {
        let mut state = self.state.lock();
        let Some(file) = &state.file else { return };
        let free = self.target.disk().available(file.as_fd());
        if free.is_some_and(|free| free < wanted) {
            *state = State { has_given_way: true, ..State::default() };
        }
    }
}

/// A file without a name. File systems that have none (NFS, FAT, many of FUSE) return
/// [`Errno::OPNOTSUPP`].
#[cfg(target_os = "linux")]
fn create(disk: &dyn Disk, target: &TargetDirectory) -> Result<OwnedFd> {
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    disk.open(target.as_fd(), b".", flags, Mode::RUSR | Mode::WUSR)
}

#[cfg(not(target_os = "linux"))]
fn create(_: &dyn Disk, _: &TargetDirectory) -> Result<OwnedFd> {
    Err(Errno::OPNOTSUPP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(directory: &tempfile::TempDir) -> Arc<TargetDirectory> {
        Arc::new(TargetDirectory::open(directory.path()).unwrap())
    }

    #[test]
    fn what_was_written_is_read_and_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let spill = SpillFile::new(target(&directory));
        assert_eq!(spill.read(0, 4), Ok(Vec::new()));
        spill.write(100, b"later").unwrap();
        spill.write(0, b"first").unwrap();
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        assert_eq!(spill.read(0, 5), Ok(b"first".to_vec()));
        assert_eq!(spill.read(100, 9), Ok(b"later".to_vec()));
        spill.clear();
        assert_eq!(spill.read(0, 5), Ok(Vec::new()));
        spill.write(0, b"again").unwrap();
        assert_eq!(spill.read(0, 5), Ok(b"again".to_vec()));
    }

    #[test]
    fn a_file_that_gives_way_is_not_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let spill = SpillFile::new(target(&directory));
        spill.make_room(u64::MAX);
        spill.write(0, b"first").unwrap();
        spill.make_room(1);
        assert_eq!(spill.read(0, 5), Ok(b"first".to_vec()), "there is room for both");
        spill.make_room(u64::MAX);
        assert_eq!(spill.read(0, 5), Ok(Vec::new()));
        assert!(matches!(spill.write(0, b"again"), Err(StagingError::DiskFull { .. })));
    }
}
