//! Sequence numbers of packets: their place in the CCI of each scheme, and their modulus.

use crate::cci::{FlidCci, RlcCci, WebrcCci};
use crate::congestion::CongestionControl;
use crate::id::Cci;
use std::num::NonZeroU64;

/// Modulus of a number that is the whole CCI.
const MODULUS_32: u64 = 1 << 32;
/// Modulus of a number that shares the CCI with other fields.
const MODULUS_16: u64 = 1 << 16;

/// How a session numbers its packets. Every channel has its own numbers. The default is that of a
/// session whose head is not known yet: the CCI is the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbering(Fields);

/// The fields of the CCI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fields {
    /// The number alone.
    #[default]
    Number,
    Rlc,
    FlidSl,
    Webrc {
        wave_channels: u8,
        base_modulus: u64,
    },
}

/// Sequence number of a packet on its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceNumber {
    /// The number, less than `modulus`.
    pub value: u32,
    /// Modulus of the numbers of this channel.
    pub modulus: u64,
}

impl CongestionControl {
    /// How a session with this congestion control numbers its packets.
    pub fn numbering(&self) -> Numbering {
        Numbering(match self {
            Self::FixedRate | Self::FixedLayers(_) => Fields::Number,
            Self::Rlc(_) => Fields::Rlc,
            Self::FlidSl(_) => Fields::FlidSl,
            Self::Webrc(webrc) => Fields::Webrc {
                wave_channels: webrc.wave_channels(),
                base_modulus: webrc.base_modulus().into(),
            },
        })
    }
}

impl Numbering {
    /// The number of a packet that arrived on this channel; `None` if its CCI is not one of this
    /// channel. A CCI of a wider form has only its low 32 bits if the CCI is the number.
    pub fn sequence(self, channel: u8, cci: Cci) -> Option<SequenceNumber> {
        let (number, of_channel, modulus) = match self.0 {
            Fields::Number => {
                return Some(SequenceNumber { value: cci.low32(), modulus: MODULUS_32 });
            }
            Fields::Rlc => {
                let cci = RlcCci::parse(cci)?;
                (cci.sequence, cci.layer == channel, MODULUS_16)
            }
            Fields::FlidSl => {
                let cci = FlidCci::parse(cci)?;
                (cci.sequence, cci.layer == channel, MODULUS_16)
            }
            Fields::Webrc { wave_channels, base_modulus } => {
                let cci = WebrcCci::parse(cci)?;
                let (of_channel, modulus) = match channel.checked_sub(1) {
                    None => (cci.channel == wave_channels, base_modulus),
                    Some(wave) => (cci.channel == wave && wave < wave_channels, MODULUS_16),
                };
                (cci.sequence, of_channel && cci.slot < wave_channels, modulus)
            }
        };
        let is_valid = of_channel && u64::from(number) < modulus;
        is_valid.then_some(SequenceNumber { value: number.into(), modulus })
    }
}

impl SequenceNumber {
    /// True if this is the number after `earlier`.
    #[inline]
    pub fn follows(self, earlier: u32) -> bool {
        let next = u64::from(earlier).saturating_add(1);
        u64::from(self.value) == if next == self.modulus { 0 } else { next }
    }

    /// Number of steps from an earlier number of the channel to this one. It is negative if the way
    /// back is shorter.
    pub fn steps_from(self, earlier: u32) -> i64 {
        let modulus = NonZeroU64::new(self.modulus).unwrap_or(NonZeroU64::MIN);
        // All of these are at most 2^33, so nothing saturates.
        let ahead = u64::from(self.value).saturating_add(modulus.get());
        let ahead = ahead.saturating_sub(u64::from(earlier) % modulus) % modulus;
        let modulus = modulus.get();
        let is_behind = ahead > modulus / 2;
        (ahead as i64).saturating_sub(if is_behind { modulus as i64 } else { 0 })
    }
}
