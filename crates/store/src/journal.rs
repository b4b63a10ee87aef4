//! The journal of a staging directory: records of its contents, from which a restarted receiver
//! resumes.
//!
//! A note is written after the bytes that it describes. A killed process does not lose what it has
//! written, so after a kill every note is true. After a power failure, bytes that a note describes
//! may be missing. So each run of the receiver starts with a mark of the host's boot id. From time
//! to time the bytes are synced, and then a mark records up to where the journal's notes are true
//! in any case ([`Staging::sync`](crate::Staging::sync)). After another boot, of the later notes
//! only those are believed that do not describe bytes, or that were written after their bytes were
//! synced, which is so before files get their names. If a note is wrong nevertheless (a disk was
//! unplugged), the block's hash shows it, and the block is received again: a wrong note can cost
//! time, but never a wrong byte.
//!
//! ```text
//! "FONTJNL" and the format version, 2
//! groups, each: u32 bytes of lines (not 0), u32 CRC-32 of them, the lines
//! line: 4 x u32, u8 kind, big-endian
//! ```
//! Consecutive symbols have one line. For source symbols, the last word is the number of symbols
//! after the first one. For repair symbols, whose last word is the first slot, the kind holds the
//! number of symbols ([`RUNS`]). A reader that does not know runs takes the first source symbol of
//! each, and ignores runs of repair symbols: the others are received again.
//!
//! Reading ends at the first incomplete group: what follows a torn write, or a gap of zeros, has no
//! meaning.

use crate::boot::BootId;
use crate::disk::Disk;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::ids::FileIndex;
use crate::lock::Lock;
use fontana_fec::{Esi, Sbn};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The journal's name in the staging directory.
pub(crate) const JOURNAL: &str = "journal";

const MAGIC: &[u8; 8] = b"FONTJNL\x02";
const LINE_SIZE: usize = 17;
/// The kind of a line about a run of two repair symbols. That of a longer run is larger by the
/// number of its other symbols.
const RUNS: u8 = 16;
/// Most repair symbols of a line.
const MAX_SPOOLED_RUN: u32 = (u8::MAX - RUNS) as u32 + 2;
/// Most source symbols of a line, more than a batch of datagrams holds. It bounds what a line makes
/// a reader allocate.
const MAX_RUN: u32 = 1 << 12;
/// Largest group that is read: far larger than any group that is written.
const MAX_GROUP: usize = 1 << 20;

/// A record of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Consecutive source symbols were written to their places.
    InPlace {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
        /// The first symbol.
        esi: Esi,
        /// Number of symbols, at least 1.
        count: u32,
    },
    /// Consecutive repair symbols were written to consecutive slots of their block's spool.
    Spooled {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
        /// The first symbol.
        esi: Esi,
        /// Its slot.
        slot: u32,
        /// Number of symbols, at least 1.
        count: u32,
    },
    /// All source symbols of the block are in their places, and its hash was right.
    Whole {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
    },
    /// Earlier notes about the block are no longer true, and the object is not committed.
    Void {
        /// Object.
        toi: u32,
        /// Block.
        sbn: Sbn,
    },
    /// The object's files are verified and on the disk: at most their names are missing.
    Committed {
        /// Object.
        toi: u32,
    },
    /// A directory of the target, numbered in the order of adding, is about to be created. The
    /// receiver may then set its mode.
    Made {
        /// The directory.
        directory: u32,
    },
    /// A copy of the file is about to get its final name, before its objects are complete.
    Given {
        /// The file.
        file: FileIndex,
    },
    /// The number of packets of the session received in all runs.
    Packets {
        /// The number.
        count: u64,
    },
}

impl Note {
    /// The object that it is about.
    fn object(self) -> Option<u32> {
        match self {
            Self::InPlace { toi, .. }
            | Self::Spooled { toi, .. }
            | Self::Whole { toi, .. }
            | Self::Void { toi, .. }
            | Self::Committed { toi } => Some(toi),
            Self::Made { .. } | Self::Given { .. } | Self::Packets { .. } => None,
        }
    }

