//! A receiver among strangers: damaged, forged, repeated and endless datagrams. It must not panic,
//! its memory must stay bounded, and the honest transfer beside them must finish.

use crate::support::world::{
    Content, PACKET_BYTES, ReceiverDriver, SenderDriver, Setup, TSI, receiver_config, sender,
    source,
};
use bolero::check;
use fontana_fec::{EncodingId, Esi, Sbn};
use fontana_proto::{
    ChannelId, Endpoint, Expectation, Instant, ReceiverEvent, SplitMix64, Subscription,
    SubscriptionLimits, presets,
};
use fontana_wire::{
    Cci, CongestionControl, HeaderFields, LayerRates, SecretKey, SessionHead, Toi, Tsi,
    UnverifiedHead, emit_payload_id,
};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Runs one honest sender and one receiver; `strangers` sends what it likes before each honest
/// datagram. Returns the receiver, complete.
fn run_among(
    content: &Content,
    seed: u64,
    mut strangers: impl FnMut(&mut SplitMix64, &[u8]) -> Vec<(IpAddr, Vec<u8>)>,
) -> ReceiverDriver {
    let honest = sender(content, &Setup { seed, ..Setup::default() }, None);
    let mut driver = SenderDriver::new(honest, content);
    let mut config = receiver_config();
    config.expectation.manifest = Some(content.hash());
    let mut receiver = ReceiverDriver::new(config, 0.05, seed);
    let mut random = SplitMix64::new(seed, 3);
    let mut now = Instant::ZERO;
    receiver.timeout(now);
    for _ in 0..60_000 {
        for datagram in driver.poll(now) {
            for (from, hostile) in strangers(&mut random, &datagram) {
                receiver.hear(now, from, &hostile);
            }
            receiver.maybe_hear(now, source(1), &datagram);
        }
        receiver.timeout(now);
        if receiver.complete_at.is_some() {
            assert!(receiver.has(content), "a wrong byte was called complete (seed {seed})");
            return receiver;
        }
        now = now + Duration::from_millis(1);
    }
    panic!("the honest transfer did not finish (seed {seed})\n{:?}", receiver.endpoint.stats());
}

#[test]
fn empty_random_truncated_and_damaged_datagrams_are_counted_and_cost_nothing() {
    for seed in 0..6 {
        let content = Content::new(&[(150_000, 2), (700, 1)], seed);
        let receiver = run_among(&content, seed, |random, honest| {
            let mut datagram = match random.below(4) {
                0 => Vec::new(),
                1 => (0..random.below(1500)).map(|_| random.next_u64() as u8).collect(),
                2 => honest[..random.below(honest.len() as u32) as usize].to_vec(),
                _ => honest.to_vec(),
            };
            // Damage to the header: what the session's packets are known by.
            for _ in 0..=random.below(8) {
                let header = datagram.len().min(12) as u32;
                if header > 0 {
                    datagram[random.below(header) as usize] ^= 1 << random.below(8);
                }
            }
            vec![(source(9), datagram)]
        });
        let stats = receiver.endpoint.stats();
        assert!(stats.malformed > 500, "{stats:?}");
    }
}

/// Damage that a checksum of the network missed, in any byte of honest packets of the honest
/// source: the hash of the block that took it is wrong, and the damaged symbol is found.
#[test]
fn flipped_bits_in_honest_packets_make_a_block_corrupt_and_no_byte_of_the_file() {
    for seed in 0..6 {
        let content = Content::new(&[(100_000, 4)], seed);
        let mut damaged = 0;
        let receiver = run_among(&content, seed, |random, honest| {
            if damaged < 12 && random.below(150) == 0 {
                damaged += 1;
                let mut datagram = honest.to_vec();
                let at = random.below(datagram.len() as u32) as usize;
                datagram[at] ^= 1 << random.below(8);
                return vec![(source(1), datagram)];
            }
            Vec::new()
        });
        println!("seed {seed}: {} corrupt blocks", receiver.endpoint.stats().corrupt_blocks);
    }
}

