//! What a report says of a path, and the rate that follows from it.

use super::known::Known;
use super::shared::kept;
use super::{
    CERTAIN_IN_TRIAL, COUNTED_PACKETS, DRAINING, DRAINING_AFTER_TRIAL, EMPTYING, IN_USE, INTERVAL,
    LEAST_LOSS, LEAST_PACKETS, LIKELY_IN_TRIAL, OFFERED, Phase, RateControl, SlowReceiver, Trial,
};
use crate::report::line_error::{OVERLOAD, deviation};
use crate::time::Instant;
use fontana_wire::RateReport;

/// Share of lost packets, beyond the usual one, of a queue that is full.
const LOSSY: f64 = 0.005;
/// Part of the rate beside other traffic below which a queue keeps the rest, and grows.
const HELD_BACK: f64 = 0.9;

/// What arrives at a receiver.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    packets: f64,
    /// Bytes per second.
    gets: f64,
    /// Share of lost packets, and that of its line.
    share: f64,
    line: f64,
    /// More is lost than a path loses that is not full, or less arrives.
    is_full: bool,
    /// What the path carries, if it is full, in bytes per second.
    carries: f64,
    /// More is lost than usual.
    is_lossy: bool,
    /// It is counted since the rate is the present one.
    is_current: bool,
    /// The sender has sent at its rate.
    is_at_rate: bool,
    /// The rate is automatic, and does not double.
    may_share: bool,
}

impl Arrival {
    /// Bytes per second of all packets, if the lost ones had arrived.
    fn sent(&self) -> f64 {
        self.gets / (1.0 - self.share).max(0.01)
    }

    /// The share of lost packets that congestion causes exceeds that of the line by as many as a
    /// queue drops: `lost` packets since the last report.
    fn drops(&self, lost: u32) -> bool {
        let Self { line, packets, .. } = self;
        let by_chance = CERTAIN_IN_TRIAL * (line * (1.0 - line) * packets).sqrt();
        f64::from(lost) - line * packets >= 1.0 + by_chance
    }
}

impl RateControl {
    /// Sets the rate by what arrives at a receiver.
    pub(super) fn judge(&mut self, now: Instant, report: &RateReport) -> Option<SlowReceiver> {
        let arrival = self.arrival(now, report)?;
        let Arrival { is_full, carries, is_current, .. } = arrival;
        let (least, least_of_it) = (self.least(), self.least_of(&report.receiver));
        let known = self.receivers.get_mut(&report.receiver)?;
        let got = known.got(now, 0.0);
        if is_full && carries < least_of_it {
            let slow = SlowReceiver { receiver: report.receiver, bytes_per_second: carries as u64 };
            let is_news = !std::mem::replace(&mut known.is_slow, true);
            if now >= self.counted_at + *INTERVAL.end() && self.rate > least {
                // All others have finished. Roll calls arrive at a slow receiver, too, if hardly
                // more than what its path carries is sent.
                self.change(least, self.steady());
            }
            return is_news.then_some(slow);
        }
        if !known.is_slow {
            self.counted_at = now;
        }
        if is_full {
            known.carries = Some(carries);
        } else if known.carries.is_some_and(|carried| is_current && carried < self.rate) {
            known.carries = None;
        }
        let is_changed = is_current
            && (self.restore(report, &arrival)
                || self.yield_to_others(now, report, &arrival)
                || self.judge_trial(report, &arrival));
        if !is_changed && is_full && carries < (1.0 - OVERLOAD) * self.rate {
            self.fall(now, carries.max(least), got >= self.rate / 2.0);
        }
        None
    }

    /// What a report says; `None`: nothing of the present rate.
    fn arrival(&mut self, now: Instant, report: &RateReport) -> Option<Arrival> {
        let packets = f64::from(report.received) + f64::from(report.lost);
        if packets < f64::from(LEAST_PACKETS) {
            return None;
        }
        let is_automatic = self.config.is_automatic();
        let (is_starting, is_quick) = (self.is_starting(), self.is_quick());
        let offered = self.offered_part(now, report.round);
        let is_at_rate = offered >= OFFERED;
        let known = self.receivers.get_mut(&report.receiver)?;
        known.heard_at = now;
        let seconds = f64::from(report.window_us) / 1e6;
        let gets = f64::from(report.received) * f64::from(self.config.packet_bytes) / seconds;
        let share = f64::from(report.lost) / packets;
        known.got(now, gets.min(self.rate));
        let is_current = report.round >= self.since;
        if !is_current && is_automatic {
            // Its losses at another rate say nothing of this one, if its line loses them.
            return None;
        }
        // What the line loses does not count; `certain` is what it may differ by.
        let (line, certain) = match is_starting {
            true => known.start.line(share, packets, self.rate <= self.config.start as f64),
            false => {
                known.learn_line(now, share, packets, self.rate, &mut self.typical_line);
                known.line(is_automatic, packets)
            }
        };
        let excess = 1.0 - (1.0 - share) / (1.0 - line);
        let mut is_full = excess > OVERLOAD + certain;
        // A sender that pauses sends at its rate in between.
        let arrives = match is_at_rate {
            true if is_automatic => gets / (1.0 - line) / offered,
            true => gets / (1.0 - line),
            false => (1.0 - excess) * self.rate,
        };
        let mut carries = arrives.clamp(1.0, self.config.most as f64);
        if is_starting && is_current && !is_full {
            known.start.note(report.received, report.lost);
        }
        if is_quick && is_current && !is_full {
            // A queue that was there at half of the rate is not the sender's.
            let queues = known.delay.is_certain() && !known.was_queued;
            let arrives = gets / (1.0 - share) >= IN_USE * self.rate && !queues;
            if known.is_held(report.round, arrives, self.since) && is_at_rate {
                let part = if queues { EMPTYING } else { DRAINING };
                (is_full, carries) = (true, (part * carries).max(1.0));
            }
        }
        let may_share =
            is_current && is_automatic && !is_starting && is_at_rate && known.delay.is_known();
        let usual = known.line.usual();
        let is_lossy = may_share
            && share - usual > LOSSY + deviation(CERTAIN_IN_TRIAL, usual.max(LOSSY), packets);
        Some(Arrival {
            packets,
            gets,
            share,
            line,
            is_full,
            carries,
            is_lossy,
            is_current,
            is_at_rate,
            may_share,
        })
    }

