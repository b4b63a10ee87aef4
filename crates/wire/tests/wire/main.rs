//! Tests of the crate's public interface, in one binary.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod codes;
mod congestion;
mod content;
mod digests;
mod documentation;
mod fcast;
mod fdt;
mod fuzz;
mod head;
mod manifest;
mod names;
mod packet;
mod peer_packets;
mod report;
mod share;
mod stream;
mod ticket;

/// Bytes of hexadecimal digits; blanks are ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    data_encoding::HEXLOWER.decode(digits.as_bytes()).unwrap()
}

/// The bytes with one bit changed, for every bit.
fn flips(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..bytes.len() * 8).map(|bit| {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 0x80 >> (bit % 8);
        flipped
    })
}

/// All proper prefixes of the bytes.
fn truncations(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..bytes.len()).map(|length| &bytes[..length])
}
