//! Receivers of one site that complete each other: which symbols a member asks for, and which it
//! sends. It is SRM (Floyd et al. 1997) on blocks of an erasure code (Li and Cheriton 1999), with
//! pauses in place of SRM's session messages.
//!
//! All messages go to one group. Before any member has a block, a request names symbols; members
//! that have some of them answer with what they hold. Once a member has the block, requests only
//! count, and it answers with fresh symbols, each of which is of use to all.
//!
//! - A member asks for a block when the session has brought none of its symbols for a while. It
//!   waits at random before, so that others hear its request; without the block in any member's
//!   hands, those that lack less wait less.
//! - A request or an answer that it hears puts off its own request until the answers pause.
//! - A member that can answer waits at random too. If it hears an answer, it leaves the rest to
//!   that member unless it pauses. Each symbol that is heard is one less to send.
//! - Waits follow the measured round trip: requests have a clock, and answers return it.
//!
//! Where the sender is far and lives, it is asked for what the site cannot bring, and members take
//! turns that need no suppression: see `offer` and `round`.
//!
//! [`Sharer`] decides on ids. The driver sends what it says, and reads or encodes symbols. With a
//! group key it seals messages, and a [`ShareOpener`] drops those of strangers.

mod answering;
mod asking;
mod crowd;
mod holdings;
mod offer;
mod opener;
mod quota;
mod round;

use crate::endpoint::BlockId;
use crate::random::SplitMix64;
use crate::time::Instant;
use answering::{Answering, Asked, NextSymbol, Overheard, Step};
use asking::{Asking, Rest};
use crowd::Crowd;
use fontana_fec::Esi;
use fontana_wire::{FreshStart, MissingSymbols, ShareRequest};
pub use holdings::{BlockHolding, Holdings};
use offer::Offer;
pub use opener::{MemberKeys, ShareOpener};
use quota::{Asker, Quota};
use round::Round;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Interval between two looks at what blocks lack.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time without a symbol of a block from the session after which it is asked for.
const QUIET_AFTER: Duration = Duration::from_secs(1);
/// Blocks that are asked for at a time. All members ask for the first ones that they lack.
const MOST_ASKED: usize = 2;
/// Pauses for which symbols that are of no use put requests off, if nothing is known of their
/// address: with two, twenty members ask for more at once, and send each other a fifth more.
const UNPROVEN_PAUSES: u32 = 8;
/// Blocks that are answered for at a time. More requests displace others by chance, except those of
/// addresses that symbols came from that were right.
const MOST_ANSWERED: usize = 8;
/// Blocks that are answered for at a time, of those that one address was the first to ask for.
const MOST_OF_ADDRESS: usize = MOST_ASKED;
/// Time after a request that names symbols, or one that was answered, in which requests that count
/// are answered: they take 40 bytes, and no member begins with one.
const NAMED_FOR: Duration = Duration::from_secs(10);
/// Blocks of which it is remembered when their symbols were named, and for whom.
const MOST_NAMED: usize = 64;
/// Blocks of which it is remembered that they have rested. Of more, the first ones are forgotten.
const MOST_RESTING: usize = 1_024;
/// Blocks that are looked at.
const MOST_LOOKED_AT: usize = 64;
/// Least time between two messages that no member has what is lacking: any symbol of use is a
/// reason to say it again.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// Longest time that the sending of answers makes up for: a host that runs other programs as well
/// lets this one wait for so long. With 1 ms, members of busy hosts send at a sixth of their rate,
/// and others ask meanwhile. At 20 Mbit/s it is 50 kB at once, which a socket has room for.
const DEBT: Duration = Duration::from_millis(20);

/// When the session has brought nothing of use for so long, the sender may be gone.
pub(crate) const GONE_AFTER: Duration = Duration::from_secs(3);

/// When a member asks others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteTurn {
    /// For a block of which the session has brought nothing for a second.
    BesideSession,
    /// Before it asks a sender that is farther than the site; and when nothing comes of that.
    BeforeSender,
    /// When the session has brought nothing for three seconds.
    AfterSender,
}

