//! An honest session and its hostile neighbor, in virtual time: the endpoints of the product on
//! bytes in memory.

use super::report::{BenchError, MAX_DISK_BYTES};
use fontana::receiver_limits;
use fontana::seal::{GroupKey, PacketOpener, PacketSealer};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Oti, Sbn};
use fontana_proto::memory::{MemoryContent, MemoryReceiveRunner, MemorySendRunner};
use fontana_proto::pull::PulledRun;
use fontana_proto::{
    Announcement, AnnouncementIntervals, BlockId, ChannelId, Datagram, DatagramBatch, Destination,
    Driver, Ecn, Effect, Endpoint, Expectation, Instant, MetadataMode, Port, Receiver,
    ReceiverConfig, ReceiverEvent, SendObject, Sender, SenderConfig, SessionKey, SiteConfig,
    SplitMix64, Subscription, SubscriptionLimits,
};
use fontana_wire::{
    Entry, FileEntry, Hash, InstanceId, Manifest, ManifestLimits, ManifestObject, Metadata,
    RelativePath, SealId, SealMode, SecretKey, SessionSeal, Toi, Tsi, manifest_hash,
};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a symbol of content, and of a control object.
pub(super) const SYMBOL_BYTES: u16 = 1_024;
/// The honest session.
pub(super) const TSI: Tsi = Tsi(7);
/// Where its packets come from.
pub(super) const SENDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 7701);
/// Its object.
pub(super) const CONTENT: Toi = Toi(1);
/// Blocks of the object.
pub(super) const BLOCKS: u8 = 4;
/// Source symbols of each of these.
pub(super) const BLOCK_SYMBOLS: u32 = 350;
/// Empty files with names of 800 bytes.
const LONG_NAMES: u32 = 6;
/// About a packet per millisecond.
const RATE: u64 = 1_250_000;
/// Unix time at which each run begins.
const NOW_UNIX_SECONDS: u64 = 1_800_000_000;
/// Share of the honest packets that are lost: repair symbols are needed.
const LOSS: f64 = 0.05;
/// First packets, which are not lost: those with head and manifest.
const NOT_LOST: u64 = 40;
/// Threads that a receiver has, which its limits depend on.
const WORKERS: usize = 2;
/// Virtual time after which a transfer has failed.
const DEADLINE: Duration = Duration::from_secs(120);

/// The content of a session, its keys and its manifest.
pub(super) struct HonestSession {
    content: Arc<MemoryContent>,
    manifest: Vec<u8>,
    version: u64,
    seed: u64,
    pub(super) publisher: SecretKey,
    pub(super) group: GroupKey,
}

impl HonestSession {
    /// A version of the publisher's content.
    pub(super) fn new(seed: u64, version: u64) -> Result<Self, BenchError> {
        let mut random = SplitMix64::new(seed, version);
        let length = u64::from(BLOCKS) * u64::from(BLOCK_SYMBOLS) * u64::from(SYMBOL_BYTES);
        let scheme = RaptorQ { source_blocks: BLOCKS, sub_blocks: 1, alignment: 4 };
        let scheme = FecScheme::RaptorQ(scheme);
        let oti = Oti { transfer_length: length, symbol_size: SYMBOL_BYTES, scheme };
        let layout = oti.layout().map_err(|_| BenchError("the object has no geometry"))?;
        let bytes = (0..length).map(|_| random.next_u64() as u8).collect();
        let mut content = MemoryContent::default();
        content.insert(CONTENT, layout, bytes);
        let object = content.get(CONTENT).ok_or(BenchError("the object is missing"))?;
        let toi = CONTENT.0 as u32;
        let described = vec![ManifestObject { toi, oti, block_hashes: object.block_hashes() }];
        let manifest = Manifest::new(version, "honest", described, entries(toi, length)?)
            .map_err(|_| BenchError("the honest manifest is invalid"))?;
        let key = |stream| {
            let mut random = SplitMix64::new(seed, stream);
            std::array::from_fn::<u8, 32, _>(|_| random.next_u64() as u8)
        };
        Ok(Self {
            content: Arc::new(content),
            manifest: manifest.emit(),
            version,
            seed,
            publisher: SecretKey::from_seed(&key(101)),
            group: GroupKey::from_bytes(key(102)),
        })
    }

