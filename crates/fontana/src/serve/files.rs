//! The files of the content, as a web server gives them out: by their names in the manifest, and
//! never by a path of the host.

use crate::content::{BlockVerifier, ContentObject};
use crate::error::Error;
use crate::mirrored::MirroredContent;
use crate::receive::HeldContent;
use fontana_fec::Sbn;
use fontana_store::{ObjectSource, SourceError};
use fontana_wire::{FileEntry, Hash, HeldIndex, Manifest, Segment};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The files of a manifest.
pub(super) struct ServedFiles {
    files: BTreeMap<Vec<u8>, Arc<FileEntry>>,
    bytes: ServedBytes,
    hash: Hash,
}

/// Where the bytes of the files are.
enum ServedBytes {
    /// In files that are complete.
    Objects(BTreeMap<u32, ServedObject>),
    /// They are being received.
    Held(HeldContent),
}

/// The bytes of an object.
struct ServedObject {
    source: Arc<ObjectSource>,
    /// If its files were not read before.
    verifier: Option<Arc<BlockVerifier>>,
}

impl ServedObject {
    /// Reads a part that lies in the object, after its blocks were compared with their hashes.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), SourceError> {
        let end = offset + out.len() as u64;
        if let Some(verifier) = &self.verifier {
            let layout = self.source.layout();
            for sbn in (0..layout.block_count()).map(Sbn) {
                let overlaps = |block: Range<u64>| block.start < end && offset < block.end;
                if layout.block_range(sbn).is_some_and(overlaps) {
                    verifier.check_once(sbn)?;
                }
            }
        }
        self.source.read_unchanged_at(offset, out)
    }
}

impl ServedFiles {
    pub(super) fn new(content: &MirroredContent) -> Self {
        let object = |object: &ContentObject| {
            let verifier = content.verifiers.get(&object.toi).cloned();
            let served = ServedObject { source: Arc::clone(&object.source), verifier };
            Some((u32::try_from(object.toi.0).ok()?, served))
        };
        let objects = content.objects.iter().filter_map(object).collect();
        Self::of(content.manifest(), content.hash(), ServedBytes::Objects(objects))
    }

    /// The files of content that is being received.
    pub(super) fn held(manifest: &Manifest, hash: Hash, held: HeldContent) -> Self {
        Self::of(manifest, hash, ServedBytes::Held(held))
    }

    fn of(manifest: &Manifest, hash: Hash, bytes: ServedBytes) -> Self {
        let entry = |file: &FileEntry| (file.path.as_bytes().to_vec(), Arc::new(file.clone()));
        Self { files: manifest.files().map(entry).collect(), bytes, hash }
    }

    /// What of the content is there; `None`: all of it.
    pub(super) fn index(&self) -> Option<HeldIndex> {
        match &self.bytes {
            ServedBytes::Objects(_) => None,
            ServedBytes::Held(held) => held.index(),
        }
    }

    /// The number of blocks that are there; `None`: all.
    pub(super) fn blocks(&self) -> Option<u64> {
        match &self.bytes {
            ServedBytes::Objects(_) => None,
            ServedBytes::Held(held) => Some(held.blocks()),
        }
    }

    /// Whether a range of a file is there.
    pub(super) fn has(&self, file: &FileEntry, range: &Range<u64>) -> bool {
        let ServedBytes::Held(held) = &self.bytes else { return true };
        parts(file, range).all(|part| held.has(part.toi, &part.in_object))
    }

    /// The file with this path of a URL, without the slash at its beginning.
    pub(super) fn find(&self, path: &str) -> Option<Arc<FileEntry>> {
        self.files.get(&decode_path(path)?).cloned()
    }

    /// A strong validator of a file: it changes with the content.
    pub(super) fn etag(&self, file: &FileEntry) -> String {
        let name = blake3::hash(file.path.as_bytes()).to_hex();
        format!("\"{}-{}\"", self.hash, name.get(..16).unwrap_or_default())
    }

