//! The hashes of blocks, and of runs of small files. A file that cannot be read is lost alone: the
//! others are hashed without it. What is hashed of several files together is copied, if there is
//! room.

use super::lost::Lost;
use super::objects::fragments;
use super::{ContentObject, ContentOptions, in_parallel};
use crate::error::Error;
use fontana_fec::Sbn;
use fontana_store::{
    Deviations, Extent, FileIndex, ObjectCopy, ObjectSource, ScratchFile, SourceError, SourceFiles,
};
use fontana_wire::{BlockHasher, FileRun, Hash, RunHasher, Toi};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Extents that share objects, and the objects if they are hashed.
struct Run {
    extents: Vec<Extent>,
    hashed: Option<Vec<HashedObject>>,
}

/// An object and its hashes.
struct HashedObject {
    source: ObjectSource,
    blocks: Vec<Hash>,
    runs: Vec<FileRun>,
}

/// Objects, and for each the hashes of its blocks and its runs.
#[derive(Default)]
pub(super) struct HashedObjects {
    pub(super) objects: Vec<ContentObject>,
    pub(super) hashes: Vec<Vec<Hash>>,
    pub(super) runs: Vec<Vec<FileRun>>,
}

/// Cuts runs of extents into objects, and hashes these. Files that cannot be read, or change
/// meanwhile, are lost: the runs that they are in are cut again, without them.
pub(super) fn objects(
    options: &ContentOptions<'_>,
    sources: &Arc<SourceFiles>,
    runs: Vec<Vec<Extent>>,
    lost: &mut Lost,
) -> Result<HashedObjects, Error> {
    let mut runs: Vec<_> = runs.into_iter().map(|extents| Run { extents, hashed: None }).collect();
    loop {
        let mut cut = Vec::new();
        for (number, run) in runs.iter().enumerate().filter(|(_, run)| run.hashed.is_none()) {
            let objects = fragments(options, sources, &run.extents)?;
            cut.extend(objects.into_iter().map(|object| (number, object)));
        }
        let objects = cut.iter().map(|(_, object)| object);
        let Hashed { hashes, runs: of_objects, copies, failures } =
            hash_all(objects, options.workers, |_| false, run_lengths, options.copies)?;
        let hashes = hashes.into_iter().zip(of_objects).zip(copies);
        for ((number, source), ((blocks, of_object), copy)) in cut.into_iter().zip(hashes) {
            if let Some(run) = runs.get_mut(number) {
                let source = match copy.filter(|copy| !copy.has_failed()) {
                    Some(copy) => source.with_copy(copy),
                    None => source,
                };
                let hashed = HashedObject { source, blocks, runs: of_object };
                run.hashed.get_or_insert_default().push(hashed);
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
    let mut all = HashedObjects::default();
    for (toi, HashedObject { source, blocks, runs }) in (1..).zip(hashed) {
        all.objects.push(ContentObject { toi: Toi::from(toi), source: Arc::new(source) });
        all.hashes.push(blocks);
        all.runs.push(runs);
    }
    Ok(all)
}

/// What was hashed, and the files that could not be.
pub(super) struct Hashed {
    /// The hashes of the blocks of every object. Of blocks with files that failed, some are
    /// missing.
    pub(super) hashes: Vec<Vec<Hash>>,
    /// The runs of every object with bytes of several files, if they were asked for.
    pub(super) runs: Vec<Vec<FileRun>>,
    copies: Vec<Option<ObjectCopy>>,
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
    hash_all(objects, workers, may_change, |_, _| Vec::new(), None)
}

/// Like [`hash_blocks`], with the runs of objects that have bytes of several files.
pub(super) fn hash_objects<'a>(
    objects: impl IntoIterator<Item = &'a ObjectSource>,
    workers: usize,
    may_change: impl Fn(FileIndex) -> bool + Sync,
) -> Result<Hashed, Error> {
    hash_all(objects, workers, may_change, run_lengths, None)
}

fn has_several_files(object: &ObjectSource) -> bool {
    let extents = object.extents().as_slice();
    let files = extents.first().zip(extents.last());
    files.is_some_and(|(first, last)| first.file != last.file)
}

/// The lengths of the runs that a block of an object consists of: a run ends where a file does,
/// with at least [`FileRun::LEAST`] bytes, and where the block does. None if the object has bytes
/// of one file.
fn run_lengths(object: &ObjectSource, sbn: Sbn) -> Vec<u64> {
    let extents = object.extents().as_slice();
    let block = object.layout().block_range(sbn).filter(|_| has_several_files(object));
    let Some(block) = block else { return Vec::new() };
    let (mut lengths, mut start, mut at) = (Vec::new(), block.start, 0);
    for file in extents.chunk_by(|one, next| one.file == next.file) {
        at += file.iter().map(|extent| extent.length).sum::<u64>();
        if at >= block.end {
            break;
        }
        if at >= start + FileRun::LEAST {
            lengths.push(at - start);
            start = at;
        }
    }
    lengths.push(block.end - start);
    lengths
}

fn hash_all<'a>(
    objects: impl IntoIterator<Item = &'a ObjectSource>,
    workers: usize,
    may_change: impl Fn(FileIndex) -> bool + Sync,
    run_lengths: impl Fn(&ObjectSource, Sbn) -> Vec<u64> + Sync,
    scratch: Option<&Arc<ScratchFile>>,
) -> Result<Hashed, Error> {
    let objects: Vec<_> = objects.into_iter().collect();
    let copy = |object: &&ObjectSource| {
        let scratch = scratch.filter(|_| has_several_files(object))?;
        ObjectCopy::reserve(scratch, object.layout().oti().transfer_length)
    };
    let copies: Vec<Option<ObjectCopy>> = objects.iter().map(copy).collect();
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
        let copy = blocks.get(number).and_then(|(object, _)| copies.get(*object)?.as_ref());
        let extents = object.extents().as_slice();
        let files = extents.first().zip(extents.last());
        if files.is_some_and(|(a, b)| a.file == b.file && failed().contains_key(&a.file)) {
            // No other file is in it.
            return Ok(None);
        }
        let lengths = run_lengths(object, sbn);
        let error = match hash(object, sbn, &may_change, &lengths, copy) {
            Ok(hash) => return Ok(Some(hash)),
            Err(error @ SourceError::Geometry(_)) => return Err(error),
            Err(error) => error,
        };
        let found = object.failures_of_block(sbn, &may_change)?;
        match (found.is_empty(), files) {
            (false, _) => failed().extend(found),
            // It can be read again.
            (true, Some((first, _))) => match hash(object, sbn, &may_change, &lengths, copy) {
                Ok(hash) => return Ok(Some(hash)),
                Err(error) => _ = failed().insert(first.file, error),
            },
            (true, None) => return Err(error),
        }
        Ok(None)
    })?;
    let mut hashes = vec![Vec::new(); objects.len()];
    let mut runs = vec![Vec::new(); objects.len()];
    for ((object, _), block) in blocks.into_iter().zip(hashed) {
        let lists = hashes.get_mut(object).zip(runs.get_mut(object));
        if let (Some((hashes, runs)), Some(block)) = (lists, block) {
            hashes.push(block.hash);
            runs.extend(block.runs);
        }
    }
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Hashed { hashes, runs, copies, failures })
}

