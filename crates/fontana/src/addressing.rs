//! The destinations of a session, and its interface.

use crate::error::{Error, SetupError};
use fontana_net::{
    ChannelAddress, Interface, InterfaceSelector, Interfaces, ReceiveConfig, Reception,
};
use fontana_wire::{ChannelGroups, Ticket};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Default group and port: administratively scoped, this site only (RFC 2365).
pub const DEFAULT_GROUP: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 77, 1)), 7701);

/// The destinations of a session's packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressing {
    /// A multicast group and port; or a broadcast address; or hosts that get a copy each.
    pub to: Vec<SocketAddr>,
    /// The groups of the session's channels; `to` is the group of channel 0. A receiver joins only
    /// these groups.
    pub channels: ChannelGroups,
    /// The interfaces; the routing table chooses one if there are none. A sender sends on the
    /// first one, a receiver joins its groups on all of them.
    pub interfaces: Vec<InterfaceSelector>,
    /// TTL or hop limit of multicast. 1: this network only.
    pub hop_limit: u8,
}

impl Default for Addressing {
    fn default() -> Self {
        let (to, channels) = (vec![DEFAULT_GROUP], ChannelGroups::default());
        Self { to, channels, interfaces: Vec::new(), hop_limit: 1 }
    }
}

impl Addressing {
    /// As [`DEFAULT_GROUP`], of IPv6, for hosts that have no address of IPv4: of site-local scope
    /// (RFC 4291).
    pub const DEFAULT_GROUP_V6: SocketAddr =
        SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x7701)), 7701);

    /// The default addressing to another group, or to a host.
    pub fn to(address: SocketAddr) -> Self {
        Self { to: vec![address], ..Self::default() }
    }

    /// The addressing of a ticket.
    pub fn of_ticket(ticket: &Ticket) -> Self {
        let address = SocketAddr::new(ticket.group, ticket.port);
        Self { channels: ticket.channels.clone(), ..Self::to(address) }
    }

    /// The group, or the first host.
    pub fn address(&self) -> SocketAddr {
        self.to.first().copied().unwrap_or(DEFAULT_GROUP)
    }

    /// The address in tickets.
    pub(crate) fn ticket_address(&self) -> SocketAddr {
        self.address()
    }

    /// Copies of each packet that leave this host.
    pub(crate) fn copies(&self) -> usize {
        self.to.len()
    }

    /// The first interface: the one given, or else that of the address's zone, or the routing
    /// table's choice.
    ///
    /// # Errors
    /// [`SetupError::Interface`] if there is none, with those that exist. The loopback interface is
    /// not chosen for a group unless it is given.
    pub fn interface(&self) -> Result<Interface, Error> {
        let interfaces =
            Interfaces::list().map_err(Error::system("list the network interfaces"))?;
        let address = self.address().ip();
        let zone = match self.address() {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let in_zone = interfaces.iter().find(|interface| interface.index == zone);
        Ok(match (self.interfaces.first(), in_zone) {
            (Some(selector), _) => interfaces.select(selector)?.clone(),
            (None, Some(interface)) => interface.clone(),
            (None, None) if address.is_multicast() => interfaces.default_for(address)?.0.clone(),
            (None, None) => interfaces.default_for_host(address)?.clone(),
        })
    }

    /// The names of all interfaces, each once.
    pub(crate) fn interface_names(&self) -> Result<Vec<String>, Error> {
        let first = self.interface()?;
        let further = self.further_interfaces(&first)?;
        Ok([first].into_iter().chain(further).map(|interface| interface.name).collect())
    }

    /// The interfaces after the first one, each once.
    fn further_interfaces(&self, first: &Interface) -> Result<Vec<Interface>, Error> {
        let Some((_, selectors)) = self.interfaces.split_first() else { return Ok(Vec::new()) };
        let listed = Interfaces::list().map_err(Error::system("list the network interfaces"))?;
        let mut further: Vec<Interface> = Vec::new();
        for selector in selectors {
            let interface = listed.select(selector)?;
            if [first].into_iter().chain(&further).all(|known| known.index != interface.index) {
                further.push(interface.clone());
            }
        }
        Ok(further)
    }

    /// The destination of each channel.
    pub(crate) fn destinations(&self, interface: &Interface) -> Result<Vec<ChannelAddress>, Error> {
        Ok(match self.to.as_slice() {
            [group] if group.ip().is_multicast() => self.groups(*group)?,
            _ if self.channels.count() > 1 => return Err(SetupError::ChannelsWithoutGroups.into()),
            [SocketAddr::V4(to)] if is_broadcast(*to.ip(), interface) => {
                vec![ChannelAddress::Broadcast(SocketAddrV4::new(*to.ip(), to.port()))]
            }
            hosts => {
                let hosts = hosts.iter().map(|&host| on_link(host, interface));
                vec![ChannelAddress::Unicast(hosts.collect())]
            }
        })
    }

    fn groups(&self, first: SocketAddr) -> Result<Vec<ChannelAddress>, Error> {
        let groups: Vec<_> = self.channels.groups(first.ip()).collect();
        // A receiver joins all groups in one way: from any source, or from the one source.
        let is_ssm = fontana_net::is_source_specific(first.ip());
        let is_like = |&group: &IpAddr| {
            group.is_multicast() && fontana_net::is_source_specific(group) == is_ssm
        };
        let count = self.channels.count();
        if groups.len() < usize::from(count) || !groups.iter().all(is_like) {
            return Err(SetupError::ChannelsBeyondGroups { first: first.ip(), count }.into());
        }
        let to = |group| ChannelAddress::Multicast(SocketAddr::new(group, first.port()));
        Ok(groups.into_iter().map(to).collect())
    }

    pub(crate) fn for_receiving(
        &self,
        sources: &[IpAddr],
        receive_buffer: usize,
    ) -> Result<Listening, Error> {
        let interface = self.interface()?;
        let address = self.address();
        let config = match address.ip() {
            group if group.is_multicast() => {
                ReceiveConfig::multicast(group, address.port(), &interface)
            }
            IpAddr::V4(ip) if is_broadcast(ip, &interface) => {
                ReceiveConfig::broadcast(ip, address.port())
            }
            _ => ReceiveConfig::unicast(on_link(address, &interface)),
        };
        let further_interfaces = self.further_interfaces(&interface)?;
        if !further_interfaces.is_empty() && !address.ip().is_multicast() {
            return Err(SetupError::InterfacesWithoutGroup { address: address.ip() }.into());
        }
        let sources = sources.to_vec();
        let base = ReceiveConfig { sources, receive_buffer, further_interfaces, ..config };
        Ok(Listening { base, channels: self.channels.clone() })
    }
}

