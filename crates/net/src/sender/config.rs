//! What a sender is told, and what makes no sense.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use socket2::SockAddr;

use crate::group::{GroupError, check_group};
use crate::interface::{Interface, scoped};
use crate::mtu::IpVersion;

/// Where one channel of a session goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelAddress {
    /// A multicast group and its port.
    Multicast(SocketAddr),
    /// 255.255.255.255 or the broadcast address of a network (IPv4 only).
    Broadcast(SocketAddrV4),
    /// Every host of a list gets its own copy: the way out where neither of the others works.
    Unicast(Vec<SocketAddr>),
}

/// What a [`crate::SendSocket`] needs to know.
#[derive(Debug, Clone)]
pub struct SendConfig {
    /// Where multicast leaves; also decides the source address. Unicast and broadcast may leave it
    /// to the routing table (`None`).
    pub interface: Option<Interface>,
    /// The source address, when it must not be the interface's first one.
    pub source: Option<IpAddr>,
    /// IPv4 time to live or IPv6 hop limit of multicast. 1: the local network only, so that a
    /// mistake stays there. 0: this host only. Unicast keeps the system's default.
    pub hop_limit: u8,
    /// Receivers on this host hear the multicast too.
    pub loopback: bool,
    /// One per channel, at least one; all IPv4 or all IPv6.
    pub destinations: Vec<ChannelAddress>,
    /// Bytes of kernel send buffer to ask for.
    pub send_buffer: usize,
    /// Differentiated services code point, 0 to 63. 1 (LE, RFC 8622) asks networks that look at it
    /// to let everything else pass first.
    pub dscp: Option<u8>,
    /// Hand trains to the kernel in one piece if it takes them. Off: one system call per datagram,
    /// which a packet filter at the sender sees one by one.
    pub offload: bool,
}

impl SendConfig {
    /// The safe defaults: this network only, heard on this host too, offload, no marking, and a
    /// send buffer of 1 MiB: 2 ms at 4 Gbit/s, the pacing's own tolerance.
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

/// A socket that could not be opened, or a send that cannot be mended by trying again.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The group is not for sessions.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// Nothing to send to.
    #[error("there is no destination, or a list of hosts is empty")]
    NoDestination,
    /// One socket speaks one IP version.
    #[error("destinations of one sender must be all IPv4 or all IPv6; use two senders")]
    MixedVersions,
    /// Multicast needs an interface.
    #[error("multicast needs an interface: name one")]
    InterfaceRequired,
    /// The interface has no address to send from.
    #[error("interface {interface} has no {version} address to send from")]
    NoAddress {
        /// The interface's name.
        interface: String,
        /// Which address is missing.
        version: IpVersion,
    },
    /// DSCP has six bits.
    #[error("DSCP {0} is not between 0 and 63")]
    Dscp(u8),
    /// No such channel, or datagrams of no size.
    #[error("destination {destination} of {count}, segment size {segment_size}: not a valid send")]
    Misuse {
        /// Index asked for.
        destination: usize,
        /// Destinations there are.
        count: usize,
        /// Size asked for.
        segment_size: usize,
    },
    /// The datagram does not fit the interface's MTU and must not be fragmented.
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
    /// The socket could not be set up; the first part says which step failed.
    #[error("cannot {step}: {error}")]
    Setup {
        /// What was tried.
        step: &'static str,
        /// The system's word.
        #[source]
        error: io::Error,
    },
    /// Anything else the system says about a send.
    #[error("cannot send to {to}: {error}")]
    System {
        /// The address.
        to: SocketAddr,
        /// The system's word.
        #[source]
        error: io::Error,
    },
}

/// The one IP version of all destinations, if each of them makes sense.
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
        // As given: a host's scope, if it needs one, is the caller's to say.
        ChannelAddress::Unicast(hosts) => hosts.iter().map(|&host| host.into()).collect(),
    }
}
