//! Hostile packets: what a host sends that receives the session and wants to stop it.

use super::world::{
    BLOCK_SYMBOLS, BLOCKS, CONTENT, HostilePackets, SENDER, SYMBOL_BYTES, TSI, datagram,
};
use fontana::seal::PacketSealer;
use fontana_fec::{EncodingId, Esi, Sbn};
use fontana_proto::SplitMix64;
use fontana_wire::{
    HeaderFields, NtpSeconds, Packet, SealField, SealMode, SealedDatagram, SessionHead,
    SessionSeal, TimeExtension, Toi, Tsi, UnverifiedHead, emit_payload_id,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU64;

/// Bytes of an LCT header with 32 bits each of CCI, TSI and TOI.
const HEADER_BYTES: usize = 16;
/// Honest packets that the attacker remembers.
const REMEMBERED: usize = 256;
/// Largest payload of a UDP datagram over IPv4.
const MAX_DATAGRAM: u32 = 65_507;

/// Makes the packets of a class.
pub(super) type Make = fn(&mut Attacker) -> HostilePackets;

/// What an attacker knows: the honest packets so far, and what the publisher sent earlier.
pub(super) struct Attacker {
    random: SplitMix64,
    /// The latest honest packets.
    heard: Vec<Vec<u8>>,
    heard_count: usize,
    /// Packets of an older version of the publisher's content, under another TSI.
    old: Vec<Vec<u8>>,
    /// Packets of other content of another publisher, under the session's TSI.
    other: Vec<Vec<u8>>,
    /// Seals with a key that is not the group's.
    sealer: PacketSealer,
    /// Packets made so far.
    count: u64,
}

impl Attacker {
    pub(super) fn new(
        seed: u64,
        old: Vec<Vec<u8>>,
        other: Vec<Vec<u8>>,
        sealer: PacketSealer,
    ) -> Self {
        let random = SplitMix64::new(seed, 201);
        Self { random, heard: Vec::new(), heard_count: 0, old, other, sealer, count: 0 }
    }

    pub(super) fn observe(&mut self, datagram: &[u8]) {
        let at = self.heard_count % REMEMBERED;
        self.heard_count += 1;
        match self.heard.get_mut(at) {
            Some(place) => place.clone_from(&datagram.to_vec()),
            None => self.heard.push(datagram.to_vec()),
        }
    }

    /// The next packet of a class.
    pub(super) fn make(&mut self, make: Make) -> HostilePackets {
        self.count += 1;
        make(self)
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    fn byte(&mut self) -> u8 {
        self.random.next_u64() as u8
    }

    fn noise(&mut self, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|_| self.byte()).collect()
    }

    /// One of the extremes of a number of 32 bits, or any.
    fn extreme(&mut self) -> u32 {
        match self.below(6) {
            0 => 0,
            1 => 1,
            2 => u32::MAX,
            3 => 1 << self.below(32),
            4 => (1_u32 << self.below(32)).wrapping_sub(1),
            _ => self.random.next_u64() as u32,
        }
    }

    /// A packet that the honest sender has sent; before the first one, a symbol.
    fn heard(&mut self) -> Vec<u8> {
        let at = self.below(self.heard.len() as u32) as usize;
        self.heard.get(at).cloned().unwrap_or_else(|| self.symbol(SYMBOL_BYTES.into()))
    }

    fn one_of(random: &mut SplitMix64, packets: &[Vec<u8>]) -> Vec<u8> {
        let at = random.below(packets.len() as u32) as usize;
        packets.get(at).cloned().unwrap_or_default()
    }

    /// The sender's address, or one of 250 others.
    fn source(&mut self) -> SocketAddr {
        if self.below(2) == 0 { SENDER } else { self.other_source() }
    }

    fn other_source(&mut self) -> SocketAddr {
        let host = 2 + self.below(250) as u8;
        let port = 1_024 + self.below(60_000) as u16;
        SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), port))
    }

    fn sent_by_any(&mut self, bytes: Vec<u8>) -> HostilePackets {
        HostilePackets::One { from: self.source(), bytes }
    }

    fn sent_by_others(&mut self, bytes: Vec<u8>) -> HostilePackets {
        HostilePackets::One { from: self.other_source(), bytes }
    }

    /// A packet of content: random bytes as the symbol of a block.
    fn symbol_of(&mut self, toi: Toi, sbn: u32, esi: u32, bytes: usize) -> Vec<u8> {
        let codepoint = EncodingId::RAPTORQ.0;
        let mut packet = Vec::new();
        HeaderFields { codepoint, ..HeaderFields::new(TSI, Some(toi)) }.emit(&mut packet);
        emit_payload_id(EncodingId::RAPTORQ, Sbn(sbn), Esi(esi), &mut packet);
        packet.extend(self.noise(bytes));
        packet
    }

    /// One of a block of the large object.
    fn symbol_in_block(&mut self, esi: u32) -> Vec<u8> {
        let sbn = self.below(BLOCKS.into());
        self.symbol_of(CONTENT, sbn, esi, SYMBOL_BYTES.into())
    }

    /// A symbol of this many bytes.
    fn symbol(&mut self, bytes: usize) -> Vec<u8> {
        let (sbn, esi) = (self.below(BLOCKS.into()), self.below(1 << 24));
        self.symbol_of(CONTENT, sbn, esi, bytes)
    }

    /// A header with these words of extensions.
    fn extended(&mut self, words: &[[u8; 4]]) -> Vec<u8> {
        let mut packet = Vec::new();
        let toi = CONTENT;
        HeaderFields { codepoint: 6, ..HeaderFields::new(TSI, Some(toi)) }.emit(&mut packet);
        packet.extend(words.iter().flatten());
        if let Some(length) = packet.get_mut(2) {
            *length = (HEADER_BYTES / 4 + words.len()) as u8;
        }
        packet
    }

    /// A head of the old session, as a change of its fields makes it, unsigned.
    fn forged_head(&mut self, change: impl FnOnce(&mut SessionHead, &mut SplitMix64)) -> Vec<u8> {
        let head = self.other.iter().find(|packet| is_of(packet, Toi::HEAD));
        let Some(mut packet) = head.cloned() else { return Vec::new() };
        let start = payload_start(&packet);
        let symbol = packet.split_off(start.min(packet.len()));
        let Ok(head) = UnverifiedHead::parse(&symbol) else { return packet };
        let mut head = head.without_verification();
        change(&mut head, &mut self.random);
        let mut bytes = head.emit(None);
        bytes.resize(symbol.len(), 0);
        packet.extend(bytes);
        packet
    }

    fn sealed(&mut self, count: u64) -> Vec<u8> {
        let field = self.heard.last().and_then(|packet| SealedDatagram::find(packet));
        let id = field.map_or(
            SessionSeal { id: fontana_wire::SealId([1; 8]), mode: SealMode::Authenticated },
            |found| found.field.session,
        );
        let seal = Some(SealField { session: id, channel: 0, count });
        let mut packet = Vec::new();
        HeaderFields { codepoint: 6, seal, ..HeaderFields::new(TSI, Some(CONTENT)) }
            .emit(&mut packet);
        let (sbn, esi) = (self.below(BLOCKS.into()), self.below(1 << 24));
        emit_payload_id(EncodingId::RAPTORQ, Sbn(sbn), Esi(esi), &mut packet);
        packet.extend(self.noise(SYMBOL_BYTES.into()));
        packet
    }
}

