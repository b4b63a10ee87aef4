//! Rounds in which receivers may request: how long they last, and how many show that nothing is
//! lacking.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Receivers that may answer at once: their requests need not be suppressed, and no report of an
/// end waits for its turn.
pub(crate) const AT_ONCE: u32 = 20;
/// Requests of a crowd after which a round is closed.
pub(crate) const ENOUGH: u32 = 10;
/// Shortest window.
pub(crate) const LEAST_WINDOW: Duration = Duration::from_millis(5);
/// Length of a window in which requests are suppressed, in times that suppression takes: K of RFC
/// 5740 for source-specific multicast, where requests are sent by unicast.
const WINDOW_ROUND_TRIPS: u32 = 6;
/// Time from a request to the roll call that suppresses others: the shortest interval of roll
/// calls.
pub(crate) const LEAST_INTERVAL: Duration = Duration::from_millis(20);
/// Longest round trip that windows follow.
pub(crate) const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);
/// Time that receivers and sender need beside the round trip.
pub(crate) const SLACK: Duration = Duration::from_millis(2);
/// Longest time that a receiver is waited for because it may not send.
pub(crate) const LONGEST_MUTE: Duration = Duration::from_secs(1);
/// Largest loss that a receiver is believed.
const MAX_LOSS: f64 = 0.5;

/// The window of a round. A few receivers may all request at once.
pub(crate) fn request_window(receivers: u32, round_trip: Duration) -> Duration {
    match receivers {
        0..=AT_ONCE => LEAST_WINDOW,
        _ => WINDOW_ROUND_TRIPS * (round_trip + LEAST_INTERVAL),
    }
}

/// The part of the packets that a receiver loses, as far as it is believed.
pub(crate) fn believed_loss(ppm: u32) -> f64 {
    (f64::from(ppm) / 1e6).min(MAX_LOSS)
}

/// Silent rounds after which a receiver that lacks something has not been heard with the
/// probability `unheard`, if this part of the packets is lost in both directions.
pub(crate) fn silent_rounds(loss: f64, unheard: f64, limits: RangeInclusive<u32>) -> u32 {
    let missed = 1.0 - (1.0 - loss) * (1.0 - loss);
    let (mut rounds, mut probability) = (0, 1.0);
    while probability > unheard && rounds < *limits.end() {
        (rounds, probability) = (rounds + 1, probability * missed);
    }
    rounds.max(*limits.start())
}
