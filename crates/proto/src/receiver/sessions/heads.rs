//! The heads that a session has shown, and the manifest or index that they name.

use crate::event::Rejection;
use crate::receiver::collector::Collector;
use crate::time::Instant;
use fontana_fec::Oti;
use fontana_wire::{
    ContentKind, Hash, Manifest, ObjectRef, Payload, PublicKey, SessionHead, StreamIndex,
};
use std::sync::Arc;
use std::time::Duration;

/// Heads of a session whose manifests are collected at the same time.
const MAX_HEADS: usize = 4;
/// Time after which a head that is not repeated gives way to another one: more than the longest
/// interval between two heads of a sender, which is two seconds.
const STALE_AFTER: Duration = Duration::from_secs(3);
/// Time for which symbols may show that a new head is the sender's, before another one displaces
/// it.
const PROBATION: Duration = Duration::from_millis(50);

/// What a session of Fontana has announced so far.
#[derive(Debug, Default)]
pub(in crate::receiver) struct HeadState {
    /// The heads that were taken, at most [`MAX_HEADS`]: the one in force first. The others are
    /// those that an attacker, or a restarted sender, has sent in the session's name.
    heads: Vec<TakenHead>,
    /// The head that was refused last, and why; `None` if the one in force is better.
    refused: Vec<u8>,
    refused_for: Option<Rejection>,
    /// The last head of the version that is here already.
    kept: Option<Arc<SessionHead>>,
    /// The complete manifest or index.
    metadata: Option<Metadata>,
}

/// A head, and the symbols of what it names.
#[derive(Debug)]
struct TakenHead {
    /// The head as it arrived. A repetition costs one comparison.
    bytes: Vec<u8>,
    head: Arc<SessionHead>,
    /// The key that signs the head, if it is a stream's.
    signer: Option<PublicKey>,
    /// `None`: the object is complete, or cannot be collected.
    collector: Option<Collector>,
    taken_at: Instant,
    repeated_at: Instant,
}

/// What a head names, complete and verified.
#[derive(Clone, Debug)]
pub(in crate::receiver) enum Metadata {
    /// A manifest, and its hash.
    Manifest(Hash, Arc<Manifest>),
    /// The newest complete index of a stream.
    Index(Arc<StreamIndex>),
}

/// The heads whose objects a symbol may belong to.
#[derive(Clone, Copy, Debug)]
pub(in crate::receiver) enum Candidates {
    /// The one in force.
    InForce,
    /// All that name an object with this transmission information; if none does, the one in force.
    All(Oti),
}

impl HeadState {
    /// The head in force.
    pub(in crate::receiver) fn head(&self) -> Option<&Arc<SessionHead>> {
        self.heads.first().map(|taken| &taken.head)
    }

    pub(in crate::receiver) fn signer(&self) -> Option<PublicKey> {
        self.heads.first()?.signer
    }

    pub(in crate::receiver) fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Whether the head names a manifest and the manifest is complete.
    pub(in crate::receiver) fn has_manifest(&self) -> bool {
        matches!(self.metadata, Some(Metadata::Manifest(..)))
    }

    /// Whether symbols of a manifest or index can be collected.
    pub(in crate::receiver) fn is_collecting(&self) -> bool {
        self.heads.iter().any(|taken| taken.collector.is_some())
    }

    /// Whether the head in force was not repeated for so long that another one may replace it.
    pub(in crate::receiver) fn is_stale(&self, now: Instant) -> bool {
        let silent = |taken: &TakenHead| now.saturating_since(taken.repeated_at) >= STALE_AFTER;
        self.heads.first().is_some_and(silent)
    }

    /// Whether these bytes are a head that was taken or refused, and need no check. All but the
    /// head in force are checked again when that is stale.
    pub(in crate::receiver) fn knows(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let at = self.heads.iter().position(|taken| taken.bytes == bytes);
        if let Some(taken) = at.and_then(|at| self.heads.get_mut(at)) {
            taken.repeated_at = now;
        }
        at == Some(0) || ((at.is_some() || self.refused == bytes) && !self.is_stale(now))
    }

    /// Remembers a head that is not taken. Without a reason: the head in force is a better one.
    pub(in crate::receiver) fn refuse(&mut self, bytes: &[u8], reason: Option<Rejection>) {
        (self.refused, self.refused_for) = (bytes.to_vec(), reason);
    }

    /// The last head of the version that is here already.
    pub(in crate::receiver) fn kept(&self) -> Option<&Arc<SessionHead>> {
        self.kept.as_ref()
    }

    /// Notes a head that the publisher has signed, and that was refused for this reason.
    pub(in crate::receiver) fn note_refused(&mut self, head: &SessionHead, reason: Rejection) {
        if matches!(reason, Rejection::OldVersion { version, newer_than } if version == newer_than)
        {
            self.kept = Some(Arc::new(head.clone()));
        }
    }

    /// Why these bytes were refused last.
    pub(in crate::receiver) fn refusal(&self, bytes: &[u8]) -> Option<Rejection> {
        self.refused_for.filter(|_| self.refused == bytes)
    }

    /// Whether a head of a stream says nothing beyond the one that was taken: versions only grow.
    pub(in crate::receiver) fn is_old_stream_head(
        &self,
        head: &SessionHead,
        signer: PublicKey,
    ) -> bool {
        let known = self.head().filter(|_| self.signer() == Some(signer));
        known.is_some_and(|known| {
            known.instance == head.instance && known.manifest_version >= head.manifest_version
        })
    }

