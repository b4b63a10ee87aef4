//! Elimination with inactive symbols, after peeling (as in RFC 6330, section 5.4.2, without its
//! constraints).
//!
//! Peeling continues if a few symbols are declared *inactive*, which means unknown. Then every
//! other symbol (a *pivot*) is the sum of one encoding symbol, earlier pivots and inactive symbols.
//! The remaining encoding symbols give binary equations in the inactive symbols alone, packed 64 to
//! a word.

use super::Peeler;
use crate::codes::shared::csr::Lists;
use crate::codes::shared::equations::{Basis, Budget, Stop, ones, xor_into};
use crate::ids::Esi;

/// The computation of the symbols that peeling did not recover.
pub(super) struct Solution {
    /// In order: the other terms of a pivot's encoding symbol are recovered, earlier pivots or
    /// inactive.
    pub(super) pivots: Vec<Pivot>,
    /// One for each inactive symbol.
    pub(super) dense: Vec<DenseRow>,
}

/// A symbol and the encoding symbol that recovers it.
pub(super) struct Pivot {
    pub(super) symbol: u32,
    pub(super) esi: Esi,
}

/// An inactive symbol, one of the encoding symbols that solve for the inactive symbols, and the
/// indices of those among them whose sum it is once known terms are removed.
pub(super) struct DenseRow {
    pub(super) symbol: u32,
    pub(super) esi: Esi,
    pub(super) sum: Vec<u32>,
}

/// The result of elimination.
pub(super) enum Eliminated {
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
    let solution = System::new(peeler, &mut budget).and_then(|system| system.solve(&mut budget));
    match solution {
        Ok(solution) => Eliminated::Solved(solution),
        Err(Stop::Wanting(lack)) => Eliminated::Wanting(lack),
        Err(Stop::OutOfBudget) => Eliminated::OutOfBudget,
    }
}

/// The encoding symbols that peeling could not use, in terms of the unknown source symbols. Both
/// are renumbered.
struct System {
    esis: Vec<Esi>,
    symbols: Vec<u32>,
    rows: Lists,
    columns: Lists,
}

impl System {
    fn new(peeler: &mut Peeler, budget: &mut Budget) -> Result<Self, Stop> {
        let k = peeler.source_symbols();
        let symbols: Vec<u32> = (0..k).filter(|&symbol| !peeler.knows(symbol)).collect();
        let mut esis: Vec<(u32, Esi)> =
            peeler.unused().map(|(esi, missing)| (missing, esi)).collect();
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
        let columns = rows.transposed(0..symbols.len() as u32);
        Ok(Self { esis: esis.into_iter().map(|(_, esi)| esi).collect(), symbols, rows, columns })
    }

    fn solve(&self, budget: &mut Budget) -> Result<Solution, Stop> {
        let order = Order::new(self, budget)?;
        let bits = ColumnBits::new(self, &order, budget)?;
        let mut basis = Basis::new(order.inactive.len());
        for &row in &order.left_over {
            if basis.is_full() {
                break;
            }
            basis.insert(
                row,
                |equation| bits.add_row(self.rows.list(row as usize), equation),
                budget,
            )?;
        }
        if let lack @ 1.. = order.inactive.len() - basis.rows.len() {
            return Err(Stop::Wanting(lack as u32));
        }
        basis.reduce(budget)?;
        let pivots = (order.pivots.iter())
            .map(|&(row, column)| Pivot {
                symbol: self.symbols[column as usize],
                esi: self.esis[row as usize],
            })
            .collect();
        let dense = (basis.rows.iter().enumerate())
            .map(|(index, &(row, lead))| DenseRow {
                symbol: self.symbols[order.inactive[lead as usize] as usize],
                esi: self.esis[row as usize],
                sum: ones(basis.history(index)).collect(),
            })
            .collect();
        Ok(Solution { pivots, dense })
    }
}

/// An order in which the rows are solved.
struct Order {
    /// Row and column of each pivot.
    pivots: Vec<(u32, u32)>,
    inactive: Vec<u32>,
    /// Rows that are no pivots.
    left_over: Vec<u32>,
}

/// A row while columns are removed from it.
#[derive(Clone, Copy)]
struct Active {
    /// Columns left; 0 for a pivot.
    degree: u32,
    /// Exclusive or of the column numbers.
    sum: u32,
}

/// Rows with more active columns are not sorted: there is almost always a row with fewer.
const LIGHT: usize = 16;

