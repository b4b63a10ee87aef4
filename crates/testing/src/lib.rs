//! What the tests of several crates share: noise that no code, compression or hole shortens, the
//! same whenever a test runs, and loud skips. A dev-dependency only (`crates/cli/tests/arrows.rs`).
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

/// `length` bytes of the noise of this seed.
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

/// A file with the same bytes, which need not fit into memory.
///
/// # Errors
/// What the system says when the file cannot be created or written.
pub fn noise_file(path: &Path, length: u64, seed: u64) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 18, File::create(path)?);
    write_noise(&mut file, length, seed)?;
    file.flush()
}

/// The same bytes to anything, at its present position.
///
/// # Errors
/// The writer's.
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

/// Makes a staging directory's journal one of another run of the machine, which is what a machine
/// finds that was switched off. Its first group, after the eight bytes of the format, holds the
/// name of the run that it was begun in alone (`crates/store/src/journal.rs`).
///
/// # Panics
/// If the journal ends before.
pub fn written_before_a_restart(journal: &mut [u8]) {
    journal[16..32].fill(0xA5);
    let crc = crc32fast::hash(&journal[16..33]).to_be_bytes();
    journal[12..16].copy_from_slice(&crc);
}

/// Says on the terminal, past the test harness, which keeps what passing tests print to itself,
/// that a test could not do its work.
///
/// # Panics
/// Where skipping is not acceptable: `CI=true`.
pub fn skip(reason: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "skipped under CI: {reason}");
    let _ = writeln!(io::stderr(), "SKIPPED: {reason}");
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Not the
/// one of `fontana-proto`, which this crate is used to test.
struct Words(u64);

impl Words {
    fn new(seed: u64) -> Self {
        // Scattered: seeds at the generator's own step would give each other's words, shifted.
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
