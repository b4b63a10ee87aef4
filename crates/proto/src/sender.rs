//! The sending endpoint: sends encoding symbols of all objects of a session.
//!
//! The order of symbols is planned in *windows* (`rounds`). While one window is sent, the driver
//! prepares the symbols of the next, a batch for each block that occurs in it. This bounds memory
//! by two windows, and lets a block be encoded for many symbols at once. The control objects
//! (session head, manifest, file delivery table) are sent between the content, each with its own
//! period and until the session ends, so that a receiver may join at any time.

use crate::channel::ChannelId;
use crate::congestion::ChannelClock;
use crate::datagram::DatagramBatch;
use crate::endpoint::{BlockId, Endpoint};
use crate::event::{SenderEvent, SenderOutput};
use crate::job::{JobError, SendDone, SendJob};
use crate::pacer::Pacer;
use crate::random::SplitMix64;
use crate::schedule::TransmissionSchedule;
use crate::time::Instant;
use blocks::BlockFactory;
use control::ControlCarousel;
use digests::DigestLists;
use fontana_fec::ObjectLayout;
use fontana_wire::{SessionSeal, Toi, Tsi};
use outlet::{DataPacket, Outlet, Slot};
use rounds::{Missing, OrderFactory, Planned, Rounds};
use std::collections::VecDeque;
use std::time::Duration;

mod blocks;
mod collection;
mod control;
mod digests;
mod outlet;
mod rounds;
mod stream;

pub use collection::{
    Collection, CollectionConfig, Demand, EarlierReceivers, RepairBy, SenderProgress,
};
pub use control::{Announcement, AnnouncementIntervals, ControlError, ControlObject, control_oti};
pub use digests::DigestSigner;
pub use stream::{
    HeadExpiry, StreamRedundancy, StreamSender, StreamSenderConfig, StreamStart, repair_symbols,
};

/// An object to send.
#[derive(Clone, Copy, Debug)]
pub struct SendObject {
    /// Its identifier.
    pub toi: Toi,
    /// Its geometry.
    pub layout: ObjectLayout,
    /// Whether this sender sends the source symbols once before repair symbols. Mirrors and
    /// restarted senders do not, because receivers may already have them.
    pub source_pass: bool,
}

/// The amount to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// Without end: receivers come and go.
    OnDemand,
    /// A finite amount: the source symbols, and repair symbols per thousand of them.
    Push {
        /// Repair symbols per thousand source symbols of a block, rounded up.
        repair_permille: u32,
    },
    /// The source symbols, and then fresh symbols of the blocks that receivers request some of
    /// ([`Sender::with_collection`]); of all blocks, without end, where requests are not enough in
    /// a session that [rests](CollectionConfig::rests).
    RepairOnDemand,
}

