//! Forged symbols: an attacker beside an honest sender costs about as many symbols as it sends, and
//! no object.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, T, TSI, receiver_config, run, sender, source,
};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{EncodingId, Esi, FecScheme, Sbn};
use fontana_proto::{DecodePolicy, Instant, ObjectFailure, ReceiverEvent, SendMode, SplitMix64};
use fontana_wire::{HeaderFields, Packet, Toi, emit_payload_id};
use std::net::SocketAddr;
use std::time::Duration;

/// A symbol of random bytes for a block of the first object.
fn forged(codepoint: u8, sbn: u32, esi: u32, random: &mut SplitMix64) -> Vec<u8> {
    let mut datagram = Vec::new();
    HeaderFields { codepoint, ..HeaderFields::new(TSI, Some(Toi(1))) }.emit(&mut datagram);
    emit_payload_id(EncodingId(codepoint), Sbn(sbn), Esi(esi), &mut datagram);
    datagram.extend((0..T).map(|_| random.next_u64() as u8));
    datagram
}

fn content_symbol(datagram: &[u8]) -> bool {
    Packet::parse(datagram).is_ok_and(|packet| packet.header.toi.is_some_and(Toi::is_content))
}

/// An honest sender, and an attacker who knows the session.
struct World {
    content: Content,
    setup: Setup,
    seed: u64,
    loss: f64,
    policy: DecodePolicy,
}

/// What a receiver reports at the end.
struct Outcome {
    receiver: ReceiverDriver,
    /// Symbols of the content that arrived from the sender until the receiver was complete.
    honest: u32,
    forged: u32,
}

impl World {
    fn new(content: Content, seed: u64) -> Self {
        let setup = Setup { seed, ..Setup::default() };
        Self { content, setup, seed, loss: 0.0, policy: DecodePolicy::Incremental }
    }

    /// Sends what `attack` returns before each symbol of the sender, for 20 s.
    fn run(&self, mut attack: impl FnMut(&mut SplitMix64, &[u8]) -> Vec<Vec<u8>>) -> Outcome {
        let mut driver = SenderDriver::new(sender(&self.content, &self.setup, None), &self.content);
        let mut config = receiver_config();
        config.expectation.manifest = Some(self.content.hash());
        config.policy = self.policy;
        let mut receiver = ReceiverDriver::new(config, self.loss, self.seed);
        let mut random = SplitMix64::new(self.seed, 5);
        let (mut honest, mut forged) = (0, 0);
        receiver.timeout(Instant::ZERO);
        for millis in 0..20_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for datagram in driver.poll(now) {
                if !content_symbol(&datagram) {
                    receiver.hear(now, source(1), &datagram);
                    continue;
                }
                for attack in attack(&mut random, &datagram) {
                    forged += u32::from(!receiver.joined.is_empty());
                    receiver.hear(now, source(1), &attack);
                }
                let before = receiver.endpoint.stats().session_packets;
                receiver.maybe_hear(now, source(1), &datagram);
                honest += u32::from(receiver.endpoint.stats().session_packets > before);
            }
            receiver.timeout(now);
            let ended = matches!(receiver.events.last(), Some(ReceiverEvent::GivenUp { .. }));
            if receiver.complete_at.is_some() || ended {
                break;
            }
        }
        Outcome { receiver, honest, forged }
    }
}

impl Outcome {
    fn assert_complete(&self, content: &Content) {
        assert!(self.receiver.complete_at.is_some(), "{:?}", self.receiver.endpoint.stats());
        assert!(self.receiver.has(content), "a wrong byte was called complete");
        assert!(self.receiver.joined.is_empty(), "it left");
    }

    fn corruptions(&self) -> u64 {
        self.receiver.endpoint.stats().corrupt_blocks
    }

    fn dropped(&self) -> u32 {
        let dropped = |event: &ReceiverEvent| match event {
            ReceiverEvent::SymbolsDropped { count, .. } => Some(*count),
            _ => None,
        };
        self.receiver.events.iter().filter_map(dropped).sum()
    }
}

