//! `li.fontana`: the fountain in the networks of the paper, by its three numbers.

use super::run::LiNetwork;
use super::setting::{FecUse, LiConfig, Protocol};
use super::sweep::{GRAPHS, QUICK_GRAPHS};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use fontana_sim::Multicast;
use serde::{Deserialize, Serialize};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "li.fontana",
    paper: "FEC with reliable multicast, table 1",
    what: "A fountain in the networks of li.table1, in groups of 448, which is all of the content, and of 56. One \
           way: members send nothing, and each group has the fewest FEC packets with which all 600 members of \
           the ten networks have everything. On demand: members request with SRM's timers, and the source alone \
           repairs; pro: it also sends the paper's estimate in advance. Ten networks (quick: two). The paper has \
           none of this: compare with li.table1.",
    sweep: &SweepOf {
        name: "li.fontana",
        kind: Kind::Counted,
        cases: |scale| FORMS.len() as u32 * scale.pick(QUICK_GRAPHS, GRAPHS),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<FountainRow> = table.read().unwrap_or_default();
        vec![grid(&rows)]
    },
};

/// All of the content as one group, and a group of a stream.
const WHOLE: u32 = 448;
const PART: u32 = 56;
/// FEC packets of each group, one way: with one less, one of the 600 members lacks some.
const WHOLE_SHARE: u32 = 92;
const PART_SHARE: u32 = 31;

/// A protocol, its use of FEC, and k.
type Form = (Protocol, FecUse, u32);

const FORMS: [Form; 5] = [
    (Protocol::OneWay { share: WHOLE_SHARE }, FecUse::Reactive, WHOLE),
    (Protocol::OneWay { share: PART_SHARE }, FecUse::Reactive, PART),
    (Protocol::OnDemand, FecUse::Reactive, WHOLE),
    (Protocol::OnDemand, FecUse::Reactive, PART),
    (Protocol::OnDemand, FecUse::Proactive, PART),
];

/// A run.
#[derive(Clone, Serialize, Deserialize)]
struct FountainRow {
    form: String,
    k: u32,
    /// The network.
    graph: u32,
    /// Packet-hops for each segment.
    payload: f64,
    request: f64,
    repair: f64,
    ms: f64,
    /// Thousands of packet-hops of session messages.
    session: f64,
    /// The share of the members that have received everything.
    complete: f64,
}

impl FountainRow {
    /// Bandwidth (section 4.1).
    fn total(&self) -> f64 {
        self.payload + self.request + self.repair
    }

    /// Bandwidth-latency product (section 4.1).
    fn product(&self) -> f64 {
        self.total() * self.ms / 1e3
    }
}

fn run(case: &Case) -> Option<FountainRow> {
    let (graph, index) = (case.index / FORMS.len() as u32, case.index as usize % FORMS.len());
    let (protocol, fec, k) = *FORMS.get(index)?;
    let table_1 = LiConfig::table_1(protocol, Multicast::Broadcast);
    let config = LiConfig { fec, group_segments: k, ..table_1 };
    let seed = Case { index: graph, ..*case }.stream(0).next_u64();
    let counts = LiNetwork::new(&config, seed).run(&config, seed)?;
    Some(FountainRow {
        form: protocol.name(fec).into(),
        k,
        graph,
        payload: counts.payload(),
        request: counts.requests(),
        repair: counts.repairs(),
        ms: counts.ms,
        session: counts.session_kilo,
        complete: counts.complete,
    })
}

/// The mean of a number over the networks.
fn mean(
    rows: &[FountainRow],
    (protocol, fec, k): Form,
    number: impl Fn(&FountainRow) -> f64,
) -> Estimate {
    let is = |row: &&FountainRow| row.form == protocol.name(fec) && row.k == k;
    Estimate::mean(&rows.iter().filter(is).map(number).collect::<Vec<_>>())
}

fn claims() -> Vec<Claim> {
    let [one_way_whole, one_way_part, whole, part, part_pro] = FORMS;
    let of_members = |name: &str, form: Form, least: f64| {
        Claim::own(
            name,
            format!("share of the members that receive everything {name}"),
            Target::AtLeast(least),
            0.0,
            move |rows: &[FountainRow]| mean(rows, form, |row| row.complete),
        )
    };
    let saves = |name: &str, form: Form, over: Form| {
        Claim::own(
            name,
            format!("packet-hops of requests and repairs {name}, over those one way"),
            Target::AtMost(1.0),
            0.0,
            move |rows: &[FountainRow]| {
                let recovery = |form| mean(rows, form, |row| row.request + row.repair);
                recovery(form).over(recovery(over))
            },
        )
    };
    vec![
        of_members("one way, k = 448", one_way_whole, 0.999),
        of_members("one way, k = 56", one_way_part, 0.999),
        of_members("on demand, k = 448", whole, 1.0),
        of_members("on demand, k = 56", part, 1.0),
        of_members("on demand-pro, k = 56", part_pro, 1.0),
        saves("traffic, k = 448", whole, one_way_whole),
        Claim::own(
            "latency",
            "latency on demand of k = 56 over that of k = 448",
            Target::AtMost(1.0),
            0.0,
            move |rows: &[FountainRow]| {
                let latency = |form| mean(rows, form, |row| row.ms);
                latency(part).over(latency(whole))
            },
        ),
    ]
}

fn grid(rows: &[FountainRow]) -> Exhibit {
    let line = |form: Form| {
        let (protocol, fec, k) = form;
        let cell =
            |number: fn(&FountainRow) -> f64| format!("{:.0}", mean(rows, form, number).value);
        vec![
            protocol.name(fec).to_owned(),
            k.to_string(),
            cell(|row| row.payload),
            cell(|row| row.request),
            cell(|row| row.repair),
            cell(FountainRow::total),
            cell(|row| row.ms),
            cell(FountainRow::product),
            cell(|row| row.session),
            format!("{:.4}", mean(rows, form, |row| row.complete).value),
        ]
    };
    let columns = [
        "form",
        "k",
        "payload",
        "request",
        "repair",
        "total",
        "latency",
        "product",
        "session",
        "members complete",
    ];
    Exhibit::Grid(Grid {
        title: "Packet-hops for each segment, milliseconds, packet-hops times seconds, thousands of packet-hops"
            .into(),
        columns: columns.map(str::to_owned).into(),
        rows: FORMS.map(line).into(),
    })
}
