//! A network of hosts that are network namespaces of this process.
//!
//! ```text
//! sender ───────────┬── switch ─── emulator ─── receiver
//! sender ─ (emulator) ─┘      └────── emulator ─── receiver
//! ```
//!
//! The switch and the emulators have a namespace too. The switch forwards a group only to hosts
//! that have joined it (IGMP snooping, RFC 4541), from the membership report until the leave:
//! behind each of its ports is one host. An emulator applies the link to a receiver, or to the
//! first sender if receivers send to it. Frames towards the switch pass without delay or loss.

use super::HostsError;
use crate::emulator::{Emulator, FrameLink};
use fontana_net::{Interface, Interfaces, Namespace, Switch};
use fontana_proto::SplitMix64;
use fontana_sim::LinkConfig;
use std::net::{IpAddr, Ipv4Addr};

/// Senders, receivers behind an emulator each, and the switch between them.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) senders: Vec<NetworkHost>,
    pub(super) receivers: Vec<NetworkHost>,
    /// One for each receiver, in their order. It must run, or no frame passes.
    pub(super) emulators: Vec<Emulator>,
    /// That of the first sender, if there is a link to it.
    pub(super) emulator_back: Option<Emulator>,
    pub(super) switch: Switch,
}

/// A host with one interface.
#[derive(Debug)]
pub(super) struct NetworkHost {
    pub(super) namespace: Namespace,
    pub(super) interface: Interface,
    pub(super) address: IpAddr,
}

impl Network {
    /// Creates a network with so many senders, a link to the first of them if packets are sent to
    /// it, and a receiver behind each of these links. Takes some milliseconds for each.
    pub(super) fn new(
        senders: usize,
        back: Option<FrameLink>,
        lines: Vec<FrameLink>,
    ) -> Result<Self, HostsError> {
        let switch = Switch::new()?;
        let hosts = |count| (0..count).map(|_| Namespace::silent()).collect::<Result<Vec<_>, _>>();
        let (senders, receivers) = (hosts(senders)?, hosts(lines.len())?);
        let mut emulated: Vec<&Namespace> = receivers.iter().collect();
        for (number, sender) in senders.iter().enumerate() {
            if number == 0 && back.is_some() {
                emulated.push(sender);
            } else {
                switch.connect(&format!("from{number}"), sender)?;
            }
        }
        let mut commands = String::new();
        for (number, host) in emulated.into_iter().enumerate() {
            commands.push_str(&emulated_port(number, host));
        }
        let middle = switch.namespace();
        middle.ip(&commands)?;
        let has_emulator_back = back.is_some();
        let mut emulators: Vec<Emulator> = middle.within(|| {
            let interfaces = Interfaces::list().map_err(HostsError::Interfaces)?;
            let open = |(number, line)| {
                let [near, far] = ends(number);
                let between = [named(&interfaces, &near)?, named(&interfaces, &far)?];
                Ok(Emulator::open(between, [line, undisturbed()])?)
            };
            lines.into_iter().chain(back).enumerate().map(open).collect::<Result<_, HostsError>>()
        })??;
        let emulator_back = if has_emulator_back { emulators.pop() } else { None };
        let mut numbers = 0..;
        let mut hosts = |namespaces: Vec<Namespace>| {
            let hosts = numbers.by_ref().zip(namespaces);
            hosts.map(|(number, namespace)| NetworkHost::new(number, namespace)).collect()
        };
        let (senders, receivers): (Result<_, HostsError>, Result<_, _>) =
            (hosts(senders), hosts(receivers));
        Ok(Self { senders: senders?, receivers: receivers?, emulators, emulator_back, switch })
    }
}

impl NetworkHost {
    /// The `number`th host of the network. Its interface must be connected.
    fn new(number: u32, namespace: Namespace) -> Result<Self, HostsError> {
        // In a private network (RFC 1918), whose own address is number 0.
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + number);
        let name = Switch::HOST_INTERFACE;
        namespace.ip(&format!("addr add {address}/8 dev {name}\nlink set {name} up"))?;
        let interfaces = namespace.within(Interfaces::list)?.map_err(HostsError::Interfaces)?;
        let interface = named(&interfaces, name)?.clone();
        Ok(Self { namespace, interface, address: address.into() })
    }
}

/// Commands that connect a host, with two interfaces for an emulator between it and its port.
fn emulated_port(number: usize, host: &Namespace) -> String {
    let (path, [near, far]) = (host.path(), ends(number));
    let attach = Switch::attach(&format!("port{number}"));
    format!(
        "link add port{number} type veth peer name {near}\n\
         {attach}\
         link add {far} type veth peer name {interface} netns {path}\n\
         link set {near} up\n\
         link set {far} up\n",
        interface = Switch::HOST_INTERFACE,
    )
}

/// Interfaces of an emulator: towards the switch and towards the host.
fn ends(number: usize) -> [String; 2] {
    ["near", "far"].map(|end| format!("{end}{number}"))
}

/// The link towards the switch, for membership reports: no delay, no losses.
fn undisturbed() -> FrameLink {
    FrameLink::new(LinkConfig::default(), SplitMix64::new(0, 0))
}

/// The interface with this name.
pub(super) fn named<'a>(
    interfaces: &'a Interfaces,
    name: &str,
) -> Result<&'a Interface, HostsError> {
    let found = interfaces.iter().find(|interface| interface.name == name);
    found.ok_or_else(|| HostsError::Missing { interface: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts;
    use crate::hosts::endpoints::group;
    use crate::hosts::together::EndRun;
    use fontana_net::{
        Batch, ChannelAddress, ReceiveConfig, ReceiveSocket, SendConfig, SendSocket,
    };
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Waits until the switch has a membership of the group.
    fn wait_until_known(switch: &Switch, group: IpAddr) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let show = || Command::new("bridge").args(["mdb", "show"]).output();
        loop {
            let shown = switch.namespace().within(show).expect("inside").expect("bridge");
            let known = String::from_utf8_lossy(&shown.stdout);
            if known.contains(&format!(" grp {group} ")) {
                return;
            }
            assert!(Instant::now() < deadline, "{group} is not in {known}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_host_gets_the_groups_that_it_has_joined_and_no_others() {
        const PACKETS: usize = 50;
        if !hosts::are_possible() {
            return;
        }
        let line = || FrameLink::new(LinkConfig::default(), SplitMix64::new(1, 1));
        let network = Network::new(1, None, vec![line(), line()]).expect("a network");
        let Network { senders, receivers, emulators, switch, .. } = network;
        let sender = senders.first().expect("a sender");
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
            // A failed assertion ends the emulators, too.
            let _end = EndRun(&over);
            let emulator = |mut emulator: Emulator| {
                let over = &over;
                scope.spawn(move || {
                    emulator.run(|| over.load(Ordering::Relaxed)).expect("an emulator");
                    emulator.stats().map(|stats| stats.frames.link.offered)
                })
            };
            let emulating: Vec<_> = emulators.into_iter().map(emulator).collect();
            let sockets: Vec<_> = (0..).zip(&receivers).map(listen).collect();
            switch.settle();
            // A report reaches the switch through an emulator, which on a busy host takes a while.
            (0..2).for_each(|channel| wait_until_known(&switch, group(channel)));
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
            emulating.into_iter().map(|emulator| emulator.join().expect("no panic")).collect()
        });
        // There: what was joined. Back: memberships, which are not for the link.
        assert_eq!(offered, [[PACKETS as u64, 0]; 2]);
    }
}
