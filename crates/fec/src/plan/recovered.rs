//! The symbols that were lost, and nothing else.

use super::{Intermediate, Plan};
use crate::bytes::kernel::InstructionSet;
use crate::bytes::stripes::{LINE, Lender, Memory, Source, Stripes, loading_memory};
use crate::code::Encoder;
use crate::ids::Esi;
use std::ops::Range;
use std::sync::Arc;

impl Plan {
    /// Bytes that [`recover`](Self::recover) allocates for symbols of `width` bytes, and that the
    /// [`Recovered`] it returns keeps.
    pub fn recovery_memory(&self, width: usize) -> usize {
        match self.direct() {
            Some(direct) => {
                let rows = direct.rows() * width.div_ceil(LINE);
                rows * LINE + loading_memory(self.inputs.len(), width)
            }
            None => self.memory(width),
        }
    }

    /// Computes the [`lost`](Self::lost) symbols of `width` columns: what a receiver wants. That may
    /// be far cheaper than [`execute`](Self::execute), which computes what any symbol can be made
    /// of, and takes less memory.
    ///
    /// `load` is called once for each of [`inputs`](Self::inputs), in order, with `width` bytes of
    /// zeros to put the symbol's bytes into.
    ///
    /// # Errors
    /// The first error of `load`.
    pub fn recover<E>(
        self: &Arc<Self>,
        width: usize,
        load: impl FnMut(Esi, &mut [u8]) -> Result<(), E>,
    ) -> Result<Recovered, E> {
        self.recover_in(Memory::default(), width, load)
    }

    /// [`recover`](Self::recover) in memory that has served another block, which saves the time to
    /// allocate and to clear it.
    ///
    /// # Errors
    /// The first error of `load`; the memory is gone then.
    pub fn recover_in<E>(
        self: &Arc<Self>,
        memory: Memory,
        width: usize,
        load: impl FnMut(Esi, &mut [u8]) -> Result<(), E>,
    ) -> Result<Recovered, E> {
        self.recover_with(InstructionSet::best(), memory, width, load)
    }

    /// [`recover_in`](Self::recover_in) for a caller who has the symbols in memory: see
    /// [`execute_from`](Self::execute_from).
    pub fn recover_from<'s>(
        self: &Arc<Self>,
        memory: Memory,
        width: usize,
        symbol: impl Fn(Esi) -> &'s [u8],
    ) -> Recovered {
        let Ok(symbols) = self.recover_with(InstructionSet::best(), memory, width, Lender(symbol));
        symbols
    }

    pub(crate) fn recover_with<'s, S: Source<'s>>(
        self: &Arc<Self>,
        instructions: InstructionSet,
        memory: Memory,
        width: usize,
        source: S,
    ) -> Result<Recovered, S::Error> {
        let Some(direct) = self.direct() else {
            let symbols = self.execute_with(instructions, memory, width, source)?;
            return Ok(Recovered(Way::Intermediate(symbols)));
        };
        let symbols = direct.run(instructions, memory, width, &self.inputs, source)?;
        Ok(Recovered(Way::Direct { plan: Arc::clone(self), symbols }))
    }
}

/// The lost symbols of a source block, or some columns of them.
pub struct Recovered(Way);

/// How the symbols were computed, and where they are.
enum Way {
    Intermediate(Intermediate),
    Direct { plan: Arc<Plan>, symbols: Stripes },
}

impl Recovered {
    /// The plan that they were computed by.
    pub fn plan(&self) -> &Arc<Plan> {
        match &self.0 {
            Way::Intermediate(symbols) => symbols.plan(),
            Way::Direct { plan, .. } => plan,
        }
    }

    /// Bytes of a symbol that are here.
    pub fn width(&self) -> usize {
        match &self.0 {
            Way::Intermediate(symbols) => symbols.width(),
            Way::Direct { symbols, .. } => symbols.width(),
        }
    }

