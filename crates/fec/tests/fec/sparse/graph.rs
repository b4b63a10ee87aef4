//! The graphs: as printed in the paper, and fixed values.

use fontana_fec::codes::tornado::{StretchError, TornadoCode};
use fontana_fec::study::tornado::Graph;
use std::collections::BTreeMap;

/// The number of `nodes` of each degree.
fn count(degrees: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for degree in degrees {
        *counts.entry(degree).or_default() += 1;
    }
    counts
}

/// Degrees of the first and of the last checks.
fn check_degrees(graph: &Graph) -> (Vec<usize>, Vec<usize>) {
    let checks = graph.encoding_symbols() - graph.source_symbols();
    let mut first: Vec<usize> = (0..checks).map(|check| graph.terms(check).len()).collect();
    let last = first.split_off(graph.first_checks() as usize);
    (first, last)
}

/// "A Digital Fountain Approach to Asynchronous Reliable Multicast", section V-B.
#[test]
fn the_graph_of_16_000_symbols_is_the_printed_one() {
    let graph = TornadoCode::Z.graph(16_000).unwrap();
    assert_eq!((graph.source_symbols(), graph.encoding_symbols()), (16_000, 32_000));
    assert_eq!((graph.first_checks(), graph.edges()), (8_000, 222_516));
    let (first, last) = check_degrees(&graph);
    assert_eq!(first.iter().sum::<usize>(), 94_516 + 32_000);
    let printed = [(5, 4_093), (6, 3_097), (33, 122), (34, 472), (141, 1), (170, 27), (171, 188)];
    assert_eq!(count(last.into_iter()), BTreeMap::from(printed));

    // The 160 checks of G2 are those of degree 200; G1's are about 12.
    let even = |check: &u32| first[*check as usize] == 200;
    let in_g2: Vec<u32> = (0..8_000).filter(even).flat_map(|c| graph.terms(c).to_vec()).collect();
    assert_eq!(in_g2.len(), 160 * 200);
    let mut degrees = vec![(0, 0); 16_000];
    in_g2.iter().for_each(|&source| degrees[source as usize].1 += 1);
    for check in (0..8_000).filter(|check| !even(check)) {
        graph.terms(check).iter().for_each(|&source| degrees[source as usize].0 += 1);
    }
    assert!(degrees.iter().all(|&(_, g2)| g2 == 2));
    let heavy_tail = count(degrees.iter().map(|&(g1, _)| g1));
    assert_eq!((heavy_tail[&2], heavy_tail[&3]), (8_040, 2_680), "16 000 * 201 / (200 i (i-1))");
    assert_eq!(heavy_tail.keys().next_back(), Some(&200));
    let middle = (16_000..24_000).map(|esi| {
        (8_000..16_000).filter(|&check| graph.terms(check).contains(&esi)).take(13).count()
    });
    assert_eq!(count(middle.take(50)), BTreeMap::from([(12, 50)]));
}

#[test]
fn checks_are_sums_of_distinct_symbols_of_the_layer_before() {
    for (k, stretch_factor) in [(250, 2), (1_001, 2), (1_000, 3), (999, 10), (1, 2), (7, 5)] {
        let graph = TornadoCode::new(stretch_factor, 1).unwrap().graph(k).unwrap();
        assert_eq!(graph.encoding_symbols(), k * u32::from(stretch_factor));
        for check in 0..graph.encoding_symbols() - k {
            let layer =
                if check < graph.first_checks() { 0..k } else { k..k + graph.first_checks() };
            let mut terms = graph.terms(check).to_vec();
            assert!(terms.iter().all(|term| layer.contains(term)));
            terms.sort_unstable();
            assert!(terms.is_sorted_by(|a, b| a < b), "k = {k}, check {check}");
        }
    }
}

#[test]
fn block_lengths_and_stretch_factors_beyond_the_limits_are_refused() {
    for (k, fits) in [(0, false), (1, true), (64_000, true), (64_001, false), (u32::MAX, false)] {
        assert_eq!(TornadoCode::Z.graph(k).is_ok(), fits, "{k}");
    }
    for (stretch_factor, fits) in [(0, false), (1, false), (2, true), (10, true), (11, false)] {
        let code = TornadoCode::new(stretch_factor, 0);
        assert_eq!(code.is_ok(), fits, "{stretch_factor}");
        assert!(fits || code == Err(StretchError { actual: stretch_factor }));
    }
}

/// FNV-1a over the bytes of `numbers`, least significant first.
pub(crate) fn digest(numbers: impl IntoIterator<Item = u32>) -> u64 {
    let bytes = numbers.into_iter().flat_map(u32::to_le_bytes);
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// A change of these values changes the code: older receivers could not decode it.
#[test]
fn graphs_do_not_change() {
    const GOLDEN: [(u32, u8, u64, u64); 5] = [
        (16_000, 2, 0, 0x174E_F91F_F2D6_E4C9),
        (250, 2, 0, 0x4013_53C1_C71E_6083),
        (4_001, 3, 7, 0x8BB0_9282_0BF4_859E),
        (64_000, 2, 1, 0x2620_4C14_BE16_595D),
        (999, 10, u64::MAX, 0x8D2C_FE91_8C74_EAA4),
    ];
    for (k, stretch_factor, seed, golden) in GOLDEN {
        let graph = TornadoCode::new(stretch_factor, seed).unwrap().graph(k).unwrap();
        let checks = 0..graph.encoding_symbols() - k;
        let numbers = checks.flat_map(|check| {
            let terms = graph.terms(check);
            std::iter::once(terms.len() as u32).chain(terms.iter().copied())
        });
        assert_eq!(digest(numbers), golden, "k = {k}, stretched {stretch_factor} times");
    }
}
