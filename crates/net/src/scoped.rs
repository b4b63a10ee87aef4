//! A UDP socket of a member of one group: each datagram that it sends has a TTL, and each that it
//! receives comes with the TTL that is left of it.
//!
//! With the TTL, a sender limits how many links a datagram crosses, and a receiver reads how many
//! it has crossed (RFC 1112, section 6.1). Reliable multicast protocols repair losses nearby in
//! this way. Sockets of a session do not need it: they send with one TTL ([`crate::sender`]), or
//! not at all ([`crate::receiver`]).
//!
//! IPv4 on Linux only; elsewhere [`ScopedSocket::open`] returns an error.

use crate::interface::Interface;
use crate::receiver::set_receive_buffer;
use crate::sys::{self, Change, TtlMessage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// Some thousand datagrams, which the kernel charges more than their bytes.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A UDP socket that sends to a group and to other hosts, and receives what is sent to the group
/// and to this host. Calls do not block, except [`wait`](Self::wait).
#[derive(Debug)]
pub struct ScopedSocket {
    socket: Socket,
    /// The TTL of datagrams to the group and of others, as the kernel has them; 0: not set yet.
    group_ttl: u8,
    host_ttl: u8,
}

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopedDatagram {
    /// Its bytes in the buffer.
    pub length: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// The TTL that it arrived with.
    pub ttl: u8,
}

impl ScopedSocket {
    /// Joins `group` on an interface, and receives on `port`. Datagrams that the socket sends to
    /// the group do not return to this host.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(interface: &Interface, group: Ipv4Addr, port: u16) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        sys::report_ttl(&socket)?;
        set_receive_buffer(&socket, RECEIVE_BUFFER)?;
        socket.set_nonblocking(true)?;
        socket.set_multicast_loop_v4(false)?;
        sys::set_multicast_interface_v4(&socket, interface.index, Ipv4Addr::UNSPECIFIED)?;
        socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
        sys::change_membership(&socket, Change::Join, interface.index, group.into(), None)?;
        Ok(Self { socket, group_ttl: 0, host_ttl: 0 })
    }

    /// Sends a datagram that at most `ttl - 1` routers forward.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::WouldBlock`] if its queue is full.
    pub fn send(&mut self, payload: &[u8], to: SocketAddrV4, ttl: u8) -> io::Result<()> {
        if to.ip().is_multicast() {
            if self.group_ttl != ttl {
                self.socket.set_multicast_ttl_v4(ttl.into())?;
                self.group_ttl = ttl;
            }
        } else if self.host_ttl != ttl {
            self.socket.set_ttl_v4(ttl.into())?;
            self.host_ttl = ttl;
        }
        self.socket.send_to(payload, &to.into()).map(|_| ())
    }

    /// Receives a datagram that has arrived; `None` if there is none. A longer one is cut to
    /// `buffer`.
    ///
    /// # Errors
    /// The system's error.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Option<ScopedDatagram>> {
        loop {
            match sys::receive_with_ttl(&self.socket, buffer) {
                // The kernel reports it, as requested.
                Ok(TtlMessage { ttl: None, .. }) => {}
                Ok(TtlMessage { length, from, ttl: Some(ttl) }) => {
                    return Ok(Some(ScopedDatagram { length, from, ttl }));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until a datagram has arrived, `timeout` is over, or a signal arrives.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        // Nanoseconds below a second fit any type.
        let nanos = i64::from(timeout.subsec_nanos()) as _;
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        let mut wanted = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut wanted, Some(&Timespec { tv_sec: seconds, tv_nsec: nanos })) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interfaces;
    use crate::namespace::{Namespace, NamespaceError};
    use std::process::Command;
    use std::time::Instant;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 9);
    const PORT: u16 = 7709;

    /// Two hosts with an interface each, connected; `None` without the rights.
    fn hosts() -> Option<[(Namespace, Interface); 2]> {
        let left = match Namespace::silent() {
            Err(NamespaceError::NotPermitted) => {
                fontana_testing::skip("network namespaces need root");
                return None;
            }
            left => left.unwrap(),
        };
        let right = Namespace::silent().unwrap();
        let pair = format!("link add eth0 type veth peer name eth0 netns {}", right.path());
        left.ip(&pair).unwrap();
        let host = |namespace: Namespace, number: u8| {
            let commands = format!("addr add 10.0.0.{number}/24 dev eth0\nlink set eth0 up");
            namespace.ip(&commands).unwrap();
            let interfaces = namespace.within(Interfaces::list).unwrap().unwrap();
            let interface = interfaces.iter().find(|one| one.name == "eth0").unwrap().clone();
            (namespace, interface)
        };
        let hosts = [host(left, 1), host(right, 2)];
        // An interface drops what is sent before the kernel has seen its other end.
        hosts.iter().for_each(|(namespace, _)| wait_until_up(namespace));
        Some(hosts)
    }

    fn wait_until_up(namespace: &Namespace) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let show = || Command::new("ip").args(["link", "show", "eth0"]).output();
        loop {
            let shown = namespace.within(show).unwrap().unwrap();
            let state = String::from_utf8_lossy(&shown.stdout);
            if state.contains("state UP") {
                return;
            }
            assert!(Instant::now() < deadline, "{state}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn every_datagram_arrives_with_the_ttl_that_it_was_sent_with() {
        let Some(hosts) = hosts() else { return };
        let sockets = hosts.each_ref().map(|(namespace, interface)| {
            let open = || ScopedSocket::open(interface, GROUP, PORT);
            namespace.within(open).unwrap().unwrap()
        });
        let [mut from, to] = sockets;
        let group = SocketAddrV4::new(GROUP, PORT);
        let host = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), PORT);
        let sent = [(group, 1), (group, 33), (host, 64), (group, 33), (host, 7), (group, 255)];
        for (number, (to, ttl)) in (0..).zip(sent) {
            from.send(&[number, 0, 0], to, ttl).unwrap();
        }
        let mut buffer = [0; 2];
        for (number, (_, ttl)) in (0..).zip(sent) {
            let datagram = loop {
                if let Some(datagram) = to.recv(&mut buffer).unwrap() {
                    break datagram;
                }
                to.wait(Duration::from_secs(10)).unwrap();
            };
            let expected = ScopedDatagram { length: 2, from: ([10, 0, 0, 1], PORT).into(), ttl };
            assert_eq!((datagram, buffer), (expected, [number, 0]));
        }
        assert_eq!(from.recv(&mut buffer).unwrap(), None, "its own do not return");
        to.wait(Duration::ZERO).unwrap();
        assert_eq!(to.recv(&mut buffer).unwrap(), None);
    }
}
