//! The sending endpoint of a stream: sends fragments once, as they are produced, with repair
//! symbols.
//!
//! A fragment is one object of one source block (`docs/wire.md`, section 11). Its source symbols
//! are sent one after another. Its repair symbols follow over some time, between the symbols of
//! later fragments, so that a burst of losses does not hit a single fragment alone. After that the
//! fragment is not sent again. The index lists the fragments that are being sent. It is sent, with
//! its head, before the first symbol of a fragment and many times after.
//!
//! The sender accepts no fragment without room: [`StreamSender::wants_fragment`] limits a fast
//! producer.
//!
//! With [`StreamRedundancy::Reported`], a fragment has as many repair symbols as receivers request
//! (`repair`), and is listed until none lacks any.

use super::collection::{Collection, CollectionConfig, Demand, SenderProgress};
use super::control::{Announcement, AnnouncementIntervals, ControlCarousel, ControlObject};
use super::outlet::{DataPacket, Outlet};
use super::{SenderStats, control::ControlError};
use crate::channel::ChannelId;
use crate::datagram::DatagramBatch;
use crate::endpoint::{BatchId, BlockId, Endpoint, SymbolId};
use crate::event::{SenderEvent, SenderOutput};
use crate::job::{SendDone, SendJob};
use crate::random::SplitMix64;
use crate::time::Instant;
use fontana_fec::{EncodingId, Esi, Sbn};
use fontana_wire::{
    CongestionControl, ContentKind, Fragment, Hash, HeadRecords, InstanceId, RelativePath,
    RepairRequest, SecretKey, SessionSeal, StreamIndex, StreamState, Toi, Tsi,
};
use redundancy::MAX_ON_AIR;
use repair::{Added, StreamRepair};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::time::Duration;

mod redundancy;
mod repair;

pub use redundancy::{StreamRedundancy, repair_symbols};

/// When a stream begins. Head and index are sent before, so that receivers can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// So long after the first packet.
    After(Duration),
    /// When the receivers that it waits for report
    /// ([`RepairBy::Stream`](super::RepairBy::Stream)). No fragment is accepted before.
    WhenFollowed,
}

/// Configuration of a sender of a stream.
#[derive(Debug)]
pub struct StreamSenderConfig {
    /// Transport session identifier.
    pub tsi: Tsi,
    /// A random number that this process has drawn.
    pub instance: InstanceId,
    /// The key that signs every head.
    pub signer: SecretKey,
    /// Version of the first index; later ones count up. It must exceed those of earlier streams
    /// under the same key.
    pub first_version: u64,
    /// The name of the file that receivers write: one component.
    pub name: RelativePath,
    /// Bytes of a symbol of content, a multiple of 4.
    pub symbol_size: u16,
    /// Bytes of a symbol of head and index, so that all packets have one size.
    pub control_symbol_size: u16,
    /// Most source symbols of a fragment.
    pub max_symbols: u32,
    /// How many repair symbols fragments have.
    pub redundancy: StreamRedundancy,
    /// With [`StreamRedundancy::Reported`]: how many are made for requests, per thousand source
    /// symbols.
    pub requested_permille: u32,
    /// Limit on the bytes on the wire, IP and UDP headers included.
    pub rate_bytes_per_second: u64,
    /// Bytes of IP and UDP header that the rate counts for each datagram.
    pub packet_overhead: u32,
    /// As [`SenderConfig::peak_window`](super::SenderConfig::peak_window).
    pub peak_window: Duration,
    /// When the first fragment is sent.
    pub start: StreamStart,
    /// Expiry of the heads; `None`: they do not expire.
    pub expiry: Option<HeadExpiry>,
    /// As [`SenderConfig::seal`](super::SenderConfig::seal).
    pub seal: Option<SessionSeal>,
    /// Seed of the first sequence number.
    pub seed: u64,
}

/// Expiry of the heads of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadExpiry {
    /// Time from a head to its expiry, at least one second. The sender renews the head after a
    /// third of it.
    pub lifetime: Duration,
    /// Wall time at the beginning of the run, Unix seconds.
    pub started_at_unix_seconds: u64,
}

