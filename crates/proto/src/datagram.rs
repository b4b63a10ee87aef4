//! Datagrams that arrived: a batch is one slab of bytes and a list of ranges of it.

use crate::channel::ChannelId;
use std::net::SocketAddr;
use std::ops::Range;

/// The two bits of explicit congestion notification (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender does not take part.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 0.
    Ect0,
    /// ECN-capable, codepoint 1.
    Ect1,
    /// A router on the way was congested.
    CongestionExperienced,
}

/// A datagram that arrived. Its bytes are a range of its batch's slab. All of it may be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The address that it came from. A session is named by its sender's address and its TSI
    /// (RFC 5651, section 3).
    pub from: SocketAddr,
    /// The channel that it arrived on.
    pub channel: ChannelId,
    /// Congestion mark.
    pub ecn: Ecn,
    /// Datagrams that this host itself lost since the one before: not a sign of congestion.
    pub dropped_before: u64,
    /// UDP payload, in the slab.
    pub payload: Range<u32>,
}

/// Datagrams that arrived together, in the order of their arrival.
#[derive(Clone, Copy, Debug)]
pub struct DatagramBatch<'a> {
    /// The bytes of all of them.
    pub slab: &'a [u8],
    /// The datagrams.
    pub datagrams: &'a [Datagram],
}

impl<'a> DatagramBatch<'a> {
    /// No datagram.
    pub const EMPTY: DatagramBatch<'static> = DatagramBatch { slab: &[], datagrams: &[] };

    /// One datagram of a slab.
    pub const fn one(slab: &'a [u8], datagram: &'a Datagram) -> Self {
        Self { slab, datagrams: std::slice::from_ref(datagram) }
    }

    /// Bytes of the slab; `None` if it ends before.
    #[inline]
    pub fn bytes(&self, range: &Range<u32>) -> Option<&'a [u8]> {
        self.slab.get(range.start as usize..range.end as usize)
    }

    /// Each datagram with its payload. A datagram outside the slab has none.
    pub fn iter(self) -> impl Iterator<Item = (&'a Datagram, &'a [u8])> {
        let payload = move |datagram: &Datagram| self.bytes(&datagram.payload).unwrap_or_default();
        self.datagrams.iter().map(move |datagram| (datagram, payload(datagram)))
    }
}
