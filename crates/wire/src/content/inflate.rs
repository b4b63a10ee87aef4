//! The decoder: a stream in, a stream out, a 32 KiB window between, and limits on what comes out.

use super::encoding::ContentEncoding;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::io::{self, BufRead, BufReader, Read, Write};

/// Input is asked for in pieces of this size, and output leaves in pieces of it: the size of
/// deflate's window.
const PIECE: usize = 32 * 1024;
/// Longest file name or comment that a gzip header may carry; longer ones exist only to be long.
const GZIP_TEXT_LIMIT: u64 = 64 * 1024;
/// Output that the ratio limit does not look at. A few bytes can rightly become a few thousand.
const RATIO_FREE: u64 = 64 * 1024;

/// How much a decoder may put out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Most bytes of output: the content length where that is known and trusted.
    pub output_bytes: u64,
    /// Most bytes of output for a byte of input, not counting the first 64 KiB. Deflate reaches
    /// 1 032, honest text rarely 20.
    pub ratio: u64,
}

/// Why decoding stopped.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Not what the encoding's RFC describes, or a checksum that does not match.
    #[error("the {0} data is corrupt")]
    Corrupt(ContentEncoding),
    /// The input ended in the middle.
    #[error("the {0} data ends too early")]
    Truncated(ContentEncoding),
    /// Something follows the end of the encoded data.
    #[error("the {0} data is followed by something else")]
    TrailingBytes(ContentEncoding),
    /// More output than [`DecodeLimits::output_bytes`].
    #[error("more than {limit} bytes of output")]
    OutputLimit {
        /// The limit.
        limit: u64,
    },
    /// More output for its input than [`DecodeLimits::ratio`].
    #[error("more than {limit} bytes of output for a byte of input")]
    RatioLimit {
        /// The limit.
        limit: u64,
    },
}

/// Decodes all of `input` into `output` and returns how many bytes came out. Memory is a fixed
/// hundred kilobytes or so. On an error, `output` has received a part that is not to be used.
///
/// `deflate` data that begins with a zlib header is taken as zlib: HTTP calls that deflate, some
/// senders of FLUTE follow HTTP, and data that is neither fails either way.
///
/// # Errors
/// [`DecodeError`]; the limits are checked before bytes reach `output`.
pub fn decode_bounded(
    encoding: ContentEncoding,
    input: impl Read,
    output: impl Write,
    limits: &DecodeLimits,
) -> Result<u64, DecodeError> {
    let mut decoder = Decoder {
        encoding,
        input: BufReader::with_capacity(PIECE, input),
        output,
        limits: *limits,
        input_bytes: 0,
        output_bytes: 0,
    };
    match encoding {
        ContentEncoding::Null => decoder.copy()?,
        ContentEncoding::Zlib => decoder.inflate(Wrapper::Zlib, None)?,
        ContentEncoding::Deflate => {
            let is_zlib = is_zlib_header(decoder.available()?);
            decoder.inflate(if is_zlib { Wrapper::Zlib } else { Wrapper::Bare }, None)?;
        }
        ContentEncoding::Gzip => decoder.gunzip()?,
    }
    if !decoder.available()?.is_empty() {
        return Err(DecodeError::TrailingBytes(encoding));
    }
    decoder.output.flush()?;
    Ok(decoder.output_bytes)
}

/// RFC 1950, section 2.2: method 8, a window of at most 32 KiB, and a check to a multiple of 31.
fn is_zlib_header(start: &[u8]) -> bool {
    match start {
        [cmf, flags, ..] => {
            let check = u16::from_be_bytes([*cmf, *flags]);
            cmf & 0x0F == 8 && cmf >> 4 <= 7 && check.is_multiple_of(31)
        }
        _ => false,
    }
}

/// What surrounds a deflate stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrapper {
    /// The header and checksum of zlib (RFC 1950).
    Zlib,
    /// Nothing, or a wrapper that the caller reads.
    Bare,
}

struct Decoder<R, W> {
    encoding: ContentEncoding,
    input: BufReader<R>,
    output: W,
    limits: DecodeLimits,
    /// Bytes consumed and put out so far.
    input_bytes: u64,
    output_bytes: u64,
}

impl<R: Read, W: Write> Decoder<R, W> {
    fn copy(&mut self) -> Result<(), DecodeError> {
        loop {
            let piece = self.available()?.to_vec();
            if piece.is_empty() {
                return Ok(());
            }
            self.consume(piece.len());
            self.write(&piece)?;
        }
    }

