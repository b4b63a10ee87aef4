//! What a member does while a far sender waits for requests: its blocks have [rounds](Round) until
//! the site is complete, or has taken too long.

use super::answering::{Answering, Asked};
use super::holdings::{BlockHolding, Holdings};
use super::quota::Asker;
use super::round::{Round, Turn};
use super::{Peer, QUIET_AFTER, ShareOutput, Sharer, SiteTurn, micros};
use crate::endpoint::BlockId;
use crate::time::Instant;
use fontana_wire::MissingSymbols;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

/// Blocks that have a round at a time.
const MOST_IN_ROUNDS: usize = 16;
/// How long an offer of the sender counts: the time in which its next one comes.
const OFFERED_FOR: Duration = Duration::from_secs(2);
/// How many times as long as the sender would take for what is lacking the site may take, and how
/// much longer.
const SITE_SHARE: u32 = 3;
const SITE_LEAST: Duration = Duration::from_secs(1);

/// An offer of the sender to send what is requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    /// It is over then, if no other one follows.
    until: Instant,
    /// The site comes before the sender until then.
    first_until: Instant,
}

impl Sharer {
    /// The sender sends what is requested, and nothing else. `takes`: how long it would take for
    /// what is lacking.
    pub fn on_offer(&mut self, now: Instant, takes: Duration) {
        if self.config.turn != SiteTurn::BeforeSender {
            return;
        }
        let until = now + OFFERED_FOR;
        if let Some(offer) = self.offer.as_mut().filter(|offer| now < offer.until) {
            offer.until = until;
            return;
        }
        let first_until = now + SITE_LEAST + takes * SITE_SHARE;
        self.offer = Some(Offer { until, first_until });
        self.rounds.clear();
        self.looked_at = None;
    }

    /// Whether the site comes before a sender that waits for requests.
    pub(super) fn site_is_first(&self, now: Instant) -> bool {
        self.offer.is_some_and(|offer| now < offer.until.min(offer.first_until))
    }

    /// The number of symbols that the sender may be asked for, at most, of a block that lacks some.
    pub fn asks_sender(&self, now: Instant, block: BlockId) -> u32 {
        if !self.site_is_first(now) {
            return u32::MAX;
        }
        self.rounds.get(&block).map_or(0, Round::asks_sender)
    }

    /// Another member has named what it lacks of a block, which is not here, either.
    pub(super) fn on_named(
        &mut self,
        now: Instant,
        Peer { member, address }: Peer,
        (block, holding): (BlockId, &BlockHolding),
        lacking: u32,
        missing: &MissingSymbols,
    ) {
        // The roll call was lost here.
        let begins = self.rounds.len() < MOST_IN_ROUNDS && holding.lacking > 0;
        if begins && holding.makes_fresh && !self.rounds.contains_key(&block) {
            let part = self.random.unit();
            self.rounds.insert(block, Round::new(now, part));
        }
        if let Some(round) = self.rounds.get_mut(&block) {
            let missing = (missing, holding.source_symbols);
            round.on_declared(now, member, address, lacking, missing);
        }
    }

    /// Begins rounds of blocks that lack symbols, and ends those of others. Whether nothing else is
    /// asked for: the session is alive.
    pub(super) fn looks_at_rounds(&mut self, now: Instant, holdings: &impl Holdings) -> bool {
        let watched = &self.watched;
        self.rounds.retain(|block, round| round.is_agent() || watched.contains_key(block));
        if self.site_is_first(now) {
            for &block in self.watched.keys() {
                let open = self.rounds.values().filter(|round| round.due().is_some()).count();
                if open >= MOST_IN_ROUNDS {
                    break;
                }
                let Some(holding) = holdings.block(block) else { continue };
                let part = self.random.unit();
                self.rounds.entry(block).or_insert_with(|| match holding.makes_fresh {
                    true => Round::new(now, part),
                    false => Round::of_sender(now),
                });
            }
        }
        let is_offered = self.offer.is_some_and(|offer| now < offer.until);
        is_offered || now < self.session_at + QUIET_AFTER
    }

    /// The next output of a round.
    pub(super) fn poll_round(
        &mut self,
        now: Instant,
        holdings: &impl Holdings,
    ) -> Option<ShareOutput> {
        let has_block = |block| holdings.block(block).is_none_or(|it| it.has_block);
        loop {
            let served = self.rounds.iter().find(|&(&it, round)| round.is_agent() && has_block(it));
            if let Some((&block, _)) = served {
                let round = self.rounds.remove(&block)?;
                if let Some((lacking, address, member)) = round.largest_need() {
                    self.send_in_round(now, holdings, block, (member, address), lacking, &[]);
                }
                continue;
            }
            let is_due = |round: &Round| round.due().is_some_and(|due| due <= now);
            let due = self.rounds.iter().find(|(_, round)| is_due(round));
            let block = due.map(|(&block, _)| block)?;
            let holding = holdings.block(block).filter(|it| it.lacking > 0);
            let Some(holding) = holding else {
                match self.rounds.get_mut(&block).filter(|round| round.is_agent()) {
                    // It is being solved.
                    Some(round) => round.wait(now),
                    None => drop(self.rounds.remove(&block)),
                }
                continue;
            };
            let part = self.random.unit();
            let round = self.rounds.get_mut(&block)?;
            if let Some(next) = round.again(now, part) {
                *round = next;
                continue;
            }
            let parts = (0..holding.source_symbols).step_by(MissingSymbols::MAX_SPAN as usize);
            let end = |first: u32| first.saturating_add(MissingSymbols::MAX_SPAN);
            let ranges = parts.map(|first| first..end(first).min(holding.source_symbols));
            let missing: BTreeSet<u32> =
                ranges.flat_map(|part| holdings.missing(block, part)).collect();
            match round.act(now, (self.config.member, &holding, &missing)) {
                Turn::Declare(Some(named)) => {
                    return Some(self.request(now, block, &holding, Some(named)));
                }
                Turn::Declare(None) | Turn::Wait => {}
                Turn::Send { agent, address, named, count } => {
                    self.send_in_round(now, holdings, block, (agent, address), count, &named);
                }
                Turn::Sender => return Some(ShareOutput::Sender { block }),
            }
        }
    }

    /// Sends so many symbols of a block that fall to this member: those that are named, or fresh
    /// ones.
    fn send_in_round(
        &mut self,
        now: Instant,
        holdings: &impl Holdings,
        block: BlockId,
        (by, address): (u32, IpAddr),
        count: u32,
        named: &[MissingSymbols],
    ) {
        let Some(holding) = holdings.block(block).filter(|_| count > 0) else { return };
        let asker = Asker { address, is_proven: holdings.is_proven(address) };
        let asked = Asked { at: now, by, asker, clock_us: micros(now) };
        let mut answering = Answering::new(asked, now, &holding).in_round();
        answering.add(asked, count.min(holding.most_useful()), None, None);
        named.iter().for_each(|map| answering.name(map));
        self.answering.insert(block, answering);
    }
}
