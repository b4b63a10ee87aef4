//! The sender's side: issues roll calls and keeps the state of each receiver.

use super::authority::Authority;
use super::head_count::HeadCount;
use super::places::{Counts, Place, Places};
use super::round_trip::{RoundTrip, UNKNOWN_ROUND_TRIP};
use super::signers::Signers;
use super::status::{
    CrowdSummary, Expected, ExpectedReceiver, ExpectedState, MissingReceiver, ReceiverStatus,
};
use crate::feedback::AT_ONCE;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{
    Feedback, Fingerprint, Hash, InstanceId, OpenedFeedback, ReceiverId, ReceiverLabel,
    ReceiverReport, ReceiverState, RollCall, RollCallEcho, RollCallList, Tsi,
};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Interval of roll calls.
const EVERY: Duration = Duration::from_millis(500);
/// Interval of roll calls before the first report, if the number of receivers is not known, or if
/// they are on this network.
const EVERY_WHILE_SEARCHING: Duration = Duration::from_millis(200);
/// The same of receivers on this network whose number is not known, until one is assumed.
const EVERY_WHILE_SEARCHING_NEAR: Duration = Duration::from_millis(50);
/// Shortest interval of roll calls. Overload makes the next one come sooner.
const LEAST_INTERVAL: Duration = Duration::from_millis(20);
/// States that are shown in a second, at most: as many as receivers report in the budget.
const NEWS_PER_SECOND: u32 = 200;

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
    /// Receivers that are remembered, each in at most 512 bytes. Of these, a quarter at most are
    /// receivers that nothing authenticates, unless they are trusted. Further ones are counted as
    /// ignored.
    pub max_receivers: usize,
    /// The user trusts receivers that nothing authenticates.
    pub trusts_unauthenticated: bool,
    /// No router is between the sender and a receiver: their answers arrive at once.
    pub is_near: bool,
    /// Seed of the salts.
    pub seed: u64,
}

impl CollectorConfig {
    /// A collector that expects no receiver in particular, and takes 200 reports per second.
    pub fn new(
        instance: InstanceId,
        tsi: Tsi,
        manifest: Hash,
        collector: SocketAddr,
        seed: u64,
    ) -> Self {
        Self {
            instance,
            tsi,
            manifest,
            collector,
            expected: Expected::Anyone,
            budget_per_second: 200,
            list_capacity: 100,
            max_receivers: 1 << 16,
            trusts_unauthenticated: false,
            is_near: false,
            seed,
        }
    }
}

/// Why a report was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredReport {
    /// It is another answer of a receiver.
    NotAReport,
    /// It answers a round that was not called yet.
    NotCalled,
    /// Its counter is not above the last one of the process.
    Replayed,
    /// The receiver's key is expected, and has not signed it.
    NotSigned,
    /// A later process signs with the same key.
    Superseded,
    /// As many receivers are known as the collector remembers.
    TooMany,
}

/// Issues roll calls, and collects the reports of the receivers.
#[derive(Debug)]
pub struct ReportCollector {
    config: CollectorConfig,
    random: SplitMix64,
    head_count: HeadCount,
    places: Places,
    /// The fingerprints of the expected labels, in ascending order, and their numbers.
    labels: Vec<(Fingerprint, u32)>,
    signers: Arc<Signers>,
    /// Receivers that nothing authenticates count for a part of a round only.
    limits_others: bool,
    /// Answers of this round that count.
    answers: Counts,
    /// Changes of what is known of the receivers.
    changes: u64,
    /// The last time that was seen.
    seen: Instant,
    /// The present second of news, and how many of them it had.
    news: (Instant, u32),
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
        let named = match &config.expected {
            Expected::Named(list) => &list[..],
            Expected::Anyone | Expected::Count(_) => &[],
        };
        let CollectorConfig { manifest, max_receivers, trusts_unauthenticated, seed, .. } = config;
        let head_count = HeadCount::new(config.budget_per_second, known, config.is_near, now);
        let mut places =
            Places::new(manifest, named.len(), max_receivers, trusts_unauthenticated, seed);
        places.begin_round(now, head_count.round());
        let fingerprint = |expected: &ExpectedReceiver| places.fingerprint(&expected.label);
        let mut labels: Vec<_> = named.iter().map(fingerprint).zip(0..).collect();
        labels.sort_unstable();
        let signers = Signers::new(&config.expected);
        Self {
            random: SplitMix64::new(config.seed, 0),
            head_count,
            places,
            labels,
            limits_others: !signers.is_empty() && !config.trusts_unauthenticated,
            signers: Arc::new(signers),
            answers: Counts::default(),
            changes: 0,
            seen: now,
            news: (now, 0),
            config,
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
        self.ignore_many(1);
    }

