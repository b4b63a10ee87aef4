//! What a staging directory holds, written down as it happens, so that a receiver that was killed
//! goes on with the symbols it had.
//!
//! A note is written after the bytes that it speaks of. Processes die without losing what they
//! wrote, so after a kill every note is true. After a power failure bytes may be missing that a note
//! speaks of; the block's hash finds that, and the block is received again. So a journal can cost
//! time but never a wrong byte, and is not synced, except before files are given their names: of
//! those that have one already, the journal must know.
//!
//! ```text
//! "FONTJNL" and the format version, 1
//! groups, each: u32 bytes of notes, u32 CRC-32 of them, the notes
//! note: u8 kind, 4 x u32, big-endian
//! ```
//! Reading ends at the first group that is not whole: what follows a torn write means nothing.

use crate::failure::failed;
use crate::{StagingError, sys};
use fontana_fec::{Esi, Sbn};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::path::Path;

/// The journal's name in the staging directory.
pub(crate) const JOURNAL: &str = "journal";

const MAGIC: &[u8; 8] = b"FONTJNL\x01";
const NOTE_SIZE: usize = 17;
/// Largest group that is believed: far more than anybody writes at once.
const MAX_GROUP: usize = 1 << 20;

/// One thing that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A source symbol is in its place.
    InPlace {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
        /// Symbol.
        esi: Esi,
    },
    /// A repair symbol is in a slot of its block's spool.
    Spooled {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
        /// Symbol.
        esi: Esi,
        /// Slot.
        slot: u32,
    },
    /// All source symbols of the block are in their places, and its hash was right.
    Whole {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
    },
    /// What was noted of the block before means nothing any more.
    Void {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
    },
    /// The object's files are right and on the medium: nothing is missing but, perhaps, their
    /// names.
    Committed {
        /// Object.
        toi: u32,
    },
    /// A directory of the target, counted as they were added, is about to be made: its mode is
    /// ours to set.
    Made {
        /// The directory.
        directory: u32,
    },
    /// So many packets of the session had been received, in all lives.
    Packets {
        /// The number.
        count: u64,
    },
}

impl Note {
    fn emit(self) -> [u8; NOTE_SIZE] {
        let (kind, words) = match self {
            Self::InPlace { toi, sbn, esi } => (0, [toi, sbn.0, esi.0, 0]),
            Self::Spooled { toi, sbn, esi, slot } => (1, [toi, sbn.0, esi.0, slot]),
            Self::Whole { toi, sbn } => (2, [toi, sbn.0, 0, 0]),
            Self::Void { toi, sbn } => (3, [toi, sbn.0, 0, 0]),
            Self::Committed { toi } => (4, [toi, 0, 0, 0]),
            Self::Packets { count } => (5, [(count >> 32) as u32, count as u32, 0, 0]),
            Self::Made { directory } => (6, [directory, 0, 0, 0]),
        };
        let mut bytes = [kind; NOTE_SIZE];
        for (word, out) in words.iter().zip(bytes.as_chunks_mut::<4>().0) {
            *out = word.to_be_bytes();
        }
        // The kind comes last: the words stay aligned.
        bytes[NOTE_SIZE - 1] = kind;
        bytes
    }

    fn parse(bytes: &[u8; NOTE_SIZE]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        let &[a, b, c, d] = words else { return None };
        let [toi, b, c, slot] = [a, b, c, d].map(u32::from_be_bytes);
        let (sbn, esi) = (Sbn(b), Esi(c));
        Some(match rest.first()? {
            0 => Self::InPlace { toi, sbn, esi },
            1 => Self::Spooled { toi, sbn, esi, slot },
            2 => Self::Whole { toi, sbn },
            3 => Self::Void { toi, sbn },
            4 => Self::Committed { toi },
            5 => Self::Packets { count: u64::from(toi) << 32 | u64::from(b) },
            6 => Self::Made { directory: toi },
            _ => return None,
        })
    }
}

/// Symbols of one block that an earlier receiver left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptBlock {
    /// All source symbols are in their places.
    pub whole: bool,
    /// Source symbols in their places.
    pub in_place: Vec<Esi>,
    /// Repair symbols, and their slots of the spool.
    pub spooled: Vec<(Esi, u32)>,
}

