//! `fontana keygen`.

use crate::args::KeygenArguments;
use crate::key_file;
use fontana::Outcome;
use fontana::seal::GroupKey;
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes a key of the kind that is asked for.
pub(crate) fn run(arguments: &KeygenArguments, console: &Console) -> Result<Outcome, Failure> {
    key_file::keep_secrets();
    let path = &arguments.file;
    if arguments.group {
        write(path, &GroupKey::generate()?.to_file_text())?;
        console.note(format_args!("the group key is in {path:?}: copy it to all of the group"));
        return Ok(Outcome::Complete);
    }
    let key = fontana::generate_key()?;
    write(path, &key.to_file_text())?;
    console.result(key.public_key());
    console.note(format_args!("the public key; the secret one is in {path:?}, keep it"));
    Ok(Outcome::Complete)
}

/// Writes a secret key to a new file that only its owner can read.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
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
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(key_file::MODE);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}
