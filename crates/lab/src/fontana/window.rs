//! `fo.window` and `fo.speed`: windowed RaptorQ, a code for objects of any length.
//!
//! A code over a whole object needs no more symbols than the object has, whatever is lost. With
//! blocks, the block with the most losses decides. But a code over millions of symbols accesses all
//! of memory for each of them. Here the neighbors of a row are within a window ([`code`]), so that
//! elimination moves along the object ([`wave`]) and needs the memory of a few windows
//! ([`recovery`]). The idea is that of spatially coupled codes (Aref, Urbanke: arXiv 1108.0535);
//! the rows are RaptorQ's.

use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target};
use crate::digital_fountain::loss::LossProcess;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, mean};
use code::WindowCode;
use fontana_proto::SplitMix64;
use matrix::Matrix;
use serde::{Deserialize, Serialize};
use wave::Wave;

mod bits;
mod code;
mod encoder;
mod matrix;
mod recovery;
pub(crate) mod speed;
mod wave;

/// What a code must reach to become a wire format: see the claims.
const MOST_OVERHEAD: f64 = 1.006;
const MOST_LAG: f64 = 3.0;

/// Columns stay active for this many windows behind the reach of the rows. With one window ten
/// times as many become inactive, with two, twice as many; more do not help.
const DELAY_WINDOWS: u32 = 3;

const LOSSES: [f64; 3] = [0.1, 0.5, 0.9];
const WINDOWS: [u32; 3] = [2000, 4096, 10_000];

/// Lengths of objects, and trials of each, quick and full. A trial of a million takes half a
/// minute.
const LENGTHS: [(u32, [u32; 2]); 2] = [(100_000, [3, 20]), (1_000_000, [0, 3])];

/// Symbols of a block of plain RaptorQ to compare with.
const BLOCK: u32 = 10_000;

/// Inefficiencies are measured in steps of this share of the object, up to this many steps.
const STEP: f64 = 0.000_5;
const MOST_STEPS: u32 = 64;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fo.window",
    paper: "beyond the papers",
    what: "Windowed RaptorQ: rows whose neighbors lie in a window of the object. `eta`: symbols \
           received until the object is determined, over k, to 0.05 % (20 trials; quick: 3; looked \
           for up to 1.032), beside that of blocks of 10 000 symbols sent round robin. `lag`: of a \
           stream, of which 1.006 k symbols arrive in the order of their windows, how far beyond a \
           symbol the windows were when it was known, in windows (none if they do not suffice).",
    sweep: &SweepOf {
        name: "fo.window",
        kind: Kind::Counted,
        cases: |scale| cases(scale).len() as u32,
        run,
    },
    claims,
    exhibits: |table| {
        let rows: Vec<Part> = table.read().unwrap_or_default();
        let line = |&(k, window, loss): &(u32, u32, f64)| {
            let values = values(&rows, ETA, k, window, loss);
            let blocks = self::values(&rows, ETA, k, BLOCKS, loss);
            let lag = |part: &str| {
                let lag = largest(self::values(&rows, part, k, window, loss));
                if lag.is_nan() { "–".into() } else { format!("{lag:.1}") }
            };
            let (average, margin) = (mean(&values), margin(&values));
            (!values.is_empty()).then(|| {
                vec![
                    k.to_string(),
                    window.to_string(),
                    loss.to_string(),
                    format!("{average:.4} ± {margin:.4}"),
                    format!("{:.4}", largest(values)),
                    format!("{:.4}", mean(&blocks)),
                    lag("lag 50 %"),
                    lag("lag 99 %"),
                ]
            })
        };
        let columns =
            ["k", "window", "loss", "eta", "largest", "blocks", "lag, median", "lag, 99 %"];
        vec![Exhibit::Grid(Grid {
            title: "Windowed RaptorQ (means with 95 % intervals)".into(),
            columns: columns.map(String::from).into(),
            rows: settings().iter().filter_map(line).collect(),
        })]
    },
};

