//! The sender: the product's rate control, repair rounds and roll calls.

use super::packet::{PAYLOAD_BYTES, PacketContent, SessionPacket};
use crate::no_jobs::NoEvent;
use fontana_fec::{Esi, Sbn};
use fontana_proto::report::{
    Authority, CollectorConfig, Expected, RateConfig, RateControl, RepairConfig, RepairRounds,
    ReportCollector,
};
use fontana_proto::{
    BatchId, BlockId, ChannelId, DatagramBatch, Destination, Endpoint, Instant, Output, SymbolId,
};
use fontana_wire::{
    Feedback, FeedbackDatagram, Hash, InstanceId, PacketSeal, ReceiverId, SealNonce, SecretKey,
    TAG_BYTES, Toi, Tsi,
};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The object of the session.
pub(super) const TOI: u32 = 1;
/// Packets of a roll call's session.
const INSTANCE: InstanceId = InstanceId([5; 16]);
/// Reports per second that the product collects.
const REPORTS_PER_SECOND: u32 = 200;
/// Blocks and fingerprints that a roll call has room for.
const ROOM: usize = 48;
const MAX_RECEIVERS: usize = 1 << 16;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentContent {
    pub(super) blocks: u32,
    /// Source symbols of each block.
    pub(super) source_symbols: u32,
}

impl SentContent {
    /// So much that no run ends it.
    pub(super) const ENDLESS: Self = Self { blocks: 1, source_symbols: 1 << 30 };

    pub(super) fn source_symbols(self) -> u64 {
        u64::from(self.blocks) * u64::from(self.source_symbols)
    }
}

/// No cipher: the reports are neither encrypted nor signed.
pub(super) enum NoCipher {}

impl PacketSeal for NoCipher {
    fn seal(&self, _: SealNonce, _: &[u8], _: &mut [u8]) -> [u8; TAG_BYTES] {
        match *self {}
    }

    fn open(&self, _: SealNonce, _: &[u8], _: &mut [u8], _: [u8; TAG_BYTES]) -> bool {
        match *self {}
    }
}

/// A sender that repairs on demand, at a rate that follows its receivers.
#[derive(Debug)]
pub(super) struct FollowingSender {
    content: SentContent,
    packet_bytes: u32,
    signer: SecretKey,
    collector: ReportCollector,
    control: RateControl,
    rounds: RepairRounds,
    /// Source symbols that were sent.
    source_sent: u64,
    /// Symbols that were requested and are not sent yet, of each block.
    owed: BTreeMap<BlockId, u32>,
    roll_calls: VecDeque<Vec<u8>>,
    /// Packets that were sent.
    sent: u64,
    /// When the next packet may be sent.
    next_at: Option<Instant>,
}

impl FollowingSender {
    /// `must_finish`: a receiver that the rate follows below the least rate.
    pub(super) fn new(
        content: SentContent,
        rate: RateConfig,
        must_finish: Option<ReceiverId>,
        seed: u64,
    ) -> Self {
        let (now, packet_bytes) = (Instant::ZERO, rate.packet_bytes);
        let collector = CollectorConfig {
            instance: INSTANCE,
            tsi: Tsi(5),
            manifest: Hash([3; 32]),
            collector: SocketAddr::from((Ipv4Addr::LOCALHOST, 40_007)),
            expected: Expected::Anyone,
            budget_per_second: REPORTS_PER_SECOND,
            list_capacity: ROOM,
            max_receivers: MAX_RECEIVERS,
            trusts_unauthenticated: false,
            seed,
        };
        let block = |sbn| (BlockId { toi: Toi(TOI.into()), sbn: Sbn(sbn) }, content.source_symbols);
        let repair = RepairConfig {
            blocks: (0..content.blocks).map(block).collect(),
            symbols_per_second: rate.most as f64 / f64::from(packet_bytes),
            pending_capacity: ROOM,
            max_receivers: MAX_RECEIVERS,
            max_age: None,
            trusts_unauthenticated: false,
            has_signers: false,
        };
        let mut control = RateControl::new(rate, now);
        must_finish.into_iter().for_each(|receiver| control.must_finish(receiver));
        Self {
            content,
            packet_bytes,
            signer: SecretKey::from_seed(&[7; 32]),
            collector: ReportCollector::new(collector, now),
            control,
            rounds: RepairRounds::new(repair, now),
            source_sent: 0,
            owed: BTreeMap::new(),
            roll_calls: VecDeque::new(),
            sent: 0,
            next_at: None,
        }
    }

