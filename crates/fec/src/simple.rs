//! One block in memory: encoding and decoding without plans.
//!
//! For many blocks, blocks larger than memory, or decoding that may take several attempts, see
//! [`PlanCache`](crate::PlanCache), [`Plan`] and [`IdDecoder`].

use crate::bytes::stripes::Scratch;
use crate::bytes::stripes::loading::Lent;
use crate::decode::{EsiError, IdDecoder, Novelty, Progress, Work};
use crate::ids::Esi;
use crate::limits::{BlockLengthError, OtiError};
use crate::plan::{Intermediate, Plan};
use crate::scheme::FecScheme;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Why a block does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The parameters of the code do not fit each other or the symbol size.
    #[error(transparent)]
    Parameters(#[from] OtiError),
    /// The code has no blocks of this many symbols.
    #[error(transparent)]
    Length(#[from] BlockLengthError),
}

/// Why a symbol is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolError {
    /// The size differs from that of the block's symbols.
    #[error("symbol has {actual} bytes, the block's symbols have {expected}")]
    Size {
        /// Bytes of a symbol of the block.
        expected: usize,
        /// Bytes of the rejected symbol.
        actual: usize,
    },
    /// The block has no such symbol.
    #[error(transparent)]
    Esi(#[from] EsiError),
}

/// A symbol that a plan needs is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("encoding symbol {esi} is needed but not available", esi = .0.0)]
pub struct MissingSymbol(pub Esi);

/// Encodes a block. Any encoding symbol can be made of the result. Zeros are added to the last
/// source symbol if it is short.
///
/// # Errors
/// [`BlockError`] if the code has no such block.
pub fn encode(
    scheme: FecScheme,
    block: &[u8],
    symbol_size: u16,
) -> Result<Intermediate, BlockError> {
    let (source_symbols, size) = geometry(scheme, block.len(), symbol_size)?;
    let plan = scheme.source_plan(source_symbols)?;
    let symbol = |esi: Esi| block.get(esi.0 as usize * size..).unwrap_or_default();
    let Ok(symbols) = plan.execute(size, Lent(symbol), Scratch::default());
    Ok(symbols)
}

/// The number of source symbols, and the bytes of each.
fn geometry(
    scheme: FecScheme,
    length: usize,
    symbol_size: u16,
) -> Result<(u32, usize), BlockError> {
    if symbol_size == 0 {
        return Err(OtiError::SymbolSize.into());
    }
    scheme.limits(symbol_size)?;
    let size = usize::from(symbol_size);
    Ok((length.div_ceil(size).try_into().unwrap_or(u32::MAX), size))
}

/// A decoder of one block in memory. It stores the pushed symbols.
#[derive(Debug)]
pub struct BlockDecoder {
    decoder: Box<dyn IdDecoder>,
    work: Work,
    /// Bytes of the block.
    length: usize,
    symbol_size: usize,
    /// Symbols that the decoder uses.
    symbols: BTreeMap<Esi, Vec<u8>>,
    is_complete: bool,
}

impl BlockDecoder {
    /// A decoder for a block of `length` bytes, without symbols.
    ///
    /// # Errors
    /// [`BlockError`] if the code has no such block.
    pub fn new(scheme: FecScheme, length: usize, symbol_size: u16) -> Result<Self, BlockError> {
        let (source_symbols, symbol_size) = geometry(scheme, length, symbol_size)?;
        Ok(Self {
            decoder: scheme.decoder(source_symbols)?,
            work: scheme.block_profile(source_symbols).work,
            length,
            symbol_size,
            symbols: BTreeMap::new(),
            is_complete: false,
        })
    }

    /// Takes an encoding symbol, and returns the block once, when it is complete. An attempt to
    /// decode spends at most the budget of the code ([`BlockProfile::work`]); if that does not
    /// suffice, another attempt follows with the next symbol.
    ///
    /// [`BlockProfile::work`]: crate::BlockProfile::work
    ///
    /// # Errors
    /// [`SymbolError`] if the block has no such symbol; the state is unchanged.
    pub fn push(&mut self, esi: Esi, symbol: &[u8]) -> Result<Option<Vec<u8>>, SymbolError> {
        if symbol.len() != self.symbol_size {
            let (expected, actual) = (self.symbol_size, symbol.len());
            return Err(SymbolError::Size { expected, actual });
        }
        if self.decoder.push(esi)? == Novelty::Duplicate || self.is_complete {
            return Ok(None);
        }
        self.symbols.insert(esi, symbol.to_vec());
        if self.decoder.symbols_wanted() > 0 {
            return Ok(None);
        }
        let Progress::Solved(plan) = self.decoder.solve(self.work) else { return Ok(None) };
        let symbols = core::mem::take(&mut self.symbols);
        let block =
            decode_block(&plan, self.symbol_size, |esi| symbols.get(&esi).map(Vec::as_slice));
        self.is_complete = true;
        Ok(block.ok().map(|mut block| {
            block.truncate(self.length);
            block
        }))
    }
}

/// The source symbols of a block, one after another, from symbols in memory. `symbol` returns those
/// that are available; zeros are added to short ones.
///
/// # Errors
/// [`MissingSymbol`] if a symbol that `plan` needs, or a source symbol that it does not recover, is
/// not available.
pub fn decode_block<'s>(
    plan: &Arc<Plan>,
    symbol_size: usize,
    symbol: impl Fn(Esi) -> Option<&'s [u8]>,
) -> Result<Vec<u8>, MissingSymbol> {
    let mut block = vec![0; plan.source_symbols() as usize * symbol_size];
    let mut lost = plan.lost().iter().peekable();
    for (esi, out) in (0..).map(Esi).zip(block.chunks_exact_mut(symbol_size.max(1))) {
        if lost.next_if_eq(&&esi).is_none() {
            let symbol = symbol(esi).ok_or(MissingSymbol(esi))?;
            out.iter_mut().zip(symbol).for_each(|(out, &byte)| *out = byte);
        }
    }
    if plan.lost().is_empty() {
        return Ok(block);
    }
    if let Some(&esi) = plan.inputs().iter().find(|&&esi| symbol(esi).is_none()) {
        return Err(MissingSymbol(esi));
    }
    let symbols = Lent(|esi| symbol(esi).unwrap_or_default());
    let Ok(recovered) = plan.recover(symbol_size, symbols, Scratch::default());
    for (index, esi) in plan.lost().iter().enumerate() {
        let out = &mut block[esi.0 as usize * symbol_size..][..symbol_size];
        recovered.write_symbols(index..index + 1, out);
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::lt::{Lt, LtCode};
    use crate::codes::no_code::NoCode;
    use crate::codes::raptorq::RaptorQ;
    use crate::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
    use crate::codes::tornado::{Tornado, TornadoCode};

    const K: u32 = 40;
    const SIZE: u16 = 30;
    const RAPTORQ: FecScheme =
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });

    fn reed_solomon(code: ReedSolomonCode) -> FecScheme {
        let (max_source_block_length, max_encoding_symbols) = (K as u16, 100);
        FecScheme::ReedSolomon(ReedSolomon { code, max_source_block_length, max_encoding_symbols })
    }

    /// A block that ends two bytes before the end of its last symbol.
    fn block() -> Vec<u8> {
        (0..K * u32::from(SIZE) - 2).map(|at| (at * 7 + at / 50) as u8).collect()
    }

    #[test]
    fn every_code_gives_the_block_back() {
        let max_source_block_length = K;
        let schemes = [
            RAPTORQ,
            FecScheme::Tornado(Tornado { max_source_block_length, code: TornadoCode::Z }),
            FecScheme::Lt(Lt { max_source_block_length, code: LtCode::strict(K, 1) }),
            reed_solomon(ReedSolomonCode::Rfc5510),
            reed_solomon(ReedSolomonCode::Cauchy16),
        ];
        for scheme in schemes {
            let symbols = encode(scheme, &block(), SIZE).unwrap();
            let mut decoder = BlockDecoder::new(scheme, block().len(), SIZE).unwrap();
            let mut received = None;
            let mut symbol = [0; SIZE as usize];
            for esi in (10..K).chain(K..2 * K).map(Esi) {
                symbols.write_symbol(esi, &mut symbol);
                let found = decoder.push(esi, &symbol).unwrap();
                assert!(found.is_none() || received.is_none(), "complete once");
                received = received.or(found);
            }
            assert!(received == Some(block()), "{scheme:?}");
        }
    }

    #[test]
    fn wrong_symbols_are_refused_and_change_nothing() {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: K });
        let mut decoder = BlockDecoder::new(scheme, 5, 3).unwrap();
        assert_eq!(decoder.push(Esi(0), &[1, 2, 3]), Ok(None));
        let size = SymbolError::Size { expected: 3, actual: 2 };
        assert_eq!(decoder.push(Esi(1), &[4, 5]), Err(size));
        let esi = EsiError { esi: Esi(2), encoding_symbols: 2 };
        assert_eq!(decoder.push(Esi(2), &[0; 3]), Err(esi.into()));
        assert_eq!(decoder.push(Esi(1), &[4, 5, 0]), Ok(Some(vec![1, 2, 3, 4, 5])));
    }

    #[test]
    fn blocks_that_the_code_does_not_have_are_refused() {
        assert_eq!(encode(RAPTORQ, &[1], 0).err(), Some(OtiError::SymbolSize.into()));
        let length = |actual, limit| Some(BlockLengthError { actual, limit }.into());
        assert_eq!(encode(RAPTORQ, &[], 4).err(), length(0, 56_403));
        let refused = BlockDecoder::new(RAPTORQ, 56_404 * 4, 4).err();
        assert_eq!(refused, length(56_404, 56_403));
        let odd = encode(reed_solomon(ReedSolomonCode::Cauchy16), &[0; 9], 3).err();
        assert!(matches!(odd, Some(BlockError::Parameters(OtiError::Alignment { .. }))));
    }

    #[test]
    fn a_missing_symbol_is_named() {
        let plan = RAPTORQ.source_plan(3).unwrap();
        let symbol = |esi: Esi| (esi != Esi(1)).then_some(&[7_u8; 4][..]);
        assert_eq!(decode_block(&plan, 4, symbol), Err(MissingSymbol(Esi(1))));
        let mut decoder = RAPTORQ.decoder(3).unwrap();
        (1..5).for_each(|esi| assert!(decoder.push(Esi(esi)).is_ok()));
        let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) else { panic!("they suffice") };
        let symbol = |esi: Esi| (esi.0 < 3).then_some(&[7_u8; 4][..]);
        assert!(decode_block(&plan, 4, symbol).is_err());
    }
}
