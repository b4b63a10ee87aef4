//! The sender's side of rate control: the rate follows the receiver that gets least (BMTP).
//!
//! Time is divided into rounds, which last as long as a control interval: twice the largest
//! round-trip time. In a round, receivers report how many of the last packets have arrived, at most
//! since the rate is the same.
//!
//! The rate doubles in each round until a receiver reports that more than 5 % are lost, because its
//! path is full. What it gets is then the rate, at once, and once more after 200 packets, which say
//! it more exactly. From then on the rate is tried 5 % higher in a fifth of the time: it stays
//! there if receivers get most of what is more, and further trials follow that double the step.
//! Otherwise the rate is what the receiver got that did not. A trial that fails where the last one
//! has failed shows that the paths have not changed: the next one waits twice as long, up to four
//! times.
//!
//! All receivers together send about as many reports as the budget allows. If the paths of a crowd
//! are full at once, their weights at most double from round to round ([`WeightCount`]).
//!
//! A share of lost packets has the deviation of a random number. Of many receivers some report
//! more losses than there are, and the least report of all would let the rate fall for ever where
//! lines have errors. So the losses have to exceed 5 % by several deviations, and those in a trial
//! are compared with the same receiver's before.
//!
//! An [automatic](RateConfig::blind) rate begins low, in short rounds that few receivers all
//! answer, and doubles when all have said that the last rate has arrived. A path that brings less
//! than is sent is full, although its queue loses nothing yet, and the losses at the first rates
//! are taken for errors of the line. It yields to other traffic (`rivals`).

mod judging;
mod known;
mod queue_delay;
mod recovery;
mod rivals;
mod shared;

use super::offered::Offered;
use crate::feedback::{AT_ONCE, WeightCount};
use crate::time::Instant;
use fontana_wire::{RateCall, RateReport, ReceiverId};
use known::{Known, TypicalLine};
use recovery::Recovery;
use rivals::Rivals;
use shared::{Shared, kept};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Bounds of a control interval: a receiver reports twice a second at most, and the rate has to
/// follow its network even if some receiver is far away.
const INTERVAL: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(200)..=Duration::from_secs(10);
/// The shortest interval of an automatic rate while it doubles, and its longest window, by which
/// receivers know that they may answer so often.
const LEAST_QUICK_INTERVAL: Duration = Duration::from_millis(50);
pub(super) const QUICK_WINDOW: Duration = Duration::from_millis(99);
/// The shortest interval of an automatic rate while there is little to send: that of roll calls.
/// And the rounds after which that is so.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
const IDLE_ROUNDS: u32 = 10;
/// Rounds without a report after which a receiver is not waited for while the rate doubles, and the
/// least time.
const SILENT_ROUNDS: u32 = 3;
const SILENT_FOR: Duration = Duration::from_millis(500);
/// The same of the receiver for which the rate was lowered: it has gone, and the rate doubles.
const SILENCE_OF_ONE: Duration = Duration::from_secs(3);
/// Part of what such a path brings that is sent then, at the start and after a trial: its queue has
/// to become shorter.
const DRAINING: f64 = 0.9;
const DRAINING_AFTER_TRIAL: f64 = 0.97;
/// Part of the rate that arrives where a queue is full that the sender does not fill alone.
const NEARLY: f64 = 0.97;
/// Rounds after a fall at a lower rate, in which the queue of the slowest path becomes empty:
/// what the path delays is known then.
const EMPTYING_ROUNDS: u32 = 2;
const EMPTYING: f64 = 0.7;
/// Time without a report, from the start, after which an automatic rate is the one for receivers
/// that cannot report.
const BLIND_AFTER: Duration = Duration::from_secs(3);
/// Length of the first round without a report, in intervals: while a queue fills, the round-trip
/// time grows, and no report says so yet.
const LATE_INTERVALS: u32 = 4;
/// Length of rounds before the first report, if the number of receivers is not known: each halves
/// the number that is assumed.
const SEARCH_INTERVAL: Duration = Duration::from_millis(200);
/// A round trip above which the largest of the last minute is that of a queue, and not of a path.
const LONG_ROUND_TRIP: Duration = Duration::from_millis(500);
/// Receivers that are assumed before the first report, if their number is not known.
const UNKNOWN_CROWD: u32 = 1 << 20;
/// Rounds and packets over which receivers count, at most, whichever are more.
const COUNTED_ROUNDS: u32 = 3;
const COUNTED_PACKETS: f64 = 400.0;
/// Rounds over which receivers count, in any case: as many as they remember.
const MOST_ROUNDS: u32 = 60;
/// [`CERTAIN`] for what a receiver loses more in a trial than before.
const CERTAIN_IN_TRIAL: f64 = 3.0;
/// The same, if more packets are to be counted.
const LIKELY_IN_TRIAL: f64 = 1.5;
/// Share of lost packets whose deviation a receiver without losses has.
const LEAST_LOSS: f64 = 0.01;
/// Fewest packets that say something.
const LEAST_PACKETS: u32 = 10;
/// Part of the rate from which on the rate is what limits the sender, and not its content: by what
/// receivers report, and by what the sender has sent.
const IN_USE: f64 = 0.8;
const OFFERED: f64 = 0.9;
/// Part of the rate below which the sender was idle in a round: it is not counted together with the
/// next one.
const IDLE: f64 = 0.5;
/// Largest factor of a trial. The first is the least; the next is twice as far from 1.
const LARGEST_STEP: f64 = 2.0;
const LEAST_STEP: f64 = 1.05;
/// Least number of rounds of a trial, which has [`COUNTED_PACKETS`].
const TRIAL_ROUNDS: u32 = 2;
/// Time between trials, in their lengths: at first, and if they fail at the same rate again and
/// again.
const STEADY_TRIALS: std::ops::RangeInclusive<u32> = 4..=16;
/// Lengths of a trial in which a receiver loses what makes it fail, but not with certainty.
const LONGEST_TRIAL: u32 = 2;
/// Rounds after the start.
const FIRST_STEADY_ROUNDS: u32 = 2;
/// Time without a report after which the rate is halved, and again each time.
const SILENCE: Duration = Duration::from_secs(60);
const STILL_SILENT: Duration = Duration::from_secs(20);
/// The same of an automatic rate, which rises again within a second, and the part of its highest
/// one below which it does not fall for that.
const AUTOMATIC_SILENCE: Duration = Duration::from_secs(3);
const STILL_AUTOMATIC: Duration = Duration::from_secs(1);
const SILENT_PART: f64 = 0.1;

