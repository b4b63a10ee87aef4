//! What is on the disk: which names and bytes a power failure leaves.
//!
//! Files are bytes that are on the disk, and changes that are not synced. A power failure keeps any
//! of the changes of a file, in their order, and parts of writes in units of [`SECTOR`]. Changes of
//! names are kept in their order, as a file system with a journal keeps them: some first ones, and
//! at least those before the last change of a directory that was synced. To sync a file keeps none
//! of its names.

use super::pages::Pages;
use fontana_proto::SplitMix64;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

/// Bytes that a disk writes as a whole or not at all.
const SECTOR: usize = 512;
/// How the names of files of repair symbols end.
const SPOOL: &[u8] = b".repair";

/// A file, directory or link of the host, by its device and inode.
pub(super) type Inode = (u64, u64);

/// The index of a file, directory or link.
pub(super) type Node = usize;

/// The directory at the top.
const ROOT: Node = 0;

/// Names and bytes, those on the disk and those that are not synced.
#[derive(Debug, Default)]
pub(super) struct Media {
    nodes: Vec<Stored>,
    by_inode: BTreeMap<Inode, Node>,
    /// Files of repair symbols.
    spools: BTreeSet<Node>,
    /// Files that have never had a name.
    unnamed: BTreeSet<Node>,
    /// Changes that are not synced, in their order.
    names: Vec<NameChange>,
}

#[derive(Clone, Debug)]
enum Stored {
    File { bytes: Pages, unsynced: Vec<FileChange> },
    Directory(BTreeMap<Vec<u8>, Node>),
    Link(Vec<u8>),
}

/// A change of a file.
#[derive(Clone, Debug)]
pub(super) enum FileChange {
    Write { at: u64, bytes: Vec<u8> },
    Length(u64),
    Punch { at: u64, length: u64 },
}

/// A name in a directory.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) directory: Node,
    pub(super) name: Vec<u8>,
}

#[derive(Clone, Debug)]
struct NameChange {
    /// The name that is gone afterwards.
    removed: Option<Name>,
    /// The name that leads to a node afterwards.
    added: Option<(Name, Node)>,
}

/// What becomes of changes that are not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Lost,
    Kept,
    /// Any of these for each change, or a part of it.
    Mixed,
}

impl Media {
    /// What is in a directory of the host. All of it is on the disk.
    pub(super) fn read(root: &Path) -> Self {
        let mut media = Self::default();
        media.add_directory(root);
        media
    }