    /// True if the note stays true when bytes that were not synced are lost.
    fn outlives_a_power_failure(self) -> bool {
        match self {
            Self::InPlace { .. } | Self::Spooled { .. } | Self::Whole { .. } => false,
            // A block that is dropped without need is only received again.
            Self::Void { .. } | Self::Made { .. } | Self::Packets { .. } => true,
            // Its bytes are compared.
            Self::Given { .. } => true,
            // Its files were synced before.
            Self::Committed { .. } => true,
        }
    }
}

/// An entry of the journal's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Note(Note),
    /// The boot in which the following entries are written.
    Run(BootId),
    /// The bytes that the groups describe which end at or before this offset of the journal are on
    /// the disk.
    Synced(u64),
}

impl Note {
    /// The note as notes that fit a line each.
    fn lines(self) -> impl Iterator<Item = Line> {
        let (count, most) = match self {
            Self::InPlace { count, .. } => (count, MAX_RUN),
            Self::Spooled { count, .. } => (count, MAX_SPOOLED_RUN),
            _ => (1, 1),
        };
        (0..count).step_by(most as usize).map(move |done| {
            let part = most.min(count - done);
            let after = |Esi(esi)| Esi(esi.saturating_add(done));
            Line::Note(match self {
                Self::InPlace { toi, sbn, esi, .. } => {
                    Self::InPlace { toi, sbn, esi: after(esi), count: part }
                }
                Self::Spooled { toi, sbn, esi, slot, .. } => {
                    let slot = slot.saturating_add(done);
                    Self::Spooled { toi, sbn, esi: after(esi), slot, count: part }
                }
                other => other,
            })
        })
    }
}

impl Line {
    fn emit(self) -> [u8; LINE_SIZE] {
        let (kind, words) = match self {
            Self::Note(note) => match note {
                Note::InPlace { toi, sbn, esi, count } => {
                    (0, [toi, sbn.0, esi.0, count.saturating_sub(1)])
                }
                Note::Spooled { toi, sbn, esi, slot, count: 0 | 1 } => {
                    (1, [toi, sbn.0, esi.0, slot])
                }
                Note::Spooled { toi, sbn, esi, slot, count } => {
                    let more = count.min(MAX_SPOOLED_RUN) - 2;
                    (RUNS + more as u8, [toi, sbn.0, esi.0, slot])
                }
                Note::Whole { toi, sbn } => (2, [toi, sbn.0, 0, 0]),
                Note::Void { toi, sbn } => (3, [toi, sbn.0, 0, 0]),
                Note::Committed { toi } => (4, [toi, 0, 0, 0]),
                Note::Packets { count } => (5, [(count >> 32) as u32, count as u32, 0, 0]),
                Note::Made { directory } => (6, [directory, 0, 0, 0]),
                Note::Given { file } => (9, [file.0, 0, 0, 0]),
            },
            Self::Run(BootId(id)) => {
                let mut words = [0; 4];
                for (word, bytes) in words.iter_mut().zip(id.as_chunks::<4>().0) {
                    *word = u32::from_be_bytes(*bytes);
                }
                (7, words)
            }
            Self::Synced(end) => (8, [(end >> 32) as u32, end as u32, 0, 0]),
        };
        let mut bytes = [kind; LINE_SIZE];
        for (word, out) in words.iter().zip(bytes.as_chunks_mut::<4>().0) {
            *out = word.to_be_bytes();
        }
        // The kind comes last, so that the words stay aligned.
        bytes[LINE_SIZE - 1] = kind;
        bytes
    }

    fn parse(bytes: &[u8; LINE_SIZE]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        let &[a, b, c, d] = words else { return None };
        let [toi, b, c, d] = [a, b, c, d].map(u32::from_be_bytes);
        let (sbn, esi) = (Sbn(b), Esi(c));
        let long = u64::from(toi) << 32 | u64::from(b);
        Some(Self::Note(match rest.first()? {
            0 if d < MAX_RUN => Note::InPlace { toi, sbn, esi, count: d + 1 },
            1 => Note::Spooled { toi, sbn, esi, slot: d, count: 1 },
            2 => Note::Whole { toi, sbn },
            3 => Note::Void { toi, sbn },
            4 => Note::Committed { toi },
            5 => Note::Packets { count: long },
            6 => Note::Made { directory: toi },
            7 => {
                let mut id = [0; 16];
                id.copy_from_slice(bytes.get(..16)?);
                return Some(Self::Run(BootId(id)));
            }
            8 => return Some(Self::Synced(long)),
            9 => Note::Given { file: FileIndex(toi) },
            &kind @ RUNS.. => {
                let count = u32::from(kind - RUNS) + 2;
                Note::Spooled { toi, sbn, esi, slot: d, count }
            }
            _ => return None,
        }))
    }
}

