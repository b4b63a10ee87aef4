//! What an experiment is: claims about, and figures of, the rows of a sweep.

use crate::chart::Exhibit;
use crate::claim::Claim;
use crate::row::{self, Row};
use crate::table::Table;
use crate::value::TableRow;
use fontana_proto::SplitMix64;
use std::fmt;

/// One table, figure or statement of a paper: what it shows of the rows of a sweep.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Its name: the paper's initials, a dot, and the table, figure or subject.
    pub id: &'static str,
    /// Paper and section, for readers.
    pub paper: &'static str,
    /// What it computes, in a few sentences.
    pub what: &'static str,
    /// Where its rows come from.
    pub sweep: &'static dyn Sweep,
    /// Numbers of the paper, and how to compute ours from the rows of all cases.
    pub claims: fn() -> Vec<Claim>,
    /// Figures and tables of the rows of all cases.
    pub exhibits: fn(&Table) -> Vec<Exhibit>,
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Experiment({})", self.id)
    }
}

/// Cases, and the rows of each. Several experiments may show the rows of one sweep, which then runs
/// once.
///
/// A case depends on its index and on no other case, so any subset of the cases can be computed on
/// any computer.
pub trait Sweep: Sync {
    /// Its name: the experiment's id, unless several experiments show it.
    fn name(&self) -> &'static str;

    /// Whether two runs return the same rows.
    fn kind(&self) -> Kind;

    /// Names of the columns of its rows.
    fn columns(&self) -> &'static [&'static str];

    /// Number of cases at a scale.
    fn cases(&self, scale: Scale) -> u32;

    /// The rows of one case.
    fn run(&self, case: &Case) -> Vec<TableRow>;
}

/// A sweep whose rows are structs.
pub(crate) struct SweepOf<R> {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) cases: fn(Scale) -> u32,
    pub(crate) run: fn(&Case) -> Vec<R>,
}

impl<R: Row> Sweep for SweepOf<R> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn columns(&self) -> &'static [&'static str] {
        row::columns::<R>()
    }

    fn cases(&self, scale: Scale) -> u32 {
        (self.cases)(scale)
    }

    fn run(&self, case: &Case) -> Vec<TableRow> {
        (self.run)(case).iter().map(row::values).collect()
    }
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

/// Whether two runs of a sweep return the same rows.
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
    /// The sweep's name.
    pub sweep: &'static str,
}

impl Case {
    /// The random stream `lane` of this case: a function of seed, sweep, case and lane alone.
    pub fn stream(&self, lane: u32) -> SplitMix64 {
        let mut name = blake3::Hasher::new();
        name.update(self.sweep.as_bytes());
        name.update(&self.index.to_le_bytes());
        name.update(&lane.to_le_bytes());
        let mut stream = [0; 8];
        name.finalize_xof().fill(&mut stream);
        SplitMix64::new(self.seed, u64::from_le_bytes(stream))
    }
}
