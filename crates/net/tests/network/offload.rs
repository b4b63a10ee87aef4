//! GSO batches are sent and received as the datagrams they consist of.

use std::net::Ipv6Addr;

use fontana_net::{
    Batch, ChannelAddress, IpVersion, ReceiveConfig, ReceiveSocket, SendConfig, SendError,
    SendSocket, Sent,
};

use crate::support::{loopback, payloads, receiver, sender_to, sender_with};

/// `size` bytes, such that all datagrams differ.
fn contents(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i ^ (i >> 8).wrapping_mul(31)) as u8).collect()
}

#[test]
fn a_gso_batch_arrives_as_its_segments_with_and_without_offload() {
    for offload in [true, false] {
        // From one datagram to several GSO batches, with and without a short last datagram.
        for (size, segment_size) in [
            (1, 1400),
            (1399, 1400),
            (1400, 1400),
            (1401, 1400),
            (64 * 9, 9),
            (64 * 9 + 1, 9),
            (200_000, 1400),
            (65_507 * 2 + 1, 65_507),
            (50 * 1400, 1400),
        ] {
            let (group, mut receiver) = receiver();
            let mut sender = sender_with(group, receiver.port(), |c| c.offload = offload);
            let contents = contents(size);
            let segments: Vec<Vec<u8>> =
                contents.chunks(segment_size).map(<[u8]>::to_vec).collect();
            let sent = sender.send_batch(0, &contents, segment_size).unwrap();
            assert_eq!(
                sent,
                Sent { datagrams: segments.len() as u64, payload_bytes: size as u64, lost: 0 }
            );
            assert_eq!(payloads(&mut receiver, segments.len()), segments, "{size}/{segment_size}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_train_sent_in_one_piece_is_received_in_one_piece() {
    let (group, mut receiver) = receiver();
    let mut sender = sender_to(group, receiver.port());
    sender.send_batch(0, &contents(40 * 1400), 1400).unwrap();
    assert!(sender.uses_offload(), "segmentation offload works on loopback since Linux 4.18");
    let mut batch = Batch::default();
    receiver.recv_batch(crate::support::PATIENCE, &mut batch).unwrap();
    assert_eq!((batch.len(), batch.receive_calls()), (40, 1));
}

#[test]
fn segment_sizes_may_change_from_call_to_call() {
    let (group, mut receiver) = receiver();
    let mut sender = sender_to(group, receiver.port());
    let contents = contents(5000);
    let mut expected = Vec::new();
    for segment_size in [1000, 7, 4999, 1000, 5000, 6000] {
        sender.send_batch(0, &contents, segment_size).unwrap();
        expected.extend(contents.chunks(segment_size).map(<[u8]>::to_vec));
    }
    assert_eq!(payloads(&mut receiver, expected.len()), expected);
}

#[test]
fn a_datagram_that_cannot_fit_is_refused_with_its_size_and_a_hint() {
    let (group, receiver) = receiver();
    for offload in [true, false] {
        let mut sender = sender_with(group, receiver.port(), |c| c.offload = offload);
        assert_eq!(sender.send_batch(0, &contents(65_507), 65_507).unwrap().datagrams, 1);
        let error = sender.send_batch(0, &contents(65_508), 65_508).unwrap_err();
        assert!(matches!(error, SendError::TooLarge { size: 65_508, .. }), "{error}");
        assert!(error.to_string().contains("smaller symbols"), "{error}");
    }
}

#[test]
fn ipv6_datagrams_are_refused_rather_than_fragmented() {
    let interface = loopback();
    if interface.address(IpVersion::V6).is_none() || interface.mtu != 65_536 {
        return fontana_testing::skip(
            "loopback has no IPv6 address or an unusual MTU: IPv6 fragments not tested",
        );
    }
    let config = ReceiveConfig::unicast((Ipv6Addr::LOCALHOST, 0).into());
    let mut receiver = ReceiveSocket::open(&config).unwrap();
    let to = ChannelAddress::Unicast(vec![(Ipv6Addr::LOCALHOST, receiver.port()).into()]);
    let mut sender = SendSocket::new(&SendConfig::new(&interface, vec![to])).unwrap();
    // The MTU less 40 bytes of IPv6 and 8 of UDP header.
    let fits = 65_536 - IpVersion::V6.header_size();
    sender.send_batch(0, &contents(fits), fits).unwrap();
    assert_eq!(payloads(&mut receiver, 1)[0].len(), fits);
    let error = sender.send_batch(0, &contents(fits + 1), fits + 1).unwrap_err();
    assert!(matches!(error, SendError::TooLarge { mtu: Some(65_536), .. }), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn datagrams_that_are_not_merged_share_receive_calls_and_none_is_truncated() {
    let (group, mut receiver) = receiver();
    let mut sender = sender_with(group, receiver.port(), |c| c.offload = false);
    let mut batch = Batch::default();
    let (mut expected, mut received, mut calls) = (Vec::new(), Vec::new(), 0);
    for round in 0..60_usize {
        // Mostly equal ones, with larger, smaller and empty ones in between.
        for index in 0..40_usize {
            let size = match (round * 40 + index) % 777 {
                500 => 8000,
                600 => 1,
                700 => 20_000,
                _ => 1000,
            };
            let mut payload = contents(size);
            payload[0] = round as u8;
            sender.send_batch(0, &payload, size).unwrap();
            expected.push(payload);
        }
        while received.len() < expected.len() {
            let count = receiver.recv_batch(crate::support::PATIENCE, &mut batch).unwrap();
            assert!(count > 0, "{} of {}", received.len(), expected.len());
            received.extend(batch.iter().map(|(_, payload)| payload.to_vec()));
            calls += batch.receive_calls();
        }
    }
    // Those that did not fit their slots come behind the others of their call.
    received.sort();
    expected.sort();
    assert!(received == expected, "bytes differ");
    assert!(calls < expected.len() / 2, "{calls} calls for {} datagrams", expected.len());
}
