//! Encoding symbols of a block, computed from files on the disk.

use crate::buffered::ReadAhead;
use crate::geometry::GeometryError;
use crate::lock::Lock;
use crate::object_source::ObjectSource;
use crate::passes::column_passes;
use crate::placement::check_size;
use crate::solved::{SolvedBlock, SolvedStore, Storing, write_columns};
use crate::source::{Deviations, SourceError};
use fontana_fec::{BlockLengthError, Esi, Intermediate, Plan, PlanCache, Sbn};
use fontana_proto::Category;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// An encoder of an object's blocks. Worker threads may share it; each gives its own time and
/// memory budget.
///
/// A repair symbol needs the whole block to be read and solved. Solved blocks are stored while the
/// store has room, so that later windows compute only symbols.
pub struct ObjectEncoder {
    source: Arc<ObjectSource>,
    plans: Arc<PlanCache>,
    store: Arc<SolvedStore>,
    blocks: Lock<BTreeMap<Sbn, Arc<Lock<BlockState>>>>,
    /// Number of files that were examined when no file was read.
    examined: AtomicUsize,
}

/// Files of a stored block that are examined in a visit, in turn. A bundle may have thousands in a
/// block, and to examine all of them takes longer than to make the symbols.
const EXAMINED_FILES: usize = 8;

/// What is known of a block. Its lock is held while the block is solved to be stored, so that two
/// threads do not both solve it.
#[derive(Default)]
enum BlockState {
    /// Not solved yet.
    #[default]
    Unsolved,
    Stored(Arc<SolvedBlock>),
    /// There was no room: it is solved for each visit.
    NotStored,
}

impl BlockState {
    fn stored(block: SolvedBlock) -> Self {
        Self::Stored(Arc::new(block))
    }
}

impl ObjectEncoder {
    /// An encoder of `source` that shares plans, and a store of solved blocks, with the encoders of
    /// other objects.
    pub fn new(source: Arc<ObjectSource>, plans: Arc<PlanCache>, store: Arc<SolvedStore>) -> Self {
        Self { source, plans, store, blocks: Lock::default(), examined: AtomicUsize::new(0) }
    }

    /// The object.
    pub fn source(&self) -> &Arc<ObjectSource> {
        &self.source
    }

