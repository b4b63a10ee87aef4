//! How the rate of a session follows its receivers.

use crate::addressing::Addressing;
use crate::error::{Error, SetupError};
use crate::rate::Rate;
use crate::reporting::{RateFollowing, ReportCollection};
use fontana_net::Interface;
use fontana_proto::report::{Expected, RateConfig};

/// Rate reports that all receivers together send per second, at most.
const BUDGET_PER_SECOND: u32 = 100;
/// The lowest rate, in bytes per second: that of any sender.
const LEAST: u64 = 1_000;
/// Receivers whose rate reports are remembered, 100 bytes each.
const MAX_RECEIVERS: usize = 1 << 16;

/// How the rate of a session on one channel follows its receivers, if it does. `most`: the highest
/// rate, in bytes per second.
pub(super) fn rate_config(
    reports: &ReportCollection,
    addressing: &Addressing,
    is_sealed: bool,
    most: u64,
    packet_bytes: u16,
) -> Result<Option<RateConfig>, Error> {
    let Some(following) = reports.rate else { return Ok(None) };
    let needs = |needs| SetupError::RateFollowing { needs };
    if addressing.channels.count() > 1 {
        return Err(needs("one channel").into());
    }
    if !is_sealed && !reports.is_signed() && !reports.trust_unauthenticated {
        let what = "a group key, or a key of each expected receiver: any host could slow it down";
        return Err(needs(what).into());
    }
    let RateFollowing { start, least, must_finish, automatic } = following;
    if must_finish && !matches!(reports.expected, Expected::Named(_)) {
        return Err(needs("the names of the receivers that must finish").into());
    }
    let least = least.unwrap_or(RateFollowing::LEAST).as_bytes_per_second();
    let start = start.as_bytes_per_second().min(most);
    for (what, actual) in [("the rate at the start", start), ("the least rate", least)] {
        if !(LEAST..=most).contains(&actual) {
            let actual = Rate::bytes_per_second(actual).as_bits_per_second();
            let most = Rate::bytes_per_second(most).as_bits_per_second();
            return Err(SetupError::RateOutside { what, actual, most }.into());
        }
    }
    let blind = match automatic {
        true => Some(blind(&addressing.interface()?, most)),
        false => None,
    };
    Ok(Some(RateConfig {
        start,
        most,
        least,
        least_to_finish: RateFollowing::LEAST.as_bytes_per_second().min(least),
        packet_bytes: packet_bytes.into(),
        budget_per_second: BUDGET_PER_SECOND.min(reports.budget_per_second),
        known: known(reports),
        blind,
        max_receivers: MAX_RECEIVERS,
    }))
}

/// The rate of an automatic session while no receiver has reported: a tenth of what the interface
/// carries, as nothing is known of the path, or of other traffic.
fn blind(interface: &Interface, most: u64) -> u64 {
    let rate = match interface.bits_per_second() {
        // Tunnels say 10 Mbit/s, whatever they carry.
        Some(speed) => Rate::bits_per_second(speed / 10).max(Rate::mbit(5)),
        None if interface.is_wireless() => Rate::mbit(5),
        None => Rate::mbit(10),
    };
    rate.as_bytes_per_second().clamp(LEAST.min(most), most)
}

/// Number of receivers, as far as the user says.
fn known(reports: &ReportCollection) -> Option<u32> {
    match &reports.expected {
        Expected::Anyone => None,
        Expected::Count(count) => Some(*count),
        Expected::Named(list) => u32::try_from(list.len()).ok(),
    }
}
