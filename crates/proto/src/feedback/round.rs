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
const LEAST_WINDOW: Duration = Duration::from_millis(5);
/// Receivers of which all may request in a window that suppresses nothing, and the part of the
/// window for each of them. Of 256 far receivers, all requests take 50 kB in a quarter of a second.
const MOST_UNSUPPRESSED: u32 = 256;
const REQUEST_EVERY: Duration = Duration::from_millis(1);
/// How many times as long a window that suppresses requests is at least, where none are suppressed.
/// A shorter one costs little time, and saves packets.
const WORTH: u32 = 4;
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

/// When receivers request in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestWindow {
    pub(crate) length: Duration,
    /// It is so long that receivers hear of the first requests before they send their own.
    pub(crate) suppresses: bool,
}

/// The window of a round. A few receivers may all request at once. More of them do so in a window
/// that is a little longer, if to suppress requests would take much longer: six round trips.
pub(crate) fn request_window(receivers: u32, round_trip: Duration) -> RequestWindow {
    let suppressing = WINDOW_ROUND_TRIPS * (round_trip + LEAST_INTERVAL);
    let length = match receivers {
        0..=AT_ONCE => LEAST_WINDOW,
        _ => REQUEST_EVERY.saturating_mul(receivers),
    };
    let is_worth = receivers <= MOST_UNSUPPRESSED && length * WORTH <= suppressing;
    match is_worth || receivers <= AT_ONCE {
        true => RequestWindow { length, suppresses: false },
        false => RequestWindow { length: suppressing, suppresses: true },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_suppressed_where_that_takes_little_time_or_receivers_are_many() {
        let window = |receivers, round_trip_ms| {
            let window = request_window(receivers, Duration::from_millis(round_trip_ms));
            (window.length.as_millis(), window.suppresses)
        };
        assert_eq!(window(AT_ONCE, 1_000), (5, false));
        // On one network, and over the longest path.
        assert_eq!([window(31, 1), window(32, 1)], [(31, false), (126, true)]);
        assert_eq!([window(60, 500), window(60, 20)], [(60, false), (60, false)]);
        assert_eq!(window(61, 20), (240, true));
        assert_eq!([window(256, 500), window(257, 500)], [(256, false), (3_120, true)]);
    }
}