/// What rate control needs to know. Rates are in bytes per second, IP and UDP headers included.
#[derive(Clone, Debug)]
pub struct RateConfig {
    /// The rate at first.
    pub start: u64,
    /// The highest rate.
    pub most: u64,
    /// The lowest rate. Receivers that get less are [slow](SlowReceiver), and do not count.
    pub least: u64,
    /// The lowest rate while there are receivers that [must finish](RateControl::must_finish).
    pub least_to_finish: u64,
    /// Bytes of a packet, headers included.
    pub packet_bytes: u32,
    /// Rate reports that all receivers together send per second, at most.
    pub budget_per_second: u32,
    /// The number of receivers, if it is known.
    pub known: Option<u32>,
    /// The rate is automatic: without a report for three seconds from the start it is this one,
    /// until the first report.
    pub blind: Option<u64>,
    /// Receivers that are remembered. Further ones do not count, unless others have not reported
    /// for 60 rounds.
    pub max_receivers: usize,
}

impl RateConfig {
    /// Whether the sender chooses the rate, and yields to other traffic.
    fn is_automatic(&self) -> bool {
        self.blind.is_some()
    }
}

/// Why a rate report was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredRate {
    /// Its counter is not above the last one of the process.
    Replayed,
    /// It answers a round that has not begun, or the receiver has answered it already.
    OtherRound,
    /// More arrive than are wanted, or as many receivers are known as are remembered.
    TooMany,
}

/// A receiver whose path carries less than the lowest rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowReceiver {
    /// The process.
    pub receiver: ReceiverId,
    /// What it gets, in bytes per second.
    pub bytes_per_second: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The rate doubles.
    Start,
    /// The rate stays for so many rounds.
    Steady { rounds: u32, is_exact: bool },
    /// The rate is higher than before.
    Trial(Trial),
    /// The rate is lower, until a queue is empty.
    Emptying(Emptying),
    /// Other traffic fills the same queue.
    Shared(Shared),
}

/// What a path has got too much is in its queue.
#[derive(Clone, Copy, Debug)]
struct Emptying {
    /// Rounds of it, at least.
    rounds: u32,
    /// When a queue is empty that no other traffic fills.
    until: Instant,
    /// The rate afterwards.
    rate: f64,
}

/// A trial of a higher rate.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The rate before.
    base: f64,
    /// Factor of the rate.
    step: f64,
    /// Rounds that are left of this length of it.
    rounds: u32,
    /// Lengths that have begun.
    lengths: u32,
}

