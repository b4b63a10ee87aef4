//! A sender that collects reports and repairs on demand, a receiver that signs, and a stranger who
//! sends to the collector what it likes, in virtual time.

use super::report::BenchError;
use super::world::{DiskUse, Transfer};
use fontana_fec::Sbn;
use fontana_proto as proto;
use fontana_proto::report::{
    Authentic, CollectorConfig, Expected, ExpectedReceiver, NoCipher, PacketCounts, RepairConfig,
    ReportFacts, Reporter, ReporterConfig,
};
use fontana_proto::{
    BlockId, Collection, CollectionConfig, DatagramBatch, Demand, Ecn, Instant, Lacking, Port,
    RepairBy, SendJob, SenderProgress, SplitMix64,
};
use fontana_wire::{
    BlockNeed, Feedback, Hash, InstanceId, ReceiverId, ReceiverReport, ReceiverState,
    RepairRequest, RollCall, RollCallEcho, SealId, SecretKey, SymbolMap, Toi, Tsi,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const INSTANCE: InstanceId = InstanceId([5; 16]);
const MANIFEST: Hash = Hash([3; 32]);
const COMPLETE: ReceiverState = ReceiverState::Complete { manifest: MANIFEST };
const LABEL: &str = "rack-1";
const HONEST: ReceiverId = ReceiverId([0xAA; 16]);
const UNIX_MS: u64 = 1_800_000_000_000;
/// Blocks of the content, and source symbols of each.
const BLOCKS: u32 = 4;
const BLOCK_SYMBOLS: u32 = 350;
const SYMBOLS_PER_SECOND: u64 = 1_000;
/// Part of the packets that are lost, in both directions.
const LOSS: f64 = 0.1;
/// The time in which the stranger sends, and the time that the receiver has after that.
const ATTACK: Duration = Duration::from_secs(10);
const LIVENESS: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(5);
/// Datagrams of the receiver that a stranger remembers.
const REMEMBERED: usize = 64;

/// Makes the datagrams of a class.
pub(super) type Make = fn(&mut Stranger) -> Datagram;

/// A datagram to the collector, and the address that it seems to come from.
pub(super) struct Datagram {
    from: IpAddr,
    bytes: Vec<u8>,
}

/// A host that hears the roll calls and the receiver, and sends what it likes.
pub(super) struct Stranger {
    random: SplitMix64,
    key: SecretKey,
    call: Option<RollCall>,
    heard: Vec<Vec<u8>>,
}

impl Stranger {
    fn hear(&mut self, bytes: &[u8]) {
        match self.heard.len() < REMEMBERED {
            true => self.heard.push(bytes.to_vec()),
            false => {
                let at = self.random.below(REMEMBERED as u32) as usize;
                self.heard.get_mut(at).into_iter().for_each(|it| *it = bytes.to_vec());
            }
        }
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.below(end)
    }

    /// The receiver's address, its own, or any.
    fn address(&mut self) -> IpAddr {
        match self.below(3) {
            0 => address(1),
            1 => address(200),
            _ => address(self.random.next_u64() as u32 >> 8),
        }
    }

    /// The receiver's id, or any.
    fn receiver(&mut self) -> ReceiverId {
        let id = u128::from(self.random.next_u64()) << 64;
        if self.below(2) == 0 { HONEST } else { ReceiverId(id.to_be_bytes()) }
    }

    fn echo(&self) -> RollCallEcho {
        let serial = self.call.as_ref().map_or(0, |call| call.serial);
        RollCallEcho { serial, held_us: 0 }
    }

    /// Signed by a key that is not expected, or not at all.
    fn send(&mut self, feedback: &Feedback) -> Datagram {
        let counter = match self.below(3) {
            0 => 0,
            1 => u64::MAX,
            _ => self.random.next_u64(),
        };
        let key = (self.below(8) == 0).then(|| self.key.clone());
        let bytes = emit(feedback, counter, key.as_ref());
        Datagram { from: self.address(), bytes }
    }
}

/// Reports of any receiver and state.
pub(super) fn reports(stranger: &mut Stranger) -> Datagram {
    let state = match stranger.below(3) {
        0 => ReceiverState::Receiving,
        1 => COMPLETE,
        _ => ReceiverState::Failed { exit_code: stranger.below(256) as u8 },
    };
    let label = if stranger.below(2) == 0 { LABEL } else { "" };
    let round = stranger.call.as_ref().map_or(0, |call| call.round);
    let receiver = stranger.receiver();
    let report = report(receiver, label, state, round, stranger.echo());
    let loss_ppm = stranger.below(1_000_001);
    let feedback = report.map(|report| Feedback::Report(ReceiverReport { loss_ppm, ..report }));
    match feedback {
        Some(feedback) => stranger.send(&feedback),
        None => Datagram { from: address(200), bytes: Vec::new() },
    }
}

/// Requests for one symbol, for named ones, and for all, also of blocks that do not exist.
pub(super) fn requests(stranger: &mut Stranger) -> Datagram {
    let round = stranger.call.as_ref().and_then(|call| call.repair.as_ref()).map(|it| it.round);
    let need = |sbn, symbols| BlockNeed { toi: 1, sbn, symbols };
    let blocks = match stranger.below(4) {
        0 => vec![need(stranger.below(BLOCKS), 1)],
        1 => vec![need(stranger.random.next_u64() as u32, u32::MAX)],
        _ => (0..BLOCKS).map(|sbn| need(sbn, u32::MAX)).collect(),
    };
    let request = RepairRequest {
        receiver: stranger.receiver(),
        round: round.unwrap_or_default(),
        echo: stranger.echo(),
        loss_ppm: stranger.below(1_000_001),
        mute_us: stranger.random.next_u64() as u32,
        may_lack_more: stranger.below(2) == 0,
        blocks,
        maps: Vec::<SymbolMap>::new(),
    };
    stranger.send(&Feedback::Request(request))
}

/// Datagrams of the receiver: again, with other bits, and cut off; from any address.
pub(super) fn changed_feedback(stranger: &mut Stranger) -> Datagram {
    let at = stranger.below(stranger.heard.len().max(1) as u32) as usize;
    let mut bytes = stranger.heard.get(at).cloned().unwrap_or_default();
    match stranger.below(3) {
        0 => {}
        1 => {
            for _ in 0..=stranger.below(8) {
                let at = stranger.below(bytes.len().max(1) as u32) as usize;
                let bit = 1 << stranger.below(8);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= bit);
            }
        }
        _ => bytes.truncate(stranger.below(bytes.len() as u32 + 1) as usize),
    }
    Datagram { from: stranger.address(), bytes }
}

