//! Plans: made on ids, executed on bytes.

use crate::kernel::InstructionSet;
use crate::raptorq::{self, Params, Program};
use crate::stripes::{LINE, MAX_STRIPE_LINES, Stripes};
use crate::{BlockLengthError, Encoder, Esi, FecScheme};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How to compute a source block's intermediate symbols from certain encoding symbols: a
/// straight-line program, made on ids alone.
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
enum Code {
    /// Nothing: the intermediate symbols are the source symbols.
    NoCode,
    RaptorQ {
        params: Params,
        /// Made when first executed if every source symbol is at hand: a receiver does not need it
        /// then.
        program: OnceLock<Arc<Program>>,
    },
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
        let code = Code::RaptorQ { params, program };
        Self { source_symbols, inputs, lost: Vec::new(), code }
    }

    /// Source symbols `lost`, ascending, are not at hand.
    pub(crate) fn raptorq(source_symbols: u32, lost: Vec<Esi>, program: Program) -> Self {
        let params = *program.params();
        let inputs = program
            .inputs()
            .filter_map(|(isi, _)| raptorq::esi_of(&params, source_symbols, isi))
            .collect();
        let code = Code::RaptorQ { params, program: OnceLock::from(Arc::new(program)) };
        Self { source_symbols, inputs, lost, code }
    }

    /// `k`: source symbols of the block.
    pub fn source_symbols(&self) -> u32 {
        self.source_symbols
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

    /// Bytes that [`execute`](Self::execute) allocates for symbols of `width` bytes. The
    /// [`Intermediate`] it returns keeps nearly all of them while `width` is large.
    pub fn memory(&self, width: usize) -> usize {
        let lines = width.div_ceil(LINE);
        let (rows, scratch_rows) = match &self.code {
            Code::NoCode => (self.source_symbols as usize, 0),
            Code::RaptorQ { params, program } => {
                (params.l as usize, full_program(params, program).scratch_rows())
            }
        };
        (rows * lines + scratch_rows * lines.min(MAX_STRIPE_LINES)) * LINE + width
    }

    /// Computes the intermediate symbols of `width` columns: of whole symbols, or of any slice of
    /// their bytes (the codes are linear in every byte position, so a caller short of memory can
    /// make several passes over parts of the symbols).
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
        self.execute_with(InstructionSet::best(), width, load)
    }

    pub(crate) fn execute_with<E>(
        self: &Arc<Self>,
        instructions: InstructionSet,
        width: usize,
        mut load: impl FnMut(Esi, &mut [u8]) -> Result<(), E>,
    ) -> Result<Intermediate, E> {
        let mut bounce = vec![0; width];
        let mut load_into = |symbols: &mut Stripes, esi: Esi, row: usize| {
            bounce.fill(0);
            load(esi, &mut bounce)?;
            symbols.write_row(row, &bounce);
            Ok(())
        };
        let symbols = match &self.code {
            Code::NoCode => {
                let rows = self.source_symbols as usize;
                let mut symbols = Stripes::new(rows, width, MAX_STRIPE_LINES);
                for &esi in &self.inputs {
                    load_into(&mut symbols, esi, esi.0 as usize)?;
                }
                symbols
            }
            Code::RaptorQ { params, program } => {
                let program = full_program(params, program);
                let rows = params.l as usize;
                let mut symbols = Stripes::new(rows, width, raptorq::stripe_lines(params));
                for (isi, row) in program.inputs() {
                    // Padding symbols are zero and have no ESI.
                    if let Some(esi) = raptorq::esi_of(params, self.source_symbols, isi) {
                        load_into(&mut symbols, esi, row)?;
                    }
                }
                program.run(instructions, &mut symbols);
                symbols
            }
        };
        Ok(Intermediate { plan: Arc::clone(self), instructions, symbols })
    }
}

/// The program of a plan; of a full block if it was not made yet.
fn full_program<'a>(params: &Params, program: &'a OnceLock<Arc<Program>>) -> &'a Arc<Program> {
    program.get_or_init(|| Arc::new(raptorq::full_program(params)))
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
    symbols: Stripes,
}

