//! A newer version than the accepted one, and when it supersedes that.

use super::{Phase, Reception, Surroundings};
use crate::endpoint::SessionKey;
use crate::event::{ReceiverOutput, Rejection};
use crate::receiver::config::ReceiverConfig;
use crate::receiver::newer::NewerVersion;
use crate::receiver::sessions::{ContentId, Metadata, Sessions, Standing};
use crate::time::Instant;
use fontana_wire::{Hash, Manifest};
use std::sync::Arc;

impl Reception {
    /// Records a version that is newer than the accepted one and those that were announced, if it
    /// is the expected publisher's.
    pub(super) fn announce_newer(
        &mut self,
        config: &ReceiverConfig,
        session: SessionKey,
        version: u64,
    ) {
        if config.expectation.publisher.is_none() || self.newest_version >= version {
            return;
        }
        self.newest_version = version;
        match &mut self.newer {
            Some(newer) => newer.announce(session, version),
            None => {
                let wanted = self.transfer.symbols_wanted();
                self.newer = Some(NewerVersion::new(session, version, wanted));
            }
        }
    }

    /// When a newer version supersedes the accepted one, if no symbol of use arrives before.
    #[inline]
    pub(in crate::receiver) fn superseded_at(&self, config: &ReceiverConfig) -> Option<Instant> {
        self.newer.as_ref().and_then(|newer| newer.due(config.superseded_after))
    }

    /// Gives up the accepted version if a newer one is sent and symbols of use have ceased. Content
    /// that is received is committed first.
    pub(in crate::receiver) fn check_superseded(
        &mut self,
        around: &mut Surroundings<'_>,
        now: Instant,
    ) {
        let is_due = self.superseded_at(around.config).is_some_and(|due| due <= now);
        if self.phase != Phase::Listening || !is_due {
            return;
        }
        let Some(newer) = &mut self.newer else { return };
        if !newer.is_exhausted() && self.transfer.awaits_jobs() {
            newer.extend(now);
            return;
        }
        let event = newer.event();
        self.newer = None;
        let accepted = self.accepted;
        for session in around.sessions.iter_mut() {
            let is_accepted = session.standing == Standing::Accepted;
            if is_accepted && session.announced_content() != accepted {
                self.refuse(session, around.channels, Rejection::OtherManifest);
            }
        }
        self.outputs.push_back(ReceiverOutput::Event(event));
    }

    /// The newest manifest beyond the accepted one that is complete.
    pub(in crate::receiver) fn newer_manifest(
        &self,
        sessions: &Sessions,
    ) -> Option<(Hash, Arc<Manifest>)> {
        let accepted = self.accepted?;
        let manifests = sessions.iter().filter_map(|session| match session.metadata()? {
            Metadata::Manifest(hash, manifest) => {
                let is_newer = self.accepted_version.is_some_and(|v| v < manifest.version());
                let is_other = ContentId::Manifest(*hash) != accepted;
                (is_newer && is_other).then(|| (*hash, Arc::clone(manifest)))
            }
            Metadata::Index(_) => None,
        });
        manifests.max_by_key(|(_, manifest)| manifest.version())
    }
}
