//! Encoding symbols of a block, computed from files on the disk.

use crate::buffered::ReadAhead;
use crate::geometry::GeometryError;
use crate::object_source::ObjectSource;
use crate::passes::column_passes;
use crate::placement::check_size;
use crate::source::{Deviations, SourceError};
use fontana_fec::{BlockLengthError, Esi, Intermediate, Plan, PlanCache, Sbn, Scratch};
use fontana_proto::Category;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Why symbols could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A file could not be read, or has changed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The code has no plan for blocks of this length.
    #[error(transparent)]
    Block(#[from] BlockLengthError),
}

impl EncodeError {
    /// The class of the error.
    pub fn category(&self) -> Category {
        match self {
            Self::Source(error) => error.category(),
            Self::Block(_) => Category::Geometry,
        }
    }
}

impl From<GeometryError> for EncodeError {
    fn from(error: GeometryError) -> Self {
        Self::Source(error.into())
    }
}

/// A number of bytes that several users share. Each takes bytes if they are available, and returns
/// them when dropped.
#[derive(Debug)]
pub struct Allowance {
    limit: usize,
    used: AtomicUsize,
}

impl Allowance {
    /// An allowance of `limit` bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// Bytes that are taken at present.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let more = |used: usize| used.checked_add(bytes).filter(|&used| used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Taken { from: Arc::clone(self), bytes })
    }
}

/// Bytes of an [`Allowance`], until dropped.
struct Taken {
    from: Arc<Allowance>,
    bytes: usize,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.from.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An encoder of an object's blocks. Worker threads may share it; each gives its own time and
/// memory budget.
///
/// A repair symbol needs the whole block to be read and solved. Solved blocks are kept while the
/// allowance has room, so that later windows compute only symbols. No block is evicted: a sender
/// visits its blocks cyclically, so in a cycle that exceeds the cache an evicted block would be the
/// next one needed.
pub struct ObjectEncoder {
    source: Arc<ObjectSource>,
    plans: Arc<PlanCache>,
    allowance: Arc<Allowance>,
    kept: Mutex<BTreeMap<Sbn, Kept>>,
}

struct Kept {
    block: Arc<Intermediate>,
    _taken: Taken,
}

impl ObjectEncoder {
    /// An encoder of `source` that shares plans, and an allowance for solved blocks, with the
    /// encoders of other objects.
    pub fn new(
        source: Arc<ObjectSource>,
        plans: Arc<PlanCache>,
        allowance: Arc<Allowance>,
    ) -> Self {
        Self { source, plans, allowance, kept: Mutex::default() }
    }

    /// The object.
    pub fn source(&self) -> &Arc<ObjectSource> {
        &self.source
    }

    /// Writes symbols `esis` of a block one after another into `out`: source symbols are read,
    /// repair symbols computed. Then checks that the files have not changed. After an error the
    /// contents of `out` must not be sent. Nor if the files were written to, unless the hash of the
    /// block confirms them ([`ObjectSource::deviations`]).
    ///
    /// Solving takes at most `budget` bytes ([`Plan::memory`]), and a quarter of a megabyte for
    /// reading. If whole symbols do not fit, it makes several passes over ranges of columns, each
    /// of which reads the block; none is narrower than 64 bytes.
    ///
    /// # Errors
    /// [`SourceError::Geometry`] if there is no such block or symbol, or `out` has another length
    /// than the symbols; otherwise those of the files.
    pub fn encode(
        &self,
        sbn: Sbn,
        esis: &[Esi],
        budget: usize,
        out: &mut [u8],
    ) -> Result<Option<Deviations>, EncodeError> {
        // Some orders visit a block for each symbol.
        let _block = tracing::trace_span!("block", sbn = sbn.0, symbols = esis.len()).entered();
        let layout = self.source.layout();
        let symbol_size = self.source.placement().symbol_size();
        let source_symbols = self.source.placement().source_symbols(sbn)?;
        check_size(out.len(), esis.len().saturating_mul(symbol_size))?;
        if let Some(&esi) = esis.iter().find(|&&esi| !layout.contains(sbn, esi)) {
            return Err(GeometryError::NoSuchSymbol { sbn, esi }.into());
        }
        self.read_sources(sbn, source_symbols, esis, out)?;
        if esis.iter().any(|esi| esi.0 >= source_symbols) {
            self.make_repairs(sbn, source_symbols, esis, budget, out)?;
        }
        Ok(self.source.deviations(sbn)?)
    }

