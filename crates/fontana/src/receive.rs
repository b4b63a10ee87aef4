//! Receiving: packets in, verified files out.
//!
//! ```no_run
//! use fontana::{Outcome, ReceiveOptions, ReceiveSession, Stop};
//!
//! let ticket = "fontana://10.0.0.7@239.255.77.1:7701/5".parse().unwrap();
//! let options = ReceiveOptions::from_ticket(&ticket, "downloads");
//! let session = ReceiveSession::open(options)?;
//! let summary = session.run(&Stop::new(), &mut |_event| {})?;
//! assert_eq!(summary.outcome, Outcome::Complete);
//! # Ok::<(), fontana::Error>(())
//! ```

use crate::error::{Error, SetupError};
use crate::memory;
use crate::memory::ReceiverMemory;
use crate::outcome::Outcome;
use crate::reach::Listening;
use crate::reach::Reach;
use crate::stop::Stop;
use crate::versions::Versions;
use crate::watch::kept_mark::KeptMark;
use crossbeam_channel::{Receiver as ChannelReceiver, Sender as ChannelSender, unbounded};
use fontana_net::{BufferShortfall, ReceiveSocket, receiver::DEFAULT_RECEIVE_BUFFER};
use fontana_proto::{
    Acceptance, DecodePolicy, Expectation, MetadataMode, Offer, ReceiverLimits, ReceiverStats,
    Rejection, SessionKey, Verified,
};
use fontana_store::{Device, Selection, TargetDirectory};
use fontana_wire::{
    Hash, MAX_CHANNELS, Manifest, ManifestLimits, PublicKey, StreamIndex, Ticket, Toi,
};
use into::ReceiveInto;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

mod delivery;
mod driver;
mod into;
mod object;
mod outcome;
mod plan;
mod saved;
mod staging_root;
mod syncer;
mod target;
mod threads;
mod worker;

/// Datagrams that are thrown away on purpose: a lossy path for demonstrations and tests, seeded,
/// so that it repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedLoss {
    /// Share of the datagrams, 0 to 1.
    pub probability: f64,
    /// Which ones.
    pub seed: u64,
}

/// What to receive, and where to. Everything has a safe default.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// Where to listen. Several addresses make no sense here: the first one counts. Without a ticket,
    /// its channels are the only ones that a session may have, if it has several.
    pub reach: Reach,
    /// Which session.
    pub expectation: Expectation,
    /// Whether to take the first session that meets the expectation, or to ask.
    pub acceptance: Acceptance,
    /// Which versions of a publisher, where the expectation names one.
    pub versions: Versions,
    /// Which kind of session to receive. Nobody vouches for the files of plain FLUTE (RFC 6726) and
    /// FCAST (RFC 6968).
    pub metadata: MetadataMode,
    /// Where files go.
    pub directory: PathBuf,
    /// Replace files that exist.
    pub overwrite: bool,
    /// Do not receive again what the files in the directory hold: found by hashing them block by
    /// block. Files that are the same stay as they are, but for mode and time; of others, only blocks
    /// that differ are received. Only with a manifest.
    pub skip_existing: bool,
    /// Receive only what matches one of these patterns, in the form of `.gitignore`, relative to the
    /// top of what is sent; none: everything. Only with a manifest.
    pub only: Vec<String>,
    /// Most channels of a session to be joined to at a time.
    pub max_channels: u8,
    /// Most bytes per second to join to, IP and UDP headers included, by what the session says of its
    /// layers. A session that has nothing as slow is refused.
    pub max_rate_bytes_per_second: Option<u64>,
    /// When to decode.
    pub policy: DecodePolicy,
    /// Memory to use, in bytes, whatever the size of the files.
    pub memory: usize,
    /// Threads that decode and write.
    pub workers: usize,
    /// Bytes of kernel receive buffer to ask for.
    pub receive_buffer: usize,
    /// Most bytes to accept in one session.
    pub max_bytes: u64,
    /// Give up when it is not complete after so long.
    pub timeout: Option<Duration>,
    /// Give up when nothing has been heard of the session for so long.
    pub give_up_after_silence: Option<Duration>,
    /// Bytes of a stream that may wait for its consumer on the disk, those being received included.
    pub window: u64,
    /// Lose datagrams on purpose.
    pub simulated_loss: Option<SimulatedLoss>,
}

/// When silence is first remarked, and the groups are joined anew.
pub const SILENCE: Duration = Duration::from_secs(10);

