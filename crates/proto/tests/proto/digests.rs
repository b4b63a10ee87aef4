//! Signed digests of symbols: forged symbols at any rate cost a receiver little, and what an
//! attacker does to the lists costs nothing.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, T, TSI, digest_signer, receiver_config, sender,
    source,
};
use fontana_fec::{EncodingId, Esi, Sbn};
use fontana_proto::{Instant, SendMode, SplitMix64};
use fontana_wire::{
    DigestGroup, DigestList, GroupNumber, HeaderFields, InstanceId, Packet, SecretKey, Toi,
    emit_payload_id,
};
use std::time::Duration;

fn publisher() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

fn toi(datagram: &[u8]) -> Toi {
    Packet::parse(datagram).unwrap().header.toi.unwrap()
}

/// A symbol of random bytes for a block of the first object.
fn forged(blocks: u32, random: &mut SplitMix64) -> Vec<u8> {
    let mut datagram = Vec::new();
    HeaderFields { codepoint: 6, ..HeaderFields::new(TSI, Some(Toi(1))) }.emit(&mut datagram);
    let (sbn, esi) = (Sbn(random.below(blocks)), Esi((1 << 20) + random.below(1 << 20)));
    emit_payload_id(EncodingId::RAPTORQ, sbn, esi, &mut datagram);
    datagram.extend((0..T).map(|_| random.next_u64() as u8));
    datagram
}

/// A packet with a list.
fn list_packet(list: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    HeaderFields { codepoint: 0, ..HeaderFields::new(TSI, Some(Toi::DIGESTS)) }.emit(&mut datagram);
    emit_payload_id(EncodingId::NO_CODE, Sbn(0), Esi(0), &mut datagram);
    datagram.extend_from_slice(list);
    datagram
}

/// A sender that announces its symbols, and an attacker who knows the session.
struct World {
    content: Content,
    setup: Setup,
    seed: u64,
    loss: f64,
    /// Loss of lists alone, in addition.
    list_loss: f64,
}

struct Outcome {
    receiver: ReceiverDriver,
    /// Symbols of the content that arrived from the sender until the receiver was complete.
    honest: u32,
    lists: u32,
}

impl World {
    /// An object of `blocks` blocks of `k` symbols each.
    fn new(k: u32, blocks: u8, seed: u64) -> Self {
        let bytes = k as usize * usize::from(T) * usize::from(blocks);
        let content = Content::new(&[(bytes, blocks)], seed);
        let setup = Setup {
            seed,
            digests: true,
            control_symbol: 1_400,
            round_symbols: 2_048,
            ..Setup::default()
        };
        Self { content, setup, seed, loss: 0.0, list_loss: 0.0 }
    }

    /// Sends what `attack` returns before each symbol of the sender, for 60 s.
    fn run(&self, mut attack: impl FnMut(&mut SplitMix64, &[u8]) -> Vec<Vec<u8>>) -> Outcome {
        let sender = sender(&self.content, &self.setup, Some(&publisher()));
        let mut driver = SenderDriver::with_digests(sender, &self.content);
        let mut config = receiver_config();
        config.expectation.publisher = Some(publisher().public_key());
        let mut receiver = ReceiverDriver::new(config, self.loss, self.seed);
        let mut random = SplitMix64::new(self.seed, 5);
        let (mut honest, mut lists) = (0, 0);
        receiver.timeout(Instant::ZERO);
        for millis in 0..60_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for datagram in driver.poll(now) {
                let toi = toi(&datagram);
                if toi.is_content() {
                    for attack in attack(&mut random, &datagram) {
                        receiver.hear(now, source(1), &attack);
                    }
                }
                if toi == Toi::DIGESTS {
                    lists += 1;
                    if (random.next_u64() as f64) < self.list_loss * u64::MAX as f64 {
                        continue;
                    }
                }
                let before = receiver.endpoint.stats().session_packets;
                receiver.maybe_hear(now, source(1), &datagram);
                let counts = toi.is_content() && receiver.endpoint.stats().session_packets > before;
                honest += u32::from(counts);
            }
            receiver.timeout(now);
            if receiver.complete_at.is_some() {
                break;
            }
        }
        Outcome { receiver, honest, lists }
    }
}

impl Outcome {
    fn assert_complete(&self, world: &World) {
        let stats = self.receiver.endpoint.stats();
        assert!(self.receiver.complete_at.is_some(), "seed {}: {stats:?}", world.seed);
        assert!(self.receiver.has(&world.content), "a wrong byte was called complete");
    }

