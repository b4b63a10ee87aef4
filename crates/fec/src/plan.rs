//! Plans: made on ids, executed on bytes.

use crate::bytes::kernel::InstructionSet;
use crate::bytes::stripes::{
    LINE, Lender, MAX_STRIPE_LINES, Memory, Source, Stripes, load, loading_memory,
};
use crate::bytes::xor_program::write_sums;
use crate::code::{BlockLengthError, Encoder};
use crate::codes::dispersal::Dispersal;
use crate::codes::lt;
use crate::codes::raptorq::{self, DirectPlan, Params, Program};
use crate::codes::reed_solomon::ReedSolomonCode;
use crate::codes::shared::linear::Linear;
use crate::codes::shared::linear16::{self, Linear16};
use crate::codes::tornado::{self, Graph};
use crate::ids::Esi;
use crate::oti::FecScheme;
use std::sync::{Arc, OnceLock};

mod by_stripe;
mod cache;
mod recovered;

pub use cache::PlanCache;
pub use recovered::Recovered;

/// How to compute a source block's lost symbols, or all its intermediate symbols, from certain
/// encoding symbols: a straight-line program, made on ids alone.
///
/// It is immutable, knows nothing of symbol sizes, and one plan serves any number of blocks of which
/// the same symbols are at hand.
pub struct Plan {
    source_symbols: u32,
    inputs: Vec<Esi>,
    lost: Vec<Esi>,
    code: Code,
}

/// What a plan does, code by code.
#[allow(clippy::enum_variant_names, reason = "No-Code is the code's name")]
enum Code {
    /// Nothing: the intermediate symbols are the source symbols.
    NoCode,
    RaptorQ {
        params: Params,
        /// Made when first executed if every source symbol is at hand, or if there is a direct way
        /// to those that are not: a receiver does not need it then.
        program: OnceLock<Arc<Program>>,
        direct: Option<DirectPlan>,
    },
    Tornado(tornado::Recovery),
    Lt(lt::Recovery),
    Linear(Linear),
    Linear16(Linear16),
}

