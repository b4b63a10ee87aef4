//! The versions of a publisher's files: which objects of the version before a version has, and
//! which blocks the receivers of that version lack.
//!
//! An object whose files are all unchanged stays as it is, with its number and its hashes. Only new
//! and changed files are read. If a file of a bundle has changed or vanished, the others are
//! bundled again; [`bundles`](super::bundles) limits the number of bundles.

use super::bundles::{self, Bundle};
use super::hashing::hash_objects;
use super::objects::{data_of, fragments, segments};
use super::tree::{self, Scanned};
use super::verifier::BlockVerifier;
use super::{Content, ContentObject, ContentOptions, label, of_objects, unsuitable};
use crate::error::Error;
use crate::geometry::Code;
use fontana_fec::{Oti, Sbn};
use fontana_proto::BlockId;
use fontana_store::{
    Change, Extent, Extents, FileIndex, Identity, ObjectSource, SourceError, SourceFile,
    SourceFiles, Tree,
};
use fontana_wire::{
    Entry as ManifestEntry, FileRun, Hash, Manifest, ManifestObject, RelativePath, Toi, object_hash,
};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// What the next version needs of a version.
pub(crate) struct VersionBase {
    geometry: Geometry,
    /// The files, by their names at receivers.
    names: BTreeMap<RelativePath, FileIndex>,
    sources: Arc<SourceFiles>,
    objects: Vec<VersionObject>,
    /// Hashes of the data of the files that share objects: the hash of a block does not tell which
    /// of its files has changed.
    shared: BTreeMap<FileIndex, blake3::Hash>,
}

/// What a version consists of.
pub(crate) struct VersionFiles {
    pub(crate) tree: Tree,
    /// The names among the files of `tree` that are in the state of the version before, and have
    /// grown since.
    pub(crate) held: Vec<RelativePath>,
    /// Names that exist as well, but are not in this version.
    pub(crate) unsettled: Vec<RelativePath>,
}

/// A file that cannot be read.
pub(crate) struct LostFile {
    pub(crate) name: RelativePath,
    /// Its state.
    pub(crate) identity: Identity,
    pub(crate) error: SourceError,
}

/// Objects of versions with different geometries are different.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Geometry {
    code: Code,
    symbol_size: u16,
    block_symbols: u32,
}

struct VersionObject {
    toi: Toi,
    verifier: Arc<BlockVerifier>,
    runs: Arc<[FileRun]>,
}

impl VersionObject {
    fn extents(&self) -> &[Extent] {
        self.verifier.source().extents().as_slice()
    }

    fn oti(&self) -> Oti {
        self.verifier.source().layout().oti()
    }

    fn blocks(&self) -> impl Iterator<Item = (Sbn, Range<u64>)> {
        let layout = *self.verifier.source().layout();
        let block = move |sbn| Some((Sbn(sbn), layout.block_range(Sbn(sbn))?));
        (0..layout.block_count()).filter_map(block)
    }

    /// The blocks that contain bytes of a file for which `is_of` is true.
    fn blocks_of(&self, is_of: impl Fn(FileIndex) -> bool) -> impl Iterator<Item = Sbn> {
        let (mut ranges, mut at) = (Vec::new(), 0);
        for extent in self.extents() {
            if is_of(extent.file) {
                ranges.push(at..at + extent.length);
            }
            at += extent.length;
        }
        let overlaps = move |block: &Range<u64>| {
            ranges.iter().any(|range| range.start < block.end && block.start < range.end)
        };
        self.blocks().filter(move |(_, block)| overlaps(block)).map(|(sbn, _)| sbn)
    }
}

impl VersionBase {
    /// The file of this name, in the state that the version contains.
    pub(crate) fn file(&self, name: &RelativePath) -> Option<&SourceFile> {
        self.sources.file(*self.names.get(name)?).ok()
    }

