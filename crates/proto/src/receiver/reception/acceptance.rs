//! What a packet has shown: content that is offered and accepted, objects that are opened, sessions
//! that are refused.

use super::{MAX_REJECTIONS, Reception, Surroundings};
use crate::counter::Counter;
use crate::endpoint::SessionKey;
use crate::event::{ReceiverEvent, ReceiverOutput, Rejection, TableWarning};
use crate::job::ReceiveJob;
use crate::receiver::catalog::{Content, Discovery, Finding};
use crate::receiver::channels::{Channels, Precedence};
use crate::receiver::config::Acceptance;
use crate::receiver::sessions::{Announced, SessionCounters, SessionIndex, SessionState, Standing};
use crate::time::Instant;

impl Reception {
    /// Applies what a packet of a session has shown.
    pub(in crate::receiver) fn apply(
        &mut self,
        around: &mut Surroundings<'_>,
        now: Instant,
        at: SessionIndex,
        discovery: Discovery,
    ) {
        let Some(session) = around.sessions.get_mut(at) else { return };
        match discovery {
            Discovery::Nothing => {}
            Discovery::Malformed => around.stats.malformed.count(1),
            Discovery::Head(event) => {
                self.place_early(around.config, now, session, around.stats);
                if event.is_some() {
                    self.offer(around, at, event);
                }
                if let Some(session) = around.sessions.get_mut(at) {
                    self.follow(session, around.channels, Precedence::First);
                }
            }
            Discovery::Offered(event) => self.offer(around, at, event),
            Discovery::Content(content) => self.accept(around, Some(at), *content),
            Discovery::Objects(findings) => self.open(around, findings),
            Discovery::Refused(reason) => self.refuse(session, around.channels, reason),
            Discovery::Ignored(reason) => _ = self.report_rejection(session.key, reason),
            Discovery::Foreign(event) => self.outputs.push_back(ReceiverOutput::Event(event)),
            Discovery::Unreadable(error) => {
                if self.report_rejection(session.key, Rejection::BadManifest) {
                    let event = ReceiverEvent::TableWarning(TableWarning::Unreadable(error));
                    self.outputs.push_back(ReceiverOutput::Event(event));
                }
            }
            Discovery::OtherManifest { version } => {
                self.refuse(session, around.channels, Rejection::OtherManifest);
                self.announce_newer(around.config, session.key, version);
            }
            Discovery::NewerVersion { version } => {
                self.follow(session, around.channels, Precedence::First);
                self.announce_newer(around.config, session.key, version);
            }
        }
    }

    /// Reports an offer, and accepts it if the configuration says so.
    fn offer(
        &mut self,
        around: &mut Surroundings<'_>,
        at: SessionIndex,
        event: Option<ReceiverEvent>,
    ) {
        self.outputs.extend(event.map(ReceiverOutput::Event));
        if around.config.acceptance == Acceptance::Automatic {
            self.accept_offer(around, at);
        }
    }

    /// Accepts the content that a session has on offer. False if there is none, or other content
    /// was accepted.
    pub(in crate::receiver) fn accept_offer(
        &mut self,
        around: &mut Surroundings<'_>,
        at: SessionIndex,
    ) -> bool {
        if self.accepted.is_some() {
            return false;
        }
        let session = around.sessions.get_mut(at);
        let content = session.and_then(|session| self.catalog.accept(around.config, session));
        let Some(content) = content else { return false };
        self.accept(around, Some(at), content);
        true
    }

    /// Accepts content: sessions that carry the same add up, those that carry other content are
    /// refused, and its objects are opened.
    /// `at`: the session that has announced it, if one has.
    pub(in crate::receiver) fn accept(
        &mut self,
        around: &mut Surroundings<'_>,
        at: Option<SessionIndex>,
        content: Content,
    ) {
        let Content { id, version, event, findings } = content;
        self.accepted = Some(id);
        self.transfer.set_policy(self.catalog.decode_policy(around.config.policy));
        for session in around.sessions.iter_mut() {
            if session.content == Some(id) {
                session.standing = Standing::Accepted;
                // From here on symbols of content are of use.
                session.useful_at = None;
            } else if session.content.is_some() {
                self.refuse(session, around.channels, Rejection::OtherManifest);
            }
        }
        if let Some(session) = at.and_then(|at| around.sessions.get_mut(at)) {
            self.follow(session, around.channels, Precedence::Replacing);
        }
        self.outputs.extend(event.map(ReceiverOutput::Event));
        self.open(around, findings);
        for session in around.sessions.iter_mut() {
            let cost = session.early.discard(|toi| !self.expects(toi));
            self.early_cost.discount(cost);
        }
        if let Some(version) = version {
            (self.accepted_version, self.newest_version) = (Some(version), version);
            let versions = around.sessions.iter().filter_map(|s| Some((s.version()?, s.key)));
            if let Some((version, key)) = versions.max() {
                self.announce_newer(around.config, key, version);
            }
        }
    }