    /// One deflate stream, in a zlib wrapper or bare, and its checksum for those who want one.
    fn inflate(&mut self, wrapper: Wrapper, mut crc: Option<&mut Crc>) -> Result<(), DecodeError> {
        let mut state = Decompress::new(wrapper == Wrapper::Zlib);
        let mut piece = vec![0; PIECE];
        loop {
            let encoding = self.encoding;
            let available = self.available()?;
            let at_end = available.is_empty();
            let (before_in, before_out) = (state.total_in(), state.total_out());
            let status = state
                .decompress(available, &mut piece, FlushDecompress::None)
                .map_err(|_| DecodeError::Corrupt(encoding))?;
            let consumed = (state.total_in() - before_in) as usize;
            let produced = (state.total_out() - before_out) as usize;
            self.consume(consumed);
            let out = piece.get(..produced).ok_or(DecodeError::Corrupt(self.encoding))?;
            if let Some(crc) = &mut crc {
                crc.update(out);
            }
            self.write(out)?;
            match status {
                Status::StreamEnd => return Ok(()),
                // Every other turn of the loop has made progress, so it ends.
                _ if consumed > 0 || produced > 0 => {}
                _ if at_end => return Err(DecodeError::Truncated(self.encoding)),
                _ => return Err(DecodeError::Corrupt(self.encoding)),
            }
        }
    }

    /// One gzip member after another (RFC 1952, section 2.2).
    fn gunzip(&mut self) -> Result<(), DecodeError> {
        loop {
            self.gzip_header()?;
            let mut crc = Crc::new();
            self.inflate(Wrapper::Bare, Some(&mut crc))?;
            let expected = (crc.sum(), crc.amount());
            if (self.u32_le()?, self.u32_le()?) != expected {
                return Err(DecodeError::Corrupt(self.encoding));
            }
            if self.available()?.is_empty() {
                return Ok(());
            }
        }
    }

    /// RFC 1952, section 2.3. The header's own checksum is skipped: what matters has another.
    fn gzip_header(&mut self) -> Result<(), DecodeError> {
        const MAGIC_AND_METHOD: [u8; 3] = [0x1F, 0x8B, 8];
        const HEADER_CRC: u8 = 0x02;
        const EXTRA: u8 = 0x04;
        const NAME: u8 = 0x08;
        const COMMENT: u8 = 0x10;
        const RESERVED: u8 = 0xE0;
        let first_member = self.input_bytes == 0;
        let [m0, m1, method, flags, ..] = self.array::<10>()?;
        if [m0, m1, method] != MAGIC_AND_METHOD {
            return Err(if first_member {
                DecodeError::Corrupt(self.encoding)
            } else {
                DecodeError::TrailingBytes(self.encoding)
            });
        }
        if flags & RESERVED != 0 {
            return Err(DecodeError::Corrupt(self.encoding));
        }
        if flags & EXTRA != 0 {
            let length = u16::from_le_bytes(self.array()?);
            for _ in 0..length {
                self.array::<1>()?;
            }
        }
        for text in [NAME, COMMENT] {
            if flags & text != 0 {
                let limit = self.input_bytes + GZIP_TEXT_LIMIT;
                while self.array()? != [0] {
                    if self.input_bytes > limit {
                        return Err(DecodeError::Corrupt(self.encoding));
                    }
                }
            }
        }
        if flags & HEADER_CRC != 0 {
            self.array::<2>()?;
        }
        Ok(())
    }

    fn u32_le(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => DecodeError::Truncated(self.encoding),
            _ => DecodeError::Io(error),
        })?;
        self.input_bytes += N as u64;
        Ok(bytes)
    }

    /// Input that has been read and not consumed: at least a byte, unless there is no more.
    fn available(&mut self) -> Result<&[u8], DecodeError> {
        while let Err(error) = self.input.fill_buf() {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error.into());
            }
        }
        Ok(self.input.fill_buf()?)
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
        self.input_bytes += count as u64;
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let total = self.output_bytes + bytes.len() as u64;
        let DecodeLimits { output_bytes, ratio } = self.limits;
        if total > output_bytes {
            return Err(DecodeError::OutputLimit { limit: output_bytes });
        }
        if total > RATIO_FREE.saturating_add(self.input_bytes.saturating_mul(ratio)) {
            return Err(DecodeError::RatioLimit { limit: ratio });
        }
        self.output.write_all(bytes)?;
        self.output_bytes = total;
        Ok(())
    }
}
