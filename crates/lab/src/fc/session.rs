//! A file as the paper's tool sends it: in one object or cut into many, Reed-Solomon in blocks of 32,
//! on six layers under RLC with the constants of the library MCL.

use crate::bytes::Originals;
use fontana_fec::{FecScheme, Oti, ReedSolomonCode};
use fontana_proto::{
    Acceptance, ChannelClock, ControlObject, DecodePolicy, Expectation, FixedChannels, Instant,
    MetadataMode, Receiver, ReceiverConfig, ReceiverLimits, SendMode, SendObject, Sender,
    SenderConfig, SplitMix64, Subscription, SubscriptionLimits, TransmissionSchedule, presets,
};
use fontana_sim::{IdContent, RateCap};
use fontana_wire::{
    CongestionControl, ContentKind, Entry, FileEntry, Hash, InstanceId, LayerRates, Manifest,
    ManifestObject, Metadata, ObjectRef, RelativePath, Segment, SessionHead, Toi, Tsi,
    manifest_hash,
};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a symbol (section 4.3).
pub(crate) const SYMBOL_BYTES: u16 = 512;
/// `n/k` of all experiments: "three FEC layers".
pub(crate) const STRETCH: u32 = 4;
/// Rates of the layers, in that of the lowest: each as many as all below it.
pub(crate) const LAYERS: [u32; 6] = [1, 1, 2, 4, 8, 16];
/// Headers of a packet: 28 of IP and UDP, and room for those of ALC.
const HEADER_BYTES: u16 = 28 + 64;
const TSI: Tsi = Tsi(4411);
/// The sender begins when the receiver has joined: in push mode receivers are there first (section
/// 1.2).
pub(crate) const LISTENERS_FIRST: Duration = Duration::from_millis(50);

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) bytes: u64,
    /// Of an object: the whole file, or a fragment of it.
    pub(crate) object_bytes: u64,
    /// `k`.
    pub(crate) block_symbols: u16,
}

/// A session of one file.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) content: Arc<IdContent>,
    pub(crate) schedule: TransmissionSchedule,
    pub(crate) policy: DecodePolicy,
    /// Layers that the receiver takes from the beginning; `None`: as many as congestion control allows.
    layers: Option<u8>,
    pub(crate) seed: u64,
    congestion: CongestionControl,
    rate_bytes_per_second: u64,
}

impl Session {
    /// On layers of which the lowest sends `base_packets` a second. `None` if the file is none that a
    /// session could carry.
    pub(crate) fn new(
        file: File,
        base_packets: u32,
        schedule: TransmissionSchedule,
        policy: DecodePolicy,
        seed: u64,
    ) -> Option<Self> {
        let manifest = Arc::new(manifest(file.objects()?)?);
        let base = base_packets * u32::from(packet_bytes());
        let layers = LayerRates::listed(LAYERS.map(|rate| rate * base).to_vec()).ok()?;
        Some(Self {
            content: Arc::new(IdContent::of(&manifest)),
            manifest,
            schedule,
            policy,
            layers: None,
            seed,
            rate_bytes_per_second: layers.total(),
            congestion: CongestionControl::Rlc(presets::rlc_mcl(layers)),
        })
    }

    /// The same, of which the receiver takes so many layers from the beginning.
    pub(crate) fn with_layers(self, layers: u8) -> Self {
        Self { layers: Some(layers), ..self }
    }

    /// The same of bytes that are there, and not only spoken of.
    pub(crate) fn on_bytes(self) -> Option<(Self, Arc<Originals>)> {
        let otis: Vec<_> = self.manifest.objects().iter().map(|object| object.oti).collect();
        let mut random = SplitMix64::new(self.seed, 0);
        let (originals, objects) = Originals::draw(&otis, &mut random)?;
        let manifest = Arc::new(manifest(objects)?);
        let content = Arc::new(IdContent::of(&manifest));
        Some((Self { manifest, content, ..self }, Arc::new(originals)))
    }

    pub(crate) fn source_symbols(&self) -> u64 {
        let layouts = self.manifest.objects().iter().filter_map(|object| object.oti.layout().ok());
        layouts.map(|layout| layout.total_source_symbols()).sum()
    }

    pub(crate) fn sender(&self) -> Option<Sender> {
        let objects = self.manifest.objects().iter().map(|object| {
            let layout = object.oti.layout().ok()?;
            Some(SendObject { toi: object.toi.into(), layout, source_pass: true })
        });
        let start = Instant::ZERO + LISTENERS_FIRST;
        let (rate, packet) = (self.rate_bytes_per_second, packet_bytes());
        let clock = ChannelClock::new(&self.congestion, rate, packet, start, self.seed).ok()?;
        Some(Sender::new(SenderConfig {
            tsi: TSI,
            objects: objects.collect::<Option<_>>()?,
            control: self.control()?,
            mode: SendMode::OnDemand,
            schedule: self.schedule,
            channels: Some(clock),
            rate_bytes_per_second: rate,
            packet_overhead: 28,
            // 2 MB of them.
            round_symbols: 4_096,
            sequence_in_cci: true,
            fti_in_packets: false,
            seed: self.seed,
        }))
    }

