//! What a member sends for whom. Any host can ask in any name, so that what is sent for addresses
//! from which nothing right has come is bounded, and no address gets more than its part.

use crate::time::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Time over which the rate is divided equally among the addresses that ask.
const WINDOW: Duration = Duration::from_secs(1);
/// Addresses that are counted in this time. Of more, those beyond have the last part together.
const MOST_ADDRESSES: usize = 256;
/// The part of the rate that is left for unproven addresses when their bytes are used up.
const REFILL: f64 = 10.0;

/// An address that has asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    pub(super) address: IpAddr,
    /// Symbols that came from there were right.
    pub(super) is_proven: bool,
}

/// The bytes that were sent.
#[derive(Debug)]
pub(super) struct Quota {
    began: Instant,
    /// Bytes since then, of each address.
    sent: BTreeMap<IpAddr, u64>,
    /// Bytes since then, of all addresses beyond these.
    sent_beyond: u64,
    /// Bytes that may be sent for unproven addresses, of `most`, as of `filled_at`.
    left: f64,
    most: f64,
    filled_at: Instant,
    per_second: f64,
}

impl Quota {
    /// `bytes`: those for unproven addresses at once.
    pub(super) fn new(bytes: u64, bytes_per_second: u64) -> Self {
        let most = bytes as f64;
        Self {
            began: Instant::ZERO,
            sent: BTreeMap::new(),
            sent_beyond: 0,
            left: most,
            most,
            filled_at: Instant::ZERO,
            per_second: (bytes_per_second as f64 / REFILL).max(1.0),
        }
    }

    /// Bytes of late for the one of these that has had least.
    pub(super) fn least(&self, askers: &[Asker]) -> u64 {
        let of_others = if self.is_full() { self.sent_beyond } else { 0 };
        let sent = |asker: &Asker| self.sent.get(&asker.address).copied().unwrap_or(of_others);
        askers.iter().map(sent).min().unwrap_or(0)
    }

    fn is_full(&self) -> bool {
        self.sent.len() >= MOST_ADDRESSES
    }

    /// When so many bytes may be sent for these.
    pub(super) fn free_at(&self, askers: &[Asker], bytes: u64) -> Instant {
        let lacks = bytes as f64 - self.left;
        if lacks <= 0.0 || askers.iter().any(|asker| asker.is_proven) {
            return Instant::ZERO;
        }
        // A microsecond for rounding.
        let time = Duration::from_secs_f64(lacks / self.per_second);
        self.filled_at + time + Duration::from_micros(1)
    }

    /// So many bytes were sent for these.
    pub(super) fn on_sent(&mut self, now: Instant, askers: &[Asker], bytes: u64) {
        if now >= self.began + WINDOW {
            (self.began, self.sent_beyond) = (now, 0);
            self.sent.clear();
        }
        let part = bytes / (askers.len() as u64).max(1);
        for asker in askers {
            match self.is_full() && !self.sent.contains_key(&asker.address) {
                true => self.sent_beyond += part,
                false => *self.sent.entry(asker.address).or_default() += part,
            }
        }
        let since = now.saturating_since(self.filled_at).as_secs_f64();
        let most = self.most.max(bytes as f64);
        self.left = (self.left + since * self.per_second).min(most);
        self.filled_at = now;
        if !askers.iter().any(|asker| asker.is_proven) {
            self.left -= bytes as f64;
        }
    }
}
