//! The contract between an endpoint of the protocol and its driver: [`Endpoint`].

use crate::channel::ChannelId;
use crate::datagram::DatagramBatch;
use crate::time::Instant;
use fontana_fec::{Esi, Sbn};
use fontana_wire::{Toi, Tsi};
use std::net::{IpAddr, SocketAddr};

/// Identifies a session: its sender's address and its TSI (RFC 5651, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// The sender's address.
    pub source: IpAddr,
    /// Its transport session identifier.
    pub tsi: Tsi,
}

/// The destination of a datagram.
///
/// The senders and receivers of a one-way session use channels only. Drivers that carry no other
/// traffic send nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// All receivers that have joined the channel.
    Channel(ChannelId),
    /// Those of the channel's receivers that are within a number of links: multicast with a TTL.
    Scoped {
        /// The channel.
        channel: ChannelId,
        /// Most links to cross, at least one.
        hops: u8,
    },
    /// The sender of the session, by unicast, at an address that its publisher has signed. It is
    /// never the address that a datagram came from.
    Sender(SocketAddr),
    /// The other receivers of this site: multicast that no router passes on.
    Site,
    /// The host with this address, by unicast: [`Datagram::from`](crate::Datagram::from) of a
    /// datagram that it sent. An attacker chooses that address, so the endpoint must limit what it
    /// sends there.
    Peer(SocketAddr),
    /// The channel's receivers below a router, on the multicast tree of the session's sender: the
    /// datagram travels to the router by unicast, and from there down the tree. It is available
    /// only in networks whose routers support it, which the Internet's do not.
    Subcast {
        /// The router's address.
        router: SocketAddr,
        /// The channel.
        channel: ChannelId,
    },
}

/// One source block of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The object.
    pub toi: Toi,
    /// The number of the block.
    pub sbn: Sbn,
}

/// Identifies a batch of symbols that a sender asked its driver to prepare. Numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// One encoding symbol, and its place among the prepared ones.
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
    /// Bytes to send, from its first one: the symbol size, or less for the last source symbol of an
    /// object without its padding.
    pub size: u16,
}

/// A request of an endpoint to its driver.
#[derive(Debug)]
pub enum Output<Job, Event> {
    /// Send a datagram: the bytes that were appended to `header`, then those of the symbol.
    Transmit {
        /// The destination.
        to: Destination,
        /// The prepared symbol that follows the header, if any.
        symbol: Option<SymbolId>,
    },
    /// Join the channel's group.
    Join(ChannelId),
    /// Leave the channel's group.
    Leave(ChannelId),
    /// Do work on bytes. If the job has an answer, the driver passes it to
    /// [`Endpoint::handle_done`].
    Job(Job),
    /// Report to the application.
    Event(Event),
}

/// An endpoint of the protocol without input or output: it decides on ids, its driver moves bytes.
///
/// Every driver, real or simulated, must:
///
/// 1. call one `handle_*`;
/// 2. call [`Endpoint::poll_output`] until it returns `None`;
/// 3. wait for datagrams, a finished job or [`Endpoint::poll_timeout`], whichever comes first.
///
/// `now` never decreases from one call to the next. [`Driver`](crate::Driver) does the second step,
/// for any endpoint and job runner.
pub trait Endpoint {
    /// Work on bytes that it requests.
    type Job;
    /// The answer to a job.
    type Done;
    /// Reports to the application.
    type Event;
    /// Handles received datagrams. The outputs are the same as if each came in a batch of its own.
    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>);
    /// Handles the answer to a job that has finished or failed.
    fn handle_done(&mut self, now: Instant, done: Self::Done);
    /// Handles the time of [`poll_timeout`](Self::poll_timeout).
    fn handle_timeout(&mut self, now: Instant);
    /// The next output, or `None` if there is none until the next `handle_*`. With
    /// [`Output::Transmit`], the header has been appended to `header`.
    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<Self::Job, Self::Event>>;
    /// The time at which `handle_timeout` must be called; `None` if there is none.
    fn poll_timeout(&self) -> Option<Instant>;
}
