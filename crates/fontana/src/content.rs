//! The content of a sender: files, directories and links, cut into objects, hashed, and described.

use crate::error::{Error, SetupError};
use crate::geometry::{self, Code};
use compress::{CompressedFiles, Original};
use fontana_fec::{Oti, Sbn};
use fontana_net::ThreadError;
use fontana_net::thread::spawn_scoped;
use fontana_proto::BlockId;
use fontana_store::{FileIndex, Filter, ObjectSource, ScratchFile, SourceBytes, SourceError};
use fontana_wire::{
    ContentEncoding, Entry, FileRun, Manifest, ManifestError, ManifestObject, RelativePath, Toi,
};
use hashing::HashedObjects;
use lost::Lost;
use md5::{Digest, Md5};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

mod bundles;
mod compress;
mod fcast;
mod growing;
mod hashing;
mod known;
mod lost;
mod objects;
mod table;
mod tree;
mod verifier;
mod version;

pub(crate) use fcast::MAX_OBJECTS;
pub(crate) use growing::GrowingBase;
use growing::GrowingTable;
pub use tree::Undescribed;
pub(crate) use verifier::BlockVerifier;
pub(crate) use version::{LostFile, VersionBase, VersionFiles};

/// Options of the content.
pub(crate) struct ContentOptions<'a> {
    pub(crate) files: &'a [PathBuf],
    /// Files whose bytes are in memory, with their names.
    pub(crate) in_memory: &'a [(Vec<u8>, SourceBytes)],
    /// The parts of the only file that are objects of their own, in this order. What is in none of
    /// them is one more, at the end. Empty: the file is not cut.
    pub(crate) parts: &'a [Range<u64>],
    /// The name that receivers give the only file; its own name if `None`.
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) filter: &'a Filter,
    pub(crate) code: Code,
    pub(crate) symbol_size: u16,
    pub(crate) block_symbols: u32,
    pub(crate) version: u64,
    /// Compression of files; only for plain FLUTE.
    pub(crate) content_encoding: ContentEncoding,
    /// For plain FLUTE and FCAST: only files are sent, and no object contains several files.
    pub(crate) plain: bool,
    /// Whether a publisher signs the content: its objects then have numbers that follow from their
    /// bytes.
    pub(crate) signed: bool,
    /// Whether what is read later of a file that was written to is compared with hashes.
    pub(crate) verifies: bool,
    /// Where objects of several files are copied while they are hashed, as far as it has room, so
    /// that one file that changes later does not cost the others.
    pub(crate) copies: Option<&'a Arc<ScratchFile>>,
    pub(crate) workers: usize,
}

/// Content that is ready to be sent.
pub(crate) struct Content {
    pub(crate) manifest: Manifest,
    pub(crate) objects: Vec<ContentObject>,
    /// The blocks that receivers of the publisher's previous version lack.
    pub(crate) first: Option<Vec<BlockId>>,
    /// Verifiers of the objects whose files may be written to.
    pub(crate) verifiers: BTreeMap<Toi, Arc<BlockVerifier>>,
    /// The errors of files and directories that are not in the content.
    pub(crate) left_out: Vec<Arc<Error>>,
    /// Names of our own that are not in it.
    pub(crate) skipped: u64,
    /// The parts of a file delivery table that only plain FLUTE needs.
    plain: Option<Plain>,
    /// Unnamed files that hold compressed ones, to be open as long as the session lasts.
    pub(crate) spooled: Vec<File>,
    pub(crate) undescribed: Undescribed,
}

struct Plain {
    /// The parameters of empty files in the table.
    empty: Oti,
    md5: BTreeMap<RelativePath, [u8; 16]>,
    /// The encoding of files that became shorter, and their lengths before.
    encoding: ContentEncoding,
    lengths: BTreeMap<RelativePath, u64>,
    /// Present if later tables follow.
    growing: Option<GrowingTable>,
}

/// An object of the content.
#[derive(Clone)]
pub(crate) struct ContentObject {
    pub(crate) toi: Toi,
    pub(crate) source: Arc<ObjectSource>,
}

