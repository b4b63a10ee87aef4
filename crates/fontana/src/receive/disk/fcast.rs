//! Objects of FCAST sessions (RFC 6968). What one is, its header says, and that is read when all of
//! it has arrived: until then it has neither a name nor a place. Its data are copied from there to
//! the file, which is given its name when it is whole.

use super::plain::{Digests, FileWriter, ObjectReader, content_encoding};
use super::{Disk, OpenObject, Report};
use crate::error::Error;
use crossbeam_channel::Sender;
use fontana_fec::ObjectLayout;
use fontana_proto::{SessionKey, repair_slots};
use fontana_store::{Extents, FileAttributes, FileIndex, StagedObject, Staging, TargetName};
use fontana_wire::{
    CarouselInstance, Compound, CompoundHeader, CompoundMetadata, ContentEncoding, FcastError,
    InternetChecksum, Slice, Toi,
};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The files of a session of which some slices have arrived, by name.
#[derive(Default)]
pub(super) struct Slices {
    files: BTreeMap<TargetName, SlicedFile>,
    /// Bytes that their lengths come to: what anybody could promise without sending them.
    promised: u64,
}

struct SlicedFile {
    name: String,
    index: FileIndex,
    length: u64,
    count: u32,
    /// Where each slice is that has arrived.
    placed: BTreeMap<u32, Range<u64>>,
}

/// The data of an object, on their way to a file.
struct Data<'a> {
    object: &'a StagedObject,
    offset: u64,
    length: u64,
    encoding: ContentEncoding,
    /// Sum of the header, if the data are to be summed up.
    sum: Option<InternetChecksum>,
    digests: Digests,
}

impl Disk {
    pub(super) fn open_compound(
        &mut self,
        session: SessionKey,
        layout: ObjectLayout,
    ) -> Result<Arc<OpenObject>, Error> {
        let staging = self.plain_staging("fcast", session)?;
        let length = layout.oti().transfer_length;
        let index = staging.add_scratch(length)?;
        let extents = Extents::whole_file(index, length);
        let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
        let staged = StagedObject::new(staging, layout, extents, slots)?;
        Ok(Arc::new(OpenObject { is_compound: true, ..OpenObject::new(staged, vec![index]) }))
    }

    /// Does with an object what its header says.
    pub(super) fn commit_compound(
        &mut self,
        object: &OpenObject,
        toi: Toi,
        reports: &Sender<Report>,
    ) -> Result<Report, Error> {
        let Some(staging) = self.staging.clone() else { return Ok(Report::Committed { toi }) };
        let wrong = |error: FcastError| Error::Content {
            name: format!("object {toi}"),
            what: error.to_string(),
        };
        let size = object.staged.layout().oti().transfer_length;
        let mut start = vec![0; size.min(Compound::FIXED_SIZE as u64) as usize];
        object.staged.read_at(0, &mut start)?;
        start.resize(Compound::header_size(&start, size).map_err(wrong)?, 0);
        object.staged.read_at(0, &mut start)?;
        let compound = Compound::parse_header(&start, size).map_err(wrong)?;
        let offset = compound.data_offset as u64;
        let report = match &compound.header {
            CompoundHeader::Descriptor(metadata) => {
                let instance = read_instance(&object.staged, &compound, metadata, wrong)?;
                Report::CarouselRead { toi, instance }
            }
            CompoundHeader::Object(metadata) => {
                let name = metadata.content_location.as_deref().unwrap_or_default();
                let (path, target) = self.target_of(name)?;
                let path = path.to_string();
                let encoding = content_encoding(metadata.content_encoding.as_ref(), name)?;
                let data = Data {
                    object: &object.staged,
                    offset,
                    length: size - offset,
                    encoding,
                    sum: compound.sum,
                    digests: Digests { sha1: metadata.sha1, sha256: metadata.sha256, md5: None },
                };
                let file = File { name: &path, target, length: metadata.content_length };
                // Whoever is told of the object afterwards is told its name.
                let _ = object.found.set([path.clone()]);
                let found = |bytes| {
                    // Nobody listens any more when it is over.
                    let _ = reports.send(Report::Found { toi, name: name.to_owned(), bytes });
                };
                match metadata.slice {
                    None => self.place_file(&staging, file, data, found)?,
                    Some(slice) => self.place_slice(&staging, file, slice, data, found)?,
                }
                Report::Committed { toi }
            }
        };
        object.staged.remove_spool()?;
        object.files.iter().try_for_each(|&scratch| staging.remove_scratch(scratch))?;
        Ok(report)
    }

