//! `bm.fig5`, `bm.ida`, `bm.once`: 1 to 1000 receivers, each with 1 % of line errors.

use super::log::{FeedbackLog, SecondOfPackets};
use super::missing::Repair;
use super::resends::ResendShare;
use super::run::{BmtpRun, BmtpSetting, CONTROL_INTERVAL, SECONDS, Tree};
use crate::chart::{self, Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::statistics::{largest, smallest};
use serde::{Deserialize, Serialize};

const LOSS: f64 = 0.01;
const MOST: u32 = 1_000;
const CROWDS: [u32; 7] = [1, 3, 10, 30, 100, 300, MOST];
const TRIALS: u32 = 5;
/// Crowds of a quick run: with packets that are repeated as they are, and with pieces.
const QUICK: [(Repair, u32); 5] = [
    (Repair::Plain, MOST),
    (Repair::Dispersal, MOST),
    (Repair::Plain, 100),
    (Repair::Plain, 10),
    (Repair::Plain, 1),
];
/// Receivers on a tree, and routers on it that have ten of them each.
const ON_TREE: u32 = 100;
const BRANCHES: u32 = 10;

const SWEEP: SweepOf<CrowdRow> = SweepOf {
    name: "bm.crowds",
    kind: Kind::Counted,
    cases: |scale| match scale {
        Scale::Quick => QUICK.len() as u32 + 1,
        Scale::Full => (2 * CROWDS.len() as u32 + 1) * TRIALS,
    },
    run: |case| run(case).into_iter().collect(),
};

/// A run.
#[derive(Serialize, Deserialize)]
struct CrowdRow {
    repair: String,
    receivers: u32,
    trial: u32,
    sent: u32,
    resent: u32,
    /// Packets that were sent more than once and more than twice, in per cent; 0 with pieces, which
    /// are not repeated.
    twice_percent: f64,
    more_percent: f64,
    /// Mean time from when a packet may be requested to its first request.
    seconds_to_nak: f64,
    /// Most packets that a receiver misses at the end.
    most_missing: u64,
}

impl CrowdRow {
    fn resent_percent(&self) -> f64 {
        100.0 * f64::from(self.resent) / f64::from(self.sent)
    }
}

const PLAIN: &str = "resends";
const DISPERSAL: &str = "dispersal";
const TREE: &str = "resends on a tree";

fn name(repair: Repair, tree: Tree) -> &'static str {
    match (repair, tree) {
        (Repair::Plain, Tree::Flat) => PLAIN,
        (Repair::Plain, Tree::Branches(_)) => TREE,
        (Repair::Dispersal, _) => DISPERSAL,
    }
}

/// A planned run.
struct Planned {
    repair: Repair,
    tree: Tree,
    receivers: u32,
    trial: u32,
}

fn planned(case: &Case) -> Option<Planned> {
    let index = case.index;
    let crowds = CROWDS.len() as u32;
    let flat = |repair, receivers, trial| Planned { repair, tree: Tree::Flat, receivers, trial };
    let on_tree = |trial| Planned {
        repair: Repair::Plain,
        tree: Tree::Branches(BRANCHES),
        receivers: ON_TREE,
        trial,
    };
    match case.scale {
        Scale::Quick => {
            let crowd = QUICK.get(index as usize);
            Some(crowd.map_or(on_tree(0), |&(repair, receivers)| flat(repair, receivers, 0)))
        }
        Scale::Full => match index.checked_sub(2 * crowds * TRIALS) {
            Some(trial) => Some(on_tree(trial)),
            None => {
                let repair = [Repair::Plain, Repair::Dispersal][(index % 2) as usize];
                let receivers = *CROWDS.get((index / 2 % crowds) as usize)?;
                Some(flat(repair, receivers, index / 2 / crowds))
            }
        },
    }
}

