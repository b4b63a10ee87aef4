//! Comparison of Fontana with other implementations in alternating runs: of its codes, in one
//! process, and of its transfers, between hosts that are network namespaces.
//!
//! ```text
//! cargo run --release -p fontana-bench -- codes [--json] [--code NAME] [--k K] [--scenario NAME]
//! cargo run --release -p fontana-bench -- failures
//! cargo run --release -p fontana-bench -- net [--quick] [--peers] [--json]
//! cargo run --release -p fontana-bench -- mirrors [--scenario NAME,..] [--json]
//! cargo run --release -p fontana-bench -- serve [--clients N] [--json]
//! cargo run --release -p fontana-bench -- sender [--passes N] [--json]
//! cargo run --release -p fontana-bench -- reports [--receivers N] [--json]
//! cargo run --release -p fontana-bench -- lateness [--receivers N] [--junk N] [--json]
//! cargo run --release -p fontana-bench -- path [--stage NAME,..] [--json]
//! ```
//!
//! `cargo bench -p fontana-fec` is the same without `net`, `mirrors`, `serve`, `sender`, `reports`,
//! `lateness` and `path`. `failures` counts decoding failures. `docs/benchmarks.md` explains the
//! figures, and has those of past runs.
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
mod lateness;
mod limit;
mod mirrors;
mod net;
mod numbers;
mod ours;
mod path;
mod peers;
mod reception;
mod reports;
mod sender;
mod serve;
mod workload;

use arguments::{Arguments, Command};
use lateness::LatenessPlan;
use mirrors::MirrorsPlan;
use net::arguments::NetPlan;
use path::PathPlan;
use reports::ReportsPlan;
use sender::SenderPlan;
use serve::ServePlan;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|first| first == "net").is_some() {
        return transfers(words, NetPlan::parse, net::run);
    }
    if words.next_if(|first| first == "mirrors").is_some() {
        return transfers(words, MirrorsPlan::parse, mirrors::run);
    }
    if words.next_if(|first| first == "serve").is_some() {
        return transfers(words, ServePlan::parse, serve::run);
    }
    if words.next_if(|first| first == "sender").is_some() {
        return transfers(words, SenderPlan::parse, sender::run);
    }
    if words.next_if(|first| first == "reports").is_some() {
        return transfers(words, ReportsPlan::parse, reports::run);
    }
    if words.next_if(|first| first == "lateness").is_some() {
        return transfers(words, LatenessPlan::parse, lateness::run);
    }
    if words.next_if(|first| first == "path").is_some() {
        return transfers(words, PathPlan::parse, path::run);
    }
    match Arguments::parse(words) {
        Ok(Arguments { command, json }) => {
            match command {
                Command::Codes(selection) => codes::run(&selection, json),
                Command::Failures { k } => failures::run(k, json),
            }
            ExitCode::SUCCESS
        }
        Err(usage) => {
            eprintln!("{usage}\n{}", usage_of_transfers());
            ExitCode::from(2)
        }
    }
}

fn usage_of_transfers() -> String {
    [
        net::arguments::USAGE,
        mirrors::USAGE,
        serve::USAGE,
        sender::USAGE,
        reports::USAGE,
        lateness::USAGE,
        path::USAGE,
    ]
    .join("\n")
}

/// A bench of transfers: parses its command line, and runs it.
fn transfers<P>(
    words: impl Iterator<Item = String>,
    parse: impl FnOnce(std::vec::IntoIter<String>) -> Result<P, String>,
    run: impl FnOnce(&P, bool) -> Result<(), String>,
) -> ExitCode {
    let (json, words): (Vec<_>, Vec<_>) = words.partition(|word| word == "--json");
    match parse(words.into_iter()) {
        Ok(plan) => match run(&plan, !json.is_empty()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        Err(mistake) => {
            eprintln!("error: {mistake}\n{}", usage_of_transfers());
            ExitCode::from(2)
        }
    }
}
