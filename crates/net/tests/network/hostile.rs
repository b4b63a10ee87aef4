//! Datagrams of any sender: the receiver counts or delivers them, and continues.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fontana_net::receiver::MAX_BATCH_MESSAGES;
use fontana_net::{Batch, ReceiveConfig, ReceiveSocket, Reception};

use crate::support::{PATIENCE, loopback, payloads, random_group, sender_to};

fn unicast_receiver(receive_buffer: usize) -> (SocketAddr, ReceiveSocket) {
    let mut config = ReceiveConfig::unicast(([127, 0, 0, 1], 0).into());
    config.receive_buffer = receive_buffer;
    let receiver = ReceiveSocket::open(&config).unwrap();
    (([127, 0, 0, 1], receiver.port()).into(), receiver)
}

fn attacker() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

#[test]
fn datagrams_of_every_extreme_size_are_delivered_one_by_one() {
    let (to, mut receiver) = unicast_receiver(8 << 20);
    let attacker = attacker();
    let sizes = [0, 1, 0, 0, 65_507, 1400, 65_507, 0, 65_506, 2];
    for size in sizes {
        assert_eq!(attacker.send_to(&vec![size as u8; size], to).unwrap(), size);
    }
    let received = payloads(&mut receiver, sizes.len());
    for (payload, size) in received.iter().zip(sizes) {
        assert_eq!(payload.len(), size);
        assert!(payload.iter().all(|&byte| byte == size as u8));
    }
}

#[test]
fn a_flood_of_empty_datagrams_fills_a_batch_and_no_more() {
    let (to, mut receiver) = unicast_receiver(8 << 20);
    let attacker = attacker();
    // Each takes several hundred bytes of the kernel's receive buffer: these fit.
    for _ in 0..MAX_BATCH_MESSAGES + 1 {
        attacker.send_to(b"", to).unwrap();
    }
    let mut batch = Batch::default();
    assert_eq!(receiver.recv_batch(PATIENCE, &mut batch).unwrap(), MAX_BATCH_MESSAGES);
    assert!(batch.is_full());
    assert_eq!(receiver.recv_more(PATIENCE, &mut batch).unwrap(), 0);
    assert_eq!(receiver.recv_batch(PATIENCE, &mut batch).unwrap(), 1);
}

#[test]
fn a_flood_from_other_senders_does_not_block_a_receive_call() {
    let mut config = ReceiveConfig::unicast(([127, 0, 0, 1], 0).into());
    config.sources = vec![[127, 0, 0, 9].into()];
    let mut receiver = ReceiveSocket::open(&config).unwrap();
    let attacker = attacker();
    for _ in 0..MAX_BATCH_MESSAGES + 10 {
        attacker.send_to(b"x", ("127.0.0.1", receiver.port())).unwrap();
    }
    let mut batch = Batch::default();
    // It returns before its timeout, without datagrams: it has reached the limit of system calls.
    let started = Instant::now();
    assert_eq!(receiver.recv_batch(PATIENCE, &mut batch).unwrap(), 0);
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(receiver.foreign(), MAX_BATCH_MESSAGES as u64);
}

#[test]
#[cfg(target_os = "linux")]
fn what_the_kernel_drops_is_counted_exactly_for_single_datagrams() {
    let (to, mut receiver) = unicast_receiver(16_384);
    assert_eq!(receiver.drops(), 0);
    let attacker = attacker();
    for _ in 0..500 {
        attacker.send_to(&[7; 1000], to).unwrap();
    }
    let mut batch = Batch::with_size(1 << 20);
    let received = receiver.recv_batch(PATIENCE, &mut batch).unwrap() as u64;
    assert!(received > 0 && received < 500, "{received}");
    assert_eq!(receiver.drops(), 500 - received);
    // It does not decrease, and does not change while nothing is dropped.
    assert_eq!(receiver.drops(), 500 - received);
}

#[test]
#[cfg(target_os = "linux")]
fn a_dropped_train_counts_once_however_many_datagrams_it_had() {
    let mut config = ReceiveConfig::multicast(random_group(), 0, &loopback());
    config.receive_buffer = 200_000;
    let mut receiver = ReceiveSocket::open(&config).unwrap();
    let Reception::Group { group, .. } = config.reception else { unreachable!() };
    let mut sender = sender_to(group, receiver.port());
    for _ in 0..50 {
        sender.send_batch(0, &[7; 40 * 1400], 1400).unwrap();
    }
    let mut batch = Batch::with_size(4 << 20);
    receiver.recv_batch(PATIENCE, &mut batch).unwrap();
    assert!(batch.receive_calls() < 50 && batch.len() == batch.receive_calls() * 40, "{batch:?}");
    assert_eq!(receiver.drops(), 50 - batch.receive_calls() as u64);
}

/// True if this process has CAP_NET_ADMIN (bit 12), and with it SO_RCVBUFFORCE.
#[cfg(target_os = "linux")]
fn may_exceed_limits() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(capabilities.trim(), 16).unwrap() & (1 << 12) != 0
}

#[test]
#[cfg(target_os = "linux")]
fn a_receive_buffer_that_is_too_small_comes_with_the_command_that_mends_it() {
    // More than any host is configured to grant without privilege.
    let asked = 1 << 30;
    let (_, receiver) = unicast_receiver(asked);
    match receiver.buffer_shortfall() {
        Some(shortfall) => {
            assert!(shortfall.got < asked && shortfall.got > 0);
            assert_eq!(shortfall.remedy, format!("sysctl -w net.core.rmem_max={asked}"));
        }
        None => assert!(may_exceed_limits(), "1 GiB of receive buffer granted to anyone"),
    }
    assert_eq!(unicast_receiver(65_536).1.buffer_shortfall(), None);
}

#[test]
fn a_receive_call_returns_after_its_timeout_when_nothing_comes() {
    let (_, mut receiver) = unicast_receiver(65_536);
    let mut batch = Batch::default();
    let started = Instant::now();
    assert_eq!(receiver.recv_batch(Duration::from_millis(30), &mut batch).unwrap(), 0);
    assert!(started.elapsed() >= Duration::from_millis(30));
    assert_eq!(receiver.recv_batch(Duration::ZERO, &mut batch).unwrap(), 0);
}
