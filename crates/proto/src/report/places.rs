//! The receivers that a collector remembers, in bounded memory.
//!
//! A receiver has a place under what vouches for its reports and its id: a report that nothing
//! authenticates changes nothing of a receiver that signs. Receivers that nothing authenticates
//! have a quarter of the places, a network of them at most [`MOST_OF_A_NETWORK`]. When they have no
//! place left, one of the network that has most of them is displaced. An authentic receiver
//! displaces them, and one whose name is expected displaces members of the group whose names are
//! not.

use super::authority::{Authority, Network};
use super::status::ReceiverStatus;
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_wire::{Fingerprint, Hash, ReceiverId, ReceiverLabel, ReceiverState};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

/// Part of the places that receivers have together that nothing authenticates.
const UNAUTHENTICATED: usize = 4;
/// Places of one network that nothing authenticates: one host lengthens a round to six seconds.
pub(super) const MOST_OF_A_NETWORK: u32 = 1 << 10;
/// Places under one name without a key: two make the name contradictory.
const MOST_OF_A_NAME: usize = 8;
/// Entries of a queue that are not looked through for those that are passed over.
const SHORT_QUEUE: usize = 64;
/// Roll calls that list a receiver after its final report. A receiver stops after two; the third is
/// for those that lose one, where there is room.
const LISTINGS: usize = 3;
/// Places that are looked at for one to displace.
const LOOKED_AT: usize = 64;

/// Rounds after which a receiver that no longer reports is not waited for, and the time after which
/// it is not. The last rounds of a session take a tenth of a second, and a host may be busy.
const SILENT_ROUNDS: u32 = 2;
const SILENT_FOR: Duration = Duration::from_secs(2);
/// Time after which a receiver that no longer reports in these rounds has gone, and another process
/// may have its name.
const GONE: Duration = Duration::from_secs(10);
/// Time after the last report of a receiver that has ended after which another process may have its
/// name: it was started again.
const ENDED: Duration = Duration::from_secs(5);
/// Authentic answers of a round for each of a receiver that nothing authenticates, where others
/// sign.
const AUTHENTIC_PER_OTHER: usize = 3;

/// Receivers, by whether something authenticates them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) authentic: usize,
    pub(super) others: usize,
}

impl Counts {
    pub(super) fn add(&mut self, by: Authority) {
        *self.of(by) += 1;
    }

    fn of(&mut self, by: Authority) -> &mut usize {
        if by.is_authentic() { &mut self.authentic } else { &mut self.others }
    }

    /// The number of receivers that a round is for. Where others sign, those that nothing
    /// authenticates are a quarter of them, or `least`.
    pub(super) fn limited(self, where_others_sign: bool, least: usize) -> usize {
        let most = (self.authentic / AUTHENTIC_PER_OTHER).max(least);
        self.authentic + if where_others_sign { self.others.min(most) } else { self.others }
    }
}

/// The number of a place.
pub(super) type Slot = u32;

/// A receiver that has reported.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) status: ReceiverStatus,
    pub(super) counter: u64,
    /// Round of its last report.
    pub(super) round: u32,
    /// The roll call that its last report answers.
    pub(super) serial: u64,
    /// Of its label.
    fingerprint: Fingerprint,
    /// The number of its label among those that are expected.
    expected: Option<u32>,
    /// Its state is not what the last snapshot had.
    pub(super) is_changed: bool,
    /// It waits to be listed, and so many roll calls have listed it.
    listed: Option<u8>,
    /// Its state is to be shown.
    is_news: bool,
}

impl Place {
    /// Whether the receiver no longer reports in this round.
    fn is_silent(&self, round: u32) -> bool {
        round.wrapping_sub(self.round) > SILENT_ROUNDS
    }

    /// Whether it no longer reports, for so long that it has ended without a final state.
    pub(super) fn is_gone(&self, round: u32, now: Instant) -> bool {
        !self.status.report.state.is_final()
            && self.is_silent(round)
            && now >= self.status.reported_at + GONE
    }