/// How a member shares.
#[derive(Clone, Copy, Debug)]
pub struct ShareConfig {
    /// Seed of the random waits, and of where the fresh symbols begin.
    pub seed: u64,
    /// The number that the member has drawn.
    pub member: u32,
    /// Bytes per second of answers, at most.
    pub bytes_per_second: u64,
    /// Bytes of answers for addresses from which nothing right has come, at most. Of what is used
    /// up, a tenth of the rate comes back.
    pub max_unproven_bytes: u64,
    /// When it asks others.
    pub turn: SiteTurn,
}

/// What the driver does for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareOutput {
    /// Send this request.
    Ask {
        /// The block.
        block: BlockId,
        /// The request.
        request: ShareRequest,
    },
    /// Read these symbols, or encode them, and answer with [`Sharer::on_read`].
    Read {
        /// The block.
        block: BlockId,
        /// The number of this batch of symbols, which no other one of the member has.
        batch: u32,
        /// The symbols.
        esis: Vec<Esi>,
        /// All of the block is there; if not, the symbols are those that were received.
        has_block: bool,
    },
    /// Send a symbol that was read.
    Answer(ShareAnswer),
    /// A whole round of requests for the block brought nothing. If it is searched for wrong
    /// symbols, those that others have sent are to be dropped.
    Vain {
        /// The block.
        block: BlockId,
    },
    /// The session is silent, and every block that is looked at was asked for in vain. Said once,
    /// until a symbol of use arrives, and once a minute at most.
    Lacking {
        /// Blocks that lack symbols; if it is 64, there may be more.
        blocks: u32,
        /// Symbols that they lack.
        symbols: u64,
    },
    /// The sender may be asked for symbols of this block from now on: see
    /// [`asks_sender`](Sharer::asks_sender).
    Sender {
        /// The block.
        block: BlockId,
    },
    /// What was read of a block is not needed any more.
    Release {
        /// The block.
        block: BlockId,
    },
}

/// A symbol to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareAnswer {
    /// The block.
    pub block: BlockId,
    /// The symbol.
    pub esi: Esi,
    /// The batch that it was read with. Earlier ones of the block are not needed any more.
    pub batch: u32,
    /// Its place there.
    pub index: usize,
    /// The member has all of the block.
    pub has_block: bool,
    /// The member whose request is answered.
    pub to: u32,
    /// The clock of that member, and the time since its request has arrived, in microseconds.
    pub echo_us: u32,
}

/// Another member: the number in its messages, and the address that they came from. Any host can
/// claim both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The number.
    pub member: u32,
    /// The address.
    pub address: IpAddr,
}

/// What a member has done, and heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareStats {
    /// Requests that it has sent.
    pub requests_sent: u64,
    /// Symbols that it has sent.
    pub symbols_sent: u64,
    /// Bytes of symbols that it has sent.
    pub bytes_sent: u64,
    /// Requests of others.
    pub requests_heard: u64,
    /// Symbols of others.
    pub symbols_heard: u64,
    /// Symbols of others that were of use.
    pub symbols_used: u64,
    /// Other members of the last minute.
    pub members: u32,
}

/// A member.
#[derive(Debug)]
pub struct Sharer {
    config: ShareConfig,
    random: SplitMix64,
    crowd: Crowd,
    /// What the blocks lack, as far as they were looked at.
    watched: BTreeMap<BlockId, Watched>,
    asking: BTreeMap<BlockId, Asking>,
    /// Blocks that are not asked for, because it was in vain.
    resting: BTreeMap<BlockId, Rest>,
    /// The block after which blocks are looked at, and since when. `None`: from the first one.
    after: Option<BlockId>,
    window_at: Instant,
    answering: BTreeMap<BlockId, Answering>,
    /// Where fresh symbols begin, and how many of each block were sent.
    fresh_start: FreshStart,
    fresh: BTreeMap<BlockId, u32>,
    looked_at: Option<Instant>,
    /// The sender sends what is requested, and nothing else.
    offer: Option<Offer>,
    /// Blocks whose members name what they lack.
    rounds: BTreeMap<BlockId, Round>,
    /// When the session has last brought a symbol of use, and how many it had brought then.
    session_at: Instant,
    session_symbols: u64,
    /// What no member seems to have: to be said, and when that was said last.
    lacks: Option<(u32, u64)>,
    said_at: Option<Instant>,
    /// When a symbol of use has last come, from wherever.
    used_at: Instant,
    /// When the next symbol may be sent.
    free_at: Instant,
    /// When it has answered.
    answered_at: Instant,
    quota: Quota,
    /// When symbols of a block were named.
    named_at: BTreeMap<BlockId, Instant>,
    /// For whom a part of a block was sent last.
    served: BTreeMap<BlockId, IpAddr>,
    /// The number of the next batch that is read: what is read late of a block is not taken for
    /// what is wanted of it by then.
    next_batch: u32,
    /// Blocks that are not answered for any more.
    released: Vec<BlockId>,
    stats: ShareStats,
}

