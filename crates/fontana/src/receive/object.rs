//! Objects that received symbols are written to.

use crate::event::ReceivedPart;
use fontana_fec::ObjectLayout;
use fontana_proto::{Saved, repair_slots};
use fontana_store::{Extents, Note, StagedObject, Staging, StagingError};
use fontana_wire::Toi;
use std::sync::{Arc, OnceLock};

/// An object that is being received. The driver, the workers and the target share it.
#[derive(Debug)]
pub(super) struct OpenObject {
    /// Its bytes on the disk.
    pub(super) staged: StagedObject,
    /// The files that it has bytes of, as they are shown to people.
    names: Vec<String>,
    /// The file that an FCAST object names in its header, which is read when it is complete.
    described: OnceLock<[String; 1]>,
    /// Where its notes go; `None` if no later run resumes it.
    journal: Option<Arc<Staging>>,
}

impl OpenObject {
    /// An object that no later run resumes.
    pub(super) fn new(staged: StagedObject, names: Vec<String>) -> Self {
        Self { staged, names, described: OnceLock::new(), journal: None }
    }

    /// An object whose symbols and blocks are noted in `journal`, so that a later run resumes it.
    pub(super) fn with_journal(
        staged: StagedObject,
        names: Vec<String>,
        journal: Arc<Staging>,
    ) -> Self {
        Self { journal: Some(journal), ..Self::new(staged, names) }
    }

    /// The files that it has bytes of, as far as they are known.
    pub(super) fn names(&self) -> &[String] {
        self.described.get().map_or(&self.names[..], |described| &described[..])
    }

    /// Sets the name that the object's own header gives. A second name is ignored.
    pub(super) fn describe(&self, name: String) {
        let _ = self.described.set([name]);
    }

    /// Its length in bytes, as transported.
    pub(super) fn length(&self) -> u64 {
        self.staged.layout().oti().transfer_length
    }

    /// Appends notes to the journal.
    pub(super) fn note(&self, notes: &[Note]) -> Result<(), StagingError> {
        match &self.journal {
            Some(staging) if !notes.is_empty() => staging.note(notes),
            _ => Ok(()),
        }
    }

    /// Whether a journal notes the object.
    pub(super) fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// The staging directory whose journal notes the object, if one does.
    pub(super) fn journal(&self) -> Option<&Arc<Staging>> {
        self.journal.as_ref()
    }
}

/// What an opening made ready to receive, and what an earlier run left of it.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) objects: Vec<OpenedObject>,
    pub(super) saved: Saved,
    /// Objects that are not received.
    pub(super) deselected: Vec<Toi>,
    /// The part of the manifest that is received; `None` if that is all of it.
    pub(super) part: Option<ReceivedPart>,
}

/// An object, under the name that packets give it.
#[derive(Clone, Debug)]
pub(super) struct OpenedObject {
    pub(super) toi: Toi,
    pub(super) object: Arc<OpenObject>,
}

impl Opened {
    /// Nothing: the object is not received.
    pub(super) fn deselected(toi: Toi) -> Self {
        Self { deselected: vec![toi], ..Self::default() }
    }

    /// One object, of which nothing was there.
    pub(super) fn single(toi: Toi, object: Arc<OpenObject>) -> Self {
        Self { objects: vec![OpenedObject { toi, object }], ..Self::default() }
    }
}

/// Makes an object of `extents` ready for symbols.
pub(super) fn stage(
    staging: &Arc<Staging>,
    layout: ObjectLayout,
    extents: Extents,
) -> Result<StagedObject, StagingError> {
    let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
    StagedObject::new(Arc::clone(staging), layout, extents, slots)
}
