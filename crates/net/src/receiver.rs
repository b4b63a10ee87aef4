//! Receiving one-way UDP: multicast from any source or from named sources, broadcast, unicast.
//!
//! - Datagrams arrive in batches ([`ReceiveSocket::recv_batch`]). With receive offload (`UDP_GRO`,
//!   udp(7), Linux 5.0) a run of equal datagrams from one sender takes one system call. Without it,
//!   one call receives up to 64 datagrams (`recvmmsg`).
//! - Datagrams that the kernel dropped because they were not read in time are counted
//!   ([`ReceiveSocket::drops`]), so that they are not mistaken for loss in the network.
//! - If a group has more sources than the kernel allows one socket, they are distributed over
//!   several ([`ReceiveSocket::open_all`]); [`crate::Channels`] drains them together.
//! - The size of the receive buffer is read back, because the kernel may grant less without an
//!   error ([`ReceiveSocket::buffer_shortfall`] returns the remedy).
//! - A receiver cannot send: there is no function for it, and the socket is shut down for sending,
//!   so that the kernel rejects it too (Linux: a later `sendto` fails with EPIPE). The kernel
//!   itself still sends reports to routers (IGMP, MLD).

mod batch;
mod messages;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

pub use batch::{Batch, MAX_BATCH_MESSAGES};
use messages::Messages;

use crate::group::{GroupError, check_group};
use crate::interface::{Interface, scoped};
use crate::membership::{Membership, MembershipError};
use crate::optional::{OptionalSetting, Refusals, Ungranted};
use crate::sys;

/// Default size of the receive buffer: 67 ms at 1 Gbit/s, which covers a reader that loses the
/// processor for a few time slices.
pub const DEFAULT_RECEIVE_BUFFER: usize = 8 << 20;

/// The datagrams that a socket receives.
#[derive(Debug, Clone)]
pub enum Reception {
    /// One group; other datagrams to this port are not received.
    Group {
        /// The group.
        group: IpAddr,
        /// The interface on which it is joined.
        interface: Interface,
    },
    /// Datagrams to this broadcast address (255.255.255.255 or a network's).
    Broadcast(Ipv4Addr),
    /// Datagrams to this address of this host, or to any of its addresses (unspecified).
    Unicast(IpAddr),
}

/// Configuration of a [`ReceiveSocket`].
#[derive(Debug, Clone)]
pub struct ReceiveConfig {
    /// The datagrams that it receives.
    pub reception: Reception,
    /// Interfaces on which [`ReceiveSocket::open_all`] joins the group too, with a socket each.
    pub further_interfaces: Vec<Interface>,
    /// The interface of a link-local address to listen at, by its index; 0 for others.
    pub scope_id: u32,
    /// UDP port; 0 lets the system choose ([`ReceiveSocket::port`] returns it).
    pub port: u16,
    /// Receive only from these senders; empty: from any. With [`Reception::Group`] the group is
    /// joined for each of them (source-specific; one socket takes 10 by Linux's default).
    pub sources: Vec<IpAddr>,
    /// Requested size of the kernel's receive buffer, in bytes.
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
        let scope_id = match address {
            SocketAddr::V6(address) => address.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        Self { scope_id, ..Self::of(Reception::Unicast(address.ip()), address.port()) }
    }

    fn of(reception: Reception, port: u16) -> Self {
        Self {
            reception,
            further_interfaces: Vec::new(),
            scope_id: 0,
            port,
            sources: Vec::new(),
            receive_buffer: DEFAULT_RECEIVE_BUFFER,
        }
    }
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The group cannot carry a session.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// A group could not be joined.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// Another program uses the address and does not share it.
    #[error("{address} is taken by another program; choose another port, or end that program")]
    AddressInUse {
        /// The address to bind to.
        address: SocketAddr,
    },
    /// The address is that of another host.
    #[error(
        "no interface here has the address {}: packets to it go to another host; receive there, or \
         have the sender send to an address of this host, or to a group",
        address.ip()
    )]
    NotHere {
        /// The address to bind to.
        address: SocketAddr,
    },
    /// Another error of the system; `step` says which step failed.
    #[error("cannot {step}: {error}")]
    Setup {
        /// The step that failed.
        step: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

/// The kernel granted a smaller receive buffer than requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferShortfall {
    /// Requested size in bytes.
    pub asked: usize,
    /// Granted size in bytes.
    pub got: usize,
    /// The command that raises the limit, to be run as root.
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
    messages: Messages,
    membership: Option<Membership>,
    port: u16,
    /// The channel that its datagrams are attributed to.
    channel: u8,
    /// Checked here for broadcast and unicast; for multicast the kernel filters sources.
    sources: Vec<IpAddr>,
    shortfall: Option<BufferShortfall>,
    refusals: Refusals,
    drops: WrappingCounter,
    foreign: u64,
}

