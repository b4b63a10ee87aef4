//! Fair measurement of several implementations: in alternating runs, so that other load on the host
//! affects all of them, and by the processor time of the thread, so that other load does not count.
//! Each works on one thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Name of Fontana's own implementation.
pub(crate) const OURS: &str = "fontana";

/// An implementation that can repeat the measured work.
pub(crate) trait Contestant {
    fn name(&self) -> &str;

    /// Work before each run that is not measured.
    fn prepare(&mut self) {}

    /// The measured work.
    fn run(&mut self);

    /// Pieces of work per run.
    fn pieces(&self) -> usize {
        1
    }
}

/// The result of one contestant.
pub(crate) struct Outcome {
    pub(crate) name: String,
    /// Seconds for one piece of work; the median of all runs.
    pub(crate) seconds: f64,
}

/// Runs all contestants in alternating order; each at least 5 times, and for about half a second.
pub(crate) fn contest(contestants: &mut [Box<dyn Contestant + '_>]) -> Vec<Outcome> {
    const AT_LEAST: usize = 5;
    const AT_MOST: usize = 201;
    const ABOUT: Duration = Duration::from_millis(500);
    // The first run warms the caches, and determines the number of runs.
    let slowest = contestants.iter_mut().map(|c| time(c.as_mut())).max().unwrap_or_default();
    let rounds = (ABOUT.as_nanos() / slowest.as_nanos().max(1)) as usize;
    let mut times = vec![Vec::new(); contestants.len()];
    for _ in 0..rounds.clamp(AT_LEAST, AT_MOST) {
        for (contestant, times) in contestants.iter_mut().zip(&mut times) {
            // Twice: the other contestants have evicted its data from the caches.
            time(contestant.as_mut());
            times.push(time(contestant.as_mut()));
        }
    }
    let outcomes = contestants.iter().zip(times).map(|(contestant, mut times)| {
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let seconds = median.as_secs_f64() / contestant.pieces() as f64;
        Outcome { name: contestant.name().to_owned(), seconds }
    });
    outcomes.collect()
}

fn time(contestant: &mut (dyn Contestant + '_)) -> Duration {
    contestant.prepare();
    let start = processor_time();
    contestant.run();
    processor_time() - start
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
