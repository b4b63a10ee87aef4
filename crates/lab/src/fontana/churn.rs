//! A layered session with changing levels and restarts.

use crate::scene::Scene;
use crate::session::{SYMBOL_BYTES, Session};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{
    ChannelId, Instant, Level, Membership, PacketSeen, SequenceTracker, SplitMix64, Subscription,
    SubscriptionControl,
};
use fontana_sim::LossModel;
use fontana_wire::{CongestionControl, LayerRates};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const MIRRORS: u32 = 4;
pub(crate) const LOSS_PERCENT: u32 = 5;
const LAYERS: u8 = 4;
/// Bytes per second of the lowest.
const BASE: u32 = 50_000;
const RECEIVERS: usize = 8;
const SOURCE_SYMBOLS: u64 = 10_000;
const LIMIT: Duration = Duration::from_secs(600);

/// A session that has ended.
pub(crate) struct Churn {
    pub(crate) scene: Scene,
    pub(crate) session: Session,
}

/// Runs the session until all receivers are complete. A mirror restarts after 3 s, and a receiver
/// after 2 s with its saved symbols.
pub(crate) fn play(seed: u64, network_seed: u64) -> Option<Churn> {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 4, sub_blocks: 1, alignment: 4 });
    let transfer_length = SOURCE_SYMBOLS * u64::from(SYMBOL_BYTES);
    let oti = Oti { transfer_length, symbol_size: SYMBOL_BYTES, scheme };
    let layers = LayerRates::geometric(BASE, 512, LAYERS).ok()?;
    let session = Session::new(&[oti], 1, seed)?;
    let mut session = session.with_congestion(CongestionControl::FixedLayers(layers));
    (session.is_watched, session.manifest_is_known) = (true, true);
    let loss = LossModel::bernoulli(f64::from(LOSS_PERCENT) / 100.0);
    let link = Arc::new(Scene::access().with_loss(loss));
    let mut scene = Scene::new(network_seed, MIRRORS, vec![link; RECEIVERS]);
    for place in 0..MIRRORS {
        scene.send(place as usize, &session, place.into())?;
    }
    let receiver = |number: u64| {
        let wanderer = Wanderer::new(LAYERS, SplitMix64::new(network_seed, number));
        session.receiver_on(Subscription::Given(Box::new(wanderer)))
    };
    for place in 0..RECEIVERS {
        scene.listen(place, receiver(place as u64), session.runner(), Instant::ZERO)?;
    }
    scene.run.run_until(Instant::ZERO + Duration::from_secs(2)).ok()?;
    let runner = scene.crash(0)?;
    scene.listen(0, receiver(RECEIVERS as u64), runner, scene.run.now())?;
    scene.run.run_until(Instant::ZERO + Duration::from_secs(3)).ok()?;
    scene.run.detach(*scene.senders.last()?)?;
    scene.send(MIRRORS as usize - 1, &session, MIRRORS.into())?;
    scene.until_all_left(LIMIT)?.then_some(Churn { scene, session })
}

/// A subscription control that changes its level at random, about every tenth of a second.
#[derive(Debug)]
struct Wanderer {
    layers: u8,
    wanted: u8,
    joined: u8,
    next: Instant,
    random: SplitMix64,
}

impl Wanderer {
    fn new(layers: u8, random: SplitMix64) -> Self {
        Self { layers, wanted: 1, joined: 0, next: Instant::ZERO, random }
    }

    fn wander(&mut self, now: Instant) {
        if now >= self.next {
            self.wanted = 1 + self.random.below(self.layers.into()) as u8;
            self.next = now + Duration::from_millis(u64::from(self.random.below(200)) + 1);
        }
    }
}

impl SubscriptionControl for Wanderer {
    fn on_packet(&mut self, now: Instant, _packet: &PacketSeen) {
        self.wander(now);
    }

    fn on_timeout(&mut self, now: Instant, _sequence: &mut SequenceTracker) {
        self.wander(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn poll_membership(&mut self) -> Option<Membership> {
        if self.joined < self.wanted {
            self.joined += 1;
            Some(Membership::Join(ChannelId(self.joined - 1)))
        } else if self.joined > self.wanted {
            self.joined -= 1;
            Some(Membership::Leave(ChannelId(self.joined)))
        } else {
            None
        }
    }

    fn level(&self) -> Level {
        Level { channels: self.wanted, rate_bytes_per_second: None }
    }
}
