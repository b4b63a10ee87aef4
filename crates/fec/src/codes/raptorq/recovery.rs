//! RaptorQ plans on bytes: through the intermediate symbols, or directly to a few lost symbols.

use super::direct::DirectPlan;
use super::params::Params;
use super::program::Program;
use super::{esi_of, isi_of, program_of};
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::bytes::xor_program::write_sums;
use crate::codes::shared::csr::Lists;
use crate::ids::Esi;
use crate::plan::{self, Plan, PlanIds, Rows, Run, Weighted};
use crate::sync::OnceLock;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// The operations of a RaptorQ plan.
pub(super) struct Recovery {
    params: Params,
    /// Made when first executed, if every source symbol is available, or if there is a direct plan:
    /// a receiver does not need it then.
    program: OnceLock<Arc<Program>>,
    direct: Option<DirectPlan>,
}

impl Recovery {
    /// The plan of a block whose source symbols are all available.
    pub(super) fn of_source(source_symbols: u32, program: OnceLock<Arc<Program>>) -> Plan {
        let params = Params::covering(source_symbols);
        Plan::new(PlanIds::of_source(source_symbols), Self { params, program, direct: None })
    }

    /// The plan that replaces source symbols `lost`, ascending, by the repair symbols `repair`,
    /// ascending.
    pub(super) fn directly(
        source_symbols: u32,
        lost: Vec<Esi>,
        repair: impl Iterator<Item = Esi>,
        direct: DirectPlan,
    ) -> Plan {
        let params = Params::covering(source_symbols);
        let received = (0..source_symbols).map(Esi).filter(|esi| lost.binary_search(esi).is_err());
        let inputs = received.chain(repair).collect();
        let ids = PlanIds { source_symbols, inputs, lost };
        Plan::new(ids, Self { params, program: OnceLock::new(), direct: Some(direct) })
    }

    /// The plan of a block that lacks source symbols `lost`, ascending.
    pub(super) fn by_program(source_symbols: u32, lost: Vec<Esi>, program: Program) -> Plan {
        let params = *program.params();
        let inputs =
            program.inputs().filter_map(|(isi, _)| esi_of(&params, source_symbols, isi)).collect();
        let program = OnceLock::from(Arc::new(program));
        let ids = PlanIds { source_symbols, inputs, lost };
        Plan::new(ids, Self { params, program, direct: None })
    }

    /// The rows whose sum each symbol is.
    fn lists(&self, ids: &PlanIds, esis: &[Esi]) -> Lists {
        let isi = |&esi: &Esi| isi_of(&self.params, ids.source_symbols, esi);
        self.program(ids).sums(esis.iter().map(isi))
    }

    /// The program that computes the intermediate symbols from the inputs; made if needed.
    fn program(&self, ids: &PlanIds) -> &Arc<Program> {
        let make = || program_of(&self.params, ids.source_symbols, &ids.inputs);
        self.program.get_or_init(|| Arc::new(make()))
    }
}

