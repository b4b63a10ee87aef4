//! The program `fontana`: a command line over the library of the same name.
//!
//! `args` defines the arguments. Each command has a module that interprets them and shows the
//! session's events. `events` defines the JSON. The crate `fontana-console` writes all output.

mod address;
mod address_space;
mod args;
mod certify;
mod complete;
mod control_group;
mod demo;
mod doctor;
mod events;
mod head;
mod hook;
mod interfaces;
mod key_file;
mod keygen;
mod manifest_file;
mod progress;
mod publish;
mod recv;
mod resume;
mod sandbox;
mod send;
mod serve;
mod version_file;

use args::{Arguments, Command};
use fontana::net::thread::catch;
use fontana::{CancellationToken, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::talk::Talk;
use fontana_console::{exit, hints, log, signal};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (Arguments { command, log }, refused) = args::parse();
    if let Some(filter) = log {
        log::start(filter);
    }
    signal::survive_file_size_limit();
    let stop = CancellationToken::new();
    let Talk { json, quiet } = command.talk();
    let console = Console::new(json, quiet, command.writes_data(), &stop);
    let result =
        catch(|| refused.and_then(|()| run(&command, &console, &stop))).unwrap_or_else(|panic| {
            Err(Failure::new(Outcome::InternalError, panic.to_string(), hints::PANIC))
        });
    let outcome = result.unwrap_or_else(|failure| {
        console.failure(&failure);
        failure.outcome
    });
    exit::status(console.finish(outcome))
}

fn run(command: &Command, console: &Console, stop: &CancellationToken) -> Result<Outcome, Failure> {
    if let Some(memory) = command.memory() {
        address_space::check(memory)?;
        control_group::check(memory, console);
    }
    match command {
        Command::Send(arguments) => send::run(arguments, console, stop),
        Command::Recv(arguments) => recv::run(arguments, console, stop),
        Command::Publish(arguments) => publish::run(arguments, console),
        Command::Serve(arguments) => serve::run(arguments, console, stop),
        Command::Resume(arguments) => resume::run(arguments, console),
        Command::Demo(arguments) => demo::run(arguments, console, stop),
        Command::Doctor(arguments) => doctor::run(arguments, console, stop),
        Command::Keygen(arguments) => keygen::run(arguments, console),
        Command::Certify(arguments) => certify::run(arguments, console),
        Command::Completions(arguments) => Ok(complete::completions(arguments.shell, console)),
        Command::Man(arguments) => complete::man(arguments.directory.as_deref(), console),
        Command::ExecHelper(arguments) => Ok(sandbox::helper::serve(arguments)),
    }
}

impl Command {
    /// Whether standard output carries received content.
    fn writes_data(&self) -> bool {
        matches!(self, Self::Recv(arguments)
            if arguments.to.as_deref() == Some(Path::new("-")) && !arguments.list)
    }

    /// Bytes that the user allows it, if it can be told.
    fn memory(&self) -> Option<u64> {
        match self {
            Self::Send(arguments) => Some(arguments.memory.memory),
            Self::Recv(arguments) => Some(arguments.memory.memory),
            Self::Serve(arguments) => Some(arguments.memory.memory),
            _ => None,
        }
    }

    fn talk(&self) -> Talk {
        match self {
            Self::Send(arguments) => arguments.talk,
            Self::Recv(arguments) => arguments.talk,
            Self::Publish(arguments) => arguments.talk,
            Self::Serve(arguments) => arguments.talk,
            Self::Resume(arguments) => arguments.talk,
            Self::Demo(arguments) => arguments.talk,
            Self::Doctor(arguments) => arguments.talk,
            Self::Keygen(_)
            | Self::Certify(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::ExecHelper(_) => Talk::default(),
        }
    }
}
