//! Sessions of the real sender and receivers on ids, for simulated networks.

use crate::taken::TakenLayers;
use fontana_fec::Esi;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti, PlanCache, Sbn};
use fontana_proto::report::{CollectorConfig, Expected, RateConfig, RepairConfig};
use fontana_proto::{
    Announcement, AnnouncementIntervals, BlockId, ChannelClock, CollectionConfig, ControlObject,
    DecodePolicy, Expectation, Instant, Pacer, Receiver, ReceiverConfig, RepairBy, SendMode,
    SendObject, Sender, SenderConfig, Subscription, SubscriptionLimits, TransmissionSchedule,
};
use fontana_sim::{IdContent, IdRunner, RateCap};
use fontana_wire::{
    CongestionControl, Entry, FileEntry, Hash, InstanceId, LayerRates, Manifest, ManifestObject,
    Metadata, RelativePath, RollCall, Tsi, manifest_hash,
};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

/// TSI of the lab's sessions.
pub(crate) const TSI: Tsi = Tsi(7);
/// Bytes of a roll call with a few repaired blocks, and names.
const ROLL_CALL_BYTES: u16 = 600;
/// The port that senders collect reports on.
const COLLECTOR_PORT: u16 = 40_007;
/// Bytes of a symbol unless a paper says otherwise: as in the program's default packet.
pub(crate) const SYMBOL_BYTES: u16 = 1_400;
/// Headers of a packet: 28 of IP and UDP, and room for those of ALC.
pub(crate) const HEADER_BYTES: u16 = 28 + 64;
/// Senders start when the receivers have joined: a receiver that misses the first head waits for
/// the second one.
pub(crate) const LISTENERS_FIRST: Duration = Duration::from_millis(50);

/// One session: content, rate, order, and how receivers decode.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) content: Arc<IdContent>,
    /// Rate of all channels together, headers included.
    pub(crate) rate_bytes_per_second: u64,
    /// Congestion control in the head. At a fixed rate there is one channel.
    pub(crate) congestion: CongestionControl,
    pub(crate) schedule: TransmissionSchedule,
    pub(crate) policy: DecodePolicy,
    /// The amount that a sender sends.
    pub(crate) mode: SendMode,
    /// Whether roll calls fit a packet, however short symbols are.
    pub(crate) calls: bool,
    /// Symbols of a sender's planning window.
    pub(crate) round_symbols: u32,
    pub(crate) seed: u64,
    /// Plans that all receivers share.
    pub(crate) plans: Arc<PlanCache>,
    /// Whether the staging of receivers is checked, which takes memory for each symbol.
    pub(crate) is_watched: bool,
    /// Whether receivers have the manifest beforehand.
    pub(crate) manifest_is_known: bool,
    /// Intervals of the control packets from one head to the next.
    pub(crate) head_every: u32,
    /// Layers that receivers join; `None`: as congestion control decides.
    pub(crate) taken_layers: Option<TakenLayers>,
    /// Time that the sender computes FEC symbols before it has any symbol to send.
    pub(crate) coding: Duration,
}

impl Session {
    /// A session of these objects on one channel. `None` if no manifest can have them.
    pub(crate) fn new(otis: &[Oti], rate_bytes_per_second: u64, seed: u64) -> Option<Self> {
        Self::of(Self::objects(otis)?, rate_bytes_per_second, seed)
    }

    /// Objects with these parameters, and with distinct hashes of blocks.
    pub(crate) fn objects(otis: &[Oti]) -> Option<Vec<ManifestObject>> {
        let hashes = |toi: u32, blocks: u32| -> Vec<Hash> {
            let name =
                |block: u32| *blake3::hash(&[toi, block].map(u32::to_le_bytes).concat()).as_bytes();
            (0..blocks).map(|block| Hash(name(block))).collect()
        };
        let objects = (1..).zip(otis).map(|(toi, &oti)| {
            let blocks = oti.layout().ok()?.block_count();
            Some(ManifestObject { toi, oti, block_hashes: hashes(toi, blocks) })
        });
        objects.collect()
    }

