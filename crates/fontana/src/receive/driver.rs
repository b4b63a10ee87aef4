//! The driver of a [`Receiver`]. One thread drains the socket, this one decides, one writes, others
//! decode, and one gives files their names.

use super::delivery::{DeliveryReport, OrderedDelivery};
use super::handle::{Command, Commands};
use super::held::HeldContent;
use super::into::ReceiveInto;
use super::mirrors::{Mirrors, PreparedMirrors};
use super::object::OpenedObject;
use super::options::{ReceiveOptions, SimulatedLoss};
use super::outcome::{Over, Results};
use super::reporting::ReportKeys;
use super::runner::ReceiveRunner;
use super::sharing::{SharedSymbols, SiteGroup};
use super::staging_root::StagingRoot;
use super::target::{Target, TargetReport, TargetSetup};
use super::threads::{Reports, Threads, WorkerShare, report_channels};
use super::worker::WorkerReport;
use crate::addressing::Listening;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::{ReceiveEvent, ReceiveProgress};
use crate::kept_mark::KeptMark;
use crate::report::{ReceiveReport, SuspectBlock};
use crate::resume::known_manifest;
use crate::seal::{GroupKey, PacketOpener, RejectedPackets};
use crate::versions::Versions;
use crossbeam_channel::{Receiver as ChannelReceiver, never, select_biased};
use fontana_net::rx_thread::LocalLoss;
use fontana_net::{
    Channels, Clock, PanicError, Presence, ReceiveSocket, ReceiveThread, ReceiveThreadConfig,
    ReceivedBatch,
};
use fontana_proto::report::Reporter;
use fontana_proto::{
    ChannelId, Committed, Datagram, DatagramBatch, Destination, Driver, Effect, Endpoint, Instant,
    JobError, MetadataMode, ReceiveDone, ReceiveJob, Receiver, ReceiverConfig, ReceiverLimits,
    Scope, SessionKey, SplitMix64, Subscription, SubscriptionLimits, TableStatus, Verified,
    sent_toi,
};
use fontana_store::{Selection, SpillFile, StagingOptions, TargetDirectory};
use fontana_wire::{Hash, Manifest, StreamIndex, Toi, Tsi};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod events;
mod interfaces;
mod mirrors;
mod sharing;
mod staying;

/// Time for which nothing but ROUTE is received before the reception ends: a sender of FLUTE
/// repeats its table more often, and any host can send a packet that looks like ROUTE.
const ONLY_ROUTE: Duration = Duration::from_secs(3);
/// Time after the last new file until a list of them is taken for all: most senders repeat their
/// tables more often.
const LISTED_AFTER: Duration = Duration::from_secs(2);
/// Interval between progress events.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Longest time until a stop request is noticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);
/// Time without a turn of the deciding thread after which it did not run: its process was stopped,
/// or its host slept.
const STALLED: Duration = Duration::from_millis(300);
/// Bytes of one receive batch.
const BATCH_BYTES: usize = 256 << 10;
/// Bytes of payload from which on symbols stay in their batch until they are written. Of smaller
/// batches they are copied, so that slow traffic does not take all batches while a disk is busy.
const SHARED_FROM: usize = BATCH_BYTES / 8;

/// Packets per second of a sender that rests, at most.
const QUIET_PER_SECOND: u32 = 50;

/// Since when only versions that are not newer have been received, and the packets before.
#[derive(Clone, Copy)]
struct OldVersion {
    since: Duration,
    datagrams: u64,
}

/// The result of a reception.
pub(crate) struct ReceptionResult {
    pub(crate) report: ReceiveReport,
    /// The manifest of a newer version that was collected meanwhile, and its hash, which was
    /// checked.
    pub(crate) newer_manifest: Option<(Hash, Arc<Manifest>)>,
    /// What has reported, for the next version.
    pub(crate) reporter: Option<Reporter>,
}

