//! Receivers of one site that complete each other: the options.

use crate::rate::Rate;
use fontana_proto::share::ShareStats;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// How a receiver shares what it has with others of its network, which do the same. All messages
/// go to one group with a hop limit of 1. See `docs/sharing.md`.
///
/// What comes from there is verified as everything is. Any host of the network can send to the
/// group, and read the content; with a [group key](crate::seal::GroupKey) only its members can.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sharing {
    /// The group and port. `None`: [`GROUP_V4`](Self::GROUP_V4), or [`GROUP_V6`](Self::GROUP_V6)
    /// beside a session over IPv6.
    pub group: Option<SocketAddr>,
    /// The rate at which it sends symbols, at most.
    pub rate: Rate,
    /// How long a complete receiver stays after it has last sent something for a request: ten times
    /// this at most.
    pub stays: Duration,
    /// A person wants it: the reception fails if the group cannot be joined, others are asked for
    /// what the session does not bring, and a complete receiver stays in any case. Otherwise
    /// nothing depends on it: others are asked before a sender in another network, or when the
    /// session has brought nothing for three seconds, and a complete receiver stays if it has.
    pub is_required: bool,
}

impl Sharing {
    /// Default of [`rate`](Self::rate).
    pub const RATE: Rate = Rate::mbit(20);
    /// Default of [`stays`](Self::stays).
    pub const STAYS: Duration = Duration::from_secs(10);
    const PORT: u16 = 7702;
    /// The default group: administratively scoped, this network only (RFC 2365).
    pub const GROUP_V4: SocketAddr =
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 77, 250)), Self::PORT);
    /// The default group beside a session over IPv6: transient, of the link (RFC 4291).
    pub const GROUP_V6: SocketAddr =
        SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x7702)), Self::PORT);

    /// Sharing that nothing depends on.
    pub fn by_default() -> Self {
        Self { is_required: false, ..Self::default() }
    }

    /// The group, for a receiver that listens on this address.
    pub(crate) fn group_beside(&self, address: IpAddr) -> SocketAddr {
        self.group.unwrap_or(if address.is_ipv4() { Self::GROUP_V4 } else { Self::GROUP_V6 })
    }
}

impl Default for Sharing {
    fn default() -> Self {
        Self { group: None, rate: Self::RATE, stays: Self::STAYS, is_required: true }
    }
}

/// What a receiver has shared.
pub type ShareReport = ShareStats;