/// The hashes of a block and of the runs in it.
struct HashedBlock {
    hash: Hash,
    runs: Vec<FileRun>,
}

/// Hashes runs whose bytes arrive one after the other.
struct RunsHasher<'l> {
    /// Lengths of the runs after the present one.
    lengths: std::slice::Iter<'l, u64>,
    /// The present run: its length, and the bytes of it to come.
    length: u64,
    left: u64,
    hasher: RunHasher,
    /// Bytes that are not hashed yet, less than [`LANES`].
    buffer: Vec<u8>,
    runs: Vec<FileRun>,
}

/// Bytes that BLAKE3 hashes at a time with all SIMD lanes. Chunks of a block begin anywhere in a
/// run: what is beyond a multiple of these waits for the next chunk, and the rest is not copied.
const LANES: usize = 16 << 10;

impl<'l> RunsHasher<'l> {
    fn new(lengths: &'l [u64]) -> Self {
        let mut lengths = lengths.iter();
        let length = lengths.next().copied().unwrap_or(0);
        let (hasher, buffer, runs) = Default::default();
        Self { lengths, length, left: length, hasher, buffer, runs }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        while self.left > 0 && !bytes.is_empty() {
            let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(count);
            self.left -= count as u64;
            bytes = later;
            self.update_run(now);
            if self.left == 0 {
                self.runs.push(FileRun { length: self.length, hash: self.hasher.finalize() });
                self.hasher = RunHasher::new();
                self.length = self.lengths.next().copied().unwrap_or(0);
                self.left = self.length;
            }
        }
    }

    /// Adds the next bytes of the present run.
    fn update_run(&mut self, mut bytes: &[u8]) {
        if !self.buffer.is_empty() {
            let missing = LANES.saturating_sub(self.buffer.len()).min(bytes.len());
            let (first, rest) = bytes.split_at(missing);
            self.buffer.extend_from_slice(first);
            bytes = rest;
            if self.buffer.len() < LANES && self.left > 0 {
                return;
            }
            self.hasher.update(&self.buffer);
            self.buffer.clear();
        }
        let beyond = if self.left > 0 { bytes.len() % LANES } else { 0 };
        let (now, later) = bytes.split_at(bytes.len() - beyond);
        self.hasher.update(now);
        self.buffer.extend_from_slice(later);
    }
}

