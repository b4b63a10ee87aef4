//! The sessions of a run: content, codes, orders, congestion control and strangers, drawn from its
//! seed. [`Scenario`] draws the network and its faults.

use super::forger::{Forged, Forgery, Names};
use crate::bytes::Originals;
use crate::session::{HEADER_BYTES, Session};
use fontana_fec::codes::lt::{Lt, LtCode};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::codes::tornado::{Tornado, TornadoCode};
use fontana_fec::{Esi, FecScheme, Oti};
use fontana_proto::{
    BlockId, DecodePolicy, Fcast, Instant, ObjectOrder, SendMode, SplitMix64, SubscriptionLimits,
    SymbolOrganization, TransmissionSchedule, presets,
};
use fontana_sim::{Fault, Incident, LossModel, NodeId, Scenario, SwarmBounds, TimedIncident};
use fontana_wire::{CongestionControl, LayerRates, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bounds of the network and its faults.
pub(super) const BOUNDS: SwarmBounds = SwarmBounds {
    senders: 4,
    receivers: 12,
    rate_bytes_per_second: 1_000_000,
    trouble: Duration::from_secs(4),
};
/// Bytes of a symbol on ids, and on bytes.
const SYMBOL: u16 = 1_400;
const SHORT_SYMBOL: u16 = 128;
/// Most source symbols of a run: enough for several blocks, and for tens of packets on each
/// channel.
const MOST_SYMBOLS: u32 = 160;

/// The sessions of a run.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) session: Session,
    /// The session that strangers send under the same TSI.
    pub(super) foreign: Session,
    /// Numbers of the senders that are strangers. Sender 0 is none.
    pub(super) strangers: Vec<usize>,
    /// The content; `None` in runs on ids.
    pub(super) originals: Option<Arc<Originals>>,
    pub(super) limits: SubscriptionLimits,
    /// Routing of each receiver.
    pub(super) routing: Vec<Routing>,
    /// What receivers send.
    pub(super) sent_back: SentBack,
    /// Strangers who send to receivers and to the collector, by the number of the sender in whose
    /// place each is.
    pub(super) forgers: BTreeMap<usize, Forgery>,
    /// When all senders leave for good: then the receivers of the site complete each other.
    pub(super) leaves_at: Option<Instant>,
    /// What each receiver has from an earlier run, where the senders leave, on ids.
    pub(super) has: Vec<Saved>,
    /// The number of symbols for its site after which each receiver leaves for good.
    pub(super) deserts: Vec<Option<u32>>,
    /// Description, in a line.
    pub(super) what: String,
    /// Whether senders never send a symbol twice. FCAST's layers repeat each other's segments with
    /// any code.
    pub(super) is_fresh: bool,
    /// Whether a link loses packets at regular intervals.
    is_periodic: bool,
    /// Whether every symbol of the session that receivers get is right.
    pub(super) is_sound: bool,
    /// Whether few packets are lost, so that reports arrive.
    pub(super) is_gentle: bool,
    /// Whether a link duplicates packets.
    pub(super) repeats: bool,
}

/// What a receiver has saved in an earlier run.
#[derive(Clone, Debug, Default)]
pub(super) struct Saved {
    pub(super) blocks: Vec<BlockId>,
    /// Source symbols of other blocks.
    pub(super) parts: Vec<(BlockId, Vec<Esi>)>,
}

/// What the receivers of a run send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SentBack {
    /// They share what they have with each other.
    pub(super) shares: bool,
    /// They report to sender 0.
    pub(super) reports: bool,
    /// It expects them by their names, and they sign.
    pub(super) signs: bool,
    /// Old roll calls of four ended runs are sent to them again.
    pub(super) replays: bool,
    /// Sender 0 sends the source symbols, and then what they request.
    pub(super) repairs: bool,
    /// Its rate follows what arrives at them.
    pub(super) follows: bool,
    /// It rests while they lack nothing; otherwise it sends without a rest, or what they request
    /// alone.
    pub(super) rests: bool,
}