/// The saved symbols of one block, from earlier runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptBlock {
    /// All source symbols are in their places.
    pub whole: bool,
    /// Source symbols in their places.
    pub in_place: Vec<Esi>,
    /// Repair symbols, and their slots of the spool.
    pub spooled: Vec<(Esi, u32)>,
}

/// The symbols and facts that earlier runs have saved in a staging directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Packets of the session that all earlier runs have received.
    pub packets: u64,
    /// Objects whose files were complete, except perhaps for their names.
    pub committed: BTreeSet<u32>,
    /// Directories that were created, numbered in the order of adding.
    pub made: BTreeSet<u32>,
    /// Files of which copies got their final names before their objects were complete.
    pub given: BTreeSet<FileIndex>,
    /// Blocks with saved symbols.
    pub blocks: BTreeMap<(u32, Sbn), KeptBlock>,
}

impl Kept {
    fn add(&mut self, note: Note) {
        match note {
            Note::InPlace { toi, sbn, esi: Esi(first), count } => {
                let symbols = (first..first.saturating_add(count)).map(Esi);
                self.block(toi, sbn).in_place.extend(symbols);
            }
            Note::Spooled { toi, sbn, esi: Esi(first), slot, count } => {
                let symbols = (first..first.saturating_add(count)).map(Esi);
                let slots = (0..count).map(|index| slot.saturating_add(index));
                self.block(toi, sbn).spooled.extend(symbols.zip(slots));
            }
            Note::Whole { toi, sbn } => {
                let whole = KeptBlock { whole: true, ..KeptBlock::default() };
                self.blocks.insert((toi, sbn), whole);
            }
            Note::Void { toi, sbn } => {
                self.blocks.remove(&(toi, sbn));
                self.committed.remove(&toi);
            }
            Note::Committed { toi } => {
                self.committed.insert(toi);
            }
            Note::Made { directory } => {
                self.made.insert(directory);
            }
            Note::Given { file } => {
                self.given.insert(file);
            }
            Note::Packets { count } => self.packets = self.packets.max(count),
        }
    }

    fn block(&mut self, toi: u32, sbn: Sbn) -> &mut KeptBlock {
        self.blocks.entry((toi, sbn)).or_default()
    }
}

/// The journal of a staging directory, open for writing. Threads may share it: a group of notes is
/// one write at the end of the file.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    file: OwnedFd,
    /// The end of the last complete group. `None` if an incomplete one follows that could not be
    /// removed: readers would ignore all that is appended.
    end: Lock<Option<u64>>,
}

impl Journal {
    /// Creates a new journal.
    pub(crate) fn create(
        disk: &Arc<dyn Disk>,
        directory: BorrowedFd<'_>,
        path: &Path,
    ) -> Result<Self, StagingError> {
        let flags = OFlags::CREATE | OFlags::TRUNC;
        let file =
            open(&**disk, directory, flags).map_err(failed(path, "create the journal of"))?;
        let journal = Self { disk: Arc::clone(disk), file, end: Lock::new(Some(0)) };
        journal
            .write(MAGIC)
            .and_then(|()| journal.append_lines([Line::Run(disk.boot())]))
            .map_err(failed(path, "begin the journal of"))?;
        Ok(journal)
    }

