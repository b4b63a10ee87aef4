//! The sender's side of repair on demand: which symbols to send for what receivers lack.
//!
//! Time is divided into rounds. A round begins with a roll call, which follows everything that was
//! sent for earlier rounds: receivers see what they lack after all of that. Within the round's
//! window they request it ([`RepairRequest`]); the roll calls of the round say what is sent, so
//! that few do. For each block the largest need counts, because a symbol of a rateless code is of
//! use to all receivers that lack one. Of a code whose symbols repeat, receivers request symbols by
//! their numbers, and each is sent once in a round. The round ends when the window is over and the
//! symbols are sent.
//!
//! Receivers lose different packets, so that the largest need is known only when all have asked. Of
//! a crowd, some that were drawn by their waits ask, and the round is closed; those that lack more
//! than what is sent ask in the next one, and they are fewer each time.
//!
//! Receivers that nothing authenticates have a quarter of the rate together. A round serves them by
//! the networks that they are in: each may cause half of what is left of that quarter, all requests
//! of one network count as one when a round is closed, and a network may cause the content
//! [`CONTENT_OF_A_NETWORK`] times at once, and once more in each [`CONTENT_EVERY`]. Where others
//! sign, they close no round and keep no session from ending.
//!
//! A path may be longer than a round: a request that is late counts in the round that has begun
//! meanwhile, for those blocks of which nothing was given out since it was called.
//!
//! A round in which nothing is requested is silent. After enough silent rounds nothing is lacking,
//! with the certainty that losses permit.

use super::authority::{Authority, Network};
use crate::endpoint::BlockId;
use crate::feedback::{
    AT_ONCE, ENOUGH, LEAST_INTERVAL, LONGEST_MUTE, LONGEST_ROUND_TRIP, RequestWindow, SLACK,
    believed_loss, request_window, silent_rounds,
};
use crate::time::Instant;
use fontana_fec::{Esi, Sbn};
use fontana_wire::{BlockNeed, ReceiverId, RepairCall, RepairRequest, Toi};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Interval of rounds while receivers are waited for that may not send, or do not know yet what
/// they lack.
const WAITING_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of rounds while nothing is lacking: that of roll calls.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
/// Probability that a receiver lacks something after all silent rounds, and has not been heard.
const UNHEARD: f64 = 1e-6;
const SILENT_ROUNDS: std::ops::RangeInclusive<u32> = 2..=20;
/// Silent rounds that follow each other at once. A receiver may send four answers a second, so that
/// further ones, which losses require, have an interval in which it may send one.
const QUICK_ROUNDS: u32 = 3;
const ANSWER_INTERVAL: Duration = Duration::from_millis(250);
/// Part of what a receiver has caused in a round that it may cause in addition later.
const MORE_PER_ROUND: f64 = 0.25;
/// Part of the rate at which what a receiver may cause comes back: one that loses much of what is
/// sent for it needs more than the content.
const CREDIT_SHARE: f64 = 0.01;
/// Part of the rate for all receivers together that nothing authenticates.
const UNAUTHENTICATED_SHARE: f64 = 0.25;
/// Part of what is left of it that one network may cause in a round.
const NETWORK_SHARE: f64 = 0.5;
/// How often one network that nothing authenticates may cause the content at once: a few receivers
/// on a host, or one that is started again.
const CONTENT_OF_A_NETWORK: f64 = 4.0;
/// Time in which it may cause the content once more.
const CONTENT_EVERY: Duration = Duration::from_secs(600);
/// Networks that a round serves, at most. They may be invented: each answer may come from another.
const NETWORKS_PER_ROUND: usize = 256;
/// Rounds ago that a late request may answer, at most.
const LATEST: u32 = 64;
/// Time after which the largest loss of a period is forgotten, twice. A crowd of 65 536 reports
/// once in six minutes; what its few receivers with losses lack, they request.
const LOSS_PERIOD: Duration = Duration::from_secs(60);

/// What [`RepairRounds`] needs to know.
#[derive(Clone, Debug)]
pub struct RepairConfig {
    /// Source symbols of each block of the session.
    pub blocks: BTreeMap<BlockId, u32>,
    /// Symbols that the rate allows.
    pub symbols_per_second: f64,
    /// Blocks that a roll call has room for.
    pub pending_capacity: usize,
    /// Receivers that are remembered. For further ones, others are forgotten.
    pub max_receivers: usize,
    /// Largest age of what is repaired: later than this after the source symbols are sent, requests
    /// are ignored. `None`: any.
    pub max_age: Option<Duration>,
    /// The user trusts receivers that nothing authenticates.
    pub trusts_unauthenticated: bool,
    /// Receivers sign: those that nothing authenticates keep no session from ending.
    pub has_signers: bool,
}

