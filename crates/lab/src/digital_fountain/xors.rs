//! `df.rs`: what a Reed-Solomon code over a whole file costs.

use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use serde::{Deserialize, Serialize};

/// The example of the text.
const SOURCE_SYMBOLS: u32 = 10_000;
const REDUNDANT_SYMBOLS: u32 = 10_000;

/// Bits of a field element, `A`.
const BITS: u32 = 16;

/// A primitive polynomial of degree 16: x^16 + x^12 + x^3 + x + 1 (Lin and Costello, table 2.7).
const POLYNOMIAL: u32 = 0x1_100B;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.rs",
    paper: "digital fountain, section IV",
    what: "Exclusive-ors of packets that a Cauchy Reed-Solomon code over GF(2^16) costs at \
           k = 10 000, n = 20 000: by the formula k (n - k) A/2, and by counting the ones of the \
           binary form of the code's own matrix, an A x A matrix for each element.",
    sweep: &SweepOf { name: "df.rs", kind: Kind::Counted, cases: |_| 1, run },
    claims: || {
        vec![
            Claim::identity(
                "total",
                "the formula: 800 000 000 exclusive-ors of source packets",
                Target::Equal(8e8),
                0.0,
                |rows: &[Xors]| only(rows, |row| row.formula),
            ),
            Claim::identity(
                "each",
                "the formula: 80 000 for each source packet",
                Target::Equal(8e4),
                0.0,
                |rows: &[Xors]| only(rows, |row| row.formula) / f64::from(SOURCE_SYMBOLS),
            ),
            Claim::printed(
                "counted",
                "counted on the matrix itself; half of its bits are ones, give or take a per mille",
                quote("it takes 800,000,000 exclusive-ors of source packets", "section IV"),
                Target::Equal(8e8),
                8e5,
                |rows: &[Xors]| only(rows, |row| row.counted),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

/// Exclusive-ors of the example.
#[derive(Serialize, Deserialize)]
struct Xors {
    formula: f64,
    counted: f64,
}

fn only(rows: &[Xors], number: fn(&Xors) -> f64) -> f64 {
    rows.first().map_or(f64::NAN, number)
}

fn run(_: &Case) -> Vec<Xors> {
    let pairs = u64::from(SOURCE_SYMBOLS) * u64::from(REDUNDANT_SYMBOLS);
    let formula = pairs * u64::from(BITS) / 2;
    // A packet is cut into A parts, and a one of the binary form is an exclusive-or of such parts.
    let costs = costs_of_reciprocals();
    let ones: u64 = (0..REDUNDANT_SYMBOLS)
        .map(|x| {
            // Element (x, y) of a Cauchy matrix: 1 / (x + y), rows and columns different elements.
            let columns = REDUNDANT_SYMBOLS..REDUNDANT_SYMBOLS + SOURCE_SYMBOLS;
            columns.map(|y| u64::from(costs[(x ^ y) as usize])).sum::<u64>()
        })
        .sum();
    let counted = (ones / u64::from(BITS)) as f64;
    vec![Xors { formula: formula as f64, counted }]
}

/// For each element but 0 the ones of the binary matrix that multiplies by its reciprocal.
fn costs_of_reciprocals() -> Vec<u16> {
    let order = (1_usize << BITS) - 1;
    let mut powers: Vec<u32> = Vec::with_capacity(order);
    let mut power = 1;
    for _ in 0..order {
        powers.push(power);
        power = times_x(power);
    }
    let mut costs = vec![0; order + 1];
    for (logarithm, &element) in powers.iter().enumerate() {
        let mut column = powers[(order - logarithm) % order];
        let mut ones = 0;
        for _ in 0..BITS {
            ones += column.count_ones() as u16;
            column = times_x(column);
        }
        costs[element as usize] = ones;
    }
    costs
}

fn times_x(element: u32) -> u32 {
    let doubled = element << 1;
    if doubled >> BITS == 1 { doubled ^ POLYNOMIAL } else { doubled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomial_is_primitive_and_one_costs_its_diagonal() {
        let costs = costs_of_reciprocals();
        // Every element but 0 is a power of x, so every one has a cost.
        assert!(costs[1..].iter().all(|&cost| cost >= BITS as u16));
        assert_eq!((costs[0], costs[1]), (0, BITS as u16));
    }
}
