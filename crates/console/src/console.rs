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
//! The program ends without an error when the reader of its output closes it: `fontana send FILE |
//! head -1`.

use crate::exit;
use crate::failure::Failure;
use crate::json::{Notice, line};
use fontana::CancellationToken;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use serde::Serialize;
use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// The destination of messages.
pub struct Console {
    json: bool,
    quiet: bool,
    /// Standard output carries received content, and nothing else.
    carries_data: bool,
    /// The reader of standard output has closed it.
    closed: Cell<bool>,
    bars: MultiProgress,
    /// Progress is printed as lines: there is no terminal to draw bars on.
    prints_lines: bool,
    stop: CancellationToken,
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
            closed: Cell::new(false),
            bars: MultiProgress::with_draw_target(target),
            prints_lines: !terminals && !json && !quiet,
            stop: stop.clone(),
        }
    }

    /// Whether events are wanted.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether standard output was closed by its reader.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Whether progress bars are visible.
    pub fn draws(&self) -> bool {
        !self.bars.is_hidden()
    }

    /// Adds a progress bar, which is invisible if standard error is no terminal.
    pub fn bar(&self, bar: ProgressBar) -> ProgressBar {
        self.bars.add(bar)
    }

    /// Writes an event for scripts.
    pub fn event(&self, event: &impl Serialize) {
        if self.json {
            self.out(&line(event));
        }
    }

    /// Writes a result for people, also with `-q`.
    pub fn result(&self, text: impl Display) {
        if !self.json {
            self.out(&format!("{text}\n"));
        }
    }

    /// Writes a note, if standard error is a terminal.
    pub fn note(&self, text: impl Display) {
        if !self.json && !self.quiet && io::stderr().is_terminal() {
            self.err(&format!("{text}\n"));
        }
    }

    /// Writes the start or the end of a session, also if standard error is no terminal.
    pub fn say(&self, text: impl Display) {
        if !self.json && !self.quiet {
            self.err(&format!("{text}\n"));
        }
    }

    /// Writes a question. The caller has checked that a person can answer.
    pub fn ask(&self, text: impl Display) {
        self.err(&text.to_string());
    }

    /// Writes a line of progress, if there are no bars.
    pub fn progress(&self, text: impl Display) {
        if self.prints_lines {
            self.err(&format!("{text}\n"));
        }
    }

    /// Writes a warning with a hint.
    pub fn warning(&self, message: &str, hint: &str) {
        self.event(&Notice::Warning { message: message.into(), way_out: hint.into() });
        if !self.json && !self.quiet {
            self.err(&paragraph("warning", "33", message, hint));
        }
    }

    /// Prints an error, and what helps.
    pub fn failure(&self, failure: &Failure) {
        let Failure { outcome, message, hint } = failure;
        self.event(&Notice::Error {
            message: message.clone(),
            way_out: hint.clone(),
            code: exit::code(*outcome),
        });
        self.err(&paragraph("error", "31", message, hint));
    }

    fn out(&self, text: &str) {
        if self.carries_data {
            return self.err(text);
        }
        if self.closed.get() {
            return;
        }
        let write = || {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()
        };
        if let Err(error) = self.bars.suspend(write) {
            self.closed.set(true);
            self.stop.cancel();
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.err(&paragraph("error", "31", &format!("standard output: {error}"), ""));
            }
        }
    }

    fn err(&self, text: &str) {
        // A failure to write to standard error cannot be reported.
        let _ = self.bars.suspend(|| io::stderr().write_all(text.as_bytes()));
    }
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
