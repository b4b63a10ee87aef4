//! The sending endpoint: a fountain of encoding symbols over everything a session carries.
//!
//! The order of symbols is laid out in *rounds*. While one round is being sent, the driver prepares
//! the symbols of the next, a batch for each block that occurs in it: that bounds memory by two
//! rounds and lets a block be encoded for many symbols at once. Between the data go the control
//! objects (session head, manifest, file delivery table), each in its own rhythm and for as long
//! as the session lasts, so that a receiver may join at any time.

use crate::random::SplitMix64;
use crate::schedule::{Order, SymbolStream, Turn};
use crate::{
    BatchId, BlockId, ChannelId, Datagram, Destination, Done, Endpoint, Event, Instant, Job,
    Output, Pacer, SymbolId, TransmissionSchedule,
};
use control::ControlCarousel;
use fontana_fec::{ObjectLayout, Sbn};
use fontana_wire::{Cci, HeaderFields, Toi, Tsi, emit_payload_id, emit_small_block_payload_id};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

mod control;
pub use control::{ControlError, ControlObject};

/// An object to send.
#[derive(Clone, Copy, Debug)]
pub struct SendObject {
    /// Its identifier.
    pub toi: Toi,
    /// Its geometry.
    pub layout: ObjectLayout,
    /// Whether this sender sends the source symbols once before it turns to repair symbols.
    /// Mirrors and senders that were started again do not: somebody has heard them already.
    pub source_pass: bool,
}

/// How long to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// For ever: receivers come and go.
    OnDemand,
    /// A finite amount: the source symbols and, per thousand of them, so many repair symbols.
    Push {
        /// Repair symbols per thousand source symbols of a block, rounded up.
        repair_permille: u32,
    },
}

/// Everything a sender needs to know.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Transport session identifier.
    pub tsi: Tsi,
    /// Content.
    pub objects: Vec<SendObject>,
    /// Control objects, most urgent first.
    pub control: Vec<ControlObject>,
    /// How long.
    pub mode: SendMode,
    /// In which order.
    pub schedule: TransmissionSchedule,
    /// Cap on the bytes on the wire, IP and UDP headers included.
    pub rate_bytes_per_second: u64,
    /// Bytes of IP and UDP header that the rate counts for each datagram: 28 for IPv4, 48 for IPv6.
    pub packet_overhead: u32,
    /// Symbols that are laid out and prepared at a time. Two rounds of them are held in memory.
    pub round_symbols: u32,
    /// Number the packets in the CCI, so that receivers can tell loss. Plain FLUTE peers expect 0.
    pub sequence_in_cci: bool,
    /// Draws the first repair symbol of each block and the first sequence number.
    pub seed: u64,
}

/// Counters, never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Datagrams handed to the driver.
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
    /// Times the rate allowed a packet and the symbols for it were not ready.
    pub underruns: u64,
}

/// Pours the encoding symbols of a session's objects onto its channel.
#[derive(Debug)]
pub struct Sender {
    tsi: Tsi,
    sequence_in_cci: bool,
    packet_overhead: u32,
    round_symbols: u32,
    /// Symbols of the next round, while rounds grow.
    next_round: u32,
    mode: SendMode,
    schedule: TransmissionSchedule,
    pacer: Pacer,
    order: Order,
    blocks: Vec<Block>,
    rounds: VecDeque<Round>,
    next_batch: u64,
    /// Every batch that has been asked for and not answered.
    preparing: BTreeSet<BatchId>,
    control: Vec<ControlCarousel>,
    withdrawn: BTreeSet<Toi>,
    outputs: VecDeque<Output>,
    sequence: u32,
    state: State,
    /// Nothing of the content has been sent since the symbols for it were found missing.
    starving: bool,
    stats: SenderStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sending,
    /// The symbols of the next packet are not ready.
    Starved,
    /// The rate does not allow a packet before then.
    Paced(Instant),
    Finished,
}

#[derive(Debug)]
struct Block {
    id: BlockId,
    encoding_id: u8,
    stream: SymbolStream,
    symbol_size: u16,
}

