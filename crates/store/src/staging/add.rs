//! Adding files to a staging directory by name, before any symbol is received. Names that are taken
//! are rejected here, before the reception.

use super::{Key, LEAST_RESERVED, Outside, StagedFile, State};
use crate::attributes::FileAttributes;
use crate::device::Device;
use crate::failure::StagingError;
use crate::failure::{Room, failed};
use crate::geometry::GeometryError;
use crate::identity::Identity;
use crate::ids::FileIndex;
use crate::lock::ReadLock;
use crate::memory::Memory;
use crate::staging::Staging;
use crate::target::{NameError, TargetName};
use rustix::fd::AsFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

/// The properties of a new file.
#[derive(Debug, Default)]
struct NewFile {
    target: Option<TargetName>,
    attributes: FileAttributes,
    holes: Vec<Range<u64>>,
    link: Option<Vec<u8>>,
    outside: Option<Outside>,
    is_version: bool,
}

impl Staging {
    /// Allows files and links with these names to be replaced, regardless of the options. Names are
    /// components with slashes between them. Call it at most once, before anything is added.
    pub fn allow_replacing(&self, names: BTreeSet<Vec<u8>>) {
        let _ = self.replaceable.set(names);
    }

    /// Allows the names of these files to be taken by files with the same bytes, which their commit
    /// finds out. Call it before they are added.
    pub fn allow_equal(&self, files: impl IntoIterator<Item = FileIndex>) {
        self.given().extend(files);
    }

    /// Adds a file of `length` bytes that will be committed as `name`.
    ///
    /// # Errors
    /// [`StagingError::Exists`] or [`StagingError::IsDirectory`] if the name is taken,
    /// [`StagingError::NotADirectory`] if a directory above it is something else,
    /// [`NameError::Twice`] if it was added before, [`StagingError::DiskFull`] if its space is to
    /// be reserved and is not available.
    pub fn add_file(
        &self,
        name: TargetName,
        length: u64,
        attributes: FileAttributes,
    ) -> Result<FileIndex, StagingError> {
        self.add_sparse_file(name, length, Vec::new(), attributes)
    }

    /// Like [`add_file`](Self::add_file), with ranges of zeros that are never written and take no
    /// space on the disk. `holes` are ascending and do not overlap.
    ///
    /// # Errors
    /// As [`add_file`](Self::add_file).
    pub fn add_sparse_file(
        &self,
        name: TargetName,
        length: u64,
        holes: Vec<Range<u64>>,
        attributes: FileAttributes,
    ) -> Result<FileIndex, StagingError> {
        self.check_place(&name)?;
        self.directories().add_above(&name, self.made());
        let new = NewFile { target: Some(name), attributes, holes, ..NewFile::default() };
        self.append(new, length, State::Absent)
    }

    /// Adds a symbolic link that will be committed as `name`. It is created, never followed.
    ///
    /// # Errors
    /// As [`add_file`](Self::add_file).
    pub fn add_link(&self, name: TargetName, leads_to: Vec<u8>) -> Result<FileIndex, StagingError> {
        self.check_place(&name)?;
        self.directories().add_above(&name, self.made());
        let link = Some(leads_to);
        self.append(NewFile { target: Some(name), link, ..NewFile::default() }, 0, State::Absent)
    }

    /// Adds a file that an earlier receiver has verified. It has its final name, or only lacks the
    /// name ([`publish`](Self::publish)).
    ///
    /// # Errors
    /// [`StagingError::System`], [`NameError::Twice`].
    pub fn add_verified(&self, name: TargetName, length: u64) -> Result<FileIndex, StagingError> {
        self.directories().add_above(&name, self.made());
        let state =
            if self.has_staged(self.next_index(), length)? { State::Settled } else { State::Gone };
        self.append(NewFile { target: Some(name), ..NewFile::default() }, length, state)
    }

    /// Adds a file of `length` bytes that is never committed: an object that has to be
    /// decompressed.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`] if its space is to be reserved and is not available.
    pub fn add_scratch(&self, length: u64) -> Result<FileIndex, StagingError> {
        self.append(NewFile::default(), length, State::Absent)
    }

    /// Removes a file that is [never committed](Self::add_scratch), and frees its space.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such file, [`StagingError::System`].
    pub fn remove_scratch(&self, index: FileIndex) -> Result<(), StagingError> {
        let file = self.file(index)?;
        if file.target.is_none() && !file.is_outside() { self.remove_spool(&file) } else { Ok(()) }
    }

    /// Removes a file that is not committed, frees its space, and its name for another one.
    ///
    /// # Errors
    /// As [`remove_scratch`](Self::remove_scratch).
    pub fn discard(&self, index: FileIndex) -> Result<(), StagingError> {
        let file = self.file(index)?;
        let is_there = !matches!(*file.read(), State::Gone) && !file.is_outside();
        if is_there {
            self.remove_spool(&file)?;
        }
        self.forget(index);
        Ok(())
    }