/// A block that lacks symbols.
#[derive(Clone, Copy, Debug)]
struct Watched {
    lacking: u32,
    /// Symbols of others that were of use since `lacking` was noted.
    used: u32,
    /// When the session has last brought a symbol of it.
    session_at: Instant,
    /// When another member has last asked for it, or sent a symbol of it.
    others_at: Option<Instant>,
}

impl Sharer {
    /// A member that has heard nothing.
    pub fn new(config: ShareConfig) -> Self {
        let mut random = SplitMix64::new(config.seed, config.member.into());
        let fresh_start = FreshStart::draw(random.next_u64());
        let quota = Quota::new(config.max_unproven_bytes, config.bytes_per_second);
        Self {
            config,
            random,
            crowd: Crowd::default(),
            watched: BTreeMap::new(),
            asking: BTreeMap::new(),
            resting: BTreeMap::new(),
            after: None,
            window_at: Instant::ZERO,
            answering: BTreeMap::new(),
            fresh_start,
            fresh: BTreeMap::new(),
            looked_at: None,
            offer: None,
            rounds: BTreeMap::new(),
            session_at: Instant::ZERO,
            session_symbols: 0,
            lacks: None,
            said_at: None,
            used_at: Instant::ZERO,
            free_at: Instant::ZERO,
            answered_at: Instant::ZERO,
            quota,
            named_at: BTreeMap::new(),
            served: BTreeMap::new(),
            next_batch: 0,
            released: Vec::new(),
            stats: ShareStats::default(),
        }
    }

    /// Whether a message with this number is its own.
    pub fn is_own(&self, member: u32) -> bool {
        member == self.config.member
    }

    /// What it has done, and heard.
    pub fn stats(&self) -> ShareStats {
        ShareStats { members: self.crowd.count(), ..self.stats }
    }

    /// When it has last sent something for a request. [`Instant::ZERO`] if never.
    pub fn answered_at(&self) -> Instant {
        self.answered_at
    }

    /// When the session has last brought a symbol of use, as far as is known.
    pub fn session_at(&self) -> Instant {
        self.session_at
    }

    /// Handles a request of another member for a block of the content.
    pub fn on_request(
        &mut self,
        now: Instant,
        from: Peer,
        block: BlockId,
        request: &ShareRequest,
        holdings: &impl Holdings,
    ) {
        let Peer { member, address } = from;
        if member == self.config.member {
            return;
        }
        let Some(holding) = holdings.block(block) else { return };
        self.stats.requests_heard += 1;
        self.crowd.on_message(now, member);
        if let Some(watched) = self.watched.get_mut(&block) {
            watched.others_at = Some(now);
        }
        if let (true, Some(missing)) = (self.site_is_first(now), &request.missing)
            && !holding.has_block
        {
            return self.on_named(now, from, (block, &holding), request.lacking, missing);
        }
        let time = |us: u32| Duration::from_micros(us.into());
        self.crowd.on_others(time(request.round_trip_us), time(request.read_us));
        if let Some(own) = self.asking.get_mut(&block) {
            // A request that counts is of use to a member that lacks no more; one that names
            // symbols leads to a member that has the block.
            let patience = self.crowd.patience(request.missing.is_some());
            if request.missing.is_some() || request.lacking >= holding.lacking {
                own.put_off(now + patience + self.crowd.request_wait(&mut self.random));
            }
        }
        // Of requests that cross each other, members with a part of the block answer the one for
        // the fewest symbols. If it is its own, others do.
        let since = now - self.crowd.pause();
        let own = self.asking.get(&block).and_then(|own| own.asked_since(since));
        let is_last = own.is_some_and(|own| (own, self.config.member) < (request.lacking, member));
        let has_part = holding.is_sound && request.missing.is_some() && !is_last;
        let may_answer = holding.has_block || has_part;
        let asker = Asker { address, is_proven: holdings.is_proven(address) };
        if !may_answer || !self.names(now, block, request) || !self.has_room(block, asker) {
            return;
        }
        let part = if holding.has_block { Duration::ZERO } else { self.crowd.pause() };
        let starts_at = now + part + self.crowd.answer_wait(&mut self.random);
        let asked = Asked { at: now, by: member, asker, clock_us: request.clock_us };
        let new = || Answering::new(asked, starts_at, &holding);
        let lacking = request.lacking.min(holding.most_useful());
        let served = self.served.get(&block).copied();
        self.answering.entry(block).or_insert_with(new).add(
            asked,
            lacking,
            request.missing.as_ref(),
            served,
        );
    }

