//! A TCP connection on which every wait ends: after ten seconds of silence, if next to nothing
//! arrives, or soon after the bytes are not needed any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// Longest wait for the next byte.
pub(super) const SILENCE: Duration = Duration::from_secs(10);
/// Least bytes per second, over [`WINDOW`].
pub(super) const LEAST_RATE: u64 = 1024;
const WINDOW: Duration = Duration::from_secs(10);
/// Longest time until a cut is noticed.
const SLICE: Duration = Duration::from_millis(100);

/// Whether and how far the answer to a request is needed. The deciding thread moves the end.
#[derive(Debug, Default)]
pub(crate) struct Need {
    /// Bytes of the request that are needed, from its first one.
    bytes: AtomicU64,
    /// Of these: bytes that have arrived.
    arrived: AtomicU64,
    /// The reception has ended.
    is_over: AtomicBool,
}

impl Need {
    /// The first `bytes` bytes of the request are needed.
    pub(crate) fn set(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// A new request begins: `bytes` bytes of it are needed.
    pub(crate) fn begin(&self, bytes: u64) {
        self.arrived.store(0, Ordering::Relaxed);
        self.set(bytes);
    }

    /// So many bytes have arrived.
    pub(crate) fn set_arrived(&self, bytes: u64) {
        self.arrived.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that are needed and have not arrived.
    pub(crate) fn left(&self) -> u64 {
        if self.is_over.load(Ordering::Relaxed) {
            return 0;
        }
        let arrived = self.arrived.load(Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed).saturating_sub(arrived)
    }

    /// Nothing is needed from here on.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Wraps the connections of a mirror.
#[derive(Debug)]
pub(super) struct Patience(pub(super) Arc<Need>);

impl<In: Transport> Connector<In> for Patience {
    type Out = Patient<In>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Patient<In>>, Error> {
        let need = Arc::clone(&self.0);
        Ok(chained.map(|inner| Patient { inner, need, window: Instant::now(), arrived: 0 }))
    }
}

/// A connection with limits to its waits.
#[derive(Debug)]
pub(super) struct Patient<T> {
    inner: T,
    need: Arc<Need>,
    /// Since when `arrived` bytes have arrived.
    window: Instant,
    arrived: u64,
}

impl<T: Transport> Patient<T> {
    /// Whether far too little has arrived in the last seconds.
    fn drips(&mut self) -> bool {
        let elapsed = self.window.elapsed();
        if elapsed < WINDOW {
            return false;
        }
        let drips = self.arrived < LEAST_RATE * elapsed.as_secs();
        (self.window, self.arrived) = (Instant::now(), 0);
        drips
    }
}

/// What the errors of waits are, as `io::Error`s that pass through TLS.
fn ended(kind: io::ErrorKind) -> Error {
    Error::Io(io::Error::from(kind))
}

fn is_timeout(error: &Error) -> bool {
    match error {
        Error::Timeout(_) => true,
        Error::Io(error) => {
            matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
        }
        _ => false,
    }
}

impl<T: Transport> Transport for Patient<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        // A request begins: time between two requests does not count.
        (self.window, self.arrived) = (Instant::now(), 0);
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let began = Instant::now();
        loop {
            if self.need.left() == 0 {
                return Err(ended(io::ErrorKind::ConnectionAborted));
            }
            if self.drips() {
                return Err(ended(io::ErrorKind::QuotaExceeded));
            }
            let slice = NextTimeout { after: SLICE.into(), ..timeout };
            let before = self.inner.buffers().input().len();
            match self.inner.await_input(slice) {
                Ok(progress) => {
                    self.arrived += (self.inner.buffers().input().len() - before) as u64;
                    return Ok(progress);
                }
                Err(error) if is_timeout(&error) && began.elapsed() < SILENCE => {}
                Err(error) if is_timeout(&error) => return Err(ended(io::ErrorKind::TimedOut)),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}
