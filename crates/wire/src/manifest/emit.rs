//! The emitter of manifests.

use super::parse::{DIRECTORY, FILE, FORMAT_VERSION, MAGIC, SYMLINK, WITH_RUNS};
use super::{Entry, Manifest, Metadata, Segment};
use crate::content::ContentEncoding;
use crate::{oti, varint};

impl Manifest {
    /// The encoding of this manifest. Session heads and tickets pin its
    /// [`manifest_hash`](crate::manifest_hash).
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.push(if self.runs.is_empty() { FORMAT_VERSION } else { WITH_RUNS });
        varint::emit(self.version, &mut out);
        emit_sized(self.label.as_bytes(), &mut out);
        varint::emit(self.objects.len() as u64, &mut out);
        let mut previous = 0;
        for object in &self.objects {
            // TOIs ascend.
            varint::emit(object.toi.saturating_sub(previous).into(), &mut out);
            previous = object.toi;
            oti::emit(&object.oti, &mut out);
            out.push(ContentEncoding::Null.cenc());
            out.extend(object.block_hashes.iter().flat_map(|hash| hash.0));
        }
        varint::emit(self.entries.len() as u64, &mut out);
        for entry in &self.entries {
            emit_entry(entry, &mut out);
        }
        if !self.runs.is_empty() {
            self.emit_runs(&mut out);
        }
        if !self.unsettled.is_empty() {
            varint::emit(self.unsettled.len() as u64, &mut out);
            for path in &self.unsettled {
                emit_sized(path.as_bytes(), &mut out);
            }
        }
        out
    }

    fn emit_runs(&self, out: &mut Vec<u8>) {
        varint::emit(self.runs.len() as u64, out);
        let mut previous = 0;
        for (&toi, runs) in &self.runs {
            varint::emit(toi.saturating_sub(previous).into(), out);
            previous = toi;
            varint::emit(runs.len() as u64, out);
            for run in runs {
                varint::emit(run.length, out);
                out.extend(run.hash.0);
            }
        }
    }
}

fn emit_entry(entry: &Entry, out: &mut Vec<u8>) {
    out.push(match entry {
        Entry::File(_) => FILE,
        Entry::Directory(_) => DIRECTORY,
        Entry::Symlink(_) => SYMLINK,
    });
    emit_sized(entry.path().as_bytes(), out);
    match entry {
        Entry::File(file) => {
            emit_metadata(&file.metadata, out);
            varint::emit(file.segments.len() as u64, out);
            for &segment in &file.segments {
                match segment {
                    Segment::Extent { toi, object_offset, length } => {
                        varint::emit(toi.into(), out);
                        varint::emit(object_offset, out);
                        varint::emit(length, out);
                    }
                    Segment::Hole { length } => {
                        varint::emit(0, out);
                        varint::emit(length, out);
                    }
                }
            }
        }
        Entry::Directory(directory) => emit_metadata(&directory.metadata, out),
        Entry::Symlink(link) => emit_sized(&link.target, out),
    }
}

fn emit_metadata(metadata: &Metadata, out: &mut Vec<u8>) {
    varint::emit(metadata.mode.into(), out);
    varint::emit(varint::from_signed(metadata.mtime_seconds), out);
    varint::emit(metadata.mtime_nanoseconds.into(), out);
}

fn emit_sized(bytes: &[u8], out: &mut Vec<u8>) {
    varint::emit(bytes.len() as u64, out);
    out.extend(bytes);
}
