//! The sender's side: issues roll calls and keeps the state of each receiver.

use super::head_count::HeadCount;
use super::round_trip::{RoundTrip, UNKNOWN_ROUND_TRIP};
use super::status::{
    CrowdSummary, Expected, ExpectedReceiver, ExpectedState, MissingReceiver, ReceiverStatus,
};
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{
    Feedback, Fingerprint, Hash, InstanceId, OpenedFeedback, ReceiverId, ReceiverLabel,
    ReceiverState, RollCall, RollCallList, Tsi,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Interval of roll calls.
const EVERY: Duration = Duration::from_millis(500);
/// Interval of roll calls before the first report, if the number of receivers is not known.
const EVERY_WHILE_SEARCHING: Duration = Duration::from_millis(200);
/// Shortest interval of roll calls. Overload makes the next one come sooner.
const LEAST_INTERVAL: Duration = Duration::from_millis(20);
/// Roll calls that list a receiver after its final report. A receiver stops after two; the third is
/// for those that lose one, where there is room.
const LISTINGS: usize = 3;
/// Rounds after which a receiver that no longer reports is not waited for.
const SILENT_ROUNDS: u32 = 2;

/// What a collector needs to know.
#[derive(Clone, Debug)]
pub struct CollectorConfig {
    /// The run of the sender.
    pub instance: InstanceId,
    /// The session.
    pub tsi: Tsi,
    /// Hash of the manifest that complete receivers have.
    pub manifest: Hash,
    /// Address that the reports are sent to.
    pub collector: SocketAddr,
    /// The receivers that are expected.
    pub expected: Expected,
    /// Reports that all receivers together send per second, at most; at least 1.
    pub budget_per_second: u32,
    /// Fingerprints that fit into a roll call.
    pub list_capacity: usize,
    /// Receivers that are remembered, each in about 250 bytes. Further ones are counted as ignored.
    pub max_receivers: usize,
    /// Seed of the salts.
    pub seed: u64,
}

/// Why a report was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredReport {
    /// It is another answer of a receiver.
    NotAReport,
    /// Its counter is not above the last one of the process.
    Replayed,
    /// The receiver's key is expected, and has not signed it.
    NotSigned,
    /// As many receivers are known as the collector remembers.
    TooMany,
}

/// A receiver that has reported.
#[derive(Debug)]
struct Known {
    status: ReceiverStatus,
    counter: u64,
    /// Round of its last report.
    round: u32,
    /// It waits to be listed.
    is_queued: bool,
}

/// Issues roll calls, and collects the reports of the receivers.
#[derive(Debug)]
pub struct ReportCollector {
    config: CollectorConfig,
    random: SplitMix64,
    head_count: HeadCount,
    receivers: BTreeMap<ReceiverId, Known>,
    /// Processes by their label, if it is not empty.
    labels: BTreeMap<ReceiverLabel, BTreeSet<ReceiverId>>,
    /// Receivers with a final state, by the number of roll calls that list them.
    to_list: [VecDeque<ReceiverId>; LISTINGS],
    /// Times of the reports of the last second.
    recent: VecDeque<Instant>,
    ignored: u64,
    /// Largest estimate of a round.
    estimate: f64,
    /// Estimate at the end of the last round.
    last_estimate: Option<u32>,
    serial: u64,
    called_at: Option<Instant>,
    next_call: Instant,
    /// A roll call is wanted before, and perhaps a new round.
    is_wanted: bool,
    begins_round: bool,
    round_trip: RoundTrip,
}

impl ReportCollector {
    /// A collector that has received nothing. Its first roll call is due at `now`.
    pub fn new(config: CollectorConfig, now: Instant) -> Self {
        let known = match &config.expected {
            Expected::Anyone => None,
            Expected::Count(count) => Some(*count),
            Expected::Named(list) => u32::try_from(list.len()).ok(),
        };
        Self {
            random: SplitMix64::new(config.seed, 0),
            head_count: HeadCount::new(config.budget_per_second, known, now),
            config,
            receivers: BTreeMap::new(),
            labels: BTreeMap::new(),
            to_list: Default::default(),
            recent: VecDeque::new(),
            ignored: 0,
            estimate: 0.0,
            last_estimate: None,
            serial: 0,
            called_at: None,
            next_call: now,
            is_wanted: false,
            begins_round: false,
            round_trip: RoundTrip::default(),
        }
    }

