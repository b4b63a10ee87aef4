//! The digests that a sender announces for a file, and their check. They are not signed, so they
//! detect accidental changes only.

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::Sha256;

/// The digests that a sender gives of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digests {
    pub(super) md5: Option<[u8; 16]>,
    pub(super) sha1: Option<[u8; 20]>,
    pub(super) sha256: Option<[u8; 32]>,
}

impl Digests {
    /// Begins to check a file.
    pub(super) fn check(&self) -> DigestCheck {
        DigestCheck {
            md5: self.md5.map(|expected| Expected { hasher: Md5::new(), expected }),
            // SHA-256 makes SHA-1 superfluous.
            sha1: self
                .sha1
                .filter(|_| self.sha256.is_none())
                .map(|expected| Expected { hasher: Sha1::new(), expected }),
            sha256: self.sha256.map(|expected| Expected { hasher: Sha256::new(), expected }),
            bytes: 0,
        }
    }
}

/// A file's bytes so far: their number and their digests.
pub(super) struct DigestCheck {
    md5: Option<Expected<Md5, 16>>,
    sha1: Option<Expected<Sha1, 20>>,
    sha256: Option<Expected<Sha256, 32>>,
    bytes: u64,
}

struct Expected<D, const N: usize> {
    hasher: D,
    expected: [u8; N],
}

impl<D: Digest, const N: usize> Expected<D, N> {
    fn matches(self) -> bool {
        self.hasher.finalize().as_slice() == self.expected
    }
}

impl DigestCheck {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.md5.iter_mut().for_each(|it| it.hasher.update(bytes));
        self.sha1.iter_mut().for_each(|it| it.hasher.update(bytes));
        self.sha256.iter_mut().for_each(|it| it.hasher.update(bytes));
        self.bytes += bytes.len() as u64;
    }

    /// Compares the digests.
    ///
    /// # Errors
    /// What is wrong with the bytes, for people.
    pub(super) fn finish(self) -> Result<(), &'static str> {
        if self.md5.is_some_and(|it| !it.matches()) {
            return Err("its MD5 is not what the file delivery table says");
        }
        if self.sha1.is_some_and(|it| !it.matches()) {
            return Err("its SHA-1 is not what its header says");
        }
        if self.sha256.is_some_and(|it| !it.matches()) {
            return Err("its SHA-256 is not what its header says");
        }
        Ok(())
    }
}
