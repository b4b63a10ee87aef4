//! Datagrams in transit.

use crate::topology::NodeId;
use fontana_proto::Instant;
use std::sync::Arc;

/// A datagram of an endpoint. All receivers share one record. Links are charged for the bytes of
/// its symbol, which are zeros, and which are written when the datagram is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its number among all datagrams of a run.
    pub number: u64,
    /// The sender's node.
    pub source: NodeId,
    /// When it was sent.
    pub sent_at: Instant,
    /// The bytes that the endpoint wrote: a header, or a whole control packet.
    pub header: Box<[u8]>,
    /// Number of zeros that follow.
    pub symbol_bytes: u32,
    /// Bytes of the UDP payload and of the headers below it.
    pub wire_bytes: u32,
    /// Number of the bit that is inverted, modulo the length in bits; `None` if it is intact.
    pub damage: Option<u64>,
}

/// Datagrams that were sent at the same time to the same group, and which of them are not lost.
/// They share events as long as the hops treat all of them alike.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    packets: Arc<[Packet]>,
    present: u64,
    /// Marked with congestion experienced (RFC 3168).
    pub(crate) marked: bool,
    /// Links that they may still cross; `None` if there is no limit.
    pub(crate) hops_left: Option<u8>,
}

/// Most packets of a burst: the bits of `present`.
pub(crate) const BURST_PACKETS: usize = 64;

impl Burst {
    /// All of `packets`, at most [`BURST_PACKETS`].
    pub(crate) fn new(packets: Vec<Packet>) -> Self {
        let present = u64::MAX.checked_shr(64 - packets.len() as u32).unwrap_or(0);
        Self { packets: packets.into(), present, marked: false, hops_left: None }
    }

    pub(crate) fn packets(&self) -> impl Iterator<Item = (u32, &Packet)> {
        (0..).zip(self.packets.iter()).filter(|(index, _)| self.present >> index & 1 == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// Which packets are not lost: a bit for each.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }

    /// The first packet's number, also if it is lost.
    pub(crate) fn number(&self) -> u64 {
        self.packets.first().map_or(0, |packet| packet.number)
    }

    /// The burst with only the packets of `present`.
    pub(crate) fn only(&self, present: u64) -> Self {
        Self { packets: Arc::clone(&self.packets), present, ..*self }
    }

    /// The burst, which crosses at most `hops` links.
    pub(crate) fn limited(self, hops: u8) -> Self {
        Self { hops_left: Some(hops), ..self }
    }

    /// The burst on the far side of a link.
    pub(crate) fn after_a_hop(&self) -> Self {
        let hops_left = self.hops_left.map(|hops| hops.saturating_sub(1));
        Self { hops_left, ..self.clone() }
    }

    /// One packet of the burst, with bit `damage` inverted.
    pub(crate) fn damaged(&self, index: u32, damage: u64) -> Self {
        let packet = self.packets.get(index as usize).cloned();
        let packet = packet.map(|packet| Packet { damage: Some(damage), ..packet });
        let Self { marked, hops_left, .. } = *self;
        Self { marked, hops_left, ..Self::new(packet.into_iter().collect()) }
    }
}

/// The buffer for the payload of the packet that is delivered.
#[derive(Debug, Default)]
pub(crate) struct PayloadBuffer {
    bytes: Vec<u8>,
    /// Length of the beginning that may hold bytes other than zero.
    written: usize,
}

/// The bytes of a packet.
pub(crate) struct Payload<'a> {
    pub(crate) bytes: &'a [u8],
    /// All bytes from this index on are zeros.
    pub(crate) zeros_from: u32,
}

impl PayloadBuffer {
    #[inline]
    pub(crate) fn write(&mut self, packet: &Packet) -> Payload<'_> {
        let header = &packet.header;
        let length = header.len() + packet.symbol_bytes as usize;
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        let stale = self.written.max(header.len());
        self.bytes[header.len()..stale].fill(0);
        self.bytes[..header.len()].copy_from_slice(header);
        self.written = header.len();
        if let Some(damage) = packet.damage.filter(|_| length > 0) {
            let bit = damage % (8 * length as u64);
            self.bytes[bit as usize / 8] ^= 1 << (bit % 8);
            self.written = length;
        }
        Payload { bytes: &self.bytes[..length], zeros_from: self.written as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(header: &[u8], symbol_bytes: u32, damage: Option<u64>) -> Packet {
        Packet {
            number: 0,
            source: NodeId(0),
            sent_at: Instant::ZERO,
            header: header.into(),
            symbol_bytes,
            wire_bytes: 0,
            damage,
        }
    }

    #[test]
    fn a_payload_shows_nothing_of_the_packet_before() {
        let mut payloads = PayloadBuffer::default();
        let mut write = |header: &[u8], symbol_bytes, damage| {
            let written = payloads.write(&packet(header, symbol_bytes, damage));
            assert!(written.bytes[written.zeros_from as usize..].iter().all(|&byte| byte == 0));
            (written.bytes.to_vec(), written.zeros_from)
        };
        assert_eq!(write(&[1, 2, 3, 4], 2, None), (vec![1, 2, 3, 4, 0, 0], 4));
        assert_eq!(write(&[5], 4, None), (vec![5, 0, 0, 0, 0], 1));
        assert_eq!(write(&[6], 2, Some(24 + 17)), (vec![6, 0, 2], 3));
        assert_eq!(write(&[], 3, None), (vec![0, 0, 0], 0));
        assert_eq!(write(&[], 0, Some(1)), (vec![], 0));
    }

    #[test]
    fn a_full_burst_has_a_bit_for_each_packet() {
        for count in [0, 1, BURST_PACKETS] {
            let burst = Burst::new(vec![packet(&[1], 0, None); count]);
            assert_eq!(burst.packets().count(), count);
        }
    }
}
