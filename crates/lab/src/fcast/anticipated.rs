//! `fc.fig20` and `fc.table3`: source symbols sent ahead of everything else (section 7).

use super::schemes::bursts;
use super::session::{LARGE_FILE, LARGE_FILE_CODING, LARGE_FILE_PACKETS, STRETCH};
use super::transfer::{SimulatedReception, receive};
use crate::chart::{Axis, Chart, Exhibit, Grid, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale};
use crate::session::{LISTENERS_FIRST, Session};
use crate::statistics::{largest, mean};
use crate::table::{Table, TableRow, row};
use crate::taken::TakenLayers;
use fontana_proto::{
    DecodePolicy, Fcast, Instant, ObjectOrder, SymbolOrganization, TransmissionSchedule,
};
use fontana_sim::LossModel;
use std::time::Duration;

/// `n_al`.
const ANTICIPATED_LAYERS: u8 = 5;
/// Layers that receivers of figure 20 take.
pub(super) const TAKEN: [u8; 4] = [3, 4, 5, 6];
/// Of table 3: as many as congestion control allows.
const ANY: u8 = 0;

const SECTION: &str = "section 7.2";

const COLUMNS: &[&str] =
    &["layers", "anticipated", "run", "seconds", "received", "duplicates", "bytes"];

/// The file sent by `opt_speed`, which is m/rand/org_2.
///
/// Without anticipation the source sends nothing before it has computed all FEC symbols. With it,
/// the lower layers have source symbols at once. The others have none before the FEC symbols exist,
/// and receivers join them then.
pub(super) fn session(anticipated: bool, layers: u8, seed: u64) -> Option<Session> {
    let schedule = TransmissionSchedule::Fcast(Fcast {
        organization: SymbolOrganization::Segments,
        object_order: ObjectOrder::Random,
        stretch_factor: STRETCH,
        anticipated_layers: if anticipated { ANTICIPATED_LAYERS } else { 0 },
    });
    let policy = DecodePolicy::Incremental;
    let session = LARGE_FILE.session(LARGE_FILE_PACKETS, schedule, policy, seed)?;
    let coding = if anticipated { Duration::ZERO } else { LARGE_FILE_CODING };
    let taken = TakenLayers {
        first: if anticipated { layers.min(ANTICIPATED_LAYERS) } else { layers },
        all: layers,
        others_at: Instant::ZERO + LISTENERS_FIRST + LARGE_FILE_CODING,
    };
    Some(Session { taken_layers: (layers != ANY).then_some(taken), coding, ..session })
}

fn reception(
    anticipated: bool,
    layers: u8,
    loss: LossModel,
    seed: u64,
) -> Option<SimulatedReception> {
    receive(&session(anticipated, layers, seed)?, loss, u64::MAX)
}

/// Runs of each: the paper's 10.
const fn runs(scale: Scale) -> u32 {
    scale.pick(2, 10)
}

fn rows(case: &Case, run: u32, anticipated: bool, layers: u8, loss: LossModel) -> Vec<TableRow> {
    let seed = Case { index: run, experiment: "fc.anticipated", ..*case }.stream(0).next_u64();
    let Some(reception) = reception(anticipated, layers, loss, seed) else { return Vec::new() };
    let SimulatedReception { seconds, received, duplicates, peak_bytes, .. } = reception;
    let (layers, anticipated) = (u32::from(layers), u32::from(anticipated));
    vec![row![layers, anticipated, run, seconds, received, duplicates, peak_bytes]]
}

fn values(table: &Table, column: &str, layers: u8, anticipated: bool) -> Vec<f64> {
    let (layers, anticipated) = (u32::from(layers), u32::from(anticipated));
    table.numbers(column, &[("layers", layers.into()), ("anticipated", anticipated.into())])
}

fn average(table: &Table, column: &str, layers: u8, anticipated: bool) -> Estimate {
    Estimate::mean(&values(table, column, layers, anticipated))
}

/// Per cent by which anticipation reduces a column.
fn less(column: &'static str, layers: u8) -> impl Fn(&Table) -> Estimate {
    move |table| {
        let [with, without] =
            [true, false].map(|anticipated| average(table, column, layers, anticipated));
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
           on the lowest layer, everything else as in fc.fig10; 10 runs (quick: 2). The 23 s and the 96 \
           packets are fitted to 4.6 Mbit/s (fc.fig16) and 48.4 %.",
    kind: Kind::Counted,
    columns: COLUMNS,
    cases: |scale| 2 * TAKEN.len() as u32 * runs(scale),
    run: |case| {
        let kinds = 2 * TAKEN.len() as u32;
        let (run, kind) = (case.index / kinds, case.index % kinds);
        let Some(&layers) = TAKEN.get((kind / 2) as usize) else { return Vec::new() };
        rows(case, run, kind % 2 == 1, layers, LossModel::None)
    },
    claims: figure_20_claims,
    exhibits: |table| {
        let curve = |column: &'static str, anticipated: bool| {
            let label = if anticipated { "source symbols ahead" } else { "without" };
            let point =
                |&layers: &u8| (layers.into(), average(table, column, layers, anticipated).value);
            Series::new(label, TAKEN.iter().map(point).collect())
        };
        let chart = |name, title: &str, y, column| {
            let series = vec![curve(column, true), curve(column, false)];
            let x = Axis::linear("layers that a receiver takes");
            Exhibit::Chart(Chart { name, title: title.into(), x, y, series })
        };
        vec![
            chart("time", "Reception of 30 MB", Axis::linear("seconds"), "seconds"),
            chart("space", "Most that waits in the buffer", Axis::linear("bytes"), "bytes"),
        ]
    },
};

