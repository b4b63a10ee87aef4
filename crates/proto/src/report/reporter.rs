//! The receiver's side: when to answer roll calls.

use super::answer::{Answer, ReportFacts, micros};
use super::gate::{MAX_RUNS, RUN_GONE};
use super::limit::SecondLimit;
use super::outage::Outages;
use super::rate_reporter::{PacketCounts, RateReporter};
use super::requester::RepairRequester;
use crate::feedback::AT_ONCE;
use crate::lacking::Lacking;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{
    Feedback, Hash, InstanceId, ReceiverId, ReceiverLabel, ReceiverReport, ReceiverState,
    RepairRequest, RollCall, RollCallEcho, SealId,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Time after a roll call in which its request is valid.
const VALID: Duration = Duration::from_secs(2);
/// Time in which a receiver reports whose turn has passed unnoticed, because a roll call was lost.
const MAKE_UP: Duration = Duration::from_millis(500);

/// Part of a round's window from which on a receiver that has not followed the round waits for the
/// next one.
const LATEST_ENTRY: f64 = 0.5;

/// Longest wait of a receiver that has ended for its first roll call: six of them.
const FIRST_CALL: Duration = Duration::from_secs(3);
/// Longest wait for another roll call after the last one: the sender has ended.
const NEXT_CALL: Duration = Duration::from_secs(5);
/// Longest wait until the collector knows the final state: 100 000 receivers take eight minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
/// Longest time from its first report of its end to the answer; two windows of reports if these are
/// longer. After that its reports do not arrive, or the answers do not.
const UNANSWERED: Duration = Duration::from_secs(10);
/// The same, if another sender has answered.
const OTHERS_UNANSWERED: Duration = Duration::from_secs(3);

/// Time after a [stall](Reporter::handle_stall) in which what arrives has waited in a buffer, and
/// the least time between two that count: a host that stalls again and again is slow.
const LATE_FOR: Duration = Duration::from_secs(1);
const STALLS_EVERY: Duration = Duration::from_secs(10);

/// How many times as many answers a receiver sends while a sender asks in short rounds.
const QUICK_BURST: usize = 6;

/// Who reports, and what.
#[derive(Clone, Debug)]
pub struct ReporterConfig {
    /// The number that the receiver has drawn.
    pub receiver: ReceiverId,
    /// Its name; may be empty.
    pub label: ReceiverLabel,
    /// When it has started, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Answers that it sends in any second, at most; one if this is 0.
    pub max_per_second: u32,
    /// It also reports how much arrives, to a sender that controls its rate by that. Such reports
    /// are at most half of all answers.
    pub reports_rate: bool,
    /// It receives one version after the other, and answers only senders whose head says which
    /// version they send.
    pub follows: bool,
    /// Seed of its random waits.
    pub seed: u64,
}

impl ReporterConfig {
    /// Without rate reports, and with [`Reporter::DEFAULT_MAX_PER_SECOND`].
    pub fn new(receiver: ReceiverId, label: ReceiverLabel, seed: u64) -> Self {
        let max_per_second = Reporter::DEFAULT_MAX_PER_SECOND;
        let (started_unix_ms, reports_rate, follows) = (0, false, false);
        Self { receiver, label, started_unix_ms, max_per_second, reports_rate, follows, seed }
    }
}

/// Least time over which the packets of a run are counted for [`Arrivals`].
const COUNTED_FOR: Duration = Duration::from_secs(1);
/// Time in which the packets per second of a run that sends none count half. A sender that is
/// waited for its repair symbols sends few.
const HALVED_IN: Duration = Duration::from_secs(10);
/// How much faster another run has to be to get the requests.
const FASTER: f64 = 2.0;

/// How fast packets of a run arrive.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    /// Since when packets are counted, and how many had arrived before.
    since: Instant,
    received: u64,
    /// The most lately.
    per_second: f64,
}

impl Arrivals {
    fn new(now: Instant, counts: PacketCounts) -> Self {
        Self { since: now, received: counts.received, per_second: 0.0 }
    }

