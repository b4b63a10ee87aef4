//! The private directory in which files are staged until they are verified.
//!
//! It is inside the target directory, so that a rename stays in one file system. Only its owner can
//! read it. It is accessed by descriptor only, so a replaced path cannot redirect a write. Its
//! files have numbers for names (data files `0`, `1`, ..., spools of repair symbols `0.repair`,
//! ...), independent of the sender's names. A lock excludes a second receiver. Files of a failed
//! receiver stay there.

use crate::attributes::FileAttributes;
use crate::device::Device;
use crate::directory_table::Directories;
use crate::disk::Disk;
use crate::enter::{Entered, LOCK};
use crate::failure::StagingError;
use crate::failure::{Room, failed};
use crate::geometry::GeometryError;
use crate::identity::Identity;
use crate::ids::FileIndex;
use crate::journal::{JOURNAL, Journal, Kept, Note};
use crate::lock::{Lock, ReadLock};
use crate::memory::Memory;
use crate::open_files::{DEFAULT_OPEN_FILES, OpenFiles};
use crate::ours::STAGING_PREFIX;
use crate::target::NameError;
use crate::target::{TargetDirectory, TargetName};
use layout::{DESCRIPTION, MAX_TAG, OWNER, is_tag};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLockReadGuard, RwLockWriteGuard};

mod add;
pub(crate) mod give;
pub(crate) mod layout;
pub(crate) mod spool;
mod sync;

/// Name of a file whose length is not known yet: a number, like those of all files here, and one
/// that no other file gets.
pub(crate) const GROWING: &str = "4294967295";

/// Shortest file that is created, with its space reserved, when it is added. Creating thousands of
/// small files takes seconds on some disks, during which arriving packets could not be written.
const LEAST_RESERVED: u64 = 1 << 20;

/// Options of a staging directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagingOptions {
    /// Replace existing files.
    pub overwrite: bool,
    /// Reserve the space of each file of a megabyte or more when it is added, so that a full disk
    /// is reported before the reception instead of during it. Has no effect on a file system that
    /// cannot.
    pub reserve: bool,
    /// Most descriptors kept open (at least 1), beside two for the directory itself.
    pub open_files: usize,
}

impl Default for StagingOptions {
    fn default() -> Self {
        Self { overwrite: false, reserve: true, open_files: DEFAULT_OPEN_FILES }
    }
}

/// A staging directory, entered and locked. Threads may share it.
///
/// Dropping it releases the lock and keeps the files; [`Staging::remove`] removes them.
#[derive(Debug)]
pub struct Staging {
    target: Arc<TargetDirectory>,
    name: String,
    entered: Entered,
    options: StagingOptions,
    files: ReadLock<Files>,
    spools: AtomicU32,
    open: OpenFiles<Key>,
    journal: Journal,
    /// True if files of an earlier receiver are resumed.
    resumed: bool,
    directories: Directories,
    /// Names that may be replaced even if the options do not allow replacing.
    replaceable: OnceLock<BTreeSet<Vec<u8>>>,
    /// Directories that an earlier receiver created.
    made: BTreeSet<u32>,
    /// Files of which copies have the final names.
    given: Lock<BTreeSet<FileIndex>>,
    unsynced: sync::Unsynced,
}

#[derive(Debug, Default)]
struct Files {
    /// By their indices. Files that are [forgotten](Staging::forget) are not among them.
    list: BTreeMap<u32, Arc<StagedFile>>,
    /// The index of the next file.
    next: u32,
    /// Names, and the number of files that have each: several, if they are
    /// [versions](Staging::add_version).
    names: BTreeMap<TargetName, u32>,
}

impl Files {
    /// Frees the name of a file.
    fn free_name(&mut self, file: &StagedFile) {
        if let Some(name) = &file.target
            && let Some(count) = self.names.get_mut(name)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.names.remove(name);
            }
        }
    }
}

/// The name of a file of the staging directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Data(u32),
    Repair(u32),
}

impl Key {
    fn name(self) -> String {
        match self {
            Self::Data(index) => index.to_string(),
            Self::Repair(index) => format!("{index}.repair"),
        }
    }

