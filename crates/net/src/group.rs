//! Multicast groups that may carry a session, and those that need a source.
//!
//! Sources: IANA's IPv4 and IPv6 multicast address registries, RFC 5771 (IPv4 assignments),
//! RFC 4607 (source-specific multicast), RFC 4291 section 2.7 (IPv6 flags and scopes).

use std::net::IpAddr;

/// Why an address cannot be the group of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// Unicast, broadcast or unspecified.
    #[error("{0} is not a multicast group; take one of 239.255.0.0/16, or ff15::/16 for IPv6")]
    NotMulticast(IpAddr),
    /// Routers, switches and hosts use these groups for control protocols, and switches flood them
    /// to every port.
    #[error(
        "{0} belongs to the link's own control protocols (224.0.0.0/24, ff01::/16, ff02::/16) \
         and reaches every host; take one of 239.255.0.0/16, or ff15::/16 for IPv6"
    )]
    LinkControl(IpAddr),
    /// The lowest source-specific addresses are not for applications (RFC 4607 sections 2 and 7).
    #[error("{0} is reserved by IANA; source-specific groups begin at 232.0.1.0")]
    ReservedSourceSpecific(IpAddr),
}

/// Checks that a session may be sent to `group`.
///
/// # Errors
/// The address is not multicast, or reserved for other uses.
pub fn check_group(group: IpAddr) -> Result<(), GroupError> {
    match group {
        _ if !group.is_multicast() => Err(GroupError::NotMulticast(group)),
        IpAddr::V4(v4) if v4.octets()[..3] == [224, 0, 0] => Err(GroupError::LinkControl(group)),
        IpAddr::V4(v4) if v4.octets()[..3] == [232, 0, 0] => {
            Err(GroupError::ReservedSourceSpecific(group))
        }
        // Flags 0: assigned permanently by IANA. Scope 1 is the host itself, 2 the link.
        IpAddr::V6(v6) if matches!(v6.segments()[0], 0xff01 | 0xff02) => {
            Err(GroupError::LinkControl(group))
        }
        _ => Ok(()),
    }
}

/// True if routers forward this group only to receivers that name the source: 232.0.0.0/8 and
/// ff3x::/32 (RFC 4607 section 1).
pub fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(v4) => v4.octets()[0] == 232,
        IpAddr::V6(v6) => v6.segments()[0] & 0xfff0 == 0xff30 && v6.segments()[1] == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_multicast_outside_the_reserved_ranges_carries_a_session() {
        let no = [
            ("223.255.255.255", GroupError::NotMulticast as fn(IpAddr) -> GroupError),
            ("224.0.0.0", GroupError::LinkControl),
            ("224.0.0.255", GroupError::LinkControl),
            ("232.0.0.0", GroupError::ReservedSourceSpecific),
            ("232.0.0.255", GroupError::ReservedSourceSpecific),
            ("240.0.0.0", GroupError::NotMulticast),
            ("255.255.255.255", GroupError::NotMulticast),
            ("fe80::1", GroupError::NotMulticast),
            ("ff02::1", GroupError::LinkControl),
            ("ff01::101", GroupError::LinkControl),
        ];
        for (text, error) in no {
            assert_eq!(check_group(ip(text)), Err(error(ip(text))), "{text}");
        }
        for text in
            ["224.0.1.0", "231.255.255.255", "232.0.1.0", "239.255.77.1", "ff12::1", "ff15::7701"]
        {
            assert_eq!(check_group(ip(text)), Ok(()), "{text}");
        }
    }

    #[test]
    fn source_specific_ranges_end_where_the_rfc_says() {
        for text in ["232.0.0.0", "232.255.255.255", "ff35::8000:1", "ff3e::1"] {
            assert!(is_source_specific(ip(text)), "{text}");
        }
        for text in ["231.255.255.255", "233.0.0.0", "ff15::1", "ff35:40:2001:db8::1"] {
            assert!(!is_source_specific(ip(text)), "{text}");
        }
    }
}
