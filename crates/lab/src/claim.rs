//! Claims: statements that come down to one number, and where that number comes from.

use crate::estimate::Estimate;
use crate::row::Row;
use crate::table::Table;
use std::borrow::Cow;
use std::fmt;

/// A statement that comes down to one number.
pub struct Claim {
    /// Its name within the experiment.
    pub name: String,
    /// The statement.
    pub text: String,
    /// Where the number comes from.
    pub kind: ClaimKind,
    /// The number.
    pub target: Target,
    /// The paper's number, if the target is a function of it.
    pub paper: Option<f64>,
    /// Greatest allowed distance of our number. Chosen before the run.
    pub tolerance: f64,
    /// Computes our number from the rows; `NAN` if they do not determine it.
    pub measure: Box<dyn Fn(&Table) -> Estimate>,
}

impl Claim {
    /// A number that the paper prints, or that follows from printed ones.
    pub(crate) fn printed<R: Row, M: Into<Estimate>>(
        name: impl Into<String>,
        text: impl Into<String>,
        quote: Quote,
        target: Target,
        tolerance: f64,
        measure: impl Fn(&[R]) -> M + 'static,
    ) -> Self {
        Self::new(name, text, ClaimKind::Printed(quote), target, tolerance, measure)
    }

    /// A printed number that chose a parameter of the experiment.
    pub(crate) fn fitted<R: Row, M: Into<Estimate>>(
        name: impl Into<String>,
        text: impl Into<String>,
        quote: Quote,
        target: Target,
        tolerance: f64,
        measure: impl Fn(&[R]) -> M + 'static,
    ) -> Self {
        Self::new(name, text, ClaimKind::Fitted(quote), target, tolerance, measure)
    }

    /// A statement of the paper without a number, and the bound by which it is judged.
    pub(crate) fn shape<R: Row, M: Into<Estimate>>(
        name: impl Into<String>,
        text: impl Into<String>,
        quote: Quote,
        bound: Target,
        measure: impl Fn(&[R]) -> M + 'static,
    ) -> Self {
        Self::new(name, text, ClaimKind::Shape(quote), bound, 0.0, measure)
    }

    /// A statement of ours.
    pub(crate) fn own<R: Row, M: Into<Estimate>>(
        name: impl Into<String>,
        text: impl Into<String>,
        target: Target,
        tolerance: f64,
        measure: impl Fn(&[R]) -> M + 'static,
    ) -> Self {
        Self::new(name, text, ClaimKind::Own, target, tolerance, measure)
    }

    /// A statement that follows from arithmetic or from how the experiment is built.
    pub(crate) fn identity<R: Row, M: Into<Estimate>>(
        name: impl Into<String>,
        text: impl Into<String>,
        target: Target,
        tolerance: f64,
        measure: impl Fn(&[R]) -> M + 'static,
    ) -> Self {
        Self::new(name, text, ClaimKind::Identity, target, tolerance, measure)
    }

    /// The same claim, whose target is a function of a number that the paper prints.
    pub(crate) fn of_number(self, paper: f64) -> Self {
        Self { paper: Some(paper), ..self }
    }

    fn new<R: Row, M: Into<Estimate>>(
        name: impl Into<String>,
        text: impl Into<String>,
        kind: ClaimKind,
        target: Target,
        tolerance: f64,
        measure: impl Fn(&[R]) -> M + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            kind,
            target,
            paper: None,
            tolerance,
            measure: Box::new(move |table| match table.read() {
                Some(rows) => measure(&rows).into(),
                None => f64::NAN.into(),
            }),
        }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim {{ {}: {} {} }}", self.name, self.text, self.target)
    }
}

/// Where the number of a claim comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// The paper prints it, or prints numbers that it follows from by arithmetic alone.
    Printed(Quote),
    /// The paper states an order or a shape. The number that bounds it is ours.
    Shape(Quote),
    /// The paper prints it, and it chose a parameter of the experiment. Its agreement shows that
    /// the fit succeeded, and nothing else.
    Fitted(Quote),
    /// The statement and the number are ours.
    Own,
    /// It follows from arithmetic or from how the experiment is built: a check of the experiment.
    Identity,
}

impl ClaimKind {
    /// Names of all kinds, in the order of the pages.
    pub const NAMES: [&str; 5] = ["printed", "shape", "fitted", "own", "identity"];

    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Printed(_) => "printed",
            Self::Shape(_) => "shape",
            Self::Fitted(_) => "fitted",
            Self::Own => "own",
            Self::Identity => "identity",
        }
    }

    /// The paper's words; `None` if the statement is ours.
    pub const fn quote(&self) -> Option<&Quote> {
        match self {
            Self::Printed(quote) | Self::Shape(quote) | Self::Fitted(quote) => Some(quote),
            Self::Own | Self::Identity => None,
        }
    }

    /// Whether the paper prints the number.
    pub const fn is_printed_number(&self) -> bool {
        matches!(self, Self::Printed(_) | Self::Fitted(_))
    }
}

/// Words of a paper: at most [`Quote::MAX_WORDS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The words.
    pub words: Cow<'static, str>,
    /// The section, table or figure that has them.
    pub section: &'static str,
}

impl Quote {
    /// Most words of a quote.
    pub const MAX_WORDS: usize = 10;
}

/// Words of a paper.
pub(crate) fn quote(words: impl Into<Cow<'static, str>>, section: &'static str) -> Quote {
    Quote { words: words.into(), section }
}

/// The number of a claim, or a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// The number itself.
    Equal(f64),
    /// An upper bound.
    AtMost(f64),
    /// A lower bound.
    AtLeast(f64),
}

impl Target {
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

    /// The least and the greatest distance of a number between `low` and `high`.
    pub(crate) fn distances(self, low: f64, high: f64) -> (f64, f64) {
        let (a, b) = (self.distance(low), self.distance(high));
        let is_between = matches!(self, Self::Equal(number) if low <= number && number <= high);
        (if is_between { 0.0 } else { a.min(b) }, a.max(b))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number();
        match self {
            Self::Equal(_) => write!(f, "{number}"),
            Self::AtMost(_) => write!(f, "≤ {number}"),
            Self::AtLeast(_) => write!(f, "≥ {number}"),
        }
    }
}
