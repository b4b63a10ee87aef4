//! Files of a plain FLUTE session: checked against what the file delivery table says of them, and
//! decompressed.

use super::content::{
    FileWriter, ObjectReader, content_encoding, decode, max_decoded, undecodable, unusable,
};
use super::digests::{DigestCheck, Digests};
use super::remembered::Remembered;
use super::report::TargetReport;
use super::session::{NamedFile, SessionStaging};
use super::written::WrittenFiles;
use crate::cancellation::CancellationToken;
use crate::error::{Error, TransferError};
use crate::receive::object::{OpenObject, Opened, stage};
use crate::receive::staging_root::StagingRoot;
use crate::shared::Sender;
use crate::system::milliseconds_since_1970;
use fontana_fec::{ObjectLayout, Sbn};
use fontana_proto::{Expired, SessionKey};
use fontana_store::{
    Extents, FileAttributes, FileIndex, Identity, Selection, StagedObject, Staging, StagingError,
    TargetName,
};
use fontana_wire::{ContentEncoding, FdtFile, FdtMd5, RelativePath, Toi};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::Arc;

/// The files of a plain FLUTE session, in a directory.
pub(in crate::receive) struct PlainTarget {
    staging: SessionStaging,
    options: PlainOptions,
    /// Set when the reception is over: the comparison of an existing file ends early.
    abandoned: CancellationToken,
    reports: Sender<TargetReport>,
    written: WrittenFiles,
    /// Present once the session is known, if it is watched.
    remembered: Option<Remembered>,
    /// The states of files that were there before, and their MD5.
    existing: BTreeMap<TargetName, (Identity, [u8; 16])>,
    files: BTreeMap<Toi, PlainFile>,
    /// The file that has the one name.
    only_file: Option<RelativePath>,
    /// Files that could not be deleted, so far.
    not_deleted: usize,
    /// The first names that the selection leaves out; `None` once it has taken one.
    unselected: Option<Vec<String>>,
}

/// Files that are reported because they could not be deleted: a session may have no end.
const MAX_NOT_DELETED: usize = 64;

/// Names that an error lists, so that a mistyped pattern is noticed.
const NAMES_LISTED: usize = 5;

/// Existing files whose MD5 is remembered.
const MAX_EXISTING: usize = 16_384;

/// What is received of a session, and how.
pub(super) struct PlainOptions {
    pub(super) selection: Selection,
    /// Files that exist are not received.
    pub(super) skip_existing: bool,
    /// No file is received.
    pub(super) lists: bool,
    /// What it writes is remembered for later runs.
    pub(super) remembers: bool,
    /// Files of earlier runs that are not named are deleted when everything is received.
    pub(super) deletes_at_end: bool,
    /// The name of the session's only file in the directory; `None`: files have their own names.
    pub(super) file_name: Option<OsString>,
    /// Most bytes that a file may be decompressed to.
    pub(super) max_bytes: u64,
}

/// A file that is being received.
struct PlainFile {
    object: Arc<OpenObject>,
    /// The staged file that holds the object.
    index: FileIndex,
    target: TargetName,
    /// Of two files with one name, the one with the higher number is newer.
    version: u64,
    /// When the table expires that names it, in Unix seconds.
    expires: u64,
    promise: Promise,
    encoding: ContentEncoding,
}

/// A file to make room for.
pub(super) struct FileOpening<'a> {
    pub(super) session: SessionKey,
    pub(super) toi: Toi,
    pub(super) file: &'a FdtFile,
    pub(super) version: u64,
    pub(super) expires: u64,
    pub(super) layout: ObjectLayout,
}

/// What the file delivery table says of a file.
struct Promise {
    location: String,
    content_length: Option<u64>,
    digests: Digests,
}

impl PlainTarget {
    pub(super) fn new(
        root: StagingRoot,
        options: PlainOptions,
        abandoned: CancellationToken,
        reports: Sender<TargetReport>,
    ) -> Self {
        let (staging, written) = (SessionStaging::new(root, "flute"), WrittenFiles::default());
        Self {
            staging,
            options,
            abandoned,
            reports,
            written,
            remembered: None,
            existing: BTreeMap::new(),
            files: BTreeMap::new(),
            only_file: None,
            not_deleted: 0,
            unselected: Some(Vec::new()),
        }
    }

