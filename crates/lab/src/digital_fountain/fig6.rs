//! `df.fig6`: the prototype's file over the real protocol, on one layer and on four.

use crate::bytes::{ByteRunner, Originals, Pump};
use crate::chart::{Axis, Chart, Exhibit, Panel, Point as ChartPoint, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::hosts::{self, ReceiverHost, SenderHost, nothing_lost_here};
use crate::scene::{Inefficiency, Scene};
use crate::session::Session;
use crate::statistics::{largest, mean};
use crate::table::Table;
use fontana_fec::codes::lt::{Lt, LtCode};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{FecScheme, Oti};
use fontana_net::thread;
use fontana_proto::{
    Driver, Instant, ReceiverStats, SplitMix64, SubscriptionLimits, TransmissionSchedule, presets,
};
use fontana_sim::{LinkConfig, LossModel};
use fontana_wire::{CongestionControl, LayerRates};
use serde::{Deserialize, Serialize};
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
/// The section that describes the figure.
const SECTION: &str = "section VII-D";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.fig6",
    paper: "digital fountain, figure 6",
    what: "2 MB in 4 132 packets of 500 bytes, with Tornado Z (8 264 packets) and, beside it, LT and \
           RaptorQ; on one layer, and on four of rates 1, 1, 2, 4 with RLC. The real sender and 24 \
           receivers (quick: 6) for each loss, on ids, each from another moment on, on four layers behind \
           bottlenecks of 1.2 to 9 times the base layer. The manifest is known beforehand, as the \
           prototype's control information was.",
    sweep: &SweepOf {
        name: "df.fig6",
        kind: Kind::Counted,
        cases: |_| (2 * CODES.len() * LOSSES.len()) as u32,
        run: |case| receive(case).into_iter().collect(),
    },
    claims,
    exhibits,
};

/// Inefficiencies of the receivers of a point of the figure: means, and the largest.
#[derive(Serialize, Deserialize)]
struct PointRow {
    layers: u32,
    code: String,
    /// Per cent.
    loss: u32,
    eta: f64,
    eta_c: f64,
    eta_d: f64,
    worst_eta_d: f64,
    /// The standard errors of `eta` and `eta_d`.
    #[serde(default)]
    eta_error: f64,
    #[serde(default)]
    eta_d_error: f64,
}

impl PointRow {
    fn reception(&self) -> Estimate {
        Estimate { value: self.eta, error: self.eta_error }
    }

    fn distinctness(&self) -> Estimate {
        Estimate { value: self.eta_d, error: self.eta_d_error }
    }
}

/// The same of a real run.
#[derive(Serialize, Deserialize)]
struct RealPointRow {
    layers: u32,
    code: String,
    loss: u32,
    eta: f64,
    eta_c: f64,
    eta_d: f64,
    worst_eta_d: f64,
    #[serde(rename = "lost here")]
    lost_here: u64,
    #[serde(rename = "ms late")]
    late: f64,
}

fn scheme(code: &str) -> FecScheme {
    match code {
        "tornado" => FecScheme::Tornado(Tornado {
            max_source_block_length: SOURCE_SYMBOLS,
            code: TornadoCode::Z,
        }),
        "lt" => FecScheme::Lt(Lt {
            max_source_block_length: SOURCE_SYMBOLS,
            code: LtCode::fast(SOURCE_SYMBOLS, 0),
        }),
        _ => FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 }),
    }
}

/// A point of the figure.
#[derive(Clone, Copy, Debug)]
struct Point {
    layers: u8,
    code: &'static str,
    /// Per cent.
    loss: u32,
    /// Bytes per second of the lowest layer.
    base: u32,
}

impl Point {
    fn of(index: u32, base: u32) -> Self {
        let (index, losses) = (index as usize, LOSSES.len());
        let is_layered = index / losses / CODES.len() == 1;
        Self {
            layers: if is_layered { LAYERS } else { 1 },
            code: CODES[index / losses % CODES.len()],
            loss: LOSSES[index % losses],
            base,
        }
    }

