//! Tornado and LT codes through the public interface: the printed graph, the number of symbols
//! needed, any symbols in any order against plain elimination, and attacks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "../raptorq/block.rs"]
#[allow(dead_code, reason = "shared with the tests of RaptorQ, which use all of it")]
mod block;
mod degrees;
mod fuzz;
mod graph;
mod hostile;
mod reception;
mod reference;