    fn unannounced(&self) -> u64 {
        self.receiver.endpoint.stats().unannounced
    }
}

/// Forged symbols at the rate of the sender and at ten times as many, from the first packet on or
/// from the middle of the transfer.
#[test]
fn forged_symbols_at_ten_times_the_rate_of_the_sender_cost_little() {
    for (k, blocks) in [(3_000, 1), (400, 10)] {
        let all = k * u32::from(blocks);
        for (rate, limit) in [(1, 1.2), (10, 1.6)] {
            for (begins, loss, seed) in [(0, 0.0, 1), (all / 2, 0.0, 2), (all / 2, 0.1, 3)] {
                let mut world = World::new(k, blocks, seed);
                world.loss = loss;
                let mut sent = 0;
                let outcome = world.run(|random, _| {
                    sent += 1;
                    let count = if sent >= begins { rate } else { 0 };
                    (0..count).map(|_| forged(blocks.into(), random)).collect()
                });
                outcome.assert_complete(&world);
                let cost = f64::from(outcome.honest) / f64::from(all);
                let stats = outcome.receiver.endpoint.stats();
                println!(
                    "{blocks} x {k}, rate {rate} from {begins} on, loss {loss}: {cost:.3}, {} \
                     dropped, {} corrupt",
                    stats.unannounced, stats.corrupt_blocks
                );
                assert!(cost <= limit, "{cost}");
                assert!(outcome.unannounced() > u64::from(rate * all / 4));
            }
        }
    }
}

/// Whatever is lost, no honest symbol is dropped while there is no attack.
#[test]
fn lost_lists_cost_nothing_without_an_attack() {
    for (loss, list_loss) in [(0.0, 0.0), (0.0, 0.3), (0.1, 0.0), (0.4, 0.0), (0.0, 0.9)] {
        for seed in 1..4 {
            let mut world = World::new(1_000, 4, seed);
            (world.loss, world.list_loss) = (loss, list_loss);
            let outcome = world.run(|_, _| Vec::new());
            outcome.assert_complete(&world);
            assert!(outcome.lists >= 2 * 4_000 / 96, "{}", outcome.lists);
            let dropped = outcome.unannounced();
            println!("loss {loss}, of lists {list_loss}, seed {seed}: {dropped} dropped");
            assert_eq!(dropped, 0, "loss {loss}, of lists {list_loss}, seed {seed}");
            // The slowest of four blocks.
            assert!(outcome.honest <= 4_400, "{}", outcome.honest);
        }
    }
}

/// A few forged symbols do not make a receiver drop what it would otherwise take.
#[test]
fn few_forged_symbols_do_not_turn_lost_lists_into_lost_symbols() {
    for seed in 1..4 {
        let mut world = World::new(1_000, 4, seed);
        (world.loss, world.list_loss) = (0.1, 0.3);
        let mut sent = 0;
        let outcome = world.run(|random, _| {
            sent += 1;
            (sent % 400 == 0).then(|| forged(4, random)).into_iter().collect()
        });
        outcome.assert_complete(&world);
        assert!(outcome.unannounced() < 10, "{}", outcome.unannounced());
        assert!(outcome.honest <= 4_200, "{}", outcome.honest);
    }
}

/// Lists of an attacker: with another key, or no lists. They prove nothing, and do not keep those
/// of the sender from proving its symbols.
#[test]
fn forged_lists_prove_nothing() {
    let other = SecretKey::from_seed(&[99; 32]);
    for seed in 1..3 {
        let world = World::new(1_500, 2, seed);
        let instance = InstanceId([seed as u8; 16]);
        let mut number = 0;
        let outcome = world.run(|random, _| {
            let forged = forged(2, random);
            let payload = &forged[forged.len() - usize::from(T)..];
            let packet = Packet::parse(&forged).unwrap();
            let id = packet.payload(EncodingId::RAPTORQ).unwrap().unwrap();
            let digest = fontana_wire::SymbolDigest::of(Toi(1), id.sbn, id.esi, payload);
            number += 1;
            let mut attack = Vec::new();
            // An attacker who has the packets for it could send as many lists.
            if number % 16 == 0 {
                let group = DigestGroup::new(&other, instance, GroupNumber(number), &[digest], 1);
                attack.extend(group.into_lists().iter().map(|list| list_packet(list)));
                attack.push(list_packet(&[random.next_u64() as u8; 300]));
                attack.push(list_packet(&[]));
            }
            attack.push(forged);
            attack
        });
        outcome.assert_complete(&world);
        assert!(outcome.honest <= 3_600, "{}", outcome.honest);
        assert!(outcome.unannounced() > 2_000, "{}", outcome.unannounced());
    }
}

