//! Helpers of the tests: groups, receivers, and collecting datagrams.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use fontana_net::{
    Batch, ChannelAddress, Interface, Interfaces, ReceiveConfig, ReceiveSocket, SendConfig,
    SendSocket,
};

/// Time limit far above what loopback needs, so that only a missing datagram reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Long enough for a datagram to arrive on loopback.
pub(crate) const SILENCE: Duration = Duration::from_millis(100);

pub(crate) fn loopback() -> Interface {
    Interfaces::list().unwrap().loopback().expect("the loopback interface is up").clone()
}

/// A group that no other running test uses.
pub(crate) fn random_group() -> IpAddr {
    let [a, b, ..] = RandomState::new().hash_one(0_u8).to_ne_bytes();
    Ipv4Addr::new(239, 255, a, b).into()
}

/// A receiver of a new group, on a port that the system chooses.
pub(crate) fn receiver() -> (IpAddr, ReceiveSocket) {
    let group = random_group();
    let receiver = ReceiveSocket::open(&ReceiveConfig::multicast(group, 0, &loopback())).unwrap();
    (group, receiver)
}

pub(crate) fn sender_to(group: IpAddr, port: u16) -> SendSocket {
    sender_with(group, port, |_| ())
}

pub(crate) fn sender_with(
    group: IpAddr,
    port: u16,
    change: impl FnOnce(&mut SendConfig),
) -> SendSocket {
    let to = ChannelAddress::Multicast(SocketAddr::new(group, port));
    let mut config = SendConfig::new(&loopback(), vec![to]);
    change(&mut config);
    SendSocket::new(&config).unwrap()
}

/// The payloads of the next `count` datagrams.
pub(crate) fn payloads(receiver: &mut ReceiveSocket, count: usize) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let mut batch = Batch::default();
    let deadline = Instant::now() + PATIENCE;
    while payloads.len() < count && Instant::now() < deadline {
        receiver.recv_batch(SILENCE, &mut batch).unwrap();
        payloads.extend(batch.iter().map(|(_, payload)| payload.to_vec()));
    }
    assert_eq!(payloads.len(), count, "datagrams received");
    payloads
}

/// Asserts that nothing arrives.
pub(crate) fn hears_nothing(receiver: &mut ReceiveSocket) {
    let mut batch = Batch::default();
    assert_eq!(receiver.recv_batch(SILENCE, &mut batch).unwrap(), 0, "{batch:?}");
}

/// A setting of this host, from `/proc/sys`.
pub(crate) fn setting(name: &str) -> usize {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}