#[test]
fn a_forged_symbol_is_found_by_the_hash_of_its_block_and_dropped() {
    let content = Content::new(&[(60_000, 1)], 5);
    let mut forged = false;
    let receiver = run_among(&content, 5, |_, honest| {
        let is_content = fontana_wire::Packet::parse(honest)
            .is_ok_and(|p| p.header.toi.is_some_and(Toi::is_content));
        if forged || !is_content {
            return Vec::new();
        }
        forged = true;
        let mut datagram = honest.to_vec();
        *datagram.last_mut().unwrap() ^= 0xFF;
        vec![(source(1), datagram)]
    });
    assert_eq!(receiver.endpoint.stats().corrupt_blocks, 1);
    let corrupt = |e: &&ReceiverEvent| matches!(e, ReceiverEvent::BlockCorrupt { times: 1, .. });
    assert_eq!(receiver.events.iter().filter(corrupt).count(), 1);
    let dropped = |e: &&ReceiverEvent| matches!(e, ReceiverEvent::SymbolsDropped { count: 1, .. });
    assert_eq!(receiver.events.iter().filter(dropped).count(), 1);
}

#[test]
fn a_flood_of_sessions_and_sources_takes_no_memory_from_the_honest_one() {
    let content = Content::new(&[(150_000, 2)], 1);
    let elsewhere = Content::new(&[(150_000, 2)], 2);
    let mut flood = SenderDriver::new(
        sender(&elsewhere, &Setup { rate: 100_000_000, ..Setup::default() }, None),
        &elsewhere,
    );
    let packets = flood.poll(Instant::from_nanos(1));
    let receiver = run_among(&content, 1, |random, _| {
        (0..4)
            .map(|_| {
                let from = IpAddr::V4(Ipv4Addr::from(random.next_u64() as u32));
                let datagram = &packets[random.below(packets.len() as u32) as usize];
                (from, datagram.clone())
            })
            .collect()
    });
    let stats = receiver.endpoint.stats();
    assert!(stats.datagrams > 4 * stats.fresh, "{stats:?}");
}

#[test]
fn repeated_and_reordered_packets_change_nothing() {
    let content = Content::new(&[(100_000, 2)], 1);
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let receiver = run_among(&content, 1, |random, honest| {
        kept.push(honest.to_vec());
        (0..3)
            .map(|_| (source(1), kept[random.below(kept.len() as u32) as usize].clone()))
            .collect()
    });
    let stats = receiver.endpoint.stats();
    assert!(stats.duplicates > stats.fresh, "{stats:?}");
    assert_eq!(stats.corrupt_blocks, 0);
}

/// Symbols of objects, blocks and lengths that do not exist, and of every other kind of size.
#[test]
fn symbols_that_cannot_be_are_counted_as_invalid() {
    let content = Content::new(&[(100_000, 2)], 1);
    let receiver = run_among(&content, 1, |random, _| {
        let toi = Toi(u128::from(random.below(4)) + 1);
        let mut datagram = Vec::new();
        let codepoint = if random.below(4) == 0 { 0 } else { 6 };
        let fields = HeaderFields {
            cci: Cci::from_u32(random.next_u64() as u32),
            codepoint,
            ..HeaderFields::new(TSI, Some(toi))
        };
        fields.emit(&mut datagram);
        let esis = if codepoint == 0 { 1 << 16 } else { 1 << 24 };
        let (sbn, esi) = (Sbn(random.below(256)), Esi(random.below(esis)));
        emit_payload_id(EncodingId(codepoint), sbn, esi, &mut datagram);
        let size = [0, 1, 63, 65, 1400][random.below(5) as usize];
        datagram.resize(datagram.len() + size, 0xA5);
        vec![(source(1), datagram)]
    });
    let stats = receiver.endpoint.stats();
    assert!(stats.invalid > 100 && stats.corrupt_blocks == 0, "{stats:?}");
}

/// Symbols of high degree only make elimination expensive: the budget ends it, and honest symbols
/// finish the block.
#[test]
fn symbols_chosen_to_be_hard_to_solve_do_not_stop_the_honest_ones() {
    let content = Content::new(&[(64 * 1_000, 1)], 1);
    let mut next = 1 << 20;
    run_among(&content, 1, |_, _| {
        // Right size, right block, valid ESI, and wrong bytes: the worst that a stranger can do
        // without the honest source's help is to waste one attempt.
        next += 1;
        if next > (1 << 20) + 300 {
            return Vec::new();
        }
        let mut datagram = Vec::new();
        let fields = HeaderFields { codepoint: 6, ..HeaderFields::new(TSI, Some(Toi(1))) };
        fields.emit(&mut datagram);
        emit_payload_id(EncodingId::RAPTORQ, Sbn(0), Esi(next), &mut datagram);
        datagram.extend([0x5A; 64]);
        vec![(source(1), datagram)]
    });
}

