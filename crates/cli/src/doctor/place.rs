//! Where probes are sent and received.

use super::probe::{GROUP, GROUP_V6};
use crate::address;
use fontana::net::{Interface, InterfaceSelector};
use fontana::{Addressing, Outcome};
use fontana_console::failure::Failure;
use std::net::SocketAddr;

/// A group of probes, on an interface.
pub(super) struct Place {
    pub(super) group: SocketAddr,
    pub(super) interface: Interface,
}

impl Place {
    /// The interface that a session would use, and the group of its IP version.
    pub(super) fn of(named: Option<&InterfaceSelector>) -> Result<Self, Failure> {
        let interfaces: Vec<_> = named.cloned().into_iter().collect();
        let of_session = address::group(None, &interfaces)?;
        let group = if of_session.is_ipv4() { GROUP } else { GROUP_V6 };
        let addressing = Addressing { interfaces, ..Addressing::to(group) };
        let interface = addressing.interface().map_err(|error| {
            let hint = "see which there are: ip addr; name one: -i NAME";
            Failure::new(Outcome::Usage, error.to_string(), hint)
        })?;
        Ok(Self { group, interface })
    }
}
