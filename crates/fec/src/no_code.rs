//! Compact No-Code (RFC 5445, section 3): the encoding symbols are the source symbols, and a block
//! is whole when every one of them is there.

use crate::{Decoder, Esi, EsiError, Novelty, Plan, Progress, Work};
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
