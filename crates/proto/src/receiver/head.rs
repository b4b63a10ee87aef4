//! Session heads: which of them are believed, and what they change.

use super::standing::Standing;
use super::{Chosen, Expectation, MetadataMode, Receiver};
use crate::endpoint::SessionKey;
use crate::event::Rejection;
use crate::time::Instant;
use fontana_wire::{ContentKind, PublicKey, SessionHead, UnverifiedHead};
use std::sync::Arc;

impl Receiver {
    /// A symbol of a head.
    pub(super) fn on_head(&mut self, now: Instant, session: SessionKey, symbol: &[u8]) {
        let Some(state) = self.sessions.get(&session) else { return };
        if self.config.metadata != MetadataMode::Manifest
            || state.knows_head(symbol)
            || self.is_old_stream_head(symbol)
        {
            return;
        }
        let second = now.as_nanos() / 1_000_000_000;
        if self.head_checks.0 != second {
            self.head_checks = (second, 0);
        }
        if self.head_checks.1 >= self.config.limits.max_head_checks_per_second {
            return;
        }
        self.head_checks.1 += 1;
        match self.check_head(now, symbol) {
            Ok(Some((head, Some(signer)))) => {
                self.take_stream_head(session, symbol, head, signer);
            }
            Ok(Some((head, None))) => self.take_head(session, symbol, head),
            Ok(None) => self.stats.malformed += 1,
            // A forger cannot have an honest session refused: only one that has not shown a good
            // head yet.
            Err(reason) => {
                let is_new = state.head.is_none();
                if let Some(state) = self.sessions.get_mut(&session) {
                    state.refused_head = symbol.to_vec();
                }
                if is_new {
                    self.reject(session, reason);
                }
            }
        }
    }

    /// A head that may be trusted as far as is expected, and, if it is a stream's, who signed it;
    /// `None` if it is not one at all.
    fn check_head(
        &self,
        now: Instant,
        symbol: &[u8],
    ) -> Result<Option<(SessionHead, Option<PublicKey>)>, Rejection> {
        let Ok(unverified) = UnverifiedHead::parse(symbol) else { return Ok(None) };
        let signer = unverified.claimed_signer();
        let (head, signer) = match unverified.kind() {
            ContentKind::Manifest => (self.check_manifest_head(unverified)?, None),
            ContentKind::StreamIndex => (self.check_stream_head(unverified)?, signer),
        };
        let now_unix = self.config.started_at_unix_seconds + now.as_nanos() / 1_000_000_000;
        if head.has_expired(now_unix) {
            return Err(Rejection::Expired);
        }
        let newer_than = self.config.expectation.newer_than;
        if newer_than.is_some_and(|version| head.manifest_version <= version) {
            return Err(Rejection::OldVersion);
        }
        Ok(Some((head, signer)))
    }

    fn check_manifest_head(&self, unverified: UnverifiedHead) -> Result<SessionHead, Rejection> {
        let Expectation { manifest, publisher, .. } = &self.config.expectation;
        let head = match (publisher, manifest) {
            (Some(key), _) => unverified.verify(key).map_err(|_| Rejection::WrongKey)?,
            (None, Some(hash)) => {
                unverified.verify_pinned(hash).map_err(|_| Rejection::OtherManifest)?
            }
            (None, None) => unverified.without_verification(),
        };
        if manifest.is_some_and(|hash| hash != head.manifest.hash) {
            return Err(Rejection::OtherManifest);
        }
        Ok(head)
    }

    fn take_head(&mut self, session: SessionKey, symbol: &[u8], head: SessionHead) {
        let hash = head.manifest.hash;
        let max_bytes = self.config.limits.manifest.bytes as u64;
        let known = self.config.known_manifest.as_ref().filter(|(known, _)| *known == hash);
        let known = known.map(|(_, manifest)| Arc::clone(manifest));
        let Some(state) = self.sessions.get_mut(&session) else { return };
        if self.stream.is_some() && state.standing == Standing::Accepted {
            // Anybody can write a head of a manifest in a stream's name.
            return self.tell_rejection(session, Rejection::OtherManifest);
        }
        let version = head.manifest_version;
        state.set_head(symbol, head, max_bytes);
        match self.chosen {
            Some(Chosen::Manifest(chosen, _)) if chosen == hash => {
                state.standing = Standing::Accepted;
                self.replay();
            }
            Some(_) => {
                self.reject(session, Rejection::OtherManifest);
                self.tell_if_newer(session, version);
            }
            // On offer already; its sender has started again.
            None if state.manifest.is_some() => {}
            None => match known {
                Some(manifest) => self.offer(session, hash, manifest),
                None if state.collector.is_none() => self.reject(session, Rejection::BadManifest),
                None => state.standing = Standing::Unknown,
            },
        }
        self.follow(session, false);
    }

    /// Lets a session whose head is good declare its congestion control: unless another one has, or
    /// instead of that.
    pub(super) fn follow(&mut self, session: SessionKey, instead: bool) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let Some(head) = state.head.clone().filter(|_| state.standing != Standing::Refused) else {
            return;
        };
        state.sequence.set_numbering(head.congestion_control.numbering());
        if self.channels.declare(session, &head, instead, &mut state.sequence).is_err() {
            self.reject(session, Rejection::TooFast);
        }
    }
}
