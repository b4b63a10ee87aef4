//! Sessions of Fontana: a head names a manifest, and the manifest lists every object.
//!
//! A receiver of such sessions starts here. If it accepts a stream, a `StreamCatalog` takes over.

use super::discovery::{Content, Context, Discovery, Finding, NewObject};
use super::head::{HeadChecks, TrustedHead};
use super::stream;
use crate::event::{Offer, ReceiverEvent, Rejection, Verified};
use crate::job::Opening;
use crate::receiver::config::ReceiverConfig;
use crate::receiver::sessions::{ContentId, Metadata, SessionState, Standing};
use fontana_wire::{ContentKind, Hash, Manifest, Packet, Payload, SessionHead, Toi, manifest_hash};
use std::sync::Arc;

/// The heads and manifests of sessions, before and after one manifest is accepted.
#[derive(Debug, Default)]
pub(in crate::receiver) struct ManifestCatalog {
    checks: HeadChecks,
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
            Some(Toi::HEAD) => self.on_head(cx, session, payload.symbol),
            Some(Toi::MANIFEST) => on_manifest_symbol(cx, session, payload),
            _ => Discovery::Nothing,
        }
    }

    fn on_head(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        symbol: &[u8],
    ) -> Discovery {
        let Some(state) = session.head_state() else { return Discovery::Nothing };
        match self.checks.check(cx, state, None, symbol) {
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

    pub(super) fn checks(&self) -> HeadChecks {
        self.checks
    }
}

fn take_head(
    cx: &Context<'_>,
    session: &mut SessionState,
    symbol: &[u8],
    head: SessionHead,
) -> Discovery {
    let (hash, version) = (head.manifest.hash, head.manifest_version);
    if let Some(discovery) = take_newer_head(cx, session, symbol, &head) {
        return discovery;
    }
    session.take_head(symbol, head, None, cx.config.limits.manifest.bytes as u64);
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
    } else {
        Discovery::Refused(Rejection::BadManifest)
    }
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
        state.refuse(symbol);
        return Some(Discovery::Nothing);
    }
    if version <= accepted_version {
        return None;
    }
    let limit = cx.config.limits.manifest.bytes as u64;
    session.take_newer_head(symbol, head.clone(), limit);
    Some(Discovery::NewerVersion { version })
}

fn on_manifest_symbol(
    cx: &Context<'_>,
    session: &mut SessionState,
    payload: &Payload<'_>,
) -> Discovery {
    let Some(state) = session.head_state() else { return Discovery::Nothing };
    let Some(head) = state.head() else { return Discovery::Nothing };
    let hash = head.manifest.hash;
    if head.kind == ContentKind::StreamIndex {
        return match stream::on_index_symbol(session, payload) {
            Some(Ok(index)) if cx.accepted.is_none() => stream::offer(session, index),
            Some(Ok(_)) | None => Discovery::Nothing,
            Some(Err(reason)) => Discovery::Refused(reason),
        };
    }
    if cx.accepted.is_some_and(|accepted| *accepted == ContentId::Manifest(hash)) {
        state.stop_collecting();
        return Discovery::Nothing;
    }
    if state.has_manifest() {
        return Discovery::Nothing;
    }
    let Some(bytes) = state.push(payload, manifest_hash) else { return Discovery::Nothing };
    let manifest = Manifest::parse(&bytes, &cx.config.limits.manifest);
    if cx.accepted.is_some() {
        // Of a newer version: the next reception need not wait for it.
        if let Ok(manifest) = manifest {
            state.complete(Metadata::Manifest(hash, Arc::new(manifest)));
        }
        return Discovery::Nothing;
    }
    let offer = match manifest {
        Ok(manifest) => offer(cx.config, session, hash, Arc::new(manifest)),
        Err(_) => Err(Rejection::BadManifest),
    };
    match offer {
        Ok(event) => Discovery::Offered(Some(event)),
        Err(reason) => Discovery::Refused(reason),
    }
}

/// Puts a session with a complete manifest on offer, within the limits.
fn offer(
    config: &ReceiverConfig,
    session: &mut SessionState,
    hash: Hash,
    manifest: Arc<Manifest>,
) -> Result<ReceiverEvent, Rejection> {
    let key = session.key;
    let head = session.head_state().and_then(|state| {
        state.stop_collecting();
        state.head().cloned()
    });
    // The version decides which of two manifests is newer: head and manifest have to agree.
    let head = head
        .filter(|head| head.manifest_version == manifest.version())
        .ok_or(Rejection::BadManifest)?;
    let limits = &config.limits;
    if manifest.transfer_length() > limits.max_transfer_bytes
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

/// What is accepted with the manifest of a session.
pub(super) fn content(
    session: &SessionState,
    hash: Hash,
    manifest: &Arc<Manifest>,
    verified: Verified,
) -> Content {
    let objects = manifest.objects().iter().filter_map(|object| {
        let (toi, layout) = (Toi::from(object.toi), object.oti.layout().ok()?);
        Some(NewObject { toi, layout, block_hashes: Some(object.block_hashes.clone()) })
    });
    let event = ReceiverEvent::Accepted {
        session: session.key,
        manifest: Arc::clone(manifest),
        hash,
        verified,
    };
    let opening = Opening::Manifest(Arc::clone(manifest));
    Content {
        id: ContentId::Manifest(hash),
        version: Some(manifest.version()),
        event: Some(event),
        findings: vec![Finding::Open { objects: objects.collect(), event: None, opening }],
    }
}
