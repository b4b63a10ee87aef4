//! Erasure codes: against their standards' tables, other implementations, and slow references.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod block;
mod layout;
mod object;
mod presets;
mod raptor;
mod raptorq;
mod reed_solomon;
mod sparse;
