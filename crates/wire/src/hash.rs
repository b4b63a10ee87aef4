//! BLAKE3 hashes of blocks, objects, trees, manifests and stream indexes.

use std::fmt;
use std::str::FromStr;

const BLOCK_CONTEXT: &str = "fontana 2026-11 block v1";
const OBJECT_CONTEXT: &str = "fontana 2026-11 object v1";
const RUN_CONTEXT: &str = "fontana 2026-11 run v1";
const TREE_CONTEXT: &str = "fontana 2026-11 tree v1";
const MANIFEST_CONTEXT: &str = "fontana 2026-11 manifest v1";
const STREAM_INDEX_CONTEXT: &str = "fontana 2026-11 stream index v1";
/// Context of [`whole_stream_hash`].
const WHOLE_STREAM_CONTEXT: &str = "fontana 2026-11 whole stream v1";
/// Context of [`shelf_index_hash`].
const SHELF_INDEX_CONTEXT: &str = "fontana 2026-11 shelf index v1";
/// Context of [`fresh_index_hash`].
const FRESH_INDEX_CONTEXT: &str = "fontana 2026-11 fresh index v1";
/// Context of [`held_index_hash`].
const HELD_INDEX_CONTEXT: &str = "fontana 2026-11 held index v1";

/// A 32-byte hash. Its text form is 64 hexadecimal digits, written in lower case.
///
/// Every kind of hash has its own key, derived from a context string by BLAKE3's `derive_key` mode.
/// A hash of one kind therefore never equals a hash of another kind:
///
/// ```text
/// block    = H("fontana 2026-11 block v1",    the object's bytes that lie in the source block)
/// run      = H("fontana 2026-11 run v1",      a run of the object's bytes)
/// object   = H("fontana 2026-11 object v1",   u64 transfer length ‖ block 0 ‖ block 1 ‖ ...)
/// tree     = H("fontana 2026-11 tree v1",     (u32 TOI ‖ object) for every object, by TOI)
/// manifest = H("fontana 2026-11 manifest v1", the manifest's bytes)
/// index    = H("fontana 2026-11 stream index v1", the stream index's bytes)
/// stream   = H("fontana 2026-11 whole stream v1", the sender's instance id)
/// ```
///
/// Integers are big-endian. A block excludes the padding of the object's last symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; Hash::SIZE]);

impl Hash {
    /// Size of a hash in bytes.
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

/// Reason why a text is not 32 bytes in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HexError {
    /// A length other than 64 digits.
    #[error("{actual} characters, 64 hexadecimal digits are right")]
    Length {
        /// Length of the text in bytes.
        actual: usize,
    },
    /// A character other than 0-9, a-f, A-F.
    #[error("character {position} is not a hexadecimal digit")]
    Digit {
        /// Position of the character, counted from 1.
        position: usize,
    },
}

/// Parses 64 hexadecimal digits of either case.
pub(crate) fn parse_hex(text: &str) -> Result<[u8; 32], HexError> {
    let length = HexError::Length { actual: text.len() };
    if text.len() != 64 {
        return Err(length);
    }
    let bytes = data_encoding::HEXLOWER_PERMISSIVE
        .decode(text.as_bytes())
        .map_err(|error| HexError::Digit { position: error.position.saturating_add(1) })?;
    bytes.try_into().map_err(|_| length)
}

impl FromStr for Hash {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        parse_hex(text).map(Self)
    }
}

/// Hasher of one source block, whose bytes arrive in the object's order.
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
    /// A hasher without input.
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(BLOCK_CONTEXT))
    }

    /// Adds the next bytes of the block, any number of them. Pieces of 16 KiB and more use all SIMD
    /// lanes and are hashed several times faster than small ones.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Hash of all bytes added so far.
    pub fn finalize(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

impl Default for BlockHasher {
    fn default() -> Self {
        Self::new()
    }
}

/// Hasher of one run of an object's bytes, which arrive in the object's order
/// ([`FileRun`](crate::FileRun)).
#[derive(Clone, Debug)]
pub struct RunHasher(blake3::Hasher);

impl RunHasher {
    /// A hasher without input.
    pub fn new() -> Self {
        Self(blake3::Hasher::new_derive_key(RUN_CONTEXT))
    }

    /// Adds the next bytes of the run, any number of them.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Hash of all bytes added so far.
    pub fn finalize(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

impl Default for RunHasher {
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

/// Hash of a manifest's bytes. Tickets and session heads pin it.
pub fn manifest_hash(manifest: &[u8]) -> Hash {
    hash_in(MANIFEST_CONTEXT, manifest)
}

/// Hash of a stream index's bytes. Session heads pin it.
pub fn stream_index_hash(index: &[u8]) -> Hash {
    hash_in(STREAM_INDEX_CONTEXT, index)
}

/// Hash of a sender's instance id, which stands for the whole of its stream.
pub(crate) fn whole_stream_hash(instance: &[u8; 16]) -> Hash {
    hash_in(WHOLE_STREAM_CONTEXT, instance)
}

/// Hash at the end of the index of a shelf, of the bytes before it.
pub(crate) fn shelf_index_hash(index: &[u8]) -> Hash {
    hash_in(SHELF_INDEX_CONTEXT, index)
}

/// Hash at the end of the index of a server of fresh symbols, of the bytes before it.
pub(crate) fn fresh_index_hash(index: &[u8]) -> Hash {
    hash_in(FRESH_INDEX_CONTEXT, index)
}

/// Hash at the end of the index of a mirror that is still receiving, of the bytes before it.
pub(crate) fn held_index_hash(index: &[u8]) -> Hash {
    hash_in(HELD_INDEX_CONTEXT, index)
}

fn hash_in(context: &str, message: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    hasher.update(message);
    Hash(*hasher.finalize().as_bytes())
}
