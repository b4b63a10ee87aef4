//! Hosts on a link whose hardware addresses the kernel does not know.
//!
//! The kernel keeps packets for such a host until the host answers an address request (ARP, RFC
//! 826; neighbor discovery, RFC 4861), drops them if it does not, and reports no error to the
//! socket. Over a link without a way back no answer arrives: an administrator has to add an entry.
//!
//! This module only reads, through rtnetlink(7). It needs no privilege. Linux only: elsewhere
//! [`missing`] returns an error.

use std::io;
use std::net::IpAddr;

/// A host that packets do not reach, because the hardware address of its next hop is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingNeighbor {
    /// The destination.
    pub host: IpAddr,
    /// The host, or the router that the routing table names for it.
    pub next_hop: IpAddr,
    /// Name of the interface.
    pub interface: String,
}

/// The next hop of a host, if the kernel has no hardware address for it. `None` if it has one, or
/// needs none: packets to this host, and interfaces without addresses.
///
/// # Errors
/// There is no route, or the system does not tell.
pub fn missing(host: IpAddr) -> io::Result<Option<MissingNeighbor>> {
    system::missing(host)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::MissingNeighbor;
    use std::io;
    use std::net::IpAddr;

    pub(super) fn missing(_host: IpAddr) -> io::Result<Option<MissingNeighbor>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use super::MissingNeighbor;
    use crate::sys;
    use socket2::{Domain, Protocol, Socket, Type};
    use std::io::{self, Read};
    use std::net::IpAddr;
    use std::time::Duration;

    /// Bytes of `struct nlmsghdr`, `struct rtmsg` and `struct ndmsg`.
    const HEADER: usize = 16;
    const MESSAGE: usize = 12;
    /// `RTA_DST` and `NDA_DST`.
    const DESTINATION: u16 = 1;
    /// States in which the kernel sends packets: all but `NUD_NONE`, `NUD_INCOMPLETE` and
    /// `NUD_FAILED`.
    const USABLE: u16 = libc::NUD_REACHABLE
        | libc::NUD_STALE
        | libc::NUD_DELAY
        | libc::NUD_PROBE
        | libc::NUD_NOARP
        | libc::NUD_PERMANENT;

    pub(super) fn missing(host: IpAddr) -> io::Result<Option<MissingNeighbor>> {
        let socket = Socket::new(
            Domain::from(libc::AF_NETLINK),
            Type::RAW.cloexec(),
            Some(Protocol::from(libc::NETLINK_ROUTE)),
        )?;
        // The kernel answers at once.
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        let Some(route) = route(&socket, host)? else { return Ok(None) };
        let interfaces = sys::interface_addresses()?;
        let Some(interface) = interfaces.into_iter().find(|i| i.index == route.interface) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let addressless = (libc::IFF_LOOPBACK | libc::IFF_NOARP | libc::IFF_POINTOPOINT) as u32;
        if interface.flags & addressless != 0 || is_known(&socket, &route)? {
            return Ok(None);
        }
        Ok(Some(MissingNeighbor { host, next_hop: route.next_hop, interface: interface.name }))
    }

    struct Route {
        interface: u32,
        next_hop: IpAddr,
    }

    /// The route to a host; `None` if its packets do not leave this host.
    fn route(socket: &Socket, host: IpAddr) -> io::Result<Option<Route>> {
        let mut message = [0; MESSAGE];
        message[0] = family(host);
        message[1] = octets(host).len() as u8 * 8;
        let answer = ask(socket, libc::RTM_GETROUTE, &message, host)?;
        if answer.get(7) != Some(&libc::RTN_UNICAST) {
            return Ok(None);
        }
        let interface = attribute(&answer, libc::RTA_OIF)
            .and_then(|index| Some(u32::from_ne_bytes(index.try_into().ok()?)))
            .ok_or(io::ErrorKind::InvalidData)?;
        let gateway = attribute(&answer, libc::RTA_GATEWAY).and_then(address);
        Ok(Some(Route { interface, next_hop: gateway.unwrap_or(host) }))
    }

    /// Whether the kernel has a usable hardware address for the next hop.
    fn is_known(socket: &Socket, route: &Route) -> io::Result<bool> {
        let mut message = [0; MESSAGE];
        message[0] = family(route.next_hop);
        message[4..8].copy_from_slice(&route.interface.to_ne_bytes());
        match ask(socket, libc::RTM_GETNEIGH, &message, route.next_hop) {
            Ok(answer) => {
                let state = answer.get(8..10).and_then(|state| state.try_into().ok());
                let state = state.map(u16::from_ne_bytes).ok_or(io::ErrorKind::InvalidData)?;
                Ok(state & USABLE != 0)
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            // Kernels before 5.0 list all neighbors only.
            Err(error) => Err(error),
        }
    }

    /// Sends a request with the attribute "destination". Returns the answer without its header.
    fn ask(
        socket: &Socket,
        kind: u16,
        message: &[u8; MESSAGE],
        destination: IpAddr,
    ) -> io::Result<Vec<u8>> {
        let octets = octets(destination);
        let attribute_length = 4 + octets.len();
        let mut request = Vec::with_capacity(HEADER + MESSAGE + attribute_length);
        request.extend((request.capacity() as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        request.extend([0; 8]); // sequence number and port, which the kernel repeats
        request.extend(message);
        request.extend((attribute_length as u16).to_ne_bytes());
        request.extend(DESTINATION.to_ne_bytes());
        request.extend(octets);
        socket.send(&request)?;
        let mut answer = vec![0; 4096];
        let size = { socket }.read(&mut answer)?;
        answer.truncate(size);
        let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok());
        let kind = kind.map(u16::from_ne_bytes).ok_or(io::ErrorKind::InvalidData)?;
        let answer = answer.split_off(HEADER.min(size));
        if i32::from(kind) == libc::NLMSG_ERROR {
            let code = answer.get(..4).and_then(|code| code.try_into().ok());
            let code = code.map(i32::from_ne_bytes).ok_or(io::ErrorKind::InvalidData)?;
            return Err(io::Error::from_raw_os_error(code.saturating_neg()));
        }
        Ok(answer)
    }

    /// The value of an attribute of an answer.
    fn attribute(answer: &[u8], wanted: u16) -> Option<&[u8]> {
        let mut rest = answer.get(MESSAGE..)?;
        loop {
            let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
            let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
            let value = rest.get(4..length)?;
            if kind == wanted {
                return Some(value);
            }
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
    }

    fn family(address: IpAddr) -> u8 {
        (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
    }

    fn octets(address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        }
    }

    fn address(octets: &[u8]) -> Option<IpAddr> {
        if let Ok(v4) = <[u8; 4]>::try_from(octets) {
            return Some(v4.into());
        }
        <[u8; 16]>::try_from(octets).ok().map(IpAddr::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::{Namespace, NamespaceError};

    #[test]
    #[cfg(target_os = "linux")]
    fn a_neighbor_is_missing_until_it_has_an_entry() {
        let network = match Namespace::new() {
            Ok(network) => network,
            Err(NamespaceError::NotPermitted) => {
                return fontana_testing::skip("network namespaces need root");
            }
            Err(error) => panic!("{error}"),
        };
        network
            .ip("link set lo up
                 link add eth0 type veth peer name eth1
                 link set eth1 up
                 link set eth0 up
                 addr add 10.9.0.1/24 dev eth0
                 addr add fd09::1/64 dev eth0 nodad
                 route add 10.8.0.0/16 via 10.9.0.254")
            .unwrap();
        let missing = |host: &str| {
            let host = host.parse().unwrap();
            network.within(|| missing(host)).unwrap()
        };
        for (host, next_hop) in
            [("10.9.0.7", "10.9.0.7"), ("10.8.1.1", "10.9.0.254"), ("fd09::7", "fd09::7")]
        {
            let found = missing(host).unwrap().expect(host);
            assert_eq!(found.next_hop.to_string(), next_hop);
            assert_eq!(found.interface, "eth0");
            let lladdr = "lladdr 02:00:00:00:00:07 dev eth0 nud permanent";
            network.ip(&format!("neigh add {next_hop} {lladdr}")).unwrap();
            assert_eq!(missing(host).unwrap(), None, "{host}");
        }
        // Packets to this host need no entry.
        assert_eq!(missing("10.9.0.1").unwrap(), None);
        assert_eq!(missing("127.0.0.1").unwrap(), None);
        assert!(missing("192.0.2.1").is_err(), "no route");
    }
}
