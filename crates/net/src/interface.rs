//! Lists the network interfaces of this host, and selects one.
//!
//! A multicast socket needs an explicit interface. Otherwise the kernel uses the one of its routing
//! table, which on a host with two networks is often wrong, without an error.
//! [`Interfaces::select`] finds the interface that the user named. [`Interfaces::default_for`]
//! selects one if the user named none, and gives the reason.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr;

use crate::mtu::IpVersion;
use crate::sys::{self, RawAddress};

/// The MTU if the system does not report it: Ethernet's.
const ASSUMED_MTU: u32 = 1500;

/// One address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The address.
    pub ip: IpAddr,
    /// Length of its network's prefix in bits.
    pub prefix_len: u8,
    /// The broadcast address of its network, if it has one (IPv4 only).
    pub broadcast: Option<Ipv4Addr>,
}

/// A network interface at the time of the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The system's name, for example `eth0`.
    pub name: String,
    /// The system's index, never 0.
    pub index: u32,
    /// IPv4 and IPv6 addresses in the system's order.
    pub addresses: Vec<InterfaceAddress>,
    /// Largest IP packet in bytes, header included. 1500 if the system does not report it.
    pub mtu: u32,
    /// Switched on.
    pub is_up: bool,
    /// The system reports that it carries multicast. The loopback interface also does, although
    /// Linux does not report it.
    pub is_multicast: bool,
    /// Loopback: packets stay on this host.
    pub is_loopback: bool,
}

impl Interface {
    /// Whether an address is in one of its networks, so that packets from there cross no router.
    pub fn is_on_link(&self, ip: IpAddr) -> bool {
        is_link_local_v6(ip) || self.addresses.iter().any(|a| in_network(ip, a.ip, a.prefix_len))
    }

    /// The source address: the first one of that version. For IPv6 one that is not link-local if
    /// there is any, because it is valid beyond this link.
    pub fn address(&self, version: IpVersion) -> Option<IpAddr> {
        let mut of_version =
            self.addresses.iter().map(|a| a.ip).filter(|&ip| IpVersion::of(ip) == version);
        of_version.clone().find(|&ip| !is_link_local_v6(ip)).or_else(|| of_version.next())
    }

    /// What its driver says of its speed now, in bits per second; `None` if it says nothing, as
    /// wireless ones.
    pub fn bits_per_second(&self) -> Option<u64> {
        let path = format!("/sys/class/net/{}/speed", self.name);
        let megabits: i64 = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
        u64::try_from(megabits).ok().filter(|&megabits| megabits > 0)?.checked_mul(1_000_000)
    }

    /// True if it is a radio (IEEE 802.11).
    pub fn is_wireless(&self) -> bool {
        std::fs::exists(format!("/sys/class/net/{}/wireless", self.name)).unwrap_or(false)
    }

    /// True if this is one of its addresses.
    pub(crate) fn has(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|a| a.ip == ip)
    }

    /// True if multicast can be sent and joined here.
    pub fn carries_multicast(&self) -> bool {
        self.is_up && (self.is_multicast || self.is_loopback)
    }
}

/// `eth0 (192.0.2.7, 2001:db8::7)`.
impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(|a| a.ip.to_string()).collect();
        let addresses =
            if addresses.is_empty() { "no address".to_owned() } else { addresses.join(", ") };
        let down = if self.is_up { "" } else { ", down" };
        write!(f, "{} ({addresses}{down})", self.name)
    }
}

fn is_link_local_v6(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// A user's name of an interface: `eth0`, `10.0.0.3`, `10.0.0.0/8` or `2001:db8::/32`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InterfaceSelector {
    /// The system's name.
    Name(String),
    /// The interface that has this address.
    Address(IpAddr),
    /// The only interface with an address in this network, so that one command line serves many
    /// hosts.
    Network {
        /// Any address of the network; bits after the prefix are ignored.
        base: IpAddr,
        /// Length of the prefix in bits, at most 32 or 128.
        prefix_len: u8,
    },
}

impl FromStr for InterfaceSelector {
    type Err = InterfaceError;

