//! Progress: bars on a terminal, a line a minute elsewhere.

use crate::events::passes;
use fontana::{ReceiveProgress, SendProgress};
use fontana_console::console::{Console, columns};
use fontana_console::units::{Bytes, Count, Percent, Rate, Time};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::VecDeque;
use std::time::Duration;

/// LCT header and payload id of a packet of content (`docs/wire.md`, section 1).
pub(crate) const PACKET_HEADER: u64 = 20;

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

/// A gate that opens at most once in a period.
#[derive(Debug)]
pub(crate) struct Gate {
    period: Duration,
    last: Option<Duration>,
}

impl Gate {
    /// For events: opens at once, then once a second.
    pub(crate) fn each_second() -> Self {
        Self { period: Duration::from_secs(1), last: None }
    }

    /// For lines of progress in a log: opens after a minute, then once a minute.
    fn each_minute() -> Self {
        Self { period: Duration::from_secs(60), last: Some(Duration::ZERO) }
    }

    pub(crate) fn passes(&mut self, at: Duration) -> bool {
        let due = self.last.is_none_or(|last| at >= last + self.period);
        if due {
            self.last = Some(at);
        }
        due
    }
}

/// A line that [`ProgressLine::fit`] has fitted.
const LINE: &str = "{msg}";

/// A line without a gauge.
pub(crate) fn line() -> ProgressBar {
    let style = ProgressStyle::with_template(LINE).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style)
}

/// Widths of the gauge in characters, the preferred one first.
const GAUGES: [usize; 2] = [24, 12];

/// A line of progress, in parts that can be left out.
#[derive(Default)]
struct ProgressLine {
    /// The receiver or the network, if there are several.
    name: Option<String>,
    /// The share that is done, from 0 to 1.
    share: Option<f64>,
    parts: Vec<Part>,
}

/// A part of a line. Its text has a constant width, so that a changing number moves nothing.
struct Part {
    text: String,
    /// Parts of a lower rank are left out first.
    rank: u8,
}

impl ProgressLine {
    fn part(&mut self, rank: u8, text: String) {
        self.parts.push(Part { text, rank });
    }

    /// The line in at most `columns` characters: without a gauge, then without the parts of the
    /// lowest ranks, if all of it does not fit.
    fn fit(&self, columns: usize) -> String {
        let name = self.name.as_ref().map(|name| format!("{name:<12}"));
        let percent = self.share.map(|share| format!("{:>3.0} %", 100.0 * share));
        let head: Vec<&str> = name.as_deref().into_iter().chain(percent.as_deref()).collect();
        let mut parts: Vec<&Part> = self.parts.iter().collect();
        let join = |parts: &[&Part]| {
            let texts = parts.iter().map(|part| part.text.as_str());
            head.iter().copied().chain(texts).collect::<Vec<_>>().join("  ")
        };
        let width = |line: &str| line.chars().count();
        while width(&join(&parts)) > columns
            && let Some(least) = parts.iter().map(|part| part.rank).min()
        {
            parts.retain(|part| part.rank > least);
        }
        let line = join(&parts);
        let room = columns.saturating_sub(width(&line) + 2);
        let gauge = GAUGES.into_iter().find(|gauge| *gauge <= room);
        let Some((gauge, share)) = gauge.zip(self.share) else {
            return line.chars().take(columns).collect();
        };
        let done = ((gauge as f64 * share) as usize).min(gauge);
        let gauge = format!("{}{}", "━".repeat(done), " ".repeat(gauge - done));
        match name.as_deref().and_then(|name| line.strip_prefix(name)) {
            Some(rest) => {
                format!("{:<12}  {gauge}{rest}", self.name.as_deref().unwrap_or_default())
            }
            None => format!("{gauge}  {line}"),
        }
    }

    /// All parts, for a log.
    fn in_words(&self) -> String {
        let percent = self.share.map(|share| format!("{:.0} %", 100.0 * share));
        let parts = self.parts.iter().map(|part| part.text.trim().to_owned());
        percent.into_iter().chain(parts).collect::<Vec<_>>().join(", ")
    }
}

