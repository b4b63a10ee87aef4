//! Compact No-Code (RFC 5445, section 3). The encoding symbols are the source symbols; a block is
//! complete when all of them have arrived.
//!
//! | | |
//! |---|---|
//! | source | [RFC 5445](https://www.rfc-editor.org/rfc/rfc5445), section 3 |
//! | tests | on this page |

use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::Stripes;
use crate::bytes::stripes::loading::LoadError;
use crate::bytes::xor_program::write_sums;
use crate::code::{BlockProfile, Code, CodeProfile, Factors, Padding};
use crate::codes::shared::csr::Lists;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::{EncodingId, Esi};
use crate::limits::{
    Interleaving, MAX_TRANSFER_LENGTH, ObjectLimits, OtiError, Partition, check_block_length_limit,
};
use crate::parameters::{CodeError, Format, SchemeParameters};
use crate::plan::{self, Plan, PlanCache, PlanIds, Program, Rows, Run, Weighted};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Compact No-Code: source symbols only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoCode {
    /// `B`: most source symbols in a block.
    pub max_source_block_length: u32,
}

/// Longest block: symbol numbers have 16 bits (RFC 5445, section 3.1).
pub const MAX_SOURCE_SYMBOLS: u32 = 1 << 16;
/// Most blocks of an object: block numbers have 16 bits.
pub const MAX_BLOCKS: u32 = 1 << 16;

pub(crate) const FORMAT: Format =
    Format { encoding_id: EncodingId::NO_CODE, instance_ids: None, information_size: 0 };

impl NoCode {
    pub(crate) fn parse(parameters: &SchemeParameters) -> Result<Self, CodeError> {
        Ok(Self { max_source_block_length: parameters.block_length()? })
    }
}

impl Code for NoCode {
    fn profile(&self) -> CodeProfile {
        CodeProfile {
            name: "none",
            encoding_id: FORMAT.encoding_id,
            is_systematic: true,
            is_rateless: false,
            is_mds: true,
            factors: Factors::None,
            mixes_cycle: false,
            padding: Padding::Omitted,
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            sure_surplus: Some(3),
        }
    }

    fn block_profile(&self, source_symbols: u32) -> BlockProfile {
        BlockProfile {
            encoding_symbols: source_symbols,
            symbols_per_cycle: source_symbols,
            max_repair_symbols: source_symbols,
            decoder_memory: None,
            // No symbol is ever computed.
            work: Work(source_symbols.into()),
            products: 0,
        }
    }

    fn limits(&self, _symbol_size: u16) -> Result<ObjectLimits, OtiError> {
        let max_source_block_length = check_block_length_limit(self.max_source_block_length)?;
        Ok(ObjectLimits {
            partition: Partition::BlockLength { max_source_block_length, max_blocks: MAX_BLOCKS },
            max_source_symbols: MAX_SOURCE_SYMBOLS,
            max_transfer_length: MAX_TRANSFER_LENGTH,
            interleaving: Interleaving::NONE,
        })
    }

    fn decoder(&self, source_symbols: u32, _cache: Option<&PlanCache>) -> Box<dyn IdDecoder> {
        Box::new(NoCodeDecoder::new(source_symbols))
    }

    fn source_plan(&self, source_symbols: u32, _cache: Option<&PlanCache>) -> Arc<Plan> {
        Arc::new(Plan::new(PlanIds::of_source(source_symbols), Copied))
    }

    fn parameters(&self) -> SchemeParameters {
        SchemeParameters {
            max_source_block_length: Some(self.max_source_block_length),
            ..SchemeParameters::new(FORMAT.encoding_id, None)
        }
    }
}

/// The program of a code whose intermediate symbols are the source symbols.
struct Copied;

