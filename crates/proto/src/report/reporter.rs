//! The receiver's side: when to answer roll calls.

use super::answer::{Answer, ReportFacts, micros};
use super::limit::SecondLimit;
use super::rate_reporter::{PacketCounts, RateReporter};
use super::requester::RepairRequester;
use crate::lacking::Lacking;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{
    Feedback, Hash, InstanceId, ReceiverId, ReceiverLabel, ReceiverReport, ReceiverState,
    RepairRequest, RollCall, RollCallEcho, SealId,
};
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

/// What a receiver knows of the sender's requests.
#[derive(Clone, Copy, Debug)]
struct Asked {
    instance: InstanceId,
    collector: SocketAddr,
    serial: u64,
    /// When the last roll call arrived.
    at: Instant,
    round: u32,
    /// The part of the window after which it reports.
    turn: f64,
    /// The roll call's request is valid until then.
    until: Instant,
    /// When to report; `None`: it has reported in this round.
    due: Option<Instant>,
    /// The request has ended before the report was sent.
    is_over: bool,
}

/// Answers roll calls that were [checked](super::RollCallGate).
#[derive(Debug)]
pub struct Reporter {
    config: ReporterConfig,
    random: SplitMix64,
    limit: SecondLimit,
    asked: Option<Asked>,
    repair: RepairRequester,
    /// `None`: its user does not allow rate reports.
    rate: Option<RateReporter>,
    counter: u64,
    state: ReceiverState,
    /// When the state became final.
    ended_at: Option<Instant>,
    /// When it has first reported its end to the run of the sender that asks.
    final_at: Option<Instant>,
    /// The window of reports of the last roll call: at first that of a crowd, which may not be
    /// there.
    window: Duration,
    /// Salt of the first roll call that lists it.
    listed: Option<u64>,
    is_known: bool,
}

impl Reporter {
    /// Default of `max_per_second`.
    pub const DEFAULT_MAX_PER_SECOND: u32 = 4;

    /// A reporter that was not asked.
    pub fn new(config: ReporterConfig) -> Self {
        let ReporterConfig { max_per_second, seed, .. } = config;
        Self {
            rate: rate_reporter(&config),
            config,
            random: SplitMix64::new(seed, 0),
            limit: SecondLimit::new(max_per_second),
            asked: None,
            repair: RepairRequester::new(seed),
            counter: 0,
            state: ReceiverState::Receiving,
            ended_at: None,
            final_at: None,
            window: Duration::ZERO,
            listed: None,
            is_known: false,
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
            self.rate = None;
        }
    }

    /// It receives the next version, unless it does so already.
    pub fn begin(&mut self) {
        if self.ended_at.take().is_some() {
            self.state = ReceiverState::Receiving;
            (self.final_at, self.listed, self.is_known) = (None, None, false);
            self.rate = rate_reporter(&self.config);
        }
    }

    /// Goes on in another reception, whose clock begins at zero: times of the last one mean
    /// nothing.
    pub(crate) fn go_on(&mut self) {
        self.limit = SecondLimit::new(self.config.max_per_second);
        self.repair = RepairRequester::new(self.config.seed);
        self.rate = self.rate.take().and_then(|_| rate_reporter(&self.config));
        let zero = |at: &mut Instant| *at = Instant::ZERO;
        self.ended_at.iter_mut().chain(&mut self.final_at).for_each(zero);
        if let Some(asked) = &mut self.asked {
            (asked.at, asked.until, asked.due) = (Instant::ZERO, Instant::ZERO, None);
            asked.is_over = true;
        }
    }

    /// It has the version with this manifest already.
    pub fn has(&mut self, now: Instant, manifest: Hash) {
        let state = ReceiverState::Complete { manifest };
        if self.state != state {
            self.begin();
            self.end(now, state);
        }
    }

    /// Until when a receiver that has ended waits for the collector to know it: longer if it asks.
    /// `None` if it knows, or the reception has not ended.
    pub fn waits_until(&self) -> Option<Instant> {
        let ended_at = self.ended_at.filter(|_| !self.is_known)?;
        let until = match self.asked {
            None => ended_at + FIRST_CALL,
            Some(asked) => asked.at.max(ended_at) + NEXT_CALL,
        };
        let unanswered = self.final_at.map(|at| at + UNANSWERED.max(2 * self.window));
        let until = unanswered.map_or(until, |unanswered| until.min(unanswered));
        Some(until.min(ended_at + LONGEST_WAIT))
    }

    /// Whether a sender has asked.
    pub fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// The collector has confirmed that it knows the final state: nothing is left to report.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// True if the sender asks for reports now.
    pub fn is_asked(&self, now: Instant) -> bool {
        self.asked.is_some_and(|asked| now <= asked.until)
    }