    /// Whether symbols of the block are named, or were of late.
    fn names(&mut self, now: Instant, block: BlockId, request: &ShareRequest) -> bool {
        let is_named = request.missing.is_some()
            || self.named_at.get(&block).is_some_and(|&at| now < at + NAMED_FOR);
        if is_named {
            self.named_at.insert(block, now);
        }
        if self.named_at.len() > MOST_NAMED {
            let first = self.named_at.iter().min_by_key(|&(_, &at)| at).map(|(&block, _)| block);
            first.map(|block| self.named_at.remove(&block));
        }
        is_named
    }

    /// Makes room to answer for a block. False if there is none.
    fn has_room(&mut self, block: BlockId, asker: Asker) -> bool {
        if self.answering.contains_key(&block) {
            return true;
        }
        let is_own = |own: &Answering| own.first_asker() == asker.address;
        if self.answering.values().filter(|own| is_own(own)).count() >= MOST_OF_ADDRESS {
            return false;
        }
        if self.answering.len() >= MOST_ANSWERED {
            let unproven: Vec<BlockId> = self
                .answering
                .iter()
                .filter(|(_, own)| !own.askers().iter().any(|asker| asker.is_proven))
                .map(|(&block, _)| block)
                .collect();
            let at = self.random.below((unproven.len() as u32).max(1)) as usize;
            let Some(&displaced) = unproven.get(at) else { return false };
            self.answering.remove(&displaced);
            self.released.push(displaced);
        }
        true
    }

    /// Whether symbols of a block are taken from others: the session has paused, or does not bring
    /// any of this block. A symbol of the session is worth more, and one that is forged would take
    /// its place.
    pub fn takes(&self, now: Instant, block: BlockId) -> bool {
        let is_left = self.asking.contains_key(&block) || self.resting.contains_key(&block);
        let is_quiet = self.looked_at.is_some() && now >= self.session_at + QUIET_AFTER;
        is_left || is_quiet || self.rounds.contains_key(&block)
    }

