//! The way out of a sender: packets are numbered, kept to the rate, and counted.

use super::SenderStats;
use super::control::ControlCarousel;
use crate::{BlockId, ChannelId, Destination, Instant, Output, Pacer, SymbolId};
use fontana_wire::{Cci, HeaderFields, Tsi, emit_payload_id, emit_small_block_payload_id};

/// Emits a sender's packets, as fast as the rate allows.
#[derive(Debug)]
pub(super) struct Outlet {
    tsi: Tsi,
    sequence_in_cci: bool,
    packet_overhead: u32,
    rate_bytes_per_second: u64,
    max_packet: u32,
    pacer: Pacer,
    sequence: u32,
    pub(super) stats: SenderStats,
}

/// What a packet of content says.
pub(super) struct DataPacket {
    pub(super) encoding_id: u8,
    pub(super) symbol: SymbolId,
    pub(super) symbol_size: u16,
    /// Of the symbol's block: tells source symbols from repair symbols.
    pub(super) source_symbols: u32,
}

/// The longest header: fixed LCT part, EXT_FDT, EXT_FTI, payload id.
const MAX_HEADER: u32 = 64;

impl Outlet {
    /// `max_symbol`: bytes of the longest symbol that will be sent.
    pub(super) fn new(
        tsi: Tsi,
        sequence_in_cci: bool,
        rate_bytes_per_second: u64,
        packet_overhead: u32,
        max_symbol: u32,
    ) -> Self {
        let max_packet = max_symbol + packet_overhead + MAX_HEADER;
        Self {
            tsi,
            sequence_in_cci,
            packet_overhead,
            rate_bytes_per_second,
            max_packet,
            pacer: Pacer::new(rate_bytes_per_second, max_packet),
            sequence: 0,
            stats: SenderStats::default(),
        }
    }

    /// The number of the first packet.
    pub(super) fn starting_at(self, sequence: u32) -> Self {
        Self { sequence, ..self }
    }

    /// Full packets that the rate allows.
    pub(super) fn packets_per_second(&self) -> u64 {
        self.rate_bytes_per_second / u64::from(self.max_packet)
    }

    /// Appends the header of a packet of content; or says when the rate allows it.
    pub(super) fn data(
        &mut self,
        now: Instant,
        packet: &DataPacket,
        out: &mut Vec<u8>,
    ) -> Result<Output, Instant> {
        let DataPacket { encoding_id, symbol, symbol_size, source_symbols } = *packet;
        let at = out.len();
        let fields = HeaderFields {
            cci: self.cci(),
            codepoint: encoding_id,
            ..HeaderFields::new(self.tsi, Some(symbol.block.toi))
        };
        fields.emit(out);
        let BlockId { sbn, .. } = symbol.block;
        if encoding_id == 129 {
            emit_small_block_payload_id(sbn, source_symbols, symbol.esi, out);
        } else {
            emit_payload_id(encoding_id, sbn, symbol.esi, out);
        }
        let bytes = (out.len() - at) as u32 + u32::from(symbol_size);
        self.pass(now, bytes, at, out)?;
        if symbol.esi.0 < source_symbols {
            self.stats.source_symbols += 1;
        } else {
            self.stats.repair_symbols += 1;
        }
        Ok(self.transmit(bytes, Some(symbol)))
    }

    /// Appends a control packet; or says when the rate allows it.
    pub(super) fn control(
        &mut self,
        now: Instant,
        carousel: &mut ControlCarousel,
        out: &mut Vec<u8>,
    ) -> Result<Output, Instant> {
        let at = out.len();
        carousel.emit(self.tsi, self.cci(), out);
        let bytes = (out.len() - at) as u32;
        self.pass(now, bytes, at, out)?;
        carousel.advance(self.stats.packets);
        self.stats.control_packets += 1;
        Ok(self.transmit(bytes, None))
    }

    fn cci(&self) -> Cci {
        Cci::from_u32(if self.sequence_in_cci { self.sequence } else { 0 })
    }

    /// Takes a packet's bytes off the rate. If it has to wait, nothing of it stays in `out`.
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

    fn transmit(&mut self, payload_bytes: u32, symbol: Option<SymbolId>) -> Output {
        self.sequence = self.sequence.wrapping_add(1);
        self.stats.packets += 1;
        self.stats.payload_bytes += u64::from(payload_bytes);
        self.stats.wire_bytes += u64::from(payload_bytes + self.packet_overhead);
        Output::Transmit { to: Destination::Channel(ChannelId(0)), symbol }
    }
}