    /// Reads a range of a file, which lies in it.
    ///
    /// # Errors
    /// The file cannot be read, or has changed.
    pub(super) fn read(&self, file: &FileEntry, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; (range.end - range.start) as usize];
        for FilePart { toi, in_object, at } in parts(file, &range) {
            let length = (in_object.end - in_object.start) as usize;
            let Some(part) = out.get_mut(at as usize..at as usize + length) else { continue };
            match &self.bytes {
                ServedBytes::Objects(objects) => {
                    if let Some(object) = objects.get(&toi) {
                        object.read(in_object.start, part)?;
                    }
                }
                ServedBytes::Held(held) => {
                    held.read(file, range.start + at, (toi, in_object.start), part)?;
                }
            }
        }
        Ok(out)
    }
}

/// Bytes of a range of a file that are in one object.
struct FilePart {
    toi: u32,
    in_object: Range<u64>,
    /// Their offset in the range.
    at: u64,
}

/// The parts of a range of a file. What lies between them is a hole.
fn parts(file: &FileEntry, range: &Range<u64>) -> impl Iterator<Item = FilePart> {
    file.placed_segments().filter_map(move |placed| {
        let (start, end) = (placed.range.start.max(range.start), placed.range.end.min(range.end));
        let Segment::Extent { toi, object_offset, .. } = placed.segment else { return None };
        let first = object_offset + start.saturating_sub(placed.range.start);
        let part =
            || FilePart { toi, in_object: first..first + (end - start), at: start - range.start };
        (start < end).then(part)
    })
}

/// The bytes of a percent-encoded path (RFC 3986, section 2.1). `None` if it is not one.
fn decode_path(path: &str) -> Option<Vec<u8>> {
    let (mut out, mut bytes) = (Vec::with_capacity(path.len()), path.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                out.push((high << 4 | low) as u8);
            }
            _ => out.push(byte),
        }
    }
    Some(out)
}

/// What a request wants of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RangeWanted {
    /// All of it: there is no range, or one that a server may ignore (RFC 9110, section 14.2).
    All,
    Part(Range<u64>),
    /// No byte of the range exists.
    Unsatisfiable,
}

/// Interprets a `Range` field, of which one range of bytes is known.
pub(super) fn parse_range(field: &str, length: u64) -> RangeWanted {
    let parsed = || {
        let (first, last) = field.strip_prefix("bytes=")?.trim().split_once('-')?;
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            // More than 2^64 is beyond every file.
            is_number.then(|| text.parse().unwrap_or(u64::MAX))
        };
        if first.is_empty() {
            let count = number(last)?.min(length);
            return Some(length - count..length);
        }
        let first = number(first)?;
        if last.is_empty() {
            return Some(first..length);
        }
        let last = number(last)?;
        (first <= last).then(|| first..last.saturating_add(1).min(length))
    };
    match parsed() {
        None => RangeWanted::All,
        Some(range) if range.start < range.end => RangeWanted::Part(range),
        Some(_) => RangeWanted::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_known_and_others_are_ignored() {
        use RangeWanted::{All, Part, Unsatisfiable};
        for (field, wanted) in [
            ("bytes=0-9", Part(0..10)),
            ("bytes=90-", Part(90..100)),
            ("bytes=-10", Part(90..100)),
            ("bytes=-1000", Part(0..100)),
            ("bytes=50-1000", Part(50..100)),
            ("bytes=50-99999999999999999999999", Part(50..100)),
            ("bytes=100-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=99999999999999999999999-", Unsatisfiable),
            ("bytes=9-0", All),
            ("bytes=0-1,5-6", All),
            ("bytes=a-b", All),
            ("bytes=-", All),
            ("bytes=+1-2", All),
            ("lines=0-9", All),
            ("", All),
        ] {
            assert_eq!(parse_range(field, 100), wanted, "{field}");
        }
        assert_eq!(parse_range("bytes=0-", 0), Unsatisfiable);
    }

    #[test]
    fn paths_are_decoded_once() {
        assert_eq!(decode_path("a%20b/%C3%A9%2525").as_deref(), Some(&b"a b/\xc3\xa9%25"[..]));
        for bad in ["%", "%4", "a%4g", "%%41"] {
            assert_eq!(decode_path(bad), None, "{bad}");
        }
    }
}
