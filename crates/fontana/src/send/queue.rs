//! Packets that wait to be handed to the kernel, in GSO batches (UDP generic segmentation offload).

use crate::error::Error;
use fontana_net::SendSocket;
use fontana_proto::ChannelId;

/// One GSO batch for each channel of a session.
///
/// A full batch is sent at once. All are sent when the sender has no further packet that may be
/// sent now. A batch is therefore never older than the burst that the rate allows, and channels
/// that alternate packet by packet still fill batches.
pub(super) struct SendQueue {
    socket: SendSocket,
    /// By channel, up to the highest one that has been sent to.
    batches: Vec<GsoBatch>,
    /// Datagrams that this host could not send.
    pub(super) lost: u64,
}

impl SendQueue {
    pub(super) fn new(socket: SendSocket) -> Self {
        Self { socket, batches: Vec::new(), lost: 0 }
    }

    /// The socket, to ask it for what it has sent.
    pub(super) fn socket(&self) -> &SendSocket {
        &self.socket
    }

    /// Adds a datagram to a channel's batch, and sends the batch if it is full.
    pub(super) fn push(
        &mut self,
        channel: ChannelId,
        header: &[u8],
        symbol: &[u8],
    ) -> Result<(), Error> {
        let channel = usize::from(channel.0);
        if self.batches.len() <= channel {
            self.batches.resize_with(channel + 1, GsoBatch::default);
        }
        let Some(batch) = self.batches.get_mut(channel) else { return Ok(()) };
        if batch.must_flush_before(header.len() + symbol.len()) {
            self.lost += batch.flush(&mut self.socket, channel)?;
        }
        batch.push(header, symbol);
        if batch.is_complete() {
            self.lost += batch.flush(&mut self.socket, channel)?;
        }
        Ok(())
    }

    /// Sends all batches.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        for (channel, batch) in self.batches.iter_mut().enumerate() {
            self.lost += batch.flush(&mut self.socket, channel)?;
        }
        Ok(())
    }
}

/// Datagrams of one size that one system call sends.
#[derive(Default)]
struct GsoBatch {
    bytes: Vec<u8>,
    segment_size: usize,
    segments: usize,
    /// The last datagram is shorter than the others: none can follow.
    is_closed: bool,
}

/// Limits of one call: the kernel's for segmentation offload.
const BATCH_SEGMENTS: usize = 64;
const BATCH_BYTES: usize = 65_000;

impl GsoBatch {
    /// Whether a datagram of this size does not fit. All datagrams have the size of the first one,
    /// except that the last may be shorter.
    fn must_flush_before(&self, size: usize) -> bool {
        self.segments > 0 && (self.bytes.len() + size > BATCH_BYTES || size > self.segment_size)
    }

    fn is_complete(&self) -> bool {
        self.is_closed || self.segments == BATCH_SEGMENTS
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

    /// Sends the batch. Returns the number of datagrams that this host could not send.
    fn flush(&mut self, socket: &mut SendSocket, channel: usize) -> Result<u64, Error> {
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
