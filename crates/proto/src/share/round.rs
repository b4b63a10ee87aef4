//! A block while the sender waits for requests: what the members of a site lack of it, which one
//! completes it, and what that one asks the sender for.
//!
//! Members name what they lack, all in the same short time. The one that lacks least is the block's
//! *agent*. Each other member sends it those symbols that fall to that member; what all have named,
//! none of them has, and the agent asks the sender for as many symbols. When it has the block, it
//! sends as many fresh symbols as any of the others lacked. So the sender repairs what the site as
//! a whole lacks, and the site sends about as much as two of its members lack.
//!
//! Nothing of this is needed to complete: a member that the site does not complete in time asks the
//! sender itself.

use super::holdings::BlockHolding;
use crate::time::Instant;
use fontana_wire::MissingSymbols;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Members that name what they lack, at most: those that have heard as many say nothing. A map has
/// 1.3 kB, and a block six of them at most.
const MOST_DECLARED: usize = 32;
/// Time in which they do so, and until all of them are heard: of busy hosts one after the other,
/// with such gaps, and within so long.
const DECLARED_WITHIN: Duration = Duration::from_millis(10);
const HEARD_WITHIN: Duration = Duration::from_millis(30);
const GAP: Duration = Duration::from_millis(20);
const HEARD_LATEST: Duration = Duration::from_millis(120);
/// How long a member waits for the agent, and an agent for what completes the block.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it waits after a symbol of a member with the block.
const PAUSE: Duration = Duration::from_millis(60);
/// How long the rounds of a block take together, at most: any host can say that it has the block.
const LONGEST: Duration = Duration::from_secs(5);

/// What another member lacks.
#[derive(Debug)]
struct Declared {
    address: IpAddr,
    lacking: u32,
    /// By the part that each names.
    missing: BTreeMap<u32, MissingSymbols>,
}

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It names what it lacks when this is due, in parts of which it has named so many.
    Open { declared: u32 },
    /// It completes the block, and asks the sender for so many symbols.
    Agent { asks: u32 },
    /// Another member completes the block. `is_helped`: one sends fresh symbols.
    Waits { is_helped: bool },
    /// It asks the sender for what it lacks.
    Over,
}

/// A round.
#[derive(Debug)]
pub(super) struct Round {
    phase: Phase,
    began: Instant,
    /// When its phase ends.
    due: Instant,
    others: BTreeMap<u32, Declared>,
    /// The sender is asked at this time in any case.
    latest: Instant,
}

/// What is to be done at the end of a phase.
#[derive(Debug)]
pub(super) enum Turn {
    /// Name this part of what it lacks.
    Declare(Option<MissingSymbols>),
    /// Send these symbols to the agent.
    Send { agent: u32, address: IpAddr, named: Vec<MissingSymbols>, count: u32 },
    /// Ask the sender.
    Sender,
    /// Nothing.
    Wait,
}

impl Round {
    /// A round that begins now. `part`, from 0 to 1: when it names what it lacks.
    pub(super) fn new(now: Instant, part: f64) -> Self {
        let (phase, others) = (Phase::Open { declared: 0 }, BTreeMap::new());
        let (due, latest) = (now + DECLARED_WITHIN.mul_f64(part), now + LONGEST);
        Self { phase, began: now, due, others, latest }
    }

    /// A round of a block of which no fresh symbols can be made: the sender is asked for it.
    pub(super) fn of_sender(now: Instant) -> Self {
        let (phase, others) = (Phase::Waits { is_helped: false }, BTreeMap::new());
        Self { phase, began: now, due: now, others, latest: now }
    }

    /// The one after it, if there is another.
    pub(super) fn again(&self, now: Instant, part: f64) -> Option<Self> {
        let is_helped = self.phase == Phase::Waits { is_helped: true };
        (is_helped && now < self.latest)
            .then(|| Self { latest: self.latest, ..Self::new(now, part) })
    }

