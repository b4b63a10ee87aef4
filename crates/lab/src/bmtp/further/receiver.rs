//! A receiver: the product's reporter, on numbers of symbols.

use super::packet::{PacketContent, SessionPacket};
use super::sender::{SentContent, TOI};
use crate::no_jobs::NoEvent;
use fontana_proto::report::{PacketCounts, ReportFacts, Reporter, ReporterConfig};
use fontana_proto::{ChannelId, DatagramBatch, Destination, Endpoint, Instant, Lacking, Output};
use fontana_wire::{
    BlockNeed, Hash, ReceiverId, ReceiverLabel, ReceiverState, RollCall, UnverifiedRollCall,
};
use std::convert::Infallible;

/// With so many more than source symbols, RaptorQ recovers a block: more fail in 10^-6 of all cases
/// (RFC 6330, section 5.8: 10^-2 with none more, and a hundredth of that with each).
const SURPLUS: u32 = 2;

/// A receiver that reports and requests.
#[derive(Debug)]
pub(super) struct ReportingReceiver {
    content: SentContent,
    reporter: Reporter,
    has_joined: bool,
    counts: PacketCounts,
    /// The number of the packet that is expected next.
    next: Option<u64>,
    /// Symbols that it has of each block.
    has: Vec<u32>,
    completed_at: Option<Instant>,
}

impl ReportingReceiver {
    pub(super) fn new(
        id: ReceiverId,
        label: ReceiverLabel,
        content: SentContent,
        seed: u64,
    ) -> Self {
        let config = ReporterConfig::new(id, label, seed);
        Self {
            content,
            reporter: Reporter::new(ReporterConfig { reports_rate: true, ..config }),
            has_joined: false,
            counts: PacketCounts::default(),
            next: None,
            has: vec![0; content.blocks as usize],
            completed_at: None,
        }
    }

    /// Packets that have arrived, and that were lost.
    pub(super) fn counts(&self) -> PacketCounts {
        self.counts
    }

    /// When it had enough symbols of all blocks.
    pub(super) fn completed_at(&self) -> Option<Instant> {
        self.completed_at
    }

    fn lacking(&self) -> Lacking {
        let enough = self.content.source_symbols.saturating_add(SURPLUS);
        let need = |(sbn, &has): (u32, &u32)| {
            let symbols = enough.saturating_sub(has);
            (symbols > 0).then_some(BlockNeed { toi: TOI, sbn, symbols })
        };
        let blocks = (0..).zip(&self.has).filter_map(need).collect();
        Lacking { blocks, ..Lacking::default() }
    }

    fn receive(&mut self, now: Instant, packet: &[u8]) -> Option<()> {
        let SessionPacket { number, content } = SessionPacket::parse(packet)?;
        let next = self.next.unwrap_or(number);
        self.counts.received += 1;
        // Paths keep the order.
        self.counts.lost += number.saturating_sub(next);
        self.next = Some(number + 1);
        match content {
            PacketContent::Symbol { block } => {
                *self.has.get_mut(block as usize)? += 1;
                if self.completed_at.is_none() && self.lacking().is_nothing() {
                    self.completed_at = Some(now);
                    self.reporter.end(now, ReceiverState::Complete { manifest: Hash([3; 32]) });
                }
            }
            PacketContent::RollCall(bytes) => {
                // Signatures are tested elsewhere, and checking them takes most of a run.
                let call: RollCall = UnverifiedRollCall::parse(bytes).ok()?.claimed().clone();
                let lacking = self.lacking();
                self.reporter.handle_roll_call(now, &call, self.counts, |_| lacking);
            }
        }
        Some(())
    }
}

impl Endpoint for ReportingReceiver {
    type Job = Infallible;
    type Done = Infallible;
    type Event = NoEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for (_, packet) in batch.iter() {
            // No packet of the sender is malformed.
            let _ = self.receive(now, packet);
        }
    }

    fn handle_done(&mut self, _now: Instant, done: Infallible) {
        match done {}
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<Infallible, NoEvent>> {
        if !std::mem::replace(&mut self.has_joined, true) {
            return Some(Output::Join(ChannelId::BASE));
        }
        let packets = self.counts;
        let facts = |_| ReportFacts { packets, ..ReportFacts::default() };
        let answer = self.reporter.poll(now, facts)?;
        header.extend(answer.emit_open());
        Some(Output::Transmit { to: Destination::Sender(answer.to), symbol: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.reporter.poll_timeout()
    }
}