    fn from_str(text: &str) -> Result<Self, InterfaceError> {
        let malformed = || InterfaceError::Malformed { text: text.to_owned() };
        // The name of a Linux interface has no slash, so a slash means a network.
        if let Some((base, prefix_len)) = text.split_once('/') {
            let base: IpAddr = base.parse().map_err(|_| malformed())?;
            let prefix_len: u8 = prefix_len.parse().map_err(|_| malformed())?;
            if prefix_len > address_bits(base) {
                return Err(malformed());
            }
            return Ok(Self::Network { base, prefix_len });
        }
        match text.parse() {
            Ok(address) => Ok(Self::Address(address)),
            Err(_) if text.is_empty() => Err(malformed()),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

/// As the user wrote it.
impl fmt::Display for InterfaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => write!(f, "{address}"),
            Self::Network { base, prefix_len } => write!(f, "{base}/{prefix_len}"),
        }
    }
}

/// No interface, or more than one, was selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceError {
    /// Not a name, an address or a network.
    #[error(
        "`{text}` names no interface: write a name (eth0), an address (10.0.0.3) or a network (10.0.0.0/8)"
    )]
    Malformed {
        /// The invalid text.
        text: String,
    },
    /// No interface matches.
    #[error("no interface here matches `{wanted}`; there are: {available}")]
    NotFound {
        /// The selector.
        wanted: String,
        /// The existing interfaces.
        available: String,
    },
    /// A network matches several interfaces.
    #[error("`{wanted}` matches several interfaces: {candidates}; name one of them")]
    Ambiguous {
        /// The selector.
        wanted: String,
        /// The matching interfaces.
        candidates: String,
    },
    /// The interface exists, but is down.
    #[error(
        "interface {name} is down; switch it on (ip link set {name} up) or name another: {available}"
    )]
    Down {
        /// The interface.
        name: String,
        /// The existing interfaces.
        available: String,
    },
    /// The interface for a group has multicast switched off.
    #[error(
        "interface {name} carries no multicast; switch it on (ip link set {name} multicast on) or \
         name another: {available}"
    )]
    NoMulticast {
        /// The interface.
        name: String,
        /// The existing interfaces.
        available: String,
    },
    /// No interface but loopback is usable. It is not a default, because packets to a group would
    /// stay on this host.
    #[error(
        "no interface but loopback is up with an {version} address, and packets would stay on this \
         host; name it if that is meant: {available}"
    )]
    OnlyLoopback {
        /// The requested version.
        version: IpVersion,
        /// The existing interfaces.
        available: String,
    },
    /// An interface is up with an address of the other version only.
    #[error(
        "no interface but loopback is up with an {version} address, and {name} has another \
         version: take a group of that, for example {group}; there are: {available}"
    )]
    OtherVersion {
        /// The requested version.
        version: IpVersion,
        /// The interface.
        name: String,
        /// A group of its version.
        group: IpAddr,
        /// The existing interfaces.
        available: String,
    },
    /// No interface is up with an address of the requested version, not even loopback.
    #[error("no interface is up with an {version} address; there are: {available}")]
    NothingUsable {
        /// The requested version.
        version: IpVersion,
        /// The existing interfaces.
        available: String,
    },
}

/// Why an interface is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultReason {
    /// The routing table uses it for the group.
    Routed,
    /// No route for the group; this is the first interface that carries multicast.
    FirstMulticast,
}

/// Completes the sentence "eth0 was chosen because".
impl fmt::Display for DefaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Routed => "the routing table sends this group there",
            Self::FirstMulticast => {
                "no route leads to this group and it is the first interface that carries multicast"
            }
        })
    }
}

/// The interfaces of this host, ordered by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interfaces(Vec<Interface>);

impl Interfaces {
    /// Lists the interfaces. Linux is asked by netlink, or as in
    /// [`list_without_netlink`](Self::list_without_netlink) if that fails.
    ///
    /// # Errors
    /// The system returns an error (out of memory or descriptors).
    pub fn list() -> io::Result<Self> {
        match sys::interface_addresses() {
            // A filter of system calls answers with the error that its author chose.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Err(error) => Self::list_without_netlink().map_err(|_| error),
            raw => Ok(Self::with_mtu(raw?)),
        }
    }