/// Most fragments with unsent source symbols: one being sent, and one that follows without a gap.
const MAX_UNSENT: usize = 2;
/// Shortest time over which repair symbols are spread: longer than a momentary interruption of a
/// network, and long enough to repeat the index twenty times.
const MIN_SPREAD: Duration = Duration::from_millis(500);
/// How long a fragment stays listed after its last symbol: packets are reordered, and a receiver
/// gives up a fragment that is no longer listed.
const GRACE: Duration = Duration::from_millis(250);
/// A head or a symbol of the index is sent after this many packets, and at least once per
/// `CONTROL_PERIOD`: both come within 50 ms.
const CONTROL_INTERVAL: u64 = 128;
const CONTROL_PERIOD: Duration = Duration::from_millis(25);
/// Head and index alternate.
const INTERVALS: AnnouncementIntervals = AnnouncementIntervals { head: 2, body: 2 };
/// On slow links, at most one packet in this many is a control packet; while receivers report, at
/// most one in the second number: fragments are listed longer then, for some repair rounds.
const LEAST_CONTROL_PACKETS: u32 = 8;
const LEAST_FOLLOWED_PACKETS: u32 = 32;
/// Repetitions of head and index after the end: twenty of each.
const LINGER_PERIODS: u32 = 40;
/// Time between them from then on, while receivers report that they have not ended: they may have
/// missed all of these.
const REMINDER: Duration = Duration::from_millis(250);

/// A sender of a stream on its channel.
#[derive(Debug)]
pub struct StreamSender {
    config: StreamSenderConfig,
    outlet: Outlet,
    control: Vec<ControlCarousel>,
    version: u64,
    state: StreamState,
    /// The fragments that are being sent, ascending, without a gap up to `next`.
    on_air: VecDeque<OnAir>,
    /// Number of the next fragment, and the bytes before it.
    next: u32,
    length: u64,
    /// With [`StreamRedundancy::Reported`].
    repair: Option<StreamRepair>,
    /// What is done about receivers that report.
    collection: Option<Collection>,
    /// A control object that is sent once, as the next packet.
    announcement: Option<ControlCarousel>,
    /// Time between control packets, and while receivers report.
    control_period: Duration,
    followed_period: Duration,
    spread: Duration,
    control_due: Instant,
    begins: Option<Instant>,
    ends: Option<Instant>,
    finished: bool,
    /// Time of the head.
    announced_at: Instant,
    /// Time before which nothing can be sent.
    wake: Instant,
    outputs: VecDeque<SenderOutput>,
}

/// A fragment that is being sent.
#[derive(Debug)]
struct OnAir {
    number: u32,
    fragment: Fragment,
    source_symbols: u32,
    /// Repair symbols to be sent, of those that the driver has.
    repair_symbols: u32,
    prepared_symbols: u32,
    /// Time over which they are spread.
    spread: Duration,
    /// Number of sent symbols: first the source symbols, then the repair symbols.
    sent: u32,
    /// Time of the last source symbol.
    source_over: Instant,
    /// Time of the last symbol that is to be sent.
    over: Option<Instant>,
}

impl StreamSender {
    /// Most fragments that a repair round names as being repaired.
    pub const PENDING_CAPACITY: usize = repair::MAX_PENDING;

    /// A sender that has sent nothing.
    ///
    /// # Errors
    /// [`ControlError`] if the size of control symbols is invalid.
    pub fn new(config: StreamSenderConfig) -> Result<Self, ControlError> {
        let symbol = u32::from(config.symbol_size.max(config.control_symbol_size));
        let (rate, overhead) = (config.rate_bytes_per_second.max(1), config.packet_overhead);
        let mut random = SplitMix64::new(config.seed, u64::MAX);
        let (peak_window, seal) = (config.peak_window, config.seal);
        let outlet = Outlet::new(config.tsi, true, rate, overhead, peak_window, symbol, seal);
        let mut sender = Self {
            outlet: outlet.starting_at(random.next_u64() as u32),
            control: Vec::new(),
            version: config.first_version,
            state: StreamState::Open,
            on_air: VecDeque::new(),
            next: 0,
            length: 0,
            repair: config.redundancy.is_reported().then(StreamRepair::new),
            collection: None,
            announcement: None,
            control_period: CONTROL_PERIOD,
            followed_period: CONTROL_PERIOD,
            spread: MIN_SPREAD,
            control_due: Instant::ZERO,
            begins: None,
            ends: None,
            finished: false,
            announced_at: Instant::ZERO,
            wake: Instant::ZERO,
            outputs: VecDeque::new(),
            config,
        };
        sender.control = sender.control_objects()?;
        sender.set_times();
        Ok(sender)
    }

