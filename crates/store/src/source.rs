//! The files that are sent: opened once, known again, never trusted to stay as they were.

use crate::failure::category_of;
use crate::geometry::GeometryError;
use crate::ids::FileIndex;
use crate::open_files::{DEFAULT_OPEN_FILES, OpenFiles};
use crate::sys;
use crate::timestamp::Timestamp;
use fontana_proto::Category;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A source file could not be read as it was when the session began.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// A system call failed.
    #[error("cannot {doing} {path:?}: {errno}")]
    System {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's answer.
        errno: Errno,
    },
    /// Neither a regular file nor a directory or link.
    #[error("{path:?} is {kind}, not a regular file")]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What it is, with its article.
        kind: &'static str,
    },
    /// Somebody wrote to the file, cut it, or put another in its place.
    #[error("{path:?} changed while it was being sent: {what}")]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is different.
        what: Change,
    },
    /// Something was asked for that the files or the object do not have.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl SourceError {
    /// The class of the failure.
    pub fn category(&self) -> Category {
        match self {
            Self::System { errno, .. } => category_of(*errno),
            Self::NotRegular { .. } => Category::Refused,
            Self::Changed { .. } => Category::SourceChanged,
            Self::Geometry(_) => Category::Geometry,
        }
    }
}

/// How a file differs from what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its size in bytes.
    Size {
        /// When it was first opened.
        before: u64,
        /// Now.
        now: u64,
    },
    /// It is another file at the same path.
    Replaced,
    /// It was written to, or its metadata changed.
    Modified,
    /// There is nothing at its path any more.
    Missing,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Size { before, now } => write!(f, "it had {before} bytes and has {now}"),
            Self::Replaced => f.write_str("another file is in its place"),
            Self::Modified => f.write_str("it was modified"),
            Self::Missing => f.write_str("it is gone"),
        }
    }
}

/// What tells one state of a file from another.
///
/// Times are as fine as the file system keeps them: a write in the same clock tick (milliseconds on
/// Linux) as the first look at the file goes unseen here and is found by the receivers' hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Device and inode number.
    pub inode: (u64, u64),
    /// Bytes.
    pub size: u64,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Last change of content or metadata, which no program can set back.
    pub changed: Timestamp,
}

impl Identity {
    fn new(stat: &Stat) -> Self {
        let timestamp = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
        Self {
            inode: (stat.st_dev, stat.st_ino),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: timestamp(stat.st_mtime, stat.st_mtime_nsec as u32),
            changed: timestamp(stat.st_ctime, stat.st_ctime_nsec as u32),
        }
    }

    /// How `now` differs from `self`.
    fn change(&self, now: &Self) -> Option<Change> {
        if self.inode != now.inode {
            Some(Change::Replaced)
        } else if self.size != now.size {
            Some(Change::Size { before: self.size, now: now.size })
        } else {
            (self != now).then_some(Change::Modified)
        }
    }
}

/// A regular file as it was when it was first opened, or bytes that stand for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    path: PathBuf,
    identity: Identity,
    mode: u32,
    data: Vec<Range<u64>>,
    /// All of it, if it is no file on the disk.
    bytes: Option<Vec<u8>>,
}

impl SourceFile {
    /// Opens the file to see that it can be read, and remembers its identity. No descriptor is
    /// kept. A symbolic link is followed: whoever names a file to be sent means what it leads to.
    ///
    /// # Errors
    /// [`SourceError::NotRegular`] for directories, devices, pipes and sockets, which are not
    /// opened; [`SourceError::System`] for a file that is missing or unreadable.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        Self::open_with(path.into(), AtFlags::empty(), OFlags::empty())
    }

    /// As [`open`](Self::open), but a symbolic link is not followed: it has taken the place of a
    /// file that was found a moment ago.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_found(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        Self::open_with(path.into(), AtFlags::SYMLINK_NOFOLLOW, OFlags::NOFOLLOW)
    }

    fn open_with(path: PathBuf, look: AtFlags, open: OFlags) -> Result<Self, SourceError> {
        // Looked at first, because opening a device may have effects (a tape rewinds).
        let stat = rustix::fs::statat(CWD, &path, look).map_err(failed(&path, "open"))?;
        check_regular(&path, &stat)?;
        let (file, stat) = open_regular(&path, open)?;
        let (identity, mode) = (Identity::new(&stat), stat.st_mode & 0o7777);
        let is_sparse = (stat.st_blocks as u64).saturating_mul(512) < identity.size;
        let data = if is_sparse { data_ranges(&file, identity.size) } else { whole(identity.size) };
        Ok(Self { path, identity, mode, data, bytes: None })
    }

    /// Bytes that are held in memory, as if they were a file; nobody can change them. `name` is for
    /// people.
    fn in_memory(name: &str, bytes: Vec<u8>) -> Self {
        let (size, never) = (bytes.len() as u64, Timestamp { seconds: 0, nanoseconds: 0 });
        let identity = Identity { inode: (0, 0), size, modified: never, changed: never };
        let (path, data) = (PathBuf::from(name), whole(size));
        Self { path, identity, mode: 0, data, bytes: Some(bytes) }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file was.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.identity.size
    }

    /// The ranges that are not holes, ascending. Holes read as zeros; those shorter than 64 KiB,
    /// which are not worth a line in a manifest, count as data.
    pub fn data(&self) -> &[Range<u64>] {
        &self.data
    }

    /// Permission bits (the low twelve of `st_mode`).
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Opens the file again, if it is still the same.
    fn reopen(&self) -> Result<OwnedFd, SourceError> {
        let (file, stat) =
            open_regular(&self.path, OFlags::empty()).map_err(|error| match error {
                SourceError::System { errno: Errno::NOENT, .. } => self.changed(Change::Missing),
                SourceError::NotRegular { .. } => self.changed(Change::Replaced),
                error => error,
            })?;
        self.check(&stat)?;
        Ok(file)
    }

    fn check(&self, stat: &Stat) -> Result<(), SourceError> {
        match self.identity.change(&Identity::new(stat)) {
            Some(what) => Err(self.changed(what)),
            None => Ok(()),
        }
    }

    fn changed(&self, what: Change) -> SourceError {
        SourceError::Changed { path: self.path.clone(), what }
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(Errno) -> SourceError {
        failed(&self.path, doing)
    }
}

