//! The product's sender of a stream, and its producer.

use super::super::setting::LiConfig;
use crate::session::TSI;
use crate::swarm::hosts::publisher;
use fontana_fec::PlanCache;
use fontana_proto::report::{CollectorConfig, Expected};
use fontana_proto::{
    CollectionConfig, DatagramBatch, Endpoint, Expectation, Instant, Output, Pacer, Receiver,
    ReceiverConfig, RepairBy, SendDone, SendJob, SenderEvent, StreamRedundancy, StreamSender,
    StreamSenderConfig, StreamStart, Subscription, SubscriptionLimits,
};
use fontana_sim::{IdContent, RateCap};
use fontana_wire::{Hash, InstanceId, RelativePath, RollCall, StreamIndex, StreamState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Limit on the rate, headers included, in bytes per second: that of `li.sites`. The segments take
/// a twenty-fourth of it.
const RATE: u64 = 2_500_000;
/// Bytes of a symbol of head and index.
const CONTROL_BYTES: u16 = 1_400;
/// Bytes of the headers of a packet, at most.
const HEADER_BYTES: u16 = 28 + 64;
const COLLECTOR_PORT: u16 = 40_007;
/// Repair symbols per thousand source symbols while no receiver reports, as in the program.
const UNREPORTED_PERMILLE: u32 = 100;
/// Fragments have no bytes.
const HASH: Hash = Hash([1; Hash::SIZE]);

/// A stream of fragments.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProductStream {
    /// Segments of all, and of a fragment.
    pub(super) segments: u32,
    pub(super) group: u32,
    /// Receivers that the sender waits for.
    pub(super) receivers: u32,
    pub(super) seed: u64,
}

/// A sender with its producer, which makes a segment each [`LiConfig::SPACING`].
#[derive(Debug)]
pub(super) struct ProducingSender {
    sender: StreamSender,
    stream: ProductStream,
    /// Fragments that the sender has taken.
    taken: u32,
    /// When the producer begins: the receivers are there.
    begins: Option<Instant>,
}

impl ProductStream {
    fn fragment_bytes(self) -> u32 {
        self.group * u32::from(LiConfig::DATA_BYTES)
    }

    /// The fragments, for the runners of the hosts.
    pub(super) fn content(self) -> Option<IdContent> {
        let index = StreamIndex {
            version: 1,
            name: RelativePath::new("stream").ok()?,
            state: StreamState::Open,
            symbol_size: LiConfig::DATA_BYTES,
            max_symbols: self.group,
            first: 0,
            offset: 0,
            fragments: Vec::new(),
        };
        let oti = index.oti(self.fragment_bytes());
        let mut content = IdContent::default();
        for number in 0..self.segments / self.group {
            content.add(StreamIndex::toi(number), oti, vec![HASH]);
        }
        Some(content)
    }

    /// The sender at this address. `None` if its control objects cannot be sent.
    pub(super) fn sender(self, address: IpAddr) -> Option<ProducingSender> {
        let instance = InstanceId(u128::from(self.seed).to_le_bytes());
        let sender = StreamSender::new(StreamSenderConfig {
            tsi: TSI,
            instance,
            signer: publisher(),
            first_version: 1,
            name: RelativePath::new("stream").ok()?,
            symbol_size: LiConfig::DATA_BYTES,
            control_symbol_size: CONTROL_BYTES,
            max_symbols: self.group,
            redundancy: StreamRedundancy::Reported { permille: UNREPORTED_PERMILLE },
            requested_permille: *StreamRedundancy::REQUESTED_PERMILLE.end(),
            rate_bytes_per_second: RATE,
            packet_overhead: 28,
            peak_window: Pacer::PEAK_WINDOW,
            start: StreamStart::WhenFollowed,
            expiry: None,
            seal: None,
            seed: self.seed,
        });
        let collector = SocketAddr::new(address, COLLECTOR_PORT);
        let collector = CollectorConfig {
            trusts_unauthenticated: true,
            expected: Expected::Count(self.receivers),
            list_capacity: RollCall::capacity(CONTROL_BYTES, None)?,
            // Of a stream no receiver is asked for a manifest.
            ..CollectorConfig::new(instance, TSI, Hash([0; Hash::SIZE]), collector, self.seed)
        };
        let repair = RepairBy::Stream { waits_for: self.receivers, on_request: true };
        let config = CollectionConfig::new(collector, CONTROL_BYTES);
        let config = CollectionConfig { repair, ..config };
        let sender = sender.ok()?.with_collection(config, Instant::ZERO);
        Some(ProducingSender { sender, stream: self, taken: 0, begins: None })
    }

    /// A receiver of it, which shares its plans with others.
    pub(super) fn receiver(plans: &Arc<PlanCache>) -> Receiver {
        let expectation = Expectation {
            tsi: Some(TSI),
            publisher: Some(publisher().public_key()),
            ..Expectation::default()
        };
        let config = ReceiverConfig::new(expectation, 1_800_000_000);
        let subscription = Subscription::Declared(SubscriptionLimits::default());
        let mut receiver = Receiver::new(config, subscription);
        receiver.share_plans(Arc::clone(plans));
        receiver
    }

    pub(super) fn cap() -> RateCap {
        RateCap {
            bytes_per_second: RATE,
            max_packet_bytes: (CONTROL_BYTES + HEADER_BYTES).into(),
            peak_window: Pacer::PEAK_WINDOW,
        }
    }
}

impl ProducingSender {
    /// When the next fragment is full; `None`: there is none, or the producer has not begun.
    fn due(&self) -> Option<Instant> {
        let made = (self.taken + 1) * self.stream.group;
        let begins = self.begins.filter(|_| made <= self.stream.segments)?;
        Some(begins + LiConfig::SPACING * made)
    }

    /// Gives the sender the fragments that are full, as far as it takes them.
    fn produce(&mut self, now: Instant) {
        if !self.sender.wants_fragment() {
            return;
        }
        self.begins.get_or_insert(now);
        while self.due().is_some_and(|due| due <= now) && self.sender.wants_fragment() {
            if self.sender.push_fragment(self.stream.fragment_bytes(), HASH).is_none() {
                return;
            }
            self.taken += 1;
        }
        if self.due().is_none() {
            self.sender.finish(true);
        }
    }
}

impl Endpoint for ProducingSender {
    type Job = SendJob;
    type Done = SendDone;
    type Event = SenderEvent;

    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        self.sender.handle_datagrams(now, batch);
    }

    fn handle_done(&mut self, now: Instant, done: SendDone) {
        self.sender.handle_done(now, done);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
    }

    fn poll_output(
        &mut self,
        now: Instant,
        header: &mut Vec<u8>,
    ) -> Option<Output<SendJob, SenderEvent>> {
        self.produce(now);
        self.sender.poll_output(now, header).or_else(|| {
            // What it has sent may have made room.
            self.produce(now);
            self.sender.poll_output(now, header)
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.due().filter(|_| self.sender.wants_fragment());
        self.sender.poll_timeout().into_iter().chain(due).min()
    }
}
