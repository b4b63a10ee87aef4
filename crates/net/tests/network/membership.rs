//! Joining and leaving while receiving, and the kernel's limits.

use std::net::IpAddr;

use fontana_net::{MembershipError, ReceiveConfig, ReceiveSocket};

use crate::support::{
    hears_nothing, loopback, payloads, random_group, receiver, sender_to, setting,
};

#[test]
fn a_left_group_is_not_received_and_a_joined_one_is_received_again() {
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
    // One leave suffices after any number of joins.
    other_handle.leave(group, None).unwrap();
    other_handle.leave(group, None).unwrap();
    sender_to(group, receiver.port()).send_batch(0, b"x", 1).unwrap();
    hears_nothing(&mut receiver);
}

#[test]
fn a_group_is_joined_from_anyone_or_from_named_sources_but_not_both() {
    let source = Some(IpAddr::from([127, 0, 0, 2]));
    let (group, receiver) = receiver();
    let membership = receiver.membership().unwrap();
    assert!(matches!(membership.join(group, source), Err(MembershipError::AnyAndOne { .. })));
    // After leaving, the other kind of join works.
    membership.leave(group, None).unwrap();
    membership.join(group, source).unwrap();
    assert!(matches!(membership.join(group, None), Err(MembershipError::AnyAndOne { .. })));
}

#[test]
fn joins_that_cannot_be_received_are_refused() {
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
