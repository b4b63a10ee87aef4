//! `li.table1`: the protocols without FEC.

use super::sensitivity;
use super::sweep::{LiRow, Number, OTERS, PRUNED, Runs, SRM, SWEEP, TMTP, plain};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::Experiment;

const TABLE: &str = "table 1";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "li.table1",
    paper: "FEC with reliable multicast, table 1",
    what: "OTERS, TMTP-uni and SRM without FEC: packet-hops for each of 448 segments, mean time until the last \
           of 60 members has a segment, and packet-hops of session messages in 10 s. Means of ten transit-stub \
           networks of 600 nodes, whose links lose 1 % of the packets in bursts of 2 (quick: two networks, 224 \
           segments). Multicast is broadcast along whole trees, without which the printed 525 packet-hops of a \
           segment are not possible; pruned trees are shown beside it.",
    sweep: &SWEEP,
    claims,
    exhibits: |table| {
        let rows: Vec<LiRow> = table.read().unwrap_or_default();
        vec![grid(&rows)]
    },
};

/// A printed row.
pub(super) struct Printed {
    pub(super) protocol: &'static str,
    payload: f64,
    pub(super) request: f64,
    pub(super) repair: f64,
    total: f64,
    ms: f64,
    product: f64,
    session: f64,
}

pub(super) const PRINTED: [Printed; 3] = [
    Printed {
        protocol: OTERS,
        payload: 525.0,
        request: 27.0,
        repair: 84.0,
        total: 636.0,
        ms: 325.0,
        product: 207.0,
        session: 9.0,
    },
    Printed {
        protocol: TMTP,
        payload: 525.0,
        request: 31.0,
        repair: 596.0,
        total: 1_152.0,
        ms: 330.0,
        product: 380.0,
        session: 31.0,
    },
    Printed {
        protocol: SRM,
        payload: 525.0,
        request: 1_394.0,
        repair: 4_681.0,
        total: 6_600.0,
        ms: 425.0,
        product: 2_805.0,
        session: 368.0,
    },
];

/// A column of the table.
struct Column {
    name: &'static str,
    ours: Number,
    printed: fn(&Printed) -> f64,
}

const COLUMNS: [Column; 7] = [
    Column { name: "payload", ours: |row| row.payload, printed: |p| p.payload },
    Column { name: "request", ours: |row| row.request, printed: |p| p.request },
    Column { name: "repair", ours: |row| row.repair, printed: |p| p.repair },
    Column { name: "total", ours: LiRow::total, printed: |p| p.total },
    Column { name: "latency", ours: |row| row.ms, printed: |p| p.ms },
    Column { name: "product", ours: LiRow::product, printed: |p| p.product },
    Column { name: "session", ours: |row| row.session, printed: |p| p.session },
];

/// A factor as a power of two: 1 is twice as much, -1 half.
fn doublings(ratio: Estimate) -> Estimate {
    let error = ratio.error / ratio.value / std::f64::consts::LN_2;
    Estimate { value: ratio.value.log2(), error }
}

fn claims() -> Vec<Claim> {
    let mut all = Vec::new();
    for printed in &PRINTED {
        all.extend(of_protocol(printed));
    }
    for column in COLUMNS.iter().skip(1) {
        all.extend(order(column));
    }
    all.push(Claim::own(
        "complete",
        "share of the runs in which all members receive everything",
        Target::Equal(1.0),
        0.0,
        |rows: &[LiRow]| {
            rows.iter().filter(|row| row.is_complete).count() as f64 / rows.len() as f64
        },
    ));
    for Printed { protocol, total, ms, product, .. } in PRINTED {
        all.push(Claim::identity(
            format!("{protocol} arithmetic"),
            "the printed total times the printed latency, over the printed product",
            Target::Equal(1.0),
            0.01,
            move |_: &[LiRow]| total * ms / 1e3 / product,
        ));
    }
    all
}

