//! `df.requirements`: the seven properties of an ideal protocol, as checks on the real one.

use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::fontana::churn::{self, Churn};
use crate::row::Rows;
use crate::scene::{Inefficiency, Scene};
use crate::session::Session;
use crate::statistics::largest;
use crate::swarm::{Swarm, play};
use fontana_proto::{Instant, SubscriptionLimits};
use fontana_sim::{LinkConfig, LossModel};
use fontana_wire::{CongestionControl, LayerRates};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

const BYTES: u64 = 5_000_000;
/// 20 Mbit/s.
const RATE: u64 = 2_500_000;
const LIMIT: Duration = Duration::from_secs(3_600);

/// A requirement: its name, its measurement, its bound and the unit of the number.
const PROPERTIES: [Property; 7] = [
    Property {
        name: "scalable",
        text: "packets that the sender has sent after 2 s for 300 receivers, over those for one: it \
               cannot know of them",
        words: None,
        most: 1.0,
        measure: scalable,
    },
    Property {
        name: "reliable",
        text: "of runs of the swarm, a third of them on bytes: those with a wrong byte, a false success, or \
               a receiver that does not complete",
        words: Some("An exact copy of the original file is reconstructed"),
        most: 0.0,
        measure: reliable,
    },
    Property {
        name: "reception-efficient",
        text: "packets that the worst of 50 receivers hears, over k, at 10 % loss",
        words: Some("each receiver needs to reconstruct the file is minimal"),
        most: 1.02,
        measure: reception_efficient,
    },
    Property {
        name: "time-efficient",
        text: "of the reception, not of the processing that the paper means (df.table3, df.table4): time from \
               the first packet to the last over that of k packets at the session's rate, without loss, \
               worst of 50 receivers",
        words: None,
        most: 1.05,
        measure: time_efficient,
    },
    Property {
        name: "time-independent",
        text: "packets in both lives of receivers that join at any time, are interrupted in the middle and \
               go on a minute later, over k, worst of 20",
        words: Some("be interrupted and continue the download at a later time"),
        most: 1.05,
        measure: time_independent,
    },
    Property {
        name: "server-independent",
        text: "symbols over different symbols, from four uncoordinated mirrors, one of which starts again, \
               at levels that change all the time",
        words: Some("No coordination between servers should be required for this"),
        most: 1.0005,
        measure: server_independent,
    },
    Property {
        name: "tolerant",
        text: "receivers that do not complete, of ten with losses of 0 to 90 %, and of seven that take from \
               1/64 of the session's rate to all of it",
        words: Some("The protocol should tolerate a heterogeneous population of receivers"),
        most: 0.0,
        measure: tolerant,
    },
];

struct Property {
    name: &'static str,
    text: &'static str,
    /// Words of section II; `None`: the check is another one, or cannot fail.
    words: Option<&'static str>,
    most: f64,
    measure: fn(&Case) -> Option<f64>,
}

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.requirements",
    paper: "digital fountain, section II",
    what: "The properties that section II asks of a protocol, each as a check on the real sender and \
           receivers in simulated networks: 5 MB of RaptorQ at 20 Mbit/s where nothing else is said. The \
           text has no numbers; the bounds are ours.",
    sweep: &SweepOf {
        name: "df.requirements",
        kind: Kind::Counted,
        cases: |_| PROPERTIES.len() as u32,
        run: |case| {
            let row = |property: &Property| Measured::of(property, case);
            PROPERTIES.get(case.index as usize).and_then(row).into_iter().collect()
        },
    },
    claims: || {
        let claim = |property: &Property| {
            let Property { name, text, most, .. } = *property;
            let bound = Target::AtMost(most);
            let measured =
                move |rows: &[Measured]| rows.number(|r| r.property == name, |r| r.measured);
            match property.words {
                Some(words) => {
                    Claim::shape(name, text, quote(words, "section II"), bound, measured)
                }
                None if name == "scalable" => Claim::identity(name, text, bound, 0.0, measured),
                None => Claim::own(name, text, bound, 0.0, measured),
            }
        };
        PROPERTIES.iter().map(claim).collect()
    },
    exhibits: |_| Vec::new(),
};

/// A property, as it was measured.
#[derive(Serialize, Deserialize)]
struct Measured {
    property: String,
    measured: f64,
    at_most: f64,
}

impl Measured {
    fn of(property: &Property, case: &Case) -> Option<Self> {
        let (name, measured) = (property.name.into(), (property.measure)(case)?);
        Some(Self { property: name, measured, at_most: property.most })
    }
}

fn session(case: &Case) -> Option<Session> {
    Some(Session { manifest_is_known: true, ..Session::raptorq(BYTES, RATE, case.seed)? })
}

fn link(loss: f64) -> Arc<LinkConfig> {
    Arc::new(Scene::access().with_loss(LossModel::bernoulli(loss)))
}

