//! The receivers of sessions on several networks: one crowd, however many networks each is on.

use crate::send::reports::{MAX_EXPECTED, ReportWatch};
use fontana::reports::{CrowdSummary, ExpectedState, MissingReceiver, ReceiverStatus};
use fontana::wire::{Hash, ReceiverId, ReceiverState};
use fontana::{Crowd, Outcome, SendEvent};
use fontana_console::console::Console;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All receivers, and what is shown of them.
pub(super) struct Together<'a> {
    reports: ReportWatch<'a>,
    manifest: Hash,
    /// The last state of each session.
    crowds: Vec<Option<Arc<Crowd>>>,
    /// The receivers that have reported to any session that they are complete: as many as one
    /// remembers.
    complete: BTreeSet<ReceiverId>,
    /// States since all that are expected are complete.
    complete_for: usize,
}

impl<'a> Together<'a> {
    pub(super) fn new(sessions: usize, manifest: Hash, reports: ReportWatch<'a>) -> Self {
        let crowds = vec![None; sessions];
        Self { reports, manifest, crowds, complete: BTreeSet::new(), complete_for: 0 }
    }

    /// Shows an event about receivers. False if it is about something else.
    pub(super) fn handle(&mut self, session: usize, event: &SendEvent, console: &Console) -> bool {
        match event {
            SendEvent::Report(status) => {
                self.note(status);
                self.reports.show_report(status, console);
            }
            SendEvent::Slow { receiver, rate } => self.reports.note_slow(receiver, *rate, console),
            SendEvent::Crowd(crowd) => {
                let all = self.update(session, crowd);
                self.reports.show_crowd(&all, console);
            }
            _ => return false,
        }
        true
    }

    /// Whether all receivers that are expected are complete, and each session has confirmed it.
    pub(super) fn is_over(&self) -> bool {
        self.complete_for > self.crowds.len()
    }

    /// Shows the end, with the last state of each session.
    pub(super) fn conclude(
        mut self,
        crowds: impl IntoIterator<Item = (usize, Arc<Crowd>)>,
        console: &Console,
    ) -> Outcome {
        for (session, crowd) in crowds {
            self.update(session, &crowd);
        }
        let all = self.crowd();
        let lacks = all.summary.expected.is_some() && !all.summary.is_as_expected();
        let outcome = if lacks { Outcome::ReceiversIncomplete } else { Outcome::Complete };
        outcome.worst(self.reports.conclude(&all, console))
    }

    /// Takes the state of a session. Returns that of all.
    fn update(&mut self, session: usize, crowd: &Arc<Crowd>) -> Crowd {
        crowd.receivers.iter().for_each(|status| self.note(status));
        if let Some(last) = self.crowds.get_mut(session) {
            *last = Some(Arc::clone(crowd));
        }
        let all = self.crowd();
        self.complete_for = if all.summary.is_as_expected() { self.complete_for + 1 } else { 0 };
        all
    }

    fn note(&mut self, status: &ReceiverStatus) {
        let is_complete =
            status.report.state == ReceiverState::Complete { manifest: self.manifest };
        if !self.reports.believes(status) {
            return;
        }
        if status.is_contradictory {
            self.complete.remove(&status.report.receiver);
        } else if is_complete && self.complete.len() < MAX_EXPECTED {
            self.complete.insert(status.report.receiver);
        }
    }

    /// The receivers of all sessions. One that reports to several of them is complete once. News of
    /// many receivers come later than their number, so that at first too few may be complete.
    fn crowd(&self) -> Crowd {
        let crowds = || self.crowds.iter().flatten();
        let sum = |of: fn(&CrowdSummary) -> u64| crowds().map(|it| of(&it.summary)).sum::<u64>();
        let of_one = crowds().map(|crowd| crowd.summary.complete).max().unwrap_or(0);
        let complete = of_one.max(self.complete.len() as u64);
        let again = sum(|it| it.complete).saturating_sub(complete);
        let mut all = Crowd::default();
        all.summary = CrowdSummary {
            known: sum(|it| it.known).saturating_sub(again),
            complete,
            failed: sum(|it| it.failed),
            estimate: sum(|it| it.estimate).saturating_sub(again),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;
    use fontana::reports::Authority;
    use fontana::wire::{ReceiverLabel, ReceiverReport, RollCallEcho};

    const MANIFEST: Hash = Hash([3; 32]);

    fn status(number: u8, manifest: Hash, by: Authority) -> ReceiverStatus {
        let report = ReceiverReport {
            receiver: ReceiverId([number; 16]),
            label: ReceiverLabel::default(),
            started_unix_ms: 0,
            round: 1,
            echo: RollCallEcho::default(),
            state: ReceiverState::Complete { manifest },
            permille: 1_000,
            symbols_lacking: 0,
            loss_ppm: 0,
            kernel_drops: 0,
            channels: 1,
            seconds: 1,
        };
        let reported_at = fontana_proto::Instant::ZERO;
        ReceiverStatus { report, reported_at, by, is_contradictory: false }
    }

    /// A session that expects four receivers, and knows these complete ones.
    fn crowd(receivers: Vec<ReceiverStatus>, complete: u64) -> Arc<Crowd> {
        let mut crowd = Crowd::default();
        let known = receivers.len() as u64;
        crowd.summary = CrowdSummary { known, complete, expected: Some(4), ..Default::default() };
        crowd.receivers = receivers;
        Arc::new(crowd)
    }

    #[test]
    fn a_receiver_on_two_networks_is_complete_once_and_strangers_are_not() {
        let words = "fontana send x -i a -i b --receivers 4".split(' ');
        let Command::Send(arguments) = Arguments::parse_from(words).command else { panic!() };
        let mut all = Together::new(2, MANIFEST, ReportWatch::new(&arguments, None));
        let member = |number| status(number, MANIFEST, Authority::Group);
        let stranger =
            Authority::Unauthenticated(fontana::reports::Network::of([10, 0, 0, 9].into()));
        let strange = vec![
            member(2),
            status(8, MANIFEST, stranger),
            status(9, Hash([4; 32]), Authority::Group),
        ];
        all.update(0, &crowd(vec![member(1), member(2)], 2));
        let seen = all.update(1, &crowd([strange, vec![member(3)]].concat(), 2)).summary;
        assert_eq!((seen.complete, seen.is_as_expected()), (3, false));
        // The numbers of a session come before its news.
        assert!(!all.update(1, &crowd(Vec::new(), 3)).summary.is_as_expected());
        // A session to which it has not reported since.
        let mut before = member(1);
        before.report.state = ReceiverState::Receiving;
        all.update(0, &crowd(vec![before], 1));
        for times in 1..=3 {
            assert!(all.update(1, &crowd(vec![member(4)], 3)).summary.is_as_expected());
            assert_eq!(all.is_over(), times > 2);
        }
        let contradictory = ReceiverStatus { is_contradictory: true, ..member(4) };
        assert!(!all.update(1, &crowd(vec![contradictory], 2)).summary.is_as_expected());
        assert!(!all.is_over());
    }
}
