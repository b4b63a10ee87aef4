//! Objects of an FCAST session (RFC 6968).
//!
//! An object's header, which says what it is, is read when all of the object has arrived. Until
//! then the object has neither a name nor a place, and is received into a scratch file. Its data
//! are copied from there to the file, which gets its name when it is complete.

use super::content::{
    FileWriter, ObjectReader, content_encoding, decode, max_decoded, undecodable, unusable,
};
use super::digests::Digests;
use super::report::TargetReport;
use super::session::SessionStaging;
use super::slices::{SlicedFile, SlicedFiles};
use crate::error::{Error, TransferError};
use crate::receive::object::{OpenObject, Opened, stage};
use crate::receive::staging_root::StagingRoot;
use crate::shared::Sender;
use fontana_fec::ObjectLayout;
use fontana_proto::SessionKey;
use fontana_store::{Extents, FileAttributes, FileIndex, StagedObject, Staging, TargetName};
use fontana_wire::{
    CarouselInstance, Compound, CompoundHeader, CompoundMetadata, ContentEncoding, FcastError,
    InternetChecksum, Slice, Toi,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The files of an FCAST session, in a directory.
pub(in crate::receive) struct FcastTarget {
    staging: SessionStaging,
    /// Most bytes that a file may be decompressed to, and that sliced files may have together.
    max_bytes: u64,
    reports: Sender<TargetReport>,
    objects: BTreeMap<Toi, ScratchObject>,
    sliced: SlicedFiles,
}

/// An object that is being received, and the scratch file that holds it.
struct ScratchObject {
    object: Arc<OpenObject>,
    scratch: FileIndex,
}

/// A file, as the header of its object, or of a slice, describes it.
struct DescribedFile<'a> {
    toi: Toi,
    /// Its name, as the sender writes it.
    location: &'a str,
    /// Its path, for people.
    path: &'a str,
    target: TargetName,
    length: Option<u64>,
}

/// The data of an object, on their way to a file.
struct ObjectData<'a> {
    object: &'a StagedObject,
    offset: u64,
    length: u64,
    encoding: ContentEncoding,
    /// Checksum of the header; `None` if the data have none.
    sum: Option<InternetChecksum>,
    digests: Digests,
}

impl FcastTarget {
    pub(super) fn new(root: StagingRoot, max_bytes: u64, reports: Sender<TargetReport>) -> Self {
        Self {
            staging: SessionStaging::new(root, "fcast"),
            max_bytes,
            reports,
            objects: BTreeMap::new(),
            sliced: SlicedFiles::default(),
        }
    }

    /// Makes room for an object.
    pub(super) fn open(
        &mut self,
        session: SessionKey,
        toi: Toi,
        layout: ObjectLayout,
    ) -> Result<Opened, Error> {
        let staging = self.staging.enter(session)?;
        let length = layout.oti().transfer_length;
        let scratch = staging.add_scratch(length)?;
        let staged = stage(&staging, layout, Extents::whole_file(scratch, length))?;
        let object = Arc::new(OpenObject::new(staged, Vec::new()));
        self.objects.insert(toi, ScratchObject { object: Arc::clone(&object), scratch });
        Ok(Opened::single(toi, object))
    }

    /// Reads the header of a complete object, and does with its data what the header says.
    pub(super) fn commit(&mut self, toi: Toi) -> Result<TargetReport, Error> {
        let (Some(complete), Some(staging)) = (self.objects.remove(&toi), self.staging.get())
        else {
            return Ok(TargetReport::Committed { toi });
        };
        let staging = Arc::clone(staging);
        let report = match self.use_object(toi, &complete.object, &staging) {
            Ok(report) => report,
            Err(error) => unusable(toi, &complete.object.staged, error)?,
        };
        complete.discard(&staging)?;
        Ok(report)
    }

    /// Frees what was stored of an object.
    pub(super) fn drop_object(&mut self, toi: Toi) {
        if let (Some(object), Some(staging)) = (self.objects.remove(&toi), self.staging.get()) {
            // What cannot be removed now is removed with the staging directory.
            let _ = object.discard(staging);
        }
    }

