//! The files that are sent: opened when added, and checked for changes after each read.

use crate::disk::{Disk, HostDisk};
use crate::failure::category_of;
use crate::geometry::GeometryError;
use crate::identity::{Change, Identity};
use crate::ids::FileIndex;
use crate::open_files::{DEFAULT_OPEN_FILES, OpenFiles};
use crate::sys;
use crate::timestamp::Timestamp;
use fontana_proto::Category;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

mod device;

/// A source file could not be read as it was when the session began.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// A system call failed.
    #[error("cannot {doing} {path:?}: {errno}")]
    System {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        doing: &'static str,
        /// The system's error number.
        errno: Errno,
    },
    /// Neither a regular file nor a directory or link.
    #[error("{path:?} is {kind}, not a regular file")]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// Its type, with an article.
        kind: &'static str,
    },
    /// A file that has other bytes than its size says, as those of `/proc` and `/sys`.
    #[error(
        "{path:?} has {} than the {size} bytes that its file system says",
        if *is_longer { "more" } else { "fewer" }
    )]
    WrongSize {
        /// The file.
        path: PathBuf,
        /// Its size, as the file system says.
        size: u64,
        /// Whether it has more bytes, or fewer.
        is_longer: bool,
    },
    /// A device that another program may write to while it is sent.
    #[error("{path:?} is {}", in_use(mounted_at.as_deref()))]
    InUse {
        /// The device.
        path: PathBuf,
        /// Where it, or a partition of it, is mounted read-write.
        mounted_at: Option<PathBuf>,
    },
    /// The file was written to, truncated or replaced.
    #[error("{path:?} has changed: {what}")]
    Changed {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: Change,
    },
    /// The files or the object do not have what the caller requested.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl SourceError {
    /// The class of the error.
    pub fn category(&self) -> Category {
        match self {
            Self::System { errno, .. } => category_of(*errno),
            Self::NotRegular { .. } | Self::WrongSize { .. } | Self::InUse { .. } => {
                Category::Refused
            }
            Self::Changed { .. } => Category::SourceChanged,
            Self::Geometry(_) => Category::Geometry,
        }
    }
}

fn in_use(mounted_at: Option<&Path>) -> String {
    match mounted_at {
        Some(at) => format!("mounted read-write at {at:?}"),
        None => "in use".to_owned(),
    }
}

/// A regular file and its identity when it was first opened, a block device, or bytes in memory.
#[derive(Clone, Debug)]
pub struct SourceFile {
    path: PathBuf,
    identity: Identity,
    mode: u32,
    data: Vec<Range<u64>>,
    contents: Contents,
}

#[derive(Clone, Debug)]
enum Contents {
    /// Opened when needed.
    File,
    /// Open as long as it is sent.
    Device(Arc<OwnedFd>),
    Memory(SourceBytes),
}

/// Bytes in memory that are sent as a file. They do not change. Clones share them.
#[derive(Clone)]
pub struct SourceBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl SourceBytes {
    /// These bytes: of a vector, of a slice that others share, of a mapped file.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }

    fn get(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl From<Vec<u8>> for SourceBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl fmt::Debug for SourceBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceBytes").field("length", &self.get().len()).finish()
    }
}

