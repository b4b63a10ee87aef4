//! A block without the transfer that it is part of.

use super::*;
use crate::job::ReceiveJob;
use crate::receiver::config::DecodePolicy;
use crate::receiver::sources::Sources;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{Located, Location, Progress, Sbn};
use fontana_wire::{Hash, Toi};

#[test]
fn patience_waits_for_the_margin_but_for_no_more_than_an_eighth_of_a_tornado_block() {
    const K: u32 = 1_000;
    let id = BlockId { toi: Toi(1), sbn: Sbn(0) };
    let scheme = FecScheme::Tornado(Tornado { max_source_block_length: K, code: TornadoCode::Z });
    for (margin, attempted_at) in [(0, 1_000), (60, 1_060), (u32::MAX, 1_125)] {
        let mut block = Block::new(id, scheme, K, Arc::new(PlanCache::new(1)));
        let attempted = (K / 2..2 * K).position(|esi| {
            block.take(Esi(esi), SourceId::default(), &[], 0);
            let is_attempted = block.try_solve(DecodePolicy::Patient { margin }).is_some();
            assert!(is_attempted || block.symbols_lacking() > 0, "it requests what it waits for");
            is_attempted
        });
        assert_eq!(attempted, Some(attempted_at - 1), "{margin}");
    }
}

#[test]
fn a_slot_that_was_used_again_has_its_last_symbol() {
    let id = BlockId { toi: Toi(1), sbn: Sbn(0) };
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });
    let mut block = Block::new(id, scheme, 10, Arc::new(PlanCache::new(1)));
    block.restore(&SavedBlock {
        block: id,
        is_complete: false,
        in_place: (0..7).map(Esi).collect(),
        // Symbol 20 was wrong, and so was 22 in slot 1.
        repair: [(20, 0), (22, 1), (21, 0), (23, 1), (22, 2)].map(|(e, s)| (Esi(e), s)).into(),
    });
    assert_eq!(block.repair.list(), [Esi(21), Esi(23), Esi(22)]);
    assert_eq!(block.fresh, 10);
}

const A: SourceId = SourceId::new(1);
const B: SourceId = SourceId::new(2);

fn new_block(scheme: FecScheme, source_symbols: u32) -> Block {
    let id = BlockId { toi: Toi(1), sbn: Sbn(0) };
    Block::new(id, scheme, source_symbols, Arc::new(PlanCache::new(1)))
}

fn raptorq(source_symbols: u32) -> Block {
    let scheme = RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 };
    new_block(FecScheme::RaptorQ(scheme), source_symbols)
}

/// The symbols of the two sources differ.
fn take(block: &mut Block, esi: u32, source: SourceId) -> Taken {
    let bytes = [esi as u8, u8::from(source == B)];
    block.take(Esi(esi), source, &bytes, 1 << 20).0
}

/// The decoder of an attempt to solve the block that has begun.
fn begin_solving(block: &mut Block) -> Box<dyn IdDecoder> {
    match block.try_solve(DecodePolicy::Incremental) {
        Some(ReceiveJob::Solve { decoder, .. }) => decoder,
        job => panic!("{job:?}"),
    }
}

/// Solves the block, and begins to recover it.
fn recover(block: &mut Block) {
    let mut decoder = begin_solving(block);
    let progress = decoder.solve(Work::UNBOUNDED);
    let plan = block.on_solved(decoder, progress);
    assert!(matches!(block.work_on_bytes(plan, None), Some(ReceiveJob::Recover { .. })));
}

#[test]
fn a_symbol_that_was_dropped_is_of_no_source() {
    let mut block = raptorq(10);
    (0..9).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    assert_eq!(take(&mut block, 20, B), Taken::Fresh);
    recover(&mut block);
    assert_eq!(block.on_corrupt(), Sequel::Collects);
    (21..25).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    assert!(matches!(block.work_on_bytes(None, None), Some(ReceiveJob::Locate(_))));
    let located = Located { wrong: vec![Esi(20)], surplus_left: 3, rank: 1 };
    assert_eq!(
        block.on_located(Instant::ZERO, Location::Located(located)),
        Sequel::Dropped(vec![B])
    );
    assert_eq!(block.symbols_by_source(), [(A, 13)].into());
}

#[test]
fn a_symbol_that_was_replaced_is_of_the_source_of_its_copy() {
    let mut block = new_block(FecScheme::NoCode(NoCode { max_source_block_length: 2 }), 2);
    for sequel in [Sequel::Restarted, Sequel::Collects] {
        assert_eq!([0, 1].map(|esi| take(&mut block, esi, A)), [Taken::Fresh; 2]);
        recover(&mut block);
        assert_eq!(block.on_corrupt(), Sequel::Unlocated);
        assert_eq!(block.begin_again(None), sequel);
    }
    assert_eq!(take(&mut block, 0, B), Taken::Disputed);
    let choice = block.work_on_bytes(None, Some(Hash([0; 32])));
    assert!(matches!(choice, Some(ReceiveJob::Choose(_))));
    assert!(matches!(block.on_chosen(Some(&[Esi(0)])), Sequel::Replaced(_)));
    assert_eq!(block.symbols_by_source(), [(A, 1), (B, 1)].into());
}

