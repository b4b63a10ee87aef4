//! Datagrams that exceed the MTU of their route: from the start, or since the MTU was lowered.
//!
//! A datagram that never fitted is an error of the caller. If the kernel accepted one of its size
//! earlier, the datagram counts as lost, because the MTU may be raised again: a new mode of the
//! link, a tunnel that is set up again, or a mistake of an administrator lasts seconds, and a
//! session days.

use super::config::{ChannelAddress, SendConfig};

/// A period in which datagrams exceed the MTU of their route, although the socket has sent
/// datagrams of their size before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MtuDrop {
    /// The number of this period of the socket, from 1.
    pub number: u64,
    /// UDP payload of the first datagram that did not fit, in bytes.
    pub payload_size: usize,
    /// Name of the interface; `None` if the routing table chooses it.
    pub interface: Option<String>,
}

/// Sizes that a route has accepted and rejected, as UDP payloads in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Fit {
    largest_taken: usize,
    /// The size that started a period of lost datagrams, while it lasts.
    refused: Option<usize>,
}

/// The meaning of a datagram that exceeds the MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
    /// No datagram of this size was ever accepted.
    NeverFitted,
    /// The MTU was lowered; this is the first datagram that does not fit.
    DropBegins,
    /// The MTU is still too low.
    DropGoesOn,
}

impl Fit {
    /// Records that the kernel accepted a datagram of this size.
    pub(super) fn on_taken(&mut self, size: usize) {
        self.largest_taken = self.largest_taken.max(size);
        // Smaller ones fit a lower MTU, too.
        self.refused = self.refused.filter(|&refused| size < refused);
    }

    /// Records that the kernel rejected a datagram of this size because of the MTU.
    pub(super) fn on_misfit(&mut self, size: usize) -> Misfit {
        if size > self.largest_taken {
            return Misfit::NeverFitted;
        }
        match self.refused.replace(self.refused.map_or(size, |refused| refused.min(size))) {
            None => Misfit::DropBegins,
            Some(_) => Misfit::DropGoesOn,
        }
    }
}

/// The route of each host of each destination, as an index from 0. Groups and broadcast addresses
/// share one, because the interface has one MTU. Each host of a list has its own, because the
/// routing table may use another interface for it.
pub(super) fn routes(config: &SendConfig) -> Vec<Vec<usize>> {
    let mut next = 1;
    let hosts = |destination: &ChannelAddress| match destination {
        ChannelAddress::Multicast(_) | ChannelAddress::Broadcast(_) => vec![0],
        ChannelAddress::Unicast(hosts) => {
            let first = next;
            next += hosts.len();
            (first..next).collect()
        }
    };
    config.destinations.iter().map(hosts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_never_fitted_are_distinguished_from_those_that_fitted_before() {
        let mut fit = Fit::default();
        assert_eq!(fit.on_misfit(1), Misfit::NeverFitted);
        fit.on_taken(1000);
        assert_eq!(fit.on_misfit(1001), Misfit::NeverFitted);
        assert_eq!(fit.on_misfit(1000), Misfit::DropBegins);
        assert_eq!(fit.on_misfit(1000), Misfit::DropGoesOn);
    }

    #[test]
    fn a_drop_lasts_until_a_datagram_of_the_refused_size_is_taken() {
        let mut fit = Fit::default();
        fit.on_taken(1000);
        assert_eq!(fit.on_misfit(900), Misfit::DropBegins);
        assert_eq!(fit.on_misfit(1000), Misfit::DropGoesOn);
        fit.on_taken(899);
        assert_eq!(fit.on_misfit(1000), Misfit::DropGoesOn);
        fit.on_taken(900);
        assert_eq!(fit.on_misfit(1000), Misfit::DropBegins);
    }

    #[test]
    fn groups_share_a_route_and_each_host_of_a_list_has_its_own() {
        let group = |last| ChannelAddress::Multicast(([239, 255, 0, last], 9).into());
        let list = |last| ChannelAddress::Unicast(vec![([10, 0, 0, last], 9).into(); 2]);
        let config = SendConfig {
            destinations: vec![group(1), list(1), group(2), list(2)],
            ..SendConfig::unicast(Vec::new())
        };
        assert_eq!(routes(&config), [vec![0], vec![1, 2], vec![0], vec![3, 4]]);
    }
}