/// Lists that a stranger signs as a sender whose head is not the publisher's, and a receiver that
/// knows no publisher: it takes every symbol as without digests.
#[test]
fn without_the_publishers_key_digests_count_for_nothing() {
    let world = World::new(500, 1, 1);
    let sender = sender(&world.content, &world.setup, Some(&publisher()));
    let mut driver = SenderDriver::with_digests(sender, &world.content);
    let mut config = receiver_config();
    config.expectation.manifest = Some(world.content.hash());
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    let mut random = SplitMix64::new(1, 5);
    receiver.timeout(Instant::ZERO);
    let mut sent = 0;
    for millis in 0..20_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in driver.poll(now) {
            sent += 1;
            if sent % 50 == 0 {
                receiver.hear(now, source(1), &forged(1, &mut random));
            }
            receiver.hear(now, source(1), &datagram);
        }
        receiver.timeout(now);
    }
    assert!(receiver.complete_at.is_some() && receiver.has(&world.content));
    assert_eq!(receiver.endpoint.stats().unannounced, 0);
}

/// A receiver that joins late, and a sender that is started again: neither loses symbols.
#[test]
fn late_receivers_and_restarted_senders_are_not_attacks() {
    let world = World::new(2_000, 2, 1);
    let mut config = receiver_config();
    config.expectation.publisher = Some(publisher().public_key());
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    let mut now = Instant::ZERO;
    for run in 1..4 {
        let setup = Setup { seed: run, source_pass: run == 1, ..world.setup.clone() };
        let sender = sender(&world.content, &setup, Some(&publisher()));
        let mut driver = SenderDriver::with_digests(sender, &world.content);
        driver.starts_at = now;
        let mut sent = 0;
        while sent < 2_100 && receiver.complete_at.is_none() {
            for datagram in driver.poll(now) {
                sent += 1;
                // The first run is under way.
                if run > 1 || sent > 700 {
                    receiver.hear(now, source(1), &datagram);
                }
            }
            now = now + Duration::from_millis(1);
            receiver.timeout(now);
        }
    }
    assert!(receiver.complete_at.is_some() && receiver.has(&world.content));
    let stats = receiver.endpoint.stats();
    println!("{stats:?}");
    // Until the head of the next run has come, its lists are of an unknown sender.
    assert!(stats.unannounced < 600, "{}", stats.unannounced);
}

/// Lists precede their symbols, each is sent twice, and every symbol is in one.
#[test]
fn every_symbol_is_announced_twice_before_it_is_sent() {
    for (mode, round_symbols) in
        [(SendMode::OnDemand, 2_048), (SendMode::Push { repair_permille: 100 }, 300)]
    {
        let mut world = World::new(1_000, 3, 4);
        (world.setup.mode, world.setup.round_symbols) = (mode, round_symbols);
        let sender = sender(&world.content, &world.setup, Some(&publisher()));
        let mut driver = SenderDriver::with_digests(sender, &world.content);
        let signer = digest_signer(InstanceId([4; 16]));
        let mut copies = std::collections::BTreeMap::new();
        let (mut symbols, mut lists) = (0, 0);
        for millis in 0..400 {
            for datagram in driver.poll(Instant::ZERO + Duration::from_millis(millis)) {
                let packet = Packet::parse(&datagram).unwrap();
                let codepoint = EncodingId(packet.header.codepoint);
                let payload = packet.payload(codepoint).unwrap().unwrap();
                match packet.header.toi.unwrap() {
                    Toi::DIGESTS => {
                        let list = DigestList::parse(payload.symbol).unwrap();
                        let key = signer.key.public_key();
                        assert!(list.verifies(&key, signer.instance, list.root()));
                        list.digests().for_each(|digest| *copies.entry(digest).or_insert(0) += 1);
                        lists += 1;
                    }
                    toi if toi.is_content() => {
                        let (sbn, esi) = (payload.sbn, payload.esi);
                        let digest = fontana_wire::SymbolDigest::of(toi, sbn, esi, payload.symbol);
                        assert_eq!(copies.get(&digest), Some(&2), "symbol {symbols}");
                        symbols += 1;
                    }
                    _ => {}
                }
            }
        }
        assert!(symbols >= 1_500, "{symbols}");
        println!("{symbols} symbols, {lists} lists");
        // Those for the next 1 000 symbols were sent once.
        assert!(lists <= 2 * (symbols / 96 + 2) + 1_000 / 96 + 8, "{lists} of {symbols}");
    }
}
