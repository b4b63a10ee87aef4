//! A session in the network of section 6: a path of its own to each receiver, with a queue.

use super::packet::{HEADER_BYTES, PAYLOAD_BYTES};
use super::receiver::ReportingReceiver;
use super::sender::{FollowingSender, SentContent};
use crate::bmtp::packet::UDP_IP_BYTES;
use crate::no_jobs::NoJobs;
use fontana_proto::report::{PacketCounts, RateConfig};
use fontana_proto::{Driver, Instant};
use fontana_sim::{
    Either, HostConfig, LinkConfig, LossModel, LossPosition, NodeId, QueueLength, RateCap,
    Simulation, SimulationConfig, Topology,
};
use fontana_wire::{ReceiverId, ReceiverLabel};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a data packet with its headers: those of the paper.
const PACKET_BYTES: u32 = UDP_IP_BYTES + HEADER_BYTES as u32 + PAYLOAD_BYTES as u32;
const ONE_WAY: Duration = Duration::from_millis(50);
const QUEUE: QueueLength = QueueLength::Packets(50);
/// Rate reports per second that the product wants.
const RATE_REPORTS_PER_SECOND: u32 = 100;
/// The highest rate, in packets per second.
const MOST: u32 = 1_000;
/// More than any host of a run sends.
const CAP: RateCap =
    RateCap { bytes_per_second: 2_000_000, max_packet_bytes: 2_000, peak_window: Duration::ZERO };
/// The receivers join before the first packet.
const RECEIVERS_FIRST: Duration = Duration::from_millis(1);

/// What a run consists of. Rates are in packets per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionSetting {
    pub(super) receivers: u32,
    /// Of the first receiver's path, and of the others'.
    pub(super) slow: u32,
    pub(super) fast: u32,
    /// Line errors of all paths, and of the way back.
    pub(super) errors: f64,
    /// The rate at first, and the lowest one.
    pub(super) start: u32,
    pub(super) least: u32,
    /// The first receiver must finish.
    pub(super) must_finish: bool,
    pub(super) content: SentContent,
}

impl SessionSetting {
    fn rate(&self) -> RateConfig {
        let bytes = |packets: u32| u64::from(packets * PACKET_BYTES);
        RateConfig {
            start: bytes(self.start),
            most: bytes(MOST),
            least: bytes(self.least),
            least_to_finish: bytes(1),
            packet_bytes: PACKET_BYTES,
            budget_per_second: RATE_REPORTS_PER_SECOND,
            known: None,
            blind: None,
            max_receivers: 1 << 16,
        }
    }

    fn path(&self, packets_per_second: u32) -> LinkConfig {
        LinkConfig {
            rate_bytes_per_second: Some(u64::from(packets_per_second * PACKET_BYTES)),
            queue: QUEUE,
            delay: ONE_WAY,
            loss: LossModel::bernoulli(self.errors),
            loss_position: LossPosition::Ingress,
            ..LinkConfig::default()
        }
    }
}

type SessionHost = Either<Driver<FollowingSender, NoJobs>, Driver<ReportingReceiver, NoJobs>>;

/// A run.
pub(super) struct SessionRun {
    run: Simulation<SessionHost>,
    sender: NodeId,
    receivers: Vec<NodeId>,
}

impl SessionRun {
    /// A run at time 0.
    pub(super) fn new(setting: &SessionSetting, seed: u64) -> Self {
        let mut topology = Topology::new();
        let [sender, router] = [(); 2].map(|()| topology.add_node());
        topology.add_link(sender, router, LinkConfig::default());
        let loss = LossModel::bernoulli(setting.errors);
        let back = LinkConfig { delay: ONE_WAY, loss, ..LinkConfig::default() };
        topology.add_link(router, sender, back);
        let receivers = topology.add_nodes(setting.receivers);
        let fast = Arc::new(setting.path(setting.fast));
        for (index, &receiver) in receivers.iter().enumerate() {
            let path = match index {
                0 => Arc::new(setting.path(setting.slow)),
                _ => Arc::clone(&fast),
            };
            topology.add_link(router, receiver, path);
            topology.add_link(receiver, router, LinkConfig::default());
        }
        let mut run = Simulation::new(topology, SimulationConfig::new(seed), ());
        let sources: Arc<[NodeId]> = [sender].into();
        // The first receiver.
        let label = || "must-finish".parse::<ReceiverLabel>().ok();
        let must_finish = setting.must_finish.then(label).flatten();
        for (&node, number) in receivers.iter().zip(0_u64..) {
            let label = must_finish.clone().filter(|_| number == 0).unwrap_or_default();
            let (content, seed) = (setting.content, seed ^ number << 32);
            let receiver = ReportingReceiver::new(id(number), label, content, seed);
            let config = HostConfig::receiver_that_reports(Arc::clone(&sources), CAP);
            run.attach(node, Either::Right(Driver::new(receiver, NoJobs)), config);
        }
        let (address, rate) = (sender.address(), setting.rate());
        let host = FollowingSender::new(address, setting.content, rate, must_finish, seed);
        let config = HostConfig::sender(CAP).starting_at(Instant::ZERO + RECEIVERS_FIRST);
        run.attach(sender, Either::Left(Driver::new(host, NoJobs)), config);
        Self { run, sender, receivers }
    }

    /// Runs until so many seconds have passed; `None` if an invariant of the simulation is
    /// violated.
    pub(super) fn until(&mut self, seconds: u64) -> Option<()> {
        self.run.run_until(Instant::ZERO + Duration::from_secs(seconds)).ok()
    }

    fn sender(&self) -> Option<&FollowingSender> {
        Some(&self.run.host(self.sender)?.left()?.endpoint)
    }

    fn receiver(&self, number: usize) -> Option<&ReportingReceiver> {
        let node = self.receivers.get(number)?;
        Some(&self.run.host(*node)?.right()?.endpoint)
    }

    /// Packets that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sender().map_or(0, FollowingSender::sent)
    }

    /// The rate in packets per second.
    pub(super) fn rate(&self) -> f64 {
        self.sender().map_or(f64::NAN, FollowingSender::rate)
    }

    /// Packets of the first receiver.
    pub(super) fn slow_counts(&self) -> PacketCounts {
        self.receiver(0).map(ReportingReceiver::counts).unwrap_or_default()
    }

    /// When the last receiver had everything, in seconds; `None` if one lacks something.
    pub(super) fn completed_at(&self) -> Option<f64> {
        let at = |number| self.receiver(number).and_then(ReportingReceiver::completed_at);
        let seconds = |at: Instant| at.as_nanos() as f64 / 1e9;
        let times: Option<Vec<f64>> =
            (0..self.receivers.len()).map(|number| at(number).map(seconds)).collect();
        times?.into_iter().reduce(f64::max)
    }
}

fn id(number: u64) -> ReceiverId {
    ReceiverId((u128::from(number) << 64 | 9).to_be_bytes())
}