    /// Sets the times that follow from the rate.
    fn set_times(&mut self) {
        let packet = Duration::from_nanos(1_000_000_000 / self.outlet.packets_per_second().max(1));
        self.control_period = CONTROL_PERIOD.max(packet * LEAST_CONTROL_PACKETS);
        self.followed_period = CONTROL_PERIOD.max(packet * LEAST_FOLLOWED_PACKETS);
        let fragment = packet.saturating_mul(self.config.max_symbols);
        // Twice a fragment's time; longer with short fragments, but at most for the number of
        // fragments that may be sent at a time.
        let spread = (2 * fragment).max(MIN_SPREAD.max(20 * self.control_period));
        self.spread = spread.min(fragment.saturating_mul(MAX_ON_AIR as u32 * 3 / 4));
    }

    /// Counters so far.
    pub fn stats(&self) -> SenderStats {
        self.outlet.stats
    }

    /// Bytes of the stream that were accepted so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// True if there is room for another fragment.
    pub fn wants_fragment(&self) -> bool {
        let unsent = self.on_air.iter().filter(|fragment| !fragment.source_is_over()).count();
        let has_room =
            unsent < MAX_UNSENT && self.on_air.len() < self.config.redundancy.max_on_air();
        self.state == StreamState::Open && !self.is_held() && has_room
    }

    /// Waits for its receivers.
    fn is_held(&self) -> bool {
        self.config.start == StreamStart::WhenFollowed && self.begins.is_none()
    }

    /// Fragments may be sent.
    fn has_begun(&self, now: Instant) -> bool {
        self.begins.is_some_and(|begins| begins <= now)
    }

    /// The sender, which issues roll calls, and does what the reports of its receivers demand.
    pub fn with_collection(mut self, config: CollectionConfig, now: Instant) -> Self {
        let collection = self.collection.insert(Collection::new(config, now));
        collection.hold();
        if let Some(rate) = collection.rate() {
            self.set_rate(now, rate);
        }
        self
    }

    fn set_rate(&mut self, now: Instant, bytes_per_second: u64) {
        self.outlet.set_rate(now, bytes_per_second);
        self.set_times();
    }

    /// What is known of receivers that report.
    pub fn collection(&mut self) -> Option<&mut Collection> {
        self.collection.as_mut()
    }

    /// Sends a control object of one symbol once, as the next packet, even after the end. It
    /// replaces one that was not sent yet.
    fn announce(&mut self, object: ControlObject) {
        // One symbol has no order and no rhythm.
        let mut random = SplitMix64::new(0, 0);
        self.announcement = Some(ControlCarousel::new(object, 1, 1, &mut random));
        self.wake = Instant::ZERO;
    }

