//! What a receiver holds for a web server, without the feature `serve`: there is none.

use super::object::Opened;
use fontana_proto::BlockId;
use fontana_wire::{Hash, Manifest, Toi};
use std::path::PathBuf;
use std::sync::Arc;

/// What a web server gives out while it is received: nothing.
#[derive(Clone, Debug)]
pub(crate) enum HeldContent {}

impl HeldContent {
    pub(super) fn begin(&self, _: Hash, _: &Arc<Manifest>, _: PathBuf) {
        match *self {}
    }

    pub(super) fn on_opened(&self, _: &Opened) {
        match *self {}
    }

    pub(super) fn on_verified(&self, _: BlockId) {
        match *self {}
    }

    pub(super) fn on_committed(&self, _: Toi) {
        match *self {}
    }

    pub(super) fn end(&self) {
        match *self {}
    }
}
