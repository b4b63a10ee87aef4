//! Packets that wait to be handed to the kernel, in GSO batches (UDP generic segmentation offload).

use super::prepared::PreparedSymbols;
use crate::error::Error;
use crate::seal::PacketSealer;
use fontana_net::SendSocket;
use fontana_proto::{BatchId, ChannelId, SymbolId};
use std::ops::Range;

/// One GSO batch for each channel of a session.
///
/// A full batch is sent at once. All are sent when the sender has no further packet that may be
/// sent now. A batch is therefore never older than the burst that the rate allows, and channels
/// that alternate packet by packet still fill batches.
pub(super) struct SendQueue {
    socket: SendSocket,
    /// Seals every datagram, once.
    sealer: Option<PacketSealer>,
    /// By channel, up to the highest one that has been sent to.
    batches: Vec<GsoBatch>,
    /// Datagrams that this host could not send.
    pub(super) lost: u64,
}

impl SendQueue {
    pub(super) fn new(socket: SendSocket, sealer: Option<PacketSealer>) -> Self {
        Self { socket, sealer, batches: Vec::new(), lost: 0 }
    }

    /// The socket, to ask it for what it has sent.
    pub(super) fn socket(&self) -> &SendSocket {
        &self.socket
    }

    /// Adds a datagram to a channel's batch, and sends the batch if it is full. The datagram is a
    /// header alone, or with a symbol of `prepared`; without that symbol, nothing is added.
    pub(super) fn push(
        &mut self,
        channel: ChannelId,
        header: &[u8],
        symbol: Option<&SymbolId>,
        prepared: &mut PreparedSymbols,
    ) -> Result<(), Error> {
        let channel = usize::from(channel.0);
        if self.batches.len() <= channel {
            self.batches.resize_with(channel + 1, GsoBatch::default);
        }
        let Some(batch) = self.batches.get_mut(channel) else { return Ok(()) };
        let in_place = symbol.and_then(|symbol| {
            prepared.datagram(symbol, header).map(|range| InPlace { batch: symbol.batch, range })
        });
        if let (Some(sealer), Some(InPlace { batch, range })) = (&self.sealer, &in_place) {
            // The symbol is not needed again.
            sealer.seal(prepared.memory_mut(*batch, range.clone()));
        }
        let bytes = match (symbol, &in_place) {
            (Some(symbol), None) => prepared.symbol(symbol),
            _ => Some(&[][..]),
        };
        let Some(bytes) = bytes else { return Ok(()) };
        let size = in_place.as_ref().map_or(header.len() + bytes.len(), |run| run.range.len());
        if batch.must_flush_before(size) || batch.ends_before(in_place.as_ref()) {
            self.lost += batch.flush(&mut self.socket, channel, prepared)?;
        }
        match in_place {
            None => {
                batch.push(&[header, bytes], prepared);
                if let Some(sealer) = &self.sealer {
                    sealer.seal(batch.last_copied(size));
                }
            }
            Some(run) if batch.is_empty() || batch.is_continued_by(&run) => batch.extend(run),
            Some(InPlace { batch: from, range }) => {
                batch.push(&[prepared.memory(from, range)], prepared);
            }
        }
        batch.has_symbols |= symbol.is_some();
        if batch.is_complete() {
            self.lost += batch.flush(&mut self.socket, channel, prepared)?;
        }
        Ok(())
    }

    /// Sends all batches.
    pub(super) fn flush(&mut self, prepared: &PreparedSymbols) -> Result<(), Error> {
        for (channel, batch) in self.batches.iter_mut().enumerate() {
            self.lost += batch.flush(&mut self.socket, channel, prepared)?;
        }
        Ok(())
    }
}