/// The parts of a reception.
pub(super) struct Reception {
    pub(super) options: ReceiveOptions,
    pub(super) sockets: Vec<ReceiveSocket>,
    /// `None`: there is no group.
    pub(super) listening: Option<Listening>,
    pub(super) directory: Arc<TargetDirectory>,
    pub(super) selection: Selection,
    /// The directory's record of the publisher.
    pub(super) mark: Option<KeptMark>,
    pub(super) handle: Commands,
    pub(super) commands: ChannelReceiver<Command>,
    pub(super) into: ReceiveInto,
    /// `None`: there are no mirrors.
    pub(super) mirrors: Option<PreparedMirrors>,
    /// What has reported of the version before.
    pub(super) reporter: Option<Reporter>,
}

/// Receives until the reception is over.
pub(super) fn run(
    reception: Reception,
    stop: &CancellationToken,
    emit: &mut dyn FnMut(ReceiveEvent),
) -> Result<ReceptionResult, Error> {
    let (shares, limits) = (reception.options.shares(), reception.options.limits());
    let Reception {
        options,
        sockets,
        listening,
        directory,
        selection,
        mark,
        handle,
        commands,
        into,
        mirrors,
        reporter,
    } = reception;
    let manifest_limits = limits.manifest;
    let receiver = receiver(&options, &directory, limits);
    let (mut receiver, keys) =
        ReportKeys::of_receiver(receiver, &options, listening.as_ref(), reporter)?;
    let mut site = None;
    if let Some((config, own)) = SiteGroup::open(&options)? {
        (receiver, site) = (receiver.with_site(config), Some(own));
        accept_known(&options, &mut receiver);
    }
    tell_ungranted(&sockets, emit);
    let rx = receive_thread(sockets, shares.datagram_bytes)?;

    let (senders, reports) = report_channels();
    let abandoned = CancellationToken::new();
    let staging = StagingOptions { overwrite: options.overwrite, ..StagingOptions::default() };
    let disk = Arc::clone(&directory);
    let root = StagingRoot { directory, options: staging };
    let mut target = Target::new(TargetSetup {
        options: &options,
        root: root.clone(),
        into: &into,
        selection,
        mark,
        abandoned: abandoned.clone(),
        reports: senders.target.clone(),
    });
    let delivery = OrderedDelivery::new(into, root)?;
    let mut gives = false;
    let result = std::thread::scope(|scope| {
        let share = WorkerShare { count: options.workers.max(1), bytes: shares.worker_bytes };
        let spill = Arc::new(SpillFile::new(Arc::clone(&disk)));
        let threads = Threads::spawn(scope, share, &mut target, Arc::clone(&spill), senders)?;
        let runner = ReceiveRunner {
            threads,
            objects: BTreeMap::new(),
            delivery,
            slab: None,
            session_packets: 0,
            keys,
            shared: SharedSymbols::new(options.directory.clone()),
            spill,
        };
        let mut thread = DecidingThread {
            clock: Clock::start(),
            ran_at: Instant::ZERO,
            core: Driver::new(receiver, runner),
            channels: rx.channels(),
            presence: Presence::new(listening.iter().flat_map(Listening::interfaces).cloned()),
            listening,
            refused: BTreeSet::new(),
            joined: BTreeSet::new(),
            most_channels: 0,
            only_one_manifest: options.expectation.manifest.is_some(),
            expects_signature: options.expectation.publisher.is_some(),
            has_no_manifest: options.metadata != MetadataMode::Manifest,
            follows: options.versions == Versions::Newer,
            old: None,
            route_since: None,
            found: BTreeMap::new(),
            lists: options.lists,
            loss: LocalLoss::default(),
            opening: options.group_key.clone().map(Opening::new),
            losing: options.simulated_loss.map(Losing::new),
            directory: disk,
            site,
            held: options.held.clone(),
            message: Vec::new(),
            final_progress: None,
            outcome: Results::default(),
            mirrors: mirrors.map(|own| own.start(&options, manifest_limits)).transpose()?,
            emit: &mut *emit,
        };
        let over = thread.run(stop, &rx, &reports, &commands, &options);
        abandoned.cancel();
        // The channel of commands must stay open until now.
        drop(handle);
        thread.report_tolerated();
        gives = over.as_ref().is_ok_and(|over| over.gives());
        over.map(|over| thread.result(over))
    });
    let lacking = target.end(gives);
    emit_names(&reports, emit);
    let mut result = match (result, rx.stop()) {
        // The receive thread had ended by itself.
        (Err(_), Err(reason)) => Err(receive_failure(reason)),
        (result, _) => result,
    }?;
    lacking.add_to(&mut result.report);
    Ok(result)
}