fn address(host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0A00_0000 + host))
}

fn emit(feedback: &Feedback, counter: u64, key: Option<&SecretKey>) -> Vec<u8> {
    feedback.emit(SealId::from(INSTANCE), counter, key, None::<&NoCipher>)
}

fn report(
    receiver: ReceiverId,
    label: &str,
    state: ReceiverState,
    round: u32,
    echo: RollCallEcho,
) -> Option<ReceiverReport> {
    Some(ReceiverReport {
        receiver,
        label: label.parse().ok()?,
        started_unix_ms: UNIX_MS,
        round,
        echo,
        state,
        permille: 500,
        symbols_lacking: 10,
        loss_ppm: 0,
        kernel_drops: 0,
        channels: 1,
        seconds: 1,
    })
}

/// What the receiver has counted: a tenth is lost.
const PACKETS: PacketCounts =
    PacketCounts { received: 900, lost: 100, latest: Instant::ZERO, is_control_alone: false };

/// The receiver.
struct Honest {
    key: SecretKey,
    reporter: Reporter,
    has: [u32; BLOCKS as usize],
    is_final: bool,
}

impl Honest {
    fn lacking(&self) -> Lacking {
        let need = |(sbn, &has): (u32, &u32)| {
            let symbols = BLOCK_SYMBOLS.saturating_sub(has);
            (symbols > 0).then_some(BlockNeed { toi: 1, sbn, symbols })
        };
        Lacking { blocks: (0..).zip(&self.has).filter_map(need).collect(), ..Lacking::default() }
    }
}

struct World {
    now: Instant,
    random: SplitMix64,
    collection: Collection,
    honest: Honest,
    stranger: Stranger,
    /// Symbols to be sent, of each block.
    owed: BTreeMap<u32, u32>,
    /// Symbols that were sent, and that could have been.
    sent: u64,
    credit: u64,
}

/// A session that ends when its receiver is complete and known, beside a stranger that sends so
/// many datagrams in ten seconds, or none.
pub(super) fn run(seed: u64, attack: Option<(Make, u32)>) -> Result<Transfer, BenchError> {
    let mut world = World::new(seed)?;
    let in_ticks = |time: Duration| (time.as_millis() / TICK.as_millis()) as u64;
    let attack_ticks = in_ticks(ATTACK);
    let mut hostile = 0;
    for tick in 0..in_ticks(ATTACK + LIVENESS) {
        if let Some((make, variants)) = attack.filter(|_| tick < attack_ticks) {
            let due = u64::from(variants) * (tick + 1) / attack_ticks;
            while hostile < due {
                let Datagram { from, bytes } = make(&mut world.stranger);
                world.take(&bytes, from);
                hostile += 1;
            }
        } else if world.is_over() {
            break;
        }
        world.pass();
    }
    Ok(Transfer {
        sent: world.sent,
        hostile,
        is_exact: world.is_over(),
        log_bytes: 0,
        disk: DiskUse::default(),
    })
}

