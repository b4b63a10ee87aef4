//! A sender that does not reach its rate, or whose rate does not follow its receivers: whether, and
//! why.

use fontana::SendProgress;
use fontana_console::console::Console;
use fontana_console::units::{ExactRate, Rate, Time};
use std::time::Duration;

/// Time over which the rate is averaged. A shorter shortfall may be a pause of the host.
const WINDOW: Duration = Duration::from_secs(5);

/// Smallest share of the rate that is no shortfall: timers and control packets cost a few per cent.
const LEAST: f64 = 0.9;

/// The check of the rate of a session.
pub(super) enum RateCheck {
    /// The rate is constant.
    Constant(Shortfall),
    /// The rate follows what receivers report (`--feedback`).
    Following(Following),
}

impl RateCheck {
    /// Warns once if something limits the rate that the user has not asked for.
    pub(super) fn watch(&mut self, progress: &SendProgress, console: &Console) {
        match self {
            Self::Constant(shortfall) => shortfall.watch(progress, console),
            Self::Following(following) => {
                if following.is_unanswered(progress.elapsed) {
                    console.warning(
                        "receivers report, and none says at which rate packets arrive: the rate \
                         stays what it was at first",
                        "have receivers say it: fontana recv --feedback, and not --report alone",
                    );
                }
            }
        }
    }

    /// A receiver has reported its state.
    pub(super) fn note_report(&mut self) {
        if let Self::Following(following) = self {
            following.has_reports = true;
        }
    }

    /// The rate has changed, because a receiver has reported what it gets.
    pub(super) fn note_rate(&mut self) {
        if let Self::Following(following) = self {
            following.is_over = true;
        }
    }
}

/// Receivers that may say what they get.
#[derive(Default)]
pub(super) struct Following {
    has_reports: bool,
    /// When the first progress after the first report was.
    since: Option<Duration>,
    /// One has said what it gets, or a warning was given.
    is_over: bool,
}

impl Following {
    /// Whether receivers have reported for a while, and none has said what it gets. True once.
    fn is_unanswered(&mut self, elapsed: Duration) -> bool {
        if self.is_over || !self.has_reports {
            return false;
        }
        self.is_over = elapsed.saturating_sub(*self.since.get_or_insert(elapsed)) >= WINDOW;
        self.is_over
    }
}

/// The rate of a session over windows, compared with the one that was asked for.
pub(super) struct Shortfall {
    asked_bits_per_second: u64,
    copies: u64,
    /// The progress at the beginning of the window.
    start: SendProgress,
    was_told: bool,
}

impl Shortfall {
    pub(super) fn new(asked_bits_per_second: u64, copies: u64) -> Self {
        let start = SendProgress::default();
        Self { asked_bits_per_second, copies, start, was_told: false }
    }

    /// Warns once, at the end of the first window in which the rate was missed.
    fn watch(&mut self, progress: &SendProgress, console: &Console) {
        let span = progress.elapsed.saturating_sub(self.start.elapsed);
        if self.was_told || span < WINDOW {
            return;
        }
        let start = std::mem::replace(&mut self.start, *progress);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_that_only_report_their_state_are_named_once() {
        let at = Duration::from_secs;
        let mut silent = Following::default();
        assert!((0..100).all(|second| !silent.is_unanswered(at(second))), "no receiver reports");
        silent.has_reports = true;
        let told = (100..200).filter(|&second| silent.is_unanswered(at(second)));
        assert_eq!(told.collect::<Vec<_>>(), [105]);

        let mut check = RateCheck::Following(Following::default());
        check.note_report();
        check.note_rate();
        let RateCheck::Following(followed) = &mut check else { return };
        assert!((0..100).all(|second| !followed.is_unanswered(at(second))));
    }
}
