//! Receivers that share, in virtual time, and a stranger who sends to their group in any name.

use super::report::BenchError;
use super::world::{
    BLOCK_SYMBOLS, BLOCKS, CONTENT, DiskUse, HonestSession, ReceiverHost, Transfer,
};
use fontana_fec::{Esi, Sbn};
use fontana_proto::memory::append_symbol;
use fontana_proto::share::SiteTurn;
use fontana_proto::{BlockId, Instant, SiteConfig, SplitMix64};
use fontana_wire::{
    MissingSymbols, ShareBody, ShareContent, ShareMessage, ShareRequest, ShareSymbol, SharedBlock,
};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Each member lacks another third of the content, and the site has all of it.
const MEMBERS: u32 = 3;
/// Bytes per second of a member.
const RATE: u64 = 2_500_000;
/// The time in which the stranger sends.
const ATTACK: Duration = Duration::from_secs(10);
/// The time that members have after that.
const LIVENESS: Duration = Duration::from_secs(30);
/// From a host to all others, and between two polls.
const TICK: Duration = Duration::from_millis(1);
/// Messages that a stranger remembers.
const REMEMBERED: usize = 256;

/// Makes the messages of a class.
pub(super) type Make = fn(&mut Stranger) -> Message;

/// A datagram to the group, and the address that it seems to come from.
#[derive(Clone)]
pub(super) struct Message {
    from: IpAddr,
    bytes: Vec<u8>,
}

/// A host that hears all messages, and sends what it likes.
pub(super) struct Stranger {
    random: SplitMix64,
    content: ShareContent,
    symbol_bytes: usize,
    heard: Vec<Message>,
    /// Messages made so far.
    count: u32,
}

impl Stranger {
    fn make(&mut self, make: Make) -> Message {
        self.count = self.count.wrapping_add(1);
        make(self)
    }

    fn hear(&mut self, message: &Message) {
        match self.heard.len() < REMEMBERED {
            true => self.heard.push(message.clone()),
            false => {
                let at = self.random.below(REMEMBERED as u32) as usize;
                self.heard.get_mut(at).into_iter().for_each(|it| it.clone_from(message));
            }
        }
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    fn word(&mut self) -> u32 {
        self.random.next_u64() as u32
    }

    /// The address of a member, its own, or one of 40 others.
    fn address(&mut self) -> IpAddr {
        match self.below(3) {
            0 => address(self.random.below(MEMBERS)),
            1 => address(200),
            _ => address(100 + self.random.below(40)),
        }
    }

    /// A symbol number at an end of what there is, or any.
    fn esi(&mut self) -> u32 {
        let k = BLOCK_SYMBOLS;
        let ends = [0, k - 1, k, 1 << 23, (1 << 24) - 1, 1 << 24, u32::MAX - 1, u32::MAX];
        match self.below(4) {
            0 => ends.get(self.random.below(8) as usize).copied().unwrap_or(k),
            1 => self.below(2 * k),
            _ => (1 << 23) + self.count,
        }
    }

    fn message(&mut self, body: ShareBody<'_>) -> Message {
        let sbn = match self.below(16) {
            0 => self.word(),
            _ => self.below(BLOCKS.into()),
        };
        let block = SharedBlock { toi: CONTENT.0 as u32, sbn };
        let member = self.below(2 * MEMBERS);
        let mut bytes = Vec::new();
        ShareMessage { content: self.content, member, block, body }.emit(&mut bytes);
        Message { from: self.address(), bytes }
    }

    /// One that was heard, or nothing.
    fn again(&mut self) -> Message {
        let at = self.below(self.heard.len().max(1) as u32) as usize;
        let nothing = Message { from: address(200), bytes: Vec::new() };
        self.heard.get(at).cloned().unwrap_or(nothing)
    }
}

/// Symbols of random bytes, with any number and of any length.
pub(super) fn symbols(stranger: &mut Stranger) -> Message {
    let length = match stranger.below(8) {
        0 => stranger.below(2 * stranger.symbol_bytes as u32) as usize,
        _ => stranger.symbol_bytes,
    };
    let bytes: Vec<u8> = (0..length).map(|_| stranger.random.next_u64() as u8).collect();
    let (has_block, to) = (stranger.below(2) == 0, stranger.below(MEMBERS + 1));
    let (echo_us, esi) = (stranger.word(), stranger.esi());
    let symbol = ShareSymbol { has_block, to, echo_us, esi, bytes: &bytes };
    stranger.message(ShareBody::Symbol(symbol))
}

/// Requests for any number of symbols, also for all.
pub(super) fn requests(stranger: &mut Stranger) -> Message {
    let missing = match stranger.below(3) {
        0 => None,
        1 => MissingSymbols::of(0..BLOCK_SYMBOLS),
        _ => {
            let first = stranger.esi().min(1 << 24);
            let span = 1 + stranger.below(2_000);
            MissingSymbols::of(first..first.saturating_add(span))
        }
    };
    let lacking = match stranger.below(3) {
        0 => u32::MAX,
        1 => BLOCK_SYMBOLS,
        _ => 1 + stranger.below(8),
    };
    let [clock_us, round_trip_us, read_us] = [(); 3].map(|()| stranger.word());
    let request = ShareRequest { clock_us, round_trip_us, read_us, lacking, missing };
    stranger.message(ShareBody::Request(request))
}

/// Messages of members: again, with other bits, and cut off; from any address.
pub(super) fn changed_messages(stranger: &mut Stranger) -> Message {
    let mut message = stranger.again();
    match stranger.below(3) {
        0 => {}
        1 => {
            for _ in 0..=stranger.below(8) {
                let at = stranger.below(message.bytes.len().max(1) as u32) as usize;
                let bit = 1 << stranger.below(8);
                message.bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
            }
        }
        _ => message.bytes.truncate(stranger.below(message.bytes.len() as u32 + 1) as usize),
    }
    if stranger.below(2) == 0 {
        message.from = stranger.address();
    }
    message
}

struct Site<'a> {
    session: &'a HonestSession,
    members: Vec<ReceiverHost>,
    stranger: Stranger,
    now: Instant,
    /// Messages on their way, and the member that has sent each.
    under_way: Vec<(Message, Option<usize>)>,
    /// Symbols that members have sent.
    symbols: u64,
}

