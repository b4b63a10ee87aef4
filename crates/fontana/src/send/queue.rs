//! Packets on their way to the kernel.

use crate::error::Error;
use fontana_net::{MtuDrop, SendSocket};
use fontana_proto::ChannelId;

/// The trains of a session's channels. They leave when they are full, and all together when the
/// sender has nothing more that may leave now: so a train is never older than the burst that the
/// rate allows, and channels that take turns packet by packet have trains all the same.
pub(super) struct Trains {
    socket: SendSocket,
    /// One for each channel that has been sent to: the memory of the others is not needed.
    trains: Vec<Train>,
    /// Datagrams that this host could not send.
    pub(super) lost: u64,
}

impl Trains {
    pub(super) fn new(socket: SendSocket) -> Self {
        Self { socket, trains: Vec::new(), lost: 0 }
    }

    /// The last period in which datagrams did not fit the MTU any more.
    pub(super) fn mtu_drop(&self) -> Option<&MtuDrop> {
        self.socket.mtu_drop()
    }

    /// Adds a datagram to a channel's train.
    pub(super) fn push(
        &mut self,
        channel: ChannelId,
        header: &[u8],
        symbol: &[u8],
    ) -> Result<(), Error> {
        let channel = usize::from(channel.0);
        if self.trains.len() <= channel {
            self.trains.resize_with(channel + 1, Train::default);
        }
        let Some(train) = self.trains.get_mut(channel) else { return Ok(()) };
        if train.must_leave_before(header.len() + symbol.len()) {
            self.lost += train.leave(&mut self.socket, channel)?;
        }
        train.push(header, symbol);
        if train.is_complete() {
            self.lost += train.leave(&mut self.socket, channel)?;
        }
        Ok(())
    }

    /// Sends what is waiting.
    pub(super) fn leave(&mut self) -> Result<(), Error> {
        for (channel, train) in self.trains.iter_mut().enumerate() {
            self.lost += train.leave(&mut self.socket, channel)?;
        }
        Ok(())
    }
}

/// Datagrams of one size on their way to the kernel in one piece.
#[derive(Default)]
struct Train {
    bytes: Vec<u8>,
    segment_size: usize,
    segments: usize,
    /// The last datagram was shorter than the others: none can follow.
    is_closed: bool,
}

/// What one call hands to the kernel: its own limits for segmentation offload.
const TRAIN_SEGMENTS: usize = 64;
const TRAIN_BYTES: usize = 65_000;

impl Train {
    /// Whether a datagram of this size has no place any more. All have the size of the first one,
    /// but the last may be shorter.
    fn must_leave_before(&self, size: usize) -> bool {
        self.segments > 0 && (self.bytes.len() + size > TRAIN_BYTES || size > self.segment_size)
    }

    fn is_complete(&self) -> bool {
        self.is_closed || self.segments == TRAIN_SEGMENTS
    }

    fn push(&mut self, header: &[u8], symbol: &[u8]) {
        let size = header.len() + symbol.len();
        if self.segments == 0 {
            self.segment_size = size;
        }
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(symbol);
        self.segments += 1;
        self.is_closed = size < self.segment_size;
    }

    /// How many datagrams this host could not send.
    fn leave(&mut self, socket: &mut SendSocket, channel: usize) -> Result<u64, Error> {
        if self.segments == 0 {
            return Ok(0);
        }
        let sent = socket.send_batch(channel, &self.bytes, self.segment_size)?;
        self.bytes.clear();
        self.segments = 0;
        self.is_closed = false;
        Ok(sent.lost)
    }
}
