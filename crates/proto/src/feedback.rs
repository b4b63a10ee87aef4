//! Building blocks of feedback from many receivers: which of them answer, and when, and how
//! much a sender repairs before any does.
//!
//! Each block is a function of times, counts and a seed, and knows no packet format.
//!
//! | block | what it does | source |
//! |---|---|---|
//! | [`WeightCount`], [`answers`], [`status_weight`] | all receivers together answer each data packet about once, and those that miss more answer more often | Morris, "Bulk Multicast Transport Protocol", INFOCOM 1997 |
//! | [`truncated_backoff`] | of receivers that hear each other's requests, few send one | RFC 5401 |
//! | [`RedundancyEstimate`] | repair follows what receivers have requested, and halves when they request nothing | Li, Cheriton, "Evaluating the Utility of FEC with Reliable Multicast", section 3.2 |
//!
//! ```
//! use fontana_proto::SplitMix64;
//! use fontana_proto::feedback::{WeightCount, answers, status_weight};
//!
//! // 50 receivers, each of which misses two packets: their weights add up to 100.
//! let (mut count, mut random) = (WeightCount::new(10), SplitMix64::new(1, 0));
//! for _ in 0..5 {
//!     for _ in 0..400 {
//!         let divisor = count.announce();
//!         let statuses = (0..50).filter(|_| answers(status_weight(2, 100), divisor, &mut random));
//!         (0..statuses.count()).for_each(|_| count.status());
//!     }
//!     count.adjust();
//! }
//! assert!((85..115).contains(&count.divisor()));
//! ```

mod backoff;
mod counting;
mod redundancy;
mod round;

pub use backoff::truncated_backoff;
pub use counting::{MOST_GROWTH, WeightCount, answers, status_weight};
pub use redundancy::RedundancyEstimate;
pub(crate) use round::{
    AT_ONCE, ENOUGH, LEAST_INTERVAL, LONGEST_MUTE, LONGEST_ROUND_TRIP, RequestWindow, SLACK,
    believed_loss, request_window, silent_rounds,
};