/// The first byte after header and payload id of a RaptorQ packet.
fn payload_start(packet: &[u8]) -> usize {
    packet.get(2).map_or(0, |&words| usize::from(words) * 4 + 4)
}

fn is_of(packet: &[u8], toi: Toi) -> bool {
    Packet::parse(packet).is_ok_and(|packet| packet.header.toi == Some(toi))
}

pub(super) fn empty(attacker: &mut Attacker) -> HostilePackets {
    attacker.sent_by_any(Vec::new())
}

pub(super) fn shorter_than_a_header(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.heard();
    packet.truncate(1 + attacker.below(HEADER_BYTES as u32 - 1) as usize);
    attacker.sent_by_any(packet)
}

pub(super) fn header_beyond_the_datagram(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.heard();
    packet.truncate(HEADER_BYTES + attacker.below(900) as usize);
    let words = (packet.len() / 4) as u32;
    let longer = words + 1 + attacker.below(255 - words);
    if let Some(length) = packet.get_mut(2) {
        *length = longer as u8;
    }
    attacker.sent_by_any(packet)
}

pub(super) fn extension_of_length_zero(attacker: &mut Attacker) -> HostilePackets {
    // Types below 128 have a length in words.
    let word = [attacker.below(128) as u8, 0, attacker.byte(), attacker.byte()];
    let following = attacker.below(8) as usize;
    let words: Vec<_> = std::iter::repeat_n(word, 1 + following).collect();
    let packet = attacker.extended(&words);
    attacker.sent_by_any(packet)
}

