//! Files of plain FLUTE sessions: checked against what the table says, and decompressed.

use super::{Disk, OpenObject};
use crate::Error;
use fontana_store::{FileAttributes, FileIndex, StagedObject, Staging, StagingError, TargetName};
use fontana_wire::{ContentEncoding, DecodeLimits, FdtContentEncoding, FdtFile, decode_bounded};
use md5::{Digest, Md5};
use std::io::{self, Read, Write};

/// Longest file that is decompressed where the table does not say its length.
const MAX_DECODED_BYTES: u64 = 1 << 40;
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
    let encoding = match &file.content_encoding {
        None => None,
        Some(FdtContentEncoding::Known(ContentEncoding::Null)) => None,
        Some(FdtContentEncoding::Known(encoding)) => Some(*encoding),
        Some(FdtContentEncoding::Unknown(name)) => {
            return Err(Error::Content {
                name: file.content_location.clone(),
                what: format!("its content encoding {name:?} is not known here"),
            });
        }
    };
    let mut plain = PlainFile {
        location: file.content_location.clone(),
        content_length: file.content_length,
        md5: file.content_md5,
        encoded: None,
    };
    let index = match encoding {
        None => staging.add_file(target, transfer_length, FileAttributes::default())?,
        Some(encoding) => {
            plain.encoded = Some((encoding, target));
            staging.add_scratch(transfer_length)?
        }
    };
    Ok((index, plain))
}

impl Disk {
    pub(super) fn commit_plain(&self, object: &OpenObject, file: &PlainFile) -> Result<(), Error> {
        let Some(staging) = &self.staging else { return Ok(()) };
        let mut check = Check { md5: Md5::new(), bytes: 0 };
        let wrong = |what: String| Error::Content { name: file.location.clone(), what };
        let files = match &file.encoded {
            None => {
                io::copy(&mut ObjectReader::new(&object.staged), &mut check)
                    .map_err(|error| wrong(error.to_string()))?;
                file.verify(check)?;
                object.files.clone()
            }
            // Twice: first to learn how long it is and whether it is right, then to keep it.
            Some((encoding, target)) => {
                let limits = DecodeLimits {
                    output_bytes: file.content_length.unwrap_or(MAX_DECODED_BYTES),
                    ratio: MAX_RATIO,
                };
                let decode = |output: &mut dyn Write| {
                    decode_bounded(*encoding, ObjectReader::new(&object.staged), output, &limits)
                        .map_err(|error| wrong(error.to_string()))
                };
                let length = decode(&mut check)?;
                file.verify(check)?;
                let index = staging.add_file(target.clone(), length, FileAttributes::default())?;
                let mut writer = FileWriter { staging, index, at: 0, failure: None };
                let decoded = decode(&mut writer);
                if let Some(failure) = writer.failure {
                    return Err(failure.into());
                }
                decoded?;
                vec![index]
            }
        };
        staging.commit(&files)?;
        object.staged.remove_spool()?;
        Ok(())
    }
}

impl PlainFile {
    fn verify(&self, check: Check) -> Result<(), Error> {
        let wrong = |what: &str| Error::Content { name: self.location.clone(), what: what.into() };
        if self.content_length.is_some_and(|length| length != check.bytes) {
            return Err(wrong("its length is not what the file delivery table says"));
        }
        let md5: [u8; 16] = check.md5.finalize().into();
        if self.md5.is_some_and(|expected| expected != md5) {
            return Err(wrong("its MD5 is not what the file delivery table says"));
        }
        Ok(())
    }
}

struct Check {
    md5: Md5,
    bytes: u64,
}

impl Write for Check {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.md5.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a received object from its first to its last byte.
struct ObjectReader<'a> {
    object: &'a StagedObject,
    at: u64,
}

impl<'a> ObjectReader<'a> {
    fn new(object: &'a StagedObject) -> Self {
        Self { object, at: 0 }
    }
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

struct FileWriter<'a> {
    staging: &'a Staging,
    index: FileIndex,
    at: u64,
    /// What the disk said, which is lost on the way through [`io::Error`].
    failure: Option<StagingError>,
}

impl Write for FileWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(failure) = self.staging.write_file(self.index, self.at, bytes) {
            let error = io::Error::other(failure.to_string());
            self.failure = Some(failure);
            return Err(error);
        }
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
