//! Files that a list names for a running FCAST session.

use crate::send::name_list::{Listed, ListedPath};
use fontana::{ErrorKind, Outcome, Sender};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::Count;

/// The files that join a session.
pub(super) struct Joining {
    /// Where the list is.
    place: String,
    /// What the next order sends.
    waiting: Vec<ListedPath>,
    errors: u64,
    /// That of the worst error.
    outcome: Outcome,
}

impl Joining {
    pub(super) fn new(place: Option<&str>) -> Self {
        let place = place.unwrap_or_default().to_owned();
        Self { place, waiting: Vec::new(), errors: 0, outcome: Outcome::Complete }
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Handles what the list has next.
    pub(super) fn take(
        &mut self,
        sender: &Sender,
        next: Result<Listed, Failure>,
        console: &Console,
    ) {
        let is_end = next == Ok(Listed::End);
        match next {
            Err(failure) => return self.show(&failure, console),
            Ok(Listed::Name(listed)) => return self.waiting.push(listed),
            Ok(Listed::Push | Listed::End) => {}
        }
        // Examined together: they share an order, and take less memory.
        let paths = std::mem::take(&mut self.waiting);
        let added = self.add(sender, &paths, console);
        if added > 0 {
            console.say(format_args!("added from the list: {}", Count(added, "path")));
        }
        if let Err(error) = if is_end { sender.finish() } else { sender.go() } {
            self.show(&error.into(), console);
        }
    }

    /// Adds all but those that cannot be sent. Returns their number.
    fn add(&mut self, sender: &Sender, paths: &[ListedPath], console: &Console) -> u64 {
        let Some(first) = paths.first() else { return 0 };
        let all: Vec<_> = paths.iter().map(|listed| listed.path.clone()).collect();
        let Err(error) = sender.add_all(&all) else { return paths.len() as u64 };
        let is_of_session = matches!(error.kind(), ErrorKind::NoFurtherFiles | ErrorKind::Range);
        if paths.len() > 1 && !is_of_session {
            let (one, other) = paths.split_at(paths.len() / 2);
            return self.add(sender, one, console) + self.add(sender, other, console);
        }
        let mut failure = Failure::from(error);
        failure.message = format!("line {} of {}: {}", first.line, self.place, failure.message);
        self.show(&failure, console);
        0
    }

    fn show(&mut self, failure: &Failure, console: &Console) {
        self.errors += 1;
        console.failure_among(self.errors, failure);
        self.outcome = self.outcome.worst(failure.outcome);
    }
}