impl SourceFile {
    /// Opens the file to check that it can be read, and remembers its identity. The descriptor is
    /// closed. A symbolic link is followed, because the user named it. A block device stays open,
    /// and is read once to find blocks of zeros, which count as holes.
    ///
    /// # Errors
    /// [`SourceError::NotRegular`] for directories, character devices, pipes and sockets, which are
    /// not opened; [`SourceError::InUse`] for a block device that is mounted read-write, or in use
    /// otherwise; [`SourceError::System`] for a file that is missing or unreadable.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        let path = path.into();
        let stat = rustix::fs::stat(&path).map_err(failed(&path, "open"))?;
        if device::is_device(&stat) {
            return Self::open_device(path, &stat);
        }
        Self::open_with(path, AtFlags::empty(), OFlags::empty())
    }

    fn open_device(path: PathBuf, stat: &Stat) -> Result<Self, SourceError> {
        let device::OpenedDevice { file, size, data } = device::open(&path)?;
        // Its node has other times than its contents.
        let identity = Identity { size, inode: (u64::MAX, stat.st_rdev), ..Identity::new(stat) };
        let (mode, contents) = (stat.st_mode & 0o666, Contents::Device(Arc::new(file)));
        Ok(Self { path, identity, mode, data, contents })
    }

    /// Like [`open`](Self::open), but does not follow a symbolic link, nor opens a device: it has
    /// replaced a file that a scan has found.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_found(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        Self::open_with(path.into(), AtFlags::SYMLINK_NOFOLLOW, OFlags::NOFOLLOW)
    }

    fn open_with(path: PathBuf, look: AtFlags, open: OFlags) -> Result<Self, SourceError> {
        // Examined before opening, because opening a device may have side effects (a tape rewinds).
        let stat = rustix::fs::statat(CWD, &path, look).map_err(failed(&path, "open"))?;
        check_regular(&path, &stat)?;
        let (file, stat) = open_regular(&path, open)?;
        let stat = check_size(&path, &file, stat)?;
        let (identity, mode) = (Identity::new(&stat), stat.st_mode & 0o7777);
        let is_sparse = (stat.st_blocks as u64).saturating_mul(512) < identity.size;
        let data = if is_sparse { data_ranges(&file, identity.size) } else { whole(identity.size) };
        Ok(Self { path, identity, mode, data, contents: Contents::File })
    }

    /// Bytes in memory, as if they were a file. They cannot change. `name` is for messages.
    fn in_memory(name: &str, bytes: SourceBytes) -> Self {
        let (size, never) = (bytes.get().len() as u64, Timestamp { seconds: 0, nanoseconds: 0 });
        let identity = Identity { inode: (0, 0), size, modified: never, changed: never };
        let (path, data) = (PathBuf::from(name), whole(size));
        Self { path, identity, mode: 0o644, data, contents: Contents::Memory(bytes) }
    }

    /// The path as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The identity of the file when it was added.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.identity.size
    }

    /// The ranges that are not holes, ascending. Holes read as zeros; those shorter than 64 KiB
    /// count as data, because they are not worth a line in a manifest.
    pub fn data(&self) -> &[Range<u64>] {
        &self.data
    }

    /// Whether it is a block device.
    pub fn is_device(&self) -> bool {
        matches!(self.contents, Contents::Device(_))
    }

    /// Permission bits (the low twelve of `st_mode`).
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Whether the path still leads to this file in this state. A symbolic link is not followed.
    ///
    /// # Errors
    /// [`SourceError::System`] if the file is missing, or cannot be examined.
    pub(crate) fn is_current(&self) -> Result<bool, SourceError> {
        let stat = rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(self.failed("open"))?;
        Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && Identity::new(&stat) == self.identity
            && stat.st_mode & 0o7777 == self.mode)
    }

    /// Opens the file again, and checks that it is the same.
    fn reopen(&self, growth: Growth) -> Result<OwnedFd, SourceError> {
        let opened = open_regular(&self.path, OFlags::empty());
        let (file, stat) = opened.map_err(|error| match error {
            // A confined process may read the file, and not another one that has its path.
            SourceError::System { errno: Errno::ACCESS, .. } if self.is_replaced() => {
                self.changed(Change::Replaced)
            }
            error => self.gone(error),
        })?;
        self.compare(&stat, growth)?;
        Ok(file)
    }

    fn is_replaced(&self) -> bool {
        rustix::fs::stat(&self.path)
            .is_ok_and(|stat| self.identity.change(&Identity::new(&stat)) == Some(Change::Replaced))
    }

    /// The state of the file, without opening it: see [`compare`](Self::compare).
    fn examine_path(&self, growth: Growth) -> Result<Option<Identity>, SourceError> {
        let stat = rustix::fs::stat(&self.path).map_err(self.failed("examine"));
        let stat = stat.and_then(|stat| check_regular(&self.path, &stat).map(|()| stat));
        self.compare(&stat.map_err(|error| self.gone(error))?, growth)
    }

    /// The error of a path that does not lead to the file any more.
    fn gone(&self, error: SourceError) -> SourceError {
        match error {
            SourceError::System { errno: Errno::NOENT, .. } => self.changed(Change::Missing),
            SourceError::NotRegular { .. } => self.changed(Change::Replaced),
            error => error,
        }
    }

    /// The state of the file, if it is another one that `growth` allows.
    fn compare(&self, stat: &Stat, growth: Growth) -> Result<Option<Identity>, SourceError> {
        let now = Identity::new(stat);
        match (growth, self.identity.change(&now)) {
            // Its hash decides.
            (Growth::Allowed, _) if now.size >= self.identity.size => {
                Ok((now != self.identity).then_some(now))
            }
            (_, None) => Ok(None),
            (_, Some(what)) => Err(self.changed(what)),
        }
    }

    fn changed(&self, what: Change) -> SourceError {
        SourceError::Changed { path: self.path.clone(), what }
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(Errno) -> SourceError {
        failed(&self.path, doing)
    }
}