    /// Checks that a file still has the bytes that the version contains, perhaps followed by
    /// others. Reads them if it was written to.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if not; that it cannot be read.
    pub(crate) fn verify(&self, name: &RelativePath) -> Result<(), SourceError> {
        let Some(&file) = self.names.get(name) else { return Ok(()) };
        if let Some(before) = self.shared.get(&file) {
            return match file_hash(&self.sources, file)? == *before {
                true => Ok(()),
                false => Err(SourceError::Changed {
                    path: self.sources.file(file)?.path().to_owned(),
                    what: Change::Modified,
                }),
            };
        }
        for object in &self.objects {
            for sbn in object.blocks_of(|of| of == file) {
                object.verifier.verify_now(sbn)?;
            }
        }
        Ok(())
    }
}

impl Content {
    /// The content of a version after `base`. Files that cannot be read are added to `lost`, and
    /// are an error.
    pub(crate) fn version(
        options: &ContentOptions<'_>,
        VersionFiles { tree, held, unsettled }: VersionFiles,
        base: Option<&VersionBase>,
        lost: &mut Vec<LostFile>,
    ) -> Result<(Self, VersionBase), Error> {
        let Scanned { roots, sources, files, others, left_out, skipped, .. } =
            tree::describe(options, tree)?;
        let sources = Arc::new(sources.allowing_growth());
        let geometry = Geometry {
            code: options.code,
            symbol_size: options.symbol_size,
            block_symbols: options.block_symbols,
        };
        let base = base.filter(|base| base.geometry == geometry);
        let names: BTreeMap<_, _> = files.iter().cloned().collect();
        let unchanged = Unchanged::of(base, &names, &sources)?;
        let planned = plan(options, &sources, base, &unchanged)?;
        let held_files: BTreeSet<_> = held.iter().filter_map(|name| names.get(name)).collect();
        // What was read of a held file is verified at the end.
        let may_change = |file: FileIndex| held_files.contains(&file);
        let mut failures = BTreeMap::new();
        let numbered = number(planned, base, options.workers, may_change, &mut failures);
        let name_of = |(path, index): (&RelativePath, &FileIndex)| {
            let (name, error) = (path.clone(), failures.remove(index)?);
            let identity = sources.file(*index).ok()?.identity();
            Some(LostFile { name, identity, error })
        };
        lost.extend(names.iter().filter_map(name_of));
        let (objects, new) = numbered?;
        let shared = shared(&sources, &objects, base, &unchanged)?;
        for name in &held {
            base.map_or(Ok(()), |base| base.verify(name))?;
        }
        let first = base.map(|base| {
            let new = objects.iter().filter(|object| new.contains(&object.toi));
            let paths: BTreeMap<_, _> = names.iter().map(|(path, &file)| (file, path)).collect();
            new.flat_map(|object| lacking(object, base, &unchanged, &paths)).collect()
        });
        let content: Vec<_> = objects.iter().map(VersionObject::content).collect();
        let mut segments = segments(&sources, &content)?;
        let mut entries = others;
        for (path, index) in files {
            let mut file = tree::file_entry(path, sources.file(index).map_err(SourceError::from)?);
            file.segments = segments.remove(&index).unwrap_or_default();
            entries.push(ManifestEntry::File(file));
        }
        let described = objects.iter().map(|object| ManifestObject {
            toi: object.toi.0 as u32,
            oti: object.oti(),
            block_hashes: object.verifier.hashes().to_vec(),
        });
        let manifest = Manifest::new(options.version, label(&roots), described.collect(), entries)
            .and_then(|manifest| {
                manifest.with_runs(of_objects(objects.iter().map(|o| (o.toi, o.runs.to_vec()))))
            })
            .and_then(|manifest| manifest.with_unsettled(unsettled))
            .map_err(unsuitable)?;
        let verifiers = objects.iter().map(|o| (o.toi, Arc::clone(&o.verifier))).collect();
        let left_out = left_out.into_iter().map(Arc::new).collect();
        let content = Self { first, verifiers, left_out, skipped, ..Self::new(manifest, content) };
        Ok((content, VersionBase { geometry, names, sources, objects, shared }))
    }
}

