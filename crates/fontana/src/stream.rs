//! Sending a stream: the bytes of a reader, while they are made.
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
use crate::send::{PreparedStream, StreamOptions};
use crate::session::{Events, Running};
use fontana_wire::{SecretKey, Ticket, Tsi};
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

/// What to send a stream as. Everything has a safe default: those of
/// [`SenderBuilder`](crate::SenderBuilder), and a tenth of repair symbols.
#[derive(Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct StreamSenderBuilder {
    options: StreamOptions,
    token: CancellationToken,
}

impl StreamSenderBuilder {
    /// Repair symbols per thousand source symbols.
    pub const DEFAULT_REPAIR_PERMILLE: u32 = 100;

    /// To this group, or host, with the default addressing otherwise.
    pub fn to(self, address: SocketAddr) -> Self {
        self.addressing(Addressing::to(address))
    }

    /// Where packets go, and how far.
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.options.addressing = addressing;
        self
    }

    /// Sends at most at this rate, IP and UDP headers included.
    pub fn rate(mut self, rate: Rate) -> Self {
        self.options.rate_bytes_per_second = rate.as_bytes_per_second();
        self
    }

    /// As [`SenderBuilder::controlled_network`](crate::SenderBuilder::controlled_network).
    pub fn controlled_network(mut self, controlled: bool) -> Self {
        self.options.controlled_network = controlled;
        self
    }

    /// Transport session identifier; drawn at random if not given.
    pub fn tsi(mut self, tsi: Option<Tsi>) -> Self {
        self.options.tsi = tsi;
        self
    }

    /// Source symbols per fragment, at most.
    pub fn block_symbols(mut self, symbols: u32) -> Self {
        self.options.block_symbols = symbols;
        self
    }

    /// Bytes per symbol; from the interface's MTU if not given.
    pub fn symbol_size(mut self, bytes: Option<u16>) -> Self {
        self.options.symbol_size = bytes;
        self
    }

    /// Repair symbols per thousand source symbols: nothing is sent a second time.
    pub fn repair_permille(mut self, permille: u32) -> Self {
        self.options.repair_permille = permille;
        self
    }

    /// For how long the stream is announced before it begins, so that receivers can be started.
    pub fn announce(mut self, time: Duration) -> Self {
        self.options.announce = time;
        self
    }

    /// Signs the stream; if not given, a key that is made for it.
    pub fn signer(mut self, key: Option<SecretKey>) -> Self {
        self.options.signer = key;
        self
    }

    /// Memory to use, in bytes.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.options.memory = bytes;
        self
    }

    /// Seed of everything random that need not be secret; from the system if not given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// Ends the session when `token` is cancelled; [`StreamSender::stop`] does not cancel it.
    pub fn cancellation_token(mut self, token: &CancellationToken) -> Self {
        self.token = token.clone();
        self
    }

    /// Opens the socket, and makes a key if none was given. Nothing is read or sent.
    ///
    /// # Errors
    /// [`Error`].
    pub fn prepare(self) -> Result<PreparedStream, Error> {
        PreparedStream::prepare(self.options, self.token.child_token())
    }

    /// Prepares, and sends what `reader` gives, on threads of its own.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), or that the system starts no thread.
    pub fn start(self, reader: impl Read + Send + 'static) -> Result<StreamSender, Error> {
        self.prepare()?.start(reader)
    }
}

impl PreparedStream {
    /// Sends what `reader` gives until it ends, on threads of its own. Only as much is read as
    /// there is room for; a read that never returns keeps its thread.
    ///
    /// # Errors
    /// [`IoError::Thread`](crate::IoError::Thread) if the system has no thread left.
    pub fn start(self, reader: impl Read + Send + 'static) -> Result<StreamSender, Error> {
        let (ticket, token) = (self.ticket().clone(), self.token());
        let work = move |token: &CancellationToken, tell: &mut dyn FnMut(SendEvent)| {
            self.run(reader, token, tell)
        };
        let running = Running::spawn("stream-sender", token, SendEvent::is_progress, work)?;
        Ok(StreamSender { running, ticket })
    }
}

/// A sender of a stream that is running. Dropping it stops it.
#[derive(Debug)]
pub struct StreamSender {
    running: Running<SendEvent, SendReport>,
    ticket: Ticket,
}

impl StreamSender {
    /// Sends a stream that receivers call by this name: one component.
    pub fn builder(name: impl Into<Vec<u8>>) -> StreamSenderBuilder {
        let repair_permille = StreamSenderBuilder::DEFAULT_REPAIR_PERMILLE;
        let options = StreamOptions { repair_permille, ..StreamOptions::new(name) };
        let token = CancellationToken::new();
        StreamSenderBuilder { options, token }
    }

    /// What a receiver needs to know.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// What happens, until the session ends.
    pub fn events(&self) -> Events<SendEvent> {
        self.running.events()
    }

    /// Asks it to end; receivers are told.
    pub fn stop(&self) {
        self.running.stop();
    }

    /// Waits until the stream was sent to its end, or it was stopped. Events that were not taken
    /// are dropped.
    ///
    /// # Errors
    /// [`IoError::Send`](crate::IoError::Send) if the network refuses for good. A reader that fails
    /// is in the report ([`IoError::Producer`](crate::IoError::Producer)), and receivers are told.
    pub fn join(self) -> Result<SendReport, Error> {
        self.running.join()
    }
}