pub(super) fn chains_of_extensions(attacker: &mut Attacker) -> HostilePackets {
    let count = 251 - attacker.below(240) as usize;
    let words: Vec<_> = (0..count)
        .map(|_| [128 | attacker.byte(), attacker.byte(), attacker.byte(), attacker.byte()])
        .collect();
    let packet = attacker.extended(&words);
    attacker.sent_by_any(packet)
}

pub(super) fn unknown_kinds(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.heard();
    let value = attacker.byte();
    let kind = attacker.below(4);
    let bits = |packet: &mut Vec<u8>, at: usize, change: u8| {
        if let Some(byte) = packet.get_mut(at) {
            *byte ^= change;
        }
    };
    match kind {
        // The version of LCT.
        0 => bits(&mut packet, 0, (1 + value % 15) << 4),
        // The codepoint.
        1 => bits(&mut packet, 3, 1 + value % 255),
        // The TSI.
        2 => bits(&mut packet, 8, 1 + value % 255),
        // An object that the session does not have.
        _ => bits(&mut packet, 13, 1 + value % 127),
    }
    attacker.sent_by_any(packet)
}

pub(super) fn impossible_sizes(attacker: &mut Attacker) -> HostilePackets {
    // EXT_FTI of RaptorQ: transfer length (40 bits), symbol size, blocks, sub-blocks, alignment.
    let [length, symbol, blocks, others] =
        std::array::from_fn(|_| attacker.extreme().to_be_bytes());
    let words = [
        [64, 4, length[0], length[1]],
        [length[2], length[3], others[0], 0],
        [symbol[2], symbol[3], blocks[3], others[1]],
        [others[2], others[3], 0, 0],
    ];
    let mut packet = attacker.extended(&words);
    let toi = match attacker.below(3) {
        0 => Toi::HEAD,
        1 => Toi::MANIFEST,
        _ => CONTENT,
    };
    let id = (toi.0 as u32).to_be_bytes();
    packet.splice(12..16, id);
    emit_payload_id(EncodingId::RAPTORQ, Sbn(0), Esi(attacker.below(4)), &mut packet);
    let size = attacker.below(600) as usize;
    packet.extend(attacker.noise(size));
    attacker.sent_by_any(packet)
}

pub(super) fn exact_duplicates(attacker: &mut Attacker) -> HostilePackets {
    let bytes = attacker.heard();
    HostilePackets::One { from: SENDER, bytes }
}

/// In the sender's name, before the receiver knows which objects there are and how long their
/// symbols are.
pub(super) fn early_symbols(attacker: &mut Attacker) -> HostilePackets {
    let toi = if attacker.below(2) == 0 { CONTENT } else { Toi(attacker.extreme().into()) };
    let (sbn, esi) = (attacker.below(u32::from(BLOCKS) + 2), attacker.below(1 << 24));
    let bytes = attacker.below(32 << 10) as usize;
    HostilePackets::One { from: SENDER, bytes: attacker.symbol_of(toi, sbn, esi, bytes) }
}

pub(super) fn wrong_symbol_lengths(attacker: &mut Attacker) -> HostilePackets {
    let length = attacker.below(2 * u32::from(SYMBOL_BYTES) - 1) as usize;
    // Neither a symbol nor two.
    let length = length + usize::from(length == usize::from(SYMBOL_BYTES));
    let packet = attacker.symbol(length);
    attacker.sent_by_any(packet)
}

pub(super) fn blocks_past_the_end(attacker: &mut Attacker) -> HostilePackets {
    let (sbn, esi) = (128 + attacker.below(128), attacker.below(1 << 24));
    let packet = attacker.symbol_of(CONTENT, sbn, esi, SYMBOL_BYTES.into());
    attacker.sent_by_any(packet)
}

pub(super) fn extreme_symbol_numbers(attacker: &mut Attacker) -> HostilePackets {
    let last = (1 << 24) - 1;
    let near = [0, 1, BLOCK_SYMBOLS - 1, BLOCK_SYMBOLS, BLOCK_SYMBOLS + 1, 1 << 23, last - 1, last];
    let at = attacker.below(near.len() as u32) as usize;
    let packet = attacker.symbol_in_block(near.get(at).copied().unwrap_or(last));
    attacker.sent_by_any(packet)
}