    /// The id in the seals of its packets.
    pub(super) fn seal_id(&self) -> SealId {
        InstanceId([self.version as u8; 16]).into()
    }

    pub(super) fn manifest_hash(&self) -> Hash {
        manifest_hash(&self.manifest)
    }

    pub(super) fn content(&self) -> &MemoryContent {
        &self.content
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// What a ticket of the session pins.
    fn expectation(&self, guard: Guard) -> Expectation {
        let address = (guard == Guard::Address).then(|| SENDER.ip());
        Expectation {
            tsi: Some(TSI),
            sources: address.into_iter().collect(),
            manifest: Some(self.manifest_hash()),
            publisher: Some(self.publisher.public_key()),
            ..Expectation::default()
        }
    }

    pub(super) fn sender(&self, tsi: Tsi, guard: Guard) -> Result<SenderHost, BenchError> {
        let instance = InstanceId([self.version as u8; 16]);
        let announcement = Announcement {
            version: self.version,
            rate_bytes_per_second: NonZeroU64::new(RATE),
            ..Announcement::of_manifest(instance, &self.manifest)
        };
        let intervals = AnnouncementIntervals::default();
        let control = announcement
            .control_objects(SYMBOL_BYTES, Some(&self.publisher), intervals)
            .map_err(|_| BenchError("the session cannot be announced"))?;
        let objects = self.content.objects().map(|(toi, object)| SendObject {
            toi,
            layout: object.layout,
            source_pass: true,
        });
        let session = SessionSeal { id: self.seal_id(), mode: SealMode::Authenticated };
        let seal = (guard == Guard::GroupKey).then_some(session);
        let sender = Sender::new(SenderConfig {
            control: control.into(),
            round_symbols: 2_000,
            seal,
            ..SenderConfig::new(tsi, objects.collect(), RATE, self.seed)
        });
        let runner = MemorySendRunner::new(Arc::clone(&self.content));
        Ok(SenderHost {
            driver: Driver::new(sender, runner),
            sealer: seal.map(|seal| PacketSealer::new(&self.group, seal.id)),
        })
    }

    /// Packets that a sender of this session sends in its first second.
    pub(super) fn record(&self, tsi: Tsi) -> Result<Vec<Vec<u8>>, BenchError> {
        let mut sender = self.sender(tsi, Guard::Open)?;
        let mut packets = Vec::new();
        for millisecond in 0..1_000 {
            sender.poll(at(millisecond), &mut packets)?;
        }
        Ok(packets)
    }

    fn receiver(&self, memory: usize, guard: Guard) -> ReceiverHost {
        let opener = || PacketOpener::new(self.group.clone());
        let opener = (guard == Guard::GroupKey).then(opener);
        ReceiverHost::new(self.expectation(guard), MetadataMode::Manifest, memory, opener)
    }

    /// A receiver that knows the manifest, and hears no session.
    pub(super) fn member(
        &self,
        memory: usize,
        site: SiteConfig,
    ) -> Result<ReceiverHost, BenchError> {
        let manifest = Manifest::parse(&self.manifest, &ManifestLimits::default())
            .map_err(|_| BenchError("the honest manifest is invalid"))?;
        let mut host = self.receiver(memory, Guard::Open).with_site(site);
        host.handle_timeout(at(0))?;
        let key = SessionKey { source: SENDER.ip(), tsi: TSI };
        let accepted =
            host.driver.endpoint.accept_manifest(key, self.manifest_hash(), &Arc::new(manifest));
        accepted.map_err(|_| BenchError("the honest manifest is not accepted"))?;
        host.poll(at(0), &DatagramBatch::EMPTY)?;
        Ok(host)
    }

    pub(super) fn has_arrived(&self, receiver: &ReceiverHost) -> bool {
        self.content.objects().all(|(toi, object)| {
            (0..object.layout.block_count())
                .map(Sbn)
                .all(|sbn| receiver.driver.runner.block(BlockId { toi, sbn }) == object.block(sbn))
        })
    }

    /// Sends the content to one receiver until it is complete.
    pub(super) fn transfer(
        &self,
        memory: usize,
        guard: Guard,
        neighbor: &mut dyn Neighbor,
    ) -> Result<Transfer, BenchError> {
        let mut sender = self.sender(TSI, guard)?;
        let mut receiver = self.receiver(memory, guard);
        let mut losses = SplitMix64::new(self.seed, 103);
        let (mut sent, mut hostile) = (0, 0);
        let mut datagrams = Vec::new();
        receiver.handle_timeout(at(0))?;
        let milliseconds = DEADLINE.as_millis() as u64;
        for millisecond in 0..milliseconds {
            let now = at(millisecond);
            sender.poll(now, &mut datagrams)?;
            for mut datagram in datagrams.drain(..) {
                for _ in 0..neighbor.count_before(sent) {
                    hostile += neighbor.make().deliver(now, &mut sender, &mut receiver)?;
                }
                neighbor.observe(&datagram);
                sent += 1;
                let is_lost =
                    (losses.next_u64() as f64) < LOSS * u64::MAX as f64 && sent > NOT_LOST;
                if !is_lost {
                    receiver.handle_datagram(now, SENDER, &mut datagram)?;
                }
                if receiver.is_complete {
                    let is_exact = self.has_arrived(&receiver);
                    return Ok(receiver.transfer(sent, hostile, is_exact));
                }
            }
            receiver.handle_timeout(now)?;
        }
        Ok(receiver.transfer(sent, hostile, false))
    }
}

/// The file, and empty ones with long names: the manifest has several symbols.
fn entries(toi: u32, length: u64) -> Result<Vec<Entry>, BenchError> {
    let path = |name: String| RelativePath::new(name).map_err(|_| BenchError("a name is none"));
    let metadata = Metadata { mode: 0o644, ..Metadata::default() };
    let mut entries = Vec::new();
    for number in 0..LONG_NAMES {
        let path = path(vec![format!("{number:0200}"); 4].join("/"))?;
        entries.push(Entry::File(FileEntry { path, metadata, segments: Vec::new() }));
    }
    let file = FileEntry::whole_object(path("file".to_owned())?, metadata, toi, length);
    entries.push(Entry::File(file));
    Ok(entries)
}

/// What protects a session beside the manifest's hash and the publisher's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Open,
    /// The ticket names the sender's address.
    Address,
    GroupKey,
}

