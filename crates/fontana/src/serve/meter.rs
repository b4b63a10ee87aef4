//! A connection whose bytes are counted, so that a client that takes next to nothing is noticed.

use super::counters::Counters;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A client that takes fewer bytes per second than this, for [`PATIENCE`], is closed: it takes the
/// place of another one. So is one that requests nothing.
const LEAST_RATE: u64 = 1024;
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// What has become of a connection.
#[derive(Debug, Default)]
pub(super) struct Meter {
    written: AtomicU64,
    /// Pieces that are being made for it: the client waits for the server.
    pending: AtomicU64,
}

impl Meter {
    /// The server makes a piece until the result is dropped.
    pub(super) fn making(self: &Arc<Self>) -> Making {
        self.pending.fetch_add(1, Ordering::Relaxed);
        Making(Arc::clone(self))
    }

    /// Waits until the client has taken far too little for `patience`.
    pub(super) async fn is_too_slow(&self, patience: Duration) {
        loop {
            let before = self.written.load(Ordering::Relaxed);
            tokio::time::sleep(patience).await;
            let written = self.written.load(Ordering::Relaxed) - before;
            let waits = self.pending.load(Ordering::Relaxed) > 0;
            if (written as f64) < LEAST_RATE as f64 * patience.as_secs_f64() && !waits {
                return;
            }
        }
    }
}

/// A piece that is being made.
#[derive(Debug)]
pub(super) struct Making(Arc<Meter>);

impl Drop for Making {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection, and where its bytes are counted.
#[derive(Debug)]
pub(super) struct Metered {
    pub(super) stream: TcpStream,
    pub(super) meter: Arc<Meter>,
    pub(super) counters: Arc<Counters>,
}

impl Metered {
    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = written {
            self.meter.written.fetch_add(count as u64, Ordering::Relaxed);
            Counters::add(&self.counters.bytes, count as u64);
        }
        written
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, out)
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(50);

    /// Whether a client that has taken so many bytes in each tenth of the time is closed.
    async fn is_closed(meter: &Arc<Meter>, bytes: u64) -> bool {
        let take = async {
            loop {
                meter.written.fetch_add(bytes, Ordering::Relaxed);
                tokio::time::sleep(SHORT / 10).await;
            }
        };
        tokio::select! {
            closed = timeout(10 * SHORT, meter.is_too_slow(SHORT)) => closed.is_ok(),
            () = take => false,
        }
    }

    #[test]
    fn a_client_that_takes_next_to_nothing_is_closed_unless_it_waits_for_the_server() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let meter = Arc::new(Meter::default());
            assert!(is_closed(&meter, 0).await);
            assert!(is_closed(&meter, 1).await);
            assert!(!is_closed(&meter, 1_000).await);
            let making = meter.making();
            assert!(!is_closed(&meter, 0).await);
            drop(making);
            assert!(is_closed(&meter, 0).await);
        });
    }
}