    /// Packets that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Packets per second.
    pub(super) fn rate(&self) -> f64 {
        self.control.rate() as f64 / f64::from(self.packet_bytes)
    }

    fn receive(&mut self, now: Instant, datagram: &[u8]) -> Option<()> {
        let opened = FeedbackDatagram::parse(datagram).ok()?.open(None::<&NoCipher>).ok()?;
        self.collector.measure(now, &opened.feedback);
        match &opened.feedback {
            Feedback::Report(report) => {
                self.rounds.note_loss(now, report.loss_ppm);
                if report.state.is_final() {
                    self.control.has_finished(&report.receiver);
                }
                self.collector.handle_report(now, &opened, Authority::Group).ok()?;
            }
            Feedback::Rate(report) => {
                self.control.handle_report(now, report, opened.counter).ok()?;
            }
            Feedback::Request(request) => {
                self.rounds.handle_request(now, request, opened.counter, Authority::Group).ok()?;
            }
        }
        Some(())
    }

    /// The block of the next symbol; `None` if nothing is left to send.
    fn next_block(&mut self) -> Option<u32> {
        if self.source_sent < self.content.source_symbols() {
            self.source_sent += 1;
            return u32::try_from((self.source_sent - 1) % u64::from(self.content.blocks)).ok();
        }
        let mut entry = self.owed.first_entry()?;
        let sbn = entry.key().sbn.0;
        *entry.get_mut() -= 1;
        if *entry.get() == 0 {
            entry.remove();
        }
        Some(sbn)
    }

    /// Continues the rounds, and issues a roll call if one is due.
    fn control(&mut self, now: Instant) {
        self.control.handle_timeout(now);
        for (block, symbols) in self.rounds.poll_symbols().into_iter().flatten() {
            *self.owed.entry(block).or_insert(0) += symbols;
        }
        if self.source_sent == self.content.source_symbols() && self.owed.is_empty() {
            self.rounds.handle_sent(now);
        }
        self.rounds.handle_timeout(now);
        if self.control.wants_call() || self.rounds.wants_call(now) {
            self.collector.want_call();
        }
        let issued = now.as_nanos() / 1_000_000;
        if let Some(mut call) = self.collector.poll_roll_call(now, issued) {
            let (receivers, trip) = (self.collector.head_count(), self.collector.round_trip());
            call.repair = self.rounds.call(now, receivers, trip);
            call.rate = Some(self.control.call(now, self.collector.long_round_trip()));
            self.roll_calls.push_back(call.emit(&self.signer));
        }
    }

    /// Writes the next packet. Returns its payload, if it has one; `None` if nothing is to be sent.
    fn send(&mut self, header: &mut Vec<u8>) -> Option<Option<SymbolId>> {
        let (number, call) = (self.sent, self.roll_calls.pop_front());
        let symbol = if let Some(call) = call {
            SessionPacket { number, content: PacketContent::RollCall(&call) }.emit(header);
            None
        } else {
            let block = self.next_block()?;
            SessionPacket { number, content: PacketContent::Symbol { block } }.emit(header);
            Some(SymbolId {
                block: BlockId { toi: Toi(TOI.into()), sbn: Sbn(block) },
                esi: Esi(number as u32),
                batch: BatchId(0),
                index: 0,
                size: PAYLOAD_BYTES,
            })
        };
        self.sent += 1;
        Some(symbol)
    }
}

impl Endpoint for FollowingSender {
    type Job = Infallible;
    type Done = Infallible;
    type Event = NoEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        for (_, datagram) in batch.iter() {
            // What is ignored changes nothing.
            let _ = self.receive(now, datagram);
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
        self.control(now);
        let next_at = self.next_at.unwrap_or(now);
        if next_at > now {
            return None;
        }
        let symbol = self.send(header)?;
        let spacing = Duration::from_secs_f64(1.0 / self.rate().max(0.1));
        self.next_at = Some(now + spacing);
        Some(Output::Transmit { to: Destination::Channel(ChannelId::BASE), symbol })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let has_packet = !self.roll_calls.is_empty()
            || !self.owed.is_empty()
            || self.source_sent < self.content.source_symbols();
        let packet = self.next_at.filter(|_| has_packet);
        let rounds = self.control.poll_timeout().into_iter().chain(self.rounds.poll_timeout());
        rounds.chain(packet).chain([self.collector.poll_timeout()]).min()
    }
}
