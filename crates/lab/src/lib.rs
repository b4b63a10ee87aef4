//! Every table and figure of the papers that Fontana builds on: run, compare, plot.
//!
//! An [`Experiment`] is a sweep of cases, each a function that returns rows, and a list of
//! [`Claim`]s: a number that the paper prints, how to read ours off the rows, and how far apart the
//! two may be. Pages, figures and verdicts are made from the rows, elsewhere, so that rows computed
//! in slices on many machines and joined afterwards ([`merge`]) give the same page as one run.
//!
//! ```
//! use fontana_lab::{RunPlan, Scale, judge, registry, run};
//!
//! let experiment = registry::find("ms.series").expect("a registered id");
//! let plan = RunPlan::new(vec![experiment], Scale::Quick);
//! # fn main() -> Result<(), fontana_net::ThreadError> {
//! for outcome in run(&plan, &|_| ())? {
//!     assert!(judge(&outcome).iter().all(|finding| finding.as_expected));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What the papers measured on real hosts has a second form ([`registry::REAL`]) that runs the same
//! sessions over real sockets, in real time.
//!
//! Rows are a function of the experiment, the scale and the seed, whatever the number of threads or
//! slices; the exceptions are experiments that measure time ([`Kind::Timed`]).

mod bytes;
mod chart;
mod claim;
mod csv;
mod experiment;
mod finding;
mod hosts;
mod loopback;
mod outcome;
mod page;
mod plot;
pub mod registry;
pub mod relay;
mod run;
mod scene;
mod session;
mod slices;
mod statistics;
pub mod swarm;
mod table;
mod timing;

mod df;
mod fc;
mod fo;
mod ms;

pub use chart::{Axis, Chart, Exhibit, Grid, Series};
pub use claim::{Claim, Printed};
pub use experiment::{Case, Experiment, Kind, Scale, SweepSlice};
pub use finding::{Finding, Verdict, judge};
pub use hosts::HostsError;
pub use loopback::LoopbackError;
pub use outcome::{ExperimentOutcome, digest};
pub use page::{contents, write_to};
pub use run::{DEFAULT_SEED, RunPlan, RunProgress, run};
pub use slices::{MergeError, merge};
pub use table::{CaseRow, Table, TableRow, Value};