/// A stretch of the order of symbols, prepared as a whole.
#[derive(Debug)]
struct Round {
    symbols: Vec<(SymbolId, usize)>,
    next: usize,
    batches: Range<u64>,
}

/// Control packets are one in so many at most; a receiver that joins late waits for about twice
/// that for the head, a fifteenth of a second at 100 Mbit/s.
const CONTROL_INTERVAL: u64 = 256;
/// On slow links they are one in so many at least, even if the head comes less than once a second.
const MIN_CONTROL_INTERVAL: u64 = 50;
/// Rounds double from this length on, so that the first packet need not wait for a large one to be
/// prepared.
const FIRST_ROUND: u32 = 1024;
/// What a session that only has control objects sends: one in so many nanoseconds.
const IDLE_INTERVAL_NANOS: u64 = 20_000_000;
/// How many symbols of each control object a push session without any data sends, at least: one
/// is very likely to arrive, even if most are lost. And every symbol twice.
const IDLE_PUSH_SYMBOLS: u64 = 20;

impl Sender {
    /// A sender that has sent nothing yet.
    pub fn new(config: SenderConfig) -> Self {
        let mut blocks = Vec::new();
        let mut max_symbol =
            config.control.iter().map(|o| u32::from(o.symbol_size())).max().unwrap_or(0);
        for object in &config.objects {
            let oti = object.layout.oti();
            max_symbol = max_symbol.max(u32::from(oti.symbol_size));
            for sbn in (0..object.layout.block_count()).map(Sbn) {
                let id = BlockId { toi: object.toi, sbn };
                let stream = (object.toi.0 as u64) << 32 | u64::from(sbn.0);
                let mut random = SplitMix64::new(config.seed, stream);
                let k = object.layout.source_symbols(sbn).unwrap_or(0);
                blocks.push(Block {
                    id,
                    encoding_id: oti.scheme.encoding_id(),
                    stream: SymbolStream::new(oti.scheme, k, object.source_pass, &mut random),
                    symbol_size: oti.symbol_size,
                });
            }
        }
        // The longest header: fixed LCT part, EXT_FDT, EXT_FTI, payload id.
        let max_packet = max_symbol + config.packet_overhead + 64;
        let limit = match config.mode {
            SendMode::OnDemand => None,
            SendMode::Push { repair_permille } => Some(repair_permille.saturating_add(1000)),
        };
        let lengths = blocks.iter().map(|b| b.stream.source_symbols()).collect();
        let packets_per_second = config.rate_bytes_per_second / u64::from(max_packet);
        let interval = packets_per_second.clamp(MIN_CONTROL_INTERVAL, CONTROL_INTERVAL);
        let mut random = SplitMix64::new(config.seed, u64::MAX);
        Self {
            tsi: config.tsi,
            sequence_in_cci: config.sequence_in_cci,
            packet_overhead: config.packet_overhead,
            round_symbols: config.round_symbols.max(1),
            next_round: FIRST_ROUND.min(config.round_symbols.max(1)),
            mode: config.mode,
            schedule: config.schedule,
            pacer: Pacer::new(config.rate_bytes_per_second, max_packet),
            order: Order::new(config.schedule, lengths, limit),
            control: config
                .control
                .into_iter()
                .map(|object| ControlCarousel::new(object, interval, &mut random))
                .collect(),
            blocks,
            rounds: VecDeque::new(),
            next_batch: 0,
            preparing: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            outputs: VecDeque::new(),
            sequence: random.next_u64() as u32,
            state: State::Sending,
            starving: false,
            stats: SenderStats::default(),
        }
    }

    /// Counters so far.
    pub fn stats(&self) -> SenderStats {
        self.stats
    }

