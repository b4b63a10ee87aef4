//! EXT_FTI: FEC Object Transmission Information in a header (RFC 5775, section 4.2). The contents
//! are those of RFC 5445, section 3.2.2 for Compact No-Code, RFC 5053, section 3.2 for Raptor,
//! RFC 6330, section 3.3 for RaptorQ, and RFC 5510 and RFC 5445, section 5.2.2 for Reed-Solomon.
//! Tornado and LT also use the latter.
//!
//! ```text
//!  FEC ID 0                                FEC ID 6
//! +--------+--------+-----------------+   +--------+--------+-----------------+
//! |   64   |   4    |  transfer       |   |   64   |   4    |  transfer       |
//! |       length, 48 bits             |   |   length, 40 bits        |    0   |
//! |        0        |        E        |   |        T        |   Z    |   N,   |
//! |                 B                 |   |  16    |   Al   |        0        |
//! +-----------------------------------+   +-----------------------------------+
//! ```
//! (In the right column `N` takes the last byte of the third word and the first of the fourth.)
//!
//! ```text
//!  FEC ID 1
//! +--------+--------+-----------------+
//! |   64   |   4    |  transfer       |
//! |       length, 48 bits             |
//! |        0        |        T        |
//! |        Z        |   N    |   Al   |
//! +-----------------------------------+
//! ```
//!
//! ```text
//!  FEC ID 5                                FEC ID 129
//! +--------+--------+-----------------+   +--------+--------+-----------------+
//! |   64   |   3    |  transfer       |   |   64   |   4    |  transfer       |
//! |       length, 48 bits             |   |       length, 48 bits             |
//! |        E        |   B    | max_n  |   | FEC Instance ID |        E        |
//! +-----------------------------------+   |        B        |      max_n      |
//!                                         +-----------------------------------+
//! ```
//!
//! ```text
//!  FEC ID 128: Tornado (L = 3, 7 words), LT (L = 6, 10 words)
//! +--------+--------+-----------------+
//! |   64   | 4 + L  |  transfer       |
//! |       length, 48 bits             |
//! | FEC Instance ID |        E        |
//! |                 B                 |
//! |   L    |  information on the code |   L words, zeros at the end
//! |                ...                |
//! +-----------------------------------+
//! ```

use crate::bytes::{Reader, put_uint, word_bytes};
use crate::extension::HET_FTI;
use fontana_fec::{CodeError, EncodingId, FecScheme, Information, Oti, SchemeParameters};

/// Number of words of the extension, without those that FEC Encoding ID 128 adds.
const fn words(encoding_id: EncodingId) -> u8 {
    match encoding_id {
        EncodingId::RFC_5510 => 3,
        _ => 4,
    }
}

/// Number of words that FEC Encoding ID 128 adds: a byte with this number, then the information.
const fn information_words(information_size: usize) -> u8 {
    information_size.saturating_add(1).div_ceil(4) as u8
}

/// Reason why EXT_FTI cannot be parsed or emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FtiError {
    /// An unsupported code.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// A length of the extension that is not that of the scheme.
    #[error("EXT_FTI has {actual} bytes, {expected} are right for FEC Encoding ID {encoding_id}")]
    Length {
        /// FEC Encoding ID of the scheme.
        encoding_id: u8,
        /// Size that the scheme requires, in bytes after type and length.
        expected: usize,
        /// Size of the content in bytes.
        actual: usize,
    },
    /// A transfer length that does not fit its field.
    #[error("a transfer length of {actual} does not fit {bits} bits")]
    TransferLength {
        /// Length of the object in bytes.
        actual: u64,
        /// Width of the field in bits.
        bits: u32,
    },
}

