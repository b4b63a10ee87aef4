//! The receiver's side: when to answer roll calls.

use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{InstanceId, ReceiverId, ReceiverLabel, RollCall, SealId};
use std::net::SocketAddr;
use std::time::Duration;

/// Time after a roll call in which its request is valid.
const VALID: Duration = Duration::from_secs(2);
/// Time in which a receiver reports whose turn has passed unnoticed, because a roll call was lost.
const MAKE_UP: Duration = Duration::from_millis(500);

/// Part of a round's window from which on a receiver that has not followed the round waits for the
/// next one.
const LATEST_ENTRY: f64 = 0.5;

/// A report that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueReport {
    /// Where to send it: the signed address of the roll call.
    pub to: SocketAddr,
    /// The round that it answers.
    pub round: u32,
    /// The run of the sender that has asked.
    pub instance: SealId,
    /// Its number: grows for as long as the process runs.
    pub counter: u64,
}

/// What a receiver knows of the sender's requests.
#[derive(Clone, Copy, Debug)]
struct Asked {
    instance: InstanceId,
    collector: SocketAddr,
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
    /// Shortest time between two reports.
    interval: Duration,
    asked: Option<Asked>,
    counter: u64,
    /// No report is sent before.
    earliest: Instant,
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

    /// A reporter that was not asked. It never sends more than `max_per_second` reports, nor more
    /// than one a second if that is 0.
    pub fn new(receiver: ReceiverId, label: ReceiverLabel, max_per_second: u32, seed: u64) -> Self {
        Self {
            receiver,
            label,
            random: SplitMix64::new(seed, 0),
            interval: Duration::from_secs(1) / max_per_second.max(1),
            asked: None,
            counter: 0,
            earliest: Instant::ZERO,
            is_final: false,
            has_reported_final: false,
            listed: None,
            is_known: false,
        }
    }

    /// The state of the receiver will not change again.
    pub fn set_final(&mut self) {
        self.is_final = true;
    }

    /// The collector has confirmed that it knows the final state: nothing is left to report.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// True if the sender asks for reports now.
    pub fn is_asked(&self, now: Instant) -> bool {
        self.asked.is_some_and(|asked| now <= asked.until)
    }

    /// Handles a roll call that was checked.
    pub fn handle_roll_call(&mut self, now: Instant, call: &RollCall) {
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
                let turn = position + (1.0 - position) * self.unit();
                (turn, Some(now + wait(call, turn - position)))
            }
        };
        self.asked = Some(Asked {
            instance: call.instance,
            collector: call.collector,
            round: call.round,
            turn,
            until: now + VALID,
            due,
            is_over: false,
        });
    }

    /// The report that is due, once. The caller sends it now, or not at all.
    pub fn poll(&mut self, now: Instant) -> Option<DueReport> {
        let is_known = self.is_known;
        let asked = self.asked.as_mut()?;
        asked.is_over |= now > asked.until;
        let due = asked.due?.max(self.earliest);
        if is_known || now < due || asked.is_over {
            return None;
        }
        asked.due = None;
        self.earliest = now + self.interval;
        self.has_reported_final |= self.is_final;
        let counter = self.counter;
        self.counter += 1;
        let instance = SealId::from(asked.instance);
        Some(DueReport { to: asked.collector, round: asked.round, instance, counter })
    }

    /// When the next report is due; `None` if none is.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let asked = self.asked.filter(|asked| !self.is_known && !asked.is_over)?;
        let due = asked.due?.max(self.earliest);
        (due <= asked.until).then_some(due)
    }

    /// Uniform between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random time up to `limit`.
    fn below(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.unit())
    }
}

/// Time until this part of the window has passed.
fn wait(call: &RollCall, part: f64) -> Duration {
    Duration::from_millis(call.window_ms.into()).mul_f64(part.clamp(0.0, 1.0))
}
