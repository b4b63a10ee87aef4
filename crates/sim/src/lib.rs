//! A network in virtual time, which drives any endpoint of [`fontana_proto`].
//!
//! A [`Simulation`] carries datagrams between the [`Host`]s on the nodes of a [`Topology`], over
//! [`Link`]s: by unicast, and along source-rooted multicast trees whose hops are grafted and pruned
//! with their own delays. Symbols are ids: links are charged for their bytes, which are stored
//! nowhere, so one computer simulates a hundred thousand receivers. A run is a function of its
//! configuration and its seed. It stops at the first [`Violation`] of an invariant. The simulation
//! does not interpret datagrams, and endpoints do not know that they are simulated. A [`Link`] and
//! a [`Loss`] model can be used alone, for example between real hosts.
//!
//! Two segments a second cross a link that delays them by 10 ms:
//!
//! ```
//! use fontana_proto::{Driver, Instant, Receiver};
//! use fontana_sim::{
//!     IdRunner, LinkConfig, NodePair, Simulation, SimulationConfig, Topology, Traffic,
//! };
//! use std::time::Duration;
//!
//! let mut topology = Topology::new();
//! let (from, to) = (topology.add_node(), topology.add_node());
//! topology.connect(from, to, LinkConfig::wire(Duration::from_millis(10)));
//!
//! let mut run: Simulation<Driver<Receiver, IdRunner>> =
//!     Simulation::new(topology, SimulationConfig::new(1), ());
//! let traffic = Traffic::Cbr { packet_bytes: 1_250, interval: Duration::from_millis(500) };
//! let end = Instant::ZERO + Duration::from_secs(3);
//! let flow = run.add_flow(NodePair { from, to }, traffic, Instant::ZERO, end).expect("a path");
//! run.run_until(end).expect("no invariant is violated");
//! assert_eq!(run.flow(flow).expect("this flow").delivered, 6);
//! ```
//!
//! | module | what it has |
//! |---|---|
//! | `topology` | nodes, links, shortest paths; the usual shapes of networks |
//! | `link`, `loss`, `chance` | one direction of a link: queue, transmitter, wire; loss models |
//! | `multicast` | groups: which hops forward them, and from when to when |
//! | `host`, `runner`, `machine` | hosts: drivers of endpoints, jobs on ids, processing time |
//! | `simulation`, `queue`, `packet` | the run: events in the order of their times |
//! | `tcp` | models of TCP, as cross traffic |
//! | `swarm` | networks, faults and restarts drawn from a seed |
//! | `violation`, `trace`, `observe` | invariants, the digest of a run, observers |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod chance;
mod host;
mod link;
mod loss;
mod machine;
mod multicast;
mod observe;
mod packet;
mod queue;
mod runner;
mod simulation;
mod swarm;
mod tcp;
mod topology;
mod trace;
mod violation;

pub use chance::Probability;
pub use host::{Either, Host, HostConfig, HostEvent};
pub use link::{
    Arrival, Backlog, DropCause, Fate, Link, LinkConfig, LinkStats, LossPosition, QueueLength,
    ServiceTime, WireFaults,
};
pub use loss::{Loss, LossModel};
pub use machine::{Machine, MachineConfig, MachineStats};
pub use multicast::Multicast;
pub use observe::Observer;
pub use packet::Packet;
pub use queue::{DueEvent, EventQueue};
pub use runner::{Delivery, IdContent, IdRunner, SimulatedRunner};
pub use simulation::{
    Fault, FlowId, FlowStats, Simulation, SimulationConfig, SimulationStats, Traffic,
};
pub use swarm::{
    HostFactory, Incident, PlayedScenario, Scenario, ScenarioFlow, ScenarioReceiver, SendingHost,
    SwarmBounds, TimedIncident,
};
pub use tcp::{Ack, TcpConfig, TcpReceiver, TcpSender, TcpVariant};
pub use topology::{
    Dumbbell, Edge, LinkId, LinkPair, NodeId, NodePair, PathTree, Rooted, Topology, TransitStub,
    TransitStubLinks, TransitStubShape,
};
pub use violation::{RateCap, Violation};
