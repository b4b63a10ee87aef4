//! The interface of a sender that was removed and is back, or has another address.
//!
//! Packets are lost while the interface is gone. Its name is looked for after a loss, once a
//! second, and a socket for the interface with that name replaces the one for its old index and
//! address.

use super::config::SendConfig;
use super::{Bound, SendSocket, bind};
use crate::interface::{Interface, Interfaces};
use crate::mtu::IpVersion;
use crate::presence::{CHECK_EVERY, InterfaceChange};
use std::net::IpAddr;
use std::time::Instant;

/// What a socket was opened with, and what has become of its interface.
#[derive(Debug)]
pub(super) struct Attachment {
    config: SendConfig,
    is_gone: bool,
    /// A datagram was lost because of the link.
    is_doubtful: bool,
    looked_at: Option<Instant>,
    changes: u64,
    last: Option<InterfaceChange>,
}

/// What to do about an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// It is as before: the loss has another reason.
    Unchanged,
    Gone,
    /// It has another index or address.
    Changed(Interface),
}

/// Compares an interface with those of this host now. `source`: the address that packets are sent
/// from.
fn find(old: &Interface, source: IpAddr, now: &Interfaces) -> Finding {
    let by_index = now.iter().find(|interface| interface.index == old.index);
    let by_name = || now.iter().find(|interface| interface.name == old.name);
    match by_index.or_else(by_name) {
        // Without an address nothing can be sent: it is not set up yet.
        Some(found) if found.address(IpVersion::of(source)).is_none() => Finding::Gone,
        Some(found) if found.index == old.index && found.has(source) => Finding::Unchanged,
        Some(found) => Finding::Changed(found.clone()),
        None => Finding::Gone,
    }
}

impl Attachment {
    pub(super) fn new(config: &SendConfig) -> Self {
        Self {
            config: config.clone(),
            is_gone: false,
            is_doubtful: false,
            looked_at: None,
            changes: 0,
            last: None,
        }
    }

    pub(super) fn last_change(&self) -> Option<(u64, &InterfaceChange)> {
        self.last.as_ref().map(|change| (self.changes, change))
    }

    fn changed(&mut self, change: InterfaceChange) {
        self.changes += 1;
        self.last = Some(change);
    }

    /// The configuration with the interface as it is now. A source address that it no longer has is
    /// replaced by one that it has.
    fn renewed(&self, interface: Interface) -> SendConfig {
        let source = self.config.source.filter(|&source| interface.has(source));
        SendConfig { interface: Some(interface), source, ..self.config.clone() }
    }
}

impl SendSocket {
    /// Notes that a datagram was lost because of the link.
    pub(super) fn look_for_interface(&mut self) {
        self.attachment.is_doubtful = true;
    }

    /// Opens the socket again if its interface has another index or address. Called after each
    /// batch: it asks the system only after a loss, once a second.
    pub(super) fn reattach(&mut self) {
        let is_doubtful = std::mem::take(&mut self.attachment.is_doubtful);
        if !is_doubtful && !self.attachment.is_gone {
            return;
        }
        let Some(old) = self.attachment.config.interface.clone() else { return };
        let now = Instant::now();
        let is_early = |at: Instant| now.duration_since(at) < CHECK_EVERY;
        if self.attachment.looked_at.is_some_and(is_early) {
            return;
        }
        self.attachment.looked_at = Some(now);
        let Ok(interfaces) = Interfaces::list() else { return };
        let source = self.local_address.ip();
        let is_gone = match find(&old, source, &interfaces) {
            Finding::Unchanged => {
                if std::mem::take(&mut self.attachment.is_gone) {
                    let back = InterfaceChange::Back { interface: old.name.clone(), source: None };
                    self.attachment.changed(back);
                }
                false
            }
            Finding::Gone => true,
            // It vanished again, or its address is not usable yet.
            Finding::Changed(interface) => !self.renew(interface, source),
        };
        if is_gone && !std::mem::replace(&mut self.attachment.is_gone, true) {
            self.attachment.changed(InterfaceChange::Gone { interface: old.name });
        }
    }

