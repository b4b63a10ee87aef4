//! The hashes of blocks. A file that cannot be read is lost alone: the others are hashed without
//! it.

use super::lost::Lost;
use super::objects::fragments;
use super::{ContentObject, ContentOptions, in_parallel};
use crate::error::Error;
use fontana_fec::Sbn;
use fontana_store::{Deviations, Extent, FileIndex, ObjectSource, SourceError, SourceFiles};
use fontana_wire::{BlockHasher, Hash, Toi};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Extents that share objects, and the objects if they are hashed.
struct Run {
    extents: Vec<Extent>,
    hashed: Option<Vec<(ObjectSource, Vec<Hash>)>>,
}

/// Cuts runs of extents into objects, and hashes these. Files that cannot be read, or change
/// meanwhile, are lost: the runs that they are in are cut again, without them.
pub(super) fn objects(
    options: &ContentOptions<'_>,
    sources: &Arc<SourceFiles>,
    runs: Vec<Vec<Extent>>,
    lost: &mut Lost,
) -> Result<(Vec<ContentObject>, Vec<Vec<Hash>>), Error> {
    let mut runs: Vec<_> = runs.into_iter().map(|extents| Run { extents, hashed: None }).collect();
    loop {
        let mut cut = Vec::new();
        for (number, run) in runs.iter().enumerate().filter(|(_, run)| run.hashed.is_none()) {
            let objects = fragments(options, sources, &run.extents)?;
            cut.extend(objects.into_iter().map(|object| (number, object)));
        }
        let objects = cut.iter().map(|(_, object)| object);
        let Hashed { hashes, failures } = hash_blocks(objects, options.workers, |_| false)?;
        for ((number, object), hashes) in cut.into_iter().zip(hashes) {
            if let Some(run) = runs.get_mut(number) {
                run.hashed.get_or_insert_default().push((object, hashes));
            }
        }
        if failures.is_empty() {
            break;
        }
        for run in &mut runs {
            let before = run.extents.len();
            run.extents.retain(|extent| !failures.contains_key(&extent.file));
            if run.extents.len() < before {
                run.hashed = None;
            }
        }
        runs.retain(|run| !run.extents.is_empty());
        failures.into_iter().for_each(|(file, error)| lost.add(file, error));
    }
    let hashed = runs.into_iter().filter_map(|run| run.hashed).flatten();
    // TOIs of content count from 1 (0 is the file delivery table).
    let numbered = (1..).zip(hashed).map(|(toi, (source, hashes))| {
        (ContentObject { toi: Toi::from(toi), source: Arc::new(source) }, hashes)
    });
    Ok(numbered.unzip())
}

/// What was hashed, and the files that could not be.
pub(super) struct Hashed {
    /// The hashes of the blocks of every object. Of blocks with files that failed, some are
    /// missing.
    pub(super) hashes: Vec<Vec<Hash>>,
    pub(super) failures: BTreeMap<FileIndex, SourceError>,
}

impl Hashed {
    /// The hashes, if no file failed.
    pub(super) fn complete(self) -> Result<Vec<Vec<Hash>>, SourceError> {
        self.failures.into_values().next().map_or(Ok(self.hashes), Err)
    }
}

