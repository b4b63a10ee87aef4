//! A block that a member answers for.

use super::crowd::Heard;
use super::holdings::BlockHolding;
use super::quota::Asker;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_fec::Esi;
use fontana_wire::MissingSymbols;
use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Most symbols that are read at a time.
const BATCH: u32 = 512;
/// Most bytes that are read at a time.
const BATCH_BYTES: u32 = 512 << 10;
/// Maps of named symbols of a block that are kept. They stay as they came: to take them apart would
/// cost more than to send them.
const MOST_MAPS: usize = 2;
/// Longest time for which an answer is put off for those of others. Anyone can send these.
const LONGEST_PUT_OFF: Duration = Duration::from_secs(5);
/// Others that are [slow](Heard::has_pace) for so long are not waited for.
const LEAST_MEASURED: Duration = Duration::from_millis(200);

/// Addresses that a block is answered to at a time. More of them share the parts of these.
const MOST_ASKERS: usize = 32;

/// A request: when it has arrived, of which member, and that member's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) at: Instant,
    pub(super) by: u32,
    pub(super) asker: Asker,
    pub(super) clock_us: u32,
}

/// A symbol of the block that another member has sent.
pub(super) struct Overheard {
    pub(super) esi: Esi,
    pub(super) has_block: bool,
    /// The member has a lower number.
    pub(super) has_precedence: bool,
    /// Symbols per second that this member sends at most.
    pub(super) pace: f64,
    /// When the member pauses, if no further symbol comes.
    pub(super) pauses_at: Instant,
}

/// Symbols that were read together.
#[derive(Debug)]
struct Batch {
    number: u32,
    esis: Vec<Esi>,
    /// The next one to send.
    next: usize,
}

/// A symbol to send: its batch, and its place there.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextSymbol {
    pub(super) esi: Esi,
    pub(super) batch: u32,
    pub(super) index: usize,
}

/// A block that others lack symbols of.
#[derive(Debug)]
pub(super) struct Answering {
    /// Symbols that are still to be sent, by whichever member.
    due: u32,
    /// Those that were named, and that it has not heard since, as they were named.
    named: VecDeque<MissingSymbols>,
    /// The request that is answered.
    asked: Asked,
    /// Who has asked, the first one first. Each symbol counts for all of them.
    askers: Vec<Asker>,
    /// Bytes of a symbol.
    pub(super) symbol_size: u16,
    /// When it begins, or goes on: until then it leaves the block to others.
    waits_until: Option<Instant>,
    /// It has sent a symbol, and not left the rest to another member since.
    has_begun: bool,
    /// Until when it listens after its first symbol: others may have begun, too.
    listens_until: Instant,
    /// What others have answered.
    others: Heard,
    /// Fresh symbols of others that may not be symbols: they count when others keep pace.
    claimed: u32,
    /// The symbols that were read, in the order in which they are sent.
    batches: VecDeque<Batch>,
    /// The batch that is being read, and since when.
    reading: Option<(Batch, Instant)>,
    /// It has no more symbols of use.
    is_exhausted: bool,
    /// These symbols fall to this member: it does not leave them to others.
    is_in_round: bool,
    /// All of the block was there when symbols were last read, or else when it was asked for.
    pub(super) has_block: bool,
    /// When the last symbol was sent.
    pub(super) sent_at: Instant,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wait(Instant),
    /// Read more symbols.
    Read,
    /// Wait until they are read.
    Reading,
    /// Send a symbol, then or later.
    Send(Instant),
    /// Nothing is left to send.
    End,
}

impl Answering {
    pub(super) fn new(asked: Asked, starts_at: Instant, holding: &BlockHolding) -> Self {
        let BlockHolding { has_block, symbol_size, .. } = *holding;
        Self {
            askers: vec![asked.asker],
            symbol_size,
            due: 0,
            named: VecDeque::new(),
            asked,
            waits_until: Some(starts_at),
            has_begun: false,
            listens_until: asked.at,
            others: Heard::default(),
            claimed: 0,
            batches: VecDeque::new(),
            reading: None,
            is_exhausted: false,
            is_in_round: false,
            has_block,
            sent_at: asked.at,
        }
    }

