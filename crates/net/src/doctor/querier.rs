//! Detection of an IGMP querier.
//!
//! Switches with IGMP snooping forward a group only to ports on which a host has reported it. They
//! forget the report after 260 s (RFC 3376 section 8.4) unless a querier asks again. A network with
//! snooping and no querier works for four minutes, and then drops the group.
//!
//! A host can observe: general queries, as root; a bridge of this host that is configured as a
//! querier; and a querier of an old version, by the kernel's compatibility mode (`/proc/net/igmp`).
//! The latter matters because version 2 does not support sources.

use std::fs;
use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::{Finding, Verdict};
use crate::interface::Interfaces;

/// The subject of the finding that says whether a query was received.
pub const QUERIER: &str = "IGMP querier";

/// How often a listener looks whether it shall end.
const TICK: Duration = Duration::from_millis(100);

/// Looks for a querier on the interfaces that carry multicast, listening for at most `wait` in all,
/// and until `is_over`.
pub fn querier(
    interfaces: &Interfaces,
    wait: Duration,
    is_over: &dyn Fn() -> bool,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = interfaces.iter().filter_map(|i| bridge(&i.name)).collect();
    let old = fs::read_to_string("/proc/net/igmp").map(|t| old_queriers(&t)).unwrap_or_default();
    for (interface, version) in old {
        findings.push(
            Finding::new(
                format!("IGMP querier {interface}"),
                Verdict::Warning,
                format!("an IGMPv{version} querier: switches there know no sources"),
            )
            .remedy("set the querier to version 3; until then anyone's packets to the group come"),
        );
    }
    if interfaces.iter().any(|i| !i.is_loopback && i.carries_multicast()) {
        findings.push(heard(wait, is_over));
    }
    findings
}

/// Listens for a general query on any interface.
fn heard(wait: Duration, is_over: &dyn Fn() -> bool) -> Finding {
    let subject = QUERIER;
    let without = "a switch with snooping needs one: enable the querier on the switch or router";
    let socket =
        match Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(libc::IPPROTO_IGMP))) {
            Ok(socket) => socket,
            Err(_) => {
                return Finding::new(subject, Verdict::Unknown, "only root can listen for it")
                    .remedy("run this as root, or ask the switch");
            }
        };
    let started = Instant::now();
    let version = listen(&socket, wait, is_over);
    let waited = started.elapsed();
    let seconds = waited.as_secs_f64().round();
    match version {
        Some(version) => Finding::new(subject, Verdict::Good, format!("heard, IGMPv{version}")),
        // The default query interval and the longest response delay: RFC 3376 sections 8.2, 8.3.
        None if waited >= Duration::from_secs(125 + 10) => {
            Finding::new(subject, Verdict::Warning, format!("none heard in {seconds} s"))
                .remedy(without)
        }
        None => Finding::new(
            subject,
            Verdict::Unknown,
            format!("none heard in {seconds} s, but they speak every 125 s only"),
        )
        .remedy(without),
    }
}

