//! Sessions over the loopback interface, as users of the library run them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod examples;
mod flute;
mod hostile_manifests;
mod loopback;
mod memory;
mod mirrors;
mod reports;
mod sealed;
mod streams;
mod trees;