/// Parses the content of EXT_FTI ([`Extensions::fti`](crate::Extensions::fti)) for a FEC Encoding
/// ID. The values are unchecked; [`Oti::layout`] checks them.
///
/// # Errors
/// [`FtiError::Code`] for an unsupported code, [`FtiError::Length`].
pub fn parse(encoding_id: EncodingId, content: &[u8]) -> Result<Oti, FtiError> {
    // After type and length.
    let expected = word_bytes(words(encoding_id)).saturating_sub(2);
    let length = FtiError::Length { encoding_id: encoding_id.0, expected, actual: content.len() };
    let mut reader = Reader::new(content);
    let parsed = match encoding_id {
        EncodingId::NO_CODE => parse_no_code(&mut reader),
        EncodingId::RAPTOR => parse_raptor(&mut reader),
        EncodingId::RFC_5510 => parse_rfc5510(&mut reader),
        EncodingId::RAPTORQ => parse_raptorq(&mut reader),
        EncodingId::SMALL_BLOCK => parse_small_block(&mut reader),
        EncodingId::EXPANDABLE => return parse_expandable(content),
        _ => return Err(CodeError::EncodingId(encoding_id.0).into()),
    };
    let oti = parsed.ok_or(length)?.oti()?;
    if reader.is_empty() { Ok(oti) } else { Err(length) }
}

/// The parsed fields of EXT_FTI.
struct Fti {
    transfer_length: u64,
    symbol_size: u16,
    parameters: SchemeParameters,
}

impl Fti {
    fn oti(&self) -> Result<Oti, CodeError> {
        let Self { transfer_length, symbol_size, ref parameters } = *self;
        let scheme = FecScheme::from_parameters(parameters)?;
        Ok(Oti { transfer_length, symbol_size, scheme })
    }
}

fn parse_rfc5510(reader: &mut Reader<'_>) -> Option<Fti> {
    let transfer_length = reader.uint(6)? as u64;
    let symbol_size = reader.u16()?;
    let parameters = SchemeParameters {
        max_source_block_length: Some(reader.u8()?.into()),
        max_encoding_symbols: Some(reader.u8()?.into()),
        ..SchemeParameters::new(EncodingId::RFC_5510, None)
    };
    Some(Fti { transfer_length, symbol_size, parameters })
}

fn parse_small_block(reader: &mut Reader<'_>) -> Option<Fti> {
    let transfer_length = reader.uint(6)? as u64;
    let instance_id = reader.u16()?;
    let symbol_size = reader.u16()?;
    let parameters = SchemeParameters {
        max_source_block_length: Some(reader.u16()?.into()),
        max_encoding_symbols: Some(reader.u16()?),
        ..SchemeParameters::new(EncodingId::SMALL_BLOCK, Some(instance_id))
    };
    Some(Fti { transfer_length, symbol_size, parameters })
}

fn parse_expandable(content: &[u8]) -> Result<Oti, FtiError> {
    let (encoding_id, actual) = (EncodingId::EXPANDABLE, content.len());
    // The size that all instances have, checked before the instance is known.
    let shortest = word_bytes(words(encoding_id)).saturating_sub(2);
    let length = |expected| FtiError::Length { encoding_id: encoding_id.0, expected, actual };
    let mut reader = Reader::new(content);
    let mut parse_common = || {
        let transfer_length = reader.uint(6)? as u64;
        Some((transfer_length, reader.u16()?, reader.u16()?, reader.u32()?))
    };
    let (transfer_length, instance_id, symbol_size, max_source_block_length) =
        parse_common().ok_or(length(shortest))?;
    let size = FecScheme::information_size(encoding_id, Some(instance_id))?;
    let words = information_words(size);
    let length = length(shortest.saturating_add(word_bytes(words)));
    if reader.rest().len() != word_bytes(words) || reader.u8() != Some(words) {
        return Err(length);
    }
    let parameters = SchemeParameters {
        max_source_block_length: Some(max_source_block_length),
        information: reader.take(size).and_then(Information::new).ok_or(length)?,
        ..SchemeParameters::new(encoding_id, Some(instance_id))
    };
    Ok(Fti { transfer_length, symbol_size, parameters }.oti()?)
}