    /// True for the names that [`Key::name`] returns, and for no other.
    fn is_name(name: &str) -> bool {
        let number = name.strip_suffix(".repair").unwrap_or(name);
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// A file of the staging directory.
#[derive(Debug)]
pub(crate) struct StagedFile {
    key: Key,
    pub(crate) length: u64,
    /// Ranges of zeros that take no space on the disk, ascending.
    holes: Vec<Range<u64>>,
    /// The device or memory, if the file is not in the staging directory.
    outside: Option<Outside>,
    /// The target of the link, if it is to be a symbolic link.
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) attributes: FileAttributes,
    /// The final name; `None` for a spool or scratch file.
    pub(crate) target: Option<TargetName>,
    /// The file with this name that it may replace, as it was when that was allowed.
    replaces: OnceLock<Identity>,
    /// Locked for reading while bytes are written, and for writing while the state changes: so no
    /// write can reach a file that is being committed.
    state: ReadLock<State>,
    /// The sync era in which it was last written to; 0 before the first write.
    dirty_in: AtomicU64,
    /// True if syncing it for the journal has failed.
    pub(crate) refused: AtomicBool,
}

/// Where a file is that is not in the staging directory.
#[derive(Debug)]
enum Outside {
    Device(Device),
    Memory(Arc<dyn Memory>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not created yet.
    Absent,
    /// In staging, open for symbols.
    Staged,
    /// In staging, closed for symbols, maybe not yet on the disk.
    Closed,
    /// In staging and on the disk: ready to be renamed, closed for symbols.
    Settled,
    /// In staging, but maybe not all of it on the disk: syncing failed.
    Doubtful,
    /// Committed or removed.
    Gone,
}

impl StagedFile {
    pub(crate) fn staged_name(&self) -> String {
        self.key.name()
    }

    /// Whether it is a device or memory, which is not in the staging directory.
    pub(crate) fn is_outside(&self) -> bool {
        self.outside.is_some()
    }

    /// The memory, if it is one.
    fn memory(&self) -> Option<&dyn Memory> {
        match &self.outside {
            Some(Outside::Memory(memory)) => Some(&**memory),
            Some(Outside::Device(_)) | None => None,
        }
    }

    /// The device, if it is one.
    fn device(&self) -> Option<&Device> {
        match &self.outside {
            Some(Outside::Device(device)) => Some(device),
            Some(Outside::Memory(_)) | None => None,
        }
    }

    /// Bytes that are not in holes.
    fn data_length(&self) -> u64 {
        let holes: u64 = self.holes.iter().map(|hole| hole.end.saturating_sub(hole.start)).sum();
        self.length.saturating_sub(holes)
    }

    /// Reserves space for all of it but its holes.
    fn reserve(&self, disk: &dyn Disk, open: BorrowedFd<'_>) -> rustix::io::Result<()> {
        let mut at = 0;
        for hole in &self.holes {
            disk.reserve(open, at, hole.start.saturating_sub(at))?;
            at = hole.end;
        }
        disk.reserve(open, at, self.length.saturating_sub(at))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write()
    }
}

impl Staging {
    /// Enters the staging directory `.fontana-<tag>` of `target`, creating it with mode 0700, and
    /// locks it. The tag identifies what is received, so receptions of different content do not
    /// conflict.
    ///
    /// If an earlier receiver of the same content left a journal there, its files are resumed, and
    /// their contents returned. The caller must then add files in the same order as before, which
    /// holds if the tag names a manifest, and compare them with the notes by
    /// [`reconcile`](Self::reconcile). All other files in the directory are removed.
    ///
    /// # Errors
    /// [`StagingError::Busy`] if another receiver holds it, [`StagingError::NotOurs`] if something
    /// else has its name, [`StagingError::System`] if the target directory cannot be written to,
    /// [`NameError::Tag`].
    pub fn create(
        target: Arc<TargetDirectory>,
        tag: &str,
        options: StagingOptions,
    ) -> Result<(Self, Kept), StagingError> {
        if !is_tag(tag) {
            return Err(NameError::Tag(tag.chars().take(MAX_TAG).collect()).into());
        }
        let name = format!("{}{tag}", String::from_utf8_lossy(STAGING_PREFIX));
        let entered = Entered::new(&target, &name)?;
        let path = target.path().join(&name);
        let (disk, directory) = (target.shared_disk(), entered.directory.as_fd());
        let (journal, kept) = match Journal::resume(disk, directory, &path)? {
            Some((journal, kept)) if kept != Kept::default() => (journal, kept),
            found => {
                let journal = Journal::create(disk, directory, &path)?;
                if found.is_some() {
                    // Before its files are removed: a power failure may leave a shorter journal,
                    // without the notes that withdraw what it has.
                    journal.sync().map_err(failed(&path, "begin the journal of"))?;
                }
                (journal, Kept::default())
            }
        };
        let resumed = kept != Kept::default();
        let staging = Self {
            target,
            name,
            entered,
            options,
            files: ReadLock::default(),
            spools: AtomicU32::new(0),
            open: OpenFiles::new(options.open_files),
            journal,
            resumed,
            directories: Directories::default(),
            replaceable: OnceLock::new(),
            made: kept.made.clone(),
            given: Lock::new(kept.given.clone()),
            unsynced: sync::Unsynced::new(resumed),
        };
        if !staging.resumed {
            staging.remove_files()?;
        }
        Ok((staging, kept))
    }

