//! Comparison of Fontana's codes with other implementations, in one process, in alternating runs.
//!
//! ```text
//! cargo run --release -p fontana-bench -- codes [--json] [--code NAME] [--k K] [--scenario NAME]
//! cargo run --release -p fontana-bench -- failures
//! ```
//!
//! `cargo bench -p fontana-fec` is the same program. `failures` counts decoding failures instead.
//! `docs/benchmarks.md` explains the figures, and has those of past runs.
//!
//! The other implementations allocate their results again in each run, and with glibc's defaults
//! most of that time is spent in the kernel. For a comparison of the codes, set
//! `MALLOC_TRIM_THRESHOLD_=4000000000` and `MALLOC_MMAP_THRESHOLD_=4000000000` in the environment.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark: it reads the clock, and a wrong result ends it"
)]

mod arguments;
mod codes;
mod contest;
mod failures;
mod limit;
mod ours;
mod peers;
mod reception;
mod workload;

use arguments::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)) {
        Ok(Arguments { command, json }) => {
            match command {
                Command::Codes(selection) => codes::run(&selection, json),
                Command::Failures { k } => failures::run(k, json),
            }
            ExitCode::SUCCESS
        }
        Err(usage) => {
            eprintln!("{usage}");
            ExitCode::from(2)
        }
    }
}