    /// A receiver that knows what will come, as FCAST's does from the objects themselves.
    pub(crate) fn receiver(&self) -> Receiver {
        let hash = manifest_hash(&self.manifest.emit());
        let config = ReceiverConfig {
            expectation: Expectation { tsi: Some(TSI), ..Expectation::default() },
            acceptance: Acceptance::Automatic,
            metadata: MetadataMode::Manifest,
            known_manifest: Some((hash, Arc::clone(&self.manifest))),
            policy: self.policy,
            limits: ReceiverLimits::default(),
            started_at_unix_seconds: 0,
            silence_after: Duration::from_secs(30),
        };
        // The paper's receivers have no circuit breaker.
        let limits = SubscriptionLimits { breaker: None, ..SubscriptionLimits::default() };
        let given = |layers| Subscription::Given(Box::new(FixedChannels::new(layers)));
        Receiver::new(config, self.layers.map_or(Subscription::Declared(limits), given))
    }

    pub(crate) fn cap(&self) -> RateCap {
        RateCap {
            bytes_per_second: self.rate_bytes_per_second,
            max_packet_bytes: packet_bytes().into(),
        }
    }

    fn control(&self) -> Option<Vec<ControlObject>> {
        let manifest = self.manifest.emit();
        let head = SessionHead {
            instance: InstanceId(u128::from(self.seed).to_le_bytes()),
            manifest_version: self.manifest.version(),
            kind: ContentKind::Manifest,
            manifest: ObjectRef {
                toi: Toi::MANIFEST.0 as u32,
                oti: control_oti(manifest.len()),
                hash: manifest_hash(&manifest),
            },
            expires_unix_seconds: 0,
            rate_bytes_per_second: self.rate_bytes_per_second,
            congestion_control: self.congestion.clone(),
        };
        let mut head = head.emit(None);
        head.resize(SYMBOL_BYTES.into(), 0);
        let object = |toi, bytes: &[u8], intervals| {
            ControlObject::new(toi, control_oti(bytes.len()), bytes, None, intervals).ok()
        };
        Some(vec![object(Toi::HEAD, &head, 1)?, object(Toi::MANIFEST, &manifest, 4)?])
    }
}

impl File {
    /// Blocks are told apart by their hashes, whatever these are.
    fn objects(self) -> Option<Vec<ManifestObject>> {
        let code = ReedSolomonCode::Rfc5510;
        let scheme = FecScheme::ReedSolomon {
            code,
            max_source_block_length: self.block_symbols,
            max_encoding_symbols: code
                .max_encoding_symbols()
                .min(self.block_symbols.saturating_mul(STRETCH as u16)),
        };
        let mut objects = Vec::new();
        let mut left = self.bytes;
        for toi in 1.. {
            let length = left.min(self.object_bytes.max(1));
            if length == 0 {
                break;
            }
            left -= length;
            let oti = Oti { transfer_length: length, symbol_size: SYMBOL_BYTES, scheme };
            let hash = |sbn: u32| {
                Hash(*blake3::hash(&[toi, sbn].map(u32::to_le_bytes).concat()).as_bytes())
            };
            let block_hashes = (0..oti.layout().ok()?.block_count()).map(hash).collect();
            objects.push(ManifestObject { toi, oti, block_hashes });
        }
        Some(objects)
    }
}

/// One file, of these objects end to end.
fn manifest(objects: Vec<ManifestObject>) -> Option<Manifest> {
    let extent = |object: &ManifestObject| {
        let length = object.oti.transfer_length;
        Segment::Extent { toi: object.toi, object_offset: 0, length }
    };
    let segments = objects.iter().map(extent).collect();
    let path = RelativePath::new("file").ok()?;
    let metadata = Metadata { mode: 0o644, ..Metadata::default() };
    let file = Entry::File(FileEntry { path, metadata, segments });
    Manifest::new(1, "fcast", objects, vec![file]).ok()
}

/// Bytes of a packet on the wire.
const fn packet_bytes() -> u16 {
    SYMBOL_BYTES + HEADER_BYTES
}

/// A head is one packet, the same each time.
fn control_oti(length: usize) -> Oti {
    let scheme = if length <= SYMBOL_BYTES.into() {
        FecScheme::NoCode { max_source_block_length: 1 }
    } else {
        FecScheme::RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 }
    };
    Oti { transfer_length: length as u64, symbol_size: SYMBOL_BYTES, scheme }
}
