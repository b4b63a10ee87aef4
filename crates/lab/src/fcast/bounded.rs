//! `fc.fig17` and `fc.fig18`: a receiver whose processor is the bottleneck (section 6.4.3).

use super::profiles::{FcastProfile, OPT_CPU, OPT_SPEED};
use super::session::File;
use super::transfer::HostReception;
use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, mean, smallest};
use fontana_sim::{MachineConfig, MachineStats};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// "A 10 MB file, using 6 layers and 3 FEC layers", "with k = 64".
const FILE: File = File { bytes: 10_000_000, object_bytes: 64 * 512, block_symbols: 64 };
/// Packets per second of the lowest layer, with which the reception takes the 231 s of figure 18.
/// The text has "~1.5 Mbps"; with six layers that would be 12 packets, and 78 s.
const BASE_PACKETS: u32 = 4;

/// The Ultra 10, as far as it is known. Of figure 18, 41.5 s lie between the last symbol and the
/// end; they are what 10 MB in blocks of 64 take, in which seven symbols of ten are not source
/// symbols. A datagram takes 100 us by our guess. The socket buffer is Solaris's default of the
/// time (Solaris Tunable Parameters Reference Manual, `udp_recv_hiwat`), and its drops are not
/// counted.
const ULTRA_10: MachineConfig = MachineConfig {
    datagram: Duration::from_micros(100),
    lost_symbol: Duration::from_micros(2_900),
    block: Duration::ZERO,
    socket_buffer_bytes: 8_192,
    tells_drops: false,
};
/// Beside it, the same host with a kernel that says how many datagrams it has dropped, as ours do;
/// and with a socket buffer that holds half a second.
const HOSTS: [(&str, MachineConfig); 3] = [
    (UNTOLD, ULTRA_10),
    (TOLD, MachineConfig { tells_drops: true, ..ULTRA_10 }),
    (ROOMY, MachineConfig { socket_buffer_bytes: 65_536, ..ULTRA_10 }),
];
const UNTOLD: &str = "untold";
const TOLD: &str = "told";
const ROOMY: &str = "64 KB";

/// Seconds of a point of the curves.
const STEP: u32 = 5;
/// Share of losses of a step that belongs to the loss period: what figure 17 can show.
const LOSSY: f64 = 0.01;

/// A step of a reception: packets in a second, and the load. And the whole reception.
#[derive(Serialize, Deserialize)]
struct Step {
    profile: String,
    host: String,
    run: u32,
    /// Seconds from the start to the beginning of the step.
    at: u32,
    received: f64,
    dropped: f64,
    /// Share of the processor's time.
    load: f64,
    /// Until the end of the reception.
    seconds: f64,
    /// Until the last symbol.
    heard: f64,
}

impl Step {
    /// Share of the datagrams that the host loses.
    fn loss(&self) -> f64 {
        self.dropped / (self.dropped + self.received).max(1.0)
    }
}

/// Rows of one reception: counts in each step, and its duration.
fn rows(
    case: &Case,
    run: u32,
    profile: FcastProfile,
    (name, host): (&str, MachineConfig),
) -> Vec<Step> {
    let seed = Case { index: run, sweep: "fc.bounded", ..*case }.stream(0).next_u64();
    let Some(found) = profile.receive(host, FILE, BASE_PACKETS, seed) else { return Vec::new() };
    let HostReception { reception, heard_seconds, by_second } = found;
    let step = f64::from(STEP);
    let mut before = MachineStats::default();
    let ends: Vec<_> = by_second.into_iter().skip(STEP as usize).step_by(STEP as usize).collect();
    let steps = (0..).zip(ends).map(|(index, stats)| {
        let per_second = |now: u64, then: u64| (now - then) as f64 / step;
        let received = per_second(stats.taken, before.taken);
        let dropped = per_second(stats.dropped, before.dropped);
        // A machine counts the time of work when it begins.
        let load = (stats.busy.saturating_sub(before.busy).as_secs_f64() / step).min(1.0);
        before = stats;
        let at = index * STEP;
        let (profile, host) = (profile.name.into(), name.into());
        let (seconds, heard) = (reception.seconds, heard_seconds);
        Step { profile, host, run, at, received, dropped, load, seconds, heard }
    });
    steps.collect()
}

