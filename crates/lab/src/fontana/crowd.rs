//! `fo.crowd`: one sender, and from 1 to 100 000 receivers.

use crate::chart::{Axis, Chart, Exhibit, Series};
use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, Scale};
use crate::scene::{Inefficiency, Scene};
use crate::session::Session;
use crate::statistics::{largest, mean};
use crate::table::{TableRow, row};
use fontana_proto::{Instant, SubscriptionLimits};
use fontana_sim::LossModel;
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
    kind: Kind::Counted,
    columns: &[
        "receivers",
        "manifest",
        "complete",
        "mean_inefficiency",
        "worst_inefficiency",
        "sender_packets",
        "feedback_packets",
        "events",
        "deliveries",
    ],
    cases: |scale| 2 * crowds(scale),
    run: |case| crowd(case).into_iter().collect(),
    claims,
    exhibits: |table| {
        let series = ["beforehand", "in the session"].map(|manifest| {
            let of = [("manifest", manifest.into())];
            Series::new(manifest, table.points("receivers", "worst_inefficiency", &of))
        });
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "The worst receiver of a crowd".into(),
            x: Axis::logarithmic("receivers"),
            y: Axis::linear("reception inefficiency"),
            series: series.into(),
        })]
    },
};

fn crowds(scale: Scale) -> u32 {
    scale.pick(QUICK_CROWDS, CROWDS.len() as u32)
}

fn crowd(case: &Case) -> Option<TableRow> {
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
    Some(row![
        receivers,
        if is_known { "beforehand" } else { "in the session" },
        u32::from(complete),
        mean(&etas),
        largest(etas.iter().copied()),
        sent,
        // Packets that were not sent by the sender.
        stats.sent - by_sender,
        stats.events,
        stats.deliveries,
    ])
}

fn claims() -> Vec<Claim> {
    let most = |column: &'static str, manifest: &'static str| {
        move |table: &crate::table::Table| {
            largest(table.numbers(column, &[("manifest", manifest.into())]))
        }
    };
    vec![
        Claim::own(
            "complete",
            "every receiver of every crowd completes",
            Target::Equal(1.0),
            0.0,
            |table| -largest(table.numbers("complete", &[]).into_iter().map(|c| -c)),
        ),
        Claim::identity(
            "feedback",
            "packets that receivers send: they have no way to send one",
            Target::Equal(0.0),
            0.0,
            |table| largest(table.numbers("feedback_packets", &[])),
        ),
        Claim::identity(
            "work",
            "the sender's work does not depend on the number of receivers: most packets sent in 2 s over \
             fewest",
            Target::Equal(1.0),
            0.0,
            |table| {
                let sent = table.numbers("sender_packets", &[]);
                largest(sent.iter().copied()) / -largest(sent.iter().map(|sent| -sent))
            },
        ),
        Claim::own(
            "worst",
            "all packets that the worst receiver hears until it is done, over k, if it has the manifest \
             (1 % for control packets, and 3 % for RaptorQ and uneven luck)",
            Target::AtMost(1.04),
            0.0,
            most("worst_inefficiency", "beforehand"),
        ),
        Claim::own(
            "heard",
            "the same if it has to hear the manifest first, which comes once in 372 packets, while the \
             object has 749 (five manifests lost one after the other)",
            Target::AtMost(2.7),
            0.0,
            most("worst_inefficiency", "in the session"),
        ),
    ]
}
