//! The thread of a sender that collects the reports of receivers, and issues the roll calls that
//! ask for them.

use super::call::CallSigner;
use super::following::StreamStage;
use super::options::SendOptions;
use super::rate::RateStage;
use super::repair::{RepairStage, SentRequests};
use super::update::{StreamUpdate, Update};
use crate::cancellation::CancellationToken;
use crate::error::{Error, SetupError};
use crate::geometry;
use crate::reporting::{Crowd, ReportCollection};
use crate::seal::{GroupKey, InstanceCipher};
use crate::system;
use crossbeam_channel::{SendError, Sender};
use fontana_net::{Bell, Clock, CollectorSocket};
use fontana_proto::report::{
    CollectorConfig, Expected, RateConfig, ReceiverStatus, RepairConfig, ReportCollector,
};
use fontana_proto::{Instant, SendMode, StreamSender};
use fontana_wire::{
    Feedback, FeedbackDatagram, Hash, InstanceId, RateCall, RepairCall, RollCall, SealId,
    SecretKey, Ticket, Tsi,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for a report: when the end of the session is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Interval of the state of the receivers that are not complete, or have changed.
const CROWD_EVERY: Duration = Duration::from_secs(1);
/// Largest number of these.
const MAX_NOTABLE: usize = 2_000;
/// Interval of the state of all receivers.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
/// Shortest interval of the check whether all receivers are complete, which looks at each, and its
/// longest one: receivers that no longer report may have another state then.
const CHECK_EVERY: Duration = Duration::from_millis(50);
const CHECK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);
/// Receivers that are remembered: at most 32 MB of them.
const MAX_RECEIVERS: usize = 1 << 16;
/// Longest time from the completion of all receivers to the end of the session, in which they are
/// told that they are known.
const FAREWELL: Duration = Duration::from_secs(3);
/// Interval of the rounds of reports when nothing is left to repair.
const LAST_ROUNDS: Duration = Duration::from_millis(100);
/// Longest time from a report to its arrival, beside the round trip.
const SLACK: Duration = Duration::from_millis(50);
/// Fewest fingerprints that a roll call has room for: two roll calls a second acknowledge two
/// receivers.
const LEAST_CAPACITY: usize = 4;

/// What receivers may demand beside reports.
pub(super) struct Demands {
    /// Repair, of these blocks.
    pub(super) repair: Option<RepairConfig>,
    /// Another rate.
    pub(super) rate: Option<RateConfig>,
}

/// The session whose receivers report.
pub(super) struct ReportedSession {
    pub(super) instance: InstanceId,
    pub(super) tsi: Tsi,
    /// What complete receivers have.
    pub(super) manifest: Hash,
    /// The address that packets are sent from.
    pub(super) local: IpAddr,
    /// Bytes of a symbol of content.
    pub(super) symbol_size: u16,
    pub(super) signer: SecretKey,
    pub(super) group_key: Option<GroupKey>,
}

/// What is needed to collect reports.
pub(super) struct ReportThread {
    socket: CollectorSocket,
    config: CollectorConfig,
    options: ReportCollection,
    signer: CallSigner,
    group_key: Option<GroupKey>,
    repair: Option<(RepairConfig, SentRequests)>,
    rate: Option<RateConfig>,
    /// Of a stream.
    stream: Option<StreamStage>,
}

/// What has been collected.
struct Collected {
    collector: ReportCollector,
    repair: Option<RepairStage>,
    rate: Option<RateStage>,
    stream: Option<StreamStage>,
    id: SealId,
    /// Since when all expected receivers are complete, or nothing is left to repair.
    done_since: Option<Instant>,
    next_crowd: Instant,
    /// When the state of all receivers is due.
    next_whole: Instant,
    next_check: Instant,
    /// What the last check has looked at, and when.
    checked: Option<(u64, Instant)>,
    next_round: Instant,
    last_round: LastRound,
}

/// The round of reports that follows everything that was sent: who has requested may not have
/// reported before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastRound {
    /// Something is still to be sent.
    NotYet,
    /// It is called after the round of this number.
    After(u32),
    /// Its reports have arrived then.
    HeardAt(Instant),
}

