//! The implementation of [`StreamSender`](crate::stream::StreamSender).

use super::call::CallSigner;
use super::checks::{Numbers, check_addressing};
use super::driver::NEAR;
use super::egress::Egress;
use super::emitted::Emitted;
use super::following::{StreamProgress, StreamStage};
use super::prepared::{PreparedSymbols, Spacing};
use super::queue::SendQueue;
use super::reports::{Demands, ReportThread, ReportedSession};
use super::sealing::Sealing;
use super::update::{StreamUpdate, Update};
use crate::addressing::Addressing;
use crate::cancellation::CancellationToken;
use crate::error::{Error, SetupError, TransferError};
use crate::event::{SendEvent, SendProgress};
use crate::format::FontanaFormat;
use crate::geometry::{self, Code};
use crate::memory;
use crate::outcome::Outcome;
use crate::rate::Rate;
use crate::report::SendReport;
use crate::reporting::{AwaitedReceivers, Crowd, ReportCollection};
use crate::seal::{GroupSeal, PacketSealer};
use crossbeam_channel::{Receiver, TryRecvError, bounded};
use cut::{Cutter, Prepared};
use fontana_fec::codes::raptorq;
use fontana_net::clock::wake_promptly;
use fontana_net::thread::spawn_scoped;
use fontana_net::{Alarm, Clock, SendSocket};
use fontana_proto::{
    BatchId, DatagramBatch, Destination, Driver, Effect, Endpoint, Finished, HeadExpiry, Instant,
    JobRunner, Pacer, SendDone, SendJob, SenderEvent, StreamRedundancy, StreamSender,
    StreamSenderConfig, StreamStart,
};
use fontana_wire::{
    ChannelGroups, InstanceId, ReceiverState, RelativePath, SecretKey, Ticket, Tsi,
};
use std::convert::Infallible;
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod cut;

/// The options of a stream. [`StreamSenderBuilder`](crate::stream::StreamSenderBuilder) documents
/// the fields.
#[derive(Debug)]
pub(crate) struct StreamOptions {
    pub(crate) name: Vec<u8>,
    pub(crate) addressing: Addressing,
    pub(crate) rate: Rate,
    pub(crate) peak_window: Duration,
    pub(crate) controlled_network: bool,
    pub(crate) tsi: Option<Tsi>,
    pub(crate) block_symbols: u32,
    pub(crate) symbol_size: Option<u16>,
    pub(crate) redundancy: StreamRedundancy,
    pub(crate) announce: Duration,
    pub(crate) reports: Option<ReportCollection>,
    pub(crate) waits_for: u32,
    pub(crate) signer: Option<SecretKey>,
    pub(crate) expires_after: Option<Duration>,
    pub(crate) group_seal: Option<GroupSeal>,
    pub(crate) memory: usize,
    pub(crate) seed: Option<u64>,
}

impl StreamOptions {
    pub(crate) fn new(name: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            addressing: Addressing::default(),
            rate: Rate::DEFAULT,
            peak_window: Pacer::PEAK_WINDOW,
            controlled_network: false,
            tsi: None,
            block_symbols: geometry::DEFAULT_BLOCK_SYMBOLS,
            symbol_size: None,
            redundancy: StreamRedundancy::Fixed { permille: 0 },
            announce: Duration::ZERO,
            reports: None,
            waits_for: 0,
            signer: None,
            expires_after: Some(FontanaFormat::DEFAULT_LIFETIME),
            group_seal: None,
            memory: memory::DEFAULT_MEMORY,
            seed: None,
        }
    }
}

/// A stream that is ready to be sent: the socket is open, nothing is read.
pub struct PreparedStream {
    ticket: Ticket,
    token: CancellationToken,
    socket: SendSocket,
    sealer: Option<PacketSealer>,
    sender: StreamSender,
    cutter: Cutter,
    /// Collects reports, if they are asked for.
    reports: Option<Reported>,
}

/// The collecting thread of a stream, and what the pacing thread needs for it.
struct Reported {
    thread: ReportThread,
    signer: CallSigner,
    progress: Arc<StreamProgress>,
}

