use super::*;
use crate::codes::raptorq::{Params, RaptorQ};
use crate::scheme::FecScheme;

const RAPTORQ: FecScheme =
    FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });

/// Byte `at` of the encoding symbols that tests load.
fn byte(esi: Esi, at: usize) -> u8 {
    (esi.0 as usize * 31 + at * 7 + at / 50) as u8
}

/// The intermediate symbols of the columns `from..from + width`.
fn columns(plan: &Arc<Plan>, set: InstructionSet, from: usize, width: usize) -> Intermediate {
    let load = |esi: Esi, out: &mut [u8]| {
        assert!(out.iter().all(|&byte| byte == 0), "zeros to put the symbol into");
        out.iter_mut().zip(from..).for_each(|(out, at)| *out = byte(esi, at));
        Ok::<_, core::convert::Infallible>(())
    };
    let Ok(columns) = plan.execute_with(set, width, load, Scratch::default());
    columns
}

fn symbol(encoder: &Intermediate, esi: u32) -> Vec<u8> {
    let mut out = vec![0xAA; encoder.width()];
    encoder.write_symbol(Esi(esi), &mut out);
    out
}

#[test]
fn instruction_sets_and_widths_make_no_difference() {
    let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
    let whole = columns(&plan, InstructionSet::best(), 0, 1401);
    for set in InstructionSet::available() {
        for width in [0, 1, 63, 64, 65, 319, 320, 321, 640, 1280, 1400, 1401] {
            let encoder = columns(&plan, set, 0, width);
            for esi in [0, 49, 50, 51, 10_000, (1 << 24) - 1] {
                assert_eq!(symbol(&encoder, esi), symbol(&whole, esi)[..width], "{set:?}");
            }
        }
    }
}

#[test]
fn columns_can_be_done_one_range_after_another() {
    let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
    let whole = columns(&plan, InstructionSet::best(), 0, 1000);
    for (from, to) in [(0, 1), (1, 400), (400, 1000)] {
        let part = columns(&plan, InstructionSet::best(), from, to - from);
        assert_eq!(symbol(&part, 77), symbol(&whole, 77)[from..to]);
    }
}

#[test]
fn many_symbols_are_written_as_each_of_them() {
    let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
    let encoder = columns(&plan, InstructionSet::best(), 0, 1300);
    let esis = [3, 99, 50, 99, 16_000_000];
    let mut out = vec![0xAA; esis.len() * 1300];
    encoder.write_symbols(&esis.map(Esi), &mut out);
    for (esi, out) in esis.into_iter().zip(out.chunks(1300)) {
        assert_eq!(out, symbol(&encoder, esi), "{esi}");
    }
    encoder.write_symbols(&[], &mut []);
}

#[test]
fn memory_of_another_block_makes_no_difference() {
    let cache = PlanCache::new(4);
    let plan = |k| cache.source_plan(RAPTORQ, k).unwrap();
    let load = |esi: Esi, out: &mut [u8]| {
        out.iter_mut().zip(0..).for_each(|(out, at)| *out = byte(esi, at));
        Ok::<_, ()>(())
    };
    let mut scratch = Scratch::default();
    for (k, width) in [(900, 500), (45, 1300), (50, 700), (1, 1), (100, 64)] {
        let fresh = plan(k).execute(width, load, Scratch::default()).unwrap();
        let used = plan(k).execute(width, load, scratch).unwrap();
        for esi in [0, k, 1_000_000] {
            assert_eq!(symbol(&used, esi), symbol(&fresh, esi), "K = {k}, T = {width}");
        }
        scratch = used.into_scratch();
    }
}

#[test]
fn an_error_while_loading_is_returned() {
    let plan = PlanCache::new(1).source_plan(RAPTORQ, 50).unwrap();
    let mut loaded = 0;
    let read = |esi: Esi, _: &mut [u8]| {
        loaded += 1;
        if esi == Esi(7) { Err("unreadable") } else { Ok(()) }
    };
    let failed = plan.execute(10, read, Scratch::default());
    assert_eq!(failed.map(|_| ()), Err("unreadable"));
    assert_eq!(loaded, 8, "nothing is loaded after an error");
}

#[test]
fn memory_is_that_of_the_intermediate_symbols_and_a_stripe() {
    let plan = PlanCache::new(1).source_plan(RAPTORQ, 1002).unwrap();
    let l = Params::covering(1002).l as usize;
    let (narrow, wide) = (plan.memory(64), plan.memory(6400));
    assert!(narrow > 2 * l * 64 && narrow < 3 * l * 64, "{narrow}");
    assert!(wide > l * 6400 && wide < l * 6400 * 11 / 10, "{wide}");
    assert_eq!(plan.memory(0), 0);
}

#[test]
fn block_lengths_outside_the_limits_are_refused() {
    let cache = PlanCache::new(2);
    for (k, fits) in [(0, false), (1, true), (56_403, true), (56_404, false)] {
        assert_eq!(cache.decoder(RAPTORQ, k).is_ok(), fits, "{k}");
    }
    assert!(cache.source_plan(RAPTORQ, 0).is_err());
    assert!(cache.source_plan(RAPTORQ, 56_404).is_err());
}
