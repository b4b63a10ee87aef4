//! A world of one sender, or several, and receivers, in virtual time: every job runs at once,
//! on bytes in memory. The endpoints and their drivers are the real ones.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used, clippy::panic)]

mod content;
mod files;

pub use content::{
    Content, NOW_UNIX, PACKET_BYTES, Setup, T, TSI, digest_signer, hash, noise, sender,
};

pub use files::{PlainFiles, md5_of};

use fontana_fec::Esi;
use fontana_proto::memory::{MemoryContent, MemoryReceiveRunner, MemorySendRunner};
use fontana_proto::pull::PulledRun;
use fontana_proto::report::Reporter;
use fontana_proto::{
    Acceptance, BlockId, Category, ChannelId, Committed, Datagram, DatagramBatch, DecodePolicy,
    Destination, Driver, Ecn, Effect, Ending, Endpoint, Expectation, Finished, Instant, JobError,
    JobRunner, MetadataMode, Opening, Port, ReceiveDone, ReceiveJob, Receiver, ReceiverConfig,
    ReceiverEvent, ReceiverLimits, Scope, SendDone, SendJob, Sender, SenderEvent, SiteConfig,
    SplitMix64, Subscription, SubscriptionControl, SubscriptionLimits,
};
use fontana_wire::{
    CarouselInstance, Compound, CompoundHeader, Hash, ReceiverState, StreamIndex, Toi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::time::Duration;

pub fn source(n: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))
}

/// A disk that fails.
pub fn disk_error() -> JobError {
    JobError::new(Category::Io, Arc::new(std::io::Error::other("the disk failed")))
}

/// A sender with its content in memory, and what it reported.
pub struct SenderDriver {
    driver: Driver<Sender, SendRunner>,
    pub events: Vec<SenderEvent>,
    /// When it sends its first packet.
    pub starts_at: Instant,
}

/// Runs a sender's jobs at once.
pub struct SendRunner {
    memory: MemorySendRunner,
    /// Objects whose source fails from now on.
    pub failing: Vec<Toi>,
    /// Blocks that fail alone.
    pub failing_alone: Vec<BlockId>,
    pub most_batches: usize,
}

impl JobRunner<SendJob> for SendRunner {
    type Done = SendDone;
    type Error = &'static str;

    fn run(
        &mut self,
        now: Instant,
        job: SendJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, &'static str> {
        if let SendJob::Prepare { batch, block, .. } = &job {
            let is_alone = self.failing_alone.contains(block);
            if is_alone || self.failing.contains(&block.toi) {
                let failed = SendDone::Failed { batch: *batch, is_alone, error: disk_error() };
                return Ok(Some(Finished::now(failed)));
            }
        }
        let finished = self.memory.run(now, job, batch);
        self.most_batches = self.most_batches.max(self.memory.batch_count());
        finished
    }
}

impl Deref for SenderDriver {
    type Target = Driver<Sender, SendRunner>;

    fn deref(&self) -> &Self::Target {
        &self.driver
    }
}

impl DerefMut for SenderDriver {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.driver
    }
}

impl SenderDriver {
    pub fn new(sender: Sender, content: &Content) -> Self {
        Self::running(sender, content, |runner| runner)
    }

    /// Of a sender that announces its symbols.
    pub fn with_digests(sender: Sender, content: &Content) -> Self {
        Self::running(sender, content, MemorySendRunner::with_digests)
    }

    fn running(
        sender: Sender,
        content: &Content,
        runner: impl FnOnce(MemorySendRunner) -> MemorySendRunner,
    ) -> Self {
        let mut memory = MemoryContent::default();
        for (&toi, (layout, bytes)) in &content.objects {
            memory.insert(toi, *layout, bytes.to_vec());
        }
        let memory = runner(MemorySendRunner::new(memory));
        let (failing, failing_alone) = Default::default();
        let runner = SendRunner { memory, failing, failing_alone, most_batches: 0 };
        let driver = Driver::new(sender, runner);
        Self { driver, events: Vec::new(), starts_at: Instant::ZERO }
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
        if self.driver.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.driver.endpoint.handle_timeout(now);
        }
        let mut datagrams = Vec::new();
        while let Some(effect) = self.driver.poll(now, &DatagramBatch::EMPTY).unwrap() {
            match effect {
                Effect::Transmit { to: Destination::Channel(channel), symbol } => {
                    let mut datagram = self.driver.header().to_vec();
                    if let Some(symbol) = symbol {
                        self.driver.runner.memory.write_symbol(&symbol, &mut datagram);
                    }
                    datagrams.push((channel, datagram));
                }
                Effect::Event(event) => self.events.push(event),
                Effect::Transmit { to, .. } => panic!("a sender sends to {to:?}"),
                Effect::Join(_) | Effect::Leave(_) => panic!("a sender joins nothing"),
                Effect::Later { .. } => panic!("its jobs take no time"),
            }
        }
        datagrams
    }
}

