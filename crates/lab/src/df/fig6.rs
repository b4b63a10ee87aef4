//! `df.fig6`: the prototype's file over the real protocol, on one layer and on four.

use crate::chart::{Axis, Chart, Exhibit, Series};
use crate::claim::{Claim, Printed};
use crate::experiment::{Case, Experiment, Kind};
use crate::scene::{Inefficiency, Scene};
use crate::session::Session;
use crate::statistics::{largest, mean};
use crate::table::{Row, Table, row};
use fontana_fec::lt::Lt;
use fontana_fec::tornado::Tornado;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{Instant, SubscriptionLimits, TransmissionSchedule, presets};
use fontana_sim::{LinkConfig, LossModel};
use fontana_wire::{CongestionControl, LayerRates};
use std::sync::Arc;
use std::time::Duration;

/// Packets of 500 bytes, 8 264 of them after stretching by 2.
const SYMBOL: u16 = 500;
const SOURCE_SYMBOLS: u32 = 4_132;
/// The paper's base layer has 64 to 512 kbit/s.
const BASE: u32 = 8_000;
const LAYERS: u8 = 4;
const LIMIT: Duration = Duration::from_secs(4 * 3_600);
/// Percent, of independent losses.
const LOSSES: [u32; 8] = [0, 10, 20, 30, 40, 50, 60, 70];
const CODES: [&str; 3] = ["tornado", "lt", "raptorq"];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.fig6",
    paper: "digital fountain, figure 6",
    what: "2 MB in 4 132 packets of 500 bytes, with Tornado Z (8 264 packets) and, beside it, LT and \
           RaptorQ; on one layer, and on four of rates 1, 1, 2, 4 with RLC. The real sender and 24 \
           receivers (quick: 6) for each loss, on ids, each from another moment on, on four layers behind \
           bottlenecks of 1.2 to 9 times the base layer. The manifest is known beforehand, as the \
           prototype's control information was.",
    kind: Kind::Counted,
    columns: &["layers", "code", "loss", "eta", "eta_c", "eta_d", "worst_eta_d"],
    cases: |_| (2 * CODES.len() * LOSSES.len()) as u32,
    run: |case| receive(case).into_iter().collect(),
    claims,
    exhibits,
};

fn scheme(code: &str) -> FecScheme {
    match code {
        "tornado" => {
            FecScheme::Tornado { max_source_block_length: SOURCE_SYMBOLS, code: Tornado::Z }
        }
        "lt" => FecScheme::Lt {
            max_source_block_length: SOURCE_SYMBOLS,
            code: Lt::fast(SOURCE_SYMBOLS, 0),
        },
        _ => FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 },
    }
}

fn receive(case: &Case) -> Option<Row> {
    let (index, losses) = (case.index as usize, LOSSES.len());
    let loss = LOSSES[index % losses];
    let code = CODES[index / losses % CODES.len()];
    let is_layered = index / losses / CODES.len() == 1;
    let transfer_length = u64::from(SOURCE_SYMBOLS) * u64::from(SYMBOL);
    let oti = Oti { transfer_length, symbol_size: SYMBOL, scheme: scheme(code) };
    let mut random = case.stream(0);
    let whole = u64::from(BASE) << (LAYERS - 1);
    let mut session = Session::new(&[oti], whole, random.next_u64())?;
    session.manifest_is_known = true;
    if is_layered {
        let layers = LayerRates::geometric(BASE, 512, LAYERS).ok()?;
        session = session.with_congestion(CongestionControl::Rlc(presets::rlc(layers)));
        session.schedule = TransmissionSchedule::Cumulative;
    }
    let model = LossModel::bernoulli(f64::from(loss) / 100.0);
    let receivers = case.scale.pick(6, 24);
    let link = |random: &mut fontana_proto::SplitMix64| {
        let access = Scene::access().with_loss(model.clone());
        let tenths = u64::from(12 + random.below(79));
        let rate = u64::from(BASE) * tenths / 10;
        Arc::new(if is_layered {
            let queue = Duration::from_millis(200);
            let narrow = LinkConfig::bottleneck(rate, queue, access.delay);
            LinkConfig { graft: access.graft, prune: access.prune, ..narrow }
                .with_loss(model.clone())
        } else {
            access
        })
    };
    let links = (0..receivers).map(|_| link(&mut random)).collect();
    let mut scene = Scene::new(random.next_u64(), 1, links);
    scene.send(0, &session, 0)?;
    // A circuit breaker would leave at such losses.
    let limits = SubscriptionLimits { breaker: None, ..SubscriptionLimits::default() };
    for place in 0..receivers as usize {
        let start = Duration::from_millis(u64::from(random.below(100_000)));
        scene.listen(place, session.receiver(limits), session.jobs(), Instant::ZERO + start)?;
    }
    if !scene.until_all_left(LIMIT)? {
        return None;
    }
    let found: Vec<_> = scene
        .all_stats()
        .iter()
        .map(|stats| Inefficiency::of(stats, session.source_symbols()))
        .collect();
    let of = |which: fn(&Inefficiency) -> f64| found.iter().map(which).collect::<Vec<_>>();
    let distinctness = of(|found| found.distinctness);
    Some(row![
        if is_layered { u32::from(LAYERS) } else { 1 },
        code,
        loss,
        mean(&of(|found| found.reception)),
        mean(&of(|found| found.decoding)),
        mean(&distinctness),
        largest(distinctness),
    ])
}

