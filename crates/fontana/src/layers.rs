//! The layers of a session: cumulative rates for receivers of different speed.

use crate::error::{Error, LayerError, SetupError};
use fontana_proto::presets;
use fontana_wire::{CongestionControl, LayerRates};

/// How a session's rate is divided among its channels, and how receivers choose the number of
/// channels to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layering {
    /// How receivers choose.
    pub scheme: LayeringScheme,
    /// Bytes per second of each layer, the lowest first. Empty: each layer doubles the sum of the
    /// layers below it (1, 1, 2, 4, ...), and all together have the session's rate. WEBRC
    /// determines its own.
    pub rates_bytes_per_second: Vec<u64>,
}

/// How receivers choose the number of channels to join: see `docs/tuning.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayeringScheme {
    /// The receiver's options
    /// ([`ReceiverBuilder::max_channels`](crate::ReceiverBuilder::max_channels),
    /// [`max_rate`](crate::ReceiverBuilder::max_rate)): no congestion control.
    Fixed,
    /// Receiver-driven layered congestion control ([`presets::rlc`]).
    Rlc,
    /// Fair layered increase and decrease with static layers ([`presets::flid_sl`]).
    FlidSl,
    /// Wave and equation based rate control (RFC 3738, [`presets::webrc`]). The number of channels
    /// follows from the rate.
    Webrc,
    /// WEBRC with waves ten times as fast ([`presets::webrc_fast`]).
    WebrcFast,
}

impl LayeringScheme {
    /// Whether receivers yield to other traffic.
    pub fn is_controlled(self) -> bool {
        self != Self::Fixed
    }
}

/// Lowest rate of a layer in bytes per second, and of a session.
const LEAST_LAYER: u64 = 1000;

impl Layering {
    /// Layers of doubling rates.
    pub fn new(scheme: LayeringScheme) -> Self {
        Self { scheme, rates_bytes_per_second: Vec::new() }
    }

    /// The parameters in the head of a session of this rate, whose layers are on `channels`
    /// channels.
    pub(crate) fn congestion_control(
        &self,
        channels: u8,
        rate_bytes_per_second: u64,
        packet_bytes: u16,
    ) -> Result<CongestionControl, Error> {
        let rates = || self.rates(channels, rate_bytes_per_second);
        let session_rate = || in_head(rate_bytes_per_second);
        Ok(match self.scheme {
            LayeringScheme::Fixed => CongestionControl::FixedLayers(rates()?),
            LayeringScheme::Rlc => CongestionControl::Rlc(presets::rlc(rates()?)),
            LayeringScheme::FlidSl => CongestionControl::FlidSl(presets::flid_sl(rates()?)),
            _ if !self.rates_bytes_per_second.is_empty() => {
                return Err(SetupError::WavesWithRates.into());
            }
            LayeringScheme::Webrc => {
                CongestionControl::Webrc(presets::webrc(session_rate()?, packet_bytes)?)
            }
            LayeringScheme::WebrcFast => {
                CongestionControl::Webrc(presets::webrc_fast(session_rate()?, packet_bytes)?)
            }
        })
    }

    fn rates(&self, channels: u8, rate_bytes_per_second: u64) -> Result<LayerRates, Error> {
        let listed = &self.rates_bytes_per_second;
        let least = match &listed[..] {
            [] => rate_bytes_per_second >> channels.saturating_sub(1).min(63),
            _ => listed.iter().copied().min().unwrap_or(0),
        };
        if least < LEAST_LAYER {
            return Err(LayerError::TooSlow { rate: 8 * least, least: 8 * LEAST_LAYER }.into());
        }
        if listed.is_empty() {
            // Twice the sum of the layers below, in 256ths.
            return Ok(LayerRates::geometric(in_head(least)?, 2 * 256, channels)?);
        }
        if listed.len() != usize::from(channels) {
            return Err(LayerError::Count { layers: listed.len(), channels }.into());
        }
        let total = listed.iter().fold(0_u64, |sum, &rate| sum.saturating_add(rate));
        if total > rate_bytes_per_second {
            let [rate, most] = [total, rate_bytes_per_second].map(|rate| rate.saturating_mul(8));
            return Err(LayerError::TooFastTogether { rate, most }.into());
        }
        let rates = listed.iter().map(|&rate| in_head(rate));
        Ok(LayerRates::listed(rates.collect::<Result<_, _>>()?)?)
    }
}

/// A rate in the 32-bit form of the session head.
fn in_head(rate_bytes_per_second: u64) -> Result<u32, Error> {
    u32::try_from(rate_bytes_per_second).map_err(|_| {
        let (rate, most) = (rate_bytes_per_second.saturating_mul(8), 8 * u64::from(u32::MAX));
        LayerError::TooFast { rate, most }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cumulative(rates: &[u64], channels: u8, rate: u64) -> Result<Vec<u64>, String> {
        let layering = Layering {
            rates_bytes_per_second: rates.to_vec(),
            ..Layering::new(LayeringScheme::Fixed)
        };
        let rates = layering.rates(channels, rate).map_err(|error| error.to_string())?;
        Ok(rates.cumulative().collect())
    }

    #[test]
    fn layers_double_up_to_the_rate_unless_they_are_listed() {
        assert_eq!(cumulative(&[], 4, 8_000).unwrap(), [1_000, 2_000, 4_000, 8_000]);
        assert_eq!(cumulative(&[], 1, 8_000).unwrap(), [8_000]);
        assert_eq!(cumulative(&[1_000, 5_000], 2, 6_000).unwrap(), [1_000, 6_000]);
    }

    #[test]
    fn layers_that_cannot_be_are_refused_with_the_numbers() {
        let refused =
            |rates: &[u64], channels, rate| cumulative(rates, channels, rate).unwrap_err();
        assert!(refused(&[], 4, 7_999).contains("is 7992; it must be at least 8000"));
        assert!(refused(&[], 64, u64::MAX).contains("lowest layer"));
        assert!(refused(&[1_000, 999], 2, 6_000).contains("lowest layer"));
        assert!(refused(&[1_000, 5_000], 2, 5_999).contains("is 48000; it must be at most"));
        assert!(refused(&[1_000, 1_000], 3, 6_000).contains("the number of layers is 2"));
        assert!(refused(&[1 << 32], 1, u64::MAX).contains("at most 34359738360"));
        assert!(refused(&[], 1, 1 << 32).contains("at most 34359738360"));
    }
}
