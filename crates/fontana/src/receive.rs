//! The implementation of [`Receiver`](crate::receiver::Receiver); [`driver`] is its main loop.

mod delivery;
mod driver;
mod handle;
mod hashing;
#[cfg_attr(not(feature = "serve"), path = "receive/no_held.rs")]
mod held;
mod into;
#[cfg_attr(not(feature = "web"), path = "receive/no_mirrors.rs")]
mod mirrors;
mod object;
mod options;
mod outcome;
mod placer;
mod places;
mod plan;
mod reporting;
mod resend;
mod room;
mod runner;
mod saved;
mod session;
mod sharing;
#[cfg(test)]
mod simulation;
mod spill;
mod staging_root;
mod syncer;
mod target;
mod threads;
mod worker;

pub(crate) use handle::Commands;
#[cfg(feature = "serve")]
pub use held::HeldContent;
pub(crate) use options::ReceiveOptions;
pub use options::{SILENCE, SimulatedLoss, receiver_limits};
pub use session::PreparedReceiver;
pub(crate) use session::{Carried, EarlySockets};
