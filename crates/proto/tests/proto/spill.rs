//! Symbols that arrive before the manifest, beyond the memory for them.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, receiver_config, sender, source,
};
use fontana_fec::FecScheme;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_proto::{Expectation, Instant};
use fontana_wire::{Packet, SecretKey, Toi};
use std::net::IpAddr;
use std::time::Duration;

const SYMBOL: u16 = 1000;
/// Source symbols of the content.
const SYMBOLS: u64 = 2_000;
/// Bytes of a chunk.
const CHUNK: u64 = 64 << 10;
/// Bytes that may be stored beside the memory.
const MOST: u64 = 4 << 20;

fn publisher() -> SecretKey {
    SecretKey::from_seed(&[8; 32])
}

fn content(seed: u64) -> Content {
    let raptorq = |blocks| RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 4 };
    let scheme = |blocks, _| FecScheme::RaptorQ(raptorq(blocks));
    let length = SYMBOLS as usize * usize::from(SYMBOL);
    Content::sized(SYMBOL, &[(length, 4)], seed, 1, &scheme)
}

/// What a sender sends in half a second: the packets of the manifest, and all others, the first of
/// which is a head.
fn sent(content: &Content) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let setup = Setup { rate: 5_000_000, ..Setup::default() };
    let mut driver = SenderDriver::new(sender(content, &setup, Some(&publisher())), content);
    let sent = (0..500).flat_map(|ms| driver.poll(Instant::ZERO + Duration::from_millis(ms)));
    sent.partition(|datagram| toi_of(datagram) == Some(Toi::MANIFEST))
}

fn toi_of(datagram: &[u8]) -> Option<Toi> {
    Packet::parse(datagram).unwrap().header.toi
}

/// A receiver with memory for twenty early symbols.
fn receiver(expectation: Expectation, max_spilled_bytes: u64) -> ReceiverDriver {
    let mut config = receiver_config();
    config.expectation = Expectation { tsi: config.expectation.tsi, ..expectation };
    config.limits.max_early_bytes = 20 * (usize::from(SYMBOL) + 128);
    config.limits.max_spilled_bytes = max_spilled_bytes;
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    receiver
}

fn by_key() -> Expectation {
    Expectation { publisher: Some(publisher().public_key()), ..Expectation::default() }
}

fn hear(receiver: &mut ReceiverDriver, from: IpAddr, datagrams: &[Vec<u8>]) -> u64 {
    for datagram in datagrams {
        receiver.hear(Instant::ZERO + Duration::from_millis(1), from, datagram);
    }
    let is_content = |datagram: &&Vec<u8>| toi_of(datagram).is_some_and(Toi::is_content);
    datagrams.iter().filter(is_content).count() as u64
}

/// Lets answers that take time arrive.
fn settle(receiver: &mut ReceiverDriver) {
    (2..50).for_each(|ms| receiver.timeout(Instant::ZERO + Duration::from_millis(ms)));
}

#[test]
fn a_receiver_that_hears_the_manifest_last_lacks_nothing() {
    let content = content(1);
    let (manifest, others) = sent(&content);
    let mut receiver = receiver(by_key(), MOST);
    let symbols = hear(&mut receiver, source(1), &others);
    let stats = receiver.endpoint.stats();
    assert!(symbols > SYMBOLS + 20);
    assert_eq!((stats.spilled, stats.without_room), (symbols - 20, 0));
    assert_eq!(receiver.endpoint.source_symbols(), 0, "the manifest is not known");
    hear(&mut receiver, source(1), &manifest);
    settle(&mut receiver);
    assert!(receiver.has(&content), "{:?}", receiver.endpoint.stats());
    let stats = receiver.endpoint.stats();
    assert_eq!((stats.spilled, stats.invalid, stats.duplicates), (symbols - 20, 0, 0));
    assert!(stats.fresh >= SYMBOLS);
    assert!((1..=MOST).contains(&receiver.runner.most_spilled));
    assert_eq!(receiver.runner.spilled_bytes(), 0, "its space is free");
}