pub(super) fn symbols_hard_to_solve(attacker: &mut Attacker) -> HostilePackets {
    // Numbers that no sender comes to: each symbol is another one.
    let esi = (1 << 22) + (attacker.count as u32 % (1 << 22));
    let packet = attacker.symbol_in_block(esi);
    attacker.sent_by_any(packet)
}

pub(super) fn dependent_symbols(attacker: &mut Attacker) -> HostilePackets {
    // The same few symbols with other bytes, and those that the sender has just sent.
    let mut packet = attacker.heard();
    let is_content =
        Packet::parse(&packet).is_ok_and(|packet| packet.header.toi.is_some_and(Toi::is_content));
    if !is_content || attacker.below(2) == 0 {
        let esi = BLOCK_SYMBOLS + attacker.below(8);
        packet = attacker.symbol_in_block(esi);
    } else if let Some(last) = packet.last_mut() {
        *last ^= 1;
    }
    attacker.sent_by_any(packet)
}

pub(super) fn old_sessions(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = Attacker::one_of(&mut attacker.random, &attacker.old);
    let is_control = is_of(&packet, Toi::HEAD) || is_of(&packet, Toi::MANIFEST);
    if is_control && attacker.below(2) == 0 {
        // Under the session's number, from another host.
        packet.splice(8..12, (TSI.0 as u32).to_be_bytes());
        return attacker.sent_by_others(packet);
    }
    attacker.sent_by_any(packet)
}

pub(super) fn forged_ends(attacker: &mut Attacker) -> HostilePackets {
    let kind = attacker.below(3);
    let toi = CONTENT;
    let fields = HeaderFields::new(TSI, Some(toi));
    let fields = match kind {
        0 => HeaderFields { close_session: true, toi: None, ..fields },
        1 => HeaderFields { close_object: true, ..fields },
        _ => {
            let packet = attacker.forged_head(|head, random| {
                head.manifest_version = random.next_u64();
            });
            return attacker.sent_by_any(packet);
        }
    };
    let mut packet = Vec::new();
    fields.emit(&mut packet);
    attacker.sent_by_any(packet)
}

pub(super) fn flipped_bits(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.heard();
    for _ in 0..=attacker.below(64) {
        let at = attacker.below(packet.len() as u32) as usize;
        let bit = 1 << attacker.below(8);
        if let Some(byte) = packet.get_mut(at) {
            *byte ^= bit;
        }
    }
    HostilePackets::One { from: SENDER, bytes: packet }
}

pub(super) fn truncated_packets(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.heard();
    packet.truncate(attacker.below(packet.len() as u32) as usize);
    HostilePackets::One { from: SENDER, bytes: packet }
}

pub(super) fn oversized_packets(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.symbol(0);
    let size = if attacker.below(4) == 0 {
        MAX_DATAGRAM
    } else {
        2_000 + attacker.below(MAX_DATAGRAM - 2_000)
    };
    // Some senders put several symbols into a packet: these are none.
    let payload = size - packet.len() as u32;
    let size = size - u32::from(payload.is_multiple_of(SYMBOL_BYTES.into()));
    let first = attacker.byte();
    packet.resize(size as usize, first);
    attacker.sent_by_any(packet)
}

pub(super) fn wrong_tags(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.heard();
    let end = packet.get(2).map_or(0, |&words| usize::from(words) * 4);
    let at = end.saturating_sub(1 + attacker.below(16) as usize);
    let change = 1 << attacker.below(8);
    if let Some(byte) = packet.get_mut(at) {
        *byte ^= change;
    }
    attacker.sent_by_any(packet)
}

pub(super) fn sealed_packets_out_of_order(attacker: &mut Attacker) -> HostilePackets {
    let bytes = attacker.heard();
    // The right tag, again; or with another number.
    let mut packet = bytes;
    if attacker.below(2) == 0
        && let Some(end) = packet.get(2).map(|&words| usize::from(words) * 4)
        && let Some(byte) = packet.get_mut(end.saturating_sub(17))
    {
        *byte = byte.wrapping_add(1);
    }
    attacker.sent_by_any(packet)
}

