//! Tornado codes from outside: the printed graph, how many symbols it takes, any symbols in any
//! order against plain elimination, and what an adversary may try.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod graph;