/// The groups that a receiver may join.
#[derive(Clone, Debug)]
pub(crate) struct Listening {
    base: ReceiveConfig,
    channels: ChannelGroups,
}

impl Listening {
    /// The configuration of channel 0.
    pub(crate) fn base(&self) -> &ReceiveConfig {
        &self.base
    }

    /// The interfaces on which groups are joined.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        let first = match &self.base.reception {
            Reception::Group { interface, .. } => Some(interface),
            Reception::Broadcast(_) | Reception::Unicast(_) => None,
        };
        first.into_iter().chain(&self.base.further_interfaces)
    }

    /// The indices of the interfaces on which packets arrive, as far as they are known.
    pub(crate) fn links(&self) -> Vec<u32> {
        let of_address = Some(self.base.scope_id).filter(|&scope| scope != 0);
        of_address.into_iter().chain(self.interfaces().map(|interface| interface.index)).collect()
    }

    /// As [`group`](Self::group), on these interfaces. `None` also if there are none.
    pub(crate) fn group_on<'a>(
        &self,
        channel: u8,
        interfaces: impl IntoIterator<Item = &'a Interface>,
    ) -> Option<ReceiveConfig> {
        let mut interfaces = interfaces.into_iter().cloned();
        let mut config = self.group(channel)?;
        let Reception::Group { interface, .. } = &mut config.reception else { return None };
        *interface = interfaces.next()?;
        config.further_interfaces = interfaces.collect();
        Some(config)
    }

    /// The configuration of a channel's group; `None` if the channel is not in the list, or has no
    /// multicast group.
    pub(crate) fn group(&self, channel: u8) -> Option<ReceiveConfig> {
        let Reception::Group { group, interface } = &self.base.reception else { return None };
        let group = self.channels.group(*group, channel)?;
        let reception = Reception::Group { group, interface: interface.clone() };
        Some(ReceiveConfig { reception, ..self.base.clone() })
    }
}

/// The address with the interface that it is one of, if it is link-local and says none: tickets
/// name no interfaces of their receivers.
fn on_link(address: SocketAddr, interface: &Interface) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0 => {
            SocketAddrV6::new(*v6.ip(), v6.port(), 0, interface.index).into()
        }
        _ => address,
    }
}

fn is_broadcast(ip: Ipv4Addr, interface: &Interface) -> bool {
    ip.is_broadcast()
        || interface.addresses.iter().any(|a| a.broadcast == Some(ip))
        || interface.is_loopback && ip == LOOPBACK_BROADCAST
}

/// The broadcast address of 127.0.0.0/8. Linux has a route for it, but does not list it with the
/// interface's addresses.
const LOOPBACK_BROADCAST: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 255);