    /// When to [act](Self::act); `None` if its end is open.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.phase != Phase::Over).then_some(self.due)
    }

    /// Symbols that may be asked of the sender.
    pub(super) fn asks_sender(&self) -> u32 {
        match self.phase {
            Phase::Open { .. } | Phase::Waits { .. } => 0,
            Phase::Agent { asks } => asks,
            Phase::Over => u32::MAX,
        }
    }

    pub(super) fn is_agent(&self) -> bool {
        matches!(self.phase, Phase::Agent { .. })
    }

    /// The most that another member lacked, and that member.
    pub(super) fn largest_need(&self) -> Option<(u32, IpAddr, u32)> {
        let need = |(&member, other): (&u32, &Declared)| (other.lacking, other.address, member);
        self.others.iter().map(need).max_by_key(|&(lacking, _, member)| (lacking, member))
    }

    /// Another member has named what it lacks.
    pub(super) fn on_declared(
        &mut self,
        now: Instant,
        member: u32,
        address: IpAddr,
        lacking: u32,
        (missing, source_symbols): (&MissingSymbols, u32),
    ) {
        let is_open = matches!(self.phase, Phase::Open { .. });
        let has_room = self.others.len() < MOST_DECLARED || self.others.contains_key(&member);
        let declared = self.phase == Phase::Open { declared: parts(source_symbols) };
        if declared && !self.others.contains_key(&member) {
            self.due = self.due.max((now + GAP).min(self.began + HEARD_LATEST));
        }
        if is_open && has_room && missing.first() < source_symbols {
            let new = || Declared { address, lacking, missing: BTreeMap::new() };
            let other = self.others.entry(member).or_insert_with(new);
            other.lacking = lacking;
            other.missing.insert(part(missing.first()), missing.clone());
        }
    }

    /// A member with the block has sent a symbol of it.
    pub(super) fn on_helped(&mut self, now: Instant) {
        if self.phase != Phase::Over {
            let due = (now + PAUSE).min(self.latest.max(now));
            (self.phase, self.due) = (Phase::Waits { is_helped: true }, due);
        }
    }

    /// The block is not there yet.
    pub(super) fn wait(&mut self, now: Instant) {
        self.due = now + PAUSE;
    }

    /// Acts when it is due. `own`: the member's number, what it lacks, and the symbols by which it
    /// names that.
    pub(super) fn act(&mut self, now: Instant, own: (u32, &BlockHolding, &BTreeSet<u32>)) -> Turn {
        match self.phase {
            Phase::Open { declared } if declared < parts(own.1.source_symbols) => {
                let is_heard = self.others.len() >= MOST_DECLARED;
                let first = declared * MissingSymbols::MAX_SPAN;
                let map = own.2.range(first..first.saturating_add(MissingSymbols::MAX_SPAN));
                let map = MissingSymbols::of(map.copied()).filter(|_| !is_heard);
                self.phase = Phase::Open { declared: declared.saturating_add(1) };
                if declared + 1 == parts(own.1.source_symbols) {
                    self.due = self.began.max(now - DECLARED_WITHIN) + HEARD_WITHIN;
                }
                Turn::Declare(map)
            }
            Phase::Open { .. } => self.close(now, own),
            Phase::Agent { .. } | Phase::Waits { .. } => {
                self.phase = Phase::Over;
                Turn::Sender
            }
            Phase::Over => Turn::Wait,
        }
    }

    fn close(
        &mut self,
        now: Instant,
        (member, holding, missing): (u32, &BlockHolding, &BTreeSet<u32>),
    ) -> Turn {
        self.due = now + PATIENCE;
        let first = self.others.iter().map(|(&by, other)| (other.lacking, by)).min();
        let Some(first) = first else {
            // No other member lacks it, or hears.
            self.phase = Phase::Over;
            return Turn::Sender;
        };
        if (holding.lacking, member) < first {
            let is_nowhere = |esi: &&u32| self.others.values().all(|other| other.lacks(**esi));
            let elsewhere = missing.len() - missing.iter().filter(is_nowhere).count();
            let asks = holding.lacking.saturating_sub(elsewhere as u32);
            self.phase = Phase::Agent { asks };
            return if asks > 0 { Turn::Sender } else { Turn::Wait };
        }
        self.phase = Phase::Waits { is_helped: false };
        let (_, agent) = first;
        let Some(Declared { address, missing: of_agent, .. }) = self.others.get(&agent) else {
            return Turn::Wait;
        };
        let others = || self.others.iter().filter(|&(&by, _)| by != agent);
        let falls_to_own = |esi: &u32| {
            let others = others().filter(|(_, other)| !other.lacks(*esi));
            let best = others.map(|(&by, _)| rank(*esi, by)).max();
            !missing.contains(esi) && best.is_none_or(|best| best < rank(*esi, member))
        };
        let of_agent = of_agent.values().flat_map(MissingSymbols::symbols);
        let own: Vec<u32> = of_agent.filter(falls_to_own).collect();
        let (address, count) = (*address, own.len() as u32);
        if count == 0 {
            return Turn::Wait;
        }
        let named = own.chunk_by(|a, b| part(*a) == part(*b));
        let named = named.filter_map(|part| MissingSymbols::of(part.iter().copied())).collect();
        Turn::Send { agent, address, named, count }
    }
}

impl Declared {
    fn lacks(&self, esi: u32) -> bool {
        self.missing.get(&part(esi)).is_some_and(|map| map.contains(esi))
    }
}

/// Maps that name all source symbols of a block.
fn parts(source_symbols: u32) -> u32 {
    source_symbols.div_ceil(MissingSymbols::MAX_SPAN)
}

/// The map that a source symbol is named in.
fn part(esi: u32) -> u32 {
    esi / MissingSymbols::MAX_SPAN
}

