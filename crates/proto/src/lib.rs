//! Endpoints without input or output: what to send, join, leave, keep, solve and report, given the
//! time and the datagrams.
//!
//! A [`Sender`] and a [`Receiver`] obey one contract, [`Endpoint`], whose law is stated there: call
//! a `handle_*`, poll the outputs, wait. They decide on ids. A [`Driver`] moves the bytes: it polls
//! an endpoint and gives its jobs ([`SendJob`], [`ReceiveJob`]) to a [`JobRunner`]. The same
//! endpoints run over sockets and in simulated networks.
//!
//! Nothing here reads a clock, opens a socket or a file, starts a thread or draws a random number:
//! time and seed are arguments.

mod channel;
mod congestion;
mod datagram;
mod endpoint;
mod event;
mod job;
mod loss;
mod pacer;
mod profile;
mod random;
mod receiver;
mod run;
mod schedule;
mod sender;
mod time;

pub use channel::{ChannelId, ChannelSet};
pub use congestion::{
    BreakerLimits, ChannelClock, Emission, FirstChannel, FixedChannels, Level, Membership,
    PacketSeen, SubscriptionControl, SubscriptionError, SubscriptionLimits, presets, subscribe,
};
pub use datagram::{Datagram, DatagramBatch, Ecn};
pub use endpoint::{BatchId, BlockId, Destination, Endpoint, Output, SessionKey, SymbolId};
pub use event::{
    FileRefusal, ObjectFailure, Offer, ReceiverEvent, Rejection, SenderEvent, StreamBreak, Verified,
};
pub use job::{
    BlockOutcome, Category, Committed, JobError, Opening, ReceiveDone, ReceiveJob, Recipe, Saved,
    SavedBlock, Scope, SendDone, SendJob, SymbolBytes, SymbolPlace,
};
pub use pacer::Pacer;
pub use profile::Profile;
pub use random::SplitMix64;
pub use receiver::{
    Acceptance, DecodePolicy, Expectation, MetadataMode, ObjectProgress, Receiver, ReceiverConfig,
    ReceiverLimits, ReceiverStats, Subscription, repair_slots,
};
pub use run::{Driver, Effect, Finished, JobRunner, Ticket};
pub use schedule::{Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule};
pub use sender::{
    Announcement, AnnouncementIntervals, ChannelStats, ControlError, ControlObject, SendMode,
    SendObject, Sender, SenderConfig, SenderStats, StreamSender, StreamSenderConfig, control_oti,
    repair_symbols,
};
pub use time::Instant;