/// A number of one of the parts of the experiment.
#[derive(Serialize, Deserialize)]
struct Part {
    part: String,
    k: u32,
    /// Symbols; [`BLOCKS`] for blocks.
    window: u32,
    loss: f64,
    value: f64,
    /// Columns that became inactive.
    inactive: u32,
}

const ETA: &str = "eta";

/// In place of a window: plain RaptorQ in blocks.
const BLOCKS: u32 = 0;

fn settings() -> Vec<(u32, u32, f64)> {
    let losses = |k, window| LOSSES.map(move |loss| (k, window, loss));
    let windows = |k| WINDOWS.into_iter().flat_map(move |window| losses(k, window));
    LENGTHS.iter().flat_map(|&(k, _)| windows(k)).collect()
}

/// The setting and the trial of each case.
fn cases(scale: Scale) -> Vec<((u32, u32, f64), u32)> {
    let trials =
        |k: u32| LENGTHS.iter().find(|length| length.0 == k).map_or(0, |l| pick(scale, l.1));
    let all = settings().into_iter();
    // The long ones first.
    all.rev().flat_map(|setting| (0..trials(setting.0)).map(move |t| (setting, t))).collect()
}

const fn pick(scale: Scale, of: [u32; 2]) -> u32 {
    scale.pick(of[0], of[1])
}

fn run(case: &Case) -> Vec<Part> {
    let Some(&((k, window, loss), trial)) = cases(case.scale).get(case.index as usize) else {
        return Vec::new();
    };
    let mut random = case.stream(0);
    let line = WindowCode::new(k, window, random.next_u64());
    let mut stream = Stream::new(loss, random.next_u64());
    let steps =
        least(|steps| determined(&line, stream.first(symbols(k, steps)), DELAY_WINDOWS).is_some());
    let value = |steps: u32| f64::from(symbols(k, steps)) / f64::from(k);
    let row = |part: &str, window: u32, value: f64, inactive: u32| Part {
        part: part.into(),
        k,
        window,
        loss,
        value,
        inactive,
    };
    let mut rows = vec![row(ETA, window, value(steps), 0)];
    if trial == 0 {
        let count = (f64::from(k) * MOST_OVERHEAD) as u32;
        if let Some(lags) = determined(&line, stream.first(count), DELAY_WINDOWS) {
            for (part, share) in [("lag 50 %", 0.5), ("lag 99 %", 0.99)] {
                rows.push(row(part, window, lags.quantile(share), lags.inactive));
            }
        }
        rows.push(row(ETA, BLOCKS, round_robin(k, loss, &mut random), 0));
    }
    rows
}

fn symbols(k: u32, steps: u32) -> u32 {
    k + (f64::from(k) * STEP * f64::from(steps)) as u32
}

/// The least number of steps that suffices, by doubling and bisection.
fn least(mut enough: impl FnMut(u32) -> bool) -> u32 {
    let (mut below, mut above) = (0, 1);
    while above < MOST_STEPS && !enough(above) {
        (below, above) = (above, 2 * above);
    }
    while above - below > 1 {
        let middle = below.midpoint(above);
        if enough(middle) { above = middle } else { below = middle }
    }
    above
}

/// A stream of encoding symbols with losses.
struct Stream {
    loss: LossProcess,
    random: SplitMix64,
    next: u32,
    arrived: Vec<u32>,
}

impl Stream {
    fn new(loss: f64, seed: u64) -> Self {
        let random = SplitMix64::new(seed, 0);
        let next = (seed >> 32) as u32;
        Self { loss: LossProcess::random(loss), random, next, arrived: Vec::new() }
    }

    fn first(&mut self, count: u32) -> &[u32] {
        while self.arrived.len() < count as usize {
            if !self.loss.next(&mut self.random) {
                self.arrived.push(self.next);
            }
            self.next = self.next.wrapping_add(1);
        }
        &self.arrived[..count as usize]
    }
}

/// Lags: how far the rows had advanced beyond a column when it became known.
struct Lags {
    counts: Vec<u32>,
    /// Columns that became inactive.
    inactive: u32,
}