impl ReceiveOptions {
    /// Receives into `directory` with the defaults: the default group, any session, the first one
    /// that comes.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            reach: Reach::default(),
            expectation: Expectation::default(),
            acceptance: Acceptance::Automatic,
            versions: Versions::default(),
            metadata: MetadataMode::Manifest,
            directory: directory.into(),
            overwrite: false,
            skip_existing: false,
            only: Vec::new(),
            max_channels: MAX_CHANNELS,
            max_rate_bytes_per_second: None,
            policy: DecodePolicy::Incremental,
            memory: memory::DEFAULT_MEMORY,
            workers: crate::system::default_workers(),
            receive_buffer: DEFAULT_RECEIVE_BUFFER,
            max_bytes: 1 << 45,
            timeout: None,
            give_up_after_silence: Some(Duration::from_secs(60)),
            window: ReceiverLimits::default().max_stream_window_bytes,
            simulated_loss: None,
        }
    }

    /// Receives what a ticket says into `directory`.
    pub fn from_ticket(ticket: &Ticket, directory: impl Into<PathBuf>) -> Self {
        Self {
            reach: Reach {
                channels: ticket.channels.clone(),
                ..Reach::to(SocketAddr::new(ticket.group, ticket.port))
            },
            expectation: Expectation {
                tsi: Some(ticket.tsi),
                sources: ticket.sources.clone(),
                manifest: ticket.manifest,
                publisher: ticket.key,
                newer_than: None,
            },
            ..Self::new(directory)
        }
    }
}

/// What a receiver tells while it runs.
#[derive(Debug)]
pub enum ReceiveEvent<'a> {
    /// A session is on offer; [`ReceiveHandle::accept`] takes it, unless it is taken by itself.
    Offered(&'a Offer),
    /// A session on the same group is not the one. Told once for each.
    Rejected {
        /// The session.
        session: SessionKey,
        /// Why.
        reason: Rejection,
    },
    /// Reception of a manifest's content has begun.
    Accepted {
        /// Where it was first heard.
        session: SessionKey,
        /// What is received.
        manifest: &'a Manifest,
        /// Its hash.
        hash: Hash,
        /// What the files will be worth.
        verified: Verified,
    },
    /// A stream is on offer; [`ReceiveHandle::accept`] takes it, unless it is taken by itself.
    StreamOffered {
        /// The session.
        session: SessionKey,
        /// What is known of it.
        index: &'a StreamIndex,
    },
    /// Reception of a stream has begun.
    StreamAccepted {
        /// Where it was first heard.
        session: SessionKey,
        /// What is known of it.
        index: &'a StreamIndex,
        /// Who signs it. Without a ticket, that of the first stream that was heard: compare it with
        /// what the sender printed.
        key: PublicKey,
        /// What its bytes will be worth.
        verified: Verified,
    },
    /// Only a part of what was accepted is received: what was asked for
    /// ([`ReceiveOptions::only`]).
    Selected(ReceivedPart),
    /// What is there already is being compared with the manifest
    /// ([`ReceiveOptions::skip_existing`]).
    Compared {
        /// Bytes that were compared.
        bytes: u64,
        /// How many there are.
        of: u64,
    },
    /// An earlier receiver, stopped or killed, had left something of it, or existing files hold it:
    /// that is not received again.
    Resumed {
        /// Source symbols that need not be received any more.
        symbols: u64,
        /// Source symbols of the whole content.
        source_symbols: u64,
    },
    /// An FCAST session was found; its objects are received, whatever they turn out to be.
    CarouselFound {
        /// The session.
        session: SessionKey,
    },
    /// A file of a plain FLUTE session was found, or, in an FCAST session, the first slice of one, or all
    /// of it, has arrived.
    FileFound {
        /// Its object, or that of the slice.
        toi: Toi,
        /// Its name, as the sender wrote it: anything may be in it.
        name: &'a str,
        /// Bytes: of the object with plain FLUTE, of the file with FCAST.
        bytes: u64,
    },
    /// A block's bytes were wrong and it is received anew: somebody forges packets, or a machine is
    /// broken.
    Poisoned {
        /// The object.
        toi: Toi,
        /// How often this block has been.
        times: u32,
    },
    /// Nothing has arrived for a while; the group was joined anew.
    Silence {
        /// For how long.
        duration: Duration,
        /// True if nothing of a session has ever arrived.
        ever_since_start: bool,
    },
    /// In a session of several channels: some were joined or left.
    Level {
        /// How many are joined now.
        channels: u16,
        /// Bytes of UDP payload that arrived per second since the level changed last.
        received_bytes_per_second: u64,
    },
    /// A channel of the session could not be joined; it goes on without. Told once for each.
    ChannelRefused {
        /// The channel.
        channel: u8,
        /// Why.
        error: &'a Error,
    },
    /// Enough was heard of everything; the group was left.
    HeardEnough,
    /// An object's files are on disk and verified.
    ObjectDone(&'a ObjectReport),
    /// An object was given up.
    ObjectFailed {
        /// The object.
        toi: Toi,
        /// Its files.
        names: &'a [String],
        /// Why, if the disk was the reason.
        error: Option<&'a Error>,
    },
    /// Where it stands, a few times a second.
    Progress(&'a ReceiveProgress),
}

/// A part of a session's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedPart {
    /// Its files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that hold bytes of them.
    pub objects: u64,
}

/// An object that was received.
#[derive(Clone, Debug)]
pub struct ObjectReport {
    /// The object.
    pub toi: Toi,
    /// The files that it holds bytes of.
    pub names: Vec<String>,
    /// What they are worth.
    pub verified: Verified,
    /// Bytes, as transported.
    pub bytes: u64,
    /// Packets of the object that were received until enough had been heard of it, over its source
    /// symbols.
    pub reception_inefficiency: f64,
    /// Share of the session's packets that the network lost until now; `None` where packets are
    /// not numbered (plain FLUTE and FCAST).
    pub loss: Option<f64>,
    /// Time since the start.
    pub elapsed: Duration,
}

/// Where a receiver stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiveProgress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Counters of the protocol.
    pub stats: ReceiverStats,
    /// Source symbols of everything accepted; 0 before.
    pub source_symbols: u64,
    /// Symbols still missing.
    pub symbols_wanted: u64,
    /// Channels that it is joined to.
    pub channels: u8,
    /// Most channels that it has been joined to at a time.
    pub most_channels: u8,
    /// Packets that the kernel threw away because the receive buffer was full.
    pub kernel_drops: u64,
    /// Datagrams thrown away because the workers were behind.
    pub queue_drops: u64,
}

