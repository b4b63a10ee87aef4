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
pub mod codes;
mod decode;
mod field;
mod ids;
mod layout;
mod limits;
mod oti;
mod parameters;
mod plan;
mod scheme;

pub use bytes::stripes::loading::{Lent, SymbolSource};
pub use bytes::stripes::{Scratch, Stripes};
pub use bytes::xor_program::XorProgram;
pub use code::{BlockProfile, CodeProfile};
pub use codes::shared::splitmix::SplitMix64;
pub use decode::{EsiError, IdDecoder, Novelty, Progress, Work};
pub use ids::{EncodingId, Esi, Sbn};
pub use layout::{ObjectLayout, SymbolPiece};
pub use limits::{BlockLengthError, MAX_TRANSFER_LENGTH, OtiError};
pub use oti::Oti;
pub use parameters::{CodeError, Information, SchemeParameters};
pub use plan::{Intermediate, Plan, PlanCache, Recovered};
pub use scheme::FecScheme;