/// Configuration of a sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Transport session identifier.
    pub tsi: Tsi,
    /// Content.
    pub objects: Vec<SendObject>,
    /// Blocks that are sent before all others, because receivers of the previous version lack
    /// them. Each has as many symbols as a receiver that loses one packet in four most likely
    /// needs; a code with fewer symbols repeats them. The blocks advance evenly. The schedule
    /// follows, in which they continue after their last symbol. In push mode, these symbols count
    /// towards the amount. All channels share the phase: a receiver of some channels gets its share
    /// of each block there, and the rest by the schedule. Head and manifest start redundantly too.
    /// Afterwards the sender may rest ([`CollectionConfig::rests`]). `None`: there is no version
    /// before. Blocks that are not in `objects` are ignored.
    pub first: Option<Vec<BlockId>>,
    /// Control objects, most urgent first.
    pub control: Vec<ControlObject>,
    /// The amount to send.
    pub mode: SendMode,
    /// The order of symbols.
    pub schedule: TransmissionSchedule,
    /// The clock of several channels; `None`: one channel, at the rate limit.
    pub channels: Option<ChannelClock>,
    /// Limit on the bytes on the wire, IP and UDP headers included, of all channels together.
    pub rate_bytes_per_second: u64,
    /// Bytes of IP and UDP header that the rate counts for each datagram: 28 for IPv4, 48 for IPv6.
    pub packet_overhead: u32,
    /// Window in which a late sender may exceed the rate by a quarter to catch up ([`Pacer`]);
    /// zero: lost time is lost. Has no effect with several channels.
    ///
    /// [`Pacer`]: crate::Pacer
    pub peak_window: Duration,
    /// Symbols of a planning window. Two windows are held in memory.
    pub round_symbols: u32,
    /// At the start, each block of an object without the source pass sends this many symbols per
    /// thousand of its source symbols in one run, block after block; 0: none. Its first symbol
    /// needs the whole block to be encoded. Without runs, the short windows of the start need all
    /// blocks for a few symbols of each.
    pub opening_permille: u32,
    /// Where the source pass begins in each block, in parts of 2^32 of it: elsewhere than that of
    /// another sender. In objects without the source pass, where blocks without repair symbols
    /// begin: at random, as receivers have their beginning from another run. Without effect if
    /// everything is sent once, or in a chosen order.
    pub pass_start: u32,
    /// Write sequence numbers to the CCI of a session of one channel, so that receivers detect
    /// loss. Plain FLUTE receivers expect 0. With several channels, the clock writes the CCI.
    pub sequence_in_cci: bool,
    /// Send the last source symbol of an object without its padding, if its code allows that
    /// ([`Padding`](fontana_fec::Padding)). Plain FLUTE receivers may reject a padded one.
    pub omit_padding: bool,
    /// Send each object's transmission information in every packet of content (EXT_FTI). FCAST
    /// sessions have no other place for it.
    pub fti_in_packets: bool,
    /// The seal of every packet, whose tag the driver writes; `None`: no seals. Its id is the start
    /// of the session's instance id, so no other run has it.
    pub seal: Option<SessionSeal>,
    /// Seed of the first repair symbol of each block and of the first sequence number.
    pub seed: u64,
}

impl SenderConfig {
    /// A session without control objects, on one channel: on demand, in the even order.
    pub fn new(tsi: Tsi, objects: Vec<SendObject>, rate_bytes_per_second: u64, seed: u64) -> Self {
        Self {
            tsi,
            objects,
            first: None,
            control: Vec::new(),
            mode: SendMode::OnDemand,
            schedule: TransmissionSchedule::EVEN,
            channels: None,
            rate_bytes_per_second,
            packet_overhead: 28,
            peak_window: Pacer::PEAK_WINDOW,
            round_symbols: 1_024,
            opening_permille: 0,
            pass_start: 0,
            sequence_in_cci: true,
            omit_padding: false,
            fti_in_packets: false,
            seal: None,
            seed,
        }
    }
}

/// Counters, never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Datagrams passed to the driver.
    pub packets: u64,
    /// Bytes of UDP payload in them.
    pub payload_bytes: u64,
    /// Bytes on the wire, IP and UDP headers included.
    pub wire_bytes: u64,
    /// Datagrams that carried control objects.
    pub control_packets: u64,
    /// Source symbols sent.
    pub source_symbols: u64,
    /// Repair symbols sent.
    pub repair_symbols: u64,
    /// Times that the rate limit allowed a packet whose symbol was not prepared.
    pub underruns: u64,
}

/// Counters of one channel, never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStats {
    /// Datagrams passed to the driver.
    pub packets: u64,
    /// Of these, control objects.
    pub control_packets: u64,
    /// Bytes on the wire, IP and UDP headers included.
    pub wire_bytes: u64,
}

/// A sender of the encoding symbols of a session's objects on its channels.
#[derive(Debug)]
pub struct Sender {
    outlet: Outlet,
    mode: SendMode,
    rounds: Rounds,
    /// Makes the blocks of objects that are added later.
    blocks: BlockFactory,
    /// The number of calls that added objects.
    extensions: u64,
    control: Vec<ControlCarousel>,
    digests: Option<DigestLists>,
    /// What is done about receivers that report.
    collection: Option<Collection>,
    /// A control object that is sent once, as the next packet of channel 0.
    announcement: Option<ControlCarousel>,
    /// The head follows the last roll call.
    head_follows: bool,
    /// Packets of content on channel 0 since the last control packet there.
    base_gap: u64,
    outputs: VecDeque<SenderOutput>,
    state: State,
    /// Without content to send, no control packet is sent before, and this object's is next.
    rests_until: Instant,
    idle_turn: usize,
    /// No content has been sent since its symbols were found to be unprepared.
    starving: bool,
    /// No receiver needs the content now.
    rests: bool,
    /// Symbols after which receivers that say nothing have the content, most likely.
    enough: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sending,
    /// The symbols of the next packet are not prepared.
    Starved,
    /// The rate does not allow a packet before then.
    Paced(Instant),
    /// Only control objects are left to send, the next one then.
    Resting(Instant),
    Finished,
}

