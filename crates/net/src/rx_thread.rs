//! A thread that drains the receiving sockets of a session and does not wait for its consumer.
//!
//! ```text
//!  sockets ─▶ receive thread ──▶ full batches (bounded) ──▶ consumer
//!                   ▲                                          │ drop
//!                   └───────────── empty batches ◀─────────────┘
//! ```
//!
//! All memory is allocated at the start: `batches` buffers that are reused, the last returned
//! first. While the consumer is busy, and for a millisecond after each batch, single datagrams
//! collect in one batch, so slow traffic uses the memory as well as fast traffic. If the consumer
//! holds all batches, the thread continues to drain the sockets, and drops and counts the
//! datagrams. So the consumer knows exactly how many datagrams it missed, which the kernel's
//! counter would not show, and does not mistake them for loss in the network.

use std::collections::BTreeMap;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use fontana_proto::ChannelId;

use crate::channels::{Change, Changes, Channels};
use crate::readiness::Readiness;
use crate::receiver::{Batch, ReceiveSocket};
use crate::thread::{self, PanicError, ThreadError};

/// The thread's name.
const NAME: &str = "fontana-receive";

/// Longest wait in the kernel. Every event wakes the thread, so this only limits the delay if an
/// event is missed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Pause after an error of a socket.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// Least time between two batches that are not full. A consumer is woken for many datagrams, and
/// one that arrives after a pause does not wait.
const HAND_OVER_INTERVAL: Duration = Duration::from_millis(1);

/// The number of the wake-up descriptor; the sockets have larger numbers.
const CHANGES: u64 = 0;

/// Errors of the socket in a row, without a datagram between them, after which the thread gives up.
/// Each is followed by a pause of [`ERROR_PAUSE`]: about a second in all.
const MAX_ERRORS: u32 = 10;

/// The memory of a [`ReceiveThread`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveThreadConfig {
    /// Number of batches, at least 2.
    pub batches: usize,
    /// Bytes of each batch, at least 128 KiB.
    pub batch_size: usize,
}

/// 32 batches of 256 KiB: 8 MiB, 67 ms at 1 Gbit/s, as much again as the kernel's buffer.
impl Default for ReceiveThreadConfig {
    fn default() -> Self {
        Self { batches: 32, batch_size: 256 << 10 }
    }
}

impl ReceiveThreadConfig {
    /// Upper bound of the thread's memory (one more batch than configured, for dropped datagrams).
    pub fn memory(&self) -> usize {
        (self.batches.max(2) + 1).saturating_mul(Batch::memory_for(self.batch_size))
    }
}

/// Datagrams lost inside this host since the sockets were opened, up to the end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LocalLoss {
    /// Packets that the kernel has dropped: a lower bound in datagrams ([`ReceiveSocket::drops`]).
    pub kernel_drops: u64,
    /// Datagrams that the receive thread has dropped because the consumer held all batches.
    pub local_drops: u64,
    /// Datagrams from other senders than requested ([`ReceiveSocket::foreign`]): not a loss.
    pub foreign: u64,
}

/// A borrowed batch. Dropping it returns the memory to the receive thread.
#[derive(Debug)]
pub struct ReceivedBatch {
    batch: Batch,
    loss: LocalLoss,
    home: Sender<Batch>,
}

impl ReceivedBatch {
    /// Losses inside this host until this batch was handed over.
    pub fn loss(&self) -> LocalLoss {
        self.loss
    }

    /// As [`Batch::retain`].
    pub fn retain(
        &mut self,
        dropped_before: u64,
        keep: impl FnMut(ChannelId, &mut [u8]) -> bool,
    ) -> u64 {
        self.batch.retain(dropped_before, keep)
    }
}

impl Deref for ReceivedBatch {
    type Target = Batch;

    fn deref(&self) -> &Batch {
        &self.batch
    }
}

impl Drop for ReceivedBatch {
    fn drop(&mut self) {
        let mut batch = std::mem::replace(&mut self.batch, Batch::without_memory());
        batch.clear();
        // If the thread has ended, the memory is freed.
        let _ = self.home.try_send(batch);
    }
}

/// A running receive thread. Dropping it stops the thread.
#[derive(Debug)]
pub struct ReceiveThread {
    batches: Receiver<ReceivedBatch>,
    channels: Channels,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<LocalLoss>>>,
}

