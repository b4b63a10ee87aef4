//! The hosts that are asked without the proxy of the environment.

use std::net::IpAddr;
use std::sync::Arc;
use url::{Host, Url};

/// The hosts of `no_proxy`, as curl understands them: `*`; names, which include the names below;
/// addresses; and ranges of addresses (`10.0.0.0/8`). An entry may have a port.
#[derive(Clone, Debug, Default)]
pub(super) struct Direct(Arc<[Entry]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// This name, and those below it.
    Name(String),
    /// Addresses whose first bits are these.
    Addresses(IpAddr, u8),
}

impl Direct {
    /// Those of the environment: `NO_PROXY`, or `no_proxy`.
    pub(super) fn of_environment() -> Self {
        let text = ["NO_PROXY", "no_proxy"].into_iter().find_map(|name| std::env::var(name).ok());
        Self::parse(&text.unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        Self(words.filter_map(Entry::parse).collect())
    }

    /// Whether the host of an address is among them.
    pub(super) fn includes(&self, url: &Url) -> bool {
        self.0.iter().any(|entry| entry.includes(url))
    }
}

impl Entry {
    fn parse(word: &str) -> Option<Self> {
        let entry = |hosts| Some(Self { hosts, port: None });
        if word == "*" {
            return entry(Hosts::All);
        }
        if let Some(hosts) = addresses(word) {
            return entry(hosts);
        }
        let (host, port) = match word.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (word, None),
        };
        if let Some(hosts) = addresses(host) {
            return Some(Self { hosts, port });
        }
        let name = host.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Self { hosts: Hosts::Name(name), port })
    }

    fn includes(&self, url: &Url) -> bool {
        let has_port = self.port.is_none_or(|port| url.port_or_known_default() == Some(port));
        has_port
            && match (&self.hosts, url.host()) {
                (Hosts::All, _) => true,
                (Hosts::Name(name), Some(Host::Domain(host))) => {
                    let host = host.trim_end_matches('.');
                    let above = host.strip_suffix(name.as_str());
                    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
                }
                (Hosts::Addresses(of, bits), Some(Host::Ipv4(host))) => {
                    are_in(*of, *bits, host.into())
                }
                (Hosts::Addresses(of, bits), Some(Host::Ipv6(host))) => {
                    are_in(*of, *bits, host.into())
                }
                _ => false,
            }
    }
}

/// An address, or a range: `10.0.0.0/8`, `fd00::/8`, `[::1]`.
fn addresses(word: &str) -> Option<Hosts> {
    let (address, bits) = match word.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (word, None),
    };
    let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(all);
    (bits <= all).then_some(Hosts::Addresses(address, bits))
}

/// Whether the first bits of two addresses are the same.
fn are_in(of: IpAddr, bits: u8, host: IpAddr) -> bool {
    let first = |address: u128, all: u32| {
        // A shift by all bits is none.
        address.checked_shr(all.saturating_sub(bits.into())).unwrap_or(0)
    };
    match (of, host) {
        (IpAddr::V4(of), IpAddr::V4(host)) => {
            first(of.to_bits().into(), 32) == first(host.to_bits().into(), 32)
        }
        (IpAddr::V6(of), IpAddr::V6(host)) => {
            first(of.to_bits(), 128) == first(host.to_bits(), 128)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_proxy_are_names_addresses_and_ranges() {
        let direct = Direct::parse(
            "localhost, .a.example,*.b.example c.example:81,10.0.0.0/8,192.0.2.7,fd00::/8,[::1],\
             127.0.0.0/8:8001,x/33,10.0.0.0/33",
        );
        let includes = |url: &str| direct.includes(&Url::parse(url).unwrap());
        for url in [
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.example/",
            "http://x.a.example/",
            "https://b.example:9/",
            "http://c.example:81/",
            "http://10.255.0.1:8080/",
            "http://192.0.2.7/",
            "http://[fd12::1]/",
            "http://[::1]/",
            "http://127.0.0.1:8001/",
        ] {
            assert!(includes(url), "{url}");
        }
        for url in [
            "http://xa.example/",
            "http://c.example/",
            "http://11.0.0.1/",
            "http://192.0.2.8/",
            "http://[fe00::1]/",
            "http://127.0.0.1/",
            "http://example/",
        ] {
            assert!(!includes(url), "{url}");
        }
        let of = |text: &str, url: &str| Direct::parse(text).includes(&Url::parse(url).unwrap());
        assert!(of("*", "http://x.example/") && !of("", "http://x.example/"));
        assert!(of("0.0.0.0/0", "http://8.8.8.8/") && of("::/0", "http://[::1]/"));
    }
}
