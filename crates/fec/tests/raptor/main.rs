//! Raptor through the public interface: the vectors, any symbols against plain elimination,
//! attacks, and the rate of decoding failures.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../raptorq/block.rs"]
#[allow(dead_code, reason = "shared with the tests of RaptorQ, which use all of it")]
mod block;
mod failure;
mod fuzz;
mod hostile;
mod reference;
mod vectors;

use fontana_fec::FecScheme;
use fontana_fec::codes::raptor::Raptor;

const RAPTOR: FecScheme =
    FecScheme::Raptor(Raptor { source_blocks: 1, sub_blocks: 1, alignment: 1 });
