//! Compression with the content encodings of FLUTE.

use super::encoding::ContentEncoding;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use std::io::{self, Read, Write};

/// Encodes everything that `input` has. Returns the bytes that were read.
///
/// # Errors
/// Those of the reader and of the writer.
pub fn encode(
    encoding: ContentEncoding,
    input: &mut impl Read,
    output: &mut impl Write,
) -> io::Result<u64> {
    let level = Compression::default();
    match encoding {
        ContentEncoding::Null => io::copy(input, output),
        ContentEncoding::Zlib => {
            let mut encoder = ZlibEncoder::new(output, level);
            let read = io::copy(input, &mut encoder)?;
            encoder.finish()?;
            Ok(read)
        }
        ContentEncoding::Deflate => {
            let mut encoder = DeflateEncoder::new(output, level);
            let read = io::copy(input, &mut encoder)?;
            encoder.finish()?;
            Ok(read)
        }
        ContentEncoding::Gzip => {
            let mut encoder = GzEncoder::new(output, level);
            let read = io::copy(input, &mut encoder)?;
            encoder.finish()?;
            Ok(read)
        }
    }
}
