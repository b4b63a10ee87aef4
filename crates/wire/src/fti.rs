//! EXT_FTI: FEC Object Transmission Information in a header (RFC 5775, section 4.2). The contents
//! are those of RFC 5445, section 3.2.2 for Compact No-Code, RFC 6330, section 3.3 for RaptorQ, and
//! RFC 5510 and RFC 5445, section 5.2.2 for Reed-Solomon. Tornado and LT also use the latter.
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

use crate::bytes::{Reader, put_uint};
use crate::extension::HET_FTI;
use crate::instance::{self, CodeError, EXPANDABLE, SMALL_BLOCK};
use fontana_fec::{FecScheme, Oti, ReedSolomonCode};

/// Number of words of the extension, without those that FEC Encoding ID 128 adds.
const fn words(encoding_id: u8) -> u8 {
    if encoding_id == 5 { 3 } else { 4 }
}

/// Number of words that FEC Encoding ID 128 adds: a byte with this number, then the information.
const fn instance_words(information_size: usize) -> u8 {
    (1 + information_size).div_ceil(4) as u8
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
pub fn parse(encoding_id: u8, content: &[u8]) -> Result<Oti, FtiError> {
    // Bytes after type and length.
    let expected = 4 * usize::from(words(encoding_id)) - 2;
    let length = FtiError::Length { encoding_id, expected, actual: content.len() };
    let mut reader = Reader::new(content);
    let oti = match encoding_id {
        0 => parse_no_code(&mut reader),
        5 => parse_rfc5510(&mut reader),
        6 => parse_raptorq(&mut reader),
        SMALL_BLOCK => Some(parse_small_block(&mut reader).ok_or(length)??),
        EXPANDABLE => return parse_expandable(content),
        _ => return Err(CodeError::EncodingId(encoding_id).into()),
    };
    oti.filter(|_| reader.is_empty()).ok_or(length)
}

fn parse_rfc5510(reader: &mut Reader<'_>) -> Option<Oti> {
    let transfer_length = reader.uint(6)? as u64;
    let symbol_size = reader.u16()?;
    let scheme = FecScheme::ReedSolomon {
        code: ReedSolomonCode::Rfc5510,
        max_source_block_length: reader.u8()?.into(),
        max_encoding_symbols: reader.u8()?.into(),
    };
    Some(Oti { transfer_length, symbol_size, scheme })
}

fn parse_small_block(reader: &mut Reader<'_>) -> Option<Result<Oti, CodeError>> {
    let transfer_length = reader.uint(6)? as u64;
    let instance_id = reader.u16()?;
    let symbol_size = reader.u16()?;
    let (max_source_block_length, max_encoding_symbols) = (reader.u16()?, reader.u16()?);
    let code = ReedSolomonCode::of_instance(instance_id);
    Some(code.ok_or(CodeError::instance(SMALL_BLOCK, instance_id)).map(|code| Oti {
        transfer_length,
        symbol_size,
        scheme: FecScheme::ReedSolomon { code, max_source_block_length, max_encoding_symbols },
    }))
}

fn parse_expandable(content: &[u8]) -> Result<Oti, FtiError> {
    let (encoding_id, actual) = (EXPANDABLE, content.len());
    // The size that all instances have at least; the instance is not known yet.
    let shortest = 4 * usize::from(words(EXPANDABLE)) - 2;
    let length = |expected| FtiError::Length { encoding_id, expected, actual };
    let mut reader = Reader::new(content);
    let mut parse_common = || {
        let transfer_length = reader.uint(6)? as u64;
        Some((transfer_length, reader.u16()?, reader.u16()?, reader.u32()?))
    };
    let (transfer_length, instance_id, symbol_size, max_source_block_length) =
        parse_common().ok_or(length(shortest))?;
    let size = instance::size(instance_id).ok_or(CodeError::instance(EXPANDABLE, instance_id))?;
    let words = instance_words(size);
    let length = length(shortest + 4 * usize::from(words));
    if reader.u8() != Some(words) || reader.rest().len() != 4 * usize::from(words) - 1 {
        return Err(length);
    }
    let scheme = instance::parse(instance_id, max_source_block_length, &mut reader);
    Ok(Oti { transfer_length, symbol_size, scheme: scheme.ok_or(length)?? })
}

fn parse_no_code(reader: &mut Reader<'_>) -> Option<Oti> {
    let transfer_length = reader.uint(6)? as u64;
    let _reserved = reader.u16()?;
    let symbol_size = reader.u16()?;
    let scheme = FecScheme::NoCode { max_source_block_length: reader.u32()? };
    Some(Oti { transfer_length, symbol_size, scheme })
}

fn parse_raptorq(reader: &mut Reader<'_>) -> Option<Oti> {
    let transfer_length = reader.uint(5)? as u64;
    let _reserved = reader.u8()?;
    let symbol_size = reader.u16()?;
    let scheme = FecScheme::RaptorQ {
        source_blocks: reader.u8()?,
        sub_blocks: reader.u16()?,
        alignment: reader.u8()?,
    };
    let _padding = reader.u16()?;
    Some(Oti { transfer_length, symbol_size, scheme })
}

/// Size of the transfer length in bytes.
const fn length_size(scheme: FecScheme) -> usize {
    match scheme {
        FecScheme::RaptorQ { .. } => 5,
        FecScheme::NoCode { .. }
        | FecScheme::ReedSolomon { .. }
        | FecScheme::Tornado { .. }
        | FecScheme::Lt { .. } => 6,
    }
}

/// Checks that the transfer length fits its field. That of every valid object does.
pub(crate) fn check(oti: &Oti) -> Result<(), FtiError> {
    let bits = 8 * length_size(oti.scheme) as u32;
    if oti.transfer_length >> bits != 0 {
        return Err(FtiError::TransferLength { actual: oti.transfer_length, bits });
    }
    Ok(())
}

/// Appends the extension, type and length included. The caller has checked `oti`.
pub(crate) fn emit(oti: &Oti, out: &mut Vec<u8>) {
    let encoding_id = oti.scheme.encoding_id();
    let mut information = Vec::new();
    instance::emit(oti.scheme, &mut information);
    let more = if encoding_id == EXPANDABLE { instance_words(information.len()) } else { 0 };
    out.extend([HET_FTI, words(encoding_id) + more]);
    put_uint(oti.transfer_length.into(), length_size(oti.scheme), out);
    match oti.scheme {
        FecScheme::NoCode { max_source_block_length } => {
            out.extend([0; 2]);
            out.extend(oti.symbol_size.to_be_bytes());
            out.extend(max_source_block_length.to_be_bytes());
        }
        FecScheme::RaptorQ { source_blocks, sub_blocks, alignment } => {
            out.push(0);
            out.extend(oti.symbol_size.to_be_bytes());
            out.push(source_blocks);
            out.extend(sub_blocks.to_be_bytes());
            out.extend([alignment, 0, 0]);
        }
        FecScheme::Tornado { max_source_block_length, .. }
        | FecScheme::Lt { max_source_block_length, .. } => {
            out.extend(instance::id_of(oti.scheme).into_iter().flat_map(u16::to_be_bytes));
            out.extend(oti.symbol_size.to_be_bytes());
            out.extend(max_source_block_length.to_be_bytes());
            out.push(more);
            information.resize(4 * usize::from(more) - 1, 0);
            out.extend(information);
        }
        FecScheme::ReedSolomon { code, max_source_block_length, max_encoding_symbols } => {
            out.extend(code.instance_id().into_iter().flat_map(u16::to_be_bytes));
            out.extend(oti.symbol_size.to_be_bytes());
            // ID 5 has 8 bits for each number. The numbers of a valid object fit.
            let skipped = usize::from(code.instance_id().is_none());
            out.extend(max_source_block_length.to_be_bytes().into_iter().skip(skipped));
            out.extend(max_encoding_symbols.to_be_bytes().into_iter().skip(skipped));
        }
    }
}
