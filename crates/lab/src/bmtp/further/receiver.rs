//! A receiver: the product's reporter, on numbers of symbols.

use super::packet::{PacketContent, SessionPacket};
use super::sender::{SentContent, TOI};
use crate::no_jobs::NoEvent;
use fontana_proto::report::{AnswerContent, DueAnswer, NoCipher, PacketCounts, Reporter};
use fontana_proto::{ChannelId, DatagramBatch, Destination, Endpoint, Instant, Lacking, Output};
use fontana_wire::{
    BlockNeed, Feedback, Hash, RateReport, ReceiverId, ReceiverLabel, ReceiverReport,
    ReceiverState, RepairRequest, RollCall, UnverifiedRollCall,
};
use std::convert::Infallible;

/// With so many more than source symbols, RaptorQ recovers a block: more fail in 10^-6 of all cases
/// (RFC 6330, section 5.8: 10^-2 with none more, and a hundredth of that with each).
const SURPLUS: u32 = 2;

/// A receiver that reports and requests.
#[derive(Debug)]
pub(super) struct ReportingReceiver {
    id: ReceiverId,
    label: ReceiverLabel,
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
        let most = Reporter::DEFAULT_MAX_PER_SECOND;
        Self {
            id,
            content,
            reporter: Reporter::new(id, label.clone(), most, seed).with_rate_reports(),
            label,
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
        self.reporter.set_counts(self.counts);
        match content {
            PacketContent::Symbol { block } => {
                *self.has.get_mut(block as usize)? += 1;
                if self.completed_at.is_none() && self.lacking().is_nothing() {
                    self.completed_at = Some(now);
                    self.reporter.set_final();
                }
            }
            PacketContent::RollCall(bytes) => {
                // Signatures are tested elsewhere, and checking them takes most of a run.
                let call: RollCall = UnverifiedRollCall::parse(bytes).ok()?.claimed().clone();
                let lacking = self.lacking();
                self.reporter.handle_roll_call(now, &call, |_| lacking);
            }
        }
        Some(())
    }

    fn loss_ppm(&self) -> u32 {
        let PacketCounts { received, lost } = self.counts;
        u32::try_from(1_000_000 * lost / (received + lost).max(1)).unwrap_or(u32::MAX)
    }

    fn feedback(&self, due: DueAnswer) -> Feedback {
        let (receiver, echo, loss_ppm) = (self.id, due.echo, self.loss_ppm());
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        match due.content {
            AnswerContent::Report { round } => Feedback::Report(ReceiverReport {
                receiver,
                label: self.label.clone(),
                started_unix_ms: 0,
                round,
                echo,
                state: match self.completed_at {
                    Some(_) => ReceiverState::Complete { manifest: Hash([3; 32]) },
                    None => ReceiverState::Receiving,
                },
                permille: 0,
                symbols_lacking: 0,
                loss_ppm,
                kernel_drops: 0,
                channels: 1,
                seconds: 0,
            }),
            AnswerContent::Request { round, lacking, mute_us } => {
                Feedback::Request(RepairRequest {
                    receiver,
                    round,
                    echo,
                    loss_ppm,
                    mute_us,
                    may_lack_more: lacking.may_lack_more,
                    blocks: lacking.blocks,
                    maps: lacking.maps,
                })
            }
            AnswerContent::Rate(sample) => Feedback::Rate(RateReport {
                receiver,
                round: sample.round,
                echo,
                window_us: u32::try_from(sample.window.as_micros()).unwrap_or(u32::MAX).max(1),
                received: count(sample.packets.received),
                lost: count(sample.packets.lost),
                weight: sample.weight,
            }),
        }
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
        let due = self.reporter.poll(now)?;
        let (to, instance, counter) = (due.to, due.instance, due.counter);
        let feedback = self.feedback(due);
        header.extend(feedback.emit(instance, counter, None, None::<&NoCipher>));
        Some(Output::Transmit { to: Destination::Sender(to), symbol: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.reporter.poll_timeout()
    }
}
