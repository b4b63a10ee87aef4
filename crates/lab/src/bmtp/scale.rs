//! `bm.scale`: status packets at the sender, from 1 to 100 000 receivers.

use super::log::SecondOfPackets;
use super::run::{BmtpRun, BmtpSetting};
use crate::chart::{Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, smallest};
use serde::{Deserialize, Serialize};
use std::ops::Range;

const LOSS: f64 = 0.01;
const CROWDS: [u32; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
const QUICK_CROWDS: u32 = 5;

/// The seconds of a run in which the divisor has followed the crowd. It is 1 000 first, and is
/// adjusted every 10 s to what the last 20 s show. A full channel back shows at most twelve status
/// packets for a data packet, so that 100 000 receivers are counted after 50 s.
fn settled(receivers: u32) -> Range<u64> {
    match receivers {
        0..10_000 => 40..150,
        10_000..100_000 => 40..50,
        100_000.. => 60..70,
    }
}

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.scale",
    paper: "BMTP, section 3",
    what: "Status packets that arrive per data packet, for 1 to 100 000 receivers (quick: 10 000) with 1 % of \
           line errors: from 40 to 150 s (10 000: to 50 s; 100 000: from 60 to 70 s), and in the first 20 s, in \
           which the sender still assumes 1 000 receivers.",
    sweep: &SweepOf {
        name: "bm.scale",
        kind: Kind::Counted,
        cases: |scale| scale.pick(QUICK_CROWDS, CROWDS.len() as u32),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<ScaleRow> = table.read().unwrap_or_default();
        let curve = |label: &str, number: fn(&ScaleRow) -> f64| {
            Series::new(label, rows.points(|_| true, |row| (row.receivers.into(), number(row))))
        };
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Status packets per data packet".into(),
            x: Axis::logarithmic("receivers"),
            y: Axis::linear("status packets per data packet"),
            panels: Panel::only(vec![
                curve("settled", |row| row.settled),
                curve("first 20 s", |row| row.first),
                Series::printed_curve("paper", [(1.0, 1.0), (10_000.0, 1.0)]),
            ]),
        })]
    },
};

/// A run.
#[derive(Serialize, Deserialize)]
struct ScaleRow {
    receivers: u32,
    sent: u32,
    statuses: u32,
    /// Status packets that arrive per data packet.
    first: f64,
    settled: f64,
}

fn run(case: &Case) -> Option<ScaleRow> {
    let receivers = *CROWDS.get(case.index as usize)?;
    let setting = BmtpSetting::one_slow(receivers, LOSS);
    let mut run = BmtpRun::new(&setting, case.stream(0).next_u64());
    let settled = settled(receivers);
    let seconds = run.until(settled.end)?.seconds();
    let ratio = |seconds: &[SecondOfPackets]| {
        let all = SecondOfPackets::sum(seconds);
        f64::from(all.statuses) / f64::from(all.sent)
    };
    let all = SecondOfPackets::sum(seconds);
    Some(ScaleRow {
        receivers,
        sent: all.sent,
        statuses: all.statuses,
        first: ratio(seconds.get(..20)?),
        settled: ratio(seconds.get(settled.start as usize..)?),
    })
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::shape(
            "most",
            "status packets that arrive per data packet, when the divisor has settled, the most",
            quote("receive only one status packet per data packet it sends", "section 3"),
            Target::AtMost(1.25),
            |rows: &[ScaleRow]| largest(rows.iter().map(|row| row.settled)),
        ),
        Claim::shape(
            "least",
            "and the least",
            quote("receive only one status packet per data packet it sends", "section 3"),
            Target::AtLeast(0.8),
            |rows: &[ScaleRow]| smallest(rows.iter().map(|row| row.settled)),
        ),
    ]
}