    /// Records a datagram that is no report for this session, or a forged one.
    pub fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// Handles a report. Whether the session's group key is required was checked when it was
    /// opened. Returns the receiver's state if it is new or has changed.
    ///
    /// # Errors
    /// Why the report was ignored.
    pub fn handle_report(
        &mut self,
        now: Instant,
        opened: &OpenedFeedback,
    ) -> Result<Option<ReceiverStatus>, IgnoredReport> {
        let result = self.take(now, opened);
        self.ignored += u64::from(result.is_err());
        result
    }

    fn take(
        &mut self,
        now: Instant,
        opened: &OpenedFeedback,
    ) -> Result<Option<ReceiverStatus>, IgnoredReport> {
        let Feedback::Report(report) = &opened.feedback else {
            return Err(IgnoredReport::NotAReport);
        };
        if self.receivers.get(&report.receiver).is_some_and(|known| known.counter >= opened.counter)
        {
            return Err(IgnoredReport::Replayed);
        }
        let key = self.expected(&report.label).and_then(|expected| expected.key);
        let is_signed = match key {
            Some(key) if !opened.is_signed_by(&key) => return Err(IgnoredReport::NotSigned),
            key => key.is_some(),
        };
        let is_known = self.receivers.contains_key(&report.receiver);
        self.count(now, report.round, &report.receiver);
        if !is_known && self.receivers.len() >= self.config.max_receivers {
            return Err(IgnoredReport::TooMany);
        }
        let last = self.receivers.get(&report.receiver).map(|known| &known.status);
        let is_contradictory = last.is_some_and(|last| {
            let goes_back = last.report.state.is_final() && last.report.state != report.state;
            last.is_contradictory || goes_back || last.report.label != report.label
        });
        let is_news = last.is_none_or(|last| {
            last.report.state != report.state || last.is_contradictory != is_contradictory
        });
        if !is_known && !report.label.is_empty() {
            self.labels.entry(report.label.clone()).or_default().insert(report.receiver);
        }
        let status = ReceiverStatus {
            report: report.clone(),
            reported_at: now,
            is_signed,
            is_contradictory,
        };
        let was_queued = self.receivers.get(&report.receiver).is_some_and(|known| known.is_queued);
        let is_queued = report.state.is_final();
        if is_queued && !was_queued {
            self.to_list[0].push_back(report.receiver);
        }
        let known = Known {
            status: status.clone(),
            counter: opened.counter,
            round: report.round,
            is_queued: is_queued || was_queued,
        };
        self.receivers.insert(report.receiver, known);
        Ok(is_news.then_some(status))
    }

    /// Counts a report of `round`.
    fn count(&mut self, now: Instant, round: u32, receiver: &ReceiverId) {
        let known = self.receivers.get(receiver);
        if round == self.head_count.round() && known.is_none_or(|known| known.round != round) {
            self.head_count.reply(now);
        }
        while self.recent.front().is_some_and(|&at| at + Duration::from_secs(1) <= now) {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        // Twice the budget bounds the list.
        if self.recent.len() > 2 * self.config.budget_per_second as usize {
            self.recent.clear();
            self.head_count.overload(now);
            let soon = self.called_at.map_or(now, |at| at + LEAST_INTERVAL);
            self.next_call = self.next_call.min(soon.max(now));
        }
    }

    /// Whether the receiver has reported.
    pub fn knows(&self, receiver: &ReceiverId) -> bool {
        self.receivers.contains_key(receiver)
    }

    /// Asks for a roll call before the next one is due.
    pub fn want_call(&mut self) {
        self.is_wanted = true;
    }

    /// Asks for a roll call that begins a round, in which few receivers report at once.
    pub fn want_round(&mut self) {
        (self.is_wanted, self.begins_round) = (true, true);
    }

    /// Whether receivers have reported, and all of them a final state, but those that no longer
    /// report. Looks at every receiver.
    pub fn has_only_final(&self) -> bool {
        !self.receivers.is_empty() && self.outstanding().next().is_none()
    }

    /// Whether receivers have reported lately, and no final state. `counts`: whose reports count.
    /// Looks at every receiver.
    pub fn is_followed(&self, counts: impl Fn(&ReceiverStatus) -> bool) -> bool {
        self.outstanding().any(counts)
    }

    /// Number of receivers: those that have reported, or more by the estimate of the last round. In
    /// the first round, the number that is assumed.
    pub fn head_count(&self) -> u32 {
        let known = u32::try_from(self.receivers.len()).unwrap_or(u32::MAX);
        known.max(self.last_estimate.unwrap_or_else(|| self.head_count.assumed()))
    }

    /// Handles an authentic answer of a receiver, of any kind: measures the round trip.
    pub fn measure(&mut self, now: Instant, answer: &Feedback) {
        self.round_trip.answer(now, answer.echo());
    }

    /// The largest time lately from a roll call to an answer, without the receiver's wait. At most
    /// 500 ms, and that before the first answer.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.largest().min(UNKNOWN_ROUND_TRIP)
    }