    fn count(self, now: Instant, counts: PacketCounts) -> Self {
        let passed = now.saturating_since(self.since);
        if passed < COUNTED_FOR {
            return self;
        }
        let seconds = passed.as_secs_f64();
        let per_second = counts.received.saturating_sub(self.received) as f64 / seconds;
        let before = self.per_second * 0.5_f64.powf(seconds / HALVED_IN.as_secs_f64());
        Self { per_second: per_second.max(before), ..Self::new(now, counts) }
    }
}

/// A run of a sender that asks, and what is known of its requests.
#[derive(Clone, Copy, Debug)]
struct Run {
    instance: InstanceId,
    collector: SocketAddr,
    serial: u64,
    /// When the last roll call arrived, and whether it had waited at this host.
    at: Instant,
    is_late: bool,
    round: u32,
    /// The part of the window after which it reports.
    turn: f64,
    /// The roll call's request is valid until then.
    until: Instant,
    /// When to report; `None`: it has reported in this round.
    due: Option<Instant>,
    /// It reports its end, or that it lacks nothing, and waits for no turn.
    is_urgent: bool,
    /// The request has ended before the report was sent.
    is_over: bool,
    /// The receivers that the sender assumes are few: one may report at once, and one roll call
    /// tells it that it is known.
    has_few: bool,
    /// The window of reports of the last roll call: at first that of a crowd, which may not be
    /// there.
    window: Duration,
    /// What it has been told of the end, if that is told.
    told: Told,
    arrivals: Arrivals,
}

/// What a run of a sender has been told of the end of the reception.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    /// When the end was first reported to it.
    at: Option<Instant>,
    /// Salt of the first roll call that lists the receiver since.
    listed: Option<u64>,
    is_known: bool,
}

/// Answers roll calls that were [checked](super::RollCallGate): those of several runs of senders,
/// each by itself. It requests symbols of one: the first that has asked, or one that was faster.
#[derive(Debug)]
pub struct Reporter {
    config: ReporterConfig,
    random: SplitMix64,
    limit: SecondLimit,
    /// The runs that ask, the first one first.
    runs: Vec<Run>,
    repair: RepairRequester,
    /// The run that symbols are requested of.
    requests_of: Option<InstanceId>,
    /// What arrives of each run that asks for it, until the end.
    rates: BTreeMap<InstanceId, RateReporter>,
    outages: Outages,
    counter: u64,
    state: ReceiverState,
    /// When the state became final.
    ended_at: Option<Instant>,
    /// What arrives until then has waited at this host.
    late_until: Option<Instant>,
}

impl Reporter {
    /// Default of `max_per_second`.
    pub const DEFAULT_MAX_PER_SECOND: u32 = 4;

    /// A reporter that was not asked.
    pub fn new(config: ReporterConfig) -> Self {
        let ReporterConfig { max_per_second, seed, .. } = config;
        Self {
            rates: BTreeMap::new(),
            outages: Outages::default(),
            config,
            random: SplitMix64::new(seed, 0),
            limit: SecondLimit::new(max_per_second),
            runs: Vec::new(),
            repair: RepairRequester::new(seed),
            requests_of: None,
            counter: 0,
            state: ReceiverState::Receiving,
            ended_at: None,
            late_until: None,
        }
    }

    /// The number that the receiver has drawn.
    pub fn receiver(&self) -> ReceiverId {
        self.config.receiver
    }

    /// Whether it receives one version after the other.
    pub fn follows(&self) -> bool {
        self.config.follows
    }

    /// The reception has ended so. The state will not change before it [begins](Self::begin) again.
    pub fn end(&mut self, now: Instant, state: ReceiverState) {
        if self.ended_at.is_none() {
            (self.state, self.ended_at) = (state, Some(now));
            // What arrives now is of no use to it: the rate need not suit it.
            self.rates.clear();
            self.hurry(now);
        }
    }

    /// Reports now that something has changed, where few do.
    pub(crate) fn hurry(&mut self, now: Instant) {
        for run in self.runs.iter_mut().filter(|run| run.has_few && now <= run.until) {
            (run.due, run.is_urgent) = (Some(now), true);
        }
    }

    /// It receives the next version, unless it does so already.
    pub fn begin(&mut self) {
        if self.ended_at.take().is_some() {
            self.state = ReceiverState::Receiving;
            // Those that have asked are of the version before, and may have gone: a receiver that
            // waited for them would be late with its version.
            self.runs.clear();
        }
    }

