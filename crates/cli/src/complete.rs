//! Completion scripts and manual pages, from the same definitions as the command line itself.

use crate::args::Arguments;
use clap::CommandFactory;
use clap_complete::Shell;
use fontana::Outcome;
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::io;
use std::path::Path;

pub(crate) fn completions(shell: Shell, console: &Console) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "fontana", &mut script);
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
                .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
            written.map_err(|error| failed(directory, error))?;
        }
        None => {
            let mut page = Vec::new();
            // Writing to memory does not fail.
            let _ = clap_mangen::Man::new(Arguments::command()).render(&mut page);
            console.result(String::from_utf8_lossy(&page).trim_end());
        }
    }
    Ok(Outcome::Complete)
}
