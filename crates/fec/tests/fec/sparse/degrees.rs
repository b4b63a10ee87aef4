//! The integers of LT's degree distribution: by the formula, and fixed values.

use crate::sparse::graph::digest;
use fontana_fec::Esi;
use fontana_fec::codes::lt::{LtCode, Profile};
use fontana_fec::study::lt::{Degrees, Rows};

/// `LtCode::fast(10_000, 1)` as integers, so that no test depends on logarithms.
pub(crate) const FAST_10_000: LtCode = LtCode {
    profile: Profile::Fast,
    seed: 1,
    spike: 337,
    ripple: 1_947_105,
    spike_weight: 52_122_321,
};

#[test]
fn thresholds_follow_from_the_weights() {
    // k = 10, M = 4, R = 1.5, half of the weight of 1 added to the spike.
    let (ripple, spike_weight) = (98_304, 1 << 31);
    let code = LtCode { profile: Profile::Fast, seed: 0, spike: 4, ripple, spike_weight };
    let weight = |reals: f64| reals * 2_f64.powi(32);
    let weights = [
        weight(1.0 / 10.0 + 1.5 / 10.0),
        weight(1.0 / 2.0 + 1.5 / 20.0),
        weight(1.0 / 6.0 + 1.5 / 30.0),
        weight(1.0 / 12.0 + 1.0 / 4.0 + 0.5),
    ];
    let total: f64 = weights.iter().sum();
    let degrees = Degrees::new(code, 10).unwrap();
    let mut sum = 0.0;
    for (&threshold, weight) in degrees.thresholds().iter().zip(weights) {
        sum += weight;
        assert!((threshold as f64 - sum / total * 2_f64.powi(32)).abs() < 1.0, "{threshold}");
    }
    assert_eq!(degrees.max(), 4);
    assert_eq!(degrees.thresholds()[3], 1 << 32);
}

#[test]
fn a_degree_is_the_least_whose_threshold_is_above_the_number() {
    let degrees = Degrees::new(FAST_10_000, 10_000).unwrap();
    let thresholds = degrees.thresholds();
    for (degree, &threshold) in (1..).zip(thresholds) {
        if degree < degrees.max() {
            assert_eq!(degrees.degree(threshold as u32), degree + 1, "just above");
        }
        assert_eq!(degrees.degree((threshold - 1) as u32), degree, "just below");
    }
    assert_eq!(degrees.degree(0), 1);
}

#[test]
fn any_numbers_make_a_code() {
    for (spike, ripple, spike_weight) in [(0, 0, 0), (u32::MAX, u32::MAX, u32::MAX), (1, 7, 9)] {
        let code = LtCode { profile: Profile::Fast, seed: 5, spike, ripple, spike_weight };
        for k in [1, 2, 3, 100, 1 << 20] {
            let degrees = Degrees::new(code, k).unwrap();
            assert_eq!(degrees.max(), spike.clamp(1, k));
            assert_eq!(degrees.thresholds().last(), Some(&(1 << 32)));
            let mut rows = Rows::new(code, k).unwrap();
            for esi in [k, k + 1, u32::MAX - 1].map(Esi) {
                let degree = rows.degree(esi);
                assert!((1..=k).contains(&degree));
                assert_eq!(rows.row(esi).len() as u32, degree);
            }
        }
        assert!(Degrees::new(code, 0).is_err() && Degrees::new(code, (1 << 20) + 1).is_err());
    }
}

/// A change of these values changes the code: older receivers could not decode it.
#[test]
fn rows_do_not_change() {
    let degrees = Degrees::new(FAST_10_000, 10_000).unwrap();
    let numbers = degrees.thresholds().iter().flat_map(|t| [(t >> 32) as u32, *t as u32]);
    assert_eq!(digest(numbers), 0xB9AC_7F1F_F9E3_9D2C);
    let mut rows = Rows::new(FAST_10_000, 10_000).unwrap();
    let mut sum = 0_u64;
    for esi in 10_000..110_000 {
        sum =
            digest([(sum >> 32) as u32, sum as u32].into_iter().chain(rows.row(Esi(esi)).to_vec()));
    }
    assert_eq!(sum, 0xCCD2_2F1B_60FB_560C);
    assert_eq!(rows.row(Esi(u32::MAX - 1)).len(), rows.degree(Esi(u32::MAX - 1)) as usize);
}

/// Formulas with logarithms may differ in the last digit between math libraries, so senders
/// transmit their results.
#[test]
fn the_profiles_are_those_of_the_documentation() {
    let mean = |code, k| Degrees::new(code, k).unwrap().mean() as f64 / 2_f64.powi(32);
    assert_eq!(LtCode { seed: 1, ..LtCode::fast(10_000, 1) }, FAST_10_000);
    for (k, fast, strict) in
        [(1_000, 9.6, 24.5), (10_000, 12.1, 26.9), (100_000, 14.6, 29.2), (1_000_000, 17.0, 31.4)]
    {
        assert!(
            (mean(LtCode::fast(k, 0), k) - fast).abs() < 0.1,
            "{k}: {}",
            mean(LtCode::fast(k, 0), k)
        );
        let strict_mean = mean(LtCode::strict(k, 0), k);
        assert!((strict_mean - strict).abs() < 0.1, "{k}: {strict_mean}");
        // The coverage bound: almost no source symbol is missing from 1.05 k symbols.
        let uncovered = (1.0 - strict_mean / f64::from(k)).powf((1.05 * f64::from(k)).floor());
        assert!(f64::from(k) * uncovered <= 5.01e-9, "{k}: {:e}", f64::from(k) * uncovered);
    }
}
