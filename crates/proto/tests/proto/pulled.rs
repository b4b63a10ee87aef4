//! Symbols that are pulled from mirrors, alone and beside a sender.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, T, receiver_config, sender, source,
};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{EncodingId, Esi, FecScheme, ObjectLayout, Sbn};
use fontana_proto::share::Holdings;
use fontana_proto::{BlockId, Instant, ReceiverEvent, Rejection, SessionKey};
use fontana_wire::{Packet, Toi, Tsi};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// A mirror of the content.
struct Mirror<'a>(&'a Content);

impl Mirror<'_> {
    fn object(&self, toi: Toi) -> (&ObjectLayout, &[u8]) {
        let (layout, bytes) = &self.0.objects[&toi];
        (layout, bytes)
    }

    fn blocks(&self) -> Vec<BlockId> {
        let of = |(&toi, (layout, _)): (&Toi, &(ObjectLayout, _))| {
            (0..layout.block_count()).map(move |sbn| BlockId { toi, sbn: Sbn(sbn) })
        };
        self.0.objects.iter().flat_map(of).collect()
    }

    /// The bytes of source symbols of a block; those of the object's last one without padding.
    fn symbols(&self, block: BlockId, esis: Range<u32>) -> Vec<u8> {
        let (layout, bytes) = self.object(block.toi);
        let before: u32 =
            (0..block.sbn.0).map(|sbn| layout.source_symbols(Sbn(sbn)).unwrap()).sum();
        let at = |esi: u32| ((before + esi) as usize * usize::from(T)).min(bytes.len());
        bytes[at(esis.start)..at(esis.end)].to_vec()
    }

    /// Pulls all that a block lacks. Returns the number of symbols.
    fn fill(&self, now: Instant, receiver: &mut ReceiverDriver, block: BlockId) -> u64 {
        let (mut from, mut count) = (0, 0);
        while let Some(run) = receiver.endpoint.missing_source(block, Esi(from)) {
            let symbols = self.symbols(block, run.clone());
            let fresh = receiver.pull(now, block, run.start, &symbols);
            assert_eq!(fresh, u64::from(run.end - run.start), "{run:?} of {block:?} were missing");
            (from, count) = (run.end, count + fresh);
        }
        count
    }
}

/// Two objects, one of three blocks; the last symbol of each is short.
fn content() -> Content {
    Content::new(&[(100 * usize::from(T) + 7, 3), (9 * usize::from(T) + 1, 1)], 3)
}

fn receiver(content: &Content) -> ReceiverDriver {
    let mut config = receiver_config();
    config.expectation.manifest = Some(content.hash());
    let mut receiver = ReceiverDriver::new(config, 0.0, 1);
    receiver.timeout(Instant::ZERO);
    receiver
}

fn mirror_key() -> SessionKey {
    SessionKey { source: source(9), tsi: Tsi(0) }
}

#[test]
fn mirrors_alone_complete_the_content_of_the_expected_manifest() {
    let (content, other, now) = (content(), Content::new(&[(5, 1)], 4), Instant::ZERO);
    let (mirror, mut receiver) = (Mirror(&content), receiver(&content));
    let key = mirror_key();
    let refused = receiver.endpoint.accept_manifest(key, other.hash(), &other.manifest);
    assert_eq!(refused, Err(Rejection::OtherManifest));
    receiver.endpoint.accept_manifest(key, content.hash(), &content.manifest).unwrap();
    receiver.poll(now);
    let again = receiver.endpoint.accept_manifest(key, content.hash(), &content.manifest);
    assert_eq!(again, Err(Rejection::OtherManifest), "it was accepted");
    let pulled: u64 =
        mirror.blocks().into_iter().map(|block| mirror.fill(now, &mut receiver, block)).sum();
    assert_eq!(pulled, content.source_symbols());
    assert!(receiver.has(&content));
    assert_eq!(receiver.endpoint.stats().pulled, pulled);
    assert!(receiver.joined.is_empty(), "the channels are left");
}

