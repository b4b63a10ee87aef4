//! Repair of a stream: how many repair symbols a fragment has at first, and which are added for
//! what receivers request.
//!
//! Time is divided into rounds. A round begins with a roll call, which names the last fragment of
//! which all symbols were sent: receivers see what they lack of it and of those before. Within the
//! round's window they request it ([`RepairRequest`]). For each fragment the largest need counts. A
//! fragment is *settled*, and need not be listed any more, after enough rounds in which it was not
//! requested: receivers that lack something are heard by then, although requests are lost.
//!
//! The requests of the first round after a fragment say how much it lacked. They move the estimate
//! of [`RedundancyEstimate`], with which later fragments begin. All fragments that a round asks for
//! first, and that began with the same estimate, are judged as one block, because several short
//! ones are sent before the first request can arrive.

use crate::feedback::{
    ENOUGH, LONGEST_MUTE, LONGEST_ROUND_TRIP, RedundancyEstimate, RequestWindow, SLACK,
    believed_loss, request_window, silent_rounds,
};
use crate::time::Instant;
use fontana_wire::{BlockNeed, ReceiverId, RepairCall, RepairRequest, StreamIndex, Toi};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Interval of rounds. A receiver sends four answers a second, one of which is a report.
const ROUND_INTERVAL: Duration = Duration::from_millis(350);
/// Probability that a receiver lacks something of a fragment that is settled. A stream of a week
/// has less than a million fragments of the usual length.
const UNHEARD: f64 = 1e-8;
const SILENT_ROUNDS: std::ops::RangeInclusive<u32> = 3..=20;
/// Longest time from a fragment's last symbol of its own until it is given up.
const LONGEST_STAY: Duration = Duration::from_secs(8);
/// The largest loss is that of this time and the same time before.
const LOSS_PERIOD: Duration = Duration::from_secs(10);
/// Source symbols that the estimate's numbers are for: it is a share.
const MILLION: u32 = 1_000_000;
/// Fragments that a roll call names as being repaired, at most.
pub(super) const MAX_PENDING: usize = 48;

/// A fragment that may be repaired.
#[derive(Debug)]
struct Watched {
    number: u32,
    source_symbols: u32,
    /// The estimate with which it began; `None` if it has a share that does not follow it.
    began_with: Option<RedundancyEstimate>,
    /// Everything that was planned for it is sent.
    is_sent: bool,
    /// When that was so first.
    sent_at: Option<Instant>,
    /// A round has asked for it.
    is_judged: bool,
    /// The largest need in this round, and the symbols that were added for it.
    need: u32,
    added: u32,
    silent_rounds: u32,
}

#[derive(Debug)]
struct Round {
    number: u32,
    /// The last fragment that may be requested.
    last: u32,
    /// When its first roll call was issued; `None`: it is due.
    called_at: Option<Instant>,
    window: RequestWindow,
    /// When all requests have arrived.
    heard_at: Instant,
    /// Something was requested that no roll call has said.
    has_news: bool,
    /// Receivers that have requested; no more are counted than close the round.
    requesters: BTreeSet<ReceiverId>,
    is_closed: bool,
    /// A receiver could not answer at its beginning.
    is_mute: bool,
}

/// Symbols to be sent of a fragment beside those that were planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Added {
    pub(super) number: u32,
    pub(super) symbols: u32,
}

/// Decides how many repair symbols fragments have.
#[derive(Debug)]
pub(super) struct StreamRepair {
    /// Receivers report: fragments begin with the estimate.
    is_followed: bool,
    estimate: RedundancyEstimate,
    /// A round has said what a fragment lacked.
    was_judged: bool,
    /// The fragments that are being sent, ascending.
    fragments: VecDeque<Watched>,
    round: Option<Round>,
    round_number: u32,
    next_round: Instant,
    mute_until: Instant,
    /// The largest loss of this period and of the last one, and the end of this one.
    losses: [f64; 2],
    losses_until: Instant,
}