/// The thread that drains the sockets into batches of so many bytes together.
fn receive_thread(
    sockets: Vec<ReceiveSocket>,
    datagram_bytes: usize,
) -> Result<ReceiveThread, Error> {
    let batches = (datagram_bytes / BATCH_BYTES).max(2);
    let config = ReceiveThreadConfig { batches, batch_size: BATCH_BYTES };
    ReceiveThread::spawn(sockets, config).map_err(Error::system("start the receive thread"))
}

/// Tells what the kernel has not granted, once for each setting.
fn tell_ungranted(sockets: &[ReceiveSocket], emit: &mut dyn FnMut(ReceiveEvent)) {
    let mut ungranted = BTreeMap::new();
    for refused in sockets.iter().flat_map(ReceiveSocket::ungranted) {
        ungranted.entry(refused.setting).or_insert(*refused);
    }
    ungranted.into_values().for_each(|refused| emit(ReceiveEvent::Ungranted(refused)));
}

/// Emits the names that files got after the end.
fn emit_names(reports: &Reports, emit: &mut dyn FnMut(ReceiveEvent)) {
    for report in reports.target.try_iter() {
        if let TargetReport::Named(file) = report {
            emit(ReceiveEvent::FileNamed(file));
        }
    }
}

/// Why the receive thread ended.
fn receive_failure(reason: std::io::Error) -> Error {
    let failed = |reason| Error::system("receive")(reason);
    reason.downcast::<PanicError>().map_or_else(failed, Error::from)
}

/// Accepts the expected content if an earlier run has saved its manifest: others may have what it
/// lacks when no session announces it any more.
fn accept_known(options: &ReceiveOptions, receiver: &mut Receiver) {
    let Some((hash, manifest)) = receiver.known_manifest() else { return };
    let expected = &options.expectation;
    let source = expected.sources.first().copied();
    let source = source.unwrap_or_else(|| options.addressing.address().ip());
    let from = SessionKey { source, tsi: expected.tsi.unwrap_or(Tsi(0)) };
    if let Err(reason) = receiver.accept_manifest(from, hash, &manifest) {
        tracing::debug!(?reason, "the saved manifest is not accepted");
    }
}

/// The endpoint, as the options describe it.
fn receiver(
    options: &ReceiveOptions,
    directory: &TargetDirectory,
    limits: ReceiverLimits,
) -> Receiver {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut receiver = Receiver::new(
        ReceiverConfig {
            acceptance: options.acceptance,
            metadata: options.metadata,
            known_manifest: options.known_manifest.clone().or_else(|| {
                known_manifest(directory, options.expectation.manifest?, &limits.manifest)
            }),
            policy: options.policy,
            limits,
            stays_until_verified: options.stays_until_verified,
            ..ReceiverConfig::new(options.expectation.clone(), wall.as_secs())
        },
        Subscription::Declared(SubscriptionLimits {
            // Those that the ticket has groups for.
            max_channels: options.max_channels.min(options.addressing.channels.count()),
            max_bytes_per_second: options.max_rate_bytes_per_second.unwrap_or(u64::MAX),
            ..SubscriptionLimits::default()
        }),
    );
    if options.watches_tables {
        receiver.watch_tables();
    }
    if options.deletes_expired {
        receiver.delete_expired();
    }
    receiver
}