impl Lags {
    /// In windows.
    fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.counts.iter().map(|&count| f64::from(count)).sum::<f64>();
        let mut sum = 0.0;
        let found = self.counts.iter().position(|&count| {
            sum += f64::from(count);
            sum >= wanted
        });
        found.map_or(f64::NAN, |units| units as f64 / 64.0)
    }
}

/// `None` unless `esis` determine the object.
fn determined(line: &WindowCode, esis: &[u32], delay_windows: u32) -> Option<Lags> {
    let matrix = Matrix::new(line, esis);
    let mut wave = Wave::new(line, &matrix, delay_windows * line.window(), ());
    wave.admit(0..matrix.rows() as u32);
    let lack = wave.finish();
    let lags = Lags { counts: wave.lags().to_vec(), inactive: wave.inactive() };
    (lack == 0).then_some(lags)
}

/// Symbols received until each of the blocks that the object is cut into has as many as it is long,
/// over k.
fn round_robin(k: u32, loss: f64, random: &mut SplitMix64) -> f64 {
    const TRIALS: u32 = 20;
    let blocks = (k / BLOCK).max(1) as usize;
    let mut loss = LossProcess::random(loss);
    let mut received = 0_u64;
    for _ in 0..TRIALS {
        let mut missing = vec![k / blocks as u32; blocks];
        let mut incomplete = blocks;
        for block in (0..blocks).cycle() {
            if incomplete == 0 {
                break;
            }
            if loss.next(random) {
                continue;
            }
            received += 1;
            if let Some(rest) = missing[block].checked_sub(1) {
                missing[block] = rest;
                incomplete -= usize::from(rest == 0);
            }
        }
    }
    received as f64 / f64::from(k) / f64::from(TRIALS)
}

fn values(rows: &[Part], part: &str, k: u32, window: u32, loss: f64) -> Vec<f64> {
    let is =
        |row: &Part| row.part == part && row.k == k && row.window == window && row.loss == loss;
    rows.numbers(is, |row| row.value)
}

/// Half of the 95 % interval of a mean.
fn margin(values: &[f64]) -> f64 {
    let average = mean(values);
    let squares: f64 = values.iter().map(|value| (value - average).powi(2)).sum();
    let count = values.len() as f64;
    1.96 * (squares / (count - 1.0) / count).sqrt()
}

