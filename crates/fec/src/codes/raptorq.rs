//! RaptorQ (RFC 6330): a systematic fountain. Any `K` encoding symbols of a block recover it with
//! probability 0.99, and each one more makes a failure a hundred times rarer.
//!
//! Every encoding symbol is a sum of a few of the block's `L` intermediate symbols ([`mod@tuple`]), and
//! the intermediate symbols are the solution of a linear system: the symbols at hand, `S` sparse and
//! `H` dense constraints. The way from symbols at hand to intermediate symbols is found on ids
//! ([`matrix`], [`peeling`], [`dense`] with [`hdpc`], joined in [`planner`]), written down as a [`Program`], and
//! run on bytes ([`execute`]). Where only a few symbols are lost there is a shorter way ([`direct`], by
//! [`transpose`]), which begins with what all blocks of a length share ([`full`]).

mod decoder;
mod dense;
mod direct;
mod execute;
mod full;
mod hdpc;
mod matrix;
mod params;
mod peeling;
mod planner;
mod program;
mod tables;
mod transpose;
mod tuple;

pub(crate) use decoder::RaptorQDecoder;
pub(crate) use direct::DirectPlan;
pub(crate) use full::FullBlock;
pub(crate) use params::Params;
pub(crate) use program::Program;
pub use tables::DEGREE_BOUNDS;

use crate::code::Work;
use crate::ids::Esi;
use planner::Planned;

/// ESIs have 24 bits (RFC 6330, section 3.2).
pub(crate) const ENCODING_SYMBOLS: u32 = 1 << 24;

/// The internal symbol id of encoding symbol `esi`: between the source symbols and the repair
/// symbols lie the padding symbols, which have no ESI (RFC 6330, section 5.3.1).
pub(crate) fn isi_of(params: &Params, source_symbols: u32, esi: Esi) -> u32 {
    if esi.0 < source_symbols { esi.0 } else { esi.0.wrapping_add(params.k_prime - source_symbols) }
}

/// The inverse of [`isi_of`]; `None` for a padding symbol.
pub(crate) fn esi_of(params: &Params, source_symbols: u32, isi: u32) -> Option<Esi> {
    if isi < source_symbols {
        Some(Esi(isi))
    } else {
        (isi >= params.k_prime).then(|| Esi(isi - (params.k_prime - source_symbols)))
    }
}

/// The program of a block whose source symbols are all at hand.
fn full_program(params: &Params) -> Program {
    let inputs: Vec<Esi> = (0..params.k_prime).map(Esi).collect();
    program_of(params, params.k_prime, &inputs)
}

/// The program of a block of which encoding symbols `inputs`, ascending, are at hand: those are known
/// to suffice.
pub(crate) fn program_of(params: &Params, source_symbols: u32, inputs: &[Esi]) -> Program {
    let (source, repair) = inputs.split_at(inputs.partition_point(|esi| esi.0 < source_symbols));
    let isis: Vec<u32> = (source.iter().map(|esi| esi.0))
        .chain(source_symbols..params.k_prime)
        .chain(repair.iter().map(|&esi| isi_of(params, source_symbols, esi)))
        .collect();
    match planner::plan(params, &isis, Work::UNBOUNDED) {
        Planned::Solved(program) => *program,
        // Of a full block: the systematic indices were chosen for this (RFC 6330, section 5.6), and
        // a test tries all. Of others: a direct plan has been found.
        _ => unreachable!("the matrix of K' = {} is singular", params.k_prime),
    }
}