impl Program for Copied {
    fn memory(&self, ids: &PlanIds, width: usize) -> usize {
        plan::memory(ids.source_symbols as usize, 0, ids.inputs.len(), width)
    }

    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        run.load(ids.source_symbols as usize, ids.inputs.iter().copied().map(Some).zip(0..))
    }

    fn write_symbols(&self, ids: &PlanIds, symbols: Rows<'_>, esis: &[Esi], out: &mut [u8]) {
        let mut sums = Lists::with_capacity(esis.len(), esis.len());
        for esi in esis {
            sums.push((esi.0 < ids.source_symbols).then_some(esi.0));
        }
        write_sums(symbols.instructions, symbols.symbols, &sums, out);
    }

    /// No symbol is a sum of others.
    fn contributions(&self, _ids: &PlanIds, _sums: Weighted<'_>) -> Option<OctetRows> {
        None
    }
}

/// The available source symbols of a block.
pub(crate) struct NoCodeDecoder {
    seen: Vec<bool>,
    missing: u32,
}

impl NoCodeDecoder {
    /// `source_symbols` must be within the code's limit.
    pub(crate) fn new(source_symbols: u32) -> Self {
        Self { seen: vec![false; source_symbols as usize], missing: source_symbols }
    }
}

impl IdDecoder for NoCodeDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        let encoding_symbols = self.seen.len() as u32;
        let seen = self.seen.get_mut(esi.0 as usize).ok_or(EsiError { esi, encoding_symbols })?;
        if core::mem::replace(seen, true) {
            return Ok(Novelty::Duplicate);
        }
        self.missing -= 1;
        Ok(Novelty::Fresh)
    }

    fn symbols_wanted(&self) -> u32 {
        self.missing
    }

    fn solve(&mut self, _budget: Work) -> Progress {
        match self.missing {
            0 => Progress::Solved(Arc::new(Plan::new(
                PlanIds::of_source(self.seen.len() as u32),
                Copied,
            ))),
            missing => Progress::Wanting(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::stripes::Scratch;
    use crate::scheme::FecScheme;

    const NO_CODE: FecScheme = FecScheme::NoCode(NoCode { max_source_block_length: 8 });

    #[test]
    fn a_block_is_complete_when_its_last_symbol_arrives() {
        let mut decoder = NO_CODE.decoder(3).unwrap();
        assert_eq!(decoder.symbols_wanted(), 3);
        for (esi, wanted) in [(2, 2), (0, 1), (1, 0)] {
            assert!(matches!(decoder.solve(Work(0)), Progress::Wanting(n) if n == wanted + 1));
            assert_eq!(decoder.push(Esi(esi)), Ok(Novelty::Fresh));
            assert_eq!(decoder.push(Esi(esi)), Ok(Novelty::Duplicate));
            assert_eq!(decoder.symbols_wanted(), wanted);
        }
        let Progress::Solved(plan) = decoder.solve(Work(0)) else { panic!("all are there") };
        assert_eq!(plan.inputs(), [Esi(0), Esi(1), Esi(2)]);
        assert_eq!(plan.lost(), []);
    }

    #[test]
    fn there_are_no_repair_symbols() {
        let mut decoder = NO_CODE.decoder(3).unwrap();
        let refused = EsiError { esi: Esi(3), encoding_symbols: 3 };
        assert_eq!(decoder.push(Esi(3)), Err(refused));
    }

    #[test]
    fn blocks_have_1_to_65_536_symbols() {
        for (k, fits) in [(0, false), (1, true), (65_536, true), (65_537, false)] {
            assert_eq!(NO_CODE.decoder(k).is_ok(), fits, "{k}");
            assert_eq!(NO_CODE.source_plan(k).is_ok(), fits, "{k}");
        }
    }

    #[test]
    fn symbols_encode_to_themselves_and_others_to_zeros() {
        let plan = NO_CODE.source_plan(3).unwrap();
        let read = |esi: Esi, out: &mut [u8]| {
            out.fill(esi.0 as u8 + 1);
            Ok::<_, ()>(())
        };
        let encoder = plan.execute(100, read, Scratch::default()).unwrap();
        let mut out = [0xAA; 400];
        encoder.write_symbols(&[Esi(2), Esi(0), Esi(3), Esi(1)], &mut out);
        for (symbol, expected) in out.chunks(100).zip([3, 1, 0, 2]) {
            assert_eq!(symbol, [expected; 100]);
        }
    }
}
