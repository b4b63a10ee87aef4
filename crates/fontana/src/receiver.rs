//! The receiver of files.
//!
//! ```no_run
//! use fontana::{Outcome, Receiver};
//!
//! let ticket = "fontana://10.0.0.7@239.255.77.1:7701/5".parse().unwrap();
//! let receiver = Receiver::from_ticket(&ticket).into_dir("downloads").start()?;
//! for event in receiver.events() {
//!     println!("{event:?}");
//! }
//! assert_eq!(receiver.join()?.outcome, Outcome::Complete);
//! # Ok::<(), fontana::Error>(())
//! ```

use crate::addressing::Addressing;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::ReceiveEvent;
use crate::format::{FluteReception, FontanaReception, ReceiveFormat};
use crate::rate::Rate;
#[cfg(feature = "serve")]
use crate::receive::HeldContent;
use crate::receive::{Commands, PreparedReceiver, ReceiveOptions, SimulatedLoss};
use crate::report::ReceiveReport;
use crate::seal::GroupKey;
use crate::session::{Events, Running};
use fontana_net::InterfaceSelector;
use fontana_proto::{DecodePolicy, MetadataMode, SessionKey};
use fontana_store::{Device, Memory};
use fontana_wire::{Ticket, Tsi};
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "web")]
mod mirrors;

/// The options of a receiver. Defaults: the default group, the first session received, and the
/// current directory.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct ReceiverBuilder {
    options: ReceiveOptions,
    token: CancellationToken,
}

impl Default for ReceiverBuilder {
    fn default() -> Self {
        let options = ReceiveOptions {
            policy: Self::DEFAULT_POLICY,
            max_bytes: Self::DEFAULT_MAX_BYTES,
            give_up_after_silence: Some(Self::DEFAULT_SILENCE),
            ..ReceiveOptions::new(".")
        };
        Self { options, token: CancellationToken::new() }
    }
}

impl ReceiverBuilder {
    /// Default of [`max_bytes`](Self::max_bytes).
    pub const DEFAULT_MAX_BYTES: u64 = 1 << 45;
    /// Default of [`give_up_after_silence`](Self::give_up_after_silence).
    pub const DEFAULT_SILENCE: Duration = Duration::from_secs(60);
    /// Default of [`policy`](Self::policy).
    pub const DEFAULT_POLICY: DecodePolicy = DecodePolicy::Incremental;

    /// The options of a ticket: its group and channels, session, sources, manifest and key.
    pub fn from_ticket(ticket: &Ticket) -> Self {
        Self::default()
            .addressing(Addressing::of_ticket(ticket))
            .tsi(Some(ticket.tsi))
            .sources(ticket.sources.clone())
            .format(ReceiveFormat::from_ticket(ticket))
    }