#[test]
fn forged_heads_neither_displace_nor_delay_a_signed_session() {
    let key = SecretKey::from_seed(&[1; 32]);
    let forger = SecretKey::from_seed(&[2; 32]);
    let content = Content::new(&[(100_000, 1)], 1);
    let elsewhere = Content::new(&[(100_000, 1)], 2);
    let mut honest = SenderDriver::new(sender(&content, &Setup::default(), Some(&key)), &content);
    let mut forged = SenderDriver::new(
        sender(&elsewhere, &Setup { seed: 9, ..Setup::default() }, Some(&forger)),
        &elsewhere,
    );
    let mut config = receiver_config();
    config.expectation =
        Expectation { publisher: Some(key.public_key()), ..Expectation::default() };
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    let mut now = Instant::ZERO;
    receiver.timeout(now);
    for _ in 0..3_000 {
        // Another TSI from the same address, so that only the signature tells them apart; and
        // forged heads under the honest session's own name.
        for datagram in forged.poll(now) {
            let toi = fontana_wire::Packet::parse(&datagram).unwrap().header.toi;
            if toi == Some(Toi::HEAD) {
                receiver.maybe_hear(now, source(1), &datagram);
            }
        }
        for datagram in honest.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        now = now + Duration::from_millis(1);
    }
    assert!(receiver.has(&content), "{:?} {:?}", receiver.events, receiver.endpoint.stats());
}

/// Place of a head in its datagram, after the header with EXT_FTI and the payload id.
const HEAD_AT: usize = 36;

/// Content whose manifest takes several symbols.
fn many_blocks(seed: u64) -> Content {
    Content::new(&[(100_000, 8), (50_000, 4), (700, 1)], seed)
}

fn publisher() -> SecretKey {
    SecretKey::from_seed(&[1; 32])
}

fn pinned(content: &Content) -> Expectation {
    Expectation { manifest: Some(content.hash()), ..Expectation::default() }
}

fn signed() -> Expectation {
    Expectation { publisher: Some(publisher().public_key()), ..Expectation::default() }
}

/// The datagrams with heads, manifests or both that a sender sends in 300 ms.
fn control_packets(content: &Content, setup: &Setup, tois: &[Toi]) -> Vec<Vec<u8>> {
    let sender = sender(content, setup, Some(&publisher()));
    let mut recorder = SenderDriver::new(sender, content);
    let all = (0..300).flat_map(|ms| recorder.poll(Instant::ZERO + Duration::from_millis(ms)));
    let toi = |datagram: &[u8]| fontana_wire::Packet::parse(datagram).unwrap().header.toi;
    all.filter(|datagram| toi(datagram).is_some_and(|toi| tois.contains(&toi))).collect()
}

/// Packets that an honest sender, which begins after 100 ms, sends until a receiver is complete.
/// `strangers` send what they like in each millisecond.
fn packets_among(
    content: &Content,
    expectation: &Expectation,
    mut strangers: impl FnMut(u64) -> Vec<(IpAddr, Vec<u8>)>,
) -> u64 {
    let honest = sender(content, &Setup::default(), Some(&publisher()));
    let mut driver = SenderDriver::new(honest, content);
    driver.starts_at = Instant::ZERO + Duration::from_millis(100);
    let mut config = receiver_config();
    config.expectation = expectation.clone();
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    let mut packets = 0;
    receiver.timeout(Instant::ZERO);
    for millisecond in 0..6_000 {
        let now = Instant::ZERO + Duration::from_millis(millisecond);
        for (from, datagram) in strangers(millisecond) {
            receiver.hear(now, from, &datagram);
        }
        for datagram in driver.poll(now) {
            packets += 1;
            receiver.hear(now, source(1), &datagram);
            if receiver.complete_at.is_some() {
                assert!(receiver.has(content));
                return packets;
            }
        }
        receiver.timeout(now);
    }
    panic!("after {packets} packets: {:?} {:?}", receiver.endpoint.stats(), receiver.events);
}

/// Asserts that the sender sends at most 10 % more among strangers.
fn assert_cost(
    what: &str,
    content: &Content,
    expectation: &Expectation,
    strangers: impl FnMut(u64) -> Vec<(IpAddr, Vec<u8>)>,
) {
    assert_cost_within(100, 0, what, content, expectation, strangers);
}