/// Opens without waiting for the other end of a pipe that took the file's place.
fn open_regular(path: &Path, more: OFlags) -> Result<(OwnedFd, Stat), SourceError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = sys::retry(|| rustix::fs::openat(CWD, path, flags | more, Mode::empty()))
        .map_err(failed(path, "open"))?;
    let stat = rustix::fs::fstat(&file).map_err(failed(path, "examine"))?;
    check_regular(path, &stat)?;
    Ok((file, stat))
}

/// Shortest hole that is told from data. File systems make holes of their block size, and a program
/// that skips a few blocks would fragment a manifest; 64 KiB are fifty packets.
const LEAST_HOLE: u64 = 64 << 10;

fn whole(size: u64) -> Vec<Range<u64>> {
    (size > 0).then_some(0..size).into_iter().collect()
}

/// What is not a hole. Everything, where the file system does not say.
fn data_ranges(file: &OwnedFd, size: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start.clamp(at, size),
            Err(Errno::NXIO) => size, // nothing but a hole
            Err(_) => return whole(size),
        };
        let end = match rustix::fs::seek(file, SeekFrom::Hole(start)) {
            // An answer that leads nowhere would lead there for ever.
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

/// The files of a session's objects, read by position through a bounded cache of descriptors.
#[derive(Debug)]
pub struct SourceFiles {
    files: Vec<SourceFile>,
    open: OpenFiles<FileIndex>,
}

impl Default for SourceFiles {
    fn default() -> Self {
        Self::new(DEFAULT_OPEN_FILES)
    }
}

impl SourceFiles {
    /// An empty list that keeps at most `open_files` descriptors (at least one).
    pub fn new(open_files: usize) -> Self {
        Self { files: Vec::new(), open: OpenFiles::new(open_files) }
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

    /// Adds bytes at the end of the list: what is sent beside the files. `name` is for people.
    pub fn add_bytes(&mut self, name: &str, bytes: Vec<u8>) -> FileIndex {
        self.push(SourceFile::in_memory(name, bytes))
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

    /// The file of an index.
    ///
    /// # Errors
    /// [`GeometryError::NoSuchFile`].
    pub fn file(&self, file: FileIndex) -> Result<&SourceFile, GeometryError> {
        self.files.get(file.0 as usize).ok_or(GeometryError::NoSuchFile(file))
    }

    /// Fills `out` from byte `offset` of a file.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if the file has become too short, or had to be opened again and is
    /// not what it was; [`SourceError::System`] if it cannot be read. A change that leaves the file
    /// long enough is found by [`SourceFiles::check_unchanged`].
    pub fn read_exact_at(
        &self,
        file: FileIndex,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let source = self.file(file)?;
        let end = offset.checked_add(out.len() as u64).ok_or(GeometryError::Overflow)?;
        if end > source.size() {
            return Err(GeometryError::BeyondFile { file, end, length: source.size() }.into());
        }
        if let Some(bytes) = &source.bytes {
            let part = bytes.get(offset as usize..end as usize).unwrap_or_default();
            // As long as `out`: it ends within the file.
            out.iter_mut().zip(part).for_each(|(out, byte)| *out = *byte);
            return Ok(());
        }
        let open = self.open.get_or_open(file, || source.reopen())?;
        let count = sys::read_full_at(&*open, offset, out).map_err(source.failed("read"))?;
        if count < out.len() {
            let what = Change::Size { before: source.size(), now: offset + count as u64 };
            return Err(source.changed(what));
        }
        Ok(())
    }

    /// Sees that a file is still what it was. Called after reading, it vouches for what was read.
    ///
    /// # Errors
    /// [`SourceError::Changed`] or [`SourceError::System`].
    pub fn check_unchanged(&self, file: FileIndex) -> Result<(), SourceError> {
        let source = self.file(file)?;
        if source.bytes.is_some() {
            return Ok(());
        }
        let open = self.open.get_or_open(file, || source.reopen())?;
        let stat = rustix::fs::fstat(open.as_fd()).map_err(source.failed("examine"))?;
        source.check(&stat)
    }
}
