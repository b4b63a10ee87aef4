//! FCAST sessions (RFC 6968): objects that describe themselves.
//!
//! There is no table. An object is opened when a packet of it says how it is encoded (EXT_FTI). Its
//! own header says what it is, and the driver reads the header when the object is complete. If the
//! object is a *carousel instance descriptor*, a list of the objects that are sent, the driver
//! returns it ([`Committed::Descriptor`]). Nothing is authenticated.
//!
//! Reception is complete when a complete instance was read, and everything that it lists has
//! arrived or was given up. Without such a descriptor, which a sender may leave out, a receiver
//! cannot know.
//!
//! [`Committed::Descriptor`]: crate::Committed::Descriptor

use super::collection::Collection;
use super::demand::Demand;
use super::discovery::{Content, Context, Discovery, Finding, NewObject};
use crate::collection::sent_toi;
use crate::counter::Counter;
use crate::event::{ReceiverEvent, Rejection};
use crate::job::Opening;
use crate::receiver::sessions::{ContentId, SessionState};
use crate::receiver::transfer::Transfer;
use fontana_fec::{EncodingId, ObjectLayout};
use fontana_wire::{CarouselInstance, Hash, Packet, Toi, fti};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The objects of the accepted session.
#[derive(Debug, Default)]
pub(in crate::receiver) struct FcastCatalog {
    /// What the objects that were opened ask for.
    demand: Demand,
    /// How many of them were descriptors.
    descriptors: usize,
    /// The newest instance that was read.
    instance: Option<CarouselInstance>,
    /// Number of objects that it lists and of which no packet was received.
    unknown: u128,
    /// New numbers of objects that were known when the instance was read, and their old ones.
    aliases: BTreeMap<Toi, Toi>,
    /// The objects that were opened.
    opened: BTreeMap<Toi, Opened>,
    /// Those that wait to be collected again.
    due: BTreeSet<Toi>,
}

/// An object that was opened.
#[derive(Debug)]
struct Opened {
    layout: ObjectLayout,
    collection: Collection,
}

impl FcastCatalog {
    /// The object that is collected from packets of this TOI.
    pub(super) fn current(&self, toi: Toi) -> Toi {
        let first = self.aliases.get(&toi).copied().unwrap_or(toi);
        self.opened.get(&first).map_or(first, |opened| opened.collection.object(first))
    }

    /// The bytes of an object are not what its header says. Whether it is collected again.
    pub(super) fn on_mismatch(&mut self, object: Toi, digest: Hash) -> bool {
        let toi = sent_toi(object);
        let current = |opened: &&mut Opened| opened.collection.object(toi) == object;
        let Some(opened) = self.opened.get_mut(&toi).filter(current) else { return false };
        let is_again = opened.collection.on_wrong(digest);
        if is_again {
            self.demand.leave(&opened.layout);
            self.due.insert(toi);
        }
        is_again
    }

    /// Whether an instance that lists every object was read, and all of them are known.
    pub(super) fn is_final(&self) -> bool {
        self.instance.as_ref().is_some_and(|instance| instance.is_complete)
            && self.unknown == 0
            && self.due.is_empty()
            // A session that has no files yet is not over.
            && self.demand.files() > self.descriptors
    }

    /// Whether symbols of an object that is not open are of no use: a complete instance does not
    /// list it, or its collection is not due yet.
    pub(super) fn is_useless(&self, object: Toi) -> bool {
        let toi = sent_toi(object);
        self.instance.as_ref().is_some_and(|i| i.is_complete && !i.lists(toi))
            || self.due.contains(&toi)
    }

