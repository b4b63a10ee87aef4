//! A slab of fixed size, and the datagrams in it.

use fontana_proto::{ChannelId, Datagram, DatagramBatch, Ecn, Port};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use quinn_udp::{EcnCodepoint, RecvMeta};

/// Most bytes that one receive call returns: the length of a datagram, or of a run merged by
/// receive offload, has 16 bits.
pub(super) const MAX_MESSAGE: usize = 65_535;

/// Messages that one batch holds. It limits empty datagrams, which take no space in the slab. 1024
/// datagrams of 1400 bytes are 1.4 MB: the default slab is full before that.
pub const MAX_BATCH_MESSAGES: usize = 1024;

/// Number of datagrams from which on a batch is full. With receive offload, a call returns several:
/// at most 64 (`UDP_GRO_CNT_MAX`). Datagrams of 128 bytes fill the default slab first.
const MAX_DATAGRAMS: usize = 2048;

/// The smallest useful slab. A slab is full when less than [`MAX_MESSAGE`] is left, so a slab of
/// less than twice that could be full after one small datagram.
const MIN_SIZE: usize = 2 << 16;

/// Four runs of 64 KiB, or about 140 single datagrams of 1400 bytes and room for one run.
const DEFAULT_SIZE: usize = 4 << 16;

/// Datagrams in one slab of constant size. A reused batch does not allocate.
pub struct Batch {
    slab: Box<[u8]>,
    /// The end of what is used of the slab.
    used: usize,
    payload_bytes: usize,
    datagrams: Vec<Datagram>,
    messages: usize,
    receive_calls: usize,
}

/// Prints the counts, without the bytes.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("size", &self.slab.len())
            .field("used", &self.used)
            .field("datagrams", &self.datagrams.len())
            .field("receive_calls", &self.receive_calls)
            .finish()
    }
}

/// A slab of 256 KiB.
impl Default for Batch {
    fn default() -> Self {
        Self::with_size(DEFAULT_SIZE)
    }
}

impl Batch {
    /// A batch with a slab of `size` bytes, but at least 128 KiB: twice what one receive call can
    /// return.
    pub fn with_size(size: usize) -> Self {
        Self {
            slab: vec![0; size.max(MIN_SIZE)].into_boxed_slice(),
            used: 0,
            payload_bytes: 0,
            datagrams: Vec::new(),
            messages: 0,
            receive_calls: 0,
        }
    }

    /// A placeholder for a batch that was moved elsewhere. It counts as full.
    pub(crate) fn without_memory() -> Self {
        let (slab, datagrams) = (Box::default(), Vec::new());
        Self { slab, used: 0, payload_bytes: 0, datagrams, messages: 0, receive_calls: 0 }
    }

    /// Upper bound of the memory of a batch of this size, bookkeeping included.
    pub fn memory_for(size: usize) -> usize {
        size.max(MIN_SIZE) + (MAX_DATAGRAMS + 64) * std::mem::size_of::<Datagram>()
    }

    /// The number of datagrams.
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// True if there is no datagram.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// The number of receive calls that filled it: usually less than [`Self::len`].
    pub fn receive_calls(&self) -> usize {
        self.receive_calls
    }

