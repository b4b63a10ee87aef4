//! Events of `fontana lab relay`.

use serde::Serialize;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum RelayEvent {
    Relay {
        between: Vec<String>,
        loss: f64,
        burst: Option<f64>,
        delay_seconds: f64,
        jitter_seconds: f64,
        rate_bits_per_second: Option<u64>,
        queue_seconds: Option<f64>,
        every_frame: bool,
        seed: u64,
    },
    Relayed {
        from: String,
        to: String,
        offered: u64,
        lost: u64,
        queue_drops: u64,
        exempt: u64,
        delivered: u64,
        overflow: u64,
        refused: u64,
        missed: u64,
        trains: u64,
        latest_seconds: f64,
    },
}
