//! Scanning of what is sent: files, and directories with their contents.

use crate::ids::FileIndex;
use crate::ours::is_ours;
use crate::source::{SourceBytes, SourceError, SourceFile, SourceFiles};
use crate::timestamp::Timestamp;
use fontana_proto::Category;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A selection of the files of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// If not empty: only files that match one of these patterns, and the directories they are in.
    pub include: Vec<String>,
    /// Excludes files and directories that match one of these patterns, with their contents.
    pub exclude: Vec<String>,
}

/// The result of a scan, in the order of names: a directory before its contents.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # std::fs::create_dir(dir.path().join("photos"))?;
/// # std::fs::write(dir.path().join("photos/a.jpg"), "a")?;
/// # std::fs::write(dir.path().join("photos/a.tmp"), "a")?;
/// # let path = dir.path().join("photos");
/// use fontana_store::{Filter, Found, Tree};
///
/// let filter = Filter { exclude: vec!["*.tmp".into()], ..Filter::default() };
/// let tree = Tree::scan(&[path], &filter)?;
/// let names: Vec<_> = tree.entries.iter().map(|entry| entry.name.as_slice()).collect();
/// assert_eq!(names, [&b"photos"[..], b"photos/a.jpg"]);
/// assert!(matches!(tree.entries[1].found, Found::File(_)));
/// # Ok(())
/// # }
/// ```
///
/// Receivers see the last component of a path. A directory includes everything in it: regular
/// files, directories (empty ones too) and symbolic links, which are not followed. Names are raw
/// bytes; hidden files are included. What cannot be sent (devices, pipes, sockets, files that this
/// user may not read) is left out, and listed with its error. [Names of our own](is_ours) are
/// skipped.
///
/// Patterns are those of `.gitignore`, by the crate `ignore`. They are relative to each directory
/// that was named. A path that was named itself is always sent.
#[derive(Debug, Default)]
pub struct Tree {
    /// The names of the scanned paths, in the order given.
    pub roots: Vec<Vec<u8>>,
    /// The regular files.
    pub files: SourceFiles,
    /// All entries; the regular files are ascending by index.
    pub entries: Vec<TreeEntry>,
    /// What cannot be sent, in the order in which it was found.
    pub left_out: Vec<LeftOut>,
    /// [Names of our own](is_ours) that were found and skipped.
    pub skipped: u64,
}

/// What is left out of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name that receivers would see. What is below a directory that cannot be read is left out
    /// with it.
    pub name: Vec<u8>,
    /// Why it cannot be sent.
    pub error: SourceError,
}

/// An entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path of the entry, for messages.
    pub path: PathBuf,
    /// The name that receivers see: components with slashes between them.
    pub name: Vec<u8>,
    /// The kind of the entry.
    pub found: Found,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File(FileIndex),
    /// A directory.
    Directory {
        /// Permission bits (the low twelve of `st_mode`).
        mode: u32,
        /// Time of last modification.
        modified: Timestamp,
    },
    /// A symbolic link.
    Link {
        /// The target of the link.
        leads_to: Vec<u8>,
    },
}

/// Why something cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    /// A file or directory that cannot be sent.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A pattern that is invalid.
    #[error("the pattern {pattern:?}: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why it is invalid.
        reason: String,
    },
    /// A path that has no last component: the root of the file system.
    #[error("{path:?} has no name that receivers could know it by")]
    Nameless {
        /// The path.
        path: PathBuf,
    },
}

impl ScanError {
    /// The class of the error; `None` if the request is invalid on any disk.
    pub fn category(&self) -> Option<Category> {
        match self {
            Self::Source(error) => Some(error.category()),
            Self::Pattern { .. } | Self::Nameless { .. } => None,
        }
    }
}

impl Tree {
    /// Scans the paths, and everything below those that are directories. A path that is itself a
    /// symbolic link is followed, because the user named it.
    ///
    /// # Errors
    /// [`ScanError`]: a pattern or a path is invalid, or nothing can be sent. Then it is the error
    /// of what was left out first.
    pub fn scan(paths: &[PathBuf], filter: &Filter) -> Result<Self, ScanError> {
        Scanner { tree: Self::default(), known: None }.scan(paths, filter)
    }