/// Multicast routing of a receiver, and its faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routing {
    Good,
    /// Joins of channels above this one have no effect.
    IgnoresJoinsAbove(u8),
    /// After so many packets, only those on the highest joined channel arrive.
    TopOnly {
        after: u32,
    },
}

impl Drawn {
    /// Draws the sessions. `None` if they cannot be sent, which is a bug of Fontana.
    pub(super) fn new(scenario: &Scenario) -> Option<Self> {
        let mut dice = SessionDice(scenario.random());
        let links = scenario.topology.edges().iter().map(|edge| &edge.config);
        let is_periodic = links.clone().any(|link| matches!(link.loss, LossModel::Periodic { .. }));
        let repeats = links.clone().any(|link| link.faults.duplicate.as_f64() > 0.0);
        let is_gentle = links.clone().all(|link| link.loss.mean() <= 0.05);
        let corrupts = links.clone().any(|link| link.faults.corrupt.as_f64() > 0.0);
        let on_bytes = dice.one_in(3);
        let symbol_size = if on_bytes { SHORT_SYMBOL } else { SYMBOL };
        // A symbol that is lost with the carousel's period never arrives.
        let otis = dice.objects(symbol_size, is_periodic);
        let is_rateless = otis.iter().all(|oti| oti.scheme.profile().is_rateless);
        let rate = dice.between(200_000, BOUNDS.rate_bytes_per_second);
        let (originals, session) = if on_bytes {
            let (originals, described) = Originals::draw(&otis, &mut dice.0)?;
            // As many packets per second as with long symbols.
            let rate = rate * u64::from(symbol_size + HEADER_BYTES) / u64::from(SYMBOL);
            (Some(Arc::new(originals)), Session::of(described, rate, scenario.seed)?)
        } else {
            (None, Session::new(&otis, rate, scenario.seed)?)
        };
        let congestion = dice.congestion(&session)?;
        let mut session = session.with_congestion(congestion);
        session.schedule = dice.schedule();
        session.policy = dice.policy();
        session.round_symbols = dice.between(16, 1_024) as u32;
        session.is_watched = true;
        let foreign =
            Session::raptorq(50_000, session.rate_bytes_per_second / 8, scenario.seed + 1)?;
        let strangers: Vec<usize> =
            (1..scenario.senders.len()).filter(|_| dice.one_in(3)).collect();
        // The top layer alone may not have enough symbols of a code with a fixed stretch factor.
        let top_suffices =
            is_rateless || !matches!(session.schedule, TransmissionSchedule::Fcast(_));
        let routing = scenario.receivers.iter().map(|_| dice.routing(top_suffices)).collect();
        let is_fixed = session.congestion == CongestionControl::FixedRate;
        let sent_back = dice.sent_back(is_fixed);
        let leaves_at = dice.leaves_at(scenario, &session, sent_back);
        let deserts = scenario.receivers.iter();
        let deserts = deserts.map(|_| leaves_at.and_then(|_| dice.deserts())).collect();
        let has = match (leaves_at, &originals) {
            (Some(_), None) => dice.saved(&session, scenario.receivers.len()),
            _ => Vec::new(),
        };
        let forgers = dice.forgers(scenario.senders.len(), &strangers, sent_back);
        session.calls = sent_back.reports;
        if leaves_at.is_some() {
            session.manifest_is_known = true;
            // The others may wait for more than the site has.
            session.policy = DecodePolicy::Incremental;
        }
        session.mode = match sent_back.repairs {
            true => SendMode::RepairOnDemand,
            false => SendMode::OnDemand,
        };
        let is_fcast = matches!(session.schedule, TransmissionSchedule::Fcast(_));
        let is_fresh =
            is_rateless && (!is_fcast || session.congestion == CongestionControl::FixedRate);
        let is_sound = !corrupts && strangers.is_empty();
        let mut drawn = Self {
            session,
            foreign,
            strangers,
            originals,
            // The breaker would end sessions at the losses of these networks.
            limits: SubscriptionLimits { breaker: None, ..SubscriptionLimits::default() },
            routing,
            sent_back,
            forgers,
            leaves_at,
            deserts,
            has,
            what: String::new(),
            is_fresh,
            is_periodic,
            is_sound,
            is_gentle: is_gentle && is_fixed,
            repeats,
        };
        drawn.what = drawn.describe(&otis, scenario);
        // The factory cannot fail, so sessions are checked here.
        (drawn.session.sender(0).is_some() && drawn.foreign.sender(0).is_some()).then_some(drawn)
    }