/// What an earlier receiver left in a staging directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Packets of the session that all lives before had received.
    pub packets: u64,
    /// Objects whose files lacked nothing but, perhaps, their names.
    pub committed: BTreeSet<u32>,
    /// Directories that were made, counted as they were added.
    pub made: BTreeSet<u32>,
    /// Blocks that are not empty.
    pub blocks: BTreeMap<(u32, Sbn), KeptBlock>,
}

impl Kept {
    fn add(&mut self, note: Note) {
        match note {
            Note::InPlace { toi, sbn, esi } => self.block(toi, sbn).in_place.push(esi),
            Note::Spooled { toi, sbn, esi, slot } => {
                self.block(toi, sbn).spooled.push((esi, slot));
            }
            Note::Whole { toi, sbn } => {
                let whole = KeptBlock { whole: true, ..KeptBlock::default() };
                self.blocks.insert((toi, sbn), whole);
            }
            Note::Void { toi, sbn } => {
                self.blocks.remove(&(toi, sbn));
            }
            Note::Committed { toi } => {
                self.committed.insert(toi);
            }
            Note::Made { directory } => {
                self.made.insert(directory);
            }
            Note::Packets { count } => self.packets = self.packets.max(count),
        }
    }

    fn block(&mut self, toi: u32, sbn: Sbn) -> &mut KeptBlock {
        self.blocks.entry((toi, sbn)).or_default()
    }
}

/// The journal of a staging directory, open for writing. May be shared between threads: a group of
/// notes is one write at the end of the file.
#[derive(Debug)]
pub(crate) struct Journal(OwnedFd);

impl Journal {
    /// Begins a new journal.
    pub(crate) fn create(directory: &OwnedFd, path: &Path) -> Result<Self, StagingError> {
        let flags = OFlags::CREATE | OFlags::TRUNC;
        let journal = Self(open(directory, flags).map_err(failed(path, "create the journal of"))?);
        journal.write(MAGIC).map_err(failed(path, "begin the journal of"))?;
        Ok(journal)
    }

    /// Opens the journal that an earlier receiver left, and reads it. `None` if there is none, or
    /// none that can be read.
    pub(crate) fn resume(
        directory: &OwnedFd,
        path: &Path,
    ) -> Result<Option<(Self, Kept)>, StagingError> {
        let file = match open(directory, OFlags::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(path, "open the journal of")(errno)),
        };
        let mut reader = Reader { file: &file, at: 0 };
        let Some((kept, length)) = read(&mut BufReader::new(&mut reader)) else { return Ok(None) };
        // A torn end must not stand between old and new groups.
        sys::retry(|| rustix::fs::ftruncate(&file, length))
            .map_err(failed(path, "mend the journal of"))?;
        Ok(Some((Self(file), kept)))
    }

    /// What the journal of a staging directory says, which a receiver may be writing. Nothing if
    /// there is none that can be read.
    pub(crate) fn peek(directory: &OwnedFd) -> Kept {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, JOURNAL, flags, Mode::empty());
        let read = |file| read(&mut BufReader::new(Reader { file: &file, at: 0 }));
        file.ok().and_then(read).map_or_else(Kept::default, |(kept, _)| kept)
    }

    /// Writes notes down.
    pub(crate) fn append(&self, notes: &[Note]) -> rustix::io::Result<()> {
        for notes in notes.chunks(MAX_GROUP / NOTE_SIZE) {
            let mut group = vec![0; 8];
            group.extend(notes.iter().flat_map(|note| note.emit()));
            if let Some((head, payload)) = group.split_first_chunk_mut::<8>() {
                let length = (payload.len() as u32).to_be_bytes();
                let crc = crc32fast::hash(payload).to_be_bytes();
                head[..4].copy_from_slice(&length);
                head[4..].copy_from_slice(&crc);
            }
            self.write(&group)?;
        }
        Ok(())
    }

    /// Waits until everything that was written is on the medium.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        sys::retry(|| rustix::fs::fdatasync(&self.0))
    }

    fn write(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        let count = sys::retry(|| rustix::io::write(&self.0, bytes))?;
        // A group that was cut short ends the journal for its readers: the disk is full.
        if count == bytes.len() { Ok(()) } else { Err(Errno::NOSPC) }
    }
}