fn run(case: &Case) -> Option<CrowdRow> {
    let Planned { repair, tree, receivers, trial } = planned(case)?;
    let share = ResendShare::All;
    let setting = BmtpSetting { repair, share, tree, ..BmtpSetting::one_slow(receivers, LOSS) };
    let mut run = BmtpRun::new(&setting, case.stream(0).next_u64());
    let log: &FeedbackLog = run.until(SECONDS)?;
    let all = SecondOfPackets::sum(log.seconds());
    let more_than = |times| match repair {
        Repair::Plain => log.percent_sent_more_than(times),
        Repair::Dispersal => 0.0,
    };
    let (twice_percent, more_percent) = (more_than(1), more_than(2));
    let seconds_to_nak = log.seconds_to_first_nak() - CONTROL_INTERVAL.as_secs_f64();
    let most_missing = (0..receivers as usize).map(|receiver| run.missing(receiver)).max();
    Some(CrowdRow {
        repair: name(repair, tree).into(),
        receivers,
        trial,
        sent: all.sent,
        resent: all.resent,
        twice_percent,
        more_percent,
        seconds_to_nak,
        most_missing: most_missing.unwrap_or(0),
    })
}

/// The mean of a number of the runs of a crowd.
fn at(rows: &[CrowdRow], repair: &str, receivers: u32, number: fn(&CrowdRow) -> f64) -> Estimate {
    let is = |row: &CrowdRow| row.repair == repair && row.receivers == receivers;
    match rows.numbers(is, number)[..] {
        [one] => one.into(),
        ref values => Estimate::mean(values),
    }
}

fn of_plain(rows: &[CrowdRow], number: fn(&CrowdRow) -> f64) -> Vec<f64> {
    rows.numbers(|row| row.repair == PLAIN, number)
}

pub(crate) const FIGURE_5: Experiment = Experiment {
    id: "bm.fig5",
    paper: "BMTP, figure 5",
    what: "Packets of 500 s, and how many of them are resends, against the number of receivers: one \
           receives 40 packets a second and the others 100, each loses 1 % of them on its line, and the \
           sender answers all requests. 5 runs for each number (quick: one run, fewer numbers). With \
           dispersal: bm.ida. And 100 receivers on a tree, whose line errors are those of ten routers.",
    sweep: &SWEEP,
    claims: figure_5_claims,
    exhibits: |table| {
        let rows: Vec<CrowdRow> = table.read().unwrap_or_default();
        vec![figure(&rows)]
    },
};

fn figure_5_claims() -> Vec<Claim> {
    vec![
        Claim::printed(
            "least",
            "packets in 500 s, the least",
            quote("the total is always just over 20000 packets", SECTION_6),
            Target::AtLeast(20_000.0),
            0.0,
            |rows: &[CrowdRow]| smallest(of_plain(rows, |row| row.sent.into())),
        ),
        Claim::shape(
            "most",
            "packets in 500 s, the most",
            quote("the total is always just over 20000 packets", SECTION_6),
            Target::AtMost(21_500.0),
            |rows: &[CrowdRow]| largest(of_plain(rows, |row| row.sent.into())),
        ),
        Claim::printed(
            "half",
            "% of the packets that are resends, the most",
            quote("never needs to devote more than about half the bandwidth", SECTION_6),
            Target::AtMost(50.0),
            5.0,
            |rows: &[CrowdRow]| largest(of_plain(rows, CrowdRow::resent_percent)),
        ),
        Claim::shape(
            "tree",
            "resends to 100 receivers on a tree, over those on the flat one",
            quote("For BMTP this topology is a worst case", SECTION_6),
            Target::AtMost(0.9),
            |rows: &[CrowdRow]| {
                let resends = |shape| at(rows, shape, ON_TREE, |row| row.resent.into());
                resends(TREE).over(resends(PLAIN))
            },
        ),
        Claim::printed(
            "interval",
            "seconds from when a packet may be requested to its first request, 1000 receivers",
            quote("This comes out to 2.5 seconds", SECTION_6),
            Target::Equal(2.5),
            0.75,
            |rows: &[CrowdRow]| at(rows, PLAIN, MOST, |row| row.seconds_to_nak),
        ),
    ]
}