/// What the reports of a rate say that has not changed.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    reports: u32,
    /// Largest rate at which packets were sent, by the reports.
    sent: f64,
    /// A receiver probably loses what makes the trial fail.
    is_doubtful: bool,
}

/// Decides how fast to send.
#[derive(Clone, Debug)]
pub struct RateControl {
    config: RateConfig,
    rate: f64,
    phase: Phase,
    round: u32,
    /// The round with which the rate has changed.
    since: u32,
    /// When the round's first roll call was issued; `None`: it is due.
    began_at: Option<Instant>,
    interval: Duration,
    /// The round's window.
    window: Duration,
    /// When the first report of the round arrived.
    answered_at: Option<Instant>,
    /// Reports have arrived in the round before.
    was_answered: bool,
    /// The last rounds in which there was little to send.
    idle_rounds: u32,
    heard: Heard,
    /// The rate at which the last trial has failed; 0 if it has not.
    failed_at: f64,
    /// The round with which the rate has changed for another reason than that receivers had all.
    changed_in: u32,
    rivals: Rivals,
    /// The receiver for which an automatic rate was lowered last, until it has gone.
    limited_by: Option<ReceiverId>,
    /// The rate to which an automatic one returns.
    recovery: Option<Recovery>,
    offered: Offered,
    /// Lengths of a trial before the next one.
    wait: u32,
    receivers: BTreeMap<ReceiverId, Known>,
    /// The round in which those that no longer report were forgotten last.
    looked_in: Option<u32>,
    /// Receivers that the rate follows below the lowest rate.
    required: BTreeSet<ReceiverId>,
    weights: WeightCount,
    is_searching: bool,
    /// The line that was found last.
    typical_line: Option<TypicalLine>,
    /// The number of receivers, as far as the caller knows.
    crowd: u32,
    began: Instant,
    /// When the last round ended.
    ran_at: Instant,
    /// No receiver has reported yet.
    is_unheard: bool,
    /// Times of the reports of the last second.
    recent: VecDeque<Instant>,
    /// When the last report of a receiver arrived that is not slow.
    counted_at: Instant,
    /// When the last report arrived, or the rate was lowered because none did.
    quiet_since: Instant,
    quiet_for: Duration,
}

impl RateControl {
    /// Sends at the first rate. The first round is due at `now`.
    pub fn new(config: RateConfig, now: Instant) -> Self {
        let most = config.most.max(1) as f64;
        let rate = (config.start.max(config.least) as f64).clamp(1.0, most);
        let interval = *INTERVAL.start();
        let per_round = aim(config.budget_per_second, interval, interval);
        let crowd = config.known.unwrap_or(UNKNOWN_CROWD);
        let mut weights = WeightCount::new((f64::from(crowd) / per_round) as u32);
        weights.set_aim(per_round);
        Self {
            rate,
            phase: Phase::Start,
            round: 1,
            since: 1,
            began_at: None,
            interval: *INTERVAL.start(),
            window: *INTERVAL.start(),
            answered_at: None,
            was_answered: false,
            idle_rounds: 0,
            heard: Heard::default(),
            failed_at: 0.0,
            changed_in: 1,
            rivals: Rivals::new(now),
            limited_by: None,
            recovery: None,
            offered: Offered::default(),
            wait: *STEADY_TRIALS.start(),
            receivers: BTreeMap::new(),
            looked_in: None,
            required: BTreeSet::new(),
            weights,
            is_searching: config.known.is_none(),
            typical_line: None,
            crowd: UNKNOWN_CROWD,
            began: now,
            ran_at: now,
            is_unheard: true,
            recent: VecDeque::new(),
            counted_at: now,
            quiet_since: now,
            quiet_for: silence(&config),
            config,
        }
    }

    /// The control of another sender with the same receivers, which begins at `now` with what this
    /// one knows of their paths.
    #[must_use]
    pub fn into_next(mut self, now: Instant) -> Self {
        // One that has gone is not waited for; one that has finished reports when it begins again.
        let round = self.round;
        self.receivers.retain(|_, known| {
            (known.counter, known.heard_at) = (None, now);
            known.has_finished || round.saturating_sub(known.round) <= MOST_ROUNDS
        });
        self.required.clear();
        self.recent.clear();
        self.ran_at = now;
        self.offered = Offered::default();
        (self.quiet_since, self.quiet_for) = (now, silence(&self.config));
        (self.began, self.counted_at) = (now, now);
        let phase = match self.phase {
            Phase::Start => Phase::Start,
            Phase::Steady { .. } | Phase::Emptying(_) | Phase::Shared(_) => self.steady(),
            Phase::Trial(trial) => {
                self.rate = trial.base;
                self.steady()
            }
        };
        self.change(self.rate, phase);
        self
    }

