//! Invariants of a run in addition to those of the simulator.

use super::draw::{Drawn, Routing};
use super::hosts::SwarmHost;
use fontana_proto::{BlockId, Instant, ReceiverEvent, SenderEvent};
use fontana_sim::{Either, NodeId, Observer, Packet, Simulation, Violation};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type SwarmRun = Simulation<SwarmHost, Checker>;

/// An invariant that did not hold: a bug of Fontana.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvariantViolation {
    /// The drawn session cannot be sent.
    #[error("what was drawn is no session")]
    Drawing,
    /// An invariant of the simulator: the rate limit in any window, receivers send nothing,
    /// verified bytes are right, no livelock.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A receiver reported that it was complete, and was not.
    #[error("receiver {} said that it was complete with {missing} blocks unverified", .node.0)]
    FalseComplete {
        /// The receiver.
        node: NodeId,
        /// Blocks that it had not verified, or whose bytes are not on its disk: at least one.
        missing: u64,
    },
    /// A receiver gave up.
    #[error("receiver {} gave up", .node.0)]
    GaveUp {
        /// The receiver.
        node: NodeId,
    },
    /// A receiver was not complete long after the last incident.
    #[error(
        "receiver {} was not complete {seconds} s after the last trouble: {wanted} of {of} symbols \
         wanted, {heard} heard",
        .node.0
    )]
    Stalled {
        /// The receiver.
        node: NodeId,
        /// Time since the last incident.
        seconds: u64,
        /// Symbols that it still wanted.
        wanted: u64,
        /// All source symbols.
        of: u64,
        /// Packets of the session that it received.
        heard: u64,
    },
    /// A receiver took more symbols than its code needs.
    #[error("receiver {} took {taken} symbols after the last trouble, {most} would have done", .node.0)]
    Wasteful {
        /// The receiver.
        node: NodeId,
        /// Packets of its content since the last incident.
        taken: u64,
        /// Most packets that it can have needed.
        most: u64,
    },
    /// Senders sent symbols of a rateless code twice.
    #[error("receiver {} heard {duplicates} symbols twice, and wires repeated {repeated}", .node.0)]
    Duplicates {
        /// The receiver.
        node: NodeId,
        /// Symbols that it had received before.
        duplicates: u64,
        /// Packets that arrived twice, or were damaged.
        repeated: u64,
    },
    /// A receiver that was complete was still joined.
    #[error("receiver {} was complete and still joined to {channels} channels", .node.0)]
    StillJoined {
        /// The receiver.
        node: NodeId,
        /// Number of channels.
        channels: u64,
    },
    /// A sender held more prepared symbols than its planning windows allow.
    #[error("sender {} held {symbols} symbols, its rounds allow {most}", .node.0)]
    Memory {
        /// The sender.
        node: NodeId,
        /// Most symbols that were prepared at a time.
        symbols: u64,
        /// Limit of its planning windows.
        most: u64,
    },
}

/// Observes what receivers get and report.
#[derive(Debug, Default)]
pub(super) struct Checker {
    /// Blocks that each receiver has verified, in all its runs.
    verified: BTreeMap<NodeId, BTreeSet<BlockId>>,
    blocks: u64,
    /// Packets that each receiver got; `None` if no wire duplicates packets.
    numbers: Option<BTreeMap<NodeId, BTreeSet<u64>>>,
    /// Packets that each receiver got twice, or damaged.
    repeated: BTreeMap<NodeId, u64>,
    complete: BTreeSet<NodeId>,
    /// Senders of the session, without strangers.
    sources: BTreeSet<NodeId>,
    /// Packets of content that each receiver got after the last incident, from the acceptance of
    /// the content until its reception was complete.
    taken: BTreeMap<NodeId, u64>,
    /// Receivers whose reception is complete.
    sated: BTreeSet<NodeId>,
    breach: Option<InvariantViolation>,
}

impl Checker {
    pub(super) fn new(drawn: &Drawn, senders: &[NodeId]) -> Self {
        let ours = senders.iter().enumerate().filter(|(n, _)| !drawn.strangers.contains(n));
        Self {
            sources: ours.map(|(_, &node)| node).collect(),
            blocks: drawn.session.block_count(),
            numbers: drawn.repeats.then(BTreeMap::new),
            ..Self::default()
        }
    }

    fn breach(&mut self, breach: InvariantViolation) {
        self.breach.get_or_insert(breach);
    }
}

impl Observer<Either<SenderEvent, ReceiverEvent>> for Checker {
    fn on_deliver(&mut self, _now: Instant, node: NodeId, packet: &Packet) {
        let again = self
            .numbers
            .as_mut()
            .is_some_and(|numbers| !numbers.entry(node).or_default().insert(packet.number));
        if again || packet.damage.is_some() {
            *self.repeated.entry(node).or_default() += 1;
        }
        let is_content = packet.symbol_bytes > 0;
        if is_content && self.sources.contains(&packet.source) && !self.sated.contains(&node) {
            *self.taken.entry(node).or_default() += 1;
        }
    }

