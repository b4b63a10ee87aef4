//! `recv --to`: standard output, or a device, after confirmation. With `--flute`, a file.

use super::Setup;
use crate::args::ReceiveArguments;
use fontana::{CancellationToken, Device, Error, Outcome, PreparedReceiver};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::Bytes;
use rustix::fs::FileType;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

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
        Some(_) if arguments.flute => receiver.prepare()?,
        Some(path) if path == Path::new("-") => {
            receiver.into_pipe(standard_output()?, setup.directory).prepare()?
        }
        Some(path) => {
            let device = Device::open(path, arguments.replaces_existing()).map_err(Error::from)?;
            confirm(&device, arguments.yes, console)?;
            receiver.into_device(device, setup.directory).prepare()?
        }
    })
}

/// Rejects a choice of files where the one file needs none.
pub(super) fn check(arguments: &ReceiveArguments) -> Result<(), Failure> {
    if arguments.to.is_some() && !arguments.only.is_empty() && !arguments.flute {
        let message = "--only with --to: a session whose content goes there has one file";
        return Err(Failure::new(Outcome::Usage, message, "leave --only out, or use --output"));
    }
    Ok(())
}

/// The directory and the name of a file that plain FLUTE is received into. Its bytes are known to
/// be right when all of them are there, and then it gets its name.
pub(super) fn file(path: &Path) -> Result<(PathBuf, OsString), Failure> {
    let is_other = path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file());
    match path.file_name().filter(|_| path != Path::new("-") && !is_other) {
        Some(name) => {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok((directory.unwrap_or(Path::new(".")).to_owned(), name.to_owned()))
        }
        None => {
            let message = format!("--flute --to {}: that is no file", path.display());
            let hint = "name a file: what --flute brings is compared when all of it is there";
            Err(Failure::new(Outcome::Usage, message, hint))
        }
    }
}

/// Whether another program reads standard output.
pub(super) fn is_pipe() -> bool {
    let stat = rustix::fs::fstat(io::stdout());
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
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

/// Asks before a device is overwritten. A file that may be overwritten needs `--existing replace`.
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
