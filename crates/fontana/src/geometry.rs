//! How files are cut into objects, blocks and symbols.
//!
//! A block of `k` symbols is complete when `k` of its symbols are received. The receiver is
//! complete when its slowest block is: with B blocks and loss p it needs `1 + z(B) sqrt(p / k)`
//! times the symbols, z(B) being the normal quantile of the worst of B. Longer blocks are therefore
//! better, until they exceed the processor's caches; 10 000 symbols cost 0.6 % at 10 % loss.

use fontana_fec::codes::lt::{self, Lt, LtCode};
use fontana_fec::codes::no_code::{self, NoCode};
use fontana_fec::codes::raptor::{self, Raptor};
use fontana_fec::codes::raptorq::{self, RaptorQ};
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{self, Tornado, TornadoCode};
use fontana_fec::{EncodingId, FecScheme, MAX_TRANSFER_LENGTH, Oti};
use fontana_wire::SEAL_BYTES;
use std::sync::LazyLock;

/// Bytes of EXT_FTI, which packets of control objects have.
pub(crate) const FTI_BYTES: u16 = 16;

/// Largest symbol of a control object that only Fontana reads: head, manifest, roll calls. Sealed,
/// and with all headers, it fits 1280 bytes, the least MTU of IPv6. So a receiver behind a tunnel
/// learns what is sent, and how large its packets are, although these do not arrive.
const MAX_CONTROL_SYMBOL: u16 = 1280 - 48 - 16 - FTI_BYTES - 4 - SEAL_BYTES as u16;

/// Bytes of the symbols of control objects, in a session with symbols of this size.
pub(crate) fn control_symbol_size(symbol_size: u16) -> u16 {
    symbol_size.saturating_sub(FTI_BYTES).min(MAX_CONTROL_SYMBOL)
}

/// Default number of source symbols per block.
pub const DEFAULT_BLOCK_SYMBOLS: u32 = 10_000;

/// At least one symbol of a Reed-Solomon block is a repair symbol.
const REED_SOLOMON_MAX_BLOCK_SYMBOLS: u32 = MAX_N as u32 - 1;
/// Encoding symbols of a Reed-Solomon block.
const MAX_N: u16 = ReedSolomonCode::Rfc5510.max_encoding_symbols();
/// Half of the symbols are repair symbols: one cycle is enough for a receiver that loses less than
/// half of it.
const REED_SOLOMON_BLOCK_SYMBOLS: u32 = 128;
/// Largest number of blocks, as for No-Code: enough for 11 GB, and within what a receiver tracks.
const REED_SOLOMON_MAX_BLOCKS: u32 = 1 << 16;
/// Blocks of fewer source symbols need so many more symbols with Tornado or LT (a tenth at 1000,
/// twice as many at 20) that one short block would delay all receivers.
const SPARSE_MIN_SYMBOLS: u32 = 1_000;
/// Raptor has no blocks of fewer source symbols (RFC 5053, section 5.7).
const RAPTOR_MIN_SYMBOLS: u32 = 4;
/// Seed of LT's sums: any value works, but all senders of one object must have the same one.
const SPARSE_SEED: u64 = 0;
/// Symbol alignment: the recommendation of RFC 5053, section 6.2, and RFC 6330, section 4.3, and
/// what deployed decoders expect.
const ALIGNMENT: u8 = 4;

/// The erasure code of the content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// RaptorQ (RFC 6330): a fountain code.
    #[default]
    RaptorQ,
    /// Raptor (RFC 5053, FEC Encoding ID 1): a fountain code of 3GPP's and DVB's services, with
    /// blocks of at most 8192 symbols.
    Raptor,
    /// Reed-Solomon (RFC 5510, FEC Encoding ID 5): blocks of at most 254 symbols. The longest has
    /// 255 encoding symbols, which are repeated.
    ReedSolomon,
    /// Tornado: source symbols and as many checks as the stretch factor determines, repeated.
    Tornado(TornadoCode),
    /// LT for receivers that only peel: a fountain code, the fastest to decode.
    Lt,
    /// LT for receivers that also eliminate: a fountain code that needs few more than `k` symbols.
    LtStrict,
    /// No code (RFC 5445): source symbols, repeated.
    None,
}

impl Code {
    /// Largest number of source symbols that may be requested for a block.
    pub(crate) const fn max_block_symbols(self) -> u32 {
        match self {
            // Requests above Reed-Solomon's own limit mean its default, above Raptor's that limit.
            Self::RaptorQ | Self::Raptor | Self::ReedSolomon => raptorq::MAX_SOURCE_SYMBOLS,
            Self::Tornado(_) => tornado::MAX_SOURCE_SYMBOLS,
            Self::Lt | Self::LtStrict => lt::MAX_SOURCE_SYMBOLS,
            Self::None => no_code::MAX_SOURCE_SYMBOLS,
        }
    }