    /// Writes some of the lost symbols, by their indices in [`Plan::lost`], one after the other into
    /// `out`.
    ///
    /// # Panics
    /// If not so many were lost, or `out` is not `lost.len() * width` bytes long.
    pub fn write_symbols(&self, lost: Range<usize>, out: &mut [u8]) {
        match &self.0 {
            Way::Intermediate(symbols) => {
                symbols.write_symbols(&symbols.plan().lost()[lost], out);
            }
            Way::Direct { plan, symbols } => {
                let width = symbols.width();
                assert!(lost.end <= plan.lost().len(), "{lost:?} of {}", plan.lost().len());
                assert_eq!(out.len(), lost.len() * width, "one width of bytes for each symbol");
                let rows = lost.filter_map(|index| Some(plan.direct()?.row(index)));
                for (row, out) in rows.zip(out.chunks_exact_mut(width.max(1))) {
                    symbols.read_row(row, out);
                }
            }
        }
    }

    /// The memory, for [`Plan::recover_in`].
    pub fn into_memory(self) -> Memory {
        match self.0 {
            Way::Intermediate(symbols) => symbols.into_memory(),
            Way::Direct { symbols, .. } => symbols.into_memory(),
        }
    }
}

impl std::fmt::Debug for Recovered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recovered")
            .field("plan", self.plan())
            .field("width", &self.width())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::raptorq::{DirectPlan, FullBlock, Params};
    use crate::oti::FecScheme;
    use crate::plan::PlanCache;
    use std::convert::Infallible;

    const RAPTORQ: FecScheme = FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };

    fn execute(plan: &Arc<Plan>, width: usize, symbol: impl Fn(Esi) -> Vec<u8>) -> Intermediate {
        let load = |esi, out: &mut [u8]| {
            out.copy_from_slice(&symbol(esi));
            Ok::<_, Infallible>(())
        };
        plan.execute(width, load).unwrap_or_else(|never| match never {})
    }

    /// An encoder of a block whose symbols do not look alike.
    fn encoder(k: u32, width: usize) -> Intermediate {
        let plan = PlanCache::new(1).source_plan(RAPTORQ, k).unwrap();
        let byte = |esi: Esi, at: usize| (esi.0 as usize * 31 + at * 7 + at / 50) as u8;
        execute(&plan, width, |esi| (0..width).map(|at| byte(esi, at)).collect())
    }

    fn symbol(encoder: &Intermediate, esi: Esi) -> Vec<u8> {
        let mut out = vec![0; encoder.width()];
        encoder.write_symbol(esi, &mut out);
        out
    }

    /// A direct plan for `lost` symbols in the middle of `k`, with the first repair symbols that do.
    fn direct(instructions: InstructionSet, k: u32, lost: u32) -> Arc<Plan> {
        let full = FullBlock::new(Params::covering(k));
        let lost: Vec<Esi> = ((k - lost) / 2..(k + lost) / 2).map(Esi).collect();
        for start in (k..).step_by(lost.len()) {
            let count = lost.len() as u32;
            let repair = || (start..start + count).map(Esi);
            let direct = DirectPlan::new(instructions, &full, k, &lost, repair());
            if let Some(direct) = direct {
                return Arc::new(Plan::raptorq_direct(k, lost, repair(), direct));
            }
        }
        unreachable!("symbols enough")
    }

    #[test]
    fn every_instruction_set_recovers_directly() {
        for (k, lost) in [(1, 1), (10, 4), (101, 63), (300, 64), (300, 65), (300, 160)] {
            for width in [1, 64, 100, 257, 1300] {
                let sent = encoder(k, width);
                for instructions in InstructionSet::available() {
                    let plan = direct(instructions, k, lost);
                    assert_eq!(plan.inputs().len(), k as usize);
                    let load = |esi, out: &mut [u8]| {
                        assert!(out.iter().all(|&byte| byte == 0), "zeros to put the symbol into");
                        sent.write_symbol(esi, out);
                        Ok::<_, Infallible>(())
                    };
                    let recovered = plan
                        .recover_with(instructions, Memory::default(), width, load)
                        .unwrap_or_else(|never| match never {});
                    let mut out = vec![0xAA; lost as usize * width];
                    recovered.write_symbols(0..lost as usize, &mut out);
                    for (&esi, out) in plan.lost().iter().zip(out.chunks(width)) {
                        assert!(out == symbol(&sent, esi), "{instructions:?}, K = {k}, {esi:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn lent_symbols_are_as_good_as_written_ones() {
        let (k, width) = (300, 1300);
        let sent = encoder(k, width);
        let symbols: Vec<Vec<u8>> = (0..2 * k).map(|esi| symbol(&sent, Esi(esi))).collect();
        for lost in [20, 150] {
            let scheme = RAPTORQ;
            let mut decoder = scheme.decoder(k).unwrap();
            for esi in (lost..k + lost + 1).map(Esi) {
                decoder.push(esi).unwrap();
            }
            let crate::code::Progress::Solved(plan) = decoder.solve(crate::code::Work::UNBOUNDED)
            else {
                panic!("symbols enough")
            };
            let lend = |esi: Esi| symbols[esi.0 as usize].as_slice();
            let recovered = plan.recover_from(Memory::default(), width, lend);
            let block = plan.execute_from(recovered.into_memory(), width, lend);
            for esi in [0, lost - 1, lost, k, 2 * k - 1].map(Esi) {
                assert!(symbol(&block, esi) == symbols[esi.0 as usize], "{lost} lost: {esi:?}");
            }
        }
    }

    #[test]
    fn a_direct_plan_gives_the_intermediate_symbols_too() {
        let (k, width) = (300, 100);
        let sent = encoder(k, width);
        let plan = direct(InstructionSet::best(), k, 20);
        let here = execute(&plan, width, |esi| symbol(&sent, esi));
        for esi in [0, 139, 140, 159, 160, 299, 300, 9_999_999].map(Esi) {
            assert_eq!(symbol(&here, esi), symbol(&sent, esi), "{esi:?}");
        }
    }

    #[test]
    fn memory_of_another_recovery_makes_no_difference() {
        let mut memory = Memory::default();
        for (k, lost, width) in [(300, 100, 500), (10, 4, 1300), (50, 20, 1)] {
            let sent = encoder(k, width);
            let plan = direct(InstructionSet::best(), k, lost);
            let load = |esi, out: &mut [u8]| {
                sent.write_symbol(esi, out);
                Ok::<_, Infallible>(())
            };
            let Ok(recovered) = plan.recover_in(memory, width, load);
            let mut out = vec![0; 2 * width];
            recovered.write_symbols(1..3, &mut out);
            assert!(out[..width] == symbol(&sent, plan.lost()[1]));
            assert!(out[width..] == symbol(&sent, plan.lost()[2]));
            memory = recovered.into_memory();
        }
    }

    #[test]
    fn an_error_while_loading_is_handed_on() {
        let plan = direct(InstructionSet::best(), 100, 3);
        let mut loaded = 0;
        let failed = plan.recover(10, |esi, _| {
            loaded += 1;
            if esi == Esi(100) { Err("unreadable") } else { Ok(()) }
        });
        assert_eq!(failed.map(|_| ()), Err("unreadable"));
        assert_eq!(loaded, 98, "the first repair symbol, and nothing after an error");
    }

    #[test]
    fn a_direct_recovery_takes_less_memory_than_the_block() {
        let plan = direct(InstructionSet::best(), 300, 20);
        assert_eq!(plan.recovery_memory(1280), (64 + 2 * 20 + 16) * 1280);
        assert!(plan.memory(1280) > 300 * 1280);
        let source = Plan::source(RAPTORQ, 300).unwrap();
        assert_eq!(source.recovery_memory(1280), source.memory(1280));
    }
}
