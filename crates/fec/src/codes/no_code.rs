//! Compact No-Code (RFC 5445, section 3): the encoding symbols are the source symbols, and a block
//! is whole when every one of them is there.

use crate::code::{Decoder, EsiError, Novelty, Progress, Work};
use crate::ids::Esi;
use crate::plan::Plan;
use std::sync::Arc;

/// Which source symbols of a block have arrived.
pub(crate) struct NoCodeDecoder {
    seen: Vec<bool>,
    missing: u32,
}

impl NoCodeDecoder {
    /// `source_symbols` is within the code's limit.
    pub(crate) fn new(source_symbols: u32) -> Self {
        Self { seen: vec![false; source_symbols as usize], missing: source_symbols }
    }
}

impl Decoder for NoCodeDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        let encoding_symbols = self.seen.len() as u32;
        let seen = self.seen.get_mut(esi.0 as usize).ok_or(EsiError { esi, encoding_symbols })?;
        if std::mem::replace(seen, true) {
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
            0 => Progress::Solved(Arc::new(Plan::no_code(self.seen.len() as u32))),
            missing => Progress::Wanting(missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Encoder;
    use crate::oti::FecScheme;

    const NO_CODE: FecScheme = FecScheme::NoCode { max_source_block_length: 8 };

    #[test]
    fn a_block_is_whole_when_its_last_symbol_arrives() {
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
            assert_eq!(Plan::source(NO_CODE, k).is_ok(), fits, "{k}");
        }
    }

    #[test]
    fn symbols_encode_to_themselves_and_others_to_zeros() {
        let plan = Arc::new(Plan::source(NO_CODE, 3).unwrap());
        let encoder = plan
            .execute(100, |esi, out| {
                out.fill(esi.0 as u8 + 1);
                Ok::<_, ()>(())
            })
            .unwrap();
        let mut out = [0xAA; 400];
        encoder.write_symbols(&[Esi(2), Esi(0), Esi(3), Esi(1)], &mut out);
        for (symbol, expected) in out.chunks(100).zip([3, 1, 0, 2]) {
            assert_eq!(symbol, [expected; 100]);
        }
    }
}