    /// Largest number of blocks of an object.
    const fn max_blocks(self) -> u32 {
        match self {
            Self::RaptorQ => raptorq::MAX_BLOCKS,
            Self::Raptor => raptor::MAX_BLOCKS,
            Self::ReedSolomon => REED_SOLOMON_MAX_BLOCKS,
            Self::Tornado(_) => tornado::MAX_BLOCKS,
            Self::Lt | Self::LtStrict => lt::MAX_BLOCKS,
            Self::None => no_code::MAX_BLOCKS,
        }
    }

    pub(crate) const fn encoding_id(self) -> EncodingId {
        match self {
            Self::RaptorQ => EncodingId::RAPTORQ,
            Self::Raptor => EncodingId::RAPTOR,
            Self::ReedSolomon => EncodingId::RFC_5510,
            Self::Tornado(_) | Self::Lt | Self::LtStrict => EncodingId::EXPANDABLE,
            Self::None => EncodingId::NO_CODE,
        }
    }
}

/// The allowed lengths of blocks, for messages.
pub(crate) fn block_lengths() -> &'static str {
    static LENGTHS: LazyLock<String> = LazyLock::new(|| {
        let [raptorq, tornado, none, lt] =
            [Code::RaptorQ, Code::Tornado(TornadoCode::Z), Code::None, Code::Lt]
                .map(Code::max_block_symbols);
        format!("1 to {raptorq}; to {tornado} with Tornado, {none} without a code, {lt} with LT")
    });
    &LENGTHS
}

/// Largest number of bytes of one object.
pub(crate) fn max_object_size(code: Code, symbol_size: u16) -> u64 {
    let block_symbols = match code {
        Code::ReedSolomon => REED_SOLOMON_MAX_BLOCK_SYMBOLS,
        Code::Raptor => raptor::MAX_SOURCE_SYMBOLS,
        _ => code.max_block_symbols(),
    };
    let symbols = u64::from(code.max_blocks()) * u64::from(block_symbols);
    let size = u64::from(symbol_size);
    (symbols * size).min(MAX_TRANSFER_LENGTH / size.max(1) * size)
}

/// The parameters of an object of `length` bytes, at most [`max_object_size`], whose blocks have
/// about `block_symbols` source symbols: more if there would be too many blocks, and with
/// Reed-Solomon 128 if that is more than its blocks can have. Objects too short for a block of
/// Tornado or LT are sent with RaptorQ, and those too short for Raptor without a code.
pub(crate) fn object_oti(code: Code, length: u64, symbol_size: u16, block_symbols: u32) -> Oti {
    let total = length.div_ceil(u64::from(symbol_size.max(1)));
    let is_short = total < SPARSE_MIN_SYMBOLS.min(block_symbols).into();
    let is_sparse = code.encoding_id() == EncodingId::EXPANDABLE;
    let code = match code {
        _ if is_sparse && is_short => Code::RaptorQ,
        Code::Raptor if total < RAPTOR_MIN_SYMBOLS.into() => Code::None,
        code => code,
    };
    let scheme = match code {
        Code::RaptorQ => {
            let wanted = u64::from(block_symbols).clamp(1, raptorq::MAX_SOURCE_SYMBOLS.into());
            let blocks = total.div_ceil(wanted).clamp(1, raptorq::MAX_BLOCKS.into());
            let alignment = alignment(symbol_size);
            FecScheme::RaptorQ(RaptorQ { source_blocks: blocks as u8, sub_blocks: 1, alignment })
        }
        Code::Raptor => {
            // Blocks of at most so many symbols have at least half as many.
            let least = 2 * RAPTOR_MIN_SYMBOLS;
            let wanted = u64::from(block_symbols.clamp(least, raptor::MAX_SOURCE_SYMBOLS));
            let blocks = total.div_ceil(wanted).clamp(1, raptor::MAX_BLOCKS.into());
            let alignment = alignment(symbol_size);
            FecScheme::Raptor(Raptor { source_blocks: blocks as u16, sub_blocks: 1, alignment })
        }
        Code::ReedSolomon => {
            let wanted = match block_symbols {
                wanted @ 1..=REED_SOLOMON_MAX_BLOCK_SYMBOLS => wanted,
                _ => REED_SOLOMON_BLOCK_SYMBOLS,
            };
            let least = total.div_ceil(REED_SOLOMON_MAX_BLOCKS.into());
            FecScheme::ReedSolomon(ReedSolomon {
                code: ReedSolomonCode::Rfc5510,
                max_source_block_length: u64::from(wanted).max(least).min(MAX_N.into()) as u16,
                max_encoding_symbols: MAX_N,
            })
        }
        Code::Tornado(tornado) => {
            let (max_source_block_length, _) = sparse_blocks(code, total, block_symbols);
            FecScheme::Tornado(Tornado { max_source_block_length, code: tornado })
        }
        Code::Lt | Code::LtStrict => {
            let (max_source_block_length, k) = sparse_blocks(code, total, block_symbols);
            let lt = if code == Code::Lt { LtCode::fast } else { LtCode::strict };
            FecScheme::Lt(Lt { max_source_block_length, code: lt(k, SPARSE_SEED) })
        }
        Code::None => {
            let least = total.div_ceil(no_code::MAX_BLOCKS.into()).max(1);
            let length =
                u64::from(block_symbols).max(least).min(no_code::MAX_SOURCE_SYMBOLS.into());
            FecScheme::NoCode(NoCode { max_source_block_length: length as u32 })
        }
    };
    Oti { transfer_length: length, symbol_size, scheme }
}