/// The hash of every block of every object, on `workers` threads. Files for which `may_change` is
/// true may be written to meanwhile.
pub(super) fn hash_blocks<'a>(
    objects: impl IntoIterator<Item = &'a ObjectSource>,
    workers: usize,
    may_change: impl Fn(FileIndex) -> bool + Sync,
) -> Result<Hashed, Error> {
    let objects: Vec<_> = objects.into_iter().collect();
    let blocks: Vec<(usize, Sbn)> = objects
        .iter()
        .enumerate()
        .flat_map(|(index, o)| (0..o.layout().block_count()).map(move |sbn| (index, Sbn(sbn))))
        .collect();
    let failures = Mutex::new(BTreeMap::new());
    let failed = || failures.lock().unwrap_or_else(PoisonError::into_inner);
    let hashed = in_parallel(blocks.len(), workers, |number| {
        let block = blocks.get(number).and_then(|&(object, sbn)| Some((objects.get(object)?, sbn)));
        let Some((object, sbn)) = block else { return Ok(None) };
        let extents = object.extents().as_slice();
        let files = extents.first().zip(extents.last());
        if files.is_some_and(|(a, b)| a.file == b.file && failed().contains_key(&a.file)) {
            // No other file is in it.
            return Ok(None);
        }
        let error = match hash(object, sbn, &may_change) {
            Ok(hash) => return Ok(Some(hash)),
            Err(error @ SourceError::Geometry(_)) => return Err(error),
            Err(error) => error,
        };
        let found = object.failures_of_block(sbn, &may_change)?;
        match (found.is_empty(), files) {
            (false, _) => failed().extend(found),
            // It can be read again.
            (true, Some((first, _))) => match hash(object, sbn, &may_change) {
                Ok(hash) => return Ok(Some(hash)),
                Err(error) => _ = failed().insert(first.file, error),
            },
            (true, None) => return Err(error),
        }
        Ok(None)
    })?;
    let mut hashes = vec![Vec::new(); objects.len()];
    for ((object, _), hash) in blocks.into_iter().zip(hashed) {
        if let (Some(list), Some(hash)) = (hashes.get_mut(object), hash) {
            list.push(hash);
        }
    }
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Hashed { hashes, failures })
}

/// The hash of a block.
fn hash(
    object: &ObjectSource,
    sbn: Sbn,
    may_change: impl Fn(FileIndex) -> bool,
) -> Result<Hash, SourceError> {
    let mut hasher = BlockHasher::new();
    let found = object.for_each_chunk_and_deviations(sbn, |bytes| hasher.update(bytes))?;
    // What was read of a file that may change is verified by the caller.
    let check = |found: &Deviations| match found.files().all(&may_change) {
        true => Ok(()),
        false => object.check_contents(found),
    };
    found.as_ref().map_or(Ok(()), check)?;
    Ok(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::objects::runs;
    use crate::geometry::Code;
    use fontana_store::{Filter, Tree};
    use fontana_testing::noise;
    use fontana_wire::ContentEncoding;
    use std::fs;

    #[test]
    fn a_file_that_cannot_be_hashed_is_lost_alone() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let files = [folder.clone()];
        let filter = Filter::default();
        let options = ContentOptions {
            files: &files,
            name: None,
            filter: &filter,
            code: Code::RaptorQ,
            symbol_size: 256,
            block_symbols: 10,
            version: 1,
            content_encoding: ContentEncoding::Null,
            plain: false,
            signed: false,
            verifies: true,
            workers: 3,
        };
        for number in 0..60 {
            let length = if number % 10 == 0 { 9_000 } else { 900 };
            fs::write(folder.join(format!("{number:02}")), noise(length, number)).unwrap();
        }
        let tree = Tree::scan(&files, &filter).unwrap();
        let sources = Arc::new(tree.files.allowing_growth());
        // Small ones that share objects, and large ones.
        let damaged = [5, 7, 20, 33, 40];
        for number in damaged {
            let file = folder.join(format!("{number:02}"));
            match number % 2 {
                0 => fs::remove_file(file).unwrap(),
                _ => fs::write(file, "short").unwrap(),
            }
        }
        let mut lost = Lost::default();
        let runs = runs(&options, &sources, &lost);
        let (objects, hashes) = super::objects(&options, &sources, runs, &mut lost).unwrap();
        let is_lost = |index: &u32| lost.has(FileIndex(*index));
        assert_eq!((0..60).filter(is_lost).collect::<Vec<_>>(), damaged);
        let extents = objects.iter().flat_map(|object| object.source.extents().as_slice());
        let sent: std::collections::BTreeSet<_> = extents.map(|extent| extent.file.0).collect();
        assert_eq!(sent.len(), 60 - damaged.len());
        for (object, hashes) in objects.iter().zip(hashes) {
            assert!(!lost.has_any_of(&object.source));
            let again = hash_blocks([&*object.source], 1, |_| false).unwrap().complete();
            assert_eq!(again.unwrap(), [hashes]);
        }
    }
}
