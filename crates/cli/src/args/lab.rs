//! `fontana lab`.

use super::Talk;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// Compute what the papers claim, and compare
///
/// Every table and figure of the papers behind the digital fountain is an experiment with an id.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  fontana lab list
  fontana lab run df.fig2
  fontana lab run all --quick
  fontana lab run all --out results             a page, figures, and rows as CSV
  fontana lab run all --case 3 --of 16 --out part3      one of 16 jobs; then:
  fontana lab merge part* --out results
  fontana lab swarm --seeds 500                 random worlds, and what must hold in all of them")]
pub(crate) struct LabArguments {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    List(LabListArguments),
    Run(LabRunArguments),
    Merge(LabMergeArguments),
    Swarm(LabSwarmArguments),
}

/// List the experiments
#[derive(Debug, Args)]
pub(crate) struct LabListArguments {
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Run experiments and judge the claims
///
/// Uses all processors. The rows follow from the experiment, --quick and --seed alone; experiments
/// that measure time run one after the other, at the end.
#[derive(Debug, Args)]
pub(crate) struct LabRunArguments {
    /// Which: an id, the part of an id before the dot, or all
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Fewer trials, the same claims
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write a page, figures, and rows as CSV to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Where all randomness comes from
    #[arg(long, value_name = "S", default_value_t = fontana_lab::DEFAULT_SEED)]
    pub(crate) seed: u64,
    /// Compute slice N of M only, from 0; nothing is judged
    #[arg(long, value_name = "N", requires = "of", requires = "out")]
    pub(crate) case: Option<u32>,
    /// How many slices there are
    #[arg(long, value_name = "M", requires = "case")]
    pub(crate) of: Option<u32>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Join the slices of one run, and judge the claims
#[derive(Debug, Args)]
pub(crate) struct LabMergeArguments {
    /// What the runs of the slices have written
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,
    /// Write a page, figures, and rows as CSV to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// Run the protocol in random simulated worlds, and check what must hold in all of them
///
/// Each seed draws a network with losses, faults and churn, the content and how it is sent. Uses all
/// processors; a run follows from its seed alone.
#[derive(Debug, Args)]
pub(crate) struct LabSwarmArguments {
    /// How many runs
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) seeds: u32,
    /// Seed of the first run; the others follow
    #[arg(long, value_name = "S", default_value_t = fontana_lab::DEFAULT_SEED)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

impl LabArguments {
    pub(crate) fn talk(&self) -> Talk {
        match &self.command {
            LabCommand::List(arguments) => arguments.talk,
            LabCommand::Run(arguments) => arguments.talk,
            LabCommand::Merge(arguments) => arguments.talk,
            LabCommand::Swarm(arguments) => arguments.talk,
        }
    }
}
