//! Receiving one-way UDP: multicast from any source or from named ones, broadcast, unicast.
//!
//! - Datagrams arrive in batches ([`ReceiveSocket::recv_batch`]); with receive offload (`UDP_GRO`,
//!   udp(7), Linux 5.0) a run of equal datagrams of one sender costs one system call.
//! - What the kernel threw away because nobody read in time is counted ([`ReceiveSocket::drops`]),
//!   so that it is not mistaken for loss in the network.
//! - More sources than the kernel allows one socket of a group are shared out to several
//!   ([`ReceiveSocket::open_all`]); [`crate::Channels`] drains them together.
//! - The size of the receive buffer is read back: the kernel gives less than asked without a word
//!   ([`ReceiveSocket::buffer_shortfall`] says so, with the command that mends it).
//! - A receiver cannot send: there is no function for it, and the socket is shut down for sending,
//!   so that the kernel refuses it as well (Linux: a later `sendto` fails with EPIPE). What the
//!   kernel itself says to routers (IGMP, MLD) remains.

mod batch;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

pub use batch::{Batch, MAX_TRAINS};

use crate::group::{GroupError, check_group};
use crate::interface::{Interface, scoped};
use crate::membership::{Membership, MembershipError};
use crate::sys;

/// The receive buffer to ask for: 67 ms at 1 Gbit/s, which covers a reader that lost the processor
/// for a few scheduler rounds.
pub const DEFAULT_RECEIVE_BUFFER: usize = 8 << 20;

/// What a socket listens to.
#[derive(Debug, Clone)]
pub enum Reception {
    /// One group, and nothing else that arrives at this port.
    Group {
        /// The group.
        group: IpAddr,
        /// Where it is joined.
        interface: Interface,
    },
    /// Datagrams to this broadcast address (255.255.255.255 or a network's).
    Broadcast(Ipv4Addr),
    /// Datagrams to this address of this host, or to any of its addresses (unspecified).
    Unicast(IpAddr),
}

/// What a [`ReceiveSocket`] needs to know.
#[derive(Debug, Clone)]
pub struct ReceiveConfig {
    /// What is listened to.
    pub reception: Reception,
    /// UDP port; 0 lets the system choose ([`ReceiveSocket::port`] tells).
    pub port: u16,
    /// Only datagrams from these senders; empty: from anyone. With [`Reception::Group`] the group
    /// is joined for each of them (source-specific; one socket takes 10 by Linux's default).
    pub sources: Vec<IpAddr>,
    /// Bytes of kernel receive buffer to ask for.
    pub receive_buffer: usize,
}

impl ReceiveConfig {
    /// One multicast group from any source.
    pub fn multicast(group: IpAddr, port: u16, interface: &Interface) -> Self {
        Self::of(Reception::Group { group, interface: interface.clone() }, port)
    }

    /// Broadcast datagrams.
    pub fn broadcast(address: Ipv4Addr, port: u16) -> Self {
        Self::of(Reception::Broadcast(address), port)
    }

    /// Datagrams to one address of this host.
    pub fn unicast(address: SocketAddr) -> Self {
        Self::of(Reception::Unicast(address.ip()), address.port())
    }

    fn of(reception: Reception, port: u16) -> Self {
        Self { reception, port, sources: Vec::new(), receive_buffer: DEFAULT_RECEIVE_BUFFER }
    }
}

/// A socket that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The group is not for sessions.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A group could not be joined.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// Another program listens there and does not share.
    #[error("{address} is taken by another program; choose another port, or end that program")]
    AddressInUse {
        /// Where the socket was to listen.
        address: SocketAddr,
    },
    /// The system refuses; the first part says which step failed.
    #[error("cannot {step}: {error}")]
    Setup {
        /// What was tried.
        step: &'static str,
        /// The system's word.
        #[source]
        error: io::Error,
    },
}

/// The kernel gave less receive buffer than asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferShortfall {
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes got.
    pub got: usize,
    /// The command that mends it, to be run as root.
    pub remedy: String,
}

