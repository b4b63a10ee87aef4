//! Sessions of Fontana: a head names a manifest, and the manifest lists every object.
//!
//! A receiver of such sessions starts here. If it accepts a stream, a `StreamCatalog` takes over.

use super::discovery::{Content, Context, Discovery, Finding, NewObject};
use super::foreign::ForeignSessions;
use super::head::{HeadChecks, HeadOrigin, TrustedHead};
use super::stream;
use crate::endpoint::SessionKey;
use crate::event::{Offer, ReceiverEvent, Rejection, Verified};
use crate::job::Opening;
use crate::receiver::config::ReceiverConfig;
use crate::receiver::sessions::{
    Announced, Candidates, ContentId, HeadState, Metadata, SessionState, Standing,
};
use fontana_fec::EncodingId;
use fontana_wire::{
    ContentKind, Hash, Manifest, Packet, Payload, SessionHead, Toi, fti, manifest_hash,
};
use std::sync::Arc;

/// The heads and manifests of sessions, before and after one manifest is accepted.
#[derive(Debug, Default)]
pub(in crate::receiver) struct ManifestCatalog {
    checks: HeadChecks,
    foreign: ForeignSessions,
}

impl ManifestCatalog {
    pub(super) fn on_control(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        match packet.header.toi {
            Some(Toi::FDT) => return self.on_table(cx, session, packet, payload),
            _ if std::mem::replace(&mut session.is_of_fontana, true) => {}
            _ => self.foreign.remove(session.key),
        }
        match packet.header.toi {
            Some(Toi::HEAD) => self.on_head(cx, session, payload.symbol),
            Some(Toi::MANIFEST) => on_manifest_symbol(cx, session, packet, payload),
            _ => Discovery::Nothing,
        }
    }

    /// A table: of a session of Fontana, which has it for other programs, or of plain FLUTE.
    fn on_table(
        &mut self,
        cx: &Context<'_>,
        session: &SessionState,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        let expectation = &cx.config.expectation;
        let is_known = expectation.manifest.is_some() || expectation.publisher.is_some();
        if session.is_of_fontana || is_known || cx.accepted.is_some() {
            return Discovery::Nothing;
        }
        let found = self.foreign.on_table(cx.now, session.key, packet, payload);
        found.map_or(Discovery::Nothing, Discovery::Foreign)
    }

    fn on_head(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        symbol: &[u8],
    ) -> Discovery {
        let origin = HeadOrigin { source: session.key.source, is_stream: false };
        let Some(state) = session.head_state() else { return Discovery::Nothing };
        match self.checks.check(cx, origin, state, None, symbol) {
            Ok(TrustedHead { head, signer: None }) => take_head(cx, session, symbol, head),
            Ok(TrustedHead { head, signer: Some(signer) }) => {
                if state.is_old_stream_head(&head, signer) {
                    Discovery::Nothing
                } else if cx.accepted.is_some() {
                    Discovery::Refused(Rejection::OtherManifest)
                } else {
                    stream::take_head(cx, session, symbol, head, signer)
                }
            }
            Err(discovery) => discovery,
        }
    }

    pub(super) fn take_checks(&mut self) -> HeadChecks {
        std::mem::take(&mut self.checks)
    }
}

fn take_head(
    cx: &Context<'_>,
    session: &mut SessionState,
    symbol: &[u8],
    head: SessionHead,
) -> Discovery {
    let (hash, version) = (head.manifest.hash, head.manifest_version);
    if cx.config.expectation.publisher.is_some() {
        session.note_digest_signer(&head);
    }
    if let Some(discovery) = take_newer_head(cx, session, symbol, &head) {
        return discovery;
    }
    let limit = cx.config.limits.manifest.bytes as u64;
    if !may_replace(cx, session, &head) {
        if let Some(state) = session.head_state() {
            state.take_beside(cx.now, symbol, head, limit);
        }
        return Discovery::Nothing;
    }
    session.take_head(cx.now, symbol, head, None, limit);
    match cx.accepted {
        Some(accepted) if session.content == Some(*accepted) => {
            session.standing = Standing::Accepted;
            return Discovery::Head(None);
        }
        Some(_) => return Discovery::OtherManifest { version },
        None => {}
    }
    let Some(state) = session.head_state() else { return Discovery::Nothing };
    let known = cx.config.known_manifest.as_ref().filter(|(known, _)| *known == hash);
    if state.has_manifest() {
        // It is on offer already; its sender was restarted.
        Discovery::Head(None)
    } else if let Some((_, manifest)) = known {
        match offer(cx.config, session, hash, Arc::clone(manifest)) {
            Ok(event) => Discovery::Head(Some(event)),
            Err(reason) => Discovery::Refused(reason),
        }
    } else if state.is_collecting() {
        session.standing = Standing::Unknown;
        Discovery::Head(None)
    } else if cx.config.expectation.trusts_hash_alone() {
        // Any host can claim that the manifest is too long, or has another code.
        Discovery::Nothing
    } else {
        Discovery::Refused(Rejection::BadManifest)
    }
}

/// Whether a head replaces the one in force. Any host can repeat an old head of the publisher, or
/// write one that names the expected manifest, so that the sender's head stays while it is
/// repeated.
fn may_replace(cx: &Context<'_>, session: &SessionState, head: &SessionHead) -> bool {
    let Announced::Head(state) = &session.announced else { return true };
    let Some(current) = state.head() else { return true };
    let content = Some(ContentId::Manifest(head.manifest.hash));
    let is_newer = cx.config.expectation.publisher.is_some()
        && head.manifest_version > current.manifest_version;
    let is_accepted = cx.accepted.copied() == content && session.content != content;
    is_newer || is_accepted || session.standing == Standing::Refused || state.is_stale(cx.now)
}