    /// The rate to send at, in bytes per second.
    pub fn rate(&self) -> u64 {
        let least = self.least() as u64;
        (self.rate as u64).clamp(least.min(self.config.most), self.config.most)
    }

    /// The lowest rate now.
    fn least(&self) -> f64 {
        let RateConfig { least, least_to_finish, .. } = self.config;
        if self.required.is_empty() { least as f64 } else { least.min(least_to_finish) as f64 }
    }

    /// The lowest rate at which a receiver counts.
    fn least_of(&self, receiver: &ReceiverId) -> f64 {
        match self.required.contains(receiver) {
            true => self.least(),
            false => self.config.least as f64,
        }
    }

    /// So many bytes were sent so far, headers included. A sender that has less to send than the
    /// rate permits says nothing of the paths.
    pub fn note_sent(&mut self, bytes: u64) {
        self.offered.note(bytes);
    }

    /// The rate follows this receiver below the lowest rate, until
    /// [`has_finished`](Self::has_finished). Beyond so many as are remembered, it does not.
    pub fn must_finish(&mut self, receiver: ReceiverId) {
        if self.required.len() < self.config.max_receivers {
            self.required.insert(receiver);
        }
    }

    /// The receiver has finished, or need not. If it was the last one that had to, the rate begins
    /// again at the lowest one if it is below, and doubles.
    pub fn has_finished(&mut self, receiver: &ReceiverId) {
        if let Some(known) = self.receivers.get_mut(receiver) {
            known.has_finished = true;
        }
        self.restart_without_limit();
        let was_last = self.required.remove(receiver) && self.required.is_empty();
        let least = self.config.least.min(self.config.most) as f64;
        if was_last && self.rate < least {
            self.forget_trials();
            self.change(least, Phase::Start);
        }
    }

    fn interval(&self, round_trip: Duration) -> Duration {
        if self.is_searching {
            return SEARCH_INTERVAL;
        }
        // In the shorter half of its window a receiver counts enough packets.
        let packets = f64::from(2 * LEAST_PACKETS * self.config.packet_bytes);
        let counted = Duration::from_secs_f64((packets / self.rate.max(1.0)).min(3600.0));
        let least = if self.is_quick() { LEAST_QUICK_INTERVAL } else { *INTERVAL.start() };
        (2 * round_trip).max(counted).clamp(least, *INTERVAL.end())
    }

    /// The longest time that few receivers take now. `longest`: that of the last minute.
    fn lately(&self, longest: Duration) -> Duration {
        let latest = |known: &Known| known.delay.latest();
        let counted = || self.receivers.values().filter(|known| !known.has_finished);
        let of_all = counted().map(latest).collect::<Option<Vec<_>>>();
        let latest = of_all.and_then(|times| times.into_iter().max());
        latest
            .filter(|_| self.has_few())
            .map_or(longest, |latest| latest.max(LONG_ROUND_TRIP).min(longest))
    }

    /// Whether the rate is automatic, and few receivers answer each round.
    fn has_few(&self) -> bool {
        self.config.is_automatic() && self.crowd.max(self.receivers.len() as u32) <= AT_ONCE
    }

    /// Whether it doubles from a low one.
    fn is_starting(&self) -> bool {
        let doubles = matches!(self.phase, Phase::Start) && self.rate < self.config.most as f64;
        doubles && self.config.is_automatic()
    }

    /// Whether it does so in short rounds.
    fn is_quick(&self) -> bool {
        self.is_starting() && !self.is_searching && self.has_few()
    }

    /// Whether a roll call should be issued: a round begins.
    pub fn wants_call(&self) -> bool {
        self.began_at.is_none()
    }

