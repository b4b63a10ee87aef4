//! The comparison of codes with other implementations, of the crate `bench`: `cargo bench -p
//! fontana-fec` is `cargo run --release -p fontana-bench -- codes`.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark: it reads the clock, and a wrong result ends it"
)]

#[path = "../../bench/src/arguments.rs"]
mod arguments;
#[path = "../../bench/src/codes.rs"]
mod codes;
#[path = "../../bench/src/contest.rs"]
mod contest;
#[path = "../../bench/src/failures.rs"]
mod failures;
#[path = "../../bench/src/limit.rs"]
mod limit;
#[path = "../../bench/src/ours.rs"]
mod ours;
#[path = "../../bench/src/peers.rs"]
mod peers;
#[path = "../../bench/src/reception.rs"]
mod reception;
#[path = "../../bench/src/workload.rs"]
mod workload;

use arguments::{Arguments, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Arguments::parse(std::env::args().skip(1)) {
        Ok(Arguments { command: Command::Codes(selection), json }) => {
            codes::run(&selection, json);
        }
        Ok(Arguments { command: Command::Failures { k }, json }) => failures::run(k, json),
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
