//! The tables and figures of the papers that Fontana builds on: run, compare, plot.
//!
//! A [`Sweep`] is a number of cases, each a function that returns rows. An [`Experiment`] shows the
//! rows of a sweep in figures and tables, and makes [`Claim`]s about them: a number, whether the
//! paper prints it ([`ClaimKind`]), how to compute ours from the rows, and how far apart the two
//! may be. Several experiments may show one sweep, which then runs once.
//!
//! Pages, figures and verdicts are made from the rows alone, so rows computed in slices on many
//! computers and joined afterwards ([`merge`]) give the same page as one run. Rows are a function
//! of the sweep, the scale and the seed, whatever the number of threads or slices, except those of
//! sweeps that measure time ([`Kind::Timed`]). What the papers measured on real hosts has a second
//! form ([`registry::REAL`]), which runs the same sessions over real sockets in real time.
//!
//! ```
//! use fontana_lab::{RunPlan, Scale, judge, registry, run};
//!
//! # fn main() -> Result<(), fontana_lab::RunError> {
//! let experiment = registry::find("ms.series").expect("a registered id");
//! let plan = RunPlan::new(vec![experiment], Scale::Quick);
//! for outcome in run(&plan, &|_| ())? {
//!     assert!(judge(&outcome).iter().all(|finding| finding.as_expected));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | [`registry`] | all experiments, and their claims that are known to differ |
//! | `experiment`, `claim`, `row`, `value`, `table`, `chart` | what an experiment is: sweep, claims, rows |
//! | `estimate` | numbers of trials, with their standard errors |
//! | `plan`, `run` | cases with their expected duration, slices; runs of a plan |
//! | `cases`, `slices`, `csv`, `identity` | files of rows, and how those of slices are joined |
//! | `outcome`, `finding`, `page`, `plot` | rows and digest, verdicts, the page and its figures |
//! | `digital_fountain`, `mirrors`, `repair`, `bmtp`, `fcast` | experiments of the papers |
//! | `fontana` | experiments beyond the papers |
//! | `session`, `scene`, `bytes`, `taken`, `observed` | simulated sessions: endpoints, networks, content, layers, jobs |
//! | `hosts`, [`emulator`], `loopback` | real sessions: hosts in network namespaces, links between them |
//! | [`swarm`] | random runs, checked for invariants |
//! | [`hostile`] | hostile packets beside an honest session, by class |
//! | `statistics`, `timing` | means, quantiles, fits; processor time |

mod bytes;
mod cases;
mod chart;
mod claim;
mod csv;
pub mod emulator;
mod estimate;
mod experiment;
mod finding;
pub mod hostile;
mod hosts;
mod identity;
mod loopback;
mod no_jobs;
mod observed;
mod outcome;
mod page;
mod plan;
mod plot;
pub mod registry;
mod row;
mod run;
mod scene;
mod session;
mod slices;
mod statistics;
pub mod swarm;
mod table;
mod taken;
mod timing;
mod value;

mod bmtp;
mod digital_fountain;
mod fcast;
mod fontana;
mod mirrors;
mod repair;

pub use cases::{CaseStore, StoreError};
pub use chart::{Axis, Bar, Bars, Chart, Exhibit, Grid, Marks, Panel, Point, Series};
pub use claim::{Claim, ClaimKind, Quote, Target};
pub use estimate::Estimate;
pub use experiment::{Case, Experiment, Kind, Scale, Sweep};
pub use finding::{Finding, Verdict, judge};
pub use hosts::HostsError;
pub use identity::{DEFAULT_SEED, RunIdentity};
pub use loopback::LoopbackError;
pub use outcome::{ExperimentOutcome, digest};
pub use page::{contents, write_to};
pub use plan::{PlannedCase, SweepSlice, dealt, planned_cases};
pub use run::{RunError, RunPlan, RunProgress, run};
pub use slices::{Holes, MergeError, merge};
pub use table::{CaseRow, Table};
pub use value::{TableRow, Value};
