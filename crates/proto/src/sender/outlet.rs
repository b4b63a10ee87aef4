//! The output of a sender: numbers its packets, limits their rate, and counts them.

use super::control::ControlCarousel;
use super::{ChannelStats, SenderStats};
use crate::channel::ChannelId;
use crate::congestion::{ChannelClock, Emission};
use crate::endpoint::{BlockId, Destination, SymbolId};
use crate::event::SenderOutput;
use crate::pacer::Pacer;
use crate::time::Instant;
use fontana_fec::{EncodingId, Esi, Oti, Sbn};
use fontana_wire::{
    Cci, HeaderFields, SEAL_BYTES, SealField, SessionSeal, Toi, Tsi, emit_payload_id,
    emit_small_block_payload_id, payload_id_size,
};
use std::time::Duration;

/// Emits a sender's packets within the rate limit.
#[derive(Debug)]
pub(super) struct Outlet {
    tsi: Tsi,
    seal: Option<SessionSeal>,
    sequence_in_cci: bool,
    packet_overhead: u32,
    rate_bytes_per_second: u64,
    max_packet: u32,
    pacer: Pacer,
    /// The clock of several channels; with one channel, its packets are numbered here.
    clock: Option<ChannelClock>,
    sequence: u32,
    pub(super) stats: SenderStats,
    pub(super) channels: Vec<ChannelStats>,
}

/// Channel and CCI of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) channel: ChannelId,
    cci: Cci,
}

/// The fields of a packet of content.
pub(super) struct DataPacket {
    pub(super) encoding_id: EncodingId,
    pub(super) symbol: SymbolId,
    /// Source symbols of the block: distinguishes source from repair symbols.
    pub(super) source_symbols: u32,
    /// Transmission information of the symbol's object, if the packet carries it.
    pub(super) fti: Option<Oti>,
}

/// Bytes of the header of an object's packets of content, whose CCI has 32 bits.
pub(super) fn header_size(
    tsi: Tsi,
    toi: Toi,
    encoding_id: EncodingId,
    fti: Option<Oti>,
    seal: Option<SessionSeal>,
) -> u16 {
    let mut header = Vec::new();
    let seal = seal.map(|session| SealField { session, channel: 0, count: 0 });
    let fields = HeaderFields { seal, ..HeaderFields::new(tsi, Some(toi)) };
    HeaderFields { codepoint: encoding_id.0, fti, ..fields }.emit(&mut header);
    (header.len() + payload_id_size(encoding_id)) as u16
}

/// The longest header without a seal: fixed LCT part, EXT_FDT, EXT_FTI, payload id.
const MAX_HEADER: u32 = 64;

impl Outlet {
    /// `max_symbol` is the size of the longest symbol in bytes.
    pub(super) fn new(
        tsi: Tsi,
        sequence_in_cci: bool,
        rate_bytes_per_second: u64,
        packet_overhead: u32,
        peak_window: Duration,
        max_symbol: u32,
        seal: Option<SessionSeal>,
    ) -> Self {
        let seal_bytes = seal.map_or(0, |_| SEAL_BYTES as u32);
        let max_packet = max_symbol + packet_overhead + MAX_HEADER + seal_bytes;
        Self {
            tsi,
            seal,
            sequence_in_cci,
            packet_overhead,
            rate_bytes_per_second,
            max_packet,
            pacer: Pacer::new(rate_bytes_per_second, max_packet).with_peak_window(peak_window),
            clock: None,
            sequence: 0,
            stats: SenderStats::default(),
            channels: vec![ChannelStats::default()],
        }
    }

    /// Sets the number of the first packet.
    pub(super) fn starting_at(self, sequence: u32) -> Self {
        Self { sequence, ..self }
    }

    /// Uses the clock of several channels. It skips packets that are late, so there is no peak
    /// window.
    pub(super) fn over_channels(mut self, clock: Option<ChannelClock>) -> Self {
        if clock.is_some() {
            self.pacer = self.pacer.with_peak_window(Duration::ZERO);
        }
        let count = clock.as_ref().map_or(1, ChannelClock::channel_count);
        Self { clock, channels: vec![ChannelStats::default(); count], ..self }
    }

    pub(super) fn clock(&self) -> Option<&ChannelClock> {
        self.clock.as_ref()
    }

    /// Channel and CCI of the next packet, or the time to try again.
    pub(super) fn next_slot(&mut self, now: Instant) -> Result<Slot, Instant> {
        let Some(clock) = &mut self.clock else {
            let cci = Cci::from_u32(if self.sequence_in_cci { self.sequence } else { 0 });
            return Ok(Slot { channel: ChannelId::BASE, cci });
        };
        clock.skip_to(now);
        let Emission { at, channel, cci } = clock.peek();
        // Packets leave in GSO batches: those that are due within this time leave together.
        let train = now + Pacer::BURST_WINDOW / 4;
        if at > now { Err(at.max(train)) } else { Ok(Slot { channel, cci }) }
    }

    /// Notes that there is nothing to send: the time until the next packet is not made up for.
    pub(super) fn rest(&mut self) {
        self.pacer.rest();
    }

