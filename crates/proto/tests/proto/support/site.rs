//! Receivers of one site that share, in virtual time, and strangers among them, who may send in any
//! name. Receivers, members and messages are the real ones; the network is a queue.

use super::world::{Content, ReceiverDriver, T, receiver_config, source};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Intermediate, Sbn};
use fontana_proto::memory::{MemoryContent, append_symbol};
use fontana_proto::share::SiteTurn;
use fontana_proto::share::{MemberKeys, ShareOpener};
use fontana_proto::{BlockId, Destination, Endpoint, Instant, SessionKey, SiteConfig, SplitMix64};
use fontana_wire::{
    MemberId, PacketSeal, SealNonce, SealedShare, ShareBody, ShareContent, ShareMessage,
    ShareRequest, ShareSymbol, SharedBlock, TAG_BYTES, Toi, Tsi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

/// The number of a host that is no member.
pub(crate) const STRANGER: u8 = 200;
/// The port that members send from.
const PORT: u16 = 7_702;
/// Bytes per second of a member, unless a test says otherwise.
const RATE: u64 = 250_000;
/// From a member to all others.
const DELAY: Duration = Duration::from_micros(300);
/// How long a complete member stays, unless a test says otherwise: until all have everything.
const STAYS: Duration = Duration::from_secs(3_600);
/// Least time between two polls of a member.
const TICK: Duration = Duration::from_micros(200);

/// A member.
pub(crate) struct Member {
    pub(crate) driver: ReceiverDriver,
    /// What it had when it joined.
    joined_with: BTreeSet<(BlockId, u32)>,
    /// At a site with a key.
    opener: Option<ShareOpener<SiteKey>>,
    /// Messages that it has sent.
    sent: u64,
}

/// The key of a site, and of one member there. As good as one, as long as no stranger computes
/// with this type: the tag is a sum, and the text is masked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiteKey(pub(crate) u64);

impl SiteKey {
    /// A message, sealed as of the member of a place.
    pub(crate) fn seal(self, place: usize, counter: u64, datagram: &[u8]) -> Vec<u8> {
        let message = ShareMessage::parse(datagram).unwrap();
        let (content, member) = (message.content, member_id(place));
        let mut sealed = Vec::new();
        let cipher = self.cipher(content, member);
        SealedShare { content, member, counter }.emit(&message, &cipher, &mut sealed);
        sealed
    }

    fn mask(self, nonce: SealNonce, text: &mut [u8]) {
        let [.., a, b, c, d] = nonce;
        let mut random = SplitMix64::new(self.0, u32::from_be_bytes([a, b, c, d]).into());
        for word in text.chunks_mut(8) {
            word.iter_mut().zip(random.next_u64().to_be_bytes()).for_each(|(to, it)| *to ^= it);
        }
    }

    fn tag(self, nonce: SealNonce, head: &[u8], text: &[u8]) -> [u8; TAG_BYTES] {
        let bytes = nonce.iter().chain(head).chain(text.iter());
        let sum = |sum: u128, &byte: &u8| sum.wrapping_mul(0x1_0000_01B3) ^ u128::from(byte);
        bytes.fold(self.0.into(), sum).to_be_bytes()
    }
}

impl MemberKeys for SiteKey {
    type Cipher = Self;

    fn cipher(&self, _: ShareContent, member: MemberId) -> Self {
        Self(SplitMix64::new(self.0, member.number().into()).next_u64())
    }
}

impl PacketSeal for SiteKey {
    fn seal(&self, nonce: SealNonce, head: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
        self.mask(nonce, text);
        self.tag(nonce, head, text)
    }

    fn open(&self, nonce: SealNonce, head: &[u8], text: &mut [u8], tag: [u8; TAG_BYTES]) -> bool {
        let is_valid = self.tag(nonce, head, text) == tag;
        self.mask(nonce, text);
        is_valid
    }
}

/// The id of the member of a place. Its number is the place and one.
fn member_id(place: usize) -> MemberId {
    let mut id = [9; 16];
    id.iter_mut().zip((place as u32 + 1).to_be_bytes()).for_each(|(to, byte)| *to = byte);
    MemberId(id)
}

/// A datagram: its source, its bytes, and the place of its sender, which does not hear it.
type Sent = (SocketAddr, Vec<u8>, Option<usize>);

/// The members of a site, by their places. The address of place `n` is `source(n + 1)`, and its
/// number `n + 1`.
pub(crate) struct Site {
    pub(crate) content: Content,
    pub(crate) symbol_size: u16,
    /// The key that members have.
    pub(crate) key: Option<SiteKey>,
    /// Bytes per second of a member.
    rate: u64,
    /// How long a complete member stays.
    pub(crate) stays: Duration,
    /// When members ask others. There is no sender.
    pub(crate) turn: SiteTurn,
    pub(crate) now: Instant,
    pub(crate) members: Vec<Option<Member>>,
    pub(crate) random: SplitMix64,
    pub(crate) loss: f64,
    /// Symbols that members have sent.
    pub(crate) symbols: u64,
    /// What members have sent last.
    pub(crate) recorded: Vec<(SocketAddr, Vec<u8>)>,
    queue: BTreeMap<(Instant, u64), Sent>,
    number: u64,
    encoded: BTreeMap<BlockId, Intermediate>,
}

/// The address of a host, which has another port for each message of a stranger.
pub(crate) fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(source(host), port)
}

