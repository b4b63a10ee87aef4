//! Network addresses as people write them.

use fontana::net::{InterfaceError, InterfaceSelector, Interfaces, IpVersion, doctor};
use fontana::wire::Ticket;
use fontana::{Addressing, DEFAULT_GROUP, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// Parses `GROUP:PORT`, `HOST:PORT`, or either without the port. A host may be a name. An address
/// of IPv6 may have a zone (RFC 4007, section 11): `[fe80::1%eth0]:7701`.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, Failure> {
    let port = DEFAULT_GROUP.port();
    if let Some(Zoned { before, zone, after }) = Zoned::of(text) {
        let address = parse(&format!("{before}{after}"))?;
        return match address {
            SocketAddr::V6(v6) => {
                Ok(SocketAddrV6::new(*v6.ip(), v6.port(), 0, interface_index(zone)?).into())
            }
            SocketAddr::V4(_) => {
                let message = format!("{text:?}: addresses of IPv4 have no zone");
                Err(Failure::new(Outcome::Usage, message, "name an interface: --interface"))
            }
        };
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let malformed = |error: std::io::Error| {
        let hint = format!("GROUP:PORT or HOST:PORT, for example {DEFAULT_GROUP}");
        Failure::new(Outcome::Usage, format!("{text:?} is no address: {error}"), hint)
    };
    let with_port = if text.contains(':') { text.to_owned() } else { format!("{text}:{port}") };
    let found: Vec<_> = with_port.to_socket_addrs().map_err(malformed)?.collect();
    // A socket has one IP version. IPv4 is preferred: more networks have multicast switched on for
    // it.
    let preferred = found.iter().find(|address| address.is_ipv4()).or(found.first()).copied();
    let address = preferred.ok_or_else(|| malformed(std::io::ErrorKind::NotFound.into()))?;
    if address.port() == 0 {
        return Err(malformed(std::io::Error::other("port 0 is no port")));
    }
    Ok(address)
}

/// The group that is named. Otherwise the default one: that of IPv6 where these interfaces, or all
/// of this host, carry multicast of IPv6 alone.
pub(crate) fn group(
    named: Option<&str>,
    selected: &[InterfaceSelector],
) -> Result<SocketAddr, Failure> {
    if let Some(named) = named {
        return parse(named);
    }
    // A sandbox may refuse netlink.
    let interfaces = Interfaces::list().or_else(|_| Interfaces::list_without_netlink());
    let Ok(interfaces) = interfaces else { return Ok(DEFAULT_GROUP) };
    let lacks = |selector| {
        let interface = interfaces.select(selector).ok();
        let address = |version| interface.and_then(|interface| interface.address(version));
        address(IpVersion::V4).is_none() && address(IpVersion::V6).is_some()
    };
    let is_other = match selected.is_empty() {
        true => matches!(
            interfaces.default_for(DEFAULT_GROUP.ip()),
            Err(InterfaceError::OtherVersion { .. })
        ),
        false => selected.iter().all(lacks),
    };
    Ok(if is_other { Addressing::DEFAULT_GROUP_V6 } else { DEFAULT_GROUP })
}

/// A text with a zone, in its parts.
struct Zoned<'a> {
    before: &'a str,
    /// The name of an interface, or its index.
    zone: &'a str,
    /// From the closing bracket on.
    after: &'a str,
}

impl<'a> Zoned<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (before, rest) = text.split_once('%')?;
        let end = rest.find(']').unwrap_or(rest.len());
        let (zone, after) = rest.split_at_checked(end)?;
        Some(Self { before, zone, after })
    }
}

/// The index of an interface that is named, or given by its index.
fn interface_index(zone: &str) -> Result<u32, Failure> {
    if let Ok(index) = zone.parse() {
        return Ok(index);
    }
    let interfaces = Interfaces::list().ok();
    let mut named = interfaces.iter().flat_map(Interfaces::iter);
    named.find(|interface| interface.name == zone).map(|interface| interface.index).ok_or_else(
        || {
            let message = format!("there is no interface {zone:?}");
            Failure::new(Outcome::Usage, message, "see which there are: fontana doctor")
        },
    )
}

