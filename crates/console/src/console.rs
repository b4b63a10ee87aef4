//! Output for people and scripts. Only this module writes to standard output and standard error.
//!
//! | | standard output | standard error |
//! |---|---|---|
//! | terminal | results | progress, notes, warnings, errors |
//! | pipe | results | start, a line of progress a minute, end, warnings, errors |
//! | `--json` | events | errors |
//! | `-q` | results | errors |
//! | `recv --to -` | what is received | everything else |
//!
//! Results are the lines that the user asked for: tickets, lists, keys, the event that ends a
//! session. A program whose results were not written ends with an error. It ends without an error
//! message when the reader of its output closes it: `fontana send FILE | head -1`. Other lines are
//! dropped if their reader does not take them.

use crate::exit;
use crate::failure::Failure;
use crate::json::{Notice, line};
use crate::output::{Ended, Line, Output};
use fontana::net::ThreadError;
use fontana::{CancellationToken, Outcome};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, IsTerminal};

/// Errors of items that are printed for people: about what a terminal shows.
const LISTED: u64 = 20;

/// The destination of messages.
pub struct Console {
    json: bool,
    quiet: bool,
    /// Standard output carries received content, and nothing else.
    carries_data: bool,
    out: Output,
    err: Output,
    bars: MultiProgress,
    /// Progress is printed as lines: there is no terminal to draw bars on.
    prints_lines: bool,
}

impl Console {
    /// `stop` is cancelled when standard output is closed: the session's output then has no reader.
    /// `carries_data`: standard output carries received content.
    pub fn new(json: bool, quiet: bool, carries_data: bool, stop: &CancellationToken) -> Self {
        let terminals = io::stderr().is_terminal() && (carries_data || io::stdout().is_terminal());
        let target = if terminals && !json && !quiet {
            // Ten frames per second look smooth, and slow terminals can draw them.
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        Self {
            json,
            quiet,
            carries_data,
            out: Output::new(
                Box::new(|bytes| Ok(rustix::io::write(rustix::stdio::stdout(), bytes)?)),
                dropped,
                Some(stop.clone()),
            ),
            err: Output::new(
                Box::new(|bytes| Ok(rustix::io::write(rustix::stdio::stderr(), bytes)?)),
                if json && carries_data { dropped } else { not_shown },
                None,
            ),
            bars: MultiProgress::with_draw_target(target),
            prints_lines: !terminals && !json && !quiet,
        }
    }

    /// Lets threads write all lines from now on, except to terminals. Call it when a session
    /// begins, after its process is confined.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn write_aside(&self) -> Result<(), ThreadError> {
        if !io::stdout().is_terminal() && !self.carries_data {
            self.out.write_aside("stdout")?;
        }
        if !io::stderr().is_terminal() {
            self.err.write_aside("stderr")?;
        }
        Ok(())
    }

    /// Waits until everything is written, at most two seconds for a reader that takes nothing.
    /// Returns the outcome of a command that has ended with `outcome`: another one if results were
    /// not written.
    pub fn finish(&self, outcome: Outcome) -> Outcome {
        let ended = if self.carries_data { Ended::Written } else { self.out.finish() };
        self.show_error();
        if ended == Ended::Failed && !self.out.has_failed() {
            let message = "the reader of standard output does not take all results";
            self.err(&paragraph("error", "31", message, ""), Line::Event);
        }
        let ended_err = self.err.finish();
        match if self.carries_data { ended_err } else { ended } {
            Ended::Written => outcome,
            Ended::Closed => outcome.worst(Outcome::Interrupted),
            Ended::Failed => outcome.worst(Outcome::Io),
        }
    }

    /// Whether events are wanted.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether standard output was closed by its reader.
    pub fn is_closed(&self) -> bool {
        self.out.is_closed()
    }

    /// Whether progress bars are visible.
    pub fn draws(&self) -> bool {
        !self.bars.is_hidden()
    }

    /// Adds a progress bar, which is invisible if standard error is no terminal.
    pub fn bar(&self, bar: ProgressBar) -> ProgressBar {
        self.bars.add(bar)
    }

    /// Writes an event for scripts. It is dropped, and counted, if its reader takes nothing.
    pub fn event(&self, event: &impl Serialize) {
        if self.json {
            self.out(line(event), Line::Event);
        }
    }

    /// Writes an event that is a result. It is lost only with an error.
    pub fn result_event(&self, event: &impl Serialize) {
        if self.json {
            self.out(line(event), Line::Result);
        }
    }

    /// Writes a result for people, also with `-q`.
    pub fn result(&self, text: impl Display) {
        if !self.json {
            self.out(format!("{text}\n"), Line::Result);
        }
    }

