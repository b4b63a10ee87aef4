//! In place of `mirrors`, without the feature `web`: a reception has none.

use super::options::ReceiveOptions;
use crate::error::Error;
use crate::event::ReceiveEvent;
use crate::report::ReceiveReport;
use crossbeam_channel::Receiver as ChannelReceiver;
use fontana_proto::{BlockId, Instant, Receiver};
use fontana_wire::{Manifest, ManifestLimits};

/// No mirrors.
pub(super) enum PreparedMirrors {}

/// No running mirrors.
pub(super) enum Mirrors {}

/// No report.
pub(super) enum Report {}

impl PreparedMirrors {
    pub(super) fn new(_: &ReceiveOptions) -> Option<Self> {
        None
    }

    pub(super) fn start(self, _: &ReceiveOptions, _: ManifestLimits) -> Result<Mirrors, Error> {
        match self {}
    }
}

impl Mirrors {
    pub(super) fn reports(&self) -> &ChannelReceiver<Report> {
        match *self {}
    }

    pub(super) fn end_reports(&mut self) {
        match *self {}
    }

    pub(super) fn take_events(&mut self) -> Vec<ReceiveEvent> {
        match *self {}
    }

    pub(super) fn are_gone(&self) -> bool {
        match *self {}
    }

    pub(super) fn begin(&mut self, _: &Manifest) {
        match *self {}
    }

    pub(super) fn note_change(&mut self) {
        match *self {}
    }

    pub(super) fn drive(&mut self, _: Instant, _: &mut Receiver) {
        match *self {}
    }

    pub(super) fn on_report(
        &mut self,
        _: Instant,
        _: Report,
        _: &mut Receiver,
    ) -> Result<Vec<u8>, Error> {
        match *self {}
    }

    pub(super) fn on_verified(&mut self, _: Instant, _: BlockId, _: &mut Receiver) {
        match *self {}
    }

    pub(super) fn on_corrupt(&mut self, _: Instant, _: BlockId, _: &mut Receiver) {
        match *self {}
    }

    pub(super) fn report(&self, _: &mut ReceiveReport) {
        match *self {}
    }
}
