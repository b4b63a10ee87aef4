//! `li.real`: the protocols without FEC between hosts, and the same runs simulated.

use super::run::{HOSTS_TIME, HostsCounts, LiNetwork};
use super::setting::{LiConfig, Protocol};
use super::sweep::{OTERS, SRM, TMTP};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::hosts::nothing_lost_here;
use crate::row::Rows;
use crate::statistics::largest;
use fontana_net::thread;
use fontana_sim::Multicast;
use serde::{Deserialize, Serialize};

/// Runs of each protocol, in a network each.
const RUNS: u32 = 10;
const PROTOCOLS: [&str; 3] = [OTERS, TMTP, SRM];

/// Any two of them.
const PAIRS: [(&str, &str); 3] = [(TMTP, OTERS), (SRM, TMTP), (SRM, OTERS)];

pub(crate) const REAL: Experiment = Experiment {
    id: "li.real",
    paper: "FEC with reliable multicast, table 1",
    what: "SRM, TMTP-uni and OTERS without FEC between 24 hosts: 448 segments, 100 a second, from one of them to the \
           others. 30 routers in user space, each with at most one host, broadcast along whole trees, take \
           one off each TTL, and run the simulator's links with the delays of the paper, its losses of 1 % in \
           bursts of 2, and the random streams of the simulation. 10 runs of each protocol, 10 s each, in ten \
           networks of 3 transit and 12 stub domains; the same networks and seeds simulated. The paper \
           simulates. Only in this form.",
    sweep: &SweepOf { name: "li.real", kind: Kind::Timed, cases: |_| RUNS, run },
    claims,
    exhibits: |table| {
        let rows: Vec<RealRun> = table.read().unwrap_or_default();
        vec![grid(&rows)]
    },
};

/// A run between hosts, and the same run simulated.
#[derive(Serialize, Deserialize)]
struct RealRun {
    protocol: String,
    run: u32,
    /// Packet-hops for each segment, between hosts.
    payload: f64,
    request: f64,
    repair: f64,
    /// Mean time until the last member has a segment.
    ms: f64,
    /// Thousands of packet-hops of session messages.
    session: f64,
    /// The same, simulated.
    #[serde(rename = "simulated payload")]
    simulated_payload: f64,
    #[serde(rename = "simulated request")]
    simulated_request: f64,
    #[serde(rename = "simulated repair")]
    simulated_repair: f64,
    #[serde(rename = "simulated ms")]
    simulated_ms: f64,
    #[serde(rename = "simulated session")]
    simulated_session: f64,
    /// All members have all segments, and every byte of them.
    #[serde(rename = "bytes complete")]
    bytes_complete: bool,
    #[serde(rename = "lost here")]
    lost_here: u64,
    #[serde(rename = "ms late")]
    late: f64,
}

/// SRM, which sends most, and then the two others at the same time, in networks of their own.
fn run(case: &Case) -> Vec<RealRun> {
    std::thread::scope(|scope| {
        let srm = run_one(case, Protocol::Srm, SRM);
        let of = |protocol, name| move || run_one(case, protocol, name);
        let tmtp = thread::spawn_scoped(scope, "lab run", of(Protocol::TmtpUni, TMTP));
        let oters = thread::spawn_scoped(scope, "lab run", of(Protocol::Oters, OTERS));
        let others = [tmtp, oters].map(|run| run.ok()?.join().ok()?);
        others.into_iter().chain([srm]).flatten().collect()
    })
}

/// `None` if it cannot be run.
fn run_one(case: &Case, protocol: Protocol, name: &str) -> Option<RealRun> {
    let config = LiConfig::table_1(protocol, Multicast::Broadcast);
    // All protocols run in the same network.
    let seed = case.stream(0).next_u64();
    let network = LiNetwork::of_hosts(&config, seed);
    let simulated = network.run(&config, seed)?;
    let HostsCounts { counts, incomplete, lost_here, late } =
        network.run_between_hosts(&config, seed, HOSTS_TIME).ok()?;
    Some(RealRun {
        protocol: name.into(),
        run: case.index,
        payload: counts.payload(),
        request: counts.requests(),
        repair: counts.repairs(),
        ms: counts.ms,
        session: counts.session_kilo,
        simulated_payload: simulated.payload(),
        simulated_request: simulated.requests(),
        simulated_repair: simulated.repairs(),
        simulated_ms: simulated.ms,
        simulated_session: simulated.session_kilo,
        bytes_complete: counts.is_complete() && simulated.is_complete() && incomplete == 0,
        lost_here,
        late: late.as_secs_f64() * 1e3,
    })
}

/// A number of a run between hosts, and the same simulated.
#[derive(Clone, Copy)]
struct Compared {
    name: &'static str,
    real: fn(&RealRun) -> f64,
    simulated: fn(&RealRun) -> f64,
}

const PAYLOAD: Compared =
    Compared { name: "payload", real: |row| row.payload, simulated: |row| row.simulated_payload };
const REQUEST: Compared =
    Compared { name: "request", real: |row| row.request, simulated: |row| row.simulated_request };
const REPAIR: Compared =
    Compared { name: "repair", real: |row| row.repair, simulated: |row| row.simulated_repair };
const LATENCY: Compared =
    Compared { name: "ms", real: |row| row.ms, simulated: |row| row.simulated_ms };
const SESSION: Compared =
    Compared { name: "session", real: |row| row.session, simulated: |row| row.simulated_session };