    /// Takes a head, which is in force from now on.
    pub(super) fn take(
        &mut self,
        now: Instant,
        bytes: &[u8],
        head: SessionHead,
        signer: Option<PublicKey>,
        max_metadata_bytes: u64,
    ) {
        let ObjectRef { oti, hash, .. } = head.manifest;
        if matches!(&self.metadata, Some(Metadata::Manifest(known, _)) if *known != hash) {
            self.metadata = None;
        }
        let known = self.heads.iter().position(|taken| taken.head.manifest == head.manifest);
        let collector = match known.map(|at| self.heads.remove(at)) {
            Some(TakenHead { collector: Some(collector), .. }) => Some(collector),
            // It is complete.
            Some(_) if self.metadata.is_some() => None,
            _ => Collector::new(oti, max_metadata_bytes),
        };
        if signer.is_some() {
            // A stream's versions replace each other.
            self.heads.clear();
        }
        let (bytes, head) = (bytes.to_vec(), Arc::new(head));
        let taken = TakenHead { bytes, head, signer, collector, taken_at: now, repeated_at: now };
        self.heads.insert(0, taken);
        self.heads.truncate(MAX_HEADS);
    }

    /// Takes a head that is not in force, but becomes so if its manifest is the first to be
    /// complete.
    pub(in crate::receiver) fn take_beside(
        &mut self,
        now: Instant,
        bytes: &[u8],
        head: SessionHead,
        max_metadata_bytes: u64,
    ) {
        let is_collected = |taken: &TakenHead| taken.head.manifest == head.manifest;
        let collector = match self.heads.iter().any(is_collected) || self.has_manifest() {
            true => None,
            false => Collector::new(head.manifest.oti, max_metadata_bytes),
        };
        if collector.is_none() {
            return self.refuse(bytes, None);
        }
        if self.heads.len() >= MAX_HEADS {
            let others = self.heads.iter().enumerate().skip(1);
            let displaceable =
                others.filter(|(_, taken)| now.saturating_since(taken.taken_at) >= PROBATION);
            let received = |taken: &TakenHead| taken.collector.as_ref().map(Collector::received);
            let least = displaceable
                .min_by_key(|(_, taken)| (received(taken), taken.repeated_at))
                .map(|(at, _)| at);
            let Some(least) = least else { return };
            self.heads.remove(least);
        }
        let (bytes, head) = (bytes.to_vec(), Arc::new(head));
        let taken =
            TakenHead { bytes, head, signer: None, collector, taken_at: now, repeated_at: now };
        self.heads.push(taken);
    }

    /// Collects the manifest with other transmission information than the heads say: packets of
    /// the manifest have it, and its hash is all that counts.
    pub(in crate::receiver) fn collect_as(&mut self, now: Instant, oti: Oti, max_bytes: u64) {
        if self.heads.iter().any(|taken| taken.head.manifest.oti == oti) {
            return;
        }
        let Some(head) = self.head() else { return };
        let manifest = ObjectRef { oti, ..head.manifest };
        let head = SessionHead { manifest, ..(**head).clone() };
        self.take_beside(now, &[], head, max_bytes);
    }

    /// Takes a symbol of a manifest or index. Its bytes, when they are complete and `hash` of them
    /// is the one in their head, which is in force from then on.
    pub(in crate::receiver) fn push(
        &mut self,
        candidates: Candidates,
        payload: &Payload<'_>,
        hash: impl Fn(&[u8]) -> Hash,
    ) -> Option<Vec<u8>> {
        let of = |oti: Oti| move |taken: &TakenHead| taken.head.manifest.oti == oti;
        let named = match candidates {
            Candidates::All(oti) if self.heads.iter().any(of(oti)) => Some(oti),
            _ => None,
        };
        let mut complete = None;
        for (at, taken) in self.heads.iter_mut().enumerate() {
            if !named.map_or(at == 0, |oti| of(oti)(taken)) {
                continue;
            }
            let Some(collector) = &mut taken.collector else { continue };
            let Some(bytes) = collector.push(payload.sbn, payload.esi, payload.symbol) else {
                continue;
            };
            if hash(&bytes) == taken.head.manifest.hash {
                complete = Some((at, bytes));
                break;
            }
            collector.reject();
        }
        let (at, bytes) = complete?;
        if let Some(taken) = self.heads.get_mut(..=at) {
            taken.rotate_right(1);
        }
        if let Some(taken) = self.heads.first_mut() {
            taken.collector = None;
        }
        Some(bytes)
    }

    /// Keeps the complete manifest or index. Symbols of it are not collected any more.
    pub(in crate::receiver) fn complete(&mut self, metadata: Metadata) {
        self.stop_collecting();
        self.metadata = Some(metadata);
    }

    /// Drops the symbols of a manifest that is complete elsewhere.
    pub(in crate::receiver) fn stop_collecting(&mut self) {
        self.heads.iter_mut().for_each(|taken| taken.collector = None);
    }

    /// Replaces the version that the head in force claims by that of its manifest.
    pub(in crate::receiver) fn correct_version(&mut self, version: u64) {
        if let Some(taken) = self.heads.first_mut() {
            let head = SessionHead { manifest_version: version, ..(*taken.head).clone() };
            taken.head = Arc::new(head);
        }
    }

    /// The head, if it declares the congestion control that receivers follow. A stream uses channel
    /// 0 alone.
    pub(in crate::receiver) fn declaration(&self) -> Option<&Arc<SessionHead>> {
        self.head().filter(|head| head.kind == ContentKind::Manifest)
    }
}
