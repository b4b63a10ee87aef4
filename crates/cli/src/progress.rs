//! Progress bars.

use crate::console::Console;
use crate::events::passes;
use crate::units::{Bytes, Count, Percent, Rate, Time};
use fontana::{ReceiveProgress, SendProgress};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::VecDeque;
use std::time::Duration;

/// Window over which rates are averaged: a shorter one fluctuates, a longer one lags behind.
const WINDOW: Duration = Duration::from_secs(2);

/// The growth rate of a counter.
#[derive(Debug, Default)]
pub(crate) struct Meter(VecDeque<(Duration, u64)>);

impl Meter {
    /// Adds a reading of the counter.
    pub(crate) fn push(&mut self, at: Duration, count: u64) {
        // The oldest reading that stays is just outside the window, so that the window is covered.
        while self.0.get(1).is_some_and(|(second, _)| *second + WINDOW <= at) {
            self.0.pop_front();
        }
        self.0.push_back((at, count));
    }

    /// Growth per second over the window; 0 if there are fewer than two readings.
    pub(crate) fn per_second(&self) -> f64 {
        let (Some((from, before)), Some((to, now))) = (self.0.front(), self.0.back()) else {
            return 0.0;
        };
        let seconds = to.saturating_sub(*from).as_secs_f64();
        if seconds > 0.0 { now.saturating_sub(*before) as f64 / seconds } else { 0.0 }
    }
}

/// A gate that opens at most once a second.
#[derive(Debug, Default)]
pub(crate) struct OncePerSecond(Option<Duration>);

impl OncePerSecond {
    pub(crate) fn passes(&mut self, at: Duration) -> bool {
        let due = self.0.is_none_or(|last| at >= last + Duration::from_secs(1));
        if due {
            self.0 = Some(at);
        }
        due
    }
}

/// A bar with `template`. A test checks all templates.
fn bar(length: Option<u64>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━━ ");
    ProgressBar::with_draw_target(length, indicatif::ProgressDrawTarget::hidden()).with_style(style)
}

const BAR: &str = "{bar:24} {percent:>3} %  {msg}";
const NAMED_BAR: &str = "{prefix:<12} {bar:24} {percent:>3} %  {msg}";
const SPINNER: &str = "{spinner} {msg}";

/// A bar for the cases of experiments.
pub(crate) fn cases() -> ProgressBar {
    bar(Some(0), "{bar:24} {pos} of {len} cases, {elapsed}")
}

/// The progress of a sender.
pub(crate) struct SendBar {
    bar: ProgressBar,
    rate: Meter,
}

impl SendBar {
    /// `symbols`: number of symbols that will be sent; `None` if there is no end.
    pub(crate) fn new(console: &Console, symbols: Option<u64>) -> Self {
        let template = if symbols.is_some() { BAR } else { SPINNER };
        Self { bar: console.bar(bar(symbols, template)), rate: Meter::default() }
    }

    pub(crate) fn show(&mut self, progress: &SendProgress) {
        let stats = &progress.stats;
        self.rate.push(progress.elapsed, stats.wire_bytes);
        let passes = passes(stats, progress.source_symbols);
        self.bar.set_position(stats.source_symbols + stats.repair_symbols);
        self.bar.set_message(format!(
            "{}  {passes:.2} passes  {}  {}",
            Rate(self.rate.per_second() * 8.0),
            Count(stats.packets, "packet"),
            Time(whole_seconds(progress.elapsed)),
        ));
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a receiver.
pub(crate) struct ReceiveBar {
    bar: ProgressBar,
    rate: Meter,
    symbols: Meter,
}

impl ReceiveBar {
    pub(crate) fn new(console: &Console) -> Self {
        Self::with_bar(console.bar(bar(Some(1), BAR)))
    }

    /// One of several bars, with a name.
    pub(crate) fn named(console: &Console, name: &'static str) -> Self {
        let bar = console.bar(bar(Some(1), NAMED_BAR));
        bar.set_prefix(name);
        Self::with_bar(bar)
    }

    fn with_bar(bar: ProgressBar) -> Self {
        Self { bar, rate: Meter::default(), symbols: Meter::default() }
    }

    pub(crate) fn show(&mut self, progress: &ReceiveProgress) {
        if progress.source_symbols == 0 {
            return; // nothing was accepted yet
        }
        let have = progress.source_symbols.saturating_sub(progress.symbols_wanted);
        self.rate.push(progress.elapsed, progress.stats.payload_bytes);
        self.symbols.push(progress.elapsed, have);
        self.bar.set_length(progress.source_symbols);
        self.bar.set_position(have);
        if progress.symbols_wanted == 0 {
            return self.say("reception complete, verifying");
        }
        let left = progress.symbols_wanted as f64 / self.symbols.per_second();
        // There is no estimate at a rate of 0, or if it would be more than a week.
        let left = match Duration::try_from_secs_f64(left) {
            Ok(left) if left < Duration::from_secs(7 * 86_400) => {
                format!("{} left", Time(whole_seconds(left)))
            }
            _ => "waiting".to_owned(),
        };
        let level = match progress.most_channels {
            0 | 1 => String::new(),
            _ => format!("  {}", Count(progress.channels.into(), "channel")),
        };
        self.bar.set_message(format!(
            "{}{level}  loss {}  {} wanted  {left}",
            Rate(self.rate.per_second() * 8.0),
            Percent(progress.loss()),
            Count(progress.symbols_wanted, "symbol"),
        ));
    }

    pub(crate) fn say(&self, message: &'static str) {
        self.bar.set_message(message);
    }

    /// Leaves the bar as it is, with a last message.
    pub(crate) fn end(&self, message: &'static str) {
        self.bar.abandon_with_message(message);
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A summary of what was received, in a line.
pub(crate) fn received(progress: &ReceiveProgress, bytes: u64, files: u64) -> String {
    let inefficiency = progress.reception_inefficiency();
    format!(
        "received {}, {}, in {}: loss {}, reception inefficiency {}",
        Count(files, "file"),
        Bytes(bytes),
        Time(progress.elapsed),
        Percent(progress.loss()),
        inefficiency.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}")),
    )
}

/// Rounds to whole seconds from three seconds on.
pub(crate) fn whole_seconds(duration: Duration) -> Duration {
    if duration < Duration::from_secs(3) {
        duration
    } else {
        Duration::from_secs(duration.as_secs_f64().round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_forgets_what_was_before_its_window() {
        let mut meter = Meter::default();
        assert_eq!(meter.per_second(), 0.0);
        for tenth in 0..100 {
            let count = if tenth < 50 { 1000 * tenth } else { 50_000 + 10 * (tenth - 50) };
            meter.push(Duration::from_millis(100 * tenth), count);
        }
        assert!((meter.per_second() - 100.0).abs() < 1.0, "{}", meter.per_second());
    }

    #[test]
    fn once_per_second_is_at_most_once_per_second() {
        let mut gate = OncePerSecond::default();
        let at = |millis| Duration::from_millis(millis);
        assert!(gate.passes(at(200)));
        assert!(!gate.passes(at(1199)));
        assert!(gate.passes(at(1200)));
    }

    #[test]
    fn templates_are_valid() {
        for template in [BAR, NAMED_BAR, SPINNER] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