    fn on_event(
        &mut self,
        _now: Instant,
        node: NodeId,
        event: &Either<SenderEvent, ReceiverEvent>,
    ) {
        let Some(event) = event.right() else { return };
        match event {
            ReceiverEvent::BlockVerified { block } => {
                self.verified.entry(node).or_default().insert(*block);
            }
            ReceiverEvent::Complete => {
                let verified = self.verified.get(&node).map_or(0, |blocks| blocks.len() as u64);
                if verified != self.blocks {
                    let missing = self.blocks.abs_diff(verified);
                    self.breach(InvariantViolation::FalseComplete { node, missing });
                }
                self.complete.insert(node);
            }
            ReceiverEvent::Accepted { .. } => {
                self.sated.remove(&node);
                self.taken.remove(&node);
            }
            ReceiverEvent::ReceptionComplete => drop(self.sated.insert(node)),
            // The symbols of the block are discarded.
            ReceiverEvent::BlockCorrupt { .. } => drop(self.sated.remove(&node)),
            ReceiverEvent::GivenUp { .. } => self.breach(InvariantViolation::GaveUp { node }),
            _ => {}
        }
    }
}

/// Whether the run can end. First called after the last incident.
pub(super) fn is_settled(run: &SwarmRun, receivers: &[NodeId]) -> bool {
    run.observer().breach.is_some()
        // A receiver that is complete and joined has been restarted.
        || receivers.iter().all(|&node| {
            run.observer().complete.contains(&node) && run.joined(node).is_empty()
        })
}

/// Notes that the last incident is over.
pub(super) fn note_calm(run: &mut SwarmRun) {
    run.observer_mut().taken.clear();
}

/// Symbols that a receiver may need beyond `k`, per block of a rateless code: its overhead, uneven
/// losses, and a grain of 8 symbols for each channel.
const SLACK_PER_BLOCK: u64 = 64;
/// Packets that were planned or in transit at the last incident.
const SLACK: u64 = 256;

/// Judges a run that has ended.
pub(super) fn judge(
    run: &SwarmRun,
    drawn: &Drawn,
    senders: &[NodeId],
    receivers: &[NodeId],
    waited: u64,
) -> Result<(), InvariantViolation> {
    if let Some(breach) = &run.observer().breach {
        return Err(breach.clone());
    }
    for &node in senders {
        let Some(host) = run.host(node).and_then(Either::left) else { continue };
        let (sender, most) = (&host.endpoint, most_held(drawn));
        if sender.most_held > most && !sender.is_stranger() {
            return Err(InvariantViolation::Memory { node, symbols: sender.most_held, most });
        }
    }
    for (number, &node) in receivers.iter().enumerate() {
        let Some(host) = run.host(node).and_then(Either::right) else { continue };
        let receiver = &host.endpoint.receiver;
        let stats = receiver.stats();
        if !run.observer().complete.contains(&node) {
            let (wanted, of) = (receiver.symbols_wanted(), receiver.source_symbols());
            let heard = stats.session_packets;
            return Err(InvariantViolation::Stalled { node, seconds: waited, wanted, of, heard });
        }
        if !host.runner.has_everything() {
            return Err(InvariantViolation::FalseComplete { node, missing: 1 });
        }
        let channels = run.joined(node).len() as u64;
        if channels > 0 {
            return Err(InvariantViolation::StillJoined { node, channels });
        }
        let repeated = run.observer().repeated.get(&node).copied().unwrap_or(0);
        // The site may have sent it before.
        if drawn.is_fresh && !drawn.sent_back.shares && stats.duplicates > repeated {
            let duplicates = stats.duplicates;
            return Err(InvariantViolation::Duplicates { node, duplicates, repeated });
        }
        // `TopOnly` drops packets behind the place where they are counted.
        if !matches!(drawn.routing.get(number), Some(Routing::TopOnly { .. })) {
            judge_thrift(run, drawn, node, stats.corrupt_blocks + 1)?;
        }
    }
    Ok(())
}

/// Liveness, counted in packets. `rounds` is how often a block had to be started, at most.
fn judge_thrift(
    run: &SwarmRun,
    drawn: &Drawn,
    node: NodeId,
    rounds: u64,
) -> Result<(), InvariantViolation> {
    if !drawn.is_thrifty() {
        return Ok(());
    }
    let repeated = run.observer().repeated.get(&node).copied().unwrap_or(0);
    let taken = run.observer().taken.get(&node).copied().unwrap_or(0);
    let (k, blocks) = (drawn.session.source_symbols(), drawn.session.block_count());
    // Packets of a mirror are useless before its head has arrived.
    let sources = run.observer().sources.len() as u64;
    let most = rounds * sources * (k + k / 2 + SLACK_PER_BLOCK * blocks) + SLACK + repeated;
    if taken > most { Err(InvariantViolation::Wasteful { node, taken, most }) } else { Ok(()) }
}

/// Three planning windows, and for each block the symbols of an additional visit.
fn most_held(drawn: &Drawn) -> u64 {
    3 * u64::from(drawn.session.round_symbols) + SLACK_PER_BLOCK * drawn.session.block_count()
}
