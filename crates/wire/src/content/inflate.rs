//! Streaming decoder of the content encodings, with a 32 KiB window and limits on the output.

use super::encoding::ContentEncoding;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::io::{self, BufRead, BufReader, Read, Write};

/// Size of input reads and output writes in bytes: that of deflate's window.
const PIECE: usize = 32 * 1024;
/// Longest file name or comment of a gzip header in bytes. Longer ones only occur in hostile input.
const GZIP_TEXT_LIMIT: u64 = 64 * 1024;
/// Output in bytes that is exempt from the ratio limit: a short input may legitimately expand to a
/// few thousand bytes.
const RATIO_FREE: u64 = 64 * 1024;

/// Limits on the output of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Largest output in bytes: the content length where it is known and trusted.
    pub output_bytes: u64,
    /// Largest output in bytes per byte of input, beyond the first 64 KiB. Deflate reaches 1 032;
    /// text rarely exceeds 20.
    pub ratio: u64,
}

/// Reason why decoding failed.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Data that violate the encoding's RFC, or a wrong checksum.
    #[error("the {0} data is corrupt")]
    Corrupt(ContentEncoding),
    /// Input that ends before the encoded data do.
    #[error("the {0} data ends too early")]
    Truncated(ContentEncoding),
    /// Bytes after the end of the encoded data.
    #[error("the {0} data is followed by something else")]
    TrailingBytes(ContentEncoding),
    /// Output above [`DecodeLimits::output_bytes`].
    #[error("more than {limit} bytes of output")]
    OutputLimit {
        /// The limit in bytes.
        limit: u64,
    },
    /// Output above [`DecodeLimits::ratio`] times the input.
    #[error("more than {limit} bytes of output for a byte of input")]
    RatioLimit {
        /// The limit.
        limit: u64,
    },
}

/// Decodes all of `input` into `output` and returns the number of bytes written. It uses about 100
/// KB of memory. After an error, the caller discards what `output` has received.
///
/// `deflate` data that begin with a zlib header are decoded as zlib. HTTP uses the name deflate for
/// zlib, some FLUTE senders follow HTTP, and data of neither format fail in both cases.
///
/// # Errors
/// [`DecodeError`]. The limits are checked before bytes are written to `output`.
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

/// True if `start` is a zlib header (RFC 1950, section 2.2): method 8, a window of at most 32 KiB,
/// and a check value that makes it a multiple of 31.
fn is_zlib_header(start: &[u8]) -> bool {
    match start {
        [cmf, flags, ..] => {
            let check = u16::from_be_bytes([*cmf, *flags]);
            cmf & 0x0F == 8 && cmf >> 4 <= 7 && check.is_multiple_of(31)
        }
        _ => false,
    }
}

/// Wrapper around a deflate stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrapper {
    /// Header and checksum of zlib (RFC 1950).
    Zlib,
    /// No wrapper, or one that the caller reads.
    Bare,
}

struct Decoder<R, W> {
    encoding: ContentEncoding,
    input: BufReader<R>,
    output: W,
    limits: DecodeLimits,
    /// Bytes consumed and written so far.
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

    /// Decodes one deflate stream and adds its output to `crc`, if given.
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
            let consumed = state.total_in().saturating_sub(before_in) as usize;
            let produced = state.total_out().saturating_sub(before_out) as usize;
            self.consume(consumed);
            let out = piece.get(..produced).ok_or(DecodeError::Corrupt(self.encoding))?;
            if let Some(crc) = &mut crc {
                crc.update(out);
            }
            self.write(out)?;
            match status {
                Status::StreamEnd => return Ok(()),
                // The loop ends, because every iteration that continues made progress.
                _ if consumed > 0 || produced > 0 => {}
                _ if at_end => return Err(DecodeError::Truncated(self.encoding)),
                _ => return Err(DecodeError::Corrupt(self.encoding)),
            }
        }
    }

    /// Decodes all gzip members (RFC 1952, section 2.2).
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

    /// Reads a gzip header (RFC 1952, section 2.3). Its own checksum is skipped; the content has
    /// another.
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
                let limit = self.input_bytes.saturating_add(GZIP_TEXT_LIMIT);
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
        self.input_bytes = self.input_bytes.saturating_add(N as u64);
        Ok(bytes)
    }

    /// Input that was read and not consumed: at least one byte, except at the end of the input.
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
        self.input_bytes = self.input_bytes.saturating_add(count as u64);
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let total = self.output_bytes.saturating_add(bytes.len() as u64);
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
