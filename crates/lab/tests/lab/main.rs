//! Runs of the lab: their claims, their slices, the swarm.
#![allow(clippy::unwrap_used)]

mod claims;
mod runs;
mod swarm;
