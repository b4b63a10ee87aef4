//! Binary linear equations, packed 64 columns to a word, and a budget for solving them: the dense
//! part of every elimination in this crate.

/// Why elimination ended early.
use alloc::vec;
use alloc::vec::Vec;

pub(crate) enum Stop {
    Wanting(u32),
    OutOfBudget,
}

/// The remaining [`Work`](crate::Work).
pub(crate) struct Budget(pub(crate) u64);

impl Budget {
    /// Spends `units`, before or after the work they stand for.
    pub(crate) fn spend(&mut self, units: usize) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(units as u64).ok_or(Stop::OutOfBudget)?;
        Ok(())
    }
}

pub(crate) fn xor_into(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= from;
    }
}

pub(crate) fn flip(bits: &mut [u64], index: u32) {
    bits[index as usize / 64] ^= 1 << (index % 64);
}

pub(crate) fn is_set(bits: &[u64], index: u32) -> bool {
    bits[index as usize / 64] >> (index % 64) & 1 == 1
}

/// Indices of the ones, ascending.
pub(crate) fn ones(bits: &[u64]) -> impl Iterator<Item = u32> {
    let mut words = (0..).step_by(64).zip(bits);
    let (mut base, mut rest) = (0, 0);
    core::iter::from_fn(move || {
        while rest == 0 {
            (base, rest) = words.next().map(|(base, &word)| (base, word))?;
        }
        let index = base + rest.trailing_zeros();
        rest &= rest - 1;
        Some(index)
    })
}

/// Independent binary equations in the columns, in echelon form, each with the rows that it was
/// computed from.
pub(crate) struct Basis {
    columns: usize,
    /// Words for the columns; as many again record which inserted rows were summed.
    words: usize,
    bits: Vec<u64>,
    /// For each equation its row and its leading column.
    pub(crate) rows: Vec<(u32, u32)>,
    /// For each column the equation that leads with it.
    leaders: Vec<Option<u32>>,
}

impl Basis {
    pub(crate) fn new(columns: usize) -> Self {
        let words = columns.div_ceil(64);
        Self { columns, words, bits: Vec::new(), rows: Vec::new(), leaders: vec![None; columns] }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() == self.columns
    }

    pub(crate) fn equation(&self, index: usize) -> &[u64] {
        &self.bits[index * 2 * self.words..][..2 * self.words]
    }

    /// The inserted rows whose sum an equation is.
    pub(crate) fn history(&self, index: usize) -> &[u64] {
        &self.equation(index)[self.words..]
    }

    /// Adds the equation that `fill` writes, if it is independent of earlier ones.
    pub(crate) fn insert(
        &mut self,
        row: u32,
        fill: impl FnOnce(&mut [u64]),
        budget: &mut Budget,
    ) -> Result<(), Stop> {
        let words = self.words;
        let start = self.bits.len();
        budget.spend(2 * words)?;
        self.bits.resize(start + 2 * words, 0);
        let (before, this) = self.bits.split_at_mut(start);
        fill(&mut this[..words]);
        let mut word = 0;
        while word < words {
            if this[word] == 0 {
                word += 1;
                continue;
            }
            let column = word as u32 * 64 + this[word].trailing_zeros();
            let Some(leader) = self.leaders[column as usize] else {
                let index = self.rows.len() as u32;
                self.leaders[column as usize] = Some(index);
                self.rows.push((row, column));
                flip(&mut this[words..], index);
                return Ok(());
            };
            let leader = &before[leader as usize * 2 * words..][..2 * words];
            budget.spend(2 * words - word)?;
            xor_into(&mut this[word..], &leader[word..]);
        }
        self.bits.truncate(start);
        Ok(())
    }

    /// The columns that are not the leading column of an equation.
    pub(crate) fn free_columns(&self) -> Vec<u32> {
        let free = |(column, leader): (u32, &Option<u32>)| leader.is_none().then_some(column);
        (0..).zip(&self.leaders).filter_map(free).collect()
    }

    /// Solves: each equation keeps only its leading column and free columns.
    pub(crate) fn reduce(&mut self, budget: &mut Budget) -> Result<(), Stop> {
        let words = self.words;
        let mut sum = vec![0; 2 * words];
        for index in self.leaders.iter().rev().flatten().map(|&index| index as usize) {
            let (_, lead) = self.rows[index];
            sum.copy_from_slice(self.equation(index));
            // Equations that lead with a later column are reduced already: adding one changes no
            // other leading column.
            for column in ones(&self.equation(index)[..words]).filter(|&column| column != lead) {
                if let Some(leader) = self.leaders[column as usize] {
                    budget.spend(2 * words)?;
                    xor_into(&mut sum, self.equation(leader as usize));
                }
            }
            self.bits[index * 2 * words..][..2 * words].copy_from_slice(&sum);
        }
        Ok(())
    }
}
