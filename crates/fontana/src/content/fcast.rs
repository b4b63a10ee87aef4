//! Files as FCAST objects (RFC 6968), which describe themselves. Long files are cut into slices.
//! Every slice, or file, is an object of a header and its bytes, independent of all others. A slice
//! has about the length of a source block, which costs nothing: a receiver has the slice when it
//! has the block, and can write it at once.

use super::hashing::hash_blocks;
use super::{Content, ContentObject, ContentOptions, in_parallel, label, tree, unsuitable};
use crate::error::{Error, SetupError};
use crate::geometry;
use fontana_proto::ControlError;
use fontana_store::{
    Descriptors, Extent, Extents, FileIndex, ObjectSource, SourceError, SourceFiles,
};
use fontana_wire::{
    CompoundHeader, CompoundMetadata, Entry, InternetChecksum, Manifest, ManifestObject,
    RelativePath, Segment, Slice, Toi, emit_content_location,
};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Largest number of objects of a session, descriptors included, which is a receiver's limit.
pub(crate) const MAX_OBJECTS: u64 = 100_000;
/// Bytes of a block that a slice leaves for its header: most headers have 210 bytes and a name.
const HEADER_ROOM: u64 = 512;
/// Bytes that are read at a time.
const CHUNK: usize = 256 << 10;

/// The data of one object.
struct Part<'a> {
    path: &'a RelativePath,
    /// The position of the bytes; none for an empty file.
    extent: Extent,
    /// Bytes of the whole file.
    file_length: u64,
    /// The slice of the file; `None` if it is all of it.
    slice: Option<Slice>,
}

/// The result of one pass over the data.
struct Examined {
    sum: InternetChecksum,
    sha256: [u8; 32],
}

impl Content {
    /// Examines files, in slices of at most `slice_bytes`, or of about a source block if `None`.
    /// Reads every byte twice. Of directories, only the files are sent. Objects are numbered from
    /// `first_toi` on. `open`: the descriptors of all files of the session.
    pub(crate) fn compound(
        options: &ContentOptions<'_>,
        slice_bytes: Option<u64>,
        first_toi: u32,
        open: &Descriptors,
    ) -> Result<Self, Error> {
        let tree::Scanned { roots, mut sources, files, left_out, skipped, undescribed, .. } =
            tree::scan(options)?;
        sources = sources.sharing(open);
        let slice_bytes = slice_bytes.unwrap_or_else(|| default_slice(options));
        let parts = parts(&sources, &files, slice_bytes, first_toi)?;
        let examined = in_parallel(parts.len(), options.workers, |number| {
            parts.get(number).map(|part| examine(&sources, &part.extent)).transpose()
        })?;
        let headers: Vec<_> = parts
            .iter()
            .zip(examined.iter().flatten())
            .map(|(part, examined)| part.header(examined))
            .collect();
        let headers_file = sources.add_bytes("FCAST headers", headers.concat());
        let sources = Arc::new(sources);
        let mut objects = Vec::new();
        let mut at = 0;
        for ((part, header), number) in parts.iter().zip(&headers).zip(first_toi..) {
            let header = Extent { file: headers_file, offset: at, length: header.len() as u64 };
            at += header.length;
            let toi = Toi(number.into());
            objects.push(object(options, &sources, toi, [header, part.extent])?);
        }
        let manifest = describe(options, label(&roots), &sources, &files, &objects)?;
        let left_out = left_out.into_iter().map(Arc::new).collect();
        Ok(Self { left_out, skipped, undescribed, ..Self::new(manifest, objects) })
    }
}

/// The default length of a slice: about a block's bytes.
fn default_slice(options: &ContentOptions<'_>) -> u64 {
    let block = u64::from(options.block_symbols) * u64::from(options.symbol_size);
    // Blocks may be short for other reasons; a header in every one of them would cost too much.
    block.max(1 << 20) - HEADER_ROOM
}