/// Datagrams of one size that one system call sends. They are sent from the memory of prepared
/// symbols if they follow each other there, and otherwise copied.
#[derive(Default)]
struct GsoBatch {
    in_place: Option<InPlace>,
    /// Copies of the datagrams, if they are not in place.
    copied: Vec<u8>,
    segment_size: usize,
    segments: usize,
    /// One of the datagrams has a symbol.
    has_symbols: bool,
    /// The last datagram is shorter than the others: none can follow.
    is_closed: bool,
}

/// Datagrams that follow each other in the memory of prepared symbols.
#[derive(Debug, PartialEq, Eq)]
struct InPlace {
    batch: BatchId,
    range: Range<usize>,
}

/// Limits of one call: the kernel's for segmentation offload, and the payload of IPv4.
const BATCH_SEGMENTS: usize = 64;
const BATCH_BYTES: usize = 65_507;
/// Datagrams that are worth a call of their own, instead of being copied to those after them. A
/// call costs about as much as copying eight packets.
const LEAST_IN_PLACE: usize = 8;

impl GsoBatch {
    fn is_empty(&self) -> bool {
        self.segments == 0
    }

    fn len(&self) -> usize {
        self.in_place.as_ref().map_or(self.copied.len(), |run| run.range.len())
    }

    /// Whether a datagram of this size does not fit. All datagrams have the size of the first one,
    /// except that the last may be shorter.
    fn must_flush_before(&self, size: usize) -> bool {
        !self.is_empty() && (self.len() + size > BATCH_BYTES || size > self.segment_size)
    }

    /// Whether the batch is sent so that the next datagrams can be sent in place, or because they
    /// do not follow those in place.
    fn ends_before(&self, next: Option<&InPlace>) -> bool {
        let Some(next) = next else { return self.in_place.is_some() };
        let is_long = self.in_place.is_some() && self.segments >= LEAST_IN_PLACE;
        !self.has_symbols || (is_long && !self.is_continued_by(next))
    }

    fn is_continued_by(&self, next: &InPlace) -> bool {
        let follows = |run: &InPlace| run.batch == next.batch && run.range.end == next.range.start;
        self.in_place.as_ref().is_some_and(follows)
    }

    fn is_complete(&self) -> bool {
        self.is_closed || self.segments == BATCH_SEGMENTS
    }

    /// Adds a datagram in place: the first one, or one that continues those in place.
    fn extend(&mut self, next: InPlace) {
        self.count(next.range.len());
        match &mut self.in_place {
            None => self.in_place = Some(next),
            Some(run) => run.range.end = next.range.end,
        }
    }

    /// Adds a copy of a datagram, given in parts.
    fn push(&mut self, parts: &[&[u8]], prepared: &PreparedSymbols) {
        if let Some(InPlace { batch, range }) = self.in_place.take() {
            self.copied.extend_from_slice(prepared.memory(batch, range));
        }
        self.count(parts.iter().map(|part| part.len()).sum());
        parts.iter().for_each(|part| self.copied.extend_from_slice(part));
    }

    /// The copy of `size` bytes that was added last.
    fn last_copied(&mut self, size: usize) -> &mut [u8] {
        let start = self.copied.len().saturating_sub(size);
        self.copied.get_mut(start..).unwrap_or_default()
    }

    fn count(&mut self, size: usize) {
        if self.segments == 0 {
            self.segment_size = size;
        }
        self.segments += 1;
        self.is_closed = size < self.segment_size;
    }

    /// Sends the batch. Returns the number of datagrams that this host could not send.
    fn flush(
        &mut self,
        socket: &mut SendSocket,
        channel: usize,
        prepared: &PreparedSymbols,
    ) -> Result<u64, Error> {
        if self.is_empty() {
            return Ok(0);
        }
        let bytes = match self.in_place.take() {
            None => &self.copied,
            Some(InPlace { batch, range }) => prepared.memory(batch, range),
        };
        let sent = socket.send_batch(channel, bytes, self.segment_size)?;
        self.copied.clear();
        self.segments = 0;
        self.has_symbols = false;
        self.is_closed = false;
        Ok(sent.lost)
    }
}