/// The numbers of a row. Packet-hops of recovery are compared as ratios to the payload's.
fn of_protocol(printed: &Printed) -> Vec<Claim> {
    let &Printed { protocol, payload, request, repair, ms, session, .. } = printed;
    let of = plain(protocol);
    let words = |number: f64| quote(format!("{protocol} {number}"), TABLE);
    let share = |name: &str, number: f64, ours: Number| {
        Claim::printed(
            format!("{protocol} {name}"),
            format!(
                "{name} over payload, as a power of two times the printed {:.3}",
                number / payload
            ),
            words(number),
            Target::Equal(0.0),
            1.0,
            move |rows: &[LiRow]| {
                let ratio = Runs::broadcast(rows).ratio((of, ours), (of, |row| row.payload));
                doublings(ratio.times(payload / number))
            },
        )
        .of_number(number)
    };
    vec![
        Claim::printed(
            format!("{protocol} payload"),
            "packet-hops of a segment",
            words(payload),
            Target::Equal(payload),
            0.1 * payload,
            move |rows: &[LiRow]| Runs::broadcast(rows).mean(of, |row| row.payload),
        ),
        share("request", request, |row| row.request),
        share("repair", repair, |row| row.repair),
        Claim::printed(
            format!("{protocol} latency"),
            "milliseconds until the last member has a segment",
            words(ms),
            Target::Equal(ms),
            0.25 * ms,
            move |rows: &[LiRow]| Runs::broadcast(rows).mean(of, |row| row.ms),
        ),
        Claim::printed(
            format!("{protocol} session"),
            format!("session messages in 10 s, as a power of two times the printed {session} k"),
            words(session),
            Target::Equal(0.0),
            1.5_f64.log2(),
            move |rows: &[LiRow]| {
                let ours = Runs::broadcast(rows).mean(of, |row| row.session);
                doublings(ours.times(1.0 / session))
            },
        )
        .of_number(session),
    ]
}

/// The order of the protocols in a column.
fn order(column: &Column) -> Vec<Claim> {
    let words =
        || quote("OTERS outperforms TMTP-uni, which in turn outperforms SRM", "section 5.1");
    let claim = |more: &'static str, less: &'static str| {
        let ours = column.ours;
        let reversed = sensitivity::REVERSED.iter();
        let by = reversed.filter(|order| order.column == column.name && order.more == more);
        let by = by.map(|order| format!("; {} reverses it (li.sensitivity)", order.by));
        Claim::shape(
            format!("{} {more}", column.name),
            format!("{}: {more} over {less}{}", column.name, by.collect::<String>()),
            words(),
            Target::AtLeast(1.0),
            move |rows: &[LiRow]| Runs::broadcast(rows).over(plain(more), plain(less), ours),
        )
    };
    vec![claim(TMTP, OTERS), claim(SRM, TMTP)]
}

fn grid(rows: &[LiRow]) -> Exhibit {
    let runs = [("", Runs::broadcast(rows)), (PRUNED, Runs::pruned(rows))];
    let mut lines = Vec::new();
    for (note, runs) in runs {
        for printed in &PRINTED {
            let cell = |column: &Column| {
                let ours = runs.mean(plain(printed.protocol), column.ours).value;
                match note {
                    "" => format!("{ours:.0} ({})", (column.printed)(printed)),
                    _ => format!("{ours:.0}"),
                }
            };
            if runs.mean(plain(printed.protocol), |row| row.payload).value.is_nan() {
                continue;
            }
            let name = format!("{} {note}", printed.protocol);
            let cells = COLUMNS.iter().map(cell);
            lines.push(std::iter::once(name.trim().to_owned()).chain(cells).collect());
        }
    }
    let columns = std::iter::once("protocol").chain(COLUMNS.iter().map(|column| column.name));
    Exhibit::Grid(Grid {
        title: "Table 1, ours and in brackets as printed: packet-hops for each segment, milliseconds, packet-hops \
                times seconds, thousands of packet-hops"
            .into(),
        columns: columns.map(str::to_owned).collect(),
        rows: lines,
    })
}
