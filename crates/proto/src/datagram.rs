//! Received datagrams: a batch is one slab of bytes and a list of ranges of it.

use crate::channel::ChannelId;
use std::net::SocketAddr;
use std::ops::Range;

/// The two bits of explicit congestion notification (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not support ECN.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 0.
    Ect0,
    /// ECN-capable, codepoint 1.
    Ect1,
    /// A router on the path was congested.
    CongestionExperienced,
}

/// Where a datagram arrives at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// A channel of the session: [`ChannelId::BASE`] also if it was sent to this host alone.
    Channel(ChannelId),
    /// The sender's socket for answers of receivers.
    Feedback,
    /// The group of the receivers of this site.
    Site,
}

impl Port {
    /// The port of the packets of every session.
    pub const BASE: Self = Self::Channel(ChannelId::BASE);

    /// The channel; `None` of the others.
    pub const fn channel(self) -> Option<ChannelId> {
        match self {
            Self::Channel(channel) => Some(channel),
            Self::Feedback | Self::Site => None,
        }
    }
}

/// A received datagram. Its bytes are a range of its batch's slab. All of it may be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The source address. A session is identified by its sender's address and its TSI (RFC 5651,
    /// section 3). [`Destination::Peer`](crate::Destination::Peer) answers it.
    pub from: SocketAddr,
    /// Where it arrived.
    pub port: Port,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Datagrams that this host has lost since the previous one, which is not a sign of congestion.
    pub dropped_before: u64,
    /// The range of the UDP payload in the slab.
    pub payload: Range<u32>,
}

/// Datagrams that were received together, in the order of their arrival.
#[derive(Clone, Copy, Debug)]
pub struct DatagramBatch<'a> {
    /// The bytes of all datagrams.
    pub slab: &'a [u8],
    /// The datagrams.
    pub datagrams: &'a [Datagram],
}

impl<'a> DatagramBatch<'a> {
    /// A batch without datagrams.
    pub const EMPTY: DatagramBatch<'static> = DatagramBatch { slab: &[], datagrams: &[] };

    /// A batch of one datagram.
    pub const fn one(slab: &'a [u8], datagram: &'a Datagram) -> Self {
        Self { slab, datagrams: std::slice::from_ref(datagram) }
    }

    /// A range of the slab; `None` if it exceeds the slab.
    #[inline]
    pub fn bytes(&self, range: &Range<u32>) -> Option<&'a [u8]> {
        self.slab.get(range.start as usize..range.end as usize)
    }

    /// Each datagram with its payload. Datagrams outside the slab are skipped.
    pub fn iter(self) -> impl Iterator<Item = (&'a Datagram, &'a [u8])> {
        let payload = move |datagram: &Datagram| self.bytes(&datagram.payload).unwrap_or_default();
        self.datagrams.iter().map(move |datagram| (datagram, payload(datagram)))
    }
}
