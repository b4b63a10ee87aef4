//! `bm.skew`: one receiver that loses packets, among 999 that lose none.

use super::run::{BmtpRun, BmtpSetting, MOST_WEIGHT};
use crate::chart::{Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use serde::{Deserialize, Serialize};

const RECEIVERS: u32 = 1_000;
/// Line errors of the one receiver.
const LOSS: f64 = 0.02;
/// Values of K.
const WEIGHTS: [u32; 2] = [MOST_WEIGHT, 1];
/// Packets that it loses per second at least: it receives 40 of 42.
const LOST_PER_SECOND: f64 = 2.0;
/// Those of 50 s: it may request them from 10 s on, and its turn comes at random.
const MOST_MISSING: f64 = 50.0 * LOST_PER_SECOND;
/// Seconds between rows.
const EVERY: u64 = 10;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.skew",
    paper: "BMTP, section 3",
    what: "What a receiver misses that loses 2 % of its packets on the line and receives 40 a second, \
           among 999 that lose none: with a weight of up to K = 100, and with the same weight for all, K = 1. \
           500 s (quick: 150 s).",
    sweep: &SweepOf {
        name: "bm.skew",
        kind: Kind::Counted,
        cases: |_| WEIGHTS.len() as u32,
        run: |case| run(case).unwrap_or_default(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<SkewRow> = table.read().unwrap_or_default();
        let curve = |most_weight: u32| {
            let point = |row: &SkewRow| (row.seconds.into(), row.missing as f64);
            let points = rows.points(|row| row.most_weight == most_weight, point);
            Series::new(format!("K = {most_weight}"), points)
        };
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "One receiver that loses packets, among 999 that do not".into(),
            x: Axis::linear("seconds"),
            y: Axis::linear("packets that it misses"),
            panels: Panel::only(WEIGHTS.map(curve).into()),
        })]
    },
};

/// A moment of a run.
#[derive(Serialize, Deserialize)]
struct SkewRow {
    /// K.
    most_weight: u32,
    seconds: u32,
    missing: u64,
}

fn run(case: &Case) -> Option<Vec<SkewRow>> {
    let most_weight = *WEIGHTS.get(case.index as usize)?;
    let setting =
        BmtpSetting { most_weight, slow_loss: LOSS, ..BmtpSetting::one_slow(RECEIVERS, 0.0) };
    let mut run = BmtpRun::new(&setting, case.stream(0).next_u64());
    let mut rows = Vec::new();
    for step in 1..=u64::from(case.scale.pick(150, 500)) / EVERY {
        run.until(step * EVERY)?;
        let (seconds, missing) = ((step * EVERY) as u32, run.missing(0));
        rows.push(SkewRow { most_weight, seconds, missing });
    }
    Some(rows)
}

/// Half of a run, of which the last row is its end.
struct LatterHalf<'r> {
    half_way: &'r SkewRow,
    end: &'r SkewRow,
}

impl<'r> LatterHalf<'r> {
    /// That of the run with this value of K.
    fn of(rows: &'r [SkewRow], most_weight: u32) -> Option<Self> {
        let of: Vec<&SkewRow> = rows.iter().filter(|row| row.most_weight == most_weight).collect();
        let half_way = of.get((of.len() / 2).checked_sub(1)?)?;
        Some(Self { half_way, end: of.last()? })
    }

    /// Packets that are missed more at its end than at its beginning, over
    /// [`LOST_PER_SECOND`].
    fn unrepaired(&self) -> f64 {
        let seconds = f64::from(self.end.seconds - self.half_way.seconds);
        (self.end.missing as f64 - self.half_way.missing as f64) / (LOST_PER_SECOND * seconds)
    }
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::shape(
            "recovers",
            "packets that it misses at the end with K = 100",
            quote("BMTP handles non-uniform loss by weighting", "section 3"),
            Target::AtMost(MOST_MISSING),
            |rows: &[SkewRow]| {
                LatterHalf::of(rows, MOST_WEIGHT).map_or(f64::NAN, |half| half.end.missing as f64)
            },
        ),
        Claim::shape(
            "does not",
            "with K = 1: packets that it misses more at the end than half-way, over the 2 per \
             second that it loses at least",
            quote("only enough to recover from a tiny loss rate", "section 3"),
            Target::AtLeast(0.9),
            |rows: &[SkewRow]| LatterHalf::of(rows, 1).map_or(f64::NAN, |half| half.unrepaired()),
        ),
    ]
}
