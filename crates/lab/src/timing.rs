//! How long pieces of work take beside each other.
//!
//! By the processor time of the thread, so that whatever else the machine does does not count as
//! theirs; by turns, so that what it does to caches and clocks hits all of them; and the median.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A piece of work that can be done again and again.
pub(crate) type TimedWork<'a> = Box<dyn FnMut() + 'a>;

/// What takes less than this is done twice in its turn, and the second time counts: the others had
/// the caches. For what takes longer, filling a cache of some megabytes is nothing.
const BRIEF: f64 = 0.02;

/// Seconds that each takes: medians of `rounds` turns.
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

/// Seconds of processor time that something takes.
pub(crate) fn seconds(work: impl FnOnce()) -> f64 {
    let start = processor_time();
    work();
    processor_time().saturating_sub(start).as_secs_f64()
}

/// The middle value, of an even number the upper of the two; `NAN` of none.
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