    fn oti(self) -> Oti {
        let transfer_length = u64::from(SOURCE_SYMBOLS) * u64::from(SYMBOL);
        Oti { transfer_length, symbol_size: SYMBOL, scheme: scheme(self.code) }
    }

    /// One layer has the rate of all of them.
    fn rate(self) -> u64 {
        u64::from(self.base) << (LAYERS - 1)
    }

    /// How a session of the file is sent.
    fn laid_out(self, mut session: Session) -> Option<Session> {
        session.manifest_is_known = true;
        if self.layers > 1 {
            let layers = LayerRates::geometric(self.base, 512, self.layers).ok()?;
            session = session.with_congestion(CongestionControl::Rlc(presets::rlc(layers)));
            session.schedule = TransmissionSchedule::Cumulative;
        }
        Some(session)
    }

    /// The link of a receiver.
    fn link(self, random: &mut SplitMix64) -> LinkConfig {
        let model = LossModel::bernoulli(f64::from(self.loss) / 100.0);
        let access = Scene::access();
        let tenths = u64::from(12 + random.below(79));
        let rate = u64::from(self.base) * tenths / 10;
        let link = if self.layers > 1 {
            let queue = Duration::from_millis(200);
            let narrow = LinkConfig::bottleneck(rate, queue, access.delay);
            LinkConfig { graft: access.graft, prune: access.prune, ..narrow }
        } else {
            access
        };
        link.with_loss(model)
    }
}

/// A circuit breaker would leave at such losses.
fn limits() -> SubscriptionLimits {
    SubscriptionLimits { breaker: None, ..SubscriptionLimits::default() }
}

fn receive(case: &Case) -> Option<PointRow> {
    let point = Point::of(case.index, BASE);
    let mut random = case.stream(0);
    let session = Session::new(&[point.oti()], point.rate(), random.next_u64())?;
    let session = point.laid_out(session)?;
    let receivers = case.scale.pick(6, 24);
    let links = (0..receivers).map(|_| Arc::new(point.link(&mut random))).collect();
    let mut scene = Scene::new(random.next_u64(), 1, links);
    scene.send(0, &session, 0)?;
    for place in 0..receivers as usize {
        let start = Duration::from_millis(u64::from(random.below(100_000)));
        scene.listen(place, session.receiver(limits()), session.runner(), Instant::ZERO + start)?;
    }
    if !scene.until_all_left(LIMIT)? {
        return None;
    }
    Some(row(point, &scene.all_stats(), session.source_symbols()))
}

fn row(point: Point, stats: &[ReceiverStats], source_symbols: u64) -> PointRow {
    let found: Vec<_> = stats.iter().map(|stats| Inefficiency::of(stats, source_symbols)).collect();
    let of = |which: fn(&Inefficiency) -> f64| found.iter().map(which).collect::<Vec<_>>();
    let distinctness = of(|found| found.distinctness);
    let (eta, eta_d) =
        (Estimate::mean(&of(|found| found.reception)), Estimate::mean(&distinctness));
    PointRow {
        layers: point.layers.into(),
        code: point.code.into(),
        loss: point.loss,
        eta: eta.value,
        eta_c: mean(&of(|found| found.decoding)),
        eta_d: eta_d.value,
        worst_eta_d: largest(distinctness),
        eta_error: eta.error,
        eta_d_error: eta_d.error,
    }
}

/// Bytes per second of the lowest layer of a real run: the most that the paper's had, 512 kbit/s.
const REAL_BASE: u32 = 64_000;
/// Of a real run, and the moments at which receivers begin.
const REAL_LIMIT: Duration = Duration::from_secs(300);
const REAL_STARTS_MILLISECONDS: u32 = 12_500;