/// A transfer that has ended.
pub(super) struct Transfer {
    /// Packets of the honest sender.
    pub(super) sent: u64,
    /// Packets of its neighbor.
    pub(super) hostile: u64,
    /// The receiver reported completion, and has every byte.
    pub(super) is_exact: bool,
    pub(super) log_bytes: u64,
    pub(super) disk: DiskUse,
}

/// Bytes that symbols took on the disk that arrived before the manifest.
#[derive(Clone, Copy, Default)]
pub(super) struct DiskUse {
    pub(super) most: u64,
    /// At the end.
    pub(super) left: u64,
}

/// A host that sends to the same receiver.
pub(super) trait Neighbor {
    /// How often its packets arrive before the honest sender's packet with this number.
    fn count_before(&mut self, number: u64) -> u64;
    /// The next ones.
    fn make(&mut self) -> HostilePackets;
    /// An honest packet that the neighbor receives too.
    fn observe(&mut self, datagram: &[u8]);
}

/// No neighbor.
pub(super) struct Alone;

impl Neighbor for Alone {
    fn count_before(&mut self, _number: u64) -> u64 {
        0
    }

    fn make(&mut self) -> HostilePackets {
        HostilePackets::Feedback(Vec::new())
    }

    fn observe(&mut self, _datagram: &[u8]) {}
}

