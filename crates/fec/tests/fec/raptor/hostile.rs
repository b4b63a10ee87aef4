//! Symbols that an attacker may push.

use crate::block::{Block, execute, symbol};
use crate::raptor::RAPTOR;
use fontana_fec::codes::raptor::Raptor;
use fontana_fec::{Esi, EsiError, FecScheme, Novelty, Oti, OtiError, Progress, Work};

#[test]
fn the_last_esi_is_accepted_and_the_next_refused() {
    for (k, n) in [(1, 1), (3, 3), (4, 1 << 16), (100, 1 << 16)] {
        let mut decoder = RAPTOR.decoder(k).unwrap();
        assert_eq!(decoder.push(Esi(n - 1)), Ok(Novelty::Fresh));
        assert_eq!(decoder.push(Esi(n - 1)), Ok(Novelty::Duplicate));
        for esi in [Esi(n), Esi(u32::MAX)] {
            assert_eq!(decoder.push(esi), Err(EsiError { esi, encoding_symbols: n }));
        }
        assert_eq!(decoder.symbols_wanted(), k - 1);
    }
}

#[test]
fn blocks_of_no_symbols_and_of_too_many_are_refused() {
    for (k, fits) in [(0, false), (1, true), (8_192, true), (8_193, false), (u32::MAX, false)] {
        assert_eq!(RAPTOR.decoder(k).is_ok(), fits, "{k}");
    }
}

#[test]
fn parameters_beyond_the_code_are_refused() {
    let layout = |transfer_length, symbol_size, source_blocks, sub_blocks, alignment| {
        let scheme = FecScheme::Raptor(Raptor { source_blocks, sub_blocks, alignment });
        Oti { transfer_length, symbol_size, scheme }.layout()
    };
    assert_eq!(layout(8_193, 1, 2, 1, 1).map(|layout| layout.max_source_symbols()), Ok(4_097));
    assert_eq!(layout(8_192, 1, 1, 1, 1).map(|layout| layout.max_source_symbols()), Ok(8_192));
    let too_long = OtiError::BlockLength { actual: 8_193, limit: 8_192 };
    assert_eq!(layout(8_193, 1, 1, 1, 1), Err(too_long));
    for (z, n, al) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
        assert!(matches!(layout(100, 4, z, n, al), Err(OtiError::Zero(_))));
    }
    for (size, n, al) in [(10, 1, 4), (8, 3, 4)] {
        assert!(matches!(layout(100, size, 1, n, al), Err(OtiError::Alignment { .. })));
    }
    let actual = 1 << 45;
    let too_long = OtiError::TransferLength { actual, limit: actual - 1 };
    assert_eq!(layout(actual, u16::MAX, u16::MAX, 1, 1), Err(too_long));
    assert_eq!(layout(0, 4, 1, 1, 4).map(|layout| layout.block_count()), Ok(0));
}

#[test]
fn a_budget_that_is_too_small_can_be_raised() {
    let k = 1000;
    let mut decoder = RAPTOR.decoder(k).unwrap();
    for esi in k..2 * k + 20 {
        decoder.push(Esi(esi)).unwrap();
    }
    let Work(enough) = RAPTOR.block_profile(k).work;
    let mut attempts = 0;
    for budget in (0..).map(|doublings| 1 << doublings).take_while(|&budget| budget < enough) {
        match decoder.solve(Work(budget)) {
            Progress::OutOfBudget => attempts += 1,
            Progress::Solved(plan) => {
                // The default budget has a margin.
                assert!(attempts > 10 && budget < enough / 2, "{budget} of {enough}");
                assert_eq!(plan.lost().len(), k as usize);
                return;
            }
            Progress::Wanting(lack) => panic!("{lack} lacking"),
        }
    }
    panic!("no budget was enough");
}

/// Symbols `x` and `x + 65 521` are the same sum (RFC 5053, section 5.4.4.4): one of them is no
/// progress, and others complete the block.
#[test]
fn dependent_symbols_are_recognised_and_completed() {
    let k = 10;
    let mut decoder = RAPTOR.decoder(k).unwrap();
    for esi in (0..k - 1).chain([65_521]).map(Esi) {
        assert_eq!(decoder.push(esi), Ok(Novelty::Fresh));
    }
    assert_eq!(decoder.symbols_wanted(), 0, "not known before it is tried");
    assert!(matches!(decoder.solve(Work::UNBOUNDED), Progress::Wanting(1)));
    assert_eq!(decoder.symbols_wanted(), 1);
    decoder.push(Esi(0)).unwrap();
    assert_eq!(decoder.symbols_wanted(), 1, "a duplicate is no progress");
    decoder.push(Esi(65_530)).unwrap();
    let Progress::Solved(plan) = decoder.solve(RAPTOR.block_profile(k).work) else {
        panic!("65 530 is the missing source symbol")
    };
    assert_eq!(plan.lost(), [Esi(k - 1)]);
    let block = Block::random(k, 8, 3);
    let encoder = block.encoder_of(RAPTOR);
    block.assert_recovered(&execute(&plan, 8, |esi, out| {
        out.copy_from_slice(&symbol(&encoder, esi));
    }));
}

#[test]
fn repair_symbols_are_stored_up_to_a_surplus_and_source_symbols_always() {
    let k = 500;
    let mut decoder = RAPTOR.decoder(k).unwrap();
    let fresh = (k..10 * k).filter(|&esi| decoder.push(Esi(esi)) == Ok(Novelty::Fresh)).count();
    assert_eq!(fresh, 564);
    for esi in 0..k {
        assert_eq!(decoder.push(Esi(esi)), Ok(Novelty::Fresh), "{esi}");
    }
    assert!(matches!(decoder.solve(Work(0)), Progress::Solved(plan) if plan.lost().is_empty()));
}
