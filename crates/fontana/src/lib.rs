//! A digital fountain: bulk data for any number of receivers at once, over multicast, broadcast or
//! one-way links. Receivers send nothing, unless both sides ask for reports. A [`Sender`] sends
//! encoding symbols of its files to a group. A [`Receiver`] may join at any time and lose packets;
//! it has the exact files when it has received about as many bytes as they are long. Each runs on
//! its own threads, emits events, and ends with a report.
//!
//! ```
//! use fontana::{Addressing, Outcome, Rate, Receiver, Sender};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let file = directory.path().join("image.raw");
//! # let downloads = directory.path().join("downloads");
//! std::fs::write(&file, "an image").unwrap();
//! let mut here = Addressing::to("239.255.77.2:7702".parse().unwrap());
//! here.interfaces = vec!["127.0.0.1".parse().unwrap()];
//!
//! let sender = Sender::builder([&file]).addressing(here.clone()).rate(Rate::mbit(10)).start()?;
//! let ticket = &sender.description().ticket;
//! let receiver = Receiver::from_ticket(ticket).addressing(here).into_dir(&downloads).start()?;
//! assert_eq!(receiver.join()?.outcome, Outcome::Complete);
//! sender.stop();
//! assert_eq!(sender.join()?.outcome, Outcome::Interrupted);
//! assert_eq!(std::fs::read(downloads.join("image.raw")).unwrap(), b"an image");
//! # Ok::<(), fontana::Error>(())
//! ```
//!
//! | for | see |
//! |---|---|
//! | sending files, directories and bytes | [`Sender`], [`Format`], [`Layering`], [`Code`] |
//! | receiving into a directory, a pipe, a device or memory | [`Receiver`], [`ReceiveFormat`], [`Device`], [`Memory`] |
//! | sending a stream while it is produced | [`StreamSender`]; reading it first: [`StdinCopy`] |
//! | sending a directory as it changes | [`Publisher`] |
//! | receiving every version of a publisher | [`Follower`], [`Versions`] |
//! | events | [`Events`], [`SendEvent`], [`ReceiveEvent`], [`FollowEvent`], [`PublishEvent`] |
//! | results | [`Outcome`], [`SendReport`], [`ReceiveReport`] |
//! | errors | [`Error`], [`ErrorKind`] |
//! | destinations, and the rate | [`Addressing`], [`Rate`] |
//! | packets that only members of a group can make | [`seal`], [`FontanaFormat::group_seal`] |
//! | a mirror of a publisher's content | [`Certificate`], [`FontanaFormat::certificate`] |
//! | which receivers have finished | [`FontanaFormat::reports`], [`FontanaReception::reporting`], [`reports`] |
//! | ending a session | [`CancellationToken`] |
//! | content for web servers, and what names it there | [`MirroredContent`], [`MirrorHead`] |
//! | the state of interrupted receivers | [`interrupted`], [`discard`] |
//! | packets, tickets and manifests | [`wire`] |
//! | interfaces, sockets, and whether multicast works on this host | [`net`] |
//!
//! # Features
//!
//! All are off by default: sessions need none of them, and no HTTP. The program has the first two.
//!
//! | feature | adds | with |
//! |---|---|---|
//! | `web` | receiving from mirrors: `ReceiverBuilder::mirrors`, `PreparedReceiver::find_published`, and what their options, events and reports have | ureq, rustls |
//! | `serve` | serving files and fresh symbols over HTTP: `WebServer`, `ServeEvent` | axum, hyper, tokio |
//! | `futures` | [`Events`] as `futures::Stream` | futures-core |
//!
//! `cargo doc -p fontana --all-features` documents all of it.
//!
//! The protocol itself is in `fontana-proto`, without input or output; this crate joins it to
//! sockets (`fontana-net`) and disks (`fontana-store`), and owns threads, buffers and memory
//! budgets. The example `custom_driver` runs the protocol without this crate.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod addressing;
mod cancellation;
mod certificate;
mod content;
mod error;
mod event;
mod follower;
mod format;
mod geometry;
mod kept_mark;
mod layers;
mod memory;
mod mirror_head;
mod mirrored;
mod new_file;
mod outcome;
mod publisher;
mod rate;
mod receive;
mod receiver;
mod report;
mod reporting;
mod resume;
pub mod seal;
mod send;
mod sender;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod shared;
mod sharing;
mod stdin_copy;
mod stream;
mod system;
mod versions;
#[cfg(feature = "web")]
mod web;

