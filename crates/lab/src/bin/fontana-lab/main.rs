//! The program `fontana-lab`: a command line over the laboratory.
//!
//! `args` defines the arguments, `events` the JSON. Each command has a module.

mod args;
mod commit;
mod emulate;
mod events;
mod experiments;
mod hostile;
mod progress;
mod swarm;

use args::{Arguments, Command};
use clap::Parser;
use fontana::net::thread::catch;
use fontana::{CancellationToken, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::talk::Talk;
use fontana_console::{exit, hints, log};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Arguments { command, log } = Arguments::parse();
    if let Some(filter) = log {
        log::start(filter);
    }
    let stop = CancellationToken::new();
    let Talk { json, quiet } = command.talk();
    let console = Console::new(json, quiet, false, &stop);
    let result = catch(|| run(&command, &console, &stop)).unwrap_or_else(|panic| {
        Err(Failure::new(Outcome::InternalError, panic.to_string(), hints::PANIC))
    });
    let outcome = result.unwrap_or_else(|failure| {
        console.failure(&failure);
        failure.outcome
    });
    exit::status(console.finish(outcome))
}

fn run(command: &Command, console: &Console, stop: &CancellationToken) -> Result<Outcome, Failure> {
    match command {
        Command::List(_) => Ok(experiments::list(console)),
        Command::Plan(arguments) => experiments::plan::run(arguments, console),
        Command::Run(arguments) => experiments::run(arguments, console),
        Command::Merge(arguments) => experiments::merge::run(arguments, console),
        Command::Swarm(arguments) => swarm::run(arguments, console),
        Command::Hostile(arguments) => hostile::run(arguments, console, stop),
        Command::Emulate(arguments) => emulate::run(arguments, console, stop),
    }
}