    /// The rate round for a roll call that is issued now. `crowd`: the number of receivers, if some
    /// have reported.
    pub fn call(&mut self, now: Instant, round_trip: Duration, crowd: Option<u32>) -> RateCall {
        self.crowd = crowd.unwrap_or(UNKNOWN_CROWD);
        let round_trip = self.lately(round_trip);
        if self.has_few() && std::mem::take(&mut self.is_searching) && self.began_at.is_some() {
            self.begin_round();
        }
        if self.began_at.is_none() {
            let is_idle = self.config.is_automatic() && self.was_idle(now);
            if is_idle {
                // What arrives then is counted from now on.
                self.since = self.round;
            }
            if self.has_few() {
                self.weights.limit(1);
            } else if self.config.is_automatic() && self.is_searching {
                // No more receivers report how much arrives than report. They have lost nothing.
                let per_round = aim(self.config.budget_per_second, self.interval, self.window);
                self.weights.limit((f64::from(self.crowd) / per_round) as u32);
            }
            self.began_at = Some(now);
            self.idle_rounds = if is_idle { self.idle_rounds.saturating_add(1) } else { 0 };
            let rests = self.idle_rounds > IDLE_ROUNDS;
            let least = if rests { IDLE_INTERVAL } else { Duration::ZERO };
            self.interval = self.interval(round_trip).max(least);
            // The last reports arrive before the round is over.
            self.window = self.interval.saturating_sub(round_trip).max(self.interval / 2);
            if self.is_quick() && !rests {
                self.window = self.window.min(QUICK_WINDOW);
            }
            let budget = self.config.budget_per_second;
            self.weights.set_aim(aim(budget, self.interval, self.window));
            self.weights.announce();
        }
        let counted = if self.is_searching {
            MOST_ROUNDS
        } else {
            self.rounds_of(self.counted_packets(), COUNTED_ROUNDS)
        };
        let since = self.since.max(self.round.saturating_sub(counted - 1));
        self.offered.begin(now, self.round, since);
        RateCall {
            round: self.round,
            since,
            window_ms: u32::try_from(self.window.as_millis()).unwrap_or(u32::MAX).max(1),
            divisor: self.weights.divisor(),
        }
    }

    /// Rounds in which so many packets are sent.
    fn rounds_of(&self, packets: f64, least: u32) -> u32 {
        let seconds = packets * f64::from(self.config.packet_bytes) / self.rate.max(1.0);
        // A cast saturates.
        ((seconds / self.interval.as_secs_f64()).ceil() as u32).clamp(least, MOST_ROUNDS)
    }

    /// Packets over which receivers count, at most.
    fn counted_packets(&self) -> f64 {
        match self.phase {
            Phase::Trial(trial) => COUNTED_PACKETS * f64::from(trial.lengths),
            Phase::Start | Phase::Steady { .. } | Phase::Emptying(_) | Phase::Shared(_) => {
                COUNTED_PACKETS
            }
        }
    }

    fn trial_rounds(&self) -> u32 {
        self.rounds_of(COUNTED_PACKETS, TRIAL_ROUNDS)
    }

    /// The rate stays for a while.
    fn steady(&self) -> Phase {
        Phase::Steady { rounds: self.wait * self.trial_rounds(), is_exact: false }
    }

    /// Handles a report, which is authentic. `round_trip`: from the roll call that it answers,
    /// without the receiver's wait. Returns the receiver if it is slow, once.
    ///
    /// # Errors
    /// Why it was ignored.
    pub fn handle_report(
        &mut self,
        now: Instant,
        report: &RateReport,
        round_trip: Option<Duration>,
        counter: u64,
    ) -> Result<Option<SlowReceiver>, IgnoredRate> {
        self.count(now)?;
        if report.round > self.round || report.round == 0 {
            return Err(IgnoredRate::OtherRound);
        }
        let is_new = !self.receivers.contains_key(&report.receiver);
        if is_new && self.receivers.len() >= self.config.max_receivers && !self.forget_silent() {
            return Err(IgnoredRate::TooMany);
        }
        let known = self.receivers.entry(report.receiver).or_insert_with(|| Known::new(now));
        // One of a later round is no repeat, whatever its counter is.
        if known.counter >= Some(counter) && known.round >= report.round {
            return Err(IgnoredRate::Replayed);
        }
        if known.counter.replace(counter).is_none() {
            (known.has_finished, known.is_slow) = (false, false);
        }
        if known.round >= report.round {
            return Err(IgnoredRate::OtherRound);
        }
        known.round = report.round;
        if let Some(round_trip) = round_trip.filter(|_| report.round >= self.since) {
            known.delay.note(now, round_trip, self.changed_in);
        }
        self.is_unheard = false;
        self.count_answer(now, report.round);
        (self.quiet_since, self.quiet_for) = (now, silence(&self.config));
        let before = self.rate;
        let slow = self.judge(now, report);
        if self.rate < before && self.config.is_automatic() {
            self.limited_by = Some(report.receiver);
        }
        Ok(slow)
    }

