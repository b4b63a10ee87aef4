//! What a sender does about its receivers.
//!
//! A [`Collection`] is the part of a sending endpoint that has a return path: it decides from what
//! receivers say which roll calls are issued, what is sent for their requests, at which rate, and
//! when the session ends. The sender asks for its [`Demand`]s, and does them.

use super::control::{ControlObject, control_oti};
use crate::datagram::DatagramBatch;
use crate::endpoint::BlockId;
use crate::event::SenderEvent;
use crate::feedback::AT_ONCE;
use crate::job::SendJob;
use crate::report::{
    Authentic, Authority, AwaitedReceivers, CollectorConfig, Expected, ExpectedState, RateConfig,
    RateControl, ReceiverStatus, RepairConfig, RepairRounds, ReportCollector, Signers,
};
use crate::time::Instant;
use fontana_fec::Esi;
use fontana_wire::{
    Feedback, FeedbackDatagram, OpenedFeedback, RateReport, ReceiverReport, ReceiverState,
    RepairRequest, RollCall, SealId, Toi,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Longest time between two looks at what is due: what ends a session is seen within it.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Shortest interval of the check whether all receivers are complete, and its longest one:
/// receivers that no longer report may have another state then.
const CHECK_EVERY: Duration = Duration::from_millis(50);
const CHECK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);
/// Longest time from the completion of all receivers to the end of the session, in which they are
/// told that they are known.
const FAREWELL: Duration = Duration::from_secs(3);
/// Longest time that receivers which report that they are not complete keep a session from its end,
/// when nothing is left to repair and no receiver is expected: a busy host has blocks to verify.
const LONGEST_FAREWELL: Duration = Duration::from_secs(30);
/// Time from the end of a stream after which expected receivers are not waited for if none reports
/// that it still receives: one that has failed, or comes now, has missed the stream.
const STREAM_FAREWELL: Duration = Duration::from_secs(30);
/// Interval of the rounds of reports when nothing is left to repair.
const LAST_ROUNDS: Duration = Duration::from_millis(100);
/// Longest time from a report to its arrival, beside the round trip.
const SLACK: Duration = Duration::from_millis(50);
/// Time without a report after which repair symbols will be needed for receivers that say nothing.
const BLIND_AFTER: Duration = Duration::from_secs(3);
/// Time from the report of the last receiver that a stream waits for until it begins: the receivers
/// of a room are started together.
const ROOM: Duration = Duration::from_millis(300);
/// Answers that wait to be opened, at most.
const MAX_OPENING: u32 = 64;

/// What a [`Collection`] needs to know.
#[derive(Clone, Debug)]
pub struct CollectionConfig {
    /// The receivers, and the roll calls.
    pub collector: CollectorConfig,
    /// What is repaired.
    pub repair: RepairBy,
    /// Bytes of a symbol of a roll call, which has one.
    pub symbol_size: u16,
    /// How the rate follows the receivers, if it does.
    pub rate: Option<RateConfig>,
    /// The rate follows the expected names below its least value, until they are complete.
    pub must_finish: bool,
    /// The session ends when the expected receivers are complete, even if not everything was sent.
    pub until_complete: bool,
    /// The session has no end: it sends no content while no receiver lacks symbols. If it repairs
    /// by requests, all blocks advance while no receiver reports, or one lacks much.
    pub rests: bool,
    /// Longest time until the end of the session: from its beginning; of a stream, from its end,
    /// and from its beginning while it waits for receivers.
    pub deadline: Option<Duration>,
}

impl CollectionConfig {
    /// A collection that repairs nothing, at a constant rate, in a session without an end.
    pub fn new(collector: CollectorConfig, symbol_size: u16) -> Self {
        Self {
            collector,
            repair: RepairBy::Nothing,
            symbol_size,
            rate: None,
            must_finish: false,
            until_complete: false,
            rests: false,
            deadline: None,
        }
    }
}

/// What a sender repairs.
#[derive(Clone, Debug)]
pub enum RepairBy {
    /// Nothing.
    Nothing,
    /// Blocks of files, by requests.
    Rounds(Box<RepairConfig>),
    /// Fragments of a stream.
    Stream {
        /// Receivers that it waits for before the beginning; 0: none.
        waits_for: u32,
        /// Fragments are repaired by requests.
        on_request: bool,
    },
}