/// Whether `text` is an address, which [`parse`] does not look up.
pub(crate) fn is_literal(text: &str) -> bool {
    if let Some(Zoned { before, after, .. }) = Zoned::of(text) {
        return is_literal(&format!("{before}{after}"));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    text.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok()
}

/// The interface of a ticket's source: on this host, because the command that `send -i lo` prints
/// would not work otherwise, or in the source's network, because the routing table may send the
/// group elsewhere.
pub(crate) fn source_interface(ticket: &Ticket) -> Option<InterfaceSelector> {
    let interfaces = Interfaces::list().ok()?;
    let mut sources = ticket.sources.iter().copied().chain(ticket.near);
    let interface = sources.find_map(|source| interfaces.towards_source(source))?;
    Some(InterfaceSelector::Name(interface.name.clone()))
}

/// Whether a ticket is for this host: it has the address that packets are sent to, or an interface
/// in the sender's network.
pub(crate) fn is_for_this_host(ticket: &Ticket) -> bool {
    if ticket.group.is_multicast() {
        return source_interface(ticket).is_some();
    }
    let Ok(interfaces) = Interfaces::list() else { return false };
    let version = IpVersion::of(ticket.group);
    interfaces.iter().any(|interface| interface.address(version) == Some(ticket.group))
}

/// The interfaces that carry multicast of the group's version, without loopback and without the one
/// of this name; none if there is only one.
pub(crate) fn multicast_interfaces(group: IpAddr, without: Option<&str>) -> Vec<InterfaceSelector> {
    let Ok(interfaces) = Interfaces::list() else { return Vec::new() };
    let carries = |interface: &&fontana::net::Interface| {
        let has_address = interface.address(IpVersion::of(group)).is_some();
        !interface.is_loopback && interface.carries_multicast() && has_address
    };
    let names: Vec<_> = interfaces.iter().filter(carries).map(|i| i.name.clone()).collect();
    if !group.is_multicast() || names.len() < 2 {
        return Vec::new();
    }
    let others = names.into_iter().filter(|name| Some(name.as_str()) != without);
    others.map(InterfaceSelector::Name).collect()
}

/// Warns if an interface that the user named carries no multicast, in the words of `fontana
/// doctor`.
pub(crate) fn warn_if_deaf(interface: &str, group: IpAddr, console: &Console) {
    let Ok(interfaces) = Interfaces::list() else { return };
    let named = interfaces.iter().find(|candidate| candidate.name == interface);
    if let Some(deaf) = named.filter(|named| group.is_multicast() && !named.carries_multicast()) {
        let found = doctor::interface(deaf);
        let message = format!("{}: {}", found.subject, found.text);
        console.warning(&message, &found.remedy.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_may_be_left_out() {
        for (text, expected) in [
            ("239.1.2.3:5000", "239.1.2.3:5000"),
            ("239.1.2.3", "239.1.2.3:7701"),
            ("ff15::1", "[ff15::1]:7701"),
            ("[ff15::1]", "[ff15::1]:7701"),
            ("[ff15::1]:5000", "[ff15::1]:5000"),
            ("[fe80::1%7]:5000", "[fe80::1%7]:5000"),
            ("[fe80::1%7]", "[fe80::1%7]:7701"),
            ("fe80::1%7", "[fe80::1%7]:7701"),
            ("fe80::1%lo", "[fe80::1%1]:7701"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn names_are_no_literals() {
        for text in ["239.1.2.3:5000", "239.1.2.3", "ff15::1", "[ff15::1]", "[fe80::1%lo]:5000"] {
            assert!(is_literal(text), "{text}");
        }
        for text in ["localhost", "localhost:5000", "", "1.2.3:5", "239.1.2.3:"] {
            assert!(!is_literal(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_a_usage_error_with_an_example() {
        for text in ["", ":", "239.1.2.3:", "239.1.2.3:0", "239.1.2.3:65536", "[ff15::1"] {
            let failure = parse(text).unwrap_err();
            assert_eq!(failure.outcome, Outcome::Usage, "{text}");
            assert!(failure.hint.contains("239.255.77.1:7701"), "{text}");
        }
        for text in ["fe80::1%nonesuch", "10.0.0.1%lo", "fe80::1%"] {
            assert_eq!(parse(text).unwrap_err().outcome, Outcome::Usage, "{text}");
        }
    }
}