/// Asserts that the sender sends at most `permille` thousandths more among strangers, and so many
/// packets once.
fn assert_cost_within(
    permille: u64,
    once: u64,
    what: &str,
    content: &Content,
    expectation: &Expectation,
    strangers: impl FnMut(u64) -> Vec<(IpAddr, Vec<u8>)>,
) {
    let alone = packets_among(content, expectation, |_| Vec::new());
    let among = packets_among(content, expectation, strangers);
    println!("{what}: {among} packets, {alone} without strangers");
    let most = alone * (1_000 + permille) / 1_000 + once;
    assert!(among <= most, "{what}: {among} packets, {alone} without strangers");
}

#[test]
fn strangers_that_repeat_the_public_head_and_manifest_keep_no_place_from_the_sender() {
    let content = many_blocks(1);
    let public = control_packets(&content, &Setup::default(), &[Toi::HEAD, Toi::MANIFEST]);
    for expectation in [pinned(&content), signed()] {
        for count in [16, 64] {
            assert_cost(&format!("{count} strangers"), &content, &expectation, |millisecond| {
                let packet = |stranger: u8| {
                    let at = (millisecond as usize + usize::from(stranger)) % public.len();
                    (source(100 + stranger), public[at].clone())
                };
                (0..count).map(packet).collect()
            });
        }
    }
}

/// An attacker hears the sender's first head, and repeats it from more addresses than the table has
/// places, between each of the sender's packets and the next. Its addresses also show objects that
/// the session does not have.
#[test]
fn later_sessions_that_repeat_the_head_do_not_displace_the_senders() {
    let content = many_blocks(1);
    let count = |strangers: u8, with_symbols: bool| {
        let (mut honest, mut head, mut next) = (0, None, 0_u32);
        let receiver = run_among(&content, 1, |_, datagram| {
            honest += 1;
            let heard = head.clone();
            head.get_or_insert_with(|| datagram.to_vec());
            let Some(heard) = heard else { return Vec::new() };
            let packets = |stranger: u8| {
                next += 1;
                let from = IpAddr::V4(Ipv4Addr::new(9, 0, 0, (next % 250) as u8));
                let mut symbol = Vec::new();
                let fields = HeaderFields { codepoint: 6, ..HeaderFields::new(TSI, Some(Toi(99))) };
                fields.emit(&mut symbol);
                emit_payload_id(EncodingId::RAPTORQ, Sbn(0), Esi(next), &mut symbol);
                symbol.extend([7; 64]);
                let packets = [(from, heard.clone()), (from, symbol)];
                packets
                    .into_iter()
                    .take(1 + usize::from(with_symbols && stranger.is_multiple_of(2)))
            };
            (0..strangers).flat_map(packets).collect()
        });
        assert_eq!(receiver.endpoint.stats().corrupt_blocks, 0);
        honest
    };
    let alone = count(0, false);
    for strangers in [16, 64, 250] {
        for with_symbols in [false, true] {
            let among = count(strangers, with_symbols);
            println!("{strangers} strangers, symbols {with_symbols}: {among}, {alone} alone");
            assert!(among * 100 <= alone * 101, "{strangers}: {among}, {alone} alone");
        }
    }
}

/// Heads with the bytes that receivers compare, which no key has signed: each is another one.
#[test]
fn junk_heads_use_up_no_checks_of_the_senders_head() {
    let content = Content::new(&[(1_000_000, 8), (50_000, 4)], 1);
    let head = &control_packets(&content, &Setup::default(), &[Toi::HEAD])[0];
    let elsewhere = &control_packets(&many_blocks(2), &Setup::default(), &[Toi::HEAD])[0];
    let mut random = SplitMix64::new(5, 1);
    for (expectation, template) in [(pinned(&content), elsewhere), (signed(), head)] {
        // From the sender's address, from one other, and from any: 100 000 per second.
        for sources in [None, Some(1), Some(250)] {
            let what = format!("junk heads, signed: {}, other sources: {sources:?}", {
                expectation.publisher.is_some()
            });
            // A receiver that checks signatures finds the head that is repeated: 0.2 s, once.
            let once = if expectation.publisher.is_some() { 2_000 } else { 0 };
            assert_cost_within(10, once, &what, &content, &expectation, |_| {
                let mut junk = || {
                    let mut datagram = template.clone();
                    // In the signature.
                    let at = HEAD_AT + 135;
                    datagram[at..at + 8].copy_from_slice(&random.next_u64().to_be_bytes());
                    let from = sources.map_or(1, |count| 2 + random.below(count) as u8);
                    (source(from), datagram)
                };
                (0..100).map(|_| junk()).collect()
            });
        }
    }
}