/// Updates of the collecting thread that wait for the pacing thread: more reports and requests than
/// arrive in a second.
const MAX_UPDATES: usize = 512;
/// Interval between progress events.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Longest time until a stop request is noticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);
/// Largest number of versions of one stream, so that those of the next stream under the same key
/// are higher. A fragment has two, so the next stream would have to start within a second.
const VERSIONS_PER_SECOND: u64 = 1 << 24;

impl PreparedStream {
    /// Opens the socket and makes a key if none was given. `token` ends it.
    pub(crate) fn prepare(options: StreamOptions, token: CancellationToken) -> Result<Self, Error> {
        let numbers = Numbers {
            rate: options.rate,
            peak_window: options.peak_window,
            tsi: options.tsi,
            memory: options.memory,
            symbol_size: options.symbol_size,
            block_symbols: options.block_symbols,
        };
        numbers.check(raptorq::MAX_SOURCE_SYMBOLS)?;
        check_addressing(&options.addressing, options.controlled_network)?;
        if options.addressing.channels.count() > 1 {
            return Err(SetupError::OneChannelOnly("a stream").into());
        }
        let name = single_component(&options.name)?;
        let egress = Egress::of(&options.addressing)?;
        let symbol_size = egress.symbol_size(options.symbol_size, Code::RaptorQ, 0)?;
        let version = egress.version;
        let socket = egress.socket(&options.addressing)?;
        let sealing = Sealing::draw(options.group_seal.as_ref(), None)?;
        socket.check_size(egress.payload_bytes(symbol_size, Code::RaptorQ, sealing.bytes()))?;
        let signer = options.signer.clone().map_or_else(crate::system::generate_key, Ok)?;
        let seed = options.seed.map_or_else(crate::system::random_u64, Ok)?;
        // 0 is not a TSI in ALC (RFC 5775, section 2.1).
        let tsi = options.tsi.unwrap_or(Tsi(u64::from(seed as u32).max(1)));
        let source = socket.local_address().ip();
        let address = options.addressing.ticket_address();
        let ticket = Ticket {
            sources: Some(source).filter(|source| !source.is_unspecified()).into_iter().collect(),
            group: address.ip(),
            port: address.port(),
            tsi,
            key: Some(signer.public_key()),
            manifest: None,
            near: None,
            channels: ChannelGroups::default(),
            web: Vec::new(),
        };
        let most = memory::fragment_bytes(options.memory, options.redundancy);
        let most = most / usize::from(symbol_size);
        let max_symbols = options.block_symbols.min(most.max(1) as u32);
        let reports =
            Reported::prepare(&options, sealing.instance, &signer, tsi, source, symbol_size)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sender = StreamSender::new(StreamSenderConfig {
            tsi,
            instance: sealing.instance,
            signer,
            first_version: since.as_secs() * VERSIONS_PER_SECOND,
            name,
            symbol_size,
            control_symbol_size: geometry::control_symbol_size(symbol_size),
            max_symbols,
            redundancy: options.redundancy,
            rate_bytes_per_second: options.rate.as_bytes_per_second()
                / options.addressing.copies().max(1) as u64,
            packet_overhead: version.header_size() as u32,
            peak_window: options.peak_window,
            start: match options.waits_for {
                0 => StreamStart::After(options.announce),
                _ => StreamStart::WhenBegun,
            },
            expiry: options.expires_after.map(|lifetime| HeadExpiry {
                lifetime: lifetime.max(FontanaFormat::LEAST_LIFETIME),
                started_at_unix_seconds: since.as_secs(),
            }),
            seal: sealing.session,
            seed,
        })?;
        let cutter = Cutter { symbol_size, max_symbols, redundancy: options.redundancy };
        Ok(Self { ticket, token, socket, sealer: sealing.sealer, sender, cutter, reports })
    }