impl ReportThread {
    /// Opens the socket, if the options ask for reports. `local`: the address that packets are sent
    /// from.
    pub(super) fn prepare(
        options: &SendOptions,
        instance: InstanceId,
        ticket: &Ticket,
        manifest: Option<Hash>,
        local: IpAddr,
        symbol_size: u16,
        demands: Demands,
    ) -> Result<Option<Self>, Error> {
        let Some(format) = options.format.fontana() else { return Ok(None) };
        let Some(reports) = &format.reports else { return Ok(None) };
        let needs = |needs| SetupError::Reports { needs };
        let signer = format.signer.clone().ok_or_else(|| needs("a key that signs the session"))?;
        if format.certificate.is_some() {
            return Err(needs("the publisher's own key, and a certified mirror has another").into());
        }
        if matches!(options.mode, SendMode::Push { .. }) {
            return Err(needs("a session without an end of its own").into());
        }
        if reports.max_age.is_some() && demands.repair.is_none() {
            return Err(needs("repair on demand, to have a largest age of what is repaired").into());
        }
        let session = ReportedSession {
            instance,
            tsi: ticket.tsi,
            manifest: manifest.unwrap_or(Hash([0; Hash::SIZE])),
            local,
            symbol_size,
            signer,
            group_key: format.group_seal.as_ref().map(|seal| seal.key.clone()),
        };
        Self::open(reports, session, demands, None).map(Some)
    }

