//! A world of one sender, or several, and receivers, in virtual time: every job runs at once,
//! on bytes in memory. The endpoints are the real ones.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, ObjectLayout, Oti, Sbn};
use fontana_proto::memory::{MemoryContent, MemoryReceiveRunner, MemorySendRunner};
use fontana_proto::{
    Acceptance, Announcement, AnnouncementIntervals, Category, ChannelClock, ChannelId, Committed,
    Datagram, DatagramBatch, DecodePolicy, Destination, Ecn, Endpoint, Expectation, Finished,
    Instant, JobError, JobRunner, MetadataMode, Opening, Output, ReceiveDone, ReceiveJob, Receiver,
    ReceiverConfig, ReceiverEvent, ReceiverLimits, Scope, SendDone, SendJob, SendMode, SendObject,
    Sender, SenderConfig, SenderEvent, SplitMix64, Subscription, SubscriptionControl,
    SubscriptionLimits, TransmissionSchedule,
};
use fontana_wire::{
    BlockHasher, CongestionControl, ContentKind, Entry, FileEntry, Hash, InstanceId, LayerRates,
    Manifest, ManifestObject, Metadata, RelativePath, SecretKey, StreamIndex, Toi, Tsi,
    manifest_hash,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub const T: u16 = 64;
pub const TSI: Tsi = Tsi(7);
/// Bytes on the wire of a packet of content: headers of IP, UDP and LCT, payload id, symbol.
pub const PACKET_BYTES: u16 = 28 + 24 + T;
/// Wall time at which every run begins.
pub const NOW_UNIX: u64 = 1_800_000_000;
/// Symbols of control objects: long enough for a signed head.
const CONTROL_T: u16 = 256;

pub fn source(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))
}

pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed, 1);
    (0..bytes).map(|_| random.next_u64() as u8).collect()
}

/// A disk that fails.
pub fn disk_error() -> JobError {
    JobError::new(Category::Io, Arc::new(std::io::Error::other("the disk failed")))
}

/// What is sent.
#[derive(Clone)]
pub struct Content {
    pub objects: BTreeMap<Toi, (ObjectLayout, Arc<Vec<u8>>)>,
    pub manifest: Arc<Manifest>,
    pub manifest_bytes: Arc<Vec<u8>>,
}

impl Content {
    /// One object of so many blocks for each entry of `shapes`: (bytes, blocks).
    pub fn new(shapes: &[(usize, u8)], seed: u64) -> Self {
        Self::versioned(shapes, seed, 1)
    }

    pub fn versioned(shapes: &[(usize, u8)], seed: u64, version: u64) -> Self {
        Self::coded(shapes, seed, version, &|blocks, _| {
            FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 4 })
        })
    }

    /// With the scheme that is made of an object's blocks and source symbols.
    pub fn coded(
        shapes: &[(usize, u8)],
        seed: u64,
        version: u64,
        scheme: &dyn Fn(u8, u32) -> FecScheme,
    ) -> Self {
        let mut objects = BTreeMap::new();
        let (mut described, mut entries) = (Vec::new(), Vec::new());
        for (index, &(bytes, blocks)) in shapes.iter().enumerate() {
            let toi = index as u32 + 1;
            let data = noise(bytes, seed + u64::from(toi));
            let scheme = scheme(blocks, bytes.div_ceil(T.into()) as u32);
            let oti = Oti { transfer_length: bytes as u64, symbol_size: T, scheme };
            let layout = oti.layout().unwrap();
            let block_hashes = (0..layout.block_count())
                .map(|sbn| {
                    let range = layout.block_range(Sbn(sbn)).unwrap();
                    hash(&data[range.start as usize..range.end as usize])
                })
                .collect();
            described.push(ManifestObject { toi, oti, block_hashes });
            let path = RelativePath::new(format!("file {toi}")).unwrap();
            let metadata = Metadata { mode: 0o644, ..Metadata::default() };
            let file = FileEntry::whole_object(path, metadata, toi, bytes as u64);
            entries.push(Entry::File(file));
            objects.insert(Toi::from(toi), (layout, Arc::new(data)));
        }
        let manifest = Manifest::new(version, "test", described, entries).unwrap();
        let manifest_bytes = Arc::new(manifest.emit());
        Self { objects, manifest: Arc::new(manifest), manifest_bytes }
    }

    pub fn hash(&self) -> Hash {
        manifest_hash(&self.manifest_bytes)
    }

    /// Of the first object.
    pub fn scheme(&self) -> FecScheme {
        self.objects.values().next().unwrap().0.oti().scheme
    }

    pub fn source_symbols(&self) -> u64 {
        self.objects.values().map(|(layout, _)| layout.total_source_symbols()).sum()
    }
}