    fn renew(&mut self, interface: Interface, old_source: IpAddr) -> bool {
        let config = self.attachment.renewed(interface);
        let Ok((Bound { socket, address }, _)) = bind(&config) else { return false };
        let Some(interface) = config.interface.clone() else { return false };
        self.socket = socket;
        self.segment_size_set = 0;
        self.local_address = address;
        for (destination, hosts) in config.destinations.iter().zip(&mut self.destinations) {
            let addresses = super::addresses(destination, interface.index);
            for (host, address) in hosts.iter_mut().zip(addresses) {
                host.address = address;
            }
        }
        self.interface = Some((interface.name.clone(), interface.mtu));
        let source = Some(address.ip()).filter(|&source| source != old_source);
        self.attachment.config = config;
        self.attachment.is_gone = false;
        self.attachment.changed(InterfaceChange::Back { interface: interface.name, source });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::InterfaceAddress;
    use crate::namespace::{Namespace, NamespaceError};
    use crate::sender::ChannelAddress;

    fn interface(index: u32, name: &str, addresses: &[&str]) -> Interface {
        let address = |text: &&str| InterfaceAddress {
            ip: text.parse().unwrap(),
            prefix_len: 24,
            broadcast: None,
        };
        Interface {
            name: name.to_owned(),
            index,
            addresses: addresses.iter().map(address).collect(),
            mtu: 1500,
            is_up: true,
            is_multicast: true,
            is_loopback: false,
        }
    }

    #[test]
    fn an_interface_is_found_again_by_its_index_and_then_by_its_name() {
        let old = interface(2, "eth0", &["10.0.0.1"]);
        let find = |now: Vec<Interface>| {
            super::find(&old, "10.0.0.1".parse().unwrap(), &Interfaces::from_vec(now))
        };
        assert_eq!(find(vec![old.clone()]), Finding::Unchanged);
        let renamed = interface(2, "lan0", &["10.0.0.1"]);
        assert_eq!(find(vec![renamed, interface(7, "eth0", &["10.0.0.9"])]), Finding::Unchanged);
        assert_eq!(find(vec![interface(3, "eth1", &["10.0.0.1"])]), Finding::Gone);
        for again in [interface(7, "eth0", &["10.0.0.1"]), interface(2, "eth0", &["10.0.0.5"])] {
            assert_eq!(find(vec![again.clone()]), Finding::Changed(again));
        }
        assert_eq!(find(vec![interface(7, "eth0", &["fe80::1"])]), Finding::Gone, "no address yet");
    }

    #[test]
    fn packets_are_lost_while_the_interface_is_gone_and_sent_when_it_is_back() {
        let network = match Namespace::silent() {
            Err(NamespaceError::NotPermitted) => {
                return fontana_testing::skip("network namespaces need root");
            }
            network => network.unwrap(),
        };
        let plug = |address: &str| {
            let up = "link set eth0 up\nlink set peer up\nroute add default dev eth0";
            let add = "link add eth0 type veth peer name peer";
            network.ip(&format!("{add}\naddr add {address}/24 dev eth0\n{up}")).unwrap();
        };
        plug("10.0.0.1");
        let open = || {
            let interfaces = Interfaces::list().unwrap();
            let eth0 = interfaces.iter().find(|interface| interface.name == "eth0").unwrap();
            let to = ChannelAddress::Multicast(([239, 255, 0, 1], 9).into());
            SendSocket::new(&SendConfig::new(eth0, vec![to])).unwrap()
        };
        let mut sender = network.within(open).unwrap();
        let mut send = || {
            // The next loss asks the system, whatever the time.
            sender.attachment.looked_at = None;
            let sent = network.within(|| sender.send_batch(0, &[7; 900], 300)).unwrap().unwrap();
            (sent.lost, sender.interface_change().map(|(number, change)| (number, change.clone())))
        };
        let interface = || "eth0".to_owned();
        assert_eq!(send(), (0, None));
        network.ip("link del eth0").unwrap();
        let gone = InterfaceChange::Gone { interface: interface() };
        assert_eq!(send(), (3, Some((1, gone.clone()))));
        assert_eq!(send(), (3, Some((1, gone))), "told once");
        plug("10.0.0.1");
        let (_, change) = send();
        let back = |source| InterfaceChange::Back { interface: interface(), source };
        assert_eq!(change, Some((2, back(None))));
        assert_eq!(send().0, 0);
        // Another address of the same interface.
        network.ip("addr del 10.0.0.1/24 dev eth0\naddr add 10.0.0.9/24 dev eth0").unwrap();
        let (lost, change) = send();
        assert_eq!(lost, 3);
        assert_eq!(change, Some((3, back(Some([10, 0, 0, 9].into())))));
        network.ip("route replace default dev eth0").unwrap();
        assert_eq!(send().0, 0);
        assert!(sender.uses_offload(), "the interface was the reason");
    }
}
