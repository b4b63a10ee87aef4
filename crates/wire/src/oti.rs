//! Object transmission information in session heads and manifests: 15 bytes or more, depending on
//! the code.
//!
//! ```text
//! u8 FEC Encoding ID, u64 transfer length, u16 symbol size, then for
//!   ID 0:   u32 maximum source block length
//!   ID 1:   u16 source blocks, u8 sub-blocks, u8 alignment
//!   ID 5:   u16 maximum source block length, u16 maximum number of encoding symbols
//!   ID 6:   u8 source blocks, u16 sub-blocks, u8 alignment
//!   ID 128: u16 FEC Instance ID, u32 maximum source block length, then what the instance needs
//!   ID 129: u16 FEC Instance ID, then as ID 5
//! ```

use crate::bytes::Reader;
use fontana_fec::{CodeError, EncodingId, FecScheme, Information, Oti, SchemeParameters};

/// Size in bytes of the shortest encoding, that of FEC Encoding IDs 0, 1, 5 and 6.
pub(crate) const MIN_SIZE: usize = 15;

/// Parses transmission information; `None` if the bytes end too early. After an unknown code
/// parsing must stop, because the size of its parameters is not known.
pub(crate) fn parse(reader: &mut Reader<'_>) -> Option<Result<Oti, CodeError>> {
    let encoding_id = EncodingId(reader.u8()?);
    let transfer_length = reader.u64()?;
    let symbol_size = reader.u16()?;
    let scheme = match parse_parameters(encoding_id, reader)? {
        Ok(parameters) => FecScheme::from_parameters(&parameters),
        Err(error) => Err(error),
    };
    Some(scheme.map(|scheme| Oti { transfer_length, symbol_size, scheme }))
}

fn parse_parameters(
    encoding_id: EncodingId,
    reader: &mut Reader<'_>,
) -> Option<Result<SchemeParameters, CodeError>> {
    let instance_id = match encoding_id {
        EncodingId::EXPANDABLE | EncodingId::SMALL_BLOCK => Some(reader.u16()?),
        _ => None,
    };
    let mut parameters = SchemeParameters::new(encoding_id, instance_id);
    if let EncodingId::NO_CODE | EncodingId::EXPANDABLE = encoding_id {
        parameters.max_source_block_length = Some(reader.u32()?);
    }
    let information_size = match FecScheme::information_size(encoding_id, instance_id) {
        Ok(size) => size,
        Err(error) => return Some(Err(error)),
    };
    if let EncodingId::RFC_5510 | EncodingId::SMALL_BLOCK = encoding_id {
        parameters.max_source_block_length = Some(reader.u16()?.into());
        parameters.max_encoding_symbols = Some(reader.u16()?);
    }
    parameters.information = Information::new(reader.take(information_size)?)?;
    Some(Ok(parameters))
}

pub(crate) fn emit(oti: &Oti, out: &mut Vec<u8>) {
    let parameters = oti.scheme.parameters();
    out.push(parameters.encoding_id.0);
    out.extend(oti.transfer_length.to_be_bytes());
    out.extend(oti.symbol_size.to_be_bytes());
    out.extend(parameters.instance_id.into_iter().flat_map(u16::to_be_bytes));
    let length = parameters.max_source_block_length;
    if let EncodingId::RFC_5510 | EncodingId::SMALL_BLOCK = parameters.encoding_id {
        out.extend(length.into_iter().flat_map(|length| (length as u16).to_be_bytes()));
    } else {
        out.extend(length.into_iter().flat_map(u32::to_be_bytes));
    }
    out.extend(parameters.max_encoding_symbols.into_iter().flat_map(u16::to_be_bytes));
    out.extend(parameters.information.bytes());
}
