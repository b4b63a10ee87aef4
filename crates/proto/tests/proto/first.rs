//! A session of a new version: blocks that receivers of the previous one lack come first.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, T, receiver_config, sender, source,
};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{EncodingId, Esi, FecScheme, Sbn};
use fontana_proto::{BlockId, Instant, ReceiverEvent, SendMode, TransmissionSchedule};
use fontana_wire::{Packet, Toi};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Bytes of a block of 40 symbols.
const BLOCK: usize = 40 * T as usize;
const SCHEDULES: [TransmissionSchedule; 4] = [
    TransmissionSchedule::EVEN,
    TransmissionSchedule::Interleaved { grain: 8 },
    TransmissionSchedule::Sequential { repair_permille: 100 },
    TransmissionSchedule::Random,
];

fn block(toi: u128, sbn: u32) -> BlockId {
    BlockId { toi: Toi(toi), sbn: Sbn(sbn) }
}

/// Blocks of 40 symbols, a short one, and one of a single symbol.
fn content(scheme: fn(u8) -> FecScheme) -> Content {
    let shapes = [(5 * BLOCK, 5), (3 * usize::from(T), 1), (1, 1)];
    Content::coded(&shapes, 1, 1, &|blocks, _| scheme(blocks))
}

fn raptorq(blocks: u8) -> FecScheme {
    FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 4 })
}

fn no_code(_: u8) -> FecScheme {
    FecScheme::NoCode(NoCode { max_source_block_length: 40 })
}

/// Symbols of content in the order in which they are sent: at least this many, or all of a push
/// session. `each` gets the sender after every symbol.
fn symbols(
    sender: &mut SenderDriver,
    count: usize,
    mut each: impl FnMut(&SenderDriver, usize),
) -> Vec<(BlockId, Esi)> {
    let (mut now, mut sent) = (Instant::ZERO, Vec::new());
    for _ in 0..100_000 {
        for datagram in sender.poll(now) {
            let packet = Packet::parse(&datagram).unwrap();
            let toi = packet.header.toi.unwrap();
            if toi.is_content() {
                let id = EncodingId(packet.header.codepoint);
                let payload = packet.payload(id).unwrap().unwrap();
                sent.push((BlockId { toi, sbn: payload.sbn }, payload.esi));
            }
        }
        each(sender, sent.len());
        if sent.len() >= count {
            break;
        }
        now = now + Duration::from_micros(100);
    }
    sent
}

fn driver(content: &Content, setup: &Setup) -> SenderDriver {
    SenderDriver::new(sender(content, setup, None), content)
}

fn number_of(sent: &[(BlockId, Esi)], block: BlockId) -> usize {
    sent.iter().filter(|(id, _)| *id == block).count()
}

#[test]
fn blocks_that_receivers_lack_come_before_all_others_and_no_symbol_is_repeated() {
    let content = content(raptorq);
    let first = vec![block(1, 3), block(2, 0), block(3, 0), block(1, 1)];
    for schedule in SCHEDULES {
        for round_symbols in [30, 500] {
            let setup = Setup { schedule, round_symbols, first: first.clone(), ..Setup::default() };
            let mut sender = driver(&content, &setup);
            let mut over_at = None;
            let sent = symbols(&mut sender, 1_000, |sender, count| {
                if over_at.is_none() && sender.endpoint.is_first_phase_over() {
                    over_at = Some(count);
                }
            });
            let is_first = |(id, _): &(BlockId, Esi)| first.contains(id);
            let phase = sent.iter().take_while(|symbol| is_first(symbol)).count();
            let counts: Vec<_> = first.iter().map(|&id| number_of(&sent[..phase], id)).collect();
            // 40 symbols and the surplus, three, one: at a loss of a quarter.
            let least = [57, 7, 4, 57];
            assert!(counts.iter().zip(least).all(|(&n, least)| n >= least), "{counts:?}");
            assert!(counts.iter().sum::<usize>() < 200, "{counts:?}");
            assert!(over_at.unwrap().abs_diff(phase) < 30, "{over_at:?} of {phase}: {schedule:?}");
            let distinct: BTreeSet<_> = sent.iter().collect();
            assert_eq!(distinct.len(), sent.len(), "{schedule:?}");
            // Source symbols first, and then all blocks.
            for &id in &first[..2] {
                let k = if id.toi == Toi(1) { 40 } else { 3 };
                let esis: Vec<_> =
                    sent.iter().filter(|(b, _)| *b == id).map(|(_, e)| e.0).collect();
                assert_eq!(esis[..k], (0..k as u32).collect::<Vec<_>>());
            }
            let all: BTreeSet<_> = sent[phase..].iter().map(|(id, _)| *id).collect();
            assert_eq!(all.len(), 7, "{schedule:?}");
        }
    }
}

