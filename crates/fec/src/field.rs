//! Finite fields: GF(2^8), GF(2^16), and those of the XOR codes that `fontana-lab` compares.

pub(crate) mod binary_field;
pub(crate) mod cantor_basis;
pub(crate) mod gf256;
pub(crate) mod gf65536;
