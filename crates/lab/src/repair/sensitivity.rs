//! `li.sensitivity`: what follows from constants that the paper does not print.

use super::setting::{Constants, FecUse, LiConfig, Protocol};
use super::sweep::{OTERS, QUICK_GRAPHS, SRM, TMTP, run_one};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::statistics::{mean, smallest};
use fontana_sim::Multicast;
use serde::{Deserialize, Serialize};

/// Networks of a run with all trials.
const GRAPHS: u32 = 3;
const QUICK_SEGMENTS: u32 = 56;
/// A quick run changes one of so many constants.
const QUICK_STEP: u32 = 3;
/// By what each constant is multiplied.
const FACTORS: [f64; 2] = [0.5, 2.0];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "li.sensitivity",
    paper: "FEC with reliable multicast, table 1",
    what: "The runs of li.table1 with broadcasts, if one of the constants that the paper does not print is half or \
           twice as large. Three networks (quick: two networks, 56 segments, a third of the constants). A claim of li.table1 whose verdict \
           changes in this table is not determined by the text.",
    sweep: &SweepOf {
        name: "li.sensitivity",
        kind: Kind::Counted,
        cases: |scale| plan(scale).len() as u32,
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<ChangedRow> = table.read().unwrap_or_default();
        vec![grid(&rows)]
    },
};

/// A constant, and the protocol that has it.
struct Varied {
    name: &'static str,
    protocol: Protocol,
    scale: fn(&mut Constants, f64),
}

const VARIED: [Varied; 10] = [
    Varied { name: "C1", protocol: Protocol::Srm, scale: |c, f| c.request_from *= f },
    Varied { name: "C2", protocol: Protocol::Srm, scale: |c, f| c.request_spread *= f },
    Varied { name: "D1", protocol: Protocol::Srm, scale: |c, f| c.repair_from *= f },
    Varied { name: "D2", protocol: Protocol::Srm, scale: |c, f| c.repair_spread *= f },
    Varied { name: "hold", protocol: Protocol::Srm, scale: |c, f| c.hold *= f },
    Varied {
        name: "search wait",
        protocol: Protocol::TmtpUni,
        scale: |c, f| c.search_wait = c.search_wait.mul_f64(f),
    },
    Varied {
        name: "representative beyond",
        protocol: Protocol::TmtpUni,
        scale: |c, f| c.representative_beyond = (f64::from(c.representative_beyond) * f) as u8,
    },
    Varied {
        name: "most children",
        protocol: Protocol::TmtpUni,
        scale: |c, f| c.most_children = (c.most_children as f64 * f) as usize,
    },
    Varied { name: "retry", protocol: Protocol::TmtpUni, scale: |c, f| c.retry *= f },
    Varied { name: "retry", protocol: Protocol::Oters, scale: |c, f| c.retry *= f },
];

/// An order of `li.table1` that a constant reverses: the text does not determine it.
pub(super) struct Reversed {
    pub(super) column: &'static str,
    /// The protocol with more.
    pub(super) more: &'static str,
    /// What reverses it.
    pub(super) by: &'static str,
}

/// In three networks with all trials.
pub(super) const REVERSED: [Reversed; 2] = [
    Reversed {
        column: "latency",
        more: SRM,
        by: "a long search wait, a wide subgroup or a short C1 or C2",
    },
    Reversed { column: "session", more: SRM, by: "a short search wait or a wide subgroup" },
];

/// A run with one constant changed.
#[derive(Clone, Serialize, Deserialize)]
struct ChangedRow {
    constant: String,
    factor: f64,
    protocol: String,
    graph: u32,
    request: f64,
    repair: f64,
    total: f64,
    ms: f64,
    product: f64,
    session: f64,
}

/// The name of the constant of runs without a change.
const NONE: &str = "none";

