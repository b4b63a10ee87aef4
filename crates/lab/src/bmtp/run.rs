//! Runs of BMTP in the network of section 6: a path of its own to each receiver, and one channel
//! back that all of them share.
//!
//! ```text
//! sender ── router ─┬─ queue ─ receiver        40 or 100 packets a second
//!    ^              └─ queue ─ receiver
//!    └─ queue ─ router ─── all receivers       500 status packets a second
//! ```

use super::log::FeedbackLog;
use super::packet::{BmtpData, BmtpStatus, PAYLOAD_BYTES, UDP_IP_BYTES};
use super::pieces::GROUP;
use super::rate::PacketRate;
use super::receiver::BmtpReceiver;
use super::sender::{BmtpParameters, BmtpSender};
use super::{missing::Repair, resends::ResendShare};
use crate::no_jobs::{NoEvent, NoJobs};
use fontana_proto::{Driver, Instant, SplitMix64};
use fontana_sim::{
    Either, HostConfig, LinkConfig, LinkId, LossModel, LossPosition, NodeId, Observer, QueueLength,
    RateCap, ServiceTime, Simulation, SimulationConfig, Topology,
};
use std::sync::Arc;
use std::time::Duration;

/// Constants of sections 4 and 6.
pub(super) const CONTROL_INTERVAL: Duration = Duration::from_secs(10);
const ONE_WAY: Duration = Duration::from_millis(50);
const QUEUE: QueueLength = QueueLength::Packets(50);
/// Rates of the slowest receiver's path, and of the others'.
pub(super) const SLOW: u32 = 40;
pub(super) const FAST: u32 = 100;
const STATUSES_PER_SECOND: u32 = 500;
/// Seconds of a run.
pub(super) const SECONDS: u64 = 500;

/// K and N at the beginning, which the paper does not print (`docs/errata.md`).
pub(super) const MOST_WEIGHT: u32 = 100;
const FIRST_DIVISOR: u32 = 1_000;

/// Just over the capacity of the slowest receiver: "slightly higher than 40".
const FITTING_RATE: PacketRate = PacketRate::per_second(42);

/// The receivers join before the first packet.
const RECEIVERS_FIRST: Duration = Duration::from_millis(1);

/// What a run consists of.
#[derive(Clone, Copy, Debug)]
pub(super) struct BmtpSetting {
    pub(super) receivers: u32,
    /// Packets per second of the first receiver's path.
    pub(super) slow: u32,
    /// Packets per second of the paths of the others.
    pub(super) fast: u32,
    /// Line errors of the first receiver's path.
    pub(super) slow_loss: f64,
    /// Line errors of the others' paths, and of the channel back.
    pub(super) loss: f64,
    pub(super) first_rate: PacketRate,
    /// N at the beginning.
    pub(super) first_divisor: u32,
    /// K.
    pub(super) most_weight: u32,
    pub(super) repair: Repair,
    pub(super) share: ResendShare,
    pub(super) fast_paths: FastPaths,
    pub(super) tree: Tree,
}

/// How the paths of all receivers but the first one are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Each is a link from the sender's router, with its own line errors: the paper's.
    Flat,
    /// From so many routers, of equally many receivers each. The line errors are before these.
    Branches(u32),
}

/// How the paths of all receivers but the first one hold packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FastPaths {
    /// Without queues. If the sender never sends faster than they are, their queues stay empty, and
    /// a run without them is the same, in a third of the time.
    Unqueued,
    /// Each packet takes the same time, so that full queues of one length drop the same packets.
    Equal,
    /// Packets take random times of the same mean.
    Random,
}

impl BmtpSetting {
    /// The configuration of figure 4: one slow receiver among `receivers`.
    pub(super) fn one_slow(receivers: u32, loss: f64) -> Self {
        Self {
            receivers,
            slow: SLOW,
            fast: FAST,
            slow_loss: loss,
            loss,
            first_rate: FITTING_RATE,
            first_divisor: FIRST_DIVISOR,
            most_weight: MOST_WEIGHT,
            repair: Repair::Plain,
            share: ResendShare::Half,
            fast_paths: FastPaths::Unqueued,
            tree: Tree::Flat,
        }
    }