/// The alignment of symbols of this many bytes.
const fn alignment(symbol_size: u16) -> u8 {
    if symbol_size.is_multiple_of(ALIGNMENT as u16) { ALIGNMENT } else { 1 }
}

/// The limit of a block's length, and the length of the blocks, of `total` source symbols with
/// Tornado or LT. The sums are made for the length, not for the limit.
fn sparse_blocks(code: Code, total: u64, block_symbols: u32) -> (u32, u32) {
    let least = total.div_ceil(code.max_blocks().into()).max(1);
    let longest = u64::from(code.max_block_symbols());
    let max_source_block_length = u64::from(block_symbols).max(least).min(longest) as u32;
    let blocks = total.div_ceil(max_source_block_length.into()).max(1);
    (max_source_block_length, total.div_ceil(blocks) as u32)
}

/// The parameters of a control object of `length` bytes for other programs. Receivers of a session
/// without RaptorQ may not know that code, so its control objects have none.
pub(crate) fn plain_control_oti(code: Code, length: usize, symbol_size: u16) -> Oti {
    match code {
        Code::RaptorQ => fontana_proto::control_oti(length, symbol_size),
        _ => object_oti(Code::None, length as u64, symbol_size, 1 << 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_packets_fit_the_least_mtu_of_ipv6() {
        for (symbol_size, expected) in [(220, 204), (1176, 1160), (1344, 1160), (8192, 1160)] {
            let size = control_symbol_size(symbol_size);
            assert_eq!(size, expected);
            let headers = 40 + 8 + 16 + usize::from(FTI_BYTES) + 4 + SEAL_BYTES;
            assert!(headers + usize::from(size) <= 1280 && size.is_multiple_of(4));
        }
    }

    #[test]
    fn blocks_have_about_the_wanted_length_until_there_are_too_many() {
        let shape = |length| {
            let layout = object_oti(Code::RaptorQ, length, 1344, 10_000).layout().unwrap();
            (layout.block_count(), layout.max_source_symbols())
        };
        assert_eq!(shape(0), (0, 0));
        assert_eq!(shape(1), (1, 1));
        assert_eq!(shape(13_440_000), (1, 10_000));
        assert_eq!(shape(13_440_001), (2, 5_001));
        assert_eq!(shape(255 * 13_440_000), (255, 10_000));
        assert_eq!(shape(255 * 13_440_000 + 1), (255, 10_001));
        assert_eq!(shape(max_object_size(Code::RaptorQ, 1344)), (255, 56_403));
    }

    #[test]
    fn raptor_has_blocks_of_4_to_8192_symbols_and_shorter_objects_have_no_code() {
        let shape = |symbols: u64, block_symbols| {
            let oti = object_oti(Code::Raptor, symbols * 1344, 1344, block_symbols);
            let layout = oti.layout().unwrap();
            let id = oti.scheme.profile().encoding_id.0;
            (id, layout.block_count(), layout.max_source_symbols())
        };
        assert_eq!(shape(0, 10_000), (0, 0, 0));
        assert_eq!(shape(3, 10_000), (0, 1, 3));
        assert_eq!(shape(4, 10_000), (1, 1, 4));
        assert_eq!(shape(8_192, 10_000), (1, 1, 8_192));
        assert_eq!(shape(8_193, 10_000), (1, 2, 4_097));
        assert_eq!(shape(8_193, 1_000), (1, 9, 911));
        // The shortest blocks that may be requested have 4 and 5 symbols.
        assert_eq!(shape(9, 1), (1, 2, 5));
        assert_eq!(shape(65_535 * 8 + 1, 8), (1, 65_535, 9));
        assert_eq!(shape(65_535 * 8_192, 1), (1, 65_535, 8_192));
    }

    #[test]
    fn without_a_code_a_block_number_is_the_sixteen_bits_of_its_header() {
        let shape = |length, block_symbols| {
            let layout = object_oti(Code::None, length, 1344, block_symbols).layout().unwrap();
            (layout.block_count(), layout.max_source_symbols())
        };
        // 50 MiB are 39 010 symbols.
        let length = 50 << 20;
        assert_eq!(shape(length, 10_000), (4, 9_753));
        assert_eq!(shape(length, 64), (610, 64));
        assert_eq!(shape(length, 1), (39_010, 1));
        // At the largest number of blocks, blocks grow.
        let full = (1 << 16) * 64 * 1344;
        assert_eq!(shape(full, 64), (1 << 16, 64));
        assert_eq!(shape(full + 1, 64), (64_528, 65));
        assert_eq!(shape(max_object_size(Code::None, 1344), 1), (1 << 16, 1 << 16));
        assert_eq!(shape(0, 1), (0, 0));
    }

    #[test]
    fn reed_solomon_has_short_blocks_half_of_them_repair() {
        let shape = |length, block_symbols| {
            let oti = object_oti(Code::ReedSolomon, length, 1344, block_symbols);
            let layout = oti.layout().unwrap();
            let k = layout.max_source_symbols();
            (layout.block_count(), k, oti.scheme.block_profile(k).symbols_per_cycle)
        };
        // 10 MiB are 7 802 symbols.
        assert_eq!(shape(10 << 20, 10_000), (61, 128, 255));
        assert_eq!(shape(10 << 20, 254), (31, 252, 252));
        assert_eq!(shape(10 << 20, 255), (61, 128, 255));
        assert_eq!(shape(10 << 20, 20), (391, 20, 255));
        assert_eq!(shape(1, 10_000), (1, 1, 1));
        assert_eq!(shape(0, 10_000), (0, 0, 0));
        assert_eq!(shape(max_object_size(Code::ReedSolomon, 1344), 1), (1 << 16, 254, 255));
    }

    #[test]
    fn tornado_and_lt_have_equal_blocks_and_codes_that_suit_them() {
        let oti = |code, length| object_oti(code, length, 1344, 10_000);
        for code in [Code::Tornado(TornadoCode::Z), Code::Lt, Code::LtStrict] {
            for (length, shape) in
                [(0, (0, 0)), (1, (1, 1)), (13_440_000, (1, 10_000)), (13_440_001, (2, 5_001))]
            {
                let layout = oti(code, length).layout().unwrap();
                assert_eq!((layout.block_count(), layout.max_source_symbols()), shape, "{code:?}");
            }
        }
        let FecScheme::Lt(Lt { code, .. }) = oti(Code::Lt, 13_440_001).scheme else { panic!() };
        assert_eq!(code, LtCode::fast(5_001, 0));
        let FecScheme::Lt(Lt { code, .. }) = oti(Code::LtStrict, 1_000 * 1344).scheme else {
            panic!()
        };
        assert_eq!(code, LtCode::strict(1_000, 0));
        for stretch_factor in [2, 10] {
            let code = TornadoCode::new(stretch_factor, 0).unwrap();
            let scheme = oti(Code::Tornado(code), 1_000 * 1344).scheme;
            assert_eq!(
                scheme.block_profile(1_000).symbols_per_cycle,
                1_000 * u32::from(stretch_factor)
            );
        }
        // One symbol less, and the code is useless for so few symbols, unless blocks of this length
        // were requested.
        let ids = |length, block_symbols| {
            [Code::Tornado(TornadoCode::Z), Code::Lt].map(|code| {
                object_oti(code, length, 1344, block_symbols).scheme.profile().encoding_id.0
            })
        };
        assert_eq!(ids(999 * 1344, 10_000), [6, 6]);
        assert_eq!(ids(1_000 * 1344, 10_000), [128, 128]);
        assert_eq!(ids(99 * 1344, 100), [6, 6]);
        assert_eq!(ids(100 * 1344, 100), [128, 128]);
    }

    #[test]
    fn the_largest_object_of_any_code_is_possible_and_a_byte_more_is_not() {
        let tornado = Code::Tornado(TornadoCode::Z);
        for code in [Code::RaptorQ, Code::Raptor, tornado, Code::Lt, Code::None] {
            for block_symbols in [1, 10_000] {
                let largest = max_object_size(code, 1344);
                assert!(object_oti(code, largest, 1344, block_symbols).layout().is_ok());
                let beyond = object_oti(code, largest + 1, 1344, block_symbols);
                assert!(beyond.layout().is_err(), "{code:?} {block_symbols}");
            }
        }
    }
}
