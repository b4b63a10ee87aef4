//! The files of a plain FLUTE session, as a target has them: checked and named.

use super::{disk_error, hash};
use fontana_proto::{Expired, Opening, ReceiveDone};
use fontana_wire::{FdtFile, FdtMd5, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What stands for the MD5 of a file: the endpoint only compares it.
pub fn md5_of(bytes: &[u8]) -> FdtMd5 {
    FdtMd5::Digest(*hash(bytes).0.first_chunk().unwrap())
}

/// Files that are being received, and those that have their names.
#[derive(Default)]
pub struct PlainFiles {
    pub opened: BTreeMap<Toi, Arc<FdtFile>>,
    /// Each file that got its name, and its bytes, in this order.
    pub named: Vec<(String, Vec<u8>)>,
    /// Files that no table names any more.
    pub expired: Vec<Expired>,
}

impl PlainFiles {
    pub(super) fn open(&mut self, opening: &Opening) {
        if let Opening::File { object, file, .. } = opening {
            let before = self.opened.insert(*object, Arc::clone(file));
            assert!(before.is_none(), "{object} is opened twice");
        }
    }

    /// Gives a complete file its name, unless its bytes are wrong.
    pub(super) fn commit(&mut self, toi: Toi, bytes: Vec<u8>) -> Result<(), ReceiveDone> {
        let file = self.opened.remove(&toi).unwrap();
        if file.content_md5.as_ref().is_some_and(|md5| *md5 != md5_of(&bytes)) {
            let digest = hash(&bytes);
            return Err(ReceiveDone::Mismatched { toi, digest, error: disk_error() });
        }
        self.named.push((file.content_location.clone(), bytes));
        Ok(())
    }

    pub(super) fn drop_object(&mut self, toi: Toi) {
        self.opened.remove(&toi);
    }

    /// The bytes of the file with a name.
    pub fn bytes_of(&self, name: &str) -> Option<&[u8]> {
        let named = self.named.iter().rev().find(|(own, _)| own == name);
        named.map(|(_, bytes)| bytes.as_slice())
    }
}
