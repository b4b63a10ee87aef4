//! A file whose length is known only at its end.

use crate::failure::StagingError;
use crate::failure::failed;
use crate::staging::GROWING;
use crate::staging::Staging;
use crate::target::TargetDirectory;
use crate::target::TargetName;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::io::{self, Write};
use std::sync::Arc;

/// A file that grows in a staging directory of its own until it is [committed](Self::commit). If it
/// is dropped before that, it is removed.
#[derive(Debug)]
pub struct GrowingFile {
    staging: Staging,
    name: TargetName,
    file: OwnedFd,
    length: u64,
}

impl GrowingFile {
    /// An empty file that will be committed as `name`, a single component, in `target`. `tag` names
    /// the staging directory.
    ///
    /// # Errors
    /// [`StagingError::Exists`] or [`StagingError::IsDirectory`] if the name is taken, and those of
    /// [`Staging::create`].
    pub fn create(
        target: Arc<TargetDirectory>,
        tag: &str,
        name: TargetName,
        options: crate::staging::StagingOptions,
    ) -> Result<Self, StagingError> {
        target.check_free(&name, options.overwrite)?;
        let (staging, _) = Staging::create(target, tag, options)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // The umask applies.
        let mode = Mode::from_raw_mode(0o644);
        let file = staging
            .disk()
            .open(staging.directory().as_fd(), GROWING.as_bytes(), flags, mode)
            .map_err(failed(&staging.path().join(GROWING), "create"))?;
        Ok(Self { staging, name, file, length: 0 })
    }

    /// Bytes written so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Gives the file its name. Returns when the file and its name would survive a power failure.
    ///
    /// # Errors
    /// [`StagingError::Exists`] if the name was taken meanwhile, [`StagingError::System`] if the
    /// file could not be synced.
    pub fn commit(&mut self) -> Result<(), StagingError> {
        let target = self.staging.target();
        let synced = target.disk().sync(self.file.as_fd());
        synced.map_err(failed(&target.path_of(&self.name), "sync"))?;
        let (from, overwrite) =
            (self.staging.directory().as_fd(), self.staging.overwrites_everything());
        target.check_free(&self.name, overwrite)?;
        target.rename_into(from, GROWING, target.as_fd(), &self.name, overwrite)?;
        target.sync(None)
    }
}

impl Write for GrowingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.staging.disk().write_all(self.file.as_fd(), bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        // The next receiver removes what remains.
        let directory = self.staging.directory().as_fd();
        let _ = self.staging.disk().unlink(directory, GROWING.as_bytes());
        let _ = self.staging.remove();
    }
}