    /// Reads the source symbols among `esis`.
    fn read_sources(
        &self,
        sbn: Sbn,
        source_symbols: u32,
        esis: &[Esi],
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let placement = self.source.placement();
        let (size, contiguous) = (placement.symbol_size(), placement.is_contiguous());
        // Symbols that are contiguous on the disk are read together.
        let follows = |a: Esi, b: Esi| contiguous && b.0 < source_symbols && b.0 == a.0 + 1;
        for (run, part) in runs(esis, out, size, follows) {
            match run {
                [esi, ..] if esi.0 >= source_symbols => {}
                [esi] => self.source.read_symbol(sbn, *esi, 0..size, part)?,
                [first, ..] => {
                    let range = placement.run_range(sbn, *first, run.len())?;
                    self.source.read_at(range.start, part)?;
                }
                [] => {}
            }
        }
        Ok(())
    }

    /// Computes the repair symbols among `esis`.
    fn make_repairs(
        &self,
        sbn: Sbn,
        source_symbols: u32,
        esis: &[Esi],
        budget: usize,
        out: &mut [u8],
    ) -> Result<(), EncodeError> {
        let symbol_size = self.source.placement().symbol_size();
        let is_repair = |esi: Esi| esi.0 >= source_symbols;
        let write_whole = |block: &Intermediate, out: &mut [u8]| {
            let same_kind = |a, b| is_repair(a) == is_repair(b);
            for (run, part) in runs(esis, out, symbol_size, same_kind) {
                if run.first().is_some_and(|&esi| is_repair(esi)) {
                    block.write_symbols(run, part);
                }
            }
        };
        if let Some(block) = self.kept(sbn) {
            write_whole(&block, out);
            return Ok(());
        }
        let scheme = self.source.layout().oti().scheme;
        let plan = self.plans.source_plan(scheme, source_symbols)?;
        for columns in column_passes(symbol_size, budget, |width| plan.memory(width)) {
            let block = self.solve(sbn, &plan, columns.clone())?;
            if columns.len() == symbol_size {
                write_whole(&block, out);
                self.keep(sbn, block, plan.memory(symbol_size));
                return Ok(());
            }
            for (&esi, symbol) in esis.iter().zip(out.chunks_exact_mut(symbol_size)) {
                if let Some(part) = symbol.get_mut(columns.clone()).filter(|_| is_repair(esi)) {
                    block.write_symbol(esi, part);
                }
            }
        }
        Ok(())
    }

    /// Reads some columns of a block, and solves them.
    fn solve(
        &self,
        sbn: Sbn,
        plan: &Arc<Plan>,
        columns: Range<usize>,
    ) -> Result<Intermediate, SourceError> {
        let (placement, width) = (self.source.placement(), columns.len());
        let mut reader = ReadAhead::new(placement.block_range(sbn)?, |offset, out: &mut [u8]| {
            self.source.read_at(offset, out)
        });
        let read = |esi: Esi, out: &mut [u8]| {
            for piece in placement.column_pieces(sbn, esi, columns.clone())? {
                if let Some(part) = out.get_mut(piece.in_columns) {
                    reader.read_exact_at(piece.in_object, part)?;
                }
            }
            Ok(())
        };
        plan.execute(width, read, Scratch::default())
    }

    fn kept(&self, sbn: Sbn) -> Option<Arc<Intermediate>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&sbn).map(|kept| Arc::clone(&kept.block))
    }

    fn keep(&self, sbn: Sbn, block: Intermediate, bytes: usize) {
        if let Some(taken) = self.allowance.take(bytes) {
            let block = Kept { block: Arc::new(block), _taken: taken };
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(sbn, block);
        }
    }
}

/// Splits `esis` into runs in which `follows` holds between neighbors, each with its bytes of
/// `out`, which has `symbol_size` bytes per symbol.
fn runs<'a>(
    esis: &'a [Esi],
    out: &'a mut [u8],
    symbol_size: usize,
    together: impl Fn(Esi, Esi) -> bool + 'a,
) -> impl Iterator<Item = (&'a [Esi], &'a mut [u8])> {
    let mut rest = out;
    esis.chunk_by(move |&a, &b| together(a, b)).map(move |run| {
        let (part, after) = std::mem::take(&mut rest).split_at_mut(run.len() * symbol_size);
        rest = after;
        (run, part)
    })
}