    /// A packet of an object. Opens the object if that was not done before and the packet says how
    /// it is encoded.
    pub(super) fn on_object(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        object: Toi,
        packet: &Packet<'_>,
    ) -> Discovery {
        let (toi, extensions) = (sent_toi(object), packet.header.extensions);
        // A session with a table, a head or a manifest is of another kind.
        let is_other = extensions.fdt().is_some() || matches!(toi, Toi::HEAD | Toi::MANIFEST);
        if is_other || cx.transfer.contains(object) {
            return Discovery::Nothing;
        }
        let known = self.opened.get(&toi);
        if known.is_some_and(|opened| !opened.collection.begins(cx.now)) {
            return Discovery::Nothing;
        }
        let Some(content) = extensions.fti() else { return Discovery::Nothing };
        let codepoint = EncodingId(packet.header.codepoint);
        let Ok(oti) = fti::parse(codepoint, content) else { return Discovery::Nothing };
        if oti.layout().is_err() {
            return Discovery::Nothing;
        }
        let id = ContentId::Session(session.key);
        if cx.accepted.is_some_and(|accepted| *accepted != id) {
            return Discovery::Refused(Rejection::OtherSession);
        }
        session.content = Some(id);
        let limits = &cx.config.limits;
        let is_first = !self.opened.contains_key(&toi);
        self.due.remove(&toi);
        let finding = if self.is_useless(toi) {
            None
        } else {
            match self.demand.admit(oti, limits) {
                Ok(layout) => {
                    let collection = Collection::first(cx.now);
                    let opened = self.opened.entry(toi).or_insert(Opened { layout, collection });
                    opened.layout = layout;
                    opened.collection.begin(cx.now);
                    let (session, toi) = (session.key, object);
                    let opening = Opening::Compound { session, toi, layout };
                    let object = NewObject { toi, layout, block_hashes: None };
                    Some(Finding::open(object, None, opening))
                }
                // Its name is in its header, which is not received.
                Err(reason) => cx.transfer.may_refuse(limits.max_files).then(|| {
                    let content_location = format!("object {toi}");
                    Finding::Refuse { toi: object, content_location, reason }
                }),
            }
        };
        if finding.is_some() && is_first {
            self.on_known(toi);
        }
        let findings = finding.into_iter().collect();
        match cx.accepted {
            Some(_) => Discovery::Objects(findings),
            None => {
                let event = Some(ReceiverEvent::CarouselFound { session: session.key });
                Discovery::Content(Box::new(Content { id, version: None, event, findings }))
            }
        }
    }

    /// The first packet of an object was received.
    fn on_known(&mut self, toi: Toi) {
        if self.instance.as_ref().is_some_and(|instance| instance.lists(toi)) {
            self.unknown.discount(1);
        }
    }

