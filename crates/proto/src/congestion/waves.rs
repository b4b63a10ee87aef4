//! The shape of WEBRC's waves (RFC 3738, section 3.1.1), for senders and receivers.
//!
//! Rates are in packets per second, in floating point. Sender and receivers need not agree on them
//! exactly.

use fontana_wire::Webrc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct Waves {
    /// `BCR_P`: rate of the base channel at the beginning of a slot.
    pub(super) base_rate: f64,
    /// `P`: fraction of a rate that remains at the end of a slot.
    pub(super) decay: f64,
    /// `TSD`: length of a slot.
    pub(super) slot: Duration,
    /// `N`: number of active waves, and length of a wave in slots.
    pub(super) count: usize,
    /// `T`: number of wave channels.
    pub(super) channels: u8,
    /// `L`: number of packets of the base channel in a slot.
    pub(super) base_packets: u64,
    /// Modulus of the base channel's sequence numbers, a multiple of `L`.
    pub(super) base_modulus: u32,
    /// `SR_P`: rate of the session.
    session_rate: f64,
}

impl Waves {
    pub(super) fn new(webrc: &Webrc) -> Self {
        let decay = f64::from(webrc.decay_256ths) / 256.0;
        let base_rate = f64::from(webrc.base_packets_per_second);
        let slot = Duration::from_millis(webrc.slot_milliseconds.into());
        Self {
            base_rate,
            decay,
            slot,
            count: usize::from(webrc.wave_slots.max(1)),
            channels: webrc.wave_channels(),
            base_packets: webrc.base_packets_per_slot().into(),
            base_modulus: webrc.base_modulus(),
            session_rate: f64::from(webrc.rate_bytes_per_second)
                / f64::from(webrc.packet_bytes.max(1)),
        }
    }

    /// The smallest `N` for which base channel and waves reach the rate of the session at the
    /// beginning of a slot; at most `most`.
    pub(super) fn count_for(&self, most: usize) -> usize {
        (1..most).find(|&count| self.rate_of(count) >= self.session_rate).unwrap_or(most)
    }

    /// Rate of the session in packets per second.
    pub(super) const fn session_rate(&self) -> f64 {
        self.session_rate
    }

    pub(super) fn slot_nanos(&self) -> u64 {
        (self.slot.as_nanos() as u64).max(1)
    }

    /// Rate of the base channel and the `count` lowest waves at the beginning of a slot: `BCR_P
    /// (P^-(count + 1) - 1) / (1 / P - 1)`.
    pub(super) fn rate_of(&self, count: usize) -> f64 {
        self.base_rate * (self.growth(count as f64 + 1.0) - 1.0) / (1.0 / self.decay - 1.0)
    }

    /// `P^-slots`.
    pub(super) fn growth(&self, slots: f64) -> f64 {
        (-self.decay.ln() * slots).exp()
    }

    /// Factor by which the rate grows with one wave after `count` of them.
    pub(super) fn step(&self, count: usize) -> f64 {
        (self.growth(count as f64 + 2.0) - 1.0) / (self.growth(count as f64 + 1.0) - 1.0)
    }

    /// Ratio of the rate at the beginning of a slot to its mean over the slot.
    pub(super) fn crest(&self) -> f64 {
        -self.decay.ln() / (1.0 - self.decay)
    }

    /// Number of packets of a wave in its last `slots` slots.
    pub(super) fn packets_in(&self, slots: usize) -> u64 {
        ((self.growth(slots as f64) - 1.0) / self.per_packet() + 0.5) as u64
    }

    /// Time from the packet that `left - 1` packets follow to the end of its wave.
    pub(super) fn before_end(&self, left: u64) -> Duration {
        let after = left.saturating_sub(1) as f64 + 0.5;
        let slots = (after * self.per_packet()).ln_1p() / -self.decay.ln();
        self.slot.mul_f64(slots.clamp(0.0, 256.0))
    }

    /// Time from the beginning of the slot to the base channel's packet number `before`, from 0.
    pub(super) fn base_due(&self, before: u64) -> Duration {
        let slots =
            (1.0 - before as f64 * self.per_packet()).max(self.decay).ln() / self.decay.ln();
        self.slot.mul_f64(slots.clamp(0.0, 1.0))
    }

    /// Share of one packet in `P^-slots`.
    fn per_packet(&self) -> f64 {
        -self.decay.ln() / (self.base_rate * self.slot.as_secs_f64())
    }
}
