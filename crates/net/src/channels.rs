//! The channels of a session: sockets that come and go while one thread drains them all.
//!
//! A channel is a group, and every channel has a socket of its own, bound to that group. So the
//! socket tells exactly which channel a datagram came on, whatever the system says of destinations;
//! the kernel's limit of 20 groups for a socket (`net.ipv4.igmp_max_memberships`) is never met; one
//! channel's queue cannot push another's datagrams out; and unicast to the same port stays with
//! whom it is for. A channel with more sources than the kernel lets one socket join has several
//! ([`ReceiveSocket::open_all`]).
//!
//! Many silent sockets cost the thread that drains them nothing, on Linux:
//! `examples/channels_rate.rs` measures it.
//!
//! ```no_run
//! # use fontana_net::{Interfaces, ReceiveConfig, ReceiveSocket, ReceiveThread, ReceiveThreadConfig};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let interfaces = Interfaces::list()?;
//! # let interface = interfaces.select(&"lo".parse()?)?;
//! let config = |last| ReceiveConfig::multicast([239, 255, 77, last].into(), 7701, interface);
//! let base = ReceiveSocket::open_all(&config(1))?;
//! let thread = ReceiveThread::spawn(base, ReceiveThreadConfig::default())?;
//! thread.channels().join(1, &config(2))?;
//! for batch in thread.batches() {
//!     for (datagram, payload) in batch.iter() {
//!         println!("channel {}: {} bytes", datagram.channel.0, payload.len());
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

/// Joins and leaves the channels of a [`crate::ReceiveThread`], which receives on meanwhile:
/// nothing of the other channels is lost by it.
#[derive(Debug)]
pub struct Channels {
    joined: Mutex<BTreeSet<u8>>,
    changes: Sender<Change>,
    bell: UnixStream,
}

/// What the receive thread is told. As many as were asked for since it last looked: it looks at
/// once.
#[derive(Debug)]
pub(crate) enum Change {
    Join(Vec<ReceiveSocket>),
    Leave(u8),
}

impl Channels {
    /// Channel 0 is joined by its sockets; the other end is for the thread that drains them.
    pub(crate) fn new(base: Vec<ReceiveSocket>) -> io::Result<(Self, Changes)> {
        let (changes, queue) = unbounded();
        let (bell, rung) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let channels = Self { joined: Mutex::new(BTreeSet::from([0])), changes, bell };
        channels.tell(Change::Join(base.into_iter().map(|s| s.on_channel(0)).collect()));
        Ok((channels, Changes { queue, rung }))
    }

    /// Opens the channel's sockets, which joins its group, unless it is joined already.
    ///
    /// # Errors
    /// As [`ReceiveSocket::open`]; the channel is not joined then.
    pub fn join(&self, channel: u8, config: &ReceiveConfig) -> Result<(), ReceiveError> {
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if !joined.contains(&channel) {
            let sockets = ReceiveSocket::open_all(config)?;
            tracing::debug!(channel, reception = ?config.reception, "joined");
            joined.insert(channel);
            self.tell(Change::Join(sockets.into_iter().map(|s| s.on_channel(channel)).collect()));
        }
        Ok(())
    }

    /// Leaves the channel's group and closes its sockets, with what nobody has read from them. The
    /// receive thread does that as soon as it has read what it is reading; a channel that is not
    /// joined needs no leaving.
    pub fn leave(&self, channel: u8) {
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if joined.remove(&channel) {
            tracing::debug!(channel, "left");
            self.tell(Change::Leave(channel));
        }
    }

    /// The receive thread looks up from its wait.
    pub(crate) fn ring(&self) {
        // A bell that is full rings already.
        let _ = (&self.bell).write(&[1]);
    }

    fn tell(&self, change: Change) {
        // A thread that has ended joins nothing any more.
        let _ = self.changes.send(change);
        self.ring();
    }
}

/// The receive thread's end of [`Channels`].
#[derive(Debug)]
pub(crate) struct Changes {
    queue: Receiver<Change>,
    rung: UnixStream,
}

impl Changes {
    /// What is readable when there is something new.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.rung.as_fd()
    }

    /// What was asked for since the last time.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Change> {
        // Before the queue: what comes afterwards rings again.
        let mut rings = [0; 64];
        while matches!((&self.rung).read(&mut rings), Ok(count) if count > 0) {}
        self.queue.try_iter()
    }
}
