//! A session of the real sender and receivers, on ids.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti, PlanCache};
use fontana_proto::{
    Announcement, AnnouncementIntervals, BlockId, ChannelClock, Driver, Expectation, Instant,
    Pacer, Receiver, ReceiverConfig, ReceiverEvent, SendObject, Sender, SenderConfig, SenderEvent,
    Subscription, SubscriptionLimits,
};
use fontana_sim::{
    Either, HostConfig, IdContent, IdRunner, NodeId, Observer, RateCap, Simulation,
    SimulationConfig, Topology,
};
use fontana_wire::{
    CongestionControl, Entry, FileEntry, Hash, InstanceId, LayerRates, Manifest, ManifestObject,
    Metadata, RelativePath, Tsi, manifest_hash,
};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

pub type Peer = Either<Driver<Sender, IdRunner>, Driver<Receiver, IdRunner>>;
pub type Run = Simulation<Peer, Milestones>;

const TSI: Tsi = Tsi(7);
/// Bytes of a symbol: a packet of the default size.
pub const SYMBOL: u16 = 1_400;
/// Symbols of control objects: long enough for a head.
const CONTROL_SYMBOL: u16 = 1_000;
/// Headers of a packet, below and above UDP.
const HEADERS: u32 = 28 + 64;

/// Senders start when the receivers have joined: a receiver that misses the first head waits for
/// the second one.
const LISTENERS_FIRST: Duration = Duration::from_millis(50);

/// A session with one object.
#[derive(Clone)]
pub struct Scene {
    pub manifest: Arc<Manifest>,
    pub content: Arc<IdContent>,
    pub rate: u64,
    /// Congestion control in the head. At a fixed rate there is one channel.
    pub congestion: CongestionControl,
    pub seed: u64,
    /// Plans that all receivers share.
    pub plans: Arc<PlanCache>,
    /// Whether the staging of receivers is checked.
    pub watched: bool,
    /// Whether receivers know the manifest beforehand.
    pub manifest_is_known: bool,
    /// Blocks that receivers lack; the others are on their disks.
    pub first: Vec<BlockId>,
}