impl Plan {
    /// The plan of a block of `source_symbols` that are all at hand: an encoder's.
    ///
    /// What is expensive about it is done when it is executed first; [`PlanCache`] shares that among
    /// blocks.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn source(scheme: FecScheme, source_symbols: u32) -> Result<Self, BlockLengthError> {
        scheme.check_block_length(source_symbols)?;
        Ok(match scheme {
            FecScheme::NoCode { .. } => Self::no_code(source_symbols),
            FecScheme::RaptorQ { .. } => Self::raptorq_source(source_symbols, OnceLock::new()),
            FecScheme::Tornado { code, .. } => {
                Self::tornado_source(code.shared_graph(source_symbols))
            }
            FecScheme::Lt { code, .. } => Self::lt_source(code, source_symbols)?,
            FecScheme::ReedSolomon { code, .. } => {
                Self::reed_solomon(code, source_symbols, Vec::new(), &[])
            }
        })
    }

    pub(crate) fn no_code(source_symbols: u32) -> Self {
        let inputs = (0..source_symbols).map(Esi).collect();
        Self { source_symbols, inputs, lost: Vec::new(), code: Code::NoCode }
    }

    /// Every source symbol is at hand.
    pub(crate) fn raptorq_source(source_symbols: u32, program: OnceLock<Arc<Program>>) -> Self {
        let params = Params::covering(source_symbols);
        let inputs = (0..source_symbols).map(Esi).collect();
        let code = Code::RaptorQ { params, program, direct: None };
        Self { source_symbols, inputs, lost: Vec::new(), code }
    }

    /// Source symbols `lost`, ascending, are replaced by the repair symbols `repair`, ascending.
    pub(crate) fn raptorq_direct(
        source_symbols: u32,
        lost: Vec<Esi>,
        repair: impl Iterator<Item = Esi>,
        direct: DirectPlan,
    ) -> Self {
        let params = Params::covering(source_symbols);
        let at_hand = (0..source_symbols).map(Esi).filter(|esi| lost.binary_search(esi).is_err());
        let inputs = at_hand.chain(repair).collect();
        let code = Code::RaptorQ { params, program: OnceLock::new(), direct: Some(direct) };
        Self { source_symbols, inputs, lost, code }
    }

    /// Source symbols `lost`, ascending, are not at hand.
    pub(crate) fn raptorq(source_symbols: u32, lost: Vec<Esi>, program: Program) -> Self {
        let params = *program.params();
        let inputs = program
            .inputs()
            .filter_map(|(isi, _)| raptorq::esi_of(&params, source_symbols, isi))
            .collect();
        let program = OnceLock::from(Arc::new(program));
        let code = Code::RaptorQ { params, program, direct: None };
        Self { source_symbols, inputs, lost, code }
    }

    /// Every source symbol is at hand.
    fn tornado_source(graph: Arc<Graph>) -> Self {
        let inputs = (0..graph.source_symbols()).map(Esi).collect();
        Self::tornado(tornado::Recovery::of_source(graph), inputs, Vec::new())
    }

    /// Source symbols `lost`, ascending, are not at hand.
    pub(crate) fn tornado(recovery: tornado::Recovery, inputs: Vec<Esi>, lost: Vec<Esi>) -> Self {
        let source_symbols = recovery.source_symbols();
        Self { source_symbols, inputs, lost, code: Code::Tornado(recovery) }
    }

    /// Every source symbol is at hand.
    fn lt_source(code: lt::Lt, source_symbols: u32) -> Result<Self, BlockLengthError> {
        let inputs = (0..source_symbols).map(Esi).collect();
        let recovery = lt::Recovery::of_source(code, source_symbols)?;
        Ok(Self::lt(source_symbols, recovery, inputs, Vec::new()))
    }

    /// Source symbols `lost`, ascending, are not at hand.
    pub(crate) fn lt(
        source_symbols: u32,
        recovery: lt::Recovery,
        inputs: Vec<Esi>,
        lost: Vec<Esi>,
    ) -> Self {
        Self { source_symbols, inputs, lost, code: Code::Lt(recovery) }
    }

    /// Source symbols `lost`, ascending, are replaced by as many repair symbols, ascending.
    pub(crate) fn reed_solomon(
        code: ReedSolomonCode,
        source_symbols: u32,
        lost: Vec<u32>,
        repair: &[u32],
    ) -> Self {
        let at_hand = (0..source_symbols).filter(|esi| lost.binary_search(esi).is_err());
        let inputs = at_hand.chain(repair.iter().copied()).map(Esi).collect();
        let lost_esis = lost.iter().copied().map(Esi).collect();
        let code = match code {
            ReedSolomonCode::Cauchy16 => {
                Code::Linear16(Linear16::new(source_symbols, lost, repair))
            }
            ReedSolomonCode::Rfc5510 | ReedSolomonCode::SmallBlock | ReedSolomonCode::Cauchy => {
                let recovery = code.interpolation(source_symbols, &lost, repair, &lost);
                Code::Linear(Linear::reed_solomon(code, source_symbols, lost, recovery))
            }
        };
        Self { source_symbols, inputs, lost: lost_esis, code }
    }

    /// Rows `rows` hold packets in place of the source symbols `lost`.
    pub(crate) fn dispersal(
        code: Dispersal,
        inputs: Vec<Esi>,
        lost: Vec<Esi>,
        rows: Vec<u32>,
        recovery: Vec<u8>,
    ) -> Self {
        let linear = Linear::dispersal(code, rows, recovery);
        let source_symbols = code.source_symbols();
        Self { source_symbols, inputs, lost, code: Code::Linear(linear) }
    }

    /// `k`: source symbols of the block.
    pub fn source_symbols(&self) -> u32 {
        self.source_symbols
    }

    fn direct(&self) -> Option<&DirectPlan> {
        let Code::RaptorQ { direct, .. } = &self.code else { return None };
        direct.as_ref()
    }

    /// The program of a plan, if it was not made yet: it computes the intermediate symbols from the
    /// inputs.
    fn program<'a>(
        &self,
        params: &Params,
        program: &'a OnceLock<Arc<Program>>,
    ) -> &'a Arc<Program> {
        let make = || raptorq::program_of(params, self.source_symbols, &self.inputs);
        program.get_or_init(|| Arc::new(make()))
    }

    /// The encoding symbols that the plan reads, ascending: some of those that were pushed.
    pub fn inputs(&self) -> &[Esi] {
        &self.inputs
    }

    /// The source symbols that were not received, ascending: what a receiver has to write. If there
    /// are none, a receiver has nothing to execute.
    pub fn lost(&self) -> &[Esi] {
        &self.lost
    }

    /// Bytes that [`execute`](Self::execute) allocates for symbols of `width` bytes, and that the
    /// [`Intermediate`] it returns keeps. Of a plan whose expensive part is not made yet this makes
    /// it first.
    pub fn memory(&self, width: usize) -> usize {
        let lines = width.div_ceil(LINE);
        let (rows, scratch_rows) = match &self.code {
            Code::NoCode => (self.source_symbols as usize, 0),
            Code::RaptorQ { params, program, .. } => {
                (params.l as usize, self.program(params, program).scratch_rows())
            }
            Code::Tornado(recovery) => recovery.rows(),
            Code::Lt(recovery) => recovery.rows(),
            Code::Linear(linear) => (self.source_symbols as usize, linear.scratch_rows()),
            Code::Linear16(linear) => return linear.memory(width) + width,
        };
        let rows = rows * lines + scratch_rows * lines.min(MAX_STRIPE_LINES);
        rows * LINE + loading_memory(self.inputs.len(), width)
    }

    /// Computes the intermediate symbols of `width` columns: of whole symbols, or of any slice of
    /// their bytes (the codes are linear in every byte position, so a caller short of memory can
    /// make several passes over parts of the symbols). Of [`ReedSolomonCode::Cauchy16`] two bytes are
    /// one position, so there the slice starts and ends at an even byte.
    ///
    /// `load` is called once for each of [`inputs`](Self::inputs), in order, with `width` bytes of
    /// zeros to put the symbol's bytes into.
    ///
    /// # Errors
    /// The first error of `load`.
    pub fn execute<E>(
        self: &Arc<Self>,
        width: usize,
        load: impl FnMut(Esi, &mut [u8]) -> Result<(), E>,
    ) -> Result<Intermediate, E> {
        self.execute_in(Memory::default(), width, load)
    }

    /// [`execute`](Self::execute) in memory that has served another block, which saves the time to
    /// allocate and to clear it.
    ///
    /// # Errors
    /// The first error of `load`; the memory is gone then.
    pub fn execute_in<E>(
        self: &Arc<Self>,
        memory: Memory,
        width: usize,
        load: impl FnMut(Esi, &mut [u8]) -> Result<(), E>,
    ) -> Result<Intermediate, E> {
        self.execute_with(InstructionSet::best(), memory, width, load)
    }

    /// [`execute_in`](Self::execute_in) for a caller who has the symbols in memory, which saves the
    /// time to copy them to where `load` is told to put them. `symbol` is called once for each of
    /// [`inputs`](Self::inputs), in order, and gives its `width` bytes; zeros are added to fewer.
    pub fn execute_from<'s>(
        self: &Arc<Self>,
        memory: Memory,
        width: usize,
        symbol: impl Fn(Esi) -> &'s [u8],
    ) -> Intermediate {
        let Ok(symbols) = self.execute_with(InstructionSet::best(), memory, width, Lender(symbol));
        symbols
    }

    pub(crate) fn execute_with<'s, S: Source<'s>>(
        self: &Arc<Self>,
        instructions: InstructionSet,
        memory: Memory,
        width: usize,
        mut source: S,
    ) -> Result<Intermediate, S::Error> {
        let inputs = self.inputs.iter().copied().map(Some);
        let symbols = match &self.code {
            Code::NoCode => {
                let mut symbols = Stripes::new(memory, self.source_symbols as usize, width);
                load(instructions, &mut symbols, inputs.zip(0..), &mut source)?;
                symbols
            }
            Code::RaptorQ { params, program, .. } => {
                let program = self.program(params, program);
                let mut symbols = Stripes::new(memory, params.l as usize, width);
                let esi = |isi| raptorq::esi_of(params, self.source_symbols, isi);
                let inputs = program.inputs().map(|(isi, row)| (esi(isi), row));
                load(instructions, &mut symbols, inputs, &mut source)?;
                program.run(instructions, &mut symbols);
                symbols
            }
            Code::Tornado(recovery) => {
                let mut symbols = Stripes::new(memory, recovery.rows().0, width);
                let rows = recovery.input_rows().iter().map(|&row| row as usize);
                load(instructions, &mut symbols, inputs.zip(rows), &mut source)?;
                recovery.run(instructions, &mut symbols);
                symbols
            }
            Code::Lt(recovery) => {
                let mut symbols = Stripes::new(memory, recovery.rows().0, width);
                load(instructions, &mut symbols, inputs.zip(0..), &mut source)?;
                recovery.run(instructions, &mut symbols);
                symbols
            }
            Code::Linear(linear) => {
                let mut symbols = Stripes::new(memory, self.source_symbols as usize, width);
                load(instructions, &mut symbols, inputs.zip(linear.input_rows()), &mut source)?;
                linear.run(instructions, &mut symbols);
                symbols
            }
            Code::Linear16(linear) => {
                let mut symbols = linear.rows(memory, width);
                let mut symbol = vec![0; width];
                for (&esi, row) in self.inputs.iter().zip(linear.input_rows()) {
                    symbol.fill(0);
                    source.write(esi, &mut symbol)?;
                    linear16::write_symbol(&mut symbols, row, &symbol);
                }
                linear.run(instructions, &mut symbols);
                symbols
            }
        };
        Ok(Intermediate { plan: Arc::clone(self), instructions, width, symbols })
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan")
            .field("source_symbols", &self.source_symbols)
            .field("inputs", &self.inputs.len())
            .field("lost", &self.lost.len())
            .finish_non_exhaustive()
    }
}

