//! The comparison of existing files with a manifest.
//!
//! Packets go on arriving meanwhile. Those that find no room in the spool are dropped.

use super::entries::ManifestTree;
use super::existing::{Compared, Existing};
use super::pieces::{Piece, PieceReader, Pieces, Reading};
use super::wanted::Wanted;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use fontana_fec::Sbn;
use fontana_net::thread::spawn_scoped;
use fontana_net::{PanicError, ThreadError};
use fontana_store::{StagingError, TargetDirectory};
use fontana_wire::{BlockHasher, Entry, Hash};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// How often the progress is reported.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How far a comparison has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::receive) struct SurveyProgress {
    /// Bytes that were compared.
    pub(in crate::receive) bytes: u64,
    /// Bytes to compare.
    pub(in crate::receive) of: u64,
}

/// Compares existing files with a manifest.
pub(in crate::receive) struct Survey<'a> {
    pub(in crate::receive) directory: &'a TargetDirectory,
    pub(in crate::receive) workers: usize,
    /// Set when the reception is over: the comparison ends early.
    pub(in crate::receive) abandoned: &'a CancellationToken,
    pub(in crate::receive) report: &'a mut dyn FnMut(SurveyProgress),
}

/// A block to compare.
struct Comparison<'a> {
    toi: u32,
    sbn: Sbn,
    range: Range<u64>,
    hash: Hash,
    pieces: &'a [Piece],
}

impl Survey<'_> {
    /// Compares everything wanted but the objects that are `committed`.
    pub(in crate::receive) fn run(
        mut self,
        tree: &ManifestTree<'_>,
        wanted: &Wanted<'_>,
        committed: &BTreeSet<u32>,
    ) -> Result<Existing, Error> {
        let pieces = Pieces::of(tree);
        let mut candidates = BTreeSet::new();
        for (index, entry) in tree.entries.iter().enumerate() {
            if let Entry::File(file) = entry.entry
                && self.directory.has_file(&entry.name, file.length())?
            {
                candidates.insert(index);
            }
        }
        let objects = tree.manifest.objects().iter();
        let objects = objects.filter(|o| wanted.has_object(o.toi) && !committed.contains(&o.toi));
        let mut layouts = BTreeMap::new();
        let mut comparisons = Vec::new();
        for object in objects {
            let toi = object.toi;
            let Ok(layout) = object.oti.layout() else { continue };
            if !pieces.by_object.contains_key(&toi) {
                continue;
            }
            layouts.insert(toi, layout);
            for (sbn, &hash) in (0..).map(Sbn).zip(&object.block_hashes) {
                let Some(range) = layout.block_range(sbn) else { continue };
                let pieces = pieces.overlapping(toi, &range);
                if !pieces.is_empty() && pieces.iter().all(|p| candidates.contains(&p.entry)) {
                    comparisons.push(Comparison { toi, sbn, range, hash, pieces });
                }
            }
        }
        let agreeing = self.compare(&comparisons, tree)?;
        let compared = Compared { layouts, agreeing };
        let mut existing = Existing::find(tree, pieces, compared, candidates, self.directory)?;
        for (index, entry) in tree.entries.iter().enumerate() {
            if let Entry::Symlink(link) = entry.entry
                && wanted.has(entry.entry)
                && self.directory.has_link(&entry.name, &link.target)?
            {
                existing.add_link(index);
            }
        }
        Ok(existing)
    }

    /// Hashes the blocks, on as many threads as there are workers. Returns those that agree, by
    /// object.
    fn compare(
        &mut self,
        comparisons: &[Comparison<'_>],
        tree: &ManifestTree<'_>,
    ) -> Result<BTreeMap<u32, BTreeSet<Sbn>>, Error> {
        let length = |comparison: &Comparison<'_>| comparison.range.end - comparison.range.start;
        let of: u64 = comparisons.iter().map(length).sum();
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let agreeing = Mutex::new(BTreeMap::<u32, BTreeSet<Sbn>>::new());
        let (directory, abandoned) = (self.directory, self.abandoned);
        let work = |on_block: &mut dyn FnMut(u64)| -> Result<(), Error> {
            let mut reader = PieceReader::new(directory, tree);
            while let Some(comparison) = comparisons.get(next.fetch_add(1, Ordering::Relaxed)) {
                if abandoned.is_cancelled() {
                    break;
                }
                if comparison.hash(&mut reader, abandoned)? == Some(comparison.hash) {
                    let mut agreeing = agreeing.lock().unwrap_or_else(PoisonError::into_inner);
                    agreeing.entry(comparison.toi).or_default().insert(comparison.sbn);
                }
                let bytes = length(comparison);
                on_block(done.fetch_add(bytes, Ordering::Relaxed) + bytes);
            }
            Ok(())
        };
        let mut reported: Option<Instant> = None;
        let result = std::thread::scope(|scope| {
            let mut others = Vec::new();
            for _ in 1..self.workers.min(comparisons.len()) {
                let other = || {
                    crate::system::give_way();
                    work(&mut |_| {})
                };
                // No block is left for the threads that have been started.
                let no_more = |_: &ThreadError| next.store(comparisons.len(), Ordering::Relaxed);
                others.push(spawn_scoped(scope, "compare", other).inspect_err(no_more)?);
            }
            let own = work(&mut |bytes| {
                if reported.is_none_or(|reported| reported.elapsed() >= REPORT_EVERY) {
                    reported = Some(Instant::now());
                    (self.report)(SurveyProgress { bytes, of });
                }
            });
            others.into_iter().map(joined).fold(own, Result::and)
        });
        result?;
        if of > 0 {
            (self.report)(SurveyProgress { bytes: done.load(Ordering::Relaxed), of });
        }
        Ok(agreeing.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The result of a thread; its panic is an error.
fn joined(thread: ScopedJoinHandle<'_, Result<(), Error>>) -> Result<(), Error> {
    thread.join().unwrap_or_else(|panic| Err(PanicError::new("compare", &*panic).into()))
}

impl Comparison<'_> {
    /// The hash of the block's bytes in the existing files; `None` if not all of them are there.
    fn hash(
        &self,
        reader: &mut PieceReader<'_>,
        abandoned: &CancellationToken,
    ) -> Result<Option<Hash>, StagingError> {
        let mut hasher = BlockHasher::new();
        let whole = reader.read(&self.range, self.pieces, &mut |_, bytes| {
            hasher.update(bytes);
            Ok(if abandoned.is_cancelled() { Reading::Stop } else { Reading::Continue })
        })?;
        Ok(whole.then(|| hasher.finalize()))
    }
}
