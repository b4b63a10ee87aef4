//! What confines a sender that receivers send reports to, and the program that it runs outside.

use crate::args::SendArguments;
use crate::hook::Ended;
use crate::sandbox::files::{self, Right, Rule, Tcp};
use crate::sandbox::helper::Helper;
use crate::sandbox::network::{Sending, Sockets};
use crate::sandbox::process::{self, Needs};
use fontana::{Addressing, Outcome, ReportCollection};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Confines this thread, and those that it starts, if receivers will send to this process. To be
/// called before it starts any. `content`: the files and directories that it sends.
///
/// # Errors
/// The process that runs `--exec` cannot be started.
pub(super) fn confine(
    arguments: &SendArguments,
    content: &[PathBuf],
    addressing: &Addressing,
    reports: Option<&ReportCollection>,
    console: &Console,
) -> Result<Option<CompletionProgram>, Failure> {
    let Some(reports) = reports else { return Ok(None) };
    let program = CompletionProgram::start(&arguments.reports.exec)?;
    let rules = has_known_files(arguments, content).then(|| rules(arguments, content));
    let needs = Needs {
        files: rules.as_deref().map(|rules| (rules, Tcp::Refused)),
        sockets: Some(Sockets {
            sending: Sending::Anywhere,
            tcp: false,
            // Whether packets reach the hosts that they are for.
            routes: addressing.to.iter().any(|to| !to.ip().is_multicast()),
        }),
        sets_attributes: false,
        ports: &[reports.address.map_or(0, |address| address.port())],
    };
    let confined = process::confine(&needs).map_err(|error| {
        Failure::new(Outcome::Io, format!("the process cannot be confined: {error}"), "")
    })?;
    confined.tell(console);
    Ok(program)
}

/// Whether all that will be read is known: a path that is followed may be another file, or lead
/// elsewhere, with each version, and a directory stays where it is.
fn has_known_files(arguments: &SendArguments, content: &[PathBuf]) -> bool {
    let is_directory =
        |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    arguments.watch.is_none() || content.iter().all(is_directory)
}

fn rules(arguments: &SendArguments, content: &[PathBuf]) -> Vec<Rule> {
    let mut rules = files::of_every_process();
    rules.extend(content.iter().map(|path| Rule::new(path, Right::Read)));
    let replaced = [&arguments.ticket_file, &arguments.reports.status_file];
    let directories = replaced.into_iter().flatten().filter_map(|path| path.parent());
    rules.extend(directories.map(Path::to_owned).map(|path| Rule::new(path, Right::Log)));
    rules
}

/// The program of `--exec`, which another process runs.
pub(super) struct CompletionProgram {
    name: OsString,
    helper: RefCell<Helper>,
}

impl CompletionProgram {
    /// `None` if there is no program.
    fn start(words: &[OsString]) -> Result<Option<Self>, Failure> {
        let Some(name) = words.first() else { return Ok(None) };
        let helper = Helper::start(words, None, false).map_err(|error| {
            let message = format!("cannot start the process that runs --exec: {error}");
            Failure::new(Outcome::Io, message, "mount /proc")
        })?;
        Ok(Some(Self { name: name.clone(), helper: RefCell::new(helper) }))
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Starts the program. Returns why it has not started, or `None` if it runs.
    pub(super) fn begin(&self) -> Option<Ended> {
        let begun = self.helper.borrow_mut().begin(None);
        begun.unwrap_or_else(|error| Some(Ended::NotStarted(error.to_string())))
    }

    /// Waits for the end of the program that runs.
    pub(super) fn end(&self) -> Ended {
        self.helper.borrow_mut().end().unwrap_or_else(|error| Ended::Failed(error.to_string()))
    }
}
