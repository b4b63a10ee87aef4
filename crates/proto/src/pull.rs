//! Which positions to request of which source, when a receiver pulls from several at once.
//!
//! A position is a symbol that decoders lack, in an order that the driver chooses. Every source can
//! send any range of positions; each has one request at a time. [`Pull`] decides the ranges from
//! the rates that it measures, and the driver makes the requests. It implements section V-C of
//! Byers, Luby, Mitzenmacher, *Accessing Multiple Mirror Sites in Parallel* (INFOCOM 1999):
//!
//! - Start offsets (the first enhancement): the sources begin at equal distances, and each goes on
//!   where its last request ended.
//! - Renegotiation (the second enhancement): a source that meets another one goes on in the gap, or
//!   in the part of another's request, that would otherwise be filled last. It takes as much of it
//!   as its rate allows until the other source meets it.
//! - At the end, only the fastest sources are left (footnote 3, in section V-B): a source that has
//!   nothing to do takes over a request that it can finish sooner.
//!
//! A silent or slow source therefore delays the others by little, whether or not it comes back.
//!
//! ```
//! use fontana_proto::Instant;
//! use fontana_proto::pull::Pull;
//!
//! let mut pull = Pull::new();
//! let (near, far) = (pull.add_source(), pull.add_source());
//! pull.set_lacking(std::iter::once(0..10_000).collect());
//! let now = Instant::ZERO;
//! assert_eq!(pull.next_request(now, near).unwrap().range.start, 0);
//! assert_eq!(pull.next_request(now, far).unwrap().range.start, 5_000);
//! ```

mod fresh;
mod ranges;
mod rate;
mod shelf;
mod symbols;

use crate::random::SplitMix64;
use crate::time::Instant;
pub use fresh::{FreshObject, FreshOrder, FreshPull, NotRequested};
pub use ranges::RangeSet;
use rate::RateMeter;
pub use shelf::{ShelfPull, ShelfRequest, Wanted};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
pub use symbols::{Pulled, PulledRun};

/// Longest duration of a request, by the measured rate. Each request costs a round trip, and what a
/// request still lacks when it is cut costs a connection.
const REQUEST_TIME: Duration = Duration::from_secs(4);
/// Shortest one: a hundred round trips of a near mirror.
const LEAST_REQUEST_TIME: Duration = Duration::from_millis(250);
/// Positions of the first request of a source whose rate is not known: 360 kB of usual symbols. A
/// later request has at most [`GROWTH`] times as many positions as the one before, because the
/// first bytes of a connection may come faster or slower than the rest.
const FIRST_REQUEST: u64 = 256;
const GROWTH: u64 = 4;
/// Least number of positions for which a request is divided: a packet train.
const LEAST_PART: u64 = 16;
/// Remaining time of a request below which it is left to its source.
const LEAST_GAIN: Duration = Duration::from_millis(60);
/// A source takes over a request as a whole if it needs at most this share of the time.
const TAKE_OVER: f64 = 0.8;
/// Time after which a source below [`SLOW`] of the rate that its request was planned with gives the
/// request back, and makes no other one for [`RESTS_FOR`].
const PATIENCE: Duration = Duration::from_secs(10);
const SLOW: f64 = 0.1;
const RESTS_FOR: Duration = Duration::from_secs(30);

/// Identifies a source of a [`Pull`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u32);

/// A range to be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The positions.
    pub range: Range<u64>,
    /// The whole range has to come from this source ([`Pull::add_whole`]).
    pub is_whole: bool,
}

/// The sources, what each of them is to send, and what is lacking.
#[derive(Clone, Debug, Default)]
pub struct Pull {
    lacking: RangeSet,
    wholes: Vec<Whole>,
    sources: BTreeMap<SourceId, Source>,
    next_id: u32,
    /// The start offsets are given out.
    has_begun: bool,
    /// Present if a source is still receiving.
    order: Option<RandomOrder>,
}

/// The order of blocks from sources that have all of them.
#[derive(Clone, Debug)]
struct RandomOrder {
    random: SplitMix64,
    /// The first position of each block, ascending.
    starts: Vec<u64>,
}

