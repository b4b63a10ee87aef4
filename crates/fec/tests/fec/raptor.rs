//! Raptor through the public interface: the vectors, any symbols against plain elimination,
//! attacks, and the rate of decoding failures.

mod failure;
mod fuzz;
mod hostile;
mod reference;
mod vectors;

use fontana_fec::FecScheme;
use fontana_fec::codes::raptor::Raptor;

const RAPTOR: FecScheme =
    FecScheme::Raptor(Raptor { source_blocks: 1, sub_blocks: 1, alignment: 1 });
