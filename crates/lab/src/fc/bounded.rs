//! `fc.fig17` and `fc.fig18`: a receiver whose processor is the bottleneck (section 6.4.3).

use super::profiles::{FcastProfile, OPT_CPU, OPT_SPEED};
use super::session::File;
use super::transfer::HostReception;
use crate::chart::{Axis, Chart, Exhibit, Series};
use crate::claim::{Claim, Printed};
use crate::experiment::{Case, Experiment, Kind, Scale};
use crate::statistics::{largest, mean};
use crate::table::{Row, Table, row};
use fontana_sim::{MachineConfig, MachineStats};
use std::time::Duration;

/// "A 10 MB file, using 6 layers and 3 FEC layers", "with k = 64".
const FILE: File = File { bytes: 10_000_000, object_bytes: 64 * 512, block_symbols: 64 };
/// "The transmission rate is ~1.5 Mbps": 32 times this in packets of 512 bytes, on all six layers.
const BASE_PACKETS: u32 = 12;

/// The Ultra 10, as far as it is known. Of figure 18, 41.5 s lie between the last symbol and the end; they
/// are what 10 MB in blocks of 64 take, in which seven symbols of ten are not source symbols. A datagram takes
/// 100 us by our guess. The socket buffer is Solaris's default of the time (Solaris Tunable Parameters
/// Reference Manual, `udp_recv_hiwat`), and nobody counts what it drops.
const ULTRA_10: MachineConfig = MachineConfig {
    datagram: Duration::from_micros(100),
    lost_symbol: Duration::from_micros(2_900),
    block: Duration::ZERO,
    socket_buffer_bytes: 8_192,
    tells_drops: false,
};
/// The same host with a kernel that says how many datagrams it has dropped, as ours are.
const TOLD: MachineConfig = MachineConfig { tells_drops: true, ..ULTRA_10 };

/// Seconds of a point of the curves.
const STEP: u32 = 5;

const COLUMNS: &[&str] =
    &["profile", "host", "run", "at", "received", "dropped", "load", "seconds", "heard"];

/// Rows of one reception: what happened in each step, and how long it took in all.
fn rows(case: &Case, run: u32, profile: FcastProfile, host: MachineConfig) -> Vec<Row> {
    let seed = Case { index: run, experiment: "fc.bounded", ..*case }.stream(0).next_u64();
    let Some(found) = profile.receive(host, FILE, BASE_PACKETS, seed) else { return Vec::new() };
    let HostReception { reception, heard_seconds, by_second } = found;
    let host = if host.tells_drops { "told" } else { "untold" };
    let step = f64::from(STEP);
    let mut before = MachineStats::default();
    let ends: Vec<_> = by_second.into_iter().skip(STEP as usize).step_by(STEP as usize).collect();
    let steps = (0..).zip(ends).map(|(index, stats)| {
        let per_second = |now: u64, then: u64| (now - then) as f64 / step;
        let received = per_second(stats.taken, before.taken);
        let dropped = per_second(stats.dropped, before.dropped);
        // What a machine has begun counts at once.
        let load = (stats.busy.saturating_sub(before.busy).as_secs_f64() / step).min(1.0);
        before = stats;
        let at = index * STEP;
        row![profile.name, host, run, at, received, dropped, load, reception.seconds, heard_seconds]
    });
    steps.collect()
}

fn runs(scale: Scale) -> u32 {
    scale.pick(2, 10)
}

/// Of the first step of each run: what is said of the whole run is the same in all.
fn by_run(table: &Table, column: &str, profile: FcastProfile, host: &str) -> Vec<f64> {
    let of = [("profile", profile.name.into()), ("host", host.into()), ("at", 0_u32.into())];
    table.numbers(column, &of)
}

