//! `fo.eta`: packets that a receiver needs, for all sizes, losses, numbers of mirrors and times of
//! joining, and whether a symbol arrives twice.

use super::churn::{self, Churn};
use crate::chart::{Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::scene::{Inefficiency, Scene};
use crate::session::Session;
use crate::statistics::{largest, mean};
use fontana_proto::{Instant, SubscriptionLimits};
use fontana_sim::LossModel;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

const SIZES: [u64; 5] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000];
const QUICK_SIZES: u32 = 2;
/// Source symbols of a block of 10 GB in the 255 blocks of an object.
const LONGEST_BLOCK: f64 = 28_012.0;
/// Per cent.
const LOSSES: [u32; 4] = [0, 1, 10, 50];
const MIRRORS: [u32; 3] = [1, 4, 16];
/// 100 Mbit/s.
const RATE: u64 = 12_500_000;
const LIMIT: Duration = Duration::from_secs(3_600);
/// The last case: levels that change permanently.
const CHURNING: &str = "churn";
const JOINING: &str = "join";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fo.eta",
    paper: "beyond the papers",
    what: "The default profile (RaptorQ, even progress) at 100 Mbit/s from each of 1, 4 and 16 uncoordinated \
           mirrors: 1 MB to 10 GB (quick: to 10 MB), independent losses of 0 to 50 %, four receivers that \
           join at any time within the first 10 s and know the manifest. Last, a session of four layers from \
           four mirrors, one of which starts again, and eight receivers that change their level about ten \
           times a second, one of which starts again.",
    sweep: &SweepOf {
        name: "fo.eta",
        kind: Kind::Counted,
        cases: |scale| points(scale) + 1,
        run: |case| {
            let is_last = case.index == points(case.scale);
            let row = if is_last { churning(case) } else { receive(case) };
            row.into_iter().collect()
        },
    },
    claims,
    exhibits: |table| {
        let rows: Vec<Receivers> = table.read().unwrap_or_default();
        let series = rows.distinct(|row| row.bytes).into_iter().map(|bytes| {
            let is = |row: &Receivers| row.joins() && row.mirrors == 1 && row.bytes == bytes;
            let points = rows.points(is, |row| (row.loss.into(), row.worst_eta));
            Series::new(format!("{} MB", bytes / 1_000_000), points)
        });
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "The worst of four receivers of one sender".into(),
            x: Axis::linear("loss (%)"),
            y: Axis::linear("reception inefficiency"),
            panels: Panel::only(series.filter(|series| !series.points.is_empty()).collect()),
        })]
    },
};

fn points(scale: Scale) -> u32 {
    scale.pick(QUICK_SIZES, SIZES.len() as u32) * (LOSSES.len() * MIRRORS.len()) as u32
}

/// The receivers of a session.
#[derive(Serialize, Deserialize)]
struct Receivers {
    setting: String,
    bytes: u64,
    /// Per cent.
    loss: u32,
    mirrors: u32,
    eta: f64,
    worst_eta: f64,
    worst_eta_d: f64,
}

impl Receivers {
    fn joins(&self) -> bool {
        self.setting == JOINING
    }
}

fn receive(case: &Case) -> Option<Receivers> {
    let index = case.index as usize;
    let mirrors = MIRRORS[index % MIRRORS.len()];
    let loss = LOSSES[index / MIRRORS.len() % LOSSES.len()];
    let bytes = *SIZES.get(index / MIRRORS.len() / LOSSES.len())?;
    let mut random = case.stream(0);
    let session = Session::raptorq(bytes, RATE, random.next_u64())?;
    let session = Session { manifest_is_known: true, ..session };
    let model = LossModel::bernoulli(f64::from(loss) / 100.0);
    let link = Arc::new(Scene::access().with_loss(model));
    let mut scene = Scene::new(random.next_u64(), mirrors, vec![link; 4]);
    for place in 0..mirrors {
        scene.send(place as usize, &session, place.into())?;
    }
    for place in 0..scene.receivers.len() {
        let start = Instant::ZERO + Duration::from_millis(u64::from(random.below(10_000)));
        let receiver = session.receiver(SubscriptionLimits::default());
        scene.listen(place, receiver, session.runner(), start)?;
    }
    if !scene.until_all_left(LIMIT)? {
        return None;
    }
    Some(summary(&scene, &session, (JOINING, bytes, loss, mirrors)))
}

