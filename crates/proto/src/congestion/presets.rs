//! Recommended parameters of the congestion control schemes.

use super::waves::Waves;
use fontana_wire::{
    CongestionControl, CongestionError, FlidSl, LayerRates, MAX_CHANNELS, Rlc, SyncSpacing, Webrc,
};

/// RLC as in the paper: nested synchronization points, and bursts. The paper gives no values. The
/// cycle and the deaf time are those of MCL; the burst is long enough to fill a queue of 50 to 100
/// ms.
pub fn rlc(layers: LayerRates) -> Rlc {
    Rlc {
        layers,
        cycle_milliseconds: 250,
        spacing: SyncSpacing::Nested,
        burst_milliseconds: 100,
        deaf_milliseconds: 10_000,
    }
}

/// RLC as in the library MCL, which the FCAST paper measured: no bursts, and one loss in 20 packets
/// is tolerated.
pub fn rlc_mcl(layers: LayerRates) -> Rlc {
    Rlc { spacing: SyncSpacing::Mcl, burst_milliseconds: 0, ..rlc(layers) }
}

/// FLID-SL as in the library MCL: slots of one second.
pub fn flid_sl(layers: LayerRates) -> FlidSl {
    FlidSl { layers, slot_milliseconds: 1000 }
}

/// WEBRC with the RFC's recommendations: slots of 10 s, `P` = 0.75, one packet per second on the
/// base channel, 300 s of quiet.
///
/// # Errors
/// [`CongestionError`] if the rate needs more waves than there are channels: above about 590 Mbit/s
/// in packets of 1400 bytes.
pub fn webrc(rate_bytes_per_second: u32, packet_bytes: u16) -> Result<Webrc, CongestionError> {
    with_waves(Webrc {
        rate_bytes_per_second,
        packet_bytes,
        base_packets_per_second: 1,
        slot_milliseconds: 10_000,
        decay_256ths: 192,
        wave_slots: 1,
        quiet_slots: 30,
    })
}

/// WEBRC ten times as fast: slots of one second, for networks whose leaves take less than 12 s. The
/// base channel is five times as fast. With one packet per second, an epoch of 50 ms would contain
/// nothing to measure; with ten, a single wave would be too large a part of 1 Mbit/s.
///
/// # Errors
/// As [`webrc`], above tens of Gbit/s.
pub fn webrc_fast(rate_bytes_per_second: u32, packet_bytes: u16) -> Result<Webrc, CongestionError> {
    with_waves(Webrc {
        base_packets_per_second: 5,
        slot_milliseconds: 1000,
        // More than the 10 s that a leave may take in a network without fast leave.
        quiet_slots: 12,
        rate_bytes_per_second,
        ..webrc(1, packet_bytes)?
    })
}

/// The session with the fewest waves that reaches its rate.
fn with_waves(webrc: Webrc) -> Result<Webrc, CongestionError> {
    let most = MAX_CHANNELS - 1 - webrc.quiet_slots.min(MAX_CHANNELS - 2);
    let waves = Waves::new(&webrc);
    let count = waves.count_for(usize::from(most));
    let reached = waves.rate_of(usize::from(most));
    if waves.session_rate() > reached {
        let what = "the packets per second of a session with WEBRC";
        let (actual, most) = (waves.session_rate().ceil() as u64, reached as u64);
        return Err(CongestionError::Range { what, actual, least: 1, most });
    }
    let webrc = Webrc { wave_slots: count as u8, ..webrc };
    CongestionControl::Webrc(webrc.clone()).checked()?;
    Ok(webrc)
}
