//! `fc.losses`: whether the buffer that random order needs depends on losses, of which figures 12
//! and 15 show two.

use super::schemes::{BASE_PACKETS, RANDOM_ORDER, REFERENCE_ORDER};
use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::row::Rows;
use fontana_sim::LossModel;
use serde::{Deserialize, Serialize};

/// Per cent of the packets, in bursts of four as those of `fc.fig13`.
const LOSSES: [f64; 6] = [0.0, 1.0, 2.0, 3.85, 8.0, 16.0];
const BURST: f64 = 4.0;
/// Up to here losses make no difference. At 16 % more of the file waits.
const MOST_FLAT: f64 = 8.0;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fc.losses",
    paper: "FCAST, figures 12 and 15",
    what: "The runs of fc.fig10 with losses of 0 to 16 % in bursts of four packets: most bytes in the \
           buffer with m/rand/org_2, which the paper gives without losses and with 3.85 %, and with \
           single/org_2, which holds the whole file. 40 runs of each (quick: 10).",
    sweep: &SweepOf {
        name: "fc.losses",
        kind: Kind::Counted,
        cases: |scale| LOSSES.len() as u32 * runs(scale),
        run: |case| run(case).into_iter().collect(),
    },
    claims: || {
        vec![Claim::own(
            "flat",
            "per cent of the buffer saved, the greatest of losses up to 8 % less the least",
            Target::AtMost(6.0),
            0.0,
            |rows: &[LossRow]| {
                let few = || LOSSES.into_iter().filter(|&loss| loss <= MOST_FLAT);
                let saved = || few().map(|loss| saved(rows, loss));
                let least = Estimate::largest(saved().map(|saved| saved.times(-1.0)));
                Estimate::largest(saved()).minus(least.times(-1.0))
            },
        )]
    },
    exhibits: |table| {
        let rows: Vec<LossRow> = table.read().unwrap_or_default();
        let points = LOSSES.map(|loss| Point::estimate(loss, saved(&rows, loss)));
        let series = vec![
            Series::new("m/rand/org_2", points),
            Series::printed("paper", [(0.0, 14.9), (3.85, 25.8)]),
        ];
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Buffer that m/rand/org_2 saves over single/org_2".into(),
            x: Axis::linear("loss (%)"),
            y: Axis::linear("% of the buffer"),
            panels: Panel::only(series),
        })]
    },
};

/// Most bytes in the buffers of a run.
#[derive(Serialize, Deserialize)]
struct LossRow {
    /// Per cent.
    loss: f64,
    run: u32,
    random: f64,
    single: f64,
}

const fn runs(scale: Scale) -> u32 {
    scale.pick(10, 40)
}

fn run(case: &Case) -> Option<LossRow> {
    let (run, index) = (case.index / LOSSES.len() as u32, case.index as usize % LOSSES.len());
    let loss = *LOSSES.get(index)?;
    let seed = super::schemes::seed(run, case);
    let model = || match loss {
        0.0 => LossModel::None,
        percent => LossModel::markov(percent / 100.0, BURST),
    };
    let bytes = |scheme: super::schemes::Scheme| {
        Some(scheme.receive(BASE_PACKETS, model(), seed)?.peak_bytes as f64)
    };
    Some(LossRow { loss, run, random: bytes(RANDOM_ORDER)?, single: bytes(REFERENCE_ORDER)? })
}

/// Per cent of the buffer.
fn saved(rows: &[LossRow], loss: f64) -> Estimate {
    let of =
        |number: fn(&LossRow) -> f64| Estimate::mean(&rows.numbers(|row| row.loss == loss, number));
    of(|row| row.random).percent_below(of(|row| row.single))
}
