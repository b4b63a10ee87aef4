//! What the target directory holds of a manifest already (`--skip-existing`): found by hashing, never
//! by size or time.
//!
//! A manifest has a hash for each block, so a block is the unit: one whose bytes are all here counts
//! as kept, one of which a byte differs or is missing is received. A file is *the same* if all blocks
//! that hold bytes of it are, and its holes are zeros. Of files that share a block (small ones do), all
//! must be here to tell of any.
//!
//! Packets go on arriving meanwhile; those that find no room in the spool are passed over.

use super::tree::{Named, attributes, objects_of};
use super::wanted::Wanted;
use crate::error::Error;
use crate::stop::Stop;
use fontana_fec::{ObjectLayout, Sbn};
use fontana_net::ThreadError;
use fontana_net::thread::spawn_scoped;
use fontana_store::{
    ExistingFile, FileAttributes, Note, StagedObject, Staging, StagingError, TargetDirectory,
    TargetName,
};
use fontana_wire::{BlockHasher, Entry, Hash, Manifest, PlacedSegment, Segment};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are read at a time.
const CHUNK: usize = 256 << 10;
/// How often it is told how far it has come.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What is here already.
#[derive(Debug, Default)]
pub(super) struct Existing {
    /// Entries, counted as in the manifest, whose bytes are all here.
    same: BTreeSet<usize>,
    /// Blocks whose bytes are all here.
    blocks: BTreeSet<(u32, Sbn)>,
    /// Where the bytes of objects are.
    pieces: BTreeMap<u32, Vec<Piece>>,
}

/// Consecutive bytes of an object that are consecutive in a file.
#[derive(Debug)]
struct Piece {
    in_object: Range<u64>,
    in_file: u64,
    entry: usize,
}

/// Compares; what it takes is all in here.
pub(super) struct Survey<'a> {
    pub(super) target: &'a TargetDirectory,
    pub(super) workers: usize,
    /// Nobody waits for the outcome any more.
    pub(super) abandoned: &'a Stop,
    /// Told now and then: bytes compared, and how many there are.
    pub(super) tell: &'a mut dyn FnMut(u64, u64),
}

/// A block to compare.
struct Task<'a> {
    toi: u32,
    sbn: Sbn,
    range: Range<u64>,
    hash: Hash,
    pieces: &'a [Piece],
}