    /// Makes room for a file, or for an object that has to be decompressed.
    pub(super) fn open(&mut self, opening: &FileOpening<'_>) -> Result<Opened, Error> {
        let &FileOpening { session, toi, file, version, expires, layout } = opening;
        if self.options.lists {
            return Ok(Opened::deselected(toi));
        }
        if self.options.remembers && self.remembered.is_none() {
            self.remembered = Some(self.staging.recall(session, &mut self.written)?);
        }
        let named = SessionStaging::name_of(&file.content_location)?;
        let is_selected = self.options.selection.takes(named.path.as_bytes(), false);
        match &mut self.unselected {
            _ if is_selected => self.unselected = None,
            Some(names) if names.len() < NAMES_LISTED => names.push(named.path.to_string()),
            _ => {}
        }
        let named = if is_selected { self.rename(named)? } else { named };
        self.written.name(&named.target);
        if !is_selected || (self.options.skip_existing && self.is_kept(opening, &named)?) {
            return Ok(Opened::deselected(toi));
        }
        self.check_free(&named)?;
        let staging = self.staging.enter(session)?;
        let encoding = content_encoding(file.content_encoding.as_ref(), &file.content_location)?;
        let length = layout.oti().transfer_length;
        let md5 = match &file.content_md5 {
            Some(FdtMd5::Digest(md5)) => Some(*md5),
            // The endpoint has reported it.
            Some(FdtMd5::Invalid(_)) | None => None,
        };
        // Some senders give the length of the object for that of the file.
        let is_object_length =
            encoding != ContentEncoding::Null && file.content_length == Some(length);
        let promise = Promise {
            location: file.content_location.clone(),
            content_length: file.content_length.filter(|_| !is_object_length),
            digests: Digests { md5, ..Digests::default() },
        };
        let longest = max_decoded(encoding, length);
        // Before room is made for it.
        if file.content_length.is_some_and(|length| length > longest) {
            return Err(promise.broken("its length is more than its object can hold"));
        }
        let index = match encoding {
            ContentEncoding::Null => {
                staging.add_version(named.target.clone(), length, FileAttributes::default())?
            }
            _ => staging.add_scratch(length)?,
        };
        let staged = stage(&staging, layout, Extents::whole_file(index, length))?;
        let opened = Arc::new(OpenObject::new(staged, vec![named.path.to_string()]));
        let (object, target) = (Arc::clone(&opened), named.target);
        let plain = PlainFile { object, index, target, version, expires, promise, encoding };
        self.files.insert(toi, plain);
        Ok(Opened::single(toi, opened))
    }

    /// Checks a complete file and gives it its name.
    pub(super) fn commit(&mut self, toi: Toi) -> Result<TargetReport, Error> {
        let (Some(file), Some(staging)) = (self.files.remove(&toi), self.staging.get()) else {
            return Ok(TargetReport::Committed { toi });
        };
        let (staging, staged) = (Arc::clone(staging), &file.object.staged);
        let index = match self.check(&staging, &file) {
            Ok(index) => index,
            Err(error) => {
                let report = unusable(toi, staged, error)?;
                file.discard(&staging)?;
                return Ok(report);
            }
        };
        if self.written.has_newer(&file.target, file.version) {
            staging.discard(index)?;
        } else {
            if let Some(state) = self.written.state_of(&file.target) {
                staging.allow_replacing_state(index, state)?;
            }
            staging.commit(&[index])?;
            self.note_written(toi, &file)?;
        }
        staging.forget(index);
        staged.remove_spool()?;
        if index != file.index {
            staging.remove_scratch(file.index)?;
            staging.forget(file.index);
        }
        Ok(TargetReport::Committed { toi })
    }

    /// Gives the only file of a session the name that the user has chosen, if there is one.
    fn rename(&mut self, named: NamedFile) -> Result<NamedFile, Error> {
        let Some(name) = &self.options.file_name else { return Ok(named) };
        let first = self.only_file.get_or_insert_with(|| named.path.clone());
        if *first != named.path {
            let [first, second] = [first.to_string(), named.path.to_string()];
            return Err(TransferError::SecondFile { first, second }.into());
        }
        let target = TargetName::new(&[name.as_encoded_bytes()]).map_err(StagingError::from)?;
        Ok(NamedFile { target, ..named })
    }

