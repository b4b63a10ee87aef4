//! Rules of nftables and iptables that drop packets to a destination, from what lists them.
//!
//! Rules are read one by one, and those that jump to other chains are not followed. A condition
//! that is not known here may hold or not.

use std::net::{IpAddr, SocketAddr};

/// A rule that drops packets to a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drops {
    /// As it is listed.
    pub(super) rule: String,
    /// It drops all of them, as far as it can be read.
    pub(super) all: bool,
}

/// The first rule that drops packets that come for `to`, in the output of `nft list ruleset`.
pub(super) fn of_nft(ruleset: &str, to: SocketAddr) -> Option<Drops> {
    let (mut is_incoming, mut is_accepted) = (true, false);
    for line in ruleset.lines().map(str::trim) {
        if line.starts_with("chain ") {
            // A chain without a hook is one that others jump to.
            (is_incoming, is_accepted) = (true, false);
        } else if let Some((_, hook)) = line.split_once(" hook ") {
            let hook = hook.split_whitespace().next();
            is_incoming = matches!(hook, Some("input" | "prerouting" | "ingress"));
        } else if is_incoming && !is_accepted {
            match Rule::of(line, to) {
                Some(Rule { drops: true, all }) => return Some(Drops { rule: line.into(), all }),
                Some(Rule { drops: false, all }) => is_accepted = all,
                None => {}
            }
        }
    }
    None
}

/// The same in the output of `iptables -S INPUT`.
pub(super) fn of_iptables(rules: &str, to: SocketAddr) -> Option<Drops> {
    let mut rules = rules.lines().map(str::trim).filter(|line| line.starts_with("-A "));
    rules
        .find_map(|line| Some((line, Rule::of(line, to)?)))
        .and_then(|(line, rule)| rule.drops.then(|| Drops { rule: line.into(), all: rule.all }))
}

/// What a rule does to packets to a destination that it names.
struct Rule {
    /// It drops or rejects them. Otherwise it accepts them.
    drops: bool,
    /// It has no other condition.
    all: bool,
}

impl Rule {
    /// `None` if it does neither, or is about other packets.
    fn of(line: &str, to: SocketAddr) -> Option<Self> {
        let line = line.split(" comment ").next().unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().collect();
        let drops = words.iter().copied().find_map(verdict)?;
        let (mut names, mut all) = (false, true);
        for (at, word) in words.iter().enumerate() {
            // nftables writes words, and iptables options.
            let word = word.strip_prefix("--").unwrap_or(word);
            let test: fn(&str, SocketAddr) -> bool = match word {
                "daddr" | "-d" => |item, to| has_address(item, to.ip()),
                "dport" | "dports" => |item, to| has_port(item, to.port()),
                "pkttype" | "pkt-type" => {
                    |item, to| (item == "multicast") == to.ip().is_multicast()
                }
                "tcp" | "icmp" | "icmpv6" | "ipv6-icmp" | "igmp" | "sctp" => return None,
                word if CONDITIONS.contains(&word) => {
                    all = false;
                    continue;
                }
                _ => continue,
            };
            let is_negated = at > 0 && words.get(at - 1) == Some(&"!");
            let mut rest = words.get(at + 1..)?.iter().copied().peekable();
            let is_negated = rest.next_if_eq(&"!=").is_some() || is_negated;
            let is_other = |word: &&str| word.starts_with(['<', '>', '@', '$']);
            if rest.peek().is_some_and(is_other) {
                // A comparison, or a set that has a name.
                all = false;
                continue;
            }
            let is_set = rest.next_if_eq(&"{").is_some();
            let most = if is_set { MAX_ITEMS } else { 1 };
            let items: Vec<_> = rest.take_while(|item| *item != "}").take(most).collect();
            let mut items = items.iter().flat_map(|item| item.split(',')).peekable();
            items.peek()?;
            let holds = items.any(|item| test(item, to));
            if holds == is_negated {
                return None;
            }
            names = true;
        }
        names.then_some(Self { drops, all })
    }
}

/// More members of a set are not read.
const MAX_ITEMS: usize = 10_000;

/// Conditions that depend on more than the destination.
const CONDITIONS: [&str; 15] = [
    "saddr", "-s", "iif", "iifname", "-i", "ct", "ctstate", "state", "limit", "numgen", "sport",
    "length", "ttl", "ether", "quota",
];

/// Whether a word of a rule drops packets, or accepts them.
fn verdict(word: &str) -> Option<bool> {
    match word {
        "drop" | "reject" | "DROP" | "REJECT" => Some(true),
        "accept" | "ACCEPT" => Some(false),
        _ => None,
    }
}