    /// An object turned out to be a descriptor.
    pub(super) fn on_descriptor(&mut self, instance: CarouselInstance, transfer: &mut Transfer) {
        self.descriptors.count(1);
        self.on_instance(instance, transfer);
        if let Some(instance) = self.instance.as_ref().filter(|i| i.is_complete) {
            let renumbered: BTreeSet<_> = self.aliases.values().collect();
            // Objects that the sender stopped sending, and objects that others have made up.
            let is_unlisted = |toi| !instance.lists(toi) && !renumbered.contains(&toi);
            transfer.forget_unfinished(|object| is_unlisted(sent_toi(object)));
            self.due.retain(|&toi| !is_unlisted(toi));
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
        self.unknown = ranges
            .map(|range| {
                // At most 2^112 numbers are listed, each once.
                let count = range.end().0.saturating_sub(range.start().0).saturating_add(1);
                count.saturating_sub(self.count_known(range, transfer) as u128)
            })
            .fold(0, u128::saturating_add);
        self.aliases.clear();
        for equivalence in &instance.equivalences {
            let toi = equivalence.toi;
            if self.knows(toi, transfer) {
                continue;
            }
            if self.knows(equivalence.first_toi, transfer) {
                self.aliases.insert(toi, equivalence.first_toi);
                self.unknown.discount(listed(toi).into());
            } else {
                self.unknown.count((!listed(toi)).into());
            }
        }
        self.instance = Some(instance);
    }

    /// Whether it has been decided to receive the object, or not to.
    fn knows(&self, toi: Toi, transfer: &Transfer) -> bool {
        transfer.contains(toi) || self.opened.contains_key(&toi)
    }

    /// How many of a range of objects are known.
    fn count_known(&self, range: &RangeInclusive<Toi>, transfer: &Transfer) -> usize {
        let again = self.opened.range(range.clone()).filter(|(_, o)| !o.collection.is_first());
        transfer.count_known(range.clone()).saturating_add(again.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::config::{DecodePolicy, ReceiverLimits};
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::{FecScheme, Oti};
    use fontana_wire::Equivalence;

    /// A catalog that knows these objects, and they.
    fn knowing(tois: &[u128]) -> (FcastCatalog, Transfer) {
        let limits = ReceiverLimits::default();
        let mut catalog = FcastCatalog::default();
        let mut transfer = Transfer::new(DecodePolicy::Incremental, &limits);
        for &toi in tois {
            let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
            let oti = Oti { transfer_length: 1, symbol_size: 1, scheme };
            let layout = catalog.demand.admit(oti, &limits).unwrap();
            transfer.insert(Toi(toi), layout, None);
        }
        (catalog, transfer)
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
        let (mut catalog, transfer) = knowing(&[1, 3, 4]);
        catalog.on_instance(instance(&[1..=3, 5..=5]), &transfer);
        assert_eq!(catalog.unknown, 2);
        catalog.on_known(Toi(9));
        catalog.on_known(Toi(2));
        assert!(!catalog.is_final());
        catalog.on_known(Toi(5));
        assert!(catalog.is_final());
        assert!(!catalog.is_useless(Toi(5)) && catalog.is_useless(Toi(4)));
    }

    #[test]
    fn a_range_of_all_numbers_is_never_complete() {
        let (mut catalog, transfer) = knowing(&[1, 2]);
        catalog.on_instance(instance(&[0..=Toi::MAX.0]), &transfer);
        assert_eq!(catalog.unknown, Toi::MAX.0 - 1);
        assert!(!catalog.is_final());
    }

    #[test]
    fn a_session_of_nothing_but_descriptors_is_not_over() {
        let (mut catalog, transfer) = knowing(&[1]);
        catalog.descriptors = 1;
        catalog.on_instance(instance(&[]), &transfer);
        assert!(!catalog.is_final());
    }

    #[test]
    fn an_old_number_stands_for_the_new_one_if_it_is_known() {
        let (mut catalog, transfer) = knowing(&[1, 7]);
        let equivalences =
            vec![equivalence(5, 1), equivalence(6, 2), equivalence(7, 3), equivalence(8, 1)];
        // Number 8 is listed as itself, too.
        catalog.on_instance(CarouselInstance { equivalences, ..instance(&[8..=8]) }, &transfer);
        assert_eq!(catalog.unknown, 1, "only number 6, whichever its old number");
        let first = |toi| catalog.current(Toi(toi)).0;
        assert_eq!([5, 6, 7, 8].map(first), [1, 6, 7, 1]);
        catalog.on_known(Toi(6));
        assert!(catalog.is_final());
    }

    #[test]
    fn instances_follow_each_other_by_their_numbers_until_one_is_complete() {
        let (mut catalog, transfer) = knowing(&[1]);
        let open = |id| CarouselInstance { is_complete: false, id, ..instance(&[1..=2]) };
        let complete = |id| CarouselInstance { id, ..instance(&[1..=1]) };
        catalog.on_instance(open(Some(3)), &transfer);
        catalog.on_instance(complete(Some(2)), &transfer);
        assert!(!catalog.is_final());
        catalog.on_instance(complete(Some(4)), &transfer);
        assert!(catalog.is_final());
        catalog.on_instance(open(Some(5)), &transfer);
        assert!(catalog.is_final());
    }
}
