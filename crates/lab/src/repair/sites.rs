//! `li.sites`: the product's receivers at two sites, which complete each other while the sender
//! lives.

use crate::claim::{Claim, Target};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::session::Session;
use crate::statistics::{largest, mean};
use crate::swarm::hosts::{SendRunner, SwarmHost, SwarmReceiver, SwarmRunner, SwarmSender};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::report::{Expected, Reporter, ReporterConfig};
use fontana_proto::share::SiteTurn;
use fontana_proto::{
    Driver, Instant, ReceiverEvent, SendMode, SenderEvent, SiteConfig, SubscriptionLimits,
    TransmissionSchedule,
};
use fontana_sim::{
    Either, HostConfig, LinkConfig, LinkId, LossModel, NodeId, Observer, Packet, RateCap,
    Simulation, SimulationConfig, Topology,
};
use fontana_wire::{ReceiverId, ReceiverLabel};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const SITES: u32 = 2;
/// Receivers of a site.
const MEMBERS: u32 = 10;
/// Losses of the link to a site, and of a receiver's own.
const LINK_LOSS: f64 = 0.01;
const OWN_LOSS: f64 = 0.02;
/// From the sender to a site's router, and from there to a receiver: round trips of 100 and 2 ms.
const FAR: Duration = Duration::from_micros(49_500);
const NEAR: Duration = Duration::from_micros(500);
const BLOCKS: u8 = 5;
const BLOCK_SYMBOLS: u64 = 2_000;
const SYMBOL_BYTES: u16 = 1_400;
/// Bytes per second of the sender, and of a receiver's symbols, as in the program.
const RATE: u64 = 2_500_000;
const SITE_RATE: u64 = 2_500_000;
const STAYS: Duration = Duration::from_secs(10);
/// More than any host of a run sends.
const CAP: RateCap = RateCap {
    bytes_per_second: 1_000_000_000,
    max_packet_bytes: 2_000,
    peak_window: Duration::ZERO,
};
const STEP: Duration = Duration::from_millis(10);
const LIMIT: Duration = Duration::from_secs(120);
/// Runs of each kind.
const QUICK: u32 = 1;
const FULL: u32 = 5;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "li.sites",
    paper: "Li and Cheriton, section 2: local recovery",
    what: "Two sites of 10 receivers, each behind a link that loses 1 %, and 2 % of their own at each receiver; \
           100 ms to the sender and back, 2 ms in a site. The product's sender sends 14 MB at 20 Mbit/s, \
           and then what is requested; the product's receivers ask their site first, or the sender alone. \
           5 runs (quick: one).",
    sweep: &SweepOf {
        name: "li.sites",
        kind: Kind::Counted,
        cases: |scale| 2 * scale.pick(QUICK, FULL),
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |_| Vec::new(),
};

/// A run.
#[derive(Serialize, Deserialize)]
struct SitesRow {
    /// The receivers ask their site first.
    sites: bool,
    trial: u32,
    /// Repair symbols of the sender, for each that the link to a site has lost of the source
    /// symbols: of the site that has lost more.
    #[serde(rename = "repair per lost")]
    repair: f64,
    /// Milliseconds from the last source symbol until a receiver is complete: the mean, and the
    /// last one.
    #[serde(rename = "mean ms")]
    mean_ms: f64,
    #[serde(rename = "last ms")]
    last_ms: f64,
    /// Symbols that the members of a site have sent each other, for each source symbol.
    #[serde(rename = "site symbols")]
    site: f64,
}

/// When receivers were complete.
#[derive(Debug, Default)]
struct Completions(BTreeMap<NodeId, Instant>);

impl Observer<Either<SenderEvent, ReceiverEvent>> for Completions {
    fn on_deliver(&mut self, _: Instant, _: NodeId, _: &Packet) {}

    fn on_event(&mut self, now: Instant, node: NodeId, event: &Either<SenderEvent, ReceiverEvent>) {
        if matches!(event, Either::Right(ReceiverEvent::Complete)) {
            self.0.entry(node).or_insert(now);
        }
    }
}

fn run(case: &Case) -> Option<SitesRow> {
    let (sites, trial) = (case.index.is_multiple_of(2), case.index / 2);
    let seed = case.stream(trial).next_u64();
    let scheme = RaptorQ { source_blocks: BLOCKS, sub_blocks: 1, alignment: 4 };
    let symbols = u64::from(BLOCKS) * BLOCK_SYMBOLS;
    let oti = Oti {
        transfer_length: symbols * u64::from(SYMBOL_BYTES),
        symbol_size: SYMBOL_BYTES,
        scheme: FecScheme::RaptorQ(scheme),
    };
    let mut session = Session::new(&[oti], RATE, seed)?;
    session.mode = SendMode::RepairOnDemand;
    session.schedule = TransmissionSchedule::Sequential { repair_permille: 0 };
    session.calls = true;
    let mut world = World::new(&session, seed, sites)?;
    let lost = world.until_source_is_sent(symbols)?;
    let passed = world.run.now();
    let end = passed + LIMIT;
    while !world.is_complete() && world.run.now() < end {
        world.step()?;
    }
    let after = |at: &Instant| at.saturating_since(passed).as_secs_f64() * 1e3;
    let times: Vec<f64> = world.run.observer().0.values().map(after).collect();
    let is_complete = times.len() as u32 == SITES * MEMBERS;
    let sent: u64 = world.receivers.iter().map(|&node| world.shared(node)).sum();
    Some(SitesRow {
        sites,
        trial,
        repair: world.sent()?.1 as f64 / lost as f64,
        mean_ms: if is_complete { mean(&times) } else { f64::INFINITY },
        last_ms: if is_complete { largest(times.iter().copied()) } else { f64::INFINITY },
        site: sent as f64 / f64::from(SITES) / symbols as f64,
    })
}

