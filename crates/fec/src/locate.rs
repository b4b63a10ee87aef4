//! Wrong symbols of a block, found by the symbols beyond those that its plan needs.
//!
//! A block is recovered from some of its available symbols. If one of these is wrong, so is the
//! block. The *surplus* symbols, which the plan does not read, show which: each is compared with
//! the symbol that the recovered block gives for its ESI. The differences are the *syndromes*.
//! Every wrong symbol adds its error, times its column of the parity check matrix, to the
//! syndromes. The errors of a few wrong symbols are linearly independent, because a symbol has many
//! columns of bytes. So the column space of the syndromes is spanned by the columns of the wrong
//! symbols, and the vectors that are orthogonal to it, the *null vectors*, are orthogonal to their
//! columns and to no others (J. J. Metzner and E. J. Kapturowski, "A general decoding technique
//! applicable to replicated file disagreement location and concatenated code decoding", IEEE
//! Transactions on Information Theory 36(4), 1990).
//!
//! With `e` surplus symbols and syndromes of rank `r` there are `e - r` null vectors. A correct
//! symbol is orthogonal to all of them by chance: with probability 256^-(e - r) for a dense code
//! over GF(256), 2^-(e - r) for a binary one, and never for an MDS code if there is one of them.
//!
//! Limits: wrong symbols whose errors are linearly dependent may hide each other, or accuse correct
//! ones; so do more wrong symbols than a symbol has bytes. Of sparse codes, a symbol that
//! contributes to no surplus symbol is never accused, and one that contributes to a single one is
//! accused together with it.

use crate::bytes::kernel::InstructionSet;
use crate::bytes::line::{LINE, Line};
use crate::bytes::octets::{OctetRows, add_product};
use crate::bytes::stripes::Scratch;
use crate::bytes::stripes::loading::SymbolSource;
use crate::code::{CodeProfile, Factors};
use crate::codes::shared::splitmix::SplitMix64;
use crate::decode::Work;
use crate::field::gf256;
use crate::ids::Esi;
use crate::plan::{Plan, Weighted};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// Searches for the wrong symbols of a block that was recovered and is not what it should be.
#[derive(Debug)]
pub struct Locator {
    plan: Arc<Plan>,
    /// Available symbols that the plan does not read, ascending.
    surplus: Vec<Esi>,
    /// Null vectors without which correct symbols would be accused; `None` for codes that are not
    /// supported.
    confirmations: Option<usize>,
    /// The columns of bytes that were added so far: for each piece of them, the syndrome of each
    /// surplus symbol.
    pieces: Vec<Vec<u8>>,
}

/// The result of [`Locator::locate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The syndromes accuse these symbols.
    Located(Located),
    /// So many more symbols are needed.
    Wanting(u32),
    /// The budget was exhausted first.
    OutOfBudget,
    /// The code has no symbol that others confirm, or is not supported:
    /// [`NoCode`](crate::codes::no_code) and
    /// [`Cauchy16`](crate::codes::reed_solomon::ReedSolomonCode::Cauchy16).
    Unsupported,
}

/// The symbols that are wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The wrong symbols, ascending.
    pub wrong: Vec<Esi>,
    /// Available symbols beyond `k` without the wrong ones.
    pub surplus_left: u32,
    /// The rank of the syndromes: at least as many symbols are wrong. 0: the symbols agree with
    /// each other.
    pub rank: u32,
}

impl Locator {
    /// Most surplus symbols that are compared: elimination takes the third power of their number.
    pub const MAX_SURPLUS: usize = 1024;

    /// Surplus symbols with which a single wrong symbol of a block of `source_symbols` is found.
    /// `None` if the code is not supported: see [`Location::Unsupported`].
    pub fn least_surplus(profile: &CodeProfile, source_symbols: u32) -> Option<u32> {
        confirmations(profile, source_symbols as usize).map(|null_vectors| null_vectors as u32 + 1)
    }

    /// A search among `available` symbols, ascending, which include all [inputs](Plan::inputs) of
    /// `plan`. `profile` describes the code of the block. At most
    /// [`MAX_SURPLUS`](Self::MAX_SURPLUS) others are compared.
    pub fn new(
        profile: &CodeProfile,
        plan: &Arc<Plan>,
        available: impl IntoIterator<Item = Esi>,
    ) -> Self {
        let mut inputs = plan.inputs().iter().peekable();
        let is_surplus = |esi: &Esi| inputs.next_if_eq(&esi).is_none();
        let surplus = available.into_iter().filter(is_surplus).take(Self::MAX_SURPLUS);
        let surplus: Vec<Esi> = surplus.collect();
        let symbols = plan.inputs().len() + surplus.len();
        let confirmations = confirmations(profile, symbols);
        Self { plan: Arc::clone(plan), surplus, confirmations, pieces: Vec::new() }
    }

