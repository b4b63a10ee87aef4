//! The file by which a mirror says what it has: receivers need its address alone.

use crate::certificate::content_head;
use crate::error::Error;
use fontana_wire::{HeadRecords, Manifest, PublicKey, SecretKey};
use std::time::Duration;

/// A session head as a file on a mirror, beside the content. Nothing is sent with it; it names the
/// manifest, and the publisher may sign it.
///
/// The file has the bytes of a [`SessionHead`](fontana_wire::SessionHead) without padding. A mirror
/// has one such file, for one content; a newer version replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorHead {
    bytes: Vec<u8>,
    publisher: Option<PublicKey>,
}

impl MirrorHead {
    /// The name of the file.
    pub const FILE_NAME: &'static str = "fontana.head";

    /// The head of `manifest`, signed by `publisher`. `lifetime`: the time after which the
    /// signature expires; `None`: never.
    ///
    /// # Errors
    /// [`IoError::System`](crate::IoError::System) if the system has no random numbers.
    pub fn issue(
        manifest: &Manifest,
        publisher: Option<&SecretKey>,
        lifetime: Option<Duration>,
    ) -> Result<Self, Error> {
        let head = content_head(manifest, lifetime, HeadRecords::default())?;
        let publisher_key = publisher.map(SecretKey::public_key);
        Ok(Self { bytes: head.emit(publisher), publisher: publisher_key })
    }

    /// The content of the file.
    pub fn file_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The publisher, if the head is signed.
    pub fn publisher(&self) -> Option<PublicKey> {
        self.publisher
    }
}