/// Cuts files into slices of about equal length.
fn parts<'a>(
    sources: &SourceFiles,
    files: &'a [(RelativePath, FileIndex)],
    slice_bytes: u64,
    first_toi: u32,
) -> Result<Vec<Part<'a>>, Error> {
    let mut parts = Vec::new();
    for (path, file) in files {
        let (path, file) = (path, *file);
        let file_length = sources.file(file).map_err(SourceError::from)?.size();
        let count = file_length.div_ceil(slice_bytes.max(1)).max(1);
        // The descriptor also has a number.
        let total = u64::from(first_toi) + parts.len() as u64 + count;
        if total > MAX_OBJECTS {
            return Err(SetupError::Range {
                what: "the number of files and slices of files",
                actual: total,
                allowed: "at most 99999: make slices longer, or send in several sessions",
            }
            .into());
        }
        let length = file_length.div_ceil(count);
        for index in 0..count {
            let offset = index * length;
            let extent = Extent { file, offset, length: length.min(file_length - offset) };
            let slice = Slice { count: count as u32, index: index as u32, offset };
            let slice = (count > 1).then_some(slice);
            parts.push(Part { path, extent, file_length, slice });
        }
    }
    Ok(parts)
}

fn examine(sources: &SourceFiles, extent: &Extent) -> Result<Examined, SourceError> {
    let (mut sum, mut sha256) = (InternetChecksum::default(), Sha256::new());
    let mut chunk = vec![0; CHUNK];
    let end = extent.offset + extent.length;
    let mut at = extent.offset;
    while at < end {
        let length = (end - at).min(CHUNK as u64) as usize;
        let bytes = chunk.get_mut(..length).unwrap_or_default();
        sources.read_exact_at(extent.file, at, bytes)?;
        sum.add(bytes);
        sha256.update(bytes);
        at += length as u64;
    }
    sources.check_unchanged(extent.file)?;
    Ok(Examined { sum, sha256: sha256.finalize().into() })
}

impl Part<'_> {
    fn header(&self, examined: &Examined) -> Vec<u8> {
        let metadata = CompoundMetadata {
            content_location: Some(emit_content_location(self.path)),
            content_length: Some(self.file_length),
            sha256: Some(examined.sha256),
            slice: self.slice,
            ..CompoundMetadata::default()
        };
        CompoundHeader::Object(metadata).emit(examined.sum, self.extent.length)
    }
}

fn object(
    options: &ContentOptions<'_>,
    sources: &Arc<SourceFiles>,
    toi: Toi,
    extents: [Extent; 2],
) -> Result<ContentObject, Error> {
    let ContentOptions { code, symbol_size, block_symbols, .. } = *options;
    let length = extents.iter().map(|extent| extent.length).sum();
    if length > geometry::max_object_size(code, symbol_size) {
        return Err(SetupError::Range {
            what: "the length of a slice",
            actual: length,
            allowed: "one that a single object holds: make slices shorter",
        }
        .into());
    }
    let oti = geometry::object_oti(code, length, symbol_size, block_symbols);
    let layout = oti.layout().map_err(ControlError::from)?;
    let extents = Extents::new(extents).map_err(SourceError::from)?;
    let source =
        ObjectSource::new(Arc::clone(sources), layout, extents).map_err(SourceError::from)?;
    Ok(ContentObject { toi, source: Arc::new(source) })
}

/// A description of the content for the sender's application. It is not sent.
fn describe(
    options: &ContentOptions<'_>,
    label: String,
    sources: &SourceFiles,
    files: &[(RelativePath, FileIndex)],
    objects: &[ContentObject],
) -> Result<Manifest, Error> {
    let mut entries = Vec::new();
    let mut rest = objects;
    for (path, index) in files {
        let source = sources.file(*index).map_err(SourceError::from)?;
        let mut file = tree::file_entry(path.clone(), source);
        let is_of_file = |object: &&ContentObject| {
            let extents = object.source.extents().as_slice();
            extents.last().is_some_and(|extent| extent.file == *index)
        };
        let count = rest.iter().take_while(is_of_file).count();
        // An empty file is an object of a header without data.
        let (own, others) = rest.split_at_checked(count.max(1)).unwrap_or_default();
        rest = others;
        for object in own {
            if let [header, data] = *object.source.extents().as_slice() {
                let toi = object.toi.0 as u32;
                let (object_offset, length) = (header.length, data.length);
                file.segments.push(Segment::Extent { toi, object_offset, length });
            }
        }
        entries.push(Entry::File(file));
    }
    let sources_of = objects.iter().map(|o| &*o.source);
    let hashes = hash_blocks(sources_of, options.workers, |_| false)?.complete()?;
    let described = objects
        .iter()
        .zip(hashes)
        .map(|(object, block_hashes)| ManifestObject {
            toi: object.toi.0 as u32,
            oti: object.source.layout().oti(),
            block_hashes,
        })
        .collect();
    Manifest::new(options.version, label, described, entries).map_err(unsuitable)
}