/// A datagram of a slab.
pub fn datagram(source: IpAddr, channel: ChannelId, payload: Range<u32>) -> Datagram {
    let from = SocketAddr::new(source, 7701);
    Datagram { from, port: Port::Channel(channel), ecn: Ecn::NotEct, dropped_before: 0, payload }
}

/// A receiver whose disk is in memory, and what it reported.
pub struct ReceiverDriver {
    driver: Driver<Receiver, ReceiveRunner>,
    pub events: Vec<ReceiverEvent>,
    pub joined: Vec<ChannelId>,
    pub complete_at: Option<Instant>,
    manifest: Option<Hash>,
    pub loss: f64,
    pub random: SplitMix64,
    pub joins_at: Instant,
    /// Objects that it has no use for.
    pub left_out: Vec<Toi>,
    /// What it has sent: to its sender if it reports, to its site if it shares.
    pub sent: Vec<(Destination, Vec<u8>)>,
}

/// Runs a receiver's jobs at once, unless a test wants something else.
#[derive(Default)]
pub struct ReceiveRunner {
    memory: MemoryReceiveRunner,
    /// Packets of the session that earlier runs received.
    saved_packets: u64,
    /// Whether this run has opened anything.
    has_opened: bool,
    /// What is left when everything is committed fails.
    pub cannot_finish: bool,
    /// Recoveries of this object fail.
    pub cannot_recover: Option<Toi>,
    /// Attempts to solve are put aside instead of being made.
    pub solver_is_slow: bool,
    pub put_aside: Vec<ReceiveJob>,
    /// Fragments that wait for those before them, and what was handed over.
    waiting: BTreeSet<u32>,
    pub handed_over: Vec<u8>,
    pub fragments_handed_over: u32,
    /// The consumer of a stream takes nothing.
    pub consumer_is_stalled: bool,
    /// Slots of a stream that are taken, by which fragment.
    slots: BTreeMap<u32, u32>,
    /// Objects may be descriptors of FCAST carousels.
    pub reads_descriptors: bool,
    /// The files of plain FLUTE.
    pub files: PlainFiles,
    /// From which offset on the file beside the memory has no room.
    pub spill_ends: Option<u64>,
    /// Most bytes that this file has had.
    pub most_spilled: u64,
}

impl JobRunner<ReceiveJob> for ReceiveRunner {
    type Done = ReceiveDone;
    type Error = &'static str;

    fn run(
        &mut self,
        now: Instant,
        job: ReceiveJob,
        batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<ReceiveDone>>, &'static str> {
        match &job {
            ReceiveJob::Solve { .. } if self.solver_is_slow => {
                self.put_aside.push(job);
                return Ok(None);
            }
            ReceiveJob::Recover { block, .. } if self.cannot_recover == Some(block.toi) => {
                let scope = Scope::Object(block.toi);
                let failed = ReceiveDone::Failed { scope, error: disk_error() };
                return Ok(Some(Finished::now(failed)));
            }
            ReceiveJob::Commit { toi } if !self.slots.is_empty() => {
                self.waiting.extend(StreamIndex::number(*toi));
                return Ok(None);
            }
            ReceiveJob::Finish if self.cannot_finish => {
                let error = disk_error();
                let failed = ReceiveDone::Failed { scope: Scope::Session, error };
                return Ok(Some(Finished::now(failed)));
            }
            ReceiveJob::Open(opening) => {
                self.files.open(opening);
                self.take_slot(opening);
            }
            ReceiveJob::Commit { toi } if self.files.opened.contains_key(toi) => {
                let object = self.memory.object(*toi);
                let committed = self.files.commit(*toi, object);
                self.memory.remove(*toi);
                if let Err(done) = committed {
                    return Ok(Some(Finished::now(done)));
                }
            }
            ReceiveJob::Drop { toi } => self.files.drop_object(*toi),
            &ReceiveJob::Spill { offset, .. }
                if self.spill_ends.is_some_and(|end| offset >= end) =>
            {
                return Ok(Some(Finished::now(ReceiveDone::SpillRefused { offset })));
            }
            ReceiveJob::Expire(expired) => self.files.expired.push(expired.clone()),
            ReceiveJob::Commit { toi } if self.reads_descriptors => {
                if let Some(done) = self.read_descriptor(*toi) {
                    return Ok(Some(Finished::now(done)));
                }
            }
            _ => {}
        }
        let mut finished = self.memory.run(now, job, batch)?;
        self.most_spilled = self.most_spilled.max(self.memory.spilled_bytes());
        if let Some(Finished { done: ReceiveDone::Opened { saved, .. }, after }) = &mut finished {
            saved.session_packets = self.saved_packets;
            self.has_opened = true;
            // The driver of the test selects objects before the receiver gets the answer.
            *after = Duration::from_nanos(1);
        }
        Ok(finished)
    }
}