pub fn hash(bytes: &[u8]) -> Hash {
    let mut hasher = BlockHasher::new();
    hasher.update(bytes);
    hasher.finalize()
}

/// How a sender of some content is set up; the rest is the same for all tests.
#[derive(Clone)]
pub struct Setup {
    pub tsi: Tsi,
    pub mode: SendMode,
    pub schedule: TransmissionSchedule,
    pub rate: u64,
    /// Rates of the layers, if there are several.
    pub layers: Vec<u64>,
    /// Another congestion control than constant rates.
    pub congestion: Option<CongestionControl>,
    pub round_symbols: u32,
    pub source_pass: bool,
    pub seed: u64,
    pub expires: u64,
    pub head: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            tsi: TSI,
            mode: SendMode::OnDemand,
            schedule: TransmissionSchedule::EVEN,
            rate: 1_000_000,
            layers: Vec::new(),
            congestion: None,
            round_symbols: 500,
            source_pass: true,
            seed: 1,
            expires: 0,
            head: true,
        }
    }
}

impl Setup {
    /// Layers of rates 1, 1, 2, 4, ..., which together have the rate.
    pub fn layered(self, count: u32) -> Self {
        let base = self.rate >> (count - 1);
        let layers = (0..count).map(|layer| base << layer.saturating_sub(1)).collect();
        Self { layers, ..self }
    }

    fn congestion(&self) -> CongestionControl {
        if let Some(congestion) = &self.congestion {
            return congestion.clone();
        }
        if self.layers.is_empty() {
            return CongestionControl::FixedRate;
        }
        let rates = self.layers.iter().map(|&rate| rate as u32).collect();
        CongestionControl::FixedLayers(LayerRates::listed(rates).unwrap())
    }

    fn clock(&self) -> Option<ChannelClock> {
        let clock = || {
            let control = self.congestion();
            ChannelClock::new(&control, self.rate, PACKET_BYTES, Instant::ZERO, self.seed).unwrap()
        };
        (self.congestion() != CongestionControl::FixedRate).then(clock)
    }
}

pub fn sender(content: &Content, setup: &Setup, signer: Option<&SecretKey>) -> Sender {
    let announcement = Announcement {
        instance: InstanceId([setup.seed as u8; 16]),
        version: content.manifest.version(),
        kind: ContentKind::Manifest,
        body: &content.manifest_bytes,
        expires_unix_seconds: NonZeroU64::new(setup.expires),
        rate_bytes_per_second: NonZeroU64::new(setup.rate),
        congestion_control: setup.congestion(),
    };
    let intervals = AnnouncementIntervals { head: 2, body: 4 };
    let control = announcement.control_objects(CONTROL_T, signer, intervals).unwrap();
    Sender::new(SenderConfig {
        tsi: setup.tsi,
        objects: content
            .objects
            .iter()
            .map(|(&toi, (layout, _))| SendObject {
                toi,
                layout: *layout,
                source_pass: setup.source_pass,
            })
            .collect(),
        control: if setup.head { control.into() } else { Vec::new() },
        mode: setup.mode,
        schedule: setup.schedule,
        rate_bytes_per_second: setup.rate,
        channels: setup.clock(),
        packet_overhead: 28,
        round_symbols: setup.round_symbols,
        sequence_in_cci: true,
        fti_in_packets: false,
        seed: setup.seed,
    })
}

/// Drives a sender: runs its jobs at once, collects datagrams.
pub struct SenderDriver {
    pub sender: Sender,
    runner: MemorySendRunner,
    pub events: Vec<SenderEvent>,
    /// Objects whose source fails from now on.
    pub failing: Vec<Toi>,
    pub most_batches: usize,
    /// When it sends its first packet.
    pub starts_at: Instant,
}