#[test]
fn blocks_that_come_first_advance_evenly() {
    let content = content(raptorq);
    let first: Vec<_> = (0..4).map(|sbn| block(1, sbn)).collect();
    let setup = Setup { first: first.clone(), ..Setup::default() };
    let sent = symbols(&mut driver(&content, &setup), 160, |_, _| {});
    let counts: Vec<_> = first.iter().map(|&id| number_of(&sent[..160], id)).collect();
    assert_eq!(counts, [40; 4]);
}

#[test]
fn symbols_that_come_first_count_towards_the_amount_of_a_push_session() {
    for (scheme, permille) in [(raptorq as fn(u8) -> _, 2_000), (no_code, 3_000), (raptorq, 100)] {
        let content = content(scheme);
        let mode = SendMode::Push { repair_permille: permille };
        let first = vec![block(1, 3), block(3, 0)];
        let setup = Setup { mode, first, ..Setup::default() };
        let mut sender = driver(&content, &setup);
        let sent = symbols(&mut sender, usize::MAX, |_, _| {});
        assert!(sender.endpoint.is_first_phase_over());
        let share = |k: usize| (k * (1_000 + permille as usize)).div_ceil(1_000);
        let mut counts = BTreeMap::new();
        sent.iter().for_each(|(id, _)| *counts.entry(*id).or_insert(0) += 1);
        for (id, count) in counts {
            let k = [40, 3, 1][id.toi.0 as usize - 1];
            assert_eq!(count, share(k), "{id:?} at {permille}");
        }
    }
}

#[test]
fn a_code_without_repair_symbols_sends_its_symbols_again() {
    let content = content(no_code);
    let setup = Setup { first: vec![block(1, 2)], ..Setup::default() };
    let sent = symbols(&mut driver(&content, &setup), 200, |_, _| {});
    let phase: Vec<_> = sent.iter().take_while(|(id, _)| *id == block(1, 2)).collect();
    assert!(phase.len() > 55 && phase.len() < 80, "{}", phase.len());
    let esis: Vec<_> = phase.iter().map(|(_, esi)| esi.0).collect();
    assert_eq!(esis, (0..40).cycle().take(phase.len()).collect::<Vec<_>>());
}

#[test]
fn unknown_blocks_are_ignored_and_without_blocks_there_is_no_first_phase() {
    let content = content(raptorq);
    let with = |first| {
        let mut sender = driver(&content, &Setup { first, ..Setup::default() });
        assert!(sender.endpoint.is_first_phase_over());
        let sent = symbols(&mut sender, 300, |_, _| {});
        sent.into_iter().take(300).collect::<Vec<_>>()
    };
    assert!(with(vec![block(9, 0), block(1, 77)]) == with(Vec::new()));
}

#[test]
fn several_channels_share_the_first_phase() {
    let content = content(raptorq);
    let schedules = [
        TransmissionSchedule::EVEN,
        TransmissionSchedule::Cumulative,
        TransmissionSchedule::Random,
    ];
    for schedule in schedules {
        let first = vec![block(1, 3), block(1, 4)];
        let setup = Setup { schedule, first: first.clone(), ..Setup::default() }.layered(4);
        let sent = symbols(&mut driver(&content, &setup), 1_000, |_, _| {});
        let phase = sent.iter().take_while(|(id, _)| first.contains(id)).count();
        assert!((115..160).contains(&phase), "{phase}: {schedule:?}");
        let distinct: BTreeSet<_> = sent.iter().collect();
        assert_eq!(distinct.len(), sent.len(), "{schedule:?}");
    }
}

#[test]
fn at_the_start_of_a_new_version_most_receivers_have_the_manifest_before_the_content() {
    // A manifest of 200 symbols: 32 bytes for each of 1600 blocks.
    let shapes = vec![(200 * usize::from(T), 200); 8];
    let content = Content::new(&shapes, 2);
    assert!((190..260).contains(&content.manifest_bytes.len().div_ceil(256)));
    let accepted = |loss, first: Vec<BlockId>| {
        let mut sender = driver(&content, &Setup { first, ..Setup::default() });
        let mut receivers: Vec<_> =
            (0..50).map(|seed| ReceiverDriver::new(receiver_config(), loss, seed)).collect();
        let mut now = Instant::ZERO;
        receivers.iter_mut().for_each(|receiver| receiver.timeout(now));
        let mut control = true;
        while control {
            for datagram in sender.poll(now) {
                let toi = Packet::parse(&datagram).unwrap().header.toi.unwrap();
                control &= !toi.is_content();
                for receiver in receivers.iter_mut().filter(|_| control) {
                    receiver.maybe_hear(now, source(1), &datagram);
                }
            }
            now = now + Duration::from_millis(1);
        }
        let is_accepted = |event: &ReceiverEvent| matches!(event, ReceiverEvent::Accepted { .. });
        receivers.iter().filter(|receiver| receiver.events.iter().any(is_accepted)).count()
    };
    assert_eq!(accepted(0.1, Vec::new()), 0);
    for loss in [0.0, 0.1, 0.2, 0.25] {
        let count = accepted(loss, vec![block(1, 0)]);
        assert!(count >= 45, "{count} of 50 at a loss of {loss}");
    }
}
