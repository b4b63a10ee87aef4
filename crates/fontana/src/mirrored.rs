//! Content for mirrors: its manifest, without a session.
//!
//! ```no_run
//! use fontana::MirroredContent;
//!
//! let content = MirroredContent::describe(&["photos".into()], MirroredContent::BLOCK_BYTES, 1)?;
//! std::fs::write(content.file_name(), content.file_bytes())?;
//! println!("{}", content.hash());
//! let number = fontana::wire::ShelfNumber::new(1).ok_or("1 to 15")?;
//! content.write_shelf("/srv/shelf".as_ref(), number, 400)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::content::{BlockVerifier, Content, ContentObject, ContentOptions};
use crate::error::{Error, SetupError};
use crate::geometry::Code;
use crate::system::default_workers;
use fontana_store::Filter;
use fontana_wire::{ContentEncoding, Hash, Manifest, ShelfIndex, ShelfNumber, Toi, manifest_hash};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod shelf;

/// Files that mirrors have, described by a manifest. Receivers with the manifest's hash
/// (`ReceiverBuilder::mirrors`) can verify every block of them.
#[derive(Clone)]
pub struct MirroredContent {
    manifest: Manifest,
    bytes: Vec<u8>,
    /// The objects on the disk.
    pub(crate) objects: Vec<ContentObject>,
    /// Of objects whose files were not read, and only have the sizes and times of the manifest.
    #[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "servers check blocks"))]
    pub(crate) verifiers: BTreeMap<Toi, Arc<BlockVerifier>>,
    left_out: Vec<Arc<Error>>,
}

/// What [`MirroredContent::write_shelf`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShelfReport {
    /// Repair symbols of the shelf.
    pub symbols: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Files that were written. The others were there, and are right.
    pub written: u64,
}

impl MirroredContent {
    /// Default bytes of a block: what is requested again if a mirror sends a wrong byte.
    pub const BLOCK_BYTES: u64 = 1 << 20;
    /// Bytes of a symbol: that of a session on Ethernet, so that multicast may bring the same ones.
    const SYMBOL_SIZE: u16 = 1400;

    /// Reads and hashes `files`, which mirrors have under their names. Blocks have about
    /// `block_bytes` bytes, and more if a file has more than 255 of them. `version` tells receivers
    /// that know the publisher's key which content is newer. What cannot be read is
    /// [left out](Self::left_out).
    ///
    /// # Errors
    /// [`Error`] if nothing can be read, or two files have one name.
    pub fn describe(files: &[PathBuf], block_bytes: u64, version: u64) -> Result<Self, Error> {
        if files.is_empty() {
            return Err(SetupError::NothingToSend.into());
        }
        let symbols = block_bytes.div_ceil(Self::SYMBOL_SIZE.into());
        let longest = Code::RaptorQ.max_block_symbols();
        let block_symbols = u32::try_from(symbols).unwrap_or(longest).clamp(1, longest);
        let filter = Filter::default();
        let options = ContentOptions { files, version, ..options(&filter, block_symbols) };
        Ok(Self::new(Content::examine(&options)?))
    }

    /// The content of a manifest in `files`, for example that of a running session. A file with
    /// the manifest's length and time is taken to be the same, and a server compares its blocks
    /// before it uses them; others are read and compared.
    ///
    /// # Errors
    /// [`Error`] if a file cannot be read, or is not what the manifest says.
    pub fn of_manifest(files: &[PathBuf], manifest: &Manifest) -> Result<Self, Error> {
        let filter = Filter::default();
        let options = ContentOptions { files, ..options(&filter, 1) };
        Ok(Self::new(Content::of_manifest(&options, manifest)?))
    }

    fn new(content: Content) -> Self {
        let Content { manifest, objects, verifiers, left_out, .. } = content;
        Self { bytes: manifest.emit(), manifest, objects, verifiers, left_out }
    }

    /// The errors of files and directories that are not in the content, because they cannot be
    /// read.
    pub fn left_out(&self) -> &[Arc<Error>] {
        &self.left_out
    }

    /// The content of a manifest in a directory into which a receiver has received all of it. The
    /// files are not read again: a receiver has verified them.
    ///
    /// # Errors
    /// [`Error`] if a file is missing, or was written to since.
    pub fn received(manifest: &Manifest, directory: &Path) -> Result<Self, Error> {
        Ok(Self::new(Content::of_directory(manifest, directory)?))
    }

    /// Writes a shelf: an index, and for each object a file with repair symbols
    /// ([`ShelfIndex`]). A block gets `stretch_permille` symbols for each thousand source symbols,
    /// and at least one. Files that are there are compared, and replaced if they differ. Each file
    /// is complete or absent, the index last.
    ///
    /// # Errors
    /// [`Error`] if a file cannot be read or has changed, or the directory cannot be written to.
    pub fn write_shelf(
        &self,
        directory: &Path,
        number: ShelfNumber,
        stretch_permille: u16,
    ) -> Result<ShelfReport, Error> {
        let index = ShelfIndex { manifest: self.hash(), number, stretch_permille };
        shelf::write(&index, &self.objects, directory, default_workers())
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The hash of the manifest, which tickets have.
    pub fn hash(&self) -> Hash {
        manifest_hash(&self.bytes)
    }

    /// The name under which a mirror has the manifest, beside the files.
    pub fn file_name(&self) -> String {
        manifest_file_name(self.hash())
    }

    /// The content of that file: the manifest and its hash, as of `fontana send --manifest`.
    pub fn file_bytes(&self) -> Vec<u8> {
        file_bytes(&self.bytes, self.hash())
    }
}

fn file_bytes(manifest: &[u8], hash: Hash) -> Vec<u8> {
    [manifest, &hash.0].concat()
}

/// The content of the file with a manifest on a mirror.
#[cfg(feature = "serve")]
pub(crate) fn manifest_file_bytes(manifest: &Manifest, hash: Hash) -> Vec<u8> {
    file_bytes(&manifest.emit(), hash)
}

/// The name of the file with a manifest on a mirror: that of `fontana send --manifest`, by its
/// hash.
pub(crate) fn manifest_file_name(hash: Hash) -> String {
    format!("{hash}.fontana")
}

/// What all content for mirrors has in common: RaptorQ, and symbols of one size.
fn options(filter: &Filter, block_symbols: u32) -> ContentOptions<'_> {
    ContentOptions {
        files: &[],
        in_memory: &[],
        parts: &[],
        name: None,
        filter,
        code: Code::RaptorQ,
        symbol_size: MirroredContent::SYMBOL_SIZE,
        block_symbols,
        version: 1,
        content_encoding: ContentEncoding::Null,
        plain: false,
        signed: false,
        verifies: false,
        copies: None,
        workers: default_workers(),
    }
}

impl std::fmt::Debug for MirroredContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("MirroredContent");
        text.field("manifest", &self.manifest).finish_non_exhaustive()
    }
}