impl Intermediate {
    /// The plan that they were computed by.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }
}

impl Encoder for Intermediate {
    fn width(&self) -> usize {
        self.symbols.width()
    }

    fn write_symbol(&self, esi: Esi, out: &mut [u8]) {
        self.write_symbols(&[esi], out);
    }

    fn write_symbols(&self, esis: &[Esi], out: &mut [u8]) {
        let width = self.width();
        assert_eq!(out.len(), esis.len() * width, "one width of bytes for each symbol");
        match &self.plan.code {
            Code::NoCode => {
                for (&esi, out) in esis.iter().zip(out.chunks_exact_mut(width.max(1))) {
                    if esi.0 < self.plan.source_symbols {
                        self.symbols.read_row(esi.0 as usize, out);
                    } else {
                        out.fill(0);
                    }
                }
            }
            Code::RaptorQ { params, .. } => {
                let k = self.plan.source_symbols;
                let isis = esis.iter().map(|&esi| raptorq::isi_of(params, k, esi));
                raptorq::encode(params, &self.symbols, isis, self.instructions, out);
            }
        }
    }
}

impl std::fmt::Debug for Intermediate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Intermediate")
            .field("plan", &self.plan)
            .field("width", &self.symbols.width())
            .finish_non_exhaustive()
    }
}

/// Plans of full blocks, which encoders need, shared among blocks of equal length: the blocks of an
/// object have at most two lengths, and the work of planning is that of some hundred symbols at
/// least.
///
/// Holds a limited number of plans and forgets the one that was used least recently. Threads that
/// ask for the same plan at once wait for one of them to make it.
pub struct PlanCache {
    limit: usize,
    plans: Mutex<Cached>,
}

/// Programs by `K'`; No-Code needs none.
#[derive(Default)]
struct Cached {
    clock: u64,
    programs: BTreeMap<u32, Entry>,
}

struct Entry {
    last_used: u64,
    program: Arc<OnceLock<Arc<Program>>>,
}

impl PlanCache {
    /// An empty cache for the plans of `limit` different block lengths, at least one. A plan takes
    /// about 80 bytes per source symbol: 4.5 MB for the longest blocks.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), plans: Mutex::default() }
    }

    /// The plan of a block of `source_symbols` that are all at hand, ready to be executed.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no such block.
    pub fn source_plan(
        &self,
        scheme: FecScheme,
        source_symbols: u32,
    ) -> Result<Arc<Plan>, BlockLengthError> {
        scheme.check_block_length(source_symbols)?;
        Ok(Arc::new(match scheme {
            FecScheme::NoCode { .. } => Plan::no_code(source_symbols),
            FecScheme::RaptorQ { .. } => {
                let params = Params::covering(source_symbols);
                let cell = self.program_cell(params.k_prime);
                let program = Arc::clone(full_program(&params, &cell));
                Plan::raptorq_source(source_symbols, OnceLock::from(program))
            }
        }))
    }

    /// Where the program for `k_prime` is, or will be: planning itself happens outside the lock.
    fn program_cell(&self, k_prime: u32) -> Arc<OnceLock<Arc<Program>>> {
        let mut cached = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        cached.clock += 1;
        let now = cached.clock;
        if cached.programs.len() >= self.limit && !cached.programs.contains_key(&k_prime) {
            let oldest = cached.programs.iter().min_by_key(|(_, entry)| entry.last_used);
            if let Some(oldest) = oldest.map(|(&k_prime, _)| k_prime) {
                cached.programs.remove(&oldest);
            }
        }
        let entry = cached
            .programs
            .entry(k_prime)
            .or_insert_with(|| Entry { last_used: now, program: Arc::default() });
        entry.last_used = now;
        Arc::clone(&entry.program)
    }
}

impl std::fmt::Debug for PlanCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlanCache").field("limit", &self.limit).finish_non_exhaustive()
    }
}
