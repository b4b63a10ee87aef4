//! Symbols that an attacker may push.

use crate::sparse::degrees::FAST_10_000;
use fontana_fec::codes::lt::{Lt, LtCode, Profile};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::study::lt::Rows;
use fontana_fec::{Esi, EsiError, FecScheme, IdDecoder, Novelty, Oti, OtiError, Progress, Work};

const TORNADO: FecScheme =
    FecScheme::Tornado(Tornado { max_source_block_length: 16_000, code: TornadoCode::Z });

fn lt(code: LtCode) -> FecScheme {
    FecScheme::Lt(Lt { max_source_block_length: 1 << 20, code })
}

fn lacks(progress: Progress) -> u32 {
    match progress {
        Progress::Wanting(lack) => lack,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_esi_is_accepted_and_the_next_refused() {
    for (scheme, n) in [(TORNADO, 200), (lt(FAST_10_000), u32::MAX)] {
        assert_eq!(scheme.block_profile(100).encoding_symbols, n);
        let mut decoder = scheme.decoder(100).unwrap();
        assert_eq!(decoder.push(Esi(n - 1)), Ok(Novelty::Fresh));
        assert_eq!(decoder.push(Esi(n - 1)), Ok(Novelty::Duplicate));
        for esi in [Esi(n), Esi(u32::MAX)] {
            assert_eq!(decoder.push(esi), Err(EsiError { esi, encoding_symbols: n }));
        }
        assert_eq!(decoder.symbols_wanted(), 99);
    }
}

#[test]
fn block_lengths_beyond_the_code_are_refused() {
    for (scheme, limit) in [(TORNADO, 64_000), (lt(FAST_10_000), 1 << 20)] {
        assert_eq!(scheme.profile().max_source_symbols, limit);
        for (k, fits) in [(0, false), (1, true), (limit, true), (limit + 1, false)] {
            assert_eq!(scheme.decoder(k).is_ok(), fits, "{k}");
        }
        let with_blocks_of = |length: u32| match scheme {
            FecScheme::Lt(Lt { code, .. }) => {
                FecScheme::Lt(Lt { max_source_block_length: length, code })
            }
            _ => FecScheme::Tornado(Tornado {
                max_source_block_length: length,
                code: TornadoCode::Z,
            }),
        };
        let oti = |transfer_length, length| Oti {
            transfer_length,
            symbol_size: 1,
            scheme: with_blocks_of(length),
        };
        let layout = oti(u64::from(limit) + 1, limit).layout().unwrap();
        assert_eq!((layout.block_count(), layout.max_source_symbols()), (2, limit / 2 + 1));
        let too_long = OtiError::BlockLength { actual: u64::from(limit) + 1, limit };
        assert_eq!(oti(u64::from(limit) + 1, u32::MAX).layout(), Err(too_long));
        let too_many = OtiError::BlockCount { actual: 65_537, limit: 65_536 };
        assert_eq!(oti(65_537, 1).layout(), Err(too_many));
        assert!(matches!(oti(1, 0).layout(), Err(OtiError::Zero(_))));
    }
}

/// Every symbol is the sum of the same few symbols of high degree: peeling never starts, and the
/// decoder reports it.
#[test]
fn symbols_of_high_degree_alone_fail_at_a_bounded_cost() {
    let k = 2_000;
    for profile in [Profile::Fast, Profile::Strict] {
        let code = LtCode { profile, seed: 1, spike: k, ripple: 0, spike_weight: u32::MAX };
        let rows = Rows::new(code, k).unwrap();
        let mut heavy = (k..).map(Esi).filter(|&esi| rows.degree(esi) == k);
        let scheme = lt(code);
        let mut decoder = scheme.decoder(k).unwrap();
        let kept =
            heavy.by_ref().take(10_000).filter(|&esi| decoder.push(esi) == Ok(Novelty::Fresh));
        assert_eq!(kept.count(), 3 * k as usize + 1024, "no more is kept");
        loop {
            match decoder.solve(scheme.block_profile(k).work) {
                Progress::OutOfBudget => {}
                progress => break assert!(lacks(progress) > 0),
            }
        }
    }
}

#[test]
fn a_budget_that_is_too_small_can_be_raised() {
    let strict = LtCode { profile: Profile::Strict, ..FAST_10_000 };
    let k = 4_000;
    for scheme in [TORNADO, lt(strict)] {
        let start = if scheme.profile().is_systematic { 0 } else { k };
        let all = scheme.block_profile(k).encoding_symbols.min(4 * k) - start;
        let mut esis =
            (0..all).map(|i| Esi(start + (u64::from(i) * 7_919 % u64::from(all)) as u32));
        let mut decoder = scheme.decoder(k).unwrap();
        esis.by_ref().take(k as usize).for_each(|esi| assert!(decoder.push(esi).is_ok()));
        let mut attempts = 0;
        loop {
            match decoder.solve(Work(1 << attempts)) {
                Progress::OutOfBudget => attempts += 1,
                Progress::Wanting(lack) => {
                    let more = esis.by_ref().take(lack as usize);
                    assert!(more.map(|esi| decoder.push(esi).unwrap()).count() > 0, "all pushed");
                }
                Progress::Solved(_) => break,
            }
        }
        assert!(attempts > 8, "{scheme:?}: {attempts}");
    }
}

/// Blocks of honest symbols, with the default budget.
#[test]
fn the_default_budget_is_several_times_what_it_takes() {
    for k in [1, 10, 100, 1_000, 10_000] {
        let schemes = [TORNADO, lt(LtCode::fast(k, 3)), lt(LtCode::strict(k, 3))];
        for scheme in schemes {
            let mut decoder = scheme.decoder(k).unwrap();
            let mut esis = (0..scheme.block_profile(k).encoding_symbols).rev().map(Esi);
            loop {
                for esi in esis.by_ref().take(decoder.symbols_wanted() as usize) {
                    decoder.push(esi).unwrap();
                }
                match decoder.solve(Work(scheme.block_profile(k).work.0 / 3)) {
                    Progress::Wanting(_) => {}
                    Progress::Solved(_) => break,
                    Progress::OutOfBudget => panic!("k = {k}, {scheme:?}"),
                }
            }
        }
    }
}

#[test]
fn a_solved_block_accepts_no_more_symbols_and_gives_the_same_plan() {
    for scheme in [TORNADO, lt(LtCode::strict(300, 1))] {
        let mut decoder: Box<dyn IdDecoder> = scheme.decoder(300).unwrap();
        let mut esis = (0..).map(|i| Esi(300 + i % 300)).skip(20);
        let first = loop {
            match decoder.solve(Work::UNBOUNDED) {
                Progress::Solved(plan) => break plan,
                Progress::Wanting(lack) => {
                    for _ in 0..lack {
                        let esi = esis.next().unwrap();
                        if decoder.push(esi) == Ok(Novelty::Duplicate) {
                            // Checks alone do not suffice: some source symbols, then.
                            decoder.push(Esi(esi.0 - 300)).unwrap();
                        }
                    }
                }
                Progress::OutOfBudget => panic!("without a budget"),
            }
        };
        assert_eq!(decoder.symbols_wanted(), 0);
        assert_eq!(decoder.push(Esi(299)), Ok(Novelty::Duplicate));
        let Progress::Solved(second) = decoder.solve(Work(0)) else { panic!("it was solved") };
        assert_eq!(first.inputs(), second.inputs());
        assert_eq!(first.lost(), second.lost());
    }
}
