//! Comparison of the processor time of several pieces of work.
//!
//! The processor time of the thread excludes other load on the host. Runs of the pieces alternate,
//! so that changes of caches and clock rates affect all of them. Results are medians.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A piece of work that can be repeated.
pub(crate) type TimedWork<'a> = Box<dyn FnMut() + 'a>;

/// Work of fewer seconds runs twice in each round and the second run counts, because the others
/// have evicted its data from the caches. For longer work, the time to fill the caches is
/// negligible.
const BRIEF: f64 = 0.02;

/// Seconds of each piece of work: medians of `rounds` alternating runs.
pub(crate) fn medians(rounds: u32, works: &mut [TimedWork<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::new(); works.len()];
    for _ in 0..rounds {
        for (work, times) in works.iter_mut().zip(&mut times) {
            let first = seconds(&mut *work);
            times.push(if first < BRIEF { seconds(work) } else { first });
        }
    }
    times.into_iter().map(median).collect()
}

/// Seconds of processor time of a piece of work.
pub(crate) fn seconds(work: impl FnOnce()) -> f64 {
    let start = processor_time();
    work();
    processor_time().saturating_sub(start).as_secs_f64()
}

/// The median, for an even number the upper one of the middle two; `NAN` for no value.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Processor time of this thread so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 3.0);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn the_contestants_take_turns() {
        let turns = RefCell::new(String::new());
        let mut works: [TimedWork<'_>; 2] =
            [Box::new(|| turns.borrow_mut().push('a')), Box::new(|| turns.borrow_mut().push('b'))];
        let seconds = medians(2, &mut works);
        assert_eq!(seconds.len(), 2);
        drop(works);
        assert_eq!(turns.into_inner(), "aabbaabb");
    }
}