impl BufferShortfall {
    fn between(asked: usize, got: usize) -> Option<Self> {
        (got < asked).then(|| Self {
            asked,
            got,
            remedy: if cfg!(any(target_os = "linux", target_os = "android")) {
                format!("sysctl -w net.core.rmem_max={asked}")
            } else {
                format!("sysctl -w kern.ipc.maxsockbuf={asked}")
            },
        })
    }
}

/// A socket that only receives.
#[derive(Debug)]
pub struct ReceiveSocket {
    socket: Socket,
    offload: UdpSocketState,
    membership: Option<Membership>,
    port: u16,
    /// What its datagrams are said to have come on.
    channel: u8,
    /// Checked here for broadcast and unicast; for multicast the kernel keeps others out.
    sources: Vec<IpAddr>,
    shortfall: Option<BufferShortfall>,
    drops: WrappingCounter,
    foreign: u64,
}

impl ReceiveSocket {
    /// Opens the socket and joins its group, if it has one.
    ///
    /// # Errors
    /// The group is not for sessions, the port is taken, a join is refused, or the system is out
    /// of something; see [`ReceiveError`].
    pub fn open(config: &ReceiveConfig) -> Result<Self, ReceiveError> {
        let (bind_ip, interface, shared) = match &config.reception {
            Reception::Group { group, interface } => {
                check_group(*group)?;
                (*group, Some(interface), true)
            }
            Reception::Broadcast(address) => (IpAddr::V4(*address), None, true),
            // A unicast datagram goes to one socket only: sharing the port would let a second
            // program of this host take a session away in silence.
            Reception::Unicast(address) => (*address, None, false),
        };
        let domain = Domain::for_address(SocketAddr::new(bind_ip, 0));
        let socket =
            step("open a UDP socket", Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)))?;
        if bind_ip.is_ipv6() {
            step("make the socket IPv6 only", socket.set_only_v6(true))?;
        }
        // Several receivers of one group on one host each get every datagram.
        step("share the port", socket.set_reuse_address(shared))?;
        if interface.is_some() {
            only_own_groups(&socket, bind_ip)?;
        }
        // Before bind: nothing is dropped between bind and a larger buffer.
        let got =
            step("set the receive buffer", set_receive_buffer(&socket, config.receive_buffer))?;
        let address = scoped(bind_ip, config.port, interface.map_or(0, |i| i.index));
        socket.bind(&address.into()).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ReceiveError::AddressInUse { address },
            _ => ReceiveError::Setup { step: "bind to the address to listen to", error },
        })?;
        let offload =
            step("switch receive offload on", UdpSocketState::new(UdpSockRef::from(&socket)))?;
        // Linux answers ENOTCONN to a socket without a peer, and shuts it down all the same
        // (inet_shutdown); systems that do neither are left with "no function sends".
        let _ = socket.shutdown(std::net::Shutdown::Write);

        let membership = match interface {
            None => None,
            Some(interface) => {
                let handle = step("duplicate the socket", socket.try_clone())?;
                Some(Membership::new(handle, interface, bind_ip))
            }
        };
        if let (Reception::Group { group, .. }, Some(membership)) = (&config.reception, &membership)
        {
            if config.sources.is_empty() {
                membership.join(*group, None)?;
            }
            for &source in &config.sources {
                membership.join(*group, Some(source))?;
            }
        }
        let port = step("read the local address", socket.local_addr())?
            .as_socket()
            .map_or(config.port, |address| address.port());
        Ok(Self {
            drops: WrappingCounter::starting_at(sys::receive_drops(&socket).unwrap_or(0)),
            socket,
            offload,
            sources: if membership.is_some() { Vec::new() } else { config.sources.clone() },
            membership,
            port,
            channel: 0,
            shortfall: BufferShortfall::between(config.receive_buffer, got),
            foreign: 0,
        })
    }

    /// As [`open`](Self::open), with several sockets where the sources are more than the kernel
    /// lets one socket join a group from (`net.ipv4.igmp_max_msf`, `net.ipv6.mld_max_msf`). No
    /// datagram comes to two of them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_all(config: &ReceiveConfig) -> Result<Vec<Self>, ReceiveError> {
        let Reception::Group { group, .. } = &config.reception else {
            return Ok(vec![Self::open(config)?]);
        };
        let most = most_sources(*group);
        if config.sources.len() <= most {
            return Ok(vec![Self::open(config)?]);
        }
        let mut sockets: Vec<Self> = Vec::new();
        for sources in config.sources.chunks(most) {
            // Where the system chooses the port, it chooses once.
            let port = sockets.first().map_or(config.port, Self::port);
            let sources = sources.to_vec();
            sockets.push(Self::open(&ReceiveConfig { port, sources, ..config.clone() })?);
        }
        Ok(sockets)
    }

    /// Its datagrams will be said to have come on `channel`.
    pub(crate) fn on_channel(self, channel: u8) -> Self {
        Self { channel, ..self }
    }

    /// For waiting for several sockets at once.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The channel that its datagrams are said to come on.
    pub(crate) fn channel(&self) -> u8 {
        self.channel
    }

    /// The UDP port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Joins and leaves; `None` for broadcast and unicast.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }

    /// Set when the receive buffer is smaller than asked for.
    pub fn buffer_shortfall(&self) -> Option<&BufferShortfall> {
        self.shortfall.as_ref()
    }

    /// Datagrams that came to this socket from other senders than those asked for (broadcast,
    /// unicast).
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// How often the kernel threw a packet away at this socket since it was opened, mostly because
    /// the receive buffer was full; never decreases. 0 where the system does not tell.
    ///
    /// A lower bound in datagrams: a run of datagrams that was merged by receive offload is thrown
    /// away as one packet and counted as one.
    pub fn drops(&mut self) -> u64 {
        if let Ok(now) = sys::receive_drops(&self.socket) {
            self.drops.advance_to(now);
        }
        self.drops.total
    }

    /// Empties `batch` and fills it with what has arrived, waiting at most `timeout` for the first
    /// datagram. Returns the number of datagrams, 0 after the timeout or a signal.
    ///
    /// # Errors
    /// What the system says about the socket itself; errors that concern single packets are passed
    /// over.
    pub fn recv_batch(&mut self, timeout: Duration, batch: &mut Batch) -> io::Result<usize> {
        batch.clear();
        self.recv_more(timeout, batch)
    }

    /// Like [`Self::recv_batch`], after what is in `batch` already. Returns the number of datagrams
    /// added; 0 at once when the batch is full.
    ///
    /// Bounded in time as in memory: at most [`MAX_TRAINS`] system calls, whatever arrives.
    ///
    /// # Errors
    /// As [`Self::recv_batch`].
    pub fn recv_more(&mut self, timeout: Duration, batch: &mut Batch) -> io::Result<usize> {
        if batch.is_full() {
            return Ok(0);
        }
        let before = batch.len();
        let started = Instant::now();
        // Usually data is there already and no wait is needed: receive first.
        for _ in 0..MAX_TRAINS {
            let Some(room) = batch.room() else { break };
            let mut meta = [RecvMeta::default()];
            let received = self.offload.recv(
                UdpSockRef::from(&self.socket),
                &mut [IoSliceMut::new(room)],
                &mut meta,
            );
            match received {
                Ok(0) => {}
                Ok(_) => {
                    let [meta] = meta;
                    if self.is_for_us(&meta) {
                        batch.keep(self.channel, &meta);
                    } else {
                        self.foreign += datagrams_in(&meta);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let remaining = timeout.saturating_sub(started.elapsed());
                    if batch.len() > before
                        || remaining.is_zero()
                        || !sys::wait_readable(&self.socket, remaining)?
                    {
                        break;
                    }
                }
                Err(error) if concerns_one_packet(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(batch.len() - before)
    }

    /// Waits until something has arrived, at most `timeout` (rounded up to milliseconds). `false`:
    /// nothing did, or a signal cut the wait.
    ///
    /// # Errors
    /// What the system says about the socket itself.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        sys::wait_readable(&self.socket, timeout)
    }

    fn is_for_us(&self, meta: &RecvMeta) -> bool {
        self.sources.is_empty() || self.sources.contains(&meta.addr.ip())
    }
}

/// How many sources one socket can join a group from.
fn most_sources(group: IpAddr) -> usize {
    // What to think where the system does not say: Linux's defaults.
    let (name, default) = match group {
        IpAddr::V4(_) => ("net.ipv4.igmp_max_msf", 10),
        IpAddr::V6(_) => ("net.ipv6.mld_max_msf", 64),
    };
    sys::setting(name).unwrap_or(default).max(1)
}

fn datagrams_in(meta: &RecvMeta) -> u64 {
    // An empty datagram is one datagram.
    meta.len.div_ceil(meta.stride.max(1)).max(1) as u64
}

/// Errors that say something about a packet or a passing shortage, not about the socket.
fn concerns_one_packet(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EINTR
                | libc::ENOMEM
                | libc::ENOBUFS
                | libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::ENETDOWN
        )
    )
}