/// A bar on the terminal, and the line of a minute elsewhere.
struct Display {
    bar: ProgressBar,
    name: Option<String>,
    minutes: Gate,
}

impl Display {
    fn new(console: &Console, name: Option<String>) -> Self {
        Self { bar: console.bar(line()), name, minutes: Gate::each_minute() }
    }

    fn show(&self, line: &ProgressLine) {
        // The cursor stays on the line if its last column is empty.
        self.bar.set_message(line.fit(columns().saturating_sub(1)));
    }

    fn say(&self, message: &'static str) {
        self.show(&self.message(message));
    }

    fn message(&self, message: &'static str) -> ProgressLine {
        let parts = vec![Part { text: message.to_owned(), rank: 0 }];
        ProgressLine { name: self.name.clone(), share: None, parts }
    }
}

/// The progress of a sender.
pub(crate) struct SendBar {
    display: Display,
    rate: Meter,
    /// Number of symbols that will be sent; `None` if there is no end.
    symbols: Option<u64>,
}

impl SendBar {
    /// `symbols`: number of symbols that will be sent; `None` if there is no end.
    pub(crate) fn new(console: &Console, symbols: Option<u64>) -> Self {
        Self { display: Display::new(console, None), rate: Meter::default(), symbols }
    }

    /// One of several bars, with a name.
    pub(crate) fn named(console: &Console, name: &str, symbols: Option<u64>) -> Self {
        let display = Display::new(console, Some(name.to_owned()));
        Self { display, rate: Meter::default(), symbols }
    }

    pub(crate) fn show(&mut self, progress: &SendProgress) {
        self.rate.push(progress.elapsed, progress.stats.wire_bytes);
        self.display.show(&self.line(progress));
    }

    /// The line for a log, once a minute.
    pub(crate) fn minute(&mut self, progress: &SendProgress) -> Option<String> {
        let due = self.display.minutes.passes(progress.elapsed);
        due.then(|| self.line(progress).in_words())
    }

    fn line(&self, progress: &SendProgress) -> ProgressLine {
        let stats = &progress.stats;
        let sent = stats.source_symbols + stats.repair_symbols;
        let share = self.symbols.map(|symbols| sent as f64 / symbols.max(1) as f64);
        let mut line = ProgressLine {
            name: self.display.name.clone(),
            share: share.map(|share| share.min(1.0)),
            ..ProgressLine::default()
        };
        line.part(3, format!("{:>12}", Rate(self.rate.per_second() * 8.0)));
        line.part(1, format!("{:>6.2} passes", passes(stats, progress.source_symbols)));
        line.part(0, format!("{:>17}", Count(stats.packets, "packet")));
        line.part(2, format!("{:>11}", Time(whole_seconds(progress.elapsed))));
        line
    }

    pub(crate) fn clear(&self) {
        self.display.bar.finish_and_clear();
    }
}

/// The progress of a receiver.
pub(crate) struct ReceiveBar {
    display: Display,
    rate: Meter,
    symbols: Meter,
    /// More follows when everything is there.
    is_stream: bool,
}

impl ReceiveBar {
    pub(crate) fn new(console: &Console) -> Self {
        Self::with(Display::new(console, None))
    }

    /// One of several bars, with a name.
    pub(crate) fn named(console: &Console, name: &str) -> Self {
        Self::with(Display::new(console, Some(name.to_owned())))
    }

    fn with(display: Display) -> Self {
        Self { display, rate: Meter::default(), symbols: Meter::default(), is_stream: false }
    }

    /// The progress of a stream.
    pub(crate) fn of_stream(console: &Console) -> Self {
        Self { is_stream: true, ..Self::new(console) }
    }

    pub(crate) fn show(&mut self, progress: &ReceiveProgress) {
        if progress.source_symbols == 0 {
            return; // nothing was accepted yet
        }
        self.rate.push(progress.elapsed, progress.stats.payload_bytes);
        self.symbols.push(progress.elapsed, available(progress));
        self.display.show(&self.line(progress));
    }

    /// The line for a log, once a minute.
    pub(crate) fn minute(&mut self, progress: &ReceiveProgress) -> Option<String> {
        let due = progress.source_symbols > 0 && self.display.minutes.passes(progress.elapsed);
        due.then(|| self.line(progress).in_words())
    }

