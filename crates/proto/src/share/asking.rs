//! A block that a member asks for, and blocks that rest because asking for them was in vain.

use super::crowd::Heard;
use super::holdings::BlockHolding;
use crate::time::Instant;
use fontana_wire::MissingSymbols;
use std::time::Duration;

/// Longest time from a request to the next one for which requests and symbols of others put it off.
/// Any host can send these. Only a block that is verified is asked for no more.
const LONGEST_PUT_OFF: Duration = Duration::from_secs(2);
/// The same, while symbols of the block arrive as fast as members send, and have for so long: a
/// host that sends few of them puts no request off for longer.
const LONGEST_BESIDE_ANSWERS: Duration = Duration::from_secs(10);
/// The same, beside symbols that come more slowly: those of a host that only seems to answer.
const LONGEST_BESIDE_FEW: Duration = Duration::from_secs(1);
const LEAST_MEASURED: Duration = Duration::from_secs(1);
/// Requests in a row, each of which brought less than half of what it asked for, after which no
/// member is believed to have the block: it has gone, or it never had it.
const LEASE: u32 = 2;
/// Requests that count, in a row.
const MOST_COUNTED: u32 = 2;
/// Requests that count and have brought little, each of which doubles those that name symbols
/// before the next one that counts.
const MOST_DOUBLINGS: u32 = 4;
/// How long a block rests first. Each further round in vain doubles it.
const FIRST_REST: Duration = Duration::from_secs(2);
/// Longest rest, and what each block that lacks symbols adds to it: of many blocks that no member
/// has, each is asked for more rarely.
const LONGEST_REST: Duration = Duration::from_secs(15);
const REST_OF_OTHERS: Duration = Duration::from_millis(250);

/// A block that is asked for until it lacks nothing.
#[derive(Debug)]
pub(super) struct Asking {
    /// When to ask.
    pub(super) due: Instant,
    /// Requests that have brought little, since a member has last said that it has the block.
    /// `None`: no member is believed to have it.
    held: Option<u32>,
    /// Requests in a row that no symbol of use has followed.
    vain: u32,
    /// Requests in a row that brought less than half of what they asked for.
    short: u32,
    /// Requests that named symbols, and those that counted since the last one.
    named: u32,
    counted: u32,
    /// Requests that name symbols before the next one that counts.
    to_name: u32,
    /// Requests that counted, in a row, and have brought little.
    miscounted: u32,
    /// Rounds before this one, since the last symbol of use, that brought nothing.
    rests: u32,
    /// Symbols of use since it has asked.
    brought: u32,
    /// When it has asked last, or begun to wait.
    since: Instant,
    /// When it has asked last, and for how many symbols.
    asked: Option<(Instant, u32)>,
    /// The answer of a member with the block has not begun.
    awaits: bool,
    /// Symbols of others since then.
    heard: Heard,
}

/// A block that is not asked for, because a whole round brought nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) began: Instant,
    pub(super) until: Instant,
    /// Rounds in vain.
    pub(super) times: u32,
}

impl Asking {
    pub(super) fn new(now: Instant, due: Instant, rests: u32) -> Self {
        Self {
            due,
            held: None,
            vain: 0,
            short: 0,
            named: 0,
            counted: 0,
            to_name: 1,
            miscounted: 0,
            rests,
            brought: 0,
            since: now,
            asked: None,
            awaits: false,
            heard: Heard::default(),
        }
    }

    /// Whether a member is believed to have the block.
    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether the next request counts symbols instead of naming them: a member seems to have the
    /// block. The first request names symbols, as do every third one, and ever more of them after
    /// one that counted and brought little: any host can say that it has the block, and members
    /// with a part of it answer names only.
    pub(super) fn counts(&self) -> bool {
        self.is_held() && self.to_name == 0
    }

    /// Requests that named symbols: each names others.
    pub(super) fn named(&self) -> u32 {
        self.named
    }

    /// A member says that it has the block.
    pub(super) fn on_claim(&mut self) {
        self.held = Some(0);
    }

    /// How long a member with the block took to answer, at its first symbol.
    pub(super) fn answer_time(&mut self, now: Instant) -> Option<Duration> {
        let (at, _) = self.asked.filter(|_| std::mem::take(&mut self.awaits))?;
        Some(now.saturating_since(at))
    }