    /// The symbols that are compared with the recovered block.
    pub fn surplus(&self) -> &[Esi] {
        &self.surplus
    }

    /// Bytes that [`add_columns`](Self::add_columns) allocates for symbols of `width` bytes.
    pub fn memory(&self, width: usize) -> usize {
        self.plan.memory(width).saturating_add((self.surplus.len() + 1).saturating_mul(width))
    }

    /// Compares the surplus symbols, or a slice of `width` bytes of them. `source` gives the bytes
    /// of the plan's inputs, then of the [surplus](Self::surplus) symbols. A caller that is short
    /// of memory calls this once for each slice.
    ///
    /// # Errors
    /// The first error of `source`.
    pub fn add_columns<'s, S: SymbolSource<'s>>(
        &mut self,
        width: usize,
        mut source: S,
        scratch: Scratch,
    ) -> Result<Scratch, S::Error> {
        let block = self.plan.execute(width, Borrowed(&mut source), scratch)?;
        let mut syndromes = vec![0; self.surplus.len() * width];
        block.write_symbols(&self.surplus, &mut syndromes);
        let mut symbol = vec![0; width];
        for (&esi, syndrome) in self.surplus.iter().zip(syndromes.chunks_exact_mut(width.max(1))) {
            if let Some(bytes) = source.lend(esi) {
                syndrome.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
            } else {
                symbol.fill(0);
                source.read(esi, &mut symbol)?;
                syndrome.iter_mut().zip(&symbol).for_each(|(sum, byte)| *sum ^= byte);
            }
        }
        self.pieces.push(syndromes);
        Ok(block.into_scratch())
    }

    /// The wrong symbols, by the columns that were added; without any, all agree. Spends at most
    /// about `budget`.
    pub fn locate(&self, budget: Work) -> Location {
        self.locate_with(InstructionSet::best(), budget)
    }

    fn locate_with(&self, instructions: InstructionSet, budget: Work) -> Location {
        let count = self.surplus.len();
        let Some(confirmations) = self.confirmations else { return Location::Unsupported };
        if let lack @ 1.. = (confirmations + 1).saturating_sub(count) {
            return Location::Wanting(lack as u32);
        }
        let Some(Elimination { rank, null_vectors }) = self.eliminate(instructions, budget) else {
            return Location::OutOfBudget;
        };
        let symbols = self.plan.inputs().len() + count;
        let surplus_left = |wrong: usize| {
            symbols.saturating_sub(wrong + self.plan.source_symbols() as usize) as u32
        };
        if rank == 0 {
            let surplus_left = surplus_left(0);
            return Location::Located(Located { wrong: Vec::new(), surplus_left, rank: 0 });
        }
        if null_vectors.len() < confirmations {
            // Twice as many confirm twice as many errors.
            return Location::Wanting(count as u32);
        }
        let weights = self.weights(instructions, &null_vectors);
        let sums = Weighted { instructions, esis: &self.surplus, weights: &weights };
        let Some(contributions) = self.plan.contributions(sums) else {
            return Location::Unsupported;
        };
        let inputs = self.plan.inputs().iter().enumerate();
        let inputs = inputs.filter(|&(row, _)| is_accused(contributions.row(row)));
        let surplus = self.surplus.iter().enumerate();
        let surplus = surplus.filter(|&(row, _)| is_accused(weights.row(row)));
        let mut wrong: Vec<Esi> = inputs.chain(surplus).map(|(_, &esi)| esi).collect();
        wrong.sort_unstable();
        let surplus_left = surplus_left(wrong.len());
        Location::Located(Located { wrong, surplus_left, rank: rank as u32 })
    }