impl World {
    fn new(seed: u64) -> Result<Self, BenchError> {
        let key = SecretKey::from_seed(&[1; 32]);
        let label = || LABEL.parse().map_err(|_| BenchError("a label is none"));
        let expected = ExpectedReceiver { label: label()?, key: Some(key.public_key()) };
        let list_capacity = RollCall::capacity(1_388, None);
        let config = CollectorConfig {
            expected: Expected::Named(vec![expected]),
            list_capacity: list_capacity.ok_or(BenchError("no roll call fits"))?,
            ..CollectorConfig::new(INSTANCE, Tsi(5), MANIFEST, (address(7), 40_007).into(), seed)
        };
        let block = |sbn| (BlockId { toi: Toi(1), sbn: Sbn(sbn) }, BLOCK_SYMBOLS);
        let repair = RepairConfig {
            blocks: (0..BLOCKS).map(block).collect(),
            symbols_per_second: SYMBOLS_PER_SECOND as f64,
            pending_capacity: 48,
            max_receivers: 1 << 16,
            max_age: None,
            trusts_unauthenticated: false,
            has_signers: true,
        };
        let config = CollectionConfig {
            repair: RepairBy::Rounds(Box::new(repair)),
            ..CollectionConfig::new(config, 1_388)
        };
        let reporter = Reporter::new(ReporterConfig::new(HONEST, label()?, seed));
        let stranger = Stranger {
            random: SplitMix64::new(seed, 401),
            key: SecretKey::from_seed(&[99; 32]),
            call: None,
            heard: Vec::new(),
        };
        Ok(Self {
            now: Instant::ZERO,
            random: SplitMix64::new(seed, 402),
            collection: Collection::new(config, Instant::ZERO),
            honest: Honest { key, reporter, has: [0; BLOCKS as usize], is_final: false },
            stranger,
            owed: (0..BLOCKS).map(|sbn| (sbn, BLOCK_SYMBOLS)).collect(),
            sent: 0,
            credit: 0,
        })
    }

    /// The receiver has everything, and the sender knows that.
    fn is_over(&self) -> bool {
        self.honest.is_final && self.collection.collector().is_as_expected()
    }

    fn is_lost(&mut self) -> bool {
        self.random.unit() < LOSS
    }

    fn pass(&mut self) {
        self.now = self.now + TICK;
        self.send_symbols();
        self.follow();
        self.answer();
    }

    fn send_symbols(&mut self) {
        self.credit += SYMBOLS_PER_SECOND * TICK.as_millis() as u64 / 1_000;
        while let Some(left) = self.credit.checked_sub(1)
            && let Some(mut owed) = self.owed.first_entry()
        {
            let block = *owed.key() as usize;
            *owed.get_mut() -= 1;
            if *owed.get() == 0 {
                owed.remove();
            }
            (self.credit, self.sent) = (left, self.sent + 1);
            if !self.is_lost() {
                self.honest.has.get_mut(block).into_iter().for_each(|has| *has += 1);
            }
        }
        if self.owed.is_empty() {
            self.credit = 0;
        }
    }

    /// The sender does what its receivers demand.
    fn follow(&mut self) {
        loop {
            let progress = SenderProgress {
                is_sent: self.owed.is_empty(),
                is_announcing: false,
                is_enough: false,
            };
            match self.collection.poll(self.now, progress) {
                None => return,
                Some(Demand::Fresh(symbols)) => {
                    for (block, count) in symbols {
                        *self.owed.entry(block.sbn.0).or_default() += count;
                    }
                }
                Some(Demand::Call { call, .. }) => {
                    self.collection.handle_signed(self.now, &[]);
                    self.hear(RollCall { issued_unix_ms: UNIX_MS, ..*call });
                }
                Some(_) => {}
            }
        }
    }

    fn hear(&mut self, call: RollCall) {
        if !self.is_lost() {
            let lacking = self.honest.lacking();
            let reporter = &mut self.honest.reporter;
            reporter.handle_roll_call(self.now, &call, PACKETS, |_| lacking);
        }
        self.stranger.call = Some(call);
    }

    fn answer(&mut self) {
        if self.honest.lacking().is_nothing() && !self.honest.is_final {
            self.honest.is_final = true;
            self.honest.reporter.end(self.now, COMPLETE);
        }
        let facts = |_| ReportFacts { packets: PACKETS, ..ReportFacts::default() };
        let Some(answer) = self.honest.reporter.poll(self.now, facts) else { return };
        let bytes = emit(&answer.feedback, answer.counter, Some(&self.honest.key));
        self.stranger.hear(&bytes);
        if !self.is_lost() {
            self.take(&bytes, address(1));
        }
    }

    /// The sender handles a datagram.
    fn take(&mut self, bytes: &[u8], from: IpAddr) {
        let received = proto::Datagram {
            from: (from, 0).into(),
            port: Port::Feedback,
            ecn: Ecn::NotEct,
            dropped_before: 0,
            payload: 0..bytes.len() as u32,
        };
        let batch = DatagramBatch::one(bytes, &received);
        for job in self.collection.handle_datagrams(self.now, &batch) {
            let SendJob::Open { from, datagram } = job else { continue };
            let authentic = Authentic::open_plain(&datagram, from, self.collection.signers());
            self.collection.handle_opened(self.now, authentic.as_ref());
        }
    }
}
