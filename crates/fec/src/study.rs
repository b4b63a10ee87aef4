//! Inner parts of codes, for experiments and tests only.

pub use crate::bytes::stripes::Stripes;
pub use crate::bytes::xor_program::XorProgram;
pub use crate::codes::raptorq::tables::DEGREE_BOUNDS;
pub use crate::field::binary_field::BinaryField;

/// The field GF(256) of [dispersal](crate::codes::dispersal) and RaptorQ.
pub mod gf256 {
    pub use crate::field::gf256::{inverse, mul};
}

/// The inner parts of [LT](crate::codes::lt).
pub mod lt {
    pub use crate::codes::lt::degrees::Degrees;
    pub use crate::codes::lt::peeler::Peeler;
    pub use crate::codes::lt::rows::Rows;
}

/// The inner parts of [Tornado](crate::codes::tornado).
pub mod tornado {
    pub use crate::codes::tornado::graph::Graph;
    pub use crate::codes::tornado::peeler::{Peeler, Peeling};
}