struct DecidingThread<'a, 'b> {
    clock: Clock,
    /// When it ran last.
    ran_at: Instant,
    core: Driver<Receiver, ReceiveRunner>,
    channels: &'a Channels,
    listening: Option<Listening>,
    /// The interfaces that the groups are joined on.
    presence: Presence,
    /// Channels that could not be joined.
    refused: BTreeSet<u8>,
    joined: BTreeSet<u8>,
    most_channels: u8,
    /// The manifest's hash is known: no other manifest will do.
    only_one_manifest: bool,
    /// Heads are signed by an expected publisher.
    expects_signature: bool,
    /// Objects are dropped when they are complete: plain FLUTE and FCAST.
    has_no_manifest: bool,
    /// Only newer versions are accepted.
    follows: bool,
    /// Only versions that are not newer have been received.
    old: Option<OldVersion>,
    /// Time since which nothing but ROUTE has been received.
    route_since: Option<Duration>,
    /// Files of plain FLUTE that were found and are not open yet: they may be deselected.
    found: BTreeMap<Toi, ReceiveEvent>,
    /// Files are found and not received.
    lists: bool,
    loss: LocalLoss,
    /// Checks packets, if the group has a key.
    opening: Option<Opening>,
    losing: Option<Losing>,
    directory: Arc<TargetDirectory>,
    /// Where it shares with other receivers, if the user allows it.
    site: Option<SiteGroup>,
    /// Where it shows what it holds.
    held: Option<HeldContent>,
    /// The last message to them: allocated once.
    message: Vec<u8>,
    /// Set when the reception is over. It may stay for others for some time after it.
    final_progress: Option<ReceiveProgress>,
    outcome: Results,
    mirrors: Option<Mirrors>,
    emit: &'a mut (dyn FnMut(ReceiveEvent) + 'b),
}

/// The check of the group's packets.
struct Opening {
    opener: PacketOpener,
    /// Datagrams that this host has lost since the last valid packet.
    dropped_before: u64,
}

impl Opening {
    fn new(key: GroupKey) -> Self {
        Self { opener: PacketOpener::new(key), dropped_before: 0 }
    }

    fn rejected(&self) -> RejectedPackets {
        self.opener.rejected()
    }

    /// Removes all packets that no member of the group has sent, and decrypts the others.
    fn open(&mut self, batch: &mut ReceivedBatch) {
        let Self { opener, dropped_before } = self;
        *dropped_before = batch
            .retain(*dropped_before, |ChannelId(channel), datagram| opener.open(channel, datagram));
    }
}

/// The datagrams that are dropped on purpose.
struct Losing {
    random: SplitMix64,
    threshold: u64,
    /// Datagrams of the last batch that were not lost: allocated once.
    passed: Vec<Datagram>,
}

impl Losing {
    fn new(loss: SimulatedLoss) -> Self {
        let threshold = (loss.probability.clamp(0.0, 1.0) * u64::MAX as f64) as u64;
        Self { random: SplitMix64::new(loss.seed, 0), threshold, passed: Vec::new() }
    }

    /// The datagrams that are not lost.
    fn pass(&mut self, datagrams: &[Datagram]) -> Vec<Datagram> {
        let mut passed = std::mem::take(&mut self.passed);
        passed.clear();
        let mut dropped_before = 0;
        for datagram in datagrams {
            dropped_before += datagram.dropped_before;
            if self.random.next_u64() >= self.threshold {
                let dropped_before = std::mem::take(&mut dropped_before);
                passed.push(Datagram { dropped_before, ..datagram.clone() });
            }
        }
        passed
    }
}