    /// Opens and reads the journal of an earlier receiver. `None` if there is none, or it cannot be
    /// read.
    pub(crate) fn resume(
        disk: &Arc<dyn Disk>,
        directory: BorrowedFd<'_>,
        path: &Path,
    ) -> Result<Option<(Self, Kept)>, StagingError> {
        let file = match open(&**disk, directory, OFlags::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(path, "open the journal of")(errno)),
        };
        let now = disk.boot();
        let failure = Cell::new(None);
        let beginning = || {
            let (disk, file) = (&**disk, file.as_fd());
            BufReader::new(Reader { disk, file, at: 0, failure: &failure })
        };
        let found = read(beginning, now);
        if let Some(errno) = failure.get() {
            // What cannot be read now would be cut off.
            return Err(failed(path, "read the journal of")(errno));
        }
        let Some((kept, marks)) = found else { return Ok(None) };
        // Removes an incomplete group between old and new ones.
        let mended = disk.set_length(file.as_fd(), marks.end);
        let end = Lock::new(Some(marks.end));
        let journal = Self { disk: Arc::clone(disk), file, end };
        mended
            .and_then(|()| match marks.run.is_same_boot(now) {
                true => Ok(()),
                false => journal.append_lines([Line::Run(now)]),
            })
            .map_err(failed(path, "mend the journal of"))?;
        Ok(Some((journal, kept)))
    }

    /// The notes of the objects for which `is_of` is true, and all others.
    pub(crate) fn notes_of(&self, is_of: impl Fn(u32) -> bool) -> rustix::io::Result<Kept> {
        let failure = Cell::new(None);
        let beginning = || {
            let (disk, file) = (&*self.disk, self.file.as_fd());
            BufReader::new(Reader { disk, file, at: 0, failure: &failure })
        };
        let found = read_of(beginning, self.disk.boot(), is_of);
        let kept = found.map_or_else(Kept::default, |(kept, _)| kept);
        failure.get().map_or(Ok(kept), Err)
    }

    /// The contents of the journal of a staging directory, to which a receiver may be writing.
    /// Empty if there is no readable journal.
    pub(crate) fn peek(disk: &dyn Disk, directory: BorrowedFd<'_>) -> Kept {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = disk.open(directory, JOURNAL.as_bytes(), flags, Mode::empty());
        let read = |file: OwnedFd| {
            let (file, failure) = (file.as_fd(), &Cell::new(None));
            read(|| BufReader::new(Reader { disk, file, at: 0, failure }), disk.boot())
        };
        file.ok().and_then(read).map_or_else(Kept::default, |(kept, _)| kept)
    }

    /// Appends a group of notes.
    pub(crate) fn append(&self, notes: &[Note]) -> rustix::io::Result<()> {
        let lines: Vec<_> = notes.iter().flat_map(|note| note.lines()).collect();
        let mut groups = lines.chunks(MAX_GROUP / LINE_SIZE);
        groups.try_for_each(|lines| self.append_lines(lines.iter().copied()))
    }

    /// Records that the bytes described by the first `end` bytes of the journal are on the disk,
    /// and waits until this record is on the disk too.
    pub(crate) fn append_synced(&self, end: u64) -> rustix::io::Result<()> {
        self.append_lines([Line::Synced(end)])?;
        self.sync()
    }

    /// The journal's length: all completed writes lie before it.
    pub(crate) fn end(&self) -> rustix::io::Result<u64> {
        self.end.lock().ok_or(Errno::IO)
    }

    /// Writes one group.
    fn append_lines(&self, lines: impl IntoIterator<Item = Line>) -> rustix::io::Result<()> {
        self.write(&group(lines))
    }

    /// Waits until everything that was written is on the disk.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        self.disk.sync_data(self.file.as_fd())
    }

    fn write(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        let mut end = self.end.lock();
        let start = end.ok_or(Errno::IO)?;
        let errno = match self.disk.append(self.file.as_fd(), bytes) {
            Ok(count) if count == bytes.len() => {
                *end = Some(start + count as u64);
                return Ok(());
            }
            Ok(_) => Errno::NOSPC,
            Err(errno) => errno,
        };
        // An incomplete group ends the journal for its readers. Notes of other threads may follow.
        *end = self.disk.set_length(self.file.as_fd(), start).ok().map(|()| start);
        Err(errno)
    }
}

