//! A folder of 5 000 files that gets a new one every four seconds, in 300 versions: how soon a
//! receiver that follows it, and one that joins in the middle of a version, are complete.

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti, PlanCache, Sbn};
use fontana_proto::{
    Announcement, AnnouncementIntervals, BlockId, Driver, Expectation, Instant, Pacer, Receiver,
    ReceiverConfig, ReceiverEvent, SendObject, Sender, SenderConfig, SenderEvent, Subscription,
    SubscriptionLimits,
};
use fontana_sim::{
    Either, HostConfig, IdContent, IdRunner, LinkConfig, LossModel, NodeId, Observer, RateCap,
    Rooted, Simulation, SimulationConfig,
};
use fontana_wire::{
    Entry, FileEntry, Hash, InstanceId, Manifest, ManifestObject, Metadata, RelativePath,
    SecretKey, Segment, Toi, Tsi,
};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

const VERSIONS: u64 = 300;
/// Time from one version to the next.
const PERIOD: Duration = Duration::from_secs(4);
const RATE: u64 = 50_000_000 / 8;
const SYMBOL: u16 = 1_344;
/// Headers of a packet, below and above UDP.
const HEADERS: u32 = 28 + 56;
/// The files of the first version, and their length.
const FILES: u64 = 5_000;
const FILE: u64 = 1_900;
/// The length of a file that a version adds.
const NEW_FILE: u64 = 2_000;
/// So many small objects are merged into one.
const MERGED: usize = 8;
const TSI: Tsi = Tsi(7);

fn key() -> SecretKey {
    SecretKey::from_seed(&[5; 32])
}

/// An object, and the files in it, each by its number.
#[derive(Clone)]
struct Bundle {
    toi: u32,
    files: Vec<u64>,
}

fn length_of(file: u64) -> u64 {
    if file < FILES { FILE } else { NEW_FILE }
}

impl Bundle {
    fn oti(&self) -> Oti {
        let transfer_length = self.files.iter().map(|&file| length_of(file)).sum();
        let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
        Oti { transfer_length, symbol_size: SYMBOL, scheme }
    }

    fn block(&self) -> BlockId {
        BlockId { toi: Toi::from(self.toi), sbn: Sbn(0) }
    }

    fn block_hashes(&self) -> Vec<Hash> {
        let mut hash = [0; Hash::SIZE];
        hash[..4].copy_from_slice(&self.toi.to_le_bytes());
        vec![Hash(hash)]
    }
}

/// All versions, each as its bundles, and every bundle of any of them.
struct History {
    versions: Vec<Vec<Bundle>>,
    all: Vec<Bundle>,
}

impl History {
    fn new() -> Self {
        let mut bundles = vec![Bundle { toi: 1, files: (0..FILES).collect() }];
        let mut history = Self { versions: vec![bundles.clone()], all: bundles.clone() };
        let mut next = 2;
        let mut toi = || {
            next += 1;
            next
        };
        for version in 1..VERSIONS {
            let small = bundles.iter().skip(1).filter(|bundle| bundle.files.len() == 1);
            if small.count() == MERGED {
                let (merged, kept) =
                    bundles.into_iter().partition(|bundle: &Bundle| bundle.files.len() == 1);
                bundles = kept;
                let files = merged.into_iter().flat_map(|bundle: Bundle| bundle.files).collect();
                bundles.push(Bundle { toi: toi(), files });
                history.all.extend(bundles.last().cloned());
            }
            bundles.push(Bundle { toi: toi(), files: vec![FILES + version] });
            history.all.extend(bundles.last().cloned());
            history.versions.push(bundles.clone());
        }
        history
    }

    fn manifest(&self, version: u64) -> Manifest {
        let bundles = &self.versions[version as usize];
        let object = |bundle: &Bundle| ManifestObject {
            toi: bundle.toi,
            oti: bundle.oti(),
            block_hashes: bundle.block_hashes(),
        };
        let mut entries = Vec::new();
        for bundle in bundles {
            let mut at = 0;
            for &file in &bundle.files {
                let path = RelativePath::new(format!("folder/file {file}").as_bytes()).unwrap();
                let length = length_of(file);
                let extent = Segment::Extent { toi: bundle.toi, object_offset: at, length };
                let (metadata, segments) = (Metadata::default(), vec![extent]);
                entries.push(Entry::File(FileEntry { path, metadata, segments }));
                at += length;
            }
        }
        let objects = bundles.iter().map(object).collect();
        Manifest::new(version + 1, "folder", objects, entries).unwrap()
    }