/// What a receiver has for others: source symbols, repair symbols, and blocks that are verified.
#[test]
fn a_receiver_says_what_it_has_for_others() {
    let (content, now) = (content(), Instant::ZERO);
    let (mirror, mut receiver) = (Mirror(&content), receiver(&content));
    receiver.endpoint.accept_manifest(mirror_key(), content.hash(), &content.manifest).unwrap();
    receiver.poll(now);
    let block = mirror.blocks()[1];
    let k = mirror.object(block.toi).0.source_symbols(block.sbn).unwrap();
    receiver.pull(now, block, 3, &mirror.symbols(block, 3..k - 1));
    for esi in [k + 9, k + 4] {
        receiver.pull(now, block, esi, &[7; T as usize]);
    }
    let endpoint = &receiver.endpoint;
    let holding = Holdings::block(endpoint, block).unwrap();
    assert!(!holding.has_block && holding.is_sound && holding.makes_fresh);
    assert_eq!((holding.source_symbols, holding.symbol_size), (k, T));
    assert_eq!(holding.lacking, 5, "4 are missing, 2 came, and RaptorQ wants 3 more");
    assert_eq!(Holdings::missing(endpoint, block, 0..k), [0, 1, 2, k - 1]);
    let around = Holdings::missing(endpoint, block, k + 3..k + 11);
    assert_eq!(around, [k + 3, k + 5, k + 6, k + 7, k + 8, k + 10]);
    assert_eq!(endpoint.repair_span(block), Some(k + 4..k + 10));
    let held = endpoint.held(block, &[0, 3, k + 4, k + 5, k - 2].map(Esi));
    assert_eq!(held, [3, k + 4, k - 2].map(Esi));
    let lacking = Holdings::lacking(endpoint, None, 9);
    assert_eq!(lacking.iter().map(|&(block, _)| block).collect::<Vec<_>>(), mirror.blocks());
    assert_eq!(lacking[1], (block, 5));

    // Its repair symbols were wrong, which shows when it has enough.
    mirror.fill(now, &mut receiver, block);
    assert!(
        Holdings::block(&receiver.endpoint, block).unwrap().is_sound,
        "pulled ones may be sent"
    );
    assert_eq!(receiver.endpoint.held(block, &[Esi(3)]), [Esi(3)]);
    for block in mirror.blocks().into_iter().filter(|&other| other != block) {
        mirror.fill(now, &mut receiver, block);
        assert!(Holdings::block(&receiver.endpoint, block).unwrap().has_block, "{block:?}");
    }
    assert_eq!(Holdings::block(&receiver.endpoint, BlockId { sbn: Sbn(9), ..block }), None);
}

#[test]
fn a_receiver_says_what_it_lacks_with_the_surplus_of_the_code() {
    let (content, now) = (content(), Instant::ZERO);
    let (mirror, mut receiver) = (Mirror(&content), receiver(&content));
    let unknown = receiver.endpoint.lacking(9);
    assert!(unknown.blocks.is_empty() && unknown.may_lack_more, "{unknown:?}");
    let key = mirror_key();
    receiver.endpoint.accept_manifest(key, content.hash(), &content.manifest).unwrap();
    receiver.poll(now);
    let blocks = mirror.blocks();
    let k = |block: &BlockId| mirror.object(block.toi).0.source_symbols(block.sbn).unwrap();
    let symbols = |receiver: &ReceiverDriver| -> Vec<u32> {
        receiver.endpoint.lacking(9).blocks.iter().map(|need| need.symbols).collect()
    };
    // RaptorQ recovers a block of three more than source symbols almost certainly.
    let mut expected: Vec<u32> = blocks.iter().map(|block| k(block) + 3).collect();
    assert_eq!(symbols(&receiver), expected);
    let first = receiver.endpoint.lacking(1);
    assert!(first.blocks.len() == 1 && first.may_lack_more, "{first:?}");
    let some = mirror.symbols(blocks[1], 3..k(&blocks[1]));
    receiver.pull(now, blocks[1], 3, &some);
    expected[1] = 6;
    assert_eq!(symbols(&receiver), expected);
    for block in blocks {
        mirror.fill(now, &mut receiver, block);
    }
    assert!(receiver.endpoint.lacking(9).is_nothing());
}

