//! Content that a manifest already describes. A restarted sender, or a mirror, sends symbols of the
//! same objects. The manifest determines the content, and the files must match it.

use super::hashing::hash_blocks;
use super::table::objects_of;
use super::{Content, ContentObject, ContentOptions, tree};
use crate::error::{Error, SetupError};
use fontana_proto::ControlError;
use fontana_store::{
    Extent, Extents, FileIndex, ObjectSource, SourceError, SourceFile, SourceFiles,
};
use fontana_wire::{
    Entry, FileEntry, Manifest, ManifestObject, PlacedSegment, RelativePath, Segment, Toi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

impl Content {
    /// The content of `manifest`, in these files. A file with the manifest's size and modification
    /// time is taken to be the same, and its blocks are compared while they are sent; other files
    /// are read. Modes, and times of directories, may differ.
    ///
    /// # Errors
    /// [`SetupError::Differs`] with the first file that differs from the manifest.
    pub(crate) fn of_manifest(
        options: &ContentOptions<'_>,
        manifest: &Manifest,
    ) -> Result<Self, Error> {
        let tree::Scanned { sources, files, others, mut left_out, skipped, .. } =
            tree::scan(options)?;
        let sources = if options.verifies { sources.allowing_growth() } else { sources };
        let others = others.into_iter().map(|entry| (entry.path().clone(), Named::Other(entry)));
        let names = files.into_iter().map(|(path, index)| (path, Named::File(index)));
        let mut names = names.chain(others).collect();
        let found = match_entries(manifest, &sources, &mut names)?;
        // What the manifest lacks has come later.
        left_out.extend(names.keys().map(|name| differs(name, "there is no such name in it")));
        let objects = objects(manifest.objects(), &Arc::new(sources), &found)?;
        let read = check_hashes(manifest, &objects, &found, options.workers)?;
        let left_out = left_out.into_iter().map(Arc::new).collect();
        let content = Self { left_out, skipped, ..Self::new(manifest.clone(), objects) };
        Ok(content.verified(|toi| !read.contains(&(toi.0 as u32))))
    }
}

impl Content {
    /// The content of `manifest` in a directory into which all of it was received. Files are not
    /// read: their lengths and times are those that the receiver has given them.
    ///
    /// # Errors
    /// [`SetupError::Differs`] with the first file that is missing, or has another length or time.
    pub(crate) fn of_directory(manifest: &Manifest, directory: &Path) -> Result<Self, Error> {
        let (mut sources, mut found) = (SourceFiles::default(), Vec::new());
        for entry in manifest.files() {
            found.push(find_received(entry, directory, &mut sources)?);
        }
        let objects = objects(manifest.objects(), &Arc::new(sources), &found)?;
        Ok(Self::new(manifest.clone(), objects))
    }
}

impl Content {
    /// Reads bytes of one file, otherwise as [`of_directory`](Self::of_directory).
    ///
    /// # Errors
    /// [`SetupError::Differs`] as there, and those of reading.
    #[cfg(feature = "serve")]
    pub(crate) fn read_received(
        entry: &FileEntry,
        directory: &Path,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let mut sources = SourceFiles::default();
        let index = find_received(entry, directory, &mut sources)?.index;
        sources.read_exact_at(index, offset, out)?;
        Ok(sources.check_unchanged(index)?)
    }

    /// As [`of_directory`](Self::of_directory), one object.
    ///
    /// # Errors
    /// [`SetupError::Differs`] as there, of the files that the object has bytes of.
    pub(crate) fn object_of_directory(
        manifest: &Manifest,
        directory: &Path,
        toi: Toi,
    ) -> Result<Arc<ObjectSource>, Error> {
        let number = toi.0 as u32;
        let (mut sources, mut found) = (SourceFiles::default(), Vec::new());
        for entry in manifest.files().filter(|entry| objects_of(entry).contains(&number)) {
            found.push(find_received(entry, directory, &mut sources)?);
        }
        let only = manifest.objects().iter().filter(|object| object.toi == number);
        let objects = objects(only, &Arc::new(sources), &found)?;
        let object = objects.into_iter().next();
        object.map(|object| object.source).ok_or_else(|| {
            let name = format!("object {number}");
            SetupError::Differs { name, what: "the manifest has none".into() }.into()
        })
    }
}

/// Finds a file in a directory into which it was received.
fn find_received<'a>(
    entry: &'a FileEntry,
    directory: &Path,
    sources: &mut SourceFiles,
) -> Result<Found<'a>, Error> {
    let path = directory.join(OsStr::from_bytes(entry.path.as_bytes()));
    let index = sources.add_found(path)?;
    let file = match_file(entry, index, sources)?;
    if file.doubtful {
        return Err(differs(&entry.path, "it was written to since it was received"));
    }
    Ok(file)
}

/// What has a name in the file system.
enum Named {
    File(FileIndex),
    /// A directory or a link.
    Other(Entry),
}

/// A file of the manifest, and its source.
struct Found<'a> {
    entry: &'a FileEntry,
    index: FileIndex,
    /// Its time differs: it was written since the manifest was made, or is a copy with a new time.
    doubtful: bool,
}