/// Takes the head of a newer version in the accepted session, and ignores older heads after it: an
/// attacker may repeat them. `None` for every other head.
fn take_newer_head(
    cx: &Context<'_>,
    session: &mut SessionState,
    symbol: &[u8],
    head: &SessionHead,
) -> Option<Discovery> {
    let accepted_version = cx.accepted_version.filter(|_| {
        cx.config.expectation.publisher.is_some() && session.standing == Standing::Accepted
    })?;
    let version = head.manifest_version;
    let state = session.head_state()?;
    let newest = state.head().map_or(0, |head| head.manifest_version);
    if newest > accepted_version && newest >= version {
        state.refuse(symbol, None);
        return Some(Discovery::Nothing);
    }
    if version <= accepted_version {
        return None;
    }
    let limit = cx.config.limits.manifest.bytes as u64;
    session.take_newer_head(cx.now, symbol, head.clone(), limit);
    Some(Discovery::NewerVersion { version })
}

fn on_manifest_symbol(
    cx: &Context<'_>,
    session: &mut SessionState,
    packet: &Packet<'_>,
    payload: &Payload<'_>,
) -> Discovery {
    let Some(state) = session.head_state() else { return Discovery::Nothing };
    let Some(head) = state.head() else { return Discovery::Nothing };
    if head.kind == ContentKind::StreamIndex {
        return match stream::on_index_symbol(session, payload) {
            Some(Ok(index)) if cx.accepted.is_none() => stream::offer(session, index),
            Some(Ok(_)) | None => Discovery::Nothing,
            Some(Err(reason)) => Discovery::Refused(reason),
        };
    }
    if cx.accepted.is_some_and(|accepted| *accepted == ContentId::Manifest(head.manifest.hash)) {
        state.stop_collecting();
        return Discovery::Nothing;
    }
    if state.has_manifest() {
        return Discovery::Nothing;
    }
    let candidates = candidates(cx, state, packet);
    let Some(bytes) = state.push(candidates, payload, manifest_hash) else {
        return Discovery::Nothing;
    };
    let Some(hash) = state.head().map(|head| head.manifest.hash) else { return Discovery::Nothing };
    let manifest = Manifest::parse(&bytes, &cx.config.limits.manifest);
    if cx.accepted.is_some() {
        // Of a newer version: the next reception need not wait for it.
        if let Ok(manifest) = manifest {
            state.complete(Metadata::Manifest(hash, Arc::new(manifest)));
        }
        return Discovery::Nothing;
    }
    session.content = Some(ContentId::Manifest(hash));
    let offer = match manifest {
        Ok(manifest) => offer(cx.config, session, hash, Arc::new(manifest)),
        Err(_) => Err(Rejection::BadManifest),
    };
    match offer {
        Ok(event) => Discovery::Offered(Some(event)),
        Err(reason) => Discovery::Refused(reason),
    }
}

/// The heads whose manifest the packet may be of. Before content is accepted, the manifests of
/// several heads are collected, each from the packets with its transmission information.
fn candidates(cx: &Context<'_>, state: &mut HeadState, packet: &Packet<'_>) -> Candidates {
    let content = packet.header.extensions.fti().filter(|_| cx.accepted.is_none());
    let oti =
        content.and_then(|content| fti::parse(EncodingId(packet.header.codepoint), content).ok());
    let Some(oti) = oti else { return Candidates::InForce };
    if cx.config.expectation.trusts_hash_alone() {
        state.collect_as(cx.now, oti, cx.config.limits.manifest.bytes as u64);
    }
    Candidates::All(oti)
}

/// Puts a session with a complete manifest on offer, within the limits.
fn offer(
    config: &ReceiverConfig,
    session: &mut SessionState,
    hash: Hash,
    manifest: Arc<Manifest>,
) -> Result<ReceiverEvent, Rejection> {
    let key = session.key;
    let is_claim = config.expectation.trusts_hash_alone();
    let head = session.head_state().and_then(|state| {
        state.stop_collecting();
        if is_claim {
            state.correct_version(manifest.version());
        }
        state.head().cloned()
    });
    // The version decides which of two manifests is newer: head and manifest have to agree.
    let head = head
        .filter(|head| head.manifest_version == manifest.version())
        .ok_or(Rejection::BadManifest)?;
    config.expectation.check_version(manifest.version())?;
    let limits = &config.limits;
    if manifest.largest_length() > limits.max_transfer_bytes
        || !manifest.objects().iter().all(|object| limits.have_room_to_decode(object.oti))
    {
        return Err(Rejection::TooLarge);
    }
    session.standing = Standing::Offered;
    if let Some(state) = session.head_state() {
        state.complete(Metadata::Manifest(hash, Arc::clone(&manifest)));
    }
    Ok(ReceiverEvent::Offered(Offer { session: key, head, manifest }))
}

/// What is accepted with a manifest, which comes from `session`.
pub(in crate::receiver) fn content(
    session: SessionKey,
    hash: Hash,
    manifest: &Arc<Manifest>,
    verified: Verified,
) -> Content {
    let objects = manifest.objects().iter().filter_map(|object| {
        let (toi, layout) = (Toi::from(object.toi), object.oti.layout().ok()?);
        Some(NewObject { toi, layout, block_hashes: Some(object.block_hashes.clone()) })
    });
    let event = ReceiverEvent::Accepted { session, manifest: Arc::clone(manifest), hash, verified };
    let opening = Box::new(Opening::Manifest(Arc::clone(manifest)));
    Content {
        id: ContentId::Manifest(hash),
        version: Some(manifest.version()),
        event: Some(event),
        findings: vec![Finding::Open { objects: objects.collect(), event: None, opening }],
    }
}