impl ReceiveThread {
    /// Starts the thread, which takes over the sockets of channel 0: usually one
    /// ([`ReceiveSocket::open_all`]).
    ///
    /// # Errors
    /// The system has no thread or file descriptor left.
    pub fn spawn(base: Vec<ReceiveSocket>, config: ReceiveThreadConfig) -> io::Result<Self> {
        let count = config.batches.max(2);
        // Every batch has a place in both channels, so neither side ever finds its channel full.
        let (full, batches) = bounded(count);
        let (home, empty) = bounded(count);
        for _ in 0..count {
            if home.try_send(Batch::with_size(config.batch_size)).is_err() {
                unreachable!("the channel has room for all batches");
            }
        }
        let (channels, changes) = Channels::new(base)?;
        let mut readiness = Readiness::new()?;
        readiness.add(changes.descriptor(), CHANGES)?;
        let stop = Arc::new(AtomicBool::new(false));
        let drain = Drain {
            sockets: BTreeMap::new(),
            last_number: CHANGES,
            ready: Vec::new(),
            readiness,
            changes,
            full,
            empty,
            spares: Vec::with_capacity(count),
            home,
            stop: Arc::clone(&stop),
            handed_over: Instant::now(),
            loss: LocalLoss::default(),
            reported: 0,
            spare: Batch::with_size(config.batch_size),
        };
        let thread =
            thread::spawn(NAME, move || drain.run()).map_err(|ThreadError(error)| error)?;
        Ok(Self { batches, channels, stop, thread: Some(thread) })
    }

    /// The received batches, in the order of arrival. The channel is disconnected when the thread
    /// has ended by itself; [`Self::stop`] then returns the reason.
    pub fn batches(&self) -> &Receiver<ReceivedBatch> {
        &self.batches
    }

    /// The handle that joins and leaves channels while the thread receives.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Stops the thread after its current read, and returns all losses inside this host. Datagrams
    /// that were not taken from [`Self::batches`] are dropped.
    ///
    /// # Errors
    /// The reason if the thread had ended before; it may be a [`PanicError`].
    pub fn stop(mut self) -> io::Result<LocalLoss> {
        self.join()
    }

    fn join(&mut self) -> io::Result<LocalLoss> {
        self.stop.store(true, Ordering::Relaxed);
        self.channels.wake();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => Err(io::Error::other(PanicError::new(NAME, &*panic))),
            None => Ok(LocalLoss::default()),
        }
    }
}

impl Drop for ReceiveThread {
    fn drop(&mut self) {
        // `stop` returns the result.
        let _ = self.join();
    }
}

/// The state of the thread.
struct Drain {
    sockets: BTreeMap<u64, Drained>,
    /// The number of the socket that was added last.
    last_number: u64,
    changes: Changes,
    readiness: Readiness,
    /// Sockets that are readable and were not read. Those for which the last batch had no room come
    /// first, so that a busy socket does not delay the others.
    ready: Vec<u64>,
    full: Sender<ReceivedBatch>,
    empty: Receiver<Batch>,
    /// Empty batches, in the order in which they were returned. The last one is used first: its
    /// memory is in a cache, and batches that are never needed take no memory.
    spares: Vec<Batch>,
    /// Returns each batch to the thread.
    home: Sender<Batch>,
    stop: Arc<AtomicBool>,
    /// When the last batch was handed over.
    handed_over: Instant,
    loss: LocalLoss,
    /// Losses that were reported with batches
    /// ([`Datagram::dropped_before`](fontana_proto::Datagram)).
    reported: u64,
    /// Receives the dropped datagrams.
    spare: Batch,
}

impl Drain {
    fn run(mut self) -> io::Result<LocalLoss> {
        let mut filling: Option<Batch> = None;
        let mut errors_in_a_row = 0;
        while !self.stop.load(Ordering::Relaxed) {
            match self.turn(&mut filling) {
                Ok(()) => errors_in_a_row = 0,
                Err(error) => {
                    errors_in_a_row += 1;
                    if errors_in_a_row == MAX_ERRORS {
                        return Err(error);
                    }
                    std::thread::sleep(ERROR_PAUSE);
                }
            }
            let now = Instant::now();
            if let Some(mut batch) = filling.take_if(|batch| self.should_hand_over(batch, now)) {
                self.handed_over = now;
                self.update_loss();
                let home = self.home.clone();
                let LocalLoss { kernel_drops, local_drops, .. } = self.loss;
                batch.set_dropped_before(kernel_drops + local_drops - self.reported);
                self.reported = kernel_drops + local_drops;
                if self.full.try_send(ReceivedBatch { batch, loss: self.loss, home }).is_err() {
                    // The consumer has ended.
                    break;
                }
            }
        }
        self.sockets.values_mut().for_each(|drained| drained.was_read = true);
        self.update_loss();
        Ok(self.loss)
    }