impl ReceiveProgress {
    /// All packets of the session received until everything had been heard, over the source
    /// symbols; `None` before anything was accepted.
    pub fn reception_inefficiency(&self) -> Option<f64> {
        (self.source_symbols > 0)
            .then(|| self.stats.session_packets as f64 / self.source_symbols as f64)
    }

    /// Share of the session's packets that the network lost; `None` where they are not numbered.
    pub fn loss(&self) -> Option<f64> {
        (self.stats.expected > 0).then(|| self.stats.lost as f64 / self.stats.expected as f64)
    }
}

/// Why a reception ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything is on disk, or given up.
    Done,
    /// The time was up, or nothing that can be received was heard for too long.
    TimeUp,
    /// Somebody asked.
    Stopped,
    /// [`Versions::Newer`]: only versions that are not newer are being sent.
    NothingNew,
    /// [`Versions::Newer`]: a newer version is being sent than the one that was being received.
    Superseded,
}

/// How a reception ended.
#[derive(Debug)]
pub struct ReceiveSummary {
    /// The outcome.
    pub outcome: Outcome,
    /// Why it ended.
    pub ended: Ended,
    /// What was accepted: its hash and version. `None` for plain FLUTE and FCAST.
    pub manifest: Option<(Hash, u64)>,
    /// Where it stood at the end.
    pub progress: ReceiveProgress,
    /// What was received.
    pub objects: Vec<ObjectReport>,
    /// Bytes of the files that were committed.
    pub bytes: u64,
    /// Least trust in anything received; `None` if nothing was accepted.
    pub verified: Option<Verified>,
    /// Why objects were given up.
    pub failures: Vec<Arc<Error>>,
    /// Sessions that were heard and refused.
    pub rejections: Vec<(SessionKey, Rejection)>,
    /// What a consumer has taken; `None` where files went to a directory.
    pub delivery: Option<Delivery>,
}

/// What a consumer has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes, from the first one on: all of them verified.
    pub bytes: u64,
    /// It has closed its end before it had everything.
    pub closed: bool,
}

pub(crate) enum Command {
    Accept(SessionKey),
}

/// Talks to a running session from another thread.
#[derive(Clone, Debug)]
pub struct ReceiveHandle(ChannelSender<Command>);

impl ReceiveHandle {
    /// Accepts a session that was offered.
    pub fn accept(&self, session: SessionKey) {
        // A session that has ended accepts nothing.
        let _ = self.0.send(Command::Accept(session));
    }
}