/// Without this the socket hears every group that any program of this host has joined on this port
/// (Linux: `IP_MULTICAST_ALL`, ip(7)).
fn only_own_groups(socket: &Socket, bind_ip: IpAddr) -> Result<(), ReceiveError> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    step(
        "keep other programs' groups away",
        match bind_ip {
            IpAddr::V4(_) => socket.set_multicast_all_v4(false),
            IpAddr::V6(_) => socket.set_multicast_all_v6(false),
        },
    )?;
    // Other systems deliver only what the socket itself has joined.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (socket, bind_ip);
    Ok(())
}

/// Asks for a receive buffer and returns what it really is, in the units of the request.
pub(crate) fn set_receive_buffer(socket: &Socket, size: usize) -> io::Result<usize> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let value = i32::try_from(size).unwrap_or(i32::MAX / 2);
        // Past `net.core.rmem_max`, for those who may (CAP_NET_ADMIN).
        if sys::set_int(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value).is_err() {
            socket.set_recv_buffer_size(value as usize)?;
        }
        // Linux doubles the request to cover its own bookkeeping, and reports the double:
        // socket(7), SO_RCVBUF.
        Ok(socket.recv_buffer_size()? / 2)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        // Systems that refuse a size instead of lowering it: halve until it is taken.
        let mut size = size;
        while size > 65_536 && socket.set_recv_buffer_size(size).is_err() {
            size /= 2;
        }
        socket.recv_buffer_size()
    }
}

