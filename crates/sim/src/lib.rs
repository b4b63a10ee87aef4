//! A network in virtual time, on whose nodes are [`Host`]s: drivers of any endpoint.
//!
//! ```text
//!  Topology ── nodes and links ──▶ Simulation ◀── attach ── hosts: endpoints and job runners
//!  LinkConfig: rate, queue, delay, loss, faults; graft and prune
//! ```
//!
//! A [`Simulation`] carries the hosts' datagrams over a [`Topology`] of [`Link`]s, along
//! source-rooted multicast trees whose hops are grafted and pruned with their own delays. Symbols
//! are ids: their bytes are charged on every link and exist nowhere, so a hundred thousand
//! receivers fit into a machine. A run is a function of its configuration and its seed, and stops
//! at the first
//! [`Violation`] of what must hold in every run. Which protocol the hosts speak is not known here,
//! nor do their endpoints know that they are simulated.
//!
//! The parts are of use by themselves: a [`Link`] or a [`Loss`] model in a relay between real
//! hosts.

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

pub use chance::{Probability, exponential};
pub use host::{Either, Host, HostConfig, HostEvent};
pub use link::{
    Arrival, Backlog, DropCause, Fate, Link, LinkConfig, LinkStats, QueueLength, WireFaults,
};
pub use loss::{Loss, LossModel};
pub use machine::{Machine, MachineConfig, MachineStats};
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