pub(crate) const DISPERSED: Experiment = Experiment {
    id: "bm.ida",
    paper: "BMTP, section 7",
    what: "The runs of bm.fig5 with Rabin's information dispersal: each packet is a random sum of the 5 \
           packets of its group, over GF(256), and a request is answered with another one.",
    sweep: &SWEEP,
    claims: || {
        vec![
            Claim::printed(
                "resends",
                "% of the packets that are resends, 1000 receivers",
                quote("results in about 28% re-sends with 1000 receivers", SECTION_7),
                Target::Equal(28.0),
                3.0,
                |rows: &[CrowdRow]| at(rows, DISPERSAL, MOST, CrowdRow::resent_percent),
            ),
            Claim::printed(
                "without",
                "the same without dispersal",
                quote("rather than the 50% without IDA", SECTION_7),
                Target::Equal(50.0),
                5.0,
                |rows: &[CrowdRow]| at(rows, PLAIN, MOST, CrowdRow::resent_percent),
            ),
            Claim::identity(
                "missed",
                "% of the extra pieces that one of 50 receivers misses, at 1 % of losses: 1 - 0.99^50, \
                 of which the paper prints 60",
                Target::Equal(60.0),
                1.0,
                |_: &[CrowdRow]| 100.0 * (1.0 - 0.99_f64.powi(50)),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

pub(crate) const ONCE: Experiment = Experiment {
    id: "bm.once",
    paper: "BMTP, abstract",
    what: "The runs of bm.fig5 without dispersal: how many packets were sent more than twice.",
    sweep: &SWEEP,
    claims: || {
        vec![
            Claim::shape(
                "twice",
                "% of the packets that are sent more than twice, the most",
                quote("rarely sends any data more than twice", "abstract"),
                Target::AtMost(15.0),
                |rows: &[CrowdRow]| largest(of_plain(rows, |row| row.more_percent)),
            ),
            Claim::shape(
                "once",
                "of those that are sent again, % that are sent more than twice, the most",
                quote("usually avoids re-sending any one lost packet more than once", "section 9"),
                Target::AtMost(50.0),
                |rows: &[CrowdRow]| {
                    largest(of_plain(rows, |row| 100.0 * row.more_percent / row.twice_percent))
                },
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

const SECTION_6: &str = "section 6";
const SECTION_7: &str = "section 7";

fn figure(rows: &[CrowdRow]) -> Exhibit {
    let curve = |label: &str, repair: &str, number: fn(&CrowdRow) -> f64| {
        let mut receivers = rows.distinct(|row| row.receivers);
        receivers.sort_unstable();
        receivers.retain(|&receivers| at(rows, repair, receivers, number).value.is_finite());
        let point = |receivers: u32| {
            chart::Point::estimate(receivers.into(), at(rows, repair, receivers, number))
        };
        Series::new(label, receivers.into_iter().map(point))
    };
    Exhibit::Chart(Chart {
        name: "",
        title: "Packets of 500 s against the number of receivers".into(),
        x: Axis::logarithmic("receivers"),
        y: Axis::linear("packets"),
        panels: Panel::only(vec![
            curve("all packets", PLAIN, |row| row.sent.into()),
            curve("resends", PLAIN, |row| row.resent.into()),
            curve("resends with dispersal", DISPERSAL, |row| row.resent.into()),
            curve("resends on a tree", TREE, |row| row.resent.into()),
            Series::printed_curve("paper: all packets", [(1.0, 20_000.0), (1_000.0, 20_000.0)])
                .in_color_of("all packets"),
            Series::printed("paper: resends", [(1_000.0, 10_000.0)]).in_color_of("resends"),
            Series::printed("paper: resends with dispersal", [(1_000.0, 5_600.0)])
                .in_color_of("resends with dispersal"),
        ]),
    })
}
