//! Files with secret keys.

use crate::args::SessionFormat;
use fontana::Outcome;
use fontana_console::failure::Failure;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

/// Largest key file that is read: a key is one line of 85 bytes.
const MAX_KEY_FILE: u64 = 4096;

/// The command that makes a publisher's key.
pub(crate) const KEYGEN: &str = "fontana keygen FILE";
/// The command that makes a group key.
pub(crate) const KEYGEN_GROUP: &str = "fontana keygen --group FILE";

/// Refuses a group key for sessions of a format that has no seals.
pub(crate) fn refuse_other_formats(format: SessionFormat) -> Result<(), Failure> {
    let name = match format {
        SessionFormat::Fontana => return Ok(()),
        SessionFormat::Flute => "plain FLUTE",
        SessionFormat::Fcast => "FCAST",
    };
    let message = format!("--group-key with {name}, whose programs know no group keys");
    let hint = "leave one of them out; between Fontana programs --flute and --fcast are not needed";
    Err(Failure::new(Outcome::Usage, message, hint))
}

/// Reads a secret key, which `keygen` makes. Refuses a file that other users may read.
pub(crate) fn read<K>(path: &Path, keygen: &str) -> Result<K, Failure>
where
    K: FromStr,
    K::Err: Display,
{
    let refused = |error: &dyn Display| {
        let message = format!("the key file {path:?}: {error}");
        Failure::new(Outcome::Authentication, message, format!("make one: {keygen}"))
    };
    let file = File::open(path).map_err(|error| refused(&error))?;
    let mut text = String::new();
    (&file).take(MAX_KEY_FILE).read_to_string(&mut text).map_err(|error| refused(&error))?;
    let key = text.parse().map_err(|error| refused(&error))?;
    if may_be_read_by_others(&file).map_err(|error| refused(&error))? {
        let message = format!("other users may read the secret key in {path:?}");
        let hint = format!("chmod 600 {}, or make another: {keygen}", path.display());
        return Err(Failure::new(Outcome::Authentication, message, hint));
    }
    Ok(key)
}

/// Whether others than its owner may read or write a file with a secret.
pub(crate) fn may_be_read_by_others(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.mode() & 0o077 != 0)
}
