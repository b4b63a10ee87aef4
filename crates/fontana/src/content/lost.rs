//! Files that are left out of the content.

use crate::error::Error;
use fontana_store::{FileIndex, ObjectSource};
use std::collections::BTreeMap;

/// Files that cannot be sent, each with its error.
#[derive(Debug, Default)]
pub(super) struct Lost(BTreeMap<FileIndex, Error>);

impl Lost {
    pub(super) fn add(&mut self, file: FileIndex, error: impl Into<Error>) {
        self.0.entry(file).or_insert_with(|| error.into());
    }

    pub(super) fn has(&self, file: FileIndex) -> bool {
        self.0.contains_key(&file)
    }

    pub(super) fn has_any_of(&self, object: &ObjectSource) -> bool {
        object.extents().as_slice().iter().any(|extent| self.has(extent.file))
    }

    /// In the order of the files.
    pub(super) fn into_errors(self) -> impl Iterator<Item = Error> {
        self.0.into_values()
    }
}