impl VersionObject {
    fn content(&self) -> ContentObject {
        ContentObject { toi: self.toi, source: Arc::clone(self.verifier.source()) }
    }
}

/// The files that are the same as in the version before.
#[derive(Default)]
struct Unchanged {
    /// Their present indices, by those of the version before.
    now: BTreeMap<FileIndex, FileIndex>,
    /// Their present indices.
    files: BTreeSet<FileIndex>,
}

impl Unchanged {
    fn of(
        base: Option<&VersionBase>,
        names: &BTreeMap<RelativePath, FileIndex>,
        sources: &SourceFiles,
    ) -> Result<Self, Error> {
        let mut unchanged = Self::default();
        let Some(base) = base else { return Ok(unchanged) };
        for (name, &old) in &base.names {
            let Some(&new) = names.get(name) else { continue };
            let before = base.sources.file(old).map_err(SourceError::from)?;
            let now = sources.file(new).map_err(SourceError::from)?;
            if before.identity() == now.identity() && before.data() == now.data() {
                unchanged.now.insert(old, new);
                unchanged.files.insert(new);
            }
        }
        Ok(unchanged)
    }
}

/// An object of a version that is being made.
struct Planned {
    source: Arc<ObjectSource>,
    /// The index of the object of the version before that it is.
    carried: Option<usize>,
}

/// Cuts files into objects, and carries over those of the version before.
fn plan(
    options: &ContentOptions<'_>,
    sources: &Arc<SourceFiles>,
    base: Option<&VersionBase>,
    unchanged: &Unchanged,
) -> Result<Vec<Planned>, Error> {
    let before = base.map_or(&[][..], |base| &base.objects);
    // The extents in the files of this version; none for an object that is dissolved.
    let carried = carried(before, unchanged);
    let mut objects_of: BTreeMap<FileIndex, usize> = BTreeMap::new();
    for extents in carried.iter().flatten() {
        let files: BTreeSet<_> = extents.iter().map(|extent| extent.file).collect();
        files.into_iter().for_each(|file| *objects_of.entry(file).or_default() += 1);
    }
    let block = u64::from(options.block_symbols) * u64::from(options.symbol_size);
    let (mut runs, mut bundles) = (Vec::new(), Vec::new());
    let (mut fresh, mut loose) = (Vec::new(), Vec::new());
    let mut is_small = BTreeMap::new();
    for (index, file) in (0..).map(FileIndex).zip(sources.as_slice()) {
        let data = data_of(options, index, file);
        let length = bundles::length(&data);
        is_small.insert(index, length < block);
        if length == 0 || objects_of.contains_key(&index) {
            continue;
        } else if length >= block {
            runs.push((data, None));
        } else if unchanged.files.contains(&index) {
            loose.push(data);
        } else {
            fresh.push(data);
        }
    }
    for (index, extents) in carried.into_iter().enumerate() {
        let Some(extents) = extents else { continue };
        // A file in several objects is not moved.
        let is_bundled = |extent: &Extent| {
            objects_of.get(&extent.file) == Some(&1) && is_small.get(&extent.file) == Some(&true)
        };
        if extents.iter().all(is_bundled) {
            let files = extents.chunk_by(|a, b| a.file == b.file).map(<[Extent]>::to_vec);
            bundles.push(Bundle { files: files.collect(), carried: Some(index) });
        } else {
            runs.push((extents, Some(index)));
        }
    }
    bundles.extend(bundles::split(loose));
    bundles.extend(bundles::split(fresh));
    let bundles = bundles::merge(bundles).into_iter();
    runs.extend(bundles.map(|bundle| (bundle.files.concat(), bundle.carried)));
    let mut planned = Vec::new();
    for (run, carried) in runs {
        let Some(old) = carried.and_then(|index| before.get(index)) else {
            let new = fragments(options, sources, &run)?.into_iter();
            planned.extend(new.map(|source| Planned { source: Arc::new(source), carried: None }));
            continue;
        };
        let layout = *old.verifier.source().layout();
        let extents = Extents::new(run).map_err(SourceError::from)?;
        let source =
            ObjectSource::new(Arc::clone(sources), layout, extents).map_err(SourceError::from)?;
        planned.push(Planned { source: Arc::new(source), carried });
    }
    Ok(planned)
}