/// Why a request, or a part of it, was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoredRequest {
    /// Its counter is not above the last one of the process.
    Replayed,
    /// It answers a round that was not called, or one of long ago.
    OtherRound,
    /// The content is older than what is repaired.
    TooOld,
    /// As many networks as a round serves have requested in it.
    TooMany,
}

/// A receiver that has requested.
#[derive(Debug)]
struct Requester {
    counter: u64,
    /// The last roll call that it has answered: an answer to a later one is no repeat.
    serial: u64,
    /// Symbols that it may still cause to be sent, and since when that is so.
    credit: f64,
    at: Instant,
}

/// A network of receivers that nothing authenticates.
#[derive(Debug)]
struct NetworkCredit {
    /// Symbols that it may still cause to be sent, and since when that is so.
    credit: f64,
    at: Instant,
}

#[derive(Debug)]
struct Round {
    number: u32,
    /// When its first roll call was issued; `None`: it is due.
    called_at: Option<Instant>,
    window: RequestWindow,
    /// When all requests have arrived.
    heard_at: Instant,
    /// When the next one may begin, after all requests have arrived.
    next_at: Option<Instant>,
    /// Largest need of each block.
    needs: BTreeMap<BlockId, u32>,
    /// Symbols that were given out for it.
    given: BTreeMap<BlockId, u32>,
    /// The symbols that were requested by their numbers.
    named: BTreeSet<(BlockId, Esi)>,
    /// Something was requested that no roll call has said.
    has_news: bool,
    /// Number of requests; those that nothing authenticates count once for each network.
    requests: u32,
    /// The networks that have requested and that nothing authenticates, and the symbols that each
    /// may still cause in this round.
    networks: BTreeMap<Network, f64>,
}

/// Decides which symbols are sent for what receivers lack.
#[derive(Debug)]
pub struct RepairRounds {
    config: RepairConfig,
    source_symbols: f64,
    requesters: BTreeMap<(Authority, ReceiverId), Requester>,
    networks: BTreeMap<Network, NetworkCredit>,
    /// `None` while the source symbols are sent.
    round: Option<Round>,
    /// Symbols to be given out, of each block.
    owed: BTreeMap<BlockId, u32>,
    /// The round in which symbols of a block were given out last.
    given_in: BTreeMap<BlockId, u32>,
    /// Symbols to be given out by their numbers.
    owed_named: Vec<(BlockId, Esi)>,
    /// Symbols that unauthenticated receivers may cause now, and since when.
    share: (f64, Instant),
    /// Everything that was given out is sent.
    is_sent: bool,
    /// When the source symbols were sent.
    source_sent_at: Option<Instant>,
    silent_rounds: u32,
    /// Receivers may be unable to request until then.
    mute_until: Instant,
    /// The largest loss of this period and of the last one, and when this one began.
    losses: [f64; 2],
    loss_since: Instant,
}

impl RepairRounds {
    /// The source symbols are being sent.
    pub fn new(config: RepairConfig, now: Instant) -> Self {
        let source_symbols = config.blocks.values().map(|&k| f64::from(k)).sum();
        Self {
            config,
            source_symbols,
            requesters: BTreeMap::new(),
            networks: BTreeMap::new(),
            round: None,
            owed: BTreeMap::new(),
            owed_named: Vec::new(),
            given_in: BTreeMap::new(),
            share: (0.0, now),
            is_sent: false,
            source_sent_at: None,
            silent_rounds: 0,
            mute_until: now,
            losses: [0.0; 2],
            loss_since: now,
        }
    }

    /// Everything that was given out is sent, with the first call the source symbols.
    pub fn handle_sent(&mut self, now: Instant) {
        self.is_sent = true;
        self.source_sent_at.get_or_insert(now);
        if self.round.is_none() {
            self.open(now, 1);
        }
    }

    /// A receiver loses this part of the packets. That is believed for one to two minutes.
    pub fn note_loss(&mut self, now: Instant, loss_ppm: u32) {
        self.forget_losses(now);
        let [present, _] = &mut self.losses;
        *present = present.max(believed_loss(loss_ppm));
    }

    fn forget_losses(&mut self, now: Instant) {
        if now >= self.loss_since + LOSS_PERIOD {
            let [present, _] = self.losses;
            let last = if now < self.loss_since + 2 * LOSS_PERIOD { present } else { 0.0 };
            (self.losses, self.loss_since) = ([0.0, last], now);
        }
    }

    fn largest_loss(&self) -> f64 {
        let [present, last] = self.losses;
        present.max(last)
    }

