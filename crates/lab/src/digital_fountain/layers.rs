//! `df.layers`: layers with synchronization points and sender bursts.

use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::scene::Scene;
use crate::session::{SYMBOL_BYTES, Session};
use crate::statistics::largest;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{Instant, SubscriptionLimits, presets};
use fontana_sim::LinkConfig;
use fontana_wire::{CongestionControl, LayerRates};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// 1 Mbit/s, doubled from level to level. The slowest bottleneck's queue has room for six packets:
/// with one or two, it drops regular traffic below its rate.
pub(super) const BASE: u32 = 125_000;
pub(super) const LAYERS: u8 = 6;
/// Each bottleneck is half way between two levels.
const LEVELS: [u32; 5] = [1, 2, 3, 4, 5];
/// Seconds until receivers have settled: 100 times what they need to reach their level.
const SETTLED: u64 = 120;
/// Readings of a second. A step to a level that is too high lasts for some 300 ms, and begins at a
/// synchronization point, which is at a whole quarter of a second.
pub(super) const READINGS: u64 = 10;
/// An object that no receiver completes during the run.
const ENDLESS_SYMBOLS: u64 = 5_000_000;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.layers",
    paper: "digital fountain, section VII-A",
    what: "One session of six layers (levels of 1, 2, 4, ... Mbit/s) with RLC's synchronization points and \
           bursts, and five receivers behind bottlenecks half way between two levels, with queues of 50 ms: \
           at which level each is, read ten times a second from 120 s to 1 200 s (quick: 480 s).",
    sweep: &SweepOf {
        name: "df.layers",
        kind: Kind::Counted,
        cases: |_| 1,
        run: |case| settle(case).unwrap_or_default(),
    },
    claims: || {
        vec![
            Claim::own(
                "settles",
                "a receiver behind any bottleneck settles at the right level: receivers whose usual level \
                 is another one",
                Target::Equal(0.0),
                0.0,
                |rows: &[Settled]| {
                    if rows.is_empty() {
                        return f64::NAN;
                    }
                    rows.iter().filter(|row| row.right_level != row.usual_level).count() as f64
                },
            ),
            Claim::shape(
                "above",
                "sender bursts: largest share of the time above the right level",
                quote("Instead of explicit join attempts by receivers", "section VII-A"),
                Target::AtMost(0.1),
                |rows: &[Settled]| largest(rows.iter().map(|row| row.share_above)),
            ),
            Claim::identity(
                "feedback",
                "no packet flows from receivers to the sender: they have no way to send one",
                Target::Equal(0.0),
                0.0,
                |rows: &[Settled]| largest(rows.iter().map(|row| row.feedback_packets as f64)),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

/// The levels of a receiver.
#[derive(Serialize, Deserialize)]
struct Settled {
    bottleneck_kbits: u64,
    right_level: f64,
    /// The level at which it is for the longest time.
    usual_level: f64,
    share_at_right: f64,
    share_above: f64,
    dropped: f64,
    feedback_packets: u64,
}

/// A session that lasts for all of a run.
pub(super) fn session(case: &Case) -> Option<Session> {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 50_000 });
    let transfer_length = ENDLESS_SYMBOLS * u64::from(SYMBOL_BYTES);
    let oti = Oti { transfer_length, symbol_size: SYMBOL_BYTES, scheme };
    let layers = LayerRates::geometric(BASE, 512, LAYERS).ok()?;
    let session = Session::new(&[oti], 1, case.seed)?;
    Some(session.with_congestion(CongestionControl::Rlc(presets::rlc(layers))))
}

fn settle(case: &Case) -> Option<Vec<Settled>> {
    let session = session(case)?;
    let rate = |level: u32| u64::from(BASE) * (1 << level) * 3 / 4;
    let link = |level: u32| {
        let access = Scene::access();
        // Shorter than a burst, so that a burst fills it.
        let queue = Duration::from_millis(50);
        let narrow = LinkConfig::bottleneck(rate(level), queue, access.delay);
        Arc::new(LinkConfig { graft: access.graft, prune: access.prune, ..narrow })
    };
    let mut scene = Scene::new(case.stream(0).next_u64(), 1, LEVELS.map(link).into());
    scene.send(0, &session, 0)?;
    for place in 0..LEVELS.len() {
        let receiver = session.receiver(SubscriptionLimits::default());
        scene.listen(place, receiver, session.runner(), Instant::ZERO)?;
    }
    let end = u64::from(case.scale.pick(480, 1_200));
    let mut times_at = vec![[0_u32; LAYERS as usize + 1]; LEVELS.len()];
    for reading in SETTLED * READINGS..end * READINGS {
        let at = Duration::from_millis(1_000 / READINGS * reading);
        scene.run.run_until(Instant::ZERO + at).ok()?;
        for (&node, at) in scene.receivers.iter().zip(&mut times_at) {
            at[scene.run.joined(node).len().min(LAYERS.into())] += 1;
        }
    }
    let sent = scene.sent(0)?;
    let total = ((end - SETTLED) * READINGS) as f64;
    let row_of = |(place, at): (usize, &[u32; LAYERS as usize + 1])| {
        let right = LEVELS[place];
        let usual = (0_u32..).zip(at).max_by_key(|&(_, times)| times)?.0;
        let above: u32 = at.iter().skip(right as usize + 1).sum();
        let stats = scene.run.link(*scene.access.get(place)?)?.stats();
        Some(Settled {
            bottleneck_kbits: rate(right) * 8 / 1_000,
            right_level: right.into(),
            usual_level: usual.into(),
            share_at_right: f64::from(at[right as usize]) / total,
            share_above: f64::from(above) / total,
            dropped: stats.queue_drops as f64 / stats.offered as f64,
            feedback_packets: scene.run.stats().sent - sent,
        })
    };
    times_at.iter().enumerate().map(row_of).collect()
}
