//! `df.loss`: whether the distribution of losses matters.

use super::carousel::CarouselCode;
use super::loss::LossProcess;
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::statistics::Histogram;
use serde::{Deserialize, Serialize};

/// A file of 1 MB.
const SOURCE_SYMBOLS: u32 = 1000;

const CODES: [CarouselCode; 3] =
    [CarouselCode::Tornado, CarouselCode::Interleaved(50), CarouselCode::Interleaved(20)];

/// Shares of losses, and lengths of bursts in packets; 0 for independent losses. A burst of 40 is
/// twice what 20 blocks of 50 send in a turn.
const PATTERNS: [(f64, u32); 7] =
    [(0.01, 0), (0.01, 4), (0.1, 0), (0.1, 4), (0.1, 40), (0.5, 0), (0.5, 40)];

/// The standard error of a mean is below 0.0006 in the quick run.
const RECEIVERS: [u32; 2] = [3000, 100_000];

/// Of Tornado Z, which is slower to simulate: the standard error of a mean is 0.0003.
const TORNADO_RECEIVERS: [u32; 2] = [800, 10_000];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.loss",
    paper: "digital fountain, section VI",
    what: "Decoding inefficiency of a 1 MB file under independent losses and under losses in bursts \
           (two-state Markov) of the same share.",
    sweep: &SweepOf {
        name: "df.loss",
        kind: Kind::Counted,
        cases: |_| (CODES.len() * PATTERNS.len()) as u32,
        run,
    },
    claims,
    exhibits: |table| {
        let rows: Vec<Pattern> = table.read().unwrap_or_default();
        let cell = |code: CarouselCode, (loss, burst): (f64, u32)| {
            format!("{:.4}", average(&rows, code, loss, burst).value)
        };
        let names = CODES.iter().map(|code| code.name());
        vec![Exhibit::Grid(Grid {
            title: "Average decoding inefficiency".into(),
            columns: ["loss".into(), "bursts of".into()].into_iter().chain(names).collect(),
            rows: PATTERNS
                .iter()
                .map(|&(loss, burst)| {
                    let pattern = if burst == 0 { "1".into() } else { burst.to_string() };
                    let cells = CODES.iter().map(|&code| cell(code, (loss, burst)));
                    [loss.to_string(), pattern].into_iter().chain(cells).collect()
                })
                .collect(),
        })]
    },
};

/// Inefficiencies of a code under a pattern of losses.
#[derive(Serialize, Deserialize)]
struct Pattern {
    code: String,
    loss: f64,
    /// Packets of a burst; 0 for independent losses.
    burst: u32,
    average: f64,
    deviation: f64,
    /// The standard error of `average`.
    error: f64,
}

impl Pattern {
    fn average(&self) -> Estimate {
        Estimate { value: self.average, error: self.error }
    }
}

fn run(case: &Case) -> Vec<Pattern> {
    let index = case.index as usize;
    let (Some(&code), Some(&(share, burst))) =
        (CODES.get(index / PATTERNS.len()), PATTERNS.get(index % PATTERNS.len()))
    else {
        return Vec::new();
    };
    let loss = match burst {
        0 => LossProcess::random(share),
        length => LossProcess::bursts(share, f64::from(length)),
    };
    let mut random = case.stream(0);
    let mut carousel = code.carousel(SOURCE_SYMBOLS, &mut random);
    let mut pool = Histogram::default();
    let [quick, full] = if code == CarouselCode::Tornado { TORNADO_RECEIVERS } else { RECEIVERS };
    for _ in 0..case.scale.pick(quick, full) {
        pool.add(carousel.receive(&loss, &mut random).distinct);
    }
    let k = f64::from(SOURCE_SYMBOLS);
    let deviation = pool.standard_deviation() / k;
    let Estimate { value: average, error } = Estimate::mean_of(&pool).times(1.0 / k);
    vec![Pattern { code: code.name(), loss: share, burst, average, deviation, error }]
}

fn claims() -> Vec<Claim> {
    let bursts = |code: CarouselCode, burst: u32| {
        move |rows: &[Pattern]| average(rows, code, 0.1, burst).minus(average(rows, code, 0.1, 0))
    };
    vec![
        Claim::shape(
            "tornado",
            "largest difference of averages between patterns of any length or share",
            quote("only the overall loss rate is important", "section VI"),
            Target::AtMost(0.004),
            |rows: &[Pattern]| {
                let name = CarouselCode::Tornado.name();
                let all = || rows.iter().filter(|row| row.code == name).map(Pattern::average);
                let least = Estimate::largest(all().map(|average| average.times(-1.0)));
                Estimate::largest(all()).minus(least.times(-1.0))
            },
        ),
        Claim::shape(
            "one",
            "at a loss of 1 %: difference from interleaved k = 50, either way",
            quote(
                "interleaved codes and Tornado have generally comparable performance",
                "section VI-B",
            ),
            Target::AtMost(0.05),
            |rows: &[Pattern]| {
                let interleaved = average(rows, CarouselCode::Interleaved(50), 0.01, 0);
                average(rows, CarouselCode::Tornado, 0.01, 0).minus(interleaved).size()
            },
        ),
        Claim::shape(
            "bursts",
            "slightly better: what bursts of 40 packets add, at a loss of 0.1 and k = 50",
            quote("performance under random losses than under bursty losses", "section VI"),
            Target::AtLeast(0.0),
            bursts(CarouselCode::Interleaved(50), 40),
        ),
        Claim::shape(
            "small",
            "on the paper's traces; here with bursts of 4: difference, either way",
            quote("between random and bursty losses is small", "section VI"),
            Target::AtMost(0.05),
            move |rows| bursts(CarouselCode::Interleaved(50), 4)(rows).size(),
        ),
    ]
}

fn average(rows: &[Pattern], code: CarouselCode, loss: f64, burst: u32) -> Estimate {
    let name = code.name();
    let is = |row: &&Pattern| row.code == name && row.loss == loss && row.burst == burst;
    rows.iter().find(is).map_or(f64::NAN.into(), Pattern::average)
}
