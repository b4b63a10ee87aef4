//! What an experiment is: a sweep of cases that each return rows.

use crate::chart::Exhibit;
use crate::claim::Claim;
use crate::table::{Table, TableRow};
use fontana_proto::SplitMix64;

/// One table, figure or statement of a paper.
///
/// A case depends on its index and on no other case, so any subset of the cases can be computed on
/// any computer.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name: the paper's initials, a dot, and the table, figure or subject.
    pub id: &'static str,
    /// Paper and section, for readers.
    pub paper: &'static str,
    /// What it computes, in a few sentences.
    pub what: &'static str,
    /// Whether two runs return the same rows.
    pub kind: Kind,
    /// Names of the columns of its rows.
    pub columns: &'static [&'static str],
    /// Number of cases at a scale.
    pub cases: fn(Scale) -> u32,
    /// The rows of one case.
    pub run: fn(&Case) -> Vec<TableRow>,
    /// Numbers of the paper, and how to compute ours from the rows of all cases.
    pub claims: fn() -> Vec<Claim>,
    /// Figures and tables of the rows of all cases.
    pub exhibits: fn(&Table) -> Vec<Exhibit>,
}

/// Number of trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A run of a few minutes: fewer trials, with the same claims and tolerances.
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

/// Whether two runs of an experiment return the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows are a function of scale and seed.
    Counted,
    /// Rows have times. Such cases run one after the other. Their claims are about ratios and
    /// exponents.
    Timed,
}

/// One case of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its index, from 0.
    pub index: u32,
    /// Number of trials.
    pub scale: Scale,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The experiment's id.
    pub experiment: &'static str,
}

impl Case {
    /// The random stream `lane` of this case: a function of seed, experiment, case and lane alone.
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

    /// Its number, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Number of slices.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether a case belongs to the slice.
    pub const fn contains(self, case: u32) -> bool {
        case % self.count == self.index
    }
}
