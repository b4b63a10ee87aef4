//! `df.table5`: the most blocks that an interleaved file may be cut into.

use super::interleaved::Interleaved;
use super::loss::LossProcess;
use crate::chart::{Axis, Chart, Exhibit, Grid, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::table::Table;
use serde::{Deserialize, Serialize};

/// Loss probabilities: the columns of the paper's table.
const LOSSES: [f64; 5] = [0.01, 0.05, 0.10, 0.20, 0.50];

/// The rows of the paper's table: file size in packets of 1 KB, printed decoding time of Tornado Z
/// in seconds (table IV), printed speed-ups.
const PRINTED: [(u32, f64, [f64; 5]); 7] = [
    (250, 0.18, [1.37, 2.05, 5.55, 11.1, 11.1]),
    (500, 0.24, [2.29, 5.51, 8.33, 16.7, 33.3]),
    (1000, 0.31, [4.12, 10.3, 17.1, 25.8, 51.6]),
    (2000, 0.44, [6.34, 16.9, 26.2, 48.4, 96.8]),
    (4000, 0.74, [7.87, 22.3, 34.6, 62.7, 115.0]),
    (8000, 1.28, [11.1, 28.2, 46.9, 80.0, 182.0]),
    (16_000, 2.27, [14.2, 34.9, 56.4, 100.0, 212.0]),
];

/// Seconds that the paper's Cauchy decoder takes for a block of `k` packets are `k^2` over this.
const CAUCHY: f64 = 31_250.0;

/// The inefficiency that Tornado Z exceeds less than 1 % of the time.
const LIMIT: f64 = 1.076;

/// "Less than 1 % of the time."
const RARE: f64 = 0.01;

/// Trials between two checks of the share of failures: few checks, so that a single failure does
/// not end the trials.
const CHECK_EVERY: u32 = 500;

/// Receivers for each number of blocks that is tried. At the limit the standard error of the share
/// of failures is 0.16 % (quick) and 0.07 % of all, and the share doubles within a few blocks.
const RECEIVERS: [u32; 2] = [4000, 20_000];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.table5",
    paper: "digital fountain, table V",
    what: "The most blocks that a file may be cut into so that less than 1 % of the receivers need \
           more than 1.076 k packets, and the speed-up of Tornado Z over the interleaved code that \
           follows by the paper's rule K^2 / (31 250 B t), t the paper's Tornado time. The \
           paper's own number of blocks is read back from the printed speed-up.",
    sweep: &SweepOf {
        name: "df.table5",
        kind: Kind::Counted,
        cases: |_| (PRINTED.len() * LOSSES.len()) as u32,
        run,
    },
    claims,
    exhibits,
};

/// A cell of the table.
#[derive(Serialize, Deserialize)]
struct BlockCount {
    packets: u32,
    loss: f64,
    /// Blocks by the printed speed-up.
    printed_blocks: f64,
    blocks: u32,
    speedup: f64,
    /// The standard error of `blocks`.
    error: f64,
}

impl BlockCount {
    fn blocks(&self) -> Estimate {
        Estimate { value: self.blocks.into(), error: self.error }
    }

    fn is_of(&self, packets: u32, loss: f64) -> bool {
        self.packets == packets && self.loss == loss
    }
}

fn run(case: &Case) -> Vec<BlockCount> {
    // Long files first: they take longest.
    let line = PRINTED.len() - 1 - case.index as usize / LOSSES.len();
    let column = case.index as usize % LOSSES.len();
    let (packets, tornado, speedups) = PRINTED[line];
    let limit = (LIMIT * f64::from(packets)) as u32;
    let receivers = case.scale.pick(RECEIVERS[0], RECEIVERS[1]);
    let loss = LossProcess::random(LOSSES[column]);
    let fails = |blocks| {
        // The same random numbers for each number of blocks make the share of failures smoother.
        let mut random = case.stream(0);
        let (mut file, loss) = (Interleaved::new(packets, blocks), loss.clone());
        move || file.receive(loss.clone(), limit, &mut random).is_none()
    };
    let blocks = most_blocks(packets, |blocks| rarely(receivers, fails(blocks)));
    // From the number that was found to about the last one that was tried.
    let more = blocks + (blocks / 12).max(1);
    let [share, of_more] = [blocks, more].map(|blocks| share(receivers, fails(blocks)));
    let error = error_of_blocks((blocks, share), (more, of_more), receivers);
    let speedup = |blocks: f64| f64::from(packets).powi(2) / (CAUCHY * blocks * tornado);
    let printed_blocks = speedup(1.0) / speedups[column];
    let speedup = speedup(f64::from(blocks));
    vec![BlockCount { packets, loss: LOSSES[column], printed_blocks, blocks, speedup, error }]
}