/// How far the sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderProgress {
    /// Everything is sent that was planned or demanded.
    pub is_sent: bool,
    /// A roll call is signed, and not sent yet.
    pub is_announcing: bool,
    /// So much is sent that receivers that say nothing have it, if they were there from the start,
    /// or have the version before.
    pub is_enough: bool,
}

/// What the sender has to do.
#[derive(Debug)]
pub enum Demand {
    /// Have this roll call signed, and send it. A stream adds its repair round, for so many
    /// receivers with this round trip.
    Call {
        /// The roll call, whose time is the signer's.
        call: Box<RollCall>,
        /// Number of receivers.
        receivers: u32,
        /// The largest round trip lately.
        round_trip: Duration,
    },
    /// Send so many fresh symbols of each block.
    Fresh(Vec<(BlockId, u32)>),
    /// Send these symbols again.
    Named(Vec<(BlockId, Esi)>),
    /// Send at this rate, in bytes per second.
    Rate(u64),
    /// A receiver loses packets, for the first time: repair symbols will be needed.
    Losses,
    /// Of a stream: a receiver loses this part of the packets.
    Loss {
        /// Parts per million.
        ppm: u32,
    },
    /// Of a stream: a receiver requests symbols.
    Request(Box<RepairRequest>),
    /// Of a stream: whether receivers report now.
    Followed(bool),
    /// Of a stream: all receivers that it waits for are there.
    Begin,
    /// Send no content, or send it again.
    Rest(bool),
    /// Go on with all blocks, or with what is requested alone.
    AdvanceAll(bool),
    /// Report this to the application.
    Event(SenderEvent),
}

/// The round of reports that follows everything that was sent: a receiver that has requested may
/// not have reported before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastRound {
    /// Something is still to be sent.
    NotYet,
    /// It is called after the round of this number.
    After(u32),
    /// Its reports have arrived then.
    HeardAt(Instant),
}

/// Whether a receiver has lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Losses {
    None,
    Reported,
    Told,
}

/// Repair of files.
#[derive(Debug)]
struct Repair {
    rounds: RepairRounds,
    losses: Losses,
}

/// The receivers of a stream.
#[derive(Debug)]
struct Stream {
    waits_for: u32,
    on_request: bool,
    awaited: Option<AwaitedReceivers>,
    /// When they are counted next.
    next_count: Instant,
    /// When it begins, if they are there, and it has not begun.
    begins_at: Option<Instant>,
    is_followed: bool,
}

impl Stream {
    /// Whether the stream waits for receivers.
    fn is_waiting(&self) -> bool {
        self.waits_for > 0 && !self.awaited.as_ref().is_some_and(AwaitedReceivers::is_over)
    }
}

/// The part of a sender that has a return path.
#[derive(Debug)]
pub struct Collection {
    id: SealId,
    /// Reports count without authentication, too.
    trusts_unauthenticated: bool,
    symbol_size: u16,
    expects_anyone: bool,
    must_finish: bool,
    until_complete: bool,
    /// Whether it may rest, and does.
    rests: Option<bool>,
    /// The source symbols are sent: since this round, and whether all blocks advance.
    advances: Option<(u32, bool)>,
    deadline: Option<Duration>,
    collector: ReportCollector,
    repair: Option<Repair>,
    rate: Option<(RateControl, u64)>,
    /// No content is sent yet, so nothing is known of the paths.
    is_held: bool,
    stream: Option<Stream>,
    demands: VecDeque<Demand>,
    /// Answers that are being opened, and whether a roll call is being signed.
    opening: u32,
    is_signing: bool,
    began_at: Option<Instant>,
    /// Since when everything is sent, and nothing is lacking.
    all_since: Option<Instant>,
    /// When a receiver last said that it is not complete.
    unfinished_at: Option<Instant>,
    /// Since when all expected receivers are complete, or nothing is left to repair.
    done_since: Option<Instant>,
    next_check: Instant,
    /// What the last check has looked at, and when.
    checked: Option<(u64, Instant)>,
    next_round: Instant,
    last_round: LastRound,
    /// The next look, and the progress that the last one saw.
    due: Instant,
    seen: Option<SenderProgress>,
    end: End,
}

