//! `li.appendix`: the protocols with more members, more losses, and losses that are independent.

use super::setting::{FecUse, LiConfig, Protocol};
use super::sweep::{LiRow, OTERS, QUICK_GRAPHS, Runs, SRM, TMTP, curve, plain, run_one};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use fontana_sim::Multicast;

/// Networks of a run with all trials.
const GRAPHS: u32 = 5;
/// Segments of a quick run: four groups.
const QUICK_SEGMENTS: u32 = 56;
/// The group size that is compared with no FEC.
const GROUP: u32 = 14;
/// The share of the nodes that are members, and that of a quick run: with half of the nodes, a run
/// takes up to a minute.
const DENSITY: f64 = 0.50;
const QUICK_DENSITY: f64 = 0.10;
const LOSS: f64 = 0.05;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "li.appendix",
    paper: "FEC with reliable multicast, appendix",
    what: "The protocols of li.table1 without FEC and with groups of 14, if half of the nodes are members and links \
           lose 5 % of the packets independently. Five networks (quick: two networks, a tenth of the nodes, 56 segments). The appendix is \
           not in our text, which says only that the same conclusions hold.",
    sweep: &SweepOf {
        name: "li.appendix",
        kind: Kind::Counted,
        cases: |scale| CASES.len() as u32 * scale.pick(QUICK_GRAPHS, GRAPHS),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        vec![grid(&rows)]
    },
};

const CASES: [(Protocol, u32); 6] = [
    (Protocol::Oters, 1),
    (Protocol::Oters, GROUP),
    (Protocol::TmtpUni, 1),
    (Protocol::TmtpUni, GROUP),
    (Protocol::Srm, 1),
    (Protocol::Srm, GROUP),
];

fn run(case: &Case) -> Option<LiRow> {
    let (graph, index) = (case.index / CASES.len() as u32, case.index as usize % CASES.len());
    let (protocol, k) = *CASES.get(index)?;
    let table_1 = LiConfig::table_1(protocol, Multicast::Broadcast);
    let config = LiConfig {
        segments: case.scale.pick(QUICK_SEGMENTS, table_1.segments),
        group_segments: k,
        density: match case.scale {
            Scale::Quick => QUICK_DENSITY,
            Scale::Full => DENSITY,
        },
        loss: LOSS,
        burst: 1.0 / (1.0 - LOSS),
        ..table_1
    };
    run_one(case, &config, protocol.name(FecUse::Reactive), graph)
}

fn claims() -> Vec<Claim> {
    let words = || quote("the same conclusion holds under more extreme conditions", "section 5");
    let order = |name: &str, more: &'static str, less: &'static str, number: fn(&LiRow) -> f64| {
        Claim::shape(
            format!("{name} {more}"),
            format!("{name} without FEC: {more} over {less}"),
            words(),
            Target::AtLeast(1.0),
            move |rows: &[LiRow]| Runs::broadcast(rows).over(plain(more), plain(less), number),
        )
    };
    let left = |protocol: &'static str| {
        move |rows: &[LiRow]| {
            let (with, without) = (curve(protocol, GROUP), plain(protocol));
            Runs::broadcast(rows).over(with, without, LiRow::product)
        }
    };
    vec![
        order("traffic", TMTP, OTERS, LiRow::total),
        order("traffic", SRM, TMTP, LiRow::total),
        order("latency", TMTP, OTERS, |row| row.ms),
        order("latency", SRM, TMTP, |row| row.ms),
        Claim::shape(
            "OTERS",
            "OTERS' product at k = 14 over that without FEC",
            words(),
            Target::AtLeast(1.0),
            left(OTERS),
        ),
        Claim::shape(
            "SRM",
            "SRM's product at k = 14 over that without FEC",
            words(),
            Target::AtMost(1.0),
            left(SRM),
        ),
        Claim::own(
            "complete",
            "share of the runs in which all members receive everything",
            Target::Equal(1.0),
            0.0,
            |rows: &[LiRow]| {
                rows.iter().filter(|row| row.is_complete).count() as f64 / rows.len() as f64
            },
        ),
    ]
}

fn grid(rows: &[LiRow]) -> Exhibit {
    let runs = Runs::broadcast(rows);
    let line = |(protocol, k): (Protocol, u32)| {
        let of = curve(protocol.name(FecUse::Reactive), k);
        let cell = |number: fn(&LiRow) -> f64| format!("{:.0}", runs.mean(of, number).value);
        vec![
            of.protocol.to_owned(),
            k.to_string(),
            cell(|row| row.payload),
            cell(|row| row.request),
            cell(|row| row.repair),
            cell(|row| row.ms),
            cell(LiRow::product),
        ]
    };
    let columns = ["protocol", "k", "payload", "request", "repair", "latency", "product"];
    Exhibit::Grid(Grid {
        title: "Packet-hops for each segment, milliseconds, packet-hops times seconds".into(),
        columns: columns.map(str::to_owned).into(),
        rows: CASES.map(line).into(),
    })
}