/// A site whose members complete each other, beside a stranger that sends so many messages in ten
/// seconds, or none.
pub(super) fn run(
    session: &HonestSession,
    memory: usize,
    attack: Option<(Make, u32)>,
) -> Result<Transfer, BenchError> {
    let mut site = Site::new(session, memory)?;
    let (attack_ticks, ticks) = (in_ticks(ATTACK), in_ticks(ATTACK + LIVENESS));
    let mut hostile = 0;
    for tick in 0..ticks {
        if let Some((make, variants)) = attack.filter(|_| tick < attack_ticks) {
            let due = u64::from(variants) * (tick + 1) / attack_ticks;
            while hostile < due {
                let message = site.stranger.make(make);
                site.under_way.push((message, None));
                hostile += 1;
            }
        } else if site.is_complete() {
            break;
        }
        site.pass(TICK)?;
    }
    let is_exact =
        site.is_complete() && site.members.iter().all(|member| session.has_arrived(member));
    let log_bytes = site.members.iter().map(|member| member.log_bytes).max().unwrap_or(0);
    Ok(Transfer { sent: site.symbols, hostile, is_exact, log_bytes, disk: DiskUse::default() })
}

fn in_ticks(time: Duration) -> u64 {
    (time.as_millis() / TICK.as_millis()) as u64
}

fn address(host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0A00_0101 + host))
}

impl<'a> Site<'a> {
    fn new(session: &'a HonestSession, memory: usize) -> Result<Self, BenchError> {
        let content = session.manifest_hash().into();
        let symbol_bytes = super::world::SYMBOL_BYTES.into();
        let random = SplitMix64::new(session.seed(), 301);
        let stranger = Stranger { random, content, symbol_bytes, heard: Vec::new(), count: 0 };
        let mut site = Self {
            session,
            members: Vec::new(),
            stranger,
            now: Instant::ZERO,
            under_way: Vec::new(),
            symbols: 0,
        };
        for place in 0..MEMBERS {
            let member = site.member(place, memory)?;
            site.members.push(member);
        }
        Ok(site)
    }

    /// A member that has two of three source symbols.
    fn member(&self, place: u32, memory: usize) -> Result<ReceiverHost, BenchError> {
        let config = SiteConfig {
            seed: u64::from(place) + 1,
            member: place,
            bytes_per_second: RATE,
            stays: ATTACK,
            stays_beside_sender: ATTACK,
            turn: SiteTurn::BesideSession,
        };
        let mut host = self.session.member(memory, config)?;
        for sbn in 0..BLOCKS {
            let block = BlockId { toi: CONTENT, sbn: Sbn(sbn.into()) };
            let encoded = self.session.content().encode(block);
            let encoded = encoded.ok_or(BenchError("a block is not there"))?;
            for esi in (0..BLOCK_SYMBOLS).filter(|esi| esi % MEMBERS != place) {
                let mut symbol = Vec::new();
                append_symbol(&encoded, Esi(esi), &mut symbol);
                host.pull(self.now, block, Esi(esi), &symbol)?;
            }
        }
        Ok(host)
    }

    fn is_complete(&self) -> bool {
        self.members.iter().all(ReceiverHost::is_complete)
    }

    /// Time passes: messages arrive, and members send.
    fn pass(&mut self, time: Duration) -> Result<(), BenchError> {
        self.now = self.now + time;
        for (message, by) in std::mem::take(&mut self.under_way) {
            for (place, member) in self.members.iter_mut().enumerate() {
                if Some(place) != by {
                    member.handle_message(self.now, message.from, &message.bytes)?;
                }
            }
        }
        for (place, member) in self.members.iter_mut().enumerate() {
            member.handle_timeout(self.now)?;
            for bytes in std::mem::take(&mut member.sent) {
                let is_symbol = ShareMessage::parse(&bytes)
                    .is_ok_and(|message| matches!(message.body, ShareBody::Symbol(_)));
                self.symbols += u64::from(is_symbol);
                let message = Message { from: address(place as u32), bytes };
                self.stranger.hear(&message);
                self.under_way.push((message, Some(place)));
            }
        }
        Ok(())
    }
}
