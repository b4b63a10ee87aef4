//! The rules of a manifest, which parser and constructor check.

use super::{
    CaseClash, Entry, FileEntry, MAX_FILE_LENGTH, Manifest, ManifestError, Metadata, Segment,
    SymlinkEntry,
};
use crate::id::Toi;
use crate::path::RelativePath;
use fontana_fec::Sbn;
use std::collections::BTreeMap;
use std::ops::Range;

const NANOSECONDS_PER_SECOND: u32 = 1_000_000_000;

impl Manifest {
    pub(super) fn check(&self) -> Result<(), ManifestError> {
        if self.label.len() > Self::MAX_LABEL_SIZE {
            return Err(ManifestError::Label);
        }
        self.check_objects()?;
        let mut previous: Option<&Entry> = None;
        for entry in &self.entries {
            if let Some(previous) = previous {
                check_neighbors(previous, entry)?;
            }
            match entry {
                Entry::File(file) => {
                    check_metadata(&file.path, &file.metadata)?;
                    self.check_segments(file)?;
                }
                Entry::Directory(directory) => {
                    check_metadata(&directory.path, &directory.metadata)?;
                }
                Entry::Symlink(link) => check_target(link)?,
            }
            previous = Some(entry);
        }
        self.check_runs()?;
        self.check_unsettled()
    }

    /// Checks that the runs of each object that has some are all of its bytes, and that each lies
    /// in one block.
    pub(super) fn check_runs(&self) -> Result<(), ManifestError> {
        for (&toi, runs) in &self.runs {
            let wrong = || ManifestError::Runs { toi: toi.into() };
            let object = self.object(toi).ok_or_else(wrong)?;
            let layout = object.oti.layout().map_err(|error| ManifestError::Oti { toi, error })?;
            let mut runs = runs.iter();
            for sbn in (0..layout.block_count()).map(Sbn) {
                let Range { start, end } = layout.block_range(sbn).ok_or_else(wrong)?;
                let mut left = end.saturating_sub(start);
                while left > 0 {
                    let length = runs.next().ok_or_else(wrong)?.length;
                    left = left.checked_sub(length).filter(|_| length > 0).ok_or_else(wrong)?;
                }
            }
            if runs.next().is_some() {
                return Err(wrong());
            }
        }
        Ok(())
    }

    /// Checks that unsettled names ascend, and that none is the path of an entry.
    pub(super) fn check_unsettled(&self) -> Result<(), ManifestError> {
        let mut previous = None;
        for path in &self.unsettled {
            let is_entry = self.entries.binary_search_by(|entry| entry.path().cmp(path)).is_ok();
            if is_entry || previous >= Some(path) {
                return Err(ManifestError::Order { path: path.clone() });
            }
            previous = Some(path);
        }
        Ok(())
    }

    fn check_objects(&self) -> Result<(), ManifestError> {
        let mut previous = 0;
        for object in &self.objects {
            let toi = object.toi;
            if toi <= previous || !Toi::from(toi).is_content() {
                return Err(ManifestError::Toi(toi.into()));
            }
            previous = toi;
            let layout = object.oti.layout().map_err(|error| ManifestError::Oti { toi, error })?;
            let (expected, actual) = (layout.block_count(), object.block_hashes.len());
            if expected as usize != actual {
                return Err(ManifestError::BlockHashes { toi, expected, actual });
            }
        }
        Ok(())
    }

