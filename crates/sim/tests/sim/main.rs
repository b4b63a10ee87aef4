//! Networks in virtual time, and the real endpoints in them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod folder;
mod neighbors;
mod network;
mod scene;
mod sessions;
mod swarm;
mod traffic;
mod updates;
