//! Files with secret keys, and what keeps secrets inside of this process.

use crate::args::SessionFormat;
use fontana::Outcome;
use fontana_console::failure::Failure;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

/// Largest key file that is read: a key is one line of 85 bytes.
const MAX_KEY_FILE: u64 = 4096;

/// Permissions of files with secrets, and beside them.
pub(crate) const MODE: u32 = 0o600;

/// How a publisher's key is made.
pub(crate) const KEYGEN: &str = "make one: fontana keygen FILE";
/// How a group key is made.
pub(crate) const KEYGEN_GROUP: &str = "make one: fontana keygen --group FILE";

/// Keeps the memory of this process out of core dumps, and from other processes of its user. To be
/// called before a secret is read. `RLIMIT_CORE` would not do: a dump that goes to a program, as
/// that of systemd, ignores it (core(5)).
pub(crate) fn keep_secrets() {
    // It fails for unknown values only.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

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

/// Reads a secret key. Refuses a file that other users may read. `remedy`: what to do if it is
/// none.
pub(crate) fn read<K>(path: &Path, remedy: &str) -> Result<K, Failure>
where
    K: FromStr,
    K::Err: Display,
{
    keep_secrets();
    let refused = |error: &dyn Display| {
        let message = format!("the key file {path:?}: {error}");
        Failure::new(Outcome::Authentication, message, remedy)
    };
    let file = File::open(path).map_err(|error| refused(&error))?;
    let mut text = String::new();
    (&file).take(MAX_KEY_FILE).read_to_string(&mut text).map_err(|error| refused(&error))?;
    let key = text.parse().map_err(|error| refused(&error))?;
    if may_be_read_by_others(&file).map_err(|error| refused(&error))? {
        let message = format!("other users may read the secret key in {path:?}");
        let hint =
            format!("chmod 600 {}, if no other user has read it\nor {remedy}", path.display());
        return Err(Failure::new(Outcome::Authentication, message, hint));
    }
    Ok(key)
}

/// Whether others than its owner may read or write a file with a secret.
pub(crate) fn may_be_read_by_others(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana::seal::GroupKey;
    use rustix::process::dumpable_behavior;

    /// The flag is that of the process, so that other tests may set it as well.
    #[test]
    fn the_memory_of_a_program_with_a_key_is_not_dumped() {
        set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let key: Result<GroupKey, _> = read(&directory.path().join("none"), KEYGEN_GROUP);
        assert!(key.is_err());
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
