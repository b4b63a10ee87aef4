//! The implementation of [`StreamSender`](crate::stream::StreamSender).

use super::answers::{Keys, ReturnPath};
use super::checks::{Numbers, check_addressing};
use super::egress::Egress;
use super::pacing::{Core, PacingThread, SendingRunner, Supply};
use super::prepared::{PreparedSymbols, Spacing};
use super::queue::SendQueue;
use super::rate::rate_config;
use super::reports::{Demands, ReportedSession, Reports, is_near, reachable};
use super::sealing::Sealing;
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
use crate::reporting::ReportCollection;
use crate::seal::{ContentKey, GroupSeal, PacketSealer};
use crossbeam_channel::{Receiver, TryRecvError};
use cut::{Cutter, Prepared};
use fontana_fec::codes::raptorq;
use fontana_net::clock::wake_promptly;
use fontana_net::{Alarm, Clock, SendSocket};
use fontana_proto::report::AwaitedReceivers;
use fontana_proto::{
    BatchId, DatagramBatch, Driver, Finished, HeadExpiry, Instant, JobRunner, Pacer, RepairBy,
    SendDone, SendJob, SenderEvent, StreamRedundancy, StreamSender, StreamSenderConfig,
    StreamStart,
};
use fontana_wire::{ReceiverState, RelativePath, SecretKey, Ticket, TicketSecret, Tsi};
use std::convert::Infallible;
use std::io::Read;
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
    pub(crate) block_symbols: Option<u32>,
    pub(crate) symbol_size: Option<u16>,
    pub(crate) redundancy: StreamRedundancy,
    pub(crate) announce: Duration,
    pub(crate) reports: Option<ReportCollection>,
    pub(crate) waits_for: u32,
    pub(crate) signer: Option<SecretKey>,
    pub(crate) expires_after: Option<Duration>,
    pub(crate) group_seal: Option<GroupSeal>,
    pub(crate) key: Option<ContentKey>,
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
            block_symbols: None,
            symbol_size: None,
            redundancy: StreamRedundancy::Fixed { permille: 0 },
            announce: Duration::ZERO,
            reports: None,
            waits_for: 0,
            signer: None,
            expires_after: Some(FontanaFormat::DEFAULT_LIFETIME),
            group_seal: None,
            key: None,
            memory: memory::DEFAULT_MEMORY,
            seed: None,
        }
    }

    /// Source symbols of a fragment, as far as memory permits.
    fn fragment_symbols(&self, symbol_size: u16) -> u32 {
        let requested = matches!(self.redundancy, StreamRedundancy::Reported { .. });
        self.block_symbols.unwrap_or_else(|| match requested {
            false => geometry::DEFAULT_BLOCK_SYMBOLS,
            true => {
                let bytes = self.rate_bytes_per_second() * LISTED_SECONDS;
                let symbols =
                    bytes / StreamSender::PENDING_CAPACITY as u64 / u64::from(symbol_size);
                let symbols = u32::try_from(symbols).unwrap_or(u32::MAX);
                symbols.clamp(LEAST_REQUESTED, geometry::DEFAULT_BLOCK_SYMBOLS)
            }
        })
    }

    /// The rate to each address, or the highest one if it follows receivers.
    fn rate_bytes_per_second(&self) -> u64 {
        self.rate.as_bytes_per_second() / self.addressing.copies().max(1) as u64
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
    /// Where receivers report, if they are asked to.
    answers: Option<ReturnPath>,
}

/// Seconds that the fragments cover which receivers can request: some rounds of requests.
const LISTED_SECONDS: u64 = 4;
/// Fewest source symbols of a fragment whose repair symbols are requested, if memory permits.
const LEAST_REQUESTED: u32 = 1_000;

/// Largest number of versions of one stream, so that those of the next stream under the same key
/// are higher. A fragment has two, so the next stream would have to start within a second.
const VERSIONS_PER_SECOND: u64 = 1 << 24;

