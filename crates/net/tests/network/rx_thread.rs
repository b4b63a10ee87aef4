//! The receive thread with fast, slow and stalled consumers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fontana_net::{ReceiveThread, ReceiveThreadConfig, ReceivedBatch};

use crate::support::{PATIENCE, SILENCE, receiver, sender_to, sender_with};

/// The smallest memory: two batches of 128 KiB.
const SMALL: ReceiveThreadConfig = ReceiveThreadConfig { batches: 2, batch_size: 0 };

fn numbers(batch: &ReceivedBatch) -> Vec<u32> {
    batch.iter().map(|(_, payload)| u32::from_be_bytes(payload[..4].try_into().unwrap())).collect()
}

#[test]
fn every_datagram_reaches_a_consumer_that_keeps_up_and_the_memory_is_reused() {
    let (group, socket) = receiver();
    let mut sender = sender_to(group, socket.port());
    let thread = ReceiveThread::spawn(vec![socket], SMALL).unwrap();
    // Many times the memory of the thread, in steps that fit it.
    let mut next = 0_u32;
    for _ in 0..100 {
        let step: Vec<u8> =
            (next..next + 40).flat_map(|n| [n.to_be_bytes(); 256].into_iter().flatten()).collect();
        sender.send_batch(0, &step, 1024).unwrap();
        let end = next + 40;
        while next < end {
            let batch = thread.batches().recv_timeout(PATIENCE).unwrap();
            for number in numbers(&batch) {
                assert_eq!(number, next);
                next += 1;
            }
        }
    }
    let loss = thread.stop().unwrap();
    assert_eq!((loss.kernel_drops, loss.local_drops, loss.foreign), (0, 0, 0));
}

#[test]
fn a_stalled_consumer_misses_datagrams_and_learns_how_many() {
    let (group, socket) = receiver();
    let mut sender = sender_with(group, socket.port(), |c| c.offload = false);
    let thread = ReceiveThread::spawn(vec![socket], SMALL).unwrap();
    // The consumer holds one batch and takes no other.
    sender.send_batch(0, &0_u32.to_be_bytes(), 4).unwrap();
    let held = thread.batches().recv_timeout(PATIENCE).unwrap();
    assert_eq!(numbers(&held), [0]);

    // Paced, so that the thread drops the datagrams, and not the kernel.
    let sent = 2000_u32;
    for number in 1..=sent {
        sender.send_batch(0, &[number.to_be_bytes(); 250].concat(), 1000).unwrap();
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    std::thread::sleep(SILENCE);
    drop(held);

    // The received datagrams are the first ones, without a gap; then those after the drops.
    let mut received = 0_u64;
    let mut last = 0;
    sender.send_batch(0, &[(sent + 1).to_be_bytes(); 250].concat(), 1000).unwrap();
    let mut loss = Default::default();
    while last <= sent {
        let batch = thread.batches().recv_timeout(PATIENCE).unwrap();
        for number in numbers(&batch) {
            assert!(number == last + 1 || number == sent + 1, "{number} after {last}");
            last = number;
            received += 1;
        }
        loss = batch.loss();
    }
    assert!(loss.local_drops > 0);
    assert_eq!(received + loss.local_drops + loss.kernel_drops, u64::from(sent) + 1);
    assert_eq!(thread.stop().unwrap(), loss);
}

#[test]
fn slow_traffic_uses_the_memory_as_well_as_fast_traffic() {
    let (group, socket) = receiver();
    let mut sender = sender_to(group, socket.port());
    let thread = ReceiveThread::spawn(vec![socket], SMALL).unwrap();
    // No batch is taken. Single datagrams, far apart: with one batch each, only two would fit.
    let sent = 50_u32;
    for number in 0..sent {
        sender.send_batch(0, &number.to_be_bytes(), 4).unwrap();
        std::thread::sleep(Duration::from_millis(3));
    }
    let mut received = Vec::new();
    while received.len() < sent as usize {
        received.extend(numbers(&thread.batches().recv_timeout(PATIENCE).unwrap()));
    }
    assert_eq!(received, (0..sent).collect::<Vec<_>>());
    assert_eq!(thread.stop().unwrap().local_drops, 0);
}

#[test]
fn a_consumer_that_keeps_up_uses_the_same_memory_again() {
    let (group, socket) = receiver();
    let mut sender = sender_to(group, socket.port());
    let config = ReceiveThreadConfig { batches: 16, batch_size: 0 };
    let thread = ReceiveThread::spawn(vec![socket], config).unwrap();
    let mut slabs = BTreeSet::new();
    for number in 0..50_u32 {
        sender.send_batch(0, &number.to_be_bytes(), 4).unwrap();
        let batch = thread.batches().recv_timeout(PATIENCE).unwrap();
        assert_eq!(numbers(&batch), [number]);
        slabs.insert(batch.as_datagrams().slab.as_ptr());
    }
    // One at the consumer, and one at the thread.
    assert!(slabs.len() <= 2, "{} batches", slabs.len());
}

#[test]
fn a_consumer_is_woken_once_a_millisecond() {
    let (group, socket) = receiver();
    let mut sender = sender_to(group, socket.port());
    let thread = ReceiveThread::spawn(vec![socket], ReceiveThreadConfig::default()).unwrap();
    let sent = 2000_u32;
    let sending = std::thread::spawn(move || {
        for number in 0..sent {
            sender.send_batch(0, &number.to_be_bytes(), 4).unwrap();
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    let started = Instant::now();
    let (mut received, mut batches) = (0, 0);
    while received < sent as usize {
        received += numbers(&thread.batches().recv_timeout(PATIENCE).unwrap()).len();
        batches += 1;
    }
    let elapsed = started.elapsed();
    assert!(batches <= elapsed.as_millis() + 2, "{batches} batches in {elapsed:?}");
    sending.join().unwrap();
}

#[test]
fn the_thread_stops_whether_silent_or_flooded() {
    for flooded in [false, true] {
        let (group, socket) = receiver();
        let mut sender = sender_to(group, socket.port());
        let thread = ReceiveThread::spawn(vec![socket], SMALL).unwrap();
        let flood = std::thread::spawn(move || {
            let until = Instant::now() + Duration::from_millis(300);
            while flooded && Instant::now() < until {
                sender.send_batch(0, &[0; 14_000], 1400).unwrap();
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        let started = Instant::now();
        thread.stop().unwrap();
        // The limit is 200 ms; a thread that does not stop would exceed any limit.
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
        flood.join().unwrap();
    }
}

#[test]
fn a_batch_may_outlive_the_thread() {
    let (group, socket) = receiver();
    let mut sender = sender_to(group, socket.port());
    let thread = ReceiveThread::spawn(vec![socket], SMALL).unwrap();
    sender.send_batch(0, &7_u32.to_be_bytes(), 4).unwrap();
    let batch = thread.batches().recv_timeout(PATIENCE).unwrap();
    drop(thread);
    assert_eq!(numbers(&batch), [7]);
}

#[test]
fn the_memory_of_a_thread_is_fixed_by_its_configuration() {
    assert!(ReceiveThreadConfig::default().memory() < 12 << 20);
    assert!(SMALL.memory() < 1 << 20);
    // Fewer than two batches count as two.
    let none = ReceiveThreadConfig { batches: 0, batch_size: 0 };
    assert_eq!(none.memory(), SMALL.memory());
}
