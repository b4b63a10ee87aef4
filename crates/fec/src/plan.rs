//! Plans: made on ids, executed on bytes.

use crate::bytes::kernel::InstructionSet;
use crate::bytes::line::{LINE, MAX_STRIPE_LINES};
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::loading::{self, Load, LoadError, Loader, SymbolSource};
use crate::bytes::stripes::{Scratch, Stripes};
use crate::codes::shared::csr::Lists;
use crate::ids::Esi;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

mod cache;
mod intermediate;
mod recovered;
#[cfg(test)]
mod tests;

pub(crate) use cache::Key;
pub use cache::PlanCache;
pub use intermediate::Intermediate;
pub use recovered::Recovered;

/// How to compute a source block's lost symbols, or all its intermediate symbols, from certain
/// encoding symbols: a straight-line program, made on ids alone.
///
/// A plan is immutable and does not depend on the size of symbols. It serves all blocks of which
/// the same symbols are available. A receiver calls [`recover`](Self::recover), a sender
/// [`execute`](Self::execute). Both take
///
/// * `width`: the bytes of a symbol, or of a slice of it. The codes are linear in every byte
///   position, so a caller that is short of memory can make several passes over parts of the
///   symbols. For
///   [`ReedSolomonCode::Cauchy16`](crate::codes::reed_solomon::ReedSolomonCode::Cauchy16) two bytes
///   are one position, so there the slice starts and ends at an even byte.
/// * `source`: the bytes of the [`inputs`](Self::inputs), each of which is requested once, in
///   order. It is a closure that reads a symbol, or [`Lent`](crate::Lent) symbols that are in
///   memory.
/// * `scratch`: memory of an earlier block, which saves the time to allocate and to clear it. It is
///   dropped after an error.
pub struct Plan {
    ids: PlanIds,
    program: Box<dyn Program>,
}

/// The symbols that a plan reads and computes.
pub(crate) struct PlanIds {
    /// `k`.
    pub(crate) source_symbols: u32,
    /// Encoding symbols that are read, ascending.
    pub(crate) inputs: Vec<Esi>,
    /// Source symbols that are not among them, ascending.
    pub(crate) lost: Vec<Esi>,
}

impl PlanIds {
    /// The ids of a block whose source symbols are all available.
    pub(crate) fn of_source(source_symbols: u32) -> Self {
        let inputs = (0..source_symbols).map(Esi).collect();
        Self { source_symbols, inputs, lost: Vec::new() }
    }
}

/// The operations of a plan on bytes. Each code implements it on its page.
pub(crate) trait Program: Send + Sync {
    /// Bytes that `execute` allocates for symbols of `width` bytes.
    fn memory(&self, ids: &PlanIds, width: usize) -> usize;

    /// Computes the intermediate symbols.
    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError>;

    /// Writes encoding symbols of `width` bytes, computed from intermediate symbols, one after
    /// another into `out`; zeros for symbols that the code does not have.
    fn write_symbols(&self, ids: &PlanIds, symbols: Rows<'_>, esis: &[Esi], out: &mut [u8]);

    /// The transpose of `execute` and `write_symbols`: how weighted sums of encoding symbols are
    /// combined from the inputs. A row for each input, in order. `None` if the code multiplies
    /// elements larger than an octet.
    fn contributions(&self, ids: &PlanIds, sums: Weighted<'_>) -> Option<OctetRows>;

    /// For each of `esis`, the rows of the result of `execute` whose sum it is. `None` if symbols
    /// of this code are computed in other ways.
    fn sums(&self, _ids: &PlanIds, _esis: &[Esi]) -> Option<Lists> {
        None
    }

    /// Bytes that `recover` allocates for symbols of `width` bytes.
    fn recovery_memory(&self, ids: &PlanIds, width: usize) -> usize {
        self.memory(ids, width)
    }

    /// Computes what `write_lost` needs: the intermediate symbols, or fewer if the code has a
    /// shorter computation.
    fn recover(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        self.execute(ids, run)
    }

    /// Writes lost symbols, computed from the result of `recover`, one after another into `out`.
    fn write_lost(&self, ids: &PlanIds, symbols: Rows<'_>, lost: Range<usize>, out: &mut [u8]) {
        self.write_symbols(ids, symbols, &ids.lost[lost], out);
    }
}

/// The rows that encoding symbols are sums of: the result of [`Plan::sums`].
#[derive(Debug)]
pub struct SymbolSums(Lists);

impl SymbolSums {
    /// The rows of each symbol.
    pub fn rows(&self) -> impl Iterator<Item = &[u32]> {
        self.0.iter()
    }
}

/// The inputs of a run of a program.
pub(crate) struct Run<'r> {
    pub(crate) instructions: InstructionSet,
    pub(crate) width: usize,
    pub(crate) scratch: Scratch,
    pub(crate) source: &'r mut dyn Load,
}

impl Run<'_> {
    /// `rows` rows, with each symbol of these ESIs loaded into the row beside it, and zeros where
    /// there is no ESI.
    pub(crate) fn load(
        self,
        rows: usize,
        mut inputs: impl Iterator<Item = (Option<Esi>, usize)>,
    ) -> Result<Stripes, LoadError> {
        let mut symbols = Stripes::new(self.scratch, rows, self.width);
        self.source.load(self.instructions, &mut symbols, &mut inputs)?;
        Ok(symbols)
    }
}

/// The result of a program.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'r> {
    pub(crate) instructions: InstructionSet,
    /// Bytes of a symbol.
    pub(crate) width: usize,
    pub(crate) symbols: &'r Stripes,
}