    /// Forgets the receivers whose last reports no longer count. Returns whether there were any.
    /// Looks at all of them once in a round, however many strangers report.
    fn forget_silent(&mut self) -> bool {
        let known = self.receivers.len();
        if self.looked_in.replace(self.round) != Some(self.round) {
            let round = self.round;
            self.receivers.retain(|_, known| round.saturating_sub(known.round) <= MOST_ROUNDS);
        }
        self.receivers.len() < known
    }

    /// Counts a report for the divisor. The count is over two rounds, so that the last reports of a
    /// round may arrive in the next one.
    fn count_answer(&mut self, now: Instant, round: u32) {
        if round == self.round {
            self.answered_at.get_or_insert(now);
        }
        if round.saturating_add(1) >= self.round {
            self.weights.status();
        } else {
            // Reports take longer than a round. The next one waits for them.
            (self.is_searching, self.was_answered) = (false, true);
        }
    }

    /// Counts a report against the budget.
    fn count(&mut self, now: Instant) -> Result<(), IgnoredRate> {
        while self.recent.front().is_some_and(|&at| at + Duration::from_secs(1) <= now) {
            self.recent.pop_front();
        }
        // Twice the budget bounds the list.
        let most = match self.is_quick() {
            true => {
                AT_ONCE
                    * (Duration::from_secs(1).as_millis() / LEAST_QUICK_INTERVAL.as_millis()) as u32
            }
            false => 2 * self.config.budget_per_second.max(1),
        };
        if self.recent.len() >= most as usize {
            self.recent.clear();
            self.weights.overload();
            return Err(IgnoredRate::TooMany);
        }
        self.recent.push_back(now);
        Ok(())
    }

    /// Whether the sender had little to send in the round that is over.
    fn was_idle(&self, now: Instant) -> bool {
        let sent = self.offered.in_round(now);
        sent.is_some_and(|(bytes, seconds)| (bytes as f64) < IDLE * self.rate * seconds)
    }

    /// Part of the rate that the sender has sent while a report counted that answers this round.
    fn offered_part(&self, now: Instant, round: u32) -> f64 {
        let slack = 2.0 * f64::from(self.config.packet_bytes);
        let part =
            |(bytes, seconds): (u64, f64)| (bytes as f64 + slack) / (self.rate * seconds).max(1.0);
        self.offered.sent(now, round).map_or(1.0, part).min(1.0)
    }

    /// A path is full: sets the rate that it carries. `has_carried`: it has carried more before.
    fn fall(&mut self, now: Instant, rate: f64, has_carried: bool) {
        self.forget_trials();
        let may_return = self.config.is_automatic() && has_carried && !self.is_starting();
        if may_return && self.recovery.is_none() {
            self.recovery = Recovery::of_fall(now, self.rate, rate);
        }
        match self.phase {
            // What it has sent too much is in the queue.
            _ if self.config.is_automatic() => {
                let until = now + self.emptying(EMPTYING);
                let emptying = Emptying { rounds: EMPTYING_ROUNDS, until, rate };
                self.change(EMPTYING * rate, Phase::Emptying(emptying));
            }
            Phase::Start => {
                let rounds = FIRST_STEADY_ROUNDS;
                self.change(rate, Phase::Steady { rounds, is_exact: false });
            }
            _ => self.change(rate, self.steady()),
        }
    }

    /// Twice the time in which the longest queue becomes empty at this part of what arrives.
    fn emptying(&self, part: f64) -> Duration {
        let queues = self.receivers.values().filter(|known| !known.has_finished);
        let longest = queues.map(|known| known.delay.of_queue()).max().unwrap_or_default();
        longest.mul_f64(2.0 / (1.0 - part))
    }

    /// A queue stands, or drops packets, at a rate that was thought to arrive. A lower one empties
    /// it, if no other traffic fills it.
    fn give_way(&mut self, now: Instant, arrives: f64, top: f64, round_trip: Duration) {
        let empty_after = self.emptying(DRAINING_AFTER_TRIAL);
        if self.rivals.keep_queue(now, empty_after) && arrives > NEARLY * self.rate {
            return self.share_path(now, arrives, top, round_trip);
        }
        let rate = (DRAINING_AFTER_TRIAL * arrives).max(kept(top)).max(self.least());
        self.change(rate.min(self.rate), self.steady());
    }

