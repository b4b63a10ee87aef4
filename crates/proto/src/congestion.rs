//! Congestion control: when a sender's packets leave on which channel ([`ChannelClock`]), and which
//! channels a receiver is subscribed to ([`SubscriptionControl`]).
//!
//! Nothing flows back: a sender does the same whoever listens, and each receiver finds its own rate
//! by joining and leaving. What a session does is in its head ([`CongestionControl`]); [`subscribe`]
//! makes the control that follows from it, and [`presets`] are good values for it.
//! `docs/congestion.md` says when to use which.

mod breaker;
mod build;
mod clock;
mod control;
mod fixed;
mod flid;
pub mod presets;
mod rlc;
mod sequence;
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
