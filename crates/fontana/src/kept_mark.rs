//! The high-water mark of a directory during a reception.

mod mark;

use crate::error::{Error, SetupError};
use crate::versions::Versions;
use fontana_store::TargetDirectory;
use fontana_wire::PublicKey;
use mark::Mark;
use std::collections::BTreeSet;

/// The high-water mark of the publisher in the target directory.
#[derive(Debug)]
pub(crate) struct KeptMark {
    publisher: PublicKey,
    mark: Mark,
    follows: bool,
}

impl KeptMark {
    /// Reads the mark. `None` without a publisher, if any version is accepted, and in a directory
    /// without a mark unless versions are followed, which creates one.
    pub(crate) fn open(
        target: &TargetDirectory,
        publisher: Option<PublicKey>,
        versions: Versions,
    ) -> Result<Option<Self>, Error> {
        let follows = versions == Versions::Newer;
        let publisher = match publisher {
            None if follows => return Err(SetupError::NoPublisher.into()),
            Some(publisher) if versions != Versions::Any => publisher,
            _ => return Ok(None),
        };
        let mark = Mark::read(target, &publisher)?;
        let mark = if follows { Some(mark.unwrap_or_default()) } else { mark };
        Ok(mark.map(|mark| Self { publisher, mark, follows }))
    }

    /// The version that an accepted version must exceed.
    pub(crate) fn newer_than(&self) -> Option<u64> {
        match self.follows {
            true => self.mark.version,
            false => self.mark.version.and_then(|version| version.checked_sub(1)),
        }
    }

    /// Names of files that a newer version may replace.
    pub(crate) fn replaceable(&self) -> BTreeSet<Vec<u8>> {
        if self.follows { self.mark.names.clone() } else { BTreeSet::new() }
    }

    /// Records names before their files appear.
    pub(crate) fn add_names<'n>(
        &mut self,
        target: &TargetDirectory,
        names: impl Iterator<Item = &'n [u8]>,
    ) -> Result<(), Error> {
        let before = self.mark.names.len();
        self.mark.names.extend(names.map(<[u8]>::to_vec));
        if self.mark.names.len() > before {
            self.mark.write(target, &self.publisher)?;
        }
        Ok(())
    }

    /// Records that a version is complete.
    pub(crate) fn raise(&mut self, target: &TargetDirectory, version: u64) -> Result<(), Error> {
        if self.mark.version.is_none_or(|mark| mark < version) {
            self.mark.version = Some(version);
            self.mark.write(target, &self.publisher)?;
        }
        Ok(())
    }
}