    /// The same, of symbols that fall to this member.
    pub(super) fn in_round(self) -> Self {
        Self { is_in_round: true, waits_until: None, ..self }
    }

    /// These symbols are named as well.
    pub(super) fn name(&mut self, map: &MissingSymbols) {
        self.named.push_back(map.clone());
    }

    /// Who has asked.
    pub(super) fn askers(&self) -> &[Asker] {
        &self.askers
    }

    /// The address that was the first to ask.
    pub(super) fn first_asker(&self) -> IpAddr {
        self.askers.first().unwrap_or(&self.asked.asker).address
    }

    /// The address whose request is answered.
    pub(super) fn current_asker(&self) -> IpAddr {
        self.asked.asker.address
    }

    /// Another request. Members with a part of the block answer one request at a time: of those
    /// that cross each other, the one that lacks least, unless its address was `served` last: a
    /// host that always asks for one symbol does not keep others from being answered.
    pub(super) fn add(
        &mut self,
        asked: Asked,
        lacking: u32,
        missing: Option<&MissingSymbols>,
        served: Option<IpAddr>,
    ) {
        let asker = asked.asker;
        let has_room = self.askers.len() < MOST_ASKERS;
        match self.askers.iter_mut().find(|other| other.address == asker.address) {
            Some(other) => *other = asker,
            None if has_room => self.askers.push(asker),
            None => {}
        }
        if !self.has_block && self.due > 0 {
            let was_served = |asked: &Asked| Some(asked.asker.address) == served;
            let is_less = (was_served(&asked), lacking, asked.by)
                < (was_served(&self.asked), self.due, self.asked.by);
            if self.waits_until.is_none() || !is_less {
                return;
            }
            self.due = 0;
            self.named.clear();
            self.asked = asked;
        }
        self.due = self.due.max(lacking);
        if let Some(missing) = missing {
            self.named.truncate(MOST_MAPS - 1);
            self.named.push_front(missing.clone());
            self.is_exhausted = false;
        }
    }

    pub(super) fn step(&self) -> Step {
        let left = self.batches.iter().map(|batch| batch.esis.len() - batch.next).sum::<usize>();
        let last = self.batches.back().map_or(0, |batch| batch.esis.len());
        // The next symbols are read while the last ones are sent.
        let reads = !self.is_exhausted && 2 * left <= last && self.due as usize > left;
        match self.waits_until {
            _ if self.due == 0 && self.reading.is_none() => Step::End,
            Some(until) => Step::Wait(until),
            None if self.reading.is_none() && reads => Step::Read,
            None if left > 0 => Step::Send(self.listens_until),
            None if self.reading.is_some() => Step::Reading,
            None => Step::End,
        }
    }

    fn remove_named(&mut self, esi: Esi) -> bool {
        let mut was_named = false;
        for map in &mut self.named {
            was_named |= map.remove(esi.0);
        }
        was_named
    }

    /// It need not wait any more.
    pub(super) fn begin(&mut self) {
        self.waits_until = None;
    }

    fn leave(&mut self, until: Instant) {
        (self.waits_until, self.has_begun) = (Some(until), false);
        self.batches.clear();
    }

