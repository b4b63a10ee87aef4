//! Files that are compressed before they are sent.

use super::lost::Lost;
use super::tree::Scanned;
use crate::error::Error;
use fontana_store::{FileIndex, SourceError, SourceFiles};
use fontana_wire::{ContentEncoding, encode};
use md5::{Digest, Md5};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::fd::AsRawFd;

/// A compressed file of at most this size is held in memory.
const MAX_IN_MEMORY: u64 = 256 << 10;
/// All that are held in memory have at most this size together.
const MAX_ALL_IN_MEMORY: u64 = 64 << 20;

/// What was compressed.
#[derive(Default)]
pub(super) struct CompressedFiles {
    /// The originals of the files that became shorter.
    pub(super) originals: BTreeMap<FileIndex, Original>,
    /// Unnamed files that hold compressed ones, which are opened again by their descriptors: they
    /// have to be open as long as the session lasts.
    pub(super) spooled: Vec<File>,
}

/// A file before its compression.
#[derive(Clone, Copy)]
pub(super) struct Original {
    pub(super) length: u64,
    pub(super) md5: [u8; 16],
}

impl Scanned {
    /// Replaces each file by a compressed one, if that is shorter. The indices of files stay. Files
    /// that cannot be read are lost, and empty.
    pub(super) fn compress(
        &mut self,
        encoding: ContentEncoding,
        lost: &mut Lost,
    ) -> Result<CompressedFiles, Error> {
        let mut compressed = CompressedFiles::default();
        let (mut sources, mut in_memory) = (SourceFiles::default(), 0);
        for index in (0..self.sources.as_slice().len() as u32).map(FileIndex) {
            let source = self.sources.file(index).map_err(SourceError::from)?;
            let (path, length) = (source.path().to_owned(), source.size());
            let failed = || Error::system("compress a file");
            let mut spooled = tempfile::tempfile().map_err(failed())?;
            let (short, md5) = match self.compress_one(index, encoding, &spooled) {
                Ok(compressed) => compressed,
                Err(error) => {
                    lost.add(index, error);
                    sources.add_bytes(&path.to_string_lossy(), Vec::new());
                    continue;
                }
            };
            if short >= length {
                sources.add_known(source.clone());
                continue;
            }
            compressed.originals.insert(index, Original { length, md5 });
            if short <= MAX_IN_MEMORY && in_memory + short <= MAX_ALL_IN_MEMORY {
                let mut bytes = Vec::new();
                spooled.rewind().and_then(|()| spooled.read_to_end(&mut bytes)).map_err(failed())?;
                sources.add_bytes(&path.to_string_lossy(), bytes);
                in_memory += short;
            } else {
                sources.add(format!("/proc/self/fd/{}", spooled.as_raw_fd()))?;
                compressed.spooled.push(spooled);
            }
        }
        self.sources = sources;
        Ok(compressed)
    }

    /// Compresses a file into another one. Returns the length of that, and the digest of the first.
    fn compress_one(
        &self,
        index: FileIndex,
        encoding: ContentEncoding,
        into: &File,
    ) -> Result<(u64, [u8; 16]), Error> {
        let source = self.sources.file(index).map_err(SourceError::from)?;
        let failed = || Error::system("compress a file");
        let input = File::open(source.path()).map_err(failed())?;
        let mut original = Hashing { input: BufReader::new(input), md5: Md5::new() };
        let mut writer = BufWriter::new(into);
        let read = encode(encoding, &mut original, &mut writer).map_err(failed())?;
        writer.flush().map_err(failed())?;
        drop(writer);
        self.sources.check_unchanged(index)?;
        let short = into.metadata().map_err(failed())?.len();
        // What was not read to its end is not sent compressed.
        let short = if read == source.size() { short } else { u64::MAX };
        Ok((short, original.md5.finalize().into()))
    }
}

/// A reader that hashes what it reads.
struct Hashing<R> {
    input: R,
    md5: Md5,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.md5.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}
