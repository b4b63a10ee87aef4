//! `bm.modem`: one receiver behind a modem, the others on an Ethernet, between hosts (section 6).

use super::log::SecondOfPackets;
use super::rate::PacketRate;
use super::run::BmtpSetting;
use super::session::{BmtpSession, BmtpSessionLog, ReceiverCounts};
use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::hosts::nothing_lost_here;
use crate::row::Rows;
use crate::statistics::{largest, mean, smallest};
use fontana_net::thread;
use fontana_sim::{LinkConfig, QueueLength};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One behind a modem, and "half a dozen" in all.
const RECEIVERS: u32 = 6;
/// Bytes per second: 28.8 kbit/s, and 10 Mbit/s.
const MODEM: u64 = 28_800 / 8;
const ETHERNET: u64 = 10_000_000 / 8;
/// Delays of the paths. The paper has 50 ms in its simulations.
const MODEM_DELAY: Duration = Duration::from_millis(50);
const ETHERNET_DELAY: Duration = Duration::from_millis(1);
/// As in the paper's simulations: 8 s of the modem.
const QUEUE: QueueLength = QueueLength::Packets(50);
/// 1.6 times what the modem takes. The queue is full when the first report arrives, after 21 s.
const FIRST_RATE: PacketRate = PacketRate::per_second(10);
/// Seconds of a run, and those after the startup.
const SECONDS: u64 = 160;
const STARTED: u32 = 40;

pub(crate) const REAL: Experiment = Experiment {
    id: "bm.modem",
    paper: "BMTP, section 6",
    what: "Six receivers between hosts, one of them behind a modem with 28.8 kbit/s and a queue of 50 packets, \
           and the others on an Ethernet with 10 Mbit/s. The sender starts with 10 packets of 564 bytes a \
           second; the modem takes 6.4. K = 100, N = 6 at the beginning. 10 runs of 160 s at the same time \
           (quick: 3), judged from 40 s on. Only in this form.",
    sweep: &SweepOf { name: "bm.modem", kind: Kind::Timed, cases: |_| 1, run: run_all },
    claims,
    exhibits: |table| {
        let rows: Vec<ModemRow> = table.read().unwrap_or_default();
        vec![figure(&rows)]
    },
};

/// A second of a run.
#[derive(Serialize, Deserialize)]
struct ModemRow {
    run: u32,
    second: u32,
    sent: u32,
    resent: u32,
    statuses: u32,
    /// Packets that have passed the modem so far, and their bytes.
    received: u64,
    bytes: u64,
    /// Packets that have not, of those before the last one that has.
    lost: u64,
    /// Payloads that the receiver behind the modem misses.
    missing: u64,
    /// Packets that the others have lost so far, all together.
    #[serde(rename = "others lost")]
    others_lost: u64,
    /// Packets with a wrong payload so far, at all receivers.
    wrong: u64,
    /// Of the whole run, in its last second.
    #[serde(rename = "lost here")]
    lost_here: u64,
    /// Of the whole run.
    #[serde(rename = "ms late")]
    late: f64,
}

/// Runs with different seeds, at the same time.
fn run_all(case: &Case) -> Vec<ModemRow> {
    std::thread::scope(|scope| {
        let run = |number| thread::spawn_scoped(scope, "lab session", move || run(case, number));
        let running: Vec<_> = (0..case.scale.pick(3, 10)).map(run).collect();
        let rows = running.into_iter().filter_map(|thread| thread.ok()?.join().ok().flatten());
        rows.flatten().collect()
    })
}

/// The seconds of a run; `None` if it cannot be run.
fn run(case: &Case, number: u32) -> Option<Vec<ModemRow>> {
    let setting = BmtpSetting {
        first_rate: FIRST_RATE,
        first_divisor: RECEIVERS,
        ..BmtpSetting::one_slow(RECEIVERS, 0.0)
    };
    let path = |rate, delay| LinkConfig {
        rate_bytes_per_second: Some(rate),
        queue: QUEUE,
        delay,
        ..LinkConfig::default()
    };
    let mut paths = vec![path(ETHERNET, ETHERNET_DELAY); RECEIVERS as usize];
    *paths.first_mut()? = path(MODEM, MODEM_DELAY);
    let seed = case.stream(number).next_u64();
    let log = BmtpSession { setting, paths, seconds: SECONDS, seed }.run().ok()?;
    Some((0..SECONDS as u32).map(|second| row(&log, number, second)).collect())
}