    /// Deletes what tables do not name any more, of what this session has written.
    pub(super) fn expire(&mut self, expired: &Expired) {
        for path in &expired.paths {
            // The name of a file that was refused may be none.
            if let Ok(named) = SessionStaging::name_of(path) {
                self.delete(&named.target);
            }
        }
        if expired.earlier {
            self.delete_unnamed();
        }
    }

    /// Deletes the files of earlier runs that no table of this run names.
    fn delete_unnamed(&mut self) {
        let unix_seconds = milliseconds_since_1970() / 1_000;
        for name in self.written.unnamed(unix_seconds) {
            self.delete(&name);
        }
    }

    /// Deletes a file, if it is as it was written.
    fn delete(&mut self, name: &TargetName) {
        let Some(own) = self.written.forget(name) else { return };
        let deleted = match self.staging.state_of(name) {
            Ok(found) if found == Some(own) => self.staging.delete(name),
            Ok(_) => return,
            Err(error) => Err(error),
        };
        let report = match deleted {
            Ok(()) => {
                TargetReport::Deleted { name: String::from_utf8_lossy(name.as_bytes()).into() }
            }
            Err(_) if self.not_deleted >= MAX_NOT_DELETED => return,
            Err(error) => {
                self.not_deleted += 1;
                TargetReport::ItemFailed { error }
            }
        };
        // The driver has dropped its end when the reception is over.
        let _ = self.reports.send(report);
    }

    /// Rejects a name that is taken, unless this reception has written what has it.
    fn check_free(&self, named: &NamedFile) -> Result<(), Error> {
        let own = self.written.state_of(&named.target);
        if own.is_some() && self.staging.state_of(&named.target)? == own {
            return Ok(());
        }
        self.staging.check_free(named)
    }

    /// Whether a file that is here already is the one of the table, as far as the table says.
    /// Reports it.
    fn is_kept(&mut self, opening: &FileOpening<'_>, named: &NamedFile) -> Result<bool, Error> {
        let &FileOpening { toi, file, layout, .. } = opening;
        let Some(state) = self.staging.state_of(&named.target)? else { return Ok(false) };
        if self.written.is_of_this_run(&named.target) {
            // What it has written is updated.
            return Ok(false);
        }
        let compared = match &file.content_md5 {
            Some(FdtMd5::Digest(md5)) => {
                let of_object = layout.oti().transfer_length;
                let is_encoded = file.content_encoding.is_some();
                let length = file.content_length.or((!is_encoded).then_some(of_object));
                if length.is_some_and(|length| length != state.size)
                    || self.md5_of(named, state)? != Some(*md5)
                {
                    return Ok(false);
                }
                true
            }
            Some(FdtMd5::Invalid(_)) | None => false,
        };
        let name = file.content_location.clone();
        // The driver has dropped its end when the reception is over.
        let _ = self.reports.send(TargetReport::Kept { toi, name, compared });
        Ok(true)
    }

    /// The MD5 of an existing file in this state. It is read once, however many tables name it.
    fn md5_of(&mut self, named: &NamedFile, state: Identity) -> Result<Option<[u8; 16]>, Error> {
        if let Some(&(known, md5)) = self.existing.get(&named.target)
            && known == state
        {
            return Ok(Some(md5));
        }
        let md5 = self.staging.md5_of(named, state.size, &self.abandoned)?;
        if let Some(md5) = md5 {
            if self.existing.len() >= MAX_EXISTING {
                self.existing.pop_first();
            }
            self.existing.insert(named.target.clone(), (state, md5));
        }
        Ok(md5)
    }