    /// Does what the receivers demand. False if that is nothing.
    fn collect(&mut self, now: Instant) -> bool {
        let has_begun = self.has_begun(now);
        let Some(collection) = &mut self.collection else { return false };
        if has_begun {
            collection.begin(now);
        }
        collection.note_sent(self.outlet.stats.wire_bytes);
        if self.repair.as_ref().is_some_and(|repair| repair.wants_call(now)) {
            collection.want_call(now);
        }
        let mut has_demands = false;
        loop {
            let progress = SenderProgress {
                // The index of the end is repeated meanwhile.
                is_sent: self.ends.is_some(),
                is_announcing: self.announcement.is_some(),
                is_enough: false,
            };
            let demand = self.collection.as_mut().and_then(|it| it.poll(now, progress));
            let Some(demand) = demand else { return has_demands };
            has_demands = true;
            self.wake = Instant::ZERO;
            match demand {
                Demand::Call { mut call, receivers, round_trip } => {
                    let repair = self.repair.as_mut();
                    call.repair = repair.and_then(|it| it.call(now, receivers, round_trip));
                    self.outputs.push_back(SenderOutput::Job(SendJob::Sign(call)));
                }
                Demand::Loss { ppm } => {
                    self.repair.iter_mut().for_each(|repair| repair.note_loss(ppm));
                }
                Demand::Request(request) => self.handle_request(now, &request),
                Demand::Followed(is_followed) => {
                    self.repair.iter_mut().for_each(|repair| repair.set_followed(is_followed));
                }
                Demand::Begin => {
                    self.begins.get_or_insert(now);
                }
                Demand::Rate(rate) => self.set_rate(now, rate),
                Demand::Event(event) => self.outputs.push_back(SenderOutput::Event(event)),
                // Of files.
                Demand::Fresh(_)
                | Demand::Named(_)
                | Demand::Losses
                | Demand::Rest(_)
                | Demand::AdvanceAll(_) => {}
            }
        }
    }

    /// Sends what is requested, as far as the driver has symbols.
    fn handle_request(&mut self, now: Instant, request: &RepairRequest) {
        let Some(repair) = &mut self.repair else { return };
        for Added { number, symbols } in repair.handle_request(now, request) {
            let fragment = self.on_air.iter_mut().find(|fragment| fragment.number == number);
            let all = fragment.map_or(0, |fragment| fragment.add(symbols));
            if all == 0 {
                repair.handle_exhausted(number);
            }
        }
    }

    /// Adds the next fragment: `length` bytes with hash `hash` ([`BlockHasher`] over all of them).
    /// Its source symbols are batch `2 n` and its repair symbols,
    /// [`prepared`](StreamRedundancy::prepared) of them from ESI k on, batch `2 n + 1`, where n is
    /// its number, from 0. The driver keeps them until they are released. `None`, without effect,
    /// if the fragment is empty or too long, or the stream has ended.
    ///
    /// [`BlockHasher`]: fontana_wire::BlockHasher
    pub fn push_fragment(&mut self, length: u32, hash: Hash) -> Option<u32> {
        let source_symbols = length.div_ceil(u32::from(self.config.symbol_size.max(1)));
        let fits = (1..=self.config.max_symbols).contains(&source_symbols);
        if self.state != StreamState::Open || !fits || self.next >= Toi::FIRST_RESERVED.0 as u32 - 1
        {
            return None;
        }
        let StreamSenderConfig { redundancy, requested_permille, .. } = self.config;
        let number = self.next;
        let prepared_symbols = redundancy.prepared(source_symbols, requested_permille);
        let planned = self.repair.as_ref().and_then(|repair| repair.planned(source_symbols));
        let fixed = || repair_symbols(source_symbols, redundancy.permille());
        self.repair.iter_mut().for_each(|repair| repair.add(number, source_symbols));
        self.on_air.push_back(OnAir {
            number,
            fragment: Fragment { length, hash },
            source_symbols,
            repair_symbols: planned.unwrap_or_else(fixed).min(prepared_symbols),
            prepared_symbols,
            // What is requested is sent at once: bursts are repaired by requests.
            spread: if planned.is_some() { Duration::ZERO } else { self.spread },
            sent: 0,
            source_over: Instant::ZERO,
            over: None,
        });
        self.next += 1;
        self.length += u64::from(length);
        self.publish();
        Some(number)
    }

    /// Ends the stream as complete or broken. [`SenderEvent::Finished`] comes when all accepted
    /// fragments have been sent, and the index has been repeated for receivers that lose packets.
    pub fn finish(&mut self, whole: bool) {
        if self.state == StreamState::Open {
            self.state = if whole { StreamState::Ended } else { StreamState::Broken };
            self.publish();
        }
    }

    /// Stops sending fragments, even accepted ones: only reports that the stream is broken.
    pub fn abandon(&mut self) {
        self.state = StreamState::Broken;
        self.on_air.clear();
        self.publish();
    }

