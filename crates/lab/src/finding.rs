//! Findings: whether the number of a claim and the number of a run agree.

use crate::claim::{ClaimKind, Target};
use crate::estimate::Estimate;
use crate::experiment::Experiment;
use crate::outcome::ExperimentOutcome;
use crate::registry;
use std::fmt;

/// The verdict on a claim. It allows for [`Estimate::MARGIN`] standard errors to either side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The numbers are equal, or ours is within the bound.
    Holds,
    /// The distance is within the claim's tolerance.
    HoldsWithin(f64),
    /// The distance is greater.
    Differs,
    /// The trials are too few to tell.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => f.write_str("holds"),
            Self::HoldsWithin(tolerance) => write!(f, "holds within {tolerance}"),
            Self::Differs => f.write_str("differs"),
            Self::Undecided => f.write_str("undecided"),
        }
    }
}

/// A claim, our number and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The experiment's id.
    pub experiment: &'static str,
    /// The claim's name.
    pub claim: String,
    /// The statement.
    pub text: String,
    /// Where its number comes from.
    pub kind: ClaimKind,
    /// Its number.
    pub target: Target,
    /// The paper's number, if the target is a function of it.
    pub paper: Option<f64>,
    /// Our number, to six digits.
    pub ours: f64,
    /// The standard error of ours, to two digits: 0 if no trials gave it, `NAN` if it is unknown.
    pub error: f64,
    /// Greatest allowed distance of the two.
    pub tolerance: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it differs; `None` if it does not, or if the reason is unknown (`docs/errata.md`).
    pub reason: Option<&'static str>,
    /// Whether the verdict is the known one. An undecided claim is: more trials may decide it.
    pub as_expected: bool,
}

/// Compares the rows of all cases with the claims of their experiment.
pub fn judge(outcome: &ExperimentOutcome) -> Vec<Finding> {
    let Experiment { id, claims, .. } = outcome.experiment;
    claims()
        .into_iter()
        .map(|claim| {
            let ours = (claim.measure)(&outcome.table);
            let reason = registry::known_difference(id, &claim.name);
            let verdict = verdict(claim.target, claim.tolerance, ours);
            let differs = verdict == Verdict::Differs;
            Finding {
                experiment: id,
                claim: claim.name,
                text: claim.text,
                kind: claim.kind,
                target: claim.target,
                paper: claim.paper,
                ours: six_digits(ours.value),
                error: two_digits(ours.error),
                tolerance: claim.tolerance,
                verdict,
                reason: reason.filter(|_| differs),
                as_expected: verdict == Verdict::Undecided || differs == reason.is_some(),
            }
        })
        .collect()
}

fn verdict(target: Target, tolerance: f64, ours: Estimate) -> Verdict {
    if ours.value.is_nan() {
        return Verdict::Differs;
    }
    if ours.error.is_nan() {
        return Verdict::Undecided;
    }
    let margin = Estimate::MARGIN * ours.error;
    let (least, greatest) = target.distances(ours.value - margin, ours.value + margin);
    if least > tolerance {
        Verdict::Differs
    } else if greatest > tolerance {
        Verdict::Undecided
    } else if target.distance(ours.value) == 0.0 {
        Verdict::Holds
    } else {
        Verdict::HoldsWithin(tolerance)
    }
}

/// Rounds to six significant digits: further ones are noise or rounding errors.
pub(crate) fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

fn two_digits(number: f64) -> f64 {
    format!("{number:.1e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(target: Target, tolerance: f64, ours: f64) -> Verdict {
        super::verdict(target, tolerance, ours.into())
    }

    #[test]
    fn the_tolerance_is_the_last_distance_that_holds() {
        let target = Target::Equal(1.0);
        assert_eq!(verdict(target, 0.25, 1.0), Verdict::Holds);
        assert_eq!(verdict(target, 0.25, 1.25), Verdict::HoldsWithin(0.25));
        assert_eq!(verdict(target, 0.25, 0.75), Verdict::HoldsWithin(0.25));
        assert_eq!(verdict(target, 0.25, 1.2500001), Verdict::Differs);
        assert_eq!(verdict(target, 0.25, 0.7499999), Verdict::Differs);
    }

    #[test]
    fn bounds_hold_on_their_side() {
        assert_eq!(verdict(Target::AtMost(2.0), 0.0, -9.0), Verdict::Holds);
        assert_eq!(verdict(Target::AtMost(2.0), 0.0, 2.0), Verdict::Holds);
        assert_eq!(verdict(Target::AtMost(2.0), 0.5, 2.5), Verdict::HoldsWithin(0.5));
        assert_eq!(verdict(Target::AtMost(2.0), 0.5, 2.6), Verdict::Differs);
        assert_eq!(verdict(Target::AtLeast(2.0), 0.0, 2.0), Verdict::Holds);
        assert_eq!(verdict(Target::AtLeast(2.0), 0.0, 1.9), Verdict::Differs);
    }

    #[test]
    fn what_was_not_measured_differs() {
        for target in [Target::Equal(1.0), Target::AtMost(1.0), Target::AtLeast(1.0)] {
            assert_eq!(verdict(target, f64::INFINITY, f64::NAN), Verdict::Differs);
        }
    }

    #[test]
    fn an_estimate_decides_with_all_of_its_margin() {
        let of = |target, tolerance, value, error| {
            super::verdict(target, tolerance, Estimate { value, error })
        };
        // Either end of 0.5 to 1.5.
        for (target, verdict) in [
            (Target::AtMost(1.5), Verdict::Holds),
            (Target::AtMost(1.4), Verdict::Undecided),
            (Target::AtMost(0.4), Verdict::Differs),
            (Target::AtLeast(0.5), Verdict::Holds),
            (Target::AtLeast(0.6), Verdict::Undecided),
            (Target::AtLeast(1.6), Verdict::Differs),
        ] {
            assert_eq!(of(target, 0.0, 1.0, 0.25), verdict, "{target}");
        }
        for (tolerance, verdict) in
            [(1.0, Verdict::HoldsWithin(1.0)), (0.9, Verdict::Undecided), (0.0, Verdict::Undecided)]
        {
            assert_eq!(of(Target::Equal(1.5), tolerance, 1.0, 0.25), verdict, "{tolerance}");
        }
        assert_eq!(of(Target::Equal(2.0), 0.4, 1.0, 0.25), Verdict::Differs);
        // One trial decides nothing, and neither do four of a rare event.
        assert_eq!(of(Target::AtMost(1.0), 0.0, 0.5, f64::NAN), Verdict::Undecided);
        let mut four = crate::statistics::Histogram::default();
        four.add_many(1, 4);
        let share = Estimate::share_above(&four, 1.0);
        assert_eq!(super::verdict(Target::AtMost(1e-8), 0.0, share), Verdict::Undecided);
    }

    #[test]
    fn six_digits_are_kept() {
        assert_eq!(six_digits(1.053_600_49), 1.0536);
        assert_eq!(six_digits(222_516.0), 222_516.0);
        assert_eq!(six_digits(800_000_000.0), 800_000_000.0);
        assert!(six_digits(f64::NAN).is_nan());
    }
}
