//! ALC packets: LCT header, FEC payload id, encoding symbols (RFC 5775, section 2). Payload ids are
//! those of RFC 5445, sections 3.2.1 and 5.2.1, RFC 5053, section 3.1, RFC 5510, and RFC 6330,
//! section 3.2.

use crate::bytes::Reader;
use crate::lct::{Header, ReservedBits};
use crate::packet_error::PacketError;
use fontana_fec::{EncodingId, Esi, Sbn};

/// Size in bytes of a payload id of FEC Encoding ID `encoding_id`, one of 0, 1, 5, 6, 128 and
/// 129.
pub const fn payload_id_size(encoding_id: EncodingId) -> usize {
    match encoding_id {
        EncodingId::EXPANDABLE | EncodingId::SMALL_BLOCK => 8,
        _ => 4,
    }
}

/// An ALC packet: one datagram of a session.
///
/// Parsing copies nothing: a [`Packet`] borrows from the datagram. A sender appends the parts of a
/// packet to a buffer: [`HeaderFields::emit`](crate::HeaderFields::emit), [`emit_payload_id`], then
/// the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The LCT header.
    pub header: Header<'a>,
    /// Payload id and symbol; empty in a packet without a payload.
    rest: &'a [u8],
}

/// The payload of a packet: encoding symbols, and the identifiers of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// Number of the source block.
    pub sbn: Sbn,
    /// Identifier of the first symbol in that block.
    pub esi: Esi,
    /// Bytes of the symbol, as many as the datagram holds. The last source symbol of an object may
    /// come without its zero padding. Other senders may put several symbols with consecutive
    /// identifiers into a packet (RFC 5053, section 5.3.2; RFC 6330, section 4.4.2).
    pub symbol: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a datagram of a session whose LCT version is not known.
    ///
    /// # Errors
    /// [`PacketError`] if the datagram is not an ALC packet. The receiver counts and drops it.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, PacketError> {
        Self::parse_with(datagram, ReservedBits::default())
    }

    /// Parses a datagram of a session for which the meaning of the reserved bits is known.
    ///
    /// # Errors
    /// As [`Packet::parse`].
    #[inline]
    pub fn parse_with(datagram: &'a [u8], reserved: ReservedBits) -> Result<Self, PacketError> {
        let (header, rest) = Header::parse(datagram, reserved)?;
        Ok(Self { header, rest })
    }

    /// Parses the payload id and the symbol after the header; `None` if nothing follows the header.
    /// A packet without a payload only carries information on its session or object.
    ///
    /// In a FLUTE session `encoding_id` is the header's codepoint. A receiver that knows the
    /// object's scheme from a better source drops packets whose codepoint differs.
    ///
    /// # Errors
    /// [`PacketError::EncodingId`], [`PacketError::PayloadId`].
    #[inline]
    pub fn payload(&self, encoding_id: EncodingId) -> Result<Option<Payload<'a>>, PacketError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut reader = Reader::new(self.rest);
        let truncated = PacketError::PayloadId { actual: self.rest.len() };
        let word = reader.u32().ok_or(truncated)?;
        let (sbn, esi) = match encoding_id {
            EncodingId::EXPANDABLE => (word, reader.u32().ok_or(truncated)?),
            // The block's length in symbols comes first. It is not used: the object's transmission
            // information has it.
            EncodingId::SMALL_BLOCK => (word, reader.u32().ok_or(truncated)? & 0xFFFF),
            _ => {
                let esi_bits =
                    esi_bits(encoding_id).ok_or(PacketError::EncodingId(encoding_id.0))?;
                (word >> esi_bits, word & !(u32::MAX << esi_bits))
            }
        };
        Ok(Some(Payload { sbn: Sbn(sbn), esi: Esi(esi), symbol: reader.rest() }))
    }
}

/// Number of low bits of a 32-bit payload id that hold the ESI; the others hold the SBN.
const fn esi_bits(encoding_id: EncodingId) -> Option<u32> {
    match encoding_id {
        EncodingId::NO_CODE | EncodingId::RAPTOR => Some(16),
        EncodingId::RFC_5510 => Some(8),
        EncodingId::RAPTORQ => Some(24),
        _ => None,
    }
}

/// Appends the payload id of a symbol: [`payload_id_size`] bytes.
///
/// # Panics
/// If `encoding_id` is not supported, or if the numbers do not fit. FEC Encoding IDs 0 and 1 have
/// 16 bits for each number, ID 5 has 24 for the block and 8 for the symbol, ID 6 has 8 and 24, ID
/// 128 has 32 for each. The numbers of a valid [`ObjectLayout`](fontana_fec::ObjectLayout) fit. ID
/// 129 has a function of its own, [`emit_small_block_payload_id`].
pub fn emit_payload_id(encoding_id: EncodingId, sbn: Sbn, esi: Esi, out: &mut Vec<u8>) {
    if encoding_id == EncodingId::EXPANDABLE {
        out.extend(sbn.0.to_be_bytes());
        out.extend(esi.0.to_be_bytes());
        return;
    }
    let esi_bits = esi_bits(encoding_id).unwrap_or(0);
    assert!(esi_bits > 0, "FEC Encoding ID {encoding_id} is not supported");
    assert!(
        sbn.0 << esi_bits >> esi_bits == sbn.0 && esi.0 >> esi_bits == 0,
        "FEC Encoding ID {encoding_id} has no room for {sbn:?} and {esi:?}"
    );
    out.extend((sbn.0 << esi_bits | esi.0).to_be_bytes());
}

/// Appends the payload id of a symbol of FEC Encoding ID 129: 8 bytes, with the number of source
/// symbols of the block. The numbers of a valid [`ObjectLayout`](fontana_fec::ObjectLayout) fit; of
/// larger numbers, the low 16 bits of `source_symbols` and `esi` are written.
pub fn emit_small_block_payload_id(sbn: Sbn, source_symbols: u32, esi: Esi, out: &mut Vec<u8>) {
    out.extend(sbn.0.to_be_bytes());
    out.extend((source_symbols as u16).to_be_bytes());
    out.extend((esi.0 as u16).to_be_bytes());
}
