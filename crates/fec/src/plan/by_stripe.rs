//! From symbols to symbols in one go, a stripe at a time.
//!
//! The intermediate symbols of a large block do not stay in the caches: they go out to memory when
//! symbols are loaded, and come back when the program runs and once more when symbols are written. A
//! caller who knows beforehand which symbols he wants needs no more than a stripe of them at a time,
//! and a stripe does stay.

use super::{Code, Plan};
use crate::bytes::kernel::InstructionSet;
use crate::bytes::stripes::{LINE, Lender, MAX_STRIPE_LINES, Memory, Stripes};
use crate::bytes::xor_program::write_sums;
use crate::code::Encoder;
use crate::codes::raptorq;
use crate::codes::shared::csr::Lists;
use crate::ids::Esi;
use std::sync::Arc;

impl Plan {
    /// Writes encoding symbols of `width` bytes, one after the other, into `out`, and gives back the
    /// memory: [`execute_from`](Self::execute_from) and [`Encoder::write_symbols`] in one go. Of
    /// blocks of 8 MB and more that is faster, up to 26 214 source symbols and unless the code is one
    /// of Reed-Solomon's, and takes only what [`memory`](Self::memory) says for 320 columns.
    ///
    /// `symbol` gives the `width` bytes of an input; zeros are added to fewer. It is called for each
    /// of [`inputs`](Self::inputs), in order, once or, of such blocks, once for each 320 columns.
    ///
    /// # Panics
    /// If `out` is not `esis.len() * width` bytes long.
    pub fn write_symbols_from<'s>(
        self: &Arc<Self>,
        memory: Memory,
        width: usize,
        symbol: impl Fn(Esi) -> &'s [u8],
        esis: &[Esi],
        out: &mut [u8],
    ) -> Memory {
        assert_eq!(out.len(), esis.len() * width, "one width of bytes for each symbol");
        if let Some(sums) = self.pays_by_stripe(width).then(|| self.sums(esis)).flatten() {
            self.write_by_stripe(InstructionSet::best(), memory, width, symbol, &sums, out)
        } else {
            let block = self.execute_from(memory, width, symbol);
            block.write_symbols(esis, out);
            block.into_memory()
        }
    }

    /// True if a block does not stay in the caches, but a stripe of it does.
    fn pays_by_stripe(&self, width: usize) -> bool {
        let rows = self.source_symbols as usize;
        Stripes::is_large(rows, width) && !Stripes::is_large(rows, MAX_STRIPE_LINES * LINE)
    }

    /// Computes one stripe after the other, and writes these sums of its rows.
    fn write_by_stripe<'s>(
        self: &Arc<Self>,
        instructions: InstructionSet,
        mut memory: Memory,
        width: usize,
        symbol: impl Fn(Esi) -> &'s [u8],
        sums: &Lists,
        out: &mut [u8],
    ) -> Memory {
        let stripes = Stripes::new(Memory::default(), 0, width);
        for bytes in (0..stripes.count()).map(|index| stripes.bytes(index)) {
            let part = |esi| {
                let symbol = symbol(esi);
                &symbol[bytes.start.min(symbol.len())..bytes.end.min(symbol.len())]
            };
            let Ok(block) = self.execute_with(instructions, memory, bytes.len(), Lender(part));
            write_sums(instructions, &block.symbols, sums, out, width, bytes.start);
            memory = block.into_memory();
        }
        memory
    }

    /// For each of these encoding symbols the rows that it is the sum of; no rows for one that does
    /// not exist. `None` if the code needs products.
    pub(super) fn sums(&self, esis: &[Esi]) -> Option<Lists> {
        match &self.code {
            Code::NoCode => {
                let mut sums = Lists::with_capacity(esis.len(), esis.len());
                for esi in esis {
                    sums.push((esi.0 < self.source_symbols).then_some(esi.0));
                }
                Some(sums)
            }
            Code::RaptorQ { params, program, .. } => {
                let isi = |&esi: &Esi| raptorq::isi_of(params, self.source_symbols, esi);
                Some(self.program(params, program).sums(esis.iter().map(isi)))
            }
            Code::Tornado(recovery) => Some(recovery.sums(esis)),
            Code::Lt(recovery) => Some(recovery.sums(esis)),
            Code::Linear(_) | Code::Linear16(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Progress, Work};
    use crate::codes::lt::Lt;
    use crate::codes::reed_solomon::ReedSolomonCode;
    use crate::codes::tornado::Tornado;
    use crate::oti::FecScheme;
    use crate::plan::PlanCache;

    const K: u32 = 60;
    const NO_CODE: FecScheme = FecScheme::NoCode { max_source_block_length: K };
    const RAPTORQ: FecScheme = FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };
    const TORNADO: FecScheme = FecScheme::Tornado { max_source_block_length: K, code: Tornado::Z };
    const CAUCHY: FecScheme = FecScheme::ReedSolomon {
        code: ReedSolomonCode::Cauchy,
        max_source_block_length: K as u16,
        max_encoding_symbols: 255,
    };

    fn codes_of_sums() -> [FecScheme; 4] {
        let code = Lt::fast(K, 1);
        [NO_CODE, RAPTORQ, TORNADO, FecScheme::Lt { max_source_block_length: K, code }]
    }

    /// A block of source symbols that do not look alike.
    fn source(width: usize) -> Vec<Vec<u8>> {
        let byte = |esi: usize, at: usize| (esi * 31 + at * 7 + at / 50) as u8;
        (0..K as usize).map(|esi| (0..width).map(|at| byte(esi, at)).collect()).collect()
    }

    /// Source symbols, repair symbols and, of most codes, one that does not exist.
    fn some_esis() -> Vec<Esi> {
        [0, K - 1, K, 2 * K - 1, 7, 2 * K, 7].map(Esi).to_vec()
    }

    /// What [`Encoder::write_symbols`] writes.
    fn expected(plan: &Arc<Plan>, width: usize, symbols: &[Vec<u8>], esis: &[Esi]) -> Vec<u8> {
        let symbol = |esi: Esi| symbols[esi.0 as usize].as_slice();
        let mut out = vec![0xAA; esis.len() * width];
        plan.execute_from(Memory::default(), width, symbol).write_symbols(esis, &mut out);
        out
    }

    #[test]
    fn stripe_by_stripe_the_same_symbols_are_written() {
        let esis = some_esis();
        for scheme in codes_of_sums() {
            let plan = PlanCache::new(1).source_plan(scheme, K).unwrap();
            let sums = plan.sums(&esis).unwrap();
            for instructions in InstructionSet::available() {
                let mut memory = Memory::default();
                for width in [0, 1, 63, 64, 320, 321, 384, 640, 641, 1280, 1401] {
                    let symbols = source(width);
                    let symbol = |esi: Esi| symbols[esi.0 as usize].as_slice();
                    let mut out = vec![0xAA; esis.len() * width];
                    memory =
                        plan.write_by_stripe(instructions, memory, width, symbol, &sums, &mut out);
                    let expected = expected(&plan, width, &symbols, &esis);
                    assert!(out == expected, "{scheme:?}, {instructions:?}, {width}");
                }
            }
        }
    }

    #[test]
    fn lost_symbols_are_recovered_stripe_by_stripe() {
        let width = 1000;
        let symbols = source(width);
        for scheme in &codes_of_sums()[1..] {
            let repair: Vec<Esi> = (K..2 * K).map(Esi).collect();
            let plan = PlanCache::new(1).source_plan(*scheme, K).unwrap();
            let made = expected(&plan, width, &symbols, &repair);
            let symbol = |esi: Esi| match esi.0.checked_sub(K) {
                None => symbols[esi.0 as usize].as_slice(),
                Some(repair) => &made[repair as usize * width..][..width],
            };
            let mut decoder = scheme.decoder(K).unwrap();
            (20..2 * K).for_each(|esi| assert!(decoder.push(Esi(esi)).is_ok()));
            let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else {
                panic!("symbols enough of {scheme:?}")
            };
            assert_eq!(plan.lost().len(), 20);
            let sums = plan.sums(plan.lost()).unwrap();
            let mut out = vec![0xAA; 20 * width];
            let (instructions, memory) = (InstructionSet::best(), Memory::default());
            plan.write_by_stripe(instructions, memory, width, symbol, &sums, &mut out);
            assert!(out == symbols[..20].concat(), "{scheme:?}");
        }
    }

    #[test]
    fn small_blocks_and_large_ones_and_codes_of_products_give_the_same() {
        let esis = some_esis();
        for (scheme, width) in [(TORNADO, 100), (TORNADO, 150_001), (CAUCHY, 150_001)] {
            let plan = PlanCache::new(1).source_plan(scheme, K).unwrap();
            let symbols = source(width);
            let symbol = |esi: Esi| symbols[esi.0 as usize].as_slice();
            let mut out = vec![0xAA; esis.len() * width];
            plan.write_symbols_from(Memory::default(), width, symbol, &esis, &mut out);
            assert!(out == expected(&plan, width, &symbols, &esis), "{scheme:?}, {width}");
        }
    }

    #[test]
    fn a_block_is_done_by_stripe_if_it_is_large_and_its_stripes_are_not() {
        let pays = |k, width| {
            let code = FecScheme::NoCode { max_source_block_length: k };
            Plan::source(code, k).unwrap().pays_by_stripe(width)
        };
        assert!(!pays(8_192, 1_024) && pays(8_192, 1_025));
        assert!(pays(26_214, 1_280) && !pays(26_215, 1_280));
        assert!(!pays(K, 100) && pays(K, 150_001), "as the test above has it");
    }

    #[test]
    fn zeros_are_added_to_short_symbols() {
        let (width, esis) = (1000, some_esis());
        let mut symbols = source(width);
        for (symbol, length) in symbols.iter_mut().zip([0, 1, 319, 320, 321, 999]) {
            symbol.truncate(length);
        }
        let plan = PlanCache::new(1).source_plan(TORNADO, K).unwrap();
        let symbol = |esi: Esi| symbols[esi.0 as usize].as_slice();
        let mut out = vec![0xAA; esis.len() * width];
        let (instructions, memory) = (InstructionSet::best(), Memory::default());
        let sums = plan.sums(&esis).unwrap();
        plan.write_by_stripe(instructions, memory, width, symbol, &sums, &mut out);
        symbols.iter_mut().for_each(|symbol| symbol.resize(width, 0));
        assert!(out == expected(&plan, width, &symbols, &esis));
    }

    #[test]
    #[should_panic(expected = "one width of bytes for each symbol")]
    fn out_of_another_length_is_refused() {
        let plan = PlanCache::new(1).source_plan(TORNADO, K).unwrap();
        plan.write_symbols_from(Memory::default(), 10, |_| &[], &some_esis(), &mut [0; 10]);
    }
}
