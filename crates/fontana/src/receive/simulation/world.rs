//! What is sent to a simulated receiver, and the attacker beside the sender.

use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{EncodingId, FecScheme, Oti};
use fontana_proto::memory::{MemoryContent, MemorySendRunner};
use fontana_proto::{
    Announcement, AnnouncementIntervals, BlockId, DatagramBatch, Driver, Effect, Endpoint, Instant,
    SendObject, Sender, SenderConfig, SplitMix64,
};
use fontana_testing::noise;
use fontana_wire::{
    Entry, FileEntry, Hash, InstanceId, Manifest, ManifestObject, Metadata, Packet, RelativePath,
    Segment, Toi, Tsi, manifest_hash,
};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a symbol of the control objects.
const CONTROL_SYMBOL: u16 = 512;
/// Bytes per second, unless a test sets another rate: a few packets of a short object at a time.
const RATE: u64 = 2_000_000;

/// An object of the content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) bytes: usize,
    pub(super) symbol_size: u16,
    pub(super) scheme: FecScheme,
    /// Files that share the object, in equal parts.
    pub(super) files: usize,
}

/// The content, and how it is sent.
#[derive(Debug)]
pub(super) struct World {
    content: Arc<MemoryContent>,
    pub(super) manifest: Arc<Manifest>,
    manifest_bytes: Vec<u8>,
    /// The bytes of each file, by its path.
    files: BTreeMap<String, Vec<u8>>,
    /// Bytes per second that the sender sends.
    pub(super) rate: u64,
    recorded: Option<Arc<Vec<Vec<Vec<u8>>>>>,
    /// Share of the datagrams that are lost, in 1/256.
    pub(super) loss: u32,
    /// Share of the blocks that an attacker sends wrong symbols of, in 1/256.
    pub(super) forging: u32,
    /// Number of senders: each has an address and other repair symbols.
    pub(super) senders: u8,
}

impl Shape {
    /// A short object of a code that has repair symbols, or of one that has none.
    fn draw(random: &mut SplitMix64) -> Self {
        let symbol_size = [64, 200, 512][random.below(3) as usize];
        let blocks = 1 + random.below(4) as u8;
        let k = 4 + random.below(16);
        let bytes = usize::from(symbol_size) * (k * u32::from(blocks)) as usize;
        let bytes = bytes - random.below(u32::from(symbol_size)) as usize;
        let reed_solomon = |more| {
            FecScheme::ReedSolomon(ReedSolomon {
                code: ReedSolomonCode::Rfc5510,
                max_source_block_length: k as u16,
                max_encoding_symbols: (k + more) as u16,
            })
        };
        let scheme = match random.below(8) {
            0..3 => {
                FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 4 })
            }
            // Too few symbols for a search: a wrong block is received again.
            3..6 => reed_solomon(1 + random.below(2)),
            6 => reed_solomon(8),
            _ => FecScheme::NoCode(NoCode { max_source_block_length: k }),
        };
        Self { bytes, symbol_size, scheme, files: 1 }
    }
}

impl World {
    /// A world of a few short objects, losses, and perhaps an attacker.
    pub(super) fn draw(random: &mut SplitMix64) -> Self {
        let shapes: Vec<_> = (0..1 + random.below(3)).map(|_| Shape::draw(random)).collect();
        let loss = [0, 20, 80][random.below(3) as usize];
        let forging = [0, 80, 200][random.below(3) as usize];
        Self { loss, forging, ..Self::new(&shapes, random.next_u64()) }
    }

    /// A world without losses and attackers.
    pub(super) fn new(shapes: &[Shape], seed: u64) -> Self {
        let mut content = MemoryContent::default();
        let (mut objects, mut entries) = (Vec::new(), Vec::new());
        let mut files = BTreeMap::new();
        for (shape, toi) in shapes.iter().zip(1..) {
            let Shape { bytes, symbol_size, scheme, .. } = *shape;
            let oti = Oti { transfer_length: bytes as u64, symbol_size, scheme };
            let data = noise(bytes, seed.wrapping_add(u64::from(toi)));
            content.insert(Toi::from(toi), oti.layout().unwrap(), data.clone());
            let block_hashes = content.get(Toi::from(toi)).unwrap().block_hashes();
            objects.push(ManifestObject { toi, oti, block_hashes });
            for (number, part) in data.chunks(bytes.div_ceil(shape.files)).enumerate() {
                let path = match (toi, number) {
                    (2, 0) => format!("folder/file {toi}"),
                    (_, 0) => format!("file {toi}"),
                    _ => format!("file {toi} {number}"),
                };
                let name = RelativePath::new(path.clone()).unwrap();
                let metadata = Metadata { mode: 0o644, ..Metadata::default() };
                let object_offset = (number * bytes.div_ceil(shape.files)) as u64;
                let length = part.len() as u64;
                let segments = vec![Segment::Extent { toi, object_offset, length }];
                entries.push(Entry::File(FileEntry { path: name, metadata, segments }));
                files.insert(path, part.to_vec());
            }
        }
        let manifest = Arc::new(Manifest::new(1, "", objects, entries).unwrap());
        let manifest_bytes = manifest.emit();
        let content = Arc::new(content);
        Self {
            content,
            manifest,
            manifest_bytes,
            files,
            rate: RATE,
            recorded: None,
            loss: 0,
            forging: 0,
            senders: 1,
        }
    }

