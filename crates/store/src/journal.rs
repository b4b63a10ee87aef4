//! What a staging directory holds, written down as it happens, so that a receiver that was killed
//! goes on with the symbols it had.
//!
//! A note is written after the bytes that it speaks of. Processes die without losing what they
//! wrote, so after a kill every note is true. After a power failure bytes may be missing that a
//! note speaks of. So a life of the receiver begins with a mark of the machine's run (its boot id),
//! and now and then the bytes are synced and a mark says up to where the journal's notes are true
//! whatever happens ([`Staging::sync`](crate::Staging::sync)). In another run of the machine, of
//! the notes behind that place only those are believed that do not speak of bytes, or whose writer
//! had synced them by itself: before files are given their names. Should a note be wrong all the
//! same (a disk that was pulled), the block's hash finds that, and the block is received again: a
//! journal can cost time but never a wrong byte.
//!
//! ```text
//! "FONTJNL" and the format version, 2
//! groups, each: u32 bytes of lines (not 0), u32 CRC-32 of them, the lines
//! line: 4 x u32, u8 kind, big-endian
//! ```
//! Reading ends at the first group that is not whole: what follows a torn write, or a gap of zeros,
//! means nothing.

use crate::boot::BootId;
use crate::failure::StagingError;
use crate::failure::failed;
use crate::sys;
use fontana_fec::{Esi, Sbn};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;

/// The journal's name in the staging directory.
pub(crate) const JOURNAL: &str = "journal";

const MAGIC: &[u8; 8] = b"FONTJNL\x02";
const LINE_SIZE: usize = 17;
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
    /// What was noted of the block before means nothing any more, and the object is not committed.
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
    /// Whether it is true also when bytes that were not synced are lost.
    fn outlives_a_power_failure(self) -> bool {
        match self {
            Self::InPlace { .. } | Self::Spooled { .. } | Self::Whole { .. } => false,
            // A block that is forgotten in vain is only received again.
            Self::Void { .. } | Self::Made { .. } | Self::Packets { .. } => true,
            // Its files were synced before.
            Self::Committed { .. } => true,
        }
    }
}

/// What a journal consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Note(Note),
    /// From here on, in this run of the machine.
    Run(BootId),
    /// What the groups speak of that end here, counted in bytes of the journal, or before it, is on
    /// the medium.
    Synced(u64),
}

