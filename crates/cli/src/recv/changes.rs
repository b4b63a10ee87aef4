//! `--exec` while a session of plain FLUTE is watched: the program runs when everything that was
//! announced is in place, and again after each change. Changes that come while it runs, such as
//! several updates of a file, are one.

use super::confine::Hook;
use crate::hook::{Described, Report};
use fontana::wire::Toi;
use fontana::{Outcome, ReceiveEvent, Verified};
use fontana_console::failure::Failure;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Failures of the program that wait to be shown.
const MAX_FAILURES: usize = 16;

/// The files of a session that is watched.
#[derive(Default)]
pub(super) struct Changes {
    /// Those that are being received.
    open: BTreeSet<Toi>,
    /// One was completed, or deleted, since the program has run last.
    has_changed: bool,
    files: u64,
    bytes: u64,
}

impl Changes {
    /// Notes what happens to files. What the program is to be told, if it is due.
    pub(super) fn note(&mut self, event: &ReceiveEvent) -> Option<Report> {
        match event {
            ReceiveEvent::FileFound { toi, .. } => _ = self.open.insert(*toi),
            ReceiveEvent::ObjectDone(report) => {
                self.open.remove(&report.toi);
                self.has_changed = true;
                self.files = self.files.saturating_add(1);
                self.bytes = self.bytes.saturating_add(report.bytes);
            }
            ReceiveEvent::ObjectFailed { toi, .. } | ReceiveEvent::ObjectDropped { toi, .. } => {
                self.open.remove(toi);
            }
            ReceiveEvent::FileDeleted { .. } => self.has_changed = true,
            _ => return None,
        }
        let is_due = self.open.is_empty() && std::mem::take(&mut self.has_changed);
        is_due.then(|| {
            let mut described = Described::default();
            described.select(self.files);
            Report::new(None, Some(Verified::None), self.bytes, &described)
        })
    }
}

/// The runs of the program, on a thread of their own: the reception goes on meanwhile.
#[derive(Default)]
pub(super) struct Runs {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What the next run is told: the last of what has come since the present one began.
    next: Option<Report>,
    has_ended: bool,
    failures: Vec<Failure>,
    outcome: Option<Outcome>,
}

impl Runs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a run after the present one.
    pub(super) fn request(&self, report: Report) {
        self.lock().next = Some(report);
        self.changed.notify_all();
    }

    /// The run that was asked for last is the last one.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Runs the program whenever that is asked for, until the end.
    pub(super) fn work(&self, hook: &mut Hook<'_>) {
        self.work_with(|report| hook.run(report));
    }

    fn work_with(&self, mut run: impl FnMut(&Report) -> Result<(), Failure>) {
        loop {
            let waits = |state: &mut State| state.next.is_none() && !state.has_ended;
            let mut state =
                self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
            let Some(report) = state.next.take() else { return };
            drop(state);
            let result = run(&report);
            let mut state = self.lock();
            let outcome = result.as_ref().map_or_else(|f| f.outcome, |()| Outcome::Complete);
            state.outcome = Some(state.outcome.map_or(outcome, |before| before.worst(outcome)));
            if state.failures.len() < MAX_FAILURES {
                state.failures.extend(result.err());
            }
        }
    }

    /// The failures that were not shown yet.
    pub(super) fn failures(&self) -> Vec<Failure> {
        std::mem::take(&mut self.lock().failures)
    }

    /// The worst outcome so far.
    pub(super) fn outcome(&self) -> Outcome {
        self.lock().outcome.unwrap_or(Outcome::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn report() -> Report {
        Report::new(None, None, 0, &Described::default())
    }

    #[test]
    fn a_deletion_is_a_change() {
        let mut changes = Changes::default();
        assert!(changes.note(&ReceiveEvent::FileDeleted { name: "a".to_owned() }).is_some());
        assert!(changes.note(&ReceiveEvent::AllAnnouncedReceived).is_none());
    }

    #[test]
    fn changes_that_come_while_the_program_runs_are_one() {
        let runs = Runs::default();
        let ((began, begins), (go_on, goes_on)) = (channel(), channel());
        std::thread::scope(|scope| {
            let run = move |_: &Report| {
                began.send(()).unwrap();
                goes_on.recv().unwrap();
                Err(Failure::new(Outcome::Io, "failed", ""))
            };
            scope.spawn(|| runs.work_with(run));
            runs.request(report());
            begins.recv().unwrap();
            (0..9).for_each(|_| runs.request(report()));
            runs.end();
            go_on.send(()).unwrap();
            begins.recv().unwrap();
            go_on.send(()).unwrap();
        });
        assert_eq!((runs.failures().len(), runs.outcome()), (2, Outcome::Io));
    }
}