    /// The ticket for receivers.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Sends the bytes of `reader` until it ends, or `token` is cancelled.
    pub(crate) fn run(
        self,
        reader: impl Read + Send + 'static,
        token: &CancellationToken,
        emit: &mut dyn FnMut(SendEvent),
    ) -> Result<SendReport, Error> {
        let symbol_size = usize::from(self.cutter.symbol_size);
        let alarm = Alarm::for_this_thread();
        wake_promptly();
        let fragments = self.cutter.spawn(reader, alarm.bell())?;
        let fragment_symbols =
            FragmentSymbols { symbol_size, prepared: PreparedSymbols::default() };
        std::thread::scope(|scope| {
            let (update, updates) = bounded(MAX_UPDATES);
            let collects = CancellationToken::new();
            let mut following = None;
            if let Some(Reported { thread, signer, progress }) = self.reports {
                let (over, bell) = (collects.clone(), alarm.bell());
                // The receiving end is dropped with this thread, which ends it in any case.
                spawn_scoped(scope, "reports", move || thread.run(&update, &bell, &over))?;
                let (awaited, crowd, is_over) = (None, None, false);
                let parts =
                    Following { updates, collects, signer, progress, awaited, crowd, is_over };
                following = Some(parts);
            }
            let thread = PacingThread {
                clock: Clock::start(),
                alarm,
                queue: SendQueue::new(self.socket, self.sealer),
                core: Driver::new(self.sender, fragment_symbols),
                fragments: Some(fragments),
                following,
                failures: Vec::new(),
                interrupted: false,
                is_sent: false,
            };
            thread.run(token, emit)
        })
    }
}

impl Reported {
    fn prepare(
        options: &StreamOptions,
        instance: InstanceId,
        signer: &SecretKey,
        tsi: Tsi,
        local: IpAddr,
        symbol_size: u16,
    ) -> Result<Option<Self>, Error> {
        let needs = |needs| SetupError::Reports { needs };
        let repairs = matches!(options.redundancy, StreamRedundancy::Reported { .. });
        let Some(reports) = &options.reports else {
            return match (repairs, options.waits_for) {
                (false, 0) => Ok(None),
                (true, _) => Err(SetupError::RepairOnDemand {
                    needs: "reports, with which receivers request",
                }
                .into()),
                (false, _) => Err(needs("to be asked for before receivers can be counted").into()),
            };
        };
        if reports.rate.is_some() || reports.max_age.is_some() {
            return Err(needs(
                "a session of files, to follow its receivers' rate or limit the age of repair",
            )
            .into());
        }
        let session = ReportedSession {
            instance,
            tsi,
            manifest: ReceiverState::whole_stream(instance),
            local,
            symbol_size,
            signer: signer.clone(),
            group_key: options.group_seal.as_ref().map(|seal| seal.key.clone()),
        };
        let progress = Arc::new(StreamProgress::default());
        let stage = StreamStage::new(Arc::clone(&progress), options.waits_for, repairs);
        let demands = Demands { repair: None, rate: None };
        let thread = ReportThread::open(reports, session, demands, Some(stage))?;
        let signer = thread.signer().clone();
        Ok(Some(Self { thread, signer, progress }))
    }
}

fn single_component(name: &[u8]) -> Result<RelativePath, Error> {
    let shown = || fontana_wire::Printable(name).to_string();
    let path =
        RelativePath::new(name).map_err(|error| SetupError::Name { name: shown(), error })?;
    if path.components().count() > 1 {
        return Err(SetupError::StreamName { name: shown() }.into());
    }
    Ok(path)
}

/// The symbols of the fragments that are being sent.
struct FragmentSymbols {
    symbol_size: usize,
    prepared: PreparedSymbols,
}

impl JobRunner<SendJob> for FragmentSymbols {
    type Done = SendDone;
    type Error = Infallible;

    fn run(
        &mut self,
        _now: Instant,
        job: SendJob,
        _batch: &DatagramBatch<'_>,
    ) -> Result<Option<Finished<SendDone>>, Infallible> {
        match job {
            // Fragments come with their symbols.
            SendJob::Prepare { .. } => {}
            SendJob::Release { batch } => self.prepared.release(batch),
        }
        Ok(None)
    }
}

impl FragmentSymbols {
    /// Stores the symbols of a batch, one after another.
    fn store(&mut self, batch: u64, symbols: Vec<u8>) {
        let batch = BatchId(batch);
        self.prepared.request(batch, 0);
        self.prepared.store(batch, symbols, Spacing { header: 0, symbol: self.symbol_size });
    }
}

/// What receivers report, as the pacing thread follows it.
struct Following {
    updates: Receiver<Update>,
    /// Ends the collecting thread.
    collects: CancellationToken,
    signer: CallSigner,
    progress: Arc<StreamProgress>,
    /// The receivers that the stream waits for, or has waited for.
    awaited: Option<AwaitedReceivers>,
    /// What is known of the receivers.
    crowd: Option<Arc<Crowd>>,
    /// The collecting thread has ended.
    is_over: bool,
}

