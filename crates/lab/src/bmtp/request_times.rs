//! When a receiver asks for what it misses, and for which part of it.

use fontana_proto::{Instant, SplitMix64};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What a receiver misses, and when it may ask for each part (BMTP, sections 3 and 4).
///
/// A receiver asks for a part only when it has been missing for a while, because it may arrive
/// late, and not again within the same time, because the sender needs it to answer. Of the parts
/// that it may ask for it draws one at random. Receivers that miss the same parts would otherwise
/// all ask for the same one, and the sender repeats it for each.
#[derive(Clone, Debug)]
pub(super) struct RequestTimes {
    wait: Duration,
    most: usize,
    /// When each may be asked for.
    missing: BTreeMap<u64, Instant>,
    /// Parts that may not be asked for yet, in the order in which they may.
    waiting: VecDeque<Turn>,
    /// Parts that may be asked for. Both lists may have turns that have become void.
    due: Vec<Turn>,
}

/// When a part may be asked for. It is void if the part has arrived meanwhile.
#[derive(Clone, Copy, Debug)]
struct Turn {
    from: Instant,
    part: u64,
}

impl Turn {
    fn is_valid(self, missing: &BTreeMap<u64, Instant>) -> bool {
        missing.get(&self.part) == Some(&self.from)
    }
}

impl RequestTimes {
    /// Nothing is missing. `wait`: from when a part is missed until it may be asked for, and from
    /// one request for it to the next. `most`: parts that are recorded at the same time.
    pub(super) fn new(wait: Duration, most: usize) -> Self {
        let (missing, waiting, due) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        Self { wait, most, missing, waiting, due }
    }

    /// Number of missing parts.
    pub(super) fn missing(&self) -> usize {
        self.missing.len()
    }

    /// A part is found to be missing. False if as many as may be are missing already; then it is
    /// not recorded.
    pub(super) fn miss(&mut self, now: Instant, part: u64) -> bool {
        if self.missing.contains_key(&part) {
            return true;
        }
        let has_room = self.missing.len() < self.most;
        if has_room {
            self.wait_for(now, part);
        }
        has_room
    }

    /// A part has arrived. Returns whether it was missing.
    pub(super) fn arrive(&mut self, part: u64) -> bool {
        let was_missing = self.missing.remove(&part).is_some();
        // Void turns take memory until they are drawn.
        if was_missing && self.due.len() + self.waiting.len() > 2 * self.missing.len() + SPARE {
            self.due.retain(|turn| turn.is_valid(&self.missing));
            self.waiting.retain(|turn| turn.is_valid(&self.missing));
        }
        was_missing
    }

    /// Draws the part to ask for now; `None` if there is none. It may be asked for again after
    /// [`wait`](Self::new).
    pub(super) fn ask(&mut self, now: Instant, random: &mut SplitMix64) -> Option<u64> {
        while self.waiting.front().is_some_and(|turn| turn.from <= now) {
            self.due.extend(self.waiting.pop_front());
        }
        while let Ok(count @ 1..) = u32::try_from(self.due.len()) {
            let turn = self.due.swap_remove(random.below(count) as usize);
            if turn.is_valid(&self.missing) {
                self.wait_for(now, turn.part);
                return Some(turn.part);
            }
        }
        None
    }

    fn wait_for(&mut self, now: Instant, part: u64) {
        let from = now + self.wait;
        self.missing.insert(part, from);
        self.waiting.push_back(Turn { from, part });
    }
}

/// Void turns that are kept, beyond as many as parts are missing: so many are cheaper to keep than
/// to look for.
const SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_part_is_asked_for_after_the_wait_and_not_again_before_another() {
        let (mut times, mut random) = (RequestTimes::new(WAIT, 9), SplitMix64::new(1, 0));
        assert!(times.miss(at(1), 7));
        let just_before = Instant::from_nanos(at(11).as_nanos() - 1);
        assert_eq!(times.ask(just_before, &mut random), None);
        assert_eq!(times.ask(at(11), &mut random), Some(7));
        assert_eq!(times.ask(at(20), &mut random), None);
        assert_eq!(times.ask(at(21), &mut random), Some(7));
        assert!(times.arrive(7) && !times.arrive(7));
        assert_eq!(times.ask(at(40), &mut random), None);
        assert_eq!(times.missing(), 0);
    }

    #[test]
    fn the_last_part_that_there_is_room_for_is_recorded_and_no_other() {
        let mut times = RequestTimes::new(WAIT, 2);
        assert!(times.miss(at(0), 1) && times.miss(at(0), 2));
        assert!(times.miss(at(0), 2), "it is recorded already");
        assert!(!times.miss(at(0), 3));
        times.arrive(1);
        assert!(times.miss(at(0), 3));
        assert_eq!(times.missing(), 2);
    }

    #[test]
    fn each_part_that_is_due_is_drawn_equally_often() {
        let mut drawn = [0_u32; 5];
        for seed in 0..5_000 {
            let (mut times, mut random) = (RequestTimes::new(WAIT, 9), SplitMix64::new(seed, 0));
            (0..5).for_each(|part| assert!(times.miss(at(0), part)));
            drawn[times.ask(at(10), &mut random).unwrap() as usize] += 1;
        }
        // A thousand each, whose standard deviation is 28.
        assert!(drawn.iter().all(|count| (880..1_120).contains(count)), "{drawn:?}");
    }

    /// Against a plain model: the time from when each part may be asked for.
    #[test]
    fn requests_are_those_of_a_plain_model() {
        for seed in 0..64 {
            let mut steps = SplitMix64::new(seed, 1);
            let (mut times, mut random) = (RequestTimes::new(WAIT, 30), SplitMix64::new(seed, 0));
            let mut model: BTreeMap<u64, Instant> = BTreeMap::new();
            let mut now = 0;
            for _ in 0..300 {
                let part = u64::from(steps.below(40));
                now += u64::from(steps.below(6));
                match steps.below(3) {
                    0 => {
                        let has_room = model.len() < 30 || model.contains_key(&part);
                        assert_eq!(times.miss(at(now), part), has_room);
                        if has_room {
                            model.entry(part).or_insert(at(now) + WAIT);
                        }
                    }
                    1 => assert_eq!(times.arrive(part), model.remove(&part).is_some()),
                    _ => match times.ask(at(now), &mut random) {
                        Some(asked) => {
                            assert!(model[&asked] <= at(now));
                            model.insert(asked, at(now) + WAIT);
                        }
                        None => assert!(model.values().all(|&from| from > at(now))),
                    },
                }
                assert_eq!(times.missing(), model.len());
                let turns = times.due.len() + times.waiting.len();
                assert!(turns <= 2 * times.missing() + SPARE);
            }
        }
    }
}
