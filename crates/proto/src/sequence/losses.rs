//! Numbers of lost packets.

use crate::time::Instant;
use std::time::Duration;

/// Packets that are now detected to be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Number of packets.
    pub packets: u64,
    /// Time at which the last of them should have arrived.
    pub at: Instant,
    /// Time between packets of the channel, which is the uncertainty of `at`.
    pub space: Duration,
}

impl Losses {
    pub(super) fn and(self, other: Self) -> Self {
        let last = if self.at >= other.at { self } else { other };
        Self { packets: self.packets.saturating_add(other.packets), ..last }
    }
}

/// Totals of a channel, for the time that it was joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelLoss {
    /// Number of packets that were sent since the first one that arrived, up to the latest.
    pub expected: u64,
    /// Number of these packets that have not arrived. A duplicate on the network hides one loss.
    pub lost: u64,
}
