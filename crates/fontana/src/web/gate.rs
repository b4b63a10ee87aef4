//! Which addresses requests to a mirror may go to.
//!
//! A mirror outside must not make this host ask servers inside of its network, neither by redirects
//! nor by a name whose address changes. So a mirror is *public* once any address of its name was
//! public, until the end of the run: then no request goes to a private address. A mirror whose name
//! has only had private addresses may be asked at those, and its redirects lead to those or to
//! public ones. Every connection is checked, by the address that it goes to.
//!
//! A mirror that a ticket names, and its user has not chosen, may be asked at public addresses, and
//! at private ones in the network of a sender of the ticket. Its redirects lead to no other host.
//!
//! A proxy resolves names itself. Through one, redirects to private addresses are refused that are
//! written as such, and to `localhost`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use url::{Host, Url};

/// Addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;

/// What is known of the mirrors of a run, by the hosts of their addresses: those that the user or a
/// ticket names.
#[derive(Clone, Debug, Default)]
pub(super) struct Standings(Arc<Mutex<BTreeMap<String, Arc<Mutex<Standing>>>>>);

impl Standings {
    /// The gate for requests to the mirror on this host. `senders`: those of the ticket that names
    /// it, if its user has not chosen it.
    pub(super) fn gate(&self, host: &str, senders: Option<Arc<[IpAddr]>>) -> Gate {
        let standing = Arc::clone(lock(&self.0).entry(host.to_owned()).or_default());
        let request = Arc::new(Mutex::new(Request::default()));
        Gate { host: host.into(), senders, standing, request }
    }
}

/// What is known of a mirror.
#[derive(Debug, Default)]
struct Standing {
    /// An address of its name was public.
    is_public: bool,
    /// The addresses of its name, while all of them were private.
    own: BTreeSet<IpAddr>,
}

impl Standing {
    /// The addresses of a host that requests may go to. `is_own`: it is the mirror's own.
    fn admit(&mut self, is_own: bool, mut found: Vec<SocketAddr>) -> Vec<SocketAddr> {
        if is_own {
            self.is_public |= found.iter().any(|address| is_public(address.ip()));
            self.own = found.iter().map(SocketAddr::ip).collect();
        }
        found.retain(|address| is_public(address.ip()) || self.admits_private(address.ip()));
        found
    }

    fn admits_private(&self, address: IpAddr) -> bool {
        !self.is_public && self.own.contains(&address)
    }
}

/// The request that is made.
#[derive(Debug, Default)]
struct Request {
    is_proxied: bool,
    /// The first address of its host.
    address: Option<SocketAddr>,
}

/// Resolves names for the requests to one mirror, one at a time, and refuses private addresses.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    /// The host of the mirror's address.
    host: Arc<str>,
    /// The senders of a ticket, in whose networks its private addresses are.
    senders: Option<Arc<[IpAddr]>>,
    standing: Arc<Mutex<Standing>>,
    request: Arc<Mutex<Request>>,
}

/// A host has no address that a request may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// A redirect of a public mirror leads to a private address.
    Inside,
    /// A redirect of a private mirror leads to another private address.
    Elsewhere,
    /// The name of a public mirror leads to a private address.
    Rebound,
    /// A redirect of a mirror that a ticket alone names leads to another host.
    OtherHost,
    /// Such a mirror has private addresses alone, and none in the network of a sender.
    Far,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a private address is refused: {self:?}")
    }
}

impl std::error::Error for Refused {}