    /// Other traffic fills a queue of a path that brings this rate.
    fn share_path(&mut self, now: Instant, arrives: f64, top: f64, round_trip: Duration) {
        let (arrives, packet) = (arrives.min(self.rate), self.config.packet_bytes);
        let shared = Shared::new(now, arrives, top, packet, round_trip);
        let rate = shared.rate(now).max(kept(top)).max(self.least());
        self.forget_trials();
        self.change(rate.min(self.rate), Phase::Shared(shared));
    }

    /// A round beside other traffic is over.
    fn grow(&mut self, now: Instant, mut shared: Shared) {
        if self.rate <= shared.part() && self.rivals.restarts(now) {
            // What the path carries is not known any more.
            return self.start_again();
        }
        if self.rivals.is_queued(self.round) {
            shared.pause(self.interval);
        }
        let is_alone = self.rivals.is_alone(now);
        let most = if is_alone { self.config.most as f64 } else { shared.part() };
        let rate = shared.rate(now).min(most).min(LEAST_STEP * self.rate).max(self.rate);
        let phase = match is_alone && rate >= shared.before() {
            true => self.steady(),
            false => Phase::Shared(shared),
        };
        self.raise(rate, phase);
    }

    /// A trial has failed: sets the rate of before, or a lower one.
    fn fail(&mut self, rate: f64) {
        let is_again = (self.rate / self.failed_at - 1.0).abs() < LEAST_STEP - 1.0;
        self.wait = match is_again {
            true => (2 * self.wait).min(*STEADY_TRIALS.end()),
            false => *STEADY_TRIALS.start(),
        };
        self.failed_at = self.rate;
        self.change(rate, self.steady());
    }

    /// The paths have changed: what trials have shown no longer counts.
    fn forget_trials(&mut self) {
        (self.failed_at, self.wait) = (0.0, *STEADY_TRIALS.start());
    }

    /// Sets another rate, with which a round begins.
    fn change(&mut self, rate: f64, phase: Phase) {
        self.note_start(false);
        (self.rate, self.phase) = (rate, phase);
        self.weights.cut_short();
        self.begin_round();
        (self.since, self.changed_in) = (self.round, self.round);
        self.heard = Heard::default();
    }

    /// While the rate doubles: what receivers lose at a rate that `arrives` is what their lines
    /// lose.
    fn note_start(&mut self, arrives: bool) {
        if self.is_starting() {
            let rate = self.rate;
            self.receivers.values_mut().for_each(|known| {
                known.start.end_rate(arrives, rate);
                known.was_queued = known.delay.is_certain();
            });
        }
    }

    /// Whether all receivers that report have said that this rate arrives.
    fn is_confirmed(&self, now: Instant) -> bool {
        let silent_for = SILENT_FOR.max(SILENT_ROUNDS * self.interval);
        let counts = |known: &&Known| {
            !known.is_slow && !known.has_finished && now < known.heard_at + silent_for
        };
        let mut counted = self.receivers.values().filter(counts).peekable();
        counted.peek().is_some() && counted.all(|known| known.confirmed >= self.since)
    }

    fn begin_round(&mut self) {
        self.round = self.round.saturating_add(1);
        self.was_answered = self.answered_at.is_some();
        (self.began_at, self.answered_at) = (None, None);
    }

