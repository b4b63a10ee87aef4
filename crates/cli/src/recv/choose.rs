//! The choice of a session: a numbered list of the sessions received so far, and a question.

use fontana::net::ThreadError;
use fontana::net::thread::spawn;
use fontana::wire::{Printable, StreamIndex};
use fontana::{Offer, SessionKey};
use fontana_console::console::Console;
use fontana_console::units::{Bytes, Count};
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Asks a person which of the sessions on offer to receive.
pub(super) struct Chooser {
    offers: Vec<SessionKey>,
    lines: Receiver<String>,
}

/// The answer of the user.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// Take this session, counted from 0.
    Take(usize),
    Quit,
    Unclear,
}

impl Answer {
    fn of(line: &str, offers: usize) -> Self {
        match line.trim() {
            "q" | "quit" => Self::Quit,
            // With one session, Enter means yes.
            "" | "y" | "yes" if offers == 1 => Self::Take(0),
            number => match number.parse::<usize>() {
                Ok(number) if (1..=offers).contains(&number) => Self::Take(number - 1),
                _ => Self::Unclear,
            },
        }
    }
}

impl Chooser {
    pub(super) fn new() -> Result<Self, ThreadError> {
        let (sender, lines) = channel();
        // Waits for a line until the program ends: a read from a terminal cannot be cancelled.
        spawn("answers", move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { offers: Vec::new(), lines })
    }

    /// Adds a session to the list.
    pub(super) fn offer(&mut self, offer: &Offer, console: &Console) {
        let manifest = &offer.manifest;
        let (files, bytes) = (manifest.files().count() as u64, manifest.content_length());
        let label = Printable(manifest.label());
        let what = format!("{label}  {}, {}", Count(files, "file"), Bytes(bytes));
        self.list(offer.session, &what, console);
    }

    /// Adds a stream to the list.
    pub(super) fn offer_stream(
        &mut self,
        session: SessionKey,
        index: &StreamIndex,
        console: &Console,
    ) {
        let name = Printable(index.name.as_bytes());
        let what = format!("{name}  a stream, {} so far", Bytes(index.length()));
        self.list(session, &what, console);
    }

    /// Adds a session of plain FLUTE to the list.
    pub(super) fn offer_flute(&mut self, session: SessionKey, files: u64, console: &Console) {
        let what = format!("FLUTE, not authenticated  {}", Count(files, "file"));
        self.list(session, &what, console);
    }

    fn list(&mut self, session: SessionKey, what: &str, console: &Console) {
        let known = self.offers.iter().position(|key| *key == session);
        let number = known.unwrap_or_else(|| {
            self.offers.push(session);
            self.offers.len() - 1
        });
        console.note(format_args!(
            "{:>3}  {what}  from {}, session {}",
            number + 1,
            session.source,
            session.tsi,
        ));
        if known.is_none() && number == 0 {
            console.note("which one? (its number; others appear as they are received; q to quit)");
        }
    }

    /// Returns the chosen session, if there is an answer. Breaks if the user wants none.
    pub(super) fn poll(&mut self, console: &Console) -> ControlFlow<(), Option<SessionKey>> {
        let line = match self.lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Empty) => return ControlFlow::Continue(None),
            Err(TryRecvError::Disconnected) => return ControlFlow::Break(()),
        };
        match Answer::of(&line, self.offers.len()) {
            Answer::Take(index) => {
                return ControlFlow::Continue(self.offers.get(index).copied());
            }
            Answer::Quit => return ControlFlow::Break(()),
            Answer::Unclear if self.offers.is_empty() => console.note("nothing has been heard yet"),
            Answer::Unclear => {
                console.note(format_args!("a number from 1 to {}, or q", self.offers.len()));
            }
        }
        ControlFlow::Continue(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_number_on_the_list() {
        assert_eq!(Answer::of("1", 2), Answer::Take(0));
        assert_eq!(Answer::of(" 2\n", 2), Answer::Take(1));
        for unclear in ["0", "3", "-1", "one", "", "y", "99999999999999999999"] {
            assert_eq!(Answer::of(unclear, 2), Answer::Unclear, "{unclear}");
        }
        assert_eq!(Answer::of("", 1), Answer::Take(0));
        assert_eq!(Answer::of("", 0), Answer::Unclear);
        assert_eq!(Answer::of("q", 0), Answer::Quit);
    }
}
