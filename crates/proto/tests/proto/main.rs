//! Endpoints: whole sessions in virtual time, and any sequence of what attackers choose (`fuzz`).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod automatic_rate;
mod batches;
mod choice;
mod congestion;
mod datagrams;
mod digests;
mod endless;
mod extend;
mod failures;
mod first;
mod flute;
mod forged;
mod fuzz;
mod hostile;
mod layers;
mod pulled;
mod rate;
mod repair;
mod reports;
mod restart;
mod runs;
mod session;
mod share;
mod small;
mod sparse;
mod spill;
mod strangers;
mod stream;
mod stream_repair;
mod support;
mod versions;
mod yielding;