    fn line(&self, progress: &ReceiveProgress) -> ProgressLine {
        if progress.symbols_wanted == 0 {
            let message = match self.is_stream {
                true => "waiting for more of the stream",
                false => "reception complete, verifying",
            };
            let line = self.display.message(message);
            return ProgressLine { share: Some(1.0), ..line };
        }
        let share = available(progress) as f64 / progress.source_symbols as f64;
        let mut line = ProgressLine {
            name: self.display.name.clone(),
            share: Some(share),
            ..ProgressLine::default()
        };
        line.part(4, format!("{:>12}", Rate(self.rate.per_second() * 8.0)));
        if progress.most_channels > 1 {
            line.part(0, format!("{:>11}", Count(progress.channels.into(), "channel")));
        }
        line.part(1, format!("loss {:>6}", Percent(progress.loss())));
        if let (Some(bytes), None) = (bytes_wanted(progress), &self.display.name) {
            line.part(2, format!("{:>8} left", Bytes(bytes)));
        }
        line.part(3, format!("{:>10}", self.time_left(progress)));
        line
    }

    fn time_left(&self, progress: &ReceiveProgress) -> String {
        let left = progress.symbols_wanted as f64 / self.symbols.per_second();
        // There is no estimate at a rate of 0, or if it would be more than a week.
        match Duration::try_from_secs_f64(left) {
            Ok(left) if left < Duration::from_secs(7 * 86_400) => {
                Time(whole_seconds(left)).to_string()
            }
            _ => "waiting".to_owned(),
        }
    }

    pub(crate) fn say(&self, message: &'static str) {
        self.display.say(message);
    }

    /// Leaves the bar as it is, with a last message.
    pub(crate) fn end(&self, message: &'static str) {
        self.say(message);
        self.display.bar.abandon();
    }

    pub(crate) fn clear(&self) {
        self.display.bar.finish_and_clear();
    }
}

/// Source symbols that a receiver need not receive any more.
fn available(progress: &ReceiveProgress) -> u64 {
    progress.source_symbols.saturating_sub(progress.symbols_wanted)
}

/// Bytes of content that are still to be received, from the mean size of the packets that have
/// arrived; `None` before the first one.
fn bytes_wanted(progress: &ReceiveProgress) -> Option<u64> {
    let stats = &progress.stats;
    let mean = stats.payload_bytes.checked_div(stats.datagrams)?;
    Some(progress.symbols_wanted.saturating_mul(mean.saturating_sub(PACKET_HEADER)))
}

/// A summary of what was received, in a line.
pub(crate) fn received(progress: &ReceiveProgress, bytes: u64, files: u64) -> String {
    format!(
        "received {}, {}, in {}: loss {}",
        Count(files, "file"),
        Bytes(bytes),
        Time(progress.elapsed),
        Percent(progress.loss()),
    )
}

