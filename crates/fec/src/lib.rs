//! Erasure codes: a source block in, encoding symbols out, and back.
//!
//! A code works in two steps that never mix. On *ids* it finds out whether the symbols that arrived
//! suffice and how to combine them: a [`Decoder`] is told ESIs and answers with a [`Plan`]. On
//! *bytes* the plan is then executed, over as many columns at a time as the caller has memory for.
//! The encoder is the same thing: the plan of a block whose source symbols are all there.
//!
//! Two ends that hold the same [`Oti`] name every symbol alike. Nothing here reads a clock, starts
//! a thread or draws a random number, and nothing that a peer sends can make it panic.

mod bytes;
mod code;
mod codes;
mod field;
mod ids;
mod layout;
mod oti;
mod plan;

pub use bytes::stripes::{Memory, Stripes};
pub use bytes::xor_program::XorProgram;
pub use code::{BlockLengthError, Decoder, Encoder, EsiError, Novelty, Progress, Work};
pub use codes::raptorq::DEGREE_BOUNDS as RAPTORQ_DEGREE_BOUNDS;
pub use codes::reed_solomon::ReedSolomonCode;
pub use codes::shared::splitmix::SplitMix64;
pub use codes::{dispersal, lt, tornado, xor_cauchy};
pub use ids::{Esi, Sbn};
pub use layout::{ObjectLayout, SymbolPiece};
pub use oti::{FecScheme, Oti, OtiError};
pub use plan::{Intermediate, Plan, PlanCache, Recovered};