    /// Lays out the next round and asks for its batches; false if there is nothing left to send.
    fn plan_round(&mut self) -> bool {
        let turns: Vec<Turn> = self.order.by_ref().take(self.next_round as usize).collect();
        self.next_round = self.next_round.saturating_mul(2).min(self.round_symbols);
        if turns.is_empty() {
            return false;
        }
        let first_batch = self.next_batch;
        let mut batches: BTreeMap<usize, (BatchId, Vec<_>)> = BTreeMap::new();
        let mut symbols = Vec::with_capacity(turns.len());
        for Turn { block, i } in turns {
            let Some(b) = self.blocks.get(block) else { continue };
            let esi = b.stream.esi(i);
            let (batch, esis) = batches.entry(block).or_insert_with(|| {
                self.next_batch += 1;
                (BatchId(self.next_batch - 1), Vec::new())
            });
            let index = esis.len() as u32;
            esis.push(esi);
            symbols.push((SymbolId { block: b.id, esi, batch: *batch, index }, block));
        }
        // Within the round the blocks take turns symbol by symbol, whatever the grain.
        let share = |&(symbol, block): &(SymbolId, usize)| {
            let length = batches.get(&block).map_or(1, |(_, esis)| esis.len() as u64);
            ((2 * u64::from(symbol.index) + 1) << 31) / length
        };
        if matches!(self.schedule, TransmissionSchedule::Interleaved { .. }) {
            symbols.sort_by_key(share);
        }
        for (block, (batch, esis)) in batches {
            let Some(b) = self.blocks.get(block) else { continue };
            self.preparing.insert(batch);
            self.outputs.push_back(Output::Job(Job::Prepare { batch, block: b.id, esis }));
        }
        self.rounds.push_back(Round { symbols, next: 0, batches: first_batch..self.next_batch });
        true
    }

    /// Moves to the next symbol that can be sent. `Err` says why there is none.
    fn next_symbol(&mut self) -> Result<(SymbolId, usize), State> {
        loop {
            let Some(round) = self.rounds.front_mut() else { return Err(State::Finished) };
            let Some(&(symbol, block)) = round.symbols.get(round.next) else {
                for batch in round.batches.clone().map(BatchId) {
                    self.outputs.push_back(Output::Job(Job::Release { batch }));
                }
                self.rounds.pop_front();
                self.plan_round();
                continue;
            };
            if self.withdrawn.contains(&symbol.block.toi) {
                round.next += 1;
                continue;
            }
            // A round begins when all of it is ready: neighbours in it are of different batches.
            let batches = BatchId(round.batches.start)..BatchId(round.batches.end);
            if round.next == 0 && self.preparing.range(batches).next().is_some() {
                return Err(State::Starved);
            }
            return Ok((symbol, block));
        }
    }

    /// Gives up an object whose source failed.
    fn withdraw(&mut self, toi: Toi) {
        if self.withdrawn.insert(toi) {
            for (index, _) in self.blocks.iter().enumerate().filter(|(_, b)| b.id.toi == toi) {
                self.order.withdraw(index);
            }
            self.outputs.push_back(Output::Event(Event::Withdrawn { toi }));
        }
    }

    fn cci(&self) -> Cci {
        Cci::from_u32(if self.sequence_in_cci { self.sequence } else { 0 })
    }

    fn transmit(&mut self, payload_bytes: u32, symbol: Option<SymbolId>) -> Output {
        self.sequence = self.sequence.wrapping_add(1);
        self.stats.packets += 1;
        self.stats.payload_bytes += u64::from(payload_bytes);
        self.stats.wire_bytes += u64::from(payload_bytes + self.packet_overhead);
        Output::Transmit { to: Destination::Channel(ChannelId(0)), symbol }
    }

    fn data_packet(
        &mut self,
        now: Instant,
        (symbol, block): (SymbolId, usize),
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        let block = self.blocks.get(block)?;
        let at = out.len();
        let fields = HeaderFields {
            cci: self.cci(),
            codepoint: block.encoding_id,
            ..HeaderFields::new(self.tsi, Some(symbol.block.toi))
        };
        fields.emit(out);
        let BlockId { sbn, .. } = symbol.block;
        if block.encoding_id == 129 {
            emit_small_block_payload_id(sbn, block.stream.source_symbols(), symbol.esi, out);
        } else {
            emit_payload_id(block.encoding_id, sbn, symbol.esi, out);
        }
        let bytes = (out.len() - at) as u32 + u32::from(block.symbol_size);
        if !self.pacer.take(now, bytes + self.packet_overhead) {
            out.truncate(at);
            self.state = State::Paced(self.pacer.next_wake());
            return None;
        }
        if symbol.esi.0 < block.stream.source_symbols() {
            self.stats.source_symbols += 1;
        } else {
            self.stats.repair_symbols += 1;
        }
        if let Some(round) = self.rounds.front_mut() {
            round.next += 1;
        }
        self.starving = false;
        Some(self.transmit(bytes, Some(symbol)))
    }