fn summary(
    scene: &Scene,
    session: &Session,
    (setting, bytes, loss, mirrors): (&str, u64, u32, u32),
) -> Receivers {
    let of = |stats| Inefficiency::of(stats, session.source_symbols());
    let found: Vec<_> = scene.all_stats().iter().map(of).collect();
    let etas: Vec<f64> = found.iter().map(|found| found.reception).collect();
    let worst_eta_d = largest(found.iter().map(|found| found.distinctness));
    let (setting, eta, worst_eta) = (setting.into(), mean(&etas), largest(etas));
    Receivers { setting, bytes, loss, mirrors, eta, worst_eta, worst_eta_d }
}

fn churning(case: &Case) -> Option<Receivers> {
    let Churn { scene, session } = churn::play(case.seed, case.stream(0).next_u64())?;
    let bytes = session.manifest.transfer_length();
    Some(summary(&scene, &session, (CHURNING, bytes, churn::LOSS_PERCENT, churn::MIRRORS)))
}

fn claims() -> Vec<Claim> {
    let worst = |bytes: u64, mirrors: u32| {
        move |rows: &[Receivers]| {
            let is = |row: &Receivers| row.joins() && row.bytes == bytes && row.mirrors == mirrors;
            largest(rows.numbers(is, |row| row.worst_eta))
        }
    };
    vec![
        Claim::own(
            "10MB",
            "10 MB from one sender: all packets that the worst receiver hears, over k, at any loss (\
             1 % for control packets, 0.5 % for the code)",
            Target::AtMost(1.015),
            0.0,
            worst(SIZES[1], 1),
        ),
        Claim::own(
            "any size",
            "any size from 10 MB on, from one sender: the slowest of more blocks is slower, at a loss of 50 % \
             and 72 blocks by 2 %",
            Target::AtMost(1.03),
            0.0,
            |rows: &[Receivers]| {
                let is = |row: &Receivers| row.joins() && row.mirrors == 1 && row.bytes >= SIZES[1];
                largest(rows.numbers(is, |row| row.worst_eta))
            },
        ),
        Claim::own(
            "1MB",
            "the same for 1 MB, 715 packets, while a head comes once in 178: a receiver that loses the first \
             one waits for the second",
            Target::AtMost(1.75),
            0.0,
            worst(SIZES[0], 1),
        ),
        Claim::own(
            "mirrors",
            "10 MB from 16 mirrors, which send as much before their head has come",
            Target::AtMost(1.1),
            0.0,
            worst(SIZES[1], 16),
        ),
        Claim::own(
            "distinct",
            "distinctness inefficiency from several mirrors, mean of the worst receivers of all sizes and \
             losses: nothing comes twice, but for what mirrors that begin anywhere among the 2^24 symbols \
             of a block have in common by chance, which is expected to be k/2^25 at most",
            Target::Equal(1.0),
            LONGEST_BLOCK / 2_f64.powi(25),
            |rows: &[Receivers]| {
                let is = |row: &Receivers| row.joins() && row.mirrors > 1;
                mean(&rows.numbers(is, |row| row.worst_eta_d))
            },
        ),
        Claim::own(
            "churn",
            "the same with four layers, levels that change all the time, four mirrors, one restart of a \
             sender and one of a receiver",
            Target::Equal(1.0),
            0.0005,
            |rows: &[Receivers]| rows.number(|row| row.setting == CHURNING, |row| row.worst_eta_d),
        ),
    ]
}
