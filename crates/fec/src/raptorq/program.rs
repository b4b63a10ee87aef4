//! A RaptorQ plan written down.
//!
//! Every intermediate symbol has a *slot*, a row of its own, and before the program starts the
//! inputs lie in slots too: that of the column which their matrix row was used to solve. With `y`
//! for what a pivot column would be if all inactive columns were zero, the program is:
//!
//! 1. for every pivot, in order: `y = input + y of the row's other pivot columns`;
//! 2. for every dense row: `d = input + y of the row's pivot columns`;
//! 3. for every HDPC row: `g = the row applied to y`, by the recurrence behind its definition;
//! 4. for every inactive column that a dense row solves: `z = a sum of d`;
//! 5. for every inactive column left (*free*, at most `H`): `x = a GF(256) combination of g and z`;
//! 6. for the columns of step 4: `x = z + a sum of the free columns`;
//! 7. for every pivot, in order: `x = input + x of the row's other columns`.
//!
//! Step 7 goes back to the sparse rows, so nothing needs the (dense) way that pivots depend on
//! inactive columns. Steps 4 to 6 are the inverse of a matrix of `u` inactive columns.

use super::params::Params;

/// The steps of the module's documentation, with everything looked up.
pub(crate) struct Program {
    pub(super) params: Params,
    /// Internal symbol ids of the inputs, ascending, and their slots.
    pub(super) inputs: Vec<Input>,
    /// Steps 1 and 7, in order.
    pub(super) pivots: Vec<Pivot>,
    /// Columns of the pivots' matrix rows.
    pub(super) pivot_terms: Vec<u32>,
    /// Inactive columns below `W`: their `y` is zero.
    pub(super) inactive_lt: Vec<u32>,
    /// Steps 2, 4 and 6.
    pub(super) dense_rows: Vec<DenseRow>,
    /// Columns, dense rows and free columns of the dense rows.
    pub(super) dense_terms: Vec<u32>,
    /// Step 3: the two HDPC rows that column `j` enters the recurrence with, for `j < K' + S - 1`.
    /// Empty if no column is free.
    pub(super) hdpc_pairs: Vec<[u8; 2]>,
    /// Step 5.
    pub(super) free: Vec<FreeColumn>,
}

#[derive(Clone, Copy)]
pub(super) struct Input {
    pub(super) isi: u32,
    pub(super) slot: u32,
}

/// One pivot: its terms follow those of the pivot before.
#[derive(Clone, Copy)]
pub(super) struct Pivot {
    /// The column that is solved: slot of the input, of `y` and of `x`.
    pub(super) column: u32,
    /// How many of the terms are pivots before this one.
    pub(super) solved: u16,
    /// How many terms there are; the others are inactive.
    pub(super) terms: u16,
}

/// One dense row and the inactive column that it solves: its terms follow those of the row before,
/// in three runs.
#[derive(Clone, Copy)]
pub(super) struct DenseRow {
    /// Slot of the input, and of `z` and `x`.
    pub(super) column: u32,
    /// Step 2: columns whose `y` are added.
    pub(super) solved: u32,
    /// Step 4: dense rows whose `d` are added.
    pub(super) rows: u32,
    /// Step 6: free columns whose `x` are added.
    pub(super) free: u32,
}

/// One column that only the HDPC rows determine.
pub(super) struct FreeColumn {
    pub(super) column: u32,
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
        self.inputs.iter().map(|input| (input.isi, input.slot as usize))
    }

    /// Rows of one stripe that the program needs beside the slots: `y`, `d` and `g`.
    pub(crate) fn scratch_rows(&self) -> usize {
        (self.params.w + self.params.h) as usize + self.dense_rows.len()
    }
}