impl ReceiveRunner {
    /// The answer for a descriptor of a carousel.
    fn read_descriptor(&self, toi: Toi) -> Option<ReceiveDone> {
        let object = self.memory.object(toi);
        let compound = Compound::parse(&object).ok()?;
        let CompoundHeader::Descriptor(metadata) = &compound.header else { return None };
        let instance = CarouselInstance::parse(metadata, &object[compound.data_offset..]).ok()?;
        Some(ReceiveDone::Committed(Committed::Descriptor { toi, instance }))
    }

    fn take_slot(&mut self, opening: &Opening) {
        if let Opening::Fragment { number, layout, slot, slot_count, slot_length } = opening {
            let length = layout.oti().transfer_length;
            assert!(slot < slot_count && length <= u64::from(*slot_length));
            assert_eq!(self.slots.insert(*slot, *number), None, "the slot is taken");
        }
    }

    /// Hands the fragments over whose turn it is.
    fn hand_over(&mut self) -> Vec<ReceiveDone> {
        let mut handed = Vec::new();
        while !self.consumer_is_stalled && self.waiting.remove(&self.fragments_handed_over) {
            let toi = StreamIndex::toi(self.fragments_handed_over);
            self.handed_over.extend(self.memory.object(toi));
            self.memory.remove(toi);
            self.slots.retain(|_, number| *number != self.fragments_handed_over);
            self.fragments_handed_over += 1;
            handed.push(ReceiveDone::Committed(Committed::Content { toi }));
        }
        handed
    }

    /// Fragments of a stream that are held.
    pub fn held(&self) -> usize {
        self.slots.len()
    }

    /// A symbol that was placed, of a block that is not verified yet.
    pub fn placed(&self, block: BlockId, esi: Esi) -> Option<Vec<u8>> {
        self.memory.placed(block, esi).map(<[u8]>::to_vec)
    }

    /// Bytes of the file beside the memory.
    pub fn spilled_bytes(&self) -> u64 {
        self.memory.spilled_bytes()
    }

    /// Changes a bit of what was saved.
    pub fn damage_one_symbol(&mut self) {
        self.memory.saved_bytes_mut().next().unwrap()[0] ^= 1;
    }
}

impl Deref for ReceiverDriver {
    type Target = Driver<Receiver, ReceiveRunner>;

    fn deref(&self) -> &Self::Target {
        &self.driver
    }
}

impl DerefMut for ReceiverDriver {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.driver
    }
}

