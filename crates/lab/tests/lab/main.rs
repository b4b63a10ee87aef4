//! Runs of the lab: their claims, their slices, the swarm; the program.
#![allow(clippy::unwrap_used)]

mod claims;
mod program;
mod runs;
mod swarm;