impl PreparedStream {
    /// Opens the socket and makes a key if none was given. `token` ends it.
    pub(crate) fn prepare(
        mut options: StreamOptions,
        token: CancellationToken,
    ) -> Result<Self, Error> {
        let numbers = Numbers {
            rate: options.rate,
            peak_window: options.peak_window,
            tsi: options.tsi,
            memory: options.memory,
            symbol_size: options.symbol_size,
            block_symbols: options.block_symbols.unwrap_or(geometry::DEFAULT_BLOCK_SYMBOLS),
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
        let secret = complete_keys(&mut options);
        let group = options.group_seal.as_ref();
        let sealing = Sealing::draw(group.map(|group| group.mode), None)?;
        let sealer = sealing.sealer(group);
        socket.check_size(egress.payload_bytes(symbol_size, Code::RaptorQ, sealing.bytes()))?;
        let signer = options.signer.clone().map_or_else(crate::system::generate_key, Ok)?;
        let seed = options.seed.map_or_else(crate::system::random_u64, Ok)?;
        // 0 is not a TSI in ALC (RFC 5775, section 2.1).
        let tsi = options.tsi.unwrap_or(Tsi(u64::from(seed as u32).max(1)));
        let source = socket.local_address().ip();
        let address = options.addressing.ticket_address();
        let ticket = Ticket {
            sources: Some(source).filter(|source| !source.is_unspecified()).into_iter().collect(),
            key: Some(signer.public_key()),
            secret,
            ..Ticket::new(address, tsi)
        };
        let most = memory::fragment_bytes(options.memory, options.redundancy);
        let most = most / usize::from(symbol_size);
        let max_symbols = options.fragment_symbols(symbol_size).min(most.max(1) as u32);
        let fragment_bytes = max_symbols as usize * usize::from(symbol_size);
        let requested_permille = memory::requested_permille(options.memory, fragment_bytes);
        let session = ReportedSession {
            instance: sealing.instance,
            tsi,
            manifest: ReceiverState::whole_stream(sealing.instance),
            local: reachable(socket.local_address(), &options.addressing),
            is_near: is_near(&options.addressing),
            symbol_size,
            signer: signer.clone(),
            group_key: options.group_seal.as_ref().map(|seal| seal.key.clone()),
        };
        let packet_bytes = egress.packet_bytes(symbol_size, Code::RaptorQ, sealing.bytes());
        let reports = prepare_reports(&options, session, packet_bytes)?;
        let ticket = Ticket { ask: reports.as_ref().map(Reports::port), ..ticket };
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
            requested_permille,
            rate_bytes_per_second: options.rate_bytes_per_second(),
            packet_overhead: version.header_size() as u32,
            peak_window: options.peak_window,
            start: match &reports {
                Some(_) if options.waits_for > 0 => StreamStart::WhenFollowed,
                _ => StreamStart::After(options.announce),
            },
            expiry: options.expires_after.map(|lifetime| HeadExpiry {
                lifetime: lifetime.max(FontanaFormat::LEAST_LIFETIME),
                started_at_unix_seconds: since.as_secs(),
            }),
            seal: sealing.session,
            seed,
        })?;
        let (sender, answers) = match reports {
            Some(Reports { path, config }) => {
                (sender.with_collection(config, Instant::ZERO), Some(path))
            }
            None => (sender, None),
        };
        let redundancy = options.redundancy;
        let cutter = Cutter { symbol_size, max_symbols, redundancy, requested_permille };
        Ok(Self { ticket, token, socket, sealer, sender, cutter, answers })
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
        let mut sender = self.sender;
        std::thread::scope(|scope| {
            let answers = match (self.answers, sender.collection()) {
                (Some(path), Some(collection)) => {
                    Some(path.start(scope, collection, alarm.bell())?)
                }
                _ => None,
            };
            let keys = Keys::new(answers.as_ref());
            let fragment_symbols =
                FragmentSymbols { symbol_size, prepared: PreparedSymbols::default(), keys };
            let supply = Fragments {
                fragments: Some(fragments),
                reports: answers.is_some(),
                awaited: None,
                failures: Vec::new(),
                interrupted: false,
                is_sent: false,
                is_over: false,
            };
            let thread = PacingThread {
                clock: Clock::start(),
                alarm,
                queue: SendQueue::new(self.socket, self.sealer),
                core: Driver::new(sender, fragment_symbols),
                supply,
                answers,
            };
            thread.run(token, emit)
        })
    }
}

/// Takes from the stream's key what was not given. Returns the secret of its ticket, if its packets
/// are sealed by that.
fn complete_keys(options: &mut StreamOptions) -> Option<TicketSecret> {
    let key = options.key.as_ref()?;
    options.signer.get_or_insert_with(|| key.signer());
    let secret = Some(key.secret()).filter(|_| options.group_seal.is_none())?;
    options.group_seal = Some(GroupSeal::of_ticket(&secret));
    Some(secret)
}

