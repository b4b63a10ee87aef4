//! The head that a session has shown, and the manifest or index that the head names.

use crate::receiver::collector::Collector;
use fontana_wire::{ContentKind, Hash, Manifest, Payload, PublicKey, SessionHead, StreamIndex};
use std::sync::Arc;

/// What a session of Fontana has announced so far.
#[derive(Debug, Default)]
pub(in crate::receiver) struct HeadState {
    /// The head as it arrived. A repetition costs one comparison.
    bytes: Vec<u8>,
    /// The head that was refused last, for the same reason.
    refused: Vec<u8>,
    head: Option<Arc<SessionHead>>,
    /// The key that signs the head, if it is a stream's.
    signer: Option<PublicKey>,
    collector: Option<Collector>,
    /// The complete manifest or index.
    metadata: Option<Metadata>,
}

/// What a head names, complete and verified.
#[derive(Clone, Debug)]
pub(in crate::receiver) enum Metadata {
    /// A manifest, and its hash.
    Manifest(Hash, Arc<Manifest>),
    /// The newest complete index of a stream.
    Index(Arc<StreamIndex>),
}

impl HeadState {
    pub(in crate::receiver) fn head(&self) -> Option<&Arc<SessionHead>> {
        self.head.as_ref()
    }

    pub(in crate::receiver) fn signer(&self) -> Option<PublicKey> {
        self.signer
    }

    pub(in crate::receiver) fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Whether the head names a manifest and the manifest is complete.
    pub(in crate::receiver) fn has_manifest(&self) -> bool {
        matches!(self.metadata, Some(Metadata::Manifest(..)))
    }

    /// Whether symbols of the manifest or index can be collected.
    pub(in crate::receiver) fn is_collecting(&self) -> bool {
        self.collector.is_some()
    }

    /// Whether these bytes are the head that was taken or refused last.
    pub(in crate::receiver) fn knows(&self, bytes: &[u8]) -> bool {
        self.head.is_some() && self.bytes == bytes || self.refused == bytes
    }

    pub(in crate::receiver) fn refuse(&mut self, bytes: &[u8]) {
        self.refused = bytes.to_vec();
    }

    /// Whether a head of a stream says nothing beyond the one that was taken: versions only grow.
    pub(in crate::receiver) fn is_old_stream_head(
        &self,
        head: &SessionHead,
        signer: PublicKey,
    ) -> bool {
        let known = self.head.as_ref().filter(|_| self.signer == Some(signer));
        known.is_some_and(|known| {
            known.instance == head.instance && known.manifest_version >= head.manifest_version
        })
    }

    /// Takes a head. Symbols of another manifest or index are dropped.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        head: SessionHead,
        signer: Option<PublicKey>,
        max_metadata_bytes: u64,
    ) {
        let is_same = self.head.as_ref().is_some_and(|old| old.manifest == head.manifest);
        self.bytes = bytes.to_vec();
        if !is_same {
            let is_other = |hash: &Hash| *hash != head.manifest.hash;
            if matches!(&self.metadata, Some(Metadata::Manifest(hash, _)) if is_other(hash)) {
                self.metadata = None;
            }
            self.collector = Collector::new(head.manifest.oti, max_metadata_bytes);
        }
        (self.head, self.signer) = (Some(Arc::new(head)), signer);
    }

    /// Takes a symbol of the manifest or index. Its bytes, when they are complete and `hash` of
    /// them is the one in the head.
    pub(in crate::receiver) fn push(
        &mut self,
        payload: &Payload<'_>,
        hash: impl Fn(&[u8]) -> Hash,
    ) -> Option<Vec<u8>> {
        let (Some(head), Some(collector)) = (&self.head, &mut self.collector) else { return None };
        let bytes = collector.push(payload.sbn, payload.esi, payload.symbol)?;
        if hash(&bytes) != head.manifest.hash {
            // A symbol was forged, or is of another version: collect them again.
            self.collector = Collector::new(collector.oti(), u64::MAX);
            return None;
        }
        self.collector = None;
        Some(bytes)
    }

    /// Keeps the complete manifest or index. Symbols of it are not collected any more.
    pub(in crate::receiver) fn complete(&mut self, metadata: Metadata) {
        self.collector = None;
        self.metadata = Some(metadata);
    }

    /// Drops the symbols of a manifest that is complete elsewhere.
    pub(in crate::receiver) fn stop_collecting(&mut self) {
        self.collector = None;
    }

    /// The head, if it declares the congestion control that receivers follow. A stream uses channel
    /// 0 alone.
    pub(in crate::receiver) fn declaration(&self) -> Option<&Arc<SessionHead>> {
        self.head.as_ref().filter(|head| head.kind == ContentKind::Manifest)
    }
}
