//! `df.lt`: LT codes, and what the text says of the commercial ones.

use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::statistics::{Histogram, largest};
use fontana_fec::Esi;
use fontana_fec::codes::lt::LtCode;
use fontana_fec::study::lt::{self, Degrees, Peeler};
use serde::{Deserialize, Serialize};

/// Lengths of blocks that are peeled, batches, and trials of a batch, quick and full.
const TRIALS: [(u32, [u32; 2], [u32; 2]); 3] =
    [(1000, [10, 100], [1000, 100_000]), (10_000, [4, 40], [50, 500]), (100_000, [1, 10], [4, 40])];

/// "More than 1.05 with probability less than 10^-8."
const LIMIT: f64 = 1.05;

/// "Values of k in the hundreds of thousands."
const LARGE: u32 = 300_000;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.lt",
    paper: "digital fountain, section V-A",
    what: "LT codes of our own, robust soliton with c = 0.03 and delta = 0.5 and peeling (`fast`) \
           or dense enough for 1.05 k (`strict`): symbols needed, in 10^7 trials of 1000 symbols \
           (quick: 10 000) and fewer of longer blocks; how often a source symbol is in none of \
           1.05 k symbols; and what several senders that know nothing of each other repeat.",
    sweep: &SweepOf {
        name: "df.lt",
        kind: Kind::Counted,
        // One more for what is not trials of peeling.
        cases: |scale| 1 + TRIALS.iter().map(|trials| batches(trials.1, scale)).sum::<u32>(),
        run: |case| match peeling(case) {
            Some(rows) => rows,
            None => [coverage(case), degrees(), senders(case)].concat(),
        },
    },
    claims,
    exhibits: |table| {
        let rows: Vec<Part> = table.read().unwrap_or_default();
        let curve = |&(k, _, _): &(u32, [u32; 2], [u32; 2])| {
            let pool = pool(&rows, k);
            let thousandths = (1000..=1300).step_by(5).map(|t| f64::from(t) / 1000.0);
            let share = |eta: f64| {
                let share = Estimate::share_above(&pool, eta * f64::from(k));
                Point::percent(eta, share)
            };
            Series::new(format!("k = {} 000", k / 1000), thousandths.map(share))
        };
        let printed = Series::printed("paper: below 10⁻⁶ %", [(LIMIT, 0.0)]);
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "LT (fast): receivers that are not done yet".into(),
            x: Axis::linear("decoding inefficiency"),
            y: Axis::linear("trials (%)"),
            panels: Panel::only(TRIALS.iter().map(curve).chain([printed]).collect()),
        })]
    },
};

/// A number of one of the parts of the experiment.
#[derive(Clone, Serialize, Deserialize)]
struct Part {
    part: String,
    k: u32,
    /// Symbols; of `distinctness`, senders.
    x: u32,
    value: f64,
}

impl Part {
    fn new(part: &str, k: u32, x: u32, value: f64) -> Self {
        Self { part: part.into(), k, x, value }
    }
}

const fn batches(batches: [u32; 2], scale: Scale) -> u32 {
    scale.pick(batches[0], batches[1])
}

/// Symbols needed to peel; `None` beyond the last batch.
fn peeling(case: &Case) -> Option<Vec<Part>> {
    let mut index = case.index;
    // The long ones first: they take longest.
    for (k, count, trials) in TRIALS.into_iter().rev() {
        let count = batches(count, case.scale);
        if index >= count {
            index -= count;
            continue;
        }
        let mut random = case.stream(0);
        let mut peeler = Peeler::new(LtCode::fast(k, random.next_u64()), k).ok()?;
        let mut pool = Histogram::default();
        for _ in 0..case.scale.pick(trials[0], trials[1]) {
            peeler.reset();
            let start = random.below(u32::MAX - k) + k;
            let mut symbols = 0;
            while !peeler.is_complete() {
                peeler.push(Esi(start.wrapping_add(symbols).max(k)));
                symbols += 1;
            }
            pool.add(symbols);
        }
        let row = |(symbols, n): (u32, u64)| Part::new("fast", k, symbols, n as f64);
        return Some(pool.entries().map(row).collect());
    }
    None
}

/// How many of 1000 source symbols are in none of 1.05 k encoding symbols: the mean, and what it
/// should be.
fn coverage(case: &Case) -> Vec<Part> {
    const K: u32 = 1000;
    let symbols = (LIMIT * f64::from(K)) as u32;
    let trials = case.scale.pick(20_000, 500_000);
    let mut random = case.stream(1);
    let code = LtCode::fast(K, random.next_u64());
    let Ok(mut rows) = lt::Rows::new(code, K) else { return Vec::new() };
    let mut covered = vec![0_u32; K as usize];
    let mut missing = 0_u64;
    for trial in 1..=trials {
        let start = random.below(u32::MAX - 2 * K) + K;
        let mut count = 0;
        for esi in start..start + symbols {
            for &term in rows.row(Esi(esi)) {
                count += u32::from(covered[term as usize] != trial);
                covered[term as usize] = trial;
            }
        }
        missing += u64::from(K - count);
    }
    let measured = missing as f64 / f64::from(trials);
    vec![
        Part::new("uncovered", K, symbols, measured),
        Part::new("expected", K, symbols, uncovered(code, K)),
    ]
}