    /// A session of objects that have hashes.
    pub(crate) fn of(objects: Vec<ManifestObject>, rate: u64, seed: u64) -> Option<Self> {
        let file = |object: &ManifestObject| {
            let path = RelativePath::new(format!("file {}", object.toi)).ok()?;
            let metadata = Metadata { mode: 0o644, ..Metadata::default() };
            let length = object.oti.transfer_length;
            Some(Entry::File(FileEntry::whole_object(path, metadata, object.toi, length)))
        };
        let files = objects.iter().map(file).collect::<Option<_>>()?;
        Some(Self::of_manifest(Manifest::new(1, "lab", objects, files).ok()?, rate, seed))
    }

    /// A session of the objects of a manifest.
    pub(crate) fn of_manifest(manifest: Manifest, rate: u64, seed: u64) -> Self {
        Self {
            content: Arc::new(IdContent::of(&manifest)),
            manifest: Arc::new(manifest),
            rate_bytes_per_second: rate,
            congestion: CongestionControl::FixedRate,
            schedule: TransmissionSchedule::EVEN,
            policy: DecodePolicy::Incremental,
            mode: SendMode::OnDemand,
            calls: false,
            round_symbols: ROUND_SYMBOLS,
            seed,
            plans: Arc::new(PlanCache::new(4)),
            is_watched: false,
            manifest_is_known: false,
            head_every: HEAD_EVERY,
            taken_layers: None,
            coding: Duration::ZERO,
        }
    }

    /// The session with another manifest.
    pub(crate) fn with_manifest(self, manifest: Manifest) -> Self {
        let content = Arc::new(IdContent::of(&manifest));
        Self { manifest: Arc::new(manifest), content, ..self }
    }

    /// A session of one object of `bytes`, in as few blocks of RaptorQ as the program would use.
    pub(crate) fn raptorq(bytes: u64, rate_bytes_per_second: u64, seed: u64) -> Option<Self> {
        let symbols = bytes.div_ceil(SYMBOL_BYTES.into());
        let scheme = FecScheme::RaptorQ(RaptorQ {
            source_blocks: symbols.div_ceil(BLOCK_SYMBOLS).clamp(1, u8::MAX.into()) as u8,
            sub_blocks: 1,
            alignment: 4,
        });
        let oti = Oti { transfer_length: bytes, symbol_size: SYMBOL_BYTES, scheme };
        Self::new(&[oti], rate_bytes_per_second, seed)
    }

    /// The session with this congestion control. Its rate is the sum of the layers.
    pub(crate) fn with_congestion(self, congestion: CongestionControl) -> Self {
        let sum = |layers: &LayerRates| layers.cumulative().last().unwrap_or(0);
        let rate = match &congestion {
            CongestionControl::FixedRate => self.rate_bytes_per_second,
            CongestionControl::FixedLayers(layers) => sum(layers),
            CongestionControl::Rlc(rlc) => sum(&rlc.layers),
            CongestionControl::FlidSl(flid) => sum(&flid.layers),
            CongestionControl::Webrc(webrc) => webrc.rate_bytes_per_second.into(),
        };
        Self { rate_bytes_per_second: rate, congestion, ..self }
    }

    /// `k` of all objects together.
    pub(crate) fn source_symbols(&self) -> u64 {
        let layouts = self.manifest.objects().iter().filter_map(|object| object.oti.layout().ok());
        layouts.map(|layout| layout.total_source_symbols()).sum()
    }

    /// Source blocks of all objects together.
    pub(crate) fn block_count(&self) -> u64 {
        self.manifest.objects().iter().map(|object| object.block_hashes.len() as u64).sum()
    }

    /// All blocks, and the source symbols of each.
    pub(crate) fn blocks(&self) -> Vec<(BlockId, u32)> {
        let mut blocks = Vec::new();
        for object in self.manifest.objects() {
            let Ok(layout) = object.oti.layout() else { continue };
            for sbn in (0..layout.block_count()).map(Sbn) {
                let block = BlockId { toi: object.toi.into(), sbn };
                blocks.extend(layout.source_symbols(sbn).map(|symbols| (block, symbols)));
            }
        }
        blocks
    }