impl StreamRepair {
    /// No receiver has reported.
    pub(super) fn new() -> Self {
        Self {
            is_followed: false,
            estimate: RedundancyEstimate::new(),
            was_judged: false,
            fragments: VecDeque::new(),
            round: None,
            round_number: 0,
            next_round: Instant::ZERO,
            mute_until: Instant::ZERO,
            losses: [0.0; 2],
            losses_until: Instant::ZERO + LOSS_PERIOD,
        }
    }

    pub(super) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Whether receivers report now.
    pub(super) fn set_followed(&mut self, is_followed: bool) {
        self.is_followed = is_followed;
    }

    /// A receiver loses this part of the packets. The first fragments begin with what this receiver
    /// lacks of them on average: they are sent before a request can say it.
    pub(super) fn note_loss(&mut self, loss_ppm: u32) {
        let loss = believed_loss(loss_ppm);
        let [latest, _] = &mut self.losses;
        *latest = latest.max(loss);
        if !self.was_judged {
            let share = f64::from(MILLION) * loss / (1.0 - loss);
            self.estimate = self.estimate.at_least(share as u32);
        }
    }

    /// Repair symbols with which a fragment begins; `None`: as many as without reports.
    pub(super) fn planned(&self, source_symbols: u32) -> Option<u32> {
        let share = u64::from(self.estimate.symbols());
        // Rounded down: a symbol that was not requested is not sent for half of the chance that it
        // is of use.
        let symbols = share * u64::from(source_symbols) / u64::from(MILLION);
        self.is_followed.then(|| u32::try_from(symbols).unwrap_or(u32::MAX))
    }

    /// Adds the next fragment.
    pub(super) fn add(&mut self, number: u32, source_symbols: u32) {
        self.fragments.push_back(Watched {
            number,
            source_symbols,
            began_with: self.is_followed.then_some(self.estimate),
            is_sent: false,
            sent_at: None,
            is_judged: false,
            need: 0,
            added: 0,
            silent_rounds: 0,
        });
    }

    /// Everything that was planned for a fragment is sent.
    pub(super) fn handle_sent(&mut self, now: Instant, number: u32) {
        if let Some(fragment) = self.fragment(number) {
            fragment.is_sent = true;
            fragment.sent_at.get_or_insert(now);
        }
    }

    /// Whether no receiver lacks anything of a fragment, with the certainty that losses permit, or
    /// it is given up.
    pub(super) fn is_settled(&self, now: Instant, number: u32) -> bool {
        let needed = if self.is_followed { self.needed_rounds() } else { 0 };
        self.watched(number).is_none_or(|fragment| {
            let is_silent = fragment.is_sent && fragment.silent_rounds >= needed;
            let is_old = fragment.sent_at.is_some_and(|at| now >= at + LONGEST_STAY);
            is_silent || is_old
        })
    }

    /// When a fragment is given up; `None` if it is being sent.
    pub(super) fn given_up_at(&self, number: u32) -> Option<Instant> {
        self.watched(number)?.sent_at.map(|at| at + LONGEST_STAY)
    }

    /// Forgets the first fragments, before this one.
    pub(super) fn forget_before(&mut self, number: u32) {
        while self.fragments.front().is_some_and(|fragment| fragment.number < number) {
            self.fragments.pop_front();
        }
    }

