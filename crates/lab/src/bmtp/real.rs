//! `bm.fig3` between hosts: 12 receivers, with the paper's paths and link back.

use super::log::SecondOfPackets;
use super::run::{BmtpSetting, FastPaths, SECONDS};
use super::session::{BmtpSession, BmtpSessionLog, ReceiverCounts};
use super::startup::{self, StartupRow};
use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::hosts::nothing_lost_here;
use crate::row::Rows;
use crate::statistics::largest;
use fontana_net::thread;
use serde::{Deserialize, Serialize};

/// Each receiver has a network namespace, an emulator and three threads. The paper's 100 receivers
/// are too many for a computer with two processors.
const RECEIVERS: u32 = 12;

pub(crate) const FIGURE_3: Experiment = Experiment {
    what: "The session of the simulated experiment between hosts, with 12 receivers, N = 12 at the \
           beginning and K = 100: one receives 40 packets a second, 11 receive 100, and their status \
           packets share a link of 500 a second. 5 runs of 500 s at the same time (quick: one).",
    sweep: &SweepOf { name: "bm.fig3", kind: Kind::Timed, cases: |_| 1, run: run_all },
    claims,
    ..startup::EXPERIMENT
};

/// A second of a run between hosts, and the same second of the simulation with its seed.
#[derive(Serialize, Deserialize)]
struct RealStartupRow {
    trial: u32,
    second: u32,
    sent: u32,
    resent: u32,
    statuses: u32,
    naks: u32,
    /// Packets that the slowest receiver has not received, of those before its last one.
    dropped: u64,
    slow_misses: u64,
    /// The most that one of the others misses.
    fast_misses: u64,
    simulated_sent: u32,
    simulated_resent: u32,
    simulated_statuses: u32,
    simulated_fast_misses: u64,
    /// Packets with a wrong payload so far, at all receivers.
    wrong: u64,
    /// Of the whole run, in its last second.
    #[serde(rename = "lost here")]
    lost_here: u64,
    /// Of the whole run.
    #[serde(rename = "ms late")]
    late: f64,
}

/// Runs with different seeds, at the same time: a run takes a few per cent of a processor.
fn run_all(case: &Case) -> Vec<RealStartupRow> {
    std::thread::scope(|scope| {
        let run = |trial| thread::spawn_scoped(scope, "lab session", move || run(case, trial));
        let running: Vec<_> = (0..case.scale.pick(1, 5)).map(run).collect();
        let rows = running.into_iter().filter_map(|thread| thread.ok()?.join().ok().flatten());
        rows.flatten().collect()
    })
}

/// The seconds of a run; `None` if it cannot be run.
fn run(case: &Case, trial: u32) -> Option<Vec<RealStartupRow>> {
    // The seed of the simulated experiment's case.
    let seed = Case { index: trial, ..*case }.stream(0).next_u64();
    let setting =
        BmtpSetting { first_divisor: RECEIVERS, ..startup::setting(RECEIVERS, FastPaths::Equal) };
    let mut paths = vec![setting.fast_path(); RECEIVERS as usize];
    *paths.first_mut()? = setting.slow_path();
    let session = BmtpSession { setting, paths, seconds: SECONDS, seed };
    let log = session.run().ok()?;
    let simulated = startup::simulate(&setting, trial, seed, SECONDS)?;
    Some(simulated.iter().map(|simulated| row(&log, simulated)).collect())
}

fn row(log: &BmtpSessionLog, simulated: &StartupRow) -> RealStartupRow {
    let second = simulated.second as usize;
    let SecondOfPackets { sent, resent, statuses, naks } =
        log.sender.get(second).copied().unwrap_or_default();
    let counts: Vec<ReceiverCounts> = log
        .receivers
        .iter()
        .map(|seconds| seconds.get(second).copied().unwrap_or_default())
        .collect();
    let slow = counts.first().copied().unwrap_or_default();
    let is_last = second + 1 == SECONDS as usize;
    RealStartupRow {
        trial: simulated.trial,
        second: simulated.second,
        sent,
        resent,
        statuses,
        naks,
        dropped: slow.lost,
        slow_misses: slow.missing,
        fast_misses: counts.iter().skip(1).map(|counts| counts.missing).max().unwrap_or_default(),
        simulated_sent: simulated.sent,
        simulated_resent: simulated.resent,
        simulated_statuses: simulated.statuses,
        simulated_fast_misses: simulated.fast_misses,
        wrong: counts.iter().map(|counts| counts.wrong).sum(),
        lost_here: if is_last { log.lost_here } else { 0 },
        late: log.late.as_secs_f64() * 1e3,
    }
}

/// The claims of the simulated experiment, and some more.
fn claims() -> Vec<Claim> {
    let wider = |claim: Claim| match claim.name.as_str() {
        "rate" => Claim { tolerance: 1.0, ..claim },
        // In the simulator 45 %.
        "half" => Claim { name: "resends".into(), tolerance: 10.0, ..claim },
        // The reasons for the difference are not those of 100 receivers.
        "until" => Claim { name: "recovers".into(), ..claim },
        "later" => Claim { tolerance: 1.5, ..claim },
        _ => claim,
    };
    let simulated = (startup::EXPERIMENT.claims)().into_iter().map(wider);
    let simulator = |name: &str, what: &str, bound, numbers: [fn(&RealStartupRow) -> u32; 2]| {
        let text = format!(
            "% by which the simulator is off in the number of {what}, the most of all runs"
        );
        Claim::own(name, text, Target::AtMost(bound), 0.0, move |rows: &[RealStartupRow]| {
            let runs = rows.distinct(|row| row.trial).into_iter();
            largest(runs.map(|trial| {
                let sum = |number: fn(&RealStartupRow) -> u32| {
                    let of_run = rows.numbers(|row| row.trial == trial, |row| number(row).into());
                    of_run.iter().sum::<f64>()
                };
                let [real, simulated] = numbers.map(sum);
                100.0 * (real / simulated - 1.0).abs()
            }))
        })
    };
    let own = [
        simulator("simulator", "packets", 2.0, [|row| row.sent, |row| row.simulated_sent]),
        simulator("resent", "resends", 10.0, [|row| row.resent, |row| row.simulated_resent]),
        Claim::own(
            "others",
            "packets that a receiver other than the slowest misses at the end, the most",
            Target::AtMost(0.0),
            0.0,
            |rows: &[RealStartupRow]| {
                let is_last = |row: &RealStartupRow| u64::from(row.second) + 1 == SECONDS;
                largest(rows.numbers(is_last, |row| row.fast_misses as f64))
            },
        ),
        Claim::own(
            "bytes",
            "packets whose payload is not the one that was sent",
            Target::AtMost(0.0),
            0.0,
            |rows: &[RealStartupRow]| largest(rows.numbers(|_| true, |row| row.wrong as f64)),
        ),
        nothing_lost_here(),
    ];
    simulated.chain(own).collect()
}