/// The intermediate symbols of a block, or some columns of them: an [`Encoder`] for every encoding
/// symbol, received, lost or never sent before.
pub struct Intermediate {
    plan: Arc<Plan>,
    instructions: InstructionSet,
    /// Bytes of a symbol.
    width: usize,
    symbols: Stripes,
}

impl Intermediate {
    /// The plan that they were computed by.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The memory, for [`Plan::execute_in`].
    pub fn into_memory(self) -> Memory {
        self.symbols.into_memory()
    }
}

impl Encoder for Intermediate {
    fn width(&self) -> usize {
        self.width
    }

    fn write_symbol(&self, esi: Esi, out: &mut [u8]) {
        self.write_symbols(&[esi], out);
    }

    fn write_symbols(&self, esis: &[Esi], out: &mut [u8]) {
        let width = self.width();
        assert_eq!(out.len(), esis.len() * width, "one width of bytes for each symbol");
        match &self.plan.code {
            Code::Linear(linear) => linear.encode(self.instructions, &self.symbols, esis, out),
            Code::Linear16(linear) => {
                linear.encode(self.instructions, &self.symbols, width, esis, out);
            }
            Code::NoCode | Code::RaptorQ { .. } | Code::Tornado(_) | Code::Lt(_) => {
                let sums = self.plan.sums(esis).unwrap_or_default();
                write_sums(self.instructions, &self.symbols, &sums, out, width, 0);
            }
        }
    }
}

