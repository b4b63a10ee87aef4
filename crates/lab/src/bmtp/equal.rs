//! `bm.equal`: receivers with equal paths, the paper's weak case.

use super::log::SecondOfPackets;
use super::run::{BmtpRun, BmtpSetting, FastPaths, SECONDS, SLOW};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::mean;
use serde::{Deserialize, Serialize};

const RECEIVERS: u32 = 100;
/// Line errors of the cases.
const LOSSES: [f64; 2] = [0.0, 0.01];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "bm.equal",
    paper: "BMTP, section 6",
    what: "100 receivers that all receive 40 packets a second, from queues of one length: resends of 500 s \
           without line errors, where all queues drop the same packets, and with 1 % of errors on each line, \
           which make their losses independent. 5 runs (quick: one).",
    sweep: &SweepOf {
        name: "bm.equal",
        kind: Kind::Counted,
        cases: |scale| LOSSES.len() as u32 * scale.pick(1, 5),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |_| Vec::new(),
};

/// A run.
#[derive(Serialize, Deserialize)]
struct EqualRow {
    /// Line errors, in per cent.
    errors: f64,
    trial: u32,
    sent: u32,
    resent: u32,
    /// Packets that were sent more than once and more than twice, in per cent.
    twice_percent: f64,
    more_percent: f64,
}

fn run(case: &Case) -> Option<EqualRow> {
    let count = LOSSES.len() as u32;
    let loss = *LOSSES.get((case.index % count) as usize)?;
    let setting = BmtpSetting {
        fast: SLOW,
        fast_paths: FastPaths::Equal,
        ..BmtpSetting::one_slow(RECEIVERS, loss)
    };
    let mut run = BmtpRun::new(&setting, case.stream(0).next_u64());
    let log = run.until(SECONDS)?;
    let all = SecondOfPackets::sum(log.seconds());
    Some(EqualRow {
        errors: 100.0 * loss,
        trial: case.index / count,
        sent: all.sent,
        resent: all.resent,
        twice_percent: log.percent_sent_more_than(1),
        more_percent: log.percent_sent_more_than(2),
    })
}

fn claims() -> Vec<Claim> {
    let percent = |errors: f64| {
        move |rows: &[EqualRow]| {
            let share = |row: &EqualRow| 100.0 * f64::from(row.resent) / f64::from(row.sent);
            mean(&rows.numbers(|row| row.errors == errors, share))
        }
    };
    vec![
        Claim::printed(
            "half",
            "% of the packets that are resends if the losses are independent",
            quote("causing the sender to devote half its bandwidth to retransmission", "section 6"),
            Target::Equal(50.0),
            10.0,
            percent(1.0),
        ),
        Claim::printed(
            "together",
            "the same if all queues drop the same packets",
            quote("causing the sender to devote half its bandwidth to retransmission", "section 6"),
            Target::Equal(50.0),
            10.0,
            percent(0.0),
        ),
        Claim::own(
            "again",
            "% of the packets that are sent more than twice, of those sent again, if all queues drop the \
             same: receivers request a packet whose resend is on its way",
            Target::AtLeast(90.0),
            0.0,
            |rows: &[EqualRow]| {
                let more = |row: &EqualRow| 100.0 * row.more_percent / row.twice_percent;
                mean(&rows.numbers(|row| row.errors == 0.0, more))
            },
        ),
    ]
}