    pub(super) fn parameters(&self) -> BmtpParameters {
        BmtpParameters {
            control_interval: CONTROL_INTERVAL,
            first_rate: self.first_rate,
            first_divisor: self.first_divisor,
            share: self.share,
            repair: self.repair,
            payloads: None,
        }
    }

    /// Bytes of a data packet on the wire.
    fn packet_bytes(&self) -> u32 {
        let vector = match self.repair {
            Repair::Plain => 0,
            Repair::Dispersal => GROUP as u32,
        };
        UDP_IP_BYTES + BmtpData::BYTES as u32 + vector + u32::from(PAYLOAD_BYTES)
    }

    fn path(&self, packets_per_second: u32, loss: f64) -> LinkConfig {
        LinkConfig {
            rate_bytes_per_second: Some(u64::from(packets_per_second * self.packet_bytes())),
            queue: QUEUE,
            delay: ONE_WAY,
            loss: LossModel::bernoulli(loss),
            // "dropped with a uniform probability on the way into each queue"
            loss_position: LossPosition::Ingress,
            ..LinkConfig::default()
        }
    }

    /// The path to the first receiver.
    pub(super) fn slow_path(&self) -> LinkConfig {
        self.path(self.slow, self.slow_loss)
    }

    /// The path to each of the other receivers.
    pub(super) fn fast_path(&self) -> LinkConfig {
        let path = self.path(self.fast, self.loss);
        match self.fast_paths {
            FastPaths::Unqueued => {
                let service = PacketRate::per_second(self.fast).spacing();
                LinkConfig { rate_bytes_per_second: None, delay: path.delay + service, ..path }
            }
            FastPaths::Equal => path,
            FastPaths::Random => LinkConfig { service: ServiceTime::Exponential, ..path },
        }
    }

    /// The channel back.
    pub(super) fn path_back(&self) -> LinkConfig {
        let status_bytes = UDP_IP_BYTES + BmtpStatus::BYTES as u32;
        LinkConfig {
            rate_bytes_per_second: Some(u64::from(STATUSES_PER_SECOND * status_bytes)),
            ..self.path(STATUSES_PER_SECOND, self.loss)
        }
    }
}

/// A host.
pub(super) type BmtpHost = Either<Driver<BmtpSender, NoJobs>, Driver<BmtpReceiver, NoJobs>>;

/// A run.
#[derive(Debug)]
pub(super) struct BmtpRun {
    run: Simulation<BmtpHost, FeedbackLog>,
    receivers: Vec<NodeId>,
    /// The path to each receiver.
    paths: Vec<LinkId>,
}

impl BmtpRun {
    /// A run at time 0.
    pub(super) fn new(setting: &BmtpSetting, seed: u64) -> Self {
        let mut topology = Topology::new();
        let [sender, router] = [(); 2].map(|()| topology.add_node());
        topology.add_link(sender, router, LinkConfig::default());
        topology.add_link(router, sender, setting.path_back());
        let receivers = topology.add_nodes(setting.receivers);
        let fast = setting.fast_path();
        let (branches, fast) = match setting.tree {
            Tree::Flat => (vec![router], fast),
            Tree::Branches(count) => {
                let errors = LinkConfig { loss: fast.loss, ..LinkConfig::default() };
                let branches = topology.add_nodes(count);
                for &branch in &branches {
                    topology.add_link(router, branch, errors.clone());
                    topology.add_link(branch, router, LinkConfig::default());
                }
                (branches, LinkConfig { loss: LossModel::None, ..fast })
            }
        };
        let fast = Arc::new(fast);
        let mut paths = Vec::new();
        for (index, &receiver) in receivers.iter().enumerate() {
            let branch = branches.get(index % branches.len().max(1)).copied();
            let (from, path) = match (index, branch) {
                (1.., Some(branch)) => (branch, Arc::clone(&fast)),
                _ => (router, Arc::new(setting.slow_path())),
            };
            paths.push(topology.add_link(from, receiver, path));
            topology.add_link(receiver, from, LinkConfig::default());
        }
        let begins = Instant::ZERO + RECEIVERS_FIRST;
        let log = FeedbackLog::new(sender, begins);
        let mut run = Simulation::new(topology, SimulationConfig::new(seed), log);
        let hosts = BmtpHosts {
            sender,
            receivers: &receivers,
            begins,
            parameters: setting.parameters(),
            most_weight: setting.most_weight,
            seed,
        };
        hosts.attach(&mut run);
        Self { run, receivers, paths }
    }

