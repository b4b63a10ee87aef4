//! What a world's senders send, and how they are set up.

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, ObjectLayout, Oti, Sbn};
use fontana_proto::{
    Announcement, AnnouncementIntervals, BlockId, ChannelClock, DigestSigner, Instant, Pacer,
    SendMode, SendObject, Sender, SenderConfig, SplitMix64, TransmissionSchedule,
};
use fontana_wire::{
    BlockHasher, CongestionControl, ContentKind, DigestKey, DigestList, Entry, FileEntry,
    GroupNumber, Hash, InstanceId, LayerRates, Manifest, ManifestObject, Metadata, RelativePath,
    SecretKey, Toi, Tsi, manifest_hash,
};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

pub const T: u16 = 64;
pub const TSI: Tsi = Tsi(7);
/// Bytes on the wire of a packet of content: headers of IP, UDP and LCT, payload id, symbol.
pub const PACKET_BYTES: u16 = 28 + 24 + T;
/// Wall time at which every run begins.
pub const NOW_UNIX: u64 = 1_800_000_000;
/// Symbols of control objects: long enough for a signed head.
const CONTROL_T: u16 = 256;

pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed, 1);
    (0..bytes).map(|_| random.next_u64() as u8).collect()
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
        Self::sized(T, shapes, seed, version, scheme)
    }

    /// With symbols of so many bytes.
    pub fn sized(
        symbol_size: u16,
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
            let scheme = scheme(blocks, bytes.div_ceil(symbol_size.into()) as u32);
            let oti = Oti { transfer_length: bytes as u64, symbol_size, scheme };
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

    /// The same with so many more names of 1 000 bytes in the manifest.
    pub fn with_long_names(mut self, count: usize) -> Self {
        let name = |number: usize| {
            let directory = format!("{number:0250}");
            RelativePath::new(vec![directory; 4].join("/")).unwrap()
        };
        let file = |number| {
            let metadata = Metadata { mode: 0o644, ..Metadata::default() };
            Entry::File(FileEntry { path: name(number), metadata, segments: Vec::new() })
        };
        let mut entries: Vec<_> = (0..count).map(file).collect();
        entries.extend(self.manifest.entries().iter().cloned());
        let objects = self.manifest.objects().to_vec();
        let manifest = Manifest::new(1, "test", objects, entries).unwrap();
        self.manifest_bytes = Arc::new(manifest.emit());
        self.manifest = Arc::new(manifest);
        self
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
    /// Blocks that are sent before all others.
    pub first: Vec<BlockId>,
    pub opening_permille: u32,
    pub seed: u64,
    pub expires: u64,
    pub head: bool,
    /// Bytes of the symbols of control objects.
    pub control_symbol: u16,
    /// The symbols are announced by signed digests.
    pub digests: bool,
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
            first: Vec::new(),
            opening_permille: 0,
            seed: 1,
            expires: 0,
            head: true,
            control_symbol: CONTROL_T,
            digests: false,
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
    let instance = InstanceId([setup.seed as u8; 16]);
    let digests = setup.digests.then(|| digest_signer(instance));
    let records = fontana_wire::HeadRecords::default();
    let announcement = Announcement {
        version: content.manifest.version(),
        expires_unix_seconds: NonZeroU64::new(setup.expires),
        rate_bytes_per_second: NonZeroU64::new(setup.rate),
        congestion_control: setup.congestion(),
        records: match &digests {
            Some(signer) => DigestKey(signer.key.public_key()).add_to(&records).unwrap(),
            None => records,
        },
        ..Announcement::of_manifest(instance, &content.manifest_bytes)
    };
    let intervals = AnnouncementIntervals::default();
    let control = announcement.control_objects(setup.control_symbol, signer, intervals).unwrap();
    let sender = Sender::new(SenderConfig {
        first: (!setup.first.is_empty()).then(|| setup.first.clone()),
        control: if setup.head { control.into() } else { Vec::new() },
        mode: setup.mode,
        schedule: setup.schedule,
        channels: setup.clock(),
        round_symbols: setup.round_symbols,
        opening_permille: setup.opening_permille,
        ..SenderConfig::new(
            setup.tsi,
            content
                .objects
                .iter()
                .map(|(&toi, (layout, _))| SendObject {
                    toi,
                    layout: *layout,
                    source_pass: setup.source_pass,
                })
                .collect(),
            setup.rate,
            setup.seed,
        )
    });
    match digests {
        Some(signer) => sender.with_digests(signer).unwrap(),
        None => sender,
    }
}

/// The key of a run's lists, which are as long as they may be.
pub fn digest_signer(instance: InstanceId) -> DigestSigner {
    let key = SecretKey::from_seed(&instance.0.repeat(2).try_into().unwrap());
    let (max_bytes, first_group) = (DigestList::MAX_SIZE as u16, GroupNumber::default());
    DigestSigner { instance, key, max_bytes, first_group }
}
