//! Accessing multiple mirror sites in parallel (Byers, Luby, Mitzenmacher, INFOCOM 1999): one
//! receiver, several senders of the same encoding, no feedback.
//!
//! As in the paper's simulations a file of 1000 packets is complete with any 1055 distinct packets
//! of its encoding, and no sender comes to the end of its packets.

pub(crate) mod equal;
pub(crate) mod losses;
pub(crate) mod model;
pub(crate) mod offsets;
pub(crate) mod pull;
pub(crate) mod real;
pub(crate) mod reception;
pub(crate) mod series;
pub(crate) mod unequal;
pub(crate) mod variation;
pub(crate) mod worst;

/// `k` of the paper's simulations.
const SOURCE_SYMBOLS: u32 = 1000;

/// Distinct packets that suffice in the paper's simulations.
const NEEDED: u32 = 1055;

/// Their ratio, the decoding inefficiency: epsilon in this paper.
const EPSILON: f64 = NEEDED as f64 / SOURCE_SYMBOLS as f64;
