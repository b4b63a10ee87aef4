//! Session numbers that other programs of this host use.
//!
//! Receivers identify a session by its source and number (RFC 5651, section 2). Two senders with
//! both in common on one group are one session to them: sequence numbers and heads alternate.

use fontana_wire::Tsi;
use std::net::{IpAddr, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};

/// Holds the number of a session until it is dropped.
///
/// It is the name of a socket without a file (unix(7), abstract addresses), which the kernel frees
/// when the program ends. Such names are those of a network namespace, as addresses are.
pub(super) struct HeldNumber {
    sockets: Vec<UnixDatagram>,
    /// Another sender on this host holds the number for one of the destinations.
    pub(super) is_in_use: bool,
}

impl HeldNumber {
    /// Holds the number for these destinations, but for those for which another sender does.
    pub(super) fn new(tsi: Tsi, source: IpAddr, to: &[SocketAddr]) -> Self {
        let mut held = Self { sockets: Vec::new(), is_in_use: false };
        for to in to {
            let name = format!("fontana {} of {source} to {to}", tsi.0);
            match UnixAddress::from_abstract_name(name)
                .and_then(|name| UnixDatagram::bind_addr(&name))
            {
                Ok(socket) => held.sockets.push(socket),
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    held.is_in_use = true;
                }
                // Without such sockets, the check does not exist.
                Err(_) => {}
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_held_for_a_source_and_a_group_until_it_is_dropped() {
        let source: IpAddr = "192.0.2.7".parse().unwrap();
        let to: Vec<SocketAddr> = vec!["239.255.1.9:7701".parse().unwrap()];
        let tsi = Tsi(u64::from(std::process::id()));
        let held = HeldNumber::new(tsi, source, &to);
        assert!(!held.is_in_use);
        assert!(HeldNumber::new(tsi, source, &to).is_in_use);
        assert!(!HeldNumber::new(Tsi(tsi.0 + (1 << 40)), source, &to).is_in_use);
        let other = ["239.255.1.9:7702".parse().unwrap()];
        assert!(!HeldNumber::new(tsi, source, &other).is_in_use);
        drop(held);
        assert!(!HeldNumber::new(tsi, source, &to).is_in_use);
    }
}
