//! Network addresses as people write them.

use crate::console::Console;
use crate::failure::Failure;
use fontana::net::{InterfaceSelector, Interfaces, doctor};
use fontana::wire::Ticket;
use fontana::{DEFAULT_GROUP, Outcome};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Parses `GROUP:PORT`, `HOST:PORT`, or either without the port. A host may be a name.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, Failure> {
    let port = DEFAULT_GROUP.port();
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

/// Whether `text` is an address, which [`parse`] does not look up.
pub(crate) fn is_literal(text: &str) -> bool {
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
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn names_are_no_literals() {
        for text in ["239.1.2.3:5000", "239.1.2.3", "ff15::1", "[ff15::1]", "[ff15::1]:5000"] {
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
    }
}
