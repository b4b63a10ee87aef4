//! Files of plain FLUTE sessions: checked against what the table says, and decompressed.

use super::{Disk, OpenObject};
use crate::Error;
use fontana_fec::Sbn;
use fontana_store::{FileAttributes, FileIndex, StagedObject, Staging, StagingError, TargetName};
use fontana_wire::{
    ContentEncoding, DecodeError, DecodeLimits, FdtContentEncoding, FdtFile, decode_bounded,
};
use md5::{Digest, Md5};
use std::io::{self, Read, Write};

/// Most output for a byte of input: what deflate can reach (zlib's documentation: 1032).
const MAX_RATIO: u64 = 1032;

/// What a file delivery table promises of a file.
#[derive(Debug)]
pub(super) struct PlainFile {
    location: String,
    content_length: Option<u64>,
    md5: Option<[u8; 16]>,
    /// How to decompress the object, and what the result is called.
    encoded: Option<(ContentEncoding, TargetName)>,
}

/// Makes room for a file: under its name, or as scratch if it has to be decompressed first.
pub(super) fn open(
    staging: &Staging,
    file: &FdtFile,
    target: TargetName,
    transfer_length: u64,
) -> Result<(FileIndex, PlainFile), Error> {
    let mut plain = PlainFile {
        location: file.content_location.clone(),
        content_length: file.content_length,
        md5: file.content_md5,
        encoded: None,
    };
    let encoding = match &file.content_encoding {
        None => ContentEncoding::Null,
        Some(FdtContentEncoding::Known(encoding)) => *encoding,
        Some(FdtContentEncoding::Unknown(encoding)) => {
            let what = format!("its content encoding {encoding:?} is not known here");
            return Err(Error::Unsupported { name: plain.location, what });
        }
    };
    let longest = match encoding {
        ContentEncoding::Null => transfer_length,
        _ => transfer_length.saturating_mul(MAX_RATIO),
    };
    // Before room is made for it.
    if file.content_length.is_some_and(|length| length > longest) {
        return Err(plain.wrong("its length is more than its object can hold"));
    }
    let index = match encoding {
        ContentEncoding::Null => {
            staging.add_file(target, transfer_length, FileAttributes::default())?
        }
        encoding => {
            plain.encoded = Some((encoding, target));
            staging.add_scratch(transfer_length)?
        }
    };
    Ok((index, plain))
}

impl Disk {
    pub(super) fn commit_plain(&self, object: &OpenObject, file: &PlainFile) -> Result<(), Error> {
        let Some(staging) = &self.staging else { return Ok(()) };
        let files = match &file.encoded {
            None => {
                let mut check = Check::default();
                for sbn in (0..object.staged.layout().block_count()).map(Sbn) {
                    object.staged.for_each_chunk_of_block(sbn, |bytes| check.update(bytes))?;
                }
                file.verify(check)?;
                object.files.clone()
            }
            Some((encoding, target)) => {
                vec![self.decode(staging, &object.staged, file, *encoding, target)?]
            }
        };
        staging.commit(&files)?;
        object.staged.remove_spool()?;
        Ok(())
    }

    /// Decompresses an object into a new file, and checks it.
    fn decode(
        &self,
        staging: &Staging,
        object: &StagedObject,
        file: &PlainFile,
        encoding: ContentEncoding,
        target: &TargetName,
    ) -> Result<FileIndex, Error> {
        let decode = |output: &mut dyn Write, longest| {
            let limits = DecodeLimits { output_bytes: longest, ratio: MAX_RATIO };
            decode_bounded(encoding, ObjectReader { object, at: 0 }, output, &limits)
                .map_err(|error| file.undecodable(error))
        };
        let length = match file.content_length {
            Some(length) => length,
            // Once to learn how long it is, once to keep it: decoding is cheaper than a disk that
            // turns out full.
            None => decode(&mut io::sink(), self.max_bytes)?,
        };
        let index = staging.add_file(target.clone(), length, FileAttributes::default())?;
        let mut writer = FileWriter { staging, index, check: Check::default() };
        decode(&mut writer, length)?;
        file.verify(writer.check)?;
        Ok(index)
    }
}

impl PlainFile {
    fn verify(&self, check: Check) -> Result<(), Error> {
        if self.content_length.is_some_and(|length| length != check.bytes) {
            return Err(self.wrong("its length is not what the file delivery table says"));
        }
        let md5: [u8; 16] = check.md5.finalize().into();
        if self.md5.is_some_and(|expected| expected != md5) {
            return Err(self.wrong("its MD5 is not what the file delivery table says"));
        }
        Ok(())
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Content { name: self.location.clone(), what: what.into() }
    }

    /// Tells a disk that failed from data that is no good.
    fn undecodable(&self, error: DecodeError) -> Error {
        match error {
            DecodeError::Io(error) => match error.downcast::<StagingError>() {
                Ok(error) => error.into(),
                Err(error) => Error::System { doing: "decompress a file", error },
            },
            error => self.wrong(error.to_string()),
        }
    }
}

/// What is counted of a file's bytes as they pass.
#[derive(Default)]
struct Check {
    md5: Md5,
    bytes: u64,
}

impl Check {
    fn update(&mut self, bytes: &[u8]) {
        self.md5.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

/// Reads a received object from its first to its last byte.
struct ObjectReader<'a> {
    object: &'a StagedObject,
    at: u64,
}

impl Read for ObjectReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.object.layout().oti().transfer_length - self.at;
        let count = left.min(out.len() as u64) as usize;
        let out = out.get_mut(..count).unwrap_or_default();
        self.object.read_at(self.at, out).map_err(io::Error::other)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Writes a file from its first to its last byte.
struct FileWriter<'a> {
    staging: &'a Staging,
    index: FileIndex,
    check: Check,
}

impl Write for FileWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.check.bytes;
        self.staging.write_file(self.index, at, bytes).map_err(io::Error::other)?;
        self.check.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