    /// Whether it still reports, or has done so lately.
    pub(super) fn is_present(&self, round: u32, now: Instant) -> bool {
        match self.status.report.state.is_final() {
            true => now < self.status.reported_at + ENDED,
            false => !self.is_gone(round, now),
        }
    }
}

/// Slots in the order in which they came, those of authentic receivers first. An entry whose place
/// was given to another receiver, or does not wait any more, is passed over.
#[derive(Debug, Default)]
struct SlotQueue([VecDeque<Slot>; 2]);

impl SlotQueue {
    fn push(&mut self, by: Authority, slot: Slot) {
        let [authentic, others] = &mut self.0;
        if by.is_authentic() { authentic } else { others }.push_back(slot);
    }

    fn pop(&mut self) -> Option<Slot> {
        self.0.iter_mut().find_map(VecDeque::pop_front)
    }

    fn iter(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().flatten().copied()
    }

    /// Forgets entries that are passed over, if they are more than the places.
    fn shrink(&mut self, places: usize, waits: impl Fn(Slot) -> bool) {
        for queue in &mut self.0 {
            if queue.len() > 2 * places + SHORT_QUEUE {
                let mut seen = BTreeSet::new();
                queue.retain(|&slot| waits(slot) && seen.insert(slot));
            }
        }
    }
}

/// How many receivers are in which state, so that a question of all of them looks at none.
#[derive(Debug, Default)]
struct Census {
    /// Those without a final state, by the round of their last report.
    unfinished: BTreeMap<u32, Counts>,
    /// Of these: those that need symbols, and those that need many.
    needing: BTreeMap<u32, Counts>,
    behind: BTreeMap<u32, Counts>,
    finished: u32,
    /// Those that are complete with the session's manifest, and have not contradicted themselves.
    complete: u64,
}

impl Census {
    /// Adds a receiver, or with `false` removes it.
    fn count(&mut self, place: &Place, manifest: Hash, adds: bool) {
        let status = &place.status;
        if !status.report.state.is_final() {
            let needing = Some(&mut self.needing).filter(|_| status.needs_symbols());
            let behind = Some(&mut self.behind).filter(|_| status.is_behind());
            for by_round in needing.into_iter().chain(behind).chain([&mut self.unfinished]) {
                let counts = by_round.entry(place.round).or_default();
                let count = counts.of(status.by);
                *count = if adds { *count + 1 } else { count.saturating_sub(1) };
                if counts.authentic + counts.others == 0 {
                    by_round.remove(&place.round);
                }
            }
            return;
        }
        let is_complete =
            !status.is_contradictory && status.report.state == ReceiverState::Complete { manifest };
        let complete = u64::from(is_complete);
        match adds {
            true => (self.finished, self.complete) = (self.finished + 1, self.complete + complete),
            false => (self.finished, self.complete) = (self.finished - 1, self.complete - complete),
        }
    }
}

/// The receivers that a collector remembers.
#[derive(Debug)]
pub(super) struct Places {
    /// Of what complete receivers have.
    manifest: Hash,
    census: Census,
    most: usize,
    /// The user trusts reports that nothing authenticates: they may have all places.
    trusts_unauthenticated: bool,
    slots: Vec<Option<Place>>,
    free: Vec<Slot>,
    ids: BTreeMap<(Authority, ReceiverId), Slot>,
    labels: BTreeSet<(Fingerprint, Slot)>,
    /// Places of each network that nothing authenticates, and the networks by their number.
    networks: BTreeMap<Network, u32>,
    by_size: BTreeSet<(u32, Network)>,
    unauthenticated: usize,
    salt: u64,
    random: SplitMix64,
    /// Receivers that wait to be listed, by the roll calls that have listed them, and their number.
    listings: [SlotQueue; LISTINGS],
    waiting: [usize; LISTINGS],
    /// Receivers whose state is to be shown.
    news: SlotQueue,
    /// The numbers of the expected labels whose final state was not known when they were looked at
    /// last, or of which something has changed since.
    unsettled: BTreeSet<u32>,
    /// The rounds in which a receiver has reported that still counts, and when each began.
    rounds: VecDeque<(u32, Instant)>,
}

