//! `li.baby`: one member that loses a lot, and what the others get because of it.

use super::run::{LiCounts, LiNetwork};
use super::setting::{FecUse, LiConfig, Protocol};
use super::sweep::{GRAPHS, QUICK_GRAPHS, SWEEP};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::statistics::smallest;
use fontana_sim::Multicast;
use serde::{Deserialize, Serialize};

/// The share of the packets that the link to this member loses.
const LOSS: f64 = 0.30;
/// Packets that make up for it one way, for each segment that arrives: 1 / 0.7 - 1, and what other
/// links lose of them.
const MADE_UP: f64 = 0.5;
/// Segments of a quick run: four groups of SRM, one of a fountain.
const QUICK_SEGMENTS: u32 = 56;
/// Group sizes with FEC: of the paper's protocols, and of a fountain.
const GROUP: u32 = 14;
const FOUNTAIN: u32 = 56;
/// FEC packets of each group, one way. Fitted: in ten other networks of the same kind, with one
/// less, one of the 600 members lacks some.
const SHARE: u32 = 31;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "li.baby",
    paper: "FEC with reliable multicast, section 1",
    what: "The crying baby: in the networks of li.table1, one member more, to which its link loses 30 % of the \
           packets, over the same member behind a link that loses 1 % as all others do. What the other members get \
           and how long they wait, with the protocols of li.table1 without FEC and with groups of 14, and with a \
           fountain in groups of 56, whose share one way is fitted to ten other networks. Ten networks (quick: two, \
           56 segments, what the claims need).",
    sweep: &SweepOf {
        name: "li.baby",
        kind: Kind::Counted,
        cases: |scale| forms(scale).len() as u32 * scale.pick(QUICK_GRAPHS, GRAPHS),
        run: |case| run(case).unwrap_or_default(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<BabyRow> = table.read().unwrap_or_default();
        vec![grid(&rows)]
    },
};

/// A protocol, its use of FEC, and k.
type Form = (Protocol, FecUse, u32);

const OTERS: Form = (Protocol::Oters, FecUse::Reactive, 1);
const TMTP: Form = (Protocol::TmtpUni, FecUse::Reactive, 1);
const SRM: Form = (Protocol::Srm, FecUse::Reactive, 1);
const ONE_WAY: Form = (Protocol::OneWay { share: SHARE }, FecUse::Reactive, FOUNTAIN);
const ON_DEMAND: Form = (Protocol::OnDemand, FecUse::Reactive, FOUNTAIN);

const FORMS: [Form; 12] = [
    OTERS,
    with_fec(OTERS, FecUse::Reactive),
    with_fec(OTERS, FecUse::Proactive),
    TMTP,
    with_fec(TMTP, FecUse::Reactive),
    with_fec(TMTP, FecUse::Proactive),
    SRM,
    with_fec(SRM, FecUse::Reactive),
    with_fec(SRM, FecUse::Proactive),
    ONE_WAY,
    ON_DEMAND,
    (Protocol::OnDemand, FecUse::Proactive, FOUNTAIN),
];
/// What the claims need.
const QUICK_FORMS: [Form; 6] =
    [OTERS, TMTP, SRM, with_fec(SRM, FecUse::Reactive), ONE_WAY, ON_DEMAND];

const fn forms(scale: Scale) -> &'static [Form] {
    match scale {
        Scale::Quick => &QUICK_FORMS,
        Scale::Full => &FORMS,
    }
}

const fn with_fec((protocol, ..): Form, fec: FecUse) -> Form {
    (protocol, fec, GROUP)
}

/// A run.
#[derive(Clone, Serialize, Deserialize)]
struct BabyRow {
    form: String,
    k: u32,
    /// The network.
    graph: u32,
    /// The additional member loses 30 %.
    cries: bool,
    /// Packets that arrive at each of the other members, for each segment. Whatever is above 1
    /// arrives twice, or after its group is complete.
    arrived: f64,
    /// Packet-hops for each segment.
    request: f64,
    repair: f64,
    total: f64,
    /// Until the last of the other members has a segment.
    ms: f64,
    /// The share of all members that have received everything.
    complete: f64,
}

fn run(case: &Case) -> Option<Vec<BabyRow>> {
    let forms = forms(case.scale);
    let (graph, index) = (case.index / forms.len() as u32, case.index as usize % forms.len());
    let (protocol, fec, k) = *forms.get(index)?;
    let table_1 = LiConfig::table_1(protocol, Multicast::Broadcast);
    let segments = case.scale.pick(QUICK_SEGMENTS, table_1.segments);
    let config = LiConfig { fec, group_segments: k, segments, ..table_1 };
    // The networks of li.table1.
    let seed = Case { index: graph, sweep: SWEEP.name, ..*case }.stream(0).next_u64();
    let of = |cries: bool| {
        let loss = if cries { LOSS } else { config.loss };
        let network = LiNetwork::with_one_more(&config, loss, seed);
        let counts: LiCounts = network.run(&config, seed)?;
        let others = network.members.len() - 1;
        Some(BabyRow {
            form: protocol.name(fec).into(),
            k,
            graph,
            cries,
            arrived: counts.arrived / others as f64,
            request: counts.requests(),
            repair: counts.repairs(),
            total: counts.payload() + counts.requests() + counts.repairs(),
            ms: counts.ms,
            complete: counts.complete,
        })
    };
    Some(vec![of(false)?, of(true)?])
}

