//! Tests with senders and receivers in namespaces on a bridge with IGMP snooping, with real loss.
//!
//! They need root, and share two cores: run one test after the other. `cargo test -p fontana-cli
//! --test namespaces -- --test-threads=1 --nocapture`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bounds;
mod confined;
mod doctor;
mod emulator;
mod folder;
mod goals;
mod holders;
mod howtos;
mod inside;
mod interfaces;
mod layered;
mod mirrors;
mod mtu;
mod nowhere;
mod one_way;
mod pipes;
mod rate;
mod real;
mod repair;
mod reports;
mod resume;
mod sharing;
mod transfers;
mod trees;
mod two_commands;
mod web;

#[path = "../support/bench.rs"]
mod bench;
#[path = "../support/nginx.rs"]
mod nginx;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/scene.rs"]
mod scene;