/// Finds everything that the manifest names among the files to send, and takes it from `names`.
fn match_entries<'a>(
    manifest: &'a Manifest,
    sources: &SourceFiles,
    names: &mut BTreeMap<RelativePath, Named>,
) -> Result<Vec<Found<'a>>, Error> {
    let mut found = Vec::new();
    for entry in manifest.entries() {
        let name = entry.path();
        match (entry, names.remove(name)) {
            (Entry::File(file), Some(Named::File(index))) => {
                found.push(match_file(file, index, sources)?);
            }
            (Entry::Directory(_), Some(Named::Other(Entry::Directory(_)))) => {}
            (Entry::Symlink(link), Some(Named::Other(Entry::Symlink(now)))) => {
                if link.target != now.target {
                    return Err(differs(name, "it leads elsewhere"));
                }
            }
            (_, None) => return Err(differs(name, "it is not among the files to be sent")),
            (_, Some(_)) => return Err(differs(name, "it is something else than it was")),
        }
    }
    Ok(found)
}

fn match_file<'a>(
    entry: &'a FileEntry,
    index: FileIndex,
    sources: &SourceFiles,
) -> Result<Found<'a>, Error> {
    let source = sources.file(index).map_err(SourceError::from)?;
    if source.size() != entry.length() {
        let what = format!("it has {} bytes instead of {}", source.size(), entry.length());
        return Err(differs(&entry.path, what));
    }
    // The time of a device says nothing of its contents.
    let doubtful = source.is_device() || !has_time_of(source, entry);
    if doubtful {
        check_holes(entry, index, sources)?;
    }
    Ok(Found { entry, index, doubtful })
}

fn has_time_of(source: &SourceFile, file: &FileEntry) -> bool {
    let modified = source.identity().modified;
    (modified.seconds, modified.nanoseconds)
        == (file.metadata.mtime_seconds, file.metadata.mtime_nanoseconds)
}

/// Checks that a hole of the manifest contains zeros: no object and no hash covers it.
fn check_holes(file: &FileEntry, index: FileIndex, sources: &SourceFiles) -> Result<(), Error> {
    let mut chunk = vec![0; 1 << 16];
    for range in file.holes() {
        for offset in range.clone().step_by(chunk.len()) {
            let length = chunk.len().min((range.end - offset) as usize);
            let part = chunk.get_mut(..length).unwrap_or_default();
            sources.read_exact_at(index, offset, part)?;
            if part.iter().any(|&byte| byte != 0) {
                return Err(differs(&file.path, OTHER_BYTES));
            }
        }
    }
    Ok(())
}

/// These objects of a manifest, in their order, from the files that were found.
fn objects<'m>(
    described: impl IntoIterator<Item = &'m ManifestObject>,
    sources: &Arc<SourceFiles>,
    found: &[Found<'_>],
) -> Result<Vec<ContentObject>, Error> {
    let mut parts: BTreeMap<u32, Vec<(u64, Extent)>> = BTreeMap::new();
    for Found { entry, index, .. } in found {
        for PlacedSegment { range, segment } in entry.placed_segments() {
            if let Segment::Extent { toi, object_offset, length } = segment {
                let extent = Extent { file: *index, offset: range.start, length };
                parts.entry(toi).or_default().push((object_offset, extent));
            }
        }
    }
    let mut objects = Vec::new();
    for object in described {
        let mut parts = parts.remove(&object.toi).unwrap_or_default();
        parts.sort_by_key(|(offset, _)| *offset);
        let mut end = 0;
        let is_next = |(offset, extent): &(u64, Extent)| {
            let follows = *offset == end;
            end = offset.saturating_add(extent.length);
            follows
        };
        if !parts.iter().all(is_next) || end != object.oti.transfer_length {
            let name = format!("object {}", object.toi);
            return Err(
                SetupError::Differs { name, what: "it is not made of these files".into() }.into()
            );
        }
        let layout = object.oti.layout().map_err(ControlError::from)?;
        let extents =
            Extents::new(parts.into_iter().map(|(_, extent)| extent)).map_err(SourceError::from)?;
        let source =
            ObjectSource::new(Arc::clone(sources), layout, extents).map_err(SourceError::from)?;
        objects.push(ContentObject { toi: Toi::from(object.toi), source: Arc::new(source) });
    }
    Ok(objects)
}

/// Hashes the objects that contain bytes of files with other times. Returns their TOIs.
fn check_hashes(
    manifest: &Manifest,
    objects: &[ContentObject],
    found: &[Found<'_>],
    workers: usize,
) -> Result<BTreeSet<u32>, Error> {
    let mut doubtful: BTreeMap<u32, Vec<&FileEntry>> = BTreeMap::new();
    for Found { entry, .. } in found.iter().filter(|found| found.doubtful) {
        for toi in objects_of(entry) {
            doubtful.entry(toi).or_default().push(entry);
        }
    }
    let in_doubt = |object: &&ContentObject| doubtful.contains_key(&(object.toi.0 as u32));
    let objects = objects.iter().filter(in_doubt).map(|object| &*object.source);
    let hashes = hash_blocks(objects, workers, |_| false)?.complete()?;
    let read = doubtful.keys().copied().collect();
    // Both are in the order of TOIs.
    for ((toi, files), actual) in doubtful.into_iter().zip(hashes) {
        if manifest.object(toi).is_some_and(|object| object.block_hashes == actual) {
            continue;
        }
        return Err(match files[..] {
            [file] => differs(&file.path, OTHER_BYTES),
            [first, ..] => {
                let others = files.len() - 1;
                let what = format!("its bytes are others, or those of {others} files beside it");
                differs(&first.path, what)
            }
            [] => continue,
        });
    }
    Ok(read)
}

const OTHER_BYTES: &str = "its bytes are others";

fn differs(name: &RelativePath, what: impl Into<String>) -> Error {
    SetupError::Differs { name: name.to_string(), what: what.into() }.into()
}
