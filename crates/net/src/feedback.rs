//! The return path: a socket from which a receiver sends its reports, and one on which a sender
//! collects them. They exist only where the application opens them. Sockets that receive a session
//! cannot send ([`crate::receiver`]).

use crate::interface::Interface;
use crate::mtu::IpVersion;
use crate::sys;
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A socket that only sends, from a port of the system's choice: to hosts that the caller names,
/// and to groups of this network. One socket does both, so that a process can confine itself to it.
#[derive(Debug)]
pub struct FeedbackSocket {
    socket: UdpSocket,
    version: IpVersion,
}

impl FeedbackSocket {
    /// Opens a socket that has sent nothing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(version: IpVersion) -> io::Result<Self> {
        let socket = UdpSocket::bind((version.unspecified(), 0))?;
        // A report is not worth waiting for: the next round repeats it.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, version })
    }

    /// Sends a datagram to one host.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a group, a broadcast address, port 0 or an address of
    /// the other IP version, or the system's error.
    pub fn send(&self, payload: &[u8], to: SocketAddr) -> io::Result<()> {
        let is_broadcast = matches!(to, SocketAddr::V4(to) if to.ip().is_broadcast());
        let is_host = !to.ip().is_multicast() && !to.ip().is_unspecified() && !is_broadcast;
        if !is_host || to.port() == 0 || IpVersion::of(to.ip()) != self.version {
            let message = format!("{to} is not the address of one {} host", self.version);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.socket.send_to(payload, to).map(|_| ())
    }

    /// Sends to groups by this interface from now on.
    ///
    /// # Errors
    /// The system's error.
    pub fn use_interface(&self, interface: &Interface) -> io::Result<()> {
        let socket = SockRef::from(&self.socket);
        match self.version {
            IpVersion::V4 => {
                let address = match interface.address(IpVersion::V4) {
                    Some(IpAddr::V4(address)) => address,
                    _ => Ipv4Addr::UNSPECIFIED,
                };
                sys::set_multicast_interface_v4(&socket, interface.index, address)?;
                socket.set_multicast_ttl_v4(1)?;
                socket.set_multicast_loop_v4(true)
            }
            IpVersion::V6 => {
                socket.set_multicast_if_v6(interface.index)?;
                socket.set_multicast_hops_v6(1)?;
                socket.set_multicast_loop_v6(true)
            }
        }
    }

    /// Sends a datagram to a group, with a hop limit of 1: no router passes it on. What finds no
    /// room in a queue of this host is lost.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for what is no group, or the system's error.
    pub fn send_to_group(&self, payload: &[u8], group: SocketAddr) -> io::Result<()> {
        if !group.ip().is_multicast() {
            let message = format!("{group} is no group");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        match self.socket.send_to(payload, group) {
            Err(error) if is_temporary(&error) => Ok(()),
            sent => sent.map(|_| ()),
        }
    }
}

/// Whether a later packet may leave.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || matches!(
            error.raw_os_error(),
            Some(libc::ENOBUFS | libc::ENETDOWN | libc::ENETUNREACH | libc::ENODEV | libc::ENXIO)
        )
}

impl AsFd for FeedbackSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket on which reports arrive. It has no function that sends.
#[derive(Debug)]
pub struct CollectorSocket(UdpSocket);

impl CollectorSocket {
    /// Binds to an address of this host; port 0: one of the system's choice.
    ///
    /// # Errors
    /// The system's error.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        UdpSocket::bind(address).map(Self)
    }

    /// The address and port that it is bound to.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Receives one datagram, and returns its length and the address that it claims to come from; a
    /// longer one is cut to `buffer`. `None` if none arrives within `timeout`.
    ///
    /// # Errors
    /// The system's error.
    pub fn receive(
        &self,
        timeout: Duration,
        buffer: &mut [u8],
    ) -> io::Result<Option<(usize, IpAddr)>> {
        // 0 would wait forever.
        self.0.set_read_timeout(Some(timeout.max(Duration::from_micros(1))))?;
        match self.0.recv_from(buffer) {
            Ok((length, from)) => Ok(Some((length, from.ip()))),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_arrives_and_only_hosts_are_sent_to() {
        let collector = CollectorSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = collector.local_address().unwrap();
        let socket = FeedbackSocket::open(IpVersion::V4).unwrap();
        socket.send(b"a report", to).unwrap();
        let mut buffer = [0; 4];
        let received = collector.receive(Duration::from_secs(5), &mut buffer).unwrap();
        assert_eq!((received, &buffer), (Some((4, to.ip())), b"a re"));
        assert_eq!(collector.receive(Duration::ZERO, &mut buffer).unwrap(), None);
        let to_host = socket.send_to_group(b"a message", to).unwrap_err();
        assert_eq!(to_host.kind(), io::ErrorKind::InvalidInput);
        for to in ["239.255.77.1:9", "255.255.255.255:9", "0.0.0.0:9", "127.0.0.1:0", "[::1]:9"] {
            let refused = socket.send(b"a report", to.parse().unwrap());
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput, "{to}");
        }
    }
}