    /// Blocks that a receiver of a version can fill from its files.
    fn held(&self, version: u64) -> BTreeSet<BlockId> {
        let is_held = |bundle: &&Bundle| bundle.files.iter().all(|&file| file <= FILES + version);
        self.all.iter().filter(is_held).map(Bundle::block).collect()
    }

    fn content(&self) -> IdContent {
        let mut content = IdContent::default();
        for bundle in &self.all {
            content.add(Toi::from(bundle.toi), bundle.oti(), bundle.block_hashes());
        }
        content
    }

    fn sender(&self, version: u64) -> Sender {
        let manifest = self.manifest(version).emit();
        let announcement = Announcement {
            version: version + 1,
            rate_bytes_per_second: NonZeroU64::new(RATE),
            ..Announcement::of_manifest(InstanceId([version as u8; 16]), &manifest)
        };
        let intervals = AnnouncementIntervals::default();
        let control = announcement.control_objects(SYMBOL, Some(&key()), intervals).unwrap();
        let bundles = &self.versions[version as usize];
        let object = |bundle: &Bundle| SendObject {
            toi: Toi::from(bundle.toi),
            layout: bundle.oti().layout().unwrap(),
            source_pass: true,
        };
        let held = version.checked_sub(1).map(|before| self.held(before));
        let blocks = || bundles.iter().map(Bundle::block);
        Sender::new(SenderConfig {
            first: held.map(|held| blocks().filter(|block| !held.contains(block)).collect()),
            control: control.into(),
            round_symbols: 4_096,
            ..SenderConfig::new(TSI, bundles.iter().map(object).collect(), RATE, version)
        })
    }
}

/// What the receivers have reported since they were attached.
#[derive(Debug, Default)]
struct Reports {
    accepted: BTreeMap<NodeId, u64>,
    complete: BTreeMap<NodeId, Instant>,
    superseded: BTreeSet<NodeId>,
}

impl Observer<Either<SenderEvent, ReceiverEvent>> for Reports {
    fn on_event(&mut self, now: Instant, node: NodeId, event: &Either<SenderEvent, ReceiverEvent>) {
        let Some(event) = event.right() else { return };
        match event {
            ReceiverEvent::Accepted { manifest, .. } => {
                self.accepted.insert(node, manifest.version() - 1);
            }
            ReceiverEvent::Complete => drop(self.complete.insert(node, now)),
            ReceiverEvent::Superseded { .. } => drop(self.superseded.insert(node)),
            ReceiverEvent::BlockCorrupt { .. } | ReceiverEvent::GivenUp { .. } => {
                panic!("{node:?}: {event:?}")
            }
            _ => {}
        }
    }
}

type Peer = Either<Driver<Sender, IdRunner>, Driver<Receiver, IdRunner>>;

struct Folder {
    history: History,
    content: Arc<IdContent>,
    plans: Arc<PlanCache>,
    run: Simulation<Peer, Reports>,
    source: NodeId,
}

impl Folder {
    fn send(&mut self, version: u64) {
        let runner = IdRunner::new(Arc::clone(&self.content));
        let sender = Either::Left(Driver::new(self.history.sender(version), runner));
        let max_packet_bytes = u32::from(SYMBOL) + HEADERS;
        let peak_window = Pacer::PEAK_WINDOW;
        let cap = RateCap { bytes_per_second: RATE, max_packet_bytes, peak_window };
        let config = HostConfig::sender(cap).starting_at(self.run.now());
        self.run.attach(self.source, sender, config);
    }