impl RandomOrder {
    /// The first free positions of a random block, or of the next one that has some, and the end of
    /// that block.
    fn next(&mut self, free: &RangeSet) -> Option<Range<u64>> {
        let index = self.random.below(self.starts.len() as u32) as usize;
        let from = self.starts.get(index).copied()?;
        let found = free.first_from(from).or_else(|| free.first_from(0))?;
        let after = self.starts.partition_point(|&start| start <= found.start);
        let end = self.starts.get(after).copied().unwrap_or(u64::MAX);
        Some(found.start..found.end.min(end))
    }
}

#[derive(Clone, Debug, Default)]
struct Source {
    rate: RateMeter,
    request: Option<Active>,
    /// Where the last request ended, or the start offset.
    at: u64,
    /// Positions of the last request.
    last_length: u64,
    rests_until: Option<Instant>,
    /// Its last requests that have brought nothing.
    vain: u32,
    /// Positions that it does not have at present.
    aside: RangeSet,
    /// Positions that it has sent wrong.
    forsaken: RangeSet,
    /// The positions that it has, if it is still receiving; `None`: it has all.
    held: Option<RangeSet>,
}

impl Source {
    /// Whether it may have all of these positions.
    fn may_have(&self, range: &Range<u64>) -> bool {
        let is_in = |set: &RangeSet| set.within(range.clone()).next().is_some();
        let holds = |set: &RangeSet| set.within(range.clone()).next().as_ref() == Some(range);
        !is_in(&self.aside) && !is_in(&self.forsaken) && self.held.as_ref().is_none_or(holds)
    }
}

/// A request that was made.
#[derive(Clone, Debug)]
struct Active {
    /// The next position to arrive, and the end, which moves back if the request is cut.
    rest: Range<u64>,
    is_whole: bool,
    /// Nothing has arrived yet.
    is_vain: bool,
    /// The rate that the request was planned with.
    planned: Option<f64>,
    /// Positions that have arrived since, for the check of [`SLOW`].
    arrived: u64,
    since: Instant,
}

/// A range that one source sends as a whole.
#[derive(Clone, Debug)]
struct Whole {
    range: Range<u64>,
    /// Sources that have sent it, or tried to.
    tried: Vec<SourceId>,
    is_taken: bool,
}

/// A part of what is lacking, and how many positions of its end a source would take.
struct Part {
    range: Range<u64>,
    /// The source whose request is cut.
    cut: Option<SourceId>,
}

impl Pull {
    /// No sources, and nothing lacking.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source.
    pub fn add_source(&mut self) -> SourceId {
        let id = SourceId(self.next_id);
        self.next_id += 1;
        self.sources.insert(id, Source::default());
        id
    }

    /// Removes a source. What it was to send is free for the others.
    pub fn remove_source(&mut self, now: Instant, id: SourceId) {
        self.end_request(now, id);
        self.sources.remove(&id);
    }

    /// Whether there is such a source.
    pub fn has_source(&self, id: SourceId) -> bool {
        self.sources.contains_key(&id)
    }

    /// Number of sources.
    pub fn source_count(&self) -> usize {
        self.sources.len()
    }

    /// Replaces what is lacking. Positions of wholes do not count. Requests end after their last
    /// lacking position.
    pub fn set_lacking(&mut self, lacking: RangeSet) {
        self.lacking = lacking;
        for whole in &self.wholes {
            self.lacking.remove(whole.range.clone());
        }
        if !self.has_begun && !self.lacking.is_empty() {
            self.has_begun = true;
            self.place_sources();
        }
        self.trim_requests();
    }

    /// Gives the sources their start offsets: the positions that are lacking are divided equally.
    fn place_sources(&mut self) {
        let share = self.lacking.len() / (self.sources.len() as u64).max(1);
        let mut ranges = self.lacking.iter();
        let (mut range, mut before) = (ranges.next().unwrap_or_default(), 0);
        for (index, source) in (0..).zip(self.sources.values_mut()) {
            let offset = share * index;
            while before + (range.end - range.start) <= offset {
                let Some(next) = ranges.next() else { break };
                before += range.end - range.start;
                range = next;
            }
            source.at = range.start + (offset - before);
        }
    }

