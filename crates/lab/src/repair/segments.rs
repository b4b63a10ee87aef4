//! The bytes of segments, in runs between hosts. Simulated packets have none.

use super::packet::{Message, RepairPacket};
use super::setting::LiConfig;
use crate::hosts::routed::Content;
use fontana_proto::{SplitMix64, SymbolId};
use std::sync::Arc;

/// Bytes of a segment: what a packet has behind its header.
const SEGMENT_BYTES: usize = (LiConfig::DATA_BYTES - RepairPacket::BYTES) as usize;
/// The random stream of the bytes.
const BYTES_STREAM: u64 = 1 << 34;

/// The segments that a host has. Groups have one segment: a repair is a segment again.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    original: Arc<[u8]>,
    own: Vec<u8>,
}

impl Segments {
    /// Random segments, all of which the host has.
    pub(super) fn draw(segments: u32, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed, BYTES_STREAM);
        let size = segments as usize * SEGMENT_BYTES;
        let original: Arc<[u8]> = (0..size).map(|_| random.next_u64() as u8).collect();
        Self { own: original.to_vec(), original }
    }

    /// The same segments, at their source.
    pub(super) fn sent(&self) -> Self {
        self.clone()
    }

    /// The same segments, at a host that has none of them.
    pub(super) fn lacking(&self) -> Self {
        Self { original: Arc::clone(&self.original), own: vec![0; self.own.len()] }
    }

    /// Whether the host has every byte as it was sent.
    pub(super) fn is_whole(&self) -> bool {
        *self.own == *self.original
    }
}

/// The segment that a packet with this header carries.
fn segment(packet: &[u8]) -> Option<usize> {
    match RepairPacket::parse(packet)?.message {
        Message::Data { segment } | Message::Repair { group: segment, .. } => {
            usize::try_from(segment).ok()
        }
        _ => None,
    }
}

impl Content for Segments {
    fn write(&self, header: &[u8], symbol: &SymbolId, to: &mut Vec<u8>) {
        let start = segment(header).map(|segment| segment * SEGMENT_BYTES);
        let bytes = start.and_then(|start| self.own.get(start..start + SEGMENT_BYTES));
        let end = to.len() + usize::from(symbol.size);
        to.extend_from_slice(bytes.unwrap_or_default());
        to.resize(end, 0);
    }

    fn take(&mut self, datagram: &[u8]) {
        let bytes = datagram.get(usize::from(RepairPacket::BYTES)..);
        let Some((segment, bytes)) = segment(datagram).zip(bytes) else { return };
        let start = segment.saturating_mul(SEGMENT_BYTES);
        let own = self.own.get_mut(start..start.saturating_add(SEGMENT_BYTES));
        if let Some(own) = own.filter(|own| own.len() == bytes.len()) {
            own.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::{Cause, Path};
    use super::*;
    use fontana_fec::{Esi, Sbn};
    use fontana_proto::{BatchId, BlockId, Instant};
    use fontana_sim::NodeId;
    use fontana_wire::Toi;

    fn packet(from: &Segments, message: Message) -> Vec<u8> {
        let packet = RepairPacket { from: NodeId(1), sent_at: Instant::ZERO, hops: 1, message };
        let mut header = Vec::new();
        packet.emit(&mut header);
        let mut bytes = header.clone();
        let block = BlockId { toi: Toi(1), sbn: Sbn(0) };
        let size = LiConfig::DATA_BYTES - RepairPacket::BYTES;
        let symbol = SymbolId { block, esi: Esi(0), batch: BatchId(0), index: 0, size };
        from.write(&header, &symbol, &mut bytes);
        bytes
    }

    #[test]
    fn a_host_is_whole_with_the_right_bytes_of_all_segments() {
        let source = Segments::draw(3, 7);
        let repair = |group| Message::Repair { group, cause: Cause::Requested, path: Path::Direct };
        let (mut first, mut second) = (source.lacking(), source.lacking());
        assert!(source.sent().is_whole() && !first.is_whole());
        for message in [Message::Data { segment: 0 }, repair(2), Message::Data { segment: 1 }] {
            assert!(!first.is_whole());
            first.take(&packet(&source, message));
        }
        assert!(first.is_whole());
        // A member repairs with what it has received.
        (0..3).for_each(|group| second.take(&packet(&first, repair(group))));
        assert!(second.is_whole());
        let mut wrong = packet(&source, repair(1));
        wrong[500] ^= 1;
        second.take(&wrong);
        assert!(!second.is_whole());
        second.take(&packet(&source, Message::Data { segment: 3 }));
        second.take(&[]);
    }
}
