//! Simulated networks with one router, and senders and receivers around it, each on its own link.

use crate::session::{LISTENERS_FIRST, Session};
use fontana_proto::{Driver, Instant, Receiver, ReceiverStats, Sender};
use fontana_sim::{
    Either, HostConfig, IdRunner, LinkConfig, LinkId, NodeId, Simulation, SimulationConfig,
    Topology,
};
use std::sync::Arc;
use std::time::Duration;

/// A host.
pub(crate) type Peer = Either<Driver<Sender, IdRunner>, Driver<Receiver, IdRunner>>;

/// Delay from one host to another, without queues.
const ONE_WAY: Duration = Duration::from_millis(20);

/// A network, and the nodes of its senders and receivers.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) run: Simulation<Peer>,
    pub(crate) senders: Arc<[NodeId]>,
    pub(crate) receivers: Vec<NodeId>,
    /// The link down to each receiver.
    pub(crate) access: Vec<LinkId>,
}

impl Scene {
    /// A network with nodes for `senders` senders, and a node for a receiver behind each of
    /// `links`.
    pub(crate) fn new(seed: u64, senders: u32, links: Vec<Arc<LinkConfig>>) -> Self {
        Self::behind(None, seed, senders, links)
    }

    /// The same with all receivers behind one more link, `trunk`, to which a router joins what any
    /// of them has joined.
    pub(crate) fn behind(
        trunk: Option<LinkConfig>,
        seed: u64,
        senders: u32,
        links: Vec<Arc<LinkConfig>>,
    ) -> Self {
        let mut topology = Topology::new();
        let mut router = topology.add_node();
        let senders = topology.add_nodes(senders);
        for &sender in &senders {
            topology.connect(sender, router, LinkConfig::wire(ONE_WAY / 2));
        }
        if let Some(trunk) = trunk {
            let edge = topology.add_node();
            topology.connect(router, edge, trunk);
            router = edge;
        }
        let receivers = topology.add_nodes(links.len() as u32);
        let connect =
            |(&node, link): (&NodeId, Arc<LinkConfig>)| topology.connect(router, node, link).there;
        let access = receivers.iter().zip(links).map(connect).collect();
        let run = Simulation::new(topology, SimulationConfig::new(seed), ());
        Self { run, senders: senders.into(), receivers, access }
    }

    /// A link to a receiver without a bottleneck.
    pub(crate) fn access() -> LinkConfig {
        let (graft, prune) = (Duration::from_millis(5), Duration::from_millis(50));
        LinkConfig { graft, prune, ..LinkConfig::wire(ONE_WAY / 2) }
    }

    /// Puts the `number`th sender of a session on a node, and removes the one that was there. It
    /// starts now, but not before the receivers have joined.
    pub(crate) fn send(&mut self, place: usize, session: &Session, number: u64) -> Option<()> {
        let starts_at = self.run.now().max(Instant::ZERO + LISTENERS_FIRST);
        let config = HostConfig::sender(session.cap()).starting_at(starts_at);
        let sender = Driver::new(session.sender(number)?, session.runner());
        self.run.attach(*self.senders.get(place)?, Either::Left(sender), config);
        Some(())
    }

    /// Puts a receiver on a node.
    pub(crate) fn listen(
        &mut self,
        place: usize,
        receiver: Receiver,
        runner: IdRunner,
        starts_at: Instant,
    ) -> Option<()> {
        let config = HostConfig::receiver(Arc::clone(&self.senders)).starting_at(starts_at);
        let receiver = Driver::new(receiver, runner);
        self.run.attach(*self.receivers.get(place)?, Either::Right(receiver), config);
        Some(())
    }

    /// Runs until every receiver is complete and has left, or until `limit`. Returns whether all
    /// have left.
    pub(crate) fn until_all_left(&mut self, limit: Duration) -> Option<bool> {
        let receivers = &self.receivers;
        let done = |run: &Simulation<Peer>| receivers.iter().all(|&node| has_everything(run, node));
        self.run.run_while(Instant::ZERO + limit, done).ok()
    }

    /// Number of receivers that are not complete.
    pub(crate) fn missing(&self) -> usize {
        self.receivers.iter().filter(|&&node| !has_everything(&self.run, node)).count()
    }

    /// Counters of a receiver.
    pub(crate) fn stats(&self, place: usize) -> Option<ReceiverStats> {
        Some(self.run.host(*self.receivers.get(place)?)?.right()?.endpoint.stats())
    }

    /// Packets that a sender has sent.
    pub(crate) fn sent(&self, place: usize) -> Option<u64> {
        Some(self.run.host(*self.senders.get(place)?)?.left()?.endpoint.stats().packets)
    }

    /// Crashes a receiver. Returns the runner of its next run.
    pub(crate) fn crash(&mut self, place: usize) -> Option<IdRunner> {
        let host = self.run.detach(*self.receivers.get(place)?)?;
        Some(host.right()?.runner.restarted())
    }

    /// Counters of all receivers.
    pub(crate) fn all_stats(&self) -> Vec<ReceiverStats> {
        (0..self.receivers.len()).filter_map(|place| self.stats(place)).collect()
    }
}

/// Whether a receiver has accepted content, wants no further symbol of it, and has left.
fn has_everything(run: &Simulation<Peer>, node: NodeId) -> bool {
    let receiver = run.host(node).and_then(Either::right).map(|driver| &driver.endpoint);
    receiver.is_some_and(|r| r.source_symbols() > 0 && r.symbols_wanted() == 0)
        && run.joined(node).is_empty()
}

/// The paper's inefficiencies of a reception: `eta` counts all packets of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Inefficiency {
    /// `eta`: packets received, over k.
    pub(crate) reception: f64,
    /// `eta_c`: distinct symbols received, over k.
    pub(crate) decoding: f64,
    /// `eta_d`: symbols received, over distinct ones.
    pub(crate) distinctness: f64,
}

impl Inefficiency {
    pub(crate) fn of(stats: &ReceiverStats, source_symbols: u64) -> Self {
        let (k, fresh) = (source_symbols as f64, stats.fresh as f64);
        Self {
            reception: stats.session_packets as f64 / k,
            decoding: fresh / k,
            distinctness: (stats.fresh + stats.duplicates) as f64 / fresh,
        }
    }
}
