//! The high-water mark of a publisher in a directory.
//!
//! It holds the newest version that is complete in the directory, so that an old version is not
//! accepted again, and the names of the publisher's files, so that a newer version may replace
//! them. It is the file `.fontana-mark-KEY` of the target directory, `KEY` being the publisher's
//! public key:
//!
//! ```text
//! "FONTMRK" and the format version, 1
//! 32 bytes: public key of the publisher
//! u8: 1 if a version is complete, else 0; u64 that version
//! names of files and links, ascending, each: u32 bytes, then the path with slashes
//! names of directories that versions created, each with a slash at the end
//! names among the files that no version created, each with a slash and a dot at the end
//! 32 bytes: BLAKE3 of everything before
//! ```
//! Numbers are big-endian. The hash detects torn writes and accidental changes. It does not protect
//! from an attacker who can write to the directory as this user.

use crate::error::{Error, SetupError};
use fontana_store::TargetDirectory;
use fontana_wire::{PublicKey, RelativePath};
use std::collections::BTreeSet;

const MAGIC: &[u8; 8] = b"FONTMRK\x01";
const HASH_SIZE: usize = 32;
/// Largest file that is read and written: a million names of 60 bytes. Further names are dropped;
/// their files are then replaced only on request.
const MAX_SIZE: usize = 64 << 20;

/// The record of a publisher in a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The newest version that was completed.
    pub(crate) version: Option<u64>,
    /// Files and links of its versions.
    pub(crate) names: BTreeSet<Vec<u8>>,
    /// Those of the names that no version created: it found them with its contents.
    pub(crate) found: BTreeSet<Vec<u8>>,
    /// Directories that its versions created.
    pub(crate) directories: BTreeSet<Vec<u8>>,
}

impl Mark {
    /// Reads the mark of a publisher; `None` if the directory has none.
    ///
    /// # Errors
    /// [`SetupError::Mark`] if it is corrupt or of another publisher,
    /// [`IoError::Staging`](crate::IoError::Staging).
    pub(crate) fn read(
        target: &TargetDirectory,
        publisher: &PublicKey,
    ) -> Result<Option<Self>, Error> {
        let name = name(publisher);
        let Some(bytes) = target.read_memo(&name, MAX_SIZE)? else { return Ok(None) };
        let wrong = || SetupError::Mark { path: target.memo_path(&name) };
        Ok(Some(parse(&bytes, publisher).ok_or_else(wrong)?))
    }

    /// Writes the mark, and syncs it to survive a power failure.
    ///
    /// # Errors
    /// [`IoError::Staging`](crate::IoError::Staging).
    pub(crate) fn write(
        &self,
        target: &TargetDirectory,
        publisher: &PublicKey,
    ) -> Result<(), Error> {
        Ok(target.write_memo(&name(publisher), &self.emit(publisher))?)
    }

    fn emit(&self, publisher: &PublicKey) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(publisher.to_bytes());
        bytes.push(u8::from(self.version.is_some()));
        bytes.extend(self.version.unwrap_or(0).to_be_bytes());
        let directories = self.directories.iter().map(|path| [path, &b"/"[..]].concat());
        let found = self.found.iter().map(|path| [path, &b"/."[..]].concat());
        for name in self.names.iter().cloned().chain(directories).chain(found) {
            if bytes.len() + 4 + name.len() + HASH_SIZE > MAX_SIZE {
                break;
            }
            bytes.extend((name.len() as u32).to_be_bytes());
            bytes.extend(name);
        }
        let hash = blake3::hash(&bytes);
        bytes.extend(hash.as_bytes());
        bytes
    }
}

fn name(publisher: &PublicKey) -> String {
    format!("mark-{publisher}")
}