impl SenderDriver {
    pub fn new(sender: Sender, content: &Content) -> Self {
        let mut memory = MemoryContent::default();
        for (&toi, (layout, bytes)) in &content.objects {
            memory.insert(toi, *layout, bytes.to_vec());
        }
        Self {
            sender,
            runner: MemorySendRunner::new(memory),
            events: Vec::new(),
            failing: Vec::new(),
            most_batches: 0,
            starts_at: Instant::ZERO,
        }
    }

    /// Everything that may leave at `now`, on whatever channel.
    pub fn poll(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.poll_channels(now).into_iter().map(|(_, datagram)| datagram).collect()
    }

    /// Everything that may leave at `now`.
    pub fn poll_channels(&mut self, now: Instant) -> Vec<(ChannelId, Vec<u8>)> {
        if now < self.starts_at {
            return Vec::new();
        }
        if self.sender.poll_timeout().is_some_and(|due| due <= now) {
            self.sender.handle_timeout(now);
        }
        let mut datagrams = Vec::new();
        loop {
            let mut jobs = Vec::new();
            let mut header = Vec::new();
            while let Some(output) = self.sender.poll_output(now, &mut header) {
                match output {
                    Output::Transmit { to: Destination::Channel(channel), symbol } => {
                        let mut datagram = std::mem::take(&mut header);
                        if let Some(symbol) = symbol {
                            self.runner.write_symbol(&symbol, &mut datagram);
                        }
                        datagrams.push((channel, datagram));
                    }
                    Output::Job(job) => jobs.push(job),
                    Output::Event(event) => self.events.push(event),
                    Output::Join(_) | Output::Leave(_) => panic!("a sender joins nothing"),
                }
            }
            if jobs.is_empty() {
                return datagrams;
            }
            for job in jobs {
                let done = match job {
                    SendJob::Prepare { batch, block, .. } if self.failing.contains(&block.toi) => {
                        Some(SendDone::Failed { batch, error: disk_error() })
                    }
                    job => finished(self.runner.run(now, job, &DatagramBatch::EMPTY)),
                };
                if let Some(done) = done {
                    self.sender.handle_done(now, done);
                }
                self.most_batches = self.most_batches.max(self.runner.batch_count());
            }
        }
    }
}

/// The answer of a runner, which comes at once.
fn finished<Done>(result: Result<Option<Finished<Done>>, &'static str>) -> Option<Done> {
    result.unwrap().map(|finished| finished.done)
}

/// A datagram of a slab.
pub fn datagram(source: IpAddr, channel: ChannelId, payload: Range<u32>) -> Datagram {
    let from = SocketAddr::new(source, 7701);
    Datagram { from, channel, ecn: Ecn::NotEct, dropped_before: 0, payload }
}

/// Drives a receiver: runs its jobs on bytes in memory.
pub struct ReceiverDriver {
    pub receiver: Receiver,
    runner: MemoryReceiveRunner,
    pub events: Vec<ReceiverEvent>,
    pub joined: Vec<ChannelId>,
    pub complete_at: Option<Instant>,
    pub loss: f64,
    pub random: SplitMix64,
    pub joins_at: Instant,
    /// Packets of the session that earlier runs received.
    saved_packets: u64,
    /// Whether this run has opened anything.
    has_opened: bool,
    /// What is left when everything is committed fails.
    pub cannot_finish: bool,
    /// Objects that it has no use for.
    pub left_out: Vec<Toi>,
    /// Attempts to solve are put aside instead of being made.
    pub solver_is_slow: bool,
    pub put_aside: Vec<ReceiveJob>,
    /// Fragments that wait for those before them, and what was handed over.
    waiting: BTreeSet<u32>,
    pub handed_over: Vec<u8>,
    pub fragments_handed_over: u32,
    handed: Vec<ReceiveDone>,
    /// The consumer of a stream takes nothing.
    pub consumer_is_stalled: bool,
    /// Slots of a stream that are taken, by which fragment.
    slots: BTreeMap<u32, u32>,
}

