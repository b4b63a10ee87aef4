//! `ms.pull`: section V-C and figure 1 with what decides in a receiver what to request of which
//! mirror ([`Pull`]).

use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use fontana_proto::pull::{Pull, SourceId};
use fontana_proto::{Instant, SplitMix64};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// The last one is what the others are compared with.
const SENDERS: [u32; 4] = [2, 3, 4, 1];
/// How much faster the first sender is than all others.
const RATIOS: [u32; 6] = [1, 2, 4, 8, 16, 64];
/// Downloads of a case, which differ in their latencies.
const TRIALS: usize = 20;
/// 64 MiB in symbols of 1 400 bytes.
const SYMBOLS: u64 = 47_935;
/// Symbols per second of the first sender: 40 Mbit/s.
const RATE: f64 = 40e6 / 8.0 / 1400.0;
/// Latencies from a request to its first symbol: of each sender one of them.
const LATENCIES: Range<u32> = 5..50;
const STEP: Duration = Duration::from_millis(1);
/// No download takes as long.
const AN_HOUR: Duration = Duration::from_secs(3600);

const SECTION: &str = "section V-C";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms.pull",
    paper: "mirror sites, section V-C and figure 1",
    what: "What a receiver requests of which mirror, computed by the code of the product: 64 MiB \
           from 1 to 4 mirrors, the first of 40 Mbit/s and faster than each of the others by a \
           ratio, 5 to 50 ms from a request to its first symbol; 20 downloads for each point. \
           Symbols that are on their way when a request is cut count as received.",
    sweep: &SweepOf {
        name: "ms.pull",
        kind: Kind::Counted,
        cases: |_| (SENDERS.len() * RATIOS.len()) as u32,
        run: downloads,
    },
    claims,
    exhibits: |table| {
        let rows: Vec<Downloads> = table.read().unwrap_or_default();
        let curve = |&senders: &u32| {
            let of = rows.iter().filter(|row| row.senders == senders);
            let points: Vec<_> =
                of.map(|row| Point::estimate(row.ratio.into(), row.over_least())).collect();
            Series::new(format!("{senders} mirror{}", if senders == 1 { "" } else { "s" }), points)
        };
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Time of a download from mirrors, over that of the sum of their rates".into(),
            x: Axis::logarithmic("rate of the first mirror over that of each other"),
            y: Axis::linear("time over the least possible"),
            panels: Panel::only(SENDERS.iter().map(curve).collect()),
        })]
    },
};

fn claims() -> Vec<Claim> {
    // Over the first mirror alone, which also waits for each request.
    let speedup = |senders: u32, ratio: u32| {
        move |rows: &[Downloads]| {
            let of = |senders: u32| {
                let is = |row: &&Downloads| row.senders == senders && row.ratio == ratio;
                rows.iter().find(is).map_or(f64::NAN.into(), Downloads::over_least)
            };
            let perfect = 1.0 + f64::from(senders - 1) / f64::from(ratio);
            of(1).over(of(senders)).times(perfect)
        }
    };
    vec![
        Claim::shape(
            "two",
            "speed-up of two equal mirrors; the paper's need a stretch factor of 4 for it",
            quote("using two senders instead of one almost halves download time", "section V-A.2"),
            Target::AtLeast(1.8),
            speedup(2, 1),
        ),
        Claim::shape(
            "four",
            "speed-up of four equal mirrors over two",
            quote("instead of two almost halves download time again", "section V-A.2"),
            Target::AtLeast(1.8),
            move |rows| speedup(4, 1)(rows).over(speedup(2, 1)(rows)),
        ),
        Claim::shape(
            "renegotiated",
            "symbols received over those that were lacking, the most at any ratio",
            quote("transmit packets next from a new range", SECTION),
            Target::AtMost(1.01),
            |rows: &[Downloads]| Estimate::largest(rows.iter().map(Downloads::inefficiency)),
        ),
        Claim::own(
            "fluid",
            "time over that in which the sum of the rates brings all, the most at any ratio",
            Target::AtMost(1.1),
            0.0,
            |rows: &[Downloads]| Estimate::largest(rows.iter().map(Downloads::over_least)),
        ),
        Claim::own(
            "slow",
            "speed-up that three mirrors bring which are slower by 64; 1.047 would be perfect",
            Target::AtLeast(1.02),
            0.0,
            speedup(4, 64),
        ),
    ]
}

/// Downloads from some senders, the first of which is faster than the others by a ratio.
#[derive(Serialize, Deserialize)]
struct Downloads {
    senders: u32,
    ratio: u32,
    /// Symbols received over those that were lacking.
    inefficiency: f64,
    inefficiency_error: f64,
    /// The time over that in which the sum of the rates brings all.
    over_least: f64,
    over_least_error: f64,
}

