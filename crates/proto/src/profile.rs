//! Profiles: named bundles of settings for different goals, with one part for each side.
//!
//! FCAST has three (Roca, Mordelet 2002, section 6.4.1): `opt_speed` receives fastest and overlaps
//! decoding with the reception, `opt_space` needs least memory at a receiver, `opt_cpu` defers
//! decoding until the reception is complete. Both sides should use the same profile; if they do
//! not, everything still arrives.

use crate::receiver::DecodePolicy;
use crate::schedule::{Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule};
use fontana_fec::FecScheme;

/// The goal of a session. The default has the best measurements: the least time from the first
/// received packet to everything verified, over receivers of one to all layers, losses of 0 to 50 %
/// and any time of joining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Shortest time until complete.
    #[default]
    Speed,
    /// Few concurrent blocks at a receiver.
    Space,
    /// For receivers that decode more slowly than they receive.
    Cpu,
}

/// `l` of m/p_rand(l): one symbol in this many is exchanged with another one. Twice as many are
/// then at other positions than in sequence: a quarter, spread over all blocks, while the rest
/// arrives block by block. The paper does not state its l.
const ONE_IN: u32 = 8;
/// The paper's n/k.
const STRETCH_FACTOR: u32 = 4;
/// Source symbols of a small block: an incomplete block takes a megabyte, at a reception overhead
/// of a third of a per cent with RaptorQ.
const SMALL_BLOCK: u32 = 1000;

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Speed, Self::Space, Self::Cpu];

    /// The profile's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Space => "space",
            Self::Cpu => "cpu",
        }
    }

    /// The sender's order. `opt_speed` and `opt_cpu` mix everything; even progress does so with
    /// less randomness. Over layers, no other order repeats symbols of a code of fixed stretch less
    /// often, over all receivers together (`docs/schedules.md`). `opt_space` uses segments
    /// (organization 2) over layers. On a single channel they would be the source symbols alone.
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

    /// Most source symbols of a block of the sender; `None`: no limit.
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
