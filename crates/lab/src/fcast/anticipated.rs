//! `fc.fig20` and `fc.table3`: source symbols sent ahead of everything else (section 7).

use super::schemes::bursts;
use super::session::{LARGE_FILE, LARGE_FILE_CODING, LARGE_FILE_PACKETS, STRETCH};
use super::transfer::{SimulatedReception, receive};
use crate::chart::{Axis, Chart, Exhibit, Grid, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use crate::session::{LISTENERS_FIRST, Session};
use crate::statistics::{largest, mean, smallest};
use crate::taken::TakenLayers;
use fontana_proto::{
    DecodePolicy, Fcast, Instant, ObjectOrder, SymbolOrganization, TransmissionSchedule,
};
use fontana_sim::LossModel;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `n_al`.
const ANTICIPATED_LAYERS: u8 = 5;
/// Layers that receivers of figure 20 take; a quick run leaves out the last one.
pub(super) const TAKEN: [u8; 4] = [4, 5, 6, 3];
/// Of table 3: as many as congestion control allows.
const ANY: u8 = 0;

/// How fast the file is sent, and for how long its source computes FEC symbols.
#[derive(Clone, Copy)]
pub(super) struct Fit {
    /// Packets per second of the lowest layer.
    packets: u32,
    coding: Duration,
}

/// The fit of all runs, and others. Those are compared with the three numbers that the fit is of,
/// on [`FITTED`] layers, by one run each.
pub(super) const FIT: Fit = Fit { packets: LARGE_FILE_PACKETS, coding: LARGE_FILE_CODING };
const OTHER_FITS: [Fit; 2] = [
    Fit { packets: 106, coding: Duration::from_secs(26) },
    Fit { packets: 80, coding: Duration::from_secs(16) },
];
const FITTED: [u8; 2] = [5, 6];

const SECTION: &str = "section 7.2";

/// A reception of the large file.
#[derive(Serialize, Deserialize)]
pub(super) struct Anticipation {
    /// Layers that the receiver takes; [`ANY`] if congestion control decides.
    layers: u8,
    anticipated: bool,
    /// Packets per second of the lowest layer, by which fits are told apart.
    packets: u32,
    run: u32,
    seconds: f64,
    received: u64,
    duplicates: u64,
    bytes: f64,
}

/// The file sent by `opt_speed`, which is m/rand/org_2.
///
/// Without anticipation the source sends nothing before it has computed all FEC symbols. With it,
/// the lower layers have source symbols at once. The others have none before the FEC symbols exist,
/// and receivers join them then.
pub(super) fn session(anticipated: bool, layers: u8, fit: Fit, seed: u64) -> Option<Session> {
    let schedule = TransmissionSchedule::Fcast(Fcast {
        organization: SymbolOrganization::Segments,
        object_order: ObjectOrder::Random,
        stretch_factor: STRETCH,
        anticipated_layers: if anticipated { ANTICIPATED_LAYERS } else { 0 },
    });
    let policy = DecodePolicy::Incremental;
    let session = LARGE_FILE.session(fit.packets, schedule, policy, seed)?;
    let coding = if anticipated { Duration::ZERO } else { fit.coding };
    let taken = TakenLayers {
        first: if anticipated { layers.min(ANTICIPATED_LAYERS) } else { layers },
        all: layers,
        others_at: Instant::ZERO + LISTENERS_FIRST + fit.coding,
    };
    Some(Session { taken_layers: (layers != ANY).then_some(taken), coding, ..session })
}

/// Runs of each: the paper's 10.
const fn runs(scale: Scale) -> u32 {
    scale.pick(2, 10)
}

/// A planned reception.
#[derive(Clone, Copy)]
struct Planned {
    fit: Fit,
    run: u32,
    layers: u8,
    anticipated: bool,
}

impl Planned {
    fn receive(&self, loss: LossModel, seed: u64) -> Option<SimulatedReception> {
        let session = session(self.anticipated, self.layers, self.fit, seed)?;
        receive(&session, loss, u64::MAX)
    }

    fn row(&self, case: &Case, loss: LossModel) -> Option<Anticipation> {
        let Self { fit: Fit { packets, .. }, run, layers, anticipated } = *self;
        let seed = Case { index: run, sweep: "fc.anticipated", ..*case }.stream(0).next_u64();
        let SimulatedReception { seconds, received, duplicates, peak_bytes, .. } =
            self.receive(loss, seed)?;
        let bytes = peak_bytes as f64;
        Some(Anticipation {
            layers,
            anticipated,
            packets,
            run,
            seconds,
            received,
            duplicates,
            bytes,
        })
    }
}

/// The receptions of figure 20.
fn plan(scale: Scale) -> Vec<Planned> {
    let taken = TAKEN.split_at(scale.pick(3, 4) as usize).0;
    let of = |fit: Fit, run: u32, layers: &[u8]| {
        let pair = |&layers: &u8| [false, true].map(|anticipated| (layers, anticipated));
        let planned = |(layers, anticipated)| Planned { fit, run, layers, anticipated };
        layers.iter().flat_map(pair).map(planned).collect::<Vec<_>>()
    };
    let runs = (0..runs(scale)).flat_map(|run| of(FIT, run, taken));
    runs.chain(OTHER_FITS.into_iter().flat_map(|fit| of(fit, 0, &FITTED))).collect()
}

/// Seconds of a reception, or most bytes in its buffer.
type Measure = fn(&Anticipation) -> f64;

const SECONDS: Measure = |row| row.seconds;
const BYTES: Measure = |row| row.bytes;

fn values(rows: &[Anticipation], measure: Measure, layers: u8, anticipated: bool) -> Vec<f64> {
    values_of(FIT, rows, measure, layers, anticipated)
}

fn values_of(
    Fit { packets, .. }: Fit,
    rows: &[Anticipation],
    measure: Measure,
    layers: u8,
    anticipated: bool,
) -> Vec<f64> {
    let is = |row: &Anticipation| {
        row.packets == packets && row.layers == layers && row.anticipated == anticipated
    };
    rows.numbers(is, measure)
}

fn average(rows: &[Anticipation], measure: Measure, layers: u8, anticipated: bool) -> Estimate {
    Estimate::mean(&values(rows, measure, layers, anticipated))
}

/// Per cent by which anticipation reduces a measure.
fn less(measure: Measure, layers: u8) -> impl Fn(&[Anticipation]) -> Estimate {
    move |rows| {
        let [with, without] =
            [true, false].map(|anticipated| average(rows, measure, layers, anticipated));
        with.percent_below(without)
    }
}

pub(crate) const FIGURE_20: Experiment = Experiment {
    id: "fc.fig20",
    paper: "FCAST, figure 20",
    what: "Time and buffer to receive 30 MB with m/rand/org_2 (opt_speed), without losses, by receivers \
           that are on 3 to 6 layers from the beginning; with source symbols sent ahead on five layers, \
           and without. The sender computes all FEC symbols for 23 s. Without anticipation it sends \
           nothing before; with it, nothing on the sixth layer. Objects of one block, 96 packets a second \
           on the lowest layer, everything else as in fc.fig10; 10 runs (quick: 2, without 3 layers). The \
           paper prints neither the 23 s nor the 96 packets: they are fitted to its 4.6 Mbit/s, 33.6 % on \
           six layers and 48.4 % on five. No two numbers give all three, as the last table shows.",
    sweep: &SweepOf {
        name: "fc.fig20",
        kind: Kind::Counted,
        cases: |scale| plan(scale).len() as u32,
        run: |case| {
            let planned = plan(case.scale).into_iter().nth(case.index as usize);
            planned.and_then(|planned| planned.row(case, LossModel::None)).into_iter().collect()
        },
    },
    claims: figure_20_claims,
    exhibits: |table| {
        let rows: Vec<Anticipation> = table.read().unwrap_or_default();
        let estimate = |measure, unit: f64, layers, anticipated| {
            average(&rows, measure, layers, anticipated).times(1.0 / unit)
        };
        let chart = |name, title: &str, y, (measure, unit), printed: Vec<Series>| {
            let curve = |anticipated: bool| {
                let label = if anticipated { "source symbols ahead" } else { "without" };
                let point = |&layers: &u8| {
                    Point::estimate(layers.into(), estimate(measure, unit, layers, anticipated))
                };
                let mut taken = rows.distinct(|row| row.layers);
                taken.sort_unstable();
                Series::new(label, taken.iter().map(point))
            };
            let series = [curve(true), curve(false)].into_iter().chain(printed).collect();
            let x = Axis::linear("layers that a receiver takes");
            let panels = Panel::only(series);
            Exhibit::Chart(Chart { name, title: title.into(), x, y, panels })
        };
        let less = |measure, unit, layers: u8, percent: f64| {
            let without = estimate(measure, unit, layers, false).value;
            (layers.into(), without * (1.0 - percent / 100.0))
        };
        let shorter = [less(SECONDS, 1.0, 5, 48.4), less(SECONDS, 1.0, 6, 33.6)];
        let smaller = [less(BYTES, 1e6, 6, 88.5)];
        let ahead = |series: Series| series.in_color_of("source symbols ahead");
        vec![
            chart(
                "time",
                "Reception of 30 MB",
                Axis::linear("seconds"),
                (SECONDS, 1.0),
                vec![ahead(Series::printed("paper", shorter))],
            ),
            chart(
                "space",
                "Most that waits in the buffer",
                Axis::linear("MB"),
                (BYTES, 1e6),
                vec![
                    ahead(Series::printed("paper", smaller)),
                    ahead(Series::printed("paper", [(5.0, 0.757)])),
                    Series::printed("paper", [(5.0, 21.8)]).in_color_of("without"),
                ],
            ),
            fits(&rows),
        ]
    },
};

/// What each fit makes of the three numbers.
fn fits(rows: &[Anticipation]) -> Exhibit {
    let line = |fit: Fit| {
        let seconds =
            |layers, anticipated| mean(&values_of(fit, rows, SECONDS, layers, anticipated));
        let [five, six] = FITTED
            .map(|layers| 100.0 * (1.0 - seconds(layers, true) / seconds(layers, false)))
            .map(|percent| format!("{percent:.1}"));
        let mbit = 8e-6 * LARGE_FILE.bytes as f64 / seconds(6, false);
        let (packets, coding) = (fit.packets.to_string(), fit.coding.as_secs().to_string());
        vec![packets, coding, format!("{mbit:.2}"), six, five]
    };
    let printed = ["paper", "", "4.6", "33.6", "48.4"].map(String::from).into();
    // Between hosts there is one.
    let is_run = |fit: &Fit| rows.iter().any(|row| row.packets == fit.packets);
    let fits = std::iter::once(FIT).chain(OTHER_FITS).filter(is_run);
    Exhibit::Grid(Grid {
        title:
            "Fits: Mbit/s of a receiver on six layers without anticipation, and % shorter with it"
                .into(),
        columns: ["packets/s", "coding s", "Mbit/s", "six", "five"].map(String::from).into(),
        rows: fits.map(line).chain([printed]).collect(),
    })
}

fn figure_20_claims() -> Vec<Claim> {
    let six =
        || quote("88,5% buffering space improvement and 33,6% reception time improvement", SECTION);
    let space = || quote("757 kbytes, a 96.7% improvement compared to the 21.8 MB", SECTION);
    let percent = |name: &str, text: &str, quote, number, tolerance, measure, layers| {
        Claim::printed(name, text, quote, Target::Equal(number), tolerance, less(measure, layers))
    };
    vec![
        Claim::fitted(
            "six",
            "% shorter with six layers",
            six(),
            Target::Equal(33.6),
            10.0,
            less(SECONDS, 6),
        ),
        percent("six space", "% less buffer with six layers", six(), 88.5, 10.0, BYTES, 6),
        Claim::fitted(
            "five",
            "% shorter with exactly n_al = 5 layers",
            quote("represents a 48.4% improvement", SECTION),
            Target::Equal(48.4),
            10.0,
            less(SECONDS, 5),
        ),
        percent("five space", "% less buffer with exactly five", space(), 96.7, 5.0, BYTES, 5),
        Claim::printed(
            "five bytes",
            "average of the most bytes in the buffer with five layers",
            space(),
            Target::Equal(757_000.0),
            150_000.0,
            |rows: &[Anticipation]| average(rows, BYTES, 5, true),
        ),
        Claim::printed(
            "five without",
            "and without anticipation",
            space(),
            Target::Equal(21_800_000.0),
            2_000_000.0,
            |rows: &[Anticipation]| average(rows, BYTES, 5, false),
        ),
        Claim::shape(
            "four",
            "% shorter with four layers",
            quote("enables a reduction of the reception time", SECTION),
            Target::AtLeast(0.0),
            less(SECONDS, 4),
        ),
    ]
}

pub(crate) const TABLE_3: Experiment = Experiment {
    id: "fc.table3",
    paper: "FCAST, table 3",
    what: "As fc.fig20, by receivers under congestion control and the losses of fc.fig13.",
    sweep: &SweepOf {
        name: "fc.table3",
        kind: Kind::Counted,
        cases: |scale| 2 * runs(scale),
        run: |case| {
            let (run, anticipated) = (case.index / 2, case.index % 2 == 1);
            let planned = Planned { fit: FIT, run, layers: ANY, anticipated };
            planned.row(case, bursts()).into_iter().collect()
        },
    },
    claims: || {
        vec![
            Claim::printed(
                "duration",
                "% by which anticipation takes longer under losses",
                quote("the reception time is almost identical (0.33% penalty)", "section 7.3"),
                Target::Equal(0.33),
                5.0,
                |rows| less(SECONDS, ANY)(rows).times(-1.0),
            ),
            Claim::printed(
                "space",
                "% less buffer",
                quote("slight (-9.2%) reduction of the maximum buffering size", "section 7.3"),
                Target::Equal(9.2),
                5.0,
                less(BYTES, ANY),
            ),
            Claim::printed(
                "without",
                "average of the most bytes in the buffer without anticipation",
                quote("22.22 / 22.58 / 23.00", "table 3"),
                Target::Equal(22_580_000.0),
                2_000_000.0,
                |rows: &[Anticipation]| average(rows, BYTES, ANY, false),
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Anticipation> = table.read().unwrap_or_default();
        let line = |anticipated: bool| {
            let cells = |measure, unit: f64| {
                let values = values(&rows, measure, ANY, anticipated);
                let least = smallest(values.iter().copied());
                [least, mean(&values), largest(values)].map(|v| format!("{:.2}", v / unit))
            };
            let name = if anticipated { "with anticipation" } else { "without" };
            let all = [cells(BYTES, 1e6), cells(SECONDS, 1.0)].concat();
            std::iter::once(name.to_owned()).chain(all).collect()
        };
        let columns = ["", "least MB", "average MB", "most MB", "least s", "average s", "most s"];
        vec![Exhibit::Grid(Grid {
            title: "Anticipated transmission under losses".into(),
            columns: columns.map(String::from).into(),
            rows: vec![line(false), line(true)],
        })]
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_exactly_the_layers_of_the_anticipation_the_file_comes_in_sequence() {
        let reception = |anticipated| {
            let planned = Planned { fit: FIT, run: 0, layers: ANTICIPATED_LAYERS, anticipated };
            planned.receive(LossModel::None, 1).expect("a session")
        };
        let ahead = reception(true);
        // All of them once, and what came between the last one and the moment of leaving.
        let symbols = LARGE_FILE.bytes.div_ceil(512);
        assert!((symbols..symbols * 101 / 100).contains(&ahead.received), "{ahead:?}");
        assert!(ahead.peak_bytes < 20 * LARGE_FILE.object_bytes, "{ahead:?}");
        let mixed = reception(false);
        assert!(mixed.peak_bytes > LARGE_FILE.bytes / 2, "{mixed:?}");
    }
}
