//! Object transmission information as session head and manifest write it: 15 bytes.
//!
//! ```text
//! u8 FEC Encoding ID, u64 transfer length, u16 symbol size, then for
//!   ID 0: u32 maximum source block length
//!   ID 5: u16 maximum source block length, u16 maximum number of encoding symbols
//!   ID 6: u8 source blocks, u16 sub-blocks, u8 alignment
//!   ID 129: as ID 5, and the first two bytes of the transfer length are the FEC Instance ID
//! ```

use crate::bytes::Reader;
use fontana_fec::{FecScheme, Oti, ReedSolomonCode};

/// Bytes of the encoding.
pub(crate) const SIZE: usize = 15;

/// The FEC Encoding ID, and what it says if it is one of ours; `None` if the bytes end too early.
pub(crate) fn parse(reader: &mut Reader<'_>) -> Option<(u8, Option<Oti>)> {
    let encoding_id = reader.u8()?;
    let mut transfer_length = reader.u64()?;
    let symbol_size = reader.u16()?;
    let [a, b, c, d] = reader.array()?;
    let reed_solomon = |code| FecScheme::ReedSolomon {
        code,
        max_source_block_length: u16::from_be_bytes([a, b]),
        max_encoding_symbols: u16::from_be_bytes([c, d]),
    };
    let scheme = match encoding_id {
        0 => FecScheme::NoCode { max_source_block_length: u32::from_be_bytes([a, b, c, d]) },
        6 => FecScheme::RaptorQ {
            source_blocks: a,
            sub_blocks: u16::from_be_bytes([b, c]),
            alignment: d,
        },
        5 => reed_solomon(ReedSolomonCode::Rfc5510),
        129 => {
            let instance_id = (transfer_length >> 48) as u16;
            transfer_length &= (1 << 48) - 1;
            let Some(code) = ReedSolomonCode::of_instance(instance_id) else {
                return Some((encoding_id, None));
            };
            reed_solomon(code)
        }
        _ => return Some((encoding_id, None)),
    };
    Some((encoding_id, Some(Oti { transfer_length, symbol_size, scheme })))
}

pub(crate) fn emit(oti: &Oti, out: &mut Vec<u8>) {
    out.push(oti.scheme.encoding_id());
    let instance_id = match oti.scheme {
        FecScheme::ReedSolomon { code, .. } => code.instance_id().unwrap_or(0),
        _ => 0,
    };
    out.extend((u64::from(instance_id) << 48 | oti.transfer_length).to_be_bytes());
    out.extend(oti.symbol_size.to_be_bytes());
    match oti.scheme {
        FecScheme::NoCode { max_source_block_length } => {
            out.extend(max_source_block_length.to_be_bytes());
        }
        FecScheme::RaptorQ { source_blocks, sub_blocks, alignment } => {
            out.push(source_blocks);
            out.extend(sub_blocks.to_be_bytes());
            out.push(alignment);
        }
        // Their parameters have no place here: a receiver refuses the FEC Encoding ID.
        FecScheme::Tornado { .. } | FecScheme::Lt { .. } => out.extend([0; 4]),
        FecScheme::ReedSolomon { max_source_block_length, max_encoding_symbols, .. } => {
            out.extend(max_source_block_length.to_be_bytes());
            out.extend(max_encoding_symbols.to_be_bytes());
        }
    }
}