    /// Ends the round that is over, and begins the next one, perhaps with a higher rate.
    pub fn handle_timeout(&mut self, now: Instant) {
        let blind =
            self.config.blind.filter(|_| self.is_unheard && now >= self.began + BLIND_AFTER);
        if let Some(blind) = blind.filter(|&blind| self.rate < blind as f64) {
            self.change(blind.min(self.config.most) as f64, Phase::Start);
            return;
        }
        // The receivers that have finished say nothing more.
        let is_awaited = || {
            let is_automatic = self.config.is_automatic();
            !is_automatic || self.receivers.values().any(|known| !known.has_finished)
        };
        let quiet_for = self.quiet_for.max(SILENT_ROUNDS * self.interval);
        if now >= self.quiet_since + quiet_for && is_awaited() {
            let (still, part) = match self.config.blind {
                Some(_) => (STILL_AUTOMATIC, SILENT_PART),
                None => (STILL_SILENT, 0.0),
            };
            (self.quiet_since, self.quiet_for) = (now, still);
            let least = self.least().max(part * self.config.most as f64).max(1.0);
            self.change((self.rate / 2.0).max(least.min(self.rate)), Phase::Start);
            return;
        }
        if self.poll_timeout().is_none_or(|due| now < due) {
            return;
        }
        self.ran_at = now;
        self.restart_without_limit();
        self.recover(now);
        let halved = self.weights.divisor().div_ceil(2);
        self.weights.adjust_to_growth();
        // The search ends when enough receivers have reported.
        self.is_searching &= (2..=halved).contains(&self.weights.divisor());
        let most = self.config.most as f64;
        let is_used = self.heard.reports > 0 && self.heard.sent >= IN_USE * self.rate;
        match self.phase {
            Phase::Start if self.is_quick() => match self.is_confirmed(now) {
                true => self.raise((2.0 * self.rate).min(most), Phase::Start),
                false => self.begin_round(),
            },
            Phase::Start if is_used && self.rate < most && !self.is_searching => {
                self.raise((2.0 * self.rate).min(most), Phase::Start);
            }
            Phase::Start => self.begin_round(),
            Phase::Steady { rounds: rounds @ 1.., is_exact } => {
                self.phase = Phase::Steady { rounds: rounds - 1, is_exact };
                self.begin_round();
            }
            Phase::Steady { .. }
                if is_used
                    && self.rate < most
                    && self.rivals.is_free(self.round)
                    && self.rivals.is_alone(now) =>
            {
                self.attempt(LEAST_STEP);
            }
            Phase::Steady { .. } => self.begin_round(),
            Phase::Emptying(emptying @ Emptying { rounds: 1.., .. }) => {
                let rounds = emptying.rounds - 1;
                self.phase = Phase::Emptying(Emptying { rounds, ..emptying });
                self.begin_round();
            }
            Phase::Emptying(Emptying { until, .. })
                if now < until && self.rivals.is_queued(self.round) =>
            {
                self.begin_round();
            }
            Phase::Emptying(Emptying { rate, .. }) => {
                let rounds = FIRST_STEADY_ROUNDS;
                self.raise(rate, Phase::Steady { rounds, is_exact: false });
            }
            Phase::Shared(shared) if is_used => self.grow(now, shared),
            Phase::Shared(_) => self.begin_round(),
            Phase::Trial(trial @ Trial { rounds: 1.., .. }) => {
                self.phase = Phase::Trial(Trial { rounds: trial.rounds - 1, ..trial });
                self.begin_round();
            }
            Phase::Trial(trial) if !is_used => self.raise(trial.base, self.steady()),
            Phase::Trial(trial) if self.heard.is_doubtful && trial.lengths < LONGEST_TRIAL => {
                let (rounds, lengths) = (self.trial_rounds() - 1, trial.lengths + 1);
                self.phase = Phase::Trial(Trial { rounds, lengths, ..trial });
                self.begin_round();
            }
            // An automatic rate yields.
            Phase::Trial(trial) if self.heard.is_doubtful && self.config.is_automatic() => {
                self.fail(trial.base);
            }
            Phase::Trial(trial) => {
                self.forget_trials();
                let step =
                    if self.rivals.is_alone(now) { 2.0 * trial.step - 1.0 } else { LEAST_STEP };
                self.attempt(step.min(LARGEST_STEP));
            }
        }
    }

    /// Tries a higher rate.
    fn attempt(&mut self, step: f64) {
        let base = self.rate;
        let rate = (base * step).min(self.config.most as f64);
        if rate <= base {
            self.phase = self.steady();
            self.begin_round();
            return;
        }
        let (step, rounds) = (rate / base, self.trial_rounds() - 1);
        self.raise(rate, Phase::Trial(Trial { base, step, rounds, lengths: 1 }));
    }

    /// Sets the rate at the end of a round, whose reports were counted.
    fn raise(&mut self, rate: f64, phase: Phase) {
        self.note_start(true);
        (self.rate, self.phase) = (rate, phase);
        self.begin_round();
        self.since = self.round;
        self.heard = Heard::default();
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called; `None` if a roll call has to
    /// be issued first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let began_at = self.began_at?;
        let regular = began_at + self.interval;
        Some(match self.answered_at {
            // Reports arrive in a time of half of the window.
            Some(at) => regular.max(at + self.window / 2),
            None if self.was_answered => began_at + LATE_INTERVALS * self.interval,
            None => regular,
        })
    }
}

/// Time without a report after which the rate is halved.
fn silence(config: &RateConfig) -> Duration {
    if config.is_automatic() { AUTOMATIC_SILENCE } else { SILENCE }
}

/// Reports of a round of this length that keep to the budget in each second. They arrive in the
/// second half of the window.
fn aim(budget_per_second: u32, interval: Duration, window: Duration) -> f64 {
    let seconds = interval.min((window / 2).max(Duration::from_secs(1))).as_secs_f64();
    (f64::from(budget_per_second) * seconds).max(1.0)
}