    /// Lists the interfaces without a netlink socket: from `/proc/net` and by ioctls of a UDP
    /// socket (netdevice(7)). Slower, and IPv6 addresses may be in another order.
    ///
    /// # Errors
    /// The system returns an error, or has no `/proc`.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn list_without_netlink() -> io::Result<Self> {
        Ok(Self::with_mtu(sys::without_netlink::interface_addresses()?))
    }

    fn with_mtu(raw: Vec<RawAddress>) -> Self {
        let mut interfaces = Self::from_raw(raw);
        for interface in &mut interfaces.0 {
            interface.mtu = sys::interface_mtu(&interface.name).unwrap_or(ASSUMED_MTU);
        }
        interfaces
    }

    /// A list from given values, for tests.
    pub fn from_vec(mut interfaces: Vec<Interface>) -> Self {
        interfaces.sort_by_key(|interface| interface.index);
        Self(interfaces)
    }

    fn from_raw(addresses: Vec<RawAddress>) -> Self {
        let mut interfaces: Vec<Interface> = Vec::new();
        for raw in addresses {
            // Index 0: the interface vanished between the two system calls.
            if raw.index == 0 {
                continue;
            }
            let has = |flag: i32| raw.flags & flag as u32 != 0;
            let position = match interfaces.iter().position(|i| i.index == raw.index) {
                Some(position) => position,
                None => {
                    interfaces.push(Interface {
                        name: raw.name,
                        index: raw.index,
                        addresses: Vec::new(),
                        mtu: ASSUMED_MTU,
                        is_up: has(libc::IFF_UP),
                        is_multicast: has(libc::IFF_MULTICAST),
                        is_loopback: has(libc::IFF_LOOPBACK),
                    });
                    interfaces.len() - 1
                }
            };
            if let (Some(ip), Some(interface)) = (raw.address, interfaces.get_mut(position)) {
                interface.addresses.push(InterfaceAddress {
                    ip,
                    prefix_len: raw.netmask.map_or(address_bits(ip), prefix_len),
                    broadcast: match raw.broadcast {
                        Some(IpAddr::V4(v4)) if has(libc::IFF_BROADCAST) => Some(v4),
                        _ => None,
                    },
                });
            }
        }
        Self::from_vec(interfaces)
    }

    /// Iterates over all interfaces.
    pub fn iter(&self) -> std::slice::Iter<'_, Interface> {
        self.0.iter()
    }

    /// The loopback interface, if it is up.
    pub fn loopback(&self) -> Option<&Interface> {
        self.iter().find(|interface| interface.is_loopback && interface.is_up)
    }

    /// The interface that a selector names.
    ///
    /// # Errors
    /// None matches, several match a network, or it is down; the message lists what exists.
    pub fn select(&self, selector: &InterfaceSelector) -> Result<&Interface, InterfaceError> {
        let matches: Vec<&Interface> = self
            .iter()
            .filter(|interface| match selector {
                InterfaceSelector::Name(name) => interface.name == *name,
                InterfaceSelector::Address(ip) => interface.addresses.iter().any(|a| a.ip == *ip),
                InterfaceSelector::Network { base, prefix_len } => {
                    interface.addresses.iter().any(|a| in_network(a.ip, *base, *prefix_len))
                }
            })
            .collect();
        match matches.as_slice() {
            [] => Err(InterfaceError::NotFound {
                wanted: selector.to_string(),
                available: self.to_string(),
            }),
            [interface] if !interface.is_up => Err(InterfaceError::Down {
                name: interface.name.clone(),
                available: self.to_string(),
            }),
            [interface] => Ok(interface),
            several => Err(InterfaceError::Ambiguous {
                wanted: selector.to_string(),
                candidates: join(several.iter().copied()),
            }),
        }
    }

    /// The interface over which the routing table sends to a host. `None` if it has no route.
    pub fn towards(&self, host: IpAddr) -> Option<&Interface> {
        if host.is_loopback() || self.with(host).is_some() {
            return self.loopback(); // packets to this host do not leave it
        }
        self.with(routed_source(host)?)
    }

    /// The interface for packets to or from a host or a broadcast address: the one that has this
    /// address, or else the routing table's choice, or else the first one that is up.
    ///
    /// # Errors
    /// No interface is up with an address of the version.
    pub fn default_for_host(&self, host: IpAddr) -> Result<&Interface, InterfaceError> {
        let version = IpVersion::of(host);
        let is_usable = |i: &&Interface| i.is_up && i.address(version).is_some();
        let broadcasts = |i: &&Interface| {
            i.addresses.iter().any(|a| a.broadcast.map(IpAddr::from) == Some(host))
        };
        let first = || self.iter().filter(is_usable).min_by_key(|i| i.is_loopback);
        self.with(host)
            .or_else(|| self.iter().filter(is_usable).find(broadcasts))
            .or_else(|| self.with(routed_source(host)?))
            .or_else(first)
            .ok_or_else(|| InterfaceError::NothingUsable { version, available: self.to_string() })
    }

    /// The interface to receive a group from `source` on: the one that has this address, or else
    /// the only one that carries multicast and has an address in the source's network.
    pub fn towards_source(&self, source: IpAddr) -> Option<&Interface> {
        let shares = |i: &&Interface| {
            i.carries_multicast()
                && i.addresses.iter().any(|a| in_network(source, a.ip, a.prefix_len))
        };
        let mut sharing = self.iter().filter(shares);
        self.with(source).or_else(|| sharing.next().filter(|_| sharing.next().is_none()))
    }

    fn with(&self, ip: IpAddr) -> Option<&Interface> {
        self.iter().find(|i| i.has(ip))
    }

    /// The default interface for a group, and the reason.
    ///
    /// The routing table's choice if it has one, else the first interface (by index) that is up,
    /// carries multicast and has an address of the group's version. Never the loopback interface.
    ///
    /// # Errors
    /// [`InterfaceError::NoMulticast`] if multicast is off on the one that it would be, and
    /// [`InterfaceError::OnlyLoopback`] or [`InterfaceError::NothingUsable`] if there is none.
    pub fn default_for(
        &self,
        group: IpAddr,
    ) -> Result<(&Interface, DefaultReason), InterfaceError> {
        self.choose_default(IpVersion::of(group), routed_source(group))
    }

    fn choose_default(
        &self,
        version: IpVersion,
        routed_source: Option<IpAddr>,
    ) -> Result<(&Interface, DefaultReason), InterfaceError> {
        let others =
            || self.iter().filter(|i| !i.is_loopback && i.is_up && i.address(version).is_some());
        let routed = routed_source.and_then(|source| others().find(|i| i.has(source)));
        let chosen = match (routed, others().find(|i| i.is_multicast)) {
            (Some(routed), _) => (routed, DefaultReason::Routed),
            (None, Some(first)) => (first, DefaultReason::FirstMulticast),
            (None, None) => {
                let deaf = others().next().map(|i| i.name.clone());
                return Err(self.no_default(version, deaf));
            }
        };
        if !chosen.0.is_multicast {
            return Err(self.no_default(version, Some(chosen.0.name.clone())));
        }
        Ok(chosen)
    }

    /// `deaf`: an interface that would serve if its multicast were on.
    fn no_default(&self, version: IpVersion, deaf: Option<String>) -> InterfaceError {
        let available = self.to_string();
        let (other, group) = match version {
            IpVersion::V4 => (IpVersion::V6, IpAddr::from([0xff15, 0, 0, 0, 0, 0, 0, 0x7701])),
            IpVersion::V6 => (IpVersion::V4, IpAddr::from([239, 255, 77, 1])),
        };
        let is_other = |interface: &&Interface| {
            let carries = interface.carries_multicast() && !interface.is_loopback;
            carries && interface.address(other).is_some()
        };
        let found = self.iter().find(is_other).map(|found| found.name.clone());
        match deaf.map_or(found.map(Err), |name| Some(Ok(name))) {
            Some(Err(name)) => InterfaceError::OtherVersion { version, name, group, available },
            Some(Ok(name)) => InterfaceError::NoMulticast { name, available },
            None if self.loopback().is_some_and(|lo| lo.address(version).is_some()) => {
                InterfaceError::OnlyLoopback { version, available }
            }
            None => InterfaceError::NothingUsable { version, available },
        }
    }
}