    /// Sets where to listen. Only the first of several addresses is used. Without a ticket, a
    /// session may use only the channels given here, if there are several.
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.options.addressing = addressing;
        self
    }

    /// Joins the groups on these interfaces; the routing table chooses one if there are none.
    pub fn interfaces(mut self, interfaces: Vec<InterfaceSelector>) -> Self {
        self.options.addressing.interfaces = interfaces;
        self
    }

    /// Receives only the session with this transport session identifier.
    pub fn tsi(mut self, tsi: Option<Tsi>) -> Self {
        self.options.expectation.tsi = tsi;
        self
    }

    /// Receives only from these sources; from any source if empty.
    pub fn sources(mut self, sources: Vec<IpAddr>) -> Self {
        self.options.expectation.sources = sources;
        self
    }

    /// Sets the format of the session and the options that only this format has.
    pub fn format(mut self, format: ReceiveFormat) -> Self {
        let (metadata, fontana, flute) = match format {
            ReceiveFormat::Fontana(fontana) => {
                (MetadataMode::Manifest, fontana, FluteReception::default())
            }
            ReceiveFormat::Flute(flute) => {
                let (only, skip_existing) = (flute.only.clone(), flute.skip_existing);
                let shared = FontanaReception { only, skip_existing, ..Default::default() };
                (MetadataMode::Flute, shared, flute)
            }
            ReceiveFormat::Fcast => {
                (MetadataMode::Fcast, FontanaReception::default(), FluteReception::default())
            }
        };
        let options = &mut self.options;
        options.metadata = metadata;
        (options.watches_tables, options.lists) = (flute.watch, flute.list);
        (options.deletes_expired, options.file_name) = (flute.delete, flute.file_name);
        options.expectation.manifest = fontana.manifest;
        options.expectation.publisher = fontana.publisher;
        options.expectation.ignore_expiry = fontana.ignore_expiry;
        options.acceptance = fontana.acceptance;
        options.versions = fontana.versions;
        options.skip_existing = fontana.skip_existing;
        options.all_or_nothing = fontana.all_or_nothing;
        options.delete = fontana.delete;
        options.only = fontana.only;
        options.window = fontana.stream_window;
        options.group_key = fontana.group_key;
        options.reporting = fontana.reporting;
        options.sharing = fontana.sharing;
        self
    }

    /// Receives into this directory, which is created if it does not exist.
    pub fn into_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.options.directory = directory.into();
        self
    }

    /// Writes a stream, or the one file of a session, to `writer` in order, every byte verified, as
    /// soon as possible. `writer` runs on a thread of its own, may block, and is flushed at the
    /// end. The directory `staging` holds what is not written yet, in unnamed files.
    pub fn into_pipe(
        mut self,
        writer: impl Write + Send + 'static,
        staging: impl Into<PathBuf>,
    ) -> ReceiverInto {
        self.options.directory = staging.into();
        ReceiverInto { builder: self, target: Target::Pipe(Box::new(writer)) }
    }

    /// Writes a stream, or the one file of a session, to a device or a file in place: every source
    /// symbol to its position at once. Success is reported after all of it was read back. The
    /// directory `staging` holds repair symbols, and what a restarted receiver resumes with.
    pub fn into_device(mut self, device: Device, staging: impl Into<PathBuf>) -> ReceiverInto {
        self.options.directory = staging.into();
        ReceiverInto { builder: self, target: Target::Device(device) }
    }

    /// Writes the one file of a session to memory: every source symbol to its position at once, and
    /// no second copy of it. [`Memory::on_verified`] gets the ranges that are verified, before all
    /// are; a stream arrives in order. The memory has at least the bytes of the file. The directory
    /// `staging` holds repair symbols until their blocks are verified, in files without a name.
    ///
    /// ```no_run
    /// use fontana::Receiver;
    /// use std::sync::{Arc, RwLock};
    ///
    /// # let ticket = "fontana://10.0.0.7@239.255.77.1:7701/5".parse().unwrap();
    /// let memory = Arc::new(RwLock::new(vec![0; 1 << 20]));
    /// let receiver = Receiver::from_ticket(&ticket).into_memory(memory.clone(), "/dev/shm");
    /// receiver.start()?.join()?;
    /// let bytes = memory.read();
    /// # Ok::<(), fontana::Error>(())
    /// ```
    pub fn into_memory(
        mut self,
        memory: Arc<impl Memory + 'static>,
        staging: impl Into<PathBuf>,
    ) -> ReceiverInto {
        self.options.directory = staging.into();
        ReceiverInto { builder: self, target: Target::Memory(memory) }
    }

    /// Sets whether existing files are replaced.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.options.overwrite = overwrite;
        self
    }

    /// Sets whether to stay in the group until every block is verified. By default it is off: a
    /// receiver leaves when it has enough symbols, and joins again if some of them turn out to be
    /// wrong. If strangers forge symbols of a session that sends everything once, that is too late.
    pub fn stay_until_verified(mut self, stays: bool) -> Self {
        self.options.stays_until_verified = stays;
        self
    }

    /// Sets whether each file that gets its name is [reported](ReceiveEvent::FileNamed) with its
    /// hash. The files of plain FLUTE and FCAST are not. By default it is off: every file is read
    /// once more.
    pub fn report_files(mut self, reports: bool) -> Self {
        self.options.report_files = reports;
        self
    }

    /// Joins at most this many channels of a session at a time.
    pub fn max_channels(mut self, channels: u8) -> Self {
        self.options.max_channels = channels;
        self
    }

    /// Joins at most this rate, by the rates of layers that the session's head states. A session
    /// whose lowest layer is faster is refused. Mirrors together send at most this
    /// rate as well.
    pub fn max_rate(mut self, rate: Rate) -> Self {
        self.options.max_rate_bytes_per_second = Some(rate.as_bytes_per_second());
        self
    }

    /// Sets when to decode.
    pub fn policy(mut self, policy: DecodePolicy) -> Self {
        self.options.policy = policy;
        self
    }

    /// Uses at most this much memory, in bytes, whatever the size of the files.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Sets the number of threads that decode and write.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// Asks the kernel for this many bytes of receive buffer.
    pub fn receive_buffer(mut self, bytes: usize) -> Self {
        self.options.receive_buffer = bytes;
        self
    }

    /// Accepts at most this many bytes in one session.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.options.max_bytes = bytes;
        self
    }

    /// Gives up if the session is not complete after this time. `None`, the default: never. A plain
    /// FLUTE session whose tables do not say that they are complete ends then, complete if
    /// everything was received that they announced.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.options.timeout = timeout;
        self
    }

    /// Gives up if no packet of the session has arrived for this long. `None`: never. By default
    /// after [`DEFAULT_SILENCE`](Self::DEFAULT_SILENCE).
    ///
    /// A plain FLUTE session whose tables do not say that they are complete ends if everything was
    /// received that they announced, and no table has announced more for this long.
    pub fn give_up_after_silence(mut self, silence: Option<Duration>) -> Self {
        self.options.give_up_after_silence = silence;
        self
    }

    /// Shows what is received in `held`, as soon as it is verified: a
    /// [`WebServer`](crate::WebServer) gives it out meanwhile. Only of files in a directory.
    #[cfg(feature = "serve")]
    pub fn hold(mut self, held: &HeldContent) -> Self {
        self.options.held = Some(held.clone());
        self
    }

    /// Drops datagrams at random, for tests.
    pub fn simulated_loss(mut self, loss: Option<SimulatedLoss>) -> Self {
        self.options.simulated_loss = loss;
        self
    }

    /// Ends the session when `token` is cancelled; [`Receiver::stop`] does not cancel it.
    pub fn cancellation_token(mut self, token: &CancellationToken) -> Self {
        self.token = token.clone();
        self
    }

    /// Opens the directory and the socket, and joins the group, without starting a thread.
    ///
    /// # Errors
    /// [`Error`]. Nothing has changed then, except that the directory may have been created.
    pub fn prepare(self) -> Result<PreparedReceiver, Error> {
        PreparedReceiver::open(self.options, self.token.child_token())
    }

    /// Prepares, and receives on its own threads.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), or that the system starts no thread.
    pub fn start(self) -> Result<Receiver, Error> {
        self.prepare()?.start()
    }

    pub(crate) fn into_parts(self) -> (ReceiveOptions, CancellationToken) {
        (self.options, self.token.child_token())
    }
}

