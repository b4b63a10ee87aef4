//! RaptorQ from outside: what the RFC says, what the other implementation does, what an adversary
//! may try, and how often decoding fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod block;
mod failure;
mod fuzz;
mod hostile;
mod peer;
mod recover;
mod reference;
mod vectors;