fn open(directory: &OwnedFd, more: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    sys::retry(|| rustix::fs::openat(directory, JOURNAL, flags | more, mode))
}

struct Reader<'a> {
    file: &'a OwnedFd,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = sys::retry(|| rustix::io::pread(self.file, &mut *out, self.at))?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Reads up to the first group that is not whole; `None` if not even the beginning is right.
/// Returns what is kept and the length of what was read.
fn read(input: &mut impl Read) -> Option<(Kept, u64)> {
    let mut magic = [0; MAGIC.len()];
    input.read_exact(&mut magic).ok().filter(|()| magic == *MAGIC)?;
    let (mut kept, mut length) = (Kept::default(), MAGIC.len() as u64);
    let mut payload = Vec::new();
    loop {
        let mut head = [0; 8];
        if input.read_exact(&mut head).is_err() {
            return Some((kept, length));
        }
        let [a, b, c, d, e, f, g, h] = head;
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        payload.resize(size.min(MAX_GROUP), 0);
        let whole = size <= MAX_GROUP
            && input.read_exact(&mut payload).is_ok()
            && crc32fast::hash(&payload) == u32::from_be_bytes([e, f, g, h]);
        let (notes, rest) = payload.as_chunks::<NOTE_SIZE>();
        if !whole || !rest.is_empty() {
            return Some((kept, length));
        }
        notes.iter().filter_map(Note::parse).for_each(|note| kept.add(note));
        length += (head.len() + size) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note() -> impl Strategy<Value = Note> {
        (0..7_u8, any::<[u32; 4]>()).prop_map(|(kind, [toi, sbn, esi, slot])| {
            let (sbn, esi) = (Sbn(sbn), Esi(esi));
            match kind {
                0 => Note::InPlace { toi, sbn, esi },
                1 => Note::Spooled { toi, sbn, esi, slot },
                2 => Note::Whole { toi, sbn },
                3 => Note::Void { toi, sbn },
                4 => Note::Committed { toi },
                6 => Note::Made { directory: toi },
                _ => Note::Packets { count: u64::from(toi) << 32 | u64::from(esi.0) },
            }
        })
    }

    fn emitted(groups: &[Vec<Note>]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for group in groups {
            let payload: Vec<u8> = group.iter().flat_map(|note| note.emit()).collect();
            bytes.extend((payload.len() as u32).to_be_bytes());
            bytes.extend(crc32fast::hash(&payload).to_be_bytes());
            bytes.extend(payload);
        }
        bytes
    }

    fn kept(notes: impl IntoIterator<Item = Note>) -> Kept {
        let mut kept = Kept::default();
        notes.into_iter().for_each(|note| kept.add(note));
        kept
    }

    proptest! {
        #[test]
        fn notes_read_as_they_were_written(note in note()) {
            prop_assert_eq!(Note::parse(&note.emit()), Some(note));
        }

        #[test]
        fn a_torn_or_damaged_journal_keeps_the_groups_before(
            groups in proptest::collection::vec(proptest::collection::vec(note(), 0..5), 0..6),
            cut in any::<prop::sample::Index>(),
            flip in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let bytes = emitted(&groups);
            let all = groups.concat();
            prop_assert_eq!(read(&mut &bytes[..]), Some((kept(all), bytes.len() as u64)));
            let cut = cut.index(bytes.len() + 1);
            if let Some((_, length)) = read(&mut &bytes[..cut]) {
                prop_assert!(length <= cut as u64);
            } else {
                prop_assert!(cut < MAGIC.len());
            }
            let mut damaged = bytes.clone();
            let at = flip.index(bytes.len());
            damaged[at] ^= 1 << bit;
            if let Some((_, length)) = read(&mut &damaged[..]) {
                // The group with the damage is not believed, nor what follows it.
                prop_assert!(length <= at as u64);
            }
        }

        #[test]
        fn any_bytes_are_a_journal_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut journal = MAGIC.to_vec();
            journal.extend(&bytes);
            prop_assert!(read(&mut &journal[..]).is_some());
            let _ = read(&mut &bytes[..]);
        }
    }
}