/// What a stream needs to ask its receivers for reports, if it does.
fn prepare_reports(
    options: &StreamOptions,
    session: ReportedSession,
    packet_bytes: u16,
) -> Result<Option<Reports>, Error> {
    let needs = |needs| SetupError::Reports { needs };
    let repairs = matches!(options.redundancy, StreamRedundancy::Reported { .. });
    let Some(reports) = &options.reports else {
        return match (repairs, options.waits_for) {
            (false, 0) => Ok(None),
            (true, _) => {
                Err(SetupError::RepairOnDemand { needs: "reports, with which receivers request" }
                    .into())
            }
            (false, _) => Err(needs("to be asked for before receivers can be counted").into()),
        };
    };
    if reports.max_age.is_some() {
        return Err(needs("a session of files, to limit the age of repair").into());
    }
    let repair = RepairBy::Stream { waits_for: options.waits_for, on_request: repairs };
    let (addressing, is_sealed) = (&options.addressing, session.group_key.is_some());
    let most = options.rate_bytes_per_second();
    let rate = rate_config(reports, addressing, is_sealed, most, packet_bytes)?;
    Reports::open(reports, session, Demands { repair, rate })
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
    keys: Keys,
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
            SendJob::Prepare { .. } | SendJob::ExpectRepair => {}
            SendJob::Release { batch } => self.prepared.release(batch),
            SendJob::Sign(_) | SendJob::Open { .. } => {
                return Ok(self.keys.run(job).map(Finished::now));
            }
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

impl SendingRunner for FragmentSymbols {
    fn prepared(&mut self) -> &mut PreparedSymbols {
        &mut self.prepared
    }

    fn keys(&mut self) -> &mut Keys {
        &mut self.keys
    }
}

/// Fragments of a stream. Only a producer without data is waited for.
struct Fragments {
    /// Further ones; `None` after the last one. The thread that cuts rings after each, and at the
    /// end of the stream.
    fragments: Option<Receiver<Result<Prepared, Error>>>,
    /// Receivers report.
    reports: bool,
    /// The receivers that the stream waits for, or has waited for.
    awaited: Option<AwaitedReceivers>,
    failures: Vec<Arc<Error>>,
    interrupted: bool,
    /// The stream is sent to its end.
    is_sent: bool,
    /// Receivers are waited for no longer.
    is_over: bool,
}

impl Fragments {
    /// Announces the end to receivers, and sends nothing else.
    fn abandon(&mut self, core: &mut Core<Self>) {
        self.fragments = None;
        core.runner.prepared.clear();
        core.endpoint.abandon();
    }
}

impl Supply for Fragments {
    type Endpoint = StreamSender;
    type Runner = FragmentSymbols;

    /// Accepts the fragments that are ready and for which there is room.
    fn supply(&mut self, _now: Instant, core: &mut Core<Self>) -> Result<(), Error> {
        while let Some(fragments) = &self.fragments
            && core.endpoint.wants_fragment()
        {
            match fragments.try_recv() {
                Ok(Ok(Prepared { length, hash, source, repair })) => {
                    if let Some(number) = core.endpoint.push_fragment(length, hash) {
                        let batch = 2 * u64::from(number);
                        core.runner.store(batch, source);
                        core.runner.store(batch + 1, repair);
                    } else {
                        // The stream has more fragments than can be numbered.
                        core.endpoint.finish(false);
                    }
                }
                Ok(Err(error)) => {
                    self.failures.push(Arc::new(error));
                    core.endpoint.finish(false);
                    self.fragments = None;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    core.endpoint.finish(true);
                    self.fragments = None;
                }
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: &SenderEvent, core: &mut Core<Self>) {
        match event {
            SenderEvent::Finished => self.is_sent = true,
            SenderEvent::Awaited(awaited) => self.awaited = Some(awaited.clone()),
            SenderEvent::Over => {
                self.is_over = true;
                // Perhaps before the stream has begun.
                if let Some(awaited) = self.awaited.take_if(|it| !it.is_over()) {
                    let AwaitedReceivers { receivers, known, .. } = awaited;
                    let error = TransferError::ReceiversAbsent { awaited: receivers, known };
                    self.failures.push(Arc::new(error.into()));
                    self.abandon(core);
                }
            }
            _ => {}
        }
    }

    fn interrupt(&mut self, core: &mut Core<Self>) {
        if !std::mem::replace(&mut self.interrupted, true) {
            self.abandon(core);
        }
    }

    /// Whether the stream is sent, and receivers are waited for no longer.
    fn has_ended(&self) -> bool {
        self.is_sent && (!self.reports || self.is_over || self.interrupted)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    fn is_awaited(&self, core: &Core<Self>) -> bool {
        self.fragments.is_some() && core.endpoint.wants_fragment()
    }

    fn failures<'a>(&'a self, _core: &'a Core<Self>) -> &'a [Arc<Error>] {
        &self.failures
    }

    fn progress(&self, _core: &Core<Self>, progress: SendProgress) -> SendProgress {
        progress
    }

    /// The stream was for the receivers that it has waited for.
    fn report(&self, report: SendReport) -> SendReport {
        let complete = report.crowd.as_ref().map_or(0, |crowd| crowd.summary.complete);
        let lacks = self.awaited.as_ref().is_some_and(|it| complete < it.receivers.into());
        let outcome = match lacks && !self.interrupted {
            true => report.outcome.worst(Outcome::ReceiversIncomplete),
            false => report.outcome,
        };
        SendReport { outcome, ..report }
    }
}