/// Share of the trials in which an event occurs.
fn share(trials: u32, mut happens: impl FnMut() -> bool) -> f64 {
    let count = (0..trials).filter(|_| happens()).count();
    count as f64 / f64::from(trials)
}

/// The standard error of a number of blocks: that of a share of 1 % of the receivers, over the
/// share of failures that one more block adds. Both points are a number of blocks and its share of
/// failures. `NAN` if more blocks do not fail more often.
fn error_of_blocks((few, of_few): (u32, f64), (more, of_more): (u32, f64), receivers: u32) -> f64 {
    let slope = (of_more - of_few) / f64::from(more - few);
    let error = (RARE * (1.0 - RARE) / f64::from(receivers)).sqrt() / slope;
    if slope > 0.0 { error } else { f64::NAN }
}

/// The most blocks for which `good` holds. It always holds for one block.
///
/// `good` is only roughly monotone: numbers that divide the file evenly are better. So a twelfth
/// more than the first number that fails are tried, in descending order.
fn most_blocks(packets: u32, mut good: impl FnMut(u32) -> bool) -> u32 {
    let (mut most, mut too_many) = (1, 2);
    while too_many < packets && good(too_many) {
        most = too_many;
        too_many *= 2;
    }
    too_many = too_many.min(packets);
    while most + 1 < too_many {
        let middle = most.midpoint(too_many);
        if good(middle) { most = middle } else { too_many = middle }
    }
    let beyond = most + 2..packets.min(most + 3 + most / 12);
    beyond.rev().find(|&blocks| good(blocks)).unwrap_or(most)
}

/// Whether an event occurs in less than 1 % of the trials. Ends early if the share so far is three
/// standard errors away from the limit.
fn rarely(trials: u32, mut happens: impl FnMut() -> bool) -> bool {
    let mut count = 0;
    for trial in 1..=trials {
        count += u32::from(happens());
        let above = f64::from(count) / f64::from(trial) - RARE;
        let clear = above.abs() > 3.0 * (RARE * (1.0 - RARE) / f64::from(trial)).sqrt();
        if trial == trials || (clear && trial % CHECK_EVERY == 0) {
            return above < 0.0;
        }
    }
    true
}

fn claims() -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    for (packets, _, speedups) in PRINTED {
        for (loss, speedup) in LOSSES.into_iter().zip(speedups) {
            let printed = printed_blocks(packets, loss);
            // Chosen beforehand: a block or a tenth, a quarter where few blocks are left.
            let share = if loss == 0.5 { 0.25 } else { 0.1 };
            claims.push(Claim::printed(
                format!("{packets}@{loss}"),
                format!("blocks for {packets} packets at a loss of {loss}, by the speed-up"),
                quote(speedup.to_string(), "table V"),
                Target::Equal((printed * 100.0).round() / 100.0),
                ((share * printed).max(1.0) * 100.0).round() / 100.0,
                move |rows: &[BlockCount]| {
                    let row = rows.iter().find(|row| row.is_of(packets, loss));
                    row.map_or(f64::NAN.into(), BlockCount::blocks)
                },
            ));
        }
    }
    claims
}

fn printed_blocks(packets: u32, loss: f64) -> f64 {
    let line = PRINTED.iter().find(|line| line.0 == packets);
    let cell = LOSSES.iter().position(|&column| column == loss);
    line.zip(cell).map_or(f64::NAN, |((packets, tornado, speedups), cell)| {
        f64::from(*packets).powi(2) / (CAUCHY * tornado * speedups[cell])
    })
}