impl<'a> IntoIterator for &'a Interfaces {
    type Item = &'a Interface;
    type IntoIter = std::slice::Iter<'a, Interface>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// `lo (127.0.0.1), eth0 (192.0.2.7)`.
impl fmt::Display for Interfaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&if self.0.is_empty() { "none".to_owned() } else { join(self.iter()) })
    }
}

fn join<'a>(interfaces: impl Iterator<Item = &'a Interface>) -> String {
    interfaces.map(Interface::to_string).collect::<Vec<_>>().join(", ")
}

/// The source address of this host for `destination`, by its routing table.
///
/// Connecting a UDP socket sends no packet; the kernel only looks up the route.
pub fn routed_source(destination: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((IpVersion::of(destination).unspecified(), 0)).ok()?;
    // Any port works; 9 is "discard", in case a packet is sent by mistake.
    socket.connect(SocketAddr::new(destination, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn address_bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn prefix_len(netmask: IpAddr) -> u8 {
    let ones = match netmask {
        IpAddr::V4(v4) => u32::from(v4).leading_ones(),
        IpAddr::V6(v6) => u128::from(v6).leading_ones(),
    };
    ones as u8
}

fn in_network(ip: IpAddr, base: IpAddr, prefix_len: u8) -> bool {
    // As 128 bits, left-aligned. A shift by all bits leaves a prefix of 0 bits, which matches
    // everything.
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        IpAddr::V6(v6) => u128::from(v6),
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix_len.min(128))).unwrap_or(0);
    ip.is_ipv4() == base.is_ipv4() && bits(ip) & mask == bits(base) & mask
}

/// The socket address of this group or interface address. Link-local IPv6 addresses get the scope
/// of the interface.
pub(crate) fn scoped(ip: IpAddr, port: u16, interface_index: u32) -> SocketAddr {
    match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, port),
        IpAddr::V6(v6) => {
            let scope = if needs_scope(v6) { interface_index } else { 0 };
            std::net::SocketAddrV6::new(v6, port, 0, scope).into()
        }
    }
}

