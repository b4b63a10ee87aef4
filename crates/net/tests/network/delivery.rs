//! Datagrams arrive by every kind of destination.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};

use fontana_net::{
    Batch, ChannelAddress, IpVersion, ReceiveConfig, ReceiveSocket, SendConfig, SendSocket,
};
use fontana_proto::Ecn;
use socket2::{Domain, Socket, Type};

use crate::support::{
    PATIENCE, hears_nothing, loopback, payloads, receiver, sender_to, sender_with,
};

#[test]
fn an_any_source_receiver_gets_multicast_with_its_source_address() {
    let (group, mut receiver) = receiver();
    let mut sender = sender_to(group, receiver.port());
    sender.send_batch(0, b"hello", 5).unwrap();

    let mut batch = Batch::default();
    assert_eq!(receiver.recv_batch(PATIENCE, &mut batch).unwrap(), 1);
    let (datagram, payload) = batch.iter().next().unwrap();
    assert_eq!(payload, b"hello");
    assert_eq!(datagram.from, sender.local_address());
    assert_eq!(datagram.from.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert_eq!(datagram.ecn, Ecn::NotEct);
}

/// The values that a router writes into the two bits (RFC 3168, section 5).
#[test]
fn every_datagram_comes_with_its_own_congestion_mark() {
    let expected = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::CongestionExperienced];
    let (group, mut receiver) = receiver();
    let to = SocketAddr::new(group, receiver.port());
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
    for bits in 0..4 {
        // With a traffic class, which is not part of the mark.
        socket.set_tos_v4(46 << 2 | bits).unwrap();
        socket.send_to(b"x", &to.into()).unwrap();
    }
    let (mut batch, mut marks) = (Batch::default(), Vec::new());
    while marks.len() < expected.len() {
        assert!(receiver.recv_batch(PATIENCE, &mut batch).unwrap() > 0, "{marks:?}");
        marks.extend(batch.iter().map(|(datagram, _)| datagram.ecn));
    }
    assert_eq!(marks, expected);
    if loopback().address(IpVersion::V6).is_none() {
        return fontana_testing::skip("loopback has no IPv6 address: marks of IPv6 not tested");
    }
    let mut receiver =
        ReceiveSocket::open(&ReceiveConfig::unicast((Ipv6Addr::LOCALHOST, 0).into())).unwrap();
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
    socket.set_tclass_v6(0b11).unwrap();
    let to = SocketAddr::from((Ipv6Addr::LOCALHOST, receiver.port()));
    socket.send_to(b"x", &to.into()).unwrap();
    assert_eq!(receiver.recv_batch(PATIENCE, &mut batch).unwrap(), 1);
    assert_eq!(batch.iter().next().unwrap().0.ecn, Ecn::CongestionExperienced);
}

#[test]
fn a_source_specific_receiver_gets_datagrams_of_its_sources_only() {
    let group = crate::support::random_group();
    let mut config = ReceiveConfig::multicast(group, 0, &loopback());
    config.sources = vec![[127, 0, 0, 2].into(), [127, 0, 0, 3].into()];
    let mut receiver = ReceiveSocket::open(&config).unwrap();

    for last in 1..=3 {
        let mut sender =
            sender_with(group, receiver.port(), |c| c.source = Some([127, 0, 0, last].into()));
        sender.send_batch(0, &[last], 1).unwrap();
    }
    assert_eq!(payloads(&mut receiver, 2), [[2], [3]]);
    hears_nothing(&mut receiver);
}

#[test]
fn every_receiver_of_a_group_on_one_host_gets_every_datagram() {
    let (group, mut first) = receiver();
    let config = ReceiveConfig::multicast(group, first.port(), &loopback());
    let mut second = ReceiveSocket::open(&config).unwrap();
    sender_to(group, first.port()).send_batch(0, b"abcdef", 2).unwrap();
    for receiver in [&mut first, &mut second] {
        assert_eq!(payloads(receiver, 3), [b"ab", b"cd", b"ef"]);
    }
}

#[test]
fn a_receiver_does_not_get_another_group_of_the_same_port() {
    let (group, mut mine) = receiver();
    let other_group = crate::support::random_group();
    let config = ReceiveConfig::multicast(other_group, mine.port(), &loopback());
    let mut others = ReceiveSocket::open(&config).unwrap();

    sender_to(other_group, mine.port()).send_batch(0, b"not mine", 8).unwrap();
    sender_to(group, mine.port()).send_batch(0, b"mine", 4).unwrap();
    assert_eq!(payloads(&mut mine, 1), [b"mine"]);
    assert_eq!(payloads(&mut others, 1), [b"not mine"]);
    hears_nothing(&mut mine);
}

