//! Drives a [`Sender`](fontana_proto::Sender): workers read and encode ahead of need, one thread
//! keeps the pace and waits for nobody.

use super::carousel::NextInstance;
use super::observe::Told;
use super::train::Trains;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::{SendEvent, SendProgress};
use crate::outcome::Outcome;
use crate::report::SendReport;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender as ChannelSender, unbounded};
use fontana_fec::Esi;
use fontana_net::thread::spawn_scoped;
use fontana_net::{Clock, SendSocket};
use fontana_proto::{
    BatchId, BlockId, Destination, Endpoint, Instant, Output, SendDone, SendJob, Sender,
    SenderEvent, SymbolId,
};
use fontana_store::ObjectEncoder;
use fontana_wire::Toi;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A batch to be prepared.
struct Task {
    batch: BatchId,
    block: BlockId,
    esis: Vec<Esi>,
    encoder: Arc<ObjectEncoder>,
}

struct Prepared {
    batch: BatchId,
    toi: Toi,
    symbols: Result<Vec<u8>, Error>,
}

/// How often the application is told.
const OBSERVE_EVERY: Duration = Duration::from_millis(200);
/// How long a stop request may go unnoticed.
const STOP_LATENCY: Duration = Duration::from_millis(100);

/// What is sent, and with what.
pub(super) struct Transmission {
    pub(super) socket: SendSocket,
    pub(super) sender: Sender,
    /// Source symbols of the whole content.
    pub(super) source_symbols: u64,
    pub(super) encoders: BTreeMap<Toi, Arc<ObjectEncoder>>,
    /// What joins the session while it runs.
    pub(super) instances: Receiver<NextInstance>,
    /// Threads that read and encode, and the memory of each in bytes.
    pub(super) workers: usize,
    pub(super) worker_bytes: usize,
}

