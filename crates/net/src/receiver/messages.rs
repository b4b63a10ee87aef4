//! Receive calls: many messages at once while each is one datagram, otherwise one.
//!
//! A message is one datagram, or a run of them that receive offload has merged, of up to 64 KiB.
//! Without merging, a call receives up to [`MAX_MESSAGES`] datagrams into slots of the slab, which
//! are as large as the largest datagrams that arrived before. What exceeds its slot goes to a
//! second buffer, and is copied to the slab afterwards: no message is truncated. As soon as a
//! message is merged, the slots are given up, and a call receives one message again, which fills a
//! quarter of the slab.

use super::batch::{Batch, MAX_MESSAGE};
use crate::sys::{MAX_MESSAGES, receive_messages};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use socket2::Socket;
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};

/// Messages in a row that were one datagram each, after which several are received at once, and
/// after which the size of a slot is determined again.
const WINDOW: usize = 256;

/// Largest slot: the largest datagrams of Ethernet. Larger ones are received one by one.
const MAX_SLOT: usize = 9216;

/// The result of a receive call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    /// Number of messages, those included that were not wanted.
    pub(super) messages: usize,
    /// True if nothing else had arrived.
    pub(super) is_all: bool,
}

/// The receive calls of one socket.
#[derive(Debug)]
pub(super) struct Messages {
    /// `None`: the system refuses receive offload.
    offload: Option<UdpSocketState>,
    sizes: Sizes,
    /// For what exceeds the slots, [`MAX_MESSAGE`] bytes each; empty until there are slots. The
    /// system provides its memory when it is written to. It stays when slots are given up: memory
    /// that is allocated again is zeroed by the allocator, 4 MiB each time.
    overflow: Vec<u8>,
    /// Messages that exceeded their slots and are not in a batch yet.
    late: VecDeque<Late>,
}

/// The slots of a receive call.
#[derive(Clone, Copy, Debug)]
struct Slots {
    size: usize,
    /// Most of them.
    limit: usize,
}

/// A message that was received in two parts.
#[derive(Debug)]
struct Late {
    /// Channel of the socket that it was received from.
    channel: u8,
    meta: RecvMeta,
    bytes: Vec<u8>,
}

/// The sizes of the messages that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sizes {
    /// Size of a slot; `None` while messages are received one by one.
    slot: Option<usize>,
    /// Messages since the slot was determined.
    count: usize,
    /// The largest of them.
    largest: usize,
}

impl Sizes {
    /// Records a message of `length` bytes, of datagrams of `stride` bytes.
    fn record(&mut self, length: usize, stride: usize) {
        if stride < length || length > MAX_SLOT {
            *self = Self::default();
            return;
        }
        self.count += 1;
        self.largest = self.largest.max(length);
        self.slot = self.slot.map(|slot| slot.max(length));
        if self.count >= WINDOW {
            *self = Self { slot: Some(self.largest.max(1)), ..Self::default() };
        }
    }
}

impl Messages {
    pub(super) fn new(offload: Option<UdpSocketState>) -> Self {
        let sizes = Sizes::default();
        Self { offload, sizes, overflow: Vec::new(), late: VecDeque::new() }
    }

    /// Makes one receive call for at most `limit` messages, and adds the datagrams of those that
    /// are `wanted` to `batch`, which is not full.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` if nothing has arrived.
    pub(super) fn receive(
        &mut self,
        socket: &Socket,
        channel: u8,
        batch: &mut Batch,
        limit: usize,
        wanted: &mut dyn FnMut(&RecvMeta) -> bool,
    ) -> io::Result<Received> {
        if self.add_late(batch) {
            return Ok(Received { messages: 1, is_all: false });
        }
        match self.sizes.slot.filter(|_| cfg!(any(target_os = "linux", target_os = "android"))) {
            Some(slot) => {
                let slots = Slots { size: slot, limit };
                self.receive_many(socket, slots, channel, batch, wanted)
            }
            None => self.receive_one(socket, channel, batch, wanted),
        }
    }