/// Longest interval between control packets, in packets. A receiver that joins late waits for about
/// two intervals for the head, a fifteenth of a second at 100 Mbit/s.
const CONTROL_INTERVAL: u64 = 256;
/// Shortest interval between control packets, in packets, even if the head then comes less than
/// once a second on slow links.
const MIN_CONTROL_INTERVAL: u64 = 50;
/// Longest interval of packets of a session that has only control objects.
const IDLE_INTERVAL: Duration = Duration::from_millis(20);
/// Time in which it sends all of them once, if the rate allows it.
const IDLE_PASS: Duration = Duration::from_secs(2);
/// Interval of control packets of a session that repairs on demand while nothing is requested: a
/// receiver that joins late waits for head and manifest for about a second.
const SILENT_INTERVAL: Duration = Duration::from_millis(200);
/// Interval of heads while a session rests. Who joins late lacks everything, and says so: the
/// manifest comes with it.
const REST_INTERVAL: Duration = Duration::from_millis(400);
/// Least number of symbols of each control object in a push session without content: one is very
/// likely to arrive, even if most are lost. Every symbol is sent at least twice.
const IDLE_PUSH_SYMBOLS: u64 = 20;

/// Least number of control intervals in the time of the content's source symbols: with fewer,
/// receivers of small content would wait for the head and the manifest after they have the content.
const INTERVALS_IN_CONTENT: u64 = 8;
/// Shortest interval between control packets of small content, in packets. Head and manifest, which
/// are sent every two and four intervals, then take 2 % of the packets.
const MIN_SMALL_INTERVAL: u64 = 32;

/// Symbols that a session without an end sends before it rests, per thousand source symbols: who
/// hears them and loses less than a third has the content.
const ENOUGH_PERMILLE: u64 = 1_500;

/// Packets from one control packet to the next.
fn control_interval(outlet: &Outlet, source_symbols: u64) -> u64 {
    let by_rate = outlet.packets_per_second().clamp(MIN_CONTROL_INTERVAL, CONTROL_INTERVAL);
    by_rate.min((source_symbols / INTERVALS_IN_CONTENT).max(MIN_SMALL_INTERVAL))
}

