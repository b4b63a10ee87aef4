//! One object that is received: its blocks, and what is missing of it.

use super::block::Block;
use crate::counter::Counter;
use crate::event::ReceiverOutput;
use crate::job::ReceiveJob;
use fontana_fec::{ObjectLayout, Sbn};
use fontana_wire::{Hash, Toi};
use std::collections::VecDeque;

/// An object of the accepted content.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) layout: ObjectLayout,
    /// Expected hash of each block; `None` if the session promises none (plain FLUTE).
    pub(super) block_hashes: Option<Vec<Hash>>,
    pub(super) blocks: Vec<Block>,
    /// Blocks that need no more symbols.
    pub(super) enough: usize,
    /// Blocks that are not verified yet.
    pub(super) unverified: u32,
    /// [`ObjectProgress::packets`].
    pub(super) packets: u64,
    pub(super) state: ObjectState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectState {
    /// The driver has not answered [`ReceiveJob::Open`] yet.
    Opening,
    Receiving,
    Committing,
    Done,
    Failed,
}

/// Progress of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectProgress {
    /// Its source symbols, `k` summed over its blocks.
    pub source_symbols: u64,
    /// Packets of the object until it needed no more, duplicates included.
    pub packets: u64,
}

/// Sums of a transfer before and after a block changed.
pub(super) struct Changed {
    pub(super) missing: Step<usize>,
    pub(super) symbols_wanted: Step<u64>,
    pub(super) decoder_bytes: Step<u64>,
}

pub(super) struct Step<T> {
    pub(super) before: T,
    pub(super) after: T,
}

impl Object {
    /// Changes a block. Returns what that has changed in the sums, `None` if there is no such
    /// block.
    pub(super) fn change_block<T>(
        &mut self,
        Sbn(sbn): Sbn,
        change: impl FnOnce(&mut Block) -> T,
    ) -> Option<(T, Changed)> {
        let missing = self.missing();
        let block = self.blocks.get_mut(sbn as usize)?;
        let sums = |block: &Block| (u64::from(block.symbols_wanted()), block.memory());
        let (before, enough_before) = (sums(block), block.has_enough());
        let result = change(block);
        let (after, enough) = (sums(block), block.has_enough());
        self.enough.change_part(enough_before.into(), enough.into());
        let changed = Changed {
            missing: Step { before: missing, after: self.missing() },
            symbols_wanted: Step { before: before.0, after: after.0 },
            decoder_bytes: Step { before: before.1, after: after.1 },
        };
        Some((result, changed))
    }

    /// What is still missing: blocks that need symbols, and the driver's answer to
    /// [`ReceiveJob::Open`].
    pub(super) fn missing(&self) -> usize {
        match self.state {
            ObjectState::Opening => self.blocks.len().saturating_add(1),
            ObjectState::Receiving => self.blocks.len().saturating_sub(self.enough),
            ObjectState::Committing | ObjectState::Done | ObjectState::Failed => 0,
        }
    }

    pub(super) fn symbols_wanted(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.symbols_wanted())).sum()
    }

    /// Sum of [`Block::memory`].
    pub(super) fn decoder_bytes(&self) -> u64 {
        self.blocks.iter().map(Block::memory).sum()
    }

    /// Blocks whose bytes are being worked on.
    pub(super) fn worked_on(&self) -> usize {
        self.blocks.iter().filter(|block| block.is_worked_on()).count()
    }

    pub(super) fn commit_if_verified(&mut self, toi: Toi, out: &mut VecDeque<ReceiverOutput>) {
        if self.state == ObjectState::Receiving && self.unverified == 0 {
            self.state = ObjectState::Committing;
            out.push_back(ReceiverOutput::Job(ReceiveJob::Commit { toi }));
        }
    }
}