    /// Adds a file whose bytes are in memory, under a name of one component.
    pub fn add_bytes(&mut self, name: Vec<u8>, bytes: SourceBytes) {
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&name));
        let found = Found::File(self.files.add_bytes(&path.to_string_lossy(), bytes));
        self.roots.push(name.clone());
        self.entries.push(TreeEntry { path, name, found });
    }

    /// Scans paths again that were scanned before. Opens only files that have changed since. What
    /// vanishes during the scan is not in the result.
    ///
    /// # Errors
    /// As [`scan`](Self::scan), and that one of the paths cannot be examined: what is below it may
    /// come back.
    pub fn scan_again(&self, paths: &[PathBuf], filter: &Filter) -> Result<Self, ScanError> {
        let known = self.files.as_slice().iter();
        let known = known.map(|file| (file.path().as_os_str().as_bytes(), file)).collect();
        Scanner { tree: Self::default(), known: Some(known) }.scan(paths, filter)
    }

    /// Removes directories without included contents.
    fn leave_out_empty_directories(&mut self, first: usize) {
        let entries = self.entries.split_off(first);
        let mut used = BTreeSet::new();
        for entry in &entries {
            if !matches!(entry.found, Found::Directory { .. }) {
                let parents = std::iter::successors(parent(&entry.name), |name| parent(name));
                used.extend(parents.map(<[u8]>::to_vec));
            }
        }
        let is_used = |entry: &TreeEntry| {
            !matches!(entry.found, Found::Directory { .. }) || used.contains(&entry.name)
        };
        self.entries.extend(entries.into_iter().filter(is_used));
    }
}

/// A scan in progress.
struct Scanner<'k> {
    tree: Tree,
    /// The files of an earlier scan, by their paths, if there was one.
    known: Option<BTreeMap<&'k [u8], &'k SourceFile>>,
}

impl Scanner<'_> {
    fn scan(mut self, paths: &[PathBuf], filter: &Filter) -> Result<Tree, ScanError> {
        for path in paths {
            let name = match name_of(path) {
                Ok(name) => name,
                Err(ScanError::Source(error)) if self.known.is_none() => {
                    let name = path.as_os_str().as_bytes().to_vec();
                    self.tree.left_out.push(LeftOut { name, error });
                    continue;
                }
                Err(error) => return Err(error),
            };
            match self.look_at_root(path, &name, filter) {
                Ok(()) => self.tree.roots.push(name),
                Err(ScanError::Source(error)) if self.known.is_none() => {
                    self.tree.left_out.push(LeftOut { name, error });
                }
                Err(error) => return Err(error),
            }
        }
        match self.tree.left_out.first() {
            Some(LeftOut { error, .. }) if self.tree.entries.is_empty() => {
                Err(error.clone().into())
            }
            _ => Ok(self.tree),
        }
    }

    fn look_at_root(&mut self, path: &Path, name: &[u8], filter: &Filter) -> Result<(), ScanError> {
        let stat = rustix::fs::stat(path).map_err(failed(path, "open"))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return self.walk(path, name, filter);
        }
        let found = Found::File(self.tree.files.add(path)?);
        self.tree.entries.push(TreeEntry { path: path.to_owned(), name: name.to_owned(), found });
        Ok(())
    }

    fn walk(&mut self, root: &Path, name: &[u8], filter: &Filter) -> Result<(), ScanError> {
        let first = self.tree.entries.len();
        let skipped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&skipped);
        // With a slash at its end a link is followed, though links below it are not.
        let walker = WalkBuilder::new(root.join(""))
            .standard_filters(false)
            .follow_links(false)
            .overrides(patterns(root, filter)?)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(move |entry| {
                let is_skipped = entry.depth() > 0 && is_ours(entry.file_name().as_bytes());
                count.fetch_add(u64::from(is_skipped), Ordering::Relaxed);
                !is_skipped
            })
            .build();
        for entry in walker {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let (path, error) = unreadable(root, &error);
                    let below = below(root, name, &path);
                    if self.known.is_some() && below == name {
                        return Err(error.into());
                    }
                    self.leave_out(below, error);
                    continue;
                }
            };
            let name = below(root, name, entry.path());
            match self.look(&entry) {
                Ok(found) => {
                    self.tree.entries.push(TreeEntry { path: entry.into_path(), name, found });
                }
                Err(error) => self.leave_out(name, error),
            }
        }
        self.tree.skipped += skipped.load(Ordering::Relaxed);
        if !filter.include.is_empty() {
            self.tree.leave_out_empty_directories(first);
        }
        Ok(())
    }

    /// What has vanished since an earlier scan is not left out: it is not there.
    fn leave_out(&mut self, name: Vec<u8>, error: SourceError) {
        let has_vanished = matches!(error, SourceError::System { errno: Errno::NOENT, .. });
        if !has_vanished || self.known.is_none() {
            self.tree.left_out.push(LeftOut { name, error });
        }
    }

    fn look(&mut self, entry: &DirEntry) -> Result<Found, SourceError> {
        let path = entry.path();
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_dir()) {
            let stat = rustix::fs::stat(path).map_err(failed(path, "examine"))?;
            return Ok(Found::Directory {
                mode: stat.st_mode & 0o7777,
                modified: Timestamp {
                    seconds: stat.st_mtime,
                    nanoseconds: stat.st_mtime_nsec as u32,
                },
            });
        }
        if kind.is_some_and(|kind| kind.is_symlink()) {
            let target =
                rustix::fs::readlink(path, Vec::new()).map_err(failed(path, "read the link"))?;
            return Ok(Found::Link { leads_to: target.into_bytes() });
        }
        let known = self.known.as_ref();
        match known.and_then(|known| known.get(path.as_os_str().as_bytes())) {
            Some(&known) if known.is_current()? => {
                Ok(Found::File(self.tree.files.add_known(known.clone())))
            }
            _ => Ok(Found::File(self.tree.files.add_found(path)?)),
        }
    }
}