impl Content {
    fn new(manifest: Manifest, objects: Vec<ContentObject>) -> Self {
        Self {
            manifest,
            objects,
            first: None,
            verifiers: BTreeMap::new(),
            left_out: Vec::new(),
            skipped: 0,
            undescribed: Undescribed::default(),
            plain: None,
            spooled: Vec::new(),
        }
    }

    /// The content whose blocks are compared with the manifest's hashes after their files were
    /// written to; those of objects that are `unread`, also before.
    fn verified(mut self, unread: impl Fn(Toi) -> bool) -> Self {
        let hashes = self.manifest.objects().iter();
        let hashes: BTreeMap<_, _> =
            hashes.map(|object| (Toi::from(object.toi), &object.block_hashes)).collect();
        let verifiers = self.objects.iter().filter_map(|object| {
            let hashes = hashes.get(&object.toi)?.as_slice().into();
            let verifier = BlockVerifier::new(Arc::clone(&object.source), hashes);
            let verifier = if unread(object.toi) { verifier.unread() } else { verifier };
            Some((object.toi, Arc::new(verifier)))
        });
        self.verifiers = verifiers.collect();
        self
    }

    /// Examines and hashes the files: every byte is read once, for plain FLUTE twice. Files that
    /// cannot be read as they are at first are left out.
    ///
    /// # Errors
    /// Nothing can be sent, or not in this way.
    pub(crate) fn examine(options: &ContentOptions<'_>) -> Result<Self, Error> {
        let mut scanned = tree::scan(options)?;
        let mut lost = Lost::default();
        let compressed = match options.content_encoding {
            ContentEncoding::Null => CompressedFiles::default(),
            encoding => scanned.compress(encoding, &mut lost)?,
        };
        let (label, undescribed) = (label(&scanned.roots), scanned.undescribed);
        let sources = match options.verifies {
            true => scanned.sources.allowing_growth(),
            false => scanned.sources,
        };
        let sources = Arc::new(sources);
        let runs = objects::runs(options, &sources, &lost);
        let HashedObjects { mut objects, mut hashes, runs } =
            hashing::objects(options, &sources, runs, &mut lost)?;
        if options.signed {
            let described = objects.iter().zip(&hashes);
            let described = described.map(|(o, hashes)| (o.source.layout().oti(), &hashes[..]));
            let tois = version::content_tois(&described.collect::<Vec<_>>(), &mut BTreeSet::new());
            objects.iter_mut().zip(tois).for_each(|(object, toi)| object.toi = toi);
        }
        let runs = of_objects(objects.iter().map(|object| object.toi).zip(runs));
        let plain = match options.plain {
            true => {
                let originals = &compressed.originals;
                let plain = plain(options, &scanned.files, originals, &objects, &mut lost);
                let is_whole = |object: &ContentObject| !lost.has_any_of(&object.source);
                let kept = objects.into_iter().zip(hashes).filter(|(object, _)| is_whole(object));
                (objects, hashes) = kept.unzip();
                Some(plain)
            }
            false => None,
        };
        let mut segments = objects::segments(&sources, &objects)?;
        let mut entries = scanned.others;
        for (path, index) in scanned.files {
            if lost.has(index) {
                continue;
            }
            let source = sources.file(index).map_err(SourceError::from)?;
            let mut file = tree::file_entry(path, source);
            file.segments = segments.remove(&index).unwrap_or_default();
            entries.push(Entry::File(file));
        }
        let left_out: Vec<_> = scanned.left_out.into_iter().chain(lost.into_errors()).collect();
        let is_content = |entry: &Entry| !matches!(entry, Entry::Directory(_));
        if !entries.iter().any(is_content) && !left_out.is_empty() {
            return left_out.into_iter().next().map_or(Err(SetupError::NothingToSend.into()), Err);
        }
        let described = objects
            .iter()
            .zip(hashes)
            .map(|(object, block_hashes)| ManifestObject {
                toi: object.toi.0 as u32,
                oti: object.source.layout().oti(),
                block_hashes,
            })
            .collect();
        let manifest = Manifest::new(options.version, label, described, entries)
            .and_then(|manifest| manifest.with_runs(runs))
            .map_err(unsuitable)?;
        let content = Self {
            plain,
            spooled: compressed.spooled,
            left_out: left_out.into_iter().map(Arc::new).collect(),
            skipped: scanned.skipped,
            undescribed,
            ..Self::new(manifest, objects)
        };
        Ok(if options.verifies { content.verified(|_| false) } else { content })
    }

