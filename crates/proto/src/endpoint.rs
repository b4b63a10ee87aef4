//! The contract between a protocol participant and whatever drives it: [`Endpoint`].

use crate::channel::ChannelId;
use crate::datagram::DatagramBatch;
use crate::time::Instant;
use fontana_fec::{Esi, Sbn};
use fontana_wire::{Toi, Tsi};
use std::net::IpAddr;

/// Names a session: the address it comes from and its TSI (RFC 5651, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// The sender's address.
    pub source: IpAddr,
    /// Its transport session identifier.
    pub tsi: Tsi,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To everyone who has joined the channel.
    Channel(ChannelId),
}

/// One source block of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The object.
    pub toi: Toi,
    /// The block in it.
    pub sbn: Sbn,
}

/// Names a batch of symbols that a sender asked its driver to prepare. Numbers count up from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// One encoding symbol, and where its driver prepared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolId {
    /// The source block.
    pub block: BlockId,
    /// The symbol of that block.
    pub esi: Esi,
    /// The batch it was prepared in.
    pub batch: BatchId,
    /// Its index in that batch.
    pub index: u32,
}

/// What an endpoint asks of its driver.
#[derive(Debug)]
pub enum Output<Job, Event> {
    /// Send a datagram: the bytes that were appended to `header`, then those of the symbol.
    Transmit {
        /// Where to.
        to: Destination,
        /// The prepared symbol that follows the header, if any.
        symbol: Option<SymbolId>,
    },
    /// Join the channel's group.
    Join(ChannelId),
    /// Leave it.
    Leave(ChannelId),
    /// Work on bytes; answer with [`Endpoint::handle_done`] where the job says so.
    Job(Job),
    /// Report to the application.
    Event(Event),
}

/// A protocol participant without input or output: it decides on ids, its driver moves bytes.
///
/// The law, for every driver, real or simulated:
///
/// 1. call one `handle_*`;
/// 2. call [`Endpoint::poll_output`] until it returns `None`;
/// 3. wait for datagrams, a finished job or [`Endpoint::poll_timeout`], whichever comes first.
///
/// `now` never decreases from one call to the next. [`Driver`](crate::Driver) does the second step,
/// for any endpoint and any way to run its jobs.
pub trait Endpoint {
    /// Work on bytes that it asks for.
    type Job;
    /// The answer to a job.
    type Done;
    /// What it reports to the application.
    type Event;
    /// Datagrams arrived. The outputs are the same as if each of them came in a batch of its own.
    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>);
    /// A job that was asked for has finished or failed.
    fn handle_done(&mut self, now: Instant, done: Self::Done);
    /// [`poll_timeout`](Self::poll_timeout) is due.
    fn handle_timeout(&mut self, now: Instant);
    /// The next output, or `None` when there is none until the next `handle_*`. With
    /// [`Output::Transmit`], the header has been appended to `header`.
    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<Self::Job, Self::Event>>;
    /// When `handle_timeout` must be called, if ever.
    fn poll_timeout(&self) -> Option<Instant>;
}
