//! A digital fountain: hands bulk data to any number of receivers at once, over multicast,
//! broadcast or one-way links, with nothing flowing back.
//!
//! A [`SendSession`] pours encoding symbols of its files onto a group for as long as anybody wants
//! them. A [`ReceiveSession`] joins when it likes, loses what it loses, and has the exact files
//! once it has heard about as many bytes as they are long. Both run on the calling thread, tell
//! an observer what happens, and end with a [`Outcome`].
//!
//! The protocol itself is in `fontana-proto`, without input or output; this crate joins it to
//! sockets (`fontana-net`) and disks (`fontana-store`), and owns threads, buffers and budgets.

mod content;
mod error;
mod geometry;
mod layers;
mod memory;
mod outcome;
mod reach;
mod receive;
mod resume;
mod send;
mod stdin_copy;
mod stop;
mod system;
mod versions;
mod watch;

pub use error::{Error, ErrorKind, IoError, LayerError, SetupError, TransferError};
pub use fontana_fec::codes::tornado::{StretchError, TornadoCode};
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
pub use outcome::Outcome;
pub use reach::{DEFAULT_GROUP, Reach};
pub use receive::{
    Delivery, Ended, ObjectReport, ReceiveEvent, ReceiveHandle, ReceiveOptions, ReceiveProgress,
    ReceiveSession, ReceiveSummary, ReceivedPart, SILENCE, SimulatedLoss,
};
pub use resume::{Interrupted, discard, interrupted};
pub use send::{
    Ordering, SendOptions, SendProgress, SendSession, SendSummary, StreamOptions, StreamSession,
};
pub use stdin_copy::StdinCopy;
pub use stop::Stop;
pub use system::generate_key;
pub use versions::Versions;
pub use watch::{FolderEvent, FolderSummary, SendFolder, lasting_ticket, send_folder};
pub use watch::{ReceiveWatch, WatchEvent, WatchSummary, watch};
