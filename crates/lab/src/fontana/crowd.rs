//! `fo.crowd`: one sender, and from 1 to 100 000 receivers.

use crate::chart::{Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::scene::{Inefficiency, Scene};
use crate::session::Session;
use crate::statistics::{largest, mean, smallest};
use fontana_proto::{Instant, SubscriptionLimits};
use fontana_sim::LossModel;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

const BYTES: u64 = 1 << 20;
/// 100 Mbit/s.
const RATE: u64 = 12_500_000;
const LOSS: f64 = 0.01;
/// Time at which the sender's packets are counted, for any number of receivers.
const READ_AT: Duration = Duration::from_secs(2);
/// All receivers are complete long before.
const LIMIT: Duration = Duration::from_secs(60);
const CROWDS: [u32; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
const QUICK_CROWDS: u32 = 4;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fo.crowd",
    paper: "digital fountain, section II: scalable",
    what: "1 MB of RaptorQ at 100 Mbit/s to 1 ... 100 000 receivers (quick: 1 000) on a star, each with \
           1 % of independent losses: the real sender and receivers, on ids. Once the receivers get the \
           manifest as everything else, once they have it beforehand. A million of them, with time and \
           memory: cargo bench -p fontana-sim --bench crowd -- star 1000000.",
    sweep: &SweepOf {
        name: "fo.crowd",
        kind: Kind::Counted,
        cases: |scale| 2 * crowds(scale),
        run: |case| crowd(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| {
        let rows: Vec<Crowd> = table.read().unwrap_or_default();
        let series = [BEFOREHAND, IN_THE_SESSION].map(|manifest| {
            let point = |row: &Crowd| (row.receivers.into(), row.worst_inefficiency);
            Series::new(
                format!("manifest {manifest}"),
                rows.points(|row| row.manifest == manifest, point),
            )
        });
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "The worst receiver of a crowd".into(),
            x: Axis::logarithmic("receivers"),
            y: Axis::linear("reception inefficiency"),
            panels: Panel::only(series.into()),
        })]
    },
};

fn crowds(scale: Scale) -> u32 {
    scale.pick(QUICK_CROWDS, CROWDS.len() as u32)
}

/// When receivers get the manifest.
const BEFOREHAND: &str = "beforehand";
const IN_THE_SESSION: &str = "in the session";

/// A session with receivers.
#[derive(Serialize, Deserialize)]
struct Crowd {
    receivers: u32,
    manifest: String,
    /// Whether all receivers are.
    complete: bool,
    mean_inefficiency: f64,
    worst_inefficiency: f64,
    /// Packets that were sent by [`READ_AT`].
    sender_packets: f64,
    feedback_packets: u64,
    events: u64,
    deliveries: u64,
}

fn crowd(case: &Case) -> Option<Crowd> {
    let is_known = case.index.is_multiple_of(2);
    let receivers = *CROWDS.get(case.index as usize / 2)?;
    let session = Session::raptorq(BYTES, RATE, case.seed)?;
    let session = Session { manifest_is_known: is_known, ..session };
    let link = Arc::new(Scene::access().with_loss(LossModel::bernoulli(LOSS)));
    let mut scene = Scene::new(case.stream(0).next_u64(), 1, vec![link; receivers as usize]);
    scene.send(0, &session, 0)?;
    for place in 0..receivers as usize {
        let receiver = session.receiver(SubscriptionLimits::default());
        scene.listen(place, receiver, session.runner(), Instant::ZERO)?;
    }
    scene.run.run_until(Instant::ZERO + READ_AT).ok()?;
    let sent = scene.run.stats().sent;
    let complete = scene.until_all_left(LIMIT)?;
    let of = |stats| Inefficiency::of(stats, session.source_symbols()).reception;
    let etas: Vec<f64> = scene.all_stats().iter().map(of).collect();
    let by_sender = scene.sent(0)?;
    let stats = scene.run.stats();
    Some(Crowd {
        receivers,
        manifest: if is_known { BEFOREHAND } else { IN_THE_SESSION }.into(),
        complete,
        mean_inefficiency: mean(&etas),
        worst_inefficiency: largest(etas),
        sender_packets: sent as f64,
        // Packets that were not sent by the sender.
        feedback_packets: stats.sent - by_sender,
        events: stats.events,
        deliveries: stats.deliveries,
    })
}

fn claims() -> Vec<Claim> {
    let worst = |manifest: &'static str| {
        move |rows: &[Crowd]| {
            largest(rows.numbers(|row| row.manifest == manifest, |row| row.worst_inefficiency))
        }
    };
    vec![
        Claim::own(
            "complete",
            "every receiver of every crowd completes",
            Target::Equal(1.0),
            0.0,
            |rows: &[Crowd]| smallest(rows.iter().map(|row| u8::from(row.complete).into())),
        ),
        Claim::identity(
            "feedback",
            "packets that receivers send: they have no way to send one",
            Target::Equal(0.0),
            0.0,
            |rows: &[Crowd]| largest(rows.iter().map(|row| row.feedback_packets as f64)),
        ),
        Claim::identity(
            "work",
            "the sender's work does not depend on the number of receivers: most packets sent in 2 s over \
             fewest",
            Target::Equal(1.0),
            0.0,
            |rows: &[Crowd]| {
                let sent = || rows.iter().map(|row| row.sender_packets);
                largest(sent()) / smallest(sent())
            },
        ),
        Claim::own(
            "worst",
            "all packets that the worst receiver hears until it is done, over k, if it has the manifest \
             (1 % for control packets, and 3 % for RaptorQ and uneven luck)",
            Target::AtMost(1.04),
            0.0,
            worst(BEFOREHAND),
        ),
        Claim::own(
            "heard",
            "the same if it has to hear the manifest first, which comes once in 372 packets, while the \
             object has 749 (five manifests lost one after the other)",
            Target::AtMost(2.7),
            0.0,
            worst(IN_THE_SESSION),
        ),
    ]
}
