//! Packets on their way to the kernel.

use crate::Error;
use fontana_net::SendSocket;

/// Datagrams of one size on their way to the kernel in one piece.
pub(super) struct Train {
    socket: SendSocket,
    bytes: Vec<u8>,
    segment_size: usize,
    segments: usize,
    /// Datagrams that this host could not send.
    pub(super) lost: u64,
}

/// What one call hands to the kernel: its own limits for segmentation offload.
const TRAIN_SEGMENTS: usize = 64;
const TRAIN_BYTES: usize = 65_000;

impl Train {
    pub(super) fn new(socket: SendSocket) -> Self {
        let bytes = Vec::with_capacity(TRAIN_BYTES);
        Self { socket, bytes, segment_size: 0, segments: 0, lost: 0 }
    }

    /// Adds a datagram. All have the size of the first one, but the last may be shorter.
    pub(super) fn push(&mut self, header: &[u8], symbol: &[u8]) -> Result<(), Error> {
        let size = header.len() + symbol.len();
        let full = self.segments == TRAIN_SEGMENTS || self.bytes.len() + size > TRAIN_BYTES;
        if self.segments > 0 && (full || size > self.segment_size) {
            self.leave()?;
        }
        if self.segments == 0 {
            self.segment_size = size;
        }
        self.bytes.extend_from_slice(header);
        self.bytes.extend_from_slice(symbol);
        self.segments += 1;
        if size < self.segment_size { self.leave() } else { Ok(()) }
    }

    pub(super) fn leave(&mut self) -> Result<(), Error> {
        if self.segments > 0 {
            let sent = self.socket.send_batch(0, &self.bytes, self.segment_size)?;
            self.lost += sent.lost;
            self.bytes.clear();
            self.segments = 0;
        }
        Ok(())
    }
}