    fn note_written(&mut self, toi: Toi, file: &PlainFile) -> Result<(), Error> {
        // Another program may have removed it.
        let Some(state) = self.staging.state_of(&file.target)? else { return Ok(()) };
        let (target, expires) = (file.target.clone(), file.expires);
        let is_update = self.written.note(target, file.version, state, expires);
        if let Some(remembered) = &mut self.remembered
            && let Err(error) = remembered.note(&file.target, (&state, expires), &self.written)
        {
            // The file is there. A later run does not replace it.
            tracing::warn!(%error, "not remembered");
        }
        if is_update {
            let name = file.promise.location.clone();
            // The driver has dropped its end when the reception is over.
            let _ = self.reports.send(TargetReport::Updated { toi, name });
        }
        Ok(())
    }

    /// Frees what was stored of a file.
    pub(super) fn drop_object(&mut self, toi: Toi) {
        if let (Some(file), Some(staging)) = (self.files.remove(&toi), self.staging.get()) {
            // What cannot be removed now is removed with the staging directory.
            let _ = file.discard(staging);
        }
    }

    /// Checks the bytes of a complete file. Returns the staged file that has them, decompressed.
    fn check(&self, staging: &Staging, file: &PlainFile) -> Result<FileIndex, Error> {
        let staged = &file.object.staged;
        if file.encoding != ContentEncoding::Null {
            return self.decompress(staging, file);
        }
        let mut check = file.promise.digests.check();
        for sbn in (0..staged.layout().block_count()).map(Sbn) {
            staged.for_each_chunk_of_block(sbn, |bytes| check.update(bytes))?;
        }
        file.promise.verify(check)?;
        Ok(file.index)
    }

    /// Decompresses an object into a new file, and checks it.
    fn decompress(&self, staging: &Staging, file: &PlainFile) -> Result<FileIndex, Error> {
        let PlainFile { promise, encoding, target, .. } = file;
        let (object, encoding) = (&file.object.staged, *encoding);
        let decode = |output: &mut dyn Write, longest| {
            decode(encoding, ObjectReader::new(object, 0, None), output, longest)
                .map_err(|error| undecodable(error, |what| promise.broken(what)))
        };
        let length = match promise.content_length {
            Some(length) => length,
            // Decompressed twice, first to learn the length: a full disk is noticed beforehand.
            None => decode(&mut io::sink(), self.options.max_bytes)?,
        };
        let index = staging.add_version(target.clone(), length, FileAttributes::default())?;
        let mut writer = FileWriter::new(staging, index, 0, promise.digests.check());
        let checked =
            decode(&mut writer, length).and_then(|_| match promise.verify(writer.check) {
                Err(error) if !promise.is_md5_of(object)? => Err(error),
                Err(_) | Ok(()) => Ok(index),
            });
        if checked.is_err() {
            staging.discard(index)?;
        }
        checked
    }

    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.staging.finish()?;
        if self.options.deletes_at_end {
            self.delete_unnamed();
        }
        match &self.unselected {
            Some(names) if !names.is_empty() && !self.options.remembers => {
                let (label, names) = ("the table".to_owned(), names.join(", "));
                Err(TransferError::NothingSelected { label, names }.into())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn discard(&mut self) {
        self.staging.discard();
    }
}

impl PlainFile {
    /// Removes what was stored of it.
    fn discard(&self, staging: &Staging) -> Result<(), Error> {
        staging.discard(self.index)?;
        Ok(self.object.staged.remove_spool()?)
    }
}

impl Promise {
    fn verify(&self, check: DigestCheck) -> Result<(), Error> {
        if self.content_length.is_some_and(|length| length != check.bytes()) {
            return Err(self.broken("its length is not what the file delivery table says"));
        }
        check.finish().map_err(|what| self.broken(what))
    }

    /// Whether the MD5 is that of the encoded object: HTTP defines Content-MD5 so (RFC 2616,
    /// section 14.15), and some senders follow it.
    fn is_md5_of(&self, object: &StagedObject) -> Result<bool, Error> {
        let mut check = self.digests.check();
        for sbn in (0..object.layout().block_count()).map(Sbn) {
            object.for_each_chunk_of_block(sbn, |bytes| check.update(bytes))?;
        }
        Ok(self.digests.md5.is_some() && check.finish().is_ok())
    }

    fn broken(&self, what: impl Into<String>) -> Error {
        TransferError::Content { name: self.location.clone(), what: what.into() }.into()
    }
}