fn row(log: &BmtpSessionLog, run: u32, second: u32) -> ModemRow {
    let index = second as usize;
    let SecondOfPackets { sent, resent, statuses, .. } =
        log.sender.get(index).copied().unwrap_or_default();
    let counts: Vec<ReceiverCounts> = log
        .receivers
        .iter()
        .map(|seconds| seconds.get(index).copied().unwrap_or_default())
        .collect();
    let ReceiverCounts { received, bytes, lost, missing, .. } =
        counts.first().copied().unwrap_or_default();
    let is_last = u64::from(second) + 1 == SECONDS;
    ModemRow {
        run,
        second,
        sent,
        resent,
        statuses,
        received,
        bytes,
        lost,
        missing,
        others_lost: counts.iter().skip(1).map(|counts| counts.lost).sum(),
        wrong: counts.iter().map(|counts| counts.wrong).sum(),
        lost_here: if is_last { log.lost_here } else { 0 },
        late: log.late.as_secs_f64() * 1e3,
    }
}

/// By how much a count of each run grows after the startup.
fn grows(rows: &[ModemRow], number: fn(&ModemRow) -> u64) -> Vec<f64> {
    let at = |run, second| {
        rows.number(|row| row.run == run && row.second == second, move |row| number(row) as f64)
    };
    let runs = rows.distinct(|row| row.run).into_iter();
    runs.map(|run| at(run, SECONDS as u32 - 1) - at(run, STARTED - 1)).collect()
}

/// Per cent of the modem's rate that each run uses after the startup.
fn busy_percent(rows: &[ModemRow]) -> Vec<f64> {
    let all = (SECONDS - u64::from(STARTED)) * MODEM;
    grows(rows, |row| row.bytes).into_iter().map(|bytes| 100.0 * bytes / all as f64).collect()
}

/// Per cent of the packets that do not pass the modem after the startup, in each run.
fn lost_percent(rows: &[ModemRow]) -> Vec<f64> {
    let (lost, received) = (grows(rows, |row| row.lost), grows(rows, |row| row.received));
    lost.into_iter().zip(received).map(|(lost, got)| 100.0 * lost / (lost + got)).collect()
}

const SECTION: &str = "section 6";

fn claims() -> Vec<Claim> {
    vec![
        Claim::shape(
            "busy",
            "% of the modem's rate that is used after the startup, least of all runs",
            quote("the sender keeps the modem busy", SECTION),
            Target::AtLeast(97.0),
            |rows: &[ModemRow]| smallest(busy_percent(rows)),
        ),
        Claim::printed(
            "lost",
            "% of the packets that the queue before the modem drops after the startup, mean of all runs: 4 to 7",
            quote("losing only the expected 5% of packets", SECTION),
            Target::Equal(5.5),
            1.5,
            |rows: &[ModemRow]| mean(&lost_percent(rows)),
        ),
        Claim::own(
            "others",
            "packets that the receivers on the Ethernet lose",
            Target::AtMost(0.0),
            0.0,
            |rows: &[ModemRow]| largest(rows.numbers(|_| true, |row| row.others_lost as f64)),
        ),
        Claim::own(
            "bytes",
            "packets whose payload is not the one that was sent",
            Target::AtMost(0.0),
            0.0,
            |rows: &[ModemRow]| largest(rows.numbers(|_| true, |row| row.wrong as f64)),
        ),
        nothing_lost_here(),
    ]
}

/// Packets per second, in intervals of 10 s: what the sender sends, and what passes the modem.
fn figure(rows: &[ModemRow]) -> Exhibit {
    const INTERVAL: u32 = 10;
    let runs = rows.distinct(|row| row.run).len().max(1) as f64;
    let curve = |label: &str, number: &dyn Fn(&ModemRow) -> f64| {
        let point = |interval: u32| {
            let is_within = |row: &ModemRow| row.second / INTERVAL == interval;
            let all: f64 = rows.numbers(is_within, number).iter().sum();
            let y = all / runs / f64::from(INTERVAL);
            Point { x: f64::from(interval * INTERVAL + INTERVAL / 2), y, low: y, high: y }
        };
        Series::new(label, (0..SECONDS as u32 / INTERVAL).map(point))
    };
    Exhibit::Chart(Chart {
        name: "",
        title: "A receiver behind a modem".into(),
        x: Axis::linear("seconds"),
        y: Axis::linear("packets per second"),
        panels: Panel::only(vec![
            curve("all packets", &|row| row.sent.into()),
            curve("resends", &|row| row.resent.into()),
        ]),
    })
}