/// What a sender knows of receivers that the next one most likely has.
#[derive(Clone, Debug)]
pub struct EarlierReceivers {
    /// Those that reported, and count.
    count: u32,
    /// What their paths carry, if the rate follows them.
    paths: Option<RateControl>,
}

/// The end of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    NotYet,
    Decided,
    Told,
}

impl Collection {
    /// A collection that has received nothing. Its first roll call is due at once.
    pub fn new(config: CollectionConfig, now: Instant) -> Self {
        let CollectionConfig { collector, repair, rate, must_finish, .. } = config;
        let (mut files, mut stream) = (None, None);
        match repair {
            RepairBy::Nothing => {}
            RepairBy::Rounds(config) => {
                let rounds = RepairRounds::new(*config, now);
                files = Some(Repair { rounds, losses: Losses::None });
            }
            RepairBy::Stream { waits_for, on_request } => {
                stream = Some(Stream {
                    waits_for,
                    on_request,
                    awaited: None,
                    next_count: now,
                    begins_at: None,
                    is_followed: false,
                });
            }
        }
        Self {
            id: SealId::from(collector.instance),
            trusts_unauthenticated: collector.trusts_unauthenticated,
            symbol_size: config.symbol_size,
            expects_anyone: collector.expected == Expected::Anyone,
            must_finish,
            until_complete: config.until_complete,
            rests: config.rests.then_some(false),
            advances: None,
            deadline: config.deadline,
            collector: ReportCollector::new(collector, now),
            repair: files,
            rate: rate.map(|config| {
                let control = RateControl::new(config, now);
                let rate = control.rate();
                (control, rate)
            }),
            is_held: false,
            stream,
            demands: VecDeque::new(),
            opening: 0,
            is_signing: false,
            began_at: None,
            all_since: None,
            unfinished_at: None,
            done_since: None,
            next_check: now,
            checked: None,
            next_round: now,
            last_round: LastRound::NotYet,
            due: now,
            seen: None,
            end: End::NotYet,
        }
    }

    /// What is known of the receivers.
    pub fn collector(&self) -> &ReportCollector {
        &self.collector
    }

    /// The same, for snapshots.
    pub fn collector_mut(&mut self) -> &mut ReportCollector {
        &mut self.collector
    }

    /// Whether no receiver is known whose reports count.
    pub fn is_unheard(&self) -> bool {
        self.collector.counted() == 0
    }

    /// Whose signatures count.
    pub fn signers(&self) -> &Arc<Signers> {
        self.collector.signers()
    }

    /// The rate that the receivers permit, in bytes per second, if the rate follows them.
    pub fn rate(&self) -> Option<u64> {
        self.rate.as_ref().map(|(control, _)| control.rate())
    }

    /// What is known of the receivers, for [`follow_from`](Self::follow_from).
    pub fn take_receivers(&mut self) -> EarlierReceivers {
        let count = u32::try_from(self.collector.counted()).unwrap_or(u32::MAX);
        EarlierReceivers { count, paths: self.rate.take().map(|(control, _)| control) }
    }

    /// Expects the receivers of an earlier sender, and follows them from its rate on, if the rate
    /// follows receivers.
    pub fn follow_from(&mut self, now: Instant, earlier: EarlierReceivers) {
        self.collector.expect(earlier.count);
        if let (Some((control, rate)), Some(paths)) = (&mut self.rate, earlier.paths) {
            *control = paths.into_next(now);
            *rate = control.rate();
        }
    }

