//! What a session is to be good at: named bundles of settings, one part for each side.
//!
//! FCAST has three (Roca, Mordelet 2002, section 6.4.1): `opt_speed` receives fastest and hides the
//! decoding behind the reception, `opt_space` needs least memory at a receiver, `opt_cpu` keeps
//! decoding out of the way of receiving. Both sides should be told the same one; if they are not,
//! everything still arrives.

use crate::receiver::DecodePolicy;
use crate::schedule::{Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule};
use fontana_fec::FecScheme;

/// What a session is to be good at. The default is what measures best: the least time from the
/// first packet heard to everything verified, over receivers of one to all layers, losses of 0 to
/// 50 % and any time of joining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Soonest complete.
    #[default]
    Speed,
    /// Few blocks under way at a time at a receiver.
    Space,
    /// Receivers that decode more slowly than they receive.
    Cpu,
}

/// Of m/p_rand(l): one symbol in so many is exchanged with another one. Twice as many are then not
/// where the sequence has them: a quarter, spread over all blocks, for the price of the rest
/// arriving block by block. The paper does not say which l it had.
const ONE_IN: u32 = 8;
/// The paper's n/k.
const STRETCH_FACTOR: u32 = 4;
/// A block under way is a megabyte, at a reception overhead of a third of a per cent with RaptorQ.
const SMALL_BLOCK: u32 = 1000;

impl Profile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Speed, Self::Space, Self::Cpu];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Space => "space",
            Self::Cpu => "cpu",
        }
    }

    /// The sender's order. `opt_speed` and `opt_cpu` mix everything, which even progress does too
    /// and with less chance: over layers, a code of fixed stretch has the same symbol sent again as
    /// seldom by no other order, all receivers taken together (`docs/schedules.md`). `opt_space` is
    /// in segments (organization 2) over layers; of a single channel they would be the source
    /// symbols alone.
    pub fn schedule(self, scheme: FecScheme, layer_count: u8) -> TransmissionSchedule {
        match self {
            Self::Speed | Self::Cpu => TransmissionSchedule::EVEN,
            Self::Space => TransmissionSchedule::Fcast(Fcast {
                organization: match layer_count {
                    0 | 1 if !scheme.profile().is_rateless => SymbolOrganization::AllOnEach,
                    _ => SymbolOrganization::Segments,
                },
                object_order: ObjectOrder::PartlyRandom { one_in: ONE_IN },
                stretch_factor: STRETCH_FACTOR,
                anticipated_layers: 0,
            }),
        }
    }

    /// Source symbols that a block of the sender should not exceed, if the profile cares.
    pub const fn max_block_symbols(self) -> Option<u32> {
        match self {
            Self::Space => Some(SMALL_BLOCK),
            Self::Speed | Self::Cpu => None,
        }
    }

    /// When a receiver decodes.
    pub const fn policy(self) -> DecodePolicy {
        match self {
            Self::Speed | Self::Space => DecodePolicy::Incremental,
            Self::Cpu => DecodePolicy::Deferred,
        }
    }
}
