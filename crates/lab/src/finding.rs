//! Findings: whether the number of a claim and the number of a run agree.

use crate::claim::Printed;
use crate::experiment::Experiment;
use crate::outcome::ExperimentOutcome;
use crate::registry;
use std::fmt;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The numbers are equal, or ours is within the bound.
    Holds,
    /// The distance is within the claim's tolerance.
    HoldsWithin(f64),
    /// The distance is greater.
    Differs,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds => f.write_str("holds"),
            Self::HoldsWithin(tolerance) => write!(f, "holds within {tolerance}"),
            Self::Differs => f.write_str("differs"),
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
    /// The paper's number.
    pub paper: Printed,
    /// Our number, to six digits.
    pub ours: f64,
    /// Greatest allowed distance of the two.
    pub tolerance: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it differs; `None` if it does not, or if the reason is unknown (`docs/errata.md`).
    pub reason: Option<&'static str>,
    /// Whether the verdict is the known one.
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
            let verdict = verdict(claim.paper, claim.tolerance, ours);
            let differs = verdict == Verdict::Differs;
            Finding {
                experiment: id,
                claim: claim.name,
                text: claim.text,
                paper: claim.paper,
                ours: six_digits(ours),
                tolerance: claim.tolerance,
                verdict,
                reason: reason.filter(|_| differs),
                as_expected: differs == reason.is_some(),
            }
        })
        .collect()
}

fn verdict(paper: Printed, tolerance: f64, ours: f64) -> Verdict {
    let distance = paper.distance(ours);
    if distance == 0.0 {
        Verdict::Holds
    } else if distance <= tolerance {
        Verdict::HoldsWithin(tolerance)
    } else {
        Verdict::Differs
    }
}

/// Rounds to six significant digits: further ones are noise or rounding errors.
pub(crate) fn six_digits(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tolerance_is_the_last_distance_that_holds() {
        let paper = Printed::Equal(1.0);
        assert_eq!(verdict(paper, 0.25, 1.0), Verdict::Holds);
        assert_eq!(verdict(paper, 0.25, 1.25), Verdict::HoldsWithin(0.25));
        assert_eq!(verdict(paper, 0.25, 0.75), Verdict::HoldsWithin(0.25));
        assert_eq!(verdict(paper, 0.25, 1.2500001), Verdict::Differs);
        assert_eq!(verdict(paper, 0.25, 0.7499999), Verdict::Differs);
    }

    #[test]
    fn bounds_hold_on_their_side() {
        assert_eq!(verdict(Printed::AtMost(2.0), 0.0, -9.0), Verdict::Holds);
        assert_eq!(verdict(Printed::AtMost(2.0), 0.0, 2.0), Verdict::Holds);
        assert_eq!(verdict(Printed::AtMost(2.0), 0.5, 2.5), Verdict::HoldsWithin(0.5));
        assert_eq!(verdict(Printed::AtMost(2.0), 0.5, 2.6), Verdict::Differs);
        assert_eq!(verdict(Printed::AtLeast(2.0), 0.0, 2.0), Verdict::Holds);
        assert_eq!(verdict(Printed::AtLeast(2.0), 0.0, 1.9), Verdict::Differs);
    }

    #[test]
    fn what_was_not_measured_differs() {
        for paper in [Printed::Equal(1.0), Printed::AtMost(1.0), Printed::AtLeast(1.0)] {
            assert_eq!(verdict(paper, f64::INFINITY, f64::NAN), Verdict::Differs);
        }
    }

    #[test]
    fn six_digits_are_kept() {
        assert_eq!(six_digits(1.053_600_49), 1.0536);
        assert_eq!(six_digits(222_516.0), 222_516.0);
        assert_eq!(six_digits(800_000_000.0), 800_000_000.0);
        assert!(six_digits(f64::NAN).is_nan());
    }
}