    /// When it has asked last.
    pub(super) fn asked_at(&self) -> Option<Instant> {
        self.asked.map(|(at, _)| at)
    }

    /// The number of symbols that it has asked for since then; `None` if it has not.
    pub(super) fn asked_since(&self, then: Instant) -> Option<u32> {
        self.asked.filter(|&(at, _)| at >= then).map(|(_, lacking)| lacking)
    }

    /// Another member has asked, or answered: wait until it pauses.
    pub(super) fn put_off(&mut self, until: Instant) {
        self.due = self.due.max(until.min(self.since + LONGEST_PUT_OFF));
    }

    /// A symbol of the block has arrived: another's request is answered. For how long that is
    /// believed depends on the host, `longest`, and on whether symbols come as fast as members
    /// send, which is so many in a second.
    pub(super) fn on_symbol(&mut self, now: Instant, until: Instant, pace: f64, longest: Duration) {
        if longest.is_zero() {
            return;
        }
        self.heard.add(now);
        let longest = match self.heard.has_pace(now, pace) {
            true if self.heard.time(now) >= LEAST_MEASURED => LONGEST_BESIDE_ANSWERS,
            true => longest.min(LONGEST_PUT_OFF),
            false => longest.min(LONGEST_BESIDE_FEW),
        };
        self.due = self.due.max(until.min(self.since + longest));
    }

    /// A symbol has arrived that was of use.
    pub(super) fn on_fresh(&mut self) {
        self.brought = self.brought.saturating_add(1);
    }

    /// Notes what the last request has brought. Whether the block is to rest: all that can be asked
    /// for was asked for, and brought little.
    pub(super) fn conclude(&mut self, holding: &BlockHolding) -> bool {
        let Some((_, wanted)) = self.asked else { return false };
        match self.brought {
            // That no member has the block does not say that they lack parts of it.
            0 if self.counted > 0 => {}
            0 => self.vain = self.vain.saturating_add(1),
            _ => (self.vain, self.rests) = (0, 0),
        }
        let is_short = u64::from(self.brought) * 2 < u64::from(wanted);
        if self.counted > 0 {
            self.miscounted = if is_short { self.miscounted.saturating_add(1) } else { 0 };
            if is_short {
                self.to_name = 1 << self.miscounted.min(MOST_DOUBLINGS);
            }
        }
        if is_short {
            self.short = self.short.saturating_add(1);
            self.held = self.held.map(|requests| requests + 1).filter(|&requests| requests < LEASE);
        } else {
            (self.short, self.held) = (0, self.held.map(|_| 0));
        }
        self.brought = 0;
        // Source symbols part by part, and around the repair symbols in turn.
        let round = 2 * holding.parts();
        self.vain >= round || self.short >= 2 * round + LEASE
    }

    /// Its rest, among so many blocks that lack symbols.
    pub(super) fn rest(&self, now: Instant, blocks: usize) -> Rest {
        let longest = LONGEST_REST + REST_OF_OTHERS * blocks as u32;
        let time = FIRST_REST * 2_u32.saturating_pow(self.rests.min(8));
        Rest { began: now, until: now + time.min(longest), times: self.rests.saturating_add(1) }
    }

    /// It asks now.
    pub(super) fn on_asked(&mut self, now: Instant, lacking: u32, names: bool, wait: Duration) {
        self.due = now + wait;
        match names {
            true => {
                (self.named, self.counted) = (self.named.wrapping_add(1), 0);
                self.to_name = self.to_name.saturating_sub(1);
            }
            false => {
                self.counted = self.counted.saturating_add(1);
                self.to_name = u32::from(self.counted >= MOST_COUNTED);
            }
        }
        self.since = now;
        self.heard = Heard::default();
        (self.asked, self.awaits) = (Some((now, lacking)), true);
    }
}

impl BlockHolding {
    /// Maps that name all source symbols of the block.
    pub(super) fn parts(&self) -> u32 {
        self.source_symbols.div_ceil(MissingSymbols::MAX_SPAN).max(1)
    }
}
