//! Helpers of the tests of several crates: noise that codes, compression and holes cannot shorten,
//! the same in each run, choices of a fuzzer ([`Script`]), programs that are run to their ends
//! ([`Run`]), their [`events`], sizes that grow only
//! on purpose ([`ratchet`]), and skips with a message. A dev-dependency only
//! (`crates/cli/tests/house/arrows.rs`).
//!
//! ```
//! use fontana_testing::noise;
//!
//! assert_eq!(noise(1000, 7), noise(1000, 7));
//! assert_ne!(noise(1000, 7), noise(1000, 8));
//! assert_eq!(noise(3, 7), noise(1000, 7)[..3]);
//! ```

#![expect(clippy::panic, reason = "how a test fails")]

pub mod events;
mod ratchet;
mod run;
mod script;
mod words;

pub use ratchet::{ratchet, ratchets};
pub use run::{Run, arguments, cargo, example, give, program};
pub use script::Script;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use words::Words;

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