impl ReceiveSocket {
    /// Opens the socket and joins its group, if it has one.
    ///
    /// # Errors
    /// The group cannot carry a session, the port is taken, a join fails, or the system lacks
    /// resources; see [`ReceiveError`].
    pub fn open(config: &ReceiveConfig) -> Result<Self, ReceiveError> {
        let (bind_ip, interface, shared) = match &config.reception {
            Reception::Group { group, interface } => {
                check_group(*group)?;
                (*group, Some(interface), true)
            }
            Reception::Broadcast(address) => (IpAddr::V4(*address), None, true),
            // A unicast datagram goes to one socket only: if the port were shared, a second program
            // of this host could take over a session without an error.
            Reception::Unicast(address) => (*address, None, false),
        };
        let domain = Domain::for_address(SocketAddr::new(bind_ip, 0));
        let socket =
            step("open a UDP socket", Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)))?;
        let mut refusals = Refusals::default();
        if bind_ip.is_ipv6() {
            refusals.tolerate(OptionalSetting::OnlyVersion6, socket.set_only_v6(true));
        }
        // Several receivers of one group on one host get every datagram each.
        refusals.tolerate(OptionalSetting::SharedPort, socket.set_reuse_address(shared));
        if interface.is_some() {
            refusals.tolerate(OptionalSetting::OwnGroups, only_own_groups(&socket, bind_ip));
        }
        // Before bind: no datagram is dropped between bind and the larger buffer.
        let got = refusals.tolerate(
            OptionalSetting::ReceiveBuffer,
            set_receive_buffer(&socket, config.receive_buffer),
        );
        let scope_id = interface.map_or(config.scope_id, |interface| interface.index);
        let address = scoped(bind_ip, config.port, scope_id);
        socket.bind(&address.into()).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ReceiveError::AddressInUse { address },
            io::ErrorKind::AddrNotAvailable => ReceiveError::NotHere { address },
            _ => ReceiveError::Setup { step: "bind to the address to listen to", error },
        })?;
        let offload = UdpSocketState::new(UdpSockRef::from(&socket));
        let offload = refusals.tolerate(OptionalSetting::ReceiveOffload, offload);
        sys::receive_less_control(&socket);
        // Linux returns ENOTCONN for a socket without a peer, but shuts it down (inet_shutdown). On
        // systems that do not, only the missing function prevents sending.
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
            messages: Messages::new(offload),
            sources: if membership.is_some() { Vec::new() } else { config.sources.clone() },
            membership,
            port,
            channel: 0,
            shortfall: got.and_then(|got| BufferShortfall::between(config.receive_buffer, got)),
            refusals,
            foreign: 0,
        })
    }

    /// As [`open`](Self::open), with several sockets if the group is joined on several interfaces,
    /// or if there are more sources than the kernel allows one socket to join a group from
    /// (`net.ipv4.igmp_max_msf`, `net.ipv6.mld_max_msf`). No datagram arrives at two of them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_all(config: &ReceiveConfig) -> Result<Vec<Self>, ReceiveError> {
        let Reception::Group { group, interface } = &config.reception else {
            return Ok(vec![Self::open(config)?]);
        };
        // No sources: any source, with one socket.
        let most = most_sources(*group);
        let parts: Vec<&[IpAddr]> = match config.sources.is_empty() {
            true => vec![&[]],
            false => config.sources.chunks(most).collect(),
        };
        let mut sockets: Vec<Self> = Vec::new();
        for interface in [interface].into_iter().chain(&config.further_interfaces) {
            for sources in &parts {
                // If the system chooses the port, it chooses once.
                let port = sockets.first().map_or(config.port, Self::port);
                let reception = Reception::Group { group: *group, interface: interface.clone() };
                let sources = sources.to_vec();
                let config = ReceiveConfig { reception, port, sources, ..config.clone() };
                sockets.push(Self::open(&config)?);
            }
        }
        Ok(sockets)
    }

    /// Sets the channel that its datagrams are attributed to.
    pub(crate) fn on_channel(self, channel: u8) -> Self {
        Self { channel, ..self }
    }

    /// The descriptor, for waiting for several sockets at once.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The channel that its datagrams are attributed to.
    pub(crate) fn channel(&self) -> u8 {
        self.channel
    }

    /// Its channel, and the interface on which it has joined the channel's group.
    pub(crate) fn place(&self) -> (u8, Option<&str>) {
        (self.channel, self.membership.as_ref().map(Membership::interface_name))
    }

    /// What the system refused when it was opened, and it does without.
    pub fn ungranted(&self) -> &[Ungranted] {
        self.refusals.list()
    }

    /// The UDP port it is bound to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The handle that joins and leaves; `None` for broadcast and unicast.
    pub fn membership(&self) -> Option<&Membership> {
        self.membership.as_ref()
    }

    /// The shortfall if the receive buffer is smaller than requested.
    pub fn buffer_shortfall(&self) -> Option<&BufferShortfall> {
        self.shortfall.as_ref()
    }

    /// Datagrams that arrived at this socket from senders that are not in `sources` (broadcast,
    /// unicast).
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Packets that the kernel has dropped at this socket since it was opened, mostly because the
    /// receive buffer was full. Never decreases. 0 if the system does not report it.
    ///
    /// A lower bound in datagrams: a run that receive offload has merged is dropped as one packet,
    /// and counts as one.
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
    /// Errors of the socket itself; errors that concern single packets are ignored.
    pub fn recv_batch(&mut self, timeout: Duration, batch: &mut Batch) -> io::Result<usize> {
        batch.clear();
        self.recv_more(timeout, batch)
    }

    /// Like [`Self::recv_batch`], but appends to `batch`. Returns the number of added datagrams; 0
    /// at once if the batch is full.
    ///
    /// Bounded in time and in memory: at most [`MAX_BATCH_MESSAGES`] messages.
    ///
    /// # Errors
    /// As [`Self::recv_batch`].
    pub fn recv_more(&mut self, timeout: Duration, batch: &mut Batch) -> io::Result<usize> {
        if batch.is_full() {
            return Ok(0);
        }
        let before = batch.len();
        let started = Instant::now();
        // Usually data is available and no wait is needed, so receive first.
        let mut left = MAX_BATCH_MESSAGES;
        while left > 0 && !batch.is_full() {
            let Self { messages, socket, channel, sources, foreign, .. } = self;
            let mut is_for_us = |meta: &RecvMeta| {
                let is_for_us = sources.is_empty() || sources.contains(&meta.addr.ip());
                *foreign += if is_for_us { 0 } else { datagrams_in(meta) };
                is_for_us
            };
            let received = messages.receive(socket, *channel, batch, left, &mut is_for_us);
            left -= received.as_ref().map_or(1, |received| received.messages.clamp(1, left));
            match received {
                Ok(received) if received.is_all && batch.len() > before => break,
                Ok(_) => {}
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

    /// Whether datagrams that were received wait for the next batch: the last one had no room.
    pub(crate) fn holds_datagrams(&self) -> bool {
        self.messages.has_late()
    }

    /// Waits until a datagram has arrived, at most `timeout` (rounded up to milliseconds). `false`
    /// after the timeout or a signal.
    ///
    /// # Errors
    /// Errors of the socket itself.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        sys::wait_readable(&self.socket, timeout)
    }
}

/// The number of sources from which one socket can join a group.
fn most_sources(group: IpAddr) -> usize {
    // Linux's defaults if the system does not report the setting.
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

/// True for errors that concern a packet or a temporary shortage, not the socket.
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

/// Without this the socket receives every group that any program of this host has joined on this
/// port (Linux: `IP_MULTICAST_ALL`, ip(7)).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn only_own_groups(socket: &Socket, bind_ip: IpAddr) -> io::Result<()> {
    match bind_ip {
        IpAddr::V4(_) => socket.set_multicast_all_v4(false),
        IpAddr::V6(_) => socket.set_multicast_all_v6(false),
    }
}

/// Other systems deliver only what the socket itself has joined.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn only_own_groups(_socket: &Socket, _bind_ip: IpAddr) -> io::Result<()> {
    Ok(())
}

