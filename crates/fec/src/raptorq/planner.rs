//! From ids to a program.

use super::dense::{self, DenseSolution};
use super::matrix::Matrix;
use super::params::Params;
use super::peeling::{Peeling, Place, peel};
use super::program::{DenseRow, FreeColumn, Input, Pivot, Program};
use crate::Work;

/// What planning came to.
pub(super) enum Planned {
    Solved(Program),
    /// The symbols lack this much rank at least.
    Wanting(u32),
    OutOfBudget,
}

/// Why planning ended early.
pub(super) enum Stop {
    Wanting(u32),
    OutOfBudget,
}

/// What is left of the [`Work`] that may be done.
pub(super) struct Budget(u64);

impl Budget {
    /// Takes `units` for what is about to be done, or has just been done.
    pub(super) fn spend(&mut self, units: usize) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(units as u64).ok_or(Stop::OutOfBudget)?;
        Ok(())
    }
}

/// Finds a program that computes the intermediate symbols from the encoding symbols with internal
/// symbol ids `isis`: ascending, distinct, padding included.
pub(super) fn plan(params: &Params, isis: &[u32], budget: Work) -> Planned {
    match try_plan(params, isis, &mut Budget(budget.0)) {
        Ok(program) => Planned::Solved(program),
        Err(Stop::Wanting(lack)) => Planned::Wanting(lack),
        Err(Stop::OutOfBudget) => Planned::OutOfBudget,
    }
}

fn try_plan(params: &Params, isis: &[u32], budget: &mut Budget) -> Result<Program, Stop> {
    let matrix = Matrix::new(params, isis);
    budget.spend(matrix.weight())?;
    let peeling = peel(params, &matrix, budget)?;
    let solution = dense::solve(params, &matrix, &peeling, budget)?;
    Ok(write_down(params, isis, &matrix, &peeling, solution))
}

/// Looks everything up.
fn write_down(
    params: &Params,
    isis: &[u32],
    matrix: &Matrix,
    peeling: &Peeling,
    solution: DenseSolution,
) -> Program {
    let is_pivot = |column: u32| matches!(peeling.places[column as usize], Place::Pivot(_));
    let mut slot_of_row = vec![None; matrix.row_count()];

    let mut pivots = Vec::with_capacity(peeling.pivots.len());
    let mut pivot_terms = Vec::with_capacity(matrix.weight());
    for &(row, column) in &peeling.pivots {
        slot_of_row[row as usize] = Some(column);
        let start = pivot_terms.len();
        let others = || matrix.row(row as usize).iter().copied().filter(|&other| other != column);
        pivot_terms.extend(others().filter(|&other| is_pivot(other)));
        let solved = (pivot_terms.len() - start) as u16;
        pivot_terms.extend(others().filter(|&other| !is_pivot(other)));
        let terms = (pivot_terms.len() - start) as u16;
        pivots.push(Pivot { column, solved, terms });
    }

    let free: Vec<FreeColumn> = (solution.free.into_iter())
        .map(|free| FreeColumn {
            column: peeling.inactive[free.inactive as usize],
            hdpc_factors: free.hdpc_factors,
            dense_factors: free.dense_factors,
        })
        .collect();
    let mut dense_rows = Vec::with_capacity(solution.rows.len());
    let mut dense_terms = Vec::new();
    for solved in &solution.rows {
        let column = peeling.inactive[solved.inactive as usize];
        slot_of_row[solved.row as usize] = Some(column);
        let start = dense_terms.len();
        let columns = matrix.row(solved.row as usize).iter().copied();
        dense_terms.extend(columns.filter(|&other| is_pivot(other)));
        dense_rows.push(DenseRow {
            column,
            solved: (dense_terms.len() - start) as u32,
            rows: solved.rows.len() as u32,
            free: solved.free.len() as u32,
        });
        dense_terms.extend(&solved.rows);
        dense_terms.extend(solved.free.iter().map(|&i| free[i as usize].column));
    }

    let slots = &slot_of_row[params.s as usize..];
    let inputs = (isis.iter().zip(slots))
        .filter_map(|(&isi, slot)| slot.map(|slot| Input { isi, slot }))
        .collect();
    let lt = |&&column: &&u32| column < params.w;
    Program {
        params: *params,
        inputs,
        pivots,
        pivot_terms,
        inactive_lt: peeling.inactive.iter().filter(lt).copied().collect(),
        dense_rows,
        dense_terms,
        hdpc_pairs: solution.hdpc_pairs,
        free,
    }
}
