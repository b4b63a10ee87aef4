//! Joining and leaving while running, and the kernel's limits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fontana_net::{
    IpVersion, MembershipError, ReceiveConfig, ReceiveSocket, Reception, SendConfig, SendSocket,
};

use crate::support::{hears_nothing, loopback, payloads, random_group, receiver, sender_to};

fn channels() -> ReceiveSocket {
    let reception = Reception::Channels { version: IpVersion::V4, interface: loopback() };
    ReceiveSocket::open(&ReceiveConfig {
        reception,
        port: 0,
        sources: Vec::new(),
        receive_buffer: 1 << 20,
    })
    .unwrap()
}

/// 239.254.x.y: groups that are joined but never sent to.
fn silent_group(number: usize) -> IpAddr {
    Ipv4Addr::new(239, 254, (number / 256) as u8, (number % 256) as u8).into()
}

fn setting(name: &str) -> usize {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

#[test]
fn a_left_group_is_not_heard_and_a_joined_one_is_heard_again() {
    let (group, mut receiver) = receiver();
    let mut sender = sender_to(group, receiver.port());

    receiver.membership().unwrap().leave(group, None).unwrap();
    sender.send_batch(0, b"while away", 10).unwrap();
    hears_nothing(&mut receiver);

    receiver.membership().unwrap().join(group, None).unwrap();
    sender.send_batch(0, b"back", 4).unwrap();
    assert_eq!(payloads(&mut receiver, 1), [b"back"]);

    receiver.membership().unwrap().rejoin().unwrap();
    sender.send_batch(0, b"still here", 10).unwrap();
    assert_eq!(payloads(&mut receiver, 1), [b"still here"]);
}

#[test]
fn joining_twice_and_leaving_what_is_not_joined_change_nothing() {
    let (group, mut receiver) = receiver();
    let other_handle = receiver.membership().unwrap().try_clone().unwrap();
    other_handle.join(group, None).unwrap();
    other_handle.leave(group, Some([127, 0, 0, 9].into())).unwrap();
    sender_to(group, receiver.port()).send_batch(0, b"x", 1).unwrap();
    assert_eq!(payloads(&mut receiver, 1), [b"x"]);
    // One leave is enough however often it was joined.
    other_handle.leave(group, None).unwrap();
    other_handle.leave(group, None).unwrap();
    sender_to(group, receiver.port()).send_batch(0, b"x", 1).unwrap();
    hears_nothing(&mut receiver);
}

#[test]
fn a_group_is_joined_from_anyone_or_from_named_sources_but_not_both() {
    let source = Some(IpAddr::from([127, 0, 0, 2]));
    let receiver = channels();
    let membership = receiver.membership().unwrap();
    let (any, named) = (random_group(), silent_group(0));
    membership.join(any, None).unwrap();
    membership.join(named, source).unwrap();
    assert!(matches!(membership.join(any, source), Err(MembershipError::AnyAndOne { .. })));
    assert!(matches!(membership.join(named, None), Err(MembershipError::AnyAndOne { .. })));
    // After the last source is left the other way is open.
    membership.leave(named, source).unwrap();
    membership.join(named, None).unwrap();
}

#[test]
fn joins_that_could_never_be_heard_are_refused() {
    let (group, receiver) = receiver();
    let membership = receiver.membership().unwrap();
    let join = |group: &str, source: Option<&str>| {
        membership.join(group.parse().unwrap(), source.map(|s| s.parse().unwrap())).unwrap_err()
    };
    assert!(matches!(join("239.253.0.1", None), MembershipError::BoundElsewhere { .. }));
    assert!(matches!(join("224.0.0.1", None), MembershipError::Group(_)));
    let group = group.to_string();
    assert!(matches!(join(&group, Some("::1")), MembershipError::MixedVersions { .. }));
    assert!(matches!(join(&group, Some("239.1.2.3")), MembershipError::NotASource(_)));
    assert!(matches!(join(&group, Some("0.0.0.0")), MembershipError::NotASource(_)));
}

#[test]
fn channels_are_heard_when_joined_and_unicast_to_their_port_is_not() {
    let mut receiver = channels();
    let port = receiver.port();
    let (first, second) = (random_group(), random_group());
    let to_both = |text: &[u8]| {
        sender_to(first, port).send_batch(0, text, 8).unwrap();
        sender_to(second, port).send_batch(0, text, 8).unwrap();
    };
    receiver.membership().unwrap().join(first, None).unwrap();
    to_both(b"one");
    assert_eq!(payloads(&mut receiver, 1), [b"one"]);
    receiver.membership().unwrap().join(second, None).unwrap();
    to_both(b"two");
    assert_eq!(payloads(&mut receiver, 2), [b"two", b"two"]);

    let unicast = vec![vec![SocketAddr::from(([127, 0, 0, 1], port))]];
    SendSocket::new(&SendConfig::unicast(unicast)).unwrap().send_batch(0, b"me", 2).unwrap();
    hears_nothing(&mut receiver);
    assert_eq!(receiver.foreign(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn the_last_allowed_group_is_joined_and_the_next_one_names_the_setting() {
    let receiver = channels();
    let membership = receiver.membership().unwrap();
    let limit = setting("net.ipv4.igmp_max_memberships");
    for number in 0..limit {
        membership.join(silent_group(number), None).unwrap();
    }
    let error = membership.join(silent_group(limit), None).unwrap_err();
    assert!(error.to_string().contains("sysctl -w net.ipv4.igmp_max_memberships="), "{error}");
    // A group that is left makes room for another.
    membership.leave(silent_group(0), None).unwrap();
    membership.join(silent_group(limit), None).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn the_last_allowed_source_is_joined_and_the_next_one_names_the_setting() {
    let limit = setting("net.ipv4.igmp_max_msf");
    let open = |sources: usize| {
        let mut config = ReceiveConfig::multicast(random_group(), 0, &loopback());
        config.sources =
            (0..sources).map(|n| [127, 7, (n / 256) as u8, (n % 256) as u8].into()).collect();
        ReceiveSocket::open(&config)
    };
    open(limit).unwrap();
    let error = open(limit + 1).unwrap_err();
    assert!(error.to_string().contains("sysctl -w net.ipv4.igmp_max_msf="), "{error}");
}