    /// Whether the content is older than what is repaired: nothing more is sent.
    pub fn is_too_old(&self, now: Instant) -> bool {
        let sent = self.source_sent_at.zip(self.config.max_age);
        sent.is_some_and(|(at, max_age)| now >= at + max_age)
    }

    /// Handles a request. `by`: what vouches for it.
    ///
    /// # Errors
    /// Why it was ignored.
    pub fn handle_request(
        &mut self,
        now: Instant,
        request: &RepairRequest,
        counter: u64,
        by: Authority,
    ) -> Result<(), IgnoredRequest> {
        if self.is_too_old(now) {
            return Err(IgnoredRequest::TooOld);
        }
        let id = (by, request.receiver);
        self.admit(now, id, counter, request.echo.serial)?;
        let is_called = |round: &&mut Round| round.number.wrapping_sub(request.round) <= LATEST;
        let Some(round) = self.round.as_mut().filter(is_called) else {
            return Err(IgnoredRequest::OtherRound);
        };
        let network = match by {
            Authority::Unauthenticated(network) if !self.config.trusts_unauthenticated => {
                Some(network)
            }
            _ => None,
        };
        if let Some(network) = network {
            if !round.networks.contains_key(&network) && round.networks.len() >= NETWORKS_PER_ROUND
            {
                return Err(IgnoredRequest::TooMany);
            }
            self.share.0 = share_now(&self.config, self.share, now);
            self.share.1 = now;
        }
        let holds = network.is_none() || !self.config.has_signers;
        if holds {
            let mute = Duration::from_micros(request.mute_us.into()).min(LONGEST_MUTE);
            self.mute_until = self.mute_until.max(now + mute);
            self.silent_rounds = 0;
        }
        round.has_news = true;
        if holds && network.is_none_or(|network| !round.networks.contains_key(&network)) {
            round.requests = round.requests.saturating_add(1);
        }
        // A request that comes late does not wait for the next round.
        round.next_at = round.next_at.map(|next_at| next_at.min(now + WAITING_INTERVAL));
        let loss = believed_loss(request.loss_ppm);
        if holds {
            self.note_loss(now, request.loss_ppm);
        }
        let mut allowance = self.allowance(now, id, network, 1.0 / (1.0 - loss));
        let most = allowance;
        self.cause(request, loss, &mut allowance);
        self.spend(id, network, most - allowance, 1.0 / (1.0 - loss));
        Ok(())
    }

    /// Remembers the counter of a receiver's request.
    fn admit(
        &mut self,
        now: Instant,
        id: (Authority, ReceiverId),
        counter: u64,
        serial: u64,
    ) -> Result<(), IgnoredRequest> {
        let known = self.requesters.get(&id);
        if known.is_some_and(|known| known.counter >= counter && known.serial >= serial) {
            return Err(IgnoredRequest::Replayed);
        }
        if known.is_none() && self.requesters.len() >= self.config.max_receivers {
            // One that nothing authenticates, if there is any. Ids are random: so is the one that
            // follows. It begins again, if it still requests.
            let last = self.requesters.last_key_value().map(|(id, _)| *id);
            let forgotten = match last {
                Some(last) if !last.0.is_authentic() => {
                    let next = self.requesters.range(id..).next().map(|(id, _)| *id);
                    next.filter(|(by, _)| !by.is_authentic()).or(Some(last))
                }
                // An authentic one gives way to authentic ones only.
                _ if !id.0.is_authentic() => return Err(IgnoredRequest::TooMany),
                _ => {
                    let next = self.requesters.range(id..).next();
                    next.or_else(|| self.requesters.first_key_value()).map(|(id, _)| *id)
                }
            };
            forgotten.map(|id| self.requesters.remove(&id));
        }
        let credit = self.source_symbols;
        let per_second = (credit / CONTENT_EVERY.as_secs_f64())
            .max(CREDIT_SHARE * self.config.symbols_per_second);
        let known =
            self.requesters.entry(id).or_insert(Requester { counter, serial, credit, at: now });
        let passed = now.saturating_since(known.at).as_secs_f64();
        let returned = (known.credit + per_second * passed).min(credit);
        *known = Requester { counter, serial, credit: returned, at: now };
        Ok(())
    }