    /// Opens the socket for a session, or a stream.
    pub(super) fn open(
        reports: &ReportCollection,
        session: ReportedSession,
        Demands { repair, rate }: Demands,
        stream: Option<StreamStage>,
    ) -> Result<Self, Error> {
        let needs = |needs| SetupError::Reports { needs };
        let ReportedSession { instance, tsi, manifest, local, symbol_size, signer, group_key } =
            session;
        if !(1..=ReportCollection::MAX_BUDGET).contains(&reports.budget_per_second) {
            let (what, actual) = ("the reports per second", reports.budget_per_second.into());
            return Err(SetupError::Range { what, actual, allowed: "1 to 200" }.into());
        }
        let is_authenticated = group_key.is_some() || reports.is_signed();
        let waits_for = stream.as_ref().map_or(0, |stream| stream.waits_for);
        let repairs_stream = stream.as_ref().is_some_and(|stream| stream.repairs);
        if (reports.expected != Expected::Anyone || waits_for > 0 || repairs_stream)
            && !is_authenticated
            && !reports.trust_unauthenticated
        {
            return Err(needs("a group key, or a key of each expected receiver").into());
        }
        let control_size = geometry::control_symbol_size(symbol_size);
        let pending = match &repair {
            Some(repair) => Some(repair.pending_capacity),
            None => repairs_stream.then_some(StreamSender::PENDING_CAPACITY),
        };
        let rate_bytes = rate.as_ref().map_or(0, |_| RateCall::SIZE as u16);
        let last_bytes = if repairs_stream { RepairCall::LAST_SIZE as u16 } else { 0 };
        let room = control_size.saturating_sub(rate_bytes + last_bytes);
        let list_capacity = RollCall::capacity(room, pending).unwrap_or(0);
        if list_capacity < LEAST_CAPACITY {
            let (what, actual) = ("the symbol size", u64::from(symbol_size));
            let allowed = "at least 232 for a session with reports, 824 to repair on demand, 828 \
                           for a stream that does, 840 for a rate that follows the receivers";
            return Err(SetupError::Range { what, actual, allowed }.into());
        }
        let address = reports.address.unwrap_or(SocketAddr::new(local, 0));
        if address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(needs("the address of this host that receivers can reach").into());
        }
        let socket =
            CollectorSocket::bind(address).map_err(Error::system("open the socket for reports"))?;
        let collector =
            socket.local_address().map_err(Error::system("open the socket for reports"))?;
        // A roll call every half second lists each receiver that is newly known twice.
        let acknowledged = u32::try_from(list_capacity).unwrap_or(u32::MAX);
        let config = CollectorConfig {
            instance,
            tsi,
            manifest,
            collector,
            expected: reports.expected.clone(),
            budget_per_second: reports.budget_per_second.min(acknowledged),
            list_capacity,
            max_receivers: MAX_RECEIVERS,
            trusts_unauthenticated: reports.trust_unauthenticated,
            seed: system::random_u64()?,
        };
        Ok(Self {
            socket,
            config,
            options: reports.clone(),
            signer: CallSigner { key: signer, symbol_size: control_size },
            group_key,
            repair: repair.map(|config| (config, SentRequests::default())),
            rate,
            stream,
        })
    }

    /// True if a group key or signatures authenticate the reports.
    fn is_authenticated(&self) -> bool {
        self.group_key.is_some() || self.options.is_signed()
    }

    pub(super) fn signer(&self) -> &CallSigner {
        &self.signer
    }

    /// The rate at first, in bytes per second, if it follows the receivers.
    pub(super) fn start_rate(&self) -> Option<u64> {
        self.rate.as_ref().map(|rate| rate.start)
    }

    /// With repair on demand: counts the requests that are sent.
    pub(super) fn sent_requests(&self) -> Option<SentRequests> {
        self.repair.as_ref().map(|(_, sent)| Arc::clone(sent))
    }

    /// Collects reports until `stop` is cancelled, or the pacing thread takes no more updates. The
    /// bell wakes that thread.
    pub(super) fn run(mut self, updates: &Sender<Update>, bell: &Bell, stop: &CancellationToken) {
        let clock = Clock::start();
        let mut collected = Collected {
            collector: ReportCollector::new(self.config.clone(), Instant::ZERO),
            repair: self.repair.clone().map(|(config, sent)| RepairStage::new(config, sent)),
            rate: self.rate.clone().map(|config| RateStage::new(config, &self.options)),
            stream: self.stream.take(),
            id: SealId::from(self.config.instance),
            done_since: None,
            next_crowd: Instant::ZERO,
            next_whole: Instant::ZERO + WHOLE_EVERY,
            next_check: Instant::ZERO,
            checked: None,
            next_round: Instant::ZERO,
            last_round: LastRound::NotYet,
        };
        let mut buffer = vec![0; FeedbackDatagram::MAX_SIZE + 1];
        while !stop.is_cancelled() {
            let now = Instant::from_nanos(clock.now_nanos());
            let Ok(is_over) = self.poll(&mut collected, now, updates) else { return };
            if is_over {
                let _ = updates.send(Update::Over);
                bell.ring();
                return;
            }
            if !updates.is_empty() {
                bell.ring();
            }
            let patience = collected.patience(now);
            let received = match self.socket.receive(patience, &mut buffer) {
                Ok(Some((length, from))) => buffer.get(..length).map(|datagram| (datagram, from)),
                Ok(None) => None,
                // Only a defect of the system ends a socket that is bound.
                Err(error) => {
                    tracing::warn!(%error, "no more reports are received");
                    std::thread::sleep(LONGEST_WAIT);
                    None
                }
            };
            let Some((datagram, from)) = received else { continue };
            let now = Instant::from_nanos(clock.now_nanos());
            if self.take(&mut collected, now, datagram, from, updates).is_err() {
                return;
            }
        }
        let now = Instant::from_nanos(clock.now_nanos());
        while let Some(status) = collected.collector.poll_news(now) {
            let _ = updates.send(Update::Report(Box::new(status)));
        }
        let _ = updates.send(Update::Crowd(Arc::new(self.whole_crowd(&collected.collector))));
    }

    /// Sends what is due to the pacing thread. Returns whether the session is over.
    fn poll(
        &self,
        collected: &mut Collected,
        now: Instant,
        updates: &Sender<Update>,
    ) -> Result<bool, SendError<Update>> {
        let Collected { collector, repair, rate, stream, .. } = collected;
        if let Some(stream) = stream
            && stream.poll(now, collector, |status| self.counts(status), updates)?
        {
            collector.want_call();
        }
        if let Some(rate) = rate
            && rate.poll(now, updates)?
        {
            collector.want_call();
        }
        if let Some(repair) = repair
            && repair.poll(now, updates)?
        {
            collector.want_call();
        }
        let all_since = match (&*repair, &*stream) {
            (Some(repair), _) => repair.silent_since(),
            (None, Some(stream)) => stream.sent_since(),
            (None, None) => None,
        };
        // The last receivers say at once that they are complete.
        let is_ending = all_since.is_some_and(|at| now < at + FAREWELL);
        collected.last_round = match (all_since, collected.last_round) {
            (None, _) => LastRound::NotYet,
            (Some(_), LastRound::NotYet) => LastRound::After(collector.round()),
            (Some(_), last_round) => last_round,
        };
        let asks = matches!(collected.last_round, LastRound::After(_));
        if is_ending && now >= collected.next_round && (asks || !collector.has_only_final()) {
            collected.next_round = now + LAST_ROUNDS;
            collector.want_round();
        }
        // And are told at once that they are known.
        if is_ending && collector.is_listing() {
            collector.want_call();
        }
        if let Some(mut call) = collector.poll_roll_call(now, system::unix_ms()) {
            let (receivers, round_trip) = (collector.head_count(), collector.round_trip());
            call.repair =
                repair.as_mut().and_then(|repair| repair.rounds.call(now, receivers, round_trip));
            if matches!(collected.last_round, LastRound::After(last) if last != call.round) {
                let window = Duration::from_millis(call.window_ms.into());
                collected.last_round = LastRound::HeardAt(now + window + round_trip + SLACK);
            }
            let trip = collector.long_round_trip();
            call.rate = rate.as_mut().map(|rate| rate.control.call(now, trip));
            if stream.as_ref().is_some_and(|stream| stream.repairs) {
                let call = Box::new(call);
                let update = StreamUpdate::Call { call, receivers, round_trip };
                updates.send(Update::Stream(update))?;
            } else if let Some(object) = self.signer.object(&call) {
                updates.send(Update::RollCall(Box::new(object)))?;
            }
        }
        while let Some(status) = collector.poll_news(now) {
            updates.send(Update::Report(Box::new(status)))?;
        }
        let changes = collector.changes();
        let is_due = collected
            .checked
            .is_none_or(|(last, at)| last != changes || now >= at + CHECK_AT_LEAST_EVERY);
        if is_due && now >= collected.next_check {
            collected.next_check = now + CHECK_EVERY;
            collected.checked = Some((changes, now));
            let is_done = match self.options.expected {
                Expected::Anyone => {
                    matches!(collected.last_round, LastRound::HeardAt(at) if now >= at)
                        && collector.has_only_final()
                }
                _ => collector.summary().is_as_expected(),
            };
            collected.done_since = if is_done { collected.done_since.or(Some(now)) } else { None };
        }
        let is_over = self.is_over(collected, now, all_since);
        let collector = &mut collected.collector;
        if is_over || now >= collected.next_whole {
            (collected.next_crowd, collected.next_whole) = (now + CROWD_EVERY, now + WHOLE_EVERY);
            updates.send(Update::Crowd(Arc::new(self.whole_crowd(collector))))?;
        } else if now >= collected.next_crowd {
            collected.next_crowd = now + CROWD_EVERY;
            let crowd = Crowd {
                summary: collector.summary(),
                receivers: collector.notable(MAX_NOTABLE),
                is_whole: false,
                is_authenticated: self.is_authenticated(),
            };
            updates.send(Update::Crowd(Arc::new(crowd)))?;
        }
        Ok(is_over)
    }

    /// Whether the session ends. `all_since`: since when everything has been sent, and nothing is
    /// lacking.
    fn is_over(&self, collected: &Collected, now: Instant, all_since: Option<Instant>) -> bool {
        let is_told = collected
            .done_since
            .is_some_and(|at| !collected.collector.is_listing() || now >= at + FAREWELL);
        let until_complete = self.options.until_complete;
        let since = |at: Instant, time| now >= at + time;
        if let Some(stream) = &collected.stream {
            let deadline = |at| self.options.deadline.is_some_and(|deadline| since(at, deadline));
            return match all_since {
                // In between, the stream has the time that it takes.
                None => stream.is_waiting() && deadline(Instant::ZERO),
                Some(at) if until_complete => is_told || deadline(at),
                Some(at) => is_told || since(at, FAREWELL),
            };
        }
        let may_end = until_complete || all_since.is_some();
        // Receivers that say nothing more are not waited for, unless they are expected.
        let is_left = self.options.expected == Expected::Anyone
            && all_since.is_some_and(|at| since(at, FAREWELL));
        let is_too_old = collected.repair.as_ref().is_some_and(|it| it.rounds.is_too_old(now));
        (may_end && is_told)
            || is_left
            || is_too_old
            || self.options.deadline.is_some_and(|deadline| since(Instant::ZERO, deadline))
    }

    /// Whether a report counts for the beginning of a stream, and its repair follows it: any host
    /// could have sent it otherwise.
    fn counts(&self, status: &ReceiverStatus) -> bool {
        status.by.is_authentic() || self.options.trust_unauthenticated
    }

    /// Reads a datagram.
    fn take(
        &self,
        Collected { collector, repair, rate, stream, id, .. }: &mut Collected,
        now: Instant,
        datagram: &[u8],
        from: IpAddr,
        updates: &Sender<Update>,
    ) -> Result<(), SendError<Update>> {
        let opened = FeedbackDatagram::parse(datagram).ok().filter(|it| it.header.instance == *id);
        let opened = opened.and_then(|datagram| {
            let key = self.group_key.as_ref();
            let cipher =
                key.map(|key| InstanceCipher::of_reports(key, *id, datagram.header.receiver));
            datagram.open(cipher.as_ref()).ok()
        });
        let Some(opened) = opened else {
            collector.ignore();
            return Ok(());
        };
        let by = collector.authority(&opened, from);
        let is_authentic = by.is_authentic() || self.options.trust_unauthenticated;
        match &opened.feedback {
            Feedback::Report(report) => {
                let Ok(status) = collector.handle_report(now, &opened, by) else { return Ok(()) };
                if !collector.counts(by) {
                    return Ok(());
                }
                collector.measure(now, &opened.feedback);
                if let Some(repair) = repair {
                    repair.rounds.note_loss(now, report.loss_ppm);
                    if report.loss_ppm > 0 {
                        repair.note_losses();
                    }
                }
                let follows = stream.as_ref().is_some_and(|stream| stream.repairs);
                if follows && is_authentic {
                    let update = StreamUpdate::Loss { ppm: report.loss_ppm };
                    updates.send(Update::Stream(update))?;
                }
                if let (Some(rate), Some(status)) = (rate, &status)
                    && is_authentic
                {
                    rate.note_state(status);
                }
                Ok(())
            }
            Feedback::Rate(report) => {
                let taken = match rate.as_mut().filter(|_| is_authentic) {
                    Some(rate) => {
                        if !collector.knows(by, &report.receiver) {
                            rate.note_unknown(report.receiver);
                        }
                        rate.take(now, report, opened.counter, updates)?
                    }
                    None => false,
                };
                if taken {
                    collector.measure(now, &opened.feedback);
                    repair
                        .iter_mut()
                        .filter(|_| report.lost > 0)
                        .for_each(RepairStage::note_losses);
                } else {
                    collector.ignore();
                }
                Ok(())
            }
            // What a fragment may have bounds what receivers can cause that lie.
            Feedback::Request(request) if stream.as_ref().is_some_and(|it| it.repairs) => {
                if !is_authentic {
                    collector.ignore();
                    return Ok(());
                }
                collector.measure(now, &opened.feedback);
                let update = StreamUpdate::Request(Box::new(request.clone()));
                updates.send(Update::Stream(update))?;
                Ok(())
            }
            Feedback::Request(request) => {
                let taken = repair.as_mut().is_some_and(|repair| {
                    repair.rounds.handle_request(now, request, opened.counter, by).is_ok()
                });
                if !taken {
                    collector.ignore();
                } else if collector.counts(by) {
                    collector.measure(now, &opened.feedback);
                    repair.iter_mut().for_each(RepairStage::note_losses);
                }
                Ok(())
            }
        }
    }

    fn whole_crowd(&self, collector: &ReportCollector) -> Crowd {
        Crowd {
            summary: collector.summary(),
            receivers: collector.receivers().cloned().collect(),
            is_whole: true,
            is_authenticated: self.is_authenticated(),
        }
    }
}

impl Collected {
    /// Longest wait for a datagram.
    fn patience(&self, now: Instant) -> Duration {
        let until_call = self.collector.poll_timeout().saturating_since(now).min(LONGEST_WAIT);
        let repair = self.repair.as_ref().map(|repair| repair.patience(now));
        let rate = self.rate.as_ref().and_then(|rate| rate.patience(now));
        let stream = self.stream.as_ref().and_then(StreamStage::patience);
        repair.into_iter().chain(rate).chain(stream).fold(until_call, Duration::min)
    }
}
