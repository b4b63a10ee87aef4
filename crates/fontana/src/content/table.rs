//! The file delivery table of the content (RFC 6726, section 3.4).

use super::Content;
use fontana_fec::Oti;
use fontana_wire::{
    Fdt, FdtContentEncoding, FdtFile, FdtMd5, FileEntry, NtpSeconds, RelativePath, Segment, Toi,
    emit_content_location,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// First TOI of empty files in plain FLUTE sessions, above all others.
const EMPTY_FILES: u32 = 0x8000_0000;

impl Content {
    /// The table for FLUTE receivers. An object that is exactly one file is listed as that file.
    /// Other objects are listed with a content type of their own.
    pub(crate) fn file_delivery_table(&self, expires_since_epoch: Duration) -> Fdt {
        let mut held: BTreeMap<u32, Vec<&FileEntry>> = BTreeMap::new();
        for file in self.manifest.files() {
            for toi in objects_of(file) {
                held.entry(toi).or_default().push(file);
            }
        }
        let mut files: Vec<FdtFile> = Vec::new();
        for object in self.manifest.objects() {
            let (toi, oti) = (Toi::from(object.toi), object.oti);
            files.push(match held.get(&object.toi).map_or(&[][..], Vec::as_slice) {
                [file] if is_whole(file, &oti) => self.encoded(
                    &file.path,
                    FdtFile {
                        content_md5: self.md5_of(&file.path),
                        ..described(toi, oti, emit_content_location(&file.path), None)
                    },
                ),
                [file] => {
                    let parts = objects_of(file);
                    let number = parts.iter().position(|&toi| toi == object.toi).unwrap_or(0);
                    let name = emit_content_location(&file.path);
                    let location = format!("{name}.fragment{number}");
                    described(toi, oti, location, Some(FdtFile::FRAGMENT_TYPE))
                }
                _ => {
                    described(toi, oti, format!("bundle{}", object.toi), Some(FdtFile::BUNDLE_TYPE))
                }
            });
        }
        for (toi, path, oti) in self.listed_empty_files() {
            files.push(FdtFile {
                content_md5: self.md5_of(path),
                ..described(toi, oti, emit_content_location(path), None)
            });
        }
        let expires = NtpSeconds::from_unix_seconds(expires_since_epoch.as_secs());
        Fdt { expires, complete: self.table_instance().is_none(), files }
    }

    /// The objects of empty files, if there are any; only plain FLUTE has them.
    pub(crate) fn empty_files(&self) -> Option<(Vec<Toi>, Oti)> {
        let (_, _, oti) = self.listed_empty_files().next()?;
        Some((self.listed_empty_files().map(|(toi, ..)| toi).collect(), oti))
    }

    fn listed_empty_files(&self) -> impl Iterator<Item = (Toi, &RelativePath, Oti)> {
        let empty = self.manifest.files().filter(|file| file.segments.is_empty());
        let plain = self.plain.as_ref();
        empty.enumerate().filter_map(move |(index, file)| {
            let plain = plain?;
            let toi = match &plain.growing {
                Some(growing) => Toi::from(*growing.empty.get(&file.path)?),
                None => Toi(u128::from(EMPTY_FILES) + index as u128),
            };
            Some((toi, &file.path, plain.empty))
        })
    }

    /// The entry of a file, with its encoding and its length before that.
    fn encoded(&self, path: &RelativePath, entry: FdtFile) -> FdtFile {
        let plain = self.plain.as_ref();
        let original = plain.and_then(|plain| Some((plain.encoding, *plain.lengths.get(path)?)));
        let Some((encoding, length)) = original else { return entry };
        FdtFile {
            content_length: Some(length),
            content_encoding: Some(FdtContentEncoding::Known(encoding)),
            ..entry
        }
    }

    fn md5_of(&self, path: &RelativePath) -> Option<FdtMd5> {
        self.plain.as_ref()?.md5.get(path).copied().map(FdtMd5::Digest)
    }
}

/// The objects that contain bytes of a file, in its order.
pub(super) fn objects_of(file: &FileEntry) -> Vec<u32> {
    let toi = |segment: &Segment| match *segment {
        Segment::Extent { toi, .. } => Some(toi),
        Segment::Hole { .. } => None,
    };
    let mut tois: Vec<_> = file.segments.iter().filter_map(toi).collect();
    tois.dedup();
    tois
}

fn is_whole(file: &FileEntry, oti: &Oti) -> bool {
    matches!(file.segments[..], [Segment::Extent { length, .. }] if length == oti.transfer_length)
}

fn described(toi: Toi, oti: Oti, location: String, content_type: Option<&str>) -> FdtFile {
    FdtFile {
        toi,
        content_location: location,
        content_length: Some(oti.transfer_length),
        transfer_length: Some(oti.transfer_length),
        content_type: content_type.map(str::to_owned),
        fec_encoding_id: Some(oti.scheme.profile().encoding_id.0),
        oti: Some(oti),
        ..FdtFile::default()
    }
}