/// A planned run. `varied`: `None` without a change.
struct Planned {
    graph: u32,
    protocol: Protocol,
    varied: Option<(&'static Varied, f64)>,
}

fn plan(scale: Scale) -> Vec<Planned> {
    let mut all = Vec::new();
    for graph in 0..scale.pick(QUICK_GRAPHS, GRAPHS) {
        let unchanged = |protocol| Planned { graph, protocol, varied: None };
        all.extend(Protocol::ALL.map(unchanged));
        for varied in VARIED.iter().step_by(scale.pick(QUICK_STEP, 1) as usize) {
            let change = |factor| Planned {
                graph,
                protocol: varied.protocol,
                varied: Some((varied, factor)),
            };
            all.extend(FACTORS.map(change));
        }
    }
    all
}

fn run(case: &Case) -> Option<ChangedRow> {
    let Planned { graph, protocol, varied } =
        plan(case.scale).into_iter().nth(case.index as usize)?;
    let table_1 = LiConfig::table_1(protocol, Multicast::Broadcast);
    let segments = case.scale.pick(QUICK_SEGMENTS, table_1.segments);
    let mut config = LiConfig { segments, ..table_1 };
    if let Some((varied, factor)) = varied {
        (varied.scale)(&mut config.constants, factor);
    }
    let row = run_one(case, &config, protocol.name(FecUse::Reactive), graph)?;
    Some(ChangedRow {
        constant: varied.map_or(NONE, |(varied, _)| varied.name).into(),
        factor: varied.map_or(1.0, |(_, factor)| factor),
        graph,
        request: row.request,
        repair: row.repair,
        total: row.total(),
        ms: row.ms,
        product: row.product(),
        session: row.session,
        protocol: row.protocol,
    })
}

/// A column of table 1.
struct Column {
    name: &'static str,
    number: fn(&ChangedRow) -> f64,
}

const COLUMNS: [Column; 6] = [
    Column { name: "request", number: |row| row.request },
    Column { name: "repair", number: |row| row.repair },
    Column { name: "total", number: |row| row.total },
    Column { name: "latency", number: |row| row.ms },
    Column { name: "product", number: |row| row.product },
    Column { name: "session", number: |row| row.session },
];

/// The least ratio of a number of one protocol to that of another, over all changes of either.
fn least_ratio(rows: &[ChangedRow], more: &str, less: &str, number: fn(&ChangedRow) -> f64) -> f64 {
    let means = |protocol: &str| {
        let changes = rows.distinct(|row| (row.constant.clone(), row.factor.to_bits()));
        let means = changes.into_iter().map(|(constant, factor)| {
            let is = |row: &ChangedRow| {
                row.protocol == protocol
                    && row.constant == constant
                    && row.factor.to_bits() == factor
            };
            mean(&rows.numbers(is, number))
        });
        means.filter(|mean| mean.is_finite()).collect::<Vec<_>>()
    };
    let unchanged = |protocol: &str| {
        mean(&rows.numbers(|r| r.protocol == protocol && r.constant == NONE, number))
    };
    let changed = means(more).into_iter().map(|more| more / unchanged(less));
    let other = means(less).into_iter().map(|less| unchanged(more) / less);
    smallest(changed.chain(other))
}

fn claims() -> Vec<Claim> {
    let mut all = Vec::new();
    for Column { name, number } in COLUMNS {
        for (more, less) in [(TMTP, OTERS), (SRM, TMTP)] {
            all.push(Claim::own(
                format!("{name} {more}"),
                format!(
                    "{name}: {more} over {less}, the least of all changes, mean of the networks"
                ),
                Target::AtLeast(1.0),
                0.0,
                move |rows: &[ChangedRow]| {
                    let least = |graph: u32| {
                        let of = rows.iter().filter(|row| row.graph == graph).cloned();
                        least_ratio(&of.collect::<Vec<_>>(), more, less, number)
                    };
                    let graphs = rows.distinct(|row| row.graph).into_iter();
                    Estimate::mean(&graphs.map(least).collect::<Vec<_>>())
                },
            ));
        }
    }
    all
}

fn grid(rows: &[ChangedRow]) -> Exhibit {
    let mut lines = Vec::new();
    for protocol in [OTERS, TMTP, SRM] {
        let of: Vec<ChangedRow> =
            rows.iter().filter(|row| row.protocol == protocol).cloned().collect();
        for (constant, factor) in of.distinct(|row| (row.constant.clone(), row.factor.to_bits())) {
            let is = |row: &ChangedRow| row.constant == constant && row.factor.to_bits() == factor;
            let change = match constant.as_str() {
                NONE => "as in li.table1".to_owned(),
                constant => format!("{constant} x {}", f64::from_bits(factor)),
            };
            let cells = COLUMNS
                .iter()
                .map(|Column { number, .. }| format!("{:.0}", mean(&of.numbers(is, number))));
            lines.push([protocol.to_owned(), change].into_iter().chain(cells).collect());
        }
    }
    let names = COLUMNS.iter().map(|column| column.name.to_owned());
    Exhibit::Grid(Grid {
        title: "Table 1 with one constant changed".into(),
        columns: ["protocol".to_owned(), "change".to_owned()].into_iter().chain(names).collect(),
        rows: lines,
    })
}