pub fn receiver_config() -> ReceiverConfig {
    ReceiverConfig {
        stays_until_verified: true,
        ..ReceiverConfig::new(Expectation { tsi: Some(TSI), ..Expectation::default() }, NOW_UNIX)
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
        Self::of(Receiver::new(config, subscription), loss, seed)
    }

    fn of(receiver: Receiver, loss: f64, seed: u64) -> Self {
        Self {
            driver: Driver::new(receiver, ReceiveRunner::default()),
            events: Vec::new(),
            joined: Vec::new(),
            complete_at: None,
            manifest: None,
            loss,
            random: SplitMix64::new(seed, 99),
            joins_at: Instant::ZERO,
            left_out: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// A receiver that has heard nothing, and shares.
    pub fn with_site(self, config: SiteConfig) -> Self {
        let Self { driver, loss, .. } = self;
        Self::of(driver.endpoint.with_site(config), loss, 0)
    }

    /// A receiver that has heard nothing, and reports.
    pub fn with_reports(self, reporter: Reporter) -> Self {
        let Self { driver, loss, random, .. } = self;
        Self { random, ..Self::of(driver.endpoint.with_reports(reporter), loss, 0) }
    }

    pub fn hear(&mut self, now: Instant, source: IpAddr, payload: &[u8]) {
        self.hear_on(now, source, ChannelId::BASE, payload);
    }

    pub fn hear_on(&mut self, now: Instant, source: IpAddr, channel: ChannelId, payload: &[u8]) {
        self.hear_datagram(now, &datagram(source, channel, 0..payload.len() as u32), payload);
    }

    /// Hears a datagram of this address and port, unless it has left.
    pub fn maybe_hear_from(&mut self, now: Instant, from: SocketAddr, payload: &[u8]) {
        if self.joined.contains(&ChannelId::BASE) {
            let datagram = datagram(from.ip(), ChannelId::BASE, 0..payload.len() as u32);
            self.hear_datagram(now, &Datagram { from, ..datagram }, payload);
        }
    }

    fn hear_datagram(&mut self, now: Instant, datagram: &Datagram, payload: &[u8]) {
        let batch = DatagramBatch::one(payload, datagram);
        self.driver.endpoint.handle_datagrams(now, &batch);
        self.poll_batch(now, &batch);
    }

    /// Takes symbols that were pulled. Returns how many were of use.
    pub fn pull(&mut self, now: Instant, block: BlockId, first: u32, symbols: &[u8]) -> u64 {
        let run = PulledRun { block, first: Esi(first), bytes: 0..symbols.len() as u32 };
        let pulled = self.driver.endpoint.handle_pulled(now, &run, symbols);
        self.poll_batch(now, &DatagramBatch { slab: symbols, datagrams: &[] });
        pulled.fresh_count()
    }

    /// Hears a message of another receiver of its site.
    pub fn hear_site(&mut self, now: Instant, from: SocketAddr, message: &[u8]) {
        let datagram = datagram(from.ip(), ChannelId::BASE, 0..message.len() as u32);
        self.hear_datagram(now, &Datagram { from, port: Port::Site, ..datagram }, message);
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
        if self.driver.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.driver.endpoint.handle_timeout(now);
        }
        self.poll(now);
    }

    pub fn poll(&mut self, now: Instant) {
        self.poll_batch(now, &DatagramBatch::EMPTY);
    }

    fn poll_batch(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        loop {
            while let Some(effect) = self.driver.poll(now, batch).unwrap() {
                self.apply(now, effect);
            }
            let handed = self.driver.runner.hand_over();
            if handed.is_empty() {
                return;
            }
            for done in handed {
                self.driver.endpoint.handle_done(now, done);
            }
        }
    }

    fn apply(&mut self, now: Instant, effect: Effect<ReceiverEvent>) {
        match effect {
            Effect::Transmit { to, symbol } => {
                let mut datagram = self.driver.header().to_vec();
                if let Some(symbol) = symbol {
                    self.driver.runner.memory.write_symbol(&symbol, &mut datagram);
                }
                self.sent.push((to, datagram));
            }
            Effect::Join(channel) => self.joined.push(channel),
            Effect::Leave(channel) => {
                assert!(self.joined.contains(&channel), "left what was not joined");
                self.joined.retain(|&joined| joined != channel);
            }
            Effect::Event(event) => {
                if let ReceiverEvent::Accepted { hash, .. } = &event {
                    self.manifest = Some(*hash);
                }
                if matches!(event, ReceiverEvent::Complete) {
                    self.complete_at = Some(now);
                    let stream = self.driver.endpoint.stream_instance();
                    let content = stream.map(ReceiverState::whole_stream).or(self.manifest);
                    if let Some(manifest) = content {
                        let state = ReceiverState::Complete { manifest };
                        let ending = Ending { state, shares: true, latest: None };
                        self.driver.endpoint.end(now, ending);
                    }
                }
                self.events.push(event);
            }
            Effect::Later { ticket, .. } => {
                self.driver.endpoint.deselect(self.left_out.iter().copied());
                self.driver.handle_finished(now, ticket);
            }
        }
    }

    /// Another run, with the bytes that this one saved.
    pub fn restarted(self, config: ReceiverConfig, seed: u64) -> Self {
        let mut next = Self::new(config, self.loss, seed);
        let Driver { endpoint, runner, .. } = self.driver;
        let packets = endpoint.stats().session_packets;
        next.driver.runner = ReceiveRunner {
            memory: runner.memory.restarted(),
            saved_packets: if runner.has_opened { packets } else { runner.saved_packets },
            ..ReceiveRunner::default()
        };
        next
    }

    /// Objects that were committed, in all runs.
    pub fn committed(&self) -> &[Toi] {
        self.runner.memory.committed()
    }

    /// The objects as they were received.
    pub fn object(&self, toi: Toi) -> Vec<u8> {
        self.runner.memory.object(toi)
    }

    pub fn has(&self, content: &Content) -> bool {
        content.objects.iter().all(|(&toi, (_, data))| self.object(toi) == **data)
    }

    /// All packets of the session until everything was heard, over the source symbols.
    pub fn inefficiency(&self) -> f64 {
        self.endpoint.stats().session_packets as f64 / self.endpoint.source_symbols() as f64
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