    /// No content is sent before [`begin`](Self::begin): the rate follows no receiver, and stays.
    pub(super) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Content is sent from now on, and the time without a report counts.
    pub(super) fn begin(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_held) {
            self.due = now;
            self.rate = self.rate.take().map(|(control, told)| (control.into_next(now), told));
        }
    }

    /// So many bytes were sent so far, headers included.
    pub fn note_sent(&mut self, bytes: u64) {
        if let Some((control, _)) = &mut self.rate {
            control.note_sent(bytes);
        }
    }

    /// Looks at datagrams. Those that claim to be answers for this run are to be opened.
    pub fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) -> Vec<SendJob> {
        self.due = now;
        let mut jobs = Vec::new();
        for (datagram, payload) in batch.iter() {
            self.collector.ignore_many(datagram.dropped_before);
            let parsed = FeedbackDatagram::parse(payload).ok();
            let is_ours = parsed.is_some_and(|it| it.header.instance == self.id);
            if !is_ours || self.opening >= MAX_OPENING || self.end != End::NotYet {
                self.collector.ignore();
                continue;
            }
            self.opening += 1;
            jobs.push(SendJob::Open { from: datagram.from.ip(), datagram: payload.into() });
        }
        jobs
    }

    /// Whether everything is sent, and nothing is lacking.
    pub fn is_silent(&self) -> bool {
        self.all_since.is_some()
    }

    /// Handles an answer that was opened; `None`: it was not authentic.
    pub fn handle_opened(&mut self, now: Instant, authentic: Option<&Authentic>) {
        self.due = now;
        self.opening = self.opening.saturating_sub(1);
        let called = authentic.filter(|it| self.collector.has_issued(&it.opened.feedback.echo()));
        let Some(Authentic { opened, by }) = called else {
            self.collector.ignore();
            return;
        };
        match &opened.feedback {
            Feedback::Report(report) => self.take_report(now, opened, report, *by),
            Feedback::Rate(report) => self.take_rate(now, opened, report, *by),
            Feedback::Request(request) => self.take_request(now, opened, request, *by),
        }
    }

    /// The roll call is signed. Returns what is to be sent once; `None` only if it is longer than a
    /// symbol, which its capacity prevents.
    pub fn handle_signed(&mut self, now: Instant, call: &[u8]) -> Option<ControlObject> {
        self.due = now;
        self.is_signing = false;
        let oti = control_oti(call.len(), self.symbol_size);
        ControlObject::new(Toi::ROLL_CALL, oti, call, None, 1).ok()
    }

    /// Asks for a roll call before the next one is due.
    pub fn want_call(&mut self, now: Instant) {
        self.due = now;
        self.collector.want_call();
    }

    /// Whether an answer counts that changes what is sent: any host could have sent it otherwise.
    fn is_trusted(&self, by: Authority) -> bool {
        by.is_authentic() || self.trusts_unauthenticated
    }

    fn take_report(
        &mut self,
        now: Instant,
        opened: &OpenedFeedback,
        report: &ReceiverReport,
        by: Authority,
    ) {
        let Ok(status) = self.collector.handle_report(now, opened, by) else { return };
        if !self.collector.counts(by) {
            return;
        }
        self.collector.measure(now, &opened.feedback);
        if let Some(repair) = &mut self.repair {
            repair.rounds.note_loss(now, report.loss_ppm);
            if report.loss_ppm > 0 {
                repair.note_losses();
            }
        }
        if !self.is_trusted(by) {
            return;
        }
        if report.state.is_final()
            && let Some((control, _)) = &mut self.rate
        {
            control.has_finished(&report.receiver);
        }
        if !report.state.is_final() {
            self.unfinished_at = Some(now);
        } else if self.collector.head_count() <= AT_ONCE {
            // It waits to be told that this is known.
            self.collector.want_call();
        }
        if self.stream.as_ref().is_some_and(|stream| stream.on_request) {
            self.demands.push_back(Demand::Loss { ppm: report.loss_ppm });
        }
        if let (Some((control, _)), Some(ReceiverStatus { report, .. })) =
            (self.rate.as_mut().filter(|_| self.must_finish), &status)
        {
            match self.collector.expects(&report.label) && !report.state.is_final() {
                true => control.must_finish(report.receiver),
                false => control.has_finished(&report.receiver),
            }
        }
    }

    fn take_rate(
        &mut self,
        now: Instant,
        opened: &OpenedFeedback,
        report: &RateReport,
        by: Authority,
    ) {
        let is_trusted = self.is_trusted(by);
        let Some((control, _)) = self.rate.as_mut().filter(|_| is_trusted) else {
            return self.collector.ignore();
        };
        // A receiver without a name, so far, may be one that must finish.
        if self.must_finish && !self.collector.knows(by, &report.receiver) {
            control.must_finish(report.receiver);
        }
        let round_trip = self.collector.round_trip_of(now, &opened.feedback);
        let Ok(slow) = control.handle_report(now, report, round_trip, opened.counter) else {
            return self.collector.ignore();
        };
        self.demands.extend(slow.map(|slow| Demand::Event(SenderEvent::Slow(slow))));
        self.collector.measure(now, &opened.feedback);
        if report.lost > 0 {
            self.repair.iter_mut().for_each(Repair::note_losses);
        }
    }

    fn take_request(
        &mut self,
        now: Instant,
        opened: &OpenedFeedback,
        request: &RepairRequest,
        by: Authority,
    ) {
        // What a fragment may have bounds what receivers can cause that lie.
        if self.stream.as_ref().is_some_and(|stream| stream.on_request) && self.is_trusted(by) {
            self.collector.measure(now, &opened.feedback);
            self.demands.push_back(Demand::Request(Box::new(request.clone())));
            return;
        }
        let taken = self.repair.as_mut().is_some_and(|repair| {
            repair.rounds.handle_request(now, request, opened.counter, by).is_ok()
        });
        if !taken {
            self.collector.ignore();
        } else if self.collector.counts(by) {
            self.collector.measure(now, &opened.feedback);
            self.repair.iter_mut().for_each(Repair::note_losses);
        }
    }

    /// Whether [`poll`](Self::poll) has something to look at.
    pub fn is_due(&self, now: Instant, progress: SenderProgress) -> bool {
        let is_over = self.end == End::Told;
        !self.demands.is_empty() || (!is_over && (now >= self.due || self.seen != Some(progress)))
    }

    /// What the sender has to do next; `None`: nothing before [`poll_timeout`](Self::poll_timeout),
    /// a `handle_*`, or other progress.
    pub fn poll(&mut self, now: Instant, progress: SenderProgress) -> Option<Demand> {
        if self.demands.is_empty() && self.is_due(now, progress) {
            self.look(now, progress);
        }
        self.demands.pop_front()
    }

    /// When [`poll`](Self::poll) has something to look at, at the latest; `None` after the end.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.end != End::Told).then_some(self.due)
    }

    /// Finds out what is due.
    fn look(&mut self, now: Instant, progress: SenderProgress) {
        let began_at = *self.began_at.get_or_insert(now);
        self.seen = Some(progress);
        if self.end == End::NotYet {
            self.continue_stream(now, progress);
            self.continue_rate(now);
            self.continue_repair(now, progress);
            self.call(now);
            while let Some(status) = self.collector.poll_news(now) {
                let status = SenderEvent::Report(Box::new(status));
                self.demands.push_back(Demand::Event(status));
            }
            self.check(now);
            self.rest(progress);
            self.advance(now, began_at, progress);
            if self.is_over(now, began_at) {
                self.end = End::Decided;
            }
        }
        // The last roll call tells receivers that they are known.
        if self.end == End::Decided && !self.is_signing && !progress.is_announcing {
            self.end = End::Told;
            self.demands.push_back(Demand::Event(SenderEvent::Over));
        }
        self.due = self.next_look(now);
    }

    fn next_look(&self, now: Instant) -> Instant {
        let mut due = now + LOOK_EVERY;
        if self.end != End::NotYet {
            return due;
        }
        if !self.is_signing {
            due = due.min(self.collector.poll_timeout());
        }
        let repair = self.repair.as_ref().and_then(|repair| repair.rounds.poll_timeout());
        let rate = self.rate.as_ref().and_then(|(control, _)| control.poll_timeout());
        repair.into_iter().chain(rate).chain(self.collector.news_at()).fold(due, Instant::min)
    }

    /// Tells the sender whether receivers follow the stream, and which it waits for.
    fn continue_stream(&mut self, now: Instant, progress: SenderProgress) {
        let Some(stream) = &mut self.stream else { return };
        if progress.is_sent {
            self.all_since.get_or_insert(now);
        }
        let is_followed = self.collector.is_followed();
        if stream.on_request && is_followed != stream.is_followed {
            stream.is_followed = is_followed;
            self.demands.push_back(Demand::Followed(is_followed));
        }
        if stream.begins_at.is_some_and(|at| now >= at) {
            stream.begins_at = None;
            self.demands.push_back(Demand::Begin);
        }
        if !stream.is_waiting() || now < stream.next_count {
            return;
        }
        stream.next_count = now + CHECK_EVERY;
        let awaited = awaited(stream.waits_for, &self.collector, self.trusts_unauthenticated);
        if stream.awaited.as_ref() == Some(&awaited) {
            return;
        }
        if awaited.is_over() {
            stream.begins_at = Some(now + ROOM);
        }
        self.demands.push_back(Demand::Event(SenderEvent::Awaited(awaited.clone())));
        stream.awaited = Some(awaited);
    }

    fn continue_rate(&mut self, now: Instant) {
        let Some((control, told)) = self.rate.as_mut().filter(|_| !self.is_held) else { return };
        control.handle_timeout(now);
        let rate = control.rate();
        if std::mem::replace(told, rate) != rate {
            self.demands.push_back(Demand::Rate(rate));
            self.demands.push_back(Demand::Event(SenderEvent::RateChanged(rate)));
        }
        if control.wants_call() {
            self.collector.want_call();
        }
    }

    fn continue_repair(&mut self, now: Instant, progress: SenderProgress) {
        let Some(Repair { rounds, losses }) = &mut self.repair else { return };
        if *losses == Losses::Reported {
            *losses = Losses::Told;
            self.demands.push_back(Demand::Losses);
        }
        let fresh = rounds.poll_symbols().map(Demand::Fresh);
        let named = rounds.poll_named().map(Demand::Named);
        let is_sent = progress.is_sent && fresh.is_none() && named.is_none();
        self.demands.extend(fresh.into_iter().chain(named));
        if is_sent {
            rounds.handle_sent(now);
        }
        rounds.handle_timeout(now);
        self.all_since = if rounds.is_silent() { self.all_since.or(Some(now)) } else { None };
        if rounds.wants_call(now) {
            self.collector.want_call();
        }
    }

    /// Issues the roll call that is due. At the end, rounds of reports follow each other.
    fn call(&mut self, now: Instant) {
        let is_ending = self.all_since.is_some_and(|at| now < at + FAREWELL);
        self.last_round = match (self.all_since, self.last_round) {
            (None, _) => LastRound::NotYet,
            (Some(_), LastRound::NotYet) => LastRound::After(self.collector.round()),
            (Some(_), last_round) => last_round,
        };
        // The last receivers say at once that they are complete.
        let asks = matches!(self.last_round, LastRound::After(_));
        if is_ending && now >= self.next_round && (asks || !self.collector.has_only_final()) {
            self.next_round = now + LAST_ROUNDS;
            self.collector.want_round();
        }
        // And are told at once that they are known.
        if is_ending && self.collector.is_listing() {
            self.collector.want_call();
        }
        if self.is_signing {
            return;
        }
        let Some(mut call) = self.collector.poll_roll_call(now, 0) else { return };
        let (receivers, round_trip) = (self.collector.head_count(), self.collector.round_trip());
        call.repair =
            self.repair.as_mut().and_then(|repair| repair.rounds.call(now, receivers, round_trip));
        if matches!(self.last_round, LastRound::After(last) if last != call.round) {
            let window = Duration::from_millis(call.window_ms.into());
            self.last_round = LastRound::HeardAt(now + window + round_trip + SLACK);
        }
        let trip = self.collector.long_round_trip();
        // Before the first report the number is an assumption.
        let crowd = self.collector.receivers().next().map(|_| receivers);
        let rate = self.rate.as_mut().filter(|_| !self.is_held);
        call.rate = rate.map(|(control, _)| control.call(now, trip, crowd));
        self.is_signing = true;
        // A stream has its repair round for the longest path, as far as it follows that.
        self.demands.push_back(Demand::Call { call: Box::new(call), receivers, round_trip: trip });
    }

    /// Finds out whether all receivers are complete.
    fn check(&mut self, now: Instant) {
        let changes = self.collector.changes();
        let is_due = self
            .checked
            .is_none_or(|(last, at)| last != changes || now >= at + CHECK_AT_LEAST_EVERY);
        if !is_due || now < self.next_check {
            return;
        }
        self.next_check = now + CHECK_EVERY;
        self.checked = Some((changes, now));
        let is_done = match self.expects_anyone {
            true => {
                matches!(self.last_round, LastRound::HeardAt(at) if now >= at)
                    && self.collector.has_only_final()
            }
            false => self.collector.is_as_expected(),
        };
        self.done_since = if is_done { self.done_since.or(Some(now)) } else { None };
    }

    /// Rests while no receiver needs the content.
    fn rest(&mut self, progress: SenderProgress) {
        let Some(rests) = &mut self.rests else { return };
        // Beside those that are expected, no other is waited for.
        let is_enough = progress.is_enough || (self.until_complete && self.repair.is_some());
        let now_rests = is_enough && self.collector.needs_nothing();
        if std::mem::replace(rests, now_rests) != now_rests {
            self.demands.push_back(Demand::Rest(now_rests));
            self.demands.push_back(Demand::Event(SenderEvent::Resting(now_rests)));
        }
    }

    /// Of a session without an end that repairs by requests: whether all blocks advance, when the
    /// source symbols are sent. They do while no receiver is known that has not ended, for those
    /// that say nothing, until the session rests; and while one lacks so much that requests would
    /// be for most of the content.
    fn advance(&mut self, now: Instant, began_at: Instant, progress: SenderProgress) {
        let (Some(rests), Some(repair)) = (self.rests, &mut self.repair) else { return };
        let is_alone = self.collector.counted() == 0;
        if is_alone && now >= began_at + BLIND_AFTER {
            repair.note_losses();
        }
        if self.advances.is_none() && progress.is_sent {
            // What they have reported before may be of half of it.
            self.advances = Some((self.collector.round(), false));
            self.collector.want_round();
        }
        let Some((since, advanced)) = &mut self.advances else { return };
        let is_wanted = is_alone || self.collector.is_any_behind(*since);
        // Hosts that recover the last blocks have no time for what they do not need.
        let advances = is_wanted || (!rests && !self.collector.is_followed());
        if std::mem::replace(advanced, advances) != advances {
            repair.note_losses();
            self.demands.push_back(Demand::AdvanceAll(advances));
        }
    }

    /// Whether the session ends.
    fn is_over(&self, now: Instant, began_at: Instant) -> bool {
        let is_told =
            self.done_since.is_some_and(|at| !self.collector.is_listing() || now >= at + FAREWELL);
        let is_late = |at: Instant| self.deadline.is_some_and(|deadline| now >= at + deadline);
        if let Some(stream) = &self.stream {
            return match self.all_since {
                // In between, the stream has the time that it takes.
                None => stream.is_waiting() && is_late(began_at),
                Some(at) if self.until_complete => {
                    let is_left = now >= at + STREAM_FAREWELL && !self.collector.is_followed();
                    is_told || is_left || is_late(at)
                }
                Some(at) => is_told || now >= at + FAREWELL,
            };
        }
        let is_endless = self.rests.is_some();
        let may_end = self.until_complete || (self.all_since.is_some() && !is_endless);
        // Receivers that say nothing more are not waited for, unless they are expected.
        let is_left = self.expects_anyone
            && !is_endless
            && self.all_since.is_some_and(|at| {
                let heard_at = self.unfinished_at.map_or(at, |heard| heard.max(at));
                now >= (heard_at + FAREWELL).min(at + LONGEST_FAREWELL)
            });
        let is_too_old = self.repair.as_ref().is_some_and(|it| it.rounds.is_too_old(now));
        (may_end && is_told) || is_left || is_too_old || is_late(began_at)
    }
}

impl Repair {
    /// A receiver has lost packets, or requests symbols.
    fn note_losses(&mut self) {
        if self.losses == Losses::None {
            self.losses = Losses::Reported;
        }
    }
}

/// The receivers that a stream waits for.
fn awaited(
    receivers: u32,
    collector: &ReportCollector,
    trusts_unauthenticated: bool,
) -> AwaitedReceivers {
    let is_present = |status: &&ReceiverStatus| {
        (status.by.is_authentic() || trusts_unauthenticated)
            && !matches!(status.report.state, ReceiverState::Failed { .. })
    };
    let known = collector.receivers().filter(is_present).count();
    let missing = collector.summary().missing.into_iter();
    let missing = missing.filter(|missing| missing.state == ExpectedState::NeverHeard);
    AwaitedReceivers {
        receivers,
        known: u32::try_from(known).unwrap_or(u32::MAX),
        missing: missing.map(|missing| missing.label).collect(),
    }
}