    /// Handles a symbol of another member. `is_fresh`: it was of use.
    pub fn on_symbol(&mut self, now: Instant, member: u32, heard: &HeardSymbol) {
        let HeardSymbol { block, esi, symbol_size, has_block, is_fresh, trust, to, echo_us } =
            *heard;
        if member == self.config.member {
            return;
        }
        self.stats.symbols_heard += 1;
        self.crowd.on_message(now, member);
        let asked_at = self.asking.get(&block).and_then(Asking::asked_at);
        if let Some(at) = asked_at.filter(|_| to == self.config.member) {
            // No answer has been under way for longer than since the request.
            let since = Duration::from_micros(micros(now).wrapping_sub(echo_us).into());
            if since <= now.saturating_since(at) {
                self.crowd.on_measured(since);
            }
        }
        if is_fresh {
            self.stats.symbols_used += 1;
            if let Some(watched) = self.watched.get_mut(&block) {
                watched.used = watched.used.saturating_add(1);
            }
        }
        let is_undoubted = matches!(trust, Trust::Proven | Trust::Unknown);
        let helps = has_block && is_fresh && is_undoubted;
        if let Some(round) = self.rounds.get_mut(&block).filter(|_| helps) {
            round.on_helped(now);
        }
        if let Some(watched) = self.watched.get_mut(&block).filter(|_| is_undoubted) {
            watched.others_at = Some(now);
        }
        let pace = self.config.bytes_per_second as f64 / f64::from(symbol_size.max(1));
        let is_trusted = trust == Trust::Proven || trust == Trust::Unknown && is_fresh;
        if is_fresh {
            self.used_at = now;
        }
        if let Some(own) = self.asking.get_mut(&block).filter(|_| is_fresh) {
            own.on_fresh();
        }
        if let Some(own) = self.asking.get_mut(&block).filter(|_| is_trusted) {
            if has_block {
                own.on_claim();
            }
            let answers = has_block && to == self.config.member;
            if let Some(time) = answers.then(|| own.answer_time(now)).flatten() {
                self.crowd.on_read(time);
            }
        }
        let longest = match trust {
            Trust::Proven => Duration::MAX,
            Trust::Unknown if is_fresh => Duration::MAX,
            Trust::Unknown => UNPROVEN_PAUSES * self.crowd.pause(),
            Trust::Doubted | Trust::DoubtedBesideOthers => Duration::ZERO,
        };
        if let Some(own) = self.asking.get_mut(&block) {
            let wait =
                self.crowd.patience(!own.is_held()) + self.crowd.request_wait(&mut self.random);
            own.on_symbol(now, now + wait, pace, longest);
        }
        let is_believed = trust != Trust::DoubtedBesideOthers;
        if let Some(own) = self.answering.get_mut(&block).filter(|_| is_believed) {
            let pauses_at = now + self.crowd.pause() + self.crowd.answer_wait(&mut self.random);
            let has_precedence = member < self.config.member;
            own.on_heard(now, &Overheard { esi, has_block, has_precedence, pace, pauses_at });
        }
    }

    /// A batch of symbols was read, or cannot be. False if it is not needed any more.
    pub fn on_read(&mut self, now: Instant, block: BlockId, batch: u32, is_read: bool) -> bool {
        let Some(answering) = self.answering.get_mut(&block) else { return false };
        let Some(time) = answering.on_read(now, batch, is_read) else { return false };
        if answering.has_block {
            self.crowd.on_read(time);
        }
        true
    }

    /// When to poll next.
    pub fn poll_timeout(&self) -> Instant {
        let look = self.looked_at.map_or(Instant::ZERO, |at| at + LOOK_EVERY);
        let requests = self.asking.values().map(|asking| asking.due);
        let rounds = self.rounds.values().filter_map(Round::due);
        if !self.released.is_empty() || self.lacks.is_some() {
            return Instant::ZERO;
        }
        let answers = self.answering.values().filter_map(|answering| match answering.step() {
            Step::Wait(until) => Some(until),
            Step::Read => Some(Instant::ZERO),
            Step::Send(at) => Some(at.max(self.free_at).max(self.is_free_at(answering))),
            Step::Reading => None,
            Step::End => Some(Instant::ZERO),
        });
        requests.chain(rounds).chain(answers).chain([look]).min().unwrap_or(look)
    }

    /// What is to be done now; `None` if nothing is before [`poll_timeout`](Self::poll_timeout).
    pub fn poll(&mut self, now: Instant, holdings: &impl Holdings) -> Option<ShareOutput> {
        if self.looked_at.is_none_or(|at| now >= at + LOOK_EVERY) {
            self.look(now, holdings);
        }
        if let Some(block) = self.released.pop() {
            return Some(ShareOutput::Release { block });
        }
        if let Some((blocks, symbols)) = self.lacks.take() {
            return Some(ShareOutput::Lacking { blocks, symbols });
        }
        self.poll_round(now, holdings)
            .or_else(|| self.poll_request(now, holdings))
            .or_else(|| self.poll_answer(now, holdings))
    }

