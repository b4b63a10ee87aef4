//! The thread that writes verified bytes to a sink, in their order, at the sink's pace.
//!
//! Pieces are handed over in any order. Their numbers, which count up from 0, say which is next.
//! The receiver never waits for a consumer that has stopped reading: only this thread does.

use super::sink::Sink;
use crate::error::{Error, IoError};
use crate::receive::object::OpenObject;
use crate::shared::{Sender, unbounded};
use crossbeam_channel::Receiver;
use fontana_net::thread::{catch, spawn};
use fontana_wire::{StreamIndex, Toi};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Bytes that are read from the disk and written to the sink at a time: what a pipe holds.
const CHUNK: usize = 64 << 10;

/// Bytes that are next to each other at the sink.
pub(super) enum Piece {
    /// Verified bytes of an object.
    Bytes { object: Arc<OpenObject>, range: Range<u64> },
    /// A hole of a file, of this many bytes.
    Zeros(u64),
}

enum DeliveryJob {
    Deliver { number: u64, piece: Piece },
    Finish,
}

/// What the thread tells the driver.
pub(in crate::receive) enum DeliveryReport {
    /// The sink has taken the piece.
    Delivered { number: u64 },
    /// The sink has taken everything, and is complete.
    Finished,
    /// The sink takes no more.
    Failed(Error),
}

/// The thread's handle.
pub(in crate::receive) struct DeliveryThread {
    jobs: Sender<DeliveryJob>,
    reports: Receiver<DeliveryReport>,
    /// Bytes that the sink has taken.
    delivered: Arc<AtomicU64>,
    /// The thread, if it is sure to end.
    thread: Option<JoinHandle<()>>,
}

impl DeliveryThread {
    pub(super) fn spawn(sink: Sink) -> Result<Self, Error> {
        let (jobs, queue) = unbounded();
        let (reports_out, reports) = unbounded();
        let delivered = Arc::new(AtomicU64::new(0));
        let may_block = sink.may_block();
        let counting = CountingSink { sink, delivered: Arc::clone(&delivered) };
        let thread = spawn("deliver", move || {
            if let Err(panic) = catch(|| run(counting, &queue, &reports_out)) {
                let _ = reports_out.send(DeliveryReport::Failed(panic.into()));
            }
        })?;
        let thread = Some(thread).filter(|_| !may_block);
        Ok(Self { jobs, reports, delivered, thread })
    }

    /// Delivers a verified fragment of a stream after all fragments before it.
    pub(in crate::receive) fn deliver_fragment(&self, toi: Toi, object: &Arc<OpenObject>) {
        if let Some(number) = StreamIndex::number(toi) {
            let piece = Piece::Bytes { object: Arc::clone(object), range: 0..object.length() };
            self.deliver(number.into(), piece);
        }
    }

    /// Delivers piece `number` after all pieces before it.
    pub(super) fn deliver(&self, number: u64, piece: Piece) {
        // If the thread has ended, its last report says why.
        let _ = self.jobs.send(DeliveryJob::Deliver { number, piece });
    }

    /// Completes the sink: no piece follows those that were handed over.
    pub(in crate::receive) fn finish(&self) {
        let _ = self.jobs.send(DeliveryJob::Finish);
    }

    pub(super) fn reports(&self) -> &Receiver<DeliveryReport> {
        &self.reports
    }

    /// Ends the delivery, complete or not. Returns the bytes that the sink has taken.
    pub(super) fn end(self) -> u64 {
        drop(self.jobs);
        if let Some(thread) = self.thread {
            // It has reported its panic.
            let _ = thread.join();
        }
        self.delivered.load(Ordering::Relaxed)
    }
}

fn run(mut sink: CountingSink, queue: &Receiver<DeliveryJob>, reports: &Sender<DeliveryReport>) {
    let (mut waiting, mut next) = (BTreeMap::new(), 0);
    for job in queue {
        match job {
            DeliveryJob::Deliver { number, piece } => _ = waiting.insert(number, piece),
            DeliveryJob::Finish => {
                let finished = sink.sink.finish();
                let report =
                    finished.map_or_else(DeliveryReport::Failed, |()| DeliveryReport::Finished);
                let _ = reports.send(report);
                return;
            }
        }
        while let Some(piece) = waiting.remove(&next) {
            let written = write(&piece, &mut sink);
            let has_failed = written.is_err();
            let report = written.map_or_else(DeliveryReport::Failed, |()| {
                DeliveryReport::Delivered { number: next }
            });
            if reports.send(report).is_err() || has_failed {
                return;
            }
            next += 1;
        }
    }
}

fn write(piece: &Piece, sink: &mut CountingSink) -> Result<(), Error> {
    match piece {
        Piece::Zeros(length) => {
            io::copy(&mut io::Read::take(io::repeat(0), *length), sink).map_err(sink_error)?;
        }
        Piece::Bytes { object, range } => {
            let mut chunk = vec![0; CHUNK];
            let mut at = range.start;
            while at < range.end {
                let count = (range.end - at).min(CHUNK as u64);
                let bytes = chunk.get_mut(..count as usize).unwrap_or_default();
                object.staged.read_at(at, bytes)?;
                sink.write_all(bytes).map_err(sink_error)?;
                at += count;
            }
        }
    }
    // A consumer that waits for its last line should not wait for the next piece.
    sink.flush().map_err(sink_error)
}

/// An error of the consumer, or of the device that stands in for it.
fn sink_error(error: io::Error) -> Error {
    error.downcast().unwrap_or_else(|error| IoError::Consumer { error }.into())
}

/// Counts what the sink has taken.
struct CountingSink {
    sink: Sink,
    delivered: Arc<AtomicU64>,
}

impl Write for CountingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.sink.write(bytes)?;
        self.delivered.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