/// Forged symbols at these shares of the sender's rate. Their errors are independent, because they
/// are fewer than the bytes of a symbol.
#[test]
fn forged_symbols_cost_about_as_many_honest_ones() {
    const K: u32 = 400;
    for share in [0.000_1, 0.001, 0.01, 0.1] {
        for seed in 0..4 {
            let content = Content::new(&[(K as usize * usize::from(T), 1)], seed);
            let world = World::new(content, seed);
            let mut next = 1 << 20;
            let outcome = world.run(|random, _| {
                let is_due = (random.next_u64() as f64) < share * u64::MAX as f64;
                next += u32::from(is_due);
                is_due.then(|| forged(6, 0, next, random)).into_iter().collect()
            });
            outcome.assert_complete(&world.content);
            let hit = if outcome.corruptions() > 0 { 4.0 } else { 0.0 };
            let limit = f64::from(K) * (1.0 + 2.0 * share) * 1.01 + hit;
            let Outcome { honest, forged, .. } = outcome;
            println!("K = {K}, share {share}, seed {seed}: {honest} honest, {forged} forged");
            assert!(f64::from(honest) <= limit, "{honest} honest, {forged} forged at {share}");
            assert!(outcome.corruptions() <= 1, "the others are right");
        }
    }
}

#[test]
fn many_forged_symbols_in_every_block_do_not_end_the_object() {
    for policy in
        [DecodePolicy::Incremental, DecodePolicy::Deferred, DecodePolicy::Patient { margin: 2 }]
    {
        let mut world = World::new(Content::new(&[(300 * usize::from(T), 3)], 1), 1);
        (world.loss, world.policy) = (0.1, policy);
        let mut next = 1 << 20;
        // One of 25, in any block: about four in each.
        let outcome = world.run(|random, _| {
            next += 1;
            let is_due = next % 25 == 0;
            is_due.then(|| forged(6, random.below(3), next, random)).into_iter().collect()
        });
        outcome.assert_complete(&world.content);
        assert!(outcome.corruptions() >= 3 && outcome.dropped() >= 6, "{policy:?}");
    }
}

/// Source symbols that an attacker was faster with than the sender, which sends each of them once.
#[test]
fn forged_source_symbols_are_found() {
    let world = World::new(Content::new(&[(200 * usize::from(T), 1)], 3), 3);
    let mut count = 0;
    let outcome = world.run(|random, _| {
        count += 1;
        if count == 1 { vec![forged(6, 0, 150, random), forged(6, 0, 151, random)] } else { vec![] }
    });
    outcome.assert_complete(&world.content);
    assert_eq!((outcome.corruptions(), outcome.dropped()), (1, 2));
    assert!(outcome.honest <= 212, "{}", outcome.honest);
}

/// The honest sender, and an attacker with an address of its own that repeats head and manifest and
/// sends `rate` forged symbols for each honest one, from as many ports as `ports`. Returns the
/// honest symbols of content that arrived.
fn honest_beside_other_source(content: &Content, rate: u32, ports: u16) -> u32 {
    let mut driver = SenderDriver::new(sender(content, &Setup::default(), None), content);
    let mut config = receiver_config();
    config.expectation.manifest = Some(content.hash());
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    let mut random = SplitMix64::new(3, 3);
    let (mut honest, mut next) = (0, 1_u32 << 20);
    receiver.timeout(Instant::ZERO);
    for millis in 0..20_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in driver.poll(now) {
            if receiver.complete_at.is_some() {
                break;
            }
            receiver.maybe_hear(now, source(1), &datagram);
            if !content_symbol(&datagram) {
                receiver.maybe_hear(now, source(2), &datagram);
                continue;
            }
            honest += 1;
            for _ in 0..rate {
                next += 1;
                let symbol = forged(6, random.below(6), next, &mut random);
                let from = SocketAddr::new(source(2), 7701 + (next % u32::from(ports)) as u16);
                receiver.maybe_hear_from(now, from, &symbol);
            }
        }
        receiver.timeout(now);
        if receiver.complete_at.is_some() {
            assert!(receiver.has(content), "a wrong byte was called complete");
            return honest;
        }
    }
    panic!("{honest} honest: {:?}", receiver.endpoint.stats());
}

/// A source whose symbols were wrong comes last: blocks are solved from those of others.
#[test]
fn a_forger_with_another_address_costs_little_when_it_is_known() {
    let content = Content::new(&[(1_200 * usize::from(T), 6)], 3);
    for (rate, ports, most) in [(1, 1, 2), (10, 1, 4), (1, 7, 2), (4, 300, 4)] {
        let honest = honest_beside_other_source(&content, rate, ports);
        println!("{rate} forged symbols from {ports} ports for each of {honest} honest ones");
        assert!(honest <= most * 1_200, "{honest} for 1 200, {rate} forged from {ports} ports");
    }
}