#[test]
fn one_sender_serves_several_channels() {
    let (first_group, mut first) = receiver();
    let (second_group, mut second) = receiver();
    let to = |group, receiver: &ReceiveSocket| {
        ChannelAddress::Multicast(SocketAddr::new(group, receiver.port()))
    };
    let destinations = vec![to(first_group, &first), to(second_group, &second)];
    let mut sender = SendSocket::new(&SendConfig::new(&loopback(), destinations)).unwrap();
    sender.send_batch(1, b"second", 6).unwrap();
    sender.send_batch(0, b"first", 5).unwrap();
    assert_eq!(payloads(&mut first, 1), [b"first"]);
    assert_eq!(payloads(&mut second, 1), [b"second"]);
}

#[test]
fn broadcast_reaches_every_receiver_on_the_host() {
    for address in [Ipv4Addr::new(127, 255, 255, 255), Ipv4Addr::BROADCAST] {
        broadcast_reaches_two_receivers(address);
    }
}

fn broadcast_reaches_two_receivers(address: Ipv4Addr) {
    let mut first = ReceiveSocket::open(&ReceiveConfig::broadcast(address, 0)).unwrap();
    let port = first.port();
    let mut second = ReceiveSocket::open(&ReceiveConfig::broadcast(address, port)).unwrap();
    let to = ChannelAddress::Broadcast(SocketAddrV4::new(address, port));
    let mut sender = SendSocket::new(&SendConfig::new(&loopback(), vec![to])).unwrap();
    let sent = sender.send_batch(0, b"abcde", 2).unwrap();
    assert_eq!((sent.datagrams, sent.lost), (3, 0));
    for receiver in [&mut first, &mut second] {
        assert_eq!(payloads(receiver, 3), [&b"ab"[..], b"cd", b"e"]);
    }
}

#[test]
fn fan_out_gives_every_host_its_copy() {
    let mut receivers: Vec<ReceiveSocket> = (1..=3)
        .map(|last| {
            let address = SocketAddr::from(([127, 0, 0, last], 0));
            ReceiveSocket::open(&ReceiveConfig::unicast(address)).unwrap()
        })
        .collect();
    let hosts = receivers
        .iter()
        .zip(1..)
        .map(|(receiver, last)| SocketAddr::from(([127, 0, 0, last], receiver.port())))
        .collect();
    let mut sender = SendSocket::new(&SendConfig::unicast(vec![hosts])).unwrap();
    let sent = sender.send_batch(0, b"abcd", 2).unwrap();
    assert_eq!((sent.datagrams, sent.payload_bytes), (6, 12));
    for receiver in &mut receivers {
        assert_eq!(payloads(receiver, 2), [b"ab", b"cd"]);
    }
}

#[test]
fn fan_out_survives_hosts_that_do_not_listen() {
    let mut receiver =
        ReceiveSocket::open(&ReceiveConfig::unicast(([127, 0, 0, 1], 0).into())).unwrap();
    // A port that was just closed.
    let closed = ReceiveSocket::open(&ReceiveConfig::unicast(([127, 0, 0, 1], 0).into()))
        .map(|socket| socket.port())
        .unwrap();
    let hosts = [closed, receiver.port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let mut sender = SendSocket::new(&SendConfig::unicast(vec![hosts.to_vec()])).unwrap();
    for round in 0..20_u8 {
        sender.send_batch(0, &[round], 1).unwrap();
    }
    assert_eq!(payloads(&mut receiver, 20), (0..20).map(|round| vec![round]).collect::<Vec<_>>());
}

#[test]
fn unicast_receiver_with_sources_counts_others_as_foreign() {
    let mut config = ReceiveConfig::unicast(([127, 0, 0, 1], 0).into());
    config.sources = vec![[127, 0, 0, 2].into()];
    let mut receiver = ReceiveSocket::open(&config).unwrap();
    let to = vec![vec![SocketAddr::from(([127, 0, 0, 1], receiver.port()))]];
    for last in [3, 2] {
        let mut config = SendConfig::unicast(to.clone());
        config.source = Some([127, 0, 0, last].into());
        SendSocket::new(&config).unwrap().send_batch(0, &[last, last, last], 1).unwrap();
    }
    assert_eq!(payloads(&mut receiver, 3), [[2], [2], [2]]);
    assert_eq!(receiver.foreign(), 3);
}

#[test]
fn a_taken_unicast_port_is_an_error_that_names_it() {
    let first = ReceiveSocket::open(&ReceiveConfig::unicast(([127, 0, 0, 1], 0).into())).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], first.port()));
    let error = ReceiveSocket::open(&ReceiveConfig::unicast(address)).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
