//! Congestion windows of Reno (RFC 5681) and CUBIC (RFC 9438).

use super::TcpVariant;
use fontana_proto::Instant;
use std::time::Duration;

/// A congestion window, in segments.
#[derive(Clone, Debug)]
pub(super) struct Window {
    segments: f64,
    slow_start_threshold: f64,
    cubic: Option<Cubic>,
}

/// RFC 6928's initial window.
const INITIAL: f64 = 10.0;
/// No window is reduced below this (RFC 5681, section 3.1).
const LEAST: f64 = 2.0;

impl Window {
    pub(super) fn new(variant: TcpVariant) -> Self {
        let cubic = (variant == TcpVariant::Cubic).then(Cubic::default);
        Self { segments: INITIAL, slow_start_threshold: f64::INFINITY, cubic }
    }

    pub(super) fn segments(&self) -> f64 {
        self.segments
    }

    /// Handles `acknowledged` further segments, outside of recovery.
    pub(super) fn on_ack(&mut self, now: Instant, acknowledged: u64, rtt: Duration) {
        // After a timeout one acknowledgement may cover a whole window. It opens the window by two
        // at most (RFC 3465, section 2.3).
        for _ in 0..acknowledged.min(2) {
            if self.segments < self.slow_start_threshold {
                self.segments += 1.0;
                continue;
            }
            self.segments += match &mut self.cubic {
                Some(cubic) => cubic.growth(now, self.segments, rtt),
                None => 1.0 / self.segments,
            };
        }
    }

    /// Reduces the window for a loss, once for each episode.
    pub(super) fn on_loss(&mut self) {
        let kept = match &mut self.cubic {
            Some(cubic) => cubic.reduce(self.segments),
            None => 0.5,
        };
        self.slow_start_threshold = (self.segments * kept).max(LEAST);
        self.segments = self.slow_start_threshold;
    }

    /// Reduces the threshold for a timeout with `under_way` segments in flight.
    pub(super) fn on_timeout(&mut self, under_way: u32) {
        let kept = match &mut self.cubic {
            Some(cubic) => cubic.reduce(self.segments),
            None => 0.5,
        };
        let flight = self.segments.min(f64::from(under_way));
        self.slow_start_threshold = (flight * kept).max(LEAST);
    }

    /// Restarts with one segment.
    pub(super) fn collapse(&mut self) {
        self.segments = 1.0;
    }
}

/// State of CUBIC (RFC 9438, section 4).
#[derive(Clone, Debug, Default)]
struct Cubic {
    /// W_max: the window at the last episode of losses.
    origin: f64,
    /// The growth since the last loss; `None` until the first acknowledgement after it.
    epoch: Option<Epoch>,
    /// W_est: the window that Reno would have.
    reno: f64,
}

/// A time of growth without a loss.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Instant,
    /// The window at its beginning, in segments.
    segments: f64,
}

/// Segments per second cubed.
const C: f64 = 0.4;
/// Share of the window that is kept at a loss.
const BETA: f64 = 0.7;
/// Growth per round trip with which Reno has the same mean window at a reduction to `BETA`.
const RENO_GROWTH: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

impl Cubic {
    /// Growth of a window of `segments` for one acknowledged segment.
    fn growth(&mut self, now: Instant, segments: f64, rtt: Duration) -> f64 {
        let Epoch { began, segments: first } = *self.epoch.get_or_insert_with(|| {
            self.origin = self.origin.max(segments);
            self.reno = segments;
            Epoch { began: now, segments }
        });
        let inflection = cube_root((self.origin - first) / C);
        let time = now.saturating_since(began).as_secs_f64();
        let cubic = |time: f64| {
            let from_inflection = time - inflection;
            C * from_inflection * from_inflection * from_inflection + self.origin
        };
        let reno_growth = if self.reno < self.origin { RENO_GROWTH } else { 1.0 };
        let reno = self.reno + reno_growth / segments;
        let (here, ahead) = (cubic(time), cubic(time + rtt.as_secs_f64()));
        self.reno = reno;
        if here < reno {
            return (reno - segments).max(0.0);
        }
        (ahead.clamp(segments, 1.5 * segments) - segments) / segments
    }

    /// Handles a loss at a window of `segments`. Returns the share of the window that remains.
    fn reduce(&mut self, segments: f64) -> f64 {
        // Fast convergence: a flow whose window shrinks leaves room for new flows.
        let shrinks = segments < self.origin;
        self.origin = if shrinks { segments * (1.0 + BETA) / 2.0 } else { segments };
        self.epoch = None;
        BETA
    }
}

/// A cube root by Newton's iteration. The last bits of a library's depend on the library.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // From above, the iteration falls to the root, at first by a third per step: 10^12 takes 30.
    let mut root = x.max(1.0);
    for _ in 0..100 {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots_are_cube_roots() {
        assert_eq!(cube_root(-1.0), 0.0);
        for x in [0.001, 0.5, 1.0, 27.0, 1e6, 1e12] {
            let root = cube_root(x);
            assert!((root * root * root / x - 1.0).abs() < 1e-12, "{x}: {root}");
        }
    }

    #[test]
    fn cubic_comes_back_to_where_it_lost_after_the_time_that_the_rfc_says() {
        let mut window = Window::new(TcpVariant::Cubic);
        window.segments = 1_000.0;
        window.on_loss();
        assert_eq!(window.segments(), 700.0);
        // K = cbrt(W_max (1 - beta) / C) = 9.086 s.
        let rtt = Duration::from_millis(100);
        let mut now = Instant::ZERO;
        while now < Instant::ZERO + Duration::from_millis(9_100) {
            for _ in 0..window.segments() as u32 {
                window.on_ack(now, 1, rtt);
            }
            now = now + rtt;
        }
        assert!((985.0..1_001.0).contains(&window.segments()), "{}", window.segments());
    }

    #[test]
    fn reno_gains_a_segment_in_a_round_trip() {
        let mut window = Window::new(TcpVariant::Reno);
        window.segments = 100.0;
        window.on_loss();
        for _ in 0..50 {
            window.on_ack(Instant::ZERO, 1, Duration::ZERO);
        }
        assert!((50.97..51.0).contains(&window.segments()), "{}", window.segments());
    }
}