/// Whether an address, a prefix or a range contains an address.
fn has_address(item: &str, address: IpAddr) -> bool {
    let parse = |text: &str| text.parse::<IpAddr>().ok();
    let of_version = |ip: &IpAddr| ip.is_ipv4() == address.is_ipv4();
    if let Some((first, last)) = item.split_once('-') {
        let ends = parse(first).zip(parse(last));
        return ends
            .is_some_and(|(first, last)| of_version(&first) && (first..=last).contains(&address));
    }
    let (network, length) = item.split_once('/').unwrap_or((item, "128"));
    let Some(network) = parse(network).filter(of_version) else { return false };
    let Ok(length) = length.parse::<u32>() else { return false };
    let differing = match (network, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => return false,
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    differing >= length.min(bits)
}

/// Whether a port or a range contains a port.
fn has_port(item: &str, port: u16) -> bool {
    let (first, last) = item.split_once(['-', ':']).unwrap_or((item, item));
    let ends = first.parse::<u16>().ok().zip(last.parse::<u16>().ok());
    ends.is_some_and(|(first, last)| (first..=last).contains(&port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to() -> SocketAddr {
        "239.255.77.1:7701".parse().unwrap()
    }

    /// A rule in a chain at this hook.
    fn ruleset(hook: &str, rules: &str) -> String {
        format!(
            "table inet filter {{\n\tchain c {{\n\t\ttype filter hook {hook} priority filter; \
             policy accept;\n\t\t{rules}\n\t}}\n}}\n"
        )
    }

    #[test]
    fn rules_that_drop_a_group_are_found_and_those_about_other_packets_are_not() {
        for (rule, expected) in [
            ("ip daddr 239.255.77.1 drop", Some(true)),
            ("ip daddr 224.0.0.0/4 counter packets 7 bytes 700 drop", Some(true)),
            ("ip daddr { 239.1.1.1, 239.255.77.0-239.255.77.9 } reject", Some(true)),
            ("udp dport 7701 drop comment \"ip saddr\"", Some(true)),
            ("udp dport { 53, 7000-8000 } log drop", Some(true)),
            ("meta pkttype multicast drop", Some(true)),
            ("ip daddr != 10.0.0.1 drop", Some(true)),
            ("iifname \"eth1\" ip daddr 239.255.77.1 drop", Some(false)),
            ("udp dport > 1024 ip daddr 239.255.77.1 drop", Some(false)),
            ("ip daddr 224.0.0.0/4 udp dport != @open drop", Some(false)),
            ("ip daddr 239.255.77.2 drop", None),
            ("ip daddr 239.255.77.1 udp dport 7702 drop", None),
            ("ip6 daddr ff00::/8 drop", None),
            ("tcp dport 7701 drop", None),
            ("ct state invalid drop", None),
            ("numgen random mod 1000 < 50 drop", None),
            ("ip daddr != 239.255.77.1 drop", None),
            ("meta pkttype broadcast drop", None),
            ("ip daddr 239.255.77.1 counter", None),
        ] {
            let found = of_nft(&ruleset("input", rule), to());
            assert_eq!(found.as_ref().map(|drops| drops.all), expected, "{rule}");
            assert_eq!(of_nft(&ruleset("output", rule), to()), None, "{rule}");
        }
    }

    #[test]
    fn what_was_accepted_before_is_not_dropped() {
        let drop = "ip daddr 224.0.0.0/4 drop";
        let all = format!("udp dport 7701 accept\n\t\t{drop}");
        assert_eq!(of_nft(&ruleset("input", &all), to()), None);
        let some = format!("iifname \"eth1\" udp dport 7701 accept\n\t\t{drop}");
        let found = of_nft(&ruleset("prerouting", &some), to()).unwrap();
        assert_eq!(found, Drops { rule: drop.into(), all: true });
    }

    #[test]
    fn rules_of_iptables_are_read_too() {
        let of = |rules: &str| of_iptables(rules, to()).map(|drops| drops.all);
        assert_eq!(of("-P INPUT ACCEPT\n-A INPUT -d 239.255.77.1/32 -p udp -j DROP\n"), Some(true));
        assert_eq!(of("-A INPUT -p udp -m udp --dport 7000:8000 -j REJECT\n"), Some(true));
        assert_eq!(of("-A INPUT -s 10.0.0.7/32 -p udp -m udp --dport 7701 -j DROP\n"), Some(false));
        assert_eq!(of("-A INPUT ! -d 224.0.0.0/4 -j DROP\n"), None);
        assert_eq!(
            of("-A INPUT -p udp --dport 7701 -j ACCEPT\n-A INPUT -d 239.0.0.0/8 -j DROP\n"),
            None
        );
        assert_eq!(of("-P INPUT DROP\n-A INPUT -i lo -j ACCEPT\n"), None);
    }

    #[test]
    fn rules_that_end_early_are_none() {
        for rest in ["", "{", "!=", "!= {", "}", "<", "1/2/3", "10.0.0.0/x", "a-b", "/", "-", ","] {
            let rule = format!("drop ip daddr {rest}");
            assert_eq!(of_nft(&rule, to()).filter(|drops| drops.all), None, "{rule}");
            let _ = of_nft(&format!("udp dport {rest} drop"), to());
        }
    }
}