    /// Whether the packets that a receiver needs are bounded: all symbols are new, and each block
    /// has its share of them at any time, on every channel. Periodic losses may always hit the same
    /// block.
    pub(super) fn is_thrifty(&self) -> bool {
        let even = matches!(self.session.schedule, TransmissionSchedule::Interleaved { .. });
        self.is_fresh
            && even
            && !self.is_periodic
            && self.session.policy == DecodePolicy::Incremental
    }

    /// Lets the senders leave, where they do. Strangers stay.
    pub(super) fn empty(&self, scenario: &mut Scenario) {
        let Some(at) = self.leaves_at else { return };
        let numbered = scenario.senders.iter().copied().enumerate();
        let leaving = numbered.filter(|(number, _)| !self.forgers.contains_key(number));
        let leaving: Vec<NodeId> = leaving.map(|(_, node)| node).collect();
        scenario.incidents.retain(|timed| match timed.incident {
            Incident::Restart(node) => timed.at < at || !leaving.contains(&node),
            Incident::Fault(_) => true,
        });
        let crash =
            |&node: &NodeId| TimedIncident { at, incident: Incident::Fault(Fault::Crash(node)) };
        scenario.incidents.extend(leaving.iter().map(crash));
        scenario.incidents.sort_by_key(|timed| timed.at);
    }

    /// Whether an object is of a code without fresh symbols, whose source symbols arrive at some
    /// time, and suffice.
    pub(super) fn is_simple(&self, toi: Toi) -> bool {
        let mut objects = self.session.manifest.objects().iter();
        let object = objects.find(|object| Toi::from(object.toi) == toi);
        let scheme = object.map(|object| object.oti.scheme);
        let is_simple = matches!(scheme, Some(FecScheme::NoCode(_) | FecScheme::ReedSolomon(_)));
        is_simple && self.is_sound && !self.is_periodic
    }

    fn describe(&self, otis: &[Oti], scenario: &Scenario) -> String {
        let codes: Vec<_> = otis.iter().map(|oti| oti.scheme.profile().name).collect();
        let control = match &self.session.congestion {
            CongestionControl::FixedRate => "fixed rate",
            CongestionControl::FixedLayers(_) => "fixed layers",
            CongestionControl::Rlc(_) => "rlc",
            CongestionControl::FlidSl(_) => "flid-sl",
            CongestionControl::Webrc(_) => "webrc",
        };
        format!(
            "{} senders{}, {} of them strangers, {:?} forgers; {} receivers{}{}; {} of {} symbols in {} blocks; {control}; \
             {}; {:?}; {}; {} nodes",
            scenario.senders.len(),
            if self.leaves_at.is_some() { " that leave" } else { "" },
            self.strangers.len(),
            self.forgers.values().collect::<Vec<_>>(),
            scenario.receivers.len(),
            self.sent_back.name(),
            if self.sent_back.signs { " and sign" } else { "" },
            codes.join("+"),
            self.session.source_symbols(),
            self.session.block_count(),
            schedule_name(self.session.schedule),
            self.session.policy,
            if self.originals.is_some() { "bytes" } else { "ids" },
            scenario.topology.node_count(),
        )
    }
}

impl SentBack {
    fn name(self) -> &'static str {
        match (self.shares, self.reports, self.repairs, self.follows) {
            (false, false, ..) => "",
            (true, false, ..) => " that share",
            (false, true, false, false) => " that report",
            (true, true, false, false) => " that share and report",
            (false, true, false, true) => " that report and are followed",
            (true, true, false, true) => " that share, report and are followed",
            (false, true, true, false) => " that request",
            (true, true, true, false) => " that share and request",
            (false, true, true, true) => " that request and are followed",
            (true, true, true, true) => " that share, request and are followed",
        }
    }
}

