//! Parts that several codes share: sparse and dense equations, lists of rows, dense linear codes on
//! bytes, and the random generator of Fontana's own codes.

pub(crate) mod csr;
pub(crate) mod equations;
pub(crate) mod linear;
pub(crate) mod linear16;
pub(crate) mod splitmix;
