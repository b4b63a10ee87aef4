//! Operations on bytes: stripes of symbols, SIMD kernels, small matrices, and programs of sums.

pub(crate) mod kernel;
pub(crate) mod line;
pub(crate) mod octets;
pub(crate) mod stripes;
pub(crate) mod xor_program;