    /// The same, at most 5 s.
    pub fn long_round_trip(&self) -> Duration {
        self.round_trip.largest()
    }

    /// When the next roll call is due.
    pub fn poll_timeout(&self) -> Instant {
        let wanted = self.called_at.filter(|_| self.is_wanted).map(|at| at + LEAST_INTERVAL);
        wanted.map_or(self.next_call, |wanted| wanted.min(self.next_call))
    }

    /// The roll call that is due; `None` if none is. Its repair round and its rate round are the
    /// caller's.
    pub fn poll_roll_call(&mut self, now: Instant, unix_ms: u64) -> Option<RollCall> {
        if now < self.poll_timeout() {
            return None;
        }
        // The number of receivers is halved at most once in the regular interval.
        if now >= self.next_call {
            let outstanding = self.outstanding().count();
            let (round, estimate) = (self.head_count.round(), self.head_count.estimate());
            self.estimate = self.estimate.max(estimate.unwrap_or(0.0));
            self.head_count.announce(now, outstanding);
            if self.head_count.round() != round {
                self.last_estimate = Some(estimate.unwrap_or(0.0).ceil() as u32);
            }
            let every = if self.head_count.is_searching() { EVERY_WHILE_SEARCHING } else { EVERY };
            self.next_call = now + every;
        } else if std::mem::take(&mut self.begins_round) {
            self.head_count.begin_round(now, self.outstanding().count());
        } else {
            self.head_count.advance(now);
        }
        (self.called_at, self.is_wanted) = (Some(now), false);
        self.serial += 1;
        self.round_trip.call(now, self.serial);
        let salt = self.random.next_u64();
        let known = self.receivers.values().filter(|known| known.status.report.state.is_final());
        let known = known.count() as u32;
        Some(RollCall {
            instance: self.config.instance,
            tsi: self.config.tsi,
            serial: self.serial,
            issued_unix_ms: unix_ms,
            collector: self.config.collector,
            round: self.head_count.round(),
            position: self.head_count.position(),
            window_ms: u32::try_from(self.head_count.window().as_millis()).unwrap_or(u32::MAX),
            head_count: self.head_count.assumed(),
            known,
            salt,
            list: self.list(salt),
            repair: None,
            rate: None,
        })
    }

    /// True if receivers wait to be told that their final state is known.
    pub fn is_listing(&self) -> bool {
        self.to_list.iter().take(LISTINGS - 1).any(|queue| !queue.is_empty())
    }

    /// Receivers that have reported lately, and no final state.
    fn outstanding(&self) -> impl Iterator<Item = &ReceiverStatus> {
        let round = self.head_count.round();
        let waits = move |known: &&Known| {
            let is_silent = round.wrapping_sub(known.round) > SILENT_ROUNDS;
            !known.status.report.state.is_final() && !is_silent
        };
        self.receivers.values().filter(waits).map(|known| &known.status)
    }

    /// The shorter of two lists: receivers whose final state is newly known, or names whose final
    /// state is not.
    fn list(&mut self, salt: u64) -> RollCallList {
        let waiting: usize = self.to_list.iter().map(VecDeque::len).sum();
        let missing = self.missing_names(waiting.min(self.config.list_capacity));
        let mut listed = Vec::new();
        let mut moved: [Vec<ReceiverId>; LISTINGS] = Default::default();
        let capacity = if missing.is_some() { usize::MAX } else { self.config.list_capacity };
        for (queue, moved) in self.to_list.iter_mut().zip(&mut moved) {
            while listed.len() < capacity
                && let Some(receiver) = queue.pop_front()
            {
                listed.push(Fingerprint::of_receiver(salt, &receiver));
                moved.push(receiver);
            }
        }
        let [first, second, third] = moved;
        let [_, queue_of_second, queue_of_third] = &mut self.to_list;
        queue_of_second.extend(first);
        queue_of_third.extend(second);
        for receiver in third {
            if let Some(known) = self.receivers.get_mut(&receiver) {
                known.is_queued = false;
            }
        }
        match missing {
            None => RollCallList::Known(listed),
            Some(labels) => RollCallList::Missing(
                labels.iter().map(|label| Fingerprint::of_label(salt, label)).collect(),
            ),
        }
    }

