//! The files that earlier runs of a watched session have written, so that a service that is
//! restarted does not end at its own files.
//!
//! They are in the file `.fontana-mark-flute-SOURCE-TSI` of the target directory:
//!
//! ```text
//! "FONTFLU" and the format version, 2
//! a record for each file that was written, the last one of a name holds:
//!   u32 bytes of the name, u64 inode, u64 size, i64 seconds and u32 nanoseconds of the last
//!   change, u64 Unix seconds at which its table expires, the name, and 8 bytes of the BLAKE3 hash
//!   of the record
//! ```
//! Numbers are big-endian. What follows a torn record does not count.

use super::written::WrittenFiles;
use crate::error::Error;
use fontana_proto::SessionKey;
use fontana_store::{Identity, StagingError, TargetDirectory, TargetName, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"FONTFLU\x02";
/// Bytes of a record before the name.
const FIXED: usize = 40;
const CHECK: usize = 8;
/// Bytes of records after which they are written again, without those that do not hold.
const MAX_SIZE: usize = 16 << 20;

/// The record of a session in a directory.
pub(super) struct Remembered {
    directory: Arc<TargetDirectory>,
    name: String,
    bytes: usize,
}

impl Remembered {
    /// Reads the record of a session, and recalls the files that are as they were written.
    pub(super) fn open(
        directory: Arc<TargetDirectory>,
        session: SessionKey,
        written: &mut WrittenFiles,
    ) -> Result<Self, Error> {
        let name = name_of(session);
        let bytes = directory.read_memo(&name, 2 * MAX_SIZE)?.unwrap_or_default();
        for (path, Written { state, expires }) in parse(&bytes) {
            let components: Vec<_> = path.split(|&byte| byte == b'/').collect();
            let Ok(target) = TargetName::new(&components) else { continue };
            let found = directory.identity(&target)?;
            if let Some(found) = found.filter(|found| state == State::of(found)) {
                written.recall(target, found, expires);
            }
        }
        let mut own = Self { directory, name, bytes: 0 };
        own.write(written)?;
        Ok(own)
    }

    /// Writes all records again.
    fn write(&mut self, written: &WrittenFiles) -> Result<(), StagingError> {
        let records = written.all().map(|(name, state, expires)| record(name, state, expires));
        let bytes = [MAGIC.to_vec(), records.collect::<Vec<_>>().concat()].concat();
        self.bytes = bytes.len();
        self.directory.write_memo(&self.name, &bytes)
    }

    /// Notes that a file was written whose table expires then, and waits until that would survive a
    /// power failure.
    pub(super) fn note(
        &mut self,
        name: &TargetName,
        (state, expires): (&Identity, u64),
        written: &WrittenFiles,
    ) -> Result<(), StagingError> {
        let record = record(name, state, expires);
        if self.bytes + record.len() > MAX_SIZE {
            return self.write(written);
        }
        self.bytes += record.len();
        let appended = self.directory.append_memo(&self.name, &record);
        if appended.is_err() {
            // It may be torn, and would hide those that follow.
            self.bytes = MAX_SIZE;
        }
        appended
    }
}

fn name_of(SessionKey { source, tsi }: SessionKey) -> String {
    format!("mark-flute-{source}-{tsi}").replace(['.', ':'], "-")
}

/// What tells a file that was written from others. Device numbers change when a host starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    inode: u64,
    size: u64,
    changed: Timestamp,
}

impl State {
    fn of(identity: &Identity) -> Self {
        let Identity { inode: (_, inode), size, changed, .. } = *identity;
        Self { inode, size, changed }
    }
}

fn record(name: &TargetName, state: &Identity, expires: u64) -> Vec<u8> {
    let State { inode, size, changed } = State::of(state);
    let name = name.as_bytes();
    let mut record = (name.len() as u32).to_be_bytes().to_vec();
    record.extend(inode.to_be_bytes());
    record.extend(size.to_be_bytes());
    record.extend(changed.seconds.to_be_bytes());
    record.extend(changed.nanoseconds.to_be_bytes());
    record.extend(expires.to_be_bytes());
    record.extend(name);
    let check = blake3::hash(&record);
    record.extend(check.as_bytes().iter().take(CHECK));
    record
}

/// What a record says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    state: State,
    /// When its table expires, in Unix seconds.
    expires: u64,
}