    /// Records so many of them.
    pub fn ignore_many(&mut self, count: u64) {
        self.ignored = self.ignored.saturating_add(count);
    }

    /// Whose signatures count.
    pub fn signers(&self) -> &Arc<Signers> {
        &self.signers
    }

    /// What vouches for an answer that came from this address ([`Signers::authority`]).
    pub fn authority(&self, opened: &OpenedFeedback, from: IpAddr) -> Authority {
        self.signers.authority(opened, from)
    }

    /// Whether a receiver with this name is expected.
    pub fn expects(&self, label: &ReceiverLabel) -> bool {
        self.expected_number(label).is_some()
    }

    /// Whether what such a receiver says of itself counts for the session: all of it where nothing
    /// authenticates any, and only what is authentic where receivers sign.
    pub fn counts(&self, by: Authority) -> bool {
        by.is_authentic() || !self.limits_others
    }

    /// Handles a report. `by`: its [`authority`](Self::authority). Returns the receiver's state if
    /// it is new or has changed.
    ///
    /// # Errors
    /// Why the report was ignored.
    pub fn handle_report(
        &mut self,
        now: Instant,
        opened: &OpenedFeedback,
        by: Authority,
    ) -> Result<Option<ReceiverStatus>, IgnoredReport> {
        self.seen = self.seen.max(now);
        let result = self.take(now, opened, by);
        self.ignored += u64::from(result.is_err());
        result
    }

    fn take(
        &mut self,
        now: Instant,
        opened: &OpenedFeedback,
        by: Authority,
    ) -> Result<Option<ReceiverStatus>, IgnoredReport> {
        let Feedback::Report(report) = &opened.feedback else {
            return Err(IgnoredReport::NotAReport);
        };
        // Half of the numbers are behind the present one.
        if (self.round().wrapping_sub(report.round) as i32) < 0 {
            return Err(IgnoredReport::NotCalled);
        }
        let number = self.expected_number(&report.label);
        let expected = number.and_then(|number| self.named().get(number as usize));
        let key = expected.and_then(|expected| expected.key);
        let is_signed = matches!(by, Authority::Key(signer) if key == Some(signer));
        if (key.is_some() || matches!(by, Authority::Key(_))) && !is_signed {
            return Err(IgnoredReport::NotSigned);
        }
        let known = self.places.slot(by, &report.receiver);
        let place = known.and_then(|slot| self.places.get(slot));
        // One that answers a later roll call is no repeat: any member can report in its name, with
        // a counter that it will not reach.
        let is_repeat =
            |place: &Place| place.counter >= opened.counter && place.serial >= report.echo.serial;
        if place.is_some_and(is_repeat) {
            return Err(IgnoredReport::Replayed);
        }
        let last_round = place.map(|place| place.round);
        if known.is_none() {
            self.supersede(by, report)?;
        }
        let is_first = report.round == self.head_count.round() && last_round != Some(report.round);
        if by.is_authentic() {
            self.count(now, by, is_first);
        }
        let mut status = ReceiverStatus {
            report: report.clone(),
            reported_at: now,
            by,
            is_contradictory: false,
        };
        let slot = match known {
            Some(slot) => slot,
            None => {
                self.changes += 1;
                let (round, seen) = (self.head_count.round(), self.seen);
                let is_gone = |place: &Place| place.is_gone(round, seen);
                let slot = self.places.add(by, status.clone(), number, is_gone);
                slot.ok_or(IgnoredReport::TooMany)?
            }
        };
        if !by.is_authentic() && is_first {
            self.count(now, by, is_first);
        }
        let (counter, is_known) = (opened.counter, known.is_some());
        let put = |place: &mut Place| {
            let last = Some(&place.status).filter(|_| is_known);
            status.is_contradictory = last.is_some_and(|last| {
                let goes_back = last.report.state.is_final() && last.report.state != report.state;
                last.is_contradictory || goes_back || last.report.label != report.label
            });
            let is_news = last.is_none_or(|last| {
                last.report.state != report.state
                    || last.is_contradictory != status.is_contradictory
            });
            // The place keeps its first label.
            status.report.label.clone_from(&place.status.report.label);
            place.status.clone_from(&status);
            (place.counter, place.round, place.serial) =
                (counter, report.round, report.echo.serial);
            is_news
        };
        let is_news = self.places.update(slot, put).ok_or(IgnoredReport::TooMany)?;
        // A stranger who uses the id of a receiver that signs would be told in its place.
        if report.state.is_final() && self.counts(by) {
            self.places.queue_listing(slot);
        }
        if is_news {
            self.changes += 1;
            self.places.queue_news(slot);
        }
        Ok(is_news.then_some(status))
    }