    /// Handles a request. Returns what to send for it.
    pub(super) fn handle_request(&mut self, now: Instant, request: &RepairRequest) -> Vec<Added> {
        self.note_loss(request.loss_ppm);
        let mute = Duration::from_micros(request.mute_us.into()).min(LONGEST_MUTE);
        self.mute_until = self.mute_until.max(now + mute);
        let Some(round) = self.round.as_mut().filter(|it| it.number == request.round) else {
            return Vec::new();
        };
        if round.requesters.len() < ENOUGH as usize {
            round.requesters.insert(request.receiver);
        }
        let last = round.last;
        let loss = believed_loss(request.loss_ppm);
        let mut all = Vec::new();
        for need in &request.blocks {
            let number = StreamIndex::number(Toi(need.toi.into()));
            let Some(number) = number.filter(|&number| number <= last && need.sbn == 0) else {
                continue;
            };
            let Some(fragment) = self.fragment(number) else { continue };
            // No fragment lacks more than its source symbols and the surplus of its code.
            let most = fragment.source_symbols.saturating_add(8);
            let need = need.symbols.min(most);
            if need <= fragment.need {
                continue;
            }
            fragment.need = need;
            // One deviation more than arrives on average: a request may be lost as well, and the
            // time in which a fragment is listed ends.
            let (needed, deviation) = (f64::from(need), (f64::from(need) * loss).sqrt());
            let to_send = ((needed + deviation) / (1.0 - loss)).round() as u32;
            let symbols = to_send.saturating_sub(fragment.added);
            fragment.added = fragment.added.max(to_send);
            all.push(Added { number, symbols });
        }
        if let Some(round) = &mut self.round {
            round.has_news |= !all.is_empty();
        }
        all.retain(|added| added.symbols > 0);
        for added in &all {
            if let Some(fragment) = self.fragment(added.number) {
                fragment.is_sent = false;
            }
        }
        all
    }

    /// Nothing more can be sent of a fragment: it is not waited for.
    pub(super) fn handle_exhausted(&mut self, number: u32) {
        if let Some(fragment) = self.fragment(number) {
            fragment.is_sent = true;
        }
    }

