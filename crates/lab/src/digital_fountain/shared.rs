//! `df.shared`: several receivers behind one bottleneck, and when they decide.

use super::layers::{BASE, LAYERS, READINGS, session};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::scene::Scene;
use crate::statistics::largest;
use fontana_proto::{Instant, SubscriptionLimits};
use fontana_sim::LinkConfig;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

const RECEIVERS: u64 = 4;
/// The bottleneck is half way between this level and the next.
const LEVEL: u32 = 2;
const AT_ONCE: &str = "at once";
const APART: &str = "apart";
const CASES: [Joins; 2] = [Joins { name: AT_ONCE, spacing: 0 }, Joins { name: APART, spacing: 7 }];
/// Seconds until the last of them has reached its level.
const SETTLED: u64 = 60;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "df.shared",
    paper: "digital fountain, section VII-A",
    what: "The session of df.layers to four receivers behind one bottleneck half way between levels 2 and 3, \
           5 to 20 ms away from it, which join at once, or 7 s after each other: how often all are on one \
           level, and how many of them add a layer in the same 200 ms. Read ten times a second, from 60 s \
           to 600 s (quick: 240 s).",
    sweep: &SweepOf {
        name: "df.shared",
        kind: Kind::Counted,
        cases: |_| CASES.len() as u32,
        run: |case| run(case).into_iter().collect(),
    },
    claims: || {
        let of = |joins: &'static str, number: fn(&Shared) -> f64| {
            move |rows: &[Shared]| rows.number(|row| row.joins == joins, number)
        };
        vec![
            Claim::shape(
                "together",
                "receivers that add a layer in the same 200 ms, over all of them, if they have joined at \
                 once: mean of all additions",
                quote("receivers need not coordinate join attempts with one another", SECTION),
                Target::AtLeast(0.9),
                of(AT_ONCE, |row| row.together),
            ),
            Claim::shape(
                "apart",
                "the same if they have joined after each other",
                quote("receivers need not coordinate join attempts with one another", SECTION),
                Target::AtLeast(0.9),
                of(APART, |row| row.together),
            ),
            Claim::own(
                "one level",
                "share of the time with all receivers on one level, if they have joined at once",
                Target::AtLeast(0.95),
                0.0,
                of(AT_ONCE, |row| row.one_level),
            ),
            Claim::shape(
                "above",
                "largest share of the time above the right level",
                quote("Instead of explicit join attempts by receivers", SECTION),
                Target::AtMost(0.1),
                |rows: &[Shared]| largest(rows.iter().map(|row| row.above)),
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

const SECTION: &str = "section VII-A";

/// When receivers join.
#[derive(Clone, Copy)]
struct Joins {
    name: &'static str,
    /// Seconds from one to the next.
    spacing: u64,
}

/// Receivers behind one bottleneck.
#[derive(Serialize, Deserialize)]
struct Shared {
    joins: String,
    /// Additions of a layer, by any receiver.
    additions: u32,
    together: f64,
    one_level: f64,
    /// Share of the time at the right level, and above it, of all receivers.
    right: f64,
    above: f64,
}

fn run(case: &Case) -> Option<Shared> {
    let Joins { name, spacing } = *CASES.get(case.index as usize)?;
    let session = session(case)?;
    let access = Scene::access();
    let rate = u64::from(BASE) * (1 << LEVEL) * 3 / 4;
    let narrow = LinkConfig::bottleneck(rate, Duration::from_millis(50), access.delay);
    let trunk = LinkConfig { graft: access.graft, prune: access.prune, ..narrow };
    let link = |place: u64| {
        let delay = Duration::from_millis(5 * (place + 1));
        Arc::new(LinkConfig { delay, ..access.clone() })
    };
    let links = (0..RECEIVERS).map(link).collect();
    let seed = case.stream(0).next_u64();
    let mut scene = Scene::behind(Some(trunk), seed, 1, links);
    scene.send(0, &session, 0)?;
    for place in 0..RECEIVERS {
        let receiver = session.receiver(SubscriptionLimits::default());
        let starts_at = Instant::ZERO + Duration::from_secs(spacing * place);
        scene.listen(place as usize, receiver, session.runner(), starts_at)?;
    }
    let end = u64::from(case.scale.pick(240, 600));
    let mut readings = Vec::new();
    for reading in SETTLED * READINGS..end * READINGS {
        let at = Duration::from_millis(1_000 / READINGS * reading);
        scene.run.run_until(Instant::ZERO + at).ok()?;
        let level = |&node| scene.run.joined(node).len().min(LAYERS.into());
        readings.push(scene.receivers.iter().map(level).collect());
    }
    Some(Shared::of(name, &readings))
}

impl Shared {
    /// By the levels of all receivers at each reading.
    fn of(joins: &str, readings: &[Vec<usize>]) -> Self {
        let (mut additions, mut together) = (0, 0.0);
        let mut place = 0;
        while let Some([before, next, after]) = readings.get(place..place + 3) {
            let adds = |later: &[usize]| before.iter().zip(later).filter(|(a, b)| a < b).count();
            if adds(next) == 0 {
                place += 1;
                continue;
            }
            // Those that add one reading later have decided at the same time.
            additions += 1;
            together += adds(next).max(adds(after)) as f64 / RECEIVERS as f64;
            place += 2;
        }
        let all = || readings.iter().flatten();
        let share = |is: &dyn Fn(usize) -> bool| {
            all().filter(|&&level| is(level)).count() as f64 / all().count() as f64
        };
        let is_one = |levels: &&Vec<usize>| levels.windows(2).all(|pair| pair[0] == pair[1]);
        Self {
            joins: joins.into(),
            additions,
            together: together / f64::from(additions),
            one_level: readings.iter().filter(is_one).count() as f64 / readings.len() as f64,
            right: share(&|level| level == LEVEL as usize),
            above: share(&|level| level > LEVEL as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_of_one_moment_are_counted_together() {
        let readings = |text: &[[usize; 4]]| text.iter().map(|levels| levels.to_vec()).collect();
        let readings: Vec<Vec<usize>> = readings(&[
            [1, 1, 1, 1],
            [1, 2, 2, 2],
            [2, 2, 2, 2],
            [2, 2, 1, 2],
            [2, 2, 2, 2],
            [2; 4],
        ]);
        let found = Shared::of(AT_ONCE, &readings);
        assert_eq!((found.additions, found.together), (2, 0.625));
        assert!((found.one_level - 4.0 / 6.0).abs() < 1e-12 && found.above == 0.0);
    }
}
