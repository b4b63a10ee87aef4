//! Sending: files in, packets out.
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
use fontana_store::Filter;
use fontana_wire::Tsi;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// What to send, and how. Everything has a safe default: the default group, 100 Mbit/s at most,
/// this network only, until it is stopped.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct SenderBuilder {
    options: SendOptions,
    token: CancellationToken,
}

impl SenderBuilder {
    /// What receivers know the file by, instead of its own name: for a single file.
    pub fn name(mut self, name: impl Into<Vec<u8>>) -> Self {
        self.options.name = Some(name.into());
        self
    }

    /// Which of the files in a directory.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.options.filter = filter;
        self
    }

    /// To this group, or host, with the default addressing otherwise.
    pub fn to(self, address: SocketAddr) -> Self {
        let interface = self.options.addressing.interface.clone();
        self.addressing(Addressing { interface, ..Addressing::to(address) })
    }

    /// Where packets go, and how far.
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.options.addressing = addressing;
        self
    }

    /// The interface to send through; chosen by the routing table if not given.
    pub fn interface(mut self, interface: Option<InterfaceSelector>) -> Self {
        self.options.addressing.interface = interface;
        self
    }

    /// Sends at most at this rate, IP and UDP headers included. With several unicast hosts their
    /// copies share it.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.options.rate = rate;
        self
    }

    /// All networks that the packets can reach are the operator's, and have room for the rate:
    /// without congestion control, a session goes beyond this network ([`Addressing::hop_limit`])
    /// only if this is said (RFC 8085, section 4.1).
    pub fn controlled_network(mut self, controlled: bool) -> Self {
        self.options.controlled_network = controlled;
        self
    }

    /// Transport session identifier; if not given, that of the manifest ([`Tsi::of_manifest`]), and
    /// for plain FLUTE and FCAST one drawn at random.
    pub fn tsi(mut self, tsi: Option<Tsi>) -> Self {
        self.options.tsi = tsi;
        self
    }

    /// Until it is stopped, or a finite amount.
    pub fn mode(mut self, mode: SendMode) -> Self {
        self.options.mode = mode;
        self
    }

    /// In which order.
    pub fn ordering(mut self, ordering: Ordering) -> Self {
        self.options.ordering = ordering;
        self
    }

    /// What the session is to be good at: the order that [`Ordering::Even`] stands for, and how
    /// long blocks are. Receivers have a part in it, too: [`Profile::policy`].
    pub fn profile(mut self, profile: Profile) -> Self {
        self.options.profile = profile;
        self
    }

    /// With which code.
    pub fn code(mut self, code: Code) -> Self {
        self.options.code = code;
        self
    }

    /// Source symbols per block, about.
    pub fn block_symbols(mut self, symbols: u32) -> Self {
        self.options.block_symbols = symbols;
        self
    }

    /// Bytes per symbol; from the interface's MTU if not given.
    pub fn symbol_size(mut self, bytes: Option<u16>) -> Self {
        self.options.symbol_size = bytes;
        self
    }

    /// The format of the session, with what only that format has.
    pub fn format(mut self, format: Format) -> Self {
        self.options.format = format;
        self
    }

    /// Whether this sender sends the source symbols. Others of the same content do not.
    pub fn source_pass(mut self, source_pass: bool) -> Self {
        self.options.source_pass = source_pass;
        self
    }

    /// Whether other senders send the same content: then the ticket names no source, where the
    /// group permits.
    pub fn mirrored(mut self, mirrored: bool) -> Self {
        self.options.mirrored = mirrored;
        self
    }

    /// Memory to use, in bytes, whatever the size of the files.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Threads that read and encode.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// Seed of everything random that need not be secret; from the system if not given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Ends the session when `token` is cancelled; [`Sender::stop`] does not cancel it.
    pub fn cancellation_token(mut self, token: &CancellationToken) -> Self {
        self.token = token.clone();
        self
    }

    /// Examines and hashes the files, opens the socket, and lays out the session, without starting
    /// a thread. Nothing is sent.
    ///
    /// # Errors
    /// [`Error`].
    pub fn prepare(self) -> Result<PreparedSender, Error> {
        PreparedSender::prepare(self.options, self.token.child_token())
    }

    /// Prepares, and sends on threads of its own.
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
    /// Sends on threads of its own.
    ///
    /// # Errors
    /// [`IoError::Thread`](crate::IoError::Thread) if the system has no thread left.
    pub fn start(mut self) -> Result<Sender, Error> {
        let (description, token) = (Arc::clone(self.shared_description()), self.token());
        let carousel = self.take_carousel();
        let work =
            move |token: &CancellationToken, tell: &mut dyn FnMut(SendEvent)| self.run(token, tell);
        let running = Running::spawn("sender", token, SendEvent::is_progress, work)?;
        Ok(Sender { running, description, carousel })
    }
}

/// A sender that is running. Dropping it stops it.
#[derive(Debug)]
pub struct Sender {
    running: Running<SendEvent, SendReport>,
    description: Arc<SessionDescription>,
    /// Of a session that takes further files.
    carousel: Option<Carousel>,
}

impl Sender {
    /// Sends files, and directories with all that is in them. Receivers see the last component of
    /// each path.
    ///
    /// All of them are one session and scheduled together; [`Ordering::Sequential`] sends one after
    /// the other. An FCAST session takes further files while it runs: [`add`](Self::add).
    pub fn builder(files: impl IntoIterator<Item = impl Into<PathBuf>>) -> SenderBuilder {
        let files = files.into_iter().map(Into::into).collect();
        SenderBuilder { options: SendOptions::new(files), token: CancellationToken::new() }
    }

    /// What is sent, and how receivers find it.
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
        self.carousel()?.add(path.into())
    }

    /// Sends what was [added](Self::add), beside what is being sent (PUSH_DATA): the next instance
    /// of the carousel (RFC 6968, section 2.2). Does nothing if nothing was added.
    ///
    /// # Errors
    /// [`SetupError::NoFurtherFiles`] if the session takes none.
    pub fn go(&self) -> Result<(), Error> {
        self.carousel()?.go(false)
    }

    /// As [`go`](Self::go), and tells receivers that nothing will be added: they end when they have
    /// everything. The session continues for others until it is [stopped](Self::stop).
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

    /// What happens, until the session ends.
    pub fn events(&self) -> Events<SendEvent> {
        self.running.events()
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until everything has been sent, nothing is left to send, or it was stopped. Events
    /// that were not taken are dropped.
    ///
    /// # Errors
    /// [`IoError::Send`](crate::IoError::Send) if the network refuses for good. A file that changes
    /// is no error: it is given up, and the report says so.
    pub fn join(self) -> Result<SendReport, Error> {
        self.running.join()
    }
}
