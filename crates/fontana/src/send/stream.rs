//! A stream that is laid out and sent: [`StreamSender`](crate::stream::StreamSender) is its face.

use super::checks::{Numbers, check_addressing};
use super::egress::{Egress, FTI_BYTES};
use super::observe::Told;
use super::train::Trains;
use crate::addressing::Addressing;
use crate::cancellation::CancellationToken;
use crate::error::{Error, SetupError};
use crate::event::{SendEvent, SendProgress};
use crate::geometry::Code;
use crate::outcome::Outcome;
use crate::rate::Rate;
use crate::report::SendReport;
use crate::{geometry, memory};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use cut::{Cutter, Prepared};
use fontana_fec::codes::raptorq;
use fontana_net::{Clock, SendSocket};
use fontana_proto::{
    BatchId, Destination, Endpoint, Instant, Output, SendJob, SenderEvent, StreamSender,
    StreamSenderConfig,
};
use fontana_wire::{ChannelGroups, InstanceId, RelativePath, SecretKey, Ticket, Tsi};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod cut;

/// What to send a stream as: [`StreamSenderBuilder`](crate::stream::StreamSenderBuilder) says what
/// each field is.
#[derive(Debug)]
pub(crate) struct StreamOptions {
    pub(crate) name: Vec<u8>,
    pub(crate) addressing: Addressing,
    pub(crate) rate_bytes_per_second: u64,
    pub(crate) controlled_network: bool,
    pub(crate) tsi: Option<Tsi>,
    pub(crate) block_symbols: u32,
    pub(crate) symbol_size: Option<u16>,
    pub(crate) repair_permille: u32,
    pub(crate) announce: Duration,
    pub(crate) signer: Option<SecretKey>,
    pub(crate) memory: usize,
    pub(crate) seed: Option<u64>,
}

impl StreamOptions {
    pub(crate) fn new(name: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.into(),
            addressing: Addressing::default(),
            rate_bytes_per_second: Rate::DEFAULT.as_bytes_per_second(),
            controlled_network: false,
            tsi: None,
            block_symbols: geometry::DEFAULT_BLOCK_SYMBOLS,
            symbol_size: None,
            repair_permille: 0,
            announce: Duration::ZERO,
            signer: None,
            memory: memory::DEFAULT_MEMORY,
            seed: None,
        }
    }
}

/// A stream that is ready to be sent: socket open, nothing read.
pub struct PreparedStream {
    ticket: Ticket,
    token: CancellationToken,
    socket: SendSocket,
    sender: StreamSender,
    cutter: Cutter,
}

/// How often the application is told.
const OBSERVE_EVERY: Duration = Duration::from_millis(200);
/// How long a stop request may go unnoticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);
/// Versions of one stream, at most, so that those of the next one under the same key are above: a
/// fragment has two, so a stream would have to be started within a second of the last one.
const VERSIONS_PER_SECOND: u64 = 1 << 24;

impl PreparedStream {
    /// Opens the socket and makes a key if none was given. `token` ends it.
    pub(crate) fn prepare(options: StreamOptions, token: CancellationToken) -> Result<Self, Error> {
        let numbers = Numbers {
            rate_bytes_per_second: options.rate_bytes_per_second,
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
        let signer = options.signer.map_or_else(crate::system::generate_key, Ok)?;
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
            channels: ChannelGroups::default(),
        };
        let most = memory::fragment_bytes(options.memory) / usize::from(symbol_size);
        let max_symbols = options.block_symbols.min(most.max(1) as u32);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sender = StreamSender::new(StreamSenderConfig {
            tsi,
            instance: InstanceId(crate::system::random_bytes()?),
            signer,
            first_version: since.as_secs() * VERSIONS_PER_SECOND,
            name,
            symbol_size,
            control_symbol_size: symbol_size - FTI_BYTES,
            max_symbols,
            repair_permille: options.repair_permille,
            rate_bytes_per_second: options.rate_bytes_per_second
                / options.addressing.copies().max(1) as u64,
            packet_overhead: version.header_size() as u32,
            announce: options.announce,
            seed,
        })?;
        let cutter = Cutter { symbol_size, max_symbols, repair_permille: options.repair_permille };
        Ok(Self { ticket, token, socket, sender, cutter })
    }

