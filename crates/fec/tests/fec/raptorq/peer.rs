//! Equality with the crate `raptorq`, an independent implementation of RFC 6330, in both
//! directions.

use crate::block::{Block, RAPTORQ, Random, execute, solve_at_last, symbol};
use fontana_fec::Esi;
use proptest::prelude::*;
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder,
};

fn config(block: &Block) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(block.bytes.len() as u64, block.width as u16, 1, 1, 1)
}

/// ESIs of a block of `k` of which a share of the source symbols is lost and replaced by repair
/// symbols from all over the range: `k + extra` in all.
fn reception(k: u32, loss: f64, extra: u32, seed: u64) -> Vec<Esi> {
    let mut random = Random(seed);
    let lost = |random: &mut Random| f64::from(random.below(1 << 20)) < loss * f64::from(1 << 20);
    let mut esis: Vec<Esi> = (0..k).map(Esi).filter(|_| !lost(&mut random)).collect();
    while esis.len() < (k + extra) as usize {
        let repair = match random.below(3) {
            0 => k + random.below(2 * k),
            1 => k + random.below((1 << 24) - k),
            _ => (1 << 24) - 1 - random.below(2 * k),
        };
        if !esis.contains(&Esi(repair)) {
            esis.push(Esi(repair));
        }
    }
    esis
}

/// Blocks that are short enough for a test, with a loss from none to all.
fn cases() -> impl Strategy<Value = (u32, usize, f64, u32, u64)> {
    let k = prop_oneof![1..30_u32, 1..300_u32, 1..1500_u32];
    let width = prop_oneof![1..70_usize, 1..700_usize];
    let loss = prop_oneof![Just(0.0), 0.0..0.1, 0.0..=1.0, Just(1.0)];
    (k, width, loss, 0..4_u32, any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn repair_symbols_are_those_of_the_peer((k, width, _, _, seed) in cases(), far in 0..1_u32 << 24) {
        let block = Block::random(k, width, seed);
        let ours = block.encoder();
        let theirs = SourceBlockEncoder::new(0, &config(&block), &block.bytes);
        let last = (1 << 24) - 1 - k;
        for start in [0, far.min(last), last] {
            for packet in theirs.repair_packets(start, 1 + u32::from(start < last)) {
                let esi = Esi(packet.payload_id().encoding_symbol_id());
                prop_assert_eq!(symbol(&ours, esi), packet.data(), "{:?}", esi);
            }
        }
    }

    #[test]
    fn we_decode_what_the_peer_encodes((k, width, loss, extra, seed) in cases()) {
        let block = Block::random(k, width, seed);
        let theirs = SourceBlockEncoder::new(0, &config(&block), &block.bytes);
        let esis = reception(k, loss, extra, seed);
        let plan = solve_at_last(k, esis.iter().copied());
        let decoded = execute(&plan, width, |esi, out| match esi.0.checked_sub(k) {
            None => out.copy_from_slice(block.symbol(esi)),
            Some(repair) => out.copy_from_slice(theirs.repair_packets(repair, 1)[0].data()),
        });
        let lost: Vec<Esi> = (0..k).map(Esi).filter(|esi| !esis.contains(esi)).collect();
        prop_assert_eq!(plan.lost(), lost);
        block.assert_recovered(&decoded);
    }

    #[test]
    fn the_peer_decodes_what_we_encode((k, width, loss, extra, seed) in cases()) {
        let block = Block::random(k, width, seed);
        let ours = block.encoder();
        let mut theirs = SourceBlockDecoder::new(0, &config(&block), block.bytes.len() as u64);
        let packet = |esi: Esi| EncodingPacket::new(PayloadId::new(0, esi.0), symbol(&ours, esi));
        let mut esis = reception(k, loss, extra, seed);
        // The two agree on which symbols suffice, too.
        while !matches!(crate::block::solve(k, esis.iter().copied()), fontana_fec::Progress::Solved(_)) {
            prop_assert_eq!(theirs.decode(esis.iter().map(|&esi| packet(esi))), None);
            theirs = SourceBlockDecoder::new(0, &config(&block), block.bytes.len() as u64);
            esis.push(Esi((1 << 24) - 1 - 2 * k - esis.len() as u32));
        }
        prop_assert_eq!(theirs.decode(esis.iter().map(|&esi| packet(esi))), Some(block.bytes));
    }
}

#[test]
fn the_largest_block_is_that_of_the_peer() {
    let block = Block::random(56_403, 2, 1);
    let ours = block.encoder();
    let theirs = SourceBlockEncoder::new(0, &config(&block), &block.bytes);
    for packet in theirs.repair_packets(0, 1000) {
        let esi = Esi(packet.payload_id().encoding_symbol_id());
        assert_eq!(symbol(&ours, esi), packet.data(), "{esi:?}");
    }
    let plan = solve_at_last(block.k, reception_fast(block.k));
    let decoded = execute(&plan, 2, |esi, out| out.copy_from_slice(&symbol(&ours, esi)));
    block.assert_recovered(&decoded);
    assert!(RAPTORQ.decoder(56_404).is_err());
}

/// Every other source symbol, and as many repair symbols.
fn reception_fast(k: u32) -> impl Iterator<Item = Esi> {
    (0..k).map(move |i| Esi(if i % 2 == 0 { i } else { k + i }))
}
