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

    /// Waits. False as soon as nothing is needed any more.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while self.left() > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(SLICE));
        }
        false
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
        Ok(chained.map(|inner| Patient { inner, need, pace: Pace::default() }))
    }
}

/// A connection with limits to its waits.
#[derive(Debug)]
pub(super) struct Patient<T> {
    inner: T,
    need: Arc<Need>,
    pace: Pace,
}

/// How fast a server sends. Only time in which it is waited for counts: a limit to the rate of all
/// mirrors makes the receiver wait, too.
#[derive(Debug, Default)]
struct Pace {
    waited: Duration,
    /// Bytes that have arrived in this time.
    arrived: u64,
}

impl Pace {
    /// Notes a wait, and what it has brought. True if far too little has arrived in [`WINDOW`].
    fn note(&mut self, waited: Duration, arrived: u64) -> bool {
        self.waited += waited;
        self.arrived += arrived;
        if self.waited < WINDOW {
            return false;
        }
        let Self { waited, arrived } = std::mem::take(self);
        arrived < LEAST_RATE * waited.as_secs()
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
        // A request begins.
        self.pace = Pace::default();
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let began = Instant::now();
        loop {
            if self.need.left() == 0 {
                return Err(ended(io::ErrorKind::ConnectionAborted));
            }
            let slice = NextTimeout { after: SLICE.into(), ..timeout };
            let (before, waits) = (self.inner.buffers().input().len(), Instant::now());
            let result = self.inner.await_input(slice);
            let arrived = self.inner.buffers().input().len().saturating_sub(before);
            if self.pace.note(waits.elapsed(), arrived as u64) {
                return Err(ended(io::ErrorKind::QuotaExceeded));
            }
            match result {
                Ok(progress) => return Ok(progress),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_sends_next_to_nothing_while_it_is_waited_for_drips() {
        let mut pace = Pace::default();
        let second = Duration::from_secs(1);
        assert!((0..9).all(|_| !pace.note(second, 1000)));
        assert!(pace.note(second, 1000), "1 000 bytes per second");
        assert!((0..20).all(|_| !pace.note(second, 1100)));
        // A receiver that reads seldom does not wait for long.
        assert!((0..1000).all(|_| !pace.note(Duration::from_millis(1), 10)));
    }
}