    fn control_packet(&mut self, now: Instant, which: usize, out: &mut Vec<u8>) -> Option<Output> {
        let cci = self.cci();
        let carousel = self.control.get_mut(which)?;
        let at = out.len();
        carousel.emit(self.tsi, cci, out);
        let bytes = (out.len() - at) as u32;
        if !self.pacer.take(now, bytes + self.packet_overhead) {
            out.truncate(at);
            self.state = State::Paced(self.pacer.next_wake());
            return None;
        }
        carousel.advance(self.stats.packets);
        self.stats.control_packets += 1;
        Some(self.transmit(bytes, None))
    }

    /// The packet of a session that has nothing but control objects to send.
    fn idle_packet(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Output> {
        let enough = |carousel: &ControlCarousel| {
            carousel.sent() >= IDLE_PUSH_SYMBOLS.max(2 * carousel.source_symbols())
        };
        if self.control.is_empty()
            || (self.mode != SendMode::OnDemand && self.control.iter().all(enough))
        {
            self.finish();
            return self.outputs.pop_front();
        }
        let which = (self.stats.packets % self.control.len() as u64) as usize;
        let output = self.control_packet(now, which, out)?;
        self.state = State::Paced(now + std::time::Duration::from_nanos(IDLE_INTERVAL_NANOS));
        Some(output)
    }

    fn finish(&mut self) {
        if self.state != State::Finished {
            self.state = State::Finished;
            self.outputs.push_back(Output::Event(Event::Finished));
        }
    }
}

impl Endpoint for Sender {
    /// Nothing flows back in a one-way session.
    fn handle_datagram(&mut self, _now: Instant, _datagram: &Datagram<'_>) {}

    fn handle_done(&mut self, _now: Instant, done: Done) {
        match done {
            Done::Prepared { batch } => {
                self.preparing.remove(&batch);
            }
            Done::PrepareFailed { batch } => {
                self.preparing.remove(&batch);
                let failed = self
                    .rounds
                    .iter()
                    .flat_map(|round| &round.symbols)
                    .find(|(symbol, _)| symbol.batch == batch);
                if let Some(&(symbol, _)) = failed {
                    self.withdraw(symbol.block.toi);
                }
            }
            _ => {}
        }
        if self.state == State::Starved {
            self.state = State::Sending;
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if matches!(self.state, State::Paced(wake) if wake <= now) {
            self.state = State::Sending;
        }
    }

    fn poll_output(&mut self, now: Instant, header: &mut Vec<u8>) -> Option<Output> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if self.state != State::Sending {
            return None;
        }
        if self.blocks.is_empty() {
            return self.idle_packet(now, header);
        }
        while self.rounds.len() < 2 && self.plan_round() {}
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let next = self.next_symbol();
        // Letting go of a round asks for another one.
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        if next != Err(State::Finished)
            && let Some(which) = ControlCarousel::pick(&self.control, self.stats.packets)
        {
            return self.control_packet(now, which, header);
        }
        match next {
            Ok(symbol) => self.data_packet(now, symbol, header),
            Err(State::Finished) => {
                self.finish();
                self.outputs.pop_front()
            }
            Err(_) => {
                self.state = State::Starved;
                let begun = self.stats.source_symbols + self.stats.repair_symbols > 0;
                self.stats.underruns += u64::from(begun && !self.starving);
                self.starving = true;
                None
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Paced(wake) => Some(wake),
            _ => None,
        }
    }
}