/// The records, up to the first one that is torn.
fn parse(bytes: &[u8]) -> BTreeMap<Vec<u8>, Written> {
    let mut records = BTreeMap::new();
    let Some(mut rest) = bytes.strip_prefix(MAGIC) else { return records };
    while let Some((name, written, tail)) = parse_record(rest) {
        records.insert(name, written);
        rest = tail;
    }
    records
}

fn parse_record(bytes: &[u8]) -> Option<(Vec<u8>, Written, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (inode, rest) = rest.split_first_chunk::<8>()?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let (seconds, rest) = rest.split_first_chunk::<8>()?;
    let (nanoseconds, rest) = rest.split_first_chunk::<4>()?;
    let (expires, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (name, rest) = rest.split_at_checked(length)?;
    let (check, rest) = rest.split_first_chunk::<CHECK>()?;
    let hash = blake3::hash(bytes.get(..FIXED.checked_add(length)?)?);
    let changed = Timestamp {
        seconds: i64::from_be_bytes(*seconds),
        nanoseconds: u32::from_be_bytes(*nanoseconds),
    };
    let (inode, size) = (u64::from_be_bytes(*inode), u64::from_be_bytes(*size));
    let is_whole = hash.as_bytes().starts_with(check);
    let state = State { inode, size, changed };
    let written = Written { state, expires: u64::from_be_bytes(*expires) };
    is_whole.then(|| (name.to_vec(), written, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionKey {
        SessionKey { source: "10.0.0.7".parse().unwrap(), tsi: fontana_wire::Tsi(5) }
    }

    fn open(directory: &Arc<TargetDirectory>) -> (Remembered, WrittenFiles) {
        let mut written = WrittenFiles::default();
        let own = Remembered::open(Arc::clone(directory), session(), &mut written).unwrap();
        (own, written)
    }

    #[test]
    fn files_are_recalled_as_long_as_they_are_as_they_were_written() {
        let root = tempfile::tempdir().unwrap();
        let directory = Arc::new(TargetDirectory::open(root.path()).unwrap());
        let names = ["a", "b", "c"].map(|name| TargetName::new(&[name]).unwrap());
        let (mut own, mut written) = open(&directory);
        for name in &names {
            let path = root.path().join(String::from_utf8_lossy(name.as_bytes()).as_ref());
            std::fs::write(path, "bytes").unwrap();
            let state = directory.identity(name).unwrap().unwrap();
            written.note(name.clone(), 1, state, 7);
            own.note(name, (&state, 7), &written).unwrap();
        }
        std::fs::remove_file(root.path().join("b")).unwrap();
        std::fs::write(root.path().join("c"), "others").unwrap();
        let (_, recalled) = open(&directory);
        assert!(recalled.state_of(&names[0]).is_some());
        assert!(recalled.state_of(&names[1]).is_none() && recalled.state_of(&names[2]).is_none());
        assert!(!recalled.has_newer(&names[0], 1), "every version is newer");
        assert_eq!(recalled.unnamed(8), [names[0].clone()]);
    }

    #[test]
    fn no_file_of_a_sender_has_the_name_of_a_record() {
        for source in ["10.0.0.7", "2001:db8::7", "::ffff:10.0.0.7"] {
            let session = SessionKey { source: source.parse().unwrap(), ..session() };
            let name = format!(".fontana-{}", name_of(session));
            assert!(fontana_store::is_ours(name.as_bytes()), "{name}");
            assert!(TargetName::new(&[&name]).is_err());
        }
    }

    #[test]
    fn a_torn_record_ends_the_list() {
        let root = tempfile::tempdir().unwrap();
        let directory = TargetDirectory::open(root.path()).unwrap();
        std::fs::write(root.path().join("a"), "bytes").unwrap();
        let name = TargetName::new(&["a"]).unwrap();
        let state = directory.identity(&name).unwrap().unwrap();
        let whole = [&MAGIC[..], &record(&name, &state, 7), &record(&name, &state, 8)].concat();
        for length in 0..whole.len() {
            let _ = parse(&whole[..length]);
            let mut changed = whole.clone();
            changed[length] ^= 0x10;
            assert!(parse(&changed).len() <= 1, "{length}");
        }
        assert_eq!(parse(&whole).len(), 1);
        assert_eq!(parse(&whole[..whole.len() - 1]).len(), 1);
        assert_eq!(parse(&whole[..MAGIC.len() + 20]).len(), 0);
    }
}