#[test]
fn the_file_takes_no_more_than_its_limit_whatever_is_sent() {
    let content = content(1);
    let (manifest, others) = sent(&content);
    let mut receiver = receiver(by_key(), 3 * CHUNK + 1);
    hear(&mut receiver, source(1), &others[..1]);
    // In the name of the session, without end, and of objects that it does not have.
    let mut forged = others.clone();
    for datagram in forged.iter_mut().skip(1) {
        let last = datagram.len() - 1;
        datagram[last] ^= 1;
    }
    for _ in 0..3 {
        hear(&mut receiver, source(1), &forged);
    }
    let stats = receiver.endpoint.stats();
    assert!((1..=3 * CHUNK).contains(&receiver.runner.most_spilled), "{stats:?}");
    assert!(stats.without_room > 2 * stats.spilled, "{stats:?}");
    hear(&mut receiver, source(1), &manifest);
    settle(&mut receiver);
    assert_eq!(receiver.runner.spilled_bytes(), 0, "what was forged is read once");
    for _ in 0..3 {
        hear(&mut receiver, source(1), &others);
        settle(&mut receiver);
    }
    assert!(receiver.has(&content), "{:?}", receiver.endpoint.stats());
}

#[test]
fn nothing_is_stored_for_a_session_that_nothing_names() {
    let (_, others) = sent(&content(1));
    let stored = |expectation, from: usize| {
        let mut receiver = receiver(expectation, MOST);
        hear(&mut receiver, source(1), &others[from..]);
        (receiver.runner.most_spilled, receiver.endpoint.stats().spilled)
    };
    assert_ne!(stored(by_key(), 0), (0, 0));
    assert_eq!(stored(Expectation::default(), 0), (0, 0), "any host may send it");
    let other = SecretKey::from_seed(&[9; 32]).public_key();
    let of_another = Expectation { publisher: Some(other), ..Expectation::default() };
    assert_eq!(stored(of_another, 0), (0, 0), "another publisher's");
    let (_, others) = sent(&content(1));
    let headless: Vec<_> =
        others.into_iter().filter(|sent| toi_of(sent) != Some(Toi::HEAD)).collect();
    let mut receiver = receiver(by_key(), MOST);
    hear(&mut receiver, source(1), &headless);
    assert_eq!(receiver.runner.most_spilled, 0, "a session without a head");
}

#[test]
fn a_disk_without_room_costs_the_symbols_that_it_does_not_take() {
    let content = content(1);
    let (manifest, others) = sent(&content);
    let mut receiver = receiver(by_key(), MOST);
    receiver.runner.spill_ends = Some(5 * CHUNK);
    let symbols = hear(&mut receiver, source(1), &others);
    let stats = receiver.endpoint.stats();
    assert_eq!(stats.spilled + stats.without_room, symbols - 20);
    assert_eq!(receiver.runner.most_spilled.div_ceil(CHUNK), 5);
    hear(&mut receiver, source(1), &manifest);
    settle(&mut receiver);
    let after = receiver.endpoint.stats();
    assert_eq!(after.without_room, stats.without_room);
    assert_eq!(after.fresh, symbols - stats.without_room, "{after:?}");
    assert_eq!(receiver.runner.spilled_bytes(), 0);
    hear(&mut receiver, source(1), &others);
    assert!(receiver.has(&content), "{after:?}");
}

/// Two senders of one publisher: the content of the other one is not wanted once one is accepted.
#[test]
fn what_a_refused_session_has_brought_is_freed() {
    let (wanted, other) = (content(1), content(2));
    let (manifest, others) = sent(&wanted);
    let mut receiver = receiver(by_key(), 2 * MOST);
    hear(&mut receiver, source(2), &sent(&other).1);
    let of_other = receiver.endpoint.stats().spilled;
    assert!(of_other > 100);
    hear(&mut receiver, source(1), &others);
    assert!(receiver.endpoint.stats().spilled > of_other);
    hear(&mut receiver, source(1), &manifest);
    settle(&mut receiver);
    assert!(receiver.has(&wanted), "{:?}", receiver.endpoint.stats());
    assert_eq!(receiver.runner.spilled_bytes(), 0);
}