    /// Adds a version of a file, as [`add_file`](Self::add_file) does: another version may be added
    /// under the same name, and a committed one may have it.
    ///
    /// # Errors
    /// As [`add_file`](Self::add_file), but for taken names: the commit rejects these.
    pub fn add_version(
        &self,
        name: TargetName,
        length: u64,
        attributes: FileAttributes,
    ) -> Result<FileIndex, StagingError> {
        self.check_above(&name)?;
        self.directories().add_above(&name, self.made());
        let new =
            NewFile { target: Some(name), attributes, is_version: true, ..NewFile::default() };
        self.append(new, length, State::Absent)
    }

    /// Allows a file that is not committed to replace what has its name, as long as that is in this
    /// state. Call it once.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such file.
    pub fn allow_replacing_state(
        &self,
        index: FileIndex,
        state: Identity,
    ) -> Result<(), StagingError> {
        let _ = self.file(index)?.replaces.set(state);
        Ok(())
    }

    /// Forgets a file that is committed or removed, and its name: a session without end has files
    /// without number.
    pub fn forget(&self, index: FileIndex) {
        let mut files = self.files.write();
        let is_gone = |file: &Arc<StagedFile>| *file.read() == State::Gone;
        if files.list.get(&index.0).is_some_and(is_gone)
            && let Some(file) = files.list.remove(&index.0)
        {
            files.free_name(&file);
        }
    }

    /// Adds the first `length` bytes of a device as a file. Source symbols are written to the
    /// device, only spools to the staging directory.
    ///
    /// # Errors
    /// None: the device is open.
    pub fn add_device(&self, device: &Device, length: u64) -> Result<FileIndex, StagingError> {
        let outside = Some(Outside::Device(device.clone()));
        self.append(NewFile { outside, ..NewFile::default() }, length, State::Staged)
    }

    /// Adds the first `length` bytes of memory as a file, as [`add_device`](Self::add_device) does.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if the memory is shorter.
    pub fn add_memory(
        &self,
        memory: &Arc<dyn Memory>,
        length: u64,
    ) -> Result<FileIndex, StagingError> {
        if memory.length() < length {
            let file = self.next_index();
            let end = length;
            return Err(GeometryError::BeyondFile { file, end, length: memory.length() }.into());
        }
        let outside = Some(Outside::Memory(Arc::clone(memory)));
        self.append(NewFile { outside, ..NewFile::default() }, length, State::Staged)
    }

