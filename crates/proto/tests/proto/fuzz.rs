//! Endpoints and their parts under any sequence of what attackers choose: packets, numbers, times.
//!
//! Each test is a fuzz target. Its input makes [`Script::STEPS`] choices, and more as noise. Under
//! `cargo test` it replays `__fuzz__` and some random inputs, under `cargo bolero test` it is
//! guided by coverage.

mod congestion;
mod control;
mod digests;
mod packets;
mod plain;
mod report;
mod sender;
mod sessions;
mod share;
mod stream;
mod transfer;

use crate::support::world::{ReceiverDriver, receiver_config};
use fontana_proto::{Endpoint, Instant, ReceiverConfig};
use fontana_testing::Script;
use std::time::Duration;

/// Sequences of each target under `cargo test`.
const SEQUENCES: usize = 60;

/// A configuration whose limits a short sequence reaches.
fn small_config() -> ReceiverConfig {
    let mut config = receiver_config();
    config.limits.max_sessions = 6;
    config.limits.max_early_bytes = 16 << 10;
    config.limits.max_files = 8;
    config.limits.max_blocks = 64;
    config.limits.max_transfer_bytes = 1 << 20;
    config.limits.max_decoder_bytes = 1 << 20;
    config.limits.max_stream_window_bytes = 1 << 20;
    config.limits.fdt.encoded_bytes = 4 << 10;
    config.limits.fdt.decoded_bytes = 16 << 10;
    config.limits.manifest.bytes = 16 << 10;
    config.limits.manifest.entries = 64;
    config
}

/// The next time: mostly soon, sometimes after a pause.
fn advance(script: &mut Script<'_>, now: Instant) -> Instant {
    let pause = match script.below(16) {
        0 => Duration::from_millis(script.u16().into()),
        1 => Duration::from_secs(script.u8().into()),
        2 => Duration::ZERO,
        _ => Duration::from_micros(u64::from(script.u8()) * 40),
    };
    now + pause
}

/// Handles the time, until nothing more is due: an endpoint that always wants the present time
/// would keep its driver busy.
fn settle(receiver: &mut ReceiverDriver, now: Instant) {
    for _ in 0..100 {
        receiver.timeout(now);
        if receiver.endpoint.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
    }
    panic!("a receiver is not done with the present time");
}