impl DecidingThread<'_, '_> {
    fn run(
        &mut self,
        stop: &CancellationToken,
        rx: &ReceiveThread,
        reports: &Reports,
        commands: &ChannelReceiver<Command>,
        options: &ReceiveOptions,
    ) -> Result<Over, Error> {
        let mut last_progress = Duration::ZERO;
        let mut last_relevant = (0, Duration::ZERO);
        let mut is_concluded = false;
        loop {
            self.note_turn();
            self.watch_interfaces();
            self.poll(&DatagramBatch::EMPTY)?;
            self.drive_mirrors()?;
            let delivered = self.core.runner.delivery.reports();
            self.core.runner.flush(self.core.endpoint.session_packets());
            let elapsed = self.elapsed();
            if elapsed >= last_progress + PROGRESS_EVERY {
                last_progress = elapsed;
                let progress = self.progress();
                (self.emit)(ReceiveEvent::Progress(progress));
            }
            let relevant = self.core.endpoint.relevant_packets();
            // Packets of what is received already do not show that more will be announced.
            if relevant != last_relevant.0 && !self.core.endpoint.waits_for_announcements() {
                last_relevant = (relevant, elapsed);
            }
            let silent = options.give_up_after_silence.is_some_and(|limit| {
                elapsed.saturating_sub(last_relevant.1) >= limit
                    && self.core.endpoint.is_listening()
            });
            let is_listed = options.lists
                && elapsed.saturating_sub(last_relevant.1) >= LISTED_AFTER
                && self.core.endpoint.waits_for_announcements();
            let is_time_up =
                silent || is_listed || options.timeout.is_some_and(|timeout| elapsed >= timeout);
            let ends = is_time_up || stop.is_cancelled();
            // It listens again if the bytes of a file turned out to be wrong.
            is_concluded = (is_concluded || (ends && self.core.endpoint.conclude()))
                && !self.core.endpoint.is_listening();
            let over = if let Some(over) = self.outcome.over {
                Some(over)
            } else if ends && !is_concluded {
                Some(if stop.is_cancelled() { Over::Interrupted } else { Over::TimeUp })
            } else if self.has_heard_enough(elapsed, options.listen_after_old) {
                Some(Over::NothingNew)
            } else {
                None
            };
            let over = over.or_else(|| self.is_only_route(elapsed).then_some(Over::Hopeless));
            if let Some(over) = over {
                let progress = self.progress();
                (self.emit)(ReceiveEvent::Progress(progress));
                self.final_progress = Some(progress);
                self.stay(over, stop, rx, reports, options)?;
                return Ok(over);
            }
            let due = self.core.endpoint.poll_timeout();
            let patience =
                due.map_or(STOP_LATENCY, |due| due.saturating_since(self.now()).min(STOP_LATENCY));
            let mirrors = self.mirrors.as_ref().map_or_else(never, |own| own.reports().clone());
            let messages = self.site.as_ref().map_or_else(never, SiteGroup::messages);
            // Finished work first: it frees memory and decides when to stop listening.
            select_biased! {
                recv(reports.workers) -> report => if let Ok(report) = report { self.on_worker(report) },
                recv(reports.target) -> report => if let Ok(report) = report { self.on_target(report) },
                recv(reports.panics) -> panic => if let Ok(panic) = panic { return Err(panic.into()) },
                recv(delivered) -> report => if let Ok(report) = report { self.on_delivery(report) },
                recv(commands) -> command => if let Ok(Command::Accept(session)) = command {
                    self.core.endpoint.accept(session);
                },
                recv(mirrors) -> report => match report {
                    Ok(report) => self.on_mirror(report)?,
                    // The last thread has ended. A closed channel is always ready.
                    Err(_) => self.mirrors.iter_mut().for_each(Mirrors::end_reports),
                },
                recv(messages) -> batch => match batch {
                    Ok(batch) => self.on_messages(batch)?,
                    Err(_) => self.site = None,
                },
                recv(rx.batches()) -> batch => match batch {
                    Ok(batch) => self.on_batch(batch)?,
                    Err(_) => {
                        let error = std::io::Error::other("the receiving socket failed");
                        return Err(Error::system("receive")(error));
                    }
                },
                default(patience) => {}
            }
            let now = self.now();
            if due.is_some_and(|due| due <= now) {
                self.core.endpoint.handle_timeout(now);
            }
        }
    }