/// Milliseconds between an attacker's packets: 1 to 1 000 of them per second.
const INTERVALS: [u64; 4] = [1, 10, 100, 1_000];

/// Heads of the expected manifest in the sender's name, whose other fields are false: packets with
/// other transmission information, versions, expiries and congestion controls.
#[test]
fn of_a_head_of_the_pinned_manifest_only_the_hash_is_trusted() {
    let content = many_blocks(1);
    let head = |change: &dyn Fn(&mut SessionHead)| {
        let mut datagram = control_packets(&content, &Setup::default(), &[Toi::HEAD])[0].clone();
        let symbol = datagram.split_off(HEAD_AT);
        let mut head = UnverifiedHead::pinned(&symbol, &content.hash()).unwrap();
        change(&mut head);
        let mut bytes = head.emit(None);
        bytes.resize(symbol.len(), 0);
        datagram.extend(bytes);
        datagram
    };
    let layers = || LayerRates::geometric(100_000, 512, 4).unwrap();
    let forged = [
        head(&|head| head.manifest.oti.transfer_length += 1),
        head(&|head| head.manifest.oti.symbol_size = 1),
        head(&|head| head.manifest.oti.transfer_length = 1 << 39),
        head(&|head| head.manifest_version = 99),
        head(&|head| head.expires_unix_seconds = std::num::NonZeroU64::new(1)),
        head(&|head| head.congestion_control = CongestionControl::FixedLayers(layers())),
        head(&|head| head.congestion_control = CongestionControl::Rlc(presets::rlc(layers()))),
    ];
    for (index, datagram) in forged.iter().enumerate() {
        for from in [source(1), source(2)] {
            for interval in INTERVALS {
                let what = format!("head {index} from {from} every {interval} ms");
                assert_cost(&what, &content, &pinned(&content), |millisecond| {
                    let is_due = millisecond % interval == 0;
                    is_due.then(|| (from, datagram.clone())).into_iter().collect()
                });
            }
        }
    }
    assert_cost("all of them", &content, &pinned(&content), |_| {
        forged.iter().map(|datagram| (source(1), datagram.clone())).collect()
    });
}

/// Old heads that the publisher has signed, and their manifests, in the name of the sender and
/// under another address.
#[test]
fn repeated_old_heads_of_the_publisher_do_not_stop_a_reception() {
    let content = many_blocks(1);
    let old = control_packets(&many_blocks(2), &Setup::default(), &[Toi::HEAD]);
    for (from, interval) in [source(1), source(2)]
        .into_iter()
        .flat_map(|from| INTERVALS.map(|interval| (from, interval)))
    {
        let what = format!("old heads from {from} every {interval} ms");
        assert_cost(&what, &content, &signed(), |millisecond| {
            let at = (millisecond / interval) as usize % old.len();
            // The receiver has begun when the first one comes.
            let is_due = millisecond >= 105 && millisecond % interval == 0;
            is_due.then(|| (from, old[at].clone())).into_iter().collect()
        });
    }
}

/// What an attacker changes in the CCI of the sender's last packet on channel 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// The sequence number: the low half of the CCI of RLC and WEBRC.
    Number,
    /// Every bit.
    All,
}

