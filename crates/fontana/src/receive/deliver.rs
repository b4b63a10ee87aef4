//! Verified bytes on their way to a consumer: in their order, each once, at the consumer's pace.
//!
//! Pieces may be handed over in any order; their numbers, which count up from 0, say which is next.
//! A program is never waited for: a consumer that has stopped reading keeps the thread in a write for
//! as long as it likes, and nobody else.

use super::object::OpenObject;
use crate::error::Error;
use crossbeam_channel::{Receiver, Sender, unbounded};
use fontana_net::thread::spawn;
use fontana_store::{Device, GrowingFile};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Bytes that are next to each other at the consumer.
pub(super) enum Piece {
    /// Verified bytes of an object.
    Bytes { object: Arc<OpenObject>, range: Range<u64> },
    /// A hole of a file.
    Zeros(u64),
}

enum DeliveryJob {
    Deliver { number: u64, piece: Piece },
    Finish,
}

/// What has become of it.
pub(super) enum DeliveryReport {
    /// The consumer has taken the piece.
    Delivered { number: u64 },
    /// It has taken all of them.
    Finished,
    /// It takes no more.
    Failed(Error),
}

/// What takes the bytes.
pub(super) trait Sink: Write + Send {
    /// Whether a write may take for ever.
    fn may_block(&self) -> bool;
    /// Everything has been written.
    fn finish(&mut self) -> Result<(), Error>;
}

/// A program's own writer.
pub(super) struct Writer(pub(super) Box<dyn Write + Send>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for Writer {
    fn may_block(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.0.flush().map_err(|error| Error::Consumer { error })
    }
}

/// A stream's own file.
impl Sink for GrowingFile {
    fn may_block(&self) -> bool {
        false
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(self.commit()?)
    }
}

/// A stream on a device: written in order, and read back at the end.
pub(super) struct InPlace {
    device: Device,
    length: u64,
    written: blake3::Hasher,
}

impl InPlace {
    pub(super) fn new(device: Device) -> Self {
        Self { device, length: 0, written: blake3::Hasher::new() }
    }
}

impl Write for InPlace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.length + bytes.len() as u64;
        if let Some(capacity) = self.device.capacity().filter(|&capacity| capacity < end) {
            let path = self.device.path().to_owned();
            let full = Error::TooSmall { path, capacity, length: end };
            return Err(io::Error::new(io::ErrorKind::StorageFull, full));
        }
        self.device
            .write_all_at(self.length, bytes)
            .map_err(|error| io::Error::other(Error::from(error)))?;
        self.written.update(bytes);
        self.length = end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for InPlace {
    fn may_block(&self) -> bool {
        false
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.device.set_length(self.length)?;
        self.device.settle()?;
        let (mut read, mut at) = (blake3::Hasher::new(), 0);
        let mut chunk = vec![0; CHUNK];
        while at < self.length {
            let count = (self.length - at).min(CHUNK as u64);
            let bytes = chunk.get_mut(..count as usize).unwrap_or_default();
            self.device.read_exact_at(at, bytes)?;
            read.update(bytes);
            at += count;
        }
        if read.finalize() != self.written.finalize() {
            return Err(Error::ReadBack { path: self.device.path().to_owned() });
        }
        Ok(())
    }
}

/// Bytes that are read from the disk, and written to the consumer, at a time: what a pipe holds.
const CHUNK: usize = 64 << 10;

/// The thread that writes to the consumer.
pub(super) struct Deliverer {
    tasks: Sender<DeliveryJob>,
    reports: Receiver<DeliveryReport>,
    delivered: Arc<AtomicU64>,
    /// The thread, if it will end.
    thread: Option<JoinHandle<()>>,
}

impl Deliverer {
    pub(super) fn spawn(sink: Box<dyn Sink>) -> Result<Self, Error> {
        let (tasks, queue) = unbounded();
        let (reports_out, reports) = unbounded();
        let delivered = Arc::new(AtomicU64::new(0));
        let may_block = sink.may_block();
        let counter = Counter { sink, delivered: Arc::clone(&delivered) };
        let thread = spawn("deliver", move || run(counter, &queue, &reports_out))?;
        let thread = Some(thread).filter(|_| !may_block);
        Ok(Self { tasks, reports, delivered, thread })
    }

    /// Number `number` of the pieces may be delivered, when it is its turn.
    pub(super) fn deliver(&self, number: u64, piece: Piece) {
        // If the thread has ended, its last report says why.
        let _ = self.tasks.send(DeliveryJob::Deliver { number, piece });
    }

    /// Nothing follows the pieces that were handed over.
    pub(super) fn finish(&self) {
        let _ = self.tasks.send(DeliveryJob::Finish);
    }

    /// Ends it: what is not finished by now never will be. Returns the bytes that were taken.
    pub(super) fn end(self) -> u64 {
        drop(self.tasks);
        if let Some(thread) = self.thread {
            // A panic there is a defect of ours; it was printed.
            let _ = thread.join();
        }
        self.delivered.load(Ordering::Relaxed)
    }

    pub(super) fn reports(&self) -> &Receiver<DeliveryReport> {
        &self.reports
    }
}

fn run(mut sink: Counter, queue: &Receiver<DeliveryJob>, reports: &Sender<DeliveryReport>) {
    let (mut waiting, mut next) = (BTreeMap::new(), 0);
    for task in queue {
        match task {
            DeliveryJob::Deliver { number, piece } => _ = waiting.insert(number, piece),
            DeliveryJob::Finish => {
                let report = sink
                    .sink
                    .finish()
                    .map_or_else(DeliveryReport::Failed, |()| DeliveryReport::Finished);
                let _ = reports.send(report);
                return;
            }
        }
        while let Some(piece) = waiting.remove(&next) {
            let report = match write(&piece, &mut sink) {
                Ok(()) => DeliveryReport::Delivered { number: next },
                Err(error) => DeliveryReport::Failed(error),
            };
            let failed = matches!(report, DeliveryReport::Failed(_));
            if reports.send(report).is_err() || failed {
                return;
            }
            next += 1;
        }
    }
}

fn write(piece: &Piece, sink: &mut Counter) -> Result<(), Error> {
    match piece {
        Piece::Zeros(length) => {
            io::copy(&mut io::Read::take(io::repeat(0), *length), sink).map_err(consumer)?;
        }
        Piece::Bytes { object, range } => {
            let mut chunk = vec![0; CHUNK];
            let mut at = range.start;
            while at < range.end {
                let count = (range.end - at).min(CHUNK as u64);
                let bytes = chunk.get_mut(..count as usize).unwrap_or_default();
                object.staged.read_at(at, bytes)?;
                sink.write_all(bytes).map_err(consumer)?;
                at += count;
            }
        }
    }
    // A consumer that waits for its last line should not wait for the next piece.
    sink.flush().map_err(consumer)
}

/// What a consumer answered; or what kept a device of ours from taking it.
fn consumer(error: io::Error) -> Error {
    error.downcast().unwrap_or_else(|error| Error::Consumer { error })
}

/// Counts what the sink has taken.
struct Counter {
    sink: Box<dyn Sink>,
    delivered: Arc<AtomicU64>,
}

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.sink.write(bytes)?;
        self.delivered.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