/// Opens without waiting for the other end if a pipe has replaced the file.
fn open_regular(path: &Path, more: OFlags) -> Result<(OwnedFd, Stat), SourceError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = sys::retry(|| rustix::fs::openat(CWD, path, flags | more, Mode::empty()))
        .map_err(failed(path, "open"))?;
    let stat = rustix::fs::fstat(&file).map_err(failed(path, "examine"))?;
    check_regular(path, &stat)?;
    Ok((file, stat))
}

/// Looks for bytes where the size says that there are none, and the other way round. Returns the
/// state of the file, which may have grown meanwhile.
fn check_size(path: &Path, file: &OwnedFd, mut stat: Stat) -> Result<Stat, SourceError> {
    let has_byte = |offset| {
        let read = HostDisk.read_full(file.as_fd(), &mut [0], offset);
        read.map(|count| count > 0).map_err(failed(path, "read"))
    };
    loop {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        // A file without blocks has only holes, or is so short that it needs none.
        let last = size.checked_sub(1).filter(|_| stat.st_blocks == 0);
        let is_shorter = last.map_or(Ok(false), |last| has_byte(last).map(|is_there| !is_there))?;
        let is_longer = !is_shorter && has_byte(size)?;
        if !is_shorter && !is_longer {
            return Ok(stat);
        }
        let now = rustix::fs::fstat(file).map_err(failed(path, "examine"))?;
        if now.st_size == stat.st_size {
            return Err(SourceError::WrongSize { path: path.to_owned(), size, is_longer });
        }
        stat = now;
    }
}

/// Shortest hole that counts as one. File systems make holes of their block size, and a program
/// that skips a few blocks would fragment a manifest; 64 KiB are fifty packets.
const LEAST_HOLE: u64 = 64 << 10;

fn whole(size: u64) -> Vec<Range<u64>> {
    (size > 0).then_some(0..size).into_iter().collect()
}

/// The ranges that are not holes; the whole file if the file system does not report holes.
fn data_ranges(file: &OwnedFd, size: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start.clamp(at, size),
            Err(Errno::NXIO) => size, // only a hole
            Err(_) => return whole(size),
        };
        let end = match rustix::fs::seek(file, SeekFrom::Hole(start)) {
            // An answer that makes no progress would loop forever.
            Ok(end) if end > start => end.min(size),
            Err(Errno::NXIO) => size,
            _ if start == size => size,
            _ => return whole(size),
        };
        match ranges.last_mut() {
            Some(last) if start - last.end < LEAST_HOLE => last.end = end,
            None if start < LEAST_HOLE => ranges.push(0..end),
            _ if start < end => ranges.push(start..end),
            _ => {}
        }
        at = end;
    }
    ranges
}

fn check_regular(path: &Path, stat: &Stat) -> Result<(), SourceError> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        _ => "of an unknown kind",
    };
    Err(SourceError::NotRegular { path: path.to_owned(), kind })
}

fn failed(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> SourceError {
    move |errno| SourceError::System { path: path.to_owned(), doing, errno }
}

/// Pauses before a read is tried again: a server is started again, a disk is slow to answer, a file
/// is renamed and gets its name back.
const PAUSES: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(100)];

