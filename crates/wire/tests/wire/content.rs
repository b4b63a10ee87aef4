//! Content decoding: data of other compressors, truncated and forged data, and bombs.

use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, GzBuilder};
use fontana_wire::{ContentEncoding, DecodeError, DecodeLimits, decode_bounded};
use proptest::prelude::*;
use std::io::Write;

const AMPLE: DecodeLimits = DecodeLimits { output_bytes: 1 << 30, ratio: 2000 };
const ENCODINGS: [ContentEncoding; 4] =
    [ContentEncoding::Null, ContentEncoding::Zlib, ContentEncoding::Deflate, ContentEncoding::Gzip];

pub(crate) fn encode(encoding: ContentEncoding, bytes: &[u8]) -> Vec<u8> {
    let level = Compression::default();
    match encoding {
        ContentEncoding::Null => bytes.to_vec(),
        ContentEncoding::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        ContentEncoding::Deflate => {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        ContentEncoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
    }
}

fn decode(encoding: ContentEncoding, input: &[u8]) -> Result<Vec<u8>, DecodeError> {
    decode_within(encoding, input, AMPLE)
}

fn decode_within(
    encoding: ContentEncoding,
    input: &[u8],
    limits: DecodeLimits,
) -> Result<Vec<u8>, DecodeError> {
    let mut output = Vec::new();
    let count = decode_bounded(encoding, input, &mut output, &limits)?;
    assert_eq!(count, output.len() as u64);
    Ok(output)
}

fn text() -> Vec<u8> {
    (0..60_000_u32).flat_map(|i| (i * i / 7).to_string().into_bytes()).collect()
}

#[test]
fn every_encoding_is_decoded_and_every_truncation_noticed() {
    for bytes in [Vec::new(), vec![0], text()] {
        for encoding in ENCODINGS {
            let encoded = encode(encoding, &bytes);
            assert_eq!(decode(encoding, &encoded).unwrap(), bytes, "{encoding}");
            if encoding == ContentEncoding::Null {
                continue;
            }
            let step = encoded.len() / 50 + 1;
            for length in (0..encoded.len()).step_by(step).chain([encoded.len() - 1]) {
                let cut = decode(encoding, &encoded[..length]);
                assert!(
                    matches!(cut, Err(DecodeError::Truncated(_))),
                    "{encoding}, {length}: {cut:?}"
                );
            }
        }
    }
}

#[test]
fn bytes_after_the_end_are_an_error() {
    for encoding in [ContentEncoding::Zlib, ContentEncoding::Deflate, ContentEncoding::Gzip] {
        let mut encoded = encode(encoding, b"water");
        encoded.extend([0; 20]);
        let result = decode(encoding, &encoded);
        assert!(matches!(result, Err(DecodeError::TrailingBytes(_))), "{encoding}: {result:?}");
    }
}

#[test]
fn zlib_data_named_deflate_are_decoded() {
    let zlib = encode(ContentEncoding::Zlib, &text());
    assert_eq!(decode(ContentEncoding::Deflate, &zlib).unwrap(), text());
    // The reverse is not accepted: zlib means zlib.
    let deflate = encode(ContentEncoding::Deflate, &text());
    assert!(matches!(decode(ContentEncoding::Zlib, &deflate), Err(DecodeError::Corrupt(_))));
}

#[test]
fn gzip_headers_with_everything_in_them_and_several_members_are_read() {
    let member = |bytes: &[u8]| {
        let mut encoder = GzBuilder::new()
            .extra(vec![7; 300])
            .filename("name")
            .comment("comment")
            .mtime(1)
            .write(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let both = [member(b"wa"), member(b"ter")].concat();
    assert_eq!(decode(ContentEncoding::Gzip, &both).unwrap(), b"water");
    let mut endless = vec![0x1F, 0x8B, 8, 0x08, 0, 0, 0, 0, 0, 3];
    endless.extend([b'x'; 100_000]);
    assert!(matches!(decode(ContentEncoding::Gzip, &endless), Err(DecodeError::Corrupt(_))));
}

#[test]
fn a_gzip_header_with_reserved_flags_is_refused() {
    // RFC 1952, section 2.3.1.2: they may announce a field that this decoder would not skip.
    let good = encode(ContentEncoding::Gzip, b"water");
    for flag in [0x20, 0x40, 0x80] {
        let mut bytes = good.clone();
        bytes[3] = flag;
        assert!(matches!(decode(ContentEncoding::Gzip, &bytes), Err(DecodeError::Corrupt(_))));
    }
    // The header's own checksum, wrong here, is skipped.
    let mut bytes = good.clone();
    bytes[3] = 0x02;
    bytes.splice(10..10, [0, 0]);
    assert_eq!(decode(ContentEncoding::Gzip, &bytes).unwrap(), b"water");
}

#[test]
fn forged_bytes_do_not_pass_the_checksum() {
    for encoding in [ContentEncoding::Zlib, ContentEncoding::Gzip] {
        let bytes = b"the quick brown fox jumps over the lazy dog";
        let encoded = encode(encoding, bytes);
        for flipped in crate::flips(&encoded) {
            // A gzip header has fields that do not concern the content.
            assert!(decode(encoding, &flipped).map_or(true, |decoded| decoded == bytes));
        }
    }
}

#[test]
fn a_bomb_is_stopped_by_size_and_by_ratio() {
    let bytes = vec![0; 10 << 20];
    for encoding in [ContentEncoding::Zlib, ContentEncoding::Deflate, ContentEncoding::Gzip] {
        let bomb = encode(encoding, &bytes);
        let limits = |output_bytes, ratio| DecodeLimits { output_bytes, ratio };
        let exact = limits(bytes.len() as u64, 1032);
        assert_eq!(decode_within(encoding, &bomb, exact).unwrap().len(), bytes.len());
        assert!(matches!(
            decode_within(encoding, &bomb, limits(bytes.len() as u64 - 1, 1032)),
            Err(DecodeError::OutputLimit { .. })
        ));
        assert!(matches!(
            decode_within(encoding, &bomb, limits(1 << 30, 200)),
            Err(DecodeError::RatioLimit { limit: 200 })
        ));
    }
    // Small output is exempt from the ratio limit.
    let small = encode(ContentEncoding::Gzip, &[0; 65_536]);
    let strict = DecodeLimits { output_bytes: 65_536, ratio: 1 };
    assert!(decode_within(ContentEncoding::Gzip, &small, strict).is_ok());
}

#[test]
fn numbers_and_names_of_encodings_are_inverse() {
    for encoding in ENCODINGS {
        assert_eq!(ContentEncoding::from_cenc(encoding.cenc()), Some(encoding));
        assert_eq!(ContentEncoding::from_name(&encoding.name().to_uppercase()), Some(encoding));
    }
    assert_eq!(ContentEncoding::from_cenc(4), None);
    assert_eq!(ContentEncoding::from_name("br"), None);
}

proptest! {
    #[test]
    fn random_input_ends(bytes: Vec<u8>, kind in 0..4_usize) {
        let limits = DecodeLimits { output_bytes: 1 << 20, ratio: 1032 };
        let _ = decode_within(ENCODINGS[kind], &bytes, limits);
    }
}

#[test]
fn what_is_encoded_here_is_decoded_here() {
    for encoding in ENCODINGS {
        for bytes in [Vec::new(), b"all the world's a stage\n".repeat(1000)] {
            let mut encoded = Vec::new();
            let read = fontana_wire::encode(encoding, &mut &bytes[..], &mut encoded).unwrap();
            assert_eq!(read, bytes.len() as u64);
            assert_eq!(decode(encoding, &encoded).unwrap(), bytes);
            let is_shorter = encoded.len() < bytes.len();
            assert_eq!(is_shorter, encoding != ContentEncoding::Null && !bytes.is_empty());
        }
    }
}
