//! The receivers of sessions on several networks: one crowd, however many networks each is on.

use crate::send::reports::ReportWatch;
use fontana::reports::{CrowdSummary, ExpectedState, MissingReceiver, ReceiverStatus};
use fontana::wire::{ReceiverId, ReceiverState};
use fontana::{Crowd, Outcome, SendEvent};
use fontana_console::console::Console;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All receivers, and what is shown of them.
pub(super) struct Together<'a> {
    reports: ReportWatch<'a>,
    /// The last state of each session.
    crowds: Vec<Option<Arc<Crowd>>>,
    /// The sessions to which each receiver has reported that it is complete.
    complete: BTreeMap<ReceiverId, Vec<usize>>,
    /// States that were shown since all that are expected are complete.
    complete_for: usize,
}

impl<'a> Together<'a> {
    pub(super) fn new(sessions: usize, reports: ReportWatch<'a>) -> Self {
        let crowds = vec![None; sessions];
        Self { reports, crowds, complete: BTreeMap::new(), complete_for: 0 }
    }

    /// Shows an event about receivers. False if it is about something else.
    pub(super) fn handle(&mut self, session: usize, event: &SendEvent, console: &Console) -> bool {
        match event {
            SendEvent::Report(status) => {
                self.note(session, status);
                self.reports.show_report(status, console);
            }
            SendEvent::Slow { receiver, rate } => self.reports.note_slow(receiver, *rate, console),
            SendEvent::Crowd(crowd) => {
                self.set(session, crowd);
                let all = self.crowd();
                self.complete_for += usize::from(all.summary.is_as_expected());
                self.reports.show_crowd(&all, console);
            }
            _ => return false,
        }
        true
    }

    /// Whether all receivers that are expected are complete, and each session has had a second to
    /// confirm it.
    pub(super) fn is_over(&self) -> bool {
        self.complete_for > 2 * self.crowds.len()
    }

    /// Shows the end, with the last state of each session.
    pub(super) fn conclude(
        mut self,
        crowds: impl IntoIterator<Item = (usize, Arc<Crowd>)>,
        console: &Console,
    ) -> Outcome {
        for (session, crowd) in crowds {
            crowd.receivers.iter().for_each(|status| self.note(session, status));
            self.set(session, &crowd);
        }
        let all = self.crowd();
        let lacks = all.summary.expected.is_some() && !all.summary.is_as_expected();
        let outcome = if lacks { Outcome::ReceiversIncomplete } else { Outcome::Complete };
        outcome.worst(self.reports.conclude(&all, console))
    }

    fn set(&mut self, session: usize, crowd: &Arc<Crowd>) {
        if let Some(last) = self.crowds.get_mut(session) {
            *last = Some(Arc::clone(crowd));
        }
    }

    fn note(&mut self, session: usize, status: &ReceiverStatus) {
        let is_complete = matches!(status.report.state, ReceiverState::Complete { .. });
        if is_complete && !status.is_contradictory {
            let sessions = self.complete.entry(status.report.receiver).or_default();
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
    }

    /// The receivers of all sessions. One that reports to several of them counts once, as far as it
    /// is complete.
    fn crowd(&self) -> Crowd {
        let crowds = || self.crowds.iter().flatten();
        let sum = |of: fn(&CrowdSummary) -> u64| crowds().map(|it| of(&it.summary)).sum::<u64>();
        let again: usize = self.complete.values().map(|sessions| sessions.len() - 1).sum();
        let [known, complete] = [sum(|it| it.known), sum(|it| it.complete)];
        let mut all = Crowd::default();
        all.summary = CrowdSummary {
            known: known.saturating_sub(again as u64),
            complete: complete.saturating_sub(again as u64),
            failed: sum(|it| it.failed),
            estimate: sum(|it| it.estimate).saturating_sub(again as u64),
            expected: crowds().find_map(|crowd| crowd.summary.expected),
            missing: self.missing(),
            ignored: sum(|it| it.ignored),
        };
        let mut receivers: BTreeMap<ReceiverId, ReceiverStatus> = BTreeMap::new();
        for status in crowds().flat_map(|crowd| &crowd.receivers) {
            let last = receivers.entry(status.report.receiver).or_insert_with(|| status.clone());
            if status.report.state.is_final() && !last.report.state.is_final() {
                *last = status.clone();
            }
        }
        all.receivers = receivers.into_values().collect();
        all.is_whole = crowds().all(|crowd| crowd.is_whole);
        all.is_authenticated = crowds().all(|crowd| crowd.is_authenticated);
        all
    }

    /// The names that no session has a complete receiver of.
    fn missing(&self) -> Vec<MissingReceiver> {
        let mut crowds = self.crowds.iter();
        let first = crowds.next().and_then(Option::as_ref);
        let mut missing = first.map(|crowd| crowd.summary.missing.clone()).unwrap_or_default();
        for crowd in crowds.flatten() {
            let others = &crowd.summary.missing;
            let others: BTreeMap<_, _> = others.iter().map(|it| (&it.label, it.state)).collect();
            missing.retain_mut(|it| match others.get(&it.label) {
                Some(&state) if it.state == ExpectedState::NeverHeard => {
                    it.state = state;
                    true
                }
                Some(_) => true,
                None => false,
            });
        }
        missing
    }
}
