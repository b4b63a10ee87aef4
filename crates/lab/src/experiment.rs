//! What an experiment is: a sweep of cases that each return rows.

use crate::chart::Exhibit;
use crate::claim::Claim;
use crate::table::{Table, TableRow};
use fontana_proto::SplitMix64;

/// One table, figure or statement of a paper.
///
/// A sweep is stateless: a case knows its index and nothing of the others, so that any subset of
/// the cases can be computed anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name: the paper's initials, a dot, and what of it.
    pub id: &'static str,
    /// Where in which paper, for people.
    pub paper: &'static str,
    /// What is computed, in a sentence or two.
    pub what: &'static str,
    /// Whether two runs give the same rows.
    pub kind: Kind,
    /// Names of the columns of its rows.
    pub columns: &'static [&'static str],
    /// Number of cases at a scale.
    pub cases: fn(Scale) -> u32,
    /// The rows of one case.
    pub run: fn(&Case) -> Vec<TableRow>,
    /// What the paper says, and how to read ours off the rows of all cases.
    pub claims: fn() -> Vec<Claim>,
    /// Figures and tables made from the rows of all cases.
    pub exhibits: fn(&Table) -> Vec<Exhibit>,
}

/// How many trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Everything within a minute or two: fewer trials, the same claims and tolerances.
    Quick,
    /// At least as many trials as the paper.
    Full,
}

impl Scale {
    /// One of two numbers.
    pub const fn pick(self, quick: u32, full: u32) -> u32 {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// Whether two runs of an experiment give the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows are a function of scale and seed.
    Counted,
    /// Rows hold times. Such cases run one after the other, and their claims are about ratios and
    /// exponents.
    Timed,
}

/// One case of a sweep, about to run.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Which: from 0 to the number of cases.
    pub index: u32,
    /// How many trials.
    pub scale: Scale,
    /// All randomness comes from here.
    pub seed: u64,
    /// The experiment's id.
    pub experiment: &'static str,
}

impl Case {
    /// The random stream `lane` of this case: a function of seed, experiment, case and lane, and of
    /// nothing else.
    pub fn stream(&self, lane: u32) -> SplitMix64 {
        let mut name = blake3::Hasher::new();
        name.update(self.experiment.as_bytes());
        name.update(&self.index.to_le_bytes());
        name.update(&lane.to_le_bytes());
        let mut stream = [0; 8];
        name.finalize_xof().fill(&mut stream);
        SplitMix64::new(self.seed, u64::from_le_bytes(stream))
    }
}

/// Every `count`-th case of a sweep, beginning with the one numbered `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepSlice {
    index: u32,
    count: u32,
}

impl SweepSlice {
    /// All cases.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Slice `index` of `count`; `None` unless `index < count`.
    pub const fn new(index: u32, count: u32) -> Option<Self> {
        if index < count { Some(Self { index, count }) } else { None }
    }

    /// Which slice, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many slices there are.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether a case belongs to the slice.
    pub const fn contains(self, case: u32) -> bool {
        case % self.count == self.index
    }
}
