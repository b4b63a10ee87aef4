//! The multicast groups of a session's channels.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The groups of a session's channels. Channel 0 uses the session's first group, the `group` of a
/// [`Ticket`](crate::Ticket). All channels have one port, one source and one TSI, as LCT requires
/// (RFC 5651, section 3).
///
/// ```
/// use fontana_wire::ChannelGroups;
///
/// let first = [239, 255, 77, 1].into();
/// let groups = ChannelGroups::Consecutive(3);
/// assert_eq!(groups.group(first, 2), Some([239, 255, 77, 3].into()));
/// assert_eq!(groups.group(first, 3), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelGroups {
    /// Number of channels, 1 to [`MAX_CHANNELS`](crate::MAX_CHANNELS), on consecutive groups that
    /// begin with the first one.
    Consecutive(u8),
    /// Groups of channels 1, 2 and so on: multicast addresses of the first one's family, without
    /// repetition.
    Listed(Vec<IpAddr>),
}

/// One channel.
impl Default for ChannelGroups {
    fn default() -> Self {
        Self::Consecutive(1)
    }
}

impl ChannelGroups {
    /// Number of channels.
    pub fn count(&self) -> u8 {
        match self {
            Self::Consecutive(count) => *count,
            Self::Listed(others) => u8::try_from(others.len().saturating_add(1)).unwrap_or(u8::MAX),
        }
    }

    /// The group of a channel; `None` if the session does not have the channel, or if it lies
    /// beyond the last address.
    pub fn group(&self, first: IpAddr, channel: u8) -> Option<IpAddr> {
        match self {
            _ if channel == 0 => Some(first),
            Self::Consecutive(count) if channel >= *count => None,
            Self::Consecutive(_) => Some(match first {
                IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip).checked_add(channel.into())?).into(),
                IpAddr::V6(ip) => {
                    Ipv6Addr::from(u128::from(ip).checked_add(channel.into())?).into()
                }
            }),
            Self::Listed(others) => others.get(usize::from(channel).checked_sub(1)?).copied(),
        }
    }

    /// The groups of all channels, that of channel 0 first.
    pub fn groups(&self, first: IpAddr) -> impl Iterator<Item = IpAddr> {
        (0..self.count()).map_while(move |channel| self.group(first, channel))
    }
}