    /// Whether messages were received that are not in a batch yet.
    pub(super) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    fn receive_one(
        &mut self,
        socket: &Socket,
        channel: u8,
        batch: &mut Batch,
        wanted: &mut dyn FnMut(&RecvMeta) -> bool,
    ) -> io::Result<Received> {
        let one = Received { messages: 1, is_all: false };
        let Some(room) = batch.room() else { return Ok(one) };
        let (received, meta) = match &self.offload {
            Some(offload) => {
                let room = &mut [IoSliceMut::new(room)];
                let mut metas = [RecvMeta::default()];
                let received = offload.recv(UdpSockRef::from(socket), room, &mut metas)?;
                let [meta] = metas;
                (received, meta)
            }
            None => {
                let rooms = &mut [[IoSliceMut::new(room), IoSliceMut::new(&mut [])]];
                let mut metas = [RecvMeta::default(); MAX_MESSAGES];
                let received = receive_messages(socket, rooms, &mut metas)?;
                let [meta, ..] = metas;
                (received, meta)
            }
        };
        if received > 0 {
            self.sizes.record(meta.len, meta.stride);
            if wanted(&meta) {
                batch.keep(channel, &meta);
            }
        }
        Ok(one)
    }

    fn receive_many(
        &mut self,
        socket: &Socket,
        Slots { size: slot, limit }: Slots,
        channel: u8,
        batch: &mut Batch,
        wanted: &mut dyn FnMut(&RecvMeta) -> bool,
    ) -> io::Result<Received> {
        if self.overflow.is_empty() {
            // Not by `resize`, which would write to all of it.
            self.overflow = vec![0; MAX_MESSAGES * MAX_MESSAGE];
        }
        let mut metas = [RecvMeta::default(); MAX_MESSAGES];
        let mut rooms = Vec::with_capacity(MAX_MESSAGES);
        let overflow = self.overflow.chunks_exact_mut(MAX_MESSAGE);
        rooms.extend(
            batch
                .slots(slot)
                .zip(overflow)
                .take(limit)
                .map(|(slot, overflow)| [IoSliceMut::new(slot), IoSliceMut::new(overflow)]),
        );
        let asked = rooms.len();
        let received = receive_messages(socket, &mut rooms, &mut metas)?;
        drop(rooms);
        let first = batch.take_slots(slot, received);
        let overflow = self.overflow.chunks_exact(MAX_MESSAGE);
        for ((meta, overflow), index) in metas.iter().zip(overflow).take(received).zip(0..) {
            self.sizes.record(meta.len, meta.stride);
            if !wanted(meta) {
                continue;
            }
            let start = first + index * slot;
            if meta.len <= slot && meta.stride >= meta.len {
                batch.keep_at(start, channel, meta);
            } else {
                let mut bytes = batch.bytes_at(start, slot.min(meta.len)).to_vec();
                let rest = meta.len.saturating_sub(slot);
                bytes.extend_from_slice(overflow.get(..rest).unwrap_or_default());
                self.late.push_back(Late { channel, meta: *meta, bytes });
            }
        }
        self.add_late(batch);
        let is_all = received < asked && self.late.is_empty();
        Ok(Received { messages: received, is_all })
    }

    /// Adds late messages while there is room, of whatever socket they are. Returns whether there
    /// were any.
    fn add_late(&mut self, batch: &mut Batch) -> bool {
        let had_any = !self.late.is_empty();
        while !self.late.is_empty()
            && let Some(room) = batch.room()
            && let Some(Late { channel, meta, bytes }) = self.late.pop_front()
        {
            if let Some(room) = room.get_mut(..bytes.len()) {
                room.copy_from_slice(&bytes);
                batch.keep(channel, &meta);
            }
        }
        had_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_proto::Port;
    use socket2::{Domain, SockAddr, Type};
    use std::net::{Ipv4Addr, SocketAddr};

    fn sizes(messages: impl IntoIterator<Item = (usize, usize)>) -> Sizes {
        let mut sizes = Sizes::default();
        messages.into_iter().for_each(|(length, stride)| sizes.record(length, stride));
        sizes
    }

    #[test]
    fn slots_are_as_large_as_the_largest_datagram_of_a_window() {
        let single = |length| (length, length);
        let window = (0..WINDOW).map(|index| single(if index == 7 { 1400 } else { 1344 }));
        assert_eq!(sizes(window.clone().skip(1)).slot, None);
        assert_eq!(sizes(window.clone()).slot, Some(1400));
        // A larger one counts at once, and a smaller one after the next window.
        assert_eq!(sizes(window.clone().chain([single(1500)])).slot, Some(1500));
        let smaller = window.chain((0..WINDOW).map(|_| single(100)));
        assert_eq!(sizes(smaller).slot, Some(100));
    }

    /// A socket of the loopback interface, and its receive calls.
    fn bound() -> (Socket, SockAddr, Messages) {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let offload = UdpSocketState::new(UdpSockRef::from(&socket)).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address, Messages::new(Some(offload)))
    }

