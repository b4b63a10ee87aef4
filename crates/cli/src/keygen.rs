//! `fontana keygen`.

use crate::console::Console;
use crate::failure::Failure;
use fontana::Outcome;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a new secret key to a new file that only its owner can read.
pub(crate) fn run(path: &Path, console: &Console) -> Result<Outcome, Failure> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            Outcome::Refused,
            format!("{path:?} exists already"),
            "choose another name: a key that is gone cannot be made again",
        ),
        io::ErrorKind::StorageFull => {
            Failure::new(Outcome::Io, format!("disk full: no room for {path:?}"), "free some space")
        }
        _ => Failure::new(
            Outcome::Refused,
            format!("cannot create {path:?}: {error}"),
            "choose a directory that this user may write to",
        ),
    };
    let key = fontana::generate_key()?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(key.to_file_text().as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    console.result(key.public_key());
    console.note(format_args!("the public key; the secret one is in {path:?}, keep it"));
    Ok(Outcome::Complete)
}