/// Packets of a hostile host.
pub(super) enum HostilePackets {
    One {
        from: SocketAddr,
        bytes: Vec<u8>,
    },
    /// Several datagrams that the kernel has coalesced into one buffer.
    Batch {
        slab: Vec<u8>,
        datagrams: Vec<Datagram>,
    },
    /// A datagram to the sender.
    Feedback(Vec<u8>),
}

impl HostilePackets {
    /// Returns the number of packets.
    fn deliver(
        self,
        now: Instant,
        sender: &mut SenderHost,
        receiver: &mut ReceiverHost,
    ) -> Result<u64, BenchError> {
        match self {
            Self::One { from, mut bytes } => {
                receiver.handle_datagram(now, from, &mut bytes)?;
                Ok(1)
            }
            Self::Batch { slab, datagrams } => {
                let batch = DatagramBatch { slab: &slab, datagrams: &datagrams };
                receiver.handle_batch(now, &batch)?;
                Ok(datagrams.len() as u64)
            }
            Self::Feedback(bytes) => {
                let datagram = datagram(SENDER, 0..bytes.len() as u32);
                sender
                    .driver
                    .endpoint
                    .handle_datagrams(now, &DatagramBatch::one(&bytes, &datagram));
                Ok(1)
            }
        }
    }
}

/// A sender of content in memory.
pub(super) struct SenderHost {
    driver: Driver<Sender, MemorySendRunner>,
    sealer: Option<PacketSealer>,
}

impl SenderHost {
    /// Appends the datagrams that are sent at `now`.
    fn poll(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> Result<(), BenchError> {
        if self.driver.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.driver.endpoint.handle_timeout(now);
        }
        while let Some(effect) = self.driver.poll(now, &DatagramBatch::EMPTY).map_err(BenchError)? {
            let Effect::Transmit { symbol, .. } = effect else { continue };
            let mut datagram = self.driver.header().to_vec();
            if let Some(symbol) = symbol {
                self.driver.runner.write_symbol(&symbol, &mut datagram);
            }
            if let Some(sealer) = &self.sealer {
                sealer.seal(&mut datagram);
            }
            out.push(datagram);
        }
        Ok(())
    }
}

/// A receiver whose disk is in memory.
pub(super) struct ReceiverHost {
    driver: Driver<Receiver, MemoryReceiveRunner>,
    opener: Option<PacketOpener>,
    is_joined: bool,
    is_complete: bool,
    /// The manifest that it has accepted.
    pub(super) is_accepted: bool,
    /// Bytes of its events, as text.
    pub(super) log_bytes: u64,
    /// What it has sent to its site.
    pub(super) sent: Vec<Vec<u8>>,
    disk: DiskUse,
}

impl ReceiverHost {
    pub(super) fn new(
        expectation: Expectation,
        metadata: MetadataMode,
        memory: usize,
        opener: Option<PacketOpener>,
    ) -> Self {
        let mut limits = receiver_limits(metadata, memory, WORKERS);
        limits.max_spilled_bytes = limits.max_spilled_bytes.min(MAX_DISK_BYTES);
        let config = ReceiverConfig {
            metadata,
            limits,
            ..ReceiverConfig::new(expectation, NOW_UNIX_SECONDS)
        };
        let subscription = Subscription::Declared(SubscriptionLimits::default());
        Self::of(Receiver::new(config, subscription), opener)
    }

    fn of(receiver: Receiver, opener: Option<PacketOpener>) -> Self {
        Self {
            driver: Driver::new(receiver, MemoryReceiveRunner::default()),
            opener,
            is_joined: false,
            is_complete: false,
            is_accepted: false,
            log_bytes: 0,
            sent: Vec::new(),
            disk: DiskUse::default(),
        }
    }

    /// What it has done until now.
    fn transfer(&self, sent: u64, hostile: u64, is_exact: bool) -> Transfer {
        Transfer { sent, hostile, is_exact, log_bytes: self.log_bytes, disk: self.disk }
    }

