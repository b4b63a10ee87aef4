//! The sender of files.
//!
//! ```no_run
//! use fontana::{Rate, Sender};
//!
//! let sender = Sender::builder(["image.raw"]).rate(Rate::mbit(500)).start()?;
//! println!("fontana recv '{}'", sender.description().ticket);
//! let report = sender.join()?;
//! println!("{} bytes sent", report.stats.wire_bytes);
//! # Ok::<(), fontana::Error>(())
//! ```

use crate::addressing::Addressing;
use crate::cancellation::CancellationToken;
use crate::error::{Error, SetupError};
use crate::event::SendEvent;
use crate::format::Format;
use crate::geometry::Code;
use crate::rate::Rate;
use crate::report::SendReport;
use crate::send::{Carousel, Ordering, PreparedSender, SendOptions, SessionDescription};
use crate::session::{Events, Running};
use fontana_net::InterfaceSelector;
use fontana_proto::{Profile, SendMode};
use fontana_store::{Filter, SourceBytes};
use fontana_wire::Tsi;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The options of a sender. Defaults: the default group, 100 Mbit/s, this network only, no end.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct SenderBuilder {
    options: SendOptions,
    token: CancellationToken,
}

impl SenderBuilder {
    /// Sets the name that receivers give a single file, instead of its own.
    pub fn name(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.options.name = Some(name.into());
        self
    }

    /// Sends bytes in memory, beside the files, as a file of this name. They are read where they
    /// are, and not copied. Its time of modification is that of no file: 1970.
    pub fn bytes(
        mut self,
        name: impl Into<Vec<u8>>,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Self {
        self.options.in_memory.push((name.into(), SourceBytes::new(bytes)));
        self
    }

    /// Cuts the only file into these parts, each with blocks of its own. [`Ordering::Sequential`]
    /// sends one after the other, in this order, so that a receiver into
    /// [memory](crate::ReceiverBuilder::into_memory) uses the first before the others are there:
    /// the layers of a model. Bytes that are in no part come last. Each symbol belongs to one part:
    /// short ones cost up to a symbol more than they are long.
    pub fn parts(mut self, parts: impl IntoIterator<Item = Range<u64>>) -> Self {
        self.options.parts = parts.into_iter().collect();
        self
    }

    /// Selects files in directories.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.options.filter = filter;
        self
    }

    /// Sends to this group or host, with the default addressing otherwise.
    pub fn to(self, address: SocketAddr) -> Self {
        let interfaces = self.options.addressing.interfaces.clone();
        self.addressing(Addressing { interfaces, ..Addressing::to(address) })
    }

