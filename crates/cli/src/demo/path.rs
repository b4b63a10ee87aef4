//! The network path from the sender to five receivers on one machine: the first that works of
//! loopback multicast, loopback broadcast, and a copy for each.

use super::RECEIVERS;
use crate::args::DemoPath;
use fontana::net::{Interface, Interfaces, IpVersion, doctor};
use fontana::{Addressing, Outcome};
use fontana_console::failure::Failure;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// A path that works.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) sender: Addressing,
    /// Where each receiver listens.
    pub(super) receivers: Vec<Addressing>,
    /// Paths that do not work here.
    failed: &'static [&'static str],
}

impl Way {
    /// Returns the first path that works, or `wanted`.
    pub(super) fn find(wanted: Option<DemoPath>) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            let message = format!("cannot use this host's loopback interface: {error}");
            Failure::new(Outcome::Io, message, "see what this host can do: fontana doctor")
        };
        let interfaces = Interfaces::list().map_err(failed)?;
        let Some(loopback) = interfaces.loopback() else {
            let message = "there is no loopback interface that is up";
            return Err(Failure::new(Outcome::Io, message, "as root: ip link set lo up"));
        };
        let way = wanted.unwrap_or_else(|| probe(loopback));
        match way {
            DemoPath::Multicast => Self::shared("multicast", random_group(), &[]),
            DemoPath::Broadcast => {
                let broadcast = Ipv4Addr::new(127, 255, 255, 255);
                Self::shared("broadcast", broadcast, &["multicast"])
            }
            DemoPath::Unicast => Self::copies(),
        }
        .map_err(failed)
    }

    /// All receivers listen at the same address.
    fn shared(
        name: &'static str,
        address: Ipv4Addr,
        failed: &'static [&'static str],
    ) -> std::io::Result<Self> {
        let [port] = free_ports()?;
        let mut addressing = Addressing::to(SocketAddr::from((address, port)));
        let loopback = fontana::net::InterfaceSelector::Address(Ipv4Addr::LOCALHOST.into());
        addressing.interfaces = vec![loopback];
        let receivers = vec![addressing.clone(); RECEIVERS.len()];
        Ok(Self { name, sender: addressing, receivers, failed })
    }

    /// Each receiver has a port of its own: a unicast datagram goes to one socket.
    fn copies() -> std::io::Result<Self> {
        let ports: [u16; RECEIVERS.len()] = free_ports()?;
        let hosts = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Ok(Self {
            name: "unicast",
            sender: Addressing { to: hosts.to_vec(), ..Addressing::default() },
            receivers: hosts.map(Addressing::to).to_vec(),
            failed: &["multicast", "broadcast"],
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.failed.is_empty() {
            let failed = self.failed.join(" and ");
            write!(f, "no {failed} on the loopback interface (see: fontana doctor); ")?;
        }
        let place: Vec<_> = self.sender.to.iter().map(ToString::to_string).collect();
        write!(f, "using loopback {} ({})", self.name, place.join(", "))
    }
}

fn probe(loopback: &Interface) -> DemoPath {
    let works = |finding: doctor::Finding| finding.verdict == doctor::Verdict::Good;
    if works(doctor::multicast(loopback, IpVersion::V4, false)) {
        DemoPath::Multicast
    } else if works(doctor::loopback_broadcast(loopback)) {
        DemoPath::Broadcast
    } else {
        DemoPath::Unicast
    }
}

/// A group that no other demonstration on this host uses, in the range for one organization (RFC
/// 2365).
fn random_group() -> Ipv4Addr {
    let [a, b, ..] = std::process::id().to_le_bytes();
    Ipv4Addr::new(239, 255, a, b)
}

/// Returns ports that no socket is bound to. If another program takes one before the demonstration
/// does, binding fails with an error.
fn free_ports<const N: usize>() -> std::io::Result<[u16; N]> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = socket.local_addr()?.port();
        held.push(socket);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_go_to_different_ports() {
        let way = Way::find(Some(DemoPath::Unicast)).unwrap();
        let mut ports: Vec<_> = way.sender.to.iter().map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), RECEIVERS.len());
    }

    #[test]
    fn a_fallback_says_that_it_is_one() {
        let said = |path| Way::find(Some(path)).unwrap().to_string();
        assert!(said(DemoPath::Multicast).starts_with("using loopback multicast"));
        assert!(said(DemoPath::Broadcast).starts_with("no multicast on the loopback"));
        assert!(said(DemoPath::Unicast).starts_with("no multicast and broadcast on the loopback"));
    }
}