    /// A receiver of what is newer than the version that it has.
    fn receive(&mut self, node: NodeId, has: Option<u64>) {
        let before = self.run.host(node).and_then(|host| host.right());
        let known_manifest = before.and_then(|before| before.endpoint.newer_manifest());
        let config = ReceiverConfig {
            known_manifest,
            ..ReceiverConfig::new(
                Expectation {
                    tsi: Some(TSI),
                    publisher: Some(key().public_key()),
                    newer_than: has.map(|version| version + 1),
                    ..Expectation::default()
                },
                1_800_000_000,
            )
        };
        let limits = SubscriptionLimits::default();
        let mut receiver = Receiver::new(config, Subscription::Declared(limits));
        receiver.share_plans(Arc::clone(&self.plans));
        let held = has.map(|version| self.history.held(version)).unwrap_or_default();
        let runner = IdRunner::holding(Arc::clone(&self.content), held);
        let receiver = Either::Right(Driver::new(receiver, runner));
        let config = HostConfig::receiver([self.source]).starting_at(self.run.now());
        self.run.attach(node, receiver, config);
        let reports = self.run.observer_mut();
        reports.complete.remove(&node);
        reports.accepted.remove(&node);
        reports.superseded.remove(&node);
    }
}

/// The value that a share of the times does not exceed, in seconds.
fn quantile(times: &mut [Duration], share: f64) -> f64 {
    times.sort();
    let index = (times.len() as f64 * share).ceil() as usize;
    times[index.clamp(1, times.len()) - 1].as_secs_f64()
}

#[test]
fn three_hundred_versions_reach_a_follower_at_once_and_late_receivers_within_two_passes() {
    let history = History::new();
    let access = LinkConfig::wire(Duration::from_millis(1)).with_loss(LossModel::bernoulli(0.1));
    let star = Rooted::star(2, LinkConfig::wire(Duration::from_millis(1)), access);
    let [follower, late] = star.leaves[..] else { panic!("two leaves") };
    let mut folder = Folder {
        content: Arc::new(history.content()),
        history,
        plans: Arc::new(PlanCache::new(64)),
        run: Simulation::new(star.topology, SimulationConfig::new(1), Reports::default()),
        source: star.source,
    };
    folder.receive(follower, None);
    let (mut follows, mut lates) = (Vec::new(), Vec::new());
    let mut joined: Option<Instant> = None;
    let step = Duration::from_millis(10);
    for version in 0..VERSIONS {
        let begun = folder.run.now();
        folder.send(version);
        // In every fifth version, at another time of it.
        let joins_at = PERIOD * (version as u32 * 7 % 40) / 40;
        let mut joins = version % 5 == 1;
        while folder.run.now() < begun + PERIOD {
            let now = folder.run.now();
            if joins && now >= begun + joins_at {
                folder.receive(late, None);
                (joins, joined) = (false, Some(now));
            }
            folder.run.run_until(now + step).unwrap();
            if let Some(&at) = folder.run.observer().complete.get(&follower) {
                let taken = folder.run.observer().accepted[&follower];
                if version > 0 {
                    follows.push(at.saturating_since(begun));
                    assert_eq!(taken, version, "no version is skipped");
                }
                folder.receive(follower, Some(taken));
            }
            assert!(folder.run.observer().superseded.is_empty());
            if let (Some(at), Some(since)) = (folder.run.observer().complete.get(&late), joined) {
                lates.push(at.saturating_since(since));
                folder.run.detach(late);
                folder.run.observer_mut().complete.remove(&late);
                joined = None;
            }
        }
    }
    assert_eq!((follows.len(), lates.len()), (VERSIONS as usize - 1, VERSIONS as usize / 5));
    let packets = 1 + FILES * FILE / u64::from(SYMBOL);
    let pass = (packets * u64::from(u32::from(SYMBOL) + HEADERS)) as f64 / RATE as f64;
    let [median, tail] = [0.5, 0.99].map(|share| quantile(&mut follows, share));
    let [late_median, late_tail] = [0.5, 0.99].map(|share| quantile(&mut lates, share) / pass);
    println!("a follower completes a version after {median:.2} s, 99 % within {tail:.2} s");
    println!("a late receiver after {late_median:.2} passes, 99 % within {late_tail:.2}");
    assert!(median <= 1.5 && tail <= 3.0, "{median} {tail}");
    assert!(late_tail <= 2.0, "{late_tail} passes");
}