fn curves(table: &Table, title: &str, of: &[(FcastProfile, &'static str)]) -> Vec<Exhibit> {
    let curve = |(profile, host): (FcastProfile, &'static str), column: &'static str| {
        let first_run =
            [("profile", profile.name.into()), ("host", host.into()), ("run", 0_u32.into())];
        let told = if host == "told" { ", told of drops" } else { "" };
        let label = format!("{}{told}: {column}", profile.name);
        Series::new(label, table.points("at", column, &first_run))
    };
    let chart = |name, y, columns: &[&'static str]| {
        let series = of.iter().flat_map(|&of| columns.iter().map(move |column| (of, *column)));
        let series = series.map(|(of, column)| curve(of, column)).collect();
        let x = Axis::linear("seconds");
        Exhibit::Chart(Chart { name, title: title.into(), x, y, series })
    };
    vec![
        chart("rate", Axis::linear("packets per second"), &["received", "dropped"]),
        chart("load", Axis::linear("share of the processor"), &["load"]),
    ]
}

pub(crate) const FIGURE_17: Experiment = Experiment {
    id: "fc.fig17",
    paper: "FCAST, figure 17",
    what: "Reception of 10 MB by opt_speed on a host that is too slow for it: packets that its only \
           program takes from the socket, those that find the socket buffer full, and the load of the \
           processor. k = 64, n/k = 4, objects of one block, six layers of rates 1, 1, 2, 4, 8, 16 times \
           12 packets a second, RLC. The processor takes 2.9 ms for each lost symbol, so that 10 MB take the \
           41.5 s that figure 18 has between the last symbol and the end, and 100 us for a datagram (a guess); \
           8192 bytes of socket buffer, the system's default. Beside it, the same host if it counts what it drops \
           and the receiver knows that this is no congestion. 10 runs (quick: 2).",
    kind: Kind::Counted,
    columns: COLUMNS,
    cases: |scale| 2 * runs(scale),
    run: |case| {
        let host = if case.index % 2 == 0 { ULTRA_10 } else { TOLD };
        rows(case, case.index / 2, OPT_SPEED, host)
    },
    claims: || {
        vec![
            Claim::new(
                "losses",
                "losses occur: datagrams that find the socket buffer full, of those that come, while the \
                 processor has most to do (no number in the text; the bound is ours)",
                Printed::AtLeast(0.01),
                0.0,
                |table| {
                    let of = |column| table.numbers(column, &[("host", "untold".into())]);
                    let pairs = of("dropped").into_iter().zip(of("received"));
                    largest(pairs.map(|(lost, taken)| lost / (lost + taken).max(1.0)))
                },
            ),
            Claim::new(
                "match",
                "the period of losses matches that of a high load: mean load of the steps with losses over \
                 that of those without (no number in the text; the bound is ours)",
                Printed::AtLeast(1.0),
                0.0,
                |table| {
                    let of = |column| table.numbers(column, &[("host", "untold".into())]);
                    let steps = of("dropped").into_iter().zip(of("load"));
                    let (with, without): (Vec<_>, Vec<_>) =
                        steps.partition(|(lost, _)| *lost > 0.0);
                    let load = |steps: Vec<(f64, f64)>| {
                        mean(&steps.iter().map(|step| step.1).collect::<Vec<_>>())
                    };
                    load(with) / load(without)
                },
            ),
            Claim::new(
                "told",
                "not of the paper: a receiver that is told what its host drops does not take it for \
                 congestion: its time over that of one that is not told (the bound is ours)",
                Printed::AtMost(1.0),
                0.0,
                |table| {
                    let [told, untold] = ["told", "untold"]
                        .map(|host| mean(&by_run(table, "seconds", OPT_SPEED, host)));
                    told / untold
                },
            ),
        ]
    },
    exhibits: |table| {
        curves(table, "opt_speed on a slow host", &[(OPT_SPEED, "untold"), (OPT_SPEED, "told")])
    },
};

pub(crate) const FIGURE_18: Experiment = Experiment {
    id: "fc.fig18",
    paper: "FCAST, figure 18",
    what: "The host and the file of fc.fig17 with opt_cpu: one object, decoded when enough has been heard of \
           all blocks; beside opt_speed. 10 runs (quick: 2).",
    kind: Kind::Counted,
    columns: COLUMNS,
    cases: |scale| 2 * runs(scale),
    run: |case| {
        let profile = if case.index % 2 == 0 { OPT_CPU } else { OPT_SPEED };
        rows(case, case.index / 2, profile, ULTRA_10)
    },
    claims: || {
        let seconds =
            |table: &Table, column: &str, profile| mean(&by_run(table, column, profile, "untold"));
        vec![
            Claim::new(
                "shorter",
                "the total reception time is reduced from 357.5 to 272.5 s: % less (both hold the time \
                 that the source took to encode, which the text does not give and ours does not)",
                Printed::Equal(23.8),
                15.0,
                move |table| {
                    let [cpu, speed] =
                        [OPT_CPU, OPT_SPEED].map(|profile| seconds(table, "seconds", profile));
                    100.0 * (1.0 - cpu / speed)
                },
            ),
            Claim::new(
                "after",
                "seconds from the last symbol, at 231, to the end (the one cost that was fitted)",
                Printed::Equal(41.5),
                2.0,
                move |table| seconds(table, "seconds", OPT_CPU) - seconds(table, "heard", OPT_CPU),
            ),
            Claim::new(
                "low",
                "the activity of the processor remains low until then: highest load (no number in the \
                 text; the bound is ours)",
                Printed::AtMost(0.2),
                0.0,
                move |table| {
                    let of = |column| table.numbers(column, &[("profile", OPT_CPU.name.into())]);
                    let before_end = of("at").into_iter().zip(of("heard"));
                    let loads = before_end.zip(of("load"));
                    let while_hearing = |((at, heard), load): ((f64, f64), f64)| {
                        (at + f64::from(STEP) < heard).then_some(load)
                    };
                    largest(loads.filter_map(while_hearing))
                },
            ),
            Claim::new(
                "no losses",
                "without this profile losses may occur; with it the host loses nothing (the bound is \
                 ours)",
                Printed::AtMost(0.0),
                0.0,
                |table| largest(table.numbers("dropped", &[("profile", OPT_CPU.name.into())])),
            ),
        ]
    },
    exhibits: |table| curves(table, "opt_cpu on a slow host", &[(OPT_CPU, "untold")]),
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
        assert!(dropped > 100 && speed - heard < 1.0, "{speed} {heard} {dropped}");
        let (cpu, heard, dropped) = receive(OPT_CPU, ULTRA_10);
        assert!(dropped == 0 && cpu - heard > 30.0, "{cpu} {heard} {dropped}");
        // Without its work the host is like any other.
        let ideal = MachineConfig { lost_symbol: Duration::ZERO, ..ULTRA_10 };
        let (fast, _, dropped) = receive(OPT_SPEED, ideal);
        assert!(dropped == 0 && fast < cpu && cpu < speed, "{fast} {cpu} {speed}");
    }
}
