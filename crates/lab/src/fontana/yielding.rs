//! `fo.yield`: the rate that the program has without an option, beside TCP and beside another such
//! session.

use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::session::{SYMBOL_BYTES, Session};
use crate::statistics::{mean, smallest};
use crate::swarm::hosts::{SendRunner, SwarmHost, SwarmReceiver, SwarmRunner, SwarmSender};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::report::{Expected, RateConfig, Reporter, ReporterConfig};
use fontana_proto::{Driver, Instant, SendMode, SubscriptionLimits};
use fontana_sim::{
    Dumbbell, Either, FlowId, HostConfig, LinkConfig, NodeId, NodePair, RateCap, Simulation,
    SimulationConfig, TcpConfig, TcpVariant, Traffic,
};
use fontana_wire::{ReceiverId, ReceiverLabel};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// From one host to another without a queue: a round trip of 8 ms.
const HOP: Duration = Duration::from_micros(1_300);
/// Both are there after [`LATER`] seconds, and are measured from second `SETTLED` to second `END`.
const LATER: u64 = 10;
const SETTLED: u64 = 30;
const END: u64 = 150;
/// As in the program, in bytes per second.
const START: u64 = 250_000;
const LEAST: u64 = 125_000;
/// An object that no receiver completes during a run.
const ENDLESS_SYMBOLS: u64 = 5_000_000;
/// More than a receiver sends.
const CAP: RateCap =
    RateCap { bytes_per_second: 1_000_000, max_packet_bytes: 2_000, peak_window: Duration::ZERO };

/// Bottlenecks: Mbit/s, and the queue in milliseconds. The first ones belong to quick runs.
const BOTTLENECKS: [(u64, u64); 4] = [(20, 20), (20, 200), (200, 20), (200, 200)];
const QUICK: u32 = 2;
/// What shares them with a session.
const RIVALS: [Rival; 3] = [
    Rival { name: "TCP CUBIC", is_tcp: true, is_first: false },
    Rival { name: "TCP CUBIC first", is_tcp: true, is_first: true },
    Rival { name: "another session", is_tcp: false, is_first: false },
];

#[derive(Clone, Copy, Debug)]
struct Rival {
    name: &'static str,
    is_tcp: bool,
    is_first: bool,
}

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fo.yield",
    paper: "BMTP, section 8: other protocols",
    what: "A bottleneck of 20 Mbit/s (full scale: also 200) with a queue of 20 or 200 ms and a round trip of \
           8 ms: a session whose rate is automatic, and one TCP flow (a model of CUBIC) that begins 10 s \
           later, or 10 s earlier; or a second such session. From 30 to 150 s of virtual time: the parts \
           of the bottleneck that the session and the other have.",
    sweep: &SweepOf {
        name: "fo.yield",
        kind: Kind::Counted,
        cases: |scale| RIVALS.len() as u32 * scale.pick(QUICK, BOTTLENECKS.len() as u32),
        run: |case| share(case).into_iter().collect(),
    },
    claims,
    exhibits: |_| Vec::new(),
};

/// A bottleneck that was shared.
#[derive(Serialize, Deserialize)]
struct Shared {
    against: String,
    #[serde(rename = "Mbit/s")]
    megabits: u64,
    #[serde(rename = "queue ms")]
    queue_ms: u64,
    session: f64,
    other: f64,
}

fn share(case: &Case) -> Option<Shared> {
    let index = case.index as usize;
    let &(megabits, queue_ms) = BOTTLENECKS.get(index / RIVALS.len())?;
    let &rival = RIVALS.get(index % RIVALS.len())?;
    let mut world = World::new(case, megabits * 125_000, queue_ms, rival)?;
    world.run_until(SETTLED)?;
    let before = world.bytes();
    world.run_until(END)?;
    let whole = (megabits * 125_000 * (END - SETTLED)) as f64;
    let after = world.bytes();
    let parts: Vec<f64> = before.iter().zip(&after).map(|(a, b)| (b - a) / whole).collect();
    Some(Shared {
        against: rival.name.into(),
        megabits,
        queue_ms,
        session: *parts.first()?,
        other: *parts.last()?,
    })
}

/// A session and a rival at a bottleneck.
struct World {
    run: Simulation<SwarmHost>,
    sessions: Vec<NodeId>,
    flow: Option<FlowId>,
}

impl World {
    fn new(case: &Case, bytes_per_second: u64, queue_ms: u64, rival: Rival) -> Option<Self> {
        let queue = Duration::from_millis(queue_ms);
        let bottleneck = LinkConfig::bottleneck(bytes_per_second, queue, HOP);
        let access = LinkConfig { jitter: Duration::from_micros(50), ..LinkConfig::wire(HOP) };
        let Dumbbell { topology, pairs, .. } = Dumbbell::new(2, bottleneck, access);
        let (&first, &second) = (pairs.first()?, pairs.get(1)?);
        let mut random = case.stream(0);
        let config = SimulationConfig::new(random.next_u64());
        let run = Simulation::new(topology, config, ());
        let mut world = Self { run, sessions: Vec::new(), flow: None };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let (own, other) = if rival.is_first { (at(LATER), at(0)) } else { (at(0), at(LATER)) };
        world.add_session(first, bytes_per_second, random.next_u64(), own)?;
        if rival.is_tcp {
            let traffic = Traffic::Tcp(TcpConfig::new(TcpVariant::Cubic));
            let never = Instant::from_nanos(u64::MAX);
            world.flow = world.run.add_flow(second, traffic, other, never);
        } else {
            world.add_session(second, bytes_per_second, random.next_u64(), other)?;
        }
        Some(world)
    }