impl Order {
    fn new(system: &System, budget: &mut Budget) -> Result<Self, Stop> {
        let mut rows: Vec<Active> = (system.rows.iter())
            .map(|row| Active {
                degree: row.len() as u32,
                sum: row.iter().fold(0, |sum, column| sum ^ column),
            })
            .collect();
        // For each degree, the rows that have had it; their degree may be lower now.
        let mut light: [Vec<u32>; LIGHT + 1] = Default::default();
        for (index, row) in (0..).zip(&rows) {
            if let Some(bucket) = light.get_mut(row.degree as usize) {
                bucket.push(index);
            }
        }
        let mut this = Self { pivots: Vec::new(), inactive: Vec::new(), left_over: Vec::new() };
        let mut is_active = vec![true; system.symbols.len()];
        let mut next = 0;
        loop {
            let lightest = light.iter_mut().enumerate().skip(1).find_map(|(degree, bucket)| {
                bucket.retain_last(|&row| rows[row as usize].degree as usize == degree);
                bucket.last().map(|&row| (degree, row))
            });
            let column = match lightest {
                Some((1, row)) => {
                    let column = rows[row as usize].sum;
                    rows[row as usize].degree = 0;
                    this.pivots.push((row, column));
                    column
                }
                Some((_, row)) => {
                    let candidates = system.rows.list(row as usize).iter().copied();
                    let candidates = candidates.filter(|&column| is_active[column as usize]);
                    let column = most_useful(system, &rows, candidates, budget)?;
                    this.inactive.push(column);
                    column
                }
                None => {
                    let Some(column) = (next..is_active.len()).find(|&c| is_active[c]) else {
                        break;
                    };
                    next = column + 1;
                    this.inactive.push(column as u32);
                    column as u32
                }
            };
            is_active[column as usize] = false;
            let of_column = system.columns.list(column as usize);
            budget.spend(of_column.len() + 1)?;
            for &index in of_column {
                let row = &mut rows[index as usize];
                if row.degree > 0 {
                    row.degree -= 1;
                    row.sum ^= column;
                    if (1..=LIGHT).contains(&(row.degree as usize)) {
                        light[row.degree as usize].push(index);
                    }
                }
            }
        }
        let mut is_pivot = vec![false; rows.len()];
        this.pivots.iter().for_each(|&(row, _)| is_pivot[row as usize] = true);
        this.left_over = (0..).zip(is_pivot).filter_map(|(row, is)| (!is).then_some(row)).collect();
        Ok(this)
    }
}

trait RetainLast<T> {
    /// Pops items until one is `kept`.
    fn retain_last(&mut self, kept: impl Fn(&T) -> bool);
}

impl<T> RetainLast<T> for Vec<T> {
    fn retain_last(&mut self, kept: impl Fn(&T) -> bool) {
        while self.pop_if(|item| !kept(item)).is_some() {}
    }
}

/// The column whose removal helps the other rows most: rows of degree 2 become pivots.
fn most_useful(
    system: &System,
    rows: &[Active],
    candidates: impl Iterator<Item = u32>,
    budget: &mut Budget,
) -> Result<u32, Stop> {
    /// Weight of a row of degree 2, relative to any other row.
    const PIVOT_WORTH: u32 = 8;
    let mut best = (0, 0);
    for column in candidates {
        let of_column = system.columns.list(column as usize);
        budget.spend(of_column.len())?;
        let worth = |&row: &u32| match rows[row as usize].degree {
            0 => 0,
            2 => PIVOT_WORTH,
            _ => 1,
        };
        best = best.max((of_column.iter().map(worth).sum(), column));
    }
    Ok(best.1)
}

/// For each column, the inactive columns that it depends on.
struct ColumnBits {
    words: usize,
    bits: Vec<u64>,
}

impl ColumnBits {
    fn new(system: &System, order: &Order, budget: &mut Budget) -> Result<Self, Stop> {
        let words = order.inactive.len().div_ceil(64);
        // Spent before anything is allocated.
        budget.spend(words.saturating_mul(system.symbols.len()))?;
        let mut this = Self { words, bits: vec![0; words * system.symbols.len()] };
        for (index, &column) in order.inactive.iter().enumerate() {
            this.bits[column as usize * words + index / 64] |= 1 << (index % 64);
        }
        let mut sum = vec![0; words];
        for &(row, column) in &order.pivots {
            let terms = system.rows.list(row as usize);
            budget.spend(words * terms.len())?;
            sum.fill(0);
            // The row's own bits are still zero.
            this.add_row(terms, &mut sum);
            this.bits[column as usize * words..][..words].copy_from_slice(&sum);
        }
        Ok(this)
    }

    /// Adds a row, in terms of inactive columns, to `sum`.
    fn add_row(&self, terms: &[u32], sum: &mut [u64]) {
        for &column in terms {
            xor_into(sum, &self.bits[column as usize * self.words..][..self.words]);
        }
    }
}
