//! What is sent: files, cut into objects, hashed, and described.

use crate::Error;
use crate::geometry::{self, Code};
use fontana_fec::{Oti, Sbn};
use fontana_store::{Extent, Extents, FileIndex, ObjectSource, SourceFile, SourceFiles};
use fontana_wire::{
    BlockHasher, Entry, Fdt, FdtFile, FileEntry, Hash, Manifest, ManifestError, ManifestObject,
    Metadata, NtpSeconds, RelativePath, Segment, Toi, emit_content_location,
};
use md5::{Digest, Md5};
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How content is examined.
pub(crate) struct ContentOptions<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) code: Code,
    pub(crate) symbol_size: u16,
    pub(crate) block_symbols: u32,
    pub(crate) version: u64,
    /// For plain FLUTE receivers: one object per file, and the MD5 that they know.
    pub(crate) plain: bool,
    pub(crate) workers: usize,
}

/// Content that is ready to be sent.
pub(crate) struct Content {
    pub(crate) manifest: Manifest,
    pub(crate) objects: Vec<ContentObject>,
    files: Vec<ContentFile>,
    /// What a table for plain FLUTE receivers says of an empty file; `None` if it is for others.
    empty: Option<Oti>,
}

/// One object of it.
pub(crate) struct ContentObject {
    pub(crate) toi: Toi,
    pub(crate) source: Arc<ObjectSource>,
}

struct ContentFile {
    path: RelativePath,
    /// Its objects, as indices, in the order of the file; none if it is empty.
    objects: Range<usize>,
    md5: Option<[u8; 16]>,
}

/// Content type of a fragment of a file: not a file that another program could use.
const FRAGMENT_TYPE: &str = "application/vnd.fontana.fragment";

impl Content {
    /// Examines and hashes the files: every byte is read once, for plain FLUTE twice.
    pub(crate) fn examine(options: &ContentOptions<'_>) -> Result<Self, Error> {
        let mut sources = SourceFiles::default();
        let mut names: BTreeMap<RelativePath, PathBuf> = BTreeMap::new();
        let mut paths = Vec::new();
        for path in options.files {
            sources.add(path)?;
            let name = relative_path(path)?;
            if let Some(first) = names.insert(name.clone(), path.clone()) {
                return Err(Error::SameName { first, second: path.clone() });
            }
            paths.push(name);
        }
        let sources = Arc::new(sources);
        let mut objects = Vec::new();
        let mut files = Vec::new();
        let mut entries = Vec::new();
        for (index, (path, source)) in paths.into_iter().zip(sources.as_slice()).enumerate() {
            let index = FileIndex(index as u32);
            let first = objects.len();
            let of_file = fragments(options, &sources, index, source.size(), first)?;
            let md5 = options.plain.then(|| md5_of(&of_file)).transpose()?;
            entries.push(Entry::File(file_entry(&path, source, &of_file)));
            files.push(ContentFile { path, objects: first..first + of_file.len(), md5 });
            objects.extend(of_file);
        }
        let hashes = hash_blocks(&objects, options.workers)?;
        let described = objects
            .iter()
            .zip(hashes)
            .map(|(object, block_hashes)| ManifestObject {
                toi: object.toi.0 as u32,
                oti: object.source.layout().oti(),
                block_hashes,
            })
            .collect();
        let manifest = Manifest::new(options.version, label(&files), described, entries)
            .map_err(unsuitable)?;
        let empty =
            options.plain.then(|| geometry::object_oti(options.code, 0, options.symbol_size, 1));
        Ok(Self { manifest, objects, files, empty })
    }

    /// The table that tells FLUTE receivers what is here. A file in several fragments is not
    /// something they could use; its fragments are listed so that they know what passes by.
    pub(crate) fn file_delivery_table(&self, expires_since_epoch: Duration) -> Fdt {
        let mut files = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            let location = emit_content_location(&file.path);
            match self.objects.get(file.objects.clone()).unwrap_or_default() {
                [] => files.extend(self.empty.map(|oti| FdtFile {
                    content_md5: file.md5,
                    ..described(empty_toi(index), oti, location, None)
                })),
                [object] => files.push(FdtFile {
                    content_md5: file.md5,
                    ..described(object.toi, object.oti(), location, None)
                }),
                fragments => files.extend(fragments.iter().enumerate().map(|(number, object)| {
                    let location = format!("{location}.fragment{number}");
                    described(object.toi, object.oti(), location, Some(FRAGMENT_TYPE))
                })),
            }
        }
        let expires = NtpSeconds::from_unix_seconds(expires_since_epoch.as_secs());
        Fdt { expires, complete: true, files }
    }

    /// The objects of empty files, if there are any: only plain FLUTE has them.
    pub(crate) fn empty_files(&self) -> Option<(Vec<Toi>, Oti)> {
        let is_empty = |(_, file): &(usize, &ContentFile)| file.objects.is_empty();
        let empty = self.files.iter().enumerate().filter(is_empty);
        let tois: Vec<_> = empty.map(|(index, _)| empty_toi(index)).collect();
        self.empty.filter(|_| !tois.is_empty()).map(|oti| (tois, oti))
    }
}

impl ContentObject {
    fn oti(&self) -> Oti {
        self.source.layout().oti()
    }
}

/// TOIs of empty files in plain FLUTE sessions start here, far from the others.
const EMPTY_FILES: u32 = 0x8000_0000;