    /// A receiver that has heard nothing, and shares.
    pub(super) fn with_site(self, config: SiteConfig) -> Self {
        Self::of(self.driver.endpoint.with_site(config), self.opener)
    }

    /// Handles a message of another receiver.
    pub(super) fn handle_message(
        &mut self,
        now: Instant,
        from: IpAddr,
        message: &[u8],
    ) -> Result<(), BenchError> {
        let datagram = datagram((from, 0).into(), 0..message.len() as u32);
        let batch = Datagram { port: Port::Site, ..datagram };
        let batch = DatagramBatch::one(message, &batch);
        self.driver.endpoint.handle_datagrams(now, &batch);
        self.poll(now, &batch)
    }

    /// Handles a datagram, unless its seal is missing or wrong.
    pub(super) fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        bytes: &mut [u8],
    ) -> Result<(), BenchError> {
        if self.opener.as_mut().is_some_and(|opener| !opener.open(0, bytes)) {
            return Ok(());
        }
        let datagram = datagram(from, 0..bytes.len() as u32);
        self.handle_batch(now, &DatagramBatch::one(bytes, &datagram))
    }

    fn handle_batch(&mut self, now: Instant, batch: &DatagramBatch<'_>) -> Result<(), BenchError> {
        if !self.is_joined {
            return Ok(());
        }
        self.driver.endpoint.handle_datagrams(now, batch);
        self.poll(now, batch)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> Result<(), BenchError> {
        if self.driver.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.driver.endpoint.handle_timeout(now);
        }
        self.poll(now, &DatagramBatch::EMPTY)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes a symbol as that of a mirror.
    pub(super) fn pull(
        &mut self,
        now: Instant,
        block: BlockId,
        first: Esi,
        symbol: &[u8],
    ) -> Result<(), BenchError> {
        let run = PulledRun { block, first, bytes: 0..symbol.len() as u32 };
        self.driver.endpoint.handle_pulled(now, &run, symbol);
        self.poll(now, &DatagramBatch { slab: symbol, datagrams: &[] })
    }

    /// Does what the receiver says.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        batch: &DatagramBatch<'_>,
    ) -> Result<(), BenchError> {
        while let Some(effect) = self.driver.poll(now, batch).map_err(BenchError)? {
            match effect {
                Effect::Transmit { to: Destination::Site, symbol } => {
                    let mut message = self.driver.header().to_vec();
                    if let Some(symbol) = symbol {
                        self.driver.runner.write_symbol(&symbol, &mut message);
                    }
                    self.sent.push(message);
                }
                Effect::Transmit { .. } => return Err(BenchError("a receiver sends a packet")),
                Effect::Join(channel) => self.is_joined |= channel == ChannelId::BASE,
                Effect::Leave(channel) => self.is_joined &= channel != ChannelId::BASE,
                Effect::Later { ticket, .. } => self.driver.handle_finished(now, ticket),
                Effect::Event(event) => {
                    let mut length = TextLength(0);
                    let _ = write!(length, "{event:?}");
                    self.log_bytes += length.0;
                    self.is_complete |= matches!(event, ReceiverEvent::Complete);
                    self.is_accepted |= matches!(event, ReceiverEvent::Accepted { .. });
                }
            }
        }
        let left = self.driver.runner.spilled_bytes();
        self.disk = DiskUse { most: self.disk.most.max(left), left };
        Ok(())
    }
}

/// Counts the bytes of a text.
struct TextLength(u64);

impl Write for TextLength {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len() as u64;
        Ok(())
    }
}

/// A datagram of a slab.
pub(super) fn datagram(from: SocketAddr, payload: std::ops::Range<u32>) -> Datagram {
    Datagram { from, port: Port::BASE, ecn: Ecn::NotEct, dropped_before: 0, payload }
}

/// A time in milliseconds.
pub(super) fn at(millisecond: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millisecond)
}
