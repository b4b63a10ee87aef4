//! Tests on the real loopback interface: unprivileged, in parallel, without fixed ports.
#![allow(clippy::unwrap_used)]

mod channels;
mod delivery;
mod hostile;
mod membership;
mod offload;
mod rx_thread;
mod support;