    /// These positions are not lacking any more.
    pub fn remove_lacking(&mut self, range: Range<u64>) {
        self.lacking.remove(range);
        self.trim_requests();
    }

    /// These positions are lacking again.
    pub fn add_lacking(&mut self, range: Range<u64>) {
        self.lacking.insert(range);
    }

    /// One source has to send the whole range, and another one than sent it before if there is one.
    pub fn add_whole(&mut self, range: Range<u64>, tried: Vec<SourceId>) {
        self.lacking.remove(range.clone());
        self.wholes.retain(|whole| whole.range != range);
        self.wholes.push(Whole { range, tried, is_taken: false });
        self.trim_requests();
    }

    /// A whole has arrived, or does not have to.
    pub fn remove_whole(&mut self, range: &Range<u64>) {
        self.wholes.retain(|whole| whole.range != *range);
    }

    /// A source does not have these positions at present: they are left to the others, until
    /// [`ask_again`](Self::ask_again).
    pub fn set_aside(&mut self, id: SourceId, range: Range<u64>) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.aside.insert(range);
        }
    }

    /// A source may have again what was [set aside](Self::set_aside).
    pub fn ask_again(&mut self, id: SourceId) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.aside = RangeSet::default();
        }
    }

    /// A source has these positions alone, because it is still receiving; `None`: all. Other
    /// sources bring first what no such source has: so receivers that pull from each other have
    /// different parts.
    pub fn set_held(&mut self, id: SourceId, held: Option<RangeSet>) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.held = held;
        }
    }

    /// From now on, sources that have all positions bring blocks in random order: so receivers that
    /// pull from each other have different ones. `starts`: the first position of each block,
    /// ascending.
    pub fn scatter(&mut self, seed: u64, starts: Vec<u64>) {
        self.order = Some(RandomOrder { random: SplitMix64::new(seed, 0), starts });
    }

    /// What a source has sent of these positions is wrong: they are not requested of it any more.
    pub fn forsake(&mut self, id: SourceId, range: Range<u64>) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.forsaken.insert(range);
        }
    }

    /// Whether a source may have all of a range.
    pub fn may_have(&self, id: SourceId, range: &Range<u64>) -> bool {
        self.sources.get(&id).is_some_and(|source| source.may_have(range))
    }

    /// Whether something is lacking, and every source has sent all of that wrong.
    pub fn is_hopeless(&self) -> bool {
        let all = || self.lacking.iter().chain(self.wholes.iter().map(|whole| whole.range.clone()));
        let is_wrong = |source: &Source, range: &Range<u64>| {
            let wrong = source.forsaken.within(range.clone());
            wrong.map(|part| part.end - part.start).sum::<u64>() == range.end - range.start
        };
        let no_source_has = |source: &Source| all().all(|range| is_wrong(source, &range));
        !self.is_complete() && self.sources.values().all(no_source_has)
    }

    /// Whether a source has sent the whole range, and no other one is to send it again.
    pub fn is_sent(&self, range: &Range<u64>) -> bool {
        let is_active = |source: &Source| {
            let request = source.request.as_ref();
            request.is_some_and(|active| active.is_whole && active.rest.end == range.end)
        };
        self.wholes.iter().any(|whole| whole.range == *range && whole.is_taken)
            && !self.sources.values().any(is_active)
    }

    /// Whether nothing is lacking.
    pub fn is_complete(&self) -> bool {
        self.lacking.is_empty() && self.wholes.is_empty()
    }

    /// Positions that are lacking, wholes excluded.
    pub fn lacking(&self) -> &RangeSet {
        &self.lacking
    }

    /// The measured rate of a source in positions per second; `None` before the first arrival.
    pub fn rate(&self, now: Instant, id: SourceId) -> Option<f64> {
        self.sources.get(&id)?.rate.estimate(now)
    }

    /// The positions that are still expected of a source's request. Empty: the request was cut, and
    /// has to be given up. `None`: it has none.
    pub fn expected(&self, id: SourceId) -> Option<Range<u64>> {
        Some(self.sources.get(&id)?.request.as_ref()?.rest.clone())
    }

    /// The next request of a source that has none. `None`: there is nothing that it could bring
    /// sooner than the others; ask again when another request was made or has ended, and now and
    /// then.
    pub fn next_request(&mut self, now: Instant, id: SourceId) -> Option<Request> {
        let source = self.sources.get(&id)?;
        if source.request.is_some() || source.rests_until.is_some_and(|until| now < until) {
            return None;
        }
        let request = match self.take_whole(now, id) {
            Some(range) => Request { range, is_whole: true },
            None => Request { range: self.take_part(now, id)?, is_whole: false },
        };
        let planned = self.assumed_rate(now, id);
        let source = self.sources.get_mut(&id)?;
        source.rests_until = None;
        if !request.is_whole {
            source.last_length = request.range.end - request.range.start;
        }
        source.request = Some(Active {
            rest: request.range.clone(),
            is_whole: request.is_whole,
            is_vain: true,
            planned,
            arrived: 0,
            since: now,
        });
        source.rate.begin(now);
        Some(request)
    }

    /// A whole that no other source is sending, preferably one that this source has not tried. It
    /// is left to a source that would have sent it sooner, after its present request.
    fn take_whole(&mut self, now: Instant, id: SourceId) -> Option<Range<u64>> {
        let is_for = |whole: &Whole| {
            let is_other = !whole.tried.contains(&id);
            let has_tried = |(id, source): (&SourceId, &Source)| {
                whole.tried.contains(id) || !source.may_have(&whole.range)
            };
            !whole.is_taken
                && self.may_have(id, &whole.range)
                && (is_other || self.sources.iter().all(has_tried))
                && !self.others_are_sooner(now, id, whole)
        };
        let index = self.wholes.iter().position(is_for)?;
        let whole = self.wholes.get_mut(index)?;
        whole.is_taken = true;
        whole.tried.push(id);
        Some(whole.range.clone())
    }

    /// Whether a source that has not tried a whole would have sent it much sooner than this one.
    fn others_are_sooner(&self, now: Instant, id: SourceId, whole: &Whole) -> bool {
        let length = (whole.range.end - whole.range.start) as f64;
        let Some(own) = self.rate(now, id) else { return false };
        let may = |(other, source): &(&SourceId, &Source)| {
            **other != id
                && !whole.tried.contains(other)
                && source.may_have(&whole.range)
                && source.rests_until.is_none_or(|until| until <= now)
        };
        let time = |(&other, source): (&SourceId, &Source)| {
            let left = source
                .request
                .as_ref()
                .map_or(0, |active| active.rest.end.saturating_sub(active.rest.start));
            Some((left as f64 + length) / self.rate(now, other)?.max(f64::MIN_POSITIVE))
        };
        let own = length / own.max(f64::MIN_POSITIVE);
        self.sources.iter().filter(may).filter_map(time).any(|time| time < TAKE_OVER * own)
    }

    /// A part of what is lacking: where the source's last request ended, in the gap or the request
    /// that would be filled last.
    fn take_part(&mut self, now: Instant, id: SourceId) -> Option<Range<u64>> {
        let source = self.sources.get(&id)?;
        let mut free = self.free();
        source.aside.iter().chain(source.forsaken.iter()).for_each(|range| free.remove(range));
        match &source.held {
            Some(held) => free = held.iter().flat_map(|range| free.within(range)).collect(),
            None => free = self.rare(free),
        }
        let at = source.at;
        let own = free.within(at..u64::MAX).next().filter(|range| range.start == at);
        let scattered = match &mut self.order {
            Some(order) if source.held.is_none() => order.next(&free),
            _ => None,
        };
        let part = scattered
            .or(own)
            .map(|range| Part { range, cut: None })
            .or_else(|| self.part_of_gap(now, id, &free))
            .or_else(|| self.part_of_request(now, id))?;
        if let Some(cut) = part.cut.and_then(|cut| self.sources.get_mut(&cut)) {
            let active = cut.request.as_mut()?;
            active.rest.end = part.range.start.max(active.rest.start);
        }
        let length = self.length_of_request(now, id);
        let end = part.range.end.min(part.range.start.saturating_add(length));
        let source = self.sources.get_mut(&id)?;
        source.at = end;
        Some(part.range.start..end)
    }

    /// What is lacking and not requested.
    fn free(&self) -> RangeSet {
        let mut free = self.lacking.clone();
        for active in self.sources.values().filter_map(|source| source.request.as_ref()) {
            free.remove(active.rest.clone());
        }
        free
    }

    /// What no source has that is still receiving; everything if there is nothing of that kind.
    fn rare(&self, free: RangeSet) -> RangeSet {
        let mut rare = free.clone();
        let held = self.sources.values().filter_map(|source| source.held.as_ref());
        held.flat_map(RangeSet::iter).for_each(|range| rare.remove(range));
        if rare.is_empty() { free } else { rare }
    }

    /// The rate of a source; of one that is not known, the mean of the others. `None` if none is
    /// known.
    fn assumed_rate(&self, now: Instant, id: SourceId) -> Option<f64> {
        self.rate(now, id).or_else(|| {
            let known: Vec<f64> =
                self.sources.values().filter_map(|source| source.rate.estimate(now)).collect();
            let trust = self.sources.get(&id).map_or(1.0, |source| source.rate.trust(now));
            (!known.is_empty()).then(|| trust * known.iter().sum::<f64>() / known.len() as f64)
        })
    }

    /// How many positions a request has.
    fn length_of_request(&self, now: Instant, id: SourceId) -> u64 {
        let Some(source) = self.sources.get(&id) else { return 0 };
        let Some(rate) = source.rate.estimate(now) else { return FIRST_REQUEST };
        let rates = self.sources.values().filter_map(|source| source.rate.estimate(now));
        let total = rates.sum::<f64>().max(f64::MIN_POSITIVE);
        let left = Duration::try_from_secs_f64(self.lacking.len() as f64 / total / 2.0)
            .unwrap_or(REQUEST_TIME);
        let time = left.clamp(LEAST_REQUEST_TIME, REQUEST_TIME).as_secs_f64();
        let most = source.last_length.max(FIRST_REQUEST).saturating_mul(GROWTH);
        ((rate * time) as u64).clamp(LEAST_PART, most)
    }

    /// The end of the gap of which most is left for this source: the source before a gap fills it
    /// from the front.
    fn part_of_gap(&self, now: Instant, id: SourceId, free: &RangeSet) -> Option<Part> {
        let own = self.assumed_rate(now, id).unwrap_or(1.0).max(f64::MIN_POSITIVE);
        let before = |gap: &Range<u64>| {
            let owner = self.sources.iter().find(|(_, source)| {
                source.request.as_ref().is_some_and(|active| active.rest.end == gap.start)
            });
            owner.map_or(0.0, |(&owner, _)| self.assumed_rate(now, owner).unwrap_or(1.0))
        };
        let part = |gap: Range<u64>| {
            let others = before(&gap);
            let length = (gap.end - gap.start) as f64;
            let start = gap.start + (length * (others / (others + own))) as u64;
            Part { range: start.min(gap.end - 1)..gap.end, cut: None }
        };
        let parts = free.iter().map(part);
        parts.max_by_key(|part| {
            (part.range.end - part.range.start, std::cmp::Reverse(part.range.start))
        })
    }

    /// Whether another source that has nothing to do brings these positions rather than this one:
    /// fewer of its last requests were in vain. Two silent sources would take over each other's
    /// request for ever.
    fn others_are_better(&self, now: Instant, id: SourceId, range: &Range<u64>) -> bool {
        let vain = self.sources.get(&id).map_or(0, |source| source.vain);
        let is_better = |source: &Source| {
            source.vain < vain
                && source.request.is_none()
                && source.rests_until.is_none_or(|until| until <= now)
                && source.may_have(range)
        };
        self.sources.values().any(is_better)
    }

    /// The end of the request that would end last, or all that it still lacks.
    fn part_of_request(&self, now: Instant, id: SourceId) -> Option<Part> {
        let own = self.assumed_rate(now, id)?.max(f64::MIN_POSITIVE);
        let left = |(&other, source): (&SourceId, &Source)| {
            let active = source.request.as_ref().filter(|active| !active.is_whole)?;
            let has_all = self.may_have(id, &active.rest);
            let active = Some(active).filter(|_| has_all)?;
            let count = active.rest.end.saturating_sub(active.rest.start) as f64;
            let rate = self.assumed_rate(now, other)?.max(f64::MIN_POSITIVE);
            (count > 0.0).then(|| (count / rate, rate, active.rest.clone(), other))
        };
        let others = self.sources.iter().filter(|(other, _)| **other != id);
        let last = others.filter_map(left).max_by(|a, b| a.0.total_cmp(&b.0));
        let (time, rate, rest, other) = last?;
        if time < LEAST_GAIN.as_secs_f64() || self.others_are_better(now, id, &rest) {
            return None;
        }
        let count = (rest.end - rest.start) as f64;
        let start = rest.start + (count * (rate / (rate + own))) as u64;
        if rest.end - start >= LEAST_PART && start - rest.start >= LEAST_PART {
            return Some(Part { range: start..rest.end, cut: Some(other) });
        }
        let is_sooner = count / own < TAKE_OVER * time;
        is_sooner.then_some(Part { range: rest, cut: Some(other) })
    }

    /// Positions have arrived from a source, in the order of its request.
    pub fn on_arrival(&mut self, now: Instant, id: SourceId, range: Range<u64>) {
        let count = range.end.saturating_sub(range.start);
        if let Some(source) = self.sources.get_mut(&id) {
            source.rate.on_arrival(now, count);
            if let Some(active) = &mut source.request {
                active.arrived += count;
                active.is_vain = false;
                active.rest.start = active.rest.start.max(range.end).min(active.rest.end);
            }
        }
        self.lacking.remove(range);
    }

    /// A source sends more than was requested: everything up to `end`. The others take parts of it
    /// as of any request.
    pub fn extend_request(&mut self, id: SourceId, end: u64) {
        let source = self.sources.get_mut(&id);
        if let Some(active) = source.and_then(|source| source.request.as_mut()) {
            active.rest.end = active.rest.end.max(end);
        }
        self.trim_requests();
    }

    /// The request of a source has ended: everything has arrived, it was cut, or it has failed.
    pub fn end_request(&mut self, now: Instant, id: SourceId) {
        let Some(source) = self.sources.get_mut(&id) else { return };
        let Some(active) = source.request.take() else { return };
        source.rate.end(now);
        source.at = active.rest.start;
        source.vain = if active.is_vain { source.vain.saturating_add(1) } else { 0 };
        if active.is_whole && !active.rest.is_empty() {
            for whole in self.wholes.iter_mut().filter(|whole| whole.range.end == active.rest.end) {
                whole.is_taken = false;
            }
        }
    }

    /// A source makes no request for a while. Its request has ended.
    pub fn rest(&mut self, now: Instant, id: SourceId, duration: Duration) {
        self.end_request(now, id);
        if let Some(source) = self.sources.get_mut(&id) {
            source.rests_until = Some(now + duration);
        }
    }

    /// Takes the requests of sources that have been much slower than planned for a while. Returns
    /// these sources, whose requests the driver gives up.
    pub fn give_back(&mut self, now: Instant) -> Vec<SourceId> {
        let mut slow = Vec::new();
        for (&id, source) in &mut self.sources {
            let Some(active) = &mut source.request else { continue };
            let elapsed = now.saturating_since(active.since);
            if elapsed < PATIENCE {
                continue;
            }
            let rate = active.arrived as f64 / elapsed.as_secs_f64();
            if active.planned.is_some_and(|planned| rate < SLOW * planned) {
                slow.push(id);
            }
            (active.arrived, active.since) = (0, now);
        }
        slow.iter().for_each(|&id| self.rest(now, id, RESTS_FOR));
        slow
    }

    /// Requests end after their last lacking position.
    fn trim_requests(&mut self) {
        let lacking = &self.lacking;
        let active = self.sources.values_mut().filter_map(|source| source.request.as_mut());
        for active in active.filter(|active| !active.is_whole) {
            let last = lacking.within(active.rest.clone()).last();
            active.rest.end = last.map_or(active.rest.start, |last| last.end);
        }
    }
}

#[cfg(test)]
mod ring;
#[cfg(test)]
mod tests;
