//! The file that is sent, its copies, and the memory that they take.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// Bytes of one read or write.
const PIECE: usize = 1 << 20;

/// Creates a file that no program can shorten.
pub(crate) fn write_noise(path: &Path, size: u64) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(PIECE, File::create(path)?);
    let mut state = 1_u64;
    for _ in 0..size / 8 {
        // Xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators".
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        file.write_all(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes())?;
    }
    file.flush()
}

/// Writes and deletes this many bytes. The first use of a page of a virtual machine takes the host
/// some time, which is no program's.
pub(crate) fn warm(directory: &Path, bytes: u64) -> io::Result<()> {
    let path = directory.join("warm");
    let mut file = File::create(&path)?;
    let piece = vec![0; PIECE];
    for _ in 0..bytes.div_ceil(PIECE as u64) {
        file.write_all(&piece)?;
    }
    fs::remove_file(path)
}

/// Whether two files have the same bytes.
pub(crate) fn are_equal(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut of_a, mut of_b) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
    loop {
        of_a.clear();
        of_b.clear();
        Read::by_ref(&mut a).take(PIECE as u64).read_to_end(&mut of_a)?;
        Read::by_ref(&mut b).take(PIECE as u64).read_to_end(&mut of_b)?;
        if of_a != of_b {
            return Ok(false);
        }
        if of_a.is_empty() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    #[allow(unused_imports)]
    use super::*;

    #[test]
    fn files_differ_by_a_byte_or_their_length() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| directory.path().join(name));
        write_noise(&a, 3 << 20).unwrap();
        let mut bytes = fs::read(&a).unwrap();
        fs::write(&b, &bytes).unwrap();
        assert!(are_equal(&a, &b).unwrap());
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&b, &bytes).unwrap();
        assert!(!are_equal(&a, &b).unwrap());
        fs::write(&b, &bytes[1..]).unwrap();
        assert!(!are_equal(&a, &b).unwrap());
    }
}
