//! What content is recognized by: BLAKE3 hashes of blocks, objects, trees and manifests.
//!
//! Every kind of hash has its own key, derived from a context string by BLAKE3's `derive_key` mode,
//! so that a hash of one kind can never pass for one of another:
//!
//! ```text
//! block    = H("fontana 2026-11 block v1",    the object's bytes that lie in the source block)
//! object   = H("fontana 2026-11 object v1",   u64 transfer length ‖ block 0 ‖ block 1 ‖ ...)
//! tree     = H("fontana 2026-11 tree v1",     (u32 TOI ‖ object) for every object, by TOI)
//! manifest = H("fontana 2026-11 manifest v1", the manifest's bytes)
//! index    = H("fontana 2026-11 stream index v1", the stream index's bytes)
//! ```
//!
//! Integers are big-endian. The padding of an object's last symbol is no part of a block.

use std::fmt;
use std::str::FromStr;

const BLOCK_CONTEXT: &str = "fontana 2026-11 block v1";
const OBJECT_CONTEXT: &str = "fontana 2026-11 object v1";
const TREE_CONTEXT: &str = "fontana 2026-11 tree v1";
const MANIFEST_CONTEXT: &str = "fontana 2026-11 manifest v1";
const STREAM_INDEX_CONTEXT: &str = "fontana 2026-11 stream index v1";

/// A 32-byte hash. Its text form is 64 hexadecimal digits, written in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; Hash::SIZE]);

impl Hash {
    /// Bytes in a hash.
    pub const SIZE: usize = 32;
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// Why a text is not 32 bytes in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexError {
    /// Not the length of 32 bytes.
    #[error("{actual} characters, 64 hexadecimal digits are right")]
    Length {
        /// Bytes of the text.
        actual: usize,
    },
    /// Something other than 0-9, a-f, A-F.
    #[error("character {position} is not a hexadecimal digit")]
    Digit {
        /// Counted from 1.
        position: usize,
    },
}

/// 32 bytes from 64 hexadecimal digits of either case.
pub(crate) fn parse_hex(text: &str) -> Result<[u8; 32], HexError> {
    let length = HexError::Length { actual: text.len() };
    if text.len() != 64 {
        return Err(length);
    }
    let bytes = data_encoding::HEXLOWER_PERMISSIVE
        .decode(text.as_bytes())
        .map_err(|error| HexError::Digit { position: error.position + 1 })?;
    bytes.try_into().map_err(|_| length)
}

impl FromStr for Hash {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        parse_hex(text).map(Self)
    }
}

/// Hashes one source block as its bytes come along, in the object's order.
///
/// ```
/// # use fontana_wire::BlockHasher;
/// let mut hasher = BlockHasher::new();
/// hasher.update(b"water");
/// let in_one = hasher.finalize();
///
/// let mut hasher = BlockHasher::new();
/// hasher.update(b"wa");
/// hasher.update(b"ter");
/// assert_eq!(hasher.finalize(), in_one);
/// ```
#[derive(Clone, Debug)]
pub struct BlockHasher(blake3::Hasher);

impl BlockHasher {
    /// Nothing hashed yet.
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(BLOCK_CONTEXT))
    }

    /// Takes the next bytes of the block, any number of them. Large pieces are hashed several times
    /// faster than small ones: 16 KiB and more keep all lanes busy.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of everything taken so far.
    pub fn finalize(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

impl Default for BlockHasher {
    fn default() -> Self {
        Self::new()
    }
}

/// Hash of an object from its length in bytes and the hashes of its source blocks, in order.
pub fn object_hash<'a>(
    transfer_length: u64,
    block_hashes: impl IntoIterator<Item = &'a Hash>,
) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key(OBJECT_CONTEXT);
    hasher.update(&transfer_length.to_be_bytes());
    for block in block_hashes {
        hasher.update(&block.0);
    }
    Hash(*hasher.finalize().as_bytes())
}

/// Hash over all objects of a manifest, given with their TOIs in ascending order.
pub fn tree_hash(objects: impl IntoIterator<Item = (u32, Hash)>) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key(TREE_CONTEXT);
    for (toi, object) in objects {
        hasher.update(&toi.to_be_bytes());
        hasher.update(&object.0);
    }
    Hash(*hasher.finalize().as_bytes())
}

/// Hash of a manifest's bytes: what a ticket or a session head pins.
pub fn manifest_hash(manifest: &[u8]) -> Hash {
    hash_in(MANIFEST_CONTEXT, manifest)
}

/// Hash of a stream index's bytes: what a session head names.
pub fn stream_index_hash(index: &[u8]) -> Hash {
    hash_in(STREAM_INDEX_CONTEXT, index)
}

fn hash_in(context: &str, message: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(message);
    Hash(*hasher.finalize().as_bytes())
}