type Number = fn(&BabyRow) -> f64;

/// A number of each network.
fn numbers(rows: &[BabyRow], (protocol, fec, k): Form, cries: bool, number: Number) -> Vec<f64> {
    let is = |row: &&BabyRow| row.form == protocol.name(fec) && row.k == k && row.cries == cries;
    rows.iter().filter(is).map(number).collect()
}

/// For each network, a function of what a number is with a crying baby and without.
fn compared(
    rows: &[BabyRow],
    form: Form,
    number: Number,
    function: impl Fn(f64, f64) -> f64,
) -> Vec<f64> {
    let [with, without] = [true, false].map(|cries| numbers(rows, form, cries, number));
    with.iter().zip(&without).map(|(with, without)| function(*with, *without)).collect()
}

fn ratios(rows: &[BabyRow], form: Form, number: Number) -> Vec<f64> {
    compared(rows, form, number, |with, without| with / without)
}

fn ratio(rows: &[BabyRow], form: Form, number: Number) -> Estimate {
    Estimate::mean(&ratios(rows, form, number))
}

fn claims() -> Vec<Claim> {
    let arrived = |form: Form| move |rows: &[BabyRow]| ratio(rows, form, |row| row.arrived);
    let paper = [(TMTP, "TMTP-uni"), (SRM, "SRM")].map(|(form, name)| {
        Claim::shape(
            name,
            format!("packets that arrive at the others, {name} without FEC, over those without a crying baby"),
            quote("An extra lossy receiver can trigger repeated retransmissions", "section 1"),
            Target::AtLeast(1.0),
            arrived(form),
        )
    });
    let mut all = Vec::from(paper);
    all.extend([
        Claim::shape(
            "slower",
            "time until the last of the others has a segment, over that without: mean of the three without FEC",
            quote("slow down the multicast session even for the less lossy", "section 1"),
            Target::AtLeast(1.0),
            |rows: &[BabyRow]| {
                let each = [OTERS, TMTP, SRM].map(|form| ratios(rows, form, |row| row.ms));
                Estimate::mean(&each.concat())
            },
        ),
        Claim::own(
            "OTERS",
            "packets that arrive at the others, OTERS without FEC, over those without a crying baby",
            Target::AtMost(1.05),
            0.0,
            arrived(OTERS),
        ),
        Claim::own(
            "FEC",
            "packets that arrive at the others of a crying baby, SRM with k = 14, over those without one and \
             without FEC",
            Target::AtMost(1.0),
            0.0,
            |rows: &[BabyRow]| {
                let (with, without) = (with_fec(SRM, FecUse::Reactive), SRM);
                let mean = |form, cries| Estimate::mean(&numbers(rows, form, cries, |row| row.arrived));
                mean(with, true).over(mean(without, false))
            },
        ),
        Claim::own(
            "on demand",
            "a fountain on demand: packets that arrive at the others because of it, for each segment",
            Target::AtMost(MADE_UP),
            0.0,
            |rows: &[BabyRow]| {
                let extra = |with: f64, without: f64| with - without;
                Estimate::mean(&compared(rows, ON_DEMAND, |row| row.arrived, extra))
            },
        ),
        Claim::identity(
            "one way",
            "packets that arrive at the others one way, over those without: members send nothing",
            Target::Equal(1.0),
            0.0,
            arrived(ONE_WAY),
        ),
        Claim::own(
            "complete",
            "share of the members that receive everything, the least of all forms but one way",
            Target::Equal(1.0),
            0.0,
            |rows: &[BabyRow]| {
                let (protocol, fec, _) = ONE_WAY;
                let of = rows.iter().filter(|row| row.form != protocol.name(fec));
                smallest(of.map(|row| row.complete))
            },
        ),
    ]);
    all
}

fn grid(rows: &[BabyRow]) -> Exhibit {
    let is_run = |form: &Form| !numbers(rows, *form, true, |row| row.ms).is_empty();
    let line = |form: Form| {
        let (protocol, fec, k) = form;
        let mean =
            |cries, number: Number| Estimate::mean(&numbers(rows, form, cries, number)).value;
        let pair = |decimals: usize, number: Number| {
            let [without, with] = [false, true].map(|cries| mean(cries, number));
            format!("{without:.decimals$} → {with:.decimals$}")
        };
        let ratio = |number: Number| format!("{:.2}", ratio(rows, form, number).value);
        vec![
            protocol.name(fec).to_owned(),
            k.to_string(),
            pair(2, |row| row.arrived),
            ratio(|row| row.arrived),
            pair(0, |row| row.ms),
            ratio(|row| row.ms),
            pair(0, |row| row.request),
            pair(0, |row| row.repair),
            ratio(|row| row.total),
            pair(3, |row| row.complete),
        ]
    };
    let columns = [
        "form",
        "k",
        "packets",
        "ratio",
        "latency",
        "ratio",
        "request",
        "repair",
        "total ratio",
        "members complete",
    ];
    Exhibit::Grid(Grid {
        title: "Without → with a member that loses 30 %: packets that arrive at each of the others for each segment, \
                of which one is needed; milliseconds; packet-hops for each segment"
            .into(),
        columns: columns.map(str::to_owned).into(),
        rows: FORMS.into_iter().filter(is_run).map(line).collect(),
    })
}
