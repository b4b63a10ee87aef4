//! A network of hosts that are network namespaces of this process.
//!
//! ```text
//! sender ─── switch ─── relay ─── receiver
//!               └────── relay ─── receiver
//! ```
//!
//! The switch and the relays have a namespace too. The switch forwards a group only to hosts that
//! have joined it (IGMP snooping, RFC 4541), from the membership report until the leave: behind
//! each of its ports is one host. A relay applies the link to a receiver. Frames towards the switch
//! pass without delay or loss.

use super::HostsError;
use crate::relay::{FrameLink, Relay};
use fontana_net::{Interface, Interfaces, Namespace};
use fontana_proto::SplitMix64;
use fontana_sim::LinkConfig;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

/// A sender, receivers behind a relay each, and the switch between them.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) sender: NetworkHost,
    pub(super) receivers: Vec<NetworkHost>,
    /// One for each receiver, in their order. It must run, or no frame passes.
    pub(super) relays: Vec<Relay>,
    pub(super) switch: Switch,
}

/// A host with one interface.
#[derive(Debug)]
pub(super) struct NetworkHost {
    pub(super) namespace: Namespace,
    pub(super) interface: Interface,
}

/// The switch between the hosts.
#[derive(Debug)]
pub(super) struct Switch {
    /// The namespace is removed when this is dropped.
    _namespace: Namespace,
    asks_since: Instant,
}

/// Commands that create the switch. A bridge of Linux floods all groups until it has been the
/// querier for a query response interval (RFC 3376, section 8.3), which it reads when it becomes
/// the querier. The interval is in hundredths of a second: memberships arrive within 200 ms.
const SWITCH: &str = "link add switch type bridge mcast_snooping 1 mcast_igmp_version 3 \
                      mcast_query_response_interval 20\n\
                      link set switch type bridge mcast_querier 1\n\
                      link set switch up\n";
/// Time until the switch no longer floods: twice the interval, for a loaded host.
const SETTLED: Duration = Duration::from_millis(400);

/// Name of a host's interface.
const INTERFACE: &str = "eth0";

impl Network {
    /// Creates a network with a receiver behind each of these links. Takes some milliseconds for
    /// each.
    pub(super) fn new(lines: Vec<FrameLink>) -> Result<Self, HostsError> {
        let middle = namespace()?;
        let sender = namespace()?;
        let receivers = lines.iter().map(|_| namespace()).collect::<Result<Vec<_>, _>>()?;
        let mut commands = format!("{SWITCH}{}", sender_port(&sender));
        for (number, host) in receivers.iter().enumerate() {
            commands.push_str(&relayed_port(number, host));
        }
        middle.ip(&commands)?;
        let asks_since = Instant::now();
        let relays = middle.within(|| {
            let interfaces = Interfaces::list().map_err(HostsError::Interfaces)?;
            let open = |(number, line)| {
                let [near, far] = ends(number);
                let between = [named(&interfaces, &near)?, named(&interfaces, &far)?];
                Ok(Relay::open(between, [line, undisturbed()])?)
            };
            lines.into_iter().enumerate().map(open).collect::<Result<_, HostsError>>()
        })??;
        let host = |(number, namespace)| NetworkHost::new(number, namespace);
        Ok(Self {
            sender: NetworkHost::new(0, sender)?,
            receivers: (1..).zip(receivers).map(host).collect::<Result<_, _>>()?,
            relays,
            switch: Switch { _namespace: middle, asks_since },
        })
    }
}

impl Switch {
    /// Waits until it forwards groups only to hosts that have joined them.
    pub(super) fn settle(&self) {
        thread::sleep(SETTLED.saturating_sub(self.asks_since.elapsed()));
    }
}

impl NetworkHost {
    /// The `number`th host of the network. Its interface must be connected.
    fn new(number: u32, namespace: Namespace) -> Result<Self, HostsError> {
        // In a private network (RFC 1918), whose own address is number 0.
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + number);
        namespace.ip(&format!("addr add {address}/8 dev {INTERFACE}\nlink set {INTERFACE} up"))?;
        let interfaces = namespace.within(Interfaces::list)?.map_err(HostsError::Interfaces)?;
        let interface = named(&interfaces, INTERFACE)?.clone();
        Ok(Self { namespace, interface })
    }
}