#[test]
fn packets_and_pulled_symbols_fill_the_same_blocks() {
    let content = content();
    let setup = Setup { seed: 8, ..Setup::default() };
    let mut sender = SenderDriver::new(sender(&content, &setup, None), &content);
    let (mirror, mut receiver) = (Mirror(&content), receiver(&content));
    receiver.loss = 0.5;
    let mut now = Instant::ZERO;
    while receiver.endpoint.stats().fresh < 40 {
        now = now + Duration::from_millis(1);
        for datagram in sender.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
        receiver.timeout(now);
    }
    let (fresh, k) = (receiver.endpoint.stats().fresh, content.source_symbols());
    let pulled: u64 =
        mirror.blocks().into_iter().map(|block| mirror.fill(now, &mut receiver, block)).sum();
    assert!(receiver.has(&content));
    // A block that repair symbols have completed needs nothing.
    assert!(pulled <= k - fresh, "{pulled} pulled, {fresh} of {k} had arrived");
}

#[test]
fn a_corrupt_block_is_fetched_again_without_packets() {
    let (content, now) = (content(), Instant::ZERO);
    let (mirror, mut receiver) = (Mirror(&content), receiver(&content));
    let key = mirror_key();
    receiver.endpoint.accept_manifest(key, content.hash(), &content.manifest).unwrap();
    receiver.poll(now);
    let blocks = mirror.blocks();
    let wrong = blocks[1];
    let k = mirror.object(wrong.toi).0.source_symbols(wrong.sbn).unwrap();
    let mut symbols = mirror.symbols(wrong, 0..k);
    symbols[100] ^= 1;
    assert_eq!(receiver.pull(now, wrong, 0, &symbols), u64::from(k));
    let is_corrupt = |event: &ReceiverEvent| matches!(event, ReceiverEvent::BlockCorrupt { block, .. } if *block == wrong);
    assert!(receiver.events.iter().any(is_corrupt), "{:?}", receiver.events);
    assert!(receiver.endpoint.is_suspect(wrong));
    assert!(receiver.endpoint.refetch(wrong));
    receiver.poll(now);
    assert_eq!(receiver.endpoint.missing_source(wrong, Esi(0)), Some(0..k));
    // Packets of the block count for nothing now.
    let setup = Setup { seed: 8, ..Setup::default() };
    let mut sender = SenderDriver::new(sender(&content, &setup, None), &content);
    for millis in 0..2_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        for datagram in sender.poll(now) {
            receiver.maybe_hear(now, source(1), &datagram);
        }
    }
    assert_eq!(receiver.endpoint.missing_source(wrong, Esi(0)), Some(0..k));
    assert!(!receiver.has(&content));
    assert_eq!(mirror.fill(now, &mut receiver, wrong), u64::from(k));
    assert!(receiver.has(&content));
    assert!(!receiver.endpoint.refetch(wrong), "it is verified");
}

/// A block without repair symbols.
fn uncoded(symbols: u16) -> Content {
    let none = |_: u8, k: u32| FecScheme::NoCode(NoCode { max_source_block_length: k });
    Content::coded(&[(usize::from(symbols) * usize::from(T), 1)], 3, 1, &none)
}

/// What a sender sends in the first 300 ms: its control packets, and each symbol of the first block
/// of [`uncoded`] content once, by its ESI.
fn sent(content: &Content) -> (Vec<Vec<u8>>, BTreeMap<u32, Vec<u8>>) {
    let mut sender = SenderDriver::new(sender(content, &Setup::default(), None), content);
    let (mut control, mut symbols) = (Vec::new(), BTreeMap::new());
    for millis in 0..300 {
        for datagram in sender.poll(Instant::ZERO + Duration::from_millis(millis)) {
            let packet = Packet::parse(&datagram).unwrap();
            if packet.header.toi == Some(Toi(1)) {
                let payload = packet.payload(EncodingId(packet.header.codepoint)).unwrap();
                symbols.insert(payload.unwrap().esi.0, datagram);
            } else {
                control.push(datagram);
            }
        }
    }
    (control, symbols)
}

