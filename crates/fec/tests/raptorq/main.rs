//! RaptorQ through the public interface: the RFC, comparison with another implementation, attacks,
//! and the rate of decoding failures.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod block;
mod failure;
mod fuzz;
mod hostile;
mod peer;
mod recover;
mod reference;
mod vectors;
