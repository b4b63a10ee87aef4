//! The codes, and what several of them share.

pub mod dispersal;
pub mod lt;
pub mod no_code;
pub mod raptorq;
pub mod reed_solomon;
pub(crate) mod shared;
pub mod tornado;
pub mod xor_cauchy;