/// Sends until everything was sent, or `stop` is cancelled.
pub(super) fn run(
    transmission: Transmission,
    stop: &CancellationToken,
    observe: &mut dyn FnMut(SendEvent),
) -> Result<SendReport, Error> {
    let Transmission { socket, mut sender, mut source_symbols, encoders, .. } = transmission;
    let Transmission { instances, workers, worker_bytes, .. } = transmission;
    let (tasks, queue) = unbounded::<Task>();
    let (finished, done) = unbounded::<Prepared>();
    std::thread::scope(|scope| {
        // An early return drops `tasks`, which ends the workers.
        let tasks = tasks;
        for _ in 0..workers {
            let (queue, finished) = (queue.clone(), finished.clone());
            spawn_scoped(scope, "encode", move || prepare(&queue, &finished, worker_bytes))?;
        }
        drop((queue, finished));
        let mut driver = Driver {
            clock: Clock::start(),
            trains: Trains::new(socket),
            batches: BTreeMap::new(),
            encoders,
            tasks,
            failed: BTreeSet::new(),
            failures: Vec::new(),
            ended: false,
        };
        let (mut last_observed, mut told) = (Duration::ZERO, Told::default());
        let mut header = Vec::with_capacity(2048);
        loop {
            let now = driver.now();
            for next in instances.try_iter() {
                source_symbols += next.source_symbols;
                driver.encoders.extend(next.encoders);
                sender.extend(&next.objects, next.control);
            }
            while let Some(output) = sender.poll_output(now, &mut header) {
                driver.act(output, &header)?;
                header.clear();
            }
            driver.trains.leave()?;
            let elapsed = Duration::from_nanos(now.as_nanos());
            let over = driver.ended || stop.is_cancelled();
            if over || elapsed >= last_observed + OBSERVE_EVERY {
                last_observed = elapsed;
                let (lost, stats) = (driver.trains.lost, sender.stats());
                let progress = SendProgress { elapsed, stats, source_symbols, lost };
                told.tell(&driver.failures, &driver.trains, progress, observe);
            }
            if over {
                let interrupted = stop.is_cancelled() && !driver.ended;
                return Ok(driver.report(interrupted, elapsed, sender.stats()));
            }
            let due = sender.poll_timeout();
            let patience = due
                .map_or(STOP_LATENCY, |due| due.saturating_since(driver.now()).min(STOP_LATENCY));
            match done.recv_timeout(patience) {
                Ok(prepared) => {
                    let done = driver.take(prepared);
                    sender.handle_done(driver.now(), done);
                    // An endless sender of nothing would only keep receivers waiting.
                    let objects = driver.encoders.len();
                    driver.ended |= objects > 0 && driver.failed.len() == objects;
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Workers end when there is nobody to work for.
                Err(RecvTimeoutError::Disconnected) => driver.ended = true,
            }
            let now = driver.now();
            if due.is_some_and(|due| due <= now) {
                sender.handle_timeout(now);
            }
        }
    })
}

/// A worker: makes the symbols of one batch after the other until there is no one to ask for them.
fn prepare(queue: &Receiver<Task>, finished: &ChannelSender<Prepared>, worker_bytes: usize) {
    crate::system::give_way();
    for Task { batch, block, esis, encoder } in queue {
        let size = usize::from(encoder.source().layout().oti().symbol_size);
        let mut symbols = vec![0; esis.len() * size];
        let result = encoder.encode(block.sbn, &esis, worker_bytes, &mut symbols);
        let symbols = result.map(|()| symbols).map_err(Error::from);
        if finished.send(Prepared { batch, toi: block.toi, symbols }).is_err() {
            return;
        }
    }
}

struct Driver {
    clock: Clock,
    trains: Trains,
    /// Prepared symbols, one after the other, and the size of each.
    batches: BTreeMap<BatchId, Batch>,
    encoders: BTreeMap<Toi, Arc<ObjectEncoder>>,
    tasks: ChannelSender<Task>,
    failed: BTreeSet<Toi>,
    failures: Vec<Arc<Error>>,
    ended: bool,
}

struct Batch {
    symbols: Vec<u8>,
    count: usize,
}

impl Driver {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.clock.now_nanos())
    }

    fn act(&mut self, output: Output<SendJob, SenderEvent>, header: &[u8]) -> Result<(), Error> {
        match output {
            Output::Transmit { to: Destination::Channel(channel), symbol } => {
                let bytes = match symbol {
                    None => Some(&[][..]),
                    Some(symbol) => symbol_bytes(&self.batches, symbol),
                };
                if let Some(bytes) = bytes {
                    self.trains.push(channel, header, bytes)?;
                }
            }
            Output::Job(SendJob::Prepare { batch, block, esis }) => {
                self.batches.insert(batch, Batch { symbols: Vec::new(), count: esis.len() });
                if let Some(encoder) = self.encoders.get(&block.toi).map(Arc::clone) {
                    // Workers live as long as this sender of tasks.
                    let _ = self.tasks.send(Task { batch, block, esis, encoder });
                }
            }
            Output::Job(SendJob::Release { batch }) => {
                self.batches.remove(&batch);
            }
            Output::Event(SenderEvent::Finished) => self.ended = true,
            Output::Event(SenderEvent::Withdrawn { .. }) => {}
            Output::Join(_) | Output::Leave(_) => {}
        }
        Ok(())
    }

    fn take(&mut self, prepared: Prepared) -> SendDone {
        let Prepared { batch, toi, symbols } = prepared;
        match symbols {
            Ok(symbols) => {
                if let Some(waiting) = self.batches.get_mut(&batch) {
                    waiting.symbols = symbols;
                }
                SendDone::Prepared { batch }
            }
            Err(error) => {
                let error = Arc::new(error);
                let failed = SendDone::Failed { batch, error: Error::of_job(&error) };
                // One reason for each object: the others follow from it.
                if self.failed.insert(toi) {
                    self.failures.push(error);
                }
                failed
            }
        }
    }

    fn report(
        self,
        interrupted: bool,
        elapsed: Duration,
        stats: fontana_proto::SenderStats,
    ) -> SendReport {
        let start = if interrupted { Outcome::Interrupted } else { Outcome::Complete };
        let outcome = self.failures.iter().fold(start, |o, error| o.worst(error.outcome()));
        SendReport { outcome, elapsed, stats, lost: self.trains.lost, failures: self.failures }
    }
}

fn symbol_bytes(batches: &BTreeMap<BatchId, Batch>, symbol: SymbolId) -> Option<&[u8]> {
    let batch = batches.get(&symbol.batch)?;
    let size = batch.symbols.len().checked_div(batch.count)?;
    let at = symbol.index as usize * size;
    batch.symbols.get(at..at + size)
}
