//! `ms.fig5`: the worst of many receivers.

use super::model::equal_senders;
use super::reception::Mirrors;
use super::{EPSILON, NEEDED, SOURCE_SYMBOLS};
use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, mean, smallest};
use serde::{Deserialize, Serialize};

/// As in the paper.
const STRETCH: u32 = 3;

/// As in the paper.
const TRIALS: u32 = 3;

/// Numbers of senders.
const SENDERS: [u32; 3] = [2, 3, 4];

/// Numbers of receivers of the paper; the quick run stops before the last.
const RECEIVERS: [u32; 7] = [100, 300, 1000, 3000, 10_000, 30_000, 100_000];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms.fig5",
    paper: "mirror sites, figure 5",
    what: "The worst of 100 to 100 000 receivers of several equal senders at stretch factor 3: its \
           reception inefficiency and speed-up, mean of three trials (quick: to 30 000).",
    sweep: &SweepOf {
        name: "ms.fig5",
        kind: Kind::Counted,
        cases: |_| SENDERS.len() as u32 * TRIALS,
        run,
    },
    claims: || {
        vec![Claim::shape(
            "close",
            "inefficiency of the worst over equation (2), at most (a normal distribution with the \
             standard deviation of one receiver puts the worst of 100 000 at 1.04 to 1.05)",
            quote("not markedly different from the average values", "section V-B"),
            Target::AtMost(1.06),
            |rows: &[Crowd]| {
                Estimate::largest(SENDERS.iter().flat_map(|&senders| {
                    let average = equal_senders(senders, f64::from(STRETCH), EPSILON);
                    let of = move |receivers: u32| {
                        let is = |row: &Crowd| row.senders == senders && row.receivers == receivers;
                        rows.numbers(is, |row| row.inefficiency)
                    };
                    let trials = RECEIVERS.into_iter().map(of).filter(|trials| !trials.is_empty());
                    trials.map(move |trials| Estimate::mean(&trials).times(1.0 / average))
                }))
            },
        )]
    },
    exhibits: |table| {
        let rows: Vec<Crowd> = table.read().unwrap_or_default();
        let chart = |name, number: fn(&Crowd) -> f64, label: &'static str, title: &str| {
            let curve = |&senders: &u32| {
                Series::new(format!("{senders} senders"), worst(&rows, senders, number))
            };
            Exhibit::Chart(Chart {
                name,
                title: title.into(),
                x: Axis::logarithmic("receivers"),
                y: Axis::linear(label),
                panels: Panel::only(SENDERS.iter().map(curve).collect()),
            })
        };
        vec![
            chart(
                "inefficiency",
                |row| row.inefficiency,
                "reception inefficiency",
                "The least efficient receiver",
            ),
            chart("speedup", |row| row.speedup, "speed-up", "The slowest receiver"),
        ]
    },
};

/// The worst of the receivers of a trial.
#[derive(Serialize, Deserialize)]
struct Crowd {
    senders: u32,
    trial: u32,
    receivers: u32,
    inefficiency: f64,
    speedup: f64,
}

/// One trial: the first of its receivers are also the smaller crowds.
fn run(case: &Case) -> Vec<Crowd> {
    let Some(&senders) = SENDERS.get((case.index / TRIALS) as usize) else { return Vec::new() };
    let mut mirrors = Mirrors::new(&vec![1; senders as usize], SOURCE_SYMBOLS * STRETCH, NEEDED);
    let mut random = case.stream(0);
    let (mut rows, mut so_far, mut packets, mut time) = (Vec::new(), 0, 0, 0);
    let most = case.scale.pick(30_000, 100_000);
    for receivers in RECEIVERS.into_iter().filter(|&receivers| receivers <= most) {
        while so_far < receivers {
            let got = mirrors.receive(&mut random);
            packets = got.packets.max(packets);
            time = got.first.max(time);
            so_far += 1;
        }
        let inefficiency = f64::from(packets) / f64::from(SOURCE_SYMBOLS);
        let speedup = f64::from(NEEDED) / f64::from(time);
        let trial = case.index % TRIALS;
        rows.push(Crowd { senders, trial, receivers, inefficiency, speedup });
    }
    rows
}

/// The mean of the trials, and a band of all of them, against the number of receivers.
fn worst(rows: &[Crowd], senders: u32, number: fn(&Crowd) -> f64) -> Vec<Point> {
    let point = |&receivers: &u32| {
        let trials =
            rows.numbers(|row| row.senders == senders && row.receivers == receivers, number);
        (!trials.is_empty()).then(|| Point {
            x: receivers.into(),
            y: mean(&trials),
            low: smallest(trials.iter().copied()),
            high: largest(trials.iter().copied()),
        })
    };
    RECEIVERS.iter().filter_map(point).collect()
}