    /// Replaces head and index after a change.
    fn publish(&mut self) {
        self.version += 1;
        self.wake = Instant::ZERO;
        // Sizes that would make this fail were checked at the start.
        if let Ok(control) = self.control_objects() {
            self.control = control;
        }
    }

    fn index(&self) -> StreamIndex {
        let listed: u64 = self.on_air.iter().map(|f| u64::from(f.fragment.length)).sum();
        StreamIndex {
            version: self.version,
            name: self.config.name.clone(),
            state: self.state,
            symbol_size: self.config.symbol_size,
            max_symbols: self.config.max_symbols,
            first: self.on_air.front().map_or(self.next, |fragment| fragment.number),
            offset: self.length - listed,
            fragments: self.on_air.iter().map(|fragment| fragment.fragment).collect(),
        }
    }

    /// The present head and index, to be sent at once.
    fn control_objects(&self) -> Result<Vec<ControlCarousel>, ControlError> {
        let index = self.index().emit();
        let size = self.config.control_symbol_size;
        let announcement = Announcement {
            instance: self.config.instance,
            version: self.version,
            kind: ContentKind::StreamIndex,
            body: &index,
            expires_unix_seconds: self.expires_unix_seconds(),
            rate_bytes_per_second: NonZeroU64::new(self.config.rate_bytes_per_second),
            congestion_control: CongestionControl::FixedRate,
            records: HeadRecords::default(),
        };
        let signer = Some(&self.config.signer);
        let objects = announcement.control_objects(size, signer, INTERVALS)?;
        // A different first repair symbol for each version: symbols of two indexes are never mixed.
        let mut random = SplitMix64::new(self.config.seed, self.version);
        let carousel = |object| ControlCarousel::new(object, CONTROL_INTERVAL, 1, &mut random);
        Ok(objects.into_iter().map(carousel).collect())
    }

    fn expires_unix_seconds(&self) -> Option<NonZeroU64> {
        let HeadExpiry { lifetime, started_at_unix_seconds } = self.config.expiry?;
        let elapsed = self.announced_at.saturating_since(Instant::ZERO);
        NonZeroU64::new(started_at_unix_seconds + (elapsed + lifetime).as_secs())
    }

    /// Renews the head before it expires.
    fn renew(&mut self, now: Instant) {
        let is_due = self
            .config
            .expiry
            .is_some_and(|expiry| now.saturating_since(self.announced_at) >= expiry.lifetime / 3);
        if is_due {
            self.announced_at = now;
            self.publish();
        }
    }

    /// Removes fragments that are over.
    fn settle(&mut self, now: Instant) {
        let before = self.on_air.len();
        while let Some(fragment) = self.on_air.front().filter(|fragment| fragment.is_gone(now)) {
            if let Some(repair) = &self.repair {
                if !repair.is_settled(now, fragment.number) {
                    break;
                }
                let batch = BatchId(2 * u64::from(fragment.number) + 1);
                self.outputs.push_back(SenderOutput::Job(SendJob::Release { batch }));
            }
            self.on_air.pop_front();
        }
        let first = self.on_air.front().map_or(self.next, |fragment| fragment.number);
        self.repair.iter_mut().for_each(|repair| repair.forget_before(first));
        let ending = self.state != StreamState::Open && self.on_air.is_empty();
        if self.on_air.len() < before || (ending && self.ends.is_none()) {
            self.publish();
        }
        if ending {
            let ends = *self.ends.get_or_insert(now + LINGER_PERIODS * self.control_period);
            if ends <= now {
                self.finished = true;
                self.outputs.push_back(SenderOutput::Event(SenderEvent::Finished));
            }
        }
    }

    /// The control object that is due.
    fn control_turn(&self, now: Instant) -> Option<usize> {
        let packets = self.outlet.stats.packets;
        ControlCarousel::pick(&self.control, ChannelId::BASE, packets).or_else(|| {
            let turns = self.control.iter().enumerate().filter(|_| now >= self.control_due);
            let least = turns.min_by_key(|(_, object)| object.sent() / object.source_symbols());
            least.map(|(index, _)| index)
        })
    }