    fn add_directory(&mut self, path: &Path) -> Node {
        let node = self.add(inode(path), Stored::Directory(BTreeMap::new()));
        let mut paths: Vec<_> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let child = if kind.is_dir() {
                self.add_directory(&path)
            } else if kind.is_symlink() {
                let leads_to = fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec();
                self.add(inode(&path), Stored::Link(leads_to))
            } else {
                let bytes = Pages::read(&path);
                self.add(inode(&path), Stored::File { bytes, unsynced: Vec::new() })
            };
            let name = path.file_name().unwrap().as_bytes().to_vec();
            self.spools.extend(name.ends_with(SPOOL).then_some(child));
            if let Stored::Directory(names) = &mut self.nodes[node] {
                names.insert(name, child);
            }
        }
        node
    }

    fn add(&mut self, inode: Inode, stored: Stored) -> Node {
        self.nodes.push(stored);
        let node = self.nodes.len() - 1;
        // The host uses the inodes of removed files again.
        self.by_inode.insert(inode, node);
        node
    }

    pub(super) fn node(&self, inode: Inode) -> Node {
        self.by_inode[&inode]
    }

    /// Whether a file has repair symbols.
    pub(super) fn is_spool(&self, node: Node) -> bool {
        self.spools.contains(&node)
    }

    pub(super) fn add_file(&mut self, name: Name, inode: Inode) {
        let node = self.add(inode, Stored::File { bytes: Pages::default(), unsynced: Vec::new() });
        self.spools.extend(name.name.ends_with(SPOOL).then_some(node));
        self.names.push(NameChange { removed: None, added: Some((name, node)) });
    }

    /// A file that no power failure leaves.
    pub(super) fn add_unnamed(&mut self, inode: Inode) {
        let node = self.add(inode, Stored::File { bytes: Pages::default(), unsynced: Vec::new() });
        self.unnamed.insert(node);
    }

    /// Whether a file has never had a name.
    pub(super) fn is_unnamed(&self, node: Node) -> bool {
        self.unnamed.contains(&node)
    }

    pub(super) fn add_empty_directory(&mut self, name: Name, inode: Inode) {
        let node = self.add(inode, Stored::Directory(BTreeMap::new()));
        self.names.push(NameChange { removed: None, added: Some((name, node)) });
    }

    pub(super) fn add_link(&mut self, name: Name, leads_to: Vec<u8>, inode: Inode) {
        let node = self.add(inode, Stored::Link(leads_to));
        self.names.push(NameChange { removed: None, added: Some((name, node)) });
    }

    pub(super) fn remove(&mut self, name: Name) {
        self.names.push(NameChange { removed: Some(name), added: None });
    }

    pub(super) fn rename(&mut self, old: Name, new: Name, node: Node) {
        self.names.push(NameChange { removed: Some(old), added: Some((new, node)) });
    }

    pub(super) fn change(&mut self, node: Node, change: FileChange) {
        if let Stored::File { unsynced, .. } = &mut self.nodes[node] {
            unsynced.push(change);
        }
    }

    pub(super) fn sync_file(&mut self, node: Node) {
        if let Stored::File { bytes, unsynced } = &mut self.nodes[node] {
            unsynced.drain(..).for_each(|change| change.apply(bytes));
        }
    }

    pub(super) fn sync_directory(&mut self, node: Node) {
        let last = self.names.iter().rposition(|change| change.involves(node));
        let synced: Vec<_> = self.names.drain(..last.map_or(0, |last| last + 1)).collect();
        synced.into_iter().for_each(|change| change.apply(&mut self.nodes));
    }

    pub(super) fn sync_all(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.sync_file(node));
        let names = std::mem::take(&mut self.names);
        names.into_iter().for_each(|change| change.apply(&mut self.nodes));
    }

    /// Writes what a power failure leaves to an empty directory of the host.
    pub(super) fn lose_power(self, random: &mut SplitMix64, root: &Path) {
        let fate = match random.below(4) {
            0 => Fate::Lost,
            1 => Fate::Kept,
            _ => Fate::Mixed,
        };
        let Self { mut nodes, names, .. } = self;
        let kept = match fate {
            Fate::Lost => 0,
            Fate::Kept => names.len(),
            Fate::Mixed => random.below(names.len() as u32 + 1) as usize,
        };
        names.into_iter().take(kept).for_each(|change| change.apply(&mut nodes));
        for stored in &mut nodes {
            let Stored::File { bytes, unsynced } = stored else { continue };
            for change in unsynced.drain(..) {
                match (fate, random.below(4)) {
                    (Fate::Lost, _) | (Fate::Mixed, 0) => {}
                    (Fate::Mixed, 1) => change.apply_torn(bytes, random),
                    (Fate::Kept | Fate::Mixed, _) => change.apply(bytes),
                }
            }
        }
        write_directory(&nodes, ROOT, root);
    }
}

fn inode(path: &Path) -> Inode {
    let metadata = fs::symlink_metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

fn write_directory(nodes: &[Stored], directory: Node, path: &Path) {
    let Stored::Directory(names) = &nodes[directory] else { return };
    for (name, &node) in names {
        let path = path.join(std::ffi::OsStr::from_bytes(name));
        match &nodes[node] {
            Stored::File { bytes, .. } => bytes.write_to(&path),
            Stored::Link(leads_to) => {
                symlink(std::ffi::OsStr::from_bytes(leads_to), path).unwrap();
            }
            Stored::Directory(_) => {
                fs::create_dir(&path).unwrap();
                write_directory(nodes, node, &path);
            }
        }
    }
}

impl NameChange {
    fn involves(&self, directory: Node) -> bool {
        let removed = self.removed.iter().map(|name| name.directory);
        let added = self.added.iter().map(|(name, _)| name.directory);
        removed.chain(added).any(|of| of == directory)
    }

    fn apply(self, nodes: &mut [Stored]) {
        if let Some(Name { directory, name }) = self.removed
            && let Stored::Directory(names) = &mut nodes[directory]
        {
            names.remove(&name);
        }
        if let Some((Name { directory, name }, node)) = self.added
            && let Stored::Directory(names) = &mut nodes[directory]
        {
            names.insert(name, node);
        }
    }
}

impl FileChange {
    fn apply(self, file: &mut Pages) {
        match self {
            Self::Write { at, bytes } => file.write(at, &bytes),
            Self::Length(length) => file.set_length(length),
            Self::Punch { at, length } => file.punch(at, length),
        }
    }

    /// Applies some sectors of a write. The file may have the new length in any case.
    fn apply_torn(self, file: &mut Pages, random: &mut SplitMix64) {
        let Self::Write { at, bytes } = self else { return };
        if random.below(2) == 0 {
            file.extend(at + bytes.len() as u64);
        }
        let mut start = 0;
        while start < bytes.len() {
            let in_sector = (at as usize + start) % SECTOR;
            let end = bytes.len().min(start + SECTOR - in_sector);
            if random.below(2) == 0 {
                let at = at + start as u64;
                file.write(at, &bytes[start..end]);
            }
            start = end;
        }
    }
}