/// Time until a receiver of a layered session, with a circuit breaker, is complete. It is behind a
/// bottleneck of this many bytes per second with room for 50 ms. After two seconds (the second
/// packet of a channel may jump) it gets a packet on channel 0 with a false CCI every `lie_every`
/// milliseconds, in the sender's name.
fn layered_seconds(control: &CongestionControl, bottleneck: u64, lies: Option<(Lie, u64)>) -> f64 {
    let content = Content::new(&[(2_000_000, 4)], 1);
    let setup = Setup { rate: 100_000, congestion: Some(control.clone()), ..Setup::default() };
    let mut driver = SenderDriver::new(sender(&content, &setup, None), &content);
    let mut config = receiver_config();
    config.expectation = pinned(&content);
    let subscription = Subscription::Declared(SubscriptionLimits::default());
    let mut receiver = ReceiverDriver::subscribed(config, subscription, 0.0, 1);
    let (mut random, mut last) = (SplitMix64::new(7, 1), None);
    let mut room = 0;
    receiver.timeout(Instant::ZERO);
    for millisecond in 0..400_000 {
        let now = Instant::ZERO + Duration::from_millis(millisecond);
        room = (room + bottleneck / 1_000).min(bottleneck / 20);
        for (channel, datagram) in driver.poll_channels(now) {
            if channel == ChannelId::BASE {
                last = Some(datagram.clone());
            }
            // Packets of channels that are not joined do not come to the bottleneck.
            let bytes = 28 + datagram.len() as u64;
            if receiver.joined.contains(&channel) && room >= bytes {
                room -= bytes;
                receiver.maybe_hear_on(now, source(1), channel, &datagram);
            }
        }
        if let Some((lie, every)) = lies
            && millisecond > 2_000
            && millisecond % every == 0
            && let Some(packet) = &mut last
        {
            let number = random.next_u64().to_be_bytes();
            match lie {
                Lie::Number => packet[6..8].copy_from_slice(&number[..2]),
                Lie::All => packet[4..8].copy_from_slice(&number[..4]),
            }
            receiver.maybe_hear_on(now, source(1), ChannelId::BASE, packet);
        }
        receiver.timeout(now);
        if receiver.complete_at.is_some() {
            assert!(receiver.has(&content));
            return millisecond as f64 / 1e3;
        }
    }
    f64::INFINITY
}

fn layered_controls() -> [CongestionControl; 4] {
    let layers = || LayerRates::geometric(12_500, 512, 4).unwrap();
    [
        CongestionControl::Rlc(presets::rlc(layers())),
        CongestionControl::FlidSl(presets::flid_sl(layers())),
        CongestionControl::Webrc(presets::webrc_fast(100_000, PACKET_BYTES).unwrap()),
        CongestionControl::FixedLayers(layers()),
    ]
}

#[test]
fn lying_sequence_numbers_do_not_throw_a_receiver_out_of_a_layered_session() {
    for control in layered_controls() {
        let lies = [(Lie::Number, 50), (Lie::All, 50), (Lie::All, 5)];
        // Without a bottleneck, and behind one of half the rate.
        for (bottleneck, lies) in [(1_000_000, &lies[..]), (50_000, &lies[..1])] {
            let alone = layered_seconds(&control, bottleneck, None);
            for &(lie, every) in lies {
                let among = layered_seconds(&control, bottleneck, Some((lie, every)));
                println!(
                    "{} at {bottleneck} B/s, {lie:?} every {every} ms: {among} s, {alone} s alone",
                    name(&control)
                );
                assert!(among <= 1.1 * alone, "{among} s, {alone} s alone");
            }
        }
    }
}