    /// Opens the objects that a catalog has found, and refuses those that cannot be received.
    fn open(&mut self, around: &mut Surroundings<'_>, findings: Vec<Finding>) {
        if self.catalog.forgets_complete() {
            self.transfer.forget_complete();
        }
        for finding in findings {
            match finding {
                Finding::Open { objects, event, opening } => {
                    self.is_waiting_reported = false;
                    for object in objects {
                        self.transfer.insert(object.toi, object.layout, object.block_hashes);
                    }
                    self.outputs.extend(event.map(ReceiverOutput::Event));
                    self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Open(opening)));
                }
                Finding::Warn(warning) => {
                    let event = ReceiverEvent::TableWarning(warning);
                    self.outputs.push_back(ReceiverOutput::Event(event));
                }
                Finding::Drop { object, reason } => {
                    self.drop_object(around.sessions, object, reason);
                }
                Finding::Expire(expired) => {
                    self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Expire(expired)));
                }
                // Each refusal is remembered, so that it is reported once: as many as objects may
                // be accepted.
                Finding::Refuse { toi, content_location, reason } => {
                    if self.transfer.refuse(toi, around.config.limits.max_files) {
                        let event = ReceiverEvent::FileRefused { toi, content_location, reason };
                        self.outputs.push_back(ReceiverOutput::Event(event));
                    }
                }
            }
        }
        for session in around.sessions.iter_mut() {
            let cost = self.catalog.discard_useless(&mut session.early);
            self.early_cost.discount(cost);
        }
        self.check_catalog(around);
    }

    /// Lets a session with a trusted head declare its congestion control.
    pub(in crate::receiver) fn follow(
        &mut self,
        session: &mut SessionState,
        channels: &mut Channels,
        precedence: Precedence,
    ) {
        let Announced::Head(state) = &session.announced else { return };
        let Some(head) = state.declaration() else { return };
        if session.standing == Standing::Refused {
            return;
        }
        let sequence = &mut session.sequence;
        sequence.set_numbering(head.congestion_control.numbering());
        if channels.declare(session.key, head, precedence, sequence).is_err() {
            self.refuse(session, channels, Rejection::TooFast);
        }
    }

    pub(super) fn refuse(
        &mut self,
        session: &mut SessionState,
        channels: &mut Channels,
        reason: Rejection,
    ) {
        session.standing = Standing::Refused;
        // If it offers other content later, only the packets from then on count.
        session.counters = SessionCounters::default();
        session.sequence.restart();
        session.is_old_version = matches!(reason, Rejection::OldVersion { .. });
        self.forget(session, channels);
        let _ = self.report_rejection(session.key, reason);
    }

    /// Frees what a session holds that is refused or removed.
    pub(in crate::receiver) fn forget(
        &mut self,
        session: &mut SessionState,
        channels: &mut Channels,
    ) {
        let cost = session.early.discard(|_| true);
        self.early_cost.discount(cost);
        self.discard_spilled(session);
        channels.withdraw(session.key);
    }

    /// Reports a rejection, unless it was reported before. Whether it is.
    pub(in crate::receiver) fn report_rejection(
        &mut self,
        session: SessionKey,
        reason: Rejection,
    ) -> bool {
        let is_new =
            self.rejections.len() < MAX_REJECTIONS && self.rejections.insert((session, reason));
        if is_new {
            let event = ReceiverEvent::Rejected { session, reason };
            self.outputs.push_back(ReceiverOutput::Event(event));
        }
        is_new
    }
}
