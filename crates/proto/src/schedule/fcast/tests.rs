use super::*;
use std::collections::BTreeSet;

/// Blocks of 32 source symbols and stretch 4, four to an object, as in the paper's experiments.
fn blocks(count: u32) -> Vec<BlockShape> {
    let shape =
        |block| BlockShape { object: block / 4, source_symbols: 32, encoding_symbols: Some(128) };
    (0..count).map(shape).collect()
}

fn fcast(organization: SymbolOrganization, object_order: ObjectOrder) -> Fcast {
    Fcast { organization, object_order, stretch_factor: 4, anticipated_layers: 0 }
}

fn take(lists: &mut Lists, layer: usize, count: usize) -> Vec<Turn> {
    let mut quota = Quota::new(&lists.blocks.clone(), None);
    (0..count).map(|_| lists.next(layer, &mut quota).unwrap()).collect()
}

#[test]
fn organization_1_sends_every_symbol_on_each_layer_in_another_order() {
    let schedule = fcast(SymbolOrganization::AllOnEach, ObjectOrder::Random);
    let mut lists = Lists::new(schedule, &blocks(8), 3, 1).unwrap();
    let layers: Vec<Vec<Turn>> = (0..3).map(|layer| take(&mut lists, layer, 8 * 128)).collect();
    for layer in &layers {
        let distinct: BTreeSet<_> = layer.iter().map(|turn| (turn.block, turn.i)).collect();
        assert_eq!(distinct.len(), 8 * 128);
    }
    assert!(layers[0] != layers[1] && layers[1] != layers[2]);
    // A layer repeats its list.
    assert_eq!(take(&mut lists, 0, 8 * 128), layers[0]);
}

#[test]
fn organization_2_sends_a_segment_on_each_layer_and_no_symbol_twice_in_a_layer_cycle() {
    let schedule = fcast(SymbolOrganization::Segments, ObjectOrder::Random);
    let mut lists = Lists::new(schedule, &blocks(8), 6, 1).unwrap();
    let mut seen = BTreeSet::new();
    for layer in 0..6 {
        for Turn { block, i } in take(&mut lists, layer, 8 * 32) {
            assert_eq!(i / 32, layer as u64 % 4, "segment");
            assert_eq!(
                seen.insert((block, i)),
                layer < 4,
                "the second layer cycle repeats the first"
            );
        }
    }
    assert_eq!(seen.len(), 8 * 128);
}

#[test]
fn objects_in_sequence_are_sent_one_after_the_other_and_mixed_ones_all_the_time() {
    for (object_order, mixed) in [
        (ObjectOrder::Sequential, 0.0..0.001),
        (ObjectOrder::PartlyRandom { one_in: 8 }, 0.15..0.25),
        (ObjectOrder::Random, 0.7..0.95),
        (ObjectOrder::PartlyRandom { one_in: 1 }, 0.7..0.95),
        (ObjectOrder::PartlyRandom { one_in: 0 }, 0.7..0.95),
    ] {
        let schedule = fcast(SymbolOrganization::Segments, object_order);
        let mut lists = Lists::new(schedule, &blocks(64), 1, 5).unwrap();
        let turns = take(&mut lists, 0, 64 * 32);
        let elsewhere = turns.iter().enumerate().filter(|(n, turn)| turn.block / 4 != n / 128);
        let elsewhere = elsewhere.count() as f64 / turns.len() as f64;
        assert!(mixed.contains(&elsewhere), "{object_order:?} {elsewhere}");
        // Within an object the symbols are not in their order.
        let in_order =
            turns.windows(2).filter(|w| w[0].block == w[1].block && w[0].i + 1 == w[1].i);
        let partly = matches!(object_order, ObjectOrder::PartlyRandom { one_in: 8 });
        assert_eq!(in_order.count() > turns.len() / 2, partly);
    }
}

