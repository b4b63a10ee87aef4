//! Channels that are joined and left while a receive thread runs.

use fontana_proto::{ChannelId, Port};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fontana_net::{
    ChannelAddress, ReceiveConfig, ReceiveSocket, ReceiveThread, ReceiveThreadConfig, SendConfig,
    SendSocket,
};

use crate::support::{PATIENCE, SILENCE, loopback, random_group, sender_with};

/// A session's channels: three times the groups that the kernel lets one socket join.
const CHANNELS: u8 = 64;

/// A sender with as many channels, and a receiver of the first one.
struct Session {
    groups: Vec<IpAddr>,
    port: u16,
    sender: SendSocket,
    thread: ReceiveThread,
}

impl Session {
    fn new() -> Self {
        // Of 64 random groups, two are the same in one of 33 runs.
        let mut groups = BTreeSet::new();
        while groups.len() < usize::from(CHANNELS) {
            groups.insert(random_group());
        }
        let groups = Vec::from_iter(groups);
        let base = ReceiveConfig::multicast(groups[0], 0, &loopback());
        let base = ReceiveSocket::open_all(&base).unwrap();
        let port = base[0].port();
        let to = |&group| ChannelAddress::Multicast(SocketAddr::new(group, port));
        let config = SendConfig::new(&loopback(), groups.iter().map(to).collect());
        let sender = SendSocket::new(&config).unwrap();
        let thread = ReceiveThread::spawn(base, ReceiveThreadConfig::default()).unwrap();
        Self { groups, port, sender, thread }
    }

    fn join(&self, channel: u8) {
        let group = self.groups[usize::from(channel)];
        let config = ReceiveConfig::multicast(group, self.port, &loopback());
        self.thread.channels().join(channel, &config).unwrap();
    }

    /// Sends each channel's number to it, twice.
    fn send_to_all(&mut self) {
        for channel in 0..CHANNELS {
            self.sender.send_batch(usize::from(channel), &[channel; 2], 1).unwrap();
        }
    }

    /// Counts the datagrams of each channel until there are `count`, and checks their channels.
    fn heard(&self, count: usize) -> BTreeMap<u8, usize> {
        let mut heard = BTreeMap::new();
        while heard.values().sum::<usize>() < count {
            let batch = self.thread.batches().recv_timeout(PATIENCE).unwrap();
            for (datagram, payload) in batch.iter() {
                let Port::Channel(ChannelId(channel)) = datagram.port else { continue };
                assert_eq!(payload, [channel]);
                *heard.entry(channel).or_default() += 1;
            }
        }
        heard
    }
}

#[test]
fn sixty_four_channels_are_distinguished_and_only_joined_ones_are_received() {
    let mut session = Session::new();
    session.send_to_all();
    assert_eq!(session.heard(2), BTreeMap::from([(0, 2)]));
    (1..CHANNELS).for_each(|channel| session.join(channel));
    session.send_to_all();
    let every = (0..CHANNELS).map(|channel| (channel, 2)).collect();
    assert_eq!(session.heard(2 * usize::from(CHANNELS)), every);
    // A repeated join has no effect.
    session.join(63);
    (0..63).for_each(|channel| session.thread.channels().leave(channel));
    session.thread.channels().leave(0);
    wait_for_closed_sockets();
    session.send_to_all();
    assert_eq!(session.heard(2), BTreeMap::from([(63, 2)]));
    session.join(0);
    session.send_to_all();
    assert_eq!(session.heard(4), BTreeMap::from([(0, 2), (63, 2)]));
    assert!(session.thread.batches().recv_timeout(SILENCE).is_err());
}

/// Waits until the receive thread has processed the changes.
fn wait_for_closed_sockets() {
    std::thread::sleep(SILENCE);
}

#[test]
fn joins_and_leaves_of_other_channels_lose_nothing_of_one_that_is_received() {
    let mut session = Session::new();
    let (group, port) = (session.groups[0], session.port);
    let sending = std::thread::spawn(move || {
        let mut sender = sender_with(group, port, |c| c.offload = false);
        // Slow enough for a receiver that shares its processor, fast enough that many are in flight
        // at each join.
        for number in 0..4000_u32 {
            sender.send_batch(0, &number.to_be_bytes(), 4).unwrap();
            if number % 10 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut next = 0_u32;
    for channel in (1..CHANNELS).cycle() {
        if next == 4000 {
            break;
        }
        session.thread.channels().leave(channel);
        session.join(channel % (CHANNELS - 1) + 1);
        let batch = session.thread.batches().recv_timeout(PATIENCE).unwrap();
        for (_, payload) in batch.iter().filter(|(datagram, _)| datagram.port == Port::BASE) {
            assert_eq!(payload, next.to_be_bytes());
            next += 1;
        }
    }
    sending.join().unwrap();
    session.send_to_all();
    session.heard(2);
    let loss = session.thread.stop().unwrap();
    assert_eq!((loss.kernel_drops, loss.local_drops), (0, 0));
}

/// One more than the kernel lets a socket join a group from, and another source.
#[test]
#[cfg(target_os = "linux")]
fn more_sources_than_one_socket_takes_are_received_once_each_and_others_are_not() {
    let most = crate::support::setting("net.ipv4.igmp_max_msf");
    let group = random_group();
    let source = |number: usize| IpAddr::from([127, 7, (number / 256) as u8, (number % 256) as u8]);
    let mut config = ReceiveConfig::multicast(group, 0, &loopback());
    for (sources, sockets) in [(most, 1), (most + 1, 2)] {
        config.sources = (1..=sources).map(source).collect();
        let base = ReceiveSocket::open_all(&config).unwrap();
        assert_eq!(base.len(), sockets);
        let port = base[0].port();
        assert!(base.iter().all(|socket| socket.port() == port));
        let thread = ReceiveThread::spawn(base, ReceiveThreadConfig::default()).unwrap();
        for number in 1..=sources + 1 {
            let mut sender = sender_with(group, port, |c| c.source = Some(source(number)));
            sender.send_batch(0, b"x", 1).unwrap();
        }
        let mut heard = Vec::new();
        while let Ok(batch) = thread.batches().recv_timeout(SILENCE) {
            heard.extend(batch.iter().map(|(datagram, _)| datagram.from.ip()));
        }
        heard.sort_unstable();
        assert_eq!(heard, config.sources);
    }
}