/// One sender, and receivers from the beginning.
fn scene(case: &Case, session: &Session, links: Vec<Arc<LinkConfig>>) -> Option<Scene> {
    let mut scene = Scene::new(case.stream(0).next_u64(), 1, links);
    scene.send(0, session, 0)?;
    for place in 0..scene.receivers.len() {
        let receiver = session.receiver(SubscriptionLimits::default());
        scene.listen(place, receiver, session.runner(), Instant::ZERO)?;
    }
    Some(scene)
}

fn scalable(case: &Case) -> Option<f64> {
    let session = session(case)?;
    let sent = |receivers: usize| {
        let mut scene = scene(case, &session, vec![link(0.01); receivers])?;
        scene.run.run_until(Instant::ZERO + Duration::from_secs(2)).ok()?;
        Some(scene.run.stats().sent as f64)
    };
    Some(sent(300)? / sent(1)?)
}

fn reliable(case: &Case) -> Option<f64> {
    let seeds = case.scale.pick(40, 500);
    // Cases already run on several threads.
    let swarm = Swarm { seeds, first_seed: case.seed, threads: NonZeroUsize::MIN };
    Some(play(&swarm, &|_| ()).ok()?.iter().filter(|run| run.outcome.is_err()).count() as f64)
}

fn reception_efficient(case: &Case) -> Option<f64> {
    let session = session(case)?;
    let mut scene = scene(case, &session, vec![link(0.1); 50])?;
    scene.until_all_left(LIMIT)?.then_some(())?;
    let eta = |stats| Inefficiency::of(stats, session.source_symbols()).reception;
    Some(largest(scene.all_stats().iter().map(eta)))
}

fn time_efficient(case: &Case) -> Option<f64> {
    let session = session(case)?;
    let mut scene = scene(case, &session, vec![link(0.0); 50])?;
    scene.until_all_left(LIMIT)?.then_some(())?;
    // Packets that were sent while it was joined: the sender never pauses.
    let sent = |stats: &fontana_proto::ReceiverStats| stats.expected as f64;
    Some(largest(scene.all_stats().iter().map(sent)) / session.source_symbols() as f64)
}

fn time_independent(case: &Case) -> Option<f64> {
    const RECEIVERS: usize = 20;
    let session = Session { is_watched: true, ..session(case)? };
    let mut random = case.stream(1);
    let mut scene = Scene::new(case.stream(0).next_u64(), 1, vec![link(0.05); RECEIVERS]);
    scene.send(0, &session, 0)?;
    let receiver = || session.receiver(SubscriptionLimits::default());
    for place in 0..RECEIVERS {
        let start = Instant::ZERO + Duration::from_millis(u64::from(random.below(3_000)));
        scene.listen(place, receiver(), session.runner(), start)?;
    }
    // By then the first receiver has half of the symbols, and the last one has started.
    scene.run.run_until(Instant::ZERO + Duration::from_millis(1_500)).ok()?;
    let first_runs: Vec<_> = scene.all_stats().iter().map(|stats| stats.session_packets).collect();
    for place in 0..RECEIVERS {
        let runner = scene.crash(place)?;
        let back_at = Instant::ZERO + Duration::from_secs(60);
        scene.listen(place, receiver(), runner, back_at)?;
    }
    scene.until_all_left(LIMIT)?.then_some(())?;
    let both = scene.all_stats().into_iter().zip(first_runs);
    let heard = both.map(|(stats, first)| (stats.session_packets + first) as f64);
    Some(largest(heard) / session.source_symbols() as f64)
}

fn server_independent(case: &Case) -> Option<f64> {
    let Churn { scene, session } = churn::play(case.seed, case.stream(0).next_u64())?;
    let eta_d = |stats| Inefficiency::of(stats, session.source_symbols()).distinctness;
    Some(largest(scene.all_stats().iter().map(eta_d)))
}

fn tolerant(case: &Case) -> Option<f64> {
    let single = session(case)?;
    let losses = (0..10).map(|tenth| link(f64::from(tenth) / 10.0)).collect();
    let mut lossy = scene(case, &single, losses)?;
    let layers = LayerRates::geometric((RATE / 64) as u32, 512, 7).ok()?;
    let layered = single.clone().with_congestion(CongestionControl::FixedLayers(layers));
    let mut slow = Scene::new(case.stream(1).next_u64(), 1, vec![link(0.0); 7]);
    slow.send(0, &layered, 0)?;
    for max_channels in 1..=7 {
        let limits = SubscriptionLimits { max_channels, ..SubscriptionLimits::default() };
        let place = usize::from(max_channels) - 1;
        slow.listen(place, layered.receiver(limits), layered.runner(), Instant::ZERO)?;
    }
    lossy.until_all_left(LIMIT)?;
    slow.until_all_left(LIMIT)?;
    Some((lossy.missing() + slow.missing()) as f64)
}