/// The annex with another generator: swap element i with element random % n for every i that is a
/// multiple of l.
#[test]
fn the_permutation_is_that_of_the_annex() {
    let mut elements: Vec<u32> = (0..10).collect();
    permute(&mut elements, 3, &mut SplitMix64::new(1, 1));
    let mut expected: Vec<u32> = (0..10).collect();
    let mut random = SplitMix64::new(1, 1);
    for i in [0, 3, 6, 9] {
        expected.swap(i, random.below(10) as usize);
    }
    assert_eq!(elements, expected);
    assert_ne!(elements, (0..10).collect::<Vec<_>>());
}

#[test]
fn anticipated_source_symbols_come_once_in_sequence_on_the_lowest_layers_only() {
    let schedule =
        Fcast { anticipated_layers: 2, ..fcast(SymbolOrganization::Segments, ObjectOrder::Random) };
    let blocks = blocks(4);
    let mut lists = Lists::new(schedule, &blocks, 4, 1).unwrap();
    let mut plain = Lists::new(Fcast { anticipated_layers: 0, ..schedule }, &blocks, 4, 1).unwrap();
    let mut quota = Quota::new(&blocks, None);
    for n in 0..4 * 32 {
        let turn = lists.next(n % 2, &mut quota).unwrap();
        assert_eq!(turn, Turn { block: n / 32, i: n as u64 % 32 });
        if n % 8 == 0 {
            assert_eq!(lists.next(2, &mut quota), plain.next(2, &mut quota), "as ever");
        }
    }
    for layer in [0, 1] {
        assert_eq!(
            take(&mut lists, layer, 100),
            take(&mut plain, layer, 100),
            "the standard order"
        );
    }
}

#[test]
fn a_rateless_code_has_fresh_symbols_in_every_pass() {
    let blocks = [BlockShape { object: 0, source_symbols: 10, encoding_symbols: None }; 3];
    let schedule = fcast(SymbolOrganization::Segments, ObjectOrder::Random);
    let mut lists = Lists::new(schedule, &blocks, 4, 1).unwrap();
    let mut seen = BTreeSet::new();
    for n in 0..4_000 {
        let layer = n % 4;
        for Turn { block, i } in take(&mut lists, layer, 1) {
            assert!(seen.insert((block, i)));
        }
    }
}

#[test]
fn a_shorter_last_segment_and_a_stretch_below_the_code_are_sent() {
    let shape = |k, n| BlockShape { object: 0, source_symbols: k, encoding_symbols: n };
    let schedule = fcast(SymbolOrganization::Segments, ObjectOrder::Random);
    // n = 25 of k = 10: segments of 10, 10 and 5.
    let segments: Vec<_> =
        (0..4).map(|layer| schedule.on_layer(&shape(10, Some(25)), layer)).collect();
    assert_eq!(segments, [0..10, 10..20, 20..25, 0..10]);
    assert_eq!(schedule.on_layer(&shape(10, Some(90)), 3), 30..40);
    assert_eq!(schedule.on_layer(&shape(10, Some(10)), 3), 0..10, "without repair symbols");
    assert_eq!(schedule.on_layer(&shape(0, None), 1), 0..0);
    let too_many = [shape(MAX_CYCLE as u32 / 4, None), shape(1, None)];
    assert!(Lists::new(schedule, &too_many[..1], 1, 1).is_some());
    assert!(Lists::new(schedule, &too_many, 1, 1).is_none());
}

#[test]
fn what_follows_an_order_that_ends_is_not_in_it() {
    let shape = BlockShape { object: 0, source_symbols: 32, encoding_symbols: None };
    for organization in [SymbolOrganization::AllOnEach, SymbolOrganization::Segments] {
        let schedule = fcast(organization, ObjectOrder::Random);
        for permille in [0, 500, 1_000, 2_500] {
            let mut lists = Lists::new(schedule, &[shape], 1, 7).unwrap();
            let mut quota = Quota::new(&[shape], Some(permille));
            let turns = std::iter::from_fn(|| lists.next(0, &mut quota));
            let reached = turns.map(|turn| turn.i + 1).max().unwrap_or(0);
            let beyond = lists.beyond(&shape, 32 * u64::from(permille) / 1_000);
            assert!((reached..reached + 128).contains(&beyond), "{reached} {beyond}");
        }
    }
}