/// The thread that sends each packet when it is due. It waits only for a producer without data.
struct PacingThread {
    clock: Clock,
    /// Rung after each fragment and at the end of the stream.
    alarm: Alarm,
    queue: SendQueue,
    core: Driver<StreamSender, FragmentSymbols>,
    /// Further fragments; `None` after the last one.
    fragments: Option<Receiver<Result<Prepared, Error>>>,
    following: Option<Following>,
    failures: Vec<Arc<Error>>,
    interrupted: bool,
    /// The stream is sent to its end.
    is_sent: bool,
}

impl PacingThread {
    fn run(
        mut self,
        token: &CancellationToken,
        emit: &mut dyn FnMut(SendEvent),
    ) -> Result<SendReport, Error> {
        let (mut last_progress, mut emitted) = (Duration::ZERO, Emitted::new(&self.queue));
        loop {
            self.take_updates(emit);
            self.take_fragments();
            self.send()?;
            self.want_call();
            let elapsed = Duration::from_nanos(self.clock.now_nanos());
            let ended = self.has_ended();
            if ended || elapsed >= last_progress + PROGRESS_EVERY {
                last_progress = elapsed;
                let stats = self.core.endpoint.stats();
                let (source_symbols, lost) = (stats.source_symbols, self.queue.lost);
                let progress =
                    SendProgress { elapsed, stats, source_symbols, lost, first_sent: true };
                emitted.update(&self.failures, &self.queue, progress, emit);
            }
            if ended {
                self.failures.extend(emitted.end(&self.queue, elapsed, emit));
                if let Some(following) = &self.following {
                    following.collects.cancel();
                    // What receivers have reported until now, at the end.
                    for update in following.updates.clone() {
                        self.take_update(update, emit);
                    }
                }
                return Ok(self.report(elapsed));
            }
            if token.is_cancelled() {
                self.interrupt();
            }
            self.wait();
        }
    }

    /// Whether the stream is sent, and receivers are waited for no longer.
    fn has_ended(&self) -> bool {
        // The last roll call tells receivers that they are known.
        let is_told = |over| over && !self.core.endpoint.is_announcing();
        let waits = |following: &Following| !is_told(following.is_over) && !self.interrupted;
        self.is_sent && !self.following.as_ref().is_some_and(waits)
    }

    fn take_updates(&mut self, emit: &mut dyn FnMut(SendEvent)) {
        while let Some(following) = &self.following
            && let Ok(update) = following.updates.try_recv()
        {
            self.take_update(update, emit);
        }
    }

    fn take_update(&mut self, update: Update, emit: &mut dyn FnMut(SendEvent)) {
        let Some(following) = &mut self.following else { return };
        match update {
            Update::RollCall(object) => self.core.endpoint.announce(*object),
            Update::Stream(update) => self.take_stream_update(update, emit),
            Update::Report(status) => emit(SendEvent::Report(status)),
            Update::Crowd(crowd) => {
                following.crowd = Some(Arc::clone(&crowd));
                emit(SendEvent::Crowd(crowd));
            }
            Update::Over => {
                following.is_over = true;
                if let Some(awaited) = following.awaited.take_if(|it| !it.is_over()) {
                    let AwaitedReceivers { receivers, known, .. } = awaited;
                    let error = TransferError::ReceiversAbsent { awaited: receivers, known };
                    self.failures.push(Arc::new(error.into()));
                    self.abandon();
                }
            }
            // Of another kind of session.
            Update::Losses
            | Update::Repair(_)
            | Update::Resend(_)
            | Update::Rate { .. }
            | Update::Slow(_) => {}
        }
    }

    fn take_stream_update(&mut self, update: StreamUpdate, emit: &mut dyn FnMut(SendEvent)) {
        let now = self.now();
        let sender = &mut self.core.endpoint;
        let Some(following) = &mut self.following else { return };
        match update {
            StreamUpdate::Call { mut call, receivers, round_trip } => {
                call.repair = sender.repair_call(now, receivers, round_trip);
                if let Some(object) = following.signer.object(&call) {
                    sender.announce(object);
                }
            }
            StreamUpdate::Request(request) => sender.handle_request(now, &request),
            StreamUpdate::Loss { ppm } => sender.note_loss(ppm),
            StreamUpdate::Followed(is_followed) => sender.set_followed(is_followed),
            StreamUpdate::Awaited(awaited) => {
                if awaited.is_over() {
                    sender.begin(now);
                }
                following.awaited = Some(awaited.clone());
                emit(SendEvent::Awaited(awaited));
            }
        }
    }