    /// Writes symbols `esis` of a block one after another into `out`: source symbols are read,
    /// repair symbols computed. Checks that the files that it reads have not changed, and of a
    /// block that is stored a few of its files in turn. After an error the contents of `out` must
    /// not be sent. Nor if files were written to, unless the hash of the block confirms them
    /// ([`ObjectSource::deviations`]).
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
        let mut deviates = self.read_sources(sbn, source_symbols, esis, out)?;
        if esis.iter().any(|esi| esi.0 >= source_symbols) {
            deviates |= self.make_repairs(sbn, source_symbols, esis, budget, out)?;
        }
        // The hash of the block confirms the states of all its files.
        if deviates { Ok(self.source.deviations(sbn)?) } else { Ok(None) }
    }

    /// Solves a block and stores it, unless that was done before or the store has no room. Later
    /// visits of the block compute only symbols. True if the block is stored now.
    ///
    /// A block with a file that was written to is left to its first visit, whose caller verifies
    /// it. Takes memory as [`encode`](Self::encode) does.
    ///
    /// # Errors
    /// [`SourceError::Geometry`] if there is no such block; otherwise those of the files.
    pub fn solve_ahead(&self, sbn: Sbn, budget: usize) -> Result<bool, EncodeError> {
        let source_symbols = self.source.placement().source_symbols(sbn)?;
        let state = Arc::clone(self.blocks.lock().entry(sbn).or_default());
        let mut known = state.lock();
        if !matches!(*known, BlockState::Unsolved) {
            return Ok(false);
        }
        let scheme = self.source.layout().oti().scheme;
        let plan = self.plans.source_plan(scheme, source_symbols)?;
        let mut storing = self.store.place(&plan, self.source.placement().symbol_size());
        if !storing.has_place() {
            return Ok(false);
        }
        if self.solve(sbn, &plan, budget, &[], &mut [], Some(&mut storing))? {
            return Ok(false);
        }
        *known = storing.finish().map_or(BlockState::NotStored, BlockState::stored);
        Ok(matches!(*known, BlockState::Stored(_)))
    }

    /// Reads the source symbols among `esis`. True if a file that was read was written to.
    fn read_sources(
        &self,
        sbn: Sbn,
        source_symbols: u32,
        esis: &[Esi],
        out: &mut [u8],
    ) -> Result<bool, SourceError> {
        let placement = self.source.placement();
        let (size, contiguous) = (placement.symbol_size(), placement.is_contiguous());
        // Symbols that are contiguous on the disk are read together.
        let follows = |a: Esi, b: Esi| contiguous && b.0 < source_symbols && b.0 == a.0 + 1;
        let mut deviates = false;
        for (run, part) in runs(esis, out, size, follows) {
            deviates |= match run {
                [esi, ..] if esi.0 >= source_symbols => false,
                [esi] => self.source.read_symbol(sbn, *esi, part)?,
                [first, ..] => {
                    let range = placement.run_range(sbn, *first, run.len())?;
                    self.source.read_checked_at(range.start, part)?
                }
                [] => false,
            };
        }
        Ok(deviates)
    }

    /// Computes the repair symbols among `esis`. True if a file that was read or examined was
    /// written to.
    fn make_repairs(
        &self,
        sbn: Sbn,
        source_symbols: u32,
        esis: &[Esi],
        budget: usize,
        out: &mut [u8],
    ) -> Result<bool, EncodeError> {
        let symbol_size = self.source.placement().symbol_size();
        let repairs = esis.iter().filter(|esi| esi.0 >= source_symbols).count();
        self.store.count_repair(repairs * symbol_size);
        let state = Arc::clone(self.blocks.lock().entry(sbn).or_default());
        let mut known = state.lock();
        if let BlockState::Stored(block) = &*known {
            let block = Arc::clone(block);
            drop(known);
            match block.write_repairs(&self.store, esis, symbol_size, out) {
                Ok(()) => {
                    let before = self.examined.fetch_add(EXAMINED_FILES, Ordering::Relaxed);
                    return Ok(self.source.check_some(sbn, before, EXAMINED_FILES)?);
                }
                Err(error) => tracing::warn!(%error, "a stored block could not be read"),
            }
            known = state.lock();
            *known = BlockState::NotStored;
        }
        let scheme = self.source.layout().oti().scheme;
        let plan = self.plans.source_plan(scheme, source_symbols)?;
        if matches!(*known, BlockState::NotStored) {
            drop(known);
            return Ok(self.solve(sbn, &plan, budget, esis, out, None)?);
        }
        let mut storing = self.store.place(&plan, symbol_size);
        let deviates = self.solve(sbn, &plan, budget, esis, out, Some(&mut storing))?;
        *known = storing.finish().map_or(BlockState::NotStored, BlockState::stored);
        Ok(deviates)
    }

    /// Solves a block, writes the repair symbols among `esis`, and stores the solved block. True if
    /// a file of the block was written to.
    fn solve(
        &self,
        sbn: Sbn,
        plan: &Arc<Plan>,
        budget: usize,
        esis: &[Esi],
        out: &mut [u8],
        mut storing: Option<&mut Storing>,
    ) -> Result<bool, SourceError> {
        let symbol_size = self.source.placement().symbol_size();
        let deviates = Cell::new(false);
        for columns in column_passes(symbol_size, budget, |width| plan.memory(width)) {
            let part = self.solve_columns(sbn, plan, columns.clone(), &deviates)?;
            self.store.count_solved(plan.source_symbols() as usize * columns.len());
            write_columns(&part, &columns, esis, symbol_size, out);
            match &mut storing {
                Some(storing) => storing.add(&self.store, columns, part, symbol_size),
                None => self.store.return_memory(part.into_scratch()),
            }
        }
        Ok(deviates.get())
    }

    /// Reads some columns of a block, and solves them. Sets `deviates` if a file was written to.
    fn solve_columns(
        &self,
        sbn: Sbn,
        plan: &Arc<Plan>,
        columns: Range<usize>,
        deviates: &Cell<bool>,
    ) -> Result<Intermediate, SourceError> {
        let (placement, width) = (self.source.placement(), columns.len());
        let mut reader = ReadAhead::new(placement.block_range(sbn)?, |offset, out: &mut [u8]| {
            let is_changed = self.source.read_checked_at(offset, out)?;
            deviates.set(deviates.get() || is_changed);
            Ok::<(), SourceError>(())
        });
        let read = |esi: Esi, out: &mut [u8]| {
            for piece in placement.column_pieces(sbn, esi, columns.clone())? {
                if let Some(part) = out.get_mut(piece.in_columns) {
                    reader.read_exact_at(piece.in_object, part)?;
                }
            }
            Ok(())
        };
        plan.execute(width, read, self.store.scratch_memory())
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