#[test]
fn a_block_is_not_fetched_again_while_a_worker_has_its_decoder_or_its_symbols() {
    let mut block = raptorq(10);
    (0..10).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    let mut decoder = begin_solving(&mut block);
    assert!(!block.refetch(), "the solution would be that of other symbols");
    let progress = decoder.solve(Work::UNBOUNDED);
    let plan = block.on_solved(decoder, progress);
    assert!(block.work_on_bytes(plan, None).is_some() && !block.refetch());
    assert_eq!(block.on_corrupt(), Sequel::Collects);
    (20..24).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    assert!(block.work_on_bytes(None, None).is_some() && !block.refetch());
    assert_eq!(block.on_located(Instant::ZERO, Location::Wanting(4)), Sequel::Collects);
    assert!(block.refetch() && block.symbols_wanted() == 10);
}

#[test]
fn symbols_that_arrive_twice_do_not_take_all_slots() {
    let mut block = raptorq(10);
    (20..30).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    for _ in 0..2_000 {
        let decoder = begin_solving(&mut block);
        (20..22).for_each(|esi| _ = take(&mut block, esi, B));
        assert!(block.on_solved(decoder, Progress::Wanting(1)).is_none());
    }
    assert_eq!(take(&mut block, 40, A), Taken::Fresh);
    assert_eq!(block.symbols_by_source(), [(A, 11)].into(), "the first ones are in their slots");
}

#[test]
fn a_symbol_that_was_not_placed_is_taken_when_it_arrives_again() {
    const K: u32 = 2_000;
    let tornado = Tornado { max_source_block_length: K, code: TornadoCode::Z };
    let mut block = new_block(FecScheme::Tornado(tornado), K);
    assert_eq!(block.begin_again(None), Sequel::Restarted, "symbols are compared now");
    let (first, others) = (K / 2..3 * K / 2, (0..K / 2).chain(3 * K / 2..2 * K));
    first.for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    let decoder = begin_solving(&mut block);
    let late = others.clone().find(|&esi| take(&mut block, esi, A) == Taken::Late);
    assert_eq!(late, others.clone().nth(MEANWHILE_SYMBOLS));
    assert!(block.on_solved(decoder, Progress::Wanting(1)).is_none());
    assert_eq!(take(&mut block, late.unwrap(), A), Taken::Fresh);
}

#[test]
fn a_block_is_not_solved_from_a_symbol_that_was_not_placed() {
    let code = ReedSolomonCode::Rfc5510;
    let scheme = ReedSolomon { code, max_source_block_length: 4, max_encoding_symbols: 9 };
    let mut block = new_block(FecScheme::ReedSolomon(scheme), 4);
    assert_eq!(block.begin_again(None), Sequel::Restarted, "symbols are compared now");
    [0, 1, 2, 5].into_iter().for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    let decoder = begin_solving(&mut block);
    assert!(block.on_solved(decoder, Progress::OutOfBudget).is_none());
    assert_eq!(take(&mut block, 6, A), Taken::Duplicate, "four symbols are enough");
    assert_eq!(take(&mut block, 0, B), Taken::Disputed);
    assert_eq!(take(&mut block, 7, A), Taken::Fresh);
    while block.received < block.solve_at {
        assert_eq!(take(&mut block, 1, A), Taken::Duplicate);
    }
    let mut decoder = begin_solving(&mut block);
    let progress = decoder.solve(Work::UNBOUNDED);
    let plan = block.on_solved(decoder, progress).unwrap();
    assert_eq!(plan.inputs(), [1, 2, 5, 7].map(Esi));
}

#[test]
fn a_repeat_of_a_symbol_does_not_replace_it_while_its_block_is_solved() {
    let mut block = raptorq(10);
    (0..9).chain(20..21).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    let mut decoder = begin_solving(&mut block);
    let forged = block.take(Esi(3), B, &[0xFF; 2], 0);
    assert!(matches!(forged, (Taken::Duplicate, None)), "{forged:?}");
    // One that was lost, and its repeat.
    assert_eq!([9, 9].map(|esi| take(&mut block, esi, B)), [Taken::Fresh, Taken::Duplicate]);
    let progress = decoder.solve(Work::UNBOUNDED);
    assert_eq!(block.on_solved(decoder, progress).unwrap().lost(), [Esi(9)]);
    assert_eq!(block.symbols_by_source(), [(A, 10), (B, 1)].into());
    // A symbol that was found to be wrong is not in its place.
    assert!(block.work_on_bytes(None, None).is_some());
    assert_eq!(block.on_corrupt(), Sequel::Collects);
    (21..24).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    assert!(matches!(block.work_on_bytes(None, None), Some(ReceiveJob::Locate(_))));
    let located = Located { wrong: vec![Esi(9)], surplus_left: 3, rank: 1 };
    assert_eq!(
        block.on_located(Instant::ZERO, Location::Located(located)),
        Sequel::Dropped(vec![B])
    );
    assert!(!block.in_place.contains(Esi(9)) && block.in_place.contains(Esi(3)));
}