/// Symbols that a session sends before it rests: of a newer version those that receivers of the one
/// before lack.
fn enough(rounds: &Rounds, is_update: bool) -> u64 {
    if is_update {
        return rounds.first_symbols();
    }
    rounds.source_symbols().saturating_mul(ENOUGH_PERMILLE) / 1_000
}

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(config: SenderConfig) -> Self {
        let mut max_symbol =
            config.control.iter().map(|o| u32::from(o.symbol_size())).max().unwrap_or(0);
        for object in &config.objects {
            max_symbol = max_symbol.max(u32::from(object.layout.oti().symbol_size));
        }
        let limit = match config.mode {
            SendMode::OnDemand => None,
            SendMode::Push { repair_permille } => Some(repair_permille.saturating_add(1000)),
            // A restarted sender, or a mirror, sends nothing before it is asked.
            SendMode::RepairOnDemand => {
                Some(if config.objects.iter().any(|object| object.source_pass) { 1000 } else { 0 })
            }
        };
        let is_update = config.first.is_some();
        let mut factory = BlockFactory {
            tsi: config.tsi,
            seed: config.seed,
            by_number: matches!(config.schedule, TransmissionSchedule::Fcast(_)),
            omit_padding: config.omit_padding,
            start: match (config.mode, config.schedule) {
                (
                    SendMode::OnDemand | SendMode::RepairOnDemand,
                    TransmissionSchedule::Interleaved { .. } | TransmissionSchedule::Runs { .. },
                ) => config.pass_start,
                _ => 0,
            },
            fti_in_packets: config.fti_in_packets,
            seal: config.seal,
            objects: 0,
            first: config.first.into_iter().flatten().collect(),
            limit_permille: limit,
            opening_permille: config.opening_permille,
        };
        let blocks = factory.blocks(&config.objects);
        let layer_count = config.channels.as_ref().map_or(1, ChannelClock::channel_count);
        let order = OrderFactory {
            schedule: config.schedule,
            layer_count,
            limit_permille: limit,
            seed: config.seed,
        };
        let mut random = SplitMix64::new(config.seed, u64::MAX);
        let outlet = Outlet::new(
            config.tsi,
            config.sequence_in_cci,
            config.rate_bytes_per_second,
            config.packet_overhead,
            config.peak_window,
            max_symbol,
            config.seal,
        )
        .over_channels(config.channels);
        let channel_count = outlet.channels.len();
        let rounds = Rounds::new(blocks, order, config.round_symbols);
        let interval = control_interval(&outlet, rounds.source_symbols());
        let carousel = |object| {
            let carousel = ControlCarousel::new(object, interval, channel_count, &mut random)
                .beside(rounds.source_symbols());
            if is_update { carousel.redundant() } else { carousel }
        };
        let control = config.control.into_iter().map(carousel).collect();
        let enough = enough(&rounds, is_update);
        Self {
            mode: config.mode,
            rounds,
            blocks: factory,
            extensions: 0,
            control,
            digests: None,
            collection: None,
            announcement: None,
            head_follows: false,
            base_gap: 0,
            outputs: VecDeque::new(),
            outlet: outlet.starting_at(random.next_u64() as u32),
            state: State::Sending,
            rests_until: Instant::ZERO,
            idle_turn: 0,
            starving: false,
            rests: false,
            enough,
        }
    }

    /// The sender, which announces its symbols by signed lists of digests
    /// ([`DigestList`](fontana_wire::DigestList)), if it sends on one channel. The driver answers
    /// [`SendJob::Prepare`] with [`SendDone::Digested`].
    ///
    /// # Errors
    /// [`ControlError::Length`] if a list of the given size has no room for a digest.
    pub fn with_digests(mut self, signer: DigestSigner) -> Result<Self, ControlError> {
        if self.outlet.channels.len() == 1 {
            self.digests = Some(DigestLists::new(signer)?);
        }
        Ok(self)
    }

    /// The sender, which issues roll calls, and does what the reports of its receivers demand. A
    /// rate that follows them begins with that of [`SenderConfig`].
    pub fn with_collection(mut self, config: CollectionConfig, now: Instant) -> Self {
        self.collection = Some(Collection::new(config, now));
        self
    }

    /// Follows the receivers of an earlier sender from its rate on, which
    /// [`Collection::take_receivers`] returns.
    pub fn follow_from(&mut self, now: Instant, earlier: EarlierReceivers) {
        let Some(collection) = &mut self.collection else { return };
        collection.follow_from(now, earlier);
        if let Some(rate) = collection.rate() {
            self.outlet.set_rate(now, rate);
        }
    }

    /// What is known of receivers that report.
    pub fn collection(&mut self) -> Option<&mut Collection> {
        self.collection.as_mut()
    }

    /// Adds objects to a running session and replaces its control objects: the next instance of an
    /// FCAST carousel (RFC 6968, section 2.2). The order of symbols starts again over all objects.
    /// A block that was sent before continues with the symbol after the last one that was sent. The
    /// symbols of the added objects may not be larger than those of the session. The blocks of
    /// [`SenderConfig::first`] have no precedence from then on.
    pub fn extend(&mut self, objects: &[SendObject], control: Vec<ControlObject>) {
        let blocks = self.blocks.blocks(objects);
        self.rounds.extend(blocks, &mut self.outputs);
        self.extensions += 1;
        self.enough = enough(&self.rounds, false);
        self.digests.iter_mut().for_each(DigestLists::clear);
        let mut random = SplitMix64::new(self.blocks.seed, u64::MAX - self.extensions);
        let interval = control_interval(&self.outlet, self.rounds.source_symbols());
        let channel_count = self.outlet.channels.len();
        self.control = control
            .into_iter()
            .map(|object| {
                ControlCarousel::new(object, interval, channel_count, &mut random)
                    .beside(self.rounds.source_symbols())
            })
            .collect();
        if self.state == State::Starved {
            self.state = State::Sending;
        }
    }

    /// Replaces a control object by one with the same TOI and transmission information, at the same
    /// places of the order: a head with a later expiry. False if there is none.
    pub fn renew(&mut self, object: &ControlObject) -> bool {
        self.control.iter_mut().any(|carousel| carousel.renew(object))
    }

    /// Sends a control object of one symbol once, as the next packet of channel 0. It replaces one
    /// that was not sent yet. A sender that has finished sends no more.
    fn announce(&mut self, object: ControlObject) {
        // One symbol has no order and no rhythm.
        let mut random = SplitMix64::new(0, 0);
        let channels = self.outlet.channels.len();
        self.announcement = Some(ControlCarousel::new(object, 1, channels, &mut random));
        self.wake();
    }

    /// There is something to send that there was not before.
    fn wake(&mut self) {
        if matches!(self.state, State::Starved | State::Resting(_)) {
            self.state = State::Sending;
        }
    }

    /// Does what the receivers demand. False if that is nothing.
    fn collect(&mut self, now: Instant) -> bool {
        let wire_bytes = self.outlet.stats.wire_bytes;
        self.collection.iter_mut().for_each(|collection| collection.note_sent(wire_bytes));
        let mut has_demands = false;
        loop {
            let progress = SenderProgress {
                is_sent: self.is_sent(),
                is_announcing: self.announcement.is_some(),
                is_enough: self.outlet.stats.source_symbols + self.outlet.stats.repair_symbols
                    >= self.enough,
            };
            let demand = self.collection.as_mut().and_then(|it| it.poll(now, progress));
            let Some(demand) = demand else { return has_demands };
            has_demands = true;
            match demand {
                Demand::Call { call, .. } => {
                    self.outputs.push_back(SenderOutput::Job(SendJob::Sign(call)));
                }
                Demand::Fresh(symbols) => {
                    for (block, count) in symbols {
                        self.rounds.repair(block, count);
                    }
                    self.wake();
                }
                Demand::Named(symbols) => {
                    symbols.into_iter().for_each(|(block, esi)| self.rounds.resend(block, esi));
                    self.wake();
                }
                Demand::Rate(rate) => self.outlet.set_rate(now, rate),
                Demand::Rest(rests) => {
                    self.rests = rests;
                    self.wake();
                }
                Demand::AdvanceAll(advances) => {
                    self.rounds.advance_all(advances);
                    self.wake();
                }
                Demand::Losses => self.outputs.push_back(SenderOutput::Job(SendJob::ExpectRepair)),
                Demand::Event(event) => self.outputs.push_back(SenderOutput::Event(event)),
                // Of a stream.
                Demand::Loss { .. } | Demand::Request(_) | Demand::Followed(_) | Demand::Begin => {}
            }
        }
    }

    /// Whether everything is sent that was planned or demanded.
    fn is_sent(&self) -> bool {
        self.rounds.is_empty() || self.rounds.are_sent()
    }

    /// Counters so far.
    pub fn stats(&self) -> SenderStats {
        self.outlet.stats
    }

    /// Counters of each channel so far.
    pub fn channel_stats(&self) -> &[ChannelStats] {
        &self.outlet.channels
    }

    /// True if the blocks of [`SenderConfig::first`] were sent, also if there are none: a receiver
    /// of the previous version that was joined since then most likely has this one.
    pub fn is_first_phase_over(&self) -> bool {
        self.rounds.is_first_phase_over()
    }

    /// Withdraws a block whose source failed, or its whole object.
    fn withdraw(&mut self, block: BlockId, is_alone: bool, error: JobError) {
        if self.rounds.withdraw(block, is_alone) {
            let toi = block.toi;
            self.outputs.push_back(SenderOutput::Event(SenderEvent::Withdrawn { toi, error }));
        }
    }

    /// The control object that is due on a channel.
    fn control_turn(&self, now: Instant, channel: ChannelId) -> Option<usize> {
        if self.head_follows
            && channel == ChannelId::BASE
            && let Some(head) = self.control.iter().position(ControlCarousel::is_head)
        {
            return Some(head);
        }
        let in_rhythm =
            ControlCarousel::pick(&self.control, channel, self.outlet.packets_on(channel));
        let is_base = self.outlet.channels.len() > 1 && channel == ChannelId::BASE;
        in_rhythm.or_else(|| {
            let missing = || ControlCarousel::missing_on_base(&self.control, now, self.base_gap);
            is_base.then(missing).flatten()
        })
    }

    fn data_packet(
        &mut self,
        now: Instant,
        slot: Slot,
        queue: usize,
        planned: Planned,
        out: &mut Vec<u8>,
    ) -> Option<SenderOutput> {
        let block = self.rounds.block(planned.turn.block)?;
        let packet = DataPacket {
            encoding_id: block.encoding_id,
            symbol: block.symbol(planned),
            source_symbols: block.stream.source_symbols(),
            fti: block.fti,
        };
        let output =
            self.outlet.data(now, slot, &packet, out).map_err(|wake| self.wait_until(wake)).ok()?;
        self.rounds.take(queue, &mut self.outputs);
        self.starving = false;
        self.base_gap += u64::from(slot.channel == ChannelId::BASE);
        Some(output)
    }

    fn control_packet(
        &mut self,
        now: Instant,
        slot: Slot,
        which: usize,
        out: &mut Vec<u8>,
    ) -> Option<SenderOutput> {
        let carousel = self.control.get_mut(which)?;
        let output =
            self.outlet.control(now, slot, carousel, out).map_err(|wake| self.wait_until(wake));
        if output.is_ok() && slot.channel == ChannelId::BASE {
            (self.base_gap, self.head_follows) = (0, false);
        }
        output.ok()
    }

    /// The packet of the control object that is sent once, if it is the turn of channel 0.
    fn announcement_packet(
        &mut self,
        now: Instant,
        slot: Slot,
        out: &mut Vec<u8>,
    ) -> Option<SenderOutput> {
        let carousel = self.announcement.as_mut().filter(|_| slot.channel == ChannelId::BASE)?;
        let output =
            self.outlet.control(now, slot, carousel, out).map_err(|wake| self.wait_until(wake));
        if output.is_ok() {
            self.announcement = None;
            // A receiver of versions answers when it knows which one this is.
            self.head_follows = self.collection.as_ref().is_some_and(Collection::is_unheard);
        }
        output.ok()
    }

    fn wait_until(&mut self, wake: Instant) {
        self.state = State::Paced(wake);
    }

    /// The packet of a session that has only control objects to send.
    fn idle_packet(&mut self, now: Instant, slot: Slot, out: &mut Vec<u8>) -> Option<SenderOutput> {
        let enough = |carousel: &ControlCarousel| {
            carousel.sent() >= IDLE_PUSH_SYMBOLS.max(2 * carousel.source_symbols())
        };
        let symbols: u64 = self.control.iter().map(ControlCarousel::source_symbols).sum();
        let pass = IDLE_PASS / u32::try_from(symbols).unwrap_or(u32::MAX).max(1);
        let idle = IDLE_INTERVAL.min(pass);
        let (is_finite, interval) = match self.mode {
            _ if self.rests => (false, REST_INTERVAL),
            SendMode::Push { .. } => (true, idle),
            SendMode::OnDemand => (false, idle),
            SendMode::RepairOnDemand => (false, SILENT_INTERVAL),
        };
        let goes_on = self.mode == SendMode::RepairOnDemand || self.rests;
        if (self.control.is_empty() && !goes_on) || (is_finite && self.control.iter().all(enough)) {
            self.finish();
            return self.outputs.pop_front();
        }
        if self.control.is_empty() {
            self.rests_until = self.rests_until.max(now + interval);
        }
        if now < self.rests_until {
            self.state = State::Resting(self.rests_until);
            return None;
        }
        let objects = if self.rests { 1 } else { self.control.len() };
        let which = self.idle_turn % objects;
        let output = self.control_packet(now, slot, which, out)?;
        self.idle_turn = which + 1;
        self.outlet.rest();
        self.rests_until = now + interval;
        self.state = State::Resting(self.rests_until);
        Some(output)
    }

    /// The packet of a slot; `None` if there is none now, or no more on this channel.
    fn content_packet(
        &mut self,
        now: Instant,
        slot: Slot,
        out: &mut Vec<u8>,
    ) -> Option<SenderOutput> {
        let queue = self.rounds.queue_of(slot.channel);
        let next = self.rounds.peek(queue, self.outlet.clock(), &mut self.outputs);
        if !matches!(next, Err(Missing::Over))
            && let Some(which) = self.control_turn(now, slot.channel)
        {
            return self.control_packet(now, slot, which, out);
        }
        if next.is_ok()
            && let Some(lists) = &mut self.digests
        {
            let position = self.rounds.position();
            if let Some(list) = lists.due(position) {
                let sent = self.outlet.digests(now, slot, list, out);
                let output = sent.map_err(|wake| self.wait_until(wake)).ok()?;
                self.digests.iter_mut().for_each(|lists| lists.on_sent(position));
                return Some(output);
            }
        }
        match next {
            Ok((queue, planned)) => self.data_packet(now, slot, queue, planned, out),
            Err(Missing::Over) if self.rounds.are_over() => match self.mode {
                SendMode::RepairOnDemand => self.idle_packet(now, slot, out),
                SendMode::OnDemand | SendMode::Push { .. } => {
                    self.finish();
                    None
                }
            },
            Err(Missing::Over) => {
                self.outlet.pass_over();
                None
            }
            Err(Missing::Unprepared) => {
                self.state = State::Starved;
                let begun = self.outlet.stats.source_symbols + self.outlet.stats.repair_symbols > 0;
                self.outlet.stats.underruns += u64::from(begun && !self.starving);
                if !begun {
                    self.outlet.rest();
                }
                self.starving = true;
                None
            }
        }
    }

    /// The next packet, or another output.
    fn poll_packet(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<SenderOutput> {
        while self.outputs.is_empty() && self.state == State::Sending {
            let slot = match self.outlet.next_slot(now) {
                Ok(slot) => slot,
                Err(wake) => {
                    self.wait_until(wake);
                    break;
                }
            };
            if self.announcement.is_some() {
                if let Some(output) = self.announcement_packet(now, slot, header) {
                    return Some(output);
                }
                if self.state != State::Sending {
                    break;
                }
            }
            if self.rounds.is_empty() || self.rests {
                return self.idle_packet(now, slot, header);
            }
            self.rounds.plan_ahead(self.outlet.clock(), &mut self.outputs);
            // Jobs are prepared in the order of the requests.
            if !self.outputs.is_empty() {
                break;
            }
            if let Some(output) = self.content_packet(now, slot, header) {
                return Some(output);
            }
        }
        self.outputs.pop_front()
    }

    fn finish(&mut self) {
        if self.state != State::Finished {
            self.state = State::Finished;
            self.outputs.push_back(SenderOutput::Event(SenderEvent::Finished));
        }
    }
}

