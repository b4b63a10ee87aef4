//! Orders of a code with a fixed stretch factor on layers, for receivers of any number of layers,
//! at any loss and with any time of joining: the reason why `speed` is the default profile of
//! `fontana_proto::Profile`. FCAST's figures have one receiver, from the start, with one loss
//! model.

use super::schemes::{BASE_PACKETS, SCHEMES, bursts};
use super::transfer::receive;
use crate::scene::{Inefficiency, Scene};
use crate::session::{SYMBOL_BYTES, Session};
use crate::statistics::{largest, mean};
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{
    Fcast, Instant, ObjectOrder, Profile, SplitMix64, SubscriptionLimits, SymbolOrganization,
    TransmissionSchedule,
};
use fontana_sim::LossModel;
use fontana_wire::{CongestionControl, LayerRates};
use std::sync::Arc;
use std::time::Duration;

const LAYERS: u8 = 4;
/// 0.4 Mbit/s, doubled from level to level.
const BASE: u32 = 50_000;
const SYMBOLS: u64 = 4_000;
const LOSSES: [f64; 4] = [0.0, 0.1, 0.3, 0.5];
const LIMIT: Duration = Duration::from_secs(36_000);

const REED_SOLOMON: FecScheme = FecScheme::ReedSolomon(ReedSolomon {
    code: ReedSolomonCode::Rfc5510,
    max_source_block_length: 128,
    max_encoding_symbols: 255,
});

fn tornado(stretch_factor: u8) -> FecScheme {
    let code = TornadoCode::new(stretch_factor, 0).unwrap();
    FecScheme::Tornado(Tornado { max_source_block_length: 2_000, code })
}

const fn segments(object_order: ObjectOrder) -> TransmissionSchedule {
    TransmissionSchedule::Fcast(Fcast {
        organization: SymbolOrganization::Segments,
        object_order,
        stretch_factor: 4,
        anticipated_layers: 0,
    })
}

const ORDERS: [(&str, TransmissionSchedule); 5] = [
    ("even", TransmissionSchedule::EVEN),
    ("random", TransmissionSchedule::Random),
    ("cumulative", TransmissionSchedule::Cumulative),
    ("m/rand/org_2", segments(ObjectOrder::Random)),
    ("m/p_rand(8)/org_2", segments(ObjectOrder::PartlyRandom { one_in: 8 })),
];

/// Packets that receivers of one to all layers hear until they are done, over k: of each of them.
/// They begin at any time within ten seconds.
fn etas(scheme: FecScheme, schedule: TransmissionSchedule, loss: f64, seed: u64) -> Vec<f64> {
    let transfer_length = SYMBOLS * u64::from(SYMBOL_BYTES);
    let oti = Oti { transfer_length, symbol_size: SYMBOL_BYTES, scheme };
    let layers = LayerRates::geometric(BASE, 512, LAYERS).unwrap();
    let session = Session::new(&[oti], 1, seed).unwrap();
    let session = session.with_congestion(CongestionControl::FixedLayers(layers));
    let session = Session { schedule, manifest_is_known: true, ..session };
    let link = Arc::new(Scene::access().with_loss(LossModel::bernoulli(loss)));
    let mut scene = Scene::new(seed, 1, vec![link; LAYERS.into()]);
    scene.send(0, &session, 0).unwrap();
    let mut random = SplitMix64::new(seed, 1);
    for (place, max_channels) in (1..=LAYERS).enumerate() {
        let limits =
            SubscriptionLimits { max_channels, breaker: None, ..SubscriptionLimits::default() };
        let start = Instant::ZERO + Duration::from_millis(u64::from(random.below(10_000)));
        scene.listen(place, session.receiver(limits), session.runner(), start).unwrap();
    }
    assert!(scene.until_all_left(LIMIT).unwrap());
    let of = |stats| Inefficiency::of(stats, session.source_symbols()).reception;
    scene.all_stats().iter().map(of).collect()
}

/// Of each order, mean and worst over all codes and losses.
fn sweep(seeds: u64) -> Vec<(f64, f64)> {
    let mut all = vec![Vec::new(); ORDERS.len()];
    let codes = [("rs", REED_SOLOMON), ("tornado 2", tornado(2)), ("tornado 4", tornado(4))];
    for (code, scheme) in codes {
        for loss in LOSSES {
            print!("{code:9} {loss:.1}:");
            for ((name, schedule), all) in ORDERS.iter().zip(&mut all) {
                let found: Vec<f64> =
                    (0..seeds).flat_map(|seed| etas(scheme, *schedule, loss, seed)).collect();
                print!("  {name} {:.2}, {:.2}", mean(&found), largest(found.iter().copied()));
                all.extend(found);
            }
            println!();
        }
    }
    all.iter().map(|etas| (mean(etas), largest(etas.iter().copied()))).collect()
}

#[test]
fn the_default_profiles_order_takes_least_packets() {
    let found = sweep(1);
    println!("{found:.3?}");
    for scheme in [REED_SOLOMON, tornado(2)] {
        assert_eq!(Profile::default().schedule(scheme, LAYERS), ORDERS[0].1);
    }
    for other in &found[1..] {
        assert!(found[0].0 < other.0 && found[0].1 < other.1, "{found:?}");
    }
}

/// The figures of `docs/schedules.md`:
/// `cargo test -p fontana-lab --lib -- --ignored --nocapture orders::`
#[test]
#[ignore = "a measurement"]
fn orders_over_layers() {
    for ((name, _), (mean, worst)) in ORDERS.iter().zip(sweep(5)) {
        println!("{name}: {mean:.2}, worst {worst:.2}");
    }
}

/// The same orders in FCAST's own setting.
#[test]
#[ignore = "a measurement"]
fn orders_under_rlc() {
    let scheme = SCHEMES.iter().find(|scheme| scheme.name == "m/rand/org_2").unwrap();
    for (losses, loss) in [("no losses", LossModel::None), ("bursts", bursts())] {
        for (name, schedule) in ORDERS {
            let run = |seed| {
                let session = Session { schedule, ..scheme.session(BASE_PACKETS, seed).unwrap() };
                receive(&session, loss.clone(), u64::MAX).unwrap()
            };
            let found: Vec<_> = (0..40).map(run).collect();
            let seconds: Vec<f64> = found.iter().map(|found| found.seconds).collect();
            let bytes: Vec<f64> = found.iter().map(|found| found.peak_bytes as f64).collect();
            println!("{losses}, {name}: {:.2} s, {:.0} bytes", mean(&seconds), mean(&bytes));
        }
    }
}