    fn check_segments(&self, file: &FileEntry) -> Result<(), ManifestError> {
        let mut length = 0_u64;
        let mut previous = None;
        for (index, &segment) in file.segments.iter().enumerate() {
            let wrong = |reason| {
                Err(ManifestError::Segment { path: file.path.clone(), segment: index, reason })
            };
            if segment.length() == 0 {
                return wrong("is empty");
            }
            length = match length.checked_add(segment.length()) {
                Some(length) if length <= MAX_FILE_LENGTH => length,
                _ => return wrong("makes the file too long"),
            };
            if let Segment::Extent { toi, object_offset, length } = segment {
                let Some(object) = self.object(toi) else {
                    return wrong("is of an object that the manifest does not list");
                };
                let end = object_offset.checked_add(length);
                if end.is_none_or(|end| end > object.oti.transfer_length) {
                    return wrong("reaches beyond its object");
                }
            }
            // Two segments that can be joined would give the same file a second encoding.
            if previous.is_some_and(|previous| continues(previous, segment)) {
                return wrong("continues the one before it");
            }
            previous = Some(segment);
        }
        Ok(())
    }

    /// Two names of this manifest that a case-insensitive file system may treat as one; `None` if
    /// there are none. Each path ends with the component that clashes.
    ///
    /// Names are compared in Unicode's lower case, and bytes that are not UTF-8 in that of ASCII.
    /// Normalization forms are not considered.
    pub fn case_clash(&self) -> Option<CaseClash> {
        // The tree of a case-insensitive file system: (directory, folded name) leads to the number
        // of the entry as a directory, and to the path that created it.
        let mut tree: BTreeMap<(usize, Vec<u8>), (usize, &RelativePath)> = BTreeMap::new();
        for entry in &self.entries {
            let path = entry.path();
            let mut directory = 0;
            for (depth, component) in path.components().enumerate() {
                let number = tree.len().saturating_add(1);
                let slot = tree.entry((directory, fold(component))).or_insert((number, path));
                if slot.1.components().nth(depth) != Some(component) {
                    let (first, second) = (upper_part(slot.1, depth)?, upper_part(path, depth)?);
                    return Some(CaseClash { first, second });
                }
                directory = slot.0;
            }
        }
        None
    }
}

/// The first `depth + 1` components of a path.
fn upper_part(path: &RelativePath, depth: usize) -> Option<RelativePath> {
    RelativePath::from_components(path.components().take(depth.saturating_add(1))).ok()
}

fn fold(component: &[u8]) -> Vec<u8> {
    match str::from_utf8(component) {
        Ok(text) => text.to_lowercase().into_bytes(),
        Err(_) => component.to_ascii_lowercase(),
    }
}

/// Checks an entry against its predecessor. In the order of paths, everything below an entry
/// directly follows it, so comparing neighbors is enough.
fn check_neighbors(previous: &Entry, entry: &Entry) -> Result<(), ManifestError> {
    let path = entry.path();
    if previous.path() >= path {
        return Err(ManifestError::Order { path: path.clone() });
    }
    if !matches!(previous, Entry::Directory(_)) && path.is_below(previous.path()) {
        let parent = previous.path().clone();
        return Err(ManifestError::NotADirectory { path: path.clone(), parent });
    }
    Ok(())
}

pub(super) fn check_metadata(
    path: &RelativePath,
    metadata: &Metadata,
) -> Result<(), ManifestError> {
    if metadata.mode > Metadata::MAX_MODE || metadata.mtime_nanoseconds >= NANOSECONDS_PER_SECOND {
        return Err(ManifestError::Metadata { path: path.clone(), metadata: *metadata });
    }
    Ok(())
}

fn check_target(link: &SymlinkEntry) -> Result<(), ManifestError> {
    let size = link.target.len();
    if size == 0 || size > SymlinkEntry::MAX_TARGET_SIZE || link.target.contains(&0) {
        return Err(ManifestError::Target { path: link.path.clone() });
    }
    Ok(())
}

/// True if `next` begins where `previous` ends, in the same object or as part of the same hole.
fn continues(previous: Segment, next: Segment) -> bool {
    match (previous, next) {
        (Segment::Hole { .. }, Segment::Hole { .. }) => true,
        (
            Segment::Extent { toi, object_offset, length },
            Segment::Extent { toi: next_toi, object_offset: next_offset, .. },
        ) => toi == next_toi && object_offset.checked_add(length) == Some(next_offset),
        _ => false,
    }
}