/// Two sites and a sender.
struct World {
    run: Simulation<SwarmHost, Completions>,
    sender: NodeId,
    receivers: Vec<NodeId>,
    /// To the routers of the sites.
    links: Vec<LinkId>,
}

impl World {
    fn new(session: &Session, seed: u64, sites: bool) -> Option<Self> {
        let mut topology = Topology::new();
        let [sender, router] = [(); 2].map(|()| topology.add_node());
        topology.connect(sender, router, LinkConfig::default());
        let wire = |delay, loss| Arc::new(LinkConfig::wire(delay).with_loss(loss));
        let [far, near] = [(FAR, LINK_LOSS), (NEAR, OWN_LOSS)]
            .map(|(delay, loss)| wire(delay, LossModel::bernoulli(loss)));
        let back = wire(FAR, LossModel::None);
        let (mut members, mut links) = (Vec::new(), Vec::new());
        for _ in 0..SITES {
            let of_site = topology.add_node();
            links.push(topology.add_link(router, of_site, Arc::clone(&far)));
            topology.add_link(of_site, router, Arc::clone(&back));
            let nodes = topology.add_nodes(MEMBERS);
            for &node in &nodes {
                topology.add_link(of_site, node, Arc::clone(&near));
                topology.add_link(node, of_site, wire(NEAR, LossModel::None));
            }
            members.push(nodes);
        }
        let mut run =
            Simulation::new(topology, SimulationConfig::new(seed), Completions::default());
        let sources: Arc<[NodeId]> = [sender].into();
        let receivers = members.concat();
        for (number, &node) in (1_u32..).zip(&receivers) {
            let id = ReceiverId(u128::from(number).to_be_bytes());
            let own = seed ^ u64::from(number) << 32;
            let config = ReporterConfig::new(id, ReceiverLabel::default(), own);
            let reporter = Reporter::new(config);
            let mut receiver =
                session.receiver(SubscriptionLimits::default()).with_reports(reporter);
            let others = members.iter().filter(|site| site.contains(&node)).flatten();
            let others: Vec<NodeId> = others.copied().filter(|&other| other != node).collect();
            let mut config = HostConfig::receiver_that_reports(Arc::clone(&sources), CAP);
            if sites {
                receiver = receiver.with_site(SiteConfig {
                    seed: own,
                    member: number,
                    bytes_per_second: SITE_RATE,
                    stays: STAYS,
                    stays_beside_sender: STAYS,
                    turn: SiteTurn::BeforeSender,
                });
                config = config.in_site(others);
            }
            let host = SwarmReceiver::of(receiver);
            let host = Driver::new(host, SwarmRunner::of(session.runner()));
            run.attach(node, Either::Right(host), config);
        }
        let collection = session.collection(
            (0, sender.address()),
            Expected::Count(SITES * MEMBERS),
            (false, false),
        )?;
        let own = session.sender(0)?.with_collection(collection, Instant::ZERO);
        let host = Driver::new(SwarmSender::of(own), SendRunner::of(session.runner()));
        run.attach(sender, Either::Left(host), HostConfig::sender(session.cap()));
        Some(Self { run, sender, receivers, links })
    }

    fn step(&mut self) -> Option<()> {
        self.run.run_until(self.run.now() + STEP).ok()
    }

    /// Source and repair symbols that were sent.
    fn sent(&self) -> Option<(u64, u64)> {
        let stats = self.run.host(self.sender)?.left()?.endpoint.sender.stats();
        Some((stats.source_symbols, stats.repair_symbols))
    }

    /// Runs until the source symbols have arrived. Packets that the links to the sites have lost:
    /// the most of one of them.
    fn until_source_is_sent(&mut self, symbols: u64) -> Option<u64> {
        while self.sent()?.0 < symbols {
            self.step()?;
        }
        let lost = |&link: &LinkId| Some(self.run.link(link)?.stats().wire_drops);
        self.links.iter().filter_map(lost).max()
    }

    fn is_complete(&self) -> bool {
        self.run.observer().0.len() == self.receivers.len()
    }

    /// Symbols that a receiver has sent to its site.
    fn shared(&self, node: NodeId) -> u64 {
        let host = self.run.host(node).and_then(Either::right);
        host.map_or(0, |host| host.endpoint.receiver.share_stats().symbols_sent)
    }
}

fn claims() -> Vec<Claim> {
    type Number = fn(&SitesRow) -> f64;
    let of = |rows: &[SitesRow], sites: bool, number: Number| {
        mean(&rows.numbers(|row| row.sites == sites, number))
    };
    let repair: Number = |row| row.repair;
    let mean_ms: Number = |row| row.mean_ms;
    vec![
        Claim::own(
            "repair",
            "repair symbols of the sender for each symbol that the site as a whole lacks, three for each \
             of the 5 blocks included",
            Target::AtMost(1.5),
            0.0,
            move |rows: &[SitesRow]| of(rows, true, repair),
        ),
        Claim::own(
            "less",
            "times as many without the site",
            Target::AtLeast(2.5),
            0.0,
            move |rows: &[SitesRow]| of(rows, false, repair) / of(rows, true, repair),
        ),
        Claim::own(
            "sooner",
            "of the time from the last source symbol until a receiver is complete without the site",
            Target::AtMost(0.9),
            0.0,
            move |rows: &[SitesRow]| of(rows, true, mean_ms) / of(rows, false, mean_ms),
        ),
    ]
}