fn figure_20_claims() -> Vec<Claim> {
    let six =
        || quote("88,5% buffering space improvement and 33,6% reception time improvement", SECTION);
    let space = || quote("757 kbytes, a 96.7% improvement compared to the 21.8 MB", SECTION);
    let percent = |name: &str, text: &str, quote, number, tolerance, column, layers| {
        Claim::printed(name, text, quote, Target::Equal(number), tolerance, less(column, layers))
    };
    vec![
        percent("six", "% shorter with six layers", six(), 33.6, 10.0, "seconds", 6),
        percent("six space", "% less buffer with six layers", six(), 88.5, 10.0, "bytes", 6),
        Claim::fitted(
            "five",
            "% shorter with exactly n_al = 5 layers",
            quote("represents a 48.4% improvement", SECTION),
            Target::Equal(48.4),
            10.0,
            less("seconds", 5),
        ),
        percent("five space", "% less buffer with exactly five", space(), 96.7, 5.0, "bytes", 5),
        Claim::printed(
            "five bytes",
            "average of the most bytes in the buffer with five layers",
            space(),
            Target::Equal(757_000.0),
            150_000.0,
            |table| average(table, "bytes", 5, true),
        ),
        Claim::printed(
            "five without",
            "and without anticipation",
            space(),
            Target::Equal(21_800_000.0),
            2_000_000.0,
            |table| average(table, "bytes", 5, false),
        ),
        Claim::shape(
            "four",
            "% shorter with four layers",
            quote("enables a reduction of the reception time", SECTION),
            Target::AtLeast(0.0),
            less("seconds", 4),
        ),
    ]
}

pub(crate) const TABLE_3: Experiment = Experiment {
    id: "fc.table3",
    paper: "FCAST, table 3",
    what: "As fc.fig20, by receivers under congestion control and the losses of fc.fig13.",
    kind: Kind::Counted,
    columns: COLUMNS,
    cases: |scale| 2 * runs(scale),
    run: |case| rows(case, case.index / 2, case.index % 2 == 1, ANY, bursts()),
    claims: || {
        vec![
            Claim::printed(
                "duration",
                "% by which anticipation takes longer under losses",
                quote("the reception time is almost identical (0.33% penalty)", "section 7.3"),
                Target::Equal(0.33),
                5.0,
                |table| less("seconds", ANY)(table).times(-1.0),
            ),
            Claim::printed(
                "space",
                "% less buffer",
                quote("slight (-9.2%) reduction of the maximum buffering size", "section 7.3"),
                Target::Equal(9.2),
                5.0,
                less("bytes", ANY),
            ),
            Claim::printed(
                "without",
                "average of the most bytes in the buffer without anticipation",
                quote("22.22 / 22.58 / 23.00", "table 3"),
                Target::Equal(22_580_000.0),
                2_000_000.0,
                |table| average(table, "bytes", ANY, false),
            ),
        ]
    },
    exhibits: |table| {
        let line = |anticipated: bool| {
            let cells = |column, unit: f64| {
                let values = values(table, column, ANY, anticipated);
                let least = -largest(values.iter().map(|value| -value));
                [least, mean(&values), largest(values)].map(|v| format!("{:.2}", v / unit))
            };
            let name = if anticipated { "with anticipation" } else { "without" };
            let all = [cells("bytes", 1e6), cells("seconds", 1.0)].concat();
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
        let ahead = reception(true, ANTICIPATED_LAYERS, LossModel::None, 1).expect("a session");
        // All of them once, and what came between the last one and the moment of leaving.
        let symbols = LARGE_FILE.bytes.div_ceil(512);
        assert!((symbols..symbols * 101 / 100).contains(&ahead.received), "{ahead:?}");
        assert!(ahead.peak_bytes < 20 * LARGE_FILE.object_bytes, "{ahead:?}");
        let mixed = reception(false, ANTICIPATED_LAYERS, LossModel::None, 1).expect("a session");
        assert!(mixed.peak_bytes > LARGE_FILE.bytes / 2, "{mixed:?}");
    }
}