/// A receiver into a pipe, a device or memory.
#[must_use = "it does nothing until `start`"]
pub struct ReceiverInto {
    builder: ReceiverBuilder,
    target: Target,
}

enum Target {
    Pipe(Box<dyn Write + Send>),
    Device(Device),
    Memory(Arc<dyn Memory>),
}

impl ReceiverInto {
    /// Opens the staging directory and the socket, and joins the group, without starting a thread.
    ///
    /// # Errors
    /// As [`ReceiverBuilder::prepare`].
    pub fn prepare(self) -> Result<PreparedReceiver, Error> {
        let (options, token) = self.builder.into_parts();
        match self.target {
            Target::Pipe(writer) => PreparedReceiver::open_writer(options, writer, token),
            Target::Device(device) => PreparedReceiver::open_device(options, device, token),
            Target::Memory(memory) => PreparedReceiver::open_memory(options, memory, token),
        }
    }

    /// Prepares, and receives on its own threads.
    ///
    /// # Errors
    /// As [`ReceiverBuilder::start`].
    pub fn start(self) -> Result<Receiver, Error> {
        self.prepare()?.start()
    }
}

impl FontanaReception {
    /// The manifest and the publisher of a ticket.
    pub fn from_ticket(ticket: &Ticket) -> Self {
        Self {
            manifest: ticket.manifest,
            publisher: ticket.key,
            group_key: ticket.secret.as_ref().map(GroupKey::of_ticket),
            ..Self::default()
        }
    }
}

impl PreparedReceiver {
    /// Receives on its own threads.
    ///
    /// # Errors
    /// [`IoError::Thread`](crate::IoError::Thread) if the system has no thread left.
    pub fn start(self) -> Result<Receiver, Error> {
        let (commands, token) = (self.commands(), self.token());
        let work = move |token: &CancellationToken, emit: &mut dyn FnMut(ReceiveEvent)| {
            self.run(token, emit).map(|result| result.report)
        };
        let running = Running::spawn("receiver", token, ReceiveEvent::replaces, work)?;
        Ok(Receiver { running, commands })
    }
}

/// A running receiver. Dropping it stops it.
#[derive(Debug)]
pub struct Receiver {
    running: Running<ReceiveEvent, ReceiveReport>,
    commands: Commands,
}

impl Receiver {
    /// The default options: the first session on the default group.
    pub fn builder() -> ReceiverBuilder {
        ReceiverBuilder::default()
    }

    /// The options of a ticket.
    pub fn from_ticket(ticket: &Ticket) -> ReceiverBuilder {
        ReceiverBuilder::from_ticket(ticket)
    }

    /// The events of the session.
    pub fn events(&self) -> Events<ReceiveEvent> {
        self.running.events()
    }

    /// Accepts a session that was offered.
    pub fn accept(&self, session: SessionKey) {
        self.commands.accept(session);
    }

    /// Requests the end of the session. What was received is saved.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until everything is on disk, no progress is possible, or the time is up. Drops events
    /// that were not taken.
    ///
    /// # Errors
    /// [`Error`] if the network or the system fails. Objects that fail are listed in the report.
    pub fn join(self) -> Result<ReceiveReport, Error> {
        self.running.join()
    }
}