    /// Ends the round whose requests have arrived, and begins the next one when it is due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if now >= self.losses_until {
            let [latest, before] = &mut self.losses;
            *before = std::mem::take(latest);
            self.losses_until = now + LOSS_PERIOD;
        }
        let is_heard = |round: &mut Round| round.called_at.is_some() && round.heard_at <= now;
        if let Some(round) = self.round.take_if(is_heard) {
            self.judge(&round);
        }
        if self.round.is_none() && self.is_followed && now >= self.next_round {
            self.round = self.askable().map(|last| Round {
                number: self.round_number.wrapping_add(1),
                last,
                called_at: None,
                window: RequestWindow::default(),
                heard_at: now,
                has_news: false,
                requesters: BTreeSet::new(),
                is_closed: false,
                is_mute: now < self.mute_until,
            });
            self.round_number = self.round_number.wrapping_add(u32::from(self.round.is_some()));
        }
    }

    /// The last fragment that receivers may be asked for: all before it are sent, too. `None` if
    /// there is none, or all of them are settled.
    fn askable(&self) -> Option<u32> {
        let needed = self.needed_rounds();
        let sent = || self.fragments.iter().take_while(|fragment| fragment.is_sent);
        let is_open = sent().any(|fragment| fragment.silent_rounds < needed);
        sent().last().filter(|_| is_open).map(|fragment| fragment.number)
    }

    fn judge(&mut self, round: &Round) {
        let mut groups: Vec<Group> = Vec::new();
        for fragment in self.fragments.iter_mut().take_while(|it| it.number <= round.last) {
            let need = std::mem::take(&mut fragment.need);
            fragment.added = 0;
            match need {
                0 if round.is_closed || round.is_mute => {}
                0 => fragment.silent_rounds = fragment.silent_rounds.saturating_add(1),
                _ => fragment.silent_rounds = 0,
            }
            if std::mem::replace(&mut fragment.is_judged, true) {
                continue;
            }
            let Some(estimate) = fragment.began_with else { continue };
            let (source, need) = (u64::from(fragment.source_symbols), u64::from(need));
            match groups.last_mut().filter(|group| group.estimate == estimate) {
                Some(group) => {
                    (group.source, group.need) = (group.source + source, group.need + need)
                }
                None => groups.push(Group { estimate, source, need }),
            }
        }
        // Of fragments that began with different estimates, most say it.
        if let Some(group) = groups.into_iter().max_by_key(|group| group.source) {
            let mut estimate = group.estimate;
            let share = group.need * u64::from(MILLION) / group.source.max(1);
            let share = u32::try_from(share).unwrap_or(u32::MAX);
            estimate.judge((group.need > 0).then_some(share), MILLION);
            self.estimate = estimate;
            self.was_judged = true;
        }
    }

    /// Whether a roll call should be issued soon: a round begins, or has news for others.
    pub(super) fn wants_call(&self, now: Instant) -> bool {
        let Some(round) = &self.round else { return false };
        match round.called_at {
            None => true,
            Some(at) => round.window.suppresses && round.has_news && now < at + round.window.length,
        }
    }

    /// The repair round for a roll call that is issued now, for so many receivers. `None` if there
    /// is none.
    pub(super) fn call(
        &mut self,
        now: Instant,
        receivers: u32,
        round_trip: Duration,
    ) -> Option<RepairCall> {
        let round_trip = round_trip.min(LONGEST_ROUND_TRIP);
        let round = self.round.as_mut()?;
        if round.called_at.is_none() {
            round.called_at = Some(now);
            round.window = request_window(receivers, round_trip);
            round.heard_at = now + round.window.length + round_trip + SLACK;
            self.next_round = round.heard_at.max(now + ROUND_INTERVAL);
        }
        round.has_news = false;
        round.is_closed = round.requesters.len() >= ENOUGH as usize && round.window.suppresses;
        let pending = self.fragments.iter().filter(|fragment| fragment.need > 0).filter_map(|it| {
            let toi = u32::try_from(StreamIndex::toi(it.number).0).ok()?;
            Some(BlockNeed { toi, sbn: 0, symbols: it.need })
        });
        Some(RepairCall {
            round: round.number,
            window_us: u32::try_from(round.window.length.as_micros()).unwrap_or(u32::MAX),
            receivers,
            is_closed: round.is_closed,
            pending: pending.take(MAX_PENDING).collect(),
            last: u32::try_from(StreamIndex::toi(round.last).0).ok(),
        })
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called; `None` if something else has
    /// to come first.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match &self.round {
            Some(round) => round.called_at.map(|_| round.heard_at),
            None => (self.is_followed && self.askable().is_some()).then_some(self.next_round),
        }
    }

    /// Rounds after which a fragment is settled that was not requested in them. What receivers
    /// report to lose is of all their time, what they request is of the last fragments.
    fn needed_rounds(&self) -> u32 {
        let share = believed_loss(self.estimate.symbols());
        let loss = self.losses.iter().fold(share, |largest, &loss| largest.max(loss));
        silent_rounds(loss, UNHEARD, SILENT_ROUNDS)
    }

    fn watched(&self, number: u32) -> Option<&Watched> {
        let first = self.fragments.front()?.number;
        self.fragments.get(number.checked_sub(first)? as usize)
    }

    fn fragment(&mut self, number: u32) -> Option<&mut Watched> {
        let first = self.fragments.front()?.number;
        self.fragments.get_mut(number.checked_sub(first)? as usize)
    }
}

/// Fragments that began with one estimate.
struct Group {
    estimate: RedundancyEstimate,
    source: u64,
    need: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fragments_begin_with_what_losses_predict_until_a_round_has_judged_one() {
        let mut repair = StreamRepair::new();
        repair.set_followed(true);
        assert_eq!(repair.planned(100), Some(0));
        repair.note_loss(200_000);
        repair.note_loss(10_000);
        assert_eq!(repair.planned(100), Some(25), "a fifth of 125 is lost");
        repair.add(0, 100);
        repair.handle_sent(Instant::ZERO, 0);
        repair.handle_timeout(Instant::ZERO);
        let call = repair.call(Instant::ZERO, 1, Duration::ZERO);
        assert!(call.is_some_and(|call| call.last.is_some()));
        repair.note_loss(500_000);
        assert_eq!(repair.planned(100), Some(100));
        // Nothing is requested of the fragment, which began with 25.
        repair.handle_timeout(Instant::ZERO + ROUND_INTERVAL);
        assert_eq!(repair.planned(100), Some(12));
        repair.note_loss(500_000);
        assert_eq!(repair.planned(100), Some(12));
    }
}
