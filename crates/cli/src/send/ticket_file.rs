//! The file of `fontana send --ticket-file`: the ticket, for scripts and other programs.

use fontana::wire::Ticket;
use fontana::{NewFile, Outcome};
use fontana_console::failure::Failure;
use std::io::{self, Write};
use std::path::Path;

/// Writes the tickets, one per line. A reader finds the previous file or all of the new one. If one
/// is a secret, only the owner of the file may read it.
pub(super) fn write(path: &Path, tickets: &[Ticket]) -> Result<(), Failure> {
    let lines: String = tickets.iter().map(|ticket| format!("{ticket}\n")).collect();
    let directory = path.parent().unwrap_or(Path::new("."));
    let file = match tickets.iter().any(|ticket| ticket.secret.is_some()) {
        true => NewFile::create_secret_in(directory),
        false => NewFile::create_in(directory),
    };
    let written = file.and_then(|mut file| {
        file.write_all(lines.as_bytes())?;
        file.replace(path)
    });
    written.map_err(|error| {
        let outcome = match error.kind() {
            io::ErrorKind::StorageFull => Outcome::Io,
            _ => Outcome::Refused,
        };
        let message = format!("cannot write the ticket to {path:?}: {error}");
        Failure::new(outcome, message, "choose a directory that this user may write to")
    })
}

/// Replaces a file atomically.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NewFile::create_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.replace(path)
}
