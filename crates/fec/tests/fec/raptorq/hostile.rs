//! Symbols that an attacker may push.

use crate::block::{Block, RAPTORQ, Random, execute, solve, symbol};
use fontana_fec::{Esi, EsiError, IdDecoder, Novelty, Progress, Work};

fn decoder(k: u32) -> Box<dyn IdDecoder> {
    RAPTORQ.decoder(k).unwrap()
}

#[test]
fn the_last_esi_is_accepted_and_the_next_refused() {
    let mut decoder = decoder(10);
    assert_eq!(decoder.push(Esi((1 << 24) - 1)), Ok(Novelty::Fresh));
    for esi in [Esi(1 << 24), Esi(u32::MAX)] {
        let refused = EsiError { esi, encoding_symbols: 1 << 24 };
        assert_eq!(decoder.push(esi), Err(refused));
    }
    assert_eq!(decoder.symbols_wanted(), 9);
}

#[test]
fn blocks_of_no_symbols_and_of_too_many_are_refused() {
    for (k, fits) in [(0, false), (1, true), (56_403, true), (56_404, false), (u32::MAX, false)] {
        assert_eq!(RAPTORQ.decoder(k).is_ok(), fits, "{k}");
    }
}

#[test]
fn duplicates_are_no_progress() {
    let mut decoder = decoder(100);
    for round in 0..3 {
        for esi in (0..99).chain([1_000_000]) {
            let expected = if round == 0 { Novelty::Fresh } else { Novelty::Duplicate };
            if round == 0 || esi % 7 == 0 {
                assert_eq!(decoder.push(Esi(esi)), Ok(expected), "{esi}");
            }
        }
    }
    assert_eq!(decoder.symbols_wanted(), 0);
}

#[test]
fn a_solved_block_accepts_no_more_symbols() {
    let mut decoder = decoder(100);
    for esi in 0..100 {
        decoder.push(Esi(esi)).unwrap();
    }
    assert!(matches!(decoder.solve(Work(0)), Progress::Solved(_)), "nothing had to be computed");
    assert_eq!(decoder.push(Esi(100)), Ok(Novelty::Duplicate));
    assert!(matches!(decoder.solve(Work(0)), Progress::Solved(_)));
}

#[test]
fn a_solved_block_gives_the_same_plan_again() {
    let mut decoder = decoder(300);
    for esi in 50..360 {
        decoder.push(Esi(esi)).unwrap();
    }
    let plans = [(); 2].map(|()| match decoder.solve(Work::UNBOUNDED) {
        Progress::Solved(plan) => plan,
        other => panic!("{other:?}"),
    });
    assert_eq!(plans[0].inputs(), plans[1].inputs());
    assert_eq!(plans[0].lost(), (0..50).map(Esi).collect::<Vec<_>>());
}

#[test]
fn repair_symbols_are_kept_up_to_a_surplus_and_source_symbols_always() {
    let k = 500;
    let mut decoder = decoder(k);
    let fresh = (k..10 * k).filter(|&esi| decoder.push(Esi(esi)) == Ok(Novelty::Fresh)).count();
    assert_eq!(fresh, 564);
    for esi in 0..k {
        assert_eq!(decoder.push(Esi(esi)), Ok(Novelty::Fresh), "{esi}");
    }
    assert!(matches!(decoder.solve(Work(0)), Progress::Solved(plan) if plan.lost().is_empty()));
}

#[test]
fn each_failed_attempt_makes_room_for_other_symbols_up_to_a_limit() {
    let k = 100;
    let mut decoder = decoder(k);
    let mut next = k;
    let mut fill = |decoder: &mut Box<dyn IdDecoder>| {
        let mut fresh = 0;
        while decoder.push(Esi(next)) == Ok(Novelty::Fresh) {
            next += 1;
            fresh += 1;
        }
        fresh
    };
    assert_eq!(fill(&mut decoder), 164);
    for expected in [64, 36, 0] {
        assert!(matches!(decoder.solve(Work(0)), Progress::OutOfBudget));
        assert_eq!(fill(&mut decoder), expected);
    }
    assert_eq!(decoder.push(Esi(0)), Ok(Novelty::Fresh), "a source symbol");
    assert!(matches!(decoder.solve(RAPTORQ.block_profile(k).work), Progress::Solved(_)));
}

#[test]
fn a_budget_that_is_too_small_can_be_raised() {
    let k = 1000;
    let mut decoder = decoder(k);
    for esi in k..2 * k + 10 {
        decoder.push(Esi(esi)).unwrap();
    }
    let Work(enough) = RAPTORQ.block_profile(k).work;
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

/// A set that is known to be dependent stays unsolved, is reported so, and is completed by fresh
/// symbols.
#[test]
fn dependent_symbols_are_recognised_and_completed() {
    let k = 10;
    let mut random = Random(3);
    let block = Block::random(k, 8, 3);
    let encoder = block.encoder();
    let mut found = 0;
    while found < 20 {
        let esis: Vec<Esi> = (0..k).map(|_| Esi(k + random.below((1 << 24) - k))).collect();
        let Progress::Wanting(lack) = solve(k, esis.iter().copied()) else { continue };
        found += 1;
        let mut decoder = decoder(k);
        for &esi in &esis {
            decoder.push(esi).unwrap();
        }
        assert_eq!(decoder.symbols_wanted(), 0, "not known before it is tried");
        assert!(
            matches!(decoder.solve(RAPTORQ.block_profile(k).work), Progress::Wanting(n) if n == lack)
        );
        assert_eq!(decoder.symbols_wanted(), lack);
        decoder.push(esis[0]).unwrap();
        assert_eq!(decoder.symbols_wanted(), lack, "a duplicate is no progress");
        let plan = loop {
            match decoder.solve(RAPTORQ.block_profile(k).work) {
                Progress::Solved(plan) => break plan,
                Progress::Wanting(_) => decoder.push(Esi(random.below(1 << 24))).unwrap(),
                Progress::OutOfBudget => panic!("a block of {k} is little work"),
            };
        };
        let decoded = execute(&plan, 8, |esi, out| out.copy_from_slice(&symbol(&encoder, esi)));
        block.assert_recovered(&decoded);
    }
}