    /// Runs until so many seconds after the first packet; `None` if an invariant of the simulation
    /// is violated.
    pub(super) fn until(&mut self, seconds: u64) -> Option<&FeedbackLog> {
        // The last nanosecond is of the next second.
        let end = Duration::from_secs(seconds) + RECEIVERS_FIRST - Duration::from_nanos(1);
        self.run.run_until(Instant::ZERO + end).ok()?;
        Some(self.run.observer())
    }

    /// Packets or pieces that a receiver misses.
    pub(super) fn missing(&self, receiver: usize) -> u64 {
        let host = self.receivers.get(receiver).and_then(|&node| self.run.host(node));
        host.and_then(Either::right).map_or(0, |driver| driver.endpoint.missing())
    }

    /// Packets that found the queue to a receiver full.
    pub(super) fn overflows(&self, receiver: usize) -> u64 {
        let link = self.paths.get(receiver).and_then(|&link| self.run.link(link));
        link.map_or(0, |link| link.stats().queue_drops)
    }
}

/// The hosts of a run on their nodes.
pub(super) struct BmtpHosts<'a> {
    pub(super) sender: NodeId,
    pub(super) receivers: &'a [NodeId],
    /// When the sender begins.
    pub(super) begins: Instant,
    pub(super) parameters: BmtpParameters,
    /// K.
    pub(super) most_weight: u32,
    pub(super) seed: u64,
}

impl BmtpHosts<'_> {
    /// Puts the hosts on their nodes.
    pub(super) fn attach<O: Observer<Either<NoEvent, NoEvent>>>(
        self,
        run: &mut Simulation<BmtpHost, O>,
    ) {
        let Self { sender, receivers, begins, parameters, most_weight, seed } = self;
        let sources: Arc<[NodeId]> = [sender].into();
        for (&node, index) in receivers.iter().zip(0..) {
            let random = receiver_random(seed, index);
            let receiver = BmtpReceiver::new(parameters.repair, most_weight, random);
            let config = HostConfig::receiver_that_reports(Arc::clone(&sources), CAP);
            run.attach(node, Either::Right(Driver::new(receiver, NoJobs)), config);
        }
        let host = Driver::new(BmtpSender::new(parameters, seed), NoJobs);
        run.attach(sender, Either::Left(host), HostConfig::sender(CAP).starting_at(begins));
    }
}

/// More than any host of an experiment sends: 1000 packets a second. A receiver answers each packet
/// at most once.
const CAP: RateCap =
    RateCap { bytes_per_second: 1_000_000, max_packet_bytes: 1_000, peak_window: Duration::ZERO };

/// The random numbers of a receiver. Links have the streams from 1 on.
pub(super) fn receiver_random(seed: u64, index: u64) -> SplitMix64 {
    const FIRST_STREAM: u64 = 1 << 32;
    SplitMix64::new(seed, FIRST_STREAM + index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(setting: &BmtpSetting, seconds: u64) -> Vec<super::super::log::SecondOfPackets> {
        BmtpRun::new(setting, 5).until(seconds).expect("no violation").seconds().to_vec()
    }

    #[test]
    fn queues_that_stay_empty_change_nothing() {
        let setting = BmtpSetting::one_slow(30, 0.01);
        let with_queues = BmtpSetting { fast_paths: FastPaths::Equal, ..setting };
        assert_eq!(seconds(&setting, 60), seconds(&with_queues, 60));
    }

    #[test]
    fn a_run_repeats_exactly_and_its_seed_matters() {
        let setting = BmtpSetting::one_slow(10, 0.02);
        let repair = Repair::Dispersal;
        for setting in [setting, BmtpSetting { repair, ..setting }] {
            assert_eq!(seconds(&setting, 40), seconds(&setting, 40));
            let other = BmtpRun::new(&setting, 6).until(40).unwrap().seconds().to_vec();
            assert_ne!(seconds(&setting, 40), other);
        }
    }
}
