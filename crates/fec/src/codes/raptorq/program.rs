//! A RaptorQ plan as a list of steps.
//!
//! Every intermediate symbol has a *slot*, which is a row. Before the program starts, each input is
//! in the slot of the column that its matrix row solves. Slots are numbered so that the inputs come
//! first, in their order: loading them accesses memory sequentially. A second set of rows by slots
//! holds `y`: the value of a pivot column if all inactive columns were zero. The program is:
//!
//! 1. for every pivot, in order: `y = input + y of the row's other pivot columns`;
//! 2. for every dense row: `d = input + y of the row's pivot columns`;
//! 3. for every HDPC row: `g = the row applied to y`, by the recurrence behind its definition;
//! 4. for every inactive column that a dense row solves: `z = a sum of d`;
//! 5. for every inactive column left (*free*, at most `H`): `x = a GF(256) combination of g and z`;
//! 6. for the columns of step 4: `x = z + a sum of the free columns`;
//! 7. for every pivot, in order: `x = input + x of the row's other columns`.
//!
//! Step 7 uses the sparse rows again, so no step needs the dense dependence of pivots on inactive
//! columns. Steps 4 to 6 are the inverse of a matrix of `u` inactive columns.

use super::params::Params;
use crate::codes::shared::csr::Lists;
use alloc::vec;
use alloc::vec::Vec;

/// The steps of the module's documentation, with all indices resolved.
pub(crate) struct Program {
    pub(super) params: Params,
    /// Internal symbol ids of the inputs, padding included, ascending: their slots are 0, 1, 2 ...
    pub(super) inputs: Vec<u32>,
    /// Slots that are read as inputs but have none: zero, like those of padding symbols.
    pub(super) empty: Vec<u32>,
    /// The slot of each column.
    pub(super) slots: Vec<u32>,
    /// Steps 1 and 7.
    pub(super) pivots: Pivots,
    /// Slots of inactive columns below `W`: their `y` is zero.
    pub(super) inactive_lt: Vec<u32>,
    /// Steps 2, 4 and 6.
    pub(super) dense_rows: DenseRows,
    /// Step 3: see [`hdpc::pairs`](super::hdpc::pairs). Empty if no column is free.
    pub(super) hdpc_pairs: Vec<[u8; 2]>,
    /// Step 5.
    pub(super) free: Vec<FreeColumn>,
}

/// The pivots, in order, with the other columns of their matrix rows.
pub(super) struct Pivots {
    pivots: Vec<Pivot>,
    /// For each row: the column that is solved; earlier pivots; inactive columns.
    columns: Vec<u32>,
}

/// The length of a pivot's row, and of its part before the inactive columns.
#[derive(Clone, Copy)]
struct Pivot {
    active: u16,
    columns: u16,
}

impl Pivots {
    /// The pivots that solve certain columns, by these rows of a matrix. All columns of a row but
    /// its own are solved by earlier pivots or inactive.
    pub(super) fn new<'m>(
        rows: impl Iterator<Item = (u32, &'m [u32])> + Clone,
        is_pivot: impl Fn(u32) -> bool,
    ) -> Self {
        let weight = rows.clone().map(|(_, row)| row.len()).sum();
        let mut all = vec![0; weight];
        let mut rest = all.as_mut_slice();
        let pivots = rows.map(|(column, row)| {
            let columns = rest.split_off_mut(..row.len()).unwrap_or_default();
            // A partition without unpredictable branches: each item is written at both ends of the
            // gap, one copy remains, and the gap closes. The column itself is placed before them.
            let (mut front, mut back) = (1, columns.len());
            for &other in row {
                let is_other = other != column;
                let is_pivot = is_pivot(other);
                columns[if is_other { front } else { 0 }] = other;
                columns[if is_other { back - 1 } else { 0 }] = other;
                front += usize::from(is_other & is_pivot);
                back -= usize::from(is_other & !is_pivot);
            }
            Pivot { active: front as u16, columns: row.len() as u16 }
        });
        Self { pivots: pivots.collect(), columns: all }
    }

    /// Replaces columns by their slots.
    pub(super) fn look_up(&mut self, slots: &[u32]) {
        for column in &mut self.columns {
            *column = slots[*column as usize];
        }
    }

    /// The number of ones in all their rows.
    pub(super) fn weight(&self) -> usize {
        self.columns.len()
    }

    /// For each pivot its column, the earlier pivots in its row, and all other columns of the row:
    /// those pivots first, then the inactive ones. After [`look_up`](Self::look_up), slots instead
    /// of columns.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &[u32], &[u32])> {
        PivotIter { pivots: self.pivots.iter(), columns: &self.columns }
    }
}

/// See [`Pivots::iter`].
struct PivotIter<'a> {
    pivots: core::slice::Iter<'a, Pivot>,
    /// Columns of the remaining pivots.
    columns: &'a [u32],
}

impl Pivot {
    #[inline(always)]
    fn with(self, columns: &[u32]) -> (usize, &[u32], &[u32]) {
        (columns[0] as usize, &columns[1..self.active.into()], &columns[1..])
    }
}

impl<'a> Iterator for PivotIter<'a> {
    type Item = (usize, &'a [u32], &'a [u32]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let pivot = self.pivots.next()?;
        let (own, rest) = self.columns.split_at(pivot.columns.into());
        self.columns = rest;
        Some(pivot.with(own))
    }
}

impl DoubleEndedIterator for PivotIter<'_> {
    #[inline(always)]
    fn next_back(&mut self) -> Option<Self::Item> {
        let pivot = self.pivots.next_back()?;
        let start = self.columns.len() - usize::from(pivot.columns);
        let (rest, own) = self.columns.split_at(start);
        self.columns = rest;
        Some(pivot.with(own))
    }
}

/// The dense rows and the inactive columns that they solve, each with:
pub(super) struct DenseRows {
    /// Slot of the input, and of `z` and `x`.
    pub(super) slots: Vec<u32>,
    /// Step 2: slots whose `y` are added.
    pub(super) solved: Lists,
    /// Step 4: dense rows whose `d` are added.
    pub(super) rows: Lists,
    /// Step 6: slots of free columns whose `x` are added.
    pub(super) free: Lists,
}

/// A column that only the HDPC rows determine.
pub(super) struct FreeColumn {
    pub(super) slot: u32,
    /// Factors of the `H` values `g`.
    pub(super) hdpc_factors: Vec<u8>,
    /// Factors of the values `z`, in the order of the dense rows.
    pub(super) dense_factors: Vec<u8>,
}

impl Program {
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// Internal symbol ids of the inputs, padding included, ascending, and their slots.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (u32, usize)> {
        self.inputs.iter().copied().zip(0..)
    }

    /// Rows of one stripe that the program needs beside the slots: `y`, `d` and `g`.
    pub(crate) fn scratch_rows(&self) -> usize {
        (self.params.l + self.params.h) as usize + self.dense_rows.slots.len()
    }
}