impl Line {
    fn emit(self) -> [u8; LINE_SIZE] {
        let (kind, words) = match self {
            Self::Note(note) => match note {
                Note::InPlace { toi, sbn, esi } => (0, [toi, sbn.0, esi.0, 0]),
                Note::Spooled { toi, sbn, esi, slot } => (1, [toi, sbn.0, esi.0, slot]),
                Note::Whole { toi, sbn } => (2, [toi, sbn.0, 0, 0]),
                Note::Void { toi, sbn } => (3, [toi, sbn.0, 0, 0]),
                Note::Committed { toi } => (4, [toi, 0, 0, 0]),
                Note::Packets { count } => (5, [(count >> 32) as u32, count as u32, 0, 0]),
                Note::Made { directory } => (6, [directory, 0, 0, 0]),
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
        // The kind comes last: the words stay aligned.
        bytes[LINE_SIZE - 1] = kind;
        bytes
    }

    fn parse(bytes: &[u8; LINE_SIZE]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<4>();
        let &[a, b, c, d] = words else { return None };
        let [toi, b, c, slot] = [a, b, c, d].map(u32::from_be_bytes);
        let (sbn, esi) = (Sbn(b), Esi(c));
        let long = u64::from(toi) << 32 | u64::from(b);
        Some(Self::Note(match rest.first()? {
            0 => Note::InPlace { toi, sbn, esi },
            1 => Note::Spooled { toi, sbn, esi, slot },
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
            _ => return None,
        }))
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
                self.committed.remove(&toi);
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
        journal
            .write(MAGIC)
            .and_then(|()| journal.append_lines([Line::Run(BootId::now())]))
            .map_err(failed(path, "begin the journal of"))?;
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
        let now = BootId::now();
        let beginning = || BufReader::new(Reader { file: &file, at: 0 });
        let Some((kept, lives)) = read(beginning, now) else { return Ok(None) };
        // A torn end must not stand between old and new groups.
        let mended = sys::retry(|| rustix::fs::ftruncate(&file, lives.end));
        let journal = Self(file);
        mended
            .and_then(|()| match lives.run.is_same_run(now) {
                true => Ok(()),
                false => journal.append_lines([Line::Run(now)]),
            })
            .map_err(failed(path, "mend the journal of"))?;
        Ok(Some((journal, kept)))
    }

    /// What the journal of a staging directory says, which a receiver may be writing. Nothing if
    /// there is none that can be read.
    pub(crate) fn peek(directory: &OwnedFd) -> Kept {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, JOURNAL, flags, Mode::empty());
        let read = |file| read(|| BufReader::new(Reader { file: &file, at: 0 }), BootId::now());
        file.ok().and_then(read).map_or_else(Kept::default, |(kept, _)| kept)
    }

    /// Writes notes down.
    pub(crate) fn append(&self, notes: &[Note]) -> rustix::io::Result<()> {
        let mut groups = notes.chunks(MAX_GROUP / LINE_SIZE);
        groups.try_for_each(|notes| self.append_lines(notes.iter().copied().map(Line::Note)))
    }

    /// Writes down that what the first `end` bytes of the journal speak of is on the medium, and
    /// waits until that is there too.
    pub(crate) fn append_synced(&self, end: u64) -> rustix::io::Result<()> {
        self.append_lines([Line::Synced(end)])?;
        self.sync()
    }

    /// Its length: every note whose writing is over lies before it.
    pub(crate) fn end(&self) -> rustix::io::Result<u64> {
        Ok(rustix::fs::fstat(&self.0)?.st_size as u64)
    }

    /// Writes one group.
    fn append_lines(&self, lines: impl IntoIterator<Item = Line>) -> rustix::io::Result<()> {
        self.write(&group(lines))
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

/// Which notes of a journal may be believed.
#[derive(Debug)]
struct Lives {
    /// The machine's run that the last group was written in.
    run: BootId,
    /// The groups that end here or before are true whatever happened since.
    synced: u64,
    /// Where groups end that were not synced before a run was over; one range for each run.
    lost: Vec<Range<u64>>,
    /// Where the last whole group ends.
    end: u64,
}

impl Lives {
    /// By the marks of the journal; `now` is the machine's present run. `None` if it is no journal.
    fn read(input: impl Read, now: BootId) -> Option<Self> {
        let mut lives = Self { run: BootId::UNKNOWN, synced: 0, lost: Vec::new(), end: 0 };
        let end = for_each_line(input, |end, line| match line {
            Line::Run(run) => lives.begin(run, end),
            Line::Synced(synced) => lives.synced = lives.synced.max(synced.min(end)),
            Line::Note(_) => {}
        })?;
        let last = lives.run;
        lives.begin(now, end + 1);
        Some(Self { run: last, end, ..lives })
    }

    /// A life begins, with a mark in the group that ends at `end`.
    fn begin(&mut self, run: BootId, end: u64) {
        if !run.is_same_run(self.run) && self.synced + 1 < end {
            self.lost.push(self.synced + 1..end);
        }
        self.run = run;
    }

    fn believe(&self, end: u64, note: Note) -> bool {
        note.outlives_a_power_failure() || !self.lost.iter().any(|lost| lost.contains(&end))
    }
}

/// Reads a journal twice, each time from its `beginning`: first who was writing when, then what to
/// believe of it. So nothing has to be remembered of notes that may turn out to be lost. `None` if
/// it is no journal.
fn read<R: Read>(beginning: impl Fn() -> R, now: BootId) -> Option<(Kept, Lives)> {
    let lives = Lives::read(beginning(), now)?;
    let mut kept = Kept::default();
    for_each_line(beginning(), |end, line| match line {
        // Somebody may be writing meanwhile.
        Line::Note(note) if end <= lives.end && lives.believe(end, note) => kept.add(note),
        _ => {}
    })?;
    Some((kept, lives))
}

/// Shows the lines up to the first group that is not whole, each with the end of its group. Returns
/// the end of the last one; `None` if not even the beginning is right.
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

    const NOW: BootId = BootId([7; 16]);
    const BEFORE: BootId = BootId([1; 16]);

    fn emitted(groups: &[Vec<Line>]) -> Vec<u8> {
        let groups = groups.iter().flat_map(|lines| group(lines.iter().copied()));
        MAGIC.iter().copied().chain(groups).collect()
    }

    /// In one run of the machine, groups of notes.
    fn journal(run: BootId, groups: &[Vec<Note>]) -> Vec<u8> {
        let notes = groups.iter().map(|notes| notes.iter().copied().map(Line::Note).collect());
        emitted(&std::iter::once(vec![Line::Run(run)]).chain(notes).collect::<Vec<_>>())
    }

    fn read_at(bytes: &[u8], now: BootId) -> Option<(Kept, u64)> {
        read(|| bytes, now).map(|(kept, lives)| (kept, lives.end))
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
                // The group with the damage is not believed, nor what follows it.
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

        /// Lives in one run and another, synced at any place: what is believed, told naively.
        #[test]
        fn of_what_was_not_synced_before_the_machine_went_down_only_facts_are_believed(
            lives in proptest::collection::vec(
                (0..3_u8, proptest::collection::vec(note(), 0..6), 0..7_usize), 0..5),
        ) {
            let mut groups = vec![vec![Line::Run(NOW)]];
            let mut run = NOW;
            let (mut believed, mut doubtful): (Vec<Note>, Vec<Note>) = (Vec::new(), Vec::new());
            for (number, notes, synced) in lives {
                let next = BootId([number; 16]); // 0 is an unknown one
                groups.push(vec![Line::Run(next)]);
                if !next.is_same_run(run) {
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
                    now.is_same_run(run) || note.outlives_a_power_failure()
                };
                expected.extend(doubtful.iter().filter(is_believed));
                prop_assert_eq!(read_at(&bytes, now).map(|(kept, _)| kept), Some(kept(expected)));
            }
        }
    }

    #[test]
    fn a_mark_covers_what_was_written_when_syncing_began() {
        let note = |esi| Note::InPlace { toi: 1, sbn: Sbn(0), esi: Esi(esi) };
        let mut groups = vec![vec![Line::Run(BEFORE)], vec![Line::Note(note(0))]];
        let began = emitted(&groups).len() as u64;
        groups.push(vec![Line::Note(note(1))]);
        groups.push(vec![Line::Synced(began)]);
        let bytes = emitted(&groups);
        assert_eq!(read_at(&bytes, BEFORE).unwrap().0, kept([note(0), note(1)]));
        assert_eq!(read_at(&bytes, NOW).unwrap().0, kept([note(0)]));
        // One byte less than the whole of a group is none of it.
        groups.pop();
        groups.push(vec![Line::Synced(began - 1)]);
        assert_eq!(read_at(&emitted(&groups), NOW).unwrap().0, Kept::default());
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