    fn place_file(
        &self,
        staging: &Staging,
        file: File<'_>,
        data: Data<'_>,
        found: impl FnOnce(u64),
    ) -> Result<(), Error> {
        let most = data.most();
        let length = match file.length {
            Some(length) if length > most => {
                return Err(file.wrong("its length is more than its object can hold"));
            }
            Some(length) => length,
            None if data.encoding == ContentEncoding::Null => data.length,
            // Once to learn how long it is, once to keep it.
            None => data.copy(&mut io::sink(), self.max_bytes, &file)?,
        };
        found(length);
        let index = staging.add_file(file.target.clone(), length, FileAttributes::default())?;
        let mut writer = FileWriter::new(staging, index, 0, data.digests.check());
        data.copy(&mut writer, length, &file)?;
        if writer.check.bytes() != length {
            return Err(file.wrong("its length is not what its header says"));
        }
        writer.check.finish().map_err(|what| file.wrong(what))?;
        Ok(staging.commit(&[index])?)
    }

    /// Puts a slice in its place; the file gets its name with the last one.
    fn place_slice(
        &mut self,
        staging: &Staging,
        file: File<'_>,
        slice: Slice,
        data: Data<'_>,
        found: impl FnOnce(u64),
    ) -> Result<(), Error> {
        let Some(length) = file.length else {
            return Err(file.wrong("a slice does not say how long the file is"));
        };
        let limit = self.max_bytes.saturating_sub(self.slices.promised);
        let files = &mut self.slices.files;
        if !files.contains_key(&file.target) {
            if length > limit {
                let what = "the session asks for more bytes than are accepted".to_owned();
                return Err(Error::Unsupported { name: file.name.to_owned(), what });
            }
            let index = staging.add_file(file.target.clone(), length, FileAttributes::default())?;
            self.slices.promised += length;
            found(length);
            let (name, count, placed) = (file.name.to_owned(), slice.count, BTreeMap::new());
            files.insert(file.target.clone(), SlicedFile { name, index, length, count, placed });
        }
        let Some(sliced) = files.get_mut(&file.target) else { return Ok(()) };
        if (sliced.length, sliced.count) != (length, slice.count) {
            return Err(file.wrong("its slices say different things of it"));
        }
        let room = sliced
            .room_for(&slice)
            .ok_or_else(|| file.wrong("one of its slices does not fit between the others"))?;
        let mut writer = FileWriter::new(staging, sliced.index, slice.offset, data.digests.check());
        data.copy(&mut writer, room, &file)?;
        let end = slice.offset + writer.check.bytes();
        writer.check.finish().map_err(|what| file.wrong(what))?;
        sliced.placed.insert(slice.index, slice.offset..end);
        if sliced.placed.len() < sliced.count as usize {
            return Ok(());
        }
        let (whole, index) = (sliced.is_whole(), sliced.index);
        files.remove(&file.target);
        if !whole {
            return Err(file.wrong("its slices leave gaps"));
        }
        Ok(staging.commit(&[index])?)
    }

    /// What is missing of files of which only some slices have arrived, and which was not told yet.
    pub(in crate::receive) fn missing_slices(&mut self) -> Vec<Error> {
        std::iter::from_fn(|| self.slices.pop_unfinished()).collect()
    }
}

impl Slices {
    /// What is missing of a file, which is given up.
    pub(super) fn pop_unfinished(&mut self) -> Option<Error> {
        self.files.pop_first().map(|(_, file)| file.missing())
    }
}

/// What an object's header says of the file.
struct File<'a> {
    name: &'a str,
    target: TargetName,
    length: Option<u64>,
}

impl File<'_> {
    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Content { name: self.name.to_owned(), what: what.into() }
    }
}

impl Data<'_> {
    /// Most bytes that can come out.
    fn most(&self) -> u64 {
        match self.encoding {
            ContentEncoding::Null => self.length,
            _ => self.length.saturating_mul(super::plain::MAX_RATIO),
        }
    }

    /// Decodes into `output`, at most `longest` bytes, and checks the sum of what was decoded.
    fn copy(
        &self,
        output: &mut dyn io::Write,
        longest: u64,
        file: &File<'_>,
    ) -> Result<u64, Error> {
        let mut reader = ObjectReader::new(self.object, self.offset, self.sum);
        let bytes = super::plain::decode(self.encoding, &mut reader, output, longest)
            .map_err(|error| super::plain::undecodable(error, |what| file.wrong(what)))?;
        match reader.sum {
            Some(sum) if !sum.is_right() => Err(file.wrong(FcastError::Checksum.to_string())),
            _ => Ok(bytes),
        }
    }
}