/// Waits for the first query, at most `wait` and until `is_over`, whatever else arrives.
fn listen(mut socket: &Socket, wait: Duration, is_over: &dyn Fn() -> bool) -> Option<u8> {
    let started = Instant::now();
    // Larger than any query; a longer packet is truncated, which the parser accepts.
    let mut packet = [0_u8; 2048];
    loop {
        let remaining = wait.saturating_sub(started.elapsed());
        if remaining.is_zero() || is_over() {
            return None;
        }
        socket.set_read_timeout(Some(remaining.min(TICK))).ok()?;
        match socket.read(&mut packet) {
            Ok(size) => {
                if let Some(version) = packet.get(..size).and_then(query_version) {
                    return Some(version);
                }
            }
            Err(error) if is_passing(error.kind()) => {}
            Err(_) => return None,
        }
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The IGMP version of a general query in an IPv4 packet, header included (RFC 3376 section 7.1).
/// `None` if the packet is something else, or truncated.
fn query_version(packet: &[u8]) -> Option<u8> {
    const MEMBERSHIP_QUERY: u8 = 0x11;
    let header_size = usize::from(packet.first()? & 0x0f) * 4;
    if header_size < 20 {
        return None;
    }
    let message = packet.get(header_size..)?;
    let &[kind, response_time, _, _, group @ ..] = message.first_chunk::<8>()?;
    if kind != MEMBERSHIP_QUERY || group != [0; 4] {
        return None;
    }
    match (message.len(), response_time) {
        (12.., _) => Some(3),
        (8, 0) => Some(1),
        (8, _) => Some(2),
        _ => None,
    }
}

/// Interfaces on which the kernel uses an old IGMP version because of an old querier, and the
/// version, from the text of `/proc/net/igmp`.
fn old_queriers(table: &str) -> Vec<(String, u8)> {
    let line = |line: &str| {
        // `2	eth0      :     3      V2`; the lines of the groups begin with white space.
        let (left, right) = line.split_once(':')?;
        let name = left.strip_prefix(|c: char| c.is_ascii_digit())?.split_whitespace().last()?;
        let version = match right.split_whitespace().nth(1)? {
            "V1" => 1,
            "V2" => 2,
            _ => return None,
        };
        Some((name.to_owned(), version))
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// The finding about a bridge of this host: with snooping it needs a querier.
fn bridge(name: &str) -> Option<Finding> {
    let setting = |what: &str| -> Option<u32> {
        fs::read_to_string(format!("/sys/class/net/{name}/bridge/{what}")).ok()?.trim().parse().ok()
    };
    let (snooping, querier) = (setting("multicast_snooping")?, setting("multicast_querier")?);
    let subject = format!("bridge {name}");
    Some(match (snooping, querier) {
        (0, _) => Finding::new(subject, Verdict::Good, "does not snoop: floods multicast"),
        (_, 0) => Finding::new(
            subject,
            Verdict::Warning,
            "snoops and does not query: without another querier groups fall silent after 260 s",
        )
        .remedy(format!("ip link set {name} type bridge mcast_querier 1")),
        _ => Finding::new(subject, Verdict::Good, "snoops and queries"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(header_words: u8, message: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; usize::from(header_words) * 4];
        packet[0] = 0x40 | header_words;
        packet.extend_from_slice(message);
        packet
    }

    #[test]
    fn general_queries_are_distinguished_from_other_packets() {
        let v1 = [0x11, 0, 0, 0, 0, 0, 0, 0];
        let v2 = [0x11, 100, 0, 0, 0, 0, 0, 0];
        let v3 = [0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0];
        assert_eq!(query_version(&packet(5, &v1)), Some(1));
        assert_eq!(query_version(&packet(6, &v2)), Some(2));
        assert_eq!(query_version(&packet(6, &v3)), Some(3));
        // A report, a query for one group, lengths that no version has, a broken header.
        assert_eq!(query_version(&packet(5, &[0x22, 0, 0, 0, 0, 0, 0, 1])), None);
        assert_eq!(query_version(&packet(5, &[0x11, 10, 0, 0, 239, 1, 2, 3])), None);
        assert_eq!(query_version(&packet(5, &v3[..11])), None);
        assert_eq!(query_version(&packet(5, &v2[..7])), None);
        assert_eq!(query_version(&packet(4, &v2)), None);
    }

    #[test]
    fn an_old_querier_is_read_from_the_kernels_table() {
        let table = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                     1\tlo        :     1      V3\n\
                     \t\t\t\t010000E0     1 0:00000000\t\t0\n\
                     2\teth0      :     3      V2\n\
                     \t\t\t\tFB0000E0     1 0:00000000\t\t1\n\
                     3\tveryverylongnam:     3      V2\n\
                     4\teth1      :     1      V1\n";
        let found = old_queriers(table);
        let found: Vec<(&str, u8)> = found.iter().map(|(name, v)| (name.as_str(), *v)).collect();
        assert_eq!(found, [("eth0", 2), ("veryverylongnam", 2), ("eth1", 1)]);
        assert!(old_queriers("").is_empty());
    }

    proptest! {
        #[test]
        fn no_packet_and_no_table_makes_the_parsers_panic(
            packet in prop::collection::vec(any::<u8>(), 0..80),
            table in "[ -~\\t\\n]{0,200}",
        ) {
            let _ = query_version(&packet);
            let _ = old_queriers(&table);
        }
    }
}
