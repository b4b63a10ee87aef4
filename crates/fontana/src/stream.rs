//! The sender of a stream: the bytes of a reader, sent while they are produced.
//!
//! ```no_run
//! use fontana::{Outcome, StreamSender};
//!
//! let stream = StreamSender::builder("dump").prepare()?;
//! println!("fontana recv '{}' --to -", stream.ticket());
//! let report = stream.start(std::io::stdin())?.join()?;
//! assert_eq!(report.outcome, Outcome::Complete);
//! # Ok::<(), fontana::Error>(())
//! ```

use crate::addressing::Addressing;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::SendEvent;
use crate::rate::Rate;
use crate::report::SendReport;
use crate::reporting::ReportCollection;
use crate::seal::{ContentKey, GroupSeal};
use crate::send::{PreparedStream, StreamOptions};
use crate::session::{Events, Running};
use fontana_proto::StreamRedundancy;
use fontana_wire::{SecretKey, Ticket, Tsi};
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

/// The options of a stream. Defaults are those of [`SenderBuilder`](crate::SenderBuilder), and 10 %
/// repair symbols.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct StreamSenderBuilder {
    options: StreamOptions,
    token: CancellationToken,
}

impl StreamSenderBuilder {
    /// Default of [`repair_permille`](Self::repair_permille).
    pub const DEFAULT_REPAIR_PERMILLE: u32 = 100;

    /// Sends to this group or host, with the default addressing otherwise.
    pub fn to(self, address: SocketAddr) -> Self {
        self.addressing(Addressing::to(address))
    }

    /// Sets destinations, interface and hop limit.
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.options.addressing = addressing;
        self
    }

    /// Sends at most at this rate, IP and UDP headers included.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.options.rate = rate;
        self
    }

    /// As [`SenderBuilder::peak_window`](crate::SenderBuilder::peak_window).
    pub fn peak_window(mut self, window: Duration) -> Self {
        self.options.peak_window = window;
        self
    }

    /// As [`SenderBuilder::controlled_network`](crate::SenderBuilder::controlled_network).
    pub fn controlled_network(mut self, controlled: bool) -> Self {
        self.options.controlled_network = controlled;
        self
    }

    /// Sets the transport session identifier; random if `None`.
    pub fn tsi(mut self, tsi: Option<Tsi>) -> Self {
        self.options.tsi = tsi;
        self
    }

    /// Sets the largest number of source symbols per fragment. Without it they have
    /// [`DEFAULT_BLOCK_SYMBOLS`](crate::DEFAULT_BLOCK_SYMBOLS), or a twelfth of a second at the
    /// highest rate, and at least 1 000, if receivers [request](StreamRedundancy::Reported) repair
    /// symbols: the fragments that they can request cover four seconds.
    pub fn block_symbols(mut self, symbols: Option<u32>) -> Self {
        self.options.block_symbols = symbols;
        self
    }

    /// Sets the bytes per symbol; the interface's MTU determines them if `None`.
    pub fn symbol_size(mut self, bytes: Option<u16>) -> Self {
        self.options.symbol_size = bytes;
        self
    }

    /// Sets the repair symbols per thousand source symbols. No symbol is sent twice.
    pub fn repair_permille(self, permille: u32) -> Self {
        self.redundancy(StreamRedundancy::Fixed { permille })
    }

    /// Sets how many repair symbols fragments have. [`StreamRedundancy::Reported`] needs
    /// [`reports`](Self::reports).
    pub fn redundancy(mut self, redundancy: StreamRedundancy) -> Self {
        self.options.redundancy = redundancy;
        self
    }

    /// Collects reports of the receivers.
    pub fn reports(mut self, reports: Option<ReportCollection>) -> Self {
        self.options.reports = reports;
        self
    }

    /// Begins when so many receivers have [reported](Self::reports), instead of after a
    /// [time](Self::announce); 0: none are waited for. Before, nothing is read but what fills the
    /// buffers. [`ReportCollection::deadline`] ends the wait.
    pub fn wait_for_receivers(mut self, receivers: u32) -> Self {
        self.options.waits_for = receivers;
        self
    }

    /// Announces the stream for this long before it begins, so that receivers can be started.
    pub fn announce(mut self, time: Duration) -> Self {
        self.options.announce = time;
        self
    }

    /// Signs the stream with this key; with a new key if `None`.
    pub fn signer(mut self, key: Option<SecretKey>) -> Self {
        self.options.signer = key;
        self
    }

    /// Sets the time after which heads expire, which the sender renews while it runs: 30 days by
    /// default, and never if `None`. See
    /// [`FontanaFormat::expires_after`](crate::FontanaFormat::expires_after).
    pub fn expires_after(mut self, lifetime: Option<Duration>) -> Self {
        self.options.expires_after = lifetime;
        self
    }

    /// Signs the stream by this key if no [`signer`](Self::signer) is given, and encrypts it for
    /// all who have its ticket if no [`group_seal`](Self::group_seal) is given.
    pub fn key(mut self, key: Option<ContentKey>) -> Self {
        self.options.key = key;
        self
    }

    /// As [`FontanaFormat::group_seal`](crate::FontanaFormat::group_seal).
    pub fn group_seal(mut self, seal: Option<GroupSeal>) -> Self {
        self.options.group_seal = seal;
        self
    }

    /// Uses at most this much memory, in bytes.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Sets the seed of all random numbers that need not be secret; random if not given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Ends the session when `token` is cancelled; [`StreamSender::stop`] does not cancel it.
    pub fn cancellation_token(mut self, token: &CancellationToken) -> Self {
        self.token = token.clone();
        self
    }

    /// Opens the socket, and makes a key if none was given. Reads and sends nothing.
    ///
    /// # Errors
    /// [`Error`].
    pub fn prepare(self) -> Result<PreparedStream, Error> {
        PreparedStream::prepare(self.options, self.token.child_token())
    }

    /// Prepares, and sends the bytes of `reader` on its own threads.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), or that the system starts no thread.
    pub fn start(self, reader: impl Read + Send + 'static) -> Result<StreamSender, Error> {
        self.prepare()?.start(reader)
    }
}