/// The message of a symbol of random bytes in the name of a member.
pub(crate) fn forged(
    site: &Site,
    block: BlockId,
    esi: u32,
    has_block: bool,
    size: usize,
) -> Vec<u8> {
    let bytes: Vec<u8> = (0..size).map(|at| (at as u8) ^ (esi as u8) ^ 0xA5).collect();
    let body = ShareBody::Symbol(ShareSymbol { has_block, to: 1, echo_us: 5, esi, bytes: &bytes });
    site.message(9_999, block, body)
}

impl Site {
    /// A site of content with one block of each of these numbers of source symbols.
    pub(crate) fn new(seed: u64, blocks: &[u32]) -> Self {
        Self::sized(seed, blocks, T, RATE)
    }

    /// With symbols of so many bytes, and members that send so many bytes a second.
    pub(crate) fn sized(seed: u64, blocks: &[u32], symbol_size: u16, rate: u64) -> Self {
        let bytes = |&k: &u32| (k as usize * usize::from(symbol_size), 1);
        let shapes: Vec<_> = blocks.iter().map(bytes).collect();
        let code = RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 };
        let content =
            Content::sized(symbol_size, &shapes, seed, 1, &|_, _| FecScheme::RaptorQ(code));
        let mut memory = MemoryContent::default();
        for (&toi, (layout, bytes)) in &content.objects {
            memory.insert(toi, *layout, bytes.to_vec());
        }
        let ids = (1..=blocks.len()).map(|toi| BlockId { toi: Toi(toi as u128), sbn: Sbn(0) });
        let encoded = ids.map(|block| (block, memory.encode(block).unwrap())).collect();
        Self {
            content,
            symbol_size,
            key: None,
            rate,
            stays: STAYS,
            turn: SiteTurn::BesideSession,
            now: Instant::ZERO,
            members: Vec::new(),
            random: SplitMix64::new(seed, 3),
            loss: 0.0,
            symbols: 0,
            recorded: Vec::new(),
            queue: BTreeMap::new(),
            number: 0,
            encoded,
        }
    }

    pub(crate) fn blocks(&self) -> Vec<BlockId> {
        self.encoded.keys().copied().collect()
    }

    pub(crate) fn source_symbols(&self, block: BlockId) -> u32 {
        self.content.objects[&block.toi].0.source_symbols(block.sbn).unwrap()
    }

    /// The right bytes of a symbol.
    pub(crate) fn symbol(&self, block: BlockId, esi: Esi) -> Vec<u8> {
        let mut bytes = Vec::new();
        append_symbol(&self.encoded[&block], esi, &mut bytes);
        bytes
    }

    /// A new member, which has these source symbols.
    pub(crate) fn join(&mut self, mut has: impl FnMut(BlockId, u32) -> bool) -> usize {
        let place = self.members.len();
        let mut config = receiver_config();
        config.expectation.manifest = Some(self.content.hash());
        let site = SiteConfig {
            seed: self.random.next_u64(),
            member: place as u32 + 1,
            bytes_per_second: self.rate,
            stays: self.stays,
            stays_beside_sender: self.stays,
            turn: self.turn,
        };
        let mut driver = ReceiverDriver::new(config, 0.0, place as u64).with_site(site);
        driver.timeout(self.now);
        let key = SessionKey { source: source(100), tsi: Tsi(0) };
        let manifest = &self.content.manifest;
        driver.endpoint.accept_manifest(key, self.content.hash(), manifest).unwrap();
        driver.poll(self.now);
        let mut joined_with = BTreeSet::new();
        for block in self.blocks() {
            for esi in (0..self.source_symbols(block)).filter(|&esi| has(block, esi)) {
                driver.pull(self.now, block, esi, &self.symbol(block, Esi(esi)));
                joined_with.insert((block, esi));
            }
        }
        let content = self.content.hash().into();
        let opener = self.key.map(|key| ShareOpener::new(key, content, member_id(place)));
        let member = Member { driver, joined_with, opener, sent: 0 };
        self.members.push(Some(member));
        place
    }

    /// The member of a place is killed.
    pub(crate) fn kill(&mut self, place: usize) {
        self.members[place] = None;
    }

    /// Whether all members that are left have everything.
    pub(crate) fn is_complete(&self) -> bool {
        self.members.iter().flatten().all(|member| member.driver.complete_at.is_some())
    }

    /// Whether the members that are left have each block verified, or have brought all its source
    /// symbols between them. What members have of others may be dropped together with what
    /// strangers have sent.
    pub(crate) fn has_everything(&self) -> bool {
        use fontana_proto::share::Holdings;
        self.blocks().into_iter().all(|block| {
            let left = || self.members.iter().flatten();
            let has_block = |member: &Member| {
                Holdings::block(&member.driver.endpoint, block).is_none_or(|it| it.has_block)
            };
            let has = |esi| left().any(|member| member.joined_with.contains(&(block, esi)));
            left().any(has_block) || (0..self.source_symbols(block)).all(has)
        })
    }

    /// What members have and lack.
    pub(crate) fn summary(&self) -> String {
        use fontana_proto::share::Holdings;
        let member = |member: &Member| {
            let lacking = Holdings::lacking(&member.driver.endpoint, None, 9);
            format!("{lacking:?} {:?}", member.driver.endpoint.share_stats())
        };
        self.members.iter().flatten().map(member).collect::<Vec<_>>().join("\n")
    }

    /// A message of this content.
    pub(crate) fn message(&self, member: u32, block: BlockId, body: ShareBody<'_>) -> Vec<u8> {
        let block = SharedBlock { toi: block.toi.0 as u32, sbn: block.sbn.0 };
        let content = self.content.hash().into();
        let mut bytes = Vec::new();
        ShareMessage { content, member, block, body }.emit(&mut bytes);
        bytes
    }

    /// A request for a block, of no map.
    pub(crate) fn request(&self, member: u32, block: BlockId, request: ShareRequest) -> Vec<u8> {
        self.message(member, block, ShareBody::Request(request))
    }

    /// A host sends a datagram in its own name, from another port each time.
    pub(crate) fn send(&mut self, host: u8, datagram: &[u8]) {
        let port = 1_024 + (self.random.next_u64() as u16 >> 1);
        self.send_as(address(host, port), datagram);
    }

    /// A datagram with this source, which may be that of another host.
    pub(crate) fn send_as(&mut self, from: SocketAddr, datagram: &[u8]) {
        self.deliver(from, datagram, None);
    }

    fn deliver(&mut self, from: SocketAddr, datagram: &[u8], except: Option<usize>) {
        self.number += 1;
        let key = (self.now + DELAY, self.number);
        self.queue.insert(key, (from, datagram.to_vec(), except));
    }

    /// Passes time.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        for place in 0..self.members.len() {
            self.poll(place);
        }
        loop {
            let members = self.members.iter().flatten();
            let due = members.filter_map(|member| member.driver.endpoint.poll_timeout());
            let polled = due.min().map(|due| due.max(self.now + TICK));
            let heard = self.queue.keys().next().map(|&(at, _)| at);
            let Some(next) = polled.into_iter().chain(heard).min().filter(|&next| next <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.queue.first_entry().filter(|it| it.key().0 <= self.now) {
                let (from, datagram, except) = entry.remove();
                self.hear(from, &datagram, except);
            }
            for place in 0..self.members.len() {
                self.poll(place);
            }
        }
        self.now = end;
    }

    /// Passes time until all members are complete, at most `time`.
    pub(crate) fn run_until_complete(&mut self, time: Duration) -> bool {
        let end = self.now + time;
        while !self.is_complete() && self.now < end {
            self.run(Duration::from_millis(50));
        }
        self.is_complete()
    }

    fn hear(&mut self, from: SocketAddr, datagram: &[u8], except: Option<usize>) {
        for (place, member) in self.members.iter_mut().enumerate() {
            let is_lost = self.random.unit() < self.loss;
            if Some(place) != except
                && !is_lost
                && let Some(member) = member
            {
                let mut datagram = datagram.to_vec();
                let is_sealed = member.opener.is_some();
                if member.opener.as_mut().is_some_and(|opener| !opener.open(&mut datagram)) {
                    continue;
                }
                let opened = if is_sealed { SealedShare::opened(&datagram) } else { &datagram };
                member.driver.hear_site(self.now, from, opened);
            }
        }
    }

    fn poll(&mut self, place: usize) {
        let now = self.now;
        let from = address(place as u8 + 1, PORT);
        let Some(mut member) = self.members[place].take() else { return };
        member.driver.timeout(now);
        for (to, datagram) in std::mem::take(&mut member.driver.sent) {
            assert_eq!(to, Destination::Site);
            let message = ShareMessage::parse(&datagram).unwrap();
            self.symbols += u64::from(matches!(message.body, ShareBody::Symbol(_)));
            let datagram = match self.key.filter(|_| member.opener.is_some()) {
                Some(key) => key.seal(place, member.sent, &datagram),
                None => datagram,
            };
            member.sent += 1;
            if self.recorded.len() < 64 {
                self.recorded.push((from, datagram.clone()));
            } else {
                let at = self.random.below(64) as usize;
                self.recorded[at] = (from, datagram.clone());
            }
            self.deliver(from, &datagram, Some(place));
        }
        self.members[place] = Some(member);
    }
}