    /// Source symbols of all objects.
    pub(crate) fn source_symbols(&self) -> u64 {
        let layouts = self.objects.iter().map(|object| object.source.layout());
        layouts.map(|layout| layout.total_source_symbols()).sum()
    }
}

/// What a file delivery table says of the files. Those that cannot be read again are lost.
fn plain(
    options: &ContentOptions<'_>,
    files: &[(RelativePath, FileIndex)],
    originals: &BTreeMap<FileIndex, Original>,
    objects: &[ContentObject],
    lost: &mut Lost,
) -> Plain {
    let empty = geometry::object_oti(options.code, 0, options.symbol_size, 1);
    let mut by_file = BTreeMap::new();
    for object in objects {
        for extent in object.source.extents().as_slice() {
            by_file.insert(extent.file, object);
        }
    }
    let (mut md5, mut lengths) = (BTreeMap::new(), BTreeMap::new());
    for (path, index) in files.iter().filter(|(_, index)| !lost.has(*index)).collect::<Vec<_>>() {
        let digest = match originals.get(index) {
            Some(original) => {
                lengths.insert(path.clone(), original.length);
                original.md5
            }
            None => match md5_of(by_file.get(index).copied()) {
                Ok(digest) => digest,
                Err(error) => {
                    lost.add(*index, error);
                    continue;
                }
            },
        };
        md5.insert(path.clone(), digest);
    }
    Plain { empty, md5, encoding: options.content_encoding, lengths, growing: None }
}

/// The runs of objects, without those that have none.
fn of_objects(runs: impl IntoIterator<Item = (Toi, Vec<FileRun>)>) -> BTreeMap<u32, Vec<FileRun>> {
    let runs = runs.into_iter().filter(|(_, runs)| !runs.is_empty());
    runs.map(|(toi, runs)| (toi.0 as u32, runs)).collect()
}

/// A label for people: the only name, or the first name and the number of the others.
fn label(names: &[Vec<u8>]) -> String {
    let name =
        names.first().map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned());
    let more = match names.len() {
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
    Error::system("describe these files in one manifest")(std::io::Error::other(error))
}

/// The results of `work` for the numbers below `count`, in their order, on `workers` threads; or
/// its first error.
fn in_parallel<T: Send>(
    count: usize,
    workers: usize,
    work: impl Fn(usize) -> Result<Option<T>, SourceError> + Sync,
) -> Result<Vec<Option<T>>, Error> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
    let failed = Mutex::new(None);
    let run = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            match work(number) {
                Ok(result) => {
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(slot) = done.get_mut(number) {
                        *slot = result;
                    }
                }
                Err(error) => {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, count.max(1)) {
            // The threads that have been started find no number left.
            let no_more = |_: &ThreadError| next.store(count, Ordering::Relaxed);
            spawn_scoped(scope, "hash", run).inspect_err(no_more)?;
        }
        Ok::<(), ThreadError>(())
    })?;
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error.into()),
        None => Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// The MD5 digest of a file that is an object, or is empty. Reads every byte again.
fn md5_of(object: Option<&ContentObject>) -> Result<[u8; 16], Error> {
    let mut md5 = Md5::new();
    if let Some(object) = object {
        for sbn in (0..object.source.layout().block_count()).map(Sbn) {
            object.source.for_each_chunk_of_block(sbn, |bytes| md5.update(bytes))?;
        }
    }
    Ok(md5.finalize().into())
}