fn claims() -> Vec<Claim> {
    let worst = |part: &'static str| {
        move |rows: &[Part]| {
            largest(rows.numbers(|row| row.part == part && row.window == 4096, |row| row.value))
        }
    };
    vec![
        Claim::own(
            "overhead",
            "on the wire only if eta is at most 1.006 at any loss and length: windows of 4096, mean \
             of the trials, largest of all settings",
            Target::AtMost(MOST_OVERHEAD),
            0.0,
            |rows: &[Part]| {
                let of_4096 = settings().into_iter().filter(|&(_, window, _)| window == 4096);
                let means = of_4096.map(|(k, window, loss)| values(rows, ETA, k, window, loss));
                largest(means.filter(|etas| !etas.is_empty()).map(|etas| mean(&etas)))
            },
        ),
        Claim::own(
            "lag",
            "only if, at that overhead, a symbol of a stream is known within 3 windows: 99 % of them, \
             windows of 4096, largest of all settings",
            Target::AtMost(MOST_LAG),
            0.0,
            worst("lag 99 %"),
        ),
        Claim::own(
            "blocks",
            "blocks of 10 000 symbols need more at a loss of 0.5: their eta less 1 over that of \
             windows of 2000, for 100 000 symbols",
            Target::AtLeast(2.0),
            0.0,
            |rows: &[Part]| {
                let excess = |window| mean(&values(rows, ETA, 100_000, window, 0.5)) - 1.0;
                excess(BLOCKS) / excess(2000)
            },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rank by plain elimination.
    fn rank(columns: u32, rows: impl Iterator<Item = Vec<u32>>) -> u32 {
        let mut leaders: Vec<Option<Vec<bool>>> = vec![None; columns as usize];
        for row in rows {
            let mut bits = vec![false; columns as usize];
            row.iter().for_each(|&column| bits[column as usize] ^= true);
            while let Some(first) = bits.iter().position(|&bit| bit) {
                let Some(leader) = &leaders[first] else {
                    leaders[first] = Some(bits);
                    break;
                };
                bits.iter_mut().zip(leader).for_each(|(bit, other)| *bit ^= other);
            }
        }
        leaders.iter().flatten().count() as u32
    }

    #[test]
    fn the_wave_finds_the_rank_that_plain_elimination_finds() {
        for (seed, surplus) in [(1, 0), (2, 20), (3, 40), (4, 60), (5, 120)] {
            let line = WindowCode::new(500, 100, seed);
            let esis: Vec<u32> = (0..500 + surplus).map(|esi| esi * 3 + seed as u32).collect();
            let matrix = Matrix::new(&line, &esis);
            for delay in [100, 300] {
                let mut wave = Wave::new(&line, &matrix, delay, ());
                wave.admit(0..matrix.rows() as u32);
                let rows = (0..matrix.rows() as u32).map(|row| matrix.row(row).to_vec());
                let lack = line.columns() - rank(line.columns(), rows);
                assert_eq!(wave.finish(), lack, "seed {seed}, {surplus} more, delay {delay}");
            }
        }
    }

    #[test]
    fn an_object_in_windows_comes_back() {
        const SIZE: usize = 24;
        for (k, window) in [(600, 100), (3000, 300)] {
            let line = WindowCode::new(k, window, 7);
            let mut random = SplitMix64::new(1, 1);
            let source: Vec<u8> = (0..k as usize * SIZE).map(|_| random.next_u64() as u8).collect();
            let columns = encoder::columns(&line, &source, SIZE);
            let mut stream = Stream::new(0.5, 3);
            let steps = least(|steps| determined(&line, stream.first(k + 10 * steps), 3).is_some());
            let just_enough = stream.first(k + 10 * steps).to_vec();
            let more: Vec<u32> = (0..k + k / 5).map(|i| 2 * i + 9).collect();
            for esis in [just_enough, more] {
                let symbols = encoder::symbols(&line, &columns, &esis, SIZE);
                let recover = |esis: &[u32]| {
                    recovery::recover(&line, esis, &symbols, SIZE, 3 * window, Vec::new())
                };
                let recovered = recover(&esis).expect("they determine the object");
                assert!(recovered.columns == columns, "{k} symbols");
                assert!(recover(&esis[..k as usize - 1]).is_none(), "fewer than there are");
            }
        }
    }

    #[test]
    fn rows_lie_in_their_windows_and_repeat_nothing() {
        let line = WindowCode::new(2000, 300, 1);
        let mut row = Vec::new();
        for esi in 0..5000 {
            line.row(esi, &mut row);
            let window = line.columns_of(esi);
            assert!(window.len() <= 300 && window.end <= line.lt_columns());
            let count = row.len();
            assert!(count >= 3, "{row:?}");
            let on_the_line = row.iter().filter(|&&column| column < line.lt_columns());
            assert!(on_the_line.clone().all(|column| window.contains(column)), "{row:?}");
            assert!(row.iter().all(|&column| column < line.columns()));
            row.sort_unstable();
            row.dedup();
            assert_eq!(row.len(), count);
        }
    }

    #[test]
    fn of_one_block_every_symbol_counts() {
        let mut random = SplitMix64::new(1, 1);
        assert_eq!(round_robin(BLOCK, 0.5, &mut random), 1.0);
        assert!(round_robin(10 * BLOCK, 0.5, &mut random) > 1.005);
    }

    #[test]
    fn the_least_that_is_enough_is_found() {
        for needed in [1, 2, 3, 17, 40, 63, 64] {
            assert_eq!(least(|steps| steps >= needed), needed);
        }
        assert_eq!(least(|_| false), MOST_STEPS, "not looked for any farther");
    }
}