impl Downloads {
    fn inefficiency(&self) -> Estimate {
        Estimate { value: self.inefficiency, error: self.inefficiency_error }
    }

    fn over_least(&self) -> Estimate {
        Estimate { value: self.over_least, error: self.over_least_error }
    }
}

fn downloads(case: &Case) -> Vec<Downloads> {
    let index = case.index as usize;
    let (Some(&senders), Some(&ratio)) =
        (SENDERS.get(index / RATIOS.len()), RATIOS.get(index % RATIOS.len()))
    else {
        return Vec::new();
    };
    let mut random = case.stream(0);
    let rates: Vec<f64> = (0..senders)
        .map(|sender| if sender == 0 { RATE } else { RATE / f64::from(ratio) })
        .collect();
    let least = SYMBOLS as f64 / rates.iter().sum::<f64>();
    let (mut inefficiency, mut over_least) = (Vec::new(), Vec::new());
    for _ in 0..TRIALS {
        let download = download(&rates, &mut random);
        inefficiency.push(download.received as f64 / SYMBOLS as f64);
        over_least.push(download.time.as_secs_f64() / least);
    }
    let (inefficiency, over_least) = (Estimate::mean(&inefficiency), Estimate::mean(&over_least));
    vec![Downloads {
        senders,
        ratio,
        inefficiency: inefficiency.value,
        inefficiency_error: inefficiency.error,
        over_least: over_least.value,
        over_least_error: over_least.error,
    }]
}

struct Download {
    time: Duration,
    /// Symbols, also those that nothing needed any more.
    received: u64,
}

/// A mirror, and what it is sending.
struct Mirror {
    id: SourceId,
    rate: f64,
    latency: Duration,
    answer: Option<Answer>,
}

/// What a mirror has been asked for.
struct Answer {
    rest: Range<u64>,
    begins: Duration,
    /// A part of a symbol that was sent.
    part: f64,
}

/// All symbols, from mirrors of these rates.
fn download(rates: &[f64], random: &mut SplitMix64) -> Download {
    let mut pull = Pull::new();
    let mut mirrors: Vec<Mirror> = rates
        .iter()
        .map(|&rate| {
            let latency = LATENCIES.start + random.below(LATENCIES.end - LATENCIES.start);
            let latency = Duration::from_millis(latency.into());
            Mirror { id: pull.add_source(), rate, latency, answer: None }
        })
        .collect();
    pull.set_lacking(std::iter::once(0..SYMBOLS).collect());
    let (mut time, mut received) = (Duration::ZERO, 0);
    while !pull.is_complete() && time < AN_HOUR {
        for mirror in &mut mirrors {
            received += mirror.step(&mut pull, time);
        }
        for id in pull.give_back(Instant::ZERO + time) {
            mirrors.iter_mut().filter(|mirror| mirror.id == id).for_each(|slow| slow.answer = None);
        }
        time += STEP;
    }
    Download { time, received }
}

impl Mirror {
    /// Sends for one step. Returns how many symbols arrive, those included that are on their way
    /// when the receiver gives a request up.
    fn step(&mut self, pull: &mut Pull, time: Duration) -> u64 {
        let now = Instant::ZERO + time;
        let useless = self.end_if_cut(pull, now);
        if self.answer.is_none()
            && let Some(request) = pull.next_request(now, self.id)
        {
            let begins = time + self.latency;
            self.answer = Some(Answer { rest: request.range, begins, part: 0.0 });
        }
        let Some(answer) = self.answer.as_mut().filter(|answer| answer.begins <= time) else {
            return useless;
        };
        answer.part += self.rate * STEP.as_secs_f64();
        let expected = pull.expected(self.id).map_or(0, |rest| rest.end);
        let left = expected.min(answer.rest.end).saturating_sub(answer.rest.start);
        let count = (answer.part as u64).min(left);
        answer.part -= count as f64;
        let arrived = answer.rest.start..answer.rest.start + count;
        answer.rest.start = arrived.end;
        if count > 0 {
            pull.on_arrival(now, self.id, arrived);
        }
        count + useless + self.end_if_cut(pull, now)
    }

    /// Ends a request of which nothing is expected any more. Returns the symbols that the mirror
    /// has sent beyond: those of a latency, if it was asked for so many.
    fn end_if_cut(&mut self, pull: &mut Pull, now: Instant) -> u64 {
        if pull.expected(self.id).is_none_or(|rest| !rest.is_empty()) {
            return 0;
        }
        pull.end_request(now, self.id);
        let Some(answer) = self.answer.take() else { return 0 };
        let on_their_way = (self.rate * self.latency.as_secs_f64()) as u64;
        on_their_way.min(answer.rest.end.saturating_sub(answer.rest.start))
    }
}