    /// Skips the next packet: its channel has nothing to send.
    pub(super) fn pass_over(&mut self) {
        self.clock.iter_mut().for_each(ChannelClock::advance);
    }

    /// The number of packets sent on a channel.
    pub(super) fn packets_on(&self, channel: ChannelId) -> u64 {
        self.channels.get(usize::from(channel.0)).map_or(0, |stats| stats.packets)
    }

    /// The seal of the next packet on a channel.
    fn seal(&self, channel: ChannelId) -> Option<SealField> {
        let count = self.packets_on(channel);
        self.seal.map(|session| SealField { session, channel: channel.0, count })
    }

    /// Sets the rate limit.
    pub(super) fn set_rate(&mut self, now: Instant, bytes_per_second: u64) {
        self.rate_bytes_per_second = bytes_per_second;
        self.pacer.set_rate(now, bytes_per_second, self.max_packet);
    }

    /// The number of full packets per second that the rate limit allows.
    pub(super) fn packets_per_second(&self) -> u64 {
        self.rate_bytes_per_second / u64::from(self.max_packet)
    }

    /// Appends the header of a packet of content, or returns the time at which the rate allows it.
    pub(super) fn data(
        &mut self,
        now: Instant,
        slot: Slot,
        packet: &DataPacket,
        out: &mut Vec<u8>,
    ) -> Result<SenderOutput, Instant> {
        let DataPacket { encoding_id, symbol, source_symbols, fti } = *packet;
        let at = out.len();
        let fields = HeaderFields {
            cci: slot.cci,
            codepoint: encoding_id.0,
            fti,
            seal: self.seal(slot.channel),
            ..HeaderFields::new(self.tsi, Some(symbol.block.toi))
        };
        fields.emit(out);
        let BlockId { sbn, .. } = symbol.block;
        if encoding_id == EncodingId::SMALL_BLOCK {
            emit_small_block_payload_id(sbn, source_symbols, symbol.esi, out);
        } else {
            emit_payload_id(encoding_id, sbn, symbol.esi, out);
        }
        let bytes = (out.len() - at) as u32 + u32::from(symbol.size);
        self.pass(now, bytes, at, out)?;
        if symbol.esi.0 < source_symbols {
            self.stats.source_symbols += 1;
        } else {
            self.stats.repair_symbols += 1;
        }
        Ok(self.transmit(slot, bytes, Some(symbol)))
    }

    /// Appends a control packet, or returns the time at which the rate allows it.
    pub(super) fn control(
        &mut self,
        now: Instant,
        slot: Slot,
        carousel: &mut ControlCarousel,
        out: &mut Vec<u8>,
    ) -> Result<SenderOutput, Instant> {
        let at = out.len();
        carousel.emit(self.tsi, slot.cci, self.seal(slot.channel), out);
        let bytes = (out.len() - at) as u32;
        self.pass(now, bytes, at, out)?;
        carousel.advance(now, slot.channel, self.packets_on(slot.channel));
        self.count_control(slot);
        Ok(self.transmit(slot, bytes, None))
    }

    /// Appends a packet with a list of digests, or returns the time at which the rate allows it.
    pub(super) fn digests(
        &mut self,
        now: Instant,
        slot: Slot,
        list: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<SenderOutput, Instant> {
        let at = out.len();
        let fields = HeaderFields {
            cci: slot.cci,
            codepoint: EncodingId::NO_CODE.0,
            seal: self.seal(slot.channel),
            ..HeaderFields::new(self.tsi, Some(Toi::DIGESTS))
        };
        fields.emit(out);
        emit_payload_id(EncodingId::NO_CODE, Sbn(0), Esi(0), out);
        out.extend_from_slice(list);
        let bytes = (out.len() - at) as u32;
        self.pass(now, bytes, at, out)?;
        self.count_control(slot);
        Ok(self.transmit(slot, bytes, None))
    }

    /// Counts a packet that carries no content.
    fn count_control(&mut self, slot: Slot) {
        self.stats.control_packets += 1;
        if let Some(channel) = self.channels.get_mut(usize::from(slot.channel.0)) {
            channel.control_packets += 1;
        }
    }

    /// Spends a packet's bytes. If it has to wait, removes it from `out`.
    fn pass(
        &mut self,
        now: Instant,
        bytes: u32,
        at: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Instant> {
        if self.pacer.take(now, bytes + self.packet_overhead) {
            return Ok(());
        }
        out.truncate(at);
        Err(self.pacer.next_wake())
    }

    fn transmit(
        &mut self,
        slot: Slot,
        payload_bytes: u32,
        symbol: Option<SymbolId>,
    ) -> SenderOutput {
        self.sequence = self.sequence.wrapping_add(1);
        self.clock.iter_mut().for_each(ChannelClock::advance);
        let wire_bytes = u64::from(payload_bytes + self.packet_overhead);
        self.stats.packets += 1;
        self.stats.payload_bytes += u64::from(payload_bytes);
        self.stats.wire_bytes += wire_bytes;
        if let Some(channel) = self.channels.get_mut(usize::from(slot.channel.0)) {
            channel.packets += 1;
            channel.wire_bytes += wire_bytes;
        }
        SenderOutput::Transmit { to: Destination::Channel(slot.channel), symbol }
    }
}