pub(crate) const REAL: Experiment = Experiment {
    what: "The sessions of the simulated experiment between hosts, with real bytes, eight times as fast; \
           losses and bottlenecks are those of an emulator before each receiver. 6 receivers for each loss (quick: \
           2), one code and number of layers after the other, all losses at the same time: half a minute \
           each (four layers: two).",
    sweep: &SweepOf {
        name: "df.fig6",
        kind: Kind::Timed,
        cases: |_| (2 * CODES.len()) as u32,
        run: receive_all_really,
    },
    claims: || claims().into_iter().chain([nothing_lost_here()]).collect(),
    ..EXPERIMENT
};

/// All losses at the same time.
fn receive_all_really(case: &Case) -> Vec<RealPointRow> {
    std::thread::scope(|scope| {
        let losses = LOSSES.len() as u32;
        let points = (0..losses).map(|loss| Point::of(case.index * losses + loss, REAL_BASE));
        let receive =
            |point| thread::spawn_scoped(scope, "lab session", move || receive_really(case, point));
        let running: Vec<_> = points.map(receive).collect();
        running.into_iter().filter_map(|thread| thread.ok()?.join().ok().flatten()).collect()
    })
}

/// A point between hosts. `None` if not every receiver had every byte in time.
fn receive_really(case: &Case, point: Point) -> Option<RealPointRow> {
    let mut random = case.stream(point.loss);
    let (originals, objects) = Originals::draw(&[point.oti()], &mut random)?;
    let originals = Arc::new(originals);
    let session = Session::of(objects, point.rate(), random.next_u64())?;
    let session = point.laid_out(session)?;
    let sender = SenderHost {
        driver: Driver::new(session.sender(0)?, session.runner()),
        pump: Pump::new(Arc::clone(&originals)),
        channels: point.layers,
    };
    let receiver = |_| ReceiverHost {
        receiver: session.receiver(limits()),
        runner: ByteRunner::new(Arc::clone(&originals)),
        link: point.link(&mut random),
        seed: random.next_u64(),
        starts_after: Duration::from_millis(random.below(REAL_STARTS_MILLISECONDS).into()),
    };
    let receivers = (0..case.scale.pick(2, 6)).map(receiver).collect();
    let received = hosts::run(vec![sender], receivers, REAL_LIMIT).ok()?;
    let is_complete =
        received.iter().all(|host| host.complete.is_some() && host.driver.runner.has_everything());
    let stats: Vec<_> = received.iter().map(|host| host.driver.endpoint.stats()).collect();
    let lost_here = received.iter().map(|host| host.lost_here).sum::<u64>();
    let late = received.iter().map(|host| host.late).max().unwrap_or_default();
    let late = late.as_secs_f64() * 1e3;
    let found = row(point, &stats, session.source_symbols());
    let PointRow { layers, code, loss, eta, eta_c, eta_d, worst_eta_d, .. } = found;
    is_complete.then_some(RealPointRow {
        layers,
        code,
        loss,
        eta,
        eta_c,
        eta_d,
        worst_eta_d,
        lost_here,
        late,
    })
}

fn at<T: From<f64>>(
    rows: &[PointRow],
    number: fn(&PointRow) -> T,
    layers: u32,
    code: &str,
    loss: u32,
) -> T {
    let is = |row: &&PointRow| row.layers == layers && row.code == code && row.loss == loss;
    rows.iter().find(is).map_or(f64::NAN.into(), number)
}

/// The mean of independent estimates.
fn mean_of(all: &[Estimate]) -> Estimate {
    let squares: f64 = all.iter().map(|each| each.error.powi(2)).sum();
    let value = mean(&all.iter().map(|each| each.value).collect::<Vec<_>>());
    Estimate { value, error: squares.sqrt() / all.len() as f64 }
}

