//! Planning: from ids to a program.

use super::dense::{self, DenseSolution};
use super::matrix::Matrix;
use super::params::Params;
use super::peeling::{Peeling, peel};
use super::program::{DenseRows, FreeColumn, Pivots, Program};
use crate::codes::shared::csr::Lists;
use crate::codes::shared::equations::{Budget, Stop};
use crate::decode::Work;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// The result of planning.
pub(super) enum Planned {
    Solved(Box<Program>),
    /// The symbols lack this much rank at least.
    Wanting(u32),
    OutOfBudget,
}

/// Finds a program that computes the intermediate symbols from the encoding symbols with internal
/// symbol ids `isis`, which are ascending, distinct and include padding.
pub(super) fn plan(params: &Params, isis: &[u32], budget: Work) -> Planned {
    match try_plan(params, isis, &mut Budget(budget.0)) {
        Ok(program) => Planned::Solved(Box::new(program)),
        Err(Stop::Wanting(lack)) => Planned::Wanting(lack),
        Err(Stop::OutOfBudget) => Planned::OutOfBudget,
    }
}

fn try_plan(params: &Params, isis: &[u32], budget: &mut Budget) -> Result<Program, Stop> {
    let matrix = Matrix::new(params, isis);
    budget.spend(matrix.weight())?;
    let peeling = peel(params, &matrix, budget)?;
    let rows = peeling.pivots.iter().map(|&(row, column)| (column, matrix.row(row as usize)));
    let pivots = Pivots::new(rows, |column| peeling.is_pivot(column));
    let solution = dense::solve(params, &matrix, &peeling, &pivots, budget)?;
    Ok(write_down(params, isis, &matrix, &peeling, pivots, solution))
}

/// Terms of a left-over row, most of which have a high degree.
const TYPICAL_TERMS: usize = 32;

/// Assigns slots, and writes the program in terms of them.
fn write_down(
    params: &Params,
    isis: &[u32],
    matrix: &Matrix,
    peeling: &Peeling,
    mut pivots: Pivots,
    solution: DenseSolution,
) -> Program {
    // Slots: the inputs that are used, then the columns without an input.
    let mut column_of_row = vec![None; matrix.row_count()];
    for &(row, column) in &peeling.pivots {
        column_of_row[row as usize] = Some(column);
    }
    for &(row, inactive) in &solution.rows.solved {
        column_of_row[row as usize] = Some(peeling.inactive[inactive as usize]);
    }
    let (ldpc, symbols) = column_of_row.split_at(params.s as usize);
    let without_input = ldpc.iter().flatten().copied();
    let free = solution.free.iter().map(|free| peeling.inactive[free.inactive as usize]);
    let mut slots = vec![0; params.l as usize];
    let in_order = symbols.iter().flatten().copied().chain(without_input.clone()).chain(free);
    for (slot, column) in (0..).zip(in_order) {
        slots[column as usize] = slot;
    }
    let slot = |column: u32| slots[column as usize];
    let inactive_slot = |index: u32| slot(peeling.inactive[index as usize]);

    pivots.look_up(&slots);
    let free_slots: Vec<u32> = solution.free.iter().map(|f| inactive_slot(f.inactive)).collect();
    let dense_rows = solution.rows.solved;
    let mut solved = Lists::with_capacity(dense_rows.len(), dense_rows.len() * TYPICAL_TERMS);
    for &(row, _) in &dense_rows {
        let columns = matrix.row(row as usize).iter().copied();
        solved.push(columns.filter(|&other| peeling.is_pivot(other)).map(slot));
    }
    let dense_rows = DenseRows {
        slots: dense_rows.iter().map(|&(_, inactive)| inactive_slot(inactive)).collect(),
        solved,
        rows: solution.rows.rows,
        free: solution.rows.free.map(|index| free_slots[index as usize]),
    };
    let free = (solution.free.into_iter().zip(&free_slots))
        .map(|(free, &slot)| FreeColumn {
            slot,
            hdpc_factors: free.hdpc_factors,
            dense_factors: free.dense_factors,
        })
        .collect();
    let lt = |&column: &u32| column < params.w;
    Program {
        params: *params,
        inputs: isis.iter().zip(symbols).filter_map(|(&isi, used)| used.map(|_| isi)).collect(),
        empty: without_input.map(slot).collect(),
        pivots,
        inactive_lt: peeling.inactive.iter().copied().filter(lt).map(slot).collect(),
        dense_rows,
        hdpc_pairs: solution.hdpc_pairs,
        free,
        slots,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::raptorq::tuple::Tuple;

    /// A set of repair symbols chosen to resist peeling: every row has the largest degree.
    fn heaviest(params: &Params, count: usize) -> Vec<u32> {
        let repair = params.k_prime..1 << 24;
        repair.filter(|&isi| Tuple::new(params, isi).d == 30).take(count).collect()
    }

    #[test]
    fn rows_of_the_largest_degree_run_out_of_budget() {
        let params = Params::covering(10_000);
        let isis = heaviest(&params, 10_000);
        assert_eq!(isis.len(), 10_000);
        assert!(matches!(plan(&params, &isis, params.work()), Planned::OutOfBudget));
        assert!(matches!(plan(&params, &isis, Work(0)), Planned::OutOfBudget));
    }

    #[test]
    fn rows_of_the_largest_degree_are_solved_with_more_budget() {
        let params = Params::covering(1_000);
        let isis = heaviest(&params, 1_010);
        assert!(matches!(plan(&params, &isis, Work::UNBOUNDED), Planned::Solved(_)));
    }

    #[test]
    fn surplus_rows_replace_hdpc_rows() {
        let params = Params::covering(1_000);
        let mut isis: Vec<u32> = (0..params.k_prime).collect();
        let light = plan(&params, &isis, params.work());
        isis.extend(heaviest(&params, 64));
        let both = plan(&params, &isis, params.work());
        let (Planned::Solved(light), Planned::Solved(both)) = (light, both) else {
            panic!("honest rows are within the budget")
        };
        assert_eq!(light.free.len(), params.h as usize, "each HDPC row is needed");
        assert!(both.free.is_empty(), "surplus rows replace HDPC rows");
        assert!(both.hdpc_pairs.is_empty());
    }

    #[test]
    fn lacking_rows_are_counted() {
        let params = Params::covering(100);
        for missing in 1..=20 {
            let isis: Vec<u32> = (missing..params.k_prime).collect();
            let Planned::Wanting(lack) = plan(&params, &isis, Work::UNBOUNDED) else {
                panic!("{missing} missing")
            };
            assert!((1..=missing).contains(&lack), "{missing} missing, {lack} wanted");
        }
    }

    #[test]
    fn the_default_budget_is_several_times_what_it_takes() {
        for k in [10, 100, 1_000, 10_000, 56_403] {
            let params = Params::covering(k);
            let isis: Vec<u32> = (0..params.k_prime).map(|i| i + i % 2 * params.k_prime).collect();
            let mut isis: Vec<u32> = isis.into_iter().chain([1 << 23, (1 << 23) + 1]).collect();
            isis.sort_unstable();
            let mut budget = Budget(params.work().0);
            assert!(try_plan(&params, &isis, &mut budget).is_ok());
            let spent = params.work().0 - budget.0;
            println!("K = {k}: {spent} units, 1/{} of the budget", params.work().0 / spent);
            assert!(spent * 4 < params.work().0, "K = {k}: {spent} units");
        }
    }
}