    /// Whether a receiver of plain FLUTE has received nothing but ROUTE for a while.
    fn is_only_route(&mut self, elapsed: Duration) -> bool {
        if !self.has_no_manifest || self.outcome.accepted.is_some() {
            return false;
        }
        if self.core.endpoint.table_status() != TableStatus::Route {
            self.route_since = None;
            return false;
        }
        elapsed.saturating_sub(*self.route_since.get_or_insert(elapsed)) >= ONLY_ROUTE
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.clock.now_nanos())
    }

    /// Tells the endpoint if this thread did not run for a while.
    fn note_turn(&mut self) {
        let now = self.now();
        let ran_at = std::mem::replace(&mut self.ran_at, now);
        if now >= ran_at + STALLED {
            self.core.endpoint.handle_stall(now);
        }
    }

    fn on_batch(&mut self, mut batch: ReceivedBatch) -> Result<(), Error> {
        self.note_turn();
        self.loss = batch.loss();
        if let Some(opening) = &mut self.opening {
            opening.open(&mut batch);
        }
        let batch = Arc::new(batch);
        let is_shared = batch.payload_bytes() >= SHARED_FROM;
        self.core.runner.slab = is_shared.then(|| Arc::clone(&batch));
        let result = self.handle_remaining(&batch.as_datagrams());
        self.core.runner.slab = None;
        result
    }

    /// Handles the datagrams of a batch that are not dropped on purpose.
    fn handle_remaining(&mut self, whole: &DatagramBatch<'_>) -> Result<(), Error> {
        let Some(losing) = &mut self.losing else { return self.handle_batch(whole) };
        let passed = losing.pass(whole.datagrams);
        let batch = DatagramBatch { slab: whole.slab, datagrams: &passed };
        let result = self.handle_batch(&batch);
        if let Some(losing) = &mut self.losing {
            losing.passed = passed;
        }
        result
    }

    fn handle_batch(&mut self, batch: &DatagramBatch<'_>) -> Result<(), Error> {
        self.core.endpoint.handle_datagrams(self.now(), batch);
        self.poll(batch)
    }

    /// Carries out everything that the endpoint asks for; `batch` is what it has just handled.
    fn poll(&mut self, batch: &DatagramBatch<'_>) -> Result<(), Error> {
        let now = self.now();
        self.core.runner.session_packets = self.core.endpoint.session_packets();
        loop {
            let Ok(effect) = self.core.poll(now, batch);
            match effect {
                Some(Effect::Event(event)) => self.on_event(event),
                Some(Effect::Join(ChannelId(channel))) => self.join(channel)?,
                Some(Effect::Leave(ChannelId(channel))) => self.leave(channel),
                Some(Effect::Transmit { to: Destination::Sender(to), .. }) => {
                    let (datagram, runner) = self.core.datagram();
                    runner.keys.iter().for_each(|keys| keys.send(datagram, to));
                }
                Some(Effect::Transmit { to: Destination::Site, symbol }) => {
                    self.send_to_site(symbol);
                }
                Some(Effect::Transmit { .. } | Effect::Later { .. }) => {}
                None => return Ok(()),
            }
        }
    }

    /// A session continues without a channel that cannot be joined, but not without channel 0.
    fn join(&mut self, channel: u8) -> Result<(), Error> {
        // The head may declare more channels than the ticket allows; those are ignored.
        let group = self.listening.as_ref().and_then(|listening| listening.group(channel));
        let Some(config) = group else {
            // An address that is no multicast group is received from all the time.
            self.joined.extend((channel == 0).then_some(channel));
            return Ok(());
        };
        match self.join_present(channel, &config) {
            Ok(()) => _ = self.joined.insert(channel),
            Err(error) if channel == 0 => return Err(error),
            Err(error) if self.refused.insert(channel) => {
                (self.emit)(ReceiveEvent::ChannelRefused { channel, error: Arc::new(error) });
            }
            _ => {}
        }
        self.most_channels = self.most_channels.max(self.joined.len() as u8);
        Ok(())
    }

    /// Drops what is waiting in the socket of a channel that is left.
    fn leave(&mut self, channel: u8) {
        self.joined.remove(&channel);
        let group = self.listening.as_ref().and_then(|listening| listening.group(channel));
        if group.is_some() {
            self.channels.leave(channel);
        }
    }

    fn on_worker(&mut self, report: WorkerReport) {
        let done = match report {
            WorkerReport::Solved { block, decoder, progress } => {
                ReceiveDone::Solved { block, decoder, progress }
            }
            WorkerReport::Recovered { block, hash } => ReceiveDone::Recovered { block, hash },
            WorkerReport::Located { block, location } => ReceiveDone::Located { block, location },
            WorkerReport::Chosen { block, chosen } => ReceiveDone::Chosen { block, chosen },
            WorkerReport::Read(read) => self.core.runner.shared.keep(read),
            WorkerReport::SpillRead { offset, bytes } => ReceiveDone::SpillRead { offset, bytes },
            WorkerReport::SpillRefused { offset } => ReceiveDone::SpillRefused { offset },
            WorkerReport::Failed { scope, error } => self.failed(scope, error),
        };
        self.core.endpoint.handle_done(self.now(), done);
    }

    fn on_target(&mut self, report: TargetReport) {
        self.report_tolerated();
        let done = match report {
            TargetReport::Compared { bytes, of } => {
                return (self.emit)(ReceiveEvent::Compared { bytes, of });
            }
            TargetReport::Found { toi, name, bytes } => {
                return (self.emit)(ReceiveEvent::FileFound { toi: sent_toi(toi), name, bytes });
            }
            TargetReport::Hashed { bytes, of } => {
                return (self.emit)(ReceiveEvent::Hashed { bytes, of });
            }
            TargetReport::Kept { toi, name, compared } => {
                let toi = sent_toi(toi);
                return (self.emit)(ReceiveEvent::FileKept { toi, name, compared });
            }
            TargetReport::Updated { toi, name } => {
                return (self.emit)(ReceiveEvent::FileUpdated { toi: sent_toi(toi), name });
            }
            TargetReport::Deleted { name } => {
                return (self.emit)(ReceiveEvent::FileDeleted { name });
            }
            TargetReport::Named(file) => return (self.emit)(ReceiveEvent::FileNamed(file)),
            TargetReport::Opened { scope, opened, room } => {
                if let Some(room) = room {
                    (self.emit)(ReceiveEvent::LittleRoom(room));
                }
                // All objects of a manifest share one staging directory.
                if let Some(staging) = opened.objects.first().and_then(|o| o.object.journal()) {
                    self.core.runner.threads.keep_synced(staging);
                }
                for toi in &opened.deselected {
                    self.found.remove(toi);
                }
                for object in &opened.objects {
                    if let Some(found) = self.found.remove(&object.toi) {
                        (self.emit)(found);
                    }
                }
                self.held.iter().for_each(|held| held.on_opened(&opened));
                let objects = opened.objects.into_iter();
                self.core
                    .runner
                    .objects
                    .extend(objects.map(|OpenedObject { toi, object }| (toi, object)));
                self.core.endpoint.deselect(opened.deselected);
                if let Some(part) = opened.part {
                    (self.emit)(ReceiveEvent::Selected(part));
                }
                if let Some(mirrors) = &mut self.mirrors {
                    mirrors.note_change();
                }
                ReceiveDone::Opened { scope, saved: opened.saved }
            }
            TargetReport::Committed { toi } => ReceiveDone::Committed(Committed::Content { toi }),
            TargetReport::CarouselRead { toi, instance } => {
                ReceiveDone::Committed(Committed::Descriptor { toi, instance })
            }
            TargetReport::Mismatched { toi, digest, error } => {
                let error = self.note_failure(Scope::Object(toi), error);
                ReceiveDone::Mismatched { toi, digest, error }
            }
            TargetReport::ItemFailed { error } => return self.outcome.items.push(Arc::new(error)),
            TargetReport::Finished => ReceiveDone::Finished,
            TargetReport::Failed { scope, error } => self.failed(scope, error),
        };
        self.core.endpoint.handle_done(self.now(), done);
    }

    /// Reports what the disk refused that the content does not need.
    fn report_tolerated(&mut self) {
        for (call, errno) in self.directory.take_tolerated() {
            let (path, error) = (self.directory.path().to_owned(), errno.into());
            (self.emit)(ReceiveEvent::Tolerated { call, path, error: Arc::new(error) });
        }
    }

    fn begin_stream(&mut self, index: &StreamIndex, verified: Verified) {
        self.outcome.accepted = Some(verified);
        if let Err(error) = self.core.runner.delivery.begin_stream(index) {
            self.outcome.failures.insert(Scope::Session, Arc::new(error));
            self.outcome.over = Some(Over::GivenUp);
        }
    }

    fn on_delivery(&mut self, report: DeliveryReport) {
        match report {
            DeliveryReport::Delivered { number } => {
                let toi = StreamIndex::toi(u32::try_from(number).unwrap_or(u32::MAX));
                if self.core.runner.delivery.stream().is_some()
                    && self.core.runner.objects.remove(&toi).is_some()
                {
                    self.core.runner.threads.hand_to_target(ReceiveJob::Commit { toi });
                }
            }
            DeliveryReport::Finished => self.core.runner.threads.hand_to_target(ReceiveJob::Finish),
            DeliveryReport::Failed(error) if error.is_closed_consumer() => {
                self.outcome.over = Some(Over::ConsumerGone);
            }
            DeliveryReport::Failed(error) => {
                self.outcome.failures.entry(Scope::Session).or_insert(Arc::new(error));
                self.outcome.over = Some(Over::GivenUp);
            }
        }
    }

    fn failed(&mut self, scope: Scope, error: Error) -> ReceiveDone {
        ReceiveDone::Failed { scope, error: self.note_failure(scope, error) }
    }

    /// Notes a failure, unless the object was dropped before.
    fn note_failure(&mut self, scope: Scope, error: Error) -> JobError {
        let error = Arc::new(error);
        let job_error = Error::of_job(&error);
        let is_dropped = |toi| self.core.endpoint.object_progress(toi).is_none();
        if !matches!(scope, Scope::Object(toi) if is_dropped(toi)) {
            self.outcome.add_failure(scope, error, self.has_no_manifest);
        }
        job_error
    }

    fn progress(&self) -> ReceiveProgress {
        ReceiveProgress {
            elapsed: self.elapsed(),
            stats: self.core.endpoint.stats(),
            source_symbols: self.core.endpoint.source_symbols(),
            symbols_wanted: self.core.endpoint.symbols_wanted(),
            channels: self.joined.len() as u8,
            most_channels: self.most_channels,
            kernel_drops: self.loss.kernel_drops,
            queue_drops: self.loss.local_drops,
            rejected: self.opening.as_ref().map(Opening::rejected).unwrap_or_default(),
        }
    }

    /// Whether only old versions have been received for so long, at a rate that is worth leaving
    /// the group: a sender that rests costs nothing, and its next version is not missed.
    fn has_heard_enough(&mut self, elapsed: Duration, limit: Duration) -> bool {
        let Some(OldVersion { since, datagrams }) = self.old else { return false };
        let heard_for = elapsed.saturating_sub(since);
        if heard_for < limit {
            return false;
        }
        let heard = self.core.endpoint.stats().datagrams;
        let is_quiet = heard.saturating_sub(datagrams) as f64
            <= f64::from(QUIET_PER_SECOND) * heard_for.as_secs_f64();
        if is_quiet {
            self.old = Some(OldVersion { since: elapsed, datagrams: heard });
        }
        !is_quiet
    }

    fn result(mut self, over: Over) -> ReceptionResult {
        let progress = self.final_progress.take().unwrap_or_else(|| self.progress());
        let newer_manifest = self.core.endpoint.newer_manifest();
        self.outcome.table = self.core.endpoint.table_status();
        self.outcome.shared = self.site.as_ref().map(|_| self.core.endpoint.share_stats());
        self.outcome.is_known_to_sender = self.core.endpoint.is_known_to_sender();
        let suspect = self.core.endpoint.suspect_block();
        self.outcome.suspect =
            suspect.map(|block| SuspectBlock { toi: block.toi, block: block.sbn.0 });
        let mut report = self.outcome.summary(over, progress, self.core.runner.delivery.end());
        if let Some(mirrors) = &self.mirrors {
            mirrors.report(&mut report);
        }
        self.held.iter().for_each(HeldContent::end);
        ReceptionResult { report, newer_manifest, reporter: self.core.endpoint.take_reporter() }
    }
}