impl Survey<'_> {
    /// Compares everything wanted but `committed` objects with what is there.
    pub(super) fn run(
        mut self,
        manifest: &Manifest,
        wanted: &Wanted<'_>,
        entries: &[Named<'_>],
        committed: &BTreeSet<u32>,
    ) -> Result<Existing, Error> {
        let mut found = Existing { pieces: pieces(entries), ..Existing::default() };
        let is_there: Vec<bool> = entries
            .iter()
            .map(|(entry, name)| match entry {
                Entry::File(file) => self.target.has_file(name, file.length()),
                Entry::Directory(_) | Entry::Symlink(_) => Ok(false),
            })
            .collect::<Result<_, _>>()?;
        let objects = manifest.objects().iter();
        let objects = objects.filter(|o| wanted.takes_object(o.toi) && !committed.contains(&o.toi));
        let mut layouts: BTreeMap<u32, ObjectLayout> = BTreeMap::new();
        let mut tasks = Vec::new();
        for object in objects {
            let (Ok(layout), Some(pieces)) = (object.oti.layout(), found.pieces.get(&object.toi))
            else {
                continue;
            };
            layouts.insert(object.toi, layout);
            for (sbn, &hash) in (0..).map(Sbn).zip(&object.block_hashes) {
                let Some(range) = layout.block_range(sbn) else { continue };
                let pieces = overlapping(pieces, &range);
                if !pieces.is_empty() && pieces.iter().all(|piece| is_there[piece.entry]) {
                    tasks.push(Task { toi: object.toi, sbn, range, hash, pieces });
                }
            }
        }
        found.blocks = self.compare(&tasks, entries)?;
        found.same = found.whole_files(self.target, entries, &is_there, &layouts, committed)?;
        Ok(found)
    }

    /// Hashes the blocks, on as many threads as there are workers.
    fn compare(
        &mut self,
        tasks: &[Task<'_>],
        entries: &[Named<'_>],
    ) -> Result<BTreeSet<(u32, Sbn)>, Error> {
        let bytes = |task: &Task<'_>| task.range.end - task.range.start;
        let all: u64 = tasks.iter().map(bytes).sum();
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let agreeing = Mutex::new(BTreeSet::new());
        let (target, abandoned) = (self.target, self.abandoned);
        let work = |tell: &mut dyn FnMut(u64)| -> Result<(), Error> {
            let mut reader = BlockReader::new(target, entries);
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if abandoned.is_set() {
                    break;
                }
                if reader.hash(task, abandoned)? == Some(task.hash) {
                    let mut agreeing = agreeing.lock().unwrap_or_else(PoisonError::into_inner);
                    agreeing.insert((task.toi, task.sbn));
                }
                tell(done.fetch_add(bytes(task), Ordering::Relaxed) + bytes(task));
            }
            Ok(())
        };
        let mut told: Option<Instant> = None;
        let result = std::thread::scope(|scope| {
            let mut others = Vec::new();
            for _ in 1..self.workers.min(tasks.len()) {
                let other = || {
                    crate::system::give_way();
                    work(&mut |_| {})
                };
                // No task is left for the threads that have been started.
                let no_more = |_: &ThreadError| next.store(tasks.len(), Ordering::Relaxed);
                others.push(spawn_scoped(scope, "compare", other).inspect_err(no_more)?);
            }
            let own = work(&mut |done| {
                if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
                    told = Some(Instant::now());
                    (self.tell)(done, all);
                }
            });
            // A thread that panicked has found nothing that is missed here.
            others.into_iter().filter_map(|other| other.join().ok()).fold(own, Result::and)
        });
        result?;
        if all > 0 {
            (self.tell)(done.load(Ordering::Relaxed), all);
        }
        Ok(agreeing.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Existing {
    /// Entries whose blocks all agree, and whose holes are zeros.
    fn whole_files(
        &self,
        target: &TargetDirectory,
        entries: &[Named<'_>],
        is_there: &[bool],
        layouts: &BTreeMap<u32, ObjectLayout>,
        committed: &BTreeSet<u32>,
    ) -> Result<BTreeSet<usize>, Error> {
        let mut same: BTreeSet<usize> =
            is_there.iter().enumerate().filter(|(_, is)| **is).map(|(entry, _)| entry).collect();
        for (toi, pieces) in &self.pieces {
            // What was not looked at cannot be told.
            let Some(layout) = layouts.get(toi).filter(|_| !committed.contains(toi)) else {
                pieces.iter().for_each(|piece| _ = same.remove(&piece.entry));
                continue;
            };
            for sbn in (0..layout.block_count()).map(Sbn) {
                let Some(range) = layout.block_range(sbn) else { continue };
                if !self.blocks.contains(&(*toi, sbn)) {
                    let pieces = overlapping(pieces, &range).iter();
                    pieces.for_each(|piece| _ = same.remove(&piece.entry));
                }
            }
        }
        let mut differing = Vec::new();
        for &index in &same {
            let Some((Entry::File(file), name)) = entries.get(index) else { continue };
            let mut holes = file.holes().peekable();
            if holes.peek().is_none() {
                continue;
            }
            let Some(existing) = target.existing(name, file.length())? else {
                differing.push(index);
                continue;
            };
            for hole in holes {
                if !existing.is_zero(hole)? {
                    differing.push(index);
                    break;
                }
            }
        }
        differing.iter().for_each(|index| _ = same.remove(index));
        Ok(same)
    }

    /// Whether all bytes of an entry are here.
    pub(super) fn is_same(&self, entry: usize) -> bool {
        self.same.contains(&entry)
    }

    /// Objects whose files need not be received: in groups of objects that share files, all or none.
    pub(super) fn done_objects(
        &self,
        entries: &[Named<'_>],
        wanted: &Wanted<'_>,
        group_of: impl Fn(u32) -> u32,
    ) -> BTreeSet<u32> {
        let mut missing = BTreeSet::new();
        let mut objects = BTreeSet::new();
        for (index, (entry, _)) in entries.iter().enumerate() {
            let Entry::File(file) = entry else { continue };
            let of_file = objects_of(file);
            if !self.is_same(index) && wanted.takes(entry) {
                missing.extend(of_file.iter().map(|&toi| group_of(toi)));
            }
            objects.extend(of_file);
        }
        objects.retain(|&toi| wanted.takes_object(toi) && !missing.contains(&group_of(toi)));
        objects
    }

    /// Copies the blocks of an object that are here into staging, and notes them. Returns them.
    pub(super) fn copy(
        &self,
        target: &TargetDirectory,
        entries: &[Named<'_>],
        staging: &Staging,
        toi: u32,
        object: &StagedObject,
    ) -> Result<Vec<Sbn>, StagingError> {
        let Some(pieces) = self.pieces.get(&toi) else { return Ok(Vec::new()) };
        let mut reader = BlockReader::new(target, entries);
        let mut copied = Vec::new();
        let blocks = self.blocks.range((toi, Sbn(0))..=(toi, Sbn(u32::MAX)));
        for &(_, sbn) in blocks {
            let Some(range) = object.layout().block_range(sbn) else { continue };
            // The block is hashed again where it now is: what changed meanwhile is received.
            let pieces = overlapping(pieces, &range);
            if reader
                .read(&range, pieces, &mut |at, bytes| object.write_at(at, bytes).map(|()| true))?
            {
                staging.note(&[Note::Whole { toi, sbn }])?;
                copied.push(sbn);
            }
        }
        Ok(copied)
    }
}

/// Where the bytes of objects are in files, by object and in its order.
fn pieces(entries: &[Named<'_>]) -> BTreeMap<u32, Vec<Piece>> {
    let mut pieces: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
    for (index, (entry, _)) in entries.iter().enumerate() {
        let Entry::File(file) = entry else { continue };
        for PlacedSegment { range, segment } in file.placed_segments() {
            if let Segment::Extent { toi, object_offset, length } = segment {
                let in_object = object_offset..object_offset.saturating_add(length);
                let piece = Piece { in_object, in_file: range.start, entry: index };
                pieces.entry(toi).or_default().push(piece);
            }
        }
    }
    for pieces in pieces.values_mut() {
        pieces.retain(|piece| !piece.in_object.is_empty());
        pieces.sort_by_key(|piece| piece.in_object.start);
    }
    pieces
}

/// The pieces with a byte in a range; they do not overlap each other.
fn overlapping<'p>(pieces: &'p [Piece], range: &Range<u64>) -> &'p [Piece] {
    let first = pieces.partition_point(|piece| piece.in_object.end <= range.start);
    let last = pieces.partition_point(|piece| piece.in_object.start < range.end);
    pieces.get(first..last).unwrap_or_default()
}

/// Takes bytes of an object and where they begin; false when it has seen enough.
type Show<'a> = dyn FnMut(u64, &[u8]) -> Result<bool, StagingError> + 'a;

/// Reads blocks out of existing files; the file that was read last stays open.
struct BlockReader<'a> {
    target: &'a TargetDirectory,
    entries: &'a [Named<'a>],
    open: Option<(usize, ExistingFile)>,
    chunk: Vec<u8>,
}

impl<'a> BlockReader<'a> {
    fn new(target: &'a TargetDirectory, entries: &'a [Named<'a>]) -> Self {
        Self { target, entries, open: None, chunk: vec![0; CHUNK] }
    }

    /// The hash of a block; `None` if not all of it is here.
    fn hash(&mut self, task: &Task<'_>, abandoned: &Stop) -> Result<Option<Hash>, StagingError> {
        let mut hasher = BlockHasher::new();
        let whole = self.read(&task.range, task.pieces, &mut |_, bytes| {
            hasher.update(bytes);
            Ok(!abandoned.is_set())
        })?;
        Ok(whole.then(|| hasher.finalize()))
    }

    /// Shows a range of an object in its order until it is at its end, a byte is missing or `show`
    /// has seen enough. True if it came to the end.
    fn read(
        &mut self,
        range: &Range<u64>,
        pieces: &[Piece],
        show: &mut Show<'_>,
    ) -> Result<bool, StagingError> {
        let mut at = range.start;
        for piece in pieces {
            if piece.in_object.start > at {
                return Ok(false); // no file has these bytes
            }
            let end = piece.in_object.end.min(range.end);
            while at < end {
                let count = (end - at).min(CHUNK as u64) as usize;
                let Self { target, entries, open, chunk } = self;
                let Some(file) = open_entry(target, entries, open, piece.entry)? else {
                    return Ok(false);
                };
                let chunk = chunk.get_mut(..count).unwrap_or_default();
                let in_file = piece.in_file + (at - piece.in_object.start);
                if !file.read_at(in_file, chunk)? || !show(at, chunk)? {
                    return Ok(false);
                }
                at += count as u64;
            }
        }
        Ok(at == range.end)
    }
}

/// The file of an entry, opened unless it is open.
fn open_entry<'o>(
    target: &TargetDirectory,
    entries: &[Named<'_>],
    open: &'o mut Option<(usize, ExistingFile)>,
    entry: usize,
) -> Result<Option<&'o ExistingFile>, StagingError> {
    if open.as_ref().is_none_or(|(of, _)| *of != entry) {
        let Some((Entry::File(file), name)) = entries.get(entry) else { return Ok(None) };
        *open = target.existing(name, file.length())?.map(|existing| (entry, existing));
    }
    Ok(open.as_ref().map(|(_, existing)| existing))
}

/// What an existing file is given when everything is there.
pub(super) fn to_put_right(
    file: &fontana_wire::FileEntry,
    name: &TargetName,
) -> (TargetName, u64, FileAttributes) {
    (name.clone(), file.length(), attributes(&file.metadata))
}