impl plan::Program for Recovery {
    fn memory(&self, ids: &PlanIds, width: usize) -> usize {
        let scratch_rows = self.program(ids).scratch_rows();
        plan::memory(self.params.l as usize, scratch_rows, ids.inputs.len(), width)
    }

    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        let (program, instructions) = (self.program(ids), run.instructions);
        let esi = |isi| esi_of(&self.params, ids.source_symbols, isi);
        let inputs = program.inputs().map(|(isi, row)| (esi(isi), row));
        let mut symbols = run.load(self.params.l as usize, inputs)?;
        program.run(instructions, &mut symbols);
        Ok(symbols)
    }

    fn write_symbols(&self, ids: &PlanIds, symbols: Rows<'_>, esis: &[Esi], out: &mut [u8]) {
        let sums = self.lists(ids, esis);
        write_sums(symbols.instructions, symbols.symbols, &sums, out);
    }

    fn contributions(&self, ids: &PlanIds, sums: Weighted<'_>) -> Option<OctetRows> {
        let program = self.program(ids);
        let terms = self.lists(ids, sums.esis);
        let rows = sums.of_rows(self.params.l as usize, &terms);
        let rows = program.run_transposed(sums.instructions, rows);
        let has_esi = |isi| esi_of(&self.params, ids.source_symbols, isi).is_some();
        let inputs = program.inputs().filter(|&(isi, _)| has_esi(isi));
        Some(rows.select(inputs.map(|(_, row)| row)))
    }

    fn sums(&self, ids: &PlanIds, esis: &[Esi]) -> Option<Lists> {
        Some(self.lists(ids, esis))
    }

    fn recovery_memory(&self, ids: &PlanIds, width: usize) -> usize {
        match &self.direct {
            Some(direct) => plan::memory(direct.rows(), 0, ids.inputs.len(), width),
            None => self.memory(ids, width),
        }
    }

    fn recover(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        match &self.direct {
            Some(direct) => direct.run(&ids.inputs, run),
            None => self.execute(ids, run),
        }
    }

    fn write_lost(&self, ids: &PlanIds, symbols: Rows<'_>, lost: Range<usize>, out: &mut [u8]) {
        let Some(direct) = &self.direct else {
            return self.write_symbols(ids, symbols, &ids.lost[lost], out);
        };
        for (index, out) in lost.zip(out.chunks_exact_mut(symbols.width.max(1))) {
            symbols.symbols.read_row(direct.row(index), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::kernel::InstructionSet;
    use crate::bytes::stripes::Scratch;
    use crate::bytes::stripes::loading::Lent;
    use crate::code::Code;
    use crate::codes::raptorq::RaptorQ;
    use crate::codes::raptorq::full::FullBlock;
    use crate::decode::{Progress, Work};
    use crate::plan::Intermediate;
    use std::convert::Infallible;

    const RAPTORQ: RaptorQ = RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };

    fn execute(plan: &Arc<Plan>, width: usize, symbol: impl Fn(Esi) -> Vec<u8>) -> Intermediate {
        let load = |esi: Esi, out: &mut [u8]| {
            out.copy_from_slice(&symbol(esi));
            Ok::<_, Infallible>(())
        };
        let Ok(symbols) = plan.execute(width, load, Scratch::default());
        symbols
    }

    /// An encoder of a block whose symbols differ.
    fn encoder(k: u32, width: usize) -> Intermediate {
        let plan = RAPTORQ.source_plan(k, None);
        let byte = |esi: Esi, at: usize| (esi.0 as usize * 31 + at * 7 + at / 50) as u8;
        execute(&plan, width, |esi| (0..width).map(|at| byte(esi, at)).collect())
    }

    fn symbol(encoder: &Intermediate, esi: Esi) -> Vec<u8> {
        let mut out = vec![0; encoder.width()];
        encoder.write_symbol(esi, &mut out);
        out
    }

    /// A direct plan for `lost` symbols in the middle of `k`, with the first repair symbols that
    /// suffice.
    fn direct(instructions: InstructionSet, k: u32, lost: u32) -> Arc<Plan> {
        let full = FullBlock::new(Params::covering(k));
        let lost: Vec<Esi> = ((k - lost) / 2..(k + lost) / 2).map(Esi).collect();
        for start in (k..).step_by(lost.len()) {
            let count = lost.len() as u32;
            let repair = || (start..start + count).map(Esi);
            let direct = DirectPlan::new(instructions, &full, k, &lost, repair());
            if let Some(direct) = direct {
                return Arc::new(Recovery::directly(k, lost, repair(), direct));
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
                    let load = |esi: Esi, out: &mut [u8]| {
                        assert!(out.iter().all(|&byte| byte == 0), "zeros to put the symbol into");
                        sent.write_symbol(esi, out);
                        Ok::<_, Infallible>(())
                    };
                    let Ok(recovered) =
                        plan.recover_with(instructions, width, load, Scratch::default());
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
    fn lent_and_written_symbols_give_the_same_result() {
        let (k, width) = (300, 1300);
        let sent = encoder(k, width);
        let symbols: Vec<Vec<u8>> = (0..2 * k).map(|esi| symbol(&sent, Esi(esi))).collect();
        for lost in [20, 150] {
            let mut decoder = RAPTORQ.decoder(k, None);
            for esi in (lost..k + lost + 1).map(Esi) {
                decoder.push(esi).unwrap();
            }
            let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else {
                panic!("symbols enough")
            };
            let lend = |esi: Esi| symbols[esi.0 as usize].as_slice();
            let Ok(recovered) = plan.recover(width, Lent(lend), Scratch::default());
            let Ok(block) = plan.execute(width, Lent(lend), recovered.into_scratch());
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
        let mut scratch = Scratch::default();
        for (k, lost, width) in [(300, 100, 500), (10, 4, 1300), (50, 20, 1)] {
            let sent = encoder(k, width);
            let plan = direct(InstructionSet::best(), k, lost);
            let load = |esi: Esi, out: &mut [u8]| {
                sent.write_symbol(esi, out);
                Ok::<_, Infallible>(())
            };
            let Ok(recovered) = plan.recover(width, load, scratch);
            let mut out = vec![0; 2 * width];
            recovered.write_symbols(1..3, &mut out);
            assert!(out[..width] == symbol(&sent, plan.lost()[1]));
            assert!(out[width..] == symbol(&sent, plan.lost()[2]));
            scratch = recovered.into_scratch();
        }
    }

    #[test]
    fn an_error_while_loading_is_returned() {
        let plan = direct(InstructionSet::best(), 100, 3);
        let mut loaded = 0;
        let read = |esi: Esi, _: &mut [u8]| {
            loaded += 1;
            if esi == Esi(100) { Err("unreadable") } else { Ok(()) }
        };
        let failed = plan.recover(10, read, Scratch::default());
        assert_eq!(failed.map(|_| ()), Err("unreadable"));
        assert_eq!(loaded, 98, "the first repair symbol, and nothing after an error");
    }

    #[test]
    fn a_direct_recovery_takes_less_memory_than_the_block() {
        let plan = direct(InstructionSet::best(), 300, 20);
        assert_eq!(plan.recovery_memory(1280), (64 + 2 * 20 + 16) * 1280);
        assert!(plan.memory(1280) > 300 * 1280);
        let source = RAPTORQ.source_plan(300, None);
        assert_eq!(source.recovery_memory(1280), source.memory(1280));
    }
}