    pub(super) fn hash(&self) -> Hash {
        manifest_hash(&self.manifest_bytes)
    }

    /// Sends the same packets to each receiver: those of the first milliseconds, again and again.
    pub(super) fn record(&mut self, milliseconds: u64) {
        let mut sender = self.sender(1);
        let times = (1..=milliseconds).map(|at| Instant::ZERO + Duration::from_millis(at));
        let packets = times.map(|now| send(&mut sender, now)).collect();
        self.recorded = Some(Arc::new(packets));
    }

    /// What each sender sends to a receiver.
    pub(super) fn transmissions(&self, seed: u64) -> Vec<Transmission> {
        let transmission = |sender: u8| match &self.recorded {
            Some(packets) => Transmission::Recorded { packets: Arc::clone(packets), next: 0 },
            None => Transmission::Live(Box::new(self.sender(seed.wrapping_add(sender.into())))),
        };
        (0..self.senders).map(transmission).collect()
    }

    /// A sender that repeats everything.
    fn sender(&self, seed: u64) -> Driver<Sender, MemorySendRunner> {
        let announcement = Announcement {
            version: self.manifest.version(),
            rate_bytes_per_second: NonZeroU64::new(self.rate),
            ..Announcement::of_manifest(InstanceId([seed as u8; 16]), &self.manifest_bytes)
        };
        let intervals = AnnouncementIntervals::default();
        let control = announcement.control_objects(CONTROL_SYMBOL, None, intervals).unwrap();
        let objects = self.content.objects().map(|(toi, object)| SendObject {
            toi,
            layout: object.layout,
            source_pass: true,
        });
        let sender = Sender::new(SenderConfig {
            control: control.into(),
            round_symbols: 500,
            ..SenderConfig::new(Tsi(7), objects.collect(), self.rate, seed)
        });
        Driver::new(sender, MemorySendRunner::new(Arc::clone(&self.content)))
    }

    /// The number of files that a directory has.
    pub(super) fn count(&self, directory: &Path) -> usize {
        self.files.keys().filter(|path| directory.join(path).exists()).count()
    }

    /// Whether a directory has the files. `Err` if one of them has other bytes.
    pub(super) fn check(&self, directory: &Path) -> Result<bool, String> {
        let mut is_complete = true;
        for (path, bytes) in &self.files {
            match std::fs::read(directory.join(path)) {
                Ok(found) if found == *bytes => {}
                Ok(_) => return Err(format!("{path} has other bytes")),
                Err(_) => is_complete = false,
            }
        }
        Ok(is_complete)
    }
}

/// The packets of a sender.
pub(super) enum Transmission {
    Live(Box<Driver<Sender, MemorySendRunner>>),
    Recorded {
        packets: Arc<Vec<Vec<Vec<u8>>>>,
        next: usize,
    },
    /// Those of each millisecond, and then the last `repeated` again and again.
    Changing {
        packets: Vec<Vec<u8>>,
        repeated: usize,
        next: usize,
    },
}

impl Transmission {
    /// Packets since the last call.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<Vec<u8>> {
        match self {
            Self::Live(sender) => send(sender, now),
            Self::Recorded { packets, next } => {
                *next += 1;
                packets[(*next - 1) % packets.len()].clone()
            }
            Self::Changing { packets, repeated, next } => {
                if *next >= packets.len() {
                    *next = packets.len() - *repeated;
                }
                *next += 1;
                vec![packets[*next - 1].clone()]
            }
        }
    }
}

fn send(sender: &mut Driver<Sender, MemorySendRunner>, now: Instant) -> Vec<Vec<u8>> {
    if sender.endpoint.poll_timeout().is_some_and(|due| due <= now) {
        sender.endpoint.handle_timeout(now);
    }
    let mut datagrams = Vec::new();
    while let Some(effect) = sender.poll(now, &DatagramBatch::EMPTY).unwrap() {
        let Effect::Transmit { symbol, .. } = effect else { continue };
        let mut datagram = sender.header().to_vec();
        if let Some(symbol) = symbol {
            sender.runner.write_symbol(&symbol, &mut datagram);
        }
        datagrams.push(datagram);
    }
    datagrams
}

/// The block that a datagram has a symbol of.
pub(super) fn block_of(datagram: &[u8]) -> Option<BlockId> {
    let packet = Packet::parse(datagram).ok()?;
    let toi = packet.header.toi.filter(|toi| toi.is_content())?;
    let payload = packet.payload(EncodingId(packet.header.codepoint)).ok()??;
    Some(BlockId { toi, sbn: payload.sbn })
}