    /// Handles a roll call that was checked. `counts`: the packets that have arrived before, and
    /// those that were lost. `lacking`: what the receiver lacks then, of so many blocks at most.
    pub fn handle_roll_call(
        &mut self,
        now: Instant,
        call: &RollCall,
        counts: PacketCounts,
        lacking: impl FnOnce(usize) -> Lacking,
    ) {
        self.repair.handle_roll_call(now, call, lacking);
        self.rate.iter_mut().for_each(|rate| rate.handle_roll_call(now, call, counts));
        let last = self.asked.filter(|asked| asked.instance == call.instance);
        if last.is_none() {
            // Another run of the sender knows nothing of this receiver.
            (self.final_at, self.listed, self.is_known) = (None, None, false);
        }
        self.window = Duration::from_millis(call.window_ms.into());
        if self.final_at.is_some() && call.lists(&self.config.receiver, &self.config.label) {
            match self.listed {
                Some(salt) if salt != call.salt => self.is_known = true,
                _ => self.listed = Some(call.salt),
            }
        }
        let position = f64::from(call.position) / f64::from(u32::MAX);
        let follows = last.filter(|last| last.round == call.round && now <= last.until);
        let (turn, due) = match follows {
            Some(Asked { turn, due: None, .. }) => (turn, None),
            Some(Asked { turn, due: Some(due), .. }) if turn < position => {
                let made_up = now + self.below(MAKE_UP);
                (turn, Some(due.min(made_up)))
            }
            Some(Asked { turn, .. }) => (turn, Some(now + wait(call, turn - position))),
            // It has reported in this round, although it has missed some roll calls since.
            None if last.is_some_and(|l| l.round == call.round && l.due.is_none()) => (1.0, None),
            // Most of the window has passed: a crowd would report in the rest of it.
            None if position >= LATEST_ENTRY => (1.0, None),
            None => {
                let turn = position + (1.0 - position) * self.random.unit();
                (turn, Some(now + wait(call, turn - position)))
            }
        };
        self.asked = Some(Asked {
            instance: call.instance,
            collector: call.collector,
            serial: call.serial,
            at: now,
            round: call.round,
            turn,
            until: now + VALID,
            due,
            is_over: false,
        });
    }

    /// The answer that is due, once. `facts` is how far the receiver is.
    pub fn poll(&mut self, now: Instant, facts: impl FnOnce() -> ReportFacts) -> Option<Answer> {
        let (is_known, earliest) = (self.is_known, self.limit.earliest());
        let asked = self.asked.as_mut()?;
        asked.is_over |= now > asked.until;
        if asked.is_over || now < earliest {
            return None;
        }
        let (to, instance) = (asked.collector, SealId::from(asked.instance));
        let held_us = micros(now.saturating_since(asked.at));
        let echo = RollCallEcho { serial: asked.serial, held_us };
        let receiver = self.config.receiver;
        let feedback = if asked.due.is_some_and(|due| due <= now) && !is_known {
            asked.due = None;
            let round = asked.round;
            if self.ended_at.is_some() {
                self.final_at.get_or_insert(now);
            }
            self.limit.spend(now);
            Feedback::Report(self.report(now, round, echo, &facts()))
        } else if self.repair.due().is_some_and(|due| due <= now) {
            let (round, Lacking { may_lack_more, blocks, maps }) = self.repair.take()?;
            self.limit.spend(now);
            let mute_us = micros(self.limit.earliest().saturating_since(now));
            let loss_ppm = facts().loss_ppm();
            let request = RepairRequest {
                receiver,
                round,
                echo,
                loss_ppm,
                mute_us,
                may_lack_more,
                blocks,
                maps,
            };
            Feedback::Request(request)
        } else {
            let rate = self.rate.as_mut().filter(|rate| rate.due().is_some_and(|due| due <= now));
            let report = rate?.take(now, facts().packets)?.report(receiver, echo);
            self.limit.spend(now);
            Feedback::Rate(report)
        };
        let counter = self.counter;
        self.counter += 1;
        Some(Answer { to, instance, counter, feedback })
    }

    fn report(
        &self,
        now: Instant,
        round: u32,
        echo: RollCallEcho,
        facts: &ReportFacts,
    ) -> ReceiverReport {
        let ReporterConfig { receiver, ref label, started_unix_ms, .. } = self.config;
        let is_complete = matches!(self.state, ReceiverState::Complete { .. });
        ReceiverReport {
            receiver,
            label: label.clone(),
            started_unix_ms,
            round,
            echo,
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
        let asked = self.asked.filter(|asked| !asked.is_over)?;
        let report = asked.due.filter(|_| !self.is_known);
        let rate = self.rate.as_ref().and_then(RateReporter::due);
        let due = report.into_iter().chain(self.repair.due()).chain(rate).min()?;
        let due = due.max(self.limit.earliest());
        (due <= asked.until).then_some(due)
    }

    /// A random time up to `limit`.
    fn below(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.random.unit())
    }
}

fn rate_reporter(config: &ReporterConfig) -> Option<RateReporter> {
    config.reports_rate.then(|| RateReporter::new(config.max_per_second, config.seed))
}

/// Time until this part of the window has passed.
fn wait(call: &RollCall, part: f64) -> Duration {
    Duration::from_millis(call.window_ms.into()).mul_f64(part.clamp(0.0, 1.0))
}