fn runs(scale: Scale) -> u32 {
    scale.pick(2, 10)
}

/// A number of the first step of each run: those about the whole run are the same in all steps.
fn by_run(
    rows: &[Step],
    number: impl Fn(&Step) -> f64,
    profile: FcastProfile,
    host: &str,
) -> Vec<f64> {
    let is = |row: &Step| row.profile == profile.name && row.host == host && row.at == 0;
    rows.numbers(is, number)
}

/// A quantity over time, and its name.
type Curve = (&'static str, fn(&Step) -> f64);

/// Curves of the means of all runs, with a band of all of them: a panel for each host. `printed` is
/// of the paper's host.
fn curves(
    rows: &[Step],
    title: &str,
    of: &[(FcastProfile, &'static str)],
    printed: &dyn Fn() -> Vec<Series>,
) -> Vec<Exhibit> {
    let curve = |(profile, host): (FcastProfile, &str), (name, number): Curve| {
        let of_host = |row: &Step| row.profile == profile.name && row.host == host;
        let point = |at: u32| {
            let runs = rows.numbers(|row| of_host(row) && row.at == at, number);
            let (low, high) = (smallest(runs.iter().copied()), largest(runs.iter().copied()));
            Point { x: f64::from(at + STEP / 2), y: mean(&runs), low, high }
        };
        let steps = rows.iter().filter(|row| of_host(row)).map(|row| row.at).max().unwrap_or(0);
        Series::new(name, (0..=steps).step_by(STEP as usize).map(point))
    };
    let chart = |name, y, quantities: &[Curve]| {
        let panel = |&(profile, host): &(FcastProfile, &'static str)| {
            let series = quantities.iter().map(|quantity| curve((profile, host), *quantity));
            let printed = if host == UNTOLD { printed() } else { Vec::new() };
            Panel { title: described(host).into(), series: series.chain(printed).collect() }
        };
        let panels = of.iter().map(panel).collect();
        Exhibit::Chart(Chart { name, title: title.into(), x: Axis::linear("seconds"), y, panels })
    };
    let rates: [Curve; 2] = [("received", |row| row.received), ("dropped", |row| row.dropped)];
    let load: [Curve; 1] = [("load", |row| 100.0 * row.load)];
    vec![
        chart("rate", Axis::linear("packets per second"), &rates),
        chart("load", Axis::linear("load of the processor (%)"), &load),
    ]
}

/// A host, for people.
fn described(host: &str) -> &'static str {
    match host {
        TOLD => "The same, and the receiver is told what the host drops",
        ROOMY => "The same with a socket buffer of 64 KB",
        _ => "The paper's host, with a socket buffer of 8 KB",
    }
}

pub(crate) const FIGURE_17: Experiment = Experiment {
    id: "fc.fig17",
    paper: "FCAST, figure 17",
    what: "Reception of 10 MB by opt_speed on a host that is too slow for it: packets that its only \
           program takes from the socket, those that find the socket buffer full, and the load of the \
           processor. k = 64, n/k = 4, objects of one block, six layers of rates 1, 1, 2, 4, 8, 16 times \
           4 packets a second, with which 10 MB are heard in 231 s, RLC. The processor takes 2.9 ms for each lost symbol, so that 10 MB take the \
           41.5 s that figure 18 has between the last symbol and the end, and 100 us for a datagram (a guess); \
           8192 bytes of socket buffer, the system's default. Beside it, the same host if it counts what it drops \
           and the receiver knows that this is no congestion, and with 64 KB. 10 runs (quick: 2).",
    sweep: &SweepOf {
        name: "fc.fig17",
        kind: Kind::Counted,
        cases: |scale| HOSTS.len() as u32 * runs(scale),
        run: |case| {
            let (run, host) = (case.index / HOSTS.len() as u32, case.index as usize % HOSTS.len());
            HOSTS.get(host).map_or_else(Vec::new, |host| rows(case, run, OPT_SPEED, *host))
        },
    },
    claims: || {
        let loss_period =
            || quote("the high loss period [60s; 180s] matches the high CPU", "section 6.4.3");
        vec![
            Claim::shape(
                "losses",
                "datagrams that find the socket buffer full, of those that come, while the processor has \
                 most to do",
                quote(
                    "symbol losses may occur and would reduce the reception speed",
                    "section 6.4.1",
                ),
                Target::AtLeast(0.01),
                |rows: &[Step]| largest(rows.numbers(|row| row.host == UNTOLD, Step::loss)),
            ),
            Claim::printed(
                "from",
                "seconds until the first step of 5 s that loses a hundredth of what comes",
                loss_period(),
                Target::Equal(60.0),
                20.0,
                |rows: &[Step]| loss_periods(rows, |steps| steps.first().copied()),
            ),
            Claim::printed(
                "until",
                "seconds until the end of the last one",
                loss_period(),
                Target::Equal(180.0),
                20.0,
                |rows: &[Step]| loss_periods(rows, |steps| Some(steps.last()? + f64::from(STEP))),
            ),
            Claim::identity(
                "match",
                "a socket buffer fills only while the processor has other work: mean load of the steps \
                 with losses over that of those without",
                Target::AtLeast(1.0),
                0.0,
                |rows: &[Step]| {
                    let load = |with_losses: bool| {
                        let is =
                            |row: &Step| row.host == UNTOLD && (row.dropped > 0.0) == with_losses;
                        mean(&rows.numbers(is, |row| row.load))
                    };
                    load(true) / load(false)
                },
            ),
            over_the_host(
                "told",
                "a receiver that is told what its host drops does not take it for congestion",
                TOLD,
            ),
            over_the_host("buffer", "64 KB of socket buffer hold what comes meanwhile", ROOMY),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Step> = table.read().unwrap_or_default();
        let hosts = HOSTS.map(|(host, _)| (OPT_SPEED, host));
        curves(&rows, "opt_speed on a slow host", &hosts, &|| {
            vec![
                Series::printed_curve("paper: high losses", [(60.0, 0.0), (180.0, 0.0)]),
                Series::printed("paper: end", [(357.5, 0.0)]),
            ]
        })
    },
};

/// A claim of our own: the difference on another host.
fn over_the_host(name: &str, text: &str, host: &'static str) -> Claim {
    let text = format!("{text}: time of opt_speed over that on the paper's host");
    Claim::own(name, text, Target::AtMost(1.0), 0.0, move |rows: &[Step]| {
        let [here, there] = [host, UNTOLD]
            .map(|host| Estimate::mean(&by_run(rows, |row| row.seconds, OPT_SPEED, host)));
        here.over(there)
    })
}

/// The mean over all runs of one of the steps with losses.
fn loss_periods(rows: &[Step], which: fn(&[f64]) -> Option<f64>) -> Estimate {
    let periods = rows.distinct(|row| row.run).into_iter().map(|run| {
        let is = |row: &Step| row.host == UNTOLD && row.run == run && row.loss() >= LOSSY;
        which(&rows.numbers(is, |row| row.at.into())).unwrap_or(f64::NAN)
    });
    Estimate::mean(&periods.collect::<Vec<_>>())
}

pub(crate) const FIGURE_18: Experiment = Experiment {
    id: "fc.fig18",
    paper: "FCAST, figure 18",
    what: "The host and the file of fc.fig17 with opt_cpu: one object, decoded when enough has been heard of \
           all blocks; beside opt_speed. 10 runs (quick: 2).",
    sweep: &SweepOf {
        name: "fc.fig18",
        kind: Kind::Counted,
        cases: |scale| 2 * runs(scale),
        run: |case| {
            let profile = if case.index % 2 == 0 { OPT_CPU } else { OPT_SPEED };
            rows(case, case.index / 2, profile, (UNTOLD, ULTRA_10))
        },
    },
    claims: || {
        let of_runs = |rows: &[Step], number: fn(&Step) -> f64, profile| {
            Estimate::mean(&by_run(rows, number, profile, UNTOLD))
        };
        vec![
            Claim::printed(
                "shorter",
                "% by which the whole reception is shorter with opt_cpu",
                quote("from 357.5 to 272.5 seconds (-23%)", "section 6.4.3"),
                Target::Equal(23.8),
                15.0,
                move |rows: &[Step]| {
                    let [cpu, speed] = [OPT_CPU, OPT_SPEED]
                        .map(|profile| of_runs(rows, |row| row.seconds, profile));
                    cpu.percent_below(speed)
                },
            ),
            Claim::fitted(
                "heard",
                "seconds until the last symbol",
                quote("all the object blocks, at time 231s", "section 6.4.3"),
                Target::Equal(231.0),
                12.0,
                move |rows: &[Step]| of_runs(rows, |row| row.heard, OPT_CPU),
            ),
            Claim::fitted(
                "after",
                "seconds from the last symbol, at 231, to the end",
                quote("from 357.5 to 272.5 seconds (-23%)", "section 6.4.3"),
                Target::Equal(41.5),
                2.0,
                // Both ends are of the same runs.
                move |rows: &[Step]| of_runs(rows, |row| row.seconds - row.heard, OPT_CPU),
            ),
            Claim::shape(
                "low",
                "highest load of the processor until then",
                quote("the CPU activity remains low except after the completion", "section 6.4.3"),
                Target::AtMost(0.2),
                |rows: &[Step]| {
                    let is = |row: &Step| {
                        row.profile == OPT_CPU.name && f64::from(row.at + STEP) < row.heard
                    };
                    largest(rows.numbers(is, |row| row.load))
                },
            ),
            Claim::shape(
                "no losses",
                "datagrams that the host loses in a second with opt_cpu, the most",
                quote("Without this profile, symbol losses may occur", "section 6.4.1"),
                Target::AtMost(0.0),
                |rows: &[Step]| {
                    largest(rows.numbers(|row| row.profile == OPT_CPU.name, |row| row.dropped))
                },
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Step> = table.read().unwrap_or_default();
        curves(&rows, "opt_cpu on a slow host", &[(OPT_CPU, UNTOLD)], &|| {
            vec![Series::printed("paper: last symbol, end", [(231.0, 0.0), (272.5, 0.0)])]
        })
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_costs_packets_unless_it_waits_for_the_last_one() {
        let receive = |profile: FcastProfile, host| {
            let found = profile.receive(host, FILE, BASE_PACKETS, 1).expect("a session");
            let dropped = found.by_second.last().map_or(0, |stats| stats.dropped);
            (found.reception.seconds, found.heard_seconds, dropped)
        };
        let (speed, heard, dropped) = receive(OPT_SPEED, ULTRA_10);
        // What is left at the end is a block or two.
        assert!(dropped > 0 && speed - heard < 1.0, "{speed} {heard} {dropped}");
        let (cpu, heard, dropped) = receive(OPT_CPU, ULTRA_10);
        assert!(dropped == 0 && cpu - heard > 30.0, "{cpu} {heard} {dropped}");
        // Without its work the host is like any other.
        let ideal = MachineConfig { lost_symbol: Duration::ZERO, ..ULTRA_10 };
        let (fast, _, dropped) = receive(OPT_SPEED, ideal);
        assert!(dropped == 0 && fast < cpu && cpu < speed, "{fast} {cpu} {speed}");
    }
}
