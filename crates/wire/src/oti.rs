//! Object transmission information in session heads and manifests: 15 bytes or more, depending on
//! the code.
//!
//! ```text
//! u8 FEC Encoding ID, u64 transfer length, u16 symbol size, then for
//!   ID 0:   u32 maximum source block length
//!   ID 5:   u16 maximum source block length, u16 maximum number of encoding symbols
//!   ID 6:   u8 source blocks, u16 sub-blocks, u8 alignment
//!   ID 128: u16 FEC Instance ID, u32 maximum source block length, then what the instance needs
//!   ID 129: u16 FEC Instance ID, then as ID 5
//! ```

use crate::bytes::Reader;
use crate::instance::{self, CodeError, EXPANDABLE, SMALL_BLOCK};
use fontana_fec::{FecScheme, Oti, ReedSolomonCode};

/// Size in bytes of the shortest encoding, that of FEC Encoding IDs 0, 5 and 6.
pub(crate) const MIN_SIZE: usize = 15;

/// Parses transmission information; `None` if the bytes end too early. After an unknown code
/// parsing must stop, because the size of its parameters is not known.
pub(crate) fn parse(reader: &mut Reader<'_>) -> Option<Result<Oti, CodeError>> {
    let encoding_id = reader.u8()?;
    let transfer_length = reader.u64()?;
    let symbol_size = reader.u16()?;
    let scheme = match encoding_id {
        0 => Ok(FecScheme::NoCode { max_source_block_length: reader.u32()? }),
        6 => Ok(FecScheme::RaptorQ {
            source_blocks: reader.u8()?,
            sub_blocks: reader.u16()?,
            alignment: reader.u8()?,
        }),
        5 => Ok(parse_reed_solomon(ReedSolomonCode::Rfc5510, reader)?),
        SMALL_BLOCK => {
            let id = reader.u16()?;
            match ReedSolomonCode::of_instance(id) {
                Some(code) => Ok(parse_reed_solomon(code, reader)?),
                None => Err(CodeError::instance(SMALL_BLOCK, id)),
            }
        }
        EXPANDABLE => {
            let (id, max_source_block_length) = (reader.u16()?, reader.u32()?);
            instance::parse(id, max_source_block_length, reader)?
        }
        other => Err(CodeError::EncodingId(other)),
    };
    Some(scheme.map(|scheme| Oti { transfer_length, symbol_size, scheme }))
}

fn parse_reed_solomon(code: ReedSolomonCode, reader: &mut Reader<'_>) -> Option<FecScheme> {
    Some(FecScheme::ReedSolomon {
        code,
        max_source_block_length: reader.u16()?,
        max_encoding_symbols: reader.u16()?,
    })
}

pub(crate) fn emit(oti: &Oti, out: &mut Vec<u8>) {
    out.push(oti.scheme.encoding_id());
    out.extend(oti.transfer_length.to_be_bytes());
    out.extend(oti.symbol_size.to_be_bytes());
    out.extend(instance::id_of(oti.scheme).into_iter().flat_map(u16::to_be_bytes));
    match oti.scheme {
        FecScheme::NoCode { max_source_block_length }
        | FecScheme::Tornado { max_source_block_length, .. }
        | FecScheme::Lt { max_source_block_length, .. } => {
            out.extend(max_source_block_length.to_be_bytes());
        }
        FecScheme::RaptorQ { source_blocks, sub_blocks, alignment } => {
            out.push(source_blocks);
            out.extend(sub_blocks.to_be_bytes());
            out.push(alignment);
        }
        FecScheme::ReedSolomon { max_source_block_length, max_encoding_symbols, .. } => {
            out.extend(max_source_block_length.to_be_bytes());
            out.extend(max_encoding_symbols.to_be_bytes());
        }
    }
    instance::emit(oti.scheme, out);
}