    /// Bytes of the longest symbol of content.
    pub(crate) fn symbol_bytes(&self) -> u16 {
        self.manifest.objects().iter().map(|object| object.oti.symbol_size).max().unwrap_or(0)
    }

    /// Bytes of the longest packet on the wire.
    pub(crate) fn packet_bytes(&self) -> u16 {
        self.symbol_bytes().max(self.control_bytes()) + HEADER_BYTES
    }

    /// Bytes of a symbol of control objects: as of the content, and at least the length of a head.
    fn control_bytes(&self) -> u16 {
        let needed = self.announcement(0, &self.manifest.emit()).head(0).emit(None).len() as u16;
        let needed = if self.calls { needed.max(ROLL_CALL_BYTES) } else { needed };
        // RaptorQ's alignment.
        needed.next_multiple_of(4).max(self.symbol_bytes() / 4 * 4)
    }

    fn announcement<'a>(&self, instance: u128, manifest: &'a [u8]) -> Announcement<'a> {
        Announcement {
            version: self.manifest.version(),
            rate_bytes_per_second: NonZeroU64::new(self.rate_bytes_per_second),
            congestion_control: self.congestion.clone(),
            ..Announcement::of_manifest(InstanceId(instance.to_le_bytes()), manifest)
        }
    }

    fn control_objects(&self, number: u64) -> Option<Vec<ControlObject>> {
        let manifest = self.manifest.emit();
        // Every run of a sender is another instance.
        let announcement = self.announcement(self.seed.wrapping_add(number).into(), &manifest);
        let intervals = AnnouncementIntervals { head: self.head_every, body: MANIFEST_EVERY };
        let objects = announcement.control_objects(self.control_bytes(), None, intervals);
        objects.ok().map(Vec::from)
    }

    /// The `number`th sender of the content; each run of a sender has its own number. Number 0
    /// sends the source symbols first. `None` if the session has no clock or no control objects.
    pub(crate) fn sender(&self, number: u64) -> Option<Sender> {
        let is_layered = self.congestion != CongestionControl::FixedRate;
        let clock = || {
            let (rate, start) = (self.rate_bytes_per_second, Instant::ZERO + LISTENERS_FIRST);
            ChannelClock::new(&self.congestion, rate, self.packet_bytes(), start, self.seed).ok()
        };
        let objects = self.manifest.objects().iter().map(|object| {
            let layout = object.oti.layout().ok()?;
            Some(SendObject { toi: object.toi.into(), layout, source_pass: number == 0 })
        });
        Some(Sender::new(SenderConfig {
            control: self.control_objects(number)?,
            mode: self.mode,
            schedule: self.schedule,
            channels: if is_layered { Some(clock()?) } else { None },
            round_symbols: self.round_symbols,
            ..SenderConfig::new(
                TSI,
                objects.collect::<Option<_>>()?,
                self.rate_bytes_per_second,
                self.seed.wrapping_add(number),
            )
        }))
    }

    /// Where a sender at this address takes reports.
    pub(crate) fn collector(&self, address: IpAddr) -> SocketAddr {
        SocketAddr::new(address, COLLECTOR_PORT)
    }

    /// What the `number`th sender, at this address, does about receivers that report.
    /// It expects so many. `follows`: its rate follows what arrives at them. `rests`: it has no
    /// end, and rests while they lack nothing.
    pub(crate) fn collection(
        &self,
        (number, address): (u64, IpAddr),
        expected: Expected,
        (follows, rests): (bool, bool),
    ) -> Option<CollectionConfig> {
        let symbol_size = self.control_bytes();
        let signs = matches!(expected, Expected::Named(_));
        let instance = u128::from(self.seed.wrapping_add(number));
        let collector = CollectorConfig {
            trusts_unauthenticated: !signs,
            expected,
            list_capacity: RollCall::capacity(symbol_size, None)?,
            max_receivers: if signs { 64 } else { 1 << 10 },
            ..CollectorConfig::new(
                InstanceId(instance.to_le_bytes()),
                TSI,
                manifest_hash(&self.manifest.emit()),
                self.collector(address),
                self.seed,
            )
        };
        let repair = RepairConfig {
            blocks: self.blocks().into_iter().collect(),
            symbols_per_second: self.rate_bytes_per_second as f64 / f64::from(self.packet_bytes()),
            pending_capacity: 8,
            max_receivers: 1 << 10,
            max_age: None,
            trusts_unauthenticated: !signs,
            has_signers: signs,
        };
        let repair = match self.mode {
            SendMode::RepairOnDemand => RepairBy::Rounds(Box::new(repair)),
            _ => RepairBy::Nothing,
        };
        let rate = follows.then(|| RateConfig {
            start: self.rate_bytes_per_second / 8,
            most: self.rate_bytes_per_second,
            least: self.rate_bytes_per_second / 64,
            least_to_finish: self.packet_bytes().into(),
            packet_bytes: self.packet_bytes().into(),
            budget_per_second: 100,
            known: None,
            // Half of the sessions have an automatic rate.
            blind: self.seed.is_multiple_of(2).then_some(self.rate_bytes_per_second),
            max_receivers: 1 << 10,
        });
        let config = CollectionConfig::new(collector, symbol_size);
        Some(CollectionConfig { repair, rate, rests, ..config })
    }

    /// A receiver with these limits.
    pub(crate) fn receiver(&self, limits: SubscriptionLimits) -> Receiver {
        let given = |taken: TakenLayers| Subscription::Given(Box::new(taken.control()));
        self.receiver_on(self.taken_layers.map_or(Subscription::Declared(limits), given))
    }

    /// A receiver with this subscription.
    pub(crate) fn receiver_on(&self, subscription: Subscription) -> Receiver {
        let hash = manifest_hash(&self.manifest.emit());
        let known = self.manifest_is_known.then(|| (hash, Arc::clone(&self.manifest)));
        let config = ReceiverConfig {
            known_manifest: known,
            policy: self.policy,
            ..ReceiverConfig::new(
                Expectation { tsi: Some(TSI), manifest: Some(hash), ..Expectation::default() },
                1_800_000_000,
            )
        };
        let mut receiver = Receiver::new(config, subscription);
        receiver.share_plans(Arc::clone(&self.plans));
        receiver
    }

    pub(crate) fn runner(&self) -> IdRunner {
        let content = Arc::clone(&self.content);
        if self.is_watched { IdRunner::watched(content) } else { IdRunner::new(content) }
    }

    /// A receiver's runner, whose disk has these blocks, and these source symbols of others.
    pub(crate) fn runner_holding(
        &self,
        blocks: &[BlockId],
        parts: &[(BlockId, Vec<Esi>)],
    ) -> IdRunner {
        let content = Arc::clone(&self.content);
        IdRunner::holding(content, blocks.iter().copied()).with_parts(parts.iter().cloned())
    }

    pub(crate) fn cap(&self) -> RateCap {
        RateCap {
            bytes_per_second: self.rate_bytes_per_second,
            max_packet_bytes: self.packet_bytes().into(),
            peak_window: match self.congestion {
                CongestionControl::FixedRate => Pacer::PEAK_WINDOW,
                _ => Duration::ZERO,
            },
        }
    }
}

/// Intervals of the control packets from one head to the next, and from one manifest to the next,
/// as in the program.
const HEAD_EVERY: u32 = 2;
const MANIFEST_EVERY: u32 = 4;
/// Default planning window: 6 MB in packets of the default size.
const ROUND_SYMBOLS: u32 = 4_096;
/// Most symbols of a block, as in the program.
const BLOCK_SYMBOLS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_room_for_its_own_head() {
        for bytes in [1, 500, 100_000_000] {
            let session = Session::raptorq(bytes, 1_000_000, 1).expect("a session");
            assert!(session.sender(0).is_some());
            assert_eq!(session.packet_bytes(), SYMBOL_BYTES + HEADER_BYTES);
        }
        assert!(Session::new(&[], 1, 1).is_some(), "nothing to send is something");
    }
}
