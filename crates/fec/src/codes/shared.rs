//! Parts that several codes share: sparse and dense equations, lists of rows, the ids of received
//! symbols, dense linear codes on bytes, and random numbers.

pub(crate) mod basis;
pub(crate) mod csr;
pub(crate) mod equations;
pub(crate) mod inactivation;
pub(crate) mod linear;
pub(crate) mod linear16;
pub(crate) mod primes;
pub(crate) mod random_tables;
pub(crate) mod received;
pub(crate) mod splitmix;
