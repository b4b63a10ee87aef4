//! A run of a receiver whose threads take turns.
//!
//! The endpoint, the placer, the workers and the target are those of a reception. What their
//! threads would do at any time, a run does in an order that its random numbers draw. Only syncs
//! have a thread of their own: while the disk syncs a file, the others go on.

use super::disk::{Pause, SimulatedDisk};
use super::world::{Transmission, World, block_of};
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::receive::delivery::OrderedDelivery;
use crate::receive::into::ReceiveInto;
use crate::receive::object::OpenedObject;
use crate::receive::options::ReceiveOptions;
use crate::receive::placer::{BlockJob, Placer};
use crate::receive::runner::ReceiveRunner;
use crate::receive::sharing::SharedSymbols;
use crate::receive::staging_root::StagingRoot;
use crate::receive::target::{Target, TargetReport, TargetSetup};
use crate::receive::threads::{Queues, ReportSenders, Reports, Threads, report_channels};
use crate::receive::worker::{Attempt, BytesJob, WorkerReport};
use crate::shared::unbounded;
use crossbeam_channel::{Receiver as Queue, Sender as QueueEnd, bounded};
use fontana_proto::{
    BlockId, BlockOutcome, Category, Committed, Datagram, DatagramBatch, DecodePolicy, Driver, Ecn,
    Effect, Endpoint, Instant, MetadataMode, Port, ReceiveDone, Receiver, ReceiverConfig,
    ReceiverEvent, ReceiverLimits, Scope, SplitMix64, Subscription, SubscriptionLimits,
};
use fontana_store::{
    RecoveryMemory, Selection, SpillFile, Staging, StagingError, StagingOptions, TargetDirectory,
};
use fontana_wire::{Hash, Manifest};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The time from one delivery to the next.
const TICK: Duration = Duration::from_millis(1);
/// Deliveries after which a run that nothing has failed in must be over: a minute.
const PATIENCE: u32 = 60_000;
/// Lists that may wait for the placer before nothing more is delivered. The driver of a reception
/// waits for the placer then, which is another thread.
const PLACER_LISTS: usize = 32;
/// The same for the chunks of early symbols: those of a delivery must fit.
const SPILL_CHUNKS: usize = 8;
/// Memory to recover a block with.
const MEMORY: usize = 1 << 20;
/// Symbols that may wait for their object. They come all at once, and must fit into the queue.
const EARLY_BYTES: usize = 256 << 10;
/// Symbols beyond them that may wait on the disk.
const SPILLED_BYTES: u64 = 8 << 20;

/// How a run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    /// The receiver has reported an error, and the first one is of this class.
    Failed(Category),
    /// The disk has ended the process.
    Crashed,
}

/// Wrong symbols so far, in all runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Damage {
    /// Whether the attacker has sent a wrong symbol, for each block that he has considered.
    pub(super) forged: BTreeMap<BlockId, bool>,
    /// A write has gone to another place.
    pub(super) is_misdirected: bool,
}

/// A sync whose thread waits in the disk.
struct PausedSync {
    thread: JoinHandle<()>,
    resume: QueueEnd<()>,
    waits: Queue<()>,
    done: Queue<Result<(), StagingError>>,
}

/// What may be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Deliver,
    Place,
    /// The placer has nothing to do: it writes its notes.
    Note,
    Solve,
    WorkOnBytes,
    Target,
    Spill,
    BeginSync,
    ResumeSync,
    Report,
}

/// What a receiver hears, and how it is set up.
pub(super) struct Heard {
    /// What each sender sends: all have one content.
    pub(super) senders: Vec<Transmission>,
    /// Share of the datagrams that are lost, in 1/256.
    pub(super) loss: u32,
    /// Share of the blocks that an attacker sends wrong symbols of, in 1/256.
    pub(super) forging: u32,
    pub(super) metadata: MetadataMode,
    pub(super) known_manifest: Option<(Hash, Arc<Manifest>)>,
    /// Files that exist are replaced.
    pub(super) overwrite: bool,
}