/// Requests a receive buffer and returns the granted size, in the units of the request.
pub(crate) fn set_receive_buffer(socket: &Socket, size: usize) -> io::Result<usize> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let value = i32::try_from(size).unwrap_or(i32::MAX / 2);
        // Allowed to exceed `net.core.rmem_max` with CAP_NET_ADMIN.
        if sys::set_int(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value).is_err() {
            socket.set_recv_buffer_size(value as usize)?;
        }
        // Linux doubles the request to cover its own bookkeeping, and returns the doubled value:
        // socket(7), SO_RCVBUF.
        Ok(socket.recv_buffer_size()? / 2)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        // Some systems reject a size instead of lowering it: halve it until it is accepted.
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

/// A 64-bit counter that follows a 32-bit counter, which wraps.
///
/// Correct if it is read at least once in 2^32 events.
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
    fn the_drop_counter_continues_when_the_kernels_wraps() {
        let mut counter = WrappingCounter::starting_at(u32::MAX - 2);
        counter.advance_to(u32::MAX - 2);
        assert_eq!(counter.total, 0);
        counter.advance_to(u32::MAX);
        assert_eq!(counter.total, 2);
        counter.advance_to(3);
        assert_eq!(counter.total, 6);
    }

    #[test]
    fn an_address_of_another_host_is_named() {
        let address = "192.0.2.77:0".parse().unwrap();
        let refused = ReceiveSocket::open(&ReceiveConfig::unicast(address)).unwrap_err();
        assert!(matches!(refused, ReceiveError::NotHere { .. }), "{refused}");
        assert!(refused.to_string().contains("192.0.2.77"), "{refused}");
    }

    #[test]
    fn a_shortfall_begins_one_byte_below_the_request() {
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