fn at(table: &Table, column: &str, layers: u32, code: &'static str, loss: u32) -> f64 {
    table.number(column, &[("layers", layers.into()), ("code", code.into()), ("loss", loss.into())])
}

fn claims() -> Vec<Claim> {
    let below_50 = || LOSSES.into_iter().filter(|&loss| loss < 50);
    let all = |column: &'static str, layers, code| {
        move |table: &Table| {
            largest(LOSSES.into_iter().map(|loss| at(table, column, layers, code, loss)))
        }
    };
    vec![
        Claim::new(
            "single",
            "one layer, losses below 50 %: the distinctness inefficiency is almost always 1 (largest mean)",
            Printed::Equal(1.0),
            0.02,
            move |table| largest(below_50().map(|loss| at(table, "eta_d", 1, "tornado", loss))),
        ),
        Claim::new(
            "eta",
            "one layer, losses below 50 %: the reception inefficiency is roughly 1.07 (mean)",
            Printed::Equal(1.07),
            0.03,
            move |table| {
                mean(
                    &below_50()
                        .map(|loss| at(table, "eta", 1, "tornado", loss))
                        .collect::<Vec<_>>(),
                )
            },
        ),
        Claim::new(
            "half",
            "one layer, losses approaching 50 %: the reception inefficiency is generally below 1.4",
            Printed::AtMost(1.4),
            0.0,
            |table| at(table, "eta", 1, "tornado", 50),
        ),
        Claim::new(
            "layers",
            "the use of several layers increases the distinctness inefficiency: by how much at most, for \
             losses below 50 %",
            Printed::AtLeast(0.0),
            0.0,
            move |table| {
                let eta_d = |layers, loss| at(table, "eta_d", layers, "tornado", loss);
                largest(below_50().map(|loss| eta_d(4, loss) - eta_d(1, loss)))
            },
        ),
        Claim::new(
            "lt",
            "the cost can be mitigated with LT codes: distinctness inefficiency on four layers, largest",
            Printed::Equal(1.0),
            0.0005,
            all("worst_eta_d", 4, "lt"),
        ),
        Claim::new(
            "raptorq",
            "the same with RaptorQ",
            Printed::Equal(1.0),
            0.0005,
            all("worst_eta_d", 4, "raptorq"),
        ),
    ]
}

fn exhibits(table: &Table) -> Vec<Exhibit> {
    let chart = |name, column, title: &str| {
        let series = [1_u32, 4].into_iter().flat_map(|layers| {
            CODES.map(|code| {
                let of = [("layers", layers.into()), ("code", code.into())];
                Series::new(format!("{code}, {layers}"), table.points("loss", column, &of))
            })
        });
        Exhibit::Chart(Chart {
            name,
            title: format!("{title}, by code and number of layers"),
            x: Axis::linear("loss, per cent"),
            y: Axis::linear("inefficiency"),
            series: series.collect(),
        })
    };
    vec![
        chart("eta", "eta", "Reception inefficiency"),
        chart("distinctness", "eta_d", "Distinctness inefficiency"),
    ]
}