/// Sums of encoding symbols.
#[derive(Clone, Copy)]
pub(crate) struct Weighted<'w> {
    pub(crate) instructions: InstructionSet,
    pub(crate) esis: &'w [Esi],
    /// A row for each of `esis`: its factor in each sum.
    pub(crate) weights: &'w OctetRows,
}

impl Weighted<'_> {
    /// The contributions of `rows` rows, if each symbol is the sum of these of them.
    pub(crate) fn of_rows(&self, rows: usize, terms: &Lists) -> OctetRows {
        let mut contributions = OctetRows::of_lines(rows, self.weights.lines);
        for (index, terms) in terms.iter().enumerate() {
            for &row in terms {
                contributions.add(self.instructions, row as usize, 1, self.weights.row(index));
            }
        }
        contributions
    }
}

/// Bytes of `rows` rows and of `scratch_rows` more of one stripe, for symbols of `width` bytes of
/// which `inputs` are loaded.
pub(crate) fn memory(rows: usize, scratch_rows: usize, inputs: usize, width: usize) -> usize {
    let lines = width.div_ceil(LINE);
    let rows = rows * lines + scratch_rows * lines.min(MAX_STRIPE_LINES);
    rows * LINE + loading::memory(inputs, width)
}

impl Plan {
    pub(crate) fn new(ids: PlanIds, program: impl Program + 'static) -> Self {
        Self { ids, program: Box::new(program) }
    }

    /// `k`: source symbols of the block.
    pub fn source_symbols(&self) -> u32 {
        self.ids.source_symbols
    }

    /// The encoding symbols that the plan reads, ascending. All of them were pushed.
    pub fn inputs(&self) -> &[Esi] {
        &self.ids.inputs
    }

    /// The source symbols that were not received, ascending: a receiver has to write them. If there
    /// are none, a receiver has nothing to execute.
    pub fn lost(&self) -> &[Esi] {
        &self.ids.lost
    }

    /// Bytes that [`execute`](Self::execute) allocates for symbols of `width` bytes, and that the
    /// [`Intermediate`] it returns keeps. If the expensive part of the plan has not been made yet,
    /// this makes it first.
    pub fn memory(&self, width: usize) -> usize {
        self.program.memory(&self.ids, width)
    }

    /// Computes the intermediate symbols, from which every encoding symbol can be made.
    ///
    /// # Errors
    /// The first error of `source`.
    pub fn execute<'s, S: SymbolSource<'s>>(
        self: &Arc<Self>,
        width: usize,
        source: S,
        scratch: Scratch,
    ) -> Result<Intermediate, S::Error> {
        self.execute_with(InstructionSet::best(), width, source, scratch)
    }

    pub(crate) fn execute_with<'s, S: SymbolSource<'s>>(
        self: &Arc<Self>,
        instructions: InstructionSet,
        width: usize,
        source: S,
        scratch: Scratch,
    ) -> Result<Intermediate, S::Error> {
        let mut source = Loader::new(source);
        let run = Run { instructions, width, scratch, source: &mut source };
        let symbols = self.program.execute(&self.ids, run);
        let symbols = symbols.map_err(|error| source.error(error))?;
        Ok(Intermediate { plan: Arc::clone(self), instructions, width, symbols })
    }

    /// How sums of encoding symbols are combined from the [`inputs`](Self::inputs): a row for each,
    /// in order.
    pub(crate) fn contributions(&self, sums: Weighted<'_>) -> Option<OctetRows> {
        self.program.contributions(&self.ids, sums)
    }

    /// For each of `esis`, the [rows](Intermediate::read_row) whose sum (exclusive or) is the
    /// symbol: a caller that stores the rows elsewhere needs only these. `None` if symbols of this
    /// code are computed in other ways.
    pub fn sums(&self, esis: &[Esi]) -> Option<SymbolSums> {
        self.program.sums(&self.ids, esis).map(SymbolSums)
    }

    /// Bytes that [`recover`](Self::recover) allocates for symbols of `width` bytes, and that the
    /// [`Recovered`] it returns keeps.
    pub fn recovery_memory(&self, width: usize) -> usize {
        self.program.recovery_memory(&self.ids, width)
    }

    /// Computes the [`lost`](Self::lost) symbols, for a receiver. This may take far less time than
    /// [`execute`](Self::execute), and less memory.
    ///
    /// # Errors
    /// The first error of `source`.
    pub fn recover<'s, S: SymbolSource<'s>>(
        self: &Arc<Self>,
        width: usize,
        source: S,
        scratch: Scratch,
    ) -> Result<Recovered, S::Error> {
        self.recover_with(InstructionSet::best(), width, source, scratch)
    }

    pub(crate) fn recover_with<'s, S: SymbolSource<'s>>(
        self: &Arc<Self>,
        instructions: InstructionSet,
        width: usize,
        source: S,
        scratch: Scratch,
    ) -> Result<Recovered, S::Error> {
        let mut source = Loader::new(source);
        let run = Run { instructions, width, scratch, source: &mut source };
        let symbols = self.program.recover(&self.ids, run);
        let symbols = symbols.map_err(|error| source.error(error))?;
        Ok(Recovered { plan: Arc::clone(self), instructions, width, symbols })
    }
}

impl core::fmt::Debug for Plan {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Plan")
            .field("source_symbols", &self.ids.source_symbols)
            .field("inputs", &self.ids.inputs.len())
            .field("lost", &self.ids.lost.len())
            .finish_non_exhaustive()
    }
}