pub use addressing::{Addressing, DEFAULT_GROUP};
pub use cancellation::CancellationToken;
pub use certificate::{Certificate, CertificateError};
pub use content::Undescribed;
pub use error::{Error, ErrorKind, IoError, LayerError, SetupError, TransferError};
pub use event::{
    AcceptedManifest, LittleRoom, NamedFile, ObjectReport, ReceiveEvent, ReceiveProgress,
    ReceivedPart, SendEvent, SendProgress,
};
pub use follower::{FollowEvent, FollowReport, Follower, FollowerBuilder};
pub use fontana_fec::codes::tornado::{StretchError, TornadoCode};
pub use fontana_net as net;
pub use fontana_proto::report as reports;
pub use fontana_proto::{
    Acceptance, DecodePolicy, DropReason, Fcast, ObjectOrder, Offer, Profile, ReceiverStats,
    Rejection, SendMode, SenderStats, SessionKey, StreamBreak, StreamRedundancy,
    SymbolOrganization, TableStatus, TableWarning, TransmissionSchedule, Verified,
};
pub use fontana_store::{Device, Filter, Memory, OptionalCall};
pub use fontana_wire as wire;
pub use format::{
    FcastFormat, FluteFormat, FluteReception, FontanaFormat, FontanaReception, Format,
    ReceiveFormat,
};
pub use geometry::{Code, DEFAULT_BLOCK_SYMBOLS};
pub use layers::{Layering, LayeringScheme};
pub use memory::{DEFAULT_MEMORY, MIN_MEMORY};
pub use mirror_head::MirrorHead;
pub use mirrored::{MirroredContent, ShelfReport};
pub use new_file::NewFile;
pub use outcome::Outcome;
pub use publisher::{PublishEvent, PublishReport, Publisher, PublisherBuilder};
pub use rate::Rate;
#[cfg(feature = "serve")]
pub use receive::HeldContent;
pub use receive::{PreparedReceiver, SILENCE, SimulatedLoss, receiver_limits};
pub use receiver::{Receiver, ReceiverBuilder, ReceiverInto};
pub use report::{
    Delivery, Ended, IncompleteFiles, MissingFile, ReceiveReport, RejectedSession, SendReport,
    SuspectBlock,
};
pub use reporting::{Crowd, RateFollowing, ReportCollection, Reporting};
pub use resume::{Interrupted, discard, interrupted};
pub use send::{MAX_PEAK_WINDOW, Ordering, PreparedSender, PreparedStream, SessionDescription};
pub use sender::{Sender, SenderBuilder};
#[cfg(feature = "serve")]
pub use serve::{ServeEvent, ServeProgress, ServeReport, WebServer, WebServerBuilder};
pub use session::Events;
pub use sharing::{ShareReport, Sharing};
pub use stdin_copy::StdinCopy;
pub use stream::{StreamSender, StreamSenderBuilder};
pub use system::{clock_is_early, generate_key};
pub use versions::Versions;
#[cfg(feature = "web")]
pub use web::{
    address::{MirrorFile, MirrorFileError},
    after::WebAfter,
    credentials::{MirrorHeader, MirrorHeaderError},
    discovery::{NotPublished, Published, PublishedError},
    failure::MirrorFailure,
    report::{MirrorKind, MirrorReport},
};