    fn request(
        &mut self,
        now: Instant,
        block: BlockId,
        holding: &BlockHolding,
        missing: Option<MissingSymbols>,
    ) -> ShareOutput {
        self.stats.requests_sent += 1;
        let request = ShareRequest {
            clock_us: micros(now),
            round_trip_us: self.crowd.round_trip().as_micros() as u32,
            read_us: self.crowd.read().as_micros() as u32,
            lacking: holding.lacking,
            missing,
        };
        ShareOutput::Ask { block, request }
    }

    /// When the quota allows another symbol of a block.
    fn is_free_at(&self, answering: &Answering) -> Instant {
        self.quota.free_at(answering.askers(), answering.symbol_size.into())
    }

    /// Notes what blocks lack, and decides which of them to ask for.
    fn look(&mut self, now: Instant, holdings: &impl Holdings) {
        let symbols = holdings.session_symbols();
        let has_come = std::mem::replace(&mut self.session_symbols, symbols) != symbols;
        if self.looked_at.replace(now).is_none() || has_come {
            (self.session_at, self.used_at) = (now, now);
        }
        self.crowd.forget(now);
        // Beside a session that brings symbols, a look costs nothing.
        if self.config.turn == SiteTurn::AfterSender && now < self.session_at + GONE_AFTER {
            self.watched.clear();
            self.asking.clear();
            return;
        }
        let blocks = self.blocks_to_look_at(now, holdings);
        let mut watched = BTreeMap::new();
        for (block, lacking) in blocks {
            let before = self.watched.get(&block);
            let has_come = before.is_some_and(|it| it.lacking.saturating_sub(it.used) > lacking);
            if has_come {
                self.session_at = now;
            }
            let session_at = match before {
                Some(before) if !has_come => before.session_at,
                _ => self.session_at,
            };
            let others_at = before.and_then(|before| before.others_at);
            watched.insert(block, Watched { lacking, used: 0, session_at, others_at });
        }
        self.watched = watched;
        self.asking.retain(|block, _| self.watched.contains_key(block));
        if self.config.turn == SiteTurn::BeforeSender && self.looks_at_rounds(now, holdings) {
            return;
        }
        let is_quiet = |at: Instant| now >= at + QUIET_AFTER;
        // Those that were asked for in vain come last.
        let mut blocks: Vec<_> = self.watched.iter().collect();
        blocks.sort_by_key(|(block, _)| self.has_rested(block));
        for (&block, watched) in blocks {
            if self.asking.len() >= MOST_ASKED {
                break;
            }
            let Some(holding) = holdings.block(block) else { continue };
            let rest = self.resting.get(&block);
            if rest.is_some_and(|rest| now < rest.until) {
                continue;
            }
            // The session may not have come to a block of which there is nothing.
            let is_begun = watched.lacking < holding.source_symbols;
            let is_left = is_begun && is_quiet(watched.session_at) || is_quiet(self.session_at);
            if is_left && !self.asking.contains_key(&block) {
                let order = holding.order(watched.lacking);
                let wait = order + self.crowd.request_wait(&mut self.random);
                let rests = rest.map_or(0, |rest| rest.times);
                let mut asking = Asking::new(now, now + wait, rests);
                if let Some(at) = watched.others_at {
                    asking.put_off(at + self.crowd.patience(true) + wait);
                }
                self.asking.insert(block, asking);
            }
        }
        let is_news = self.said_at.is_none_or(|at| at < self.used_at && now >= at + SAY_EVERY);
        let is_vain = |block| self.has_rested(block) && !self.asking.contains_key(block);
        let all_are = !self.watched.is_empty() && self.watched.keys().all(is_vain);
        if all_are && is_news && is_quiet(self.session_at) {
            self.said_at = Some(now);
            let lacking = self.watched.values().map(|it| u64::from(it.lacking));
            self.lacks = Some((self.watched.len() as u32, lacking.sum()));
        }
    }

