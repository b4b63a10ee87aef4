//! Whether a sender takes packets at the port of its ticket: what tells a sender that is off from a
//! network that does not pass its packets on.

use fontana::net::neighbor;
use fontana::wire::Ticket;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Datagrams, one a second. That a host has gone is known after nine, unless it has answered within
/// a minute: its address counts as known for five seconds, and is asked for three times.
const MOST_SENT: u32 = 10;
const EVERY: Duration = Duration::from_secs(1);

/// What became of empty datagrams to the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// No error: it runs, or something drops packets to it.
    Taken,
    /// Its host says that no program has the port.
    NoProgram,
    /// Its host does not answer, or there is no way to it.
    Unreachable,
    /// A firewall refuses the datagram.
    Refused,
}

/// Sends empty datagrams to where the ticket's sender is asked, and waits for an error. `None` if
/// the ticket does not say where, or this host has no socket.
pub(super) fn ask(ticket: &Ticket) -> Option<(SocketAddr, Answer)> {
    let sender = ticket.collectors().next()?;
    let any = match sender {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.set_read_timeout(Some(EVERY)).ok()?;
    // Only a connected socket hears of ICMP errors.
    let mut result = socket.connect(sender).map_err(|error| error.kind());
    for _ in 0..MOST_SENT {
        let heard = || socket.send(&[]).and_then(|_| socket.recv(&mut [0]));
        result = result.and_then(|()| match heard().map_err(|error| error.kind()) {
            Ok(_) | Err(ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
            Err(kind) => Err(kind),
        });
    }
    let answer = match result {
        // The kernel tells no socket that asks for nothing more that an address is not answered.
        Ok(()) if matches!(neighbor::missing(sender.ip()), Ok(Some(_))) => Answer::Unreachable,
        Ok(()) => Answer::Taken,
        Err(ErrorKind::ConnectionRefused) => Answer::NoProgram,
        Err(ErrorKind::PermissionDenied) => Answer::Refused,
        Err(_) => Answer::Unreachable,
    };
    Some((sender, answer))
}