/// Whether a read that fails so may succeed a moment later.
fn may_pass(error: &SourceError) -> bool {
    match error {
        SourceError::System { errno, .. } => {
            matches!(*errno, Errno::IO | Errno::STALE | Errno::TIMEDOUT | Errno::AGAIN)
        }
        SourceError::Changed { what, .. } => *what == Change::Missing,
        _ => false,
    }
}

/// Whether files may be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    Refused,
    Allowed,
}

/// Descriptors that are open, of the files of one list or of several that
/// [share](SourceFiles::sharing) them. A session may take any number of lists.
#[derive(Clone, Debug)]
pub struct Descriptors {
    files: Arc<OpenFiles<(u32, FileIndex)>>,
    /// Lists so far.
    lists: Arc<AtomicU32>,
}

impl Default for Descriptors {
    fn default() -> Self {
        Self::new(DEFAULT_OPEN_FILES)
    }
}

impl Descriptors {
    /// At most `most` open descriptors (at least one).
    fn new(most: usize) -> Self {
        Self { files: Arc::new(OpenFiles::new(most)), lists: Arc::default() }
    }
}

/// The files of a session's objects, read by position through a bounded cache of descriptors.
#[derive(Debug)]
pub struct SourceFiles {
    files: Vec<SourceFile>,
    open: Descriptors,
    /// The number of this list among those that share the descriptors.
    list: u32,
    growth: Growth,
    /// Reads were tried again in vain: others do not wait until one succeeds.
    is_hopeless: AtomicBool,
}

/// The files of a block that are not in the state in which they were added, at least one, and their
/// present states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviations {
    pub(crate) first: (FileIndex, Identity),
    others: Vec<(FileIndex, Identity)>,
}

