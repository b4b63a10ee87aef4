//! The receiver's side of repair on demand: what to request, and when.

use crate::feedback::truncated_backoff;
use crate::lacking::Lacking;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{InstanceId, RepairRequest, RollCall};
use std::time::Duration;

/// Requests what a receiver lacks, once in each repair round.
///
/// With the first roll call of a round it notes what is lacking, and draws a wait (RFC 5401). If
/// the sender says before its end that it sends as many symbols for other receivers, or that enough
/// receivers have requested in this round, it does not request. If the sender halves the window,
/// because it knows by then of fewer receivers, the wait is drawn again.
#[derive(Debug)]
pub(super) struct RepairRequester {
    random: SplitMix64,
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    instance: InstanceId,
    number: u32,
    lacking: Lacking,
    /// The last object of which something may be requested; `None`: all.
    last: Option<u32>,
    /// The number of receivers that the sender assumes.
    receivers: u32,
    /// The window that the wait was drawn from.
    window: Duration,
    /// When to request; `None`: there is no need, or it has requested.
    due: Option<Instant>,
}

impl RepairRequester {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: SplitMix64::new(seed, REQUEST_STREAM), round: None }
    }

    /// Handles a roll call. `lacking`: the first blocks that lack symbols, at most so many, after
    /// everything that has arrived before the roll call.
    pub(super) fn handle_roll_call(
        &mut self,
        now: Instant,
        call: &RollCall,
        lacking: impl FnOnce(usize) -> Lacking,
    ) {
        let Some(repair) = &call.repair else {
            self.round = None;
            return;
        };
        let window = Duration::from_micros(repair.window_us.into());
        let random = &mut self.random;
        let mut wait = || truncated_backoff(window, repair.receivers, random);
        let last = self.round.take().filter(|round| round.instance == call.instance);
        let mut round = last.filter(|round| round.number == repair.round).unwrap_or_else(|| {
            let lacking = up_to(repair.last, lacking(RepairRequest::MAX_BLOCKS));
            let due = (!lacking.is_nothing()).then_some(now + wait());
            let (number, last, receivers) = (repair.round, repair.last, repair.receivers);
            Round { instance: call.instance, number, lacking, last, receivers, window, due }
        });
        round.receivers = repair.receivers;
        if window < round.window / 2 {
            round.window = window;
            round.due = round.due.map(|due| due.min(now + wait()));
        }
        let blocks = &round.lacking.blocks;
        // Roll calls do not say which symbols are sent, only how many.
        let is_covered = !blocks.is_empty() && blocks.iter().all(|need| repair.covers(need));
        if repair.is_closed || is_covered {
            round.due = None;
        }
        self.round = Some(round);
    }

    /// The receiver requests for its site, of so many members: in this round. Only one of these
    /// members does that, so that it waits for less long.
    pub(super) fn request(
        &mut self,
        now: Instant,
        members: u32,
        lacking: impl FnOnce(usize) -> Lacking,
    ) {
        let Some(round) = &mut self.round else { return };
        round.lacking = up_to(round.last, lacking(RepairRequest::MAX_BLOCKS));
        if !round.lacking.is_nothing() {
            let (window, receivers) =
                (round.window / members.max(1), round.receivers / members.max(1));
            let due = now + truncated_backoff(window, receivers, &mut self.random);
            round.due = Some(round.due.map_or(due, |before| before.min(due)));
        }
    }

    /// The sender to request from.
    pub(super) fn sender(&self) -> Option<InstanceId> {
        Some(self.round.as_ref()?.instance)
    }

    /// When the request is due; `None` if there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        self.round.as_ref()?.due
    }

    /// The round and what to request in it. The caller sends it now, or not at all.
    pub(super) fn take(&mut self) -> Option<(u32, Lacking)> {
        let round = self.round.as_mut()?;
        round.due = None;
        Some((round.number, round.lacking.clone()))
    }
}

/// What is lacking of the objects up to this one. Of later ones more is being sent.
fn up_to(last: Option<u32>, mut lacking: Lacking) -> Lacking {
    if let Some(last) = last {
        lacking.blocks.retain(|need| need.toi <= last);
        lacking.maps.retain(|map| map.toi <= last);
        lacking.may_lack_more = false;
    }
    lacking
}

/// Stream of the random generator for waits, different from that of reports.
const REQUEST_STREAM: u64 = 1;