/// The extents, in the files of this version, of each object that stays as it is. All bytes of a
/// file are in objects that stay, or none.
fn carried(before: &[VersionObject], unchanged: &Unchanged) -> Vec<Option<Vec<Extent>>> {
    let stays = |extent: &Extent| unchanged.now.contains_key(&extent.file);
    let mut stay: Vec<bool> = before.iter().map(|o| o.extents().iter().all(stays)).collect();
    loop {
        let leaving = before.iter().zip(&stay).filter(|(_, stays)| !**stays);
        let torn: BTreeSet<_> =
            leaving.flat_map(|(object, _)| object.extents()).map(|extent| extent.file).collect();
        let mut is_changed = false;
        for (object, stays) in before.iter().zip(&mut stay) {
            if *stays && object.extents().iter().any(|extent| torn.contains(&extent.file)) {
                (*stays, is_changed) = (false, true);
            }
        }
        if !is_changed {
            break;
        }
    }
    let moved =
        |extent: &Extent| Some(Extent { file: *unchanged.now.get(&extent.file)?, ..*extent });
    let extents = |object: &VersionObject| object.extents().iter().map(moved).collect();
    before.iter().zip(stay).map(|(object, stays)| stays.then(|| extents(object))?).collect()
}

/// Hashes and numbers the new objects. Returns all objects, and the numbers of the new ones. Files
/// that cannot be read are added to `failures`, and are an error.
fn number(
    planned: Vec<Planned>,
    base: Option<&VersionBase>,
    workers: usize,
    may_change: impl Fn(FileIndex) -> bool + Sync,
    failures: &mut BTreeMap<FileIndex, SourceError>,
) -> Result<(Vec<VersionObject>, BTreeSet<Toi>), Error> {
    let before = base.map_or(&[][..], |base| &base.objects);
    let old = |planned: &Planned| planned.carried.and_then(|index| before.get(index));
    let mut objects = Vec::new();
    let mut new = Vec::new();
    for planned in planned {
        match old(&planned) {
            Some(old) => {
                let hashes = Arc::clone(old.verifier.hashes());
                let verifier = Arc::new(BlockVerifier::new(planned.source, hashes));
                objects.push(VersionObject { toi: old.toi, verifier, runs: Arc::clone(&old.runs) });
            }
            None => new.push(planned.source),
        }
    }
    let mut hashed = hash_objects(new.iter().map(AsRef::as_ref), workers, may_change)?;
    failures.extend(hashed.failures.clone());
    let runs = std::mem::take(&mut hashed.runs);
    let hashes = hashed.complete()?;
    let described = new.iter().zip(&hashes).map(|(new, hashes)| (new.layout().oti(), &hashes[..]));
    let mut taken = objects.iter().map(|object| object.toi).collect();
    let tois = content_tois(&described.collect::<Vec<_>>(), &mut taken);
    for (((source, hashes), runs), &toi) in new.into_iter().zip(hashes).zip(runs).zip(&tois) {
        let verifier = Arc::new(BlockVerifier::new(source, hashes.into()));
        objects.push(VersionObject { toi, verifier, runs: runs.into() });
    }
    Ok((objects, tois.into_iter().collect()))
}

