//! A digital fountain: hands bulk data to any number of receivers at once, over multicast,
//! broadcast or one-way links, with nothing flowing back.
//!
//! A [`SendSession`] pours encoding symbols of its files onto a group for as long as anybody wants
//! them. A [`ReceiveSession`] joins when it likes, loses what it loses, and has the exact files
//! once it has heard about as many bytes as they are long. Both run on the calling thread, tell
//! an observer what happens, and end with a [`Verdict`].
//!
//! The protocol itself is in `fontana-proto`, without input or output; this crate joins it to
//! sockets (`fontana-net`) and disks (`fontana-store`), and owns threads, buffers and budgets.

mod content;
mod error;
mod geometry;
mod layers;
mod memory;
mod reach;
mod receive;
mod resume;
mod send;
mod spool;
mod stop;
mod verdict;
mod watch;

pub use error::Error;
pub use fontana_fec::tornado::{StretchError, Tornado};
pub use fontana_net as net;
pub use fontana_proto::{
    Acceptance, DecodePolicy, Expectation, MetadataMode, Offer, Profile, ReceiverStats, Rejection,
    SendMode, SenderStats, SessionKey, StreamBreak, Verified,
};
pub use fontana_store::{Device, Filter};
pub use fontana_wire as wire;
pub use geometry::{Code, DEFAULT_BLOCK_SYMBOLS};
pub use layers::{Layering, LayeringScheme};
pub use memory::{DEFAULT_MEMORY, MIN_MEMORY};
pub use reach::{DEFAULT_GROUP, Reach};
pub use receive::{
    Delivery, Ended, ObjectReport, ReceiveEvent, ReceiveHandle, ReceiveOptions, ReceiveProgress,
    ReceiveSession, ReceiveSummary, ReceivedPart, SILENCE, SimulatedLoss, Versions,
};
pub use resume::{Interrupted, discard, interrupted};
pub use send::{
    Ordering, SendOptions, SendProgress, SendSession, SendSummary, StreamOptions, StreamSession,
};
pub use spool::Spool;
pub use stop::Stop;
pub use verdict::Verdict;
pub use watch::{FolderEvent, FolderSummary, SendFolder, lasting_ticket, send_folder};
pub use watch::{ReceiveWatch, WatchEvent, WatchSummary, watch};

/// Threads for work on blocks: more than four rarely have anything to do.
pub(crate) fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(1, 4)
}

/// Makes the calling thread give way to those that keep the pace and drain the socket: a moment
/// that they miss is gone, while work on blocks is done ahead of need. Per thread on Linux; where
/// it is refused nothing is lost but smoothness.
pub(crate) fn give_way() {
    let _ = rustix::process::nice(5);
}

/// Random bytes from the system.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::System {
        doing: "draw random numbers",
        error: std::io::Error::other(error),
    })?;
    Ok(bytes)
}

/// A new publisher key, from the system's random numbers.
///
/// # Errors
/// [`Error::System`] if the system has none.
pub fn generate_key() -> Result<wire::SecretKey, Error> {
    Ok(wire::SecretKey::from_seed(&random_bytes()?))
}

pub(crate) fn random_u64() -> Result<u64, Error> {
    random_bytes().map(u64::from_ne_bytes)
}
