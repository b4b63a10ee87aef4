//! The states of a session of plain FLUTE whose files change: a file that changes has another
//! object, and one that does not keeps its own, so that receivers have it already.

use super::hashing::{Hashed, hash_blocks};
use super::lost::Lost;
use super::objects;
use super::tree::{self, Scanned};
use super::{
    Content, ContentObject, ContentOptions, LostFile, Plain, VersionFiles, label, md5_of,
    unsuitable,
};
use crate::error::Error;
use crate::geometry;
use crate::system::milliseconds_since_1970;
use fontana_store::{FileIndex, Identity, SourceError};
use fontana_wire::{
    ContentEncoding, Entry, FdtExtension, Hash, Manifest, ManifestObject, RelativePath, Toi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the next state needs of a state.
#[derive(Default)]
pub(crate) struct GrowingBase {
    files: BTreeMap<RelativePath, KnownFile>,
    /// The TOI of the next new file; 0 before the first one.
    next_toi: u32,
    /// The number of the last table.
    instance: u32,
}

/// A file of the last state.
#[derive(Clone)]
struct KnownFile {
    state: Identity,
    toi: u32,
    md5: [u8; 16],
    block_hashes: Vec<Hash>,
}

/// What a table says beside its files.
pub(super) struct GrowingTable {
    /// Its number.
    pub(super) instance: u32,
    /// The TOIs of empty files.
    pub(super) empty: BTreeMap<RelativePath, u32>,
}

/// TOIs from here on are not used: they are of other kinds of objects.
const MAX_TOI: u32 = 0x8000_0000;

impl GrowingBase {
    /// The base of the first state. Its numbers follow from the time, so that a sender that is
    /// started again gives other ones to its files.
    fn begin(&self) -> (u32, u32) {
        let seconds = milliseconds_since_1970() / 1_000;
        let instance = seconds as u32 & FdtExtension::MAX_INSTANCE_ID;
        match self.next_toi {
            0 => ((seconds as u32 & 0x7F_FFFF) << 8 | 1, instance),
            next => {
                // Several states in a second.
                let ahead = self.instance.wrapping_add(1) & FdtExtension::MAX_INSTANCE_ID;
                let is_later = instance.wrapping_sub(ahead) & FdtExtension::MAX_INSTANCE_ID;
                let is_later = is_later < FdtExtension::MAX_INSTANCE_ID / 2;
                (next, if is_later { instance } else { ahead })
            }
        }
    }
}

impl Content {
    /// The content of a state after `base`. Reads the files that are new or have changed. Those
    /// that cannot be read are added to `lost`, and are an error.
    pub(crate) fn growing(
        options: &ContentOptions<'_>,
        VersionFiles { tree, .. }: VersionFiles,
        base: &GrowingBase,
        lost: &mut Vec<LostFile>,
    ) -> Result<(Self, GrowingBase), Error> {
        let Scanned { roots, sources, files, left_out, skipped, undescribed, .. } =
            tree::describe(options, tree)?;
        let sources = Arc::new(sources);
        let mut objects = Vec::new();
        for run in objects::runs(options, &sources, &Lost::default()) {
            let cut = objects::fragments(options, &sources, &run)?.into_iter().map(Arc::new);
            objects.extend(cut.map(|source| ContentObject { toi: Toi::from(0), source }));
        }
        let of_file = |object: &ContentObject| {
            object.source.extents().as_slice().first().map(|extent| extent.file)
        };
        let (mut next_toi, instance) = base.begin();
        let used: BTreeSet<u32> = base.files.values().map(|file| file.toi).collect();
        let mut known: BTreeMap<FileIndex, KnownFile> = BTreeMap::new();
        for (path, index) in &files {
            let state = sources.file(*index).map_err(SourceError::from)?.identity();
            let before = base.files.get(path).filter(|file| file.state == state);
            if let Some(before) = before {
                known.insert(*index, before.clone());
            }
        }
        let is_new = |object: &&ContentObject| {
            of_file(object).is_some_and(|file| !known.contains_key(&file))
        };
        let new: Vec<_> = objects.iter().filter(is_new).cloned().collect();
        let new_sources = new.iter().map(|object| &*object.source);
        let Hashed { hashes, failures, .. } = hash_blocks(new_sources, options.workers, |_| false)?;
        if let Some(error) = failures.values().next() {
            let error = error.clone();
            lost.extend(files.iter().filter_map(|(name, index)| {
                let identity = sources.file(*index).ok()?.identity();
                let error = failures.get(index)?.clone();
                Some(LostFile { name: name.clone(), identity, error })
            }));
            return Err(error.into());
        }
        let mut read: BTreeMap<_, _> =
            new.iter().map(of_file).zip(new.iter().zip(hashes)).collect();
        for (_, index) in &files {
            if known.contains_key(index) {
                continue;
            }
            // Those before the wrap are of files that are long gone.
            while next_toi >= MAX_TOI || used.contains(&next_toi) {
                next_toi = if next_toi >= MAX_TOI { 1 } else { next_toi + 1 };
            }
            let state = sources.file(*index).map_err(SourceError::from)?.identity();
            let object = read.remove(&Some(*index));
            let md5 = md5_of(object.as_ref().map(|(object, _)| *object))?;
            let block_hashes = object.map_or_else(Vec::new, |(_, hashes)| hashes);
            known.insert(*index, KnownFile { state, toi: next_toi, md5, block_hashes });
            next_toi += 1;
        }
        let mut described = Vec::new();
        for object in &mut objects {
            let Some(file) = of_file(object).and_then(|file| known.get(&file)) else { continue };
            object.toi = Toi::from(file.toi);
            let (oti, block_hashes) = (object.source.layout().oti(), file.block_hashes.clone());
            described.push(ManifestObject { toi: file.toi, oti, block_hashes });
        }
        let mut segments = objects::segments(&sources, &objects)?;
        let (mut entries, mut md5, mut empty) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut base = GrowingBase { files: BTreeMap::new(), next_toi, instance };
        for (path, index) in files {
            let source = sources.file(index).map_err(SourceError::from)?;
            let mut entry = tree::file_entry(path.clone(), source);
            entry.segments = segments.remove(&index).unwrap_or_default();
            let Some(file) = known.remove(&index) else { continue };
            md5.insert(path.clone(), file.md5);
            if entry.segments.is_empty() {
                empty.insert(path.clone(), file.toi);
            }
            entries.push(Entry::File(entry));
            base.files.insert(path, file);
        }
        let manifest = Manifest::new(options.version, label(&roots), described, entries);
        let plain = Plain {
            empty: geometry::object_oti(options.code, 0, options.symbol_size, 1),
            md5,
            encoding: ContentEncoding::Null,
            lengths: BTreeMap::new(),
            growing: Some(GrowingTable { instance, empty }),
        };
        let content = Self {
            plain: Some(plain),
            left_out: left_out.into_iter().map(Arc::new).collect(),
            skipped,
            undescribed,
            ..Self::new(manifest.map_err(unsuitable)?, objects)
        };
        Ok((content, base))
    }

    /// The number of the table, if the session grows.
    pub(crate) fn table_instance(&self) -> Option<u32> {
        let growing = self.plain.as_ref()?.growing.as_ref()?;
        Some(growing.instance)
    }
}