fn parent(name: &[u8]) -> Option<&[u8]> {
    let slash = name.iter().rposition(|&byte| byte == b'/')?;
    name.get(..slash)
}

/// The last component of a path, or of its canonical path if it is `.` or `..`.
fn name_of(path: &Path) -> Result<Vec<u8>, ScanError> {
    let last = |path: &Path| path.file_name().map(|name| name.as_bytes().to_vec());
    if let Some(name) = last(path).filter(|_| !path.as_os_str().as_bytes().ends_with(b"/.")) {
        return Ok(name);
    }
    let resolved = std::fs::canonicalize(path).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        failed(path, "open")(errno)
    })?;
    last(&resolved).ok_or_else(|| ScanError::Nameless { path: path.to_owned() })
}

/// The patterns in the form of the crate `ignore`: there a pattern includes, `!` before it
/// excludes, and the last match counts.
fn patterns(root: &Path, filter: &Filter) -> Result<Override, ScanError> {
    let wrong = |pattern: &str, reason: String| {
        Err(ScanError::Pattern { pattern: pattern.to_owned(), reason })
    };
    let mut builder = OverrideBuilder::new(root);
    let include = filter.include.iter().map(|pattern| (pattern, ""));
    let exclude = filter.exclude.iter().map(|pattern| (pattern, "!"));
    for (pattern, sign) in include.chain(exclude) {
        check_pattern(pattern)?;
        if let Err(error) = builder.add(&format!("{sign}{pattern}")) {
            return wrong(pattern, error.to_string());
        }
    }
    builder.build().or_else(|error| wrong("", error.to_string()))
}

/// Rejects patterns that `.gitignore` treats as a comment or an inverted pattern.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), ScanError> {
    if pattern.trim().is_empty() || pattern.starts_with(['!', '#']) {
        let reason = "it is empty, or begins with ! or #".to_owned();
        return Err(ScanError::Pattern { pattern: pattern.to_owned(), reason });
    }
    Ok(())
}

/// The name at receivers of a path below a root that has the name `name`.
fn below(root: &Path, name: &[u8], path: &Path) -> Vec<u8> {
    let below = path.strip_prefix(root).unwrap_or(Path::new(""));
    let mut name = name.to_owned();
    if !below.as_os_str().is_empty() {
        name.push(b'/');
        name.extend(below.as_os_str().as_bytes());
    }
    name
}

/// What a walk could not read, and why.
fn unreadable(root: &Path, error: &ignore::Error) -> (PathBuf, SourceError) {
    let path = path_of(error).unwrap_or(root);
    let errno = error.io_error().and_then(errno_of).unwrap_or(Errno::IO);
    (path.to_owned(), failed(path, "read the directory")(errno))
}

/// The system's error. The walk wraps it, and the wrapper has no number.
fn errno_of(error: &std::io::Error) -> Option<Errno> {
    let inner = || error.source()?.downcast_ref::<std::io::Error>().and_then(errno_of);
    Errno::from_io_error(error).or_else(inner)
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        _ => None,
    }
}

fn failed(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> SourceError {
    move |errno| SourceError::System { path: path.to_owned(), doing, errno }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_walk_keeps_the_systems_number() {
        let directory = tempfile::tempdir().unwrap();
        let error = WalkBuilder::new(directory.path().join("missing")).build().next();
        let (_, error) = unreadable(directory.path(), &error.unwrap().unwrap_err());
        assert!(matches!(error, SourceError::System { errno: Errno::NOENT, .. }), "{error}");
    }
}
