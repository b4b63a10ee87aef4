//! Elimination of the symbols that peeling did not recover, from the encoding symbols that it could
//! not use.

use super::Peeler;
use crate::codes::shared::csr::Lists;
use crate::codes::shared::equations::{Budget, Stop};
use crate::codes::shared::inactivation::{self, Solution};
use crate::ids::Esi;
use alloc::vec;
use alloc::vec::Vec;

/// The result of elimination.
pub(super) enum Eliminated {
    /// Columns are source symbols, and rows the ESIs of encoding symbols.
    Solved(Solution),
    /// The symbols lack this much rank.
    Wanting(u32),
    OutOfBudget,
}

/// A budget for [`eliminate`]. Exactly `k` honest symbols leave 3 to 5 times the square root of `k`
/// inactive ones, 1.05 `k` symbols a dozen. A long block of just `k` symbols costs more than the
/// budget.
pub(super) fn work(source_symbols: u32) -> u64 {
    /// About a second.
    const AT_MOST: u64 = 500_000_000;
    let k = u64::from(source_symbols);
    let inactive = 64 + 6 * k.isqrt();
    let words = inactive.div_ceil(64);
    ((32 * k + 2 * inactive * inactive) * words).min(AT_MOST)
}

/// Solves for the symbols that `peeler` has not recovered after it has finished.
pub(super) fn eliminate(peeler: &mut Peeler, mut budget: Budget) -> Eliminated {
    match solve(peeler, &mut budget) {
        Ok(solution) => Eliminated::Solved(solution),
        Err(Stop::Wanting(lack)) => Eliminated::Wanting(lack),
        Err(Stop::OutOfBudget) => Eliminated::OutOfBudget,
    }
}

/// Solves the encoding symbols that peeling could not use, in terms of the unknown source symbols.
/// Both are renumbered.
fn solve(peeler: &mut Peeler, budget: &mut Budget) -> Result<Solution, Stop> {
    let k = peeler.source_symbols();
    let symbols: Vec<u32> = (0..k).filter(|&symbol| !peeler.knows(symbol)).collect();
    let mut esis: Vec<(u32, Esi)> = peeler.unused().map(|(esi, missing)| (missing, esi)).collect();
    // With too few rows, elimination cannot succeed.
    if let lack @ 1.. = symbols.len().saturating_sub(esis.len()) {
        return Err(Stop::Wanting(lack as u32));
    }
    let terms = esis.iter().map(|&(missing, _)| missing as usize).sum();
    budget.spend(terms)?;
    // Rows of low degree first: they cost least, and are the first ones left over.
    esis.sort_unstable();
    let mut index = vec![u32::MAX; k as usize];
    for (i, &symbol) in (0..).zip(&symbols) {
        index[symbol as usize] = i;
    }
    let mut rows = Lists::with_capacity(esis.len(), terms);
    for &(_, esi) in &esis {
        let terms = peeler.rows().row(esi).iter().map(|&term| index[term as usize]);
        rows.push(terms.filter(|&term| term != u32::MAX));
    }
    let solution = inactivation::solve(&rows, symbols.len() as u32, budget)?;
    let esis: Vec<u32> = esis.into_iter().map(|(_, esi)| esi.0).collect();
    Ok(solution.renumbered(&symbols, &esis))
}