pub(super) fn seals_of_another_key(attacker: &mut Attacker) -> HostilePackets {
    let count = match attacker.below(3) {
        0 => u64::from(attacker.below(1 << 20)),
        1 => (1 << 56) - 1,
        _ => attacker.random.next_u64() >> 8,
    };
    let mut packet = attacker.sealed(count);
    attacker.sealer.seal(&mut packet);
    attacker.sent_by_any(packet)
}

pub(super) fn another_sender(attacker: &mut Attacker) -> HostilePackets {
    let packet = Attacker::one_of(&mut attacker.random, &attacker.other);
    attacker.sent_by_others(packet)
}

pub(super) fn conflicting_manifests(attacker: &mut Attacker) -> HostilePackets {
    let is_control = |packet: &&Vec<u8>| is_of(packet, Toi::HEAD) || is_of(packet, Toi::MANIFEST);
    let control: Vec<_> = attacker.other.iter().filter(is_control).cloned().collect();
    let bytes = Attacker::one_of(&mut attacker.random, &control);
    HostilePackets::One { from: SENDER, bytes }
}

pub(super) fn times_far_away(attacker: &mut Attacker) -> HostilePackets {
    if attacker.below(2) == 0 {
        let packet = attacker.forged_head(|head, random| {
            head.expires_unix_seconds = NonZeroU64::new(random.next_u64() >> random.below(64));
        });
        return attacker.sent_by_any(packet);
    }
    let time = TimeExtension {
        sender_current_time: Some(u64::from(attacker.extreme()) << 32),
        expected_residual_time_seconds: Some(attacker.extreme()),
        session_last_changed: Some(NtpSeconds(attacker.extreme())),
    };
    let toi = Some(CONTENT);
    let mut packet = Vec::new();
    HeaderFields { time: Some(time), ..HeaderFields::new(TSI, toi) }.emit(&mut packet);
    attacker.sent_by_any(packet)
}

pub(super) fn reassembled_fragments(attacker: &mut Attacker) -> HostilePackets {
    // As long as no link carries in one piece: an honest packet, and what follows it.
    let mut packet = attacker.heard();
    let size = 1_501 + attacker.below(8_000) as usize;
    let payload = size.saturating_sub(payload_start(&packet));
    let is_whole = payload.is_multiple_of(SYMBOL_BYTES.into());
    let rest = (size - usize::from(is_whole)).saturating_sub(packet.len());
    let noise = attacker.noise(rest);
    packet.extend(noise);
    attacker.sent_by_any(packet)
}

pub(super) fn coalesced_packets(attacker: &mut Attacker) -> HostilePackets {
    let (mut slab, mut datagrams) = (Vec::new(), Vec::new());
    let from = attacker.source();
    for _ in 0..1 + attacker.below(4) {
        let start = slab.len() as u32;
        match attacker.below(4) {
            0 => slab.extend(attacker.heard()),
            1 => {
                let length = attacker.below(64) as usize;
                slab.extend(attacker.noise(length));
            }
            2 => {
                let mut cut = attacker.heard();
                cut.truncate(attacker.below(HEADER_BYTES as u32) as usize);
                slab.extend(cut);
            }
            _ => {}
        }
        // Some end beyond the buffer.
        let end = slab.len() as u32 + u32::from(attacker.below(8) == 0) * attacker.below(3_000);
        datagrams.push(datagram(from, start..end));
    }
    HostilePackets::Batch { slab, datagrams }
}

pub(super) fn changing_addresses(attacker: &mut Attacker) -> HostilePackets {
    let port = attacker.random.next_u64() as u16;
    let address = match attacker.below(2) {
        0 => IpAddr::V4(Ipv4Addr::from(attacker.random.next_u64() as u32)),
        _ => IpAddr::V6(Ipv6Addr::from(u128::from(attacker.random.next_u64()) << 64 | 1)),
    };
    let packets = if attacker.below(2) == 0 { &attacker.other } else { &attacker.heard };
    let bytes = Attacker::one_of(&mut attacker.random, packets);
    HostilePackets::One { from: SocketAddr::new(address, port), bytes }
}

pub(super) fn feedback(attacker: &mut Attacker) -> HostilePackets {
    let mut packet = attacker.heard();
    let length = attacker.below(packet.len() as u32 + 1) as usize;
    packet.truncate(length);
    if let Some(byte) = packet.first_mut() {
        *byte ^= attacker.random.next_u64() as u8 & 0xF;
    }
    HostilePackets::Feedback(packet)
}

/// The TSI of sessions that are over.
pub(super) const OLD_TSI: Tsi = Tsi(6);