    /// Records notes in the journal. Call it after the event that they describe.
    ///
    /// # Errors
    /// [`StagingError::DiskFull`], [`StagingError::System`].
    pub fn note(&self, notes: &[Note]) -> Result<(), StagingError> {
        self.journal.append(notes).map_err(|errno| {
            let path = self.path().join(JOURNAL);
            if matches!(errno, Errno::NOSPC | Errno::DQUOT) {
                let room = Room { wanted: notes.len() as u64, available: self.available() };
                return StagingError::DiskFull { path, room };
            }
            failed(&path, "write")(errno)
        })
    }

    /// Waits until all notes are on the disk.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn sync_notes(&self) -> Result<(), StagingError> {
        self.journal.sync().map_err(failed(&self.path().join(JOURNAL), "sync"))
    }

    /// The contents of the journal, but the symbols of objects for which `is_of` is false.
    ///
    /// # Errors
    /// [`StagingError::System`].
    pub fn notes_of(&self, is_of: impl Fn(u32) -> bool) -> Result<Kept, StagingError> {
        self.journal.notes_of(is_of).map_err(failed(&self.path().join(JOURNAL), "read"))
    }

    fn available(&self) -> Option<u64> {
        self.disk().available(self.directory().as_fd())
    }

    /// The staging directory's path.
    pub fn path(&self) -> PathBuf {
        self.target.path().join(&self.name)
    }

    /// Writes `bytes` at `offset` of a file that is not part of an object.
    ///
    /// # Errors
    /// [`StagingError::Geometry`] if there is no such file or it is shorter,
    /// [`StagingError::DiskFull`], [`StagingError::System`], [`StagingError::Committed`].
    pub fn write_file(
        &self,
        index: FileIndex,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), StagingError> {
        let file = self.file(index)?;
        let end = offset.checked_add(bytes.len() as u64).ok_or(GeometryError::Overflow)?;
        if end > file.length {
            let length = file.length;
            return Err(GeometryError::BeyondFile { file: index, end, length }.into());
        }
        self.write_all_at(&file, offset, bytes)
    }

    /// Removes the staging directory and every uncommitted file in it, after everything was
    /// committed, or to discard the reception.
    ///
    /// # Errors
    /// [`StagingError::System`]. A file in the directory that the crate did not create stays, and
    /// the directory with it; that is no error.
    pub fn remove(&self) -> Result<(), StagingError> {
        self.open.close_all(); // an open file keeps its disk space
        self.unsynced.clear();
        self.remove_files()?;
        // The lock comes last: without it another receiver could enter.
        let (disk, directory) = (self.disk(), self.directory().as_fd());
        for name in [DESCRIPTION, OWNER, JOURNAL, LOCK] {
            let result = disk.unlink(directory, name.as_bytes());
            ignore(Errno::NOENT, result).map_err(failed(&self.path().join(name), "remove"))?;
        }
        match disk.remove_directory(self.target.as_fd(), self.name.as_bytes()) {
            // It contains other files, or another receiver has just entered.
            Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(&self.path(), "remove")(errno)),
        }
    }

    /// Like [`remove`](Self::remove), after everything was committed: the content does not need it.
    /// A failure is one of those that [`TargetDirectory::take_tolerated`] returns.
    pub fn remove_when_done(&self) {
        if let Err(StagingError::System { errno, .. }) = self.remove() {
            self.target.tolerate_removal(errno);
        }
    }

