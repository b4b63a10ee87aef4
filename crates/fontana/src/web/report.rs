//! What came from mirrors.

use super::failure::MirrorFailure;
use fontana_wire::{ShelfNumber, WebAddress};
use std::time::Duration;

/// What a receiver takes from a mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MirrorKind {
    /// Ranges of files; also if it was not asked what it has.
    Files,
    /// Repair symbols of this shelf.
    Shelf(ShelfNumber),
    /// Repair symbols that it computes (`WebServer`).
    Fresh,
}

/// What came from a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorReport {
    /// The mirror.
    pub mirror: WebAddress,
    /// Bytes of symbols.
    pub bytes: u64,
    /// Of these: symbols that had arrived before, or were not needed any more.
    pub useless_bytes: u64,
    /// Time from its first bytes to its last ones.
    pub active: Duration,
    /// Blocks that it has sent with wrong bytes.
    pub wrong_blocks: u32,
    /// What the symbols were taken from.
    pub kind: MirrorKind,
    /// Why it was dropped; `None` if it was not.
    pub dropped: Option<MirrorFailure>,
    /// Why it has sent nothing since, or lacks a file; `None` if it does not. It was asked again.
    pub failing: Option<MirrorFailure>,
}
