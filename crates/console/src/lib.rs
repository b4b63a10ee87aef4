//! What the programs of this workspace share: `fontana` (crate `cli`) and `fontana-lab` (crate
//! `lab`).
//!
//! | module | |
//! |---|---|
//! | [`console`] | all output: results, notes, warnings, errors, progress bars; `output` writes it |
//! | [`json`] | a line of `--json`, and the events of every command |
//! | [`talk`] | the options `--json` and `-q` |
//! | [`failure`], [`hints`], [`exit`] | an error of a command, what the user can do, the exit code |
//! | [`units`] | numbers with units, parsed and formatted |
//! | [`signal`] | the first signal cancels, the second ends |
//! | [`log`] | `--log` |

pub mod console;
pub mod exit;
pub mod failure;
pub mod hints;
pub mod json;
pub mod log;
mod output;
pub mod signal;
pub mod talk;
pub mod units;
