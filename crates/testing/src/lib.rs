//! Helpers of the tests of several crates: noise that codes, compression and holes cannot shorten,
//! the same in each run, and skips with a message. A dev-dependency only
//! (`crates/cli/tests/arrows.rs`).
//!
//! ```
//! use fontana_testing::noise;
//!
//! assert_eq!(noise(1000, 7), noise(1000, 7));
//! assert_ne!(noise(1000, 7), noise(1000, 8));
//! assert_eq!(noise(3, 7), noise(1000, 7)[..3]);
//! ```

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// `length` bytes of noise from a seed.
#[must_use]
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    let mut words = Words::new(seed);
    while bytes.len() < length {
        bytes.extend(words.next_word().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Creates a file with `length` bytes of noise, which need not fit into memory.
///
/// # Errors
/// The file cannot be created or written.
pub fn noise_file(path: &Path, length: u64, seed: u64) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 18, File::create(path)?);
    write_noise(&mut file, length, seed)?;
    file.flush()
}

/// Writes `length` bytes of noise to a writer, at its present position.
///
/// # Errors
/// Those of the writer.
pub fn write_noise(to: &mut impl Write, length: u64, seed: u64) -> io::Result<()> {
    let mut words = Words::new(seed);
    let mut left = length;
    while left > 0 {
        let word = words.next_word().to_le_bytes();
        let count = left.min(8) as usize;
        to.write_all(&word[..count])?;
        left -= count as u64;
    }
    Ok(())
}

/// Changes a staging directory's journal into one that was written during another boot of the host,
/// as after a power failure. Its first group, after the eight bytes of the format, contains only
/// the boot id (`crates/store/src/journal.rs`).
///
/// # Panics
/// If the journal ends before.
pub fn written_before_a_restart(journal: &mut [u8]) {
    journal[16..32].fill(0xA5);
    let crc = crc32fast::hash(&journal[16..33]).to_be_bytes();
    journal[12..16].copy_from_slice(&crc);
}

/// Prints that a test is skipped to the terminal, past the test harness, which captures the output
/// of passing tests.
///
/// # Panics
/// If tests must not be skipped: `CI=true`.
pub fn skip(reason: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "skipped under CI: {reason}");
    let _ = writeln!(io::stderr(), "SKIPPED: {reason}");
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
/// Separate from that of `fontana-proto`, which this crate is used to test.
struct Words(u64);

impl Words {
    fn new(seed: u64) -> Self {
        // Scattered: seeds that differ by the generator's own step would give the same words,
        // shifted.
        Self(Self(seed).next_word())
    }

    fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    #[test]
    fn a_file_has_the_bytes_of_the_same_seed() {
        for length in [0, 1, 7, 8, 9, 20_000] {
            let mut written = Vec::new();
            super::write_noise(&mut written, length, 3).unwrap();
            assert_eq!(written, super::noise(length as usize, 3));
        }
    }
}
