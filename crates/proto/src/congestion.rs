//! Congestion control: the times and channels of a sender's packets ([`ChannelClock`]), and the
//! channels of a receiver ([`SubscriptionControl`]).
//!
//! There is no feedback. A sender does not depend on its receivers; each receiver finds its own
//! rate by joining and leaving channels. The session head holds the parameters
//! ([`fontana_wire::CongestionControl`]). [`subscribe()`] makes the control of a receiver from
//! them, and [`presets`] has recommended parameters. `docs/congestion.md` says when to use which
//! scheme.

mod breaker;
mod build;
mod clock;
mod control;
mod fixed;
mod flid;
pub mod presets;
mod rlc;
mod slots;
mod steps;
mod subscribe;
mod waves;
mod webrc;

pub use clock::{ChannelClock, Emission};
pub use control::{
    BreakerLimits, FirstChannel, Level, Membership, PacketSeen, SubscriptionControl,
    SubscriptionError, SubscriptionLimits,
};
pub use fixed::FixedChannels;
pub use subscribe::subscribe;