    /// The next blocks that lack symbols. Those that rest do not keep others from being looked at.
    fn blocks_to_look_at(&mut self, now: Instant, holdings: &impl Holdings) -> Vec<(BlockId, u32)> {
        let mut blocks = holdings.lacking(self.after, MOST_LOOKED_AT);
        if blocks.is_empty() && self.after.is_some() {
            (self.after, self.window_at) = (None, now);
            blocks = holdings.lacking(None, MOST_LOOKED_AT);
        }
        let lacks = |block: &BlockId| holdings.block(*block).is_some_and(|it| it.lacking > 0);
        self.resting.retain(|block, _| lacks(block));
        if self.resting.len() > MOST_RESTING {
            let first = self.resting.iter().min_by_key(|(_, rest)| rest.began);
            let first = first.map(|(&block, _)| block);
            first.map(|block| self.resting.remove(&block));
        }
        let is_part = self.after.is_some() || blocks.len() >= MOST_LOOKED_AT;
        if is_part && blocks.iter().all(|(block, _)| self.has_rested(block)) {
            (self.after, self.window_at) = (blocks.last().map(|&(block, _)| block), now);
        }
        blocks
    }

    /// Whether a block was asked for in vain since it is looked at.
    fn has_rested(&self, block: &BlockId) -> bool {
        self.resting.get(block).is_some_and(|rest| rest.began >= self.window_at)
    }

    fn poll_request(&mut self, now: Instant, holdings: &impl Holdings) -> Option<ShareOutput> {
        let due = self.asking.iter().find(|(_, asking)| asking.due <= now);
        let block = due.map(|(&block, _)| block)?;
        let wait = self.crowd.request_wait(&mut self.random);
        let holding = holdings.block(block).filter(|holding| holding.lacking > 0);
        let (Some(holding), Some(asking)) = (holding, self.asking.get_mut(&block)) else {
            self.asking.remove(&block);
            return None;
        };
        if asking.conclude(&holding) {
            let rest = asking.rest(now, self.watched.len());
            self.asking.remove(&block);
            self.resting.insert(block, rest);
            return Some(ShareOutput::Vain { block });
        }
        let missing = match asking.counts() && holding.makes_fresh {
            true => None,
            false => missing_symbols(block, &holding, asking.named(), holdings),
        };
        let names = missing.is_some();
        asking.on_asked(now, holding.lacking, names, self.crowd.patience(names) + wait);
        Some(self.request(now, block, &holding, missing))
    }

    fn poll_answer(&mut self, now: Instant, holdings: &impl Holdings) -> Option<ShareOutput> {
        let is_due = |own: &Self, answering: &Answering| match answering.step() {
            Step::Wait(until) => until <= now,
            Step::Read | Step::End => true,
            Step::Send(at) => at.max(own.free_at).max(own.is_free_at(answering)) <= now,
            Step::Reading => false,
        };
        loop {
            // The address that has got least comes next, and of its blocks the one that was sent of
            // least recently.
            let due = self.answering.iter().filter(|(_, answering)| is_due(self, answering));
            let due = due.min_by_key(|(block, answering)| {
                (self.quota.least(answering.askers()), answering.sent_at, **block)
            });
            let block = due.map(|(&block, _)| block)?;
            let holding = holdings.block(block);
            let answering = self.answering.get_mut(&block)?;
            let size = holding.map_or(0, |holding| u64::from(holding.symbol_size));
            let (Some(holding), false) = (holding, answering.step() == Step::End) else {
                self.answering.remove(&block);
                return Some(ShareOutput::Release { block });
            };
            match answering.step() {
                Step::Wait(_) => answering.begin(),
                Step::Read => {
                    let esis = self.symbols_to_read(block, &holding, holdings);
                    let answering = self.answering.get_mut(&block)?;
                    if esis.is_empty() {
                        answering.exhaust();
                        continue;
                    }
                    let has_block = holding.has_block;
                    let batch = self.next_batch;
                    self.next_batch = batch.wrapping_add(1);
                    answering.read(now, batch, esis.clone(), has_block);
                    return Some(ShareOutput::Read { block, batch, esis, has_block });
                }
                Step::Send(_) => {
                    if let Some(answer) = self.answer(now, block, size) {
                        return Some(ShareOutput::Answer(answer));
                    }
                }
                Step::Reading | Step::End => return None,
            }
        }
    }