    /// The fragment that is due: one with a repair symbol due, or the first one with a source
    /// symbol.
    fn data_turn(&self, now: Instant) -> Option<usize> {
        let due = |fragment: &OnAir| fragment.repair_due().is_some_and(|due| due <= now);
        self.on_air
            .iter()
            .position(due)
            .or_else(|| self.on_air.iter().position(|fragment| !fragment.source_is_over()))
            .filter(|_| self.has_begun(now))
    }

    fn data_packet(
        &mut self,
        now: Instant,
        turn: usize,
        out: &mut Vec<u8>,
    ) -> Option<SenderOutput> {
        let fragment = self.on_air.get_mut(turn)?;
        let k = fragment.source_symbols;
        let is_repair = fragment.sent >= k;
        let block = BlockId { toi: StreamIndex::toi(fragment.number), sbn: Sbn(0) };
        let batch = BatchId(2 * u64::from(fragment.number) + u64::from(is_repair));
        let index = fragment.sent - if is_repair { k } else { 0 };
        let size = self.config.symbol_size;
        let symbol = SymbolId { block, esi: Esi(fragment.sent), batch, index, size };
        let packet = DataPacket {
            encoding_id: EncodingId::RAPTORQ,
            symbol,
            source_symbols: k,
            // The index has this information.
            fti: None,
        };
        let sent =
            self.outlet.next_slot(now).and_then(|slot| self.outlet.data(now, slot, &packet, out));
        match sent {
            Err(wake) => {
                self.wake = wake;
                None
            }
            Ok(output) => {
                fragment.sent += 1;
                if fragment.sent == k {
                    fragment.source_over = now;
                }
                let all = k + fragment.repair_symbols;
                if fragment.sent == all {
                    fragment.over = Some(now);
                    let number = fragment.number;
                    self.repair.iter_mut().for_each(|repair| repair.handle_sent(now, number));
                }
                // Repair symbols that may be requested are released with the fragment.
                if fragment.sent == k || (fragment.sent == all && self.repair.is_none()) {
                    self.outputs.push_back(SenderOutput::Job(SendJob::Release { batch }));
                }
                Some(output)
            }
        }
    }

    fn control_packet(
        &mut self,
        now: Instant,
        turn: usize,
        out: &mut Vec<u8>,
    ) -> Option<SenderOutput> {
        let carousel = self.control.get_mut(turn)?;
        let slot = self.outlet.next_slot(now);
        match slot.and_then(|slot| self.outlet.control(now, slot, carousel, out)) {
            Ok(output) => {
                let is_followed = self.reminds();
                self.control_due = now
                    + match is_followed && self.ends.is_none() {
                        _ if self.finished => REMINDER,
                        true => self.followed_period,
                        false => self.control_period,
                    };
                Some(output)
            }
            Err(wake) => {
                self.wake = wake;
                None
            }
        }
    }