/// No code under these locks can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    /// A request to this address begins.
    ///
    /// # Errors
    /// It goes through a proxy, and the address is written as a private one. Or a ticket alone
    /// names the mirror, and the address is on another host.
    pub(super) fn begin(&self, url: &Url, is_proxied: bool) -> Result<(), Refused> {
        *lock(&self.request) = Request { is_proxied, address: None };
        let is_own = url.host_str() == Some(&self.host);
        if !is_own && self.senders.is_some() {
            return Err(Refused::OtherHost);
        }
        if is_proxied && !is_own && is_private_as_written(url) {
            return Err(self.refusal(is_own));
        }
        if is_proxied && self.is_far_as_written(url) {
            return Err(Refused::Far);
        }
        Ok(())
    }

    /// The first address of the host of the last request. `None` if a proxy has resolved its name.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        lock(&self.request).address
    }

    /// Whether a proxy makes the last request.
    pub(super) fn is_proxied(&self) -> bool {
        lock(&self.request).is_proxied
    }

    /// Whether requests to this address are refused because a ticket alone names the mirror.
    fn is_far(&self, address: IpAddr) -> bool {
        let is_near = |sender: &IpAddr| is_in_one_network(*sender, address);
        let senders = self.senders.as_deref();
        senders.is_some_and(|senders| !is_public(address) && !senders.iter().any(is_near))
    }

    /// The same of the host of an address, without looking it up.
    fn is_far_as_written(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(address)) => self.is_far(address.into()),
            Some(Host::Ipv6(address)) => self.is_far(address.into()),
            _ => self.senders.is_some() && is_private_as_written(url),
        }
    }

    fn refusal(&self, is_own: bool) -> Refused {
        match (is_own, lock(&self.standing).is_public) {
            (true, _) => Refused::Rebound,
            (false, true) => Refused::Inside,
            (false, false) => Refused::Elsewhere,
        }
    }

    /// The addresses of a host that the request may go to.
    fn admit(&self, host: &str, mut found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
        let (is_own, is_found) = (*host == *self.host, !found.is_empty());
        found.retain(|address| !self.is_far(address.ip()));
        if found.is_empty() && is_found {
            return Err(Refused::Far);
        }
        let admitted = lock(&self.standing).admit(is_own, found);
        lock(&self.request).address = admitted.first().copied();
        if admitted.is_empty() && is_found { Err(self.refusal(is_own)) } else { Ok(admitted) }
    }
}

impl Resolver for Gate {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or(Error::HostNotFound)?;
        let default_port = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(default_port);
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let found = (name, port).to_socket_addrs().map_err(Error::Io)?;
        let mut found: Vec<SocketAddr> = found.take(MAX_ADDRESSES).collect();
        // The name to resolve is then that of the proxy, which the user has chosen.
        if !lock(&self.request).is_proxied {
            let refused = |why| Error::Io(io::Error::new(io::ErrorKind::PermissionDenied, why));
            found = self.admit(host, found).map_err(refused)?;
        }
        let mut resolved = self.empty();
        found.into_iter().for_each(|address| resolved.push(address));
        if resolved.is_empty() { Err(Error::HostNotFound) } else { Ok(resolved) }
    }
}

/// Whether the host of an address is a private address, or this host, without looking it up.
fn is_private_as_written(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => !is_public(address.into()),
        Some(Host::Ipv6(address)) => !is_public(address.into()),
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        None => true,
    }
}

