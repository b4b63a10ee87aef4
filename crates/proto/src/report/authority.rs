//! What vouches for an answer of a receiver.

use fontana_wire::PublicKey;
use std::net::IpAddr;

/// What vouches for an answer of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authority {
    /// The signature of the key that is expected of a receiver.
    Key(PublicKey),
    /// The group key: a member of the group has sent it.
    Group,
    /// Nothing. It came from this network, or a host that claims to be there.
    Unauthenticated(Network),
}

impl Authority {
    /// True unless nothing vouches for the answer.
    pub const fn is_authentic(self) -> bool {
        !matches!(self, Self::Unauthenticated(_))
    }
}

/// The part of a source address that a host cannot choose without forging it: an IPv4 address, or
/// the first 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network([u8; 8]);

impl Network {
    /// The network of an address.
    pub fn of(address: IpAddr) -> Self {
        let bytes = match address.to_canonical() {
            // No host has an IPv6 address that begins with 0xFF and is not multicast.
            IpAddr::V4(v4) => {
                let [a, b, c, d] = v4.octets();
                [0xFF, 0xFF, 0xFF, 0xFF, a, b, c, d]
            }
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, h, ..] = v6.octets();
                [a, b, c, d, e, f, g, h]
            }
        };
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_ipv4_address_or_a_prefix_of_64_bits() {
        let network = |text: &str| Network::of(text.parse().unwrap());
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
        assert_eq!(network("10.0.0.1"), network("::ffff:10.0.0.1"));
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::2"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    }
}