    /// Another member has sent a symbol of the block. A member that has not begun leaves the rest
    /// to that one until it pauses. Of several that have begun, the one with the lowest number goes
    /// on.
    pub(super) fn on_heard(&mut self, now: Instant, heard: &Overheard) {
        let was_named = self.remove_named(heard.esi);
        // Fresh symbols are of use to all who ask; others, to those who have named them.
        self.due = self.due.saturating_sub(was_named.into());
        let is_better = heard.has_block || !self.has_block;
        if !is_better || self.is_in_round {
            return;
        }
        self.others.add(now);
        let has_pace = self.others.has_pace(now, heard.pace);
        // A slow one, or a host that only says that it answers, is not waited for, and leaves as
        // much to be sent.
        let is_slow = !has_pace && self.others.time(now) > LEAST_MEASURED;
        self.claimed = self.claimed.saturating_add((heard.has_block && !was_named).into());
        if has_pace {
            self.due = self.due.saturating_sub(std::mem::take(&mut self.claimed));
        }
        // One with all of the block is of use to more members than one with a part.
        let is_preferred = heard.has_block && !self.has_block;
        let gives_way = (is_preferred || heard.has_precedence || !self.has_begun) && !is_slow;
        if gives_way && now < self.asked.at + LONGEST_PUT_OFF {
            let until = self.waits_until.unwrap_or(heard.pauses_at).max(heard.pauses_at);
            self.leave(until);
        }
    }

    /// Number of symbols to read next.
    pub(super) fn batch(&self, holding: &BlockHolding) -> u32 {
        let by_bytes = BATCH_BYTES / u32::from(holding.symbol_size).max(1);
        self.due.min(BATCH).min(by_bytes.max(1))
    }

    /// The symbols to read next of those that were named, in random order: members that answer at
    /// the same time send different ones, and do not fall into step.
    pub(super) fn named(&self, holding: &BlockHolding, random: &mut SplitMix64) -> Vec<Esi> {
        let end = match holding.has_block {
            true => holding.source_symbols,
            false => holding.encoding_symbols,
        };
        let prepared: BTreeSet<Esi> =
            self.batches.iter().flat_map(|batch| batch.esis.iter().copied()).collect();
        let named: BTreeSet<Esi> =
            self.named.iter().flat_map(|map| map.symbols().map(Esi)).collect();
        let is_left = |esi: &Esi| esi.0 < end && !prepared.contains(esi);
        let mut esis: Vec<Esi> = named.into_iter().filter(is_left).collect();
        for last in (1..esis.len()).rev() {
            esis.swap(last, random.below(last as u32 + 1) as usize);
        }
        esis
    }

    /// These symbols are being read, as the batch of this number.
    pub(super) fn read(&mut self, now: Instant, number: u32, esis: Vec<Esi>, has_block: bool) {
        self.reading = Some((Batch { number, esis, next: 0 }, now));
        self.has_block = has_block;
    }

    /// No symbol of use can be read.
    pub(super) fn exhaust(&mut self) {
        self.is_exhausted = true;
    }

    /// A batch was read, or cannot be. Returns the time that it took, if it is of use.
    pub(super) fn on_read(&mut self, now: Instant, number: u32, is_read: bool) -> Option<Duration> {
        let (batch, since) = self.reading.take_if(|(batch, _)| batch.number == number)?;
        self.is_exhausted |= !is_read;
        if !is_read || self.waits_until.is_some() {
            return None;
        }
        self.batches.push_back(batch);
        Some(now.saturating_since(since))
    }

    /// The next symbol that no other member has sent meanwhile. After the first one it listens for
    /// `round_trip`.
    pub(super) fn next_symbol(&mut self, now: Instant, round_trip: Duration) -> Option<NextSymbol> {
        while let Some(batch) = self.batches.front_mut() {
            let Some(&esi) = batch.esis.get(batch.next) else {
                self.batches.pop_front();
                continue;
            };
            let next = NextSymbol { esi, batch: batch.number, index: batch.next };
            batch.next += 1;
            if !self.remove_named(esi) && !self.has_block {
                continue;
            }
            if !std::mem::replace(&mut self.has_begun, true) && !self.is_in_round {
                self.listens_until = now + round_trip;
            }
            self.due = self.due.saturating_sub(1);
            self.sent_at = now;
            return Some(next);
        }
        None
    }

    /// The member to answer to, its clock, and the time since it has asked.
    pub(super) fn echo(&self, now: Instant) -> (u32, u32) {
        let Asked { at, by, clock_us, .. } = self.asked;
        (by, clock_us.wrapping_add(now.saturating_since(at).as_micros() as u32))
    }
}
