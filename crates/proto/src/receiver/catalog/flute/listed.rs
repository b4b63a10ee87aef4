//! A file of a plain FLUTE session, and what becomes of it when another definition comes.

use super::definition::Definition;
use crate::receiver::catalog::collection::{Collection, EVERY};
use crate::receiver::symbols::payload_fits;
use crate::time::Instant;
use fontana_fec::{EncodingId, ObjectLayout, Oti};
use fontana_wire::{Payload, Toi};
use std::time::Duration;

/// Time for which a definition that was replaced is ignored: two senders of one address and TSI, or
/// tables that arrive late, would replace each other again and again.
const IGNORED_FOR: Duration = Duration::from_secs(10);
/// Replaced definitions that are remembered of a file.
const MAX_REPLACED: usize = 2;

/// A file that a table has named.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) definition: Definition,
    pub(super) state: FileState,
    pub(super) collection: Collection,
    /// A definition that replaces the present one with the next packet that fits it.
    pub(super) pending: Option<Definition>,
    /// EXT_FTI of the last packet, if it is not that of the definition.
    pub(super) other_fti: Option<Oti>,
    /// Whether the object is compared with an MD5: then wrong bytes are noticed.
    pub(super) is_checked: bool,
    /// The run of the sender in which a table has named it last.
    pub(super) run: u32,
    /// The number of that table, in the order in which they were read.
    pub(super) named_in: u64,
    /// The number of the definition, in the order in which they came.
    pub(super) version: u64,
    replaced: Vec<Replaced>,
}

/// A definition that was replaced.
#[derive(Debug)]
struct Replaced {
    definition: Definition,
    at: Instant,
}

/// What is done with a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum FileState {
    /// Its transmission information is not known yet.
    Waiting,
    /// It is received.
    Opened(ObjectLayout),
    /// It is complete, or newer versions of it are received.
    Done(ObjectLayout),
    /// It cannot be received.
    Refused,
    /// The definition does not hold any more. The next table that names it has another one.
    Obsolete,
}

/// What becomes of another definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is of the same file, or it awaits a packet already.
    Known,
    /// It is of another file, and is ignored for the time being.
    Ignored,
    /// It is of another file, and replaces the present one.
    New,
}

impl Listed {
    pub(super) fn new(definition: Definition, collection: Collection, version: u64) -> Self {
        Self {
            definition,
            state: FileState::Waiting,
            collection,
            pending: None,
            other_fti: None,
            is_checked: false,
            run: 0,
            named_in: 0,
            version,
            replaced: Vec::new(),
        }
    }

    /// The object that is collected, or was last.
    pub(super) fn object(&self) -> Toi {
        self.collection.object(self.definition.file.toi)
    }

    /// Its geometry, if it is or was received.
    pub(super) fn layout(&self) -> Option<ObjectLayout> {
        match self.state {
            FileState::Opened(layout) | FileState::Done(layout) => Some(layout),
            FileState::Waiting | FileState::Refused | FileState::Obsolete => None,
        }
    }

    /// Whether no packet belongs to it.
    pub(super) fn is_empty(&self) -> bool {
        self.layout().is_some_and(|layout| layout.oti().transfer_length == 0)
    }

    /// Whether the definition was replaced lately: it changes at most once in [`EVERY`].
    fn has_changed(&self, now: Instant) -> bool {
        let last = self.replaced.last();
        last.is_some_and(|replaced| now.saturating_since(replaced.at) < EVERY)
    }

    /// Takes a definition of a table. `heard_at`: when the table of the present one was heard.
    pub(super) fn on_definition(
        &mut self,
        now: Instant,
        definition: Definition,
        heard_at: Option<Instant>,
    ) -> Fate {
        if !self.definition.contradicts(&definition) {
            self.definition.merge(definition);
            if self.pending.as_ref().is_some_and(|own| own.contradicts(&self.definition)) {
                self.pending = None;
            }
            return Fate::Known;
        }
        if let Some(pending) = &mut self.pending
            && !pending.contradicts(&definition)
        {
            pending.merge(definition);
            return Fate::Known;
        }
        // Once the table of the present definition is not heard any more, an earlier one may hold
        // again: strangers may have replaced it.
        let is_sent = heard_at.is_some_and(|at| now.saturating_since(at) < EVERY);
        let was_replaced = |replaced: &Replaced| {
            now.saturating_since(replaced.at) < IGNORED_FOR
                && !replaced.definition.contradicts(&definition)
        };
        if self.has_changed(now) || (is_sent && self.replaced.iter().any(was_replaced)) {
            return Fate::Ignored;
        }
        self.pending = Some(definition);
        Fate::New
    }

    /// EXT_FTI in a packet of the file. True if it shows, with the packet before, that the packets
    /// are of another file.
    pub(super) fn on_fti(&mut self, now: Instant, fti: Oti) -> bool {
        let known = *self.definition.fti.get_or_insert(fti);
        if known == fti {
            self.other_fti = None;
            return false;
        }
        let is_repeated = self.other_fti.replace(fti) == Some(fti);
        is_repeated && !self.has_changed(now)
    }

    /// Whether a packet fits the definition that is pending. `layout` is the geometry of that.
    pub(super) fn fits(layout: &ObjectLayout, codepoint: u8, payload: &Payload<'_>) -> bool {
        let is_empty = layout.oti().transfer_length == 0;
        is_empty
            || (layout.encoding_id() == EncodingId(codepoint)
                && payload_fits(layout, payload.sbn, payload.esi, payload.symbol.len()))
    }

    /// Replaces the definition.
    pub(super) fn replace(&mut self, now: Instant, definition: Definition, version: u64) {
        self.version = version;
        let before = std::mem::replace(&mut self.definition, definition);
        if before.contradicts(&self.definition) {
            if self.replaced.len() >= MAX_REPLACED {
                self.replaced.remove(0);
            }
            self.replaced.push(Replaced { definition: before, at: now });
        }
        (self.pending, self.other_fti) = (None, None);
        self.collection.renew(now);
    }
}