/// A receiver that has joined its group.
pub struct ReceiveSession {
    options: ReceiveOptions,
    sockets: Vec<ReceiveSocket>,
    listening: Listening,
    target: Arc<TargetDirectory>,
    selection: Selection,
    mark: Option<KeptMark>,
    interface: String,
    commands: (ChannelSender<Command>, ChannelReceiver<Command>),
    into: ReceiveInto,
}

impl ReceiveSession {
    /// Opens the target directory and the socket, and joins.
    ///
    /// # Errors
    /// [`Error`]; nothing was changed then, but that the target directory may have been created.
    pub fn open(mut options: ReceiveOptions) -> Result<Self, Error> {
        if options.memory < memory::MIN_MEMORY {
            return Err(SetupError::Range {
                what: "the memory in bytes",
                actual: options.memory as u64,
                allowed: "at least 32M",
            }
            .into());
        }
        let selection = Selection::new(&options.only)?;
        let target = Arc::new(TargetDirectory::open(&options.directory)?);
        target.check_writable()?;
        let mark = KeptMark::open(&target, options.expectation.publisher, options.versions)?;
        let newer_than = mark.as_ref().and_then(KeptMark::newer_than);
        options.expectation.newer_than = options.expectation.newer_than.max(newer_than);
        let sources = &options.expectation.sources;
        let listening = options.reach.for_receiving(sources, options.receive_buffer)?;
        let interface = options.reach.interface()?.name;
        let sockets = ReceiveSocket::open_all(listening.base())?;
        let commands = unbounded();
        Ok(Self {
            options,
            sockets,
            listening,
            target,
            selection,
            mark,
            interface,
            commands,
            into: ReceiveInto::Directory,
        })
    }

    /// As [`open`](Self::open), for a consumer instead of a directory: a stream, or the one file of a
    /// session, goes to `writer` in its order, every byte of it verified, as soon as it can. `writer` is
    /// used on a thread of its own and may take its time; it is flushed at the end. The options'
    /// directory holds what is not written yet, under no name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_writer(
        options: ReceiveOptions,
        writer: impl Write + Send + 'static,
    ) -> Result<Self, Error> {
        Ok(Self { into: ReceiveInto::Writer(Box::new(writer)), ..Self::open(options)? })
    }

    /// As [`open`](Self::open), for a device, or a file that is written in place: the one file of a
    /// session, every symbol of which goes to its place at once, or a stream. Success is said after
    /// all of it was read back. The options' directory holds repair symbols, and what a receiver that
    /// is started again goes on with.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_device(options: ReceiveOptions, device: Device) -> Result<Self, Error> {
        // The others name files, and nobody vouches for their bytes.
        let options = ReceiveOptions { metadata: MetadataMode::Manifest, ..options };
        Ok(Self { into: ReceiveInto::Device(device), ..Self::open(options)? })
    }

    /// To accept sessions that are offered while [`run`](Self::run) keeps this thread.
    pub fn handle(&self) -> ReceiveHandle {
        ReceiveHandle(self.commands.0.clone())
    }

    /// Name of the interface that is listened on.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Set if the kernel gave less receive buffer than asked for: what it gave, and the remedy.
    pub fn buffer_shortfall(&self) -> Option<&BufferShortfall> {
        self.sockets.first()?.buffer_shortfall()
    }

    /// Receives until everything is on disk, nothing more can be done, the time is up, or `stop`
    /// says so.
    ///
    /// # Errors
    /// [`Error`] if the network or the system fails; an object that fails is told in the summary.
    pub fn run(
        self,
        stop: &Stop,
        observe: &mut dyn FnMut(ReceiveEvent<'_>),
    ) -> Result<ReceiveSummary, Error> {
        driver::run(self, stop, observe)
    }

    fn shares(&self) -> ReceiverMemory {
        ReceiverMemory::of(self.options.memory, self.options.workers)
    }

    fn limits(&self) -> ReceiverLimits {
        let defaults = ReceiverLimits::default();
        let Expectation { manifest, publisher, .. } = &self.options.expectation;
        // Where anybody's manifest may have to be looked at, all sessions' together must fit.
        let expected = manifest.is_some() || publisher.is_some();
        let share = if expected { 8 } else { 4 * defaults.max_sessions };
        let bytes = defaults.manifest.bytes.min(self.options.memory / share);
        ReceiverLimits {
            max_spool_bytes: self.shares().spool_bytes,
            max_decoder_bytes: self.shares().decoder_bytes,
            max_transfer_bytes: self.options.max_bytes,
            max_stream_window_bytes: self.options.window,
            manifest: ManifestLimits { bytes, ..defaults.manifest },
            max_recoveries: 2 * self.options.workers.max(1),
            ..defaults
        }
    }
}