    /// Sets destinations, channels, interface and hop limit.
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.options.addressing = addressing;
        self
    }

    /// Sends through this interface; the routing table chooses it if `None`.
    pub fn interface(mut self, interface: Option<InterfaceSelector>) -> Self {
        self.options.addressing.interfaces = interface.into_iter().collect();
        self
    }

    /// Sends at most at this rate, IP and UDP headers included. The copies to several unicast hosts
    /// share it.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.options.rate = rate;
        self
    }

    /// Sets the window in which a late sender exceeds the rate by a quarter to catch up, at most
    /// 100 ms. In any window `w` at most `min(1.25 * rate * (w + window), rate * (w + 100 ms))` and
    /// 2 ms of the rate are sent. The default, 20 ms, keeps the rate on a busy host. Zero, for
    /// networks with small queues: lost time is lost, and at most `rate * w` and 2 ms are sent.
    /// Layered sessions never catch up.
    pub fn peak_window(mut self, window: Duration) -> Self {
        self.options.peak_window = window;
        self
    }

    /// Asserts that all networks that the packets can reach are the operator's, and have room for
    /// the rate. A session without congestion control may leave this network
    /// ([`Addressing::hop_limit`]) only with this assertion (RFC 8085, section 4.1).
    pub fn controlled_network(mut self, controlled: bool) -> Self {
        self.options.controlled_network = controlled;
        self
    }

    /// Sets the transport session identifier. If `None`, it follows from the manifest
    /// ([`Tsi::of_manifest`]); for plain FLUTE and FCAST it is random. Only plain FLUTE takes 0,
    /// which RFC 5775 excludes, and which some programs send and expect.
    pub fn tsi(mut self, tsi: Option<Tsi>) -> Self {
        self.options.tsi = tsi;
        self
    }

    /// Sets whether the sender has an end.
    pub fn mode(mut self, mode: SendMode) -> Self {
        self.options.mode = mode;
        self
    }

    /// Sets the order of symbols.
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.options.ordering = ordering;
        self
    }

    /// Optimizes the session: the order of [`Ordering::Even`], and the length of blocks. Receivers
    /// should have the same profile: [`Profile::policy`].
    pub fn profile(mut self, profile: Profile) -> Self {
        self.options.profile = profile;
        self
    }

    /// Sets the erasure code.
    pub fn code(mut self, code: Code) -> Self {
        self.options.code = code;
        self
    }

    /// Sets the approximate number of source symbols per block.
    pub fn block_symbols(mut self, symbols: u32) -> Self {
        self.options.block_symbols = symbols;
        self
    }

    /// Sets the bytes per symbol; the interface's MTU determines them if `None`.
    pub fn symbol_size(mut self, bytes: Option<u16>) -> Self {
        self.options.symbol_size = bytes;
        self
    }

    /// Sets the format of the session and the options that only this format has.
    pub fn format(mut self, format: Format) -> Self {
        self.options.format = format;
        self
    }

    /// Sets whether this sender sends the source symbols. Other senders of the content do not.
    pub fn source_pass(mut self, source_pass: bool) -> Self {
        self.options.source_pass = source_pass;
        self
    }

    /// Begins the source pass at this part of each block, in parts of 2^32, if the code is
    /// rateless: elsewhere than other senders of the content begin theirs. By default 0.
    pub fn pass_start(mut self, start: u32) -> Self {
        self.options.pass_start = start;
        self
    }

    /// Sets whether other senders send the same content. The ticket then names no source, where the
    /// group permits that.
    pub fn mirrored(mut self, mirrored: bool) -> Self {
        self.options.mirrored = mirrored;
        self
    }

    /// Uses at most this much memory, in bytes, whatever the size of the files.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Uses at most this much space for solved blocks that exceed the memory, in bytes, in an
    /// unnamed file in the directory for temporary files (`TMPDIR`, or `/var/tmp`), unless that is
    /// in memory. 0: none. `None`: a quarter of the free space.
    pub fn scratch(mut self, bytes: Option<u64>) -> Self {
        self.options.scratch = bytes;
        self
    }

    /// Sets the number of threads that read and encode.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// Sets the seed of all random numbers that need not be secret; random if not given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Ends the session when `token` is cancelled; [`Sender::stop`] does not cancel it.
    pub fn cancellation_token(mut self, token: &CancellationToken) -> Self {
        self.token = token.clone();
        self
    }

    /// Examines and hashes the files, opens the socket and plans the session. Starts no thread and
    /// sends nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub fn prepare(self) -> Result<PreparedSender, Error> {
        PreparedSender::prepare(self.options, self.token.child_token())
    }

    /// Prepares, and sends on its own threads.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), or that the system starts no thread.
    pub fn start(self) -> Result<Sender, Error> {
        self.prepare()?.start()
    }

    pub(crate) fn into_parts(self) -> (SendOptions, CancellationToken) {
        (self.options, self.token.child_token())
    }
}

impl PreparedSender {
    /// Sends on its own threads.
    ///
    /// # Errors
    /// [`IoError::Thread`](crate::IoError::Thread) if the system has no thread left.
    pub fn start(mut self) -> Result<Sender, Error> {
        let (description, token) = (Arc::clone(self.shared_description()), self.token());
        let carousel = self.take_carousel();
        let work =
            move |token: &CancellationToken, emit: &mut dyn FnMut(SendEvent)| self.run(token, emit);
        let running = Running::spawn("sender", token, SendEvent::replaces, work)?;
        Ok(Sender { running, description, carousel })
    }
}