    /// Eliminates the syndromes; `None` if the budget is exhausted.
    fn eliminate(&self, instructions: InstructionSet, budget: Work) -> Option<Elimination> {
        let count = self.surplus.len();
        let width: usize = self.pieces.iter().map(|piece| piece.len() / count.max(1)).sum();
        // A row: a sum of syndromes, and the factor of each of them.
        let syndrome_lines = width.div_ceil(LINE);
        let lines = syndrome_lines + count.div_ceil(LINE);
        let words = (lines * (LINE / 8)) as u64;
        let mut left = budget.0;
        let mut pivots: Vec<(usize, Vec<Line>)> = Vec::new();
        let mut null_vectors = Vec::new();
        for number in 0..count {
            let mut row = vec![Line::ZERO; lines];
            self.copy_syndrome(number, &mut row);
            *octet_mut(&mut row, syndrome_lines * LINE + number) = 1;
            for (at, pivot) in &pivots {
                let factor = *octet_mut(&mut row, *at);
                if factor != 0 {
                    left = left.checked_sub(words)?;
                    add_product(instructions, &mut row, factor, pivot);
                }
            }
            left = left.checked_sub(words)?;
            match first_octet(row.get(..syndrome_lines).unwrap_or_default()) {
                Some((at, octet)) => {
                    let mut pivot = vec![Line::ZERO; lines];
                    add_product(instructions, &mut pivot, gf256::inverse(octet), &row);
                    pivots.push((at, pivot));
                }
                None => null_vectors.push(row.split_off(syndrome_lines)),
            }
        }
        Some(Elimination { rank: pivots.len(), null_vectors })
    }

    /// Copies the syndrome of a surplus symbol, of all columns that were added.
    fn copy_syndrome(&self, number: usize, row: &mut [Line]) {
        let count = self.surplus.len();
        let pieces = self.pieces.iter().flat_map(|piece| {
            let width = piece.len() / count.max(1);
            piece.get(number * width..(number + 1) * width).unwrap_or_default()
        });
        let to = row.iter_mut().flat_map(|line| &mut line.0);
        to.zip(pieces).for_each(|(to, &octet)| *to = octet);
    }

    /// The factor of each surplus symbol in random sums of the null vectors, a line of them, and in
    /// random sums of all surplus symbols, another line.
    fn weights(&self, instructions: InstructionSet, null_vectors: &[Vec<Line>]) -> OctetRows {
        let mut random = SplitMix64::new(self.surplus.len() as u64);
        let mut weights = OctetRows::of_lines(self.surplus.len(), ACCUSED_LINES);
        for row in 0..self.surplus.len() {
            if let [_, probe] = weights.row_mut(row) {
                *probe = random_line(&mut random);
            }
        }
        for vector in null_vectors {
            let factors = random_line(&mut random);
            for (row, &octet) in vector.iter().flat_map(|line| &line.0).enumerate() {
                if octet != 0 && row < self.surplus.len() {
                    weights.add(instructions, row, octet, &[factors, Line::ZERO]);
                }
            }
        }
        weights
    }
}

/// The null vectors of the syndromes, an octet for each surplus symbol, and their rank.
struct Elimination {
    rank: usize,
    null_vectors: Vec<Vec<Line>>,
}

/// Lines of a row of weights, and of contributions: sums of null vectors, then of all surplus
/// symbols.
const ACCUSED_LINES: usize = 2;

/// True if a symbol contributes to surplus symbols, and to no null vector.
fn is_accused(row: &[Line]) -> bool {
    let is_zero = |line: &Line| line.0.iter().all(|&octet| octet == 0);
    matches!(row, [null, probe] if is_zero(null) && !is_zero(probe))
}

/// Null vectors that it takes so that a correct symbol among `symbols` is hardly ever accused;
/// `None` if the code is not supported.
fn confirmations(profile: &CodeProfile, symbols: usize) -> Option<usize> {
    /// One correct symbol in a thousand blocks is accused.
    const BINARY_MARGIN: usize = 10;
    match profile.factors {
        Factors::None | Factors::OctetPairs => None,
        Factors::Octets if profile.is_mds => Some(1),
        // With one, a symbol in 256 is accused.
        Factors::Octets => Some(3),
        Factors::Bits => Some(symbols.max(1).ilog2() as usize + 1 + BINARY_MARGIN),
    }
}

fn random_line(random: &mut SplitMix64) -> Line {
    let mut line = Line::ZERO;
    for octets in line.0.chunks_exact_mut(8) {
        octets.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    line
}

fn octet_mut(row: &mut [Line], at: usize) -> &mut u8 {
    &mut row[at / LINE].0[at % LINE]
}

/// The first octet that is not 0, and its place.
fn first_octet(row: &[Line]) -> Option<(usize, u8)> {
    let octets = row.iter().flat_map(|line| line.0).enumerate();
    octets.into_iter().find(|&(_, octet)| octet != 0)
}

/// A source that is used again.
struct Borrowed<'a, S>(&'a mut S);

impl<'s, S: SymbolSource<'s>> SymbolSource<'s> for Borrowed<'_, S> {
    type Error = S::Error;

    fn read(&mut self, esi: Esi, out: &mut [u8]) -> Result<(), S::Error> {
        self.0.read(esi, out)
    }

    fn lend(&self, esi: Esi) -> Option<&'s [u8]> {
        self.0.lend(esi)
    }
}
