//! The sender: the product's rate control, repair rounds and roll calls.

use super::packet::{PAYLOAD_BYTES, PacketContent, SessionPacket};
use crate::no_jobs::NoEvent;
use fontana_fec::{Esi, Sbn};
use fontana_proto::report::{
    Authentic, CollectorConfig, Expected, ExpectedReceiver, RateConfig, RepairConfig,
};
use fontana_proto::{
    BatchId, BlockId, ChannelId, Collection, CollectionConfig, DatagramBatch, Demand, Destination,
    Endpoint, Instant, Output, RepairBy, SendJob, SenderProgress, SymbolId,
};
use fontana_wire::{Hash, InstanceId, ReceiverLabel, SecretKey, Toi, Tsi};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::IpAddr;
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

/// A sender that repairs on demand, at a rate that follows its receivers.
#[derive(Debug)]
pub(super) struct FollowingSender {
    content: SentContent,
    packet_bytes: u32,
    signer: SecretKey,
    collection: Collection,
    /// Bytes per second.
    rate: u64,
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
    /// `address`: its own. `must_finish`: the rate follows this receiver below the least rate.
    pub(super) fn new(
        address: IpAddr,
        content: SentContent,
        rate: RateConfig,
        must_finish: Option<ReceiverLabel>,
        seed: u64,
    ) -> Self {
        let (now, packet_bytes) = (Instant::ZERO, rate.packet_bytes);
        let collector = CollectorConfig {
            expected: match &must_finish {
                Some(label) => {
                    Expected::Named(vec![ExpectedReceiver { label: label.clone(), key: None }])
                }
                None => Expected::Anyone,
            },
            budget_per_second: REPORTS_PER_SECOND,
            list_capacity: ROOM,
            max_receivers: MAX_RECEIVERS,
            // Nothing is encrypted or signed.
            trusts_unauthenticated: true,
            ..CollectorConfig::new(INSTANCE, Tsi(5), Hash([3; 32]), (address, 40_007).into(), seed)
        };
        let block = |sbn| (BlockId { toi: Toi(TOI.into()), sbn: Sbn(sbn) }, content.source_symbols);
        let repair = RepairConfig {
            blocks: (0..content.blocks).map(block).collect(),
            symbols_per_second: rate.most as f64 / f64::from(packet_bytes),
            pending_capacity: ROOM,
            max_receivers: MAX_RECEIVERS,
            max_age: None,
            trusts_unauthenticated: true,
            has_signers: false,
        };
        let config = CollectionConfig {
            repair: RepairBy::Rounds(Box::new(repair)),
            rate: Some(rate),
            must_finish: must_finish.is_some(),
            ..CollectionConfig::new(collector, PAYLOAD_BYTES)
        };
        let collection = Collection::new(config, now);
        Self {
            content,
            packet_bytes,
            signer: SecretKey::from_seed(&[7; 32]),
            rate: collection.rate().unwrap_or(0),
            collection,
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
        self.rate as f64 / f64::from(self.packet_bytes)
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

    /// Does what the receivers demand.
    fn follow(&mut self, now: Instant) {
        self.collection.note_sent(self.sent * u64::from(self.packet_bytes));
        loop {
            let is_sent = self.source_sent == self.content.source_symbols() && self.owed.is_empty();
            let is_announcing = !self.roll_calls.is_empty();
            match self
                .collection
                .poll(now, SenderProgress { is_sent, is_announcing, is_enough: false })
            {
                None => return,
                Some(Demand::Call { mut call, .. }) => {
                    call.issued_unix_ms = now.as_nanos() / 1_000_000;
                    let call = call.emit(&self.signer);
                    self.collection.handle_signed(now, &call);
                    self.roll_calls.push_back(call);
                }
                Some(Demand::Fresh(symbols)) => {
                    for (block, count) in symbols {
                        *self.owed.entry(block).or_insert(0) += count;
                    }
                }
                Some(Demand::Rate(rate)) => self.rate = rate,
                Some(_) => {}
            }
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
        for job in self.collection.handle_datagrams(now, batch) {
            let SendJob::Open { from, datagram } = job else { continue };
            let authentic = Authentic::open_plain(&datagram, from, self.collection.signers());
            self.collection.handle_opened(now, authentic.as_ref());
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
        self.follow(now);
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
        packet.into_iter().chain(self.collection.poll_timeout()).min()
    }
}
