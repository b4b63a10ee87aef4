//! How much repair a sender adds before receivers request it (Li, Cheriton, "Evaluating the Utility
//! of FEC with Reliable Multicast", section 3.2).

/// The number of repair symbols to send with a block, from what receivers have requested of those
/// before.
///
/// It grows by what the largest request says was lacking, and halves with each block of which
/// nothing is requested. A sender that guesses too much soon sends less; one that guesses too
/// little is told by the next request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RedundancyEstimate {
    symbols: f64,
}

impl RedundancyEstimate {
    /// Nothing was requested yet: no repair is added.
    pub fn new() -> Self {
        Self::default()
    }

    /// A block has been sent, and its requests have had the time to arrive. `largest`: the most
    /// symbols that a receiver requested of it; `None` if none requested any. Of a block of
    /// `source_symbols`.
    pub fn judge(&mut self, largest: Option<u32>, source_symbols: u32) {
        self.symbols = match largest {
            Some(requested) => self.symbols + f64::from(requested),
            None => self.symbols / 2.0,
        };
        // More than a block of them repairs any loss.
        self.symbols = self.symbols.min(f64::from(source_symbols));
    }

    /// The estimate, or so many symbols if these are more.
    pub fn at_least(self, symbols: u32) -> Self {
        Self { symbols: self.symbols.max(symbols.into()) }
    }

    /// Repair symbols to send with the next block, to the nearest number.
    pub fn symbols(&self) -> u32 {
        self.symbols.round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_add_up_and_silence_halves() {
        let mut estimate = RedundancyEstimate::new();
        let mut after = |largest| {
            estimate.judge(largest, 100);
            estimate.symbols()
        };
        let sent = [after(Some(3)), after(None), after(None), after(Some(2))];
        assert_eq!(sent, [3, 2, 1, 3], "3, 1.5, 0.75 and 2.75");
    }

    proptest! {
        /// It is never more than a block, and silence ends it.
        #[test]
        fn it_stays_within_a_block_and_decays(
            requests in proptest::collection::vec(proptest::option::of(0_u32..500), 0..50),
            k in 1_u32..200,
        ) {
            let mut estimate = RedundancyEstimate::new();
            for largest in requests {
                estimate.judge(largest, k);
                prop_assert!(estimate.symbols() <= k);
            }
            (0..10).for_each(|_| estimate.judge(None, k));
            prop_assert_eq!(estimate.symbols(), 0);
        }
    }
}