fn group(lines: impl IntoIterator<Item = Line>) -> Vec<u8> {
    let mut group = vec![0; 8];
    group.extend(lines.into_iter().flat_map(Line::emit));
    if let Some((head, payload)) = group.split_first_chunk_mut::<8>() {
        let length = (payload.len() as u32).to_be_bytes();
        let crc = crc32fast::hash(payload).to_be_bytes();
        head[..4].copy_from_slice(&length);
        head[4..].copy_from_slice(&crc);
    }
    group
}

fn open(disk: &dyn Disk, directory: BorrowedFd<'_>, more: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    disk.open(directory, JOURNAL.as_bytes(), flags | more, mode)
}

struct Reader<'a> {
    disk: &'a dyn Disk,
    file: BorrowedFd<'a>,
    at: u64,
    /// The first error: those who parse take it for the end.
    failure: &'a Cell<Option<Errno>>,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.disk.read(self.file, out, self.at).inspect_err(|&errno| {
            self.failure.set(self.failure.get().or(Some(errno)));
        })?;
        self.at += count as u64;
        Ok(count)
    }
}

/// The notes of a journal that may be believed, by its marks.
#[derive(Debug)]
struct Marks {
    /// The boot in which the last group was written.
    run: BootId,
    /// The groups that end at or before this offset are true after any failure.
    synced: u64,
    /// Ends of groups that were not synced before a boot ended; one range for each boot.
    lost: Vec<Range<u64>>,
    /// The end of the last complete group.
    end: u64,
}

impl Marks {
    /// Reads the marks of a journal; `now` is the present boot. `None` if the input is no journal.
    fn read(input: impl Read, now: BootId) -> Option<Self> {
        let mut marks = Self { run: BootId::UNKNOWN, synced: 0, lost: Vec::new(), end: 0 };
        let end = for_each_line(input, |end, line| match line {
            Line::Run(run) => marks.begin(run, end),
            Line::Synced(synced) => marks.synced = marks.synced.max(synced.min(end)),
            Line::Note(_) => {}
        })?;
        let last = marks.run;
        marks.begin(now, end + 1);
        Some(Self { run: last, end, ..marks })
    }

    /// Processes the mark of a run, in the group that ends at `end`.
    fn begin(&mut self, run: BootId, end: u64) {
        if !run.is_same_boot(self.run) && self.synced + 1 < end {
            self.lost.push(self.synced + 1..end);
        }
        self.run = run;
    }

    fn believe(&self, end: u64, note: Note) -> bool {
        note.outlives_a_power_failure() || !self.lost.iter().any(|lost| lost.contains(&end))
    }
}

/// Reads a journal twice, each time from its `beginning`: first the marks, then the notes that they
/// allow to believe. So notes that may be lost need not be stored. `None` if it is no journal.
fn read<R: Read>(beginning: impl Fn() -> R, now: BootId) -> Option<(Kept, Marks)> {
    read_of(beginning, now, |_| true)
}

/// Like [`read`], without the symbols of objects for which `is_of` is false.
fn read_of<R: Read>(
    beginning: impl Fn() -> R,
    now: BootId,
    is_of: impl Fn(u32) -> bool,
) -> Option<(Kept, Marks)> {
    let marks = Marks::read(beginning(), now)?;
    let mut kept = Kept::default();
    let counts = |end, note: Note| {
        // A receiver may be writing meanwhile.
        end <= marks.end && marks.believe(end, note) && note.object().is_none_or(&is_of)
    };
    for_each_line(beginning(), |end, line| match line {
        Line::Note(note) if counts(end, note) => kept.add(note),
        _ => {}
    })?;
    Some((kept, marks))
}