/// A namespace that sends no frames of its own.
fn namespace() -> Result<Namespace, HostsError> {
    let namespace = Namespace::new()?;
    // Interfaces without IPv6 send no neighbor and router solicitations. If the system refuses
    // this, they send a few control frames.
    let silence = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let _ = namespace.within(silence)?;
    Ok(namespace)
}

/// Commands that connect the sender.
fn sender_port(host: &Namespace) -> String {
    let path = host.path();
    format!(
        "link add port type veth peer name {INTERFACE} netns {path}\n\
         link set port master switch up\n"
    )
}

/// Commands that connect a receiver, with two interfaces for a relay between it and its port. Each
/// port has one host, so the switch prunes a group as soon as the host leaves it.
fn relayed_port(number: usize, host: &Namespace) -> String {
    let (path, [near, far]) = (host.path(), ends(number));
    format!(
        "link add port{number} type veth peer name {near}\n\
         link set port{number} master switch up\n\
         link set port{number} type bridge_slave mcast_fast_leave on\n\
         link add {far} type veth peer name {INTERFACE} netns {path}\n\
         link set {near} up\n\
         link set {far} up\n"
    )
}

/// Interfaces of a relay: towards the switch and towards the receiver.
fn ends(number: usize) -> [String; 2] {
    ["near", "far"].map(|end| format!("{end}{number}"))
}

/// The link towards the switch, for membership reports: no delay, no losses.
fn undisturbed() -> FrameLink {
    FrameLink::new(LinkConfig::default(), SplitMix64::new(0, 0))
}

fn named<'a>(interfaces: &'a Interfaces, name: &str) -> Result<&'a Interface, HostsError> {
    let found = interfaces.iter().find(|interface| interface.name == name);
    found.ok_or_else(|| HostsError::Missing { interface: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::{self, group};
    use fontana_net::{
        Batch, ChannelAddress, ReceiveConfig, ReceiveSocket, SendConfig, SendSocket,
    };
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_host_gets_the_groups_that_it_has_joined_and_no_others() {
        const PACKETS: usize = 50;
        if !hosts::are_possible() {
            return;
        }
        let line = || FrameLink::new(LinkConfig::default(), SplitMix64::new(1, 1));
        let network = Network::new(vec![line(), line()]).expect("a network");
        let Network { sender, receivers, relays, switch } = network;
        let listen = |(channel, host): (u8, &NetworkHost)| {
            let config = ReceiveConfig::multicast(group(channel), 7701, &host.interface);
            host.namespace.within(|| ReceiveSocket::open(&config)).expect("inside").expect("joined")
        };
        let to = |channel| ChannelAddress::Multicast((group(channel), 7701).into());
        let config = SendConfig::new(&sender.interface, (0..3).map(to).collect());
        let sending = sender.namespace.within(|| SendSocket::new(&config));
        let mut sending = sending.expect("inside").expect("a socket");
        let over = AtomicBool::new(false);
        let offered: Vec<_> = thread::scope(|scope| {
            let relay = |mut relay: Relay| {
                let over = &over;
                scope.spawn(move || {
                    relay.run(|| over.load(Ordering::Relaxed)).expect("a relay");
                    relay.stats().map(|stats| stats.frames.link.offered)
                })
            };
            let relaying: Vec<_> = relays.into_iter().map(relay).collect();
            let sockets: Vec<_> = (0..).zip(&receivers).map(listen).collect();
            switch.settle();
            for number in 0..PACKETS as u8 {
                (0..3).for_each(|channel| {
                    sending.send_batch(channel, &[number], 1).expect("sent");
                });
            }
            for mut socket in sockets {
                let (mut batch, mut came) = (Batch::default(), Vec::new());
                while came.len() < PACKETS {
                    socket.recv_batch(Duration::from_secs(10), &mut batch).expect("a batch");
                    assert!(!batch.is_empty(), "{came:?}");
                    came.extend(batch.iter().map(|(_, payload)| payload[0]));
                }
                assert!(came.into_iter().eq(0..PACKETS as u8), "in order, each once");
            }
            over.store(true, Ordering::Relaxed);
            relaying.into_iter().map(|relay| relay.join().expect("no panic")).collect()
        });
        // There: what was joined. Back: memberships, which are not for the link.
        assert_eq!(offered, [[PACKETS as u64, 0]; 2]);
    }
}