pub fn receiver_config() -> ReceiverConfig {
    ReceiverConfig {
        expectation: Expectation { tsi: Some(TSI), ..Expectation::default() },
        acceptance: Acceptance::Automatic,
        metadata: MetadataMode::Manifest,
        known_manifest: None,
        policy: DecodePolicy::Incremental,
        limits: ReceiverLimits::default(),
        started_at_unix_seconds: NOW_UNIX,
        silence_after: Duration::from_secs(10),
    }
}

impl ReceiverDriver {
    pub fn new(config: ReceiverConfig, loss: f64, seed: u64) -> Self {
        // Losses of any height for any time are what these worlds are made of.
        let limits = SubscriptionLimits { breaker: None, ..SubscriptionLimits::default() };
        Self::subscribed(config, Subscription::Declared(limits), loss, seed)
    }

    /// Joined to what a control says.
    pub fn controlled(
        config: ReceiverConfig,
        control: impl SubscriptionControl + 'static,
        loss: f64,
        seed: u64,
    ) -> Self {
        Self::subscribed(config, Subscription::Given(Box::new(control)), loss, seed)
    }

    pub fn subscribed(
        config: ReceiverConfig,
        subscription: Subscription,
        loss: f64,
        seed: u64,
    ) -> Self {
        Self {
            receiver: Receiver::new(config, subscription),
            runner: MemoryReceiveRunner::default(),
            events: Vec::new(),
            joined: Vec::new(),
            complete_at: None,
            loss,
            random: SplitMix64::new(seed, 99),
            joins_at: Instant::ZERO,
            saved_packets: 0,
            has_opened: false,
            cannot_finish: false,
            left_out: Vec::new(),
            solver_is_slow: false,
            put_aside: Vec::new(),
            waiting: BTreeSet::new(),
            handed_over: Vec::new(),
            fragments_handed_over: 0,
            handed: Vec::new(),
            consumer_is_stalled: false,
            slots: BTreeMap::new(),
        }
    }

    pub fn hear(&mut self, now: Instant, source: IpAddr, payload: &[u8]) {
        self.hear_on(now, source, ChannelId::BASE, payload);
    }

    pub fn hear_on(&mut self, now: Instant, source: IpAddr, channel: ChannelId, payload: &[u8]) {
        let datagram = datagram(source, channel, 0..payload.len() as u32);
        self.receiver.handle_datagrams(now, &DatagramBatch::one(payload, &datagram));
        self.poll(now, payload);
    }

    /// Hears the datagram unless it is lost on the way.
    pub fn maybe_hear(&mut self, now: Instant, source: IpAddr, payload: &[u8]) {
        self.maybe_hear_on(now, source, ChannelId::BASE, payload);
    }

    /// The same, on a channel: not if it is not joined.
    pub fn maybe_hear_on(
        &mut self,
        now: Instant,
        source: IpAddr,
        channel: ChannelId,
        payload: &[u8],
    ) {
        if !self.joined.contains(&channel) {
            return;
        }
        let lost = (self.random.next_u64() as f64) < self.loss * u64::MAX as f64;
        if now >= self.joins_at && !lost {
            self.hear_on(now, source, channel, payload);
        }
    }

    pub fn timeout(&mut self, now: Instant) {
        if self.receiver.poll_timeout().is_some_and(|due| due <= now) {
            self.receiver.handle_timeout(now);
        }
        self.poll(now, &[]);
    }

    pub fn poll(&mut self, now: Instant, current: &[u8]) {
        loop {
            let mut jobs = Vec::new();
            while let Some(output) = self.receiver.poll_output(now, &mut Vec::new()) {
                match output {
                    Output::Transmit { .. } => panic!("receivers send nothing"),
                    Output::Job(job) => jobs.push(job),
                    Output::Join(channel) => self.joined.push(channel),
                    Output::Leave(channel) => {
                        assert!(self.joined.contains(&channel), "left what was not joined");
                        self.joined.retain(|&joined| joined != channel);
                    }
                    Output::Event(event) => {
                        if matches!(event, ReceiverEvent::Complete) {
                            self.complete_at = Some(now);
                        }
                        self.events.push(event);
                    }
                }
            }
            self.hand_over();
            let handed = std::mem::take(&mut self.handed);
            if jobs.is_empty() && handed.is_empty() {
                return;
            }
            for done in handed {
                self.receiver.handle_done(now, done);
            }
            for job in jobs {
                if let Some(done) = self.work(now, job, current) {
                    self.receiver.handle_done(now, done);
                }
            }
        }
    }

