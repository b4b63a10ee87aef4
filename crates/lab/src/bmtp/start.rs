//! `bm.start`: the start of figure 3 with other constants than those of `bm.fig3`.

use super::run::{BmtpSetting, FastPaths};
use super::startup::{self, HALF, StartupRow};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use serde::{Deserialize, Serialize};

/// All resends of the start have been sent by then.
const SECONDS: u64 = 250;
/// Values of K, which the paper does not print.
const WEIGHTS: [u32; 4] = [50, 100, 200, 60];
/// The last one is of runs with all trials.
const QUICK_WEIGHTS: u32 = 3;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.start",
    paper: "BMTP, figure 3",
    what: "The first 250 s of bm.fig3 for several K, with the random times of its fast paths, and with \
           equal ones, by which 99 equal queues lose the same packets. 5 runs of each, K of 50, 60, 100 and \
           200 (quick: two runs, without 60, and one K of equal times).",
    sweep: &SweepOf {
        name: "bm.start",
        kind: Kind::Counted,
        cases: |scale| plan(scale).len() as u32,
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| vec![grid(&table.read().unwrap_or_default())],
};

/// A run.
#[derive(Serialize, Deserialize)]
struct StartRow {
    service: String,
    /// K.
    weight: u32,
    trial: u32,
    /// Per cent of resends from 25 to 115 s.
    half: f64,
    /// When resends are no longer half of the packets, in seconds.
    until: f64,
}

const RANDOM: &str = "random";
const EQUAL: &str = "equal";

struct Planned {
    service: &'static str,
    weight: u32,
    trial: u32,
}

fn plan(scale: Scale) -> Vec<Planned> {
    let weights = WEIGHTS.into_iter().take(scale.pick(QUICK_WEIGHTS, 4) as usize);
    let random = weights.map(|weight| (RANDOM, weight));
    let equal = WEIGHTS.into_iter().filter(|&weight| scale == Scale::Full || weight == 100);
    let each = random.chain(equal.map(|weight| (EQUAL, weight)));
    let trials = |(service, weight)| {
        (0..scale.pick(2, 5)).map(move |trial| Planned { service, weight, trial })
    };
    each.flat_map(trials).collect()
}

fn run(case: &Case) -> Option<StartRow> {
    let Planned { service, weight, trial } =
        plan(case.scale).into_iter().nth(case.index as usize)?;
    let fast_paths = if service == EQUAL { FastPaths::Equal } else { FastPaths::Random };
    let setting = startup::setting(startup::RECEIVERS, fast_paths);
    let setting = BmtpSetting { most_weight: weight, ..setting };
    let rows = startup::simulate(&setting, trial, case.stream(0).next_u64(), SECONDS)?;
    let all: Vec<&StartupRow> = rows.iter().collect();
    Some(StartRow {
        service: service.into(),
        weight,
        trial,
        half: startup::resent_in(&all, HALF.start, HALF.end),
        until: startup::recovered(&all),
    })
}

fn mean(rows: &[StartRow], service: &str, weight: u32, number: fn(&StartRow) -> f64) -> Estimate {
    Estimate::mean(&rows.numbers(|row| row.service == service && row.weight == weight, number))
}

fn claims() -> Vec<Claim> {
    let mut all = Vec::new();
    for weight in WEIGHTS.into_iter().take(QUICK_WEIGHTS as usize) {
        all.push(Claim::printed(
            format!("half {weight}"),
            format!("% of the packets that are resends from 25 to 115 s, K = {weight}"),
            startup::half_the_bandwidth(),
            Target::Equal(50.0),
            5.0,
            move |rows: &[StartRow]| mean(rows, RANDOM, weight, |row| row.half),
        ));
        all.push(Claim::printed(
            format!("until {weight}"),
            format!(
                "the end of the first 10 s, after 25 s, of which less than 40 % are resends, K = {weight}"
            ),
            startup::until_115(),
            Target::Equal(115.0),
            25.0,
            move |rows: &[StartRow]| mean(rows, RANDOM, weight, |row| row.until),
        ));
    }
    all.push(Claim::own(
        "equal",
        "% of the packets that are resends from 25 to 115 s, K = 100, if the fast queues lose the same \
         packets",
        Target::AtMost(45.0),
        0.0,
        |rows: &[StartRow]| mean(rows, EQUAL, 100, |row| row.half),
    ));
    all
}

fn grid(rows: &[StartRow]) -> Exhibit {
    let line = |(service, weight): (String, u32)| {
        let cell = |number| {
            let Estimate { value, error } = mean(rows, &service, weight, number);
            format!("{value:.1} ± {error:.1}")
        };
        vec![service.clone(), weight.to_string(), cell(|row| row.half), cell(|row| row.until)]
    };
    let each = rows.distinct(|row| (row.service.clone(), row.weight));
    Exhibit::Grid(Grid {
        title: "Resends of the start: % from 25 to 115 s, and when they end".into(),
        columns: ["fast paths", "K", "%", "until s"].map(String::from).into(),
        rows: each.into_iter().map(line).collect(),
    })
}