fn schedule_name(schedule: TransmissionSchedule) -> &'static str {
    match schedule {
        TransmissionSchedule::Interleaved { .. } => "interleaved",
        TransmissionSchedule::Runs { .. } => "runs",
        TransmissionSchedule::Sequential { .. } => "sequential",
        TransmissionSchedule::Random => "random",
        TransmissionSchedule::Cumulative => "cumulative",
        TransmissionSchedule::Fcast(_) => "fcast",
    }
}

struct SessionDice(SplitMix64);

impl SessionDice {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + u64::from(self.0.below((high - low + 1) as u32))
    }

    fn one_in(&mut self, count: u32) -> bool {
        self.0.below(count) == 0
    }

    fn objects(&mut self, symbol_size: u16, only_rateless: bool) -> Vec<Oti> {
        let count = self.between(1, 3);
        let most = u64::from(MOST_SYMBOLS) / count;
        (0..count)
            .map(|_| {
                let symbols = self.between(1, most) as u32;
                let last = self.between(1, symbol_size.into());
                let transfer_length = u64::from(symbols - 1) * u64::from(symbol_size) + last;
                let scheme = self.scheme(symbols, only_rateless);
                Oti { transfer_length, symbol_size, scheme }
            })
            .collect()
    }

    fn scheme(&mut self, symbols: u32, only_rateless: bool) -> FecScheme {
        let blocks = self.between(1, u64::from(symbols.min(4))) as u32;
        let longest = symbols.div_ceil(blocks);
        match self.between(0, if only_rateless { 3 } else { 6 }) {
            0..=2 => FecScheme::RaptorQ(RaptorQ {
                source_blocks: blocks as u8,
                sub_blocks: 1,
                alignment: 4,
            }),
            3 => FecScheme::Lt(Lt {
                max_source_block_length: longest,
                code: LtCode::strict(longest, self.0.next_u64()),
            }),
            4 => FecScheme::Tornado(Tornado {
                max_source_block_length: longest,
                code: TornadoCode::Z,
            }),
            5 => FecScheme::ReedSolomon(ReedSolomon {
                code: ReedSolomonCode::Cauchy,
                max_source_block_length: longest.min(100) as u16,
                max_encoding_symbols: (2 * longest).min(200) as u16,
            }),
            _ => FecScheme::NoCode(NoCode { max_source_block_length: longest }),
        }
    }

    fn congestion(&mut self, session: &Session) -> Option<CongestionControl> {
        let rate = session.rate_bytes_per_second;
        let layers = LayerRates::geometric((rate / 8) as u32, 512, 4).ok()?;
        Some(match self.between(0, 7) {
            0..=2 => CongestionControl::FixedRate,
            3 => CongestionControl::FixedLayers(layers),
            4 => CongestionControl::Rlc(presets::rlc(layers)),
            5 => CongestionControl::FlidSl(presets::flid_sl(layers)),
            _ => {
                let webrc = presets::webrc_fast(rate as u32, session.packet_bytes()).ok()?;
                CongestionControl::Webrc(webrc)
            }
        })
    }

    fn schedule(&mut self) -> TransmissionSchedule {
        match self.between(0, 7) {
            0..=2 => TransmissionSchedule::Interleaved { grain: self.between(1, 8) as u32 },
            3 => {
                TransmissionSchedule::Sequential { repair_permille: self.between(0, 1_000) as u32 }
            }
            4 => TransmissionSchedule::Random,
            5 => TransmissionSchedule::Cumulative,
            _ => {
                let organization = match self.one_in(2) {
                    true => SymbolOrganization::Segments,
                    false => SymbolOrganization::AllOnEach,
                };
                let object_order = match self.between(0, 2) {
                    0 => ObjectOrder::Sequential,
                    1 => ObjectOrder::PartlyRandom { one_in: 8 },
                    _ => ObjectOrder::Random,
                };
                let stretch_factor = self.between(1, 4) as u32;
                let anticipated_layers = 0;
                TransmissionSchedule::Fcast(Fcast {
                    organization,
                    object_order,
                    stretch_factor,
                    anticipated_layers,
                })
            }
        }
    }

    fn policy(&mut self) -> DecodePolicy {
        match self.between(0, 3) {
            0 => DecodePolicy::Deferred,
            1 => DecodePolicy::Patient { margin: self.between(0, 10) as u32 },
            _ => DecodePolicy::Incremental,
        }
    }

    /// With layers, senders repair nothing on demand.
    fn sent_back(&mut self, is_fixed: bool) -> SentBack {
        let (shares, reports, follows) = (self.one_in(2), self.one_in(2), self.one_in(2));
        let repairs = self.one_in(2) && reports && is_fixed;
        let follows = reports && is_fixed && follows;
        let rests = reports && is_fixed && self.one_in(2);
        let [signs, replays] = [2, 4].map(|count| reports && self.one_in(count));
        SentBack { shares, reports, signs, replays, repairs, follows, rests }
    }

    /// Half of the sites are left by their senders, after the last receiver has begun and at most
    /// the time that the content takes.
    fn leaves_at(
        &mut self,
        scenario: &Scenario,
        session: &Session,
        sent_back: SentBack,
    ) -> Option<Instant> {
        let is_left = sent_back.shares && self.one_in(2);
        let bytes = session.source_symbols() * u64::from(session.packet_bytes());
        let nanos = bytes * 1_000_000_000 / session.rate_bytes_per_second.max(1);
        let at = nanos * self.between(0, 100) / 100 + 500_000_000;
        let starts = scenario.receivers.iter().map(|receiver| receiver.starts_at);
        let begins = starts.max().unwrap_or(Instant::ZERO);
        is_left.then(|| begins + Duration::from_nanos(at))
    }

    /// Of a third of the blocks nothing, of a third all at some members, and of a third a part at
    /// each.
    fn saved(&mut self, session: &Session, receivers: usize) -> Vec<Saved> {
        let mut has = vec![Saved::default(); receivers];
        for (block, symbols) in session.blocks() {
            let kind = self.between(0, 2);
            for saved in &mut has {
                let part: Vec<Esi> = (0..symbols).map(Esi).filter(|_| self.one_in(2)).collect();
                match kind {
                    0 => {}
                    1 if self.one_in(3) => saved.blocks.push(block),
                    1 => {}
                    _ => saved.parts.push((block, part)),
                }
            }
        }
        has
    }

    /// One member in four leaves after its first answers.
    fn deserts(&mut self) -> Option<u32> {
        let symbols = self.between(1, 4) as u32;
        self.one_in(4).then_some(symbols)
    }

    fn forgers(
        &mut self,
        senders: usize,
        strangers: &[usize],
        SentBack { shares, reports, .. }: SentBack,
    ) -> BTreeMap<usize, Forgery> {
        let may_be = |number: &usize| (shares || reports) && !strangers.contains(number);
        (1..senders).filter(may_be).filter_map(|number| Some((number, self.forgery()?))).collect()
    }

    fn forgery(&mut self) -> Option<Forgery> {
        let forged = match self.between(0, 7) {
            0 => Forged::Claims,
            1 => Forged::Symbols,
            2 => Forged::Requests,
            3 | 4 => Forged::Least,
            5 => Forged::Short,
            _ => Forged::All,
        };
        let names = match self.between(0, 2) {
            0 => Names::Own,
            1 => Names::Invented,
            _ => Names::OfReceivers,
        };
        let per_second = self.between(5, 50) as u32;
        self.one_in(2).then_some(Forgery { forged, names, per_second })
    }

    fn routing(&mut self, top_suffices: bool) -> Routing {
        match self.between(0, 11) {
            0 => Routing::IgnoresJoinsAbove(self.between(0, 3) as u8),
            1 if top_suffices => Routing::TopOnly { after: self.between(10, 200) as u32 },
            _ => Routing::Good,
        }
    }
}