    /// Writes a note, if standard error is a terminal.
    pub fn note(&self, text: impl Display) {
        if !self.json && !self.quiet && io::stderr().is_terminal() {
            self.err(&format!("{text}\n"), Line::Event);
        }
    }

    /// Writes the start or the end of a session, also if standard error is no terminal.
    pub fn say(&self, text: impl Display) {
        if !self.json && !self.quiet {
            self.err(&format!("{text}\n"), Line::Event);
        }
    }

    /// Writes a question. The caller has checked that a person can answer.
    pub fn ask(&self, text: impl Display) {
        self.err(&text.to_string(), Line::Event);
    }

    /// Writes a line of progress, if there are no bars.
    pub fn progress(&self, text: impl Display) {
        if self.prints_lines {
            self.err(&format!("{text}\n"), Line::Event);
        }
    }

    /// Writes a warning with a hint.
    pub fn warning(&self, message: &str, hint: &str) {
        self.event(&Notice::Warning { message: message.into(), hint: hint.into() });
        if !self.json && !self.quiet {
            self.err(&paragraph("warning", "33", message, hint), Line::Event);
        }
    }

    /// Prints the errors of items that a command goes on without: the first ones for people, all as
    /// events. Returns the worst outcome.
    pub fn failures(&self, failures: impl IntoIterator<Item = Failure>) -> Outcome {
        let (mut worst, mut count) = (Outcome::Complete, 0_u64);
        for failure in failures {
            worst = worst.worst(failure.outcome);
            count += 1;
            self.failure_among(count, &failure);
        }
        if count > LISTED {
            let more = count - LISTED;
            let message = format!("{more} more errors (all of them: --json)");
            self.err(&paragraph("error", "31", &message, ""), Line::Event);
        }
        worst
    }

    /// Prints an error of an item, for people only if it is one of the first. `count`: how many
    /// there are so far.
    pub fn failure_among(&self, count: u64, failure: &Failure) {
        match count <= LISTED {
            true => self.failure(failure),
            false => self.failure_event(failure),
        }
    }

    /// Prints an error, and what helps.
    pub fn failure(&self, failure: &Failure) {
        self.failure_event(failure);
        // Without a reader of events it is the exit code that says it.
        let Failure { message, hint, .. } = failure;
        self.err(&paragraph("error", "31", message, hint), Line::Event);
    }

    fn failure_event(&self, failure: &Failure) {
        let Failure { outcome, message, hint } = failure;
        self.result_event(&Notice::Error {
            message: message.clone(),
            hint: hint.clone(),
            code: exit::code(*outcome),
        });
    }

    fn out(&self, text: String, line: Line) {
        if self.carries_data {
            return self.err(&text, line);
        }
        // A line for people keeps its order with those on standard error.
        self.bars.suspend(|| self.out.line(text, line));
        if !self.json {
            self.out.keep_order();
        }
        self.show_error();
    }

    fn err(&self, text: &str, line: Line) {
        self.bars.suspend(|| self.err.line(text.to_owned(), line));
        self.err.keep_order();
    }

    /// Says once that standard output cannot be written to. It may work again: a disk that is full
    /// ends no session.
    fn show_error(&self) {
        if let Some(error) = self.out.take_error() {
            let message = format!("cannot write to standard output: {error}");
            self.err(&paragraph("error", "31", &message, ""), Line::Event);
        }
    }
}

/// The event that `events` events were dropped.
fn dropped(events: u64) -> String {
    line(&Notice::Dropped { events })
}

/// The line for people that lines were dropped.
fn not_shown(lines: u64) -> String {
    format!("({lines} lines are missing here: their reader took nothing)\n")
}

/// Columns of the terminal on standard error; 80 if it does not say.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(80)
}

/// `error: MESSAGE` and the hint, indented, below it. Colored only on a terminal, and without
/// `NO_COLOR` (no-color.org).
fn paragraph(kind: &str, color: &str, message: &str, hint: &str) -> String {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let head = if io::stderr().is_terminal() && !forbidden {
        format!("\x1b[1;{color}m{kind}:\x1b[0m {message}\n")
    } else {
        format!("{kind}: {message}\n")
    };
    hint.lines().fold(head, |text, line| format!("{text}  {line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_is_indented_below_the_message() {
        // The output of tests is captured: no terminal, no color.
        assert_eq!(
            paragraph("error", "31", "no", "do this\nor that"),
            "error: no\n  do this\n  or that\n"
        );
        assert_eq!(paragraph("error", "31", "no", ""), "error: no\n");
    }
}