    /// Sends the control object that is sent once.
    fn announcement_packet(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<SenderOutput> {
        let carousel = self.announcement.as_mut()?;
        let slot = self.outlet.next_slot(now);
        match slot.and_then(|slot| self.outlet.control(now, slot, carousel, out)) {
            Ok(output) => {
                self.announcement = None;
                Some(output)
            }
            Err(wake) => {
                self.wake = wake;
                None
            }
        }
    }

    /// The next packet, or another output.
    fn poll_packet(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<SenderOutput> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if let StreamStart::After(time) = self.config.start {
            self.begins.get_or_insert(now + time);
        }
        if now < self.wake {
            return None;
        }
        if self.announcement.is_some() {
            return self.announcement_packet(now, header);
        }
        if self.finished {
            return self.remind(now, header);
        }
        self.repair.iter_mut().for_each(|repair| repair.handle_timeout(now));
        self.renew(now);
        self.settle(now);
        if !self.outputs.is_empty() {
            return self.outputs.pop_front();
        }
        if let Some(turn) = self.control_turn(now) {
            return self.control_packet(now, turn, header);
        }
        if let Some(turn) = self.data_turn(now) {
            return self.data_packet(now, turn, header);
        }
        self.outlet.rest();
        self.wake = self.next_turn(now);
        None
    }

    /// Repeats the end to receivers that have missed it.
    fn remind(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<SenderOutput> {
        self.renew(now);
        self.wake = self.control_due;
        let turn = self.control_turn(now).filter(|_| self.reminds())?;
        self.control_packet(now, turn, header)
    }

    /// Whether receivers that have not ended hear of the end.
    fn reminds(&self) -> bool {
        self.repair.as_ref().is_some_and(StreamRepair::is_followed)
    }

    /// The next time at which something is due.
    fn next_turn(&self, now: Instant) -> Instant {
        let waiting = self.on_air.iter().any(|fragment| !fragment.source_is_over());
        let repairs = self.on_air.iter().filter_map(OnAir::repair_due);
        let first = self.on_air.front();
        let gone = first.and_then(|fragment| fragment.over).map(|over| over + GRACE);
        // A fragment that is not settled after that waits for a round, or is given up.
        let given_up = || first.and_then(|it| self.repair.as_ref()?.given_up_at(it.number));
        let gone = gone.filter(|&at| at > now).or_else(given_up);
        let round = self.repair.as_ref().and_then(StreamRepair::poll_timeout);
        repairs
            .chain(gone)
            .chain(round)
            .chain(self.begins.filter(|_| waiting))
            .chain(self.ends)
            .fold(self.control_due, Instant::min)
    }
}

impl OnAir {
    fn source_is_over(&self) -> bool {
        self.sent >= self.source_symbols
    }

    /// When the next repair symbol is due; `None` before the last source symbol, and after the last
    /// repair symbol.
    fn repair_due(&self) -> Option<Instant> {
        let sent = self.sent.checked_sub(self.source_symbols)?;
        (sent < self.repair_symbols)
            .then(|| self.source_over + part(self.spread, sent + 1, self.repair_symbols))
    }

    /// Adds so many repair symbols, which are sent at once. Returns how many there are.
    fn add(&mut self, symbols: u32) -> u32 {
        let added = symbols.min(self.prepared_symbols - self.repair_symbols);
        self.repair_symbols += added;
        if added > 0 {
            (self.over, self.spread) = (None, Duration::ZERO);
        }
        added
    }

    fn is_gone(&self, now: Instant) -> bool {
        self.over.is_some_and(|over| over + GRACE <= now)
    }
}

/// `numerator / denominator` of a duration.
fn part(whole: Duration, numerator: u32, denominator: u32) -> Duration {
    let nanos = whole.as_nanos() * u128::from(numerator) / u128::from(denominator.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl Endpoint for StreamSender {
    type Job = SendJob;
    type Done = SendDone;
    type Event = SenderEvent;

    /// Handles answers of receivers.
    fn handle_datagrams(&mut self, now: Instant, batch: &DatagramBatch<'_>) {
        let Some(collection) = &mut self.collection else { return };
        let jobs = collection.handle_datagrams(now, batch);
        self.outputs.extend(jobs.into_iter().map(SenderOutput::Job));
    }

    fn handle_done(&mut self, now: Instant, done: SendDone) {
        let Some(collection) = &mut self.collection else { return };
        match done {
            SendDone::Opened(authentic) => collection.handle_opened(now, authentic.as_deref()),
            SendDone::Signed(call) => {
                let call = collection.handle_signed(now, &call);
                call.into_iter().for_each(|call| self.announce(call));
            }
            // The driver has the symbols of every fragment when it adds it.
            SendDone::Prepared { .. } | SendDone::Digested { .. } | SendDone::Failed { .. } => {}
        }
    }

    /// Polling outputs finds what is due.
    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<SenderOutput> {
        loop {
            self.collect(now);
            let output = self.poll_packet(now, header);
            // What has been sent may be the last of what was demanded.
            if output.is_some() || !self.collect(now) {
                return output;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let collection = self.collection.as_ref().and_then(Collection::poll_timeout);
        let is_over = self.finished && self.announcement.is_none() && !self.reminds();
        collection.into_iter().chain((!is_over).then_some(self.wake)).min()
    }
}