/// A run of a receiver.
pub(super) struct ReceiverRun<'w> {
    heard: Heard,
    disk: Arc<SimulatedDisk>,
    random: SplitMix64,
    damage: &'w mut Damage,
    now: Instant,
    driver: Driver<Receiver, ReceiveRunner>,
    is_joined: bool,
    target: Target,
    placer: Placer,
    queues: Queues,
    bytes_queue: Queue<BytesJob>,
    attempts: Vec<Attempt>,
    bytes_jobs: Vec<BytesJob>,
    report_to: ReportSenders,
    reports: Reports,
    memory: RecoveryMemory,
    staging: Option<Arc<Staging>>,
    sync: Option<PausedSync>,
    /// A sync has failed: there are no others.
    syncer_has_ended: bool,
    failed: Option<Category>,
    /// A file did not get its name.
    item_failed: Option<Category>,
    /// How the run has ended, or what must not be.
    end: Option<Result<End, String>>,
    /// Blocks of which all symbols were dropped in this run. There is at most one wrong symbol of
    /// each, so those that arrive afterwards are right.
    restarted: BTreeSet<BlockId>,
}

impl<'w> ReceiverRun<'w> {
    /// A receiver of a world's manifest into `directory` on `disk`.
    pub(super) fn new(
        world: &World,
        damage: &'w mut Damage,
        disk: &Arc<SimulatedDisk>,
        directory: &Path,
        seed: u64,
    ) -> Self {
        let heard = |seed| Heard {
            senders: world.transmissions(seed),
            loss: world.loss,
            forging: world.forging,
            metadata: MetadataMode::Manifest,
            known_manifest: Some((world.hash(), Arc::clone(&world.manifest))),
            overwrite: false,
        };
        Self::of(heard, damage, disk, directory, seed)
    }

    /// A receiver of what `heard` makes of a random number, into `directory` on `disk`.
    pub(super) fn of(
        heard: impl FnOnce(u64) -> Heard,
        damage: &'w mut Damage,
        disk: &Arc<SimulatedDisk>,
        directory: &Path,
        seed: u64,
    ) -> Self {
        let mut random = SplitMix64::new(seed, 1);
        let policy = POLICIES[random.below(3) as usize];
        let heard = heard(random.next_u64());
        let on_disk = Arc::clone(disk);
        let directory = TargetDirectory::open_on(directory, on_disk).unwrap();
        let staging = StagingOptions { overwrite: heard.overwrite, ..StagingOptions::default() };
        let directory = Arc::new(directory);
        let spill = Arc::new(SpillFile::new(Arc::clone(&directory)));
        let root = StagingRoot { directory, options: staging };
        let mut options = ReceiveOptions::new("");
        options.workers = 1;
        options.metadata = heard.metadata;
        options.expectation.manifest = heard.known_manifest.as_ref().map(|(hash, _)| *hash);
        let (report_to, reports) = report_channels();
        let into = ReceiveInto::Directory;
        let target = Target::new(TargetSetup {
            options: &options,
            root: root.clone(),
            into: &into,
            selection: Selection::new(&[]).unwrap(),
            mark: None,
            abandoned: CancellationToken::new(),
            reports: report_to.target.clone(),
        });
        let (threads, queues) = Threads::queues();
        let runner = ReceiveRunner {
            threads,
            objects: BTreeMap::new(),
            delivery: OrderedDelivery::new(into, root).unwrap(),
            slab: None,
            session_packets: 0,
            keys: None,
            shared: SharedSymbols::new(options.directory.clone()),
            spill,
        };
        let (bytes_jobs, bytes_queue) = unbounded();
        let receiver = receiver(&heard, &options, policy);
        Self {
            heard,
            disk: Arc::clone(disk),
            damage,
            now: Instant::ZERO,
            driver: Driver::new(receiver, runner),
            is_joined: false,
            target,
            placer: Placer::new(bytes_jobs),
            queues,
            bytes_queue,
            attempts: Vec::new(),
            bytes_jobs: Vec::new(),
            report_to,
            reports,
            memory: RecoveryMemory::new(MEMORY),
            staging: None,
            sync: None,
            syncer_has_ended: false,
            failed: None,
            item_failed: None,
            end: None,
            restarted: BTreeSet::new(),
            random,
        }
    }

