//! Claims: statements of papers that come down to one number.

use crate::table::Table;
use std::fmt;

/// A statement of a paper that comes down to one number.
pub struct Claim {
    /// Its name within the experiment.
    pub name: String,
    /// The statement. It says so if the paper has no number and the bound is ours.
    pub text: String,
    /// The number.
    pub paper: Printed,
    /// Greatest allowed distance of our number. Chosen before the run.
    pub tolerance: f64,
    /// Computes our number from the rows; `NAN` if they do not determine it.
    pub measure: Box<dyn Fn(&Table) -> f64>,
}

impl Claim {
    pub(crate) fn new(
        name: impl Into<String>,
        text: impl Into<String>,
        paper: Printed,
        tolerance: f64,
        measure: impl Fn(&Table) -> f64 + 'static,
    ) -> Self {
        Self { name: name.into(), text: text.into(), paper, tolerance, measure: Box::new(measure) }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim {{ {}: {} {} }}", self.name, self.text, self.paper)
    }
}

/// A number in a paper, or a bound of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Printed {
    /// The number itself.
    Equal(f64),
    /// An upper bound.
    AtMost(f64),
    /// A lower bound.
    AtLeast(f64),
}

impl Printed {
    /// The number.
    pub const fn number(self) -> f64 {
        match self {
            Self::Equal(number) | Self::AtMost(number) | Self::AtLeast(number) => number,
        }
    }

    /// How far `ours` is on the wrong side; 0 if it is not.
    pub(crate) fn distance(self, ours: f64) -> f64 {
        match self {
            Self::Equal(number) => (ours - number).abs(),
            Self::AtMost(bound) if ours <= bound => 0.0,
            Self::AtLeast(bound) if ours >= bound => 0.0,
            // NaN satisfies no bound.
            Self::AtMost(bound) | Self::AtLeast(bound) => (ours - bound).abs(),
        }
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number();
        match self {
            Self::Equal(_) => write!(f, "{number}"),
            Self::AtMost(_) => write!(f, "≤ {number}"),
            Self::AtLeast(_) => write!(f, "≥ {number}"),
        }
    }
}
