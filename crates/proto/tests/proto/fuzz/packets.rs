//! Packets that a test makes, and their emission.

use crate::support::world::{T, TSI};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{EncodingId, Esi, FecScheme, Oti, Sbn};
use fontana_testing::Script;
use fontana_wire::{HeaderFields, Toi, emit_payload_id, emit_small_block_payload_id};

/// Header fields of an object of the session.
pub(crate) fn fields(toi: Toi, oti: Oti) -> HeaderFields {
    let codepoint = oti.scheme.profile().encoding_id.0;
    HeaderFields { codepoint, fti: Some(oti), ..HeaderFields::new(TSI, Some(toi)) }
}

/// A datagram; one without payload if the header cannot be sent.
pub(crate) fn datagram(fields: &HeaderFields, sbn: u32, esi: u32, symbol: &[u8]) -> Vec<u8> {
    let mut fields = *fields;
    if fields.check().is_err() {
        fields.fti = None;
    }
    let mut datagram = Vec::new();
    fields.emit(&mut datagram);
    let (sbn_bits, esi_bits) = match EncodingId(fields.codepoint) {
        EncodingId::NO_CODE | EncodingId::RAPTOR => (16, 16),
        EncodingId::RFC_5510 => (24, 8),
        EncodingId::RAPTORQ => (8, 24),
        EncodingId::EXPANDABLE => (32, 32),
        EncodingId::SMALL_BLOCK => {
            emit_small_block_payload_id(Sbn(sbn), 1, Esi(esi), &mut datagram);
            datagram.extend(symbol);
            return datagram;
        }
        _ => return datagram,
    };
    let low = |value: u32, bits: u32| (u64::from(value) & ((1 << bits) - 1)) as u32;
    let (sbn, esi) = (Sbn(low(sbn, sbn_bits)), Esi(low(esi, esi_bits)));
    emit_payload_id(EncodingId(fields.codepoint), sbn, esi, &mut datagram);
    datagram.extend(symbol);
    datagram
}

/// Any transmission information, most of it of objects of a few symbols.
pub(crate) fn oti(script: &mut Script<'_>, length: u64) -> Oti {
    let block = 1 + u32::from(script.below(40));
    let scheme = match script.below(8) {
        0..3 => FecScheme::NoCode(NoCode { max_source_block_length: block }),
        3..5 => {
            let source_blocks = if script.once_in(8) { script.u8() } else { 1 };
            FecScheme::RaptorQ(RaptorQ { source_blocks, sub_blocks: 1, alignment: 4 })
        }
        5 => FecScheme::RaptorQ(RaptorQ {
            source_blocks: script.u8(),
            sub_blocks: script.u16(),
            alignment: script.u8(),
        }),
        _ => FecScheme::ReedSolomon(ReedSolomon {
            code: if script.once_in(2) {
                ReedSolomonCode::Rfc5510
            } else {
                ReedSolomonCode::Cauchy16
            },
            max_source_block_length: block as u16,
            max_encoding_symbols: script.u8().into(),
        }),
    };
    let transfer_length = match script.below(8) {
        0 => script.magnitude(),
        1 => u64::from(script.u16()),
        _ => length,
    };
    let symbol_size = if script.once_in(8) { script.magnitude() as u16 } else { T };
    Oti { transfer_length, symbol_size, scheme }
}

/// The symbols of a short object that is sent without a code.
pub(crate) fn symbols(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.chunks(T.into()).map(<[u8]>::to_vec).collect()
}

/// Transmission information of [`symbols`].
pub(crate) fn plain_oti(length: usize) -> Oti {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 64 });
    Oti { transfer_length: length as u64, symbol_size: T, scheme }
}
