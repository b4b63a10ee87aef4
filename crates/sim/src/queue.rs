//! Events in the order of their times.

use fontana_proto::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events in the order of their times, and events of one time in the order in which they were
/// scheduled. The order of a run does not depend on the heap.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    scheduled: u64,
    now: Instant,
}

/// An event whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueEvent<E> {
    /// Its time.
    pub at: Instant,
    /// The event.
    pub event: E,
}

#[derive(Debug)]
struct Entry<E> {
    at: Instant,
    number: u64,
    event: E,
}

impl<E> EventQueue<E> {
    /// An empty queue, at time 0.
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), scheduled: 0, now: Instant::ZERO }
    }

    /// The time of the event that was removed last.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Number of scheduled events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is scheduled.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Time of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Schedules `event` at `at`, or now if `at` has passed.
    pub fn schedule(&mut self, at: Instant, event: E) {
        let (at, number) = (at.max(self.now), self.scheduled);
        self.scheduled += 1;
        self.heap.push(Entry { at, number, event });
    }

    /// Removes the next event if its time is `until` or before, and advances the time to it.
    pub fn pop_until(&mut self, until: Instant) -> Option<DueEvent<E>> {
        if self.next_at()? > until {
            return None;
        }
        let Entry { at, event, .. } = self.heap.pop()?;
        self.now = at;
        Some(DueEvent { at, event })
    }

    /// Advances the time to `now`, or to the next event if that is earlier.
    pub fn rest_until(&mut self, now: Instant) {
        let limit = self.next_at().unwrap_or(now);
        self.now = self.now.max(now.min(limit));
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Ord for Entry<E> {
    /// The earliest event is the heap's greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_time_come_out_as_they_were_put_in() {
        let mut queue = EventQueue::new();
        let at = Instant::from_nanos;
        for (time, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b'), (5, 'e')] {
            queue.schedule(at(time), event);
        }
        let order: String =
            std::iter::from_fn(|| queue.pop_until(at(5))).map(|due| due.event).collect();
        assert_eq!(order, "abcde");
    }

    #[test]
    fn time_never_runs_backwards() {
        let mut queue = EventQueue::new();
        let at = Instant::from_nanos;
        queue.schedule(at(10), 'a');
        assert_eq!(queue.pop_until(at(9)), None, "a nanosecond early");
        assert_eq!(queue.pop_until(at(10)), Some(DueEvent { at: at(10), event: 'a' }));
        queue.schedule(at(3), 'b');
        assert_eq!(queue.pop_until(at(10)), Some(DueEvent { at: at(10), event: 'b' }));
        queue.schedule(at(30), 'c');
        queue.rest_until(at(20));
        assert_eq!(queue.now(), at(20));
        queue.rest_until(at(40));
        assert_eq!(queue.now(), at(30), "not past what is still to happen");
    }
}