    fn received(batch: &Batch) -> Vec<(u8, usize)> {
        let channel = |port: Port| port.channel().unwrap_or_default().0;
        batch.iter().map(|(it, payload)| (channel(it.port), payload.len())).collect()
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn a_message_that_waits_for_room_keeps_its_channel() {
        let (socket, address, mut messages) = bound();
        let sender = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let send = |length: usize| sender.send_to(&vec![1; length], &address).unwrap();
        for _ in 0..WINDOW {
            send(1000);
            let mut batch = Batch::default();
            messages.receive(&socket, 3, &mut batch, MAX_MESSAGES, &mut |_| true).unwrap();
            assert_eq!(received(&batch), [(3, 1000)]);
        }
        // 62 that fit their slots, and two that do not: the smallest batch has room for one.
        for index in 0..MAX_MESSAGES {
            send(if index < 2 { 2000 } else { 1000 });
        }
        let mut batch = Batch::with_size(0);
        let call = messages.receive(&socket, 3, &mut batch, MAX_MESSAGES, &mut |_| true).unwrap();
        assert_eq!(call, Received { messages: MAX_MESSAGES, is_all: false });
        let mut expected = vec![(3, 1000); MAX_MESSAGES - 2];
        expected.push((3, 2000));
        assert_eq!(received(&batch), expected);
        assert!(messages.has_late());

        // The next call is for another socket, of channel 9.
        let (other, ..) = bound();
        let mut batch = Batch::default();
        messages.receive(&other, 9, &mut batch, MAX_MESSAGES, &mut |_| true).unwrap();
        assert_eq!(received(&batch), [(3, 2000)]);
        assert!(!messages.has_late());
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn the_second_buffer_stays_when_slots_are_given_up() {
        let (socket, address, mut messages) = bound();
        let sender = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let mut receive = |length: usize| {
            sender.send_to(&vec![1; length], &address).unwrap();
            let mut batch = Batch::default();
            messages.receive(&socket, 3, &mut batch, MAX_MESSAGES, &mut |_| true).unwrap();
            (messages.sizes.slot, messages.overflow.len())
        };
        let mut last = (None, 0);
        (0..=WINDOW).for_each(|_| last = receive(1000));
        assert_eq!(last, (Some(1000), MAX_MESSAGES * MAX_MESSAGE));
        assert_eq!(receive(MAX_SLOT + 1), (None, MAX_MESSAGES * MAX_MESSAGE));
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn messages_arrive_without_receive_offload() {
        let (socket, address, _) = bound();
        let mut messages = Messages::new(None);
        let sender = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        for length in [1000, 9000] {
            sender.send_to(&vec![1; length], &address).unwrap();
            let mut batch = Batch::default();
            messages.receive(&socket, 3, &mut batch, MAX_MESSAGES, &mut |_| true).unwrap();
            assert_eq!(received(&batch), [(3, length)]);
        }
        let nothing = messages.receive(&socket, 3, &mut Batch::default(), 1, &mut |_| true);
        assert_eq!(nothing.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_merged_or_a_very_large_message_gives_slots_up() {
        let window = (0..WINDOW).map(|_| (1400, 1400));
        assert_eq!(sizes(window.clone().chain([(2800, 1400)])), Sizes::default());
        assert_eq!(sizes(window.chain([(MAX_SLOT + 1, MAX_SLOT + 1)])), Sizes::default());
        let jumbo = (0..WINDOW).map(|_| (MAX_SLOT, MAX_SLOT));
        assert_eq!(sizes(jumbo).slot, Some(MAX_SLOT));
        assert_eq!(sizes((0..WINDOW).map(|_| (0, 0))).slot, Some(1));
    }
}