    fn work(&mut self, now: Instant, job: ReceiveJob, current: &[u8]) -> Option<ReceiveDone> {
        match job {
            job @ ReceiveJob::Solve { .. } if self.solver_is_slow => {
                self.put_aside.push(job);
                return None;
            }
            ReceiveJob::Commit { toi } if !self.slots.is_empty() => {
                self.waiting.extend(StreamIndex::number(toi));
                return None;
            }
            ReceiveJob::Finish if self.cannot_finish => {
                return Some(ReceiveDone::Failed { scope: Scope::Session, error: disk_error() });
            }
            ReceiveJob::Open(Opening::Fragment {
                number,
                layout,
                slot,
                slot_count,
                slot_length,
            }) => {
                let length = layout.oti().transfer_length;
                assert!(slot < slot_count && length <= u64::from(slot_length));
                assert_eq!(self.slots.insert(slot, number), None, "the slot is taken");
            }
            _ => {}
        }
        let slab = datagram(source(1), ChannelId::BASE, 0..current.len() as u32);
        let mut done = finished(self.runner.run(now, job, &DatagramBatch::one(current, &slab)));
        if let Some(ReceiveDone::Opened { saved, .. }) = &mut done {
            self.receiver.deselect(self.left_out.iter().copied());
            saved.session_packets = self.saved_packets;
            self.has_opened = true;
        }
        done
    }

    /// Hands the fragments over whose turn it is.
    fn hand_over(&mut self) {
        while !self.consumer_is_stalled && self.waiting.remove(&self.fragments_handed_over) {
            let toi = StreamIndex::toi(self.fragments_handed_over);
            self.handed_over.extend(self.object(toi));
            self.runner.remove(toi);
            self.slots.retain(|_, number| *number != self.fragments_handed_over);
            self.fragments_handed_over += 1;
            self.handed.push(ReceiveDone::Committed(Committed::Content { toi }));
        }
    }

    /// Fragments of a stream that are held.
    pub fn held(&self) -> usize {
        self.slots.len()
    }

    /// Another run, with the bytes that this one saved.
    pub fn restarted(self, config: ReceiverConfig, seed: u64) -> Self {
        let mut next = Self::new(config, self.loss, seed);
        next.runner = self.runner.restarted();
        let packets = self.receiver.stats().session_packets;
        next.saved_packets = if self.has_opened { packets } else { self.saved_packets };
        next
    }

    /// Changes a bit of what was saved.
    pub fn damage_one_symbol(&mut self) {
        self.runner.saved_bytes_mut().next().unwrap()[0] ^= 1;
    }

    /// Objects that were committed, in all runs.
    pub fn committed(&self) -> &[Toi] {
        self.runner.committed()
    }

    /// The objects as they were received.
    pub fn object(&self, toi: Toi) -> Vec<u8> {
        self.runner.object(toi)
    }

    pub fn has(&self, content: &Content) -> bool {
        content.objects.iter().all(|(&toi, (_, data))| self.object(toi) == **data)
    }

    /// All packets of the session until everything was heard, over the source symbols.
    pub fn inefficiency(&self) -> f64 {
        self.receiver.stats().session_packets as f64 / self.receiver.source_symbols() as f64
    }
}

/// Runs senders (each with its own address) and receivers until all receivers are complete, or
/// `limit`. A millisecond at a time.
pub fn run(senders: &mut [SenderDriver], receivers: &mut [ReceiverDriver], limit: Duration) {
    let mut now = Instant::ZERO;
    for receiver in receivers.iter_mut() {
        receiver.timeout(now);
    }
    while now < Instant::ZERO + limit && receivers.iter().any(|r| r.complete_at.is_none()) {
        for (index, sender) in senders.iter_mut().enumerate() {
            for (channel, datagram) in sender.poll_channels(now) {
                for receiver in receivers.iter_mut() {
                    receiver.maybe_hear_on(now, source(index as u8 + 1), channel, &datagram);
                }
            }
        }
        now = now + Duration::from_millis(1);
        for receiver in receivers.iter_mut() {
            receiver.timeout(now);
        }
    }
}
