//! The symbol size for an interface's MTU.
//!
//! ```text
//! |<------------------------------ MTU ------------------------------>|
//! | IP 20 or 40 | UDP 8 |<------------- UDP payload ----------------->|
//!                       | packet header | symbol (T) | authentication |
//! ```
//!
//! Every datagram of a session has the same size and is never fragmented, so the sender chooses the
//! size once, for the smallest link of any path. A host cannot know that link, so the default stays
//! below 1500.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The Internet Protocol version of the datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpVersion {
    /// IPv4: a header of 20 bytes (no options are set).
    V4,
    /// IPv6: a header of 40 bytes.
    V6,
}

impl IpVersion {
    /// The version that an address belongs to.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The unspecified address of this version.
    pub const fn unspecified(self) -> IpAddr {
        match self {
            Self::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Self::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    /// Bytes of IP and UDP header in front of every payload (RFC 791, RFC 8200, RFC 768).
    pub const fn header_size(self) -> usize {
        match self {
            Self::V4 => 20 + 8,
            Self::V6 => 40 + 8,
        }
    }
}

/// `IPv4` or `IPv6`.
impl fmt::Display for IpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// The UDP payload of a session's packets, unless the MTU is smaller or the user requests jumbo
/// frames.
///
/// 1500 - 48 = 1452 bytes fit an Ethernet frame. The other 52 bytes allow one tunnel of any common
/// kind (GRE 24, 6in4 20, VXLAN over IPv4 50) without fragments.
pub const DEFAULT_PAYLOAD_SIZE: usize = 1400;

/// The largest UDP payload that IPv4 can carry: 65 535 - 20 - 8.
pub const MAX_PAYLOAD_SIZE: usize = 65_507;

/// Best alignment of symbols: they are read and combined in machine words and cache lines.
const GOOD_ALIGNMENT: usize = 64;

/// Least alignment that the codes' symbol operations and RaptorQ's sub-blocks need (`Al` = 4, RFC
/// 6330 section 4.3).
const LEAST_ALIGNMENT: usize = 4;

/// The MTU leaves no room for a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an MTU of {mtu} bytes leaves {payload} bytes of UDP payload, of which {overhead} are header \
     and authentication: no symbol fits; use an interface with a larger MTU"
)]
pub struct MtuError {
    /// The interface's MTU.
    pub mtu: u32,
    /// UDP payload that fits the MTU.
    pub payload: usize,
    /// Bytes of the payload beside the symbol.
    pub overhead: usize,
}

/// The UDP payload for an interface: what the MTU allows, at most `ceiling`.
///
/// `ceiling` is [`DEFAULT_PAYLOAD_SIZE`], or [`MAX_PAYLOAD_SIZE`] if the whole path carries jumbo
/// frames (the loopback interface's MTU is 65 536).
pub fn payload_size_for(mtu: u32, ip_version: IpVersion, ceiling: usize) -> usize {
    (mtu as usize).saturating_sub(ip_version.header_size()).min(ceiling).min(MAX_PAYLOAD_SIZE)
}

/// The symbol size T in bytes for packets with a UDP payload of at most `payload_size`.
///
/// The payload without the packet header (`header_overhead`) and the bytes reserved for
/// authentication (`auth_reserve`), rounded down to a multiple of 64, or of 4 if it is less than
/// 64. `None` if fewer than 4 bytes remain.
pub fn symbol_size_in(
    payload_size: usize,
    header_overhead: usize,
    auth_reserve: usize,
) -> Option<usize> {
    let room = payload_size.checked_sub(header_overhead)?.checked_sub(auth_reserve)?;
    let alignment = if room >= GOOD_ALIGNMENT { GOOD_ALIGNMENT } else { LEAST_ALIGNMENT };
    Some(room - room % alignment).filter(|&size| size > 0)
}

/// The symbol size T in bytes for an interface, by the default rule.
///
/// With an MTU of 1500, 20 bytes of packet header and 36 of authentication: 1344.
///
/// # Errors
/// The MTU leaves less than 4 bytes for the symbol.
pub fn symbol_size_for(
    mtu: u32,
    ip_version: IpVersion,
    header_overhead: usize,
    auth_reserve: usize,
) -> Result<usize, MtuError> {
    let payload = payload_size_for(mtu, ip_version, DEFAULT_PAYLOAD_SIZE);
    symbol_size_in(payload, header_overhead, auth_reserve).ok_or(MtuError {
        mtu,
        payload,
        overhead: header_overhead.saturating_add(auth_reserve),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_symbol_has_1344_bytes_on_ethernet_and_on_loopback() {
        for version in [IpVersion::V4, IpVersion::V6] {
            for mtu in [1500, 9000, 65_536, u32::MAX] {
                assert_eq!(symbol_size_for(mtu, version, 20, 36), Ok(1344));
            }
        }
    }

    #[test]
    fn the_payload_shrinks_with_the_mtu_from_the_first_byte_that_does_not_fit() {
        assert_eq!(payload_size_for(1428, IpVersion::V4, DEFAULT_PAYLOAD_SIZE), 1400);
        assert_eq!(payload_size_for(1427, IpVersion::V4, DEFAULT_PAYLOAD_SIZE), 1399);
        assert_eq!(payload_size_for(1448, IpVersion::V6, DEFAULT_PAYLOAD_SIZE), 1400);
        assert_eq!(payload_size_for(1447, IpVersion::V6, DEFAULT_PAYLOAD_SIZE), 1399);
        assert_eq!(symbol_size_for(1280, IpVersion::V6, 20, 36), Ok(1152));
    }

    #[test]
    fn jumbo_frames_are_used_when_asked_for() {
        let payload = payload_size_for(65_536, IpVersion::V4, MAX_PAYLOAD_SIZE);
        assert_eq!(payload, MAX_PAYLOAD_SIZE);
        assert_eq!(symbol_size_in(payload, 20, 36), Some(65_408));
        assert_eq!(payload_size_for(9000, IpVersion::V4, MAX_PAYLOAD_SIZE), 8972);
    }

    #[test]
    fn a_small_rest_is_aligned_to_four_and_nothing_is_an_error() {
        assert_eq!(symbol_size_in(64, 0, 0), Some(64));
        assert_eq!(symbol_size_in(63, 0, 0), Some(60));
        assert_eq!(symbol_size_in(4, 0, 0), Some(4));
        assert_eq!(symbol_size_in(3, 0, 0), None);
        assert_eq!(
            symbol_size_for(28 + 59, IpVersion::V4, 20, 36),
            Err(MtuError { mtu: 87, payload: 59, overhead: 56 })
        );
        assert_eq!(
            symbol_size_for(0, IpVersion::V6, usize::MAX, usize::MAX).unwrap_err().payload,
            0
        );
    }

    proptest! {
        #[test]
        fn the_packet_always_fits(mtu in 0_u32..100_000, header in 0_usize..200, auth in 0_usize..200) {
            for version in [IpVersion::V4, IpVersion::V6] {
                if let Ok(size) = symbol_size_for(mtu, version, header, auth) {
                    prop_assert!(version.header_size() + header + size + auth <= mtu as usize);
                    prop_assert!(size % LEAST_ALIGNMENT == 0 && size > 0);
                }
            }
        }
    }
}