    pub(crate) fn target(&self) -> &TargetDirectory {
        &self.target
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.target.disk()
    }

    pub(crate) fn directory(&self) -> &OwnedFd {
        &self.entered.directory
    }

    pub(crate) fn directories(&self) -> &Directories {
        &self.directories
    }

    pub(crate) fn made(&self) -> &BTreeSet<u32> {
        &self.made
    }

    /// True if an earlier receiver left files here.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub(crate) fn overwrites_everything(&self) -> bool {
        self.options.overwrite
    }

    /// True if a file or link with this name may be replaced.
    pub(crate) fn overwrites(&self, name: &TargetName) -> bool {
        let is_named = |names: &BTreeSet<Vec<u8>>| names.contains(name.as_bytes());
        self.options.overwrite || self.replaceable.get().is_some_and(is_named)
    }

    /// True if what has the name of a file may be replaced by it.
    pub(crate) fn may_replace(&self, file: &StagedFile) -> Result<bool, StagingError> {
        let Some(name) = &file.target else { return Ok(false) };
        if self.overwrites(name) || self.has_given_bytes(file, name)? {
            return Ok(true);
        }
        match file.replaces.get() {
            Some(known) => Ok(self.target.identity(name)? == Some(*known)),
            None => Ok(false),
        }
    }

    /// The files of which copies have the final names.
    pub(crate) fn given(&self) -> impl std::ops::DerefMut<Target = BTreeSet<FileIndex>> {
        self.given.lock()
    }

    pub(crate) fn is_given(&self, index: FileIndex) -> bool {
        self.given.lock().contains(&index)
    }

    /// Closes a file until its next use.
    pub(crate) fn close(&self, file: &StagedFile) {
        self.open.close(file.key);
    }

    /// The file with an index.
    pub(crate) fn file(&self, index: FileIndex) -> Result<Arc<StagedFile>, GeometryError> {
        let files = self.files.read();
        files.list.get(&index.0).cloned().ok_or(GeometryError::NoSuchFile(index))
    }

    /// Reserves the numbers of the spools of `count` objects that are not received, so that numbers
    /// do not depend on the selection.
    pub fn pass_over_spools(&self, count: u32) {
        self.spools.fetch_add(count, Ordering::Relaxed);
    }

    /// A sparse file of `length` bytes that is never committed.
    pub(crate) fn add_spool(&self, length: u64) -> Arc<StagedFile> {
        Arc::new(StagedFile {
            key: Key::Repair(self.spools.fetch_add(1, Ordering::Relaxed)),
            length,
            holes: Vec::new(),
            outside: None,
            link: None,
            attributes: FileAttributes::default(),
            target: None,
            replaces: OnceLock::new(),
            state: ReadLock::new(State::Absent),
            dirty_in: AtomicU64::new(0),
            refused: AtomicBool::new(false),
        })
    }

    /// Removes a spool.
    pub(crate) fn remove_spool(&self, spool: &StagedFile) -> Result<(), StagingError> {
        let mut state = spool.write();
        if *state != State::Absent {
            self.open.close(spool.key);
            self.unsynced.forget(spool);
            let name = spool.staged_name();
            let result = self.disk().unlink(self.directory().as_fd(), name.as_bytes());
            ignore(Errno::NOENT, result).map_err(self.failed(spool, "remove", 0))?;
        }
        *state = State::Gone;
        Ok(())
    }

    /// Fills `out` from byte `offset` of a file; bytes that were never written are zero.
    pub(crate) fn read_exact_at(
        &self,
        file: &StagedFile,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), StagingError> {
        if let Some(memory) = file.memory() {
            memory.read_at(offset, out);
            return Ok(());
        }
        let disk = self.disk();
        let mut read = |open: BorrowedFd<'_>| match disk.read_full(open, out, offset)? {
            count if count == out.len() => Ok(()),
            // The file was truncated: it has its full length from the beginning.
            _ => Err(Errno::IO),
        };
        let state = file.read();
        if *state == State::Absent && !self.resumed && !file.is_outside() {
            // A block that is solved reads what has arrived of it: of small files often nothing.
            out.fill(0);
            return Ok(());
        }
        if file.is_outside() || !matches!(*state, State::Closed | State::Settled) {
            drop(state);
            return self.with_file(file, "read", 0, &mut read);
        }
        // It waits for its name, and its mode may refuse to open it for writing.
        let (name, flags) = (file.staged_name(), OFlags::RDONLY | OFlags::NOFOLLOW);
        let directory = self.directory().as_fd();
        let open = disk.open(directory, name.as_bytes(), flags | OFlags::CLOEXEC, Mode::empty());
        open.and_then(|open| read(open.as_fd())).map_err(self.failed(file, "read", 0))
    }

    /// Writes all of `bytes` at byte `offset` of a file.
    pub(crate) fn write_all_at(
        &self,
        file: &Arc<StagedFile>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), StagingError> {
        if let Some(memory) = file.memory() {
            memory.write_at(offset, bytes);
            return Ok(());
        }
        let wanted = bytes.len() as u64;
        let disk = self.disk();
        self.with_file(file, "write", wanted, |open| disk.write_all(open, bytes, offset))?;
        self.unsynced.written(file, wanted);
        Ok(())
    }

    /// Returns the blocks of a byte range to the file system. Afterwards it reads as zeros. Does
    /// nothing for a file that is not created yet, or removed.
    pub(crate) fn punch_hole(
        &self,
        file: &StagedFile,
        offset: u64,
        length: u64,
    ) -> Result<(), StagingError> {
        // Held to the end: another thread may be about to remove the file.
        let state = file.read();
        if *state != State::Staged {
            return Ok(());
        }
        let open = self.open(file)?;
        self.disk().punch(open.as_fd(), offset, length).map_err(self.failed(
            file,
            "free blocks of",
            0,
        ))
    }

    /// Runs `work` on a file that is open for symbols.
    fn with_file<T>(
        &self,
        file: &StagedFile,
        doing: &'static str,
        wanted: u64,
        work: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<T>,
    ) -> Result<T, StagingError> {
        let mut state = file.read();
        if *state == State::Absent {
            drop(state);
            self.create_file(file)?;
            state = file.read();
        }
        match *state {
            State::Staged => {}
            State::Doubtful => return Err(self.doubtful(file)),
            State::Absent | State::Closed | State::Settled | State::Gone => {
                return Err(StagingError::Committed { path: self.path_of(file) });
            }
        }
        let open = self.open(file)?;
        work(open.as_fd()).map_err(self.failed(file, doing, wanted))
    }

    /// Creates a file, in its full length, if it does not exist yet.
    pub(crate) fn create_file(&self, file: &StagedFile) -> Result<(), StagingError> {
        let mut state = file.write();
        if *state != State::Absent {
            return Ok(());
        }
        let name = file.staged_name();
        if self.resumed && self.take_over(file)? {
            *state = State::Staged;
            return Ok(());
        }
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::NOFOLLOW
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        // The kernel applies the umask here; to read it, it would have to be changed for all
        // threads. The owner's bits are needed to open the file again. Only the owner can enter the
        // directory.
        let mode = Mode::from_raw_mode(file.attributes.mode & 0o777 | 0o600);
        let (disk, directory) = (self.disk(), self.directory().as_fd());
        let open = disk.open(directory, name.as_bytes(), flags, mode).map_err(self.failed(
            file,
            "create",
            file.length,
        ))?;
        if let Err(errno) = self.give_length(file, open.as_fd()) {
            // Its reserved space must not prevent other writes; there is nothing else in it.
            let _ = disk.unlink(directory, name.as_bytes());
            return Err(self.failed(file, "reserve", file.length)(errno));
        }
        self.open.get_or_open(file.key, || Ok::<_, StagingError>(open))?;
        self.unsynced.created();
        *state = State::Staged;
        Ok(())
    }

    /// Opens a file that an earlier receiver left. If there is none, removes anything else with its
    /// name. Corrects its length: [`reconcile`](Self::reconcile) has removed the notes about
    /// missing bytes.
    fn take_over(&self, file: &StagedFile) -> Result<bool, StagingError> {
        let name = file.staged_name();
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (disk, directory) = (self.disk(), self.directory().as_fd());
        let left = match disk.open(directory, name.as_bytes(), flags, Mode::empty()) {
            Ok(left) => Some(left),
            Err(Errno::NOENT) => return Ok(false),
            // A symbolic link has the name; only this user can have created it.
            Err(Errno::LOOP) => None,
            Err(errno) => return Err(self.failed(file, "open", 0)(errno)),
        };
        if let Some(left) = left {
            let stat = disk.stat(left.as_fd()).map_err(self.failed(file, "examine", 0))?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                if stat.st_size as u64 != file.length {
                    self.give_length(file, left.as_fd()).map_err(self.failed(
                        file,
                        "reserve",
                        file.length,
                    ))?;
                }
                self.open.get_or_open(file.key, || Ok::<_, StagingError>(left))?;
                return Ok(true);
            }
        }
        disk.unlink(directory, name.as_bytes()).map_err(self.failed(file, "remove", 0))?;
        Ok(false)
    }

    /// Sets the length of a file and, if it is large, reserves its space.
    fn give_length(&self, file: &StagedFile, open: BorrowedFd<'_>) -> rustix::io::Result<()> {
        let reserve =
            self.options.reserve && file.target.is_some() && file.length >= LEAST_RESERVED;
        self.disk().set_length(open, file.length)?;
        if reserve { file.reserve(self.disk(), open) } else { Ok(()) }
    }

    pub(crate) fn open(&self, file: &StagedFile) -> Result<Arc<OwnedFd>, StagingError> {
        if let Some(device) = file.device() {
            return Ok(Arc::clone(device.file()));
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        self.open.get_or_open(file.key, || {
            let name = file.staged_name();
            self.disk()
                .open(self.directory().as_fd(), name.as_bytes(), flags, Mode::empty())
                .map_err(self.failed(file, "open", 0))
        })
    }

    /// Removes all staged files, but not the lock and the journal.
    fn remove_files(&self) -> Result<(), StagingError> {
        let path = self.path();
        // POSIX does not define what a directory stream returns while names are removed: repeat
        // until it returns none.
        loop {
            let mut found = false;
            for entry in Dir::read_from(self.directory()).map_err(failed(&path, "list"))? {
                let entry = entry.map_err(failed(&path, "list"))?;
                if entry.file_name().to_str().is_ok_and(Key::is_name) {
                    self.disk()
                        .unlink(self.directory().as_fd(), entry.file_name().to_bytes())
                        .map_err(failed(&path, "remove a file of"))?;
                    found = true;
                }
            }
            if !found {
                return Ok(());
            }
        }
    }

    /// The path for messages: the one under which the user knows the file.
    fn path_of(&self, file: &StagedFile) -> PathBuf {
        match (&file.target, file.device()) {
            (Some(target), _) => self.target.path_of(target),
            (None, Some(device)) => device.path().to_owned(),
            (None, None) => self.path().join(file.staged_name()),
        }
    }

    /// The error for a file whose sync has failed before.
    pub(crate) fn doubtful(&self, file: &StagedFile) -> StagingError {
        self.failed(file, "trust", 0)(Errno::IO)
    }

    /// Converts the error of a system call on a file; `wanted` are the bytes it would have taken on
    /// the disk.
    pub(crate) fn failed<'a>(
        &'a self,
        file: &'a StagedFile,
        doing: &'static str,
        wanted: u64,
    ) -> impl FnOnce(Errno) -> StagingError + 'a {
        move |errno| match errno {
            Errno::NOSPC | Errno::DQUOT => match file.device() {
                Some(device) => StagingError::DeviceFull {
                    path: device.path().to_owned(),
                    room: Room { wanted, available: device.available() },
                },
                None => StagingError::DiskFull {
                    path: self.path_of(file),
                    room: Room { wanted, available: self.available() },
                },
            },
            errno => failed(&self.path_of(file), doing)(errno),
        }
    }
}

/// Turns one error into success.
fn ignore(expected: Errno, result: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match result {
        Err(errno) if errno == expected => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_names_of_staged_files() {
        for key in [Key::Data(0), Key::Data(u32::MAX), Key::Repair(17)] {
            assert!(Key::is_name(&key.name()));
        }
        for name in ["", ".", "..", LOCK, ".repair", "1x", "-1", "1.repair.repair", "+1", "journal"]
        {
            assert!(!Key::is_name(name), "{name:?}");
        }
    }
}
