//! Tests of the crate on a disk.

#![allow(clippy::unwrap_used)]

mod damage;
mod fixtures;
mod fuzz;
mod leftovers;
mod power;
mod privileged;
mod receiver;
mod round_trip;
mod sender;
mod trees;
