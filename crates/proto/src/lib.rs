//! Endpoints without input or output: from the time and the received datagrams, they decide what to
//! send, join, leave, save, solve and report.
//!
//! A [`Sender`] and a [`Receiver`] implement one contract, [`Endpoint`]: call a `handle_*`, poll
//! the outputs, wait. They decide on ids. A [`Driver`] moves the bytes: it polls an endpoint and
//! passes its jobs ([`SendJob`], [`ReceiveJob`]) to a [`JobRunner`]. The same endpoints run over
//! sockets and in simulated networks. The crate reads no clock, opens no socket or file, starts no
//! thread and draws no random number: time and seed are arguments.
//!
//! ```
//! use fontana_fec::{FecScheme, Oti, codes::raptorq::RaptorQ};
//! use fontana_proto::{ChannelId, Destination, Endpoint, Instant, Output, SendDone, SendJob};
//! use fontana_proto::{SendObject, Sender, SenderConfig};
//! use fontana_wire::{Packet, Toi, Tsi};
//!
//! let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
//! let layout = Oti { transfer_length: 5000, symbol_size: 1000, scheme }.layout()?;
//! let objects = vec![SendObject { toi: Toi(1), layout, source_pass: true }];
//! let mut sender = Sender::new(SenderConfig::new(Tsi(7), objects, 1_000_000, 1));
//!
//! let (now, mut header) = (Instant::ZERO, Vec::new());
//! sender.handle_timeout(now);
//! while let Some(output) = sender.poll_output(now, &mut header) {
//!     match output {
//!         // A real driver encodes these symbols of the block first.
//!         Output::Job(SendJob::Prepare { batch, .. }) => {
//!             sender.handle_done(now, SendDone::Prepared { batch });
//!         }
//!         Output::Transmit { to, symbol } => {
//!             assert_eq!(to, Destination::Channel(ChannelId::BASE));
//!             assert_eq!(Packet::parse(&header)?.header.toi, Some(Toi(1)));
//!             assert!(symbol.is_some(), "the driver appends its bytes to the header");
//!             break;
//!         }
//!         _ => {}
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `endpoint`, `datagram`, `time` | the contract: [`Endpoint`], [`Output`], [`DatagramBatch`], [`Instant`] |
//! | `job`, `placed`, `event`, `run` | jobs, answers and events by side; [`Driver`] and [`JobRunner`] |
//! | `sender` | [`Sender`], [`StreamSender`], control objects |
//! | `receiver` | [`Receiver`], its configuration and limits |
//! | [`pull`] | which ranges to request of which source: mirrors in parallel |
//! | [`feedback`] | building blocks of feedback: [`feedback::WeightCount`], [`feedback::RedundancyEstimate`] |
//! | [`report`] | which receivers have finished: [`report::ReportCollector`], [`report::Reporter`] |
//! | [`share`] | receivers of one site that complete each other: [`share::Sharer`] |
//! | `replay` | packets that are sent again: [`ReplayWindow`] |
//! | `schedule`, `profile` | the order of symbols: [`TransmissionSchedule`], [`Profile`] |
//! | `congestion`, `channel` | [`ChannelClock`] of a sender, [`SubscriptionControl`] of a receiver |
//! | `pacer`, `random` | rate limit, and random numbers from a seed |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
// Any host can write the numbers that endpoints decide on: none of them is an index.
#![deny(clippy::indexing_slicing)]

mod channel;
mod collection;
mod congestion;
mod counter;
mod datagram;
mod endpoint;
mod event;
pub mod feedback;
mod job;
mod lacking;
mod pacer;
mod placed;
mod profile;
pub mod pull;
mod random;
mod receiver;
mod replay;
pub mod report;
mod run;
mod schedule;
mod sender;
mod sequence;
pub mod share;
mod time;

pub use channel::{ChannelId, ChannelSet};
pub use collection::sent_toi;
pub use congestion::{
    BreakerLimits, ChannelClock, Emission, FirstChannel, FixedChannels, Level, Membership,
    PacketSeen, SubscriptionControl, SubscriptionError, SubscriptionLimits, presets, subscribe,
};
pub use datagram::{Datagram, DatagramBatch, Ecn, Port};
pub use endpoint::{BatchId, BlockId, Destination, Endpoint, Output, SessionKey, SymbolId};
pub use event::{
    DropReason, FileRefusal, ObjectFailure, Offer, ReceiverEvent, Rejection, SenderEvent,
    StreamBreak, TableStatus, TableWarning, Verified,
};
pub use job::{
    BlockOutcome, BlockStock, Category, Choice, Committed, Expired, JobError, Opening, ReceiveDone,
    ReceiveJob, Recipe, Saved, SavedBlock, Scope, Search, SendDone, SendJob, SymbolCopy,
};
pub use lacking::Lacking;
pub use pacer::Pacer;
pub use placed::{PlacedRun, SlabSymbols, SymbolBytes, SymbolPlace};
pub use profile::Profile;
pub use random::SplitMix64;
pub use receiver::{
    Acceptance, DecodePolicy, Ending, Expectation, MetadataMode, ObjectProgress, Receiver,
    ReceiverConfig, ReceiverLimits, ReceiverPhase, ReceiverStats, SiteConfig, Subscription,
    repair_slots,
};
pub use replay::ReplayWindow;
pub use run::{Driver, Effect, Finished, JobRunner, Ticket, memory};
pub use schedule::{Fcast, ObjectOrder, SymbolOrganization, TransmissionSchedule};
pub use sender::{
    Announcement, AnnouncementIntervals, ChannelStats, Collection, CollectionConfig, ControlError,
    ControlObject, Demand, DigestSigner, EarlierReceivers, HeadExpiry, RepairBy, SendMode,
    SendObject, Sender, SenderConfig, SenderProgress, SenderStats, StreamRedundancy, StreamSender,
    StreamSenderConfig, StreamStart, control_oti, repair_symbols,
};
pub use sequence::{ChannelLoss, Losses, SequenceTracker};
pub use time::Instant;