fn needs_scope(v6: Ipv6Addr) -> bool {
    v6.is_multicast() || v6.is_unicast_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interface(index: u32, name: &str, addresses: &[&str]) -> Interface {
        Interface {
            name: name.to_owned(),
            index,
            addresses: addresses
                .iter()
                .map(|a| InterfaceAddress {
                    ip: a.parse().unwrap(),
                    prefix_len: 24,
                    broadcast: None,
                })
                .collect(),
            mtu: 1500,
            is_up: true,
            is_multicast: name != "lo",
            is_loopback: name == "lo",
        }
    }

    fn host() -> Interfaces {
        let mut dead = interface(9, "eth9", &["10.9.0.1"]);
        dead.is_up = false;
        Interfaces::from_vec(vec![
            interface(3, "eth1", &["10.1.0.3"]),
            dead,
            interface(2, "eth0", &["10.0.0.3", "fe80::3", "2001:db8::3"]),
            interface(1, "lo", &["127.0.0.1", "::1"]),
        ])
    }

    fn select(text: &str) -> Result<String, InterfaceError> {
        let selector: InterfaceSelector = text.parse()?;
        host().select(&selector).map(|i| i.name.clone())
    }

    #[test]
    fn an_interface_is_found_by_name_address_and_network() {
        for (text, name) in [
            ("eth0", "eth0"),
            ("10.1.0.3", "eth1"),
            ("10.1.0.0/16", "eth1"),
            ("127.0.0.0/8", "lo"),
            ("2001:db8::/32", "eth0"),
            ("::1", "lo"),
            ("10.0.0.3/32", "eth0"),
        ] {
            assert_eq!(select(text).as_deref(), Ok(name), "{text}");
        }
    }

    #[test]
    fn an_unknown_interface_is_an_error_that_lists_existing_ones() {
        for text in ["eth7", "10.0.0.4", "10.0.0.4/32", "192.168.0.0/16", "::/128"] {
            let error = select(text).unwrap_err();
            assert!(matches!(error, InterfaceError::NotFound { .. }), "{text}");
            let message = error.to_string();
            assert!(message.contains(text) && message.contains("eth1 (10.1.0.3)"), "{message}");
        }
    }

    #[test]
    fn a_network_that_matches_two_interfaces_is_an_error() {
        // 0.0.0.0/0 contains every IPv4 address and no IPv6 one.
        for text in ["10.0.0.0/8", "0.0.0.0/0"] {
            let error = select(text).unwrap_err();
            assert!(matches!(error, InterfaceError::Ambiguous { .. }), "{text}");
            assert!(error.to_string().contains("eth0") && error.to_string().contains("eth1"));
        }
    }

    #[test]
    fn an_interface_that_is_down_is_reported_as_down() {
        assert!(matches!(select("eth9"), Err(InterfaceError::Down { .. })));
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "/8", "eth0/8", "10.0.0.0/-1"] {
            assert!(matches!(select(text), Err(InterfaceError::Malformed { .. })), "{text}");
        }
    }

    #[test]
    fn the_default_follows_the_route_then_the_index_and_is_never_loopback() {
        let host = host();
        let default = |version, source: Option<&str>| {
            let source = source.map(|s| s.parse().unwrap());
            host.choose_default(version, source).map(|(i, why)| (i.name.as_str(), why)).unwrap()
        };
        assert_eq!(default(IpVersion::V4, Some("10.1.0.3")), ("eth1", DefaultReason::Routed));
        assert_eq!(default(IpVersion::V4, None), ("eth0", DefaultReason::FirstMulticast));
        // A route to an interface that is down, or to loopback, is not used.
        assert_eq!(default(IpVersion::V4, Some("10.9.0.1")).0, "eth0");
        assert_eq!(default(IpVersion::V4, Some("127.0.0.1")).0, "eth0");

        let mut deaf = host.clone();
        deaf.0.iter_mut().for_each(|i| i.is_multicast = i.name == "eth1");
        assert_eq!(deaf.choose_default(IpVersion::V4, None).unwrap().0.name, "eth1");
        // The interface that the routing table names is not passed over in silence.
        let refused = deaf.choose_default(IpVersion::V4, Some("10.0.0.3".parse().unwrap()));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("ip link set eth0 multicast on"), "{message}");

        let alone = Interfaces::from_vec(vec![interface(1, "lo", &["127.0.0.1"])]);
        let only = alone.choose_default(IpVersion::V4, Some("127.0.0.1".parse().unwrap()));
        assert!(matches!(only, Err(InterfaceError::OnlyLoopback { .. })), "{only:?}");
        let none = alone.choose_default(IpVersion::V6, None).unwrap_err();
        assert!(none.to_string().contains("IPv6"), "{none}");
    }

    #[test]
    fn a_host_with_the_other_version_only_is_told_a_group_of_it() {
        for (address, version, group) in
            [("fe80::3", IpVersion::V4, "ff15::7701"), ("10.0.0.3", IpVersion::V6, "239.255.77.1")]
        {
            let lo = interface(1, "lo", &["127.0.0.1", "::1"]);
            let host = Interfaces::from_vec(vec![lo, interface(2, "eth0", &[address])]);
            let message = host.choose_default(version, None).unwrap_err().to_string();
            assert!(message.contains("eth0") && message.contains(group), "{message}");
        }
    }

    #[test]
    fn a_group_is_received_on_the_network_of_its_source() {
        let host = host();
        let towards =
            |source: &str| host.towards_source(source.parse().unwrap()).map(|i| i.name.as_str());
        assert_eq!(towards("10.1.0.77"), Some("eth1"));
        assert_eq!(towards("10.0.0.3"), Some("eth0"), "this host");
        assert_eq!(towards("127.0.0.1"), Some("lo"));
        assert_eq!(towards("10.9.0.77"), None, "down");
        assert_eq!(towards("192.0.2.1"), None, "beyond a router");
        let two = vec![interface(2, "a", &["10.0.0.3"]), interface(3, "b", &["10.0.0.4"])];
        assert_eq!(Interfaces::from_vec(two).towards_source("10.0.0.9".parse().unwrap()), None);
    }

    #[test]
    fn the_source_address_is_valid_beyond_the_link() {
        let eth0 = interface(2, "eth0", &["10.0.0.3", "fe80::3", "2001:db8::3"]);
        assert_eq!(eth0.address(IpVersion::V6), Some("2001:db8::3".parse().unwrap()));
        let link_only = interface(2, "eth0", &["fe80::3"]);
        assert_eq!(link_only.address(IpVersion::V6), Some("fe80::3".parse().unwrap()));
        assert_eq!(link_only.address(IpVersion::V4), None);
    }

    #[test]
    fn this_host_has_a_loopback_interface_with_its_facts() {
        let interfaces = Interfaces::list().unwrap();
        let lo = interfaces.loopback().expect("the loopback interface is up");
        assert!(lo.index > 0 && lo.carries_multicast() && lo.mtu >= 1500, "{lo:?}");
        let v4 = lo.addresses.iter().find(|a| a.ip == Ipv4Addr::LOCALHOST).unwrap();
        assert_eq!(v4.prefix_len, 8);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_selector_panic(text in "[0-9a-f:./-]{0,24}|\\PC{0,24}") {
            if let Ok(selector) = text.parse::<InterfaceSelector>() {
                let _ = host().select(&selector);
            }
        }

        #[test]
        fn an_address_is_in_every_network_made_of_its_own_prefix(bits: u32, len in 0_u8..=32) {
            let ip = IpAddr::from(Ipv4Addr::from(bits));
            prop_assert!(in_network(ip, ip, len));
            if len > 0 {
                // Just outside the network: the last bit of the prefix differs.
                let other = Ipv4Addr::from(bits ^ (1 << (32 - u32::from(len))));
                prop_assert!(!in_network(other.into(), ip, len));
            }
        }
    }
}