/// Passes on the lines up to the first incomplete group, each with the end of its group. Returns
/// the end of the last complete group; `None` if the file does not start with the magic bytes.
fn for_each_line(mut input: impl Read, mut show: impl FnMut(u64, Line)) -> Option<u64> {
    let mut magic = [0; MAGIC.len()];
    input.read_exact(&mut magic).ok().filter(|()| magic == *MAGIC)?;
    let mut end = MAGIC.len() as u64;
    let mut payload = Vec::new();
    loop {
        let mut head = [0; 8];
        if input.read_exact(&mut head).is_err() {
            return Some(end);
        }
        let [a, b, c, d, e, f, g, h] = head;
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        payload.resize(size.min(MAX_GROUP), 0);
        // Zeros would be a group without lines: a gap that a crash has left.
        let whole = (1..=MAX_GROUP).contains(&size)
            && input.read_exact(&mut payload).is_ok()
            && crc32fast::hash(&payload) == u32::from_be_bytes([e, f, g, h]);
        let (lines, rest) = payload.as_chunks::<LINE_SIZE>();
        if !whole || !rest.is_empty() {
            return Some(end);
        }
        end += (head.len() + size) as u64;
        lines.iter().filter_map(Line::parse).for_each(|line| show(end, line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note() -> impl Strategy<Value = Note> {
        (0..8_u8, any::<[u32; 4]>(), 1..=MAX_SPOOLED_RUN).prop_map(|(kind, words, count)| {
            let [toi, sbn, esi, slot] = words;
            let (sbn, esi) = (Sbn(sbn), Esi(esi));
            match kind {
                0 => Note::InPlace { toi, sbn, esi, count },
                1 => Note::Spooled { toi, sbn, esi, slot, count },
                2 => Note::Whole { toi, sbn },
                3 => Note::Void { toi, sbn },
                4 => Note::Committed { toi },
                6 => Note::Made { directory: toi },
                7 => Note::Given { file: FileIndex(toi) },
                _ => Note::Packets { count: u64::from(toi) << 32 | u64::from(esi.0) },
            }
        })
    }

    const NOW: BootId = BootId([7; 16]);
    const BEFORE: BootId = BootId([1; 16]);

    fn emitted(groups: &[Vec<Line>]) -> Vec<u8> {
        let groups = groups.iter().flat_map(|lines| group(lines.iter().copied()));
        MAGIC.iter().copied().chain(groups).collect()
    }

    /// The journal of groups of notes, written during one boot.
    fn journal(run: BootId, groups: &[Vec<Note>]) -> Vec<u8> {
        let notes = groups.iter().map(|notes| notes.iter().copied().map(Line::Note).collect());
        emitted(&std::iter::once(vec![Line::Run(run)]).chain(notes).collect::<Vec<_>>())
    }

    fn read_at(bytes: &[u8], now: BootId) -> Option<(Kept, u64)> {
        read(|| bytes, now).map(|(kept, marks)| (kept, marks.end))
    }

    fn kept(notes: impl IntoIterator<Item = Note>) -> Kept {
        let mut kept = Kept::default();
        notes.into_iter().for_each(|note| kept.add(note));
        kept
    }

    proptest! {
        #[test]
        fn lines_read_as_they_were_written(note in note(), end: u64, id: [u8; 16]) {
            for line in [Line::Note(note), Line::Synced(end), Line::Run(BootId(id))] {
                prop_assert_eq!(Line::parse(&line.emit()), Some(line));
            }
        }

        #[test]
        fn a_torn_or_damaged_journal_keeps_the_groups_before(
            groups in proptest::collection::vec(proptest::collection::vec(note(), 1..5), 0..6),
            cut in any::<prop::sample::Index>(),
            flip in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let bytes = journal(NOW, &groups);
            let all = groups.concat();
            prop_assert_eq!(read_at(&bytes, NOW), Some((kept(all), bytes.len() as u64)));
            let cut = cut.index(bytes.len() + 1);
            if let Some((_, length)) = read_at(&bytes[..cut], NOW) {
                prop_assert!(length <= cut as u64);
            } else {
                prop_assert!(cut < MAGIC.len());
            }
            let mut damaged = bytes.clone();
            let at = flip.index(bytes.len());
            damaged[at] ^= 1 << bit;
            if let Some((_, length)) = read_at(&damaged, NOW) {
                // The damaged group is not believed, nor are later ones.
                prop_assert!(length <= at as u64);
            }
        }

        #[test]
        fn any_bytes_are_a_journal_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut journal = MAGIC.to_vec();
            journal.extend(&bytes);
            prop_assert!(read_at(&journal, NOW).is_some());
            let _ = read_at(&bytes, NOW);
        }

        /// Runs in two boots, synced at any place: compares the believed notes with a simple model.
        #[test]
        fn notes_not_synced_before_a_reboot_are_believed_only_if_they_need_no_bytes(
            runs in proptest::collection::vec(
                (0..3_u8, proptest::collection::vec(note(), 0..6), 0..7_usize), 0..5),
        ) {
            let mut groups = vec![vec![Line::Run(NOW)]];
            let mut run = NOW;
            let (mut believed, mut doubtful): (Vec<Note>, Vec<Note>) = (Vec::new(), Vec::new());
            for (number, notes, synced) in runs {
                let next = BootId([number; 16]); // 0 is an unknown one
                groups.push(vec![Line::Run(next)]);
                if !next.is_same_boot(run) {
                    doubtful.retain(|note| note.outlives_a_power_failure());
                    believed.append(&mut doubtful);
                }
                run = next;
                for (number, note) in notes.iter().enumerate() {
                    groups.push(vec![Line::Note(*note)]);
                    doubtful.push(*note);
                    if number == synced {
                        groups.push(vec![Line::Synced(emitted(&groups).len() as u64)]);
                        believed.append(&mut doubtful);
                    }
                }
            }
            let bytes = emitted(&groups);
            for now in [NOW, BootId([1; 16]), BootId([2; 16]), BootId::UNKNOWN] {
                let mut expected = believed.clone();
                let is_believed = |note: &&Note| {
                    now.is_same_boot(run) || note.outlives_a_power_failure()
                };
                expected.extend(doubtful.iter().filter(is_believed));
                prop_assert_eq!(read_at(&bytes, now).map(|(kept, _)| kept), Some(kept(expected)));
            }
        }
    }

    #[test]
    fn a_mark_covers_what_was_written_when_syncing_began() {
        let note = |esi| Note::InPlace { toi: 1, sbn: Sbn(0), esi: Esi(esi), count: 1 };
        let mut groups = vec![vec![Line::Run(BEFORE)], vec![Line::Note(note(0))]];
        let began = emitted(&groups).len() as u64;
        groups.push(vec![Line::Note(note(1))]);
        groups.push(vec![Line::Synced(began)]);
        let bytes = emitted(&groups);
        assert_eq!(read_at(&bytes, BEFORE).unwrap().0, kept([note(0), note(1)]));
        assert_eq!(read_at(&bytes, NOW).unwrap().0, kept([note(0)]));
        // A group that lacks one byte counts as absent.
        groups.pop();
        groups.push(vec![Line::Synced(began - 1)]);
        assert_eq!(read_at(&emitted(&groups), NOW).unwrap().0, Kept::default());
    }

    #[test]
    fn a_line_of_a_single_source_symbol_has_no_count() {
        // As journals before runs have it.
        let line = Note::InPlace { toi: 1, sbn: Sbn(2), esi: Esi(3), count: 1 };
        let bytes = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0];
        assert_eq!(Line::Note(line).emit(), bytes);
        assert_eq!(Line::parse(&bytes), Some(Line::Note(line)));
    }

    #[test]
    fn runs_longer_than_a_line_are_several_lines() {
        for most in [MAX_RUN, MAX_SPOOLED_RUN] {
            for count in [1, 2, most - 1, most, most + 1, 3 * most] {
                let (toi, sbn, esi) = (1, Sbn(0), Esi(7));
                for note in [
                    Note::InPlace { toi, sbn, esi, count },
                    Note::Spooled { toi, sbn, esi, slot: 5, count },
                ] {
                    let lines: Vec<_> = note.lines().collect();
                    let bytes = emitted(&[vec![Line::Run(NOW)], lines]);
                    assert_eq!(read_at(&bytes, NOW).map(|(kept, _)| kept), Some(kept([note])));
                }
            }
        }
        let long = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0x10, 0, 0];
        assert_eq!(Line::parse(&long), None);
    }

    #[test]
    fn a_gap_of_zeros_ends_the_journal() {
        let note = Note::Committed { toi: 3 };
        let mut bytes = journal(NOW, &[]);
        let end = bytes.len() as u64;
        bytes.extend([0; 64]);
        bytes.extend(group([Line::Note(note)]));
        assert_eq!(read_at(&bytes, NOW), Some((Kept::default(), end)));
    }
}
