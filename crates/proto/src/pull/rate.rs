//! The measured rate of a source.

use crate::time::Instant;
use std::time::Duration;

/// Time constant of the mean. Long enough for the bursts of a shaper, short enough to notice within
/// a second that a source is silent.
const MEMORY: Duration = Duration::from_millis(700);
/// Time without an arrival that says nothing: a new connection takes as long. Drivers hand over
/// what arrives several times in it.
const PATIENCE: Duration = Duration::from_millis(300);
/// Time constant of the fall of the rate in silence.
const STALL: Duration = Duration::from_millis(150);
/// Least time between two samples: arrivals of one read of a socket are one sample.
const SAMPLE: Duration = Duration::from_millis(40);
/// Least time of a request whose rate is measured.
const SHORTEST: Duration = Duration::from_millis(1);

/// Mean rate of a source while it has a request, in positions per second. Recent arrivals count
/// more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateMeter {
    /// `None`: nothing has arrived yet.
    mean: Option<f64>,
    /// Since when arrivals are counted for the next sample. `None` while there is no request.
    since: Option<Instant>,
    arrived: u64,
    /// The last arrival, or the beginning of the request.
    last: Instant,
    /// Time of earlier requests before anything arrived.
    silent: Duration,
}

impl RateMeter {
    /// A request is made.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.since, self.arrived, self.last) = (Some(now), 0, now);
    }

    /// The request has ended.
    pub(super) fn end(&mut self, now: Instant) {
        self.sample(now, SHORTEST);
        if self.mean.is_none() {
            self.silent += self.elapsed(now);
            // An answer in no time.
            let rate = self.arrived as f64 / SHORTEST.as_secs_f64();
            self.mean = (self.arrived > 0).then_some(rate);
        }
        self.since = None;
    }

    pub(super) fn on_arrival(&mut self, now: Instant, count: u64) {
        self.arrived += count;
        self.last = now;
        self.sample(now, SAMPLE);
    }

    fn sample(&mut self, now: Instant, least: Duration) {
        let Some(since) = self.since else { return };
        if now.saturating_since(since) >= least {
            if self.mean.is_none() && self.arrived == 0 {
                return;
            }
            self.mean = self.smoothed(now);
            (self.since, self.arrived) = (Some(now), 0);
        }
    }

    /// What is left of the rate that is assumed of a source from which nothing has arrived yet: all
    /// of it for as long as a connection may take.
    pub(super) fn trust(&self, now: Instant) -> f64 {
        let silent = (self.silent + self.elapsed(now)).saturating_sub(PATIENCE);
        (-silent.as_secs_f64() / STALL.as_secs_f64()).exp()
    }

    fn elapsed(&self, now: Instant) -> Duration {
        self.since.map(|since| now.saturating_since(since)).unwrap_or_default()
    }

    /// The rate, as far as is known. Silence lowers it fast: what a source has left is then divided
    /// among the others.
    pub(super) fn estimate(&self, now: Instant) -> Option<f64> {
        let silent = match self.since {
            Some(_) => now.saturating_since(self.last).saturating_sub(PATIENCE),
            None => Duration::ZERO,
        };
        let left = (-silent.as_secs_f64() / STALL.as_secs_f64()).exp();
        self.smoothed(now).map(|rate| rate * left)
    }

    fn smoothed(&self, now: Instant) -> Option<f64> {
        let elapsed = self.elapsed(now);
        if elapsed < SAMPLE && (self.mean.is_some() || elapsed.is_zero()) {
            return self.mean;
        }
        let recent = self.arrived as f64 / elapsed.as_secs_f64();
        let Some(mean) = self.mean else { return (self.arrived > 0).then_some(recent) };
        let old = (-elapsed.as_secs_f64() / MEMORY.as_secs_f64()).exp();
        Some(mean * old + recent * (1.0 - old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_mean_follows_the_rate_and_falls_in_silence() {
        let mut meter = RateMeter::default();
        assert_eq!(meter.estimate(at(5)), None);
        meter.begin(at(0));
        (1..=100).for_each(|step| meter.on_arrival(at(10 * step), 10));
        let steady = meter.estimate(at(1000)).unwrap();
        assert!((950.0..=1050.0).contains(&steady), "{steady}");
        let silent = meter.estimate(at(3100)).unwrap();
        assert!(silent < 0.06 * steady, "{silent}");
        meter.end(at(1000));
        let idle = meter.estimate(at(9000)).unwrap();
        assert!((idle - steady).abs() < 60.0, "time without a request does not count: {idle}");
        meter.begin(at(9000));
        (1..=300).for_each(|step| meter.on_arrival(at(9000 + 10 * step), 1));
        let slower = meter.estimate(at(12_000)).unwrap();
        assert!((95.0..=150.0).contains(&slower), "{slower}");
    }

    #[test]
    fn a_source_that_answers_in_no_time_has_a_rate() {
        let mut meter = RateMeter::default();
        meter.begin(at(3));
        meter.on_arrival(at(3), 10);
        meter.end(at(3));
        assert_eq!(meter.estimate(at(9)), Some(10_000.0));
    }
}