impl std::fmt::Debug for Intermediate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intermediate")
            .field("plan", &self.plan)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAPTORQ: FecScheme = FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };

    /// Byte `at` of the encoding symbols that tests load.
    fn byte(esi: Esi, at: usize) -> u8 {
        (esi.0 as usize * 31 + at * 7 + at / 50) as u8
    }

    /// The intermediate symbols of the columns `from..from + width`.
    fn columns(plan: &Arc<Plan>, set: InstructionSet, from: usize, width: usize) -> Intermediate {
        let load = |esi, out: &mut [u8]| {
            assert!(out.iter().all(|&byte| byte == 0), "zeros to put the symbol into");
            out.iter_mut().zip(from..).for_each(|(out, at)| *out = byte(esi, at));
            Ok::<_, std::convert::Infallible>(())
        };
        plan.execute_with(set, Memory::default(), width, load)
            .unwrap_or_else(|never| match never {})
    }

    fn symbol(encoder: &Intermediate, esi: u32) -> Vec<u8> {
        let mut out = vec![0xAA; encoder.width()];
        encoder.write_symbol(Esi(esi), &mut out);
        out
    }

    #[test]
    fn instruction_sets_and_widths_make_no_difference() {
        let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
        let whole = columns(&plan, InstructionSet::best(), 0, 1401);
        for set in InstructionSet::available() {
            for width in [0, 1, 63, 64, 65, 319, 320, 321, 640, 1280, 1400, 1401] {
                let encoder = columns(&plan, set, 0, width);
                for esi in [0, 49, 50, 51, 10_000, (1 << 24) - 1] {
                    assert_eq!(symbol(&encoder, esi), symbol(&whole, esi)[..width], "{set:?}");
                }
            }
        }
    }

    #[test]
    fn columns_can_be_done_one_range_after_another() {
        let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
        let whole = columns(&plan, InstructionSet::best(), 0, 1000);
        for (from, to) in [(0, 1), (1, 400), (400, 1000)] {
            let part = columns(&plan, InstructionSet::best(), from, to - from);
            assert_eq!(symbol(&part, 77), symbol(&whole, 77)[from..to]);
        }
    }

    #[test]
    fn many_symbols_are_written_as_each_of_them() {
        let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
        let encoder = columns(&plan, InstructionSet::best(), 0, 1300);
        let esis = [3, 99, 50, 99, 16_000_000];
        let mut out = vec![0xAA; esis.len() * 1300];
        encoder.write_symbols(&esis.map(Esi), &mut out);
        for (esi, out) in esis.into_iter().zip(out.chunks(1300)) {
            assert_eq!(out, symbol(&encoder, esi), "{esi}");
        }
        encoder.write_symbols(&[], &mut []);
    }

    #[test]
    fn memory_of_another_block_makes_no_difference() {
        let cache = PlanCache::new(4);
        let plan = |k| cache.source_plan(RAPTORQ, k).unwrap();
        let load = |esi, out: &mut [u8]| {
            out.iter_mut().zip(0..).for_each(|(out, at)| *out = byte(esi, at));
            Ok::<_, ()>(())
        };
        let mut memory = Memory::default();
        for (k, width) in [(900, 500), (45, 1300), (50, 700), (1, 1), (100, 64)] {
            let fresh = plan(k).execute(width, load).unwrap();
            let used = plan(k).execute_in(memory, width, load).unwrap();
            for esi in [0, k, 1_000_000] {
                assert_eq!(symbol(&used, esi), symbol(&fresh, esi), "K = {k}, T = {width}");
            }
            memory = used.into_memory();
        }
    }

    #[test]
    fn an_error_while_loading_is_handed_on() {
        let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
        let mut loaded = 0;
        let failed = plan.execute(10, |esi, _| {
            loaded += 1;
            if esi == Esi(7) { Err("unreadable") } else { Ok(()) }
        });
        assert_eq!(failed.map(|_| ()), Err("unreadable"));
        assert_eq!(loaded, 8, "nothing is loaded after an error");
    }

    #[test]
    fn memory_is_that_of_the_intermediate_symbols_and_a_stripe() {
        let plan = PlanCache::new(1).source_plan(RAPTORQ, 1002).unwrap();
        let l = Params::covering(1002).l as usize;
        let (narrow, wide) = (plan.memory(64), plan.memory(6400));
        assert!(narrow > 2 * l * 64 && narrow < 3 * l * 64, "{narrow}");
        assert!(wide > l * 6400 && wide < l * 6400 * 11 / 10, "{wide}");
        assert_eq!(plan.memory(0), 0);
    }

    #[test]
    fn a_cache_shares_programs_and_forgets_the_one_used_least_recently() {
        let program = |plan: &Plan| match &plan.code {
            Code::RaptorQ { program, .. } => Arc::clone(program.get().unwrap()),
            _ => panic!("asked for RaptorQ"),
        };
        let cache = PlanCache::new(2);
        let ask = |k| program(&cache.source_plan(RAPTORQ, k).unwrap());
        let first = ask(10);
        assert!(Arc::ptr_eq(&first, &ask(9)), "10 is the K' of both");
        let second = ask(20);
        assert!(Arc::ptr_eq(&first, &ask(10)));
        ask(30);
        assert!(Arc::ptr_eq(&first, &ask(10)), "used since");
        assert!(!Arc::ptr_eq(&second, &ask(20)), "made anew");
        assert!(cache.source_plan(RAPTORQ, 0).is_err());
        assert!(cache.source_plan(RAPTORQ, 56_404).is_err());
    }
}