impl SlicedFile {
    /// How many bytes there are for a slice before the next one, or the end; `None` if it is there, or
    /// its place is taken.
    fn room_for(&self, slice: &Slice) -> Option<u64> {
        if self.placed.contains_key(&slice.index) {
            return None;
        }
        let before = self.placed.range(..slice.index).next_back().map_or(0, |(_, at)| at.end);
        let after = self.placed.range(slice.index..).next().map_or(self.length, |(_, at)| at.start);
        (before <= slice.offset).then(|| after.checked_sub(slice.offset)).flatten()
    }

    /// Whether every slice begins where the one before it ends.
    fn is_whole(&self) -> bool {
        let mut end = 0;
        self.placed.values().all(|at| std::mem::replace(&mut end, at.end) == at.start)
            && end == self.length
    }

    fn missing(self) -> Error {
        /// Ranges that a message lists.
        const TOLD: usize = 5;
        let mut ranges = Vec::new();
        let mut next = 0;
        let ends = [self.count];
        for index in self.placed.keys().copied().chain(ends) {
            match index.saturating_sub(next) {
                0 => {}
                1 => ranges.push(next.to_string()),
                _ => ranges.push(format!("{next}-{}", index - 1)),
            }
            next = index.saturating_add(1);
        }
        let more = if ranges.len() > TOLD { ", ..." } else { "" };
        ranges.truncate(TOLD);
        let missing = self.count - self.placed.len() as u32;
        let which = ranges.join(", ") + more;
        Error::MissingSlices { name: self.name, missing, count: self.count, which }
    }
}

/// Reads a descriptor; `wrong` says what to do if it is none.
fn read_instance(
    object: &StagedObject,
    compound: &Compound,
    metadata: &CompoundMetadata,
    wrong: impl Fn(FcastError) -> Error,
) -> Result<CarouselInstance, Error> {
    let offset = compound.data_offset as u64;
    let size = object.layout().oti().transfer_length - offset;
    if size > Compound::MAX_LIST_SIZE as u64 {
        let (what, limit) = ("bytes of FCAST object list", Compound::MAX_LIST_SIZE);
        return Err(wrong(FcastError::Limit { what, limit }));
    }
    let mut list = vec![0; size as usize];
    object.read_at(offset, &mut list)?;
    if let Some(mut sum) = compound.sum {
        sum.add(&list);
        if !sum.is_right() {
            return Err(wrong(FcastError::Checksum));
        }
    }
    CarouselInstance::parse(metadata, &list).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sliced(placed: &[(u32, Range<u64>)], count: u32) -> SlicedFile {
        let placed = placed.iter().cloned().collect();
        SlicedFile { name: "f".to_owned(), index: FileIndex(0), length: 30, count, placed }
    }

    #[test]
    fn a_slice_has_room_up_to_its_neighbors() {
        let file = sliced(&[(1, 10..20)], 4);
        let room = |index, offset| file.room_for(&Slice { count: 4, index, offset });
        assert_eq!(room(0, 0), Some(10));
        assert_eq!(room(0, 10), Some(0));
        assert_eq!(room(0, 11), None);
        assert_eq!(room(1, 10), None, "it is there");
        assert_eq!(room(2, 20), Some(10));
        assert_eq!(room(2, 19), None);
        assert_eq!(room(3, 30), Some(0));
        assert_eq!(room(3, 31), None);
    }

    #[test]
    fn a_file_is_whole_when_its_slices_lie_end_to_end() {
        assert!(sliced(&[(0, 0..10), (1, 10..30)], 2).is_whole());
        assert!(!sliced(&[(0, 0..10), (1, 11..30)], 2).is_whole());
        assert!(!sliced(&[(0, 1..10), (1, 10..30)], 2).is_whole());
        assert!(!sliced(&[(0, 0..10), (1, 10..29)], 2).is_whole());
    }

    #[test]
    fn missing_slices_are_told_by_their_numbers() {
        let told = |placed: &[u32], count| {
            let placed: Vec<_> = placed.iter().map(|&index| (index, 0..0)).collect();
            match sliced(&placed, count).missing() {
                Error::MissingSlices { missing, which, .. } => (missing, which),
                other => panic!("{other}"),
            }
        };
        assert_eq!(told(&[1, 5], 8), (6, "0, 2-4, 6-7".to_owned()));
        assert_eq!(told(&[0], 2), (1, "1".to_owned()));
        assert_eq!(told(&[1, 3, 5, 7, 9], 12), (7, "0, 2, 4, 6, 8, ...".to_owned()));
        assert_eq!(told(&[u32::MAX - 1], u32::MAX), (u32::MAX - 1, "0-4294967293".to_owned()));
    }
}