impl PreparedStream {
    /// Sends the bytes of `reader` to its end, on its own threads. Reads only what the memory has
    /// room for. A read that never returns keeps its thread.
    ///
    /// # Errors
    /// [`IoError::Thread`](crate::IoError::Thread) if the system has no thread left.
    pub fn start(self, reader: impl Read + Send + 'static) -> Result<StreamSender, Error> {
        let (ticket, token) = (self.ticket().clone(), self.token());
        let work = move |token: &CancellationToken, emit: &mut dyn FnMut(SendEvent)| {
            self.run(reader, token, emit)
        };
        let running = Running::spawn("stream-sender", token, SendEvent::replaces, work)?;
        Ok(StreamSender { running, ticket })
    }
}

/// A running sender of a stream. Dropping it stops it.
#[derive(Debug)]
pub struct StreamSender {
    running: Running<SendEvent, SendReport>,
    ticket: Ticket,
}

impl StreamSender {
    /// The options for a stream of this name, which has one component.
    pub fn builder(name: impl Into<Vec<u8>>) -> StreamSenderBuilder {
        let permille = StreamSenderBuilder::DEFAULT_REPAIR_PERMILLE;
        let redundancy = StreamRedundancy::Fixed { permille };
        let options = StreamOptions { redundancy, ..StreamOptions::new(name) };
        let token = CancellationToken::new();
        StreamSenderBuilder { options, token }
    }

    /// The ticket for receivers.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The events of the session.
    pub fn events(&self) -> Events<SendEvent> {
        self.running.events()
    }

    /// Requests the end of the session, and announces it to receivers.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until the stream was sent to its end, or was stopped. Drops events that were not
    /// taken.
    ///
    /// # Errors
    /// [`IoError::Send`](crate::IoError::Send) if the network refuses permanently. A reader that
    /// fails is in the report ([`IoError::Producer`](crate::IoError::Producer)), and receivers are
    /// notified.
    pub fn join(self) -> Result<SendReport, Error> {
        self.running.join()
    }
}