impl Endpoint for Sender {
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
        match done {
            SendDone::Opened(authentic) => {
                if let Some(collection) = &mut self.collection {
                    collection.handle_opened(now, authentic.as_deref());
                }
                return;
            }
            SendDone::Signed(call) => {
                let collection = self.collection.as_mut();
                let call = collection.and_then(|it| it.handle_signed(now, &call));
                call.into_iter().for_each(|call| self.announce(call));
                return;
            }
            SendDone::Prepared { batch } => self.rounds.on_prepared(batch, Vec::new()),
            SendDone::Digested { batch, digests } => {
                let digests = if self.digests.is_some() { digests } else { Vec::new() };
                self.rounds.on_prepared(batch, digests);
            }
            SendDone::Failed { batch, is_alone, error } => {
                if let Some(block) = self.rounds.on_prepare_failed(batch) {
                    self.withdraw(block, is_alone, error);
                }
            }
        }
        if let Some(lists) = &mut self.digests {
            while let Some((at, digests)) = self.rounds.prepared_digests() {
                lists.add(at, digests);
            }
        }
        if self.state == State::Starved {
            self.state = State::Sending;
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::Paced(wake) | State::Resting(wake) if wake <= now) {
            self.state = State::Sending;
        }
    }

    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<SenderOutput> {
        loop {
            if self
                .collection
                .as_ref()
                .is_some_and(|it| it.poll_timeout().is_some_and(|at| at <= now))
            {
                self.collect(now);
            }
            let output = self.poll_packet(now, header);
            // What has been sent may be the last of what was demanded.
            if output.is_some() || self.collection.is_none() || !self.collect(now) {
                return output;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let collection = self.collection.as_ref().and_then(Collection::poll_timeout);
        let packet = match self.state {
            State::Paced(wake) | State::Resting(wake) => Some(wake),
            _ => None,
        };
        packet.into_iter().chain(collection).min()
    }
}
