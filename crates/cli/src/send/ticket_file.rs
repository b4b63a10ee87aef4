//! The file of `fontana send --ticket-file`: the ticket, for scripts and other programs.

use crate::failure::Failure;
use fontana::Outcome;
use fontana::wire::Ticket;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes the tickets, one per line. A reader finds the previous file or all of the new one.
pub(super) fn write(path: &Path, tickets: &[Ticket]) -> Result<(), Failure> {
    let lines: String = tickets.iter().map(|ticket| format!("{ticket}\n")).collect();
    replace(path, lines.as_bytes()).map_err(|error| {
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
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let permissions = Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
