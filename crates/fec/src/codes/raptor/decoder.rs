//! The available symbols of a Raptor block, and whether they suffice.

use super::ENCODING_SYMBOLS;
use super::params::Params;
use super::recovery::Recovery;
use crate::codes::shared::equations::Stop;
use crate::codes::shared::received::ReceivedIds;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Symbols beyond `K` up to which repair symbols are stored: see [`ReceivedIds`]. Of random
/// symbols, so many more than `K` fail once in 10^16 times.
const SURPLUS: usize = 64;

/// Decodes by elimination: see [`inactivation`](crate::codes::shared::inactivation).
pub(super) struct RaptorDecoder {
    params: Params,
    received: ReceivedIds,
}

impl RaptorDecoder {
    pub(super) fn new(params: Params) -> Self {
        Self { params, received: ReceivedIds::new(params.k, SURPLUS) }
    }
}

/// A budget for an attempt. Honest sets of `K` symbols leave about 3 times the square root of `L`
/// columns inactive; the terms are the costs of the constraints and of peeling, of the pivots and
/// of the dense rows.
pub(super) fn work(params: &Params) -> Work {
    let l = u64::from(params.l);
    let inactive = 32 + 4 * l.isqrt();
    let words = inactive.div_ceil(64);
    Work(4 * (40 * l + 20 * l * words + 2 * inactive * inactive * words))
}

impl IdDecoder for RaptorDecoder {
    fn push(&mut self, esi: Esi) -> Result<Novelty, EsiError> {
        if esi.0 >= ENCODING_SYMBOLS {
            return Err(EsiError { esi, encoding_symbols: ENCODING_SYMBOLS });
        }
        Ok(self.received.push(esi))
    }

    fn symbols_wanted(&self) -> u32 {
        self.received.symbols_wanted()
    }

    fn solve(&mut self, budget: Work) -> Progress {
        match self.symbols_wanted() {
            0 => {}
            wanted => return Progress::Wanting(wanted),
        }
        let received = &mut self.received;
        let plan = if received.has_all_source() {
            Ok(Recovery::of_source(self.params))
        } else {
            let esis: Vec<u32> =
                received.source().chain(received.repair()).map(|esi| esi.0).collect();
            Recovery::of_lost(self.params, received.lost(), &esis, budget)
        };
        match plan {
            Ok(plan) => {
                received.on_solved();
                Progress::Solved(Arc::new(plan))
            }
            Err(Stop::Wanting(lack)) => {
                received.on_lack(lack);
                Progress::Wanting(lack)
            }
            Err(Stop::OutOfBudget) => {
                received.on_out_of_budget();
                Progress::OutOfBudget
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_budget_is_several_times_what_it_takes() {
        for k in [4, 10, 100, 1_000, 8_192] {
            let params = Params::new(k).unwrap();
            let esis: Vec<u32> =
                (0..k / 2).map(|i| 2 * i).chain(k..k + k.div_ceil(2) + 20).collect();
            let lost: Vec<Esi> = (0..k).filter(|esi| !esis.contains(esi)).map(Esi).collect();
            let Work(budget) = work(&params);
            let solves = |budget| Recovery::of_lost(params, lost.clone(), &esis, Work(budget));
            assert!(solves(budget / 4).is_ok(), "K = {k}");
            assert!(matches!(solves(budget / 400), Err(Stop::OutOfBudget)), "K = {k}");
        }
    }
}
