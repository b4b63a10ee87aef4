//! A sender and one receiver in a simulation, with a link between them.

use crate::session::{LISTENERS_FIRST, Session};
use fontana_proto::Instant;
use fontana_sim::{
    Either, Host, HostConfig, LinkConfig, NodeId, Observer, Rooted, Simulation, SimulationConfig,
};
use std::sync::Arc;

/// The simulation, and the nodes of the two hosts.
pub(super) struct Pair<S, R, O>
where
    Either<S, R>: Host,
{
    pub(super) run: Simulation<Either<S, R>, O>,
    pub(super) source: NodeId,
    pub(super) leaf: NodeId,
}

/// Start of the sender. The receiver starts at time 0.
pub(super) fn start() -> Instant {
    Instant::ZERO + LISTENERS_FIRST
}

impl<S, R, O> Pair<S, R, O>
where
    Either<S, R>: Host,
    O: Observer<<Either<S, R> as Host>::Event>,
{
    /// The hosts of a session, at time 0.
    pub(super) fn new(
        session: &Session,
        link: LinkConfig,
        observer: O,
        sender: S,
        receiver: R,
    ) -> Option<Self> {
        let network = Rooted::tree(&[1], &[Arc::new(link)]);
        let (source, leaf) = (network.source, *network.leaves.first()?);
        let config = SimulationConfig::new(session.seed);
        let mut run = Simulation::new(network.topology, config, observer);
        let sends = HostConfig::sender(session.cap()).starting_at(start());
        run.attach(source, Either::Left(sender), sends);
        run.attach(leaf, Either::Right(receiver), HostConfig::receiver([source]));
        Some(Self { run, source, leaf })
    }
}
