//! Sessions of plain FLUTE that a receiver of Fontana's sessions has found: they are offered as the
//! others are, and another receiver receives the chosen one.

use crate::args::{ReceiveArguments, SessionFormat};
use fontana::wire::{ForeignFormat, Ticket};
use fontana::{Outcome, ReceiveFormat, ReceiverBuilder, SessionKey};
use fontana_console::console::Console;
use fontana_console::failure::Failure;
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// Other sessions that are named: any host can send as many as it likes.
const MAX_NAMED: usize = 8;

/// What is known of sessions of plain FLUTE.
pub(super) struct FluteSessions {
    /// The arguments leave open which session to receive, and what it is.
    is_recognised: bool,
    /// Those that were found.
    found: BTreeSet<SessionKey>,
    /// The one that is to be received, or is.
    chosen: Option<SessionKey>,
    /// It is being received.
    has_begun: bool,
    /// It has turned out to be one of Fontana.
    is_of_fontana: bool,
    /// Where other sessions that are received beside the accepted one can be selected; `None` if
    /// they are not named.
    group: Option<SocketAddr>,
    named: usize,
}

impl FluteSessions {
    pub(super) fn new(arguments: &ReceiveArguments, group: SocketAddr) -> Self {
        let is_any = arguments.named.is_none() && arguments.key.is_none();
        // What these do takes a manifest.
        let needs_manifest = arguments.group_key.is_some()
            || arguments.audit.is_some()
            || arguments.delete
            || arguments.to.is_some()
            || arguments.share.is_some()
            || arguments.then_serve.is_some();
        let is_fontana = arguments.format() == SessionFormat::Fontana;
        let names = is_any && arguments.format() != SessionFormat::Fcast;
        Self {
            is_recognised: is_any && is_fontana && !needs_manifest,
            found: BTreeSet::new(),
            chosen: None,
            has_begun: false,
            is_of_fontana: false,
            group: names.then_some(group),
            named: 0,
        }
    }

    /// A session was found. Whether it is offered.
    pub(super) fn find(&mut self, session: SessionKey) -> bool {
        self.is_recognised && self.found.insert(session)
    }

    /// Takes a session, if it is one of those that were found.
    pub(super) fn take(&mut self, session: SessionKey) -> bool {
        let is_known = self.found.contains(&session);
        if is_known {
            self.chosen.get_or_insert(session);
        }
        is_known
    }

    /// A head was heard in the session that is received.
    pub(super) fn on_head(&mut self) {
        self.is_of_fontana = self.has_begun;
    }

    /// Whether the present receiver is to be stopped.
    pub(super) fn ends_reception(&self) -> bool {
        self.is_of_fontana || (self.chosen.is_some() && !self.has_begun)
    }

    /// The session that another receiver is to receive, once.
    pub(super) fn begin(&mut self, console: &Console) -> Option<SessionKey> {
        let session = self.chosen.filter(|_| !std::mem::replace(&mut self.has_begun, true))?;
        console.say(format_args!(
            "receiving plain FLUTE from {}, session {}: its files are not authenticated",
            session.source, session.tsi
        ));
        Some(session)
    }

    /// Whether the session that is received was recognised.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The failure of a session that has turned out to be one of Fontana.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.is_of_fontana.then(|| {
            let message = "the session is no plain FLUTE: a head of Fontana was received, late";
            let hint = "what is incomplete was discarded; the same command receives it, verified";
            Failure::new(Outcome::Incomplete, message, hint)
        })
    }

    /// Names a session that is received beside the accepted one.
    pub(super) fn name_other(&mut self, session: SessionKey, console: &Console) {
        let is_flute = self.has_begun || !self.is_recognised;
        let Some(group) = self.group.filter(|_| is_flute && self.named < MAX_NAMED) else { return };
        self.named += 1;
        let ticket = Ticket {
            sources: vec![session.source],
            format: Some(ForeignFormat::Flute),
            ..Ticket::new(group, session.tsi)
        };
        console.say(format_args!("another session is here: fontana recv '{ticket}'"));
    }
}

/// A receiver of a session that was recognised.
pub(super) fn receiver(
    builder: ReceiverBuilder,
    session: SessionKey,
    arguments: &ReceiveArguments,
) -> Result<ReceiverBuilder, Failure> {
    let flute = super::flute(arguments)?;
    let builder = builder.format(ReceiveFormat::Flute(flute)).tsi(Some(session.tsi));
    Ok(builder.sources(vec![session.source]))
}