/// A running sender. Dropping it stops it.
#[derive(Debug)]
pub struct Sender {
    running: Running<SendEvent, SendReport>,
    description: Arc<SessionDescription>,
    /// Present if the session takes further files.
    carousel: Option<Carousel>,
}

impl Sender {
    /// The options for sending files, and directories with their content. Receivers see the last
    /// component of each path.
    ///
    /// All files are one session and are scheduled together; [`Ordering::Sequential`] sends one
    /// after the other. An FCAST session takes further files while it runs: [`add`](Self::add).
    pub fn builder(files: impl IntoIterator<Item = impl Into<PathBuf>>) -> SenderBuilder {
        let files = files.into_iter().map(Into::into).collect();
        SenderBuilder { options: SendOptions::new(files), token: CancellationToken::new() }
    }

    /// The options for sending bytes in memory, as a file of this name.
    ///
    /// ```no_run
    /// use fontana::Sender;
    ///
    /// let sender = Sender::from_bytes("weights", vec![7; 1 << 20]).start()?;
    /// println!("fontana recv '{}'", sender.description().ticket);
    /// # Ok::<(), fontana::Error>(())
    /// ```
    pub fn from_bytes(
        name: impl Into<Vec<u8>>,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> SenderBuilder {
        Self::builder(std::iter::empty::<PathBuf>()).bytes(name, bytes)
    }

    /// The content of the session and its ticket.
    pub fn description(&self) -> &SessionDescription {
        &self.description
    }

    /// Adds a file, or the files of a directory, to a running FCAST session that is
    /// [`growing`](crate::FcastFormat::growing): KEEP_DATA in Roca and Mordelet 2002, section
    /// 4.2.3. Examines and hashes them on this thread. They are sent from the next
    /// [`go`](Self::go) on.
    ///
    /// # Errors
    /// [`SetupError::NoFurtherFiles`] if the session takes none, [`SetupError::SameName`] if the
    /// session has a file of this name, and what [`SenderBuilder::prepare`] reports of files.
    pub fn add(&self, path: impl Into<PathBuf>) -> Result<(), Error> {
        self.carousel()?.add(&[path.into()])
    }

    /// [Adds](Self::add) several paths, all of them or none. They take less memory together.
    ///
    /// # Errors
    /// As [`add`](Self::add), of one of them.
    pub fn add_all(&self, paths: &[PathBuf]) -> Result<(), Error> {
        self.carousel()?.add(paths)
    }

    /// Sends what was [added](Self::add), beside what is being sent (PUSH_DATA): the next instance
    /// of the carousel (RFC 6968, section 2.2). Does nothing if nothing was added.
    ///
    /// # Errors
    /// [`SetupError::NoFurtherFiles`] if the session takes none.
    pub fn go(&self) -> Result<(), Error> {
        self.carousel()?.go(false)
    }

    /// Does the same as [`go`](Self::go), and announces that no file will be added: receivers end
    /// when they have everything. The session continues for others until it is
    /// [stopped](Self::stop).
    ///
    /// # Errors
    /// [`SetupError::NoFurtherFiles`] if the session takes none.
    pub fn finish(&self) -> Result<(), Error> {
        self.carousel()?.go(true)
    }

    fn carousel(&self) -> Result<&Carousel, Error> {
        let reason = "it is no FCAST session that was started as growing";
        Ok(self.carousel.as_ref().ok_or(SetupError::NoFurtherFiles(reason))?)
    }

    /// The events of the session.
    pub fn events(&self) -> Events<SendEvent> {
        self.running.events()
    }

    /// Requests the end of the session.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until everything has been sent, nothing is left to send, or the session was stopped.
    /// Drops events that were not taken.
    ///
    /// # Errors
    /// [`IoError::Send`](crate::IoError::Send) if the network refuses permanently. A file that
    /// changes is no error: it is given up, and is listed in the report.
    pub fn join(self) -> Result<SendReport, Error> {
        self.running.join()
    }
}
