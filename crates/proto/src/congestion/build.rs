//! The subscription control of a session, without a circuit breaker.

use super::control::{FirstChannel, SubscriptionControl, SubscriptionError, SubscriptionLimits};
use super::fixed::FixedChannels;
use super::flid::FlidControl;
use super::rlc::RlcControl;
use super::webrc::WebrcControl;
use fontana_wire::{CongestionControl, LayerRates};

/// Makes the subscription control of a session, without a circuit breaker. Parameters and errors
/// are those of [`subscribe`](super::subscribe()).
pub(super) fn build(
    control: &CongestionControl,
    limits: &SubscriptionLimits,
    first: FirstChannel,
) -> Result<Box<dyn SubscriptionControl>, SubscriptionError> {
    if limits.max_channels == 0 {
        return Err(SubscriptionError::NoChannels);
    }
    Ok(match control {
        CongestionControl::FixedRate => Box::new(FixedChannels::from_first(1, None)),
        CongestionControl::FixedLayers(layers) => {
            let rates = levels(layers, limits)?;
            Box::new(FixedChannels::from_first(rates.len() as u8, rates.last().copied()))
        }
        CongestionControl::Rlc(rlc) => {
            Box::new(RlcControl::new(rlc, levels(&rlc.layers, limits)?, first.now))
        }
        CongestionControl::FlidSl(flid) => {
            Box::new(FlidControl::new(flid, levels(&flid.layers, limits)?, first.now))
        }
        CongestionControl::Webrc(webrc) => {
            let packet = u64::from(webrc.packet_bytes.max(1));
            let (least, limit) =
                (packet * u64::from(webrc.base_packets_per_second), limits.max_bytes_per_second);
            if limit < least {
                return Err(SubscriptionError::TooSlow { least, limit });
            }
            let max_rate = limit as f64 / packet as f64;
            let max_waves = usize::from(limits.max_channels - 1);
            Box::new(WebrcControl::new(webrc, max_rate, max_waves, first))
        }
    })
}

/// Rates in bytes per second of the levels within the limits: at least one level.
fn levels(layers: &LayerRates, limits: &SubscriptionLimits) -> Result<Vec<u64>, SubscriptionError> {
    let limit = limits.max_bytes_per_second;
    let most = usize::from(limits.max_channels);
    let rates: Vec<u64> =
        layers.cumulative().take_while(|&rate| rate <= limit).take(most).collect();
    if rates.is_empty() {
        let least = layers.cumulative().next().unwrap_or(0);
        return Err(SubscriptionError::TooSlow { least, limit });
    }
    Ok(rates)
}
