//! A newer version than the accepted one, and how long the accepted one is still received.

use crate::counter::Counter;
use crate::endpoint::SessionKey;
use crate::event::ReceiverEvent;
use crate::time::Instant;
use std::time::Duration;

/// Symbols of use that are taken beside twice the missing ones: what short blocks of LT need more.
const SPARE_SYMBOLS: u64 = 1024;

/// A version that the expected publisher has announced, newer than the accepted one.
///
/// The sender of the newer version sends the objects that both versions have, so the accepted one
/// may still complete. It is superseded when no symbol of use has arrived for a while.
///
/// A forged symbol is of use until the hash of its block is wrong. Two rules bound the time for
/// which an attacker can prevent the change to the newer version: symbols of use are counted, and a
/// corrupt block supersedes the accepted version at once. The second also covers a sender that uses
/// the TOI of an old object for a new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewerVersion {
    session: SessionKey,
    version: u64,
    /// Time of the last symbol of use, at first of the announcement; `None` until the receiver
    /// learns that time.
    useful_at: Option<Instant>,
    /// Symbols of use that are still taken.
    symbols_left: u64,
}

impl NewerVersion {
    /// A version that `session` has announced when `symbols_wanted` were missing.
    pub(super) fn new(session: SessionKey, version: u64, symbols_wanted: u64) -> Self {
        let symbols_left = symbols_wanted.saturating_mul(2).saturating_add(SPARE_SYMBOLS);
        Self { session, version, useful_at: None, symbols_left }
    }

    /// A still newer version: it extends nothing.
    pub(super) fn announce(&mut self, session: SessionKey, version: u64) {
        (self.session, self.version) = (session, version);
    }

    /// The time at which it was announced, unless that is known.
    pub(super) fn begin(&mut self, now: Instant) {
        self.useful_at.get_or_insert(now);
    }

    /// `count` symbols of use have arrived.
    pub(super) fn on_fresh(&mut self, now: Instant, count: u64) {
        self.useful_at = Some(now);
        self.symbols_left.discount(count);
    }

    /// Jobs are running that may complete the accepted version.
    pub(super) fn extend(&mut self, now: Instant) {
        self.useful_at = Some(now);
    }

    /// A block of the accepted version was corrupt.
    pub(super) fn on_corrupt(&mut self) {
        self.symbols_left = 0;
    }

    /// Whether no further symbol of the accepted version is taken.
    pub(super) fn is_exhausted(&self) -> bool {
        self.symbols_left == 0
    }

    /// When it supersedes the accepted version, if no symbol of use arrives for `patience`.
    pub(super) fn due(&self, patience: Duration) -> Option<Instant> {
        let patience = if self.is_exhausted() { Duration::ZERO } else { patience };
        self.useful_at.map(|at| at + patience)
    }

    pub(super) fn event(&self) -> ReceiverEvent {
        ReceiverEvent::Superseded { session: self.session, version: self.version }
    }
}