    fn symbols_to_read(
        &mut self,
        block: BlockId,
        holding: &BlockHolding,
        holdings: &impl Holdings,
    ) -> Vec<Esi> {
        let Some(answering) = self.answering.get(&block) else { return Vec::new() };
        let count = answering.batch(holding);
        if holding.has_block && holding.makes_fresh {
            let next = self.fresh.entry(block).or_default();
            let numbers = (0..count).map(|at| next.wrapping_add(at));
            let esis = numbers.map(|number| self.fresh_start.esi(number)).collect();
            *next = next.wrapping_add(count);
            return esis;
        }
        let mut named = answering.named(holding, &mut self.random);
        if !holding.has_block {
            named = holdings.held(block, &named);
        }
        named.truncate(count as usize);
        named
    }

    /// `None` if others have sent all that was read.
    fn answer(&mut self, now: Instant, block: BlockId, size: u64) -> Option<ShareAnswer> {
        let answering = self.answering.get_mut(&block)?;
        let NextSymbol { esi, batch, index } =
            answering.next_symbol(now, self.crowd.round_trip())?;
        let (to, echo_us) = answering.echo(now);
        let has_block = answering.has_block;
        self.quota.on_sent(now, answering.askers(), size);
        self.answered_at = now;
        if !has_block {
            let asker = answering.current_asker();
            self.served.insert(block, asker);
            if self.served.len() > MOST_NAMED {
                self.served.pop_first();
            }
        }
        let time = size.saturating_mul(1_000_000_000) / self.config.bytes_per_second.max(1);
        self.free_at = self.free_at.max(now - DEBT) + Duration::from_nanos(time);
        self.stats.symbols_sent += 1;
        self.stats.bytes_sent += size;
        if let Some(own) = self.asking.get_mut(&block) {
            let wait =
                self.crowd.patience(!own.is_held()) + self.crowd.request_wait(&mut self.random);
            own.put_off(now + wait);
        }
        Some(ShareAnswer { block, esi, batch, index, has_block, to, echo_us })
    }
}

/// What is known of the address that a symbol came from. Any host can send in the name of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Symbols of it were right.
    Proven,
    /// Nothing is known. Symbols that are of no use put requests off for a few pauses, and
    /// what they say of their block is not believed.
    Unknown,
    /// Most of its symbols were wrong, or all blocks that had any of them, as with all others. None
    /// of its symbols puts a request off.
    Doubted,
    /// The same, and others are not doubted. It answers for no other member, either.
    DoubtedBesideOthers,
}

/// A symbol of another member, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeardSymbol {
    /// The block.
    pub block: BlockId,
    /// The symbol.
    pub esi: Esi,
    /// Bytes of a symbol of the block.
    pub symbol_size: u16,
    /// Its sender has all of the block.
    pub has_block: bool,
    /// It was of use.
    pub is_fresh: bool,
    /// What is known of its address.
    pub trust: Trust,
    /// The member whose request it answers.
    pub to: u32,
    /// What it says of that member's clock.
    pub echo_us: u32,
}

/// The symbols to name. Source symbols; every other time those around the repair symbols that it
/// has, since other members may have no source symbols either. Of a block of more source symbols
/// than a map spans, each part in turn.
fn missing_symbols(
    block: BlockId,
    holding: &BlockHolding,
    attempts: u32,
    holdings: &impl Holdings,
) -> Option<MissingSymbols> {
    if attempts % 2 == 1
        && let Some(span) = holdings.repair_span(block)
    {
        let end = span.end.max(span.start.saturating_add(MissingSymbols::MAX_SPAN));
        let missing = holdings.missing(block, span.start..end.min(holding.encoding_symbols));
        if let Some(map) = MissingSymbols::of(missing) {
            return Some(map);
        }
    }
    let from = attempts / 2 % holding.parts() * MissingSymbols::MAX_SPAN;
    let missing = |from| holdings.missing(block, from..holding.source_symbols);
    MissingSymbols::of(missing(from)).or_else(|| MissingSymbols::of(missing(0)))
}

/// A clock in microseconds, which begins again every 71 minutes.
fn micros(now: Instant) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

#[cfg(test)]
mod tests;