/// The inefficiencies of a reception: the first is the product of the others, and of 1 and the
/// share of control packets. `None` if not all symbols came in packets of its sessions: they were
/// here before, or came from mirrors or other receivers.
pub(crate) fn inefficiencies(progress: &ReceiveProgress) -> Option<String> {
    let stats = &progress.stats;
    let symbols = stats.fresh + stats.late + stats.duplicates;
    let (decoding, distinctness) =
        (progress.decoding_inefficiency()?, progress.distinctness_inefficiency()?);
    let control = stats.control_packets as f64 / symbols as f64;
    (stats.pulled == 0 && decoding >= 1.0).then(|| {
        format!(
            "reception inefficiency {:.3} (decoding {decoding:.3}, distinctness \
             {distinctness:.3}, control {})",
            decoding * distinctness * (1.0 + control),
            Percent(Some(control)),
        )
    })
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
    fn a_gate_opens_at_most_once_in_its_period() {
        let at = |millis| Duration::from_millis(millis);
        let mut gate = Gate::each_second();
        assert!(gate.passes(at(200)));
        assert!(!gate.passes(at(1199)));
        assert!(gate.passes(at(1200)));
        let mut gate = Gate::each_minute();
        assert!(!gate.passes(at(59_999)));
        assert!(gate.passes(at(60_100)) && !gate.passes(at(120_099)) && gate.passes(at(120_100)));
    }

    #[test]
    fn inefficiencies_are_factors_and_are_left_out_where_symbols_came_otherwise() {
        let mut progress = ReceiveProgress::default();
        assert_eq!(inefficiencies(&progress), None, "nothing was to be received");
        progress.source_symbols = 1_000;
        let stats = &mut progress.stats;
        (stats.fresh, stats.late, stats.duplicates) = (1_000, 100, 110);
        // What was heard before a session was chosen is no part of it.
        (stats.control_packets, stats.session_packets) = (121, 24_264);
        let expected =
            "reception inefficiency 1.331 (decoding 1.100, distinctness 1.100, control 10.0 %)";
        assert_eq!(inefficiencies(&progress).as_deref(), Some(expected));
        progress.stats.pulled = 1;
        assert_eq!(inefficiencies(&progress), None, "from a mirror");
        progress.stats.pulled = 0;
        progress.source_symbols = 1_101;
        assert_eq!(inefficiencies(&progress), None, "some were here before");
    }

    #[test]
    fn the_template_is_valid() {
        assert!(ProgressStyle::with_template(LINE).is_ok());
    }

    fn hidden() -> Console {
        Console::new(true, true, false, &fontana::CancellationToken::new())
    }

    /// A reception of 1 GB that is halfway, with the widest numbers.
    fn halfway() -> ReceiveProgress {
        let mut progress = ReceiveProgress::default();
        progress.elapsed = Duration::from_secs(61);
        (progress.source_symbols, progress.symbols_wanted) = (744_048, 372_024);
        (progress.stats.datagrams, progress.stats.payload_bytes) = (1000, 1_364_000);
        (progress.stats.expected, progress.stats.lost) = (1000, 500);
        (progress.channels, progress.most_channels) = (50, 50);
        progress
    }

    #[test]
    fn progress_fits_every_width_and_drops_the_least_important_part_first() {
        let console = hidden();
        let mut bars = [ReceiveBar::new(&console), ReceiveBar::named(&console, "very lossy")];
        for bar in &mut bars {
            bar.show(&halfway());
            let line = bar.line(&halfway());
            for columns in 0..200 {
                assert!(line.fit(columns).chars().count() <= columns, "{}", line.fit(columns));
            }
        }
        let fitted = |columns| bars[0].line(&halfway()).fit(columns);
        let all = " 50 %     0.0 bit/s  50 channels  loss 50.0 %  500.0 MB left     waiting";
        assert_eq!(fitted(98), format!("{}{}  {all}", "━".repeat(12), " ".repeat(12)));
        assert_eq!(fitted(90), format!("{}{}  {all}", "━".repeat(6), " ".repeat(6)));
        assert_eq!(fitted(79), all);
        assert_eq!(fitted(59), all.replace("  50 channels", ""));
        assert_eq!(fitted(40), " 50 %     0.0 bit/s     waiting");
        // 80 columns have room for the gauges of the demonstration.
        let mut progress = halfway();
        progress.most_channels = 1;
        assert!(bars[1].line(&progress).fit(79).starts_with("very lossy    ━"));
    }

    #[test]
    fn a_log_gets_a_line_a_minute() {
        let mut bar = ReceiveBar::new(&hidden());
        let mut progress = halfway();
        bar.show(&progress);
        let line = "50 %, 0.0 bit/s, 50 channels, loss 50.0 %, 500.0 MB left, waiting";
        assert_eq!(bar.minute(&progress).as_deref(), Some(line));
        progress.elapsed = Duration::from_secs(120);
        assert_eq!(bar.minute(&progress), None);

        let mut bar = SendBar::new(&hidden(), Some(1000));
        let mut progress = SendProgress::default();
        assert_eq!(bar.minute(&progress), None);
        progress.elapsed = Duration::from_secs(60);
        (progress.source_symbols, progress.stats.repair_symbols) = (1000, 250);
        let line = "25 %, 0.0 bit/s, 0.25 passes, 0 packets, 1 min 00 s";
        assert_eq!(bar.minute(&progress).as_deref(), Some(line));
    }
}
