//! Completion scripts and manual pages, from the same definitions as the command line itself.

use crate::args;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use fontana::Outcome;
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::io;
use std::path::Path;

pub(crate) fn completions(shell: Shell, console: &Console) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(true), "fontana", &mut script);
    console.result(String::from_utf8_lossy(&script).trim_end());
    Outcome::Complete
}

pub(crate) fn man(directory: Option<&Path>, console: &Console) -> Result<Outcome, Failure> {
    let failed = |path: &Path, error: io::Error| {
        let message = format!("cannot write manual pages to {path:?}: {error}");
        Failure::new(Outcome::Refused, message, "choose a directory that this user may write to")
    };
    match directory {
        Some(directory) => {
            let written = std::fs::create_dir_all(directory)
                .and_then(|()| write_pages(args::command(true), directory));
            written.map_err(|error| failed(directory, error))?;
        }
        None => {
            console.result(page(args::command(true)).1.trim_end());
        }
    }
    Ok(Outcome::Complete)
}

/// Writes the page of a command, and those of its subcommands.
fn write_pages(mut command: Command, directory: &Path) -> io::Result<()> {
    command = command.disable_help_subcommand(true);
    command.build();
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    for command in shown.collect::<Vec<_>>().into_iter().chain([command]) {
        let (name, text) = page(command);
        std::fs::write(directory.join(name), text)?;
    }
    Ok(())
}

/// The name of a command's page, and the page. Its synopsis is the first line of the help: the one
/// that is generated names every option, without its value.
fn page(mut command: Command) -> (String, String) {
    let usage = command.render_usage().to_string();
    let page = Man::new(command);
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = page.render(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let usage = usage.trim_start_matches("Usage: ").replace('-', "\\-");
    let synopsis = (text.split_once(SYNOPSIS)).and_then(|(before, rest)| {
        let (_, after) = rest.split_once("\n.SH ")?;
        Some(format!("{before}{SYNOPSIS}{usage}\n.SH {after}"))
    });
    (page.get_filename(), synopsis.unwrap_or_else(|| text.into_owned()))
}

/// The head of the section.
const SYNOPSIS: &str = ".SH SYNOPSIS\n";