/// The hashes of a block, and of runs of these lengths in it. Copies what is hashed.
fn hash(
    object: &ObjectSource,
    sbn: Sbn,
    may_change: impl Fn(FileIndex) -> bool,
    lengths: &[u64],
    copy: Option<&ObjectCopy>,
) -> Result<HashedBlock, SourceError> {
    let (mut hasher, mut runs) = (BlockHasher::new(), RunsHasher::new(lengths));
    let mut at = object.layout().block_range(sbn).map_or(0, |block| block.start);
    let found = object.for_each_chunk_and_deviations(sbn, |bytes| {
        hasher.update(bytes);
        runs.update(bytes);
        copy.inspect(|copy| copy.write(at, bytes));
        at += bytes.len() as u64;
    })?;
    // What was read of a file that may change is verified by the caller.
    let check = |found: &Deviations| match found.files().all(&may_change) {
        true => Ok(()),
        false => object.check_contents(found),
    };
    found.as_ref().map_or(Ok(()), check)?;
    Ok(HashedBlock { hash: hasher.finalize(), runs: runs.runs })
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
            in_memory: &[],
            parts: &[],
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
            copies: None,
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
        let HashedObjects { objects, hashes, .. } =
            super::objects(&options, &sources, runs, &mut lost).unwrap();
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

    #[test]
    fn runs_have_their_hashes_whatever_pieces_their_bytes_arrive_in() {
        let lengths = [1, LANES as u64, 90_000, LANES as u64 + 1, 5];
        let bytes = noise(lengths.iter().sum::<u64>() as usize, 1);
        let mut rest = &bytes[..];
        let expected = lengths.map(|length| {
            let (run, later) = rest.split_at(length as usize);
            rest = later;
            let mut hasher = RunHasher::new();
            hasher.update(run);
            FileRun { length, hash: hasher.finalize() }
        });
        for piece in [1, 7, 1_000, LANES - 1, LANES, LANES + 1, 50_000, bytes.len()] {
            let mut runs = RunsHasher::new(&lengths);
            bytes.chunks(piece).for_each(|piece| runs.update(piece));
            assert_eq!(runs.runs, expected, "pieces of {piece} bytes");
        }
    }

    /// Files of 30 kB and one of 100 kB in two blocks of 185 kB.
    #[test]
    fn runs_end_where_files_do_and_where_blocks_do() {
        let directory = tempfile::tempdir().unwrap();
        let lengths = [[30_000; 5], [100_000, 30_000, 30_000, 30_000, 30_000]].concat();
        let mut files = fontana_store::SourceFiles::default();
        let (mut extents, mut bytes) = (Vec::new(), Vec::new());
        for (number, &length) in (0..).zip(&lengths) {
            let path = directory.path().join(number.to_string());
            let content = noise(length, number);
            fs::write(&path, &content).unwrap();
            let file = files.add(&path).unwrap();
            extents.push(Extent { file, offset: 0, length: length as u64 });
            bytes.extend(content);
        }
        let scheme = fontana_fec::FecScheme::RaptorQ(fontana_fec::codes::raptorq::RaptorQ {
            source_blocks: 2,
            sub_blocks: 1,
            alignment: 4,
        });
        let oti = fontana_fec::Oti { transfer_length: 370_000, symbol_size: 1_000, scheme };
        let extents = fontana_store::Extents::new(extents).unwrap();
        let files = Arc::new(files);
        let layout = oti.layout().unwrap();
        let source = ObjectSource::new(Arc::clone(&files), layout, extents).unwrap();
        let Hashed { hashes, runs, .. } = hash_objects([&source], 2, |_| false).unwrap();
        assert_eq!(hashes, hash_blocks([&source], 1, |_| false).unwrap().hashes);
        let lengths: Vec<_> = runs[0].iter().map(|run| run.length).collect();
        // A block ends in the large file, and its other part is not long enough for a run alone.
        assert_eq!(lengths, [90_000, 95_000, 95_000, 90_000]);
        let mut at = 0;
        for run in &runs[0] {
            let mut hasher = RunHasher::new();
            hasher.update(&bytes[at..at + run.length as usize]);
            at += run.length as usize;
            assert_eq!(hasher.finalize(), run.hash);
        }
        let single = [Extent { file: FileIndex(0), offset: 0, length: 30_000 }];
        let oti = fontana_fec::Oti { transfer_length: 30_000, ..oti };
        let extents = fontana_store::Extents::new(single).unwrap();
        let source = ObjectSource::new(files, oti.layout().unwrap(), extents).unwrap();
        assert_eq!(hash_objects([&source], 1, |_| false).unwrap().runs, [[]]);
    }
}
