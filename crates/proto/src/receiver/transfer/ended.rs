//! Objects that are complete, given up, or forgotten.

use super::Transfer;
use super::block::Block;
use super::object::{Object, ObjectState};
use crate::counter::Counter;
use crate::event::{ObjectFailure, ReceiverEvent, ReceiverOutput, Verified};
use crate::job::JobError;
use fontana_wire::Toi;
use std::collections::VecDeque;

impl Transfer {
    pub(in crate::receiver) fn on_committed(
        &mut self,
        toi: Toi,
        verified: Verified,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        self.change(toi, |object| {
            if object.state == ObjectState::Committing {
                object.state = ObjectState::Done;
                out.push_back(ReceiverOutput::Event(ReceiverEvent::ObjectDone { toi, verified }));
            }
        });
    }

    /// A descriptor is done: an object that is no file. False if it was not being committed.
    pub(in crate::receiver) fn on_descriptor_read(&mut self, toi: Toi) -> bool {
        let read = self.change(toi, |object| {
            let read = object.state == ObjectState::Committing;
            if read {
                object.state = ObjectState::Done;
            }
            read
        });
        read.unwrap_or(false)
    }

    /// Forgets objects that are not complete.
    pub(in crate::receiver) fn forget_unfinished(&mut self, is_unwanted: impl Fn(Toi) -> bool) {
        let unfinished = |(&toi, object): (&Toi, &Object)| {
            let waits = matches!(object.state, ObjectState::Opening | ObjectState::Receiving);
            (waits && is_unwanted(toi)).then_some(toi)
        };
        for toi in self.objects.iter().filter_map(unfinished).collect::<Vec<_>>() {
            self.remove(toi);
        }
    }

    /// Forgets objects that are complete.
    pub(in crate::receiver) fn forget_complete(&mut self) {
        // None of its sums counts them.
        self.objects.retain(|_, object| object.state != ObjectState::Done);
    }

    /// Forgets an object as if it had not been announced.
    pub(in crate::receiver) fn withdraw(&mut self, toi: Toi) {
        if let Some(object) = self.objects.get(&toi) {
            self.source_symbols.discount(object.layout.total_source_symbols());
        }
        self.refused.remove(&toi);
        self.remove(toi);
    }

    /// Forgets an object.
    pub(in crate::receiver) fn remove(&mut self, toi: Toi) {
        if let Some(object) = self.objects.remove(&toi) {
            self.working.discount(object.worked_on());
            self.missing.discount(object.missing());
            self.symbols_wanted.discount(object.symbols_wanted());
            self.decoder_bytes.discount(object.decoder_bytes());
        }
    }

    /// Gives up an object.
    pub(in crate::receiver) fn fail(
        &mut self,
        toi: Toi,
        failure: ObjectFailure,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        let (mut released, mut worked_on) = (0, 0);
        let wanted = self.change(toi, |object| {
            if matches!(object.state, ObjectState::Failed | ObjectState::Done) {
                return 0;
            }
            object.state = ObjectState::Failed;
            out.push_back(ReceiverOutput::Event(ReceiverEvent::ObjectFailed { toi, failure }));
            let wanted = object.symbols_wanted();
            let before = object.decoder_bytes();
            worked_on = object.worked_on();
            object.blocks.iter_mut().for_each(Block::give_up);
            released = before.saturating_sub(object.decoder_bytes());
            wanted
        });
        self.decoder_bytes.discount(released);
        self.symbols_wanted.discount(wanted.unwrap_or(0));
        // The job on one of its blocks may be what has failed: it has no other answer.
        self.working.discount(worked_on);
        self.work_on_waiting(out);
    }

    /// Gives up every object.
    pub(in crate::receiver) fn fail_all(
        &mut self,
        error: &JobError,
        out: &mut VecDeque<ReceiverOutput>,
    ) {
        self.waiting.clear();
        for toi in self.objects.keys().copied().collect::<Vec<_>>() {
            self.fail(toi, ObjectFailure::Job(error.clone()), out);
        }
    }

    /// Whether an object was given up.
    pub(in crate::receiver) fn has_failed(&self) -> bool {
        self.objects.values().any(|object| object.state == ObjectState::Failed)
    }

    /// Whether every block is verified, or its object given up.
    pub(in crate::receiver) fn is_verified(&self) -> bool {
        let is_open =
            |object: &Object| matches!(object.state, ObjectState::Opening | ObjectState::Receiving);
        !self.objects.values().any(is_open)
    }

    /// Whether every object has been brought to disk.
    pub(in crate::receiver) fn all_committed(&self) -> bool {
        self.refused.is_empty()
            && self.objects.values().all(|object| object.state == ObjectState::Done)
    }

    /// Whether every object is done or given up.
    pub(in crate::receiver) fn all_settled(&self) -> bool {
        let settled =
            |object: &Object| matches!(object.state, ObjectState::Done | ObjectState::Failed);
        self.objects.values().all(settled)
    }
}