    /// Bytes of UDP payload of all datagrams.
    pub fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    /// Removes the datagrams, and keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.payload_bytes = 0;
        self.messages = 0;
        self.receive_calls = 0;
        self.datagrams.clear();
    }

    /// True if there is not enough room for any result of a receive call.
    pub fn is_full(&self) -> bool {
        self.slab.len() - self.used < MAX_MESSAGE
            || self.messages >= MAX_BATCH_MESSAGES
            || self.datagrams.len() >= MAX_DATAGRAMS
    }

    /// The datagrams in the form that an endpoint takes.
    pub fn as_datagrams(&self) -> DatagramBatch<'_> {
        DatagramBatch { slab: &self.slab, datagrams: &self.datagrams }
    }

    /// The datagrams and their payloads, in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = (&Datagram, &[u8])> {
        self.as_datagrams().iter()
    }

    /// Removes the datagrams that `keep` refuses. It gets the channel and the payload of each, and
    /// may change the payload in place. `dropped_before`: datagrams that this host has lost before
    /// the batch, beyond those that the batch says. Returns those lost before a datagram that
    /// follows the batch.
    pub fn retain(
        &mut self,
        dropped_before: u64,
        mut keep: impl FnMut(ChannelId, &mut [u8]) -> bool,
    ) -> u64 {
        let Self { slab, datagrams, payload_bytes, .. } = self;
        let mut dropped = dropped_before;
        datagrams.retain_mut(|datagram| {
            let range = datagram.payload.start as usize..datagram.payload.end as usize;
            let payload = slab.get_mut(range).unwrap_or_default();
            dropped += std::mem::take(&mut datagram.dropped_before);
            let stays = keep(datagram.port.channel().unwrap_or_default(), payload);
            match stays {
                true => datagram.dropped_before = std::mem::take(&mut dropped),
                false => *payload_bytes -= payload.len(),
            }
            stays
        });
        dropped
    }

    /// Sets the number of datagrams that this host has lost before the first one of the batch.
    pub(crate) fn set_dropped_before(&mut self, dropped: u64) {
        if let Some(first) = self.datagrams.first_mut() {
            first.dropped_before = dropped;
        }
    }

    /// The memory for the next receive call; `None` if full.
    pub(super) fn room(&mut self) -> Option<&mut [u8]> {
        if self.is_full() {
            return None;
        }
        self.slab.get_mut(self.used..)?.get_mut(..MAX_MESSAGE)
    }

    /// Adds the datagrams that the receive call wrote to [`Self::room`]. They have one size; the
    /// last one may be shorter.
    pub(super) fn keep(&mut self, channel: u8, meta: &RecvMeta) {
        self.keep_at(self.used, channel, meta);
        self.used += meta.len.min(self.slab.len() - self.used);
        self.messages += 1;
        self.receive_calls += 1;
    }

    /// Slots of `size` bytes each for the next receive call, behind what is used.
    pub(super) fn slots(&mut self, size: usize) -> impl Iterator<Item = &mut [u8]> {
        let free = self.slab.get_mut(self.used..).unwrap_or_default();
        free.chunks_exact_mut(size.max(1)).take(MAX_BATCH_MESSAGES.saturating_sub(self.messages))
    }

    /// Counts a receive call that has used `count` slots. Returns the start of the first one.
    pub(super) fn take_slots(&mut self, size: usize, count: usize) -> usize {
        let first = self.used;
        self.used = self.slab.len().min(first + size * count);
        self.messages += count;
        self.receive_calls += 1;
        first
    }

    /// Bytes of the slab.
    pub(super) fn bytes_at(&self, start: usize, length: usize) -> &[u8] {
        self.slab.get(start..start + length).unwrap_or_default()
    }

    /// Adds the datagrams of a message at `start`.
    pub(super) fn keep_at(&mut self, start: usize, channel: u8, meta: &RecvMeta) {
        let size = meta.len.min(self.slab.len() - start);
        let from = canonical(meta.addr);
        let ecn = match meta.ecn {
            None => Ecn::NotEct,
            Some(EcnCodepoint::Ect0) => Ecn::Ect0,
            Some(EcnCodepoint::Ect1) => Ecn::Ect1,
            Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
        };
        let end = start + size;
        // A stride of 0 means an empty datagram, which is one datagram.
        let stride = meta.stride.max(1);
        let starts = (start..end.max(start + 1)).step_by(stride);
        self.datagrams.extend(starts.map(|start| Datagram {
            from,
            port: Port::Channel(ChannelId(channel)),
            ecn,
            dropped_before: 0,
            // A slab is shorter than 4 GiB.
            payload: start as u32..end.min(start + stride) as u32,
        }));
        self.payload_bytes += size;
    }
}

