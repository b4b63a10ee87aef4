//! A fixed piece of memory full of datagrams.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use quinn_udp::{EcnCodepoint, RecvMeta};

/// The most that one receive call can return: a datagram, or a run merged by receive offload, has
/// a 16-bit length.
const MAX_MESSAGE: usize = 65_535;

/// Receive calls whose results one batch keeps. Empty datagrams take no room in the buffer; this
/// bounds them. 1024 datagrams of 1400 bytes are 1.4 MB: with the default buffer the bytes run out
/// first.
pub const MAX_TRAINS: usize = 1024;

/// The smallest useful buffer: it is full when less than [`MAX_MESSAGE`] is left, so with less than
/// twice that, one small datagram could fill it.
const MIN_SIZE: usize = 2 << 16;

/// Four runs of 64 KiB, or about 140 single datagrams of 1400 bytes and the room for one run.
const DEFAULT_SIZE: usize = 4 << 16;

/// The two bits of explicit congestion notification (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// One received datagram. `source` and everything in it may be forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Who says that it sent this.
    pub source: SocketAddr,
    /// The group or address it was sent to, where the system tells.
    pub destination: Option<IpAddr>,
    /// The channel whose socket it came to ([`crate::Channels::join`]); 0 where there is only one.
    pub channel: u8,
    /// Congestion mark.
    pub ecn: Ecn,
    /// UDP payload, 0 to 65 507 bytes (65 527 with IPv6).
    pub payload: &'a [u8],
}

/// Datagrams of one receive call: equal in size, the last may be shorter.
#[derive(Debug, Clone, Copy)]
struct Train {
    source: SocketAddr,
    destination: Option<IpAddr>,
    channel: u8,
    ecn: Ecn,
    start: usize,
    size: usize,
    stride: usize,
}

/// Datagrams in one buffer whose size never changes. Reuse it: filling allocates nothing after the
/// first time.
pub struct Batch {
    buffer: Box<[u8]>,
    used: usize,
    trains: Vec<Train>,
    datagrams: usize,
}

/// What is in it, without the bytes.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("size", &self.buffer.len())
            .field("used", &self.used)
            .field("datagrams", &self.datagrams)
            .field("trains", &self.trains.len())
            .finish()
    }
}

/// 256 KiB.
impl Default for Batch {
    fn default() -> Self {
        Self::with_size(DEFAULT_SIZE)
    }
}

impl Batch {
    /// A batch with a buffer of `size` bytes, but at least 128 KiB: twice what one receive call can
    /// fill.
    pub fn with_size(size: usize) -> Self {
        Self {
            buffer: vec![0; size.max(MIN_SIZE)].into_boxed_slice(),
            used: 0,
            trains: Vec::new(),
            datagrams: 0,
        }
    }

    /// A stand-in for a batch that has gone elsewhere: full from the start.
    pub(crate) fn without_memory() -> Self {
        Self { buffer: Box::default(), used: 0, trains: Vec::new(), datagrams: 0 }
    }

    /// Memory that a batch of this size takes, bookkeeping included, at the most.
    pub fn memory_for(size: usize) -> usize {
        size.max(MIN_SIZE) + MAX_TRAINS * std::mem::size_of::<Train>()
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.datagrams
    }

    /// Whether there is no datagram.
    pub fn is_empty(&self) -> bool {
        self.datagrams == 0
    }

    /// Receive calls it took: with receive offload less than [`Self::len`].
    pub fn trains(&self) -> usize {
        self.trains.len()
    }

    /// Bytes of UDP payload of all datagrams.
    pub fn payload_bytes(&self) -> usize {
        self.used
    }

    /// Forgets the datagrams, keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.trains.clear();
        self.datagrams = 0;
    }

    /// Whether the next receive call might not find room.
    pub fn is_full(&self) -> bool {
        self.buffer.len() - self.used < MAX_MESSAGE || self.trains.len() >= MAX_TRAINS
    }

    /// The datagrams in the order of their arrival.
    pub fn datagrams(&self) -> Datagrams<'_> {
        Datagrams { batch: self, next_train: 0, current: None }
    }

    /// Where the next receive call may write; `None` when full.
    pub(super) fn room(&mut self) -> Option<&mut [u8]> {
        if self.is_full() {
            return None;
        }
        self.buffer.get_mut(self.used..)?.get_mut(..MAX_MESSAGE)
    }

    /// Keeps what the receive call wrote to [`Self::room`].
    pub(super) fn keep(&mut self, channel: u8, meta: &RecvMeta) {
        let size = meta.len.min(self.buffer.len() - self.used);
        self.trains.push(Train {
            source: canonical(meta.addr),
            destination: meta.dst_ip,
            channel,
            ecn: match meta.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::CongestionExperienced,
            },
            start: self.used,
            size,
            stride: meta.stride,
        });
        self.used += size;
        self.datagrams += size.div_ceil(meta.stride.max(1)).max(1);
    }
}

/// Without the flow label, which is not part of who sent it.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(mut v6) => {
            v6.set_flowinfo(0);
            v6.into()
        }
        v4 => v4,
    }
}

/// Iterator over the datagrams of a [`Batch`].
#[derive(Debug, Clone)]
pub struct Datagrams<'a> {
    batch: &'a Batch,
    next_train: usize,
    /// The train that is being cut, and what is left of it.
    current: Option<(Train, &'a [u8])>,
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = Datagram<'a>;

    fn next(&mut self) -> Option<Datagram<'a>> {
        let (train, bytes) = match self.current.take() {
            Some(current) => current,
            None => {
                let train = *self.batch.trains.get(self.next_train)?;
                self.next_train += 1;
                (train, self.batch.buffer.get(train.start..train.start + train.size)?)
            }
        };
        // A stride of 0 comes with an empty datagram, which is one datagram.
        let (payload, rest) = bytes.split_at(train.stride.max(1).min(bytes.len()));
        if !rest.is_empty() {
            self.current = Some((train, rest));
        }
        Some(Datagram {
            source: train.source,
            destination: train.destination,
            channel: train.channel,
            ecn: train.ecn,
            payload,
        })
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
    fn a_train_is_cut_at_its_stride_and_its_end_may_be_short() {
        let mut batch = Batch::default();
        keep(&mut batch, b"aabbc", 2);
        keep(&mut batch, b"", 0);
        keep(&mut batch, b"dd", 2);
        let payloads: Vec<&[u8]> = batch.datagrams().map(|d| d.payload).collect();
        assert_eq!(payloads, [&b"aa"[..], b"bb", b"c", b"", b"dd"]);
        assert_eq!((batch.len(), batch.payload_bytes()), (5, 7));
        batch.clear();
        assert!(batch.is_empty() && batch.datagrams().next().is_none());
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
        for _ in 0..MAX_TRAINS {
            assert!(!batch.is_full());
            keep(&mut batch, b"", 0);
        }
        assert!(batch.is_full());
        assert_eq!(batch.datagrams().count(), MAX_TRAINS);
    }

    proptest! {
        #[test]
        fn the_count_is_the_number_of_datagrams_for_any_length_and_stride(
            trains in prop::collection::vec((0_usize..300, 0_usize..400), 0..20),
        ) {
            let mut batch = Batch::default();
            for (len, stride) in trains {
                keep(&mut batch, &vec![7; len], stride);
            }
            prop_assert_eq!(batch.datagrams().count(), batch.len());
            let bytes: usize = batch.datagrams().map(|d| d.payload.len()).sum();
            prop_assert_eq!(bytes, batch.payload_bytes());
        }
    }
}