    /// Sets the rate of before if it turns out that the line loses the packets. Returns whether it
    /// does.
    fn restore(&mut self, report: &RateReport, arrival: &Arrival) -> bool {
        let Some(known) = self.receivers.get_mut(&report.receiver) else { return false };
        let is_full = arrival.is_full || arrival.is_lossy;
        let restored = known.line.note(arrival.share, arrival.packets, is_full, self.rate);
        let Some(restored) = restored else { return false };
        // The losses do not depend on the rate, which others may have lowered, too.
        known.carries = None;
        let others = self.receivers.values().filter_map(|known| known.carries);
        let restored = others.fold(restored, f64::min).max(self.rate);
        self.forget_trials();
        self.change(restored.clamp(self.least(), self.config.most as f64), self.steady());
        true
    }

    /// Lowers the rate if there is a queue that other traffic fills, too. Returns whether it does.
    fn yield_to_others(&mut self, now: Instant, report: &RateReport, arrival: &Arrival) -> bool {
        let Some(known) = self.receivers.get_mut(&report.receiver).filter(|_| arrival.may_share)
        else {
            return false;
        };
        let lost = known.lost_since(report, self.since);
        // No more arrives than is sent, whatever a receiver claims.
        let top = known.top(now, arrival.gets.min(self.rate));
        let Some(round_trip) = known.delay.last() else { return false };
        let Known { delay, .. } = known;
        if delay.is_certain() {
            let is_lower = matches!(self.phase, Phase::Trial(_) | Phase::Emptying(_));
            let is_steady = delay.is_settled() && !is_lower;
            self.rivals.note_queue(now, self.round, is_steady);
        }
        let drops = arrival.is_lossy || delay.is_long() && arrival.drops(lost);
        let holds = delay.is_long()
            && (arrival.is_full || arrival.gets / (1.0 - arrival.share) < HELD_BACK * self.rate);
        match self.phase {
            Phase::Steady { .. } if delay.stands() || drops && delay.is_settled() => {
                self.give_way(now, arrival.carries, top, round_trip);
            }
            Phase::Shared(_) if drops || holds || delay.stands() && self.rate > kept(top) => {
                self.share_path(now, arrival.carries, top, round_trip);
            }
            _ => return false,
        }
        true
    }

    /// Ends a trial that has failed, or sets what arrives more exactly. Returns whether it does.
    fn judge_trial(&mut self, report: &RateReport, arrival: &Arrival) -> bool {
        let least = self.least();
        let Some(known) = self.receivers.get_mut(&report.receiver) else { return false };
        let Arrival { packets, share, carries, is_at_rate, .. } = *arrival;
        let is_automatic = self.config.is_automatic();
        self.heard.reports = self.heard.reports.saturating_add(1);
        self.heard.sent = self.heard.sent.max(arrival.sent());
        match self.phase {
            Phase::Trial(trial) => {
                let excess = share - known.lost;
                let before = known.lost.max(LEAST_LOSS);
                let fails =
                    |certainty| excess > trial.failing() + deviation(certainty, before, packets);
                let queues = is_automatic && known.delay.is_certain();
                self.heard.is_doubtful |= fails(LIKELY_IN_TRIAL) || queues;
                // Nothing is lost yet, and less arrives: a queue grows.
                let is_held = is_automatic
                    && is_at_rate
                    && packets >= COUNTED_PACKETS / 2.0
                    && arrival.gets / (1.0 - share) < trial.arriving();
                if is_held || fails(CERTAIN_IN_TRIAL) {
                    known.carries = Some(carries);
                    let part = if is_held { DRAINING_AFTER_TRIAL } else { 1.0 };
                    self.fail((part * trial.base.min(carries)).max(least));
                    return true;
                }
            }
            _ => known.lost = share,
        }
        let Phase::Steady { rounds, is_exact: false } = self.phase else { return false };
        let is_exact = is_at_rate
            && packets >= COUNTED_PACKETS / 2.0
            && known.carries.is_some_and(|carried| carried >= carries)
            && carries < self.rate;
        if is_exact {
            self.change(carries.max(least), Phase::Steady { rounds, is_exact });
        }
        is_exact
    }
}

impl Trial {
    /// The rate that arrives, if half of what is more does.
    fn arriving(&self) -> f64 {
        self.base * (1.0 + self.step) / 2.0
    }

    /// Share of lost packets, beyond those before the trial, above which it fails: half of what is
    /// more.
    fn failing(&self) -> f64 {
        (1.0 - 1.0 / self.step) / 2.0
    }
}
