//! Reed-Solomon codes through the public interface: published vectors, any erasures in any order,
//! and comparison with plain elimination.

mod cauchy16;
mod dispersal;
mod erasures;
mod reference;
mod vectors;

use fontana_fec::FecScheme;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};

/// All codes over GF(256).
const CODES: [ReedSolomonCode; 3] =
    [ReedSolomonCode::Rfc5510, ReedSolomonCode::SmallBlock, ReedSolomonCode::Cauchy];

/// Blocks of at most 255 source symbols, and as many encoding symbols.
fn scheme(code: ReedSolomonCode) -> FecScheme {
    with_limits(code, 255, 255)
}

fn with_limits(code: ReedSolomonCode, b: u16, max_n: u16) -> FecScheme {
    FecScheme::ReedSolomon(ReedSolomon {
        code,
        max_source_block_length: b,
        max_encoding_symbols: max_n,
    })
}
