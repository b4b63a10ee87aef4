//! `ms.real`: mirrors over real sockets. Several senders of the same file, each a host of its own,
//! send to one multicast group, which a receiver has joined.

use super::model::equal_senders;
use crate::bytes::{ByteRunner, Originals, Pump};
use crate::chart::{self, Axis, Chart, Exhibit, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::hosts::{self, ReceiverHost, SenderHost, nothing_lost_here};
use crate::row::Rows;
use crate::scene::Inefficiency;
use crate::session::Session;
use crate::statistics::largest;
use crate::table::Table;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{FecScheme, Oti};
use fontana_net::thread;
use fontana_proto::{
    Driver, Fcast, Instant, ObjectOrder, SubscriptionLimits, SymbolOrganization,
    TransmissionSchedule,
};
use fontana_sim::LinkConfig;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Four times the paper's: a receiver that misses the first head of one of the senders uses its
/// packets only from the second one on, half a second later, which must be before the end.
const SOURCE_SYMBOLS: u32 = 4_000;
/// Bytes of a symbol.
const SYMBOL: u16 = 1024;
/// Bytes per second of each sender: one of them takes eight seconds.
const RATE: u64 = 560_000;
/// Several times what a reception takes.
const LIMIT: Duration = Duration::from_secs(60);
/// Equal senders: 1 to this many.
const MOST_SENDERS: u32 = 5;
/// The stretch factor of Tornado: that of the claims of section V-A.2.
const STRETCH: u8 = 4;

const TORNADO: &str = "tornado";
const RAPTORQ: &str = "raptorq";
const CODES: [&str; 2] = [TORNADO, RAPTORQ];

pub(crate) const REAL: Experiment = Experiment {
    id: "ms.real",
    paper: "mirror sites, section V",
    what: "A file of 4000 packets of 1024 bytes from 1 to 5 equal senders to one receiver, over a multicast \
           group between hosts: Tornado at stretch factor 4, which each sender sends in a random order of its \
           own, and RaptorQ, of which each sender begins anywhere. All at the same time, each with hosts of \
           its own, without losses; 10 runs of 9 s (quick: 3). The paper simulates. Only in this form.",
    sweep: &SweepOf { name: "ms.real", kind: Kind::Timed, cases: |scale| scale.pick(3, 10), run },
    claims,
    exhibits,
};

/// A reception from mirrors.
#[derive(Serialize, Deserialize)]
struct FromMirrors {
    code: String,
    senders: u32,
    run: u32,
    /// Time from the start of the senders until the reception was complete, with every byte; `NAN`
    /// if it never was.
    seconds: f64,
    eta: f64,
    eta_c: f64,
    eta_d: f64,
    #[serde(rename = "lost here")]
    lost_here: u64,
    #[serde(rename = "ms late")]
    late: f64,
}

/// A reception of each code from each number of senders, at the same time.
fn run(case: &Case) -> Vec<FromMirrors> {
    let kinds = || CODES.into_iter().flat_map(|code| (1..=MOST_SENDERS).map(move |n| (code, n)));
    std::thread::scope(|scope| {
        let receive = |(code, senders)| {
            thread::spawn_scoped(scope, "lab session", move || receive(case, code, senders))
        };
        let running: Vec<_> = kinds().map(receive).collect();
        running.into_iter().filter_map(|thread| thread.ok()?.join().ok().flatten()).collect()
    })
}

fn scheme(code: &str) -> Option<FecScheme> {
    Some(match code {
        TORNADO => FecScheme::Tornado(Tornado {
            max_source_block_length: SOURCE_SYMBOLS,
            code: TornadoCode::new(STRETCH, 0).ok()?,
        }),
        _ => FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 }),
    })
}

/// `None` if it cannot be run.
fn receive(case: &Case, code: &'static str, senders: u32) -> Option<FromMirrors> {
    let is_tornado = code == TORNADO;
    let mut random = case.stream(senders + if is_tornado { 0 } else { MOST_SENDERS });
    let transfer_length = u64::from(SOURCE_SYMBOLS) * u64::from(SYMBOL);
    let oti = Oti { transfer_length, symbol_size: SYMBOL, scheme: scheme(code)? };
    let (originals, objects) = Originals::draw(&[oti], &mut random)?;
    let originals = Arc::new(originals);
    let mut session = Session::of(objects, RATE, random.next_u64())?;
    session.manifest_is_known = true;
    if is_tornado {
        session.schedule = TransmissionSchedule::Fcast(Fcast {
            organization: SymbolOrganization::AllOnEach,
            object_order: ObjectOrder::Random,
            stretch_factor: STRETCH.into(),
            anticipated_layers: 0,
        });
    }
    // Not number 0, which sends the source symbols first.
    let sender = |number: u32| {
        let driver = Driver::new(session.sender(number.into())?, session.runner());
        Some(SenderHost { driver, pump: Pump::new(Arc::clone(&originals)), channels: 1 })
    };
    let receiver = ReceiverHost {
        receiver: session.receiver(SubscriptionLimits::default()),
        runner: ByteRunner::new(Arc::clone(&originals)),
        link: LinkConfig::default(),
        seed: session.seed,
        starts_after: Duration::ZERO,
    };
    let senders_of_file = (1..=senders).map(sender).collect::<Option<_>>()?;
    let received = hosts::run(senders_of_file, vec![receiver], LIMIT).ok()?.pop()?;
    let found = Inefficiency::of(&received.driver.endpoint.stats(), session.source_symbols());
    let complete = received
        .reception_complete
        .filter(|_| received.complete.is_some() && received.driver.runner.has_everything());
    let seconds = |at: Instant| at.saturating_since(Instant::ZERO).as_secs_f64();
    Some(FromMirrors {
        code: code.into(),
        senders,
        run: case.index,
        seconds: complete.map_or(f64::NAN, seconds),
        eta: found.reception,
        eta_c: found.decoding,
        eta_d: found.distinctness,
        lost_here: received.lost_here,
        late: received.late.as_secs_f64() * 1e3,
    })
}

