//! The channels of a session: sockets that are opened and closed while one thread drains them all.
//!
//! A channel is a group. Every channel has a socket of its own, bound to that group. So the socket
//! identifies the channel of a datagram, even if the system does not report destinations. The
//! kernel's limit of 20 groups per socket (`net.ipv4.igmp_max_memberships`) does not apply. The
//! queue of one channel cannot displace datagrams of another, and unicast datagrams to the same
//! port still reach their sockets. A channel with more sources than one socket can join has several
//! sockets ([`ReceiveSocket::open_all`]).
//!
//! On Linux, silent sockets cost the draining thread nothing: `examples/channels_rate.rs` measures
//! it.
//!
//! ```no_run
//! # use fontana_net::{Interfaces, ReceiveConfig, ReceiveSocket};
//! # use fontana_net::{ReceiveThread, ReceiveThreadConfig};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let interfaces = Interfaces::list()?;
//! # let interface = interfaces.select(&"lo".parse()?)?;
//! let config = |last| ReceiveConfig::multicast([239, 255, 77, last].into(), 7701, interface);
//! let base = ReceiveSocket::open_all(&config(1))?;
//! let thread = ReceiveThread::spawn(base, ReceiveThreadConfig::default())?;
//! thread.channels().join(1, &config(2))?;
//! for batch in thread.batches() {
//!     for (datagram, payload) in batch.iter() {
//!         println!("{:?}: {} bytes", datagram.port, payload.len());
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::receiver::{ReceiveConfig, ReceiveError, ReceiveSocket};

/// The handle that joins and leaves the channels of a [`crate::ReceiveThread`] while it receives,
/// without losses on the other channels.
#[derive(Debug)]
pub struct Channels {
    joined: Mutex<BTreeSet<u8>>,
    changes: Sender<Change>,
    waker: UnixStream,
}

/// A change for the receive thread. The queue is not bounded, because the thread empties it at each
/// wake-up.
#[derive(Debug)]
pub(crate) enum Change {
    Join(Vec<ReceiveSocket>),
    /// They replace those of the same channel and interface.
    Rejoin(Vec<ReceiveSocket>),
    Leave(u8),
}

impl Channels {
    /// The handle and the receive thread's end. The sockets `base` join channel 0.
    pub(crate) fn new(base: Vec<ReceiveSocket>) -> io::Result<(Self, Changes)> {
        let (changes, queue) = unbounded();
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let channels = Self { joined: Mutex::new(BTreeSet::from([0])), changes, waker };
        channels.send(Change::Join(base.into_iter().map(|s| s.on_channel(0)).collect()));
        Ok((channels, Changes { queue, woken }))
    }

    /// Opens the channel's sockets, which joins its group, unless it is joined already.
    ///
    /// # Errors
    /// As [`ReceiveSocket::open`]; the channel is not joined in that case.
    pub fn join(&self, channel: u8, config: &ReceiveConfig) -> Result<(), ReceiveError> {
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if !joined.contains(&channel) {
            let sockets = ReceiveSocket::open_all(config)?;
            tracing::debug!(channel, reception = ?config.reception, "joined");
            joined.insert(channel);
            self.send(Change::Join(sockets.into_iter().map(|s| s.on_channel(channel)).collect()));
        }
        Ok(())
    }

    /// Joins a channel again on one interface, which has another index than before: `config` has no
    /// other one. Unread datagrams of its old sockets are lost. Joins it if it is not joined.
    ///
    /// # Errors
    /// As [`ReceiveSocket::open`]; the old sockets stay in that case.
    pub fn rejoin(&self, channel: u8, config: &ReceiveConfig) -> Result<(), ReceiveError> {
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let sockets = ReceiveSocket::open_all(config)?;
        tracing::debug!(channel, reception = ?config.reception, "joined again");
        joined.insert(channel);
        self.send(Change::Rejoin(sockets.into_iter().map(|s| s.on_channel(channel)).collect()));
        Ok(())
    }

    /// The channels that are joined.
    pub fn joined(&self) -> BTreeSet<u8> {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leaves the channel's group and closes its sockets; unread datagrams are lost. The receive
    /// thread does so when it has finished its current read. Does nothing if the channel is not
    /// joined.
    pub fn leave(&self, channel: u8) {
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if joined.remove(&channel) {
            tracing::debug!(channel, "left");
            self.send(Change::Leave(channel));
        }
    }

    /// Wakes the receive thread.
    pub(crate) fn wake(&self) {
        // A full socket wakes the thread already.
        let _ = (&self.waker).write(&[1]);
    }

    fn send(&self, change: Change) {
        // Ignored if the thread has ended.
        let _ = self.changes.send(change);
        self.wake();
    }
}

/// The receive thread's end of [`Channels`].
#[derive(Debug)]
pub(crate) struct Changes {
    queue: Receiver<Change>,
    woken: UnixStream,
}

impl Changes {
    /// A descriptor that is readable while there are changes.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// The changes since the last call.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Change> {
        // Read before the queue, so that later changes wake the thread again.
        let mut bytes = [0; 64];
        while matches!((&self.woken).read(&mut bytes), Ok(count) if count > 0) {}
        self.queue.try_iter()
    }
}
