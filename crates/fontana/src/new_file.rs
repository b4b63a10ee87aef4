//! Files that get their names when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// The beginning of the names that they have until then.
const PREFIX: &str = ".fontana-new-";

/// A file that is written under a name of its own, and then gets the one that it is for. A reader
/// finds the earlier file or all of the new one.
///
/// It is locked (flock(2)) while its process lives: what a killed process leaves is known by that
/// ([`remove_abandoned`](Self::remove_abandoned)).
#[derive(Debug)]
pub struct NewFile(NamedTempFile);

impl NewFile {
    /// A new file in `directory`, with mode 0644, opened for writing only: a confined process may
    /// not read what is in the directory.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create_in(directory: &Path) -> io::Result<Self> {
        Self::create(directory, File::options().write(true).mode(0o644))
    }

    /// The same, with mode 0600: for secrets.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create_secret_in(directory: &Path) -> io::Result<Self> {
        Self::create(directory, File::options().write(true).mode(0o600))
    }

    /// As [`create_in`](Self::create_in), opened for reading as well.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn create_readable_in(directory: &Path) -> io::Result<Self> {
        Self::create(directory, File::options().read(true).write(true).mode(0o644))
    }

    fn create(directory: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        options.create_new(true);
        loop {
            let file = builder.make_in(directory, |path| options.open(path))?;
            // A file system without locks has files that are not removed.
            let _ = file.as_file().try_lock();
            // Another process may have removed it, before it was locked.
            if file.as_file().metadata()?.nlink() > 0 {
                return Ok(Self(file));
            }
        }
    }

    /// The file.
    pub fn as_file(&self) -> &File {
        self.0.as_file()
    }

    /// Gives it this name in its directory, in place of a file that has it.
    ///
    /// # Errors
    /// Those of the file system, also that what was written is not on the disk.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        self.0.as_file().sync_all()?;
        self.0.persist(path).map(drop).map_err(|error| error.error)
    }

    /// Gives it this name, if no file has it.
    ///
    /// # Errors
    /// A file has it ([`io::ErrorKind::AlreadyExists`]), and those of the file system.
    pub fn keep_as(self, path: &Path) -> io::Result<()> {
        self.0.as_file().sync_all()?;
        self.0.persist_noclobber(path).map(drop).map_err(|error| error.error)
    }

    /// Removes the files of processes that were killed before they had given them their names.
    /// Returns how many. What cannot be looked at or removed is left.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn remove_abandoned(directory: &Path) -> io::Result<u64> {
        let mut removed = 0;
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let is_new_file = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
                && entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_new_file && is_abandoned(&entry.path()) && fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether no process has this file locked.
fn is_abandoned(path: &Path) -> bool {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags as i32).open(path);
    opened.is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_killed_processes_are_removed_and_those_of_others_are_left() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut alive = NewFile::create_in(directory).unwrap();
        alive.write_all(b"alive").unwrap();
        fs::write(directory.join(format!("{PREFIX}abandoned")), "half of it").unwrap();
        fs::create_dir(directory.join(format!("{PREFIX}directory"))).unwrap();
        std::os::unix::fs::symlink("other", directory.join(format!("{PREFIX}link"))).unwrap();
        fs::write(directory.join("other"), "").unwrap();
        assert_eq!(NewFile::remove_abandoned(directory).unwrap(), 1);
        assert_eq!(names(directory).len(), 4);
        let path = directory.join("name");
        alive.keep_as(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"alive");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        let again = NewFile::create_in(directory).unwrap();
        assert_eq!(again.keep_as(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        NewFile::create_in(directory).unwrap().replace(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(names(directory).len(), 4, "dropped ones are removed: {:?}", names(directory));
    }
}