    /// Goes on in another reception, whose clock begins now, at zero: other times of the last one
    /// mean nothing.
    pub(crate) fn go_on(&mut self, now: Instant) {
        self.limit.go_on(now);
        self.repair = RepairRequester::new(self.config.seed);
        self.rates.clear();
        self.late_until = None;
        self.ended_at.iter_mut().for_each(|at| *at = Instant::ZERO);
        for run in &mut self.runs {
            (run.at, run.until, run.due, run.is_over) = (Instant::ZERO, Instant::ZERO, None, true);
            run.arrivals = Arrivals::new(Instant::ZERO, PacketCounts::default());
            run.told.at.iter_mut().for_each(|at| *at = Instant::ZERO);
        }
    }

    /// The receiver has not run for a while, as if its host slept: what has arrived since says
    /// nothing of the path, and how long it has waited is not known.
    pub fn handle_stall(&mut self, now: Instant) {
        if self.late_until.is_none_or(|until| now >= until + STALLS_EVERY) {
            self.late_until = Some(now + LATE_FOR);
            self.rates.values_mut().for_each(RateReporter::forget);
        }
    }

    /// A packet has arrived, with which so many are known to be lost. What was lost in an outage
    /// says nothing of the rate that the path carries: counting begins again.
    #[inline]
    pub fn handle_packet(&mut self, now: Instant, lost: u64) {
        if self.outages.on_packet(now, lost) {
            self.rates.values_mut().for_each(RateReporter::forget);
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        self.late_until.is_some_and(|until| now < until)
    }

    /// It has the version with this manifest already.
    pub fn has(&mut self, now: Instant, manifest: Hash) {
        let state = ReceiverState::Complete { manifest };
        if self.state != state {
            self.begin();
            self.end(now, state);
        }
    }

    /// Until when a receiver that has ended waits for the senders that ask to know it. `None` if
    /// they know, or the reception has not ended.
    pub fn waits_until(&self) -> Option<Instant> {
        let ended_at = self.ended_at?;
        if self.runs.is_empty() {
            return Some(ended_at + FIRST_CALL);
        }
        let is_known = |run: &&Run| run.told.is_known;
        let patience =
            if self.runs.iter().any(|run| is_known(&run)) { OTHERS_UNANSWERED } else { UNANSWERED };
        let unknown = self.runs.iter().filter(|run| !is_known(run));
        let until = |run: &Run| {
            let until = run.at.max(ended_at) + NEXT_CALL;
            let answered = run.told.at.map(|at| at + patience.max(2 * run.window));
            answered.map_or(until, |answered| until.min(answered)).min(ended_at + LONGEST_WAIT)
        };
        unknown.map(until).max()
    }

    /// Whether a sender has asked.
    pub fn was_asked(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The senders that ask have confirmed that they know the final state: nothing is left to
    /// report.
    pub fn is_known(&self) -> bool {
        self.was_asked() && self.runs.iter().all(|run| run.told.is_known)
    }

    /// True if the sender asks for reports now.
    pub fn is_asked(&self, now: Instant) -> bool {
        self.runs.iter().any(|run| now <= run.until)
    }

    /// Handles a roll call that was checked. `counts`: the packets of its run that have arrived
    /// before, and those that were lost. `lacking`: what the receiver lacks then, of so many blocks
    /// at most.
    pub fn handle_roll_call(
        &mut self,
        now: Instant,
        call: &RollCall,
        counts: PacketCounts,
        lacking: impl FnOnce(usize) -> Lacking,
    ) {
        self.runs.retain(|run| run.instance == call.instance || now < run.at + RUN_GONE);
        let at = self.runs.iter().position(|run| run.instance == call.instance);
        self.count(now, call, counts);
        let last = at.and_then(|at| self.runs.get(at)).copied();
        let has_few = call.head_count <= AT_ONCE;
        // Another run of the sender knows nothing of this receiver.
        let mut told = last.map_or_else(Told::default, |last| last.told);
        if told.at.is_some() && call.lists(&self.config.receiver, &self.config.label) {
            match told.listed {
                Some(salt) if salt != call.salt => told.is_known = true,
                _ if has_few => told.is_known = true,
                _ => told.listed = Some(call.salt),
            }
        }
        let ends_late = has_few && self.ended_at.is_some() && told.at.is_none();
        let position = f64::from(call.position) / f64::from(u32::MAX);
        let follows = last.filter(|last| last.round == call.round && now <= last.until);
        let (turn, due) = match follows {
            // It has ended before it was asked.
            _ if ends_late && last.is_none() => (1.0, Some(now)),
            Some(Run { turn, due: None, .. }) => (turn, None),
            Some(Run { turn, due, is_urgent: true, .. }) => (turn, due),
            Some(Run { turn, due: Some(due), .. }) if turn < position => {
                let made_up = now + self.below(MAKE_UP);
                (turn, Some(due.min(made_up)))
            }
            Some(Run { turn, .. }) => (turn, Some(now + wait(call, turn - position))),
            // It has reported in this round, although it has missed some roll calls since.
            None if last.is_some_and(|l| l.round == call.round && l.due.is_none()) => (1.0, None),
            // Most of the window has passed: a crowd would report in the rest of it.
            None if position >= LATEST_ENTRY => (1.0, None),
            None => {
                let turn = position + (1.0 - position) * self.random.unit();
                (turn, Some(now + wait(call, turn - position)))
            }
        };
        let run = Run {
            instance: call.instance,
            collector: call.collector,
            serial: call.serial,
            at: now,
            is_late: self.is_late(now),
            round: call.round,
            turn,
            until: now + VALID,
            due,
            is_urgent: due.is_some() && last.map_or(ends_late, |last| last.is_urgent),
            is_over: false,
            has_few,
            window: Duration::from_millis(call.window_ms.into()),
            told,
            arrivals: last.map_or_else(
                || Arrivals::new(now, counts),
                |last| last.arrivals.count(now, counts),
            ),
        };
        if let Some(last) = self.runs.iter_mut().find(|last| last.instance == run.instance) {
            *last = run;
        } else if self.runs.len() < MAX_RUNS {
            self.runs.push(run);
        }
        if self.chooses(now) == Some(call.instance) {
            self.repair.handle_roll_call(now, call, lacking);
        }
    }

    /// It requests in this round for its site, of so many members.
    pub(crate) fn request(
        &mut self,
        now: Instant,
        members: u32,
        lacking: impl FnOnce(usize) -> Lacking,
    ) {
        self.repair.request(now, members, lacking);
    }

    /// The run to request of: the same as before, unless it asks no longer, or another is much
    /// faster.
    fn chooses(&mut self, now: Instant) -> Option<InstanceId> {
        let mut asking = self.runs.iter().filter(|run| now <= run.until);
        let of = |run: &&Run| Some(run.instance) == self.requests_of;
        let mut chosen = asking.clone().find(of).or_else(|| asking.next())?;
        for run in asking {
            if run.arrivals.per_second > FASTER * chosen.arrivals.per_second {
                chosen = run;
            }
        }
        self.requests_of = Some(chosen.instance);
        self.requests_of
    }

    /// Counts what arrives of a run that asks for it.
    fn count(&mut self, now: Instant, call: &RollCall, counts: PacketCounts) {
        let ReporterConfig { reports_rate, max_per_second, seed, .. } = self.config;
        let runs = &self.runs;
        self.rates.retain(|&of, _| of == call.instance || runs.iter().any(|it| it.instance == of));
        let has_room = self.rates.len() < MAX_RUNS || self.rates.contains_key(&call.instance);
        if !reports_rate || self.ended_at.is_some() || !has_room || self.is_late(now) {
            return;
        }
        let seed = seed.wrapping_add(self.rates.len() as u64);
        let rate = self.rates.entry(call.instance);
        rate.or_insert_with(|| RateReporter::new(max_per_second, seed))
            .handle_roll_call(now, call, counts);
    }

    /// The answer that is due, once. `facts` is how far the receiver is, and what has arrived of a
    /// run.
    pub fn poll(
        &mut self,
        now: Instant,
        facts: impl FnOnce(InstanceId) -> ReportFacts,
    ) -> Option<Answer> {
        self.runs.iter_mut().for_each(|run| run.is_over |= now > run.until);
        if now < self.earliest(now) {
            return None;
        }
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        let is_wanted = |run: &Run| !run.is_over && !run.told.is_known;
        let reports = self.runs.iter().position(|run| is_wanted(run) && is_due(run.due));
        let (run, feedback) = if let Some(run) = reports.and_then(|at| self.runs.get_mut(at)) {
            (run.due, run.is_urgent) = (None, false);
            if self.ended_at.is_some() {
                run.told.at.get_or_insert(now);
            }
            let run = *run;
            (run, Feedback::Report(self.report(now, &run, &facts(run.instance))))
        } else if let Some(run) = self.repair.sender().and_then(|of| self.run(of))
            && is_due(self.repair.due())
        {
            let (round, Lacking { may_lack_more, blocks, maps }) = self.repair.take()?;
            self.limit.spend(now);
            let mute_us = micros(self.earliest(now).saturating_since(now));
            let request = RepairRequest {
                receiver: self.config.receiver,
                round,
                echo: run.echo(now),
                loss_ppm: facts(run.instance).loss_ppm(),
                mute_us,
                may_lack_more,
                blocks,
                maps,
            };
            return Some(self.answer(&run, Feedback::Request(request)));
        } else {
            let is_asked = |of| self.run(of).is_some();
            let due = self.rates.iter().find(|&(&of, rate)| is_due(rate.due()) && is_asked(of));
            let of = due.map(|(&of, _)| of)?;
            let run = self.run(of)?;
            let sample = self.rates.get_mut(&of)?.take(now, facts(of).packets)?;
            (run, Feedback::Rate(sample.report(self.config.receiver, run.echo(now))))
        };
        self.limit.spend(now);
        Some(self.answer(&run, feedback))
    }

    /// The run whose request is still valid.
    fn run(&self, instance: InstanceId) -> Option<Run> {
        self.runs.iter().find(|run| run.instance == instance && !run.is_over).copied()
    }

    fn answer(&mut self, run: &Run, feedback: Feedback) -> Answer {
        let counter = self.counter;
        self.counter += 1;
        Answer { to: run.collector, instance: SealId::from(run.instance), counter, feedback }
    }

    fn report(&self, now: Instant, run: &Run, facts: &ReportFacts) -> ReceiverReport {
        let ReporterConfig { receiver, ref label, started_unix_ms, .. } = self.config;
        let is_complete = matches!(self.state, ReceiverState::Complete { .. });
        ReceiverReport {
            receiver,
            label: label.clone(),
            started_unix_ms,
            round: run.round,
            echo: run.echo(now),
            state: self.state,
            permille: if is_complete { 1_000 } else { facts.permille() },
            symbols_lacking: facts.symbols_wanted,
            loss_ppm: facts.loss_ppm(),
            kernel_drops: facts.local_drops,
            channels: facts.channels,
            seconds: u32::try_from(now.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX),
        }
    }

    /// When the next answer is due; `None` if none is.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let valid = self.runs.iter().filter(|run| !run.is_over);
        let reports = valid.clone().filter(|run| !run.told.is_known).filter_map(|run| run.due);
        let of = |due: Option<Instant>, sender: Option<InstanceId>| {
            due.filter(|_| sender.is_some_and(|sender| self.run(sender).is_some()))
        };
        let rates =
            self.rates.iter().filter_map(|(&instance, rate)| of(rate.due(), Some(instance)));
        let repair = of(self.repair.due(), self.repair.sender());
        let due = reports.chain(repair).chain(rates).min()?;
        let due = due.max(self.earliest(due));
        (due <= valid.map(|run| run.until).max()?).then_some(due)
    }

    /// No answer may be sent before: to a sender that asks in short rounds, six times as many may.
    fn earliest(&self, now: Instant) -> Instant {
        let is_quick = self.rates.values().any(|rate| rate.is_quick(now));
        self.limit.earliest(if is_quick { QUICK_BURST } else { 1 })
    }

    /// A random time up to `limit`.
    fn below(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.random.unit())
    }
}

impl Run {
    fn echo(&self, now: Instant) -> RollCallEcho {
        let held_us = micros(now.saturating_since(self.at));
        let held_us = if self.is_late { RollCallEcho::UNKNOWN } else { held_us };
        RollCallEcho { serial: self.serial, held_us }
    }
}

/// Time until this part of the window has passed.
fn wait(call: &RollCall, part: f64) -> Duration {
    Duration::from_millis(call.window_ms.into()).mul_f64(part.clamp(0.0, 1.0))
}