    /// Symbols that a receiver may cause now.
    fn allowance(
        &mut self,
        now: Instant,
        id: (Authority, ReceiverId),
        network: Option<Network>,
        per_symbol: f64,
    ) -> f64 {
        let credit = self.requesters.get(&id).map_or(0.0, |known| known.credit);
        let Some(network) = network else { return credit };
        let most = CONTENT_OF_A_NETWORK * self.source_symbols;
        let per_second = self.source_symbols / CONTENT_EVERY.as_secs_f64();
        if !self.networks.contains_key(&network) && self.networks.len() >= self.config.max_receivers
        {
            // Those that have all their credit are as good as new ones. All of them are looked at
            // once in a round, however many are invented.
            if self.round.as_ref().is_some_and(|round| round.networks.is_empty()) {
                self.networks.retain(|_, known| {
                    let passed = now.saturating_since(known.at).as_secs_f64();
                    known.credit + per_second * passed < most
                });
            }
            if self.networks.len() >= self.config.max_receivers {
                self.networks.pop_first();
            }
        }
        let new = NetworkCredit { credit: most, at: now };
        let known = self.networks.entry(network).or_insert(new);
        let passed = now.saturating_since(known.at).as_secs_f64();
        (known.credit, known.at) = ((known.credit + per_second * passed).min(most), now);
        let Some(round) = &mut self.round else { return 0.0 };
        let share = round.networks.entry(network).or_insert(self.share.0 * NETWORK_SHARE);
        credit.min(known.credit).min(share.min(self.share.0) / per_symbol)
    }

    /// A receiver has caused so many symbols.
    fn spend(
        &mut self,
        id: (Authority, ReceiverId),
        network: Option<Network>,
        caused: f64,
        per_symbol: f64,
    ) {
        if let Some(known) = self.requesters.get_mut(&id) {
            known.credit += caused * (MORE_PER_ROUND - 1.0);
        }
        let Some(network) = network else { return };
        self.share.0 -= caused * per_symbol;
        if let Some(known) = self.networks.get_mut(&network) {
            known.credit -= caused;
        }
        if let Some(share) = self.round.as_mut().and_then(|it| it.networks.get_mut(&network)) {
            *share -= caused * per_symbol;
        }
    }

    /// Takes what is requested, and has not been before in this round, as far as the receiver may
    /// cause it.
    fn cause(&mut self, request: &RepairRequest, loss: f64, allowance: &mut f64) {
        let Some(round) = &mut self.round else { return };
        let age = round.number.wrapping_sub(request.round);
        let number = round.number;
        let given_in = &mut self.given_in;
        // What it lacks may be on its way, if it was given out since the receiver has looked.
        let may_be_sent = |given_in: &BTreeMap<BlockId, u32>, block: &BlockId| {
            age > 0 && given_in.get(block).is_some_and(|&last| number.wrapping_sub(last) <= age)
        };
        let per_symbol = 1.0 / (1.0 - loss);
        for need in &request.blocks {
            let block = BlockId { toi: Toi(need.toi.into()), sbn: Sbn(need.sbn) };
            let Some(&k) = self.config.blocks.get(&block) else { continue };
            if may_be_sent(given_in, &block) {
                continue;
            }
            let known = round.needs.get(&block).copied().unwrap_or(0);
            // No block lacks more than its source symbols and the surplus of its code. What the
            // request causes is what no other receiver has asked for.
            let most = k.saturating_add(k.div_ceil(8)).saturating_add(8);
            let more = need.symbols.min(most).saturating_sub(known).min(*allowance as u32);
            if more == 0 {
                continue;
            }
            *allowance -= f64::from(more);
            round.needs.insert(block, known + more);
            // Rounded: what is lacking after this is requested again. A whole symbol more would be
            // as much as many short blocks lack.
            let to_send = (f64::from(known + more) * per_symbol).round() as u32;
            let given = round.given.entry(block).or_insert(0);
            if to_send > *given {
                *self.owed.entry(block).or_insert(0) += to_send - *given;
                *given = to_send;
                given_in.insert(block, number);
            }
        }
        for map in &request.maps {
            let block = BlockId { toi: Toi(map.toi.into()), sbn: Sbn(map.sbn) };
            let Some(&k) = self.config.blocks.get(&block) else { continue };
            if may_be_sent(given_in, &block) {
                continue;
            }
            for esi in map.symbols().take_while(|&esi| esi < k).map(Esi) {
                if *allowance < 1.0 || !round.named.insert((block, esi)) {
                    continue;
                }
                *allowance -= 1.0;
                self.owed_named.push((block, esi));
                given_in.insert(block, number);
            }
        }
    }

    /// The symbols to be sent now that were requested by their numbers. The caller says when they
    /// are [sent](Self::handle_sent).
    pub fn poll_named(&mut self) -> Option<Vec<(BlockId, Esi)>> {
        if self.owed_named.is_empty() {
            return None;
        }
        self.is_sent = false;
        Some(std::mem::take(&mut self.owed_named))
    }

