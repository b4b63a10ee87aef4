//! FCAST sessions (RFC 6968): objects that describe themselves.
//!
//! There is no table. An object is opened when a packet of it says how it is encoded (EXT_FTI);
//! what it is, its own header tells when it has arrived, and the driver reads that. If it turns out
//! to be a *carousel instance descriptor*, the driver hands it back ([`Committed::Descriptor`]):
//! the list of the objects that are being sent. Nobody vouches for any of it.
//!
//! A receiver is done when an instance that is complete was read, and everything that it lists has
//! arrived or was given up. Without such a descriptor, which a sender may leave out, it cannot
//! know.
//!
//! [`Committed::Descriptor`]: crate::Committed::Descriptor

use super::flute::Demand;
use super::standing::Standing;
use super::transfer::Transfer;
use super::{Chosen, Receiver};
use crate::endpoint::SessionKey;
use crate::event::{ReceiverEvent, ReceiverOutput, Rejection};
use crate::job::{Opening, ReceiveJob};
use fontana_fec::EncodingId;
use fontana_wire::{CarouselInstance, Packet, Toi, fti};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the session that was chosen.
#[derive(Debug, Default)]
pub(super) struct Carousel {
    /// What the objects that were opened ask for.
    demand: Demand,
    /// How many of them were descriptors.
    descriptors: usize,
    /// The newest instance that was read.
    instance: Option<CarouselInstance>,
    /// Objects that it lists and nothing has been heard of.
    unheard_of: u128,
    /// New numbers of objects that were known when the instance was read, and their old ones.
    aliases: BTreeMap<Toi, Toi>,
}

impl Carousel {
    /// The number under which an object was first heard of.
    pub(super) fn first_toi(&self, toi: Toi) -> Toi {
        self.aliases.get(&toi).copied().unwrap_or(toi)
    }

    /// Whether everything there will be is known.
    fn is_settled(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.is_complete)
            && self.unheard_of == 0
            // A session that has nothing to offer yet is not over.
            && self.demand.files > self.descriptors
    }

    /// Whether an object may be of use: not one that a complete instance does not know.
    pub(super) fn may_have(&self, toi: Toi) -> bool {
        self.instance.as_ref().is_none_or(|i| !i.is_complete || i.lists(toi))
    }

    /// An object was heard of for the first time.
    fn on_known(&mut self, toi: Toi) {
        if self.instance.as_ref().is_some_and(|instance| instance.lists(toi)) {
            self.unheard_of = self.unheard_of.saturating_sub(1);
        }
    }

    /// Takes an instance, unless a newer or a complete one was read before.
    fn on_instance(&mut self, instance: CarouselInstance, transfer: &Transfer) {
        if self.instance.as_ref().is_some_and(|old| old.is_complete || old.id > instance.id) {
            return;
        }
        let listed = |toi| {
            let at = instance.objects.partition_point(|range| *range.end() < toi);
            instance.objects.get(at).is_some_and(|range| range.contains(&toi))
        };
        let ranges = instance.objects.iter();
        self.unheard_of = ranges
            .map(|range| {
                // At most 2^112 numbers are listed, each once.
                let count = range.end().0.saturating_sub(range.start().0).saturating_add(1);
                count.saturating_sub(transfer.count_known(range.clone()) as u128)
            })
            .fold(0, u128::saturating_add);
        self.aliases.clear();
        for equivalence in &instance.equivalences {
            let toi = equivalence.toi;
            if transfer.contains(toi) {
                continue;
            }
            if transfer.contains(equivalence.first_toi) {
                self.aliases.insert(toi, equivalence.first_toi);
                self.unheard_of = self.unheard_of.saturating_sub(listed(toi).into());
            } else {
                self.unheard_of = self.unheard_of.saturating_add((!listed(toi)).into());
            }
        }
        self.instance = Some(instance);
    }
}

