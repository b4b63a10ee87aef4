//! `recv --to`: standard output, or a device, after confirmation.

use super::Setup;
use crate::args::ReceiveArguments;
use fontana::{CancellationToken, Device, Error, Outcome, PreparedReceiver};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::Bytes;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;

/// Prepares a receiver with the destination of the arguments. `stop` ends it.
pub(super) fn open(
    arguments: &ReceiveArguments,
    setup: Setup,
    console: &Console,
    stop: &CancellationToken,
) -> Result<PreparedReceiver, Failure> {
    let receiver = setup.receiver.cancellation_token(stop);
    Ok(match arguments.to.as_deref() {
        None => receiver.prepare()?,
        Some(path) if path == Path::new("-") => {
            receiver.into_pipe(standard_output()?, setup.directory).prepare()?
        }
        Some(path) => {
            let device = Device::open(path, arguments.overwrite).map_err(Error::from)?;
            confirm(&device, arguments.yes, console)?;
            receiver.into_device(device, setup.directory).prepare()?
        }
    })
}

fn standard_output() -> Result<File, Failure> {
    if io::stdout().is_terminal() {
        let hint = "pipe it into a program: fontana recv --to - | tar x\nor into a file: > FILE";
        return Err(Failure::new(Outcome::Usage, "standard output is this terminal", hint));
    }
    // Uses the descriptor itself: the standard library's buffer searches for line ends.
    let output = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| Failure::new(Outcome::Io, format!("standard output: {error}"), ""))?;
    Ok(File::from(output))
}

/// Asks before a device is overwritten. A file that may be overwritten needs `--overwrite`.
fn confirm(device: &Device, yes: bool, console: &Console) -> Result<(), Failure> {
    let Some(capacity) = device.capacity() else { return Ok(()) };
    let model = device.model().map_or_else(String::new, |model| format!("{model}, "));
    let what = format!("{} ({model}{})", device.path().display(), Bytes(capacity));
    if yes {
        console.note(format_args!("writing to {what}"));
        return Ok(());
    }
    if console.is_json() || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message =
            format!("all that is on {what} will be lost, and there is no terminal to ask on");
        return Err(Failure::new(Outcome::Usage, message, "say that it is right: --yes"));
    }
    console.ask(format_args!("all that is on {what} will be lost. Write to it? (yes or no) "));
    let mut answer = String::new();
    match io::stdin().read_line(&mut answer) {
        Ok(_) if answer.trim() == "yes" => Ok(()),
        _ => Err(Failure::new(Outcome::Interrupted, "nothing was written", "")),
    }
}
