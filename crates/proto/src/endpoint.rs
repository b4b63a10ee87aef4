//! The contract between a protocol participant and whatever drives it: [`Endpoint`].

use crate::time::Instant;
use fontana_fec::{Esi, Sbn};
use fontana_wire::{Toi, Tsi};
use std::net::IpAddr;

/// One LCT channel of a session: a multicast group, known here only by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u8);

impl ChannelId {
    /// The one that every receiver is on first, and the slowest.
    pub const BASE: Self = Self(0);
}

/// Channels, one bit for each of the 256: what is asked of every packet is found without a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelSet {
    bits: [u64; 4],
    count: u16,
}

impl ChannelSet {
    /// Whether `channel` is one of them.
    pub const fn contains(&self, ChannelId(channel): ChannelId) -> bool {
        self.bits[(channel >> 6) as usize] >> (channel & 63) & 1 == 1
    }

    /// Adds `channel`. False if it was there.
    pub const fn insert(&mut self, channel: ChannelId) -> bool {
        let is_new = !self.contains(channel);
        self.bits[(channel.0 >> 6) as usize] |= 1 << (channel.0 & 63);
        self.count += is_new as u16;
        is_new
    }

    /// Takes `channel` out. False if it was not there.
    pub const fn remove(&mut self, channel: ChannelId) -> bool {
        let was_there = self.contains(channel);
        self.bits[(channel.0 >> 6) as usize] &= !(1 << (channel.0 & 63));
        self.count -= was_there as u16;
        was_there
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count.into()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All of them, the lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ChannelId> + '_ {
        (0..=u8::MAX).map(ChannelId).filter(|&channel| self.contains(channel))
    }
}

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

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Who sent it: a session is named by its sender's address and its TSI (RFC 5651, section 3).
    pub source: IpAddr,
    /// The channel it arrived on.
    pub channel: ChannelId,
    /// True if a router marked it: congestion experienced (RFC 3168).
    pub congestion_experienced: bool,
    /// Datagrams that this host itself lost since the one before: not a sign of congestion.
    pub dropped_before: u64,
    /// UDP payload.
    pub payload: &'a [u8],
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
/// 3. wait for a datagram, a finished job or [`Endpoint::poll_timeout`], whichever comes first.
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
    /// A datagram arrived.
    fn handle_datagram(&mut self, now: Instant, datagram: &Datagram<'_>);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_channels_has_room_for_each() {
        let mut set = ChannelSet::default();
        assert!(set.is_empty());
        for channel in [255, 0, 64, 63, 128].map(ChannelId) {
            assert!(set.insert(channel) && !set.insert(channel));
        }
        assert!(set.remove(ChannelId(64)) && !set.remove(ChannelId(64)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 128, 255].map(ChannelId));
        assert_eq!(set.iter().next_back(), Some(ChannelId(255)));
        assert_eq!(set.len(), 4);
    }
}