/// A sender that sends everything once: the block is complete if the symbols that arrive are as
/// many as its source symbols, the forged ones and three, and not if they are fewer; also if they
/// all arrive before the manifest.
#[test]
fn what_is_sent_once_is_complete_with_three_more_symbols_than_the_forged_ones() {
    const K: u32 = 200;
    let cases = [1, 2, 7].into_iter().flat_map(|wrong| {
        [(wrong, K + 3, true), (wrong, K + 2, false)].map(|case| (case, [false, true]))
    });
    for ((wrong, honest, suffices), is_early) in
        cases.flat_map(|(case, early)| early.map(|is_early| (case, is_early)))
    {
        let mut world = World::new(Content::new(&[(200 * usize::from(T), 1)], 4), 4);
        world.setup.mode = SendMode::Push { repair_permille: 100 };
        let mut random = SplitMix64::new(9, 9);
        let mut symbols: Vec<_> =
            (0..wrong).map(|esi| forged(6, 0, (1 << 20) + esi, &mut random)).collect();
        let mut driver =
            SenderDriver::new(sender(&world.content, &world.setup, None), &world.content);
        let mut receiver = ReceiverDriver::new(receiver_config(), 0.0, 1);
        receiver.timeout(Instant::ZERO);
        let (mut sent, mut control) = (0, Vec::new());
        for millis in 0..5_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for datagram in driver.poll(now) {
                if !content_symbol(&datagram) {
                    control.push(datagram);
                    continue;
                }
                sent += 1;
                // As many of the first ones are lost as are forged.
                if (wrong + 1..=wrong + honest).contains(&sent) {
                    symbols.push(datagram);
                }
            }
            if !is_early || sent >= wrong + honest {
                symbols.drain(..).for_each(|symbol| receiver.hear(now, source(1), &symbol));
                control.drain(..).for_each(|packet| receiver.hear(now, source(1), &packet));
            }
            receiver.timeout(now);
        }
        assert!(sent > wrong + honest, "the sender has sent enough");
        let case = format!("{honest} beside {wrong}, early: {is_early}");
        assert_eq!(receiver.complete_at.is_some(), suffices, "{case}");
        assert_eq!(receiver.joined.is_empty(), suffices, "{case}");
        assert!(!suffices || receiver.has(&world.content), "{case}");
    }
}