    /// A sender whose rate is automatic, and its receiver.
    fn add_session(
        &mut self,
        NodePair { from, to }: NodePair,
        bottleneck: u64,
        seed: u64,
        starts_at: Instant,
    ) -> Option<()> {
        let oti = Oti {
            transfer_length: ENDLESS_SYMBOLS * u64::from(SYMBOL_BYTES),
            symbol_size: SYMBOL_BYTES,
            scheme: FecScheme::NoCode(NoCode { max_source_block_length: 50_000 }),
        };
        let most = 5 * bottleneck;
        let mut session = Session::new(&[oti], START, seed)?;
        session.mode = SendMode::RepairOnDemand;
        session.calls = true;
        let mut collection =
            session.collection((0, from.address()), Expected::Count(1), (true, true))?;
        collection.collector.is_near = true;
        let rate = collection.rate.take()?;
        collection.rate = Some(RateConfig {
            start: START,
            least: LEAST,
            most,
            blind: Some(bottleneck / 10),
            ..rate
        });
        let sender = session.sender(0)?.with_collection(collection, starts_at);
        let sender = Driver::new(SwarmSender::of(sender), SendRunner::of(session.runner()));
        let cap = RateCap { bytes_per_second: most, ..session.cap() };
        let config = HostConfig::sender(cap).starting_at(starts_at);
        self.run.attach(from, Either::Left(sender), config);
        let id = ReceiverId(u128::from(seed).to_be_bytes());
        let config = ReporterConfig::new(id, ReceiverLabel::default(), seed);
        let reporter = Reporter::new(ReporterConfig { reports_rate: true, ..config });
        let receiver = session.receiver(SubscriptionLimits::default()).with_reports(reporter);
        let receiver = Driver::new(SwarmReceiver::of(receiver), SwarmRunner::of(session.runner()));
        let config = HostConfig::receiver_that_reports([from], CAP).starting_at(starts_at);
        self.run.attach(to, Either::Right(receiver), config);
        self.sessions.push(to);
        Some(())
    }

    fn run_until(&mut self, second: u64) -> Option<()> {
        self.run.run_until(Instant::ZERO + Duration::from_secs(second)).ok()
    }

    /// Bytes on the wire so far: of the sessions, then of the flow.
    fn bytes(&self) -> Vec<f64> {
        let session = |&node: &NodeId| {
            let stats = self.run.host(node)?.right()?.endpoint.receiver.stats();
            Some((stats.payload_bytes + 28 * stats.datagrams) as f64)
        };
        let segment = f64::from(TcpConfig::new(TcpVariant::Cubic).segment_bytes);
        let flow = |flow: FlowId| Some(self.run.flow(flow)?.delivered as f64 * segment);
        self.sessions.iter().filter_map(session).chain(self.flow.and_then(flow)).collect()
    }
}

fn claims() -> Vec<Claim> {
    type Number = fn(&Shared) -> f64;
    let beside = |is_tcp: bool, number: Number| {
        let is_kind = move |row: &Shared| {
            RIVALS.iter().any(|rival| rival.is_tcp == is_tcp && rival.name == row.against)
        };
        move |rows: &[Shared]| rows.numbers(is_kind, number)
    };
    let kept = beside(true, |row| row.other);
    let least_kept = beside(true, |row| row.other);
    let own = beside(true, |row| row.session);
    let less = beside(false, |row| row.session.min(row.other));
    let used = beside(false, |row| row.session + row.other);
    vec![
        Claim::own(
            "bmtp@cubic",
            "part of the bottleneck that a CUBIC flow keeps beside a session, in the mean",
            Target::AtLeast(0.5),
            0.0,
            move |rows: &[Shared]| mean(&kept(rows)),
        ),
        Claim::own(
            "bmtp@cubic least",
            "the same, where it keeps least",
            Target::AtLeast(0.25),
            0.0,
            move |rows: &[Shared]| smallest(least_kept(rows)),
        ),
        Claim::own(
            "bmtp beside cubic",
            "part of the bottleneck that the session has, where it has least",
            Target::AtLeast(0.1),
            0.0,
            move |rows: &[Shared]| smallest(own(rows)),
        ),
        Claim::own(
            "bmtp@bmtp",
            "part of the bottleneck that the lesser of two sessions has, where it has least",
            Target::AtLeast(0.25),
            0.0,
            move |rows: &[Shared]| smallest(less(rows)),
        ),
        Claim::own(
            "bmtp@bmtp used",
            "part of the bottleneck that two sessions use, where they use least",
            Target::AtLeast(0.8),
            0.0,
            move |rows: &[Shared]| smallest(used(rows)),
        ),
    ]
}
