//! The file of `fontana send --manifest` and `fontana publish`, for restarts and mirrors: a
//! manifest as on the wire, and its hash, which tickets have as `manifest=`. A damaged manifest
//! that is still valid would make another session of the same files.

use fontana::wire::{Hash, Manifest, ManifestLimits, manifest_hash};
use fontana::{NewFile, Outcome};
use fontana_console::failure::Failure;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Reads the manifest; `None` if there is no such file yet.
pub(crate) fn read(path: &Path) -> Result<Option<Manifest>, Failure> {
    let limits = ManifestLimits::default();
    let (mut bytes, most) = (Vec::new(), limits.bytes + Hash::SIZE);
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let message = format!("cannot read the manifest {path:?}: {error}");
            return Err(Failure::new(Outcome::Refused, message, "check its name and permissions"));
        }
        Ok(_) => {}
    }
    let refused = |what: String| {
        let hint = "copy it again from the first sender, or choose a new name to begin anew";
        Failure::new(Outcome::Usage, format!("{path:?}: {what}"), hint)
    };
    match bytes.split_last_chunk() {
        Some((manifest, &hash)) if manifest_hash(manifest) == Hash(hash) => {
            let parsed = Manifest::parse(manifest, &limits);
            parsed.map(Some).map_err(|error| refused(error.to_string()))
        }
        _ => Err(refused("it is damaged, or no file of --manifest: its hash is another".into())),
    }
}

/// Writes the manifest to a file atomically, unless it is there: a file that is named by its hash
/// has no other content, if it is not damaged.
pub(crate) fn write_again(path: &Path, manifest: &Manifest) -> Result<(), Failure> {
    match read(path)? {
        Some(_) => Ok(()),
        None => write(path, manifest),
    }
}

/// Writes the manifest to a new file atomically. An existing file is not replaced.
pub(crate) fn write(path: &Path, manifest: &Manifest) -> Result<(), Failure> {
    let failed = |error: &io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("another sender has just written {path:?}");
            Failure::new(Outcome::Refused, message, "start again, to go on with what it says")
        }
        io::ErrorKind::StorageFull => {
            Failure::new(Outcome::Io, format!("disk full: no room for {path:?}"), "free some space")
        }
        _ => {
            let message = format!("cannot write the manifest {path:?}: {error}");
            let hint = "choose a directory that this user may write to";
            Failure::new(Outcome::Refused, message, hint)
        }
    };
    let mut bytes = manifest.emit();
    bytes.extend(manifest_hash(&bytes).0);
    let written =
        NewFile::create_in(path.parent().unwrap_or(Path::new("."))).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.keep_as(path)
        });
    written.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any bytes, with a right hash or without: a manifest that is read is written the same again.
    #[test]
    fn any_bytes_are_a_manifest_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manifest");
        let again = directory.path().join("again");
        write(&path, &Manifest::new(7, "label", Vec::new(), Vec::new()).unwrap()).unwrap();
        let good = std::fs::read(&path).unwrap();
        let good = &good[..good.len() - Hash::SIZE];
        let generator = bolero::produce::<(u8, u8, Vec<u8>, bool)>();
        bolero::check!().with_generator(generator).with_iterations(500).for_each(
            |(at, cut, patch, has_hash)| {
                let at = usize::from(*at) % (good.len() + 1);
                let end = (at + usize::from(*cut % 8)).min(good.len());
                let mut bytes = [&good[..at], patch, &good[end..]].concat();
                if *has_hash {
                    bytes.extend(manifest_hash(&bytes).0);
                }
                std::fs::write(&path, &bytes).unwrap();
                if let Ok(manifest) = read(&path) {
                    let _ = std::fs::remove_file(&again);
                    write(&again, &manifest.unwrap()).unwrap();
                    assert_eq!(std::fs::read(&again).unwrap(), bytes);
                }
            },
        );
    }
}