fn name(control: &CongestionControl) -> String {
    let text = format!("{control:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()
}

/// Time after the start at which a receiver reports silence. Its sender sends for 100 ms; junk and
/// repeated heads arrive in the sender's name, and under another address, until the end.
fn silent_at(expectation: &Expectation, content: &Content, has_sender: bool) -> Option<u64> {
    let honest = sender(content, &Setup::default(), Some(&publisher()));
    let mut driver = SenderDriver::new(honest, content);
    let public = control_packets(content, &Setup::default(), &[Toi::HEAD]);
    let mut config = receiver_config();
    config.expectation = expectation.clone();
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    (0..15_000).find(|&millisecond| {
        let now = Instant::ZERO + Duration::from_millis(millisecond);
        let sent = if has_sender && millisecond < 100 { driver.poll(now) } else { Vec::new() };
        for datagram in sent {
            receiver.hear(now, source(1), &datagram);
        }
        let mut junk = Vec::new();
        let fields = HeaderFields { codepoint: 6, ..HeaderFields::new(TSI, Some(Toi(9))) };
        fields.emit(&mut junk);
        emit_payload_id(EncodingId::RAPTORQ, Sbn(0), Esi(millisecond as u32), &mut junk);
        junk.extend([0x5A; 64]);
        receiver.hear(now, source(1), &junk);
        receiver.hear(now, source(2), &junk);
        if has_sender {
            receiver.hear(now, source(2), &public[millisecond as usize % public.len()]);
        }
        receiver.timeout(now);
        receiver.events.iter().any(|event| matches!(event, ReceiverEvent::Silence { .. }))
    })
}

#[test]
fn junk_and_repeated_heads_do_not_end_a_silence() {
    let content = Content::new(&[(500_000, 4)], 1);
    for expectation in [pinned(&content), signed()] {
        assert_eq!(silent_at(&expectation, &content, false), Some(10_000));
        let silent = silent_at(&expectation, &content, true).unwrap();
        assert!((10_000..10_200).contains(&silent), "{silent}");
    }
}

#[test]
fn every_address_of_the_ticket_has_a_place() {
    let content = Content::new(&[(20_000, 1)], 1);
    let mut config = receiver_config();
    config.expectation =
        Expectation { sources: vec![source(1), source(2)], ..Expectation::default() };
    config.acceptance = fontana_proto::Acceptance::Ask;
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    let mut hear = |tsi, from| {
        let setup = Setup { tsi: Tsi(tsi), ..Setup::default() };
        for datagram in control_packets(&content, &setup, &[Toi::HEAD, Toi::MANIFEST]) {
            receiver.hear(Instant::ZERO, from, &datagram);
        }
    };
    // As many sessions on offer as the table has places, all in the name of one address.
    (1..=16).for_each(|tsi| hear(tsi, source(1)));
    hear(17, source(2));
    let is_offered = |event: &ReceiverEvent| matches!(event, ReceiverEvent::Offered(offer) if offer.session.source == source(2));
    assert!(receiver.events.iter().any(is_offered), "{:?}", receiver.events);
}

/// As many addresses as the table has places repeat head and manifest and send forged symbols. The
/// sender begins when they have been there for three seconds.
#[test]
fn addresses_whose_symbols_are_wrong_do_not_keep_the_sender_out() {
    let content = Content::new(&[(50_000, 2)], 1);
    let public = control_packets(&content, &Setup::default(), &[Toi::HEAD, Toi::MANIFEST]);
    let honest = sender(&content, &Setup::default(), Some(&publisher()));
    let mut driver = SenderDriver::new(honest, &content);
    driver.starts_at = Instant::ZERO + Duration::from_secs(3);
    let mut config = receiver_config();
    config.expectation = pinned(&content);
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    let mut next = 1_u32 << 20;
    receiver.timeout(Instant::ZERO);
    for millisecond in 0..13_000 {
        let now = Instant::ZERO + Duration::from_millis(millisecond);
        for from in (10..26).map(source) {
            receiver.maybe_hear(now, from, &public[millisecond as usize % public.len()]);
            if millisecond % 5 == 0 {
                next += 1;
                let mut datagram = Vec::new();
                let fields = HeaderFields { codepoint: 6, ..HeaderFields::new(TSI, Some(Toi(1))) };
                fields.emit(&mut datagram);
                emit_payload_id(EncodingId::RAPTORQ, Sbn(next % 2), Esi(next), &mut datagram);
                datagram.extend([next.to_be_bytes(); 16].as_flattened());
                receiver.maybe_hear(now, from, &datagram);
            }
        }
        for datagram in driver.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        receiver.timeout(now);
        if receiver.complete_at.is_some() {
            assert!(receiver.has(&content));
            println!("complete after {} ms of the sender", millisecond - 3_000);
            return;
        }
    }
    panic!("{:?}", receiver.endpoint.stats());
}

#[test]
fn the_version_that_a_receiver_has_is_not_newer() {
    let content = Content::new(&[(1000, 1)], 1);
    for (newer_than, is_offered) in [(0, true), (1, false), (2, false)] {
        let mut config = receiver_config();
        config.expectation = Expectation { newer_than: Some(newer_than), ..signed() };
        config.acceptance = fontana_proto::Acceptance::Ask;
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        receiver.timeout(Instant::ZERO);
        for datagram in control_packets(&content, &Setup::default(), &[Toi::HEAD, Toi::MANIFEST]) {
            receiver.hear(Instant::ZERO, source(1), &datagram);
        }
        let offered = receiver.events.iter().any(|e| matches!(e, ReceiverEvent::Offered(_)));
        assert_eq!(offered, is_offered, "{newer_than}: {:?}", receiver.events);
    }
}

#[test]
fn no_more_sessions_have_a_place_than_the_limit() {
    let content = Content::new(&[(20_000, 1)], 1);
    let mut config = receiver_config();
    config.expectation = Expectation::default();
    config.acceptance = fontana_proto::Acceptance::Ask;
    config.limits.max_sessions = 2;
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    for tsi in 1..=4 {
        let setup = Setup { tsi: Tsi(tsi.into()), ..Setup::default() };
        for datagram in control_packets(&content, &setup, &[Toi::HEAD, Toi::MANIFEST]) {
            receiver.hear(Instant::ZERO, source(tsi), &datagram);
        }
    }
    let is_offered = |event: &&ReceiverEvent| matches!(event, ReceiverEvent::Offered(_));
    assert_eq!(receiver.events.iter().filter(is_offered).count(), 2, "{:?}", receiver.events);
}

#[test]
fn symbols_that_wait_for_their_object_take_no_more_memory_than_the_limit() {
    let content = Content::new(&[(20_000, 1)], 1);
    let mut driver = SenderDriver::new(sender(&content, &Setup::default(), None), &content);
    let mut config = receiver_config();
    config.acceptance = fontana_proto::Acceptance::Ask;
    // Twenty symbols of 64 bytes, and what each takes beside them.
    config.limits.max_early_bytes = 20 * (64 + 128);
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    let mut symbols = 0;
    for datagram in (0..20).flat_map(|ms| driver.poll(Instant::ZERO + Duration::from_millis(ms))) {
        let packet = fontana_wire::Packet::parse(&datagram).unwrap();
        symbols += u64::from(packet.header.toi.is_some_and(Toi::is_content));
        receiver.hear(Instant::ZERO, source(1), &datagram);
    }
    let stats = receiver.endpoint.stats();
    assert!(symbols > 100 && stats.without_room == symbols - 20, "{symbols} {stats:?}");
}

/// Any sequence of datagrams, time steps and acceptances: coverage-guided under `cargo bolero`,
/// random here.
#[test]
fn any_sequence_of_datagrams_and_timeouts_leaves_the_receiver_standing() {
    let content = Content::new(&[(3_000, 2), (1, 1)], 1);
    let mut honest = SenderDriver::new(sender(&content, &Setup::default(), None), &content);
    let mut recorded = Vec::new();
    for millis in 0..30 {
        recorded.extend(honest.poll(Instant::ZERO + Duration::from_millis(millis)));
    }
    check!().with_iterations(1_000).for_each(|input: &[u8]| {
        let mut config = receiver_config();
        config.limits.max_early_bytes = 64 << 10;
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        let mut now = Instant::ZERO;
        receiver.timeout(now);
        for step in input.chunks(4) {
            let &[kind, a, b, c] = step else { continue };
            now = now + Duration::from_micros(u64::from(a) * 40_000);
            let index = (usize::from(b) << 8 | usize::from(c)) % recorded.len();
            let mut datagram = recorded[index].clone();
            match kind % 4 {
                0 => {}
                1 => {
                    let at = usize::from(a) % datagram.len();
                    datagram[at] ^= b | 1;
                }
                2 => datagram.truncate(usize::from(a)),
                _ => datagram = input.to_vec(),
            }
            if receiver.joined.is_empty() && receiver.endpoint.poll_timeout().is_none() {
                break;
            }
            receiver.hear(now, source(kind >> 6), &datagram);
            receiver.timeout(now);
        }
        for (&toi, (_, data)) in &content.objects {
            assert!(!receiver.committed().contains(&toi) || receiver.object(toi) == **data);
        }
    });
}

#[test]
fn the_tsi_and_the_source_of_the_ticket_are_the_only_ones_heard() {
    let content = Content::new(&[(20_000, 1)], 1);
    for (tsi, from) in [(Tsi(8), source(1)), (TSI, source(2))] {
        let setup = Setup { tsi, ..Setup::default() };
        let mut driver = SenderDriver::new(sender(&content, &setup, None), &content);
        let mut config = receiver_config();
        config.expectation.sources = vec![source(1)];
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        receiver.timeout(Instant::ZERO);
        for millis in 0..500 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for datagram in driver.poll(now) {
                receiver.maybe_hear(now, from, &datagram);
            }
        }
        assert_eq!(receiver.endpoint.stats().session_packets, 0);
        assert!(receiver.endpoint.stats().foreign > 100);
        assert!(matches!(receiver.events[..], [ReceiverEvent::Rejected { .. }]));
    }
}