fn parse(bytes: &[u8], publisher: &PublicKey) -> Option<Mark> {
    let (bytes, hash) = bytes.split_last_chunk::<HASH_SIZE>()?;
    if blake3::hash(bytes) != blake3::Hash::from_bytes(*hash) {
        return None;
    }
    let rest = bytes.strip_prefix(MAGIC)?.strip_prefix(&publisher.to_bytes())?;
    let (&[is_complete], rest) = rest.split_first_chunk::<1>()?;
    let (&version, mut rest) = rest.split_first_chunk::<8>()?;
    let version = u64::from_be_bytes(version);
    let version = match is_complete {
        0 if version == 0 => None,
        1 => Some(version),
        _ => return None,
    };
    let mut mark = Mark { version, ..Mark::default() };
    while let Some((&length, tail)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        let (name, tail) = tail.split_at_checked(length)?;
        let (path, kind) = if let Some(path) = name.strip_suffix(b"/.") {
            (path, &mut mark.found)
        } else if let Some(path) = name.strip_suffix(b"/") {
            (path, &mut mark.directories)
        } else {
            (name, &mut mark.names)
        };
        RelativePath::new(path).ok()?;
        kind.insert(path.to_vec());
        rest = tail;
    }
    rest.is_empty().then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_testing::Script;
    use fontana_wire::SecretKey;

    fn key(seed: u8) -> PublicKey {
        SecretKey::from_seed(&[seed; 32]).public_key()
    }

    fn mark() -> Mark {
        let names = [&b"a"[..], b"d/\xff\n", b"d/e"].map(<[u8]>::to_vec);
        let directories = [&b"d"[..], b"d/f"].map(<[u8]>::to_vec);
        Mark {
            version: Some(u64::MAX),
            names: names.into(),
            found: [b"a".to_vec()].into(),
            directories: directories.into(),
        }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_by_its_publisher_only() {
        let directory = tempfile::tempdir().unwrap();
        let target = TargetDirectory::open(directory.path()).unwrap();
        assert_eq!(Mark::read(&target, &key(1)).unwrap(), None);
        for mark in [mark(), Mark::default(), Mark { version: Some(0), ..Mark::default() }] {
            mark.write(&target, &key(1)).unwrap();
            assert_eq!(Mark::read(&target, &key(1)).unwrap(), Some(mark));
        }
        assert_eq!(Mark::read(&target, &key(2)).unwrap(), None);
        let file = |seed| target.memo_path(&name(&key(seed)));
        std::fs::rename(file(1), file(2)).unwrap();
        assert!(matches!(Mark::read(&target, &key(2)), Err(Error::Setup(SetupError::Mark { .. }))));
    }

    #[test]
    fn nothing_but_a_whole_mark_is_believed() {
        let bytes = mark().emit(&key(1));
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length], &key(1)), None, "{length}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            assert_eq!(parse(&changed, &key(1)), None, "{at}");
        }
        // The hash is right, the content is invalid.
        let hashed = |mut bytes: Vec<u8>| {
            let hash = blake3::hash(&bytes);
            bytes.extend(hash.as_bytes());
            parse(&bytes, &key(1))
        };
        let head = |flag: u8, version: u64| {
            [&MAGIC[..], &key(1).to_bytes(), &[flag], &version.to_be_bytes()].concat()
        };
        assert!(hashed(head(1, 7)).is_some() && hashed(head(0, 0)).is_some());
        assert_eq!(hashed(head(0, 7)), None);
        assert_eq!(hashed(head(2, 7)), None);
        for name in [&b"\0\0\0\x02a"[..], b"\0\0\0\x02..", b"\0\0\0\0", b"\xff\xff\xff\xffa", b"\0"]
        {
            assert_eq!(hashed([&head(1, 7)[..], name].concat()), None, "{name:?}");
        }
    }

    /// Any bytes with a right hash, as another program of this user may write them: a mark that is
    /// read is written the same again.
    #[test]
    fn any_bytes_are_a_mark_or_none() {
        let good = mark().emit(&key(1));
        let good = &good[..good.len() - HASH_SIZE];
        bolero::check!().with_iterations(2000).for_each(|input: &[u8]| {
            let _ = parse(input, &key(1));
            let mut script = Script::new(input);
            let at = usize::from(script.u8()) % (good.len() + 1);
            let end = (at + usize::from(script.below(6))).min(good.len());
            let count = script.below(12).into();
            let mut bytes = [&good[..at], &script.take(count), &good[end..]].concat();
            let hash = blake3::hash(&bytes);
            bytes.extend(hash.as_bytes());
            if let Some(mark) = parse(&bytes, &key(1)) {
                let paths = mark.names.iter().chain(&mark.found).chain(&mark.directories);
                paths.for_each(|path| assert!(RelativePath::new(path).is_ok()));
                assert_eq!(parse(&mark.emit(&key(1)), &key(1)), Some(mark));
            }
        });
    }
}