    fn use_object(
        &mut self,
        toi: Toi,
        object: &OpenObject,
        staging: &Staging,
    ) -> Result<TargetReport, Error> {
        let compound = read_header(toi, &object.staged)?;
        match &compound.header {
            CompoundHeader::Descriptor(metadata) => {
                let instance = read_instance(toi, &object.staged, &compound, metadata)?;
                Ok(TargetReport::CarouselRead { toi, instance })
            }
            CompoundHeader::Object(metadata) => {
                self.place(toi, object, staging, &compound, metadata)?;
                Ok(TargetReport::Committed { toi })
            }
        }
    }

    /// Copies the data of an object to its file, which may have other slices.
    fn place(
        &mut self,
        toi: Toi,
        object: &OpenObject,
        staging: &Staging,
        compound: &Compound,
        metadata: &CompoundMetadata,
    ) -> Result<(), Error> {
        let location = metadata.content_location.as_deref().unwrap_or_default();
        let named = self.staging.file_of(location)?;
        let path = named.path.to_string();
        let offset = compound.data_offset as u64;
        let data = ObjectData {
            object: &object.staged,
            offset,
            length: object.length() - offset,
            encoding: content_encoding(metadata.content_encoding.as_ref(), location)?,
            sum: compound.sum,
            digests: Digests { sha1: metadata.sha1, sha256: metadata.sha256, md5: None },
        };
        let length = metadata.content_length;
        let file = DescribedFile { toi, location, path: &path, target: named.target, length };
        // Before the outcome is reported, which is shown with the name.
        object.describe(path.clone());
        match metadata.slice {
            None => self.place_file(staging, file, data),
            Some(slice) => self.place_slice(staging, file, slice, data),
        }
    }

    fn place_file(
        &self,
        staging: &Staging,
        file: DescribedFile<'_>,
        data: ObjectData<'_>,
    ) -> Result<(), Error> {
        let most = max_decoded(data.encoding, data.length);
        let length = match file.length {
            Some(length) if length > most => {
                return Err(file.wrong("its length is more than its object can hold"));
            }
            Some(length) => length,
            None if data.encoding == ContentEncoding::Null => data.length,
            // Decompressed twice, first to learn the length: a full disk is noticed beforehand.
            None => data.copy(&mut io::sink(), self.max_bytes, &file)?,
        };
        self.report_found(&file, length);
        let index = staging.add_file(file.target.clone(), length, FileAttributes::default())?;
        let mut writer = FileWriter::new(staging, index, 0, data.digests.check());
        let copied = data.copy(&mut writer, length, &file).and_then(|_| {
            if writer.check.bytes() != length {
                return Err(file.wrong("its length is not what its header says"));
            }
            writer.check.finish().map_err(|what| file.wrong(what))
        });
        if let Err(error) = copied {
            staging.discard(index)?;
            return Err(error);
        }
        Ok(staging.commit(&[index])?)
    }

    /// Copies a slice to its place. The file gets its name with the last one.
    fn place_slice(
        &mut self,
        staging: &Staging,
        file: DescribedFile<'_>,
        slice: Slice,
        data: ObjectData<'_>,
    ) -> Result<(), Error> {
        let Some(length) = file.length else {
            return Err(file.wrong("a slice does not say how long the file is"));
        };
        if self.sliced.get_mut(&file.target).is_none() {
            self.add_sliced(staging, &file, length, slice.count)?;
        }
        let Some(sliced) = self.sliced.get_mut(&file.target) else { return Ok(()) };
        if (sliced.length, sliced.count) != (length, slice.count) {
            return Err(file.wrong("its slices say different things of it"));
        }
        if sliced.has_gaps {
            return Err(file.wrong("its slices leave gaps"));
        }
        let room = sliced
            .room_for(&slice)
            .ok_or_else(|| file.wrong("one of its slices does not fit between the others"))?;
        let mut writer = FileWriter::new(staging, sliced.index, slice.offset, data.digests.check());
        data.copy(&mut writer, room, &file)?;
        let end = slice.offset + writer.check.bytes();
        writer.check.finish().map_err(|what| file.wrong(what))?;
        sliced.place(slice.index, slice.offset..end);
        if !sliced.has_all() {
            return Ok(());
        }
        let index = sliced.index;
        if !sliced.is_whole() {
            sliced.has_gaps = true;
            staging.discard(index)?;
            return Err(file.wrong("its slices leave gaps"));
        }
        self.sliced.remove(&file.target);
        Ok(staging.commit(&[index])?)
    }

