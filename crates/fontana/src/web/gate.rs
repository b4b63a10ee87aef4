//! Which addresses a mirror's names may lead to.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolves names, and remembers which addresses they have. A redirect from a public address must
/// not lead to a private one: a server outside could otherwise make this host ask servers inside.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// Addresses by host.
    hosts: BTreeMap<String, Vec<SocketAddr>>,
    refuses_private: bool,
}

/// Hosts that are remembered. A mirror can redirect to any number of them.
const MAX_HOSTS: usize = 64;
/// Addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;

impl Gate {
    fn with<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        // No code under the lock can panic.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Refuses hosts with private addresses from here on, or allows them.
    pub(super) fn refuse_private(&self, refuses: bool) {
        self.with(|known| known.refuses_private = refuses);
    }

    /// Whether all known addresses of a host are public.
    pub(super) fn is_public(&self, host: &str) -> bool {
        let is_public = |addresses: &Vec<SocketAddr>| addresses.iter().all(|a| is_public(a.ip()));
        self.with(|known| known.hosts.get(host).is_some_and(is_public))
    }

    /// Whether a host is known to have a private address.
    pub(super) fn is_private(&self, host: &str) -> bool {
        let is_private = |addresses: &Vec<SocketAddr>| addresses.iter().any(|a| !is_public(a.ip()));
        self.with(|known| known.hosts.get(host).is_some_and(is_private))
    }

    /// The first address of a host.
    pub(super) fn address(&self, host: &str) -> Option<SocketAddr> {
        self.with(|known| known.hosts.get(host)?.first().copied())
    }
}

impl Resolver for Gate {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or(Error::HostNotFound)?;
        let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default_port);
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let found = (name, port).to_socket_addrs().map_err(Error::Io)?;
        let addresses: Vec<SocketAddr> = found.take(MAX_ADDRESSES).collect();
        let refused = self.with(|known| {
            let refused = known.refuses_private && addresses.iter().any(|a| !is_public(a.ip()));
            if known.hosts.len() >= MAX_HOSTS {
                known.hosts.clear();
            }
            known.hosts.insert(host.to_owned(), addresses.clone());
            refused
        });
        if refused {
            return Err(Error::Io(io::Error::from(io::ErrorKind::PermissionDenied)));
        }
        let mut resolved = self.empty();
        addresses.into_iter().for_each(|address| resolved.push(address));
        if resolved.is_empty() { Err(Error::HostNotFound) } else { Ok(resolved) }
    }
}

/// Whether an address is that of a host on the internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let is_shared = a == 100 && b & 0xc0 == 64; // RFC 6598
            let is_protocol = a == 192 && b == 0 && c == 0; // RFC 6890
            let is_benchmark = a == 198 && b & 0xfe == 18; // RFC 2544
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_documentation()
                || is_shared
                || is_protocol
                || is_benchmark
                || a == 0
                || a >= 224)
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(IpAddr::V4(v4)),
            None => is_public_v6(v6),
        },
    }
}

/// Global unicast is 2000::/3 (RFC 4291, section 2.4), without documentation and the addresses that
/// contain one of IPv4.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_documentation = first == 0x2001 && second == 0xdb8;
    let is_translated = first == 0x2002 || (first == 0x2001 && second == 0);
    first & 0xe000 == 0x2000 && !is_documentation && !is_translated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_not_public() {
        let public = ["8.8.8.8", "100.63.0.1", "172.32.0.1", "2a00:1450::1", "::ffff:8.8.8.8"];
        for text in public {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "239.1.1.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "2002:a00:1::1",
            "64:ff9b::a00:1",
        ];
        for text in private {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