/// Codes of few symbols: what a search cannot find is received again.
#[test]
fn every_code_completes_among_forged_symbols() {
    type Scheme<'s> = &'s dyn Fn(u8, u32) -> FecScheme;
    let reed_solomon = |n| {
        move |_: u8, k: u32| {
            FecScheme::ReedSolomon(ReedSolomon {
                code: ReedSolomonCode::Rfc5510,
                max_source_block_length: k as u16,
                max_encoding_symbols: n,
            })
        }
    };
    let none = |_: u8, k: u32| FecScheme::NoCode(NoCode { max_source_block_length: k });
    let tornado = |_: u8, k: u32| {
        FecScheme::Tornado(Tornado { max_source_block_length: k, code: TornadoCode::Z })
    };
    let schemes: [(u8, Scheme<'_>, u32); 4] = [
        (5, &reed_solomon(200), 200),
        (5, &reed_solomon(101), 101),
        (0, &none, 100),
        (129, &tornado, 200),
    ];
    for (code, scheme, n) in schemes {
        let world = World::new(Content::coded(&[(100 * usize::from(T), 1)], 5, 1, scheme), 5);
        let codepoint = world.content.objects[&Toi(1)].0.encoding_id().0;
        assert!(codepoint == code || code == 129);
        let mut count = 0;
        let outcome = world.run(|random, _| {
            count += 1;
            let is_due = count < 2_000 && count % 70 == 1;
            is_due.then(|| forged(codepoint, 0, random.below(n), random)).into_iter().collect()
        });
        outcome.assert_complete(&world.content);
        assert!(outcome.corruptions() > 0, "{code}");
    }
}

/// Codes without surplus symbols, and an attacker in the sender's name that does not stop: copies
/// of one symbol that differ are kept, and the hash of the block says which is right.
#[test]
fn blocks_without_surplus_are_complete_among_forged_symbols_that_do_not_end() {
    const K: u32 = 100;
    let none = |_: u8, k: u32| FecScheme::NoCode(NoCode { max_source_block_length: k });
    let reed_solomon = |_: u8, k: u32| {
        FecScheme::ReedSolomon(ReedSolomon {
            code: ReedSolomonCode::Rfc5510,
            max_source_block_length: k as u16,
            max_encoding_symbols: k as u16 + 1,
        })
    };
    type Scheme<'s> = &'s dyn Fn(u8, u32) -> FecScheme;
    let schemes: [(Scheme<'_>, u32); 2] = [(&none, K), (&reed_solomon, K + 1)];
    for ((scheme, n), (every, loss)) in schemes
        .into_iter()
        .flat_map(|scheme| [(90, 0.0), (23, 0.0), (23, 0.1)].map(|attack| (scheme, attack)))
    {
        for seed in 0..4 {
            let content = Content::coded(&[(K as usize * usize::from(T), 1)], seed, 1, scheme);
            let mut world = World::new(content, seed);
            world.loss = loss;
            let codepoint = world.content.objects[&Toi(1)].0.encoding_id().0;
            let mut count = 0;
            let outcome = world.run(|random, _| {
                count += 1;
                let is_due = count % every == 1;
                is_due.then(|| forged(codepoint, 0, random.below(n), random)).into_iter().collect()
            });
            println!(
                "code {codepoint}, every {every}, loss {loss}, seed {seed}: {} honest, {} forged",
                outcome.honest, outcome.forged
            );
            outcome.assert_complete(&world.content);
            let most = if loss > 0.0 { 12 } else { 3 };
            assert!(outcome.honest <= most * n, "{} honest", outcome.honest);
        }
    }
}

/// Forged symbols of a manifest, each before the right one with its ESI.
#[test]
fn a_manifest_of_many_symbols_is_complete_among_forged_ones() {
    let content = Content::new(&[(100, 1); 300], 3);
    let mut driver = SenderDriver::new(sender(&content, &Setup::default(), None), &content);
    let mut config = receiver_config();
    config.expectation.manifest = Some(content.hash());
    let mut receiver = ReceiverDriver::new(config, 0.0, 3);
    let (mut arrived, mut symbol_size, mut is_accepted) = (0, 1, false);
    receiver.timeout(Instant::ZERO);
    for millis in 0..60_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in driver.poll(now) {
            let packet = Packet::parse(&datagram).unwrap();
            if packet.header.toi == Some(Toi::MANIFEST) && !is_accepted {
                arrived += 1;
                symbol_size = packet.payload(EncodingId::RAPTORQ).unwrap().unwrap().symbol.len();
                if arrived % 20 == 10 {
                    let mut forged = datagram.clone();
                    let random = &mut SplitMix64::new(arrived, 1);
                    let symbol = forged.iter_mut().rev().take(symbol_size - 8);
                    symbol.for_each(|byte| *byte = random.next_u64() as u8);
                    receiver.hear(now, source(1), &forged);
                }
            }
            receiver.hear(now, source(1), &datagram);
            let is_accepting =
                |event: &ReceiverEvent| matches!(event, ReceiverEvent::Accepted { .. });
            is_accepted = is_accepted || receiver.events.iter().any(is_accepting);
        }
        receiver.timeout(now);
    }
    let k = content.manifest_bytes.len().div_ceil(symbol_size) as u64;
    assert!(is_accepted && k > 50, "{arrived} symbols of {k}");
    assert!(arrived <= k * 11 / 10 + 32, "{arrived} symbols of {k}");
}

/// Forged symbols at these shares of the sender's packets of the manifest.
#[test]
fn forged_symbols_of_a_manifest_cost_about_as_many_honest_ones() {
    for (names, share) in [3, 100, 1_000]
        .into_iter()
        .flat_map(|names| [0.000_1, 0.001, 0.01, 0.1].map(|share| (names, share)))
        .chain([(13_200, 0.000_1), (13_200, 0.05)])
    {
        let (honest, forged, k) = manifest_among_forged(names, share);
        let hit = if forged > 0 { 4.0 } else { 0.0 };
        let limit = f64::from(k) * (1.0 + 2.0 * share) * 1.01 + hit;
        println!("manifest of {k} symbols, share {share}: {honest} honest, {forged} forged");
        // A block takes a symbol more than it has at times, whatever arrives.
        assert!(f64::from(honest) <= limit.max(f64::from(k) + 2.0), "{honest} honest, {forged}");
    }
}

/// Symbols of a manifest that arrived from the sender and from an attacker until the manifest was
/// accepted, and its source symbols.
fn manifest_among_forged(names: usize, share: f64) -> (u32, u32, u32) {
    const SYMBOL: u16 = 1_024;
    let content = Content::new(&[(700, 1)], 3).with_long_names(names);
    let setup = Setup { control_symbol: SYMBOL, rate: 20_000_000, ..Setup::default() };
    let mut driver = SenderDriver::new(sender(&content, &setup, None), &content);
    let mut config = receiver_config();
    config.expectation.manifest = Some(content.hash());
    let mut receiver = ReceiverDriver::new(config, 0.0, 3);
    let mut random = SplitMix64::new(names as u64, 6);
    let (mut honest, mut forged) = (0, 0);
    receiver.timeout(Instant::ZERO);
    for millis in 0..60_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in driver.poll(now) {
            if Packet::parse(&datagram).unwrap().header.toi == Some(Toi::MANIFEST) {
                honest += 1;
                if (random.next_u64() as f64) < share * u64::MAX as f64 {
                    forged += 1;
                    let mut forged_symbol = datagram.clone();
                    let symbol = datagram.len() - usize::from(SYMBOL);
                    let esi = (1_u32 << 20) + forged;
                    forged_symbol[symbol - 4..symbol].copy_from_slice(&esi.to_be_bytes());
                    let bytes = forged_symbol[symbol..].iter_mut();
                    bytes.for_each(|byte| *byte = random.next_u64() as u8);
                    receiver.hear(now, source(1), &forged_symbol);
                }
            }
            receiver.hear(now, source(1), &datagram);
            let is_accepting =
                |event: &ReceiverEvent| matches!(event, ReceiverEvent::Accepted { .. });
            if receiver.events.iter().any(is_accepting) {
                let k = content.manifest_bytes.len().div_ceil(SYMBOL.into()) as u32;
                return (honest, forged, k);
            }
        }
        receiver.timeout(now);
    }
    panic!("{names} names, share {share}: {honest} honest, {forged} forged");
}

/// The manifest promises another block than every sender sends.
#[test]
fn content_that_is_not_the_manifests_is_given_up() {
    let promised = Content::new(&[(100 * usize::from(T), 1)], 6);
    let mut sent = Content::new(&[(100 * usize::from(T), 1)], 7);
    sent.manifest = promised.manifest.clone();
    sent.manifest_bytes = promised.manifest_bytes.clone();
    let outcome = World::new(sent, 6).run(|_, _| Vec::new());
    let events = &outcome.receiver.events;
    assert!(matches!(events.last(), Some(ReceiverEvent::GivenUp { error: None })), "{events:?}");
    let is_corrupt = |event: &ReceiverEvent| {
        matches!(event, ReceiverEvent::ObjectFailed { failure: ObjectFailure::Corrupt, .. })
    };
    assert!(events.iter().any(is_corrupt));
    assert_eq!(outcome.corruptions(), 2, "wrong twice");
    assert!(outcome.receiver.committed().is_empty() && outcome.receiver.joined.is_empty());
    assert!((2 * 108..240).contains(&outcome.honest), "{}", outcome.honest);
}

/// Equal errors in all symbols contradict each other, but accuse none.
#[test]
fn errors_that_hide_each_other_cost_a_block_and_not_the_object() {
    let world = World::new(Content::new(&[(100 * usize::from(T), 1)], 8), 8);
    let mut count = 0;
    let outcome = world.run(|_, honest| {
        count += 1;
        let mut datagram = honest.to_vec();
        *datagram.last_mut().unwrap() ^= 1;
        if count % 100 < 2 && count < 1_000 { vec![datagram] } else { Vec::new() }
    });
    outcome.assert_complete(&world.content);
    assert!(outcome.corruptions() > 2);
}

/// Content of the same shape as the promised one, and other bytes.
fn other_bytes(promised: &Content, shapes: &[(usize, u8)], seed: u64) -> Content {
    let mut other = Content::new(shapes, seed);
    other.manifest = promised.manifest.clone();
    other.manifest_bytes = promised.manifest_bytes.clone();
    other
}

/// A forger that encodes content of its own: its symbols agree with each other.
#[test]
fn a_forger_whose_symbols_agree_does_not_end_the_object() {
    let shapes = [(120 * usize::from(T), 2)];
    let content = Content::new(&shapes, 6);
    let other = other_bytes(&content, &shapes, 7);
    for rate in [1, 2, 10] {
        let setups = [1, 2].map(|seed| Setup { seed, ..Setup::default() });
        let [honest, mut forger] = setups;
        forger.rate = honest.rate * rate;
        // The forger is first.
        let mut senders = [
            SenderDriver::new(sender(&other, &forger, None), &other),
            SenderDriver::new(sender(&content, &honest, None), &content),
        ];
        let mut config = receiver_config();
        config.expectation.manifest = Some(content.hash());
        let mut receivers = [ReceiverDriver::new(config, 0.0, 1)];
        run(&mut senders, &mut receivers, Duration::from_secs(30));
        let [receiver] = &receivers;
        assert!(receiver.complete_at.is_some(), "{rate}: {:?}", receiver.events);
        assert!(receiver.has(&content), "a wrong byte was called complete");
    }
}