    /// Makes room for a file of which the first slice has arrived.
    fn add_sliced(
        &mut self,
        staging: &Staging,
        file: &DescribedFile<'_>,
        length: u64,
        count: u32,
    ) -> Result<(), Error> {
        if length > self.max_bytes.saturating_sub(self.sliced.promised()) {
            let what = "the session asks for more bytes than are accepted".to_owned();
            return Err(TransferError::Unsupported { name: file.path.to_owned(), what }.into());
        }
        let index = staging.add_file(file.target.clone(), length, FileAttributes::default())?;
        self.sliced
            .add(file.target.clone(), SlicedFile::new(file.path.to_owned(), index, length, count));
        self.report_found(file, length);
        Ok(())
    }

    fn report_found(&self, file: &DescribedFile<'_>, bytes: u64) {
        let name = file.location.to_owned();
        // The driver has dropped its end when the reception is over.
        let _ = self.reports.send(TargetReport::Found { toi: file.toi, name, bytes });
    }

    /// Completes the session, unless slices of a file are missing though all that was listed has
    /// arrived.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.sliced.pop_missing().map_or(Ok(()), Err)?;
        self.staging.finish()
    }

    /// Removes what was not committed. Returns which slices are missing of each sliced file, unless
    /// [`finish`](Self::finish) has.
    pub(super) fn end(mut self) -> Vec<Error> {
        self.staging.discard();
        std::iter::from_fn(|| self.sliced.pop_missing()).collect()
    }
}

impl ScratchObject {
    /// Removes what was stored of it.
    fn discard(&self, staging: &Staging) -> Result<(), Error> {
        self.object.staged.remove_spool()?;
        Ok(staging.remove_scratch(self.scratch)?)
    }
}

impl DescribedFile<'_> {
    fn wrong(&self, what: impl Into<String>) -> Error {
        TransferError::Content { name: self.path.to_owned(), what: what.into() }.into()
    }
}

impl ObjectData<'_> {
    /// Decodes into `output`, at most `longest` bytes, and checks the checksum.
    fn copy(
        &self,
        output: &mut dyn io::Write,
        longest: u64,
        file: &DescribedFile<'_>,
    ) -> Result<u64, Error> {
        let mut reader = ObjectReader::new(self.object, self.offset, self.sum);
        let bytes = decode(self.encoding, &mut reader, output, longest)
            .map_err(|error| undecodable(error, |what| file.wrong(what)))?;
        match reader.sum {
            Some(sum) if !sum.is_right() => Err(file.wrong(FcastError::Checksum.to_string())),
            _ => Ok(bytes),
        }
    }
}

/// The error of an object that is no valid FCAST object.
fn malformed(toi: Toi, error: FcastError) -> Error {
    TransferError::Content { name: format!("object {toi}"), what: error.to_string() }.into()
}

/// Reads the header of an object.
fn read_header(toi: Toi, object: &StagedObject) -> Result<Compound, Error> {
    let size = object.layout().oti().transfer_length;
    let mut start = vec![0; size.min(Compound::FIXED_SIZE as u64) as usize];
    object.read_at(0, &mut start)?;
    let header_size = Compound::header_size(&start, size).map_err(|error| malformed(toi, error))?;
    start.resize(header_size, 0);
    object.read_at(0, &mut start)?;
    Compound::parse_header(&start, size).map_err(|error| malformed(toi, error))
}

/// Reads the list of objects in a descriptor.
fn read_instance(
    toi: Toi,
    object: &StagedObject,
    compound: &Compound,
    metadata: &CompoundMetadata,
) -> Result<CarouselInstance, Error> {
    let offset = compound.data_offset as u64;
    let size = object.layout().oti().transfer_length - offset;
    if size > Compound::MAX_LIST_SIZE as u64 {
        let (what, limit) = ("bytes of FCAST object list", Compound::MAX_LIST_SIZE);
        return Err(malformed(toi, FcastError::Limit { what, limit }));
    }
    let mut list = vec![0; size as usize];
    object.read_at(offset, &mut list)?;
    if let Some(mut sum) = compound.sum {
        sum.add(&list);
        if !sum.is_right() {
            return Err(malformed(toi, FcastError::Checksum));
        }
    }
    CarouselInstance::parse(metadata, &list).map_err(|error| malformed(toi, error))
}