/// Those whose last report is of one of these rounds.
fn lately<'r>(
    by_round: &BTreeMap<u32, Counts>,
    rounds: impl Iterator<Item = &'r (u32, Instant)>,
) -> Counts {
    let lately = rounds.filter_map(|(round, _)| by_round.get(round));
    lately.fold(Counts::default(), |all, counts| Counts {
        authentic: all.authentic + counts.authentic,
        others: all.others + counts.others,
    })
}

impl Places {
    /// Of `expected` labels. `manifest`: of what complete receivers have.
    pub(super) fn new(
        manifest: Hash,
        expected: usize,
        most: usize,
        trusts_unauthenticated: bool,
        seed: u64,
    ) -> Self {
        let expected = u32::try_from(expected).unwrap_or(u32::MAX);
        let mut random = SplitMix64::new(seed, 1);
        Self {
            manifest,
            census: Census::default(),
            most,
            trusts_unauthenticated,
            slots: Vec::new(),
            free: Vec::new(),
            ids: BTreeMap::new(),
            labels: BTreeSet::new(),
            networks: BTreeMap::new(),
            by_size: BTreeSet::new(),
            unauthenticated: 0,
            salt: random.next_u64(),
            random,
            listings: Default::default(),
            waiting: [0; LISTINGS],
            news: SlotQueue::default(),
            unsettled: (0..expected).collect(),
            rounds: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Receivers that nothing authenticates.
    pub(super) fn unauthenticated(&self) -> usize {
        self.unauthenticated
    }

    /// Receivers whose last state is final.
    pub(super) fn finished(&self) -> u32 {
        self.census.finished
    }

    /// Receivers whose last state is complete, with the session's manifest, and that have not
    /// contradicted themselves.
    pub(super) fn complete(&self) -> u64 {
        self.census.complete
    }

    /// A round begins. Rounds follow each other no faster than roll calls, so that few are kept.
    pub(super) fn begin_round(&mut self, now: Instant, round: u32) {
        self.rounds.push_back((round, now));
        let is_over = |rounds: &VecDeque<(u32, Instant)>| {
            let next_began = rounds.get(1).map(|&(_, began)| began);
            rounds.len() > SILENT_ROUNDS as usize + 1
                && next_began.is_some_and(|began| now >= began + SILENT_FOR)
        };
        while is_over(&self.rounds) {
            self.rounds.pop_front();
        }
    }

    /// Receivers that have reported in this round or lately, and no final state.
    pub(super) fn outstanding(&self) -> Counts {
        lately(&self.census.unfinished, self.rounds.iter())
    }

    /// Of these, the ones that need symbols.
    pub(super) fn needing(&self) -> Counts {
        lately(&self.census.needing, self.rounds.iter())
    }

    /// Of these, the ones that need many, and have reported after this round.
    pub(super) fn behind(&self, after: u32) -> Counts {
        let is_later =
            |(round, _): &&(u32, Instant)| (1..1 << 31).contains(&round.wrapping_sub(after));
        lately(&self.census.behind, self.rounds.iter().filter(is_later))
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Place> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Changes a place. Returns the answer of `change`; `None` if there is no such place.
    pub(super) fn update<T>(
        &mut self,
        slot: Slot,
        change: impl FnOnce(&mut Place) -> T,
    ) -> Option<T> {
        let place = self.slots.get_mut(slot as usize)?.as_mut()?;
        self.census.count(place, self.manifest, false);
        let changed = change(place);
        self.census.count(place, self.manifest, true);
        self.unsettled.extend(place.expected);
        Some(changed)
    }

    /// The state of a receiver for a snapshot, after which it has not changed.
    pub(super) fn snapshot(&mut self, slot: Slot) -> Option<ReceiverStatus> {
        let place = self.slots.get_mut(slot as usize)?.as_mut()?;
        place.is_changed = false;
        Some(place.status.clone())
    }

    pub(super) fn slot(&self, by: Authority, receiver: &ReceiverId) -> Option<Slot> {
        self.ids.get(&(by, *receiver)).copied()
    }

    /// All places, in the order of what vouches for them and of ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Place> {
        self.ids.values().filter_map(|&slot| self.get(slot))
    }

    /// All slots, in the same order.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.ids.values().copied()
    }

    pub(super) fn fingerprint(&self, label: &ReceiverLabel) -> Fingerprint {
        Fingerprint::of_label(self.salt, label)
    }

    /// The places with this label, whose fingerprint is given.
    pub(super) fn labelled<'a>(
        &'a self,
        fingerprint: Fingerprint,
        label: &'a ReceiverLabel,
    ) -> impl Iterator<Item = &'a Place> {
        let range = (fingerprint, 0)..=(fingerprint, Slot::MAX);
        self.labels
            .range(range)
            .filter_map(|&(_, slot)| self.get(slot))
            .filter(move |place| place.status.report.label == *label)
    }

    /// Of the processes with this label that report no more, the one that has reported first.
    fn oldest_ended(
        &self,
        fingerprint: Fingerprint,
        label: &ReceiverLabel,
        is_gone: impl Fn(&Place) -> bool,
    ) -> Option<Slot> {
        let ended = self
            .labelled(fingerprint, label)
            .filter(|place| place.status.report.state.is_final() || is_gone(place));
        let oldest = ended.min_by_key(|place| place.status.reported_at)?;
        self.slot(oldest.status.by, &oldest.status.report.receiver)
    }

    /// Gives a place to a receiver that has none. `None`: there is none for it. `is_gone`: whether
    /// one no longer reports, and need not keep its place.
    pub(super) fn add(
        &mut self,
        by: Authority,
        status: ReceiverStatus,
        expected: Option<u32>,
        is_gone: impl Fn(&Place) -> bool,
    ) -> Option<Slot> {
        let is_expected = expected.is_some();
        let fingerprint = self.fingerprint(&status.report.label);
        let is_named = is_expected && !matches!(by, Authority::Key(_));
        if is_named && self.labelled(fingerprint, &status.report.label).count() >= MOST_OF_A_NAME {
            // A receiver that is started again and again has its name again each time.
            let ended = self.oldest_ended(fingerprint, &status.report.label, &is_gone)?;
            self.remove(ended);
        }
        let has_room = match by {
            Authority::Unauthenticated(network) => {
                self.make_room_in(network) || self.displace(by, is_gone)
            }
            Authority::Key(_) => {
                self.make_room() || self.displace(Authority::Group, |it| it.expected.is_none())
            }
            Authority::Group => {
                let gives_way = |it: &Place| it.expected.is_none() && (is_expected || is_gone(it));
                self.make_room() || self.displace(by, gives_way)
            }
        };
        if !has_room {
            return None;
        }
        let receiver = status.report.receiver;
        let place = Place {
            counter: 0,
            round: status.report.round,
            serial: 0,
            fingerprint,
            expected,
            is_changed: true,
            listed: None,
            is_news: false,
            status,
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = Slot::try_from(self.slots.len()).ok()?;
                self.slots.push(None);
                slot
            }
        };
        if !place.status.report.label.is_empty() {
            self.labels.insert((fingerprint, slot));
        }
        self.ids.insert((by, receiver), slot);
        if let Authority::Unauthenticated(network) = by {
            self.unauthenticated += 1;
            self.resize(network, |size| size + 1);
        }
        self.census.count(&place, self.manifest, true);
        if let Some(free) = self.slots.get_mut(slot as usize) {
            *free = Some(place);
        }
        Some(slot)
    }

    /// Changes the number of places of a network.
    fn resize(&mut self, network: Network, change: impl Fn(u32) -> u32) {
        let size = self.networks.remove(&network).unwrap_or(0);
        self.by_size.remove(&(size, network));
        let size = change(size);
        if size > 0 {
            self.networks.insert(network, size);
            self.by_size.insert((size, network));
        }
    }

    /// Whether a receiver of this network that nothing authenticates may have a place, which is
    /// then free.
    fn make_room_in(&mut self, network: Network) -> bool {
        let own = self.networks.get(&network).copied().unwrap_or(0);
        let most = match self.trusts_unauthenticated {
            true => self.most,
            false => self.most.div_ceil(UNAUTHENTICATED),
        };
        if !self.trusts_unauthenticated && own >= MOST_OF_A_NETWORK {
            return false;
        }
        if self.len() < self.most && self.unauthenticated < most {
            return true;
        }
        let largest = self.by_size.last().copied();
        largest.is_some_and(|(size, largest)| size > own + 1 && self.displace_in(largest))
    }

    /// Frees a place of this network.
    fn displace_in(&mut self, network: Network) -> bool {
        let id = self.random_id();
        let by = Authority::Unauthenticated(network);
        let (first, last) = ((by, ReceiverId([0; 16])), (by, ReceiverId([0xFF; 16])));
        let next = self.ids.range((by, id)..=last).next();
        let slot = next.or_else(|| self.ids.range(first..=last).next()).map(|(_, &slot)| slot);
        slot.is_some_and(|slot| self.remove(slot))
    }

    /// Whether an authentic receiver may have a place, which is then free, perhaps that of one that
    /// nothing authenticates.
    fn make_room(&mut self) -> bool {
        let largest = self.by_size.last().copied();
        self.len() < self.most || largest.is_some_and(|(_, network)| self.displace_in(network))
    }

    /// Frees the place of a receiver with this authority that gives way, if some random ones have
    /// one.
    fn displace(&mut self, by: Authority, gives_way: impl Fn(&Place) -> bool) -> bool {
        let start = (by, self.random_id());
        let behind = (Bound::Included(start), Bound::Unbounded);
        let found = (self.ids.range(behind).take_while(|((other, _), _)| *other == by))
            .chain(self.ids.range((by, ReceiverId([0; 16]))..start))
            .take(LOOKED_AT)
            .find(|&(_, &slot)| self.get(slot).is_some_and(&gives_way))
            .map(|(_, &slot)| slot);
        found.is_some_and(|slot| self.remove(slot))
    }

    fn random_id(&mut self) -> ReceiverId {
        let mut id = [0; 16];
        for (byte, random) in id.iter_mut().zip(self.random.next_u64().to_be_bytes()) {
            *byte = random;
        }
        ReceiverId(id)
    }

    /// Forgets a receiver. Returns whether it was known.
    pub(super) fn remove(&mut self, slot: Slot) -> bool {
        let Some(place) = self.slots.get_mut(slot as usize).and_then(Option::take) else {
            return false;
        };
        self.census.count(&place, self.manifest, false);
        self.unsettled.extend(place.expected);
        self.ids.remove(&(place.status.by, place.status.report.receiver));
        self.labels.remove(&(place.fingerprint, slot));
        if let Some(count) = place.listed.and_then(|it| self.waiting.get_mut(usize::from(it))) {
            *count -= 1;
        }
        if let Authority::Unauthenticated(network) = place.status.by {
            self.unauthenticated -= 1;
            self.resize(network, |size| size.saturating_sub(1));
        }
        self.free.push(slot);
        true
    }

    /// The numbers of the expected labels whose final state may not be known, ascending.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = u32> {
        self.unsettled.iter().copied()
    }

    /// The final state of an expected label is known.
    pub(super) fn settle(&mut self, number: u32) {
        self.unsettled.remove(&number);
    }

    /// The receiver waits to be listed, unless it does already.
    pub(super) fn queue_listing(&mut self, slot: Slot) {
        if self.get(slot).is_some_and(|place| place.listed.is_none()) {
            self.list_after(slot, 0);
        }
    }

    /// The receiver waits to be listed, after so many roll calls that have listed it.
    fn list_after(&mut self, slot: Slot, listed: usize) {
        let Some(queue) = self.listings.get_mut(listed) else { return };
        let Some(place) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        place.listed = u8::try_from(listed).ok();
        queue.push(place.status.by, slot);
        if let Some(count) = self.waiting.get_mut(listed) {
            *count += 1;
        }
        let (slots, most) = (&self.slots, self.ids.len());
        queue.shrink(most, |slot| waits(slots, slot, listed));
    }

    /// Number of receivers that wait to be listed, by the roll calls that have listed them.
    pub(super) fn waiting(&self) -> [usize; LISTINGS] {
        self.waiting
    }

    /// The receivers that wait to be listed.
    pub(super) fn to_list(&self) -> impl Iterator<Item = &Place> {
        self.listings.iter().enumerate().flat_map(move |(listed, queue)| {
            let waits = move |&slot: &Slot| waits(&self.slots, slot, listed);
            queue.iter().filter(waits).filter_map(|slot| self.get(slot))
        })
    }

    /// The receivers that the next roll call lists, at most so many: those first that were listed
    /// least often. They wait for the one after it, if they were not listed often enough.
    pub(super) fn take_listed(&mut self, most: usize) -> Vec<ReceiverId> {
        let mut taken = Vec::new();
        for listed in 0..LISTINGS {
            while taken.len() < most
                && let Some(slot) = self.listings.get_mut(listed).and_then(SlotQueue::pop)
            {
                if waits(&self.slots, slot, listed)
                    && let Some(place) = self.slots.get_mut(slot as usize).and_then(Option::as_mut)
                {
                    place.listed = None;
                    taken.push((slot, place.status.report.receiver, listed));
                    if let Some(count) = self.waiting.get_mut(listed) {
                        *count -= 1;
                    }
                }
            }
        }
        for &(slot, _, listed) in &taken {
            self.list_after(slot, listed + 1);
        }
        taken.into_iter().map(|(_, receiver, _)| receiver).collect()
    }

    /// The receiver's state is to be shown.
    pub(super) fn queue_news(&mut self, slot: Slot) {
        let Some(place) = self.slots.get_mut(slot as usize).and_then(Option::as_mut) else {
            return;
        };
        place.is_changed = true;
        if !std::mem::replace(&mut place.is_news, true) {
            self.news.push(place.status.by, slot);
        }
        let (slots, most) = (&self.slots, self.ids.len());
        self.news.shrink(most, |slot| is_news(slots, slot));
    }

    /// The next receiver whose state is to be shown.
    pub(super) fn take_news(&mut self) -> Option<&ReceiverStatus> {
        let slot = loop {
            let slot = self.news.pop()?;
            if is_news(&self.slots, slot) {
                break slot;
            }
        };
        let place = self.slots.get_mut(slot as usize)?.as_mut()?;
        place.is_news = false;
        Some(&place.status)
    }

    /// Whether a state is to be shown.
    pub(super) fn has_news(&self) -> bool {
        self.news.iter().any(|slot| is_news(&self.slots, slot))
    }
}

fn waits(slots: &[Option<Place>], slot: Slot, listed: usize) -> bool {
    let place = slots.get(slot as usize).and_then(Option::as_ref);
    place.is_some_and(|place| place.listed.map(usize::from) == Some(listed))
}

fn is_news(slots: &[Option<Place>], slot: Slot) -> bool {
    slots.get(slot as usize).and_then(Option::as_ref).is_some_and(|place| place.is_news)
}