/// Expected number of source symbols in none of 1.05 k encoding symbols: `k (1 - m/k)^n`, rows
/// being independent. At least the probability of failure as long as it is far below 1.
fn uncovered(code: LtCode, k: u32) -> f64 {
    let symbols = (LIMIT * f64::from(k)).floor();
    let share = mean_degree(code, k) / f64::from(k);
    f64::from(k) * (symbols * (-share).ln_1p()).exp()
}

fn mean_degree(code: LtCode, k: u32) -> f64 {
    Degrees::new(code, k).map_or(f64::NAN, |degrees| degrees.mean() as f64 / 2_f64.powi(32))
}

/// Mean degrees and coverage of both profiles.
fn degrees() -> Vec<Part> {
    let mut rows = Vec::new();
    for k in [1000, 10_000, 100_000, LARGE, 1_000_000] {
        for (profile, code) in [("fast", LtCode::fast(k, 1)), ("strict", LtCode::strict(k, 1))] {
            rows.push(Part::new(&format!("{profile} degree"), k, 0, mean_degree(code, k)));
            rows.push(Part::new(&format!("{profile} uncovered"), k, 0, uncovered(code, k)));
        }
    }
    rows
}

/// Packets over distinct packets of a receiver of four senders, each of which begins anywhere.
fn senders(case: &Case) -> Vec<Part> {
    const SENDERS: usize = 4;
    /// Of each, for a file of a thousand.
    const SYMBOLS: u32 = 275;
    let trials = case.scale.pick(100_000, 1_000_000);
    let mut random = case.stream(2);
    let mut repeated = 0_u64;
    for _ in 0..trials {
        let mut starts = [0; SENDERS].map(|_: u32| (random.next_u64() >> 32) as u32);
        starts.sort_unstable();
        let gaps = starts.windows(2).map(|pair| pair[1] - pair[0]);
        repeated += gaps.map(|gap| u64::from(SYMBOLS.saturating_sub(gap))).sum::<u64>();
    }
    let all = trials as f64 * SENDERS as f64 * f64::from(SYMBOLS);
    vec![Part::new("distinctness", 1000, SENDERS as u32, all / (all - repeated as f64))]
}

fn claims() -> Vec<Claim> {
    let value = |part: &'static str, k: u32| {
        move |rows: &[Part]| rows.number(|row| row.part == part && row.k == k, |row| row.value)
    };
    let above =
        |k: u32| move |rows: &[Part]| Estimate::share_above(&pool(rows, k), LIMIT * f64::from(k));
    let rare =
        || quote("the decoding inefficiency is more than 1.05 with probability", "section V-A");
    vec![
        Claim::shape(
            "duplicates",
            "several senders of the same file: packets over distinct packets of a receiver of four",
            quote("the fraction of duplicate encoding packets produced is tiny", "section V-A"),
            Target::AtMost(1.000_01),
            value("distinctness", 1000),
        ),
        Claim::shape(
            "shrinks",
            "the inefficiency is 1 + O(ln^2(k/delta)/sqrt(k)): the part above 1 at k = 10 000 over \
             that at 1000 is at most what that formula gives",
            quote("with decoding inefficiency that is asymptotically 1", "section V-A"),
            Target::AtMost(0.537),
            |rows: &[Part]| {
                let excess = |k: u32| {
                    let mean = Estimate::mean_of(&pool(rows, k));
                    mean.times(1.0 / f64::from(k)).minus(1.0.into())
                };
                excess(10_000).over(excess(1000))
            },
        ),
        Claim::printed(
            "excess",
            "share of receptions of a thousand symbols, peeled, that take more than 1.05 k",
            rare(),
            Target::AtMost(1e-8),
            0.0,
            above(1000),
        ),
        Claim::printed(
            "large",
            "and of a hundred thousand symbols; counting can refute 1e-8, and not confirm it",
            rare(),
            Target::AtMost(1e-8),
            0.0,
            above(100_000),
        ),
        Claim::printed(
            "degree",
            "variables in an equation, for hundreds of thousands of symbols, with the robust \
             soliton distribution",
            quote("this average is around 20", "section V-A"),
            Target::Equal(20.0),
            6.0,
            value("fast degree", LARGE),
        ),
        Claim::identity(
            "both",
            "a plain LT code cannot have both: source symbols expected in none of 1.05 k encoding \
             symbols of degree 20, of 300 000 symbols",
            Target::AtLeast(1e-8),
            0.0,
            |_: &[Part]| {
                let k = f64::from(LARGE);
                k * (LIMIT * k * (-20.0 / k).ln_1p()).exp()
            },
        ),
        Claim::own(
            "coverage",
            "that formula is right where counting can reach: counted over expected (some 700 events)",
            Target::Equal(1.0),
            0.1,
            move |rows| value("uncovered", 1000)(rows) / value("expected", 1000)(rows),
        ),
        Claim::identity(
            "strict",
            "our strict profile keeps the bound: source symbols expected in no encoding symbol, \
             1000 to 1 000 000 symbols, at most",
            Target::AtMost(5e-9),
            1e-10,
            |rows: &[Part]| {
                largest(rows.numbers(|row| row.part == "strict uncovered", |row| row.value))
            },
        ),
        Claim::identity(
            "price",
            "at a mean degree of 24.8 for 1000 symbols: ln(2e8 k)/1.05",
            Target::Equal(24.8),
            0.5,
            value("strict degree", 1000),
        ),
    ]
}

fn pool(rows: &[Part], k: u32) -> Histogram {
    let mut pool = Histogram::default();
    for row in rows.iter().filter(|row| row.part == "fast" && row.k == k) {
        pool.add_many(row.x, row.value as u64);
    }
    pool
}