fn claims() -> Vec<Claim> {
    let below_50 = || LOSSES.into_iter().filter(|&loss| loss < 50);
    let distinctness = |code: &'static str| {
        move |rows: &[PointRow]| {
            let of = |loss| at(rows, |row| row.worst_eta_d, 4, code, loss);
            largest(LOSSES.into_iter().map(of))
        }
    };
    vec![
        Claim::printed(
            "single",
            "one layer, losses below 50 %: the distinctness inefficiency, largest mean",
            quote("the distinctness inefficiency is almost always 1", SECTION),
            Target::Equal(1.0),
            0.02,
            move |rows: &[PointRow]| {
                let of = |loss| at(rows, PointRow::distinctness, 1, "tornado", loss);
                Estimate::largest(below_50().map(of))
            },
        ),
        Claim::printed(
            "eta",
            "one layer, losses below 50 %: the reception inefficiency, mean",
            quote("in our example was roughly 1.07 on average", SECTION),
            Target::Equal(1.07),
            0.03,
            move |rows: &[PointRow]| {
                let eta = |loss| at(rows, PointRow::reception, 1, "tornado", loss);
                mean_of(&below_50().map(eta).collect::<Vec<_>>())
            },
        ),
        Claim::printed(
            "half",
            "one layer, losses approaching 50 %: the reception inefficiency",
            quote("the reception inefficiency is generally below 1.4", SECTION),
            Target::AtMost(1.4),
            0.0,
            |rows: &[PointRow]| at(rows, PointRow::reception, 1, "tornado", 50),
        ),
        Claim::shape(
            "layers",
            "four layers over one: difference, mean over the losses below 50 %",
            quote(
                "multiple layers for congestion control increases the distinctness inefficiency",
                SECTION,
            ),
            Target::AtLeast(0.005),
            move |rows: &[PointRow]| {
                let eta_d =
                    |layers, loss| at(rows, PointRow::distinctness, layers, "tornado", loss);
                let added: Vec<_> =
                    below_50().map(|loss| eta_d(4, loss).minus(eta_d(1, loss))).collect();
                mean_of(&added)
            },
        ),
        Claim::shape(
            "lt",
            "distinctness inefficiency of LT codes on four layers, largest",
            quote("cost can be mitigated with the use of LT codes", SECTION),
            Target::AtMost(1.0005),
            distinctness("lt"),
        ),
        Claim::own(
            "raptorq",
            "the same with RaptorQ",
            Target::AtMost(1.0005),
            0.0,
            distinctness("raptorq"),
        ),
    ]
}

fn exhibits(table: &Table) -> Vec<Exhibit> {
    let rows: Vec<PointRow> = table.read().unwrap_or_default();
    let chart = |name, number: fn(&PointRow) -> Estimate, title: &str, printed: Vec<Series>| {
        let series = [1, 4].into_iter().flat_map(|layers| {
            let rows = &rows;
            CODES.map(|code| {
                let is = |row: &&PointRow| row.layers == layers && row.code == code;
                let point = |row: &PointRow| ChartPoint::estimate(row.loss.into(), number(row));
                let points: Vec<_> = rows.iter().filter(is).map(point).collect();
                let plural = if layers == 1 { "" } else { "s" };
                Series::new(format!("{code}, {layers} layer{plural}"), points)
            })
        });
        Exhibit::Chart(Chart {
            name,
            title: format!("{title} by code and number of layers"),
            x: Axis::linear("loss (%)"),
            y: Axis::linear("inefficiency (mean of the receivers)"),
            panels: Panel::only(series.chain(printed).collect()),
        })
    };
    let reception = vec![
        Series::printed_curve("paper, 1 layer: roughly 1.07", [(0.0, 1.07), (40.0, 1.07)]),
        Series::printed("paper, 1 layer: below 1.4", [(50.0, 1.4)]),
    ];
    let almost_always = [(0.0, 1.0), (40.0, 1.0)];
    let distinctness =
        vec![Series::printed_curve("paper, 1 layer: almost always 1", almost_always)];
    vec![
        chart("eta", PointRow::reception, "Reception inefficiency", reception),
        chart("distinctness", PointRow::distinctness, "Distinctness inefficiency", distinctness),
    ]
}