impl Receiver {
    /// A packet of an object; opens it if that has not happened and the packet says how it is
    /// encoded.
    pub(super) fn on_compound_fti(&mut self, session: SessionKey, toi: Toi, packet: &Packet<'_>) {
        let extensions = packet.header.extensions;
        // What has a table, a head or a manifest is another kind of session.
        let is_other = extensions.fdt().is_some() || matches!(toi, Toi::HEAD | Toi::MANIFEST);
        if is_other || self.transfer.contains(toi) {
            return;
        }
        let Some(content) = extensions.fti() else { return };
        let Ok(oti) = fti::parse(EncodingId(packet.header.codepoint), content) else { return };
        if oti.layout().is_err() {
            return;
        }
        match self.chosen {
            None => {
                self.chosen = Some(Chosen::Fcast(session));
                self.outputs
                    .push_back(ReceiverOutput::Event(ReceiverEvent::CarouselFound { session }));
            }
            Some(Chosen::Fcast(chosen)) if chosen == session => {}
            Some(_) => return self.reject(session, Rejection::OtherSession),
        }
        if let Some(state) = self.sessions.get_mut(&session) {
            state.standing = Standing::Accepted;
        }
        if !self.carousel.may_have(toi) {
            return;
        }
        let limits = &self.config.limits;
        match self.carousel.demand.admit(oti, limits) {
            Ok(layout) => {
                self.transfer.insert(toi, layout, None);
                let opening = Opening::Compound { session, toi, layout };
                self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Open(opening)));
            }
            Err(reason) => {
                if !self.transfer.refuse(toi, limits.max_files) {
                    return;
                }
                // What it is called, its header would have told.
                let content_location = format!("object {toi}");
                self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::FileRefused {
                    toi,
                    content_location,
                    reason,
                }));
            }
        }
        self.carousel.on_known(toi);
    }

    /// An object turned out to be a descriptor.
    pub(super) fn on_carousel_read(&mut self, toi: Toi, instance: CarouselInstance) {
        if !self.transfer.on_descriptor_read(toi) {
            return;
        }
        self.carousel.descriptors += 1;
        self.carousel.on_instance(instance, &self.transfer);
        if let Some(instance) = self.carousel.instance.as_ref().filter(|i| i.is_complete) {
            let renumbered: BTreeSet<_> = self.carousel.aliases.values().collect();
            // What was taken off the carousel before it had arrived, and what strangers have begun.
            self.transfer
                .forget_unfinished(|toi| !instance.lists(toi) && !renumbered.contains(&toi));
        }
    }

    /// Whether an instance that lists everything there will be was read, and all of it is known.
    pub(super) fn carousel_is_settled(&self) -> bool {
        self.carousel.is_settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::{DecodePolicy, ReceiverLimits};
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::{FecScheme, Oti};
    use fontana_wire::Equivalence;
    use std::ops::RangeInclusive;

    /// A carousel that has heard of these objects, and they.
    fn heard(tois: &[u128]) -> (Carousel, Transfer) {
        let limits = ReceiverLimits::default();
        let mut carousel = Carousel::default();
        let mut transfer = Transfer::new(DecodePolicy::Incremental, &limits);
        for &toi in tois {
            let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
            let oti = Oti { transfer_length: 1, symbol_size: 1, scheme };
            let layout = carousel.demand.admit(oti, &limits).unwrap();
            transfer.insert(Toi(toi), layout, None);
        }
        (carousel, transfer)
    }

    fn instance(objects: &[RangeInclusive<u128>]) -> CarouselInstance {
        let range = |r: &RangeInclusive<u128>| Toi(*r.start())..=Toi(*r.end());
        let objects = objects.iter().map(range).collect();
        CarouselInstance { is_complete: true, objects, ..CarouselInstance::default() }
    }

    fn equivalence(toi: u128, first_toi: u128) -> Equivalence {
        Equivalence { toi: Toi(toi), first_toi: Toi(first_toi), first_instance: 0 }
    }

    #[test]
    fn all_that_a_complete_instance_lists_is_waited_for() {
        let (mut carousel, transfer) = heard(&[1, 3, 4]);
        carousel.on_instance(instance(&[1..=3, 5..=5]), &transfer);
        assert_eq!(carousel.unheard_of, 2);
        carousel.on_known(Toi(9));
        carousel.on_known(Toi(2));
        assert!(!carousel.is_settled());
        carousel.on_known(Toi(5));
        assert!(carousel.is_settled());
        assert!(carousel.may_have(Toi(5)) && !carousel.may_have(Toi(4)));
    }

    #[test]
    fn a_range_of_all_numbers_is_never_complete() {
        let (mut carousel, transfer) = heard(&[1, 2]);
        carousel.on_instance(instance(&[0..=Toi::MAX.0]), &transfer);
        assert_eq!(carousel.unheard_of, Toi::MAX.0 - 1);
        assert!(!carousel.is_settled());
    }

    #[test]
    fn a_session_of_nothing_but_descriptors_is_not_over() {
        let (mut carousel, transfer) = heard(&[1]);
        carousel.descriptors = 1;
        carousel.on_instance(instance(&[]), &transfer);
        assert!(!carousel.is_settled());
    }

    #[test]
    fn an_old_number_stands_for_the_new_one_if_it_was_heard_of() {
        let (mut carousel, transfer) = heard(&[1, 7]);
        let equivalences =
            vec![equivalence(5, 1), equivalence(6, 2), equivalence(7, 3), equivalence(8, 1)];
        // Number 8 is listed as itself, too.
        carousel.on_instance(CarouselInstance { equivalences, ..instance(&[8..=8]) }, &transfer);
        assert_eq!(carousel.unheard_of, 1, "only number 6, whichever its old number");
        let first = |toi| carousel.first_toi(Toi(toi)).0;
        assert_eq!([5, 6, 7, 8].map(first), [1, 6, 7, 1]);
        carousel.on_known(Toi(6));
        assert!(carousel.is_settled());
    }

    #[test]
    fn instances_follow_each_other_by_their_numbers_until_one_is_complete() {
        let (mut carousel, transfer) = heard(&[1]);
        let open = |id| CarouselInstance { is_complete: false, id, ..instance(&[1..=2]) };
        let complete = |id| CarouselInstance { id, ..instance(&[1..=1]) };
        carousel.on_instance(open(Some(3)), &transfer);
        carousel.on_instance(complete(Some(2)), &transfer);
        assert!(!carousel.is_settled());
        carousel.on_instance(complete(Some(4)), &transfer);
        assert!(carousel.is_settled());
        carousel.on_instance(open(Some(5)), &transfer);
        assert!(carousel.is_settled());
    }
}