/// The address without the flow label, which does not identify the sender; an IPv4-mapped address
/// as IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    match (address.ip().to_canonical(), address) {
        (IpAddr::V4(v4), _) => (v4, address.port()).into(),
        (IpAddr::V6(_), SocketAddr::V6(mut v6)) => {
            v6.set_flowinfo(0);
            v6.into()
        }
        (_, v4) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keep(batch: &mut Batch, bytes: &[u8], stride: usize) {
        batch.room().unwrap()[..bytes.len()].copy_from_slice(bytes);
        let mut meta = RecvMeta::default();
        meta.addr = "192.0.2.1:7".parse().unwrap();
        meta.len = bytes.len();
        meta.stride = stride;
        batch.keep(0, &meta);
    }

    #[test]
    fn a_gso_batch_is_split_at_its_stride_and_its_end_may_be_short() {
        let mut batch = Batch::default();
        keep(&mut batch, b"aabbc", 2);
        keep(&mut batch, b"", 0);
        keep(&mut batch, b"dd", 2);
        let payloads: Vec<&[u8]> = batch.iter().map(|(_, payload)| payload).collect();
        assert_eq!(payloads, [&b"aa"[..], b"bb", b"c", b"", b"dd"]);
        assert_eq!((batch.len(), batch.payload_bytes()), (5, 7));
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }

    #[test]
    fn slots_lie_behind_each_other_and_may_be_filled_in_part() {
        let mut batch = Batch::default();
        keep(&mut batch, b"a", 1);
        for (slot, bytes) in batch.slots(3).zip([&b"bb"[..], b"ccc"]) {
            slot[..bytes.len()].copy_from_slice(bytes);
        }
        assert_eq!(batch.take_slots(3, 2), 1);
        for (start, length) in [(1, 2), (4, 3)] {
            let mut meta = RecvMeta::default();
            (meta.len, meta.stride) = (length, length);
            batch.keep_at(start, 0, &meta);
        }
        keep(&mut batch, b"d", 1);
        let payloads: Vec<&[u8]> = batch.iter().map(|(_, payload)| payload).collect();
        assert_eq!(payloads, [&b"a"[..], b"bb", b"ccc", b"d"]);
        assert_eq!((batch.payload_bytes(), batch.receive_calls()), (7, 3));
        let size = (DEFAULT_SIZE - 8) / 3;
        assert_eq!(batch.slots(size).count(), 3);
        assert_eq!(batch.slots(1).count(), MAX_BATCH_MESSAGES - 4);
    }

    #[test]
    fn local_losses_before_a_removed_datagram_count_for_the_next_one() {
        let mut batch = Batch::default();
        for bytes in [&b"aa"[..], b"b", b"ccc", b"d"] {
            keep(&mut batch, bytes, bytes.len());
        }
        batch.set_dropped_before(5);
        let rest = batch.retain(2, |_, payload| {
            payload[0] = payload[0].to_ascii_uppercase();
            payload.len() > 1
        });
        assert_eq!(rest, 0);
        let kept: Vec<_> = batch.iter().map(|(d, payload)| (d.dropped_before, payload)).collect();
        assert_eq!(kept, [(7, &b"Aa"[..]), (0, b"Ccc")]);
        assert_eq!(batch.payload_bytes(), 5);
        assert_eq!(batch.retain(3, |_, _| false), 10);
        assert!(batch.is_empty());

        batch.clear();
        keep(&mut batch, b"e", 1);
        batch.set_dropped_before(4);
        assert_eq!(batch.retain(1, |_, _| false), 5);
    }

    #[test]
    fn a_batch_is_full_when_one_more_message_might_not_fit() {
        let mut batch = Batch::with_size(0);
        keep(&mut batch, &[0; MAX_MESSAGE], 1400);
        keep(&mut batch, &[0; MIN_SIZE - 2 * MAX_MESSAGE], 1);
        assert!(!batch.is_full() && batch.room().is_some());
        keep(&mut batch, &[0; 1], 1);
        assert!(batch.is_full() && batch.room().is_none());
    }

    #[test]
    fn empty_datagrams_are_bounded_by_their_number() {
        let mut batch = Batch::default();
        for _ in 0..MAX_BATCH_MESSAGES {
            assert!(!batch.is_full());
            keep(&mut batch, b"", 0);
        }
        assert!(batch.is_full());
        assert_eq!(batch.iter().count(), MAX_BATCH_MESSAGES);
    }

    proptest! {
        #[test]
        fn the_count_is_the_number_of_datagrams_for_any_length_and_stride(
            messages in prop::collection::vec((0_usize..300, 0_usize..400), 0..20),
        ) {
            let mut batch = Batch::default();
            for (len, stride) in messages {
                keep(&mut batch, &vec![7; len], stride);
            }
            prop_assert_eq!(batch.iter().count(), batch.len());
            let bytes: usize = batch.iter().map(|(_, payload)| payload.len()).sum();
            prop_assert_eq!(bytes, batch.payload_bytes());
        }
    }
}
