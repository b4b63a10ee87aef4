//! Peeling on ids alone.

use super::{LtCode, MAX_SOURCE_SYMBOLS, Rows};
use crate::ids::Esi;
use crate::limits::BlockLengthError;
use alloc::vec;
use alloc::vec::Vec;

/// Recovers source symbols as encoding symbols arrive, on ids, for one block of one receiver. A
/// symbol that is pushed twice counts twice.
#[derive(Clone, Debug)]
pub struct Peeler {
    rows: Rows,
    /// For each source symbol, the first link of the waiting rows that contain it; [`KNOWN`] once
    /// it is recovered.
    waiting: Vec<u32>,
    links: Vec<Link>,
    /// Rows that wait for more than one symbol, or did.
    sums: Vec<Sum>,
    /// The encoding symbol of each row in `sums`.
    esis: Vec<Esi>,
    /// Rows that lack a single symbol and have not been processed.
    ready: Vec<Step>,
    steps: Vec<Step>,
}

/// A source symbol and the encoding symbol that recovered it. In the order of steps, all other
/// terms of the sum were recovered earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) symbol: u32,
    pub(super) esi: Esi,
}

/// A row that contains a source symbol, and the index of the next link.
#[derive(Clone, Copy, Debug)]
struct Link {
    row: u32,
    next: u32,
}

/// The unknown terms of a row.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// Number of unknown source symbols.
    missing: u32,
    /// Exclusive or of their numbers: the number itself if there is one.
    sum: u32,
}

/// No further link.
const END: u32 = u32::MAX;
/// Instead of a link: the source symbol is known.
const KNOWN: u32 = u32::MAX - 1;

impl Peeler {
    /// A peeler without symbols.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no blocks of `source_symbols`.
    pub fn new(code: LtCode, source_symbols: u32) -> Result<Self, BlockLengthError> {
        BlockLengthError::check(source_symbols, MAX_SOURCE_SYMBOLS)?;
        Ok(Self::within(code, source_symbols))
    }

    /// `source_symbols` must be within the code's limits.
    pub(super) fn within(code: LtCode, source_symbols: u32) -> Self {
        Self {
            rows: Rows::within(code, source_symbols),
            waiting: vec![END; source_symbols as usize],
            links: Vec::new(),
            sums: Vec::new(),
            esis: Vec::new(),
            ready: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Removes all symbols, and keeps the allocated memory.
    pub fn reset(&mut self) {
        self.waiting.fill(END);
        self.links.clear();
        self.sums.clear();
        self.esis.clear();
        self.ready.clear();
        self.steps.clear();
    }

    /// Adds encoding symbol `esi`, and recovers all symbols that follow. Returns the number of
    /// known source symbols.
    pub fn push(&mut self, esi: Esi) -> usize {
        self.insert(esi);
        self.advance(&mut { u64::MAX });
        self.recovered()
    }

    /// The number of known source symbols.
    pub fn recovered(&self) -> usize {
        self.steps.len()
    }

    /// True if all source symbols are known.
    pub fn is_complete(&self) -> bool {
        self.recovered() == self.waiting.len()
    }

    /// `k`: source symbols of the block.
    pub fn source_symbols(&self) -> u32 {
        self.rows.source_symbols()
    }

    /// The sums of the code.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// The recovered symbols, in order.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Terms that rows have waited for: memory is proportional to it.
    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// True if source symbol `symbol` is known.
    pub(super) fn knows(&self, symbol: u32) -> bool {
        self.waiting[symbol as usize] == KNOWN
    }

    /// The encoding symbols that still lack source symbols, and how many each lacks: at least two
    /// after [`advance`](Self::advance) has finished.
    pub(super) fn unused(&self) -> impl Iterator<Item = (Esi, u32)> {
        let missing = self.sums.iter().map(|sum| sum.missing);
        self.esis.iter().copied().zip(missing).filter(|&(_, missing)| missing > 0)
    }

    /// Adds encoding symbol `esi` without processing it. Returns the number of its terms.
    pub(super) fn insert(&mut self, esi: Esi) -> usize {
        let row = self.sums.len() as u32;
        let (start, mut sum, mut missing) = (self.links.len(), 0, 0);
        let terms = self.rows.row(esi);
        for &term in terms {
            let first = &mut self.waiting[term as usize];
            if *first != KNOWN {
                let next = core::mem::replace(first, self.links.len() as u32);
                self.links.push(Link { row, next });
                sum ^= term;
                missing += 1;
            }
        }
        match missing {
            0 => {}
            1 => {
                // The row's only link is the last one.
                self.waiting[sum as usize] = self.links[start].next;
                self.links.truncate(start);
                self.ready.push(Step { symbol: sum, esi });
            }
            _ => {
                self.sums.push(Sum { missing, sum });
                self.esis.push(esi);
            }
        }
        terms.len()
    }

    /// Recovers all symbols that follow from the available ones. Spends one unit of `budget` per
    /// waiting row and one per symbol. False if the budget was exhausted.
    pub(super) fn advance(&mut self, budget: &mut u64) -> bool {
        while let Some(step) = self.ready.pop() {
            if *budget == 0 {
                self.ready.push(step);
                return false;
            }
            let mut spent = 1;
            let mut link = core::mem::replace(&mut self.waiting[step.symbol as usize], KNOWN);
            if link != KNOWN {
                self.steps.push(step);
            }
            while let Some(&Link { row, next }) = self.links.get(link as usize) {
                let sum = &mut self.sums[row as usize];
                sum.missing -= 1;
                sum.sum ^= step.symbol;
                if sum.missing == 1 {
                    self.ready.push(Step { symbol: sum.sum, esi: self.esis[row as usize] });
                }
                link = next;
                spent += 1;
            }
            *budget = budget.saturating_sub(spent);
        }
        true
    }
}