/// The TOI of the empty file with this index.
fn empty_toi(index: usize) -> Toi {
    Toi(u128::from(EMPTY_FILES) + index as u128)
}

fn described(toi: Toi, oti: Oti, location: String, content_type: Option<&str>) -> FdtFile {
    FdtFile {
        toi,
        content_location: location,
        content_length: Some(oti.transfer_length),
        transfer_length: Some(oti.transfer_length),
        content_type: content_type.map(str::to_owned),
        fec_encoding_id: Some(oti.scheme.encoding_id()),
        oti: Some(oti),
        ..FdtFile::default()
    }
}

/// The name that a file has at the receivers: its last component.
fn relative_path(path: &std::path::Path) -> Result<RelativePath, Error> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    RelativePath::new(name.as_bytes())
        .map_err(|error| Error::Name { name: path.to_string_lossy().into_owned(), error })
}

/// The objects of one file: one, or as many as its length needs; none for an empty file.
fn fragments(
    options: &ContentOptions<'_>,
    sources: &Arc<SourceFiles>,
    file: FileIndex,
    length: u64,
    objects_before: usize,
) -> Result<Vec<ContentObject>, Error> {
    let largest = geometry::max_object_size(options.code, options.symbol_size);
    let count = length.div_ceil(largest);
    if options.plain && count > 1 {
        let allowed =
            "one that a single object holds: raise the symbol size, or send without FLUTE";
        return Err(Error::Range { what: "the length of a file", actual: length, allowed });
    }
    // Equal fragments, on whole symbols: none is much shorter than the others.
    let symbols = length.div_ceil(u64::from(options.symbol_size)).div_ceil(count.max(1));
    let size = symbols * u64::from(options.symbol_size);
    (0..count)
        .map(|number| {
            let offset = number * size;
            let length = size.min(length - offset);
            let oti = geometry::object_oti(
                options.code,
                length,
                options.symbol_size,
                options.block_symbols,
            );
            let layout = oti.layout().map_err(fontana_proto::ControlError::from)?;
            let extents = Extents::new([Extent { file, offset, length }])
                .map_err(fontana_store::SourceError::from)?;
            let source = ObjectSource::new(Arc::clone(sources), layout, extents)
                .map_err(fontana_store::SourceError::from)?;
            // Content counts from 1 (0 is the file delivery table).
            let toi = Toi::from((objects_before as u64 + number + 1) as u32);
            Ok(ContentObject { toi, source: Arc::new(source) })
        })
        .collect()
}

fn file_entry(path: &RelativePath, source: &SourceFile, objects: &[ContentObject]) -> FileEntry {
    let modified = source.identity().modified;
    let metadata = Metadata {
        mode: source.mode() & Metadata::MAX_MODE,
        mtime_seconds: modified.seconds,
        mtime_nanoseconds: modified.nanoseconds,
    };
    let segments = objects
        .iter()
        .map(|object| Segment::Extent {
            toi: object.toi.0 as u32,
            object_offset: 0,
            length: object.source.extents().length(),
        })
        .collect();
    FileEntry { path: path.clone(), metadata, segments }
}

/// A name for people: the only file's, or the first one's and how many more there are.
fn label(files: &[ContentFile]) -> String {
    let name = files.first().map_or_else(String::new, |file| {
        String::from_utf8_lossy(file.path.as_bytes()).into_owned()
    });
    let more = match files.len() {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let mut room = Manifest::MAX_LABEL_SIZE - more.len();
    while !name.is_char_boundary(room.min(name.len())) {
        room -= 1;
    }
    format!("{}{more}", name.get(..room.min(name.len())).unwrap_or_default())
}

fn unsuitable(error: ManifestError) -> Error {
    Error::System {
        doing: "describe these files in one manifest",
        error: std::io::Error::other(error),
    }
}

/// The hash of every block of every object, on `workers` threads.
fn hash_blocks(objects: &[ContentObject], workers: usize) -> Result<Vec<Vec<Hash>>, Error> {
    let blocks: Vec<(usize, Sbn)> = objects
        .iter()
        .enumerate()
        .flat_map(|(index, o)| {
            (0..o.source.layout().block_count()).map(move |sbn| (index, Sbn(sbn)))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; blocks.len()]);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, blocks.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(object, sbn)) = blocks.get(number) else { return };
                    let Some(object) = objects.get(object) else { return };
                    let mut hasher = BlockHasher::new();
                    let read =
                        object.source.for_each_chunk_of_block(sbn, |bytes| hasher.update(bytes));
                    match read {
                        Ok(()) => {
                            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                            if let Some(slot) = done.get_mut(number) {
                                *slot = Some(hasher.finalize());
                            }
                        }
                        Err(error) => {
                            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                            failed.get_or_insert(error);
                            return;
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error.into());
    }
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut hashes = vec![Vec::new(); objects.len()];
    for ((object, _), hash) in blocks.into_iter().zip(done) {
        if let (Some(list), Some(hash)) = (hashes.get_mut(object), hash) {
            list.push(hash);
        }
    }
    Ok(hashes)
}

/// MD5 of a file: every byte is read once more.
fn md5_of(objects: &[ContentObject]) -> Result<[u8; 16], Error> {
    let mut md5 = Md5::new();
    for object in objects {
        for sbn in (0..object.source.layout().block_count()).map(Sbn) {
            object.source.for_each_chunk_of_block(sbn, |bytes| md5.update(bytes))?;
        }
    }
    Ok(md5.finalize().into())
}
