//! The codes, and what several of them share.

pub mod dispersal;
pub mod lt;
pub(crate) mod no_code;
pub(crate) mod raptorq;
pub(crate) mod reed_solomon;
pub(crate) mod shared;
pub mod tornado;
pub mod xor_cauchy;