fn mean(
    rows: &[FromMirrors],
    code: &str,
    senders: u32,
    number: fn(&FromMirrors) -> f64,
) -> Estimate {
    Estimate::mean(&rows.numbers(|row| row.code == code && row.senders == senders, number))
}

/// How many times as fast so many senders are as others.
fn speedup(rows: &[FromMirrors], code: &str, senders: u32, others: u32) -> Estimate {
    let seconds = |senders| mean(rows, code, senders, |row| row.seconds);
    seconds(others).over(seconds(senders))
}

/// What equation (2) expects of the distinctness inefficiency, at the decoding inefficiency of the
/// receptions.
fn expected_eta_d(rows: &[FromMirrors], senders: u32) -> f64 {
    let epsilon = mean(rows, TORNADO, senders, |row| row.eta_c).value;
    equal_senders(senders, f64::from(STRETCH), epsilon) / epsilon
}

fn claims() -> Vec<Claim> {
    vec![
        Claim::shape(
            "two",
            "Tornado: speed-up of two senders",
            quote("using two senders instead of one almost halves download time", "section V-A.2"),
            Target::AtLeast(1.7),
            |rows: &[FromMirrors]| speedup(rows, TORNADO, 2, 1),
        ),
        Claim::shape(
            "four",
            "Tornado: speed-up of four over two",
            quote("instead of two almost halves download time again", "section V-A.2"),
            Target::AtLeast(1.7),
            |rows: &[FromMirrors]| speedup(rows, TORNADO, 4, 2),
        ),
        Claim::own(
            "formula",
            "Tornado: distinctness inefficiency less that of equation (2) at the decoding inefficiency of \
             the receptions, largest difference of means",
            Target::AtMost(0.03),
            0.0,
            |rows: &[FromMirrors]| {
                let off = |senders| {
                    let found = mean(rows, TORNADO, senders, |row| row.eta_d);
                    found.minus(expected_eta_d(rows, senders).into()).size()
                };
                Estimate::largest((2..=MOST_SENDERS).map(off))
            },
        ),
        Claim::own(
            "distinct",
            "RaptorQ: distinctness inefficiency, largest of all receptions",
            Target::AtMost(1.0005),
            0.0,
            |rows: &[FromMirrors]| {
                let of_raptorq = rows.numbers(|row| row.code == RAPTORQ, |row| row.eta_d);
                largest(of_raptorq)
            },
        ),
        Claim::own(
            "speed-up",
            "RaptorQ: speed-up of so many senders over their number, least",
            Target::AtLeast(0.95),
            0.0,
            |rows: &[FromMirrors]| {
                let share =
                    |senders| speedup(rows, RAPTORQ, senders, 1).times(-1.0 / f64::from(senders));
                Estimate::largest((2..=MOST_SENDERS).map(share)).times(-1.0)
            },
        ),
        Claim::own(
            "bytes",
            "receptions that did not end with every byte, and the right one",
            Target::AtMost(0.0),
            0.0,
            |rows: &[FromMirrors]| match rows.len() {
                0 => f64::NAN,
                _ => rows.iter().filter(|row| row.seconds.is_nan()).count() as f64,
            },
        ),
        nothing_lost_here(),
    ]
}

fn exhibits(table: &Table) -> Vec<Exhibit> {
    let rows: Vec<FromMirrors> = table.read().unwrap_or_default();
    let curves = |number: &dyn Fn(&str, u32) -> Estimate| {
        let curve = |code: &'static str| {
            let point =
                |senders: u32| chart::Point::estimate(senders.into(), number(code, senders));
            Series::new(code, (1..=MOST_SENDERS).map(point))
        };
        CODES.map(curve)
    };
    let formula =
        (1..=MOST_SENDERS).map(|senders| (f64::from(senders), expected_eta_d(&rows, senders)));
    let distinctness = curves(&|code, senders| mean(&rows, code, senders, |row| row.eta_d));
    let chart = |name, label, series: Vec<Series>| {
        Exhibit::Chart(Chart {
            name,
            title: "Equal mirrors between hosts".into(),
            x: Axis::linear("senders"),
            y: Axis::linear(label),
            panels: Panel::only(series),
        })
    };
    vec![
        chart(
            "speedup",
            "speed-up",
            curves(&|code, senders| speedup(&rows, code, senders, 1)).into(),
        ),
        chart(
            "distinctness",
            "distinctness inefficiency",
            distinctness
                .into_iter()
                .chain([Series::printed_curve("equation (2)", formula).in_color_of(TORNADO)])
                .collect(),
        ),
    ]
}
