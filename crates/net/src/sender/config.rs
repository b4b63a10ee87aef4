//! Configuration of a sender, and its errors.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use socket2::SockAddr;

use crate::group::{GroupError, check_group};
use crate::interface::{Interface, scoped};
use crate::mtu::IpVersion;

/// The destination of one channel of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelAddress {
    /// A multicast group and its port.
    Multicast(SocketAddr),
    /// 255.255.255.255 or the broadcast address of a network (IPv4 only).
    Broadcast(SocketAddrV4),
    /// Every host of a list gets its own copy, for networks without multicast and broadcast.
    Unicast(Vec<SocketAddr>),
}

/// Configuration of a [`crate::SendSocket`].
#[derive(Debug, Clone)]
pub struct SendConfig {
    /// The outgoing interface of multicast, which also determines the source address. `None` leaves
    /// unicast and broadcast to the routing table.
    pub interface: Option<Interface>,
    /// The source address, if not the interface's first one.
    pub source: Option<IpAddr>,
    /// IPv4 time to live or IPv6 hop limit of multicast. 1: the local network only, which limits
    /// the effect of a mistake. 0: this host only. Unicast uses the system's default.
    pub hop_limit: u8,
    /// Receivers on this host receive the multicast too.
    pub loopback: bool,
    /// One per channel, at least one; all IPv4 or all IPv6.
    pub destinations: Vec<ChannelAddress>,
    /// Requested size of the kernel's send buffer, in bytes.
    pub send_buffer: usize,
    /// Differentiated services code point, 0 to 63. 1 (LE, RFC 8622) asks networks to prefer all
    /// other traffic.
    pub dscp: Option<u8>,
    /// Send GSO batches if the kernel supports them. If false, one system call per datagram, and a
    /// packet filter at the sender sees each datagram.
    pub offload: bool,
}

impl SendConfig {
    /// The safe defaults: local network only, received on this host too, offload, no marking, and a
    /// send buffer of 1 MiB: 2 ms at 4 Gbit/s. A sender that catches up waits for the device.
    pub fn new(interface: &Interface, destinations: Vec<ChannelAddress>) -> Self {
        Self {
            interface: Some(interface.clone()),
            source: None,
            hop_limit: 1,
            loopback: true,
            destinations,
            send_buffer: 1 << 20,
            dscp: None,
            offload: true,
        }
    }

    /// Fan-out to hosts, by the routing table.
    pub fn unicast(destinations: Vec<Vec<SocketAddr>>) -> Self {
        Self {
            interface: None,
            source: None,
            hop_limit: 1,
            loopback: true,
            destinations: destinations.into_iter().map(ChannelAddress::Unicast).collect(),
            send_buffer: 1 << 20,
            dscp: None,
            offload: true,
        }
    }
}

/// Why a socket could not be opened, or a permanent error of a send.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The group cannot carry a session.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// There is no destination.
    #[error("there is no destination, or a list of hosts is empty")]
    NoDestination,
    /// A socket has one IP version.
    #[error("destinations of one sender must be all IPv4 or all IPv6; use two senders")]
    MixedVersions,
    /// Multicast needs an interface.
    #[error("multicast needs an interface: name one")]
    InterfaceRequired,
    /// The interface has no source address.
    #[error("interface {interface} has no {version} address to send from")]
    NoAddress {
        /// The interface's name.
        interface: String,
        /// The version of the missing address.
        version: IpVersion,
    },
    /// DSCP has six bits.
    #[error("DSCP {0} is not between 0 and 63")]
    Dscp(u8),
    /// There is no such destination, or the segment size is 0.
    #[error("destination {destination} of {count}, segment size {segment_size}: not a valid send")]
    Misuse {
        /// The requested index.
        destination: usize,
        /// The number of destinations.
        count: usize,
        /// The requested size.
        segment_size: usize,
    },
    /// The datagram exceeds the interface's MTU, and must not be fragmented.
    #[error(
        "a datagram of {size} bytes does not fit the MTU of {interface}{}: choose smaller symbols \
         or raise the MTU",
        mtu.map_or(String::new(), |mtu| format!(" ({mtu} bytes)"))
    )]
    TooLarge {
        /// UDP payload in bytes.
        size: usize,
        /// The interface's name, or "the route".
        interface: String,
        /// Its MTU, if it is known.
        mtu: Option<u32>,
    },
    /// The socket could not be set up; `step` says which step failed.
    #[error("cannot {step}: {error}")]
    Setup {
        /// The step that failed.
        step: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// Another permanent error of a send.
    #[error("cannot send to {to}: {error}")]
    System {
        /// The address.
        to: SocketAddr,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

/// The IP version of all destinations, if they are valid.
pub(super) fn check_destinations(config: &SendConfig) -> Result<IpVersion, SendError> {
    let mut version = None;
    for destination in &config.destinations {
        let hosts: Vec<IpAddr> = match destination {
            ChannelAddress::Multicast(group) => {
                check_group(group.ip())?;
                if config.interface.is_none() {
                    return Err(SendError::InterfaceRequired);
                }
                vec![group.ip()]
            }
            ChannelAddress::Broadcast(address) => vec![IpAddr::V4(*address.ip())],
            ChannelAddress::Unicast(hosts) => hosts.iter().map(SocketAddr::ip).collect(),
        };
        if hosts.is_empty() {
            return Err(SendError::NoDestination);
        }
        for host in hosts {
            if *version.get_or_insert(IpVersion::of(host)) != IpVersion::of(host) {
                return Err(SendError::MixedVersions);
            }
        }
    }
    version.ok_or(SendError::NoDestination)
}

pub(super) fn source_address(
    config: &SendConfig,
    version: IpVersion,
) -> Result<SocketAddr, SendError> {
    let index = config.interface.as_ref().map_or(0, |interface| interface.index);
    let ip = match (config.source, &config.interface) {
        (Some(source), _) if IpVersion::of(source) != version => {
            return Err(SendError::MixedVersions);
        }
        (Some(source), _) => source,
        (None, Some(interface)) => interface
            .address(version)
            .ok_or_else(|| SendError::NoAddress { interface: interface.name.clone(), version })?,
        (None, None) => version.unspecified(),
    };
    Ok(scoped(ip, 0, index))
}

pub(super) fn addresses(destination: &ChannelAddress, interface_index: u32) -> Vec<SockAddr> {
    match destination {
        ChannelAddress::Multicast(group) => {
            vec![scoped(group.ip(), group.port(), interface_index).into()]
        }
        ChannelAddress::Broadcast(address) => vec![(*address).into()],
        // Unchanged: the caller sets the scope of a host that needs one.
        ChannelAddress::Unicast(hosts) => hosts.iter().map(|&host| host.into()).collect(),
    }
}
