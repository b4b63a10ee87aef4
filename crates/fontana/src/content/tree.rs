//! The files, directories and links to send, under their names at receivers.

use super::ContentOptions;
use crate::error::{Error, SetupError};
use fontana_store::{FileIndex, Found, SourceFile, SourceFiles, Tree, TreeEntry};
use fontana_wire::{
    DirectoryEntry, Entry, FileEntry, ManifestLimits, Metadata, RelativePath, SymlinkEntry,
};
use std::collections::{BTreeMap, BTreeSet};

/// The result of a scan.
pub(super) struct Scanned {
    /// The names of the given paths, in their order.
    pub(super) roots: Vec<Vec<u8>>,
    pub(super) sources: SourceFiles,
    /// The regular files, ascending by index.
    pub(super) files: Vec<(RelativePath, FileIndex)>,
    /// Directories and symbolic links; none for plain FLUTE and FCAST, which cannot describe them.
    pub(super) others: Vec<Entry>,
    /// Why others cannot be sent.
    pub(super) left_out: Vec<Error>,
    /// Names of our own that were skipped.
    pub(super) skipped: u64,
    /// What the format cannot describe.
    pub(super) undescribed: Undescribed,
}

/// What plain FLUTE and FCAST cannot describe, and do not send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undescribed {
    /// Symbolic links.
    pub links: u64,
    /// Directories without a file in them or below.
    pub empty_directories: u64,
}

impl Undescribed {
    /// What is left out beside these files.
    fn of(files: &[(RelativePath, FileIndex)], others: &[Entry]) -> Self {
        let mut with_files = BTreeSet::new();
        for (path, _) in files {
            let components: Vec<_> = path.components().collect();
            let above = (1..components.len()).filter_map(|length| components.get(..length));
            with_files.extend(above.map(<[_]>::to_vec));
        }
        let mut undescribed = Self::default();
        for entry in others {
            match entry {
                Entry::Symlink(_) => undescribed.links += 1,
                Entry::Directory(directory) => {
                    let is_empty =
                        !with_files.contains(&directory.path.components().collect::<Vec<_>>());
                    undescribed.empty_directories += u64::from(is_empty);
                }
                Entry::File(_) => {}
            }
        }
        undescribed
    }
}

/// Scans the given paths. Reads no file.
pub(super) fn scan(options: &ContentOptions<'_>) -> Result<Scanned, Error> {
    let mut tree = match options.files {
        [] if !options.in_memory.is_empty() => Tree::default(),
        files => Tree::scan(files, options.filter)?,
    };
    for (name, bytes) in options.in_memory {
        tree.add_bytes(name.clone(), bytes.clone());
    }
    describe(options, tree)
}

/// Names and describes what a scan has found.
pub(super) fn describe(options: &ContentOptions<'_>, tree: Tree) -> Result<Scanned, Error> {
    let Tree { mut roots, files: sources, mut entries, left_out, skipped } = tree;
    let mut left_out: Vec<Error> = left_out.into_iter().map(|item| item.error.into()).collect();
    if let Some(name) = options.name {
        rename(name, &mut roots, &mut entries)?;
    }
    let limit = ManifestLimits::default().entries;
    if entries.len() > limit {
        return Err(SetupError::Range {
            what: "the number of files and directories",
            actual: entries.len() as u64,
            allowed: "at most a million: send them in several sessions, or in an archive",
        }
        .into());
    }
    let (mut files, mut others) = (Vec::new(), Vec::new());
    let mut names = BTreeMap::new();
    for entry in entries {
        let path = match RelativePath::new(&entry.name) {
            Ok(path) => path,
            Err(error) => {
                let name = fontana_wire::Printable(&entry.name).to_string();
                left_out.push(SetupError::Name { name, error }.into());
                continue;
            }
        };
        if let Some(first) = names.insert(path.clone(), entry.path.clone()) {
            return Err(SetupError::SameName { first, second: entry.path }.into());
        }
        match entry.found {
            Found::File(index) => files.push((path, index)),
            Found::Directory { mode, modified } => {
                let metadata = Metadata {
                    mode: mode & Metadata::MAX_MODE,
                    mtime_seconds: modified.seconds,
                    mtime_nanoseconds: modified.nanoseconds,
                };
                others.push(Entry::Directory(DirectoryEntry { path, metadata }));
            }
            Found::Link { leads_to: target } => {
                others.push(Entry::Symlink(SymlinkEntry { path, target }));
            }
        }
    }
    let undescribed = match options.plain {
        true => Undescribed::of(&files, &std::mem::take(&mut others)),
        false => Undescribed::default(),
    };
    Ok(Scanned { roots, sources, files, others, left_out, skipped, undescribed })
}

/// Renames the only file that was given.
fn rename(name: &[u8], roots: &mut [Vec<u8>], entries: &mut [TreeEntry]) -> Result<(), Error> {
    match (roots, entries) {
        ([root], [TreeEntry { name: old, found: Found::File(_), .. }]) => {
            (*root, *old) = (name.to_vec(), name.to_vec());
            Ok(())
        }
        (_, entries) => Err(SetupError::Range {
            what: "the number of files and directories with a name of their own",
            actual: entries.len() as u64,
            allowed: "1, and a file",
        }
        .into()),
    }
}

/// A file that no object contains bytes of yet.
pub(super) fn file_entry(path: RelativePath, source: &SourceFile) -> FileEntry {
    let modified = source.identity().modified;
    let metadata = Metadata {
        mode: source.mode() & Metadata::MAX_MODE,
        mtime_seconds: modified.seconds,
        mtime_nanoseconds: modified.nanoseconds,
    };
    FileEntry { path, metadata, segments: Vec::new() }
}