    /// Waits for datagrams and puts them into `filling`, or drops them.
    fn turn(&mut self, filling: &mut Option<Batch>) -> io::Result<()> {
        if self.ready.is_empty() {
            let someone_waits = filling.as_ref().is_some_and(|batch| !batch.is_empty());
            let timeout = if someone_waits { HAND_OVER_INTERVAL } else { LONGEST_WAIT };
            self.readiness.wait(timeout, &mut self.ready)?;
        }
        // Only now, so that a batch that was returned during the wait is used.
        if filling.is_none() {
            self.spares.extend(self.empty.try_iter());
            *filling = self.spares.pop();
        }
        while let Some(number) = self.ready.pop() {
            if number == CHANGES {
                self.change()?;
            }
            // A change may have closed it.
            let Some(drained) = self.sockets.get_mut(&number) else { continue };
            drained.was_read = true;
            match filling {
                Some(batch) => {
                    drained.socket.recv_more(Duration::ZERO, batch)?;
                    if batch.is_full() {
                        // The kernel does not report these again.
                        self.ready.extend(drained.socket.holds_datagrams().then_some(number));
                        break;
                    }
                }
                None => {
                    let missed = drained.socket.recv_batch(Duration::ZERO, &mut self.spare)?;
                    self.loss.local_drops += missed as u64;
                }
            }
        }
        Ok(())
    }

    /// Takes over new sockets, and closes those of channels that were left.
    fn change(&mut self) -> io::Result<()> {
        let changes: Vec<Change> = self.changes.take().collect();
        for change in changes {
            match change {
                Change::Join(sockets) => self.add(sockets)?,
                Change::Rejoin(sockets) => {
                    let places: Vec<_> = sockets.iter().map(ReceiveSocket::place).collect();
                    self.close(|socket| places.contains(&socket.place()));
                    self.add(sockets)?;
                }
                Change::Leave(channel) => self.close(|socket| socket.channel() == channel),
            }
        }
        Ok(())
    }

    fn add(&mut self, sockets: Vec<ReceiveSocket>) -> io::Result<()> {
        for socket in sockets {
            self.last_number += 1;
            self.readiness.add(socket.descriptor(), self.last_number)?;
            self.sockets.insert(self.last_number, Drained::new(socket));
        }
        Ok(())
    }

    fn close(&mut self, closes: impl Fn(&ReceiveSocket) -> bool) {
        let Self { sockets, readiness, loss, .. } = self;
        sockets.retain(|&number, drained| {
            let stays = !closes(&drained.socket);
            if !stays {
                drained.count(loss);
                readiness.remove(drained.socket.descriptor(), number);
            }
            stays
        });
    }

    /// A full batch is handed over at once; a partial one only to a consumer without other batches,
    /// and not soon after another batch.
    fn should_hand_over(&self, batch: &Batch, now: Instant) -> bool {
        let is_due = now.duration_since(self.handed_over) >= HAND_OVER_INTERVAL;
        !batch.is_empty() && (batch.is_full() || (is_due && self.full.is_empty()))
    }

    fn update_loss(&mut self) {
        for drained in self.sockets.values_mut().filter(|drained| drained.was_read) {
            drained.was_read = false;
            drained.count(&mut self.loss);
        }
    }
}

/// A socket, and the parts of its counters that are in the [`LocalLoss`] already.
struct Drained {
    socket: ReceiveSocket,
    kernel_drops: u64,
    foreign: u64,
    /// True if it was read since it was counted: without a read, no queue was full.
    was_read: bool,
}

impl Drained {
    fn new(socket: ReceiveSocket) -> Self {
        Self { socket, kernel_drops: 0, foreign: 0, was_read: false }
    }

    fn count(&mut self, loss: &mut LocalLoss) {
        let (kernel_drops, foreign) = (self.socket.drops(), self.socket.foreign());
        loss.kernel_drops += kernel_drops - self.kernel_drops;
        loss.foreign += foreign - self.foreign;
        (self.kernel_drops, self.foreign) = (kernel_drops, foreign);
    }
}
