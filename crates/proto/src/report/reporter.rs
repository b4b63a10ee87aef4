//! The receiver's side: when to answer roll calls.

use super::limit::SecondLimit;
use super::rate_reporter::{PacketCounts, RateReporter, RateSample};
use super::requester::RepairRequester;
use crate::lacking::Lacking;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{InstanceId, ReceiverId, ReceiverLabel, RollCall, RollCallEcho, SealId};
use std::net::SocketAddr;
use std::time::Duration;

/// Time after a roll call in which its request is valid.
const VALID: Duration = Duration::from_secs(2);
/// Time in which a receiver reports whose turn has passed unnoticed, because a roll call was lost.
const MAKE_UP: Duration = Duration::from_millis(500);

/// Part of a round's window from which on a receiver that has not followed the round waits for the
/// next one.
const LATEST_ENTRY: f64 = 0.5;

/// An answer to a roll call that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueAnswer {
    /// Where to send it: the signed address of the roll call.
    pub to: SocketAddr,
    /// The run of the sender that has asked.
    pub instance: SealId,
    /// Its number: grows for as long as the process runs.
    pub counter: u64,
    /// The roll call that it answers, and since when it is here.
    pub echo: RollCallEcho,
    /// What to send.
    pub content: AnswerContent,
}

/// What a receiver answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerContent {
    /// How far it is, in this round.
    Report {
        /// The round of reports.
        round: u32,
    },
    /// What it lacks, in this round.
    Request {
        /// The repair round.
        round: u32,
        /// What it lacked when the round began.
        lacking: Lacking,
        /// Time in microseconds until it may send again.
        mute_us: u32,
    },
    /// How much arrives, in this rate round.
    Rate(RateSample),
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
    receiver: ReceiverId,
    label: ReceiverLabel,
    random: SplitMix64,
    limit: SecondLimit,
    asked: Option<Asked>,
    repair: RepairRequester,
    /// `None`: its user does not allow rate reports.
    rate: Option<RateReporter>,
    max_per_second: u32,
    seed: u64,
    counter: u64,
    is_final: bool,
    /// It has reported its final state to the present sender.
    has_reported_final: bool,
    /// Salt of the first roll call that lists it.
    listed: Option<u64>,
    is_known: bool,
}

impl Reporter {
    /// Default of `max_per_second`.
    pub const DEFAULT_MAX_PER_SECOND: u32 = 4;

    /// A reporter that was not asked. In any second it sends at most `max_per_second` reports and
    /// requests, and one if that is 0.
    pub fn new(receiver: ReceiverId, label: ReceiverLabel, max_per_second: u32, seed: u64) -> Self {
        Self {
            receiver,
            label,
            random: SplitMix64::new(seed, 0),
            limit: SecondLimit::new(max_per_second),
            asked: None,
            repair: RepairRequester::new(seed),
            rate: None,
            max_per_second,
            seed,
            counter: 0,
            is_final: false,
            has_reported_final: false,
            listed: None,
            is_known: false,
        }
    }

    /// The reporter, which also reports how much arrives, to a sender that controls its rate by
    /// that. Such reports are at most half of all answers.
    #[must_use]
    pub fn with_rate_reports(self) -> Self {
        Self { rate: Some(RateReporter::new(self.max_per_second, self.seed)), ..self }
    }

    /// Sets the packets of the session that have arrived until now. Called before
    /// [`handle_roll_call`](Self::handle_roll_call) and [`poll`](Self::poll).
    pub fn set_counts(&mut self, counts: PacketCounts) {
        self.rate.iter_mut().for_each(|rate| rate.set_counts(counts));
    }

    /// The state of the receiver will not change again.
    pub fn set_final(&mut self) {
        self.is_final = true;
        // What arrives now is of no use to it: the rate need not suit it.
        self.rate = None;
    }

    /// The collector has confirmed that it knows the final state: nothing is left to report.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// True if the sender asks for reports now.
    pub fn is_asked(&self, now: Instant) -> bool {
        self.asked.is_some_and(|asked| now <= asked.until)
    }

    /// Handles a roll call that was checked. `lacking`: what the receiver lacks, of so many blocks
    /// at most, after all that has arrived before.
    pub fn handle_roll_call(
        &mut self,
        now: Instant,
        call: &RollCall,
        lacking: impl FnOnce(usize) -> Lacking,
    ) {
        self.repair.handle_roll_call(now, call, lacking);
        self.rate.iter_mut().for_each(|rate| rate.handle_roll_call(now, call));
        let last = self.asked.filter(|asked| asked.instance == call.instance);
        if last.is_none() {
            // Another run of the sender knows nothing of this receiver.
            (self.has_reported_final, self.listed, self.is_known) = (false, None, false);
        }
        if self.has_reported_final && call.lists(&self.receiver, &self.label) {
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

    /// The answer that is due, once. The caller sends it now, or not at all.
    pub fn poll(&mut self, now: Instant) -> Option<DueAnswer> {
        let (is_known, earliest) = (self.is_known, self.limit.earliest());
        let asked = self.asked.as_mut()?;
        asked.is_over |= now > asked.until;
        if asked.is_over || now < earliest {
            return None;
        }
        let mut content = if asked.due.is_some_and(|due| due <= now) && !is_known {
            asked.due = None;
            self.has_reported_final |= self.is_final;
            AnswerContent::Report { round: asked.round }
        } else if self.repair.due().is_some_and(|due| due <= now) {
            let (round, lacking) = self.repair.take()?;
            AnswerContent::Request { round, lacking, mute_us: 0 }
        } else {
            let rate = self.rate.as_mut().filter(|rate| rate.due().is_some_and(|due| due <= now));
            AnswerContent::Rate(rate?.take(now)?)
        };
        let echo =
            RollCallEcho { serial: asked.serial, held_us: micros(now.saturating_since(asked.at)) };
        let (to, instance) = (asked.collector, SealId::from(asked.instance));
        self.limit.spend(now);
        if let AnswerContent::Request { mute_us, .. } = &mut content {
            *mute_us = micros(self.limit.earliest().saturating_since(now));
        }
        let counter = self.counter;
        self.counter += 1;
        Some(DueAnswer { to, instance, counter, echo, content })
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

/// Time until this part of the window has passed.
fn wait(call: &RollCall, part: f64) -> Duration {
    Duration::from_millis(call.window_ms.into()).mul_f64(part.clamp(0.0, 1.0))
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