    /// The expected names without a final state, if they are fewer than `limit`, and if their
    /// absence says of all receivers that wait to be listed that they are known.
    fn missing_names(&self, limit: usize) -> Option<Vec<ReceiverLabel>> {
        let Expected::Named(expected) = &self.config.expected else { return None };
        let is_known = |label: &ReceiverLabel| match self.state_of(label) {
            ExpectedState::Reported(state) => state.is_final(),
            _ => false,
        };
        let mut missing = Vec::new();
        for ExpectedReceiver { label, .. } in expected {
            if !is_known(label) {
                missing.push(label.clone());
            }
            if missing.len() >= limit {
                return None;
            }
        }
        let is_told = |receiver: &ReceiverId| {
            let label = self.receivers.get(receiver).map(|known| &known.status.report.label);
            label.is_some_and(|label| !label.is_empty() && !missing.contains(label))
        };
        self.to_list.iter().flatten().all(is_told).then_some(missing)
    }

    fn expected(&self, label: &ReceiverLabel) -> Option<&ExpectedReceiver> {
        match &self.config.expected {
            Expected::Named(list) if !label.is_empty() => {
                list.iter().find(|expected| expected.label == *label)
            }
            _ => None,
        }
    }

    /// What is known of the receiver with this label.
    fn state_of(&self, label: &ReceiverLabel) -> ExpectedState {
        let processes = self.labels.get(label).into_iter().flatten();
        let processes: Vec<_> =
            processes.filter_map(|id| self.receivers.get(id)).map(|known| &known.status).collect();
        let latest = match &processes[..] {
            [] => return ExpectedState::NeverHeard,
            [only] => only,
            // One key: the later process replaces the earlier one.
            several if several.iter().all(|status| status.is_signed) => {
                let latest = several.iter().max_by_key(|status| status.report.started_unix_ms);
                let Some(latest) = latest else { return ExpectedState::NeverHeard };
                latest
            }
            _ => return ExpectedState::Contradictory,
        };
        match latest.report.state {
            _ if latest.is_contradictory => ExpectedState::Contradictory,
            ReceiverState::Complete { manifest } if manifest != self.config.manifest => {
                ExpectedState::OtherContent
            }
            state => ExpectedState::Reported(state),
        }
    }

    /// True if this receiver is complete.
    fn is_complete(&self, status: &ReceiverStatus) -> bool {
        let is_complete = |state| matches!(state, ReceiverState::Complete { manifest } if manifest == self.config.manifest);
        if status.report.label.is_empty() {
            return !status.is_contradictory && is_complete(status.report.state);
        }
        match self.state_of(&status.report.label) {
            ExpectedState::Reported(state) => {
                is_complete(state) && is_complete(status.report.state)
            }
            _ => false,
        }
    }

    /// The receivers that have reported, in the order of their ids.
    pub fn receivers(&self) -> impl ExactSizeIterator<Item = &ReceiverStatus> {
        self.receivers.values().map(|known| &known.status)
    }

    /// All receivers together. Looks at every receiver.
    pub fn summary(&self) -> CrowdSummary {
        let complete = self.receivers().filter(|status| self.is_complete(status)).count() as u64;
        let failed =
            |status: &&ReceiverStatus| matches!(status.report.state, ReceiverState::Failed { .. });
        let known = self.receivers.len() as u64;
        let (expected, named) = match &self.config.expected {
            Expected::Anyone => (None, &[][..]),
            Expected::Count(count) => (Some(u64::from(*count)), &[][..]),
            Expected::Named(list) => (Some(list.len() as u64), &list[..]),
        };
        let is_missing = |state: &ExpectedState| {
            !matches!(state, ExpectedState::Reported(ReceiverState::Complete { .. }))
        };
        let missing: Vec<_> = named
            .iter()
            .map(|expected| (expected, self.state_of(&expected.label)))
            .filter(|(_, state)| is_missing(state))
            .map(|(expected, state)| MissingReceiver { label: expected.label.clone(), state })
            .collect();
        CrowdSummary {
            known,
            complete,
            failed: self.receivers().filter(failed).count() as u64,
            estimate: (self.estimate.round() as u64).max(known),
            expected,
            missing,
            ignored: self.ignored,
        }
    }
}