    /// Adds a deselected file of an object that another file needs. Its bytes stay as long as the
    /// staging directory does, and it is never committed. A later run that selects it can use them.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn add_spare(
        &self,
        name: &TargetName,
        length: u64,
        holes: Vec<Range<u64>>,
        attributes: FileAttributes,
    ) -> Result<FileIndex, StagingError> {
        self.directories().pass_over_above(name, self.made());
        self.append(NewFile { attributes, holes, ..NewFile::default() }, length, State::Absent)
    }

    /// Adds a file or link that has its final name already, without changing it.
    ///
    /// # Errors
    /// [`NameError::Twice`].
    pub fn add_existing(&self, name: TargetName, length: u64) -> Result<FileIndex, StagingError> {
        self.directories().add_above(&name, self.made());
        let new = NewFile { target: Some(name), ..NewFile::default() };
        self.append(new, length, State::Gone)
    }

    /// Reserves the index of a file or link that is not received, so that indices do not depend on
    /// the selection.
    ///
    /// # Errors
    /// None: nothing is done on the disk.
    pub fn pass_over(&self, name: &TargetName) -> Result<FileIndex, StagingError> {
        self.directories().pass_over_above(name, self.made());
        self.append(NewFile::default(), 0, State::Gone)
    }

    /// Rejects a name that is taken, on the disk or by an added file.
    fn check_place(&self, name: &TargetName) -> Result<(), StagingError> {
        // What has the name of a file that was given is compared when the file is committed.
        let is_given = self.is_given(self.next_index());
        self.target().check_free(name, self.overwrites(name) || is_given)?;
        self.check_above(name)
    }

    /// Rejects a name that an added file contradicts: one of them needs a directory, the other a
    /// file.
    fn check_above(&self, name: &TargetName) -> Result<(), StagingError> {
        if self.directories().contains(name) {
            return Err(StagingError::IsDirectory { path: self.target().path_of(name) });
        }
        let files = self.files.read();
        match name.parents().into_iter().find(|parent| files.names.contains_key(parent)) {
            None => Ok(()),
            Some(file) => Err(StagingError::NotADirectory { path: self.target().path_of(&file) }),
        }
    }

    /// Rejects two names that differ only in letter case, if the target's file system ignores case:
    /// the second file could not be committed.
    ///
    /// # Errors
    /// [`NameError::CaseClash`].
    pub fn check_case_clash<N: std::fmt::Display>(
        &self,
        clash: impl FnOnce() -> Option<(N, N)>,
    ) -> Result<(), StagingError> {
        // The staging directory's own name has letters in it.
        match self.target.ignores_case(&self.name).then(clash).flatten() {
            None => Ok(()),
            Some((first, second)) => {
                let (first, second) = (first.to_string(), second.to_string());
                Err(NameError::CaseClash { first, second }.into())
            }
        }
    }

    /// Appends a file to the list.
    fn append(&self, new: NewFile, length: u64, state: State) -> Result<FileIndex, StagingError> {
        let mut files = self.files.write();
        let taken = new.target.as_ref().filter(|name| files.names.contains_key(*name));
        if let Some(name) = taken.filter(|_| !new.is_version) {
            let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
            return Err(NameError::Twice(name).into());
        }
        let index = files.next;
        let file = Arc::new(StagedFile {
            key: Key::Data(index),
            length,
            holes: new.holes,
            outside: new.outside,
            link: new.link,
            attributes: new.attributes,
            target: new.target,
            replaces: OnceLock::new(),
            state: ReadLock::new(state),
            dirty_in: AtomicU64::new(0),
            refused: AtomicBool::new(false),
        });
        // Files of an earlier receiver must be compared with its notes first.
        if !self.resumed {
            self.create_if_large(&file)?;
        }
        if let Some(name) = &file.target {
            let count = files.names.entry(name.clone()).or_default();
            *count = count.saturating_add(1);
        }
        files.next = index.wrapping_add(1);
        files.list.insert(index, file);
        Ok(FileIndex(index))
    }

    fn create_if_large(&self, file: &StagedFile) -> Result<(), StagingError> {
        if self.options.reserve && file.length >= LEAST_RESERVED {
            self.create_file(file)?;
        }
        Ok(())
    }

    /// Creates large files if no earlier receiver can have left them.
    pub(crate) fn create_large_files(&self) -> Result<(), StagingError> {
        let files: Vec<_> = self.files.read().list.values().cloned().collect();
        files.iter().try_for_each(|file| self.create_if_large(file))
    }

    /// Checks that there is space for all small files, for which nothing was reserved.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`].
    pub fn check_room(&self) -> Result<(), StagingError> {
        let files = self.files.read();
        let absent = files.list.values().filter(|file| *file.read() == State::Absent);
        let wanted = absent.fold(0_u64, |sum, file| sum.saturating_add(file.data_length()));
        match self.available() {
            Some(available) if self.options.reserve && available < wanted => {
                let room = Room { wanted, available: Some(available) };
                Err(StagingError::DiskFull { path: self.path(), room })
            }
            _ => Ok(()),
        }
    }

    /// Free bytes of the disk beside those of all files that were added; `None` if the system does
    /// not say.
    pub fn room_left(&self) -> Option<u64> {
        let files = self.files.read();
        let unwritten = files.list.values().map(|file| {
            let has_bytes = match *file.read() {
                State::Absent => 0,
                State::Staged if !file.is_outside() => self.bytes_on_disk(file),
                _ => return 0,
            };
            file.data_length().saturating_sub(has_bytes)
        });
        let wanted = unwritten.fold(0, u64::saturating_add);
        self.available().map(|available| available.saturating_sub(wanted))
    }

    /// Bytes of the disk that a file takes, those that are reserved included.
    fn bytes_on_disk(&self, file: &StagedFile) -> u64 {
        let stat = self.disk().stat_at(self.directory().as_fd(), file.staged_name().as_bytes());
        // In units of 512 bytes on every system.
        stat.map_or(0, |stat| (stat.st_blocks as u64).saturating_mul(512))
    }

    /// The index of the file that is added next.
    pub fn next_index(&self) -> FileIndex {
        let files = self.files.read();
        FileIndex(files.next)
    }

    /// True if an earlier receiver left the file with this index, in its full length, without its
    /// final name.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn has_staged(&self, index: FileIndex, length: u64) -> Result<bool, StagingError> {
        Ok(self.length_left(Key::Data(index.0))? == Some(length))
    }

    /// Bytes of a file on the disk; 0 if it does not exist.
    pub(crate) fn length_on_disk(&self, file: &StagedFile) -> Result<u64, StagingError> {
        match (&file.outside, *file.read()) {
            (Some(Outside::Device(device)), _) => device.length(),
            (Some(Outside::Memory(memory)), _) => Ok(memory.length()),
            (None, State::Gone) => Ok(file.length), // it has its final name, or is not received
            (None, _) => Ok(self.length_left(file.key)?.unwrap_or(0)),
        }
    }

    /// Bytes of a regular file in the staging directory; `None` if it does not exist.
    fn length_left(&self, key: Key) -> Result<Option<u64>, StagingError> {
        let name = key.name();
        match self.disk().stat_at(self.directory().as_fd(), name.as_bytes()) {
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(&self.path().join(name), "examine")(errno)),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(Some(stat.st_size as u64))
            }
            Ok(_) => Ok(None),
        }
    }
}
