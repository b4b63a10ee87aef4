//! Peeling on ids alone.

use super::{Lt, Rows};
use crate::{BlockLengthError, Esi};

/// Recovers source symbols as encoding symbols arrive: one block of one receiver, on ids. Symbols
/// are not compared: one that is pushed twice counts twice.
#[derive(Clone, Debug)]
pub struct Peeler {
    rows: Rows,
    /// For each source symbol, the first link of the waiting rows that it is part of; [`KNOWN`] once
    /// it is recovered.
    waiting: Vec<u32>,
    links: Vec<Link>,
    /// The rows that wait for more than one symbol, or did.
    sums: Vec<Sum>,
    recovered: usize,
    /// Symbols that are known and not yet taken out of their rows.
    fresh: Vec<u32>,
}

/// A row that a source symbol is part of, and where the next one is.
#[derive(Clone, Copy, Debug)]
struct Link {
    row: u32,
    next: u32,
}

/// What a row still misses.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// Unknown source symbols.
    missing: u32,
    /// Exclusive or of their numbers: the number itself when there is one.
    sum: u32,
}

/// No further link.
const END: u32 = u32::MAX;
/// Instead of links: the source symbol is known.
const KNOWN: u32 = u32::MAX - 1;

impl Peeler {
    /// Nothing is at hand yet.
    ///
    /// # Errors
    /// [`BlockLengthError`] if the code has no blocks of `source_symbols`.
    pub fn new(code: Lt, source_symbols: u32) -> Result<Self, BlockLengthError> {
        Ok(Self {
            rows: Rows::new(code, source_symbols)?,
            waiting: vec![END; source_symbols as usize],
            links: Vec::new(),
            sums: Vec::new(),
            recovered: 0,
            fresh: Vec::new(),
        })
    }

    /// Forgets all symbols, in the memory that there is.
    pub fn reset(&mut self) {
        self.waiting.fill(END);
        self.links.clear();
        self.sums.clear();
        self.recovered = 0;
    }

    /// Notes that encoding symbol `esi` is at hand, and what follows from it. Returns how many source
    /// symbols are known.
    pub fn push(&mut self, esi: Esi) -> usize {
        let row = self.sums.len() as u32;
        let (start, mut sum, mut missing) = (self.links.len(), 0, 0);
        for &term in self.rows.row(esi) {
            let first = &mut self.waiting[term as usize];
            if *first != KNOWN {
                let next = std::mem::replace(first, self.links.len() as u32);
                self.links.push(Link { row, next });
                sum ^= term;
                missing += 1;
            }
        }
        match missing {
            0 => {}
            1 => {
                // Its only link is the last one.
                self.waiting[sum as usize] = self.links[start].next;
                self.links.truncate(start);
                self.learn(sum);
            }
            _ => self.sums.push(Sum { missing, sum }),
        }
        self.recovered
    }

    /// Source symbols that are known.
    pub fn recovered(&self) -> usize {
        self.recovered
    }

    /// True if all source symbols are known.
    pub fn is_complete(&self) -> bool {
        self.recovered == self.waiting.len()
    }

    /// Takes `symbol`, and all that follows from it, out of the waiting rows.
    fn learn(&mut self, symbol: u32) {
        self.fresh.push(symbol);
        while let Some(symbol) = self.fresh.pop() {
            let mut link = std::mem::replace(&mut self.waiting[symbol as usize], KNOWN);
            if link == KNOWN {
                continue;
            }
            self.recovered += 1;
            while let Some(&Link { row, next }) = self.links.get(link as usize) {
                let sum = &mut self.sums[row as usize];
                sum.missing -= 1;
                sum.sum ^= symbol;
                if sum.missing == 1 {
                    self.fresh.push(sum.sum);
                }
                link = next;
            }
        }
    }
}