impl Scene {
    pub fn new(bytes: u64, blocks: u8, rate: u64, seed: u64) -> Self {
        let scheme =
            FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 4 });
        let oti = Oti { transfer_length: bytes, symbol_size: SYMBOL, scheme };
        let block_hashes: Vec<_> = (0..blocks).map(|block| Hash([block; Hash::SIZE])).collect();
        let path = RelativePath::new("file").unwrap();
        let metadata = Metadata { mode: 0o644, ..Metadata::default() };
        let file = Entry::File(FileEntry::whole_object(path, metadata, 1, bytes));
        let object = ManifestObject { toi: 1, oti, block_hashes };
        let manifest = Arc::new(Manifest::new(1, "scene", vec![object], vec![file]).unwrap());
        let content = Arc::new(IdContent::of(&manifest));
        let plans = Arc::new(PlanCache::new(4));
        Self {
            manifest,
            content,
            rate,
            congestion: CongestionControl::FixedRate,
            seed,
            plans,
            watched: true,
            manifest_is_known: false,
            first: Vec::new(),
        }
    }

    /// The same session in cumulative layers of constant rate. The session's rate is their sum.
    pub fn layered(self, bytes_per_second: &[u32]) -> Self {
        let rate = bytes_per_second.iter().copied().map(u64::from).sum();
        let layers = LayerRates::listed(bytes_per_second.to_vec()).unwrap();
        Self { rate, congestion: CongestionControl::FixedLayers(layers), ..self }
    }

    pub fn source_symbols(&self) -> u64 {
        self.manifest.objects().iter().map(|o| o.oti.layout().unwrap().total_source_symbols()).sum()
    }

    /// The sender with this number of the same content. Number 0 sends the source symbols.
    pub fn sender(&self, number: u64) -> Sender {
        let manifest = self.manifest.emit();
        let announcement = Announcement {
            rate_bytes_per_second: NonZeroU64::new(self.rate),
            congestion_control: self.congestion.clone(),
            ..Announcement::of_manifest(InstanceId([number as u8; 16]), &manifest)
        };
        let intervals = AnnouncementIntervals { head: 1, body: 4 };
        let control = announcement.control_objects(CONTROL_SYMBOL, None, intervals).unwrap();
        let clock = || {
            let packet = SYMBOL + HEADERS as u16;
            let start = Instant::ZERO + LISTENERS_FIRST;
            ChannelClock::new(&self.congestion, self.rate, packet, start, self.seed).unwrap()
        };
        let objects = self.manifest.objects().iter().map(|object| SendObject {
            toi: object.toi.into(),
            layout: object.oti.layout().unwrap(),
            source_pass: number == 0,
        });
        Sender::new(SenderConfig {
            first: (!self.first.is_empty()).then(|| self.first.clone()),
            control: control.into(),
            channels: (self.congestion != CongestionControl::FixedRate).then(clock),
            round_symbols: 4_096,
            ..SenderConfig::new(TSI, objects.collect(), self.rate, self.seed.wrapping_add(number))
        })
    }

    pub fn receiver(&self) -> Receiver {
        self.receiver_of(SubscriptionLimits::default())
    }

    /// A receiver with these limits.
    pub fn receiver_of(&self, limits: SubscriptionLimits) -> Receiver {
        let config = ReceiverConfig {
            known_manifest: self
                .manifest_is_known
                .then(|| (manifest_hash(&self.manifest.emit()), Arc::clone(&self.manifest))),
            ..ReceiverConfig::new(
                Expectation { tsi: Some(TSI), ..Expectation::default() },
                1_800_000_000,
            )
        };
        let mut receiver = Receiver::new(config, Subscription::Declared(limits));
        receiver.share_plans(Arc::clone(&self.plans));
        receiver
    }

    pub fn runner(&self) -> IdRunner {
        let content = Arc::clone(&self.content);
        if self.watched { IdRunner::watched(content) } else { IdRunner::new(content) }
    }

    pub fn sending(&self, number: u64) -> Peer {
        Either::Left(Driver::new(self.sender(number), self.runner()))
    }

    pub fn receiving(&self, receiver: Receiver) -> Peer {
        Either::Right(Driver::new(receiver, self.runner()))
    }

    pub fn cap(&self) -> RateCap {
        RateCap {
            bytes_per_second: self.rate,
            max_packet_bytes: u32::from(SYMBOL) + HEADERS,
            peak_window: match self.congestion {
                CongestionControl::FixedRate => Pacer::PEAK_WINDOW,
                _ => Duration::ZERO,
            },
        }
    }

    /// A run with senders on some nodes and receivers on others. Each receiver joins all senders.
    pub fn run(
        &self,
        topology: Topology,
        senders: &[NodeId],
        receivers: impl IntoIterator<Item = (NodeId, Instant)>,
    ) -> Run {
        let config = SimulationConfig::new(self.seed);
        let mut run = Simulation::new(topology, config, Milestones::default());
        for (number, &node) in (0..).zip(senders) {
            let config = HostConfig::sender(self.cap());
            let config = config.starting_at(Instant::ZERO + LISTENERS_FIRST);
            run.attach(node, self.sending(number), config);
        }
        let sources: Arc<[NodeId]> = senders.into();
        for (node, starts_at) in receivers {
            let config = HostConfig::receiver(Arc::clone(&sources)).starting_at(starts_at);
            run.attach(node, self.receiving(self.receiver()), config);
            run.observer_mut().expected += 1;
        }
        run
    }
}

/// Times at which receivers were complete.
#[derive(Debug, Default)]
pub struct Milestones {
    pub expected: usize,
    pub complete: BTreeMap<NodeId, Instant>,
    pub corrupt: u64,
}

impl Milestones {
    pub fn all_complete(&self) -> bool {
        self.complete.len() == self.expected
    }
}

impl Observer<Either<SenderEvent, ReceiverEvent>> for Milestones {
    fn on_event(&mut self, now: Instant, node: NodeId, event: &Either<SenderEvent, ReceiverEvent>) {
        let Some(event) = event.right() else { return };
        match event {
            ReceiverEvent::Complete => drop(self.complete.insert(node, now)),
            ReceiverEvent::BlockCorrupt { .. } => self.corrupt += 1,
            ReceiverEvent::GivenUp { .. } | ReceiverEvent::Rejected { .. } => {
                panic!("{node:?}: {event:?}")
            }
            _ => {}
        }
    }
}

/// Runs until every receiver is complete, or until `limit`. Returns whether all are complete.
pub fn until_complete(run: &mut Run, limit: Duration) -> bool {
    let limit = Instant::ZERO + limit;
    match run.run_while(limit, |run| run.observer().all_complete()) {
        Ok(done) => done,
        Err(violation) => panic!("{violation}"),
    }
}