/// The interval of a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    low: f64,
    middle: f64,
    high: f64,
}

/// Factors of the standard error for 95 % of Student's distribution, by degrees of freedom from 1.
const STUDENT: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

impl Interval {
    /// The 95 % interval of the geometric mean of ratios of independent runs.
    fn of_ratios(ratios: &[f64]) -> Self {
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let Estimate { value, error } = Estimate::mean(&logarithms);
        let freedom = ratios.len().saturating_sub(2);
        let factor = STUDENT.get(freedom).or(STUDENT.last()).copied().unwrap_or(f64::NAN);
        let [low, middle, high] = [-factor, 0.0, factor].map(|off| (value + off * error).exp());
        Self { low, middle, high }
    }
}

/// Real over simulated numbers of a protocol.
fn ratios(rows: &[RealRun], protocol: &str, of: Compared) -> Vec<f64> {
    let is = |row: &&RealRun| row.protocol == protocol;
    rows.iter().filter(is).map(|row| (of.real)(row) / (of.simulated)(row)).collect()
}

fn mean(rows: &[RealRun], protocol: &str, number: fn(&RealRun) -> f64) -> f64 {
    Estimate::mean(&rows.numbers(|row| row.protocol == protocol, number)).value
}

fn claims() -> Vec<Claim> {
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        for of in [REQUEST, REPAIR] {
            let bound = |end: &str, target, measure: fn(Interval) -> f64| {
                Claim::own(
                    format!("{protocol} {} {end}", of.name),
                    format!(
                        "{} packet-hops, real over simulated: {end} end of the 95 % interval",
                        of.name
                    ),
                    target,
                    0.0,
                    move |rows: &[RealRun]| {
                        measure(Interval::of_ratios(&ratios(rows, protocol, of)))
                    },
                )
            };
            all.push(bound("low", Target::AtLeast(0.75), |interval| interval.low));
            all.push(bound("high", Target::AtMost(1.33), |interval| interval.high));
        }
        all.push(Claim::own(
            format!("{protocol} payload"),
            "payload packet-hops, real over simulated: farther end of the 95 % interval, less 1",
            Target::AtMost(0.02),
            0.0,
            move |rows: &[RealRun]| {
                let Interval { low, high, .. } =
                    Interval::of_ratios(&ratios(rows, protocol, PAYLOAD));
                largest([low, high].map(|end| (end - 1.0).abs()))
            },
        ));
    }
    for of in [REQUEST, REPAIR] {
        all.push(Claim::own(
            format!("{} order", of.name),
            format!("{} packet-hops: pairs of protocols in another order than simulated", of.name),
            Target::AtMost(0.0),
            0.0,
            move |rows: &[RealRun]| {
                let is_more = |number| {
                    let more = |(a, b)| mean(rows, a, number) > mean(rows, b, number);
                    PAIRS.map(more)
                };
                let (real, simulated) = (is_more(of.real), is_more(of.simulated));
                match rows.len() {
                    0 => f64::NAN,
                    _ => real.iter().zip(&simulated).filter(|(a, b)| a != b).count() as f64,
                }
            },
        ));
    }
    all.push(Claim::own(
        "bytes",
        "runs in which a member did not receive every byte of every segment",
        Target::AtMost(0.0),
        0.0,
        |rows: &[RealRun]| match rows.len() {
            0 => f64::NAN,
            _ => rows.iter().filter(|row| !row.bytes_complete).count() as f64,
        },
    ));
    all.push(Claim::own(
        "runs",
        "runs of all protocols",
        Target::Equal(f64::from(RUNS) * PROTOCOLS.len() as f64),
        0.0,
        |rows: &[RealRun]| rows.len() as f64,
    ));
    all.push(nothing_lost_here());
    all
}

/// Means of the runs, and the intervals of the ratios.
fn grid(rows: &[RealRun]) -> Exhibit {
    let mut lines = Vec::new();
    for protocol in PROTOCOLS {
        for of in [PAYLOAD, REQUEST, REPAIR, LATENCY, SESSION] {
            let Interval { low, middle, high } = Interval::of_ratios(&ratios(rows, protocol, of));
            lines.push(vec![
                protocol.to_owned(),
                of.name.to_owned(),
                format!("{:.2}", mean(rows, protocol, of.real)),
                format!("{:.2}", mean(rows, protocol, of.simulated)),
                format!("{middle:.3}"),
                format!("{low:.3} to {high:.3}"),
            ]);
        }
    }
    let columns = ["protocol", "number", "real", "simulated", "ratio", "95 % interval"];
    Exhibit::Grid(Grid {
        title: "Between hosts and simulated: packet-hops for each segment, milliseconds, thousands of packet-hops"
            .into(),
        columns: columns.map(str::to_owned).into(),
        rows: lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_students_distribution_of_logarithms() {
        let Interval { low, middle, high } = Interval::of_ratios(&[0.5, 2.0, 1.0]);
        // The logarithms have a standard deviation of ln 2, and 2 degrees of freedom.
        let half = 4.303 * 2.0_f64.ln() / 3.0_f64.sqrt();
        assert!((middle - 1.0).abs() < 1e-12);
        assert!((high.ln() - half).abs() < 1e-12 && (low.ln() + half).abs() < 1e-12);
        assert!(Interval::of_ratios(&[1.0]).low.is_nan(), "one run tells nothing");
        assert!(Interval::of_ratios(&[]).high.is_nan());
    }
}