    /// What a receiver needs to know.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Sends what `reader` gives until it ends, or `token` is cancelled.
    pub(crate) fn run(
        self,
        reader: impl Read + Send + 'static,
        token: &CancellationToken,
        observe: &mut dyn FnMut(SendEvent),
    ) -> Result<SendReport, Error> {
        let symbol_size = usize::from(self.cutter.symbol_size);
        let fragments = self.cutter.spawn(reader)?;
        let mut driver = Driver {
            clock: Clock::start(),
            trains: Trains::new(self.socket),
            sender: self.sender,
            symbol_size,
            batches: BTreeMap::new(),
            fragments: Some(fragments),
            failures: Vec::new(),
            interrupted: false,
            ended: false,
        };
        let (mut last_observed, mut told) = (Duration::ZERO, Told::default());
        loop {
            driver.send()?;
            let elapsed = Duration::from_nanos(driver.clock.now_nanos());
            if driver.ended || elapsed >= last_observed + OBSERVE_EVERY {
                last_observed = elapsed;
                let stats = driver.sender.stats();
                let (source_symbols, lost) = (stats.source_symbols, driver.trains.lost);
                let progress = SendProgress { elapsed, stats, source_symbols, lost };
                told.tell(&driver.failures, &driver.trains, progress, observe);
            }
            if driver.ended {
                return Ok(driver.report(elapsed));
            }
            if token.is_cancelled() {
                driver.interrupt();
            }
            driver.wait();
        }
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

/// Keeps the pace, and waits for nobody but a producer that has nothing to send.
struct Driver {
    clock: Clock,
    trains: Trains,
    sender: StreamSender,
    symbol_size: usize,
    /// Symbols of the fragments that are being sent, one after the other.
    batches: BTreeMap<BatchId, Vec<u8>>,
    /// Fragments to come; `None` after the last one.
    fragments: Option<Receiver<Result<Prepared, Error>>>,
    failures: Vec<Arc<Error>>,
    interrupted: bool,
    ended: bool,
}

impl Driver {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    /// Sends what may be sent now.
    fn send(&mut self) -> Result<(), Error> {
        let now = self.now();
        let mut header = Vec::with_capacity(2048);
        while let Some(output) = self.sender.poll_output(now, &mut header) {
            match output {
                Output::Transmit { to: Destination::Channel(channel), symbol } => {
                    let bytes = match symbol {
                        None => Some(&[][..]),
                        Some(symbol) => self.batches.get(&symbol.batch).and_then(|batch| {
                            let at = symbol.index as usize * self.symbol_size;
                            batch.get(at..at + self.symbol_size)
                        }),
                    };
                    if let Some(bytes) = bytes {
                        self.trains.push(channel, &header, bytes)?;
                    }
                }
                Output::Job(SendJob::Release { batch }) => _ = self.batches.remove(&batch),
                Output::Event(SenderEvent::Finished) => self.ended = true,
                // Fragments come with their symbols.
                Output::Job(SendJob::Prepare { .. })
                | Output::Event(SenderEvent::Withdrawn { .. })
                | Output::Join(_)
                | Output::Leave(_) => {}
            }
            header.clear();
        }
        self.trains.leave()
    }

    /// Waits until something may be sent, or another fragment is there and there is room for it.
    fn wait(&mut self) {
        let patience = self
            .sender
            .poll_timeout()
            .map_or(STOP_LATENCY, |due| due.saturating_since(self.now()).min(STOP_LATENCY));
        let Some(fragments) = self.fragments.as_ref().filter(|_| self.sender.wants_fragment())
        else {
            return std::thread::sleep(patience);
        };
        match fragments.recv_timeout(patience) {
            Ok(Ok(Prepared { length, hash, source, repair })) => {
                if let Some(number) = self.sender.push_fragment(length, hash) {
                    let batch = 2 * u64::from(number);
                    self.batches.insert(BatchId(batch), source);
                    self.batches.insert(BatchId(batch + 1), repair);
                } else {
                    // More fragments than a stream can number.
                    self.sender.finish(false);
                }
            }
            Ok(Err(error)) => {
                self.failures.push(Arc::new(error));
                self.sender.finish(false);
                self.fragments = None;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                self.sender.finish(true);
                self.fragments = None;
            }
        }
    }

    /// Tells the receivers, and no more.
    fn interrupt(&mut self) {
        if !self.interrupted {
            self.interrupted = true;
            self.fragments = None;
            self.batches.clear();
            self.sender.abandon();
        }
    }

    fn report(self, elapsed: Duration) -> SendReport {
        let start = if self.interrupted { Outcome::Interrupted } else { Outcome::Complete };
        let outcome = self.failures.iter().fold(start, |o, error| o.worst(error.outcome()));
        let stats = self.sender.stats();
        SendReport { outcome, elapsed, stats, lost: self.trains.lost, failures: self.failures }
    }
}