fn exhibits(table: &Table) -> Vec<Exhibit> {
    let rows = table.read().unwrap_or_default();
    vec![grid(&rows), curves(&rows)]
}

/// The paper's table, ours in each cell before the printed value.
fn grid(rows: &[BlockCount]) -> Exhibit {
    let cell = |packets: u32, loss: f64, printed: f64| {
        let ours = rows.number(|row| row.is_of(packets, loss), |row| row.speedup);
        format!("{} ({printed})", three_digits(ours))
    };
    Exhibit::Grid(Grid {
        title: "Speed-up of Tornado Z over interleaved codes, ours (and printed)".into(),
        columns: ["packets".to_owned()]
            .into_iter()
            .chain(LOSSES.iter().map(|loss| format!("loss {loss}")))
            .collect(),
        rows: PRINTED
            .iter()
            .map(|&(packets, _, speedups)| {
                let cells = LOSSES.iter().zip(speedups);
                [packets.to_string()]
                    .into_iter()
                    .chain(cells.map(|(&loss, printed)| cell(packets, loss, printed)))
                    .collect()
            })
            .collect(),
    })
}

fn three_digits(number: f64) -> String {
    let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
    format!("{number:.digits$}")
}

fn curves(rows: &[BlockCount]) -> Exhibit {
    let curve = |&loss: &f64| {
        let of_loss = rows.iter().filter(|row| row.loss == loss);
        let mut points: Vec<Point> =
            of_loss.map(|row| Point::estimate(row.packets.into(), row.blocks())).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series::new(format!("loss {loss}"), points)
    };
    let printed = |&loss: &f64| {
        let point = |line: &(u32, f64, [f64; 5])| (f64::from(line.0), printed_blocks(line.0, loss));
        Series::printed("paper", PRINTED.iter().map(point)).in_color_of(format!("loss {loss}"))
    };
    Exhibit::Chart(Chart {
        name: "",
        title: "Most blocks with an inefficiency below 1.076 in 99 %".into(),
        x: Axis::logarithmic("packets of 1 KB in the file"),
        y: Axis::logarithmic("blocks"),
        panels: Panel::only(LOSSES.iter().map(curve).chain(LOSSES.iter().map(printed)).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_good_number_of_blocks_is_found() {
        for last in [1, 2, 3, 4, 5, 63, 64, 65, 99] {
            assert_eq!(most_blocks(100, |blocks| blocks <= last), last);
        }
        assert_eq!(most_blocks(100, |_| true), 99);
        // A better number just beyond one that fails.
        assert_eq!(most_blocks(100, |blocks| blocks <= 48 || blocks == 51), 51);
    }

    #[test]
    fn rare_is_less_than_one_in_a_hundred() {
        let every = |period: u32| {
            let mut trial = 0;
            move || {
                trial += 1;
                trial % period == 0
            }
        };
        assert!(rarely(4000, every(101)) && !rarely(4000, every(100)));
        // Clear cases end early.
        assert!(rarely(u32::MAX, || false) && !rarely(u32::MAX, || true));
    }

    #[test]
    fn the_error_is_that_of_the_share_over_what_a_block_adds() {
        // 2000 receivers: 0.22 %. From 0.9 to 2.1 % in two blocks.
        let error = error_of_blocks((10, 0.009), (12, 0.021), 2_000);
        assert!((error - 0.002_225 / 0.006).abs() < 1e-3, "{error}");
        assert!(error_of_blocks((10, 0.009), (11, 0.009), 2_000).is_nan());
        let mut trial = 0;
        let every_fourth = || {
            trial += 1;
            trial % 4 == 0
        };
        assert_eq!(share(100, every_fourth), 0.25);
    }

    #[test]
    fn the_example_of_the_text_is_read_back() {
        assert_eq!(printed_blocks(2000, 0.10).round(), 11.0);
    }
}