    /// Runs until the reception is complete, has failed, or has crashed.
    ///
    /// # Errors
    /// What must not be.
    pub(super) fn run(mut self) -> Result<End, String> {
        self.driver.endpoint.handle_timeout(self.now);
        self.poll(&DatagramBatch::EMPTY);
        let mut deliveries = 0;
        let result = loop {
            if self.disk.is_over() {
                break Ok(End::Crashed);
            }
            if let Some(end) = &self.end {
                break end.clone();
            }
            let action = self.draw();
            deliveries += u32::from(action == Action::Deliver);
            if deliveries > PATIENCE {
                let what = format!("not complete after {deliveries} deliveries");
                break self.failed.map_or(Err(what), |category| Ok(End::Failed(category)));
            }
            self.act(action);
        };
        if result != Ok(End::Complete) {
            // Threads that wait for the disk end, without an effect on it.
            self.disk.end_run();
        }
        while self.sync.is_some() {
            self.resume_sync();
        }
        result
    }

    /// The next action: any that is possible.
    fn draw(&mut self) -> Action {
        self.attempts.extend(self.queues.solver.try_iter());
        self.bytes_jobs.extend(self.bytes_queue.try_iter());
        if let Some(staging) = self.queues.syncer.try_iter().last() {
            self.staging = Some(staging);
        }
        let mut possible = Vec::new();
        if self.queues.placer.len() < PLACER_LISTS && self.queues.spill.len() < SPILL_CHUNKS {
            possible.extend([Action::Deliver; 2]);
        }
        if self.queues.placer.is_empty() {
            possible.push(Action::Note);
        } else {
            possible.extend([Action::Place; 2]);
        }
        if !self.queues.spill.is_empty() {
            possible.extend([Action::Spill; 2]);
        }
        if !self.attempts.is_empty() {
            possible.extend([Action::Solve; 2]);
        }
        if !self.bytes_jobs.is_empty() {
            possible.extend([Action::WorkOnBytes; 2]);
        }
        if self.sync.is_some() {
            possible.push(Action::ResumeSync);
        } else {
            // A target waits for a sync that has begun.
            if !self.queues.target.is_empty() {
                possible.extend([Action::Target; 2]);
            }
            // As the syncer's thread, but at any time.
            let is_dirty = |staging: &Arc<Staging>| staging.unsynced_bytes() > 0;
            if !self.syncer_has_ended && self.staging.as_ref().is_some_and(is_dirty) {
                possible.push(Action::BeginSync);
            }
        }
        if !self.reports.workers.is_empty() || !self.reports.target.is_empty() {
            possible.extend([Action::Report; 2]);
        }
        possible[self.random.below(possible.len() as u32) as usize]
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Deliver => self.deliver(),
            Action::Place => {
                if let Ok(list) = self.queues.placer.try_recv() {
                    self.restarted.extend(list.list.iter().filter_map(|job| match job {
                        BlockJob::Settle { block, outcome: BlockOutcome::Corrupt, .. } => {
                            Some(*block)
                        }
                        _ => None,
                    }));
                    self.placer.work_on(list, &self.report_to.workers);
                }
            }
            Action::Note => self.placer.write_notes(&self.report_to.workers),
            Action::Solve => {
                let index = self.random.below(self.attempts.len() as u32) as usize;
                let report = self.attempts.swap_remove(index).solve();
                self.report_to.workers.send(report).ok().unwrap();
            }
            Action::WorkOnBytes => {
                let index = self.random.below(self.bytes_jobs.len() as u32) as usize;
                let report = self.bytes_jobs.swap_remove(index).work(&mut self.memory);
                self.report_to.workers.send(report).ok().unwrap();
            }
            Action::Spill => {
                let job = self.queues.spill.try_recv().unwrap();
                if let Some(report) = job.work(&self.driver.runner.spill) {
                    self.report_to.workers.send(report).ok().unwrap();
                }
            }
            Action::Target => {
                let job = self.queues.target.try_recv().unwrap();
                if let Some(report) = self.target.work(job) {
                    self.report_to.target.send(report).ok().unwrap();
                }
            }
            Action::BeginSync => self.begin_sync(),
            Action::ResumeSync => self.resume_sync(),
            Action::Report => self.report(),
        }
    }

    /// Delivers the packets of a tick, but those that are lost.
    fn deliver(&mut self) {
        self.now = self.now + TICK;
        let sent: Vec<_> =
            self.heard.senders.iter_mut().map(|sender| sender.poll(self.now)).collect();
        let mut arriving = Vec::new();
        for (source, datagrams) in (1..).zip(sent) {
            for datagram in datagrams {
                arriving.extend(self.forge(&datagram).map(|forged| (source, forged)));
                if self.random.below(256) >= self.heard.loss {
                    arriving.push((source, datagram));
                }
            }
        }
        if self.is_joined && !arriving.is_empty() {
            let (mut slab, mut datagrams) = (Vec::new(), Vec::new());
            for (source, datagram) in arriving {
                let start = slab.len() as u32;
                slab.extend(datagram);
                datagrams.push(Datagram {
                    from: SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, source)), 7701),
                    port: Port::BASE,
                    ecn: Ecn::NotEct,
                    dropped_before: 0,
                    payload: start..slab.len() as u32,
                });
            }
            let batch = DatagramBatch { slab: &slab, datagrams: &datagrams };
            self.driver.endpoint.handle_datagrams(self.now, &batch);
            self.poll(&batch);
        }
        if self.driver.endpoint.poll_timeout().is_some_and(|due| due <= self.now) {
            self.driver.endpoint.handle_timeout(self.now);
        }
        self.poll(&DatagramBatch::EMPTY);
    }

    /// A wrong symbol with the id of this one, for some blocks, and at most once for each.
    fn forge(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        let block = block_of(datagram).filter(|_| self.is_joined)?;
        let is_due = self.heard.forging > 0 && self.random.below(16) == 0;
        if !is_due || self.damage.forged.contains_key(&block) {
            return None;
        }
        let is_forged = self.random.below(256) < self.heard.forging;
        self.damage.forged.insert(block, is_forged);
        let mut forged = datagram.to_vec();
        let last = forged.iter_mut().rev().take(8);
        last.for_each(|byte| *byte ^= 1 + self.random.below(255) as u8);
        is_forged.then_some(forged)
    }

    /// Carries out what the endpoint asks for.
    fn poll(&mut self, batch: &DatagramBatch<'_>) {
        let packets = self.driver.endpoint.session_packets();
        self.driver.runner.session_packets = packets;
        loop {
            let Ok(effect) = self.driver.poll(self.now, batch);
            match effect {
                None => break,
                Some(Effect::Event(event)) => self.on_event(&event),
                Some(Effect::Join(_)) => self.is_joined = true,
                Some(Effect::Leave(_)) => self.is_joined = false,
                Some(Effect::Transmit { .. } | Effect::Later { .. }) => {}
            }
        }
        self.driver.runner.flush(self.driver.endpoint.session_packets());
    }

    fn on_event(&mut self, event: &ReceiverEvent) {
        match event {
            ReceiverEvent::BlockCorrupt { block, .. } => self.on_corrupt(*block),
            ReceiverEvent::Complete => {
                self.end = Some(Ok(self.item_failed.map_or(End::Complete, End::Failed)));
            }
            ReceiverEvent::GivenUp { .. } => {
                let what = || "given up, and nothing has failed".to_owned();
                self.end = Some(self.failed.map(End::Failed).ok_or_else(what));
            }
            _ => {}
        }
    }

    /// A block whose symbols are right must not have a wrong hash.
    fn on_corrupt(&mut self, block: BlockId) {
        let is_forged = self.damage.forged.get(&block) == Some(&true);
        let is_right = !is_forged || self.restarted.contains(&block);
        // Until the failure of a write is reported, its symbol counts as available.
        let is_expected = self.damage.is_misdirected || self.disk.has_failed();
        if is_right && !is_expected {
            self.end = Some(Err(format!("the symbols of {block:?} are right, but not its hash")));
        }
    }

    /// Passes on a report of a thread.
    fn report(&mut self) {
        let is_of_target = self.reports.workers.is_empty()
            || !self.reports.target.is_empty() && self.random.below(2) == 0;
        let done = if is_of_target {
            let report = self.reports.target.try_recv().unwrap();
            self.done_by_target(report)
        } else {
            let report = self.reports.workers.try_recv().unwrap();
            Some(self.done_by_worker(report))
        };
        if let Some(done) = done {
            self.driver.endpoint.handle_done(self.now, done);
            self.poll(&DatagramBatch::EMPTY);
        }
    }

    fn done_by_worker(&mut self, report: WorkerReport) -> ReceiveDone {
        match report {
            WorkerReport::Solved { block, decoder, progress } => {
                ReceiveDone::Solved { block, decoder, progress }
            }
            WorkerReport::Recovered { block, hash } => ReceiveDone::Recovered { block, hash },
            WorkerReport::Located { block, location } => ReceiveDone::Located { block, location },
            WorkerReport::Chosen { block, chosen } => ReceiveDone::Chosen { block, chosen },
            WorkerReport::SpillRead { offset, bytes } => ReceiveDone::SpillRead { offset, bytes },
            WorkerReport::SpillRefused { offset } => ReceiveDone::SpillRefused { offset },
            WorkerReport::Read(_) => unreachable!("these receivers share nothing"),
            WorkerReport::Failed { scope, error } => self.failed(scope, error),
        }
    }

    fn done_by_target(&mut self, report: TargetReport) -> Option<ReceiveDone> {
        Some(match report {
            TargetReport::Opened { scope, opened, .. } => {
                if let Some(staging) = opened.objects.first().and_then(|o| o.object.journal()) {
                    self.driver.runner.threads.keep_synced(staging);
                }
                let objects =
                    opened.objects.into_iter().map(|OpenedObject { toi, object }| (toi, object));
                self.driver.runner.objects.extend(objects);
                self.driver.endpoint.deselect(opened.deselected);
                ReceiveDone::Opened { scope, saved: opened.saved }
            }
            TargetReport::Committed { toi } => ReceiveDone::Committed(Committed::Content { toi }),
            TargetReport::ItemFailed { error } => {
                self.item_failed.get_or_insert(Error::of_job(&Arc::new(error)).category());
                return None;
            }
            TargetReport::Finished => ReceiveDone::Finished,
            TargetReport::Mismatched { toi, digest, error } => {
                let error = Error::of_job(&Arc::new(error));
                ReceiveDone::Mismatched { toi, digest, error }
            }
            TargetReport::Failed { scope, error } => self.failed(scope, error),
            _ => return None,
        })
    }

    fn failed(&mut self, scope: Scope, error: Error) -> ReceiveDone {
        let error = Error::of_job(&Arc::new(error));
        self.failed.get_or_insert(error.category());
        ReceiveDone::Failed { scope, error }
    }

    /// Begins a sync, as far as the first call that waits for the disk.
    fn begin_sync(&mut self) {
        let staging = Arc::clone(self.staging.as_ref().unwrap());
        let (waits_end, waits) = bounded(1);
        let (resume, resumed) = bounded(1);
        let (done_end, done) = bounded(1);
        let disk = Arc::clone(&self.disk);
        let thread = std::thread::spawn(move || {
            let thread = std::thread::current().id();
            disk.pause(Some(Pause { thread, waits: waits_end, resume: resumed }));
            let result = staging.sync();
            disk.pause(None);
            let _ = done_end.send(result);
        });
        self.sync = Some(PausedSync { thread, resume, waits, done });
        self.wait_for_sync();
    }

    fn resume_sync(&mut self) {
        if let Some(sync) = &self.sync {
            let _ = sync.resume.send(());
        }
        self.wait_for_sync();
    }

    /// Waits until the sync waits for the disk again, or is over.
    fn wait_for_sync(&mut self) {
        let Some(sync) = &self.sync else { return };
        // The thread drops its end when it is over.
        if sync.waits.recv().is_ok() {
            return;
        }
        if let Ok(Err(error)) = sync.done.recv() {
            self.syncer_has_ended = true;
            let failed = WorkerReport::Failed { scope: Scope::Session, error: error.into() };
            let _ = self.report_to.workers.send(failed);
        }
        if let Some(sync) = self.sync.take() {
            sync.thread.join().unwrap();
        }
    }
}

/// Each run has one of them.
const POLICIES: [DecodePolicy; 3] =
    [DecodePolicy::Incremental, DecodePolicy::Deferred, DecodePolicy::Patient { margin: 2 }];

fn receiver(heard: &Heard, options: &ReceiveOptions, policy: DecodePolicy) -> Receiver {
    let config = ReceiverConfig {
        acceptance: options.acceptance,
        metadata: options.metadata,
        known_manifest: heard.known_manifest.clone(),
        policy,
        limits: ReceiverLimits {
            max_early_bytes: EARLY_BYTES,
            max_spilled_bytes: SPILLED_BYTES,
            ..ReceiverLimits::default()
        },
        stays_until_verified: true,
        ..ReceiverConfig::new(options.expectation.clone(), 1_800_000_000)
    };
    let limits = SubscriptionLimits { breaker: None, ..SubscriptionLimits::default() };
    Receiver::new(config, Subscription::Declared(limits))
}
