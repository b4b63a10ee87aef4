//! The bytes of received objects on their way to files: read, decompressed, written and counted.

use super::digests::DigestCheck;
use super::report::TargetReport;
use crate::error::{Error, TransferError};
use fontana_fec::Sbn;
use fontana_store::{FileIndex, StagedObject, Staging, StagingError};
use fontana_wire::{
    ContentEncoding, DecodeError, DecodeLimits, FdtContentEncoding, Hash, InternetChecksum, Toi,
    decode_bounded,
};
use std::io::{self, Read, Write};

/// Most output for a byte of input: what deflate can reach (zlib's documentation: 1032).
const MAX_RATIO: u64 = 1032;

/// Most bytes of a file that an object of `length` bytes can hold.
pub(super) fn max_decoded(encoding: ContentEncoding, length: u64) -> u64 {
    match encoding {
        ContentEncoding::Null => length,
        _ => length.saturating_mul(MAX_RATIO),
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
            Err(TransferError::Unsupported { name: name.to_owned(), what }.into())
        }
    }
}

/// The report of an object that cannot be brought to its files. If its bytes are the reason, it may
/// be collected again.
pub(super) fn unusable(
    toi: Toi,
    object: &StagedObject,
    error: Error,
) -> Result<TargetReport, Error> {
    if !matches!(error, Error::Transfer(TransferError::Content { .. })) {
        return Err(error);
    }
    let mut hasher = blake3::Hasher::new();
    for sbn in (0..object.layout().block_count()).map(Sbn) {
        object.for_each_chunk_of_block(sbn, |bytes| _ = hasher.update(bytes))?;
    }
    let digest = Hash(*hasher.finalize().as_bytes());
    Ok(TargetReport::Mismatched { toi, digest, error })
}

/// Decompresses an object to at most `longest` bytes.
pub(super) fn decode(
    encoding: ContentEncoding,
    input: impl Read,
    output: &mut dyn Write,
    longest: u64,
) -> Result<u64, DecodeError> {
    let limits = DecodeLimits { output_bytes: longest, ratio: MAX_RATIO };
    decode_bounded(encoding, input, output, &limits)
}

/// Tells a failure of the disk from data that cannot be decompressed.
pub(super) fn undecodable(error: DecodeError, wrong: impl FnOnce(String) -> Error) -> Error {
    match error {
        DecodeError::Io(error) => match error.downcast::<StagingError>() {
            Ok(error) => error.into(),
            Err(error) => Error::system("decompress a file")(error),
        },
        error => wrong(error.to_string()),
    }
}

/// Reads a received object to its last byte.
pub(super) struct ObjectReader<'a> {
    object: &'a StagedObject,
    at: u64,
    /// Checksum of the bytes that were read, and of those before them; `None` without a checksum.
    pub(super) sum: Option<InternetChecksum>,
}

impl<'a> ObjectReader<'a> {
    /// A reader from byte `at` on.
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

/// Writes consecutive bytes of a file, and checks them.
pub(super) struct FileWriter<'a> {
    staging: &'a Staging,
    index: FileIndex,
    /// Offset of the first byte in the file.
    offset: u64,
    pub(super) check: DigestCheck,
}

impl<'a> FileWriter<'a> {
    pub(super) fn new(
        staging: &'a Staging,
        index: FileIndex,
        offset: u64,
        check: DigestCheck,
    ) -> Self {
        Self { staging, index, offset, check }
    }
}

impl Write for FileWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.offset + self.check.bytes();
        self.staging.write_file(self.index, at, bytes).map_err(io::Error::other)?;
        self.check.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