    /// Symbols to be sent now, beside those of earlier calls: fresh ones of these blocks. The
    /// caller says when they are [sent](Self::handle_sent).
    pub fn poll_symbols(&mut self) -> Option<Vec<(BlockId, u32)>> {
        if self.owed.is_empty() {
            return None;
        }
        self.is_sent = false;
        Some(std::mem::take(&mut self.owed).into_iter().collect())
    }

    /// Judges the round when all requests have arrived and everything is sent, and begins the next.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.forget_losses(now);
        let needed = needed_rounds(self.largest_loss());
        let is_done = self.is_sent && self.owed.is_empty() && self.owed_named.is_empty();
        let Some(round) = self.round.as_mut().filter(|_| is_done) else { return };
        let Some(called_at) = round.called_at.filter(|_| round.heard_at <= now) else { return };
        let number = round.number.wrapping_add(1);
        let next_at = *round.next_at.get_or_insert_with(|| {
            let is_silent = round.requests == 0 && now >= self.mute_until;
            self.silent_rounds = if is_silent { self.silent_rounds.saturating_add(1) } else { 0 };
            let interval = if !round.given.is_empty() || !round.named.is_empty() {
                Duration::ZERO
            } else if self.silent_rounds >= needed {
                IDLE_INTERVAL
            } else if is_silent && self.silent_rounds < QUICK_ROUNDS {
                LEAST_INTERVAL
            } else if is_silent {
                ANSWER_INTERVAL
            } else {
                WAITING_INTERVAL
            };
            called_at + interval
        });
        if next_at <= now {
            self.open(now, number);
        }
    }

    fn open(&mut self, now: Instant, number: u32) {
        self.round = Some(Round {
            number,
            called_at: None,
            window: RequestWindow::default(),
            heard_at: now,
            next_at: None,
            needs: BTreeMap::new(),
            given: BTreeMap::new(),
            named: BTreeSet::new(),
            has_news: false,
            requests: 0,
            networks: BTreeMap::new(),
        });
    }

    /// Whether nothing has been lacking for so many rounds that the session may end.
    pub fn is_silent(&self) -> bool {
        self.silent_rounds >= needed_rounds(self.largest_loss())
    }

    /// Whether a roll call should be issued soon: a round begins, or has news.
    pub fn wants_call(&self, now: Instant) -> bool {
        let Some(round) = &self.round else { return false };
        match round.called_at {
            None => true,
            Some(at) => round.has_news && now < at + round.window.length,
        }
    }

    /// The repair round for a roll call that is issued now, for so many receivers. `None` while the
    /// source symbols are sent.
    pub fn call(
        &mut self,
        now: Instant,
        receivers: u32,
        round_trip: Duration,
    ) -> Option<RepairCall> {
        let round_trip = round_trip.min(LONGEST_ROUND_TRIP);
        let window = request_window(receivers, round_trip);
        let round = self.round.as_mut()?;
        if round.called_at.is_none() {
            round.called_at = Some(now);
            round.window = window;
            round.heard_at = now + window.length + round_trip + SLACK;
        } else if window.length < round.window.length / 2 {
            // Fewer receivers than the round was called for, or nearer ones: they draw again.
            round.window = window;
            round.heard_at = round.heard_at.min(now + window.length + round_trip + SLACK);
        }
        round.has_news = false;
        let pending = round.needs.iter().filter_map(|(block, &symbols)| {
            let toi = u32::try_from(block.toi.0).ok()?;
            Some(BlockNeed { toi, sbn: block.sbn.0, symbols })
        });
        Some(RepairCall {
            round: round.number,
            window_us: u32::try_from(round.window.length.as_micros()).unwrap_or(u32::MAX),
            receivers,
            is_closed: round.requests >= ENOUGH && round.window.suppresses,
            pending: pending.take(self.config.pending_capacity).collect(),
            last: None,
        })
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called; `None` if something else has
    /// to happen first.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let round = self.round.as_ref()?;
        (round.called_at.is_some() && self.is_sent).then(|| round.next_at.unwrap_or(round.heard_at))
    }
}

/// Symbols that unauthenticated receivers may cause now.
fn share_now(config: &RepairConfig, (share, since): (f64, Instant), now: Instant) -> f64 {
    let rate = config.symbols_per_second * UNAUTHENTICATED_SHARE;
    let most = rate.max(f64::from(AT_ONCE));
    (share + rate * now.saturating_since(since).as_secs_f64()).min(most)
}

/// Silent rounds after which nothing is lacking.
fn needed_rounds(loss: f64) -> u32 {
    silent_rounds(loss, UNHEARD, SILENT_ROUNDS)
}
