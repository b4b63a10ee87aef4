//! The answers of a receiver to roll calls.

use super::gate::RollCallRefusal;
use super::rate_reporter::{PacketCounts, RateSample};
use super::signers::NoCipher;
use fontana_wire::{
    Feedback, RateReport, ReceiverId, RollCall, RollCallEcho, SealId, UnverifiedRollCall,
};
use std::net::SocketAddr;
use std::time::Duration;

/// An answer to a roll call. The receiver sends it now, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Where to send it: the signed address of the roll call.
    pub to: SocketAddr,
    /// The run of the sender that has asked.
    pub instance: SealId,
    /// Its number: grows for as long as the process runs.
    pub counter: u64,
    /// What it says.
    pub feedback: Feedback,
}

impl Answer {
    /// The datagram of a receiver without keys.
    pub fn emit_open(&self) -> Vec<u8> {
        self.feedback.emit(self.instance, self.counter, None, None::<&NoCipher>)
    }
}

/// A roll call that no key is there to check: in simulations.
///
/// # Errors
/// It is none.
pub fn unverified_call(symbol: &[u8]) -> Result<Box<RollCall>, RollCallRefusal> {
    Ok(Box::new(UnverifiedRollCall::parse(symbol)?.claimed().clone()))
}

/// How far a receiver is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportFacts {
    /// Packets of the session.
    pub packets: PacketCounts,
    /// Source symbols of what it receives; 0 before it knows.
    pub source_symbols: u64,
    /// Symbols that it lacks.
    pub symbols_wanted: u64,
    /// Datagrams that its host has dropped.
    pub local_drops: u64,
    /// Channels that it has joined.
    pub channels: u8,
}

impl ReportFacts {
    /// Parts per million of the packets that were lost.
    pub(super) fn loss_ppm(&self) -> u32 {
        let PacketCounts { received, lost, .. } = self.packets;
        let all = received.saturating_add(lost).max(1);
        u32::try_from(lost.saturating_mul(1_000_000) / all).unwrap_or(u32::MAX)
    }

    /// Symbols that it has of those that it needs, per thousand.
    pub(super) fn permille(&self) -> u16 {
        let Self { source_symbols: all, symbols_wanted: wanted, .. } = *self;
        let has = all.saturating_sub(wanted).saturating_mul(1_000);
        has.checked_div(all).map_or(0, |permille| permille as u16)
    }
}

impl RateSample {
    pub(super) fn report(self, receiver: ReceiverId, echo: RollCallEcho) -> RateReport {
        let Self { round, window, packets: PacketCounts { received, lost, .. }, weight } = self;
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let (received, lost) = (count(received), count(lost));
        let window_us = micros(window).max(1);
        RateReport { receiver, round, echo, window_us, received, lost, weight }
    }
}

pub(super) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