    /// Asks the collecting thread for a roll call, if a repair round begins.
    fn want_call(&self) {
        if let Some(following) = &self.following
            && self.core.endpoint.wants_call(self.now())
        {
            following.progress.want_call();
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    /// Sends what may be sent now.
    fn send(&mut self) -> Result<(), Error> {
        let now = self.now();
        loop {
            let Ok(effect) = self.core.poll(now, &DatagramBatch::EMPTY);
            match effect {
                Some(Effect::Transmit { to: Destination::Channel(channel), symbol }) => {
                    let (header, runner) = self.core.datagram();
                    self.queue.push(channel, header, symbol.as_ref(), &mut runner.prepared)?;
                }
                Some(Effect::Event(SenderEvent::Finished)) => {
                    self.is_sent = true;
                    self.following.iter().for_each(|following| following.progress.set_sent());
                }
                Some(Effect::Event(SenderEvent::Withdrawn { .. })) => {}
                // A sender uses channels only, and joins none.
                Some(
                    Effect::Transmit { .. }
                    | Effect::Join(_)
                    | Effect::Leave(_)
                    | Effect::Later { .. },
                ) => {}
                None => {
                    let prepared = &mut self.core.runner.prepared;
                    self.queue.flush(prepared)?;
                    prepared.recycle();
                    return Ok(());
                }
            }
        }
    }

    /// Accepts the fragments that are ready and for which there is room.
    fn take_fragments(&mut self) {
        while let Some(fragments) = &self.fragments
            && self.core.endpoint.wants_fragment()
        {
            match fragments.try_recv() {
                Ok(Ok(Prepared { length, hash, source, repair })) => {
                    if let Some(number) = self.core.endpoint.push_fragment(length, hash) {
                        let batch = 2 * u64::from(number);
                        self.core.runner.store(batch, source);
                        self.core.runner.store(batch + 1, repair);
                    } else {
                        // The stream has more fragments than can be numbered.
                        self.core.endpoint.finish(false);
                    }
                }
                Ok(Err(error)) => {
                    self.failures.push(Arc::new(error));
                    self.core.endpoint.finish(false);
                    self.fragments = None;
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.core.endpoint.finish(true);
                    self.fragments = None;
                }
            }
        }
    }

    /// Waits until something may be sent, a fragment is ready for which there is room, or receivers
    /// have requested something.
    fn wait(&self) {
        let now = self.now();
        let latest = now + STOP_LATENCY;
        let due = self.core.endpoint.poll_timeout().map_or(latest, |due| due.min(latest));
        let is_ready = self.fragments.is_some() && self.core.endpoint.wants_fragment();
        if is_ready || due > now + NEAR {
            self.alarm.wait_until(&self.clock, due.as_nanos());
        } else {
            self.clock.sleep_until(due.as_nanos());
        }
    }

    fn interrupt(&mut self) {
        if !self.interrupted {
            self.interrupted = true;
            self.abandon();
        }
    }

    /// Announces the end to receivers, and sends nothing else.
    fn abandon(&mut self) {
        self.fragments = None;
        self.core.runner.prepared.clear();
        self.core.endpoint.abandon();
    }

    fn report(self, elapsed: Duration) -> SendReport {
        let start = if self.interrupted { Outcome::Interrupted } else { Outcome::Complete };
        let outcome = self.failures.iter().fold(start, |o, error| o.worst(error.outcome()));
        let crowd = self.following.and_then(|following| following.crowd);
        let summary = crowd.as_ref().map(|crowd| &crowd.summary);
        let lacks = summary.is_some_and(|s| s.expected.is_some() && !s.is_as_expected());
        let outcome = if lacks { outcome.worst(Outcome::ReceiversIncomplete) } else { outcome };
        let stats = self.core.endpoint.stats();
        SendReport {
            outcome,
            elapsed,
            stats,
            lost: self.queue.lost,
            failures: self.failures,
            solved_bytes: 0,
            scratch_bytes: 0,
            crowd,
        }
    }
}
