//! The output options of a command.

use clap::Args;

/// `--json` and `--quiet`.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Talk {
    /// Print events as JSON, one per line
    ///
    /// See docs/events.md. Nothing else is written to standard output.
    #[arg(long)]
    pub json: bool,
    /// Print only errors and results
    #[arg(short, long)]
    pub quiet: bool,
}