/// All members put those that have a symbol in the same order, which is another one for each
/// symbol.
fn rank(esi: u32, member: u32) -> (u32, u32) {
    let mixed = (u64::from(esi) << 32 | u64::from(member)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed >> 32) as u32, member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const AT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn holding(lacking: u32) -> BlockHolding {
        BlockHolding {
            was_corrupt: false,
            has_block: false,
            is_sound: true,
            lacking,
            source_symbols: 100,
            encoding_symbols: 1_000,
            symbol_size: 10,
            makes_fresh: true,
        }
    }

    /// What the members of a site do that lack these symbols and three more each.
    fn turns(lacking: &[&[u32]]) -> Vec<Turn> {
        let declare = |&member: &u32| {
            let mut round = Round::new(Instant::ZERO, 0.5);
            let own: BTreeSet<u32> = lacking[member as usize].iter().copied().collect();
            let held = holding(own.len() as u32 + 3);
            let declared = round.act(round.due, (member, &held, &own));
            assert!(matches!(declared, Turn::Declare(Some(_))));
            for (other, missing) in (0_u32..).zip(lacking).filter(|&(other, _)| other != member) {
                let map = MissingSymbols::of(missing.iter().copied()).unwrap();
                let now = round.began;
                round.on_declared(now, other, AT, missing.len() as u32 + 3, (&map, 100));
            }
            (round.act(round.due, (member, &held, &own)), round)
        };
        let members: Vec<u32> = (0..lacking.len() as u32).collect();
        let all: Vec<_> = members.iter().map(declare).collect();
        let agents: Vec<u32> = all.iter().map(|(_, round)| round.asks_sender()).collect();
        // Symbol 1 and the surplus.
        assert_eq!(agents, [0, 4, 0, 0]);
        all.into_iter().map(|(turn, _)| turn).collect()
    }

    #[test]
    fn the_sender_is_asked_for_what_no_member_has_and_each_other_symbol_is_sent_once() {
        let turns = turns(&[&[1, 2, 3, 4], &[1, 5, 6], &[1, 7, 8, 9, 10], &[1, 5, 11, 12]]);
        let mut sent = Vec::new();
        for (member, turn) in (0..).zip(&turns) {
            match turn {
                Turn::Sender => assert_eq!(member, 1),
                Turn::Send { agent: 1, named, count, .. } => {
                    let all = named.iter().map(|map| map.symbols().count()).sum::<usize>();
                    assert_eq!(all, *count as usize);
                    sent.extend(named.iter().flat_map(MissingSymbols::symbols));
                }
                Turn::Wait => {}
                turn => panic!("{turn:?}"),
            }
        }
        sent.sort_unstable();
        assert_eq!(sent, [5, 6]);
    }

    #[test]
    fn a_member_that_no_other_helps_asks_the_sender_itself() {
        let own = BTreeSet::from([1, 2]);
        let held = holding(5);
        let mut alone = Round::new(Instant::ZERO, 0.0);
        assert!(matches!(alone.act(Instant::ZERO, (1, &held, &own)), Turn::Declare(Some(_))));
        assert_eq!(alone.asks_sender(), 0);
        assert!(matches!(alone.act(Instant::ZERO + HEARD_WITHIN, (1, &held, &own)), Turn::Sender));
        assert_eq!((alone.asks_sender(), alone.due()), (u32::MAX, None));

        // An agent that does nothing: any host can say that it lacks least.
        let mut waits = Round::new(Instant::ZERO, 0.0);
        let _ = waits.act(Instant::ZERO, (1, &held, &own));
        waits.on_declared(Instant::ZERO, 9, AT, 1, (&MissingSymbols::of([1]).unwrap(), 100));
        let closed = Instant::ZERO + HEARD_WITHIN;
        assert!(matches!(waits.act(closed, (1, &held, &own)), Turn::Wait));
        assert_eq!((waits.asks_sender(), waits.due()), (0, Some(closed + PATIENCE)));
        assert!(waits.again(closed + PATIENCE, 0.0).is_none(), "none has helped");
        assert!(matches!(waits.act(closed + PATIENCE, (1, &held, &own)), Turn::Sender));
    }

    #[test]
    fn fresh_symbols_begin_another_round_for_five_seconds() {
        let (own, held) = (BTreeSet::from([1, 2]), holding(5));
        let mut round = Round::new(Instant::ZERO, 0.0);
        let mut now = Instant::ZERO;
        while round.asks_sender() == 0 {
            // A host says again and again that it has the block.
            round.on_helped(now);
            now = round.due().unwrap();
            match round.again(now, 0.0) {
                Some(next) => round = next,
                None => assert!(matches!(round.act(now, (1, &held, &own)), Turn::Sender)),
            }
        }
        assert_eq!(now, Instant::ZERO + LONGEST);
    }
}
