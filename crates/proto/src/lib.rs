//! Endpoints without input or output: what to send, join, leave, keep, solve and report, given the
//! time and the datagrams.
//!
//! A [`Sender`] and a [`Receiver`] obey one contract, [`Endpoint`], whose law is stated there: call
//! a `handle_*`, drain the outputs, wait. They decide on ids; the driver moves bytes and carries
//! out [`Job`]s. The same code runs over sockets and in simulated networks, and does not know
//! which.
//!
//! Nothing here reads a clock, opens a socket or a file, starts a thread or draws a random number:
//! time and seed are arguments.

mod congestion;
mod endpoint;
mod event;
mod job;
mod loss;
mod pacer;
mod profile;
mod random;
mod receiver;
mod schedule;
mod sender;
mod time;

pub use congestion::{
    BreakerLimits, ChannelClock, Emission, FirstChannel, FixedChannels, Level, Membership,
    PacketSeen, SubscriptionControl, SubscriptionError, SubscriptionLimits, presets, subscribe,
};
pub use endpoint::{
    BatchId, BlockId, ChannelId, ChannelSet, Datagram, Destination, Endpoint, Output, SymbolId,
    drain,
};
pub use event::{Event, Offer, Rejection, StreamBreak, Verified};
pub use job::{Done, Job, Kept, KeptBlock, Opening, Placement, Recipe, SymbolBytes};
pub use pacer::Pacer;
pub use profile::Profile;
pub use random::SplitMix64;
pub use receiver::{
    Acceptance, DecodePolicy, Expectation, FileRefusal, MetadataMode, ObjectProgress, Receiver,
    ReceiverConfig, ReceiverLimits, ReceiverStats, SessionKey, Subscription, repair_slots,
};
pub use schedule::{Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule};
pub use sender::{
    ChannelStats, ControlError, ControlObject, SendMode, SendObject, Sender, SenderConfig,
    SenderStats, StreamSender, StreamSenderConfig, repair_symbols,
};
pub use time::Instant;