impl Deviations {
    /// These files; `None` if there are none.
    pub(crate) fn of(mut files: Vec<(FileIndex, Identity)>) -> Option<Self> {
        let first = files.pop()?;
        Some(Self { first, others: files })
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = FileIndex> {
        self.states().map(|(file, _)| *file)
    }

    /// The files and their states.
    pub(crate) fn states(&self) -> impl Iterator<Item = &(FileIndex, Identity)> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl Default for SourceFiles {
    fn default() -> Self {
        Self::new(DEFAULT_OPEN_FILES)
    }
}

impl SourceFiles {
    /// An empty list with at most `open_files` open descriptors (at least one).
    pub fn new(open_files: usize) -> Self {
        Self {
            files: Vec::new(),
            open: Descriptors::new(open_files),
            list: 0,
            growth: Growth::Refused,
            is_hopeless: AtomicBool::new(false),
        }
    }

    /// The list, whose files share these descriptors with those of other lists from now on.
    pub fn sharing(mut self, open: &Descriptors) -> Self {
        self.list = open.lists.fetch_add(1, Ordering::Relaxed);
        self.open = open.clone();
        self
    }

    /// Opens a file ([`SourceFile::open`]) and adds it at the end of the list.
    ///
    /// # Errors
    /// Those of [`SourceFile::open`].
    pub fn add(&mut self, path: impl Into<PathBuf>) -> Result<FileIndex, SourceError> {
        Ok(self.push(SourceFile::open(path)?))
    }

    /// Opens a file that a scan has found ([`SourceFile::open_found`]) and adds it at the end of
    /// the list.
    ///
    /// # Errors
    /// Those of [`SourceFile::open_found`].
    pub fn add_found(&mut self, path: impl Into<PathBuf>) -> Result<FileIndex, SourceError> {
        Ok(self.push(SourceFile::open_found(path)?))
    }

    /// Adds a file in the state of an earlier list, at the end of this one.
    pub fn add_known(&mut self, file: SourceFile) -> FileIndex {
        self.push(file)
    }

    /// The list, of files that may be written to, or replaced, as long as they do not become
    /// shorter. The caller compares what is read of such files with hashes: see
    /// [`ObjectSource::deviations`](crate::ObjectSource::deviations).
    pub fn allowing_growth(mut self) -> Self {
        self.growth = Growth::Allowed;
        self
    }

    /// Adds bytes in memory at the end of the list. `name` is for messages.
    pub fn add_bytes(&mut self, name: &str, bytes: impl Into<SourceBytes>) -> FileIndex {
        self.push(SourceFile::in_memory(name, bytes.into()))
    }

    fn push(&mut self, file: SourceFile) -> FileIndex {
        let index = FileIndex(self.files.len() as u32);
        self.files.push(file);
        index
    }

    /// The files, by index.
    pub fn as_slice(&self) -> &[SourceFile] {
        &self.files
    }

    /// The file with an index.
    ///
    /// # Errors
    /// [`GeometryError::NoSuchFile`].
    pub fn file(&self, file: FileIndex) -> Result<&SourceFile, GeometryError> {
        self.files.get(file.0 as usize).ok_or(GeometryError::NoSuchFile(file))
    }

    /// Fills `out` from byte `offset` of a file.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if the file has become too short, or was opened again and has
    /// changed; [`SourceError::System`] if it cannot be read. [`SourceFiles::check_unchanged`]
    /// detects a change that leaves the file long enough.
    pub fn read_exact_at(
        &self,
        file: FileIndex,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        self.read(file, offset, out).map(|_| ())
    }

    /// Like [`read_exact_at`](Self::read_exact_at), and then checks that the file has not changed.
    /// Returns its state if it was written to, if that is [allowed](Self::allowing_growth).
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at).
    pub(crate) fn read_checked_at(
        &self,
        file: FileIndex,
        offset: u64,
        out: &mut [u8],
    ) -> Result<Option<Identity>, SourceError> {
        match self.read(file, offset, out)? {
            Some(open) => self.examine(self.file(file)?, &open),
            None => Ok(None),
        }
    }

    /// Fills `out` from byte `offset` of a file. Returns its descriptor if it may change.
    fn read(
        &self,
        file: FileIndex,
        offset: u64,
        out: &mut [u8],
    ) -> Result<Option<Arc<OwnedFd>>, SourceError> {
        self.patiently(file, || self.read_once(file, offset, out))
    }

    /// Tries again what may succeed a moment later, with the file opened again.
    fn patiently<T>(
        &self,
        file: FileIndex,
        mut attempt: impl FnMut() -> Result<T, SourceError>,
    ) -> Result<T, SourceError> {
        let mut result = attempt();
        for pause in PAUSES {
            match &result {
                Err(error) if may_pass(error) => {}
                _ => break,
            }
            if !self.is_hopeless.load(Ordering::Relaxed) {
                std::thread::sleep(pause);
            } else if !pause.is_zero() {
                break;
            }
            self.open.files.close((self.list, file));
            result = attempt();
            let is_in_vain = matches!(&result, Err(error) if may_pass(error));
            if !is_in_vain {
                self.is_hopeless.store(false, Ordering::Relaxed);
            }
        }
        if matches!(&result, Err(error) if may_pass(error)) {
            self.is_hopeless.store(true, Ordering::Relaxed);
        }
        result
    }

    fn read_once(
        &self,
        file: FileIndex,
        offset: u64,
        out: &mut [u8],
    ) -> Result<Option<Arc<OwnedFd>>, SourceError> {
        let source = self.file(file)?;
        let end = offset.checked_add(out.len() as u64).ok_or(GeometryError::Overflow)?;
        if end > source.size() {
            return Err(GeometryError::BeyondFile { file, end, length: source.size() }.into());
        }
        let open = match &source.contents {
            Contents::Memory(bytes) => {
                let part = bytes.get().get(offset as usize..end as usize).unwrap_or_default();
                // As long as `out`: it ends within the file.
                out.iter_mut().zip(part).for_each(|(out, byte)| *out = *byte);
                return Ok(None);
            }
            Contents::Device(device) => Arc::clone(device),
            Contents::File => {
                let key = (self.list, file);
                self.open.files.get_or_open(key, || source.reopen(self.growth))?
            }
        };
        let read = HostDisk.read_full(open.as_fd(), out, offset);
        let count = read.map_err(source.failed("read"))?;
        if count < out.len() {
            let what = Change::Size { before: source.size(), now: offset + count as u64 };
            return Err(source.changed(what));
        }
        Ok(matches!(source.contents, Contents::File).then_some(open))
    }

    /// Checks that a file has not changed. Called after reading, it confirms what was read.
    ///
    /// # Errors
    /// [`SourceError::Changed`] or [`SourceError::System`].
    pub fn check_unchanged(&self, file: FileIndex) -> Result<(), SourceError> {
        match self.deviation(file)? {
            Some(now) => Err(self.changed(file, &now)),
            None => Ok(()),
        }
    }

    /// The state of a file that was written to, if that is [allowed](Self::allowing_growth).
    ///
    /// # Errors
    /// As [`check_unchanged`](Self::check_unchanged).
    pub(crate) fn deviation(&self, file: FileIndex) -> Result<Option<Identity>, SourceError> {
        let source = self.file(file)?;
        // No program that respects mounts writes to a device that is sent.
        if !matches!(source.contents, Contents::File) {
            return Ok(None);
        }
        match self.open.files.get((self.list, file)) {
            Some(open) => self.examine(source, &open),
            // Thousands of small files are not all open.
            None => self.patiently(file, || source.examine_path(self.growth)),
        }
    }

    fn examine(
        &self,
        source: &SourceFile,
        open: &OwnedFd,
    ) -> Result<Option<Identity>, SourceError> {
        let stat = rustix::fs::fstat(open.as_fd()).map_err(source.failed("examine"))?;
        source.compare(&stat, self.growth)
    }

    /// Checks that a file in the state `now` has the contents that it had, by all that is known
    /// without reading them.
    pub(crate) fn check_contents(
        &self,
        file: FileIndex,
        now: &Identity,
    ) -> Result<(), SourceError> {
        let source = self.file(file)?;
        source.identity.change(now).map_or(Ok(()), |what| Err(source.changed(what)))
    }

    /// The error that a file has other bytes than its manifest says.
    pub(crate) fn unlike(&self, file: FileIndex) -> SourceError {
        match self.file(file) {
            Ok(source) => source.changed(Change::Unlike),
            Err(error) => error.into(),
        }
    }

    /// The error that a file is in the state `now`.
    pub(crate) fn changed(&self, file: FileIndex, now: &Identity) -> SourceError {
        match self.file(file) {
            Ok(source) => source.changed(source.identity.change(now).unwrap_or(Change::Modified)),
            Err(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn lists_that_share_descriptors_have_no_more_of_them_open_than_one() {
        let directory = tempfile::tempdir().unwrap();
        let shared = Descriptors::new(1);
        let lists = [b"one", b"two"].map(|bytes| {
            let path = directory.path().join(bytes.escape_ascii().to_string());
            std::fs::write(&path, bytes).unwrap();
            let mut list = SourceFiles::default();
            list.add(path).unwrap();
            list.sharing(&shared)
        });
        let is_open = |list: u32| shared.files.get((list, FileIndex(0))).is_some();
        for (list, bytes) in [(0, b"one"), (1, b"two"), (0, b"one")] {
            let mut read = [0; 3];
            lists[list as usize].read_exact_at(FileIndex(0), 0, &mut read).unwrap();
            assert_eq!((&read, is_open(list), is_open(1 - list)), (bytes, true, false));
        }
    }

    #[test]
    fn a_read_that_fails_for_a_moment_is_tried_again() {
        let files = SourceFiles::default();
        let (calls, file) = (Cell::new(0), FileIndex(0));
        let failing = |times: u32, errno: Errno| {
            calls.set(0);
            files.patiently(file, || {
                calls.set(calls.get() + 1);
                match calls.get() > times {
                    true => Ok(calls.get()),
                    false => Err(failed(Path::new("f"), "read")(errno)),
                }
            })
        };
        assert_eq!(failing(2, Errno::IO), Ok(3));
        assert_eq!(failing(3, Errno::STALE), Ok(4));
        assert!(failing(9, Errno::ACCESS).is_err() && calls.get() == 1, "it does not pass");
        assert!(failing(9, Errno::IO).is_err() && calls.get() == 4);
        // Of a disk that does not come back, each file is not waited for.
        assert!(failing(9, Errno::IO).is_err() && calls.get() == 2);
        assert_eq!(failing(1, Errno::IO), Ok(2));
        assert_eq!(failing(3, Errno::IO), Ok(4), "it has come back");
    }
}