fn wrong(datagram: &[u8]) -> Vec<u8> {
    let mut wrong = datagram.to_vec();
    *wrong.last_mut().unwrap() ^= 1;
    wrong
}

const BLOCK: BlockId = BlockId { toi: Toi(1), sbn: Sbn(0) };

/// A receiver that one sender has brought all symbols of a block but the first, and another one a
/// wrong first one: it waits for those of the first sender.
fn waiting_for_one_source(content: &Content) -> ReceiverDriver {
    let (now, mut receiver) = (Instant::ZERO, receiver(content));
    let (control, symbols) = sent(content);
    for datagram in &control {
        receiver.maybe_hear(now, source(1), datagram);
        receiver.maybe_hear(now, source(2), datagram);
    }
    symbols.values().skip(1).for_each(|datagram| receiver.maybe_hear(now, source(1), datagram));
    receiver.maybe_hear(now, source(2), &wrong(&symbols[&0]));
    assert_eq!(receiver.endpoint.stats().corrupt_blocks, 1);
    assert_eq!(receiver.endpoint.missing_source(BLOCK, Esi(0)), Some(0..1));
    receiver
}

#[test]
fn pulled_symbols_complete_a_block_that_waits_for_those_of_one_sender() {
    let content = uncoded(20);
    let mut receiver = waiting_for_one_source(&content);
    Mirror(&content).fill(Instant::ZERO, &mut receiver, BLOCK);
    assert!(receiver.has(&content));
}

#[test]
fn a_block_that_waits_for_the_symbols_of_one_sender_is_fetched_again() {
    let content = uncoded(20);
    let mut receiver = waiting_for_one_source(&content);
    assert!(receiver.endpoint.refetch(BLOCK));
    receiver.poll(Instant::ZERO);
    assert_eq!(Mirror(&content).fill(Instant::ZERO, &mut receiver, BLOCK), 20);
    assert!(receiver.has(&content));
}

#[test]
fn symbols_that_arrived_before_their_session_was_accepted_do_not_join_pulled_ones() {
    let (content, now) = (uncoded(20), Instant::ZERO);
    let mut receiver = receiver(&content);
    let (control, symbols) = sent(&content);
    control.iter().for_each(|datagram| receiver.maybe_hear(now, source(1), datagram));
    // The head of the second sender is late.
    symbols.values().take(5).for_each(|datagram| receiver.maybe_hear(now, source(2), datagram));
    assert!(receiver.endpoint.refetch(BLOCK));
    control.iter().for_each(|datagram| receiver.maybe_hear(now, source(2), datagram));
    assert_eq!(receiver.endpoint.missing_source(BLOCK, Esi(0)), Some(0..20));
}

#[test]
fn a_block_that_waits_for_other_copies_of_its_symbols_is_suspect() {
    let (content, now) = (uncoded(20), Instant::ZERO);
    let mut receiver = receiver(&content);
    let (control, symbols) = sent(&content);
    control.iter().for_each(|datagram| receiver.maybe_hear(now, source(1), datagram));
    for _ in 0..2 {
        receiver.maybe_hear(now, source(1), &wrong(&symbols[&0]));
        symbols.values().skip(1).for_each(|datagram| receiver.maybe_hear(now, source(1), datagram));
    }
    assert_eq!(receiver.endpoint.stats().corrupt_blocks, 2);
    assert_eq!(receiver.endpoint.missing_source(BLOCK, Esi(0)), None, "all are in their places");
    assert!(receiver.endpoint.is_suspect(BLOCK));
    assert_eq!(receiver.endpoint.suspect_block(), Some(BLOCK));
    assert!(receiver.endpoint.refetch(BLOCK));
    receiver.poll(now);
    assert_eq!(Mirror(&content).fill(now, &mut receiver, BLOCK), 20);
    assert!(receiver.has(&content));
}
