//! Tornado and LT codes from outside: the printed graph, how many symbols it takes, any symbols in
//! any order against plain elimination, and what an adversary may try.

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
