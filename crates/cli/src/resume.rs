//! `fontana resume`: lists and discards what interrupted receptions have left. `fontana recv`
//! resumes them by itself.

use crate::args::ResumeArguments;
use crate::events::ResumeEvent as Line;
use fontana::wire::Printable;
use fontana::{Interrupted, Outcome};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use fontana_console::units::{Bytes, Count, Percent, Time};
use std::time::{Duration, SystemTime};

pub(crate) fn run(arguments: &ResumeArguments, console: &Console) -> Result<Outcome, Failure> {
    if !arguments.directory.is_dir() {
        let message = format!("there is no directory {:?}", arguments.directory);
        return Err(Failure::new(Outcome::Refused, message, "check the spelling of the path"));
    }
    let mut found = fontana::interrupted(&arguments.directory)?;
    if let Some(tag) = &arguments.tag {
        found.retain(|interrupted| interrupted.tag.starts_with(tag.as_str()));
    }
    if arguments.discard { discard(arguments, &found, console) } else { Ok(list(&found, console)) }
}

fn list(found: &[Interrupted], console: &Console) -> Outcome {
    for interrupted in found {
        console.result_event(&Line::interrupted(interrupted, idle(interrupted)));
        console.result(format_args!("{}  {}", interrupted.tag, Description(interrupted)));
    }
    if found.is_empty() {
        console.result("nothing was interrupted here");
    }
    Outcome::Complete
}

fn discard(
    arguments: &ResumeArguments,
    found: &[Interrupted],
    console: &Console,
) -> Result<Outcome, Failure> {
    let listing = format!("see what there is: fontana resume {}", arguments.directory.display());
    let [interrupted] = found else {
        let message = match found.len() {
            0 => format!("no such reception in {:?}", arguments.directory),
            count => format!("{count} receptions in {:?}: which one?", arguments.directory),
        };
        let hint = format!("{listing}\nthen name one by its tag, or by the first digits of it");
        return Err(Failure::new(Outcome::Usage, message, hint));
    };
    fontana::discard(&arguments.directory, &interrupted.tag)?;
    console.result_event(&Line::Discarded {
        tag: interrupted.tag.clone(),
        bytes_on_disk: interrupted.bytes_on_disk,
    });
    console.note(format_args!("discarded {}", Description(interrupted)));
    Ok(Outcome::Complete)
}

/// Time since the last symbol was received.
fn idle(interrupted: &Interrupted) -> Duration {
    // Zero if the clock was set back since.
    SystemTime::now().duration_since(interrupted.modified).unwrap_or_default()
}

/// The description of a reception for people.
struct Description<'a>(&'a Interrupted);

impl std::fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(interrupted) = self;
        match &interrupted.manifest {
            Some(manifest) => {
                let share = interrupted.symbols as f64 / interrupted.source_symbols.max(1) as f64;
                let files = Count(manifest.files().count() as u64, "file");
                let bytes = Bytes(manifest.content_length());
                let label = Printable(manifest.label());
                write!(f, "{label} ({files}, {bytes}), {} received", Percent(Some(share)))?;
            }
            None => f.write_str("unknown content")?,
        }
        write!(f, ", {} on disk", Bytes(interrupted.bytes_on_disk))?;
        if interrupted.in_use {
            f.write_str(", being received")
        } else {
            write!(f, ", interrupted {} ago", Time(idle(interrupted)))
        }
    }
}