fn parse_no_code(reader: &mut Reader<'_>) -> Option<Fti> {
    let transfer_length = reader.uint(6)? as u64;
    let _reserved = reader.u16()?;
    let symbol_size = reader.u16()?;
    let parameters = SchemeParameters {
        max_source_block_length: Some(reader.u32()?),
        ..SchemeParameters::new(EncodingId::NO_CODE, None)
    };
    Some(Fti { transfer_length, symbol_size, parameters })
}

fn parse_raptor(reader: &mut Reader<'_>) -> Option<Fti> {
    let transfer_length = reader.uint(6)? as u64;
    let _reserved = reader.u16()?;
    let symbol_size = reader.u16()?;
    let parameters = SchemeParameters {
        information: Information::new(reader.take(4)?)?,
        ..SchemeParameters::new(EncodingId::RAPTOR, None)
    };
    Some(Fti { transfer_length, symbol_size, parameters })
}

fn parse_raptorq(reader: &mut Reader<'_>) -> Option<Fti> {
    let transfer_length = reader.uint(5)? as u64;
    let _reserved = reader.u8()?;
    let symbol_size = reader.u16()?;
    let parameters = SchemeParameters {
        information: Information::new(reader.take(4)?)?,
        ..SchemeParameters::new(EncodingId::RAPTORQ, None)
    };
    let _padding = reader.u16()?;
    Some(Fti { transfer_length, symbol_size, parameters })
}

/// Size of the transfer length in bytes.
const fn length_size(encoding_id: EncodingId) -> usize {
    match encoding_id {
        EncodingId::RAPTORQ => 5,
        _ => 6,
    }
}

/// Checks that the transfer length fits its field. That of every valid object does.
pub(crate) fn check(oti: &Oti) -> Result<(), FtiError> {
    let bits = (length_size(oti.scheme.profile().encoding_id) as u32) << 3;
    if oti.transfer_length >> bits != 0 {
        return Err(FtiError::TransferLength { actual: oti.transfer_length, bits });
    }
    Ok(())
}

/// Appends the extension, type and length included. The caller has checked `oti`.
pub(crate) fn emit(oti: &Oti, out: &mut Vec<u8>) {
    let parameters = oti.scheme.parameters();
    let (encoding_id, information) = (parameters.encoding_id, parameters.information.bytes());
    let more = match encoding_id {
        EncodingId::EXPANDABLE => information_words(information.len()),
        _ => 0,
    };
    out.extend([HET_FTI, words(encoding_id).saturating_add(more)]);
    put_uint(oti.transfer_length.into(), length_size(encoding_id), out);
    match encoding_id {
        EncodingId::NO_CODE | EncodingId::RAPTOR => out.extend([0; 2]),
        EncodingId::RAPTORQ => out.push(0),
        _ => out.extend(parameters.instance_id.into_iter().flat_map(u16::to_be_bytes)),
    }
    out.extend(oti.symbol_size.to_be_bytes());
    // A valid object's numbers fit.
    let (length, n) = (parameters.max_source_block_length, parameters.max_encoding_symbols);
    let (length, n) = (length.unwrap_or(0), n.unwrap_or(0));
    match encoding_id {
        EncodingId::RAPTOR => out.extend(information),
        EncodingId::RAPTORQ => {
            out.extend(information);
            out.extend([0; 2]);
        }
        EncodingId::RFC_5510 => out.extend([length as u8, n as u8]),
        EncodingId::SMALL_BLOCK => {
            out.extend((length as u16).to_be_bytes());
            out.extend(n.to_be_bytes());
        }
        _ => out.extend(length.to_be_bytes()),
    }
    if more > 0 {
        let end = out.len().saturating_add(word_bytes(more));
        out.push(more);
        out.extend(information);
        out.resize(end, 0);
    }
}