/// Hashes of the data of the files that share objects, carried over for unchanged files.
fn shared(
    sources: &SourceFiles,
    objects: &[VersionObject],
    base: Option<&VersionBase>,
    unchanged: &Unchanged,
) -> Result<BTreeMap<FileIndex, blake3::Hash>, Error> {
    let carried = base.into_iter().flat_map(|base| &base.shared);
    let carried = carried.filter_map(|(old, hash)| Some((*unchanged.now.get(old)?, *hash)));
    let mut shared: BTreeMap<_, _> = carried.collect();
    for object in objects {
        let (Some(first), Some(last)) = (object.extents().first(), object.extents().last()) else {
            continue;
        };
        if first.file == last.file {
            continue;
        }
        for extent in object.extents() {
            if let Entry::Vacant(slot) = shared.entry(extent.file) {
                slot.insert(file_hash(sources, extent.file).map_err(Error::from)?);
            }
        }
    }
    Ok(shared)
}

/// The hash of a file's data in whatever state it is.
fn file_hash(sources: &SourceFiles, file: FileIndex) -> Result<blake3::Hash, SourceError> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; 64 << 10];
    for range in sources.file(file)?.data() {
        for offset in range.clone().step_by(chunk.len()) {
            let length = chunk.len().min((range.end - offset) as usize);
            let part = chunk.get_mut(..length).unwrap_or_default();
            sources.read_exact_at(file, offset, part)?;
            hasher.update(part);
        }
    }
    Ok(hasher.finalize())
}

/// Numbers that follow from the content of objects; of several objects with one number, the next
/// free ones.
pub(super) fn content_tois(objects: &[(Oti, &[Hash])], taken: &mut BTreeSet<Toi>) -> Vec<Toi> {
    let mut order: Vec<_> = objects
        .iter()
        .enumerate()
        .map(|(index, (oti, hashes))| {
            let hash = object_hash(oti.transfer_length, *hashes);
            (Toi::of_content(oti, hashes), hash, index)
        })
        .collect();
    order.sort_unstable();
    let mut tois = vec![Toi::default(); objects.len()];
    for (mut toi, _, index) in order {
        while !toi.is_content() || !taken.insert(toi) {
            toi = if toi.is_content() { Toi(toi.0 + 1) } else { Toi(1) };
        }
        if let Some(slot) = tois.get_mut(index) {
            *slot = toi;
        }
    }
    tois
}

/// The blocks of a new object that receivers of the version before cannot copy from its files.
fn lacking(
    object: &VersionObject,
    base: &VersionBase,
    unchanged: &Unchanged,
    paths: &BTreeMap<FileIndex, &RelativePath>,
) -> Vec<BlockId> {
    let id = |sbn| BlockId { toi: object.toi, sbn };
    if let Some(old) = predecessor(object, base, paths) {
        let hash = |of: &VersionObject, sbn: Sbn| of.verifier.hashes().get(sbn.0 as usize).copied();
        let blocks = object.blocks().map(|(sbn, _)| sbn);
        return blocks.filter(|&sbn| hash(object, sbn) != hash(old, sbn)).map(id).collect();
    }
    object.blocks_of(|file| !unchanged.files.contains(&file)).map(id).collect()
}

/// The object of the version before that had the same part of the same file, in the same blocks.
fn predecessor<'b>(
    object: &VersionObject,
    base: &'b VersionBase,
    paths: &BTreeMap<FileIndex, &RelativePath>,
) -> Option<&'b VersionObject> {
    let file = object.extents().first()?.file;
    let before = *base.names.get(*paths.get(&file)?)?;
    let has_place = |(new, old): (&Extent, &Extent)| {
        (new.file, old.file) == (file, before)
            && (new.offset, new.length) == (old.offset, old.length)
    };
    base.objects.iter().find(|old| {
        old.oti() == object.oti()
            && old.extents().len() == object.extents().len()
            && object.extents().iter().zip(old.extents()).all(has_place)
    })
}

#[cfg(test)]
mod tests;