/// Whether two addresses are in one network, as far as it can be told: in 24 bits of IPv4, and in
/// 64 of IPv6.
fn is_in_one_network(one: IpAddr, other: IpAddr) -> bool {
    match (one.to_canonical(), other.to_canonical()) {
        (IpAddr::V4(one), IpAddr::V4(other)) => one.to_bits() >> 8 == other.to_bits() >> 8,
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() >> 64 == other.to_bits() >> 64,
        _ => false,
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

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 80)).collect()
    }

    /// The addresses that a mirror's gate admits of a host.
    fn admitted(gate: &Gate, host: &str, found: &[&str]) -> Result<usize, Refused> {
        gate.admit(host, addresses(found)).map(|admitted| admitted.len())
    }

    #[test]
    fn a_mirror_is_public_once_an_address_of_its_name_was() {
        let standings = Standings::default();
        let gate = standings.gate("a.example", None);
        // Private from the start.
        assert_eq!(admitted(&gate, "a.example", &["10.0.0.1", "fd00::1"]), Ok(2));
        assert_eq!(admitted(&gate, "b.example", &["10.0.0.1"]), Ok(1), "its own address");
        assert_eq!(admitted(&gate, "b.example", &["10.0.0.2"]), Err(Refused::Elsewhere));
        assert_eq!(admitted(&gate, "b.example", &["8.8.8.8", "10.0.0.2"]), Ok(1));
        assert_eq!(admitted(&gate, "a.example", &["10.0.0.2"]), Ok(1), "it may stay private");
        assert_eq!(admitted(&gate, "b.example", &["10.0.0.2"]), Ok(1), "its own address now");
        assert_eq!(admitted(&gate, "b.example", &["10.0.0.1"]), Err(Refused::Elsewhere));
        // A public address beside a private one.
        assert_eq!(admitted(&gate, "a.example", &["10.0.0.2", "8.8.8.8"]), Ok(1));
        for host in ["b.example", "a.example"] {
            for inside in ["10.0.0.2", "127.0.0.1", "169.254.169.254", "::ffff:10.0.0.2"] {
                assert!(admitted(&gate, host, &[inside]).is_err(), "{host} {inside}");
            }
        }
        assert_eq!(admitted(&gate, "a.example", &["10.0.0.2"]), Err(Refused::Rebound));
        assert_eq!(admitted(&gate, "b.example", &["10.0.0.2"]), Err(Refused::Inside));
        // So it is for the next client of the run, and not for other mirrors.
        let next = standings.gate("a.example", None);
        assert_eq!(admitted(&next, "a.example", &["10.0.0.2"]), Err(Refused::Rebound));
        assert_eq!(admitted(&standings.gate("c.example", None), "c.example", &["10.0.0.2"]), Ok(1));
    }

    #[test]
    fn a_mirror_of_a_ticket_alone_is_public_or_beside_a_sender_and_stays_on_its_host() {
        let senders = ["10.7.7.1", "fd77::1"].map(|text| text.parse().unwrap());
        let gate = |host: &str| Standings::default().gate(host, Some(senders.into()));
        for (address, expected) in [
            ("8.8.8.8", Ok(1)),
            ("10.7.7.254", Ok(1)),
            ("::ffff:10.7.7.254", Ok(1)),
            ("fd77::2:3", Ok(1)),
            ("10.7.6.1", Err(Refused::Far)),
            ("fd77:0:0:1::1", Err(Refused::Far)),
            ("127.0.0.1", Err(Refused::Far)),
            ("169.254.169.254", Err(Refused::Far)),
            ("::1", Err(Refused::Far)),
        ] {
            assert_eq!(
                admitted(&gate("a.example"), "a.example", &[address]),
                expected,
                "{address}"
            );
        }
        let mixed = gate("a.example");
        assert_eq!(admitted(&mixed, "a.example", &["10.7.6.1", "10.7.7.2"]), Ok(1));
        // Public once, it does not lead inside later, as any mirror.
        assert_eq!(admitted(&mixed, "a.example", &["8.8.8.8"]), Ok(1));
        assert_eq!(admitted(&mixed, "a.example", &["10.7.7.2"]), Err(Refused::Rebound));
        let begin = |host: &str, text: &str, is_proxied: bool| {
            gate(host).begin(&text.parse().unwrap(), is_proxied)
        };
        for is_proxied in [false, true] {
            assert_eq!(begin("a.example", "https://a.example/x", is_proxied), Ok(()));
            assert_eq!(
                begin("a.example", "http://b.example/", is_proxied),
                Err(Refused::OtherHost)
            );
            assert_eq!(begin("10.7.7.2", "http://10.7.7.2:81/", is_proxied), Ok(()));
            assert_eq!(begin("10.7.7.2", "http://10.7.7.3/", is_proxied), Err(Refused::OtherHost));
        }
        assert_eq!(begin("10.7.6.1", "http://10.7.6.1/", true), Err(Refused::Far));
        assert_eq!(begin("localhost", "http://localhost/", true), Err(Refused::Far));
    }

    #[test]
    fn through_a_proxy_private_addresses_are_refused_as_they_are_written() {
        let gate = Standings::default().gate("10.0.0.9", None);
        let begin = |text: &str| gate.begin(&text.parse().unwrap(), true);
        for allowed in ["http://10.0.0.9:8080/", "http://b.example/", "https://8.8.8.8/x"] {
            assert_eq!(begin(allowed), Ok(()), "{allowed}");
        }
        for refused in [
            "http://10.0.0.3/",
            "http://174194691/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.3]/",
            "http://localhost/",
            "http://LOCALHOST./",
            "http://a.localhost/",
        ] {
            assert!(begin(refused).is_err(), "{refused}");
        }
        assert_eq!(gate.begin(&"http://10.0.0.3/".parse().unwrap(), false), Ok(()));
    }
}
