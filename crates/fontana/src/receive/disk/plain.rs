//! Files of plain FLUTE sessions: checked against what the table says, and decompressed. Objects of
//! FCAST sessions share the means.

use super::{Disk, OpenObject};
use crate::error::Error;
use fontana_fec::Sbn;
use fontana_store::{FileAttributes, FileIndex, StagedObject, Staging, StagingError, TargetName};
use fontana_wire::{
    ContentEncoding, DecodeError, DecodeLimits, FdtContentEncoding, FdtFile, InternetChecksum,
    decode_bounded,
};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;
use std::io::{self, Read, Write};

/// Most output for a byte of input: what deflate can reach (zlib's documentation: 1032).
pub(super) const MAX_RATIO: u64 = 1032;

/// What a file delivery table promises of a file.
#[derive(Debug)]
pub(super) struct PlainFile {
    location: String,
    content_length: Option<u64>,
    digests: Digests,
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
        digests: Digests { md5: file.content_md5, ..Digests::default() },
        encoded: None,
    };
    let encoding = content_encoding(file.content_encoding.as_ref(), &file.content_location)?;
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
                let mut check = file.digests.check();
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
            decode(encoding, ObjectReader::new(object, 0, None), output, longest)
                .map_err(|error| undecodable(error, |what| file.wrong(what)))
        };
        let length = match file.content_length {
            Some(length) => length,
            // Once to learn how long it is, once to keep it: decoding is cheaper than a disk that
            // turns out full.
            None => decode(&mut io::sink(), self.max_bytes)?,
        };
        let index = staging.add_file(target.clone(), length, FileAttributes::default())?;
        let mut writer = FileWriter::new(staging, index, 0, file.digests.check());
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
        check.finish().map_err(|what| self.wrong(what))
    }

    fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Content { name: self.location.clone(), what: what.into() }
    }
}

/// How an object is compressed.
pub(super) fn content_encoding(
    encoding: Option<&FdtContentEncoding>,
    name: &str,
) -> Result<ContentEncoding, Error> {
    match encoding {
        None => Ok(ContentEncoding::Null),
        Some(FdtContentEncoding::Known(encoding)) => Ok(*encoding),
        Some(FdtContentEncoding::Unknown(encoding)) => {
            let what = format!("its content encoding {encoding:?} is not known here");
            Err(Error::Unsupported { name: name.to_owned(), what })
        }
    }
}

/// Decompresses an object, to at most `longest` bytes.
pub(super) fn decode(
    encoding: ContentEncoding,
    input: impl Read,
    output: &mut dyn Write,
    longest: u64,
) -> Result<u64, DecodeError> {
    let limits = DecodeLimits { output_bytes: longest, ratio: MAX_RATIO };
    decode_bounded(encoding, input, output, &limits)
}

/// Tells a disk that failed from data that is no good.
pub(super) fn undecodable(error: DecodeError, wrong: impl FnOnce(String) -> Error) -> Error {
    match error {
        DecodeError::Io(error) => match error.downcast::<StagingError>() {
            Ok(error) => error.into(),
            Err(error) => Error::System { doing: "decompress a file", error },
        },
        error => wrong(error.to_string()),
    }
}

/// What a sender says of a file's bytes: against accidents only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digests {
    pub(super) md5: Option<[u8; 16]>,
    pub(super) sha1: Option<[u8; 20]>,
    pub(super) sha256: Option<[u8; 32]>,
}

impl Digests {
    /// What is to be counted of the bytes as they pass.
    pub(super) fn check(&self) -> Check {
        Check {
            md5: self.md5.map(|expected| (Md5::new(), expected)),
            // The stronger one says it all.
            sha1: self.sha1.filter(|_| self.sha256.is_none()).map(|it| (Sha1::new(), it)),
            sha256: self.sha256.map(|expected| (Sha256::new(), expected)),
            bytes: 0,
        }
    }
}

/// What is counted of a file's bytes as they pass, and what should come out.
pub(super) struct Check {
    md5: Option<(Md5, [u8; 16])>,
    sha1: Option<(Sha1, [u8; 20])>,
    sha256: Option<(Sha256, [u8; 32])>,
    bytes: u64,
}

impl Check {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn update(&mut self, bytes: &[u8]) {
        self.md5.iter_mut().for_each(|(md5, _)| md5.update(bytes));
        self.sha1.iter_mut().for_each(|(sha1, _)| sha1.update(bytes));
        self.sha256.iter_mut().for_each(|(sha256, _)| sha256.update(bytes));
        self.bytes += bytes.len() as u64;
    }

    /// What is wrong with the bytes that have passed.
    pub(super) fn finish(self) -> Result<(), &'static str> {
        let is_md5 = self.md5.is_none_or(|(md5, expected)| *md5.finalize() == expected);
        let is_sha1 = self.sha1.is_none_or(|(sha1, expected)| *sha1.finalize() == expected);
        let is_sha256 = self.sha256.is_none_or(|(it, expected)| *it.finalize() == expected);
        match (is_md5, is_sha1, is_sha256) {
            (true, true, true) => Ok(()),
            (false, ..) => Err("its MD5 is not what the file delivery table says"),
            (_, false, _) => Err("its SHA-1 is not what its header says"),
            (.., false) => Err("its SHA-256 is not what its header says"),
        }
    }
}

/// Reads a received object to its last byte.
pub(super) struct ObjectReader<'a> {
    object: &'a StagedObject,
    at: u64,
    /// Sum of the bytes that were read, and of those before them, if they are to be summed up.
    pub(super) sum: Option<InternetChecksum>,
}

impl<'a> ObjectReader<'a> {
    /// From byte `at` on.
    pub(super) fn new(object: &'a StagedObject, at: u64, sum: Option<InternetChecksum>) -> Self {
        Self { object, at, sum }
    }
}

impl Read for ObjectReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.object.layout().oti().transfer_length - self.at;
        let count = left.min(out.len() as u64) as usize;
        let out = out.get_mut(..count).unwrap_or_default();
        self.object.read_at(self.at, out).map_err(io::Error::other)?;
        self.sum.iter_mut().for_each(|sum| sum.add(out));
        self.at += count as u64;
        Ok(count)
    }
}

/// Writes consecutive bytes of a file.
pub(super) struct FileWriter<'a> {
    staging: &'a Staging,
    index: FileIndex,
    /// Where the first one goes.
    offset: u64,
    pub(super) check: Check,
}

impl<'a> FileWriter<'a> {
    pub(super) fn new(staging: &'a Staging, index: FileIndex, offset: u64, check: Check) -> Self {
        Self { staging, index, offset, check }
    }
}

impl Write for FileWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.offset + self.check.bytes;
        self.staging.write_file(self.index, at, bytes).map_err(io::Error::other)?;
        self.check.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
