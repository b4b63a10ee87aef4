//! `fontana send -`: standard input, sent while it is read, or read to its end first.

use crate::args::SendArguments;
use fontana::{Outcome, StdinCopy};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::Bytes;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// The name of the content without `--name`.
pub(super) const NAME: &str = "stream";

/// The content of a session.
pub(super) enum Input {
    Files,
    /// Standard input, while it is read.
    Stream,
    /// Standard input, read to its end into a file on the disk of this directory.
    Copy(PathBuf),
}

/// The content that the arguments name.
pub(super) fn of(arguments: &SendArguments) -> Result<Input, Failure> {
    let usage = |message, hint| Err(Failure::new(Outcome::Usage, message, hint));
    if !arguments.files.iter().any(is_standard_input) {
        return match (&arguments.spool, arguments.wait) {
            (Some(_), _) => usage("--spool without anything to spool", "send standard input: -"),
            (_, Some(_)) => usage(
                "--wait with files, which receivers may come for at any time",
                "leave it out, or send a stream: producer | fontana send -",
            ),
            (None, None) => Ok(Input::Files),
        };
    }
    if arguments.watch.is_some() {
        return usage("standard input (-) does not change: --watch is for directories", "name one");
    }
    if arguments.files.len() > 1 || arguments.from_list.is_some() {
        return usage("standard input (-) beside other files", "send them in two sessions");
    }
    if io::stdin().is_terminal() {
        let hint = "send the output of a program: tar c DIR | fontana send -";
        return usage("standard input is this terminal", hint);
    }
    Ok(match &arguments.spool {
        None => Input::Stream,
        Some(None) => Input::Copy(std::env::temp_dir()),
        Some(Some(directory)) => Input::Copy(directory.clone()),
    })
}

/// Whether standard input is sent while it is read.
pub(super) fn is_stream(arguments: &SendArguments) -> bool {
    arguments.files.iter().any(is_standard_input) && arguments.spool.is_none()
}

fn is_standard_input(path: &PathBuf) -> bool {
    path == Path::new("-")
}

/// Reads standard input to its end.
pub(super) fn copy(directory: PathBuf, console: &Console) -> Result<StdinCopy, Failure> {
    let copy = StdinCopy::read(&mut io::stdin().lock(), directory)?;
    console.note(format_args!("read {} from standard input", Bytes(copy.length())));
    Ok(copy)
}