    /// Forgets the process that this one, which is not known, replaces under its key and label: an
    /// earlier one, or one that has gone without an end. An old report of that time is of no use to
    /// an attacker: it answers no later roll call.
    fn supersede(&mut self, by: Authority, report: &ReceiverReport) -> Result<(), IgnoredReport> {
        let Authority::Key(_) = by else { return Ok(()) };
        let fingerprint = self.places.fingerprint(&report.label);
        let mut processes = self.places.labelled(fingerprint, &report.label);
        let Some(place) = processes.find(|place| place.status.by == by) else { return Ok(()) };
        let last = &place.status.report;
        let is_later =
            (report.started_unix_ms, report.receiver) > (last.started_unix_ms, last.receiver);
        let answers_later = report.echo.serial > place.serial;
        let replaces = place.is_gone(self.head_count.round(), self.seen) && answers_later;
        if !is_later && !replaces {
            return Err(IgnoredReport::Superseded);
        }
        let replaced = last.receiver;
        drop(processes);
        if let Some(slot) = self.places.slot(by, &replaced) {
            self.places.remove(slot);
        }
        Ok(())
    }

    /// Counts a report. `is_first`: it is its receiver's first one in this round.
    fn count(&mut self, now: Instant, by: Authority, is_first: bool) {
        let counted =
            self.answers.limited(self.limits_others, self.config.budget_per_second as usize);
        if is_first {
            self.answers.add(by);
        }
        let is_counted =
            self.answers.limited(self.limits_others, self.config.budget_per_second as usize)
                > counted;
        if is_first && is_counted {
            self.head_count.reply(now);
        }
        if !by.is_authentic() && !is_counted {
            return;
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

    /// The state of the next receiver whose state is new or has changed: at most 200 in a second.
    /// Authentic ones come first.
    pub fn poll_news(&mut self, now: Instant) -> Option<ReceiverStatus> {
        if now >= self.news.0 + Duration::from_secs(1) {
            self.news = (now, 0);
        }
        if self.news.1 >= NEWS_PER_SECOND {
            return None;
        }
        let status = self.places.take_news()?.clone();
        self.news.1 += 1;
        Some(status)
    }

    /// When more news may be polled, if there are any.
    pub fn news_at(&self) -> Option<Instant> {
        let is_full = self.news.1 >= NEWS_PER_SECOND;
        let due = if is_full { self.news.0 + Duration::from_secs(1) } else { self.seen };
        self.places.has_news().then_some(due)
    }

    /// A number that grows with each change of what is known of the receivers.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// At most so many of the receivers that are not complete, or whose state has changed since the
    /// last call; these first, then failed ones and those that have the least.
    pub fn notable(&mut self, most: usize) -> Vec<ReceiverStatus> {
        let notable = |slot| {
            let place = self.places.get(slot)?;
            let report = &place.status.report;
            let is_complete = matches!(report.state, ReceiverState::Complete { .. });
            let receives = report.state == ReceiverState::Receiving;
            let is_notable = place.is_changed || !is_complete || place.status.is_contradictory;
            let order = (!place.is_changed, receives, report.permille, report.receiver);
            is_notable.then_some((order, slot))
        };
        let mut found: Vec<_> = self.places.slots().filter_map(notable).collect();
        if found.len() > most {
            found.select_nth_unstable(most);
            found.truncate(most);
        }
        found.sort_unstable();
        found.into_iter().filter_map(|(_, slot)| self.places.snapshot(slot)).collect()
    }

    /// Whether the receiver has reported under this authority.
    pub fn knows(&self, by: Authority, receiver: &ReceiverId) -> bool {
        self.places.slot(by, receiver).is_some()
    }

    /// The number of the round of reports.
    pub fn round(&self) -> u32 {
        self.head_count.round()
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
    /// report.
    pub fn has_only_final(&self) -> bool {
        let Counts { authentic, others } = self.places.outstanding();
        self.places.len() > 0 && authentic + others == 0
    }

    /// Whether it has issued the roll call that an answer names.
    pub(crate) fn has_issued(&self, echo: &RollCallEcho) -> bool {
        echo.serial <= self.serial
    }

    /// Whether receivers have reported lately, and no final state. Those that nothing authenticates
    /// count if the user trusts them.
    pub fn is_followed(&self) -> bool {
        let Counts { authentic, others } = self.places.outstanding();
        authentic > 0 || (others > 0 && self.config.trusts_unauthenticated)
    }

    /// Whether receivers are known that count, and none of them needs symbols: all have reported a
    /// final state or that they lack none, or no longer report. Those that nothing authenticates
    /// count if the user trusts them.
    pub fn needs_nothing(&self) -> bool {
        self.counted() > 0 && self.of_counted(self.places.needing()) == 0
    }

    /// Whether a receiver that counts has reported after this round, and lately, that it lacks
    /// [much](ReceiverStatus::is_behind).
    pub fn is_any_behind(&self, after: u32) -> bool {
        self.of_counted(self.places.behind(after)) > 0
    }

    /// Receivers that have reported, and count.
    pub fn counted(&self) -> usize {
        let others = self.places.unauthenticated();
        self.of_counted(Counts { authentic: self.places.len().saturating_sub(others), others })
    }

    fn of_counted(&self, Counts { authentic, others }: Counts) -> usize {
        if self.config.trusts_unauthenticated { authentic + others } else { authentic }
    }

    /// Whether all expected receivers are complete. Looks at every receiver only if as many are
    /// complete as are expected.
    pub fn is_as_expected(&self) -> bool {
        let least = match &self.config.expected {
            Expected::Anyone => return false,
            Expected::Count(count) => u64::from(*count),
            Expected::Named(list) => list.len() as u64,
        };
        self.places.complete() >= least && self.summary().is_as_expected()
    }

    /// Number of receivers: those that have reported, or more by the estimate of the last round. In
    /// the first round, the number that is assumed.
    pub fn head_count(&self) -> u32 {
        let others = self.places.unauthenticated();
        let counts = Counts { authentic: self.places.len() - others, others };
        let least = AT_ONCE as usize / 4;
        let known = u32::try_from(counts.limited(self.limits_others, least)).unwrap_or(u32::MAX);
        known.max(self.last_estimate.unwrap_or_else(|| self.head_count.assumed()))
    }

    /// So many receivers are about to report, most likely. Call it before the first report.
    pub(crate) fn expect(&mut self, receivers: u32) {
        self.head_count.expect(receivers);
    }

    /// Handles an authentic answer of a receiver, of any kind: measures the round trip.
    pub fn measure(&mut self, now: Instant, answer: &Feedback) {
        self.round_trip.answer(now, answer.echo());
    }

    /// The time from a roll call to an answer that arrives now, without the receiver's wait; `None`
    /// if it is too long ago.
    pub fn round_trip_of(&self, now: Instant, answer: &Feedback) -> Option<Duration> {
        self.round_trip.of(now, answer.echo())
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
        self.seen = self.seen.max(now);
        let last_round = self.head_count.round();
        // The number of receivers is halved at most once in the regular interval.
        if now >= self.next_call {
            let outstanding = self.outstanding_count();
            let (round, estimate) = (self.head_count.round(), self.head_count.estimate());
            self.estimate = self.estimate.max(estimate.unwrap_or(0.0));
            self.head_count.announce(now, outstanding);
            if self.head_count.round() != round {
                self.last_estimate = Some(estimate.unwrap_or(0.0).ceil() as u32);
            }
            self.next_call = now + self.interval();
        } else if std::mem::take(&mut self.begins_round) {
            let outstanding = self.outstanding_count();
            self.head_count.begin_round(now, outstanding);
        } else {
            self.head_count.advance(now);
        }
        if self.head_count.round() != last_round {
            self.places.begin_round(now, self.head_count.round());
            self.answers = Counts::default();
        }
        (self.called_at, self.is_wanted) = (Some(now), false);
        self.serial += 1;
        self.round_trip.call(now, self.serial);
        let salt = self.random.next_u64();
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
            known: self.places.finished(),
            salt,
            list: self.list(salt),
            repair: None,
            rate: None,
        })
    }

    /// The interval until the next roll call.
    fn interval(&self) -> Duration {
        let (searches, is_near) = (self.head_count.is_searching(), self.config.is_near);
        match searches {
            true if is_near && self.head_count.assumed() > 1 => EVERY_WHILE_SEARCHING_NEAR,
            true => EVERY_WHILE_SEARCHING,
            // The first one of those that are expected need not wait.
            false if is_near && self.places.len() == 0 => EVERY_WHILE_SEARCHING,
            // The next round need not wait.
            false if is_near => self.head_count.left().clamp(EVERY_WHILE_SEARCHING_NEAR, EVERY),
            false => EVERY,
        }
    }

    /// True if receivers wait to be told that their final state is known.
    pub fn is_listing(&self) -> bool {
        let [never, once, _] = self.places.waiting();
        never + once > 0
    }

    /// The number of receivers without a final state that a round is for.
    fn outstanding_count(&self) -> usize {
        let budget = self.config.budget_per_second as usize;
        self.places.outstanding().limited(self.limits_others, budget)
    }

    /// The shorter of two lists: receivers whose final state is newly known, or names whose final
    /// state is not.
    fn list(&mut self, salt: u64) -> RollCallList {
        let waiting: usize = self.places.waiting().iter().sum();
        let missing = self.missing_names(waiting.min(self.config.list_capacity));
        let capacity = if missing.is_some() { usize::MAX } else { self.config.list_capacity };
        let listed = self.places.take_listed(capacity);
        let fingerprint = |receiver| Fingerprint::of_receiver(salt, receiver);
        let fingerprints = listed.iter().map(fingerprint).collect();
        match missing {
            None => RollCallList::Known(fingerprints),
            Some(labels) => RollCallList::Missing(
                labels.iter().map(|label| Fingerprint::of_label(salt, label)).collect(),
            ),
        }
    }

    /// The expected names without a final state, if they are fewer than `limit`, and if their
    /// absence says of all receivers that wait to be listed that they are known.
    fn missing_names(&mut self, limit: usize) -> Option<Vec<ReceiverLabel>> {
        let Expected::Named(expected) = &self.config.expected else { return None };
        let (mut missing, mut settled) = (Vec::new(), Vec::new());
        for number in self.places.unsettled() {
            let Some(ExpectedReceiver { label, .. }) = expected.get(number as usize) else {
                continue;
            };
            match self.state_of(label) {
                ExpectedState::Reported(state) if state.is_final() => settled.push(number),
                _ => missing.push(label.clone()),
            }
            if missing.len() >= limit {
                break;
            }
        }
        settled.into_iter().for_each(|number| self.places.settle(number));
        if !expected.is_empty() && missing.len() >= limit {
            return None;
        }
        let is_told = |place: &Place| {
            let label = &place.status.report.label;
            !label.is_empty() && !missing.contains(label)
        };
        self.places.to_list().all(is_told).then_some(missing)
    }

    /// The receivers that are expected by their names.
    fn named(&self) -> &[ExpectedReceiver] {
        match &self.config.expected {
            Expected::Named(list) => list,
            Expected::Anyone | Expected::Count(_) => &[],
        }
    }

    /// The number of the expected receiver with this label.
    fn expected_number(&self, label: &ReceiverLabel) -> Option<u32> {
        let named = self.named();
        if named.is_empty() || label.is_empty() {
            return None;
        }
        let fingerprint = self.places.fingerprint(label);
        let first = self.labels.partition_point(|&(other, _)| other < fingerprint);
        let same = self.labels.iter().skip(first).take_while(|(other, _)| *other == fingerprint);
        let has_label = |number: &u32| {
            named.get(*number as usize).is_some_and(|expected| expected.label == *label)
        };
        same.map(|&(_, number)| number).find(has_label)
    }

    /// What is known of the receiver with this label. Of several processes, those count that still
    /// report; if none does, the one that has reported last, which another was started after.
    fn state_of(&self, label: &ReceiverLabel) -> ExpectedState {
        let processes = || self.places.labelled(self.places.fingerprint(label), label);
        let mut present =
            processes().filter(|place| place.is_present(self.head_count.round(), self.seen));
        let counted = match (present.next(), present.next()) {
            (Some(_), Some(_)) => return ExpectedState::Contradictory,
            (Some(only), None) => Some(only),
            (None, _) => processes().max_by_key(|place| place.status.reported_at),
        };
        let Some(Place { status, .. }) = counted else { return ExpectedState::NeverHeard };
        match status.report.state {
            _ if status.is_contradictory => ExpectedState::Contradictory,
            ReceiverState::Complete { manifest } if manifest != self.config.manifest => {
                ExpectedState::OtherContent
            }
            state => ExpectedState::Reported(state),
        }
    }

    /// True if this receiver is complete.
    fn is_complete(&self, status: &ReceiverStatus) -> bool {
        let complete = ReceiverState::Complete { manifest: self.config.manifest };
        let is_complete = |state| state == complete;
        if status.is_contradictory || !is_complete(status.report.state) {
            return false;
        }
        // Two hosts may have one name. It matters only where it is expected.
        let label = &status.report.label;
        !self.expects(label)
            || matches!(self.state_of(label), ExpectedState::Reported(state) if is_complete(state))
    }

    /// The receivers that have reported, in the order of what vouches for them and of their ids.
    pub fn receivers(&self) -> impl Iterator<Item = &ReceiverStatus> {
        self.places.iter().map(|place| &place.status)
    }

    /// All receivers together. Looks at every receiver.
    pub fn summary(&self) -> CrowdSummary {
        let complete = self.receivers().filter(|status| self.is_complete(status)).count() as u64;
        let failed =
            |status: &&ReceiverStatus| matches!(status.report.state, ReceiverState::Failed { .. });
        let known = self.places.len() as u64;
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