fn step<T>(step: &'static str, result: io::Result<T>) -> Result<T, ReceiveError> {
    result.map_err(|error| ReceiveError::Setup { step, error })
}

/// Makes one counter that never wraps out of a 32-bit one that does.
///
/// Right as long as it is read at least once in 2^32 events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WrappingCounter {
    last: u32,
    total: u64,
}

impl WrappingCounter {
    fn starting_at(value: u32) -> Self {
        Self { last: value, total: 0 }
    }

    fn advance_to(&mut self, value: u32) {
        self.total += u64::from(value.wrapping_sub(self.last));
        self.last = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drop_counter_goes_on_where_the_kernel_wraps() {
        let mut counter = WrappingCounter::starting_at(u32::MAX - 2);
        counter.advance_to(u32::MAX - 2);
        assert_eq!(counter.total, 0);
        counter.advance_to(u32::MAX);
        assert_eq!(counter.total, 2);
        counter.advance_to(3);
        assert_eq!(counter.total, 6);
    }

    #[test]
    fn a_shortfall_begins_one_byte_below_what_was_asked() {
        assert_eq!(BufferShortfall::between(8 << 20, 8 << 20), None);
        let shortfall = BufferShortfall::between(8 << 20, (8 << 20) - 1).unwrap();
        assert_eq!((shortfall.asked, shortfall.got), (8 << 20, (8 << 20) - 1));
        #[cfg(target_os = "linux")]
        assert_eq!(shortfall.remedy, "sysctl -w net.core.rmem_max=8388608");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_refuses_to_send_from_a_receiving_socket() {
        for ip in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(ip.parse().unwrap(), 0);
            let receiver = match ReceiveSocket::open(&ReceiveConfig::unicast(address)) {
                Err(ReceiveError::Setup { .. }) if address.is_ipv6() => continue,
                other => other.unwrap(),
            };
            let to = SocketAddr::new(address.ip(), receiver.port());
            let error = receiver.socket.send_to(b"not allowed", &to.into()).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPIPE), "{ip}");
        }
    }
}