#[test]
fn a_verified_block_proves_the_symbols_that_it_was_recovered_from() {
    for (lost, by_source) in [(1, [(A, 10)].into()), (0, [(A, 9), (B, 1)].into())] {
        let mut block = raptorq(10);
        (0..9).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        let last = if lost > 0 { (20, A) } else { (9, B) };
        assert_eq!(take(&mut block, last.0, last.1), Taken::Fresh);
        let mut decoder = begin_solving(&mut block);
        // If a block has all source symbols, no symbol that comes later is of use.
        let forged = (30..32).filter(|&esi| take(&mut block, esi, B) == Taken::Fresh).count();
        assert_eq!(forged, 2 * lost);
        let progress = decoder.solve(Work::UNBOUNDED);
        let plan = block.on_solved(decoder, progress);
        assert!(matches!(block.work_on_bytes(plan, None), Some(ReceiveJob::Recover { .. })));
        assert_eq!(block.proven_by_source(), by_source);
    }
}

#[test]
fn a_source_symbol_that_arrives_while_its_block_is_solved_is_not_recovered() {
    let mut block = raptorq(10);
    (0..7).chain(20..23).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    let mut decoder = begin_solving(&mut block);
    assert_eq!(take(&mut block, 8, B), Taken::Fresh);
    let progress = decoder.solve(Work::UNBOUNDED);
    let plan = block.on_solved(decoder, progress).unwrap();
    assert_eq!(plan.lost(), [7, 8, 9].map(Esi));
    let job = block.work_on_bytes(Some(plan), None);
    let Some(ReceiveJob::Recover { arrived, .. }) = job else { panic!("{job:?}") };
    assert_eq!(arrived, [Esi(8)]);
    assert_eq!(block.symbols_by_source(), [(A, 10), (B, 1)].into());
    // If a symbol is wrong, this one helps to find it.
    assert_eq!((block.on_corrupt(), block.symbols_wanted()), (Sequel::Collects, 3));
}

/// A choice that was wrong is not kept: the symbols that it left out count again, and others are
/// left out.
#[test]
fn a_choice_ends_when_the_hash_of_its_block_is_wrong_again() {
    let sources = Sources::default();
    let mut block = raptorq(10);
    let cases = [
        (Some(Choice::Without(A)), [true, false]),
        (Some(Choice::Without(B)), [false, true]),
        (Some(Choice::Alone(B)), [true, false]),
        (None, [false, false]),
    ];
    for (choice, waits) in cases {
        (0..10).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
        recover(&mut block);
        assert_eq!(block.on_corrupt(), Sequel::Collects);
        let _ = block.begin_again(choice);
        assert_eq!([A, B].map(|source| block.holds_back(source, Esi(40), &sources)), waits);
        assert_eq!(block.restart(), Sequel::Restarted);
    }
}

/// A sender may send fewer symbols of a code than it has: FCAST with a stretch factor of 1, for
/// example. The search for a wrong one waits for others then.
#[test]
fn a_corrupt_block_of_which_nothing_else_is_sent_begins_again() {
    let code = ReedSolomonCode::Cauchy;
    let scheme = ReedSolomon { code, max_source_block_length: 10, max_encoding_symbols: 20 };
    let mut block = new_block(FecScheme::ReedSolomon(scheme), 10);
    (0..10).for_each(|esi| assert_eq!(take(&mut block, esi, A), Taken::Fresh));
    recover(&mut block);
    assert_eq!(block.on_corrupt(), Sequel::Collects);
    let mut repeat = |esi: u32| {
        assert_eq!(take(&mut block, esi % 10, A), Taken::Duplicate, "{esi}");
        block.give_up_waiting()
    };
    (0..19).for_each(|esi| assert_eq!(repeat(esi), None, "{esi}"));
    assert_eq!(repeat(19), Some(Sequel::Unlocated));
    assert_eq!(take(&mut block, 12, A), Taken::Fresh);
    assert_eq!(block.give_up_waiting(), None, "others are sent");
    assert_eq!(block.begin_again(None), Sequel::Restarted);
}

/// A symbol that an earlier run has saved is wrong, and what other receivers send of the block is
/// right.
#[test]
fn what_a_receiver_has_itself_is_dropped_after_many_rounds() {
    let shared = SourceId::of_number(3);
    let mut block = new_block(FecScheme::NoCode(NoCode { max_source_block_length: 2 }), 2);
    assert_eq!(take(&mut block, 0, A), Taken::Fresh);
    let rounds = (0..100).position(|round| {
        assert_eq!(take(&mut block, 1, shared), Taken::Fresh);
        // The session sends it again from then on.
        assert!(round < 20 || take(&mut block, 0, A) == Taken::Duplicate);
        recover(&mut block);
        assert_eq!(block.on_corrupt(), Sequel::Unlocated);
        block.begin_again(None) == Sequel::Restarted
    });
    assert_eq!(rounds, Some(23));
    assert_eq!(take(&mut block, 0, shared), Taken::Fresh);
}
