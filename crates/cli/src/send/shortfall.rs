//! A sender that does not reach its rate: whether, and why.

use fontana::SendProgress;
use fontana_console::console::Console;
use fontana_console::units::{ExactRate, Rate, Time};
use std::time::Duration;

/// Time over which the rate is averaged. A shorter shortfall may be a pause of the host.
const WINDOW: Duration = Duration::from_secs(5);

/// Smallest share of the rate that is no shortfall: timers and control packets cost a few per cent.
const LEAST: f64 = 0.9;

/// The rate of a session over windows, compared with the one that was asked for.
pub(super) struct Shortfall {
    asked_bits_per_second: u64,
    copies: u64,
    /// The progress at the beginning of the window.
    start: SendProgress,
    was_told: bool,
    /// No receiver needs the content now, or none did in a part of the window.
    rests: bool,
    has_rested: bool,
}

impl Shortfall {
    pub(super) fn new(asked_bits_per_second: u64, copies: u64) -> Self {
        let start = SendProgress::default();
        Self {
            asked_bits_per_second,
            copies,
            start,
            was_told: false,
            rests: false,
            has_rested: false,
        }
    }

    /// No content is sent, because no receiver needs it; or it is sent again.
    pub(super) fn rest(&mut self, rests: bool) {
        self.rests = rests;
        self.has_rested = true;
    }

    /// Warns once, at the end of the first window in which the rate was missed.
    pub(super) fn watch(&mut self, progress: &SendProgress, console: &Console) {
        let span = progress.elapsed.saturating_sub(self.start.elapsed);
        if self.was_told || span < WINDOW {
            return;
        }
        let start = std::mem::replace(&mut self.start, *progress);
        if std::mem::replace(&mut self.has_rested, self.rests) {
            return;
        }
        let bytes = progress.stats.wire_bytes.saturating_sub(start.stats.wire_bytes);
        let rate = (bytes * self.copies) as f64 * 8.0 / span.as_secs_f64();
        if rate >= LEAST * self.asked_bits_per_second as f64 {
            return;
        }
        self.was_told = true;
        let message = format!(
            "sent {} of {} in the last {}",
            Rate(rate),
            ExactRate(self.asked_bits_per_second),
            Time(WINDOW),
        );
        let hint = if progress.stats.underruns > start.stats.underruns {
            "packets are not ready in time: this host reads or encodes too slowly; see its disk \
             and processors (iostat, top), give more memory (--memory), or lower the rate (--rate)"
        } else {
            "the interface takes no more, or this host is busy; see ip -s link and top, or lower \
             the rate (--rate)"
        };
        console.warning(&message, hint);
    }
}
